"""The ledger's promises to its callers: budgets, refusals, allotments, copies."""

from __future__ import annotations

import copy
import json
import pickle
import sys
import threading
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from dpcausal.errors import (
    BudgetExceededError,
    FenceError,
    HiddenAnswerError,
    LedgerError,
    LossError,
    ParameterError,
    UnprovenError,
)
from dpcausal.privacy import ledger as ledger_module
from dpcausal.privacy.events import Event
from dpcausal.privacy.ledger import Allotment, Ledger
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, PureDP, largest_rho
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.noise import simulated_noise


def event(loss: Loss, zcdp: ZCDP | None = None) -> Event:
    return Event("laplace", "step", loss, 1.0, "l1", 1.0, "kendall-tau", zcdp)


@pytest.fixture(params=["memory", "file"])
def make(request: pytest.FixtureRequest, directory: Path):
    """A maker of fresh ledgers, of both kinds."""

    def maker(budget: Loss) -> Ledger:
        if request.param == "memory":
            return Ledger.in_memory(budget)
        return Ledger.create(directory / "study.ledger", budget=budget)

    return maker


def test_three_hundred_thousandths_fill_a_budget_of_three_tenths_exactly() -> None:
    ledger = Ledger.in_memory(PureDP(0.3))
    for _ in range(300):
        ledger.allot(PureDP(0.001), task="step")
    assert ledger.remaining.epsilon == 0
    with pytest.raises(BudgetExceededError):
        ledger.allot(PureDP(0.001), task="step")
    with pytest.raises(BudgetExceededError):
        ledger.allot(PureDP(1e-9), task="step")
    assert ledger.verify().entries == 300


def test_a_refused_spend_leaves_the_ledger_alone(make) -> None:
    ledger = make(PureDP(1))
    ledger.allot(PureDP(0.75), task="first")
    before = ledger.head, ledger.entries(), ledger.remaining
    with pytest.raises(BudgetExceededError) as refused:
        ledger.allot(PureDP(0.5), task="second")
    assert (ledger.head, ledger.entries(), ledger.remaining) == before
    assert refused.value.asked == "PureDP(0.5)"
    assert "0.75" in refused.value.spent
    assert "0.25" in refused.value.left
    assert ledger.allot(PureDP(0.25), task="third").number == 2


def test_the_spend_is_on_record_before_the_allotment_exists(make) -> None:
    ledger = make(ZCDP(1))
    allotment = ledger.allot(ZCDP(0.25), task="direction", unit=Unit.DONOR, detail={"columns": ["x", "y"], "blocks": 8})
    (entry,) = ledger.entries()
    assert entry.hash == allotment.ledger_head == ledger.head
    assert (entry.number, entry.task, entry.loss) == (1, "direction", "ZCDP(0.25)")
    assert (entry.unit, entry.relation, entry.caveats) == ("donor", "replace-one", "")
    assert json.loads(entry.detail) == {"blocks": 8, "columns": ["x", "y"]}
    assert entry.cost.rho == 250_000_000
    assert entry.cost.epsilon is None
    assert (allotment.unit, allotment.relation, allotment.private) == (Unit.DONOR, Relation.REPLACE_ONE, True)
    assert json.loads(json.dumps(entry.to_dict()))["detail"] == {"blocks": 8, "columns": ["x", "y"]}


def test_an_exception_after_the_spend_refunds_nothing(make) -> None:
    ledger = make(PureDP(1))
    with pytest.raises(ZeroDivisionError):
        ledger.allot(PureDP(0.5), task="fails")
        raise ZeroDivisionError
    assert ledger.remaining.epsilon == 0.5


def test_an_approximate_budget_admits_what_either_filter_admits(make) -> None:
    ledger = make(ApproxDP(1, 1e-6))
    rho = Fraction(5, 10**4)
    for _ in range(20):
        ledger.allot(ZCDP(rho), task="gaussian")
    assert ledger.verify().ok
    # Twenty of them: far less than 1 in zCDP (largest rho for delta/4), though they have no sum of epsilons at all.
    assert 20 * rho < largest_rho(Fraction(1), Fraction(1, 4 * 10**6))
    with pytest.raises(BudgetExceededError):
        ledger.allot(PureDP(1), task="too much beside them")


def test_one_spend_of_a_whole_approximate_budget_closes_the_ledger(make) -> None:
    ledger = make(ApproxDP(1, 1e-6))
    ledger.allot(ApproxDP(1, 1e-6), task="all at once")
    with pytest.raises(BudgetExceededError):
        ledger.allot(PureDP(1e-9), task="more")
    assert ledger.verify().ok


