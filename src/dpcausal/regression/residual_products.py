"""Products of ridge residuals of x and of y given z, on all rows at once: sums with a proved sensitivity.

    w = argmin (λ/2) ‖w‖² + (1/n) Σ (x_i − w·φ_i)² = (Φ'Φ + aI)⁻¹ Φ'x,  a = nλ/2,  v the same for y

    R_i = (x_i − w·φ_i)(y_i − v·φ_i),  S1 = Σ R_i

where:

* x and y lie in [−1, 1], scaled by public bounds; φ_i is a vector of norm at most 1, a public function of z_i;
* λ is the public ``penalty`` (a is scikit-learn's ``alpha``), μ = λ/2; n is public.

The bounds hold for every φ and n, and speak of the numbers as computed: what rounding can add is part of them.  A
penalty, a kernel width or a scale that is chosen on the rows breaks them.  Proofs: ``residual_products.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.sensitivity import Norm, Sensitivity
from dpcausal.regression.ridge import solved
from dpcausal.regression.threads import one_thread

Reals = npt.NDArray[np.float64]
Chunks = Callable[[], Iterator[tuple[slice, Reals]]]
"""Yields slices of the rows and φ there; may be asked several times, and gives the same each time."""

LEAST_PENALTY, LARGEST_PENALTY = 1e-3, 1e4
CHUNK_ROWS = 8192
MOST_FEATURES = 512
MOST_ROWS = 10**8

_UP = 1 + 1e-9
_UNIT = 2.0**-53


@dataclass(frozen=True)
class Norms:
    """Largest norms, over all data, of w, of its shrunk version aA⁻¹w and of their sum: B, B2, B3 of the proofs."""

    whole: float
    shrunk: float
    sum: float


def norms(penalty: float) -> Norms:
    """Return B = max √κ/(κ + μ), B2 = max μ√κ/(κ + μ)², B3 = max √κ(κ + 2μ)/(κ + μ)², over κ in (0, 1]."""
    mu = _checked_penalty(penalty) / 2

    def at(share: float) -> tuple[float, float, float]:
        root, total = math.sqrt(share), share + mu
        return root / total, mu * root / total**2, root * (share + 2 * mu) / total**2

    # Each has its only maximum at κ = μ, μ/3 and μ(√17 − 3)/2, or at 1 if that is beyond.
    best = at(min(1.0, mu))[0], at(min(1.0, mu / 3))[1], at(min(1.0, mu * (math.sqrt(17) - 3) / 2))[2]
    return Norms(*(value * _UP for value in best))


def leverage(rows: int, penalty: float) -> float:
    """Return t = 1/(1 + a), the most by which a row's own leverage can weigh."""
    return 1 / (1 + rows * _checked_penalty(penalty) / 2) * _UP


def others_bound(penalty: float) -> float:
    """Return 2B(2 + B): the most that the products R_i of all other rows move, summed."""
    B = norms(penalty).whole
    return 2 * B * (2 + B) * _UP


def rounding(rows: int, penalty: float) -> float:
    """Return how far a computed residual is from the exact one, whatever the data: claim ``residual-rounding``.

    With p ≤ 512 features, u = 2⁻⁵³, g = (8200 + n/8192) u the error of sums, s = p (3p + 2) u that of the solution:
    1.01 [(g (1 + B) + s (1 + μ) B)/μ + (p + 3) u (1 + B)].
    """
    mu, B = _checked_penalty(penalty) / 2, norms(penalty).whole
    sums = (8200 + rows / CHUNK_ROWS) * _UNIT
    solution = MOST_FEATURES * (3 * MOST_FEATURES + 2) * _UNIT
    return 1.01 * ((sums * (1 + B) + solution * (1 + mu) * B) / mu + (MOST_FEATURES + 3) * _UNIT * (1 + B))


def _product_error(rows: int, penalty: float) -> float:
    """Return how far a computed product of residuals is from the exact one."""
    largest, error = 1 + norms(penalty).whole, rounding(rows, penalty)
    return (2 * largest * error + error**2 + (largest + error) ** 2 * _UNIT) * _UP


