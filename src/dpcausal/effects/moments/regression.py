"""A regression read off noisy moments: slopes, errors that count sampling and noise, and when no interval is honest."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.codec import storable
from dpcausal.effects.cells.effect import robustness_limit, robustness_value
from dpcausal.effects.moments.adaptive import LEAST_SEEN, detectable_skew, shrinkage
from dpcausal.effects.moments.factors import NEARLY, RESOLVED, Contrasts
from dpcausal.effects.moments.redundant import COLLINEAR, without_redundant
from dpcausal.effects.moments.released import ReleasedMoments, line
from dpcausal.effects.result import Interval, forest, normal_reach
from dpcausal.errors import Advice, Setting
from dpcausal.result import Guarantee, Result, ci_text, flat_row, signed_text

LEAST_SIGNAL, LEAST_OF_A_LINE = 7.0, 3.0
"""No interval below: there its measured coverage falls short.  That of a slope holds from 3 on if the spread is
constant; where it may not be, the side that shortened rows lie on is not seen so near the noise."""
LEAST_RATIO, MOST_TRUNCATED = 1.0, 0.4
"""No error is reported below that signal, or of a line if a larger share of rows was shortened, of which normal ones
have a fifth at most: the rounds have lost the rows then, and what is read off the moments may be anything."""
MOST_UNSURE = 0.5
"""No interval where what a step could not make up for is so many errors; where it is less, it widens the interval."""
MOST_MORE, SURE = 0.01, 3.0
"""More rows were shortened than normal ones would be where it is such a share of all, and so many deviations."""
MISFIT = 1 / 4
"""Of R² a row that was shortened to R, what the regressors' moments miss of it where shortened rows lie on one side of
the regressors: a step is off by as large a part.  Measured."""
ONE_SIDED, MOST_SKEW = 0.2, 1.5
"""Level of the test that the shortened rows lie on no side of what is left over.  Below it, intervals are wider by the
standard errors that such a skew may move slopes by; no interval if these are more."""

WEAK = (
    "the moments, and so the slopes, are too near their noise (signal to noise below {:g}): more rows, a larger loss "
    "or fewer columns"
)
SPREAD = Advice(
    "the variance of the residuals may not be constant, which second moments do not show: set ",
    Setting("errors", "homoscedastic"), " if it is, or release it by ", Setting("robust_for"),
)
SIDED = Advice(
    "the winsorised rows may lie on one side of the line, as those of a skewed outcome do: slopes would be off by more "
    "than noise; name the regression by ", Setting("robust_for"), ", or take more rows",
)  # fmt: skip

FAR_OUT = Advice(
    "more rows are extreme than in normal data, as with a rare arm or a skewed column: slopes are then biased unless "
    "the residuals have one distribution everywhere, which the released numbers cannot show; release their variance "
    "by ", Setting("robust_for"), ", cut or transform the skewed column, or take more rows",
)  # fmt: skip
BLIND = Advice(
    "with so few rows at this loss noise would hide a skew that biases slopes: use more rows or a larger loss, or set ",
    Setting("errors", "normal"), " if outcome and regressors are about normal",
)
HIDDEN = Advice(
    "with so few rows at this loss noise would hide a skew of the residuals that depends on a regressor, such as that "
    "of one arm alone, and biases slopes: use more rows or a larger loss, or set ", Setting("errors", "symmetric"),
    " if residuals are symmetric everywhere",
)  # fmt: skip
ASSUMED = (
    "Intervals assume a linear outcome whose residuals have one distribution everywhere, as you stated: if "
    "their variance or skewness is not constant, or the outcome is not linear, intervals can be too narrow"
)
SYMMETRIC = (
    "Intervals assume a linear outcome with residuals that are symmetric everywhere, as you stated: if one "
    "arm or end is skewed, or the outcome is not linear, intervals can be too narrow"
)
LOST = (
    "most rows were winsorised, so that location and scale of the columns were not found: use more rows, a larger loss "
    "or fewer columns"
)
RARE = "too few rows of {} for this loss to show a number of its own: merge it with another level"
UNDETERMINED = (
    "levels of {} determine each other, as far as the noise shows, so that their coefficients cannot be separated: "
    "leave one of these columns out"
)
UNSEPARATED = 0.02
"""Levels determine a coefficient's level if such a share of its variance lies where they determine each other."""
NOWHERE = 1e50
"""A step is of no use where what was shortened of it may be so many times its noise: it was not far enough out."""


