"""The commands ``dpcausal ledger``: ``create``, ``show``, ``verify``, ``renew``, ``divide``, ``backup``, ``export``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcausal.cli.program import ledger_app
from dpcausal.cli.shared import (
    DeltaOption,
    JsonOption,
    LargeOption,
    RhoOption,
    amount,
    assigned,
    echo,
    exit_codes,
    loss_from,
    print_json,
    short_fingerprint,
)
from dpcausal.cli.tasks import IdsOption, PersonOption
from dpcausal.data.toml_text import escaped
from dpcausal.errors import LedgerDamagedError, ParameterError

if TYPE_CHECKING:
    from dpcausal.privacy.ledger import Ledger, Verification

AnalystOption = Annotated[list[str] | None, typer.Option(
    "--analyst", help="Part of an analyst, as anna=0.5; repeatable. Others then cannot spend.",
)]  # fmt: skip
LedgerArgument = Annotated[str, typer.Argument(help="A ledger: a file, or postgresql://host/database?ledger=name.")]
TotalOption = Annotated[float | None, typer.Option("--epsilon", parser=amount, help="Total budget, as 2 or 1/3.")]
BAR = 20


@ledger_app.command("create")
def ledger_create(
    path: Annotated[str, typer.Argument(help="A new file, or postgresql://host/database?ledger=name.")],
    epsilon: TotalOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    person: PersonOption = None,
    unit: Annotated[str | None, typer.Option("--unit", help="Column of the units of a panel, to protect them.")] = None,
    ids: IdsOption = "private",
    protect: Annotated[str, typer.Option(help="everyone; or test or training: that half only.")] = "everyone",
    analyst: AnalystOption = None,
    accept_large_epsilon: LargeOption = False,
) -> None:
    """Create a ledger with a total budget for rows, persons or units."""
    with exit_codes():
        from dpcausal.privacy.ledger import Ledger
        from dpcausal.privacy.loss import PureDP

        budget, parts = loss_from(epsilon, delta, rho), _parts(analyst)
        with Ledger.create(path, budget=budget, person=person, unit=unit, ids=ids, protect=protect,
                           accept_large_epsilon=accept_large_epsilon) as ledger:  # fmt: skip
            name = name_of(ledger)
            if parts:
                ledger.divide(parts)
            echo(f"Created {name} with a budget of {ledger.budget}. It protects {ledger.protects}.")
            if isinstance(ledger.budget, PureDP):
                echo("Methods that need Gaussian noise (many columns) are unavailable. Add --delta 1e-6 to allow them.")
            echo(f"Keep a backup of {name}. Its fingerprint: {short_fingerprint(ledger.head)}")
            echo("Next: dpcausal effect --help    (or ci-test, discover, ...), with --ledger")


def name_of(ledger: Ledger) -> str:
    return ledger.path.name if isinstance(ledger.path, Path) else str(ledger.path)


def _parts(texts: list[str] | None) -> dict[str, Any]:
    def error(text: str) -> ParameterError:
        return ParameterError(f"a part is written as name=0.5, not {text!r}", argument="analyst", rule="part")

    return dict(assigned(text, error(text), amount) for text in texts or ())


def _opened(path: str, head: str | None = None) -> Ledger:
    from dpcausal.privacy.ledger import Ledger

    return Ledger.open(path, head, read_only=True)


@ledger_app.command("show")
def ledger_show(
    path: LedgerArgument,
    as_json: JsonOption = False,
    lines: Annotated[bool, typer.Option("--jsonl", help="Print one JSON object per entry.")] = False,
) -> None:
    """Show the budget, what is left, and every spend."""
    with exit_codes(), _opened(path) as ledger:
        entries = ledger.entries()
        if lines:
            for entry in entries:
                print_json(entry.to_dict())
        elif as_json:
            print_json(_whole(ledger))
        else:
            echo("\n".join([*_account(ledger), "", *_spends(ledger), "", *_integrity(ledger), NEXT]))


def _whole(ledger: Ledger) -> dict[str, Any]:
    return {
        "budget": repr(ledger.budget), "protects": str(ledger.protects), "remaining": vars(ledger.remaining),
        "renewals": [{"at": at, "reason": reason, "budget": repr(to)} for at, reason, to in ledger.renewals],
        "analysts": {name: vars(left) for name, left in ledger.analysts.items()},
        "head": ledger.head, "declared": ledger.declared, "entries": [entry.to_dict() for entry in ledger.entries()],
    }  # fmt: skip


NEXT = "Next: dpcausal ledger verify, with a fingerprint that you noted earlier"


def _account(ledger: Ledger) -> list[str]:
    from dpcausal.result import short_amount, short_loss

    at, library = ledger.created
    made = f"created {at[:10]} by dpcausal {library}"
    lines = [f"{name_of(ledger)}   protects {ledger.protects}   {made}", f"Budget        {ledger.budget}"]
    left = ledger.remaining
    if not ledger.budget.exact:
        spent, share = _spent(ledger)
        bar = "█" * round(BAR * share) + "░" * (BAR - round(BAR * share))
        lines.append(f"Spent         {spent}   {bar} {share:.0%}")
    other = f"     (or ρ = {left.rho:.4g}, for methods with Gaussian noise only)" if left.rho and left.epsilon else ""
    lines.append(f"Left          {left if left.epsilon is None else f'ε = {short_amount(left.epsilon)}'}{other}")
    lines += [f"Raised        to {short_loss(to)} on {at[:10]}: {reason}" for at, reason, to in ledger.renewals]
    lines += [f"Part          {name}: {left} left" for name, left in ledger.analysts.items()]
    for name, value in ledger.declared.items():
        lines.append(f"Public        {name}: {f'{len(value)} values' if isinstance(value, dict) else value}")
    return lines


def _spent(ledger: Ledger) -> tuple[str, float]:
    from dpcausal.privacy.composition import caps_of
    from dpcausal.privacy.loss import RHO_UNITS
    from dpcausal.privacy.storage.entries import total_text

    entries, budget, left = ledger.entries(), ledger.budget, ledger.remaining
    text = total_text(budget, entries)
    if (not entries or entries[-1].totals.sums_open) and left.epsilon is not None and hasattr(budget, "epsilon"):
        return text, 1 - left.epsilon / budget.epsilon
    cap = caps_of(budget).rho
    return text, 1 - (left.rho or 0.0) * RHO_UNITS / float(cap) if cap else 1.0


def _spends(ledger: Ledger) -> list[str]:
    from dpcausal.privacy.loss import ApproxDP, parse_loss
    from dpcausal.result import short_loss

    rows = []
    for entry in ledger.entries():
        detail = json.loads(entry.detail)
        saved = "saved" if ledger.answer(entry.number) is not None else ""
        question = wrap(question_text(entry.task, detail), 41) or [""]
        loss = parse_loss(entry.loss)
        cost = f"{short_loss(loss)}, δ = {loss.delta:g}" if isinstance(loss, ApproxDP) else short_loss(loss)
        rows.append((str(entry.number), entry.at[:16].replace("T", " "), question, str(detail.get("method", "")),
                     cost, saved))  # fmt: skip
    if not rows:
        return ["Nothing was spent yet."]
    wide = max(9, *(len(row[4]) for row in rows))
    lines = [f"{'#':>3}  {'date (UTC)':16}  {'question':41}  {'method':17}  {'cost':{wide}}  result"]
    for number, at, question, method, cost, saved in rows:
        lines.append(f"{number:>3}  {at:16}  {question[0]:41}  {method:17}  {cost:{wide}}  {saved}".rstrip())
        lines += [f"{'':23}{more}" for more in question[1:]]
    return lines


def _integrity(ledger: Ledger) -> list[str]:
    verification = ledger.verify()
    entries = "1 entry" if verification.entries == 1 else f"{verification.entries} entries"
    state = f"ok: {entries}, hash chain intact." if verification.ok else "; ".join(verification.problems)
    return [f"Integrity     {state} This cannot detect a restored older copy;",
            "              compare the fingerprint with one that you recorded elsewhere.",
            f"Fingerprint   {ledger.head}"]  # fmt: skip


def question_text(task: str, detail: dict[str, Any]) -> str:
    """Return what a spend was for, in a few words.

    Examples
    --------
    >>> question_text("ci_test", {"x": ["x"], "y": ["y"], "given": ["z"], "method": "gcm"})
    'association of x and y, given z'
    """

    def named(*keys: str) -> list[str]:
        parts = [detail.get(key) for key in keys]
        listed = [part if isinstance(part, list) else [part] for part in parts if part]
        return [str(one) for part in listed for one in part]

    if "x" in detail and "y" in detail:
        text = f"association of {', '.join(named('x'))} and {', '.join(named('y'))}"
    elif "treatment" in detail and "outcome" in detail:
        text = f"effect of {detail['treatment']} on {detail['outcome']}"
    else:
        text = f"{task.replace('_', ' ')} of {', '.join(named('columns', 'by', 'values', 'targets'))}"
    for key, label in (("given", "given"), ("groups", "by"), ("adjust", "adjusted for"),
                       ("cluster", "by clusters of"), ("where", "where")):  # fmt: skip
        if named(key):
            text += f", {label} {' and '.join(named(key)) if key == 'where' else ', '.join(named(key))}"
    return text + (f" in {detail['table']}" if detail.get("table") else "")


@ledger_app.command("verify")
def ledger_verify(
    path: LedgerArgument,
    fingerprint: Annotated[str | None, typer.Option(help="Fingerprint noted earlier: refuses an older file.")] = None,
) -> None:
    """Check the hash chain, the sums and the budget of every entry."""
    with exit_codes(), _opened(path, fingerprint) as ledger:
        verification = ledger.verify()
        if not verification.ok:
            text = f"{name_of(ledger)}: {'; '.join(verification.problems)}"
            raise LedgerDamagedError(text, argument=path, rule="damaged")
        echo(f"ok: {name_of(ledger)}, {verification.entries} entries verified, fingerprint {verification.head}")
        if verification.incomplete:
            echo(f"warning: {verification.incomplete} bytes after the last line were left out: of a write that failed.")
        if fingerprint is not None and fingerprint.lower() != verification.head:
            echo("The noted fingerprint is that of an earlier line; the lines after it are newer.")
        echo(_witnessed(verification))
        if fingerprint is None:
            echo("Next: note the fingerprint elsewhere, and check against it later with --fingerprint")


@ledger_app.command("renew")
def ledger_renew(
    path: LedgerArgument,
    reason: Annotated[str, typer.Option(help="Why, for the record: never because of a result.")],
    epsilon: TotalOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    accept_large_epsilon: LargeOption = False,
) -> None:
    """Raise the budget by an amount, for example for a new year of data."""
    with exit_codes():
        from dpcausal.privacy.ledger import Ledger
        from dpcausal.privacy.loss import ApproxDP

        with Ledger.open(path) as ledger:
            if isinstance(ledger.budget, ApproxDP) and delta is None and rho is None:
                delta = 0
            ledger.renew(loss_from(epsilon, delta, rho), reason=reason, accept_large_epsilon=accept_large_epsilon)
            echo(f"Raised the budget of {name_of(ledger)} to {ledger.budget}, for its whole life.")
            echo(f"Left: {ledger.remaining}. Set the same budget in each study.toml of this ledger.")


@ledger_app.command("divide")
def ledger_divide(path: LedgerArgument, analyst: AnalystOption = None) -> None:
    """Give each analyst a part of the budget; later parts may only be lower, or added."""
    with exit_codes():
        from dpcausal.privacy.ledger import Ledger

        with Ledger.open(path) as ledger:
            ledger.divide(_parts(analyst))
            for name, left in ledger.analysts.items():
                echo(f"{name}: {left} left")


@ledger_app.command("backup")
def ledger_backup(path: LedgerArgument, copy: Annotated[Path, typer.Argument(help="A new file.")]) -> None:
    """Write a copy to a new file while others may go on spending."""
    with exit_codes(), _opened(path) as ledger:
        ledger.backup(copy)
        echo(f"Wrote {copy}, fingerprint {short_fingerprint(ledger.head)}")


@ledger_app.command("export")
def ledger_export(
    path: LedgerArgument,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print one line per entry, comma-separated.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print all entries for an auditor, as CSV or JSON."""
    with exit_codes(), _opened(path) as ledger:
        if as_csv == as_json:
            raise ParameterError("give --csv or --json", argument="csv", rule="format")
        if as_json:
            print_json(_whole(ledger))
            return
        import csv
        import io

        from dpcausal.privacy.loss import parse_loss

        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        amounts = ("epsilon", "delta", "rho")
        head = ["number", "at", "analyst", "task", "question", "method", "loss", *amounts, "result_saved", "hash"]
        writer.writerow(head)
        for entry in ledger.entries():
            detail, saved = json.loads(entry.detail), ledger.answer(entry.number) is not None
            texts = (detail.get("analyst", ""), entry.task, question_text(entry.task, detail), detail.get("method", ""))
            cells = (escaped(str(text)) for text in texts)
            numbers = (getattr(parse_loss(entry.loss), name, "") for name in amounts)
            writer.writerow([entry.number, entry.at, *cells, entry.loss, *numbers, saved, entry.hash])
        sys.stdout.write(table.getvalue())


def _witnessed(verification: Verification) -> str:
    if not verification.witnessed:
        place = "there is no place for one" if verification.witness is None else f"nothing is at {verification.witness}"
        return f"No witness on this computer ({place}): whether an older copy was restored is not known."
    if verification.witnessed == verification.lines:
        return f"The witness {verification.witness} recorded all {verification.lines} lines."
    return (
        f"The witness {verification.witness} recorded {verification.witnessed} of {verification.lines} lines: later "
        "ones could not be recorded, and whether more were cut off is not known."
    )
