"""HSIC with Gaussian kernels, HSIC itself instead of its root, and how far both move with every residual.

Only the published systems need these: the root with Laplacian kernels is ``dpcausal.statistics.hsic``.  Proofs:
``hsic.md`` here and there.
"""

from dataclasses import dataclass
from fractions import Fraction

from dpcausal.errors import ParameterError
from dpcausal.papers.statistics.gaussian_sums import kernel_sums
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit
from dpcausal.statistics.hsic import (
    LAPLACIAN,
    ROOT_SIX,
    Interval,
    Kernel,
    checked_interval,
    checked_positive,
    checked_size,
    is_finite,
    root_error,
    step,
)

GAUSSIAN = Kernel("Gaussian", 50_000, kernel_sums, lambda m: Fraction(1, 2**45))
"""k(a, b) = exp(−(a − b)²/(2 width²)), in O(m²): half a second at m = 1e4, in 3 MiB and 160 m bytes."""


@dataclass(frozen=True)
class Calibration:
    slope: Fraction
    offset: Fraction
    proof: str


LEAST = Calibration(slope=ROOT_SIX, offset=ROOT_SIX, proof="hsic")
"""√6 (m − 1)/m²; the same bound holds for √HSIC_V, and there it is tight."""

LARGEST_SLOPE = Fraction(6065306598, 10**10)
"""e^(−1/2), rounded up: a Gaussian kernel of width s changes by at most e^(−1/2)/s per unit."""


def hsic_sensitivity(
    m: int, calibration: Calibration = LEAST, *, kernel: Kernel = LAPLACIAN, unit: Unit = Unit.ROW
) -> Sensitivity:
    """Return the sensitivity of ``hsic`` as computed: √6 (m − 1)/m² + 2 (η(m) + 2⁻⁵⁴), or the first part of a paper.

    Multiplying the score and the bound by m²/(m − 1)² gives the paper's units and the same privacy.
    """
    exact = (calibration.slope * checked_size(m, kernel) - calibration.offset) / m**2
    return _sensitivity(exact + 2 * _error(m, kernel), calibration.proof, unit)


def root_hsic_residual_sensitivity(
    m: int, shift: float, width: float, interval: Interval, *, unit: Unit = Unit.TRAINING_ROW
) -> Sensitivity:
    """Return how far ``root_hsic`` with Gaussian kernels moves when every y_i moves by at most ``shift``.

    (shift + 2 step)/width + 2 (√η(m) + 2⁻⁵²), step that of the grid of the public ``interval`` of y, ``width`` its
    kernel's. For residuals, ``shift`` is what one training record can do to the regression.  A Laplacian kernel is not
    smooth at 0 and has no such bound.
    """
    exact = _checked_shift(shift, interval) / checked_positive("width", width)
    return _sensitivity(exact + 2 * root_error(checked_size(m, GAUSSIAN), GAUSSIAN), "root-hsic-residuals", unit)


def hsic_residual_sensitivity(
    m: int, shift: float, width: float, interval: Interval, *, unit: Unit = Unit.TRAINING_ROW
) -> Sensitivity:
    """Return the same for ``hsic``: e^(−1/2) (shift + 2 step)/width + 2 (η(m) + 2⁻⁵⁴)."""
    exact = LARGEST_SLOPE * _checked_shift(shift, interval) / checked_positive("width", width)
    return _sensitivity(exact + 2 * _error(checked_size(m, GAUSSIAN), GAUSSIAN), "hsic-residuals", unit)


def _error(m: int, kernel: Kernel) -> Fraction:
    return kernel.rounding(m) + Fraction(1, 2**54)


def _checked_shift(shift: float, interval: Interval) -> Fraction:
    if not is_finite(shift) or shift < 0:
        raise ParameterError(f"shift must be a finite number, at least 0, got {shift!r}")
    return Fraction(float(shift)) + 2 * step(checked_interval("interval", interval))


def _sensitivity(bound: Fraction, proof: str, unit: Unit) -> Sensitivity:
    return Sensitivity(bound, Norm.ABSOLUTE, Relation.REPLACE_ONE, proof, unit)
