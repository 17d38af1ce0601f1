"""Every mechanism: its proof, its worst-case pair, its outputs for the audit, its mutants.

The outputs come from the public mechanism itself, through gate, ledger and fence: of real noise, or of simulated
noise inside ``simulated_noise``.  ``share`` below 1 pays for a loss of ε/share where ε is claimed, which is too little
noise.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from dpcausal.mechanisms.additive import cube, gaussian, geometric, l2_ball, laplace
from dpcausal.mechanisms.selection import exponential, noisy_max
from dpcausal.papers.direction.anm_test_privacy_iqr import NO_SHIFT, published_log_iqr
from dpcausal.papers.mechanisms.iqr_intervals import proposed_distances
from dpcausal.papers.statistics.iqr import IqrReach, interquartile_range
from dpcausal.privacy.ledger import CallBudget, Ledger
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity
from tests.registry import discovery, panels, training_claims
from tests.registry.iqr import IQR_MECHANISMS
from tests.registry.rows import MechanismRow


def granted(loss: Loss, times: int = 1, unproven: bool = False) -> CallBudget:
    """Return an allotment of ``times`` × loss from a ledger in memory."""
    whole: Loss
    if isinstance(loss, ZCDP):
        whole, budget = ZCDP(loss.exact_rho * times), ZCDP(loss.exact_rho * times + 1)
    elif isinstance(loss, ApproxDP):
        whole = budget = ApproxDP(loss.exact_epsilon * times, loss.exact_delta * times)
    else:
        exact = loss.exact_epsilon * times  # type: ignore[union-attr]
        whole, budget = PureDP(exact), PureDP(exact + 1)  # a budget is rounded down to units, a cost up
    return Ledger.in_memory(budget, accept_large_epsilon=True).charge(whole, task="audit", unproven=unproven)


def asked(answer: Any, bound: float | int, norm: Norm, claim: str = "laplace") -> Query:
    return Query(np.asarray(answer), Sensitivity(bound, norm, Relation.REPLACE_ONE, claim), "audited")


def _laplace(answer: Any, epsilon: float, size: int, share: float) -> Any:
    # One vector: its entries have independent noise of the law of a single answer.
    loss = PureDP(epsilon / share)
    return laplace(asked(np.full(size, float(answer)), 1, Norm.L1), granted(loss), loss)


def _geometric(answer: Any, epsilon: float, size: int, share: float) -> Any:
    loss = PureDP(epsilon / share)
    return geometric(asked(np.full(size, int(answer)), 1, Norm.L1), granted(loss), loss)


def _gaussian(answer: Any, epsilon: float, size: int, share: float) -> Any:
    loss = ZCDP((epsilon / share) ** 2 / 2)
    return gaussian(asked(np.full(size, float(answer)), 1, Norm.L2), granted(loss), loss)


def _discrete_gaussian(answer: Any, epsilon: float, size: int, share: float) -> Any:
    loss = ZCDP((epsilon / share) ** 2 / 2)
    return gaussian(asked(np.full(size, int(answer)), 1, Norm.L2), granted(loss), loss)


def ball_vectors(answer: Any, epsilon: float, size: int, share: float) -> Any:
    """Return noisy vectors, of as many dimensions as the answer has."""
    loss = PureDP(epsilon / share)
    allotment, query = granted(loss, size), asked(np.array(answer, dtype=np.float64, ndmin=1), 1, Norm.L2)
    return np.array([l2_ball(query, allotment, loss) for _ in range(size)])


def _ball(answer: Any, epsilon: float, size: int, share: float) -> Any:
    return ball_vectors(answer, epsilon, size, share)[:, 0]


def cube_vectors(answer: Any, epsilon: float, size: int, share: float) -> Any:
    """Return noisy integers, as many as the answer has."""
    loss = PureDP(epsilon / share)
    allotment, query = granted(loss, size), asked(np.array(answer, dtype=np.int64), 1, Norm.LINF)
    return np.array([cube(query, allotment, loss) for _ in range(size)])


def _cube(answer: Any, epsilon: float, size: int, share: float) -> Any:
    # All entries move up: above the larger answer, the least of them shows the whole loss.
    return cube_vectors(answer, epsilon, size, share).min(axis=1)


def _noisy_max(answer: Any, epsilon: float, size: int, share: float) -> Any:
    loss = PureDP(epsilon / share)
    allotment, query = granted(loss, size), asked(np.asarray(answer, dtype=np.float64), 1, Norm.LINF)
    return np.array([noisy_max(query, allotment, loss) for _ in range(size)])


def _exponential(answer: Any, epsilon: float, size: int, share: float) -> Any:
    loss = PureDP(epsilon / share)
    allotment, query = granted(loss, size), asked(np.asarray(answer, dtype=np.float64), 1, Norm.LINF)
    return np.array([exponential(query, allotment, loss) for _ in range(size)])


def gaussian_delta(epsilon: float) -> float:
    """Return δ(ε) of N(0, σ²) against N(1, σ²) at σ = 1/ε: Φ(½ε − 1) − e^ε Φ(−½ε − 1).

    *Source*: Balle & Wang (2018), Theorem 8, with Δ/σ = ε.
    """
    below = NormalDist().cdf
    return below(epsilon / 2 - 1) - math.exp(epsilon) * below(-epsilon / 2 - 1)


def discrete_gaussian_delta(epsilon: float) -> float:
    """Return Σ_k max(0, P(k − 1) − e^ε P(k)), P(k) ∝ exp(−k²ε²/2)."""
    k = np.arange(-60, 61)
    law = np.exp(-((k * epsilon) ** 2) / 2)
    law /= law.sum()
    return float(np.maximum(0, law[:-1] - math.exp(epsilon) * law[1:]).sum())


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
    allotment, query = granted(loss, size, unproven=True), asked(answer, share, Norm.LINF)
    return [published_log_iqr(query, allotment, loss, epsilon=epsilon / 3, delta=PUBLISHED_DELTA) for _ in range(size)]


MECHANISMS = (
    MechanismRow(
        "laplace", "additive:laplace", "laplace", (0.0, 1.0), _laplace,
        ("half the Laplace noise", "0.8 of the Laplace noise", "Laplace noise cut off at three scales"),
    ),
    MechanismRow(
        "geometric", "additive:geometric", "geometric", (0, 1), _geometric,
        ("geometric noise at twice the ε", "0.8 of the geometric noise"),
    ),
    MechanismRow(
        "gaussian", "additive:gaussian", "gaussian", (0.0, 1.0), _gaussian,
        ("Gaussian noise without √2", "0.8 of the Gaussian noise", "Gaussian noise sold as pure: δ ignored"),
        delta=gaussian_delta,
    ),
    MechanismRow(
        "discrete-gaussian", "additive:gaussian", "gaussian", (0, 1), _discrete_gaussian,
        ("discrete Gaussian noise of half the variance",), delta=discrete_gaussian_delta,
    ),
    MechanismRow(
        "l2-ball", "additive:l2_ball", "l2-ball", (0.0, 1.0), _ball,
        ("ball noise with the radius of one dimension", "ball noise with the bound of one coordinate"), draws=6_000,
    ),
    MechanismRow(
        "cube", "additive:cube", "cube", ((0, 0, 0, 0), (1, 1, 1, 1)), _cube,
        ("the cube's noise with the radius of one dimension", "four draws, each at the full ε"), draws=6_000,
    ),
    # (0, 0) to (1, −1): P(1) falls from ½ to ½e^{−ε}, exactly.
    MechanismRow(
        "noisy-max", "selection:noisy_max", "noisy-max", ([0.0, 0.0], [1.0, -1.0]), _noisy_max,
        ("noisy max with the rate read as the mean", "noisy max with Δ for 2Δ"), draws=6_000,
    ),
    # The loss ε is a limit of ever rarer answers: see its exact row.
    MechanismRow(
        "exponential", "selection:exponential", "exponential", ([4.0, 0.0], [5.0, -1.0]), _exponential,
        ("exponential mechanism with Δ for 2Δ",), draws=6_000,
    ),
    MechanismRow(
        "propose-test-release-published", "anm_test_privacy_iqr:published_log_iqr", None, published_pair(), _published,
        ("published second interval of the IQR",), delta=lambda epsilon: PUBLISHED_DELTA,
    ),
    *IQR_MECHANISMS,
    *discovery.MECHANISMS,
    *panels.MECHANISMS,
    training_claims.STABLE_VALUE,
)  # fmt: skip
