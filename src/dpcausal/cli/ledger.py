"""The commands ``dpcausal ledger create``, ``show`` and ``verify``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcausal.cli.options import IdsOption, PersonOption
from dpcausal.cli.shared import (
    DeltaOption,
    EpsilonOption,
    JsonOption,
    LargeOption,
    RhoOption,
    echo,
    exit_codes,
    ledger_app,
    loss_from,
)
from dpcausal.errors import LedgerDamagedError

if TYPE_CHECKING:
    from dpcausal.privacy.ledger import Ledger, Verification


@ledger_app.command("create")
def ledger_create(
    path: Annotated[Path, typer.Argument(help="A new file.")],
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    person: PersonOption = None,
    unit: Annotated[str | None, typer.Option("--unit", help="It protects units of this column of panels.")] = None,
    ids: IdsOption = "private",
    protect: Annotated[str, typer.Option(help="Of rows: everyone; of one half, test or training.")] = "everyone",
    accept_large_epsilon: LargeOption = False,
) -> None:
    """Create a ledger with a total budget, for rows, for persons of a column or for units of a column."""
    with exit_codes():
        from dpcausal.privacy.ledger import Ledger
        from dpcausal.privacy.loss import PureDP

        budget = loss_from(epsilon, delta, rho, "how large the budget is")
        with Ledger.create(path, budget=budget, person=person, unit=unit, ids=ids, protect=protect,
                           accept_large_epsilon=accept_large_epsilon) as ledger:  # fmt: skip
            echo(f"{path.name}: protects {ledger.protects}, budget {ledger.budget}, remaining {ledger.remaining}")
            if isinstance(ledger.budget, PureDP):
                echo("It pays for no method with Gaussian noise, as wide tables need: with --delta 1e-6 it would.")


def _opened(path: Path, head: str | None = None) -> Ledger:
    """Open a ledger to look at it, in a file that need not be writable."""
    from dpcausal.privacy.ledger import Ledger

    return Ledger.open(path, head, read_only=True)


@ledger_app.command("show")
def ledgershow(
    path: Annotated[Path, typer.Argument(help="A ledger.")],
    as_json: JsonOption = False,
    lines: Annotated[bool, typer.Option("--jsonl", help="Print one JSON object an entry.")] = False,
) -> None:
    """Show the budget, what is left, what was declared public, and every spend.  The ledger need not be writable."""
    with exit_codes(), _opened(path) as ledger:
        entries = ledger.entries()
        left = ledger.remaining
        if lines:
            for entry in entries:
                echo(json.dumps(entry.to_dict(), allow_nan=False, ensure_ascii=False))
        elif as_json:
            answer = {
                "budget": repr(ledger.budget),
                "protects": str(ledger.protects),
                "remaining": vars(left),
                "head": ledger.head,
                "declared": ledger.declared,
                "entries": [entry.to_dict() for entry in entries],
            }
            echo(json.dumps(answer, allow_nan=False, ensure_ascii=False))
        else:
            whole = f"protects {ledger.protects}, budget {ledger.budget}, remaining {left}"
            echo(f"{path.name}: {whole}, head {ledger.head}")
            for name, value in ledger.declared.items():
                echo(f"Declared public: {name}: {f'{len(value)} values' if isinstance(value, dict) else value}")
            for entry in entries:
                cached = "" if ledger.answer(entry.number) is None else "  answer kept"
                what = question_text(json.loads(entry.detail))
                echo(f"{entry.number:>6}  {entry.at[:19]}  {entry.task} {what}  {entry.loss}  {entry.unit}{cached}")


def question_text(detail: dict[str, Any]) -> str:
    """Return what a spend was for in short, as ``x, y | z``, with the table, the subgroup and the method.

    Examples
    --------
    >>> question_text({"columns": ["x", "y", "z"], "x": ["x"], "y": ["y"], "given": ["z"], "method": "gcm"})
    'x, y | z, by gcm'
    """
    def named(*keys: str) -> list[str]:
        parts = [detail.get(key) for key in keys]
        listed = [part if isinstance(part, list) else [part] for part in parts if part]
        return [str(one) for part in listed for one in part]

    if "x" in detail and "y" in detail:
        sides, given = named("x", "y"), named("given")
    elif "treatment" in detail:
        sides, given = [" -> ".join(named("treatment", "outcome"))], named("groups", "adjust")
    else:
        sides, given = named("columns", "by", "values", "targets", "score", "scores"), []
    where = f" where {' and '.join(named('where'))}" if detail.get("where") else ""
    text = f"{', '.join(sides)}{' | ' + ', '.join(given) if given else ''}{where}"
    table, method = detail.get("table"), detail.get("method")
    return text + (f" in {table}" if table else "") + (f", by {method}" if method else "")


@ledger_app.command("verify")
def ledger_verify(
    path: Annotated[Path, typer.Argument(help="A ledger.")],
    fingerprint: Annotated[str | None, typer.Option(help="The head noted earlier: refuses an older file.")] = None,
) -> None:
    """Check the hash chain, the sums and the budget of every entry.  The ledger need not be writable."""
    with exit_codes(), _opened(path, fingerprint) as ledger:
        verification = ledger.verify()
        if not verification.ok:
            raise LedgerDamagedError(f"{path.name}: {'; '.join(verification.problems)}")
        echo(f"{path.name}: {verification.entries} entries verified, head {verification.head}")
        if verification.torn:
            echo(f"Left out: {verification.torn} bytes after the last line, of a write that failed.")
        echo(_witnessed(verification))
        if fingerprint is None:
            echo("Whether both were put back shows only against a head noted elsewhere: --fingerprint.")


def _witnessed(verification: Verification) -> str:
    if not verification.witnessed:
        place = "there is no place for one" if verification.witness is None else f"nothing is at {verification.witness}"
        return f"It has no witness here, {place}: whether an older copy was put back is not known."
    if verification.witnessed == verification.lines:
        return f"Its witness {verification.witness} saw all {verification.lines} lines."
    return (
        f"Its witness {verification.witness} saw {verification.witnessed} of its {verification.lines} lines: "
        "later ones could not be noted, and whether more were cut off is not known."
    )
