"""The output laws of the mechanisms, each from its claim alone: the probability of every cell of a partition.

No code of a mechanism is used, only what a release declares at the gate: its scale and its loss.  An output is
``None``, the first cell, or a number, which falls between two of the ``cuts``; whole numbers are cut at halves.
A loss that cells show is one of the outputs too, whatever the partition, so what is computed here bounds ε from below;
the only error is that of floats, a relative 1e-12 or so in each cell.

``drawn`` is the share of the declared noise that is drawn: 1, or less in a mechanism that is broken on purpose.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc, gammaincc, ndtr

from dpcausal.privacy.budget import Event

Reals = npt.NDArray[np.float64]
Below = Callable[[Reals, float], Reals]
"""(x, scale) → P(z ≤ x) of noise that is symmetric about 0."""

Law = Callable[[Any, Event, Reals, float], Reals]
"""(exact answer, event at the gate, cuts, drawn) → the cells' probabilities: of ``None``, then of the numbers."""


def halves(size: int) -> Reals:
    """Return the cuts between 0, 1, …, size − 1."""
    return np.arange(size - 1) + 0.5


def laplace_below(x: Reals, scale: float) -> Reals:
    tail = np.exp(-np.abs(x) / scale) / 2
    return np.where(x > 0, 1 - tail, tail)


def geometric_below(x: Reals, scale: float) -> Reals:
    """P(k) ∝ e^{−|k|/scale}, at halves: the tail from k on is a geometric series."""
    ratio = math.exp(-1 / scale)
    tail = np.exp(-np.ceil(np.abs(x)) / scale) / (1 + ratio)
    return np.where(x > 0, 1 - tail, tail)


def gaussian_below(x: Reals, scale: float) -> Reals:
    return np.asarray(ndtr(x / scale))


def discrete_gaussian_below(x: Reals, scale: float) -> Reals:
    """P(k) ∝ e^{−k²/(2 scale²)}, at halves: the sum over all k that a float tells from 0."""
    reach = math.ceil(39 * scale)
    weights = np.exp(-((np.arange(-reach, reach + 1) / scale) ** 2) / 2)
    sums = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    return np.asarray(sums[np.clip(np.floor(x) + reach + 1, 0, 2 * reach + 1).astype(int)])


def ball_axis_below(x: Reals, scale: float) -> Reals:
    """The first coordinate of the ball's noise in three dimensions.

    Its density at x, ∫_{|x|}^∞ 2πr e^{−r/b} dr / (8πb³) = (|x| + b) e^{−|x|/b}/(4b²), has the tail
    (|x| + 2b) e^{−|x|/b}/(4b).
    """
    far = np.abs(x) / scale
    tail = np.where(np.isinf(far), 0.0, (np.where(np.isinf(far), 0.0, far) + 2) * np.exp(-far) / 4)
    return np.where(x > 0, 1 - tail, tail)


def cube_least(answer: Any, event: Event, cuts: Reals, drawn: float = 1.0) -> Reals:
    """The least entry of the cube's noise on four equal answers, cut at halves.

    Of the vectors with norm r, (r + 1 − t)⁴ − (r − t)⁴ have all entries ≥ t > −r, and all of them for t ≤ −r.
    """
    scale, (place, *_) = drawn * event.scale, answer
    r = np.arange(math.ceil(60 * scale) + 200.0)
    weights = np.exp(-r / scale)
    all_in = (2 * r + 1) ** 4 - np.where(r > 0, 2 * r - 1, 0) ** 4

    def above(t: float) -> float:
        some = np.where(r >= t, (r + 1 - t) ** 4 - np.where(r > t, r - t, 0) ** 4, 0.0)
        return float((weights * np.where(t <= -r, all_in, some)).sum() / (weights * all_in).sum())

    tails = np.array([1.0, *(above(math.ceil(cut - place)) for cut in cuts), 0.0])
    return with_none(0.0, tails[:-1] - tails[1:])


def cube_norm(answer: Any, event: Event, cuts: Reals, drawn: float = 1.0) -> Reals:
    """The norm of the cube's noise in four dimensions: (2r + 1)⁴ − (2r − 1)⁴ vectors have the norm r."""
    r = np.arange(len(cuts) + 1.0)
    weights = ((2 * r + 1) ** 4 - np.where(r > 0, 2 * r - 1, 0) ** 4) * np.exp(-r / (drawn * event.scale))
    return with_none(0.0, weights / weights.sum())


def spread(below: Below, scale: float, cuts: Reals) -> Reals:
    """Return the probabilities of the cells between cuts, each from its nearer tail, so that far cells keep digits."""
    edges = np.concatenate([[-np.inf], cuts, [np.inf]])
    left, right = below(edges, scale), below(-edges, scale)
    return np.asarray(np.where(edges[:-1] >= 0, right[:-1] - right[1:], left[1:] - left[:-1]))


def with_none(none: float, numbers: Reals) -> Reals:
    return np.concatenate([[none], numbers])


def additive(below: Below) -> Law:
    """Return the law of an answer plus one symmetric variable."""

    def law(answer: Any, event: Event, cuts: Reals, drawn: float = 1.0) -> Reals:
        return with_none(0.0, spread(below, drawn * event.scale, cuts - float(answer)))

    return law


