"""Every mechanism: its proof, its worst-case pair, its outputs for the audit, and its mutants.

The outputs come from the public mechanism itself, through gate, ledger and checks: of real noise, or of simulated
noise inside ``simulated_noise``.  ``share`` below 1 pays for a loss of ε/share where ε is claimed, which is too little
noise.
"""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from dpcausal import ZCDP, ApproxDP, PureDP, simulated_noise
from dpcausal.mechanisms.additive import cube, gaussian, geometric, l2_ball, laplace, whole_numbers
from dpcausal.mechanisms.selection import noisy_max
from dpcausal.papers.direction.anm_test_privacy import NO_SHIFT, published_log_iqr
from dpcausal.papers.statistics.iqr import IqrReach, interquartile_range, proposed_distances
from dpcausal.privacy.sensitivity import Norm
from tests.registry.rows import Case, Draw, MechanismRow, allotted, by_black_box, queried


def in_one_vector(mechanism: Any, kind: type, norm: Norm) -> Draw:
    """Return outputs of one release: the entries of a vector have independent noise of the single answer's kind."""

    def draw(answer: Any, epsilon: float, size: int, share: float) -> Any:
        loss = PureDP(epsilon / share) if norm is Norm.L1 else ZCDP((epsilon / share) ** 2 / 2)
        return mechanism(queried(np.full(size, kind(answer)), norm), allotted(loss), loss)

    return draw


def one_by_one(mechanism: Any, kind: type, norm: Norm) -> Draw:
    """Return outputs of as many releases."""

    def draw(answer: Any, epsilon: float, size: int, share: float) -> Any:
        loss = PureDP(epsilon / share)
        budget, query = allotted(loss, size), queried(np.array(answer, dtype=kind, ndmin=1), norm)
        return np.array([mechanism(query, budget, loss) for _ in range(size)])

    return draw


ball_vectors = one_by_one(l2_ball, np.float64, Norm.L2)
cube_vectors = one_by_one(cube, np.int64, Norm.LINF)


def _ball(*parts: Any) -> Any:
    return ball_vectors(*parts)[:, 0]  # type: ignore[call-overload]


def _cube(*parts: Any) -> Any:
    # All entries move up: above the larger answer, the least of them shows the whole loss.
    return cube_vectors(*parts).min(axis=1)  # type: ignore[union-attr]


def gaussian_delta(epsilon: float) -> float:
    """Return δ(ε) of N(0, σ²) against N(1, σ²) at σ = 1/ε: Φ(½ε − 1) − e^ε Φ(−½ε − 1).

    *Source*: Balle & Wang (2018), Theorem 8, with Δ/σ = ε.
    """
    below = NormalDist().cdf
    return below(epsilon / 2 - 1) - math.exp(epsilon) * below(-epsilon / 2 - 1)


def discrete_gaussian_delta(epsilon: float) -> float:
    """Return Σ_k max(0, P(k − 1) − e^ε P(k)), P(k) ∝ exp(−k²ε²/2)."""
    weights = np.exp(-((np.arange(-60, 61) * epsilon) ** 2) / 2)
    weights /= weights.sum()
    return float(np.maximum(0, weights[:-1] - math.exp(epsilon) * weights[1:]).sum())


def published_columns() -> tuple[Any, Any]:
    """Return 1,000 values with log IQR = 0 and a neighbour with log IQR just below 0."""
    x = np.array([NormalDist().inv_cdf((i + 0.5) / 1000) for i in range(1000)])
    x /= interquartile_range(x)
    neighbour = x.copy()
    neighbour[749] -= 1e-9
    return x, neighbour


def published_pair() -> tuple[Any, Any]:
    """Return (A_1, A_2, log IQR) of both: A_2 jumps from 183 to 0."""
    reaches = (IqrReach(column, -10, 10) for column in published_columns())
    one, other = ([*map(float, proposed_distances(reach, NO_SHIFT)), math.log(reach.iqr)] for reach in reaches)
    return one, other


