"""Differences in differences of persons: staggered cohorts, and shapes that break an interval."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import Reading, prefix, register, table

T, STARTS, NEVER = 8, np.array([3, 4, 5, 9]), 9
PERIODS = np.arange(1, T + 1)
SCHEMA = {"t": dpc.Levels(PERIODS.tolist()), "g": dpc.Levels(STARTS.tolist()), "y": dpc.Bounded(-12, 12)}

Effects = dict[int, list[float]]
"""By cohort: the effect in each period since treatment began."""
Drawn = tuple[Any, Any, Effects]
"""Outcomes (n, T), cohorts, and the truth."""

USUAL: Effects = {g: [1 + 0.3 * e - 0.1 * (g - 4) for e in range(T + 1 - g)] for g in STARTS[:-1].tolist()}


def staggered(
    rng: Any, n: int, *, shares: tuple[float, ...] = (0.25, 0.25, 0.25, 0.25), trend: float = 0.0, keep: float = 0.5,
    effects: Effects = USUAL, noise: Callable[[Any, tuple[int, int]], Any] | None = None,
) -> Drawn:  # fmt: skip
    """Persons of spread 2 with errors that keep a share of the last one's; effects by cohort and period."""
    g = rng.choice(STARTS, size=n, p=shares)
    fresh = rng.normal(size=(n, T)) if noise is None else noise(rng, (n, T))
    errors = np.empty((n, T))
    errors[:, 0] = fresh[:, 0]
    for t in range(1, T):
        errors[:, t] = keep * errors[:, t - 1] + math.sqrt(1 - keep**2 if keep < 1 else 0.25) * fresh[:, t]
    y = 2 * rng.normal(size=n)[:, None] + 0.2 * PERIODS + errors + trend * PERIODS * (g < NEVER)[:, None]
    for start, path in effects.items():
        y[np.ix_(g == start, np.arange(start - 1, T))] += path
    return y, g, effects


def skewed(rng: Any, n: int) -> Drawn:
    """Log-normal jumps that treatment doubles."""
    y, g, _ = staggered(rng, n)
    jumps = np.exp(rng.normal(size=y.shape)) * (1 + (g[:, None] <= PERIODS))
    return y + jumps - math.exp(0.5) * (1 + (g[:, None] <= PERIODS)), g, clipped()


@lru_cache
def clipped() -> Effects:
    """Return the effects of ``skewed`` on outcomes that are clipped to the bounds, from 400,000 persons."""
    rng = np.random.default_rng(9)
    y = staggered(rng, 400_000, effects={})[0]
    jumps = np.exp(rng.normal(size=y.shape)) - math.exp(0.5)
    plain = np.clip(y + jumps, -12, 12)
    return {
        g: [float((np.clip(y[:, t] + 2 * jumps[:, t] + one, -12, 12) - plain[:, t]).mean())
            for t, one in enumerate(path, start=g - 1)]
        for g, path in USUAL.items()
    }  # fmt: skip


def gaps(rng: Any, n: int) -> Drawn:
    """A third of the persons have no value in a period."""
    y, g, effects = staggered(rng, n)
    lost = rng.random(n) < 1 / 3
    y[np.nonzero(lost)[0], rng.integers(0, T, lost.sum())] = np.nan
    return y, g, effects


def ties(rng: Any, n: int) -> Drawn:
    """Whole numbers."""
    y, g, effects = staggered(rng, n)
    return np.floor(y + rng.random(y.shape)), g, effects


def villages(rng: Any, n: int) -> Drawn:
    """Cohorts are of villages of fifty, whose persons move together: no person= can help here."""
    place = np.arange(n) // 50
    own = rng.choice(STARTS, size=place[-1] + 1)
    y = staggered(rng, n, effects={})[0]
    g = own[place]
    for start, path in USUAL.items():
        y[np.ix_(g == start, np.arange(start - 1, T))] += path
    return y + rng.normal(0, 0.3, (place[-1] + 1, T)).cumsum(axis=1)[place], g, USUAL





SHAPES: dict[str, Callable[[Any, int], Drawn]] = {
    "staggered": staggered,
    "trends of 0.05": lambda rng, n: staggered(rng, n, trend=0.05),
    "trends of 0.05, walk": lambda rng, n: staggered(rng, n, trend=0.05, keep=1.0),
    "random walk": lambda rng, n: staggered(rng, n, keep=1.0),
    "white noise": lambda rng, n: staggered(rng, n, keep=0.0),
    "steps of 5": lambda rng, n: staggered(rng, n, effects={g: [5.0] * len(path) for g, path in USUAL.items()}),
    "no effect": lambda rng, n: staggered(rng, n, effects={g: [0.0] * len(path) for g, path in USUAL.items()}),
    "a cohort of 2 %": lambda rng, n: staggered(rng, n, shares=(0.02, 0.33, 0.32, 0.33)),
    "3 % never treated": lambda rng, n: staggered(rng, n, shares=(0.33, 0.32, 0.32, 0.03)),
    "3 % never, a cohort of 2 %": lambda rng, n: staggered(rng, n, shares=(0.02, 0.48, 0.47, 0.03)),
    "t4 errors": lambda rng, n: staggered(rng, n, noise=lambda rng, size: rng.standard_t(4, size) / math.sqrt(2)),
    "whole numbers": ties,
    "a third with gaps": gaps,
    "log-normal jumps": skewed,
    "villages (not independent)": villages,
}  # fmt: skip


