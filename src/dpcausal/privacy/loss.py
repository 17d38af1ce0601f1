"""Privacy amounts: frozen, exact, and of a named kind.

A float means its shortest decimal, so ``PureDP(0.1) + PureDP(0.2) == PureDP(0.3)``; one that a division made, as
``1 / 3``, means the fraction.  Amounts are exact fractions, and so are their sums in the ledger.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from functools import lru_cache
from operator import add
from typing import Any, ClassVar, Literal, Self, TypeAlias, overload

import numpy as np

from dpcausal.errors import LossError

EPSILON_UNITS = 10**9
"""Units in an ε of 1."""

RHO_UNITS = 2 * EPSILON_UNITS**2
"""Units in a ρ of 1: an ε of whole units has an ε²/2 of whole units."""

DELTA_UNITS = 10**18
"""Units in a δ of 1: finer, since a δ of 1e-9 is a large one."""

LARGE_EPSILON = 20
"""A call above this ε needs ``accept_large_epsilon=True``."""

MOST_PARTS = 10**6
"""Most parts of a loss."""

LARGEST_DENOMINATOR = 10**6
"""Of fractions that a float of more than 12 digits may mean."""

SYMBOLS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}

Amount: TypeAlias = int | float | Fraction | Decimal


def exact_amount(value: Amount, name: str, *, below_one: bool = False, zero: bool = False) -> Fraction:
    """Return ``value`` as an exact fraction, a float read as its shortest decimal. A float of more than 12 digits that
    is the nearest to a fraction with a denominator of at most 10^6 means that fraction: so ``1 / 13`` is a thirteenth,
    and thirteen of them are the whole. Refused: a bool, text, NaN, an infinity, a number beyond a float's range (so
    that ``.epsilon`` is never 0 or infinite), below 0, 0 unless ``zero``, and, with ``below_one``, 1 or more."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, Fraction, Decimal, np.integer, np.floating)
    ):
        raise LossError(f"{name} must be a number")
    if isinstance(value, Decimal) and not value.is_finite():  # a signalling NaN has no float
        raise LossError(f"{name} must be finite")
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.inf
    if not math.isfinite(nearest):
        raise LossError(f"{name} must be finite")
    if nearest == 0 and value != 0:
        raise LossError(f"{name} must not be smaller than the smallest float")
    if isinstance(value, (int, Fraction, np.integer)):
        exact = Fraction(value) if isinstance(value, Fraction) else Fraction(int(value))
    else:
        exact = Fraction(value) if isinstance(value, Decimal) else _of_float(nearest)
    if exact < 0 or (exact == 0 and not zero):
        raise LossError(f"{name} must be {'at least' if zero else 'above'} 0")
    if below_one and exact >= 1:
        raise LossError(f"{name} must be below 1")
    return exact


def _of_float(value: float) -> Fraction:
    digits = Decimal(repr(value))
    near = Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
    return near if len(digits.as_tuple().digits) > 12 and float(near) == value else Fraction(digits)


def written_amount(text: str) -> Fraction:
    number, parts = r"(\d{1,15}(?:\.\d{1,15})?(?:[eE]-?\d{1,2})?)", r"(?:\s*/\s*([1-9]\d{0,5}))?"
    match = re.fullmatch(number + parts, text.strip(), re.ASCII)
    if match is None:
        raise LossError("an amount is a number above 0, as 0.5, or a fraction, as 1/3")
    return Fraction(match[1]) / int(match[2] or 1)


def format_amount(amount: Fraction) -> str:
    return f"{float(amount):.12g}"


class Counted:
    """What the kinds of loss that a budget counts have in common: exact amounts, which add up and are shared."""

    exact: ClassVar[Literal[False]] = False

    @property
    def amounts(self) -> dict[str, Fraction]:
        """The exact amounts by name."""
        return {name.removeprefix("exact_"): amount for name, amount in vars(self).items()}

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self._of(map(add, self.amounts.values(), other.amounts.values()))

    def part(self, share: Fraction) -> Self:
        """Return a share of each amount, exactly: shares that add up to 1 cost the whole."""
        return self._of(amount * share for amount in self.amounts.values())

    def split(self, parts: int) -> list[Self]:
        """Return so many equal parts, exact: they add up to the loss, and are never refused for a rounding.

        >>> PureDP(1).split(3)[0] == PureDP(1) / 3 == PureDP(1 / 3)
        True
        """
        if isinstance(parts, bool) or not isinstance(parts, (int, np.integer)) or not 1 <= parts <= MOST_PARTS:
            raise LossError(f"a loss is divided into a whole number of parts, 1 to {MOST_PARTS}")
        return [self.part(Fraction(1, int(parts)))] * int(parts)

    def __truediv__(self, parts: int) -> Self:
        return self.split(parts)[0]

    def _of(self, amounts: Iterable[Fraction]) -> Self:
        kind: Any = type(self)
        return kind(*amounts)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(format_amount, self.amounts.values()))})"

    def __str__(self) -> str:
        """Return it as people write it.

        >>> str(ApproxDP(2.0, 1e-6)), str(ZCDP(0.5))
        ('ε = 2, δ = 1e-06', 'ρ = 0.5')
        """
        return ", ".join(f"{SYMBOLS[name]} = {format_amount(amount)}" for name, amount in self.amounts.items())


