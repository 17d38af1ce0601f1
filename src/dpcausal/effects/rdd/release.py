"""Noisy counts and sums of an outcome by bins of a running number: its jump at a cutoff, however often, free."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpcausal.codec import storable
from dpcausal.core import validate as public
from dpcausal.effects.cells.corner_counts import functionals
from dpcausal.effects.cells.release import Value
from dpcausal.effects.rdd.estimate import Discontinuity, estimate_discontinuity
from dpcausal.effects.rdd.honest import SideFit, sides
from dpcausal.errors import ParameterError, with_signature_errors
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.release import Release
from dpcausal.releases.saved import Form

Reals = npt.NDArray[np.float64]

LARGEST = 1e300


@storable("NoisyBins")
@dataclass(frozen=True, eq=False)
class NoisyBins(Release):
    """Noisy counts, sums and sums of squares of an outcome by bins of a running number, and by arms if asked.

    Attributes
    ----------
    cutoff : float
        In the running number's unit; bins lie on one side of it.
    lower, upper : float arrays, shape (bins,)
        Ends of the bins, in order; equal where each holds one value.
    value : Value
        The outcome.
    counts : float array, shape (arms, bins, corners)
        In records; one arm where no treatment was named, else those untreated and those treated.
    variance : float
        Variance of an entry's noise.
    at_cutoff : str
        The side on which records at the cutoff itself count; if it is the left one, ``cutoff`` is the next number.
    arms : tuple of str
        The levels of untreated and treated, if a treatment was named.
    """

    kind: ClassVar[str] = "bins"

    cutoff: float
    lower: Reals
    upper: Reals
    value: Value
    counts: Reals
    variance: float
    at_cutoff: str = "right"
    arms: tuple[str, ...] = ()

    @with_signature_errors
    def discontinuity(
        self, *, bandwidth: float | None = None, curvature: float | None = None,
        curvature_treated: float | None = None, donut: float = 0.0, coverage: float = 0.95,
    ) -> Discontinuity:  # fmt: skip
        """Return the jump at the cutoff by another bandwidth, curvature or coverage: free, however often.

        Parameters
        ----------
        bandwidth : float, optional
            How far from the cutoff records count, in the running number's unit; by default the one whose interval is
            the shortest.
        curvature, curvature_treated : float, optional
            How large the second derivative of the mean outcome (of the share of treated) is at most on either side;
            by default that of polynomials of fourth degree through the noisy bins.
        donut : float
            Records nearer to the cutoff than this do not count.
        coverage : float
            Of the interval, from .5 to .999.
        """
        if curvature_treated is not None and len(self.counts) < 2:
            raise ParameterError("curvature_treated is about a treatment, and none was released")
        reach = float(min(self.cutoff - self.lower[0], self.upper[-1] - self.cutoff))
        hole = public.number("donut", donut, 0.0, reach)
        told = None if bandwidth is None else public.number("bandwidth", bandwidth, 0.0, LARGEST)
        bent, moved = (
            None if given is None else public.number(name, given, 0.0, LARGEST)
            for name, given in (("curvature", curvature), ("curvature_treated", curvature_treated))
        )
        if told == 0:
            raise ParameterError("bandwidth must be above 0")
        within = public.number("coverage", coverage, 0.5, 0.999)
        return estimate_discontinuity(self, told, (bent, moved), hole, within)

    @property
    def bins(self) -> Reals:
        """N, T and Q of each arm and bin, the outcome in the unit of its range: shape (arms, bins, 3)."""
        return np.asarray(self.counts @ functionals(self.value.degree).T, dtype=np.float64)

    def sides(self, hole: float = 0.0) -> tuple[SideFit, SideFit]:
        """Return the bins left and right of the cutoff, those that reach into a hole around it left out."""
        return sides(self.lower, self.upper, self.bins, self.cutoff, hole, self.variance, self.value.degree)

    def with_extra_noise(self, generator: PublicGenerator) -> Self:
        fresh = generator.laplace(0, float(np.sqrt(self.variance / 2)), self.counts.shape)
        return replace(self, counts=self.counts + fresh, variance=2 * self.variance)

    def numbers(self) -> dict[str, Any]:
        return {
            "cutoff": self.cutoff, "lower": self.lower.tolist(), "upper": self.upper.tolist(),
            "value": self.value.told(), "counts": self.counts.tolist(), "variance": self.variance,
            "at_cutoff": self.at_cutoff, "arms": list(self.arms),
        }  # fmt: skip

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        lower, upper, counts = (form.array(name) for name in ("lower", "upper", "counts"))
        cutoff, value = float(form.array("cutoff").reshape(-1)[0]), Value.from_payload(form.part("value"), 1)
        rising = lower.ndim == 1 and lower.shape == upper.shape and bool((np.diff(lower) > 0).all())
        if not rising or (upper < lower).any() or (upper[:-1] > lower[1:]).any() or not lower[0] < cutoff <= upper[-1]:
            raise form.refuse("lower")
        if counts.shape != (len(names) - 1, len(lower), value.degree + 1) or len(names) not in (2, 3):
            raise form.refuse("counts")
        side = form.word("at_cutoff", ("right", "left")) if form.has("at_cutoff") else "right"
        arms = form.words("arms") if form.has("arms") else ()
        if arms and (len(arms) != 2 or len(names) != 3):
            raise form.refuse("arms")
        return cls(names, n, cutoff, lower, upper, value, counts, form.size("variance"), side, arms)
