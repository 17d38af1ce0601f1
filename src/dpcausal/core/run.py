"""The one way from a question to its answer: check, pay, settle, allot, read, release, report."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache, partial, wraps
from importlib import import_module
from typing import Any, ParamSpec

from dpcausal.core.cache import lookup_or_stop, store, subject_of
from dpcausal.core.method import Answer, Method, PlannedCall, Question
from dpcausal.data.panels.panel import Panel
from dpcausal.data.sources.held import held_panel, held_table
from dpcausal.data.sources.origin import Origin
from dpcausal.data.table import Table
from dpcausal.errors import InfeasibleError, MissingDependencyError, ParameterError, Setting, with_signature_errors
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.checks import LossSplit, check_epsilon_consent, check_unproven_consent
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.noise import draw_once, is_simulated, public_generator
from dpcausal.privacy.sandbox import isolated
from dpcausal.privacy.sensitivity import Relation, Unit
from dpcausal.result import Guarantee

MODULES = (
    "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats", "sklearn.base", "sklearn.ensemble",
    "threadpoolctl",
)  # fmt: skip
"""What functions below here import when they are called; the sampler's package brings most of them anyway."""


class Ready:
    """What a call needs before it is paid for: packages are loaded and rows are brought into memory. Between the spend
    and the answer nothing is imported and no source is opened: a broken package, a missing file or a busy connection
    refuses a call that costs nothing."""

    def __init__(self, plans: Sequence[PlannedCall[Any]]) -> None:
        self.plans = list(plans)

    def __call__(self) -> None:
        if not is_simulated():  # then nothing is paid for
            _load()
        for method in {type(one): one for plan in self.plans for one in _methods_within(plan.method)}.values():
            _run_contained(method.load, method.name)
        self.plans = isolated(lambda: held_in_memory(self.plans))


@lru_cache(maxsize=1)
def _load() -> None:
    for name in MODULES:
        _run_contained(partial(import_module, name), name)
    _run_contained(draw_once, "opendp")


def _run_contained(action: Callable[[], object], name: str) -> None:
    try:
        action()
        return
    except Exception:  # a broken package may raise anything
        pass
    raise MissingDependencyError(name)


def held_in_memory(plans: Sequence[PlannedCall[Any]]) -> list[PlannedCall[Any]]:
    """Return plans of one table or panel on rows that are in memory, where they fit."""
    subject: object = subject_of(plans[0].question)
    if isinstance(subject, Panel):
        panel = held_panel(subject)
        return [plan.about(panel) for plan in plans]
    if not isinstance(subject, Table):
        return list(plans)
    named = {*_texts_in([(plan.question, plan.method) for plan in plans])}
    in_memory = any(plan.exactly or plan.method.needs_all_rows(plan.question) for plan in plans)
    table = held_table(subject, [name for name in subject.schema if name in named], in_memory)
    return [plan.about(table) for plan in plans]


def _methods_within(method: Method[Any]) -> Iterator[Method[Any]]:
    yield method
    for field in fields(method):
        option = getattr(method, field.name)
        if isinstance(option, Method):
            yield from _methods_within(option)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Table, Panel)):
        return
    elif isinstance(value, Mapping):
        yield from _texts_in([*value.keys(), *value.values()])
    elif isinstance(value, (Sequence, Set)):
        for part in value:
            yield from _texts_in(part)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _texts_in([getattr(value, field.name) for field in fields(value)])
        yield from _texts_in(list(getattr(value, "names", ())))


Call = ParamSpec("Call")
Task = tuple[Question[Answer], Method[Any]]
"""What the body of a public function returns: the question, and the method that answers it."""

OPTIONS = ("loss", "accept_unproven", "accept_large_epsilon", "refresh")
"""The arguments of a public function that are ``ask``'s: each is given by name."""


def public_task(function: Callable[Call, Task[Answer]]) -> Callable[Call, Answer]:
    """Make a public function of one that checks its arguments and returns a question and the method that answers it.
    ``ask`` gets the loss and the consents of the call.  The function has returned before anything is spent: between the
    call and the noise stand the flow and the method alone."""
    checked = with_signature_errors(function)
    types = function.__annotations__
    types["return"] = types["return"].removeprefix("Task[").removesuffix("]")  # as the caller sees it

    @wraps(function)
    def call(*arguments: Call.args, **named: Call.kwargs) -> Answer:
        question, method = checked(*arguments, **named)
        options: dict[str, Any] = {name: named[name] for name in OPTIONS if name in named}
        return ask(question, method, **options)

    return call


def plan_call(question: Any, method: Method[Any], loss: Loss, *, accept_unproven: bool = False) -> PlannedCall[Any]:
    ready: Method[Any] | None = None
    try:
        spent, note = method.charge(loss, question)
        ready = method.plan(question, spent)
    except ArithmeticError:  # of public numbers alone
        pass
    if ready is None:
        raise InfeasibleError(
            f"method {method.name!r} cannot work with these numbers of rows and columns at {loss}: give more rows, "
            "fewer columns or another loss"
        )
    _check_records(question, ready)
    table = getattr(question, "table", None)
    if isinstance(table, Table) and (ready.needs_all_rows(question) or loss.exact):
        table.check_memory()
    if ready.unproven:
        check_unproven_consent(accept_unproven, ready.unproven)
    return PlannedCall(question, ready, spent, note)


