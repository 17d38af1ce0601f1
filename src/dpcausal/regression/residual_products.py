"""Products of ridge residuals of x and of y given z, on all rows at once: sums with a proved sensitivity.

    w = argmin (λ/2) ‖w‖² + (1/n) Σ (x_i − w·φ_i)² = (Φ'Φ + aI)⁻¹ Φ'x,  a = nλ/2,  v the same for y

    R_i = (x_i − w·φ_i)(y_i − v·φ_i)

where:

* x and y lie in [−1, 1], scaled by public bounds; φ_i is a vector of norm at most 1, a public function of z_i;
* λ is the public ``penalty`` (a is scikit-learn's ``alpha``), μ = λ/2; n is public.

The bounds hold for every φ and n, and apply to the numbers as computed: what rounding can add is part of them.  A
penalty, a kernel width or a scale that is chosen on the rows breaks them.  Proofs: ``residual_products.md``.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity
from dpcausal.regression.external import one_thread
from dpcausal.regression.kernel_ridge import ridge_solution

Chunks = Callable[[], Iterator[tuple[slice, Reals]]]
"""Yields slices of the rows and φ there; may be asked several times, and gives the same each time."""
LEAST_PENALTY, LARGEST_PENALTY = 1e-3, 1e4
CHUNK_ROWS = 8192
MOST_FEATURES = 512
MOST_ROWS = 10**8
_UP = 1 + 1e-9
_UNIT = 2.0**-53


def norm_bound(penalty: float) -> float:
    """Return B = max √κ/(κ + μ) over κ in (0, 1], the largest norm of w over all data."""
    mu = _checked_penalty(penalty) / 2
    share = min(1.0, mu)  # the only maximum, or the end if that is beyond
    return math.sqrt(share) / (share + mu) * _UP


def others_bound(penalty: float) -> float:
    """Return 2B(2 + B): the most that the products R_i of all other rows move, summed."""
    B = norm_bound(penalty)
    return 2 * B * (2 + B) * _UP


def rounding_error(rows: int, penalty: float) -> float:
    """Return how far a computed residual is from the exact one, whatever the data: claim ``residual-rounding``. With p
    ≤ 512 features, u = 2⁻⁵³, g = (8200 + n/8192) u the error of sums, s = p (3p + 2) u that of the solution: 1.01 [(g
    (1 + B) + s (1 + μ) B)/μ + (p + 3) u (1 + B)]."""
    mu, B = _checked_penalty(penalty) / 2, norm_bound(penalty)
    sums = (8200 + rows / CHUNK_ROWS) * _UNIT
    solution = MOST_FEATURES * (3 * MOST_FEATURES + 2) * _UNIT
    return 1.01 * ((sums * (1 + B) + solution * (1 + mu) * B) / mu + (MOST_FEATURES + 3) * _UNIT * (1 + B))


def _product_error(rows: int, penalty: float) -> float:
    largest, error = 1 + norm_bound(penalty), rounding_error(rows, penalty)
    return (2 * largest * error + error**2 + (largest + error) ** 2 * _UNIT) * _UP


def _sum_error(rows: int, each: float, largest: float) -> float:
    return rows * (each + (8200 + rows / CHUNK_ROWS) * _UNIT * (largest + each)) * _UP


def _sensitivity(bound: float, norm: Norm, proof: str) -> Sensitivity:
    return Sensitivity(bound * _UP, norm, Relation.REPLACE_ONE, proof)


def products_sensitivity(rows: int, penalty: float) -> Sensitivity:
    """Return how far R moves in ℓ1: max(2 + 2√2 B, 4B) + B² + 2B(2 + B)."""
    B = norm_bound(penalty)
    bound = max(2 + 2 * math.sqrt(2) * B, 4 * B) + B**2 + others_bound(penalty)
    return _sensitivity(bound + 2 * rows * _product_error(rows, penalty), Norm.L1, "residual-products")


def resample_sum_bound(rows: int, penalty: float | None) -> float:
    """Return max(2 + 2√2 B, 4B) + B², or 2 where y is not regressed, in exact arithmetic."""
    if penalty is None:
        return 2.0
    B = norm_bound(penalty)
    return (max(2 + 2 * math.sqrt(2) * B, 4 * B) + B**2) * _UP


def resample_sum_sensitivity(rows: int, penalty: float | None) -> Sensitivity:
    """Return how far T = Σ r_i (y_i − v·φ_i) moves, r_i in [−1, 1] a public function of row i: one for each copy.

    Without a penalty nothing is regressed: v = 0.  *Source*: Kalemaj et al. (2024), Lemma 4.5.
    """
    if penalty is None:
        error = _sum_error(rows, _UNIT, 1.0)
    else:
        each = (rounding_error(rows, penalty) + 2 * _UNIT * (2 + norm_bound(penalty))) * _UP
        error = _sum_error(rows, each, 1 + norm_bound(penalty))
    return _sensitivity(resample_sum_bound(rows, penalty) + 2 * error, Norm.LINF, "resample-product-sum")


def fit_weights(chunks: Chunks, responses: Reals, penalty: float) -> Reals:
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
        return ridge_solution(gram, moments, len(responses) * _checked_penalty(penalty) / 2)


def fitted_residuals(chunks: Chunks, responses: Reals, weights: Reals) -> Reals:
    left = responses.copy()
    with one_thread():
        for part, rows in chunks():
            left[part] -= rows @ weights
    return left


def _checked_penalty(penalty: float) -> float:
    is_number = isinstance(penalty, (int, float)) and not isinstance(penalty, bool)
    if not (is_number and LEAST_PENALTY <= penalty <= LARGEST_PENALTY):
        raise ParameterError(f"the penalty must be between {LEAST_PENALTY:g} and {LARGEST_PENALTY:g}")
    return float(penalty)