Errors = Literal["homoscedastic", "normal", "symmetric"]
"""What a caller may state of what a line leaves of its outcome."""


@storable("RegressionTerms")
@dataclass(frozen=True)
class Terms:
    errors: Errors | None
    coverage: float
    least_signal: float = LEAST_RATIO
    """The signal below which no error is reported."""

    @property
    def homoscedastic(self) -> bool:
        return self.errors in ("homoscedastic", "normal")

    @property
    def reach(self) -> float:
        return normal_reach(self.coverage)


@storable("Coefficient")
@dataclass(frozen=True)
class Coefficient:
    """One slope; errors are infinite where the moments are too near their noise for one."""

    name: str
    estimate: float
    standard_error: float
    noise_error: float
    interval: Interval | None
    robustness_value: float | None = None
    robustness_value_limit: float | None = None
    reference: str | None = None
    """Of a level: the one that it is compared with."""


@storable("Regression")
@dataclass(frozen=True, eq=False)
class Regression(Result):
    """The linear regression of a column on others, as read off released moments.

    Attributes
    ----------
    about, outcome : str
        What the numbers are, in words, and the outcome.
    coefficients : tuple of Coefficient
        Slopes in the columns' units, the intercept last.
    interval_reason, some_reason, assumed : str
        Why there are no intervals, or not of all; what they rely on that no number here shows.  Empty if nothing.
    coverage, n, guarantee
    signal_to_noise : float
        The least eigenvalue of the moments, about standard, over the norm of their noise.
    shortened : float
        Share of rows, noisy, that were shortened.
    levels : tuple of (str, str, str)
        Columns of two levels, each with its reference level, which counts 0, and the level that counts 1.
    references : tuple of (str, str)
        Columns of more levels, each with the level that the others are compared with.
    cluster, clusters : str; float or None
        The column whose clusters errors are by, and about how many vary as much; empty: by rows.
    """

    about: str
    outcome: str
    coefficients: tuple[Coefficient, ...]
    interval_reason: str
    assumed: str
    coverage: float
    signal_to_noise: float
    shortened: float
    n: int
    guarantee: Guarantee
    levels: tuple[tuple[str, str, str], ...] = field(default=(), kw_only=True)
    references: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    some_reason: str = field(default="", kw_only=True)
    cluster: str = field(default="", kw_only=True)
    clusters: float | None = field(default=None, kw_only=True)

    def __getitem__(self, name: str) -> Coefficient:
        """Return the coefficient of a column, of a level as ``"site = south"``, or of ``"intercept"``."""
        return next(one for one in self.coefficients if one.name == name)

    @classmethod
    def of(
        cls, release: ReleasedMoments, about: str, outcome: str, coefficients: tuple[Coefficient, ...], reason: str,
        terms: Terms, assumed: str = ASSUMED, astray: bool = False, **more: Any,
    ) -> Self:  # fmt: skip
        """Return a regression read off a release; it has no errors below the least signal, or where it is astray."""
        if not has_signal(release, terms.least_signal) or astray:
            coefficients = tuple(replace(one, standard_error=math.inf, noise_error=math.inf) for one in coefficients)
        return cls(
            about=about, outcome=outcome, coefficients=coefficients, interval_reason=reason,
            assumed="" if reason else assumed, coverage=terms.coverage, signal_to_noise=release.signal_to_noise,
            shortened=float(np.clip(release.shortened / release.count, 0, 1)), n=release.n,
            guarantee=release.guarantee, levels=release.levels, **more,
        )  # fmt: skip

    def headline(self) -> list[str]:
        lines = [f"{self.about}:", *(f"  {name}: 1 is {one}, 0 is {other}" for name, other, one in self.levels),
                 *(f"  {name}: compared with {level}" for name, level in self.references)]  # fmt: skip
        for one in self.coefficients:
            ends = "" if one.interval is None else f", {ci_text(one.interval, self.coverage)}"
            lines.append(f"  {one.name}: {signed_text(one.estimate)}{ends}")
        if self.interval_reason:
            lines.append(f"No intervals: {self.interval_reason}.")
        lines += [f"Not all have intervals: {self.some_reason}."] if self.some_reason else []
        lines += [f"{self.assumed}."] if self.assumed else []
        lines += [] if self.clusters is None else [f"Inference by {self.cluster} (about {self.clusters:.0f} clusters)."]
        lines.append(f"{self.n} {self.guarantee.records}, signal to noise {self.signal_to_noise:.3g}.")
        return lines

    def rows(self) -> list[dict[str, Any]]:
        shared = {"about": self.about, "outcome": self.outcome, "coverage": self.coverage, "n": self.n,
                  "interval_reason": self.interval_reason}  # fmt: skip
        return [flat_row(vars(one)) | shared for one in self.coefficients]

    def plot(self, ax: Any = None) -> Any:
        """Draw the slopes with their intervals, the intercept left out."""
        rows = [(one.name, one.estimate, one.interval) for one in self.coefficients if one.name != "intercept"]
        return forest(rows, ax, self.about, self.stamp())


