"""Matched donors: each predicts the target's change by itself and counts by how well it followed the target before.

For few donors.  What a donor contributes is m + 1 numbers that depend on its own row and on public numbers only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.data.panel import Panel
from dpcausal.errors import LossError
from dpcausal.mechanisms.additive import gaussian, l2_ball
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, PureDP, largest_rho
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.noise import LARGEST_BALL
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity
from dpcausal.synthetic_control.forecast import DonorFree
from dpcausal.synthetic_control.method import SyntheticMethod
from dpcausal.synthetic_control.placebo import STEPS, Placebos, mean_residuals
from dpcausal.synthetic_control.plan import Plan, deviation_of
from dpcausal.synthetic_control.question import Path, Treated, past_of
from dpcausal.synthetic_control.rows import (
    FULL,
    GRID,
    Integers,
    Reals,
    from_last,
    on_grid,
    squared_lengths,
    to_scale,
    within_radius,
)

CUT_IN_ERRORS = 3.0
"""Default cut of a donor's predicted change, in errors of the last-value forecast on the target's own past."""

WIDTH_IN_SPREADS = 1.0
"""Default width of the kernel, in standard deviations of the target's past: a donor that explains nothing of its
variation gets e^{−1/2} of the full weight."""

LEAST_WIDTH = 0.02
"""Least width of the kernel on the scale [−1, 1]: a hundredth of the range."""

COVARIATE_WIDTH = 0.5
"""Width of the kernel in each covariate on the scale [−1, 1]: a quarter of its range."""

ERRORS_EXPECTED = 1.5
"""Size of the effect-free surprises expected beforehand, in errors of the donor-free forecast on its own past."""

MOST_SLOPE = 2.0
"""No donor's change is stretched by more."""

_TARGET_STEPS = 2**20
"""Steps from 0 to 1 in which the target's past is read, finer than a donor's: sums stay below 2⁶¹."""

_DISTANCES = -2 * np.log((np.arange(FULL, 0, -1) - 0.5) / FULL)
"""The squared distances, in widths of the kernel, up to which the weight is FULL, FULL − 1, …, 1: the nearest whole
number to FULL·exp(−distance/2), by comparisons alone."""

PROOFS = ("matched-sums",)


@dataclass(frozen=True, eq=False)
class Matching:
    """The public constants of matching, from the target's past, its bounds and public arguments, on the scale [−1, 1].

    ``kernel_width`` is h; predicted changes are cut to length ``cut`` · √m.
    """

    start: int
    after: int
    past: Reals
    covariates: Reals
    kernel_width: float
    cut: float

    @property
    def radius(self) -> int:
        """C = c√m in steps of the grid; at least one step."""
        return max(1, math.floor(self.cut * math.sqrt(self.after) * GRID))

    @property
    def weight_unit(self) -> int:
        """What a weight is multiplied by beside the changes: the largest that costs nothing, ⌊√3 C⌋."""
        return math.isqrt(3 * self.radius * self.radius)


def matching(
    past: Reals, after: int, covariates: Reals, free: DonorFree, kernel_width: float | None, cut: float | None
) -> Matching:
    """Return the constants: h = sd of the target's past, c = 3 errors of its last-value forecast, unless given."""
    h = max(WIDTH_IN_SPREADS * float(np.std(past)), LEAST_WIDTH) if kernel_width is None else kernel_width
    c = min(CUT_IN_ERRORS * free.last_error, 2.0) if cut is None else cut
    return Matching(len(past), after, past, covariates, h, c)


