"""Placebos: one donor's reach, the interval, and the exact law of the p-value."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpcausal as dpc
from dpcausal.synthetic_control import placebo
from dpcausal.synthetic_control.donor_rows import FULL
from dpcausal.synthetic_control.placebo import Law, Placebos
from tests.synthetic_control.neighbours import granted

EXACT = dpc.NoPrivacy()


def alike(residuals: Any, scales: Any = 1.0) -> Placebos:
    """Placebos of full weight."""
    e = np.asarray(residuals, dtype=np.float64)
    return Placebos(e, np.broadcast_to(np.asarray(scales, dtype=np.float64), e.shape), np.full(len(e), FULL))


@pytest.mark.proves("ratio-table")
def test_the_table_counts_calm_and_volatile_units_beyond_and_within() -> None:
    units = Placebos(np.array([0.0, 2.0, -2.0, 1.0]), np.array([0.0, 1.0, 1.0, 1.0]), FULL * np.arange(1, 5),
                     np.array([-0.5, 0.5, -0.1, 0.0]))  # fmt: skip
    assert (placebo.ratio_table(units) / FULL).tolist() == [3, 2, 1, 4]


def lucky(rng: Any, n: int, alike: bool) -> placebo.Missed:
    """Units whose scales are the root mean squares of five values, of all alike, or of sizes more unlike than that."""
    size = np.ones(n) if alike else np.exp(0.5 * rng.standard_normal(n))
    told = size * np.sqrt((rng.standard_normal((n, 5)) ** 2).mean(axis=1))
    scales = np.sqrt(5 * told**2 + 1.5) / np.sqrt(6.5) if alike else np.sqrt(told)
    swings = np.clip(2 * (told**2 - 0.5) / (told**2 + 0.5), -1, 1)
    return placebo.Missed(size * rng.standard_normal(n), np.zeros(n), scales, swings)


@pytest.mark.parametrize("alike", [True, False])
def test_a_volatility_slope_brings_the_coverage_of_calm_and_volatile_units_together(alike: bool) -> None:
    """Without it the outer fifths are .19 and .06 apart; 60,000 units, a share of 12,000 has a deviation of .003."""
    rng = np.random.default_rng(7)
    units, fresh = lucky(rng, 60_000, alike), lucky(rng, 60_000, alike)
    weights = np.full(60_000, FULL)
    told, slope = placebo.release_slope(units.mixed(1, weights), Law(5), 60_000, granted(EXACT), EXACT)
    assert (slope < 0) == alike and told[0] == placebo.TABLE_RATIO
    apart = []
    for some in (0.0, slope):
        reach = placebo.release_reach(
            units.with_slope(some).mixed(1, weights), Law(5), 60_000, 0.9, granted(EXACT), (EXACT, EXACT)
        )
        seen = fresh.with_slope(some)
        assert reach is not None and seen.swings is not None
        held, order = np.abs(seen.control) <= reach * seen.scales, np.argsort(seen.swings, kind="stable")
        assert held.mean() == pytest.approx(0.9, abs=0.01)
        apart.append(abs(held[order[:12_000]].mean() - held[order[-12_000:]].mean()))
    assert apart[1] < 0.6 * apart[0]


def test_noise_alone_makes_no_volatility_slope() -> None:
    """Two hundred donors at ρ = .002: noise of 15 donors on a cell, where a lean of .5 would be 20 of them."""
    rng, loss, slopes = np.random.default_rng(8), dpc.ZCDP(0.002), []
    with dpc.simulated_noise(2):
        allotment = granted(loss, 100)
        for _ in range(100):
            units = placebo.Placebos(rng.standard_t(7, 200), np.ones(200), np.full(200, FULL), rng.uniform(-1, 1, 200))
            slopes.append(placebo.release_slope(units, Law(7), 200.0, allotment, loss)[1])
    assert abs(np.mean(slopes)) < 0.1 and np.std(slopes) < 0.3


@pytest.mark.proves("ratio-count")
@pytest.mark.proves("mixing-scores")
def test_what_is_divided_by_nothing_is_nothing_or_infinite() -> None:
    units = Placebos(np.array([0.0, 1.0, 0.0, 2.0]), np.array([0.0, 0.0, 1.0, 1.0]), np.full(4, FULL))
    for residual, scale, expected in ((1.5, 1.0, 2), (3.0, 1.0, 1), (5.0, 0.0, 1), (0.0, 0.0, 4), (0.0, 1.0, 4)):
        assert placebo.count_beyond(units, residual, scale) == expected * FULL
    assert placebo.prediction_losses([units]).tolist() == [0 + FULL + 0 + FULL // 2]


def test_a_level_holds_the_coverage_on_average_over_the_noise() -> None:
    """Beside a simulation of the released share, 200,000 draws: within 6 deviations, about .003."""
    rng = np.random.default_rng(2)
    for freedom, coverage, share, deviation in ((7, 0.9, 0.9, 0.03), (3, 0.9, 0.7, 0.1), (20, 0.95, 0.6, 0.14)):
        law = Law(freedom)
        told = np.clip(share + deviation * rng.standard_normal(200_000), placebo.LEAST_HELD, 1 - (1 - share) / 4)
        level = law.level(coverage, share, deviation)
        student = stats.t(freedom)
        reach = student.ppf((1 + share) / 2) * student.ppf((1 + level) / 2) / student.ppf((1 + told) / 2)
        assert np.mean(2 * student.cdf(reach) - 1) == pytest.approx(coverage, abs=0.003)


@pytest.mark.replication
@pytest.mark.parametrize("factor", [0.4, 1.0, 3.0])
def test_an_interval_holds_the_share_of_units_that_it_says(factor: float) -> None:
    """Ratios that are Student's on another scale: a reach from noisy counts holds 90 % on average, 200 runs."""
    rng, loss, runs = np.random.default_rng(3), dpc.ZCDP(0.002), 200
    held = []
    with dpc.simulated_noise(1):
        allotment = granted(loss, 2 * runs)
        for _ in range(runs):
            units = alike(factor * rng.standard_t(7, 1_000))
            reach = placebo.release_reach(units, Law(7), 1_000, 0.9, allotment, (loss, loss))
            assert reach is not None
            held.append(2 * stats.t(7).cdf(reach / factor) - 1)
    assert np.mean(held) == pytest.approx(0.9, abs=0.015)


