"""The question of a synthetic control: the outcomes of treated units had they not been treated."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.core import validate as public
from dpcausal.core.method import PlannedCall, Question
from dpcausal.data.panels.panel import Panel
from dpcausal.data.panels.periods import Label
from dpcausal.data.panels.treated_units import VALUES
from dpcausal.errors import ParameterError
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ZCDP, Loss
from dpcausal.privacy.sensitivity import Unit
from dpcausal.result import Guarantee
from dpcausal.synthetic_control.donor_rows import TargetOnlyForecast, from_scale, to_scale
from dpcausal.synthetic_control.placebo import Base, Law, Missed
from dpcausal.synthetic_control.result import SyntheticControl

PUBLIC = (
    "the number of donors", "the targets with their series, which are NOT protected", "that this ledger answers for no "
    "other targets", "the periods", "the bounds", "all arguments",
)  # fmt: skip
AT_BOUNDS = (
    "control units' values outside {} to {} count as the nearer bound: where many drift to one, the answer falls "
    "behind them"
)
EARLY = "a placebo in time: nothing was treated yet in the periods that are called treated here"
MOST_NOISE, MUCH_NOISE = 2.4, 0.5
"""A panel is refused where the noise in the mean effect is expected to pass so many errors of the own forecast.

``matched`` weighs donors and own forecast by noise r and prior 1.5: it is expected to err by r/√(r² + 1.5²) of that,
0.85 at r = 2.4.  From the second on an answer says how much noise there is."""


@dataclass(frozen=True)
class Plan:
    """The call for one target after its public arguments were checked."""

    target: Any
    spent: Loss
    """What the call costs, all targets together."""
    base: Base
    """What this target's releases share, in the currency of the method."""
    path: Fraction
    mixing: Fraction
    interval: Fraction
    pvalue: Fraction
    """Shares of ``base``; 0 for what is not released, the reasons say why."""
    interval_reason: str
    pvalue_reason: str
    start: int
    after: int
    """T0 and m."""
    donors: int
    free: TargetOnlyForecast
    path_noise: float | None
    """Expected standard deviation of the noise in each period, in the outcome's unit; ``None`` if it is not known."""
    noise_ratio: float | None
    """That of the mean effect, over the error of the donor-free forecast."""
    constants: dict[str, float] = field(default_factory=dict, hash=False)
    """Public constants of the method, in the outcome's unit."""

    @property
    def verdict(self) -> str:
        """Whether the panel is large enough for the budget, in a sentence."""
        if self.path_noise is None:
            return "No forecast of the noise is made for this method."
        if self.noise_ratio is None:
            return "Whether the donors add more than noise is unknown: the target's own past shows no error to compare."
        size = f"the noise in the mean effect is expected to be {self.noise_ratio:.2g} times"
        yard = f"the error of the target's own {self.free.rule} forecast"
        if self.noise_ratio <= MOST_NOISE:
            return f"Feasible: {size} {yard}."
        # Of (ε, δ) the noise is about inverse to ε.
        times, amount = self.noise_ratio / MOST_NOISE, "epsilon"
        if isinstance(self.spent, ZCDP):
            times, amount = times * times, "rho"
        more = f"{math.ceil(10 * times) / 10:g} times the {amount}"
        needed = f"This would need about {self.donors_needed} donors, or {more}."
        return f"Too small: {size} {yard}, more than {MOST_NOISE:g}. {needed}"

    @property
    def donors_needed(self) -> int | None:
        """How many donors, at this loss, bring the noise down to what is not refused; ``None`` if that is not known."""
        return None if self.noise_ratio is None else math.ceil(self.noise_ratio / MOST_NOISE * self.donors)


@dataclass(frozen=True, eq=False, repr=False)
class Path:
    """A released path on the scale [−1, 1], and what its placebos need (*private*: ``donors``, ``weights``).

    ``distance`` is how far the target's past lies from the released model, in its standard deviations; ``own_error``
    what the target's own variation may add to a mean effect's error where donors do not follow it.
    """

    values: Reals
    noise: float | None
    weight: float | None = None
    loadings: Reals | None = None
    level: Reals | None = None
    covariance: Reals | None = None
    fit: float | None = None
    distance: float = 0.0
    own_error: float = 0.0
    donors: Missed | None = None
    own: Missed | None = None
    weights: Integers | None = None
    step: float = 1.0
    total: float = 0.0
    law: Law = field(default_factory=lambda: Law(1))


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """What left for one target; ``values`` is the path, so much of it the control as ``mixing`` says."""

    plan: Plan
    path: Path = field(repr=False)
    values: Reals
    mixing: float
    reach: float | None
    pvalue: float | None
    interval_reason: str
    pvalue_reason: str


