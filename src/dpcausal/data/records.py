"""The records of some columns, and which of them count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.persons import Persons
from dpcausal.data.schema import Levels, Schema
from dpcausal.errors import ParameterError

LONGEST_NAME = 200

RULES = ("drop", "impute", "level")
"""What ``missing=`` takes."""

NAME = "missing"
"""The level that ``missing="level"`` adds."""


_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """All n records, cleaned, in the order of the table; each decides by itself whether it is kept.

    A statistic assigns positions and random numbers over all n, and leaves records out inside its own block, cell or
    pair only.

    Attributes
    ----------
    values : dict
        New arrays of length n: numbers in [lower, upper], or codes of levels; the substitute where one is missing.
    kept : bool array, shape (n,)
        Whether the record has all of the columns.
    present : dict
        Whether it has each of them.
    keys : int64 array, shape (n,), or None
        Of persons whose ids are private: blocks are assigned by it, not by position.
    weights : float64 array, shape (n,), or None
        What part of its unit a record is, those of a unit at most 1 in all; ``None`` where each is one.
    owners : int64 array, shape (n,), or None
        Whose each is, counted from 0; ``None`` where each is its own.
    """

    values: dict[str, NDArray[Any]]
    kept: NDArray[np.bool_]
    present: dict[str, NDArray[np.bool_]]
    keys: NDArray[np.int64] | None = None
    weights: NDArray[np.float64] | None = None
    owners: NDArray[np.int64] | None = None

    @property
    def n(self) -> int:
        return len(self.kept)

    @property
    def mark(self) -> int:
        """A sum of hashes of the records, to 64 bits, whatever their order: of other records it is another."""
        digest = np.zeros(self.n, dtype=np.uint64)
        weights = [] if self.weights is None else [self.weights]
        for column in (*self.values.values(), *weights):
            digest *= _ODD
            digest += column.view(np.uint64)
        for place, mask in enumerate(self.present.values()):
            if not mask.all():
                digest[~mask] += _ODD << np.uint64(place % 64)
        for shift in (32, 29):
            digest ^= digest >> np.uint64(shift)
            digest *= _ODD
        digest ^= digest >> np.uint64(32)
        return int(digest.sum(dtype=np.uint64).view(np.int64))

    def masses(self, whole: int) -> NDArray[np.int64]:
        """Return each record's part of a whole, cut to whole numbers: those of a unit sum to at most the whole."""
        parts = np.ones(self.n) if self.weights is None else self.weights
        return np.floor(whole * parts * self.kept).astype(np.int64)

    def weighed(self, weights: NDArray[np.float64]) -> Rows:
        """Return the records with a weight each."""
        return replace(self, weights=weights)

    def by_value(self, persons: Persons) -> tuple[Rows, Persons]:
        """Return rows that come in no order, and whose they are, by their values: nobody moves another's own rows."""
        weights = [] if self.weights is None else [self.weights]
        order = np.lexsort([self.kept, *self.values.values(), *self.present.values(), *weights])
        return self.at(order), replace(persons, codes=persons.codes[order])

    def at(self, places: NDArray[np.int64]) -> Rows:
        """Return the records at these places, whosever they are."""
        values = {name: column[places] for name, column in self.values.items()}
        present = {name: mask[places] for name, mask in self.present.items()}
        return Rows(
            values, self.kept[places], present, weights=None if self.weights is None else self.weights[places]
        )

    def kept_by(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return which records count in a question about some of the columns alone."""
        return _every((self.present[name] for name in names), self.n)

    @classmethod
    def joined(cls, several: Sequence[Rows]) -> Rows:
        """Return the records of some, one after the other."""
        values, present = (
            {name: np.concatenate([getattr(one, what)[name] for one in several]) for name in getattr(several[0], what)}
            for what in ("values", "present")
        )
        weights = [one.weights for one in several if one.weights is not None]
        mask = np.concatenate([one.kept for one in several])
        return cls(values, mask, present, weights=np.concatenate(weights) if weights else None)

    @classmethod
    def of(
        cls, columns: Mapping[str, tuple[NDArray[Any], NDArray[np.bool_]]], inside: NDArray[np.bool_], missing: str
    ) -> Rows:
        """Return the records of columns with their masks, under a rule for what is missing; others are outside."""
        impute, n = missing == "impute", len(inside)
        present = {name: inside if impute else mask & inside for name, (_, mask) in columns.items()}
        values = {name: column for name, (column, _) in columns.items()}
        return cls(values, _every((inside, *present.values()), n), present)

    def one_each(self, persons: Persons, by_key: bool) -> Rows:
        """Return one record a person."""
        places, _ = persons.chosen(self.kept)
        return replace(self.at(places), keys=persons.keys if by_key else None, weights=None)

    def parts_of(self, persons: Persons, most: int | None) -> Rows:
        """Return the kept rows of persons, each as a part of its person."""
        places, owners, parts = persons.parts(self.kept, most)
        chosen = self.at(places)
        return replace(chosen, weights=parts if chosen.weights is None else parts * chosen.weights, owners=owners)


def _every(masks: Iterable[NDArray[np.bool_]], n: int) -> NDArray[np.bool_]:
    every = np.ones(n, dtype=np.bool_)
    for mask in masks:
        every &= mask
    return every


def checked_rule(missing: object) -> str:
    """Return a rule for what is missing."""
    if not isinstance(missing, str) or missing not in RULES:
        raise ParameterError(f"missing must be one of {', '.join(RULES)}")
    return missing


def checked_name(name: object) -> str:
    """Return the name of a table or panel, under which answers are kept; empty: none are."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not name.isprintable():
        raise ParameterError(f"name must be a text of at most {LONGEST_NAME} printable characters")
    return name


def levelled(schema: Schema) -> Schema:
    """Return the schema in which what is missing from a column of levels is a level of its own."""
    return Schema(
        {
            name: Levels(one.values, NAME, one.missing) if isinstance(one, Levels) and one.other is None else one
            for name, one in schema.items()
        }
    )
