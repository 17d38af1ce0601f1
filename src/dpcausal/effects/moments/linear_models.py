"""Two-stage least squares, partial correlations, mediation and sensitivity, read off noisy moments.

S = Σ (x − x̄)(x − x̄)′ of some columns is T (S_all + E) T′ for known T.  A function f of S with gradient Γ,
df = tr(Γ dS), has the noise variance Σ_ij (2 − δ_ij) Var(E_ij) (T′ΓT)_ij² and, for rows whose residuals are independent
of what they are residuals from and spread alike everywhere, the sampling variance 2 tr(ΓSΓS) / m.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.arrays import Reals
from dpcausal.codec import storable
from dpcausal.effects.cells.effect import benchmark, robustness_value
from dpcausal.effects.moments.regression import (
    LEAST_SIGNAL,
    MOST_SKEW,
    Coefficient,
    Regression,
    Terms,
    coefficient,
    reason_for_no_interval,
    sampling_share,
    skew_errors,
)  # fmt: skip
from dpcausal.effects.moments.released import MARGIN, ReleasedMoments
from dpcausal.effects.result import Interval, accepted_slopes
from dpcausal.errors import Advice, Setting
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.statistics.moments import variance_roots

LEAST_STRENGTH = 104.7
"""No interval of two-stage least squares below: from there on a normal one holds, however endogenous the treatment is,
and though it is shown by the strength that was found (Lee, McCrary, Moreira & Porter 2022)."""

WEAK_INSTRUMENTS = "the strength is below 104.7, where normal intervals may fail: the Anderson–Rubin set holds at any"

FAR_OUT = Advice(
    "how extreme the rows of each column lie moves it, which second moments do not show: say ",
    Setting("errors", "normal"), " if all columns are about normal",
)
NORMAL = "Intervals assume that all columns are about jointly normal, as you stated"
IV_CAUSAL = (
    "Causal only if the instruments share no cause with the outcome, affect it only through the treatment, and move "
    "the treatment in one direction."
)
MEDIATION_CAUSAL = (
    "Causal only if no common cause of treatment, mediator and outcome is left out, and the treatment causes none of "
    "mediator and outcome. If the mediator acts otherwise under treatment, direct and indirect effect are means over "
    "both arms; the total of a randomised treatment is not changed."
)
DRAWS = 40_000
"""Normal pairs by which the ends of a product's interval are found."""


