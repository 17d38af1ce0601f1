"""Privacy for every row: a direction in each of many disjoint blocks, and a noisy count of their votes.

A row lies in one block, so it moves one vote, whatever the regression, the bandwidths and the score inside the
block do with it.  Proof: ``mechanisms/subsample.md``, block-votes.
"""

from __future__ import annotations

import math

import numpy as np

from dpcausal.direction.anm import SCORES, Column, Interval, Recipe, fit_both, split_rows
from dpcausal.direction.holdout import Released
from dpcausal.mechanisms.additive import geometric, geometric_below, laplace_scale
from dpcausal.mechanisms.subsample import assign_blocks, vote_count
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.neighbours import Unit
from dpcausal.privacy.noise import PublicGenerator

LEAST_ROWS = 30
"""Fewest rows a block may have."""

PROOFS = ("block-votes", "geometric")


def default_blocks(rows: int, epsilon: float) -> int:
    """Return the public number of blocks for n rows at ε: odd, so that the votes cannot tie."""
    blocks = math.floor(min(max(8, 6 / epsilon), rows / LEAST_ROWS))
    return max(1, blocks - (blocks + 1) % 2)


def vote(x: Column, y: Column, range_x: Interval, range_y: Interval, score: str, recipe: Recipe, seed: int) -> bool:
    """Return whether "x causes y" wins in one block; total: whatever fails in the block is a vote for yes.

    The block's coins come from its own public seed, so that its vote depends on its own rows alone.
    """
    from dpcausal.privacy.noise import generator_from_seed

    generator = generator_from_seed(seed)
    try:
        with np.errstate(all="ignore"):
            train, test = split_rows(len(x), recipe.training_share, generator)
            forward, backward = SCORES[score](fit_both(x, y, train, test, range_x, range_y, recipe, generator))
    except Exception:  # no failure of a fit may show: it would depend on the rows
        return True
    return not backward < forward


def release(
    x: Column,
    y: Column,
    range_x: Interval,
    range_y: Interval,
    score: str,
    recipe: Recipe,
    blocks: int,
    generator: PublicGenerator,
    allotment: Allotment,
    loss: PureDP,
) -> Released:
    """Return the noisy lead of "x causes y" over the blocks, in votes.

    lead = 2(count + k) − M,  P(k) ∝ e^{−ε|k|}

    where M is the public number of blocks.
    """
    parts = assign_blocks(len(x), blocks, generator)
    seeds = [int(seed) for seed in generator.integers(2**63, size=blocks)]
    votes = [
        vote(x[part], y[part], range_x, range_y, score, recipe, seed)
        for part, seed in zip(parts, seeds, strict=True)
    ]
    count = geometric(vote_count(votes, "votes for the first as cause", Unit.ROW), allotment, loss)
    lead = 2 * count - blocks
    # With M odd the first leads from (M + 1)/2 votes on: count the votes beyond the last losing or winning one.
    away = count - (blocks + 1) // 2 if lead > 0 else blocks // 2 - count
    return Released(float(lead), "votes", geometric_below(max(away, 0), laplace_scale(1, loss)))