def _check_records(question: Any, method: Method[Any]) -> None:
    if question.drops_missing and not method.supports_missing:
        raise ParameterError(
            f"method {method.name!r} cannot leave out rows with missing values", argument="method", rule="missing",
            hint=("use another method, or make the table with ", Setting("missing", "impute"), ", which counts a "
                  "missing value as the midpoint of its bounds or as the first level"),
        )  # fmt: skip
    if question.unit is Unit.PERSON and not method.allows_private_ids:
        raise ParameterError(
            f"method {method.name!r} assigns persons to subsets by row order, which reveals private ids",
            argument="method", rule="private-ids",
            hint=("use another method, or make the table with ", Setting("ids", "public"), " if membership is public"),
        )  # fmt: skip


def ask(
    question: Question[Answer], method: Method[Any], *, loss: Loss, accept_unproven: bool = False,
    accept_large_epsilon: bool = False, refresh: bool = False,
) -> Answer:  # fmt: skip
    """Answer one question; exactly the same of a table with a name gets its cached result, unless ``refresh``.
    Everything that can fail for a public reason fails before the ledger is asked; from the spend on nothing may fail or
    warn for a reason that lies in a value."""
    check_epsilon_consent(loss, accept_large_epsilon)
    planned = plan_call(question, method, loss, accept_unproven=accept_unproven)
    ledger = question.ledger
    key, cached = lookup_or_stop(ledger, question.task, [planned], planned.spent, refresh, offered=loss)
    if cached is not None:
        return question.finalize(cached)
    origin = subject_of(question).origin
    (planned,), allotment = _charge_all(
        [planned], planned.spent, task=question.task, detail=planned.detail(), once=question.once_per_ledger,
        key=key, refresh=refresh,
    )  # fmt: skip
    rng, seed = public_generator() if planned.method.uses_public_randomness else (None, None)
    with question.progress_context():
        released = isolated(planned.released(isolated(planned.read), rng, allotment))
    answer = planned.question.report(planned, released, allotment, seed)
    return question.finalize(store(ledger, origin, key, allotment, answer))


def _charge_all(
    plans: Sequence[PlannedCall[Any]], loss: Loss, **of_ledger: Any
) -> tuple[list[PlannedCall[Any]], CallBudget]:
    question, ready = plans[0].question, Ready(plans)
    budget = question.ledger.charge(
        loss, unit=question.unit, unit_column=question.unit_column, relation=Relation.REPLACE_ONE,
        unproven=any(plan.method.unproven for plan in plans), before=ready, **of_ledger,
    )  # fmt: skip
    return ready.plans, budget


def run_many(
    plans: Sequence[PlannedCall[Any]], allotment: CallBudget, *, read: Callable[[Any], Any] | None = None,
    seed: int | None = None,
) -> list[Any]:  # fmt: skip
    """Answer many planned questions from one allotment, in order; their costs are within it, and it books each.
    ``read`` brings a question's rows where several share a reading; one ``seed`` for all deals the rows alike."""
    answers = []
    for planned in plans:
        rng, own = (None, None) if not planned.method.uses_public_randomness else public_generator(seed)
        private = isolated(partial(read, planned.question) if read else planned.read)
        released = isolated(planned.released(private, rng, allotment))
        answers.append(planned.question.report(planned, released, allotment, own))
    return answers


@dataclass(frozen=True)
class JointRun:
    plans: Sequence[PlannedCall[Any]]
    ledger: Ledger
    origin: Origin
    allotment: CallBudget
    key: str
    """What identifies exactly this call."""

    def guarantee(
        self, answers: Iterable[Any], claims: Sequence[str], note: str = "", but: tuple[str, ...] = ()
    ) -> Guarantee:
        question = self.plans[0].question
        own = dict.fromkeys(claim for plan in self.plans for claim in plan.proofs)
        each = (caveat for one in answers for caveat in one.guarantee.caveats)
        caveats = dict.fromkeys([*filter(None, [note]), *each])
        return Guarantee.of(
            self.allotment, proofs=(*own, *claims) if own else (),
            caveats=tuple(caveat for caveat in caveats if caveat not in (*self.allotment.caveats, *but)),
            public=question.table.public_facts(question.public),
        )  # fmt: skip

    def store(self, answer: Answer) -> Answer:
        return store(self.ledger, self.origin, self.key, self.allotment, answer)


def charge_jointly(
    task: str, plans: Sequence[PlannedCall[Any]], division: LossSplit, loss: Loss, detail: Mapping[str, Any], *,
    correction: str, refresh: bool,
) -> JointRun | Any:  # fmt: skip
    """Spend once for all plans; the cached result instead, where exactly this call has one."""
    question, ledger = plans[0].question, plans[0].question.ledger
    key, cached = lookup_or_stop(
        ledger, task, plans, division.spent, refresh, offered=loss, zcdp=division.zcdp, correction=correction
    )
    if cached is not None:
        return cached
    epsilons = [getattr(plan.spent, "epsilon", None) for plan in plans]
    public = {
        "alpha": question.alpha, "correction": correction, "divided_by": "rho" if division.by_rho else "epsilon",
        "epsilons": epsilons[:1] if len(set(epsilons)) == 1 else epsilons,
    }  # fmt: skip
    plans, allotment = _charge_all(
        plans, division.spent, task=task, zcdp=division.zcdp, key=key, refresh=refresh,
        detail={**detail, **public, **question.table.declared},
    )  # fmt: skip
    return JointRun(plans, ledger, subject_of(question).origin, allotment, key)