@dataclass(frozen=True, init=False, repr=False)
class PureDP(Counted):
    """ε-differential privacy.

    Parameters
    ----------
    epsilon : number
        ε > 0.  A float means its shortest decimal.

    Examples
    --------
    >>> PureDP(0.1) + PureDP(0.2) == PureDP(0.3)
    True
    """

    exact_epsilon: Fraction

    def __init__(self, epsilon: Amount) -> None:
        object.__setattr__(self, "exact_epsilon", exact_amount(epsilon, "epsilon"))

    @property
    def epsilon(self) -> float:
        return float(self.exact_epsilon)

    @property
    def delta(self) -> float:
        return 0.0


@dataclass(frozen=True, init=False, repr=False)
class ApproxDP(Counted):
    """(ε, δ)-differential privacy, 0 ≤ δ < 1; δ = 0 is pure ε-DP written otherwise.

    Examples
    --------
    >>> ApproxDP(1.0, 1e-6) + ApproxDP(1.0, 1e-6)
    ApproxDP(2, 2e-06)
    """

    exact_epsilon: Fraction
    exact_delta: Fraction

    def __init__(self, epsilon: Amount, delta: Amount) -> None:
        object.__setattr__(self, "exact_epsilon", exact_amount(epsilon, "epsilon"))
        object.__setattr__(self, "exact_delta", exact_amount(delta, "delta", below_one=True, zero=True))

    @property
    def epsilon(self) -> float:
        return float(self.exact_epsilon)

    @property
    def delta(self) -> float:
        return float(self.exact_delta)


@dataclass(frozen=True, init=False, repr=False)
class ZCDP(Counted):
    """ρ-zero-concentrated differential privacy (Bun & Steinke 2016).

    Examples
    --------
    >>> ZCDP(0.25) + ZCDP(0.25)
    ZCDP(0.5)
    """

    exact_rho: Fraction

    def __init__(self, rho: Amount) -> None:
        object.__setattr__(self, "exact_rho", exact_amount(rho, "rho"))

    @property
    def rho(self) -> float:
        return float(self.exact_rho)


@dataclass(frozen=True)
class NoPrivacy:
    """No protection: the exact answer, accepted only by ``Ledger.without_privacy()``."""

    exact: ClassVar[Literal[True]] = True
    """Whether nothing is protected; false for the other kinds."""

    @property
    def amounts(self) -> dict[str, Fraction]:
        return {}

    def part(self, share: Fraction) -> NoPrivacy:
        return self

    def __repr__(self) -> str:
        return "NoPrivacy()"

    def __str__(self) -> str:
        return "no privacy"


Loss: TypeAlias = PureDP | ApproxDP | ZCDP | NoPrivacy

LOSSES: dict[str, type[Any]] = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP, NoPrivacy)}
"""The kinds by name; the fields of each are its exact amounts, in the order in which it takes them."""


_EXACT = Context(prec=300, traps=[Inexact])


def exact_text(amount: Fraction) -> str:
    """Return an amount exactly: a decimal where there is a finite one, else a fraction.

    >>> exact_text(Fraction(1, 1000)), exact_text(Fraction(1, 3))
    ('0.001', '1/3')
    """
    if max(amount.numerator.bit_length(), amount.denominator.bit_length()) > 300:
        raise LossError("an amount for the ledger needs fewer than 90 digits")
    try:
        decimal = _EXACT.divide(Decimal(amount.numerator), Decimal(amount.denominator)).normalize(_EXACT)
    except Inexact:
        return str(amount)
    return str(amount) if int(decimal.as_tuple().exponent) < -40 else f"{decimal:f}"


def loss_text(loss: Loss) -> str:
    return f"{type(loss).__name__}({', '.join(exact_text(amount) for amount in loss.amounts.values())})"


@lru_cache(maxsize=1024)
def parse_loss(text: str) -> Loss:
    """Return the loss that ``loss_text`` wrote; ``ValueError`` for anything else."""
    name, _, inside = text.partition("(")
    if name not in LOSSES or not inside.endswith(")"):
        raise ValueError("not a loss")
    amounts = [Fraction(part) for part in inside[:-1].split(", ")] if inside != ")" else []
    if len(amounts) != len(fields(LOSSES[name])):
        raise ValueError("not a loss")
    loss: Loss = LOSSES[name](*amounts)
    if loss_text(loss) != text:
        raise ValueError("not a loss as the ledger writes it")
    return loss


