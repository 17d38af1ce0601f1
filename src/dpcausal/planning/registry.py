"""The tasks that can be planned."""

from __future__ import annotations

from dpcausal.planning.directions import DirectionPlan
from dpcausal.planning.effects import DidPlan, EffectPlan, MomentsPlan
from dpcausal.planning.graphs import GraphPlan
from dpcausal.planning.panels import PanelPlan
from dpcausal.planning.task_plan import TaskPlan
from dpcausal.planning.tests import TestPlan

ALL: tuple[type[TaskPlan], ...] = (
    TestPlan, DirectionPlan, GraphPlan, EffectPlan, MomentsPlan, DidPlan, PanelPlan,
)  # fmt: skip

TASK_PLANS: dict[str, type[TaskPlan]] = {kind.task: kind for kind in ALL}
"""What a plan of a task assumes, by the task's name."""
