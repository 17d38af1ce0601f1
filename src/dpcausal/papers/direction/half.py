"""A system that protects one half of the rows: a public random split, a first caveat, and a form without privacy."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from dpcausal.core.method import Run
from dpcausal.direction.methods.exact import exact_scores
from dpcausal.direction.question import Columns, DirectionMethod, Pair, Released
from dpcausal.direction.scores.anm import Residuals, fit_halves, split_rows
from dpcausal.errors import ParameterError
from dpcausal.papers.direction.scores import SCORES
from dpcausal.privacy.sensitivity import Unit

TRAINING_SHARE = 0.5
"""Default share of the rows that the regressions are fitted on."""

UNPROTECTED = {
    Unit.TEST_ROW: "the rows of the training half are NOT protected: only the test half is",
    Unit.TRAINING_ROW: "the rows of the test half are NOT protected: only the training half is",
}
"""The first caveat, by the unit."""


def checked_share(share: float | None) -> float:
    """Return the share of training rows."""
    chosen = TRAINING_SHARE if share is None else share
    if isinstance(chosen, bool) or not isinstance(chosen, (int, float)) or not 0 < chosen < 1:
        raise ParameterError("training_share must be a number above 0 and below 1")
    return float(chosen)


@dataclass(frozen=True, kw_only=True)
class OneHalf(DirectionMethod):
    """A release of the scores of a test half, from regressions on a training half, that protects one of them.

    Parameters
    ----------
    training_share : float, optional
        Share of the rows that the regressions are fitted on, in (0, 1), by default 0.5.
    """

    half: ClassVar[Unit]
    supports_no_privacy: ClassVar[bool] = True

    training_share: float | None = None

    def caveats(self, question: Pair, loss: Any) -> tuple[str, ...]:
        texts = super().caveats(question, loss)
        return texts if loss.exact else (UNPROTECTED[self.half], *texts)

    def fitted(self, private: Columns, run: Run[Pair]) -> Residuals:
        """Return the residuals of a public random test half, from regressions on the other half."""
        train, test = split_rows(len(private.x), self.training_share or TRAINING_SHARE, run.rng)
        return fit_halves(private.x, private.y, train, test, *run.question.ranges, run.rng)

    def release(self, run: Run[Pair]) -> Released:
        """Release the noisy answer; without privacy the exact scores."""
        if run.loss.exact:
            return exact_scores(run, lambda whole: SCORES[run.question.score](self.fitted(whole, run)))
        return self.noisy(run)

    @abstractmethod
    def noisy(self, run: Run[Pair]) -> Released:
        """Release the noisy answer."""
