"""Composition theorems as pure functions, and the filter that admits a spend.

The claims and proofs are in ``composition.md``; nothing here keeps state or reads data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpcausal.errors import LossError
from dpcausal.privacy.loss import (
    DELTA_UNITS,
    EPSILON_UNITS,
    ZCDP,
    Amount,
    ApproxDP,
    Loss,
    NoPrivacy,
    PureDP,
    exact_amount,
    format_amount,
    largest_rho,
)
from dpcausal.privacy.neighbours import Relation

SATURATED = 2**61
"""Totals stop here: far above every cap, far below the largest 64-bit integer."""


@dataclass(frozen=True)
class Cost:
    """One mechanism's cost in whole units under two accounts, each rounded up.

    Attributes
    ----------
    epsilon, delta : int or None, int
        (ε, δ) in units of 1e-9 and 1e-18; ``None`` where no such guarantee is claimed.
    rho, rho_delta : int or None, int
        δ-approximate ρ-zCDP in units of 1e-9 and 1e-18; ``None`` where no such guarantee is claimed.
    """

    epsilon: int | None
    delta: int
    rho: int | None
    rho_delta: int


def _units(amount: Fraction, scale: int) -> int:
    return min(SATURATED, math.ceil(amount * scale))


def cost_of(loss: Loss, zcdp: ZCDP | None = None) -> Cost:
    """Return the cost of a loss under both accounts.

    Parameters
    ----------
    loss : Loss
        What the mechanism is charged.
    zcdp : ZCDP, optional
        A zCDP guarantee that the same mechanism also has, as Gaussian noise does under an (ε, δ) loss.

    Notes
    -----
    ε-DP is ε²/2-zCDP; (ε, δ)-DP is δ-approximate ε²/2-zCDP.  *Source*: Bun & Steinke (2016), Propositions 1.4
    and Lemma 8.8; claim ``cost-accounts``.
    """
    if isinstance(loss, NoPrivacy):
        return Cost(None, 0, None, 0)
    if isinstance(loss, ZCDP):
        return Cost(None, 0, _units(loss.exact_rho, EPSILON_UNITS), 0)
    epsilon = _units(loss.exact_epsilon, EPSILON_UNITS)
    delta = _units(loss.exact_delta, DELTA_UNITS) if isinstance(loss, ApproxDP) else 0
    if zcdp is not None:
        return Cost(epsilon, delta, _units(zcdp.exact_rho, EPSILON_UNITS), 0)
    return Cost(epsilon, delta, _units(loss.exact_epsilon**2 / 2, EPSILON_UNITS), delta)


@dataclass(frozen=True)
class Totals:
    """What a ledger has spent, under both accounts, in whole units.

    ``sums_open`` and ``zcdp_open`` say whether each account could still speak for every spend so far;
    ``closed`` marks a ledger that a single spend of more than one account's share used up.
    """

    spends: int = 0
    epsilon: int = 0
    delta: int = 0
    rho: int = 0
    rho_delta: int = 0
    sums_open: bool = True
    zcdp_open: bool = True
    closed: bool = False


@dataclass(frozen=True)
class Caps:
    """The filter of a budget: the most that each account may hold; ``None`` where the account is shut."""

    epsilon: int | None
    delta: int
    rho: int | None
    rho_delta: int


def caps_of(budget: Loss) -> Caps:
    """Return the caps of a budget, rounded down.

    An (ε, δ) budget is the union of two filters, each with half of δ: plain sums within (ε, δ/2); and approximate
    zCDP within a fixed box, δ's within δ/4 and ρ within the largest ρ that implies (ε, δ/4).  The box is fixed in
    advance: choosing its shape by what was spent would not be covered by the theorem.  Claim ``union-of-filters``.
    """
    if isinstance(budget, NoPrivacy):
        return Caps(None, 0, None, 0)
    if isinstance(budget, ZCDP):
        return Caps(None, 0, math.floor(budget.exact_rho * EPSILON_UNITS), 0)
    epsilon = math.floor(budget.exact_epsilon * EPSILON_UNITS)
    if isinstance(budget, PureDP) or budget.exact_delta == 0:
        return Caps(epsilon, 0, None, 0)
    rho = largest_rho(budget.exact_epsilon, budget.exact_delta / 4)
    return Caps(
        epsilon,
        math.floor(budget.exact_delta * DELTA_UNITS / 2),
        math.floor(rho * EPSILON_UNITS),
        math.floor(budget.exact_delta * DELTA_UNITS / 4),
    )


def _plus(left: int, right: int) -> int:
    return min(SATURATED, left + right)


def _fits_alone(budget: Loss, cost: Cost) -> bool:
    """Return whether one spend, and nothing after it, is within the whole (ε, δ) budget."""
    if not isinstance(budget, ApproxDP):
        return False
    epsilon, delta = budget.exact_epsilon, budget.exact_delta
    by_sums = (
        cost.epsilon is not None
        and cost.epsilon <= math.floor(epsilon * EPSILON_UNITS)
        and cost.delta <= math.floor(delta * DELTA_UNITS)
    )
    by_zcdp = (
        cost.rho is not None
        and cost.rho_delta == 0
        and cost.rho <= math.floor(largest_rho(epsilon, delta) * EPSILON_UNITS)
    )
    return by_sums or by_zcdp


def admit(budget: Loss, totals: Totals, cost: Cost) -> Totals | None:
    """Return the totals after a spend, or ``None`` if the budget's filter refuses it.

    Constant time: it depends on the totals alone, not on how many spends made them.

    Guarantee
    ---------
    Whatever is admitted, chosen adaptively with all earlier releases in view, is within ``budget``.
    *Source*: claims ``fully-adaptive-sums`` (Rogers et al. 2016), ``fully-adaptive-zcdp`` (Whitehouse et al.
    2023), ``union-of-filters`` and ``single-spend``.
    """
    if totals.closed:
        return None
    if isinstance(budget, NoPrivacy):
        return Totals(spends=totals.spends + 1)
    caps = caps_of(budget)
    after = Totals(
        spends=totals.spends + 1,
        epsilon=_plus(totals.epsilon, cost.epsilon or 0),
        delta=_plus(totals.delta, cost.delta),
        rho=_plus(totals.rho, cost.rho or 0),
        rho_delta=_plus(totals.rho_delta, cost.rho_delta),
        sums_open=totals.sums_open and cost.epsilon is not None,
        zcdp_open=totals.zcdp_open and cost.rho is not None,
    )
    by_sums = (
        caps.epsilon is not None
        and after.sums_open
        and after.epsilon <= caps.epsilon
        and after.delta <= caps.delta
    )
    by_zcdp = (
        caps.rho is not None and after.zcdp_open and after.rho <= caps.rho and after.rho_delta <= caps.rho_delta
    )
    if by_sums or by_zcdp:
        return after
    if totals.spends == 0 and _fits_alone(budget, cost):
        return Totals(**{**after.__dict__, "closed": True})
    return None


@dataclass(frozen=True)
class Remaining:
    """What a next spend may be: the largest pure ε, the δ beside it, and the largest ρ; zeros when used up.

    The three are alternatives, not a sum.  ``rho`` is ``None`` for a pure budget, ``epsilon`` for no privacy.
    """

    epsilon: float | None
    delta: float
    rho: float | None

    def __str__(self) -> str:
        if self.epsilon is None:
            return "no limit (no privacy)"
        parts = [f"epsilon {self.epsilon:.9g}"]
        if self.delta:
            parts.append(f"delta {self.delta:.9g}")
        if self.rho is not None:
            parts.append(f"or rho {self.rho:.9g}")
        return " ".join(parts)


def remaining(budget: Loss, totals: Totals) -> Remaining:
    """Return what is left of a budget: each number is the largest single spend that ``admit`` would grant."""
    if isinstance(budget, NoPrivacy):
        return Remaining(None, 0.0, None)
    caps = caps_of(budget)
    if totals.closed:
        return Remaining(0.0, 0.0, None if caps.rho is None else 0.0)
    if totals.spends == 0 and isinstance(budget, ApproxDP) and caps.rho is not None:
        return Remaining(budget.epsilon, budget.delta, float(largest_rho(budget.exact_epsilon, budget.exact_delta)))
    left_sums = left_rho = 0
    delta = 0
    if caps.epsilon is not None and totals.sums_open and totals.delta <= caps.delta:
        left_sums = max(0, caps.epsilon - totals.epsilon)
        delta = caps.delta - totals.delta if left_sums else 0
    if caps.rho is not None and totals.zcdp_open and totals.rho_delta <= caps.rho_delta:
        left_rho = max(0, caps.rho - totals.rho)
    pure_by_rho = math.isqrt(2 * left_rho * EPSILON_UNITS)  # ceil(ε²/2) ≤ left ⟺ ε ≤ √(2·left)
    return Remaining(
        max(left_sums, pure_by_rho) / EPSILON_UNITS,
        delta / DELTA_UNITS,
        None if caps.rho is None else left_rho / EPSILON_UNITS,
    )


def spent_text(budget: Loss, totals: Totals) -> str:
    """Return what was spent, in words, in the accounts that the budget is counted in."""
    parts = []
    caps = caps_of(budget)
    if caps.epsilon is not None and totals.sums_open:
        parts.append(f"epsilon {format_amount(Fraction(totals.epsilon, EPSILON_UNITS))}")
        if totals.delta:
            parts.append(f"delta {format_amount(Fraction(totals.delta, DELTA_UNITS))}")
    if caps.rho is not None and totals.zcdp_open:
        parts.append(f"{'or ' if parts else ''}rho {format_amount(Fraction(totals.rho, EPSILON_UNITS))}")
        if totals.rho_delta:
            parts.append(f"delta {format_amount(Fraction(totals.rho_delta, DELTA_UNITS))}")
    return " ".join(parts) if parts else f"{totals.spends} spends"


def basic(losses: Sequence[PureDP | ApproxDP]) -> ApproxDP:
    """Return the sum of (ε, δ) losses: basic composition.

    Examples
    --------
    >>> basic([PureDP(0.1), ApproxDP(0.2, 1e-6)])
    ApproxDP(0.3, 1e-06)
    """
    if not losses:
        raise LossError("composition needs at least one loss")
    delta = sum((loss.exact_delta for loss in losses if isinstance(loss, ApproxDP)), Fraction(0))
    return ApproxDP(sum((loss.exact_epsilon for loss in losses), Fraction(0)), delta)


def advanced(loss: PureDP | ApproxDP, times: int, slack: Amount) -> ApproxDP:
    """Return k-fold composition of one (ε, δ) loss with slack δ'.

    ε' = ε √(2k log(1/δ')) + k ε (e^ε − 1) / (e^ε + 1),  δ_total = kδ + δ'

    where k is ``times`` and δ' is ``slack``.  *Source*: Dwork, Rothblum & Vadhan (2010) with the tight expected
    loss ε·tanh(ε/2); Dwork & Roth (2014), Theorem 3.20 has the looser k ε (e^ε − 1).  Rounded up by 1e-10.
    """
    extra = exact_amount(slack, "slack", below_one=True)
    if isinstance(times, bool) or not isinstance(times, int) or times < 1:
        raise LossError("times must be a whole number of at least 1")
    epsilon = loss.epsilon
    total = epsilon * math.sqrt(2 * times * -math.log(float(extra))) + times * epsilon * math.tanh(epsilon / 2)
    delta = loss.exact_delta if isinstance(loss, ApproxDP) else Fraction(0)
    return ApproxDP(total * (1 + 1e-10), times * delta + extra)


def zcdp(losses: Sequence[PureDP | ZCDP]) -> ZCDP:
    """Return the sum in zCDP, a pure ε counting ε²/2.

    Examples
    --------
    >>> zcdp([PureDP(1), ZCDP(0.25)])
    ZCDP(0.75)
    """
    if not losses:
        raise LossError("composition needs at least one loss")
    return ZCDP(
        sum(
            (loss.exact_rho if isinstance(loss, ZCDP) else loss.exact_epsilon**2 / 2 for loss in losses),
            Fraction(0),
        )
    )


def parallel(losses: Sequence[PureDP], relation: Relation, *, partition: Literal["by position", "by value"]) -> PureDP:
    """Return the loss of mechanisms that run on disjoint parts of the rows.

    A part chosen by position (a public split) keeps a replaced row where it is: the largest ε.  A part chosen by
    the row's own values can lose the row to another part: under replace-one two parts change, the two largest ε
    add; under add-or-remove-one one part changes.  Claim ``parallel-composition``.

    Examples
    --------
    >>> parallel([PureDP(1), PureDP(0.5)], Relation.REPLACE_ONE, partition="by value")
    PureDP(1.5)
    """
    if partition not in ("by position", "by value"):
        raise LossError("partition must be 'by position' or 'by value'")
    if not losses:
        raise LossError("composition needs at least one loss")
    ordered = sorted((loss.exact_epsilon for loss in losses), reverse=True)
    if relation is Relation.REPLACE_ONE and partition == "by value":
        return PureDP(sum(ordered[:2], Fraction(0)))
    if relation is Relation.ADD_OR_REMOVE_ONE and partition == "by position":
        raise LossError("a split by position needs a public number of rows: use replace-one")
    return PureDP(ordered[0])


def subsampled(loss: PureDP | ApproxDP, taken: int, rows: int) -> ApproxDP:
    """Return the loss of a mechanism run on a secret uniform subset of rows, replace-one, without replacement.

    ε' = log(1 + (m/n)(e^ε − 1)),  δ' = (m/n) δ

    where m is ``taken`` and n is ``rows``.  *Source*: Balle, Barthe & Gaboardi (2018), Theorem 9.  The subset must
    be drawn with secret bits.  Rounded up by 1e-10.
    """
    if not (isinstance(taken, int) and isinstance(rows, int) and 1 <= taken <= rows):
        raise LossError("a subsample takes between 1 and all rows")
    delta = loss.exact_delta if isinstance(loss, ApproxDP) else Fraction(0)
    if taken == rows:
        return ApproxDP(loss.exact_epsilon, delta)
    share = Fraction(taken, rows)
    return ApproxDP(math.log1p(float(share) * math.expm1(loss.epsilon)) * (1 + 1e-10), share * delta)