def asked(y: Any, g: Any, loss: Any) -> Any:
    n = len(g)
    columns = {"id": np.repeat(np.arange(n), T), "t": np.tile(PERIODS, n), "g": np.repeat(g, T), "y": y.ravel()}
    return dpc.did(table(columns, SCHEMA, loss, person="id"), time="t", outcome="y", cohort="g", loss=loss)


def truths(g: Any, effects: Effects) -> dict[str, float]:
    """Return the mean effect and those by event, over the cohorts that were drawn."""
    size = {start: float((g == start).mean()) for start in effects}
    pairs = [(start, e) for start, path in effects.items() for e in range(len(path))]
    pairs_of = {"all": pairs, **{f"{e:+d}": [pair for pair in pairs if pair[1] == e] for e in range(T)}}
    return {
        name: sum(size[start] * effects[start][e] for start, e in of) / sum(size[start] for start, _ in of)
        for name, of in pairs_of.items() if of
    }  # fmt: skip


def readings(found: Any, truth: Callable[[Any], float], effect: float) -> dict[str, Reading]:
    """The mean effect, every event, all at once, and whether trends before treatment are found to differ."""
    events = [one for one in found.event_study if one.band is not None]
    att = (None, None) if found.att is None else (found.att.estimate, found.att.interval)
    result = {"mean effect": Reading(*att, effect)}
    result |= {f"event {one.event:+d}": Reading(one.estimate, one.interval, truth(one)) for one in events}
    if events:
        once = all(one.band[0] <= truth(one) <= one.band[1] for one in events)
        result["all at once"] = Reading(None, (0.0, 0.0), 0.0 if once else 1.0)
    if found.pretrend is not None:
        result["(trend)"] = Reading(None, None, 0.0, {"rejected": float(found.pretrend < 0.05)})
    return result


class Cohorts:
    """Eight periods, cohorts first treated in the third, fourth, fifth, and one never.

    Where a cohort has no answer the truth, which is the mean over all, is another: nothing is read then.
    """

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def ask(self, rng: Any, n: int, loss: Any, method: Any = "default") -> dict[str, Reading]:
        y, g, effects = self.draw(rng, n)
        found, aims = asked(y, g, loss), truths(g, effects)
        if found.att is None or len(found.by_cohort) < sum(map(len, effects.values())):
            return {"mean effect": Reading(None, None, aims["all"])}
        return readings(found, lambda one: aims.get(one.name, 0.0), aims["all"])


class Given:
    """Four periods, half treated from the third on by odds that grow with x; trends are a power of x."""

    def __init__(self, power: int) -> None:
        self.power = power

    def ask(self, rng: Any, n: int, loss: Any, method: Any = "default") -> dict[str, Reading]:
        x, z, t = rng.normal(size=n).clip(-4, 4), rng.choice(["a", "b", "c"], n), np.arange(1, 5)
        g = np.where(rng.random(n) < 1 / (1 + np.exp(-x - (z == "a") / 2)), 3, 9)
        y = rng.normal(size=(n, 1)) + (0.3 * x**self.power + 0.2 * (z == "a"))[:, None] * t + rng.normal(size=(n, 4))
        y += 0.5 * (t >= g[:, None])
        columns = {"id": np.arange(n), "g": g, "x": x, "z": z}
        columns = {name: np.repeat(one, 4) for name, one in columns.items()} | {"t": np.tile(t, n), "y": y.ravel()}
        schema = {"t": dpc.Levels([1, 2, 3, 4]), "g": dpc.Levels([3, 9]), "y": dpc.Bounded(-16, 16),
                  "x": dpc.Bounded(-4, 4), "z": dpc.Levels(["a", "b", "c"])}  # fmt: skip
        found = dpc.did(table(columns, schema, loss, person="id"), time="t", outcome="y", cohort="g", adjust=["x", "z"],
                        loss=loss, accept_large_epsilon=True)  # fmt: skip
        return readings(found, lambda one: 0.5 * (one.event >= 0), 0.5)


COVARIATES = {"trends linear in covariates": Given(1), "trends quadratic in a covariate": Given(2)}
DESIGNS = register(COVARIATES, "cohorts", seeds=prefix(7), delta=1e-6)
for fails in (False, True):
    some = {name: Cohorts(draw) for name, draw in SHAPES.items() if name.startswith(("villages", "trends")) == fails}
    DESIGNS |= register(some, "cohorts", seeds=prefix(7), delta=1e-6, fails=fails)
