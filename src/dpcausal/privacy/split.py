"""How one loss pays for several pure releases: exact parts, from public numbers alone.  Proof: ``division.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpcausal.errors import LossError
from dpcausal.privacy.checks import unfit
from dpcausal.privacy.loss import (
    EPSILON_UNITS,
    ZCDP,
    ApproxDP,
    Loss,
    NoPrivacy,
    PureDP,
    largest_rho,
)

_ROOT_UNITS = 10**15


@dataclass(frozen=True)
class LossSplit:
    """A loss divided among pure releases: the parts, and what the ledger is to be charged for all of them.

    ``zcdp`` is the guarantee that they have together, charged beside ``spent``; ``note`` says what was not spent.
    """

    spent: Loss
    zcdp: ZCDP | None
    parts: tuple[PureDP | NoPrivacy, ...]
    note: str = ""

    @property
    def by_rho(self) -> bool:
        """Whether the parts add up to the loss in ρ; otherwise in ε."""
        return isinstance(self.spent, (ApproxDP, ZCDP))


def divided(loss: Loss, shares: Sequence[Fraction]) -> LossSplit:
    """Return the parts εᵢ = c·wᵢ that a loss pays for, with the largest c that either account allows.

    by ε: c = ε / Σ wᵢ;  by ρ: c = √(2ρ / Σ wᵢ²), since a pure εᵢ counts εᵢ²/2

    where wᵢ > 0 are the ``shares``.  A pure loss is divided by ε, a zCDP loss by ρ, and an (ε, δ) loss by whichever
    gives more, at the largest ρ that implies (ε, δ).  By ε the parts sum to ε exactly; by ρ, √ is rounded down at its
    15th decimal.  *Guarantee*: all together are within ``spent``, and within ``zcdp`` if given: claim ``divided-loss``.

    >>> divided(ApproxDP(1, 1e-6), [Fraction(1)] * 100).parts[0]
    PureDP(0.0220707815901)
    """
    if not shares or not all(share > 0 for share in shares):
        raise LossError("a loss is divided among at least one share, each above 0")
    if isinstance(loss, NoPrivacy):
        return LossSplit(loss, None, (NoPrivacy(),) * len(shares))
    if isinstance(loss, ZCDP):
        return LossSplit(loss, None, _parts(_root(loss.exact_rho, shares), shares))
    if not isinstance(loss, (PureDP, ApproxDP)):
        raise unfit(loss)
    by_epsilon = loss.exact_epsilon / sum(shares)
    note = ""
    if isinstance(loss, ApproxDP):
        rho = largest_rho(loss.exact_epsilon, loss.exact_delta)
        by_rho = _root(rho, shares)
        if by_rho > by_epsilon:
            return LossSplit(loss, ZCDP(rho), _parts(by_rho, shares))
        note = f"asked {loss}; delta gives these releases no more and {PureDP(loss.exact_epsilon)} was spent"
    parts = _parts(by_epsilon, shares)
    # Where ρ is counted, many small parts cost less than one of the whole ε: Σ εᵢ²/2 < (Σ εᵢ)²/2.
    rho = sum((part.exact_epsilon**2 for part in parts), Fraction(0)) / 2
    zcdp = ZCDP(Fraction(math.ceil(rho * EPSILON_UNITS), EPSILON_UNITS)) if len(parts) > 1 else None
    return LossSplit(PureDP(loss.exact_epsilon), zcdp, parts, note)


def _root(rho: Fraction, shares: Sequence[Fraction]) -> Fraction:
    square = 2 * rho / sum(share**2 for share in shares)
    return Fraction(math.isqrt(math.floor(square * _ROOT_UNITS**2)), _ROOT_UNITS)


def _parts(unit: Fraction, shares: Sequence[Fraction]) -> tuple[PureDP, ...]:
    if unit == 0:
        raise LossError("the loss is too small to be divided")
    return tuple(PureDP(unit * share) for share in shares)
