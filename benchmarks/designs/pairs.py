"""Pairs of columns whose direction is known: whether x causes y, and a draw of n rows."""

from collections.abc import Callable

import numpy as np

from benchmarks.designs import register
from benchmarks.designs.pairs_practice import FRESH, Column, Columns, Rng


def wave(x: Column, rng: Rng) -> Column:
    """A random smooth function, near a Gaussian process of length 1, in units of x."""
    x = (x - x.mean()) / x.std()
    f = np.cos(np.outer(x, rng.normal(size=200)) + rng.uniform(0, 2 * np.pi, 200)) @ rng.normal(size=200)
    return np.asarray((f - f.mean()) / f.std())


def bend(x: Column, rng: Rng) -> Column:
    """A random sigmoid."""
    x = (x - x.mean()) / x.std()
    b, c = rng.uniform(0.5, 2) * rng.choice([-1, 1]), rng.uniform(-2, 2)
    f = b * (x + c) / (1 + np.abs(b * (x + c)))
    return np.asarray((f - f.mean()) / f.std())


def cause(n: int, rng: Rng) -> Column:
    """Normal, uniform, or a mixture of four normals."""
    kind = int(rng.integers(3))
    if kind == 2:
        return np.asarray(rng.normal(0, 2, 4)[rng.integers(0, 4, n)] + rng.normal(size=n))
    return np.asarray(rng.uniform(-1.7, 1.7, n) if kind else rng.normal(size=n))


def noise(n: int, rng: Rng) -> Column:
    e = rng.normal(size=n)
    e = np.sign(e) * np.abs(e) ** rng.uniform(0.7, 1.4)
    return np.asarray(e / e.std())


def additive(shape: Callable[[Column, Rng], Column]) -> Callable[[int, Rng], Columns]:
    def draw(n: int, rng: Rng) -> Columns:
        x = cause(n, rng)
        return x, shape(x, rng) + rng.uniform(0.2, 0.6) * noise(n, rng)

    return draw


def scaled(shape: Callable[[Column, Rng], Column]) -> Callable[[int, Rng], Columns]:
    def draw(n: int, rng: Rng) -> Columns:
        x = cause(n, rng)
        return x, shape(x, rng) + 0.4 * np.exp(0.6 * shape(x, rng)) * rng.normal(size=n)

    return draw


def confounded(shape: Callable[[Column, Rng], Column]) -> Callable[[int, Rng], Columns]:
    def draw(n: int, rng: Rng) -> Columns:
        z = rng.normal(size=n)
        return shape(z, rng) + 0.4 * noise(n, rng), shape(z, rng) + 0.4 * noise(n, rng)

    return draw


def linear(n: int, rng: Rng) -> Columns:
    x = rng.uniform(-1, 1, n)
    return x, x + rng.uniform(0.3, 0.6) * rng.uniform(-1, 1, n)


def gaussian(n: int, rng: Rng) -> Columns:
    x = rng.normal(size=n)
    return x, x + rng.uniform(0.3, 1) * rng.normal(size=n)


def multiplicative(n: int, rng: Rng) -> Columns:
    x = rng.uniform(0.5, 2.5, n)
    return x, x ** rng.uniform(0.5, 2) * np.exp(0.4 * rng.normal(size=n))


def post_nonlinear(n: int, rng: Rng) -> Columns:
    x = cause(n, rng)
    z = bend(x, rng) + 0.4 * noise(n, rng)
    return x, z**3 + z


def common_line(n: int, rng: Rng) -> Columns:
    z = rng.uniform(-1, 1, n)
    return z + 0.4 * rng.uniform(-1, 1, n), z + 0.4 * rng.uniform(-1, 1, n)


def unlinked(n: int, rng: Rng) -> Columns:
    return cause(n, rng), cause(n, rng)


USUAL = {
    "additive, waves": (True, additive(wave)), "additive, sigmoid": (True, additive(bend)),
    "linear, uniform": (True, linear), "location-scale, waves": (True, scaled(wave)),
    "location-scale, sigmoid": (True, scaled(bend)), "multiplicative": (True, multiplicative),
    "post-nonlinear": (True, post_nonlinear), "independent": (False, unlinked), "linear-Gaussian": (False, gaussian),
    "confounded, waves": (False, confounded(wave)), "confounded, sigmoid": (False, confounded(bend)),
    "confounded, linear": (False, common_line),
}  # fmt: skip
DESIGNS = register(USUAL, "usual") | register(FRESH, "practice", "2026-11-23")