def test_a_budget_of_another_kind_is_refused_with_its_reason(make) -> None:
    with pytest.raises(BudgetExceededError, match="pure losses only"):
        make(PureDP(1)).allot(ZCDP(0.01), task="gaussian")


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
        {"loss": 0.5},
        {"loss": NoPrivacy()},
        {"loss": None},
        {"task": ""},
        {"task": "two\nlines"},
        {"task": "x" * 201},
        {"task": 5},
        {"unit": "row"},
        {"relation": "replace-one"},
        {"zcdp": PureDP(1)},
        {"loss": ZCDP(0.1), "zcdp": ZCDP(0.1)},
        {"detail": {"value": float("nan")}},
        {"detail": {"value": object()}},
        {"detail": {1: "one"}},
        {"detail": {"value": "x" * 70_000}},
        {"detail": [1]},
        {"loss": PureDP(Fraction(1, 3**400))},
    ],
)
def test_malformed_arguments_are_refused_before_anything_is_spent(make, arguments: dict[str, object]) -> None:
    ledger = make(PureDP(1))
    with pytest.raises(ParameterError):
        ledger.allot(**{"loss": PureDP(0.1), "task": "t", **arguments})  # type: ignore[arg-type]
    assert ledger.entries() == []


def test_no_privacy_is_taken_only_by_a_ledger_without_privacy(make) -> None:
    with pytest.raises(LossError, match="without_privacy"):
        make(PureDP(1)).allot(NoPrivacy(), task="exact")
    free = Ledger.without_privacy()
    with pytest.raises(LossError, match="NoPrivacy"):
        free.allot(PureDP(0.1), task="pure")
    allotment = free.allot(NoPrivacy(), task="exact")
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
    ledger.allot(PureDP(0.1), task="first")
    with pytest.raises(LedgerError, match="replace-one"):
        ledger.allot(PureDP(0.1), task="second", relation=Relation.ADD_OR_REMOVE_ONE)
    assert len(ledger.entries()) == 1


def test_a_ledger_file_refuses_simulated_noise_and_unproven_calls(directory: Path) -> None:
    ledger = Ledger.create(directory / "study.ledger", budget=PureDP(1))
    with simulated_noise(7), pytest.raises(LedgerError, match="simulated"):
        ledger.allot(PureDP(0.1), task="study")
    with pytest.raises(UnprovenError):
        ledger.allot(PureDP(0.1), task="published", unproven=True)
    assert ledger.entries() == []


def test_a_ledger_in_memory_stamps_simulated_and_unproven_calls_as_not_private() -> None:
    ledger = Ledger.in_memory(PureDP(1))
    with simulated_noise(7):
        simulated = ledger.allot(PureDP(0.1), task="study")
        simulated.spend(event(PureDP(0.1)))
    unproven = ledger.allot(PureDP(0.1), task="published", unproven=True)
    sound = ledger.allot(PureDP(0.1), task="sound")
    assert [a.private for a in (simulated, unproven, sound)] == [False, False, True]
    assert [bool(entry.caveats) for entry in ledger.entries()] == [True, True, False]
    assert ledger.verify().ok


def test_noise_is_not_simulated_under_an_allotment_that_was_granted_as_private() -> None:
    allotment = Ledger.in_memory(PureDP(1)).allot(PureDP(0.5), task="t")
    with simulated_noise(7), pytest.raises(FenceError, match="simulated"):
        allotment.spend(event(PureDP(0.5)))
    assert allotment.events == ()


# Allotments: what the releases inside may add up to.


def granted(loss: Loss, zcdp: ZCDP | None = None) -> Allotment:
    budget: Loss = ZCDP(100) if isinstance(loss, ZCDP) else ApproxDP(100, 0.5)
    return Ledger.in_memory(budget).allot(loss, task="t", zcdp=zcdp)


@pytest.mark.parametrize("parts", [1, 3, 7, 300])
def test_equal_parts_of_an_allotment_use_it_up_exactly(parts: int) -> None:
    allotment = granted(PureDP(0.3))
    for _ in range(parts):
        allotment.spend(event(PureDP(0.3).divided(parts)))
    with pytest.raises(FenceError):
        allotment.spend(event(PureDP(1e-9)))
    assert len(allotment.events) == parts


@pytest.mark.parametrize(
    ("loss", "zcdp", "fits", "too_much"),
    [
        (PureDP(1), None, [PureDP(0.5), PureDP(0.5)], PureDP(1e-9)),
        (PureDP(1), None, [], ZCDP(1e-9)),
        (PureDP(1), None, [], ApproxDP(0.5, 1e-9)),
        (PureDP(1), None, [], NoPrivacy()),
        (ZCDP(0.5), None, [PureDP(0.6), ZCDP(0.32)], ZCDP(1e-9)),
        (ZCDP(0.5), None, [PureDP(1)], PureDP(1e-4)),
        (ZCDP(0.5), None, [], ApproxDP(0.5, 1e-9)),
        (ApproxDP(1, 1e-6), None, [PureDP(0.5), ApproxDP(0.5, 1e-6)], PureDP(1e-9)),
        (ApproxDP(1, 1e-6), None, [ApproxDP(0.5, 1e-6)], ApproxDP(0.25, 1e-18)),
        (ApproxDP(1, 1e-6), None, [ZCDP(largest_rho(Fraction(1), Fraction(1, 10**6)))], ZCDP(1e-9)),
        (ApproxDP(1, 1e-6), None, [PureDP(0.01)], ZCDP(1e-9)),
        (ApproxDP(1, 1e-6), ZCDP(0.01), [ZCDP(0.01)], ZCDP(1e-9)),
        (ApproxDP(1, 1e-6), ZCDP(0.01), [], PureDP(1)),
        (ApproxDP(1, 1e-6), ZCDP(0.01), [PureDP(0.1), PureDP(0.1)], PureDP(1e-4)),
        (PureDP(1), ZCDP(0.125), [PureDP(0.5)], PureDP(0.5)),
    ],
)
def test_the_releases_inside_bear_out_every_guarantee_that_was_charged(
    loss: Loss, zcdp: ZCDP | None, fits: list[Loss], too_much: Loss
) -> None:
    allotment = granted(loss, zcdp)
    for step in fits:
        allotment.spend(event(step))
    with pytest.raises(FenceError, match="step"):
        allotment.spend(event(too_much))
    assert [done.loss for done in allotment.events] == fits


