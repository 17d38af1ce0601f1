"""Sensitivity: how far one unit can move a statistic; Query: the statistic with its answer hidden."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dpcausal.errors import FenceError, HiddenAnswerError, LedgerError, ParameterError, Setting


class Relation(Enum):
    """The relation between neighbouring data sets that a guarantee applies to."""

    REPLACE_ONE = "replace-one"
    """One unit's record is replaced by any other; the number of units n is public."""

    ADD_OR_REMOVE_ONE = "add-or-remove-one"
    """One unit's record is added or removed; the number of units is private."""


class Unit(Enum):
    """Whose data one record is: the unit of privacy."""

    ROW = "row"
    """One row of a table, usually one person."""

    PERSON = "person"
    """All rows of one person, and the id they have in common."""

    LISTED_PERSON = "person, who is in the data being public"
    """All rows of one person; the ids are public."""

    DONOR = "donor"
    """The whole series of one untreated unit of a panel."""

    TEST_ROW = "row of the test half"
    """One row that is in the test half of every call; rows of a training half are NOT protected."""

    TRAINING_ROW = "row of the training half"
    """One row that is in the training half of every call; rows of a test half are NOT protected."""


@dataclass(frozen=True)
class PrivacyUnit:
    """Whom a ledger protects, in all of its spends: a unit, and the column that names it, where one does. Source: claim
    ``one-unit``."""

    unit: Unit = Unit.ROW
    column: str = ""

    @classmethod
    def of(
        cls, person: object = None, unit: object = None, ids: object = "private", protect: object = "everyone"
    ) -> PrivacyUnit:
        for name, column in (("person", person), ("unit", unit)):
            if column is not None and not (isinstance(column, str) and 1 <= len(column) <= LONGEST_COLUMN):
                raise ParameterError(f"{name} must be the name of a column, of 1 to {LONGEST_COLUMN} characters")
        if ids not in ("private", "public") or (ids == "public" and person is None):
            text = "ids must be 'private', or 'public' where persons are protected"
            raise ParameterError(text, argument="ids", rule="choice")
        if protect not in HALVES:
            raise ParameterError(f"protect must be one of {', '.join(HALVES)}")
        if sum((person is not None, unit is not None, protect != "everyone")) > 1:
            raise ParameterError("a ledger protects one unit: give one of person, unit and protect, or none for rows")
        if isinstance(person, str):
            return cls(Unit.PERSON if ids == "private" else Unit.LISTED_PERSON, person)
        return cls(Unit.DONOR, unit) if isinstance(unit, str) else cls(HALVES[str(protect)])

    @property
    def arguments(self) -> dict[str, str]:
        if self.unit is Unit.DONOR:
            return {"unit": self.column}
        if self.unit in (Unit.PERSON, Unit.LISTED_PERSON):
            return {"person": self.column} | ({"ids": "public"} if self.unit is Unit.LISTED_PERSON else {})
        half = next(half for half, unit in HALVES.items() if unit is self.unit)
        return {} if half == "everyone" else {"protect": half}

    def __str__(self) -> str:
        if self.unit is Unit.ROW:
            return "rows"
        if self.unit is Unit.DONOR:
            return f"units of the column {self.column!r}"
        listed = ", who is in the data being public" if self.unit is Unit.LISTED_PERSON else ""
        named = f" of the column {self.column!r}{listed}"
        return f"persons{named}" if self.unit in (Unit.PERSON, Unit.LISTED_PERSON) else f"each {self.unit.value}"

    def refusal(self, other: PrivacyUnit) -> LedgerError:
        text = (f"this ledger protects {self}, the question protects {other}: their losses do not add up. Nothing was "
                "spent")  # fmt: skip
        new = f"make a new ledger that protects {other}; its budget comes on top of this one's"
        persons, units = (Unit.PERSON, Unit.LISTED_PERSON), (Unit.ROW, Unit.PERSON, Unit.LISTED_PERSON)
        settings = (Setting(name, value) for name, value in self.arguments.items())
        hint = (*(part for one in settings for part in (one, " ")), "protects as the ledger does")
        joined = self.unit in persons and other.unit in units
        return LedgerError(text, argument="ledger", rule="unit", hint=hint if joined else new)


LONGEST_COLUMN = 200

HALVES = {"everyone": Unit.ROW, "test": Unit.TEST_ROW, "training": Unit.TRAINING_ROW}
"""The units of rows by the words of ``protect=``."""


SMALLEST_BOUND, LARGEST_BOUND = Fraction(1, 10**300), Fraction(10**300)

Answer = float | int | npt.NDArray[np.float64] | npt.NDArray[np.int64]


class Norm(Enum):
    """How a bound is to be read: the norm in which it holds (for a single number the first four agree), or a condition.
    ``TESTED`` is no norm but what propose-test-release uses; ``conditional`` says it as a formula."""

    ABSOLUTE = "absolute"
    L1 = "l1"
    L2 = "l2"
    LINF = "l-infinity"
    TESTED = "tested"


