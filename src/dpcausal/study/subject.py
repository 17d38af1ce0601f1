"""The table or panel of a study: of its data, or of what is public of them."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcausal.codec import decode
from dpcausal.core.cache import DryRunStop
from dpcausal.data.columns import has_dates
from dpcausal.data.panels.panel import Panel
from dpcausal.data.schema import Bounded, Schema
from dpcausal.data.table import Table
from dpcausal.errors import ParameterError, SchemaError
from dpcausal.privacy.ledger import Ledger
from dpcausal.study.status import call_of, is_cached
from dpcausal.study.wording import answers_of

if TYPE_CHECKING:
    from dpcausal.study.file import StudyFile


def subject_of_data(frame: Any, file: StudyFile, schema: Schema | None, ledger: Ledger, name: str) -> Table | Panel:
    if file.panel is None:
        return Table(frame, _declared(schema), ledger, name=name, **file.table_options)
    layout, bounds = file.panel.model_dump(exclude={"bounds"}), file.panel.bounds
    return Panel(frame, **layout, bounds=Bounded(bounds.lower, bounds.upper), ledger=ledger, name=name)


def table_of_size(n: int, file: StudyFile, schema: Schema | None, ledger: Ledger, name: str) -> Table:
    """Return a table that is publicly the same as one of n records: it holds a simulated row."""
    options, frame = file.table_options, dict[str, Any]()
    for column, declared in _declared(schema).items():
        value = declared.lower if isinstance(declared, Bounded) else declared.values[0]
        frame[column] = np.array([np.datetime64("1970-01-01") if has_dates(declared) else value])
    frame = {cluster: np.zeros(1, dtype=np.int64) for cluster in options["clusters"]} | frame
    if file.weight is not None:
        frame[file.weight.column] = np.array([file.weight.largest])
    if file.person is not None:
        frame[file.person] = np.zeros(1, dtype=np.int64)
    table = Table(frame, _declared(schema), ledger, name=name, **options)
    return table.with_spec(replace(table.spec, n=n))


def subject_of_results(
    file: StudyFile, schema: Schema | None, ledger: Ledger, trial: Ledger, name: str
) -> Table | Panel | None:
    """Return what is publicly the same as the data of the newest result in the ledger; ``None`` if there is no result.

    A result states the number of records and the periods of a panel.  Its ledger states the series of the targets.
    """
    if file.panel is None and file.n is not None:
        return table_of_size(file.n, file, schema, trial, name)
    for entry in reversed(ledger.entries()):
        detail, stored = json.loads(entry.detail), ledger.answer(entry.number)
        if stored is None or not _is_about(file, detail, name):
            continue
        try:
            answer = answers_of(decode(stored["released"]))[0]
        except (LookupError, ValueError, TypeError, AttributeError):  # written by another version
            continue
        if file.panel is None:
            return table_of_size(answer.n, file, schema, trial, name)
        layout, bounds = file.panel.model_dump(exclude={"bounds", "period", "times"}), file.panel.bounds
        with suppress(ParameterError, SchemaError):  # the result may be about another panel that the ledger protects
            panel = Panel.from_declared(
                (*answer.past_times, *answer.times), answer.n, **layout, bounds=Bounded(bounds.lower, bounds.upper),
                ledger=ledger, name=name,
            )  # fmt: skip
            calls = (call_of(question, panel) for question in file.question)
            if any(isinstance(call, DryRunStop) and is_cached(ledger, call.key) for call in calls):
                return panel
    return None


def _is_about(file: StudyFile, detail: dict[str, Any], name: str) -> bool:
    if file.panel is None:
        return bool(detail.get("table") == name)
    target = file.panel.target
    names = {str(one) for one in (target if isinstance(target, list) else [target])}
    # A placebo in time states only the periods before the treatment.
    return "targets" in detail and not detail["early"] and set(detail["targets"]) <= names


def _declared(schema: Schema | None) -> Schema:
    if schema is None:
        raise ParameterError("the study declares no columns")
    return schema
