"""The direction without privacy: the exact scores of one split, or of all rows, from a ledger without privacy only."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dpcausal.core.method import Run
from dpcausal.direction.question import Columns, DirectionMethod, Pair, Released
from dpcausal.direction.scores import NAMES, anm, of_block
from dpcausal.errors import ParameterError
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.sandbox import isolated_or_default
from dpcausal.statistics.hsic import LAPLACIAN

TRAINING_SHARE = 0.5
"""Share of the rows that the regressions are fitted on."""


def exact_scores(run: Run[Pair], scores: Callable[[Columns], tuple[float, float]]) -> Released:
    book_exact("scores", run.budget)
    columns: Columns = run.data
    forward, backward = scores(Columns(*columns.complete(), columns.is_complete[columns.is_complete]))
    return Released(backward - forward, "score", (forward, backward))


@dataclass(frozen=True, kw_only=True)
class Exact(DirectionMethod):
    name: ClassVar[str] = "exact"
    about: ClassVar[str] = "the exact scores, without privacy"
    supports_no_privacy: ClassVar[bool] = True
    supports_missing: ClassVar[bool] = True
    scores: ClassVar[tuple[str, ...]] = NAMES

    def plan(self, question: Pair, loss: Any) -> Self:
        most = LAPLACIAN.most_records
        if question.score == "hsic" and anm.half_sizes(question.n, TRAINING_SHARE)[1] > most:
            raise ParameterError(f"the hsic score takes at most {most} rows in a half without privacy")
        return super().plan(question, loss)

    def release(self, run: Run[Pair]) -> Released:
        score, rng = run.question.score, run.rng

        def of_half(whole: Columns) -> tuple[float, float]:
            train, test = anm.split_rows(len(whole.x), TRAINING_SHARE, rng)
            return anm.hsic_scores(anm.fit_halves(whole.x, whole.y, train, test, *run.question.ranges, rng))

        def of_all(whole: Columns) -> tuple[float, float]:
            seed = int(rng.integers(2**63))
            pair = isolated_or_default(lambda: of_block(score, whole.x, whole.y, seed), (0.0, 0.0))
            forward, backward = (value if math.isfinite(value) else 0.0 for value in pair)
            return forward, backward

        return exact_scores(run, of_half if score == "hsic" else of_all)
