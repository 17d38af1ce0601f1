"""What operators do with a ledger: parts of analysts, renewals, backups, exports, the log."""

import csv
import io
import json
import logging
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpcausal import ZCDP, ApproxDP, Ledger, PureDP
from dpcausal.errors import BudgetExceededError, LedgerError, LossError, ParameterError
from dpcausal.privacy.composition import Totals, admit, caps_of, cost_of
from dpcausal.privacy.loss import Loss
from tests.commands import command

STEP = PureDP(0.125)


def spend(ledger: Ledger, loss: Loss, who: str = "") -> None:
    with pytest.MonkeyPatch.context() as here:
        here.setenv("DPCAUSAL_ANALYST", who)
        ledger.charge(loss, task="t")


@pytest.mark.proves("renewal")
@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6), ApproxDP(0.3, 1e-9)])
@pytest.mark.parametrize("share", [Fraction(1, 10**9), Fraction(1), Fraction(7)])
def test_the_caps_of_a_raised_budget_hold_those_of_the_old_one(budget: Any, share: Fraction) -> None:
    old, new = caps_of(budget), caps_of(budget + budget.part(share))
    for name, cap in vars(old).items():
        assert cap is None or cap <= getattr(new, name)


@pytest.mark.proves("renewal")
@pytest.mark.parametrize(("more", "more_is_left"), [(ApproxDP(1, 0), False), (ApproxDP(1, 1e-6), True)])
def test_a_first_spend_of_the_whole_delta_counts_among_others_after_a_renewal(more: Loss, more_is_left: bool) -> None:
    ledger = Ledger.in_memory(ApproxDP(1, 1e-6))
    ledger.charge(ApproxDP(1, 1e-6), task="all of it")
    ledger.renew(more, reason="a new year")
    assert (ledger.remaining.epsilon == 1) == more_is_left
    totals = admit(ledger.budget, Totals(), cost_of(ApproxDP(1, 1e-6)))  # as if the budget had been that from the start
    assert totals is not None
    assert (admit(ledger.budget, totals, cost_of(PureDP(1))) is not None) == more_is_left


def test_a_renewal_raises_the_budget_in_every_process_and_is_recorded(path: Path) -> None:
    with Ledger.open(path) as ledger, Ledger.open(path) as other:
        ledger.charge(PureDP(0.5), task="the rest")
        with pytest.raises(BudgetExceededError):
            other.charge(STEP, task="t")
        ledger.renew(PureDP(0.25), reason="data of 2027")
        assert other.remaining.epsilon == 0.25 and other.budget == ledger.budget == PureDP(1.25)
        other.charge(PureDP(0.25), task="of the new year")
        with pytest.raises(BudgetExceededError):
            ledger.charge(STEP, task="t")
        assert [(reason, to) for _, reason, to in ledger.renewals] == [("data of 2027", PureDP(1.25))]
    assert Ledger.open(path).verify().ok
    assert "data of 2027" in command("ledger", "show", path).stdout


@pytest.mark.parametrize("more", [ZCDP(1), ApproxDP(1, 1e-6), 1.0, None])
def test_a_renewal_is_an_amount_of_the_budgets_kind(path: Path, more: Any) -> None:
    with Ledger.open(path) as ledger, pytest.raises(LossError):
        ledger.renew(more, reason="r")
    with Ledger.open(path) as ledger, pytest.raises(ParameterError):
        ledger.renew(PureDP(1), reason="")


@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, 1e-6), ZCDP(1)])
def test_each_analyst_spends_a_part_and_all_together_the_budget(directory: Path, budget: Any) -> None:
    path = directory / "parts.ledger"
    tenth = ZCDP(0.1) if isinstance(budget, ZCDP) else PureDP(0.1)
    with Ledger.create(path, budget=budget) as ledger:
        spend(ledger, tenth + tenth)  # before the parts: it counts for the whole only
        ledger.divide({"anna": 0.3, "ben": 0.6})
        for _ in range(3):
            spend(ledger, tenth, "anna")
        before = ledger.head
        with pytest.raises(BudgetExceededError, match="anna"):
            spend(ledger, tenth, "anna")
        with pytest.raises(LedgerError, match="no part"):
            spend(ledger, tenth, "carla")
        assert ledger.head == before
        for _ in range(5):
            spend(ledger, tenth, "ben")
        with pytest.raises(BudgetExceededError):
            spend(ledger, tenth, "ben")
        analysts = [json.loads(entry.detail).get("analyst") for entry in ledger.entries()]
    assert analysts == [None, *["anna"] * 3, *["ben"] * 5]
    assert Ledger.open(path).parts["anna"] == budget.part(Fraction(3, 10))


def test_parts_may_be_lowered_and_raised_only_after_a_renewal() -> None:
    ledger = Ledger.in_memory(PureDP(1))
    ledger.divide({"anna": 0.5, "ben": 0.5})
    for parts in ({"anna": 0.6, "ben": 0.4}, {"anna": 0.5}, {"anna": 0.5, "ben": 0.5, "carla": 0.1}):
        with pytest.raises(LedgerError):
            ledger.divide(parts)
    ledger.divide({"anna": 0.2, "ben": 0.5, "carla": 0.3})
    ledger.renew(PureDP(1), reason="a new year")
    ledger.divide({"anna": Fraction(1, 3), "ben": 1, "carla": 0.1})
    assert ledger.parts["anna"] == PureDP(Fraction(1, 3))
    with pytest.raises(LedgerError):
        ledger.divide({"anna": 1, "ben": 1, "carla": 0.1})


