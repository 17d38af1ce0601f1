"""What a call may cost: the checks of ``loss=`` that every task and the ledger make before anything else."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpcausal.errors import BudgetExceededError, LossError, UnprovenError
from dpcausal.privacy.composition import Totals, remaining, spent_text
from dpcausal.privacy.loss import EPSILON_UNITS, LARGE_EPSILON, ZCDP, ApproxDP, Loss, NoPrivacy, PureDP

LEAST_DELTA = Fraction(1, 10**18)

LARGEST_BUDGET = 10**6
"""No larger ε or ρ is taken as a budget: integer totals would come near their end."""


def unfit(loss: Any) -> LossError:
    """Return the error for what is no loss; a bare number gets the loss it may have been meant as."""
    is_number = isinstance(loss, (int, float)) and not isinstance(loss, bool)
    meant = f"; PureDP({loss!r})?" if is_number and 0 < loss <= LARGE_EPSILON else ""
    return LossError(f"loss must be PureDP, ApproxDP, ZCDP or NoPrivacy, got {type(loss).__name__}{meant}")


def check_budget(budget: Loss, accept_large_epsilon: bool = False) -> Loss:
    """Refuse what is no budget of a ledger with privacy, and an ε above 20 unless the caller accepts it."""
    if type(budget) not in (PureDP, ApproxDP, ZCDP) or budget.exact:
        raise LossError("budget must be PureDP, ApproxDP or ZCDP")
    amount = budget.exact_rho if isinstance(budget, ZCDP) else budget.exact_epsilon
    if amount > LARGEST_BUDGET:
        raise LossError("a budget's epsilon or rho must be at most one million")
    check_epsilon_consent(budget, accept_large_epsilon)
    return budget


def check_kind(loss: Loss, budget: Loss) -> None:
    """Refuse what is no loss, and a loss without privacy from a budget with it, or the reverse."""
    if type(loss) not in (PureDP, ApproxDP, ZCDP, NoPrivacy):
        raise unfit(loss)
    if loss.exact and not budget.exact:
        raise LossError("NoPrivacy() is taken by Ledger.without_privacy() only")
    if budget.exact and not loss.exact:
        raise LossError("a ledger without privacy takes NoPrivacy() only")


def refusal(loss: Loss, budget: Loss, totals: Totals) -> BudgetExceededError:
    """Return the error of a loss that a budget does not admit after what was spent of it."""
    reason = ""
    if isinstance(budget, PureDP) and not isinstance(loss, PureDP):
        reason = "a PureDP budget pays for pure losses only: give a PureDP loss, or begin with a budget of ApproxDP"
    if isinstance(budget, ZCDP) and isinstance(loss, ApproxDP):
        reason = "a ZCDP budget pays for pure and zCDP losses only"
    both = isinstance(budget, ApproxDP) and isinstance(loss, ApproxDP) and loss.exact_delta > budget.exact_delta / 2
    if both and totals.spends > 0:
        reason = (
            "after a first spend each of the two counts, of epsilon and of rho, has half of the budget's delta: "
            "ask with a smaller delta, or begin with a budget of a larger one"
        )
    return BudgetExceededError(str(loss), spent_text(budget, totals), str(remaining(budget, totals)), reason)


def check_epsilon_consent(loss: Loss, accept_large_epsilon: bool) -> None:
    """Refuse an ε above 20, or a ρ that is worth more, unless the caller accepts it."""
    if isinstance(loss, NoPrivacy):
        return
    if isinstance(loss, ZCDP):
        large = loss.exact_rho > LARGE_EPSILON**2 // 2
    elif isinstance(loss, (PureDP, ApproxDP)):
        large = loss.exact_epsilon > LARGE_EPSILON
    else:
        raise unfit(loss)
    if large and accept_large_epsilon is not True:
        raise LossError(
            f"{loss} protects nobody in practice: above epsilon {LARGE_EPSILON} say accept_large_epsilon=True"
        )


def charged_loss(
    loss: Loss, kinds: tuple[type[Loss], ...], method: str, least_epsilon: Fraction = Fraction(0)
) -> tuple[Loss, str]:
    """Return what a method that spends some kinds of loss spends of one, and a note if that is not the loss itself.

    A method of pure ε spends an (ε, δ) loss as ε alone, which is stronger, and refuses a ρ with the pure ε that costs
    it; a method of (ε, δ) alone needs δ above 0.
    """
    note = ""
    if not isinstance(loss, (PureDP, ApproxDP, ZCDP, NoPrivacy)):
        raise unfit(loss)
    if isinstance(loss, ApproxDP) and ApproxDP not in kinds and PureDP in kinds:
        asked, loss = loss, PureDP(loss.exact_epsilon)
        note = f"asked {asked}; {method} needs no delta and spent {loss}"
    small_delta = kinds == (ApproxDP,) and isinstance(loss, ApproxDP) and loss.exact_delta < LEAST_DELTA
    if small_delta or not (loss.exact or isinstance(loss, kinds)):
        raise LossError(f"{method} {_what_it_takes(loss, kinds)}")
    if isinstance(loss, (PureDP, ApproxDP)) and loss.exact_epsilon < least_epsilon:
        raise LossError(f"{method} needs epsilon of at least {_short(least_epsilon)}: its noise would hide any answer")
    return loss, note


def _what_it_takes(loss: Loss, kinds: tuple[type[Loss], ...]) -> str:
    if not kinds:
        return "has no private release: it takes NoPrivacy() and a ledger without privacy"
    if isinstance(loss, ZCDP) and PureDP in kinds:
        # In whole units of 1e-9, rounded down: what is offered must not cost more than was asked.
        epsilon = Decimal(math.isqrt(math.floor(2 * loss.exact_rho * EPSILON_UNITS**2))) / EPSILON_UNITS
        return f"is paid for in pure epsilon: give PureDP({epsilon:f}), which costs at most {loss}"
    if ZCDP in kinds:
        return "adds Gaussian noise: give loss=ApproxDP(epsilon, 1e-6) or ZCDP(rho)"
    return f"is paid for in ApproxDP with delta above 0, at least {_short(LEAST_DELTA)}"


def _short(amount: Fraction) -> str:
    return f"{float(amount):g}".replace("e-0", "e-")


def check_unproven_consent(accept_unproven: bool, variant: str) -> None:
    """Refuse a published variant whose proof fails unless the caller accepts it."""
    if accept_unproven is not True:
        raise UnprovenError(
            f"{variant} is not private as published: to replicate it say accept_unproven=True, on an in-memory ledger "
            "or one without privacy"
        )
