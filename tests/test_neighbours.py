"""Neighbours look alike from outside: one replaced row changes no error, no warning and no public field.

About 1,400 pairs with a fixed seed, over every back end and every way to ask; the noisy values themselves are left
to the audits.
"""

from __future__ import annotations

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
BUDGET = dpc.PureDP(100)

Row = tuple[Any, Any, Any]
REPLACEMENTS: dict[str, Row] = {
    "NaN": (float("nan"), float("nan"), "no"), "one NaN": (float("nan"), 0.5, "no"),
    "infinity": (float("inf"), float("-inf"), "yes"), "huge": (1.7e308, -1.7e308, "9" * 400),
    "subnormal": (5e-324, -5e-324, ""), "minus zero": (-0.0, 0.0, "no"), "null": (None, None, None),
    "bounds": (1.0, -1.0, "yes"), "just outside": (np.nextafter(1, 2), np.nextafter(-1, -2), "Yes"),
    "text": (0.25, 0.25, 'a "quoted", text\nof two lines'), "unseen": (0.1, -0.1, "\U0001f600"),
    "duplicate": (0.0, 0.0, "no"),
}  # fmt: skip
"""What one person's record becomes."""

START = {"random": 0, "constant": 1, "ties": 2, "missing": 3}


def pair(start: str, replacement: Row, rows: int) -> tuple[pa.Table, pa.Table]:
    """Return two tables that differ in their second row, of the same declared types."""
    generator = np.random.default_rng([rows, START[start]])
    x = {
        "random": generator.uniform(-1, 1, rows), "constant": np.zeros(rows),
        "ties": np.repeat([-0.5, 0.5], [rows // 2, rows - rows // 2]), "missing": np.full(rows, np.nan),
    }[start]  # fmt: skip
    y = x**3 if start == "random" else x[::-1]
    z = ["no", "yes"] * (rows // 2) + ["no"] * (rows % 2)
    columns = [list(x), list(y), z]
    others = [[column[0], new, *column[2:]] for column, new in zip(columns, replacement, strict=True)]
    types = (pa.float64(), pa.float64(), pa.string())

    def table(of: list[list[Any]]) -> pa.Table:
        return pa.table({name: pa.array(v, t) for name, v, t in zip("xyz", of, types, strict=True)})

    return table(columns), table(others)


def paid(budget: dpc.PureDP, protect: str) -> dpc.Ledger:
    return dpc.Ledger.in_memory(budget, protect=protect, accept_large_epsilon=True)


def outside(frame: Any, ask: Callable[[dpc.Table], Any], budget: dpc.PureDP | None = BUDGET) -> tuple[Any, ...]:
    """Return all that an adversary may see of a call, apart from what was released with noise."""
    protect = getattr(ask, "protect", "everyone")
    ledger = dpc.Ledger.without_privacy() if budget is None else paid(budget, protect)
    outcome = observe(lambda: ask(dpc.Table(frame, SCHEMA, ledger, missing="impute")))
    public: tuple[Any, ...] = ()
    if isinstance(outcome.answer, dpc.Direction):
        answer = outcome.answer
        guarantee = answer.guarantee.to_dict() | {"ledger_head": None}
        public = (
            answer.margin_unit, answer.scores is None, answer.p_sign is None, answer.verdict is None,
            answer.score, answer.method,
            answer.columns, answer.n, answer.settings, guarantee,
        )  # fmt: skip
    elif isinstance(outcome.answer, dpc.DirectionSet):
        many = outcome.answer
        parts = [(one.columns, one.score, one.blocks, one.spent, one.margin_unit) for one in many.directions]
        public = (parts, many.pairs, many.scores, many.n, many.guarantee.to_dict() | {"ledger_head": None})
    elif isinstance(outcome.answer, dict):
        public = tuple((name, values.shape, values.dtype) for name, values in outcome.answer.items())
    entries = [(entry.task, entry.loss, entry.unit, str(entry.detail)) for entry in ledger.entries()]
    return (*outcome.verdict, public, str(ledger.remaining), entries)


def alike(ask: Callable[[dpc.Table], Any], start: str, rows: int, make: Callable[[pa.Table], Any], **where: Any) -> int:
    """Assert that no replacement shows, and return the number of pairs."""
    for name, replacement in REPLACEMENTS.items():
        one, other = pair(start, replacement, rows)
        seen = outside(make(one), ask, **where)
        assert seen == outside(make(other), ask, **where), (name, start)
        assert not seen[2], "a warning"
        assert seen[0] in ("NoneType", *EXPECTED), seen[:2]
    print(f"= {len(REPLACEMENTS)} neighbour pairs with equal outcomes")
    return len(REPLACEMENTS)


EXPECTED = ("ParameterError", "SchemaError", "BudgetExceededError", "LossError", "UnprovenError", "HiddenAnswerError")


def usual(arguments: dict[str, Any]) -> dict[str, Any]:
    scores = {"everyone": "igci", "test": "spearman", "training": "hsic"}
    return {"loss": dpc.PureDP(1), "score": scores[arguments.get("protect", "everyone")]}


def direction(**arguments: Any) -> Callable[[dpc.Table], Any]:
    def ask(table: dpc.Table) -> Any:
        with dpc.simulated_noise(5):
            return dpc.direction(table, "x", "y", **(usual(arguments) | spelled(arguments)))

    return protecting(ask, arguments)


def protecting(ask: Any, arguments: dict[str, Any]) -> Any:
    """Return a question that says which rows its ledger is to protect."""
    ask.protect = arguments.get("protect", "everyone")
    return ask


def arrays(table: pa.Table) -> dict[str, np.ndarray]:
    """Return numpy columns: the quickest frame."""
    return BACKENDS["numpy"](table, Path())


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_a_replaced_row_does_not_show_in_any_kind_of_frame(backend: str, tmp_path: Path) -> None:
    def frame(table: pa.Table) -> Any:
        return BACKENDS[backend](table, tmp_path)

    pairs = 0
    for start in START:
        pairs += alike(lambda table: table.columns(["x", "y", "z"]), start, 9, frame)
    pairs += alike(direction(), "random", 12, frame)
    assert pairs == 5 * len(REPLACEMENTS)  # 600 over the ten back ends


WAYS: list[dict[str, Any]] = [
    *({"score": score} for score in ("hsic", "igci", "igci-gaussian", "igci-slope")),
    *({"score": score, "protect": "test"} for score in ("hsic", "spearman", "kendall", "iqr")),
    *({"score": score, "protect": "test", "release_scores": True} for score in ("kendall", "iqr")),
    *({"score": score, "protect": "test", "published": True} for score in ("hsic", "kendall")),
    *({"score": score, "protect": "training", "penalty": 0.5} for score in ("hsic", "iqr")),
    {"score": "kendall", "protect": "training", "published": True, "loss": dpc.ApproxDP(1, 1e-6)},
    {"method": "verdict"},
    {"score": "lsnm"},
    {"score": "iqr", "protect": "test", "method": dpc.papers.AnmTestPrivacyIqr(constants="corrected"),
     "loss": dpc.ApproxDP(1, 0.1)},
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: " ".join(map(str, way.values())))
@pytest.mark.parametrize("start", ["random", "constant", "missing"])
def test_a_replaced_row_does_not_show_in_any_way_to_ask(way: dict[str, Any], start: str) -> None:
    # Blocks cost little; the smallest tables are where a fit breaks down.
    rows = 8 if "protect" in way else 150 if way.get("method") == "verdict" else 41
    assert alike(direction(**way), start, rows, arrays) == len(REPLACEMENTS)


def direction_all(**arguments: Any) -> Callable[[dpc.Table], Any]:
    def ask(table: dpc.Table) -> Any:
        with dpc.simulated_noise(5):
            words = {"loss": dpc.PureDP(1), "scores": ["igci-slope", "igci"]} | spelled(arguments)
            return dpc.direction_all(table, **words)

    return protecting(ask, arguments)


MANY_WAYS: list[dict[str, Any]] = [{}, {"protect": "test", "scores": ["iqr", "hsic"]}, {"alpha": 0.3}]


@pytest.mark.parametrize("way", MANY_WAYS, ids=str)
@pytest.mark.parametrize("start", ["random", "constant", "missing"])
def test_a_replaced_row_does_not_show_in_many_answers(way: dict[str, Any], start: str) -> None:
    assert alike(direction_all(**way), start, 9, arrays) == len(REPLACEMENTS)


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


@pytest.mark.parametrize("way", [{}, {"protect": "test"}, {"loss": dpc.NoPrivacy()}], ids=str)
def test_a_replaced_row_does_not_show_with_real_noise(way: dict[str, Any]) -> None:
    def ask(table: dpc.Table) -> Any:
        return dpc.direction(table, "x", "y", **(usual(way) | spelled(way)))

    for start in ("random", "constant"):
        budget = None if isinstance(way.get("loss"), dpc.NoPrivacy) else BUDGET
        alike(protecting(ask, way), start, 8, arrays, budget=budget)


FIELDS = ("", "zz", "nan", "1e999", "-inf", '"0,5"', '"a\nb"', " 0.5 ", "0x1p3", "9" * 500, "1_000", "True", "\u0660")


def test_a_replaced_field_does_not_show_in_a_text_file(tmp_path: Path) -> None:
    def file(field: str) -> Path:
        path = tmp_path / "table.csv"
        rows = ["0.5,0.25,no"] * 4 + [f"{field},{field},{field}"] + ["-0.5,-0.25,yes"] * 4
        path.write_text("x,y,z\n" + "\n".join(rows) + "\n", encoding="utf-8")
        return path

    for ask in (direction(), direction(protect="test"), lambda table: table.columns(["z", "x"])):
        first = outside(file("0.1"), ask)
        assert first[0] == "NoneType"
        for field in FIELDS:
            assert outside(file(field), ask) == first, field


def test_a_difference_would_be_seen() -> None:
    def leaky(table: dpc.Table) -> Any:
        if np.isnan(table._source.collect(["x"]).numbers("x")).any():
            raise dpc.errors.SchemaError("column 'x' has missing values")
        return table.columns(["x"])

    with pytest.raises(AssertionError):
        alike(leaky, "random", 9, arrays)
    with pytest.raises(AssertionError):
        alike(lambda table: print(table.columns(["x"])["x"][1]), "random", 9, arrays)
