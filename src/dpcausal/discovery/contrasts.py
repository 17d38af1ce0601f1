"""Noisy contrasts, released order by order for the tests that are still needed: for many discrete columns.

A test of x and y given S needs the contrasts of all subsets of {x, y} ∪ S.  At each order those that are missing are
released together, with a fixed share of ρ, whatever their number: the cost is known before the data is read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.dependence.contingency import contingency
from dpcausal.dependence.contrasts import contrast_basis, contrast_of, contrasts_sensitivity
from dpcausal.discovery.pc import Test, Verdict
from dpcausal.discovery.wald import Wald, verdict, wald_test, wald_test_correlated
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ZCDP, NoPrivacy
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Query

Reals = npt.NDArray[np.float64]
Columns = tuple[int, ...]

SHARES = (35, 35, 20, 10)
"""Parts of ρ for the orders 0, 1, 2, 3; those of the orders that are run share the whole."""

MOST_CELLS = 512
"""Cells of the joint table of one test; a test with more is not made."""

PROOFS = ("contrasts", "gaussian")


@dataclass(frozen=True, eq=False)
class NoisyContrasts:
    """The released statistic of ``method="parities"``.

    Attributes
    ----------
    names : tuple of str
    sizes : tuple of int
        Levels of each column.
    values : dict from tuples of column numbers to float arrays
        Noisy contrasts of the sets that were released.
    deviations : dict
        The standard deviation of each set's noise.
    n : int
        Rows, public.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    values: dict[Columns, Reals]
    deviations: dict[Columns, float]
    n: int
    method: str = "parities"

    def cells(self, columns: Columns) -> tuple[Reals, Reals] | None:
        """Return the noisy joint table of some columns and the factor of its noise; ``None`` if one was not released.

        cells = (⊗ B_i) c,  B_i = [1/k_i, Q_i],  covariance = (⊗ B_i) diag(σ²) (⊗ B_i)ᵀ
        """
        sizes = tuple(self.sizes[i] for i in columns)
        deviations = np.zeros(sizes)
        coefficients = np.zeros(sizes)
        for order in range(len(columns) + 1):
            for places in combinations(range(len(columns)), order):
                if not places:
                    coefficients[(0,) * len(columns)] = self.n
                    continue
                members = tuple(columns[place] for place in places)
                if members not in self.values:
                    return None
                where = tuple(slice(1, None) if place in places else 0 for place in range(len(columns)))
                coefficients[where] = self.values[members].reshape([sizes[place] - 1 for place in places])
                deviations[where] = self.deviations[members]
        full = _full_basis(sizes)
        counts = (full @ coefficients.ravel()).reshape(sizes)
        return counts, (full * deviations.ravel()[None, :]).reshape(*sizes, -1)

    def asker(self, alpha: float, later: float | None = None) -> Any:
        """Return the pruner that tests at a level, given two or more columns at ``later``.

        What was not released is not tested.
        """
        place = {name: number for number, name in enumerate(self.names)}

        def ask(x: str, y: str, given: tuple[str, ...]) -> Verdict:
            level = alpha if later is None or len(given) < 2 else later
            return verdict(self._tested(place[x], place[y], tuple(place[z] for z in given)), level)

        return ask

    def _tested(self, x: int, y: int, given: Columns) -> Wald | None:
        """Return the test of two columns given others; ``None`` if something it needs was not released."""
        order = (x, y, *given)
        columns = tuple(sorted(order))
        if math.prod(self.sizes[i] for i in columns) > MOST_CELLS:
            return None
        found = self.cells(columns)
        if found is None:
            return None
        axes = [columns.index(i) for i in order]
        shape = (self.sizes[x], self.sizes[y], -1)
        counts = found[0].transpose(axes).reshape(shape)
        if not any(self.deviations.values()):
            return wald_test(counts, 0.0)
        factor = found[1].transpose([*axes, len(axes)]).reshape(*shape[:2], counts.shape[2], found[1].shape[-1])
        return wald_test_correlated(counts, factor, float((factor**2).sum(axis=-1).mean()))

    def redrawn(self, generator: PublicGenerator) -> NoisyContrasts:
        """Return the contrasts with fresh noise of the same law on top, its variance declared."""
        values = {
            members: value + generator.normal(0, 1, value.shape) * self.deviations[members]
            for members, value in self.values.items()
        }
        deviations = {members: deviation * math.sqrt(2) for members, deviation in self.deviations.items()}
        return NoisyContrasts(self.names, self.sizes, values, deviations, self.n)

    def to_dict(self) -> dict[str, Any]:
        """Return the released numbers as plain lists."""
        return {
            "method": self.method, "names": list(self.names), "sizes": list(self.sizes), "n": self.n,
            "contrasts": [
                {"columns": [self.names[i] for i in members], "deviation": self.deviations[members],
                 "values": self.values[members].tolist()}
                for members in sorted(self.values)
            ],
        }  # fmt: skip


