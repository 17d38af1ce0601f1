"""The command: the same names as the library's functions."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dpcausal.errors import (
    BudgetExceededError,
    DpCausalError,
    LedgerDamagedError,
    LossError,
    MissingDependencyError,
)

try:
    import typer
except ImportError:
    raise MissingDependencyError("typer", "cli") from None

if TYPE_CHECKING:
    from dpcausal.privacy.ledger import Ledger
    from dpcausal.privacy.loss import Loss
    from dpcausal.report import Result

BAD_INPUT, REFUSED, DAMAGED = 2, 3, 4

app = typer.Typer(
    help="Differentially private causal inference.", no_args_is_help=True, add_completion=False, rich_markup_mode=None,
    pretty_exceptions_enable=False,
)  # fmt: skip
ledger_app = typer.Typer(help="Create, show and verify a privacy ledger.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")

SchemaOption = Annotated[Path, typer.Option("--schema", help="TOML file: one table a column, with its public bounds.")]
LedgerOption = Annotated[Path, typer.Option("--ledger", help="The ledger that pays; see 'dpcausal ledger create'.")]
EpsilonOption = Annotated[float | None, typer.Option("--epsilon", help="Most that the call may cost, ε.")]
DeltaOption = Annotated[float | None, typer.Option("--delta", help="δ beside ε.")]
RhoOption = Annotated[float | None, typer.Option("--rho", help="Most that the call may cost, ρ of zCDP.")]
LeastOption = Annotated[
    float | None, typer.Option("--min-probability", help="Below it, of (.5, 1), an answer is undecided.")
]
LargeOption = Annotated[bool, typer.Option("--accept-large-epsilon", help="Consent to epsilon above 20.")]
PenaltyOption = Annotated[
    list[float] | None, typer.Option(help="λ of protected regressions; several times: one is chosen, and charged.")
]
WidthOption = Annotated[list[float] | None, typer.Option(help="Their kernel's width; several times: as for λ.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@contextmanager
def _exit_codes() -> Iterator[None]:
    """Turn the library's errors into one line on standard error and an exit code; nothing else is shown."""
    try:
        yield
    except BudgetExceededError as error:
        _fail(error, REFUSED)
    except LedgerDamagedError as error:
        _fail(error, DAMAGED)
    except DpCausalError as error:
        _fail(error, BAD_INPUT)


def _fail(error: DpCausalError, code: int) -> None:
    print(f"dpcausal: {error}", file=sys.stderr)
    raise typer.Exit(code)


def loss_from(epsilon: float | None, delta: float | None, rho: float | None) -> Loss:
    """Return the loss that the options name."""
    from dpcausal.privacy.loss import ZCDP, ApproxDP, PureDP

    if rho is not None:
        if epsilon is not None or delta is not None:
            raise LossError("give --epsilon (and --delta), or --rho, not both")
        return ZCDP(rho)
    if epsilon is None:
        raise LossError("say what the call may cost: --epsilon E [--delta D], or --rho R")
    return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)


def _show(result: Result, ledger: Ledger, as_json: bool) -> None:
    if as_json:
        left = ledger.remaining
        answer = result.to_dict() | {"remaining": vars(left), "ledger_head": ledger.head}
        print(json.dumps(answer, allow_nan=False, ensure_ascii=False))
        return
    text = f"{result.summary()}\nCost {result.guarantee.loss}; remaining budget: {ledger.remaining}."
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.panel import Panel
        from rich.text import Text

        Console().print(Panel(Text(text), title=type(result).__name__.lower(), expand=False))
    else:
        print(text)


def _one_or_several(values: list[float] | None) -> float | tuple[float, ...] | None:
    """Return a number given once as itself, several as the tuple to choose from."""
    return (values[0] if len(values) == 1 else tuple(values)) if values else None


