"""Directions asked on neighbours: the grey box and where the falsifier searches, for each part that is protected."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcausal.audit import GreyBoxAudit, compare
from tests.direction.neighbours import HIGH, LOW, ask, halves, new_row, replaced, some_rows
from tests.registry.rows import Neighbours, Search

ROWS = 24
SHAPES = 8
"""Structured tables that ``some_rows`` yields; a seed takes the one of its number."""


def asked_on_neighbours(protected: str, rows: int | None = None, **arguments: Any) -> Neighbours:
    """Return the grey box for a direction: a row of the protected part is replaced."""

    size, call = rows or (80 if protected == "everyone" else ROWS), {"protect": protected, **arguments}
    places = np.arange(size) if protected == "everyone" else halves(size)[1]

    def audit(seed: int, answers: Any) -> GreyBoxAudit:
        rng = np.random.default_rng(seed)
        shape = list(some_rows(rng, size))[seed % SHAPES]
        neighbour = replaced(shape, int(rng.choice(places)), new_row(rng, shape))
        return compare(lambda: ask(shape, **call), lambda: ask(neighbour, **call), answers=answers)

    return Neighbours(audit, Search(lambda rows: ask(rows, **call), size, LOW, HIGH, places))
