"""Options common to the commands of tasks; options of methods are derived from their fields."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

from dpcausal.cli.once import LazyCommand, Program
from dpcausal.cli.shared import (
    DeltaOption,
    EpsilonOption,
    JsonOption,
    LargeOption,
    LedgerOption,
    NameOption,
    RefreshOption,
    RhoOption,
    app,
    echo,
    exit_codes,
    loss_from,
    show,
)
from dpcausal.errors import LedgerError, ParameterError, nearest

if TYPE_CHECKING:
    from dpcausal.core.method import Method
    from dpcausal.data.table import Table
    from dpcausal.privacy.ledger import Ledger
    from dpcausal.result import Result

    Kinds = Mapping[str, type[Method[Any]]]

PersonOption = Annotated[str | None, typer.Option("--person", help="The column that names whose a row is.")]
IdsOption = Annotated[str, typer.Option("--ids", help="Whether who is in the data is private or public.")]
MaxRowsOption = Annotated[
    int | None, typer.Option("--max-rows-per-person", help="The most rows of a person, in cells and effects.")
]
WeightOption = Annotated[
    str | None, typer.Option("--weight", help="Survey weights: a column and the largest, as w=8, in cells and effects.")
]
MissingOption = Annotated[str, typer.Option("--missing", help="drop, level or impute.")]
WhereOption = Annotated[
    str | None, typer.Option("--where", help="""A subgroup, as "age >= 20 and sex == 'f'".""")
]

@dataclass(frozen=True)
class Records:
    """The options as they were given."""

    person: str | None = None
    ids: str = "private"
    max_rows_per_person: int | None = None
    weight: str | None = None
    missing: str = "drop"
    where: str | None = None

    def table(self, data: str, schema: Path, ledger: Ledger, name: str = "") -> Table:
        """Return the table of a file, or the part of it that is asked."""
        from dpcausal.data.schema import Schema
        from dpcausal.data.subgroups.predicate_text import parse_predicates
        from dpcausal.data.table import Table

        clauses = [] if self.where is None else parse_predicates(self.where)
        table = Table(
            data, Schema.from_toml(schema), ledger, name=name, person=self.person, ids=self.ids,
            max_rows_per_person=self.max_rows_per_person, missing=self.missing,
            weight=None if self.weight is None else weight_of(self.weight),
        )  # fmt: skip
        for column, condition in clauses:
            table = table.where(column, **condition)
        return table

METHODS_OF = {
    "direction": "dpcausal.direction.methods", "discovery": "dpcausal.discovery.methods",
    "effects": "dpcausal.effects.estimators", "independence": "dpcausal.independence.methods",
    "synthetic_control": "dpcausal.synthetic_control.methods",
}  # fmt: skip
"""Where a room has its methods."""


def weight_of(text: str) -> tuple[str, float]:
    """Return the column and the largest weight of a text as ``w=8``."""
    name, _, largest = text.rpartition("=")
    try:
        return name, float(largest)
    except ValueError:
        raise ParameterError("--weight is written as column=largest, for example w=8") from None


RECORD_OPTIONS: tuple[tuple[str, Any, Any], ...] = (
    ("where", WhereOption, None), ("person", PersonOption, None), ("ids", IdsOption, "private"),
    ("max_rows_per_person", MaxRowsOption, None), ("weight", WeightOption, None), ("missing", MissingOption, "drop"),
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    """What every call says besides its question, on an open ledger."""

    ledger: Ledger
    settings: dict[str, Any]
    """The loss, the method and the consent to a large ε, as keywords of the library's function."""
    as_json: bool
    records: Records
    name: str
    plot: Path | None = None
    save_release: Path | None = None

    def table(self, data: str, schema: Path) -> Table:
        """Return the table of a file, which this ledger pays for."""
        return self.records.table(data, schema, self.ledger, self.name)

    def show(self, result: Result, text: str | None = None) -> None:
        """Save an answer where that is asked, print it (or this text) and what is left of the budget, and draw it."""
        released = getattr(result, "release", None) is not None
        if released:
            self.save(result)  # first: whoever reads the lines may stop after the first
        with self.rescued(result):
            if text is None or self.as_json:
                show(result, self.ledger, self.as_json)
            else:
                echo(text)
            sys.stdout.flush()
        if not released:
            self.save(result)  # says that there is nothing to save, but of an answer that was paid for and is shown
        if self.plot is not None:
            result.plot().figure.savefig(self.plot)

    @contextmanager
    def rescued(self, result: Result) -> Iterator[None]:
        """Say where an answer is that could not be printed; one that its ledger does not store goes to a file there."""
        try:
            yield
        except BaseException:
            with suppress(OSError):
                echo(f"dpcausal: {self._whereabouts(result)}", error=True)
            raise

    def _whereabouts(self, result: Result) -> str:
        from dpcausal.study.writing import write_new

        head = result.guarantee.ledger_head
        with suppress(LedgerError):
            if any(spend.hash == head and self.ledger.answer(spend.number) for spend in self.ledger.entries()):
                place = repr(str(self.ledger.path))
                return (
                    f"the answer is stored in ledger {place}: without --refresh the same command prints it free"
                )
        path = Path(f"{self.ledger.path}.answer-{head[:12]}.json")
        try:
            write_new(path, result.to_json())
        except ParameterError as error:
            return f"the answer is paid for and lost: {error}"
        return f"the answer is paid for, and stands in {str(path)!r}"

    def save(self, result: Any) -> None:
        """Write the released numbers of a result to their file, if it has any."""
        from dpcausal.study.writing import replace_files

        if self.save_release is None:
            return
        if result.release is None:
            raise ParameterError(f"method {result.method} keeps no released numbers: nothing was saved")
        replace_files({self.save_release: result.release.to_json()})


