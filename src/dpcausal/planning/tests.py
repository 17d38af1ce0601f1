"""Planning a test of independence: the chance to find a link of a stated strength."""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar, Self, cast

import numpy as np

from dpcausal.core import validate as public
from dpcausal.core.run import plan_call
from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.data.table import Table
from dpcausal.errors import ParameterError
from dpcausal.independence.api import ci_test
from dpcausal.independence.methods import METHODS
from dpcausal.independence.methods.block_test import BlockTest
from dpcausal.independence.question import IndependenceQuestion, IndependenceTest
from dpcausal.planning.task_plan import REACH, Forecast, TablePlan, assumption, level_count, normal, simulate_runs
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.noise import PublicGenerator

WORSE, BETTER = 0.4, 1.5
"""How far other shapes move the chance, in standard deviations of the statistic: measured; skewed columns show more."""
LEARNING, COUNTING = 1.5e-5, 1e-6
"""Seconds that a test takes for each row: of each number in a regression, and beside them; measured."""
ROWS = 300_000
"""Simulated rows of one forecast; long tables are simulated 40 times."""
RARER = " if the second of two categories has a rate of {:g}; far less often if it is rarer"


@dataclass(frozen=True, kw_only=True)
class TestPlan(TablePlan):
    task: ClassVar[str] = "ci_test"
    methods: ClassVar[str] = "independence"
    goal: ClassVar[str] = "probability to detect the association"
    more_is_better: ClassVar[bool] = True
    least: ClassVar[int] = 130
    most: ClassVar[int] = 3_000_000

    correlation: float = assumption(
        "Of x and y once the given columns are known; Cramér's V of levels.", 0.1, 1e-3, 0.99,
    )  # fmt: skip
    x: int = assumption("Number of levels of x and of y; 0 is a number.", 0, 0, 50)
    y: int = assumption("Number of levels of x and of y; 0 is a number.", 0, 0, 50)
    rate: float = assumption("How often the second level occurs, of x and of y where they have two.", 0.5, 0.001, 0.999)
    given: int = assumption("How many numbers are given.", 0, 0, 20)
    cells: int = assumption("How many combinations of levels are given; 1 without any.", 1, 1, 10_000)
    alpha: float = assumption("Level of the test.", 0.05, 1e-6, 0.5)
    method: Any = assumption("As in ci_test.", "auto")

    @classmethod
    def of(
        cls, schema: Schema, *, x: Any, y: Any, given: Any, alpha: float = 0.05, method: Any = "auto", **more: Any
    ) -> Self:
        known = (given,) if isinstance(given, str) else given
        sizes = [level_count(schema.column(one)) for one in (_single(x), _single(y), *known)]
        cells = math.prod(size for size in sizes[2:] if size)
        return cls(x=sizes[0], y=sizes[1], given=sizes[2:].count(0), cells=cells, alpha=alpha, method=method, **more)

    def _planned(self, n: int, loss: Loss) -> tuple[IndependenceTest, float | None, int]:
        # The method, its power where it has a formula, and how many tables are simulated where it has none.
        question = IndependenceQuestion.of(self._table(n), "x", "y", self._given, self.alpha)
        planned = plan_call(question, public.choose_method(self.method, IndependenceTest, METHODS), loss)
        method = cast("IndependenceTest", planned.method)
        usual = self.rate == 0.5 or 2 not in (self.x, self.y)
        chance = method.approximate_power(question, planned.spent, self.correlation) if usual else None
        return method, chance, max(40, min(120, ROWS // n))

    def seconds(self, n: int, loss: Loss) -> float:
        method, chance, many = self._planned(n, loss)
        learns = self.given if isinstance(method, BlockTest) else 0
        return 0.1 if chance is not None else many * (0.008 + n * (LEARNING * learns + COUNTING))

    def expected(self, n: int, loss: Loss) -> Forecast:
        """Return it by the method's own formula, or else from simulated tables."""
        method, chance, many = self._planned(n, loss)
        if chance is not None:
            return Forecast(chance, *_around(chance, chance), f"method {method.name}")
        from scipy.stats import binomtest  # slow to load

        detected = simulate_runs(many, lambda rng: ci_test(
            self._table(n, rng), "x", "y", given=self._given, loss=loss, method=self.method, alpha=self.alpha,
            accept_large_epsilon=True,
        ).decision).count("dependent")  # fmt: skip
        low, high = binomtest(detected, many).proportion_ci(method="wilson")
        return Forecast(detected / many, *_around(low, high), f"method {method.name}, {many} simulated tables")

    def sentence(self, forecast: Forecast) -> str:
        return (
            f"an association of {self.correlation:g} is detected with probability {forecast.accuracy:.2f} "
            f"({forecast.low:.2f} to {forecast.high:.2f})"
            f"{RARER.format(self.rate) if 2 in (self.x, self.y) else ''}"
        )

    @property
    def _given(self) -> list[str]:
        return [*(f"z{place}" for place in range(self.given)), *(["cell"] if self.cells > 1 else [])]

    def _table(self, n: int, rng: PublicGenerator | None = None) -> Table:
        names = ["x", "y", *self._given]
        sizes = {"x": self.x, "y": self.y, "cell": self.cells}
        schema = {name: Levels(range(sizes[name])) if sizes.get(name) else Bounded(-REACH, REACH) for name in names}
        if rng is None:
            return self.table({name: np.zeros(n, dtype=np.int8) for name in names}, schema)
        columns = {name: rng.integers(0, sizes[name], n) if sizes.get(name) else normal(rng, n) for name in names}
        columns |= {name: (rng.random(n) < self.rate).astype(np.int64) for name in "xy" if sizes[name] == 2}
        columns |= self._linked(columns["x"], columns["y"], rng)
        return self.table(columns, schema)

    def _linked(self, x: Any, y: Any, rng: PublicGenerator) -> dict[str, Any]:
        """Return x and y with the link: two numbers are normal, as many levels are copied, else y follows x's codes."""
        r = self.correlation
        if self.x and self.y:
            return {"y": np.where(rng.random(len(x)) < r, x * self.y // self.x, y)}
        if self.y:
            return {"x": r * self._standard(y, self.y) + math.sqrt(1 - r * r) * x}
        return {"y": r * (self._standard(x, self.x) if self.x else x) + math.sqrt(1 - r * r) * y}

    def _standard(self, codes: Any, size: int) -> Any:
        if size == 2:
            return (codes - self.rate) / math.sqrt(self.rate * (1 - self.rate))
        return (codes - (size - 1) / 2) / math.sqrt(max(size * size - 1, 1) / 12)


def _single(named: Any) -> str:
    names = [named] if isinstance(named, str) else list(named)
    if len(names) != 1:
        raise ParameterError("a plan takes one column x and one y")
    return str(names[0])


def _around(low: float, high: float) -> tuple[float, float]:
    below, above = (NormalDist().inv_cdf(min(max(chance, 1e-9), 1 - 1e-9)) for chance in (low, high))
    return NormalDist().cdf(below - WORSE), NormalDist().cdf(above + BETTER)
