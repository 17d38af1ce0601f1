"""What two neighbouring data sets are, and who is protected."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dpcausal.errors import ParameterError


class Relation(Enum):
    """The relation between neighbouring data sets that a guarantee speaks of."""

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
    """Whom a ledger protects, in all of its spends: a unit, and the column that names it, where one does.

    Source: claim ``one-unit``.
    """

    unit: Unit = Unit.ROW
    column: str = ""

    @classmethod
    def of(
        cls, person: object = None, unit: object = None, ids: object = "private", protect: object = "everyone"
    ) -> PrivacyUnit:
        """Return the unit that the words of ``Ledger.create`` declare; a ParameterError for what declares none."""
        for name, column in (("person", person), ("unit", unit)):
            if column is not None and not (isinstance(column, str) and 1 <= len(column) <= LONGEST_COLUMN):
                raise ParameterError(f"{name} must be the name of a column, of 1 to {LONGEST_COLUMN} characters")
        if ids not in ("private", "public") or (ids == "public" and person is None):
            raise ParameterError("ids must be 'private', or with person= 'public'")
        if protect not in HALVES:
            raise ParameterError(f"protect must be one of {', '.join(HALVES)}")
        if sum((person is not None, unit is not None, protect != "everyone")) > 1:
            raise ParameterError("a ledger protects one unit: give one of person, unit and protect, or none for rows")
        if isinstance(person, str):
            return cls(Unit.PERSON if ids == "private" else Unit.LISTED_PERSON, person)
        return cls(Unit.DONOR, unit) if isinstance(unit, str) else cls(HALVES[str(protect)])

    @property
    def words(self) -> dict[str, str]:
        """The words that declare it, as ``Ledger.create`` takes them."""
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

    def refusal(self, asked: PrivacyUnit) -> str:
        """Return why a spend for another unit is refused, and what to do."""
        told = ", ".join(f"{name}={value!r}" for name, value in asked.words.items())
        return (
            f"this ledger protects {self}, the question protects {asked}: their losses do not add up, and nothing was "
            f"spent; ask it from a new ledger made {f'with {told}' if told else 'without person= or unit='}, whose "
            "budget comes on top of this one's"
        )


LONGEST_COLUMN = 200

HALVES = {"everyone": Unit.ROW, "test": Unit.TEST_ROW, "training": Unit.TRAINING_ROW}
"""The units of rows by the words of ``protect=``."""
