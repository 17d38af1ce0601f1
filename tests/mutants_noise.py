"""Mutants of the noise, killed by the black box; controls draw from the library's own mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpcausal.privacy.noise import simulated_noise
from tests.mutants import Case, by_black_box
from tests.registry.mechanisms import MECHANISMS, discrete_gaussian_delta, gaussian_delta
from tests.registry.rows import MechanismRow

Mechanism = Callable[[np.random.Generator, float, int], Any]
"""(coins, exact answer, size) → outputs; the claim is ε = 1 for answers that differ by 1."""


def on_both(mechanism: Mechanism, answers: tuple[Any, Any] = (0.0, 1.0), seed: int = 1) -> Callable[[int], Any]:
    def outputs(size: int) -> tuple[Any, Any]:
        coins = np.random.default_rng(seed)
        return mechanism(coins, answers[0], size), mechanism(coins, answers[1], size)

    return outputs


def laplace_of(scale: float) -> Mechanism:
    return lambda coins, answer, size: answer + coins.laplace(0, scale, size)


def geometric_of(scale: float) -> Mechanism:
    def draw(coins: np.random.Generator, answer: float, size: int) -> Any:
        success = -math.expm1(-1 / scale)
        return answer + coins.geometric(success, size) - coins.geometric(success, size)

    return draw


def gaussian_of(scale: float) -> Mechanism:
    return lambda coins, answer, size: answer + coins.normal(0, scale, size)


def discrete_gaussian_of(scale: float) -> Mechanism:
    def draw(coins: np.random.Generator, answer: float, size: int) -> Any:
        k = np.arange(-40, 41)
        law = np.exp(-((k / scale) ** 2) / 2)
        return answer + coins.choice(k, size, p=law / law.sum())

    return draw


def argmax_of(noise: str, scale: float) -> Mechanism:
    return lambda coins, scores, size: np.argmax(
        np.asarray(scores) + getattr(coins, noise)(scale=scale, size=(size, len(scores))), axis=1
    )


def cut_off(coins: np.random.Generator, answer: float, size: int) -> Any:
    # Laplace noise without its tails: outputs beyond them are possible on one side only.
    uniform = coins.random(size) * (1 - math.exp(-3))
    return answer - np.log1p(-uniform) * coins.choice([-1.0, 1.0], size)


def rounded_away(coins: np.random.Generator, answer: float, size: int) -> Any:
    return answer + np.rint(coins.laplace(0, 1, size) / 2) * 2


def short_ball(dimensions: int, radius_of: int, scale: float) -> Mechanism:
    """Return the distance to the first answer's place of ball noise whose radius is Gamma(radius_of)."""

    def draw(coins: np.random.Generator, answer: float, size: int) -> Any:
        direction = coins.normal(size=(size, dimensions))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        noisy = coins.gamma(radius_of, scale, size)[:, None] * direction
        noisy[:, 0] += answer
        return np.linalg.norm(noisy, axis=1)

    return draw


def crossed_ball(coins: np.random.Generator, answer: float, size: int) -> Any:
    # Both coordinates move by 1: the l2 bound is √2, the mutant scales to 1.  In the far cone the loss is √2.
    direction = coins.normal(size=(size, 2))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    noisy = coins.gamma(2, 1.0, size)[:, None] * direction + answer
    aligned = (noisy - 0.5) @ np.array([1.0, 1.0]) / math.sqrt(2)
    across = np.abs((noisy - 0.5) @ np.array([1.0, -1.0]) / math.sqrt(2))
    return np.where(across < 0.5 * np.abs(aligned), aligned, 0.0)


def short_cube(coins: np.random.Generator, answer: float, size: int) -> Any:
    # A norm with P(r) ∝ e^{−r}, as in one dimension, and a direction from the cube's surface; all entries move.
    radius = coins.geometric(-math.expm1(-1.0), size) - 1
    face = coins.uniform(-1, 1, (size, 4))
    face /= np.abs(face).max(axis=1, keepdims=True)
    noisy = np.rint(radius[:, None] * face) + answer
    return np.abs(noisy).max(axis=1)


def four_at_once(coins: np.random.Generator, answer: float, size: int) -> Any:
    return geometric_of(1.0)(coins, answer, (size, 4)).min(axis=1)  # type: ignore[arg-type]


def with_extra_noise(coins: np.random.Generator, answer: float, size: int) -> Any:
    # "A sum is not negative": drawn again until it is not.
    noisy = answer + coins.laplace(0, 1, size)
    while (noisy < 0).any():
        bad = noisy < 0
        noisy[bad] = answer + coins.laplace(0, 1, int(bad.sum()))
    return noisy


def best_of_three(coins: np.random.Generator, answer: float, size: int) -> Any:
    return (answer + coins.laplace(0, 1, (size, 3))).max(axis=1)


def two_draws_of(scale: float) -> Mechanism:
    """Return the lesser of two noisy answers: it is large only if both are, which shows the loss of both."""
    return lambda coins, answer, size: (answer + coins.laplace(0, scale, (size, 2))).min(axis=1)


def one_seed_for_both(coins: np.random.Generator, answer: float, size: int) -> Any:
    # Scores (answer, 0): the same noise on both, so their difference is exact.
    shared = coins.laplace(0, 2, size)
    return np.round((answer + shared) - shared, 6)


