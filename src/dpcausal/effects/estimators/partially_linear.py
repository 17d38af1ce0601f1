"""``"partially-linear"``: the slope of the treatment in one line for the outcome, from noisy moments alone.

y = θ·a + β′x + e with one β for both arms.  All of the loss pays for the moments, so it answers where ``aipw`` has
too little signal: many columns, few rows.  θ is everybody's mean effect if the effect is the same for all.  Otherwise
it is a weighted mean, with weights e(x)(1 − e(x)) where the probability of treatment is linear.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_args

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.core.method import Run, SumsOverRows
from dpcausal.core.validate import check_choice
from dpcausal.effects.clusters import ClusteredScores, group_sums, shared
from dpcausal.effects.moments.adaptive import TAKEN, predicted_signal
from dpcausal.effects.moments.api import SANDWICH_SHARE, check_rounds, release_sandwich, rows_for_step, times_as_wide
from dpcausal.effects.moments.effect import balance_of, effect_of_line
from dpcausal.effects.moments.factors import Layout
from dpcausal.effects.moments.redundant import redundant_note, without_redundant
from dpcausal.effects.moments.regression import (
    BLIND,
    LEAST_OF_A_LINE,
    LEAST_SIGNAL,
    SPREAD,
    Errors,
    Terms,
    has_signal,
)
from dpcausal.effects.moments.release import JointMoments
from dpcausal.effects.nuisance.design import FIRST, TREATMENT, Design, checked_design, enough
from dpcausal.effects.nuisance.scores import lines_of
from dpcausal.effects.question import EffectMethod, EffectQuestion
from dpcausal.effects.result import Effect
from dpcausal.errors import Advice, InfeasibleError, ParameterError, Setting
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp

Paid = ApproxDP | ZCDP | NoPrivacy
LEAST_PREDICTED, LEAST_RATIO = 1.25, 0.5
"""No answer where public numbers foresee less, or moments that were released stand nearer to their noise: above, the
error that is reported held in 0.94 to 1.00 of 60 simulated studies, below a slope may be anything."""
OF_LEVELS = 0.5
"""So much less is foreseen with categories of more than two levels: on a cohort of 1,629 persons 13 of 24 calls then
had an answer at the least that is accepted, and 3 of 24 without."""
FOR_SPREAD = LEAST_SIGNAL - 1
"""The spread about the line is released where so much is predicted: moments come out somewhat above that."""
MOST_LENGTHS = 3.0
"""No answer where an arm lies farther out, in lengths that rows were shortened to: little of it counts then."""
RARE = "one arm is so rare that most of it was winsorised: use more rows or a larger loss"
ONE_LAW = (
    "the standard error assumes that the outcome's residuals have one distribution everywhere: a skew of one arm or "
    "end alone biases the slope by more"
)
OTHER_REASONS: dict[str, str] = {
    SPREAD: Advice(
        "the variance and the skewness of the residuals may not be constant, and public numbers predicted no interval "
        "if they had been released: use more rows, a larger loss or fewer columns, or set ",
        Setting("method", "partially-linear", {"errors": "symmetric"}, "dpc.methods.PartiallyLinear"),
        " if there is no skew anywhere, ", Setting("errors", "homoscedastic"), " if both are constant",
    ),
    BLIND: Advice(
        "with so few rows at this loss noise would hide a skew that biases the slope: use more rows or a larger loss, "
        "or set ", Setting("method", "partially-linear", {"errors": "normal"}, "dpc.methods.PartiallyLinear"),
        " if the residuals are about normal",
    ),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PartiallyLinear(SumsOverRows, EffectMethod):
    """The slope of the treatment in a line for the outcome; ``ApproxDP`` or ``ZCDP``.

    Parameters
    ----------
    errors : {"homoscedastic", "normal", "symmetric"}, optional
        What is known of the errors about the line; ``None`` states nothing.

        * ``"homoscedastic"``: they have one distribution everywhere, the same spread and the same skew.  Otherwise the
          spread is released, too, for three tenths of the loss, if public numbers promise an interval then.
        * ``"normal"``: they are about normal and homoscedastic.  Needed for an interval where noise would hide a skew.
        * ``"symmetric"``: the outcome lies as far above its line as below, everywhere; its spread may differ.  Needed
          below the number of rows, forecast from public numbers, from which a skew is seen.
    """

    name: ClassVar[str] = "partially-linear"
    about: ClassVar[str] = "one slope from noisy moments"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("scale-histograms", "ellipse-moments", "gaussian")
    assumptions: ClassVar[tuple[tuple[str, Any], ...]] = tuple(("errors", stated) for stated in get_args(Errors))
    supports_clusters: ClassVar[bool] = True
    errors: Errors | None = None

    def proofs_of(self, question: EffectQuestion, loss: Paid) -> tuple[str, ...]:
        return (*self.proofs, "group-layers") if question.cluster else self.proofs

    def plan(self, question: EffectQuestion, loss: Paid) -> PartiallyLinear:
        if self.errors is not None:
            check_choice("errors", self.errors, get_args(Errors))
        if question.estimand != "ate" or question.groups is not None:
            raise ParameterError(f"method {self.name!r} has one slope for all: estimand 'ate', no groups")
        layout, n = checked_design(self.name, question, by_factor=True).layout, question.n
        if isinstance(loss, NoPrivacy):
            return self
        rho, _ = shared(affordable_zcdp(loss), question.cluster is not None)
        check_rounds(layout, n, loss, *self._parts(layout, n, rho), layout.numbers)
        if _expected_signal_to_noise(layout, n, rho) < LEAST_PREDICTED:
            rows, times = enough(
                n, lambda n, times: _expected_signal_to_noise(layout, n, ZCDP(rho.rho * times**2)), LEAST_PREDICTED
            )
            raise InfeasibleError(
                f"{n} rows at {loss} predict a slope among {layout.columns} columns that may be anything: about {rows} "
                f"rows would be enough, or {times:.2g} times the epsilon, or adjust for fewer columns"
            )
        return self

    def caveats(self, question: EffectQuestion, loss: Paid) -> tuple[str, ...]:
        right = ("right if the effect is the same for all and the outcome, or the probability of treatment, is linear "
                 "in what is adjusted for")  # fmt: skip
        if isinstance(loss, NoPrivacy):
            return (right,)
        layout, n = Design.of(question, by_factor=True).layout, question.n
        rho, _ = shared(affordable_zcdp(loss), question.cluster is not None)
        wide = times_as_wide(layout, n, self._parts(layout, n, rho)[0])
        caveats = [right, f"public numbers predict errors {wide:.2g} times those without privacy"]
        if self.errors is None and (enough := rows_for_step(rho.part(SANDWICH_SHARE))) > n:
            caveats.append(Advice(f"below about {enough:,} rows at this loss there is no interval without ",
                                  Setting("errors"), ": state that they are symmetric or homoscedastic, or add rows"))
        return tuple(caveats)

    def _parts(self, layout: Layout, n: int, rho: ZCDP) -> tuple[ZCDP, ZCDP | None]:
        rest, own = rho.part(1 - SANDWICH_SHARE), rho.part(SANDWICH_SHARE)
        if self._homoscedastic or predicted_signal(layout.numbers, n, layout.as_numbers(rest)) < FOR_SPREAD:
            return rho, None
        return (rest, own) if self.errors == "symmetric" or n >= rows_for_step(own) else (rho, None)

    @property
    def _homoscedastic(self) -> bool:
        return self.errors in ("homoscedastic", "normal")

    def release(self, run: Run[EffectQuestion]) -> Effect:
        question, design = run.question, Design.of(run.question, by_factor=True)
        names, sources = design.names, tuple(dict.fromkeys(design.sources))
        paid, for_layers = shared(affordable_zcdp(run.loss), question.cluster is not None)
        if run.loss.exact:
            rho, own = None, None if self._homoscedastic else run.loss
        else:
            rho, own = self._parts(design.layout, question.n, paid)
        moments, rows = JointMoments.of_table(
            question.table, sources, names, design.ranges, design.units, rho, run.budget, design.factors
        )
        moments, gone = without_redundant(moments, FIRST, LEAST_OF_A_LINE)
        if own is not None:
            places = [names.index(name) for name in moments.names]
            seen = rows.with_terms(lambda unit: unit[:, places])
            of = (moments.columns[0], moments.columns[1:])
            moments = replace(moments, sandwich=release_sandwich(moments, of, seen, run.budget, own))
        effect = self._effect(question, moments, gone)
        if question.cluster is None:
            return effect
        lines, (outcome, treatment, *others) = lines_of(moments, names), moments.columns
        chance = max(moments.residual(treatment, others), 1e-3)
        spread = math.sqrt(moments.residual(outcome, moments.columns[1:]) / chance)
        scores = ClusteredScores.of(effect, min(moments.count, question.n), 0.0, spread)

        def products(unit: Reals) -> Reals:
            raw = design.raw(unit)
            residual, probability = lines.residuals(raw)
            return (raw[:, TREATMENT] - probability) * residual / chance

        return scores.by_clusters(
            effect, lambda cut: rows.over(lambda unit, held: group_sums(cut(products(unit)), held)),
            question.cluster, question.n, for_layers, run.budget,
        )  # fmt: skip

    def _effect(self, question: EffectQuestion, moments: JointMoments, gone: tuple[str, ...] = ()) -> Effect:
        outcome, treatment, *others = moments.columns
        terms = Terms(self.errors, question.coverage, LEAST_RATIO)
        slope = effect_of_line(moments, treatment, outcome, tuple(others), terms, question.arms)
        reason, notes = slope.interval_reason, (*redundant_note(gone), *slope.notes)
        reason = OTHER_REASONS.get(reason, reason)
        if not has_signal(moments, LEAST_RATIO):
            slope = replace(slope, estimate=None)
        if _farther(moments) > MOST_LENGTHS:
            reason, slope = RARE, replace(
                slope, estimate=None, interval=None, standard_error=None, noise_error=None, robustness_value=None,
                robustness_value_limit=None,
            )  # fmt: skip
        if moments.sandwich is None and slope.standard_error is not None and not self._homoscedastic:
            notes = (*notes, ONE_LAW)
        return replace(
            slope, interval_reason=reason,
            notes=notes, treatment=question.treatment, adjusted_for=question.strata,
            balance=balance_of(moments), method=self.name, release=moments,
        )  # fmt: skip


def _expected_signal_to_noise(layout: Layout, n: int, rho: ZCDP) -> float:
    """Return how far moments exceed their noise, for a slope: public. Many columns take less of it than of the least
    direction; with few the moments vary more from draw to draw. Means within levels take more, and of two factors that
    seem to determine each other hardly any call has an answer."""
    columns = layout.numbers
    numbers = predicted_signal(columns, n, layout.as_numbers(rho)) + TAKEN[1] * columns - 10 / columns**2
    if not layout.sizes:
        return numbers
    return min(numbers - OF_LEVELS, LEAST_PREDICTED / max(layout.level_noise(n, rho), 1e-9))


def _farther(moments: JointMoments) -> float:
    """Return how far from the middle the farther arm lies in the released shape, in lengths rows were shortened to."""
    if not moments.deviation:
        return 0.0
    away = np.array([[-1.0], [1.0]]) - moments.centre[1]
    return float(np.linalg.norm(away * np.linalg.inv(moments.spread)[:, 1], axis=1).max()) / moments.radius
