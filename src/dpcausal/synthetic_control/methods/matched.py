"""Matched donors: each predicts the target's change, weighted by how closely it followed the target before.

For few donors.  What a donor contributes is m + 1 numbers that depend on its own row and on public numbers only.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.core.method import Run
from dpcausal.data.panels.panel import Panel
from dpcausal.errors import LossError
from dpcausal.mechanisms.additive import gaussian, l2_ball
from dpcausal.privacy.checks import charged_loss
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, PureDP, largest_rho
from dpcausal.privacy.noise import LARGEST_BALL
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.synthetic_control.donor_rows import (
    FULL,
    Grid,
    TargetOnlyForecast,
    ordered_sums,
    random_walk_error,
    squared_lengths,
    to_scale,
    within_radius,
)
from dpcausal.synthetic_control.method import SyntheticMethod
from dpcausal.synthetic_control.placebo import Law, Missed, deviation_of, missed_by_own
from dpcausal.synthetic_control.question import Path, Plan, Treated, past_of

CUT_IN_ERRORS = 3.0
"""Default cut of a donor's predicted change, in errors of the last-value forecast on the target's own past."""
WIDTH_IN_SPREADS = 1.0
"""Default width of the kernel, in standard deviations of the target's past: a donor that explains nothing of its
variation gets e^{−1/2} of the full weight."""
OWN_IS_BETTER = 0.6
"""The own rule may replace the donors where its error on the past is below this share of the last value's."""
MOST_CUT = 2**20
"""No cut has more steps: sums stay below 2⁶¹."""
ERRORS_EXPECTED = 1.5
"""Size of the effect-free surprises expected beforehand, in errors of the donor-free forecast on its own past."""
MOST_SLOPE = 2.0
"""No donor's change is stretched by more."""
MOST_LEFT = 0.25
"""Donors that leave no more of the variation of the target's past follow it closely."""
LEAST_STRETCH = 2.0**-10
"""A placebo's scale is stretched by no less, so that its own rule's residual keeps its ratio."""
_DISTANCES = -2 * np.log((np.arange(FULL, 0, -1) - 0.5) / FULL)
"""The squared distances, in widths of the kernel, up to which the weight is FULL, FULL − 1, …, 1: the nearest whole
number to FULL·exp(−distance/2), by comparisons alone."""


@dataclass(frozen=True, eq=False)
class Matching:
    """The public constants of matching, from the target's past and public arguments, in steps of the grid.

    ``past`` is the target's, less its last value; ``kernel_width`` is h; predicted changes are cut to length
    ``cut`` · √m.
    """

    grid: Grid
    after: int
    past: Integers
    kernel_width: float
    cut: float

    @property
    def start(self) -> int:
        return self.grid.start

    @property
    def radius(self) -> int:
        """C = c√m; at least one step."""
        return max(1, math.floor(min(self.cut, MOST_CUT) * math.sqrt(self.after)))

    @property
    def weight_unit(self) -> int:
        """What a weight is multiplied by beside the changes: the largest that costs nothing, ⌊√3 C⌋."""
        return math.isqrt(3 * self.radius * self.radius)


def matching_constants(
    past: Reals, after: int, free: TargetOnlyForecast, kernel_width: float | None, cut: float | None
) -> Matching:
    """Return the constants: h = sd of the target's past, c = 3 errors of its last-value forecast, unless given."""
    grid = Grid.of([free.last_error], len(past), len(past) + after)
    h = WIDTH_IN_SPREADS * float(np.std(past - past[-1])) if kernel_width is None else kernel_width
    c = CUT_IN_ERRORS * free.last_error if cut is None else cut
    h = h or free.last_error
    own = grid.rows(past[None])[0]
    return Matching(grid, after, own, max(h / grid.step, 1.0), c / grid.step)


