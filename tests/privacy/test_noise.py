"""The noise: exact laws, the fence in front of OpenDP, forks, public randomness and the simulation mode.

Real noise cannot be seeded.  Each statistical check compares an empirical distribution function with the exact one
by the Dvoretzky-Kiefer-Wolfowitz bound with Massart's constant, which holds for every law and sample size:
a false alarm has probability at most 1e-10 per check, below 1e-9 per test.
"""

import itertools
import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpcausal.errors import FenceError, ParameterError
from dpcausal.privacy import noise
from dpcausal.privacy.noise import is_simulated, simulated_noise
from tests.privacy.kill_loops import run
from tests.voices import together

FALSE_ALARM = 1e-10


def distance(sample: Any, cdf: Callable[[Any], Any], *, integers: bool = False) -> float:
    """The largest distance between the empirical distribution function of a sample and a law's."""
    values, counts = np.unique(np.asarray(sample, dtype=np.float64), return_counts=True)
    at = np.cumsum(counts) / counts.sum()
    before = np.concatenate([[0.0], at[:-1]])
    left = cdf(values - 1) if integers else cdf(values)
    return float(max(np.abs(at - cdf(values)).max(), np.abs(before - left).max()))


def allowed(size: int) -> float:
    """The distance that a true law passes with probability at most ``FALSE_ALARM``."""
    return math.sqrt(math.log(2 / FALSE_ALARM) / (2 * size))


def discrete_gaussian_cdf(scale: float) -> Callable[[Any], Any]:
    support = np.arange(-math.ceil(40 * scale), math.ceil(40 * scale) + 1)
    weights = np.cumsum(np.exp(-((support / scale) ** 2) / 2))
    return lambda k: np.interp(np.floor(k), support, weights / weights[-1], left=0.0, right=1.0)


def permute_and_flip(scores: Any, epsilon: float, bound: float) -> list[float]:
    """The law of permute-and-flip (McKenna & Sheldon 2020), by enumerating the orders in which it visits."""
    stop = [math.exp(epsilon * (score - max(scores)) / (2 * bound)) for score in scores]
    orders = list(itertools.permutations(range(len(scores))))
    law = [0.0] * len(scores)
    for order in orders:
        going_on = 1.0
        for i in order:
            law[i] += going_on * stop[i] / len(orders)
            going_on *= 1 - stop[i]
    return law


def index_cdf(law: list[float]) -> Callable[[Any], Any]:
    return lambda k: np.where(k < 0, 0.0, np.cumsum(law)[np.clip(k, 0, len(law) - 1).astype(int)])


SAMPLERS: dict[str, tuple[Callable[..., Any], type, type, str]] = {
    "laplace": (noise.add_laplace, float, float, "epsilon"), "geometric": (noise.add_geometric, int, int, "epsilon"),
    "gaussian": (noise.add_gaussian, float, float, "rho"),
    "discrete gaussian": (noise.add_discrete_gaussian, int, float, "rho"),
    "cube": (noise.add_cube, int, int, "epsilon"), "ball": (noise.add_l2_ball, float, float, "epsilon"),
    "noisy max": (noise.noisy_argmax, float, float, "epsilon"),
    "noisy max of integers": (noise.noisy_argmax, int, int, "epsilon"),
}  # fmt: skip
"""Each sampler with the types of its values and of its sensitivity, and the name of the amount that pays for it."""


def draw(name: str, values: Any, scale: Any, sensitivity: float = 1, loss: float = 1.0) -> Any:
    sampler, _, kind, amount = SAMPLERS[name]
    return sampler(values, scale, sensitivity=kind(sensitivity), **{amount: loss})


def zeros(name: str, size: int) -> Any:
    return np.zeros(size, dtype=SAMPLERS[name][1])


def geometric_cdf(scale: float) -> Callable[[Any], Any]:
    return lambda k: stats.dlaplace.cdf(k, 1 / scale)


