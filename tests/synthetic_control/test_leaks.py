"""Planted donors: their names and values come out of no error, result, picture, pickle, log or ledger."""

import datetime as dt
import logging
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.errors import DpCausalError, ParameterError
from tests.synthetic_control.neighbours import panel_of

NAME = "ZephyrQuill"
VALUES = np.array([0.7319024658, -0.4410927735, 0.1828459045, 0.5772156649, -0.2718281828, 0.3141592653])


def long(extra: dict[str, Any] | None = None) -> pd.DataFrame:
    """Return 300 donors, three of them planted, and the target."""
    rng = np.random.default_rng(2)
    units = np.repeat(["target", *(f"{NAME}{k}" for k in range(3)), *(f"u{k}" for k in range(297))], 6)
    values = rng.uniform(-1, 1, len(units))
    values[6:24] = np.tile(VALUES, 3)
    return pd.DataFrame({"unit": units, "t": np.tile(np.arange(6), 301), "y": values} | (extra or {}))


def make(frame: Any, ledger: dpc.Ledger, **arguments: Any) -> dpc.Panel:
    given = {"unit": "unit", "time": "t", "outcome": "y", "target": "target", "start": 4, "bounds": dpc.Bounded(-1, 1)}
    return dpc.Panel(frame, ledger=ledger, **(given | arguments))  # type: ignore[arg-type]


def seen(text: str | bytes) -> bool:
    raw = text if isinstance(text, bytes) else text.encode()
    planted = [NAME.lower().encode(), *(repr(float(v)).strip("-")[:9].encode() for v in VALUES)]
    return any(token in raw.lower() for token in planted) or any(v.tobytes() in raw for v in VALUES)


@pytest.mark.parametrize(
    "arguments",
    [{"loss": dpc.ApproxDP(2, 1e-6), "method": "factor"}, {"loss": dpc.PureDP(2), "method": "matched"},
     {"loss": dpc.PureDP(2), "method": dpc.papers.OutputPerturbation()}],
)  # fmt: skip
def test_nothing_that_is_read_holds_a_donor(
    arguments: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.ledger"
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as warned:
        with dpc.Ledger.create(path, budget=arguments["loss"], unit="unit") as ledger:
            panel = make(long(), ledger)
            answer = dpc.synthetic_control(panel, force=True, **arguments)
            entries = "".join(str(entry.to_dict()) for entry in ledger.entries())
        texts = [repr(panel), answer.summary(), answer.to_json(), repr(answer), entries, caplog.text]
    texts += [str(one.message) for one in warned] + list(capsys.readouterr())
    for what in ("path", "gap"):
        ax = answer.plot(what=what)
        texts += [repr([line.get_xydata().tolist() for line in ax.get_lines()]), ax.get_title()]
    assert not [text for text in texts if seen(text)]
    assert not seen(pickle.dumps(answer)) and not seen(path.read_bytes())


@pytest.mark.parametrize("engine", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    "arguments", [{"target": "nobody"}, {"start": 99}, {"outcome": "unit"}, {"time": "text"}, {"outcome": "mixed"}]
)
def test_errors_name_rules_and_no_donor(engine: Any, arguments: dict[str, Any]) -> None:
    frame = engine(long({"text": [f"{NAME}{k}" for k in range(1806)], "mixed": [f"{NAME}{k}" for k in range(1806)]}))
    with pytest.raises(DpCausalError) as caught:
        make(frame, dpc.Ledger.in_memory(dpc.PureDP(1)), **arguments)
    # The target's own periods are public, and here they are texts: those of the target only.
    told = str(caught.value).replace(f"{NAME}0", "").replace(f"{NAME}5", "")
    assert not seen(told) and caught.value.__cause__ is None


def test_what_a_donor_holds_never_decides_whether_a_panel_can_be_made_or_asked() -> None:
    odd = [np.nan, np.inf, -np.inf, 1e308, 5e-324, 0.0]
    for seed in range(6):
        frame = long()
        frame.loc[6:11, "y"] = np.roll(odd, seed)
        frame.loc[6:11, "t"] = [-(10**12), 3, 3, 3, 10**15, 2]
        answer = dpc.synthetic_control(
            make(frame, dpc.Ledger.in_memory(dpc.PureDP(2), unit="unit")), loss=dpc.PureDP(2), force=True
        )
        assert np.isfinite(answer.counterfactual).all()


@pytest.mark.parametrize("unit, far", [("s", 10**17), ("ms", 2**62), ("us", -(2**62))])
@pytest.mark.parametrize("engine", [lambda table: table, lambda table: table.to_pandas()], ids=["pyarrow", "pandas"])
def test_a_timestamp_of_a_donor_that_python_has_no_object_for_is_no_time(engine: Any, unit: Any, far: int) -> None:
    frame = long()
    day = {"s": 1, "ms": 10**3, "us": 10**6}[unit] * 86_400
    panels = []
    for last in (far, None):
        times = pa.array([*(frame["t"].to_numpy() * day).tolist()[:-1], last], pa.int64()).cast(pa.timestamp(unit))
        table = pa.table({"unit": frame["unit"].tolist(), "t": times, "y": frame["y"].to_numpy()})
        panels.append(make(engine(table), dpc.Ledger.in_memory(dpc.PureDP(2), unit="unit"), start=dt.date(1970, 1, 5)))
    np.testing.assert_array_equal(panels[0].donors(), panels[1].donors())


def test_bounds_whose_sums_overflow_are_refused() -> None:
    """A donor's values of both signs there made a NaN of its mean, and of its weight −2⁶³."""
    for bounds in (dpc.Bounded(-8e307, 8e307), dpc.Bounded(0, 1e-200)):
        with pytest.raises(ParameterError, match="declare another unit"):
            make(long(), dpc.Ledger.in_memory(dpc.PureDP(2), unit="unit"), bounds=bounds)


def test_donors_too_large_for_a_float_cause_no_warning() -> None:
    rows = np.full((3, 4), np.longdouble("1e4000"))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        panel = panel_of(rows, np.zeros(4), dpc.PureDP(2), 2)
    assert not warned and (panel.donors() == 1).all()
