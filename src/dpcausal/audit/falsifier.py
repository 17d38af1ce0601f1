"""A search for neighbouring data sets that move a statistic by more than its claimed sensitivity.

A data set is an array of shape (m, columns), a record is a row, and neighbours differ in one row.  The search
climbs over (data set, index, new row) from structured starts.  It works on data that it makes up: nothing private
is read.  A bound that survives is not proved; one that falls is wrong.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed
from dpcausal.privacy.sensitivity import CONDITIONAL, Norm, conditional_change

Rows = npt.NDArray[np.float64]
Statistic = Callable[[Rows], Any]
Start = Callable[[PublicGenerator, int, Rows, Rows], Rows]

ROUNDING = 1e-12
"""Relative float slack above a bound that is not called a violation."""

REDRAWS = 8
"""Times that a proposal is drawn again if it is no pair of neighbours or was looked at before in the same climb."""

_EXACT = 2**53
"""Up to here integers are floats exactly."""


@dataclass(frozen=True, eq=False)
class Falsification:
    """What a neighbour search found.

    Attributes
    ----------
    ratio : float
        Worst change over bound: above 1 the claimed sensitivity is wrong.  ∞ where an answer is not finite, or the
        two have different shapes: no noise covers that.
    evaluations : int
        Neighbour pairs looked at, different ones within each climb unless the domain has too few.
    rows, neighbour : float arrays, shape (m, columns)
        The worst pair, built by the search; read-only.
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
        if self.violated:
            return f"VIOLATED: neighbours with {len(self.rows)} rows move it by {self.ratio:.6g} times the bound."
        return f"Not violated: {self.evaluations} neighbour pairs reach {self.ratio:.6g} of the bound."


def distance(a: Any, b: Any, norm: Norm) -> float | int | Fraction:
    """Return the change between two answers; ∞ if one is not finite or the shapes differ. Exact for integers of any
    size and for fractions, apart from the root of an l2 norm."""
    if type(a) is int and type(b) is int:
        return abs(a - b)
    one, other = np.asarray(a), np.asarray(b)
    if one.shape != other.shape:
        return math.inf
    kinds = {one.dtype.kind, other.dtype.kind}
    if not kinds <= set("biufO"):
        raise ParameterError("a statistic must return a number, or an array of numbers")
    if norm in CONDITIONAL:
        return conditional_change(one, other, norm)
    if "O" in kinds or ("f" not in kinds and max(_largest(one), _largest(other)) >= _EXACT):
        pairs = zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)
        changes = [_gap(*pair) for pair in pairs]
        if math.inf in changes:
            return math.inf
        if norm is Norm.L2 and len(changes) > 1:
            return math.sqrt(sum(change**2 for change in changes))
        return sum(changes, Fraction(0)) if norm is Norm.L1 else max(changes, default=Fraction(0))
    with np.errstate(all="ignore"):
        change = np.abs(one.astype(np.float64) - other.astype(np.float64)).ravel()
        if norm is Norm.L1:
            total = float(change.sum())
        else:
            total = float(np.sqrt((change**2).sum()) if norm is Norm.L2 else change.max(initial=0))
    return total if math.isfinite(total) else math.inf


def _largest(integers: npt.NDArray[Any]) -> int:
    return max(abs(int(integers.max())), abs(int(integers.min()))) if integers.size else 0


def _gap(a: Any, b: Any) -> Fraction | float:
    exact = []
    for value in (a, b):
        if isinstance(value, (float, np.floating)):
            if not math.isfinite(value):
                return math.inf
            exact.append(Fraction(float(value)))
        elif isinstance(value, (int, Fraction, np.integer)):
            # A Fraction of numpy's integers would compute in 64 bits and wrap.
            exact.append(Fraction(value if isinstance(value, Fraction) else int(value)))
        else:
            raise ParameterError("a statistic must return a number, or an array of numbers")
    return abs(exact[0] - exact[1])


# Starts: shapes that are extreme for ranks, kernels, quantiles or tables.  Columns lie in [low, high].


def _ramp(m: int, columns: int) -> Rows:
    return np.repeat(((np.arange(m) + 1.0) / (m + 1))[:, None], columns, axis=1)


def _reversed(_: PublicGenerator, m: int, low: Rows, high: Rows) -> Rows:
    ramp = _ramp(m, len(low))
    ramp[:, 1::2] = ramp[::-1, 1::2]
    return low + (high - low) * ramp


def _crossed_halves(_: PublicGenerator, m: int, low: Rows, high: Rows) -> Rows:
    side = np.arange(m)[:, None] // np.where(np.arange(len(low)) % 2 == 0, 1, max(1, m // 2)) % 2
    return np.where(side == 0, low, high)


