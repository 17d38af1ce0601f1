"""The base class of the methods of synthetic control: loss split, plan and placebos."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.core import validate as public
from dpcausal.core.method import Method, Run
from dpcausal.errors import FenceError, InfeasibleError, LossError, ParameterError, Setting
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, PureDP, affordable_zcdp
from dpcausal.synthetic_control import placebo
from dpcausal.synthetic_control.donor_rows import NO_ERROR, TargetOnlyForecast, donor_free
from dpcausal.synthetic_control.placebo import Base, Law, release_best, release_pvalue, release_reach, release_slope
from dpcausal.synthetic_control.question import MOST_NOISE, Answer, Path, Plan, Treated, past_of

MIXING, INTERVAL, PLACEBO_TEST = Fraction(2, 25), Fraction(1, 5), Fraction(1, 10)
"""Shares of the budget for the mixing weight, the interval and the placebo test, where they can say anything."""
FIRST_COUNT = Fraction(2, 5)
"""The share of the interval's budget that its first count has."""
MIXTURES = (0.0, 0.5, 1.0)
"""How much of the forecast may be the control; the rest is the target's own rule."""
LEAST_PAST = 3
"""Periods before the start from which on a unit's own volatility can be estimated."""
EXPECTED_WEIGHT = 0.85
"""The share of the donors' full weight that a count is expected to rely on."""
MOST_INTERVAL_NOISE, MOST_COUNT_NOISE = 0.15 * EXPECTED_WEIGHT, 1 / 8
"""No interval, no placebo test where the noise on its count passes this share of the donors."""
STILL = "the target's own past does not vary, so it has no scale"
UNLIKE = 1.25
"""No interval of a target whose past lies further from the released model, in its standard deviations: measured."""
FAR = (
    "the target is unlike its donors: its past lies {distance:.2g} standard deviations from the released model, above "
    f"{UNLIKE:g}"
)
OPEN = "nearly all donors, as released, lie further off than counts were taken, so no width is known"


def is_line(past: Reals) -> bool:
    """Return whether a past is a line, but for rounding: its own changes say nothing of how far a forecast may err."""
    steps = np.diff(past)
    return not len(steps) or float(np.ptp(steps)) <= NO_ERROR * float(np.abs(past - past[-1]).max())


