"""Persons of many rows in the tests of independence: one record each, and noise for what a whole person moves."""

from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.mechanisms.gate import recording_gate

PERSONS, EACH = 300, 4
SCHEMA = dpc.Schema(dict.fromkeys("xyz", dpc.Bounded(-4, 4)))
Frame = dict[str, np.ndarray]


def frame(seed: int) -> Frame:
    rng = np.random.default_rng(seed)
    own = np.repeat(rng.standard_normal((PERSONS, 3)), EACH, axis=0) + rng.standard_normal((PERSONS * EACH, 3)) / 3
    own[rng.random(own.shape) < 0.1] = np.nan
    return {"id": np.repeat(np.arange(PERSONS), EACH), **dict(zip("xyz", own.T, strict=True))}


def ask(columns: Frame, ids: str, loss: dpc.PureDP, method: Any = "auto") -> Any:
    table = dpc.Table(columns, SCHEMA, dpc.Ledger.in_memory(loss, person="id", ids=ids), person="id", ids=ids)
    return dpc.ci_test(table, "x", "y", given=["z"], method=method, loss=loss)


def test_private_ids_pay_for_two_blocks_and_public_ones_for_one() -> None:
    bounds = []
    for ids in ("private", "public"):
        with recording_gate("low") as recording:
            ask(frame(5), ids, dpc.PureDP(1), dpc.methods.Gcm(blocks=4, resamples=19))
        bounds.append(recording.passages[0].bound)
    assert bounds[0] == 2 * bounds[1]


def test_thousands_of_rows_of_one_person_do_not_outvote_the_others() -> None:
    others, rng = frame(6), np.random.default_rng(7)
    line = rng.uniform(-4, 4, 20_000)
    many = {"id": np.full(20_000, 3), "x": line, "y": line, "z": rng.uniform(-4, 4, 20_000)}
    both = {name: np.concatenate([others[name], many[name]]) for name in others}
    with dpc.simulated_noise(1):
        t = ask(both, "private", dpc.PureDP(5))
    assert t.n == PERSONS and t.pvalue > 0.001
