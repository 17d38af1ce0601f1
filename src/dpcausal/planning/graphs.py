"""Planning a discovery: the smallest correlation that shows as an edge, from calls on simulated rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.core import validate as public
from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.discovery.api import discover
from dpcausal.errors import ParameterError
from dpcausal.planning.task_plan import REACH, Forecast, TablePlan, normal, simulate_runs
from dpcausal.planning.tests import levels
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.noise import PublicGenerator

CHANCE = 0.8
"""With which the smallest correlation shows."""
STEP = 0.05
"""Of the logarithm of a correlation, down after an edge; four times as much up after none: balanced at ``CHANCE``."""
TABLES, SETTLING = 45, 20
"""Simulated tables, and those until the correlations are stable."""
LARGEST = 0.95
RELATIVE_ERROR = 0.2
"""How far from the simulated rows others lie, as a share: measured."""


@dataclass(frozen=True, kw_only=True)
class GraphPlan(TablePlan):
    """What is assumed of a discovery: pairs of columns, apart from each other.

    Parameters
    ----------
    columns : int
        Number of columns.
    levels : int
        Number of levels of each column; 0 are numbers.
    alpha : float
        Level of the tests; 0 takes the method's.
    method : str or method
        As in ``discover``.
    """

    task: ClassVar[str] = "discover"
    methods: ClassVar[str] = "discovery"
    goal: ClassVar[str] = "smallest correlation that appears as an edge with probability 0.8"
    more_is_better: ClassVar[bool] = False
    delta: ClassVar[float] = 1e-6
    most: ClassVar[int] = 300_000
    quick: ClassVar[bool] = False
    close: ClassVar[float] = 1.1

    columns: int = 6
    levels: int = 0
    alpha: float = 0.0
    method: Any = "auto"

    def __post_init__(self) -> None:
        public.whole("columns", self.columns, 2, 40)
        public.whole("levels", self.levels, 0, 20)
        public.number("alpha", self.alpha, 0.0, 0.5)

    @classmethod
    def of(cls, schema: Schema, *, columns: Any = None, alpha: float | None = None, **more: Any) -> Self:
        sizes = {levels(schema.column(name)) for name in columns or schema.names}
        if len(sizes) > 1:
            raise ParameterError("a plan of discover takes columns of one kind: numbers, or as many levels each")
        return cls(columns=len(columns or schema.names), levels=sizes.pop(), alpha=alpha or 0.0, **more)

    def expected(self, n: int, loss: Loss) -> Forecast:
        """Return where correlations settle that fall after each edge found and rise after each that was not."""
        pairs = self.columns // 2
        seen = [np.full(pairs, math.log(0.3))]
        names = [f"v{place}" for place in range(self.columns)]
        schema = dict.fromkeys(names, Levels(range(self.levels)) if self.levels else Bounded(-REACH, REACH))

        def once(rng: PublicGenerator) -> str:
            shape, logs = (self.columns, n), seen[-1]
            rows = rng.integers(0, self.levels, shape) if self.levels else normal(rng, *shape)
            for pair, r in enumerate(np.exp(logs)):
                one, other = rows[2 * pair], rows[2 * pair + 1]
                if self.levels:
                    rows[2 * pair + 1] = np.where(rng.random(n) < r, one, other)
                else:
                    rows[2 * pair + 1] = np.clip(r * one + math.sqrt(1 - r * r) * other, -REACH, REACH)
            graph = discover(
                self.table(dict(zip(names, rows, strict=True)), schema), loss=loss, alpha=self.alpha or None,
                method=self.method, accept_large_epsilon=True,
            )  # fmt: skip
            detected = np.array([frozenset(names[2 * p : 2 * p + 2]) in graph.graph.skeleton for p in range(pairs)])
            step = STEP * (3 if len(seen) <= SETTLING else 1)
            moved = np.where(detected, logs - step, logs + step * CHANCE / (1 - CHANCE))
            seen.append(np.minimum(moved, math.log(LARGEST)))
            return graph.method

        methods = simulate_runs(TABLES, once)
        least = float(np.exp(np.mean(seen[SETTLING + 1 :])))
        note = f"method {methods[-1]}, {TABLES} simulated tables"
        if least > 0.9:
            return Forecast(math.inf, 0.9, math.inf, note)
        return Forecast(least, least * (1 - RELATIVE_ERROR), least * (1 + RELATIVE_ERROR), note)

    def sentence(self, forecast: Forecast) -> str:
        if math.isinf(forecast.accuracy):
            return "hardly any correlation appears as an edge"
        return (
            f"a correlation of {forecast.accuracy:.2g} ({forecast.low:.2g} to {forecast.high:.2g}) "
            f"appears as an edge with probability {CHANCE:g}"
        )
