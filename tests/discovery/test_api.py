"""The call: what it costs, what it refuses, what it holds, that asking again is free, and its defined edge cases."""

import json
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.discovery.methods import METHODS, choose_automatically
from dpcausal.discovery.question import DiscoveryQuestion
from dpcausal.errors import InfeasibleError, LossError, ParameterError, SchemaError, UnprovenError
from dpcausal.methods import CiTest, ContingencyTable, Whitened
from dpcausal.papers import PrivPc, ReconciledTests, SvtPc
from tests.discovery.ways import ALL, NUMBERS, PROVED, PUBLISHED, WAYS, binary, loss_of
from tests.registry.discovery import KENDALL, TASKS

RHO = dpc.ZCDP(0.5)


def chain(rows: int = 4_000, columns: int = 4) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    values = [rng.integers(0, 2, rows)]
    for _ in range(columns - 1):
        values.append(np.where(rng.random(rows) < 0.85, values[-1], 1 - values[-1]))
    return {f"v{k}": value for k, value in enumerate(values)}


def asked(frame: dict[str, np.ndarray] | None = None, budget: Any = None, **arguments: Any) -> dpc.Discovery:
    frame = chain() if frame is None else frame
    loss = arguments.pop("loss", dpc.PureDP(1))
    schema = arguments.pop("schema", None) or binary(frame)
    without = isinstance(loss, dpc.NoPrivacy)
    ledger = dpc.Ledger.without_privacy() if without else dpc.Ledger.in_memory(budget or loss)
    return dpc.discover(dpc.Table(frame, schema, ledger, missing="impute"), loss=loss, **arguments)


CHAIN = frozenset(frozenset((f"v{k}", f"v{k + 1}")) for k in range(3))


@pytest.mark.parametrize("name", WAYS)
def test_every_method_finds_a_clear_chain_without_privacy(name: str) -> None:
    found = asked(method=WAYS[name], loss=dpc.NoPrivacy())
    assert found.graph.skeleton == CHAIN and not found.graph.directed
    assert not found.guarantee.private


