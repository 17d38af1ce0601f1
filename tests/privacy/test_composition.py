"""Composition: filters against brute force, exact adaptive adversaries, OpenDP's filter and dp-accounting."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from dpcausal import ZCDP, ApproxDP, NoPrivacy, PureDP
from dpcausal.privacy.composition import Cost, Totals, admit, caps_of, cost_of, remaining, spent_text
from dpcausal.privacy.loss import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS, Loss, exact_amount, largest_rho

EPSILON_UNIT, DELTA_UNIT = Fraction(1, EPSILON_UNITS), Fraction(1, DELTA_UNITS)

amounts = st.one_of(
    st.floats(1e-9, 3),
    st.fractions(min_value=Fraction(1, 10**9), max_value=3),
    st.integers(1, 3000).map(lambda k: k / 1000),
)
deltas = st.one_of(st.floats(1e-18, 0.3), st.sampled_from([1e-9, 1e-6, 1e-5, Fraction(1, 3)]))
budgets = st.one_of(
    amounts.map(PureDP), amounts.map(ZCDP), st.builds(ApproxDP, amounts, deltas),
    st.builds(ApproxDP, amounts, st.just(0)),
)  # fmt: skip


@st.composite
def spends(draw: Any, most: int = 12) -> list[tuple[Loss, ZCDP | None]]:
    """Spends of every kind, from much too large to tiny."""
    size = draw(st.sampled_from([1, 0.3, 0.05, 0.003]))

    def one() -> tuple[Loss, ZCDP | None]:
        amount = exact_amount(draw(amounts), "amount") * exact_amount(size, "size")
        delta = exact_amount(draw(deltas), "delta") * exact_amount(size, "size")
        kind = draw(st.sampled_from(["pure", "approximate", "rho", "both"]))
        if kind == "both":
            return ApproxDP(amount, delta), ZCDP(amount**2 / 8)
        return {"pure": PureDP(amount), "rho": ZCDP(amount), "approximate": ApproxDP(amount, delta)}[kind], None

    return [one() for _ in range(draw(st.integers(0, most)))]


# The accounts


@pytest.mark.proves("cost-accounts")
@settings(deadline=None)
@given(amounts, deltas)
def test_costs_and_caps_are_exact_but_for_a_rho_that_is_rounded_down(amount: Any, delta: Any) -> None:
    epsilon, exact = exact_amount(amount, "epsilon"), exact_amount(delta, "delta")
    cost, caps = cost_of(ApproxDP(amount, delta)), caps_of(ApproxDP(amount, delta))
    assert cost.epsilon is not None and cost.rho is not None and caps.epsilon is not None and caps.rho is not None
    assert (cost.epsilon * EPSILON_UNIT, Fraction(cost.rho, RHO_UNITS)) == (epsilon, epsilon**2 / 2)
    assert cost.delta * DELTA_UNIT == cost.rho_delta * DELTA_UNIT == exact
    assert (caps.epsilon * EPSILON_UNIT, caps.delta * DELTA_UNIT) == (epsilon, exact / 2)
    assert caps.rho_delta * DELTA_UNIT == exact / 4
    assert Fraction(caps.rho, RHO_UNITS) == largest_rho(epsilon, exact / 4)
    assert cost_of(PureDP(amount)) == Cost(cost.epsilon, 0, cost.rho, 0)
    assert cost_of(ZCDP(amount)) == Cost(None, 0, epsilon * RHO_UNITS, 0)
    assert cost_of(ApproxDP(amount, delta), ZCDP(amount)) == Cost(cost.epsilon, cost.delta, epsilon * RHO_UNITS, 0)
    assert cost_of(NoPrivacy()) == Cost(None, 0, None, 0)


@given(st.fractions(min_value=Fraction(1, 100), max_value=10), st.integers(1, 60), st.sampled_from(["pure", "rho"]))
def test_equal_parts_of_a_budget_are_all_granted_and_nothing_more(whole: Fraction, parts: int, kind: str) -> None:
    budget: PureDP | ZCDP = PureDP(whole) if kind == "pure" else ZCDP(whole)
    _, granted = run(budget, [(part, None) for part in budget.split(parts)])
    assert len(granted) == parts
    totals, granted = run(budget, [(budget / parts, None)] * (parts + 1))
    assert len(granted) == parts
    assert admit(budget, totals, cost_of(type(budget)(Fraction(1, 10**15)))) is None


def test_sums_of_many_denominators_stay_short_and_are_rounded_up() -> None:
    odd = [Fraction(1, 10**9 + 2 * k + 1) for k in range(60)]
    totals, granted = run(PureDP(1), [(PureDP(amount), None) for amount in odd])
    assert len(granted) == 60
    slack = Fraction(totals.epsilon) * EPSILON_UNIT - sum(odd)
    assert 0 <= slack <= Fraction(60, 10**40) and Fraction(totals.epsilon).denominator <= 2**256


# The filters


def run(budget: Loss, steps: list[tuple[Loss, ZCDP | None]]) -> tuple[Totals, list[tuple[Loss, ZCDP | None]]]:
    totals, granted = Totals(), []
    for loss, beside in steps:
        after = admit(budget, totals, cost_of(loss, beside))
        if after is not None:
            assert after.spends == totals.spends + 1
            totals = after
            granted.append((loss, beside))
    return totals, granted


def exact_sums(granted: list[tuple[Loss, ZCDP | None]]) -> tuple[Any, Any]:
    """(ε, δ) and (ρ, δ) sums in exact fractions, from the definitions; ``None`` where an account cannot speak."""
    if any(isinstance(loss, ZCDP) for loss, _ in granted):
        sums = None
    else:
        sums = (
            sum((loss.exact_epsilon for loss, _ in granted), Fraction(0)),  # type: ignore[union-attr]
            sum((getattr(loss, "exact_delta", Fraction(0)) for loss, _ in granted), Fraction(0)),
        )
    rho = rho_delta = Fraction(0)
    for loss, beside in granted:
        if beside is not None:
            rho += beside.exact_rho
        elif isinstance(loss, ZCDP):
            rho += loss.exact_rho
        else:
            rho += loss.exact_epsilon**2 / 2  # type: ignore[union-attr]
            rho_delta += getattr(loss, "exact_delta", Fraction(0))
    return sums, (rho, rho_delta)


@pytest.mark.proves("fully-adaptive-sums")
@pytest.mark.proves("fully-adaptive-zcdp")
@pytest.mark.proves("union-of-filters")
@settings(deadline=None)
@given(budgets, spends())
def test_what_is_admitted_is_within_the_caps_of_one_filter(budget: Any, steps: Any) -> None:
    totals, granted = run(budget, steps)
    sums, concentrated = exact_sums(granted)
    if isinstance(budget, PureDP):
        assert sums is not None and sums[0] <= budget.exact_epsilon and sums[1] == 0
        return
    if isinstance(budget, ZCDP):
        assert concentrated[0] <= budget.exact_rho and concentrated[1] == 0
        return
    epsilon, delta = budget.exact_epsilon, budget.exact_delta
    type_a = sums is not None and sums[0] <= epsilon and sums[1] <= delta / 2
    type_b = concentrated[0] <= largest_rho(epsilon, delta / 4) and concentrated[1] <= delta / 4
    alone = len(granted) == 1 and totals.closed
    if alone:
        by_rho = concentrated[0] <= largest_rho(epsilon, delta) and concentrated[1] == 0
        assert by_rho or (sums is not None and sums[0] <= epsilon and sums[1] <= delta)
    else:
        assert type_a or type_b or not granted


@settings(deadline=None)
@given(budgets, spends())
def test_a_refusal_is_for_good_and_for_all_that_costs_more(budget: Any, steps: Any) -> None:
    totals, _ = run(budget, steps)
    for loss, beside in steps:
        cost = cost_of(loss, beside)
        if admit(budget, totals, cost) is None:
            more = Cost(
                None if cost.epsilon is None else cost.epsilon + 1, cost.delta + 1,
                None if cost.rho is None else cost.rho + 1, cost.rho_delta,
            )  # fmt: skip
            assert admit(budget, totals, more) is None
            after = admit(budget, totals, cost_of(PureDP(1e-9)))
            assert after is None or totals.spends == 0 or admit(budget, after, cost) is None


@settings(deadline=None)
@given(budgets, spends())
def test_what_remains_is_granted_and_one_unit_more_is_not(budget: Any, steps: Any) -> None:
    totals, _ = run(budget, steps)
    left = remaining(budget, totals)
    assert left.epsilon is not None

    def granted(loss: Loss) -> bool:
        return admit(budget, totals, cost_of(loss)) is not None

    epsilon, delta = exact_amount(left.epsilon, "epsilon", zero=True), exact_amount(left.delta, "delta", zero=True)
    if epsilon:
        assert granted(PureDP(left.epsilon))
        assert granted(ApproxDP(left.epsilon, left.delta))
        above = math.nextafter(left.delta, 1.0)
        assert not granted(ApproxDP(left.epsilon, max(exact_amount(above, "delta"), delta + DELTA_UNIT)))
    assert not granted(PureDP(epsilon + EPSILON_UNIT))
    if left.rho is not None:
        rho = exact_amount(left.rho, "rho", zero=True)
        assert not rho or granted(ZCDP(left.rho))
        assert not granted(ZCDP(rho + EPSILON_UNIT))
    else:
        assert not granted(ZCDP(EPSILON_UNIT))


def test_what_remains_is_written_so_that_it_can_be_asked_for() -> None:
    left = remaining(ApproxDP(1.234567891234, 1e-6), Totals())
    assert str(left).startswith("ε = 1.234567891234 (or ρ = 0.0")
    assert str(remaining(PureDP(3), Totals())) == "ε = 3"
    assert str(remaining(ZCDP(0.5), Totals())) == "ε = 1 (or ρ = 0.5)"
    assert str(remaining(NoPrivacy(), Totals())) == "no limit (no privacy)"
    assert remaining(PureDP(Fraction(1, 3)), Totals()).epsilon == 1 / 3
    # A large delta makes zCDP pay for a pure loss above epsilon: the filter grants it, so it is what remains.
    assert remaining(ApproxDP(0.1, 0.1), Totals()).epsilon == pytest.approx(0.28, abs=0.1)
    assert (remaining(ApproxDP(0.1, 0.1), Totals()).epsilon or 0) > 0.1


@pytest.mark.proves("union-of-filters")
def test_one_budget_takes_a_path_of_sums_and_a_path_of_rho_and_not_both() -> None:
    budget = ApproxDP(1, 1e-6)
    _, by_sums = run(budget, [(PureDP(0.5), None)] * 5)
    assert len(by_sums) == 2
    assert 2 * Fraction(1, 8) > largest_rho(Fraction(1), Fraction(1, 4 * 10**6))  # type A only
    totals, by_rho = run(budget, [(PureDP(0.02), None)] * 500)
    assert len(by_rho) > 100  # type B only: the sum of the epsilons is above 2
    assert totals.epsilon > 2 * EPSILON_UNITS
    assert admit(budget, totals, cost_of(PureDP(0.02))) is None
    # A spend in rho alone shuts the sums for good, a large pure one shuts zCDP for good.
    totals, _ = run(budget, [(ZCDP(0.001), None)])
    assert admit(budget, totals, cost_of(PureDP(0.5))) is None
    totals, _ = run(budget, [(PureDP(0.5), None)])
    assert admit(budget, totals, cost_of(ZCDP(0.001))) is None


@pytest.mark.proves("single-spend")
@pytest.mark.parametrize(
    "spend", [ApproxDP(1, 1e-6), ZCDP(largest_rho(Fraction(1), Fraction(1, 10**6))), ApproxDP(0.001, 1e-6)], ids=str
)
def test_a_first_spend_of_the_whole_budget_closes_it(spend: Loss) -> None:
    budget = ApproxDP(1, 1e-6)
    totals = admit(budget, Totals(), cost_of(spend))
    assert totals is not None and totals.closed
    assert admit(budget, totals, cost_of(PureDP(1e-9))) is None
    assert remaining(budget, totals).epsilon == remaining(budget, totals).rho == 0
    earlier = admit(budget, Totals(), cost_of(PureDP(1e-9)))
    assert earlier is not None and not earlier.closed
    assert admit(budget, earlier, cost_of(spend)) is None


@pytest.mark.proves("single-spend")
def test_a_first_spend_above_the_budget_is_refused() -> None:
    budget = ApproxDP(1, 1e-6)
    for spend in (
        ApproxDP(1, Fraction(1, 10**6) + DELTA_UNIT),
        ApproxDP(1 + EPSILON_UNIT, 1e-6),
        ZCDP(largest_rho(Fraction(1), Fraction(1, 10**6)) + EPSILON_UNIT),
        NoPrivacy(),
    ):
        assert admit(budget, Totals(), cost_of(spend)) is None


def test_what_was_spent_is_told_in_the_accounts_that_still_speak() -> None:
    budget = ApproxDP(1, 1e-6)
    totals, _ = run(budget, [(PureDP(0.1), None)])
    assert spent_text(budget, totals) == "ε = 0.1 or ρ = 0.005"
    totals, _ = run(budget, [(ZCDP(0.001), None), (ApproxDP(0.1, 1e-7), None)])
    assert spent_text(budget, totals) == "ρ = 0.006, δ = 1e-07"
    alone = admit(NoPrivacy(), Totals(), cost_of(NoPrivacy()))
    assert alone == Totals(spends=1) and spent_text(NoPrivacy(), alone) == "1 spends"


# Exact adversaries: every adaptive choice, every release, and the worst event at the end


@dataclass(frozen=True)
class Step:
    """A mechanism at its worst pair of data: the laws of its release under D and D′, and its stated guarantee."""

    loss: Loss
    zcdp: ZCDP | None
    laws: tuple[tuple[float, float], ...]


def response(epsilon: float, delta: float = 0.0) -> Step:
    """The pair of laws that any (ε, δ)-DP pair is a function of (Kairouz, Oh & Viswanath 2015)."""
    high = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    low = (1 - delta) / (1 + math.exp(epsilon))
    loss = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    pairs = ((delta, 0.0), (high, low), (low, high), (0.0, delta))
    return Step(loss, None, tuple(pair for pair in pairs if pair != (0.0, 0.0)))


def coarse_gaussian(rho: float, cuts: Iterable[float]) -> Step:
    """Gaussian noise at sensitivity 1, of which an interval is told: ρ-zCDP by post-processing."""
    sigma = 1 / math.sqrt(2 * rho)
    edges = (-math.inf, *cuts, math.inf)

    def between(a: float, b: float) -> float:
        return float(ndtr(b) - ndtr(a) if b < 0 else ndtr(-a) - ndtr(-b))  # from the nearer tail: no cancellation

    laws = [(between((a - 1) / sigma, (b - 1) / sigma), between(a / sigma, b / sigma)) for a, b in pairwise(edges)]
    return Step(ZCDP(rho), None, tuple(laws))


def worst(steps: list[Step], epsilon: float, rounds: int, admits: Callable[[Totals, Cost], Totals | None]) -> float:
    """The largest max over events S of P(S) − e^ε Q(S) that an adaptive analyst can reach in some rounds."""

    def value(p: float, q: float, totals: Totals, left: int) -> float:
        best = max(0.0, p - math.exp(epsilon) * q)
        if left == 0 or p == 0 or q == 0:
            return best
        for step in steps:
            after = admits(totals, cost_of(step.loss, step.zcdp))
            if after is not None:
                best = max(best, sum(value(p * a, q * b, after, left - 1) for a, b in step.laws))
        return best

    return value(1.0, 1.0, Totals(), rounds)


@pytest.mark.proves("fully-adaptive-sums")
@pytest.mark.proves("fully-adaptive-zcdp")
@pytest.mark.proves("union-of-filters")
@pytest.mark.proves("single-spend")
def test_the_best_adaptive_adversary_stays_within_epsilon_and_delta() -> None:
    budget = ApproxDP(1, 0.2)
    rho = float(largest_rho(Fraction(1), Fraction(1, 20)))
    steps = [response(0.5), response(0.5, 0.05), response(1, 0.2), coarse_gaussian(rho / 2, (0.0, 1.0, 2.0))]
    reached = worst(steps, 1.0, 4, lambda totals, cost: admit(budget, totals, cost))
    assert 0.199 < reached <= 0.2 + 1e-12  # the single spend reaches delta

    # Without the single spend: the shares of delta bind.
    def union(totals: Totals, cost: Cost) -> Totals | None:
        after = admit(budget, totals, cost)
        return None if after is None or after.closed else after

    assert 0.09 < worst(steps, 1.0, 4, union) <= 0.2 + 1e-12


@pytest.mark.parametrize("wrong", [ApproxDP(1.5, 0.2), ApproxDP(1, 0.3), ApproxDP(2, 0.5)], ids=str)
def test_the_adversary_catches_a_filter_of_a_larger_budget(wrong: ApproxDP) -> None:
    steps = [response(0.5), response(1, 0.2), response(1, 0.3)]
    assert worst(steps, 1.0, 3, lambda totals, cost: admit(wrong, totals, cost)) > 0.2


@pytest.mark.proves("fully-adaptive-zcdp")
@pytest.mark.parametrize("order", [1.5, 2.0, 5.0, 20.0])
def test_the_best_adaptive_adversary_of_a_zcdp_budget_stays_within_rho(order: float) -> None:
    budget = ZCDP(0.5)
    cuts = np.arange(-120, 121) / 4  # order 20 looks at 20 sensitivities away
    steps = [response(0.5), coarse_gaussian(0.1, cuts), coarse_gaussian(0.25, cuts)]

    def moment(totals: Totals, left: int) -> float:
        best = 1.0
        for step in steps if left else ():
            after = admit(budget, totals, cost_of(step.loss))
            if after is not None:
                # Adaptive choices cannot depend on anything but the totals here: the moment factors.
                logs = [order * math.log(p) + (1 - order) * math.log(q) for p, q in step.laws if p and q]
                best = max(best, sum(map(math.exp, logs)) * moment(after, left - 1))
        return best

    divergence = math.log(moment(Totals(), 6)) / (order - 1)
    assert 0.95 * order * 0.5 < divergence <= order * 0.5 * (1 + 1e-12)


# Other libraries


@pytest.mark.proves("union-of-filters")
@pytest.mark.parametrize("seed", range(3))
def test_what_the_union_grants_is_within_the_budget_by_dp_accounting(seed: int) -> None:
    rng = np.random.default_rng(seed)
    epsilon, delta = [(1.0, 1e-6), (2.0, 1e-5), (0.5, 1e-4)][seed]
    budget = ApproxDP(epsilon, delta)
    totals, accountant, granted = Totals(), PLDAccountant(value_discretization_interval=1e-3), 0
    for _ in range(200):
        size = epsilon * float(rng.uniform(0.005, 0.05))
        gaussian = bool(rng.random() < 0.5)
        after = admit(budget, totals, cost_of(ZCDP(size**2 / 2) if gaussian else PureDP(size)))
        if after is not None:
            totals, granted = after, granted + 1
            accountant.compose(dp_event.GaussianDpEvent(1 / size) if gaussian else dp_event.LaplaceDpEvent(1 / size))
    assert granted > 30
    found = accountant.get_epsilon(delta)
    assert 0.3 * epsilon < found <= epsilon
