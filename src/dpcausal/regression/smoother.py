"""Residuals of several columns given several others, inside one block: kernel ridge.

    R = (I − H) U,  H = K (K + αI)⁻¹

* U holds the responses, centred and of variance 1.
* K_ij is the kernel of the given columns at rows i and j: Gaussian in a number, equality in a level; those
  of several columns are added.  LINEAR z_i·z_j is added too, so that slopes hardly shrink: a Gaussian kernel alone
  falls back to the mean where values are rare, and a true null is then rejected.
* α is half the share of variance that a first fit with α = 1 leaves unexplained: a bias that x and y share counts more
  than prediction.

Up to ``EXACT_ROWS`` rows, and where rows are fewer than pairs of features, K itself is decomposed; above, random
Fourier features replace the Gaussian kernels.  Nothing here is private.  It is total: what has no finite answer is 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.privacy.noise import PublicGenerator

EXACT_ROWS = 250
"""Largest number of rows whose kernel matrix is decomposed."""
PAIRS = 60
"""Pairs of random features for one number."""
LEAST_PAIRS, MOST_PAIRS = 40, 1000
"""Pairs for each of many numbers; in all, so that hundreds of numbers have fewer each."""
WIDTH = 0.25
"""Width of a Gaussian kernel, in standard deviations of its column."""
LINEAR = 10.0
"""Weight of the linear kernel beside Gaussian kernels of weight 1."""
TRIAL_ROWS, CLEARLY = 2_000, 0.04
"""Rows on which narrower kernels are tried, and the share of variance that one must explain more."""
CHUNK_ROWS = 8192
UNDERSMOOTHING, LEAST_SHARE = 0.5, 1e-3
"""α over the unexplained share, and the least α."""
NEGLIGIBLE = 1e-10
"""Residuals of less than this share of a column's standard deviation are rounding: they count as 0."""


@dataclass(frozen=True, eq=False, repr=False)
class Given:
    """The columns that are conditioned on: numbers, shape (n, d); codes of levels, shape (n, k); numbers of levels."""

    numbers: Reals
    levels: Integers
    sizes: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        return int(self.numbers.shape[0])

    @property
    def empty(self) -> bool:
        return bool(self.numbers.shape[1] + self.levels.shape[1] == 0)

    def at(self, rows: Integers) -> Given:
        return Given(self.numbers[rows], self.levels[rows], self.sizes)

    def indicators(self, first: int = 0) -> list[Reals]:
        """Return columns of zeros and ones for the levels from ``first`` on, those that no row has included."""
        both = zip(self.levels.T, self.sizes, strict=True)
        return [(codes[:, None] == np.arange(first, size)).astype(np.float64) for codes, size in both]


@dataclass(frozen=True, eq=False, repr=False)
class Smoothed:
    """Residuals, shape (n, q), 0 in columns that the given ones determine, and how unequal their leverages are.
    ``spread`` is ρ = n tr((I − H)⁴) / tr((I − H)²)², at least 1: the variance of Σ r_x r_y over independent noise, over
    what permuting one of them shows."""

    residuals: Reals
    spread: float


def standardised(columns: Reals) -> Reals:
    """Return columns less their mean over their standard deviation; constant ones, and what is not finite, are 0."""
    with np.errstate(all="ignore"):
        centred = columns - columns.mean(axis=0)
        spread = centred.std(axis=0)
        scaled = np.where((spread > 0) & (np.ptp(columns, axis=0) > 0), centred / spread, 0.0)
    return np.where(np.isfinite(scaled), scaled, 0.0)


def smooth(given: Given, responses: Reals, generator: PublicGenerator) -> Smoothed:
    """Return the residuals of each response given the columns; the features' random draws are this block's own."""
    n = given.rows
    U = standardised(responses)
    if given.empty:
        return Smoothed(U, 1.0)
    z, levels = standardised(given.numbers), given.levels
    exact = _has_few_rows(n, z.shape[1])
    width = WIDTH if exact else _kernel_width(z, levels, U, generator)
    features = _Features(z, levels, width, generator)
    values, vectors, projected = _kernel_decomposition(z, levels, U) if exact else _feature_decomposition(features, U)
    alpha = max(LEAST_SHARE, UNDERSMOOTHING * _unexplained_share(U, projected, values))
    shrunk = alpha / (values + alpha)
    if exact:
        R = vectors @ (shrunk[:, None] * projected)
    else:
        weights = vectors @ (((1 - shrunk) / np.sqrt(values))[:, None] * projected)
        R = U.copy()
        for part, rows in features.chunks():
            R[part] -= rows @ weights
    rest = n - values.size
    spread = n * (rest + float(np.sum(shrunk**4))) / (rest + float(np.sum(shrunk**2))) ** 2
    R = np.where(np.isfinite(R), R, 0.0)
    R -= R.mean(axis=0)
    R[:, R.std(axis=0) < NEGLIGIBLE] = 0.0
    return Smoothed(R, spread if math.isfinite(spread) and spread >= 1 else 1.0)


