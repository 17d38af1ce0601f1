"""``direction_all``: what it costs, that the cost is fixed beforehand and used up, and what each answer is paid."""

import dataclasses
import itertools
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, DpCausalError, LossError, ParameterError, SchemaError
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.papers import Holdout
from dpcausal.papers.direction import holdout, training
from dpcausal.privacy.loss import parse_loss
from tests.direction.neighbours import spelled

NAMES = ("a", "b", "c", "d")
SCHEMA = dpc.Schema({name: dpc.Bounded(-1, 1) for name in NAMES} | {"z": dpc.Levels(["no", "yes"])})


def columns(n: int = 80, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a, c = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)
    b, d = (np.clip(0.8 * np.tanh(3 * x) + 0.1 * rng.standard_normal(n), -1, 1) for x in (a, c))
    return {"a": a, "b": b, "c": c, "d": d, "z": np.array(["no"] * n, dtype=object)}


def table(budget: Any = None, n: int = 80, protect: str = "everyone", **other: Any) -> dpc.Table:
    if isinstance(budget, dpc.NoPrivacy):
        return dpc.Table(columns(n) | other, SCHEMA, dpc.Ledger.without_privacy(), missing="impute")
    ledger = dpc.Ledger.in_memory(budget or dpc.PureDP(1), protect=protect)
    return dpc.Table(columns(n) | other, SCHEMA, ledger, missing="impute")


def all_of(asked: dpc.Table, pairs: Any = None, **arguments: Any) -> dpc.DirectionSet:
    scores = ["lsnm" if arguments.get("protect", "everyone") == "everyone" else "spearman"]
    return dpc.direction_all(asked, pairs, **({"loss": dpc.PureDP(1), "scores": scores} | spelled(arguments)))


LOSSES: dict[str, tuple[Any, Any]] = {
    "pure": (dpc.PureDP(1), dpc.PureDP(1)),
    "approximate, few": (dpc.ApproxDP(1, 1e-6), dpc.PureDP(1)),
    "approximate, large delta": (dpc.ApproxDP(1, 0.1), dpc.ApproxDP(1, 0.1)),
    "zcdp": (dpc.ZCDP(0.5), dpc.ZCDP(0.5)),
}


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("shares", [None, {("a", "b"): 3, "hsic": 0.1, ("c", "d"): Fraction(1, 7)}], ids=str)
def test_one_entry_pays_for_all_and_the_answers_use_it_up(kind: str, shares: Any) -> None:
    loss, spent = LOSSES[kind]
    asked = table(loss)
    with recording_gate() as recording:
        r = all_of(asked, loss=loss, scores=["lsnm", "hsic"], shares=shares)
    (entry,) = asked.ledger.entries()
    assert r.guarantee.loss == spent and entry.task == "direction_all" and asked.ledger.verify().ok
    assert len(r.directions) == len(recording.passages) == 12
    epsilons = [passage.event.loss.exact_epsilon for passage in recording.passages]
    assert [one.spent.exact_epsilon for one in r.directions] == epsilons
    if isinstance(spent, dpc.PureDP):
        assert sum(epsilons) == 1
    else:
        rho = (parse_loss(entry.zcdp) if entry.zcdp else loss).exact_rho
        assert 0 <= rho - sum(epsilon**2 for epsilon in epsilons) / 2 < Fraction(1, 10**12)
    assert asked.ledger.remaining.epsilon == 0
    with pytest.raises(BudgetExceededError):
        dpc.direction(asked, "a", "b", score="lsnm", loss=dpc.PureDP(1e-6))


def test_a_share_names_its_pair_in_either_order_and_one_score_may_be_a_text() -> None:
    r = all_of(table(), [("a", "b"), ("c", "d")], scores="hsic", shares={("b", "a"): 3})
    assert [one.spent.epsilon for one in r.directions] == [0.75, 0.25]  # type: ignore[union-attr]
    assert r.scores == ("hsic",)


def test_all_pairs_of_bounded_columns_are_asked_by_default() -> None:
    r = all_of(table())
    assert r.pairs == tuple(itertools.combinations(NAMES, 2))
    assert [one.columns for one in r.directions] == list(r.pairs)


