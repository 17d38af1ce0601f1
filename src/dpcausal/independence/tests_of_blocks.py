"""The test of tests: how many blocks reject by themselves, counted with noise.  A baseline of the paper."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np

from dpcausal.errors import ParameterError
from dpcausal.independence.blocks import LEAST_BLOCK, LEAST_ROWS, MOST_BLOCKS, block_scores, whole
from dpcausal.independence.columns import Rows, width_of
from dpcausal.independence.law import LEAST_PVALUE, geometric_tail
from dpcausal.independence.ranks import studentised
from dpcausal.independence.residuals import checked_regression, residuals
from dpcausal.independence.route import Plan, Released, Route
from dpcausal.mechanisms.additive import geometric
from dpcausal.mechanisms.subsample import vote_count
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import pure_part
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.noise import PublicGenerator

BLOCKS = 10
"""As in the paper."""

LEVEL = 0.05
"""Level of each block's own test."""


def count_pvalue(noisy: int, blocks: int, epsilon: float) -> float:
    """Return P(B + N ≥ noisy), B binomial(blocks, LEVEL), P(N = k) ∝ e^{−ε|k|}.

    Examples
    --------
    >>> round(count_pvalue(0, 10, 50.0), 9), round(count_pvalue(2, 10, 50.0), 4)
    (1.0, 0.0861)
    """
    from scipy.stats import binom

    counts = np.arange(blocks + 1)
    law = binom.pmf(counts, blocks, LEVEL)
    p = float(law @ geometric_tail(noisy - counts.astype(np.float64), 1 / epsilon))
    return min(1.0, max(LEAST_PVALUE, p))


def _score(rows: Rows, plan: Plan, generator: PublicGenerator) -> float:
    found = residuals(rows.given, np.hstack([rows.x, rows.y]), plan.regression, generator).residuals
    return abs(float(studentised(found[:, :1], found[:, 1:])[0, 0]))


def _release(rows: Rows, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    loss: PureDP = plan.spent  # type: ignore[assignment]
    blocks, critical = plan.blocks or 0, NormalDist().inv_cdf(1 - LEVEL / 2)
    votes = [found > critical for found in block_scores(_score, rows, plan, generator)]
    noisy = geometric(vote_count(votes, "blocks that reject"), allotment, loss)
    return Released(float(noisy), count_pvalue(noisy, blocks, loss.epsilon))


def _settle(plan: Plan) -> Plan:
    if width_of(plan.schema, plan.x) * width_of(plan.schema, plan.y) != 1:
        raise ParameterError("method 'test-of-tests' takes one column x and one y, of numbers or of two levels")
    if plan.n < LEAST_ROWS:
        raise ParameterError(f"method 'test-of-tests' needs at least {LEAST_ROWS} rows, the table has {plan.n}")
    most = min(plan.n // LEAST_BLOCK, MOST_BLOCKS)
    blocks = min(BLOCKS, most) if plan.blocks is None else plan.blocks
    whole("blocks", blocks, 2, most, f"n/{LEAST_BLOCK}, {most}")
    plan = replace(plan, blocks=int(blocks))
    return replace(plan, regression=checked_regression(plan))


ROUTES = (
    Route(
        method="test-of-tests",
        pay=lambda loss: pure_part(loss, "test-of-tests"),
        proofs=lambda plan: ("block-votes", "geometric"),
        release=_release,
        settle=_settle,
        takes=frozenset({"blocks", "regression"}),
        tests="a noisy count of blocks that reject",
    ),
)
