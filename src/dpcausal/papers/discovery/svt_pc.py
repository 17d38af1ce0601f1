"""SVT-PC: PC whose tests pass the sparse vector alone, without the examination of Priv-PC.

Wang, Pang & Song (2020), Algorithm 5.  Errata: those of Priv-PC; as evaluated the threshold is refreshed with Gaussian
noise, whose loss is unbounded (``docs/appendix/errata-discovery.md``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpcausal.discovery.search.pc import Skeleton, Verdict
from dpcausal.papers.discovery.pc_system import ALPHA, DELTA, Replica
from dpcausal.papers.discovery.priv_pc import PrivPc
from dpcausal.papers.discovery.sieve_and_examine import advanced_composition


@dataclass(frozen=True, kw_only=True)
class SvtPc(PrivPc):
    """SVT-PC: the sparse vector alone; ``constants`` and ``max_order`` as in ``PrivPc``."""

    name: ClassVar[str] = "SVT-PC"
    about: ClassVar[str] = "tests by the sparse vector"
    examines: ClassVar[bool] = False

    def as_published(self, replica: Replica) -> tuple[Skeleton, str]:
        """Run the sparse vector; the threshold is refreshed with Gaussian noise, as evaluated."""
        scale = 2 * replica.bound / replica.epsilon
        bar = [ALPHA + replica.laplace(scale)]

        def ask(*test: Any) -> Verdict:
            if replica.score(replica.whole, test) + replica.laplace(4 * scale) < bar[0]:
                return Verdict(False)
            replica.rounds += 1
            bar[0] = ALPHA + float(replica.generator.normal(0, scale))
            return Verdict(True)

        skeleton = replica.skeleton(ask)
        total = advanced_composition(replica.epsilon, replica.rounds, DELTA)
        return skeleton, f"({total:.4g}, {DELTA:g})-DP after {replica.rounds} rounds"