@dataclass(frozen=True)
class Centred:
    """Sums of squares and products of some columns about their noisy means, in the columns' units."""

    S: Reals
    count: float
    lift: Reals
    weights: Reals
    """(2 − δ) times the variance of each entry of the release."""
    selection: Reals
    """What these are of the release's columns, shape (columns, d)."""
    absorbed: int = 0
    """Levels, less the first, about whose means the columns are."""

    @classmethod
    def of(cls, release: ReleasedMoments, names: Sequence[str]) -> Centred:
        """Return those of a release, within the levels of factors among the names; however noisy, they are those of
        some rows, none of whose columns is a line of others."""
        places = [release.names.index(name) for name in names if name in release.names]
        factors = release.factors_in(names)
        units = (release.halves[:, None] * release.spread)[places]
        lift, selection = release.about(units, factors), np.eye(len(release.names))[places]
        if factors:
            levels, within, _ = release.levels_of(factors)
            of_levels = [place for factor in factors for place in release.layout.levels(factor)]
            selection[:, of_levels] -= units @ release.sums[:-1, :-1] @ levels.T @ within
        elif release.factors:  # all levels of one together are the constant
            selection[:, release.layout.levels(0)] += lift[:, -1:]
        products = lift @ release.sums @ lift.T
        sizes = np.sqrt(np.maximum(np.diag(products), 1e-12 * release.halves[places] ** 2 * release.count))
        eigenvalues, vectors = np.linalg.eigh(products / np.outer(sizes, sizes))
        least = 1e-10 * max(float(eigenvalues[-1]), 1.0)
        S = (vectors * np.maximum(eigenvalues, least)) @ vectors.T * np.outer(sizes, sizes)
        variances, absorbed = release.variances, sum(release.layout.sizes[factor] - 1 for factor in factors)
        return cls(S, release.count, lift, variances * (2 - np.eye(len(variances))), selection, absorbed)

    def slopes(self, outcome: int, regressors: Sequence[int]) -> tuple[Reals, Reals]:
        """Return the slopes of a column on others, and c = (outcome less the line) as a row of columns."""
        on = list(regressors)
        if not on:
            return np.zeros(0), np.eye(len(self.S))[outcome]
        slopes: Reals = np.linalg.solve(self.S[np.ix_(on, on)], self.S[on, outcome]).astype(np.float64)
        contrast: Reals = np.eye(len(self.S))[outcome]
        contrast[on] -= slopes
        return slopes, contrast

    def residuals(self, *lines: tuple[int, Sequence[int]]) -> Reals:
        """Return c of each line, outcome and regressors, as rows of the release's columns."""
        return np.stack([self.slopes(one, on)[1] for one, on in lines]) @ self.selection

    def gradients(self, outcome: int, regressors: Sequence[int]) -> list[Reals]:
        """Return the gradient of each slope: d slope_j = (row j of the inverse of S over the regressors)′ dS c."""
        on = list(regressors)
        rows = np.zeros((len(on), len(self.S)))
        rows[:, on] = np.linalg.inv(self.S[np.ix_(on, on)])
        return [symmetric(row, self.slopes(outcome, on)[1]) for row in rows]

    def noise(self, gradients: Sequence[Reals]) -> Reals:
        """Return the covariance that the noise has in functions of these gradients."""
        lifted = [self.lift.T @ one @ self.lift for one in gradients]
        return MARGIN * np.array([[float((self.weights * a * b).sum()) for b in lifted] for a in lifted])

    def covariance(self, gradients: Sequence[Reals], used: int) -> Reals:
        """Return the covariance of functions of these gradients, noise and sampling; ``used``: degrees of freedom."""
        scaled = [one @ self.S for one in gradients]
        sampling = [[2 * float((a * b.T).sum()) for b in scaled] for a in scaled]
        return self.noise(gradients) + np.array(sampling) / max(self.count - used - self.absorbed, 1.0)

    def errors(self, gradients: Sequence[Reals], used: int) -> tuple[Reals, Reals]:
        """Return the standard errors of functions of these gradients, and the parts that the noise alone has."""
        whole, own = self.covariance(gradients, used), self.noise(gradients)
        return np.sqrt(np.maximum(np.diag(whole), 0.0)), np.sqrt(np.maximum(np.diag(own), 0.0))


def symmetric(row: Reals, other: Reals) -> Reals:
    """Return the symmetric matrix Γ with tr(Γ D) = row′ D other for every symmetric D."""
    return (np.outer(row, other) + np.outer(other, row)) / 2


def inverse(covariance: npt.NDArray[np.floating[Any]]) -> Reals:
    """Return C⁻¹, no direction thinner than 1e-12 of the widest: noise may have left one no width at all."""
    sizes = variance_roots(covariance)
    eigenvalues, vectors = np.linalg.eigh(covariance / np.outer(sizes, sizes))
    widths = np.maximum(eigenvalues, 1e-12 * max(float(eigenvalues[-1]), 1.0))
    return np.asarray((vectors / widths) @ vectors.T / np.outer(sizes, sizes), dtype=np.float64)


def _reason_and_reach(
    release: ReleasedMoments, terms: Terms, residuals: Reals, errors: Reals, noises: Reals, spread_known: bool = False
) -> tuple[str, float]:  # fmt: skip
    """Return why there is no interval, empty if there is, and its half-width in standard errors."""
    skew = skew_errors(release, residuals) * float(sampling_share(errors, noises).max())
    reason = reason_for_no_interval(release, terms, skew > MOST_SKEW, LEAST_SIGNAL, spread_known)
    return reason, terms.reach + min(skew, MOST_SKEW)


@storable("Instrumented")
@dataclass(frozen=True, eq=False)
class Instrumented(Regression):
    """The slope of a treatment by instruments; ``coefficients`` are those of two-stage least squares.

    Attributes
    ----------
    anderson_rubin : tuple of intervals
        The slopes that the instruments do not refute: right at every strength, unbounded where they are weak, empty
        where the instruments disagree.
    strength : float
        Wald statistic of the first stage per instrument, noise counted: the F statistic without noise.
    """

    anderson_rubin: tuple[Interval, ...] | None
    strength: float

    def headline(self) -> list[str]:
        region = "not computed, for the reason above" if self.anderson_rubin is None else " and ".join(
            f"{low:.4g} to {high:.4g}" for low, high in self.anderson_rubin
        ) or "empty: the instruments disagree"  # fmt: skip
        *lines, last = super().headline()
        return [*lines, IV_CAUSAL, f"Anderson–Rubin {self.coverage:.0%} set: {region}.",
                f"First-stage F, noise counted: {self.strength:.3g}.", last]  # fmt: skip