@dataclass(frozen=True, kw_only=True)
class SyntheticMethod(Method[Treated]):
    """One way to predict what would have happened."""

    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP, ApproxDP, ZCDP)
    supports_no_privacy: ClassVar[bool] = True
    uses_public_randomness: ClassVar[bool] = False
    shared: ClassVar[bool] = False
    """Whether one release serves all targets."""
    has_placebos: ClassVar[bool] = False
    proofs: ClassVar[tuple[str, ...]] = ()
    """The claims of its own statistics."""
    positive: ClassVar[tuple[str, ...]] = ()
    """Its options that are positive numbers, or none."""

    def currency(self, loss: Loss) -> Base:
        """Return what the releases share of what is spent."""
        return affordable_zcdp(loss) if isinstance(loss, ApproxDP) else loss

    def expected_noise(self, question: Treated, target: Any, free: TargetOnlyForecast, base: Any) -> float | None:
        """Return the noise expected in each period, on the scale [−1, 1]; raise where it could not be drawn."""
        return None

    def constants(self, question: Treated, target: Any, free: TargetOnlyForecast) -> dict[str, float]:
        """Return its public constants for a target, in the outcome's unit."""
        return {}

    def proofs_of(self, question: Treated, loss: Loss) -> tuple[str, ...]:
        plans = self.plans(question, loss)
        pure = isinstance(plans[0].base, PureDP)
        mixed, counted = any(plan.mixing for plan in plans), any(plan.interval or plan.pvalue for plan in plans)
        table = self.shared and any(plan.interval for plan in plans)
        used = {"mixing-scores": mixed, "ratio-table": table, "ratio-count": counted, "gaussian": not pure,
                "l2-ball": pure, "cube": pure and mixed, "geometric": pure and counted}  # fmt: skip
        return (*self.proofs, *(claim for claim, is_used in used.items() if is_used))

    def plan(self, question: Treated, loss: Loss) -> Self:
        """Refuse a panel that public numbers show to be too small, unless forced."""
        for name in self.positive:
            value = getattr(self, name)
            if value is not None:
                public.number(name, value, 1e-9, 1e12)
        for target in question.targets if self.has_placebos else ():
            if (before := question.panel.start(target)) < LEAST_PAST:
                when = question.panel.times[before]
                raise ParameterError(
                    f"target {target!r} has {before} period(s) before its start in {when}: method {self.name} needs at "
                    f"least {LEAST_PAST}"
                )
        for plan in self.plans(question, loss):
            inferred = question.inference and (plan.interval or plan.pvalue)
            if (plan.noise_ratio or 0) > MOST_NOISE and not inferred and not question.force:
                hint = f"{plan.verdict} To run it anyway, set ", Setting("force", True)
                raise InfeasibleError(plan.target, argument="force", rule="noise", hint=hint)
        return self

    def plans(self, question: Treated, loss: Loss) -> list[Plan]:
        base = self.currency(loss)
        each = base if self.shared else base.part(Fraction(1, len(question.targets)))
        try:
            return [self._plan(question, target, loss, each) for target in question.targets]
        except FenceError:
            pass
        raise LossError("this budget is too small: the noise would pass the largest scale that is drawn")

    def _plan(self, question: Treated, target: Any, loss: Loss, base: Base) -> Plan:
        panel, start, past = question.panel, question.panel.start(target), past_of(question.panel, target)
        after = question.periods - start
        free = donor_free(past, after, question.places)
        reasons = self._reasons(question, base)
        if is_line(past):
            reasons = reasons[0] or STILL, reasons[1] or STILL
        interval, test = (share * (not reason) for share, reason in zip((INTERVAL, PLACEBO_TEST), reasons, strict=True))
        mixing = MIXING * (len(self.mixtures(free)) > 1 and self.has_placebos)
        rest = 1 - mixing - interval - test
        noise = self.expected_noise(question, target, free, base.part(rest))
        return Plan(
            target=target, spent=loss, base=base, path=rest, mixing=mixing, interval=interval, pvalue=test,
            interval_reason=reasons[0], pvalue_reason=reasons[1], start=start, after=after, donors=panel.n, free=free,
            path_noise=None if noise is None else noise * panel.bounds.width / 2,
            noise_ratio=None if noise is None or free.error is None else noise / math.sqrt(after) / free.error,
            constants=self.constants(question, target, free),
        )  # fmt: skip

    def mixtures(self, free: TargetOnlyForecast) -> tuple[float, ...]:
        """Return how much of the forecast may be the control, by public numbers."""
        return (1.0,)

    def of_placebos(self, question: Treated, base: Base) -> tuple[Base, Base, Base]:
        """Return the losses of one mixing weight, one interval and one placebo test; targets of one start share two."""
        starts = len({question.panel.start(target) for target in question.targets}) if self.shared else 1
        targets = len(question.targets) if self.shared else 1
        return base.part(MIXING / starts), base.part(INTERVAL / starts), base.part(PLACEBO_TEST / targets)

    def _reasons(self, question: Treated, base: Base) -> tuple[str, str]:
        if not self.has_placebos:
            return (f"the method {self.name} has no placebos",) * 2
        if not question.inference:
            return ("none was asked for",) * 2
        n, (_, interval, test) = question.panel.n, self.of_placebos(question, base)
        second = placebo.noise_deviation(interval.part(1 - FIRST_COUNT))
        reasons = []
        for deviation, most in ((second, MOST_INTERVAL_NOISE), (placebo.noise_deviation(test), MOST_COUNT_NOISE)):
            reasons.append("" if deviation <= most * n else (
                f"the noise on a count of {n} donors has a standard deviation of {deviation:.3g}, more than {most:.3g} "
                "of them"
            ))  # fmt: skip
        return reasons[0], reasons[1]

    def begun(self, plan: Plan, run: Run[Treated]) -> Any:
        """Return what the paths of all targets are made of: the donors, or what is released of them once."""
        return run.data

    @abstractmethod
    def path(self, begun: Any, plan: Plan, run: Run[Treated]) -> Path:
        """Release the path of one plan."""

    def release(self, run: Run[Treated]) -> list[Answer]:
        """Release a path for each target, then its placebos; targets of one start share what they can."""
        question, allotment = run.question, run.budget
        plans = self.plans(question, run.loss)
        begun = self.begun(plans[0], run)
        known: dict[int, tuple[float, float | None, float]] = {}
        answers = []
        for plan in plans:
            path = self.path(begun, plan, run)
            if path.donors is None or path.own is None or path.weights is None:
                reasons = plan.interval_reason, plan.pvalue_reason
                answers.append(Answer(plan, path, path.values, 1.0, None, None, *reasons))
                continue
            losses = self.of_placebos(question, plan.base)
            new = not (self.shared and plan.start in known)
            mixing, reach, slope = (1.0, None, 0.0) if new else known[plan.start]
            if new and plan.mixing:
                ways = self.mixtures(plan.free)
                candidates = [path.donors.mixed(way, path.weights) for way in ways]
                mixing = ways[release_best(candidates, allotment, losses[0])]
            counts: Any = losses[1].part(FIRST_COUNT), losses[1].part(1 - FIRST_COUNT)
            within = None
            if plan.interval and new and path.donors.swings is not None:
                placebos = path.donors.mixed(mixing, path.weights)
                within, slope = release_slope(placebos, path.law, path.total, allotment, counts[0])
            placebos, own = (one.with_slope(slope).mixed(mixing, path.weights) for one in (path.donors, path.own))
            residual, scale = float(own.residuals[0]), float(own.scales[0])
            far = FAR.format(distance=path.distance) if path.distance > UNLIKE else ""
            if plan.interval and new:
                reach = release_reach(placebos, path.law, path.total, question.coverage, allotment, counts, within)
            known[plan.start] = mixing, reach, slope
            half, reason = None if reach is None else reach * scale * path.step, plan.interval_reason
            own_law = Law(max(plan.start // 2, 1))
            if half:
                # What donors leave of the target's own variation is its own: no interval is narrower than that says.
                least = own_law.ratio(question.coverage) * path.own_error
                scale, half = scale * max(least / half, 1.0), max(half, least)
            if plan.interval and (far or not half):
                half, reason = None, far or OPEN
            pvalue, no_pvalue = None, plan.pvalue_reason or far
            if plan.pvalue:
                pvalue = release_pvalue(placebos, residual, scale, path.total, allotment, losses[2])
                if path.own_error > 0:
                    pvalue = max(pvalue, 1 - own_law.within(abs(residual) * path.step / path.own_error))
            values = path.values if mixing == 1 else mixing * path.values + (1 - mixing) * plan.free.path
            answers.append(Answer(plan, path, values, mixing, half, None if no_pvalue else pvalue, reason, no_pvalue))
        return answers
