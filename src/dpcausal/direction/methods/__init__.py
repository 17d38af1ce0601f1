"""The short names of the ways to release a direction, and which of them ``"auto"`` is."""

from dpcausal.core import validate as public
from dpcausal.direction.methods.exact import Exact
from dpcausal.direction.methods.verdict import LEAST_ROWS, Verdict
from dpcausal.direction.methods.votes import MajorityVote
from dpcausal.direction.question import DirectionMethod, Pair
from dpcausal.errors import Advice, Setting
from dpcausal.privacy.loss import Loss

__all__ = ["MajorityVote", "Verdict"]

METHODS: dict[str, type[DirectionMethod]] = {kind.name: kind for kind in (Verdict, MajorityVote)}
"""Every method by its short name."""


def resolve_method(method: object) -> DirectionMethod | None:
    is_auto = isinstance(method, str) and method == "auto"
    return None if is_auto else public.choose_method(method, DirectionMethod, {"auto": Verdict, **METHODS})


def choose_method(named: DirectionMethod | None, question: Pair, loss: Loss) -> tuple[DirectionMethod, tuple[str, ...]]:
    has_verdict = question.score in Verdict.scores and question.n >= LEAST_ROWS
    method = named or (Verdict() if has_verdict else MajorityVote())
    if not loss.exact or method.supports_no_privacy:
        return method, ()
    caveat = Advice(Setting("method", method.name), " had no effect: without privacy the scores are exact")
    return Exact(), (caveat,) if named else ()
