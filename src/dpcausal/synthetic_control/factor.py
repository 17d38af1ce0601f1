"""A factor model of the donors: their mean path and covariance, released once, predict any target.

For many donors.  After four releases everything is free: the low rank, the regression of the future on the past, and
the placebo residual of a donor, which then depends on its own row alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpcausal.errors import LossError
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity
from dpcausal.synthetic_control.forecast import DonorFree
from dpcausal.synthetic_control.method import SyntheticMethod
from dpcausal.synthetic_control.placebo import Placebos, mean_residuals
from dpcausal.synthetic_control.plan import Plan, deviation_of
from dpcausal.synthetic_control.question import Path, Treated
from dpcausal.synthetic_control.rows import (
    FULL,
    GRID,
    Integers,
    Reals,
    from_last,
    largest_length,
    on_grid,
    squared_lengths,
    to_scale,
    within_radius,
)

SHARES = {"radius": Fraction(1, 20), "mean": Fraction(1, 4), "residual radius": Fraction(1, 20),
          "covariance": Fraction(13, 20)}  # fmt: skip
"""How the path's ρ is split."""

WITHIN = 0.95
"""The share of donors that a radius should hold."""

STEPS = 5
"""Noisy counts of the search for a radius, among 2⁵ candidates each 2^{1/3} of the one before."""

DIAGONAL, OFF = 5, 7
"""Weights of the entries on and off the diagonal: (7/5)² < 2, so the weighted triangle is no longer than 5 times the
whole symmetric matrix, and its noise is spread nearly as that of an isotropic symmetric matrix."""

PROOFS = ("row-radius", "clipped-sum", "clipped-products")

CUT_IN_DEVIATIONS = 4.0
"""Placebo residuals are cut at this many of the standard deviations that the model implies for them."""


@dataclass(frozen=True, eq=False)
class FactorRelease:
    """The released model, on the scale [−1, 1], of rows less their own last value before the start.

    The noise is its standard deviation on an entry of the mean, and on a diagonal one of the covariance, which is
    symmetric, perhaps not positive.
    """

    mean: npt.NDArray[np.float64]
    covariance: npt.NDArray[np.float64]
    mean_noise: float
    covariance_noise: float


def radii(periods: int) -> list[int]:
    """Return the candidate radii, in steps of the grid, increasing to the largest length there is."""
    top = largest_length(periods)
    return [max(1, math.ceil(top * 2 ** (-place / 3))) for place in reversed(range(2**STEPS))]


def rows_within(rows: Integers, radius: int) -> int:
    """Return #{rows of length at most the radius}, exactly."""
    return int((squared_lengths(rows) <= radius * radius).sum())


def count_sensitivity() -> Sensitivity:
    """Return 1.  *Guarantee*: claim ``row-radius``, replace one donor."""
    return Sensitivity(1, Norm.ABSOLUTE, Relation.REPLACE_ONE, "row-radius", Unit.DONOR)


def release_radius(rows: Integers, periods: int, label: str, allotment: Allotment, loss: ZCDP | NoPrivacy) -> int:
    """Release a radius that about ``WITHIN`` of the rows keep: a binary search of ``STEPS`` noisy counts."""
    candidates = radii(periods)
    each = loss.part(Fraction(1, STEPS))
    low, high = 0, len(candidates) - 1
    for step in range(STEPS):
        middle = (low + high) // 2
        query = Query(rows_within(rows, candidates[middle]), count_sensitivity(), f"{label} {step + 1}")
        enough = gaussian(query, allotment, each) >= WITHIN * len(rows)
        low, high = (low, middle) if enough else (min(middle + 1, high), high)
    return candidates[high]


def sum_sensitivity(radius: int) -> Sensitivity:
    """Return 2C, in l2.  *Guarantee*: claim ``clipped-sum``, replace one donor."""
    return Sensitivity(2 * radius, Norm.L2, Relation.REPLACE_ONE, "clipped-sum", Unit.DONOR)