def regress(
    release: ReleasedMoments, outcome: str, regressors: tuple[str, ...], terms: Terms,
    reference: Mapping[str, str] | None = None,
) -> Regression:  # fmt: skip
    factors = release.factors_in(regressors)
    reported = Contrasts.of(regressors, [release.factors[one] for one in factors], reference or {})
    numbers = [place for place, name in enumerate(reported.names) if name in release.names[: release.layout.numbers]]
    places = [release.names.index(name) for name in (outcome, *(reported.names[place] for place in numbers))]
    levels = [place for one in factors for place in release.layout.levels(one)]
    fitted, count = line(release, outcome, regressors), release.count
    slopes, inverse = fitted.slopes, fitted.inverse
    contrast = np.concatenate([[1.0], -slopes])
    assumed_errors = terms.errors is not None
    noise = fitted.noise(release)
    # Back to the columns' own origin: the intercept takes what the slopes make of the middle.
    centre, back = release.middles + release.halves * release.centre, reported.of_columns.copy()
    back[-1, : len(numbers)] = -centre[places[1:]]
    slopes = back @ slopes
    slopes[-1] += centre[places[0]]
    sandwich = release.sandwich
    known = sandwich is not None and sandwich.of(outcome, regressors)
    residual = np.zeros((1, len(release.names)))
    residual[0, [*places, *levels]] = contrast if levels else contrast[:-1]
    if release.factors and not levels:  # all levels of a factor together are the constant
        residual[0, release.layout.levels(0)] = contrast[-1]
    skew, unsure, assumed, hidden = skew_errors(release, residual), np.zeros(len(slopes)), ASSUMED, ""
    whole = False
    sampling = fitted.residual * inverse
    if sandwich is not None and known:
        squares, step = sandwich.over(regressors)
        own = slice(len(squares))
        sampling[own, own] = inverse[own, own] @ squares @ inverse[own, own] * count / fitted.free
        far = step is not None and bool((step.unsure < NOWHERE * np.sqrt(np.diag(step.noise))).all())
        if step is not None and (far or skew):  # a bend, too, moves the slopes of shortened rows, on no one side
            unsure = np.abs(back[:, own]) @ (step.unsure + _misfit(release, residual) * np.abs(step.by))
            slopes, skew, whole = slopes + back[:, own] @ step.by, 0.0, far
            noise[own, own] = step.noise
        if (far or not release.deviation) and not (levels and terms.homoscedastic):
            assumed = ""
        elif terms.errors == "symmetric":
            assumed = SYMMETRIC
        elif not assumed_errors:
            hidden = HIDDEN
    noise, both = (back @ matrix @ back.T for matrix in (noise, noise + sampling))
    errors, noises = (np.sqrt(np.maximum(np.diag(matrix), 0.0)) for matrix in (both, noise))
    clusters = sandwich.by_clusters(regressors) if sandwich is not None and known else []
    reaches, few = np.full(len(errors), terms.reach), [""] * len(errors)
    for place, one in zip(numbers if levels else range(len(errors)), clusters, strict=False):
        errors[place], reaches[place] = one.error(float(errors[place]), terms.coverage)
        few[place] = one.few
    skews = skew * sampling_share(errors, noises)
    reaches += np.minimum(skews, MOST_SKEW)
    sided = bool((skews > MOST_SKEW).any() or (unsure > MOST_UNSURE * errors).any())
    least = LEAST_SIGNAL if known else LEAST_OF_A_LINE
    reason = reason_for_no_interval(release, terms, sided, least, known, whole) or hidden
    reason = reason or (few[0] if all(few[:-1]) else "")
    if release.signal_to_noise < least:
        gone = without_redundant(release.among((outcome, *regressors)), 1, least)[1]
        reason = COLLINEAR.format(", ".join(map(repr, gone))) if gone else reason
    counted = np.diag(fitted.moments)[len(places) :]
    per = release.deviation * float((fitted.lift[len(places) :] ** 2).max(initial=0.0))
    rare = counted <= RESOLVED * per
    nearly = np.clip(NEARLY + RESOLVED - counted / max(per, 1e-300), 0.0, NEARLY)
    by_number = release.deviation * fitted.inverse @ fitted.lift[1:, levels] * (fitted.lift.T @ contrast)[levels]
    lifted = np.abs(back @ by_number) @ nearly[: len(levels)]
    for place in range(len(few) if levels else 0):
        if place not in numbers:
            of_levels = back[place, len(numbers) :]
            lost = np.array(levels)[rare & (of_levels != 0)]
            along = float(of_levels @ fitted.lost @ of_levels)
            if along > UNSEPARATED * float(of_levels @ inverse[len(numbers) :, len(numbers) :] @ of_levels):
                few[place] = UNDETERMINED.format(", ".join(repr(one) for one, _ in reported.bases))
                errors[place] = noises[place] = math.inf
            else:
                few[place] = RARE.format(release.names[lost[0]]) if len(lost) else "" if terms.homoscedastic else SPREAD
    centred = release.about((release.halves[:, None] * release.spread)[places], factors)
    robust = _robustness(centred @ release.sums @ centred.T / count)
    coefficients = tuple(
        coefficient(name, float(slopes[place]), float(errors[place]), float(noises[place]), float(reaches[place]),
                    reason or few[place], robust[numbers.index(place)] if robust and place in numbers else None,
                    float(unsure[place] + lifted[place]), reported.references[place])
        for place, name in enumerate(reported.names)
    )  # fmt: skip
    astray = assumed_errors and not whole and is_heavy_tailed(release)
    some = "" if reason else next(filter(None, few), "")
    named: dict[str, Any] = {"references": reported.bases, "some_reason": some}
    if sandwich is not None and clusters:
        named |= {"cluster": sandwich.cluster, "clusters": min(one.groups for one in clusters[: len(numbers)])}
    return Regression.of(release, f"{outcome} on", outcome, coefficients, reason, terms, assumed, astray, **named)