PUBLISHED_DELTA = 1e-6


def _published(answer: Any, epsilon: float, size: int, share: float) -> Any:
    # The printed algorithm claims (3ε, δ) for a run at ε.
    loss = ApproxDP(epsilon, PUBLISHED_DELTA)
    budget, query = allotted(loss, size, unproven=True), queried(answer, Norm.LINF, share)
    return [published_log_iqr(query, budget, loss, epsilon=epsilon / 3, delta=PUBLISHED_DELTA) for _ in range(size)]


MECHANISMS = (
    MechanismRow("laplace", "additive:laplace", "laplace", (0.0, 1.0), in_one_vector(laplace, float, Norm.L1),
                 ("half the Laplace noise", "0.8 of the Laplace noise", "Laplace noise cut off at three scales")),
    MechanismRow("geometric", "additive:geometric", "geometric", (0, 1), in_one_vector(geometric, int, Norm.L1),
                 ("geometric noise at twice the ε", "0.8 of the geometric noise")),
    MechanismRow("gaussian", "additive:gaussian", "gaussian", (0.0, 1.0), in_one_vector(gaussian, float, Norm.L2),
                 ("Gaussian noise without √2", "0.8 of the Gaussian noise", "Gaussian noise sold as pure: δ ignored"),
                 delta=gaussian_delta),
    MechanismRow("discrete-gaussian", "additive:whole_numbers", "gaussian", (0, 1),
                 in_one_vector(whole_numbers, int, Norm.L2),
                 ("discrete Gaussian noise of half the variance",), delta=discrete_gaussian_delta),
    MechanismRow("l2-ball", "additive:l2_ball", "l2-ball", (0.0, 1.0), _ball,
                 ("ball noise with the radius of one dimension", "ball noise with the bound of one coordinate"),
                 draws=6_000),
    MechanismRow("cube", "additive:cube", "cube", ((0, 0, 0, 0), (1, 1, 1, 1)), _cube,
                 ("the cube's noise with the radius of one dimension", "four draws, each at the full ε"), draws=6_000),
    # (0, 0) to (1, −1): P(1) falls from ½ to ½e^{−ε}, exactly.
    MechanismRow("noisy-max", "selection:noisy_max", "noisy-max", ([0.0, 0.0], [1.0, -1.0]),
                 one_by_one(noisy_max, np.float64, Norm.LINF),
                 ("noisy max with the rate read as the mean", "noisy max with Δ for 2Δ"), draws=6_000),
    MechanismRow("propose-test-release-published", "anm_test_privacy:published_log_iqr", None, published_pair(),
                 _published, ("published second interval of the IQR",), delta=lambda epsilon: PUBLISHED_DELTA),
)  # fmt: skip

# Mutants of the noise.

Mechanism = Callable[[np.random.Generator, float, int], Any]
"""(generator, exact answer, size) → outputs; the claim is ε = 1 for answers that differ by 1."""