def products(rows: Integers) -> Integers:
    """Return the weighted upper triangle of Σ rr' as whole numbers: 5 times the diagonal, 7 times what is off it."""
    total = rows.T @ rows
    weighted = np.where(np.eye(len(total), dtype=bool), DIAGONAL * total, OFF * total)
    return weighted[np.triu_indices(len(total))]


def products_sensitivity(radius: int) -> Sensitivity:
    """Return 5√2 C², rounded up, in l2.  *Guarantee*: claim ``clipped-products``, replace one donor."""
    bound = math.isqrt(2 * DIAGONAL**2 * radius**4) + 1
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "clipped-products", Unit.DONOR)


def symmetric(triangle: Reals, periods: int) -> Reals:
    """Return the symmetric matrix of a weighted upper triangle."""
    matrix = np.zeros((periods, periods))
    matrix[np.triu_indices(periods)] = triangle
    matrix /= np.where(np.eye(periods, dtype=bool), DIAGONAL, OFF)
    return np.asarray(matrix + np.triu(matrix, 1).T)


def check_scales(periods: int, loss: ZCDP) -> None:
    """Raise a FenceError if, at the largest radius, some noise would pass the largest scale that is drawn."""
    top = largest_length(periods)
    gaussian_scale(products_sensitivity(top).bound, loss.part(SHARES["covariance"]))
    gaussian_scale(2 * top, loss.part(SHARES["mean"]))


def release(rows: Integers, start: int, allotment: Allotment, loss: ZCDP | NoPrivacy) -> FactorRelease:
    """Release radius, mean, radius of what is left, covariance.

    z_i = row less its own last value before the start;  mean = Σ clip(z_i, C1)/n;  r_i = clip(z_i − mean, C2);
    covariance = Σ r_i r_i'/n
    """
    z = from_last(rows, start)
    n, periods = z.shape
    first = release_radius(z, periods, "radius", allotment, loss.part(SHARES["radius"]))
    share = loss.part(SHARES["mean"])
    total = gaussian(Query(within_radius(z, first).sum(axis=0), sum_sensitivity(first), "mean"), allotment, share)
    mean = np.rint(np.asarray(total) / n).astype(np.int64)
    mean = np.clip(mean, -2 * GRID, 2 * GRID)
    residual = z - mean
    second = release_radius(residual, periods, "residual radius", allotment, loss.part(SHARES["residual radius"]))
    portion = loss.part(SHARES["covariance"])
    triangle = gaussian(
        Query(products(within_radius(residual, second)), products_sensitivity(second), "covariance"), allotment, portion
    )
    squared = float(n) * GRID * GRID
    return FactorRelease(
        mean=mean / GRID,
        covariance=symmetric(np.asarray(triangle, dtype=np.float64), periods) / squared,
        mean_noise=deviation_of(2 * first, share) / (n * GRID),
        covariance_noise=deviation_of(products_sensitivity(second).bound, portion) / (DIAGONAL * squared),
    )


@dataclass(frozen=True, eq=False)
class Forecaster:
    """The regression of the future on the past that a released model implies, slopes of shape (T0, m).

    ``rank`` factors are kept, ``loadings`` √eigenvalue times eigenvector of each; ``residual`` is the covariance of
    what the past leaves open of the future.
    """

    start: int
    mean: npt.NDArray[np.float64]
    slopes: npt.NDArray[np.float64]
    rank: int
    loadings: npt.NDArray[np.float64]
    residual: npt.NDArray[np.float64]

    def change(self, z: Reals) -> Reals:
        """Return the predicted future of rows less their last value, shape (…, T) to (…, m)."""
        predicted: Reals = self.mean[self.start :] + (z[..., : self.start] - self.mean[: self.start]) @ self.slopes
        return predicted


LEAST_VARIANCE = 1e-4
"""Least variance of what no factor holds: a fiftieth of the range, squared and quartered."""


