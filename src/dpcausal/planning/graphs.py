"""Planning a graph, by the smallest correlation that shows as an edge, and a direction, by the chance to find it."""

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from statistics import NormalDist, median
from typing import Any, ClassVar, Self, cast

import numpy as np

from dpcausal.core.run import plan_call
from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.direction.block_decisions import Bits
from dpcausal.direction.methods.verdict import Verdict, decisions_of_blocks
from dpcausal.direction.question import Pair
from dpcausal.discovery.api import discover
from dpcausal.errors import ParameterError
from dpcausal.planning.task_plan import (
    REACH,
    Forecast,
    TablePlan,
    TaskPlan,
    assumption,
    level_count,
    normal,
    simulate_runs,
)
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed
from dpcausal.simulate import anm_pair

CHANCE = 0.8
"""With which the smallest correlation shows."""
STEP = 0.05
"""Of the logarithm of a correlation, down after an edge; four times as much up after none: balanced at ``CHANCE``."""
LARGEST = 0.95
"""The largest correlation that is tried."""
CURVES = ("tanh", "cubic", "exponential", "sine")
"""What "any" goes over; what is reported is the middle, the range all of them."""
BLOCKS, DRAWN, DIRECTION_ERROR = 120, 200, 0.75
"""Simulated blocks of a design, verdicts that are drawn from them, and how far other blocks move the normal quantile
of a chance: measured, two of its deviations."""


@dataclass(frozen=True, kw_only=True)
class GraphPlan(TablePlan):
    """What is assumed of a discovery: pairs of columns, apart from each other."""

    task: ClassVar[str] = "discover"
    methods: ClassVar[str] = "discovery"
    goal: ClassVar[str] = "smallest correlation that appears as an edge with probability 0.8"
    more_is_better: ClassVar[bool] = False
    delta: ClassVar[float] = 1e-6
    most: ClassVar[int] = 300_000
    tables: ClassVar[int] = 45
    settling: ClassVar[int] = 20
    """Simulated tables, and those of the beginning that do not count."""
    error: ClassVar[float] = 0.2
    """How far other rows lie, as a share: measured."""
    close: ClassVar[float] = 1.1

    columns: int = assumption("Number of columns.", 6, 2, 40)
    levels: int = assumption("Number of levels of each column; 0 are numbers.", 0, 0, 20)
    alpha: float = assumption("Level of the tests; 0 takes the method's.", 0.0, 0.0, 0.5)
    method: Any = assumption("As in discover.", "auto")

    @classmethod
    def of(
        cls, schema: Schema, *, columns: Any = None, knowledge: Any = None, alpha: float | None = None, **more: Any
    ) -> Self:  # fmt: skip
        """Return the plan of columns of one kind; background knowledge changes no test and is not used."""
        sizes = {level_count(schema.column(name)) for name in columns or schema.names}
        if len(sizes) > 1:
            raise ParameterError("a plan of discover takes columns of one kind: numbers, or as many levels each")
        return cls(columns=len(columns or schema.names), levels=sizes.pop(), alpha=alpha or 0.0, **more)

    def seconds(self, n: int, loss: Loss) -> float:
        return self.tables * (0.15 if self.levels else 0.1 + self.columns**2 / 400)

    def in_study(self) -> TaskPlan:
        return ShortGraphPlan(**vars(self))

    def expected(self, n: int, loss: Loss) -> Forecast:
        """Return the mean of correlations that fall after each edge found and rise after each that was not."""
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
            step = STEP * (3 if len(seen) <= self.settling else 1)
            moved = np.where(detected, logs - step, logs + step * CHANCE / (1 - CHANCE))
            seen.append(np.minimum(moved, math.log(LARGEST)))
            return graph.method

        methods = simulate_runs(self.tables, once)
        least = float(np.exp(np.mean(seen[self.settling + 1 :])))
        note = f"method {methods[-1]}, {self.tables} simulated tables"
        if least > 0.9:
            return Forecast(math.inf, 0.9, math.inf, note)
        return Forecast(least, least * (1 - self.error), least * (1 + self.error), note)

    def sentence(self, forecast: Forecast) -> str:
        if math.isinf(forecast.accuracy):
            return "hardly any correlation appears as an edge"
        return (
            f"a correlation of {forecast.accuracy:.2g} ({forecast.low:.2g} to {forecast.high:.2g}) "
            f"appears as an edge with probability {CHANCE:g}"
        )


