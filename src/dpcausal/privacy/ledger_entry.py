"""The rows of a ledger and the chain of hashes through them.

A row is a tuple of plain values in the order of ``COLUMNS``; ``Entry`` is the same with names.  The hash of a row
is the SHA-256 of its values but the last, one per line, as UTF-8; among them is the hash of the row before, so the
last hash, the head, stands for the whole history.  The first row follows the hash of the header.  No value holds a
line break.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from typing import Any, TypeAlias

from dpcausal.errors import LedgerDamagedError, LossError
from dpcausal.privacy.composition import Cost, Totals
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, PureDP

FORMAT = 1
"""The version of the layout of rows and header; a ledger of a later one is refused."""

Row: TypeAlias = tuple[Any, ...]  # of str, int and None

COLUMNS = {
    "number": "INTEGER PRIMARY KEY",
    "at": "TEXT NOT NULL",
    "pid": "INTEGER NOT NULL",
    "library": "TEXT NOT NULL",
    "task": "TEXT NOT NULL",
    "loss": "TEXT NOT NULL",
    "zcdp": "TEXT",
    "unit": "TEXT NOT NULL",
    "relation": "TEXT NOT NULL",
    "detail": "TEXT NOT NULL",
    "caveats": "TEXT NOT NULL",
    "cost_epsilon": "INTEGER",
    "cost_delta": "INTEGER NOT NULL",
    "cost_rho": "INTEGER",
    "cost_rho_delta": "INTEGER NOT NULL",
    "total_spends": "INTEGER NOT NULL",
    "total_epsilon": "INTEGER NOT NULL",
    "total_delta": "INTEGER NOT NULL",
    "total_rho": "INTEGER NOT NULL",
    "total_rho_delta": "INTEGER NOT NULL",
    "sums_open": "INTEGER NOT NULL",
    "zcdp_open": "INTEGER NOT NULL",
    "closed": "INTEGER NOT NULL",
    "previous": "TEXT NOT NULL",
    "hash": "TEXT NOT NULL",
}
"""The columns of a row, in order, with their SQLite types."""

COST = slice(11, 15)
TOTALS = slice(15, 23)
"""Where a row keeps the cells of its cost, and of the totals after it."""


def hash_of(values: Iterable[str | int | None]) -> str:
    """Return the SHA-256 of the values, one per line, as 64 hexadecimal digits."""
    return sha256("\n".join(map(str, values)).encode()).hexdigest()


_LINES = "\n".join(["%s"] * (len(COLUMNS) - 1))


def hash_of_row(values: Row) -> str:
    """Return ``hash_of`` of all the values of a row but its hash, in half the time."""
    return sha256((_LINES % values).encode()).hexdigest()


def exact_text(amount: Fraction) -> str:
    """Return an amount exactly: a decimal where there is a finite one, else a fraction.

    Examples
    --------
    >>> exact_text(Fraction(1, 1000)), exact_text(Fraction(1, 3))
    ('0.001', '1/3')
    """
    if max(amount.numerator.bit_length(), amount.denominator.bit_length()) > 300:
        raise LossError("an amount for the ledger needs fewer than 90 digits")
    rest, twos, fives = amount.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest != 1 or places > 40:
        return str(amount)
    digits = str(amount.numerator * 10**places // amount.denominator).rjust(places + 1, "0")
    return f"{digits[: len(digits) - places]}.{digits[len(digits) - places :]}" if places else digits


def loss_text(loss: Loss) -> str:
    """Return a loss with its exact amounts, as ``parse_loss`` reads it.

    Examples
    --------
    >>> loss_text(ApproxDP(2, 1e-6))
    'ApproxDP(2, 0.000001)'
    """
    return f"{type(loss).__name__}({', '.join(exact_text(amount) for amount in vars(loss).values())})"


@lru_cache(maxsize=1024)
def parse_loss(text: str) -> Loss:
    """Return the loss that ``loss_text`` wrote; ``ValueError`` for anything else."""
    name, _, inside = text.partition("(")
    kinds: dict[str, tuple[Any, int]] = {"PureDP": (PureDP, 1), "ApproxDP": (ApproxDP, 2), "ZCDP": (ZCDP, 1)}
    kinds["NoPrivacy"] = (NoPrivacy, 0)
    if name not in kinds or not inside.endswith(")"):
        raise ValueError("not a loss")
    kind, count = kinds[name]
    amounts = [Fraction(part) for part in inside[:-1].split(", ")] if inside != ")" else []
    if len(amounts) != count:
        raise ValueError("not a loss")
    loss: Loss = kind(*amounts)
    if loss_text(loss) != text:
        raise ValueError("not a loss as the ledger writes it")
    return loss


@dataclass(frozen=True)
class Header:
    """What a ledger is: its format, when and by what it was made, and its budget; the chain starts at its hash."""

    format: int
    created: str
    pid: int
    library: str
    budget: str

    @property
    def hash(self) -> str:
        return hash_of(("dpcausal ledger", self.format, self.created, self.pid, self.library, self.budget))


@dataclass(frozen=True)
class Entry:
    """One spend, as the ledger keeps it.

    Attributes
    ----------
    number : int
        1 for the first.
    at : str
        The clock's UTC time, for information: nothing depends on it.
    pid, library : int, str
        The process and the library's version that wrote it.
    task : str
        What it paid for.
    loss : str
        The whole loss, with exact amounts.
    zcdp : str or None
        The zCDP guarantee beside it, if one was given.
    unit, relation : str
        Whose record is protected, against which change.
    detail : str
        Public arguments of the call, as JSON with sorted keys.
    caveats : str
        Why the release is not private; empty if it is.
    cost, totals : Cost, Totals
        In whole units: of this spend, and of all up to it.
    previous, hash : str
        The chain.
    """

    number: int
    at: str
    pid: int
    library: str
    task: str
    loss: str
    zcdp: str | None
    unit: str
    relation: str
    detail: str
    caveats: str
    cost: Cost
    totals: Totals
    previous: str
    hash: str

    @classmethod
    def from_row(cls, row: Row) -> Entry:
        """Return the entry of a stored row."""
        number, at, pid, library, task, loss, zcdp, unit, relation, detail, caveats = row[: COST.start]
        told = (number, at, pid, library, task, loss, zcdp, unit, relation, detail, caveats)
        return cls(*told, Cost(*row[COST]), totals_of(row), row[-2], row[-1])

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain values for JSON: units of 1e-9, deltas of 1e-18; ``event`` has exact amounts."""
        plain: dict[str, Any] = dict(vars(self))
        plain["detail"] = json.loads(self.detail)
        plain["cost"] = dict(vars(self.cost))
        plain["totals"] = dict(vars(self.totals))
        plain["event"] = _event(self.loss, self.zcdp)
        return plain


