"""The short names of the methods; this list stands above them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpcausal.asking import public
from dpcausal.effects.question import Contrast, EffectMethod
from dpcausal.effects.stratified import Stratified
from dpcausal.privacy.loss import Loss

__all__ = ["Stratified"]

METHODS: dict[str, type[EffectMethod[Any]]] = {kind.name: kind for kind in (Stratified,)}
"""Every method by its short name, beside ``"auto"``."""


def method_of(named: object, question: Contrast, loss: Loss) -> EffectMethod[Any]:
    """Return the method object that a short name or an object stands for."""
    known: dict[str, Callable[[], EffectMethod[Any]]] = {"auto": Stratified, **METHODS}
    found: EffectMethod[Any] = public.chosen(named, EffectMethod, known)
    return found
