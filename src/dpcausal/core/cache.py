"""Cached results: exactly the same question, asked again of the same data, is answered from the ledger, free.

What was released is in the ledger beside its spend.  "The same question" applies to public things alone: the
table's name, size, used columns, unit and subgroup, the question, the planned method and the loss; never of rows, so
that a lookup reveals nothing of them.  "The same data" is what ``Origin`` can identify: an answer that was made from
other data, as of a file before it was written to, is not given for these.  It is not paid for again by default either:
the data may hold the same records.

A question is found by its key, plain JSON of public things in the words that a user writes, so that it outlives classes
that are moved, renamed or given more fields; what is ``None`` is left out.  The order of names is part of it: options,
axes and the last bits of a regression follow it.  Of the schema it holds the columns that the question uses, each with
all that is declared of it.  No private value has a part in it: its hash is in the ledger, where a hash of records could
be guessed at.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields
from enum import Enum
from hashlib import sha256
from operator import attrgetter
from typing import Any, TypeVar
from warnings import warn

import numpy as np

from dpcausal.codec import NotStorableError, decode, encode
from dpcausal.core.method import Method, PlannedCall
from dpcausal.data.panels.panel import Panel
from dpcausal.data.sources.origin import Origin
from dpcausal.data.subgroups.predicate import Predicate
from dpcausal.data.table import Table
from dpcausal.errors import LedgerError, NotCachedWarning, ParameterError, Setting
from dpcausal.privacy.budget import CallBudget, json_text
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ZCDP, Loss, loss_text
from dpcausal.privacy.noise import is_simulated

CACHE_KEY_VERSION = 2
"""Raised whenever two versions could write one form for different calls; answers kept under another are not found."""

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "ci_test": ("x", "y", "given", "alpha"),
    "direction": ("first", "second", "score", "alpha"),
    "discover": ("names", "alpha", "knowledge.forbidden", "knowledge.required", "knowledge.tiers"),
    "effect": ("treatment", "outcome", "adjust", "groups", "estimand", "treated", "control", "coverage"),
    "cells": ("by", "names"),
    "moments": ("names", "robust_for"),
    "did": ("time", "outcome", "cohort", "control", "coverage", "never", "adjust", "squares"),
    "discontinuity": (
        "running", "outcome", "cutoff", "treatment", "bins", "bandwidth", "curvature", "coverage", "at_cutoff",
    ),
    "synthetic control": ("targets", "coverage", "inference", "force", "early"),
}  # fmt: skip
"""What each task's question is made of, but for its table or panel; the rest of its fields follows from these."""


def cache_key_text(task: str, plans: Sequence[PlannedCall[Any]], offered: Loss, **more: Any) -> str:
    """Return what identifies exactly this call; ``NotStorableError`` where a part of it has no words. ``offered`` is
    the loss that the caller named, of which a plan may spend less and say so."""
    calls = [_call_form(plan) for plan in plans]
    return json_text(
        {"form": CACHE_KEY_VERSION, "task": task, "loss": loss_text(offered), "calls": calls, **_drop_none(more)}
    )


def _call_form(plan: PlannedCall[Any]) -> dict[str, Any]:
    question = _drop_none({name: attrgetter(name)(plan.question) for name in ARGUMENTS[plan.question.task]})
    key = {
        "task": plan.question.task,
        "question": question,
        "method": _method_key(plan.method),
        "loss": loss_text(plan.spent),
    }
    return key | _dataset_key(plan.question, question)


def subject_of(question: Any) -> Table | Panel:
    subject: Table | Panel = question.panel if hasattr(question, "panel") else question.table
    return subject


def _dataset_key(question: Any, question_key: dict[str, Any]) -> dict[str, Any]:
    subject = subject_of(question)
    if not subject.name:
        raise NotStorableError("a table without a name")
    identity = {name.removeprefix("_"): value for name, value in subject.identity.items()}
    if isinstance(subject, Panel):
        return {"panel": _panel_form(identity)}
    return {"table": _table_form(subject, identity, question_key)}


