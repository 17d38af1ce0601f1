"""Audit of noisy weights: the printed objective perturbation is shown in violation, the others are not."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.targets import report
from dpcausal.audit import BlackBoxAudit, audit_samples
from dpcausal.papers.mechanisms.objective_perturbation import objective_perturbation
from dpcausal.papers.synthetic_control import dpsc
from dpcausal.papers.synthetic_control.dpsc import published_objective_perturbation
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.synthetic_control import perturbation

N, T0, EPSILON, DRAWS = 10, 10, 5.4, 60_000
ONES = np.ones(N) / math.sqrt(N)
FALSE_ALARM = 1e-6


def pair() -> tuple[Any, Any]:
    """Return ten donors that are all ones, and the same with the first turned to −1."""
    X = np.ones((N, T0))
    other = X.copy()
    other[0] = -1
    return X, other


def worst_pair() -> tuple[Any, Any]:
    """Return donors that are all 0 but the first, which moves the ridge weights by all of the exact bound."""
    X = np.zeros((N, T0))
    X[0] = math.sqrt(0.5)  # √(μ/T0) at λ = T0
    return X, -X


def sides(run: Any, loss: Any, draws: int, unproven: bool = False) -> list[Any]:
    """Return a number of many releases on both sides; the noise is simulated with a fixed seed."""
    times = 2 * draws
    budget = (
        dpc.ApproxDP(loss.exact_epsilon * times, loss.exact_delta * times)
        if isinstance(loss, dpc.ApproxDP)
        else dpc.PureDP(loss.exact_epsilon * times)
    )
    with dpc.simulated_noise(1):
        ledger = dpc.Ledger.in_memory(budget, unit="unit")
        allotment = ledger.charge(budget, task="audit", unit=Unit.DONOR, unit_column="unit", unproven=unproven)
        if unproven:
            return [[abs(float(run(X, allotment) @ ONES)) for _ in range(draws)] for X in pair()]
        return [[float(run(X, allotment)[0]) for _ in range(draws)] for X in worst_pair()]


def cells(X: Any) -> Query:
    return Query(X, Sensitivity(2 * math.sqrt(T0), Norm.L2, Relation.REPLACE_ONE, "panel-rows", Unit.DONOR), "weights")


def audited(name: str, run: Any, loss: Any, delta: float, draws: int, unproven: bool = False) -> BlackBoxAudit:
    audit = audit_samples(*sides(run, loss, draws, unproven), claimed=loss.epsilon, delta=delta,
                          false_alarm=FALSE_ALARM)  # fmt: skip
    print(f"{name}: {audit.summary()}", flush=True)
    return audit


def main() -> int:
    pure, approx, zeros, ones = dpc.PureDP(EPSILON), dpc.ApproxDP(EPSILON, 1e-6), np.zeros(T0), np.ones(T0)
    print(f"n = T0 = {N}, λ = T0, claimed ε = {EPSILON}; audited: |f·1|/√n of the printed objective perturbation on "
          "rows of ones, one of them turned; the first weight of the others where it moves most\n")  # fmt: skip

    def printed(loss: Any) -> Any:
        return lambda X, allotment: published_objective_perturbation(
            cells(X), allotment, loss, target=zeros, penalty=float(T0)
        )

    violated = [
        audited("objective perturbation as printed, pure, δ = .5", printed(pure), pure, 0.5, DRAWS, True),
        audited("objective perturbation as printed, Gaussian, claimed δ = 1e-6, shown at .5", printed(approx), approx,
                0.5, DRAWS, True),
    ]  # fmt: skip

    def ridge(X: Any, allotment: Any) -> Any:
        return perturbation.release_weights(X, ones, float(T0), "none", allotment, pure)

    def printed_output(X: Any, allotment: Any) -> Any:
        return dpsc.output_weights(X, ones, float(T0), allotment, pure)

    kept = [
        audited("output perturbation as printed", printed_output, pure, 0.0, DRAWS // 2),
        audited("output perturbation, exact sensitivity", ridge, pure, 0.0, DRAWS // 2),
        audited("objective perturbation, corrected",
                lambda X, allotment: objective_perturbation(cells(X), allotment, approx, target=ones), approx, 1e-6,
                2_500),
    ]  # fmt: skip
    return report({
        "the printed objective perturbation is flagged at δ = .5, pure": violated[0].violated,
        "and Gaussian": violated[1].violated,
        "the three others are not": not any(audit.violated for audit in kept),
    })  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
