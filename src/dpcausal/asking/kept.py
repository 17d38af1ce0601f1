"""Kept answers: exactly the same question, asked again of a table with a name, is answered from the ledger, free.

What was released stands in the ledger beside its spend.  "The same" speaks of public things alone: the table's name,
size, schema, unit and subgroup, the question, the settled method and the loss; never of rows, so that a lookup tells
nothing of them, and another table under the same name would be given this one's answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeVar

from dpcausal.asking.form import form_of
from dpcausal.asking.method import Settled
from dpcausal.codec import NotStorableError, decode, encode
from dpcausal.errors import LedgerError, ParameterError
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ZCDP, Loss
from dpcausal.privacy.noise import simulated

Answer = TypeVar("Answer")


@dataclass
class Foreseen(Exception):  # noqa: N818 - no error: how a call that is only foreseen ends
    """A call that came as far as its spend under ``foreseeing``: what it would cost, by which plans, known as what."""

    task: str
    plans: tuple[Settled[Any], ...]
    loss: Loss
    zcdp: ZCDP | None
    asked: str


_foreseeing: ContextVar[bool] = ContextVar("foreseeing", default=False)


@contextmanager
def foreseeing() -> Iterator[None]:
    """Make every call end in ``Foreseen`` just before its spend: nothing is spent, and no row is read."""
    token = _foreseeing.set(True)
    try:
        yield
    finally:
        _foreseeing.reset(token)


def before_spend(
    ledger: Ledger, task: str, plans: Sequence[Settled[Any]], loss: Loss, again: bool, *, offered: Loss,
    zcdp: ZCDP | None = None, **more: Any,
) -> tuple[str, Any]:  # fmt: skip
    """Return what stands for exactly this call, and its kept answer or ``None``."""
    asked = asked_of(ledger, task, plans, offered, **more)
    if _foreseeing.get():
        raise Foreseen(task, tuple(plans), loss, zcdp, asked)
    return asked, recalled(ledger, asked, again)


def asked_of(ledger: Ledger, task: str, plans: Sequence[Settled[Any]], offered: Loss, **more: Any) -> str:
    """Return what stands for exactly this call, 64 hexadecimal digits of its form; empty where no answer is kept.

    That is without a name, without privacy, under simulated noise, and where a part of the question is an object that
    has no words, as a model of x.
    """
    if not ledger.private or simulated():
        return ""
    try:
        return sha256(form_of(task, plans, offered, **more).encode()).hexdigest()
    except NotStorableError:
        return ""


def recalled(ledger: Ledger, asked: str, again: bool) -> Any:
    """Return the kept answer of exactly this call, marked as kept; ``None`` if there is none, or ``again`` pays anew.

    A LedgerError where it was spent for and no answer was kept: the run ended in between.
    """
    if not isinstance(again, bool):
        raise ParameterError("again must be True or False")
    found = None if again or not asked else ledger.kept(asked)
    if found is None:
        return None
    number, answer = found
    try:
        return decode(answer["released"], kept=f"spend {number} of this ledger paid for it on {answer['at']}")
    except (KeyError, ValueError, TypeError, LookupError, AttributeError):
        told = f"the answer of spend {number} was kept by another version of this library and cannot be read"
    raise LedgerError(f"{told}; again=True pays anew")


def keep(ledger: Ledger, asked: str, allotment: Allotment, answer: Answer) -> Answer:
    """Write an answer beside its spend, if it is to be kept, and return it."""
    if asked and allotment.private:
        try:
            stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
            ledger.keep(allotment.number, {"released": encode(answer), "at": stamp})
        except (NotStorableError, LedgerError, ParameterError):
            # It is paid for and goes to whoever asked; the ledger goes on to say: spent, no answer.
            return answer
    return answer
