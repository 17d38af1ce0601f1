"""What sums of residuals along functions show: whether models of treatment and outcome fit, and what bias they leave.

To the second order a doubly robust score is off by E[(e − ê)(m − m̂) / (e(1 − e))].  Along orthonormal functions this
is a sum of products of two residual sums.  Fresh noise in both is independent, so the products have no bias.  The
estimate is right if either model is.  Where both bend, the mean score is off by a product of two errors, which no width
of the interval makes up for: so there is no interval where both are rejected, unless what is left is small.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.effects.nuisance.models import OF_OUTCOME, OF_TREATMENT, Models, PairFunction, within_blocks
from dpcausal.effects.nuisance.tables import LEAST_FULL
from dpcausal.effects.result import FitCheck
from dpcausal.privacy.loss import ZCDP

Step = tuple[tuple[int, ...], tuple[int, ...]]
"""Features, and into how many bins each is cut."""
WIDER = 1.69
"""The variance of the correction counts so many times in the interval."""
EMPTY = 0.05
"""A bin is empty that holds less than such a share of what it would hold if all were alike."""
GRID_ERRORS = 2.0
"""What a grid shows is taken for noise up to so many of its errors."""
LEFT = 1.2
"""Of models that fit the sums' squares are so many times those of noise and sampling, for what shrinkage leaves:
measured, so that a model that fits is rejected at level 0.05 in about one draw of ten or fewer."""
MISFIT, CLEAR_BIAS, SMALL_BIAS = 0.05, 2.0, 0.25
"""Both lines are rejected at such a level, or the bias is so many of its errors; it is small where it is, with as many
errors more, at most such a share of half the interval."""

SATURATED = 0.9
"""Residuals of the outcome are cut in an outermost bin if so many times the cut was learnt there: measured."""


def shrunken(value: float, error: float) -> float:
    """Return a value, less the nearer it is to its error."""
    return value * max(0.0, 1 - (error / value) ** 2) if value else 0.0


def saturated(models: Models) -> bool:
    """Return whether the outcome in an outermost bin of a number is farther from the line than can be learnt."""
    added = np.zeros((len(models.features), 2))
    for table in models.tables:
        if len(table.features) == 1 and models.features[table.features[0]].bins > 2:
            feature = models.features[table.features[0]]
            bins = feature.wider(table.sides[0])
            inside = [feature.density * (bins == place) for place in (bins[0], bins[-1])]
            added[table.features[0]] += [np.average(table.outcome, weights=weights) for weights in inside]
    return bool(np.abs(added).max() > SATURATED * models.scales[1])


@dataclass(frozen=True)
class Dictionary:
    """The functions along which residuals are summed for a check: by bins of features and grids, and along pairs."""

    steps: tuple[Step, ...]
    functions: tuple[PairFunction, ...] = ()

    @property
    def of_pairs(self) -> int:
        """The largest sum of squares of the functions of pairs."""
        return math.ceil(sum(one.size**2 for one in self.functions))

    @property
    def whole(self) -> int:
        """The largest sum of squares of all functions, with a mean square of 1 each."""
        return sum(math.prod(sides) for _, sides in self.steps) + self.of_pairs

    @property
    def size(self) -> int:
        """How many functions have no mean."""
        return sum(math.prod(side - 1 for side in sides) for _, sides in self.steps) + len(self.functions)

    def share(self, own: int) -> Fraction:
        """Return the share of the loss of a part: with it the noise is the same along all functions."""
        return Fraction(own, self.whole)

    def predicted_error(self, n: int, rho: ZCDP, chance: float = 0.25) -> float:
        """Return the standard deviation of the correction if both models fit, in residual deviations: public."""
        noise = 4 * self.whole / rho.rho
        of_treatment, of_outcome = noise * OF_TREATMENT**2 + n * chance, noise * OF_OUTCOME**2 + n
        return math.sqrt(self.size * of_treatment * of_outcome) / (n * n * chance)


@dataclass(frozen=True)
class Sums:
    """Noisy sums of the residuals of treatment and outcome along functions, shape (2, K), in units of both."""

    sums: Reals
    noise: Reals
    bins: tuple[int, ...]
    """Of a feature or a grid; of pair functions none."""
    margins: tuple[Reals, ...] = ()
    """The records in the bins of each feature: of a number with few values some bins are empty.  Of pair functions what
    makes sums along orthonormal ones."""
    left: Reals | float = 0.0
    """The variance that the noise of what was learnt leaves in both sums."""
    blocks: tuple[int, ...] = (1, 1)
    """Of a grid, how many cells along both features make a block that its finest level divides."""
    shares: Reals | None = None
    """Of the records, in the cells of a grid of correlated features."""

    def coefficients(self) -> tuple[Reals, Reals, int]:
        """Return the sums along orthonormal functions without means, shape (2, K), how much of the noise's variance is
        in each, and how many are free.  Cells of a grid hold their ``shares``; without these, what they would if both
        features were independent."""
        if not self.bins:
            (own,) = self.margins
            return self.sums @ own.T, np.square(own).sum(axis=1), len(own)
        if self.shares is not None:
            return self._of_correlated(self.shares)
        full, shares = [], np.ones(1)
        along, size = self.sums.reshape(2, *self.bins), math.prod(self.bins)
        for axis, counts in enumerate(self.margins, 1):
            full.append(np.flatnonzero(counts > EMPTY * counts.mean()))
            own = np.maximum(counts, LEAST_FULL * counts.mean())[full[-1]]
            own = own / own.sum()
            root = np.sqrt(own).reshape([-1 if place == axis else 1 for place in range(along.ndim)])
            along = np.take(along, full[-1], axis) / root
            along = along - root * (root * along).sum(axis=axis, keepdims=True)
            shares = np.outer(shares, own).ravel()
        free = math.prod(len(own) - 1 for own in full)
        return along.reshape(2, -1) / math.sqrt(size), 1 / (shares * size), free

    def _of_correlated(self, shares: Reals) -> tuple[Reals, Reals, int]:
        size = len(shares)
        full = np.flatnonzero(shares > EMPTY / size)
        own = np.maximum(shares, LEAST_FULL / size)[full]
        root, places = np.sqrt(own / own.sum()), np.unravel_index(full, self.bins)
        means = np.concatenate([np.eye(bins)[place] for bins, place in zip(self.bins, places, strict=True)], axis=1)
        basis, sizes, _ = np.linalg.svd(means * root[:, None], full_matrices=False)
        basis = basis[:, sizes > 1e-9 * sizes[0]]
        along = self.sums[:, full] / root
        along = along - (along @ basis) @ basis.T
        return along / math.sqrt(size), 1 / (root**2 * size), len(full) - basis.shape[1]


@dataclass(frozen=True)
class Checked:
    """The check, the correction's variance and what it would be if both models fitted."""

    check: FitCheck
    variance: float
    null: float
    finest: tuple[float, float] = (0.0, 0.0)
    """Of the correction, what the finest level of grids shows, and its error."""
    grids: tuple[tuple[float, float], ...] = ()
    """Of the correction, what each grid shows, and its error if both models fitted."""
    tail_bias: float = 0.0
    """What the outermost bin that is missed most adds to the bias, or may add where noise hides the treatment's sum."""

    @property
    def rejected(self) -> bool:
        return max(self.check.treatment_pvalue, self.check.outcome_pvalue) < MISFIT

    def beside(self, expected: float, of_grids: Sequence[float] = ()) -> float:
        """Return the correction that the estimate takes beside an expected one: less, the nearer it is to its noise."""
        rest, null, taken = self.check.correction - expected, self.null, 0.0
        for (seen, error), own in zip(self.grids, of_grids, strict=True):
            taken += shrunken(seen - own, GRID_ERRORS * error)
            rest, null = rest - (seen - own), null - error**2
        return taken + shrunken(rest, math.sqrt(max(null, 0.0)))

    def bends(self, half_width: float) -> bool:
        """Return whether both models are off by more than an interval of such a half-width bears."""
        clear = abs(self.check.correction) > CLEAR_BIAS * self.check.error
        return (self.rejected or clear) and not self.is_small(half_width)

    def is_small(self, half_width: float) -> bool:
        """Return whether the bias along the functions is at most a small share of such a half-width of an interval."""
        return abs(self.check.correction) + CLEAR_BIAS * self.check.error <= SMALL_BIAS * half_width


