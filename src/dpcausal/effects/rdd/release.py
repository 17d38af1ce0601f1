"""Noisy counts and sums of an outcome by bins of a running number, and the jump at a cutoff that is read off them."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.codec import storable
from dpcausal.core import validate as public
from dpcausal.effects.cells.corner_counts import Value, functionals
from dpcausal.effects.rdd.bunching import bunching_pvalue
from dpcausal.effects.rdd.lines import (
    LEAST_RECORDS,
    LEAST_STRENGTH,
    Line,
    Score,
    SideFit,
    bend,
    factor,
    line_within,
    sides,
)
from dpcausal.effects.rdd.result import Bin, Discontinuity
from dpcausal.effects.result import Interval, accepted_slopes
from dpcausal.errors import Advice, ParameterError, Setting, with_signature_errors
from dpcausal.releases.release import Release
from dpcausal.releases.saved import Form

LARGEST = 1e300
Y, A = Score(), Score(0.0, 1.0)
WIDTHS = 30
"""Bandwidths that are tried, the squares of even steps up to the whole of a side."""
LEAST_BINS = 3.2
"""No interval by a curvature that was read off fewer bins on a side, counted as 1 / Σ p² of their shares p."""

FEW = "too much noise near the cutoff: use more records, a larger epsilon or bandwidth, or fewer bins"
FEW_EXACT = "fewer than 30 records of like weight lie near the cutoff on a side: a larger bandwidth would be enough"
GUESSED = Advice("curvature was estimated from noisy bins; the true one may be larger. Give ", Setting("curvature"),
                 " if it is known")  # fmt: skip
RARE = "too few near the cutoff have the rarer outcome for an interval to hold"
WEAK = "the cutoff moves the treatment too little: the Anderson–Rubin set is unbounded"


def _too_coarse(seen: float) -> Advice:
    return Advice(
        f"nearly all records lie in {seen:.2g} bins of a side, too few to see how the outcome bends: declare bounds "
        "nearer to where records lie, name more bins, or give ", Setting("curvature"),
    )  # fmt: skip


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
    dates : bool
        Whether the running number is a date, counted in days since 1970-01-01.
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
    dates: bool = False

    @with_signature_errors
    def discontinuity(
        self, *, bandwidth: float | None = None, curvature: float | None = None,
        curvature_treated: float | None = None, donut: float = 0.0, coverage: float = 0.95,
    ) -> Discontinuity:  # fmt: skip
        """Return the jump at the cutoff by another bandwidth, curvature or coverage: free, however often.

        Parameters
        ----------
        bandwidth, curvature, coverage
            As of ``dpcausal.discontinuity``; the default bandwidth is the one whose interval is the shortest.
        curvature_treated : float, optional
            As ``curvature``, of the share of treated.
        donut : float
            Records nearer to the cutoff than this do not count.
        """
        if curvature_treated is not None and len(self.counts) < 2:
            raise ParameterError("curvature_treated is about a treatment, and none was released")
        reach = float(min(self.cutoff - self.lower[0], self.upper[-1] - self.cutoff))
        hole = public.number("donut", donut, 0.0, reach)
        width, bent = check_lines(bandwidth, LARGEST, curvature)
        moved = None if curvature_treated is None else public.number("curvature_treated", curvature_treated, 0, LARGEST)
        within = public.number("coverage", coverage, 0.5, 0.999)
        return estimate_discontinuity(self, width, (bent, moved), hole, within)

    @property
    def bins(self) -> Reals:
        """N, T and Q of each arm and bin, the outcome in the unit of its range: shape (arms, bins, 3)."""
        return np.asarray(self.counts @ functionals(self.value.degree).T, dtype=np.float64)

    def sides(self, hole: float = 0.0) -> tuple[SideFit, SideFit]:
        """Return the bins left and right of the cutoff, those that reach into a hole around it left out."""
        return sides(self.lower, self.upper, self.bins, self.cutoff, hole, self.variance, self.value.degree)

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        lower, upper, counts = (form.array(name) for name in ("lower", "upper", "counts"))
        cutoff, value = float(form.array("cutoff").reshape(-1)[0]), Value.from_payload(form.part("value"), 1)
        rising = lower.ndim == 1 and lower.shape == upper.shape and bool((np.diff(lower) > 0).all())
        if not rising or (upper < lower).any() or (upper[:-1] > lower[1:]).any() or not lower[0] < cutoff <= upper[-1]:
            raise form.refuse("lower")
        if counts.shape != (len(names) - 1, len(lower), value.degree + 1) or len(names) not in (2, 3):
            raise form.refuse("counts")
        side = form.text("at_cutoff", ("right", "left")) if form.has("at_cutoff") else "right"
        arms = form.texts("arms") if form.has("arms") else ()
        if arms and (len(arms) != 2 or len(names) != 3):
            raise form.refuse("arms")
        dates = form.has("dates") and form.truth("dates")
        return cls(names, n, cutoff, lower, upper, value, counts, form.size("variance"), side, arms, dates)


def check_lines(bandwidth: Any, widest: float, curvature: Any) -> tuple[float | None, float | None]:
    width = None if bandwidth is None else public.number("bandwidth", bandwidth, 0.0, widest)
    if width == 0:
        raise ParameterError("bandwidth must be above 0", argument="bandwidth", rule="range", value=bandwidth)
    return width, None if curvature is None else public.number("curvature", curvature, 0.0, LARGEST)


@dataclass(frozen=True)
class _Cutoff:
    bandwidth: float
    left: Line
    right: Line
    bends: tuple[float, float]
    """Curvature of the outcome, in the unit of its range, and of the share of treated."""

    def jump(self, score: Score) -> tuple[float, float, float, float]:
        """Return a score's jump, its error, the part that noise has, and its worst bias."""
        (low, a, b), (high, c, d) = self.left.jump(score), self.right.jump(score)
        bent = abs(score.outcome) * self.bends[0] + abs(score.treated) * self.bends[1]
        return high - low, math.sqrt(a + b + c + d), math.sqrt(b + d), bent * (self.left.bias + self.right.bias)

    def half(self, score: Score, coverage: float) -> float:
        """Return half the length of the interval of a score's jump."""
        _, error, _, bias = self.jump(score)
        error = max(error, 1e-300)
        return factor(bias / error, coverage) * error if bias < 1e6 * error else bias

    @property
    def ratio(self) -> float:
        moved = self.jump(A)[0]
        return self.jump(Y)[0] / math.copysign(max(abs(moved), 1e-9), moved)

    @property
    def strength(self) -> float:
        return min(self.left.strength, self.right.strength)


