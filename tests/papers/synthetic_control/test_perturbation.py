"""Weighted donors: their weights are projected onto the nearest points."""

from typing import Any

import numpy as np
import pytest

from dpcausal.papers.synthetic_control import dpsc


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


@pytest.mark.parametrize("size", [1e15, 1e17, 1e300])
def test_projections_stand_weights_beside_which_one_is_lost(size: float) -> None:
    for v in (np.array([size, -size, size / 3]), np.full(3, size), np.full(3, -size), np.array([size])):
        w = dpsc.simplex(v)
        assert w.sum() == pytest.approx(1, rel=1e-12) and (w >= 0).all()
        assert np.abs(dpsc.l1_ball(v)).sum() <= 1 + 1e-12
