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
import threading
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


# Exact laws.  A draw of some size, the law at the stated scale, and the same law at twice that scale, which stands
# for a mechanism that adds half the noise it states.

Law = tuple[Callable[[int], Any], Callable[[float], Callable[[Any], Any]], bool]


ADDITIVE: dict[str, Law] = {
    "laplace": (
        lambda size: noise.add_laplace(np.full(size, 7.25), 2.5, sensitivity=2.5, epsilon=1.0) - 7.25,
        lambda factor: lambda x: stats.laplace.cdf(x, scale=2.5 * factor),
        False,
    ),
    "narrow geometric": (
        lambda size: noise.add_geometric(np.full(size, -4), 0.4, sensitivity=1, epsilon=2.5) + 4,
        lambda factor: lambda k: stats.dlaplace.cdf(k, 1 / (0.4 * factor)),
        True,
    ),
    "wide geometric": (
        lambda size: noise.add_geometric(np.full(size, 10**9), 30.0, sensitivity=30, epsilon=1.0) - 10**9,
        lambda factor: lambda k: stats.dlaplace.cdf(k, 1 / (30.0 * factor)),
        True,
    ),
    "gaussian": (
        lambda size: noise.add_gaussian(np.full(size, -1.5), 0.3, sensitivity=0.3, rho=0.5) + 1.5,
        lambda factor: lambda x: stats.norm.cdf(x, scale=0.3 * factor),
        False,
    ),
    "discrete gaussian": (
        lambda size: noise.add_discrete_gaussian(np.full(size, 3), 1.3, sensitivity=1.3, rho=0.5) - 3,
        lambda factor: discrete_gaussian_cdf(1.3 * factor),
        True,
    ),
}


CLAIMS = {
    "laplace": "laplace", "narrow geometric": "geometric", "wide geometric": "geometric", "gaussian": "gaussian",
    "discrete gaussian": "gaussian",
}  # fmt: skip


def named(laws: dict[str, Law]) -> list[Any]:
    return [pytest.param(law, id=name, marks=pytest.mark.proves(CLAIMS[name])) for name, law in laws.items()]


@pytest.mark.parametrize("law", named(ADDITIVE))
def test_the_noise_has_the_stated_law_and_half_of_it_would_be_caught(law: Law) -> None:
    draw, cdf, integers = law
    sample = draw(12_000)
    assert distance(sample, cdf(1), integers=integers) <= allowed(12_000)
    assert distance(sample, cdf(2), integers=integers) > 2 * allowed(12_000)


def test_a_wide_discrete_gaussian_is_simulated_too() -> None:
    with simulated_noise(3):
        sample = noise.add_discrete_gaussian(np.zeros(40_000, dtype=np.int64), 80.0, sensitivity=80.0, rho=0.5)
    assert distance(sample, discrete_gaussian_cdf(80.0), integers=True) <= allowed(40_000)


def ball(size: int, scale: float = 0.5) -> Any:
    centre = np.array([10.0, -3.0, 0.25])
    return np.array([noise.add_l2_ball(centre, scale, sensitivity=scale, epsilon=1.0) - centre for _ in range(size)])


def check_ball(sample: Any) -> None:
    size = len(sample)
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


@pytest.mark.proves("l2-ball")
def test_the_noise_of_the_ball_has_a_gamma_radius_and_a_uniform_direction() -> None:
    check_ball(ball(1_000))


def cube(size: int, scale: float = 1.5) -> Any:
    centre = np.array([10, -3, 0, 2])
    return np.array([noise.add_cube(centre, scale, sensitivity=3, epsilon=3 / scale) - centre for _ in range(size)])


def cube_law(scale: float, reach: int, sides: int) -> Any:
    """Return P(z) ∝ exp(−max|z_i|/scale) on a grid, by the definition."""
    one = np.abs(np.arange(-reach, reach + 1))
    norm = one
    for _ in range(sides - 1):
        norm = np.maximum(norm[..., None], one)
    law = np.exp(-norm / scale)
    return law / law.sum()


def summed(law: Any, least: int = 0) -> Any:
    """Return the distribution function of weights at least, least + 1, …"""
    below = np.cumsum(law) / np.sum(law)
    return lambda k: np.where(k < least, 0.0, below[np.clip(k - least, 0, len(below) - 1).astype(int)])


