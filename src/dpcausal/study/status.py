"""The state of a question of a study: to be answered at a cost, answered, paid for without a result, or impossible."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcausal.core.cache import DryRunStop, dry_run, load_cached
from dpcausal.data.panels.panel import Panel
from dpcausal.data.schema import Bounded, Schema
from dpcausal.data.sources.origin import Origin
from dpcausal.data.table import Table
from dpcausal.errors import BudgetExceededError, DpCausalError, LedgerError
from dpcausal.planning.plan import task_plan_of
from dpcausal.planning.registry import TASK_PLANS
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import Loss, parse_loss
from dpcausal.privacy.sensitivity import Relation, Unit
from dpcausal.result import plain, short_loss
from dpcausal.study.tasks import ask, method_of
from dpcausal.study.wording import Wording

if TYPE_CHECKING:
    from dpcausal.study.file import QuestionPart

TO_ASK, ANSWERED, EARLIER, UNKEPT, SPENT, CANNOT, BEYOND = (
    "to ask", "answered", "answered from other data", "answered, not in the ledger", "spent, no answer",
    "cannot be asked", "beyond the budget",
)  # fmt: skip


@dataclass(frozen=True)
class QuestionStatus:
    """One question: its state, cost, method, expected accuracy, and its result if it was saved.

    ``asked`` identifies exactly this call in the ledger; ``error`` is why it cannot be answered.  ``about`` and
    ``conclusions`` are the question and its result as text.
    """

    question: QuestionPart
    state: str
    reason: str = ""
    cost: Loss | None = None
    method: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()
    forecast: str = ""
    asked: str = ""
    about: str = ""
    conclusions: tuple[str, ...] = ()
    answer: Any = field(default=None, repr=False)
    error: DpCausalError | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON's types, the answer as its own ``to_dict``."""
        plainly = self.__dataclass_fields__.keys() - {"answer", "error", "about"}
        values = {name: plain(getattr(self, name)) for name in self.__dataclass_fields__ if name in plainly}
        each = self.answer if isinstance(self.answer, tuple) else (self.answer,)
        answer = None if self.answer is None else [one.to_dict() for one in each]
        return values | {"question": self.question.name, "task": self.question.task, "answer": answer}

    @property
    def expected(self) -> list[str]:
        """What to expect of it, or what became of it, as text."""
        if self.state == TO_ASK:
            return [part for part in (*self.forecast.split("; "), self.reason) if part]
        return [f"{self.state}: {self.reason}" if self.reason else self.state]

    def line(self) -> str:
        """Return its progress in a line."""
        cost = "" if self.cost is None else f"   {short_loss(self.cost)}"
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.question.name}{cost}   {self.state}{reason}"

    def worded(self, wording: Wording) -> QuestionStatus:
        """Return it with its question and its result as text."""
        each = self.answer if isinstance(self.answer, tuple) else (self.answer,)
        lines = [line for one in each if one is not None for line in wording.conclusions(self.question, one)]
        return replace(self, about=wording.short(self.question), conclusions=tuple(lines))


def approximate_power(question: QuestionPart, subject: Table | Panel) -> DryRunStop | DpCausalError:
    """Return how far a question would come: to its spend, or to an error that public things alone make."""
    try:
        with dry_run():
            ask(question, subject)
    except DryRunStop as stopped:
        return stopped
    except DpCausalError as error:
        return error
    raise LedgerError("a task ended before its spend")


