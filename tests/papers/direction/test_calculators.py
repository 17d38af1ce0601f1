"""The distributions of the paper's theorems and of our releases, against integrals and sums."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from dpcausal.errors import ParameterError
from dpcausal.papers.direction.calculators import (
    flip_draw,
    flip_draw_tail,
    four_draws,
    one_draw,
    one_draw_tail,
    two_draws,
    two_draws_tail,
)

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
def test_one_two_and_four_draws_have_the_distribution_of_their_sum(share: float, scale: float) -> None:
    margin = share * scale
    assert one_draw(margin, scale) == pytest.approx(stats.laplace(scale=scale).cdf(margin), rel=1e-12)
    assert two_draws(margin, scale) == pytest.approx(_sum_of_laplaces(2, margin, scale), abs=1e-9)
    assert four_draws(margin, scale) == pytest.approx(_sum_of_laplaces(4, margin, scale), abs=1e-9)
    # At the same scale one draw is surer than two by the stated factor.
    assert (1 - one_draw(margin, scale)) * (2 + share) / 2 == pytest.approx(1 - two_draws(margin, scale))


@pytest.mark.parametrize("distance", [1, 2, 5, 40])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_flip_draw_is_the_sum_of_the_geometric_law(distance: int, epsilon: float) -> None:
    k = np.arange(-6000, 6001)
    law = np.exp(-epsilon * np.abs(k))
    law /= law.sum()
    # The first wins by d records, z = d − 1, and stays the winner while z + k ≥ 0; the second, z = −d, while z + k < 0.
    assert flip_draw(distance, epsilon) == pytest.approx(law[k >= 1 - distance].sum(), abs=1e-9)
    assert flip_draw(distance, epsilon) == pytest.approx(law[k <= distance - 1].sum(), abs=1e-9)


@pytest.mark.parametrize("margin", [0.0, 0.01, -0.5, 1.0, -3.0, 25.0])
def test_tails_are_those_of_the_noise_on_both_sides(margin: float) -> None:
    for scale in (1.0, 7.0):
        one = quad(lambda u: math.exp(-u), abs(margin), math.inf)[0]
        assert one_draw_tail(margin * scale, scale) == pytest.approx(one, abs=1e-9)
        two = quad(lambda u: (1 + u) * math.exp(-u) / 2, abs(margin), math.inf)[0]
        assert two_draws_tail(margin * scale, scale) == pytest.approx(two, abs=1e-9)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 3.0])
def test_the_tail_of_a_flip_distance_is_twice_that_of_the_geometric_law(epsilon: float) -> None:
    for distance in (1, 2, 7, 40):
        is_skewed = float(stats.dlaplace.sf(distance - 1, epsilon))
        assert flip_draw_tail(distance, epsilon) == pytest.approx(min(1.0, 2 * is_skewed), abs=1e-12)
        assert flip_draw_tail(-1 - distance, epsilon) == flip_draw_tail(distance, epsilon)
    assert flip_draw_tail(0, epsilon) == flip_draw_tail(-1, epsilon) == 1.0


REFUSED: list[tuple[Callable[..., float], Any, float]] = [
    (two_draws, -0.1, 1), (two_draws, math.nan, 1), (four_draws, 1, 0), (one_draw, 1, math.inf), (flip_draw, 0, 1),
    (flip_draw, True, 1), (flip_draw, 1.5, 1), (flip_draw, 1, 0), (one_draw_tail, math.nan, 1), (two_draws_tail, 1, 0),
]  # fmt: skip


@pytest.mark.parametrize(("call", "margin", "scale"), REFUSED)
def test_numbers_outside_their_range_are_refused(call: Callable[..., float], margin: Any, scale: float) -> None:
    with pytest.raises(ParameterError):
        call(margin, scale)
