"""The plan of a task: public assumptions, and the accuracy that they predict for n records and a loss."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from dpcausal.core import validate as public
from dpcausal.data.schema import Bounded, Column, Schema
from dpcausal.data.table import Table
from dpcausal.errors import ParameterError
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, PureDP
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed, simulated_noise

T = TypeVar("T")

REACH = 4.0
"""A simulated number is moved to within so many standard deviations."""
MOST_ROWS, MOST_SQUARES = 200_000, 3_000_000
"""Simulated rows, and rows times squared columns; larger tables are simulated with fewer rows, see ``fewer_rows``."""


class Forecast(NamedTuple):
    """The accuracy to expect, a range that it should lie in, how it was predicted, and other accuracies as text."""

    accuracy: float
    low: float
    high: float
    why: str = ""
    others: str = ""
    usual: float | None = None
    """The accuracy under the usual assumptions, where the accuracy is for the least favourable ones."""


def assumption(text: str, default: Any, least: Any = None, most: Any = None) -> Any:
    """Return a field of a plan: its text for the command's help, its default, its range, of whole numbers if ints."""
    return field(default=default, metadata={"text": text, "range": (least, most)})


LARGEST_WEIGHT = "The largest survey weight, divided by the mean weight; 1 without weights.", 1.0, 1.0, 1_000.0
WEIGHTS_OFF = 0.5
"""Survey weights are simulated between 1 less so much and 1 and so much, at most the largest."""


@dataclass(frozen=True, kw_only=True)
class TaskPlan(ABC):
    """What a plan of a task assumes; its fields are the assumptions, and the command's options are read off them."""

    task: ClassVar[str]
    goal: ClassVar[str]
    """What its accuracy is, in a few words."""
    more_is_better: ClassVar[bool]
    delta: ClassVar[float] = 0.0
    """The δ where ε is sought and none is given: of tasks that need Gaussian noise."""
    records: ClassVar[str] = "rows"
    least: ClassVar[int] = 50
    most: ClassVar[int] = 1_000_000
    """Records between which n is sought."""
    methods: ClassVar[str] = ""
    """The room whose methods its field ``method`` takes."""
    close: ClassVar[float] = 1.02
    """How closely it is sought."""

    def __post_init__(self) -> None:
        for one in fields(self):
            least, most = one.metadata["range"]
            value = getattr(self, one.name)
            if isinstance(least, int):
                public.whole(one.name, value, least, most)
            elif least is not None and value is not None:
                public.number(one.name, value, least, most)

    @classmethod
    def of(cls, schema: Schema, *_: Any, **more: Any) -> Self:
        raise ParameterError(f"a plan of {cls.task} takes no schema: state what it assumes")

    def seconds(self, n: int, loss: Loss) -> float:
        """About how long it takes to predict: the plan of a study takes no longer than some seconds."""
        return 1.0

    def in_study(self) -> TaskPlan:
        """Return what the plan of a study predicts by."""
        return self

    @abstractmethod
    def expected(self, n: int, loss: Loss) -> Forecast:
        """Return what to expect; raise what a call would for a public reason."""

    def accuracy_at(self, n: int, loss: Loss) -> float:
        return self.expected(n, loss).accuracy

    @abstractmethod
    def sentence(self, forecast: Forecast) -> str: ...


