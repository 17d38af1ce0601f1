"""Persons of many rows: one record each, and nobody's rows move another's."""

from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.data.counts import counts_of
from dpcausal.errors import LedgerError, ParameterError
from tests.factories import refused_unpaid

SCHEMA = dpc.Schema({"x": dpc.Bounded(0, 100), "g": dpc.Levels(["a", "b", "c"])})


def arrow(seed: int = 1, persons: int = 60, numbered: bool = True) -> pa.Table:
    """Return 1 to 6 rows a person, shuffled, some of which lack a column; two rows are nobody's."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.repeat(np.arange(persons) * 7, rng.integers(1, 7, persons))).tolist()
    named: list[Any] = ids if numbered else [f"p{one}" for one in ids]
    n = len(named)
    values = rng.integers(0, 100, n).tolist()
    x = [None if lacks else float(value) for lacks, value in zip(rng.random(n) < 0.4, values, strict=True)]
    g = ["abc"[k] for k in rng.integers(0, 3, n)]
    kind = pa.int64() if numbered else pa.string()
    return pa.table({"id": pa.array([None, *named, None], kind), "x": [50.0, *x, 50.0], "g": ["a", *g, "a"]})


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
    for trial in range(25):
        gone = float(rng.choice(before["id"].dropna().unique()))
        number = int(rng.integers(1, 9))
        new = gone if ids == "public" else 10_000.0 + trial
        fresh = pd.DataFrame({"id": new, "x": rng.choice([np.nan, 0.0, 100.0], number), "g": "c"})
        after = pd.concat([before[before["id"] != gone], fresh]).sample(frac=1, random_state=trial)
        # The others keep the order among their own rows, as a stored table does.
        after = after.iloc[np.argsort(after.index.to_numpy(), kind="stable")]
        found = []
        for frame in (before, after):
            arrays = {"id": frame["id"].astype("Int64"), "x": frame["x"], "g": frame["g"]}
            rows = table_of(pa.table(arrays), ids=ids).rows(["x", "g"])
            keys = range(60) if rows.keys is None else rows.keys.tolist()
            found.append(
                {key: (rows.included[k], rows.values["x"][k], rows.values["g"][k]) for k, key in enumerate(keys)}
            )
        changed = [key for key in found[0] if found[1].get(key) != found[0][key]]
        assert len(found[1]) == 60 and len(changed) <= 1


def test_a_ledger_protects_one_unit() -> None:
    rng = np.random.default_rng(4)
    frame = {"id": np.repeat(np.arange(150), 4), "x": rng.uniform(0, 100, 600), "g": rng.choice(["a", "b", "c"], 600)}
    frame["doctor"] = frame["id"] // 5
    declared: dict[str, dict[str, Any]] = {
        "row": {}, "private": {"person": "id"}, "public": {"person": "id", "ids": "public"},
        "other": {"person": "doctor"},
    }  # fmt: skip
    asked = {"x": "x", "y": "g", "given": [], "method": "kendall", "loss": dpc.PureDP(1)}
    for first, second in permutations(declared, 2):
        ledger = dpc.Ledger.in_memory(dpc.PureDP(10), **declared[first])
        found = dpc.ci_test(dpc.Table(frame, SCHEMA, ledger, **declared[first]), **asked)
        with pytest.raises(LedgerError):
            dpc.ci_test(dpc.Table(frame, SCHEMA, ledger, **declared[second]), **asked)
        assert len(ledger.entries()) == 1 and ledger.entries()[0].unit == found.guarantee.unit.value
        assert found.guarantee.unit.value in found.details()


def test_what_assigns_persons_by_place_is_refused_where_the_ids_are_private() -> None:
    rng = np.random.default_rng(5)
    frame = {"id": np.repeat(np.arange(150), 2), "x": rng.uniform(0, 100, 300), "g": rng.choice(["a", "b"], 300)}
    asked = {"x": "x", "y": "g", "given": [], "method": "hsic", "loss": dpc.PureDP(1)}
    refused_unpaid(table_of(frame), ParameterError, dpc.ci_test, **asked)
    assert dpc.ci_test(table_of(frame, ids="public"), **asked).n == 150