def estimate_discontinuity(
    release: NoisyBins,
    bandwidth: float | None,
    curvatures: tuple[float | None, float | None],
    hole: float,
    coverage: float,
) -> Discontinuity:
    left, right = both = release.sides(hole)
    width, fuzzy = release.value.width, len(release.counts) == 2
    enough = all(len(side.near) >= 2 for side in both)
    common: dict[str, Any] = {
        "coverage": coverage, "curvature": curvatures[0], "curvature_given": curvatures[0] is not None,
        "density": bunching_pvalue(both) if hole == 0 and enough else None,
        "notes": (GUESSED,) if curvatures[0] is None else (),
    }  # fmt: skip
    y = max(bend(side, Y) for side in both) if curvatures[0] is None and enough else (curvatures[0] or 0.0) / width
    a = max(bend(side, A) for side in both) if curvatures[1] is None and enough and fuzzy else curvatures[1] or 0.0
    bends, cutoffs, few = (y, a), [], FEW if release.variance > 0 else FEW_EXACT
    for h in _tried(both, bandwidth) if enough else []:
        lines = line_within(left, h, spread=left.spread()), line_within(right, h, spread=right.spread())
        if lines[0] is not None and lines[1] is not None:
            if release.value.degree == 1 and min(map(_rarer, lines)) < LEAST_RECORDS:
                few = RARE
                continue
            cutoffs.append(_Cutoff(h, lines[0], lines[1], bends))
    if not cutoffs:
        return _answer(release, both, interval_reason=few, **common)
    # A ratio is least sure where the score of which it is the root is.
    wanted = Score(1.0, -float(np.clip(cutoffs[-1].ratio, -1.0, 1.0))) if fuzzy else Y
    best = min(cutoffs, key=lambda one: one.half(wanted, coverage))
    jump, (moved, *_) = best.jump(Y)[0], best.jump(A)
    _, *errors = best.jump(Score(1.0, -best.ratio) if fuzzy else Y)  # of a ratio by the delta method
    error, noise, bias = (one * width / (max(abs(moved), 1e-9) if fuzzy else 1.0) for one in errors)
    common |= {
        "standard_error": error, "noise_error": noise, "bias": bias, "share_moved": moved if fuzzy else None,
        "bandwidth": best.bandwidth, "curvature": best.bends[0] * width, "signal_to_noise": min(best.strength, 1e9),
    }  # fmt: skip
    seen = min(map(_bins_seen, both))
    if curvatures[0] is None and seen < LEAST_BINS:
        estimate = (best.ratio if fuzzy else jump) * width
        return _answer(release, both, estimate=estimate, interval_reason=_too_coarse(seen), **common)
    if not fuzzy:
        reach = best.half(Y, coverage)
        ends = (jump - reach) * width, (jump + reach) * width
        return _answer(release, both, estimate=jump * width, interval=ends, **common)
    intervals = tuple((low * width, high * width) for low, high in _invert_test(best, coverage))
    bounded = len(intervals) == 1 and all(map(math.isfinite, intervals[0]))
    return _answer(
        release, both, estimate=best.ratio * width, interval=intervals[0] if bounded else None,
        interval_reason="" if bounded else WEAK, anderson_rubin=intervals, **common,
    )  # fmt: skip


