"""Signed flip distances: sensitivity 1 from any distance with the two properties, and from integer margins."""

import itertools

import pytest

from dpcausal.errors import ParameterError
from dpcausal.papers.statistics.rank import signed, signed_margin


@pytest.mark.proves("signed-flip-distance")
def test_distances_with_the_two_properties_give_sensitivity_one_and_the_winners_sign():
    states = [(first_wins, d) for first_wins in (True, False) for d in range(1, 8)]
    for (w, d), (w_, d_) in itertools.product(states, states):
        allowed = abs(d - d_) <= 1 if w == w_ else d == d_ == 1
        assert (abs(signed(w, d) - signed(w_, d_)) <= 1) == allowed
        assert (signed(w, d) >= 0) == w


@pytest.mark.proves("rank-flip-distance")
@pytest.mark.parametrize("bound", [1, 3])
def test_the_margin_distance_is_the_fewest_moves_that_change_the_winner(bound):
    for margin in range(-12 * bound, 12 * bound + 1):
        first_wins = margin >= 0
        step = -2 * bound if first_wins else 2 * bound
        moves = next(j for j in itertools.count() if (margin + step * j >= 0) != first_wins)
        assert signed_margin(0, margin, bound) == signed(first_wins, moves)


def test_scores_of_any_size_are_compared_exactly():
    huge = 10**30
    assert signed_margin(huge, huge + 2 * 10**29 - 1, 10**29) == 0
    assert signed_margin(huge, huge + 2 * 10**29, 10**29) == 1
    assert signed_margin(huge + 1, huge, 10**29) == -1
    with pytest.raises(ParameterError):
        signed_margin(0, 1, 0)
