"""The form of a call, by which its kept answer is found again: plain JSON of public things, alike in every version.

A form names tasks, arguments and methods by the words that a user writes, so that it outlives classes that are moved,
renamed or given more fields.  What is ``None`` is left out: an argument or option that came later and is not given
leaves the form as it was.  Names stand in order where their order means nothing.  No row has a part in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import Enum
from operator import attrgetter
from typing import Any

import numpy as np

from dpcausal.asking.method import Method, Settled
from dpcausal.codec import NotStorableError
from dpcausal.data.columns import Bounded, Column, Levels
from dpcausal.data.panel import Panel
from dpcausal.data.table import Table
from dpcausal.data.where import Predicate
from dpcausal.privacy.allotment import json_text
from dpcausal.privacy.loss import Loss, loss_text

FORM = 1
"""Raised whenever two versions could write one form for different calls; answers kept under another are not found."""

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "ci_test": ("x", "y", "given", "alpha"),
    "direction": ("first", "second", "score", "protect", "alpha"),
    "discover": ("names", "alpha", "knowledge.forbidden", "knowledge.required", "knowledge.tiers"),
    "effect": ("treatment", "outcome", "adjust", "groups", "estimand", "treated", "control", "coverage"),
    "cells": ("by", "names"),
    "moments": ("names", "meat"),
    "did": ("time", "outcome", "cohort", "control", "coverage", "never"),
    "discontinuity": ("running", "outcome", "cutoff", "treatment", "bins", "bandwidth", "curvature", "coverage"),
    "synthetic control": ("targets", "coverage", "inference", "force", "early"),
}
"""What each task's question is made of, but for its table or panel; the rest of its fields follows from these."""

UNORDERED = ("x", "y", "given", "adjust", "knowledge.forbidden", "knowledge.required")
UNORDERED_PARTS = ("knowledge.tiers",)
"""Arguments, or those whose parts are lists, where order means nothing to a question or to the shape of an answer."""


def form_of(task: str, plans: Sequence[Settled[Any]], offered: Loss, **more: Any) -> str:
    """Return what stands for exactly this call; ``NotStorableError`` where a part of it has no words.

    ``offered`` is the loss that the caller named, of which a plan may spend less and say so.
    """
    calls = [
        {**_subject(plan.question), "task": plan.question.task, "asks": _asked(plan.question),
         "method": _way(plan.method), "loss": loss_text(plan.spent)} for plan in plans
    ]  # fmt: skip
    return json_text({"form": FORM, "task": task, "loss": loss_text(offered), "calls": calls, **_given(more)})


def _subject(question: Any) -> dict[str, Any]:
    subject = question.panel if hasattr(question, "panel") else question.table
    if not subject.name:
        raise NotStorableError("a table without a name")
    told = {name.removeprefix("_"): value for name, value in subject.identity.items()}
    return {"panel": _panel(told)} if isinstance(subject, Panel) else {"table": _table(subject, told)}


def _table(table: Table, told: dict[str, Any]) -> dict[str, Any]:
    views = sorted((_predicate(one) for one in told.pop("inside")), key=json_text)
    weight = told.pop("weight")
    told |= {"schema": _columns(told["schema"]), "where": views, "unit": table.unit.value}
    return _given(told | {"weight": None if weight is None else [weight[0], _column(weight[1])]})


def _panel(told: dict[str, Any]) -> dict[str, Any]:
    columns = {"bounds": _column(told["bounds"]), "covariates": _columns(told["covariates"])}
    return _given(told | columns | {"starts": [list(pair) for pair in told["starts"].items()]})


def _predicate(one: Predicate) -> dict[str, Any]:
    among = None if one.among is None else sorted((_told(level) for level in set(one.among)), key=json_text)
    return _given({"column": one.name, "at_least": one.at_least, "at_most": one.at_most, "among": among})


def _columns(schema: Mapping[str, Column]) -> dict[str, Any]:
    return {name: _column(column) for name, column in schema.items()}


def _column(column: Column) -> dict[str, Any]:
    if isinstance(column, Bounded):
        return _given({"lower": column.lower, "upper": column.upper, "cuts": column.cuts})
    if isinstance(column, Levels):
        return _given({"levels": column.values, "other": column.other})
    raise NotStorableError(type(column).__name__)


def _asked(question: Any) -> dict[str, Any]:
    told = {name: attrgetter(name)(question) for name in ARGUMENTS[question.task]}
    for name, part in told.items():
        if name in UNORDERED and not isinstance(part, str):
            told[name] = sorted(part)
        elif name in UNORDERED_PARTS:
            told[name] = [sorted(one) for one in part]
    return _given(told)


def _way(method: Method[Any, Any]) -> dict[str, Any]:
    if not type(method).__module__.startswith("dpcausal."):
        raise NotStorableError("a method of the caller's: its name does not say what it does")
    options = {one.name: getattr(method, one.name) for one in fields(method)}
    told = {name: _way(option) if isinstance(option, Method) else option for name, option in options.items()}
    return {"name": method.name, "options": _given(told)}


def _given(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _told(value) for name, value in told.items() if value is not None}


def _told(value: Any) -> Any:
    """Return a public value as JSON's types, those of different type or value told apart."""
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        return _told(value.item())
    if isinstance(value, Enum):
        return _told(value.value)
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if np.isfinite(value) else {"float": str(value)}
    if isinstance(value, (list, tuple)):
        return [_told(part) for part in value]
    if getattr(value, "words", None) is not None:  # a law of x that was stated
        return {"stated": _told(value.words)}
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: _told(part) for name, part in value.items()}
    raise NotStorableError(type(value).__name__)
