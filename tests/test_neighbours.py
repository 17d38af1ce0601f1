"""Neighbours look alike from outside: one replaced row changes no error, no warning and no public field.

Over every back end and every refusal; each way of every call is compared in ``test_registry.py``.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from tests.data.conftest import BACKENDS
from tests.direction.neighbours import spelled
from tests.strategies import observe

SCHEMA = dpc.Schema({"x": dpc.Bounded(-1, 1), "y": dpc.Bounded(-1, 1), "z": dpc.Levels(["no", "yes"])})
START = ("random", "constant", "ties", "missing")
Row = tuple[Any, Any, Any]
REPLACEMENTS: dict[str, Row] = {
    "NaN": (float("nan"), float("nan"), "no"),
    "one NaN": (float("nan"), 0.5, "no"),
    "infinity": (float("inf"), float("-inf"), "yes"),
    "huge": (1.7e308, -1.7e308, "9" * 400),
    "subnormal": (5e-324, -5e-324, ""),
    "minus zero": (-0.0, 0.0, "no"),
    "null": (None, None, None),
    "bounds": (1.0, -1.0, "yes"),
    "just outside": (np.nextafter(1, 2), np.nextafter(-1, -2), "Yes"),
    "text": (0.25, 0.25, 'a "quoted", text\nof two lines'),
    "unseen": (0.1, -0.1, "\U0001f600"),
    "duplicate": (0.0, 0.0, "no"),
}
"""What one person's record becomes."""

EXPECTED = ("ParameterError", "SchemaError", "BudgetExceededError", "LossError", "UnprovenError", "HiddenAnswerError")


