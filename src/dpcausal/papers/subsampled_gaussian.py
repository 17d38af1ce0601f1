"""SG, sub-sampled Gaussian: PC with Gaussian noise on every test.

Wang, Pang & Song (2020), section 4, with the moments accountant of Abadi et al. (2016).  Errata: Theorem 3 (the
sensitivity of the conditional tau) and strata left out as evaluated (``docs/errata_discovery.md``).  Corrected, all
tests of an order are one release with the order's share of ρ, and no subsample is drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpcausal.discovery.pc import Skeleton, Terms, Test, Verdict, find_skeleton
from dpcausal.discovery.question import Graph, deviation_of, rho_of
from dpcausal.mechanisms.additive import gaussian
from dpcausal.papers.pc_system import ALPHA, DELTA, Counts, PcSystem, Replica
from dpcausal.papers.rank_scores import STEPS, RankScores, steps_sensitivity, two_sided
from dpcausal.papers.sieve_and_examine import moments_accountant
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.call import gaussian_part
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy

SHARE = 0.5
"""Of the rows, in the sample of each test as published."""


@dataclass(frozen=True, kw_only=True)
class SubsampledGaussian(PcSystem):
    """SG: Gaussian noise on every test; ``constants`` and ``max_order`` as in all systems here."""

    name: ClassVar[str] = "SG"
    about: ClassVar[str] = "tests with Gaussian noise"

    def pay_proved(self, loss: Loss) -> tuple[ApproxDP | ZCDP | NoPrivacy, str]:
        return gaussian_part(loss, self.name)

    def claims(self, question: Graph, spent: ApproxDP | ZCDP) -> tuple[str, ...]:
        return STEPS, "gaussian"

    def draw_noise(self, question: Graph, spent: ApproxDP | ZCDP) -> None:
        columns = len(question.names)
        bound = float(steps_sensitivity(question.sizes).bound)
        for order, share in enumerate(self.shares):
            most = columns * (columns - 1) * max(math.comb(columns - 2, order), 1)
            deviation_of(bound * math.sqrt(most) * 1.01, rho_of(spent).part(share))

    def proved(
        self, counts: Counts, question: Graph, terms: Terms, spent: ApproxDP | ZCDP | NoPrivacy, allotment: Allotment
    ) -> Skeleton:
        scores = RankScores(question.names, counts)
        threshold = scores.threshold(question.n, terms.alpha)
        noisy: dict[Test, float] = {}
        level = [float(threshold)]
        z = two_sided(terms.alpha)

        def begin(order: int, tests: list[Test], neighbours: dict[str, tuple[str, ...]]) -> None:
            loss = rho_of(spent).part(self.shares[order])
            query = scores.query_l2(tests, f"tests of order {order}")
            released = gaussian(query, allotment, loss)
            noisy.clear()
            noisy.update(zip(tests, np.abs(released).tolist(), strict=True))
            # The threshold is a multiple of the sampling deviation; the noise widens that.
            spread = deviation_of(float(query.sensitivity.bound), loss)
            level[0] = threshold * float(np.hypot(1.0, spread * z / threshold))

        def ask(x: str, y: str, given: tuple[str, ...]) -> Verdict:
            return Verdict(noisy[x, y, given] <= level[0])

        return find_skeleton(question.names, ask, terms, begin)

    def as_published(self, replica: Replica) -> tuple[Skeleton, str]:
        """Perturb every test of a subsample with Gaussian noise; report by the moments accountant."""
        noise = math.sqrt(2 * math.log(1.25 / DELTA)) / replica.epsilon

        def ask(*test: Any) -> Verdict:
            replica.asked += 1
            score = replica.score(replica.sample(SHARE), test)
            scale = noise * replica.bound / math.sqrt(SHARE)
            return Verdict(score + float(replica.generator.normal(0, scale)) >= ALPHA)

        found = replica.skeleton(ask)
        total = moments_accountant(SHARE, noise, max(replica.asked, 1), DELTA)
        return found, f"({total:.4g}, {DELTA:g})-DP after {replica.asked} tests"
