"""Exact audits: the loss of a pair from the laws of both outputs, and whether real outputs follow the law.

``least_epsilon`` is computed, not sampled: a claim that it passes is wrong.  ``departs`` looks at outputs of the
mechanism itself.  Outputs of the law are flagged with probability at most ``alarm``, for every number of them: half of
it is Markov's inequality for the likelihood ratio of other scales to the declared one, whose mean is 1, and half the
bound of Dvoretzky, Kiefer, Wolfowitz and Massart on the distribution function.  ``departs_evenly`` gives the mechanism
evenly spread noise in place of random noise: no false alarm, and 2,000 calls where random noise needs 80,000.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from scipy.special import logsumexp

from dpcausal.mechanisms.gate import recording_gate
from dpcausal.privacy import noise
from dpcausal.privacy.budget import Event
from tests.registry.laws import Law, Reals, geometric_below
from tests.registry.rows import Draw

Cuts = Callable[[Event], Reals]
Outputs = Sequence[Any] | Reals

MOST_EPSILON = 100.0

OTHER_SCALES = {0.95: 0.5, 0.5: 0.1, 0.8: 0.1, 0.9: 0.1, 1.05: 0.1, 1.25: 0.1}
"""Shares of the declared noise that the likelihood ratio asks about, and their weights, which sum to 1."""


def least_epsilon(p: Reals, q: Reals, delta: float = 0.0) -> float:
    """Return the least ε with P(S) ≤ e^ε Q(S) + δ and Q(S) ≤ e^ε P(S) + δ for every set S of cells; ∞ if there is none.

    Σ max(0, p − e^ε q) ≤ δ, and the same with p and q exchanged
    """
    if delta == 0:
        seen = (p > 0) | (q > 0)
        with np.errstate(divide="ignore"):
            return float(np.abs(np.log(p[seen]) - np.log(q[seen])).max())
    if _needed(p, q, MOST_EPSILON) > delta:
        return math.inf
    low, high = 0.0, MOST_EPSILON
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _needed(p, q, middle) <= delta else (middle, high)
    return high


def _needed(p: Reals, q: Reals, epsilon: float) -> float:
    """Return the least δ at ε."""
    return max(float(np.maximum(0, a - math.exp(epsilon) * b).sum()) for a, b in ((p, q), (q, p)))


@dataclass(frozen=True)
class Fit:
    """How outputs of the mechanism itself are compared with the law, at an answer that shows the scale.

    ``draw`` returns a number of independent outputs of one answer, at a claim of 1; ``law`` their law, of (event, cuts,
    share of the noise that is drawn); ``draws`` are enough to see 5 % too little noise, unless another fit of the row
    does, and of no account for even noise.
    """

    draw: Callable[[int], Outputs]
    law: Callable[[Event, Reals, float], Reals]
    cuts: Cuts
    draws: int = 0


@dataclass(frozen=True)
class ExactRow:
    """A mechanism whose output has a law in closed form, named as its ``MechanismRow`` or claim.

    ``pairs`` are the answers of neighbours to look at, for ε; ``fits`` compare with outputs of random noise, ``even``
    with those of even noise, for mechanisms that draw one number a call, or two; ``attained`` says between what shares
    of ε the worst pair's exact loss lies: not up to 1 only where the slack is derived.
    """

    name: str
    draw: Draw
    law: Law
    cuts: Cuts
    pairs: Callable[[float], Iterable[tuple[Any, Any]]]
    fits: tuple[Fit, ...]
    even: tuple[Fit, ...] = ()
    delta: Callable[[float], float] = lambda epsilon: 0.0
    attained: Callable[[float], tuple[float, float]] = lambda epsilon: (0.97, 1.0)


@dataclass(frozen=True)
class Worst:
    """The largest exact loss, at which pair, of how many."""

    epsilon: float
    pair: tuple[Any, Any]
    pairs: int


def declared(draw: Callable[[], object]) -> Event:
    """Return what one release declares at the gate."""
    with recording_gate() as recording:
        draw()
    (passage,) = recording.passages
    return passage.event


def worst_pair(row: ExactRow, epsilon: float, share: float = 1.0) -> Worst:
    """Return the worst of a row's pairs by the law at the noise that the mechanism declares."""
    pairs, delta = list(row.pairs(epsilon)), row.delta(epsilon)
    event = declared(lambda: row.draw(pairs[0][0], epsilon, 1, share))
    cuts, worst = row.cuts(event), Worst(-1.0, pairs[0], len(pairs))
    for pair in pairs:
        p, q = (row.law(answer, event, cuts, 1.0) for answer in pair)
        if delta == 0 or _needed(p, q, max(0.0, worst.epsilon)) > delta or worst.epsilon < 0:
            loss = least_epsilon(p, q, delta)
            if loss > worst.epsilon:
                worst = Worst(loss, pair, len(pairs))
    return worst