def cube_norms(scale: float) -> Any:
    """Return the weights of the norms 0 to 399 in four dimensions: so many points lie on a shell."""
    r = np.arange(400)
    return ((2 * r + 1.0) ** 4 - np.where(r > 0, 2 * r - 1.0, 0) ** 4) * np.exp(-r / scale)


def check_cube(sample: Any) -> None:
    """Against sums over a grid of 41⁴ points: an entry, the sum of two, which sees their joint law, and the norm."""
    size, values = len(sample), np.arange(-20, 21)
    law = cube_law(1.5, 20, 4)
    pair = law.sum(axis=(2, 3))
    both = np.bincount((values[:, None] + values).ravel() + 40, weights=pair.ravel())
    for axis in range(4):
        assert distance(sample[:, axis], summed(pair.sum(axis=1), -20), integers=True) <= allowed(size)
    assert distance(sample[:, 0] + sample[:, 1], summed(both, -40), integers=True) <= allowed(size)
    norm = np.abs(sample).max(axis=1)
    assert distance(norm, summed(cube_norms(1.5)), integers=True) <= allowed(size)
    assert distance(norm, summed(cube_norms(0.75)), integers=True) > allowed(size)


@pytest.mark.proves("cube")
def test_the_noise_of_the_cube_has_the_law_of_its_norm() -> None:
    check_cube(cube(700))


@pytest.mark.proves("cube")
def test_a_vector_of_no_or_of_nine_integers_gets_no_noise_of_the_cube() -> None:
    for shape in ((0,), (9,), (2, 2), ()):
        with pytest.raises(FenceError, match="1 to 8"):
            noise.add_cube(np.zeros(shape, dtype=np.int64), 1.0, sensitivity=1, epsilon=1.0)


@pytest.mark.fresh_bits
def test_coordinates_get_their_own_noise() -> None:
    for draw in (
        noise.add_laplace(np.zeros(64), 1.0, sensitivity=1.0, epsilon=1.0),
        noise.add_gaussian(np.zeros(64), 1.0, sensitivity=1.0, rho=0.5),
        noise.add_l2_ball(np.zeros(64), 1.0, sensitivity=1.0, epsilon=1.0),
    ):
        assert len(set(draw.tolist())) == 64


def test_the_largest_values_that_are_noised_do_not_wrap() -> None:
    for sign in (-1, 1):
        edge = np.array([sign * noise.LARGEST_INTEGER])
        moved = noise.add_geometric(edge, 1e15, sensitivity=10**15, epsilon=1.0) - edge
        assert abs(int(moved[0])) < 100 * 10**15  # false alarm e^-100
        far = noise.add_laplace(np.array([sign * 1e300]), 1.0, sensitivity=1.0, epsilon=1.0)
        assert far[0] == sign * 1e300


# The fence


def unreachable() -> Any:
    raise AssertionError("a value reached OpenDP")


PRIMITIVES: dict[str, Callable[..., Any]] = {
    "laplace": lambda values, scale: noise.add_laplace(values, scale, sensitivity=1e-3, epsilon=1.0),
    "gaussian": lambda values, scale: noise.add_gaussian(values, scale, sensitivity=1e-3, rho=1.0),
    "ball": lambda values, scale: noise.add_l2_ball(values, scale, sensitivity=1e-3, epsilon=1.0),
    "noisy max": lambda values, scale: noise.noisy_argmax(values, scale, sensitivity=1e-3, epsilon=1.0),
    "geometric": lambda values, scale: noise.add_geometric(values, scale, sensitivity=1, epsilon=10.0),
    "discrete gaussian": lambda values, scale: noise.add_discrete_gaussian(values, scale, sensitivity=1.0, rho=10.0),
    "cube": lambda values, scale: noise.add_cube(values, scale, sensitivity=1, epsilon=10.0),
}
INTEGER_PRIMITIVES = ("geometric", "discrete gaussian", "cube")

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
    **{key: value for key, value in NO_REALS.items() if key != "number"},
    "float64": np.zeros(2),
    "unsigned": np.zeros(2, dtype=np.uint64),
    "beyond": np.array([2**61 + 1, 0]),
    "below": np.array([-(2**61) - 1, 0]),
    "least": np.array([np.iinfo(np.int64).min, 0]),
}
NO_SCALES: list[Any] = [
    0.0, -0.0, -1.0, math.nan, math.inf, -math.inf, 5e-324, 1e-301, 1.1e15, 1, True, "1", None, np.float32(1),
]  # fmt: skip


