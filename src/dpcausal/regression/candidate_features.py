"""What the mean of a block's response may be made of: features F of kernels F F', each of trace n.

Of few numbers (``first_terms``): in each its slope, as it is (z) and as normal scores (u), and a wide curve; levels.
Beside those (``more_terms``): narrower curves, cells of all levels, curves that differ by level, and of two numbers
their product and *curves along z_i + z_j and z_i − z_j* (waves, the larger of the two); of all of them a surface.  And
(``cut_terms``) *jumps*, where cuts of one column, or across a line of several, split best what is left of the
responses, and the crossing of two cuts.

A curve is a Gaussian kernel on landmarks from the least value to the largest, evenly apart in normal scores.  Where z
is nearly normal its curves are in z and not in u: ranks add noise of their own, which x and y would share.
"""

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Self

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.regression.smoother import Given, standardised

Landmarks = tuple[float, int]
Pair = tuple[int, int]
WIDE: Landmarks = (1.0, 9)
NARROW: tuple[Landmarks, ...] = ((0.4, 20), (0.15, 50))
ALONG: tuple[Landmarks, ...] = ((1.0, 9), (0.4, 20))
BY_LEVEL: tuple[Landmarks, ...] = ((1.0, 5), *NARROW)
"""Widths of curves, in standard deviations, and their landmarks: less than a width apart over six deviations."""
SURFACE_WIDTHS, SURFACE_LANDMARKS = (1.0, 0.5), 60
"""Widths of a surface, in √d standard deviations, and rows that are its landmarks."""
PAIR_WIDTH = 0.7
"""Width of the surface over two numbers."""
NEARLY_NORMAL = 0.98
"""Correlation of a column with its normal scores beyond which its curves are in the column itself."""
MOST_CURVED, MOST_PAIRED, MOST_CROSSED = 12, 15, 30
"""Most numbers with wide curves among the first terms, most pairs of numbers, and most numbers for a crossing."""
MOST_LEVELS, MOST_CLOSELY = 12, 4
"""Most levels of a column, or values of a number, by which wide curves may differ, and by which narrow ones may."""
LEAST_SIDE = 5
"""Rows on either side of a jump."""
EIGHTHS, CUT_MOVES = np.arange(1, 8) / 8, 2
"""Where a crossing's cuts are tried first, and how often each is moved after that."""
TURNS = tuple(math.pi * k / 8 for k in (1, 2, 3, 5, 6, 7))
NEARER = (math.pi / 8, math.pi / 16, math.pi / 32)
"""Angles between two columns at which a cut along a line is tried, and by which the best is turned to each column."""
FLAT = 1e-6
"""Directions of the landmarks' kernel with less than this share of the largest eigenvalue are left out."""


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """A block's given columns: numbers standardised, their normal scores, what curves are in, and codes of levels.
    ``few`` has codes of the numbers that take few values: a yes or no that was declared as a number, a score."""

    z: Reals
    scores: Reals
    curved: Reals
    levels: Integers
    few: list[Integers]

    @classmethod
    def of(cls, given: Given) -> Self:
        z, scores = standardised(given.numbers), standardised(normal_scores(given.numbers))
        codes = [np.unique(column, return_inverse=True)[1].ravel() for column in given.numbers.T]
        few = [of_one for of_one in codes if 0 < of_one.max(initial=0) < MOST_LEVELS]
        curved = np.where((z * scores).mean(axis=0) > NEARLY_NORMAL, z, scores)
        return cls(z, scores, curved, given.levels, few)

    @property
    def count(self) -> int:
        return int(self.z.shape[1])


def first_terms(columns: Columns) -> list[Reals]:
    terms = [np.column_stack([z, u]) for z, u in zip(columns.z.T, columns.scores.T, strict=True)]
    terms += [indicators(codes) for codes in columns.levels.T]
    if columns.count <= MOST_CURVED:
        terms += _wide_curves(columns)
    return [with_unit_trace(term) for term in terms]


def more_terms(columns: Columns, U: Reals) -> list[Reals]:
    """Return what may be beside them; of many numbers the pairs that go best with the responses."""
    terms = _wide_curves(columns) if columns.count > MOST_CURVED else []
    terms += [curve_features(column, landmarks) for column in columns.curved.T for landmarks in NARROW]
    terms += _by_level(columns)
    if columns.count > 1:
        terms += _of_pairs(columns, U)
        terms += [_landmark_features(columns.curved, width * columns.count**0.5) for width in SURFACE_WIDTHS]
    return [with_unit_trace(term) for term in terms]


