"""Signed flip distances: sensitivity 1 from any distance with the two properties, and from integer margins."""

import itertools
from dataclasses import replace

import pytest

from dpcausal.errors import ParameterError
from dpcausal.papers.statistics.rank import (
    flip_sensitivity,
    kendall_numerator_sensitivity,
    signed,
    signed_margin,
    spearman_numerator,
    spearman_sensitivity,
)
from dpcausal.privacy.sensitivity import Unit
from dpcausal.statistics.rank import kendall_numerator
from tests.conformance import exhaustive

SCORES = {
    "spearman": (spearman_numerator, lambda m: replace(spearman_sensitivity(m), bound=2 * m * (m - 1))),
    "kendall": (kendall_numerator, kendall_numerator_sensitivity),
}


@pytest.mark.proves("signed-flip-distance")
def test_distances_with_the_two_properties_give_sensitivity_one_and_the_winners_sign():
    states = [(first_wins, d) for first_wins in (True, False) for d in range(1, 8)]
    for (w, d), (w_, d_) in itertools.product(states, states):
        allowed = abs(d - d_) <= 1 if w == w_ else d == d_ == 1
        assert (abs(signed(w, d) - signed(w_, d_)) <= 1) == allowed
        assert (signed(w, d) >= 0) == w


@pytest.mark.proves("rank-flip-distance")
@pytest.mark.parametrize("bound", [1, 2, 3, 7])
def test_all_small_margins_within_two_bounds_are_within_one_step(bound):
    margins = range(-10 * bound, 10 * bound + 1)
    worst = 0
    for u, v in itertools.product(margins, margins):
        if abs(u - v) <= 2 * bound:
            worst = max(worst, abs(signed_margin(0, u, bound) - signed_margin(5, 5 + v, bound)))
    assert worst == 1
    assert all((signed_margin(0, u, bound) >= 0) == (u >= 0) for u in margins)


@pytest.mark.proves("rank-flip-distance")
@pytest.mark.parametrize("bound", [1, 3])
def test_the_margin_distance_is_the_fewest_moves_that_change_the_winner(bound):
    for margin in range(-12 * bound, 12 * bound + 1):
        first_wins = margin >= 0
        step = -2 * bound if first_wins else 2 * bound
        moves = next(j for j in itertools.count() if (margin + step * j >= 0) != first_wins)
        assert signed_margin(0, margin, bound) == signed(first_wins, moves)


@pytest.mark.proves("rank-flip-distance")
@pytest.mark.parametrize("name", SCORES)
def test_one_record_moves_the_rank_flip_distance_by_at_most_one(name):
    score, claim = SCORES[name]

    def z(rows):
        first, second = abs(score(rows[:, 0], rows[:, 1])), abs(score(rows[:, 2], rows[:, 3]))
        return signed_margin(first, second, claim(len(rows)).bound)

    worst, pairs = exhaustive(z, (0, 1), 3, columns=4)
    assert worst == flip_sensitivity("rank-flip-distance", Unit.TEST_ROW).bound == 1 and pairs > 15_000


def test_scores_of_any_size_are_compared_exactly():
    huge = 10**30
    assert signed_margin(huge, huge + 2 * 10**29 - 1, 10**29) == 0
    assert signed_margin(huge, huge + 2 * 10**29, 10**29) == 1
    assert signed_margin(huge + 1, huge, 10**29) == -1
    with pytest.raises(ParameterError):
        signed_margin(0, 1, 0)
