"""Functions of two features: alike as rows with the same correlation say, and weighed for what each has of its own."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.effects.nuisance.features import Axis, Feature
from dpcausal.effects.nuisance.models import Models
from dpcausal.effects.nuisance.pair_functions import PairGeometry, functions_of_kinds
from tests.effects.tables import effect_of, table_of

N = 200_000
PAIRS = [(0, 1), (0, 2), (1, 2)]


def scores(correlation: float) -> Any:
    rng = np.random.default_rng(1)
    common = rng.normal(size=(N, 1))
    return np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.normal(size=(N, 3))


def models_of(columns: Any) -> Models:
    """Return models whose features have the counts of three columns, in 64 fine cells and 16 bins."""
    features = []
    for place, column in enumerate(columns.T):
        density = np.histogram(column, 64, (-4, 4))[0] + 1e-9
        middles = (np.cumsum(density) - density / 2) / density.sum()
        features.append(Feature(2 + place, Axis(), np.minimum((middles * 16).astype(int), 15), 16, density))
    return Models(np.zeros(4), np.zeros(4), 0.0, 1.0, 0.0, 1.0, tuple(features))


def beside_single_features(kinds: str, correlation: float) -> tuple[Models, PairGeometry, Any, Any, Any]:
    """Return models, geometry, cells and values of functions, and dummies of the quarters of each single feature."""
    columns = scores(correlation)
    models = models_of(columns)
    functions = functions_of_kinds(models.features, PAIRS, kinds)
    geometry = PairGeometry.of(models, functions, correlation + (1 - correlation) * np.eye(3))
    cells = models.cells(np.column_stack([np.zeros((N, 2)), columns / 4]))
    values = np.stack([models.values(cells, one) for one in functions], axis=1)
    quarters = [feature.wider(4)[own] for feature, own in zip(models.features, cells, strict=True)]
    return models, geometry, cells, values, np.concatenate([np.eye(4)[own] for own in quarters], axis=1)


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_functions_are_as_alike_as_in_rows_without_what_goes_along_single_features(correlation: float) -> None:
    _, geometry, _, values, dummies = beside_single_features("st", correlation)
    left = values - dummies @ np.linalg.lstsq(dummies, values)[0]
    assert geometry.gram == pytest.approx(left.T @ left / N, abs=0.08)
    own = geometry.orthonormal
    assert own @ geometry.gram @ own.T == pytest.approx(np.eye(len(own)), abs=1e-9)


def test_weights_without_noise_are_those_of_least_squares_beside_single_features() -> None:
    models, geometry, cells, values, dummies = beside_single_features("s", 0.6)
    truth = np.array([0.2, -0.1, 0.0])
    residual = values @ truth
    residual = residual - dummies @ np.linalg.lstsq(dummies, residual)[0]
    weights = geometry.weights(np.stack([values.T @ residual] * 2), np.zeros(2), (1e-4, 1e-4), N)
    assert weights[1] == pytest.approx(truth, abs=0.03)
    tables = geometry.without_mains(models.features, weights)
    fitted = values @ weights[1] + sum(table.outcome[cells[table.features[0]]] for table in tables)
    assert fitted == pytest.approx(residual, abs=0.05)


def test_a_copy_of_a_flag_has_no_function_of_its_own_with_it() -> None:
    flag = np.where(np.random.default_rng(2).random(N) < 0.4, 1.0, -1.0)
    models = models_of(np.column_stack([flag, flag, np.random.default_rng(3).normal(size=N)]))
    correlation = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    geometry = PairGeometry.of(models, functions_of_kinds(models.features, PAIRS, "s"), correlation)
    assert len(geometry.orthonormal) == 1


def test_the_correction_is_small_where_lines_fit_and_six_confounders_are_correlated() -> None:
    loss, n = dpc.ApproxDP(1, 1e-6), 20_000
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        x = np.clip(np.sqrt(0.6) * rng.normal(size=(n, 1)) + np.sqrt(0.4) * rng.normal(size=(n, 6)), -4, 4)
        a = (rng.random(n) < 1 / (1 + np.exp(-0.15 * x.sum(axis=1)))).astype(int)
        columns = {f"x{k}": x[:, k] for k in range(6)}
        schema: dict[str, Any] = {"a": dpc.Levels([0, 1]), "y": dpc.Bounded(-15, 15)}
        schema |= dict.fromkeys(columns, dpc.Bounded(-4, 4))
        y = np.clip(0.5 * a + 0.3 * x.sum(axis=1) + rng.normal(size=n), -15, 15)
        table = table_of({"a": a, "y": y} | columns, schema, loss)
        result = effect_of(table, loss, "boosted-aipw", seed, adjust=[*columns])
        assert abs(result.fit_check.correction) < 0.08 and result.estimate == pytest.approx(0.5, abs=0.15)
