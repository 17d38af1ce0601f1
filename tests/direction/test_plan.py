"""What cannot be answered is refused from public numbers alone: nothing is spent, nothing read, no value quoted."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.core.validate import LARGEST_BOUND, LEAST_WIDTH
from dpcausal.errors import (
    BudgetExceededError,
    DpCausalError,
    LedgerError,
    LossError,
    ParameterError,
    SchemaError,
    UnprovenError,
)
from dpcausal.methods import Verdict
from dpcausal.statistics import hsic
from tests.direction.neighbours import spelled

CANARY = 0.31415926535897  # a value of the data that no message may show



def table(ledger: dpc.Ledger, n: int = 60, **declared: dpc.Bounded | dpc.Levels) -> dpc.Table:
    columns = {"x": np.linspace(0, CANARY, n), "y": np.full(n, CANARY), "z": np.array(["a"] * n, dtype=object)}
    schema = {"x": dpc.Bounded(0, 1), "y": dpc.Bounded(0, 1), "z": dpc.Levels(["a", "b"])} | declared
    return dpc.Table(columns, dpc.Schema(schema), ledger, missing="impute")


def ask(table: dpc.Table, first: Any = "x", second: Any = "y", **arguments: Any) -> dpc.Direction:
    return dpc.direction(table, first, second, **({"loss": dpc.PureDP(0.5)} | spelled(arguments)))


REFUSED: dict[str, tuple[dict[str, Any], type[DpCausalError], str]] = {
    "an unknown column": ({"second": "q"}, SchemaError, "'q' is not in the schema"),
    "a column that is no text": ({"second": ["y"]}, SchemaError, "named by a text"),
    "a column with levels": ({"second": "z"}, SchemaError, "'z' has levels"),
    "one column twice": ({"second": "x"}, ParameterError, "two different columns"),
    "an unknown score": ({"score": "pearson"}, ParameterError, "score must be one of lsnm"),
    "a score that is no text": ({"score": ["hsic"]}, ParameterError, "score must be one of lsnm"),
    "an unknown method": ({"method": "halves"}, ParameterError, "method must be one of auto, verdict"),
    "a release of scores that is no bool": (
        {"protect": "test", "release_scores": "no"}, ParameterError, "True or False"
    ),
    "a score of a half for everyone": ({"score": "kendall"}, ParameterError, "score must be one of lsnm"),
    "the variance of a test half": ({"protect": "test", "score": "variance"}, ParameterError, "it takes hsic"),
    "an even number of blocks": ({"blocks": 4}, ParameterError, "odd number between 1 and n/8 = 7"),
    "no block": ({"blocks": 0}, ParameterError, "odd number"),
    "too many blocks": ({"blocks": 9}, ParameterError, "odd number"),
    "blocks as a bool": ({"blocks": True}, ParameterError, "odd number"),
    "blocks as a float": ({"blocks": 3.0}, ParameterError, "odd number"),
    "a training share of 1": ({"protect": "test", "training_share": 1}, ParameterError, "above 0 and below 1"),
    "a training share of NaN": ({"protect": "test", "training_share": math.nan}, ParameterError, "above 0"),
    "a training share as text": ({"protect": "test", "training_share": "half"}, ParameterError, "above 0"),
    "a level of 1": ({"alpha": 1.0}, ParameterError, "alpha must be a number above 0 and below 1"),
    "a level of NaN": ({"alpha": math.nan}, ParameterError, "alpha must be a number"),
    "a level as text": ({"alpha": "0.1"}, ParameterError, "alpha must be a number"),
    "a verdict of few rows": ({"method": "verdict"}, ParameterError, "needs at least 144 rows, the table has 60"),
    "a verdict by another score": (
        {"method": Verdict(), "score": "hsic"}, ParameterError, "score='hsic' does not go with method 'verdict'"
    ),
    "the default score of a test half": ({"protect": "test", "score": "lsnm"}, ParameterError, "does not go with"),
    "no loss": ({"loss": 0.5}, LossError, "loss must be PureDP"),
    "no privacy from a private ledger": ({"loss": dpc.NoPrivacy()}, LossError, "without_privacy"),
    "zCDP for blocks": ({"loss": dpc.ZCDP(0.02)}, LossError, "PureDP"),
    "zCDP for a test half": ({"loss": dpc.ZCDP(0.02), "protect": "test"}, LossError, "PureDP"),
    "a large epsilon": ({"loss": dpc.PureDP(20.5)}, LossError, "accept_large_epsilon=True"),
    "a large epsilon and a half consent": (
        {"loss": dpc.PureDP(20.5), "accept_large_epsilon": 1}, LossError, "accept_large_epsilon=True"
    ),
    "a tiny epsilon": ({"loss": dpc.PureDP(1e-10)}, LossError, "at least 1e-9"),
    "the unproven variant without consent": (
        {"protect": "test", "score": "iqr", "published": True, "loss": dpc.ApproxDP(0.5, 1e-6)},
        UnprovenError, "accept_unproven=True",
    ),
    "the unproven variant at a pure loss": (
        {"protect": "test", "score": "iqr", "published": True, "accept_unproven": True},
        LossError, "delta",
    ),
    "the unproven variant at a tiny delta": (
        {
            "protect": "test", "score": "iqr", "published": True, "accept_unproven": True,
            "loss": dpc.ApproxDP(0.5, 1e-300),
        },
        LossError, "at least 1e-18",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_the_rule_and_spends_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, error, rule = REFUSED[name]
    ledger = dpc.Ledger.in_memory(dpc.ApproxDP(100, 1e-3), accept_large_epsilon=True)
    cache_key = table(ledger)
    monkeypatch.setattr(dpc.Table, "rows", lambda *_: pytest.fail("the data was read"))
    with pytest.raises(error) as raised:
        ask(cache_key, **arguments)
    assert rule in str(raised.value)
    assert "3141" not in str(raised.value)
    assert not ledger.entries()


@pytest.mark.parametrize("n", range(1, 8))
def test_too_few_rows_are_refused_by_their_public_number(n: int) -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    with pytest.raises(ParameterError, match=f"at least 8 rows, the table has {n}"):
        ask(table(ledger, n))
    assert not ledger.entries()


UNITS = {
    "huge": dpc.Bounded(-1e300, 1e300),
    "large": dpc.Bounded(0, 1.01 * LARGEST_BOUND),
    "tiny": dpc.Bounded(0, 0.99 * LEAST_WIDTH),
    "subnormal": dpc.Bounded(0, 2.3e-308),
}


@pytest.mark.parametrize("protect", ["everyone", "test"])
@pytest.mark.parametrize("name", UNITS)
def test_bounds_whose_squares_no_float_holds_are_refused(name: str, protect: str) -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    with pytest.raises(SchemaError, match="declare it in another unit"):
        ask(table(ledger, y=UNITS[name]), protect=protect)
    assert not ledger.entries()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("score", "both"), [("iqr", False), *product(["hsic", "spearman", "kendall"], [False, True])])
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_bounds_at_the_limit_are_answered_without_a_warning(score: str, both: bool, scale: float) -> None:
    rng = np.random.default_rng(3)
    for kind in (rng.uniform(0, scale, 40), np.full(40, scale), np.where(np.arange(40) % 2, 0.0, scale)):
        schema = dpc.Schema({"x": dpc.Bounded(0, scale), "y": dpc.Bounded(-scale, scale)})
        cache_key = dpc.Table(
            {"x": kind, "y": kind[::-1].copy()}, schema, dpc.Ledger.in_memory(dpc.PureDP(1), protect="test"),
            missing="impute",
        )
        with dpc.simulated_noise(1):
            r = ask(cache_key, score=score, protect="test", release_scores=both)
        assert math.isfinite(r.margin or 0)


def test_more_rows_than_the_sums_are_proved_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hsic.LAPLACIAN, "most_records", 19)
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    for arguments in ({"protect": "test"}, {"blocks": 1, "score": "hsic"}, {"blocks": 3, "score": "hsic"}):
        with pytest.raises(ParameterError, match="at most 19 rows"):
            ask(table(ledger), **arguments)
    assert not ledger.entries()
    with dpc.simulated_noise(1):
        ask(table(ledger), blocks=5, score="hsic")
        ask(table(dpc.Ledger.in_memory(dpc.PureDP(1), protect="test")), protect="test", score="kendall")


def test_a_refused_budget_reads_nothing_and_says_asked_spent_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(0.7))
    cache_key = table(ledger)
    ask(cache_key)
    monkeypatch.setattr(dpc.Table, "rows", lambda *_: pytest.fail("the data was read"))
    with pytest.raises(BudgetExceededError) as refused:
        ask(cache_key)
    assert (refused.value.requested, refused.value.spent, refused.value.left) == (
        "ε = 0.5", "ε = 0.5", "ε = 0.2",
    )  # fmt: skip
    assert len(ledger.entries()) == 1 and ledger.remaining.epsilon == pytest.approx(0.2)


def test_a_ledger_file_takes_no_simulated_and_no_unproven_call(tmp_path: Path) -> None:
    with dpc.Ledger.create(tmp_path / "study.ledger", budget=dpc.ApproxDP(2, 1e-4)) as ledger:
        cache_key = table(ledger)
        with dpc.simulated_noise(1), pytest.raises(LedgerError, match="simulated"):
            ask(cache_key)
        with pytest.raises(UnprovenError, match="in_memory"):
            ask(
                cache_key, protect="test", score="iqr", published=True, accept_unproven=True,
                loss=dpc.ApproxDP(0.5, 1e-6),
            )  # fmt: skip
        assert not ledger.entries()


def test_a_ledger_without_privacy_takes_no_privacy_only() -> None:
    ledger = dpc.Ledger.without_privacy()
    with pytest.raises(LossError, match="NoPrivacy"):
        ask(table(ledger))
    assert not ask(table(ledger), loss=dpc.NoPrivacy()).guarantee.private


def test_a_large_epsilon_runs_with_consent() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(100), accept_large_epsilon=True)
    assert ask(table(ledger), loss=dpc.PureDP(21), accept_large_epsilon=True).guarantee.loss == dpc.PureDP(21)


def test_the_plan_says_all_that_goes_into_the_ledger() -> None:
    ledgers = [dpc.Ledger.in_memory(dpc.PureDP(1), protect=protect) for protect in ("test", "everyone")]
    ask(table(ledgers[0]), protect="test", score="kendall")
    ask(table(ledgers[1]), blocks=5)
    of_half, of_all = (ledger.entries()[0] for ledger in ledgers)
    assert of_half.unit == "row of the test half" and of_all.unit == "row"
    assert of_half.to_dict()["detail"]["method"] == "holdout" and of_all.to_dict()["detail"]["blocks"] == 5
    assert all(entry.relation == "replace-one" and entry.task == "direction" for entry in (of_half, of_all))


def test_an_option_in_the_call_names_the_object_that_takes_it() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    with pytest.raises(ParameterError, match=r"method=dpc.methods.Verdict\(blocks=3\)"):
        dpc.direction(table(ledger), "x", "y", loss=dpc.PureDP(1), blocks=3)
    assert not ledger.entries()
