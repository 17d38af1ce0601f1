"""The direction without privacy: the exact scores of one split, or of all rows, from a ledger without privacy only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from dpcausal.core.run_context import Run
from dpcausal.direction.holdout import Halving
from dpcausal.direction.question import Columns, Pair, Released
from dpcausal.direction.scores import NAMES, anm, of_block
from dpcausal.errors import ParameterError
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.loss import Loss, NoPrivacy, PureDP
from dpcausal.privacy.sandbox import isolated_or_default


@dataclass(frozen=True, kw_only=True)
class Exact(Halving):
    """The scores themselves: what every question gets with ``NoPrivacy()``, whomever it would protect."""

    name: ClassVar[str] = "exact"
    about: ClassVar[str] = "the exact scores, without privacy"
    losses: ClassVar[tuple[type[Loss], ...]] = ()
    supports_no_privacy: ClassVar[bool] = True
    leaves_out: ClassVar[bool] = True
    scores: ClassVar[tuple[str, ...]] = NAMES

    def plan(self, question: Pair, spent: PureDP | NoPrivacy) -> Self:
        if question.score not in anm.SCORES:
            if self.training_share is not None:
                raise ParameterError("training_share goes with the scores of residuals: this one fits no regression")
            return self
        return self.settled_share(question)

    def release(self, run: Run[Pair]) -> Released:
        private, question = run.data, run.question
        book_exact("scores", run.budget)
        x, y = private.complete()
        if question.score in anm.SCORES:
            whole = Columns(x, y, private.kept[private.kept])
            forward, backward = anm.SCORES[question.score](self.halves(whole, question, run.rng))
        else:
            seed = int(run.rng.integers(2**63))
            forward, backward = isolated_or_default(lambda: of_block(question.score, x, y, seed), (0.0, 0.0))
            forward, backward = (value if math.isfinite(value) else 0.0 for value in (forward, backward))
        return Released(backward - forward, "score", (forward, backward))
