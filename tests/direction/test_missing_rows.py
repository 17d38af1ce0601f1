"""A direction of rows that may lack a column: left out inside their block, so one row still moves one vote."""

from __future__ import annotations

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.mechanisms.gate import recording_gate

N = 360
SCHEMA = dpc.Schema({"x": dpc.Bounded(-2, 2), "y": dpc.Bounded(-2, 2)})
Frame = dict[str, np.ndarray]


def frame(seed: int, share: float = 0.3) -> Frame:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, N)
    columns = {"x": x, "y": x**3 + 0.3 * rng.uniform(-1, 1, N)}
    for column in columns.values():
        column[rng.random(N) < share] = np.nan
    return columns


def asked(columns: Frame, loss: dpc.Loss | None = None) -> dpc.Direction:
    paid = dpc.PureDP(1.0) if loss is None else loss
    ledger = dpc.Ledger.in_memory(dpc.PureDP(10)) if loss is None else dpc.Ledger.without_privacy()
    table = dpc.Table(columns, SCHEMA, ledger)
    with dpc.simulated_noise(3):
        return dpc.direction(table, "x", "y", method="majority-vote" if loss is None else "auto", loss=paid)


def test_what_a_row_that_lacks_a_column_holds_elsewhere_does_not_count() -> None:
    before = frame(1)
    lacks = np.isnan(before["x"])
    after = {"x": before["x"], "y": np.where(lacks, 2.0, before["y"])}
    assert lacks.sum() > 50 and asked(before).margin == asked(after).margin


@pytest.mark.parametrize("kind", ["out", "in"])
def test_a_row_that_is_left_out_or_comes_in_moves_one_vote_at_most(kind: str) -> None:
    for seed in range(12):
        before = frame(seed)
        lacks = np.isnan(before["x"])
        place = int(np.flatnonzero(~lacks if kind == "out" else lacks)[seed])
        after = {name: column.copy() for name, column in before.items()}
        after["x"][place] = np.nan if kind == "out" else 2.0
        passages = []
        for columns in (before, after):
            with recording_gate("low") as recording:
                asked(columns)
            passages.append(recording.passages)
        for one, other in zip(*passages, strict=True):
            assert one.event == other.event and abs(int(one.value) - int(other.value)) <= one.bound == 1


def test_an_empty_block_votes_by_its_own_coin() -> None:
    """A vote that looks at its first row would raise, and so tell."""
    empty = {name: np.full(N, np.nan) for name in SCHEMA}
    margins = []
    for seed in range(40):
        with dpc.simulated_noise(seed):
            table = dpc.Table(empty, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(10)))
            found = dpc.direction(table, "x", "y", method=dpc.methods.MajorityVote(blocks=9), loss=dpc.PureDP(5))
            margins.append(found.margin)
    assert all(margin is not None for margin in margins) and len(set(margins)) > 3


def test_without_privacy_the_complete_rows_alone_are_asked() -> None:
    columns = frame(2)
    both = ~np.isnan(columns["x"]) & ~np.isnan(columns["y"])
    alone = {name: column[both] for name, column in columns.items()}
    assert asked(columns, dpc.NoPrivacy()).scores == asked(alone, dpc.NoPrivacy()).scores
