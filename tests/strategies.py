"""Random tables, schemas and arguments, most of them wrong, and the one way in which a call is watched.

The strategies lean towards what breaks programs: NaN, infinities, subnormal and huge numbers, ties, empty columns,
wrong types, surrogates.  ``observe`` runs a call and says how it ended, what it warned and what it printed.
"""

import contextlib
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import dpcausal as dpc
from dpcausal.direction.methods import METHODS
from dpcausal.papers import BY_TASK, AnmTestPrivacyIqr
from tests.data.conftest import BACKENDS as BACKENDS

NAMES = ("x", "y", "z")

EXTREMES = (
    0.0, -0.0, 1.0, -1.0, 0.5, 5e-324, 2.3e-308, 1e-12, 1e12, 1.7e308, -1.7e308, float("nan"), float("inf"),
    float("-inf"),
)  # fmt: skip
TEXTS = ("no", "yes", "", "1", "1.0", "true", "NaN", "inf", "1e999", '"', "a,b", "a\nb", "é", "\x00", "9" * 50)

JUNK = (
    None, True, False, 0, 1, -1, 2**70, 0.5, -0.5, float("nan"), float("inf"), float("-inf"), 5e-324, 1e308, "", "x",
    "1", b"x", [], [1], {}, {"lower": 0}, (), object(), int, 1j, datetime(2020, 1, 1), Decimal("0.5"), Decimal("sNaN"),
    Fraction(1, 3), Fraction(1, 10**400), np.float32(0.5), np.int8(1), np.bool_(True), np.str_("x"),
    np.array([1.0, 2.0]), np.array(1.0), "\ud800", range(3), lambda: 1, ...,
)  # fmt: skip

junk = st.sampled_from(JUNK)
number = st.one_of(st.sampled_from(EXTREMES), st.floats(), st.floats(-3, 3))
plain_number = st.one_of(st.sampled_from([-1.0, 0.0, 1.0]), st.floats(-3, 3))
text = st.one_of(st.sampled_from(TEXTS), st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6))


