"""Blocks made up where an engine has the rows: those of memory, and a failure is that block's own or nobody's."""

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.data import remote_blocks as apart
from dpcausal.data import source
from dpcausal.data.records import Reading, Rows
from dpcausal.data.remote_blocks import BlockAssigner, BlockReducer, WorkerBlocks
from dpcausal.data.sources.origin import source_of
from dpcausal.data.sources.pyspark import Assigner, Gatherer, _unpacked
from dpcausal.errors import SchemaError
from dpcausal.mechanisms.blocks import assign_blocks

N = 900
SCHEMA = dpc.Schema({**dict.fromkeys("xyz", dpc.Bounded(-4, 4)), "a": dpc.Levels([0, 1])})


def people(n: int = N) -> pa.Table:
    """One row a person, some without x, some of nobody."""
    rng = np.random.default_rng(4)
    x, z = rng.normal(size=(2, n))
    ids = [None if place % 101 == 5 else f"p{place}" for place in range(n)]
    x = np.where(rng.random(n) < 0.1, np.nan, x)
    return pa.table({"id": ids, "x": x, "y": np.nan_to_num(x) + z, "z": z, "a": rng.integers(0, 2, n)})


def moved(table: pa.Table) -> pl.LazyFrame:
    """A query that puts its rows in another order."""
    return pl.DataFrame(table).lazy().sort("y")


def made(frame: Any, epsilon: float = 100) -> dpc.Table:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(epsilon), person="id", accept_large_epsilon=True)
    return dpc.Table(frame, SCHEMA, ledger, person="id")


@pytest.fixture
def few_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "HELD", 100)
    monkeypatch.setattr(apart, "GROUP", 100)
    monkeypatch.setattr(source, "WAVE", 4)


def released(table: dpc.Table) -> list[Any]:
    with dpc.simulated_noise(3):
        some = table.where("z", at_least=-1.0)
        test = dpc.ci_test(table, "x", "y", given=["z"], loss=dpc.PureDP(1), method=dpc.methods.Gcm(blocks=9))
        votes = dpc.direction(table, "x", "y", loss=dpc.PureDP(1), method=dpc.methods.MajorityVote(blocks=9))
        bits = dpc.direction(some, "x", "y", loss=dpc.PureDP(1), method=dpc.methods.Verdict(blocks=9))
        slopes = dpc.effect(table, treatment="a", outcome="y", adjust=["x"], loss=dpc.PureDP(15),
                            method=dpc.methods.SampleAggregate(blocks=20, terms="lines"))  # fmt: skip
        return [test.statistic, test.pvalue, votes.margin, bits.to_dict()["counts"], slopes.estimate, slopes.interval]


def test_blocks_made_up_in_waves_release_the_bits_of_memory(few_held: None, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, asked = released(made(people())), []
    each = WorkerBlocks.each
    monkeypatch.setattr(WorkerBlocks, "each", lambda *these: asked.append(1) or each(*these))
    assert released(made(moved(people()))) == expected
    assert len(asked) == 4


@dataclass(frozen=True)
class Rank:
    """How many rows a block has, and what they sum to; a failure says −7."""

    broken: int = -1

    def __call__(self, rows: Rows, parts: Any) -> list[list[int]]:
        return [[-7, -7] if block == self.broken else [len(part), int(1e6 * rows.values["z"][part].sum())]
                for block, part in parts]  # fmt: skip


def same(rows: Rows) -> Rows:
    return rows


def by_workers(table: dpc.Table, rows: pa.Table, blocks: int, each: Any, groups: int = 5) -> Any:
    """Deal and gather as Spark's workers do, in pieces of 70 rows that come in any order."""
    deal = BlockAssigner(Reading.of(table.spec, ("z",)), "id", False, blocks, 17, groups)
    gather = BlockReducer(deal, True, 2, same, each)
    dealer, gatherer = (pickle.loads(pickle.dumps(one)) for one in (Assigner(("z", "id"), deal), Gatherer(gather)))
    parts = rows.select(["z", "id"]).rename_columns(["c0", "c1"]).to_batches(max_chunksize=70)
    sent = [batch for part in reversed(parts) for batch in dealer(iter([part]))]
    total = sum(_unpacked(row["total"]) for batch in gatherer(iter(sent)) for row in batch.to_pylist())
    return total[0], total[1:].reshape(blocks, 3)


@pytest.mark.parametrize("blocks", [1, 7, 2_000])
def test_workers_have_the_blocks_that_keys_deal_in_memory(blocks: int) -> None:
    rows = people()
    table = made(rows)
    persons, found = by_workers(table, rows, blocks, Rank(), min(blocks, 5))
    held = table.rows(["z"])

    class Salted:
        def integers(self, high: int) -> int:
            return 17

    parts = assign_blocks(max(held.n, blocks), blocks, Salted(), held.keys)  # type: ignore[arg-type]
    spoken = [block for block, part in enumerate(parts) if len(part)]
    assert persons == held.n == table.n == found[:, 1].sum()
    assert np.flatnonzero(found[:, 0]).tolist() == spoken
    assert found[spoken, 1:].tolist() == Rank()(held, [(block, parts[block]) for block in spoken])


def test_a_block_that_fails_is_alone_with_it() -> None:
    rows = people()
    (_, fine), (_, failed) = (by_workers(made(rows), rows, 7, Rank(broken)) for broken in (-1, 3))
    assert failed[3].tolist() == [1, -7, -7]
    assert (np.delete(failed, 3, 0) == np.delete(fine, 3, 0)).all()


def test_a_person_of_another_id_moves_two_blocks_and_of_other_values_one() -> None:
    rows = people()
    ids = rows["id"].to_pylist()
    z = rows["z"].to_numpy().copy()
    (_, before), worst = by_workers(made(rows), rows, 7, Rank()), set()
    for place in range(0, N, 300):
        other = z.copy()
        other[place] = 3.0
        for name in (ids[place], "new"):
            named = [*ids[:place], name, *ids[place + 1 :]]
            changed = rows.set_column(0, "id", pa.array(named)).set_column(3, "z", pa.array(other))
            _, after = by_workers(made(changed), changed, 7, Rank())
            moves = int((before != after).any(axis=1).sum())
            assert moves <= (1 if name == ids[place] else 2)
            worst.add(moves)
    assert worst >= {1, 2}


def test_blocks_that_nobody_is_in_say_what_they_say_in_memory(few_held: None) -> None:
    rows = people(150)
    asked = WorkerBlocks(made(moved(rows)).spec, ("z",), same).each(400, 17, 2, Rank())
    assert asked.shape == (400, 2)
    assert (asked[asked[:, 0] == 0] == 0).all() and asked[:, 0].sum() == made(rows).n


def test_what_cannot_be_dealt_gives_no_figure_and_other_rows_are_refused_unpaid(
    few_held: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: BlockAssigner, collected: Any) -> Any:
        raise ValueError("canary")

    for fault, spends in ((broken, 1), (None, 0)):
        table = made(moved(people()))
        with monkeypatch.context() as patch:
            if fault is not None:
                patch.setattr(BlockAssigner, "__call__", fault)
            else:
                patch.setattr(table.spec.source, "frame", source_of(moved(people(N - 1))).frame)
            with pytest.raises(SchemaError) as caught:
                dpc.ci_test(table, "x", "y", given=["z"], loss=dpc.PureDP(1), method="gcm")
        assert "canary" not in str(caught.value) and len(table.ledger.entries()) == spends
    assert next(iter(Assigner(("id",), broken)(iter(people().select(["id"]).to_batches())))).to_pydict()["part"] == [-1]