def checked(sums: list[Sums], variances: tuple[float, float], count: float, chance: float) -> Checked:
    """Return the check, from the ``variances`` of one row's residuals, ``count`` rows and ``chance`` e(1 − e)."""
    from scipy.special import chdtrc

    correction = variance = null = 0.0
    energies, terms, tail, tail_bias = np.zeros(2), 0, 0.0, 0.0
    finest, spread, grids = 0.0, 0.0, list[tuple[float, float]]()
    for one in sums:
        (M, N), loud, free = one.coefficients()
        size = math.prod(one.bins)
        of_m, of_n = (noise**2 * loud + count / size * own for noise, own in zip(one.noise, variances, strict=True))
        scale = size / (count**2 * chance)
        least = float(of_m @ of_n)
        correction += scale * float(M @ N)
        variance += scale**2 * max(float(M**2 @ of_n) + float(N**2 @ of_m) - least, least / 2)
        null += scale**2 * least
        left = np.zeros(2) + one.left
        energies += float((M**2 / (of_m + left[0])).sum()), float((N**2 / (of_n + left[1])).sum())
        terms += free
        if len(one.bins) == 2:
            grids.append((scale * float(M @ N), scale * math.sqrt(least)))
        if len(one.bins) == 2 and len(N) == size:
            M, N = within_blocks(np.stack([M, N]), one.bins, one.blocks)
            part = 1 - 1 / math.prod(one.blocks)
            finest += scale * float(M @ N)
            spread += part * scale**2 * max(float(M**2 @ of_n) + float(N**2 @ of_m) - part * least, least / 2)
        if len(one.bins) == 1 and len(N) > 2:
            away = np.abs(N) / np.sqrt(of_n + left[1])
            tail = max(tail, float(away[[0, -1]].max()))
            tail_bias = max(tail_bias, float((scale * np.abs(N) * np.maximum(np.abs(M), np.sqrt(of_m)))[[0, -1]].max()))
    pvalues = [float(chdtrc(terms, energy / LEFT)) for energy in energies]
    error = math.sqrt(WIDER * variance)
    check = FitCheck(correction, error, pvalues[0], pvalues[1], tail)
    return Checked(check, WIDER * variance, null, (finest, math.sqrt(spread)), tuple(grids), tail_bias)
