"""Planning a direction: the chance of the right arrow, from simulated blocks and the distribution of the noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from statistics import median
from typing import Any, ClassVar, Self, cast

import numpy as np

from dpcausal.core import validate as public
from dpcausal.core.run import plan_call
from dpcausal.data.schema import Bounded, Schema
from dpcausal.direction.block_decisions import Bits
from dpcausal.direction.methods.verdict import Verdict, decisions_of_blocks
from dpcausal.direction.question import Pair
from dpcausal.errors import ParameterError
from dpcausal.planning.task_plan import Forecast, TablePlan, simulate_runs
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.simulate import anm_pair

SHAPES = ("tanh", "cubic", "exponential", "sine")
"""What "any" goes over; what is reported is the middle, the range all of them."""
BLOCKS, DRAWN = 60, 200
"""Simulated blocks of a design, and verdicts that are drawn from them."""
RELATIVE_ERROR = 0.3
"""How far from the simulated rows others of the design lie, as a share: measured."""


@dataclass(frozen=True, kw_only=True)
class DirectionPlan(TablePlan):
    """What is assumed of a direction: the effect is a curve of the cause and noise on top.

    Parameters
    ----------
    curve : str
        The curve, as ``mechanism`` of ``simulate.anm_pair``; ``"any"``: tanh, cubic, exponential and sine.
    cause : str
        The distribution of the cause, ``"gaussian"`` or ``"uniform"``.
    noise : float
        The noise's standard deviation beside that of the curve.
    alpha : float
        Level of the verdict.
    """

    task: ClassVar[str] = "direction"
    goal: ClassVar[str] = "probability of the right direction"
    more_is_better: ClassVar[bool] = True
    least: ClassVar[int] = 144
    most: ClassVar[int] = 1_000_000
    quick: ClassVar[bool] = False
    close: ClassVar[float] = 1.1

    curve: str = "any"
    cause: str = "gaussian"
    noise: float = 0.5
    alpha: float = 0.1

    def __post_init__(self) -> None:
        public.number("noise", self.noise, 0.01, 100)
        public.number("alpha", self.alpha, 1e-6, 0.5)
        for curve in self._curves:
            _pool(curve, self.cause, self.noise, 48, 1)  # refuses what there is not

    @classmethod
    def of(cls, schema: Schema, *, first: str, second: str, alpha: float = 0.1, **more: Any) -> Self:
        if not all(isinstance(schema.column(name), Bounded) for name in (first, second)):
            raise ParameterError("a direction needs two columns declared Bounded")
        if more.pop("method", "auto") != "auto":
            text = "direction can be planned for the default method only"
            raise ParameterError(text, argument="method", rule="choice")
        return cls(alpha=alpha, **more)

    def expected(self, n: int, loss: Loss) -> Forecast:
        rows = self.table({name: np.zeros(n, dtype=np.int8) for name in "xy"}, dict.fromkeys("xy", Bounded(-1, 1)))
        question = Pair.of(rows, "x", "y", None, self.alpha)
        planned = plan_call(question, Verdict(), loss)
        way, chances = cast(Verdict, planned.method), []
        for curve in self._curves:
            pool = _pool(curve, self.cause, self.noise, way.rows_per_block or 1, BLOCKS)
            (counts,) = simulate_runs(1, partial(way.drawn, question, planned.spent, pool, times=DRAWN))
            chances.append(counts["x causes y"] / DRAWN)
        low, high = min(chances) / (1 + RELATIVE_ERROR), min(1.0, max(chances) * (1 + RELATIVE_ERROR))
        return Forecast(median(chances), low, high, f"{BLOCKS} simulated subsets of {', '.join(self._curves)}")

    def sentence(self, forecast: Forecast) -> str:
        bounds = f"({forecast.low:.2f} to {forecast.high:.2f})"
        return f"the right direction is found with probability {forecast.accuracy:.2f} {bounds}"

    @property
    def _curves(self) -> tuple[str, ...]:
        return SHAPES if self.curve == "any" else (self.curve,)


@lru_cache(maxsize=64)
def _pool(curve: Any, cause: Any, noise: float, rows: int, blocks: int) -> tuple[Bits, ...]:
    pair = anm_pair(rows * blocks, mechanism=curve, noise_scale=noise, cause=cause, seed=1).columns
    x, y = (pair[name].reshape(blocks, rows) for name in "xy")
    rng = generator_from_seed(2)
    return tuple(decisions_of_blocks(a, b, int(rng.integers(2**62))) for a, b in zip(x, y, strict=True))