def of(room: str) -> Callable[[], Kinds]:
    """Return what ``--method`` takes of a task, once it is asked for: its own methods, and those of the papers."""

    def kinds() -> Kinds:
        from dpcausal.papers import ASKED

        return {**import_module(METHODS_OF[room]).METHODS, **ASKED.get(room, {})}

    return kinds


def task_command(
    command_name: str, kinds: Callable[[], Kinds] = dict, *, of_records: bool = False, files: tuple[str, ...] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function the command of a task: it gets a ``call``, and its options are joined by those of every call.

    These are the ledger, the loss, and ``--method`` with an option for each field of the methods that a word or number
    can fill.  "auto", the default, need not be among ``kinds``: the task then chooses.  A task of one way has no kinds,
    and no ``--method``.  ``of_records`` adds whose the records are and which of them are asked; ``files`` are those
    that ``Call`` writes, of ``FILES``.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        register(command_name, command.__doc__, lambda: _whole(command, kinds(), of_records, files))
        return command

    return decorate


def register(command_name: str, about: str | None, whole: Callable[[], Callable[..., None]]) -> None:
    """Add a command whose options are worked out when it is called."""

    def made() -> Any:
        program = Program(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        program.command(command_name)(whole())
        return typer.main.get_command(program)

    def late() -> None: ...

    late.__doc__ = about
    app.command(command_name, cls=type("LazyCommand", (LazyCommand,), {"made": staticmethod(made)}))(late)


def with_parameters(
    parameters: list[inspect.Parameter], about: str | None, run: Callable[..., None]
) -> Callable[..., None]:
    """Return a function of any keywords as one of these parameters."""
    setattr(run, "__signature__", inspect.Signature(parameters))  # noqa: B010
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__ = about
    return run


def _whole(
    command: Callable[..., None], kinds: Kinds, of_records: bool, files: tuple[str, ...]
) -> Callable[..., None]:
    """Return the function with all options of its methods."""
    from dpcausal.privacy.ledger import Ledger

    options = method_options(kinds)

    def run(**given: Any) -> None:
        with exit_codes():
            method_options = {one.name: given.pop(one.name) for one in options}
            settings = {
                "loss": loss_from(given.pop("epsilon"), given.pop("delta"), given.pop("rho")),
                **({"method": build_method(kinds, given.pop("method"), method_options)} if kinds else {}),
                "accept_large_epsilon": given.pop("accept_large_epsilon"),
                "refresh": given.pop("refresh"),
            }
            records = Records(**{name: given.pop(name) for name, *_ in RECORD_OPTIONS if of_records})
            more = {name: given.pop(name) for name in ("as_json", "name", *files)}
            for name in files:
                _check_place(more[name])
            if sys.stdout is None:
                raise ParameterError("standard output is closed: nothing was asked or spent")
            with Ledger.open(given.pop("ledger")) as ledger:
                command(**given, call=Call(ledger, settings, records=records, **more))

    own = inspect.signature(command, eval_str=True).parameters.values()
    extra = [
        *([parameter("method", str, f"{', '.join(dict.fromkeys(('auto', *kinds)))}.", "auto")] if kinds else []),
        *options,
    ]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, annotation, default in (*(RECORD_OPTIONS if of_records else ()), *SHARED)
    ] + [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=FILES[name]) for name in files
    ]
    own_parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own if one.name != "call"]
    return with_parameters([*own_parameters, *shared, *extra], command.__doc__, run)