LAWS = [
    ("laplace", 7.25, 2.5, 2.5, 1.0, lambda scale: stats.laplace(scale=scale).cdf),
    ("geometric", -4, 0.4, 1, 2.5, geometric_cdf), ("geometric", 10**9, 30.0, 30, 1.0, geometric_cdf),
    ("gaussian", -1.5, 0.3, 0.3, 0.5, lambda scale: stats.norm(scale=scale).cdf),
    ("discrete gaussian", 3, 1.3, 1.3, 0.5, discrete_gaussian_cdf),
]  # fmt: skip
"""A sampler, what it adds to, scale, sensitivity, loss, and the law by its scale."""


@pytest.mark.parametrize("name, centre, scale, sensitivity, loss, law", [
    pytest.param(*one, marks=pytest.mark.proves(one[0].removeprefix("discrete "))) for one in LAWS
])  # fmt: skip
def test_the_noise_has_the_stated_law_and_half_of_it_would_be_caught(
    name: str, centre: Any, scale: float, sensitivity: float, loss: float, law: Any
) -> None:
    integers = SAMPLERS[name][1] is int
    sample = draw(name, np.full(12_000, centre), scale, sensitivity, loss) - centre
    assert distance(sample, law(scale), integers=integers) <= allowed(12_000)
    assert distance(sample, law(2 * scale), integers=integers) > 2 * allowed(12_000)


def test_a_wide_discrete_gaussian_is_simulated_too() -> None:
    with simulated_noise(3):
        sample = draw("discrete gaussian", zeros("geometric", 40_000), 80.0, 80.0, 0.5)
    assert distance(sample, discrete_gaussian_cdf(80.0), integers=True) <= allowed(40_000)


@pytest.mark.proves("l2-ball")
def test_the_noise_of_the_ball_has_a_gamma_radius_and_a_uniform_direction() -> None:
    size, centre = 1_000, np.array([10.0, -3.0, 0.25])
    sample = np.array([draw("ball", centre, 0.5, 0.5) - centre for _ in range(size)])
    radius = np.linalg.norm(sample, axis=1)
    assert distance(radius, lambda r: stats.gamma.cdf(r, 3, scale=0.5)) <= allowed(size)
    assert distance(radius, lambda r: stats.gamma.cdf(r, 3, scale=1.0)) > allowed(size)
    # Archimedes: a coordinate of a uniform direction in three dimensions is uniform on [-1, 1]; so is any projection.
    for axis in (*np.eye(3), np.array([1, -1, 1]) / math.sqrt(3)):
        along = sample @ axis / radius
        assert distance(along, lambda x: (1 + x) / 2) <= allowed(size)
    # Radius and direction are independent: the uniform law also holds among the outer half alone.
    outer = radius > stats.gamma.median(3, scale=0.5)
    assert distance((sample[:, 0] / radius)[outer], lambda x: (1 + x) / 2) <= allowed(int(outer.sum()))


def summed(law: Any, least: int = 0) -> Any:
    """Return the distribution function of weights at least, least + 1, …"""
    below = np.cumsum(law) / np.sum(law)
    return lambda k: np.where(k < least, 0.0, below[np.clip(k - least, 0, len(below) - 1).astype(int)])


def cube_norms(scale: float) -> Any:
    """Return the weights of the norms 0 to 399 in four dimensions: so many points lie on a shell."""
    r = np.arange(400)
    return ((2 * r + 1.0) ** 4 - np.where(r > 0, 2 * r - 1.0, 0) ** 4) * np.exp(-r / scale)


@pytest.mark.proves("cube")
def test_the_noise_of_the_cube_has_the_law_of_its_norm() -> None:
    """Against sums over a grid of 41⁴ points: an entry, the sum of two, which sees their joint law, and the norm."""
    size, values, centre = 700, np.arange(-20, 21), np.array([10, -3, 0, 2])
    sample = np.array([draw("cube", centre, 1.5, 3, 2.0) - centre for _ in range(size)])
    grid = np.max(np.abs(np.stack(np.meshgrid(*[values] * 4, indexing="ij"))), axis=0)
    pair = np.exp(-grid / 1.5).sum(axis=(2, 3))
    both = np.bincount((values[:, None] + values).ravel() + 40, weights=pair.ravel())
    for axis in range(4):
        assert distance(sample[:, axis], summed(pair.sum(axis=1), -20), integers=True) <= allowed(size)
    assert distance(sample[:, 0] + sample[:, 1], summed(both, -40), integers=True) <= allowed(size)
    norm = np.abs(sample).max(axis=1)
    assert distance(norm, summed(cube_norms(1.5)), integers=True) <= allowed(size)
    assert distance(norm, summed(cube_norms(0.75)), integers=True) > allowed(size)


