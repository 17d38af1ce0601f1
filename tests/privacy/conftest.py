"""A quick directory for ledgers, and one ledger in it."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpcausal import ZCDP, Ledger, PureDP
from dpcausal.privacy.budget import Event
from dpcausal.privacy.loss import Loss

SPENDS = 4


def event(loss: Loss, zcdp: ZCDP | None = None) -> Event:
    return Event("laplace", "step", loss, 1.0, "l1", 1.0, "kendall-tau", zcdp)


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory in memory where there is one: a kill loses nothing that the kernel holds, and commits are fast."""
    made = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def unwitnessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No witness: what a ledger file tells by itself."""
    monkeypatch.setenv("DPCAUSAL_WITNESS", "/dev/null/none")


@pytest.fixture
def path(directory: Path) -> Path:
    """A closed ledger of budget 1 with four spends of 0.125, the second with its answer."""
    path = directory / "study.ledger"
    with Ledger.create(path, budget=PureDP(1)) as ledger:
        for number in range(1, SPENDS + 1):
            ledger.charge(PureDP(0.125), task=f"call {number}", detail={"columns": ["x", "y"]}, once={"seed": 7})
            if number == 2:
                ledger.store(2, {"margin": -1.5})
    return path


def seen(ledger: Ledger) -> tuple[object, ...]:
    """Return all that a ledger says of itself."""
    return ledger.budget, ledger.remaining, ledger.head, ledger.entries(), ledger.answer(2)
