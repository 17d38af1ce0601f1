"""What a call may cost: consent to a large ε and to the unproven, the pure part of a loss, and its division."""

import math
import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcausal import ZCDP, ApproxDP, Ledger, NoPrivacy, PureDP
from dpcausal.errors import BudgetExceededError, FenceError, LossError, UnprovenError
from dpcausal.privacy.checks import LossSplit, charged_loss, check_epsilon_consent, check_unproven_consent, split_loss
from dpcausal.privacy.composition import cost_of
from dpcausal.privacy.loss import RHO_UNITS, implies, largest_rho, zcdp_epsilon
from tests.privacy.conftest import event


@pytest.mark.parametrize("consent", [False, 1, "yes", None])
def test_a_loss_worth_more_than_20_and_an_unproven_variant_need_the_consent_of_true(consent: Any) -> None:
    for fine in (PureDP(20), ApproxDP(20, 1e-6), ZCDP(200), PureDP(1e-12), NoPrivacy()):
        check_epsilon_consent(fine, consent)
    for loss in (PureDP(20.000000001), ApproxDP(21, 1e-6), ZCDP(200.001)):
        check_epsilon_consent(loss, True)
        with pytest.raises(LossError, match="accept_large_epsilon=True"):
            check_epsilon_consent(loss, consent)
        with pytest.raises(LossError, match="accept_large_epsilon=True"):
            Ledger.in_memory(loss, accept_large_epsilon=consent)
        assert Ledger.in_memory(loss, accept_large_epsilon=True).budget == loss
    check_unproven_consent(True, "the variant")
    with pytest.raises(UnprovenError, match=r"accept_unproven=True.*in-memory"):
        check_unproven_consent(consent, "the variant")


@pytest.mark.parametrize(
    ("loss", "told"),
    [(1.0, r"got float; PureDP\(1.0\)\?$"), (2, r"got int; PureDP\(2\)\?$"), (-1, "got int$"), (True, "got bool$"),
     (math.nan, "got float$"), (math.inf, "got float$"), ("1", "got str$"), (None, "got NoneType$")],
)  # fmt: skip
def test_what_is_no_loss_is_told_by_its_type_and_a_number_as_the_loss_it_may_mean(loss: object, told: str) -> None:
    for check in (
        lambda: check_epsilon_consent(loss, False),  # type: ignore[arg-type]
        lambda: charged_loss(loss, (PureDP,), "blocks"),  # type: ignore[arg-type]
        lambda: split_loss(loss, [Fraction(1)]),  # type: ignore[arg-type]
        lambda: Ledger.in_memory(PureDP(1)).charge(loss, task="example"),  # type: ignore[arg-type]
    ):
        with pytest.raises(LossError, match=told):
            check()


def test_a_pure_loss_is_spent_as_it_is_and_of_another_epsilon_alone() -> None:
    assert charged_loss(PureDP(0.3), (PureDP,), "blocks") == (PureDP(0.3), "")
    assert charged_loss(NoPrivacy(), (PureDP,), "blocks") == (NoPrivacy(), "")
    assert split_loss(NoPrivacy(), [Fraction(1)] * 3).parts == (NoPrivacy(),) * 3
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


def test_a_delta_above_the_half_that_a_count_has_is_refused_with_that_reason() -> None:
    ledger = Ledger.in_memory(ApproxDP(3, 1e-6))
    ledger.charge(PureDP(0.5), task="test")
    with pytest.raises(BudgetExceededError, match="half of the budget's delta"):
        ledger.charge(ApproxDP(0.5, 1e-6), task="test")
    ledger.charge(ApproxDP(0.5, 4e-7), task="test")


shares = st.lists(st.fractions(min_value=Fraction(1, 1000), max_value=1000), min_size=1, max_size=30)
amounts = st.floats(min_value=1e-3, max_value=20).map(lambda value: round(value, 6))  # whole units of a ledger
losses = st.one_of(
    amounts.map(PureDP),
    amounts.map(ZCDP),
    st.builds(ApproxDP, amounts, st.sampled_from([0.0, 1e-12, 1e-6, 1e-3, 0.1])),
)


