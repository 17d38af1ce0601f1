"""The interquartile range released as values: rows of its mechanisms, its claims and its ways through ``direction``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcausal.papers import AnmTestPrivacyIqr
from dpcausal.papers.direction import anm_test_privacy_iqr
from dpcausal.papers.mechanisms.iqr_intervals import (
    interval_sensitivity,
    proposal,
    proposal_sensitivity,
    proposed_distances,
)
from dpcausal.papers.mechanisms.propose_test_release import propose_test_release
from dpcausal.papers.statistics.iqr import IqrReach
from dpcausal.privacy.ledger import CallBudget, Ledger
from dpcausal.privacy.loss import ApproxDP, Loss, PureDP
from dpcausal.privacy.sensitivity import Norm, PrivacyUnit, Query, Relation, Sensitivity, Unit
from tests.registry import asked
from tests.registry.rows import MechanismRow, Neighbours, SensitivityRow, TaskRow

Rows = Any

BATCH = 20
"""Outputs from one allotment: the δ of all would not sum to a loss."""

TESTED_DELTA = 1e-6


def granted(loss: Loss, times: int, unit: Unit = Unit.ROW) -> CallBudget:
    """Return an allotment of ``times`` × loss."""
    whole: Loss
    if isinstance(loss, ApproxDP):
        whole = ApproxDP(loss.exact_epsilon * times, loss.exact_delta * times)
    else:
        whole = PureDP(loss.exact_epsilon * times)  # type: ignore[union-attr]
    return Ledger.in_memory(whole, **PrivacyUnit(unit).words, accept_large_epsilon=True).charge(
        whole, task="audit", unit=unit
    )


def in_batches(run: Any, loss: Loss, size: int, unit: Unit = Unit.ROW) -> list[Any]:
    """Return ``size`` outputs of a function of an allotment."""
    outputs: list[Any] = []
    while len(outputs) < size:
        allotment = granted(loss, BATCH, unit)
        outputs += [run(allotment) for _ in range(min(BATCH, size - len(outputs)))]
    return outputs


def at_the_threshold(epsilon: float) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Return a worst pair of propose-test-release: both distances grow from the threshold, 1 + (2/ε) log(1/δ)."""
    threshold = 1 + 2 / epsilon * math.log(1 / TESTED_DELTA)
    return (threshold, threshold, 0.0), (threshold + 1, threshold + 1, 0.0)


def tested(answer: tuple[float, ...], epsilon: float, size: int, share: float) -> list[float | None]:
    loss = ApproxDP(round(epsilon / share, 9), TESTED_DELTA)
    query = Query(np.array(answer), Sensitivity(1, Norm.TESTED, Relation.REPLACE_ONE, "log-iqr-proposal"), "audited")
    return in_batches(lambda allotment: propose_test_release(query, allotment, loss), loss, size)


IQR_MECHANISMS = (
    MechanismRow(
        "propose-test-release", "propose_test_release:propose_test_release", "propose-test-release",
        at_the_threshold(1.0), tested,
        ("propose-test-release with the printed threshold", "propose-test-release that pays half of its δ",
         "propose-test-release that tells which test was passed", "propose-test-release with exact distances"),
        delta=lambda epsilon: TESTED_DELTA, draws=12_000,
    ),
)  # fmt: skip

IQR_SENSITIVITIES = (
    SensitivityRow("iqr-interval-distance", lambda rows: proposed_distances(IqrReach(rows[:, 0], 0, 20)),
                   lambda m: interval_sensitivity(), (4, 16, 33), 1,
                   ("published second interval of the IQR",), {"columns": 1, "high": 20.0}),
    SensitivityRow("log-iqr-proposal", lambda rows: proposal(IqrReach(rows[:, 0], 0, 20)),
                   lambda m: proposal_sensitivity(), (4, 16, 33), 0.99,
                   ("published second interval of the IQR", "log IQR proposed on cells of length 2"),
                   {"columns": 1, "high": 20.0}),
)  # fmt: skip


def asked_on_neighbours(**arguments: Any) -> Neighbours:
    return asked.asked_on_neighbours("test", score="iqr", **arguments)


def on_a_tie(release: Any, delta: float) -> Any:
    """Return released margins on two tables beside a tie: everything after the regressions."""

    def draw(side: int, epsilon: float, size: int) -> list[Any]:
        from tests.registry.tasks import TIE_AND_BESIDE

        loss = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
        rest = TIE_AND_BESIDE[side]
        return in_batches(lambda allotment: release(rest, allotment, loss).margin, loss, size, Unit.TEST_ROW)

    return draw


CALL_DELTA = 0.04
WITH_DELTA = {"loss": ApproxDP(1, CALL_DELTA)}
METHODS: dict[str, Any] = {
    "propose-test-release": AnmTestPrivacyIqr(constants="corrected"),
}
CLAIMS = {name: method.proofs for name, method in METHODS.items()}
"""The claims of each method: they hang on nothing else."""

IQR_TASKS = (
    TaskRow("direction propose-test-release", "direction", CLAIMS["propose-test-release"],
            asked_on_neighbours(method=METHODS["propose-test-release"], **WITH_DELTA),
            on_a_tie(anm_test_privacy_iqr.corrected, CALL_DELTA), 0.0,
            ("published second interval of the IQR", "propose-test-release with the printed threshold"),
            delta=CALL_DELTA),
)  # fmt: skip
"""The printed propose-test-release has no claims, hence no row: see ``published_iqr``."""
