"""Planning effects over time, of persons and of one unit: half the width of an interval, from simulated panels."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.data.panels.panel import Panel
from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.data.table import Table
from dpcausal.effects.did.api import did
from dpcausal.errors import ParameterError
from dpcausal.planning.task_plan import (
    LARGEST_WEIGHT,
    IntervalWidthPlan,
    assumption,
    level_count,
    normal,
    unlimited_ledger,
    weights,
)
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.simulate import factor_panel
from dpcausal.synthetic_control.api import synthetic_control

EVEN, USUAL = 0.5, 0.1
"""The share of treated and the spread, as a part of the width, that are assumed where they are not stated."""
UNSTATED: dict[str, Any] = {"share": 0.05, "spread": 0.3}
"""For the far end of the range."""


@dataclass(frozen=True, kw_only=True)
class DidPlan(IntervalWidthPlan):
    """What is assumed of differences in differences: one cohort, treated from the middle period on, and one never."""

    task: ClassVar[str] = "did"
    records: ClassVar[str] = "persons"
    relative_error: ClassVar[float] = 0.25
    no_interval_note: ClassVar[str] = "; none where outcomes are skewed or have long tails"
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
    covariates: int = assumption("Numbers that are adjusted for.", 0, 0, 20)
    largest_weight: float = assumption(*LARGEST_WEIGHT)
    coverage: float = assumption("Of the interval.", 0.95, 0.5, 0.999)

    @classmethod
    def of(
        cls, schema: Schema, *, time: str, outcome: str, cohort: str, adjust: Iterable[str] = (),
        coverage: float = 0.95, **more: Any,
    ) -> Self:  # fmt: skip
        declared, never = schema.column(outcome), schema.column(cohort)
        if not isinstance(declared, Bounded) or isinstance(never, Bounded):
            raise ParameterError("a plan of did takes a bounded outcome and a cohort of levels")
        periods, covariates = level_count(schema.column(time)), len(tuple(adjust))
        return cls(periods=periods, width=declared.width, covariates=covariates, coverage=coverage, **more)

    @property
    def condition(self) -> str:
        share, spread = self.stated
        return (f" if {100 * share:g} % are treated, all from the middle period on, and a person varies by an SD of "
                f"{spread * self.width:.2g}")  # fmt: skip

    @property
    def stated(self) -> tuple[float, float]:
        """The share and the spread that are simulated."""
        return EVEN if self.share is None else self.share, USUAL if self.spread is None else self.spread

    @property
    def far_end(self) -> dict[str, Any]:
        return {name: value for name, value in UNSTATED.items() if getattr(self, name) is None}

    @property
    def cautious(self) -> bool:
        return self.share is None

    @property
    def range_condition(self) -> str:
        parts = [f"{100 * UNSTATED['share']:g} % or more are treated"] if self.share is None else []
        if self.spread is None:
            low, high = USUAL * self.width, UNSTATED["spread"] * self.width
            parts.append(f"a person varies by an SD of {low:.2g} to {high:.2g}")
        return f" where {' and '.join(parts)}" if parts else ""

    def simulate_once(self, n: int, loss: Loss, rng: PublicGenerator) -> tuple[tuple[float, float] | None, str]:
        person, time = np.divmod(np.arange(n * self.periods), self.periods)
        begins, half, (share, spread) = self.periods // 2, self.width / 2, self.stated
        cohort = np.where(rng.random(n) < share, begins, self.periods)[person]
        outcome = spread * self.width * (normal(rng, n)[person] + normal(rng, n * self.periods))
        names = [f"covariate {k}" for k in range(self.covariates)]
        schema = Schema({"time": Levels(range(self.periods)), "cohort": Levels([begins, self.periods]),
                         "outcome": Bounded(-half, half), **{name: Bounded(-5, 5) for name in names}})  # fmt: skip
        frame = {"person": person, "time": time, "cohort": cohort, "outcome": np.clip(outcome, -half, half),
                 **{name: normal(rng, n)[person] for name in names}}  # fmt: skip
        frame |= {name: one[person] for name, one in weights(rng, n, self.largest_weight).items()}
        table = Table(frame, schema, unlimited_ledger(person="person"), person="person",
                      weight=("weight", self.largest_weight) if "weight" in frame else None)  # fmt: skip
        result = did(
            table, time="time", outcome="outcome", cohort="cohort", adjust=names, loss=loss, coverage=self.coverage,
            accept_large_epsilon=True,
        )  # fmt: skip
        return (None if result.att is None else result.att.interval), ""


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
