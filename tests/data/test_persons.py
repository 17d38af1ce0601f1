"""Persons of many rows: one record each, and nobody's rows move another's."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.data.counts import counts_of

SCHEMA = dpc.Schema({"x": dpc.Bounded(0, 100), "g": dpc.Levels(["a", "b", "c"])})


def arrow() -> pa.Table:
    """Return 1 to 6 rows a person, shuffled, some of which lack a column; two rows are nobody's."""
    rng = np.random.default_rng(1)
    ids = rng.permutation(np.repeat(np.arange(60) * 7, rng.integers(1, 7, 60))).tolist()
    n = len(ids)
    values = rng.integers(0, 100, n).tolist()
    x = [None if lacks else float(value) for lacks, value in zip(rng.random(n) < 0.4, values, strict=True)]
    g = ["abc"[k] for k in rng.integers(0, 3, n)]
    return pa.table({"id": pa.array([None, *ids, None], pa.int64()), "x": [50.0, *x, 50.0], "g": ["a", *g, "a"]})


def table_of(frame: Any, ids: str = "private") -> dpc.Table:
    return dpc.Table(frame, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(10), person="id", ids=ids), person="id", ids=ids)


def test_a_record_is_one_of_the_persons_own_rows_and_kept_if_any_is() -> None:
    frame = arrow().to_pandas()
    rows = table_of(arrow(), ids="public").rows(["x", "g"])
    assert rows.keys is None and rows.n == 60
    has = frame.dropna().groupby("id")["x"].apply(set)
    assert rows.included.sum() == len(has) < 60
    held = [value for value, kept in zip(rows.values["x"], rows.included, strict=True) if kept]
    assert all(any(value in own for own in has) for value in held)
    assert counts_of(table_of(arrow()), ["g"]).sum() == 60  # once each, whatever rows they have


@pytest.mark.parametrize("ids", ["private", "public"])
def test_replacing_all_rows_of_a_person_replaces_one_record(ids: str) -> None:
    """Any number of rows for any number of rows; under private ids the id too, and then one record moves its place."""
    rng = np.random.default_rng(3)
    before = arrow().to_pandas()

    def records(frame: pd.DataFrame) -> dict[int, Any]:
        arrays = {"id": frame["id"].astype("Int64"), "x": frame["x"], "g": frame["g"]}
        rows = table_of(pa.table(arrays), ids).rows(["x", "g"])
        keys = range(60) if rows.keys is None else rows.keys.tolist()
        return {key: (rows.included[k], rows.values["x"][k], rows.values["g"][k]) for k, key in enumerate(keys)}

    whole = records(before)
    for trial in range(25):
        gone, number = float(rng.choice(before["id"].dropna().unique())), int(rng.integers(1, 9))
        new = gone if ids == "public" else 10_000.0 + trial
        fresh = pd.DataFrame({"id": new, "x": rng.choice([np.nan, 0.0, 100.0], number), "g": "c"})
        after = pd.concat([before[before["id"] != gone], fresh]).sample(frac=1, random_state=trial)
        # The others keep the order among their own rows, as a stored table does.
        found = records(after.iloc[np.argsort(after.index.to_numpy(), kind="stable")])
        assert len(found) == 60 and sum(found.get(key) != record for key, record in whole.items()) <= 1