def test_without_privacy_the_interval_holds_its_share_of_the_donors_unless_the_counts_leave_it_open() -> None:
    ratios = np.random.default_rng(5).standard_t(5, 4_000)
    reach = placebo.release_reach(alike(ratios), Law(5), 4_000, 0.9, granted(EXACT), (EXACT, EXACT))
    assert reach is not None and np.mean(np.abs(ratios) <= reach) == pytest.approx(0.9, abs=0.01)
    for units, weight in ((alike(np.full(5, 1e9)), 5), (alike(np.zeros(5)), 0.0)):
        assert placebo.release_reach(units, Law(7), weight, 0.9, granted(EXACT), (EXACT, EXACT)) is None


def test_the_way_that_predicts_donors_best_is_taken() -> None:
    rng = np.random.default_rng(6)
    candidates = [alike(size * rng.normal(size=500)) for size in (1.0, 0.3, 2.0)]
    for loss in (EXACT, dpc.PureDP(1), dpc.ZCDP(0.1)):
        with dpc.simulated_noise(1):
            assert placebo.release_best(candidates, granted(loss), loss) == 1


def test_without_privacy_the_pvalue_is_the_rank() -> None:
    units = alike(np.arange(1, 20))
    for size, expected in ((40, 1 / 20), (19, 2 / 20), (0, 1.0)):
        assert placebo.release_pvalue(units, size, 1.0, 19.0, granted(EXACT), EXACT) == pytest.approx(expected)


@pytest.mark.parametrize("loss", [dpc.PureDP(0.3), dpc.ZCDP(0.05)])
def test_the_pvalue_is_uniform_under_its_own_law(loss: Any) -> None:
    """2,000 counts of an exchangeable target: the share below a level is within 6 deviations of it (2e-9 a level)."""
    rng, runs, n = np.random.default_rng(8), 2_000, 60
    with dpc.simulated_noise(9):
        allotment, pvalues = granted(loss, runs), []
        for _ in range(runs):
            units, scales = rng.normal(size=n + 1), rng.uniform(0.5, 2, n + 1)
            donors = alike(units[1:], scales[1:])
            pvalues.append(placebo.release_pvalue(donors, units[0], scales[0], float(n), allotment, loss))
    for level in (0.05, 0.2, 0.5):
        share = np.mean(np.array(pvalues) <= level)
        assert abs(share - level) <= 6 * math.sqrt(level * (1 - level) / runs) + 1 / (n + 1)


def test_the_noise_of_a_count_is_below_the_law_by_hand() -> None:
    scale = FULL / 0.5
    k = np.arange(-400_000, 400_001)
    law = np.exp(-np.abs(k) / scale)
    law /= law.sum()
    values = np.array([-9_000, -1, 0, 1, 20_000])
    by_hand = [law[k <= value].sum() for value in values]
    np.testing.assert_allclose(placebo._noise_cdf(values, dpc.PureDP(0.5)), by_hand, rtol=1e-9)
