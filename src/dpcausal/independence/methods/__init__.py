"""Short names of the tests, and the rule of ``auto``; methods do not import this module."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dpcausal.core.method import Run
from dpcausal.data.schema import Levels
from dpcausal.independence.methods.counts import MOST_CELLS, ContingencyTest, reaches
from dpcausal.independence.methods.crt import Crt
from dpcausal.independence.methods.crt_decision import CrtDecision
from dpcausal.independence.methods.gcm import Gcm, WeightedGcm
from dpcausal.independence.methods.hsic import Hsic
from dpcausal.independence.methods.kendall import Kendall
from dpcausal.independence.methods.neighbours import LEAST_ROWS, Neighbours
from dpcausal.independence.methods.strata import StrataCovariance
from dpcausal.independence.null_distributions import MISSED
from dpcausal.independence.question import IndependenceQuestion, IndependenceTest, Released
from dpcausal.privacy.loss import Loss, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Unit

LEAST_CELL = 60
"""Rows a cell of the given levels below which neighbours in a given number are too few."""

LEAST_STRATUM = 150
"""Rows a stratum below which rare levels make a table reject true nulls: 0.115 of those with 83, 0.073 with 167."""

Choice = tuple[IndependenceTest, str]


@dataclass(frozen=True, kw_only=True)
class Auto(IndependenceTest):
    name: ClassVar[str] = "auto"
    about: ClassVar[str] = "by schema, rows and epsilon"
    supports_no_privacy: ClassVar[bool] = True
    supports_missing: ClassVar[bool] = True

    def charge(self, loss: Loss, question: IndependenceQuestion) -> tuple[PureDP | NoPrivacy, str]:
        spent, note = super().charge(loss, question)
        test, why = choice(question, spent)
        return spent, f"{note + '; ' if note else ''}the default test is {test.name}: {why}"

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Any:
        return choice(question, loss)[0].plan(question, loss)

    CLAIMS: ClassVar[tuple[str, ...]] = (
        "neighbour-pairs", "untied-pairs", "neighbour-variance", "stratum-covariance", "stratum-variance",
        "conditional-kendall", "stratum-spread", "contingency-table", "block-sum", "geometric", "laplace",
    )  # fmt: skip
    """Of all tests that it may take, where one call asks many questions that are not known before."""

    def proofs_of(self, question: IndependenceQuestion, loss: PureDP) -> tuple[str, ...]:
        return choice(question, loss)[0].proofs_of(question, loss)

    def release(self, run: Run[IndependenceQuestion]) -> Released:
        released: Released = self.plan(run.question, run.loss).release(run)
        return released


def choice(question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Choice:
    test, why = _by_columns(question, loss)
    if question.unit is Unit.PERSON and not test.allows_private_ids:
        return Gcm(), "persons whose ids are private"
    return test, why


def _by_columns(question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Choice:
    if len(question.x) > 1 or len(question.y) > 1:
        return Gcm(), "several columns x or y"
    both = question.declared((*question.x, *question.y))
    if not question.numbers and all(isinstance(column, Levels) for column in both):
        return _of_levels(question, loss)
    if question.pairs > 1:
        return Gcm(), "levels without an order beside numbers"
    if not question.numbers:
        return Kendall(), "x and y are ordered, and given has no numeric column"
    if question.numbers > 1:
        return Gcm(), "several numbers are given"
    if question.n < max(LEAST_ROWS, LEAST_CELL * question.cells):
        return Gcm(), f"less than {LEAST_CELL} rows a cell of the given levels"
    return Neighbours(), "one number is given"


def _of_levels(question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Choice:
    epsilon = loss.epsilon if isinstance(loss, PureDP) else math.inf
    x, y = (len(column) for column in question.declared((*question.x, *question.y)) if isinstance(column, Levels))
    shape = x, y, question.cells
    large = math.prod(shape) <= MOST_CELLS and reaches(question.n, shape, epsilon)
    if question.pairs > 1:
        return (
            (ContingencyTest(), "a table of counts of few cells") if large else (Gcm(), "more cells than rows can fill")
        )
    if large and question.n >= LEAST_STRATUM * question.cells and table_wins(question, epsilon):
        return ContingencyTest(), "a table of counts of so few cells says more"
    return StrataCovariance(), "x and y have two levels, and only levels are given"


def table_wins(question: IndependenceQuestion, epsilon: float) -> bool:
    """Return whether the sum over the strata varies by hardly more in the table than the covariance does. Of columns
    like fair coin flips both have variance n/16; the noise is 2/ε² a stratum in the table, against 2(Δ/(.8ε))² once and
    what the noisy variance is raised by.  A tenth more is for what the covariance never sees."""
    n, strata, bound = question.n, question.cells, 1 if question.cells == 1 else 2
    table = n / 16 + 2 * strata / epsilon**2
    raised = 0.375 / (0.2 * epsilon) * math.log(1 / (2 * MISSED * question.alpha))
    return table <= 1.1 * (n / 16 + 2 * (bound / (0.8 * epsilon)) ** 2 + raised)


__all__ = [
    "ContingencyTest",
    "Crt",
    "CrtDecision",
    "Gcm",
    "Hsic",
    "Kendall",
    "Neighbours",
    "StrataCovariance",
    "WeightedGcm",
]  # fmt: skip

ALL: tuple[type[IndependenceTest], ...] = (
    Neighbours, StrataCovariance, ContingencyTest, Kendall, Gcm, WeightedGcm, Crt, Hsic, CrtDecision,
)  # fmt: skip

METHODS: dict[str, type[IndependenceTest]] = {"auto": Auto, **{kind.name: kind for kind in ALL}}
"""Every method by its short name."""
