"""``plan``: the accuracy to expect of n records and a loss, or the n or the ε that an accuracy needs; no data."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from dpcausal.core import validate as public
from dpcausal.data.schema import Schema
from dpcausal.errors import DpCausalError, InfeasibleError, LossError, ParameterError, nearest, with_signature_errors
from dpcausal.planning.effects import EffectPlan, MomentsPlan
from dpcausal.planning.graphs import DirectionPlan, GraphPlan
from dpcausal.planning.panels import DidPlan, PanelPlan
from dpcausal.planning.task_plan import Forecast, TaskPlan, rounded_loss, scaled_loss
from dpcausal.planning.tests import TestPlan
from dpcausal.plotting import axes, titled
from dpcausal.privacy.checks import check_epsilon_consent
from dpcausal.privacy.loss import ZCDP, Loss, NoPrivacy
from dpcausal.result import TextResult, data_frame, plain

TASK_PLANS: dict[str, type[TaskPlan]] = {
    kind.task: kind for kind in (TestPlan, DirectionPlan, GraphPlan, EffectPlan, MomentsPlan, DidPlan, PanelPlan)
}
"""What a plan of a task assumes, by the task's name."""
LEAST_EPSILON, MOST_EPSILON = 0.01, 20.0
UNCHANGING = ("accept_large_epsilon", "accept_unproven", "refresh")
"""Arguments of a task that its plan takes and that change no prediction."""
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Of the n, or of the loss, where a plan's curve is computed."""


@dataclass(frozen=True)
class Plan(TextResult):
    """What to expect of a question, before anything is spent.

    Attributes
    ----------
    task : str
    n : int
        Records.
    loss : Loss
    accuracy : float
        What to expect; ``goal`` says of what. If the share of treated is not stated and not designed, half the width
        at the least favourable values of the range.
    low, high : float
        The range that it should lie in, where shapes differ from those assumed.
    goal : str
        What the accuracy is.
    solved : str
        Which of n, loss and accuracy was sought.
    why : str
        How it was predicted.
    assumed : TaskPlan
        What was assumed.
    others : str
        What to expect under other assumptions.
    usual : float, optional
        What to expect under the usual assumptions, if ``accuracy`` is for the least favourable ones.
    """

    task: str
    n: int
    loss: Loss
    accuracy: float
    low: float
    high: float
    goal: str
    solved: str
    why: str
    assumed: TaskPlan = field(repr=False)
    others: str = ""
    usual: float | None = None

    def summary(self) -> str:
        """Return the plan in sentences."""
        known = {name: getattr(self, name) for name in ("accuracy", "low", "high", "others", "usual")}
        sentence = self.assumed.sentence(Forecast(**known))
        records = "persons" if getattr(self.assumed, "persons", False) else self.assumed.records
        assumed = ", ".join(f"{name} {value}" for name, value in self._assumed().items())
        return (
            f"{self.task} of {self.n} {records} at {self.loss}: {sentence}.\n"
            f"Assumed: {assumed}. Predicted by: {self.why}. Nothing was read or spent."
        )

    def _assumed(self) -> dict[str, Any]:
        given = {one.name: getattr(self.assumed, one.name) for one in fields(self.assumed)}
        given = {name: "not stated" if value is None else value or "none" if isinstance(value, str) else value
                 for name, value in given.items()}  # fmt: skip
        return {name: value if isinstance(value, (int, float, str)) else _named(value) for name, value in given.items()}

    def to_dict(self) -> dict[str, Any]:
        record = {one.name: plain(getattr(self, one.name)) for one in fields(self) if one.name != "assumed"}
        return record | {"assumed": self._assumed()}

    def curve(self, over: str = "n") -> list[dict[str, Any]]:
        """Return the accuracy for a quarter to four times the n, or the epsilon (``over="epsilon"``), a row each."""
        public.check_choice("over", over, ("n", "epsilon"))
        rows = []
        for factor in FACTORS:
            n = round(self.n * factor) if over == "n" else self.n
            loss = self.loss if over == "n" else scaled_loss(self.loss, factor)
            forecast = _tried(self.assumed, n, loss)
            point = {"accuracy": forecast.accuracy, "low": forecast.low, "high": forecast.high}
            rows.append({"n": n, "loss": loss, **point})
        return rows

    def to_frame(self, over: str = "n") -> Any:
        """Return the curve as a pandas data frame."""
        return data_frame([row | {"loss": repr(row["loss"])} for row in self.curve(over)])

    def plot(self, ax: Any = None, over: str = "n") -> Any:
        """Draw the accuracy over n, or over ``"epsilon"``, with its range."""
        return _draw_plan(self, ax, over)


