"""SG, sub-sampled Gaussian: PC with Gaussian noise on every test.

Wang, Pang & Song (2020), section 4, with the moments accountant of Abadi et al. (2016).  Errata: Theorem 3 (the
sensitivity of the conditional tau) and strata left out as evaluated (``docs/appendix/errata-discovery.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dpcausal.discovery.search.pc import Skeleton, Verdict
from dpcausal.papers.discovery.pc_system import ALPHA, DELTA, PcSystem, Replica
from dpcausal.papers.discovery.sieve_and_examine import moments_accountant

SHARE = 0.5
"""Of the rows, in the sample of each test as published."""


@dataclass(frozen=True, kw_only=True)
class SubsampledGaussian(PcSystem):
    """SG: Gaussian noise on every test; ``max_order`` as in all systems here."""

    name: ClassVar[str] = "SG"
    about: ClassVar[str] = "tests with Gaussian noise"

    def as_published(self, replica: Replica) -> tuple[Skeleton, str]:
        """Perturb every test of a subsample with Gaussian noise; report by the moments accountant."""
        noise = math.sqrt(2 * math.log(1.25 / DELTA)) / replica.epsilon

        def ask(*test: Any) -> Verdict:
            replica.asked += 1
            score = replica.score(replica.sample(SHARE), test)
            scale = noise * replica.bound / math.sqrt(SHARE)
            return Verdict(score + float(replica.generator.normal(0, scale)) >= ALPHA)

        skeleton = replica.skeleton(ask)
        total = moments_accountant(SHARE, noise, max(replica.asked, 1), DELTA)
        return skeleton, f"({total:.4g}, {DELTA:g})-DP after {replica.asked} tests"
