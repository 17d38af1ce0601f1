"""Simulated panels with a known effect: common factors with a shock, and the linear design of the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcausal.data.schema import Bounded
from dpcausal.errors import ParameterError
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed, public_generator

Reals = npt.NDArray[np.float64]

MOST_DONORS = 10_000_000

PERSISTENCE, STEP = 0.8, 0.12
"""The common factors are autoregressions of this coefficient, with normal steps of this standard deviation."""

LEVEL, LOADING = 0.35, 0.35
"""Levels are uniform on ±LEVEL; loadings on each factor normal around 1 with this standard deviation."""


@dataclass(frozen=True, eq=False)
class SimulatedPanel:
    """Donors (n, T), a target (T,) as observed and ``untreated``, and the truth.

    ``start`` is T0, the place of the first treated period; ``effect`` was added in each of them, before values moved
    into the bounds [−1, 1].  The same arguments and ``seed`` give the same panel.
    """

    donors: Reals
    target: Reals
    untreated: Reals
    start: int
    effect: float
    bounds: Bounded
    seed: int


def factor_panel(
    donors: int,
    *,
    before: int = 10,
    after: int = 3,
    effect: float = 0.0,
    shock: float = 0.2,
    noise: float = 0.06,
    seed: int | None = None,
) -> SimulatedPanel:
    """Draw a panel in which all units follow two common factors, and a shock of unknown sign comes with the treatment.

    x_it = a_i + b_i1 f_1t + b_i2 f_2t + noise,  f_1 shifted by ±shock from the start on

    where a_i is uniform on ±0.35, loadings are normal around 1 with standard deviation 0.35, and the factors are
    autoregressions with coefficient 0.8 and steps 0.12; values are moved into [−1, 1].  The target is a unit like any
    other, so a forecast from its own past misses the shock and the donors show it.

    Parameters
    ----------
    donors : int
        n ≥ 1.
    before, after : int
        T0 ≥ 1 and m ≥ 1.
    effect : float
        Of the treatment on the target.
    shock, noise : float
        At least 0; noise is a standard deviation.
    seed : int, optional
        At least 0; by default a fresh public seed.

    Examples
    --------
    >>> made = factor_panel(50, seed=3)
    >>> made.donors.shape, made.start, made.bounds
    ((50, 13), 10, Bounded(-1, 1))
    """
    generator, seed = _generator(donors, before, after, seed)
    for name, value in (("effect", abs(effect)), ("shock", shock), ("noise", noise)):
        if not (isinstance(value, (int, float)) and 0 <= value < math.inf):
            raise ParameterError(f"{name} must be a finite number, shock and noise of at least 0")
    T = before + after
    steps = STEP * generator.standard_normal((2, T))
    factors = np.zeros((2, T))
    for t in range(T):
        factors[:, t] = (PERSISTENCE * factors[:, t - 1] if t else 0) + steps[:, t]
    factors[0, before:] += shock * (1 if generator.integers(2) else -1)
    level = generator.uniform(-LEVEL, LEVEL, donors + 1)
    loadings = generator.normal(1, LOADING, (donors + 1, 2))
    rows = level[:, None] + loadings @ factors + noise * generator.standard_normal((donors + 1, T))
    return _panel(rows, before, effect, seed)


def linear_panel(
    donors: int, *, before: int = 10, after: int = 3, effect: float = 0.0, seed: int | None = None
) -> SimulatedPanel:
    """Draw the design of Rho, Cummings & Misra (2023), Section 6: x_it = θ_i t + noise, scaled to [−1, 1].

    θ_i is normal around 4 with variance 1, within [3, 5]; the noise normal with variance 0.1, within [−1, 1]; t from 1.
    The scale is that of the design's own range, [2, 5T + 1], moved to [−1, 1].  A straight line through the target's
    own past predicts it, without any donor.

    Examples
    --------
    >>> linear_panel(10, seed=1).donors.shape
    (10, 13)
    """
    generator, seed = _generator(donors, before, after, seed)
    T = before + after
    slopes = _within(generator, donors + 1, 4.0, 1.0, 3.0, 5.0)
    noise = _within(generator, (donors + 1) * T, 0.0, math.sqrt(0.1), -1.0, 1.0).reshape(donors + 1, T)
    low, high = 2.0, 5.0 * T + 1
    rows = (slopes[:, None] * np.arange(1, T + 1) + noise - (low + high) / 2) / ((high - low) / 2)
    return _panel(rows, before, effect, seed)


def _generator(donors: int, before: int, after: int, seed: int | None) -> tuple[PublicGenerator, int]:
    for name, value, most in (("donors", donors, MOST_DONORS), ("before", before, 10_000), ("after", after, 10_000)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise ParameterError(f"{name} must be a whole number between 1 and {most}")
    if seed is None:
        return public_generator()
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ParameterError("the seed must be a whole number of at least 0")
    return generator_from_seed(seed), seed


def _within(generator: PublicGenerator, size: int, mean: float, deviation: float, low: float, high: float) -> Reals:
    drawn = generator.normal(mean, deviation, size)
    while (outside := (drawn < low) | (drawn > high)).any():
        drawn[outside] = generator.normal(mean, deviation, int(outside.sum()))
    return drawn


def _panel(rows: Reals, before: int, effect: float, seed: int) -> SimulatedPanel:
    target = rows[0].copy()
    target[before:] += effect
    return SimulatedPanel(
        donors=np.clip(rows[1:], -1, 1),
        target=np.clip(target, -1, 1),
        untreated=np.clip(rows[0], -1, 1),
        start=before,
        effect=float(effect),
        bounds=Bounded(-1, 1),
        seed=seed,
    )
