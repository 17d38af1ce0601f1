"""Privacy for every row: a direction in each of many disjoint blocks, and a noisy count of their votes.

A row lies in one block, so it moves one vote, whatever the regression, the bandwidths and the score inside the
block do with it.  Proof: ``mechanisms/blocks.md``, block-votes.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np

from dpcausal.core.method import Run
from dpcausal.data.remote_blocks import Parts, WorkerBlocks
from dpcausal.direction.block_counts import Counts, geometric_tail
from dpcausal.direction.question import Columns, DirectionMethod, Pair, Released, block_answers
from dpcausal.direction.scores import NAMES, of_block
from dpcausal.direction.scores.anm import LEAST_ROWS as LEAST_BLOCK
from dpcausal.direction.scores.anm import Column
from dpcausal.errors import ParameterError
from dpcausal.mechanisms.additive import geometric
from dpcausal.mechanisms.blocks import vote_count
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.sandbox import isolated_or_default
from dpcausal.statistics.hsic import LAPLACIAN

LEAST_ROWS = 40
"""Fewest rows a block may have by the default rule."""

USUAL_ROWS = 75
"""Rows of a block that suffice the hsic score where there are many."""

MOST_BLOCKS = 501


def default_blocks(rows: int, epsilon: float, score: str) -> int:
    """Return the public number of blocks for n rows at ε: odd, so that the votes cannot tie.

    M = min(9 √(n/(1000 ε)), 24/ε, n/40, 501), rounded down to an odd number, at least 1;
    of hsic the first two are max(9 √(n/(1000 ε)), n/75) and 80/ε

    More blocks outvote the noise, whose size is 1/ε votes; larger blocks vote better, by hsic hardly beyond 75 rows.
    """
    wanted, most = 9 * math.sqrt(rows / (1000 * epsilon)), 24 / epsilon
    if score == "hsic":
        wanted, most = max(wanted, rows / USUAL_ROWS), 80 / epsilon
    blocks = max(1, math.floor(min(wanted, most, rows / LEAST_ROWS, MOST_BLOCKS)))
    return blocks - (blocks + 1) % 2


def vote(x: Column, y: Column, score: str, seed: int) -> bool:
    """Return whether "x causes y" wins in one block, at random on a tie or a failure, by the block's public seed."""
    if len(x) < LEAST_BLOCK:
        return seed % 2 == 0
    # A failure would depend on the rows.
    forward, backward = isolated_or_default(lambda: of_block(score, x, y, seed), (0.0, 0.0))
    if bool(np.all(x == x[0])) or bool(np.all(y == y[0])):
        forward = backward = 0.0  # a constant column would win every time: it depends on nothing
    if forward < backward or backward < forward:
        return bool(forward < backward)
    return seed % 2 == 0  # equal, or not a number


def _block_votes(score: str, seeds: tuple[int, ...], private: Columns, parts: Parts) -> list[list[bool]]:
    return [[vote(*private.of(part), score, seeds[block])] for block, part in parts]


@dataclass(frozen=True, kw_only=True)
class MajorityVote(DirectionMethod):
    """A forced choice: a noisy count of the votes of disjoint blocks, for everyone; any score.

    It favours one way for every pair, associated or not, and names a cause where fair coin flips are seldom so uneven.

    Parameters
    ----------
    blocks : int, optional
        Public number of blocks, odd; by default a public rule of n and ε.
    """

    name: ClassVar[str] = "majority-vote"
    about: ClassVar[str] = "a noisy count of the votes of blocks"
    proofs: ClassVar[tuple[str, ...]] = ("block-votes", "geometric")
    supports_missing: ClassVar[bool] = True
    allows_private_ids: ClassVar[bool] = True
    scores: ClassVar[tuple[str, ...]] = NAMES

    blocks: int | None = None

    def plan(self, question: Pair, loss: PureDP) -> Self:
        super().plan(question, loss)
        usual = default_blocks(question.expected, loss.epsilon / question.blocks_moved, question.score)
        blocks = usual if self.blocks is None else self.blocks
        most = question.n // LEAST_BLOCK
        if isinstance(blocks, bool) or not isinstance(blocks, int) or not 1 <= blocks <= most or blocks % 2 == 0:
            raise ParameterError(f"blocks must be an odd number between 1 and n/{LEAST_BLOCK} = {most}")
        if question.score == "hsic" and -(-question.n // blocks) > LAPLACIAN.most_records:
            raise ParameterError(f"the hsic score takes at most {LAPLACIAN.most_records} rows in a block")
        return replace(self, blocks=blocks)

    def read(self, question: Pair) -> Columns | WorkerBlocks:
        return question.read_blocks()

    def release(self, run: Run[Pair]) -> Released:
        """Return the noisy lead of "x causes y" over the blocks, in votes.

        lead = 2(count + k) − M,  P(k) ∝ e^{−ε|k|}

        where M is the public number of blocks, odd; e^{−ε|k|/2} for persons of private ids.
        """
        question, blocks = run.question, self.blocks or 1
        # All rows are assigned; one with a missing value is left out inside its block.
        answers = block_answers(run.data, blocks, 1, run.rng, partial(partial, _block_votes, question.score))
        votes = answers[:, 0].astype(np.bool_).tolist()
        count = geometric(vote_count(votes, "votes for the first as cause", question.unit), run.budget, run.loss)
        pvalue = Counts(blocks, geometric_tail(run.loss.epsilon / question.blocks_moved)).sign_pvalue(count)
        return Released(float(2 * count - blocks), "votes", p_sign=pvalue, named=pvalue <= question.alpha, arrow=pvalue)