@app.command("direction")
def direction_command(
    data: Annotated[Path, typer.Argument(help="CSV with a header, or Parquet.")],
    x: Annotated[str, typer.Argument(help="First column.")],
    y: Annotated[str, typer.Argument(help="Second column.")],
    schema: SchemaOption,
    ledger: LedgerOption,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    score: Annotated[
        str, typer.Option(help="hsic, spearman, kendall, iqr; for everyone also variance, igci[-gaussian|-slope].")
    ] = "hsic",
    protect: Annotated[str, typer.Option(help="everyone, or test or training: that half only.")] = "everyone",
    method: Annotated[str, typer.Option(help="auto, or for everyone blocks or joint; see the documentation.")] = "auto",
    blocks: Annotated[int | None, typer.Option(help="Odd number of blocks; by default a public rule.")] = None,
    penalty: PenaltyOption = None,
    width: WidthOption = None,
    release_scores: Annotated[bool, typer.Option(help="With one half protected: release both scores.")] = False,
    min_probability: LeastOption = None,
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Which of two columns is the cause?"""
    with _exit_codes():
        from dpcausal import Ledger, Schema, Table, direction

        asked = loss_from(epsilon, delta, rho)
        with Ledger.open(ledger) as opened:
            table = Table(data, Schema.from_toml(schema), opened)
            chosen: dict[str, Any] = {"score": score, "protect": protect, "method": method}
            result = direction(
                table, x, y, loss=asked, blocks=blocks, release_scores=release_scores,
                penalty=_one_or_several(penalty), width=_one_or_several(width),
                min_probability=min_probability, accept_large_epsilon=accept_large_epsilon, **chosen,
            )  # fmt: skip
            _show(result, opened, as_json)


@app.command("direction-all")
def direction_all_command(
    data: Annotated[Path, typer.Argument(help="CSV with a header, or Parquet.")],
    schema: SchemaOption,
    ledger: LedgerOption,
    pair: Annotated[
        list[str] | None, typer.Option(help="Two columns, as a,b; once for each pair. All bounded columns otherwise.")
    ] = None,
    scores: Annotated[str, typer.Option(help="One or more scores, as hsic,igci; each is paid for.")] = "hsic",
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    protect: Annotated[str, typer.Option(help="everyone, or test: the test half only.")] = "everyone",
    blocks: Annotated[int | None, typer.Option(help="Odd number of blocks; by default a public rule.")] = None,
    min_probability: LeastOption = None,
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Which of two columns is the cause, for many pairs under one budget?"""
    with _exit_codes():
        from dpcausal import Ledger, Schema, Table, direction_all

        asked = loss_from(epsilon, delta, rho)
        named = [tuple(each.split(",")) for each in pair] if pair else None
        with Ledger.open(ledger) as opened:
            table = Table(data, Schema.from_toml(schema), opened)
            chosen: dict[str, Any] = {"pairs": named, "protect": protect}
            result = direction_all(
                table, loss=asked, scores=scores.split(","), blocks=blocks, min_probability=min_probability,
                accept_large_epsilon=accept_large_epsilon, **chosen,
            )  # fmt: skip
            _show(result, opened, as_json)


@app.command("check")
def check_command(
    data: Annotated[Path, typer.Argument(help="CSV with a header, or Parquet.")],
    schema: SchemaOption,
    as_json: JsonOption = False,
) -> None:
    """NOT PRIVATE: how many values the schema clips or substitutes, for the curator alone.  Spends nothing."""
    with _exit_codes():
        from dpcausal import Schema

        found = Schema.from_toml(schema).check(data)
        print(json.dumps(found.to_dict(), allow_nan=False, ensure_ascii=False) if as_json else found.summary())


@app.command("discover")
def discover_command(
    data: Annotated[Path, typer.Argument(help="CSV with a header, or Parquet.")],
    schema: SchemaOption,
    ledger: LedgerOption,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    method: Annotated[str, typer.Option(help="auto, table, parities, moments, priv-pc, ...")] = "auto",
    columns: Annotated[str | None, typer.Option(help="Columns of the graph, comma between; by default all.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Level of the tests.")] = None,
    max_order: Annotated[int | None, typer.Option(help="Largest conditioning set.")] = None,
    forbid: Annotated[list[str] | None, typer.Option(help="CAUSE,EFFECT that cannot be; repeatable.")] = None,
    require: Annotated[list[str] | None, typer.Option(help="CAUSE,EFFECT that must be; repeatable.")] = None,
    redraws: Annotated[int, typer.Option(help="Draws of fresh noise for the support of the edges; 0 for none.")] = 50,
    form: Annotated[str, typer.Option("--format", help="text, dagitty, dot or graphml.")] = "text",
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Which columns cause which?"""
    with _exit_codes():
        from dpcausal import Knowledge, Ledger, Schema, Table, discover
        from dpcausal.errors import ParameterError

        texts = {"text": None, "dagitty": "to_dagitty", "dot": "to_dot", "graphml": "to_graphml"}
        if form not in texts or not 0 <= redraws <= 10_000:
            raise ParameterError("--format is text, dagitty, dot or graphml, --redraws a number from 0 to 10000")
        known = Knowledge(forbidden=_arrows(forbid), required=_arrows(require))
        asked = loss_from(epsilon, delta, rho)
        with Ledger.open(ledger) as opened:
            table = Table(data, Schema.from_toml(schema), opened)
            chosen: dict[str, Any] = {"method": method, "columns": columns.split(",") if columns else None}
            result = discover(
                table, loss=asked, alpha=alpha, max_order=max_order, knowledge=known,
                accept_large_epsilon=accept_large_epsilon, **chosen,
            )  # fmt: skip
            if redraws and result.release is not None:
                result = result.with_support(redraws)
            if texts[form] and not as_json:
                print(getattr(result.graph, str(texts[form]))(), end="")
            else:
                _show(result, opened, as_json)


def _arrows(texts: list[str] | None) -> list[tuple[str, str]]:
    """Return the arrows of ``CAUSE,EFFECT`` options."""
    from dpcausal.errors import ParameterError

    arrows = []
    for text in texts or []:
        cause, comma, effect = text.partition(",")
        if not comma:
            raise ParameterError("an arrow is written CAUSE,EFFECT")
        arrows.append((cause, effect))
    return arrows


@app.command("synthetic-control")
def synthetic_control_command(
    data: Annotated[Path, typer.Argument(help="Long CSV with a header, or Parquet: a row for each unit and time.")],
    unit: Annotated[str, typer.Option(help="Column of the units.")],
    time: Annotated[str, typer.Option(help="Column of the times.")],
    outcome: Annotated[str, typer.Option(help="Column of the outcome.")],
    target: Annotated[str, typer.Option(help="The treated unit; its own series is not protected.")],
    start: Annotated[str, typer.Option(help="The first treated period.")],
    lower: Annotated[float, typer.Option(help="Public lower bound of the outcome.")],
    upper: Annotated[float, typer.Option(help="Public upper bound of the outcome.")],
    ledger: LedgerOption,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    method: Annotated[str, typer.Option(help="auto, matched, factor, output-perturbation, ...")] = "auto",
    coverage: Annotated[float, typer.Option(help="Nominal coverage of the interval.")] = 0.9,
    plan: Annotated[bool, typer.Option("--plan", help="Say what it would cost and whether it can work.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Run although the donors would add little but noise.")] = False,
    accept_large_epsilon: LargeOption = False,
    as_json: JsonOption = False,
) -> None:
    """What would have happened without the intervention?"""
    with _exit_codes():
        from dpcausal import Bounded, Ledger, Panel, plan_synthetic_control, synthetic_control

        asked = loss_from(epsilon, delta, rho)
        with Ledger.open(ledger) as opened:
            panel = Panel(data, unit=unit, time=time, outcome=outcome, target=_named(target, data), start=start,
                          bounds=Bounded(lower, upper), ledger=opened)  # fmt: skip
            chosen: dict[str, Any] = {"method": method, "coverage": coverage}
            if plan:
                print(plan_synthetic_control(panel, loss=asked, **chosen))
                return
            result = synthetic_control(
                panel, loss=asked, force=force, accept_large_epsilon=accept_large_epsilon, **chosen
            )
            _show(result, opened, as_json)


def _named(target: str, data: Path) -> str | int:
    """Return a unit's name as the file holds it: all names in a CSV are texts."""
    return target if data.suffix.lower() == ".csv" or not target.lstrip("+-").isdigit() else int(target)


@app.command("explain")
def explain_command(proof: Annotated[str, typer.Argument(help="A claim named in a result's proofs.")]) -> None:
    """Print a claim with its proof."""
    with _exit_codes():
        from dpcausal import explain

        print(explain(proof))


@app.command("demo")
def demo_command(
    epsilon: Annotated[float, typer.Option(help="ε of the answer, at most 2.")] = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Answer a question on real health data that comes with statsmodels."""
    with _exit_codes():
        from dpcausal.demo import run

        result, ledger = run(epsilon)
        _show(result, ledger, as_json)
        if not as_json:
            print("Known from the experiment's design, plans being assigned at random: coinsurance -> visits.")


@ledger_app.command("create")
def ledger_create(
    path: Annotated[Path, typer.Argument(help="A new file.")],
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
) -> None:
    """Create a ledger with a total budget."""
    with _exit_codes():
        from dpcausal import Ledger

        with Ledger.create(path, budget=loss_from(epsilon, delta, rho)) as ledger:
            print(f"{path.name}: budget {ledger.budget}, remaining {ledger.remaining}")


def _opened(path: Path, head: str | None = None) -> Ledger:
    """Open a ledger to look at it: where it cannot be written, as it stands in its file."""
    from dpcausal import Ledger
    from dpcausal.privacy.ledger_file import may_write

    return Ledger.open(path, head, read_only=not may_write(path))


@ledger_app.command("show")
def ledger_show(
    path: Annotated[Path, typer.Argument(help="A ledger.")],
    as_json: JsonOption = False,
    lines: Annotated[bool, typer.Option("--jsonl", help="Print one JSON object an entry.")] = False,
) -> None:
    """Show the budget, what is left, and every spend.  The ledger need not be writable."""
    with _exit_codes(), _opened(path) as ledger:
        entries = ledger.entries()
        left = ledger.remaining
        if lines:
            for entry in entries:
                print(json.dumps(entry.to_dict(), allow_nan=False, ensure_ascii=False))
        elif as_json:
            answer = {
                "budget": repr(ledger.budget),
                "remaining": vars(left),
                "head": ledger.head,
                "entries": [entry.to_dict() for entry in entries],
            }
            print(json.dumps(answer, allow_nan=False, ensure_ascii=False))
        else:
            print(f"{path.name}: budget {ledger.budget}, remaining {left}, head {ledger.head}")
            for entry in entries:
                asked = json.loads(entry.detail)
                words = (*asked.get("columns", []), asked.get("score", ""), *asked.get("scores", []))
                what = " ".join(str(part) for part in words if part)
                print(f"{entry.number:>6}  {entry.at[:19]}  {entry.task} {what}  {entry.loss}  {entry.unit}")


@ledger_app.command("verify")
def ledger_verify(
    path: Annotated[Path, typer.Argument(help="A ledger.")],
    head: Annotated[str | None, typer.Option(help="A head printed earlier: refuses a restored old file.")] = None,
) -> None:
    """Check the hash chain, the sums and the budget of every entry.  The ledger need not be writable."""
    with _exit_codes(), _opened(path, head) as ledger:
        verification = ledger.verify()
        if not verification.ok:
            raise LedgerDamagedError(f"{path.name}: {'; '.join(verification.problems)}")
        print(f"{path.name}: {verification.entries} entries verified, head {verification.head}")
        if head is None:
            print("Whether an older copy was put back shows only against a head noted earlier: --head.")


def main() -> None:
    """Run the command; a name that the terminal cannot write must not fail after the spend."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app()


# Registers its command; it takes the options and helpers above.
from dpcausal import cli_independence as cli_independence  # noqa: E402
