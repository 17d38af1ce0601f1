"""What others check a ledger by: its file, read by the documented script, its export, and the head that was noted."""

import json
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.pld.common import DifferentialPrivacyParameters

from dpcausal import ZCDP, ApproxDP, Ledger, PureDP, Unit
from dpcausal.privacy.loss import RHO_UNITS, Loss
from dpcausal.privacy.storage.lines import MEMBERS
from tests.commands import command

FORMAT_PAGE = Path(__file__).resolve().parents[2] / "docs" / "understand" / "ledger-format.md"
SUMS: list[Loss] = [PureDP(0.1), PureDP(0.25), ApproxDP(0.2, 1e-9), PureDP(0.1), ApproxDP(0.35, 2e-9), PureDP(0.0007)]


def exported(path: Path, budget: Loss, losses: list[Loss]) -> list[dict[str, Any]]:
    """Spend the losses from a new ledger; return its export, line by line."""
    with Ledger.create(path, budget=budget) as ledger:
        for number, loss in enumerate(losses):
            detail = {"mechanism": "laplace", "columns": ["x", "é"], "blocks": number}
            ledger.charge(loss, task="direction", unit=Unit.ROW, detail=detail)
    shown = command("ledger", "show", path, "--jsonl")
    assert (shown.exit_code, shown.stderr) == (0, "")
    return [json.loads(line) for line in shown.stdout.splitlines()]


def amounts(text: str) -> tuple[str, list[Fraction]]:
    """Read a loss as an outsider would: its name, and exact amounts in brackets."""
    found = re.fullmatch(r"(PureDP|ApproxDP|ZCDP)\((.+)\)", text)
    assert found is not None
    return found[1], [Fraction(part) for part in found[2].split(", ")]


def test_exported_lines_say_what_was_spent_for_whom_and_their_plain_sums_are_the_totals(directory: Path) -> None:
    path = directory / "study.ledger"
    lines = exported(path, ApproxDP(5, 1e-6), SUMS)
    assert [line["number"] for line in lines] == list(range(1, len(SUMS) + 1))
    for number, line in enumerate(lines):
        assert (line["task"], line["unit"], line["relation"]) == ("direction", "row", "replace-one")
        assert line["detail"] == {"mechanism": "laplace", "columns": ["x", "é"], "blocks": number}
    assert amounts(lines[0]["loss"]) == ("PureDP", [Fraction(1, 10)])
    assert amounts(lines[4]["loss"]) == ("ApproxDP", [Fraction(35, 100), Fraction(2, 10**9)])
    spent = [amounts(line["loss"])[1] for line in lines]
    totals = lines[-1]["totals"]
    assert Fraction(totals["epsilon"], 10**9) == sum(parts[0] for parts in spent)
    assert Fraction(totals["delta"], 10**18) == sum(sum(parts[1:]) for parts in spent)
    assert Fraction(totals["rho"]) == sum(parts[0] ** 2 / 2 * RHO_UNITS for parts in spent)
    with Ledger.open(path) as ledger:
        assert ledger.entries()[-1].to_dict()["totals"] == totals


def test_dp_accounting_gets_the_ledgers_epsilon_and_delta_from_the_export(directory: Path) -> None:
    lines = exported(directory / "study.ledger", ApproxDP(5, 1e-6), SUMS)
    whole = None
    for line in lines:
        _, parts = amounts(line["loss"])
        worst = privacy_loss_distribution.from_privacy_parameters(
            DifferentialPrivacyParameters(*map(float, parts)), value_discretization_interval=1e-4
        )
        whole = worst if whole is None else whole.compose(worst)
    totals = lines[-1]["totals"]
    epsilon, delta = totals["epsilon"] / 1e9, totals["delta"] / 1e18
    assert whole.get_epsilon_for_delta(delta) == pytest.approx(epsilon, abs=1e-4 * len(lines))
    # Beyond that ε only the δ's are left: 1 − ∏(1 − δ), a billionth of itself below their sum.
    assert whole.get_delta_for_epsilon(epsilon + 1e-4 * len(lines)) == pytest.approx(delta, rel=1e-6)


