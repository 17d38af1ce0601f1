"""The result of ``discontinuity``: the jump at a cutoff, and the bins that it is read off."""

from dataclasses import dataclass
from typing import Any

from dpcausal.codec import storable
from dpcausal.data.columns import exact_number
from dpcausal.data.panels.dates import date_text
from dpcausal.effects.result import Interval
from dpcausal.plotting import axes, titled
from dpcausal.releases.release import Release
from dpcausal.result import Guarantee, Result, ci_text, flat_row, number_text, p_text, signed_text

BUNCHED = 0.05
BUNCHES = (
    "records bunch at the cutoff and may have been moved over it: do not rely on the jump. A rounded running number "
    "bunches too: declare its values as Levels"
)


@storable("Bin")
@dataclass(frozen=True)
class Bin:
    """A bin as released: its ends, records, and their mean outcome, none where noise hides it."""

    lower: float
    upper: float
    count: float
    mean: float | None


@storable("Discontinuity")
@dataclass(frozen=True, eq=False, kw_only=True)
class Discontinuity(Result):
    """By how much the mean outcome jumps at a cutoff of a running number, as released.

    Attributes
    ----------
    running, outcome, treatment : str
        The treatment is ``None`` where the cutoff decides it.
    cutoff, at_cutoff : float, str
        Records from the cutoff on are on the right side; those at the cutoff itself are on the side ``at_cutoff``.
    estimand : str
        ``"jump"``, right less left, in the outcome's unit; ``"ratio"``, that over the jump of the share of treated: the
        effect on those whom the cutoff moves.
    estimate, interval, interval_reason, coverage
        The interval counts sampling, noise and curvature; of a ratio it is the Anderson–Rubin set, where that is one
        bounded interval.
    standard_error, noise_error, bias : float or None
        Of the estimate: sampling and noise, noise alone, and how far curvature can move it at most; of a ratio by the
        delta method, while its interval inverts a test.
    bandwidth, curvature, curvature_given : float, float, bool
        The second derivative of the mean outcome that the interval allows for, on either side, and whether the caller
        stated it; else it is that of polynomials of fourth degree through the noisy bins.
    share_moved, anderson_rubin : float, tuple of intervals
        Of a ratio: the jump of the share of treated, and what the bins do not refute, however little that jumps.
    density : float or None
        p-value that records do not bunch at the cutoff.
    bins : tuple of Bin
    signal_to_noise : float
        Ratio of the counts behind the weaker side's line to their noise.
    notes, n, guarantee
    release : Release
        ``discontinuity(bandwidth=..., curvature=..., donut=...)`` re-uses it free.
    event, arms : str, tuple of str
        The level of an outcome whose frequency is compared; the levels of untreated and treated.
    dates : bool
        Whether the running number is a date; ``cutoff`` and the ends of bins are days since 1970-01-01.
    """

    running: str
    outcome: str
    treatment: str | None
    cutoff: float
    estimand: str
    estimate: float | None = None
    interval: Interval | None = None
    interval_reason: str = ""
    coverage: float
    standard_error: float | None = None
    noise_error: float | None = None
    bias: float | None = None
    bandwidth: float | None = None
    curvature: float | None
    curvature_given: bool
    share_moved: float | None = None
    anderson_rubin: tuple[Interval, ...] | None = None
    density: float | None
    bins: tuple[Bin, ...]
    signal_to_noise: float = 0.0
    notes: tuple[str, ...]
    n: int
    release: Release
    guarantee: Guarantee
    at_cutoff: str = "right"
    event: str | None = None
    arms: tuple[str, ...] = ()
    dates: bool = False

    @property
    def measured(self) -> str:
        """What the means are of: the outcome, or how often it has the level that is counted."""
        return self.outcome if self.event is None else f"{self.outcome} = {self.event}"

    def headline(self) -> list[str]:
        cutoff = date_text(self.cutoff) if self.dates else exact_number(self.cutoff)
        what = f"{self.measured} at {self.running} = {cutoff}"
        arms = f" ({self.arms[1]} vs {self.arms[0]})" if self.arms else ""
        head = f"Jump of {what}" if self.treatment is None else f"Effect of {self.treatment}{arms} on {what}"
        lines = [f"{head}: {signed_text(self.estimate, self.interval)} ({ci_text(self.interval, self.coverage)})"]
        if self.bandwidth is not None:
            near = f"{number_text(self.bandwidth)}{' days' if self.dates else ''}"
            lines.append(f"Records within {near} of the cutoff, those at it on the {self.at_cutoff} side; "
                         f"{self.n:,} {self.guarantee.records} in all.")  # fmt: skip
        if self.share_moved is not None:
            lines.append(f"The share of treated jumps by {number_text(self.share_moved)}.")
        if self.density is not None:
            lines.append(f"Bunching at the cutoff: {p_text(self.density)} (a small p-value makes the design "
                         "doubtful).")  # fmt: skip
        return lines

    def warnings(self) -> list[str]:
        reasons = [f"no confidence interval: {self.interval_reason}"] if self.interval is None else []
        bunched = self.density is not None and self.density < BUNCHED
        return [*reasons, *([BUNCHES] if bunched else []), *self.notes]

    def technical(self) -> list[str]:
        lines = []
        if self.standard_error is not None and self.noise_error is not None and self.bias is not None:
            lines.append(f"Standard error {number_text(self.standard_error)}, of which privacy noise "
                         f"{number_text(self.noise_error)}; largest bias {number_text(self.bias)}.")  # fmt: skip
        if self.curvature is not None:
            origin = "as given" if self.curvature_given else "that of polynomials through the noisy bins"
            lines.append(f"The interval allows for a curvature of {self.curvature:.4g}, {origin}.")
        return [*lines, f"Signal to noise {self.signal_to_noise:.3g}."]

    def rows(self) -> list[dict[str, Any]]:
        (whole,) = super().rows()
        return [{"part": "cutoff"} | whole, *({"part": "bin"} | flat_row(vars(one)) for one in self.bins)]

    def plot(self, ax: Any = None) -> Any:
        """Draw the mean outcome of each bin that noise does not hide, larger where there are more records."""
        ax = axes(ax, (6, 3.5))
        bins = [one for one in self.bins if one.mean is not None]
        most = max((one.count for one in bins), default=1.0)
        for one in bins:
            right = one.lower > self.cutoff or (one.lower == self.cutoff and self.at_cutoff == "right")
            ax.plot([one.lower, one.upper], [one.mean, one.mean], color="0.7", linewidth=1)
            ax.plot([(one.lower + one.upper) / 2], [one.mean], marker="o", color="tab:blue" if right else "0.3",
                    markersize=3 + 5 * (one.count / most) ** 0.5)  # fmt: skip
        ax.axvline(self.cutoff, color="0.6", linewidth=1, linestyle="--")
        ax.set_xlabel(self.running)
        if self.dates:
            marked = (self.bins[0].lower, self.cutoff, self.bins[-1].upper)
            ax.set_xticks(marked, [date_text(day) for day in marked])
        ax.set_ylabel(f"mean {self.outcome}" if self.event is None else f"share of {self.measured}")
        return titled(ax, self.stamp())
