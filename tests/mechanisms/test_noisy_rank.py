"""Ranks among copies: margins and scores that one row moves little, and the level of the decision."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcausal.errors import ParameterError
from dpcausal.mechanisms.selection import margin_sensitivity, rank_margin
from dpcausal.papers.independence.priv_crt import rank_scores
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity

Rows = Any
EACH = Sensitivity(2, Norm.LINF, Relation.REPLACE_ONE, "resample-product-sum")
OWN = Sensitivity(1.5, Norm.ABSOLUTE, Relation.REPLACE_ONE, "root-hsic")


def sums(rows: Rows) -> Rows:
    """Return five statistics; a row moves the first by at most 1.5 and each other by at most 2."""
    total = rows.sum(axis=0)
    return np.concatenate([0.75 * total[:1], total[1:]])


def margin(rows: Rows, rank: int = 2) -> float:
    claim = margin_sensitivity(OWN, EACH)
    return float(rank_margin(sums(rows), rank, 3.0, claim, generator_from_seed(1), "margin")._answer)


def scores(rows: Rows) -> Rows:
    return rank_scores(rows.sum(axis=0), 2.0, "scores", EACH)._answer


@pytest.mark.proves("noisy-rank")
def test_exchangeable_statistics_are_above_the_margin_as_often_as_the_rank_says():
    # 40,000 rounds at probability 2/20: five and a half standard deviations, a false alarm of 4e-8 at a new seed.
    rng, coins = np.random.default_rng(3), generator_from_seed(4)
    claim = margin_sensitivity(EACH, EACH)
    rounds = 40_000
    above = sum(
        rank_margin(rng.standard_normal(20) * 5, 2, 1.0, claim, coins, "margin")._answer + rng.laplace(scale=1.0) > 0
        for _ in range(rounds)
    )
    assert abs(above / rounds - 0.1) < 5.5 * (0.1 * 0.9 / rounds) ** 0.5


@pytest.mark.proves("noisy-rank")
@pytest.mark.parametrize("epsilon", [1e-4, 1e-9])
def test_the_rounding_of_large_coins_is_part_of_the_margins_bound(epsilon):
    each = Sensitivity(1e-3, Norm.ABSOLUTE, Relation.REPLACE_ONE, "root-hsic")
    claim = margin_sensitivity(each, each, epsilon)
    least = margin_sensitivity(each, each, 1e30)  # what is left without the coins' rounding
    rng, move = np.random.default_rng(1), np.r_[1e-3, np.full(19, -1e-3)] * (1 - 1e-12)
    moved = []
    for seed in range(500):
        statistics = rng.uniform(0, 0.3, 20)
        margins = [
            rank_margin(T, 2, float(claim.bound) / epsilon, claim, generator_from_seed(seed), "margin")._answer
            for T in (statistics, statistics + move)
        ]
        moved.append(abs(float(margins[1] - margins[0])))
    assert max(moved) <= claim.bound
    assert epsilon > 1e-9 or max(moved) > least.bound


@pytest.mark.proves("rank-scores")
def test_the_rounding_of_large_statistics_is_part_of_the_scores_bound():
    rng, moved = np.random.default_rng(1), []
    for _ in range(1000):
        bound = float(rng.uniform(2e-6, 3e-6))
        like = Sensitivity(bound, Norm.LINF, Relation.REPLACE_ONE, "root-hsic")
        own, copy = float(rng.uniform(0.24, 0.26)), float(rng.uniform(0.01, 0.06))
        up, down = own + bound, copy - bound
        up = up if Fraction(up) - Fraction(own) <= Fraction(bound) else float(np.nextafter(up, 0))
        down = down if Fraction(copy) - Fraction(down) <= Fraction(bound) else float(np.nextafter(down, 1))
        one, other = (rank_scores(np.array(T), bound, "scores", like) for T in ([own, copy], [up, down]))
        moved.append(float(np.max(np.abs(one._answer - other._answer))))
    assert 1 + 2.0**-40 < max(moved) <= one.sensitivity.bound


def test_the_margin_is_positive_just_if_the_first_is_among_the_k_largest():
    statistics = np.array([3.0, 9.0, 1.0, 2.0])
    for rank, sign in ((1, False), (2, True), (3, True)):
        query = rank_margin(statistics, rank, 1e-9, margin_sensitivity(EACH, EACH), generator_from_seed(0), "margin")
        assert (query._answer > 0) is np.bool_(sign)


def test_scores_are_largest_at_the_place_of_the_first():
    found = rank_scores(np.array([5.0, 1.0, 9.0, 2.0]), 2.0, "scores", EACH)._answer
    assert found.tolist() == [-1.0, 0.0, -0.75, -1.0]


def test_a_rank_without_copies_and_a_bound_below_the_sensitivity_are_refused():
    with pytest.raises(ParameterError, match="rank"):
        rank_margin(np.zeros(3), 3, 1.0, margin_sensitivity(EACH, EACH), generator_from_seed(0), "margin")
    with pytest.raises(ParameterError, match="at least the sensitivity"):
        rank_scores(np.zeros(3), 1.9, "scores", EACH)
