"""Planning effects and regressions: half the width of an interval, from a few calls on simulated rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dpcausal.core import validate as public
from dpcausal.data.schema import Bounded, Column, Levels, Schema
from dpcausal.data.table import Table
from dpcausal.effects.api import effect
from dpcausal.effects.cells.corner_counts import arms_of, levels_of
from dpcausal.effects.did.api import did
from dpcausal.effects.estimators import METHODS
from dpcausal.effects.estimators.stratified import Stratified
from dpcausal.effects.moments.api import moments
from dpcausal.effects.question import EffectMethod
from dpcausal.effects.result import Effect
from dpcausal.errors import ParameterError
from dpcausal.planning.task_plan import REACH, Forecast, TablePlan, TaskPlan, normal, simulate_runs, unlimited_ledger
from dpcausal.planning.tests import levels
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.noise import PublicGenerator

EVEN, FEW = 0.5, 0.05
"""The share of treated that is assumed where none is stated, and one for the far end of the range."""
USUAL, LITTLE, MUCH = 0.2, 0.1, 0.3
"""Likewise the outcome's spread, as a part of its width, and those for the near and the far end."""
UNSURE = 3
"""Calls on simulated rows for each end."""
TREATMENT_TREND = 0.24
"""The simulated treatment is so much more frequent, as a share, by a standard deviation of a number adjusted for."""