def two_stage(
    release: ReleasedMoments, outcome: str, treatment: str, instruments: tuple[str, ...], given: tuple[str, ...],
    terms: Terms,
) -> Instrumented:  # fmt: skip
    moments = Centred.of(release, (outcome, treatment, *instruments, *given))
    given = tuple(name for name in given if name in release.names)
    k, w = len(instruments), len(given)
    S, y, a, Z, W = moments.S, 0, 1, list(range(2, 2 + k)), list(range(2 + k, 2 + k + w))
    X, exogenous = [a, *W], [*Z, *W]
    first = np.linalg.solve(S[np.ix_(exogenous, exogenous)], S[np.ix_(exogenous, X)])
    projected = inverse(first.T @ S[np.ix_(exogenous, X)])
    rows = np.zeros((len(X), len(S)))
    rows[:, exogenous] = projected @ first.T
    slopes = rows @ S[:, y]
    contrast = np.eye(len(S))[y]
    contrast[X] -= slopes
    left = max(moments.count - len(X) - 1 - moments.absorbed, 1.0)
    spread = float(contrast @ S @ contrast) / left
    noise = np.diag(moments.noise([symmetric(row, contrast) for row in rows]))
    errors = np.sqrt(np.maximum(noise + spread * np.diag(projected), 0.0))
    of_stage = np.linalg.solve(S[np.ix_(exogenous, exogenous)], S[exogenous, a])[:k]
    covariance = moments.covariance(moments.gradients(a, exogenous)[:k], len(exogenous) + 1)
    strength = float(of_stage @ inverse(covariance) @ of_stage) / k
    residuals = moments.residuals((y, exogenous), (a, exogenous))
    reason, reach = _reason_and_reach(release, terms, residuals, errors, np.sqrt(np.maximum(noise, 0.0)))
    weak = reason or (WEAK_INSTRUMENTS if strength < LEAST_STRENGTH else "")
    coefficients: tuple[Coefficient, ...] = tuple(
        coefficient(name, float(slope), float(error), math.sqrt(max(float(own), 0.0)), reach, weak)
        for name, slope, error, own in zip((treatment, *given), slopes, errors, noise, strict=True)
    )
    about = f"{outcome} on {treatment}, by {', '.join(instruments)}"
    region = None if reason else unrefuted(moments, Z, W, terms, reach, float(slopes[0]), float(errors[0]))
    return Instrumented.of(release, about, outcome, coefficients, weak, terms, strength=strength, anderson_rubin=region)


def unrefuted(
    moments: Centred, Z: list[int], W: list[int], terms: Terms, reach: float, centre: float, scale: float
) -> tuple[Interval, ...]:
    """Return the slopes b at which m(b)′ V(b)⁻¹ m(b), m = Σ z⊥ (y − b a), stays below the χ² quantile. V counts noise
    and sampling; it is quadratic in b, as the residual's variance is.  A longer reach takes a larger quantile."""
    from scipy.special import chdtri

    S, exogenous = moments.S, [*Z, *W]
    purged = np.eye(len(S))[Z]
    if W:
        purged[:, W] = -np.linalg.solve(S[np.ix_(W, W)], S[np.ix_(W, Z)]).T
    (_, of_y), (_, of_a) = (moments.slopes(place, W) for place in (0, 1))
    (_, left_y), (_, left_a) = (moments.slopes(place, exogenous) for place in (0, 1))
    squares = purged @ S @ purged.T
    free = max(moments.count - len(exogenous) - 1 - moments.absorbed, 1.0)
    ends = [moments.noise([symmetric(row, part) for row in purged for part in (of_y, of_a)])]
    parts = ends[0].reshape(len(Z), 2, len(Z), 2)
    quantile = (math.sqrt(float(chdtri(len(Z), 1 - terms.coverage))) + reach - terms.reach) ** 2

    def excess(angle: float) -> float:
        weights = np.array([math.cos(angle), -(centre * math.cos(angle) + scale * math.sin(angle))])
        residual = weights[0] * left_y + weights[1] * left_a
        noise = np.einsum("isjt,s,t->ij", parts, weights, weights)
        covariance = noise + float(residual @ S @ residual) / free * squares
        m = purged @ S @ (weights[0] * of_y + weights[1] * of_a)
        return float(m @ inverse(covariance) @ m) - quantile

    return accepted_slopes(excess, 800, centre, scale)