def test_the_user_of_the_system_is_the_analyst_where_nobody_is_named(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DPCAUSAL_ANALYST", raising=False)
    monkeypatch.setenv("LOGNAME", "dora")
    assert command("ledger", "create", directory / "l", "--epsilon", "1", "--analyst", "dora=1/3").exit_code == 0
    ledger = Ledger.open(directory / "l")
    ledger.charge(PureDP(Fraction(1, 3)), task="t")
    with pytest.raises(BudgetExceededError):
        ledger.charge(STEP, task="t")
    assert "Part          dora: ε = 0 left" in command("ledger", "show", directory / "l").stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("renew", "--epsilon", "0.5", "--reason", "a year"), 0),
        (("renew", "--epsilon", "0.5", "--reason", ""), 2),
        (("renew", "--epsilon", "50", "--reason", "r"), 2),
        (("renew", "--rho", "0.5", "--reason", "r"), 2),
        (("divide", "--analyst", "anna=0.5", "--analyst", "ben=0.5"), 0),
        (("divide", "--analyst", "anna=2"), 2),
        (("divide", "--analyst", "anna"), 2),
        (("divide", "--analyst", "=1"), 2),
        (("divide",), 2),
        (("export",), 2),
        (("export", "--csv", "--json"), 2),
    ],
)
def test_the_commands_of_operators_end_with_their_codes(path: Path, words: tuple[str, ...], code: int) -> None:
    before = path.read_bytes()
    assert command("ledger", words[0], path, *words[1:]).exit_code == code
    assert (path.read_bytes() == before) == (code != 0)


def test_a_renewal_of_an_approximate_budget_may_leave_delta_as_it_is(directory: Path) -> None:
    Ledger.create(directory / "l", budget=ApproxDP(1, 1e-6)).close()
    assert command("ledger", "renew", directory / "l", "--epsilon", "1", "--reason", "r").exit_code == 0
    assert Ledger.open(directory / "l").budget == ApproxDP(2, 1e-6)


def test_a_backup_is_a_whole_ledger_and_replaces_nothing(path: Path, directory: Path) -> None:
    copy = directory / "backup.ledger"
    torn = path.read_bytes() + b'{"kind":"spe'
    path.write_bytes(torn)
    assert command("ledger", "backup", path, copy).exit_code == 0
    assert torn.startswith(copy.read_bytes()) and Ledger.open(copy).verify().incomplete == 0
    assert command("ledger", "backup", path, copy).exit_code == 2
    os.replace(copy, path)
    assert Ledger.open(path).charge(STEP, task="after the restore").number == 5


def test_an_export_holds_every_entry(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.charge(STEP, task="ci_test", detail={"x": 'a,"b"\n', "y": "=1", "given": ["c"], "method": "gcm"})
        entries = ledger.entries()
    rows = list(csv.DictReader(io.StringIO(command("ledger", "export", path, "--csv").stdout)))
    assert [row["hash"] for row in rows] == [entry.hash for entry in entries]
    assert [row["result_saved"] for row in rows] == ["False", "True", "False", "False", "False"]
    assert [(row["epsilon"], row["delta"], row["rho"]) for row in rows] == [("0.125", "0.0", "")] * 5
    whole = json.loads(command("ledger", "export", path, "--json").stdout)
    assert [entry["loss"] for entry in whole["entries"]] == ["PureDP(0.125)"] * 5 and whole["renewals"] == []


def test_each_spend_and_each_refusal_is_a_line_of_the_log(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(path) as ledger, caplog.at_level(logging.INFO, "dpcausal"):
        spend(ledger, STEP, "anna")
        with pytest.raises(BudgetExceededError):
            ledger.charge(PureDP(0.5), task="too much")
    (spent, refused) = caplog.records
    assert (spent.levelname, spent.analyst, spent.number, spent.left) == ("INFO", "anna", 5, "ε = 0.375")  # type: ignore[attr-defined]
    assert refused.levelname == "WARNING" and "not enough budget" in refused.getMessage()


def test_the_command_writes_its_log_as_json_on_request(
    directory: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "d.csv").write_text("a,b\n" + "0,1\n1,0\n" * 200)
    (directory / "s.toml").write_text("[a]\nlevels = [0, 1]\n[b]\nlevels = [0, 1]\n")
    question = ["ci-test", directory / "d.csv", "a", "b", "--schema", directory / "s.toml", "--ledger", path]
    own = logging.getLogger("dpcausal")
    handlers, level = own.handlers, own.level
    try:
        monkeypatch.setenv("DPCAUSAL_LOG", "json")
        lines = [command(*question, "--epsilon", epsilon).stderr.splitlines()[0] for epsilon in (0.125, 0.5)]
    finally:
        own.handlers, level = handlers, own.setLevel(level)  # type: ignore[assignment]
    spent, refused = map(json.loads, lines)
    assert (spent["event"], spent["task"], spent["number"], spent["cost"]) == ("spend", "ci_test", 5, "ε = 0.125")
    assert (refused["event"], refused["level"]) == ("refusal", "WARNING")
