"""Blocks: a public partition, and votes, sums and windows over blocks that one row moves by no more than is stated.

The neighbour searches of the claims are in the registry: ``block-votes``, ``block-sum``, ``block-window``.
"""

import itertools
from typing import Any

import numpy as np
import pytest

from dpcausal import Ledger, PureDP
from dpcausal.errors import FenceError, ParameterError
from dpcausal.mechanisms.additive import geometric
from dpcausal.mechanisms.blocks import INSIDE, assign_blocks, block_sum, block_window, vote_count
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.privacy.sensitivity import Query, Relation, Unit

REACH = 4
CENTRES, HALVES = np.array([-6, 0, 3, 8, 0]), np.array([2, 2, 2, 2, 9])


def parts_of(rows: np.ndarray) -> list[Any]:
    """Return the first column of each of three blocks."""
    return [rows[part, 0] for part in assign_blocks(len(rows), 3, generator_from_seed(5))]


def sum_of(rows: np.ndarray) -> Query:
    """Return a sum of terms that go far beyond the reach."""
    return block_sum([round(9 * float(part.sum())) for part in parts_of(rows)], REACH, "terms")


def windows_of(rows: np.ndarray, scale: float = 9.0) -> Query:
    """Return the scores over three blocks, without an answer where their first column is low in the mean."""
    answers = [None if part.mean() < -0.8 else round(scale * float(part.sum())) for part in parts_of(rows)]
    return block_window(answers, CENTRES, HALVES, "windows")


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
    with pytest.raises(ParameterError):
        assign_blocks(10, blocks, generator_from_seed(0))


def test_a_vote_count_is_a_hidden_integer_with_sensitivity_one_released_for_its_own_unit_only() -> None:
    query = vote_count([True, False, True], "votes", Unit.ROW)
    assert query.integral and query.shape == ()
    assert (query.sensitivity.bound, query.sensitivity.proof) == (1, "block-votes")
    assert query.sensitivity.relation is Relation.REPLACE_ONE and query.sensitivity.unit is Unit.ROW
    assert "2" not in repr(query).replace("block-votes", "")
    allotment = Ledger.in_memory(PureDP(1), protect="test").charge(PureDP(1), task="votes", unit=Unit.TEST_ROW)
    with pytest.raises(FenceError):
        geometric(query, allotment, PureDP(1))


def test_a_term_beyond_the_reach_is_clipped_and_an_integer_is_hidden() -> None:
    assert block_sum([100, -100, 3], REACH, "terms")._answer == 3
    hidden = block_sum([1], REACH, "terms")
    assert hidden.integral and hidden.sensitivity.bound == 8 and "answer hidden" in repr(hidden)
    with pytest.raises(ParameterError):
        block_sum([1], 0, "terms")


def test_a_block_that_answers_fails_or_turns_moves_what_its_halves_count() -> None:
    def of(*answers: int | None) -> Any:
        return block_window(answers, np.array([0]), np.array([1]), "windows")._answer[0]

    inside = round(2 * INSIDE * 3)
    assert of(-5, 5, 0) == -max(abs(2 - 3), abs(2 - inside)) and of(None, None, None) == -inside
    assert {abs(of(-5, 5, 0) - of(-5, 5, other)) for other in (-5, 5, None, 1)} <= {0, 1, 2}
    assert abs(of(0, 5, -5) - of(5, 5, -5)) == 2  # what is inside counts double


def test_the_best_window_is_about_the_middle_and_reaches_a_deviation() -> None:
    answers = np.rint(1000 * generator_from_seed(3).normal(size=4_000) + 500).astype(int).tolist()
    halves = np.repeat([125, 250, 500, 1000, 2000, 4000], 401)
    centres = np.tile(np.arange(-200, 201), 6) * 100
    found = block_window(answers, centres, halves, "windows")
    best = int(np.argmax(found._answer))
    assert abs(centres[best] - 500) <= 100 and halves[best] == 1000 and found.integral


def test_a_person_of_a_private_id_moves_two_blocks_and_windows_need_halves() -> None:
    of = {unit: block_window([1], CENTRES, HALVES, "windows", unit).sensitivity.bound for unit in Unit}
    assert of[Unit.PERSON] == 4 and of[Unit.ROW] == of[Unit.LISTED_PERSON] == 2
    for centres in (np.array([], dtype=np.int64), CENTRES[:2]):
        with pytest.raises(ParameterError):
            block_window([1], centres, HALVES, "windows")