def _table_form(table: Table, key: dict[str, Any], question_key: dict[str, Any]) -> dict[str, Any]:
    inside, weight, schema = (key.pop(name) for name in ("inside", "weight", "schema"))
    # A level that is called as a column brings one more.
    used = {*_texts_in(question_key), *(one.name for one in inside)}
    columns = {name: column.to_dict() for name, column in schema.items() if name in used}
    key |= {"schema": columns, "where": _subgroup(inside), "unit": table.unit.value}
    return _drop_none(key | {"weight": None if weight is None else [weight[0], weight[1].to_dict()]})


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(part)


def _panel_form(key: dict[str, Any]) -> dict[str, Any]:
    starts = [list(pair) for pair in key["starts"].items()]
    series = [[name, [row]] for name, row in key["series"].items()]
    # The key is that of versions that had covariates: kept answers are found by it.
    return _drop_none(key | {"bounds": key["bounds"].to_dict(), "covariates": {}, "starts": starts, "series": series})


def _subgroup(inside: Sequence[Predicate]) -> list[dict[str, Any]]:
    """Return a range or levels for each column: clauses about one column are one, however they are written."""
    views: dict[str, dict[str, Any]] = {}
    for one in inside:
        view = views.setdefault(one.name, {"column": one.name})
        for end, tighter in (("at_least", max), ("at_most", min)):
            if (value := getattr(one, end)) is not None:
                view[end] = tighter(value, view.get(end, value))
        if one.among is not None:
            view["among"] = view.get("among", set(one.among)) & set(one.among)
    for view in views.values():
        if "among" in view:
            view["among"] = sorted((_to_json_key(level) for level in view["among"]), key=json_text)
    return sorted((_drop_none(view) for view in views.values()), key=json_text)


def _method_key(method: Method[Any]) -> dict[str, Any]:
    if not type(method).__module__.startswith("dpcausal."):
        raise NotStorableError("a method of the caller's: its name does not say what it does")
    options = {one.name: getattr(method, one.name) for one in fields(method)}
    values = {name: _method_key(option) if isinstance(option, Method) else option for name, option in options.items()}
    return {"name": method.name, "options": _drop_none(values)}


def _drop_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _to_json_key(value) for name, value in values.items() if value is not None}


def _to_json_key(value: Any) -> Any:
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        return _to_json_key(value.item())
    if isinstance(value, Enum):
        return _to_json_key(value.value)
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value + 0.0 if np.isfinite(value) else {"float": str(value)}  # -0.0 is 0.0
    if isinstance(value, (list, tuple)):
        return [_to_json_key(part) for part in value]
    if isinstance(value, frozenset):
        return sorted((_to_json_key(part) for part in value), key=json_text)
    if isinstance(value, np.ndarray):
        return _to_json_key(value.tolist())
    if getattr(value, "mapping", None) is not None:  # a stated distribution of x
        return {"stated": _to_json_key(value.mapping)}
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: _to_json_key(part) for name, part in value.items()}
    raise NotStorableError(type(value).__name__)


Answer = TypeVar("Answer")


@dataclass
class DryRunStop(Exception):  # noqa: N818 - no error: how a call that is only foreseen ends
    """A call that came as far as its spend under ``dry_run``: what it would cost, by which plans, known as what."""

    task: str
    plans: tuple[PlannedCall[Any], ...]
    loss: Loss
    zcdp: ZCDP | None
    key: str


_dry_run_active: ContextVar[bool] = ContextVar("foreseeing", default=False)


@contextmanager
def dry_run() -> Iterator[None]:
    token = _dry_run_active.set(True)
    try:
        yield
    finally:
        _dry_run_active.reset(token)