def weights_and_changes(rows: Integers, covariates: Reals, by: Matching) -> tuple[Integers, Reals]:
    """Return each donor's weight in 0, …, FULL and its prediction of the target's change, shape (n, m), uncut.

    b = (x̃·ỹ + T0h²)/(x̃·x̃ + T0h²) in [0, 2],  k = exp(−‖ỹ − b x̃‖²/(2T0h²)),  change = b (x_post − x_last)

    where x̃ and ỹ are the pasts of donor and target less their means.  Each donor's from its own row alone, bit for
    bit: its three sums are whole numbers, and from them on each number is the result of single correctly rounded
    operations.
    """
    T0, past = by.start, rows[:, : by.start]
    target = np.rint((by.past - by.past.mean()) * _TARGET_STEPS)
    sums, squares = past.sum(axis=1).astype(np.float64), squared_lengths(past).astype(np.float64)
    crossed = (past @ target.astype(np.int64)).astype(np.float64)
    # From here on in units of the grid, squared.
    target = target * (GRID / _TARGET_STEPS)
    together = crossed * (GRID / _TARGET_STEPS) - sums * float(target.mean())
    varied = np.maximum(squares - sums * (sums / T0), 0)
    prior = T0 * (by.kernel_width * GRID) ** 2
    slope = np.clip((together + prior) / (varied + prior), 0, MOST_SLOPE)
    distance = (float(target @ target) - slope * (2 * together) + slope * slope * varied) / prior
    apart = squared_lengths(on_grid(covariates) - on_grid(by.covariates))
    distance = distance + apart / (GRID * COVARIATE_WIDTH) ** 2
    weights = (FULL - np.searchsorted(_DISTANCES, distance)).astype(np.int64)
    return weights, slope[:, None] * from_last(rows, by.start)[:, by.start :]


def matched_sums(weights: Integers, changes: Reals, by: Matching) -> Integers:
    """Return (A ΣK, Σ K Z) as whole numbers: Z the changes cut to the radius, A the weight's unit."""
    cut = within_radius(np.trunc(changes).astype(np.int64), by.radius)
    return np.concatenate([[by.weight_unit * int(weights.sum())], weights @ cut])


def matched_sensitivity(by: Matching) -> Sensitivity:
    """Return 2·FULL·C, in l2 over the m + 1 numbers.  *Guarantee*: claim ``matched-sums``, replace one donor."""
    return Sensitivity(2 * FULL * by.radius, Norm.L2, Relation.REPLACE_ONE, "matched-sums", Unit.DONOR)


def noise_deviation(by: Matching, loss: PureDP | ZCDP | NoPrivacy) -> float:
    """Return the standard deviation of the noise on each released number, in whole-number units."""
    return deviation_of(matched_sensitivity(by).bound, loss, by.after + 1)


@dataclass(frozen=True, eq=False)
class MatchedRelease:
    """What was released: ΣK/FULL, the number of donors that the answer rests on, and what follows from it.

    ``change`` is that of the target from its last value before the start; both with the standard deviation of their
    noise.
    """

    weight: float
    weight_noise: float
    change: npt.NDArray[np.float64]
    noise: float


def matched_query(weights: Integers, changes: Reals, by: Matching, loss: PureDP | ZCDP | NoPrivacy) -> Query:
    """Return the sums, hidden; as real numbers where the ball's noise comes to them."""
    sums = matched_sums(weights, changes, by)
    real = sums.astype(np.float64) if isinstance(loss, PureDP) else sums
    return Query(real, matched_sensitivity(by), "matched donors")


def estimated(noisy: Reals, by: Matching, free: DonorFree, loss: PureDP | ZCDP | NoPrivacy) -> MatchedRelease:
    """Return the change that released sums show.

    change = (N W + d σ²/τ²)/(W² + σ²/τ²),  W = max(ΣK, 0) and N = ΣKZ as released

    where d is the change that the donor-free forecast has, σ the standard deviation of the noise on N, and τ 1.5 errors
    of that forecast: the mean given the release under a normal prior.  As the donors' weight falls below the noise it
    goes to the donor-free forecast.
    """
    deviation = noise_deviation(by, loss) / (FULL * GRID)
    weight = float(noisy[0]) / (by.weight_unit * FULL)
    total = np.asarray(noisy[1:], dtype=np.float64) / (FULL * GRID)
    positive = max(weight, 0.0)
    alone = free.path - by.past[-1]
    prior = (deviation / (ERRORS_EXPECTED * free.expected)) ** 2
    scale = positive * positive + prior
    factor, rest = (positive / scale, prior / scale) if scale > 0 else (0.0, 1.0)
    change = total * factor + alone * rest
    return MatchedRelease(weight, deviation * GRID / by.weight_unit, change, deviation * factor)


