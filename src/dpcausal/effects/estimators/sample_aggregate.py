"""``"sample-aggregate"``: the effect in each of many disjoint blocks, and the noisy mean of these.

A record lies in one block, so it moves one answer: bounds on what is adjusted for, penalties and stable learners are
not needed for privacy.  A block's answer is a least squares slope beside a series of what is adjusted for; their mean
and how they differ are released.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpcausal.arrays import Integers, Mask, Reals
from dpcausal.core.method import Run
from dpcausal.core.validate import check_choice, whole
from dpcausal.data.coding import column_codes
from dpcausal.data.records import Rows
from dpcausal.data.remote_blocks import Parts, WorkerBlocks
from dpcausal.data.schema import Bounded
from dpcausal.effects.cells.corner_counts import levels_of
from dpcausal.effects.estimators.block_effects import (
    PROOFS,
    SUM,
    TERMS,
    UNIT,
    BlockAggregate,
    Kinds,
    Slope,
    answer_of,
    block_mean,
    noise_share,
    reach_of,
    slope,
)
from dpcausal.effects.question import EffectMethod, EffectQuestion
from dpcausal.effects.result import Effect, normal_reach
from dpcausal.errors import Advice, FenceError, InfeasibleError, LossError, ParameterError, Setting
from dpcausal.mechanisms.additive import laplace_scale
from dpcausal.mechanisms.blocks import assign_blocks, blocks_moved, salt_of
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.loss import Loss, NoPrivacy, PureDP
from dpcausal.privacy.sandbox import isolated_or_default
from dpcausal.regression.external import one_thread
from dpcausal.regression.smoother import Given


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """*Private*: the rows of a question, 0 or 1, the outcome in widths of its range, what is adjusted for."""

    treated: Reals
    outcome: Reals
    given: Given
    complete: Mask
    keys: Integers | None = None

    @property
    def n(self) -> int:
        return len(self.treated)

    def at(self, rows: Integers) -> Sample:
        return Sample(self.treated[rows], self.outcome[rows], self.given.at(rows), self.complete[rows])

    @classmethod
    def of(cls, question: EffectQuestion, rows: Rows) -> Sample:
        """Return records as rows of an effect; one in another arm counts as one that has a missing value."""
        value, (control, treated), (numbers, sizes) = question.value, question.pair, _kinds(question)
        arm = column_codes(rows.values[question.treatment], question.column(question.treatment))

        def columns(names: Iterable[str], kind: Any) -> Any:
            return np.ascontiguousarray(
                np.array([rows.values[name] for name in names], dtype=kind).reshape(-1, rows.n).T
            )

        given = Given(columns(numbers, np.float64), columns(sizes, np.int64), tuple(sizes.values()))
        unit = (rows.values[question.outcome].astype(np.float64) - value.lower) / value.width
        complete = rows.included & ((arm == control) | (arm == treated))
        return cls((arm == treated).astype(np.float64), unit, given, complete, rows.keys)


ENOUGH = 220.0
"""Blocks times ε, by default at least: with fewer a window that holds no answer may be chosen."""
LEAST_BLOCKS, MOST_BLOCKS = 20, 20_000
MOST_REACH = math.ceil(reach_of(MOST_BLOCKS))
LEAST_BLOCK, ROWS_A_COLUMN = 30, 2.5
"""Fewest rows of a block by the default rule, and fewest of each column."""
NO_ESTIMATE = Advice(
    "no window holds the blocks' answers: more rows or loss would be enough, fewer terms, or ",
    Setting("overlap", True), " where treatment is rare or nearly certain for some",
)
ALONG = {
    "lines": "lines", "curves": "lines, squares and cubes", "products": "lines, squares, cubes and products of two",
}  # fmt: skip
RIGHT = "right if the outcome, or the probability of treatment, goes along {along} of what is adjusted for"
EVERYBODY = (
    "everybody's if the effect changes along {along} of what is adjusted for, otherwise nearer to that of those who "
    "are treated as often as not"
)
SIZE = (
    "the mean over {blocks} blocks of about {rows} records: what cannot be learnt from so few is a bias that all "
    "blocks share, and that the interval does not count"
)
FEW = "so few blocks at this epsilon may be missed by the window: there is no answer then"


@dataclass(frozen=True, kw_only=True)
class SampleAggregate(EffectMethod):
    """The mean of the effects in disjoint blocks, each by a series; ``PureDP``.

    Parameters
    ----------
    terms : str, optional
        The series: ``"lines"``, ``"curves"`` (with squares and cubes) or ``"products"`` (and products of two); by
        default the richest that blocks have rows for.
    overlap : bool
        Whether those alike count by how evenly they are treated, e(1 − e), instead of each as one: for treatments that
        are nearly certain for some.
    blocks : int, optional
        Public number of blocks; by default a public rule of n and ε.
    """

    name: ClassVar[str] = "sample-aggregate"
    about: ClassVar[str] = "the mean of effects in blocks, by series"
    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP,)
    proofs: ClassVar[tuple[str, ...]] = PROOFS
    terms: str | None = None
    overlap: bool = False
    blocks: int | None = None

    def plan(self, question: EffectQuestion, loss: PureDP | NoPrivacy) -> SampleAggregate:
        if question.table.weighed:
            raise ParameterError("method 'sample-aggregate' has no proof for survey weights")
        if question.estimand != "ate" or question.groups is not None:
            text = "method 'sample-aggregate' has the effect of all, with no estimand 'att' and no groups"
            hint = Setting("overlap", True), " weights those most who are treated as often as not"
            raise ParameterError(text, argument="estimand", rule="estimand", value=question.estimand, hint=hint)
        if self.terms is not None:
            check_choice("terms", self.terms, TERMS)
        numbers, sizes = _kinds(question)
        kinds = Kinds(len(numbers), tuple(sizes.values()))
        if loss.exact:
            return replace(self, terms=self._series(kinds, question.n), blocks=None)
        return self._planned(question, kinds, loss)

    def _planned(self, question: EffectQuestion, kinds: Kinds, loss: PureDP) -> SampleAggregate:
        rows, epsilon = question.table.expected, loss.epsilon / blocks_moved(question.unit)
        least = max(LEAST_BLOCKS, math.ceil(ENOUGH / epsilon))
        try:
            laplace_scale(2 * MOST_REACH * UNIT * blocks_moved(question.unit), loss.part(SUM))
        except FenceError:
            raise LossError(f"{loss} is too little here: the noise could not be drawn") from None
        if self.blocks is not None:
            blocks = whole("blocks", self.blocks, LEAST_BLOCKS, min(MOST_BLOCKS, question.n // 6), "n/6")
            return replace(self, blocks=blocks, terms=self._series(kinds, rows / blocks))
        kinds_of_terms = (self.terms,) if self.terms else TERMS[::-1]
        terms = next((one for one in kinds_of_terms if rows / least >= self._needs(kinds, one)), None)
        if terms is None or least > MOST_BLOCKS:
            need = self._needs(kinds, kinds_of_terms[-1])
            raise InfeasibleError(
                f"{rows} rows at {loss} leave {rows / least:.3g} for each of {least} blocks, {need:.3g} are needed: "
                f"{math.ceil(need * least)} rows would be enough, or, down to {LEAST_BLOCKS} blocks, "
                f"{need * least / rows:.2g} times the epsilon"
            )
        most = min(math.floor(rows / self._needs(kinds, terms)), MOST_BLOCKS)
        wanted = np.unique(np.geomspace(least, most, 200).astype(np.int64))
        lost = 1 - self._columns(kinds, terms) * wanted / rows
        noise = np.array([noise_share(int(one), epsilon) for one in wanted])
        return replace(self, terms=terms, blocks=int(wanted[np.argmin((1 + noise**2 * wanted) / lost)]))

    def _columns(self, kinds: Kinds, terms: str) -> int:
        return 1 + kinds.columns(terms) + (0 if self.overlap else kinds.modifiers(terms))

    def _needs(self, kinds: Kinds, terms: str) -> float:
        return max(LEAST_BLOCK, ROWS_A_COLUMN * self._columns(kinds, terms))

    def _series(self, kinds: Kinds, rows: float) -> str:
        return self.terms or next((one for one in TERMS[::-1] if rows >= self._needs(kinds, one)), TERMS[0])

    def caveats(self, question: EffectQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        along, rows = ALONG[self.terms or TERMS[0]], question.table.expected // (self.blocks or 1)
        caveats = [RIGHT.format(along=along)]
        if not self.overlap and question.adjust:
            caveats.append(EVERYBODY.format(along="lines" if self.terms == TERMS[0] else "lines and squares"))
        if not loss.exact and (self.blocks or 0) * loss.epsilon / blocks_moved(question.unit) < ENOUGH:
            caveats.append(FEW)
        return (*caveats, *((SIZE.format(blocks=self.blocks, rows=rows),) if self.blocks else ()))

    def answer(self, rows: Sample) -> Slope | None:
        def solve() -> Slope | None:
            complete = rows if rows.complete.all() else rows.at(np.flatnonzero(rows.complete))
            return slope(complete.treated, complete.outcome, complete.given, self.terms or TERMS[0], self.overlap)

        return isolated_or_default(solve, None)

    def read(self, question: EffectQuestion) -> Any:
        if WorkerBlocks.of(question.table.spec):
            return WorkerBlocks(question.table.spec, _names(question), Answers(self, question.without_table).made)
        return Sample.of(question, question.table.rows(_names(question)))

    def release(self, run: Run[EffectQuestion]) -> Effect:
        if run.loss.exact:
            return self._of_all_rows(run)
        private: Sample | WorkerBlocks = run.data
        question, rng = run.question, run.rng
        blocks = self.blocks or 1
        if isinstance(private, WorkerBlocks):
            each = private.each(blocks, salt_of(rng), 1, Answers(self, question.without_table))
            codes = [int(one) for one in each[:, 0]]
        else:
            parts = assign_blocks(private.n, blocks, rng, private.keys)
            codes = [one for (one,) in Answers(self, question)(private, list(enumerate(parts)))]
        answers = [None if one == NO_ANSWER else one for one in codes]
        aggregate = block_mean(answers, question.table.expected / blocks, question.unit, run.loss, run.budget)
        return self._effect(question, aggregate, blocks)

    def _of_all_rows(self, run: Run[EffectQuestion]) -> Effect:
        question = run.question
        book_exact("effect", run.budget)
        with one_thread():
            fitted = self.answer(Sample.of(question, question.table.rows(_names(question))))
        estimate, variance = (None, 0.0) if fitted is None else (fitted.effect, fitted.error**2)
        return self._effect(question, BlockAggregate(estimate, variance, 0.0), 0)

    def _effect(self, question: EffectQuestion, aggregate: BlockAggregate, blocks: int) -> Effect:
        from scipy.special import stdtrit

        width, total = question.value.width, aggregate.sampling + aggregate.noise**2
        estimate = None if aggregate.estimate is None else aggregate.estimate * width
        error, noise = (None if estimate is None else size * width for size in (math.sqrt(total), aggregate.noise))
        normal = normal_reach(question.coverage)
        reach = float(stdtrit(blocks - 1, 0.5 + question.coverage / 2)) if blocks else normal
        tails = (aggregate.noise**2 / max(total, 1e-100)) ** 2  # Cornish & Fisher, of Laplace noise
        reach += max(normal**3 - 3 * normal, 0.0) / 8 * tails
        ends = None if estimate is None or error is None else (estimate - reach * error, estimate + reach * error)
        return question.effect(
            estimand="overlap" if self.overlap else "ate", adjusted_for=question.adjust, estimate=estimate,
            interval=ends, interval_reason=NO_ESTIMATE if estimate is None else "", standard_error=error,
            noise_error=noise,
            signal_to_noise=abs(aggregate.estimate or 0.0) / aggregate.noise if aggregate.noise else math.inf,
        )  # fmt: skip


NO_ANSWER = 1 << 40
"""The integer code of a block without an answer."""


@dataclass(frozen=True)
class Answers:
    method: SampleAggregate
    question: EffectQuestion

    def made(self, rows: Rows) -> Sample:
        return Sample.of(self.question, rows)

    def __call__(self, rows: Sample, parts: Parts) -> Sequence[Sequence[int]]:
        with one_thread():
            fitted = [self.method.answer(rows.at(part)) for _, part in parts]
        return [[NO_ANSWER if one is None else answer_of(one.effect)] for one in fitted]


def _names(question: EffectQuestion) -> tuple[str, ...]:
    return (question.treatment, question.outcome, *question.adjust)


def _kinds(question: EffectQuestion) -> tuple[list[str], dict[str, int]]:
    declared = {name: question.column(name) for name in question.adjust}
    numbers = [name for name, column in declared.items() if isinstance(column, Bounded)]
    return numbers, {name: len(levels_of(column)) for name, column in declared.items() if name not in numbers}
