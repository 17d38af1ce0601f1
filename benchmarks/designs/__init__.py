"""Designs as data: how rows are drawn, what is true of them, and since when they have been left as they are."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import dpcausal as dpc

Seeds = Callable[[int, int], Any]
"""(rows, run) → the seed of the rows."""


class Reading(NamedTuple):
    """An estimate, its interval (``None`` if none is shown) and the truth; ``more``: other columns of the run."""

    estimate: float | None
    interval: tuple[float, float] | None
    truth: float
    more: dict[str, float] | None = None

    @property
    def columns(self) -> dict[str, float]:
        """The error, whether the interval holds the truth, and its half width: of those that there are."""
        made = {} if self.estimate is None else {"error": self.estimate - self.truth}
        if self.interval is None:
            return made
        low, high = self.interval
        return made | {"covers": float(low <= self.truth <= high), "width": (high - low) / 2}


@dataclass(frozen=True)
class Design:
    """A named way to draw rows.

    ``frozen_at``: the day from which neither the design nor, because of it, a default was changed; empty if defaults
    were chosen with the design in view.  ``fails``: an interval of too little coverage is expected here.
    """

    name: str
    make: Any
    family: str
    frozen_at: str = ""
    seeds: Seeds = lambda n, run: [run, n]
    delta: float = 0.0
    fails: bool = False
    more: dict[str, Any] = field(default_factory=dict)

    def rng(self, n: int, run: int) -> Any:
        return np.random.default_rng(self.seeds(n, run))


def register(makes: dict[str, Any], family: str, frozen_at: str = "", **facts: Any) -> dict[str, Design]:
    """Designs of one family, by name."""
    return {name: Design(name, make, family, frozen_at, **facts) for name, make in makes.items()}


def prefix(*words: int) -> Seeds:
    return lambda n, run: [*words, n, run]


def loss_of(epsilon: float, delta: float) -> Any:
    return dpc.ApproxDP(epsilon, delta) if delta else dpc.PureDP(epsilon)


def ledger_of(loss: Any, **owner: str) -> dpc.Ledger:
    """A ledger of exactly this loss."""
    if isinstance(loss, dpc.NoPrivacy):
        return dpc.Ledger.without_privacy()
    return dpc.Ledger.in_memory(loss, accept_large_epsilon=True, **owner)


def table(columns: dict[str, Any], schema: dict[str, Any], loss: Any, **options: Any) -> dpc.Table:
    owner = {name: options[name] for name in ("person",) if name in options}
    return dpc.Table(columns, dpc.Schema(schema), ledger_of(loss, **owner), **options)


def flips(rng: Any, chance: Any) -> Any:
    """Zeros and ones, one with each chance."""
    return (rng.random(len(chance)) < np.clip(chance, 0, 1)).astype(int)


Outcomes = tuple[dict[str, Any], Any, Any, Any]
"""What is adjusted for, the treatment, the outcome if not treated and if treated."""


@dataclass(frozen=True)
class Study:
    """A question about one effect, and rows to ask it of."""

    rows: Callable[[Any, int], dict[str, Any]]
    schema: dict[str, Any]
    truth: float | Callable[[], float]
    method: Any = "auto"
    options: dict[str, Any] = field(default_factory=dict)
    aims: Callable[[Any], dict[str, float]] | None = None
    """What an answer is about: truths by reading, where it is not the mean effect of everybody."""

    def effect(self) -> float:
        return _truth(self)

    def answer(self, rng: Any, n: int, loss: Any, method: Any) -> Any:
        columns = self.rows(rng, n)
        adjust = [name for name in self.schema if name not in ("a", "y")]
        return dpc.effect(table(columns, self.schema, loss, **self.options), treatment="a", outcome="y", adjust=adjust,
                          loss=loss, method=method, accept_large_epsilon=True)  # fmt: skip

    def ask(self, rng: Any, n: int, loss: Any, method: Any = "default") -> dict[str, Reading]:
        found = self.answer(rng, n, loss, self.method if method == "default" else method)
        aims = {"": self.effect()} if self.aims is None else self.aims(found)
        return {name: Reading(found.estimate, found.interval, aim) for name, aim in aims.items()}


@cache
def _truth_of(function: Any) -> float:
    return float(function())


def _truth(study: Study) -> float:
    return _truth_of(study.truth) if callable(study.truth) else study.truth


def of_outcomes(
    draw: Callable[[Any, int], Outcomes], outcome: Any, columns: dict[str, Any], lost: float = 0.0, **more: Any
) -> Study:
    """A study of both outcomes of each record; ``lost``: the share of missing outcomes, more in the treated."""

    def rows(rng: Any, n: int) -> dict[str, Any]:
        adjust, a, y0, y1 = draw(rng, n)
        y = np.where(a == 1, y1, y0)
        if lost:
            y = np.where(rng.random(n) < lost * (0.5 + a), np.nan, y)
        return {**adjust, "a": a, "y": y}

    def truth() -> float:
        _, _, y0, y1 = draw(np.random.default_rng(0), 2_000_000)
        low, high = (outcome.lower, outcome.upper) if isinstance(outcome, dpc.Bounded) else (0, 1)
        return float((np.clip(y1, low, high) * 1.0 - np.clip(y0, low, high)).mean())

    schema = {"a": dpc.Levels([0, 1]), "y": outcome, **columns}
    return Study(rows, schema, truth, options={"missing": "drop"}, **more)