def test_a_clear_graph_is_found_and_asking_its_release_again_is_free() -> None:
    loss, frame = dpc.PureDP(1), chain(50_000)
    ledger = dpc.Ledger.in_memory(loss)
    table = dpc.Table(frame, binary(frame), ledger, missing="impute")
    with dpc.simulated_noise(3):
        found = dpc.discover(table, loss=loss)
    assert found.graph.skeleton == CHAIN and found.method == "table" and found.search == "score"
    assert all(found.margin[edge] > 3 for edge in CHAIN)
    for arguments in ({"alpha": 0.001}, {"search": "pc", "max_order": 2}, {}):
        again = found.release.discover(**arguments)  # type: ignore[union-attr,arg-type]
        assert again.guarantee == found.guarantee and again.graph.skeleton == CHAIN
    assert found.release is not None
    without = found.release.discover(knowledge=dpc.Knowledge(forbidden=[("v0", "v1"), ("v1", "v0")]))
    assert frozenset(("v0", "v1")) not in without.graph.skeleton
    pointed = found.release.discover(knowledge=dpc.Knowledge(tiers=[["v0"], ["v1"], ["v2"], ["v3"]]))
    assert pointed.graph.directed == {("v0", "v1"), ("v1", "v2"), ("v2", "v3")}
    assert len(ledger.entries()) == 1
    with pytest.raises(ParameterError, match=r"release\.discover\(alpha"):
        dpc.discover(found.release, loss=dpc.PureDP(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NUMBERS)
def test_support_is_drawn_without_cost(name: str) -> None:
    with dpc.simulated_noise(4):
        found = asked(chain(30_000), method=name, loss=loss_of(NUMBERS[name])).with_support(20)
    assert found.support is not None and found.support.redraws == 20
    assert all(found.support.edges[edge] == 1 for edge in CHAIN)
    assert all(0 <= share <= 1 for share in found.support.edges.values())
    # Of whitened pairs support is put together of three searches, and is no share of draws.
    assert ("support 100%" if name in ("whitened", "triples") else "in 100% of re-drawn noise") in found.details()


@pytest.mark.parametrize("name", NUMBERS)
def test_a_result_has_its_support_the_same_each_time_and_no_arrow_without(name: str) -> None:
    with dpc.simulated_noise(4):
        found = asked(chain(3_000), method=name, loss=loss_of(NUMBERS[name]))
    again = found.release.discover()  # type: ignore[union-attr]
    assert found.support is not None and again.support == found.support and again.graph == found.graph
    assert all(row["arrow_support"] >= 0.5 for row in found.edges() if row["directed"])
    assert found.unpruned_graph is not None and found.graph.skeleton == found.unpruned_graph.skeleton


def test_decisions_alone_have_no_support() -> None:
    found = asked(method=SvtPc(constants="corrected"))
    assert found.release is None and not found.margin
    with pytest.raises(ParameterError):
        found.with_support(10)
    with pytest.raises(ParameterError):
        asked().with_support(0)


def test_sixty_columns_have_a_clear_word_before_anything_is_spent() -> None:
    frame, ledger = {f"v{k:02d}": np.arange(100) % 2 for k in range(60)}, dpc.Ledger.in_memory(dpc.PureDP(1))
    table = dpc.Table(frame, binary(frame), ledger, missing="impute")
    with pytest.raises(LossError, match="60 columns make a table"):
        dpc.discover(table, loss=dpc.PureDP(1))
    for method in (ContingencyTable(), *PROVED.values(), *PUBLISHED.values()):
        with pytest.raises(InfeasibleError, match="cells"):
            dpc.discover(table, loss=loss_of(method), method=method, accept_unproven=True)
    assert not ledger.entries()
    assert isinstance(
        choose_automatically(DiscoveryQuestion.of(table, None, None, None), dpc.ApproxDP(1, 1e-6)), Whitened
    )


def test_auto_follows_schema_size_and_loss() -> None:
    numbers = {name: np.linspace(-1, 1, 30) for name in "abc"}
    bounded = dpc.Schema({name: dpc.Bounded(-2, 2) for name in "abc"})
    assert asked(numbers, schema=bounded, loss=RHO).method == "moments"
    assert asked(numbers, schema=bounded).method == "table"
    mixed = dpc.Schema({"a": dpc.Bounded(-2, 2, cuts=[0]), "b": dpc.Bounded(-2, 2), "c": dpc.Bounded(-2, 2)})
    found = asked(numbers, schema=mixed)
    assert found.release.sizes == (2, 4, 4)  # type: ignore[union-attr]
    assert asked(loss=dpc.ZCDP(1)).method == "table"
    eleven = {f"v{k}": np.arange(40) % 2 for k in range(11)}
    assert asked(eleven, loss=dpc.ApproxDP(1, 1e-6)).method == "whitened"
    many = {name: np.tile(values, 2_000) for name, values in eleven.items()}
    assert asked(many, loss=dpc.ApproxDP(0.1, 1e-6)).method == "whitened"
    assert asked(many, loss=dpc.ApproxDP(0.2, 1e-6)).method == "triples"
    assert asked(many, loss=dpc.ApproxDP(2, 1e-6)).method == "parities"  # all of two levels
    three = dpc.Schema(dict.fromkeys(many, dpc.Levels([0, 1])) | {"v0": dpc.Levels([0, 1, 2])})
    assert asked(many, schema=three, loss=dpc.ApproxDP(2, 1e-6)).method == "triples"


def test_a_level_that_is_given_holds_for_all_orders() -> None:
    loss = dpc.ApproxDP(1, 1e-6)
    usual = asked(method="parities", loss=loss)
    assert (usual.alpha, usual.alpha_per_order) == (0.01, 0.03)
    assert asked(method="parities", loss=loss, alpha=0.01).alpha_per_order is None
    assert asked().alpha_per_order is None


THREE_LEVELS = dpc.Schema({f"v{k}": dpc.Levels([0, 1, 2]) for k in range(4)})


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"loss": None}, LossError),
        ({"loss": dpc.PureDP(21)}, LossError),
        ({"loss": 1.0}, LossError),
        ({"method": "ges"}, ParameterError),
        ({"method": "parities"}, LossError),
        ({"method": ReconciledTests(test="gcm"), "accept_unproven": True}, ParameterError),  # type: ignore[arg-type]
        ({"method": ContingencyTable}, ParameterError),
        ({"method": "moments", "schema": THREE_LEVELS, "loss": RHO}, SchemaError),
        ({"columns": ["v0"]}, ParameterError),
        ({"columns": ["v0", "v0"]}, ParameterError),
        ({"columns": ["v0", "x"]}, SchemaError),
        ({"columns": "v0"}, ParameterError),
        ({"alpha": 0}, ParameterError),
        ({"alpha": True}, ParameterError),
        ({"method": ContingencyTable(max_order=-1)}, ParameterError),
        ({"method": ContingencyTable(max_order=True)}, ParameterError),
        ({"method": ContingencyTable(search="best")}, ParameterError),  # type: ignore[arg-type]
        ({"knowledge": [("v0", "v1")]}, ParameterError),
        ({"knowledge": dpc.Knowledge(forbidden=[("v0", "x")])}, ParameterError),
        ({"method": PrivPc(constants="printed")}, ParameterError),  # type: ignore[arg-type]
        ({"method": PrivPc()}, UnprovenError),
        ({"method": CiTest(test=dpc.papers.PrivKendall())}, UnprovenError),
    ],
)
def test_public_arguments_are_refused_before_anything_is_spent(arguments: dict[str, Any], error: type) -> None:
    frame = chain(50)
    schema = arguments.pop("schema", None) or binary(frame)
    ledger = dpc.Ledger.in_memory(dpc.ApproxDP(50, 1e-3), accept_large_epsilon=True)
    with pytest.raises(error):
        dpc.discover(dpc.Table(frame, schema, ledger, missing="impute"), **({"loss": dpc.PureDP(1)} | arguments))
    assert not ledger.entries()