STARTS: dict[str, Start] = {
    "identical": lambda _, m, low, high: low + (high - low) * _ramp(m, len(low)),
    "reversed": _reversed,
    "ties": lambda rng, m, low, high: low + (high - low) * rng.integers(0, 3, (m, len(low))) / 2,
    "halves": lambda _, m, low, high: np.where((np.arange(m) < m // 2)[:, None], low, high),
    "crossed halves": _crossed_halves,
    "constant": lambda _, m, low, high: np.tile((low + high) / 2, (m, 1)),
    "clustered": lambda rng, m, low, high: (low + high) / 2 + (high - low) * 1e-9 * rng.standard_normal((m, len(low))),
    "random": lambda rng, m, low, high: rng.uniform(low, high, (m, len(low))),
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
    starts: Mapping[str, Start] = STARTS,
    evaluations: int = 2_800,
    seed: int = 0,
) -> Falsification:
    """Return the worst ratio |statistic(D) − statistic(D′)| / bound(m) that hill climbing finds.

    Parameters
    ----------
    statistic : callable
        Maps rows (m, columns) to an int, a float, a Fraction or an array; it gets a copy.  Integers of any size are
        compared exactly.
    bound : number or callable of m
        What the change is divided by; positive and finite.
    sizes : sequence of int
        The numbers of records, at least one; the evaluations are shared equally among sizes and starts.
    columns : int
        Numbers in a record, at least 1.
    low, high : float or one per column
        The public range of each column.
    levels : sequence of float, optional
        If given, values are rounded to the nearest of these.
    norm : Norm
        The norm of the change.
    starts : mapping from name to function of (generator, m, low, high)
        Where the climbs begin; clipped into the range.
    evaluations : int
        Neighbour pairs to look at, over all sizes and starts, at least 1.
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
    for name, number in (("columns", columns), ("evaluations", evaluations), *(("sizes", m) for m in sizes)):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
            raise ParameterError(f"{name} must hold whole numbers of at least 1")
    if not len(sizes) or not len(starts) or not isinstance(norm, Norm):
        raise ParameterError("the search needs at least one size, one start and a Norm")
    rng = generator_from_seed(seed)
    lows, highs = (np.broadcast_to(np.asarray(end, dtype=np.float64), (columns,)) for end in (low, high))
    grid = None if levels is None else np.sort(np.asarray(levels, dtype=np.float64))
    if not (np.isfinite(highs - lows).all() and (lows <= highs).all()):
        raise ParameterError("the range needs finite low <= high")
    if grid is not None and not (grid.ndim == 1 and len(grid) and np.isfinite(grid).all()):
        raise ParameterError("levels must be a list of finite numbers")
    best, total = Falsification(-1.0, 0, np.empty(0), np.empty(0)), 0
    share = math.ceil(evaluations / (len(sizes) * len(starts)))
    for m in sizes:
        scale = _checked_bound(bound(m) if callable(bound) else bound)
        for start in starts.values():
            rows = np.clip(np.array(start(rng, m, lows, highs), dtype=np.float64), lows, highs)
            climb = _Climb(rng, statistic, scale, norm, lows, highs, grid, _to_levels(rows, grid))
            total += climb.run(share)
            if climb.ratio > best.ratio:
                best = Falsification(climb.ratio, 0, climb.rows, _replaced(climb.rows, climb.index, climb.new))
    for rows in (best.rows, best.neighbour):
        rows.setflags(write=False)
    return Falsification(best.ratio, total, best.rows, best.neighbour)


def _checked_bound(bound: Any) -> Fraction:
    try:
        exact = Fraction(int(bound)) if isinstance(bound, np.integer) else Fraction(bound)
    except (TypeError, ValueError, OverflowError):
        exact = Fraction(0)
    if exact <= 0:
        raise ParameterError("a bound must be a positive and finite number")
    return exact


def _to_levels(rows: Rows, grid: Rows | None) -> Rows:
    if grid is None:
        return rows
    return np.asarray(grid[np.abs(rows[..., None] - grid).argmin(axis=-1)])


def _replaced(rows: Rows, index: int, new: Rows) -> Rows:
    neighbour = rows.copy()
    neighbour[index] = new
    return neighbour


@dataclass
class _Climb:
    """One hill climb over (rows, index, new row): keep a proposal that is at least as good."""

    rng: PublicGenerator
    statistic: Statistic
    bound: Fraction
    norm: Norm
    low: Rows
    high: Rows
    grid: Rows | None
    rows: Rows

    def __post_init__(self) -> None:
        self.index, self.new, self.answer = 0, self.rows[0].copy(), self.statistic(self.rows.copy())
        self.ratio, self.seen = -1.0, set[int]()

    def run(self, evaluations: int) -> int:
        used = 0
        for index, new in itertools.islice(self._probes(), evaluations // 2):
            if self._is_new(self.rows, index, new):
                self._consider(self.rows, index, new)
                used += 1
        for _ in range(evaluations - used):
            proposal = self._proposal()
            for _ in range(REDRAWS):
                if self._is_new(*proposal):
                    break
                proposal = self._proposal()
            self._consider(*proposal)
        return evaluations

    def _is_new(self, rows: Rows, index: int, new: Rows) -> bool:
        key = hash((rows.tobytes(), index, new.tobytes()))
        if key in self.seen or bool((rows[index] == new).all()):
            return False
        self.seen.add(key)
        return True

    def _probes(self) -> Iterator[tuple[int, Rows]]:
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
        new = row.copy()
        columns = range(len(row)) if self.rng.random() < 0.5 else [int(self.rng.integers(len(row)))]
        for c in columns:
            near, ends = self.rows[int(self.rng.integers(len(self.rows))), c], (float(self.low[c]), float(self.high[c]))
            end, new_value, kind = ends[self.rng.integers(2)], self.rng.uniform(*ends), int(self.rng.integers(5))
            new[c] = np.nextafter(near, end) if kind == 3 else (*ends, near, near, new_value)[kind]
        return _to_levels(new, self.grid)

    def _consider(self, rows: Rows, index: int, new: Rows) -> None:
        # A statistic that sorts in place must not change the pair under search.
        answer = self.answer if rows is self.rows else self.statistic(rows.copy())
        ratio = _ratio(distance(answer, self.statistic(_replaced(rows, index, new)), self.norm), self.bound)
        if ratio >= self.ratio:
            self.rows, self.index, self.new, self.answer, self.ratio = rows, index, new, answer, ratio


def _ratio(change: float | int | Fraction, bound: Fraction) -> float:
    if change == 0:
        return 0.0
    try:
        return float(Fraction(change) / bound)
    except OverflowError:  # of an infinite change, or of a quotient that no float holds
        return math.inf