def _event(loss: str, zcdp: str | None) -> dict[str, str]:
    """Return a spend in the words of an outside accountant: the kind of loss and its exact amounts, as text."""
    parsed = parse_loss(loss)
    event = {"kind": type(parsed).__name__}
    event |= {name.removeprefix("exact_"): exact_text(amount) for name, amount in vars(parsed).items()}
    if zcdp is not None:
        event["rho"] = exact_text(next(iter(vars(parse_loss(zcdp)).values())))
    return event


def sealed(values: Row) -> Row:
    """Return a row completed by its hash; ``values`` are all its values but that."""
    lines = "\n".join(map(str, values))
    if lines.count("\n") != len(values) - 1:
        raise LedgerDamagedError("a ledger's value may not hold a line break")
    return (*values, sha256(lines.encode()).hexdigest())


def totals_of(row: Row | None) -> Totals:
    """Return the totals after a row; of nothing, before the first."""
    if row is None:
        return Totals()
    cells = row[TOTALS]
    return Totals(*cells[:5], *map(bool, cells[5:]))


def cells(cost: Cost, totals: Totals) -> Row:
    """Return the cells of a cost and of the totals after it, in the order of the columns."""
    return (
        cost.epsilon,
        cost.delta,
        cost.rho,
        cost.rho_delta,
        totals.spends,
        totals.epsilon,
        totals.delta,
        totals.rho,
        totals.rho_delta,
        int(totals.sums_open),
        int(totals.zcdp_open),
        int(totals.closed),
    )