def test_the_largest_values_that_are_noised_do_not_wrap() -> None:
    for sign in (-1, 1):
        edge = np.array([sign * noise.LARGEST_INTEGER])
        moved = draw("geometric", edge, 1e15, 10**15) - edge
        assert abs(int(moved[0])) < 100 * 10**15  # false alarm e^-100
        assert draw("laplace", np.array([sign * 1e300]), 1.0)[0] == sign * 1e300


# The fence


def unreachable() -> Any:
    raise AssertionError("a value reached OpenDP")


NO_REALS: dict[str, Any] = {
    "NaN": np.array([0.0, np.nan]), "infinity": np.array([0.0, np.inf]), "minus infinity": np.array([-np.inf, 0.0]),
    "too large": np.array([1.1e300, 0.0]), "float32": np.zeros(2, dtype=np.float32),
    "longdouble": np.zeros(2, dtype=np.longdouble), "complex": np.zeros(2, dtype=np.complex128),
    "bool": np.zeros(2, dtype=np.bool_), "object": np.array([0.0, 1.0], dtype=object), "text": np.array(["0", "1"]),
    "swapped bytes": np.zeros(2, dtype=">f8" if sys.byteorder == "little" else "<f8"),
    "masked": np.ma.array([0.0, np.nan], mask=[False, True]), "fully masked": np.ma.array([np.nan, np.nan], mask=True),
    "list": [0.0, 1.0], "number": 0.0, "numpy number": np.float64(0.0), "none": None,
    "int32": np.zeros(2, dtype=np.int32),
}  # fmt: skip
NO_INTEGERS: dict[str, Any] = {
    **{key: value for key, value in NO_REALS.items() if key != "number"}, "float64": np.zeros(2),
    "unsigned": np.zeros(2, dtype=np.uint64), "beyond": np.array([2**61 + 1, 0]), "below": np.array([-(2**61) - 1, 0]),
    "least": np.array([np.iinfo(np.int64).min, 0]),
}  # fmt: skip
NO_SCALES: list[Any] = [
    0.0, -0.0, -1.0, math.nan, math.inf, -math.inf, 5e-324, 1e-301, 1.1e15, 1, True, "1", None, np.float32(1),
]  # fmt: skip
SHAPES = {"cube": ((0,), (9,), (2, 2), ()), "ball": ((0,), (2, 2), ()), "noisy max": ((0,), (2, 2), ())}


