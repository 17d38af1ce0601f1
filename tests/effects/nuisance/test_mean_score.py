"""Where scores are cut, and what that may have taken: against the bias of cut scores in closed form."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpcausal.arrays import Reals
from dpcausal.effects.nuisance.mean_score import Tails

CUTS = np.array([4.0, 6.0, 8.0, 11.0, 16.0])
SHAPES = {
    "normal": stats.norm(), "t5": stats.t(5, scale=math.sqrt(3 / 5)), "exponential": stats.expon(-1),
    "gamma 1/4": stats.gamma(0.25, -0.5, 2), "log-normal": stats.lognorm(1, -math.exp(0.5) / 2.16, 1 / 2.16),
}  # fmt: skip


def shares(shape: Any) -> Reals:
    """Return the shares of scores below, between and above −cuts and cuts."""
    return np.diff(shape.cdf(np.append(-CUTS[::-1], CUTS)), prepend=0.0, append=1.0)


def bias(shape: Any, cut: float) -> float:
    """Return how far the mean of cut scores is below that of all."""
    far = np.linspace(cut, cut + 400, 400_001)
    return float(np.trapezoid(shape.sf(far) - shape.cdf(-far), far))


@pytest.mark.parametrize("name", ["exponential", "gamma 1/4", "log-normal"])
def test_what_a_cut_of_skewed_scores_takes_is_one_to_three_times_its_bias_or_below_the_noise(name: str) -> None:
    for noise in (1e-4, 1e-3, 1e-2):
        tails = Tails.of(shares(SHAPES[name]), 0.0, CUTS, noise, 4.0)
        true = bias(SHAPES[name], tails.cut)
        assert true < tails.taken < max(3 * true, noise * tails.cut)


@pytest.mark.parametrize("name", ["exponential", "gamma 1/4", "log-normal"])
@pytest.mark.parametrize(("deviation", "least"), [(4e-4, 0.75), (2e-4, 1.2)])
def test_on_average_a_cut_takes_three_quarters_of_its_bias_where_noise_hides_a_tail_and_all_where_it_is_clear(
    name: str, deviation: float, least: float
) -> None:
    rng = np.random.default_rng(6)
    noisy = shares(SHAPES[name]) + deviation * rng.standard_normal((1_000, 2 * len(CUTS) + 1))
    found = [Tails.of(counts, deviation, CUTS, 3e-4, 4.0) for counts in noisy]
    biases = {cut: bias(SHAPES[name], cut) for cut in CUTS}
    assert np.mean([one.taken for one in found]) > least * np.mean([biases[one.cut] for one in found])


@pytest.mark.parametrize("name", ["normal", "t5"])
def test_light_tails_of_both_sides_are_cut_near_and_take_less_than_the_noise(name: str) -> None:
    for noise in (3e-4, 1e-3, 3e-3):
        tails = Tails.of(shares(SHAPES[name]), noise / 10, CUTS, noise, 4.0)
        assert tails.cut <= 6 and tails.taken < noise * tails.cut


@pytest.mark.replication
@pytest.mark.parametrize("name", SHAPES)
def test_the_error_at_the_chosen_cut_is_near_the_least_that_any_has(name: str) -> None:
    for noise in (1e-4, 1e-3, 1e-2):
        chosen = Tails.of(shares(SHAPES[name]), 0.0, CUTS, noise, 4.0).cut
        errors = {cut: math.hypot(noise * cut, bias(SHAPES[name], cut)) for cut in CUTS}
        allowed = 0.6 * 0.6 * chosen * 2 * SHAPES[name].sf(chosen)  # a share of 0.6 more on one side, 0.6 farther
        assert errors[chosen] <= 2.5 * min(errors.values()) + allowed


def test_scores_are_cut_farther_out_the_less_noise_there_is() -> None:
    chosen = [Tails.of(shares(SHAPES["log-normal"]), 0.0, CUTS, noise, 4.0).cut for noise in (0.1, 1e-3, 1e-5)]
    assert chosen[0] == 4 and chosen[-1] == 16 and chosen == sorted(chosen)


def test_no_cut_is_nearer_than_the_least_and_one_beyond_all_is_the_least_itself() -> None:
    cuts = [Tails.of(shares(SHAPES["normal"]), 0.0, CUTS, 0.01, nearest).cut for nearest in (1.0, 6.5, 300.0)]
    assert cuts == [4.0, 8.0, 300.0]


def test_noise_in_counts_of_light_tails_seldom_moves_the_cut_and_is_never_clear() -> None:
    rng, deviation, found = np.random.default_rng(5), 0.002, []
    for _ in range(2_000):
        noisy = shares(SHAPES["normal"]) + deviation * rng.standard_normal(2 * len(CUTS) + 1)
        found.append(Tails.of(noisy, deviation, CUTS, 0.003, 4.0))
    assert np.mean([one.cut == 4 for one in found]) > 0.6
    assert np.mean([one.skew > 0.0075 for one in found]) < 0.01


def test_skew_that_exceeds_the_noise_of_counts_is_clear() -> None:
    one_sided = np.zeros(2 * len(CUTS) + 1)
    one_sided[[len(CUTS), -1]] = 0.97, 0.03
    for counts in (one_sided, one_sided[::-1]):
        tails = Tails.of(counts, 0.001, CUTS, 0.01, 4.0)
        assert tails.cut == 4 and tails.skew == pytest.approx(0.03 - 2 * 0.001 * math.sqrt(2 * len(CUTS)))