def _named(method: Any) -> str:
    options = ", ".join(f"{name}={value}" for name, value in method.options().items() if value is not None)
    return f"{method.name}({options})" if options else str(method.name)


@with_signature_errors
def plan(
    task: str, *, n: int | None = None, loss: Loss | None = None, accuracy: float | None = None,
    delta: float | None = None, schema: Schema | None = None, accept_large_epsilon: bool = False, **assumed: Any,
) -> Plan:  # fmt: skip
    """Return the accuracy to expect of a question, or the records or the loss that an accuracy takes.

    Give two of ``n``, ``loss`` and ``accuracy``; the third is sought.

    Parameters
    ----------
    task : str
        ``"ci_test"``, ``"direction"``, ``"discover"``, ``"effect"``, ``"moments"``, ``"did"`` or
        ``"synthetic_control"``.
    n : int, optional
        Records: rows, persons or donors.
    loss : Loss, optional
        What the question may cost.
    accuracy : float, optional
        A chance, or half the width of an interval: ``Plan.goal`` says which.
    delta : float, optional
        Where the loss is sought: δ beside ε; by default none, or 1e-6 for tasks of Gaussian noise.
    schema : Schema, optional
        Then the further arguments are those of the task, by column names, instead of the assumptions' own.
    accept_large_epsilon : bool
        Consent to ε above 20.
    **assumed
        What is assumed, in public numbers: the fields of the task's plan, as ``correlation=0.1`` of a test.

    Returns
    -------
    Plan
        ``summary()``, ``plot()``, ``to_frame()`` (its curve), ``to_json()``.

    Raises
    ------
    ParameterError, LossError
        From the arguments.
    InfeasibleError
        No n, or no ε, reaches the accuracy: the message says what can be had.

    Notes
    -----
    *Guarantee*: no data are taken, so nothing is spent.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> found = dpc.plan("ci_test", n=5_000, loss=dpc.PureDP(1), correlation=0.05)
    >>> round(found.accuracy, 1)
    0.9
    >>> again = dpc.plan("ci_test", loss=dpc.PureDP(1), accuracy=found.accuracy, correlation=0.05)
    >>> abs(again.n / 5_000 - 1) < 0.05
    True
    """
    if task not in TASK_PLANS:
        raise ParameterError(f"task must be one of {', '.join(TASK_PLANS)}{nearest(task, TASK_PLANS)}")
    task_plan = task_plan_of(TASK_PLANS[task], schema, assumed)
    if [n, loss, accuracy].count(None) != 1:
        raise ParameterError("give two of n, loss (epsilon) and accuracy (target): the third is what a plan predicts")
    if n is not None:
        public.whole("n", n, 1, 100_000_000)
    if isinstance(loss, NoPrivacy):
        raise LossError("a plan is of a loss: give PureDP, ApproxDP or ZCDP")
    if loss is not None:
        check_epsilon_consent(loss, accept_large_epsilon)
    if accuracy is not None:
        public.number("accuracy", accuracy, 1e-9, 0.999 if task_plan.more_is_better else 1e12)
    if n is not None and loss is not None:
        return _solved_plan(task_plan, n, loss, "accuracy")
    goal = float(accuracy or 0.0)
    if loss is not None:
        paid = loss
        ends = float(task_plan.least), float(task_plan.most)
        many = _least_size(lambda size: (math.ceil(size), paid), task_plan, goal, *ends)
        return _solved_plan(task_plan, math.ceil(many), loss, "n")
    whole, known_delta = int(n or 0), task_plan.delta if delta is None else delta
    ends = LEAST_EPSILON, MOST_EPSILON
    epsilon = _least_size(lambda size: (whole, rounded_loss(size, known_delta)), task_plan, goal, *ends)
    return _solved_plan(task_plan, whole, rounded_loss(epsilon, known_delta), "loss")


