"""What two neighbouring data sets are, and who is protected."""

from __future__ import annotations

from enum import Enum


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
    """One row of the test half; the training half is NOT protected."""

    TRAINING_ROW = "row of the training half"
    """One row of the training half; the test half is NOT protected."""


PERSONS = (Unit.PERSON.value, Unit.LISTED_PERSON.value)
"""Units that no other one goes with in a ledger: what a row may cost says nothing of a person."""
