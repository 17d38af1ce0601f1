"""Sums of bounded block terms: a row moves one of them, by twice the reach at most."""

from __future__ import annotations

import numpy as np
import pytest

from dpcausal.errors import ParameterError
from dpcausal.mechanisms.blocks import assign_blocks, block_sum
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.privacy.sensitivity import Query
from tests.conformance import check_claim, exhaustive

REACH = 4


def query(rows: np.ndarray) -> Query:
    """Return a sum of terms that go far beyond the reach."""
    parts = assign_blocks(len(rows), 3, generator_from_seed(5))
    return block_sum([round(9 * float(rows[part, 0].sum())) for part in parts], REACH, "terms")


def exact(rows: np.ndarray) -> int:
    return int(query(rows)._answer)


@pytest.mark.proves("block-sum")
def test_no_replaced_row_moves_the_sum_by_more_than_twice_the_reach_and_some_do():
    check_claim(exact, lambda m: query(np.zeros((m, 1))).sensitivity, sizes=(6, 13), columns=1, low=-1.0, high=1.0)


@pytest.mark.proves("block-sum")
def test_over_all_pairs_of_few_values_the_bound_is_attained():
    # Three rows in three blocks, so that the order of the rows does not matter.
    worst, pairs = exhaustive(exact, (-1.0, -0.1, 0.0, 0.3, 1.0), 3, columns=1)
    assert worst == 2 * REACH and pairs > 100


def test_a_term_beyond_the_reach_is_clipped_and_an_integer_is_hidden():
    assert block_sum([100, -100, 3], REACH, "terms")._answer == 3
    hidden = block_sum([1], REACH, "terms")
    assert hidden.integral and hidden.sensitivity.bound == 8 and "answer hidden" in repr(hidden)


def test_a_reach_of_nothing_is_refused():
    with pytest.raises(ParameterError, match="reach"):
        block_sum([1], 0, "terms")
