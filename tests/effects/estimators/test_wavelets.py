"""Wavelets of sums by bins."""

from __future__ import annotations

import numpy as np
import pytest

from dpcausal.effects.estimators.residual_sums import haar, haar_levels, inverse_haar, smoothed, smoothed_grid


@pytest.mark.parametrize("size", [1, 2, 16, 256])
def test_the_transform_is_orthonormal_and_is_undone(size: int) -> None:
    matrix = haar(np.eye(size))
    assert matrix @ matrix.T == pytest.approx(np.eye(size), abs=1e-12)
    assert inverse_haar(matrix) == pytest.approx(np.eye(size), abs=1e-12)
    assert haar_levels(size).tolist() == [0, *(1 + int(np.log2(one)) for one in range(1, size))]


def test_nothing_is_lost_without_noise_and_the_mean_alone_is_left_where_noise_hides_all() -> None:
    values = np.random.default_rng(1).normal(size=32)
    assert smoothed(values, 0.0, 1.5, 0.25) == pytest.approx(values, abs=1e-12)
    assert smoothed(values, 1e9, 1.5, 0.25) == pytest.approx(np.full(32, values.mean()), abs=1e-12)
    grid = values.reshape(4, 8)
    assert smoothed_grid(grid, 0.0, 1.5, 0.7) == pytest.approx(grid, abs=1e-12)
    assert not smoothed_grid(grid, 1e9, 1.5, 0.7).any()


def test_thresholding_brings_noisy_steps_nearer() -> None:
    rng, truth = np.random.default_rng(2), np.repeat([0.0, 8.0, -4.0, 0.0], 16)
    noisy = truth + rng.normal(size=64)
    assert np.square(smoothed(noisy, 1.0, 2.0, 0.25) - truth).sum() < np.square(noisy - truth).sum() / 2
