"""Shared parts of the commands: the program, options, exit codes, the output of results."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcausal.cli.once import Program
from dpcausal.data.toml_text import shown
from dpcausal.errors import (
    BudgetExceededError,
    DpCausalError,
    LedgerDamagedError,
    LossError,
    NotCachedWarning,
    ParameterError,
)

if TYPE_CHECKING:
    from dpcausal.privacy.ledger import Ledger
    from dpcausal.privacy.loss import Loss
    from dpcausal.result import Result

BAD_INPUT, REFUSED, DAMAGED = 2, 3, 4

app = Program(
    help="Differentially private causal inference.", no_args_is_help=True, add_completion=False, rich_markup_mode=None,
    pretty_exceptions_enable=False,
)  # fmt: skip


def _version(requested: bool) -> None:
    if requested:
        from dpcausal import __version__

        echo(f"dpcausal {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
    witness: Annotated[str | None, typer.Option(help="The folder of the ledgers' witnesses.")] = None,
) -> None:
    """Differentially private causal inference."""
    if witness is not None:
        from dpcausal.privacy.witness import VARIABLE

        os.environ[VARIABLE] = witness


ledger_app = Program(help="Create, show and verify a privacy ledger.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")

SchemaOption = Annotated[Path, typer.Option("--schema", help="TOML file: one table a column, with its public bounds.")]
DATA = (
    "CSV or TSV with a header; Parquet, a folder or a pattern of it; Stata, SAS, SPSS; duckdb:///file.db?table=t; "
    "spark:local[2]?path=folder."
)
DataArgument = Annotated[str, typer.Argument(metavar="DATA", help=DATA)]
LedgerOption = Annotated[Path, typer.Option("--ledger", help="The ledger that pays; see 'dpcausal ledger create'.")]


def _amount(text: str) -> Any:
    """Return an amount as it is written: a number, or a fraction as 1/3."""
    if "/" not in text:
        return float(text)
    from dpcausal.privacy.loss import written_amount

    try:
        return written_amount(text)
    except LossError as error:
        raise ValueError(str(error)) from None


EpsilonOption = Annotated[
    float | None, typer.Option("--epsilon", parser=_amount, help="Most that the call may cost, ε, as 0.5 or 1/3.")
]
DeltaOption = Annotated[float | None, typer.Option("--delta", parser=_amount, help="δ beside ε.")]
RhoOption = Annotated[float | None, typer.Option("--rho", parser=_amount, help="Most that it may cost, ρ of zCDP.")]
LargeOption = Annotated[bool, typer.Option("--accept-large-epsilon", help="Consent to epsilon above 20.")]
NameOption = Annotated[
    str, typer.Option("--name", help="Of the data, for good: the same question is then paid once, its answer kept.")
]
RefreshOption = Annotated[bool, typer.Option("--refresh", help="Pay anew for what was answered before.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def echo(text: object, *, error: bool = False) -> None:
    """Print a text with its control characters escaped: names and saved files are written by others."""
    print(shown(str(text)), file=sys.stderr if error else sys.stdout, flush=error)


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn the library's errors into one line on standard error and an exit code; nothing else is shown.

    An answer that is not in its ledger is shown, and the code is not 0: nobody can read it again.
    """
    with _unsaved_warnings() as lost:
        try:
            yield from _failures()
        finally:
            for message in lost:
                echo(f"dpcausal: {message}", error=True)
    if lost:
        raise typer.Exit(DAMAGED)


@contextmanager
def printed_or(told: str) -> Iterator[None]:
    """Say on standard error what stands although standard output did not take what is printed here."""
    try:
        yield
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            echo(f"dpcausal: {told}", error=True)
        raise


@contextmanager
def _unsaved_warnings() -> Iterator[list[str]]:
    messages, show_other = list[str](), warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, NotCachedWarning):
            messages.append(str(message))
        else:
            show_other(message, category, *rest, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", NotCachedWarning)
        warnings.showwarning = show
        yield messages


def _failures() -> Iterator[None]:
    try:
        yield
    except BudgetExceededError as error:
        echo("A budget is never refilled; what was released is asked again for nothing: kept answers, dpcausal ask.",
             error=True)  # fmt: skip
        _fail(error, REFUSED)
    except LedgerDamagedError as error:
        _fail(error, DAMAGED)
    except DpCausalError as error:
        _fail(error, BAD_INPUT)
    except OSError as error:  # a closed pipe, a full disk
        _fail(DpCausalError(f"the system refused: {error.strerror or type(error).__name__}"), BAD_INPUT)


def _fail(error: DpCausalError, code: int) -> None:
    # What the library calls a keyword is an option here.
    keyword = r"\b(accept_large_epsilon|again|force|new_ledger|partial)=True"
    message = re.sub(keyword, lambda m: "--" + m[1].replace("_", "-"), str(error))
    with suppress(OSError):
        echo(f"dpcausal: {message}", error=True)
    raise typer.Exit(code)


def names_in(what: str, texts: Iterable[str] | None) -> list[str]:
    """Return the names of an option or argument: each text holds one or several, comma between, blanks around."""
    names = []
    for text in texts or []:
        parts = [part.strip() for part in text.split(",")]
        if not all(parts):  # perhaps an unset variable of the shell: without it the question would be another
            raise ParameterError(f"{what}: a name is missing in {text!r}")
        names += parts
    return names


def loss_from(
    epsilon: float | None, delta: float | None, rho: float | None, what: str = "what the call may cost"
) -> Loss:
    """Return the loss that the options name; ``what`` it is for is said where they name none."""
    from dpcausal.privacy.loss import ZCDP, ApproxDP, PureDP

    if rho is not None:
        if epsilon is not None or delta is not None:
            raise LossError("give --epsilon (and --delta), or --rho, not both")
        return ZCDP(rho)
    if epsilon is None:
        raise LossError(f"say {what}: --epsilon E [--delta D], or --rho R")
    return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)


def show(result: Result, ledger: Ledger, as_json: bool) -> None:
    if as_json:
        left = ledger.remaining
        answer = result.to_dict() | {"remaining": vars(left), "ledger_head": ledger.head}
        echo(json.dumps(answer, allow_nan=False, ensure_ascii=False))
        return
    cost = "Cost nothing, a kept answer" if result.guarantee.cached else f"Cost {result.guarantee.loss}"
    text = f"{result.summary()}\n{cost}; remaining budget: {ledger.remaining}."
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.panel import Panel
        from rich.text import Text

        Console().print(Panel(Text(shown(text)), title=type(result).__name__.lower(), expand=False))
    else:
        echo(text)
