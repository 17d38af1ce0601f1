"""The rules of cleaning, over arbitrary values."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcausal.data.coding import clean_numbers
from dpcausal.data.schema import Bounded, Levels
from tests.factories import table

ANY_NUMBER = st.none() | st.floats(width=64) | st.sampled_from([5e-324, -5e-324, 1.7e308, -0.0, 2.0**53])
BOUNDS = (
    st.tuples(*[st.floats(-8e307, 8e307, allow_subnormal=False)] * 2)
    .map(sorted)
    .filter(lambda pair: pair[1] - pair[0] > 1e-300)
)
ANY_OBJECT = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.integers(), st.floats(), st.text(max_size=3),
    st.sampled_from(["a", "b", "1", "True", b"a", (1,), [], math.nan]),
)  # fmt: skip


def frames_of(values: list[float | None]) -> list[object]:
    plain = [math.nan if value is None else value for value in values]
    return [
        pd.DataFrame({"x": plain}),
        pd.DataFrame({"x": pd.array(values, dtype="Float64")}),
        pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)}),
        pl.LazyFrame({"x": pl.Series(values, dtype=pl.Float64)}),
        pa.table({"x": pa.array(values, pa.float64())}),
        {"x": np.array(plain)},
    ]


@settings(max_examples=100, deadline=None)
@given(st.lists(ANY_NUMBER, min_size=1, max_size=6), BOUNDS)
def test_any_number_lands_within_the_bounds_by_itself_and_alike_in_all_frames(values, bounds) -> None:
    """What a record becomes follows from its own value: a replaced record changes no other."""
    bounded = Bounded(*bounds)
    expected = np.array([bounded.midpoint if value is None or math.isnan(value)
                         else min(max(value, bounded.lower), bounded.upper) + 0.0 for value in values])  # fmt: skip
    assert np.isfinite(expected).all() and ((bounded.lower <= expected) & (expected <= bounded.upper)).all()
    for frame in frames_of(values):
        column = table(frame, {"x": bounded}).columns(["x"])["x"]
        assert column.dtype == np.float64 and column.tobytes() == expected.tobytes()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(ANY_OBJECT, min_size=1, max_size=8),
    st.sampled_from([Levels([1, 0]), Levels([True, False], other="?"), Levels(["a", "1"], other="b")]),
)
def test_any_object_becomes_a_code_and_equals_its_level_as_text_or_as_a_number(values, levels) -> None:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    for frame in ({"o": array}, pd.DataFrame({"o": pd.Series(array, dtype=object)})):
        codes = table(frame, {"o": levels}).columns(["o"])["o"]
        assert codes.dtype == np.int64
        for value, code in zip(values, codes.tolist(), strict=True):
            number = type(value) in (bool, int, float) and levels.kind != "text"
            alike = (bool, int, float) if number else (type(value),)
            seen = [k for k, label in enumerate(levels.labels) if isinstance(label, alike) and label == value]
            assert [code] == (seen or [levels.substitute])


def test_zero_has_one_sign_after_cleaning() -> None:
    for bounded in (Bounded(0, 1), Bounded(-1, 0), Bounded(-1, 1), Bounded(-0.0, 1)):
        clean, present = clean_numbers(np.array([-0.0, 0.0, math.nan, -1e-400]), bounded)
        assert present.tolist() == [True, True, False, True]
        assert not np.signbit(clean[clean == 0]).any()
