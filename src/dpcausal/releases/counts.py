"""One noisy table of counts: all tests, scores and re-runs are post-processing of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.codec import storable
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.release import Release, estimate_release, memoized
from dpcausal.releases.saved import Form, cut_in, cut_written, cuts_in, cuts_text, cuts_written

Law = Literal["geometric", "discrete-gaussian", "exact"]


@storable("NoisyTable")
@dataclass(frozen=True, eq=False)
class NoisyTable(Release):
    """Noisy counts of all declared cells.

    Attributes
    ----------
    counts : int64 array, one axis a column, in the order of the names
    variance : float
        Variance of one cell's noise; 0 for exact counts.
    law : str
        ``"geometric"``, ``"discrete-gaussian"`` or ``"exact"``.
    """

    kind: ClassVar[str] = "table"

    counts: Integers
    variance: float
    law: Law
    cut: tuple[str, ...] = field(default=(), kw_only=True)
    """Columns of numbers that were cut into parts."""
    cuts: Mapping[str, tuple[float, ...]] = field(default_factory=dict, kw_only=True)
    """Where those were cut whose cuts were learnt from the data."""
    equal_parts: tuple[str, ...] = field(default=(), kw_only=True)
    """Those that were cut into parts of one width, as nobody said where."""

    @property
    def is_exact(self) -> bool:
        return self.law == "exact" or self.variance == 0

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(size) for size in self.counts.shape)

    def margin(self, columns: Sequence[int]) -> Reals:
        return self._margin(tuple(columns))

    @memoized
    def _margin(self, columns: tuple[int, ...]) -> Reals:
        others = tuple(axis for axis in range(self.counts.ndim) if axis not in columns)
        return np.asarray(self.counts.sum(axis=others), dtype=np.float64)

    def margin_variance(self, columns: tuple[int, ...]) -> float:
        return self.variance * self.counts.size / math.prod(self.sizes[i] for i in columns)

    def strata(self, x: int, y: int, given: tuple[int, ...]) -> Reals:
        """Return noisy counts of shape (levels of x, levels of y, strata)."""
        columns = tuple(sorted((x, y, *given)))
        values = self.margin(columns)
        place = {column: axis for axis, column in enumerate(columns)}
        order = (place[x], place[y], *(place[z] for z in given))
        return values.transpose(order).reshape(self.sizes[x], self.sizes[y], -1)

    def effect(self, *, treatment: str, outcome: str, adjust: Sequence[str], **options: Any) -> Any:
        """Return the effect of one column on another of two levels, others adjusted for: free, however often. As
        ``NoisyCells.effect``; levels go by their codes, 0 first."""
        return estimate_release(self, treatment=treatment, outcome=outcome, adjust=adjust, **options)

    def with_extra_noise(self, generator: PublicGenerator) -> Self:
        if self.is_exact:
            return self
        if self.law == "geometric":
            success = geometric_success(self.variance)
            fresh = generator.geometric(success, self.counts.shape) - generator.geometric(success, self.counts.shape)
        else:
            fresh = np.rint(generator.normal(0, math.sqrt(self.variance), self.counts.shape))
        return replace(self, counts=self.counts + fresh.astype(np.int64), variance=2 * self.variance)

    def numbers(self) -> dict[str, Any]:
        return {
            "counts": self.counts.tolist(), "variance": self.variance, "law": self.law, **cuts_written(self.cuts),
            **cut_written(self.cut), **cut_written(self.equal_parts, "equal_parts"),
        }  # fmt: skip

    def number_notes(self) -> list[str]:
        return cuts_text(self.cuts)

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        counts = form.array("counts", integral=True)
        if counts.ndim != len(names):
            raise form.refuse("counts")
        law: Any = form.text("law", ("geometric", "discrete-gaussian", "exact"))
        return cls(names, n, counts, form.size("variance"), law, cuts=cuts_in(form, names), cut=cut_in(form, names),
                   equal_parts=cut_in(form, names, "equal_parts"))  # fmt: skip


def geometric_success(variance: float) -> float:
    """Return 1 − a for two-sided geometric noise of that variance: the root of 2(1 − s) = v s²."""
    return (math.sqrt(1 + 2 * variance) - 1) / variance if variance > 0 else 1.0