def task_plan_of(kind: type[TaskPlan], schema: Schema | None, assumed: dict[str, Any]) -> TaskPlan:
    """Return the plan of stated assumptions, or of the task's arguments on a schema."""
    known = {one.name for one in fields(kind)}
    if schema is not None:
        known |= set(inspect.signature(kind.of).parameters) - {"schema", "more"}
        assumed = {name: value for name, value in assumed.items() if name not in UNCHANGING}
    for name in assumed:
        if name not in known:
            meant = nearest(name, known) or f"; it takes {', '.join(sorted(known))}"
            raise ParameterError(f"a plan of {kind.task} assumes no {name}{meant}", argument=name, rule="assumed")
    return kind(**assumed) if schema is None else kind.of(schema, **assumed)


def _tried(task_plan: TaskPlan, n: int, loss: Loss) -> Forecast:
    try:
        return task_plan.expected(n, loss)
    except DpCausalError as error:
        worst = 0.0 if task_plan.more_is_better else math.inf
        return Forecast(worst, worst, worst, str(error))


def _solved_plan(task_plan: TaskPlan, n: int, loss: Loss, solved: str) -> Plan:
    forecast = task_plan.expected(n, loss)
    accuracy = forecast.accuracy, forecast.low, forecast.high, task_plan.goal
    return Plan(task_plan.task, n, loss, *accuracy, solved, forecast.why, task_plan, forecast.others, forecast.usual)


def _meets(task_plan: TaskPlan, n: int, loss: Loss, goal: float) -> bool:
    try:
        accuracy = task_plan.accuracy_at(n, loss)
    except DpCausalError:
        return False
    return accuracy >= goal if task_plan.more_is_better else accuracy <= goal


def _least_size(
    at: Callable[[float], tuple[int, Loss]], task_plan: TaskPlan, goal: float, low: float, high: float
) -> float:
    size = low
    while not _meets(task_plan, *at(size), goal):
        if size >= high:
            n, loss = at(high)
            best = task_plan.expected(n, loss)  # raises the error that refuses the question there
            raise InfeasibleError(f"even {n} {task_plan.records} at {loss} are not enough: {task_plan.sentence(best)}")
        low, size = size, min(size * 4, high)
    high = size
    while high > low * task_plan.close:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _meets(task_plan, *at(middle), goal) else (middle, high)
    return high


def _draw_plan(plan: Plan, ax: Any, over: str) -> Any:
    ax = axes(ax, (6, 3.5))
    points = [row for row in plan.curve(over) if math.isfinite(row["high"])]  # without sizes that have no accuracy
    rho = isinstance(plan.loss, ZCDP)

    def place(n: int, loss: Any) -> float:
        return float(n) if over == "n" else float(loss.rho if rho else loss.epsilon)

    along = [place(row["n"], row["loss"]) for row in points]
    ax.fill_between(along, [row["low"] for row in points], [row["high"] for row in points], color="tab:blue", alpha=0.2)
    ax.plot(along, [row["accuracy"] for row in points], color="tab:blue", marker=".")
    if math.isfinite(plan.accuracy):
        ax.plot([place(plan.n, plan.loss)], [plan.accuracy], color="tab:red", marker="o")
    ax.set_xscale("log")
    ticks = dict.fromkeys(along)
    ax.set_xticks(list(ticks), [f"{tick:,.4g}" if over == "epsilon" else f"{tick:,.0f}" for tick in ticks])
    ax.minorticks_off()
    ax.set_ylim(0, 1 if plan.assumed.more_is_better else None)
    ax.set_xlabel(plan.assumed.records if over == "n" else "rho" if rho else "epsilon")
    ax.set_ylabel(plan.goal)
    return titled(ax, f"{plan.task}, {plan.loss}" if over == "n" else f"{plan.task}, {plan.n} {plan.assumed.records}")
