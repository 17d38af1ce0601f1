"""The plan of a task: public assumptions, and the accuracy that they predict for n records and a loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from dpcausal.data.schema import Column, Schema
from dpcausal.data.table import Table
from dpcausal.errors import ParameterError
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ApproxDP, Loss
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed, simulated_noise

T = TypeVar("T")

REACH = 4.0
"""A simulated number is moved to within so many standard deviations."""


class Forecast(NamedTuple):
    """The accuracy to expect, a range that it should lie in, and what else must be said of it."""

    accuracy: float
    low: float
    high: float
    why: str = ""


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
    quick: ClassVar[bool] = True
    """Whether it takes hardly a second, so that the plan of a study includes it."""
    methods: ClassVar[str] = ""
    """The room whose methods its field ``method`` takes."""
    close: ClassVar[float] = 1.02
    """How closely it is sought."""

    @classmethod
    def of(cls, schema: Schema, *_: Any, **more: Any) -> Self:
        """Return the plan of a call of the task with these arguments on a table of a schema."""
        raise ParameterError(f"a plan of {cls.task} takes no schema: state what it assumes")

    @abstractmethod
    def expected(self, n: int, loss: Loss) -> Forecast:
        """Return what to expect; raise what a call would for a public reason."""

    @abstractmethod
    def sentence(self, forecast: Forecast) -> str:
        """Return it in words."""

    def meets(self, forecast: Forecast, target: float) -> bool:
        """Return whether an accuracy is as good as a target."""
        return forecast.accuracy >= target if self.more_is_better else forecast.accuracy <= target


@dataclass(frozen=True, kw_only=True)
class TablePlan(TaskPlan):
    """A task that asks a table.

    Parameters
    ----------
    persons : bool
        Whether records are persons, whose ids are private.
    """

    persons: bool = False

    def table(self, columns: dict[str, Any], schema: Mapping[str, Column]) -> Table:
        """Return a table of simulated rows."""
        if self.persons:
            columns = columns | {"person": np.arange(len(next(iter(columns.values()))))}
        person = "person" if self.persons else None
        return Table(columns, Schema(schema), unlimited_ledger(person=person), person=person)


def unlimited_ledger(**unit: Any) -> Ledger:
    """Return a ledger for simulated records, which protects this unit, by default rows."""
    return Ledger.in_memory(ApproxDP(1_000_000, 0.5), **unit, accept_large_epsilon=True)


def trials(n: int, most: int, rows: int) -> int:
    """Return how many simulated tables of n rows are asked: fewer of long ones, at least 40."""
    return max(40, min(most, rows // n))


def simulate_runs(n: int, once: Callable[[PublicGenerator], T]) -> list[T]:
    """Return the results of n simulated runs, each with its own public generator, under simulated noise."""
    results = []
    for seed in range(1, n + 1):
        with simulated_noise(seed):
            results.append(once(generator_from_seed(seed)))
    return results


def normal(rng: PublicGenerator, *shape: int) -> Any:
    """Return standard normal numbers, moved to within ±4."""
    return rng.standard_normal(shape).clip(-REACH, REACH)