def test_options_of_a_release_that_it_cannot_take_are_refused() -> None:
    found = asked(method="parities", loss=RHO)
    assert found.release is not None
    for arguments in ({"search": "score"}, {"search": "best"}, {"max_order": 9}, {"alpha": 0}, {"knowledge": "none"}):
        with pytest.raises(ParameterError):
            found.release.discover(**arguments)  # type: ignore[arg-type]
    many = asked({f"v{k}": np.arange(40) % 2 for k in range(15)}, method="table")
    with pytest.raises(ParameterError, match="at most 14 columns"):
        many.release.discover(search="score")  # type: ignore[union-attr]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_systems_run_with_consent_in_memory_only(name: str, tmp_path: Any) -> None:
    frame, options = chain(2_000), {"method": PUBLISHED[name], "loss": dpc.PureDP(5), "accept_unproven": True}
    found = asked(frame, **options)
    assert not found.guarantee.private and "DP after" in found.reported and found.guarantee.proofs == ()
    with dpc.Ledger.create(tmp_path / "a.ledger", budget=dpc.PureDP(9)) as ledger, pytest.raises(UnprovenError):
        dpc.discover(dpc.Table(frame, binary(frame), ledger, missing="impute"), **options)


def test_a_test_without_a_proof_needs_consent_for_the_whole_graph() -> None:
    found = asked(method=CiTest(test=dpc.papers.PrivKendall(), max_order=0), accept_unproven=True)
    assert not found.guarantee.private and found.guarantee.proofs == ()


def test_the_short_names_are_those_of_the_methods() -> None:
    assert tuple(METHODS) == ("table", "parities", "whitened", "triples", "moments", "ci-test")
    assert all(name == kind.name for name, kind in METHODS.items())


def test_the_ledger_and_the_result_tell_the_options_of_the_method_and_of_a_test_inside() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    frame = chain(400)
    table = dpc.Table(frame, binary(frame), ledger, missing="impute")
    way = CiTest(test=dpc.methods.Kendall(strata=3), max_order=0)
    found = dpc.discover(table, loss=dpc.PureDP(1), method=way, alpha=0.2)
    told = json.loads(ledger.entries()[0].detail)
    assert told["columns"] == list(frame) and told["method"] == "ci-test" and told["alpha"] == 0.2
    assert found.settings == {"max_order": 0, "test": told["test"]}
    assert told["test"]["method"] == "kendall" and told["test"]["strata"] == 3


@pytest.mark.parametrize("row", TASKS, ids=lambda row: row.name)
def test_a_guarantee_names_the_claims_of_its_row(row: Any) -> None:
    way = (ALL | {"ci-test": CiTest(**KENDALL)})[row.name.split()[1]]
    numbers = row.name == "discover table beside numbers"  # whose cuts are learnt where rows are many
    schema = dpc.Schema(dict.fromkeys(chain(1), dpc.Bounded(0, 1))) if numbers else None
    frame = chain(40_000 if numbers else 400)
    assert asked(frame, schema=schema, method=way, loss=loss_of(way)).guarantee.proofs == row.claims


def test_a_table_paid_for_in_rho_names_gaussian_noise() -> None:
    assert asked(method="table", loss=RHO).guarantee.proofs == ("contingency-table", "gaussian")


def test_a_pair_that_was_never_tested_has_a_mark_and_neither_support_nor_arrow() -> None:
    """Ten numbers, seven of them constant, and much noise: hardly a pair can be tested."""
    rng = np.random.default_rng(1)
    frame = {f"v{k}": rng.normal(size=20_000) if k < 3 else np.zeros(20_000) for k in range(10)}
    frame["v1"] = frame["v0"] + 0.5 * frame["v1"]
    schema = dpc.Schema({name: dpc.Bounded(-20, 20) for name in frame})
    loss = dpc.ApproxDP(0.1, 1e-6)
    with dpc.simulated_noise(2):
        table = dpc.Table(frame, schema, dpc.Ledger.in_memory(loss))
        found = dpc.discover(table, loss=loss, method="moments").with_support(2)
    assert found.support is not None and len(found.untested) > 20
    assert not found.untested & {frozenset(arc) for arc in found.graph.directed}
    for row in found.edges():
        assert row["tested"] == (row["support"] is not None) == (row["margin"] is not None)
    silent = len(found.untested - found.graph.skeleton)
    assert f"Nothing is said of {silent} pairs that noise left untested." in found.details()


def test_a_required_arrow_stands_without_support() -> None:
    with dpc.simulated_noise(3):
        found = asked(chain(20_000), knowledge=dpc.Knowledge(required=[("v0", "v1")])).with_support(5)
    (row,) = (row for row in found.edges() if {row["from"], row["to"]} == {"v0", "v1"})
    assert row["directed"] and not row["tested"] and row["support"] is None
    assert "required, not tested" in found.details()
