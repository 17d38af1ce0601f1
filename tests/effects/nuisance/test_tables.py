"""Grids of two features: the shares of their cells, also where the features are correlated."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import dpcausal as dpc
from dpcausal.effects.nuisance.fit_check import Sums
from dpcausal.effects.nuisance.tables import joint_shares
from tests.effects.tables import effect_of, table_of

MARGINS = np.array([10.0, 30.0, 40.0, 20.0]), np.array([25.0, 25.0, 50.0])
UNIT = dpc.Bounded(-4, 4)
SCHEMA: dict[str, Any] = {"z": UNIT, "v": UNIT, "a": dpc.Levels([0, 1]), "y": dpc.Bounded(-15, 15)}


@pytest.mark.parametrize("correlation", [-0.95, -0.65, 0.8])
def test_shares_are_those_of_two_normal_scores(correlation: float) -> None:
    shares = joint_shares(MARGINS, correlation)
    assert shares is not None
    ends = [norm.ppf(np.concatenate([[0], np.cumsum(own) / own.sum()])).clip(-9, 9) for own in MARGINS]
    law = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]])
    below = np.array([[law.cdf([one, other]) for other in ends[1]] for one in ends[0]])
    assert shares.reshape(4, 3) == pytest.approx(np.diff(np.diff(below, axis=0), axis=1), abs=2e-3)
    assert shares.reshape(4, 3).sum(axis=1) == pytest.approx(MARGINS[0] / 100)


def test_nearly_independent_features_have_no_shares() -> None:
    assert joint_shares(MARGINS, 0.5) is None and joint_shares(MARGINS[:1], 0.0) is None


def test_sums_along_cells_of_correlated_features_have_the_variance_of_their_records() -> None:
    rng, n, halves = np.random.default_rng(1), 20_000, (np.ones(2), np.ones(2))
    shares = joint_shares(halves, 0.6)
    assert shares is not None and shares[0] == pytest.approx(0.25 + np.arcsin(0.6) / (2 * np.pi), abs=1e-3)
    energies = []
    for _ in range(600):
        cells = np.repeat(np.arange(4), rng.multinomial(n, shares))
        sums = np.stack([np.bincount(cells, rng.standard_normal(n), 4) for _ in range(2)])
        (of_treatment, of_outcome), _, free = Sums(sums, np.zeros(2), (2, 2), halves, shares=shares).coefficients()
        energies += [one @ one * 4 / n for one in (of_treatment, of_outcome)]
    assert free == 1 and np.mean(energies) == pytest.approx(1, abs=0.2)  # five standard errors


@pytest.mark.parametrize("spread", [0.001, 0.33])
def test_confounders_that_are_nearly_equal_cost_no_precision(spread: float) -> None:
    errors: dict[tuple[str, ...], list[float]] = {("z",): [], ("z", "v"): []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=20_000)
        a = (rng.random(20_000) < 1 / (1 + np.exp(-z))).astype(int)
        v, y = z + spread * rng.normal(size=20_000), 2 * z + a + rng.normal(size=20_000)
        loss = dpc.ApproxDP(4, 1e-6)
        columns = {"z": z.clip(-4, 4), "v": v.clip(-4, 4), "a": a, "y": y.clip(-15, 15)}
        for adjust, own in errors.items():
            table = table_of(columns, SCHEMA, loss)
            found = effect_of(table, loss, "boosted-aipw", seed, adjust=list(adjust))
            assert found.interval is None or found.interval[0] - 0.05 < 1 < found.interval[1] + 0.05
            own.append(found.standard_error)
    assert np.median(errors["z", "v"]) < 2.5 * np.median(errors["z",])
