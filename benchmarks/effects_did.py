"""Differences in differences of persons: error, coverage, width, the pre-trend test, and where there is no answer.

    python -m benchmarks effects_did                                    300 runs a cell, 60 from 100,000 persons on
    python -m benchmarks effects_did --runs 1000 --designs staggered --persons 10000
    python -m benchmarks effects_did --designs all                      every shape, also those that break it

Eight periods, cohorts first treated in the third, fourth, fifth, and one never.  ``x`` is the width over that without
privacy, of the mean effect; ``once`` is how often the bands of an event study hold all of it.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.core.run import ask
from dpcausal.data.records import Rows
from dpcausal.effects.did.api import CohortQuery, DidQuestion
from dpcausal.errors import InfeasibleError

T, STARTS, NEVER = 8, np.array([3, 4, 5, 9]), 9
PERIODS = np.arange(1, T + 1)
SCHEMA = dpc.Schema({"t": dpc.Levels(PERIODS.tolist()), "g": dpc.Levels(STARTS.tolist()), "y": dpc.Bounded(-12, 12)})

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
    """A third of the persons lack a period."""
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


def tailed(rng: Any, size: tuple[int, int]) -> Any:
    return rng.standard_t(4, size) / math.sqrt(2)


SHAPES: dict[str, Callable[[Any, int], Drawn]] = {
    "staggered": staggered,
    "trends of .05": lambda rng, n: staggered(rng, n, trend=0.05),
    "trends of .05, walk": lambda rng, n: staggered(rng, n, trend=0.05, keep=1.0),
    "random walk": lambda rng, n: staggered(rng, n, keep=1.0),
    "white noise": lambda rng, n: staggered(rng, n, keep=0.0),
    "steps of 5": lambda rng, n: staggered(rng, n, effects={g: [5.0] * (T + 1 - g) for g in STARTS[:-1].tolist()}),
    "no effect": lambda rng, n: staggered(rng, n, effects={g: [0.0] * (T + 1 - g) for g in STARTS[:-1].tolist()}),
    "a cohort of 2 %": lambda rng, n: staggered(rng, n, shares=(0.02, 0.33, 0.32, 0.33)),
    "3 % never treated": lambda rng, n: staggered(rng, n, shares=(0.33, 0.32, 0.32, 0.03)),
    "3 % never, a cohort of 2 %": lambda rng, n: staggered(rng, n, shares=(0.02, 0.48, 0.47, 0.03)),
    "t4 errors": lambda rng, n: staggered(rng, n, noise=tailed),
    "whole numbers": ties,
    "a third with gaps": gaps,
    "log-normal jumps": skewed,
    "villages (not independent)": villages,
}  # fmt: skip
USUALLY = ("staggered", "trends of .05")


@dataclass(frozen=True)
class Held(DidQuestion):
    """The question of ``did``, its paths in memory: reading and naming persons took nineteen twentieths of a run."""

    paths: Any = None

    def steps(self) -> Any:
        y, g = self.paths
        kept = np.isfinite(y).all(axis=1)
        steps = np.diff(np.clip(np.where(kept[:, None], y, 0.0), -12, 12), axis=1) / self.bounds.width
        return steps, np.where(kept, np.searchsorted(STARTS, g), 0), Rows({}, kept, {})


def whole(drawn: Drawn, loss: Any) -> Any:
    """Return what ``did`` says of the frame."""
    y, g, _ = drawn
    frame = {"id": np.repeat(np.arange(len(y)), T), "t": np.tile(PERIODS, len(y)), "g": np.repeat(g, T),
             "y": np.clip(y, -12, 12).ravel()}  # fmt: skip
    table = dpc.Table(frame, SCHEMA, dpc.Ledger.in_memory(loss, person="id"), person="id")
    return dpc.did(table, time="t", outcome="y", cohort="g", loss=loss)


def tables(n: int, loss: Any) -> tuple[dpc.Table, dpc.Table]:
    """Return tables of n persons whose ledgers last for all runs, one without privacy."""
    frame = {"id": np.arange(n), "t": np.ones(n, int), "g": np.full(n, NEVER), "y": np.zeros(n)}
    private = dpc.Ledger.in_memory(dpc.ApproxDP(1e5, 0.1), person="id", accept_large_epsilon=True)
    ledgers = private, dpc.Ledger.without_privacy()
    kept, exact = (dpc.Table(frame, SCHEMA, ledger, person="id") for ledger in ledgers)
    return kept, exact


def asked(table: dpc.Table, drawn: Drawn, loss: Any) -> Any:
    question = Held.of(table, "t", "y", "g", "never", 0.95)
    return ask(replace(question, paths=drawn[:2]), CohortQuery(), loss, accept_large_epsilon=False, refresh=False)


def truths(g: Any, effects: Effects) -> dict[str, float]:
    """Return the mean effect and those by event, over the cohorts that were drawn."""
    size = {start: float((g == start).mean()) for start in effects}
    pairs = [(start, e) for start, path in effects.items() for e in range(len(path))]
    told = {"all": pairs, **{f"{e:+d}": [pair for pair in pairs if pair[1] == e] for e in range(T)}}
    return {
        name: sum(size[start] * effects[start][e] for start, e in of) / sum(size[start] for start, _ in of)
        for name, of in told.items() if of
    }  # fmt: skip


def cell(shape: str, n: int, loss: Any, runs: int) -> dict[str, float] | str:
    rows: list[tuple[float, ...]] = []
    table, plain = tables(n, loss)
    for seed in range(runs):
        drawn = SHAPES[shape](np.random.default_rng([7, n, seed]), n)
        exact = asked(plain, drawn, dpc.NoPrivacy())
        try:
            with dpc.simulated_noise(seed):
                found = asked(table, drawn, loss)
        except InfeasibleError:
            return "refused"
        if seed == 0 and n <= 10_000:
            with dpc.simulated_noise(seed):
                assert found.att is None or found.att == whole(drawn, loss).att, "not what did says of the frame"
        # The law of the cohorts, not of those drawn: effects do not differ by much, and shares are equal in law.
        truth = truths(drawn[1], drawn[2])
        shown = found.att is not None and found.att.interval is not None
        told = [one for one in found.event_study if one.band is not None]
        all_told = found.att is not None and len(found.by_cohort) == len(exact.by_cohort)
        rows.append((
            found.att.estimate - truth["all"] if all_told else math.nan,
            exact.att.estimate - truth["all"],
            float(found.att.interval[0] <= truth["all"] <= found.att.interval[1]) if shown and all_told else math.nan,
            found.att.standard_error / exact.att.standard_error if found.att is not None else math.nan,
            float(np.mean([one.interval[0] <= truth.get(one.name, 0.0) <= one.interval[1] for one in told]))
            if shown and all_told else math.nan,
            float(all(one.band[0] <= truth.get(one.name, 0.0) <= one.band[1] for one in told))
            if shown and all_told else math.nan,
            math.nan if found.pretrend is None else float(found.pretrend < 0.05),
            float(exact.pretrend is not None and exact.pretrend < 0.05),
            float(shown), float(all_told),
        ))  # fmt: skip
    kept = np.array(rows)
    with np.errstate(all="ignore"):
        mean = [float(np.nanmean(column)) if np.isfinite(column).any() else math.nan for column in kept.T]
    error = [float(np.sqrt(np.nanmean(kept[:, place] ** 2))) for place in (0, 1)]
    names = ("covers", "x", "each", "once", "trend found", "without privacy", "shown", "all cohorts")
    return {"error": error[0], "exact error": error[1], **dict(zip(names, mean[2:], strict=True))}


def main(arguments: list[str]) -> int:
    """Return 0 if no interval that was shown covers less than .93 by three Monte-Carlo errors where trends agree."""
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=0)
    options.add_argument("--persons", default="10000,100000")
    options.add_argument("--epsilons", default="1")
    options.add_argument("--designs", default=";".join(USUALLY))
    told = options.parse_args(arguments)
    shapes = list(SHAPES) if told.designs == "all" else told.designs.split(";")
    failed = False
    for shape in shapes:
        for n in map(int, told.persons.split(",")):
            for epsilon in map(float, told.epsilons.split(",")):
                runs = told.runs or (300 if n <= 10_000 else 60)
                found = cell(shape, n, dpc.ApproxDP(epsilon, 1e-6), runs)
                head = f"{shape:<27}{n:>8} eps {epsilon:<4g}"
                if isinstance(found, str):
                    print(head, found, flush=True)
                    continue
                held = max(found["shown"] * found["all cohorts"] * runs, 1.0)
                low = any(found[name] < 0.93 - 3 * math.sqrt(0.0475 / held) for name in ("covers", "once"))
                failed |= low and not shape.startswith(("villages", "trends"))
                print(head, "  ".join(f"{name} {value:.3g}" for name, value in found.items()), "LOW" if low else "",
                      flush=True)  # fmt: skip
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