@dataclass(frozen=True)
class Sensitivity:
    """A proved bound on the change of a statistic between neighbours. ``bound`` lies between 1e-300 and 1e300, an int
    for an integer statistic; ``proof`` is a claim's name, a heading of a proof page that ``dpcausal explain`` prints;
    ``symmetric`` says that the statistic is the same in whatever order the records stand, so that a record may change
    its place."""

    bound: float | int | Fraction
    norm: Norm
    relation: Relation
    proof: str
    unit: Unit = Unit.ROW
    symmetric: bool = False

    def covers(self, unit: Unit) -> bool:
        """Return whether it bounds what one unit moves: where persons have one record each, that of a record does. A
        person whose id may change takes another place among them: then it must be symmetric, or proved for that."""
        as_record = unit is Unit.LISTED_PERSON or (unit is Unit.PERSON and self.symmetric)
        return self.unit is unit or (self.unit is Unit.ROW and as_record)

    def __post_init__(self) -> None:
        bound = self.bound
        numbers = int, float, Fraction, np.floating, np.integer
        if isinstance(bound, (bool, np.bool_)) or not isinstance(bound, numbers):
            raise ParameterError("a sensitivity's bound must be a number")
        # numpy numbers become Python's: a Fraction of an int64 would compute in 64 bits and wrap.
        if isinstance(bound, (int, np.integer)):
            bound = int(bound)
        elif not isinstance(bound, Fraction):
            bound = float(bound)
        if isinstance(bound, float) and not math.isfinite(bound):
            raise ParameterError("a sensitivity's bound must be positive and finite")
        if not SMALLEST_BOUND <= Fraction(bound) <= LARGEST_BOUND:
            raise ParameterError("a sensitivity's bound must be positive and finite, between 1e-300 and 1e300")
        object.__setattr__(self, "bound", bound)
        if not self.proof:
            raise ParameterError("a sensitivity must name its proof")

    @property
    def rounded_up(self) -> float:
        nearest = float(self.bound)
        return nearest if Fraction(nearest) >= self.bound else math.nextafter(nearest, math.inf)


class Query:
    """A statistic's exact answer, hidden, with its sensitivity and a public name for the step. Only
    ``dpcausal.mechanisms`` opens the answer.  It does not show in ``repr``, ``str``, ``vars`` or ``==``, and a query
    refuses to be pickled or copied.  It must be finite, int64 or float64: a statistic is total, so a value that is not
    is a defect of the caller and raises ``FenceError`` without showing it."""

    __slots__ = ("_answer", "integral", "label", "sensitivity", "shape")

    def __init__(self, answer: Answer, sensitivity: Sensitivity, label: str) -> None:
        hidden = _frozen_copy(answer)
        if hidden is None:
            del answer  # the frame that raises holds no data
            raise FenceError(f"the answer of '{label}' must be int64 or finite float64: a statistic is total")
        self._answer = hidden
        self.sensitivity = sensitivity
        self.label = label
        self.shape: tuple[int, ...] = hidden.shape
        self.integral = hidden.dtype.kind == "i"

    def __repr__(self) -> str:
        kind = "integer" if self.integral else "real"
        return f"Query({self.label!r}, {kind}, shape={self.shape}, {self.sensitivity}, answer hidden)"

    def _refuse(self, *_: object) -> NoReturn:
        raise HiddenAnswerError(f"the query '{self.label}' holds a private answer and does not leave the process")

    __reduce_ex__ = __getstate__ = __copy__ = __deepcopy__ = _refuse


def _frozen_copy(answer: Answer) -> npt.NDArray[Any] | None:
    array = np.asarray(answer)
    if array.dtype.kind in "iu" and array.dtype != np.uint64:
        hidden: npt.NDArray[Any] = array.astype(np.int64)
    elif array.dtype.kind == "f":
        with np.errstate(all="ignore"):  # a warning would depend on the answer
            hidden = array.astype(np.float64)
        if not bool(np.isfinite(hidden).all()):
            return None
    else:
        return None
    hidden.setflags(write=False)
    return hidden


CONDITIONAL = (Norm.TESTED,)


def conditional_change(one: Any, other: Any, norm: Norm) -> float:
    """Return the change between two neighbours' answers, to be compared with the declared bound.

    TESTED, answers (A₁, …, A_k, v):  max_j |A_j − A′_j|, and |v − v′| too unless all A_j, A′_j ≤ 1

    where v is the value and A_j a number of records.
    """
    a, b = (np.asarray(answer, dtype=np.float64).ravel() for answer in (one, other))
    if norm not in CONDITIONAL or a.shape != b.shape or len(a) < 2 or not np.isfinite([a, b]).all():
        return math.inf
    distances = float(np.max(np.abs(a[:-1] - b[:-1])))
    return distances if max(a[:-1].max(), b[:-1].max()) <= 1 else max(distances, abs(float(a[-1] - b[-1])))
