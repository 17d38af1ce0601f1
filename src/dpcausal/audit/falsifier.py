"""A search for neighbouring data sets that move a statistic by more than its claimed sensitivity.

A data set is an array of shape (m, columns), a record is a row, and neighbours differ in one row.  The search
climbs over (data set, index, new row) from structured starts.  It works on data that it makes up: nothing private
is read.  A bound that survives is not proved; one that falls is wrong.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.privacy.noise import PublicGenerator, generator_from_seed
from dpcausal.privacy.sensitivity import Norm

Rows = npt.NDArray[np.float64]
Statistic = Callable[[Rows], Any]
Start = Callable[[PublicGenerator, int, Rows, Rows], Rows]

ROUNDING = 1e-12
"""Relative float slack above a bound that is not called a violation."""


@dataclass(frozen=True, eq=False)
class Falsification:
    """What a neighbour search found.

    Attributes
    ----------
    ratio : float
        Worst change over bound: above 1 the claimed sensitivity is wrong.
    evaluations : int
        Neighbour pairs looked at.
    rows, neighbour : float arrays, shape (m, columns)
        The worst pair, made up by the search.
    """

    ratio: float
    evaluations: int
    rows: Rows
    neighbour: Rows

    @property
    def violated(self) -> bool:
        """Whether a pair moves the statistic by more than the bound."""
        return self.ratio > 1 + ROUNDING

    def summary(self) -> str:
        """Return the verdict in a sentence."""
        if self.violated:
            return f"VIOLATED: neighbours with {len(self.rows)} rows move it by {self.ratio:.6g} times the bound."
        return f"Not violated: {self.evaluations} neighbour pairs reach {self.ratio:.6g} of the bound."


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


def _identical(_: PublicGenerator, m: int, low: Rows, high: Rows) -> Rows:
    return low + (high - low) * _ramp(m, len(low))


def _reversed(_: PublicGenerator, m: int, low: Rows, high: Rows) -> Rows:
    ramp = _ramp(m, len(low))
    ramp[:, 1::2] = ramp[::-1, 1::2]
    return low + (high - low) * ramp


def _ties(rng: PublicGenerator, m: int, low: Rows, high: Rows) -> Rows:
    return low + (high - low) * rng.integers(0, 3, (m, len(low))) / 2


def _halves(_: PublicGenerator, m: int, low: Rows, high: Rows) -> Rows:
    return np.where((np.arange(m) < m // 2)[:, None], low, high)


def _crossed_halves(_: PublicGenerator, m: int, low: Rows, high: Rows) -> Rows:
    side = np.arange(m)[:, None] // np.where(np.arange(len(low)) % 2 == 0, 1, max(1, m // 2)) % 2
    return np.where(side == 0, low, high)


def _constant(_: PublicGenerator, m: int, low: Rows, high: Rows) -> Rows:
    return np.tile((low + high) / 2, (m, 1))


def _clustered(rng: PublicGenerator, m: int, low: Rows, high: Rows) -> Rows:
    middle = (low + high) / 2
    return middle + (high - low) * 1e-9 * rng.standard_normal((m, len(low)))


def _random(rng: PublicGenerator, m: int, low: Rows, high: Rows) -> Rows:
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


def falsify(
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
) -> Falsification:
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
        Neighbour pairs to look at, over all sizes and starts.
    seed : int
        Public: the same seed finds the same pair.

    Returns
    -------
    Falsification

    Examples
    --------
    The mean of m values in [0, 1] moves by 1/m; a claim of half of that is caught:

    >>> falsify(lambda rows: rows.mean(), lambda m: 0.5 / m, sizes=[5], columns=1).violated
    True
    >>> falsify(lambda rows: rows.mean(), lambda m: 1 / m, sizes=[5], columns=1).violated
    False
    """
    rng = generator_from_seed(seed)
    lows = np.broadcast_to(np.asarray(low, dtype=np.float64), (columns,))
    highs = np.broadcast_to(np.asarray(high, dtype=np.float64), (columns,))
    grid = None if levels is None else np.sort(np.asarray(levels, dtype=np.float64))
    best, total = Falsification(-1.0, 0, np.empty(0), np.empty(0)), 0
    share = math.ceil(evaluations / (len(sizes) * len(starts)))
    for m in sizes:
        scale = bound(m) if callable(bound) else bound
        for start in starts.values():
            rows = _to_levels(np.array(start(rng, m, lows, highs), dtype=np.float64), grid)
            climb = _Climb(rng, statistic, scale, norm, lows, highs, grid, rows)
            total += climb.run(share)
            if climb.ratio > best.ratio:
                best = Falsification(climb.ratio, 0, climb.rows, _replaced(climb.rows, climb.index, climb.new))
    return Falsification(best.ratio, total, best.rows, best.neighbour)


def _to_levels(rows: Rows, grid: Rows | None) -> Rows:
    if grid is None:
        return rows
    nearest: Rows = grid[np.abs(rows[..., None] - grid).argmin(axis=-1)]
    return nearest


def _replaced(rows: Rows, index: int, new: Rows) -> Rows:
    neighbour = rows.copy()
    neighbour[index] = new
    return neighbour


class _Climb:
    """One hill climb over (rows, index, new row): keep a proposal that is at least as good."""

    def __init__(
        self,
        rng: PublicGenerator,
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