def _sum_error(rows: int, each: float, largest: float) -> float:
    """Return how far a computed sum over rows is from the exact one: each term's error, and that of adding up."""
    return rows * (each + (8200 + rows / CHUNK_ROWS) * _UNIT * (largest + each)) * _UP


def _sensitivity(bound: float, norm: Norm, proof: str) -> Sensitivity:
    return Sensitivity(bound * _UP, norm, Relation.REPLACE_ONE, proof)


def product_sum_bound(rows: int, penalty: float) -> float:
    """Return Δ = max(2 + 2√2 B3, 4 B3 + t) + B² + 2 B B2, in exact arithmetic."""
    found = norms(penalty)
    corners = max(2 + 2 * math.sqrt(2) * found.sum, 4 * found.sum + leverage(rows, penalty))
    return (corners + found.whole**2 + 2 * found.whole * found.shrunk) * _UP


def product_sum_sensitivity(rows: int, penalty: float) -> Sensitivity:
    """Return how far S1 moves; Kalemaj et al. (2024), Lemma 3.4, bounds all of R instead."""
    largest = (1 + norms(penalty).whole) ** 2
    error = _sum_error(rows, _product_error(rows, penalty), largest)
    return _sensitivity(product_sum_bound(rows, penalty) + 2 * error, Norm.ABSOLUTE, "residual-product-sum")


def products_sensitivity(rows: int, penalty: float) -> Sensitivity:
    """Return how far R moves in ℓ1: max(2 + 2√2 B, 4B) + B² + 2B(2 + B)."""
    B = norms(penalty).whole
    bound = max(2 + 2 * math.sqrt(2) * B, 4 * B) + B**2 + others_bound(penalty)
    return _sensitivity(bound + 2 * rows * _product_error(rows, penalty), Norm.L1, "residual-products")


def clipped_squares_sensitivity(rows: int, penalty: float, threshold: float) -> Sensitivity:
    """Return how far Σ min(R_i², τ²) moves: τ² + 4τB(2 + B)."""
    bound = threshold**2 + 2 * threshold * others_bound(penalty)
    error = _sum_error(rows, 2 * threshold * _product_error(rows, penalty), threshold**2)
    return _sensitivity(bound + 2 * error, Norm.ABSOLUTE, "clipped-product-squares")


def resample_sum_bound(rows: int, penalty: float | None) -> float:
    """Return max(2 + 2√2 B, 4B) + B², or 2 where y is not regressed, in exact arithmetic."""
    if penalty is None:
        return 2.0
    B = norms(penalty).whole
    return (max(2 + 2 * math.sqrt(2) * B, 4 * B) + B**2) * _UP


def resample_sum_sensitivity(rows: int, penalty: float | None) -> Sensitivity:
    """Return how far T = Σ r_i (y_i − v·φ_i) moves, r_i in [−1, 1] a public function of row i: one for each copy.

    Without a penalty nothing is regressed: v = 0.  *Source*: Kalemaj et al. (2024), Lemma 4.5.
    """
    if penalty is None:
        error = _sum_error(rows, _UNIT, 1.0)
    else:
        each = (rounding(rows, penalty) + 2 * _UNIT * (2 + norms(penalty).whole)) * _UP
        error = _sum_error(rows, each, 1 + norms(penalty).whole)
    return _sensitivity(resample_sum_bound(rows, penalty) + 2 * error, Norm.LINF, "resample-product-sum")


def local_bound(norm: float, rows: int, penalty: float) -> float:
    """Return h(N) = max(2 + 4√2 N, 8N + t) + 3N²: how far S1 moves where w and v of the common rows have norm ≤ N."""
    return max(2 + 4 * math.sqrt(2) * norm, 8 * norm + leverage(rows, penalty)) + 3 * norm**2