def on_both(mechanism: Mechanism, answers: tuple[Any, Any] = (0.0, 1.0), seed: int = 1) -> Callable[[int], Any]:
    def outputs(size: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(seed)
        return mechanism(rng, answers[0], size), mechanism(rng, answers[1], size)

    return outputs


def additive(noise: str, scale: float) -> Mechanism:
    return lambda rng, answer, size: answer + getattr(rng, noise)(0, scale, size)


def geometric_of(scale: float) -> Mechanism:
    success = -math.expm1(-1 / scale)
    return lambda rng, answer, size: answer + rng.geometric(success, size) - rng.geometric(success, size)


def discrete_gaussian_of(scale: float) -> Mechanism:
    k = np.arange(-40, 41)
    weights = np.exp(-((k / scale) ** 2) / 2)
    return lambda rng, answer, size: answer + rng.choice(k, size, p=weights / weights.sum())


def argmax_of(noise: str, scale: float) -> Mechanism:
    return lambda rng, scores, size: np.argmax(
        np.asarray(scores) + getattr(rng, noise)(scale=scale, size=(size, len(scores))), axis=1
    )


def cut_off(rng: np.random.Generator, answer: float, size: int) -> Any:
    # Laplace noise without its tails: outputs beyond them are possible on one side only.
    uniform = rng.random(size) * (1 - math.exp(-3))
    return answer - np.log1p(-uniform) * rng.choice([-1.0, 1.0], size)


def directions(rng: np.random.Generator, dimensions: int, size: int) -> Any:
    vectors = rng.normal(size=(size, dimensions))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def short_ball(dimensions: int, radius_of: int, scale: float) -> Mechanism:
    """Return the distance to the first answer's place of ball noise whose radius is Gamma(radius_of)."""

    def draw(rng: np.random.Generator, answer: float, size: int) -> Any:
        direction = directions(rng, dimensions, size)
        noisy = rng.gamma(radius_of, scale, size)[:, None] * direction
        noisy[:, 0] += answer
        return np.linalg.norm(noisy, axis=1)

    return draw


def crossed_ball(rng: np.random.Generator, answer: float, size: int) -> Any:
    # Both coordinates move by 1: the l2 bound is √2, the mutant scales to 1.  In the far cone the loss is √2.
    direction = directions(rng, 2, size)
    noisy = rng.gamma(2, 1.0, size)[:, None] * direction + answer
    aligned = (noisy - 0.5) @ np.array([1.0, 1.0]) / math.sqrt(2)
    across = np.abs((noisy - 0.5) @ np.array([1.0, -1.0]) / math.sqrt(2))
    return np.where(across < 0.5 * np.abs(aligned), aligned, 0.0)


def short_cube(rng: np.random.Generator, answer: float, size: int) -> Any:
    # A norm with P(r) ∝ e^{−r}, as in one dimension, and a direction from the cube's surface; all entries move.
    radius = rng.geometric(-math.expm1(-1.0), size) - 1
    face = rng.uniform(-1, 1, (size, 4))
    face /= np.abs(face).max(axis=1, keepdims=True)
    return np.abs(np.rint(radius[:, None] * face) + answer).max(axis=1)


def with_extra_noise(rng: np.random.Generator, answer: float, size: int) -> Any:
    # "A sum is not negative": drawn again until it is not.
    noisy = answer + rng.laplace(0, 1, size)
    while (noisy < 0).any():
        bad = noisy < 0
        noisy[bad] = answer + rng.laplace(0, 1, int(bad.sum()))
    return noisy


def best_of_three(scale: float) -> Mechanism:
    return lambda rng, answer, size: (answer + rng.laplace(0, scale, (size, 3))).max(axis=1)


def two_draws_of(scale: float) -> Mechanism:
    """Return the lesser of two noisy answers: it is large only if both are, which shows the loss of both."""
    return lambda rng, answer, size: (answer + rng.laplace(0, scale, (size, 2))).min(axis=1)


def one_seed_for_both(rng: np.random.Generator, answer: float, size: int) -> Any:
    # Scores (answer, 0): the same noise on both, so their difference is exact.
    shared = rng.laplace(0, 2, size)
    return np.round((answer + shared) - shared, 6)


def shared_row_count(rng: np.random.Generator, answer: float, size: int) -> Any:
    # Add/remove: the noisy mean over the exact number of rows, times it, is printed beside it.
    return np.full(size, float(100 + int(answer))) + 0 * rng.laplace(0, 1, size)


def raw_now_and_then(rng: np.random.Generator, answer: float, size: int) -> Any:
    # (1, 0.01)-DP, claimed as pure.
    return np.where(rng.random(size) < 0.01, answer * 1e6, answer + rng.laplace(0, 1, size))


SELECTION = ([0.0, 0.0], [1.0, -1.0])
ROOT_HALF = 1 / math.sqrt(2)
LESS_VARIANCE: dict[str, tuple[Mechanism, float]] = {
    "Gaussian noise without √2": (additive("normal", ROOT_HALF), gaussian_delta(1)),
    "0.8 of the Gaussian noise": (additive("normal", 0.8), gaussian_delta(1)),
    "discrete Gaussian noise of half the variance": (discrete_gaussian_of(ROOT_HALF), discrete_gaussian_delta(1)),
}
PURE: dict[str, Mechanism] = {
    "half the Laplace noise": additive("laplace", 0.5),
    "0.8 of the Laplace noise": additive("laplace", 0.8),
    "Laplace noise cut off at three scales": cut_off,
    "Laplace noise on a grid wider than the sensitivity":
        lambda rng, answer, size: answer + np.rint(rng.laplace(0, 1, size) / 2) * 2,
    "geometric noise at twice the ε": geometric_of(0.5),
    "0.8 of the geometric noise": geometric_of(0.8),
    "Gaussian noise sold as pure: δ ignored": additive("normal", 1.0),
    "ball noise with the radius of one dimension": short_ball(2, 1, 1.0),
    "ball noise with the bound of one coordinate": crossed_ball,
    "the cube's noise with the radius of one dimension": short_cube,
    "four draws, each at the full ε":
        lambda rng, answer, size: geometric_of(1.0)(rng, answer, (size, 4)).min(axis=1),  # type: ignore[arg-type]
    "a negative answer is drawn again": with_extra_noise,
    "the best of three draws for the price of one": best_of_three(1),
    "two scores, each at the full ε": two_draws_of(1.0),
    "one seed for both draws": one_seed_for_both,
    "no answer, without noise, when nothing is found":
        lambda rng, answer, size: [None] * size if answer == 0 else answer + rng.laplace(0, 1, size),
    "the exact number of rows under add/remove": shared_row_count,
    "the raw answer with probability δ, sold as pure": raw_now_and_then,
    # Sparse vector with noise on the queries alone, all of whose answers are released: four queries of one bit.
    "sparse vector that tells every answer":
        lambda rng, answer, size: (answer + rng.laplace(0, 2, (size, 4)) > 0.5).sum(axis=1),
}  # fmt: skip
MUTANTS = (
    *(by_black_box(name, on_both(mechanism)) for name, mechanism in PURE.items()),
    *(by_black_box(name, on_both(mechanism), delta=delta) for name, (mechanism, delta) in LESS_VARIANCE.items()),
    by_black_box("noisy max with the rate read as the mean", on_both(argmax_of("exponential", 0.5), SELECTION)),
    by_black_box("noisy max with Δ for 2Δ", on_both(argmax_of("exponential", 1.0), SELECTION)),
    # The winner is exact, only the size of the margin is noised.
    by_black_box("an exact winner beside a noisy margin", on_both(
        lambda rng, answer, size: np.abs(answer + rng.laplace(0, 1, size)) * (1 if answer > 0 else -1), (-0.5, 0.5))),
)  # fmt: skip


def of_library(row: MechanismRow) -> Case:
    """Return the control of the library's own mechanism."""

    def outputs(size: int) -> tuple[Any, Any]:
        with simulated_noise(2):
            first, second = (row.draw(answer, 1.0, min(row.draws, size), 1.0) for answer in row.pair)
        return first, second

    return by_black_box(f"the library's {row.name}", outputs, delta=row.delta(1.0))


CONTROLS = (
    by_black_box("the right law of the ball in two dimensions", on_both(short_ball(2, 2, 1.0))),
    by_black_box("the best of three draws, each at a third of ε", on_both(best_of_three(3))),
    by_black_box("two scores, each at half the ε", on_both(two_draws_of(2.0))),
    by_black_box("the raw answer with probability δ, sold with that δ", on_both(raw_now_and_then), delta=0.0101),
)
