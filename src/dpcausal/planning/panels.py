"""Planning a synthetic control: half the width of its interval, from calls on simulated panels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpcausal.core import validate as public
from dpcausal.data.panels.panel import Panel
from dpcausal.planning.effects import IntervalWidthPlan
from dpcausal.planning.task_plan import unlimited_ledger
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.simulate import factor_panel
from dpcausal.synthetic_control.api import synthetic_control


@dataclass(frozen=True, kw_only=True)
class PanelPlan(IntervalWidthPlan):
    """What is assumed of a synthetic control: units follow common factors, as in ``simulate.factor_panel``.

    Parameters
    ----------
    before, after : int
        Periods before and from the start of the treatment.
    width : float
        How far apart the bounds of the outcome are.
    spread : float
        The standard deviation of a unit's own noise, as a part of ``width``.
    shock : float
        How far all units move at the start, as a part of ``width``.
    coverage : float
        Of the interval.
    method : str or method
        As in ``synthetic_control``.
    """

    task: ClassVar[str] = "synthetic_control"
    methods: ClassVar[str] = "synthetic_control"
    records: ClassVar[str] = "donors"
    relative_error: ClassVar[float] = 1.0  # the width is in units of the target's own noise, which differs by unit
    simulated_tables: ClassVar[int] = 25
    quick: ClassVar[bool] = False
    least: ClassVar[int] = 20
    most: ClassVar[int] = 100_000

    before: int = 10
    after: int = 3
    width: float = 2.0
    spread: float = 0.03
    shock: float = 0.1
    coverage: float = 0.9
    method: Any = "auto"

    def __post_init__(self) -> None:
        for name, least in (("before", 2), ("after", 1)):
            public.whole(name, getattr(self, name), least, 500)
        public.number("width", self.width, 1e-9, 1e12)
        public.number("spread", self.spread, 1e-4, 0.3)
        public.number("shock", self.shock, 0.0, 0.3)
        public.number("coverage", self.coverage, 0.5, 0.9999)

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
