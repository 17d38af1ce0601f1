"""What a call may cost: consent to a large ε, the pure part of a loss, consent to the unproven."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcausal.errors import BudgetExceededError, LossError, UnprovenError
from dpcausal.privacy.checks import charged_loss, check_epsilon_consent, check_unproven_consent, divided
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ZCDP, ApproxDP, NoPrivacy, PureDP, implies


@pytest.mark.parametrize("loss", [PureDP(20), ApproxDP(20, 1e-6), ZCDP(200), PureDP(1e-12), NoPrivacy()])
def test_a_loss_worth_at_most_20_needs_no_consent(loss: object) -> None:
    check_epsilon_consent(loss, False)  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", [PureDP(20.000000001), ApproxDP(21, 1e-6), ZCDP(200.001)])
def test_a_larger_one_needs_it_and_only_true_is_consent(loss: object) -> None:
    check_epsilon_consent(loss, True)  # type: ignore[arg-type]
    for consent in (False, 1, "yes", None):
        with pytest.raises(LossError, match="accept_large_epsilon=True"):
            check_epsilon_consent(loss, consent)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("loss", "told"),
    [(1.0, r"got float; PureDP\(1.0\)\?$"), (2, r"got int; PureDP\(2\)\?$"), (-1, "got int$"), (True, "got bool$"),
     (math.nan, "got float$"), (math.inf, "got float$"), ("1", "got str$"), (None, "got NoneType$")],
)  # fmt: skip
def test_what_is_no_loss_is_told_by_its_type_and_a_number_as_the_loss_it_may_mean(loss: object, told: str) -> None:
    for check in (
        lambda: check_epsilon_consent(loss, False),  # type: ignore[arg-type]
        lambda: charged_loss(loss, (PureDP,), "blocks"),  # type: ignore[arg-type]
        lambda: divided(loss, [Fraction(1)]),  # type: ignore[arg-type]
        lambda: Ledger.in_memory(PureDP(1)).charge(loss, task="example"),  # type: ignore[arg-type]
    ):
        with pytest.raises(LossError, match=told):
            check()


def test_a_pure_loss_is_spent_as_it_is_and_of_another_epsilon_alone() -> None:
    assert charged_loss(PureDP(0.3), (PureDP,), "blocks") == (PureDP(0.3), "")
    assert charged_loss(NoPrivacy(), (PureDP,), "blocks") == (NoPrivacy(), "")
    spent, note = charged_loss(ApproxDP(Fraction(1, 3), 1e-6), (PureDP,), "blocks")
    assert spent == PureDP(Fraction(1, 3)) and "blocks needs no delta" in note


@given(st.floats(1e-10, 1e4))
def test_the_pure_epsilon_offered_for_a_rho_costs_that_rho_but_for_its_ninth_digit(rho: float) -> None:
    with pytest.raises(LossError) as refused:
        charged_loss(ZCDP(rho), (PureDP,), "blocks")
    offered = re.search(r"PureDP\(([0-9.e+-]+)\)", str(refused.value))
    assert offered is not None
    epsilon = float(offered[1])
    assert implies(PureDP(epsilon), ZCDP(rho))
    assert epsilon > 0.99 * (2 * rho) ** 0.5 - 2e-9


def test_an_unproven_variant_needs_the_consent_of_true() -> None:
    check_unproven_consent(True, "the variant")
    for consent in (False, 1, "yes", None):
        with pytest.raises(UnprovenError, match=r"accept_unproven=True.*in-memory"):
            check_unproven_consent(consent, "the variant")  # type: ignore[arg-type]


def test_a_delta_above_the_half_that_a_count_has_is_refused_with_that_reason() -> None:
    ledger = Ledger.in_memory(ApproxDP(3, 1e-6))
    ledger.charge(PureDP(0.5), task="test")
    with pytest.raises(BudgetExceededError, match="half of the budget's delta"):
        ledger.charge(ApproxDP(0.5, 1e-6), task="test")
    ledger.charge(ApproxDP(0.5, 4e-7), task="test")
