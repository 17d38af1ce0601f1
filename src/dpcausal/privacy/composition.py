"""What a spend costs under two accounts, and the filter that admits it.

The claims and proofs are in ``composition.md``; nothing here keeps state or reads data.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from dpcausal.privacy.loss import (
    DELTA_UNITS,
    EPSILON_UNITS,
    RHO_UNITS,
    ZCDP,
    ApproxDP,
    Loss,
    exact_amount,
    format_amount,
    largest_rho,
)

FINEST, LONGEST = 10**40, 2**256
"""A total whose denominator passes ``LONGEST`` is rounded up to a multiple of 1/``FINEST``, so that sums stay short."""


Amount: TypeAlias = int | Fraction
"""A number of units, exact."""


@dataclass(frozen=True)
class Cost:
    """Amounts under two accounts, exact: (ε, δ) in units of 1e-9 and 1e-18; δ-approximate ρ-zCDP in units of
    5e-19 for ρ. Of a mechanism what it costs, of a budget the caps: the most that each account may hold.  ``None``
    where nothing is claimed, or the account is shut."""

    epsilon: Amount | None
    delta: Amount
    rho: Amount | None
    rho_delta: Amount


def _in_units(epsilon: Fraction | None, delta: Amount, rho: Fraction | None, rho_delta: Amount) -> Cost:
    amounts = [(epsilon, EPSILON_UNITS), (delta, DELTA_UNITS), (rho, RHO_UNITS), (rho_delta, DELTA_UNITS)]
    units: list[Any] = [None if amount is None else amount * scale for amount, scale in amounts]
    return Cost(*(one.numerator if one is not None and one.denominator == 1 else one for one in units))


def cost_of(loss: Loss, zcdp: ZCDP | None = None) -> Cost:
    """Return the cost of a loss under both accounts; ``zcdp`` is a guarantee that the same mechanism also has.

    ε-DP is ε²/2-zCDP; (ε, δ)-DP is δ-approximate ε²/2-zCDP.  *Source*: Bun & Steinke (2016), Propositions 1.4
    and Lemma 8.8; claim ``cost-accounts``.
    """
    if loss.exact:
        return Cost(None, 0, None, 0)
    if isinstance(loss, ZCDP):
        return _in_units(None, 0, loss.exact_rho, 0)
    delta = loss.exact_delta if isinstance(loss, ApproxDP) else 0
    if zcdp is not None:
        return _in_units(loss.exact_epsilon, delta, zcdp.exact_rho, 0)
    return _in_units(loss.exact_epsilon, delta, loss.exact_epsilon**2 / 2, delta)


class Totals(NamedTuple):
    """What a ledger has spent, under both accounts, in units as ``Cost``. ``sums_open`` and ``zcdp_open`` say whether
    each account could still speak for every spend so far; ``closed`` marks a ledger that a single spend of more than
    one account's share used up."""

    spends: int = 0
    epsilon: Amount = 0
    delta: Amount = 0
    rho: Amount = 0
    rho_delta: Amount = 0
    sums_open: bool = True
    zcdp_open: bool = True
    closed: bool = False


def caps_of(budget: Loss) -> Cost:
    """Return the caps of a budget, exact but for ρ, which is rounded down. An (ε, δ) budget is the union of two
    filters, each with half of δ: plain sums within (ε, δ/2); and approximate zCDP within a fixed box, δ's within δ/4
    and ρ within the largest ρ that implies (ε, δ/4).  The box is fixed in advance: choosing its shape by what was spent
    would not be covered by the theorem.  Claim ``union-of-filters``."""
    if budget.exact or isinstance(budget, ZCDP):
        return cost_of(budget)
    epsilon, delta = budget.exact_epsilon, budget.exact_delta if isinstance(budget, ApproxDP) else Fraction(0)
    if delta == 0:
        return _in_units(epsilon, 0, None, 0)
    return _in_units(epsilon, delta / 2, largest_rho(epsilon, delta / 4), delta / 4)


def _single_caps(budget: ApproxDP) -> Cost:
    """Return the caps of one spend that nothing follows: all of δ, under either account.  Claim ``single-spend``."""
    epsilon, delta = budget.exact_epsilon, budget.exact_delta
    return _in_units(epsilon, delta, largest_rho(epsilon, delta), 0)


def _sum_of_amounts(left: Amount, right: Amount) -> Amount:
    total = left + right if right else left
    if type(total) is int:
        return total
    if total.denominator > LONGEST:
        total = Fraction(math.ceil(total * FINEST), FINEST)
    return total.numerator if total.denominator == 1 else total


def _within_caps(caps: Cost, totals: Totals) -> bool:
    by_sums = (
        caps.epsilon is not None and totals.sums_open and totals.epsilon <= caps.epsilon and totals.delta <= caps.delta
    )
    by_zcdp = (
        caps.rho is not None and totals.zcdp_open and totals.rho <= caps.rho and totals.rho_delta <= caps.rho_delta
    )
    return by_sums or by_zcdp