@lru_cache(maxsize=512)
def _full_basis(sizes: tuple[int, ...]) -> Reals:
    full = np.ones((1, 1))
    for size in sizes:
        full = np.kron(full, np.concatenate([np.full((size, 1), 1 / size), contrast_basis(size)], axis=1))
    return full


def shares_of(max_order: int) -> tuple[tuple[int, int], ...]:
    """Return each order's share of ρ as a fraction (part, whole)."""
    parts = [SHARES[min(order, len(SHARES) - 1)] for order in range(max_order + 1)]
    return tuple((part, sum(parts)) for part in parts)


@dataclass
class Releaser:
    """The contrasts as they are released, order by order; ``codes`` are private and stay here."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: list[npt.NDArray[np.int64]] = field(repr=False)
    allotment: Allotment
    loss: ZCDP | NoPrivacy
    max_order: int
    noisy: NoisyContrasts = field(init=False)

    def __post_init__(self) -> None:
        self.noisy = NoisyContrasts(self.names, self.sizes, {}, {}, len(self.codes[0]))
        # Small codes: a joint place is then computed in a quarter of the time.
        self.codes = [column.astype(np.int32) for column in self.codes]

    def begin(self, order: int, tests: list[Test], neighbours: dict[str, tuple[str, ...]]) -> None:
        """Release what the tests of an order need and is not known yet, for the order's share of ρ."""
        batch = self._missing(tests)
        if not batch:
            return
        sensitivity = contrasts_sensitivity(self.sizes, batch, self.noisy.n)
        values = [contrast_of(self._counts(members)) for members in batch]
        part, whole = shares_of(self.max_order)[order]
        loss = self.loss if isinstance(self.loss, NoPrivacy) else ZCDP(self.loss.exact_rho * part / whole)
        query = Query(np.concatenate(values), sensitivity, f"contrasts of order {order}")
        released = gaussian(query, self.allotment, loss)
        deviation = 0.0 if isinstance(loss, NoPrivacy) else gaussian_scale(sensitivity.bound, loss)
        ends = np.cumsum([value.size for value in values])
        for members, value in zip(batch, np.split(released, ends[:-1]), strict=True):
            self.noisy.values[members] = value
            self.noisy.deviations[members] = deviation

    def _missing(self, tests: list[Test]) -> list[Columns]:
        place = {name: number for number, name in enumerate(self.names)}
        needed: set[Columns] = set()
        for x, y, given in tests:
            columns = tuple(sorted((place[x], place[y], *(place[z] for z in given))))
            if math.prod(self.sizes[i] for i in columns) > MOST_CELLS:
                continue
            needed |= {
                chosen for size in range(1, len(columns) + 1) for chosen in combinations(columns, size)
                if min(self.sizes[i] for i in chosen) > 1
            }  # fmt: skip
        return sorted(needed - set(self.noisy.values), key=lambda members: (len(members), members))

    def _counts(self, members: Columns) -> npt.NDArray[np.int64]:
        return contingency([self.codes[i] for i in members], [self.sizes[i] for i in members])