def recount() -> Callable[[Path], tuple[list[dict[str, Any]], str, dict[str, list[Fraction]]]]:
    """Return the script of the page on the format: standard library alone, read from there."""
    page = FORMAT_PAGE.read_text(encoding="utf-8")
    (source,) = re.findall(r"^```python\n(import hashlib\n.+?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert len(source[source.index("def ") :].strip().splitlines()) <= 24
    imports = set(re.findall(r"^(?:import|from) (\w+)", source, flags=re.MULTILINE))
    assert imports <= set(sys.stdlib_module_names)
    names: dict[str, Any] = {}
    exec(source, names)
    return names["recount"]


def test_a_script_of_a_few_lines_redoes_chain_and_sums_from_the_file_alone(directory: Path) -> None:
    path = directory / "study.ledger"
    exported(path, ApproxDP(5, 1e-6), SUMS)
    with Ledger.open(path) as ledger:
        ledger.store(2, {"cause": "é", "margin": [0.1, None]})
        ledger.charge(PureDP(0.1), task="last", once={"targets": ["A"]})
        entries, head, totals = ledger.entries(), ledger.head, ledger.entries()[-1].totals
    records, found, sums = recount()(path)
    assert found == head
    assert [record["kind"] for record in records] == ["ledger", *["spend"] * len(SUMS), "answer", "spend"]
    spends = [record for record in records if record["kind"] == "spend"]
    told = [name for name in spends[0] if name not in ("kind", "nonce", "detail", "once")]
    for record, entry in zip(spends, entries, strict=True):
        assert [record[name] for name in told] == [getattr(entry, name) for name in told]
    assert sum(parts[0] for parts in sums.values()) == Fraction(totals.epsilon, 10**9)
    assert sums["ApproxDP"][1] == Fraction(totals.delta, 10**18)


def test_the_script_finds_every_changed_byte_and_leaves_out_a_torn_line(directory: Path) -> None:
    path, check = directory / "study.ledger", recount()
    exported(path, ApproxDP(5, 1e-6), SUMS[:2])
    content, whole = path.read_bytes(), check(path)
    for offset in range(len(content) - 1):
        path.write_bytes(content[:offset] + bytes([content[offset] ^ 1]) + content[offset + 1 :])
        with pytest.raises((SystemExit, ValueError)):
            check(path)
    path.write_bytes(content + b'{"kind":"spend","num')
    assert check(path) == whole


@pytest.mark.parametrize("kind", MEMBERS)
def test_the_page_on_the_format_names_every_member_of_every_line(kind: str) -> None:
    page = FORMAT_PAGE.read_text(encoding="utf-8")
    assert {f"`{name}`" for name in (kind, *MEMBERS[kind])} <= set(re.findall("`[^`]*`", page))


@pytest.mark.parametrize(
    ("losses", "total"),
    [([ApproxDP(1, 1e-6), PureDP(1)], "ε = 2, δ = 1e-06"), ([ApproxDP(1, 1e-6)], "ε = 1, δ = 1e-06"),
     ([PureDP(0.5), PureDP(0.25)], "ε = 0.75"), ([ZCDP(0.01)] * 5, "ρ = 0.05"), ([], "ε = 0")],
)  # fmt: skip
def test_the_sum_that_is_shown_has_its_delta_and_is_in_rho_where_epsilon_adds_up_no_more(
    losses: list[Loss], total: str, directory: Path
) -> None:
    path = directory / "study.ledger"
    exported(path, ApproxDP(4, 1e-5), losses)
    (line,) = [one for one in command("ledger", "show", path).stdout.splitlines() if "░" in one]
    assert re.split(r"  +", line)[1] == total
    whole = command("ledger", "show", path).stdout
    assert whole.count("δ = 1e-06") == sum(isinstance(loss, ApproxDP) for loss in losses) + ("δ" in total)


def test_a_fingerprint_of_an_earlier_line_is_told_from_that_of_the_last(directory: Path) -> None:
    path = directory / "study.ledger"
    lines = exported(path, PureDP(1), [PureDP(0.1)] * 2)
    earlier, last = (command("ledger", "verify", path, "--fingerprint", line["hash"]) for line in lines)
    assert (earlier.exit_code, last.exit_code) == (0, 0)
    assert len(earlier.stdout.splitlines()) == len(last.stdout.splitlines()) + 1