def ball_radius(dimensions: int) -> Law:
    """Return the law of the length of the ball's noise, Gamma(d, scale), wherever the answer is."""

    def law(answer: Any, event: Event, cuts: Reals, drawn: float = 1.0) -> Reals:
        edges = np.concatenate([[0.0], cuts, [np.inf]]) / (drawn * event.scale)
        left, right = gammainc(dimensions, edges), gammaincc(dimensions, edges)
        return with_none(0.0, np.where(edges[:-1] >= dimensions, right[:-1] - right[1:], left[1:] - left[:-1]))

    return law


def noisy_max(answer: Any, event: Event, cuts: Reals, drawn: float = 1.0) -> Reals:
    """P(i) = ∫_0^1 q_i Π_{j≠i} (1 − q_j u) du, q_j = e^{−(max − s_j)/b}: i has passed the top by x, u = e^{−x/b}.

    The integrand is a polynomial of degree k − 1, for which ⌈k/2⌉ nodes are exact.
    """
    scores = np.asarray(answer, dtype=np.float64)
    q = np.exp(-(scores.max() - scores) / (drawn * event.scale))
    nodes, weights = np.polynomial.legendre.leggauss(math.ceil(len(q) / 2))
    loses = 1 - np.outer(q, (nodes + 1) / 2)
    return with_none(0.0, q * ((weights / 2) * loses.prod(axis=0) / loses).sum(axis=1))


def sparse_vector(answer: Any, event: Event, cuts: Reals, drawn: float = 1.0, bar_drawn: float | None = None) -> Reals:
    """The first i with f_i + ν_i ≥ ρ, by a sum over ρ; the bars left out have probability below e^−60."""
    bar, each = event.scale * (drawn if bar_drawn is None else bar_drawn), 2 * event.scale * drawn
    reach = math.ceil(60 * max(bar, each))
    bars = np.arange(-reach, reach + 1)
    ratio = math.exp(-1 / bar)
    still = (1 - ratio) / (1 + ratio) * np.exp(-np.abs(bars) / bar)
    chances = []
    for value in np.asarray(answer).tolist():
        passes = geometric_below(value - bars + 0.5, each)  # P(ν ≥ ρ − f) = P(ν ≤ f − ρ)
        chances.append(float((still * passes).sum()))
        still = still * (1 - passes)
    return np.array([float(still.sum()), *chances])


def propose_test_release(answer: Any, event: Event, cuts: Reals, drawn: float = 1.0) -> Reals:
    """None if no A_j + Lap(b) passes 1 + b·log(1/δ), else v + Lap(b)."""
    *distances, value = (float(part) for part in answer)
    threshold = 1 - event.scale * math.log(event.loss.delta)  # type: ignore[union-attr]
    stays = laplace_below(threshold - np.array(distances), drawn * event.scale)
    leaves = laplace_below(np.array(distances) - threshold, drawn * event.scale)
    none = float(stays.prod())
    # 1 − Π(1 − p_j) without cancellation where all p_j are small.
    some = float(leaves.sum() - (leaves.prod() if len(leaves) == 2 else 0.0))
    return with_none(none, some * spread(laplace_below, drawn * event.scale, cuts - value))


def stable_value(answer: Any, event: Event, cuts: Reals, drawn: float = 1.0) -> Reals:
    """The value if A + k ≥ 1 + ⌈log(1/δ)/ε⌉, P(k) ∝ e^{−|k|/scale}."""
    distance, value = (float(part) for part in answer)
    threshold = 1 + math.ceil(math.log(1 / event.loss.delta) / event.loss.epsilon)  # type: ignore[union-attr]
    gap = np.array([distance - threshold + 0.5])
    numbers = np.zeros(len(cuts) + 1)
    numbers[np.searchsorted(cuts, value)] = geometric_below(gap, drawn * event.scale)[0]
    return with_none(float(geometric_below(-gap, drawn * event.scale)[0]), numbers)


def objective_perturbation(quadratic: float) -> Law:
    """Return the law of the minimiser for one donor x in one period, the answer being (x, y).

    The slope of (y − xf)² + (M/2)f² + bf at c in (−1, 1) is not negative just if the minimiser over [−1, 1] is at most
    c; it is b plus c(M + 2x²) − 2xy, b ~ N(0, β²).  The solver's own noise is left out.
    """

    def law(answer: Any, event: Event, cuts: Reals, drawn: float = 1.0) -> Reals:
        x, y = (float(part) for part in answer)
        slopes = cuts * (quadratic + 2 * x * x) - 2 * x * y
        return with_none(0.0, spread(gaussian_below, drawn * event.scale, slopes))

    return law


def noisy_rank(rank: int, noise: Reals) -> Law:
    """Return the law of "T_0 + z_0 is above the k-th largest T_j + z_j", 1 or 0, for known noise z_1, …, z_m."""

    def law(answer: Any, event: Event, cuts: Reals, drawn: float = 1.0) -> Reals:
        own, copies = float(answer[0]), np.asarray(answer[1:]) + noise
        gap = np.array([own - np.partition(copies, -rank)[-rank]])
        scale = drawn * event.scale
        return np.array([0.0, float(laplace_below(-gap, scale)[0]), float(laplace_below(gap, scale)[0])])

    return law
