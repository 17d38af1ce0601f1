"""Noisy sums of persons' paths by cohort: differences in differences of any kind, however often, free."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpcausal.codec import storable
from dpcausal.core import validate as public
from dpcausal.effects.did.att import GroupTimeEffects, staggered
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity
from dpcausal.releases.release import Release
from dpcausal.releases.saved import Form
from dpcausal.statistics.moments import clip_rows, grid_bits, scaled, second_moments

Reals = npt.NDArray[np.float64]


@storable("NoisyPaths")
@dataclass(frozen=True, eq=False)
class NoisyPaths(Release):
    """Noisy counts, sums and squares by cohort of rows z; steps of a path are width · (its cohort's middle + spread z).

    Attributes
    ----------
    times : tuple of str
        The periods in order.
    cohorts : tuple of str
        Levels of the cohort's column.
    starts : tuple of int
        Of each cohort the place of its first treated period; −1 if it is never treated.
    width : float
        Of the outcome's range.
    middle, spread : float arrays, shapes (cohorts, d) and (d, d)
        Released: where steps of a cohort lie and in what shape; d is one less than the periods.
    counts, sums, squares : float arrays, shapes (cohorts,), (cohorts, d), (cohorts, d, d)
    lost : float
        Sum over all persons of what shortening took, as a share of the radius, at most 1 each.
    radius, deviation : float
        Rows z were shortened to the radius; σ of the noise of ``sums``.  0 without privacy.
    """

    kind: ClassVar[str] = "paths"

    times: tuple[str, ...]
    cohorts: tuple[str, ...]
    starts: tuple[int, ...]
    width: float
    middle: Reals
    spread: Reals
    counts: Reals
    sums: Reals
    squares: Reals
    lost: float
    radius: float
    deviation: float

    def did(self, *, control: str = "never", coverage: float = 0.95) -> GroupTimeEffects:
        """Return the differences in differences by cohort and period, the event study, the pre-trend test: free.

        Parameters
        ----------
        control : str
            ``"never"``, cohorts that are never treated, or ``"not-yet"``, these and all that are not treated yet.
        coverage : float
            Of the intervals, from .5 to .999.
        """
        chosen = public.check_choice("control", control, ("never", "not-yet"))
        return staggered(self, chosen == "never", public.number("coverage", coverage, 0.5, 0.999))

    @property
    def count_noise(self) -> float:
        """Deviation of the noise of a count."""
        return self.deviation * math.sqrt(2) / self.radius

    @property
    def lost_noise(self) -> float:
        """Deviation of the noise of ``lost``."""
        return 2 * self.deviation / self.radius

    def with_extra_noise(self, generator: PublicGenerator) -> Self:
        d, s = len(self.spread), self.deviation
        upper = np.triu(generator.normal(0, 1, self.squares.shape)) * s * self.radius
        squares = upper + np.triu(upper, 1).swapaxes(1, 2)
        squares[:, range(d), range(d)] *= math.sqrt(2)
        return replace(
            self, counts=self.counts + generator.normal(0, 1, self.counts.shape) * self.count_noise,
            sums=self.sums + generator.normal(0, 1, self.sums.shape) * s, squares=self.squares + squares,
            lost=self.lost + float(generator.normal(0, 1)) * self.lost_noise, deviation=math.sqrt(2) * s,
        )  # fmt: skip

    def numbers(self) -> dict[str, Any]:
        names = ("middle", "spread", "counts", "sums", "squares")
        return {name: getattr(self, name).tolist() for name in names} | {
            "times": list(self.times), "cohorts": list(self.cohorts), "starts": list(self.starts),
            "width": self.width, "lost": self.lost, "radius": self.radius,
            "deviation": self.deviation,
        }  # fmt: skip

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        times, cohorts = (form.words(name, different=True) for name in ("times", "cohorts"))
        starts = form.wholes("starts", -1, len(cohorts))
        g, d = len(cohorts), len(times) - 1
        shapes = {"middle": (g, d), "spread": (d, d), "counts": (g,), "sums": (g, d), "squares": (g, d, d)}
        arrays: dict[str, Any] = {name: form.array(name) for name in shapes}
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise form.refuse(name)
        if len(names) != 3 or max(starts) >= len(times) or form.size("radius") == 0:
            raise form.refuse("starts")
        return cls(names, n, times, cohorts, starts, form.size("width"), **arrays,
                   lost=float(form.array("lost").reshape(-1)[0]), radius=form.size("radius"),
                   deviation=form.size("deviation"))  # fmt: skip


Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def entries_of(columns: int) -> int:
    """Return how many numbers a cohort has: count, sums, squares."""
    return 1 + columns + columns * (columns + 1) // 2


def cohort_bits(n: int, radius: float) -> int:
    """Return the grid on which sums over n persons are exact."""
    return grid_bits(n, radius)


def factors(radius: float, bits: int) -> tuple[float, float]:
    """Return what a person counts, and what a square is multiplied by, in units of 2^(−bits)."""
    length = math.ldexp(radius, bits)
    return float(math.floor(length / math.sqrt(2))), 1 / (math.sqrt(2) * length)


def cohort_sums(
    cohorts: Integers, number: int, rows: Reals, kept: Mask, radius: float, bits: int, weights: Reals | None = None
) -> Reals:
    """Return count, sums and squares of each cohort and last what was lost, as in ``cohort-sums``: units of 2^(−bits).

    Parameters
    ----------
    cohorts : int64 array, shape (n,)
        Each person's.
    rows : float array, shape (n, d)
    kept : bool array, shape (n,)
        A person that is not kept has no sums.
    weights : float array, shape (n,), optional
        In [0, 1]: what part of a person each is.

    Notes
    -----
    *Guarantee*: ``cohort_sums_sensitivity(number, d, radius, bits)``.
    """
    inside = clip_rows(rows, radius, bits)
    squared = np.zeros(len(rows))
    for column in rows.T:
        squared += column * column
    lost = np.trunc(math.ldexp(radius, bits) / 2 * np.clip(np.sqrt(squared) / radius - 1, 0.0, 1.0))
    count, square = factors(radius, bits)
    found = []
    for cohort in range(number):
        here = kept & (cohorts == cohort)
        own, part = inside[here], None if weights is None else weights[here]
        sums = [_total(np.full(len(own), count), part), *(_total(column, part) for column in own.T)]
        found += [np.array(sums), square * (second_moments(own) if part is None else _squares(own, part))]
    return np.concatenate([*found, [_total(lost[kept], None if weights is None else weights[kept])]])


def _total(values: Reals, parts: Reals | None) -> float:
    """Return the sum of whole numbers, or of a part of each, made whole person by person."""
    return float(values.sum() if parts is None else np.rint(parts * values).sum())


def _squares(own: Reals, parts: Reals) -> Reals:
    """Return ``second_moments`` of parts of rows."""
    upper = [(i, i) for i in range(own.shape[1])] + [*zip(*np.triu_indices(own.shape[1], 1), strict=True)]
    return scaled(np.array([_total(own[:, i] * own[:, j], parts) for i, j in upper]), own.shape[1])


def cohort_sums_sensitivity(number: int, columns: int, radius: float, bits: int) -> Sensitivity:
    """Return the l2 sensitivity of ``cohort_sums``: √4.25 · 2^bits · radius; rounding is added.

    Examples
    --------
    >>> round(float(cohort_sums_sensitivity(3, 2, 1.0, 16).bound) / 2**16, 3)
    2.062
    """
    bound = math.sqrt(4.25) * math.ldexp(radius, bits) * (1 + 2.0**-50) + 2 * math.sqrt(number * entries_of(columns))
    return Sensitivity(bound, Norm.L2, Relation.REPLACE_ONE, "cohort-sums", symmetric=True)
