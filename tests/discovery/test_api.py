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
from tests.discovery.ways import ALL, NUMBERS, PROVED, PUBLISHED, THREE, TWO, WAYS, binary, graph_of, loss_of
from tests.registry.discovery import KENDALL, TASKS

PURE, RHO = dpc.PureDP(1), dpc.ZCDP(0.5)


def chain(rows: int = 4_000, columns: int = 4) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    values = [rng.integers(0, 2, rows)]
    for _ in range(columns - 1):
        values.append(np.where(rng.random(rows) < 0.85, values[-1], 1 - values[-1]))
    return {f"v{k}": value for k, value in enumerate(values)}


def asked(frame: Any = None, schema: Any = TWO, loss: Any = PURE, seed: int = 4, **more: Any) -> Any:
    return graph_of(chain() if frame is None else frame, schema, loss, seed, missing="impute", **more)


CHAIN = frozenset(frozenset((f"v{k}", f"v{k + 1}")) for k in range(3))


@pytest.mark.parametrize("name", WAYS)
def test_every_method_finds_a_clear_chain_without_privacy(name: str) -> None:
    found = asked(method=WAYS[name], loss=dpc.NoPrivacy())
    assert found.graph.skeleton == CHAIN and not found.graph.directed
    assert not found.guarantee.private


def test_a_clear_graph_is_found_and_asking_its_release_again_is_free() -> None:
    frame, ledger = chain(50_000), dpc.Ledger.in_memory(PURE)
    with dpc.simulated_noise(3):
        found = dpc.discover(dpc.Table(frame, binary(frame), ledger, missing="impute"), loss=PURE)
    assert found.release is not None
    assert found.graph.skeleton == CHAIN and found.method == "table" and found.search == "score"
    assert all(found.margin[edge] > 3 for edge in CHAIN)
    for arguments in ({"alpha": 0.001}, {"search": "pc", "max_order": 2}, {}):
        again = found.release.discover(**arguments)  # type: ignore[arg-type]
        assert again.guarantee == found.guarantee and again.graph.skeleton == CHAIN
    without = found.release.discover(knowledge=dpc.Knowledge(forbidden=[("v0", "v1"), ("v1", "v0")]))
    assert frozenset(("v0", "v1")) not in without.graph.skeleton
    pointed = found.release.discover(knowledge=dpc.Knowledge(tiers=[["v0"], ["v1"], ["v2"], ["v3"]]))
    assert pointed.graph.directed == {("v0", "v1"), ("v1", "v2"), ("v2", "v3")}
    assert len(ledger.entries()) == 1
    with pytest.raises(ParameterError, match=r"release\.discover\(alpha"):
        dpc.discover(found.release, loss=dpc.PureDP(1))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NUMBERS)
def test_support_is_drawn_without_cost_the_same_each_time_and_no_arrow_has_none(name: str) -> None:
    found, clear = (asked(chain(n), method=name, loss=loss_of(NUMBERS[name])) for n in (3_000, 30_000))
    again, drawn = found.release.discover(), clear.with_support(20)
    assert found.support is not None and again.support == found.support and again.graph == found.graph
    assert all(row["arrow_support"] >= 0.5 for row in found.edges() if row["directed"])
    assert found.graph.skeleton == found.unpruned_graph.skeleton
    assert drawn.support.redraws == 20 and all(drawn.support.edges[edge] == 1 for edge in CHAIN)
    assert all(0 <= share <= 1 for share in drawn.support.edges.values())
    # Of whitened pairs support is put together of three searches, and is no share of draws.
    assert ("support 100%" if name in ("whitened", "triples") else "in 100% of re-drawn noise") in drawn.details()


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
    numbers, bounded = dict.fromkeys("abc", np.linspace(-1, 1, 30)), dpc.Bounded(-2, 2)
    mixed = dpc.Schema({"a": dpc.Bounded(-2, 2, cuts=[0]), "b": bounded, "c": bounded})
    eleven, many = ({f"v{k}": np.arange(n) % 2 for k in range(11)} for n in (40, 80_000))
    three = dpc.Schema(dict.fromkeys(many, TWO) | {"v0": THREE})
    for frame, declared, loss, method in (
        (numbers, bounded, RHO, "moments"), (numbers, bounded, PURE, "table"), (chain(), TWO, dpc.ZCDP(1), "table"),
        *((frame, TWO, dpc.ApproxDP(epsilon, 1e-6), method) for frame, epsilon, method in (
            (eleven, 1, "whitened"), (many, 0.1, "whitened"), (many, 0.2, "triples"), (many, 2, "parities"),
        )),
        (many, three, dpc.ApproxDP(2, 1e-6), "triples"),  # not all of two levels
    ):  # fmt: skip
        assert asked(frame, declared, loss).method == method
    assert asked(numbers, mixed).release.sizes == (2, 4, 4)


