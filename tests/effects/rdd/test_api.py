"""The jump at a cutoff: equal to local lines of statsmodels, honest about curvature, asked again for nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import linprog
from scipy.stats import foldnorm

import dpcausal as dpc
from dpcausal.effects.rdd.lines import SideFit, factor, line_within
from dpcausal.errors import InfeasibleError, ParameterError, SchemaError
from dpcausal.privacy.noise import generator_from_seed

WEEKS = list(range(-20, 20))
SCHEMA = dpc.Schema({"week": dpc.Levels(WEEKS), "y": dpc.Bounded(-4, 6), "took": dpc.Levels([0, 1])})


def weeks(n: int = 4_000, seed: int = 1, moved: float = 0.6) -> dict[str, Any]:
    """Return rows whose outcome rises by the effect 2 of being treated, more often from week 0 on."""
    rng = np.random.default_rng(seed)
    week = rng.choice(WEEKS, n)
    took = rng.random(n) < 0.2 + moved * (week >= 0)
    y = np.clip(1 + 0.05 * week + 2 * took + 0.5 * rng.normal(size=n), -4, 6)
    return {"week": week, "y": y, "took": took.astype(int)}


def asked(columns: dict[str, Any], loss: Any = None, *, schema: dpc.Schema = SCHEMA, **options: Any) -> Any:
    ledger = dpc.Ledger.without_privacy() if loss is None else dpc.Ledger.in_memory(loss)
    words = {"running": "week", "outcome": "y", "cutoff": 0} | options
    return dpc.discontinuity(dpc.Table(columns, schema, ledger), **words, loss=loss or dpc.NoPrivacy())


def local_line(rows: dict[str, Any], outcome: str, bandwidth: float, right: bool) -> float:
    """Return statsmodels' weighted line at the cutoff."""
    chosen = (rows["week"] >= 0) == right
    week = rows["week"][chosen]
    weights = np.maximum(1 - np.abs(week) / bandwidth, 0)
    return float(sm.WLS(rows[outcome][chosen], sm.add_constant(week), weights=weights).fit().params[0])


@pytest.mark.parametrize("bandwidth", [4.5, 9, 20])
def test_without_noise_the_jump_is_that_of_local_lines(bandwidth: float) -> None:
    rows = weeks()
    right, left = (local_line(rows, "y", bandwidth, side) for side in (True, False))
    assert asked(rows, bandwidth=bandwidth).estimate == pytest.approx(right - left, abs=1e-6)  # squares lie on a grid


def test_without_noise_a_ratio_is_that_of_two_jumps_of_local_lines() -> None:
    rows = weeks()
    jumps = [local_line(rows, of, 8, True) - local_line(rows, of, 8, False) for of in ("y", "took")]
    found = asked(rows, treatment="took", bandwidth=8)
    assert found.estimand == "ratio" and found.share_moved == pytest.approx(jumps[1], abs=1e-9)
    assert found.estimate == pytest.approx(jumps[0] / jumps[1], abs=1e-6)


def test_the_error_is_that_of_statsmodels_but_for_degrees_of_freedom() -> None:
    rows = weeks(40_000, moved=0.0)
    total = 0.0
    for right in (True, False):
        chosen = (rows["week"] >= 0) == right
        week = rows["week"][chosen]
        design, weights = sm.add_constant(week), np.maximum(1 - np.abs(week) / 9, 0)
        fit = sm.WLS(rows["y"][chosen], design, weights=weights).fit(cov_type="HC0")
        total += float(fit.cov_params()[0, 0])
    assert asked(rows, bandwidth=9).standard_error == pytest.approx(math.sqrt(total), rel=1e-3)


def test_no_mean_of_that_curvature_moves_a_line_further_than_is_allowed_for() -> None:
    """A linear programme finds the worst mean on a fine grid, whose second differences it bounds."""
    rng = np.random.default_rng(2)
    step, places = 0.05, 81
    grid = step * np.arange(places)
    at = np.arange(2, places, 6)
    counts = rng.uniform(20, 90, len(at))
    side = SideFit(grid[at], grid[at], np.stack([counts, counts, counts], axis=1)[None], np.zeros((3, 3)))
    line = line_within(side, 3.3)
    assert line is not None
    gain = np.zeros(places)
    gain[at] = line.intercept * counts
    second = np.zeros((places - 2, places))
    for place in range(places - 2):
        second[place, place : place + 3] = np.array([1, -2, 1]) / step**2
    # A line is no bias: the mean and its first difference are 0 at the cutoff.
    fixed = np.zeros((2, places))
    fixed[0, 0] = 1
    fixed[1, :2] = -1, 1
    worst = linprog(-gain, np.vstack([second, -second]), np.ones(2 * (places - 2)), fixed, np.zeros(2), (None, None))
    assert worst.status == 0
    assert line.bias == pytest.approx(-worst.fun, rel=0.03) and line.bias > -worst.fun * 0.999


