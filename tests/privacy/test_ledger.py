"""The ledger's promises to its callers: budgets, refusals, allotments, copies."""

import copy
import json
import pickle
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from dpcausal import ZCDP, ApproxDP, Ledger, NoPrivacy, PureDP, Relation, Unit, errors, simulated_noise
from dpcausal.errors import BudgetExceededError, FenceError, LedgerError, LossError, ParameterError
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.storage import lines as ledger_lines
from tests.privacy.conftest import event


@pytest.fixture(params=["memory", "file"])
def make(request: pytest.FixtureRequest, directory: Path):
    """A maker of fresh ledgers, of both kinds."""

    def maker(budget: Loss, **declared: str) -> Ledger:
        if request.param == "memory":
            return Ledger.in_memory(budget, **declared)
        return Ledger.create(directory / "study.ledger", budget=budget, **declared)

    return maker


def test_a_refused_spend_leaves_the_ledger_alone(make) -> None:
    ledger = make(PureDP(1))
    ledger.charge(PureDP(0.75), task="first")
    before = ledger.head, ledger.entries(), ledger.remaining
    with pytest.raises(BudgetExceededError) as refused:
        ledger.charge(PureDP(0.5), task="second")
    assert (ledger.head, ledger.entries(), ledger.remaining) == before
    assert refused.value.requested == "ε = 0.5"
    assert "0.75" in refused.value.spent
    assert "0.25" in refused.value.left
    assert ledger.charge(PureDP(0.25), task="third").number == 2


def test_the_spend_is_on_record_before_the_allotment_exists(make) -> None:
    ledger, detail = make(ZCDP(1), unit="state"), {"columns": ["x", "y"], "blocks": 8}
    allotment = ledger.charge(ZCDP(0.25), task="direction", unit=Unit.DONOR, unit_column="state", detail=detail)
    (entry,) = ledger.entries()
    assert entry.hash == allotment.ledger_head == ledger.head
    assert (entry.number, entry.task, entry.loss) == (1, "direction", "ZCDP(0.25)")
    assert (entry.unit, entry.column, entry.relation, entry.caveats) == ("donor", "state", "replace-one", "")
    assert json.loads(entry.detail) == {"blocks": 8, "columns": ["x", "y"]}
    assert entry.cost.rho == 500_000_000_000_000_000  # of 5e-19 each
    assert entry.cost.epsilon is None
    assert (allotment.unit, allotment.relation, allotment.private) == (Unit.DONOR, Relation.REPLACE_ONE, True)
    shown = json.loads(json.dumps(entry.to_dict()))
    assert (shown["detail"], shown["once"]) == ({"blocks": 8, "columns": ["x", "y"]}, {})


@pytest.mark.parametrize("budget", [NoPrivacy(), 1.0, "PureDP(1)", None, PureDP(10**7)])
def test_only_an_amount_is_a_budget(budget: object, directory: Path) -> None:
    with pytest.raises(LossError):
        Ledger.in_memory(budget)  # type: ignore[arg-type]
    with pytest.raises(LossError):
        Ledger.create(directory / "a.ledger", budget=budget)  # type: ignore[arg-type]
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"loss": 0.5}, {"loss": NoPrivacy()}, {"loss": None}, {"task": ""}, {"task": "two\nlines"}, {"task": "x" * 201},
        {"task": 5}, {"unit": "row"}, {"relation": "replace-one"}, {"zcdp": PureDP(1)},
        {"loss": ZCDP(0.1), "zcdp": ZCDP(0.1)}, {"detail": {"value": float("nan")}}, {"detail": {"value": object()}},
        {"detail": {1: "one"}}, {"detail": {"value": "x" * 70_000}}, {"detail": [1]}, {"once": {"value": float("inf")}},
        {"once": [1]}, {"loss": PureDP(Fraction(1, 3**400))},
    ],
)  # fmt: skip
def test_malformed_arguments_are_refused_before_anything_is_spent(make, arguments: dict[str, object]) -> None:
    ledger = make(PureDP(1))
    with pytest.raises(ParameterError):
        ledger.charge(**{"loss": PureDP(0.1), "task": "t", **arguments})  # type: ignore[arg-type]
    assert ledger.entries() == []


def test_no_privacy_is_taken_only_by_a_ledger_without_privacy(make) -> None:
    with pytest.raises(LossError, match="without_privacy"):
        make(PureDP(1)).charge(NoPrivacy(), task="exact")
    free = Ledger.without_privacy()
    with pytest.raises(LossError, match="NoPrivacy"):
        free.charge(PureDP(0.1), task="pure")
    allotment = free.charge(NoPrivacy(), task="exact")
    assert not free.private
    assert not free.durable
    assert not allotment.private
    assert "exact" in allotment.caveats[0]
    allotment.spend(event(NoPrivacy()))
    with pytest.raises(FenceError):
        allotment.spend(event(PureDP(1)))
    assert free.verify().ok
    assert "no limit" in repr(free)