def weights_and_changes(rows: Integers, by: Matching) -> tuple[Integers, Reals, Reals]:
    """Return each donor's weight in 0, …, FULL, its prediction of the target's change, (n, m), uncut, and its stretch.

    b = (x̃·ỹ + T0h²)/(x̃·x̃ + T0h²) in [0, 2],  k = exp(−‖ỹ − b x̃‖²/(2T0h²)),  change = b (x_post − x_last)

    where x̃ and ỹ are the pasts of donor and target less their means.  Each donor's from its own row alone, bit for
    bit: its three sums are whole numbers, and from them on each number is the result of single correctly rounded
    operations.
    """
    T0, past = by.start, rows[:, : by.start]
    sums, squares = past.sum(axis=1).astype(np.float64), squared_lengths(past).astype(np.float64)
    crossed = (past @ by.past).astype(np.float64)
    own, own_squares = float(by.past.sum()), float((by.past * by.past).sum())
    together = crossed - sums * (own / T0)
    varied = np.maximum(squares - sums * (sums / T0), 0)
    prior = T0 * by.kernel_width**2
    slope = np.clip((together + prior) / (varied + prior), 0, MOST_SLOPE)
    distance = ((own_squares - own * (own / T0)) - slope * (2 * together) + slope * slope * varied) / prior
    weights = (FULL - np.searchsorted(_DISTANCES, distance)).astype(np.int64)
    return weights, slope[:, None] * rows[:, by.start :], slope


def scales_of(rows: Integers, start: int) -> Reals:
    """Return the standard deviation of each row's differences before the start, bit for bit from the row alone."""
    steps = np.diff(rows[:, :start], axis=1)
    total, squares = steps.sum(axis=1).astype(np.float64), squared_lengths(steps).astype(np.float64)
    return np.asarray(np.sqrt(np.maximum(squares - total * (total / (start - 1)), 0) / max(start - 2, 1)))


def matched_sums(weights: Integers, changes: Reals, by: Matching) -> Integers:
    cut = within_radius(np.trunc(changes).astype(np.int64), by.radius)
    return np.concatenate([[by.weight_unit * int(weights.sum())], weights @ cut])


def matched_sensitivity(by: Matching) -> Sensitivity:
    """Return 2·FULL·C, in l2 over the m + 1 numbers.  *Guarantee*: claim ``matched-sums``, replace one donor."""
    return Sensitivity(2 * FULL * by.radius, Norm.L2, Relation.REPLACE_ONE, "matched-sums", Unit.DONOR)


def noise_deviation(by: Matching, loss: PureDP | ZCDP | NoPrivacy) -> float:
    return deviation_of(matched_sensitivity(by).bound, loss, by.after + 1)


@dataclass(frozen=True, eq=False)
class MatchedRelease:
    """What was released: ΣK/FULL, the number of donors that the answer relies on, and what follows from it.

    ``change`` is that of the target from its last value before the start; both with the standard deviation of their
    noise.
    """

    weight: float
    weight_noise: float
    change: Reals
    noise: float


def matched_query(weights: Integers, changes: Reals, by: Matching, loss: PureDP | ZCDP | NoPrivacy) -> Query:
    """Return the sums, hidden; as real numbers where the ball's noise comes to them."""
    sums = matched_sums(weights, changes, by)
    real = sums.astype(np.float64) if isinstance(loss, PureDP) else sums
    return Query(real, matched_sensitivity(by), "matched donors")


def estimate_from_sums(
    noisy: Reals, by: Matching, alone: Reals, expected: float, loss: PureDP | ZCDP | NoPrivacy
) -> MatchedRelease:
    """Return the change that released sums show, in steps.

    change = (N W + d σ²/τ²)/(W² + σ²/τ²),  W = max(ΣK, 0) and N = ΣKZ as released

    where d is the change ``alone`` that the donor-free forecast has, σ the standard deviation of the noise on N, and τ
    1.5 times the error ``expected`` of that forecast: the mean given the release under a normal prior.  As the donors'
    weight falls below the noise it goes to the donor-free forecast.
    """
    deviation = noise_deviation(by, loss) / FULL
    weight = float(noisy[0]) / (by.weight_unit * FULL)
    total = np.asarray(noisy[1:], dtype=np.float64) / FULL
    positive = max(weight, 0.0)
    prior = (deviation / (ERRORS_EXPECTED * expected)) ** 2
    scale = positive * positive + prior
    factor, rest = (positive / scale, prior / scale) if scale > 0 else (0.0, 1.0)
    change = total * factor + alone * rest
    return MatchedRelease(weight, deviation / by.weight_unit, change, deviation * factor)


