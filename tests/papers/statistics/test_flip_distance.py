"""Signed flip distances: sensitivity 1 from any distance with the two properties, and from integer margins."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from dpcausal.errors import ParameterError
from dpcausal.papers.statistics.flip_distance import flip_sensitivity, signed, signed_margin
from dpcausal.papers.statistics.rank import (
    kendall_numerator_sensitivity,
    spearman_numerator,
    spearman_numerator_sensitivity,
)
from dpcausal.privacy.sensitivity import Norm, Sensitivity, Unit
from dpcausal.statistics.rank import kendall_numerator
from tests.conformance import check_claim, exhaustive, search

SCORES = {
    "spearman": (spearman_numerator, spearman_numerator_sensitivity),
    "kendall": (kendall_numerator, kendall_numerator_sensitivity),
}


def margin_of(score, rows):
    """s₂ − s₁ for the columns (x, residual of y, y, residual of x)."""
    return abs(score(rows[:, 2], rows[:, 3])) - abs(score(rows[:, 0], rows[:, 1]))


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

    check_claim(z, lambda _: flip_sensitivity("rank-flip-distance"), sizes=(5, 7, 12, 25), columns=4)
    worst, pairs = exhaustive(z, (0, 1), 3, columns=4)
    assert worst == 1
    assert pairs > 15_000


@pytest.mark.proves("rank-flip-distance")
@pytest.mark.parametrize("name", SCORES)
def test_both_scores_move_at_once_so_the_margin_needs_twice_the_bound(name):
    score, claim = SCORES[name]

    def twice(m):
        return Sensitivity(2 * claim(m).bound, Norm.ABSOLUTE, claim(m).relation, "rank-flip-distance")

    # Two seeds in sixteen end one pair short of the bound, at 31/32 of it.
    check_claim(lambda rows: margin_of(score, rows), twice, sizes=(9,), columns=4, reached=0.96)


@pytest.mark.parametrize("name", SCORES)
def test_a_step_of_one_bound_instead_of_two_is_caught(name):
    score, claim = SCORES[name]

    def wrong(rows):
        return margin_of(score, rows) // claim(len(rows)).bound

    assert search(wrong, 1, sizes=(9, 14), columns=4, evaluations=400).ratio > 1


def test_a_margin_in_floats_would_round_across_an_integer():
    # tau₂ − tau₁ in units of 2Δ = 8/m, for scores whose exact margin is one step: ⌈·⌉ must be 1.
    wrong = []
    for m in range(4, 40):
        pairs = m * (m - 1) // 2
        for first in range(pairs - 4 * (m - 1)):
            second = first + 4 * (m - 1)
            if math.ceil((second / pairs - first / pairs) / (2 * 4 / m)) != 1:
                wrong.append((m, first))
            assert signed_margin(first, second, 2 * (m - 1)) == 1
            assert signed_margin(second, first, 2 * (m - 1)) == -1
    assert wrong


def test_scores_of_any_size_are_compared_exactly():
    huge = 10**30
    assert signed_margin(huge, huge + 2 * 10**29 - 1, 10**29) == 0
    assert signed_margin(huge, huge + 2 * 10**29, 10**29) == 1
    assert signed_margin(huge + 1, huge, 10**29) == -1


def test_a_bound_below_one_is_refused():
    with pytest.raises(ParameterError, match="at least 1"):
        signed_margin(0, 1, 0)


def test_the_sensitivity_is_the_integer_one_for_the_named_unit():
    stated = flip_sensitivity("iqr-flip-distance", Unit.TEST_ROW)
    assert (stated.bound, stated.proof, stated.unit) == (1, "iqr-flip-distance", Unit.TEST_ROW)
    assert Fraction(flip_sensitivity().bound) == 1