def forecaster(model: FactorRelease, start: int) -> Forecaster:
    """Return the regression: released numbers only, hence free.

    Eigenvalues w of the covariance above s√(2T) are kept, s the noise on a diagonal entry, as (w + √(w² − 2Ts²))/2:
    the value whose noisy image w is.  What is left is spread evenly: s_r².  L = Σ (w − s_r²)₊ vv',
    slopes = (L_pre,pre + s_r² I)⁻¹ L_pre,post.
    """
    periods = len(model.mean)
    values, vectors = np.linalg.eigh((model.covariance + model.covariance.T) / 2)
    s = model.covariance_noise
    kept = values > max(s * math.sqrt(2 * periods), 0.0)
    shrunk = (values + np.sqrt(np.maximum(values * values - 2 * periods * s * s, 0))) / 2
    shrunk = np.where(kept, shrunk, 0)
    rank = int(kept.sum())
    left = max(float(np.trace(model.covariance)), 0.0) - float(shrunk.sum())
    # No smaller than a solve in floats can tell from 0 beside the largest eigenvalue.
    rest = max(left / max(periods - rank, 1), LEAST_VARIANCE, 1e-11 * float(shrunk.max()))
    low = (vectors * np.maximum(shrunk - rest, 0)) @ vectors.T
    before = low[:start, :start] + rest * np.eye(start)
    slopes = np.linalg.solve(before, low[:start, start:])
    residual = low[start:, start:] + rest * np.eye(periods - start) - low[:start, start:].T @ slopes
    order = np.argsort(-shrunk)[:rank]
    loadings = (vectors[:, order] * np.sqrt(shrunk[order])).T
    return Forecaster(start, model.mean, slopes, rank, loadings, residual)


@dataclass(frozen=True, kw_only=True)
class Factor(SyntheticMethod):
    """A factor model of the donors, released once for all targets: for many donors, ``ZCDP`` or ``ApproxDP``."""

    name: ClassVar[str] = "factor"
    about: ClassVar[str] = "a factor model of the donors"
    shared: ClassVar[bool] = True
    has_placebos: ClassVar[bool] = True
    proofs: ClassVar[tuple[str, ...]] = PROOFS

    def pay(self, loss: Loss, question: Treated) -> tuple[Loss, str]:
        if isinstance(loss, PureDP):
            raise LossError("the factor model is paid for in ZCDP or ApproxDP with delta above 0; matched takes PureDP")
        self.currency(loss)  # refuses a loss that pays for no Gaussian noise
        return loss, ""

    def expected_noise(self, question: Treated, target: Any, free: DonorFree, base: Any) -> float | None:
        """Return that of the mean, of rows twice as long as the target's own changes."""
        if not isinstance(base, ZCDP):
            return None
        check_scales(question.periods, base)
        radius = 2 * free.last_error * math.sqrt(question.periods)
        return gaussian_scale(2 * radius, base.part(SHARES["mean"])) / question.panel.n

    def begun(self, scaled: Reals, question: Treated, plan: Plan, allotment: Allotment) -> Any:
        """Release the model, and keep the donors' changes."""
        base: Any = plan.base
        rows, before = on_grid(scaled), question.before
        return release(rows, before, allotment, base.part(plan.path)), from_last(rows, before)

    def path(self, begun: Any, question: Treated, plan: Plan, spent: Loss, allotment: Allotment) -> Path:
        (model, z), before = begun, question.before
        y = to_scale(question.panel.series(plan.target), question.panel.bounds)
        fitted = forecaster(model, plan.start)
        change = fitted.change(y - y[before - 1])
        centre, slopes = on_grid(model.mean), fitted.slopes.mean(axis=1)
        donors, own = (
            mean_residuals(some - centre, plan.start, slopes) for some in (z, from_last(on_grid(y[None]), before))
        )
        # Of the mean residual as the model has it, and of the mean future itself, whichever makes the larger cut.
        left = max(float(fitted.residual.mean()), LEAST_VARIANCE / plan.after)
        whole = float(model.covariance[plan.start :, plan.start :].mean())
        variance = max(left, whole / 4)
        return Path(
            values=y[before - 1] + change, noise=None, loadings=fitted.loadings, own=int(own[0]), total=float(len(z)),
            placebos=Placebos(donors, np.full(len(z), FULL)), cut=CUT_IN_DEVIATIONS * variance**0.5,
        )  # fmt: skip
