"""The form of a call, by which its cached result is found again: plain JSON of public things, alike in every version.

A form names tasks, arguments and methods by the words that a user writes, so that it outlives classes that are moved,
renamed or given more fields.  What is ``None`` is left out: an argument or option that came later and is not given
leaves the form as it was.

**Order is part of it.**  Options such as ``sizes`` or a distribution of what is given are read in the order of the
columns, an answer's axes follow it, and so do the last bits of a regression: names in another order are another
question.  Sets, and the clauses of a subgroup, of which a record must meet each, have no order.

**Of the schema it holds the columns that the question uses**, each with all that is declared of it: a column more in
the schema leaves it as it was, and another bound, level or code of a used column is another question.

**No private value has a part in it**: its hash is in the ledger, where a hash of records could be guessed at.  A
target's own series is public, and is in it.  Which data an answer was made from is reported otherwise: see ``cached``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from operator import attrgetter
from typing import Any

import numpy as np

from dpcausal.codec import NotStorableError
from dpcausal.core.method import Method, PlannedCall
from dpcausal.data.panels.panel import Panel
from dpcausal.data.subgroups.predicate import Predicate
from dpcausal.data.table import Table
from dpcausal.privacy.budget import json_text
from dpcausal.privacy.loss import Loss, loss_text

CACHE_KEY_VERSION = 2
"""Raised whenever two versions could write one form for different calls; answers kept under another are not found."""

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "ci_test": ("x", "y", "given", "alpha"),
    "direction": ("first", "second", "score", "alpha"),
    "discover": ("names", "alpha", "knowledge.forbidden", "knowledge.required", "knowledge.tiers"),
    "effect": ("treatment", "outcome", "adjust", "groups", "estimand", "treated", "control", "coverage"),
    "cells": ("by", "names"),
    "moments": ("names", "robust_for"),
    "did": ("time", "outcome", "cohort", "control", "coverage", "never"),
    "discontinuity": (
        "running", "outcome", "cutoff", "treatment", "bins", "bandwidth", "curvature", "coverage", "at_cutoff",
    ),
    "synthetic control": ("targets", "coverage", "inference", "force", "early"),
}
"""What each task's question is made of, but for its table or panel; the rest of its fields follows from these."""


def cache_key_text(task: str, plans: Sequence[PlannedCall[Any]], offered: Loss, **more: Any) -> str:
    """Return what identifies exactly this call; ``NotStorableError`` where a part of it has no words.

    ``offered`` is the loss that the caller named, of which a plan may spend less and say so.
    """
    calls = [_call(plan) for plan in plans]
    return json_text(
        {"form": CACHE_KEY_VERSION, "task": task, "loss": loss_text(offered), "calls": calls, **_drop_none(more)}
    )


def _call(plan: PlannedCall[Any]) -> dict[str, Any]:
    question = _question_key(plan.question)
    key = {
        "task": plan.question.task,
        "question": question,
        "method": _method_key(plan.method),
        "loss": loss_text(plan.spent),
    }
    return key | _dataset_key(plan.question, question)


def subject_of(question: Any) -> Table | Panel:
    """Return the table or panel that a question is about."""
    subject: Table | Panel = question.panel if hasattr(question, "panel") else question.table
    return subject


def _dataset_key(question: Any, question_key: dict[str, Any]) -> dict[str, Any]:
    subject = subject_of(question)
    if not subject.name:
        raise NotStorableError("a table without a name")
    identity = {name.removeprefix("_"): value for name, value in subject.identity.items()}
    if isinstance(subject, Panel):
        return {"panel": _panel(identity)}
    return {"table": _table(subject, identity, question_key)}


def _table(table: Table, key: dict[str, Any], question_key: dict[str, Any]) -> dict[str, Any]:
    inside, weight, schema = (key.pop(name) for name in ("inside", "weight", "schema"))
    used = {*_texts(question_key), *(one.name for one in inside)}  # a level that is called as a column brings one more
    columns = {name: column.to_dict() for name, column in schema.items() if name in used}
    key |= {"schema": columns, "where": _subgroup(inside), "unit": table.unit.value}
    return _drop_none(key | {"weight": None if weight is None else [weight[0], weight[1].to_dict()]})


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _panel(key: dict[str, Any]) -> dict[str, Any]:
    covariates = {name: column.to_dict() for name, column in key["covariates"].items()}
    pairs = {name: [list(pair) for pair in key[name].items()] for name in ("starts", "series")}
    return _drop_none(key | {"bounds": key["bounds"].to_dict(), "covariates": covariates} | pairs)


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


def _question_key(question: Any) -> dict[str, Any]:
    return _drop_none({name: attrgetter(name)(question) for name in ARGUMENTS[question.task]})


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
