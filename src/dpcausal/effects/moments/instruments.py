"""Instruments: two-stage least squares and Anderson–Rubin sets, read off noisy moments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.codec import storable
from dpcausal.effects.moments.linearization import Centred, inverse, symmetric
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
from dpcausal.effects.result import Interval

Reals = npt.NDArray[np.float64]

LEAST_STRENGTH = 104.7
"""No interval of two-stage least squares below: from there on a normal one holds, however endogenous the treatment is,
and though it is shown by the strength that was found (Lee, McCrary, Moreira & Porter 2022)."""

WEAK_INSTRUMENTS = "the strength is below 104.7, where normal intervals may fail: the Anderson–Rubin set holds at any"


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
        region = "not shown" if self.anderson_rubin is None else " and ".join(
            f"{low:.4g} to {high:.4g}" for low, high in self.anderson_rubin
        ) or "empty: the instruments disagree"  # fmt: skip
        *lines, last = super().headline()
        return [*lines, f"Anderson–Rubin {self.coverage:.0%} set: {region}; strength {self.strength:.3g}.", last]


def two_stage(
    release: ReleasedMoments, outcome: str, treatment: str, instruments: tuple[str, ...], given: tuple[str, ...],
    terms: Terms,
) -> Instrumented:  # fmt: skip
    """Return ``JointMoments.iv`` of checked arguments."""
    moments = Centred.of(release, (outcome, treatment, *instruments, *given))
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
    left = max(moments.count - len(X) - 1, 1.0)
    spread = float(contrast @ S @ contrast) / left
    noise = np.diag(moments.noise([symmetric(row, contrast) for row in rows]))
    errors = np.sqrt(np.maximum(noise + spread * np.diag(projected), 0.0))
    of_stage = np.linalg.solve(S[np.ix_(exogenous, exogenous)], S[exogenous, a])[:k]
    covariance = moments.covariance(moments.gradients(a, exogenous)[:k], len(exogenous) + 1)
    strength = float(of_stage @ inverse(covariance) @ of_stage) / k
    residuals = moments.residuals((y, exogenous), (a, exogenous))
    reason = reason_for_no_interval(release, terms, is_skewed(release, residuals), LEAST_SIGNAL)
    weak = reason or (WEAK_INSTRUMENTS if strength < LEAST_STRENGTH else "")
    reach = terms.reach
    coefficients: tuple[Coefficient, ...] = tuple(
        coefficient(name, float(slope), float(error), math.sqrt(max(float(own), 0.0)), reach, weak)
        for name, slope, error, own in zip((treatment, *given), slopes, errors, noise, strict=True)
    )
    about = f"{outcome} on, by {', '.join(instruments)}"
    return Instrumented(
        **Regression.fields_of(release, about, outcome, coefficients, weak, terms), strength=strength,
        anderson_rubin=None if reason else unrefuted(moments, Z, W, terms.coverage, float(slopes[0]), float(errors[0])),
    )  # fmt: skip


def unrefuted(
    moments: Centred, Z: list[int], W: list[int], coverage: float, centre: float, scale: float
) -> tuple[Interval, ...]:
    """Return the slopes b at which m(b)′ V(b)⁻¹ m(b), m = Σ z⊥ (y − b a), stays below the χ² quantile.

    V counts noise and sampling; it is quadratic in b, as the residual's variance is.
    """
    from scipy.optimize import brentq
    from scipy.special import chdtri

    S, exogenous = moments.S, [*Z, *W]
    purged = np.eye(len(S))[Z]
    if W:
        purged[:, W] = -np.linalg.solve(S[np.ix_(W, W)], S[np.ix_(W, Z)]).T
    (_, of_y), (_, of_a) = (moments.slopes(place, W) for place in (0, 1))
    (_, left_y), (_, left_a) = (moments.slopes(place, exogenous) for place in (0, 1))
    squares = purged @ S @ purged.T
    free = max(moments.count - len(exogenous) - 1, 1.0)
    ends = [moments.noise([symmetric(row, part) for row in purged for part in (of_y, of_a)])]
    parts = ends[0].reshape(len(Z), 2, len(Z), 2)
    quantile = float(chdtri(len(Z), 1 - coverage))

    def excess(angle: float) -> float:
        # Homogeneous in (y, a): the ends of the circle stand for an infinite slope.
        weights = np.array([math.cos(angle), -(centre * math.cos(angle) + scale * math.sin(angle))])
        residual = weights[0] * left_y + weights[1] * left_a
        noise = np.einsum("isjt,s,t->ij", parts, weights, weights)
        covariance = noise + float(residual @ S @ residual) / free * squares
        m = purged @ S @ (weights[0] * of_y + weights[1] * of_a)
        return float(m @ inverse(covariance) @ m) - quantile

    def slope(angle: float) -> float:
        return centre + scale * math.tan(angle) if abs(angle) < math.pi / 2 else math.copysign(math.inf, angle)

    angles = np.linspace(-math.pi / 2, math.pi / 2, 801)
    values = [excess(angle) for angle in angles]
    borders = [
        brentq(excess, low, high) for low, high, v, u in zip(angles, angles[1:], values, values[1:], strict=False)
        if (v > 0) != (u > 0)
    ]  # fmt: skip
    edges = [*([angles[0]] if values[0] <= 0 else []), *borders, *([angles[-1]] if values[-1] <= 0 else [])]
    pairs: list[Any] = [(slope(low), slope(high)) for low, high in zip(edges[::2], edges[1::2], strict=True)]
    return tuple(pairs)
