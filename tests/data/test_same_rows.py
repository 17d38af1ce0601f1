"""Missing values, subgroups, persons, parts and weights: the same bits and the same answers in every back end."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from tests.data.conftest import BACKENDS

SCHEMA = dpc.Schema({"x": dpc.Bounded(0, 100), "y": dpc.Bounded(0, 100), "g": dpc.Levels(["a", "b", "c"])})
HOW: dict[str, dict[str, Any]] = {
    "drop": {}, "impute": {"missing": "impute"}, "level": {"missing": "level"},
    "persons": {"person": "id"}, "listed persons": {"person": "id", "ids": "public", "missing": "level"},
    "some rows of named persons": {"person": "name", "max_rows_per_person": 2, "weight": ("w", 4.0)},
    "weights": {"weight": ("w", 4.0)},
}  # fmt: skip


def arrow() -> pa.Table:
    """Return 1 to 6 rows a person, shuffled, with nulls, values outside and levels that are not declared; two rows are
    nobody's."""
    rng = np.random.default_rng(1)
    ids = rng.permutation(np.repeat(np.arange(60) * 7, rng.integers(1, 7, 60))).tolist()
    n = len(ids) + 2
    x, y = (
        [None if rng.random() < 0.3 else float(value) for value in np.round(rng.uniform(-20, 120, n), 3)]
        for _ in range(2)
    )  # fmt: skip
    g = [None if rng.random() < 0.1 else "abcd"[k] for k in rng.integers(0, 4, n)]
    w = [None if rng.random() < 0.1 else float(value) for value in rng.choice([-1.0, 0.25, 3.0, 9.0], n)]
    return pa.table({
        "id": pa.array([None, *ids, None], pa.int64()), "name": [None, *(f"p{one}" for one in ids), None],
        "x": x, "y": y, "g": g, "w": w,
    })  # fmt: skip


def seen(frame: Any) -> list[Any]:
    """Return all that is brought, and some answers, for each way to declare the table."""
    found: list[Any] = []
    for how in HOW.values():
        whose = {name: how[name] for name in ("person", "ids") if name in how}
        table = dpc.Table(frame, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(20), **whose), clusters=["id", "name"], **how)
        grown = table if table.missing == "impute" else table.where("x", at_least=30).where("g", among=["a", "b"])
        for one in (table, grown):
            for rows in (one.rows(["x", "g", "y"]), one.parts(["x", "g", "y"])):
                arrays = [rows.included, *rows.values.values(), rows.keys, rows.weights, rows.owners]
                found.append([None if array is None else array.tolist() for array in arrays])
            for cluster in ("id", "name"):
                groups = one.clustered_by(cluster).to_sum(["x"], parts=True).groups
                found.append(None if groups is None else groups.tolist())
            with dpc.simulated_noise(3):
                found.append(dpc.cells(one, by=["g"], values=["x"], loss=dpc.PureDP(1)).counts.tolist())
                if not one.weighed:
                    found.append(dpc.ci_test(one, "x", "g", given=[], method="kendall", loss=dpc.PureDP(1)).statistic)
                    found.append(dpc.discover(one, columns=["x", "g"], loss=dpc.PureDP(1)).release.counts.tolist())
    return found


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    return seen(arrow())


# pandas keeps whole numbers with nulls as floats unless it is told otherwise, and those name nobody.
@pytest.mark.parametrize("backend", sorted(set(BACKENDS) - {"pandas", "pyarrow"}))
def test_every_back_end_brings_the_same_bits_and_answers_alike(
    backend: str, expected: list[Any], tmp_path: Path
) -> None:
    assert seen(BACKENDS[backend](arrow(), tmp_path)) == expected


def test_so_does_plain_pandas_where_ids_are_texts(expected: list[Any]) -> None:
    frame = arrow().to_pandas()
    frame["id"] = frame["id"].astype("Int64")
    assert seen(frame) == expected
