"""Effects of skewed, heaped, clustered and long-tailed outcomes, each asked with the default method."""

from collections.abc import Callable
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import Outcomes as Drawn
from benchmarks.designs import flips as coin
from benchmarks.designs import of_outcomes, prefix, register


def waiting(rng: Any, n: int) -> Drawn:
    z = rng.integers(0, 3, n)
    e = rng.exponential(size=n)
    return {"z": z}, coin(rng, 0.3 + 0.2 * z), np.round(e * (4 + z)), np.round(e * (3 + z))


def grades(rng: Any, n: int) -> Drawn:
    z = rng.integers(0, 5, n)
    y = np.clip(np.round(3 + 0.3 * z + 1.2 * rng.normal(size=n)), 1, 6)
    return {"z": z}, coin(rng, 0.2 + 0.15 * z), y, np.where(z == 2, np.maximum(y - 1, 1), y)


def spending(rng: Any, n: int) -> Drawn:
    x, w = rng.normal(size=(2, n))
    a = coin(rng, 1 / (1 + np.exp(-0.6 * x - 0.4 * (w**2 - 1))))
    y = rng.gamma(2, np.exp(0.3 * x))
    return {"x": np.clip(x, -4, 4), "w": np.clip(w, -4, 4)}, a, y, 1.2 * y


def pressure(rng: Any, n: int) -> Drawn:
    z = rng.normal(size=(n, 3))
    x = z[:, 0]
    w, v = 0.8 * x + 0.6 * z[:, 1], 0.8 * x + 0.6 * z[:, 2]
    y = 130 + 6 * x + 3 * w - 2 * v + 8 * rng.standard_t(4, n)
    names = {"x": x, "w": w, "v": v}
    return {name: np.clip(one, -4, 4) for name, one in names.items()}, coin(rng, np.where(x > 0.3, 0.8, 0.2)), y, y - 5


def wages(rng: Any, n: int) -> Drawn:
    years, age, sex = rng.integers(8, 19, n), rng.uniform(20, 60, n), rng.integers(0, 2, n)
    spread = 0.15 + 0.02 * (years - 8)
    y = 1.5 + 0.08 * years + 0.05 * age - 0.0005 * age**2 - 0.15 * sex + spread * rng.normal(size=n)
    a = coin(rng, 0.25 + 0.03 * (years - 8) + 0.1 * sex)
    return {"years": years.astype(float), "age": age, "sex": sex}, a, y, y + 0.06 + 0.1 * sex


def beside(outcomes: Any, chance: Any, treated_first: bool = False) -> Callable[[Any, int], Drawn]:
    """Two normal numbers; ``outcomes``: (generator, x, w) → both outcomes; ``chance`` of treatment, given x and w."""

    def draw(rng: Any, n: int) -> Drawn:
        x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
        a = coin(rng, chance(x, w)) if treated_first else None
        y0, y1 = outcomes(rng, x, w)
        return {"x": x, "w": w}, coin(rng, chance(x, w)) if a is None else a, y0, y1

    return draw


def both_arms(errors: Any, share: float = 0.5) -> Callable[[Any, int], Drawn]:
    """Errors of both arms that may go with what is adjusted for, about a line; a logistic treatment of that share."""

    def outcomes(rng: Any, x: Any, w: Any) -> tuple[Any, Any]:
        control, treated = errors(rng, x, w)
        return 0.5 * x + 0.3 * w + control, 0.5 * x + 0.3 * w + 0.4 + treated

    return beside(outcomes, lambda x, w: 2 * share / (1 + np.exp(-0.4 * x + 0.2 * w)), treated_first=True)


def tail(treated: Any, control: Any, share: float = 0.5) -> Callable[[Any, int], Drawn]:
    """Errors of the treated and of the others that do not."""
    return both_arms(lambda rng, x, w: (control(rng, len(x)), treated(rng, len(x))), share)


def normal(rng: Any, n: int) -> Any:
    return 0.4 * rng.normal(size=n)


X = {"x": dpc.Bounded(-4, 4), "w": dpc.Bounded(-4, 4)}
FRESH = {
    "waiting times": of_outcomes(waiting, dpc.Bounded(0, 20), {"z": dpc.Levels([0, 1, 2])}),
    "grades": of_outcomes(grades, dpc.Bounded(1, 6), {"z": dpc.Levels(range(5))}),
    "spending": of_outcomes(spending, dpc.Bounded(0, 30), X),
    "blood pressure": of_outcomes(pressure, dpc.Bounded(60, 220), X | {"v": dpc.Bounded(-4, 4)}),
    "wages": of_outcomes(wages, dpc.Bounded(0, 6), {
        "years": dpc.Bounded(8, 18), "age": dpc.Bounded(20, 60), "sex": dpc.Levels([0, 1])}),
}  # fmt: skip
ONE_TAIL = {
    "untreated of Weibull 0.7": tail(normal, lambda rng, n: 0.3 * (rng.weibull(0.7, size=n) - 1.266), 0.3),
    "treated long to the left": tail(lambda rng, n: 0.8 - rng.gamma(2, 0.4, size=n),
                                     lambda rng, n: 0.5 * (rng.exponential(size=n) - 1)),
    "a tenth responds fivefold": tail(lambda rng, n: normal(rng, n) + 2 * (rng.random(n) < 0.1) - 0.2, normal, 0.4),
    "treated: nine tenths zero": tail(
        lambda rng, n: np.where(rng.random(n) < 0.9, 0, rng.exponential(2, size=n)) - 0.2, normal),
    "untreated of Pareto 3": tail(normal, lambda rng, n: 0.5 * rng.pareto(3, size=n) - 0.25, 0.4),
    "both log-normal, of two spreads": tail(lambda rng, n: 0.5 * rng.lognormal(sigma=0.8, size=n),
                                            lambda rng, n: 0.2 * rng.lognormal(sigma=1.2, size=n)),
    "one in twenty treated far off": tail(
        lambda rng, n: normal(rng, n) + (rng.random(n) < 0.05) * (3 + rng.normal(size=n)), normal, 1 / 3),
}  # fmt: skip
SEEDS = {"seeds": prefix(29), "delta": 1e-6}
DESIGNS = register(FRESH, "shapes, later", "2026-11-22", **SEEDS)
DESIGNS |= register({name: of_outcomes(draw, dpc.Bounded(-10, 10), X) for name, draw in ONE_TAIL.items()},
                    "one tail, later", "2026-11-23", **SEEDS)  # fmt: skip
