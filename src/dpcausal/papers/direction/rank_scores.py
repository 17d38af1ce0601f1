"""Kendall's tau within strata as the score of a test: with a proof, exact, private and cached; and as printed.

As printed the score is the upper normal tail of the conditional tau of Definition 6 of Wang, Pang & Song (2020), a
number of [0, ½], with the sensitivity Φ(6/√n) − ½ that is claimed for it; strata of at most two records, and constant
ones, are skipped.  Why it does not hold: ``docs/appendix/errata-discovery.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dpcausal.discovery.search.pc import Test
from dpcausal.papers.independence.priv_kendall import kendall_weight
from dpcausal.papers.statistics.rank import (
    GRID,
    conditional_kendall_steps_sensitivity,
    stratum_kendall_numerators,
    table_kendall_steps,
)
from dpcausal.privacy.sensitivity import Query, Sensitivity

Counts = npt.NDArray[np.int64]

STEPS = "conditional-kendall-steps"
"""The claim of the scores with a proof."""


def two_valued(sizes: Sequence[int]) -> bool:
    """Return whether every column has at most two levels."""
    return all(size <= 2 for size in sizes)


def steps_sensitivity(sizes: Sequence[int]) -> Sensitivity:
    """Return the bound of the scores of columns of that many levels."""
    return conditional_kendall_steps_sensitivity(two_valued(sizes))


def two_sided(alpha: float) -> float:
    """Return the normal quantile of a two-sided level, defined for every level above 0 and below 1."""
    return -NormalDist().inv_cdf(max(alpha / 2, 1e-300))


@dataclass
class RankScores:
    """Steps of T for each test, from the exact table of counts, one axis a column; all private."""

    names: tuple[str, ...]
    counts: Counts = field(repr=False)
    _known: dict[Test, int] = field(default_factory=dict, repr=False)

    @property
    def sensitivity(self) -> Sensitivity:
        """One public bound for every test: the largest."""
        return steps_sensitivity(self.counts.shape)

    def strata(self, x: str, y: str, given: Sequence[str]) -> Counts:
        """Return the exact counts, shape (levels of x, levels of y, strata)."""
        axes = [self.names.index(name) for name in (x, y, *given)]
        others = tuple(axis for axis in range(self.counts.ndim) if axis not in axes)
        left = sorted(axes)
        values = self.counts.sum(axis=others).transpose([left.index(axis) for axis in axes])
        return np.asarray(values.reshape(values.shape[0], values.shape[1], -1))

    def independence(self, test: Test) -> int:
        """Return −|steps|: 0 where nothing speaks against independence, lower the more does."""
        known = self._known.get(test)
        if known is None:
            known = -abs(table_kendall_steps(self.strata(*test)))
            self._known[test] = known
        return known

    def query(self, tests: Sequence[Test], label: str) -> Query:
        """Return the scores of some tests, hidden, each within one bound."""
        return Query(np.array([self.independence(test) for test in tests], dtype=np.int64), self.sensitivity, label)

    def threshold(self, n: int, alpha: float) -> int:
        """Return the public size of the steps up to which a pair counts as independent.

        z · √n · ½ for two levels, ⅔ otherwise: the standard deviation of n T under independence is at most that.
        """
        deviation = 0.5 if two_valued(self.counts.shape) else 2 / 3
        return max(1, math.ceil(two_sided(alpha) * math.sqrt(n) * deviation * GRID))


def published_tau(counts: Counts) -> float:
    """Return the conditional tau of Definition 6 from strata, as evaluated: small and constant strata are skipped."""
    sizes = counts.sum(axis=(0, 1))
    numerators = stratum_kendall_numerators(counts)
    varied = ((counts.sum(axis=1) > 0).sum(axis=0) > 1) & ((counts.sum(axis=0) > 0).sum(axis=0) > 1)
    usable = (sizes > 2) & (varied if counts.shape[2] > 1 else True)
    m = sizes[usable].astype(np.float64)
    if not m.size:
        return 0.0
    weights = kendall_weight(m)
    tau = numerators[usable] / (m * (m - 1) / 2)
    return float((weights * tau).sum() / np.sqrt(weights.sum()))


def published_score(counts: Counts) -> float:
    """Return the upper normal tail of |tau|: ½ where nothing speaks against independence."""
    return 0.5 * math.erfc(abs(published_tau(counts)) / math.sqrt(2))


def claimed_sensitivity(n: int) -> float:
    """Return Φ(6/√n) − ½."""
    return 0.5 * math.erf(6 / math.sqrt(n) / math.sqrt(2))
