"""Cached results: exactly the same question, asked again of the same data, is answered from the ledger, free.

What was released is in the ledger beside its spend.  "The same question" applies to public things alone: the
table's name, size, used columns, unit and subgroup, the question, the planned method and the loss; never of rows, so
that a lookup reveals nothing of them.  "The same data" is what ``Origin`` can identify: an answer that was made from
other data, as of a file before it was written to, is not given for these.  It is not paid for again by default either:
the data may hold the same records.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeVar
from warnings import warn

from dpcausal.codec import NotStorableError, decode, encode
from dpcausal.core.cache_key import cache_key_text, subject_of
from dpcausal.core.method import PlannedCall
from dpcausal.data.sources.origin import Origin
from dpcausal.errors import LedgerError, NotCachedWarning, ParameterError, Setting
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ZCDP, Loss
from dpcausal.privacy.noise import simulated

Answer = TypeVar("Answer")


@dataclass
class DryRunStop(Exception):  # noqa: N818 - no error: how a call that is only foreseen ends
    """A call that came as far as its spend under ``dry_run``: what it would cost, by which plans, known as what."""

    task: str
    plans: tuple[PlannedCall[Any], ...]
    loss: Loss
    zcdp: ZCDP | None
    asked: str


_dry_run_active: ContextVar[bool] = ContextVar("foreseeing", default=False)


@contextmanager
def dry_run() -> Iterator[None]:
    """Make every call end in ``DryRunStop`` just before its spend: nothing is spent, and no row is read."""
    token = _dry_run_active.set(True)
    try:
        yield
    finally:
        _dry_run_active.reset(token)


def lookup_or_stop(
    ledger: Ledger, task: str, plans: Sequence[PlannedCall[Any]], loss: Loss, refresh: bool, *, offered: Loss,
    zcdp: ZCDP | None = None, **more: Any,
) -> tuple[str, Any]:  # fmt: skip
    """Return what identifies exactly this call, and its cached result or ``None``; refuse one of other data."""
    key = cache_key(ledger, task, plans, offered, **more)
    if _dry_run_active.get():
        raise DryRunStop(task, tuple(plans), loss, zcdp, key)
    recalled = load_cached(ledger, key, refresh, subject_of(plans[0].question).origin)
    if recalled is not None and recalled.other_data:
        hint = "for a result of these data set ", Setting("refresh", True), ", or give the data another name"
        raise LedgerError(recalled.other_data, argument="refresh", rule="other-data", hint=hint)
    return key, None if recalled is None else recalled.answer


def cache_key(ledger: Ledger, task: str, plans: Sequence[PlannedCall[Any]], offered: Loss, **more: Any) -> str:
    """Return what identifies exactly this call, 64 hexadecimal digits of its form; empty where no answer is kept.

    That is without a name, without privacy, under simulated noise, and where a part of the question is an object that
    has no words, as a model of x.
    """
    if not ledger.private or simulated():
        return ""
    try:
        return sha256(cache_key_text(task, plans, offered, **more).encode()).hexdigest()
    except NotStorableError:
        return ""


@dataclass(frozen=True)
class Recalled:
    """A cached result, marked as kept, and why it is not of the data that are asked about; empty where it is."""

    answer: Any
    other_data: str


def load_cached(ledger: Ledger, key: str, refresh: bool, origin: Origin | None) -> Recalled | None:
    """Return the cached result of exactly this call; ``None`` if there is none, or ``refresh`` runs it again at a new
    privacy cost.

    ``origin`` is what data are asked about, ``None`` where they are not there.  A LedgerError where it was spent for
    and no answer was kept: the run ended in between.
    """
    if not isinstance(refresh, bool):
        raise ParameterError("refresh must be True or False")
    stored = None if refresh or not key else ledger.cached(key)
    if stored is None:
        return None
    number, record = stored
    answer = None
    with suppress(KeyError, ValueError, TypeError, LookupError, AttributeError):
        answer = decode(record["released"], cached=f"spend {number} of this ledger paid for it on {record['at']}")
    if answer is None:
        message = f"the answer of spend {number} was kept by another version of this library and cannot be read"
        hint = "to pay again set ", Setting("refresh", True)
        raise LedgerError(message, argument="refresh", rule="unreadable-answer", value=number, hint=hint)
    why = "" if origin is None else _other_data(ledger, key, str(record.get("data", "")), origin)
    return Recalled(answer, why and f"spend {number} answered this question, but {why}")


_frames: dict[tuple[object, str], Origin] = {}
"""The frame in memory that each answer was made from, or was first given for, in this process: never written down."""


def _other_data(ledger: Ledger, key: str, mark: str, origin: Origin) -> str:
    if mark and origin.mark:
        return "" if mark == origin.mark else "its file was written to, replaced or copied since"
    if mark or origin.mark:
        return f"from a {'file' if mark else 'frame in memory'}"
    earlier = _frames.setdefault((_place(ledger), key), origin)
    return "from another frame of this process" if origin.is_other(earlier) else ""


def _place(ledger: Ledger) -> object:
    try:
        status = None if ledger.path is None else os.stat(ledger.path)
    except OSError:
        return str(ledger.path)
    return id(ledger) if status is None else (status.st_dev, status.st_ino)


def store(ledger: Ledger, origin: Origin, key: str, allotment: CallBudget, answer: Answer) -> Answer:
    """Write an answer beside its spend, if it is to be kept, and return it; a NotCachedWarning where that fails."""
    if not (key and allotment.private):
        return answer
    try:
        stamp = allotment.at[:16].replace("T", " ") + " UTC"
        ledger.store(allotment.number, {"released": encode(answer), "at": stamp, "data": origin.mark})
        _frames[_place(ledger), key] = origin
    except (NotStorableError, LedgerError, ParameterError) as error:
        # It is paid for and goes to whoever asked; the ledger goes on to say: spent, no answer.
        warn(NotCachedWarning(allotment.number, str(error), answer), stacklevel=2)
    return answer
