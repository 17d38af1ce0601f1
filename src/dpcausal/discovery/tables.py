"""One noisy table of counts: all tests, scores and re-runs are post-processing of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.discovery.pc import Verdict
from dpcausal.discovery.wald import Wald, verdict, wald_test
from dpcausal.privacy.noise import PublicGenerator

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """The released statistic of ``method="table"``.

    Attributes
    ----------
    names : tuple of str
        Columns, in the order of the axes.
    counts : int64 array, one axis a column
        Noisy counts of all declared cells.
    variance : float
        Variance of one cell's noise; 0 for exact counts.
    law : str
        ``"geometric"``, ``"discrete-gaussian"`` or ``"exact"``.
    n : int
        Rows, public.
    """

    names: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    variance: float
    law: str
    n: int
    method: str = "table"
    _margins: dict[tuple[int, ...], Reals] = field(default_factory=dict, repr=False)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Levels of each column."""
        return tuple(int(size) for size in self.counts.shape)

    def margin(self, columns: tuple[int, ...]) -> Reals:
        """Return the noisy counts of some columns, given in increasing order, as floats."""
        known = self._margins.get(columns)
        if known is None:
            others = tuple(axis for axis in range(self.counts.ndim) if axis not in columns)
            known = self.counts.sum(axis=others).astype(np.float64)
            self._margins[columns] = known
        return known

    def margin_variance(self, columns: tuple[int, ...]) -> float:
        """Return the variance of a cell of that margin."""
        return self.variance * self.counts.size / math.prod(self.sizes[i] for i in columns)

    def strata(self, x: int, y: int, given: tuple[int, ...]) -> Reals:
        """Return noisy counts of shape (levels of x, levels of y, strata)."""
        columns = tuple(sorted((x, y, *given)))
        values = self.margin(columns)
        place = {column: axis for axis, column in enumerate(columns)}
        order = (place[x], place[y], *(place[z] for z in given))
        return values.transpose(order).reshape(self.sizes[x], self.sizes[y], -1)

    def asker(self, alpha: float, later: float | None = None) -> Any:
        """Return the pruner that tests at a level; ``later`` is the level given two or more columns."""
        place = {name: number for number, name in enumerate(self.names)}

        def ask(x: str, y: str, given: tuple[str, ...]) -> Verdict:
            level = alpha if later is None or len(given) < 2 else later
            return verdict(self._tested(place[x], place[y], tuple(place[z] for z in given)), level)

        return ask

    def _tested(self, x: int, y: int, given: tuple[int, ...]) -> Wald | None:
        return wald_test(self.strata(x, y, given), self.margin_variance(tuple(sorted((x, y, *given)))))

    def redrawn(self, generator: PublicGenerator) -> NoisyTable:
        """Return the table with fresh noise of the same law on top, its variance declared: a parametric bootstrap."""
        if self.law == "exact" or self.variance == 0:
            return self
        if self.law == "geometric":
            success = geometric_success(self.variance)
            fresh = generator.geometric(success, self.counts.shape) - generator.geometric(success, self.counts.shape)
        else:
            fresh = np.rint(generator.normal(0, math.sqrt(self.variance), self.counts.shape))
        counts = self.counts + fresh.astype(np.int64)
        return NoisyTable(self.names, counts, 2 * self.variance, self.law, self.n)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_margins"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in {**state, "_margins": {}}.items():
            object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """Return the released numbers as plain lists."""
        return {
            "method": self.method, "names": list(self.names), "counts": self.counts.tolist(),
            "variance": self.variance, "law": self.law, "n": self.n,
        }  # fmt: skip


def geometric_variance(scale: float) -> float:
    """Return the variance of two-sided geometric noise, 2a/(1 − a)², a = exp(−1/scale)."""
    a = math.exp(-1 / scale)
    return 2 * a / (math.expm1(-1 / scale)) ** 2


def geometric_success(variance: float) -> float:
    """Return 1 − a for two-sided geometric noise of that variance: the root of 2(1 − s) = v s²."""
    return (math.sqrt(1 + 2 * variance) - 1) / variance if variance > 0 else 1.0


