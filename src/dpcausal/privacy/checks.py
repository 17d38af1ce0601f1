"""What a call may cost: the checks of ``loss=`` before anything else, and one loss divided among several releases."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpcausal.errors import BudgetExceededError, LossError, Setting, UnprovenError
from dpcausal.privacy.composition import Totals, remaining, spent_text
from dpcausal.privacy.loss import EPSILON_UNITS, LARGE_EPSILON, ZCDP, ApproxDP, Loss, NoPrivacy, PureDP, largest_rho

LEAST_DELTA = Fraction(1, 10**18)

LARGEST_BUDGET = 10**6
"""No larger ε or ρ is taken as a budget: integer totals would come near their end."""


def unfit_loss_error(loss: Any) -> LossError:
    is_number = isinstance(loss, (int, float)) and not isinstance(loss, bool)
    meant = f"; PureDP({loss!r})?" if is_number and 0 < loss <= LARGE_EPSILON else ""
    text = f"loss must be PureDP, ApproxDP, ZCDP or NoPrivacy, got {type(loss).__name__}{meant}"
    return LossError(text, argument="loss", rule="type", value=loss)


def check_budget(budget: Loss, accept_large_epsilon: bool = False) -> Loss:
    if type(budget) not in (PureDP, ApproxDP, ZCDP) or budget.exact:
        raise LossError("budget must be PureDP, ApproxDP or ZCDP", argument="budget", rule="type")
    amount = budget.exact_rho if isinstance(budget, ZCDP) else budget.exact_epsilon
    if amount > LARGEST_BUDGET:
        text = "a budget's epsilon or rho must be at most one million"
        raise LossError(text, argument="budget", rule="range", value=budget)
    check_epsilon_consent(budget, accept_large_epsilon)
    return budget


def check_kind(loss: Loss, budget: Loss) -> None:
    if type(loss) not in (PureDP, ApproxDP, ZCDP, NoPrivacy):
        raise unfit_loss_error(loss)
    if loss.exact and not budget.exact:
        raise LossError("NoPrivacy() is taken by Ledger.without_privacy() only")
    if budget.exact and not loss.exact:
        raise LossError("a ledger without privacy takes NoPrivacy() only")


def refusal(loss: Loss, budget: Loss, totals: Totals, reason: str = "") -> BudgetExceededError:
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
    if isinstance(loss, NoPrivacy):
        return
    if isinstance(loss, ZCDP):
        large = loss.exact_rho > LARGE_EPSILON**2 // 2
    elif isinstance(loss, (PureDP, ApproxDP)):
        large = loss.exact_epsilon > LARGE_EPSILON
    else:
        raise unfit_loss_error(loss)
    if large and accept_large_epsilon is not True:
        raise LossError(
            f"{loss} gives no meaningful protection", argument="loss", rule="large-epsilon", value=loss,
            hint=(f"to use more than epsilon {LARGE_EPSILON} anyway set ", Setting("accept_large_epsilon", True)),
        )  # fmt: skip


def charged_loss(
    loss: Loss, kinds: tuple[type[Loss], ...], method: str, least_epsilon: Fraction = Fraction(0)
) -> tuple[Loss, str]:
    """Return what a method that spends some kinds of loss spends of one, and a note if that is not the loss itself. A
    method of pure ε spends an (ε, δ) loss as ε alone, which is stronger, and refuses a ρ with the pure ε that costs it;
    a method of (ε, δ) alone needs δ above 0."""
    note = ""
    if not isinstance(loss, (PureDP, ApproxDP, ZCDP, NoPrivacy)):
        raise unfit_loss_error(loss)
    if isinstance(loss, ApproxDP) and ApproxDP not in kinds and PureDP in kinds:
        stated, loss = loss, PureDP(loss.exact_epsilon)
        note = f"{method} needs no delta: of {stated} it spent {loss}"
    small_delta = kinds == (ApproxDP,) and isinstance(loss, ApproxDP) and loss.exact_delta < LEAST_DELTA
    if small_delta or not (loss.exact or isinstance(loss, kinds)):
        raise _wrong_kind(loss, kinds, method)
    if isinstance(loss, (PureDP, ApproxDP)) and loss.exact_epsilon < least_epsilon:
        text = f"{method} needs epsilon of at least {_short_amount(least_epsilon)}: its noise would hide any answer"
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
    text = f"{method} needs a delta above 0, at least {_short_amount(LEAST_DELTA)}"
    return LossError(text, argument="loss", rule="delta", value=loss, hint="add a delta, as 1e-6")


def _short_amount(amount: Fraction) -> str:
    return f"{float(amount):g}".replace("e-0", "e-")


def check_unproven_consent(accept_unproven: bool, variant: str) -> None:
    if accept_unproven is not True:
        raise UnprovenError(
            f"{variant} is not private as published", argument="accept_unproven", rule="unproven",
            hint=("to replicate it set ", Setting("accept_unproven", True), ", on an in-memory ledger or one without "
                  "privacy"),
        )  # fmt: skip


_ROOT_UNITS = 10**15


@dataclass(frozen=True)
class LossSplit:
    """A loss divided among pure releases: the parts, and what the ledger is to be charged for all of them. ``zcdp`` is
    the guarantee that they have together, charged beside ``spent``; ``note`` says what was not spent."""

    spent: Loss
    zcdp: ZCDP | None
    parts: tuple[PureDP | NoPrivacy, ...]
    note: str = ""

    @property
    def by_rho(self) -> bool:
        return isinstance(self.spent, (ApproxDP, ZCDP))


def split_loss(loss: Loss, shares: Sequence[Fraction]) -> LossSplit:
    """Return the parts εᵢ = c·wᵢ that a loss pays for, with the largest c that either account allows.

    by ε: c = ε / Σ wᵢ;  by ρ: c = √(2ρ / Σ wᵢ²), since a pure εᵢ counts εᵢ²/2

    where wᵢ > 0 are the ``shares``.  A pure loss is divided by ε, a zCDP loss by ρ, and an (ε, δ) loss by whichever
    gives more, at the largest ρ that implies (ε, δ).  By ε the parts sum to ε exactly; by ρ, √ is rounded down at its
    15th decimal.  *Guarantee*: all together are within ``spent``, and within ``zcdp`` if given: claim ``divided-loss``.

    >>> split_loss(ApproxDP(1, 1e-6), [Fraction(1)] * 100).parts[0]
    PureDP(0.0220707815901)
    """
    if not shares or not all(share > 0 for share in shares):
        raise LossError("a loss is divided among at least one share, each above 0")
    if isinstance(loss, NoPrivacy):
        return LossSplit(loss, None, (NoPrivacy(),) * len(shares))
    if isinstance(loss, ZCDP):
        return LossSplit(loss, None, _equal_parts(_root_of_rho(loss.exact_rho, shares), shares))
    if not isinstance(loss, (PureDP, ApproxDP)):
        raise unfit_loss_error(loss)
    by_epsilon = loss.exact_epsilon / sum(shares)
    note = ""
    if isinstance(loss, ApproxDP):
        rho = largest_rho(loss.exact_epsilon, loss.exact_delta)
        by_rho = _root_of_rho(rho, shares)
        if by_rho > by_epsilon:
            return LossSplit(loss, ZCDP(rho), _equal_parts(by_rho, shares))
        note = f"delta gives these releases no more: of {loss} they spent {PureDP(loss.exact_epsilon)}"
    parts = _equal_parts(by_epsilon, shares)
    # Where ρ is counted, many small parts cost less than one of the whole ε: Σ εᵢ²/2 < (Σ εᵢ)²/2.
    rho = sum((part.exact_epsilon**2 for part in parts), Fraction(0)) / 2
    zcdp = ZCDP(Fraction(math.ceil(rho * EPSILON_UNITS), EPSILON_UNITS)) if len(parts) > 1 else None
    return LossSplit(PureDP(loss.exact_epsilon), zcdp, parts, note)


def _root_of_rho(rho: Fraction, shares: Sequence[Fraction]) -> Fraction:
    square = 2 * rho / sum(share**2 for share in shares)
    return Fraction(math.isqrt(math.floor(square * _ROOT_UNITS**2)), _ROOT_UNITS)


def _equal_parts(unit: Fraction, shares: Sequence[Fraction]) -> tuple[PureDP, ...]:
    if unit == 0:
        raise LossError("the loss is too small to be divided")
    return tuple(PureDP(unit * share) for share in shares)
