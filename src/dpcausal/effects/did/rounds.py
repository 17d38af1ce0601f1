"""Rounds of sums by cohort of persons' rows: what middle and shape they have, how long they are, and the sums."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.data.records import Rows
from dpcausal.effects.clusters import SPREADS, ClusterVariance, group_sums, release_variances
from dpcausal.effects.did.cohort_sums import cohort_sums, cohort_sums_sensitivity, factors
from dpcausal.effects.did.release import Comparisons, NoisyPaths
from dpcausal.effects.moments import adaptive
from dpcausal.effects.moments.adaptive import SCALES, WHOLE, Shape, tail_radius, whitened
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP
from dpcausal.privacy.sensitivity import Query
from dpcausal.statistics.moments import grid_bits, squared_lengths, unpacked_matrix

FIRST_TAIL = 0.3
MEAN = Fraction(1, 2)
"""Of the loss for clusters, the share of the mean effect; each event has as much of the rest."""
FARTHEST, SURE = 3, 1.5
LONGER, CLEAR = 1.5, 4.0
"""Rows of a length count as more than normal ones where they are so many times as many, and more by so many deviations
of the noise: by chance alone in one of 600 calls."""


class CohortSums(NamedTuple):
    """Noisy counts, sums and squares of rows z by cohort; a row is its cohort's middle + spread z."""

    shape: Shape
    counts: Reals
    sums: Reals
    squares: Reals
    lost: float
    radius: float
    deviation: float

    def about_means(self) -> Shape:
        """Return each cohort's own middle, and the shape within cohorts."""
        d, number = len(self.shape.spread), len(self.counts)
        # The mean of a cohort whose count noise hides is shrunk towards the middle that it had.
        counts = np.maximum(self.counts, 2 * self.deviation)
        means = np.clip(self.sums / counts[:, None], -self.radius, self.radius)
        total = max(float(self.counts.sum()), float(counts.max()))
        within = (self.squares - counts[:, None, None] * means[:, :, None] * means[:, None, :]).sum(axis=0)
        least = self.deviation * self.radius * math.sqrt(number * d) / total
        eigenvalues, vectors = np.linalg.eigh(within / total / adaptive.shrinkage(d, self.radius))
        root = (vectors * np.sqrt(np.maximum(eigenvalues, least))) @ vectors.T
        return Shape(self.shape.middle + means @ self.shape.spread.T, self.shape.spread @ root)


def deviation_of(number: int, columns: int, radius: float, loss: ZCDP, n: int) -> float:
    """Return the deviation of the noise of sums by cohort: public."""
    bits = grid_bits(n, radius)
    return gaussian_scale(float(cohort_sums_sensitivity(number, columns, radius, bits).bound), loss) * 2.0**-bits