@lru_cache(maxsize=4096)
def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return an ε such that ρ-zCDP implies (ε, δ)-DP, the least one of this formula up to rounding.

    ε = inf_{α>1} αρ + [log(1/δ) + (α−1) log(1 − 1/α) − log α] / (α − 1)

    where α is the Rényi order.  Every α gives a valid ε, so an imperfect minimiser costs accuracy, never privacy.
    The terms may cancel, so the rounding of this evaluation and of the arguments to floats is covered by adding
    1e-14 of the sum of the terms' sizes at the α found.

    Source: Canonne, Kamath & Steinke (2020), Proposition 12.
    """
    if not 0 < delta < 1 or not rho > 0:
        raise LossError("the conversion needs rho above 0 and delta between 0 and 1")
    log_inverse_delta = -math.log(delta)

    # Golden section over log(α−1): the objective has one valley there.
    def bound(log_order: float) -> float:
        excess = math.exp(log_order)
        return (1 + excess) * rho + (log_inverse_delta - math.log1p(excess)) / excess - math.log1p(1 / excess)

    low, high = math.log(1e-9), math.log(max(1e3, 1e3 * math.sqrt(log_inverse_delta / rho)))
    ratio = (math.sqrt(5) - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    value_a, value_b = bound(a), bound(b)
    for _ in range(200):
        if value_a < value_b:
            high, b, value_b = b, a, value_a
            a = high - ratio * (high - low)
            value_a = bound(a)
        else:
            low, a, value_a = a, b, value_b
            b = low + ratio * (high - low)
            value_b = bound(b)
    best, log_order = min((value_a, a), (value_b, b))
    excess = math.exp(log_order)
    sizes = (1 + excess) * rho + (1 + log_inverse_delta + math.log1p(excess)) / excess + math.log1p(1 / excess)
    return max(0.0, best) + 1e-14 * sizes


@lru_cache(maxsize=4096)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest ρ, in units of 1e-9 rounded down, such that ρ-zCDP implies (ε, δ)-DP; 0 if there is none.
    Source: the inverse of ``zcdp_epsilon``, by bisection over integers; the value returned was itself checked."""
    near = min(float(delta), math.nextafter(1.0, 0.0))
    if near == 0:
        return Fraction(0)

    def within(units: int) -> bool:
        return Fraction(zcdp_epsilon(units / EPSILON_UNITS, near)) <= epsilon

    low, high = 0, 1
    while within(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return Fraction(low, EPSILON_UNITS)


def to_zcdp(loss: PureDP | ZCDP) -> ZCDP:
    """Return the zCDP that ``loss`` implies: ε-DP is ε²/2-zCDP (Bun & Steinke 2016, Proposition 1.4)."""
    return loss if isinstance(loss, ZCDP) else ZCDP(loss.exact_epsilon**2 / 2)


@overload
def affordable_zcdp(loss: ApproxDP | ZCDP) -> ZCDP: ...
@overload
def affordable_zcdp(loss: ApproxDP | ZCDP | NoPrivacy) -> ZCDP | NoPrivacy: ...
def affordable_zcdp(loss: ApproxDP | ZCDP | NoPrivacy) -> ZCDP | NoPrivacy:
    """Return the largest ρ such that ρ-zCDP implies ``loss``: what Gaussian noise may use of it."""
    if isinstance(loss, (ZCDP, NoPrivacy)):
        return loss
    rho = largest_rho(loss.exact_epsilon, loss.exact_delta)
    if rho == 0:
        raise LossError(f"{loss} pays for no Gaussian noise: delta must be above 0 and epsilon not tiny")
    return ZCDP(rho)


def implies(strong: Loss, weak: Loss) -> bool:
    """Return whether a mechanism within ``strong`` is proved to be within ``weak``: a partial order.

    >>> implies(PureDP(1), ZCDP(0.5)), implies(ZCDP(0.5), PureDP(1))
    (True, False)
    """
    if weak.exact:
        return True
    if strong.exact:
        return False
    if isinstance(strong, ApproxDP) and strong.exact_delta == 0:
        strong = PureDP(strong.exact_epsilon)
    if isinstance(weak, ApproxDP) and weak.exact_delta == 0:
        weak = PureDP(weak.exact_epsilon)
    if isinstance(weak, PureDP):
        return isinstance(strong, PureDP) and strong.exact_epsilon <= weak.exact_epsilon
    if isinstance(weak, ZCDP):
        return not isinstance(strong, ApproxDP) and to_zcdp(strong).exact_rho <= weak.exact_rho
    by_zcdp = largest_rho(weak.exact_epsilon, weak.exact_delta)
    if isinstance(strong, ZCDP):
        return strong.exact_rho <= by_zcdp
    if isinstance(strong, PureDP) and strong.exact_epsilon**2 / 2 <= by_zcdp:
        return True  # by way of zCDP, which can be the better one where δ is large
    return strong.exact_epsilon <= weak.exact_epsilon and (
        isinstance(strong, PureDP) or strong.exact_delta <= weak.exact_delta
    )
