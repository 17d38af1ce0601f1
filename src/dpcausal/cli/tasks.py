"""The commands of single questions, each made from the signature and docstring of the library's function."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcausal.cli.ask import KnowledgeOption, knowledge_in
from dpcausal.cli.options import build_method, described, method_parameters, methods_of, parameter, with_parameters
from dpcausal.cli.program import register
from dpcausal.cli.shared import (
    ADJUST_OR_TRIAL,
    DATA,
    Call,
    DataArgument,
    DeltaOption,
    EpsilonOption,
    JsonOption,
    LargeOption,
    LedgerOption,
    RhoOption,
    SchemaOption,
    assigned,
    check_picture,
    check_place,
    exit_codes,
    loss_from,
    names_in,
)
from dpcausal.errors import ParameterError

if TYPE_CHECKING:
    from dpcausal.cli.options import Kinds
    from dpcausal.privacy.ledger import Ledger

REQUIRED = inspect.Parameter.empty

Options = tuple[tuple[str, Any, Any], ...]
"""Names, annotations and defaults."""

PersonOption = Annotated[str | None, typer.Option("--person", help="Column with the person ID.")]
IdsOption = Annotated[str, typer.Option("--ids", help="private, or public if membership is public.")]

SHARED: Options = (
    ("ledger", LedgerOption, REQUIRED), ("epsilon", EpsilonOption, None), ("delta", DeltaOption, None),
    ("rho", RhoOption, None), ("accept_large_epsilon", LargeOption, False),
    ("name", Annotated[str, typer.Option(
        "--name", help="Permanent name of this data set. Repeating a question is then free.")], ""),
    ("refresh", Annotated[bool, typer.Option("--refresh", help="Run again at a new privacy cost.")], False),
    ("details", Annotated[bool, typer.Option("--details", help="Also print settings and assumptions.")], False),
    ("as_json", JsonOption, False),
)  # fmt: skip

RECORDS: Options = (
    ("schema", SchemaOption, REQUIRED),
    ("where", Annotated[str | None, typer.Option(
        "--where", help="""Subgroup, as "age >= 20 and sex == 'f'".""")], None),
    ("person", PersonOption, None), ("ids", IdsOption, "private"),
    ("max_rows_per_person", Annotated[int | None, typer.Option(
        "--max-rows-per-person", help="Most rows of a person that count.")], None),
    ("weight", Annotated[str | None, typer.Option(
        "--weight", help="Survey weights: column=largest, as w=8.")], None),
    ("missing", Annotated[str, typer.Option("--missing", help="drop, level or impute.")], "drop"),
)  # fmt: skip

FILES: dict[str, Any] = {
    "plot": Annotated[Path | None, typer.Option(help="Write a figure to this file.")],
    "save_release": Annotated[
        Path | None, typer.Option("--save-release", "--release", help="Save the noisy statistics for 'dpcausal ask'.")
    ],
}

SETTINGS = (
    "table", "panel", "loss", "method", "misplaced", "refresh", "accept_large_epsilon",
    "accept_unproven", "inference",
)  # fmt: skip
"""Arguments of the library's functions that are no options of their own."""


@dataclass(frozen=True)
class TaskCommand:
    """How a task is a command: its help and the room of its methods."""

    help: str
    methods: str = ""
    positional: Mapping[str, str] | None = None
    """Arguments that are no options, by the function's names."""
    files: tuple[str, ...] = ()
    more: tuple[inspect.Parameter, ...] = ()
    """Options that the function has no argument for."""
    convert: Callable[[dict[str, Any]], None] = lambda given: None
    """Turns options into the function's arguments, in place."""
    panel: bool = False


def weight_of(text: str) -> tuple[str, float]:
    written = "--weight is written as column=largest, for example w=8"
    return assigned(text, ParameterError(written, argument="weight", rule="weight"))


def _table(given: dict[str, Any], ledger: Ledger, name: str) -> Any:
    from dpcausal.data.schema import Schema
    from dpcausal.data.subgroups.predicate import parse_predicates
    from dpcausal.data.table import Table

    data, options = given.pop("data"), {one: given.pop(one) for one, *_ in RECORDS}
    where, schema, weight = options.pop("where"), options.pop("schema"), options.pop("weight")
    predicates = [] if where is None else parse_predicates(where)
    weighed = None if weight is None else weight_of(weight)
    clusters = [given["cluster"]] if given.get("cluster") else []
    table = Table(data, Schema.from_toml(schema), ledger, name=name, weight=weighed, clusters=clusters, **options)
    for column, condition in predicates:
        table = table.where(column, **condition)
    return table


PANEL = (
    parameter("unit", str, "Column of the units.", REQUIRED),
    parameter("time", str, "Column of the periods.", REQUIRED),
    parameter("outcome", str, "Column of the outcome.", REQUIRED),
    parameter("target", str, "The treated unit. Its own series is not protected.", REQUIRED),
    parameter("start", str, "The first treated period.", REQUIRED),
    parameter("lower", float, "Public lower bound of the outcome.", REQUIRED),
    parameter("upper", float, "Public upper bound of the outcome.", REQUIRED),
    parameter("treated", str, "Rule of all treated units, none of which is a control unit.", ""),
    parameter("times", str, "All periods in order, separated by commas, if their order is not known.", ""),
    parameter("placebo", str, "Placebo in time: an earlier start.", ""),
)  # fmt: skip


