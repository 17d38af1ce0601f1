"""PrivToT, the test of tests: how many blocks reject by themselves, counted with noise.

Kazan, Shi, Groce & Bray (2023), as the baseline of Kalemaj, Kasiviswanathan & Ramdas (2024), with the generalised
covariance measure inside.  Erratum: none.
"""

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.core.method import Run
from dpcausal.errors import ParameterError
from dpcausal.independence.methods.block_test import LEAST_BLOCK, block_scores, planned_blocks
from dpcausal.independence.null_distributions import LEAST_PVALUE, geometric_tail, studentised_covariance
from dpcausal.independence.question import IndependenceQuestion, IndependenceTest, Released, Sample
from dpcausal.independence.residuals import checked_regression, residuals
from dpcausal.mechanisms.additive import geometric
from dpcausal.mechanisms.blocks import vote_count
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator

BLOCKS = 10  # as in the paper
LEVEL = 0.05  # of each block's own test


def count_pvalue(noisy: int, blocks: int, epsilon: float) -> float:
    """Return P(B + N ≥ noisy), B binomial(blocks, LEVEL), P(N = k) ∝ e^{−ε|k|}."""
    from scipy.stats import binom

    counts = np.arange(blocks + 1)
    law = binom.pmf(counts, blocks, LEVEL)
    p = float(law @ geometric_tail(noisy - counts.astype(np.float64), 1 / epsilon))
    return min(1.0, max(LEAST_PVALUE, p))


@dataclass(frozen=True, kw_only=True)
class PrivToT(IndependenceTest):
    """A noisy count of blocks that reject; ``blocks`` (by default 10) and ``regression`` as in ``Gcm``."""

    name: ClassVar[str] = "PrivToT"
    about: ClassVar[str] = "a noisy count of blocks that reject"
    proofs: ClassVar[tuple[str, ...]] = ("block-votes", "geometric")

    blocks: int | None = None
    regression: Any = None

    def score(self, rows: Sample, question: IndependenceQuestion, rng: PublicGenerator) -> float:
        """Return the size of a block's studentised covariance."""
        left = residuals(rows.given, (rows.x, rows.y), self.regression, rng).residuals
        return abs(float(studentised_covariance(left[:, :1], left[:, 1:])[0, 0]))

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Self:
        if question.pairs != 1:
            raise ParameterError(f"method {self.name!r} takes one column x and one y, of numbers or of two levels")
        blocks = planned_blocks(self.name, self.blocks, min(BLOCKS, question.n // LEAST_BLOCK), question.n)
        return replace(self, blocks=blocks, regression=checked_regression(self.regression, question, blocks))

    def release(self, run: Run[IndependenceQuestion]) -> Released:
        critical = NormalDist().inv_cdf(1 - LEVEL / 2)
        votes = [score > critical for score in block_scores(self, run.data, run.question, run.rng)]
        noisy = geometric(vote_count(votes, "blocks that reject"), run.budget, run.loss)
        return Released(float(noisy), count_pvalue(noisy, self.blocks or 0, run.loss.epsilon))