def _own_error(past: Reals, plan: Plan, mean_weight: float) -> float:
    """Return the error that donors leave in the mean of a target: as a random walk's where few follow it closely. What
    share of its variation donors of this mean weight leave is by the kernel, at most 2."""
    left = min(-2 * math.log(min(max(mean_weight, math.exp(-1.0)), 1.0)), 2.0)
    walk = random_walk_error(past, plan.after) if left > MOST_LEFT else 0.0
    return max(plan.free.expected, walk) * math.sqrt(left)


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
    has_placebos: ClassVar[bool] = True
    proofs: ClassVar[tuple[str, ...]] = ("matched-sums",)
    positive: ClassVar[tuple[str, ...]] = ("kernel_width", "cut")
    kernel_width: float | None = None
    cut: float | None = None

    def charge(self, loss: Loss, question: Treated) -> tuple[Loss, str]:
        """Spend an (ε, δ) loss as ρ unless the pure noise is the smaller."""
        if not isinstance(loss, ApproxDP):
            return loss, ""
        rho, after = largest_rho(loss.exact_epsilon, loss.exact_delta), question.periods - question.before
        # Noise on each of m + 1 numbers: √(m + 2)·Δ/ε from the ball, Δ/√(2ρ) from the Gaussian.
        if rho and 2 * rho * (after + 2) > loss.exact_epsilon**2:
            return loss, ""
        return charged_loss(loss, (PureDP,), "here the pure noise is the smaller, which")

    def by(self, panel: Panel, target: Any, free: TargetOnlyForecast) -> Matching:
        """Return the constants of matching a target."""
        half = panel.bounds.width / 2
        past, after = past_of(panel, target), len(panel.times) - panel.start(target)
        width, cut = [None if value is None else min(value / half, 2.0) for value in (self.kernel_width, self.cut)]
        return matching_constants(past, after, free, width, cut)

    def constants(self, question: Treated, target: Any, free: TargetOnlyForecast) -> dict[str, float]:
        half, by = question.panel.bounds.width / 2, self.by(question.panel, target, free)
        return {"kernel width": by.kernel_width * by.grid.step * half, "cut": by.cut * by.grid.step * half}

    def expected_noise(self, question: Treated, target: Any, free: TargetOnlyForecast, base: Any) -> float | None:
        """Return that of half of the donors' weight, without help from the donor-free forecast."""
        by = self.by(question.panel, target, free)
        if isinstance(base, PureDP) and by.after + 1 > LARGEST_BALL:
            raise LossError(
                f"pure noise is drawn for at most {LARGEST_BALL} numbers, and here there are {by.after + 1}"
            )
        return noise_deviation(by, base) * by.grid.step / FULL / (question.panel.n / 2) or None

    def mixtures(self, free: TargetOnlyForecast) -> tuple[float, ...]:
        return (0.0, 1.0) if free.expected < OWN_IS_BETTER * free.last_error else (1.0,)

    def path(self, begun: Any, plan: Plan, run: Run[Treated]) -> Path:
        question, panel = run.question, run.question.panel
        y, by = to_scale(panel.series(plan.target), panel.bounds), self.by(panel, plan.target, plan.free)
        step, start, own = by.grid.step, plan.start, by.grid.rows(y[None])
        parts, seen = [], []
        for rows in by.grid.blocks(begun):
            weights, changes, slope = weights_and_changes(rows, by)
            parts.append((weights, changes, np.maximum(slope, LEAST_STRETCH)))
            seen.append((missed_by_own(rows, start, question.places), scales_of(rows, start)))
        weights, changes, slope = (np.concatenate(some) for some in zip(*parts, strict=True))
        alone, expected = (plan.free.path - y[start - 1]) / step, plan.free.expected / step
        loss: Any = plan.base.part(plan.path)
        add = l2_ball if isinstance(loss, PureDP) else gaussian
        noisy = add(matched_query(weights, changes, by, loss), run.budget, loss)
        released = estimate_from_sums(noisy, by, alone, expected, loss)
        centre = float(released.change.mean())

        # Differences hold what all units share too: half of the way, as a root, from each donor's to the target's.
        ours = np.maximum(scales_of(own, start), 1.0)
        own_rule = missed_by_own(own, start, question.places)

        def missed(changes: Reals, slope: Reals, own: Reals, scales: Reals) -> Missed:
            mean = ordered_sums(list(changes.T), np.full(by.after, 1 / by.after))
            return Missed(mean - centre, slope * own, slope * np.sqrt(scales * ours))

        by_own, scales = (np.concatenate(some) for some in zip(*seen, strict=True))
        return Path(
            values=y[start - 1] + released.change * step, noise=released.noise * step, weight=released.weight,
            own_error=_own_error(past_of(panel, plan.target), plan, released.weight / question.panel.n),
            donors=missed(changes, slope, by_own, scales), weights=weights, step=step, total=released.weight,
            own=missed(own[:, start:].astype(np.float64), np.ones(1), own_rule, scales_of(own, start)),
            law=Law(max(start - 2, 1)),
        )  # fmt: skip
