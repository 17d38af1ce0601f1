"""The short names of the tests; this list stands above the methods, and nothing that a method needs stands here."""

from __future__ import annotations

from typing import Any

from dpcausal.independence.automatic import Auto
from dpcausal.independence.counts import NoisyCounts
from dpcausal.independence.crt import Cpt, Crt
from dpcausal.independence.crt_global import CrtDecision
from dpcausal.independence.gcm import Gcm, WeightedGcm
from dpcausal.independence.hsic import PermutedHsic
from dpcausal.independence.neighbours import Neighbours
from dpcausal.independence.question import IndependenceTest
from dpcausal.independence.rank_tests import Kendall
from dpcausal.independence.strata import StrataCovariance

__all__ = [
    "Cpt", "Crt", "CrtDecision", "Gcm", "Kendall", "Neighbours", "NoisyCounts", "PermutedHsic", "StrataCovariance",
    "WeightedGcm",
]  # fmt: skip

ALL: tuple[type[IndependenceTest[Any]], ...] = (
    Neighbours, StrataCovariance, NoisyCounts, Kendall, Gcm, WeightedGcm, Crt, Cpt, PermutedHsic, CrtDecision,
)  # fmt: skip

METHODS: dict[str, type[IndependenceTest[Any]]] = {"auto": Auto, **{kind.name: kind for kind in ALL}}
"""Every method by its short name."""
