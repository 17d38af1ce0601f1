"""Means of differences in differences by cohort and period, with the covariance of all of them and that of the noise.

That of the delta method, whose gradients are those of complex steps: exact, as every answer is a ratio of sums.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.privacy.noise import generator_from_seed

Pair = tuple[int, int]
"""The places of a cohort and of a period."""
DRAWS, FEW_DRAWS = 20_000, 2_000
LEAST_COUNT, LEAST_VARIANCE = 30.0, 2.0
"""A cohort of fewer persons has an unbiased variance; of fewer than two, that of the other cohorts: without noise."""


def controls_of(starts: Sequence[int], enough: Sequence[int], never_only: bool, pair: Pair) -> list[int]:
    """Return the cohorts among ``enough`` that a cohort in a period is compared with."""
    g, t = pair
    late = max(t, starts[g] - 1)
    return [c for c in enough if starts[c] == -1 or (not never_only and c != g and starts[c] > late)]


class CohortContrasts:
    """All ATT(g, t), then their means, with their covariance and that of the noise.

    ``single`` makes the effects of counts and sums by cohort; ``deviations`` are those of the noise of both, ``more``
    and ``chance`` the errors of the effects, of noise and of chance, that the sums do not show; ``gradient``, shape
    (cohorts, effects, 1 + d), is that by counts and sums.
    """

    def __init__(
        self, single: Callable[[Any, Any], dict[Pair, Any]], counts: Reals, sums: Reals, squares: Reals,
        deviations: Reals, enough: list[int], means: list[list[Pair]], more: Reals, chance: Reals,
    ) -> None:  # fmt: skip
        cohorts, d = sums.shape

        def answers(counts: Any, sums: Any) -> Any:
            of = single(counts, sums)
            pooled = [sum(counts[g] * of[g, t] for g, t in mean) / sum(counts[g] for g, _ in mean) for mean in means]
            return np.array([*of.values(), *pooled])

        counts = np.where([g in enough for g in range(cohorts)], counts, 1.0)
        self.values = np.real(answers(counts, sums)).astype(np.float64)
        size, step = len(self.values), 1e-200
        self.gradient = gradient = np.zeros((cohorts, size, 1 + d))
        for g in enough:
            for entry in range(1 + d):
                moved_counts, moved_sums = counts.astype(complex), sums.astype(complex)
                if entry:
                    moved_sums[g, entry - 1] += 1j * step
                else:
                    moved_counts[g] += 1j * step
                gradient[g, :, entry] = np.imag(answers(moved_counts, moved_sums)) / step
        self.covariance, self.noise = np.zeros((size, size)), np.zeros((size, size))
        for errors, parts in ((more, (self.covariance, self.noise)), (chance, (self.covariance,))):
            own = dict(zip(single(counts, sums), errors, strict=True))
            whole = [sum(counts[g] * own[g, t] for g, t in mean) / sum(counts[g] for g, _ in mean) for mean in means]
            left = np.array([*errors, *whole])
            for part in parts:
                part += np.outer(left, left)
        outer = {g: np.outer(sums[g], sums[g]) / counts[g] for g in enough}
        several = [g for g in enough if counts[g] >= LEAST_VARIANCE]
        self.pooled = bool(several)
        within = sum((squares[g] - outer[g] for g in several), np.zeros((d, d)))
        within /= max(sum(counts[g] - 1 for g in several), 1.0)
        for g in enough:
            count, square = counts[g], squares[g]
            if count < LEAST_VARIANCE:  # these and the next without noise alone
                square = outer[g] + count * within
            elif count < LEAST_COUNT:  # an unbiased variance
                square = square + (square - outer[g]) / (count - 1)
            matrix = np.block([[np.full((1, 1), count), sums[g][None]], [sums[g][:, None], square]])
            eigenvalues, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
            root = gradient[g] @ (vectors * np.sqrt(np.maximum(eigenvalues, 0.0)))
            noise = gradient[g] * deviations
            self.covariance += root @ root.T + noise @ noise.T
            self.noise += noise @ noise.T


def widest(covariance: Reals, coverage: float) -> float:
    """Return the factor of the errors at which intervals for all hold at once: a quantile of the largest |t|."""
    errors = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    eigenvalues, vectors = np.linalg.eigh(covariance / np.outer(errors, errors))
    drawn = generator_from_seed(2).normal(0, 1, (DRAWS, len(errors))) * np.sqrt(np.maximum(eigenvalues, 0.0))
    return float(np.quantile(np.abs(drawn @ vectors.T).max(axis=1), coverage))


def taken_of_mean(mean: Reals, radius: float) -> float:
    """Return what shortening to a radius took of a mean, as a share of what it left, of normal rows of variance 1."""
    if not len(mean):
        return 0.0
    length, drawn = float(np.linalg.norm(mean)), generator_from_seed(4).normal(0, 1, (FEW_DRAWS, len(mean)))
    before = length = max(length, 1e-9)
    drawn = np.concatenate([drawn, -drawn])
    across = (drawn[:, 1:] ** 2).sum(axis=1)
    for _ in range(20):
        along = before + drawn[:, 0]
        before += length - float((along * np.minimum(1.0, radius / np.sqrt(along**2 + across))).mean())
    return max(before / length - 1, 0.0)
