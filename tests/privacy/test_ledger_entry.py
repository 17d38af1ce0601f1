"""Entries as plain values: what an outside accountant reads."""

from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ZCDP, ApproxDP, PureDP


def test_an_entry_names_its_event_and_its_exact_amounts() -> None:
    ledger = Ledger.in_memory(ApproxDP(3, 1e-5))
    ledger.allot(PureDP(0.1), task="a")
    ledger.allot(ApproxDP(0.35, 2e-9), task="b", zcdp=ZCDP(0.002))
    ledger.allot(ZCDP(0.003), task="c")
    assert [entry.to_dict()["event"] for entry in ledger.entries()] == [
        {"kind": "PureDP", "epsilon": "0.1"},
        {"kind": "ApproxDP", "epsilon": "0.35", "delta": "0.000000002", "rho": "0.002"},
        {"kind": "ZCDP", "rho": "0.003"},
    ]