def method_options(kinds: Kinds) -> list[inspect.Parameter]:
    """Return an option for each field of the methods that a word or number can fill."""
    takers: dict[str, list[str]] = {}
    types: dict[str, Any] = {}
    helps: dict[str, str] = {}
    for name, kind in kinds.items():
        hints = get_type_hints(kind)
        for field in fields(kind):
            plain = plain_type(hints[field.name])
            if plain is not None and name != "auto":
                takers.setdefault(field.name, []).append(name)
                types[field.name] = plain
                helps.setdefault(field.name, described(kind, field.name))
    return [
        parameter(name, plain | None, f"{helps[name]} Of {', '.join(takers[name])}.", None)
        for name, plain in types.items()
    ]


SHARED: tuple[tuple[str, Any, Any], ...] = (
    ("ledger", LedgerOption, inspect.Parameter.empty), ("epsilon", EpsilonOption, None), ("delta", DeltaOption, None),
    ("rho", RhoOption, None), ("accept_large_epsilon", LargeOption, False), ("name", NameOption, ""),
    ("refresh", RefreshOption, False), ("as_json", JsonOption, False),
)  # fmt: skip


FILES: dict[str, Any] = {
    "plot": Annotated[Path | None, typer.Option(help="A picture of the answer, to this file.")],
    "save_release": Annotated[
        Path | None,
        typer.Option("--save-release", "--release", help="File for the released numbers: see 'dpcausal ask'."),
    ],
}


def _check_place(path: Path | None) -> None:
    """Refuse a file that could not be written, before anything is spent."""
    if path is not None and not path.absolute().parent.is_dir():
        raise ParameterError(f"{str(path)!r} is not in a folder that exists")


def build_method(kinds: Kinds, name_of_method: str, options: Mapping[str, Any]) -> Any:
    """Return the method, its options filled; without options the short name, so that the task may choose."""
    given = {name: value for name, value in options.items() if value is not None}
    kind = kinds.get(name_of_method)
    if kind is None and name_of_method != "auto":
        known_names = dict.fromkeys(("auto", *kinds))
        raise ParameterError(f"--method must be one of {', '.join(known_names)}{nearest(name_of_method, known_names)}")
    known = set() if kind is None else {field.name for field in fields(kind)}
    for name in given:
        if name not in known:
            takers = [other for other, one in kinds.items() if name in {field.name for field in fields(one)}]
            methods = " or ".join(dict.fromkeys(other for other in takers if other != "auto"))
            raise ParameterError(f"--{name.replace('_', '-')} goes with --method {methods}")
    if kind is None or not given:
        return "auto" if kind is None or name_of_method == "auto" else kind()
    return kind(**given | ({LAW: _law(given[LAW])} if LAW in given else {}))


def _law(text: str) -> Any:
    """Return a law of x as a study file has it."""
    from dpcausal.data.toml_text import toml_in

    if "=" not in text:
        return text
    try:
        return toml_in(f"law = {{ {text} }}", "--model-x")["law"]
    except ParameterError:
        examples = "'mean = { intercept = 1, age = 0.5 }, sd = 2', or 'table = [[0.9, 0.1], [0.4, 0.6]]', or fit"
        raise ParameterError(f"--model-x is written as {examples}") from None


def parameter(name: str, kind: Any, text: str, default: Any) -> inspect.Parameter:
    annotation = Annotated[kind, typer.Option(help=text)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


LAW = "model_x"


def plain_type(hint: Any) -> Any:
    """Return what a command line can give for a field: a whole number, a number, a word; None for objects."""
    if hint is Any:
        return str
    if get_origin(hint) is Literal:
        return str
    if get_origin(hint) is UnionType or str(get_origin(hint)) == "typing.Union":
        parts = [part for part in get_args(hint) if part is not type(None)]
        if any(getattr(part, "__name__", "") == "ModelX" for part in parts):
            return str
        return str if str in parts else plain_type(parts[0]) if len(parts) == 1 else None
    return hint if hint in (int, float, str, bool) else None


def described(kind: type, name: str) -> str:
    """Return what a method's docstring says of a field, in its first sentence."""
    for base in kind.__mro__:
        text = inspect.cleandoc(base.__doc__ or "")
        match = re.search(rf"^(?:[\w, ]*\b)?{name}\b[\w, ]* : .*\n((?:    .*\n?)+)", text, re.MULTILINE)
        if match:
            text_of_field = " ".join(match[1].split())
            return text_of_field.split(". ")[0].split("; ")[0].rstrip(".").replace("``", "") + "."
    return ""
