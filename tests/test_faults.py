"""Faults that systems of this kind are known to fall to, on a whole call, each built by hand.

The rest of the project's table of faults: bounds, levels and cells of any type, ``data/test_schema.py`` and
``data/test_cleaning.py``; amounts that are none, ``privacy/test_loss.py``; threads, processes and forks on one ledger,
``privacy/test_ledger_processes.py``; a damaged, foreign, newer or unwritable ledger, ``privacy/test_ledger_damage.py``
and ``privacy/test_ledger_faults.py``; pickles and copies, ``privacy/test_ledger.py``; ``python -O``,
``test_optimised.py``.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import DpCausalError, LossError, ParameterError, SchemaError
from dpcausal.papers import Holdout, TrainingPrivacy
from tests.strategies import JUNK, observe

SCHEMA = dpc.Schema({"x": dpc.Bounded(-1, 1), "y": dpc.Bounded(-1, 1)})
X = np.random.default_rng(8).uniform(-1, 1, 24)
ROWS = {"x": X, "y": X**3}


def table_of(ledger: dpc.Ledger | None = None, **columns: Any) -> dpc.Table:
    return dpc.Table(ROWS | columns, SCHEMA, ledger or dpc.Ledger.in_memory(dpc.PureDP(1)), missing="impute")


def ask(table: dpc.Table, **arguments: Any) -> dpc.Direction:
    return dpc.direction(table, "x", "y", **({"score": "lsnm", "loss": dpc.PureDP(0.25)} | arguments))


def refused(kind: type[DpCausalError], call: Any, ledger: dpc.Ledger) -> str:
    """Assert that a call raises exactly this error, in silence, and spends nothing; return what it says."""
    spent, outcome = ledger.entries(), observe(call)
    assert type(outcome.error) is kind, outcome.error
    assert not outcome.warned and not outcome.printed and outcome.error.__cause__ is None
    assert ledger.entries() == spent
    return str(outcome.error)


TIES = np.repeat([0.0, 1.0], 12)
WITHOUT_INFORMATION = [
    (np.zeros(24), np.zeros(24)), (TIES, TIES[::-1]), (np.full(24, np.nan), TIES), (TIES, np.full(24, 7)),
]  # fmt: skip
WAYS: list[tuple[str, Any, tuple[str, ...]]] = [
    ("everyone", "auto", ("hsic", "lsnm")), ("test", Holdout(), Holdout.scores),
    ("test", Holdout(release_scores=True), Holdout.scores[:3]), ("training", TrainingPrivacy(), TrainingPrivacy.scores),
]  # fmt: skip


@pytest.mark.parametrize(("x", "y"), WITHOUT_INFORMATION)
@pytest.mark.parametrize(("protect", "method", "scores"), WAYS)
def test_columns_without_information_are_answered(
    x: Any, y: Any, protect: str, method: Any, scores: tuple[str, ...]
) -> None:
    for score in scores:
        table = table_of(dpc.Ledger.in_memory(dpc.PureDP(1), protect=protect), x=x, y=y)
        with dpc.simulated_noise(1):
            outcome = observe(lambda: ask(table, score=score, method=method))  # noqa: B023
        assert outcome.error is None and not outcome.warned, (score, outcome.error)
        assert outcome.answer.margin is not None


@pytest.mark.parametrize("rows", [0, 1, 2, 7])
def test_too_few_rows_are_refused(rows: int) -> None:
    ledger, few = dpc.Ledger.in_memory(dpc.PureDP(1)), {name: values[:rows] for name, values in ROWS.items()}
    refused(ParameterError if rows else SchemaError, lambda: ask(table_of(ledger, **few)), ledger)


@pytest.mark.parametrize("loss", [*JUNK, dpc.PureDP(20.5)], ids=lambda loss: type(loss).__name__)
def test_what_is_no_loss_is_refused(loss: Any) -> None:
    table = table_of()
    refused(LossError, lambda: ask(table, loss=loss), table.ledger)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_after_the_spend_refunds_nothing(raised: type[BaseException], tmp_path: Path) -> None:
    def stop(*_: object) -> None:
        raise raised

    path = tmp_path / "study.ledger"
    with dpc.Ledger.create(path, budget=dpc.PureDP(1)) as ledger, pytest.MonkeyPatch.context() as patch:
        patch.setattr(dpc.Table, "rows", stop)
        with pytest.raises(raised):
            ask(table_of(ledger))
    with dpc.Ledger.open(path) as ledger:
        assert ledger.remaining.epsilon == 0.75
        ask(table_of(ledger))  # asked again, it pays again
        assert [entry.number for entry in ledger.entries()] == [1, 2] and ledger.remaining.epsilon == 0.5
