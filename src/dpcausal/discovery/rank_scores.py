"""Kendall's tau within strata of discrete columns, for mechanisms that release decisions: exact, private, cached."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dpcausal.dependence.conditional_kendall import (
    GRID,
    conditional_kendall_steps_sensitivity,
    table_kendall_steps,
)
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity

Test = tuple[str, str, tuple[str, ...]]


def two_sided(alpha: float) -> float:
    """Return the normal quantile of a two-sided level, defined for every level above 0 and below 1."""
    return -NormalDist().inv_cdf(max(alpha / 2, 1e-300))


@dataclass
class RankScores:
    """Steps of T for each test, from the exact table of counts.

    Attributes
    ----------
    names : tuple of str
    counts : int64 array, one axis a column
        Private.
    """

    names: tuple[str, ...]
    counts: npt.NDArray[np.int64] = field(repr=False)
    _known: dict[Test, int] = field(default_factory=dict, repr=False)

    @property
    def binary(self) -> bool:
        """Whether every column has at most two levels: public."""
        return all(size <= 2 for size in self.counts.shape)

    @property
    def sensitivity(self) -> Sensitivity:
        """One public bound for every test: the largest."""
        return conditional_kendall_steps_sensitivity(self.binary)

    def strata(self, x: str, y: str, given: Sequence[str]) -> npt.NDArray[np.int64]:
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

    def query_l2(self, tests: Sequence[Test], label: str) -> Query:
        """Return the signed steps of some tests, hidden, with the l2 bound √(their number) · Δ."""
        steps = [table_kendall_steps(self.strata(*test)) for test in tests]
        bound = float(self.sensitivity.bound) * math.sqrt(len(tests)) * (1 + 1e-12)
        claim = Sensitivity(bound, Norm.L2, self.sensitivity.relation, "conditional-kendall-steps")
        return Query(np.array(steps, dtype=np.int64), claim, label)

    def threshold(self, n: int, alpha: float) -> int:
        """Return the public size of the steps up to which a pair counts as independent.

        z · √n · ½ for two levels, ⅔ otherwise: the standard deviation of n T under independence is at most that.
        """
        return max(1, math.ceil(two_sided(alpha) * math.sqrt(n) * (0.5 if self.binary else 2 / 3) * GRID))
