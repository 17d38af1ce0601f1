"""A direction as a result: frozen, printable, portable, and without a trace of the rows."""

from __future__ import annotations

import dataclasses
import gc
import json
import pickle
import struct
import types
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.mechanisms.gate import recording_gate
from tests.direction.neighbours import CORRECTED, PUBLISHED, Rows, ask

MODES: dict[str, dict[str, Any]] = {"votes": {"blocks": 5}, **CORRECTED, **PUBLISHED}


def rows(n: int = 60) -> Rows:
    rng = np.random.default_rng(8)
    return np.column_stack([rng.uniform(-1, 1, n), rng.uniform(-1, 3, n)])


def reachable(root: object) -> list[object]:
    """Return all that hangs on an object, without going into modules, classes and functions."""
    stops = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType)
    seen: dict[int, object] = {}
    waiting = [root]
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, stops):
            continue
        seen[id(found)] = found
        waiting += gc.get_referents(found)
    return list(seen.values())


@pytest.mark.parametrize("mode", MODES)
def test_a_result_holds_no_array_no_table_and_no_value_of_a_row(mode: str) -> None:
    data = rows()
    r = ask(data, **MODES[mode])
    found = reachable(r)
    assert not [part for part in found if isinstance(part, (np.ndarray, dpc.Table, dpc.Ledger))]
    values = set(data.ravel().tolist())
    assert not [part for part in found if isinstance(part, float) and part in values]
    pickled, text = pickle.dumps(r), r.to_json() + r.summary() + repr(r)
    for value in values:
        assert struct.pack(">d", value) not in pickled  # pickle's own order of bytes for a float
        assert struct.pack("<d", value) not in pickled
        assert repr(value) not in text


@pytest.mark.parametrize("mode", MODES)
def test_a_result_is_frozen_and_pickles(mode: str) -> None:
    r = ask(rows(), **MODES[mode])
    with pytest.raises(dataclasses.FrozenInstanceError):
        r.cause = "y"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(r)) == r
    assert hash(r) == hash(pickle.loads(pickle.dumps(r)))


@pytest.mark.parametrize("mode", MODES)
def test_a_result_goes_to_json_and_back(mode: str) -> None:
    r = ask(rows(), **MODES[mode])
    back = json.loads(r.to_json(indent=1))
    assert back == r.to_dict()
    assert back["cause"] == r.cause and back["columns"] == ["x", "y"] and back["seed"] == r.seed
    assert back["guarantee"]["loss"] == {"kind": "PureDP", "epsilon": 1.0}
    assert back["guarantee"]["unit"] == r.guarantee.unit.value


def test_a_result_is_one_row_of_a_frame() -> None:
    r = ask(rows(), blocks=5)
    frame = r.to_frame()
    assert len(frame) == 1
    line = frame.iloc[0]
    assert (line["cause"], line["margin"], line["loss"], line["private"]) == (r.cause, r.margin, "PureDP(1)", True)


def test_the_headline_says_arrow_lean_and_margin() -> None:
    with recording_gate(lambda event, value: np.asarray(9)):
        r = ask(rows(), blocks=5)
    assert r.headline()[0] == "x → y." and r.p_sign is not None and r.cause == "x"
    assert all(part in r.details() for part in (f"{r.p_sign:.3f}", "+13 votes", "5 blocks", "60 rows"))


def test_a_declined_answer_says_so() -> None:
    r = dataclasses.replace(ask(rows(), protect="test"), cause=None, effect=None, margin=None, p_sign=None)
    assert "no direction was released" in r.details()
    assert json.loads(r.to_json())["cause"] is None


@pytest.mark.parametrize("mode", ["votes", "hsic", "published hsic"])
def test_plots_draw_released_values_on_the_axes_that_are_given(mode: str) -> None:
    from matplotlib.figure import Figure

    r = ask(rows(), **MODES[mode])
    ax = Figure().subplots()
    assert r.plot(ax) is ax
    assert ax.get_title().startswith(r.answer()) and ax.get_xlim() == (-1.05, 1.05)
    ends = [float(line.get_xdata()[-1]) for line in ax.lines if len(line.get_xdata()) == 2][1:]
    far = 1.0 if r.p_sign is None else min(1.0, -np.log10(max(r.p_sign, 1e-3)) / 3)
    assert ends == pytest.approx([far if (r.margin or 0) >= 0 else -far])


def test_released_scores_are_in_the_summary_and_in_the_frame() -> None:
    r = dataclasses.replace(ask(rows(), protect="test"), scores=(0.25, 0.5))
    assert "x -> y 0.25, y -> x 0.5" in r.details()
    line = r.to_frame().iloc[0]
    assert (line["scores_1"], line["scores_2"]) == (0.25, 0.5)


def test_a_picture_is_stamped_with_what_it_does_not_protect() -> None:
    assert r"TEST HALF ONLY" in ask(rows(), protect="test").plot().get_title()
    with dpc.simulated_noise(1):
        assert "NOT PRIVATE" in ask(rows(), blocks=5).plot().get_title()


def test_printing_a_result_prints_its_summary() -> None:
    r = ask(rows(), blocks=5)
    assert str(r) == r.summary()
