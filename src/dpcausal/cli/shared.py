"""Shared parts of the commands: options, exit codes, what is printed."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcausal.data.toml_text import escaped
from dpcausal.errors import (
    BudgetExceededError,
    DpCausalError,
    Language,
    LedgerDamagedError,
    LedgerError,
    LossError,
    NotCachedWarning,
    ParameterError,
    hints_in,
)

if TYPE_CHECKING:
    from dpcausal.privacy.ledger import Ledger
    from dpcausal.privacy.loss import Loss
    from dpcausal.result import Result

BAD_INPUT, REFUSED, DAMAGED = 2, 3, 4

SchemaOption = Annotated[Path, typer.Option("--schema", help="TOML file with the public bounds of each column.")]
ADJUST_OR_TRIAL = "give --adjust COLUMN (confounders), or --trial if treatment was randomised"

DATA = (
    "CSV or TSV with a header; Parquet, a folder or a pattern of it; Stata, SAS, SPSS; duckdb:///file.db?table=t; "
    "spark:local[2]?path=folder."
)
DataArgument = Annotated[str, typer.Argument(metavar="DATA", help=DATA)]
LedgerOption = Annotated[str, typer.Option("--ledger", help="Privacy ledger; see 'dpcausal ledger create'.")]


def amount(text: str) -> Any:
    if "/" not in text:
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"{text!r} is no number such as 0.5 or 1/3") from None
    from dpcausal.privacy.loss import written_amount

    try:
        return written_amount(text)
    except LossError as error:
        raise ValueError(str(error)) from None


EpsilonOption = Annotated[
    float | None, typer.Option("--epsilon", parser=amount, help="Privacy budget for this question, as 0.5 or 1/3.")
]
DeltaOption = Annotated[float | None, typer.Option("--delta", parser=amount, help="Delta beside epsilon, as 1e-6.")]
RhoOption = Annotated[float | None, typer.Option("--rho", parser=amount, help="Privacy budget in zCDP, for experts.")]
LargeOption = Annotated[bool, typer.Option("--accept-large-epsilon", help="Accept epsilon above 20.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def echo(text: object, *, error: bool = False) -> None:
    """Print a text with its control characters escaped: names and saved files are written by others."""
    print(escaped(str(text)), file=sys.stderr if error else sys.stdout, flush=error)


def print_json(value: Any) -> None:
    echo(json.dumps(value, allow_nan=False, ensure_ascii=False))


@contextmanager
def exit_codes(language: Language = "command") -> Iterator[None]:
    """Turn the library's errors into one line on standard error and an exit code; nothing else is shown. An answer that
    is not in its ledger is shown, and the code is not 0: nobody can read it again.  Hints name options of the command,
    or keys of a study file."""
    with hints_in(language), _unsaved_warnings() as lost:
        try:
            yield
        except BudgetExceededError as error:
            _fail(error, REFUSED, "A spent budget cannot be restored. Published results can be re-used: dpcausal ask.")
        except LedgerDamagedError as error:
            _fail(error, DAMAGED)
        except DpCausalError as error:
            _fail(error, BAD_INPUT)
        except BrokenPipeError:  # whoever reads has stopped
            raise typer.Exit(BAD_INPUT) from None
        except OSError as error:  # a full disk
            text = f"the system refused: {error.strerror or type(error).__name__}"
            _fail(DpCausalError(text, rule="system"), BAD_INPUT)
        finally:
            for message in lost:
                echo(f"warning: {message}", error=True)
    if lost:
        raise typer.Exit(DAMAGED)


@contextmanager
def printed_or(text: str) -> Iterator[None]:
    """Print on standard error what exists although standard output did not take what is printed here."""
    try:
        yield
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            echo(f"warning: {text}", error=True)
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


def _fail(error: DpCausalError, code: int, more: str = "") -> None:
    with suppress(OSError):
        echo("\n".join(filter(None, (f"error: {error.message()}", more))), error=True)
    raise typer.Exit(code) from error


def names_in(what: str, texts: Iterable[str] | None) -> list[str]:
    """Return the names of an option or argument: each text holds one or several, comma between, blanks around."""
    names = []
    for text in texts or ():
        parts = [name.strip() for name in text.split(",")]
        if "" in parts:  # perhaps an unset variable of the shell: without it the question would be another
            raise ParameterError(f"{what}: a name is missing in {text!r}", argument=what, rule="missing-name")
        names += parts
    return names


def assigned(text: str, error: ParameterError, number: Callable[[str], Any] = float) -> tuple[str, Any]:
    """Return the name and the number of ``NAME=NUMBER``; raise the error if it is not written so."""
    name, _, amount_text = text.rpartition("=")
    with suppress(ValueError):
        if name:
            return name, number(amount_text)
    raise error


def check_place(path: Path | None) -> None:
    if path is not None and not path.absolute().parent.is_dir():
        raise ParameterError(f"{str(path)!r} is not in a folder that exists", argument=str(path), rule="folder")


def check_picture(path: Path | None) -> None:
    """Refuse, before anything is spent, a picture that cannot be drawn or written."""
    check_place(path)
    if path is None:
        return
    from dpcausal.plotting import picture_formats

    if path.suffix and path.suffix[1:].lower() not in picture_formats():
        text = f"{str(path)!r} is no picture: its name must end with .png, .pdf or .svg"
        raise ParameterError(text, argument="plot", rule="picture")


def short_fingerprint(head: str) -> str:
    return " ".join(head[place : place + 4] for place in range(0, 16, 4)) + " ..."


def loss_from(epsilon: float | None, delta: float | None, rho: float | None) -> Loss:
    from dpcausal.privacy.loss import ZCDP, ApproxDP, PureDP

    if rho is not None:
        if epsilon is not None or delta is not None:
            text = "give --epsilon (and --delta), or --rho, not both"
            raise LossError(text, argument="rho", rule="two-amounts")
        return ZCDP(rho)
    if epsilon is None:
        text = "the privacy budget is missing: give --epsilon E (and --delta D), or --rho R"
        raise LossError(text, argument="epsilon", rule="no-amount")
    return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)


@dataclass(frozen=True)
class Call:
    """What every call has besides its question, on an open ledger."""

    ledger: Ledger
    as_json: bool
    details: bool = False
    stored: bool = True
    plot: Path | None = None
    save_release: Path | None = None

    def show(self, result: Result, graph_text: str = "") -> None:
        """Save a result where that is asked, print it and what is left of the budget, and draw it."""
        released = getattr(result, "release", None) is not None
        if released:
            self.save(result)  # first: whoever reads the lines may stop after the first
        with self.rescued(result):
            if graph_text and not self.as_json:
                echo(graph_text)
            else:
                self._print(result)
            sys.stdout.flush()
        if not released:
            self.save(result)  # says that there is nothing to save, but of an answer that was paid for and is shown
        if self.plot is not None:
            result.plot().figure.savefig(self.plot)

    def _print(self, result: Result) -> None:
        if self.as_json:
            print_json(result.to_dict() | {"remaining": vars(self.ledger.remaining), "ledger_head": self.ledger.head})
            return
        printed = result.details() if self.details else str(result)
        again = "" if self.stored else "\nThis result is not stored. With --name NAME the same command is free later."
        text = f"{printed}\nLeft of the budget: {self.ledger.remaining}.{again}"
        if sys.stdout.isatty():
            from rich.console import Console
            from rich.panel import Panel
            from rich.text import Text

            Console().print(Panel(Text(escaped(text)), title=type(result).__name__.lower(), expand=False))
        else:
            echo(text)

    @contextmanager
    def rescued(self, result: Result) -> Iterator[None]:
        """Say where a result is that could not be printed; one that its ledger does not store goes to a file there."""
        try:
            yield
        except BaseException:
            with suppress(OSError):
                echo(f"warning: {self._whereabouts(result)}", error=True)
            raise

    def _whereabouts(self, result: Result) -> str:
        from dpcausal.study.writing import write_new

        head = result.guarantee.ledger_head
        with suppress(LedgerError):
            if any(spend.hash == head and self.ledger.answer(spend.number) for spend in self.ledger.entries()):
                place = repr(str(self.ledger.path))
                return f"the result is saved in ledger {place}: the same command without --refresh prints it at no cost"
        stem = self.ledger.path if isinstance(self.ledger.path, Path) else "ledger"
        path = Path(f"{stem}.answer-{head[:12]}.json").absolute()
        try:
            write_new(path, result.to_json())
        except ParameterError as error:
            return f"the result is paid for and lost: {error}"
        return f"the result is paid for, and is in {str(path)!r}"

    def save(self, result: Any) -> None:
        from dpcausal.study.writing import replace_files

        if self.save_release is None:
            return
        if result.release is None:
            text = f"method {result.method} releases no statistics that can be re-used: nothing was saved"
            raise ParameterError(text, argument="save_release", rule="no-release")
        replace_files({self.save_release: result.release.to_json()})
