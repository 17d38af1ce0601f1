"""The tasks that can be planned; this list stands above their prospects."""

from __future__ import annotations

from dpcausal.planning.directions import DirectionProspect
from dpcausal.planning.effects import DidProspect, EffectProspect, MomentsProspect
from dpcausal.planning.graphs import GraphProspect
from dpcausal.planning.panels import PanelProspect
from dpcausal.planning.task_plan import Prospect
from dpcausal.planning.tests import TestProspect

ALL: tuple[type[Prospect], ...] = (
    TestProspect, DirectionProspect, GraphProspect, EffectProspect, MomentsProspect, DidProspect, PanelProspect,
)  # fmt: skip

PROSPECTS: dict[str, type[Prospect]] = {kind.task: kind for kind in ALL}
"""What a plan of a task assumes, by the task's name."""
