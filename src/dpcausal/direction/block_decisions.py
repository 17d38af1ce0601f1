"""What one block says of a pair, in four bits: associated, which way it favours, and in which directions the residuals
depend on the cause.

A bit is a function of the block's own rows and public random numbers, so a row moves each of the four counts by at most
1.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dpcausal.direction.scores.anm import WIDTH_SHARE
from dpcausal.direction.scores.lsnm import (
    LEAST_VALUES,
    Column,
    Spline,
    half_score,
    heaped,
    joint_normality_pvalue,
    with_unit_spread,
)
from dpcausal.privacy.noise import generator_from_seed

Bits = tuple[bool, bool, bool, bool]

LEVEL = 0.1
"""A test inside a block rejects below this p-value."""

WIDTH_ROWS = 100
"""Rows whose distances a kernel's width is taken from."""

SKEWED = 0.05
"""Least third cumulant of a part, in units of the whole variance to the power 3/2, that counts as skewed."""

CANCELLED = 0.65
"""Parts are skewed against each other if their third cumulants add to less than this share of the larger one."""

ADDITIVE, SCALED = "additive", "location-scale"
MODELS = ADDITIVE, SCALED
"""y = f(x) + e, and y = f(x) + s(x)·e, with e independent of x: what a direction is held against."""

THIN = (0.4, 0.5, 0.4, 0.4)
"""Chances of the random numbers of a thin block: by them alone no verdict comes out more often than its level."""

NO_NOISE = 0.01
"""A column that the other leaves so little of, in its standard deviations, or less, is the same thing again."""


def kernel(values: Column) -> tuple[Column, Column]:
    some = values[:WIDTH_ROWS]
    median = float(np.median(np.abs(some[:, None] - some)[_upper_triangle(len(some))]))
    scaled = values / (WIDTH_SHARE * (median if median > 0 else 1.0))
    K = np.exp(-((scaled[:, None] - scaled) ** 2))
    means = K.mean(axis=0)
    return K, K - means[:, None] - means + means.mean()


@lru_cache(maxsize=8)
def _upper_triangle(n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    return np.triu_indices(n, 1)


def dependence_pvalue(first: tuple[Column, Column], second: tuple[Column, Column]) -> float:
    """Return HSIC's p-value by a gamma distribution of its null moments: Gretton et al. (2008), section 3."""
    from scipy.special import gammaincc

    (K, centred_K), (L, centred_L) = first, second
    n = len(K)
    products = centred_K * centred_L
    statistic = float(products.sum()) / n
    squares = float((products**2).sum() - (np.diagonal(products) ** 2).sum()) / 36 / n / (n - 1)
    variance = 72 * (n - 4) * (n - 5) / n / (n - 1) / (n - 2) / (n - 3) * squares
    k, m = ((float(M.sum()) - n) / n / (n - 1) for M in (K, L))
    mean = (1 + k * m - k - m) / n
    return float(gammaincc(mean**2 / variance, statistic * mean / (variance * n)))


def is_cancelled(response: Column, left: Column) -> bool:
    """Return whether what a regressor explains of a column and what it leaves over are skewed against each other. Third
    cumulants of independent parts add; they cancel by rule where x is regressed on an effect of it, and in products of
    common causes."""
    parts = [values - values.mean() for values in (response - left, left)]
    scale = sum(float(np.mean(part**2)) for part in parts) ** 1.5
    explained, rest = (float(np.mean(part**3)) for part in parts)
    sizes = abs(explained), abs(rest)
    return explained * rest < 0 and min(sizes) > SKEWED * scale and abs(explained + rest) < CANCELLED * max(sizes)


def of_block(x: Column, y: Column, seed: int, model: str = ADDITIVE) -> Bits:
    """Return (associated, favours x as the cause, residuals dependent x → y, and y → x) of a block's rows; it may fail.
    It favours at random where columns are coarse or heaped, or could be Gaussian but for their scales; and, of additive
    noise, away from the cause that it would name where the skewnesses of the effect's two parts cancel.  Of two columns
    that say the same, as in two units, both directions fit."""
    rng = generator_from_seed(seed)
    is_fine = not any(heaped(values).any() or len(np.unique(values)) < LEAST_VALUES for values in (x, y))
    x, y = with_unit_spread(x, y, rng)
    forward, left_y, rest_y = half_score(x, Spline(x), y)
    backward, left_x, rest_x = half_score(y, Spline(y), x)
    margin = backward - forward
    is_clear = is_fine and math.isfinite(margin) and margin != 0 and joint_normality_pvalue(x, y) < LEVEL
    is_forward = margin > 0
    against = model == ADDITIVE and is_cancelled(*((y, left_y) if is_forward else (x, left_x)))
    favours = is_forward != against if is_clear else bool(rng.random() < 0.5)
    of_x, of_y = kernel(x), kernel(y)
    if min(left_y.std(), left_x.std()) <= NO_NOISE:  # of columns with variance 1
        return True, bool(rng.random() < 0.5), False, False
    judged_y, judged_x = (left_y, left_x) if model == ADDITIVE else (rest_y, rest_x)
    tests = (of_x, of_y), (of_x, kernel(judged_y)), (of_y, kernel(judged_x))
    linked, misfits, misfits_back = (dependence_pvalue(*pair) < LEVEL for pair in tests)
    return linked, favours, misfits, misfits_back


def random_bits(seed: int, chances: tuple[float, ...] = THIN) -> Bits:
    a, d, f, g = (generator_from_seed(seed).random(4) < chances).tolist()
    return a, d, f, g


def bits_of_failure(seed: int) -> Bits:
    """Return the bits of a block whose columns are constant or whose fit fails: a random favoured side, the rest 0."""
    return random_bits(seed, (0.0, 0.5, 0.0, 0.0))
