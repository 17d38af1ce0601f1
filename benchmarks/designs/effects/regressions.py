"""What is read off one release of moments: slopes, instruments, mediation, partial correlations, robust errors."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import Design, Reading, prefix, register, table

Readings = dict[str, Reading]
Ask = Callable[[Any, int, Any], Readings]


class Asked:
    """A question put to rows of a generator."""

    def __init__(self, function: Ask) -> None:
        self.function = function

    def ask(self, rng: Any, n: int, loss: Any, method: Any = "default") -> Readings:
        return self.function(rng, n, loss)


def released(columns: dict[str, Any], loss: Any, robust: Any = None, reach: float = 15) -> Any:
    schema = dict.fromkeys(columns, dpc.Bounded(-reach, reach))
    rows = table(columns, schema, loss)
    return dpc.moments(rows, list(columns), robust_for=robust, loss=loss, accept_large_epsilon=True)


def read(one: Any, truth: float) -> Reading:
    return Reading(one.estimate, one.interval, truth)


def read_set(sets: Any, estimate: Any, truth: float) -> Reading:
    """Of an Anderson-Rubin set, whether the truth lies in one of its parts, and whether it has no end."""
    if sets is None:
        return Reading(estimate, None, truth)
    inside = next((part for part in sets if part[0] <= truth <= part[1]), (math.nan, math.nan))
    return Reading(estimate, inside, truth, {"unbounded": float(any(map(math.isinf, sum(map(tuple, sets), ()))))})


def instruments(strengths: tuple[float, ...]) -> Ask:
    def ask(rng: Any, n: int, loss: Any) -> Readings:
        x, u, e, f = rng.normal(size=(4, n))
        z = rng.normal(size=(len(strengths), n))
        a = np.array(strengths) @ z + 0.4 * x + u + e
        columns = {"y": 0.7 * a - 0.5 * x + u + f, "a": a, "x": x, **{f"z{i}": one for i, one in enumerate(z)}}
        found = released(columns, loss).iv(
            "y", "a", instruments=[f"z{i}" for i in range(len(z))], given=["x"], errors="homoscedastic"
        )
        return {"two-stage": read(found["a"], 0.7),
                "Anderson-Rubin": read_set(found.anderson_rubin, found["a"].estimate, 0.7)}  # fmt: skip

    return ask


def mediation(through: float, on: float) -> Ask:
    def ask(rng: Any, n: int, loss: Any) -> Readings:
        x, e, f, g = rng.normal(size=(4, n))
        a = 0.5 * x + e
        m = through * a + 0.3 * x + f
        columns = {"y": 0.3 * a + on * m - 0.5 * x + g, "a": a, "m": m, "x": x}
        release = released(columns, loss)
        found = release.mediation("a", "m", "y", given=["x"], errors="homoscedastic")
        correlation = release.partial("m", "a", given=["x"], errors="normal")["m"]
        cause = release.sensitivity("y", "m", given=["a", "x"], explains=(0.1, 0.1), errors="normal")
        left = on - math.sqrt(0.01 / 0.9) if on else 0.0
        readings = {name: read(found[name], truth) for name, truth in
                (("direct", 0.3), ("indirect", through * on), ("total", 0.3 + through * on))}  # fmt: skip
        readings["partial"] = read(correlation, through / math.hypot(1, through))
        return readings | ({"cause of 0.1, 0.1": read(cause["shares as named"], left)} if on else {})

    return ask


def fan(errors: Callable[[Any, int], Any]) -> Callable[[Any, int], dict[str, Any]]:
    """Spread that goes with a regressor."""

    def draw(rng: Any, n: int) -> dict[str, Any]:
        x, w = rng.normal(size=(2, n))
        return {"y": 1 + 2 * x - w + errors(rng, n) * np.exp(0.5 * x), "x": x, "w": w}

    return draw


def wages(rng: Any, n: int) -> dict[str, Any]:
    """Years of schooling that are whole, tenure uniform, and a spread that grows with both."""
    school, tenure = rng.binomial(12, 0.5, n) - 6.0, rng.uniform(-3, 3, n)
    return {"y": 2 * school - tenure + rng.normal(size=n) * (0.5 + 0.2 * (school + 6)), "x": school, "w": tenure}


def visits(rng: Any, n: int) -> dict[str, Any]:
    """Gamma counts whose spread goes with their mean, which is a line in a yes or no and a number."""
    sick, far = (rng.random(n) < 0.3).astype(float), rng.exponential(size=n)
    mean = 2 + 2 * sick + 0.5 * far
    return {"y": rng.gamma(2, mean / 2) - 3.5, "x": sick, "w": far}


def yields(rng: Any, n: int) -> dict[str, Any]:
    """Laplace errors, wide where rain is far from its middle; regressors that correlate by 0.7."""
    rain = rng.normal(size=n)
    soil = 0.7 * rain + math.sqrt(0.51) * rng.normal(size=n)
    return {"y": 2 * rain - soil + rng.laplace(size=n) * (0.4 + 0.5 * rain**2), "x": rain, "w": soil}


def skewed_arm(rng: Any, n: int) -> dict[str, Any]:
    """A yes of one in ten that goes with a number; errors of the yes are skewed, the others normal."""
    w = rng.normal(size=n)
    yes = rng.random(n) < 1 / (1 + np.exp(math.log(9) - 0.8 * w))
    error = np.where(yes, 1.2 * (rng.exponential(size=n) - 1), rng.normal(size=n))
    return {"y": 0.5 * yes + w + error, "x": yes.astype(float), "w": w}


def few_far(rng: Any, n: int) -> dict[str, Any]:
    """A tenth of x lies far from the rest, where errors are wide and skewed."""
    w, few = rng.normal(size=n), rng.random(n) < 0.1
    x = 0.3 * rng.normal(size=n) + 2 * few + 0.5 * w
    return {"y": 2 * x - w + np.where(few, 2 * (rng.exponential(size=n) - 1), rng.normal(size=n)), "x": x, "w": w}


def skewed_end(rng: Any, n: int) -> dict[str, Any]:
    """Errors are skewed above 1.2, normal below."""
    x, w = rng.normal(size=(2, n))
    return {"y": 2 * x - w + np.where(x > 1.2, 1.5 * (rng.exponential(size=n) - 1), rng.normal(size=n)), "x": x, "w": w}


def spread(draw: Callable[[Any, int], dict[str, Any]], *slopes: float, errors: Any = None, reach: float = 30) -> Ask:
    """The regression named as ``robust_for``, unless its errors are said to be homoscedastic, which they are not."""

    def ask(rng: Any, n: int, loss: Any) -> Readings:
        robust = None if errors == "homoscedastic" else ("y", ["x", "w"])
        found = released(draw(rng, n), loss, robust, reach).ols("y", ["x", "w"], errors=errors)
        return {name: read(found[name], slope) for name, slope in zip("xw", slopes, strict=True)}

    return ask


def asked(makes: dict[str, Ask], family: str, frozen_at: str = "", **facts: Any) -> dict[str, Design]:
    facts = {"seeds": prefix(11), "delta": 1e-6} | facts
    return register({name: Asked(ask) for name, ask in makes.items()}, family, frozen_at, **facts)


NORMAL = fan(lambda rng, n: rng.normal(size=n))
DESIGNS = asked({
    **{f"instrument {strength:g}": instruments((strength,)) for strength in (0.5, 0.1, 0.02)},
    "three of strength 0": instruments((0.0, 0.0, 0.0)), "two of 0.1": instruments((0.1, 0.1)),
    "mediation 0.4, 0.3": mediation(0.4, 0.3), "mediation 0, 0": mediation(0.0, 0.0),
    "mediation 0.05, 0.05": mediation(0.05, 0.05),
    "fan, robust": spread(NORMAL, 2.0, -1.0, reach=20),
    "fan, symmetric": spread(NORMAL, 2.0, -1.0, errors="symmetric", reach=20),
    "fan of t5, symmetric": spread(fan(lambda rng, n: rng.standard_t(5, n)), 2.0, -1.0, errors="symmetric", reach=20),
    "skewed fan, robust": spread(fan(lambda rng, n: rng.exponential(size=n) - 1), 2.0, -1.0, reach=20),
    "wages, symmetric": spread(wages, 2.0, -1.0, errors="symmetric"),
    "yields, symmetric": spread(yields, 2.0, -1.0, errors="symmetric"),
    "skewed arm, robust": spread(skewed_arm, 0.5, 1.0), "few far, robust": spread(few_far, 2.0, -1.0),
    "skewed end, robust": spread(skewed_end, 2.0, -1.0),
}, "readings") | asked({
    "fan, said constant": spread(NORMAL, 2.0, -1.0, errors="homoscedastic", reach=20),
}, "readings", fails=True) | asked({
    "wages, robust": spread(wages, 2.0, -1.0), "visits, robust": spread(visits, 2.0, 0.5),
    "yields, robust": spread(yields, 2.0, -1.0),
}, "readings, unseen", "2026-11-24")  # fmt: skip

ERRORS = {
    "competitor": lambda rng, x: rng.normal(size=len(x)),
    "slope": lambda rng, x: rng.normal(size=len(x)),
    "slope, exponential": lambda rng, x: rng.exponential(size=len(x)) - 1,
    "slope, t5": lambda rng, x: rng.standard_t(5, size=len(x)),
    "slope, t3": lambda rng, x: rng.standard_t(3, len(x)),
    "slope, log-normal": lambda rng, x: np.exp(rng.normal(size=len(x))) - math.exp(0.5),
    "slope, skewed spread": lambda rng, x: (rng.exponential(size=len(x)) - 1) * np.exp(0.5 * x[:, 0]),
}
"""Two regressors in ±5, the outcome in ±20; the slope of the first is 2."""


def slope(name: str, rng: Any, n: int, loss: Any) -> Readings:
    x = rng.normal(size=(n, 2))
    y = 1 + 2 * x[:, 0] - x[:, 1] + ERRORS[name](rng, x)
    schema = {"y": dpc.Bounded(-20, 20), "x": dpc.Bounded(-5, 5), "w": dpc.Bounded(-5, 5)}
    rows = table({"y": y, "x": x[:, 0], "w": x[:, 1]}, schema, loss)
    release = dpc.moments(rows, ["y", "x", "w"], loss=loss, accept_large_epsilon=True)
    normal = name in ("competitor", "slope")
    return {"": read(release.ols("y", ["x", "w"], errors="normal" if normal else "homoscedastic")["x"], 2.0)}


for name in ERRORS:
    delta = 1e-5 if name == "competitor" else 1e-6
    DESIGNS |= asked({name: partial(slope, name)}, "slopes", seeds=prefix(5), delta=delta)


def levels(count: int, rare: bool = False, apart: bool = False) -> Ask:
    """A number and so many levels, which move it and the outcome; ``apart``: each level but one a column of its own."""

    def ask(rng: Any, n: int, loss: Any) -> Readings:
        of_outcome, of_number = np.random.default_rng(99).normal(0, 0.5, (2, count))
        shares = np.arange(1.0, count + 1) ** -float(rare)
        level = rng.choice(count, n, p=shares / shares.sum())
        x = of_number[level] + rng.normal(size=n)
        columns = {"y": 0.7 * x + of_outcome[level] + rng.normal(size=n), "x": x}
        named = {f"l = {one}": (level == one).astype(int) for one in range(1, count)} if apart else {"l": level}
        schema: dict[str, Any] = dict.fromkeys(columns, dpc.Bounded(-10, 10))
        schema |= dict.fromkeys(named, dpc.Levels([0, 1] if apart else range(count)))
        columns |= named
        release = dpc.moments(table(columns, schema, loss), list(columns), loss=loss, accept_large_epsilon=True)
        found = release.ols("y", list(columns)[1:], errors="homoscedastic")
        contrast = of_outcome[count // 2] - of_outcome[0]
        return {"x": read(found["x"], 0.7), "a level": read(found[f"l = {count // 2}"], contrast)}

    return ask


def two_way(groups: int, periods: int, staggered: bool = False) -> Ask:
    """Persons with one to all of the periods, whose rows share a part; half of the groups are treated, from the middle
    on, or one after another with the same effect."""

    def ask(rng: Any, n: int, loss: Any) -> Readings:
        times = rng.integers(1, periods + 1, n)
        who, first = np.repeat(np.arange(n), times), rng.integers(0, periods, n)
        period = (first[who] + np.arange(len(who)) - np.repeat(np.cumsum(times) - times, times)) % periods
        group, shared = rng.integers(0, groups, n)[who], 0.5 * rng.normal(size=n)[who]
        start = np.where(np.arange(groups) < groups // 2, periods // 2, periods)
        start = 1 + np.arange(groups) % periods if staggered else start
        treated = (period >= start[group]).astype(int)
        of_groups, of_periods = np.random.default_rng(99).normal(0, [[1.0], [0.5]], (2, max(groups, periods)))
        y = 0.5 * treated + of_groups[group] + of_periods[period] + shared + rng.normal(size=len(who))
        schema = {"y": dpc.Bounded(-10, 10), "d": dpc.Levels([0, 1]), "group": dpc.Levels(range(groups)),
                  "period": dpc.Levels(range(periods))}  # fmt: skip
        rows = table({"y": y, "d": treated, "group": group, "period": period, "who": who}, schema, loss, person="who")
        release = dpc.moments(rows, list(schema), loss=loss, accept_large_epsilon=True)
        return {"d": read(release.ols("y", ["d", "group", "period"], errors="homoscedastic")["d"], 0.5)}

    return ask


DESIGNS |= asked({
    "6 levels": levels(6), "16 levels": levels(16), "31 levels": levels(31),
    "16 levels, some rare": levels(16, rare=True), "two-way, 10 x 4": two_way(10, 4), "two-way, 20 x 8": two_way(20, 8),
    "two-way, staggered": two_way(12, 6, staggered=True),
}, "factors")  # fmt: skip
DESIGNS |= asked({f"{count - 1} dummies": levels(count, apart=True) for count in (6, 16, 31)}, "dummies")
