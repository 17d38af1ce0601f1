"""Simulated data: the stated distributions, the same data for the same seed, bounds that follow from the design."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpcausal as dpc
from dpcausal.errors import ParameterError
from dpcausal.simulate import anm_pair, factor_panel, smooth_design

MECHANISMS = ("linear", "cubic", "tanh", "exponential", "sine", "quadratic", "smooth")
NOISES = ("gaussian", "uniform", "laplace", "lognormal")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("cause", ["gaussian", "uniform"])
def test_a_seed_fixes_the_records_and_they_lie_within_the_public_bounds(mechanism: Any, noise: Any, cause: Any) -> None:
    first, second = (anm_pair(500, mechanism=mechanism, noise=noise, cause=cause, seed=11) for _ in range(2))
    for name in ("x", "y"):
        np.testing.assert_array_equal(first.columns[name], second.columns[name])
        assert first.columns[name].shape == (500,)
        assert first.schema[name].lower <= first.columns[name].min()
        assert first.columns[name].max() <= first.schema[name].upper
    assert (first.cause, first.effect, first.seed) == ("x", "y", 11)
    assert first.schema == second.schema


CENTRED = {
    "linear": lambda x: x / math.sqrt(4 / 3),
    # E[(x + x³/3)²] = 4/3 + (2/3)(16/5) + (64/7)/9 for x uniform on [-2, 2].
    "cubic": lambda x: (x + x**3 / 3) / math.sqrt(4 / 3 + 32 / 15 + 64 / 63),
    # E[(x + ½)²] = 4/3 + 1/4; its variance is E x⁴ − (E x²)² + E x² = 16/5 − 16/9 + 4/3.
    "quadratic": lambda x: ((x + 0.5) ** 2 - 4 / 3 - 0.25) / math.sqrt(16 / 5 - 16 / 9 + 4 / 3),
}


@pytest.mark.parametrize("mechanism", CENTRED)
def test_the_effect_is_the_scaled_function_plus_noise(mechanism: Any) -> None:
    pair = anm_pair(2000, mechanism=mechanism, noise="uniform", noise_scale=1e-6, seed=4)
    # Uniform noise of standard deviation 1e-6 stays below 2e-6; the scaling is by quadrature on 4001 points.
    np.testing.assert_allclose(pair.columns["y"], CENTRED[mechanism](pair.columns["x"]), atol=3e-3)


SPREAD = math.sqrt(math.exp(0.25) * math.expm1(0.25))
LAWS = {
    "gaussian": stats.norm(),
    "uniform": stats.uniform(-math.sqrt(3), 2 * math.sqrt(3)),
    "laplace": stats.laplace(scale=math.sqrt(0.5)),
    "lognormal": stats.lognorm(0.5, loc=-math.exp(0.125) / SPREAD, scale=1 / SPREAD),
}


@pytest.mark.parametrize("noise", NOISES)
def test_the_noise_has_its_distribution_and_is_independent_of_the_cause(noise: Any) -> None:
    pair = anm_pair(20_000, mechanism="linear", noise=noise, noise_scale=0.5, seed=8)
    x, errors = pair.columns["x"], (pair.columns["y"] - CENTRED["linear"](pair.columns["x"])) / 0.5
    # Fixed seed; for fresh ones each p-value below 1e-9 would be a false alarm of that rate.  The quadrature's
    # error of 5e-4 in the scale is far below what n can see.
    assert stats.kstest(errors, LAWS[noise].cdf).pvalue > 1e-9
    assert stats.kstest(x, stats.uniform(-2, 4).cdf).pvalue > 1e-9
    assert stats.kendalltau(x, np.abs(errors)).pvalue > 1e-9
    assert LAWS[noise].mean() == pytest.approx(0, abs=1e-12) and LAWS[noise].var() == pytest.approx(1)


def test_without_a_seed_records_are_fresh_unless_noise_is_simulated() -> None:
    assert anm_pair(5).seed != anm_pair(5).seed and factor_panel(3).seed != factor_panel(3).seed
    pairs = []
    for _ in range(2):
        with dpc.simulated_noise(3):
            pairs.append(anm_pair(5))
    np.testing.assert_array_equal(pairs[0].columns["y"], pairs[1].columns["y"])


def test_a_seed_gives_the_same_panel_within_the_bounds() -> None:
    one, again, other = factor_panel(30, seed=5), factor_panel(30, seed=5), factor_panel(30, seed=6)
    np.testing.assert_array_equal(one.donors, again.donors)
    np.testing.assert_array_equal(one.target, again.target)
    assert (one.donors != other.donors).any()
    assert np.abs(one.donors).max() <= 1 and np.abs(one.target).max() <= 1
    assert one.donors.shape == (30, 13) and one.start == 10


def test_the_effect_is_added_to_the_target_after_the_start_only() -> None:
    with_effect, without = factor_panel(5, effect=-0.25, seed=3), factor_panel(5, seed=3)
    np.testing.assert_array_equal(with_effect.donors, without.donors)
    np.testing.assert_array_equal(with_effect.untreated, without.target)
    change = with_effect.target - without.target
    moved = np.maximum(-1, without.target[10:] - 0.25)
    assert not change[:10].any()
    np.testing.assert_allclose(change[10:], moved - without.target[10:], atol=1e-12)


REFUSALS: list[tuple[Any, dict[str, Any]]] = [
    *((anm_pair, {"n": 5} | wrong) for wrong in (
        {"n": 0}, {"n": True}, {"n": 2.0}, {"mechanism": "unknown"}, {"noise": "cauchy"}, {"cause": "laplace"},
        {"noise_scale": 0}, {"noise_scale": math.nan}, {"noise_scale": True}, {"seed": -1}, {"seed": True})),
    *((factor_panel, {"donors": 5} | wrong) for wrong in (
        {"donors": 0}, {"donors": True}, {"before": 0}, {"after": 1.5}, {"shock": -1}, {"noise": math.nan},
        {"seed": -1})),
    *((smooth_design, {"n": 5} | wrong) for wrong in ({"dimensions": 0}, {"effect": 101}, {"bound": "1"})),
]  # fmt: skip


@pytest.mark.parametrize(("design", "arguments"), REFUSALS)
def test_arguments_outside_their_range_are_refused(design: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        design(**arguments)
