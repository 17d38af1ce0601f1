"""Where scores are cut: near where it is said that tails are short, else where what is hidden costs least."""

from __future__ import annotations

import numpy as np
import pytest

from dpcausal.effects.estimators.scores import TailCounts, cuts_of, detection_threshold, times_as_wide


def counted(scores: np.ndarray, cuts: np.ndarray, deviation: float = 0.0, seed: int = 0) -> TailCounts:
    ends = np.concatenate([[-np.inf], -cuts[::-1], cuts, [np.inf]])
    far = np.histogram(scores, ends)[0].astype(float)
    return TailCounts(cuts, far + deviation * np.random.default_rng(seed).normal(size=len(far)), deviation)


def test_normal_scores_are_cut_near_if_tails_are_said_to_be_short_and_far_out_where_noise_would_hide_one() -> None:
    normal = np.random.default_rng(1).normal(size=10_000) / 1.2
    for told in (False, True):
        tails = counted(normal, cuts_of(10_000), 10.0)
        place, edge = tails.best(10.0, told)
        assert bool(tails.cuts[place] < 5) is told and (edge is None) is told


@pytest.mark.parametrize("arm_imbalance", [1.0, 1.7, 3.0])
def test_short_tails_of_a_rarer_arm_are_not_cut_nearer_than_those_of_arms_of_one_size(arm_imbalance: float) -> None:
    cuts = cuts_of(10_000)
    place, _ = counted(np.random.default_rng(1).normal(size=10_000) / 1.2, cuts, 10.0).best(50.0, True, arm_imbalance)
    assert 1 / 1.27 < cuts[place] / (2.5 * arm_imbalance) < 1.27


def test_the_edge_is_farther_where_more_scores_lie_far_out_and_no_cut_lies_beyond_it() -> None:
    rng, cuts = np.random.default_rng(2), cuts_of(10_000)
    short, long = (counted(scores, cuts) for scores in (rng.normal(size=10_000) / 1.2, rng.standard_t(2, size=10_000)))
    assert cuts[short.edge()] == pytest.approx(detection_threshold(10_000)) and long.edge() > short.edge()
    for tails in (short, long):
        place, edge = tails.best(10.0, False)
        assert edge is not None and place <= edge


@pytest.mark.parametrize("law", ["exponential", "lognormal", "gamma", "hump"])
@pytest.mark.parametrize("place", range(4))
def test_what_a_long_side_has_beyond_a_cut_is_told_by_exact_counts(law: str, place: int) -> None:
    rng, cuts = np.random.default_rng(3), cuts_of(10_000)
    drawn = {
        "exponential": rng.exponential, "lognormal": rng.lognormal, "gamma": lambda size: rng.gamma(4, size=size),
        "hump": lambda size: rng.normal(size=size) + 9 * (rng.random(size) < 0.005),
    }  # fmt: skip
    scores = drawn[law](size=10**6)
    scores = (scores - scores.mean()) / scores.std() / 1.2
    cut, taken = cuts[place], counted(scores, cuts).taken(place, 3)
    truly = np.maximum(scores - cut, 0).sum() - np.maximum(-cut - scores, 0).sum()
    assert truly <= taken.above + 3 * taken.hidden + 3 * scores.std() * 1e3 and taken.below == 0


def test_what_is_hidden_is_noise_and_chance_as_far_out_as_it_may_lie() -> None:
    cuts = cuts_of(10_000)
    far = np.zeros(2 * len(cuts) + 1)
    far[len(cuts)] = 10_000.0
    taken = TailCounts(cuts, far, 10.0).taken(2, 3)
    middle, edge = (cuts[2] + cuts[3]) / 2, cuts[3]
    distances = np.array([middle, edge, edge, edge]) - cuts[2]
    assert taken.hidden == pytest.approx(10 * np.sqrt(2 * distances @ distances)) and taken.above == taken.below == 0
    assert TailCounts(cuts, far, 10.0).taken(3, 3).hidden == 0


def test_an_interval_is_foretold_wider_by_the_noise_of_the_farthest_scores_that_are_kept() -> None:
    assert times_as_wide(10_000, 0.0, False) == 1
    assert times_as_wide(10_000, 10.0, False) == pytest.approx(np.hypot(1, 1.2 * 10 * 10 / 100))
    assert times_as_wide(10_000, 10.0, True) < times_as_wide(10_000, 10.0, False)


def test_a_hump_that_is_seen_lies_within_the_edge_and_one_beyond_all_cuts_leaves_no_interval() -> None:
    rng, cuts = np.random.default_rng(4), cuts_of(10_000)
    scores = rng.normal(size=10_000) / 1.2
    for far, place in ((0, 3), (15, 4), (25, 5), (40, 5)):
        tails = counted(np.append(scores[100:], np.full(100, float(far))), cuts, 10.0)
        assert tails.edge() == place and tails.beyond_last_threshold is (far == 40)


def test_nothing_is_hidden_beyond_where_bounds_end_and_no_cut_is_noisier_than_they_are() -> None:
    cuts = cuts_of(10_000)
    far = np.full(2 * len(cuts) + 1, 50.0)
    far[len(cuts)] = 10_000.0
    bounded = TailCounts(cuts, far, 10.0, farthest=5.0)
    assert bounded.edge() == 2 and not bounded.beyond_last_threshold and bounded.share_beyond(2) == 0
    assert bounded.taken(2, 2) == (0, 0, 0) and bounded.unseen(2, 2.0) == 0
    # Between 3.97 and 5 counts tell what is hidden, half way.
    assert bounded.taken(1, 2).hidden == pytest.approx((5 - cuts[1]) / 2 * np.sqrt(2 * 10**2 + 100))
    assert TailCounts(cuts, far, 10.0).edge() > 3
    quiet = np.where(far == 50, 0.0, far)
    for noise in (1.0, 20.0):
        place, edge = TailCounts(cuts, quiet, 10.0, farthest=5.0).best(noise, False)
        assert place <= edge == 2
    assert TailCounts(cuts, quiet, 10.0, farthest=2.0).best(20.0, False) == (0, 0)


def test_as_many_scores_may_lie_beyond_a_cut_as_counts_show_and_their_noise_hides() -> None:
    rng, cuts, held = np.random.default_rng(5), cuts_of(10_000), 0
    scores = np.append(rng.normal(size=9_920) / 1.2, np.full(80, 12.0))
    for seed in range(400):
        held += counted(scores, cuts, 12.0, seed).unseen(3, 1.96) >= 80
    # One-sided .975 of 400 is 390; 378 or fewer with a probability below 1e-3.
    assert 379 <= held < 400
