"""The tasks that can be planned; this list stands above their prospects."""

from __future__ import annotations

from dpcausal.planning.direction import DirectionProspect
from dpcausal.planning.discovery import GraphProspect
from dpcausal.planning.effects import DidProspect, EffectProspect, MomentsProspect
from dpcausal.planning.independence import TestProspect
from dpcausal.planning.panels import PanelProspect
from dpcausal.planning.prospect import Prospect

ALL: tuple[type[Prospect], ...] = (
    TestProspect, DirectionProspect, GraphProspect, EffectProspect, MomentsProspect, DidProspect, PanelProspect,
)  # fmt: skip

PROSPECTS: dict[str, type[Prospect]] = {kind.task: kind for kind in ALL}
"""What a plan of a task assumes, by the task's name."""