class ShortGraphPlan(GraphPlan):
    """The same from few tables."""

    tables: ClassVar[int] = 12
    settling: ClassVar[int] = 6
    error: ClassVar[float] = 0.35


@dataclass(frozen=True, kw_only=True)
class DirectionPlan(TablePlan):
    """What is assumed of a direction: the effect is a curve of the cause and noise on top."""

    task: ClassVar[str] = "direction"
    goal: ClassVar[str] = "probability of the right direction"
    more_is_better: ClassVar[bool] = True
    least: ClassVar[int] = 144
    close: ClassVar[float] = 1.1

    curve: str = assumption(
        "The curve, as mechanism of simulate.anm_pair; any: tanh, cubic, exponential and sine.", "any",
    )  # fmt: skip
    cause: str = assumption("The distribution of the cause, gaussian or uniform.", "gaussian")
    noise: float = assumption("The noise's standard deviation beside that of the curve.", 0.5, 0.01, 100.0)
    alpha: float = assumption("Level of the verdict.", 0.1, 1e-6, 0.5)

    def __post_init__(self) -> None:
        super().__post_init__()
        for curve in self._curves:
            _pool(curve, self.cause, self.noise, 48, 1)  # refuses an unknown curve or distribution

    @classmethod
    def of(
        cls, schema: Schema, *, first: str, second: str, alpha: float = 0.1, method: Any = "auto", score: Any = None,
        **more: Any,
    ) -> Self:  # fmt: skip
        if not all(isinstance(schema.column(name), Bounded) for name in (first, second)):
            raise ParameterError("a direction needs two columns declared Bounded")
        for name, given, default in (("method", method, "auto"), ("score", score, None)):
            if given != default:
                text = f"direction can be planned for the default {name} only"
                raise ParameterError(text, argument=name, rule="choice")
        return cls(alpha=alpha, **more)

    def expected(self, n: int, loss: Loss) -> Forecast:
        rows = self.table({name: np.zeros(n, dtype=np.int8) for name in "xy"}, dict.fromkeys("xy", Bounded(-1, 1)))
        question = Pair.of(rows, "x", "y", None, self.alpha)
        planned = plan_call(question, Verdict(), loss)
        method, chances = cast(Verdict, planned.method), []
        for curve in self._curves:
            pool = _pool(curve, self.cause, self.noise, method.rows_per_block or 1, BLOCKS)
            (counts,) = simulate_runs(1, partial(method.drawn, question, planned.spent, pool, times=DRAWN))
            chances.append(counts["x causes y"] / DRAWN)
        low, high = _moved(min(chances), -DIRECTION_ERROR), _moved(max(chances), DIRECTION_ERROR)
        return Forecast(median(chances), low, high, f"{BLOCKS} simulated subsets of {', '.join(self._curves)}")

    def sentence(self, forecast: Forecast) -> str:
        bounds = f"{forecast.low:.2f} to {forecast.high:.2f}"
        return f"the right direction is found with a probability of {bounds}, about {forecast.accuracy:.2f}"

    @property
    def _curves(self) -> tuple[str, ...]:
        return CURVES if self.curve == "any" else (self.curve,)


def _moved(chance: float, by: float) -> float:
    known = min(max(chance, 0.5 / DRAWN), 1 - 0.5 / DRAWN)
    return NormalDist().cdf(NormalDist().inv_cdf(known) + by)


@lru_cache(maxsize=64)
def _pool(curve: Any, cause: Any, noise: float, rows: int, blocks: int) -> tuple[Bits, ...]:
    pair = anm_pair(rows * blocks, mechanism=curve, noise_scale=noise, cause=cause, seed=1).columns
    x, y = (pair[name].reshape(blocks, rows) for name in "xy")
    rng = generator_from_seed(2)
    return tuple(decisions_of_blocks(a, b, int(rng.integers(2**62))) for a, b in zip(x, y, strict=True))
