"""Disjoint blocks, one standard score each, and the noisy sum of the scores, clipped: pure ε whatever a block computes.

    S = M^{−1/2} Σ_j clip(z_j, ±1.5) + noise

A row lies in one block, so it moves one term; bounds on x, y and z, a heavy penalty or public hyper-parameters are not
needed for privacy.  Proof: ``mechanisms/block_sum.md``, block-sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.independence.columns import Rows
from dpcausal.independence.guests import has_guests
from dpcausal.independence.law import REACH, STEPS_PER_UNIT, block_pvalue, term
from dpcausal.independence.route import Plan, Released
from dpcausal.mechanisms.additive import geometric
from dpcausal.mechanisms.block_sum import block_sum
from dpcausal.mechanisms.subsample import assign_blocks
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed
from dpcausal.privacy.unheard import contained
from dpcausal.regression.threads import one_thread

LEAST_BLOCK = 60
"""Fewest rows that a block has by the default rule, and that ``blocks=`` may leave it."""

LEAST_ROWS = 2 * LEAST_BLOCK

PROOFS = ("block-sum", "geometric")

RESAMPLES = 99
"""Permuted or resampled copies in a block: the rank's law is exact for every number."""

MOST_RESAMPLES = 9_999
MOST_BLOCKS = 5_000
"""More would add little power, and their law is held in memory."""

MOST_WORKERS = 64

DROWNED = "at this epsilon and number of blocks even data that all speak against independence can well be missed"

Score = Callable[[Rows, Plan, PublicGenerator], float]
"""A block's standard score, large or of large size against the null; it may fail or be no number."""


def default_blocks(rows: int, epsilon: float) -> int:
    """Return the public number of blocks for n rows at ε: M = min(max(8, 24/ε), n/60, 5000), rounded down.

    More blocks outvote the noise, whose size is 3/(√M ε); larger blocks learn the regressions better.

    Examples
    --------
    >>> default_blocks(10_000, 0.25), default_blocks(10_000, 2.0), default_blocks(300, 2.0)
    (96, 12, 5)
    """
    return math.floor(min(max(8.0, 24 / epsilon), rows / LEAST_BLOCK, MOST_BLOCKS))


def settle_blocks(plan: Plan, two_sided: bool = True) -> Plan:
    """Check the number of blocks, of copies and of workers, or choose them; without privacy there are none."""
    if isinstance(plan.spent, NoPrivacy):
        for name in ("blocks", "resamples", "workers"):
            if getattr(plan, name) is not None:
                whole(name, getattr(plan, name), 1, 10**9)
        return replace(plan, blocks=None, resamples=None, workers=None)
    if plan.n < LEAST_ROWS:
        raise ParameterError(f"method {plan.method!r} needs at least {LEAST_ROWS} rows, the table has {plan.n}")
    most = min(plan.n // LEAST_BLOCK, MOST_BLOCKS)
    blocks = plan.blocks if plan.blocks is not None else default_blocks(plan.n, plan.spent.epsilon)  # type: ignore[union-attr]
    whole("blocks", blocks, 2, most, f"n/{LEAST_BLOCK}, {most}")
    resamples = RESAMPLES if plan.resamples is None else plan.resamples
    whole("resamples", resamples, 19, MOST_RESAMPLES)
    workers = 1 if plan.workers is None else plan.workers
    whole("workers", workers, 1, MOST_WORKERS)
    if workers > 1 and has_guests(plan):
        raise ParameterError("workers go with the library's own regressions: a regressor or sampler runs with one")
    loss: PureDP = plan.spent  # type: ignore[assignment]
    drowned = block_pvalue(REACH * int(blocks), int(blocks), loss.epsilon, two_sided) > plan.alpha
    caveats = (*plan.caveats, DROWNED) if drowned else plan.caveats
    return replace(plan, blocks=int(blocks), resamples=int(resamples), workers=int(workers), caveats=caveats)


def whole(name: str, value: object, least: int, most: int, why: str = "") -> None:
    """Refuse what is not a whole number of the range."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        raise ParameterError(f"{name} must be a whole number between {least} and {why or most}")


def block_scores(score: Score, rows: Rows, plan: Plan, generator: PublicGenerator) -> list[float]:
    """Return each block's score, from its own rows and its own public seed; 0 where it fails or is no number.

    Nothing is said of a failure, of whatever kind: it would depend on the rows.  Workers are threads: rows stay in this
    process.
    """
    parts = assign_blocks(rows.n, plan.blocks or 1, generator)
    seeds = [int(seed) for seed in generator.integers(2**63, size=len(parts))]
    workers = plan.workers or 1

    def one(part: npt.NDArray[np.int64], seed: int) -> float:
        found = contained(lambda: float(score(rows.at(part), plan, generator_from_seed(seed))), 0.0)
        return found if math.isfinite(found) else 0.0

    with one_thread():
        if workers == 1:
            return [one(part, seed) for part, seed in zip(parts, seeds, strict=True)]
        from joblib import Parallel, delayed  # type: ignore[import-untyped]

        tasks = (delayed(one)(part, seed) for part, seed in zip(parts, seeds, strict=True))
        # Whatever joblib was told elsewhere: no other process, and no word.
        return list(Parallel(n_jobs=workers, require="sharedmem", verbose=0)(tasks))


def block_terms(score: Score, rows: Rows, plan: Plan, generator: PublicGenerator) -> list[int]:
    """Return one integer term a block."""
    return [term(found) for found in block_scores(score, rows, plan, generator)]


def release_sum(terms: Sequence[int], plan: Plan, allotment: Allotment, *, two_sided: bool) -> Released:
    """Return the noisy sum of the terms over √M, and its p-value under the exact null law."""
    loss: PureDP = plan.spent  # type: ignore[assignment]
    noisy = geometric(block_sum(terms, REACH, "sum of block scores"), allotment, loss)
    pvalue = block_pvalue(noisy, len(terms), loss.epsilon, two_sided)
    return Released(noisy / STEPS_PER_UNIT / math.sqrt(len(terms)), pvalue)
