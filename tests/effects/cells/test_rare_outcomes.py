"""Limits of few events: without noise those of Wilson and Newcombe, with noise they hold what was drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

import dpcausal as dpc
from dpcausal.effects.cells.standardise import Risk, Sums, difference, means, odds_ratio, ratio, risks

REACH = 1.959963984540054


def of_counts(control: tuple[int, int], treated: tuple[int, int], noise: Any = None) -> tuple[tuple[Risk, Risk], float]:
    """Return the risks of (events, records) of each arm, and the variance of their difference."""
    T, N = (np.array([[control[place]], [treated[place]]], dtype=float) for place in (0, 1))
    sums = Sums(N, T, T, np.zeros((2, 2)) if noise is None else noise)
    found = means(sums, treated_only=False)
    gap = np.array([-1, 1])
    return risks(sums, found, False, REACH), float(gap @ found.covariance @ gap)


@pytest.mark.parametrize(("control", "treated"), [((1, 80), (4, 60)), ((0, 25), (3, 30)), ((29, 30), (88, 90))])
def test_without_noise_they_are_those_of_wilson_and_newcombe(control: Any, treated: Any) -> None:
    two, variance = of_counts(control, treated)
    for risk, (events, records) in zip(two, (control, treated), strict=True):
        assert (risk.low, risk.high) == pytest.approx(proportion_confint(events, records, method="wilson"), abs=1e-9)
    known = confint_proportions_2indep(*treated, *control, method="newcomb", compare="diff")
    assert difference(*two, variance, REACH) == pytest.approx(known, abs=1e-9)


@pytest.mark.parametrize(("n0", "n1", "p0", "p1"), [(60, 40, 0.05, 0.05), (200, 20, 0.02, 0.1), (50, 50, 0.97, 0.9)])
def test_without_noise_ratios_hold_the_truth_by_the_exact_sum_over_all_tables(
    n0: int, n1: int, p0: float, p1: float
) -> None:
    """The chance of .93 and more of a nominal .95, summed over all pairs of counts; and there are always limits."""
    held = {ratio: 0.0, odds_ratio: 0.0}
    truth = {ratio: p1 / p0, odds_ratio: p1 / (1 - p1) / (p0 / (1 - p0))}
    for events in range(n0 + 1):
        chance = stats.binom.pmf(events, n0, p0)
        if chance > 1e-6:
            for more in range(n1 + 1):
                two, _ = of_counts((events, n0), (more, n1))
                for kind in held:
                    low, high = kind(*two, REACH)[1]
                    held[kind] += chance * stats.binom.pmf(more, n1, p1) * (low <= truth[kind] <= high)
    assert all(0.93 < chance < 0.995 for chance in held.values()), held


def test_a_ratio_of_well_known_risks_is_that_of_the_delta_method_and_turns_with_the_arms() -> None:
    two, _ = of_counts((300, 6_000), (450, 5_000))
    estimate, (low, high) = ratio(*two, REACH)
    error = np.sqrt(1 / 300 - 1 / 6_000 + 1 / 450 - 1 / 5_000)
    assert estimate == pytest.approx(1.8) and np.log([low, high]) == pytest.approx(
        np.log(1.8) + np.array([-1, 1]) * REACH * error, abs=0.01
    )
    (_, there), (_, back) = odds_ratio(*two, REACH), odds_ratio(two[1], two[0], REACH)
    assert (1 / there[1], 1 / there[0]) == pytest.approx(back, rel=0.01)


def test_a_control_risk_that_may_be_0_has_a_ratio_without_an_upper_end() -> None:
    two, _ = of_counts((0, 400), (30, 100))
    estimate, (low, high) = ratio(*two, REACH)
    assert estimate is None and low > 10 and high == np.inf


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_few_events_have_intervals_in_every_run_that_hold_the_truth(epsilon: float) -> None:
    """120 trials of 1,000 with about 3 events in the small arm: at least .95 less five deviations, .85, hold.

    Where an interval is shown only if the events are many enough, as few as one in five do.
    """
    runs, held, of_ratio = 120, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        a = (rng.random(1_000) < 0.1).astype(int)
        y = (rng.random(1_000) < 0.03).astype(int)
        schema = dpc.Schema(dict.fromkeys("ay", dpc.Levels([0, 1])))
        table = dpc.Table({"a": a, "y": y}, schema, dpc.Ledger.in_memory(dpc.PureDP(10)), missing="impute")
        with dpc.simulated_noise(seed):
            found = dpc.effect(table, treatment="a", outcome="y", adjust=[], loss=dpc.PureDP(epsilon))
        assert found.interval is not None and found.risk_ratio is not None and found.risk_ratio.interval is not None
        held += found.interval[0] <= 0 <= found.interval[1]
        of_ratio += found.risk_ratio.interval[0] <= 1 <= found.risk_ratio.interval[1]
    assert held > 0.85 * runs and of_ratio > 0.85 * runs


def test_limits_with_noise_widen_with_it_and_stay_within_0_and_1() -> None:
    noise = np.array([[2.0, 1.0], [1.0, 1.0]])
    widths = []
    for variance in (0.0, 8.0, 80.0):
        (control, treated), _ = of_counts((2, 300), (3, 120), variance * noise)
        assert 0 <= treated.low <= treated.value <= treated.high <= 1
        widths.append([control.high - control.low, treated.high - treated.low])
    assert (np.diff(widths, axis=0) > 0).all()
