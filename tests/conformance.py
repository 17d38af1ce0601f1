"""The neighbour search: does a statistic keep its stated sensitivity, and is the statement tight?

A data set is an array of shape (m, columns), a record is a row, and neighbours differ in one row.  ``search`` climbs
over (data set, index, new row) from structured starts; ``check_claim`` turns it into the three demands on a claim:
the bound is never passed, a stated share of it is reached, and the same bound times 0.95 is caught, on each of
three seeds.  ``exhaustive`` visits every neighbour pair over a few values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dpcausal.privacy.sensitivity import Norm, Sensitivity

Rows = np.ndarray[Any, np.dtype[np.float64]]
Statistic = Callable[[Rows], Any]
Claim = Callable[[int], Sensitivity]
Start = Callable[[np.random.Generator, int, Rows, Rows], Rows]

LEAST_EVALUATIONS = 8_000
"""Neighbour pairs that a claim must survive, over all seeds and sizes."""


@dataclass(frozen=True)
class Found:
    """The worst neighbour pair of a search: change over bound, and the pair."""

    ratio: float
    evaluations: int
    rows: Rows
    neighbour: Rows


def distance(a: Any, b: Any, norm: Norm) -> float | int:
    """Return the change between two answers; exact for Python integers of any size."""
    if isinstance(a, int) and isinstance(b, int):
        return abs(a - b)
    change = np.abs(np.atleast_1d(np.asarray(a, dtype=np.float64)) - np.atleast_1d(np.asarray(b, dtype=np.float64)))
    if norm is Norm.L1:
        return float(change.sum())
    if norm is Norm.L2:
        return float(np.sqrt((change**2).sum()))
    return float(change.max())


# Starts: shapes that are extreme for ranks, kernels, quantiles or tables.  Columns lie in [low, high].


def _ramp(m: int, columns: int) -> Rows:
    return np.repeat(((np.arange(m) + 1.0) / (m + 1))[:, None], columns, axis=1)


def _identical(_: np.random.Generator, m: int, low: Rows, high: Rows) -> Rows:
    return low + (high - low) * _ramp(m, len(low))


def _reversed(_: np.random.Generator, m: int, low: Rows, high: Rows) -> Rows:
    ramp = _ramp(m, len(low))
    ramp[:, 1::2] = ramp[::-1, 1::2]
    return low + (high - low) * ramp


def _ties(rng: np.random.Generator, m: int, low: Rows, high: Rows) -> Rows:
    return low + (high - low) * rng.integers(0, 3, (m, len(low))) / 2


def _halves(_: np.random.Generator, m: int, low: Rows, high: Rows) -> Rows:
    return np.where((np.arange(m) < m // 2)[:, None], low, high)


def _crossed_halves(_: np.random.Generator, m: int, low: Rows, high: Rows) -> Rows:
    side = np.arange(m)[:, None] // np.where(np.arange(len(low)) % 2 == 0, 1, max(1, m // 2)) % 2
    return np.where(side == 0, low, high)


def _constant(_: np.random.Generator, m: int, low: Rows, high: Rows) -> Rows:
    return np.tile((low + high) / 2, (m, 1))


def _clustered(rng: np.random.Generator, m: int, low: Rows, high: Rows) -> Rows:
    middle = (low + high) / 2
    return middle + (high - low) * 1e-9 * rng.standard_normal((m, len(low)))


def _random(rng: np.random.Generator, m: int, low: Rows, high: Rows) -> Rows:
    return rng.uniform(low, high, (m, len(low)))


STARTS: dict[str, Start] = {
    "identical": _identical,
    "reversed": _reversed,
    "ties": _ties,
    "halves": _halves,
    "crossed halves": _crossed_halves,
    "constant": _constant,
    "clustered": _clustered,
    "random": _random,
}


def search(
    statistic: Statistic,
    bound: float | Fraction | Callable[[int], float | Fraction],
    *,
    sizes: Sequence[int],
    columns: int = 2,
    low: float | Sequence[float] = 0.0,
    high: float | Sequence[float] = 1.0,
    levels: Sequence[float] | None = None,
    norm: Norm = Norm.ABSOLUTE,
    starts: dict[str, Start] = STARTS,
    evaluations: int = 2_800,
    seed: int = 0,
) -> Found:
    """Return the worst ratio |statistic(D) − statistic(D′)| / bound(m) that hill climbing finds.

    Parameters
    ----------
    statistic : callable
        Maps rows (m, columns) to an int, a float or an array.
    bound : number or callable of m
        What the change is divided by.
    sizes : sequence of int
        The numbers of records; the evaluations are shared equally among sizes and starts.
    low, high : float or one per column
        The public range of each column.
    levels : sequence of float, optional
        If given, values are rounded to the nearest of these.
    norm : Norm
        The norm of the change.
    evaluations : int
        Neighbour pairs to look at.
    """
    rng = np.random.default_rng(seed)
    lows = np.broadcast_to(np.asarray(low, dtype=np.float64), (columns,))
    highs = np.broadcast_to(np.asarray(high, dtype=np.float64), (columns,))
    grid = None if levels is None else np.sort(np.asarray(levels, dtype=np.float64))
    best, total = Found(-1.0, 0, np.empty(0), np.empty(0)), 0
    share = math.ceil(evaluations / (len(sizes) * len(starts)))
    for m in sizes:
        scale = bound(m) if callable(bound) else bound
        for start in starts.values():
            rows = _to_levels(np.array(start(rng, m, lows, highs), dtype=np.float64), grid)
            climb = _Climb(rng, statistic, scale, norm, lows, highs, grid, rows)
            total += climb.run(share)
            if climb.ratio > best.ratio:
                best = Found(climb.ratio, 0, climb.rows, _replaced(climb.rows, climb.index, climb.new))
    return Found(best.ratio, total, best.rows, best.neighbour)


def check_claim(
    statistic: Statistic,
    claim: Claim,
    *,
    sizes: Sequence[int],
    reached: float = 0.99,
    mutant: float = 0.95,
    slack: float = 1e-12,
    seeds: Sequence[int] = (0, 1, 2),
    evaluations: int = 2_800,
    **domain: Any,
) -> list[Found]:
    """Assert that a claim holds on all pairs found, is tight to a stated share, and that its mutant is caught.

    Parameters
    ----------
    claim : callable
        Maps m to the claimed ``Sensitivity``; its norm is the one searched in.
    reached : float
        The share of the bound that each seed's search must reach.
    mutant : float
        The factor of the wrong bound that each seed's search must pass.  Below ``reached``: a claim that is not
        tight needs a smaller factor, and its slack written down beside the proof.
    slack : float
        Relative float slack above the bound.
    domain
        Passed to ``search``: columns, low, high, levels, starts.
    """
    if not mutant < reached:
        raise ValueError("the mutant cannot be caught below the share that is reached")
    domain = {"sizes": sizes, "norm": claim(max(sizes)).norm, "evaluations": evaluations, **domain}
    found = [search(statistic, lambda m: claim(m).bound, seed=seed, **domain) for seed in seeds]
    assert sum(one.evaluations for one in found) >= LEAST_EVALUATIONS, "too few neighbour pairs were looked at"
    for seed, one in zip(seeds, found, strict=True):
        assert one.ratio <= 1 + slack, f"seed {seed}: a neighbour pair moves it by {one.ratio} of the bound: {one}"
        assert one.ratio >= reached, f"seed {seed}: only {one.ratio} of the bound was reached"
        assert one.ratio > mutant, f"seed {seed}: the bound times {mutant} was not caught"
    return found


def exhaustive(statistic: Statistic, values: Sequence[float], m: int, columns: int = 2) -> tuple[float, int]:
    """Return the largest change of a symmetric scalar statistic over every neighbour pair, and the pairs' number.

    Parameters
    ----------
    statistic : callable
        Must not depend on the order of the records.
    values : sequence of float
        The values of each entry.
    m, columns : int
        The shape of the data.
    """
    records = np.array(list(itertools.product(values, repeat=columns)), dtype=np.float64)
    worst, pairs = 0.0, 0
    for others in itertools.combinations_with_replacement(range(len(records)), m - 1):
        common = records[list(others)]
        answers = [statistic(np.vstack([common, record])) for record in records]
        worst = max(worst, max(answers) - min(answers))
        pairs += len(records) * (len(records) - 1) // 2
    return worst, pairs


def neighbouring_rows(columns: int = 2, low: float = -1.0, high: float = 1.0, most: int = 12) -> st.SearchStrategy[Any]:
    """Return a hypothesis strategy of neighbour pairs (rows, rows′), rich in ties, bounds and close values."""
    level = st.sampled_from([low, (low + high) / 2, high])
    close = st.sampled_from([low + (high - low) * k / 8 for k in range(9)]).map(lambda v: float(np.nextafter(v, low)))
    value = st.one_of(level, close, st.floats(low, high, allow_nan=False))
    row = st.tuples(*[value] * columns)

    def pair(rows: list[tuple[float, ...]]) -> st.SearchStrategy[Any]:
        return st.tuples(st.integers(0, len(rows) - 1), row).map(
            lambda change: (np.array(rows), _replaced(np.array(rows), change[0], np.array(change[1])))
        )

    return st.lists(row, min_size=2, max_size=most).flatmap(pair)


def _to_levels(rows: Rows, grid: Rows | None) -> Rows:
    if grid is None:
        return rows
    return grid[np.abs(rows[..., None] - grid).argmin(axis=-1)]


def _replaced(rows: Rows, index: int, new: Rows) -> Rows:
    neighbour = rows.copy()
    neighbour[index] = new
    return neighbour


class _Climb:
    """One hill climb over (rows, index, new row): keep a proposal that is at least as good."""

    def __init__(
        self,
        rng: np.random.Generator,
        statistic: Statistic,
        bound: float | Fraction,
        norm: Norm,
        low: Rows,
        high: Rows,
        grid: Rows | None,
        rows: Rows,
    ) -> None:
        self.rng, self.statistic, self.bound, self.norm = rng, statistic, bound, norm
        self.low, self.high, self.grid = low, high, grid
        self.rows, self.index, self.new = rows, 0, rows[0]
        self.answer = statistic(rows)
        self.ratio = -1.0

    def run(self, evaluations: int) -> int:
        probes = itertools.islice(self._probes(), evaluations // 2)
        used = 0
        for index, new in probes:
            self._consider(self.rows, index, new)
            used += 1
        for _ in range(evaluations - used):
            self._consider(*self._proposal())
        return evaluations

    def _probes(self) -> Iterator[tuple[int, Rows]]:
        """Yield the corners of the domain in place of the first, the last and a middle record."""
        m, columns = self.rows.shape
        corners = itertools.islice(itertools.product((0, 1), repeat=columns), 16)
        for corner in corners:
            for index in dict.fromkeys((0, m - 1, m // 2)):
                yield index, _to_levels(np.where(corner, self.high, self.low), self.grid)

    def _proposal(self) -> tuple[Rows, int, Rows]:
        m, columns = self.rows.shape
        move = self.rng.integers(5)
        if move == 0:
            return self.rows, self.index, self._row(self.new)
        if move == 1:
            return self.rows, int(self.rng.integers(m)), self.new
        rows = self.rows.copy()
        if move == 2:
            rows[self.index] = self._row(rows[self.index])
        elif move == 3:
            other = int(self.rng.integers(m))
            rows[other] = self._row(rows[other])
        else:
            i, k, column = int(self.rng.integers(m)), int(self.rng.integers(m)), int(self.rng.integers(columns))
            rows[[i, k], column] = rows[[k, i], column]
        return rows, self.index, self.new

    def _row(self, row: Rows) -> Rows:
        """Return the row with one column, or all, drawn anew: a bound, a tie, a near-tie, or anywhere."""
        new = row.copy()
        columns = range(len(row)) if self.rng.random() < 0.5 else [int(self.rng.integers(len(row)))]
        for c in columns:
            near = self.rows[int(self.rng.integers(len(self.rows))), c]
            new[c] = (
                self.low[c],
                self.high[c],
                near,
                np.nextafter(near, self.rng.choice([self.low[c], self.high[c]])),
                self.rng.uniform(self.low[c], self.high[c]),
            )[int(self.rng.integers(5))]
        return _to_levels(new, self.grid)

    def _consider(self, rows: Rows, index: int, new: Rows) -> None:
        answer = self.answer if rows is self.rows else self.statistic(rows)
        change = distance(answer, self.statistic(_replaced(rows, index, new)), self.norm)
        # Integers of any size: an exact quotient before it becomes a float.
        ratio = float(Fraction(change) / Fraction(self.bound))
        if ratio >= self.ratio:
            self.rows, self.index, self.new, self.answer, self.ratio = rows, index, new, answer, ratio
