"""The location-scale noise model: y = f(x) + s(x)·e with e independent of x, judged by entropies.

    D = [ĥ(y) + ĥ(e_X) + mean log s_X] − [ĥ(x) + ĥ(e_Y) + mean log s_Y]

where e_Y = (y − f(x))/s(x) and e_X the same the other way.  As the rows grow, D tends to I(e_X; y) − I(e_Y; x),
whatever f and s are: above 0 if "x causes y" leaves less dependence.  Freedom of the scale costs accuracy where no
scale is needed: a forced choice leaves it constant there.  Inside blocks only: all is taken from the rows.
Proof: ``verdict.md``, lsnm.
"""

import math

import numpy as np
import numpy.typing as npt

from dpcausal.privacy.noise import PublicGenerator

Column = npt.NDArray[np.float64]

MOST_KNOTS, LEAST_KNOTS, ROWS_PER_KNOT = 12, 5, 12

PENALTIES = 24
"""Values of α that are tried, from no smoothing to a straight line."""

MOST_LEVERAGE = 0.99
"""A row that alone decides its own fit would have a leave-one-out residual without bound."""


class Spline:
    """Splines on one regressor, for any response and weights: Wood (2017), section 5.3.1."""

    def __init__(self, v: Column) -> None:
        distinct = np.unique(v)
        if len(distinct) < 3:
            raise ValueError("a spline needs three different values")
        count = min(MOST_KNOTS, max(LEAST_KNOTS, len(v) // ROWS_PER_KNOT), len(distinct))
        t = distinct[np.linspace(0, len(distinct) - 1, count).round().astype(np.int64)]
        h, K = np.diff(t), count
        D, B = np.zeros((K - 2, K)), np.zeros((K - 2, K - 2))
        row = np.arange(K - 2)
        D[row, row], D[row, row + 2] = 1 / h[:-1], 1 / h[1:]
        D[row, row + 1] = -D[row, row] - D[row, row + 2]
        B[row, row] = (h[:-1] + h[1:]) / 3
        B[row[1:], row[:-1]] = B[row[:-1], row[1:]] = h[1:-1] / 6
        curvature = np.zeros((K, K))  # second derivatives at the knots from the values there
        curvature[1:-1] = np.linalg.solve(B, D)
        self._S = D.T @ curvature[1:-1]
        j = np.clip(np.searchsorted(t, v, side="right") - 1, 0, K - 2)
        width, below, above = h[j], v - t[j], t[j + 1] - v
        X = (above**3 / width - width * above)[:, None] / 6 * curvature[j]
        X += (below**3 / width - width * below)[:, None] / 6 * curvature[j + 1]
        place = np.arange(len(v))
        X[place, j] += above / width
        X[place, j + 1] += below / width
        self._X = X
        self._plain = self._directions(np.ones(len(v)))

    def _directions(self, weights: Column) -> tuple[Column, Column]:
        L = np.linalg.cholesky(self._X.T @ (weights[:, None] * self._X))
        half = np.linalg.solve(L, self._S)
        values, U = np.linalg.eigh(np.linalg.solve(L, half.T))
        return np.linalg.solve(L, self._X.T).T @ U, np.maximum(values, 0.0)

    def fit(self, u: Column, weights: Column | None = None) -> tuple[Column, Column]:
        """Return the fitted values, and the residuals that each row has from a fit without it."""
        Z, values = self._plain if weights is None else self._directions(weights)
        w = np.ones(len(u)) if weights is None else weights
        alphas = np.geomspace(1e-3 / values[-1], 1e3 / max(values[2], 1e-12 * values[-1]), PENALTIES)
        shrunk = 1 / (1 + np.outer(values, alphas))
        fits = Z @ ((Z.T @ (w * u))[:, None] * shrunk)
        leverage = np.minimum(w[:, None] * (Z**2 @ shrunk), MOST_LEVERAGE)
        left = (u[:, None] - fits) / (1 - leverage)
        best = int(np.argmin(w @ left**2))
        return fits[:, best], left[:, best]


PASSES = 4
"""Most times that the mean is fitted again with the weights of the scale."""

FLOOR = 1e-4
"""Squared residuals are raised by this share of their mean before the logarithm."""

MOST_RATIO = 1e3
"""Largest ratio of two weights' square roots."""

FEW_VALUES = 0.9
"""Below this share of different values a column is spread over its steps, and the other made as coarse."""

LEAST_VALUES = 10
"""Different values of a column below which none is a heap, and a block does not say which way it favours."""

LEAST_HEAP = 0.03
"""Least share of the rows that makes a heap of a value."""

LEAST_GAIN = 0.08
"""Gain of the scale in log likelihood a row, of the direction where it gains more, up to which scales are constant."""


def heaped(values: Column) -> npt.NDArray[np.bool_]:
    """Return which rows lie on a heap, as where a column is cut at a bound or mostly 0: no density has one. A heap has
    1.5 m + 5√m − 1.5 rows or more, m the mean of the two values on either side: chance makes few of those."""
    distinct, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(distinct) < LEAST_VALUES:
        return np.zeros(len(values), dtype=np.bool_)
    four = np.array([1, 1, 0, 1, 1])
    neighbours = np.maximum(1, np.convolve(counts, four, "same") / np.convolve(np.ones(len(counts)), four, "same"))
    least = np.maximum(1.5 * neighbours + 5 * np.sqrt(neighbours) - 1.5, LEAST_HEAP * len(values))
    return np.asarray((counts >= least)[place], dtype=np.bool_)


def _rounding_step(values: Column) -> float:
    """Return the usual step of a column of few values over its deviation, 0 of one whose values hardly repeat."""
    distinct, deviation = np.unique(values), float(np.std(values))
    few = 1 < len(distinct) < FEW_VALUES * len(values)
    return float(np.median(np.diff(distinct))) / deviation if few and 0 < deviation < math.inf else 0.0


def with_unit_spread(x: Column, y: Column, rng: PublicGenerator) -> tuple[Column, Column]:
    """Return both columns with variance 1, as coarse as the coarser one, ties moved apart at random, constants as 0."""
    step = max(_rounding_step(x), _rounding_step(y))
    return _with_unit_spread(x, step, rng), _with_unit_spread(y, step, rng)


def _with_unit_spread(values: Column, step: float, rng: PublicGenerator) -> Column:
    noise, deviation = rng.uniform(-0.5, 0.5, len(values)), float(np.std(values))
    if not (0 < deviation < math.inf and np.any(values != values[0])):
        return np.zeros(len(values))
    values = (values - np.mean(values)) / deviation
    if step > 0:
        own = _rounding_step(values)
        values = (values if own >= step else np.round(values / step) * step) + noise * max(own, step)
    return np.asarray((values - np.mean(values)) / np.std(values))


def entropy(values: Column) -> float:
    """Return the differential entropy by spacings of √n/2 places (Vasicek 1976); −∞ where so many values are equal."""
    n, ordered = len(values), np.sort(values)
    m = max(1, round(math.sqrt(n) / 2))
    ends = np.concatenate([np.full(m, ordered[0]), ordered, np.full(m, ordered[-1])])
    return float(np.mean(np.log(n / (2 * m) * (ends[2 * m :] - ends[: -2 * m]))))


def location_scale(spline: Spline, u: Column) -> tuple[Column, Column, Column, float]:
    """Return the residuals of the mean alone, those over their scale, the log scale, and what the scale gains a row.
    The scale is a spline of log(r² + c), fitted in turn with the mean while the Gaussian likelihood of the left-out
    rows gains; it is constant unless that is better.  All four are leave-one-out."""
    _, plain = spline.fit(u)
    left, best = plain, (plain, np.zeros(len(u)))
    least = gained = -0.5 * math.log(float(np.mean(plain**2)))
    for _ in range(PASSES):
        logs = 0.5 * np.log(left**2 + FLOOR * float(np.mean(left**2)))
        fitted, missed = spline.fit(logs)
        scale = logs - missed
        gain = -float(np.mean(scale)) - 0.5 * math.log(float(np.mean(left**2 * np.exp(-2 * scale))))
        if not gain > gained:
            break
        gained, best = gain, (left * np.exp(-scale), scale)
        centred = np.clip(fitted - np.median(fitted), -math.log(MOST_RATIO) / 2, math.log(MOST_RATIO) / 2)
        left = spline.fit(u, np.exp(-2 * centred))[1]
    return plain, *best, gained - least


def half_score(regressor: Column, spline: Spline, response: Column) -> tuple[float, Column, Column]:
    """Return ĥ(regressor) + ĥ(e) + mean log s, the residuals of the mean alone, and those over their scale."""
    plain, rest, scale, _ = location_scale(spline, response)
    return entropy(regressor) + entropy(rest) + float(np.mean(scale)), plain, rest


def scores(x: Column, y: Column, rng: PublicGenerator) -> tuple[float, float]:
    """Return the scores of ("x causes y", "y causes x") without rows on a heap; a scale of little gain is constant."""
    whole = ~(heaped(x) | heaped(y))
    x, y = with_unit_spread(x[whole], y[whole], rng)
    (plain, rest, scale, gain), (back, rest_back, scale_back, gain_back) = (
        location_scale(Spline(regressor), response) for regressor, response in ((x, y), (y, x))
    )
    if max(gain, gain_back) <= LEAST_GAIN:
        return entropy(x) + entropy(plain), entropy(y) + entropy(back)
    forward, backward = float(np.mean(scale)), float(np.mean(scale_back))
    return entropy(x) + entropy(rest) + forward, entropy(y) + entropy(rest_back) + backward


LARGEST = 0.999
"""Correlations beyond it are taken as it: what is left over of a line is noise of the ranks."""

TERMS = (2, 1), (1, 2), (3, 1), (1, 3), (2, 2)
"""Orders of the Hermite polynomials, of a column and of what the other leaves over, whose mean product is tested."""


def normal_scores(values: Column) -> Column:
    """Return Φ⁻¹((rank + ½)/n) with variance 1; equal values keep the order of the rows."""
    from scipy.special import ndtri

    scores = np.empty(len(values))
    scores[np.argsort(values, kind="stable")] = ndtri((np.arange(len(values)) + 0.5) / len(values))
    return np.asarray(scores / scores.std())


def joint_normality_pvalue(x: Column, y: Column) -> float:
    """Return the smaller p-value of two tests that the normal scores of n rows are jointly Gaussian.

    T = n Σ (mean h_i(u) h_j(v))²,  v = (w − ρu)/√(1 − ρ²),  about χ² with 5 degrees of freedom

    where u and w are the scores of the columns, either way round, and h_i the normed Hermite polynomials.
    """
    from scipy.special import gammaincc

    scores = normal_scores(x), normal_scores(y)
    rho = float(np.clip(np.mean(scores[0] * scores[1]), -LARGEST, LARGEST))

    def statistic(u: Column, w: Column) -> float:
        of_u, of_v = _hermite(u), _hermite((w - rho * u) / math.sqrt(1 - rho**2))
        return len(u) * sum(float(np.mean(of_u[i] * of_v[j])) ** 2 for i, j in TERMS)

    return float(gammaincc(len(TERMS) / 2, max(statistic(*scores), statistic(*scores[::-1])) / 2))


def _hermite(u: Column) -> tuple[Column, ...]:
    return np.ones(len(u)), u, (u**2 - 1) / math.sqrt(2), (u**3 - 3 * u) / math.sqrt(6)