def _panel(given: dict[str, Any], ledger: Ledger, name: str) -> Any:
    from dpcausal.data.files.formats import ending_of
    from dpcausal.data.files.opening import FIELDS
    from dpcausal.data.panels.panel import Panel
    from dpcausal.data.schema import Bounded

    data, target, times = given.pop("data"), given.pop("target"), given.pop("times")
    is_text = ending_of(data) in FIELDS or not target.lstrip("+-").isdigit()  # CSV holds texts only
    return Panel(
        data, unit=given.pop("unit"), time=given.pop("time"), outcome=given.pop("outcome"),
        target=target if is_text else int(target), start=given.pop("start"), name=name, ledger=ledger,
        bounds=Bounded(given.pop("lower"), given.pop("upper")), treated=given.pop("treated"),
        times=[time.strip() for time in times.split(",")] if times else None,
    )  # fmt: skip


def _arrows(texts: list[str] | None) -> list[tuple[str, str]]:
    arrows = []
    for text in texts or []:
        names = names_in("an edge", [text])
        if len(names) != 2:
            raise ParameterError("an edge is written CAUSE,EFFECT", argument="forbid", rule="edge", value=text)
        arrows.append((names[0], names[1]))
    return arrows


FORMATS = {"text": "", "dagitty": "to_dagitty", "dot": "to_dot", "graphml": "to_graphml"}


def _graph(given: dict[str, Any]) -> None:
    from dpcausal.discovery.knowledge import Knowledge

    redraws = given["redraws"]
    if given["format"] not in FORMATS or not (redraws is None or 1 <= redraws <= 10_000):
        text = "--format is text, dagitty, dot or graphml, --redraws a number from 1 to 10000"
        raise ParameterError(text, argument="format", rule="choice")
    stated = Knowledge() if given["knowledge"] is None else knowledge_in(given["knowledge"])
    forbidden, required = _arrows(given.pop("forbid")), _arrows(given.pop("require"))
    given["knowledge"] = Knowledge([*stated.forbidden, *forbidden], [*stated.required, *required], stated.tiers)


def _trial(given: dict[str, Any]) -> None:
    if bool(given["adjust"]) == given.pop("trial"):
        raise ParameterError(ADJUST_OR_TRIAL, argument="adjust", rule="adjust-or-trial")
    given["adjust"] = given["adjust"] or []


def _pairs(given: dict[str, Any]) -> None:
    pairs = [tuple(names_in("--pair", [each])) for each in given.pop("pair") or []]
    given |= {"pairs": pairs or None, "shares": _shares(given["shares"])}


def _shares(texts: list[str] | None) -> dict[Any, Any] | None:
    shares: dict[Any, Any] = {}
    error = ParameterError("a share is written A,B=NUMBER or SCORE=NUMBER, each once", argument="shares", rule="share")
    for text in texts or []:
        name, share = assigned(text, error)
        names = names_in("--shares", [name])
        key = names[0] if len(names) == 1 else tuple(names)
        if key in shares:
            raise error
        shares[key] = share
    return shares or None


FIRST_TWO, BOTH = {"first": "x", "second": "y"}, ("plot", "save_release")

COMMANDS: dict[str, TaskCommand] = {
    "effect": TaskCommand("Estimate a treatment effect.", "effects", files=BOTH, convert=_trial, more=(
        parameter("trial", bool, "Treatment was randomised: there is no confounder.", False),)),
    "did": TaskCommand("Estimate differences in differences of persons over time.", files=BOTH),
    "discontinuity": TaskCommand("Estimate a jump at a cutoff (regression discontinuity).", files=BOTH),
    "ci-test": TaskCommand("Test whether x and y are independent given z.", "independence",
                           positional={"x": "x", "y": "y"}),
    "discover": TaskCommand("Learn a causal graph.", "discovery", files=("save_release",), convert=_graph, more=(
        parameter("forbid", list[str] | None, "CAUSE,EFFECT that is impossible; repeatable."),
        parameter("require", list[str] | None, "CAUSE,EFFECT that is known; repeatable."),
        parameter("redraws", int | None, "Draws of fresh noise for the stability of the edges."),
        parameter("format", str, "text, dagitty, dot or graphml.", "text"))),
    "direction": TaskCommand("Test which of two columns is the cause (weak evidence).", "direction",
                             positional=FIRST_TWO),
    "direction-all": TaskCommand("Test many pairs of columns for their direction under one budget.", "direction",
                                 convert=_pairs, more=(
        parameter("pair", list[str] | None, "Two columns, as a,b; repeatable. By default all numeric columns."),)),
    "synthetic-control": TaskCommand("Estimate an effect on one unit by a synthetic control.", "synthetic_control",
                                     panel=True, more=PANEL),
}  # fmt: skip


