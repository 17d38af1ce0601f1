"""Pairs of columns whose direction is known: usual ones, and shapes that were made to mislead a verdict.

Of each: whether x causes y, and a draw of n rows.  In most misleading shapes x acts on y but something spoils the
model: heaps at a bound, few values, rows that come several times, rows that are missing for a reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from benchmarks.designs import register
from benchmarks.designs.pairs_practice import FRESH, Column, Columns, Rng

Draw = Callable[[int, Rng], Columns]


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
    "additive, waves": (True, additive(wave)),
    "additive, sigmoid": (True, additive(bend)),
    "linear, uniform": (True, linear),
    "location-scale, waves": (True, scaled(wave)),
    "location-scale, sigmoid": (True, scaled(bend)),
    "multiplicative": (True, multiplicative),
    "post-nonlinear": (True, post_nonlinear),
    "independent": (False, unlinked),
    "linear-Gaussian": (False, gaussian),
    "confounded, waves": (False, confounded(wave)),
    "confounded, sigmoid": (False, confounded(bend)),
    "confounded, linear": (False, common_line),
}


def sigmoid(n: int, rng: Rng) -> Columns:
    x = cause(n, rng)
    return x, bend(x, rng) + rng.uniform(0.2, 0.6) * noise(n, rng)


def then(draw: Draw, of_x: Callable[[Column], Column] | None, of_y: Callable[[Column], Column] | None) -> Draw:
    """Both columns of a draw, each measured in its way."""

    def drawn(n: int, rng: Rng) -> Columns:
        x, y = draw(n, rng)
        return of_x(x) if of_x else x, of_y(y) if of_y else y

    return drawn


def heaped(share: float, top: bool = False) -> Callable[[Column], Column]:
    def heap(v: Column) -> Column:
        return np.minimum(v, np.quantile(v, 1 - share)) if top else np.maximum(v, np.quantile(v, share))

    return heap


def rounded(steps: int) -> Callable[[Column], Column]:
    def to_steps(v: Column) -> Column:
        low, high = np.quantile(v, [0.005, 0.995])
        return np.asarray(np.round(np.clip((v - low) / (high - low), 0, 1) * (steps - 1)))

    return to_steps


def exponential(v: Column) -> Column:
    return np.exp((v - v.mean()) / v.std())


def apart(n: int, rng: Rng) -> Columns:
    return cause(n, rng), cause(n, rng)


def rare(n: int, rng: Rng) -> Columns:
    return (rng.random(n) < 0.03).astype(float), rng.normal(size=n)


def rare_cause(n: int, rng: Rng) -> Columns:
    x = (rng.random(n) < 0.1) * rng.exponential(size=n)
    return x, x + 0.5 * rng.normal(size=n)


def clusters(n: int, rng: Rng) -> Columns:
    """Sixty groups, nearly alike inside, x and y unlinked between them."""
    x, y = rng.normal(size=(2, 60))[:, rng.integers(0, 60, n)] + 0.05 * rng.normal(size=(2, n))
    return x, y


def copies(n: int, rng: Rng) -> Columns:
    x, y = gaussian(n, rng)
    again = rng.integers(0, n // 6, n)
    return x[again], y[again]


def walks(n: int, rng: Rng) -> Columns:
    x, y = np.cumsum(rng.normal(size=(2, n)), axis=1)
    return x, y


def steps(n: int, rng: Rng) -> Columns:
    x = cause(n, rng)
    return x, np.floor(rng.uniform(1, 2) * x) + rng.uniform(0.2, 0.5) * rng.normal(size=n)


def skewed(n: int, rng: Rng) -> Columns:
    x = rng.lognormal(0, 0.8, n)
    return x, x + rng.uniform(0.5, 1.5) * rng.lognormal(0, 0.6, n)


def cauchy(n: int, rng: Rng) -> Columns:
    x = cause(n, rng)
    return x, x + 0.3 * rng.standard_cauchy(n)


def poisson(n: int, rng: Rng) -> Columns:
    x = rng.normal(size=n)
    return x, rng.poisson(np.exp(1 + 0.7 * x)).astype(float)


def interaction(n: int, rng: Rng) -> Columns:
    x, z = rng.normal(size=(2, n))
    return x, x + x * z + 0.3 * rng.normal(size=n)


def two_groups(n: int, rng: Rng) -> Columns:
    x, z = rng.uniform(-1, 1, n), rng.random(n) < 0.5
    return x, np.where(z, x, -x) + 0.2 * rng.normal(size=n)


def both_ways(n: int, rng: Rng) -> Columns:
    a, e, turned = rng.uniform(-1, 1, n), 0.3 * rng.normal(size=n), rng.random(n) < 0.5
    b = a + a**3 + e
    return np.where(turned, b, a), np.where(turned, a, b)


def near_confounder(n: int, rng: Rng) -> Columns:
    z = cause(n, rng)
    return z + 0.1 * z.std() * rng.normal(size=n), bend(z, rng) + 0.4 * noise(n, rng)


def confounded_product(n: int, rng: Rng) -> Columns:
    z, w = rng.normal(size=(2, n))
    return z + w + 0.5 * rng.normal(size=n), z * w + 0.5 * rng.normal(size=n)


def confounded_groups(n: int, rng: Rng) -> Columns:
    z = rng.integers(0, 3, n)
    return rng.normal(0, 2, 3)[z] + rng.normal(size=n), rng.normal(0, 2, 3)[z] + rng.normal(size=n)


def confounded_step(n: int, rng: Rng) -> Columns:
    z = rng.normal(size=n)
    return np.sign(z) + 0.4 * noise(n, rng), wave(z, rng) + 0.4 * noise(n, rng)


def measured_badly(n: int, rng: Rng) -> Columns:
    x, y = sigmoid(n, rng)
    return x + 0.5 * x.std() * rng.normal(size=n), y


def lacking(how: str) -> Draw:
    """Rows without a value: of y for large y, of either for the sum of both, of either at random."""

    def drawn(n: int, rng: Rng) -> Columns:
        x, y = sigmoid(n, rng)
        u, v = ((c - c.mean()) / c.std() for c in (x, y))
        score = {"by y": 2 * v, "by both": 2 * (u + v), "at random": 0 * u - 0.85}[how]
        return x, np.where(rng.random(n) < 1 / (1 + np.exp(-score)), math.nan, y)

    return drawn


def part_of_whole(n: int, rng: Rng) -> Columns:
    x = rng.gamma(2.0, 1.0, n)
    return x, x + rng.gamma(2.0, 1.0, n)


def without_noise(n: int, rng: Rng) -> Columns:
    x = cause(n, rng)
    return x, wave(x, rng)


MISLEADING = {
    "heap in the cause": (True, then(sigmoid, heaped(0.15), None)),
    "heap in the effect": (True, then(sigmoid, None, heaped(0.15))),
    "effect cut at the top": (True, then(sigmoid, None, heaped(0.1, top=True))),
    "Gauss, heap in x": (False, then(gaussian, heaped(0.15), None)),
    "Gauss, small heap in y": (False, then(gaussian, None, heaped(0.06))),
    "apart, heap in x": (False, then(apart, heaped(0.2), None)),
    "cause of 5 values": (True, then(sigmoid, rounded(5), None)),
    "effect of 5 values": (True, then(sigmoid, None, rounded(5))),
    "both of 5 values": (True, then(sigmoid, rounded(5), rounded(5))),
    "Gauss, x of 7 values": (False, then(gaussian, rounded(7), None)),
    "Gauss, x of 20 values": (False, then(gaussian, rounded(20), None)),
    "effect of 15 values": (True, then(sigmoid, None, rounded(15))),
    "cause of 15 values": (True, then(sigmoid, rounded(15), None)),
    "apart, x of 2 values": (False, rare), "rare cause": (True, rare_cause),
    "Gauss, both in exp": (False, then(gaussian, exponential, exponential)),
    "Gauss, y in exp": (False, then(gaussian, None, exponential)),
    "effect in exp": (True, then(sigmoid, None, exponential)),
    "clusters of rows": (False, clusters), "Gauss, rows 6 times": (False, copies), "random walks": (False, walks),
    "steps": (True, steps), "skew": (True, skewed), "Cauchy noise": (True, cauchy), "counts": (True, poisson),
    "interaction": (True, interaction), "two groups": (True, two_groups), "both ways": (False, both_ways),
    "nearly the confounder": (False, near_confounder), "confounded, product": (False, confounded_product),
    "confounded, groups": (False, confounded_groups), "confounded, step": (False, confounded_step),
    "cause measured badly": (True, measured_badly), "missing by y": (True, lacking("by y")),
    "missing by both": (True, lacking("by both")), "missing at random": (True, lacking("at random")),
    "part of the whole": (True, part_of_whole), "no noise": (True, without_noise),
}  # fmt: skip

DESIGNS = register(USUAL, "usual") | register(MISLEADING, "misleading") | register(FRESH, "practice", "2026-11-23")
