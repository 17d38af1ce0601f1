"""Allotments: what the releases inside a call may add up to."""

import json
import sys
import threading
from fractions import Fraction

import pytest

from dpcausal.errors import FenceError
from dpcausal.privacy.budget import CallBudget, Event
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, PureDP, largest_rho


def event(loss: Loss, zcdp: ZCDP | None = None) -> Event:
    return Event("laplace", "step", loss, 1.0, "l1", 1.0, "kendall-tau", zcdp)


def granted(loss: Loss, zcdp: ZCDP | None = None) -> CallBudget:
    budget: Loss = ZCDP(100) if isinstance(loss, ZCDP) else ApproxDP(100, 0.5)
    return Ledger.in_memory(budget, accept_large_epsilon=True).charge(loss, task="t", zcdp=zcdp)


@pytest.mark.parametrize("parts", [1, 3, 7, 300])
def test_equal_parts_of_an_allotment_use_it_up_exactly(parts: int) -> None:
    allotment = granted(PureDP(0.3))
    for _ in range(parts):
        allotment.spend(event(PureDP(0.3).part(Fraction(1, parts))))
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


def test_an_allotment_is_frozen_from_outside() -> None:
    allotment = granted(PureDP(1))
    for name in ("loss", "unit", "private", "ledger_head", "events", "anything"):
        with pytest.raises(AttributeError):
            setattr(allotment, name, None)
