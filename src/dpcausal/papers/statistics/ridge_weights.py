"""Donors' weights in a ridge regression of the target, and the reach of one donor.  Proof: ``ridge_weights.md``."""

import math

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit

Reals = npt.NDArray[np.float64]

LEAST_LENGTH = 1e-9
"""A target shorter than this counts as this long: a bound must be above 0."""

MOST_ROUNDING = 0.01
"""Where rounding may be more, the analysis of errors does not hold, and the system may be singular for some donors."""


def ridge_weights(X: Reals, y: Reals, ridge: float) -> Reals:
    """Return f = argmin ‖y − X'f‖² + μ‖f‖² = (XX' + μI)⁻¹ X y: the donors' weights in a ridge regression of the target.

    X, shape (n, T0), in [−1, 1], and y, shape (T0,), stand before the treatment; the objective of Rho, Cummings &
    Misra, equation (4), has μ = λ/2.  Total: defined for every X where ``ridge_weight_sensitivity`` is.
    """
    n, periods = X.shape
    if n <= periods:
        return _system_solution(X @ X.T + ridge * np.eye(n), X @ y)
    return X @ _system_solution(X.T @ X + ridge * np.eye(periods), y)


def _system_solution(system: Reals, right: Reals) -> Reals:
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

    try:
        return np.asarray(cho_solve(cho_factor(system, lower=True, check_finite=False), right, check_finite=False))
    except LinAlgError:  # never where there is a sensitivity: the ridge is then not lost in rounding
        return np.asarray(lstsq(system, right, check_finite=False)[0])


def ridge_weight_bound(y: Reals, ridge: float) -> float:
    """Return how far one donor can move the exact weights: Y/√μ if T0 ≥ μ, else 2√T0·Y/(μ + T0), Y = ‖y‖."""
    length, squared = max(float(np.linalg.norm(y)), LEAST_LENGTH), len(y)
    if squared >= ridge:
        return length / math.sqrt(ridge)
    return 2 * math.sqrt(squared) * length / (ridge + squared)


def ridge_weight_sensitivity(y: Reals, ridge: float, donors: int) -> Sensitivity:
    """Return the l2 sensitivity of ``ridge_weights`` as computed: the bound plus what rounding may add; y is public.

    Refused, from public numbers, where floats cannot solve the system for every X.  Rho, Cummings & Misra, Lemma 4.7,
    has 4·T0·√(8 + n)/λ.
    """
    if not (math.isfinite(ridge) and ridge > 0):
        raise ParameterError("the ridge's penalty must be a finite number above 0")
    bound = ridge_weight_bound(y, ridge)
    work = min(donors, len(y)) ** 2 + max(donors, len(y))
    relative = work * 2.0**-53 * (1 + donors * len(y) / ridge)
    if relative > MOST_ROUNDING:
        raise ParameterError("the ridge's penalty is too small for so many donors: floats cannot solve it; raise it")
    rounding = 8 * relative * max(float(np.linalg.norm(y)), LEAST_LENGTH) / math.sqrt(ridge)
    return Sensitivity(bound + rounding, Norm.L2, Relation.REPLACE_ONE, "ridge-weights", Unit.DONOR)
