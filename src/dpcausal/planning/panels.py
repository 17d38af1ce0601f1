"""Planning effects over time, of persons and of one unit: half the width of an interval, from simulated panels."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.core import validate as public
from dpcausal.data.panels.panel import Panel
from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.data.table import Table
from dpcausal.effects.did.api import did
from dpcausal.effects.did.question import cohorts_of
from dpcausal.errors import ParameterError
from dpcausal.planning.task_plan import (
    LARGEST_WEIGHT,
    Forecast,
    IntervalWidthPlan,
    assumption,
    normal,
    sizes_in,
    unlimited_ledger,
    weights,
)
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.simulate import factor_panel
from dpcausal.synthetic_control.api import synthetic_control

EVEN, USUAL = 0.5, 0.1
"""The share of treated and the spread, as a part of the width, that are assumed where they are not stated."""
TAIL_DEGREES = 4.0
"""Of the t distribution of long tails."""
UNSTATED: dict[str, Any] = {"share": 0.05, "spread": 0.3}
"""For the far end of the range."""


@dataclass(frozen=True, kw_only=True)
class DidPlan(IntervalWidthPlan):
    """What is assumed of differences in differences: treated cohorts, by default one from the middle period on, and one
    never treated."""

    task: ClassVar[str] = "did"
    records: ClassVar[str] = "persons"
    relative_error: ClassVar[float] = 0.25
    least: ClassVar[int] = 200
    most: ClassVar[int] = 200_000

    periods: int = assumption("Number of periods.", 4, 2, 30)
    width: float = assumption("How far apart the bounds of the outcome are.", 1.0, 1e-9, 1e12)
    spread: float | None = assumption(
        "The standard deviation of a person's outcome from period to period, divided by width. By default 0.1, and the "
        "range covers 0.1 to 0.3.", None, 1e-3, 0.3,
    )  # fmt: skip
    share: float | None = assumption(
        "Of the persons that are treated. By default the range covers 0.05 and more, and the accuracy is for 0.05.",
        None, 0.01, 0.99,
    )  # fmt: skip
    starts: str = assumption(
        "Place of each treated cohort's first treated period, of which the first is 0: 1,3,4. By default one cohort, "
        "from the middle period on.", "",
    )  # fmt: skip
    shares: str = assumption(
        "Share of the persons in each of these cohorts, in their order: 0.04,0.08,0.26. By default share in parts of "
        "one size.", "",
    )  # fmt: skip
    all_treated: bool = assumption("Whether everybody is treated in the end; share then has no effect.", False)
    control: str = assumption("As in did.", "never")
    tails: bool = assumption("Whether outcomes have long tails, as where a few persons vary far more.", False)
    covariates: int = assumption("Numbers that are adjusted for.", 0, 0, 20)
    largest_weight: float = assumption(*LARGEST_WEIGHT)
    coverage: float = assumption("Of the interval.", 0.95, 0.5, 0.999)

    @classmethod
    def of(
        cls, schema: Schema, *, time: str, outcome: str, cohort: str, adjust: Iterable[str] | None = None,
        coverage: float = 0.95, never: Any = None, squares: bool | None = None, cluster: str | None = None, **more: Any,
    ) -> Self:  # fmt: skip
        """Return the plan of a question's cohorts; what ``squares`` says changes little and is not used."""
        if cluster is not None:
            text = "a plan of did is of intervals by persons: leave out cluster; intervals by clusters are wider"
            raise ParameterError(text, argument="cluster", rule="choice")
        declared, groups, periods = (schema.column(name) for name in (outcome, cohort, time))
        if not isinstance(declared, Bounded) or isinstance(groups, Bounded) or isinstance(periods, Bounded):
            raise ParameterError("a plan of did takes a bounded outcome, and a time and a cohort of levels")
        codes = tuple(range(len(periods))), tuple(range(len(groups)))
        starts = cohorts_of(time, periods, codes[0], cohort, groups, codes[1], never).starts
        treated = sorted(start for start in starts if start > 0)
        more.setdefault("starts", ",".join(map(str, treated)))
        more.setdefault("all_treated", -1 not in starts)
        covariates = len(tuple(adjust or ()))
        return cls(periods=len(periods), width=declared.width, covariates=covariates, coverage=coverage, **more)

    def __post_init__(self) -> None:
        super().__post_init__()
        public.check_choice("control", self.control, ("never", "not-yet"))
        if len(self.sizes) != len(self.begins) or (self.shares and self.share is not None):
            text = "shares must be one for each of starts, without share"
            raise ParameterError(text, argument="shares", rule="choice", value=self.shares)
        if self.shares:
            public.number("the sum of shares", sum(self.sizes), 0.01, 0.99)

    @property
    def begins(self) -> list[int]:
        """The place of the first treated period of each treated cohort."""
        return sizes_in("starts", self.starts, 1, self.periods - 1) or [self.periods // 2]

    @property
    def sizes(self) -> list[float]:
        """The treated cohorts' sizes, relative to each other."""
        if not re.fullmatch(r"(0?\.\d+(, *0?\.\d+)*)?", self.shares):
            text = "shares must be numbers with commas, such as 0.1,0.2"
            raise ParameterError(text, argument="shares", rule="numbers", value=self.shares)
        return [float(one) for one in self.shares.split(",") if one] or [1.0] * len(self.begins)

    @property
    def condition(self) -> str:
        share, spread = self.stated
        whom = "all" if self.all_treated else f"{100 * share:g} %"
        size = "" if self.shares else " of one size"
        many = f"in {len(self.begins)} cohorts{size}" if self.starts else "all from the middle period on"
        return f" if {whom} are treated, {many}, and a person varies by an SD of {spread * self.width:.2g}"

    def expected(self, n: int, loss: Loss) -> Forecast:
        """Return it with how many of the simulated tables with long tails have no interval."""
        forecast, long = super().expected(n, loss), replace(self, tails=True)
        without = long.half_widths(self.simulated_tables, n, loss)[0].count(math.inf)
        return forecast._replace(others=f"no interval in {without} of {self.simulated_tables} simulated tables with "
                                        "long tails, and perhaps none where outcomes are skewed")  # fmt: skip

    @property
    def stated(self) -> tuple[float, float]:
        """The share and the spread that are simulated."""
        share = sum(self.sizes) if self.shares else EVEN if self.share is None else self.share
        return share, USUAL if self.spread is None else self.spread

    @property
    def far_end(self) -> dict[str, Any]:
        stated = {"share": self.share is not None or bool(self.shares), "spread": self.spread is not None}
        return {name: value for name, value in UNSTATED.items() if not stated[name]}

    @property
    def cautious(self) -> bool:
        return "share" in self.far_end

    @property
    def range_condition(self) -> str:
        parts = [f"{100 * UNSTATED['share']:g} % or more are treated"] if self.cautious else []
        if self.spread is None:
            low, high = USUAL * self.width, UNSTATED["spread"] * self.width
            parts.append(f"a person varies by an SD of {low:.2g} to {high:.2g}")
        return f" where {' and '.join(parts)}" if parts else ""

    def simulate_once(self, n: int, loss: Loss, rng: PublicGenerator) -> tuple[tuple[float, float] | None, str]:
        person, time = np.divmod(np.arange(n * self.periods), self.periods)
        begins, half, (share, spread) = self.begins, self.width / 2, self.stated
        ends = np.cumsum(self.sizes) / sum(self.sizes) * (1.0 if self.all_treated else share)
        place = np.searchsorted(ends, rng.random(n), side="right")
        cohort = np.where(place < len(begins), np.take([*begins, 0], place, mode="clip"), self.periods)[person]
        outcome = normal(rng, n)[person] + normal(rng, n * self.periods)
        never = [] if self.all_treated else [self.periods]
        levels = [*dict.fromkeys(begins), *never]
        if self.tails:  # a variance by person: steps are those of a t distribution
            outcome *= np.sqrt((TAIL_DEGREES - 2) / rng.chisquare(TAIL_DEGREES, n))[person]
        outcome *= spread * self.width
        names = [f"covariate {k}" for k in range(self.covariates)]
        schema = Schema({"time": Levels(range(self.periods)), "cohort": Levels(levels),
                         "outcome": Bounded(-half, half), **{name: Bounded(-5, 5) for name in names}})  # fmt: skip
        frame = {"person": person, "time": time, "cohort": cohort, "outcome": np.clip(outcome, -half, half),
                 **{name: normal(rng, n)[person] for name in names}}  # fmt: skip
        frame |= {name: one[person] for name, one in weights(rng, n, self.largest_weight).items()}
        table = Table(frame, schema, unlimited_ledger(person="person"), person="person",
                      weight=("weight", self.largest_weight) if "weight" in frame else None)  # fmt: skip
        result = did(
            table, time="time", outcome="outcome", cohort="cohort", adjust=names, loss=loss, coverage=self.coverage,
            control=self.control, never=never, accept_large_epsilon=True,
        )  # fmt: skip
        return result.interval, result.interval_reason


@dataclass(frozen=True, kw_only=True)
class PanelPlan(IntervalWidthPlan):
    """What is assumed of a synthetic control: units follow common factors, as in ``simulate.factor_panel``."""

    task: ClassVar[str] = "synthetic_control"
    methods: ClassVar[str] = "synthetic_control"
    records: ClassVar[str] = "donors"
    relative_error: ClassVar[float] = 1.0  # the width is in units of the target's own noise, which differs by unit
    simulated_tables: ClassVar[int] = 25
    one_in: ClassVar[int] = 25  # intervals are far wider where the target is unlike its donors
    least: ClassVar[int] = 20
    most: ClassVar[int] = 100_000

    before: int = assumption("Periods before the start of the treatment.", 10, 2, 500)
    after: int = assumption("Periods from the start of the treatment.", 3, 1, 500)
    width: float = assumption("How far apart the bounds of the outcome are.", 2.0, 1e-9, 1e12)
    spread: float = assumption("The standard deviation of a unit's own noise, divided by width.", 0.03, 1e-4, 0.3)
    shock: float = assumption("How far all units move at the start, divided by width.", 0.1, 0.0, 0.3)
    coverage: float = assumption("Of the interval.", 0.9, 0.5, 0.9999)
    method: Any = assumption("As in synthetic_control.", "auto")

    @property
    def condition(self) -> str:
        return f" if a unit's own noise has an SD of {self.spread * self.width:.2g}"

    def simulate_once(self, n: int, loss: Loss, rng: PublicGenerator) -> tuple[tuple[float, float] | None, str]:
        made = factor_panel(
            n, before=self.before, after=self.after, shock=2 * self.shock, noise=2 * self.spread,
            seed=int(rng.integers(2**62)),
        )  # fmt: skip
        ledger = unlimited_ledger(unit="unit")
        panel = Panel.from_arrays(made.donors, made.target, start=made.start, bounds=made.bounds, ledger=ledger)
        result = synthetic_control(
            panel, loss=loss, method=self.method, coverage=self.coverage, accept_large_epsilon=True
        )
        ends = result.interval
        return (None if ends is None else (ends[0] * self.width / 2, ends[1] * self.width / 2)), result.interval_reason