def _own_parameters(task: TaskCommand, function: Callable[..., Any]) -> list[inspect.Parameter]:
    positional, taken = task.positional or {}, {one.name for one in task.more}
    parameters = []
    for name, one in inspect.signature(function).parameters.items():
        if name in SETTINGS or name in taken or (task.panel and name == "target") or name == "pairs":
            continue
        if name == "knowledge":
            parameters.append(one.replace(annotation=KnowledgeOption))
            continue
        text, kind = described(function, name), _kind(str(one.annotation))
        if name in positional:
            argument = Annotated[str, typer.Argument(help=text)]
            parameters.append(inspect.Parameter(positional[name], inspect.Parameter.KEYWORD_ONLY, annotation=argument))
        elif one.default is not REQUIRED or name in ("given", "adjust"):
            default = None if one.default is REQUIRED or isinstance(one.default, tuple) else one.default
            parameters.append(parameter(name, kind if default is not None else kind | None, text, default))
        else:
            parameters.append(parameter(name, kind, text, REQUIRED))
    return parameters


def _kind(annotation: str) -> Any:
    if any(one in annotation for one in ("Iterable[", "Sequence[", "Mapping[")):
        return list[str]
    return next((kind for kind in (bool, int, float) if annotation.split(" | ")[0] == kind.__name__), str)


def _command(name: str, task: TaskCommand) -> Callable[[list[str]], Callable[..., None]]:
    def made(args: list[str]) -> Callable[..., None]:
        from dpcausal.study.tasks import TASKS

        function = TASKS[name.replace("-", "_")][0]
        kinds = methods_of(task.methods) if task.methods else {}
        own, ways = [*_own_parameters(task, function), *task.more], method_parameters(kinds)
        common = (*(() if task.panel else RECORDS), *SHARED, *((one, FILES[one], None) for one in task.files))
        data = Annotated[str, typer.Argument(metavar="DATA", help=f"A row for each unit and period: {DATA}")]
        whole = [
            inspect.Parameter("data", inspect.Parameter.KEYWORD_ONLY, annotation=data if task.panel else DataArgument),
            *own,
            *(inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
              for one, annotation, default in common),
            *ways,
        ]  # fmt: skip

        def run(**given: Any) -> None:
            with exit_codes():
                _run(task, function, kinds, [one.name for one in ways if one.name != "method"], given)

        return with_parameters(whole, run)

    return made


def _run(
    task: TaskCommand, function: Callable[..., Any], kinds: Kinds, options: list[str], given: dict[str, Any]
) -> None:
    from dpcausal.privacy.ledger import Ledger

    parameters = inspect.signature(function).parameters
    settings: dict[str, Any] = {
        "loss": loss_from(given.pop("epsilon"), given.pop("delta"), given.pop("rho")),
        "accept_large_epsilon": given.pop("accept_large_epsilon"), "refresh": given.pop("refresh"),
    }  # fmt: skip
    chosen = {name: given.pop(name) for name in options}
    if kinds:
        settings["method"] = build_method(kinds, given.pop("method"), chosen)
    files = {name: given.pop(name) for name in task.files}
    for option, path in files.items():
        (check_picture if option == "plot" else check_place)(path)
    if sys.stdout is None:
        text = "standard output is closed: nothing was spent"
        raise ParameterError(text, argument="stdout", rule="closed-output")
    name, as_json, details = given.pop("name"), given.pop("as_json"), given.pop("details")
    for argument, typed in (task.positional or {}).items():
        text = given.pop(typed)
        given[argument] = names_in(argument, [text]) if "Sequence" in str(parameters[argument].annotation) else text
    for argument, one in parameters.items():
        if isinstance(given.get(argument), list) and argument != "shares":
            given[argument] = names_in(f"--{argument}", given[argument])
        elif given.get(argument, ...) is None and one.default is REQUIRED:
            given[argument] = []
    task.convert(given)
    extra: dict[str, Any] = {one: given.pop(one) for one in ("redraws", "format", "placebo") if one in given}
    with Ledger.open(given.pop("ledger")) as ledger:
        call = Call(ledger, as_json, details, bool(name), **files)
        subject = (_panel if task.panel else _table)(given, ledger, name)
        given |= {"start": extra["placebo"] or None} if task.panel else {}
        call.show(*_with_stability(function(subject, **given, **settings), extra, call))


def _with_stability(result: Any, extra: dict[str, Any], call: Call) -> tuple[Any, str]:
    if extra.get("redraws") and result.release is not None:
        call.save(result)  # before the stability, which takes a while
        with call.rescued(result):
            result = result.with_support(extra["redraws"])
    written = FORMATS[extra.get("format", "text")]
    return result, getattr(result.graph, written)().rstrip("\n") if written else ""


for _name, _task in COMMANDS.items():
    register(_name, _task.help, _command(_name, _task))
