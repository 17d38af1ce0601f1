"""Information-geometric scores against closed forms, and against loops that share no code with them."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import digamma

import dpcausal as dpc
from dpcausal.direction.scores import igci
from dpcausal.direction.scores.igci import LEAST_GAP, from_gaussian, from_uniform, mean_log_slope, spacing_entropy
from tests.direction.neighbours import ask

RNG = np.random.default_rng


def entropy_by_hand(values: list[float]) -> float:
    distinct = sorted(set(values))
    m = len(distinct)
    total = sum(math.log(high - low) for low, high in itertools.pairwise(distinct))
    return float(digamma(m) - digamma(1)) + total / (m - 1)


def slope_by_hand(x: list[float], y: list[float]) -> float:
    rows = sorted(zip(x, y, strict=True))
    logs = []
    for (x0, y0), (x1, y1) in itertools.pairwise(rows):
        if x0 != x1 and y0 != y1:
            logs.append(math.log(abs(y1 - y0) / (max(y) - min(y)) / ((x1 - x0) / (max(x) - min(x)))))
    return sum(logs) / len(logs)


SAMPLES = {
    "smooth": lambda rng: (rng.normal(size=200), rng.normal(size=200)),
    "of few values": lambda rng: (rng.integers(0, 9, 200) / 3.0, rng.integers(-4, 4, 200) * 1.0),
    "two rows": lambda rng: (np.array([3.0, 1.0]), np.array([0.5, 2.5])),
    "heavy": lambda rng: (rng.standard_cauchy(200), rng.exponential(size=200)),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_entropies_and_slopes_are_those_of_a_loop(kind: str) -> None:
    for seed in range(5):
        x, y = SAMPLES[kind](RNG(seed))
        assert spacing_entropy(x) == pytest.approx(entropy_by_hand(x.tolist()), abs=1e-9)
        assert mean_log_slope(x, y) == pytest.approx(slope_by_hand(x.tolist(), y.tolist()), abs=1e-9)
        unit = [(v - min(x)) / (max(x) - min(x)) for v in x.tolist()]
        assert from_uniform(x) == pytest.approx(-entropy_by_hand(unit), abs=1e-9)
        mean = sum(x.tolist()) / len(x)
        spread = math.sqrt(sum((v - mean) ** 2 for v in x.tolist()) / len(x))
        unit = [(v - mean) / spread for v in x.tolist()]
        assert from_gaussian(x) == pytest.approx(math.log(2 * math.pi * math.e) / 2 - entropy_by_hand(unit), abs=1e-9)


LAWS = {
    "uniform": (lambda rng, m: rng.uniform(size=m), 0.0),
    "uniform on [0, 3]": (lambda rng, m: rng.uniform(0, 3, size=m), math.log(3)),
    "exponential": (lambda rng, m: rng.exponential(size=m), 1.0),
    "normal": (lambda rng, m: rng.normal(size=m), math.log(2 * math.pi * math.e) / 2),
    "Laplace": (lambda rng, m: rng.laplace(size=m), 1 + math.log(2)),
    "triangle": (lambda rng, m: np.sqrt(rng.uniform(size=m)), 0.5 - math.log(2)),
}


@pytest.mark.parametrize("law", LAWS)
def test_the_entropy_of_a_known_law_is_found(law: str) -> None:
    # A spacing's log has variance at most π²/6 + Var(log p) ≤ 3 here; seven standard errors of √(3/100,000), and seeds
    # are fixed.
    sample, exact = LAWS[law]
    assert spacing_entropy(sample(RNG(1), 100_000)) == pytest.approx(exact, abs=7 * math.sqrt(3 / 100_000))


def test_a_distribution_is_its_own_reference() -> None:
    assert from_uniform(RNG(2).uniform(3, 5, 100_000)) == pytest.approx(0, abs=0.04)
    assert from_gaussian(RNG(2).normal(3, 5, 100_000)) == pytest.approx(0, abs=0.04)
    # ∫₀¹ 2x log 2x dx, the relative entropy of the triangle to the uniform law
    assert from_uniform(np.sqrt(RNG(2).uniform(size=100_000))) == pytest.approx(math.log(2) - 0.5, abs=0.04)


def test_the_slope_of_a_parabola_is_the_integral_of_its_logarithm() -> None:
    # ∫₀¹ log 2x dx = log 2 − 1, from midpoints of a grid; the other way it is ∫₀¹ log(1/(2√t)) dt = ½ − log 2.
    x = np.linspace(0, 1, 20_001)
    assert mean_log_slope(x, x**2) == pytest.approx(math.log(2) - 1, abs=1e-3)
    assert mean_log_slope(x, np.sqrt(x)) == pytest.approx(0.5 - math.log(2), abs=1e-3)


@pytest.mark.parametrize("score", igci.SCORES)
def test_neither_units_nor_the_order_of_rows_matter(score: str) -> None:
    x, y = RNG(3).normal(size=300), RNG(4).exponential(size=300)
    assert igci.SCORES[score](1e6 * x - 3e6, y / 7 + 2) == pytest.approx(igci.SCORES[score](x, y), abs=1e-6)
    x, y, order = np.round(20 * x) / 20, np.round(30 * y) / 30, RNG(8).permutation(300)
    assert igci.SCORES[score](x[order], y[order]) == pytest.approx(igci.SCORES[score](x, y), abs=1e-12)


@pytest.mark.parametrize("score", igci.SCORES)
def test_a_function_without_noise_is_told_from_its_inverse(score: str) -> None:
    for seed in range(20):
        x = RNG(seed).normal(size=500) if score == "igci-gaussian" else RNG(seed).uniform(size=500)
        for y in (np.exp(2 * x), x**3 + 0.1 * x):
            forward, backward = igci.SCORES[score](x, y)
            assert forward < backward


def test_a_column_of_one_value_counts_as_one_least_gap() -> None:
    flat = np.full(9, 4.0)
    assert spacing_entropy(flat) == pytest.approx(math.log(LEAST_GAP) + 1)
    assert mean_log_slope(flat, np.arange(9.0)) == mean_log_slope(np.arange(9.0), flat) == 0


def test_without_privacy_the_scores_are_those_of_all_rows() -> None:
    rows = np.column_stack([RNG(5).uniform(-1, 1, 200), RNG(6).uniform(-1, 3, 200)])
    for score, by in igci.SCORES.items():
        r = ask(rows, score=score, loss=dpc.NoPrivacy())
        assert r.scores == by(*rows.T)
