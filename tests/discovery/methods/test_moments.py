"""Noisy moments: partial correlations against regression, their variance under noise, scales from noisy quartiles."""

import math
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.discovery.methods.moments import (
    NARROWEST,
    Scales,
    Units,
    binned,
    learned_scales,
    noisy_moments,
)
from dpcausal.discovery.search.pc import Terms
from dpcausal.discovery.search.release_search import GraphTest
from dpcausal.releases.moments import NoisyMoments
from tests.discovery.ways import graph_of
from tests.factories import table


def rows(n: int = 20_000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.normal(3, 1, n)
    y = 0.8 * x + rng.normal(0, 1, n)
    return {"x": x, "y": y, "z": 0.5 * y + rng.normal(0, 0.2, n)}


SCHEMA = dpc.Schema({"x": dpc.Bounded(-5, 15), "y": dpc.Bounded(-20, 20), "z": dpc.Bounded(-100, 100)})


def exact_moments() -> NoisyMoments:
    asked = table(rows(), SCHEMA)
    return noisy_moments(asked, SCHEMA.names, asked.ledger.charge(dpc.NoPrivacy(), task="test"), dpc.NoPrivacy())


def residual_correlation(values: dict[str, np.ndarray], x: str, y: str, given: list[str]) -> float:
    design = np.stack([np.ones(len(values[x])), *(values[z] for z in given)], axis=1)
    left = [values[name] - design @ np.linalg.lstsq(design, values[name], rcond=None)[0] for name in (x, y)]
    return float(np.corrcoef(*left)[0, 1])


def test_exact_moments_give_the_correlations_of_residuals() -> None:
    """Rows in the tails are shortened: the differences are small, not rounding."""
    found = exact_moments()
    for x, y, given in ((0, 1, ()), (0, 2, ()), (0, 2, (1,)), (1, 2, (0,))):
        expected = residual_correlation(rows(), "xyz"[x], "xyz"[y], ["xyz"[z] for z in given])
        correlation, variance = found.partial_correlation(x, y, given)  # type: ignore[misc]
        assert correlation == pytest.approx(expected, abs=0.02)
        assert variance == pytest.approx(1 / (found.count - len(given) - 3))


def test_the_stated_variance_is_that_of_repeated_noise() -> None:
    """400 draws: a ratio outside 0.7 to 1.4 has probability below 1e-6."""
    noisy = replace(exact_moments(), n=10**12, variance=1e-6, count=None, squared=None)
    rng, draws = np.random.default_rng(2), []
    for _ in range(400):
        again = replace(noisy.with_extra_noise(rng), variance=1e-6)
        draws.append(math.atanh(again.partial_correlation(0, 2, (1,))[0]))  # type: ignore[index]
    stated = noisy.partial_correlation(0, 2, (1,))[1]  # type: ignore[index]
    assert 0.7 < np.var(draws) / stated < 1.4


def test_near_singular_and_noise_only_moments_are_not_tested() -> None:
    def moments(covariance: list[list[float]], variance: float, n: int) -> NoisyMoments:
        return NoisyMoments(("a", "b"), n, (0.0, 0.0), (1.0, 1.0), np.array(covariance), variance)

    three = NoisyMoments(tuple("abc"), 100, (0.0,) * 3, (1.0,) * 3, np.ones((3, 3)), 0.0)
    assert three.partial_correlation(0, 1, (2,)) is None
    noise = moments([[0.1, 0.3], [0.3, -0.2]], 0.01, 100)
    assert GraphTest(noise, Terms("pc", 0.01, 0, dpc.Knowledge()))("a", "b", ()).separated is None
    assert moments([[1, 0], [0, 1]], 0.0, 3).partial_correlation(0, 1, ()) is None


def random_dag(seed: int, n: int) -> tuple[dict[str, np.ndarray], dpc.Cpdag]:
    """Return ten linear Gaussian columns, about fourteen arrows with coefficients of ½ to 1½."""
    rng = np.random.default_rng(seed)
    names, values, arcs = [f"v{k}" for k in range(10)], np.zeros((n, 10)), []
    for j in range(10):
        values[:, j] = rng.normal(size=n)
        for i in range(j):
            if rng.random() < 14 / 45:
                arcs.append((names[i], names[j]))
                values[:, j] += rng.choice([-1, 1]) * rng.uniform(0.5, 1.5) * values[:, i]
    return dict(zip(names, values.T, strict=True)), dpc.Cpdag.from_dag(names, arcs)


@pytest.mark.replication
def test_ten_gaussian_columns_are_found_in_wide_bounds_too() -> None:
    found = []
    for seed in range(5):
        frame, truth = random_dag(seed, 10_000)
        asked = graph_of(frame, dpc.Bounded(-2_000, 2_000), dpc.ApproxDP(0.3, 1e-6), seed)
        assert asked.method == "moments" and not asked.untested
        found.append(asked.graph.skeleton_f1(truth))
    assert np.mean(found) > 0.75


@pytest.mark.parametrize(("columns", "law", "epsilon"), [
    (16, "normal", 0.1), (20, "exponential", 0.1), (16, "constant", 1.0),
])  # fmt: skip
def test_many_independent_columns_have_hardly_an_edge(columns: int, law: str, epsilon: float) -> None:
    """Seen to fail above 14 columns: 118 of 120 pairs were edges, as hardly a pair could be tested."""
    rng = np.random.default_rng(1)
    draw = {"normal": rng.normal, "exponential": rng.exponential, "constant": lambda size: np.full(size, 2.0)}[law]
    frame = {f"x{place}": np.clip(draw(size=5_000), -4, 4) for place in range(columns)}
    found = graph_of(frame, dpc.Bounded(-4, 4), dpc.ApproxDP(epsilon, 1e-6), method="moments")
    assert found.tests >= columns and len(found.graph.skeleton) <= 3


def test_true_independences_of_shortened_rows_are_rejected_no_oftener_than_nominal() -> None:
    """Three causes of one column, rows shortened to a quarter of their length: apart, and given a fourth.

    600 tests with fresh noise: more than .04 has probability below 1e-7 at .01; left as they are half are rejected.
    """
    rng = np.random.default_rng(3)
    values = rng.normal(size=(20_000, 5))
    values[:, 3] += values[:, :3] @ np.array([1.2, -1.2, 1.2])
    values[:, 4] += values[:, 3]
    unit, squared = values / values.std(axis=0), 5.25 / 4
    weight = np.minimum(1, squared / (0.25 + (unit**2).sum(axis=1)))
    covariance = (unit * weight[:, None]).T @ unit / weight.sum()
    exact = NoisyMoments(tuple("abcde"), 20_000, (0.0,) * 5, (1.0,) * 5, covariance, 2e-5, squared=squared)
    for shortened, least, most in ((exact, 0.0, 0.04), (replace(exact, squared=None), 0.3, 1.0)):
        found = []
        for _ in range(100):
            again = replace(shortened.with_extra_noise(rng), variance=2e-5)
            for x, y, given in ((0, 1, ()), (0, 2, ()), (1, 2, ()), (0, 4, (3,)), (1, 4, (3,)), (2, 4, (3,))):
                correlation, variance = again.partial_correlation(x, y, given)  # type: ignore[misc]
                found.append(abs(math.atanh(correlation)) > 2.576 * math.sqrt(variance))
        assert least <= np.mean(found) <= most


N = 40_000


def counted(unit: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Return how many values of each column lie between cuts, one after the other."""
    edges = np.concatenate([np.full((len(cuts), 1), -1.0), cuts, np.full((len(cuts), 1), 2.0)], axis=1)
    return np.array([
        [int(((a < column) & (column <= b)).sum()) for a, b in pairwise(row)]
        for column, row in zip(unit.T, edges, strict=True)
    ])  # fmt: skip


def scales(unit: np.ndarray, two: list[bool], deviation: float) -> Scales:
    rng = np.random.default_rng(1)

    def count(cuts: np.ndarray) -> np.ndarray:
        counts = counted(unit, cuts)
        return counts + rng.normal(0, deviation, counts.shape)

    return learned_scales(np.array(two), N, deviation, count)


@pytest.mark.parametrize("deviation", [0.0, 100.0, 1_000.0])
@pytest.mark.parametrize(("middle", "spread"), [(0.5, 0.15), (0.5, 0.002), (0.13, 0.01), (0.7, 0.05)])
def test_a_normal_column_has_its_own_middle_and_width(middle: float, spread: float, deviation: float) -> None:
    unit = np.random.default_rng(2).normal(middle, spread, (N, 2))
    found = scales(unit, [False, False], deviation)
    # A noise of a fortieth of the rows leaves a factor of two.
    near = 1.15 if deviation < 500 else 2.0
    assert (found[1] < near * spread).all() and (found[1] > spread / near).all()
    assert (abs(found[0] - middle) < (near - 1) * spread + 0.001).all()
    assert found.complete == pytest.approx(N, abs=4 * deviation)


def test_two_levels_are_measured_by_their_share() -> None:
    unit = (np.random.default_rng(3).random((N, 2)) < [0.5, 0.1]).astype(float)
    middles, widths, *_ = scales(unit, [True, True], 50.0)
    np.testing.assert_allclose(middles, [0.5, 0.1], atol=0.01)
    np.testing.assert_allclose(widths, [0.5, 0.3], atol=0.02)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_scales_of_a_constant_column_and_of_no_rows_are_finite_and_positive(value: float) -> None:
    for unit in (np.full((N, 1), value), np.empty((0, 1))):
        middles, widths, kept, _ = scales(unit, [False], 30.0)
        assert np.isfinite(middles).all() and (widths >= NARROWEST).all() and kept > 0


def test_values_between_cuts_are_counted_as_a_loop_does() -> None:
    rng, names = np.random.default_rng(4), ("a", "b", "c")
    cuts, values = np.sort(rng.random((3, 7)), axis=1), rng.random((1_200, 3))
    values[:3, 0], values[3:5] = cuts[0, :3], [[0, 1, 0], [1, 0, 1]]
    asked = table(dict(zip(names, values.T, strict=True)), dict.fromkeys(names, dpc.Bounded(0, 1)))
    found = asked.records(names).sum(partial(binned, Units.of(asked, names), cuts))
    np.testing.assert_array_equal(found, counted(values, cuts))
