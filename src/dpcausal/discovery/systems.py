"""The systems of Wang, Pang & Song (2020): with a proof, or as published, for comparison."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.data.table import Table
from dpcausal.data.tabulate import codes_of, counts_of
from dpcausal.discovery.contrasts import shares_of
from dpcausal.discovery.em_pc import Eliminator
from dpcausal.discovery.pc import Skeleton, Test, Verdict, find_skeleton, orient
from dpcausal.discovery.plan import Plan
from dpcausal.discovery.published import Replica, claimed_sensitivity
from dpcausal.discovery.rank_scores import RankScores, two_sided
from dpcausal.discovery.reconciled import Reconciled, block_counts
from dpcausal.discovery.search import Found, by_tests
from dpcausal.discovery.sieve import Sieve, default_rounds
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.mechanisms.replication import replicate
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ZCDP, ApproxDP, NoPrivacy, PureDP
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.noise import PublicGenerator, public_generator
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity

Counts = npt.NDArray[np.int64]

UNPROVEN = "conditional-tau-published-unproven"


def run_system(table: Table, plan: Plan, allotment: Allotment) -> tuple[Found, str, int | None]:
    """Run a system and return its graph, the loss that it reports of itself, and the seed of its public coins."""
    known = plan.settings.knowledge
    if plan.method == "ci-test":
        from dpcausal.discovery.by_ci_tests import find

        spent = plan.spent if isinstance(plan.spent, PureDP) else NoPrivacy()
        skeleton = find(
            table, plan.names, plan.test, plan.settings.alpha, plan.settings.max_order, known, spent, allotment
        )
        return by_tests(plan.names, skeleton, plan.settings), "", None
    generator, seed = public_generator()
    uses_coins = plan.method == "reconciled" or plan.calibration == "published"
    if plan.method == "reconciled":
        counts = block_counts(codes_of(table, plan.names), plan.sizes, generator)
    else:
        counts = counts_of(table, plan.names)
    reported = ""
    if plan.calibration == "published":
        skeleton, reported = _published(counts, plan, allotment, table.n, generator)
    else:
        skeleton = _proved(counts, plan, allotment, table.n)
    found = Found(orient(plan.names, skeleton, known), {}, frozenset(), skeleton.tests)
    return found, reported, seed if uses_coins else None


def _published(
    counts: Counts, plan: Plan, allotment: Allotment, n: int, generator: PublicGenerator
) -> tuple[Skeleton, str]:
    loss = plan.spent
    epsilon = loss.epsilon if isinstance(loss, (PureDP, ApproxDP)) else 1.0
    claim = Sensitivity(claimed_sensitivity(n), Norm.LINF, Relation.REPLACE_ONE, UNPROVEN)

    def run(exact: Counts) -> tuple[Skeleton, str]:
        replica = Replica(plan.names, np.maximum(exact, 0), epsilon, plan.settings, generator, test=plan.test)
        systems = {
            "priv-pc": replica.priv_pc, "svt-pc": replica.svt_pc, "em-pc": replica.em_pc,
            "gaussian-pc": replica.gaussian_pc, "reconciled": replica.reconciled,
        }  # fmt: skip
        return systems[plan.method]()

    return replicate(Query(counts, claim, plan.method), allotment, run)


def _proved(counts: Counts, plan: Plan, allotment: Allotment, n: int) -> Skeleton:
    settings = plan.settings
    if plan.method == "reconciled":
        spent_here = plan.spent if isinstance(plan.spent, ApproxDP) else NoPrivacy()
        kind: Any = plan.test
        blocks = Reconciled(plan.names, counts, kind, settings.max_order, spent_here, allotment)
        return find_skeleton(
            plan.names, blocks.ask, knowledge=settings.knowledge, max_order=settings.max_order, begin=blocks.begin
        )
    scores = RankScores(plan.names, counts)
    threshold = scores.threshold(n, settings.alpha)
    nodes, known, order = plan.names, settings.knowledge, settings.max_order
    if plan.method == "gaussian-pc":
        return _gaussian(scores, plan, allotment, threshold)
    spent = plan.spent if isinstance(plan.spent, PureDP) else NoPrivacy()
    if plan.method == "em-pc":
        parts = len(nodes) * (order + 1)
        each = spent.part(Fraction(1, parts)) if isinstance(spent, PureDP) else spent
        eliminator = Eliminator(scores, nodes, allotment, each, threshold)
        return find_skeleton(nodes, eliminator.ask, knowledge=known, max_order=order, begin=eliminator.begin)
    rounds = default_rounds(len(nodes))
    each = spent.part(Fraction(1, rounds)) if isinstance(spent, PureDP) else spent
    sieve = Sieve(scores, nodes, known, order, allotment, each, rounds, threshold, plan.method == "priv-pc")
    return find_skeleton(nodes, sieve.ask, knowledge=known, max_order=order, begin=sieve.begin)


def _gaussian(scores: RankScores, plan: Plan, allotment: Allotment, threshold: int) -> Skeleton:
    """PC on tau with Gaussian noise: all tests of an order in one release, with the order's share of ρ."""
    noisy: dict[Test, float] = {}
    level = [float(threshold)]
    z = two_sided(plan.settings.alpha)
    order = plan.settings.max_order

    def begin(number: int, tests: list[Test], neighbours: dict[str, tuple[str, ...]]) -> None:
        part, whole = shares_of(order)[number]
        loss = ZCDP(plan.gaussian.exact_rho * part / whole) if isinstance(plan.gaussian, ZCDP) else NoPrivacy()
        query = scores.query_l2(tests, f"tests of order {number}")
        released = gaussian(query, allotment, loss)
        noisy.clear()
        noisy.update(zip(tests, np.abs(released).tolist(), strict=True))
        spread = gaussian_scale(query.sensitivity.bound, loss) if isinstance(loss, ZCDP) else 0.0
        # The threshold is a multiple of the sampling deviation; the noise widens that.
        level[0] = threshold * float(np.hypot(1.0, spread * z / threshold))

    def ask(x: str, y: str, given: tuple[str, ...]) -> Verdict:
        return Verdict(noisy[x, y, given] <= level[0])

    return find_skeleton(plan.names, ask, knowledge=plan.settings.knowledge, max_order=order, begin=begin)