@dataclass(frozen=True, kw_only=True)
class IntervalWidthPlan(TaskPlan):
    """An interval of which half the width is predicted."""

    goal: ClassVar[str] = "half the width of the interval"
    more_is_better: ClassVar[bool] = False
    delta: ClassVar[float] = 1e-6
    relative_error: ClassVar[float]
    """How far other rows are from the simulated ones, as a share: measured."""
    no_interval_note: ClassVar[str] = ""
    """Where there may be no interval, as text."""
    simulated_tables: ClassVar[int] = 9
    """Calls on simulated rows; the median and the range of their widths are reported."""

    @abstractmethod
    def simulate_once(self, n: int, loss: Loss, rng: PublicGenerator) -> tuple[tuple[float, float] | None, str]:
        """Return the interval of a call on simulated rows, or why there is none."""

    def expected(self, n: int, loss: Loss) -> Forecast:
        widths, why = [], ""
        for interval, reason in simulate_runs(self.simulated_tables, partial(self.simulate_once, n, loss)):
            widths.append(math.inf if interval is None else (interval[1] - interval[0]) / 2)
            why = reason or why
        widths.sort()
        middle, tenth = widths[len(widths) // 2], len(widths) // 8
        factor = 1 + self.relative_error
        low, high = min(widths[tenth], middle / factor), max(widths[-1 - tenth], middle * factor)
        why_all = f"{len(widths)} simulated tables" + (f"; without an interval where {why}" if why else "")
        return Forecast(middle, low, high, why_all)

    @property
    def assumption_note(self) -> str:
        """What widens it most where an assumption fails, as text."""
        return ""

    def sentence(self, forecast: Forecast) -> str:
        if math.isinf(forecast.accuracy):
            return "no confidence interval is expected" + (f": {forecast.why}" if forecast.why else "")
        high = "none" if math.isinf(forecast.high) else f"{forecast.high:.2g}"
        bounds = f"({forecast.low:.2g} to {high}{self.no_interval_note})"
        level = f"{100 * float(getattr(self, 'coverage', 0.95)):g} % CI"
        return f"{level} about ±{forecast.accuracy:.2g} {bounds}{self.assumption_note}"


@dataclass(frozen=True, kw_only=True)
class EffectPlan(IntervalWidthPlan, TablePlan):
    """What is assumed of an effect.

    Parameters
    ----------
    outcome : int
        Number of levels of the outcome, 2; 0 is a number.
    width : float
        How far apart the bounds of the outcome are; 1 for two levels.
    spread : float, optional
        The outcome's standard deviation within treatment and strata, as a part of ``width``; of numbers.  By default
        0.2, and the range covers 0.1 to 0.3.
    rate : float
        How often the second of two levels of the outcome occurs.
    share : float, optional
        Of the records that are treated.  By default 0.5, and the range covers 0.05.
    missing : float
        Share of the records without an outcome.
    groups : int
        Number of groups whose effects are asked for, 0 for none; the width is then that of a group's interval.
    adjust : int
        How many numbers are adjusted for.
    cells : int
        How many combinations of levels are adjusted for; 1 without any.
    coverage : float
        Of the interval.
    method : str or method
        As in ``effect``.  ``RandomizedTrial`` is planned for its own arms: ``sizes`` in the same proportions for n
        records, or ``probabilities``; ``share`` has no effect.
    treated, control : int
        Of a trial of several arms: the places of the levels that are compared, −1 the last.
    """

    task: ClassVar[str] = "effect"
    methods: ClassVar[str] = "effects"
    relative_error: ClassVar[float] = 0.15
    least: ClassVar[int] = 100

    outcome: int = 0
    width: float = 1.0
    spread: float | None = None
    rate: float = 0.5
    share: float | None = None
    missing: float = 0.0
    groups: int = 0
    adjust: int = 0
    cells: int = 1
    coverage: float = 0.95
    method: Any = "auto"
    treated: int = -1
    control: int = 0

    def __post_init__(self) -> None:
        public.number("width", self.width, 1e-9, 1e12)
        if self.spread is not None:
            public.number("spread", self.spread, 1e-3, 0.5)
        for name in ("rate", "share"):
            if getattr(self, name) is not None:
                public.number(name, getattr(self, name), 0.001, 0.999)
        public.number("missing", self.missing, 0.0, 0.99)
        public.number("coverage", self.coverage, 0.5, 0.999)
        for name, least, most in (("outcome", 0, 2), ("adjust", 0, 20), ("cells", 1, 10_000), ("groups", 0, 1_000)):
            public.whole(name, getattr(self, name), least, most)

    @classmethod
    def of(
        cls, schema: Schema, *, treatment: str, outcome: str, adjust: Any, coverage: float = 0.95,
        method: Any = "auto", treated: object = None, control: object = None, groups: str | None = None, **more: Any,
    ) -> Self:  # fmt: skip
        arms = levels_of(schema.column(treatment))
        more["control"], more["treated"] = arms_of(arms, treatment, treated, control)
        declared = schema.column(outcome)
        sizes = [levels(schema.column(name)) for name in adjust if name != groups]
        width = declared.width if isinstance(declared, Bounded) else 1.0
        return cls(
            outcome=levels(declared), width=width, adjust=sizes.count(0), cells=math.prod(s for s in sizes if s),
            groups=0 if groups is None else len(levels_of(schema.column(groups))), coverage=coverage, method=method,
            **more,
        )  # fmt: skip

    @property
    def assumption_note(self) -> str:
        unsaid = " (set share and spread if known)" if self._unstated else ""
        each = " in each group" if self.groups else ""
        return f"{each}{unsaid}" if self.design.is_trial else f"{each} if {self.treated_share:.0%} are treated{unsaid}"

    @property
    def treated_share(self) -> float:
        """The share that is supposed to be treated."""
        return EVEN if self.share is None else self.share

    @property
    def _unstated(self) -> dict[str, tuple[float, float]]:
        share = {"share": (EVEN, FEW)} if self.share is None and not self.design.is_trial else {}
        return share | ({"spread": (LITTLE, MUCH)} if self.spread is None and not self.outcome else {})

    @property
    def design(self) -> EffectMethod:
        """The method whose assignment is simulated."""
        return self.method if isinstance(self.method, EffectMethod) else Stratified()

    def expected(self, n: int, loss: Loss) -> Forecast:
        forecast = self._with_ends(super().expected(n, loss), n, loss)
        effect = simulate_runs(1, partial(self._simulated_effect, self.method, n, loss))[0]
        if effect.method not in METHODS:  # a published system
            return forecast
        way, why = METHODS[effect.method](**effect.settings), forecast.why
        for option, value in way.assumptions:
            stated = getattr(way, option) == value
            changed: Any = {option: getattr(type(way)(), option) if stated else value}
            other = partial(self._simulated_effect, replace(way, **changed), n, loss)
            ends = [one.interval for one in simulate_runs(self.simulated_tables, other) if one.interval is not None]
            half = sorted((high - low) / 2 for low, high in ends)
            text = f"±{half[len(half) // 2]:.3g}" if 2 * len(half) > self.simulated_tables else "no interval"
            why += f"; {'without' if stated else 'with'} {option}={value!r} {text}"
        return forecast._replace(why=why)

    def _with_ends(self, forecast: Forecast, n: int, loss: Loss) -> Forecast:
        ends = []
        for place in (0, 1) if self._unstated else ():
            assumptions: dict[str, Any] = {name: pair[place] for name, pair in self._unstated.items()}
            one = replace(self, **assumptions)
            calls = simulate_runs(UNSURE, partial(one.simulate_once, n, loss))
            halves = sorted(math.inf if end is None else (end[1] - end[0]) / 2 for end, _ in calls)
            ends.append(halves[UNSURE // 2])
        if not ends:
            return forecast
        return forecast._replace(low=min(forecast.low, *ends[:1]), high=max(forecast.high, *ends[1:]))

    def simulate_once(self, n: int, loss: Loss, rng: PublicGenerator) -> tuple[tuple[float, float] | None, str]:
        effect = self._simulated_effect(self.method, n, loss, rng)
        if not self.groups:
            return effect.interval, effect.interval_reason
        # The middle one of the groups, those without an interval last.
        each = sorted(effect.by_group, key=lambda one: math.inf if (of := one.interval) is None else of[1] - of[0])
        return each[len(each) // 2].interval, each[len(each) // 2].reason

    def _simulated_effect(self, method: Any, n: int, loss: Loss, rng: PublicGenerator) -> Effect:
        half, flags, numbers = self.width / 2, Levels([0, 1]), [f"z{place}" for place in range(self.adjust)]
        columns: dict[str, Any] = {name: normal(rng, n) for name in numbers}
        made = self.design.simulated_design(n, self.cells, self.treated_share, rng)
        columns["a"] = made.arms
        if numbers and not self.design.is_trial:
            # Bounds then do not show that a probability of treatment is far from 0 and 1: as where there are causes.
            chance = self.treated_share * (1 + TREATMENT_TREND * columns[numbers[0]])
            columns["a"] = (rng.random(n) < np.clip(chance, 0.0, 1.0)).astype(np.int64)
        pair = (self.control % made.levels, self.treated % made.levels) if made.levels > 2 else (0, 1)
        spread = USUAL if self.spread is None else self.spread
        around = np.clip(spread * self.width * normal(rng, n), -half, half)
        columns["y"] = (rng.random(n) < self.rate).astype(np.float64) if self.outcome else around
        if self.missing:
            columns["y"] = np.where(rng.random(n) < self.missing, np.nan, columns["y"])
        elif self.outcome:
            columns["y"] = columns["y"].astype(np.int64)
        schema: dict[str, Column] = {"y": flags if self.outcome else Bounded(-half, half)}
        schema["a"] = Levels(range(made.levels))
        schema |= {name: Bounded(-REACH, REACH) for name in numbers}
        if self.cells > 1:
            columns["cell"], schema["cell"] = made.strata, Levels(range(self.cells))
        if self.groups:
            columns["group"], schema["group"] = rng.integers(0, self.groups, n), Levels(range(self.groups))
        return effect(
            self.table(columns, schema), treatment="a", outcome="y", adjust=[*numbers, *(["cell"] * (self.cells > 1))],
            loss=loss, coverage=self.coverage, method=made.method if self.design.is_trial else method,
            control=pair[0], treated=pair[1], groups="group" if self.groups else None, accept_large_epsilon=True,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class MomentsPlan(IntervalWidthPlan, TablePlan):
    """What is assumed of a regression read off moments: columns of numbers, with homoscedastic errors.

    Parameters
    ----------
    columns : int
        Number of columns, the outcome among them.
    reach : float
        How many standard deviations the bounds of the columns lie from their means.
    explained : float
        Share of the outcome's variance that the line explains.
    errors : {"homoscedastic", "normal"}
        As in ``ols``.
    coverage : float
        Of the interval.
    """

    task: ClassVar[str] = "moments"
    goal: ClassVar[str] = "half the width of a slope's interval, in standard deviations"
    relative_error: ClassVar[float] = 0.15
    no_interval_note: ClassVar[str] = "; none where columns are skewed"
    least: ClassVar[int] = 100

    columns: int = 4
    reach: float = REACH
    explained: float = 0.2
    errors: Literal["homoscedastic", "normal"] = "homoscedastic"
    coverage: float = 0.95

    def __post_init__(self) -> None:
        public.whole("columns", self.columns, 2, 40)
        public.number("reach", self.reach, 1.0, 1e6)
        public.number("explained", self.explained, 0.0, 0.99)
        public.check_choice("errors", self.errors, ("homoscedastic", "normal"))
        public.number("coverage", self.coverage, 0.5, 0.999)

    @classmethod
    def of(cls, schema: Schema, *, columns: Any, **more: Any) -> Self:
        return cls(columns=len([schema.column(name) for name in columns]), **more)

    def simulate_once(self, n: int, loss: Loss, rng: PublicGenerator) -> tuple[tuple[float, float] | None, str]:
        x, on = normal(rng, self.columns - 1, n), [f"x{place}" for place in range(1, self.columns)]
        signal, rest = math.sqrt(self.explained / (self.columns - 1)), math.sqrt(1 - self.explained)
        y = signal * x.sum(axis=0) + rest * normal(rng, n)
        columns = {name: np.clip(one, -self.reach, self.reach) for name, one in zip(("y", *on), (y, *x), strict=True)}
        table = self.table(columns, dict.fromkeys(columns, Bounded(-self.reach, self.reach)))
        released = moments(table, columns, loss=loss, accept_large_epsilon=True)
        regression = released.ols("y", on, errors=self.errors, coverage=self.coverage)
        return regression["x1"].interval, regression.interval_reason


@dataclass(frozen=True, kw_only=True)
class DidPlan(IntervalWidthPlan):
    """What is assumed of differences in differences: one cohort, treated from the middle period on, and one never.

    Parameters
    ----------
    periods : int
        Number of periods.
    width : float
        How far apart the bounds of the outcome are.
    spread : float
        The standard deviation of a person's outcome from period to period, as a part of ``width``.
    share : float
        Of the persons that are treated.
    coverage : float
        Of the interval.
    """

    task: ClassVar[str] = "did"
    records: ClassVar[str] = "persons"
    relative_error: ClassVar[float] = 0.15
    no_interval_note: ClassVar[str] = "; none where outcomes are skewed or have long tails"
    quick: ClassVar[bool] = False
    least: ClassVar[int] = 200
    most: ClassVar[int] = 200_000

    periods: int = 4
    width: float = 1.0
    spread: float = 0.1
    share: float = 0.5
    coverage: float = 0.95

    def __post_init__(self) -> None:
        public.whole("periods", self.periods, 2, 30)
        public.number("width", self.width, 1e-9, 1e12)
        public.number("spread", self.spread, 1e-3, 0.3)
        public.number("share", self.share, 0.01, 0.99)
        public.number("coverage", self.coverage, 0.5, 0.999)

    @classmethod
    def of(cls, schema: Schema, *, time: str, outcome: str, cohort: str, coverage: float = 0.95, **more: Any) -> Self:
        declared, never = schema.column(outcome), schema.column(cohort)
        if not isinstance(declared, Bounded) or isinstance(never, Bounded):
            raise ParameterError("a plan of did takes a bounded outcome and a cohort of levels")
        return cls(periods=levels(schema.column(time)), width=declared.width, coverage=coverage, **more)

    def simulate_once(self, n: int, loss: Loss, rng: PublicGenerator) -> tuple[tuple[float, float] | None, str]:
        person, time = np.divmod(np.arange(n * self.periods), self.periods)
        begins, half = self.periods // 2, self.width / 2
        cohort = np.where(rng.random(n) < self.share, begins, self.periods)[person]
        outcome = self.spread * self.width * (normal(rng, n)[person] + normal(rng, n * self.periods))
        schema = Schema({"time": Levels(range(self.periods)), "cohort": Levels([begins, self.periods]),
                         "outcome": Bounded(-half, half)})  # fmt: skip
        frame = {"person": person, "time": time, "cohort": cohort, "outcome": np.clip(outcome, -half, half)}
        result = did(
            Table(frame, schema, unlimited_ledger(person="person"), person="person"), time="time",
            outcome="outcome", cohort="cohort", loss=loss, coverage=self.coverage, accept_large_epsilon=True,
        )  # fmt: skip
        return (None if result.att is None else result.att.interval), ""
