"""What a call may cost: the checks of ``loss=`` that every task and the ledger make before anything else."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpcausal.errors import BudgetExceededError, LossError, Setting, UnprovenError
from dpcausal.privacy.composition import Totals, remaining, spent_text
from dpcausal.privacy.loss import EPSILON_UNITS, LARGE_EPSILON, ZCDP, ApproxDP, Loss, NoPrivacy, PureDP

LEAST_DELTA = Fraction(1, 10**18)

LARGEST_BUDGET = 10**6
"""No larger ε or ρ is taken as a budget: integer totals would come near their end."""


def unfit(loss: Any) -> LossError:
    """Return the error for what is no loss; a bare number gets the loss it may have been meant as."""
    is_number = isinstance(loss, (int, float)) and not isinstance(loss, bool)
    meant = f"; PureDP({loss!r})?" if is_number and 0 < loss <= LARGE_EPSILON else ""
    text = f"loss must be PureDP, ApproxDP, ZCDP or NoPrivacy, got {type(loss).__name__}{meant}"
    return LossError(text, argument="loss", rule="type", value=loss)


def check_budget(budget: Loss, accept_large_epsilon: bool = False) -> Loss:
    """Refuse what is no budget of a ledger with privacy, and an ε above 20 unless the caller accepts it."""
    if type(budget) not in (PureDP, ApproxDP, ZCDP) or budget.exact:
        raise LossError("budget must be PureDP, ApproxDP or ZCDP", argument="budget", rule="type")
    amount = budget.exact_rho if isinstance(budget, ZCDP) else budget.exact_epsilon
    if amount > LARGEST_BUDGET:
        text = "a budget's epsilon or rho must be at most one million"
        raise LossError(text, argument="budget", rule="range", value=budget)
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
        reason = "a budget without delta pays for losses without delta only: leave it out, or use a budget with a delta"
    if isinstance(budget, ZCDP) and isinstance(loss, ApproxDP):
        reason = "a budget in rho pays for losses in rho, and in epsilon without delta, only"
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
            f"{loss} gives no meaningful protection", argument="loss", rule="large-epsilon", value=loss,
            hint=(f"to use more than epsilon {LARGE_EPSILON} anyway set ", Setting("accept_large_epsilon", True)),
        )  # fmt: skip


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
        raise _wrong_kind(loss, kinds, method)
    if isinstance(loss, (PureDP, ApproxDP)) and loss.exact_epsilon < least_epsilon:
        text = f"{method} needs epsilon of at least {_short(least_epsilon)}: its noise would hide any answer"
        raise LossError(text, argument="loss", rule="least-epsilon", value=loss)
    return loss, note


def _wrong_kind(loss: Loss, kinds: tuple[type[Loss], ...], method: str) -> LossError:
    if not kinds:
        text = f"{method} has no private release: it takes NoPrivacy() and a ledger without privacy"
        return LossError(text, argument="loss", rule="no-release", value=loss)
    if isinstance(loss, ZCDP) and PureDP in kinds:
        # In whole units of 1e-9, rounded down: what is offered must not cost more than was asked.
        epsilon = Decimal(math.isqrt(math.floor(2 * loss.exact_rho * EPSILON_UNITS**2))) / EPSILON_UNITS
        offered: Any = PureDP(epsilon)
        hint = "give ", Setting("loss", offered), f", which costs at most {loss}"
        return LossError(f"{method} is paid for in epsilon", argument="loss", rule="pure", value=loss, hint=hint)
    if ZCDP in kinds:
        epsilon_known = getattr(loss, "exact_epsilon", Fraction(1))
        more = "add a delta: ", Setting("loss", ApproxDP(epsilon_known, 1e-6))
        return LossError(f"{method} adds Gaussian noise", argument="loss", rule="gaussian", value=loss, hint=more)
    text = f"{method} needs a delta above 0, at least {_short(LEAST_DELTA)}"
    return LossError(text, argument="loss", rule="delta", value=loss, hint="add a delta, as 1e-6")


def _short(amount: Fraction) -> str:
    return f"{float(amount):g}".replace("e-0", "e-")


def check_unproven_consent(accept_unproven: bool, variant: str) -> None:
    """Refuse a published variant whose proof fails unless the caller accepts it."""
    if accept_unproven is not True:
        raise UnprovenError(
            f"{variant} is not private as published", argument="accept_unproven", rule="unproven",
            hint=("to replicate it set ", Setting("accept_unproven", True), ", on an in-memory ledger or one without "
                  "privacy"),
        )  # fmt: skip