def modes(run: Callable[[], Any]) -> None:
    """Run outside and inside the simulation."""
    run()
    with simulated_noise(1):
        run()


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name != "noisy max of integers"])
def test_what_is_no_fit_array_or_scale_or_shape_never_reaches_opendp(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noise, "_opendp", unreachable)
    shapes = [np.zeros(shape, dtype=SAMPLERS[name][1]) for shape in SHAPES.get(name, ())]

    def refused() -> None:
        for kind, values in (NO_INTEGERS if SAMPLERS[name][1] is int else NO_REALS).items():
            with pytest.raises(FenceError) as refused:
                draw(name, values, 1.0, 1, 10.0)
            assert "e300" in str(refused.value) or "nan" not in str(refused.value).lower(), kind
        for scale in NO_SCALES:
            with pytest.raises(FenceError):
                draw(name, zeros(name, 2), scale, 1, 10.0)
        for values in shapes:
            with pytest.raises(FenceError, match="one row"):
                draw(name, values, 1.0, 1, 10.0)

    modes(refused)
    if name != "ball":  # the control: the stand-in is what the samplers call
        with pytest.raises(AssertionError, match="reached"):
            draw(name, zeros(name, 2), 1.0, 1, 10.0)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_scale_of_95_percent_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sampler at a multiple of the scale that its claim needs: Δ = 3, ε = 0.7, ρ = 0.2."""
    loss = 0.2 if SAMPLERS[name][3] == "rho" else 0.7
    needed = 3 / math.sqrt(0.4) if loss == 0.2 else (6 if "max" in name else 3) / 0.7

    def at(factor: float) -> Any:
        return draw(name, zeros(name, 3), factor * needed, 3, loss)

    def too_little() -> None:
        for factor in (0.5, 0.95, 1 - 1e-9):
            with pytest.raises(FenceError, match="too small"):
                at(factor)

    at(1 + 1e-12)
    modes(too_little)
    if name not in ("ball", "cube"):  # OpenDP's map is a second opinion: it refuses by itself
        monkeypatch.setattr(noise, "_fence_cost", lambda *_, **__: None)
        at(1 + 1e-12)
        too_little()


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["laplace", "gaussian", "ball"])
def test_a_sensitivity_or_a_loss_that_is_not_positive_and_finite_is_refused(name: str, bad: float) -> None:
    for sensitivity, loss in ((bad, 1.0), (1.0, bad)):
        with pytest.raises(FenceError):
            draw(name, np.zeros(1), 1.0, sensitivity, loss)


# Where the bits come from, and the simulation


def one_of_each() -> list[Any]:
    """Return draws of every sampler, of 60 bits or more each, and a public seed."""
    wide = {"geometric": 1e12, "cube": 1e12, "discrete gaussian": 1e12}
    additive = [name for name in SAMPLERS if "max" not in name]
    draws: list[Any] = [draw(name, zeros(name, 4), wide.get(name, 1e6)).tolist() for name in additive]
    selections = [draw("noisy max", np.zeros(1000), 1e6) for _ in range(8)]
    return [*draws, selections, noise.public_generator()[1]]


@pytest.mark.fresh_bits
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_two_forked_children_draw_different_noise(tmp_path: Path) -> None:
    # A false alarm: two equal draws of 60 bits or more.
    one_of_each()
    for child in ("first", "second"):
        assert run(lambda child=child: (tmp_path / child).write_text(json.dumps(one_of_each()))) == 0  # type: ignore[misc]
    children = [json.loads((tmp_path / child).read_text()) for child in ("first", "second")]
    for first, second, parent in zip(*children, one_of_each(), strict=True):
        assert first != second and second != parent and first != parent


@pytest.mark.fresh_bits
def test_public_randomness_comes_with_the_seed_that_repeats_it() -> None:
    generator, seed = noise.public_generator()
    other, other_seed = noise.public_generator()
    assert seed != other_seed  # false alarm 2^-63
    expected = generator.random(5)
    assert (noise.generator_from_seed(seed).random(5) == expected).all()
    assert not (other.random(5) == expected).any()


def test_simulated_noise_is_the_same_at_each_run_and_never_asks_opendp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_opendp", unreachable)
    runs = []
    for seed in (7, 7, 8):
        with simulated_noise(seed):
            runs.append([*one_of_each(), draw("discrete gaussian", np.arange(9), 9.0).tolist()])
    assert runs[0] == runs[1]
    assert all(same != other for same, other in zip(runs[0], runs[2], strict=True))


def test_the_simulation_ends_with_its_block_also_by_an_error_and_does_not_reach_other_threads() -> None:
    seen = []
    with simulated_noise(1):
        with simulated_noise(2):
            inner = noise.public_generator()[1]
        outer = noise.public_generator()[1]
        together(lambda: seen.append(is_simulated()))
        assert is_simulated() and seen == [False]
    assert not is_simulated()
    with simulated_noise(1):
        assert noise.public_generator()[1] == outer != inner
    with pytest.raises(ZeroDivisionError), simulated_noise(1):
        raise ZeroDivisionError
    assert not is_simulated()


@pytest.mark.parametrize("seed", [True, -1, 1.0, "1", None, np.bool_(True), math.nan])
def test_a_seed_is_a_whole_number_of_at_least_0(seed: Any) -> None:
    with pytest.raises(ParameterError), simulated_noise(seed):
        pass
    with simulated_noise(np.int64(3)):
        assert is_simulated()
