"""Kernel ridge regression of one real column on another: exact for few rows, by random features for many.

Each fit minimises (λ/2) ‖w‖² + (1/n) Σ (w·φ(x_i) − y_i)²: w = (Σ φφ' + αI)⁻¹ Σ yφ, where φ is the feature map of the
Gaussian kernel exp(−(x − x')²/(2 width²)), or its random Fourier features, λ is the ``penalty`` and α = nλ/2, which is
scikit-learn's ``alpha``.  There is no intercept and no centring: either would add to what one record can move.

Up to ``EXACT_ROWS`` rows the n × n kernel matrix is solved; above, only the 2D × 2D matrix of the features is held, and
rows are streamed through the features' grid.  A fit is total: constant columns, ties and values so large that a product
overflows give a finite prediction, and no warning.  Nothing here is private by itself: it serves on unprotected
training rows, or inside a block whose answer is bounded and paid for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.unpicklable import ProcessLocal
from dpcausal.regression.external import one_thread


def ridge_solution(system: Reals, right: Reals, ridge: float) -> Reals:
    """Return (system + μI)⁻¹ right; zeros where floats have no answer.  The system is written over."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    system[np.diag_indices(len(system))] += ridge
    try:
        return with_finite_values(
            cho_solve(cho_factor(system, lower=True, check_finite=False), right, check_finite=False)
        )
    except LinAlgError:  # only values beyond floating-point products come here
        return np.zeros(right.shape)


def with_finite_values(values: Reals) -> Reals:
    return np.where(np.isfinite(values), values, 0.0)


CHUNK_ROWS = 8192
"""Places whose features are in memory at a time: 13 MB at 100 pairs."""
PLACES_PER_WIDTH = 512
"""Places of the grid on one kernel width."""


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """A map from real numbers to unit vectors: public frequencies ω, in radians per kernel width, and the width."""

    frequencies: Reals
    width: float

    @property
    def size(self) -> int:
        return 2 * int(self.frequencies.size)

    def __call__(self, values: Reals) -> Reals:
        return self._at(values / self.width)

    def places(self, values: Reals) -> tuple[Reals, Integers]:
        """Return the distinct places of the grid that the values fall on, in widths, and each value's place."""
        with np.errstate(over="ignore"):
            steps = np.rint(values / self.width * PLACES_PER_WIDTH)
        distinct, index = np.unique(steps, return_inverse=True)
        return distinct / PLACES_PER_WIDTH, index.astype(np.int64, copy=False)

    def chunks(self, places: Reals) -> Iterator[tuple[slice, Reals]]:
        for start in range(0, places.size, CHUNK_ROWS):
            part = slice(start, min(start + CHUNK_ROWS, places.size))
            yield part, self._at(places[part])

    def _at(self, scaled: Reals) -> Reals:
        pairs = self.frequencies.size
        rows = np.empty((scaled.size, 2 * pairs))
        # An infinite angle has no cosine; the caller turns what is not finite into 0.
        with np.errstate(over="ignore", invalid="ignore"):
            angles = np.multiply.outer(scaled, self.frequencies)
            np.cos(angles, out=rows[:, :pairs])
            np.sin(angles, out=rows[:, pairs:])
        rows /= np.sqrt(pairs)
        return rows


EXACT_ROWS = 500
"""Largest number of rows solved with the n × n kernel matrix."""
FEATURE_PAIRS = 100
"""Pairs of random features above that."""
TUNING_ROWS = 200
"""Rows that ``tune`` looks at: α is a ratio of noise to signal and does not grow with n, nor does the width."""
WIDTHS = (0.25, 0.5, 1.0, 2.0)
"""Widths that ``tune`` tries, in standard deviations of the regressor."""
ALPHAS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
"""Values of α that ``tune`` tries."""


@dataclass(frozen=True)
class Setting:
    width: float
    penalty: float


@dataclass(frozen=True, eq=False)
class Predictor(ProcessLocal):
    """A fitted regression; predictions lie in the public range [lower, upper], one that is not finite counts as 0. The
    last bits of a prediction may depend on the other values of the same call, as those of a matrix product do: where
    values are protected one by one, tabulate at public places and interpolate."""

    confined = "a fitted regression holds data and does not leave the process"
    features: FourierFeatures | None
    anchors: Reals = field(repr=False)
    weights: Reals = field(repr=False)
    width: float
    lower: float
    upper: float

    def __call__(self, values: Reals) -> Reals:
        with np.errstate(all="ignore"), one_thread():
            if self.features is not None:
                places, index = self.features.places(values)
                at_places = np.empty(places.size)
                for part, rows in self.features.chunks(places):
                    at_places[part] = rows @ self.weights
                predictions = at_places[index]
            else:
                predictions = np.empty(values.size)
                for start in range(0, values.size, CHUNK_ROWS):
                    part = slice(start, start + CHUNK_ROWS)
                    predictions[part] = gaussian_kernel(values[part], self.anchors, self.width) @ self.weights
        return np.clip(with_finite_values(predictions), self.lower, self.upper)


