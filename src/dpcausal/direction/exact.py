"""The direction without privacy: the exact scores of one split, or of all rows, from a ledger without privacy only."""

from __future__ import annotations

from dpcausal.direction import anm, igci
from dpcausal.direction.anm import Column
from dpcausal.direction.holdout import halves, settle_share
from dpcausal.direction.route import Plan, Released, Route
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.noise import PublicGenerator


def _release(x: Column, y: Column, plan: Plan, generator: PublicGenerator, allotment: Allotment) -> Released:
    book_exact("scores", allotment)
    if plan.score in igci.SCORES:
        forward, backward = igci.SCORES[plan.score](x, y)
    else:
        forward, backward = anm.SCORES[plan.score](halves(x, y, plan, generator))
    return Released(backward - forward, "score", None, (forward, backward))


ROUTES = (
    Route(
        method="exact",
        protect="everyone",
        scores=tuple(anm.SCORES),
        pay=lambda loss: (loss, ""),
        proofs=lambda plan: (),
        release=_release,
        settle=settle_share,
        takes=frozenset({"training_share"}),
        gives_scores="always",
    ),
    Route(
        method="exact",
        protect="everyone",
        scores=tuple(igci.SCORES),
        pay=lambda loss: (loss, ""),
        proofs=lambda plan: (),
        release=_release,
        gives_scores="always",
    ),
)