def _bins_seen(side: SideFit) -> float:
    counts = np.maximum(side.counts, 0.0)
    return float(counts.sum() ** 2 / max((counts**2).sum(), 1e-300)) if (side.far > side.near).all() else math.inf


def _rarer(line: Line | None) -> float:
    """Return how many of the records that a line relies on have the rarer of two outcomes, there at the cutoff."""
    share = 0.0 if line is None else line.jump(Y)[0]
    return 0.0 if line is None else line.records * max(min(share, 1 - share), 0.0)


def _tried(both: tuple[SideFit, SideFit], bandwidth: float | None) -> list[float]:
    if bandwidth is not None:
        return [bandwidth]
    reach = min(float(side.far.max()) for side in both)
    # Two places on each side at least.
    least = max(float(side.middle[1]) for side in both)
    return [h for h in (reach * (step / WIDTHS) ** 2 for step in range(1, WIDTHS + 1)) if h > least] or [2 * least]


def _invert_test(cutoff: _Cutoff, coverage: float) -> tuple[Interval, ...]:
    def excess(angle: float) -> float:
        score = Score(math.cos(angle), -math.sin(angle))
        return abs(cutoff.jump(score)[0]) - cutoff.half(score, coverage)

    return accepted_slopes(excess, 400)


def _answer(release: NoisyBins, both: tuple[SideFit, SideFit], **estimated: Any) -> Discontinuity:
    read, value = release.bins, release.value
    clear = max(LEAST_STRENGTH * math.sqrt(len(read) * float(both[0].noise[0, 0])), 1.0)
    bins = tuple(
        Bin(float(low), float(high), float(n), value.lower + value.width * float(t / n) if n > clear else None)
        for low, high, n, t in zip(
            release.lower, release.upper, read[..., 0].sum(axis=0), read[..., 1].sum(axis=0), strict=True
        )
    )  # fmt: skip
    running, outcome, *treatment = release.names
    return Discontinuity(
        running=running, outcome=outcome, treatment=treatment[0] if treatment else None,
        cutoff=release.cutoff if release.at_cutoff == "right" else math.nextafter(release.cutoff, -math.inf),
        at_cutoff=release.at_cutoff, event=value.event, estimand="ratio" if treatment else "jump", bins=bins,
        n=release.n, arms=release.arms, dates=release.dates, release=release, guarantee=release.guarantee, **estimated,
    )  # fmt: skip
