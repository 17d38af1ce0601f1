"""The p-value of x and y given others, read off each kind of release: the noise is in it; ``None``: not testable."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dpcausal.dependence.wald import Wald, upper_tail, wald_test, wald_test_correlated
from dpcausal.discovery.pc import Ask, Terms, Verdict
from dpcausal.releases.contrasts import NoisyContrasts
from dpcausal.releases.moments import NoisyMoments
from dpcausal.releases.release import Release
from dpcausal.releases.table import NoisyTable
from dpcausal.releases.triples import NoisyTriples
from dpcausal.releases.whitened import NoisyWhitened

Columns = tuple[int, ...]

MOST_CELLS = 512
"""Cells of the joint table of one test of contrasts; a test with more is not made."""


def of_table(table: NoisyTable, x: int, y: int, given: Columns) -> float | None:
    """Return it by the Wald test on the table's margin."""
    return _tail(wald_test(table.strata(x, y, given), table.margin_variance(tuple(sorted((x, y, *given))))))


def of_contrasts(contrasts: NoisyContrasts, x: int, y: int, given: Columns) -> float | None:
    """Return it by the Wald test on the joint table that the contrasts make, its noise correlated."""
    order = (x, y, *given)
    columns = tuple(sorted(order))
    if math.prod(contrasts.sizes[i] for i in columns) > MOST_CELLS:
        return None
    found = contrasts.cells(columns)
    if found is None:
        return None
    axes = [columns.index(i) for i in order]
    shape = (contrasts.sizes[x], contrasts.sizes[y], -1)
    counts = found[0].transpose(axes).reshape(shape)
    if contrasts.exact:
        return _tail(wald_test(counts, 0.0))
    factor = found[1].transpose([*axes, len(axes)]).reshape(*shape[:2], counts.shape[2], found[1].shape[-1])
    return _tail(wald_test_correlated(counts, factor, float((factor**2).sum(axis=-1).mean())))


def of_moments(moments: NoisyMoments, x: int, y: int, given: Columns) -> float | None:
    """Return it by Fisher's z of the partial correlation, the noise in its variance."""
    from scipy.special import ndtr

    found = moments.partial_correlation(x, y, given)
    return None if found is None else float(2 * ndtr(-abs(math.atanh(found[0])) / math.sqrt(found[1])))


def of_whitened(whitened: NoisyWhitened, x: int, y: int, given: Columns) -> float | None:
    """Return it by what is left of the pair's block given the others."""
    found = whitened.residual(x, y, given)
    return None if found is None else upper_tail(found.statistic, found.freedom)


PVALUES: dict[type[Release], Callable[[Any, int, int, Columns], float | None]] = {
    NoisyTable: of_table, NoisyContrasts: of_contrasts, NoisyMoments: of_moments, NoisyWhitened: of_whitened,
    NoisyTriples: of_whitened,
}  # fmt: skip


def pvalue_of(release: Release, x: int, y: int, given: Columns) -> float | None:
    """Return the p-value of two columns, by their numbers, given others."""
    return PVALUES[type(release)](release, x, y, given)


def _tail(found: Wald | None) -> float | None:
    if found is None or not math.isfinite(found.statistic):
        return None
    return upper_tail(found.statistic, found.freedom)


def asker(release: Release, terms: Terms) -> Ask:
    """Return the pruner of released numbers; what cannot be tested by them is not tested."""
    place = {name: number for number, name in enumerate(release.names)}

    def ask(x: str, y: str, given: tuple[str, ...]) -> Verdict:
        pvalue = pvalue_of(release, place[x], place[y], tuple(place[z] for z in given))
        return Verdict(None) if pvalue is None else Verdict(pvalue > terms.level(len(given)), pvalue)

    return ask
