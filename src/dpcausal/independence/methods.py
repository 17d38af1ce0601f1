"""The short names of the tests; this list stands above the methods, and nothing that a method needs stands here."""

from __future__ import annotations

from typing import Any

from dpcausal.independence.crt import Cpt, Crt
from dpcausal.independence.crt_global import CrtDecision
from dpcausal.independence.gcm import Gcm, WeightedGcm
from dpcausal.independence.hsic import PermutedHsic
from dpcausal.independence.question import IndependenceTest
from dpcausal.independence.rank_tests import Kendall, Spearman
from dpcausal.independence.scalar import ScalarGcm, SmoothGcm

__all__ = [
    "Cpt", "Crt", "CrtDecision", "Gcm", "Kendall", "PermutedHsic", "ScalarGcm", "SmoothGcm", "Spearman", "WeightedGcm",
]  # fmt: skip

ALL: tuple[type[IndependenceTest[Any]], ...] = (
    Gcm, WeightedGcm, ScalarGcm, SmoothGcm, Crt, CrtDecision, Cpt, Kendall, Spearman, PermutedHsic,
)  # fmt: skip

METHODS: dict[str, type[IndependenceTest[Any]]] = {"auto": Gcm, **{kind.name: kind for kind in ALL}}
"""Every method by its short name."""
