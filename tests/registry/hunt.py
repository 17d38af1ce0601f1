"""The falsifier through a public call: neighbours whose answers at the gate use up most of what the call is charged.

A climb over (rows, place, new row) from structured starts, as in ``dpcausal.audit.falsify``, but over all answers of a
call at once, each in its own norm.  Nothing is drawn, so a share above 1, or answers that are declared otherwise on the
neighbour, are wrong at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcausal.audit.falsifier import STARTS
from dpcausal.mechanisms.gate import Passage
from tests.registry.prices import moved, passages
from tests.registry.rows import Search

ROUNDING = 1e-9


@dataclass(frozen=True)
class Hunt:
    """The largest share of the charge that neighbours use up, ∞ if they are told apart, and how many were looked at."""

    share: float
    pairs: int

    @property
    def violated(self) -> bool:
        return self.share > 1 + ROUNDING


class _Climb:
    """One climb; it remembers the answers of its rows, so that a move of the neighbour alone costs one call."""

    def __init__(self, search: Search, rng: np.random.Generator, rows: Any, answers: Any) -> None:
        self.search, self.rng, self.answers = search, rng, answers
        places = np.arange(search.rows) if search.places is None else search.places
        self.places = places
        self.rows, self.place, self.new = rows, int(rng.choice(places)), self._corner()
        self.at_rows = self._asked(rows)
        self.share = -1.0

    def _asked(self, rows: Any) -> list[Passage]:
        return passages(lambda: self.search.ask(rows), self.answers)

    def _corner(self) -> Any:
        return np.where(self.rng.random(len(self.search.low)) < 0.5, self.search.low, self.search.high)

    def _row(self, row: Any) -> Any:
        """Return a corner, or the row with one entry at an end, at another row's entry, or anywhere."""
        if self.rng.random() < 0.3:
            return self._corner()
        new, column = row.copy(), int(self.rng.integers(len(row)))
        low, high = self.search.low[column], self.search.high[column]
        near = self.rows[int(self.rng.integers(len(self.rows))), column]
        new[column] = (low, high, near, self.rng.uniform(low, high))[int(self.rng.integers(4))]
        return new

    def step(self) -> None:
        rows, place, new, kind = self.rows, self.place, self.new, int(self.rng.integers(5))
        if kind == 0:
            new = self._row(new)
        elif kind == 1:
            place = int(self.rng.choice(self.places))
        else:
            at = place if kind == 2 else int(self.rng.integers(len(rows)))
            rows = rows.copy()
            rows[at] = self._row(rows[at]) if kind < 4 else rows[int(self.rng.integers(len(rows)))]
        neighbour = rows.copy()
        neighbour[place] = new
        at_rows = self.at_rows if rows is self.rows else self._asked(rows)
        share = _share(at_rows, self._asked(neighbour))
        if share >= self.share:
            self.rows, self.place, self.new, self.at_rows, self.share = rows, place, new, at_rows, share


def _share(one: list[Passage], other: list[Passage]) -> float:
    if [each.event for each in one] != [each.event for each in other]:
        return math.inf
    return moved(one, other)


def hunt(search: Search, *, pairs: int, seed: int = 0) -> Hunt:
    """Return the worst of a number of neighbours: a third to choose among starts, the rest to climb from the best."""
    rng = np.random.default_rng(seed)
    best, looked = None, 0
    while looked < pairs // 3:
        for number, start in enumerate(STARTS.values()):
            rows = np.clip(start(rng, search.rows, search.low, search.high), search.low, search.high)
            climb = _Climb(search, rng, rows, ("low", "high")[number % 2])
            climb.step()
            looked += 1
            best = climb if best is None or climb.share > best.share else best
    if best is None:
        raise ValueError("a hunt needs pairs")
    for _ in range(pairs - looked):
        best.step()
    return Hunt(best.share, pairs)
