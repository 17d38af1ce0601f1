"""One cell of an object column, whatever it is, decides nothing: it counts by its base's own value, or as missing."""

from collections.abc import Callable
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
from tests.data.conftest import panel_of
from tests.factories import table

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


class Unhashable(type):
    def __eq__(cls, other: object) -> bool:  # so Python gives its classes no hash
        return cls is other


class Odd(metaclass=Unhashable):
    pass


def test_a_cell_whose_class_has_no_hash_is_missing_and_the_question_is_answered() -> None:
    assert scalar(Odd()) is None and type(unit_name(Odd())) is str
    texts = np.array(["a", "b"] * 150, dtype=object)
    texts[7] = Odd()
    schema = {"x": dpc.Levels(["a", "b"]), "y": dpc.Levels([0, 1])}
    rows = table({"x": texts, "y": np.tile([0, 1, 1], 100)}, schema, dpc.PureDP(1))
    assert dpc.cells(rows, by=["x", "y"], loss=dpc.PureDP(1)).n == 300


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
    np.array([1, 2]), pd.NaT, pd.NA, date(2020, 1, 1), np.timedelta64(1, "s"), np.datetime64("NaT", "s"),
    float("inf"), int,
    np.longdouble("1e4000"), np.void(b"abc"), hostile(str, "__hash__")("yes"), hostile(int, "__int__")(1),
    hostile(object, "__eq__")(),
]  # fmt: skip


def objects(cells: list[Any]) -> np.ndarray:
    column = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        column[place] = cell
    return column


ENGINES: dict[str, Callable[[list[Any]], Any]] = {
    "numpy": lambda cells: {"x": objects(cells), "a": np.arange(len(cells)) % 2},
    "pandas": lambda cells: pd.DataFrame({
        "x": pd.Series(objects(cells), dtype=object), "a": np.arange(len(cells)) % 2}),
    "polars": lambda cells: pl.DataFrame({"x": pl.Series(cells, dtype=pl.Object), "a": np.arange(len(cells)) % 2}),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_neighbours_of_one_odd_cell_have_the_same_spends_and_answers_of_one_form(engine: str, odd: Any) -> None:
    for levels in (("yes", "no"), (1, 0), (True, False)):
        told = []
        for cell in (levels[0], odd):
            frame = ENGINES[engine]([cell if place == 3 else levels[place % 2] for place in range(60)])
            whole = table(frame, {"a": dpc.Levels([0, 1]), "x": dpc.Levels(levels)}, dpc.PureDP(2))
            with dpc.simulated_noise(1):
                dpc.cells(whole, by=["a", "x"], loss=dpc.PureDP(1))
            told.append((repr(whole), [(one.loss, one.detail) for one in whole.ledger.entries()]))
        assert told[0] == told[1]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_an_odd_id_names_somebody_or_nobody_and_refuses_nothing(odd: Any) -> None:
    whole = table(ENGINES["numpy"]([*range(30), odd]), {"a": dpc.Levels([0, 1])}, dpc.PureDP(2), person="x")
    assert whole.n in (30, 31)
    with dpc.simulated_noise(1):
        dpc.cells(whole, by=["a"], loss=dpc.PureDP(1))


MORE = [hostile(str, "strip")("b"), hostile(datetime, "isoformat")(2020, 1, 1)]


@pytest.mark.parametrize("odd", [*ODD, *MORE], ids=lambda odd: type(odd).__name__)
def test_a_donors_odd_unit_or_time_leaves_the_panel_what_it_is(odd: Any) -> None:
    frame = {"unit": [*"ttttttaaaaaabbbbbb"], "time": [*range(6)] * 3}
    for name in ("time", "unit") if unit_name(odd) in (None, "b") else ("time",):  # a new name is a new donor: public
        changed = {**frame, name: [*frame[name][:-1], odd]}
        panel = panel_of({name: objects(cells) for name, cells in changed.items()} | {"y": np.arange(18.0)}, target="t",
                         start=4, bounds=dpc.Bounded(0, 20))  # fmt: skip
        assert panel.n == 2 and panel.donors().shape == (2, 6)