def silent_when_empty(coins: np.random.Generator, answer: float, size: int) -> Any:
    return [None] * size if answer == 0 else answer + coins.laplace(0, 1, size)


def exact_sign(coins: np.random.Generator, answer: float, size: int) -> Any:
    # The winner is exact, only the size of the margin is noised.
    return np.abs(answer + coins.laplace(0, 1, size)) * (1 if answer > 0 else -1)


def shared_row_count(coins: np.random.Generator, answer: float, size: int) -> Any:
    # Add/remove: the noisy mean over the exact number of rows, times it, is printed beside it.
    rows = 100 + int(answer)
    return np.full(size, float(rows)) + 0 * coins.laplace(0, 1, size)


def raw_now_and_then(coins: np.random.Generator, answer: float, size: int) -> Any:
    # (1, .01)-DP, claimed as pure.
    return np.where(coins.random(size) < 0.01, answer * 1e6, answer + coins.laplace(0, 1, size))


def no_noise_on_threshold(coins: np.random.Generator, answer: float, size: int) -> Any:
    # Sparse vector with noise on the queries alone, all of whose answers are told: four queries of one bit.
    above = answer + coins.laplace(0, 2, (size, 4)) > 0.5
    return above.sum(axis=1)


ROOT_HALF = 1 / math.sqrt(2)
SELECTION = ([0.0, 0.0], [1.0, -1.0])

MUTANTS: list[Case] = [
    by_black_box("half the Laplace noise", on_both(laplace_of(0.5))),
    by_black_box("0.8 of the Laplace noise", on_both(laplace_of(0.8))),
    by_black_box("Laplace noise cut off at three scales", on_both(cut_off)),
    by_black_box("Laplace noise on a grid wider than the sensitivity", on_both(rounded_away)),
    by_black_box("geometric noise at twice the ε", on_both(geometric_of(0.5))),
    by_black_box("0.8 of the geometric noise", on_both(geometric_of(0.8))),
    by_black_box("Gaussian noise without √2", on_both(gaussian_of(ROOT_HALF)), delta=gaussian_delta(1)),
    by_black_box("0.8 of the Gaussian noise", on_both(gaussian_of(0.8)), delta=gaussian_delta(1)),
    by_black_box("Gaussian noise sold as pure: δ ignored", on_both(gaussian_of(1.0))),
    by_black_box(
        "discrete Gaussian noise of half the variance",
        on_both(discrete_gaussian_of(ROOT_HALF)),
        delta=discrete_gaussian_delta(1),
    ),
    by_black_box("ball noise with the radius of one dimension", on_both(short_ball(2, 1, 1.0))),
    by_black_box("ball noise with the bound of one coordinate", on_both(crossed_ball)),
    by_black_box("the cube's noise with the radius of one dimension", on_both(short_cube)),
    by_black_box("four draws, each at the full ε", on_both(four_at_once)),
    by_black_box("noisy max with the rate read as the mean", on_both(argmax_of("exponential", 0.5), SELECTION)),
    by_black_box("noisy max with Δ for 2Δ", on_both(argmax_of("exponential", 1.0), SELECTION)),
    by_black_box("exponential mechanism with Δ for 2Δ", on_both(argmax_of("gumbel", 1.0), ([2.0, 0.0], [3.0, -1.0]))),
    by_black_box("a negative answer is drawn again", on_both(with_extra_noise)),
    by_black_box("the best of three draws for the price of one", on_both(best_of_three)),
    by_black_box("two scores, each at the full ε", on_both(two_draws_of(1.0))),
    by_black_box("one seed for both draws", on_both(one_seed_for_both)),
    by_black_box("no answer, without noise, when nothing is found", on_both(silent_when_empty)),
    by_black_box("an exact winner beside a noisy margin", on_both(exact_sign, (-0.5, 0.5))),
    by_black_box("the exact number of rows under add/remove", on_both(shared_row_count)),
    by_black_box("the raw answer with probability δ, sold as pure", on_both(raw_now_and_then)),
    by_black_box("sparse vector that tells every answer", on_both(no_noise_on_threshold)),
]


def of_library(row: MechanismRow) -> Case:
    def outputs(size: int) -> tuple[Any, Any]:
        count = min(row.draws, size)
        with simulated_noise(2):
            first, second = (row.draw(answer, 1.0, count, 1.0) for answer in row.pair)
        return first, second

    return by_black_box(f"the library's {row.name}", outputs, delta=row.delta(1.0))


CONTROLS: list[Case] = [
    *(of_library(row) for row in MECHANISMS if row.claim is not None),
    by_black_box("the right law of the ball in two dimensions", on_both(short_ball(2, 2, 1.0))),
    by_black_box("the best of three draws, each at a third of ε", on_both(
        lambda coins, answer, size: (answer + coins.laplace(0, 3, (size, 3))).max(axis=1)
    )),
    by_black_box("two scores, each at half the ε", on_both(
        lambda coins, answer, size: (answer + coins.laplace(0, 2, (size, 2))).min(axis=1)
    )),
    by_black_box("the raw answer with probability δ, sold with that δ", on_both(raw_now_and_then), delta=0.0101),
]  # fmt: skip