def standing(
    question: QuestionPart, subject: Table | Panel, ledger: Ledger | None, origin: Origin | None, *,
    trial: Ledger | None = None, counted: Mapping[str, str] = MappingProxyType({}), refresh: bool = False,
) -> QuestionStatus:  # fmt: skip
    """Return how a question stands with a ledger, which is looked at only; nothing is spent and no row is read.

    What plan and run go by.  ``origin`` is what data are asked about, ``None`` if they are not there.  A ``trial`` of
    the same budget counts what is still to ask, and says what is beyond it, but for what is ``counted`` under another
    name; ``refresh`` asks again whatever is cached.
    """
    call = approximate_power(question, subject)
    if isinstance(call, DpCausalError):
        return QuestionStatus(question, CANNOT, call.message("toml"), error=call)
    caveats = tuple(dict.fromkeys(caveat for plan in call.plans for caveat in plan.caveats))
    first = call.plans[0].method
    fields: dict[str, Any] = {
        "cost": call.loss, "method": first.name, "settings": first.options(), "caveats": caveats,
        "asked": call.key,
    }  # fmt: skip
    try:
        cached = None if ledger is None else load_cached(ledger, call.key, refresh, origin)
    except LedgerError as error:
        return QuestionStatus(question, SPENT, error.message("toml"), error=error, **fields)
    if cached is not None:
        state = EARLIER if cached.other_data else ANSWERED
        return QuestionStatus(question, state, cached.other_data, answer=cached.answer, **fields)
    if call.key in counted and not refresh:
        return QuestionStatus(question, TO_ASK, f"with {counted[call.key]}, the same question", **fields)
    why = None if trial is None else refused(call, trial)
    if why is not None:
        state = BEYOND if isinstance(why, BudgetExceededError) else CANNOT
        return QuestionStatus(question, state, why.message("toml"), error=why, **fields)
    return QuestionStatus(question, TO_ASK, **fields)


def simulated_ledger(ledger: Ledger | None, trial: Ledger) -> Ledger:
    """Return an empty ``trial`` ledger with the spends of another, of the same budget and unit: what does it admit?"""
    for entry in [] if ledger is None else ledger.entries():
        zcdp: Any = None if entry.zcdp is None else parse_loss(entry.zcdp)
        trial.charge(parse_loss(entry.loss), task=entry.task, unit=Unit(entry.unit), unit_column=entry.column,
                    relation=Relation(entry.relation), zcdp=zcdp, once=json.loads(entry.once))  # fmt: skip
    return trial


def refused(call: DryRunStop, trial: Ledger) -> DpCausalError | None:
    """Return why a trial ledger refuses a call; ``None`` if it admits it, which counts it."""
    question = call.plans[0].question
    try:
        trial.charge(call.loss, task=call.task, unit=question.unit, unit_column=question.unit_column,
                    zcdp=call.zcdp, once=question.once_per_ledger)  # fmt: skip
    except (BudgetExceededError, LedgerError) as error:
        return error
    return None


MOST_ROWS = 200_000
"""At most this many rows are simulated: the forecast is then that of this many, on the careful side."""


def synthetic_table(schema: Schema, n: int, ledger: Ledger, **options: Any) -> Table:
    """Return a table of simulated rows, all alike, that is publicly the same."""
    frame: dict[str, Any] = {}
    for name, column in schema.items():
        frame[name] = np.full(n, column.lower) if isinstance(column, Bounded) else np.repeat(column.values[:1], n)
    if options.get("person") is not None:
        frame[options["person"]] = np.arange(n)
    return Table(frame, schema, ledger, **options)


def forecast(question: QuestionPart, schema: Schema | None, n: int, subject: Table | Panel) -> str:
    """Return what accuracy to expect of an answer, in words; empty where no plan is of such a question."""
    try:
        if question.task not in TASK_PLANS or (schema is None and not isinstance(subject, Panel)):
            return ""
        kind = TASK_PLANS[question.task]
        if not kind.quick:
            return f"see: dpcausal plan {question.task.replace('_', '-')} --n {n}"
        assumptions = {"method": method_of(question), "persons": subject.unit is not Unit.ROW}
        assumptions = question.arguments | assumptions | question.assumed
        task_plan = task_plan_of(kind, schema, assumptions)
        parts: list[tuple[str, Any]] = [("", task_plan)]
        if getattr(task_plan, "groups", 0):
            grouped: Any = task_plan
            parts = [("everyone: ", replace(grouped, groups=0)), ("", grouped)]
        texts = [f"{name}{one.sentence(one.expected(min(n, MOST_ROWS), question.loss()))}" for name, one in parts]
    except DpCausalError as error:
        return f"no prediction: {error.message('toml')}"
    return ("of all records: " if question.where else "") + "; ".join(texts)


def question_is_kept(ledger: Ledger, key: str) -> bool:
    """Return whether the ledger has the answer of a question that was paid for."""
    try:
        return ledger.cached(key) is not None
    except LedgerError:
        return False
