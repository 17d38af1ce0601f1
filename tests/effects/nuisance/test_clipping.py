"""Where scores are cut: near where tails are declared short, else where what is hidden costs least."""

from typing import Any

import numpy as np
import pytest

from dpcausal.effects.nuisance.scores import TailCounts, cuts_of, detection_threshold, times_as_wide

CUTS = cuts_of(10_000)
NORMAL = np.random.default_rng(1).normal(size=10_000) / 1.2


def counted(scores: Any, deviation: float = 0.0, seed: int = 0) -> TailCounts:
    far = np.histogram(scores, np.concatenate([[-np.inf], -CUTS[::-1], CUTS, [np.inf]]))[0].astype(float)
    return TailCounts(CUTS, far + deviation * np.random.default_rng(seed).normal(size=len(far)), deviation)


@pytest.mark.parametrize("short", [False, True])
def test_normal_scores_are_cut_near_if_tails_are_declared_short_and_far_where_noise_would_hide_one(short: bool) -> None:
    place, edge = counted(NORMAL, 10.0).best(10.0, short)
    assert bool(CUTS[place] < 5) is short and (edge is None) is short


@pytest.mark.parametrize("arm_imbalance", [1.0, 1.7, 3.0])
def test_short_tails_of_a_rarer_arm_are_not_cut_nearer_than_those_of_arms_of_one_size(arm_imbalance: float) -> None:
    place, _ = counted(NORMAL, 10.0).best(50.0, True, arm_imbalance)
    assert 1 / 1.27 < CUTS[place] / (2.5 * arm_imbalance) < 1.27


def test_the_edge_is_farther_where_more_scores_are_extreme_and_no_cut_lies_beyond_it() -> None:
    short, long = counted(NORMAL), counted(np.random.default_rng(2).standard_t(2, size=10_000))
    assert CUTS[short.edge()] == pytest.approx(detection_threshold(10_000)) and long.edge() > short.edge()
    for tails in (short, long):
        place, edge = tails.best(10.0, False)
        assert edge is not None and place <= edge


@pytest.mark.parametrize("tail", ["exponential", "lognormal", "gamma", "hump"])
@pytest.mark.parametrize("place", range(4))
def test_exact_counts_show_what_a_long_side_has_beyond_a_cut(tail: str, place: int) -> None:
    rng = np.random.default_rng(3)
    scores = {
        "exponential": rng.exponential, "lognormal": rng.lognormal, "gamma": lambda size: rng.gamma(4, size=size),
        "hump": lambda size: rng.normal(size=size) + 9 * (rng.random(size) < 0.005),
    }[tail](size=10**6)  # fmt: skip
    scores = (scores - scores.mean()) / scores.std() / 1.2
    taken, cut = counted(scores).taken(place, 3), CUTS[place]
    truly = np.maximum(scores - cut, 0).sum() - np.maximum(-cut - scores, 0).sum()
    assert truly <= taken.above + 3 * taken.hidden + 3 * scores.std() * 1e3 and taken.below == 0


def test_what_is_hidden_is_noise_and_chance_as_far_as_it_may_lie() -> None:
    far = np.zeros(2 * len(CUTS) + 1)
    far[len(CUTS)] = 10_000.0
    taken, edge = TailCounts(CUTS, far, 10.0).taken(2, 3), CUTS[3]
    distances = np.array([(CUTS[2] + edge) / 2, edge, edge, edge]) - CUTS[2]
    assert taken.hidden == pytest.approx(10 * np.sqrt(2 * distances @ distances)) and taken.above == taken.below == 0
    assert TailCounts(CUTS, far, 10.0).taken(3, 3).hidden == 0


def test_an_interval_is_predicted_wider_by_the_noise_of_the_farthest_scores_that_count() -> None:
    assert times_as_wide(10_000, 0.0, False) == 1
    assert times_as_wide(10_000, 10.0, False) == pytest.approx(np.hypot(1, 1.2 * 10 * 10 / 100))
    assert times_as_wide(10_000, 10.0, True) < times_as_wide(10_000, 10.0, False)


@pytest.mark.parametrize(("far", "place"), [(0, 3), (15, 4), (25, 5), (40, 5)])
def test_a_hump_that_is_seen_lies_within_the_edge_and_one_beyond_all_cuts_is_reported(far: float, place: int) -> None:
    tails = counted(np.append(NORMAL[100:], np.full(100, far)), 10.0)
    assert tails.edge() == place and tails.beyond_last_threshold is (far == 40)


def test_nothing_is_hidden_beyond_where_bounds_end_and_no_cut_is_noisier_than_they_are() -> None:
    far = np.full(2 * len(CUTS) + 1, 50.0)
    far[len(CUTS)] = 10_000.0
    bounded = TailCounts(CUTS, far, 10.0, farthest=5.0)
    assert bounded.edge() == 2 and not bounded.beyond_last_threshold and bounded.share_beyond(2) == 0
    assert bounded.taken(2, 2) == (0, 0, 0) and bounded.unseen(2, 2.0) == 0
    # Between 3.97 and 5 counts show what is hidden, half way.
    assert bounded.taken(1, 2).hidden == pytest.approx((5 - CUTS[1]) / 2 * np.sqrt(2 * 10**2 + 100))
    assert TailCounts(CUTS, far, 10.0).edge() > 3
    quiet = np.where(far == 50, 0.0, far)
    for noise in (1.0, 20.0):
        place, edge = TailCounts(CUTS, quiet, 10.0, farthest=5.0).best(noise, False)
        assert place <= edge == 2
    assert TailCounts(CUTS, quiet, 10.0, farthest=2.0).best(20.0, False) == (0, 0)


def test_as_many_scores_may_lie_beyond_a_cut_as_counts_show_and_their_noise_hides() -> None:
    scores = np.append(np.random.default_rng(5).normal(size=9_920) / 1.2, np.full(80, 12.0))
    covered = sum(counted(scores, 12.0, seed).unseen(3, 1.96) >= 80 for seed in range(400))
    assert 379 <= covered < 400  # one-sided 0.975 of 400 is 390; 378 or fewer with a probability below 1e-3