def often(likely: st.SearchStrategy[Any], seldom: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return ``likely`` three times of four."""
    return st.integers(0, 3).flatmap(lambda toss: seldom if toss == 0 else likely)


amount = st.one_of(
    junk, st.floats(), st.floats(1e-9, 3), st.fractions(0, 2, max_denominator=10**12),
    st.decimals(0, 2, allow_nan=False, places=11),
)  # fmt: skip


def _loss(kind: int, first: Any, second: Any) -> Any:
    return (dpc.PureDP, lambda e: dpc.ApproxDP(e, second), dpc.ZCDP)[kind](first)


fit_amount = st.one_of(
    st.sampled_from([1e-9, 0.1, 0.25, 1, 1.0, Fraction(1, 3), Decimal("0.3")]),
    st.floats(1e-10, 3),
    st.fractions(Fraction(1, 10**10), 3, max_denominator=10**12),
)
fit_delta = st.sampled_from([0, 1e-18, 1e-9, 1e-6, Fraction(1, 3 * 10**7), 0.4])
fit_loss = st.builds(_loss, st.integers(0, 2), fit_amount, fit_delta)
"""A loss that can be made."""

ARROW = (pa.float64(), pa.float64(), pa.float64(), pa.int64(), pa.string(), pa.bool_())
ODD = (
    pa.float32(), pa.float16(), pa.int8(), pa.uint64(), pa.decimal128(10, 3), pa.timestamp("us"), pa.date32(),
    pa.binary(), pa.list_(pa.float64()), pa.null(), pa.dictionary(pa.int32(), pa.string()), pa.large_string(),
)  # fmt: skip
"""Declared types: common ones, and ones that most tables do not have."""


def _values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_floating(kind):
        return number if kind == pa.float64() else plain_number.map(np.float16 if kind == pa.float16() else float)
    if pa.types.is_integer(kind):
        low = 0 if pa.types.is_unsigned_integer(kind) else -(2 ** (kind.bit_width - 1))
        return st.one_of(st.integers(0, 3), st.integers(low, 2 ** (kind.bit_width - 1) - 1))
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_decimal(kind):
        return st.decimals(-999, 999, places=3, allow_nan=False)
    if pa.types.is_timestamp(kind):
        return st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1))
    if pa.types.is_date(kind):
        return st.dates()
    if pa.types.is_binary(kind):
        return st.binary(max_size=4)
    if pa.types.is_list(kind):
        return st.lists(plain_number, max_size=2)
    return st.none() if pa.types.is_null(kind) else text


@st.composite
def arrow_tables(draw: st.DrawFn, *, least: int = 0, most: int = 20, floats_only: bool = False) -> pa.Table:
    """Return a table of one to three columns of random types; nulls, extremes and ties are common."""
    rows = draw(st.integers(least, most))
    kinds = st.just(pa.float64()) if floats_only else often(st.sampled_from(ARROW), st.sampled_from(ODD))
    columns = {}
    for name in NAMES[: 2 if floats_only else draw(st.integers(1, 3))]:
        kind = draw(kinds)
        value = st.one_of(_values(kind), _values(kind), _values(kind), st.none())
        constant = draw(st.integers(0, 9)) == 0
        drawn = [draw(value)] * rows if constant else draw(st.lists(value, min_size=rows, max_size=rows))
        columns[name] = pa.array(drawn, type=kind, from_pandas=False)
    return pa.table(columns)


fit_column = st.one_of(
    st.sampled_from([(-1, 1), (0, 1), (-3.0, 3.0), (0, 5e-100), (-1e100, 1e100), (0, 1e300)]).map(
        lambda pair: dpc.Bounded(*pair)
    ),
    st.sampled_from([["no", "yes"], [0, 1, 2], [False, True], ["", "1"], [7]]).map(dpc.Levels),
    st.just(dpc.Levels(["no"], other="other")),
)
schemas: st.SearchStrategy[dpc.Schema] = st.dictionaries(
    often(st.sampled_from(NAMES), text.filter(str.isprintable)), fit_column, min_size=1, max_size=3
).map(lambda columns: dpc.Schema({name or "x": column for name, column in columns.items()}))
"""Schemas that can be made, which need not fit a table."""


@st.composite
def tables_with_schemas(draw: st.DrawFn, **sizes: Any) -> tuple[pa.Table, dpc.Schema]:
    """Return a table and a schema that mostly fits it."""
    table = draw(arrow_tables(**sizes))
    if draw(st.integers(0, 7)) == 0:
        return table, draw(schemas)
    declared = {}
    for field in table.schema:
        fits = dpc.Bounded(-1, 1)
        if pa.types.is_boolean(field.type):
            fits = dpc.Levels([False, True])
        elif not (pa.types.is_floating(field.type) or pa.types.is_decimal(field.type)):
            fits = dpc.Levels([0, 1]) if pa.types.is_integer(field.type) else dpc.Levels(["no", "yes"], other="rest")
        declared[field.name] = fits if draw(st.integers(0, 7)) else draw(fit_column)
    return table, dpc.Schema(declared)


OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "penalty": often(st.sampled_from([None, None, 0.5, 1e-5, (0.1, 1), ()]), junk),
    "width": often(st.sampled_from([None, None, 0.5, 1e9, (0.1, 1.0)]), junk),
    "release_scores": often(st.booleans(), junk),
    "blocks": often(st.sampled_from([None, None, 1, 3]), junk),
    "rows_per_block": often(st.sampled_from([None, None, 48, 50]), junk),
    "model": often(st.sampled_from(["additive", "location-scale"]), junk),
    "share": often(st.sampled_from([1.0, 1.0, 0.5, 1e-300]), junk),
    "constants": often(st.sampled_from(["published", "corrected"]), junk),
    "training_share": often(st.sampled_from([None, None, 0.5, 0.01, 0.99, 1e-300]), junk),
}
DIRECTION_WAYS = (*METHODS.values(), *BY_TASK["direction"].values(), AnmTestPrivacyIqr)


def ways(kind: Any) -> st.SearchStrategy[Any]:
    """Return objects of a method, each of its options sometimes junk."""
    return st.builds(kind, **{field.name: OPTIONS[field.name] for field in fields(kind)})


direction_arguments = st.fixed_dictionaries(
    {"loss": often(fit_loss, junk)},
    optional={
        "score": often(st.sampled_from([None, "lsnm", "hsic", "kendall", "iqr"]), junk),
        "method": often(st.one_of(st.sampled_from(["auto", *METHODS]), *(ways(kind) for kind in DIRECTION_WAYS)), junk),
        "alpha": often(st.sampled_from([0.1, 0.1, 0.25, 0.001]), junk),
        "accept_unproven": often(st.booleans(), junk),
        "accept_large_epsilon": often(st.booleans(), junk),
    },
)
"""Keyword arguments of ``direction``, each of them sometimes junk."""

pairs_of_columns = often(
    st.one_of(st.none(), st.lists(st.sampled_from([("x", "y"), ("y", "x"), ["x", "y"], ("x", "x")]), max_size=2)),
    st.one_of(junk, st.lists(junk, max_size=2)),
)

many_arguments = st.fixed_dictionaries(
    {"loss": often(fit_loss, junk)},
    optional={
        "scores": often(
            st.lists(st.sampled_from(["hsic", "lsnm"]), min_size=1, max_size=2, unique=True),
            st.one_of(junk, st.lists(junk, max_size=2)),
        ),
        "shares": often(
            st.sampled_from([None, {}, {("x", "y"): 2}, {"hsic": 0.1}, {"lsnm": 1e-300}, {"hsic": 1e300}]), junk
        ),
        "method": often(st.builds(METHODS["majority-vote"], blocks=OPTIONS["blocks"]), junk),
        "alpha": often(st.sampled_from([0.1, 0.1, 0.25]), junk),
        "accept_large_epsilon": often(st.booleans(), junk),
    },
)
"""Keyword arguments of ``direction_all``, each of them sometimes junk."""


@dataclass(frozen=True)
class Outcome:
    """How a call ended: its answer or its error, its warnings and what it printed."""

    answer: Any
    error: BaseException | None
    warned: tuple[str, ...]
    printed: str

    @property
    def verdict(self) -> tuple[str, str, tuple[str, ...], str]:
        """What an adversary sees of a failure: type and text of the error, warnings, output."""
        return (type(self.error).__name__, str(self.error), self.warned, self.printed)


def observe(call: Callable[[], Any]) -> Outcome:
    """Run a call and catch whatever leaves it."""
    answer, error, printed = None, None, io.StringIO()
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        try:
            answer = call()
        except BaseException as raised:  # a panic of a back end is no Exception
            if isinstance(raised, (KeyboardInterrupt, SystemExit)):
                raise
            error = raised
    return Outcome(answer, error, tuple(str(one.message) for one in caught), printed.getvalue())


def in_backend(name: str, table: pa.Table, directory: Path) -> Any:
    """Return an Arrow table as one kind of frame; ``None`` where that back end cannot hold it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return BACKENDS[name](table, directory)
        except Exception:
            return None
