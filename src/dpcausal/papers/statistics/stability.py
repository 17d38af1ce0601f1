"""Kernel ridge regression whose predictions one training row can move by a proved amount only.

    w = argmin (λ/2) ‖w‖² + (1/n) Σ (w·φ(x_i) − y_i)²,  f(x) = w·φ(x)

where:

* x and y lie in [−1, 1], scaled by public bounds: no centring and no intercept, which would add to what a row moves;
* φ(x) is a unit vector: cosines and sines at the quantiles of a normal distribution, for the Gaussian kernel of a
public width;
* λ is the public ``penalty``; in the proofs c = nλ/2.

Replacing one of the n rows moves f by at most ρ(n, λ) everywhere.  The fit is total and the same for few rows and for
many: rows are read on a public grid, so the linear system depends on counts and exact sums at its places, and the
predictions are a table over those places.  How far the computed table is from the exact one is bounded too, whatever
the data (``rounding``), and the sensitivity that is stated applies to the computed numbers.  Proofs: ``stability.md``.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity, Unit
from dpcausal.privacy.unpicklable import ProcessLocal
from dpcausal.regression.external import one_thread
from dpcausal.regression.kernel_ridge import FourierFeatures, ridge_solution

PLACES = 4097  # of the public grid on [−1, 1]: steps of 1/2048
PAIRS = 100  # cosine and sine pairs of φ

RESPONSE_STEPS = 2**24
"""Responses are rounded to whole multiples of 2⁻²⁴, so that their sums are exact for up to 2²⁹ rows."""

MOST_ROWS = 2**29

LEAST_PENALTY, LARGEST_PENALTY = 1e-5, 1e5
"""λ below or above these is refused: below, one row may move predictions by their whole range at any n in reach."""

LEAST_WIDTH, LARGEST_WIDTH = 0.01, 100.0

ERROR_UNIT = Fraction(1, 2**35)
"""Bounds the relative error of the linear algebra, for systems of up to 2 · ``PAIRS`` unknowns."""

_CELLS = 4096
_ROUND_UP = 1 + 1e-9


def closed_form(rows: int, penalty: float) -> float:
    """Return 4/(nλ) + (3√6/4)/(nλ^{3/2}), rounded up: a bound on the move of f for every n ≥ 1 and λ > 0."""
    return float((4 / (rows * penalty) + 0.75 * math.sqrt(6) / (rows * penalty**1.5)) * _ROUND_UP)


def maximum_form(rows: int, penalty: float) -> float:
    """Return 2 max_{S ≥ 0} [1 + √((n − 1)S)/(S + c)]/(S + c + 1), rounded up; for c = nλ/2 ≥ 1 and n ≥ 5.

    With t = √S the maximum lies in [0, √c].  In each of 4096 cells the numerator is taken at the right end and the
    denominators at the left, so that no maximum is missed; the result is at most 0.2 % too large.
    """
    c = rows * penalty / 2
    if rows < 5 or c < 1:
        raise ParameterError("the maximum form needs at least 5 rows and rows times penalty of at least 2")
    t = np.linspace(0.0, math.sqrt(c), _CELLS + 1)
    left = t[:-1] ** 2 + c
    cells = (1 + math.sqrt(rows - 1) * t[1:] / left) / (left + 1)
    return 2 * float(cells.max()) * _ROUND_UP


def prediction_bound(rows: int, penalty: float) -> float:
    """Return ρ(n, λ): how far one replaced training row moves any prediction, in exact arithmetic.

    The smaller of the two forms where both hold, and 2, the width of the range that predictions are clipped to.  Kusner
    et al. (2016), Theorem 5, has 8/(nλ^{3/2}) for λ ≤ 1.
    """
    _check(rows, penalty)
    forms = [2.0, closed_form(rows, penalty)]
    if rows >= 5 and rows * penalty >= 2 * _ROUND_UP:
        forms.append(maximum_form(rows, penalty))
    return min(forms)


def rounding(penalty: float) -> Fraction:
    """Return η(λ) = 2⁻³⁴ [(2/λ + 1)/√(2λ) + 2/λ + 1]: how far a computed prediction, or residual, can be off."""
    _check(1, penalty)
    share = 2 / Fraction(penalty)
    norm = Fraction(1 / math.sqrt(2 * penalty) * _ROUND_UP)
    return 2 * ERROR_UNIT * ((share + 1) * norm + share + 1)


def prediction_sensitivity(rows: int, penalty: float, *, unit: Unit = Unit.TRAINING_ROW) -> Sensitivity:
    """Return how far one replaced training row moves the *computed* predictions: ρ + 2η, in the maximum norm."""
    bound = Fraction(prediction_bound(rows, penalty)) + 2 * rounding(penalty)
    return Sensitivity(bound, Norm.LINF, Relation.REPLACE_ONE, "ridge-stability", unit)


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """φ at the places of the grid, shape (places, 2D): rows are unit vectors; public."""

    places: Reals = field(repr=False)
    rows: Reals = field(repr=False)

    def index(self, values: Reals) -> Integers:
        return np.asarray(np.rint((values + 1) / 2 * (self.places.size - 1)), dtype=np.int64)


@lru_cache(maxsize=4)
def feature_table(width: float, pairs: int = PAIRS) -> FeatureTable:
    """Return the table for the Gaussian kernel exp(−(x − x')²/(2 width²)), within about 1/D of it.

    Frequencies stand at the quantiles (j − ½)/D of its normal spectrum; the width is in units of half the public range.
    """
    if not (math.isfinite(width) and LEAST_WIDTH <= width <= LARGEST_WIDTH):
        raise ParameterError(f"the kernel's width must be between {LEAST_WIDTH:g} and {LARGEST_WIDTH:g}")
    if not 1 <= pairs <= PAIRS:
        raise ParameterError(f"the number of pairs must be between 1 and {PAIRS}")
    quantiles, places = [NormalDist().inv_cdf((j + 0.5) / pairs) for j in range(pairs)], np.linspace(-1.0, 1.0, PLACES)
    return FeatureTable(places, FourierFeatures(np.array(quantiles), float(width))(places))


@dataclass(frozen=True, eq=False)
class StableFit(ProcessLocal):
    """A fitted regression: its predictions at the places of the grid.  Holds private values and does not pickle."""

    confined = "a fitted regression holds data and does not leave the process"

    places: Reals = field(repr=False)
    heights: Reals = field(repr=False)

    def __call__(self, values: Reals) -> Reals:
        """Return the prediction at each value of [−1, 1], by interpolation: a function of that value alone."""
        return np.asarray(np.interp(values, self.places, self.heights))


def fit_stable(x: Reals, y: Reals, *, penalty: float, table: FeatureTable) -> StableFit:
    """Regress y on x: predictions in [−1, 1], each moved by one row as ``prediction_sensitivity(n, penalty)`` says.

    Values are clipped to [−1, 1], one that is no number counts as 0; λ and the table are public.
    *Cost*: O(n + P D²) for the P ≤ 4097 places in use: 20 ms at 1,000 rows, 60 ms at 1,000,000.
    *Source*: Kusner et al. (2016), eq. (5).
    """
    _check(x.size, penalty)
    if x.ndim != 1 or x.shape != y.shape:
        raise ParameterError("a regression needs two columns of equal length")
    index = table.index(_unit(x))
    codes = np.rint(_unit(y) * RESPONSE_STEPS)
    counts = np.bincount(index, minlength=table.places.size).astype(np.float64)
    sums = np.bincount(index, weights=codes, minlength=table.places.size) / RESPONSE_STEPS
    used = counts > 0
    rows = table.rows[used]
    with np.errstate(all="ignore"), one_thread():
        system = (rows * counts[used, None]).T @ rows
        weights = ridge_solution(system, rows.T @ sums[used], x.size * penalty / 2)
        heights = np.clip(table.rows @ weights, -1.0, 1.0)
    return StableFit(table.places, heights)


def _unit(values: Reals) -> Reals:
    return np.clip(np.where(np.isnan(values), 0.0, values), -1.0, 1.0)


def _check(rows: int, penalty: float) -> None:
    if not 1 <= rows <= MOST_ROWS:
        raise ParameterError(f"a regression takes 1 to {MOST_ROWS} rows, got {rows}")
    is_number = isinstance(penalty, (int, float)) and not isinstance(penalty, bool)
    if not (is_number and LEAST_PENALTY <= penalty <= LARGEST_PENALTY):
        raise ParameterError(f"the penalty must be between {LEAST_PENALTY:g} and {LARGEST_PENALTY:g}")
