"""What every way to a synthetic control has in common: how its loss is shared, what it plans, its placebos."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from dpcausal.asking import public
from dpcausal.asking.method import Method
from dpcausal.errors import FenceError, InfeasibleError, LossError, ParameterError
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ApproxDP, Loss, NoPrivacy, PureDP, affordable_zcdp
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.synthetic_control import placebo
from dpcausal.synthetic_control.forecast import DonorFree, donor_free
from dpcausal.synthetic_control.placebo import release_pvalue, release_spread
from dpcausal.synthetic_control.plan import MOST_NOISE, Base, Plan
from dpcausal.synthetic_control.question import Answer, Path, Treated, past_of
from dpcausal.synthetic_control.rows import Reals

INTERVAL, PLACEBO_TEST = Fraction(3, 20), Fraction(3, 20)
"""Shares of the budget for the interval and the placebo test, where they can say anything."""

LEAST_PAST = 3
"""Periods before the start from which on a unit's own volatility can be told."""

MOST_INTERVAL_NOISE = 0.5
"""No interval where noise alone is expected to make up more of its squared half width, against the cut's."""

MOST_COUNT_NOISE = 1 / 8
"""No placebo test where the noise on its count passes this share of the donors."""


@dataclass(frozen=True, kw_only=True)
class SyntheticMethod(Method[Treated, Any]):
    """One way to predict what would have happened."""

    uses_coins: ClassVar[bool] = False
    takes_covariates: ClassVar[bool] = False
    shared: ClassVar[bool] = False
    """Whether one release serves all targets."""

    has_placebos: ClassVar[bool] = False
    proofs: ClassVar[tuple[str, ...]] = ()
    """The claims of its own statistics."""

    counted: ClassVar[Fraction] = Fraction(1)
    """The share of the donors that a placebo is expected to count."""

    positive: ClassVar[tuple[str, ...]] = ()
    """Its options that are positive numbers, or none."""

    def currency(self, spent: Loss) -> Base:
        """Return what the releases share of what is spent."""
        return affordable_zcdp(spent) if isinstance(spent, ApproxDP) else spent

    def expected_noise(self, question: Treated, target: Any, free: DonorFree, base: Any) -> float | None:
        """Return the noise expected in each period, on the scale [−1, 1]; raise where it could not be drawn."""
        return None

    def constants(self, question: Treated, target: Any, free: DonorFree) -> dict[str, float]:
        """Return its public constants for a target, in the outcome's unit."""
        return {}

    def claims(self, question: Treated, spent: Loss) -> tuple[str, ...]:
        plan = self.plans(question, spent)[0]  # what is released is the same for every target
        noise = ("l2-ball", "geometric") if isinstance(plan.base, PureDP) else ("gaussian",)
        released = zip(placebo.PROOFS, (plan.interval, plan.pvalue), strict=True)
        extra = tuple(claim for claim, share in released if share)
        return (*self.proofs, *extra, *noise[: 2 if extra else 1])

    def settle(self, question: Treated, spent: Loss) -> Self:
        """Refuse a panel that public numbers show to be too small, unless forced."""
        for name in self.positive:
            value = getattr(self, name)
            if value is not None and not (public.is_number(value) and 1e-9 < value < 1e12):
                raise ParameterError(f"{name} must be a number above 1e-9 and below 1e12")
        if question.panel.covariates and not self.takes_covariates:
            raise ParameterError(f"the method {self.name} takes no covariates: use method='matched'")
        for target in question.targets if self.has_placebos else ():
            if (before := question.panel.start(target)) < LEAST_PAST:
                when = question.panel.times[before]
                raise ParameterError(
                    f"target {target!r} has {before} period(s) before its start in {when}: method {self.name} needs at "
                    f"least {LEAST_PAST}"
                )
        for plan in self.plans(question, spent):
            if plan.noise_ratio is not None and plan.noise_ratio > MOST_NOISE and not question.force:
                raise InfeasibleError(f"{plan.target}: {plan.verdict} To run it all the same say force=True.")
        return self

    def plans(self, question: Treated, spent: Loss) -> list[Plan]:
        """Return a plan for each target."""
        base = self.currency(spent)
        each = base if self.shared else base.part(Fraction(1, len(question.targets)))
        try:
            return [self._plan(question, target, spent, each) for target in question.targets]
        except FenceError:
            pass
        raise LossError("this budget is too small: the noise would pass the largest scale that is drawn")

    def _plan(self, question: Treated, target: Any, spent: Loss, base: Base) -> Plan:
        panel = question.panel
        half, start = panel.bounds.width / 2, panel.start(target)
        after = question.periods - start
        free = donor_free(past_of(panel, target), after)
        reasons = self._reasons(question, base)
        interval, test = (share * (not reason) for share, reason in zip((INTERVAL, PLACEBO_TEST), reasons, strict=True))
        rest = 1 - interval - test
        noise = self.expected_noise(question, target, free, base.part(rest))
        att = None if noise is None else noise / math.sqrt(after)
        ratio = None if att is None or free.error is None else att / free.error
        return Plan(
            target=target, method=self.name, spent=spent, base=base, path=rest, interval=interval, pvalue=test,
            interval_reason=reasons[0], pvalue_reason=reasons[1], start=start, after=after, donors=panel.n,
            periods=question.periods, free=free, att_noise=None if att is None else att * half,
            path_noise=None if noise is None else noise * half, noise_ratio=ratio,
            scale=half, constants=self.constants(question, target, free),
        )  # fmt: skip

    def of_placebos(self, plan: Plan, share: Fraction, targets: int) -> Base:
        """Return the loss of one target's interval or placebo test."""
        return plan.base.part(share / targets if self.shared else share)

    def _reasons(self, question: Treated, base: Base) -> tuple[str, str]:
        """Return why there will be no interval and no placebo test; empty if there may be."""
        if not self.has_placebos:
            return (f"the method {self.name} has no placebos",) * 2
        if not question.inference:
            return ("none was asked for",) * 2
        n, targets = question.panel.n, len(question.targets)
        shares = (share / targets if self.shared else share for share in (INTERVAL, PLACEBO_TEST))
        interval, test = (placebo.noise_deviation(base.part(share)) for share in shares)
        effective = n * float(self.counted)
        widened = placebo.factor_of(question.coverage) ** 2 * placebo.SAFETY * interval / effective
        too_wide = too_few = ""
        if widened > MOST_INTERVAL_NOISE:
            too_wide = (
                f"with {n} donors at this budget the noise alone is expected to make up {widened:.2g} of the squared "
                f"half width that still says something, more than {MOST_INTERVAL_NOISE:g}"
            )
        if test > MOST_COUNT_NOISE * n:
            too_few = (
                f"the noise on a count of {n} donors has a standard deviation of {test:.3g}, more than an eighth of "
                "them"
            )
        return too_wide, too_few

    def begun(self, scaled: Reals, question: Treated, plan: Plan, allotment: Allotment) -> Any:
        """Return what the paths of all targets are made of: the donors, or what is released of them once."""
        return scaled

    @abstractmethod
    def path(self, begun: Any, question: Treated, plan: Plan, spent: Loss, allotment: Allotment) -> Path:
        """Release the path of one plan."""

    def release(
        self, private: Reals, question: Treated, spent: Loss, coins: PublicGenerator, allotment: Allotment
    ) -> list[Answer]:
        """Release a path for each target, then its placebos."""
        plans = self.plans(question, spent)
        begun = self.begun(private, question, plans[0], allotment)
        paths, answers = [], []
        for plan in plans:
            paths.append(self.path(begun, question, plan, spent, allotment))
        for plan, path in zip(plans, paths, strict=True):
            reach = pvalue = None
            reason, targets = plan.interval_reason, len(question.targets)
            if plan.interval and path.placebos is not None:
                share = self.of_placebos(plan, plan.interval, targets)
                reach = release_spread(
                    path.placebos, path.cut, path.total, path.total_noise, question.coverage, allotment, share
                )
                if reach is None:
                    reason = "it would be wider than where the placebo residuals are cut, so it would say nothing"
            if plan.pvalue and path.placebos is not None:
                share = self.of_placebos(plan, plan.pvalue, targets)
                pvalue = release_pvalue(path.placebos, abs(path.own), path.total, allotment, share)
            answers.append(Answer(plan, path, reach, pvalue, reason))
        return answers

    def exact(self, private: Reals, question: Treated, coins: PublicGenerator, allotment: Allotment) -> list[Answer]:
        return self.release(private, question, NoPrivacy(), coins, allotment)
