"""Allotments: what the releases inside a call may add up to."""

import json
import sys
from fractions import Fraction

import pytest

from dpcausal import ZCDP, ApproxDP, Ledger, NoPrivacy, PureDP
from dpcausal.errors import FenceError
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import Loss, largest_rho
from tests.privacy.conftest import event
from tests.voices import together


def granted(loss: Loss, zcdp: ZCDP | None = None) -> CallBudget:
    budget: Loss = ZCDP(100) if isinstance(loss, ZCDP) else ApproxDP(100, 0.5)
    return Ledger.in_memory(budget, accept_large_epsilon=True).charge(loss, task="t", zcdp=zcdp)


@pytest.mark.proves("allotment")
@pytest.mark.parametrize(
    ("loss", "zcdp", "fits", "too_much"),
    [
        *((PureDP(0.3), None, PureDP(0.3).split(parts), PureDP(1e-9)) for parts in (1, 3, 7, 300)),
        (PureDP(1), None, [PureDP(0.5), PureDP(0.5)], PureDP(1e-9)),
        (PureDP(1), None, [], ZCDP(1e-9)),
        (PureDP(1), None, [], ApproxDP(0.5, 1e-9)),
        (PureDP(1), None, [], NoPrivacy()),
        (ZCDP(0.5), None, [PureDP(0.6), ZCDP(0.32)], ZCDP(1e-9)),
        (ZCDP(0.5), None, [PureDP(1)], PureDP(1e-4)),
        (ZCDP(0.5), None, [PureDP(0.5)] * 4, PureDP(1e-4)),
        (PureDP(1), ZCDP(0.125), [PureDP(0.25)] * 4, PureDP(1e-4)),  # four times 1/32; the sum is 1 too
        (ZCDP(0.5), None, [], ApproxDP(0.5, 1e-9)),
        (ApproxDP(1, 1e-6), None, [PureDP(0.5), ApproxDP(0.5, 1e-6)], PureDP(1e-9)),
        (ApproxDP(1, 1e-6), None, [ApproxDP(0.5, 1e-6)], ApproxDP(0.25, 1e-18)),
        (ApproxDP(1, 1e-6), None, [ZCDP(largest_rho(Fraction(1), Fraction(1, 10**6)))], ZCDP(1e-9)),
        (ApproxDP(1, 1e-6), None, [PureDP(0.01)], ZCDP(1e-9)),
        (ApproxDP(1, 0), None, [], ZCDP(1e-9)),
        (ApproxDP(1, 1e-6), ZCDP(0.01), [ZCDP(0.01)], ZCDP(1e-9)),
        (ApproxDP(1, 1e-6), ZCDP(0.01), [], PureDP(1)),
        (ApproxDP(1, 1e-6), ZCDP(0.01), [PureDP(0.1), PureDP(0.1)], PureDP(1e-4)),
        (PureDP(1), ZCDP(0.125), [PureDP(0.5)], PureDP(0.5)),
        (PureDP(0.5), ZCDP(10), [], PureDP(1)),  # a large ρ beside a small ε does not widen it
        (PureDP(0.5), ZCDP(10), [PureDP(0.5)], PureDP(1e-9)),
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
    (booked,) = allotment.events
    assert json.loads(json.dumps(booked.to_dict()))["loss"] == "PureDP(1)"


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

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads change places inside a spend
    try:
        together(*[work] * 4)
    finally:
        sys.setswitchinterval(before)
    assert len(allotment.events) == 2000
    assert len(refused) == 1200


def test_an_allotment_is_frozen_from_outside() -> None:
    allotment = granted(PureDP(1))
    for name in ("loss", "unit", "private", "ledger_head", "events", "anything"):
        with pytest.raises(AttributeError):
            setattr(allotment, name, None)
