"""Placebos: how far donors, which nothing happened to, lie from what the released model says of them.

Given what was released, a donor's residual depends on its own row alone, so one noisy sum gives an interval and one
noisy count a p-value.  With a fit per donor neither would hold: one row then moves every residual.  Nor would they with
residuals in floats: the last bits of a row's matrix product depend on the rows beside it, and decide a tie.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from dpcausal.mechanisms.additive import gaussian, gaussian_scale, geometric, laplace_scale
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ZCDP, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity
from dpcausal.synthetic_control.rows import FULL, GRID, Integers, Reals

SAFETY = 1.2815515655446004
"""Standard deviations of noise that an interval makes room for: nine tenths of the noise, on one side."""

STEPS = 2**20
"""Residuals are whole numbers of steps, so many from 0 to 1 on the scale [−1, 1]."""

MOST_CUT = 4.0
"""No cut is larger, on the scale [−1, 1]: residuals past it say no more."""

_SLOPE_STEPS = 2**16

LEAST_COVERAGE = 5 / 6
"""Below it the inequality of Vysochanskij and Petunin has another form."""

PROOFS = ("placebo-spread", "placebo-count")


@dataclass(frozen=True, eq=False, repr=False)
class Placebos:
    """*Private*: what the placebo releases are made of, residual and weight of donor i from row i alone.

    ``residuals``, in ``STEPS``, are means over the treated periods of what a donor's prediction misses, given what was
    released; ``weights`` lie in 0, …, FULL.
    """

    residuals: Integers
    weights: Integers


def mean_residuals(rows: Integers, start: int, slopes: Reals | None = None) -> Integers:
    """Return what a line misses of each row's mean from the start on: mean − Σ_t slope_t row_t, in ``STEPS``.

    Rounded to the nearest step, in whole numbers throughout: a function of the row alone, bit for bit.  Rows are in
    steps of the grid, at most 4 · GRID in size; slopes are public, or released before, and 0 by default.
    """
    after = rows.shape[1] - start
    missed = _SLOPE_STEPS * rows[:, start:].sum(axis=1)
    if slopes is not None:
        # Slopes that are cut here are beyond all that a release is known to bring about.
        most = 2.0**46 / start
        whole = np.rint(np.clip(np.nan_to_num(slopes) * (_SLOPE_STEPS * after), -most, most)).astype(np.int64)
        missed = missed - rows[:, :start] @ whole
    unit = _SLOPE_STEPS * GRID * after // STEPS
    return np.asarray((missed + unit // 2) // unit)


def cut_in_steps(cut: float) -> int:
    """Return a cut as a whole number of steps: at least one, at most ``MOST_CUT``."""
    return max(1, round(min(cut, MOST_CUT) * STEPS))


def spread_sum(placebos: Placebos, cut: int) -> int:
    """Return Σ ⌊K_i min(e_i², B²)/B²⌋, the cut squares in units of B², weighted; B in steps."""
    size = np.minimum(np.abs(placebos.residuals), cut)
    return int((placebos.weights * (size * size) // (cut * cut)).sum())


def count_at_least(placebos: Placebos, size: int) -> int:
    """Return Σ K_i over the donors whose |e_i| is at least ``size`` steps."""
    return int(placebos.weights[np.abs(placebos.residuals) >= size].sum())


def spread_sensitivity() -> Sensitivity:
    """Return FULL.  *Guarantee*: claim ``placebo-spread``, replace one donor, given the releases before."""
    return Sensitivity(FULL, Norm.ABSOLUTE, Relation.REPLACE_ONE, "placebo-spread", Unit.DONOR)


def count_sensitivity() -> Sensitivity:
    """Return FULL.  *Guarantee*: claim ``placebo-count``, replace one donor, given the releases before."""
    return Sensitivity(FULL, Norm.ABSOLUTE, Relation.REPLACE_ONE, "placebo-count", Unit.DONOR)


def _mechanism(loss: PureDP | ZCDP | NoPrivacy) -> Callable[[Query, Allotment, Any], Any]:
    return geometric if isinstance(loss, PureDP) else gaussian


def noise_deviation(loss: PureDP | ZCDP | NoPrivacy) -> float:
    """Return the standard deviation of the noise on a spread or a count, in donors of full weight."""
    if isinstance(loss, PureDP):
        return math.sqrt(2) * laplace_scale(FULL, loss) / FULL
    return gaussian_scale(FULL, loss) / FULL if isinstance(loss, ZCDP) else 0.0


def factor_of(coverage: float) -> float:
    """Return k such that k root mean squares hold ``coverage`` of any unimodal law: 2/(3√(1 − coverage)).

    *Source*: Vysochanskij & Petunin (1980), for coverage of at least 5/6; 2.11 at .9.
    """
    return 2 / (3 * math.sqrt(1 - coverage))


def release_spread(
    placebos: Placebos, cut: float, weight: float, weight_noise: float, coverage: float, allotment: Allotment,
    loss: PureDP | ZCDP | NoPrivacy,
) -> float | None:
    """Return the interval's half width on the scale [−1, 1]; ``None`` if it passes the cut, where it says nothing.

    k √(mean of min(e², B²)), the mean taken ``SAFETY`` deviations of noise higher than released, over a weight as much
    lower.

    For residuals with one mode, at 0, a half width up to 2B/3 keeps the nominal coverage however far they reach past
    the cut: they are mixtures of uniform laws on [0, R], and for R > B both 4(B² − 2B³/(3R))/(9h²) and 1 − h/R are
    linear in 1/R.  Between 2B/3 and B only Markov's inequality is left where many lie past the cut, whatever their
    law: coverage of at least 1 − 9/4 of what is missing from the nominal one, 77.5 % for 90 %.
    """
    steps = cut_in_steps(cut)
    noisy = _mechanism(loss)(
        Query(spread_sum(placebos, steps), spread_sensitivity(), "placebo spread"), allotment, loss
    )
    total = max(noisy / FULL, 0.0) + SAFETY * noise_deviation(loss)
    least = weight - SAFETY * weight_noise
    if least <= 0:
        return None
    reach = steps / STEPS
    half = factor_of(coverage) * reach * math.sqrt(min(total / least, 1.0))
    return half if half <= reach else None


def release_pvalue(
    placebos: Placebos, size: int, weight: float, allotment: Allotment, loss: PureDP | ZCDP | NoPrivacy
) -> float:
    """Return the placebo p-value by the exact law of the noisy count: P(C + Z ≤ N).

    where:

    * N: the released count of donors at least as far off as the target, which is ``size`` steps off
    * C: uniform on 0, …, M, its law if nothing happened and the target is one of M + 1 exchangeable units; M is the
      weight, at least 1 and at most the number of donors
    * Z: the noise
    """
    noisy = _mechanism(loss)(
        Query(count_at_least(placebos, size), count_sensitivity(), "placebo count"), allotment, loss
    )
    counts = FULL * np.arange(max(1, min(round(weight), len(placebos.weights))) + 1)
    return float(np.mean([_below(noisy - int(count), loss) for count in counts]))


def _below(value: int, loss: PureDP | ZCDP | NoPrivacy) -> float:
    """Return P(Z ≤ value); for P(k) ∝ a^|k|, a = e^{−1/b}: 1 − a^{v+1}/(1 + a) for v ≥ 0, a^{−v}/(1 + a) below."""
    if isinstance(loss, PureDP):
        scale = laplace_scale(FULL, loss)
        tail = 1 + math.exp(-1 / scale)
        return 1 - math.exp(-(value + 1) / scale) / tail if value >= 0 else math.exp(value / scale) / tail
    if isinstance(loss, ZCDP):  # at σ ≥ FULL/√(2ρ) the discrete law and the normal one agree to 1e-9
        return NormalDist().cdf((value + 0.5) / gaussian_scale(FULL, loss))
    return float(value >= 0)
