"""The only source of random bits: OpenDP's exact samplers behind a fence, public randomness, a simulation mode.

Three kinds of randomness, never confused:

* **noise** that hides data comes from OpenDP, which draws it exactly and from the operating system, so that it
  survives a fork and does not leak through the low bits of a float;
* **public** randomness (splits, blocks, random features, simulated designs) comes from a numpy generator whose
  seed is in the result: it protects nobody and need not;
* **simulated** noise, inside ``with simulated_noise(seed):``, is predictable and fast, for power studies and
  tests.  A durable ledger refuses it and every result is stamped as not private.

The fence: a NaN, an infinity, a value too large for exact arithmetic or a scale that is not positive never
reaches OpenDP, which would take NaN as 0, infinity as the largest float and scale 0 as no noise at all.
"""

import decimal
import math
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dpcausal.errors import FenceError, ParameterError

PublicGenerator: TypeAlias = np.random.Generator
"""The type of a generator of public randomness."""

Reals: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

LARGEST_INTEGER = 2**61
"""Integers beyond this never reach the noise: with any allowed scale the sum stays inside 64 bits."""

LARGEST_REAL = 1e300
LARGEST_SCALE = 1e15

_simulation: ContextVar[PublicGenerator | None] = ContextVar("simulated_noise", default=None)


@contextmanager
def simulated_noise(seed: int) -> Iterator[None]:
    """Draw the stated noise from a seeded generator: predictable, hence NOT private.

    Inside the block every mechanism adds noise of the distribution it states, fast and the same at each run; splits and
    random features are fixed too.  Only in-memory ledgers serve it, and ``guarantee.private`` is False.

    Parameters
    ----------
    seed : int
        At least 0.

    Examples
    --------
    >>> with simulated_noise(7):
    ...     is_simulated()
    True
    >>> is_simulated()
    False
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ParameterError("the seed must be a whole number of at least 0")
    token = _simulation.set(np.random.default_rng(int(seed)))
    try:
        yield
    finally:
        _simulation.reset(token)


def is_simulated() -> bool:
    return _simulation.get() is not None


def public_name() -> str:
    """Return 32 hexadecimal digits that nothing else has: public, never simulated, and they decide nothing."""
    return os.urandom(16).hex()


def public_generator(seed: int | None = None) -> tuple[PublicGenerator, int]:
    """Return a generator of public randomness and its seed, which goes into the result.

    A seed that is not given is fresh from the operating system, or follows from the seed of ``simulated_noise``.
    """
    if seed is None:
        simulation = _simulation.get()
        seed = int(simulation.integers(2**63)) if simulation is not None else secrets.randbits(63)
    return generator_from_seed(seed), seed


def generator_from_seed(seed: int) -> PublicGenerator:
    """Return the generator of public randomness of a known seed."""
    return np.random.default_rng(seed)


@contextmanager
def own_streams(seed: int) -> Iterator[None]:
    """Give the process-wide streams of numpy and Python a public seed of their own inside, and put them back after.
    Code of other libraries may draw from them; what one block draws must not decide where the next one's random stream
    begins. For one thread at a time."""
    import random

    from numpy.random import mtrand

    before = random.getstate()
    generator, numpys = mtrand.get_bit_generator(), mtrand.get_state(legacy=False)
    try:
        restart_streams(seed)
        yield
    finally:
        random.setstate(before)
        mtrand.set_bit_generator(generator)
        mtrand.set_state(numpys)


def restart_streams(seed: int) -> None:
    import random

    from numpy.random import mtrand

    random.seed(seed)
    mtrand.set_bit_generator(np.random.MT19937(seed))  # whatever kind stands there: only this one can be seeded


def check_scale(scale: float) -> float:
    # Below 1e-300 a scale is as good as 0; above 1e15 integer noise could wrap.
    if not (isinstance(scale, float) and math.isfinite(scale) and 1e-300 < scale <= LARGEST_SCALE):
        raise FenceError("a noise scale must be above 0, finite and at most 1e15")
    return scale


def _fence_reals(values: Reals) -> None:
    # The exact type: a masked array would hide a NaN from the test that follows.
    if type(values) is not np.ndarray or values.dtype != np.float64:
        raise FenceError("only float64 arrays are noised here")
    if not bool((np.abs(values) <= LARGEST_REAL).all()):  # false for NaN too
        raise FenceError("only finite float64 values of magnitude at most 1e300 are noised")


def _fence_integers(values: Integers) -> None:
    if type(values) is not np.ndarray or values.dtype != np.int64:
        raise FenceError("only int64 arrays are noised here")
    if not bool(((values <= LARGEST_INTEGER) & (values >= -LARGEST_INTEGER)).all()):
        raise FenceError("only int64 values of magnitude at most 2^61 are noised")


def _fence_cost(scale: float, sensitivity: float, pure: float | None = None, rho: float | None = None) -> None:
    """Refuse a scale whose loss is above the claim: sensitivity/scale > ε, or (sensitivity/scale)²/2 > ρ; exact."""
    check_scale(scale)
    limit = pure if rho is None else rho
    if limit is None or not all(math.isfinite(x) and x > 0 for x in (sensitivity, limit)):
        raise FenceError("a sensitivity and a loss must be positive and finite")
    ratio = Fraction(sensitivity) / Fraction(scale)
    if (ratio if rho is None else ratio**2 / 2) > Fraction(limit):
        raise FenceError("the noise scale is too small for the stated sensitivity and loss")


@lru_cache(maxsize=1)
def _opendp() -> Any:
    import opendp.prelude as opendp

    opendp.enable_features("contrib")
    return opendp


def draw_once() -> None:
    add_geometric(np.zeros(1, dtype=np.int64), 1.0, sensitivity=1, epsilon=1.0)
    add_gaussian(np.zeros(1), 1.0, sensitivity=1.0, rho=0.5)


def _certify(measurement: Any, sensitivity: float | int, limit: float) -> None:
    """Refuse unless OpenDP's own map says that the draw costs at most ``limit``: a second opinion on the cost."""
    if not measurement.map(sensitivity) <= limit:
        raise FenceError("the noise scale is too small for the stated sensitivity and loss")


