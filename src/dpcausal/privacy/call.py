"""What a call may cost: the checks of ``loss=`` that every task makes before anything else."""

from __future__ import annotations

import math
from decimal import Decimal

from dpcausal.errors import LossError, UnprovenError
from dpcausal.privacy.loss import EPSILON_UNITS, LARGE_EPSILON, ZCDP, ApproxDP, Loss, NoPrivacy, PureDP


def unfit(loss: object) -> LossError:
    """Return the error for what is no loss; a bare number gets the loss it may have been meant as.

    Examples
    --------
    >>> str(unfit(0.5))
    'loss must be PureDP, ApproxDP, ZCDP or NoPrivacy, got float; PureDP(0.5)?'
    """
    is_number = isinstance(loss, (int, float)) and not isinstance(loss, bool)
    meant = f"; PureDP({loss!r})?" if is_number and 0 < loss <= LARGE_EPSILON else ""  # type: ignore[operator]
    return LossError(f"loss must be PureDP, ApproxDP, ZCDP or NoPrivacy, got {type(loss).__name__}{meant}")


def check_large(loss: Loss, accept_large_epsilon: bool) -> None:
    """Refuse an ε above 20, or a ρ that is worth more, unless the caller accepts it.

    Examples
    --------
    >>> check_large(PureDP(20), False)
    """
    if isinstance(loss, NoPrivacy) or accept_large_epsilon is True:
        return
    if isinstance(loss, ZCDP):
        large = loss.exact_rho > LARGE_EPSILON**2 // 2
    elif isinstance(loss, (PureDP, ApproxDP)):
        large = loss.exact_epsilon > LARGE_EPSILON
    else:
        raise unfit(loss)
    if large:
        raise LossError(
            f"{loss} protects nobody in practice: above epsilon {LARGE_EPSILON} say accept_large_epsilon=True"
        )


def pure_part(loss: Loss, method: str) -> tuple[PureDP | NoPrivacy, str]:
    """Return what a pure method spends of a loss, and a note if that is not the loss itself.

    An (ε, δ) loss is spent as ε alone, which is stronger.  A ρ is refused with the pure ε that costs it.

    Examples
    --------
    >>> pure_part(ApproxDP(1, 1e-6), "blocks")
    (PureDP(1), 'asked ApproxDP(1, 1e-06); blocks needs no delta and spent PureDP(1)')
    """
    if isinstance(loss, (PureDP, NoPrivacy)):
        return loss, ""
    if isinstance(loss, ApproxDP):
        spent = PureDP(loss.exact_epsilon)
        return spent, f"asked {loss}; {method} needs no delta and spent {spent}"
    if isinstance(loss, ZCDP):
        # In whole units of 1e-9, rounded down: what is offered must not cost more than was asked.
        epsilon = Decimal(math.isqrt(math.floor(2 * loss.exact_rho * EPSILON_UNITS**2))) / EPSILON_UNITS
        raise LossError(f"{method} is paid for in pure epsilon: give PureDP({epsilon:f}), which costs at most {loss}")
    raise unfit(loss)


def check_consent(accept_unproven: bool, variant: str) -> None:
    """Refuse a published variant whose proof fails unless the caller accepts it."""
    if accept_unproven is not True:
        raise UnprovenError(
            f"{variant} is not private as published (docs/errata.md): to replicate it say accept_unproven=True, on an "
            "in-memory ledger or one without privacy"
        )
