"""The program and its kinds of commands.

An option that holds one value is given once, since the last of two would ask something else.  A command with options of
methods works them out when it is called, so that ``--help`` of the program does not wait for them.
"""

import json
import logging
import os
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

Function = TypeVar("Function", bound=Callable[..., Any])

GROUPS = {
    "Study": ("init", "check", "plan", "run", "report"),
    "One question": (
        "effect", "did", "discontinuity", "ci-test", "discover", "direction", "direction-all", "synthetic-control",
    ),
    "Re-use": ("ask",),
    "Ledger": ("ledger",),
    "Other": ("demo", "explain", "schema"),
}  # fmt: skip
"""The commands as the help lists them."""


class GroupedCommands(TyperGroup):
    """The program: its help lists the commands in groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].help or "") for name in names])


class SingleValueCommand(TyperCommand):
    """A command that refuses an option given twice, unless the option collects its values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # The parser returns every parameter as often as it was given; what it makes of them is left to the base class.
        given: Counter[Any] = Counter(self.make_parser(ctx).parse_args(args=list(args))[2])
        rest: list[str] = super().parse_args(ctx, args)
        for parameter, times in given.items():
            if parameter.param_type_name == "option" and times > 1 and not parameter.multiple:
                raise typer.BadParameter(f"may be given only once, not {times} times", ctx=ctx, param=parameter)
        return rest


class LazyCommand(SingleValueCommand):
    """A placeholder command, which is made from the arguments when it is called."""

    made: Callable[[list[str]], Any]

    def make_context(self, info_name: Any, args: list[str], *more: Any, **settings: Any) -> Any:
        return type(self).made(args).make_context(info_name, args, *more, **settings)

    def invoke(self, ctx: Any) -> Any:
        return ctx.command.invoke(ctx)


class Program(typer.Typer):
    """A program, or a part of one, all of whose commands are of this kind."""

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **settings: Any
    ) -> Callable[[Function], Function]:
        return super().command(name, cls=cls or SingleValueCommand, **settings)


app = Program(
    cls=GroupedCommands, help="Differentially private causal inference.", no_args_is_help=True, add_completion=False,
    rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip
ledger_app = Program(help="Create, verify, renew, share and export a privacy ledger.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")


def _version(requested: bool) -> None:
    if requested:
        from dpcausal import __version__

        print(f"dpcausal {__version__}")
        raise typer.Exit


class JsonLines(logging.Formatter):
    """A record of the log as a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        names = "event", "number", "analyst", "task", "cost", "left", "reason", "ledger", "head", "detail"
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="minutes")
        public = {name: getattr(record, name) for name in names if hasattr(record, name)}
        return json.dumps({"at": at, "level": record.levelname} | public)


def _log_as(form: str) -> None:
    if not form:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter("%(levelname)s %(message)s"))
    logger = logging.getLogger("dpcausal")
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    witness: Annotated[str | None, typer.Option(help="Folder of the ledgers' witnesses.")] = None,
) -> None:
    """Differentially private causal inference."""
    _log_as(os.environ.get("DPCAUSAL_LOG", ""))
    if witness is not None:
        from dpcausal.privacy.storage.witness import VARIABLE

        os.environ[VARIABLE] = witness


def register(name: str, about: str, command: Callable[[list[str]], Callable[..., None]]) -> None:
    """Add a command whose function, and so its options, are made from the arguments when it is called."""

    def made(args: list[str]) -> Any:
        program = Program(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        program.command(name, help=about)(command(args))
        return typer.main.get_command(program)

    def late() -> None: ...

    app.command(name, help=about, cls=type("LazyCommand", (LazyCommand,), {"made": staticmethod(made)}))(late)