def test_a_level_that_is_given_holds_for_all_orders() -> None:
    usual, given = (asked(method="parities", loss=RHO, alpha=alpha) for alpha in (None, 0.01))
    assert (usual.alpha, usual.alpha_per_order) == (0.01, 0.03)
    assert given.alpha_per_order is asked().alpha_per_order is None


REFUSED: dict[type[Exception], list[dict[str, Any]]] = {
    LossError: [{"loss": None}, {"loss": dpc.PureDP(21)}, {"loss": 1.0}, {"method": "parities"},
                {"method": "ci-test", "loss": dpc.ZCDP(1)}, {"method": "ci-test", "loss": dpc.PureDP(1e-8)}],
    SchemaError: [{"method": "moments", "levels": THREE, "loss": RHO}, {"columns": ["v0", "x"]}],
    UnprovenError: [{"method": PrivPc()}, {"method": CiTest(test=dpc.papers.PrivKendall())}],
    ParameterError: [
        {"method": "ges"}, {"method": ContingencyTable}, {"columns": ["v0"]}, {"columns": ["v0", "v0"]},
        {"columns": "v0"}, {"alpha": 0}, {"alpha": True}, {"knowledge": [("v0", "v1")]},
        {"knowledge": dpc.Knowledge(forbidden=[("v0", "x")])}, {"method": ContingencyTable(max_order=-1)},
        {"method": ContingencyTable(max_order=True)}, {"method": ContingencyTable(search="best")},  # type: ignore[arg-type]
        {"method": ReconciledTests(test="gcm"), "accept_unproven": True},  # type: ignore[arg-type]
        {"method": CiTest(test="t-test")},
        {"method": PrivPc(constants="printed")},  # type: ignore[arg-type]
    ],
}  # fmt: skip


@pytest.mark.parametrize(("error", "arguments"), [(error, one) for error, all in REFUSED.items() for one in all])
def test_public_arguments_are_refused_before_anything_is_spent(error: type, arguments: dict[str, Any]) -> None:
    budget, options = dpc.ApproxDP(50, 1e-3), {"loss": PURE} | arguments
    ledger = dpc.Ledger.in_memory(budget, accept_large_epsilon=True)
    schema = dpc.Schema(dict.fromkeys(chain(1), options.pop("levels", TWO)))
    with pytest.raises(error):
        dpc.discover(dpc.Table(chain(50), schema, ledger, missing="impute"), **options)
    assert not ledger.entries()


def test_options_of_a_release_that_it_cannot_take_are_refused() -> None:
    found = asked(method="parities", loss=RHO)
    for arguments in ({"search": "score"}, {"search": "best"}, {"max_order": 9}, {"alpha": 0}, {"knowledge": "none"}):
        with pytest.raises(ParameterError):
            found.release.discover(**arguments)
    many = asked({f"v{k}": np.arange(40) % 2 for k in range(15)}, method="table")
    with pytest.raises(ParameterError, match="at most 14 columns"):
        many.release.discover(search="score")


OF_A_TEST = CiTest(test=dpc.papers.PrivKendall(), max_order=0)


@pytest.mark.parametrize("method", [*PUBLISHED.values(), OF_A_TEST], ids=lambda method: type(method).__name__)
def test_what_has_no_proof_runs_with_consent_for_the_whole_graph_in_memory_only(method: Any, tmp_path: Any) -> None:
    frame, loss = chain(2_000), dpc.PureDP(5)

    def ask(ledger: dpc.Ledger) -> dpc.Discovery:
        table = dpc.Table(frame, binary(frame), ledger, missing="impute")
        return dpc.discover(table, method=method, loss=loss, accept_unproven=True)

    found = ask(dpc.Ledger.in_memory(loss))
    assert not found.guarantee.private and found.guarantee.proofs == ()
    assert ("DP after" in found.reported) == (method is not OF_A_TEST)
    with dpc.Ledger.create(tmp_path / "a.ledger", budget=loss) as ledger, pytest.raises(UnprovenError):
        ask(ledger)


def test_the_short_names_are_those_of_the_methods() -> None:
    assert tuple(METHODS) == ("table", "parities", "whitened", "triples", "moments", "ci-test")