@dataclass(frozen=True, kw_only=True)
class Matched(SyntheticMethod):
    """Donors that followed the target before predict its change: for few donors, any loss.

    Parameters
    ----------
    kernel_width : float, optional
        h, by default the standard deviation of the target's own past, in the outcome's unit.  *Public*.
    cut : float, optional
        The largest size of a donor's change in a period that counts, by default three errors of the last-value
        forecast on the target's past, in the outcome's unit.  *Public*.
    """

    name: ClassVar[str] = "matched"
    about: ClassVar[str] = "donors weighted by how they followed the target"
    takes_covariates: ClassVar[bool] = True
    has_placebos: ClassVar[bool] = True
    counted: ClassVar[Fraction] = Fraction(1, 2)  # a matched donor counts by half, as a guess
    proofs: ClassVar[tuple[str, ...]] = PROOFS
    positive: ClassVar[tuple[str, ...]] = ("kernel_width", "cut")

    kernel_width: float | None = None
    cut: float | None = None

    def pay(self, loss: Loss, question: Treated) -> tuple[Loss, str]:
        """Spend an (ε, δ) loss as ρ unless the pure noise is the smaller."""
        if not isinstance(loss, ApproxDP):
            return loss, ""
        rho, after = largest_rho(loss.exact_epsilon, loss.exact_delta), question.periods - question.before
        # Noise on each of m + 1 numbers: √(m + 2)·Δ/ε from the ball, Δ/√(2ρ) from the Gaussian.
        if rho and 2 * rho * (after + 2) > loss.exact_epsilon**2:
            return loss, ""
        return pure_part(loss, "here the pure noise is the smaller, which")

    def by(self, panel: Panel, target: Any, free: DonorFree) -> Matching:
        """Return the constants of matching a target."""
        half = panel.bounds.width / 2
        past, after = past_of(panel, target), len(panel.times) - panel.start(target)
        width, cut = [None if value is None else min(value / half, 2.0) for value in (self.kernel_width, self.cut)]
        return matching(past, after, panel.target_covariates(target), free, width, cut)

    def constants(self, question: Treated, target: Any, free: DonorFree) -> dict[str, float]:
        half, by = question.panel.bounds.width / 2, self.by(question.panel, target, free)
        return {"kernel width": by.kernel_width * half, "cut": by.cut * half}

    def expected_noise(self, question: Treated, target: Any, free: DonorFree, base: Any) -> float | None:
        """Return that of half of the donors' weight, without help from the donor-free forecast."""
        by = self.by(question.panel, target, free)
        if isinstance(base, PureDP) and by.after + 1 > LARGEST_BALL:
            raise LossError(
                f"pure noise is drawn for at most {LARGEST_BALL} numbers, and here there are {by.after + 1}"
            )
        return noise_deviation(by, base) / (FULL * GRID) / (question.panel.n / 2) or None

    def path(self, scaled: Reals, question: Treated, plan: Plan, spent: Loss, allotment: Allotment) -> Path:
        panel, rows = question.panel, on_grid(scaled)
        y, by = to_scale(panel.series(plan.target), panel.bounds), self.by(panel, plan.target, plan.free)
        weights, changes = weights_and_changes(rows, panel.donor_covariates(), by)
        loss: Any = plan.base.part(plan.path)
        add = l2_ball if isinstance(loss, PureDP) else gaussian
        noisy = add(matched_query(weights, changes, by, loss), allotment, loss)
        released = estimated(noisy, by, plan.free, loss)
        # A change by more than 2 lies outside the bounds.
        centre = round(min(max(float(released.change.mean()), -2.0), 2.0) * STEPS)
        # The target is read on the grid as the donors are, so that its twin is as far off as it is itself.
        donors, own = (
            mean_residuals(from_last(some, plan.start), plan.start) - centre for some in (rows, on_grid(y[None]))
        )
        return Path(
            values=y[plan.start - 1] + released.change, noise=released.noise, weight=released.weight,
            placebos=Placebos(donors, weights), own=int(own[0]), cut=by.cut, total=released.weight,
            total_noise=released.weight_noise,
        )  # fmt: skip
