"""Made-up tables for independence tests, their neighbours, and what a call brings to the gate on both."""

from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import dpcausal as dpc
from dpcausal.audit import GreyBoxAudit, compare
from dpcausal.core.method import PlannedCall
from dpcausal.core.run import plan_call
from dpcausal.independence.methods import ALL
from dpcausal.independence.question import IndependenceQuestion, IndependenceTest
from dpcausal.papers import BY_TASK, PrivKendall
from tests.conformance import STARTS
from tests.conformance import new_row as any_row
from tests.factories import table as made_table

Rows = npt.NDArray[np.float64]

LOW, HIGH = np.array([-1.0, -1.0, -2.0, 0.0]), np.array([1.0, 3.0, 2.0, 2.0])
new_row = partial(any_row, low=LOW, high=HIGH)
SCHEMA = dpc.Schema(
    {"x": dpc.Bounded(-1, 1), "y": dpc.Bounded(-1, 3), "z": dpc.Bounded(-2, 2), "g": dpc.Levels([0, 1, 2]),
     "a": dpc.Levels([0, 1]), "b": dpc.Levels([0, 1, 2])}
)  # fmt: skip
"""a and b are x and y as levels."""
MODEL = dpc.ModelX(mean=lambda Z: Z[:, 0] / 4, sd=0.4)

FEW: dict[str, Any] = {"crt-decision": {"resamples": 25}, "Spearman of Priv-PC": {"strata": 2}}
"""Few copies and strata: neither bears on what one row can move."""


def way(name: str, **options: Any) -> IndependenceTest:
    """Return a method by its name with few copies, and a model where it needs one."""
    taken = {field.name for field in fields(KINDS[name])}
    few: dict[str, Any] = {"resamples": 19, "model_x": MODEL, "constants": "corrected"}
    return KINDS[name](**{**{key: value for key, value in few.items() if key in taken}, **FEW.get(name, {}), **options})


PAPERS = BY_TASK["independence"].values()
KINDS: dict[str, type[IndependenceTest]] = {kind.name: kind for kind in (*ALL, *PAPERS, PrivKendall)}
METHODS = tuple(name for name, kind in KINDS.items() if kind is not PrivKendall)
"""All with a proof."""
BLOCKS = tuple(name for name in METHODS if any(field.name == "blocks" for field in fields(KINDS[name])))
WITH_MODEL = tuple(name for name in METHODS if any(field.name == "model_x" for field in fields(KINDS[name])))


def named(method: str, given: list[str] | None = None) -> tuple[str, str, list[str]]:
    """Return x, y and the given columns of a method's question: levels where it takes nothing else."""
    fixed: dict[str, list[str]] = {"hsic": [], "strata-covariance": ["g"], "counts": ["g"]}
    x, y = ("a", "b") if method == "counts" else ("x", "y")
    return x, y, fixed.get(method, ["z", "g"] if given is None else given)


def frame(rows: Rows) -> dict[str, Any]:
    columns: dict[str, Any] = {name: rows[:, place].copy() for place, name in enumerate("xyz")}
    whole = np.where(np.isfinite(rows), rows, 0)
    levels = {"g": (whole[:, 3], 2), "a": (whole[:, 0] + 0.5, 1), "b": (whole[:, 1], 2)}
    return columns | {name: np.clip(np.rint(codes), 0, most).astype(np.int64) for name, (codes, most) in levels.items()}


def ask(rows: Rows, method: str | IndependenceTest = "gcm", **arguments: Any) -> Any:
    """Ask at ε = 1 from a ledger of that budget in memory; options of the method stand among the arguments."""
    if isinstance(method, str):
        own = {field.name for field in fields(KINDS[method])}
        method = way(method, **{name: arguments.pop(name) for name in tuple(arguments) if name in own})
    loss = arguments.pop("loss", dpc.PureDP(1))
    ledger = dpc.Ledger.without_privacy() if isinstance(loss, dpc.NoPrivacy) else dpc.Ledger.in_memory(loss)
    table = dpc.Table(frame(rows), arguments.pop("schema", SCHEMA), ledger, missing=arguments.pop("missing", "impute"))
    x, y, given = named(method.name)
    return dpc.ci_test(table, x, y, given=arguments.pop("given", given), loss=loss, method=method, **arguments)


def answer_of(
    frame: Any, declared: Any, x: Any = "x", y: str = "y", *, given: list[str], loss: Any, seed: int = 1, **more: Any
) -> Any:
    """Return the answer from columns, declared alike or by a schema, under simulated noise; the ledger has the loss."""
    schema = declared if isinstance(declared, dpc.Schema) else dict.fromkeys(frame, declared)
    table = made_table(frame, schema, loss, missing=more.pop("missing", "drop"))
    with dpc.simulated_noise(seed):
        return dpc.ci_test(table, x, y, given=given, loss=loss, **more)


def plan_of(
    rows: Rows, method: str, epsilon: float = 1.0, missing: str = "impute", **options: Any
) -> PlannedCall[IndependenceQuestion]:
    """Return the settled question of a call."""
    loss = dpc.PureDP(epsilon)
    table = dpc.Table(frame(rows), SCHEMA, dpc.Ledger.in_memory(loss), missing=missing)
    x, y, given = named(method, ["z"])
    question = IndependenceQuestion.of(table, x, y, given, 0.05)
    return plan_call(question, way(method, **options), loss)


def audit(rows: Rows, neighbour: Rows, answers: Any = "low", **arguments: Any) -> GreyBoxAudit:
    return compare(lambda: ask(rows, **arguments), lambda: ask(neighbour, **arguments), answers=answers)


def rows_for(method: str) -> int:
    """Return the number of rows of a small table."""
    return 130 if method in BLOCKS else 61 if method == "neighbours" else 24


def some_rows(rng: np.random.Generator, n: int) -> Iterator[Rows]:
    """Yield tables of structured shapes, and one in which x makes y."""
    for start in STARTS.values():
        yield start(rng, n, LOW, HIGH)
    rows = rng.uniform(LOW, HIGH, (n, 4))
    rows[:, 1] = np.clip(1 + 2 * rows[:, 0], -1, 3)
    yield rows