def admit(budget: Loss, totals: Totals, cost: Cost, caps: Cost | None = None) -> Totals | None:
    """Return the totals after a spend, or ``None`` if the budget's filter refuses it.

    Constant time: it depends on the totals alone, not on how many spends made them.  *Guarantee*: whatever is admitted,
    chosen adaptively with all earlier releases in view, is within ``budget``.  *Source*: claims
    ``fully-adaptive-sums`` (Rogers et al. 2016), ``fully-adaptive-zcdp`` (Whitehouse et al. 2023), ``union-of-filters``
    and ``single-spend``.
    """
    if totals.closed:
        return None
    if budget.exact:
        return Totals(spends=totals.spends + 1)
    after = Totals(
        spends=totals.spends + 1,
        epsilon=_sum_of_amounts(totals.epsilon, cost.epsilon or 0),
        delta=_sum_of_amounts(totals.delta, cost.delta),
        rho=_sum_of_amounts(totals.rho, cost.rho or 0),
        rho_delta=_sum_of_amounts(totals.rho_delta, cost.rho_delta),
        sums_open=totals.sums_open and cost.epsilon is not None,
        zcdp_open=totals.zcdp_open and cost.rho is not None,
    )
    if _within_caps(caps or caps_of(budget), after):
        return after
    if totals.spends == 0 and isinstance(budget, ApproxDP) and _within_caps(_single_caps(budget), after):
        return after._replace(closed=True)
    return None


def renewed(caps: Cost, totals: Totals) -> Totals:
    """Return the totals under larger caps: a first spend that used up the smaller budget may now be one of several."""
    return totals._replace(closed=totals.closed and not _within_caps(caps, totals))


@dataclass(frozen=True)
class Remaining:
    """What a next spend may be: the largest pure ε, the largest δ beside that ε, and the largest ρ; zeros if none.
    ``PureDP(epsilon)``, ``ApproxDP(epsilon, delta)`` and ``ZCDP(rho)`` are alternatives: each would be granted, and
    none of a unit of 1e-9 more.  A number that no float writes exactly is rounded down.  ``rho`` is ``None`` for a pure
    budget, ``epsilon`` for no privacy."""

    epsilon: float | None
    delta: float
    rho: float | None

    def __str__(self) -> str:
        if self.epsilon is None:
            return "no limit (no privacy)"
        return f"ε = {_shortest_decimal(self.epsilon)}{f' (or ρ = {_shortest_decimal(self.rho)})' if self.rho else ''}"


def _shortest_decimal(value: float) -> str:
    return repr(value).removesuffix(".0")


def _float_below(units: Amount, scale: int) -> float:
    exact = Fraction(units) / scale
    value = float(exact)
    while exact_amount(value, "amount", zero=True) > exact:
        value = math.nextafter(value, 0.0)
    return value


def remaining(budget: Loss, totals: Totals) -> Remaining:
    """Return what is left of a budget: each number is the largest single spend that ``admit`` would grant. The largest
    ε is the larger of what is left of the plain sums and what the ρ that is left pays for, ε²/2 ≤ ρ: √(2ρ), rounded
    down to whole units."""
    if budget.exact:
        return Remaining(None, 0.0, None)
    filters = [caps_of(budget)]
    if totals.spends == 0 and isinstance(budget, ApproxDP) and budget.exact_delta > 0:
        filters.append(_single_caps(budget))
    options, rho = list[tuple[Amount, Amount]]([(0, 0)]), Fraction(0)
    for caps in filters if not totals.closed else ():
        if caps.epsilon is not None and totals.sums_open and totals.delta <= caps.delta:
            options.append((caps.epsilon - totals.epsilon, caps.delta - totals.delta))
        if caps.rho is not None and totals.zcdp_open and totals.rho_delta <= caps.rho_delta:
            left = Fraction(max(0, caps.rho - totals.rho))
            rho = max(rho, left)
            options.append((math.isqrt(math.floor(left)), caps.rho_delta - totals.rho_delta))
    epsilon = max(most for most, _ in options)
    delta = max(delta_left for most, delta_left in options if most == epsilon) if epsilon else 0
    return Remaining(
        _float_below(epsilon, EPSILON_UNITS),
        _float_below(delta, DELTA_UNITS),
        None if filters[0].rho is None else _float_below(rho, RHO_UNITS),
    )


def spent_text(budget: Loss, totals: Totals) -> str:
    caps, accounts = caps_of(budget), list[str]()

    def account(symbol: str, amount: Fraction, delta: Amount) -> None:
        delta_text = f", δ = {format_amount(Fraction(delta, DELTA_UNITS))}" if delta else ""
        accounts.append(f"{symbol} = {format_amount(amount)}{delta_text}")

    if caps.epsilon is not None and totals.sums_open:
        account("ε", Fraction(totals.epsilon, EPSILON_UNITS), totals.delta)
    if caps.rho is not None and totals.zcdp_open:
        account("ρ", Fraction(totals.rho, RHO_UNITS), totals.rho_delta)
    return " or ".join(accounts) or f"{totals.spends} spends"