def modes(run: Callable[[], Any]) -> None:
    """Run outside and inside the simulation."""
    run()
    with simulated_noise(1):
        run()


@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_what_is_not_a_fit_array_never_reaches_opendp(primitive: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_opendp", unreachable)

    def run() -> None:
        for name, values in (NO_INTEGERS if primitive in INTEGER_PRIMITIVES else NO_REALS).items():
            with pytest.raises(FenceError) as refused:
                PRIMITIVES[primitive](values, 1.0)
            assert "e300" in str(refused.value) or "nan" not in str(refused.value).lower(), name

    modes(run)


@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_what_is_not_a_fit_scale_never_reaches_opendp(primitive: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_opendp", unreachable)
    values = np.zeros(2, dtype=np.int64 if primitive in INTEGER_PRIMITIVES else np.float64)

    def run() -> None:
        for scale in NO_SCALES:
            with pytest.raises(FenceError):
                PRIMITIVES[primitive](values, scale)

    modes(run)


def test_the_fence_itself_lets_fit_values_through_to_opendp(monkeypatch: pytest.MonkeyPatch) -> None:
    # The control of the two tests above: the stand-in is what the primitives call.
    monkeypatch.setattr(noise, "_opendp", unreachable)
    for primitive, call in PRIMITIVES.items():
        if primitive != "ball":
            values = np.zeros(2, dtype=np.int64 if primitive in INTEGER_PRIMITIVES else np.float64)
            with pytest.raises(AssertionError, match="reached"):
                call(values, 1.0)


def test_selection_and_ball_take_one_row_that_is_not_empty() -> None:
    for values in (np.zeros((2, 2)), np.zeros(0), np.array(0.0)):
        for primitive in ("noisy max", "ball"):
            with pytest.raises(FenceError):
                PRIMITIVES[primitive](values, 1.0)


def at_factor(factor: float) -> dict[str, Callable[[], Any]]:
    """Each primitive at a multiple of the scale that its claim needs: Δ = 3, ε = 0.7, ρ = 0.2."""
    reals, integers = np.zeros(3), np.zeros(3, dtype=np.int64)
    pure, sigma = factor * 3 / 0.7, factor * 3 / math.sqrt(0.4)
    return {
        "laplace": lambda: noise.add_laplace(reals, pure, sensitivity=3.0, epsilon=0.7),
        "geometric": lambda: noise.add_geometric(integers, pure, sensitivity=3, epsilon=0.7),
        "gaussian": lambda: noise.add_gaussian(reals, sigma, sensitivity=3.0, rho=0.2),
        "discrete gaussian": lambda: noise.add_discrete_gaussian(integers, sigma, sensitivity=3.0, rho=0.2),
        "noisy max": lambda: noise.noisy_argmax(reals, 2 * pure, sensitivity=3.0, epsilon=0.7),
        "noisy max of integers": lambda: noise.noisy_argmax(integers, 2 * pure, sensitivity=3, epsilon=0.7),
        "cube": lambda: noise.add_cube(integers, pure, sensitivity=3, epsilon=0.7),
        "ball": lambda: noise.add_l2_ball(reals, pure, sensitivity=3.0, epsilon=0.7),
    }


@pytest.mark.parametrize("primitive", at_factor(1))
def test_a_scale_of_95_percent_is_refused(primitive: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at_factor(1 + 1e-12)[primitive]()

    def run() -> None:
        for factor in (0.5, 0.95, 1 - 1e-9):
            with pytest.raises(FenceError, match="too small"):
                at_factor(factor)[primitive]()

    modes(run)
    if primitive not in ("ball", "cube"):  # OpenDP's map is a second opinion: it refuses by itself
        monkeypatch.setattr(noise, "_fence_cost", lambda *_, **__: None)
        at_factor(1 + 1e-12)[primitive]()
        for factor in (0.5, 0.95, 1 - 1e-9):
            with pytest.raises(FenceError, match="too small"):
                at_factor(factor)[primitive]()


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_sensitivity_or_a_loss_that_is_not_positive_and_finite_is_refused(bad: float) -> None:
    for sensitivity, loss in ((bad, 1.0), (1.0, bad)):
        with pytest.raises(FenceError):
            noise.add_laplace(np.zeros(1), 1.0, sensitivity=sensitivity, epsilon=loss)
        with pytest.raises(FenceError):
            noise.add_gaussian(np.zeros(1), 1.0, sensitivity=sensitivity, rho=loss)
        with pytest.raises(FenceError):
            noise.add_l2_ball(np.zeros(1), 1.0, sensitivity=sensitivity, epsilon=loss)


# Where the bits come from

def one_of_each() -> list[Any]:
    """Return draws of every primitive, of 60 bits or more each."""
    zeros, counts = np.zeros(4), np.zeros(4, dtype=np.int64)
    return [
        noise.add_laplace(zeros, 1e6, sensitivity=1.0, epsilon=1.0).tolist(),
        noise.add_geometric(counts, 1e12, sensitivity=1, epsilon=1.0).tolist(),
        noise.add_gaussian(zeros, 1e6, sensitivity=1.0, rho=1.0).tolist(),
        noise.add_l2_ball(zeros, 1e6, sensitivity=1.0, epsilon=1.0).tolist(),
        noise.add_cube(counts, 1e12, sensitivity=1, epsilon=1.0).tolist(),
        [noise.noisy_argmax(np.zeros(1000), 1e6, sensitivity=1.0, epsilon=1.0) for _ in range(8)],
        noise.public_generator()[1],
    ]


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


# The simulation


def everything() -> list[Any]:
    reals, integers = np.arange(6.0), np.arange(6)
    return [
        noise.add_laplace(reals, 1.0, sensitivity=1.0, epsilon=1.0).tolist(),
        noise.add_geometric(integers, 9.0, sensitivity=1, epsilon=1.0).tolist(),
        noise.add_gaussian(reals, 1.0, sensitivity=1.0, rho=1.0).tolist(),
        noise.add_discrete_gaussian(integers, 9.0, sensitivity=1.0, rho=1.0).tolist(),
        noise.add_discrete_gaussian(integers, 90.0, sensitivity=1.0, rho=1.0).tolist(),
        noise.add_l2_ball(reals, 1.0, sensitivity=1.0, epsilon=1.0).tolist(),
        noise.add_cube(integers, 9.0, sensitivity=1, epsilon=1.0).tolist(),
        [noise.noisy_argmax(np.zeros(1000), 9.0, sensitivity=1.0, epsilon=1.0) for _ in range(5)],
        noise.public_generator()[1],
    ]


def test_simulated_noise_is_the_same_at_each_run_and_never_asks_opendp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_opendp", unreachable)
    runs = []
    for seed in (7, 7, 8):
        with simulated_noise(seed):
            runs.append(everything())
    assert runs[0] == runs[1]
    assert all(same != other for same, other in zip(runs[0], runs[2], strict=True))


@pytest.mark.fresh_bits
def test_real_noise_differs_at_each_run() -> None:
    assert all(one != other for one, other in zip(everything(), everything(), strict=True))


def test_the_simulation_ends_with_its_block_also_by_an_error() -> None:
    assert not is_simulated()
    with simulated_noise(1):
        assert is_simulated()
        with simulated_noise(2):
            inner = noise.public_generator()[1]
        outer = noise.public_generator()[1]
        assert is_simulated()
    assert not is_simulated()
    with simulated_noise(1):
        assert noise.public_generator()[1] == outer != inner
    with pytest.raises(ZeroDivisionError), simulated_noise(1):
        raise ZeroDivisionError
    assert not is_simulated()


def test_the_simulation_does_not_reach_other_threads() -> None:
    seen = []
    with simulated_noise(1):
        thread = threading.Thread(target=lambda: seen.append(is_simulated()))
        thread.start()
        thread.join()
        assert is_simulated()
    assert seen == [False]


@pytest.mark.parametrize("seed", [True, -1, 1.0, "1", None, np.bool_(True), math.nan])
def test_a_seed_is_a_whole_number_of_at_least_0(seed: Any) -> None:
    with pytest.raises(ParameterError), simulated_noise(seed):
        pass
    with simulated_noise(np.int64(3)):
        assert is_simulated()
