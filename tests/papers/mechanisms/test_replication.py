"""A published system is handed the exact answer only where nothing private can be spent."""

from __future__ import annotations

import numpy as np
import pytest

from dpcausal.errors import FenceError
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.papers.mechanisms.replication import replicate
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity


def asked() -> Query:
    return Query(np.array([3, 4]), Sensitivity(1, Norm.LINF, Relation.REPLACE_ONE, "published-unproven"), "system")


def test_it_runs_on_an_unproven_allotment_and_books_all_of_it() -> None:
    allotment = Ledger.in_memory(PureDP(2)).charge(PureDP(2), task="audit", unproven=True)
    assert replicate(asked(), allotment, lambda exact: exact.sum() + 0.5) == 7.5
    assert [event.loss for event in allotment.events] == [PureDP(2)]


def test_it_runs_without_privacy() -> None:
    allotment = Ledger.without_privacy().charge(NoPrivacy(), task="audit")
    assert replicate(asked(), allotment, lambda exact: int(exact[1])) == 4


def test_a_private_allotment_is_refused_and_nothing_is_booked() -> None:
    allotment = Ledger.in_memory(PureDP(2)).charge(PureDP(2), task="audit")
    with pytest.raises(FenceError, match="without a proof"):
        replicate(asked(), allotment, lambda exact: int(exact[1]))
    assert not allotment.events


def test_a_recording_gate_lets_the_system_run_on_its_answer() -> None:
    with recording_gate("high"):
        allotment = Ledger.in_memory(PureDP(2)).charge(PureDP(2), task="audit", unproven=True)
        assert replicate(asked(), allotment, lambda exact: int(exact[1])) == 10**6
