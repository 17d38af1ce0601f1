"""Planning effects and regressions: half the width of an interval, from a few calls on simulated rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dpcausal.core import validate as public
from dpcausal.data.recoded import level_of_event
from dpcausal.data.schema import Bounded, Column, Levels, Schema
from dpcausal.effects.api import effect
from dpcausal.effects.cells.corner_counts import arms_of, levels_of
from dpcausal.effects.estimators import METHODS
from dpcausal.effects.estimators.stratified import Stratified
from dpcausal.effects.moments.api import moments
from dpcausal.effects.question import EffectMethod
from dpcausal.effects.result import Effect
from dpcausal.errors import ParameterError
from dpcausal.planning.task_plan import (
    LARGEST_WEIGHT,
    REACH,
    Forecast,
    IntervalWidthPlan,
    TablePlan,
    assumption,
    fewer_rows,
    level_count,
    normal,
    simulate_runs,
    sizes_in,
    stratum_count,
    weights,
)
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.noise import PublicGenerator

TENTH, FEW = 0.1, 0.02
"""Shares of treated where none is stated, beside arms of one size: a second one, and the far end of the range."""
USUAL, LITTLE, MUCH = 0.15, 0.1, 0.3
"""The outcome's spread, as a part of its width, and those for the near and the far end."""
USUAL_CLUSTERS = 40
"""Where clusters are named and their number is not stated."""
FEWEST_CLUSTERS = 10
"""So many are simulated at least, where fewer rows are."""
MIDDLE, LOW = 0.5, 0.1
"""Where the outcome's mean is assumed between its bounds, and for the far end."""
TREATMENT_TREND = 0.24
"""The simulated treatment is so much more frequent, as a share, by a standard deviation of a number adjusted for."""