def test_one_ledger_counts_under_one_relation(make) -> None:
    ledger = make(PureDP(1))
    ledger.charge(PureDP(0.1), task="first")
    with pytest.raises(LedgerError, match="replace-one"):
        ledger.charge(PureDP(0.1), task="second", relation=Relation.ADD_OR_REMOVE_ONE)
    assert len(ledger.entries()) == 1


# Declarations that stand once for a ledger, and answers beside their spends.


def test_what_is_declared_once_binds_every_later_spend(make) -> None:
    """A panel whose target may change would publish each donor in turn: its set of targets is declared once."""
    ledger = make(PureDP(1))
    ledger.charge(PureDP(0.125), task="before")
    first = ledger.charge(PureDP(0.125), task="first", once={"targets": ["A", "B"], "start": 1989})
    ledger.charge(PureDP(0.125), task="the same", once={"targets": ["A", "B"]})
    ledger.charge(PureDP(0.125), task="more", once={"other targets": ["C"], "start": 1989})
    before = ledger.head, ledger.remaining
    for once in ({"targets": ["C"]}, {"targets": ["B", "A"]}, {"new": 1, "start": 1990}, {"start": 1989.0}):
        with pytest.raises(LedgerError, match=r"'(targets|start)' was declared.*nothing was spent") as refused:
            ledger.charge(PureDP(0.125), task="another", once=once)
        assert refused.value.rule == "declared-once"
    assert (ledger.head, ledger.remaining) == before
    assert json.loads(ledger.entries()[first.number - 1].once) == {"start": 1989, "targets": ["A", "B"]}
    assert ledger.entries()[0].to_dict()["once"] == {}
    if ledger.durable:
        again = Ledger.open(ledger.path)
        with pytest.raises(LedgerError, match="'targets' was declared") as refused:
            again.charge(PureDP(0.125), task="another", once={"targets": ["C"]})
        assert refused.value.rule == "declared-once"
        again.charge(PureDP(0.125), task="the same", once={"targets": ["A", "B"]})


def test_a_refused_spend_declares_nothing(make) -> None:
    ledger = make(PureDP(1))
    with pytest.raises(BudgetExceededError):
        ledger.charge(PureDP(2), task="too much", once={"targets": ["A"]})
    ledger.charge(PureDP(1), task="t", once={"targets": ["B"]})


def test_an_answer_is_kept_beside_its_spend_and_costs_nothing(make) -> None:
    ledger = make(PureDP(1))
    numbers = [ledger.charge(PureDP(0.25), task="t").number for _ in range(2)]
    head, left = ledger.head, ledger.remaining
    answer = {"cause": "x", "margin": -0.1, "scores": [None, 1e-300, "é\n\u2028"], "more": {"b": True, "a": {}}}
    ledger.store(numbers[0], answer)
    assert (ledger.answer(numbers[0]), ledger.answer(numbers[1]), ledger.answer(7)) == (answer, None, None)
    assert (ledger.remaining, len(ledger.entries())) == (left, 2)
    assert ledger.head != head
    assert ledger.charge(PureDP(0.25), task="t").number == 3
    assert (ledger.verify().ok, ledger.verify().entries) == (True, 3)
    ledger.answer(numbers[0])["more"]["a"]["c"] = 1  # a copy
    assert ledger.answer(numbers[0]) == answer
    if ledger.durable:
        assert Ledger.open(ledger.path, head).answer(numbers[0]) == answer


@pytest.mark.parametrize("number", [0, -1, 3, 1])
def test_an_answer_is_kept_once_and_beside_a_spend_that_is_there(make, number: int) -> None:
    ledger = make(PureDP(1))
    for _ in range(2):
        ledger.charge(PureDP(0.25), task="t")
    ledger.store(1, {"margin": 1})
    head = ledger.head
    with pytest.raises(LedgerError, match="kept once, beside a spend"):
        ledger.store(number, {"margin": 2})
    for wrong in (True, 2.0, "2", None):
        with pytest.raises(ParameterError):
            ledger.store(wrong, {"margin": 2})  # type: ignore[arg-type]
    for unfit in ([1], {1: 2}, {"a": float("nan")}, {"a": object()}):
        with pytest.raises(ParameterError):
            ledger.store(2, unfit)  # type: ignore[arg-type]
    assert (ledger.head, ledger.answer(1), ledger.answer(2)) == (head, {"margin": 1}, None)


def test_an_answer_of_any_length_is_kept(directory: Path) -> None:
    """Seen to fail: a table of a million cells was paid for, and its answer was too long to be kept."""
    ledger = Ledger.create(directory / "l", budget=PureDP(1))
    ledger.charge(PureDP(0.5), task="t", key="q")
    ledger.store(1, {"a": "x" * (2**24 + 1)})
    ledger.charge(PureDP(0.5), task="t")
    again = Ledger.open(directory / "l")
    assert again.verify() and len(again.cached("q")[1]["a"]) == 2**24 + 1  # type: ignore[index]


