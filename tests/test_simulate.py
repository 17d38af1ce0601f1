import math

import numpy as np
import pytest
from scipy import stats

from dpcausal.errors import ParameterError
from dpcausal.privacy.noise import simulated_noise
from dpcausal.simulate import anm_pair

MECHANISMS = ("linear", "cubic", "tanh", "exponential", "sine", "quadratic", "smooth")
NOISES = ("gaussian", "uniform", "laplace", "lognormal")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("cause", ["gaussian", "uniform"])
def test_a_seed_fixes_the_records_and_they_lie_within_the_public_bounds(mechanism, noise, cause):
    first, second = (anm_pair(500, mechanism=mechanism, noise=noise, cause=cause, seed=11) for _ in range(2))
    for name in ("x", "y"):
        np.testing.assert_array_equal(first.columns[name], second.columns[name])
        assert first.columns[name].shape == (500,)
        assert first.schema[name].lower <= first.columns[name].min()
        assert first.columns[name].max() <= first.schema[name].upper
    assert (first.cause, first.effect, first.seed) == ("x", "y", 11)
    assert first.schema == second.schema


@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if name != "smooth"])
def test_the_bounds_follow_from_the_law_and_not_from_the_records(mechanism):
    schemas = [anm_pair(n, mechanism=mechanism, seed=seed).schema for n, seed in ((1, 1), (1, 2), (3000, 3))]
    assert schemas[0] == schemas[1] == schemas[2]


CENTRED = {
    "linear": lambda x: x / math.sqrt(4 / 3),
    # E[(x + x³/3)²] = 4/3 + (2/3)(16/5) + (64/7)/9 for x uniform on [-2, 2].
    "cubic": lambda x: (x + x**3 / 3) / math.sqrt(4 / 3 + 32 / 15 + 64 / 63),
    # E[(x + ½)²] = 4/3 + 1/4; its variance is E x⁴ − (E x²)² + E x² = 16/5 − 16/9 + 4/3.
    "quadratic": lambda x: ((x + 0.5) ** 2 - 4 / 3 - 0.25) / math.sqrt(16 / 5 - 16 / 9 + 4 / 3),
}


@pytest.mark.parametrize("mechanism", CENTRED)
def test_the_effect_is_the_scaled_function_plus_noise(mechanism):
    pair = anm_pair(2000, mechanism=mechanism, noise="uniform", noise_scale=1e-6, seed=4)
    x, y = pair.columns["x"], pair.columns["y"]
    # Uniform noise of standard deviation 1e-6 stays below 2e-6; the scaling is by quadrature on 4001 points.
    np.testing.assert_allclose(y, CENTRED[mechanism](x), atol=3e-3)


LAWS = {
    "gaussian": stats.norm(),
    "uniform": stats.uniform(-math.sqrt(3), 2 * math.sqrt(3)),
    "laplace": stats.laplace(scale=math.sqrt(0.5)),
    "lognormal": stats.lognorm(
        0.5,
        loc=-math.exp(0.125) / math.sqrt(math.exp(0.25) * math.expm1(0.25)),
        scale=1 / math.sqrt(math.exp(0.25) * math.expm1(0.25)),
    ),
}


@pytest.mark.parametrize("noise", NOISES)
def test_the_noise_has_its_law_and_is_independent_of_the_cause(noise):
    n = 20_000
    pair = anm_pair(n, mechanism="linear", noise=noise, noise_scale=0.5, seed=8)
    x, errors = pair.columns["x"], (pair.columns["y"] - CENTRED["linear"](pair.columns["x"])) / 0.5
    # Fixed seed; for fresh ones each p-value below 1e-9 would be a false alarm of that rate.  The quadrature's
    # error of 5e-4 in the scale is far below what n can see.
    assert stats.kstest(errors, LAWS[noise].cdf).pvalue > 1e-9
    assert stats.kstest(x, stats.uniform(-2, 4).cdf).pvalue > 1e-9
    assert stats.kendalltau(x, np.abs(errors)).pvalue > 1e-9
    assert LAWS[noise].mean() == pytest.approx(0, abs=1e-12)
    assert LAWS[noise].var() == pytest.approx(1)


def test_smooth_functions_differ_between_seeds_and_stay_within_their_bounds():
    first, second = (anm_pair(1000, mechanism="smooth", noise_scale=1e-3, seed=seed) for seed in (1, 2))
    assert first.schema["y"] != second.schema["y"]
    order = np.argsort(first.columns["x"])
    steps = np.abs(np.diff(first.columns["y"][order]))
    assert steps.max() < 0.2  # no jumps: 1000 points on a smooth function of variance 1


def test_without_a_seed_records_are_fresh_unless_noise_is_simulated():
    assert anm_pair(5).seed != anm_pair(5).seed
    pairs = []
    for _ in range(2):
        with simulated_noise(3):
            pairs.append(anm_pair(5))
    np.testing.assert_array_equal(pairs[0].columns["y"], pairs[1].columns["y"])


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": 0}, {"n": True}, {"n": 2.0}, {"n": 5, "mechanism": "unknown"}, {"n": 5, "noise": "cauchy"},
        {"n": 5, "cause": "laplace"}, {"n": 5, "noise_scale": 0}, {"n": 5, "noise_scale": math.nan},
        {"n": 5, "noise_scale": True}, {"n": 5, "seed": -1}, {"n": 5, "seed": True},
    ],
)  # fmt: skip
def test_arguments_outside_their_range_are_refused(arguments):
    with pytest.raises(ParameterError):
        anm_pair(**arguments)
