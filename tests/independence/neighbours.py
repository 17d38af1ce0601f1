"""Made-up tables for independence tests, their neighbours, and what a call brings to the gate on both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import dpcausal as dpc
from dpcausal.audit import GreyBoxAudit, compare
from dpcausal.independence.decide import ci_test
from dpcausal.independence.model_x import ModelX
from dpcausal.independence.plan import ROUTES, checked
from dpcausal.independence.route import OPTIONS, Plan
from tests.conformance import STARTS

Rows = npt.NDArray[np.float64]

LOW, HIGH = np.array([-1.0, -1.0, -2.0, 0.0]), np.array([1.0, 3.0, 2.0, 2.0])
SCHEMA = dpc.Schema(
    {"x": dpc.Bounded(-1, 1), "y": dpc.Bounded(-1, 3), "z": dpc.Bounded(-2, 2), "g": dpc.Levels([0, 1, 2])}
)
MODEL = ModelX(mean=lambda Z: Z[:, 0] / 4, sd=0.4)

BLOCKS = ("gcm", "gcm-weighted", "crt", "cpt", "test-of-tests")
WHOLE = ("gcm-scalar", "gcm-smooth", "gcm-published", "crt-decision", "crt-published", "kendall", "spearman", "hsic")
METHODS = (*BLOCKS, *WHOLE)
WITH_MODEL = ("crt", "cpt", "crt-decision", "crt-published")

FEW: dict[str, Any] = {
    "gcm": {"resamples": 19}, "gcm-weighted": {"resamples": 19}, "crt": {"resamples": 19}, "cpt": {"resamples": 19},
    "crt-decision": {"resamples": 25}, "hsic": {"resamples": 19},
}  # fmt: skip
"""Few copies: neither bears on what one row can move."""


def loss_of(method: str, epsilon: float = 1.0) -> dpc.PureDP | dpc.ApproxDP:
    return dpc.ApproxDP(epsilon, 1e-6) if method == "gcm-smooth" else dpc.PureDP(epsilon)


def frame(rows: Rows) -> dict[str, Any]:
    columns: dict[str, Any] = {name: rows[:, place].copy() for place, name in enumerate("xyz")}
    codes = np.where(np.isfinite(rows[:, 3]), rows[:, 3], 0)
    return columns | {"g": np.clip(np.rint(codes), 0, 2).astype(np.int64)}


def ask(rows: Rows, method: str = "gcm", **arguments: Any) -> Any:
    """Ask at ε = 1 from a ledger of that budget in memory."""
    loss = arguments.pop("loss", loss_of(method))
    ledger = dpc.Ledger.without_privacy() if isinstance(loss, dpc.NoPrivacy) else dpc.Ledger.in_memory(loss)
    table = dpc.Table(frame(rows), arguments.pop("schema", SCHEMA), ledger)
    given = arguments.pop("given", [] if method == "hsic" else ["z", "g"])
    if method in WITH_MODEL:
        arguments.setdefault("model_x", MODEL)
    settings = {**FEW.get(method, {}), **arguments}
    return ci_test(table, "x", "y", given=given, loss=loss, method=method, **settings)  # type: ignore[arg-type]


def plan_of(rows: Rows, method: str, epsilon: float = 1.0, **arguments: Any) -> tuple[dpc.Table, Plan]:
    """Return a table and the plan of a call on it."""
    loss = loss_of(method, epsilon)
    options: dict[str, Any] = dict.fromkeys(OPTIONS)
    options |= {"model_x": MODEL} if method in WITH_MODEL else {}
    options |= {"resamples": 19} if "resamples" in ROUTES[method].takes else {}
    table = dpc.Table(frame(rows), SCHEMA, dpc.Ledger.in_memory(loss))
    given = [] if method == "hsic" else ["z"]
    plan = checked(
        table, "x", "y", given, loss, method=method, alpha=0.05, accept_large_epsilon=False, **options | arguments
    )
    return table, plan


def audit(rows: Rows, neighbour: Rows, answers: Any = "low", **arguments: Any) -> GreyBoxAudit:
    return compare(lambda: ask(rows, **arguments), lambda: ask(neighbour, **arguments), answers=answers)


def rows_for(method: str) -> int:
    """Return the number of rows of a small table."""
    return 130 if method in BLOCKS else 24


def some_rows(rng: np.random.Generator, n: int) -> Iterator[Rows]:
    """Yield tables of structured shapes, and one in which x makes y."""
    for start in STARTS.values():
        yield start(rng, n, LOW, HIGH)
    rows = rng.uniform(LOW, HIGH, (n, 4))
    rows[:, 1] = np.clip(1 + 2 * rows[:, 0], -1, 3)
    yield rows


def new_row(rng: np.random.Generator, rows: Rows) -> Rows:
    """Return a row that is extreme, tied, not a number, infinite or anywhere, each column by itself."""
    def value(column: int) -> float:
        near = float(rows[int(rng.integers(len(rows))), column])
        anywhere = float(rng.uniform(LOW[column], HIGH[column]))
        choices = (float(LOW[column]), float(HIGH[column]), near, anywhere, float("nan"), float("inf"))
        return choices[int(rng.integers(6))]

    return np.array([value(column) for column in range(4)])


def replaced(rows: Rows, position: int, new: Rows) -> Rows:
    neighbour = rows.copy()
    neighbour[position] = new
    return neighbour
