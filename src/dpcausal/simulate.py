"""Simulated data with a known answer: the designs of the papers, from public randomness.

Everything about a design is public: its distribution, its seed and the bounds in its schema, which follow from the
distribution and never from the drawn records.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.core.validate import check_choice, number, whole
from dpcausal.data.schema import Bounded, Schema
from dpcausal.errors import ParameterError
from dpcausal.privacy.noise import PublicGenerator, public_generator

Mechanism = Literal["linear", "cubic", "tanh", "exponential", "sine", "quadratic", "smooth"]
Noise = Literal["gaussian", "uniform", "laplace", "lognormal"]
Cause = Literal["gaussian", "uniform"]

LARGEST_NOISE = 8.0
"""Noise beyond 8 standard deviations is moved there, so that the effect has a public range."""

_REACH = {"gaussian": 4.0, "uniform": 2.0}
LARGEST_SCALE = math.nextafter(math.inf, 0.0)

MOST_RECORDS = 100_000_000
_WAVES = 200  # cosines in one random smooth function
_LENGTH = 0.8  # its length scale, in units of the cause


@dataclass(frozen=True, eq=False)
class SimulatedPair:
    """Two columns of which ``x`` is the cause of ``y``, within the bounds of ``schema``.

    ``anm_pair`` with the same arguments and this ``seed`` gives the same columns.
    """

    columns: dict[str, Reals]
    schema: Schema
    cause: str
    effect: str
    seed: int


def _generator_of(seed: int | None) -> tuple[PublicGenerator, int]:
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ParameterError("the seed must be a whole number of at least 0")
    return public_generator(seed)


def _smooth(generator: PublicGenerator) -> Callable[[Reals], Reals]:
    rates = generator.standard_normal(_WAVES) / _LENGTH
    phases = generator.uniform(0, 2 * math.pi, _WAVES)
    weights = generator.standard_normal(_WAVES)

    def function(x: Reals) -> Reals:
        total = np.zeros(x.shape)
        for rate, phase, weight in zip(rates, phases, weights, strict=True):
            total += weight * np.cos(rate * x + phase)
        return total

    return function


_MECHANISMS: dict[str, Callable[[PublicGenerator], Callable[[Reals], Reals]]] = {
    "linear": lambda _: lambda x: x,
    "cubic": lambda _: lambda x: x + x**3 / 3,
    "tanh": lambda _: lambda x: np.tanh(2 * x),
    "exponential": lambda _: lambda x: np.exp(0.8 * x),
    "sine": lambda _: lambda x: np.sin(2 * x) + x / 2,
    "quadratic": lambda _: lambda x: (x + 0.5) ** 2,
    "smooth": _smooth,
}

_NOISES: dict[str, Callable[[PublicGenerator, int], Reals]] = {
    "gaussian": lambda generator, n: generator.standard_normal(n),
    "uniform": lambda generator, n: generator.uniform(-math.sqrt(3), math.sqrt(3), n),
    "laplace": lambda generator, n: generator.laplace(scale=math.sqrt(0.5), size=n),
    "lognormal": lambda generator, n: (
        (np.exp(generator.standard_normal(n) / 2) - math.exp(0.125)) / math.sqrt(math.exp(0.25) * math.expm1(0.25))
    ),
}


def anm_pair(
    n: int,
    *,
    mechanism: Mechanism = "tanh",
    noise: Noise = "gaussian",
    cause: Cause = "uniform",
    noise_scale: float = 0.3,
    seed: int | None = None,
) -> SimulatedPair:
    """Draw n independent records of an additive noise model, y = f(x) + noise, noise independent of x.

    f is scaled to mean 0 and variance 1 under the distribution of x.

    Parameters
    ----------
    n : int
        Number of records, 1 to 100 million.
    mechanism : str
        f before scaling: ``"linear"`` x, ``"cubic"`` x + x³/3, ``"tanh"`` tanh 2x, ``"exponential"`` e^{0.8x},
        ``"sine"`` sin 2x + x/2, ``"quadratic"`` (x + ½)², ``"smooth"`` a random smooth function of length scale 0.8.
    noise : str
        ``"gaussian"``, ``"uniform"``, ``"laplace"`` or ``"lognormal"`` (the exponential of a normal of standard
        deviation ½, centred); mean 0, standard deviation ``noise_scale``.
    cause : str
        Distribution of x: ``"uniform"`` on [−2, 2], or ``"gaussian"``, standard normal moved into [−4, 4].
    noise_scale : float
        Standard deviation of the noise, > 0, beside the 1 of f(x).
    seed : int, optional
        At least 0; by default a fresh public seed, which the result carries.

    Notes
    -----
    Linear f with Gaussian x and noise is the one case here whose direction no method can find.
    *Source*: the designs are of the kind in Hoyer et al. (2009) and Mooij et al. (2016).

    Examples
    --------
    >>> pair = anm_pair(100, mechanism="cubic", noise="laplace", seed=5)
    >>> pair.cause, pair.columns["y"].shape, pair.schema["x"]
    ('x', (100,), Bounded(-2, 2))
    """
    whole("n", n, 1, MOST_RECORDS)
    check_choice("mechanism", mechanism, tuple(_MECHANISMS))
    check_choice("noise", noise, tuple(_NOISES))
    check_choice("cause", cause, tuple(_REACH))
    number("noise_scale", noise_scale, math.ulp(0.0), LARGEST_SCALE)
    generator, seed = _generator_of(seed)
    reach = _REACH[cause]
    function = _MECHANISMS[mechanism](generator)
    grid = np.linspace(-reach, reach, 4001)
    density = np.exp(-grid * grid / 2) if cause == "gaussian" else np.ones_like(grid)
    density /= density.sum()
    values = function(grid)
    centre = float(values @ density)
    spread = math.sqrt(float((values - centre) ** 2 @ density))
    lowest, highest = float(values.min() - centre) / spread, float(values.max() - centre) / spread

    if cause == "gaussian":
        x = np.clip(generator.standard_normal(n), -reach, reach)
    else:
        x = generator.uniform(-reach, reach, n)
    errors = np.clip(_NOISES[noise](generator, n), -LARGEST_NOISE, LARGEST_NOISE)
    lower, upper = lowest - LARGEST_NOISE * noise_scale, highest + LARGEST_NOISE * noise_scale
    # A random function may pass its grid's extremes by a little between two points.
    y = np.clip((function(x) - centre) / spread + noise_scale * errors, lower, upper)
    schema = Schema({"x": Bounded(-reach, reach), "y": Bounded(lower, upper)})
    return SimulatedPair({"x": x, "y": y}, schema, "x", "y", seed)


@dataclass(frozen=True, eq=False)
class SimulatedRows:
    """Columns ``x``, ``y`` and ``z1``, …, ``zd``, within the bounds of ``schema``; ``seed`` gives the same again."""

    columns: dict[str, Reals]
    schema: Schema
    given: list[str]
    seed: int


def smooth_design(
    n: int,
    *,
    effect: float = 0.0,
    complexity: float = 2.0,
    dimensions: int = 1,
    bound: float = 3.0,
    seed: int | None = None,
) -> SimulatedRows:
    """Draw x = f(z₁) + e, y = −f(z₁) + e′ + βe with f(z) = exp(−z²/2) sin(sz), z ~ N(0, 4), e and e′ standard normal.

    Given z, x and y are independent if and only if β = 0.

    Parameters
    ----------
    n : int
        Number of records, 1 to 100 million.
    effect : float
        β, of size at most 100.
    complexity : float
        s, in [0, 1000]: the larger, the harder f is to learn.
    dimensions : int
        d, 1 to 100; z₂, …, z_d play no part.
    bound : float
        x and y are clipped to ±bound, z to ±8.
    seed : int, optional
        At least 0; by default a fresh public seed, which the result carries.

    Notes
    -----
    *Source*: Shah & Peters (2020), section 5; used by Kalemaj, Kasiviswanathan & Ramdas (2024), section 5.

    Examples
    --------
    >>> data = smooth_design(100, effect=0.5, dimensions=2, seed=5)
    >>> data.given, data.columns["x"].shape, data.schema["x"]
    (['z1', 'z2'], (100,), Bounded(-3, 3))
    """
    whole("n", n, 1, MOST_RECORDS)
    whole("dimensions", dimensions, 1, 100)
    number("effect", effect, -100, 100)
    number("complexity", complexity, 0, 1000)
    number("bound", bound, 0.1, 1e6)
    generator, seed = _generator_of(seed)
    z = 2 * generator.standard_normal((dimensions, n))
    errors = generator.standard_normal((2, n))
    f = np.exp(-(z[0] ** 2) / 2) * np.sin(complexity * z[0])
    columns = {"x": f + errors[0], "y": errors[1] - f + effect * errors[0]}
    columns = {name: np.clip(values, -bound, bound) for name, values in columns.items()}
    given = [f"z{k + 1}" for k in range(dimensions)]
    columns |= {name: np.clip(values, -8, 8) for name, values in zip(given, z, strict=True)}
    schema = Schema({name: Bounded(-8, 8) if name in given else Bounded(-bound, bound) for name in columns})
    return SimulatedRows(columns, schema, given, seed)


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
    whole("donors", donors, 1, MOST_DONORS)
    whole("before", before, 1, 10_000)
    whole("after", after, 1, 10_000)
    generator, seed = _generator_of(seed)
    number("effect", effect, -LARGEST_SCALE, LARGEST_SCALE)
    number("shock", shock, 0, LARGEST_SCALE)
    number("noise", noise, 0, LARGEST_SCALE)
    T = before + after
    steps = STEP * generator.standard_normal((2, T))
    factors = np.zeros((2, T))
    for t in range(T):
        factors[:, t] = (PERSISTENCE * factors[:, t - 1] if t else 0) + steps[:, t]
    factors[0, before:] += shock * (1 if generator.integers(2) else -1)
    level = generator.uniform(-LEVEL, LEVEL, donors + 1)
    loadings = generator.normal(1, LOADING, (donors + 1, 2))
    rows = level[:, None] + loadings @ factors + noise * generator.standard_normal((donors + 1, T))
    target = rows[0].copy()
    target[before:] += effect
    return SimulatedPanel(
        donors=np.clip(rows[1:], -1, 1), target=np.clip(target, -1, 1), untreated=np.clip(rows[0], -1, 1),
        start=before, effect=float(effect), bounds=Bounded(-1, 1), seed=seed,
    )  # fmt: skip
