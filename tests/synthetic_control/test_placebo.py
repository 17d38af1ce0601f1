"""Placebos: one donor's reach, the interval, and the exact law of the p-value."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.audit import falsify
from dpcausal.privacy.neighbours import Unit
from dpcausal.privacy.sensitivity import Norm
from dpcausal.synthetic_control import placebo
from dpcausal.synthetic_control.placebo import STEPS, Placebos, mean_residuals
from dpcausal.synthetic_control.rows import FULL, GRID
from tests.conformance import check_claim
from tests.synthetic_control.neighbours import granted

CUT = round(0.4 * STEPS)


def steps(residuals: Any) -> Any:
    """Residuals of the scale [−1, 1] in whole steps."""
    return np.rint(np.asarray(residuals) * STEPS).astype(np.int64)


def of(rows: Any) -> Placebos:
    """Each row: a residual in [−1, 1] and a weight in [0, 1]."""
    return Placebos(steps(rows[:, 0]), np.rint(FULL * np.clip((rows[:, 1] + 1) / 2, 0, 1)).astype(np.int64))


@pytest.mark.proves("placebo-spread")
def test_no_donor_moves_the_spread_past_the_bound() -> None:
    check_claim(lambda rows: placebo.spread_sum(of(rows), CUT), lambda m: placebo.spread_sensitivity(), sizes=(1, 9),
                columns=2, low=-1.0, slack=0.0, evaluations=2_800)  # fmt: skip


@pytest.mark.proves("placebo-count")
def test_no_donor_moves_the_count_past_the_bound() -> None:
    check_claim(lambda rows: placebo.count_at_least(of(rows), CUT), lambda m: placebo.count_sensitivity(), sizes=(1, 9),
                columns=2, low=-1.0, slack=0.0, evaluations=2_800)  # fmt: skip


@pytest.mark.proves("placebo-count")
def test_residuals_of_a_fit_per_donor_are_caught() -> None:
    """A donor's residual against the mean of the other donors: one row moves them all across the threshold."""

    def statistic(rows: Any) -> int:
        others = (rows[:, 0].sum() - rows[:, 0]) / (len(rows) - 1)
        return placebo.count_at_least(Placebos(steps(rows[:, 0] - others), np.full(len(rows), FULL)), CUT)

    def near(rng: Any, m: int, low: Any, high: Any) -> Any:
        return np.column_stack([np.append(np.full(m - 1, 0.2), 0.9), np.ones(m)])

    found = falsify(statistic, float(FULL), sizes=(4,), columns=2, low=-1.0, norm=Norm.ABSOLUTE, evaluations=3_000,
                    starts={"near": near})  # fmt: skip
    assert found.violated


def test_without_privacy_the_interval_is_the_moment_inequality() -> None:
    residuals = np.array([0.1, -0.1, 0.2, -0.2])
    loss = dpc.NoPrivacy()
    half = placebo.release_spread(Placebos(steps(residuals), np.full(4, FULL)), 1.0, 4.0, 0.0, 0.9, granted(loss), loss)
    assert half == pytest.approx(2 / 3 * math.sqrt(10) * math.sqrt(0.025), rel=1e-2)


def test_the_moment_inequality_holds_for_unimodal_laws() -> None:
    rng = np.random.default_rng(7)
    for sample in (rng.normal(size=200_000), rng.uniform(-1, 1, 200_000) + 0.3, rng.exponential(size=200_000),
                   rng.standard_t(3, 200_000)):  # fmt: skip
        reach = placebo.factor_of(0.9) * np.sqrt(np.mean(sample**2))
        assert np.mean(np.abs(sample) > reach) <= 0.1


def test_an_interval_beyond_the_cut_is_none() -> None:
    loss = dpc.NoPrivacy()
    wide = Placebos(steps(np.full(5, 0.9)), np.full(5, FULL))
    assert placebo.release_spread(wide, 1.0, 5.0, 0.0, 0.9, granted(loss), loss) is None
    assert placebo.release_spread(wide, 1.0, 0.0, 0.0, 0.9, granted(loss), loss) is None


@pytest.mark.proves("placebo-spread")
@pytest.mark.proves("placebo-count")
def test_the_residuals_are_those_of_fractions_and_copies_of_a_row_have_one() -> None:
    """Beside exact rational arithmetic, of rows at the ends of the grid and slopes of every size, odd ones too."""
    rng = np.random.default_rng(4)
    for periods, start in ((2, 1), (9, 7), (40, 37), (300, 290)):
        slopes = rng.normal(size=start) * 10.0 ** rng.integers(-6, 4, start)
        row = rng.choice([-4 * GRID, 4 * GRID, 0, 17, -1], periods)
        (found,) = set(mean_residuals(np.tile(row, (101, 1)), start, slopes).tolist())
        after = periods - start
        whole = [Fraction(round(float(slope) * 2**16 * after), 2**16 * after) for slope in slopes]
        past = sum(int(value) * slope for value, slope in zip(row[:start], whole, strict=True))
        exact = (Fraction(int(row[start:].sum()), after) - past) / GRID * STEPS
        assert abs(found - exact) <= Fraction(1, 2)


