"""One cell of an object column, whatever it is, decides nothing: it counts by its base's own value, or as missing."""

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpcausal as dpc
from dpcausal.data.coding import number_of, scalar
from dpcausal.data.panels.periods import coded_labels, period_label, unit_name

METHODS = (
    "__hash__", "__eq__", "__str__", "__repr__", "__int__", "__index__", "__float__", "__bool__", "__len__",
    "__lt__", "__ne__", "is_integer", "bit_length", "strip", "item", "__class__", "start_time", "isoformat",
)  # fmt: skip


def hostile(base: Any, word: str, raised: type[BaseException] = RuntimeError) -> Any:
    """Return a class whose method, or property, raises."""

    def boom(self: Any, *_: Any) -> Any:
        raise raised("secret 4711")

    inherited = {"__hash__": base.__hash__} if word == "__eq__" else {}
    return type("Bad", (base,), {word: property(boom) if word in ("__class__", "start_time") else boom} | inherited)


CASES = [(base, word) for base in (str, int, float, np.int64, np.str_, Decimal) for word in METHODS]


@pytest.mark.parametrize("raised", [RuntimeError, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize(("base", "word"), CASES, ids=lambda one: getattr(one, "__name__", one))
def test_a_cell_whose_own_methods_raise_counts_as_its_base_holds_it(
    base: Any, word: str, raised: type[BaseException]
) -> None:
    plain = base("1") if issubclass(base, str) else base(1)
    cell = hostile(base, word, raised)("1" if issubclass(base, str) else 1)
    assert scalar(cell) == (str(plain) if issubclass(base, str) else plain)
    assert type(scalar(cell)) in (str, int, float, Decimal)
    for name in (unit_name, period_label):
        assert name(cell) == name(plain)
    assert np.array_equal(number_of(cell), number_of(plain), equal_nan=True)
    codes, names = coded_labels([[plain, cell]], 2, unit_name)
    assert list(codes) == [0, 0] and names == [unit_name(plain)]


@pytest.mark.parametrize("base", [object, datetime, list])
@pytest.mark.parametrize("word", METHODS)
def test_an_object_that_is_no_scalar_fails_nothing(base: Any, word: str) -> None:
    cell = hostile(base, word, SystemExit)(*((2020, 1, 1) if base is datetime else ()))
    assert scalar(cell) is None
    assert type(unit_name(cell)) in (str, type(None)) and type(period_label(cell)) in (str, type(None))


def test_numbers_of_cells_are_total() -> None:
    assert number_of(10**400) == np.inf and number_of(-(10**400)) == -np.inf
    for odd in (Decimal("sNaN"), np.timedelta64(1, "s"), np.datetime64("2020"), "1", None, pd.NaT, [1], 1j):
        assert np.isnan(number_of(odd))
    assert number_of(np.longdouble("1e4000")) == np.inf and number_of(np.float16(0.5)) == 0.5


ODD: list[Any] = [
    Decimal("sNaN"), Decimal("1E+999999"), Fraction(10**400, 3), 10**400, 10**5000, "\ud800", b"\xff", 1j, [1, 2], {1},
    np.array([1, 2]), pd.NaT, pd.NA, date(2020, 1, 1), np.timedelta64(1, "s"), np.datetime64("NaT"), float("inf"), int,
    np.longdouble("1e4000"), np.void(b"abc"), hostile(str, "__hash__")("yes"), hostile(int, "__int__")(1),
    hostile(object, "__eq__")(),
]  # fmt: skip


def made(engine: str, cells: list[Any], whole: np.ndarray) -> Any:
    """Return a frame of objects."""
    objects = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        objects[place] = cell
    if engine == "numpy":
        return {"x": objects, "a": whole}
    if engine == "pandas":
        return pd.DataFrame({"x": pd.Series(objects, dtype=object), "a": whole})
    return pl.DataFrame({"x": pl.Series(cells, dtype=pl.Object), "a": whole})


@pytest.mark.parametrize("engine", ["numpy", "pandas", "polars"])
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_neighbours_of_one_odd_cell_have_the_same_spends_and_answers_of_one_form(engine: str, odd: Any) -> None:
    whole = np.arange(60) % 2
    declared = {"text": ("yes", "no"), "whole": (1, 0), "bool": (True, False)}
    for levels in declared.values():
        told = []
        for cell in (levels[0], odd):
            cells = [levels[int(k)] for k in whole]
            cells[3] = cell
            ledger = dpc.Ledger.in_memory(dpc.PureDP(2))
            schema = dpc.Schema({"a": dpc.Levels([0, 1]), "x": dpc.Levels(levels)})
            table = dpc.Table(made(engine, cells, whole), schema, ledger)
            with dpc.simulated_noise(1):
                dpc.cells(table, by=["a", "x"], loss=dpc.PureDP(1))
            told.append((repr(table), [(one.loss, one.detail) for one in ledger.entries()]))
        assert told[0] == told[1]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_an_odd_id_names_somebody_or_nobody_and_refuses_nothing(odd: Any) -> None:
    cells: list[Any] = [*range(30), odd]
    frame = made("numpy", cells, np.arange(31) % 2)
    table = dpc.Table(
        frame, dpc.Schema({"a": dpc.Levels([0, 1])}), dpc.Ledger.in_memory(dpc.PureDP(2), person="x"), person="x"
    )
    assert table.n in (30, 31)
    with dpc.simulated_noise(1):
        dpc.cells(table, by=["a"], loss=dpc.PureDP(1))


MORE = [hostile(str, "strip")("b"), hostile(datetime, "isoformat")(2020, 1, 1)]


@pytest.mark.parametrize("odd", [*ODD, *MORE], ids=lambda odd: type(odd).__name__)
def test_a_donors_odd_unit_or_time_leaves_the_panel_what_it_is(odd: Any) -> None:
    units: list[Any] = ["t"] * 6 + ["a"] * 6 + ["b"] * 6
    times: list[Any] = [*range(6)] * 3
    for column in (units, times):
        kept, column[-1] = column[-1], odd
        if column is units and unit_name(odd) not in (None, "b"):
            column[-1] = kept  # a new name is a new donor: public
            continue
        frame = {"u": np.empty(18, dtype=object), "y": np.arange(18.0)} | {"t": np.empty(18, dtype=object)}
        for place in range(18):
            frame["u"][place], frame["t"][place] = units[place], times[place]
        panel = dpc.Panel(
            frame, unit="u", time="t", outcome="y", target="t", start=4, bounds=dpc.Bounded(0, 20),
            ledger=dpc.Ledger.in_memory(dpc.PureDP(1), unit="u"),
        )  # fmt: skip
        assert panel.n == 2 and panel.donors().shape == (2, 6)
        column[-1] = kept
