"""From outside: a replaced row shows in no error, warning or public field, and results hold none of the rows."""

import pickle
import struct
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcausal as dpc
from tests.discovery.ways import WAYS, loss_of, table_for
from tests.strategies import observe

MIXED = dpc.Schema({"a": dpc.Bounded(-1, 1), "b": dpc.Bounded(-1, 1), "c": dpc.Levels(["u", "v", "w"], other="x")})
NUMBERS = dpc.Schema({"a": dpc.Bounded(-1, 1), "b": dpc.Bounded(-1, 1), "c": dpc.Bounded(0, 3)})
LOSSES = dpc.PureDP(1), dpc.ApproxDP(1, 1e-6)
METHODS = {**WAYS, "ci-test": dpc.methods.CiTest(test="kendall", max_order=0)}

REPLACEMENTS: dict[str, tuple[Any, Any, Any]] = {
    "NaN": (float("nan"), float("nan"), None),
    "infinity": (float("inf"), float("-inf"), "u"),
    "huge": (1.7e308, -1.7e308, "9" * 400),
    "subnormal": (5e-324, -5e-324, ""),
    "bounds": (1.0, -1.0, "w"),
    "unseen": (0.1, -0.1, "\U0001f600"),
}


def frame(method: str, row: tuple[Any, Any, Any] | None, constant: bool) -> Any:
    rng = np.random.default_rng(3)
    a = np.zeros(40) if constant else rng.uniform(-1, 1, 40)
    columns = {"a": list(a), "b": list(a[::-1]), "c": ["u", "v"] * 20}
    if row is not None:
        for name, value in zip("abc", row, strict=True):
            columns[name][1] = value
    if method == "moments":
        columns["c"] = [1.0 if isinstance(value, str) else 2.0 for value in columns["c"]]
    return pd.DataFrame(columns)


def outside(method: str, row: tuple[Any, Any, Any] | None, constant: bool) -> tuple[Any, ...]:
    """Return all that an adversary may see of a call, apart from what was released with noise."""
    loss = loss_of(METHODS[method], LOSSES)
    ledger = dpc.Ledger.in_memory(loss)

    def ask() -> Any:
        with dpc.simulated_noise(4):
            schema = NUMBERS if method == "moments" else MIXED
            table = table_for(METHODS[method], frame(method, row, constant), schema, ledger)
            return dpc.discover(table, loss=loss, method=METHODS[method])

    outcome = observe(ask)
    answer = outcome.answer
    public: tuple[Any, ...] = ()
    if isinstance(answer, dpc.Discovery):
        guarantee = answer.guarantee.to_dict() | {"ledger_head": None}
        public = (
            answer.method, answer.search, answer.alpha, answer.max_order, answer.n, answer.margin_unit, guarantee,
            answer.release is None, answer.graph.nodes, answer.settings,
        )  # fmt: skip
    entries = [(entry.task, entry.loss, entry.unit, str(entry.detail)) for entry in ledger.entries()]
    return (*outcome.verdict, public, str(ledger.remaining), entries)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_a_replaced_row_does_not_show(method: str, constant: bool) -> None:
    seen = outside(method, None, constant)
    assert seen[0] == "NoneType" and not seen[2], seen[:3]
    for name, row in REPLACEMENTS.items():
        assert outside(method, row, constant) == seen, name
    print(f"= {len(REPLACEMENTS)} neighbour pairs with equal outcomes")


CANARY = 0.123456789012345


@pytest.mark.parametrize("method", METHODS)
def test_a_result_holds_no_value_of_a_row(method: str) -> None:
    columns = {"a": np.full(40, CANARY), "b": np.linspace(-1, 1, 40), "c": np.array(["secret-" + "é" * 9] * 40)}
    schema = MIXED
    if method == "moments":
        columns["c"], schema = np.full(40, CANARY), NUMBERS
    loss = loss_of(METHODS[method], LOSSES)
    table = table_for(METHODS[method], columns, schema, dpc.Ledger.in_memory(loss))
    found = dpc.discover(table, loss=loss, method=METHODS[method])
    told = pickle.dumps(found) + found.to_json().encode() + found.details().encode() + repr(found).encode()
    told += b"" if found.release is None else found.release.to_json().encode()
    assert struct.pack("<d", CANARY) not in told and struct.pack(">d", CANARY) not in told
    assert str(CANARY).encode() not in told and b"secret-" not in told
    assert struct.pack("<d", np.linspace(-1, 1, 40)[7]) not in told