@pytest.mark.proves("placebo-spread")
def test_whatever_the_slopes_no_residual_overflows() -> None:
    row, start, after = 4 * GRID, 150, 50
    for odd, whole in ((np.nan, 0), (np.inf, 2**46 // start), (-np.inf, -(2**46 // start)), (1e300, 2**46 // start)):
        with np.errstate(all="ignore"):
            found = int(mean_residuals(np.full((1, start + after), row), start, np.full(start, odd))[0])
        # 2⁸ · after of these units are a step.
        assert found == (2**16 * after * row - start * whole * row + 2**7 * after) // (2**8 * after)


@pytest.mark.proves("placebo-spread")
def test_the_spread_is_that_of_exact_fractions() -> None:
    rng = np.random.default_rng(5)
    residuals = rng.integers(-(2**60), 2**60, 500) // 10 ** rng.integers(0, 19, 500)
    weights = rng.integers(0, FULL + 1, 500)
    pairs = list(zip(residuals.tolist(), weights.tolist(), strict=True))
    for cut in (1, 7, CUT, placebo.cut_in_steps(1e9)):
        exact = sum(k * min(e * e, cut * cut) // cut**2 for e, k in pairs)
        assert placebo.spread_sum(Placebos(residuals, weights), cut) == exact


def test_without_privacy_the_pvalue_is_the_rank() -> None:
    residuals, loss = np.arange(1, 20), dpc.NoPrivacy()
    placebos = Placebos(residuals, np.full(19, FULL))
    for size, expected in ((40, 1 / 20), (19, 2 / 20), (0, 1.0)):
        assert placebo.release_pvalue(placebos, size, 19.0, granted(loss), loss) == pytest.approx(expected)


@pytest.mark.parametrize("loss", [dpc.PureDP(0.3), dpc.ZCDP(0.05)])
def test_the_pvalue_is_uniform_under_its_own_law(loss: Any) -> None:
    """2,000 counts of an exchangeable target: the share below a level is within 6 deviations of it (2e-9 a level)."""
    rng, runs, n = np.random.default_rng(8), 2_000, 60
    amount = loss.exact_epsilon if isinstance(loss, dpc.PureDP) else loss.exact_rho
    whole = type(loss)(amount * runs)
    with dpc.simulated_noise(9):
        allotment = dpc.Ledger.in_memory(whole).allot(whole, task="test", unit=Unit.DONOR)
        found = []
        for _ in range(runs):
            units = steps(rng.normal(size=n + 1))
            placebos = Placebos(units[1:], np.full(n, FULL))
            found.append(placebo.release_pvalue(placebos, abs(int(units[0])), float(n), allotment, loss))
    for level in (0.05, 0.2, 0.5):
        share = np.mean(np.array(found) <= level)
        assert abs(share - level) <= 6 * math.sqrt(level * (1 - level) / runs) + 1 / (n + 1)


def test_the_noise_of_a_count_is_below_the_law_by_hand() -> None:
    scale = FULL / 0.5
    k = np.arange(-400_000, 400_001)
    law = np.exp(-np.abs(k) / scale)
    law /= law.sum()
    for value in (-9_000, -1, 0, 1, 20_000):
        by_hand = law[k <= value].sum()
        assert placebo._below(value, dpc.PureDP(0.5)) == pytest.approx(by_hand, rel=1e-9)


def half_and_beyond(reach: float, share: float) -> tuple[float, float]:
    """Return the half width and how many lie beyond it, B = 1: a share uniform on ±reach, the others 0."""
    spread = np.linspace(-reach, reach, round(100_000 * share))
    sample = np.concatenate([spread, np.zeros(100_000 - len(spread))])
    loss = dpc.NoPrivacy()
    placebos = Placebos(steps(sample), np.full(len(sample), FULL))
    half = placebo.release_spread(placebos, 1.0, len(sample), 0.0, 0.9, granted(loss), loss)
    return (2.0, 0.0) if half is None else (half, float(np.mean(np.abs(sample) > half)))


def test_laws_that_reach_past_the_cut_are_held_as_it_is_told() -> None:
    """At nominal .9: up to two thirds of the cut in full, beyond by Markov's inequality."""
    found = [half_and_beyond(reach, share) for reach in (1.0, 1.5, 3.0, 30.0, 1e6) for share in (0.05, 0.1, 0.15, 0.2)]
    assert all(beyond <= 0.1 + 1e-4 for half, beyond in found if half <= 2 / 3)
    assert all(beyond <= 0.225 + 1e-4 for half, beyond in found if half <= 1)
    assert max(beyond for half, beyond in found if half <= 1) > 0.19
