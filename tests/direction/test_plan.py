"""What cannot be answered is refused from public numbers alone: nothing is spent, nothing read, no value quoted."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.core.validate import LARGEST_BOUND, LEAST_WIDTH
from dpcausal.errors import DpCausalError, LossError, ParameterError, SchemaError
from dpcausal.errors import UnprovenError as Unproven
from dpcausal.methods import Verdict
from dpcausal.statistics import hsic
from tests.direction.neighbours import spelled

CANARY = 0.31415926535897  # a value of the data that no message may show


def table(ledger: dpc.Ledger, n: int = 60, **declared: dpc.Bounded | dpc.Levels) -> dpc.Table:
    columns = {"x": np.linspace(0, CANARY, n), "y": np.full(n, CANARY), "z": np.array(["a"] * n, dtype=object)}
    schema = {"x": dpc.Bounded(0, 1), "y": dpc.Bounded(0, 1), "z": dpc.Levels(["a", "b"])} | declared
    return dpc.Table(columns, dpc.Schema(schema), ledger, missing="impute")


def ask(table: dpc.Table, second: Any = "y", **arguments: Any) -> dpc.Direction:
    return dpc.direction(table, "x", second, **({"loss": dpc.PureDP(0.5)} | spelled(arguments)))


IQR = {"protect": "test", "score": "iqr", "published": True}
REFUSED: dict[type[DpCausalError], list[dict[str, Any]]] = {
    SchemaError: [
        {"second": "q"}, {"second": ["y"]}, {"second": "z"},
        *({"bounds": bounds, "protect": protect} for protect in ("everyone", "test") for bounds in (
            dpc.Bounded(-1e300, 1e300), dpc.Bounded(0, 1.01 * LARGEST_BOUND), dpc.Bounded(0, 0.99 * LEAST_WIDTH),
            dpc.Bounded(0, 2.3e-308),
        )),
    ],
    ParameterError: [
        {"second": "x"}, {"score": "pearson"}, {"score": ["hsic"]}, {"score": "kendall"}, {"method": "halves"},
        {"protect": "test", "release_scores": "no"}, {"protect": "test", "score": "variance"},
        {"protect": "test", "score": "lsnm"}, {"method": "verdict"},
        {"method": Verdict(), "score": "hsic"}, *({"n": n} for n in range(1, 8)),
        *({"blocks": blocks} for blocks in (4, 0, 9, True, 3.0)),
        *({"alpha": alpha} for alpha in (1.0, math.nan, "0.1")),
        *({"protect": "test", "training_share": share} for share in (1, math.nan, "half")),
        *({"n": 1_000, "method": Verdict(**options)} for options in (
            {"blocks": 2}, {"blocks": 40}, {"blocks": True}, {"rows_per_block": 47}, {"model": "scale"},
            {"blocks": 10, "rows_per_block": 101}, {"share": 0.0}, {"share": 1.5}, {"blocks": 20, "share": 0.4},
        )),
    ],
    LossError: [
        {"loss": 0.5}, {"loss": dpc.NoPrivacy()}, {"loss": dpc.ZCDP(0.02)}, {"loss": dpc.ZCDP(0.02), "protect": "test"},
        {"loss": dpc.PureDP(20.5)}, {"loss": dpc.PureDP(20.5), "accept_large_epsilon": 1}, {"loss": dpc.PureDP(1e-10)},
        IQR | {"accept_unproven": True}, IQR | {"accept_unproven": True, "loss": dpc.ApproxDP(0.5, 1e-300)},
    ],
    Unproven: [IQR | {"loss": dpc.ApproxDP(0.5, 1e-6)}],
}  # fmt: skip


@pytest.mark.parametrize(("error", "arguments"), [(error, one) for error, all in REFUSED.items() for one in all])
def test_a_refusal_reads_nothing_quotes_nothing_and_spends_nothing(
    error: Any, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = dpc.Ledger.in_memory(dpc.ApproxDP(100, 1e-3), accept_large_epsilon=True)
    options = dict(arguments)
    declared = {"y": options.pop("bounds")} if "bounds" in options else {}
    asked = table(ledger, options.pop("n", 60), **declared)
    monkeypatch.setattr(dpc.Table, "rows", lambda *_: pytest.fail("the data was read"))
    with pytest.raises(error) as raised:
        ask(asked, **options)
    assert "3141" not in str(raised.value) and not ledger.entries()


def test_an_unknown_score_is_refused_without_privacy_too() -> None:
    """Seen to fail: a method named beside it, and the exact answer of another score came in its place."""
    for method in ("auto", "majority-vote"):
        with pytest.raises(ParameterError, match="score"):
            ask(table(dpc.Ledger.without_privacy()), loss=dpc.NoPrivacy(), score="igci", method=method)


def test_an_option_in_the_call_names_the_object_that_takes_it() -> None:
    with pytest.raises(ParameterError, match=r"method=dpc.methods.Verdict\(blocks=3\)"):
        dpc.direction(table(dpc.Ledger.in_memory(dpc.PureDP(1))), "x", "y", loss=dpc.PureDP(1), blocks=3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("score", "both"), [("iqr", False), *product(["hsic", "spearman", "kendall"], [False, True])])
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_bounds_at_the_limit_are_answered_without_a_warning(score: str, both: bool, scale: float) -> None:
    schema = dpc.Schema({"x": dpc.Bounded(0, scale), "y": dpc.Bounded(-scale, scale)})
    uniform = np.random.default_rng(3).uniform(0, scale, 40)
    for column in (uniform, np.full(40, scale), np.where(np.arange(40) % 2, 0.0, scale)):
        ledger = dpc.Ledger.in_memory(dpc.PureDP(1), protect="test")
        limit = dpc.Table({"x": column, "y": column[::-1].copy()}, schema, ledger, missing="impute")
        with dpc.simulated_noise(1):
            assert math.isfinite(ask(limit, score=score, protect="test", release_scores=both).margin or 0)


def test_more_rows_than_the_sums_are_proved_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hsic.LAPLACIAN, "most_records", 19)
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    for arguments in ({"protect": "test"}, {"blocks": 1, "score": "hsic"}, {"blocks": 3, "score": "hsic"}):
        with pytest.raises(ParameterError):
            ask(table(ledger), **arguments)
    assert not ledger.entries()
    with dpc.simulated_noise(1):
        ask(table(ledger), blocks=5, score="hsic")
        ask(table(dpc.Ledger.in_memory(dpc.PureDP(1), protect="test")), protect="test", score="kendall")


def test_the_entry_says_all_that_decides_how_the_call_runs() -> None:
    ledgers = [dpc.Ledger.in_memory(dpc.PureDP(1), protect=protect) for protect in ("test", "everyone")]
    ask(table(ledgers[0]), protect="test", score="kendall")
    ask(table(ledgers[1]), blocks=5)
    of_half, of_all = (ledger.entries()[0] for ledger in ledgers)
    assert of_half.unit == "row of the test half" and of_all.unit == "row"
    assert of_half.to_dict()["detail"]["method"] == "holdout" and of_all.to_dict()["detail"]["blocks"] == 5
    assert all(entry.relation == "replace-one" and entry.task == "direction" for entry in (of_half, of_all))
