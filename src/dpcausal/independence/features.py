"""Public features of z for the ridge regressions on all rows: additive, of norm at most 1 whatever the row.

φ(z) = (φ_1(z_1), …, φ_d(z_d)) / √d

where φ_k of a number is a set of cosines and sines (random frequencies, a Gaussian kernel of a public width in units of
half the column's public range), and of levels the indicator of the level: each has norm 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dpcausal.asking import public
from dpcausal.data.schema import Bounded, Schema
from dpcausal.errors import ParameterError
from dpcausal.independence.columns import Reals, Sample, width_of
from dpcausal.independence.question import Hypothesis
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.regression.residual_products import (
    CHUNK_ROWS,
    LARGEST_PENALTY,
    LEAST_PENALTY,
    MOST_FEATURES,
    Chunks,
)

PAIRS = 100
"""Cosine and sine pairs in all, shared by the given numbers; at least ``LEAST_PAIRS`` each."""

LEAST_PAIRS = 20

WIDTH = 0.1
"""Default width: public, in units of half a column's range."""

LEAST_ROWS = 10

_BELOW_ONE = 1 - 1e-12
"""So that a computed vector's norm is at most 1."""


def size_of(schema: Schema, given: tuple[str, ...]) -> int:
    """Return the number of features."""
    numbers = sum(isinstance(schema[name], Bounded) for name in given)
    return 2 * _pairs(numbers) * numbers + sum(
        len(column) for column in map(schema.__getitem__, given) if not isinstance(column, Bounded)
    )


def check_size(schema: Schema, given: tuple[str, ...]) -> None:
    """Refuse more features than the bounds are proved for."""
    if size_of(schema, given) > MOST_FEATURES:
        raise ParameterError(
            f"the global forms take at most {MOST_FEATURES} features: {2 * LEAST_PAIRS} for a number of many, one for "
            "each level"
        )


def _pairs(numbers: int) -> int:
    return max(LEAST_PAIRS, PAIRS // max(numbers, 1))


def chunks_of(
    rows: Sample, schema: Schema, given: tuple[str, ...], width: float, generator: PublicGenerator
) -> Chunks:
    """Return a function that yields slices of the rows and φ there; without given columns, one feature that is 0.

    φ is 0, as x and y are to be, for a row that lacks a column: it is in no sum then.
    """
    numbers = [place for place, name in enumerate(given) if isinstance(schema[name], Bounded)]
    pairs = _pairs(len(numbers))
    drawn = {place: generator.standard_normal(pairs) / width for place in numbers}
    scale = _BELOW_ONE / math.sqrt(max(1, len(given)))

    def chunks() -> Iterator[tuple[slice, Reals]]:
        for start in range(0, rows.n, CHUNK_ROWS):
            part = slice(start, min(start + CHUNK_ROWS, rows.n))
            raw, found = rows.raw[part], []
            for place, name in enumerate(given):
                declared = schema[name]
                if isinstance(declared, Bounded):
                    angles = np.multiply.outer((raw[:, place] - declared.midpoint) / (declared.width / 2), drawn[place])
                    found += [np.cos(angles) * (scale / math.sqrt(pairs)), np.sin(angles) * (scale / math.sqrt(pairs))]
                else:
                    found.append((raw[:, place : place + 1] == np.arange(len(declared))) * scale)
            features = np.hstack(found) if found else np.zeros((len(raw), 1))
            features[~rows.kept[part]] = 0.0
            yield part, features

    return chunks


def unit_column(values: Reals, schema: Schema, name: str) -> Reals:
    """Return a column scaled from its public range to [−1, 1]; of two levels, −1 and 1."""
    declared = schema[name]
    if isinstance(declared, Bounded):
        middle, half = declared.midpoint, declared.width / 2
    else:
        half = max(1, len(declared) - 1) / 2
        middle = (len(declared) - 1) / 2
    return np.clip((values - middle) / half, -1.0, 1.0)


def features(rows: Sample, question: Hypothesis, width: float | None, coins: PublicGenerator) -> Chunks:
    """Return the public features of the given columns."""
    return chunks_of(rows, question.schema, question.given, width or WIDTH, coins)


def settled_ridge(
    method: str, question: Hypothesis, penalty: float | None, width: float | None, default: float
) -> tuple[float, float]:
    """Check the columns, the penalty and the width of a method of all rows, or choose the last two."""
    if len(question.x) != 1 or len(question.y) != 1 or width_of(question.schema, (*question.x, *question.y)) != 2:
        raise ParameterError(f"method {method!r} takes one column x and one y, of numbers or of two levels")
    public.whole("the number of rows", question.n, LEAST_ROWS, 10**8)
    check_size(question.schema, question.given)
    chosen = default if penalty is None else penalty
    if not (public.is_number(chosen) and LEAST_PENALTY <= chosen <= LARGEST_PENALTY):
        raise ParameterError(f"penalty must be between {LEAST_PENALTY:g} and {LARGEST_PENALTY:g} for method {method!r}")
    in_halves = ", in units of half a column's range"
    return float(chosen), public.number("width", WIDTH if width is None else width, 0.005, 1000, in_halves)