def epsilons(division: LossSplit) -> list[Fraction]:
    return [part.exact_epsilon for part in division.parts]  # type: ignore[union-attr]


@pytest.mark.proves("divided-loss")
@settings(max_examples=150, deadline=None)
@given(losses, shares)
def test_parts_stand_in_the_ratio_of_the_shares_and_add_up_to_what_is_charged(loss: Any, weights: list[Any]) -> None:
    division = split_loss(loss, weights)
    parts = epsilons(division)
    assert all(part * weights[0] == parts[0] * share for part, share in zip(parts, weights, strict=True))
    ledger = Ledger.in_memory(loss)
    allotment = ledger.charge(division.spent, task="parts", zcdp=division.zcdp)
    for part in division.parts:
        allotment.spend(event(part))
    with pytest.raises(FenceError):  # what would cost one unit more in either account
        allotment.spend(event(PureDP(Fraction(1, 10**4))))
    assert ledger.verify().ok
    cost, rho = cost_of(division.spent, division.zcdp), sum(part**2 for part in parts) / 2
    assert cost.rho is not None
    if division.by_rho:
        assert 0 <= Fraction(cost.rho, RHO_UNITS) - rho < Fraction(1, 10**8)
    else:
        assert sum(parts) == loss.exact_epsilon and cost.epsilon == sum(parts) * 10**9
        assert 0 <= Fraction(cost.rho, RHO_UNITS) - rho < Fraction(1, 10**9)


@pytest.mark.proves("divided-loss")
@settings(max_examples=150, deadline=None)
@given(amounts, st.sampled_from([1e-12, 1e-6, 1e-3, 0.1]), shares)
def test_an_approximate_loss_is_divided_by_the_account_that_gives_more(
    epsilon: float, delta: float, weights: list[Any]
) -> None:
    division = split_loss(ApproxDP(epsilon, delta), weights)
    by_epsilon = epsilon / float(sum(weights))
    rho = float(largest_rho(PureDP(epsilon).exact_epsilon, ApproxDP(1, delta).exact_delta))
    by_rho = math.sqrt(2 * rho / float(sum(weight**2 for weight in weights)))
    assert float(epsilons(division)[0] / weights[0]) == pytest.approx(max(by_epsilon, by_rho), rel=1e-9)
    if division.by_rho:
        # All parts together imply (ε, δ) by the conversion that the ledger's claim names.
        assert zcdp_epsilon(float(sum(part**2 for part in epsilons(division))) / 2, delta) <= epsilon * (1 + 1e-9)


@pytest.mark.proves("divided-loss")
def test_dp_accounting_agrees_that_a_hundred_parts_are_within_the_loss() -> None:
    from dp_accounting import dp_event, pld

    loss = ApproxDP(1, 1e-6)
    division = split_loss(loss, [Fraction(1)] * 100)
    accountant = pld.PLDAccountant()
    accountant.compose(dp_event.LaplaceDpEvent(1 / float(epsilons(division)[0])), 100)
    assert accountant.get_epsilon(1e-6) <= 1


def test_a_hundred_parts_of_a_pure_loss_cost_a_zcdp_budget_a_hundredth() -> None:
    ledger = Ledger.in_memory(ZCDP(0.005))
    division = split_loss(PureDP(1), [Fraction(1)] * 100)
    ledger.charge(division.spent, task="parts", zcdp=division.zcdp)
    assert ledger.remaining.rho == 0
    with pytest.raises(BudgetExceededError):
        Ledger.in_memory(ZCDP(0.005)).charge(PureDP(1), task="one")


@pytest.mark.parametrize(("loss", "weights", "rule"), [
    (PureDP(1), [], "each above 0"), (PureDP(1), [0], "each above 0"), (PureDP(1), [1, -1], "each above 0"),
    (ZCDP(1e-200), [1], "too small"),
])  # fmt: skip
def test_shares_are_above_zero_and_parts_large_enough(loss: Any, weights: list[int], rule: str) -> None:
    with pytest.raises(LossError, match=rule):
        split_loss(loss, [Fraction(weight) for weight in weights])
