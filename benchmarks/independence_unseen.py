"""Five true nulls and two links, named by somebody who had not seen the defaults chosen, run after these were fixed.

    python -m benchmarks independence_unseen [tables]

Each draws (x, y, z); what is public of its columns stands beside it.  Left as they were found, but for the way that
they are called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.simulate import SimulatedRows

Reals = Any


def _sig(t: Reals) -> Reals:
    return 1 / (1 + np.exp(-t))


def _ward_stay(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Length of stay, heaped at whole weeks, and the number of scans ordered, given age on a two-humped ward."""
    z = np.round(np.clip(np.where(rng.random(n) < 0.35, rng.normal(31, 6, n), rng.normal(73, 9, n)), 18, 99), 1)
    mean = 2 + 0.002 * (z - 18) ** 2
    stay = np.ceil(rng.gamma(1.6, mean / 1.6))
    heap = (rng.random(n) < 0.15 + 0.35 * _sig((z - 60) / 5)) & (stay >= 5)
    y = np.clip(np.where(heap, 7 * np.round(stay / 7), stay), 1, 60)
    none = rng.random(n) < _sig(1.2 - 0.03 * z)
    x = np.clip(np.where(none, 0, rng.poisson(rng.gamma(1.5, (0.5 + 0.03 * z) / 1.5))), 0, 30)
    return x.astype(float), y.astype(float), z


