"""The state of a study's questions: to be answered at a cost, answered, paid without a result, or impossible."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import zip_longest
from textwrap import wrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dpcausal.core.cache import DryRunStop, dry_run, load_cached
from dpcausal.data.panels.matrix import place_of
from dpcausal.data.panels.panel import Panel
from dpcausal.data.schema import Schema
from dpcausal.data.sources.origin import Origin
from dpcausal.data.table import Table
from dpcausal.errors import BudgetExceededError, DpCausalError, LedgerError, hints_in
from dpcausal.planning.effects import EveryonePlan
from dpcausal.planning.plan import TASK_PLANS, UNCHANGING, task_plan_of
from dpcausal.planning.task_plan import TaskPlan
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ZCDP, Loss, parse_loss
from dpcausal.privacy.sensitivity import Relation, Unit
from dpcausal.result import TextResult, plain, short_amount, short_loss
from dpcausal.study.tasks import ask, method_of
from dpcausal.study.wording import Wording, answers_of

if TYPE_CHECKING:
    from dpcausal.study.file import QuestionPart

TO_ASK, ANSWERED, EARLIER, UNKEPT, SPENT, CANNOT, BEYOND = (
    "to ask", "answered", "answered from other data", "answered, not in the ledger", "spent, no answer",
    "cannot be asked", "beyond the budget",
)  # fmt: skip
SAVE = "the answer could not be written to the ledger and cannot be read again: save it now"
WIDTH = 88


@dataclass(frozen=True)
class QuestionStatus:
    """One question: its state, cost, method, expected accuracy, and its result if it was saved. ``key`` identifies
    exactly this call in the ledger; ``error`` is why it cannot be answered.  ``about`` and ``conclusions`` are the
    question and its result as text."""

    question: QuestionPart
    state: str
    reason: str = ""
    cost: Loss | None = None
    method: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()
    forecast: str = ""
    key: str = ""
    about: str = ""
    conclusions: tuple[str, ...] = ()
    answer: Any = field(default=None, repr=False)
    error: DpCausalError | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        values = {name: plain(one) for name, one in vars(self).items() if name not in ("answer", "error", "about")}
        answer = None if self.answer is None else [one.to_dict() for one in answers_of(self.answer)]
        return values | {"question": self.question.name, "task": self.question.task, "answer": answer}

    @property
    def expected(self) -> list[str]:
        """What to expect of it, or its state, as text."""
        if self.state == TO_ASK:
            return [part for part in (*self.forecast.split("; "), self.reason) if part]
        return [f"{self.state}: {self.reason}" if self.reason else self.state]

    def line(self) -> str:
        cost = "" if self.cost is None else f"   {short_loss(self.cost)}"
        return f"{self.question.name}{cost}   {self.expected[0] if self.state != TO_ASK else self.state}"

    def worded(self, wording: Wording) -> QuestionStatus:
        with hints_in("toml"):
            lines = [line for one in answers_of(self.answer) for line in wording.conclusions(self.question, one)]
        return replace(self, about=wording.short(self.question), conclusions=tuple(lines))


@dataclass(frozen=True)
class StudyPlan(TextResult):
    """The state of all questions of a study, and what is left of its budget.

    Attributes
    ----------
    title : str
    n : int
        Records, public.
    questions : tuple of QuestionStatus
        One per question, in order.
    budget : Loss
    left : Remaining
        Of the budget, before the questions that are still to be answered.
    records : str
        What the records are: people, rows or units.
    missing_ledger : str
        Name of the ledger if it does not exist; empty if it does.
    head : str
        Fingerprint of the ledger; empty where there is none.
    spent : str
        The sum of all spends of the ledger, as ``ε = 1.75``, with its δ.
    """

    title: str
    n: int
    questions: tuple[QuestionStatus, ...]
    budget: Loss
    left: Any
    records: str = "rows"
    missing_ledger: str = ""
    head: str = ""
    spent: str = "ε = 0"

    @property
    def done(self) -> bool:
        """Whether every question is answered."""
        return all(one.state == ANSWERED for one in self.questions)

    @property
    def refresh_advice(self) -> list[str]:
        """What to do about answers from other data: a line, or none."""
        advice = "--refresh NAME answers a question from the data as they are now, at a new cost."
        return [advice] if any(one.state == EARLIER for one in self.questions) else []

    @property
    def remaining(self) -> str:
        return str(self.left)

    @property
    def amounts(self) -> tuple[str, float, float]:
        """The symbol of what is counted, the budget, and what is left of it."""
        if isinstance(self.budget, ZCDP):
            return "ρ", self.budget.rho, self.left.rho or 0.0
        return "ε", getattr(self.budget, "epsilon", 0.0), self.left.epsilon or 0.0

    @property
    def rest(self) -> str:
        return short_amount(self.amounts[2])

    @property
    def account(self) -> str:
        """What was spent of the budget, and what one more question may cost."""
        return f"{self.spent} of {self.budget}; one more question may cost {self.amounts[0]} = {self.rest}"

    def summary(self, *, verbose: bool = False, path: str = "study.toml") -> str:
        """Return the plan as text; ``verbose`` adds δ, ρ and all that each method assumes."""
        left = self.remaining if verbose else self.rest
        lines = [self.title, f"{self.n:,} {self.records}. Budget {short_loss(self.budget)}: {left} left. Nothing is "
                             "spent by this command."]  # fmt: skip
        if self.missing_ledger:
            lines.append(f"The ledger {self.missing_ledger} does not exist yet.")
        if not self.questions:
            return "\n".join([*lines, "", "No question yet: add a [[question]] to the file."])
        lines += ["", *self._table(verbose), "", *self._closing()]
        if verbose:
            with hints_in("toml"):
                lines += [f"warning: {one.question.name}: {caveat}"
                          for one in self.questions if one.state == TO_ASK for caveat in one.caveats]  # fmt: skip
        elif any(one.caveats for one in self.questions):
            lines.append(f"Assumptions of each method: dpcausal plan {path} --verbose")
        new, states = " --new-ledger" if self.missing_ledger else "", {one.state for one in self.questions}
        if states & {CANNOT, BEYOND}:
            which = "that cannot be asked" if CANNOT in states else "beyond the budget"
            return "\n".join([*lines, f"Next: change the questions {which}, then dpcausal plan {path}"])
        return "\n".join([*lines, f"Next: dpcausal {'report' if self.done else 'run'} {path}{new}"])

    def _table(self, verbose: bool) -> list[str]:
        name = max(8, *(len(one.question.name) for one in self.questions))
        kind = min(36, max(4, *(len(one.about) for one in self.questions)))
        lines = [f"{'question':{name}}  {'type':{kind}}  {'cost':>8}  expected result, if assumptions hold"]
        room = max(28, WIDTH - name - kind - 14)
        for one in self.questions:
            cost = "" if one.cost is None else str(one.cost) if verbose else short_loss(one.cost)
            expected = [part for text in one.expected for part in wrap(text, room)]
            columns = [one.question.name], wrap(one.about, kind) or [""], [cost], expected
            lines += [f"{first:{name}}  {about:{kind}}  {paid:>8}  {text}".rstrip()
                      for first, about, paid, text in zip_longest(*columns, fillvalue="")]  # fmt: skip
        return lines

    def _closing(self) -> list[str]:
        named = {state: ", ".join(one.question.name for one in self.questions if one.state == state)
                 for state in (CANNOT, BEYOND, EARLIER)}  # fmt: skip
        lines = [f"{state[0].upper()}{state[1:]}: {names}." for state, names in named.items() if names]
        if named[CANNOT] or named[BEYOND]:
            return [*lines, "A run stops here; with --partial it answers the other questions."]
        lines += self.refresh_advice
        costs = {one.key or one.question.name: one.cost for one in self.questions if one.state == TO_ASK}
        if costs:
            amounts = [getattr(cost, "epsilon", None) for cost in costs.values()]
            whole = sum(amount or 0.0 for amount in amounts)
            total = "" if None in amounts else f" for ε = {short_amount(round(whole, 12))} in all"
            lines.append(f"A run answers {len(costs)} question{'s' * (len(costs) != 1)}{total}, within the budget.")
        elif self.done:
            lines.append("All questions are answered. Repeating them is free.")
        return lines

    def to_dict(self) -> dict[str, Any]:
        return {"title": self.title, "n": self.n, "remaining": self.remaining, "missing_ledger": self.missing_ledger,
                "questions": [one.to_dict() for one in self.questions]}  # fmt: skip


def call_of(question: QuestionPart, subject: Table | Panel) -> DryRunStop | DpCausalError:
    """Return the call of a question as it is before its spend, or an error that public things alone make."""
    try:
        with dry_run():
            ask(question, subject)
    except DryRunStop as stopped:
        return stopped
    except DpCausalError as error:
        return error
    raise LedgerError("a task ended before its spend")


def status_of(
    question: QuestionPart, subject: Table | Panel, ledger: Ledger | None, origin: Origin | None, *,
    trial: Ledger | None = None, counted: Mapping[str, str] = MappingProxyType({}), refresh: bool = False,
) -> QuestionStatus:  # fmt: skip
    """Return the state of a question by a ledger, which is not changed; nothing is spent and no row is read. ``origin``
    identifies the data, ``None`` if they are not there.  A ``trial`` ledger of the same budget counts the cost, unless
    the same call is ``counted`` under another name; ``refresh`` ignores a cached result."""
    call = call_of(question, subject)
    if isinstance(call, DpCausalError):
        return QuestionStatus(question, CANNOT, call.message("toml"), error=call)
    caveats = tuple(dict.fromkeys(caveat for plan in call.plans for caveat in plan.caveats))
    first = call.plans[0].method
    fields: dict[str, Any] = {
        "cost": call.loss, "method": first.name, "settings": first.options(), "caveats": caveats, "key": call.key,
    }  # fmt: skip
    try:
        answer, other = (None, "") if ledger is None else load_cached(ledger, call.key, refresh, origin)
    except LedgerError as error:
        return QuestionStatus(question, SPENT, error.message("toml"), error=error, **fields)
    if answer is not None:
        return QuestionStatus(question, EARLIER if other else ANSWERED, other, answer=answer, **fields)
    if call.key in counted and not refresh:
        return QuestionStatus(question, TO_ASK, f"with {counted[call.key]}, the same question", **fields)
    why = None if trial is None else _budget_refusal(call, trial)
    if why is not None:
        state = BEYOND if isinstance(why, BudgetExceededError) else CANNOT
        return QuestionStatus(question, state, why.message("toml"), error=why, **fields)
    return QuestionStatus(question, TO_ASK, **fields)


def simulated_ledger(ledger: Ledger | None, trial: Ledger) -> Ledger:
    """Return an empty ``trial`` ledger with the spends of another, of the same budget and unit."""
    if ledger is not None and ledger.parts:
        trial.divide(ledger.parts)
    for entry in [] if ledger is None else ledger.entries():
        analyst = json.loads(entry.detail).get("analyst")
        zcdp: Any = None if entry.zcdp is None else parse_loss(entry.zcdp)
        trial.charge(parse_loss(entry.loss), task=entry.task, unit=Unit(entry.unit), unit_column=entry.column,
                    relation=Relation(entry.relation), zcdp=zcdp, once=json.loads(entry.once),
                    detail={"analyst": analyst} if analyst else {})  # fmt: skip
    return trial


def _budget_refusal(call: DryRunStop, trial: Ledger) -> DpCausalError | None:
    question = call.plans[0].question
    try:
        trial.charge(call.loss, task=call.task, unit=question.unit, unit_column=question.unit_column,
                    zcdp=call.zcdp, once=question.once_per_ledger)  # fmt: skip
    except (BudgetExceededError, LedgerError) as error:
        return error
    return None


def plans_of(question: QuestionPart, schema: Schema | None, subject: Table | Panel) -> list[tuple[str, TaskPlan]]:
    """Return the plans of an answer, of everyone and of each group where there are groups; none of some tasks."""
    if question.task not in TASK_PLANS or (schema is None and not isinstance(subject, Panel)):
        return []
    kind, known = TASK_PLANS[question.task], dict[str, Any](persons=subject.unit is not Unit.ROW)
    arguments = dict(question.arguments)
    if isinstance(subject, Panel):
        target, start = arguments.pop("target", None) or subject.targets[0], arguments.pop("start", None)
        before = len(subject.before(target)) if start is None else place_of(subject.times, target, start)
        arguments = {name: value for name, value in arguments.items() if name not in ("inference", "force")}
        known |= {"before": before, "after": len(subject.times) - before, "width": subject.bounds.width}
    known["method"] = method_of(question)
    taken = {one.name for one in fields(kind)} | ({"method"} if kind.task == "direction" else set())
    arguments = {name: value for name, value in arguments.items() if name not in UNCHANGING}
    assumptions = {name: value for name, value in known.items() if name in taken}
    task_plan = task_plan_of(kind, schema, arguments | assumptions | question.assumed)
    if getattr(task_plan, "groups", 0):
        return [("everyone: ", EveryonePlan(**vars(task_plan))), ("", task_plan)]
    return [("", task_plan.in_study())]


class Forecaster:
    """What accuracy to expect of answers, as text, for as long as that takes some seconds in all."""

    seconds = 4.0

    def __init__(self, schema: Schema | None, subject: Table | Panel) -> None:
        self._schema, self._subject = schema, subject
        self._known: dict[tuple[object, ...], str] = {}

    def added_to(self, statuses: list[QuestionStatus]) -> list[QuestionStatus]:
        return [replace(one, forecast=self.text(one.question)) if one.state == TO_ASK else one for one in statuses]

    def text(self, question: QuestionPart) -> str:
        """Return what to expect of a question; empty where no plan is of such a one."""
        try:
            plans = plans_of(question, self._schema, self._subject)
            if not plans:
                return ""
            key = (repr(plans), repr(question.loss()))
            if key not in self._known:
                n, loss = self._subject.n, question.loss()
                self.seconds -= sum(one.seconds(n, loss) for _, one in plans)
                if self.seconds < 0:
                    return f"see: dpcausal plan {question.task.replace('_', '-')} --n {n}"
                self._known[key] = "; ".join(f"{name}{one.sentence(one.expected(n, loss))}" for name, one in plans)
        except DpCausalError as error:
            return f"no prediction: {error.message('toml')}"
        return ("of all records: " if question.where else "") + self._known[key]


def is_cached(ledger: Ledger, key: str) -> bool:
    try:
        return ledger.cached(key) is not None
    except LedgerError:
        return False
