"""Scaled halves, public widths: what all protected regressions share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.direction.methods import chosen
from dpcausal.direction.question import Columns, Pair
from dpcausal.errors import ParameterError
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.papers import TrainingPrivacy
from dpcausal.papers.direction import stable
from dpcausal.papers.direction.stable import Setting, default_penalty, training_sensitivity
from dpcausal.papers.statistics import gaussian_sums
from dpcausal.privacy.noise import generator_from_seed
from tests.conformance import search
from tests.direction.neighbours import spelled
from tests.registry.training import GROUP, LARGE, RANGES, N, apart, of_scores

PAIR = dpc.simulate.anm_pair(400, seed=2)
BOTH = Columns(PAIR.columns["x"], PAIR.columns["y"], np.ones(400, dtype=np.bool_))


def plan(**arguments: Any) -> Any:
    """Return the settled method of a call."""
    arguments = {"protect": "training", "loss": dpc.PureDP(1)} | arguments
    ledger = dpc.Ledger.in_memory(dpc.PureDP(10))
    table = dpc.Table(PAIR.columns, PAIR.schema, ledger, missing="impute")
    words = spelled(arguments)
    question = Pair.of(table, "x", "y", words.get("score", "hsic"), 0.1, words["method"])
    method, _ = chosen(words["method"], question, words["loss"])
    return method.plan(question, words["loss"])


def question(score: str = "hsic") -> Pair:
    table = dpc.Table(PAIR.columns, PAIR.schema, dpc.Ledger.in_memory(dpc.PureDP(10)), missing="impute")
    return Pair.of(table, "x", "y", score, 0.1, TrainingPrivacy())


class Many(Pair):
    """A question about more rows than any table here has."""

    n = 2**31


def ask(columns: Any = PAIR.columns, schema: dpc.Schema = PAIR.schema, **arguments: Any) -> dpc.Direction:
    arguments = {"protect": "training", "loss": dpc.PureDP(1)} | arguments
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1), protect=arguments["protect"])
    table = dpc.Table(columns, schema, ledger, missing="impute")
    return dpc.direction(table, "x", "y", **spelled(arguments))


@pytest.mark.proves("training-difference")
def test_both_scores_move_by_the_share_that_the_page_states_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_sums, "TILE", 16)
    bound = training_sensitivity(N, 2 * GROUP, LARGE).bound
    moves = apart(None, 1, None, None)
    reached = abs(of_scores(moves) - of_scores(1 - moves)) / float(bound)
    assert 0.47 < reached < 0.6
    # The search of 8,000 pairs is the registry's.
    assert search(of_scores, bound, sizes=(1,), evaluations=200, **RANGES).ratio < 0.6


@pytest.mark.proves("training-difference")
def test_every_residual_moves_by_what_one_training_row_can_do_and_the_margin_by_its_bound() -> None:
    rng = np.random.default_rng(0)
    settled = plan(penalty=2.0)
    halves = settled.halved(BOTH, question(), generator_from_seed(1))
    setting = settled.setting
    before = halves.residuals(setting)
    margin = np.subtract(*stable.root_scores(halves.x, halves.y, *before))
    bound = float(training_sensitivity(halves.n, halves.m, 2.0).bound)
    for _ in range(20):
        row = int(rng.integers(halves.n))
        x, y = halves.training_x.copy(), halves.training_y.copy()
        x[row], y[row] = rng.choice([-1.0, 1.0], 2)
        neighbour = replace(halves, training_x=x, training_y=y)
        after = neighbour.residuals(setting)
        shift = float(stable.prediction_sensitivity(halves.n, 2.0).bound)
        assert all(np.abs(a - b).max() <= shift for a, b in zip(before, after, strict=True))
        assert abs(margin - np.subtract(*stable.root_scores(halves.x, halves.y, *after))) <= bound


def test_the_settings_that_are_named_are_those_that_answer() -> None:
    with recording_gate() as recording:
        result = ask(penalty=0.7, width=0.3)
    (passage,) = recording.passages
    assert passage.event.loss == dpc.PureDP(1) and (result.settings["penalty"], result.settings["width"]) == (0.7, 0.3)


def test_columns_are_scaled_by_their_public_bounds_and_by_nothing_else() -> None:
    settled = plan()
    x = PAIR.columns["x"]
    halves = settled.halved(BOTH, question(), generator_from_seed(1))
    both = np.sort(np.concatenate([halves.training_x, halves.x]))
    (lower, upper), _ = question().ranges
    assert both == pytest.approx(np.sort(2 * (x - lower) / (upper - lower) - 1))
    # Another unit of both columns: the same answer at the gate.
    milli = {name: values * 1000 for name, values in PAIR.columns.items()}
    bounds = {name: PAIR.schema[name] for name in ("x", "y")}
    schema = dpc.Schema({name: dpc.Bounded(one.lower * 1000, one.upper * 1000) for name, one in bounds.items()})  # type: ignore[union-attr]
    values = []
    for columns, declared in ((PAIR.columns, PAIR.schema), (milli, schema)):
        with recording_gate() as recording:
            ask(columns, declared)
        values.append(float(recording.passages[0].value))
    assert values[0] == pytest.approx(values[1], abs=1e-6)


def test_the_default_penalty_falls_with_rows_and_epsilon_and_stays_in_its_range() -> None:
    sizes = ((10, 1.0), (8000, 1.0), (8000, 2.0), (80_000, 1.0), (10**9, 1.0))
    rules = [default_penalty(n, epsilon) for n, epsilon in sizes]
    assert rules == sorted(rules, reverse=True)
    assert rules[0] == rules[1] == 1 and rules[-1] == 0.01
    assert plan().penalty == default_penalty(200, 1.0)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a penalty of 0": ({"penalty": 0}, "penalty must be a number between 1e-05 and 100000"),
    "several penalties": ({"penalty": (0.5, 1.0)}, "penalty must be a number"),
    "a penalty as a bool": ({"penalty": True}, "penalty must be"),
    "a width too small": ({"width": 0.001}, "width must be a number between 0.01 and 100"),
    "a width of NaN": ({"width": float("nan")}, "width must be"),
    "a training share of 1": ({"training_share": 1.0}, "above 0 and below 1"),
    "a published penalty above 1": ({"penalty": 1.5, "published": True}, "between 1e-05 and 1"),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_settings_out_of_range_are_refused_before_anything_is_spent(case: str) -> None:
    arguments, message = REFUSED[case]
    with pytest.raises(ParameterError, match=message):
        plan(**arguments)


def test_more_test_rows_than_gaussian_kernels_take_are_refused_with_the_share_that_serves() -> None:
    rows = 100_003
    columns = {name: np.zeros(rows) for name in ("x", "y")}
    table = dpc.Table(columns, PAIR.schema, dpc.Ledger.in_memory(dpc.PureDP(1)), missing="impute")
    with pytest.raises(ParameterError, match=r"training_share of at least 0\.5001"):
        TrainingPrivacy().plan(Pair.of(table, "x", "y", "hsic", 0.1, TrainingPrivacy()), dpc.PureDP(1))
    iqr = Pair.of(table, "x", "y", "iqr", 0.1, TrainingPrivacy())
    assert TrainingPrivacy().plan(iqr, dpc.PureDP(1)).training_share == 0.5


def test_more_training_rows_than_sums_are_exact_for_are_refused_before_anything_is_spent() -> None:
    with pytest.raises(ParameterError, match="at most 536870912 training rows"):
        TrainingPrivacy().plan(Many(*vars(question("iqr")).values()), dpc.PureDP(1))


def test_the_start_of_the_search_moves_both_directions_at_once() -> None:
    assert apart(None, 1, None, None).shape == (1, 4 * GROUP)
    assert Setting(1.0, 0.5) == Setting(1.0, 0.5)