def recorded(monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> list[tuple[tuple[Any, ...], Any]]:
    """Return a list that fills with the arguments and values of a function."""
    calls: list[tuple[tuple[Any, ...], Any]] = []
    honest = getattr(where, name)

    def keep(*arguments: Any) -> Any:
        calls.append((arguments, honest(*arguments)))
        return calls[-1][1]

    monkeypatch.setattr(where, name, keep)
    return calls


def test_each_column_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = recorded(monkeypatch, dpc.Table, "rows")
    all_of(table(), [("a", "b"), ("c", "a")], scores=["hsic", "lsnm"])
    assert [list(names) for (_, names), _ in calls] == [["a", "b", "c"]]


@pytest.mark.parametrize("way", [{}, {"protect": "test"}, {"blocks": 3}, {"alpha": 0.55}], ids=str)
def test_each_answer_is_that_of_a_direction_with_its_seed_and_its_part(way: dict[str, Any]) -> None:
    protect = way.get("protect", "everyone")
    scores = ["lsnm", "hsic"] if protect == "everyone" else ["spearman", "kendall"]
    with recording_gate(lambda event, value: value):
        r = all_of(table(protect=protect), [("a", "b"), ("b", "c")], scores=scores, **way)
    for one in r.directions:
        with recording_gate(lambda event, value: value):
            asked = table(protect=protect)
            alone = dpc.direction(asked, *one.columns, score=one.score, loss=one.spent, **spelled(way))  # type: ignore[arg-type]
        assert (one.seed, one.margin, one.cause) == (alone.seed, alone.margin, alone.cause)
        assert (one.p_sign, one.blocks) == (alone.p_sign, alone.blocks)
        assert one.guarantee.loss == r.guarantee.loss == dpc.PureDP(1)


@pytest.mark.proves("one-half-for-all")
@pytest.mark.parametrize(("half", "other", "room", "way"), [
    ("test", "training", holdout, {"scores": ["kendall", "iqr"]}),
    ("training", "test", training, {"scores": ["hsic", "iqr"], "penalty": 0.5}),
])  # fmt: skip
def test_all_answers_about_a_half_split_the_rows_alike(
    half: str, other: str, room: Any, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = recorded(monkeypatch, room, "split_rows")
    with recording_gate() as recording:
        r = all_of(table(protect=half), protect=half, **way)
    assert len(calls) == 12 and len({tuple(train) for _, (train, _) in calls}) == 1
    assert sum(passage.event.loss.exact_epsilon for passage in recording.passages) == 1
    assert r.guarantee.unit.value == f"row of the {half} half" and "one-half-for-all" in r.guarantee.proofs
    for one in (r, *r.directions):
        assert f"PROTECTS THE {half.upper()} HALF ONLY" in "".join(one.details().splitlines()[:2])
        assert any(f"{other} half are NOT protected" in caveat for caveat in one.guarantee.caveats)


def test_halves_of_several_sizes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    of_size = Holdout.plan

    def settled(self: Holdout, question: Any, spent: Any) -> Any:
        share = 0.5 if question.score == "iqr" else 0.8
        return of_size(dataclasses.replace(self, training_share=share), question, spent)

    monkeypatch.setattr(Holdout, "plan", settled)
    asked = table(protect="test")
    with pytest.raises(ParameterError, match="one half for all"):
        all_of(asked, protect="test", scores=["kendall", "iqr"])
    assert not asked.ledger.entries()
    all_of(asked, [("a", "b")], protect="test", scores=["iqr"])


REFUSED: dict[type[DpCausalError], list[dict[str, Any]]] = {
    ParameterError: [
        *({"pairs": pairs} for pairs in (
            [], "ab", {("a", "b")}, ["ab"], [("a", "b", "c")], [("a", 1)], [("a", "b"), ("c", "d"), ("a", "b")],
            [("a", "b"), ("b", "a")], [("a", "a")],
        )),
        *({"scores": scores} for scores in ([], {"hsic"}, ["iqr", "hsic", "iqr"], ["hsic", "r2"])),
        {"protect": "test", "scores": ["lsnm"]}, {"pairs": [("a", "b")], "shares": {("a", "c"): 1}},
        {"pairs": [("a", "b")], "shares": {("b", "a"): 1, ("a", "b"): 2}}, {"shares": [1, 2]}, {"blocks": 4},
        {"alpha": 2.0}, {"correction": "sidak"}, {"table": columns()},
        {"table": ["a"]}, {"table": [f"v{k}" for k in range(64)]},  # one column; 2,016 pairs
    ],
    SchemaError: [{"pairs": [("a", "b"), ("a", "q")]}, {"pairs": [("a", "z")]}],
    LossError: [
        {"shares": {"lsnm": 0}}, {"shares": {"lsnm": "1"}}, {"shares": {("a", "b"): 1e-12}}, {"loss": dpc.PureDP(21)},
        {"loss": 1.0}, {"loss": dpc.NoPrivacy()},
    ],
    BudgetExceededError: [{"loss": dpc.PureDP(2)}],
}  # fmt: skip


def named(names: list[str]) -> dpc.Table:
    schema = dpc.Schema({name: dpc.Bounded(-1, 1) for name in names})
    rows = {name: np.linspace(-1, 1, 40) for name in names}
    return dpc.Table(rows, schema, dpc.Ledger.in_memory(dpc.ApproxDP(1, 1e-6)), missing="impute")


@pytest.mark.parametrize(("error", "arguments"), [(error, one) for error, all in REFUSED.items() for one in all])
def test_what_cannot_be_answered_is_refused_before_the_spend(
    error: Any, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = dict(arguments)
    other = options.pop("table", None)
    asked = named(other) if isinstance(other, list) else table(dpc.ApproxDP(1, 1e-3))
    monkeypatch.setattr(dpc.Table, "rows", lambda *_: pytest.fail("the data was read"))
    with pytest.raises(error):
        all_of(other if isinstance(other, dict) else asked, **options)
    assert not asked.ledger.entries()


def test_the_entry_holds_what_was_asked() -> None:
    asked = table()
    all_of(asked, [("d", "a"), ("a", "b")], scores=["hsic", "lsnm"], shares={"lsnm": 3}, alpha=0.52)
    (entry,) = asked.ledger.entries()
    assert json.loads(entry.detail) == {
        "columns": ["d", "a", "b"], "pairs": [[0, 1], [1, 2]], "scores": ["hsic", "lsnm"],
        "epsilons": [0.125, 0.375, 0.125, 0.375], "divided_by": "epsilon",
        "methods": [{"method": "majority-vote", "blocks": 1}], "alpha": 0.52, "correction": "holm",
    }  # fmt: skip
