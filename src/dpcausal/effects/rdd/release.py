"""Noisy counts and sums of an outcome by bins of a running number: its jump at a cutoff, however often, free."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpcausal.codec import storable
from dpcausal.core import validate as public
from dpcausal.data.columns import exact_number
from dpcausal.effects.cells.corner_counts import functionals
from dpcausal.effects.cells.value import Value
from dpcausal.effects.rdd.estimate import Bin, estimate_discontinuity
from dpcausal.effects.rdd.honest import SideFit, sides
from dpcausal.effects.result import Interval
from dpcausal.errors import ParameterError, with_signature_errors
from dpcausal.plotting import axes, titled
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.release import Release
from dpcausal.releases.saved import Form
from dpcausal.result import Guarantee, Result, ci_text, flat, number_text, p_text, plain, signed_text

Reals = npt.NDArray[np.float64]

LARGEST = 1e300
BUNCHED = 0.05


@storable("Discontinuity")
@dataclass(frozen=True, eq=False)
class Discontinuity(Result):
    """By how much the mean outcome jumps at a cutoff of a running number, as released.

    Attributes
    ----------
    running, outcome : str
    treatment : str or None
        Named where the cutoff moves the treatment without deciding it.
    cutoff : float
        From it on: the right side, unless ``at_cutoff`` says that it counts left.
    estimand : str
        ``"jump"``, right less left, in the outcome's unit; ``"ratio"``, that over the jump of the share of treated: the
        effect on those whom the cutoff moves.
    estimate : float or None
    interval : tuple of two floats, or None
        It counts sampling, noise and curvature; of a ratio the Anderson–Rubin set, where that is one bounded interval.
    interval_reason : str
    coverage : float
    standard_error, noise_error, bias : float or None
        Of the jump in the outcome: sampling and noise, noise alone, and how far curvature can move it at most.
    bandwidth : float or None
    curvature : float or None
        The second derivative of the mean outcome that the interval allows for, on either side.
    curvature_given : bool
        Whether the caller said so; else it is that of polynomials of fourth degree through the noisy bins.
    share_moved : float or None
        Jump of the share of treated.
    anderson_rubin : tuple of intervals, or None
        Of a ratio: what the bins do not refute, right however little the treatment jumps.
    density : float or None
        p-value that records do not bunch at the cutoff.
    bins : tuple of Bin
    signal_to_noise : float
        Ratio of the counts behind the weaker side's line to their noise.
    notes : tuple of str
    n : int
        Rows, public.
    release : Release
        Asked again free: ``discontinuity(bandwidth=..., curvature=..., donut=...)``.
    guarantee : Guarantee
    at_cutoff : str
        The side on which records at the cutoff itself count.
    event : str or None
        The level of an outcome of two levels whose frequency is compared.
    arms : tuple of str
        The levels of untreated and treated, if a treatment was named.
    """

    running: str
    outcome: str
    treatment: str | None
    cutoff: float
    estimand: str
    estimate: float | None
    interval: Interval | None
    interval_reason: str
    coverage: float
    standard_error: float | None
    noise_error: float | None
    bias: float | None
    bandwidth: float | None
    curvature: float | None
    curvature_given: bool
    share_moved: float | None
    anderson_rubin: tuple[Interval, ...] | None
    density: float | None
    bins: tuple[Bin, ...]
    signal_to_noise: float
    notes: tuple[str, ...]
    n: int
    release: NoisyBins
    guarantee: Guarantee
    at_cutoff: str = "right"
    event: str | None = None
    arms: tuple[str, ...] = ()

    @property
    def measured(self) -> str:
        """What the means are of: the outcome, or how often it has the level that is counted."""
        return self.outcome if self.event is None else f"{self.outcome} = {self.event}"

    def headline(self) -> list[str]:
        what = f"{self.measured} at {self.running} = {exact_number(self.cutoff)}"
        arms = f" ({self.arms[1]} vs {self.arms[0]})" if self.arms else ""
        head = f"Jump of {what}" if self.treatment is None else f"Effect of {self.treatment}{arms} on {what}"
        lines = [f"{head}: {signed_text(self.estimate)} ({ci_text(self.interval, self.coverage)})"]
        if self.bandwidth is not None:
            near = number_text(self.bandwidth)
            lines.append(f"Records within {near} of the cutoff, {self.n:,} {self.guarantee.records} in all.")
        if self.share_moved is not None:
            lines.append(f"The share of treated jumps by {number_text(self.share_moved)}.")
        if self.density is not None:
            lines.append(f"Bunching at the cutoff: {p_text(self.density)} (small: the design is doubtful).")
        return lines

    def warnings(self) -> list[str]:
        reasons = [f"no confidence interval: {self.interval_reason}"] if self.interval is None else []
        bunched = self.density is not None and self.density < BUNCHED
        return [*reasons, *(["records bunch at the cutoff and may have been moved over it: do not rely on the jump"]
                            if bunched else []), *self.notes]  # fmt: skip

    def technical(self) -> list[str]:
        what = f"{self.measured} at {self.running} = {exact_number(self.cutoff)}"
        arms = f" ({self.arms[1]} against {self.arms[0]})" if self.arms else ""
        head = f"Jump of {what}" if self.treatment is None else f"Effect of {self.treatment}{arms} on {what}"
        lines = [f"{head}: no answer." if self.estimate is None else f"{head}: {self.estimate:+.4g}."]
        if self.interval is not None:
            lines.append(f"{self.coverage:.0%} interval: {self.interval[0]:.4g} to {self.interval[1]:.4g}.")
        else:
            lines.append(f"No interval: {self.interval_reason}.")
        if self.bandwidth is not None and self.curvature is not None:
            origin = "as told" if self.curvature_given else "that of polynomials through the noisy bins"
            lines.append(
                f"Records within {self.bandwidth:.4g} of the cutoff; a curvature of {self.curvature:.4g} is "
                f"allowed for, {origin}."
            )
        if self.share_moved is not None:
            lines.append(f"The share of treated jumps by {self.share_moved:+.3g}.")
        if self.density is not None:
            bunched = ": they do, and may have been moved over it" if self.density < BUNCHED else ""
            lines.append(f"p = {self.density:.3g} that records do not bunch at the cutoff{bunched}.")
        lines += [f"Note: {note}." for note in self.notes]
        return [*lines, f"{self.n} {self.guarantee.records} in all, signal to noise {self.signal_to_noise:.3g}."]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the released numbers as JSON's types; those are ``release.to_dict()``."""
        payload = {name: value for name, value in vars(self).items() if name != "release"}
        payload["bins"] = [vars(one) for one in payload["bins"]]
        return {name: plain(value) for name, value in payload.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Return the jump, with all scalars, and the bins."""
        (whole,) = super().rows()
        return [{"part": "cutoff"} | whole, *({"part": "bin"} | flat(vars(one)) for one in self.bins)]

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean outcome of the bins on both sides of the cutoff."""
        return draw_bins(self, ax)


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
            Of the interval, from 0.5 to 0.999.
        """
        if curvature_treated is not None and len(self.counts) < 2:
            raise ParameterError("curvature_treated is about a treatment, and none was released")
        reach = float(min(self.cutoff - self.lower[0], self.upper[-1] - self.cutoff))
        hole = public.number("donut", donut, 0.0, reach)
        width = None if bandwidth is None else public.number("bandwidth", bandwidth, 0.0, LARGEST)
        bent, moved = (
            None if given is None else public.number(name, given, 0.0, LARGEST)
            for name, given in (("curvature", curvature), ("curvature_treated", curvature_treated))
        )
        if width == 0:
            raise ParameterError("bandwidth must be above 0")
        within = public.number("coverage", coverage, 0.5, 0.999)
        estimate = estimate_discontinuity(self, width, (bent, moved), hole, within)
        return Discontinuity(**estimate, n=self.n, arms=self.arms, release=self, guarantee=self.guarantee)

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
            "value": self.value.payload(), "counts": self.counts.tolist(), "variance": self.variance,
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


def draw_bins(result: Discontinuity, ax: Any) -> Any:
    """Draw the mean outcome of each bin that noise does not hide, larger where there are more records."""
    ax = axes(ax, (6, 3.5))
    bins = [one for one in result.bins if one.mean is not None]
    most = max((one.count for one in bins), default=1.0)
    for one in bins:
        right = one.lower >= result.release.cutoff
        ax.plot([one.lower, one.upper], [one.mean, one.mean], color="0.7", linewidth=1)
        ax.plot([(one.lower + one.upper) / 2], [one.mean], marker="o", color="tab:blue" if right else "0.3",
                markersize=3 + 5 * (one.count / most) ** 0.5)  # fmt: skip
    ax.axvline(result.cutoff, color="0.6", linewidth=1, linestyle="--")
    ax.set_xlabel(result.running)
    ax.set_ylabel(f"mean {result.outcome}" if result.event is None else f"share of {result.measured}")
    return titled(ax, result.stamp())