def test_the_ledger_and_the_result_tell_the_options_of_the_method_and_of_a_test_inside() -> None:
    ledger, frame = dpc.Ledger.in_memory(PURE), chain(400)
    way = CiTest(test=dpc.methods.Kendall(strata=3), max_order=0)
    table = dpc.Table(frame, binary(frame), ledger, missing="impute")
    found = dpc.discover(table, loss=PURE, method=way, alpha=0.2)
    told = json.loads(ledger.entries()[0].detail)
    assert told["columns"] == list(frame) and told["method"] == "ci-test" and told["alpha"] == 0.2
    assert found.settings == {"max_order": 0, "test": told["test"]}
    assert told["test"]["method"] == "kendall" and told["test"]["strata"] == 3


@pytest.mark.parametrize("row", TASKS, ids=lambda row: row.name)
def test_a_guarantee_names_the_claims_of_its_row(row: Any) -> None:
    way = (ALL | {"ci-test": CiTest(**KENDALL)})[row.name.split()[1]]
    numbers = row.name == "discover table beside numbers"  # whose cuts are learnt where rows are many
    frame, declared = (chain(40_000), dpc.Bounded(0, 1)) if numbers else (chain(400), TWO)
    assert asked(frame, declared, loss_of(way), method=way).guarantee.proofs == row.claims


def test_a_table_paid_for_in_rho_names_gaussian_noise() -> None:
    assert asked(method="table", loss=RHO).guarantee.proofs == ("contingency-table", "gaussian")


def test_a_pair_that_was_never_tested_has_a_mark_and_neither_support_nor_arrow() -> None:
    """Ten numbers, seven of them constant, and much noise: hardly a pair can be tested."""
    rng = np.random.default_rng(1)
    frame = {f"v{k}": rng.normal(size=20_000) if k < 3 else np.zeros(20_000) for k in range(10)}
    frame["v1"] = frame["v0"] + 0.5 * frame["v1"]
    found = graph_of(frame, dpc.Bounded(-20, 20), dpc.ApproxDP(0.1, 1e-6), 2, method="moments").with_support(2)
    assert found.support is not None and len(found.untested) > 20
    assert {frozenset(pair) for pair in found.to_dict()["untested"]} == found.untested
    assert not found.untested & {frozenset(arc) for arc in found.graph.directed}
    for row in found.edges():
        assert row["tested"] == (row["support"] is not None) == (row["margin"] is not None)
    silent = len(found.untested - found.graph.skeleton)
    assert f"Nothing is said of {silent} pairs that noise left untested." in found.details()


def test_a_required_arrow_stands_without_support() -> None:
    found = asked(chain(20_000), seed=3, knowledge=dpc.Knowledge(required=[("v0", "v1")])).with_support(5)
    (row,) = (row for row in found.edges() if {row["from"], row["to"]} == {"v0", "v1"})
    assert row["directed"] and not row["tested"] and row["support"] is None
    assert "required, not tested" in found.details()


@pytest.mark.replication
@pytest.mark.parametrize("name", ["parities", "whitened", "moments"])
def test_independent_columns_stay_apart_where_many_rows_are_left_out(name: str) -> None:
    """For p-values that take n for the number of kept rows, or a midpoint for what is missing."""
    found, rows, numbers = 0, 3_000, name == "moments"
    for seed in range(20):
        rng, left_out = np.random.default_rng(100 + seed), np.random.default_rng(seed).random(rows) < 0.5
        a, c = (rng.standard_normal(rows) if numbers else rng.integers(0, 2, rows).astype(float) for _ in "ac")
        b = a + (rng.standard_normal(rows) if numbers else rng.random(rows) < 0.3)
        a[left_out] = c[left_out] = np.nan
        declared: Any = dpc.Bounded(-4, 4) if numbers else dpc.Schema({"a": TWO, "b": THREE, "c": TWO})
        found += frozenset("ac") in graph_of({"a": a, "b": b, "c": c}, declared, RHO, seed, method=name).graph.skeleton
    assert found <= 2  # at level .01: 3 of 20 with probability 1e-3


def test_what_each_test_gets_is_told_before_and_the_tests_are_counted_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rich.progress import Progress

    steps: list[tuple[str, int]] = []
    monkeypatch.setattr(
        Progress, "update", lambda self, task, **found: steps.append((found["description"], found["completed"]))
        if "description" in found else None,
    )  # fmt: skip
    monkeypatch.setattr("dpcausal.core.progress.is_terminal", lambda: True)
    found = asked(chain(600, 3), loss=dpc.PureDP(15), method=CiTest(test="kendall", max_order=1))
    assert any("up to 3 tests given 0 with epsilon 2.5 or more each" in note for note in found.guarantee.caveats)
    assert steps[:3] == [("tests given 0", place) for place in (1, 2, 3)]
    assert len([step for step in steps if step[0].startswith("tests")]) == found.tests
