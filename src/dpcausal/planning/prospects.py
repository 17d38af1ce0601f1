"""The tasks that can be planned; this list stands above their prospects."""

from __future__ import annotations

from dpcausal.planning.effects import EffectProspect
from dpcausal.planning.independence import TestProspect
from dpcausal.planning.prospect import Prospect

PROSPECTS: dict[str, type[Prospect]] = {kind.task: kind for kind in (TestProspect, EffectProspect)}
"""What a plan of a task assumes, by the task's name."""
