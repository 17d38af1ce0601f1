"""The result of a synthetic control: counterfactual, effect, interval and privacy cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.codec import storable
from dpcausal.core.validate import check_choice
from dpcausal.data.panels.periods import Label, period_label, unit_name
from dpcausal.errors import ParameterError, with_signature_errors
from dpcausal.plotting import axes, titled
from dpcausal.result import Guarantee, Result, ci_text, number_text, p_text, signed_text

FEW = 8
"""Most labels on the time axis."""


@storable("SyntheticControl")
@dataclass(frozen=True, eq=False)
class SyntheticControl(Result):
    """What a target's outcome would have been, and the effect of its treatment, as released.

    Attributes
    ----------
    target : object
        The treated unit.  Its own series is public and NOT protected.
    times : tuple
        The treated periods.
    counterfactual : float array, shape (m,)
        Released: the outcome without the treatment, within the bounds.
    effect : float array, shape (m,)
        Observed less counterfactual.
    att : float
        Mean effect over the treated periods.
    interval : tuple of two floats, or None
        Of the mean effect, at ``coverage``; it makes room for the noise.  ``None``: see ``interval_reason``.
    pvalue : float or None
        Of the placebo test that nothing happened, by the exact distribution of the noisy count; at least what the
        target's own past says where it is unlike its donors.  ``None``: see ``pvalue_reason``.
    donor_free_forecast : float array, shape (m,)
        What the target's own past says, by ``donor_free_rule``.  Public, and free.
    donor_free_rule : str
        ``"last value"``, ``"mean"`` or ``"trend"``, whichever did best on the target's own past.
    observed : float array, shape (m,)
        The target after its start.  Public.
    past : float array, shape (T0,)
        The target before; NaN where it has no value.  Such periods are left out, for the donors too.  Public.
    past_times : tuple
        The periods before the start, those without a value included.
    mixing : float
        Released: how much of the counterfactual the donors' control is; the rest is the donor-free forecast.
    fit : float or None
        Released: root mean square of what the control's level and factors leave of the target's past, for each period
        that they leave free; ``None`` where the method says nothing of the past.
    own_fit : float or None
        Public: that of the donor-free rule, forecasting the second half of the past; ``None`` where it is not known.
    path_noise : float or None
        Standard deviation of the noise in each period of the counterfactual; ``None`` where it is not known.
    donor_weight : float or None
        Released: ΣK of matched donors, the number behind the estimate.
    loadings : float array of shape (rank, T), or None
        Released, of the factor model: how all periods go with the factors of the past that stand out from a unit's own
        noise.
    level, covariance : float arrays of shape (T,) and (T, T), or None
        Released, of the factor model: mean and covariance of donors' changes since the last value before the (first)
        start; the covariance up to a scale, without what the noise hides.  ``in_time`` needs no more.
    interval_reason, pvalue_reason : str
        Why there is none; empty if there is.
    coverage : float
    method : str
    settings : dict
        The method's options as used, by name.
    constants : dict
        The public constants that were used.
    n : int
        Donors, public.
    guarantee : Guarantee
    """

    target: Any
    times: tuple[Label, ...]
    counterfactual: Reals
    effect: Reals
    att: float
    interval: tuple[float, float] | None
    pvalue: float | None
    donor_free_forecast: Reals
    donor_free_rule: str
    observed: Reals
    past: Reals
    past_times: tuple[Label, ...]
    mixing: float
    fit: float | None
    own_fit: float | None
    path_noise: float | None
    donor_weight: float | None
    loadings: Reals | None
    level: Reals | None
    covariance: Reals | None
    interval_reason: str
    pvalue_reason: str
    coverage: float
    method: str
    settings: dict[str, Any]
    constants: dict[str, float]
    n: int
    guarantee: Guarantee

    def brief(self) -> str:
        return f"{self.target}: {signed_text(self.att, self.interval)} ({ci_text(self.interval, self.coverage)})"

    def headline(self) -> list[str]:
        first, last = self.times[0], self.times[-1]
        ends = ci_text(self.interval, self.coverage)
        placebo = "no placebo test" if self.pvalue is None else f"placebo {p_text(self.pvalue)}"
        own, size = float(np.mean(self.observed - self.donor_free_forecast)), signed_text(self.att, self.interval)
        lines = [
            f"Effect on {self.target}, {first} to {last}: {size} per period ({ends}); {placebo}.",
            f"  observed less synthetic control   {signed_text(self.att)}",
            f"  observed less own forecast        {signed_text(own)}",
        ]
        if self.fit is not None:
            other = "unknown" if self.own_fit is None else number_text(self.own_fit)
            lines.append(f"Pre-treatment fit (RMSE): synthetic control {number_text(self.fit)}, own forecast {other}.")
        lines.append(f"{self.n:,} control units, method {self.method}. The control units make {self.mixing:.0%} of the "
                     "synthetic series, the own forecast the rest.")  # fmt: skip
        if own * self.att < 0:
            lines.append("The two comparisons differ in sign: the control units share a change that the own forecast "
                         "cannot see.")  # fmt: skip
        lacking = [str(time) for time, value in zip(self.past_times, self.past.tolist(), strict=True) if value != value]
        if lacking:
            lines.append(
                f"The target has no value in {len(lacking)} of {len(self.past)} periods before the start: "
                f"{', '.join(lacking)}. These missing periods are left out, for the donors too."
            )
        return [*lines, f"{self.target} itself is public and NOT protected."]

    def warnings(self) -> list[str]:
        return [f"no {name}: {reason}" for name, value, reason in (
            ("confidence interval", self.interval, self.interval_reason),
            ("placebo test", self.pvalue, self.pvalue_reason)) if value is None]  # fmt: skip

    def technical(self) -> list[str]:
        lines = [f"The own forecast is the rule {self.donor_free_rule!r} of the target's past."]
        rests = "" if self.donor_weight is None else f", which count as {self.donor_weight:.3g} like the target"
        noise = "" if self.path_noise is None else f"; noise in each period {self.path_noise:.3g}"
        lines.append(f"Method {self.method}, {self.n} donors{rests}{noise}.")
        return lines

    def rows(self) -> list[dict[str, Any]]:
        """Return the periods, before the start with nulls for what was released."""
        arrays = self.counterfactual, self.effect, self.donor_free_forecast
        later = [*[(None, None, None)] * len(self.past), *zip(*(array.tolist() for array in arrays), strict=True)]
        observed = [None if value != value else value for value in (*self.past.tolist(), *self.observed.tolist())]
        return [
            {"target": self.target, "time": time, "treated": place >= len(self.past), "observed": seen,
             "counterfactual": counterfactual, "effect": effect, "donor_free_forecast": own}
            for place, (time, seen, (counterfactual, effect, own)) in enumerate(
                zip((*self.past_times, *self.times), observed, later, strict=True))
        ]  # fmt: skip

    def in_time(self, start: Any) -> Reals:
        """Return a placebo in time, free: the effect in each period from ``start`` on until the treatment truly began.

        By the released factor model, its regression on what lies before ``start``; the donors' control alone, without
        an interval.  It should be small beside the effect.  A ParameterError of other methods: these pay for the
        question with ``synthetic_control(..., start=...)``.
        """
        if self.level is None or self.covariance is None:
            raise ParameterError("only a factor model covers an earlier start: ask synthetic_control with start=")
        label = period_label(start)
        seen = ~np.isnan(self.past)
        times = [time for time, is_seen in zip(self.past_times, seen.tolist(), strict=True) if is_seen]
        past, whole = self.past[seen], len(times)
        if label not in times[3:]:
            raise ParameterError(
                "start must be one of the periods before the treatment that have a value, the fourth or later"
            )
        place = times.index(label)
        moved = np.eye(len(self.level))
        moved[:, place - 1] -= 1  # changes since the last value before the placebo's start
        level, covariance = moved @ self.level, moved @ self.covariance @ moved.T
        before, after = slice(0, place - 1), slice(place, whole)
        slopes = np.linalg.solve(covariance[before, before], covariance[before, after])
        changes = past - past[place - 1]
        return np.asarray(changes[after] - level[after] - (changes[before] - level[before]) @ slopes)

    def plot(self, ax: Any = None, *, what: str = "path") -> Any:
        """Draw the path (observed and counterfactual) or, with ``what="gap"``, the effect with its interval."""
        gap, ax, start = check_choice("what", what, ("path", "gap")) == "gap", axes(ax), len(self.past)
        times = (*self.past_times, *self.times)
        after = np.arange(start, len(times))
        marker, level = "o" if len(after) == 1 else None, f"the {self.coverage:.0%} interval of the mean"
        if gap:
            ax.axhline(0, color="0.6", linewidth=1)
            ax.plot(after, self.effect, color="tab:blue", marker=marker, label="effect (released)")
            ends = [after[0], after[-1]]
            ax.plot(ends, [self.att, self.att], color="black", linewidth=1, label="mean effect (released)")
            if self.interval is not None:
                ax.axhspan(*self.interval, color="0.6", alpha=0.15, linewidth=0, label=f"{level} effect")
        else:
            observed, own = np.concatenate([self.past, self.observed]), f"own {self.donor_free_rule} forecast (public)"
            ax.plot(np.arange(len(times)), observed, color="black", label="observed (public)")
            ax.plot(
                after, self.counterfactual, color="tab:blue", marker=marker, label="without the treatment (released)"
            )
            ax.plot(after, self.donor_free_forecast, ":", color="0.6", marker=marker, label=own)
            if self.interval is not None:
                half = (self.interval[1] - self.interval[0]) / 2
                low, high = self.counterfactual - half, self.counterfactual + half
                ax.fill_between(after, low, high, color="tab:blue", alpha=0.12, linewidth=0,
                                label=f"± {level}, not of each period")  # fmt: skip
        ax.axvline(start - 0.5, color="0.4", linestyle="--", linewidth=1)
        places = np.unique(np.linspace(0, len(times) - 1, min(FEW, len(times))).round().astype(int))
        ax.set_xticks(places, [str(times[place]) for place in places])
        ax.set_ylabel("effect" if gap else "outcome")
        sure = "" if self.pvalue is None else f", placebo p = {self.pvalue:.3g}"
        ax.legend(fontsize="small")
        return titled(ax, f"{self.target}: mean effect {self.att:+.4g}{sure}", self.stamp())


@storable("AverageEffect")
@dataclass(frozen=True, eq=False)
class AverageEffect(Result):
    """The average of several targets' mean effects, each over its own treated periods.

    Attributes
    ----------
    targets : tuple
    effects : tuple of float
        Their mean effects.
    att : float
        The average of these, each target counted once.
    interval : tuple of two floats, or None
        Of the average, at ``coverage``: as wide as the targets' own are on average.  ``None``: see ``interval_reason``.
    interval_reason : str
    coverage : float
    guarantee : Guarantee
        That of the call.
    """

    targets: tuple[Any, ...]
    effects: tuple[float, ...]
    att: float
    interval: tuple[float, float] | None
    interval_reason: str
    coverage: float
    guarantee: Guarantee

    def headline(self) -> list[str]:
        lines = [f"Average effect on {len(self.targets)} treated units: {self.att:+.4g}."]
        if self.interval is None:
            return [*lines, f"No interval: {self.interval_reason}."]
        low, high = self.interval
        return [*lines, f"{self.coverage:.0%} interval of the average effect: {low:.4g} to {high:.4g}."]


@with_signature_errors
def average_effect(answers: Sequence[SyntheticControl]) -> AverageEffect:
    """Return the average effect on all targets of one call of ``synthetic_controls``, free: it asks no donor.

    Parameters
    ----------
    answers : sequence of SyntheticControl
        Of one call, whenever each target was treated.

    Returns
    -------
    AverageEffect

    Notes
    -----
    *Guarantee*: that of the call; nothing else is released.  *Interval*: errors of targets share the model's, how much
    no release shows.  Where their joint distribution is elliptical the scale of a mean is at most the mean of the
    scales, so an interval as wide as the targets' are on average holds at any dependence.  Where errors have nothing in
    common it is too wide by the root of the number of targets.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> made = dpc.simulate.factor_panel(2000, effect=0.3, seed=1)
    >>> targets = {"early": made.target, "late": made.target + 0.01}
    >>> panel = dpc.Panel.from_arrays(made.donors, targets, start={"early": 10, "late": 11}, bounds=made.bounds,
    ...                               ledger=dpc.Ledger.in_memory(dpc.ApproxDP(2, 1e-6), unit="unit"))
    >>> with dpc.simulated_noise(4):
    ...     answers = dpc.synthetic_controls(panel, loss=dpc.ApproxDP(2, 1e-6))
    >>> found = dpc.average_effect(answers)
    >>> found.interval[0] < 0.3 < found.interval[1]
    True
    """
    listed = list(answers) if isinstance(answers, Sequence) else []
    if not listed or not all(isinstance(answer, SyntheticControl) for answer in listed):
        raise ParameterError("answers must be those of a call of synthetic_controls")
    first = listed[0]
    calls = {(answer.guarantee.ledger_head, answer.guarantee.loss, answer.coverage) for answer in listed}
    if len(calls) > 1 or len({unit_name(answer.target) for answer in listed}) < len(listed):
        raise ParameterError("answers must be of different targets, and of one call, which shared one budget")
    effects, intervals = tuple(float(answer.att) for answer in listed), [answer.interval for answer in listed]
    halves = [(one[1] - one[0]) / 2 for one in intervals if one is not None]
    reasons = (f"{answer.target} has none, {answer.interval_reason}" for answer in listed if answer.interval is None)
    att, reason = float(np.mean(effects)), next(reasons, "")
    half = None if reason else float(np.mean(halves))
    caveats = dict.fromkeys(caveat for answer in listed for caveat in answer.guarantee.caveats)
    return AverageEffect(
        targets=tuple(answer.target for answer in listed), effects=effects, att=att,
        interval=None if half is None else (att - half, att + half), interval_reason=reason, coverage=first.coverage,
        guarantee=replace(first.guarantee, caveats=tuple(caveats)),
    )  # fmt: skip
