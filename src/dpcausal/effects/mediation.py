"""Partial correlations, direct and indirect effects, and what an unmeasured cause could do, read off noisy moments."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpcausal.effects.linearised import Centred, symmetric
from dpcausal.effects.regression import LEAST_SIGNAL, Coefficient, Regression, Terms, coefficient, one_sided, reason_of
from dpcausal.effects.unmeasured import benchmark, robustness_value
from dpcausal.privacy.noise import generator_from_seed

if TYPE_CHECKING:
    from dpcausal.effects.joint_moments import JointMoments

Reals = npt.NDArray[np.float64]

DRAWS = 40_000
"""Normal pairs by which the ends of a product's interval are found."""


def partial(
    release: JointMoments, x: str, y: str, given: tuple[str, ...], terms: Terms
) -> Regression:
    """Return ``JointMoments.partial`` of checked arguments; the interval is Fisher's, on the scale of atanh."""
    moments = Centred.of(release, (x, y, *given))
    p = np.linalg.inv(moments.S)
    root = math.sqrt(p[0, 0] * p[1, 1])
    r = float(np.clip(-p[0, 1] / root, -1 + 1e-12, 1 - 1e-12))
    gradient = symmetric(p[0], p[1]) / root
    gradient += r / 2 * (np.outer(p[0], p[0]) / p[0, 0] + np.outer(p[1], p[1]) / p[1, 1])
    noise = float(moments.noise([gradient])[0, 0]) / (1 - r * r) ** 2
    whole = noise + 1 / max(moments.count - len(given) - 3, 1.0)
    given_all = list(range(2, len(moments.S)))
    residuals = moments.residuals((0, given_all), (1, given_all))
    reason = reason_of(release, terms, one_sided(release, residuals), LEAST_SIGNAL)
    reach, middle, shrink = terms.reach, math.atanh(r), 1 - r * r
    ends = math.tanh(middle - reach * math.sqrt(whole)), math.tanh(middle + reach * math.sqrt(whole))
    found = Coefficient(
        x, r, shrink * math.sqrt(whole), shrink * math.sqrt(noise), None if reason else ends, None
    )  # fmt: skip
    return Regression(**Regression.told(release, f"partial correlation with {y}", y, (found,), reason, terms))


def mediated(
    release: JointMoments, treatment: str, mediator: str, outcome: str, given: tuple[str, ...], terms: Terms,
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
    reason, reach = reason_of(release, terms, one_sided(release, residuals), LEAST_SIGNAL), terms.reach
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
    return Regression(**Regression.told(release, about, outcome, tuple(rows), reason, terms))


def shaken(
    release: JointMoments, outcome: str, treatment: str, given: tuple[str, ...],
    explains: tuple[float, float] | None, terms: Terms,
) -> Regression:  # fmt: skip
    """Return ``JointMoments.sensitivity`` of checked arguments.

    An unmeasured cause that explains shares R²_y of what is left of the outcome and R²_a of the treatment moves the
    slope by k sd(y⊥)/sd(a⊥), k² = R²_y R²_a / (1 − R²_a); the interval counts that this size is an estimate, too.
    """
    moments = Centred.of(release, (outcome, treatment, *given))
    places = list(range(2, 2 + len(given)))
    slopes, contrast = moments.slopes(0, [1, *places])
    gradient = moments.gradients(0, [1, *places])[0]
    noise = float(moments.noise([gradient])[0, 0])
    error2 = max(float(moments.covariance([gradient], len(given) + 2)[0, 0]), 0.0)
    against = moments.slopes(1, places)[1]
    ratio = math.sqrt(float(contrast @ moments.S @ contrast) / float(against @ moments.S @ against))
    slope, reach, residuals = float(slopes[0]), terms.reach, moments.residuals((0, [1, *places]), (1, places))
    reason = reason_of(release, terms, one_sided(release, residuals), LEAST_SIGNAL)

    def share(one: int, other: int, held: list[int]) -> float:
        p = np.linalg.inv(moments.S[np.ix_([one, other, *held], [one, other, *held])])
        return float(np.clip(p[0, 1] ** 2 / (p[0, 0] * p[1, 1]), 0, 1 - 1e-9))

    causes = [("nothing unmeasured", (0.0, 0.0))]
    causes += [] if explains is None else [("shares as named", explains)]
    for place, name in zip(places, given, strict=True):
        others = [one for one in places if one != place]
        found = benchmark(share(0, place, [1, *others]), share(1, place, others))
        causes += [] if found is None else [(f"as strong as {name}", found)]
    rows: list[Coefficient] = []
    robust = robustness_value(share(0, 1, places))
    for name, (of_outcome, of_treatment) in causes:
        k2 = of_outcome * of_treatment / (1 - of_treatment)
        moved = slope - math.copysign(min(math.sqrt(k2) * ratio, 1e300), slope)
        # The noise moves slope and ratio alike to the first order where the cause is named by its shares.
        error, own = math.sqrt(error2 * (1 + k2)), math.sqrt(noise * (1 + k2))
        rows.append(coefficient(name, moved, error, own, reach, reason, None if rows else robust))
    about = f"{treatment} on {outcome}, robustness value {robust:.3g}, left if a cause were unmeasured"
    return Regression(**Regression.told(release, about, outcome, tuple(rows), reason, terms))