def gaussian_kernel(left: Reals, right: Reals, width: float) -> Reals:
    """Return exp(−(l − r)² / (2 width²)) for all pairs, shape (len(left), len(right)), values in [0, 1]."""
    with np.errstate(over="ignore", under="ignore"):
        distances = np.subtract.outer(left, right) / width
        return np.asarray(np.exp(-0.5 * distances * distances))


def alpha_of(penalty: float, rows: int) -> float:
    return rows * penalty / 2


def fit(
    x: Reals, y: Reals, *, penalty: float, width: float, clip: tuple[float, float], generator: PublicGenerator
) -> Predictor:
    """Regress y on x; ``clip`` is the public range of y, ``generator`` draws features above ``EXACT_ROWS`` rows.
    *Cost*: one n × n factorisation, or O(n log n + G D²) for G places of the features' grid, a few thousand unless the
    column spans very many widths."""
    alpha = alpha_of(penalty, len(x))
    with np.errstate(all="ignore"), one_thread():
        if len(x) <= EXACT_ROWS:
            return Predictor(None, x.copy(), ridge_solution(gaussian_kernel(x, x, width), y, alpha), width, *clip)
        features = _random_features(width, generator)
        places, index = features.places(x)
        system, moments = _normal_equations(features, places, index, y)
        return Predictor(features, np.empty(0), ridge_solution(system, moments, alpha), width, *clip)


def leave_one_out(x: Reals, y: Reals, *, penalty: float, width: float, generator: PublicGenerator) -> Reals:
    """Return r_i = (y_i − f(x_i))/(1 − h_i), the residual of each row from the fit to all others, h its leverage. Each
    row is then both a training and a test row, and never both at once.  A residual that is not finite is 0."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

    n, alpha = len(x), alpha_of(penalty, len(x))
    with np.errstate(all="ignore"), one_thread():
        if n <= EXACT_ROWS:
            inverse = ridge_solution(gaussian_kernel(x, x, width), np.eye(n), alpha)
            # I − H = α (K + αI)⁻¹, so α cancels in the ratio.
            return with_finite_values((inverse @ y) / inverse.diagonal())
        features = _random_features(width, generator)
        places, index = features.places(x)
        system, moments = _normal_equations(features, places, index, y)
        system[np.diag_indices(features.size)] += alpha
        try:
            factor = cho_factor(system, lower=True, check_finite=False)
            weights = cho_solve(factor, moments, check_finite=False)
            whiten = solve_triangular(factor[0], np.eye(features.size), lower=True, check_finite=False).T
        except LinAlgError:  # only values beyond floating-point products come here
            return np.zeros(n)
        predictions, leverage = np.empty(places.size), np.empty(places.size)
        for part, rows in features.chunks(places):
            predictions[part] = rows @ weights
            leverage[part] = np.square(rows @ whiten).sum(axis=1)
        return with_finite_values((y - predictions[index]) / (1 - leverage[index]))


def tune(x: Reals, y: Reals) -> Setting:
    """Return the width and λ with the least mean squared leave-one-out residual in ``TUNING_ROWS`` rows, evenly spaced.
    The first setting wins a tie; one whose error is not finite wins only if all errors are."""
    from scipy.linalg import LinAlgError, eigh

    n = len(x)
    if n > TUNING_ROWS:
        spaced = np.linspace(0, n - 1, TUNING_ROWS).astype(np.int64)
        x, y = x[spaced], y[spaced]
    best, least = Setting(WIDTHS[-1], 2 * ALPHAS[-1] / n), np.inf
    with np.errstate(all="ignore"), one_thread():
        for width in WIDTHS:
            try:
                values, vectors = eigh(gaussian_kernel(x, x, width), check_finite=False)
            except LinAlgError:  # as in leave_one_out
                continue
            squares, rotated = vectors * vectors, vectors.T @ y
            for alpha in ALPHAS:
                shrunk = 1 / (np.maximum(values, 0) + alpha)
                residuals = (vectors @ (shrunk * rotated)) / (squares @ shrunk)
                error = float(np.mean(residuals * residuals))
                if error < least:
                    best, least = Setting(width, 2 * alpha / n), error
    return best


def _normal_equations(features: FourierFeatures, places: Reals, index: Integers, y: Reals) -> tuple[Reals, Reals]:
    counts = np.bincount(index, minlength=places.size).astype(np.float64)
    sums = np.bincount(index, weights=y, minlength=places.size)
    gram, moments = np.zeros((features.size, features.size)), np.zeros(features.size)
    for part, rows in features.chunks(places):
        gram += (rows * counts[part, None]).T @ rows
        moments += rows.T @ sums[part]
    return gram, moments


def _random_features(width: float, generator: PublicGenerator) -> FourierFeatures:
    """Return features, from public randomness, whose inner product is the Gaussian kernel up to about 1/√D."""
    return FourierFeatures(generator.standard_normal(FEATURE_PAIRS), width)