def test_a_ledger_is_opened_or_made_with_one_budget(directory: Path) -> None:
    path = directory / "study.ledger"
    with Ledger.open_or_create(path, budget=PureDP(1)) as ledger:
        ledger.charge(PureDP(0.25), task="t")
    assert Ledger.open_or_create(str(path), budget=PureDP(1.0)).remaining.epsilon == 0.75
    for budget in (PureDP(2), ZCDP(1), ApproxDP(1, 0), ApproxDP(1, 1e-6)):
        with pytest.raises(LedgerError, match=r"study\.ledger: its budget is ε = 1, not"):
            Ledger.open_or_create(path, budget=budget)
    with pytest.raises(LossError):
        Ledger.open_or_create(path, budget=1.0)  # type: ignore[arg-type]
    with pytest.raises(LedgerError, match="no such file or folder"):
        Ledger.open_or_create(directory / "missing" / "study.ledger", budget=PureDP(1))
    path.write_text("epsilon 1")
    with pytest.raises(errors.LedgerDamagedError):
        Ledger.open_or_create(path, budget=PureDP(1))


def test_a_ledger_in_memory_stamps_simulated_and_unproven_calls_as_not_private() -> None:
    ledger = Ledger.in_memory(PureDP(1))
    with simulated_noise(7):
        simulated = ledger.charge(PureDP(0.1), task="study")
        simulated.spend(event(PureDP(0.1)))
    unproven = ledger.charge(PureDP(0.1), task="published", unproven=True)
    sound = ledger.charge(PureDP(0.1), task="sound")
    assert [a.private for a in (simulated, unproven, sound)] == [False, False, True]
    assert [bool(entry.caveats) for entry in ledger.entries()] == [True, True, False]
    assert ledger.verify().ok


def test_an_entry_names_its_event_and_its_exact_amounts() -> None:
    ledger = Ledger.in_memory(ApproxDP(3, 1e-5))
    ledger.charge(PureDP(0.1), task="a")
    ledger.charge(ApproxDP(0.35, 2e-9), task="b", zcdp=ZCDP(0.002))
    ledger.charge(ZCDP(0.003), task="c")
    assert [entry.to_dict()["event"] for entry in ledger.entries()] == [
        {"kind": "PureDP", "epsilon": "0.1"},
        {"kind": "ApproxDP", "epsilon": "0.35", "delta": "0.000000002", "rho": "0.002"},
        {"kind": "ZCDP", "rho": "0.003"},
    ]


# Objects.


def test_a_copy_is_the_same_object_and_pickling_is_refused(make) -> None:
    ledger = make(PureDP(1))
    for thing in (ledger, ledger.charge(PureDP(0.5), task="t")):
        assert copy.copy(thing) is thing
        assert copy.deepcopy([thing])[0] is thing
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(errors.HiddenAnswerError):
                pickle.dumps(thing, protocol)


def test_a_ledger_shows_its_file_budget_and_what_is_left(directory: Path) -> None:
    ledger = Ledger.create(directory / "study.ledger", budget=PureDP(1))
    ledger.charge(PureDP(0.25), task="t")
    assert repr(ledger) == "Ledger('study.ledger', budget=PureDP(1), remaining: ε = 0.75)"
    ledger.close()
    assert "closed" in repr(ledger)
    (directory / "study.ledger").unlink()
    assert str(directory) not in repr(ledger)


def test_a_closed_ledger_takes_no_calls(make) -> None:
    with make(PureDP(1)) as ledger:
        allotment = ledger.charge(PureDP(0.5), task="t")
    for call in (ledger.entries, ledger.verify, lambda: ledger.head, lambda: ledger.charge(PureDP(0.1), task="t")):
        with pytest.raises(LedgerError, match="closed"):
            call()
    allotment.spend(event(PureDP(0.5)))  # what was granted stays granted


def test_the_clock_decides_nothing(make, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [datetime(2030, 1, 1), datetime(1970, 1, 1), datetime(2030, 1, 1), datetime.max, datetime.min]

    class Clock(datetime):
        """A clock that jumps back and forth between any two readings."""

        @classmethod
        def now(cls, tz: object = None) -> datetime:
            moments.append(moments.pop(0))
            return moments[0].replace(tzinfo=UTC)

    monkeypatch.setattr(ledger_lines, "datetime", Clock)
    ledger = make(PureDP(0.5))
    for count in range(1, 6):
        ledger.charge(PureDP(0.1), task="t")
        if ledger.durable:
            ledger = Ledger.open(ledger.path, ledger.head)
        assert len(ledger.entries()) == count
    with pytest.raises(BudgetExceededError):
        ledger.charge(PureDP(1e-9), task="t")
    assert ledger.verify().ok
    years = [entry.at[:4] for entry in ledger.entries()]
    assert sorted(years) == ["0001", "1970", "2030", "2030", "9999"]
    assert years != sorted(years)


def test_amounts_without_a_finite_decimal_are_kept_exactly(make) -> None:
    ledger = make(PureDP(1))
    ledger.charge(PureDP(0.333).part(Fraction(1, 3)), task="t")
    assert ledger.entries()[0].loss == "PureDP(0.111)"
    ledger.charge(PureDP(Fraction(1, 3)), task="t")
    assert ledger.entries()[-1].loss == "PureDP(1/3)"
    assert ledger.entries()[-1].cost.epsilon == Fraction(10**9, 3)
    assert ledger.verify().ok