def cut_terms(columns: Columns, left: Reals, *, along_pairs: bool = False) -> list[Reals]:
    """Return jumps, on lines of two columns if asked, and a crossing: those that go best with what is left."""
    terms, z = list[Reals](), columns.z
    if columns.count:
        pairs = _best_pairs(columns, left) if along_pairs else []
        first = _best_cut(z, _residual_of_columns(z, left), pairs)
        second = _best_cut(z, _residual_of_columns(np.column_stack([z, first]), left), pairs)
        terms.append(standardised(np.column_stack([first, second])))
    if 1 < columns.count <= MOST_CROSSED:
        terms.append(_best_product_of_cuts(z, _residual_of_columns(z, left))[:, None])
    return [with_unit_trace(term) for term in terms]


def lines_of(columns: Columns) -> int:
    return columns.count + len(TURNS) * min(math.comb(columns.count, 2), MOST_PAIRED)


def with_unit_trace(term: Reals) -> Reals:
    """Return features whose kernel has trace n, centred; 0 if they are constant."""
    centred = term - term.mean(axis=0)
    size = float((centred**2).sum()) / max(len(term), 1)
    return centred / size**0.5 if size > 1e-12 else np.zeros_like(centred)


def curve_features(column: Reals, landmarks: Landmarks) -> Reals:
    from scipy.special import ndtr, ndtri

    width, count = landmarks
    farthest = float(ndtri(1 - 0.5 / len(column)))
    marks = np.unique(np.quantile(column, ndtr(np.linspace(-farthest, farthest, count))))
    differences, between = np.subtract.outer(column, marks), np.subtract.outer(marks, marks)
    return _kernel_features((differences / width) ** 2, (between / width) ** 2)


def indicators(codes: Integers) -> Reals:
    return np.asarray(codes[:, None] == np.unique(codes), dtype=np.float64)


def normal_scores(numbers: Reals) -> Reals:
    """Return normal scores of the columns, ties in the middle."""
    from scipy.special import ndtri

    scores = np.empty_like(numbers)
    for place, column in enumerate(numbers.T):
        _, codes, counts = np.unique(column, return_inverse=True, return_counts=True)
        middles = np.cumsum(counts) - counts / 2
        scores[:, place] = ndtri(middles[codes] / len(column))
    return scores


def _kernel_features(squared: Reals, between: Reals) -> Reals:
    values, vectors = np.linalg.eigh(np.exp(-0.5 * between))
    large = values > FLAT * values[-1]
    return np.asarray(np.exp(-0.5 * squared) @ (vectors[:, large] / np.sqrt(values[large])))


def _wide_curves(columns: Columns) -> list[Reals]:
    return [curve_features(column, WIDE) for column in columns.curved.T]


def _by_level(columns: Columns) -> list[Reals]:
    terms, groupings = [indicators(codes) for codes in columns.few], [*columns.levels.T, *columns.few]
    if columns.levels.shape[1] > 1:
        cells = np.unique(columns.levels, axis=0, return_inverse=True)[1].ravel()
        terms.append(indicators(cells))
        groupings.append(cells)
    for codes in groupings:
        sides = indicators(codes)
        if sides.shape[1] > MOST_LEVELS:
            continue
        for z, curved in zip(columns.z.T, columns.curved.T, strict=True):
            if np.ptp(z[codes == codes[0]]) > 0:
                for landmarks in BY_LEVEL if sides.shape[1] <= MOST_CLOSELY else BY_LEVEL[:1]:
                    shapes = np.column_stack([z, curve_features(curved, landmarks)])
                    terms.append((sides[:, :, None] * shapes[:, None, :]).reshape(len(z), -1))
    return terms


def _best_pairs(columns: Columns, U: Reals) -> list[Pair]:
    z, pairs = columns.z, list(combinations(range(columns.count), 2))
    if len(pairs) <= MOST_PAIRED:
        return pairs
    R, sides = _residual_of_columns(z, U), np.where(z > np.median(z, axis=0), 1.0, -1.0)
    gains = sum(((rows * column[:, None]).T @ rows) ** 2 for column in R.T for rows in (columns.curved, sides))
    return sorted(pairs, key=lambda pair: -float(gains[pair]))[:MOST_PAIRED]