def _wage_floor(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Log wage, massed at the minimum and a top code, and weekly hours, massed at 40, given years of experience."""
    z = np.clip(np.round(2 * 45 * rng.beta(1.1, 2.2, n)) / 2, 0, 45)
    lw = 2.45 + 0.055 * z - 0.0009 * z**2 + 0.4 * rng.standard_normal(n)
    x = np.clip(np.where((lw < 2.518) & (rng.random(n) < 0.12), lw, np.maximum(lw, 2.518)), 1.6, 3.9)
    part = _sig(0.9 - 0.25 * z) + 0.25 * _sig((z - 38) / 2)
    u, v = rng.random(n), rng.standard_normal(n)
    y = np.where(
        u < part, np.round(4 * (20 + 6 * v) / 4), np.where(rng.random(n) < 0.65, 40, np.round(43 + 5 * np.abs(v)))
    )
    return x, np.clip(y, 4, 80).astype(float), z


def _recalibrated_sensors(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Two field sensors given the day: one drifts and is reset at five visits, the other drifts on."""
    z = rng.uniform(0, 365, n)
    visits = np.sort(rng.uniform(30, 350, 5))
    last = np.concatenate([[0.0], visits])[np.searchsorted(visits, z)]
    x = 40 + 12 * np.sin(2 * np.pi * (z - 100) / 365) + 0.12 * (z - last) + 4 * rng.standard_t(5, n)
    heating = np.exp(-(((z - 20) / 40) ** 2)) + np.exp(-(((z - 350) / 40) ** 2))
    y = 410 + 0.06 * z + 25 * heating + (3 + 5 * heating) * rng.standard_normal(n)
    return np.clip(x, -20, 140), np.clip(y, 350, 550), z


def _assay_plates(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Two gene expressions on twelve plates of uneven size, each with its shift, gain and noise, given also a count."""
    size = rng.dirichlet(np.full(12, 2.0))
    size = 0.02 + 0.76 * size
    plate = rng.choice(12, n, p=size / size.sum())
    cells = rng.normal(8, 0.7, n) + 0.3 * (plate % 4)
    a, b, s = rng.normal(0, 1.0, (2, 12)), rng.uniform(0.3, 1.2, (2, 12)), rng.uniform(0.3, 1.0, (2, 12))
    x = a[0, plate] + b[0, plate] * cells + s[0, plate] * rng.standard_normal(n)
    y = a[1, plate] + b[1, plate] * cells + s[1, plate] * (rng.gamma(2.0, 0.7, n) - 1.4)
    return np.clip(x, -5, 25), np.clip(y, -5, 25), np.column_stack([plate.astype(float), np.clip(cells, 4, 13)])


def _never_smokers(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Days with cough and lung function given pack-years, of which more than half of the people have none at all."""
    z = np.where(rng.random(n) < 0.55, 0, np.clip(np.ceil(rng.gamma(1.3, 14, n)), 1, 120)).astype(float)
    p = _sig(-2.5 + 0.06 * z)
    none = rng.random(n) < 0.5 - 0.003 * np.minimum(z, 100)
    x = np.where(none, 0, rng.binomial(30, np.clip(p * rng.gamma(4, 0.25, n), 0, 1)))
    y = np.clip(np.round(101 - 0.5 * z + 0.0015 * z**2 - rng.gamma(2.0, 6.0, n) + 12), 15, 140)
    return x.astype(float), y.astype(float), z


def _night_shift_some(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Coffee raises blood pressure in one worker of four only, given age: a mixture of populations."""
    z = np.round(np.clip(rng.normal(44, 11, n), 18, 67))
    x = np.clip(rng.poisson(1.2 + 0.03 * z), 0, 12).astype(float)
    y = np.round(100 + 0.5 * z + 4.5 * (x - 2.5) * (rng.random(n) < 0.25) + 8 * rng.standard_normal(n))
    return x, np.clip(y, 70, 200), z


def _overtime_threshold(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Hours matter for errors only beyond 48 a week, given years in the job: nothing happens in most of the range."""
    z = np.clip(rng.gamma(1.5, 6, n), 0, 45)
    x = np.clip(np.round(42 - 0.1 * z + rng.gamma(2, 4, n) - 5), 20, 80)
    y = np.clip(rng.poisson(np.exp(0.7 - 0.03 * z) + 0.28 * np.maximum(x - 48, 0)), 0, 40).astype(float)
    return x, y, z


def _asked(drawn: Callable[[Any, int], tuple[Reals, Reals, Reals]], x: Any, y: Any, *z: Any) -> Any:
    """Return a shape as the tables of shapes take it; its link is its own."""

    def draw(n: int, coins: Any, link: float) -> SimulatedRows:
        first, second, given = drawn(coins, n)
        names = [f"z{place}" for place in range(len(z))]
        columns = {"x": first, "y": second}
        for name, column, values in zip(names, z, given.reshape(n, -1).T, strict=True):
            columns[name] = values.astype(np.int64) if isinstance(column, Levels) else values
        return SimulatedRows(columns, Schema(dict(zip(columns, (x, y, *z), strict=True))), names, 0)

    return draw


NULLS = {
    "stay and scans on a two-humped ward": _asked(_ward_stay, Bounded(0, 30), Bounded(1, 60), Bounded(18, 99)),
    "log wage and massed hours by experience": _asked(_wage_floor, Bounded(1.6, 3.9), Bounded(4, 80), Bounded(0, 45)),
    "two sensors, one reset five times": _asked(
        _recalibrated_sensors, Bounded(-20, 140), Bounded(350, 550), Bounded(0, 365)
    ),
    "two genes on twelve plates": _asked(
        _assay_plates, Bounded(-5, 25), Bounded(-5, 25), Levels(range(12)), Bounded(4, 13)
    ),
    "cough and lung function by pack-years": _asked(_never_smokers, Bounded(0, 30), Bounded(15, 140), Bounded(0, 120)),
}
LINKS = {
    "a link in one of four workers": _asked(_night_shift_some, Bounded(0, 12), Bounded(70, 200), Bounded(18, 67)),
    "a link beyond 48 hours only": _asked(_overtime_threshold, Bounded(20, 80), Bounded(0, 40), Bounded(0, 45)),
}


def main(arguments: list[str]) -> int:
    """Print how often the default calls x and y dependent, with two standard errors."""
    from benchmarks import independence_level

    repetitions = int(arguments[0]) if arguments else 500
    print(f"share of {repetitions} tables called dependent at .05, ε = {independence_level.EPSILONS}")
    for kind, drawn in (("true null", NULLS), ("link", LINKS)):
        for name, shape in drawn.items():
            for n in (2_000, 10_000):
                found = np.array(list(independence_level.rejected(shape, n, repetitions)))
                rates = zip(found.mean(axis=0), 2 * found.std(axis=0) / len(found) ** 0.5, strict=True)
                print(f"{kind:10}{name:42}{n:7,}  ", "  ".join(f"{a:.3f} ± {b:.3f}" for a, b in rates), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
