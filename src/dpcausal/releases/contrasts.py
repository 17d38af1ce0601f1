"""Noisy contrasts of sets of columns: the joint tables of those sets, without the rest of the table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.codec import storable
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.release import Release
from dpcausal.releases.saved import Form, cut_in, cut_written
from dpcausal.statistics.contrasts import contrast_basis

Columns = tuple[int, ...]


@storable("NoisyContrasts")
@dataclass(frozen=True, eq=False)
class NoisyContrasts(Release):
    """Noisy contrasts by set of column numbers, and the standard deviation of each set's noise; ``sizes``: levels. Of
    ``()`` it has the noisy number of rows with no missing value in the columns, in [1, n], or nothing where a missing
    value counts as another."""

    kind: ClassVar[str] = "contrasts"

    sizes: tuple[int, ...]
    values: dict[Columns, Reals]
    deviations: dict[Columns, float]
    cut: tuple[str, ...] = field(default=(), kw_only=True)
    """Columns of numbers that were cut into parts."""

    @property
    def is_exact(self) -> bool:
        return not any(self.deviations.values())

    def knows(self, columns: Columns) -> bool:
        return all(
            members in self.values for size in range(1, len(columns) + 1) for members in combinations(columns, size)
        )

    def cells(self, columns: Columns) -> tuple[Reals, Reals] | None:
        """Return the noisy joint table of some columns and the factor of its noise; ``None`` if one was not released.

        cells = (⊗ B_i) c,  B_i = [1/k_i, Q_i],  covariance = (⊗ B_i) diag(σ²) (⊗ B_i)ᵀ
        """
        if not self.knows(columns):
            return None
        counts, factors = self.cells_of([columns])
        return counts[0], factors[0]

    def cells_of(self, sets: Sequence[Columns]) -> tuple[Reals, Reals]:
        """Return the same of many sets of columns with the same numbers of levels, which were released."""
        sizes = tuple(self.sizes[i] for i in sets[0])
        deviations, coefficients = np.zeros((2, len(sets), *sizes))
        coefficients[(..., *(0,) * len(sizes))] = self.values[()][0] if () in self.values else self.n
        deviations[(..., *(0,) * len(sizes))] = self.deviations.get((), 0.0)
        for order in range(1, len(sizes) + 1):
            for places in combinations(range(len(sizes)), order):
                members = [tuple(columns[place] for place in places) for columns in sets]
                where = (slice(None), *(slice(1, None) if place in places else 0 for place in range(len(sizes))))
                shape = [sizes[place] - 1 for place in places]
                coefficients[where] = np.stack([self.values[one] for one in members]).reshape(-1, *shape)
                deviations[where] = np.reshape([self.deviations[one] for one in members], (-1, *(1,) * order))
        full = _full_basis(sizes)
        counts = (full @ coefficients.reshape(len(sets), -1, 1)).reshape(-1, *sizes)
        return counts, (full * deviations.reshape(len(sets), 1, -1)).reshape(*counts.shape, -1)

    def with_extra_noise(self, generator: PublicGenerator) -> Self:
        values = {
            members: value + generator.normal(0, 1, value.shape) * self.deviations[members]
            for members, value in self.values.items()
        }
        deviations = {members: deviation * math.sqrt(2) for members, deviation in self.deviations.items()}
        return replace(self, values=values, deviations=deviations)

    def numbers(self) -> dict[str, Any]:
        count = self.values.get(())
        return {
            "sizes": list(self.sizes),
            "count": None if count is None else {"value": float(count[0]), "deviation": self.deviations[()]},
            "contrasts": [
                {"columns": list(members), "deviation": self.deviations[members], "values": value.tolist()}
                for members, value in self.values.items()
                if members
            ],
            **cut_written(self.cut),
        }

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        sizes = form.wholes("sizes", 1, len(names))
        values, deviations = {}, {}
        for part in form.parts("contrasts"):
            members = tuple(part.array("columns", integral=True).tolist())
            if members in values or list(members) != sorted(set(members)) or not set(members) <= set(range(len(names))):
                raise part.refuse("columns")
            values[members], deviations[members] = part.array("values"), part.size("deviation")
            if values[members].shape != (math.prod(sizes[i] - 1 for i in members),):
                raise part.refuse("values")
        if form.has("count"):
            part = form.part("count")
            values[()], deviations[()] = np.array([part.size("value")]), part.size("deviation")
        return cls(names, n, sizes, values, deviations, cut=cut_in(form, names))


@lru_cache(maxsize=512)
def _full_basis(sizes: tuple[int, ...]) -> Reals:
    full = np.ones((1, 1))
    for size in sizes:
        full = np.kron(full, np.concatenate([np.full((size, 1), 1 / size), contrast_basis(size)], axis=1))
    return full
