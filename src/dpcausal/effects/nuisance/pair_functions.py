"""Functions of two features, and how alike they are: of normal scores with the released correlation.

Functions of several pairs are alike where the features are correlated, and each has a part along single features.
Weights, and the check's products, count what each has of its own.  Bins and correlations were released; the points at
which means are taken are public.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.effects.nuisance.features import Feature
from dpcausal.effects.nuisance.models import OF_TREATMENT, THRESHOLD, Models, PairFunction, Table
from dpcausal.privacy.noise import generator_from_seed

FROM_A_FUNCTION = 0.3
LOUDEST = 0.115
"""Several functions a pair where the noise of all together moves the probability by at most so much."""
POINTS, SEED = 4096, 7_130_244_961_852_083
"""At so many points means are taken."""
LEAST_LEFT = 0.45
"""A function is not used where single features and earlier functions leave less of its mean square."""


def functions_of(
    features: Sequence[Feature], pairs: Sequence[tuple[int, int]], n: int, rho: float, products: bool = True
) -> tuple[PairFunction, ...]:
    """Return the functions of pairs, at most nine, four or one a pair by public numbers. ``rho`` pays for them
    (infinity: no noise).  ``products`` says that products of columns are columns of the lines: otherwise functions of
    ranks replace them."""
    functions = tuple[PairFunction, ...]()
    for most in (3, 2, 1):
        functions = functions_of_kinds(features, pairs, "stb"[:most] if products else "rtb"[:most])
        own = math.sqrt(sum(one.size**2 for one in functions) / rho) / n
        if 2 * OF_TREATMENT * own * math.sqrt(len(functions)) <= LOUDEST:
            break
    return functions


def functions_of_kinds(
    features: Sequence[Feature], pairs: Sequence[tuple[int, int]], kinds: str
) -> tuple[PairFunction, ...]:
    own = [feature.own_kinds(kinds) for feature in features]
    return tuple(PairFunction((i, j), one + other) for i, j in pairs for one in own[i] for other in own[j])


@dataclass(frozen=True)
class PairGeometry:
    """Functions of pairs, what goes along the quarters of single features in each, and mean products of the rest."""

    functions: tuple[PairFunction, ...]
    mains: Reals
    """By the quarters of all features, shape (4 d, K)."""
    gram: Reals
    squares: Reals
    """Mean squares of the functions themselves."""

    @classmethod
    def of(cls, models: Models, functions: tuple[PairFunction, ...], correlation: Reals) -> Self:
        cells = _points(models.features, correlation)
        values = np.stack([models.values(cells, one) for one in functions], axis=1)
        quarters = [feature.wider(4)[own] for feature, own in zip(models.features, cells, strict=True)]
        dummies = np.concatenate([np.eye(4)[own] for own in quarters], axis=1)
        mains = np.linalg.lstsq(dummies, values)[0]
        own = values - dummies @ mains
        return cls(functions, mains, own.T @ own / POINTS, np.square(values).mean(axis=0))

    @property
    def orthonormal(self) -> Reals:
        """What makes sums along orthonormal functions of sums along these, shape (K' ≤ K, K): one after another."""
        rows = np.zeros((0, len(self.gram)))
        for place, unit in enumerate(np.eye(len(self.gram))):
            row = unit - (rows @ self.gram[place]) @ rows
            left = float(row @ self.gram @ row)
            if left >= LEAST_LEFT * self.squares[place]:
                rows = np.vstack([rows, row / math.sqrt(left)])
        return rows

    def weights(self, sums: Reals, deviations: Reals, variances: tuple[float, float], count: float) -> Reals:
        """Return the weights of the functions in both models, 0 where noisy sums are not clear."""
        own, weights = np.diagonal(self.gram), np.zeros_like(sums)
        used = (np.abs(self.orthonormal) > 1e-12).any(axis=0)
        for model, (noisy, deviation, variance) in enumerate(zip(sums, deviations, variances, strict=True)):
            clear = used & (np.abs(noisy) > THRESHOLD * np.hypot(deviation, np.sqrt(count * variance * own)))
            among = np.flatnonzero(clear)
            weights[model, among] = np.linalg.solve(self.gram[np.ix_(among, among)], noisy[among]) / count
        most = FROM_A_FUNCTION / np.sqrt(self.squares)
        weights[0] = np.clip(weights[0], -most, most)
        return weights

    def without_mains(self, features: Sequence[Feature], weights: Reals) -> tuple[Table, ...]:
        """Return tables that take away what weighted functions have along single features."""
        along = -(weights @ self.mains.T).reshape(2, len(features), 4)
        return tuple(
            Table((place,), (4,), along[0, place][feature.wider(4)], along[1, place][feature.wider(4)], np.zeros(2))
            for place, feature in enumerate(features) if along[:, place].any()
        )  # fmt: skip


def _points(features: Sequence[Feature], correlation: Reals) -> list[Integers]:
    """Return the fine cells of public points, by features: normal scores with a correlation, in the released counts."""
    from scipy.special import ndtr

    eigenvalues, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    root /= np.linalg.norm(root, axis=1, keepdims=True)
    scores = generator_from_seed(SEED).standard_normal((POINTS, len(features))) @ root.T
    cumulated = (np.cumsum(feature.density) / feature.density.sum() for feature in features)
    return [np.minimum(np.searchsorted(own, ndtr(score)), len(own) - 1)
            for own, score in zip(cumulated, scores.T, strict=True)]  # fmt: skip
