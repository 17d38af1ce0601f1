"""The verdict on a pair: an arrow only where blocks are associated, one direction fits and the other does not.

Four bits a block (``bits``), one draw of noise for their four counts, tests of each claim from the noisy counts.
Proofs: ``verdict.md`` and ``mechanisms/blocks.md``.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import ClassVar, Self

import numpy as np

from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.core.progress import report_share
from dpcausal.data.remote_blocks import Parts, WorkerBlocks
from dpcausal.direction.block_counts import AT_LEAST, AT_MOST, CLEAR, MOSTLY, Counts, cube_tail, least_holding, no_noise
from dpcausal.direction.block_decisions import ADDITIVE, MODELS, Bits, bits_of_failure, of_block, random_bits
from dpcausal.direction.question import Columns, DirectionMethod, Pair, Released, block_answers
from dpcausal.direction.scores.anm import Column
from dpcausal.errors import ParameterError, Setting
from dpcausal.mechanisms.additive import cube, laplace_scale
from dpcausal.mechanisms.blocks import bit_counts
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator, add_cube
from dpcausal.privacy.sandbox import isolated_or_default
from dpcausal.regression.external import one_thread

LEAST_ROWS, LEAST_BLOCK, USUAL_BLOCK = 144, 48, 200
LEAST_BLOCKS, MOST_BLOCKS = 3, 2_000
MOST_USUAL = 501
"""Most blocks by default, unless the noise asks for more: they take seconds."""
MOST_ROWS = 10_000_000
"""Beyond, the number of blocks no longer grows."""

LEAST_COMPLETE = 20
"""A block with fewer complete rows decides nothing: random bits take its place."""

LEAST_EXPECTED = 30
"""Fewest rows that the share leaves a block, or a verdict is refused: too many blocks would be thin."""

BLOCKS_AT_ONE = 30
"""Blocks at ε = 1 that the noise asks for; 1/ε times as many at ε."""

LEAST_CHANCE = 0.8
"""Below this chance of an arrow that every block shows, what can come out is said; a plan says it before the spend."""

OUTLOOK = "the noise leaves a clear direction a chance of {arrow:.2f}: {rows}"
SOME_ROWS = "{used} of the rows were used, chosen at random: larger blocks would see smaller departures"
LEVEL = "the level applies to blocks of so many rows and of the two models, not of causation"
MISLEADS = (
    "an arrow may be wrong where one column nearly is a common cause or one direction fits by accident, where a cause "
    "is measured badly, and of counts or an effect that is measured on another scale than noise adds on"
)
MISLEADS_SCALED = (
    "an arrow may be wrong where a common cause acts by groups or by its sign, where both columns drift in time, and "
    "of an effect that is measured on another scale than noise acts on"
)
CERTAIN = "of this many blocks noise decides nothing: where that holds, a wrong arrow comes as surely as a right one"
"""Said where an arrow is held against the most that is asked of any number of blocks."""

ARROW, BACKWARD, NEITHER, BOTH, UNLINKED, UNDECIDED = (
    "{x} causes {y}", "{y} causes {x}", "model rejected", "cannot distinguish", "no association detected",
    "inconclusive",
)  # fmt: skip


def default_blocks(rows: float, epsilon: float) -> int:
    """Return the public number of blocks: n/200 up to 501, more where the noise asks for them and 48 rows are left."""
    wanted = max(min(rows / USUAL_BLOCK, MOST_USUAL), min(rows / LEAST_BLOCK, BLOCKS_AT_ONE / epsilon))
    return min(max(math.floor(wanted), LEAST_BLOCKS), MOST_BLOCKS)


def claims_of(counts: Counts, counted: tuple[int, int, int, int], names: tuple[str, str]) -> dict[str, float]:
    (x, y), (fits, _) = names, counts.bounds
    linked, favouring, misfits, misfits_back = counted
    return {
        "linked": counts.at_least(linked, AT_MOST),
        "mostly linked": counts.at_least(linked, MOSTLY),
        "not linked": counts.at_most(linked, AT_LEAST),
        f"{x} -> {y} misfits": counts.at_least(misfits, AT_MOST),
        f"{x} -> {y} fits": counts.at_most(misfits, fits),
        f"{y} -> {x} misfits": counts.at_least(misfits_back, AT_MOST),
        f"{y} -> {x} fits": counts.at_most(misfits_back, fits),
        "lean": counts.sign_pvalue(favouring),
        "clear lean": counts.clear(favouring),
    }


def arrow_pvalue(pvalues: dict[str, float], cause: str, effect: str) -> float:
    needs = "linked", f"{cause} -> {effect} fits", f"{effect} -> {cause} misfits", "clear lean"
    return max(pvalues[claim] for claim in needs)


def verdict_chances(counts: Counts, alpha: float) -> dict[str, float]:
    """Return how often each verdict comes out if every block agrees on it: from public numbers alone."""
    M, free = counts.blocks, math.inf
    # How far noise may carry a whole count.
    shows = M - least_holding(lambda count: counts.at_least(count, AT_MOST) <= alpha)
    mostly = M - least_holding(lambda count: counts.at_least(count, MOSTLY) <= alpha)
    favours = M - least_holding(lambda count: counts.clear(count) <= alpha, M // 2 + 1)
    hides = -least_holding(lambda count: counts.at_most(-count, AT_LEAST) <= alpha)
    fits = -least_holding(lambda count: counts.at_most(-count, counts.bounds[0]) <= alpha)
    return {
        "arrow": counts.chance((shows, favours, fits, shows)), "neither": counts.chance((mostly, shows, shows, free)),
        "both": counts.chance((shows, fits, fits, free)), "unlinked": counts.chance((hides, free, free, free)),
    }  # fmt: skip


@lru_cache(maxsize=64)
def enough_rows(n: int, epsilon: float, alpha: float) -> int | None:
    while n < MOST_ROWS:
        n *= 2
        counts = Counts(default_blocks(n, epsilon), cube_tail(epsilon), epsilon)
        if verdict_chances(counts, alpha)["arrow"] >= LEAST_CHANCE:
            return n
    return None


def verdict_of(pvalues: dict[str, float], favoured: str, names: tuple[str, str], alpha: float) -> str:
    x, y = names
    supported = {claim for claim, pvalue in pvalues.items() if pvalue <= alpha}
    other = y if favoured == x else x
    if arrow_pvalue(pvalues, favoured, other) <= alpha:
        return (ARROW if favoured == x else BACKWARD).format(x=x, y=y)
    if {"mostly linked", f"{x} -> {y} misfits", f"{y} -> {x} misfits"} <= supported:
        return NEITHER
    if {"linked", f"{x} -> {y} fits", f"{y} -> {x} fits"} <= supported:
        return BOTH
    return UNLINKED if "not linked" in supported else UNDECIDED


@dataclass(frozen=True, kw_only=True)
class Verdict(DirectionMethod):
    """Four noisy counts of blocks and the verdict that they carry, for everyone.

    Parameters
    ----------
    blocks : int, optional
        Public number of blocks, 3 to 2,000; by default a public rule of n and ε.
    rows_per_block : int, optional
        Public number of rows of a block, by default n/blocks and at most 200: the larger a block, the smaller the
        departures from a model that it sees.  Rows beyond are left out by a public random generator.
    model : str
        What a direction is held against: ``"additive"``, y = f(x) + e, or ``"location-scale"``, y = f(x) + s(x)·e, with
        e independent of x.  The second fits where the spread follows the cause; fewer pairs contradict it.
    share : float, optional
        A public guess of the share of rows that are used and have both columns, in (0, 1], by default that of
        ``Table.where``, else 1; the number of blocks follows it.
    """

    name: ClassVar[str] = "verdict"
    about: ClassVar[str] = "four noisy counts of blocks: association, favoured side, dependent residuals each way"
    proofs: ClassVar[tuple[str, ...]] = ("block-bits", "cube", "verdict-level")
    supports_no_privacy: ClassVar[bool] = True
    supports_missing: ClassVar[bool] = True
    allows_private_ids: ClassVar[bool] = True
    scores: ClassVar[tuple[str, ...]] = ("lsnm",)

    blocks: int | None = None
    rows_per_block: int | None = None
    model: str = ADDITIVE
    share: float | None = None

    def caveats(self, question: Pair, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        blocks, rows = self.blocks or 1, self.rows_per_block or 1
        most = "at most " if question.blocks_moved > 1 else ""  # blocks that are assigned by hash differ in size
        counts = self._counts(question, loss)
        chances = verdict_chances(counts, question.alpha)
        chance_note = ""
        if chances["arrow"] < LEAST_CHANCE and isinstance(loss, PureDP):
            enough = enough_rows(question.n, loss.epsilon / question.blocks_moved, question.alpha)
            rows_text = "no number of rows is enough" if enough is None else f"use about {enough} rows"
            chance_note = OUTLOOK.format(arrow=chances["arrow"], rows=rows_text)
        used = SOME_ROWS.format(used=most + str(blocks * rows)) if question.n >= blocks * (rows + 1) else ""
        sure = CERTAIN if counts.bounds[1] == CLEAR else ""
        misleads = MISLEADS if self.model == ADDITIVE else MISLEADS_SCALED
        return tuple(filter(None, (chance_note, used, misleads, sure, LEVEL)))

    def plan(self, question: Pair, loss: PureDP | NoPrivacy) -> Self:
        super().plan(question, loss)
        public.check_choice("model", self.model, MODELS)
        n, guess = question.n, question.expected / question.n if self.share is None else self.share
        share = public.number("share", guess, 1e-6, 1.0)
        if n < LEAST_ROWS:
            raise ParameterError(f"method {self.name!r} needs at least {LEAST_ROWS} rows, the table has {n}")
        epsilon = 1.0 if isinstance(loss, NoPrivacy) else loss.epsilon / question.blocks_moved
        usual = default_blocks(n * share, epsilon)
        most = min(n // LEAST_BLOCK, MOST_BLOCKS)
        blocks = public.whole("blocks", usual if self.blocks is None else self.blocks, LEAST_BLOCKS, most)
        size = min(n // blocks, math.floor(USUAL_BLOCK / share)) if self.rows_per_block is None else self.rows_per_block
        size = public.whole("rows_per_block", size, LEAST_BLOCK, n // blocks, f"n/blocks, {n // blocks}")
        if size * share < LEAST_EXPECTED:
            raise ParameterError(
                f"a share of {share:g} leaves {size * share:.0f} rows of a block of {size}, below {LEAST_EXPECTED}",
                argument="blocks", rule="block-size", value=blocks,
                hint=("use fewer blocks, or ", Setting("method", "majority-vote")),
            )  # fmt: skip
        return replace(self, blocks=blocks, rows_per_block=size, share=share)

    def read(self, question: Pair) -> Columns | WorkerBlocks:
        return question.read_blocks()

    def release(self, run: Run[Pair]) -> Released:
        question, size = run.question, self.rows_per_block or 1
        answers_of = partial(partial, _block_decisions, size, self.model)
        bits = block_answers(run.data, self.blocks or 1, 4, run.rng, answers_of, size).astype(np.bool_).tolist()
        query = bit_counts(bits, "associated, favouring and misfitting blocks", question.unit)
        counts: tuple[int, int, int, int] = tuple(cube(query, run.budget, run.loss).tolist())
        names, blocks = (question.first, question.second), self.blocks or 1
        pvalues, lead = claims_of(self._counts(question, run.loss), counts, names), 2 * counts[1] - blocks
        favoured, other = names if lead >= 0 else names[::-1]
        verdict = verdict_of(pvalues, favoured, names, question.alpha)
        pvalue = arrow_pvalue(pvalues, favoured, other)
        return Released(
            float(lead), "votes", p_sign=pvalues["lean"], named=pvalue <= question.alpha, verdict=verdict,
            counts=counts, pvalues=pvalues, arrow=pvalue,
        )  # fmt: skip

    def drawn(
        self, question: Pair, loss: PureDP, pool: Sequence[Bits], rng: PublicGenerator, times: int
    ) -> Counter[str]:
        """Return how often each verdict came out of blocks drawn from a pool and simulated noise: a forecast."""
        counts, names, blocks = self._counts(question, loss), (question.first, question.second), self.blocks or 1
        moved, verdicts = question.blocks_moved, Counter[str]()
        for _ in range(times):
            sums = np.asarray(pool, dtype=np.int64)[rng.integers(0, len(pool), blocks)].sum(axis=0)
            noisy = add_cube(sums, laplace_scale(moved, loss), sensitivity=moved, epsilon=loss.epsilon)
            four: tuple[int, int, int, int] = tuple(noisy.tolist())
            favoured = names[0] if 2 * four[1] >= blocks else names[1]
            verdicts[verdict_of(claims_of(counts, four, names), favoured, names, question.alpha)] += 1
        return verdicts

    def _counts(self, question: Pair, loss: PureDP | NoPrivacy) -> Counts:
        if isinstance(loss, NoPrivacy):
            return Counts(self.blocks or 1, no_noise)
        epsilon = loss.epsilon / question.blocks_moved
        return Counts(self.blocks or 1, cube_tail(epsilon), epsilon)


def _block_decisions(size: int, model: str, seeds: tuple[int, ...], private: Columns, parts: Parts) -> list[Bits]:
    decisions = []
    with one_thread():
        for block, part in parts:
            decisions.append(decisions_of_blocks(*private.of(part[:size]), seeds[block], model))
            report_share(len(decisions) / len(parts))
    return decisions


def decisions_of_blocks(x: Column, y: Column, seed: int, model: str = ADDITIVE) -> Bits:
    if len(x) < LEAST_COMPLETE:
        return random_bits(seed)
    # A failure would depend on the rows.
    return isolated_or_default(lambda: of_block(x, y, seed, model), bits_of_failure(seed))
