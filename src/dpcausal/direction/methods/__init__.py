"""The short names of the ways to release a direction, and which of them ``"auto"`` is."""

from __future__ import annotations

from dpcausal.core import validate as public
from dpcausal.direction.holdout import Holdout
from dpcausal.direction.methods.exact import Exact
from dpcausal.direction.methods.verdict import LEAST_ROWS, Verdict
from dpcausal.direction.methods.votes import MajorityVote
from dpcausal.direction.question import DirectionMethod, Pair
from dpcausal.direction.training import TrainingPrivacy
from dpcausal.privacy.loss import Loss

__all__ = ["Holdout", "MajorityVote", "TrainingPrivacy", "Verdict"]

ALL: tuple[type[DirectionMethod], ...] = Verdict, MajorityVote, Holdout, TrainingPrivacy

METHODS: dict[str, type[DirectionMethod]] = {kind.name: kind for kind in ALL}
"""Every method by its short name."""

HALVES: dict[str, type[DirectionMethod]] = {"test": Holdout, "training": TrainingPrivacy}
"""What ``"auto"`` is where a half is protected."""


def usual(question: Pair) -> DirectionMethod:
    """Return what ``"auto"`` is: a verdict for everyone by its score, votes by another or of few rows."""
    if question.protect in HALVES:
        return HALVES[question.protect]()
    return Verdict() if question.score in Verdict.scores and question.n >= LEAST_ROWS else MajorityVote()


def chosen(method: object, question: Pair, loss: Loss) -> tuple[DirectionMethod, tuple[str, ...]]:
    """Return the method that will answer, and a caveat if what was asked for plays no part without privacy."""
    is_auto = isinstance(method, str) and method == "auto"
    asked = usual(question) if is_auto else public.chosen(method, DirectionMethod, {"auto": Verdict, **METHODS})
    if not loss.exact or isinstance(asked, Verdict):
        return asked, ()
    protect = question.protect
    named = (f"protect={protect!r}" * (protect != "everyone"), f"method={asked.name!r}" * (not is_auto))
    told = " and ".join(filter(None, named))
    caveats = (f"{told} had no effect: without privacy the scores are exact",) if told else ()
    return Exact(training_share=getattr(asked, "training_share", None)), caveats