def lookup_or_stop(
    ledger: Ledger, task: str, plans: Sequence[PlannedCall[Any]], loss: Loss, refresh: bool, *, offered: Loss,
    zcdp: ZCDP | None = None, **more: Any,
) -> tuple[str, Any]:  # fmt: skip
    key = cache_key(ledger, task, plans, offered, **more)
    if _dry_run_active.get():
        raise DryRunStop(task, tuple(plans), loss, zcdp, key)
    answer, other_data = load_cached(ledger, key, refresh, subject_of(plans[0].question).origin)
    if other_data:
        hint = "for a result of these data use ", Setting("refresh", True), ", or give the data another name"
        raise LedgerError(other_data, argument="refresh", rule="other-data", hint=hint)
    return key, answer


def cache_key(ledger: Ledger, task: str, plans: Sequence[PlannedCall[Any]], offered: Loss, **more: Any) -> str:
    """Return what identifies exactly this call, 64 hexadecimal digits of its form; empty where no answer is kept. That
    is without a name, without privacy, under simulated noise, and where a part of the question is an object that has no
    words, as a model of x."""
    if not ledger.private or is_simulated():
        return ""
    try:
        return sha256(cache_key_text(task, plans, offered, **more).encode()).hexdigest()
    except NotStorableError:
        return ""


def load_cached(ledger: Ledger, key: str, refresh: bool, origin: Origin | None) -> tuple[Any, str]:
    """Return the cached result of exactly this call, marked as kept, and why it is not of the data that are asked
    about, empty where it is; ``None`` if there is none, or ``refresh`` runs it again at a new privacy cost. ``origin``
    is what data are asked about, ``None`` where they are not there.  A LedgerError where it was spent for and no answer
    was kept: the run ended in between."""
    if not isinstance(refresh, bool):
        raise ParameterError("refresh must be True or False")
    stored = None if refresh or not key else ledger.cached(key)
    if stored is None:
        return None, ""
    number, record = stored
    answer = None
    with suppress(KeyError, ValueError, TypeError, LookupError, AttributeError):
        answer = decode(record["released"], cached=f"spend {number} of this ledger paid for it on {record['at']}")
    if answer is None:
        message = f"the answer of spend {number} was kept by another version of this library and cannot be read"
        hint = "to pay again use ", Setting("refresh", True)
        raise LedgerError(message, argument="refresh", rule="unreadable-answer", value=number, hint=hint)
    why = "" if origin is None else _other_data(ledger, key, str(record.get("data", "")), origin)
    return answer, why and f"spend {number} answered this question, but {why}"


_frames: dict[tuple[object, str], Origin] = {}
"""The frame in memory that each answer was made from, or was first given for, in this process: never written down."""


def _other_data(ledger: Ledger, key: str, mark: str, origin: Origin) -> str:
    if mark and origin.mark:
        return "" if mark == origin.mark else "its file was written to, replaced or copied since"
    if mark or origin.mark:
        return f"from a {'file' if mark else 'frame in memory'}"
    earlier = _frames.setdefault((_ledger_place(ledger), key), origin)
    return "from another frame of this process" if origin.is_other(earlier) else ""


def _ledger_place(ledger: Ledger) -> object:
    try:
        status = None if ledger.path is None else os.stat(ledger.path)
    except OSError:
        return str(ledger.path)
    return id(ledger) if status is None else (status.st_dev, status.st_ino)


def store(ledger: Ledger, origin: Origin, key: str, allotment: CallBudget, answer: Answer) -> Answer:
    if not (key and allotment.private):
        return answer
    try:
        stamp = allotment.at[:16].replace("T", " ") + " UTC"
        ledger.store(allotment.number, {"released": encode(answer), "at": stamp, "data": origin.mark})
        _frames[_ledger_place(ledger), key] = origin
    except (NotStorableError, LedgerError, ParameterError) as error:
        # It is paid for and goes to whoever asked; the ledger goes on to say: spent, no answer.
        warn(NotCachedWarning(allotment.number, str(error), answer), stacklevel=2)
    return answer