@dataclass(frozen=True)
class Rounds:
    """The cohorts of persons, who counts, and the budget; without privacy no ρ, and no row is shortened."""

    n: int
    number: int
    """Of cohorts."""
    cohorts: Integers
    rows: Rows
    budget: CallBudget
    rho: ZCDP | None

    def least_radius(self, columns: int, share: Fraction) -> float:
        """Return the length that rows with covariates are shortened to where they are as normal ones: public."""
        if self.rho is None:
            return 1.0
        return adaptive.lines_radius(columns, math.sqrt(2 * self.rho.part(share).rho), self.n / self.number)

    def shaped(self, columns: Reals, shaping: Fraction) -> Shape:
        """Return the middle of rows of [−1, 1] and their shape; a twentieth of ρ is for their size."""
        d = columns.shape[1]
        if self.rho is None:
            return Shape(np.zeros((self.number, d)), np.eye(d))
        held = adaptive.StreamedRows.held(columns, self.rows)
        shape = adaptive.estimate_location_scale(held, d, self.n, self.budget, self.rho, (shaping,))
        return Shape(np.tile(shape.middle, (self.number, 1)), shape.spread)

    def centred(self, shape: Shape, columns: Reals, share: Fraction) -> Shape:
        """Return the middle of each cohort's rows, and the shape within cohorts."""
        if self.rho is None:
            return shape
        return self.summed(shape, columns, tail_radius(columns.shape[1], FIRST_TAIL), share).about_means()

    def seen(self, shape: Shape, columns: Reals) -> Reals:
        inverse = np.asarray(np.linalg.inv(shape.spread), dtype=np.float64)
        return whitened(columns - shape.middle[self.cohorts], np.zeros(columns.shape[1]), inverse)

    def summed(self, shape: Shape, columns: Reals, radius: float, share: Fraction) -> CohortSums:
        number, d = self.number, columns.shape[1]
        if self.rho is None:
            return self._exact(shape, columns)
        loss, bits = self.rho.part(share), grid_bits(self.n, radius)
        claim = cohort_sums_sensitivity(number, d, radius, bits)
        sums = cohort_sums(
            self.cohorts, number, self.seen(shape, columns), self.rows.included, radius, bits, self.rows.weights
        )
        noisy = np.asarray(gaussian(Query(sums, claim, "sums of paths by cohort"), self.budget, loss), dtype=np.float64)
        count, square = factors(radius, bits)
        by_cohort = noisy[:-1].reshape(number, -1)
        squares = np.stack([unpacked_matrix(row, d) for row in by_cohort[:, 1 + d :]]) / square * 4.0**-bits
        return CohortSums(
            shape, by_cohort[:, 0] / count, by_cohort[:, 1 : 1 + d] * 2.0**-bits, squares,
            float(noisy[-1]) * 2.0**-bits * 2 / radius, radius, deviation_of(number, d, radius, loss, self.n),
        )  # fmt: skip

    def _exact(self, shape: Shape, columns: Reals) -> CohortSums:
        masses = self.rows.included * (np.ones(len(columns)) if self.rows.weights is None else self.rows.weights)
        seen, of = self.seen(shape, columns), [self.cohorts == cohort for cohort in range(self.number)]
        parts = [(seen[here], masses[here]) for here in of]
        return CohortSums(
            shape, np.array([float(mass.sum()) for _, mass in parts]), np.stack([mass @ one for one, mass in parts]),
            np.stack([(one.T * mass) @ one for one, mass in parts]), 0.0, 2 * math.sqrt(columns.shape[1]), 0.0,
        )  # fmt: skip

    def squared_lengths(self, shape: Shape, columns: Reals) -> Reals:
        return squared_lengths(self.seen(shape, columns))

    def reach(
        self, shape: Shape, columns: Reals, least: float, share: Fraction, free: int, most: float | None = None
    ) -> float:  # fmt: skip
        """Return the length to shorten to: at least so much, and the longest that more rows have than of normal ones,
        or one that at most such a share of the rows exceeds.

        These have ``free`` columns that vary.  A noisy histogram of lengths shows it, in steps of √2: long tails cost
        noise and not the answer.
        """
        from scipy.special import chdtrc

        if self.rho is None:
            return math.inf
        loss = self.rho.part(share)
        longest = np.linalg.svd(np.linalg.inv(shape.spread), compute_uv=False).max(initial=0.0)
        beyond = 2 * math.sqrt(columns.shape[1]) * float(longest) / least
        top = math.ldexp(least, FARTHEST if most else max(math.ceil(math.log2(beyond)), 0))
        claim, lengths = adaptive.scale_histograms_sensitivity(1), np.sqrt(self.squared_lengths(shape, columns))
        counts = adaptive.scale_histograms(np.minimum(lengths / top, 1.0)[:, None], self.rows.masses(WHOLE))
        noisy = np.asarray(gaussian(Query(counts, claim, "lengths"), self.budget, loss), dtype=np.float64)[0] / WHOLE
        edges = top * 2.0 ** (-np.arange(SCALES + 1) / 2)
        edges[-1] = 0.0
        total, noise = max(float(noisy.sum()), 0.0), gaussian_scale(float(claim.bound), loss) / WHOLE
        if most is None:
            full = np.flatnonzero(noisy > LONGER * total * np.diff(chdtrc(free, edges**2)) + CLEAR * noise)
        else:
            full = np.flatnonzero(np.cumsum(noisy) > most * total + SURE * noise * np.sqrt(np.arange(1, SCALES + 1)))
        return max(least, float(edges[full[0]])) if full.size else least

    def cluster_variances(
        self, paths: NoisyPaths, control: str, seen: Reals, loss: ZCDP | None
    ) -> tuple[ClusterVariance, ...]:  # fmt: skip
        """Release the variance between clusters of persons' influences on the mean effect and on each event.

        ``seen`` are the rows z of the paths.
        """
        compared = Comparisons.of(paths, control)
        chosen = slice(compared.parts[1].start, compared.parts[2].stop)
        contrasts, number = compared.contrasts, chosen.stop - chosen.start
        count = max(float(paths.counts[compared.enough].sum()), 1.0)
        own = np.diag(contrasts.covariance - contrasts.noise)[chosen]
        cuts = SPREADS * np.sqrt(np.maximum(own, 1e-200) / count)
        lengths = np.sqrt(np.maximum(squared_lengths(seen), 1e-300))
        inside = np.minimum(paths.radius / lengths, 1.0) if paths.deviation else np.ones(1)

        def sums(place: int) -> Integers:
            gradient = contrasts.gradient[:, chosen.start + place][self.cohorts]
            scores = gradient[:, 0].copy()
            for step, column in enumerate(seen.T, 1):
                scores += gradient[:, step] * (column * inside)
            return group_sums(scores / cuts[place], self.rows)

        shares = [MEAN, *[MEAN / (number - 1)] * (number - 1)] if number > 1 else [Fraction(1)] * number
        sizes = group_sums(np.ones(len(seen)), self.rows)
        variances = release_variances(sizes, map(sums, range(number)), shares, count, self.n, loss, self.budget)
        return tuple(one.scaled(float(cut)) for one, cut in zip(variances, cuts, strict=True))