def _certified_draw(values: npt.NDArray[Any], scale: float, sensitivity: float, limit: float, *, gaussian: bool) -> Any:
    opendp = _opendp()
    integral = values.dtype == np.int64
    atoms = opendp.atom_domain(T="i64") if integral else opendp.atom_domain(T=float, nan=False)
    distance = opendp.l2_distance(T=float) if gaussian else opendp.l1_distance(T="i64" if integral else float)
    make = opendp.m.make_gaussian if gaussian else opendp.m.make_laplace
    measurement = make(opendp.vector_domain(atoms), distance, scale=scale)
    _certify(measurement, sensitivity, limit)
    return np.asarray(measurement(values.ravel().tolist()), dtype=values.dtype).reshape(values.shape)


# Each function below refuses unless the scale pays, exactly and by OpenDP's map, for the claimed loss at the stated
# sensitivity: in l1 for Laplace and geometric noise, in l2 for Gaussian noise.


def add_laplace(values: Reals, scale: float, *, sensitivity: float, epsilon: float) -> Reals:
    """Return ``values`` plus independent Laplace noise, density ∝ exp(−|z|/scale)."""
    _fence_cost(scale, sensitivity, pure=epsilon)
    _fence_reals(values)
    if (simulation := _simulation.get()) is not None:
        return np.asarray(values + simulation.laplace(scale=scale, size=values.shape))
    return np.asarray(_certified_draw(values, scale, sensitivity, epsilon, gaussian=False))


def add_geometric(values: Integers, scale: float, *, sensitivity: int, epsilon: float) -> Integers:
    """Return integers plus independent two-sided geometric noise, P(k) ∝ exp(−|k|/scale)."""
    _fence_cost(scale, sensitivity, pure=epsilon)
    _fence_integers(values)
    if (simulation := _simulation.get()) is not None:
        # The difference of two geometric variables with success 1 − exp(−1/scale) has this distribution.
        success = -math.expm1(-1 / scale)
        noise = simulation.geometric(success, size=values.shape) - simulation.geometric(success, size=values.shape)
        return np.asarray(values + noise.astype(np.int64))
    return np.asarray(_certified_draw(values, scale, sensitivity, epsilon, gaussian=False))


def add_gaussian(values: Reals, scale: float, *, sensitivity: float, rho: float) -> Reals:
    """Return ``values`` plus independent Gaussian noise of standard deviation ``scale``, sensitivity / √(2ρ)."""
    _fence_cost(scale, sensitivity, rho=rho)
    _fence_reals(values)
    if (simulation := _simulation.get()) is not None:
        return np.asarray(values + simulation.normal(scale=scale, size=values.shape))
    return np.asarray(_certified_draw(values, scale, sensitivity, rho, gaussian=True))


def add_discrete_gaussian(values: Integers, scale: float, *, sensitivity: float, rho: float) -> Integers:
    """Return integers plus independent discrete Gaussian noise, P(k) ∝ exp(−k²/(2 scale²)).

    *Source*: Canonne, Kamath & Steinke (2020), Theorem 4.
    """
    _fence_cost(scale, sensitivity, rho=rho)
    _fence_integers(values)
    if (simulation := _simulation.get()) is not None:
        return np.asarray(values + _simulated_discrete_gaussian(simulation, scale, values.shape))
    return np.asarray(_certified_draw(values, scale, sensitivity, rho, gaussian=True))


def _simulated_discrete_gaussian(simulation: PublicGenerator, scale: float, shape: tuple[int, ...]) -> Integers:
    if scale > 50:  # here a rounded normal differs from the discrete law by less than 1e-4 in any probability
        return np.rint(simulation.normal(scale=scale, size=shape)).astype(np.int64)
    reach = math.ceil(12 * scale) + 1
    support = np.arange(-reach, reach + 1)
    weights = np.exp(-((support / scale) ** 2) / 2)
    return simulation.choice(support, size=shape, p=weights / weights.sum()).astype(np.int64)


