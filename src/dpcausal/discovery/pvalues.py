"""The p-value of x and y given others, noise included, from each kind of release; ``None`` where not testable."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.arrays import Reals
from dpcausal.discovery.search.pc import Terms, Test, Verdict
from dpcausal.releases.contrasts import NoisyContrasts
from dpcausal.releases.counts import NoisyTable
from dpcausal.releases.level_moments import NoisyWhitened
from dpcausal.releases.moments import NoisyMoments
from dpcausal.releases.release import Release
from dpcausal.releases.third_moments import NoisyTriples
from dpcausal.statistics.wald import Wald, left_by_parts, upper_tail, usable_strata, wald_test, wald_tests_correlated

Columns = tuple[int, ...]

MOST_CELLS = 512
"""Cells of the joint table of one test of contrasts; a test with more is not made."""


TRUNCATION_SKEW = 1.35
"""How many times its variance a correlation of shortened rows is taken for: they are lengthened as if normal."""

MAGNIFIED = 4.0
"""How many times the variance of a pair's correlation must be given others, for the screen of a score to heed it."""


PASSED_ON = 0.05
"""Level at which both are linked to that column; a stricter level of the screen must not keep more edges."""

AT_ONCE = 1 << 22
"""Numbers in the noise factors of the tests that are made at once."""


def of_table(table: NoisyTable, x: int, y: int, given: Columns) -> float | None:
    counts, variance = table.strata(x, y, given), table.margin_variance(tuple(sorted((x, y, *given))))
    return _tail(wald_test(counts, variance), _left(table, given, counts, variance))


