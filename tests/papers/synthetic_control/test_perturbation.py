"""Weighted donors: the second step's sensitivity, projections, and noise of the length that the K-norm has."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpcausal as dpc
from dpcausal.mechanisms.additive import l2_ball
from dpcausal.papers.synthetic_control import dpsc
from dpcausal.privacy.sensitivity import Query, Unit


@pytest.mark.parametrize("project, ball", [(dpsc.simplex, False), (dpsc.l1_ball, True)])
def test_projections_are_the_nearest_points(project: Any, ball: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        v = rng.normal(size=6) * rng.uniform(0.05, 3)
        near = project(v)
        assert np.abs(near).sum() <= 1 + 1e-12 if ball else (near >= 0).all() and near.sum() == pytest.approx(1)
        for _ in range(20):
            other = rng.dirichlet(np.ones(6)) * (np.sign(rng.normal(size=6)) if ball else 1)
            assert (v - near) @ (other - near) <= 1e-9


@pytest.mark.parametrize("dimension", [1, 8])
def test_noise_of_the_ball_has_a_gamma_length(dimension: int) -> None:
    """Kolmogorov–Smirnov at 1e-9; the length that the paper's equation (10) has, without the dimension, is refused."""
    loss, runs = dpc.PureDP(2), 200
    whole = dpc.PureDP(2 * runs)
    allotment = dpc.Ledger.in_memory(whole, unit="unit", accept_large_epsilon=True).charge(
        whole, task="test", unit=Unit.DONOR, unit_column="unit"
    )
    claim = dpsc.row_sensitivity(1)
    lengths = [
        float(np.linalg.norm(l2_ball(Query(np.zeros(dimension), claim, "zeros"), allotment, loss))) for _ in range(runs)
    ]
    scale = claim.bound / loss.epsilon
    assert stats.kstest(lengths, stats.gamma(dimension, scale=scale).cdf).pvalue > 1e-9
    if dimension > 1:
        assert stats.kstest(lengths, stats.gamma(1, scale=scale).cdf).pvalue < 1e-9
        assert np.mean(lengths) == pytest.approx(dimension * scale, rel=6 / math.sqrt(dimension * runs))


@pytest.mark.parametrize("size", [1e15, 1e17, 1e300])
def test_projections_stand_weights_beside_which_one_is_lost(size: float) -> None:
    for v in (np.array([size, -size, size / 3]), np.full(3, size), np.full(3, -size), np.array([size])):
        w = dpsc.simplex(v)
        assert w.sum() == pytest.approx(1, rel=1e-12) and (w >= 0).all()
        assert np.abs(dpsc.l1_ball(v)).sum() <= 1 + 1e-12