def coefficient(
    name: str, estimate: float, error: float, noise: float, reach: float, reason: str, robust: float | None = None,
    wider: float = 0.0, reference: str | None = None,
) -> Coefficient:  # fmt: skip
    half = reach * error + wider
    ends = None if reason else (estimate - half, estimate + half)
    limit = None if ends is None or robust is None else robustness_limit(robust, estimate, ends)
    return Coefficient(name, estimate, error, noise, ends, robust, limit, reference)


def has_signal(release: ReleasedMoments, least: float = LEAST_RATIO) -> bool:
    return release.signal_to_noise >= least and release.shortened <= MOST_TRUNCATED * release.count


def is_heavy_tailed(release: ReleasedMoments) -> bool:
    """Return whether clearly more rows were shortened than of normal data: statements about errors fail then."""
    from scipy.special import chdtrc

    normal = float(chdtrc(release.layout.numbers, release.radius_of_numbers**2)) * release.count
    more = release.shortened - normal
    return bool(
        release.deviation > 0 and more > MOST_MORE * release.count
        and more > SURE * math.hypot(release.noise.count, math.sqrt(normal))
    )  # fmt: skip


def reason_for_no_interval(
    release: ReleasedMoments, terms: Terms, sided: bool, least: float, spread_known: bool = False, whole: bool = False
) -> str:  # fmt: skip
    """Return why there is no interval, empty if there is; ``whole``: slopes are those of rows before shortening."""
    if release.signal_to_noise < least:
        return WEAK.format(least)
    if not has_signal(release, least):
        return LOST
    if sided:
        return SIDED
    if terms.errors is not None and not whole and is_heavy_tailed(release):
        return FAR_OUT
    if release.deviation and terms.errors != "normal" and detectable_skew(release.n, release.noise) < LEAST_SEEN:
        return BLIND
    return "" if terms.homoscedastic or spread_known else SPREAD


