"""Planning effects and regressions: half the width of an interval, from a few calls on made-up rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.asking import public
from dpcausal.data.schema import Bounded, Column, Levels, Schema
from dpcausal.effects.ask import effect
from dpcausal.planning.independence import levels
from dpcausal.planning.prospect import REACH, Expected, Prospect, normal, rehearsals
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.noise import PublicGenerator

REHEARSED = 9
"""Calls on made-up rows; the middle one of their widths is told, and how far they lie apart."""


@dataclass(frozen=True, kw_only=True)
class WidthProspect(Prospect):
    """An interval of which half the width is foretold."""

    goal: ClassVar[str] = "half the width of the interval"
    more_is_better: ClassVar[bool] = False
    delta: ClassVar[float] = 1e-6
    apart: ClassVar[float]
    """How far from the made-up rows others are found, as a share: measured."""

    @abstractmethod
    def rehearsed(self, n: int, loss: Loss, coins: PublicGenerator) -> tuple[tuple[float, float] | None, str]:
        """Return the interval of a call on made-up rows, or why there is none."""

    def expected(self, n: int, loss: Loss) -> Expected:
        widths, why = [], ""
        for coins in rehearsals(REHEARSED):
            interval, reason = self.rehearsed(n, loss, coins)
            widths.append(math.inf if interval is None else (interval[1] - interval[0]) / 2)
            why = reason or why
        widths.sort()
        middle = widths[REHEARSED // 2]
        low, high = min(widths[1], middle * (1 - self.apart)), max(widths[-2], middle * (1 + self.apart))
        told = f"{REHEARSED} made-up tables" + (f"; without an interval where {why}" if why else "")
        return Expected(middle, low, high, told)

    def sentence(self, found: Expected) -> str:
        if math.isinf(found.accuracy):
            return "no interval is to be expected" + (f": {found.why}" if found.why else "")
        high = "none" if math.isinf(found.high) else f"{found.high:.3g}"
        return f"an interval of ±{found.accuracy:.3g} ({found.low:.3g} to {high})"


@dataclass(frozen=True, kw_only=True)
class EffectProspect(WidthProspect):
    """What is assumed of an effect.

    Parameters
    ----------
    outcome : int
        Number of levels of the outcome, 2; 0 is a number.
    width : float
        How far apart the bounds of the outcome are; 1 for two levels.
    spread : float
        The outcome's standard deviation within treatment and strata, as a part of ``width``.
    share : float
        Of the records that are treated.
    adjust : int
        How many numbers are adjusted for.
    cells : int
        How many combinations of levels are adjusted for; 1 without any.
    coverage : float
        Of the interval.
    method : str or method
        As in ``effect``.
    """

    task: ClassVar[str] = "effect"
    apart: ClassVar[float] = 0.15
    least: ClassVar[int] = 100

    outcome: int = 0
    width: float = 1.0
    spread: float = 0.2
    share: float = 0.5
    adjust: int = 0
    cells: int = 1
    coverage: float = 0.95
    method: Any = "auto"

    def __post_init__(self) -> None:
        public.number("width", self.width, 1e-9, 1e12)
        public.number("spread", self.spread, 1e-3, 0.5)
        public.number("share", self.share, 0.001, 0.999)
        public.number("coverage", self.coverage, 0.5, 0.999)
        for name, least, most in (("outcome", 0, 2), ("adjust", 0, 20), ("cells", 1, 10_000)):
            public.whole(name, getattr(self, name), least, most)

    @classmethod
    def of(
        cls, schema: Schema, *, treatment: str, outcome: str, adjust: Any, coverage: float = 0.95,
        method: Any = "auto", **more: Any,
    ) -> Self:  # fmt: skip
        schema.column(treatment)
        declared = schema.column(outcome)
        sizes = [levels(schema.column(name)) for name in adjust]
        width = declared.width if isinstance(declared, Bounded) else 1.0
        return cls(
            outcome=levels(declared), width=width, adjust=sizes.count(0), cells=math.prod(s for s in sizes if s),
            coverage=coverage, method=method, **more,
        )  # fmt: skip

    def rehearsed(self, n: int, loss: Loss, coins: PublicGenerator) -> tuple[tuple[float, float] | None, str]:
        half, flags, numbers = self.width / 2, Levels([0, 1]), [f"z{place}" for place in range(self.adjust)]
        columns: dict[str, Any] = {name: normal(coins, n) for name in numbers}
        columns["a"] = (coins.random(n) < self.share).astype(np.int64)
        around = np.clip(self.spread * self.width * normal(coins, n), -half, half)
        columns["y"] = coins.integers(0, 2, n) if self.outcome else around
        schema: dict[str, Column] = {"a": flags, "y": flags if self.outcome else Bounded(-half, half)}
        schema |= {name: Bounded(-REACH, REACH) for name in numbers}
        if self.cells > 1:
            columns["cell"], schema["cell"] = coins.integers(0, self.cells, n), Levels(range(self.cells))
        found = effect(
            self.table(columns, schema), treatment="a", outcome="y", adjust=[*numbers, *(["cell"] * (self.cells > 1))],
            loss=loss, coverage=self.coverage, method=self.method, accept_large_epsilon=True,
        )  # fmt: skip
        return found.interval, found.interval_reason
