"""Privacy amounts: exact arithmetic, refusals, and conversions against published values and dp-accounting."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcausal import ZCDP, ApproxDP, NoPrivacy, PureDP
from dpcausal.errors import LossError
from dpcausal.privacy.loss import (
    EPSILON_UNITS,
    Loss,
    affordable_zcdp,
    exact_amount,
    implies,
    largest_rho,
    loss_text,
    parse_loss,
    to_zcdp,
    zcdp_epsilon,
)

DECIMALS = st.decimals(min_value="0.000000001", max_value="1000", places=9, allow_nan=False)
EPSILONS = st.fractions(min_value=Fraction(1, 10**6), max_value=30)
DELTAS = st.one_of(st.just(Fraction(0)), st.fractions(min_value=Fraction(1, 10**12), max_value=Fraction(99, 100)))
LOSSES = st.one_of(
    EPSILONS.map(PureDP), EPSILONS.map(ZCDP), st.builds(ApproxDP, EPSILONS, DELTAS), st.just(NoPrivacy())
)


@settings(deadline=None)
@given(st.lists(DECIMALS, min_size=1, max_size=8))
def test_sums_of_floats_are_the_sums_of_their_decimals(amounts: list[Decimal]) -> None:
    for kind in (PureDP, ZCDP, lambda amount: ApproxDP(amount, 1e-9)):
        total = kind(float(amounts[0]))
        for amount in amounts[1:]:
            total = total + kind(float(amount))
        first, *delta = total.amounts.values()
        assert first == sum(map(Fraction, amounts)) and delta in ([], [Fraction(len(amounts), 10**9)])


@settings(deadline=None)
@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_float_stands_for_its_shortest_decimal_or_a_short_fraction(value: float) -> None:
    exact = exact_amount(value, "epsilon")
    assert exact == Fraction(repr(value)) or (exact.denominator <= 10**6 and float(exact) == value)
    assert len(Decimal(repr(value)).as_tuple().digits) > 12 or exact == Fraction(repr(value))
    assert exact_amount(np.float64(value), "epsilon") == exact
    assert exact_amount(np.int8(100), "epsilon") * 10**30 == 10**32
    assert PureDP(value).epsilon == value


NOT_AMOUNTS: list[Any] = [
    True, np.bool_(True), "1", b"1", None, 1j, [1.0], np.array(1.0), float("nan"), float("inf"), -float("inf"),
    np.float32("nan"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1e400"), Decimal("1e-400"),
    10**400, Fraction(1, 10**400), -1, -0.5, Fraction(-1, 3), Decimal("-1e-9"),
]  # fmt: skip


@pytest.mark.parametrize("value", NOT_AMOUNTS, ids=repr)
def test_what_is_not_a_positive_finite_number_is_no_amount(value: Any) -> None:
    for build in (PureDP, ZCDP, lambda v: ApproxDP(v, 1e-6), lambda v: ApproxDP(1, v)):
        with pytest.raises(LossError):
            build(value)


@pytest.mark.parametrize("zero", [0, 0.0, -0.0, Fraction(0), Decimal(0), np.int64(0), np.float64(0)], ids=repr)
def test_zero_is_a_delta_and_nothing_else(zero: Any) -> None:
    assert ApproxDP(1, zero).exact_delta == 0
    for build in (PureDP, ZCDP, lambda v: ApproxDP(v, 1e-6)):
        with pytest.raises(LossError):
            build(zero)


@pytest.mark.parametrize("delta", [1, 1.0, Fraction(3, 2), np.float64(1)], ids=repr)
def test_a_delta_is_below_one(delta: Any) -> None:
    with pytest.raises(LossError):
        ApproxDP(1, delta)


def test_losses_are_frozen_hashable_and_of_a_kind() -> None:
    with pytest.raises(AttributeError):
        PureDP(1).exact_epsilon = Fraction(2)  # type: ignore[misc]
    assert len({PureDP(1), PureDP(1.0), ZCDP(1), ApproxDP(1, 0), NoPrivacy(), NoPrivacy()}) == 4
    for left, right in [(PureDP(1), ZCDP(1)), (ApproxDP(1, 0), PureDP(1)), (ZCDP(1), 1), (NoPrivacy(), PureDP(1))]:
        with pytest.raises(TypeError):
            left + right  # type: ignore[operator]


GRID = [(rho, delta) for rho in (1e-8, 1e-4, 0.01, 0.5, 3.0, 40.0, 1e4) for delta in (1e-15, 1e-9, 1e-5, 0.01, 0.3)]


@pytest.mark.proves("cost-accounts")
@pytest.mark.parametrize(("rho", "delta"), GRID)
def test_the_conversion_is_the_infimum_over_the_orders(rho: float, delta: float) -> None:
    excess = np.exp(np.linspace(math.log(1e-6), math.log(1e9), 200_001))
    formula = (1 + excess) * rho + (-math.log(delta) - np.log1p(excess)) / excess - np.log1p(1 / excess)
    least = max(0.0, float(formula.min()))
    assert zcdp_epsilon(rho, delta) == pytest.approx(least, rel=1e-7, abs=1e-9)


@pytest.mark.proves("cost-accounts")
@pytest.mark.parametrize(("rho", "delta"), [(r, d) for r, d in GRID if 1e-5 < r < 50 and d < 0.02])
def test_the_conversion_is_that_of_dp_accounting_and_never_below_the_exact_gaussian(rho: float, delta: float) -> None:
    orders = 1 + np.exp(np.linspace(math.log(0.011), math.log(1e5), 4_000))
    theirs, _ = compute_epsilon(orders.tolist(), (orders * rho).tolist(), delta)
    ours = zcdp_epsilon(rho, delta)
    if theirs > 0:  # dp-accounting has a shortcut to 0 that ours does not use
        assert ours == pytest.approx(theirs, rel=1e-4)
    # Gaussian noise of sigma = 1/sqrt(2 rho) at sensitivity 1 is rho-zCDP: its exact epsilon bounds ours from below.
    assert ours >= dp_accounting.get_epsilon_gaussian(1 / math.sqrt(2 * rho), delta) * (1 - 1e-6)


@settings(deadline=None)
@given(EPSILONS, st.fractions(min_value=Fraction(1, 10**12), max_value=Fraction(99, 100)))
def test_the_largest_rho_is_within_and_one_unit_more_is_not(epsilon: Fraction, delta: Fraction) -> None:
    rho = largest_rho(epsilon, delta)
    units = rho * EPSILON_UNITS
    assert units.denominator == 1
    if rho:
        assert Fraction(zcdp_epsilon(float(rho), float(delta))) <= epsilon
    assert Fraction(zcdp_epsilon(float(rho + Fraction(1, EPSILON_UNITS)), float(delta))) > epsilon


def test_no_delta_or_a_vanishing_one_pays_for_no_rho() -> None:
    assert largest_rho(Fraction(1), Fraction(0)) == 0
    assert largest_rho(Fraction(1), Fraction(1, 10**400)) == 0
    assert largest_rho(Fraction(1), 1 - Fraction(1, 10**30)) > 0
    with pytest.raises(LossError):
        affordable_zcdp(ApproxDP(1, 0))


def test_what_a_loss_can_afford_implies_that_loss() -> None:
    for loss in (ApproxDP(1, 1e-6), ApproxDP(0.1, 1e-9), ApproxDP(8, 1e-3)):
        assert implies(affordable_zcdp(loss), loss)
        assert not implies(ZCDP(affordable_zcdp(loss).exact_rho + Fraction(1, EPSILON_UNITS)), loss)
    assert affordable_zcdp(ZCDP(0.3)) == ZCDP(0.3)


@pytest.mark.proves("cost-accounts")
@settings(deadline=None)
@given(st.floats(0.01, 20), st.floats(1.001, 1e4))
def test_a_pure_loss_is_half_its_square_in_zcdp(epsilon: float, order: float) -> None:
    # Randomised response is the worst pure mechanism; its Renyi divergence in closed form.
    p = 1 / (1 + math.exp(-epsilon))
    logs = [order * math.log(a) + (1 - order) * math.log(b) for a, b in ((p, 1 - p), (1 - p, p))]
    divergence = np.logaddexp(*logs) / (order - 1)
    assert divergence <= order * to_zcdp(PureDP(epsilon)).rho * (1 + 1e-9)


@settings(deadline=None)
@given(LOSSES)
def test_a_loss_implies_itself_and_no_privacy(loss: Loss) -> None:
    assert implies(loss, loss)
    assert implies(loss, NoPrivacy())
    assert implies(NoPrivacy(), loss) is isinstance(loss, NoPrivacy)


@pytest.mark.parametrize(
    ("strong", "weak", "expected"),
    [
        (PureDP(1), PureDP(1), True), (PureDP(Fraction(10**30 + 1, 10**30)), PureDP(1), False),
        (ApproxDP(1, 0), PureDP(1), True), (PureDP(1), ApproxDP(1, 0), True), (ApproxDP(0.1, 1e-9), PureDP(1), False),
        (ApproxDP(0.1, 1e-9), ZCDP(100), False), (ZCDP(1e-9), PureDP(100), False), (ZCDP(0.5), ZCDP(0.5), True),
        (PureDP(1), ZCDP(0.5), True), (PureDP(1), ZCDP(0.499999999), False), (ZCDP(0.02), ApproxDP(1, 1e-6), True),
        (ZCDP(0.025), ApproxDP(1, 1e-6), False), (ZCDP(0.02), ApproxDP(1, 0), False),
        (ApproxDP(1, 1e-6), ApproxDP(1, 1e-7), False), (PureDP(0.245), ApproxDP(0.1, 0.1), True),
    ],
    ids=str,
)  # fmt: skip
def test_implication_follows_the_theorems(strong: Loss, weak: Loss, expected: bool) -> None:
    assert implies(strong, weak) is expected


@pytest.mark.parametrize(
    "loss", [PureDP(0.1), PureDP(1e-30), PureDP(12345), ApproxDP(2, 1e-6), ApproxDP(1, 0), ZCDP(0.5), NoPrivacy()]
)
def test_a_loss_is_read_back_as_it_was_written(loss: Loss) -> None:
    assert parse_loss(loss_text(loss)) == loss
    assert parse_loss(loss_text(PureDP(0.7).part(Fraction(1, 9)))) == PureDP(0.7).part(Fraction(1, 9))