def correlated(moments: Centred, x: int, y: int, given: Sequence[int]) -> tuple[float, Reals]:
    places = np.ix_([x, y, *given], [x, y, *given])
    p = np.linalg.inv(moments.S[places])
    root = math.sqrt(p[0, 0] * p[1, 1])
    r = float(np.clip(-p[0, 1] / root, -1 + 1e-12, 1 - 1e-12))
    gradient = np.zeros_like(moments.S)
    gradient[places] = symmetric(p[0], p[1]) / root
    gradient[places] += r / 2 * (np.outer(p[0], p[0]) / p[0, 0] + np.outer(p[1], p[1]) / p[1, 1])
    return r, gradient


def partial(release: ReleasedMoments, x: str, y: str, given: tuple[str, ...], terms: Terms) -> Regression:
    """Return ``JointMoments.partial`` of checked arguments; the interval is Fisher's, on the scale of atanh."""
    moments = Centred.of(release, (x, y, *given))
    given_all = list(range(2, len(moments.S)))
    r, gradient = correlated(moments, 0, 1, given_all)
    noise = float(moments.noise([gradient])[0, 0]) / (1 - r * r) ** 2
    whole = noise + 1 / max(moments.count - len(given_all) - 3 - moments.absorbed, 1.0)
    residuals = moments.residuals((0, given_all), (1, given_all))
    reason, reach = _reason_and_reach(
        release, terms, residuals, np.sqrt([whole]), np.sqrt([noise]), spread_known=True
    )  # fmt: skip
    reason = reason or ("" if terms.errors == "normal" else FAR_OUT)
    middle, shrink = math.atanh(r), 1 - r * r
    ends = math.tanh(middle - reach * math.sqrt(whole)), math.tanh(middle + reach * math.sqrt(whole))
    one = Coefficient(x, r, shrink * math.sqrt(whole), shrink * math.sqrt(noise), None if reason else ends)
    return Regression.of(release, f"partial correlation with {y}", y, (one,), reason, terms, NORMAL)


@storable("Mediated")
@dataclass(frozen=True, eq=False)
class Mediated(Regression):
    """Direct, indirect and total effect of a treatment."""

    def headline(self) -> list[str]:
        *lines, last = super().headline()
        return [*lines, MEDIATION_CAUSAL, last]


def mediated(
    release: ReleasedMoments, treatment: str, mediator: str, outcome: str, given: tuple[str, ...], terms: Terms,
) -> Regression:  # fmt: skip
    """Return ``JointMoments.mediation`` of checked arguments.

    indirect = (mediator on treatment) · (outcome on mediator, treatment held), total = direct + indirect
    """
    moments = Centred.of(release, (treatment, mediator, outcome, *given))
    others = list(range(3, len(moments.S)))
    through, direct = moments.slopes(1, [0, *others])[0], moments.slopes(2, [0, 1, *others])[0]
    total = moments.slopes(2, [0, *others])[0]
    first = moments.gradients(1, [0, *others])[0]
    straight, second = moments.gradients(2, [0, 1, *others])[:2]
    gradients = [straight, direct[1] * first + through[0] * second, moments.gradients(2, [0, *others])[0]]
    residuals = moments.residuals((1, [0, *others]), (2, [0, 1, *others]))
    used = len(others) + 3
    errors, noises = moments.errors(gradients, used)
    reason, reach = _reason_and_reach(release, terms, residuals, errors, noises)
    estimates = (float(direct[0]), float(through[0] * direct[1]), float(total[0]))
    rows = [
        coefficient(name, estimate, float(error), float(noise), reach, reason)
        for name, estimate, error, noise in zip(("direct", "indirect", "total"), estimates, errors, noises, strict=True)
    ]
    if not reason:
        # A product of two normals is not normal where both are near 0: its ends are those of drawn products.
        eigenvalues, vectors = np.linalg.eigh(moments.covariance([first, second], used))
        drawn = generator_from_seed(1).normal(0, 1, (DRAWS, 2)) * np.sqrt(np.maximum(eigenvalues, 0.0))
        products = (drawn @ vectors.T + [through[0], direct[1]]).prod(axis=1)
        ends = np.quantile(products, [0.5 - terms.coverage / 2, 0.5 + terms.coverage / 2])
        low, high = estimates[1] + (ends - estimates[1]) * reach / terms.reach
        rows[1] = Coefficient(
            "indirect", estimates[1], rows[1].standard_error, rows[1].noise_error, (float(low), float(high))
        )
    return Mediated.of(release, f"{treatment} on {outcome}, through {mediator}", outcome, tuple(rows), reason, terms)


