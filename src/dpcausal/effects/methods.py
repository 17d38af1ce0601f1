"""The short names of the methods; this list stands above them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpcausal.asking import public
from dpcausal.data.schema import Bounded
from dpcausal.effects.assigned import Assigned
from dpcausal.effects.blocks import Blocks
from dpcausal.effects.coin import Coin
from dpcausal.effects.noisy_cells import levels_of
from dpcausal.effects.question import Contrast, EffectMethod
from dpcausal.effects.scored import Orthogonal
from dpcausal.effects.stratified import Stratified
from dpcausal.privacy.loss import ApproxDP, Loss, PureDP

__all__ = ["Assigned", "Blocks", "Coin", "Orthogonal", "Stratified"]

METHODS: dict[str, type[EffectMethod[Any]]] = {
    kind.name: kind for kind in (Stratified, Orthogonal, Blocks, Assigned, Coin)
}
"""Every method by its short name, beside ``"auto"``."""


def method_of(named: object, question: Contrast, loss: Loss) -> EffectMethod[Any]:
    """Return the method object that a short name or an object stands for."""
    known: dict[str, Callable[[], EffectMethod[Any]]] = {"auto": lambda: automatic(question, loss), **METHODS}
    found: EffectMethod[Any] = public.chosen(named, EffectMethod, known)
    return found


def automatic(question: Contrast, loss: Loss) -> EffectMethod[Any]:
    """Return the method for a schema and a kind of loss, both public: moments where numbers without cuts are adjusted.

    Cells where the loss pays for no Gaussian noise, or the question is one that moments do not answer.
    """
    gaussian = loss.exact_delta > 0 if isinstance(loss, ApproxDP) else not isinstance(loss, PureDP)
    columns = [question.column(name) for name in question.strata]
    numbers = any(isinstance(column, Bounded) and column.cuts is None for column in columns)
    two_arms = len(levels_of(question.column(question.treatment))) == 2
    return Orthogonal() if gaussian and numbers and two_arms and question.estimand == "ate" else Stratified()