def keeps(row: ExactRow, epsilon: float, share: float = 1.0) -> tuple[bool, float]:
    """Return whether the worst pair's loss lies where the row says, and its share of ε."""
    found = worst_pair(row, epsilon, share).epsilon / epsilon
    low, high = row.attained(epsilon)
    return low <= found <= high * (1 + 1e-9), found


def cells(outputs: Outputs, cuts: Reals) -> Reals:
    """Return how many outputs fall into each cell; the first counts ``None``."""
    numbers = np.array([output for output in outputs if output is not None], dtype=np.float64)
    counts = np.bincount(np.searchsorted(cuts, numbers) + 1, minlength=len(cuts) + 2)
    counts[0] = len(outputs) - len(numbers)
    return counts.astype(np.float64)


def departs(fit: Fit, alarm: float) -> bool:
    """Return whether outputs of the mechanism do not follow the law at the noise that it declares."""
    event = declared(lambda: fit.draw(1))
    cuts = fit.cuts(event)
    counts, right = cells(fit.draw(fit.draws), cuts), fit.law(event, cuts, 1.0)
    seen = counts > 0
    if not (right[seen] > 0).all():
        return True
    with np.errstate(divide="ignore"):
        ratios = [
            float((counts[seen] * (np.log(fit.law(event, cuts, share)[seen]) - np.log(right[seen]))).sum())
            for share in OTHER_SCALES
        ]
    evidence = logsumexp(ratios, b=list(OTHER_SCALES.values()))
    distance = np.abs(np.cumsum(counts) / counts.sum() - np.cumsum(right)).max()
    return bool(evidence >= math.log(2 / alarm) or distance > math.sqrt(math.log(4 / alarm) / (2 * counts.sum())))


def departs_evenly(fit: Fit, share: float = 1.0) -> bool:
    """Return whether outputs of even noise, or a share of it, do not follow the law that the mechanism declares."""
    event = declared(lambda: fit.draw(1))
    cuts = fit.cuts(event)
    with even_noise(), less_noise(share):
        counts = cells(fit.draw(EVEN_DRAWS), cuts)
    distance = np.abs(np.cumsum(counts) / EVEN_DRAWS - np.cumsum(fit.law(event, cuts, 1.0))).max()
    return bool(distance > EVEN_ERROR)


EVEN_DRAWS, EVEN_ERROR = 2_000, 0.004
"""What evenly spread noise is off by, at most; 5 % too little noise is off by .0095 and more at the fits' answers."""


@contextmanager
def even_noise() -> Iterator[None]:
    """Let Laplace and geometric noise be quantiles of its law, at multiples of the golden ratio modulo 1.

    They are spread evenly over (0, 1), and so is each second of them.
    """
    places = ((number * GOLDEN) % 1 for number in itertools.count(1))

    def laplace(values: Reals, scale: float, **claims: Any) -> Reals:
        u = np.reshape([next(places) for _ in range(values.size)], values.shape)
        return np.asarray(values - scale * np.sign(u - 0.5) * np.log1p(-2 * np.abs(u - 0.5)))

    def geometric(values: Any, scale: float, **claims: Any) -> Any:
        reach = math.ceil(40 * scale)
        below = geometric_below(np.arange(-reach, reach) + 0.5, scale)
        u = np.reshape([next(places) for _ in range(values.size)], values.shape)
        return values + np.searchsorted(below, u) - reach

    with mock.patch.object(noise, "add_laplace", laplace), mock.patch.object(noise, "add_geometric", geometric):
        yield


GOLDEN = (math.sqrt(5) - 1) / 2


@contextmanager
def less_noise(share: float) -> Iterator[None]:
    """Let every sampler draw at a share of the scale that it is asked for, which is what the ledger and gate see."""

    def short(name: str) -> Callable[..., Any]:
        sampler = getattr(noise, name)

        def drawn(values: Any, scale: float, **claims: Any) -> Any:
            for key, power in (("epsilon", 1), ("rho", 2)):
                if key in claims:
                    claims[key] *= share**-power * (1 + 1e-9)  # so that the fence lets it pass
            return sampler(values, scale * share, **claims)

        return drawn

    with ExitStack() as stack:
        for name in SAMPLERS:
            stack.enter_context(mock.patch.object(noise, name, short(name)))
        yield


SAMPLERS = (
    "add_laplace", "add_geometric", "add_gaussian", "add_discrete_gaussian", "add_l2_ball", "noisy_argmax",
)  # fmt: skip


@contextmanager
def less_declared(share: float) -> Iterator[None]:
    """Let every mechanism declare, and draw at, a share of the scale that its loss asks for."""
    check = noise.check_scale
    with mock.patch.object(noise, "check_scale", lambda scale: check(scale) * share):
        yield