def sensitivity_table(
    release: ReleasedMoments, outcome: str, treatment: str, given: tuple[str, ...],
    explains: tuple[float, float] | None, terms: Terms,
) -> Regression:  # fmt: skip
    """Return ``JointMoments.sensitivity`` of checked arguments. An unmeasured cause that explains shares R²_y of what
    is left of the outcome and R²_a of the treatment moves the slope by k sd(y⊥)/sd(a⊥), k² = R²_y R²_a / (1 − R²_a);
    the interval counts that this size, and k where it is that of a measured cause, are estimates, too."""
    moments = Centred.of(release, (outcome, treatment, *given))
    given = tuple(name for name in given if name in release.names)
    places = list(range(2, 2 + len(given)))
    slopes, left = moments.slopes(0, [1, *places])
    against = moments.slopes(1, places)[1]
    squares = [float(one @ moments.S @ one) for one in (left, against)]
    ratio = math.sqrt(squares[0] / squares[1])
    of_ratio = ratio / 2 * (np.outer(left, left) / squares[0] - np.outer(against, against) / squares[1])
    slope, residuals = float(slopes[0]), moments.residuals((0, [1, *places]), (1, places))
    still = np.zeros_like(moments.S)
    causes = [("nothing unmeasured", 0.0, still)]
    causes += [] if explains is None else [("shares as named", _moves(explains), still)]
    for place, name in zip(places, given, strict=True):
        others = [one for one in places if one != place]
        (r, of_r), (q, of_q) = correlated(moments, 0, place, [1, *others]), correlated(moments, 1, place, others)
        k, step = _as_strong(r, q), 1e-6
        of_k = (_as_strong(r + step, q) - _as_strong(r - step, q)) / (2 * step) * of_r
        of_k = of_k + (_as_strong(r, q + step) - _as_strong(r, q - step)) / (2 * step) * of_q
        causes += [(f"as strong as {name}", k, of_k)] if np.isfinite(of_k).all() else []
    sign, of_slope = math.copysign(1.0, slope), moments.gradients(0, [1, *places])[0]
    gradients = [of_slope - sign * (ratio * of_k + k * of_ratio) for _, k, of_k in causes]
    errors, noises = moments.errors(gradients, len(given) + 2)
    reason, reach = _reason_and_reach(release, terms, residuals, errors, noises)
    rest = reason or ("" if terms.errors == "normal" else FAR_OUT)
    robust = robustness_value(correlated(moments, 0, 1, places)[0] ** 2)
    rows = tuple(
        coefficient(name, slope - sign * min(k * ratio, 1e300), float(error), float(noise), reach,
                    rest if place else reason, None if place else robust)
        for place, ((name, k, _), error, noise) in enumerate(zip(causes, errors, noises, strict=True))
    )  # fmt: skip
    about = f"{treatment} on {outcome}, robustness value {robust:.3g}, left if a cause were unmeasured"
    table = Regression.of(release, about, outcome, rows, reason, terms)
    return replace(table, interval_reason=rest if len(rows) > 1 else reason)


def _moves(shares: tuple[float, float]) -> float:
    return math.sqrt(shares[0] * shares[1] / (1 - shares[1]))


def _as_strong(r: float, q: float) -> float:
    strength = benchmark(r * r, q * q)
    return math.nan if strength is None else _moves(strength)