RAISED = 1e-6
BETA_RESERVE = 1e-5
"""What the rounding of N takes off β."""

LEAST_SMOOTH_PENALTY = 0.01
"""Below it the rounding of N could be above half of ``RAISED``."""


def smooth_bound(norm: float, rows: int, penalty: float, beta: float) -> float:
    """Return S = max_k e^{−βk} min(h(N_k), Δ), 1 + N_k = (1 + N)(1 + 1/a)^{2k+1}: a β-smooth bound on the move of S1.

    N is the larger norm of the two weights as computed: private, and so is S.  β is above 1e-5.
    """
    if _checked_penalty(penalty) < LEAST_SMOOTH_PENALTY:
        raise ParameterError(f"a smooth bound needs a penalty of at least {LEAST_SMOOTH_PENALTY:g}")
    raised, inverse = norm + (1 + norm) * RAISED, 2 / (rows * penalty)
    error = 2 * _sum_error(rows, _product_error(rows, penalty), (1 + norms(penalty).whole) ** 2)
    largest = product_sum_bound(rows, penalty)
    slope, found, k = beta - BETA_RESERVE, 0.0, 0
    while True:
        reached = (1 + raised) * (1 + inverse) ** (2 * k + 1) - 1
        bound = min(local_bound(reached, rows, penalty), largest)
        found = max(found, math.exp(-slope * k) * (bound + error))
        # Beyond this k no term can be larger.
        if bound >= largest or math.exp(-slope * k) * (largest + error) <= found:
            return found * _UP
        k += 1


def smooth_sensitivity(beta: float) -> Sensitivity:
    """Return the claim of ``smooth_bound``: the value moves by at most S on either side, log S by at most β."""
    if not beta > 10 * BETA_RESERVE:
        raise ParameterError("the loss is too small for noise scaled to a smooth bound")
    return Sensitivity(beta, Norm.SMOOTH, Relation.REPLACE_ONE, "smooth-product-sum")


@dataclass(frozen=True, eq=False, repr=False)
class Weights:
    """Ridge weights of several responses, shape (features, q): private."""

    values: Reals

    @property
    def norm(self) -> float:
        """The largest norm of a response's weights."""
        return float(np.sqrt((self.values**2).sum(axis=0)).max())


def fit_weights(chunks: Chunks, responses: Reals, penalty: float) -> Weights:
    """Return w = (Φ'Φ + aI)⁻¹ Φ'U of responses U in [−1, 1], shape (n, q); only the sums Φ'Φ, Φ'U are held."""
    gram: Reals | None = None
    with one_thread():
        for part, rows in chunks():
            if gram is None:
                gram, moments = np.zeros((rows.shape[1],) * 2), np.zeros((rows.shape[1], responses.shape[1]))
            gram += rows.T @ rows
            moments += rows.T @ responses[part]
        if gram is None:
            raise ParameterError("a regression needs at least one row")
        # Positive definite by a margin of a, so it never fails.
        return Weights(solved(gram, moments, len(responses) * _checked_penalty(penalty) / 2))


def fitted_residuals(chunks: Chunks, responses: Reals, weights: Weights) -> Reals:
    """Return the residuals of each response, shape (n, q)."""
    left = responses.copy()
    with one_thread():
        for part, rows in chunks():
            left[part] -= rows @ weights.values
    return left


def added(values: Reals) -> float:
    """Return a sum, added up in chunks and the chunks exactly: an error of at most (8200 + n/8192) u of Σ|·|."""
    return math.fsum(float(values[start : start + CHUNK_ROWS].sum()) for start in range(0, len(values), CHUNK_ROWS))


def _checked_penalty(penalty: float) -> float:
    is_number = isinstance(penalty, (int, float)) and not isinstance(penalty, bool)
    if not (is_number and LEAST_PENALTY <= penalty <= LARGEST_PENALTY):
        raise ParameterError(f"the penalty must be between {LEAST_PENALTY:g} and {LARGEST_PENALTY:g}")
    return float(penalty)
