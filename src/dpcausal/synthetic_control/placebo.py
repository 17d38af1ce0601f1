"""Placebos: the distance of untreated donors from the released model, each in units of its own noise.

Given what was released, a donor's ratio |e_i|/s_i depends on its own row alone, so noisy counts of large ratios give
an interval, in units of the target's own s, and a p-value.  With a fit per donor none would hold: one row then moves
every residual.  Nor would they with residuals by a matrix product, whose last bits depend on the rows beside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.codec import storable
from dpcausal.mechanisms.additive import cube, gaussian, gaussian_scale, laplace_scale, whole_numbers
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.synthetic_control.donor_rows import FULL, ordered_sums, own_means

Base = PureDP | ZCDP | NoPrivacy
"""What the releases of a call share."""
FIRST_RATIO, TABLE_RATIO, FURTHEST = 1.5, 1.2, 6.0
"""Where the first count, or the table in its place, is taken, and how far the second may be from there, as a factor."""
SLOPE_EXPECTED, MOST_SLOPE, SLOPE_STEPS = 0.5, 0.9, 256
"""The expected size of a volatility slope, the largest that is used, and its steps in 1."""
LEAST_HELD = 0.05
"""No interval where fewer of the donors, as released, lie within the ratio of the second count."""
SOFT = 4.0
"""The squared ratio at which a residual counts half of the most it can in a mixing score."""


def deviation_of(bound: Any, loss: Base, numbers: int = 1) -> float:
    """Return the standard deviation of noise on each number of a vector with an l2 bound; 0 without privacy.

    The ball in dimension d has E‖z‖² = d(d + 1)s², hence √(d + 1)·s a coordinate; s = Δ/ε.
    """
    if isinstance(loss, PureDP):
        return math.sqrt(numbers + 1) * laplace_scale(bound, loss)
    return gaussian_scale(bound, loss)


@dataclass(frozen=True, eq=False, repr=False)
class Placebos:
    """*Private*: residual e_i, scale s_i ≥ 0 and weight K_i in 0, …, FULL of donor i, from row i alone."""

    residuals: Reals
    scales: Reals
    weights: Integers
    swings: Reals | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Missed:
    """*Private* of donors: what a unit's mean future differs by from the control and from its own rule, and its scale.

    Of unit i from row i alone, given what was released; of the target by the same steps, so that a twin of it ties.
    ``swings`` h, in [−1, 1], are below 0 where a unit's past moves little, beside what is released of all.
    """

    control: Reals
    own: Reals
    scales: Reals
    swings: Reals | None = None

    @classmethod
    def joined(cls, parts: Iterable[Missed]) -> Missed:
        fields = [(part.control, part.own, part.scales, part.swings) for part in parts]
        return cls(*(np.concatenate(some) for some in zip(*fields, strict=True)))

    def mixed(self, mixing: float, weights: Integers) -> Placebos:
        residuals = self.control if mixing == 1 else mixing * self.control + (1 - mixing) * self.own
        return Placebos(residuals, self.scales, weights, self.swings)

    def with_slope(self, slope: float) -> Missed:
        """Return the same with scales s(1 + slope·h/2), or s/(1 − slope·h/2) for a slope below 0."""
        if self.swings is None or not slope:
            return self
        by = 1 + abs(slope) / 2 * self.swings
        return replace(self, scales=self.scales * by if slope > 0 else self.scales / by)


def missed_by_own(rows: Integers, start: int, places: Reals | None = None) -> Reals:
    """Return what each row's mean from the start on differs by from the forecast of its own best rule.

    ``places`` are when the periods are, as ``forecast.tried`` takes them.
    """
    columns, after = rows.T.astype(np.float64), rows.shape[1] - start
    return ordered_sums(list(columns[start:]), np.full(after, 1 / after)) - own_means(columns[:start], after, places)


def count_beyond(placebos: Placebos, residual: float, scale: float) -> int:
    """Return Σ K_i 1{|e_i|/s_i ≥ |residual|/scale}, where 0/0 is 0 and e/0 is infinite."""
    size = abs(residual)
    far = np.abs(placebos.residuals) * scale >= size * placebos.scales
    return int(placebos.weights[far & (placebos.residuals != 0)].sum() if size else placebos.weights.sum())


def count_sensitivity() -> Sensitivity:
    """Return FULL.  *Guarantee*: claim ``ratio-count``, replace one donor, given the releases before."""
    return Sensitivity(FULL, Norm.ABSOLUTE, Relation.REPLACE_ONE, "ratio-count", Unit.DONOR)


def ratio_table(placebos: Placebos) -> Integers:
    """Return Σ K_i of calm and of volatile donors beyond ``TABLE_RATIO``, then of those within it."""
    far = (np.abs(placebos.residuals) >= TABLE_RATIO * placebos.scales) & (placebos.residuals != 0)
    cells = np.where(far, 0, 2) + (np.asarray(placebos.swings) >= 0)
    return np.array([int(placebos.weights[cells == cell].sum()) for cell in range(4)], dtype=np.int64)


def table_sensitivity() -> Sensitivity:
    """Return FULL·√2, rounded up, in l2.  *Guarantee*: claim ``ratio-table``, given the releases before."""
    bound = math.isqrt(2 * FULL * FULL - 1) + 1
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "ratio-table", Unit.DONOR)


def prediction_losses(candidates: list[Placebos]) -> Integers:
    """Return Σ ⌊K_i e_i²/(e_i² + 4 s_i²)⌋ for each way to predict: small where donors are predicted well."""
    sums = []
    for placebos in candidates:
        squared = placebos.residuals * placebos.residuals
        whole = squared + SOFT * (placebos.scales * placebos.scales)
        part = np.divide(squared, whole, out=np.zeros_like(whole), where=whole > 0)
        sums.append(int(np.floor(placebos.weights * np.minimum(part, 1.0)).astype(np.int64).sum()))
    return np.array(sums, dtype=np.int64)


def losses_sensitivity(ways: int, norm: Norm) -> Sensitivity:
    """Return FULL in l∞, FULL·√ways in l2.  *Guarantee*: claim ``mixing-scores``, given the releases before."""
    bound = FULL if norm is Norm.LINF else math.isqrt(ways * FULL * FULL - 1) + 1
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, "mixing-scores", Unit.DONOR)


def release_best(candidates: list[Placebos], allotment: CallBudget, loss: Base) -> int:
    """Release the noisy losses of some ways to predict, and return the place of the least."""
    pure = isinstance(loss, PureDP)
    claim = losses_sensitivity(len(candidates), Norm.LINF if pure else Norm.L2)
    query = Query(prediction_losses(candidates), claim, "mixing")
    return int(np.argmin(cube(query, allotment, loss) if pure else gaussian(query, allotment, loss)))  # type: ignore[arg-type]


def _release_count(
    placebos: Placebos, residual: float, scale: float, label: str, allotment: CallBudget, loss: Any
) -> Any:
    query = Query(count_beyond(placebos, residual, scale), count_sensitivity(), label)
    return whole_numbers(query, allotment, loss)


def noise_deviation(loss: Base) -> float:
    if isinstance(loss, PureDP):
        return math.sqrt(2) * laplace_scale(FULL, loss) / FULL
    return gaussian_scale(FULL, loss) / FULL


@storable("Law")
@dataclass(frozen=True)
class Law:
    """The distribution G that is assumed of a ratio's size: Student's t with these degrees of freedom."""

    freedom: float

    def within(self, ratio: float) -> float:
        from scipy.special import stdtr

        return float(2 * stdtr(self.freedom, ratio) - 1)

    def ratio(self, share: float) -> float:
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, (1 + share) / 2))

    def level(self, coverage: float, share: float, deviation: float) -> float:
        """Return what to aim at so that the coverage, averaged over the noise of a released share, is the wanted one.

        The share is ``share`` at the ratio where it is counted; with ξ normal of the deviation, the interval reaches
        G⁻¹(level)/G⁻¹(share + ξ) times as far, and holds G of that.
        """
        nodes, masses = np.polynomial.hermite_e.hermegauss(41)
        ratios = [self.ratio(believed_share(share + deviation * node, share)) for node in nodes.tolist()]
        low, high = coverage, 1 - (1 - coverage) / 64
        for _ in range(40):
            middle = (low + high) / 2
            reach = self.ratio(share) * self.ratio(middle)
            held = sum(mass * self.within(reach / one) for mass, one in zip(masses.tolist(), ratios, strict=True))
            low, high = (middle, high) if held < coverage * float(masses.sum()) else (low, middle)
        return high


def believed_share(share: float, wanted: float) -> float:
    """Return a released share of donors within a ratio, as far as it is believed where ``wanted`` were expected."""
    return min(max(share, LEAST_HELD), 1 - (1 - wanted) / 4)


def release_slope(
    placebos: Placebos, law: Law, total: float, allotment: CallBudget, loss: ZCDP | NoPrivacy
) -> tuple[tuple[float, float], float]:
    """Return a ratio with the share of donors within it, and the volatility slope: how far volatile units vary.

    The volatility slope is the logarithm that offsets, by the slope of G, the difference between the shares of calm and
    of volatile donors within the ratio, shrunk towards 0 by what noise and chance leave open of it.
    """
    query = Query(ratio_table(placebos), table_sensitivity(), "ratio table")
    calm_far, far, calm_near, near = (np.asarray(gaussian(query, allotment, loss), dtype=np.float64) / FULL).tolist()
    calm, volatile = max(calm_far + calm_near, total / 10), max(far + near, total / 10)
    share = min(max(1 - (calm_far + far) / total, 0.2), 0.98)
    slope = (law.within(law.ratio(share) * 1.01) - law.within(law.ratio(share) * 0.99)) / 0.02
    estimate = min(max((far / volatile - calm_far / calm) / slope, -1.5), 1.5)
    noise = (deviation_of(table_sensitivity().bound, loss) / FULL) ** 2 * ((1 - share) ** 2 + share**2)
    doubt = sum((noise + some * share * (1 - share)) / (some * slope) ** 2 for some in (calm, volatile))
    volatility_slope = round(estimate / (1 + doubt / SLOPE_EXPECTED**2) * SLOPE_STEPS) / SLOPE_STEPS
    return (TABLE_RATIO, share), min(max(volatility_slope, -MOST_SLOPE), MOST_SLOPE)


def release_reach(
    placebos: Placebos, law: Law, total: float, coverage: float, allotment: CallBudget,
    losses: tuple[Base, Base], within: tuple[float, float] | None = None,
) -> float | None:  # fmt: skip
    """Return how many of its own scales a unit's interval reaches; ``None`` where the counts leave it open.

    A first count of ratios of at least 1.5 says by G where to take the second, whose share within is near the wanted
    coverage, or where its noise is small beside what lies beyond.  Where a ratio and the share of donors within it
    were released before, there is no first count.
    """
    if total <= 0:
        return None
    deviation = noise_deviation(losses[1]) / total
    share = max(0.6, min(coverage, 1 - 3 * deviation))
    if within is None:
        beyond = _release_count(placebos, FIRST_RATIO, 1.0, "first ratio count", allotment, losses[0]) / (FULL * total)
        within = FIRST_RATIO, min(max(1 - beyond, 1e-3), 1 - 1e-6)
    ratio = within[0] * min(max(law.ratio(share) / law.ratio(within[1]), 1 / FURTHEST), FURTHEST)
    second = 1 - _release_count(placebos, ratio, 1.0, "second ratio count", allotment, losses[1]) / (FULL * total)
    if second < LEAST_HELD:
        return None
    return ratio * law.ratio(law.level(coverage, share, deviation)) / law.ratio(believed_share(second, share))


def release_pvalue(
    placebos: Placebos, residual: float, scale: float, total: float, allotment: CallBudget,
    loss: Base,
) -> float:  # fmt: skip
    """Return the placebo p-value by the exact distribution of the noisy count: P(C + Z ≤ N).

    N is the released count of donors whose ratio is at least the target's, Z the noise.  C is uniform on 0, …, M, its
    distribution if nothing happened and the target is one of M + 1 exchangeable units; M is the weight, at least 1 and
    at most the number of donors.
    """
    noisy = int(_release_count(placebos, residual, scale, "placebo count", allotment, loss))
    counts = FULL * np.arange(max(1, min(round(total), len(placebos.weights))) + 1)
    return float(np.mean(_noise_cdf(noisy - counts, loss)))


def _noise_cdf(values: Integers, loss: Base) -> Reals:
    """Return P(Z ≤ value); for P(k) ∝ a^|k|, a = e^{−1/b}: 1 − a^{v+1}/(1 + a) for v ≥ 0, a^{−v}/(1 + a) below."""
    from scipy.special import ndtr

    if isinstance(loss, PureDP):
        scale = laplace_scale(FULL, loss)
        tail = np.exp(-np.where(values >= 0, values + 1, -values) / scale) / (1 + math.exp(-1 / scale))
        return np.where(values >= 0, 1 - tail, tail)
    if isinstance(loss, ZCDP):  # at σ ≥ FULL/√(2ρ) the discrete law and the normal one agree to 1e-9
        return np.asarray(ndtr((values + 0.5) / gaussian_scale(FULL, loss)))
    return (values >= 0).astype(np.float64)
