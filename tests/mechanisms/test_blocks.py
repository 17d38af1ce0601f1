"""Blocks: a public partition, and a count of votes that one row moves by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpcausal.errors import FenceError, ParameterError
from dpcausal.mechanisms.additive import geometric
from dpcausal.mechanisms.blocks import assign_blocks, vote_count
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.privacy.sensitivity import Relation, Unit


@pytest.mark.parametrize(("rows", "blocks"), [(1, 1), (5, 5), (10, 3), (100, 7), (1001, 25)])
def test_blocks_are_a_partition_into_nearly_equal_parts(rows: int, blocks: int) -> None:
    parts = assign_blocks(rows, blocks, generator_from_seed(2))
    assert len(parts) == blocks
    assert sorted(itertools.chain.from_iterable(part.tolist() for part in parts)) == list(range(rows))
    assert {len(part) for part in parts} <= {rows // blocks, -(-rows // blocks)}
    assert all((np.diff(part) > 0).all() for part in parts)


def test_a_partition_follows_from_the_seed_alone() -> None:
    first, again, other = (assign_blocks(50, 5, generator_from_seed(seed)) for seed in (1, 1, 2))
    assert all((one == same).all() for one, same in zip(first, again, strict=True))
    assert not all((one == different).all() for one, different in zip(first, other, strict=True))


def test_any_two_rows_share_a_block_as_often_as_chance_has_it() -> None:
    # 3,000 partitions of 12 rows in 3 blocks: rows share one with probability 3/11; six standard errors of .0081 for
    # each of 66 pairs, a false alarm of 1.3e-7.
    together = np.zeros((12, 12))
    for seed in range(3000):
        for part in assign_blocks(12, 3, generator_from_seed(seed)):
            together[np.ix_(part, part)] += 1
    shares = together[np.triu_indices(12, 1)] / 3000
    assert np.abs(shares - 3 / 11).max() < 6 * np.sqrt(3 / 11 * 8 / 11 / 3000)


@pytest.mark.parametrize("blocks", [0, -1, 11])
def test_a_number_of_blocks_that_leaves_one_empty_is_refused(blocks: int) -> None:
    with pytest.raises(ParameterError, match="between 1 and the 10 rows"):
        assign_blocks(10, blocks, generator_from_seed(0))


@pytest.mark.proves("block-votes")
def test_over_all_small_tables_a_replaced_row_moves_the_count_by_at_most_one_and_sometimes_by_one() -> None:
    parts = assign_blocks(5, 2, generator_from_seed(0))

    def count(rows: tuple[int, ...]) -> int:
        votes = [sum(rows[place] for place in part) % 3 == 0 for part in parts]  # any function of a block's rows
        return int(np.asarray(vote_count(votes, "votes")._answer))

    moves = [
        abs(count(rows) - count((*rows[:place], new, *rows[place + 1 :])))
        for rows in itertools.product(range(3), repeat=5)
        for place in range(5)
        for new in range(3)
    ]
    assert max(moves) == 1 and len(moves) >= 3000


def test_a_vote_count_is_a_hidden_integer_with_sensitivity_one() -> None:
    query = vote_count([True, False, True], "votes", Unit.ROW)
    assert query.integral and query.shape == ()
    assert (query.sensitivity.bound, query.sensitivity.proof) == (1, "block-votes")
    assert query.sensitivity.relation is Relation.REPLACE_ONE and query.sensitivity.unit is Unit.ROW
    assert "2" not in repr(query).replace("block-votes", "")


def test_a_vote_count_is_released_for_its_own_unit_only() -> None:
    allotment = Ledger.in_memory(PureDP(1), protect="test").charge(PureDP(1), task="votes", unit=Unit.TEST_ROW)
    with pytest.raises(FenceError, match="protects a row of the test half"):
        geometric(vote_count([True], "votes"), allotment, PureDP(1))
