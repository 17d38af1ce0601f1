"""What accuracy to expect of a study's questions, as a plan has it, and tables that are publicly like the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpcausal.data.panel import Panel
from dpcausal.data.schema import Bounded, Schema
from dpcausal.data.table import Table
from dpcausal.errors import DpCausalError
from dpcausal.planning.plan import prospect_of
from dpcausal.planning.prospects import PROSPECTS
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.neighbours import Unit
from dpcausal.study.tasks import method_of
from dpcausal.synthetic_control.ask import plan_synthetic_control

if TYPE_CHECKING:
    from dpcausal.study.file import QuestionPart

MOST_ROWS = 200_000
"""More are not made up: the forecast is then that of so many, on the careful side."""


def stand_in(schema: Schema, n: int, ledger: Ledger, **words: Any) -> Table:
    """Return a table of made-up rows, all alike, that is publicly the same."""
    frame: dict[str, Any] = {}
    for name, column in schema.items():
        frame[name] = np.full(n, column.lower) if isinstance(column, Bounded) else np.repeat(column.values[:1], n)
    if words.get("person") is not None:
        frame[words["person"]] = np.arange(n)
    return Table(frame, schema, ledger, **words)


def forecast(question: QuestionPart, schema: Schema | None, n: int, subject: Table | Panel) -> str:
    """Return what accuracy to expect of an answer, in words; empty where no plan is of such a question."""
    try:
        if isinstance(subject, Panel):
            if question.task != "synthetic_control" or question.method != "auto":
                return ""
            asked: dict[str, Any] = {name: question.arguments.get(name) for name in ("target", "start")}
            return plan_synthetic_control(subject, loss=question.loss(), **asked).verdict
        if schema is None or question.task not in PROSPECTS:
            return ""
        kind = PROSPECTS[question.task]
        if not kind.quick:
            return f"dpcausal plan {question.task} --n {n} ... tells in some seconds"
        words = {"method": method_of(question), "persons": subject.unit is not Unit.ROW}
        words = question.arguments | words | question.assumed
        prospect = prospect_of(kind, schema, words)
        found = prospect.expected(min(n, MOST_ROWS), question.loss())
    except DpCausalError as error:
        return f"not foretold: {error}"
    return ("were all records asked, " if question.where else "") + prospect.sentence(found)
