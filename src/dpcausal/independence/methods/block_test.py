"""Disjoint blocks, one standard score each, and the noisy sum of the scores, clipped: pure ε whatever a block computes.

    S = M^{−1/2} Σ_j clip(z_j, ±c) + noise

A row lies in one block, so it moves one term; bounds on x, y and z, a heavy penalty or public hyper-parameters are not
needed for privacy.  Proof: ``mechanisms/blocks.md``, block-sum.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

from dpcausal.arrays import Integers
from dpcausal.core.method import Run
from dpcausal.core.validate import whole
from dpcausal.data.remote_blocks import Parts, WorkerBlocks
from dpcausal.errors import ParameterError
from dpcausal.independence.null_distributions import STEPS_PER_UNIT, block_pvalue, block_term, reach_of
from dpcausal.independence.question import SIGNED, IndependenceQuestion, IndependenceTest, Released, Sample
from dpcausal.independence.residuals import checked_regression
from dpcausal.mechanisms.additive import geometric
from dpcausal.mechanisms.blocks import assign_blocks, block_sum, salt_of
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed
from dpcausal.privacy.sandbox import isolated_or_default
from dpcausal.regression.external import one_thread, uses_external_code

LEAST_BLOCK = 60
"""Fewest rows that ``blocks=`` may leave a block, and that one has by the default rule where nothing is given."""

LEAST_LEARNING, MOST_LEARNING = 125, 2_000
"""Fewest rows of a block by the default rule where a regression is to be learnt, and about the most."""

LEAST_ROWS = 2 * LEAST_BLOCK

LEAST_COMPLETE = 20
"""Fewest rows with all columns that a block is scored by."""

LEAST_VARYING = 20
"""Fewest rows of a block off the most frequent value of x, or of y, where others are given.

Of fewer on both sides neither regression is learnt, and what is left of both goes together."""

RESAMPLES = 99
"""Permuted or resampled copies in a block: the rank's distribution is exact for every number."""

MOST_RESAMPLES = 9_999
MOST_BLOCKS = 20_000
"""More would add little power, and their distribution is held in memory."""

MOST_WORKERS = 64

BELOW_NOISE = "at this epsilon and number of blocks even data that all speak against independence can well be missed"


def default_blocks(rows: int, epsilon: float, learns: bool = True, least: int = LEAST_LEARNING) -> int:
    """Return M = min(max(8, 24/ε, n/2000), n/125, 20000), at least 2; min(max(8, 24/ε), n/60, 20000) of nothing given.
    More blocks outvote the noise, whose size is 2c/(√M ε), c = 0.75; larger ones learn the regressions better."""
    wanted = max(8.0, 24 / epsilon)
    if not learns:
        return math.floor(min(wanted, rows / LEAST_BLOCK, MOST_BLOCKS))
    return max(2, math.floor(min(max(wanted, rows / MOST_LEARNING), rows / least, MOST_BLOCKS)))