def test_records_of_bins_that_noise_outweighs_weigh_less() -> None:
    """Far from the end of the bandwidth it is the line of least variance, that of statsmodels' weights."""
    ends = (np.arange(13) / 12) ** 2
    near, far, variance, spread = ends[:-1], ends[1:], 800.0, 0.02
    counts = 50_000 * (far - near)
    corners = np.array([[1, 1, 1], [0, 0.5, 1], [0, 0, 1]])
    totals = counts * np.linspace(0.2, 0.7, 12) ** 2
    sums = np.stack([counts, totals, totals], axis=1)[None]
    side = SideFit(near, far, sums, variance * corners @ corners.T)
    plain, weighed = (line_within(side, 1e3, least=0.0, spread=told) for told in (math.inf, spread))
    assert plain is not None and weighed is not None
    # The noise of Σ (y − ½) is that of half the two ends' difference.
    weights = 1 / (spread / counts + (variance / 2) / counts**2)
    fitted = sm.WLS(totals / counts, sm.add_constant(side.middle), weights=weights).fit().params[0]
    assert weighed.intercept @ totals == pytest.approx(fitted, rel=1e-3)
    assert abs(plain.intercept @ totals - fitted) > 1e-3
    assert (weighed.intercept**2).sum() < 0.8 * (plain.intercept**2).sum()


@pytest.mark.parametrize("bias", [0, 0.3, 1.7, 6])
def test_the_factor_is_the_quantile_of_a_folded_normal(bias: float) -> None:
    assert factor(bias, 0.9) == pytest.approx(foldnorm.ppf(0.9, bias), abs=1e-9)


def test_a_record_at_the_cutoff_counts_right() -> None:
    week = np.repeat(WEEKS, 50)
    rows = {"week": week, "y": (week >= 0).astype(float), "took": np.zeros(len(week), dtype=int)}
    assert asked(rows, bandwidth=6).estimate == pytest.approx(1)
    number = dpc.Schema({"week": dpc.Bounded(-20, 20), "y": dpc.Bounded(-4, 6)})
    even = {"week": np.linspace(-20, 20, 40_001), "y": (np.linspace(-20, 20, 40_001) >= 0).astype(float)}
    assert asked(even, schema=number, bandwidth=6).estimate == pytest.approx(1)


@pytest.mark.parametrize(("bent", "least"), [(None, 0.93), (0.05, 0.93)])
def test_the_interval_holds_the_jump(bent: float | None, least: float) -> None:
    """Of 60 runs; where the truth is .95, fewer than 50 hold it in one of a million."""
    held = 0
    for seed in range(60):
        with dpc.simulated_noise(seed):
            found = asked(weeks(8_000, seed, moved=0.0), dpc.PureDP(1), curvature=bent)
        held += found.interval[0] <= 0 <= found.interval[1]
    assert held >= 50


def test_a_ratio_has_the_set_that_the_bins_do_not_refute() -> None:
    with dpc.simulated_noise(3):
        found = asked(weeks(40_000), dpc.PureDP(2), treatment="took")
        nothing = asked(weeks(40_000, moved=0.0), dpc.PureDP(2), treatment="took")
    assert found.interval == found.anderson_rubin[0] and found.interval[0] < 2 < found.interval[1]
    assert nothing.interval is None and math.isinf(nothing.anderson_rubin[0][0]) and "too little" in str(nothing)


def test_a_curvature_that_is_told_shortens_the_interval_of_a_line() -> None:
    with dpc.simulated_noise(4):
        found = asked(weeks(8_000, moved=0.0), dpc.PureDP(1))
    told = found.release.discontinuity(curvature=0.0)
    assert told.bias == 0 and told.curvature_given and not found.curvature_given
    assert np.ptp(told.interval) < np.ptp(found.interval)


def test_it_is_asked_again_for_nothing_from_its_saved_text() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    table = dpc.Table(weeks(), SCHEMA, ledger)
    found = dpc.discontinuity(table, running="week", outcome="y", cutoff=0, treatment="took", loss=dpc.PureDP(1))
    again = dpc.Release.from_json(found.release.to_json())
    assert again.discontinuity().to_dict() == found.to_dict()  # type: ignore[attr-defined]
    other = again.discontinuity(bandwidth=7, donut=1.5, coverage=0.9)  # type: ignore[attr-defined]
    assert other.bandwidth == 7 and other.density is None and ledger.remaining.epsilon == 0
    assert len(found.to_frame()) == 1 + len(WEEKS) and found.plot().get_xlabel() == "week"


