"""The short names of the ways to release a direction, and which of them ``"auto"`` is."""

from __future__ import annotations

from typing import Any

from dpcausal.asking import public
from dpcausal.direction.exact import Exact
from dpcausal.direction.holdout import Holdout
from dpcausal.direction.iqr_release import InverseSensitivity, ProposeTestRelease, SmoothSensitivity
from dpcausal.direction.joint import Joint
from dpcausal.direction.question import DirectionMethod
from dpcausal.direction.training import TrainingPrivacy
from dpcausal.direction.votes import Votes
from dpcausal.privacy.loss import Loss, NoPrivacy

__all__ = [
    "Holdout", "InverseSensitivity", "Joint", "ProposeTestRelease", "SmoothSensitivity", "TrainingPrivacy", "Votes",
]  # fmt: skip

ALL: tuple[type[DirectionMethod[Any]], ...] = (
    Votes, Joint, Holdout, InverseSensitivity, SmoothSensitivity, ProposeTestRelease, TrainingPrivacy,
)  # fmt: skip

METHODS: dict[str, type[DirectionMethod[Any]]] = {kind.name: kind for kind in ALL}
"""Every method by its short name."""

DEFAULTS: dict[str, type[DirectionMethod[Any]]] = {"everyone": Votes, "test": Holdout, "training": TrainingPrivacy}
"""What ``"auto"`` is, by whom it protects."""


def chosen(method: object, protect: str, loss: Loss) -> tuple[DirectionMethod[Any], tuple[str, ...]]:
    """Return the method that will answer, and a caveat if what was asked for plays no part without privacy."""
    is_auto = isinstance(method, str) and method == "auto"
    asked = DEFAULTS[protect]() if is_auto else public.chosen(method, DirectionMethod, {"auto": Votes, **METHODS})
    if not isinstance(loss, NoPrivacy):
        return asked, ()
    named = (f"protect={protect!r}" * (protect != "everyone"), f"method={asked.name!r}" * (not is_auto))
    told = " and ".join(filter(None, named))
    caveats = (f"{told} had no effect: without privacy the scores are exact",) if told else ()
    return Exact(training_share=getattr(asked, "training_share", None)), caveats