def _of_pairs(columns: Columns, U: Reals) -> list[Reals]:
    z, curved = columns.z, columns.curved
    terms = []
    for i, j in _best_pairs(columns, U):
        terms.append(np.column_stack([z[:, i] * z[:, j], curved[:, i] * curved[:, j]]))
        for along in (curved[:, i] + curved[:, j], curved[:, i] - curved[:, j]):
            terms += [curve_features(standardised(along[:, None])[:, 0], landmarks) for landmarks in ALONG]
        terms.append(_landmark_features(curved[:, [i, j]], PAIR_WIDTH))
    return terms


def _landmark_features(columns: Reals, width: float) -> Reals:
    marks = columns[np.linspace(0, len(columns) - 1, min(len(columns), SURFACE_LANDMARKS)).astype(np.int64)]

    def squared_distances(rows: Reals) -> Reals:
        squares = np.add.outer((rows**2).sum(axis=1), (marks**2).sum(axis=1)) - 2 * rows @ marks.T
        return np.asarray(np.maximum(squares, 0.0) / width**2)

    return _kernel_features(squared_distances(columns), squared_distances(marks))


def _residual_of_columns(columns: Reals, U: Reals) -> Reals:
    slopes, _ = np.linalg.qr(np.column_stack([np.ones(len(U)), columns]))
    return standardised(U - slopes @ (slopes.T @ U))


def _column_cut(column: Reals, R: Reals) -> tuple[float, Reals]:
    """Return how well the best cut of a column splits the responses, and on which side of it, ±1, each row lies."""
    n = len(column)
    below = np.arange(1, n)
    order = np.argsort(column, kind="stable")
    before = np.cumsum(R[order], axis=0)
    gains = ((before[:-1] - before[-1:] * (below / n)[:, None]) ** 2).sum(axis=1) / (below * (n - below))
    gains[(np.diff(column[order]) <= 0) | (np.minimum(below, n - below) < LEAST_SIDE)] = 0.0
    place = int(np.argmax(gains)) if n > 1 else 0
    if n < 2 or gains[place] <= 0:
        return 0.0, np.zeros(n)
    return float(gains[place]), np.where(column > column[order[place]], 1.0, -1.0)


def _best_cut(z: Reals, R: Reals, pairs: list[Pair]) -> Reals:
    """Return the sides of the best cut of a column, or across a line: the best of the pairs', turned to each column."""
    best, sides = max((_column_cut(column, R) for column in z.T), key=_cut_gain)
    cuts = [(*_column_cut(math.cos(turn) * z[:, i] + math.sin(turn) * z[:, j], R), (i, j), turn)
            for i, j in pairs for turn in TURNS]  # fmt: skip
    if not cuts:
        return sides
    gain, across, pair, turn = max(cuts, key=_cut_gain)
    if gain <= best:
        return sides
    line, along = np.zeros(z.shape[1]), np.eye(z.shape[1])
    line[list(pair)] = math.cos(turn), math.sin(turn)
    for step in NEARER:
        for column in along:
            for angle in (step, -step):
                turned = math.cos(angle) * line + math.sin(angle) * column
                more, moved = _column_cut(z @ turned, R)
                if more > gain:
                    gain, across, line = more, moved, turned
    return across


def _best_product_of_cuts(z: Reals, R: Reals) -> Reals:
    """Return the product of the sides of two columns' cuts that goes best with the responses. The best of all cuts at
    eighths, then each of the two is moved to where it is best beside the other."""
    sides = np.hstack([np.where(column[:, None] > np.quantile(column, EIGHTHS), 1.0, -1.0) for column in z.T])
    gains = sum(((sides * column[:, None]).T @ sides) ** 2 for column in R.T)
    columns = np.repeat(np.arange(z.shape[1]), EIGHTHS.size)
    best = int(np.argmax(np.where(np.equal.outer(columns, columns), 0.0, gains)))
    one, other = best // columns.size, best % columns.size
    left, right = sides[:, one], sides[:, other]
    for _ in range(CUT_MOVES):
        _, left = _column_cut(z[:, columns[one]], R * right[:, None])
        _, right = _column_cut(z[:, columns[other]], R * left[:, None])
    return np.asarray(left * right)


def _cut_gain(cut: tuple[Any, ...]) -> float:
    return float(cut[0])