def _has_few_rows(n: int, numbers: int) -> bool:
    return n <= max(EXACT_ROWS, _pair_count(numbers) * numbers)


def _unexplained_share(U: Reals, projected: Reals, values: Reals) -> float:
    n, shrunk = len(U), 1 / (values + 1)
    left = (U**2).sum(axis=0) - (projected**2 * (1 - shrunk**2)[:, None]).sum(axis=0)
    freedom = max(1 - float(np.sum(values * shrunk)) / n, 0.05)
    shares = np.maximum(left, 0) / n / freedom**2
    known = shares[(U**2).sum(axis=0) > 0]
    return float(np.clip(known.min(initial=1.0), LEAST_SHARE, 1.0))


def _kernel_width(z: Reals, levels: Integers, U: Reals, generator: PublicGenerator) -> float:
    """Return the usual width, a third or a ninth of it: the widest that leaves nearly as little unexplained. *Clearly*:
    by ``CLEARLY`` of the variance, for the ninth by 40/n more, in up to ``TRIAL_ROWS`` rows.  A kernel that is too
    narrow costs power; one that is too wide leaves a bias that x and y may share."""
    rows = np.linspace(0, len(z) - 1, min(len(z), TRIAL_ROWS)).astype(np.int64)
    best, least = WIDTH, math.inf
    for trial, gain in ((WIDTH, 0.0), (WIDTH / 3, CLEARLY), (WIDTH / 9, CLEARLY + 40 / rows.size)):
        values, _, projected = _feature_decomposition(_Features(z[rows], levels[rows], trial, generator), U[rows])
        share = _unexplained_share(U[rows], projected, values)
        if share < least - gain:
            best, least = trial, share
    return best


def _pair_count(numbers: int) -> int:
    d = max(numbers, 1)
    return min(max(LEAST_PAIRS, PAIRS // d), max(4, MOST_PAIRS // d))


def _kernel_decomposition(z: Reals, levels: Integers, U: Reals) -> tuple[Reals, Reals, Reals]:
    K = np.zeros((len(z), len(z)))
    for column in z.T:
        K += np.exp(-0.5 * (np.subtract.outer(column, column) / WIDTH) ** 2)
    for codes in levels.T:
        K += np.equal.outer(codes, codes)
    K += LINEAR * (z @ z.T)
    values, vectors = _eigen_decomposition(K)
    return values, vectors, vectors.T @ U


def _feature_decomposition(features: _Features, U: Reals) -> tuple[Reals, Reals, Reals]:
    gram, moments = np.zeros((features.size, features.size)), np.zeros((features.size, U.shape[1]))
    for part, rows in features.chunks():
        gram += rows.T @ rows
        moments += rows.T @ U[part]
    values, vectors = _eigen_decomposition(gram)
    positive = values > 1e-10 * float(values[-1])
    values, vectors = values[positive], vectors[:, positive]
    return values, vectors, (vectors.T @ moments) / np.sqrt(values)[:, None]


def _eigen_decomposition(matrix: Reals) -> tuple[Reals, Reals]:
    from scipy.linalg import eigh

    values, vectors = eigh(matrix, check_finite=False, driver="evd", overwrite_a=True)
    return np.maximum(values, 0), vectors


class _Features:
    def __init__(self, z: Reals, levels: Integers, width: float, generator: PublicGenerator) -> None:
        self.z, self.levels = z, levels
        d = z.shape[1]
        self.pairs = _pair_count(d)
        self.frequencies = [generator.standard_normal((1, self.pairs)) / width for _ in range(d)]
        # The codes that occur; a level that does not occur would have no weight.
        self.codes = [np.unique(codes) for codes in levels.T]
        self.size = 2 * self.pairs * d + d + sum(codes.size for codes in self.codes)

    def chunks(self) -> Iterator[tuple[slice, Reals]]:
        for start in range(0, len(self.z), CHUNK_ROWS):
            part = slice(start, min(start + CHUNK_ROWS, len(self.z)))
            rows, place = np.empty((part.stop - part.start, self.size)), 0
            for column, frequencies in zip(self.z[part].T, self.frequencies, strict=True):
                angles = column[:, None] @ frequencies
                np.cos(angles, out=rows[:, place : place + self.pairs])
                np.sin(angles, out=rows[:, place + self.pairs : place + 2 * self.pairs])
                place += 2 * self.pairs
            rows[:, :place] /= math.sqrt(self.pairs)
            rows[:, place : place + self.z.shape[1]] = math.sqrt(LINEAR) * self.z[part]
            place += self.z.shape[1]
            for codes, known in zip(self.levels[part].T, self.codes, strict=True):
                rows[:, place : place + known.size] = codes[:, None] == known
                place += known.size
            yield part, rows