@dataclass(frozen=True)
class Treated(Question[Any]):
    """What would have happened to the targets of a panel, with an interval and a placebo test or without."""

    task: ClassVar[str] = "synthetic control"
    panel: Panel
    targets: tuple[Any, ...]
    coverage: float
    inference: bool
    force: bool
    early: bool = False

    @classmethod
    def of(cls, panel: object, target: Any, coverage: Any, inference: object, force: object, start: Any = None) -> Self:
        if not isinstance(panel, Panel):
            raise ParameterError("panel must be a dpcausal Panel")
        if target is not None and target not in panel.targets:
            raise ParameterError("target must be one of the panel's targets")
        coverage = public.number("coverage", coverage, 0.5, 0.9999)
        flags = public.flag("inference", inference), public.flag("force", force)
        if start is not None:
            panel = panel.before_treatment(start)
        targets = panel.targets if target is None else (target,)
        return cls(panel, targets, coverage, *flags, start is not None)

    @property
    def ledger(self) -> Ledger:
        return self.panel.ledger

    @property
    def unit(self) -> Unit:
        return Unit.DONOR

    @property
    def unit_column(self) -> str:
        return self.panel.unit

    @property
    def before(self) -> int:
        return min(self.panel.start(target) for target in self.targets)

    @property
    def periods(self) -> int:
        return len(self.panel.times)

    @property
    def places(self) -> Reals:
        return self.panel.places.astype(np.float64)

    @property
    def once_per_ledger(self) -> dict[str, Any]:
        if not self.panel.ledger.private:
            return {}
        return {**self.panel.declaration, VALUES: self.panel.public_values}

    def detail(self) -> dict[str, Any]:
        return {
            "targets": [str(name) for name in self.targets], "donors": self.panel.n, "periods": self.periods,
            "inference": self.inference, "force": self.force, "early": self.early,
        }  # fmt: skip

    def read(self) -> Reals:
        return to_scale(self.panel.donors(), self.panel.bounds)

    def report(
        self, planned: PlannedCall[Treated], released: list[Answer], allotment: CallBudget, seed: int | None
    ) -> tuple[SyntheticControl, ...]:
        return tuple(self._result(planned, answer, allotment) for answer in released)

    def _result(self, planned: PlannedCall[Treated], answer: Answer, allotment: CallBudget) -> SyntheticControl:
        plan, path, panel = answer.plan, answer.path, self.panel
        bounds, half, series = panel.bounds, panel.bounds.width / 2, panel.series(plan.target)
        counterfactual, free = from_scale(answer.values, bounds), from_scale(plan.free.path, bounds)
        past, past_times = whole_past(panel, plan.target)
        observed = series[plan.start :]
        effect = observed - counterfactual
        att = float(effect.mean())
        for array in (counterfactual, effect, free):
            array.setflags(write=False)
        shares = {"shares of the path": plan.path, "mixing": plan.mixing, "interval": plan.interval,
                  "test": plan.pvalue}  # fmt: skip
        series_public = f"the series of {plan.target} is not protected: it is public and shows here"
        noisy = [plan.verdict.rstrip(".")] if (plan.noise_ratio or 0) > MUCH_NOISE else []
        cut = AT_BOUNDS.format(*bounds.ends)
        caveats = *([EARLY] if self.early else []), *noisy, series_public, cut, *planned.caveats
        return SyntheticControl(
            target=plan.target, times=panel.times[plan.start :], counterfactual=counterfactual, effect=effect, att=att,
            interval=None if answer.reach is None else (att - answer.reach * half, att + answer.reach * half),
            pvalue=answer.pvalue, donor_free_forecast=free, donor_free_rule=plan.free.rule, observed=observed,
            past=past, past_times=past_times,
            mixing=answer.mixing, fit=in_unit(path.fit, half), own_fit=in_unit(plan.free.error, half),
            path_noise=in_unit(path.noise, half), donor_weight=path.weight, loadings=in_unit(path.loadings, half),
            level=in_unit(path.level, half), covariance=in_unit(path.covariance, half**2),
            interval_reason=answer.interval_reason, pvalue_reason=answer.pvalue_reason, coverage=self.coverage,
            method=planned.method.name,
            settings=planned.method.options(), n=panel.n,
            constants={name: float(share) for name, share in shares.items()} | plan.constants,
            guarantee=Guarantee.of(allotment, proofs=planned.proofs, caveats=caveats, public=PUBLIC),
        )  # fmt: skip


class OneTreated(Treated):
    @classmethod
    def of(cls, *arguments: Any) -> Self:
        question = super().of(*arguments)
        if len(question.targets) != 1:
            raise ParameterError("the panel has several targets: name one, or ask for all of them")
        return question

    def finalize(self, answer: tuple[SyntheticControl, ...]) -> SyntheticControl:
        return answer[0]


def in_unit(value: Any, factor: float) -> Any:
    """Return a number or an array in another unit; ``None`` stays."""
    return None if value is None else value * factor


def past_of(panel: Panel, target: Any) -> Reals:
    return to_scale(panel.series(target)[: panel.start(target)], panel.bounds)


def whole_past(panel: Panel, target: Any) -> tuple[Reals, tuple[Label, ...]]:
    """Return a target before its start, NaN in its missing periods, and all these periods."""
    lacking, seen = panel.lacking[target], iter(panel.series(target).tolist())
    times = panel.before(target)
    past = np.array([math.nan if time in lacking else next(seen) for time in times])
    past.setflags(write=False)
    return past, times
