"""The columns of a question as arrays: x and y as numbers and indicators, z as numbers and codes of levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.regression.smoother import Given

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """The rows of a question, for a test.

    Attributes
    ----------
    x, y : float arrays, shapes (n, p) and (n, q)
        A number is one column in its own unit; levels are one indicator for each level but the first.
    given : Given
        The columns that are conditioned on.
    raw : float array, shape (n, number of given columns)
        The same in the order they were named: numbers in their own unit, levels as codes.
    kept : bool array, shape (n,)
        Whether the row has all columns of the question; the others hold what stands in for a missing value.
    keys : int64 array, shape (n,), or None
        Of persons whose ids are private: blocks are dealt by it, not by position.
    """

    x: Reals
    y: Reals
    given: Given
    raw: Reals
    kept: npt.NDArray[np.bool_]
    keys: Integers | None = None

    @property
    def n(self) -> int:
        return len(self.x)

    @property
    def varying(self) -> int:
        """How many rows lie off the most frequent value of a column: the most of those of x and those of y."""
        columns = np.hstack([self.x, self.y]).T
        return self.n - min(int(np.unique(column, return_counts=True)[1].max()) for column in columns)

    def at(self, rows: Integers) -> Sample:
        """Return the rows at these positions."""
        return Sample(self.x[rows], self.y[rows], self.given.at(rows), self.raw[rows], self.kept[rows])

    def complete(self) -> Sample:
        """Return the rows that have all columns: inside a block, or without privacy."""
        return self if self.kept.all() else self.at(np.flatnonzero(self.kept))


def rows_of(
    columns: Mapping[str, npt.NDArray[Any]], schema: Schema, x: tuple[str, ...], y: tuple[str, ...],
    given: tuple[str, ...], kept: npt.NDArray[np.bool_] | None = None,
    keys: Integers | None = None,
) -> Sample:  # fmt: skip
    """Return cleaned columns as the rows of a question; each row by itself."""
    n = len(columns[x[0]])
    numbers = [columns[name] for name in given if isinstance(schema[name], Bounded)]
    codes = [columns[name] for name in given if isinstance(schema[name], Levels)]
    return Sample(
        _numeric(columns, schema, x),
        _numeric(columns, schema, y),
        Given(
            np.stack(numbers, axis=1) if numbers else np.empty((n, 0)),
            np.stack(codes, axis=1).astype(np.int64) if codes else np.empty((n, 0), dtype=np.int64),
            tuple(len(column) for column in map(schema.__getitem__, given) if isinstance(column, Levels)),
        ),
        np.stack([columns[name].astype(np.float64) for name in given], axis=1) if given else np.empty((n, 0)),
        np.ones(n, dtype=np.bool_) if kept is None else kept,
        keys,
    )


def _numeric(columns: Mapping[str, npt.NDArray[Any]], schema: Schema, names: tuple[str, ...]) -> Reals:
    parts = []
    for name in names:
        declared = schema[name]
        if isinstance(declared, Bounded):
            parts.append(columns[name].astype(np.float64)[:, None])
        else:
            # One level only: a column of zeros, which is constant as the levels are.
            others = np.arange(1, max(2, len(declared)))
            parts.append((columns[name][:, None] == others).astype(np.float64))
    return np.hstack(parts)


def values_of(columns: Reals) -> Reals:
    """Return x or y as one number a row: itself, or the code of its level."""
    return columns @ np.arange(1.0, columns.shape[1] + 1)


def cells_of(given: Given) -> Integers:
    """Return each row's cell of the given levels."""
    cells = np.zeros(given.rows, dtype=np.int64)
    for codes, size in zip(given.levels.T, given.sizes, strict=True):
        cells = cells * size + codes
    return cells


def width_of(schema: Schema, names: tuple[str, ...]) -> int:
    """Return how many columns of numbers these are, from the public schema."""
    declared = [schema[name] for name in names]
    return sum(1 if isinstance(column, Bounded) else max(1, len(column) - 1) for column in declared)
