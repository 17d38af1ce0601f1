"""The faults that systems of this kind are known to fall to, one test a row, each built by hand."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcausal as dpc
from dpcausal.errors import (
    BudgetExceededError,
    DpCausalError,
    HiddenAnswerError,
    LedgerDamagedError,
    LedgerError,
    LossError,
    ParameterError,
    SchemaError,
)
from dpcausal.papers import Holdout, TrainingPrivacy
from dpcausal.privacy.ledger_lines import FORMAT
from dpcausal.privacy.sensitivity import Unit
from tests.strategies import JUNK, observe

SCHEMA = dpc.Schema({"x": dpc.Bounded(-1, 1), "y": dpc.Bounded(-1, 1)})
GENERATOR = np.random.default_rng(8)
X = GENERATOR.uniform(-1, 1, 24)
ROWS = {"x": X, "y": X**3}
LOSS = dpc.PureDP(0.25)


def table_of(ledger: dpc.Ledger, **columns: Any) -> dpc.Table:
    return dpc.Table(ROWS | columns, SCHEMA, ledger, missing="impute")


def ask(table: dpc.Table, **arguments: Any) -> dpc.Direction:
    return dpc.direction(table, "x", "y", **({"score": "igci", "loss": LOSS} | arguments))


def refused(kind: type[DpCausalError], call: Callable[[], Any], *words: str, ledger: dpc.Ledger | None = None) -> None:
    """Assert that a call raises exactly this error, in these words, in silence, and spends nothing."""
    spent = ledger.entries() if ledger is not None else None
    outcome = observe(call)
    assert type(outcome.error) is kind, outcome.error
    assert not outcome.warned
    assert not outcome.printed
    assert outcome.error.__cause__ is None or isinstance(outcome.error, LedgerError)  # the system's words hold no data
    for word in words:
        assert word in str(outcome.error)
    assert ledger is None or ledger.entries() == spent


def missing_and_extreme_numbers(directory: Path) -> None:
    raw = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 0.5])
    table = dpc.Table(
        {"x": np.ma.masked_array(raw, raw == 0.5)}, dpc.Schema({"x": dpc.Bounded(-1, 3)}), in_memory(), missing="impute"
    )
    assert table.columns(["x"])["x"].tolist() == [1, 3, -1, 3, -1, 5e-324, 0, 1]
    assert table.n == 8
    assert ask(table_of(in_memory(), x=np.resize(raw, 24))).n == 24


def columns_without_information(directory: Path) -> None:
    ties = np.repeat([0.0, 1.0], 12)
    for x, y in [(np.zeros(24), np.zeros(24)), (ties, ties[::-1]), (np.full(24, np.nan), ties), (ties, np.full(24, 7))]:
        for protect, method, scores in (
            ("everyone", "auto", ("hsic", "igci")), ("test", Holdout(), Holdout.scores),
            ("test", Holdout(release_scores=True), Holdout.scores[:3]),
            ("training", TrainingPrivacy(), TrainingPrivacy.scores),
        ):  # fmt: skip
            for score in scores:
                table = table_of(dpc.Ledger.in_memory(dpc.PureDP(1), protect=protect), x=x, y=y)
                with dpc.simulated_noise(1):
                    outcome = observe(lambda: ask(table, score=score, method=method))  # noqa: B023
                assert outcome.error is None, (score, outcome.error)
                assert not outcome.warned
                assert outcome.answer.margin is not None


def too_few_rows(directory: Path) -> None:
    ledger = in_memory()
    none = {"x": np.zeros(0), "y": np.zeros(0)}
    refused(SchemaError, lambda: table_of(ledger, **none), "at least one row", ledger=ledger)
    for rows in (1, 2, 7):
        few = {name: values[:rows] for name, values in ROWS.items()}
        refused(ParameterError, lambda: ask(table_of(ledger, **few)), "at least 8 rows", ledger=ledger)  # noqa: B023


def values_of_another_type(directory: Path) -> None:
    secret = "zephyr"
    wrong = {
        "text": np.array([secret] * 24),
        "object": np.array([secret, 1.0] * 12, dtype=object),
        "bool": np.array([True, False] * 12),
        "datetime": np.array([datetime(2020, 1, 1)] * 24, dtype="datetime64[s]"),
        "complex": np.full(24, 1 + 1j),
        "bytes": np.array([b"zephyr"] * 24),
    }
    for values in wrong.values():
        ledger = in_memory()
        for frame in (ROWS | {"x": values}, pd.DataFrame(ROWS | {"x": values})):
            outcome = observe(lambda: dpc.Table(frame, SCHEMA, ledger, missing="impute"))  # noqa: B023
            assert type(outcome.error) is SchemaError
            assert "column 'x': Bounded needs a numeric column" in str(outcome.error)
            assert secret not in str(outcome.error)
    # The width of numpy's text is that of the longest value.
    told = {str(observe(lambda: table_of(in_memory(), x=np.array(["a" * k] * 24))).error) for k in (1, 9)}  # noqa: B023
    assert len(told) == 1


def unseen_levels(directory: Path) -> None:
    values = np.array(["yes", "no", "maybe", "", None, 1, b"yes", float("nan"), 1j], dtype=object)
    for other, code in ((None, 0), ("yes", 1), ("rest", 2)):
        schema = dpc.Schema({"x": dpc.Levels(["no", "yes"], other=other)})
        codes = dpc.Table({"x": values}, schema, in_memory(), missing="impute").columns(["x"])["x"]
        assert codes.tolist() == [1, 0, *[code] * 7]


def bounds_that_are_none(directory: Path) -> None:
    nan, inf = float("nan"), float("inf")
    for pair in [(1, 1), (2, 1), (nan, 1), (0, nan), (-inf, 0), (0, inf), (None, 1), (0, None), ("0", 1), (False, 1)]:
        refused(SchemaError, lambda: dpc.Bounded(*pair))  # noqa: B023
    refused(SchemaError, lambda: dpc.Schema({"x": None}), "column 'x'")
    refused(SchemaError, lambda: dpc.Bounded(0, 2, cuts=np.array(1.0)), "cuts must be a list")  # type: ignore[arg-type]


def amounts_that_are_none(directory: Path) -> None:
    table = table_of(in_memory())
    for epsilon in (0, -1, float("nan"), float("inf"), "1", True, None, 2**2000):
        refused(LossError, lambda: ask(table, loss=dpc.PureDP(epsilon)), ledger=table.ledger)  # noqa: B023
        refused(LossError, lambda: ask(table, loss=dpc.ZCDP(epsilon)), ledger=table.ledger)  # noqa: B023
        refused(LossError, lambda: ask(table, loss=dpc.ApproxDP(epsilon, 0)), ledger=table.ledger)  # noqa: B023
    for delta in (-1e-9, 1, 1.5, float("nan"), "0", False, None):
        refused(LossError, lambda: ask(table, loss=dpc.ApproxDP(1, delta)), ledger=table.ledger)  # noqa: B023
    for loss in JUNK:
        refused(LossError, lambda: ask(table, loss=loss), ledger=table.ledger)  # noqa: B023
    refused(LossError, lambda: ask(table, loss=dpc.PureDP(20.5)), "accept_large_epsilon", ledger=table.ledger)


def a_budget_too_small(directory: Path) -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(0.3))
    ask(table_of(ledger))
    table = table_of(ledger)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dpc.Table, "rows", lambda *_: pytest.fail("the data was read"))
        patch.setattr(type(table._source), "collect", lambda *_: pytest.fail("the data was read"))
        words = "ε = 0.25", "left ε = 0.05"
        refused(BudgetExceededError, lambda: ask(table), *words, ledger=ledger)


def an_interrupt_after_the_spend(directory: Path) -> None:
    for raised in (KeyboardInterrupt, MemoryError):
        path = directory / f"{raised.__name__}.ledger"
        with dpc.Ledger.create(path, budget=dpc.PureDP(1)) as ledger, pytest.MonkeyPatch.context() as patch:

            def stop(*_: object, raised: type[BaseException] = raised) -> None:
                raise raised

            patch.setattr(dpc.Table, "rows", stop)
            with pytest.raises(raised):
                ask(table_of(ledger))
        with dpc.Ledger.open(path) as ledger:
            assert ledger.remaining.epsilon == 0.75
            ask(table_of(ledger))  # asked again, it pays again
            assert [entry.number for entry in ledger.entries()] == [1, 2]
            assert ledger.remaining.epsilon == 0.5


def threads_and_processes_on_one_ledger(directory: Path) -> None:
    path = directory / "study.ledger"
    dpc.Ledger.create(path, budget=dpc.PureDP(0.3)).close()
    granted: list[int] = []

    def spend() -> None:
        with dpc.Ledger.open(path) as ledger, contextlib.suppress(BudgetExceededError):
            while True:
                granted.append(ledger.charge(dpc.PureDP(0.01), task="t").number)

    def process() -> None:
        spend()
        os._exit(0 if len(set(granted)) == len(granted) else 1)

    children = [forked(process) for _ in range(2)]
    threads = [threading.Thread(target=spend) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    with dpc.Ledger.open(path) as ledger:
        assert len(ledger.entries()) == 30
        assert ledger.remaining.epsilon == 0
        assert ledger.verify().ok


def a_fork_with_a_live_ledger(directory: Path) -> None:
    ledger = dpc.Ledger.create(directory / "study.ledger", budget=dpc.PureDP(8), protect="test")
    table = table_of(ledger)
    reading, writing = os.pipe()

    def child() -> None:
        drawn = [ask(table, method=Holdout(), score="spearman", loss=dpc.PureDP(1)).margin for _ in range(3)]
        os.write(writing, f"{drawn}\n".encode())
        os._exit(0)

    children = [forked(child) for _ in range(2)]
    assert [os.waitpid(one, 0)[1] for one in children] == [0, 0]
    # Margins have 53 random bits: equal ones mean that random states were copied.
    first, second = os.read(reading, 4096).decode().splitlines()
    assert first != second
    assert ledger.remaining.epsilon == 2
    assert ledger.charge(LOSS, task="t", unit=Unit.TEST_ROW).number == 7
    os.close(reading)
    os.close(writing)


def a_damaged_foreign_or_unwritable_ledger(directory: Path) -> None:
    path = directory / "study.ledger"
    with dpc.Ledger.create(path, budget=dpc.PureDP(1)) as ledger:
        ledger.charge(LOSS, task="t")
    whole = path.read_bytes()
    cases = {
        "truncated": whole[:100],
        "cut after its first line": whole[: whole.index(b"\n") + 1],  # an older copy, by its witness
        "empty": b"",
        "foreign": b"x,y\n1,2\n",
        "altered": whole.replace(b"replace-one", b"Replace-one"),
        "newer": whole.replace(b'"format":%d' % FORMAT, b'"format":%d' % (FORMAT + 1)),
        "of an older version": b"SQLite format 3\0" + bytes(4080),
    }
    for content in cases.values():
        assert content != whole
        for beside in directory.iterdir():
            beside.unlink()
        path.write_bytes(content)
        refused(LedgerDamagedError, lambda: dpc.Ledger.open(path).charge(LOSS, task="t"), "study.ledger")
    path.write_bytes(whole)
    refused(LedgerError, lambda: dpc.Ledger.create(path, budget=dpc.PureDP(1)), "study.ledger")
    refused(LedgerError, lambda: dpc.Ledger.open(directory / "absent.ledger"), "absent.ledger")

    def full() -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        ledger = dpc.Ledger.open(path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole), len(whole)))
        refused(LedgerError, lambda: [ledger.charge(dpc.PureDP(1e-6), task="x" * 200) for _ in range(500)], "study.led")
        os._exit(0)

    def read_only() -> None:
        path.chmod(0o400)
        directory.chmod(0o555)
        if os.getuid() == 0:
            os.setuid(os.stat(path).st_uid or 65534)  # root is not stopped by a mode
        with pytest.raises(LedgerError, match=r"study\.ledger"):
            dpc.Ledger.open(path).charge(LOSS, task="t")
        os._exit(0)

    assert os.waitpid(forked(full), 0)[1] == 0
    if os.getuid() == 0:
        os.chown(directory, 65534, 65534)
        os.chown(path, 65534, 65534)
    assert os.waitpid(forked(read_only), 0)[1] == 0
    directory.chmod(0o700)


def a_pickle_or_a_copy(directory: Path) -> None:
    ledger = in_memory()
    table, allotment = table_of(ledger), ledger.charge(LOSS, task="t")
    for one in (table, ledger, allotment):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            refused(HiddenAnswerError, lambda: pickle.dumps([one], protocol))  # noqa: B023
        assert copy.copy(one) is one
        assert copy.deepcopy([one])[0] is one


def python_without_asserts(directory: Path) -> None:
    # A refusal of each room; tests/test_optimised.py also draws noise.
    program = (
        "import dpcausal as dpc, numpy as np\n"
        "ledger = dpc.Ledger.in_memory(dpc.PureDP(1))\n"
        "ledger.charge(dpc.PureDP(1), task='t')\n"
        "schema = dpc.Schema({'x': dpc.Bounded(-1, 1)})\n"
        "for call in (lambda: ledger.charge(dpc.PureDP(1), task='t'), lambda: dpc.PureDP(True),\n"
        "             lambda: dpc.Table({'x': np.array(['a'])}, schema, ledger)):\n"
        "    try: call()\n"
        "    except dpc.errors.DpCausalError as error: print(type(error).__name__)\n"
    )
    run = [sys.executable, "-O", "-W", "error", "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stderr, done.stdout.split()) == ("", ["BudgetExceededError", "LossError", "SchemaError"])


FAULTS = {
    "NaN, inf, null, huge, subnormal": missing_and_extreme_numbers,
    "constant column, ties, empty or tiny stratum, a block whose fit fails": columns_without_information,
    "n = 0, 1, 2": too_few_rows,
    "text, bool, datetime, complex in a Bounded column": values_of_another_type,
    "unseen level": unseen_levels,
    "bounds lo >= hi, NaN": bounds_that_are_none,
    "epsilon <= 0, NaN, inf, str, bool; delta < 0 or >= 1": amounts_that_are_none,
    "budget too small at start": a_budget_too_small,
    "crash or Ctrl-C after the spend": an_interrupt_after_the_spend,
    "threads, processes on one ledger": threads_and_processes_on_one_ledger,
    "fork with a live ledger": a_fork_with_a_live_ledger,
    "corrupted, truncated, foreign, newer ledger; disk full; read-only": a_damaged_foreign_or_unwritable_ledger,
    "pickle or deepcopy of a table or ledger": a_pickle_or_a_copy,
    "python -O": python_without_asserts,
}
"""Each row of the project's table of faults, and what shows that it is withstood."""


def in_memory() -> dpc.Ledger:
    return dpc.Ledger.in_memory(dpc.PureDP(1))


def forked(work: Callable[[], None]) -> int:
    """Run ``work``, which ends its process, in a child; a child that fails exits with 1."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    return child


@pytest.mark.parametrize("fault", list(FAULTS))
def test_a_known_fault_is_withstood(fault: str, tmp_path: Path) -> None:
    FAULTS[fault](tmp_path)