@dataclass(frozen=True, kw_only=True)
class TablePlan(TaskPlan):
    """A task that asks a table."""

    persons: bool = assumption(
        "Whether n counts persons with private ids. It decides which methods are available, not their accuracy.", False,
    )  # fmt: skip

    def table(self, columns: dict[str, Any], schema: Mapping[str, Column], largest_weight: float = 1.0) -> Table:
        if self.persons:
            columns = columns | {"person": np.arange(len(next(iter(columns.values()))))}
        person = "person" if self.persons else None
        return Table(columns, Schema(schema), unlimited_ledger(person=person), person=person,
                     weight=("weight", largest_weight) if "weight" in columns else None)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class IntervalWidthPlan(TaskPlan):
    """An interval of which half the width is predicted."""

    goal: ClassVar[str] = "half the width of the interval"
    more_is_better: ClassVar[bool] = False
    delta: ClassVar[float] = 1e-6
    relative_error: ClassVar[float]
    """How far other rows are from the simulated ones, as a share: measured."""
    no_interval_note: ClassVar[str] = ""
    """Where there may be no interval, as text."""
    simulated_tables: ClassVar[int] = 9
    """Calls on simulated rows; the median and the range of their widths are reported."""
    one_in: ClassVar[int] = 8
    """One in so many calls on simulated rows is outside the range on either side."""
    unsure_tables: ClassVar[int] = 3
    """Calls on simulated rows under other assumptions."""

    @abstractmethod
    def simulate_once(self, n: int, loss: Loss, rng: PublicGenerator) -> tuple[tuple[float, float] | None, str]:
        """Return the interval of a call on simulated rows, or why there is none."""

    @property
    def far_end(self) -> dict[str, Any]:
        """The least favourable of the values that the range covers, of the assumptions that are not stated."""
        return {}

    @property
    def cautious(self) -> bool:
        """Whether the accuracy is that of the far end: the share of treated is neither stated nor designed."""
        return False

    def half_widths(self, times: int, n: int, loss: Loss) -> tuple[list[float], str]:
        """Return half the widths of some calls, in order, infinite without an interval, and why there was none."""
        results = simulate_runs(times, partial(self.simulate_once, n, loss))
        halves = sorted(math.inf if interval is None else (interval[1] - interval[0]) / 2 for interval, _ in results)
        return halves, next((reason for _, reason in reversed(results) if reason), "")

    def accuracy_at(self, n: int, loss: Loss) -> float:
        if self.cautious:
            return self.far_accuracy(n, loss)
        halves, _ = self.half_widths(self.simulated_tables, n, loss)
        return halves[len(halves) // 2]

    def far_accuracy(self, n: int, loss: Loss) -> float:
        return replace(self, **self.far_end).half_widths(self.unsure_tables, n, loss)[0][self.unsure_tables // 2]

    def expected(self, n: int, loss: Loss) -> Forecast:
        halves, reason = self.half_widths(self.simulated_tables, n, loss)
        middle, tenth, factor = halves[len(halves) // 2], len(halves) // self.one_in, 1 + self.relative_error
        low, high = min(halves[tenth], middle / factor), max(halves[-1 - tenth], middle * factor)
        why = f"{len(halves)} simulated tables" + (f"; without an interval where {reason}" if reason else "")
        forecast = Forecast(middle, low, high, why)
        if not self.far_end:
            return forecast
        far = self.far_accuracy(n, loss)
        forecast = forecast._replace(high=max(high, far * factor))
        return forecast._replace(accuracy=max(middle, far), usual=middle) if self.cautious else forecast

    @property
    def condition(self) -> str:
        """Under which assumption the accuracy is expected, as text."""
        return ""

    @property
    def range_condition(self) -> str:
        """Which values of assumptions that are not stated the range covers, as text."""
        return ""

    def sentence(self, forecast: Forecast) -> str:
        usual = forecast.accuracy if forecast.usual is None else forecast.usual
        if math.isinf(usual):
            why = f": {forecast.why}" if forecast.why else ""
            return f"no confidence interval is expected{self.condition}{why}"
        level, about = f"{100 * float(getattr(self, 'coverage', 0.95)):g} % CI", f"about ±{usual:.2g}"
        if forecast.usual is not None:
            most = f"{level} of up to ±{forecast.accuracy:.2g}"
            first = f"{'in a bad case no interval' if math.isinf(forecast.accuracy) else most}{self.range_condition}"
            last = f"state share for one figure{self.no_interval_note}"
            return "; ".join(part for part in (first, f"{about}{self.condition}", forecast.others, last) if part)
        bounds = f"from ±{forecast.low:.2g} to ±{forecast.high:.2g}{self.range_condition}"
        if math.isinf(forecast.high):
            bounds = f"at best ±{forecast.low:.2g}, in a bad case no interval"
        first, last = (about, bounds) if self.relative_error < 1 else (bounds, about)
        parts = [f"{level} {first}{self.condition}", forecast.others, f"{last}{self.no_interval_note}"]
        return "; ".join(part for part in parts if part)


def unlimited_ledger(**unit: Any) -> Ledger:
    """Return a ledger for simulated records, which protects this unit, by default rows."""
    return Ledger.in_memory(ApproxDP(1_000_000, 0.5), **unit, accept_large_epsilon=True)


def simulate_runs(n: int, once: Callable[[PublicGenerator], T]) -> list[T]:
    """Return the results of n simulated runs, each with its own public generator, under simulated noise."""
    results = []
    for seed in range(1, n + 1):
        with simulated_noise(seed):
            results.append(once(generator_from_seed(seed)))
    return results


def weights(rng: PublicGenerator, n: int, largest: float) -> dict[str, Any]:
    """Return survey weights with a mean of 1 as a column; none where the largest is no more."""
    off = min(WEIGHTS_OFF, largest - 1)
    return {"weight": rng.uniform(1 - off, 1 + off, n)} if off > 0 else {}


def normal(rng: PublicGenerator, *shape: int) -> Any:
    return rng.standard_normal(shape).clip(-REACH, REACH)


def rounded_loss(epsilon: float, delta: float) -> Loss:
    rounded = float(f"{epsilon:.4g}")
    return ApproxDP(rounded, delta) if delta else PureDP(rounded)


def scaled_loss(loss: Loss, factor: float) -> Loss:
    if isinstance(loss, ZCDP):
        return ZCDP(float(f"{loss.rho * factor**2:.4g}"))
    return rounded_loss(loss.epsilon * factor, loss.delta)  # type: ignore[union-attr]


def fewer_rows(n: int, loss: Loss, columns: int) -> tuple[int, Loss, float]:
    """Return rows and a loss to simulate instead of n at a loss, and the factor between the widths of intervals. With k
    times fewer rows, √k times the loss leaves noise and sampling error in the same proportion, each √k wider."""
    fewer = min(n, MOST_ROWS, MOST_SQUARES // columns**2)
    factor = math.sqrt(fewer / n)
    return fewer, loss if fewer == n else scaled_loss(loss, 1 / factor), factor


def level_count(declared: Column) -> int:
    return 0 if isinstance(declared, Bounded) else len(declared)


def stratum_count(declared: Column) -> int:
    """Return the number of levels of a column, or of parts of a number with cuts; 0 of another number."""
    if isinstance(declared, Bounded):
        return 0 if declared.cuts is None else len(declared.cuts) + 1
    return len(declared)


def sizes_in(name: str, text: str, least: int, most: int) -> list[int]:
    """Return the whole numbers of an assumption such as "5,5,2"."""
    if not re.fullmatch(r"(\d+(, *\d+)*)?", text):
        raise ParameterError(f"{name} must be whole numbers with commas, such as 5,2", argument=name, rule="numbers")
    return [public.whole(name, int(one), least, most) for one in text.split(",") if one]
