"""Where scores are cut: the nearest cut where tails are normal, far out where one side goes on."""

from __future__ import annotations

import numpy as np
import pytest

from dpcausal.effects.cut import LONG_TAIL, best_cut, cuts_of, taken_by, unsure_of


def counted(scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    ends = np.concatenate([[-np.inf], -cuts[::-1], cuts, [np.inf]])
    return np.histogram(scores, ends)[0].astype(float)


def test_normal_scores_are_cut_near_and_a_long_side_far_out() -> None:
    rng, cuts = np.random.default_rng(1), cuts_of(100_000, 10.0)
    normal = rng.normal(size=100_000) / 1.2
    long = np.where(rng.random(100_000) < 0.5, rng.exponential(size=100_000) - 1, normal)
    near, short = best_cut(cuts, counted(normal, cuts), (10.0, 20.0), 1.0)
    far, long_tailed = best_cut(cuts, counted(long, cuts), (10.0, 20.0), 1.0)
    assert near <= 3 and not short and far > 4 and long_tailed


def test_long_tails_are_seen_though_they_are_alike() -> None:
    rng, cuts = np.random.default_rng(2), cuts_of(100_000, 10.0)
    assert best_cut(cuts, counted(rng.standard_t(3, size=100_000), cuts), (10.0, 20.0), 1.0)[1]


@pytest.mark.parametrize("law", ["exponential", "lognormal", "gamma"])
@pytest.mark.parametrize("cut", [2.5, 3.0, 4.5])
def test_what_a_long_side_has_beyond_the_cut_is_allowed_for(law: str, cut: float) -> None:
    rng = np.random.default_rng(3)
    drawn = {"exponential": rng.exponential, "lognormal": rng.lognormal, "gamma": lambda size: rng.gamma(4, size=size)}
    scores = drawn[law](size=10**6)
    scores = (scores - scores.mean()) / scores.std() / 1.2
    above, below = float((scores > cut).sum()), float((scores < -cut).sum())
    truly = np.maximum(scores - cut, 0).sum() - np.maximum(-cut - scores, 0).sum()
    assert truly <= 1.25 * taken_by(cut, (below, above), 0.0, 1.0, LONG_TAIL)


def test_the_difference_of_two_counts_is_unsure_by_noise_and_chance() -> None:
    assert unsure_of(50.0, 50.0, 10.0) == pytest.approx(np.sqrt(300))