def pair(start: str, replacement: Row, rows: int) -> tuple[pa.Table, pa.Table]:
    """Return two tables that differ in their second row, of the same declared types."""
    x = {
        "random": np.random.default_rng([rows, 0]).uniform(-1, 1, rows),
        "constant": np.zeros(rows),
        "ties": np.repeat([-0.5, 0.5], [rows // 2, rows - rows // 2]),
        "missing": np.full(rows, np.nan),
    }[start]
    columns = [list(x), list(x**3 if start == "random" else x[::-1]), ["no", "yes"] * (rows // 2) + ["no"] * (rows % 2)]
    others = [[column[0], new, *column[2:]] for column, new in zip(columns, replacement, strict=True)]
    types = (pa.float64(), pa.float64(), pa.string())

    def table(of: list[list[Any]]) -> pa.Table:
        return pa.table({name: pa.array(v, t) for name, v, t in zip("xyz", of, types, strict=True)})

    return table(columns), table(others)


def outside(frame: Any, ask: Callable[[dpc.Table], Any], protect: str = "everyone") -> tuple[Any, ...]:
    """Return all that an adversary may see of a call, apart from what was released with noise."""
    ledger = dpc.Ledger.in_memory(dpc.PureDP(100), protect=protect, accept_large_epsilon=True)
    outcome = observe(lambda: ask(dpc.Table(frame, SCHEMA, ledger, missing="impute")))
    public: tuple[Any, ...] = ()
    if isinstance(outcome.answer, dpc.Direction):
        answer = outcome.answer
        missing = [getattr(answer, name) is None for name in ("scores", "p_sign", "verdict")]
        guarantee = answer.guarantee.to_dict() | {"ledger_head": None}
        public = (missing, answer.margin_unit, answer.score, answer.method, answer.n, answer.settings, guarantee)
    elif isinstance(outcome.answer, dict):
        public = tuple((name, values.shape, values.dtype) for name, values in outcome.answer.items())
    entries = [(entry.task, entry.loss, entry.unit, str(entry.detail)) for entry in ledger.entries()]
    return (*outcome.verdict, public, str(ledger.remaining), entries)


def alike(ask: Callable[[dpc.Table], Any], start: str, rows: int, make: Callable[[pa.Table], Any]) -> None:
    """Assert that no replacement shows."""
    one = outside(make(pair(start, REPLACEMENTS["null"], rows)[0]), ask)
    assert not one[2], "a warning"
    assert one[0] in ("NoneType", *EXPECTED), one[:2]
    for name, replacement in REPLACEMENTS.items():
        assert outside(make(pair(start, replacement, rows)[1]), ask) == one, (name, start)
    print(f"= {len(REPLACEMENTS)} neighbour pairs with equal outcomes")


def direction(**arguments: Any) -> Callable[[dpc.Table], Any]:
    def ask(table: dpc.Table) -> Any:
        score = "spearman" if arguments.get("protect") == "test" else "lsnm"
        with dpc.simulated_noise(5):
            return dpc.direction(table, "x", "y", **({"loss": dpc.PureDP(1), "score": score} | spelled(arguments)))

    return ask


def arrays(table: pa.Table) -> dict[str, np.ndarray]:
    """Return numpy columns: the quickest frame."""
    return BACKENDS["numpy"](table, Path())


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_a_replaced_row_does_not_show_in_any_kind_of_frame(backend: str, tmp_path: Path) -> None:
    def frame(table: pa.Table) -> Any:
        return BACKENDS[backend](table, tmp_path)

    for start in START:
        alike(lambda table: table.columns(["x", "y", "z"]), start, 9, frame)
    alike(direction(), "random", 12, frame)


REFUSALS: dict[str, Callable[[dpc.Table], Any]] = {
    "a budget too small": direction(loss=dpc.PureDP(101), accept_large_epsilon=True),
    "a large epsilon": direction(loss=dpc.PureDP(21)),
    "a loss of another kind": direction(loss=dpc.ZCDP(1)),
    "an unknown score": direction(score="r2"),
    "too many blocks": direction(blocks=3),
    "no consent": direction(score="iqr", protect="test", published=True),
    "one column twice": lambda table: dpc.direction(table, "x", "x", loss=dpc.PureDP(1)),
    "a pair twice": lambda table: dpc.direction_all(table, [("x", "y"), ("y", "x")], loss=dpc.PureDP(1)),
    "a column of levels": lambda table: dpc.direction(table, "x", "z", loss=dpc.PureDP(1)),
    "an absent column": lambda table: table.columns(["x", "v"]),
    "a pickle": lambda table: table.__reduce_ex__(2),
}


@pytest.mark.parametrize("refusal", sorted(REFUSALS))
def test_a_replaced_row_does_not_change_a_refusal(refusal: str) -> None:
    for start in ("random", "missing"):
        alike(REFUSALS[refusal], start, 9, arrays)
    one, _ = pair("random", REPLACEMENTS["null"], 9)
    assert outside(arrays(one), REFUSALS[refusal])[0] in EXPECTED


FIELDS = ("", "zz", "nan", "1e999", "-inf", '"0,5"', '"a\nb"', " 0.5 ", "0x1p3", "9" * 500, "1_000", "True", "\u0660")


def test_a_replaced_field_does_not_show_in_a_text_file(tmp_path: Path) -> None:
    def file(field: str) -> Path:
        path = tmp_path / "table.csv"
        rows = ["0.5,0.25,no"] * 4 + [f"{field},{field},{field}"] + ["-0.5,-0.25,yes"] * 4
        path.write_text("x,y,z\n" + "\n".join(rows) + "\n", encoding="utf-8")
        return path

    for ask, protect in ((direction(), "everyone"), (direction(protect="test"), "test"),
                         (lambda table: table.columns(["z", "x"]), "everyone")):  # fmt: skip
        first = outside(file("0.1"), ask, protect)
        assert first[0] == "NoneType"
        for field in FIELDS:
            assert outside(file(field), ask, protect) == first, field


def test_a_difference_would_be_seen() -> None:
    def leaky(table: dpc.Table) -> Any:
        if np.isnan(table.spec.source.collect(["x"]).numbers("x")).any():
            raise dpc.errors.SchemaError("column 'x' has missing values")
        return table.columns(["x"])

    for ask in (leaky, lambda table: print(table.columns(["x"])["x"][1])):
        with pytest.raises(AssertionError):
            alike(ask, "random", 9, arrays)