def noisy_argmax(scores: npt.NDArray[Any], scale: float, *, sensitivity: float | int, epsilon: float) -> int:
    """Return the index of the largest score after adding exponential noise of mean 2 · sensitivity / ε to each. The
    sensitivity is in l∞."""
    _fence_cost(scale, 2 * sensitivity, pure=epsilon)
    integral = getattr(scores, "dtype", None) == np.int64
    _fence_integers(scores) if integral else _fence_reals(scores)
    if scores.ndim != 1 or scores.size == 0:
        raise FenceError("a selection needs one row of at least one score")
    simulation = _simulation.get()
    if simulation is not None:
        return int(np.argmax(scores + simulation.exponential(scale=scale, size=scores.shape)))
    opendp = _opendp()
    kind = "i64" if integral else "f64"
    atoms = opendp.atom_domain(T="i64") if integral else opendp.atom_domain(T=float, nan=False)
    space = opendp.vector_domain(atoms), opendp.linf_distance(T=kind)
    measurement = opendp.m.make_noisy_max(*space, opendp.max_divergence(), scale=scale)
    _certify(measurement, sensitivity, epsilon)
    return int(measurement(scores.tolist()))


MOST_SIDES = 8
"""Longest vector that gets noise of the cube: one candidate in 2·dᵈ/d! is kept."""


def add_cube(values: Integers, scale: float, *, sensitivity: int, epsilon: float) -> Integers:
    """Return 1 to 8 integers plus K-norm noise of the cube, P(z) ∝ exp(−max|z_i| / scale). The same parameters as
    ``add_geometric``, the sensitivity in l∞.  Of candidates z, d exact geometric draws at d·scale, one is kept if a
    further such draw is at least d·max|z_i| − Σ|z_i|, which has a chance ∝ exp(−max|z_i|/scale + Σ|z_i|/(d·scale)):
    claim ``cube``."""
    _fence_cost(scale, sensitivity, pure=epsilon)
    _fence_integers(values)
    if values.ndim != 1 or not 1 <= values.size <= MOST_SIDES:
        raise FenceError("the cube's noise needs one row of 1 to 8 integers")
    d = values.size
    wide = math.nextafter(d * scale, math.inf)  # the product as a float may be a little less
    candidates = np.zeros((32, d + 1), dtype=np.int64)
    while True:
        z = add_geometric(candidates, wide, sensitivity=1, epsilon=math.nextafter(1 / wide, math.inf))
        sizes = np.abs(z[:, :d])
        accepted = z[z[:, d] >= d * sizes.max(axis=1) - sizes.sum(axis=1), :d]
        if len(accepted):
            return np.asarray(values + accepted[0])


_BITS = 800
_DIGITS = 256  # a relative error of 2^-850 per operation
LARGEST_BALL = 10**6


def _uniform() -> Decimal:
    return Decimal(2 * secrets.randbits(_BITS) + 1) / Decimal(2 ** (_BITS + 1))


def add_l2_ball(values: Reals, scale: float, *, sensitivity: float, epsilon: float) -> Reals:
    """Return a vector plus K-norm noise of the Euclidean ball, density ∝ exp(−‖z‖₂ / scale).

    ‖z‖ ~ Gamma(d, scale), z/‖z‖ uniform on the sphere, where d ≤ 10⁶ is the vector's length and scale sensitivity / ε.

    No library has this sampler.  Radius (a sum of d exponentials) and direction (normals by the polar method) are
    drawn and added in decimal arithmetic of 256 digits from 800-bit uniforms, and only the sum is rounded to a
    float: the distribution is exact up to a total variation of d^2.5 · 2⁻²²⁰, claim ``l2-ball``.  Refused unless
    sensitivity/scale ≤ ε, exactly.
    """
    _fence_cost(scale, sensitivity, pure=epsilon)
    _fence_reals(values)
    if values.ndim != 1 or not 1 <= values.size <= LARGEST_BALL:
        raise FenceError("the ball's noise needs one row of 1 to 1,000,000 values")
    simulation = _simulation.get()
    if simulation is not None:
        direction = simulation.normal(size=values.shape)
        radius = simulation.gamma(values.size, scale)
        return np.asarray(values + radius * direction / np.linalg.norm(direction))
    with decimal.localcontext(decimal.Context(prec=_DIGITS, Emin=-(10**6), Emax=10**6)):
        normals: list[Decimal] = []
        while len(normals) < values.size:
            u, v = 2 * _uniform() - 1, 2 * _uniform() - 1
            square = u * u + v * v
            if 0 < square < 1:
                stretch = (-2 * square.ln() / square).sqrt()
                normals += [u * stretch, v * stretch]
        del normals[values.size :]
        length = sum((normal * normal for normal in normals), Decimal(0)).sqrt()
        length_of_noise = -sum((_uniform().ln() for _ in normals), Decimal(0))
        factor = length_of_noise * Decimal(scale) / length
        noisy = [float(Decimal(value) + factor * one) for value, one in zip(values.tolist(), normals, strict=True)]
    return np.asarray(noisy, dtype=np.float64)