@dataclass(frozen=True, kw_only=True)
class BlockTest(IndependenceTest):
    """A test that scores disjoint blocks.

    Parameters
    ----------
    blocks : int, optional
        Public number of blocks; by default a public rule of n and ε.
    regression : str or regressor, optional
        Inside blocks: ``"likely"`` (default) or ``"additive"`` kernel ridge, or a scikit-learn regressor.
    resamples : int, optional
        Permuted or resampled copies in a block, by default 99.
    workers : int, optional
        Threads over the blocks, with the library's own regressions.
    """

    proofs: ClassVar[tuple[str, ...]] = ("block-sum", "geometric")
    supports_missing: ClassVar[bool] = True
    supports_no_privacy: ClassVar[bool] = True
    allows_private_ids: ClassVar[bool] = True
    adds_signs: ClassVar[bool] = True

    blocks: int | None = None
    regression: Any = None
    resamples: int | None = None
    workers: int | None = None

    @abstractmethod
    def score(self, rows: Sample, question: IndependenceQuestion, rng: PublicGenerator) -> float:
        """Return a block's standard score, large or of large size against the null; it may fail or be no number."""

    @abstractmethod
    def exact(self, rows: Sample, question: IndependenceQuestion, rng: PublicGenerator) -> Released:
        """Return the answer without privacy, from all complete rows."""

    def two_sided(self, question: IndependenceQuestion) -> bool:
        """Return whether sums far below 0 speak against the null, too."""
        return True

    @property
    def least_rows(self) -> int:
        """Fewest rows of a block by the default rule where a regression is to be learnt."""
        return LEAST_LEARNING

    @property
    def external_code(self) -> bool:
        return uses_external_code(self.regression)

    def caveats(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        signed = (SIGNED,) if self.adds_signs else ()
        if loss.exact or self.blocks is None:
            return signed
        all_of_them, epsilon = reach_of(self.blocks) * self.blocks, loss.epsilon / question.blocks_moved
        farthest = block_pvalue(all_of_them, self.blocks, epsilon, self.two_sided(question))
        return (*signed, *((BELOW_NOISE,) if farthest > question.alpha else ()))

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Self:
        if loss.exact:
            for name in ("blocks", "resamples", "workers"):
                whole(name, 1 if getattr(self, name) is None else getattr(self, name), 1, 10**9)
            regression = checked_regression(self.regression, question, None)
            return replace(self, blocks=None, resamples=None, workers=None, regression=regression)
        epsilon = loss.epsilon / question.blocks_moved
        default = default_blocks(question.table.expected, epsilon, bool(question.given), self.least_rows)
        blocks = planned_blocks(self.name, self.blocks, max(2, default), question.n)
        resamples = whole("resamples", RESAMPLES if self.resamples is None else self.resamples, 19, MOST_RESAMPLES)
        workers = whole("workers", 1 if self.workers is None else self.workers, 1, MOST_WORKERS)
        if workers > 1 and self.external_code:
            raise ParameterError("workers go with the library's own regressions: a regressor or sampler runs with one")
        regression = checked_regression(self.regression, question, blocks)
        return replace(self, blocks=blocks, resamples=resamples, workers=workers, regression=regression)

    def read(self, question: IndependenceQuestion) -> Sample | WorkerBlocks:
        if not WorkerBlocks.of(question.table.spec):
            return question.read()
        return WorkerBlocks(question.table.spec, question.names, question.without_table.sample)

    def release(self, run: Run[IndependenceQuestion]) -> Released:
        private: Sample | WorkerBlocks = run.data
        question = run.question
        if isinstance(private, Sample) and run.loss.exact:
            book_exact(f"{self.name} of all rows", run.budget)
            complete = private.complete()
            many = complete.n >= LEAST_COMPLETE
            if many and all((side != side[0]).any() for side in (complete.x, complete.y)):
                return self.exact(complete, question, run.rng)
            return Released(0.0, 1.0)
        reach = reach_of(self.blocks or 1)
        if isinstance(private, WorkerBlocks):
            salt, seeds = salt_of(run.rng), tuple(run.rng.integers(2**63, size=self.blocks or 1).tolist())
            each = partial(_block_terms, self, question.without_table, seeds)
            terms = [int(term) for term in private.each(len(seeds), salt, 1, each)[:, 0]]
        else:
            terms = [block_term(score, reach) for score in block_scores(self, private, question, run.rng)]
        noisy = geometric(block_sum(terms, reach, "sum of block scores", question.unit), run.budget, run.loss)
        pvalue = block_pvalue(noisy, len(terms), run.loss.epsilon / question.blocks_moved, self.two_sided(question))
        return Released(noisy / STEPS_PER_UNIT / math.sqrt(len(terms)), pvalue)


def planned_blocks(method: str, blocks: int | None, default: int, rows: int) -> int:
    if rows < LEAST_ROWS:
        raise ParameterError(f"method {method!r} needs at least {LEAST_ROWS} rows, the table has {rows}")
    most = min(rows // LEAST_BLOCK, MOST_BLOCKS)
    return whole("blocks", default if blocks is None else blocks, 2, most, f"n/{LEAST_BLOCK}, {most}")


def block_scores(scorer: Any, rows: Sample, question: IndependenceQuestion, generator: PublicGenerator) -> list[float]:
    """Return each block's score, from its own rows and its own public seed; 0 where it fails or is no number. Rows with
    a missing value are dropped inside their block.  A block of fewer than ``LEAST_COMPLETE``, or in which x and y both
    hardly vary, gets a standard normal draw, the score's null distribution."""
    parts = assign_blocks(rows.n, scorer.blocks or 1, generator, rows.keys)
    seeds = [int(seed) for seed in generator.integers(2**63, size=len(parts))]
    return _block_scores(scorer, question, rows, parts, seeds)


def _block_terms(
    scorer: BlockTest, question: IndependenceQuestion, seeds: tuple[int, ...], rows: Sample, parts: Parts
) -> list[list[int]]:
    scores = _block_scores(scorer, question, rows, [part for _, part in parts], [seeds[block] for block, _ in parts])
    return [[block_term(score, reach_of(len(seeds)))] for score in scores]


def _block_scores(
    scorer: Any, question: IndependenceQuestion, rows: Sample, parts: Sequence[Integers], seeds: Sequence[int]
) -> list[float]:
    workers = getattr(scorer, "workers", None) or 1

    def one(part: Integers, seed: int) -> float:
        block, rng = rows.at(part).complete(), generator_from_seed(seed)
        if block.n < LEAST_COMPLETE or (not block.given.empty and block.varying < LEAST_VARYING):
            return float(rng.standard_normal())
        score = isolated_or_default(lambda: float(scorer.score(block, question, rng)), 0.0)
        return score if math.isfinite(score) else 0.0

    with one_thread():
        if workers == 1:
            return [one(part, seed) for part, seed in zip(parts, seeds, strict=True)]
        from joblib import Parallel, delayed

        tasks = (delayed(one)(part, seed) for part, seed in zip(parts, seeds, strict=True))
        # Overrides joblib's settings elsewhere: no other process, no output.
        return list(Parallel(n_jobs=workers, require="sharedmem", verbose=0)(tasks))
