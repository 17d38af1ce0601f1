"""The laws of the paper's theorems and of our releases, against integrals, sums and simulation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from dpcausal.direction.calculators import (
    after_flip_draw,
    after_one_draw,
    after_two_draws,
    flip_draw,
    four_draws,
    one_draw,
    two_draws,
)
from dpcausal.errors import ParameterError

MARGINS = [0.0, 1e-3, 0.4, 1.0, 2.5, 7.0]
SCALES = [0.03, 1.0, 40.0]


def _sum_of_laplaces(draws: int, at: float, scale: float) -> float:
    """Return P(sum of independent Laplace draws ≤ at), by inverting the characteristic function (1 + t²)^−draws."""
    integral, _ = quad(
        lambda t: math.sin(t * at / scale) / (t * (1 + t * t) ** draws), 0, 400, limit=5000, epsabs=1e-13
    )  # beyond 400 less than 1e-11 of it is left
    return 0.5 + integral / math.pi


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("share", MARGINS)
def test_theorem_2_is_the_law_of_two_laplace_draws(share: float, scale: float) -> None:
    assert two_draws(share * scale, scale) == pytest.approx(_sum_of_laplaces(2, share * scale, scale), abs=1e-9)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("share", MARGINS)
def test_theorem_4_part_2_is_the_law_of_four_laplace_draws(share: float, scale: float) -> None:
    assert four_draws(share * scale, scale) == pytest.approx(_sum_of_laplaces(4, share * scale, scale), abs=1e-9)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("share", MARGINS)
def test_one_draw_is_scipys_laplace_law(share: float, scale: float) -> None:
    assert one_draw(share * scale, scale) == pytest.approx(stats.laplace(scale=scale).cdf(share * scale), rel=1e-12)


@pytest.mark.parametrize(("law", "draws"), [(one_draw, 1), (two_draws, 2), (four_draws, 4)])
def test_the_laws_agree_with_simulation(law: Callable[[float, float], float], draws: int) -> None:
    # Six standard errors of a share of 200,000: a false alarm of 2e-9 each.
    noise = np.random.default_rng(draws).laplace(scale=0.7, size=(200_000, draws)).sum(axis=1)
    for margin in (0.2, 1.0, 2.0):
        p = law(margin, 0.7)
        assert abs(np.mean(margin + noise > 0) - p) < 6 * math.sqrt(p * (1 - p) / 200_000)


@pytest.mark.parametrize("distance", [1, 2, 5, 40])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_flip_draw_is_the_sum_of_the_geometric_law(distance: int, epsilon: float) -> None:
    k = np.arange(-6000, 6001)
    law = np.exp(-epsilon * np.abs(k))
    law /= law.sum()
    # The first wins by d records, z = d − 1, and stays the winner while z + k ≥ 0; the second, z = −d, while z + k < 0.
    assert flip_draw(distance, epsilon) == pytest.approx(law[k >= 1 - distance].sum(), abs=1e-9)
    assert flip_draw(distance, epsilon) == pytest.approx(law[k <= distance - 1].sum(), abs=1e-9)


def test_one_draw_is_surer_than_two_at_the_same_scale_by_the_stated_factor() -> None:
    for margin in MARGINS:
        assert (1 - one_draw(margin, 1)) * (2 + margin) / 2 == pytest.approx(1 - two_draws(margin, 1))


# After a release.


def _posterior(density: Callable[[float], float], released: float, largest: float) -> float:
    """Return P(D > 0 | released > 0), or its mirror, by quadrature; the nearest possible D has weight 1."""
    c = abs(released)
    offset = max(0.0, c - largest)

    def weight(low: float, high: float) -> float:
        inner = [c] if low < c < high else None
        return quad(lambda t: density(abs(c - t)) / math.exp(-offset), low, high, points=inner, epsrel=1e-11)[0]

    first, second = weight(0, largest), weight(-largest, 0)
    return first / (first + second)


@pytest.mark.parametrize("released", [0.0, 0.01, -0.5, 1.0, -3.0, 25.0])
@pytest.mark.parametrize("largest", [1e-3, 0.5, 1.0, 2.0, 30.0])
def test_posteriors_are_shares_of_the_noise_law_over_the_margins_that_are_possible(
    released: float, largest: float
) -> None:
    one = _posterior(lambda u: math.exp(-u), released, largest)
    assert after_one_draw(released, 1, largest) == pytest.approx(one, abs=1e-8)
    assert after_one_draw(7 * released, 7, 7 * largest) == pytest.approx(one, abs=1e-8)
    two = _posterior(lambda u: (1 + u) * math.exp(-u), released, largest)
    assert after_two_draws(released, 1, largest) == pytest.approx(two, abs=1e-8)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.5, 3.0, 1e6])
@pytest.mark.parametrize(("lowest", "highest"), [(-1, 0), (-2, 1), (-3, 2), (-1, 30), (-40, 5)])
def test_posteriors_of_flip_distances_are_sums_over_the_distances_that_are_possible(
    epsilon: float, lowest: int, highest: int
) -> None:
    for released in (-(10**12), -41, -7, -1, 0, 1, 6, 31, 10**12):
        near = min(abs(released - z) for z in range(lowest, highest + 1))
        weight = {z: math.exp(-epsilon * (abs(released - z) - near)) for z in range(lowest, highest + 1)}
        winner = sum(w for z, w in weight.items() if (z >= 0) == (released >= 0)) / sum(weight.values())
        assert after_flip_draw(released, epsilon, lowest, highest) == pytest.approx(winner, abs=1e-9)


def test_without_a_near_end_posteriors_are_the_laws_themselves() -> None:
    for margin in MARGINS:
        assert after_one_draw(margin, 1, 1e4) == pytest.approx(one_draw(margin, 1))
        assert after_two_draws(-margin, 1, 1e4) == pytest.approx(two_draws(margin, 1))
    for distance in (1, 2, 9):
        assert after_flip_draw(distance - 1, 0.3, -500, 499) == pytest.approx(flip_draw(distance, 0.3))
        assert after_flip_draw(-distance, 0.3, -500, 499) == pytest.approx(flip_draw(distance, 0.3))


@pytest.mark.parametrize("scale", [0.1, 1.0, 50.0])
def test_a_posterior_is_right_as_often_as_it_says(scale: float) -> None:
    # 40,000 margins, flat on [−½, ½]; six standard errors: a false alarm of 2e-9 each.
    rng = np.random.default_rng(17)
    truth = rng.uniform(-0.5, 0.5, 40_000)
    for law, draws in ((after_one_draw, 1), (after_two_draws, 2)):
        noisy = truth + rng.laplace(scale=scale, size=(40_000, draws)).sum(axis=1)
        said = np.array([law(float(margin), scale, 0.5) for margin in noisy])
        assert abs(np.mean((noisy > 0) == (truth > 0)) - said.mean()) < 6 * 0.5 / 200
        assert ((said >= 0.5) & (said <= 1)).all()


def test_noise_that_is_large_beside_all_margins_leaves_a_coins_toss() -> None:
    assert after_one_draw(300.0, 100.0, 0.5) < 0.502
    assert after_two_draws(300.0, 100.0, 0.5) < 0.502
    assert after_flip_draw(1000, 0.01, -1, 0) < 0.503


@pytest.mark.parametrize(
    "call",
    [
        lambda: two_draws(-0.1, 1),
        lambda: two_draws(math.nan, 1),
        lambda: four_draws(1, 0),
        lambda: one_draw(1, math.inf),
        lambda: flip_draw(0, 1),
        lambda: flip_draw(True, 1),
        lambda: flip_draw(1.5, 1),  # type: ignore[arg-type]
        lambda: flip_draw(1, 0),
        lambda: after_one_draw(math.nan, 1, 1),
        lambda: after_flip_draw(0, math.nan, -1, 0),
        lambda: after_flip_draw(0, 1, 0, 0),
        lambda: after_flip_draw(0, 1, -1, -1),
    ],
)
def test_numbers_outside_their_range_are_refused(call: Callable[[], float]) -> None:
    with pytest.raises(ParameterError):
        call()