def sampling_share(errors: Reals, noises: Reals) -> Reals:
    """Return the standard errors that sampling alone has, as shares of those that noise has part in."""
    return np.sqrt(np.clip(1 - (noises / np.maximum(errors, 1e-300)) ** 2, 0.0, 1.0))


def skew_errors(release: ReleasedMoments, residuals: Reals) -> float:
    """Return how many standard errors of sampling a skew may move slopes by: 0 unless the shortened rows' directions,
    along residuals, add up to more than noise and chance make.

    Shortening moves slopes by the products of regressors and residuals over the shortened rows.  In the metric of the
    rows the two are orthogonal, so a residual that is symmetric given the regressors, however these lie, changes its
    sign and no row's length: the products sum to nothing.  If all that adds up lies on one side of a regressor, too,
    they sum to it times what normal rows of D numbers exceed R² by: 2 / (1 − (D − 2) / R²) on the average.
    """
    from scipy.special import chdtri

    _, values, along = np.linalg.svd((residuals * release.halves) @ release.spread, full_matrices=False)
    towards = along[values > 1e-9 * max(float(values[0]), 1e-300)] @ release.towards
    square, variance = float(towards @ towards), release.noise.count**2 + max(release.shortened, 0.0)
    if variance <= 0 or square <= variance * float(chdtri(len(towards), ONE_SIDED)):
        return 0.0
    inner = 1 - (release.layout.numbers - 2) / max(release.radius_of_numbers**2, 1e-6)
    return 2 / max(inner, 1e-6) * math.sqrt(square / release.count)


def _misfit(release: ReleasedMoments, residuals: Reals) -> float:
    """Return by how large a part moments of the regressors may be too small: shortened rows lay on one side of them."""
    along = np.linalg.svd((residuals * release.halves) @ release.spread, full_matrices=False)[2][0]
    orthogonal = release.towards - along * (along @ release.towards)
    return MISFIT * release.radius**2 * float(np.linalg.norm(orthogonal)) / release.count


def _robustness(covariance: Reals) -> list[float] | None:
    """Return the robustness value of each slope from its partial correlation; ``None`` if undefined."""
    eigenvalues = np.linalg.eigvalsh(covariance)
    if not eigenvalues[0] > 1e-12 * eigenvalues[-1]:
        return None
    inverse = np.linalg.inv(covariance)
    squares = inverse[0, 1:] ** 2 / (inverse[0, 0] * np.diag(inverse)[1:])
    return [robustness_value(float(min(square, 1 - 1e-12))) for square in squares]


def forecast(columns: int, n: int, radius: float, mu: float) -> float:
    """Return how many times as wide as without privacy the intervals will be: public. √(1 + 2.1 R⁴ / (n μ² s²)), s what
    shortening leaves of a normal row's mean square."""
    return math.sqrt(1 + 2.1 * (radius**2 / shrinkage(columns, radius)) ** 2 / (n * mu**2))