def of_contrasts_together(contrasts: NoisyContrasts, tests: Sequence[tuple[int, int, Columns]]) -> list[float | None]:
    pvalues: list[float | None] = [None] * len(tests)
    same_shape: dict[tuple[Columns, Columns], list[tuple[int, Columns, Columns]]] = {}
    for place, (x, y, given) in enumerate(tests):
        order = (x, y, *given)
        columns = tuple(sorted(order))
        sizes = tuple(contrasts.sizes[i] for i in columns)
        if math.prod(sizes) <= MOST_CELLS and contrasts.knows(columns):
            axes = tuple(columns.index(i) for i in order)
            same_shape.setdefault((sizes, (sizes[axes[0]], sizes[axes[1]])), []).append((place, columns, axes))
    for (sizes, ends), group in same_shape.items():
        cells = math.prod(sizes)
        step = max(1, AT_ONCE // cells**2)
        for part in (group[start : start + step] for start in range(0, len(group), step)):
            counts, factors = contrasts.cells_of([columns for _, columns, _ in part])
            # x and y first: where each cell of such an order stands in the order of the columns.
            where = np.stack([_cell_index(sizes, axes) for _, _, axes in part])
            counts = np.take_along_axis(counts.reshape(len(part), cells), where, 1).reshape(len(part), *ends, -1)
            variances = np.zeros(len(part))
            if contrasts.is_exact:
                outcomes = [wald_test(one, 0.0) for one in counts]
            else:
                factors = np.take_along_axis(factors.reshape(len(part), cells, -1), where[:, :, None], 1)
                variances = (factors**2).sum(axis=-1).mean(axis=1)
                outcomes = wald_tests_correlated(counts, factors.reshape(*counts.shape, -1), variances)
            for (place, _, _), outcome, one, variance in zip(part, outcomes, counts, variances, strict=True):
                pvalues[place] = _tail(outcome, _left(contrasts, tests[place][2], one, variance))
    return pvalues


@lru_cache(maxsize=512)
def _cell_index(sizes: Columns, axes: Columns) -> npt.NDArray[np.intp]:
    return np.arange(math.prod(sizes)).reshape(sizes).transpose(axes).ravel()


def of_moments(moments: NoisyMoments, x: int, y: int, given: Columns, screens: bool = False) -> float | None:
    """Return it by Fisher's z of the partial correlation, the noise in its variance, and skew unless it ``screens``."""
    correlation = moments.partial_correlation(x, y, given)
    if correlation is None:
        return None
    skew = 1.0 if screens or moments.squared is None else TRUNCATION_SKEW
    return _of_correlation(correlation[0], correlation[1] * skew)


def hidden_in_noise(moments: NoisyMoments, x: int, y: int, given: Columns, level: float) -> bool:
    """Return whether a pair is not linked given another column, which makes the variance of its correlation large. Both
    must be linked to that column given the other.  A score takes noise as alike in all directions; of columns that go
    closely together it is not."""
    alone, partial = moments.partial_correlation(x, y, ()), moments.partial_correlation(x, y, given)
    if alone is None or partial is None or partial[1] < MAGNIFIED * alone[1] or _of_correlation(*partial) <= level:
        return False
    through = (of_moments(moments, x, given[0], (y,), True), of_moments(moments, given[0], y, (x,), True))
    return all(pvalue is not None and pvalue <= max(level, PASSED_ON) for pvalue in through)


def _of_correlation(correlation: float, variance: float) -> float:
    from scipy.special import ndtr

    return float(2 * ndtr(-abs(math.atanh(correlation)) / math.sqrt(variance)))


def of_whitened(whitened: NoisyWhitened, x: int, y: int, given: Columns) -> float | None:
    residual = whitened.residual(x, y, given)
    return None if residual is None else residual.pvalue


PVALUES: dict[type[Release], Callable[[Any, int, int, Columns], float | None]] = {
    NoisyTable: of_table, NoisyMoments: of_moments, NoisyWhitened: of_whitened, NoisyTriples: of_whitened,
    NoisyContrasts: lambda contrasts, *test: of_contrasts_together(contrasts, [test])[0],
}  # fmt: skip


def pvalue_of(release: Release, x: int, y: int, given: Columns) -> float | None:
    return PVALUES[type(release)](release, x, y, given)


def _left(release: NoisyTable | NoisyContrasts, given: Columns, counts: Reals, variance: float) -> float:
    cut = [axis for axis, z in enumerate(given) if release.names[z] in release.cut]
    if not cut:
        return 0.0
    sizes = [release.sizes[z] for z in given]
    usable = usable_strata(counts, variance).reshape(sizes)
    return left_by_parts(counts.reshape(*counts.shape[:2], *sizes), cut, usable, variance)


def _tail(test: Wald | None, left: float) -> float | None:
    if test is None or not math.isfinite(test.statistic):
        return None
    return upper_tail(test.statistic / (1 + left / test.freedom), test.freedom)


class GraphTest:
    def __init__(self, release: Release, terms: Terms) -> None:
        self._release, self._terms = release, terms
        self._place = {name: number for number, name in enumerate(release.names)}
        self._known: dict[Test, float | None] = {}

    def __call__(self, x: str, y: str, given: tuple[str, ...]) -> Verdict:
        test = (x, y, given)
        level = self._terms.level(len(given))
        if isinstance(self._release, NoisyMoments) and self._terms.search == "score":
            if given:
                return Verdict(hidden_in_noise(self._release, *self._numbers(test), level))
            pvalue = of_moments(self._release, *self._numbers(test), screens=True)
        else:
            pvalue = self._known[test] if test in self._known else pvalue_of(self._release, *self._numbers(test))
        return Verdict(None) if pvalue is None else Verdict(pvalue > level, pvalue)

    def _numbers(self, test: Test) -> tuple[int, int, Columns]:
        return self._place[test[0]], self._place[test[1]], tuple(self._place[z] for z in test[2])

    def together(self, tests: Sequence[Test]) -> None:
        """Make many tests at once where that is quicker: they are asked for next."""
        if isinstance(self._release, NoisyContrasts):
            numbers = [self._numbers(test) for test in tests]
            self._known = dict(zip(tests, of_contrasts_together(self._release, numbers), strict=True))