@dataclass(frozen=True, kw_only=True)
class EffectPlan(IntervalWidthPlan, TablePlan):
    task: ClassVar[str] = "effect"
    methods: ClassVar[str] = "effects"
    relative_error: ClassVar[float] = 0.25
    least: ClassVar[int] = 100
    everyone: ClassVar[bool] = False
    """Whether, where there are groups, the interval of all records is predicted."""

    outcome: int = assumption("Number of levels of the outcome, 2; 0 is a number.", 0, 0, 2)
    width: float = assumption("How far apart the bounds of the outcome are; 1 for two levels.", 1.0, 1e-9, 1e12)
    spread: float | None = assumption(
        "The outcome's standard deviation within treatment and strata, divided by width: 0.1 is an SD of 15 for bounds "
        "70 to 220; of numbers. By default 0.15, and the range covers 0.1 to 0.3.", None, 1e-3, 0.5,
    )  # fmt: skip
    mean: float | None = assumption(
        "Where the outcome's mean lies, 0 at the lower bound and 1 at the upper; of numbers. By default 0.5, and the "
        "range covers 0.1.", None, 0.0, 1.0,
    )  # fmt: skip
    rate: float = assumption("How often the second of two levels of the outcome occurs.", 0.5, 0.001, 0.999)
    share: float | None = assumption(
        "Of the records that are treated. By default the range covers 0.02 to 0.5; the accuracy is for 0.02 where "
        "confounders are adjusted for, else for 0.5.", None, 0.001, 0.999,
    )  # fmt: skip
    rarest: float | None = assumption(
        "Share of the treated in the stratum that has fewest of them; the others lie between it and its mirror about "
        "share. By default share in all strata.", None, 0.001, 0.999,
    )  # fmt: skip
    missing: float = assumption("Share of the records without an outcome.", 0.0, 0.0, 0.99)
    largest_weight: float = assumption(*LARGEST_WEIGHT)
    groups: int = assumption(
        "Number of groups with an effect each, 0 for none; the width is then that of a group's interval.", 0, 0, 1_000,
    )  # fmt: skip
    clusters: int = assumption(
        "Number of clusters of one size that are treated as a whole, with inference by cluster; 0 for none.",
        0, 0, 100_000,
    )  # fmt: skip
    intraclass: float = assumption("Intra-class correlation of the outcome in clusters.", 0.05, 0.0, 0.99)
    adjust: int = assumption("How many numbers are adjusted for.", 0, 0, 20)
    confounding: float = assumption(
        "Correlation of the outcome with the first number that is adjusted for, with which treatment goes, too.",
        0.3, 0.0, 0.9,
    )  # fmt: skip
    cells: int = assumption("How many combinations of levels are adjusted for; 1 without any.", 1, 1, 10_000)
    levels: str = assumption("Numbers of levels of the categories beside numbers that are adjusted for: 5,5,2.", "")
    parts: str = assumption("Into how many parts numbers with cuts are cut, beside numbers without cuts: 4,3.", "")
    estimand: str = assumption("As in effect.", "ate")
    coverage: float = assumption("Of the interval.", 0.95, 0.5, 0.999)
    method: Any = assumption(
        "As in effect. RandomizedTrial is planned for its own arms: sizes in the same proportions for n records, or "
        "probabilities; share has no effect.", "auto",
    )  # fmt: skip
    arms: int = assumption("Number of levels of the treatment; a trial has its own.", 2, 2, 100)
    treated: int = assumption("Of a trial of several arms: the place of the treated level, −1 the last.", -1)
    control: int = assumption("Of a trial of several arms: the place of the control level, −1 the last.", 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._levels, self._parts
        if self.rarest is not None and self.rarest > self.treated_share:
            text = f"rarest must be at most the share of treated, {self.treated_share:g}"
            raise ParameterError(text, argument="rarest", rule="range", value=self.rarest)

    @classmethod
    def of(
        cls, schema: Schema, *, treatment: str, outcome: str, adjust: Any, coverage: float = 0.95,
        method: Any = "auto", treated: object = None, control: object = None, groups: str | None = None,
        cluster: str | None = None, event: object = None, **more: Any,
    ) -> Self:  # fmt: skip
        arms = levels_of(schema.column(treatment))
        more = {"arms": len(arms)} | more
        more["control"], more["treated"] = arms_of(arms, treatment, treated, control)
        more = more if cluster is None else {"clusters": USUAL_CLUSTERS} | more
        declared = schema.column(outcome)
        if event is not None and level_of_event(outcome, declared, event) == 0 and "rate" in more:
            more["rate"] = 1 - more["rate"]
        columns = [schema.column(name) for name in public.names("adjust", adjust) if name != groups]
        sizes, numbers = [stratum_count(one) for one in columns], [isinstance(one, Bounded) for one in columns]
        if 0 in sizes:  # then methods may take categories as levels added up, and numbers with cuts as numbers
            counted = [(str(size), number) for size, number in zip(sizes, numbers, strict=True) if size]
            for name, cut in (("levels", False), ("parts", True)):
                more = {name: ",".join(size for size, number in counted if number == cut)} | more
        more = {"adjust": sizes.count(0), "cells": 1 if 0 in sizes else math.prod(sizes)} | more
        return cls(
            outcome=level_count(declared), width=declared.width if isinstance(declared, Bounded) else 1.0,
            groups=0 if groups is None else len(levels_of(schema.column(groups))), coverage=coverage, method=method,
            **more,
        )  # fmt: skip

    @property
    def condition(self) -> str:
        each = " in each group" if self.groups and not self.everyone else ""
        parts = [] if self.outcome else [f"the outcome's SD is {self.outcome_spread * self.width:.2g}"]
        if self.clusters and not self.design.is_trial:
            each += f" with {self.clusters} clusters of intra-class correlation {self.intraclass:g}"
        if not self.design.is_trial:
            lowest = "" if self.rarest is None else f" ({100 * self.rarest:g} % in the stratum with fewest)"
            unstated = self.share is None and self.rarest is None
            even = unstated and self.arms == 2
            treated = "half of each stratum is" if even else f"{100 * self.treated_share:.3g} % are"
            parts.insert(0, f"{treated} treated{lowest}")
        if self.largest_weight > 1:
            parts.append(f"the largest weight is {self.largest_weight:g} times the mean")
        return f"{each} if {' and '.join(parts)}" if parts else each

    @property
    def range_condition(self) -> str:
        parts = []
        if self.share is None and self.rarest is None and not self.design.is_trial:
            parts.append(f"{100 * FEW:g} % or more are treated")
        if self.spread is None and not self.outcome:
            parts.append(f"the SD is {LITTLE * self.width:.2g} to {MUCH * self.width:.2g}")
        elif self.mean is None and not self.outcome:
            parts.append(f"the mean lies at {100 * LOW:g} to {100 * MIDDLE:g} % of the range")
        return f" where {' and '.join(parts)}" if parts else ""

    @property
    def outcome_spread(self) -> float:
        return USUAL if self.spread is None else self.spread

    @property
    def _levels(self) -> list[int]:
        return sizes_in("levels", self.levels, 2, 10_000)

    @property
    def _parts(self) -> list[int]:
        return sizes_in("parts", self.parts, 2, 1_000)

    @property
    def treated_share(self) -> float:
        return 1 / self.arms if self.share is None else self.share

    @property
    def design(self) -> EffectMethod:
        """The method whose assignment is simulated."""
        return self.method if isinstance(self.method, EffectMethod) else Stratified()

    @property
    def _unstated(self) -> dict[str, tuple[float, float]]:
        """The near and the far end of the assumptions that are not stated."""
        unstated: dict[str, tuple[float, float]] = {}
        if self.share is None and self.rarest is None and not self.design.is_trial:
            unstated["share"] = 1 / self.arms, FEW
        if self.spread is None and not self.outcome:
            unstated["spread"] = LITTLE, MUCH
        if self.mean is None and not self.outcome:
            unstated["mean"] = MIDDLE, LOW
        return unstated

    @property
    def far_end(self) -> dict[str, Any]:
        return {name: far for name, (_, far) in self._unstated.items()}

    @property
    def cautious(self) -> bool:
        return "share" in self._unstated and bool(self.adjust or self.cells > 1 or self.levels or self.parts)

    def expected(self, n: int, loss: Loss) -> Forecast:
        forecast, unstated = super().expected(n, loss), self._unstated
        if "share" in unstated:
            tenth = self._interval_text(replace(self, share=TENTH), n, loss)
            forecast = forecast._replace(others=f"{tenth} if one in ten is")
        if unstated:
            near: dict[str, Any] = {name: value for name, (value, _) in unstated.items()}
            low = replace(self, **near).half_widths(self.unsure_tables, n, loss)[0][self.unsure_tables // 2]
            forecast = forecast._replace(low=min(forecast.low, low))
        return forecast._replace(why=forecast.why + self._with_other_assumptions(n, loss))

    def _interval_text(self, other: EffectPlan, n: int, loss: Loss) -> str:
        half = other.half_widths(self.unsure_tables, n, loss)[0][self.unsure_tables // 2]
        return "no interval" if math.isinf(half) else f"±{half:.2g}"

    def _with_other_assumptions(self, n: int, loss: Loss) -> str:
        """Return what the interval would be if the method's own assumptions were made, or not made, as text."""
        (effect,) = simulate_runs(1, partial(self._simulated_effect, n, loss))
        if effect.method not in METHODS:  # a published system
            return ""
        method, text = METHODS[effect.method](**effect.settings), ""
        for option, value in method.assumptions:
            stated = getattr(method, option) == value
            changed: Any = {option: getattr(type(method)(), option) if stated else value}
            interval = self._interval_text(replace(self, method=replace(method, **changed)), n, loss)
            text += f"; {'without' if stated else 'with'} {option}={value!r} {interval}"
        return text

    def seconds(self, n: int, loss: Loss) -> float:
        return 1.2 if self.adjust else 0.3

    def simulate_once(self, n: int, loss: Loss, rng: PublicGenerator) -> tuple[tuple[float, float] | None, str]:
        columns = 3 + self.adjust + (self.groups > 0) + len(self._levels) + len(self._parts)
        fewer, scaled, factor = fewer_rows(n, loss, columns)
        effect = self._simulated_effect(fewer, scaled, rng, n)
        interval, reason = effect.interval, effect.interval_reason
        if self.groups and not self.everyone:  # the middle one of the groups, those without an interval last
            each = sorted(effect.by_group, key=lambda one: math.inf if (of := one.interval) is None else of[1] - of[0])
            interval, reason = each[len(each) // 2].interval, each[len(each) // 2].reason
        return (None if interval is None else (factor * interval[0], factor * interval[1])), reason

    def _simulated_effect(self, n: int, loss: Loss, rng: PublicGenerator, whole: int = 0) -> Effect:
        half, flags, numbers = self.width / 2, Levels([0, 1]), [f"z{place}" for place in range(self.adjust)]
        columns: dict[str, Any] = {name: normal(rng, n) for name in numbers}
        made = self.design.simulated_design(n, self.cells, self.treated_share, rng)
        columns["a"] = made.arms
        chance = self._chance_of_treatment(made.strata, columns[numbers[0]] if numbers else None)
        if chance is not None:
            columns["a"] = (rng.random(n) < np.clip(chance, 0.0, 1.0)).astype(np.int64)
        clusters = max(round(self.clusters * n / (whole or n)), min(self.clusters, FEWEST_CLUSTERS))
        if clusters:
            columns["cluster"] = rng.permutation(np.arange(n) % clusters)
            columns["a"] = (rng.permutation(clusters) < self.treated_share * clusters)[columns["cluster"]].astype(int)
        if self.arms > 2 and not self.design.is_trial:
            elsewhere = (columns["a"] == 0) & (rng.random(n) * (self.arms - 1) > 1)
            columns["a"] = np.where(elsewhere, rng.integers(2, self.arms, n), columns["a"])
        pair = (self.control % made.levels, self.treated % made.levels) if made.levels > 2 else (0, 1)
        around, trend = self._numbers(n, rng), np.zeros(n)
        if numbers:
            trend = self.confounding / math.sqrt(1 - self.confounding**2) * columns[numbers[0]]
            around = np.clip(around + trend * self.outcome_spread * self.width, -half, half)
        if clusters:
            common = self.outcome_spread * self.width * normal(rng, clusters)[columns["cluster"]]
            around = math.sqrt(1 - self.intraclass) * around + math.sqrt(self.intraclass) * common
        rate = self.rate + math.sqrt(self.rate * (1 - self.rate)) * trend
        columns["y"] = (rng.random(n) < rate).astype(np.float64) if self.outcome else around
        if self.missing:
            columns["y"] = np.where(rng.random(n) < self.missing, np.nan, columns["y"])
        elif self.outcome:
            columns["y"] = columns["y"].astype(np.int64)
        schema: dict[str, Column] = {"y": flags if self.outcome else Bounded(-half, half)}
        schema["a"] = Levels(range(made.levels if self.design.is_trial else self.arms))
        schema |= {name: Bounded(-REACH, REACH) for name in numbers}
        if self.cells > 1:
            columns["cell"], schema["cell"] = made.strata, Levels(range(self.cells))
        for place, size in enumerate(self._levels):
            columns[f"c{place}"], schema[f"c{place}"] = rng.integers(0, size, n), Levels(range(size))
        for place, size in enumerate(self._parts):
            cuts = [NormalDist().inv_cdf(part / size) for part in range(1, size)]
            columns[f"p{place}"], schema[f"p{place}"] = normal(rng, n), Bounded(-REACH, REACH, cuts=cuts)
        if self.groups:
            columns["group"], schema["group"] = rng.integers(0, self.groups, n), Levels(range(self.groups))
        columns |= weights(rng, n, self.largest_weight)
        return effect(
            self.table(columns, schema, self.largest_weight), treatment="a", outcome="y",
            adjust=[name for name in schema if name not in ("y", "a", "group")], loss=loss, estimand=self.estimand,
            coverage=self.coverage, method=made.method if self.design.is_trial else self.method, control=pair[0],
            treated=pair[1], groups="group" if self.groups else None, cluster="cluster" if clusters else None,
            accept_large_epsilon=True,
        )  # fmt: skip

    def _numbers(self, n: int, rng: PublicGenerator) -> Any:
        half, spread = self.width / 2, self.outcome_spread
        if self.mean is None:
            return np.clip(spread * self.width * normal(rng, n), -half, half)
        mean = min(max(self.mean, 0.001), 0.999)  # of a beta distribution, which has no values at its bounds
        size = max(mean * (1 - mean) / spread**2 - 1, 0.1)
        return self.width * (rng.beta(mean * size, (1 - mean) * size, n) - 0.5)

    def _chance_of_treatment(self, strata: Any, first_number: Any) -> Any:
        """Return each record's probability of treatment, or ``None`` where it is that of the design."""
        if self.design.is_trial:
            return None
        if self.rarest is not None and (self.cells > 1 or first_number is not None):
            steps = first_number / 2 if self.cells == 1 else 2 * strata / (self.cells - 1) - 1
            return self.treated_share + (self.treated_share - self.rarest) * np.clip(steps, -1.0, 1.0)
        if first_number is None:
            return None
        # Bounds then do not show that a probability of treatment is far from 0 and 1, as where there are confounders.
        return self.treated_share * (1 + TREATMENT_TREND * first_number)


class EveryonePlan(EffectPlan):
    """The same of all records, beside groups."""

    everyone: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class MomentsPlan(IntervalWidthPlan, TablePlan):
    """What is assumed of a regression read off moments: columns of numbers, with homoscedastic errors."""

    task: ClassVar[str] = "moments"
    goal: ClassVar[str] = "half the width of a slope's interval, in standard deviations"
    relative_error: ClassVar[float] = 0.15
    no_interval_note: ClassVar[str] = "; none where columns are skewed"
    least: ClassVar[int] = 100

    columns: int = assumption("Number of columns, the outcome among them.", 4, 2, 40)
    reach: float = assumption(
        "How many standard deviations the bounds of the columns lie from their means.", REACH, 1.0, 1e6,
    )  # fmt: skip
    explained: float = assumption("Share of the outcome's variance that the line explains.", 0.2, 0.0, 0.99)
    errors: Literal["homoscedastic", "normal"] = assumption("As in ols.", "homoscedastic")
    largest_weight: float = assumption(*LARGEST_WEIGHT)
    coverage: float = assumption("Of the interval.", 0.95, 0.5, 0.999)

    def __post_init__(self) -> None:
        super().__post_init__()
        public.check_choice("errors", self.errors, ("homoscedastic", "normal"))

    @classmethod
    def of(
        cls, schema: Schema, *, columns: Any, robust_for: Any = None, cluster: str | None = None, **more: Any
    ) -> Self:
        for name, given in (("robust_for", robust_for), ("cluster", cluster)):
            if given is not None:
                text = f"a plan of moments is of intervals without {name}: leave it out; with it they are wider"
                raise ParameterError(text, argument=name, rule="choice")
        return cls(columns=len([schema.column(name) for name in columns]), **more)

    def simulate_once(self, n: int, loss: Loss, rng: PublicGenerator) -> tuple[tuple[float, float] | None, str]:
        n, loss, factor = fewer_rows(n, loss, self.columns)
        x, on = normal(rng, self.columns - 1, n), [f"x{place}" for place in range(1, self.columns)]
        signal, rest = math.sqrt(self.explained / (self.columns - 1)), math.sqrt(1 - self.explained)
        y = signal * x.sum(axis=0) + rest * normal(rng, n)
        columns = {name: np.clip(one, -self.reach, self.reach) for name, one in zip(("y", *on), (y, *x), strict=True)}
        schema = dict.fromkeys(columns, Bounded(-self.reach, self.reach))
        table = self.table(columns | weights(rng, n, self.largest_weight), schema, self.largest_weight)
        released = moments(table, [*schema], loss=loss, accept_large_epsilon=True)
        regression = released.ols("y", on, errors=self.errors, coverage=self.coverage)
        ends = regression["x1"].interval
        return (None if ends is None else (factor * ends[0], factor * ends[1])), regression.interval_reason