def test_a_release_with_its_own_zcdp_guarantee_is_booked_by_it() -> None:
    allotment = granted(PureDP(1), ZCDP(0.125))
    allotment.spend(event(PureDP(1), ZCDP(0.125)))
    with pytest.raises(FenceError):
        allotment.spend(event(PureDP(1e-9), ZCDP(1e-9)))


def test_a_large_rho_beside_a_small_epsilon_does_not_widen_it() -> None:
    allotment = granted(PureDP(0.5), ZCDP(10))
    with pytest.raises(FenceError):
        allotment.spend(event(PureDP(1)))
    allotment.spend(event(PureDP(0.5)))


def test_threads_never_overdraw_an_allotment() -> None:
    allotment = granted(PureDP(0.1))
    step = event(PureDP(Fraction(1, 20_000)))
    refused = []

    def work() -> None:
        for _ in range(800):
            try:
                allotment.spend(step)
            except FenceError:
                refused.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads change places inside a spend
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len(allotment.events) == 2000
    assert len(refused) == 1200


def test_an_event_shows_itself_as_plain_values() -> None:
    assert json.loads(json.dumps(event(PureDP(0.5), ZCDP(0.1)).to_dict()))["loss"] == "PureDP(0.5)"


# Objects.


def test_a_copy_is_the_same_object_and_pickling_is_refused(make) -> None:
    ledger = make(PureDP(1))
    for thing in (ledger, ledger.allot(PureDP(0.5), task="t")):
        assert copy.copy(thing) is thing
        assert copy.deepcopy([thing])[0] is thing
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(HiddenAnswerError):
                pickle.dumps(thing, protocol)


def test_a_ledger_shows_its_file_budget_and_what_is_left(directory: Path) -> None:
    ledger = Ledger.create(directory / "study.ledger", budget=PureDP(1))
    ledger.allot(PureDP(0.25), task="t")
    assert repr(ledger) == "Ledger('study.ledger', budget=PureDP(1), remaining: epsilon 0.75)"
    ledger.close()
    assert "closed" in repr(ledger)
    (directory / "study.ledger").unlink()
    assert str(directory) not in repr(ledger)


def test_an_allotment_is_frozen_from_outside() -> None:
    allotment = granted(PureDP(1))
    for name in ("loss", "unit", "private", "ledger_head", "events", "anything"):
        with pytest.raises(AttributeError):
            setattr(allotment, name, None)


def test_a_closed_ledger_takes_no_calls(make) -> None:
    with make(PureDP(1)) as ledger:
        allotment = ledger.allot(PureDP(0.5), task="t")
    for call in (ledger.entries, ledger.verify, lambda: ledger.head, lambda: ledger.allot(PureDP(0.1), task="t")):
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

    monkeypatch.setattr(ledger_module, "datetime", Clock)
    ledger = make(PureDP(0.5))
    for count in range(1, 6):
        ledger.allot(PureDP(0.1), task="t")
        if ledger.durable:
            ledger = Ledger.open(ledger.path, ledger.head)
        assert len(ledger.entries()) == count
    with pytest.raises(BudgetExceededError):
        ledger.allot(PureDP(1e-9), task="t")
    assert ledger.verify().ok
    years = [entry.at[:4] for entry in ledger.entries()]
    assert sorted(years) == ["0001", "1970", "2030", "2030", "9999"]
    assert years != sorted(years)


def test_amounts_without_a_finite_decimal_are_kept_exactly(make) -> None:
    ledger = make(PureDP(1))
    ledger.allot(PureDP(0.333).divided(3), task="t")
    assert ledger.entries()[0].loss == "PureDP(0.111)"
    ledger.allot(PureDP(Fraction(1, 3)), task="t")
    assert ledger.entries()[-1].loss == "PureDP(1/3)"
    assert ledger.entries()[-1].cost.epsilon == 333_333_334  # rounded up
    assert ledger.verify().ok
