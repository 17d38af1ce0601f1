"""Ridge weights: the exact reach of one donor, whatever the penalty and the number of donors."""

import math

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from dpcausal.errors import ParameterError
from dpcausal.papers.statistics.ridge_weights import ridge_weight_bound, ridge_weight_sensitivity, ridge_weights
from dpcausal.privacy.sensitivity import Unit

RATIOS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0)
"""λ/T0; the ridge is λ/2."""


@pytest.mark.parametrize("donors, periods", [(3, 10), (10, 3), (10, 10)])
def test_the_weights_are_those_of_scikit_learn(donors: int, periods: int) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-1, 1, (donors, periods)), rng.uniform(-1, 1, periods)
    other = Ridge(alpha=0.7, fit_intercept=False, tol=1e-12).fit(X.T, y).coef_
    np.testing.assert_allclose(ridge_weights(X, y, 0.7), other, rtol=1e-9, atol=1e-12)


@pytest.mark.proves("ridge-weights")
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("donors, periods", [(1, 10), (10, 10), (100, 10), (7, 40)])
def test_the_bound_is_attained_at_every_size(ratio: float, donors: int, periods: int) -> None:
    y = np.where(np.arange(periods) % 2, 1.0, -1.0)
    ridge = ratio * periods / 2
    X = np.zeros((donors, periods))
    X[0] = min(1.0, math.sqrt(ridge / periods)) * y
    moved = float(np.linalg.norm(ridge_weights(X, y, ridge) - ridge_weights(-X, y, ridge)))
    assert moved == pytest.approx(ridge_weight_bound(y, ridge), rel=1e-12)
    assert moved <= ridge_weight_sensitivity(y, ridge, donors).bound


def test_the_papers_constant_is_valid_and_many_times_too_large() -> None:
    y = np.ones(10)
    for donors, least in ((10, 11.99), (100, 29)):
        assert 4 * 10 * math.sqrt(8 + donors) / 10 > least * ridge_weight_bound(y, 5.0)
        for ratio in (*RATIOS, 1e-4, 1e4):
            assert 4 * math.sqrt(8 + donors) / ratio > 4 * ridge_weight_bound(y, ratio * 5)


def test_a_target_of_zeros_has_a_bound_above_zero() -> None:
    claim = ridge_weight_sensitivity(np.zeros(4), 1.0, 3)
    assert claim.bound > 0 and claim.unit is Unit.DONOR
    assert not ridge_weights(np.ones((3, 4)), np.zeros(4), 1.0).any()


def test_a_penalty_that_floats_lose_beside_the_donors_is_refused_before_it_is_solved() -> None:
    """Donors that are all alike then make the system singular, and other donors do not."""
    y, ridge, donors = np.ones(2), 5e-10, 1 << 23
    gram = np.full((2, 2), float(donors))
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.solve(gram + ridge * np.eye(2), y)
    with pytest.raises(ParameterError, match="too small for so many donors"):
        ridge_weight_sensitivity(y, ridge, donors)
    assert ridge_weight_sensitivity(y, 1.0, 100_000).bound < 1.01 * ridge_weight_bound(y, 1.0)


@pytest.mark.parametrize("ridge", [0, -1.0, np.nan, np.inf])
def test_a_penalty_that_is_not_above_zero_is_refused(ridge: float) -> None:
    with pytest.raises(ParameterError, match="above 0"):
        ridge_weight_sensitivity(np.ones(3), ridge, 5)


def test_without_a_sensitivity_a_system_that_floats_find_singular_is_solved_all_the_same() -> None:
    weights = ridge_weights(np.ones((40, 3)), np.ones(3), 1e-30)
    assert weights @ np.ones((40, 3)) == pytest.approx(np.ones(3))
