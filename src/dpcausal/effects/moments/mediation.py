"""Partial correlations, direct and indirect effects, and what an unmeasured cause could do, read off noisy moments."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpcausal.effects.moments.linearization import Centred, symmetric
from dpcausal.effects.moments.regression import (
    LEAST_SIGNAL,
    Coefficient,
    Regression,
    Terms,
    coefficient,
    is_skewed,
    reason_for_no_interval,
)
from dpcausal.effects.moments.released import ReleasedMoments
from dpcausal.effects.unmeasured import benchmark, robustness_value
from dpcausal.privacy.noise import generator_from_seed

Reals = npt.NDArray[np.float64]

FAR_OUT = (
    "how extreme the rows of each column lie moves it, which second moments do not show: say errors='normal' if all "
    "columns are about normal"
)
NORMAL = "Intervals hold if all columns are about normal together, as was said"
DRAWS = 40_000
"""Normal pairs by which the ends of a product's interval are found."""


def correlated(moments: Centred, x: int, y: int, given: Sequence[int]) -> tuple[float, Reals]:
    """Return the partial correlation of two columns, others held fixed, and its gradient."""
    places = np.ix_([x, y, *given], [x, y, *given])
    p = np.linalg.inv(moments.S[places])
    root = math.sqrt(p[0, 0] * p[1, 1])
    r = float(np.clip(-p[0, 1] / root, -1 + 1e-12, 1 - 1e-12))
    gradient = np.zeros_like(moments.S)
    gradient[places] = symmetric(p[0], p[1]) / root
    gradient[places] += r / 2 * (np.outer(p[0], p[0]) / p[0, 0] + np.outer(p[1], p[1]) / p[1, 1])
    return r, gradient


def partial(
    release: ReleasedMoments, x: str, y: str, given: tuple[str, ...], terms: Terms
) -> Regression:
    """Return ``JointMoments.partial`` of checked arguments; the interval is Fisher's, on the scale of atanh."""
    moments = Centred.of(release, (x, y, *given))
    given_all = list(range(2, len(moments.S)))
    r, gradient = correlated(moments, 0, 1, given_all)
    noise = float(moments.noise([gradient])[0, 0]) / (1 - r * r) ** 2
    whole = noise + 1 / max(moments.count - len(given) - 3, 1.0)
    residuals = moments.residuals((0, given_all), (1, given_all))
    reason = reason_for_no_interval(release, terms, is_skewed(release, residuals), LEAST_SIGNAL, True)
    reason = reason or ("" if terms.errors == "normal" else FAR_OUT)
    reach, middle, shrink = terms.reach, math.atanh(r), 1 - r * r
    ends = math.tanh(middle - reach * math.sqrt(whole)), math.tanh(middle + reach * math.sqrt(whole))
    coefficient = Coefficient(
        x, r, shrink * math.sqrt(whole), shrink * math.sqrt(noise), None if reason else ends, None
    )  # fmt: skip
    parts = Regression.fields_of(release, f"partial correlation with {y}", y, (coefficient,), reason, terms, NORMAL)
    return Regression(**parts)


def mediated(
    release: ReleasedMoments, treatment: str, mediator: str, outcome: str, given: tuple[str, ...], terms: Terms,
) -> Regression:  # fmt: skip
    """Return ``JointMoments.mediation`` of checked arguments.

    indirect = (mediator on treatment) · (outcome on mediator, treatment held), total = direct + indirect
    """
    moments = Centred.of(release, (treatment, mediator, outcome, *given))
    others = list(range(3, 3 + len(given)))
    through, direct = moments.slopes(1, [0, *others])[0], moments.slopes(2, [0, 1, *others])[0]
    total = moments.slopes(2, [0, *others])[0]
    first = moments.gradients(1, [0, *others])[0]
    straight, second = moments.gradients(2, [0, 1, *others])[:2]
    gradients = [straight, direct[1] * first + through[0] * second, moments.gradients(2, [0, *others])[0]]
    residuals = moments.residuals((1, [0, *others]), (2, [0, 1, *others]))
    reason, reach = reason_for_no_interval(release, terms, is_skewed(release, residuals), LEAST_SIGNAL), terms.reach
    used = len(given) + 3
    errors = np.sqrt(np.maximum(np.diag(moments.covariance(gradients, used)), 0.0))
    noises = np.sqrt(np.maximum(np.diag(moments.noise(gradients)), 0.0))
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
        low, high = np.quantile(products, [0.5 - terms.coverage / 2, 0.5 + terms.coverage / 2])
        rows[1] = Coefficient(
            "indirect", estimates[1], rows[1].standard_error, rows[1].noise_error, (float(low), float(high))
        )
    about = f"{treatment} on {outcome}, through {mediator}"
    return Regression(**Regression.fields_of(release, about, outcome, tuple(rows), reason, terms))


def sensitivity_table(
    release: ReleasedMoments, outcome: str, treatment: str, given: tuple[str, ...],
    explains: tuple[float, float] | None, terms: Terms,
) -> Regression:  # fmt: skip
    """Return ``JointMoments.sensitivity`` of checked arguments.

    An unmeasured cause that explains shares R²_y of what is left of the outcome and R²_a of the treatment moves the
    slope by k sd(y⊥)/sd(a⊥), k² = R²_y R²_a / (1 − R²_a); the interval counts that this size, and k where it is that of
    a measured cause, are estimates, too.
    """
    moments = Centred.of(release, (outcome, treatment, *given))
    places = list(range(2, 2 + len(given)))
    slopes, left = moments.slopes(0, [1, *places])
    against = moments.slopes(1, places)[1]
    squares = [float(one @ moments.S @ one) for one in (left, against)]
    ratio = math.sqrt(squares[0] / squares[1])
    of_ratio = ratio / 2 * (np.outer(left, left) / squares[0] - np.outer(against, against) / squares[1])
    slope, reach, residuals = float(slopes[0]), terms.reach, moments.residuals((0, [1, *places]), (1, places))
    reason = reason_for_no_interval(release, terms, is_skewed(release, residuals), LEAST_SIGNAL)
    rest = reason or ("" if terms.errors == "normal" else FAR_OUT)
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
    errors, noises = (
        np.sqrt(np.maximum(np.diag(one), 0.0))
        for one in (moments.covariance(gradients, len(given) + 2), moments.noise(gradients))
    )
    robust = robustness_value(correlated(moments, 0, 1, places)[0] ** 2)
    rows = tuple(
        coefficient(name, slope - sign * min(k * ratio, 1e300), float(error), float(noise), reach,
                    rest if place else reason, None if place else robust)
        for place, ((name, k, _), error, noise) in enumerate(zip(causes, errors, noises, strict=True))
    )  # fmt: skip
    about = f"{treatment} on {outcome}, robustness value {robust:.3g}, left if a cause were unmeasured"
    parts = Regression.fields_of(release, about, outcome, rows, reason, terms)
    return Regression(**parts | {"interval_reason": rest if len(rows) > 1 else reason})


def _moves(shares: tuple[float, float]) -> float:
    return math.sqrt(shares[0] * shares[1] / (1 - shares[1]))


def _as_strong(r: float, q: float) -> float:
    strength = benchmark(r * r, q * q)
    return math.nan if strength is None else _moves(strength)
