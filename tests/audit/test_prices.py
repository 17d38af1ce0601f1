"""What a call is charged, against what the noise that it declares costs: for every way of every public call.

The output of a call is a function of what passes the gate, so its loss is at most that of the noise declared there,
which is computed again from scale and bound.  Nothing is drawn: there are no false alarms.
"""

import math
from typing import Any

import numpy as np
import pytest

from dpcausal.mechanisms.additive import laplace
from dpcausal.papers.mechanisms.objective_perturbation import calibrate
from dpcausal.privacy.budget import Event
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity
from tests.registry.exact import less_declared
from tests.registry.index import TASKS
from tests.registry.prices import at_gate, hunt, paid, share, total
from tests.registry.rows import Search, TaskRow

TOO_LITTLE = 0.95
ROUNDING = 1e-5
"""Amounts are in units of 1e-9, which is a relative 1e-6 of the smallest ρ here."""


@pytest.mark.parametrize("row", TASKS, ids=[row.name for row in TASKS])
def test_the_declared_noise_of_a_call_costs_what_it_is_charged_and_5_percent_less_is_seen(row: TaskRow) -> None:
    for epsilon in (1.0, 2.0):
        right = at_gate(row, epsilon)
        assert 1 - ROUNDING <= right.least_noise <= right.noise <= 1 + ROUNDING
        assert right.moved <= 1 + 1e-9
    with less_declared(TOO_LITTLE):
        # Objective perturbation's own ε is no multiple of its scale.
        assert at_gate(row, 1.0).noise > 1.01


def event(mechanism: str, scale: float, loss: Loss, bound: float = 1.0) -> Event:
    return Event(mechanism, "audited", loss, bound, "l1", scale, "audited")


def test_prices_are_those_of_the_claims() -> None:
    pure, approximate = PureDP(1), ApproxDP(1, 1e-6)
    assert paid(event("laplace", 4.0, pure, 2.0), 0.0) == PureDP(0.5)
    assert paid(event("noisy-max", 4.0, pure), [0.0]) == PureDP(0.5)
    assert paid(event("gaussian", 4.0, ZCDP(1), 2.0), 0.0) == ZCDP(0.125)
    assert paid(event("stable-value", 4.0, approximate), [1.0, 0.0]) == ApproxDP(0.25, 1e-6)
    for donors, periods in ((1, 1), (7, 4)):
        for epsilon in (0.5, 3.0):
            scale = calibrate(donors, periods, ApproxDP(epsilon, 1e-6)).scale
            found = paid(event("objective-perturbation", scale, approximate), np.zeros((donors, periods)))
            assert share(found, ApproxDP(epsilon, 1e-6)) == pytest.approx(1, rel=1e-6)
    with pytest.raises(ValueError, match="no price is known"):
        paid(event("replication", 1.0, pure), 0.0)


def test_losses_are_summed_in_one_account() -> None:
    assert total([PureDP(0.5), ApproxDP(1, 1e-6)], ApproxDP) == ApproxDP(1.5, 1e-6)
    assert total([PureDP(0.5), ZCDP(1)], ZCDP) == ZCDP(1.125)
    assert share(ZCDP(0.25), ZCDP(1)) == 0.5
    with pytest.raises(ValueError, match="different kinds"):
        share(ZCDP(1), PureDP(1))


def of_sum(bound: float, high: float = 1.0, label: Any = None) -> Search:
    """Return a search for neighbours of a noisy sum of twelve values that are cut to [0, ``high``]."""

    def ask(rows: Any) -> float:
        allotment = Ledger.in_memory(PureDP(1)).charge(PureDP(1), task="sum")
        claim = Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "laplace")
        name = "sum" if label is None else label(rows)
        return float(laplace(Query(float(np.clip(rows, 0, high).sum()), claim, name), allotment, PureDP(1)))

    return Search(ask, 12, np.array([-3.0]), np.array([3.0]))


def test_a_hunt_comes_to_the_bound_and_past_a_wrong_one() -> None:
    right = hunt(of_sum(1.0), pairs=60)
    assert right.share == pytest.approx(1, rel=1e-9) and not right.violated and right.pairs == 60
    assert hunt(of_sum(1.0), pairs=60) == right
    assert hunt(of_sum(0.95), pairs=60).violated
    assert hunt(of_sum(1.0, high=math.inf), pairs=60).violated
    by_label = hunt(of_sum(1.0, label=lambda rows: f"sum of {np.count_nonzero(rows)}"), pairs=60)
    assert by_label.violated and by_label.share == math.inf