def test_records_that_were_moved_over_the_cutoff_are_told() -> None:
    rows = weeks(20_000)
    found = asked(rows, dpc.PureDP(4))
    moved = rows | {"week": np.where((rows["week"] < 0) & (rows["week"] > -4), rows["week"] + 4, rows["week"])}
    bunched = asked(moved, dpc.PureDP(4))
    assert bunched.density < 1e-6 < 1e-4 < found.density and "moved over it" in str(bunched)


def test_too_few_rows_are_refused_before_the_spend_with_the_number_that_would_do() -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
    with pytest.raises(InfeasibleError, match=r"about \d+ rows would be enough"):
        dpc.discontinuity(
            dpc.Table(weeks(100), SCHEMA, ledger), running="week", outcome="y", cutoff=0, loss=dpc.PureDP(0.1)
        )
    assert not ledger.entries()


@pytest.mark.parametrize(
    ("options", "error"),
    [({"cutoff": 20}, ParameterError), ({"cutoff": -18}, ParameterError), ({"treatment": "y"}, ParameterError),
     ({"bins": 4}, ParameterError), ({"bandwidth": 0}, ParameterError), ({"curvature": -1}, ParameterError),
     ({"treatment": "week", "running": "y", "outcome": "took"}, SchemaError), ({"outcome": "week"}, ParameterError)],
)  # fmt: skip
def test_a_wrong_question_is_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        asked(weeks(), dpc.PureDP(1), **options)


def test_what_is_missing_may_not_be_filled_in() -> None:
    table = dpc.Table(weeks(), SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(1)), missing="impute")
    with pytest.raises(ParameterError, match="missing='drop'"):
        dpc.discontinuity(table, running="week", outcome="y", cutoff=0, loss=dpc.PureDP(1))


@pytest.mark.parametrize("running", [dpc.Levels(range(101)), dpc.Bounded(0, 100)])
def test_records_at_the_cutoff_count_on_the_side_that_is_named(running: Any) -> None:
    """Seen to fail: with those at the cutoff treated like those below, a jump of -6 was told as -1.9, ties unsaid."""
    rng = np.random.default_rng(1)
    mark = rng.integers(0, 101, 8_000)
    columns = {"week": mark, "y": np.clip(30 + 0.2 * mark + 6 * (mark <= 40) + rng.normal(size=8_000), 0, 80)}
    schema = dpc.Schema({"week": running, "y": dpc.Bounded(0, 80)})
    for cutoff, side in ((40, "left"), (40.5, "right"), (41, "right")):
        found = asked(columns, schema=schema, cutoff=cutoff, at_cutoff=side)
        assert abs(found.estimate + 6) < 1 and found.cutoff == cutoff and found.at_cutoff == side
        again: Any = dpc.Release.from_json(found.release.to_json())
        assert again.discontinuity().to_dict() == found.to_dict()
    wrong = asked(columns, schema=schema, cutoff=40)
    assert wrong.at_cutoff == "right" and wrong.estimate > -5
    with pytest.raises(ParameterError):
        asked(columns, schema=schema, cutoff=40, at_cutoff="above")


def test_a_subgroup_of_one_side_is_refused_unpaid_and_the_counted_level_is_named() -> None:
    held = dpc.Table(weeks() | {"z": weeks()["took"]}, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(1)))
    words = {"running": "week", "cutoff": 0, "loss": dpc.PureDP(1)}
    for among in (range(20), range(-3, 20), range(-20, 0)):
        with pytest.raises(ParameterError):
            dpc.discontinuity(held.where("week", among=among), outcome="y", **words)
    assert held.ledger.entries() == []
    first, last = (asked(weeks(), outcome="took", event=event) for event in (0, None))
    assert (first.event, last.event) == ("0", "1") and first.estimate == pytest.approx(-last.estimate, abs=1e-9)
    fuzzy = asked(weeks(), schema=dpc.Schema({**SCHEMA, "took": dpc.Bounded(0, 1)}), treatment="took")
    assert fuzzy.arms == ("0", "1") and fuzzy.estimate == asked(weeks(), treatment="took").estimate


def test_bins_that_floats_cannot_tell_apart_end_no_paid_call() -> None:
    """Seen to fail: records near to a cutoff of 1e11 narrowed the sides until two edges of bins were one number."""
    coins, cutoff = generator_from_seed(1), 1e11
    schema = dpc.Schema({"x": dpc.Bounded(cutoff - 1, cutoff + 1), "y": dpc.Bounded(-5, 5)})
    frame = {"x": cutoff + 1e-3 * (2 * coins.random(20_000) - 1), "y": coins.random(20_000)}
    table = dpc.Table(frame, schema, dpc.Ledger.in_memory(dpc.PureDP(9)))
    with dpc.simulated_noise(1):
        found = dpc.discontinuity(table, running="x", outcome="y", cutoff=cutoff, bins=100, loss=dpc.PureDP(9))
    assert len(found.release.lower) == 200
