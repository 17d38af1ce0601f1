"""Code that a caller gives to a test, as hostile as it can be: a regressor, a model's mean, spread and sampler.

Each guest does one thing that would tell of a row, or break off the call for one row alone; on made-up rows it behaves.
"""

from __future__ import annotations

import gc
import logging
import random
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.linear_model import LinearRegression

import dpcausal as dpc
from dpcausal.errors import ParameterError
from dpcausal.independence.methods import block_test as blocks
from dpcausal.independence.methods import model_x
from tests.independence.neighbours import way
from tests.voices import Heard, state, together

N = 240
SECRET = 0.7319024658
"""The z of one record: where a guest meets it, it misbehaves."""

DATA = dpc.simulate.smooth_design(N, effect=0.3, seed=2)


LOSS = dpc.PureDP(1)


def columns() -> dict[str, Any]:
    found = {name: column.copy() for name, column in DATA.columns.items()}
    found["z1"][7] = SECRET
    return found


# ---------------------------------------------------------------------------------- what a guest may do


class Panic(BaseException):
    """As libraries in other languages raise."""


class Final:
    """Fails when it is thrown away, in words that quote a value."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __del__(self) -> None:
        raise ValueError(self.text)


def says(text: str) -> None:
    print(text)
    print(text, file=sys.stderr)
    sys.stdout.write(text)
    sys.stderr.writelines([text])
    print(text, file=sys.__stderr__)


def logs(text: str) -> None:
    for level in (logging.DEBUG, logging.CRITICAL, 99):
        logging.getLogger("guest").log(level, text)
    logging.disable(logging.NOTSET)
    logging.getLogger("guest").critical(text)
    logging.getLogger("guest").handle(logging.makeLogRecord({"msg": text, "levelno": 60}))


def warns(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=1)
    warnings.simplefilter("always")
    warnings.warn(text, UserWarning, stacklevel=1)
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.warn(text, RuntimeWarning, stacklevel=1)
    np.array([0.0]) / np.array([0.0])


def in_threads(text: str) -> None:
    def work() -> None:
        says(text)
        logs(text)
        warns(text)
        raise ValueError(text)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    Parallel(n_jobs=2, backend="threading", verbose=50)(delayed(says)(text) for _ in range(2))


def drops(text: str) -> None:
    Final(text)
    ring: list[Any] = [Final(text)]
    ring.append(ring)
    del ring
    gc.collect(0)  # the ring is of the youngest generation


def draws(text: str) -> None:
    for _ in range(3):
        np.random.normal()
        random.random()
    np.random.seed(1)
    random.seed(1)
    np.random.set_bit_generator(np.random.PCG64(1))
    np.random.normal()


def sets(text: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.NOTSET + 7)
    np.seterr(all="raise")
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def raises(kind: type[BaseException]) -> Callable[[str], None]:
    def act(text: str) -> None:
        try:
            raise ValueError(text)
        except ValueError:
            raise kind(text)

    return act


TELLING: dict[str, Callable[[str], None]] = {
    "says": says, "logs": logs, "warns": warns, "starts threads": in_threads, "drops what fails": drops,
    "draws": draws, "sets": sets,
}  # fmt: skip
FAILING: dict[str, Callable[[str], None]] = {
    kind.__name__: raises(kind)
    for kind in (ValueError, MemoryError, KeyboardInterrupt, GeneratorExit, SystemExit, StopIteration, Panic, Warning)
}
ACTS = TELLING | FAILING
acted: list[str] = []


def perform(act: str) -> None:
    acted.append(act)
    ACTS[act](f"the value is {SECRET}")


# -------------------------------------------------------------------------------------------- the guests


class Regressor(LinearRegression):
    """Acts where a standardised value is that of an outlier: made-up rows have none."""

    def __init__(self, act: str = "says", fit_intercept: bool = True) -> None:
        super().__init__(fit_intercept=fit_intercept)
        self.act = act

    def fit(self, Z: Any, y: Any) -> Any:
        if np.abs(y).max() > 2.2:
            perform(self.act)
        return super().fit(Z, y)


def external_code(act: str) -> dict[str, dict[str, Any]]:
    """Return a call for each place where code of the caller's is taken."""
    def seen(Z: Any) -> None:
        if np.isclose(Z, SECRET, rtol=0, atol=1e-12).any():
            perform(act)

    def mean(Z: Any) -> Any:
        seen(Z)
        return np.sin(2 * Z[:, 0])

    def spread(Z: Any) -> Any:
        seen(Z)
        return np.ones(len(Z))

    def sample(Z: Any, coins: Any) -> Any:
        seen(Z)
        return coins.normal(size=len(Z))

    normal = {"mean": dpc.ModelX(mean=mean, sd=1.0), "sd": dpc.ModelX(mean=lambda Z: 0 * Z[:, 0], sd=spread)}
    models = {
        f"{part} of {method}": {"method": method, "model_x": model}
        for part, model in normal.items()
        for method in ("crt", "crt-decision", "PrivCRT")
    }
    models["sampler of crt"] = {"method": "crt", "model_x": dpc.ModelX(sample=sample)}
    models["regressor of crt"] = {"method": "crt", "model_x": normal["mean"], "regression": Regressor(act)}
    return models | {
        f"regressor of {method}": {"method": method, "regression": Regressor(act)} for method in ("gcm", "gcm-weighted")
    }


PLACES = sorted(external_code("says"))


def ask(place: str, act: str, ledger: dpc.Ledger | None = None, loss: Any = LOSS) -> Any:
    """Ask with a guest that acts; at the end it did."""
    call = external_code(act)[place]
    filled = "impute" if "PrivCRT" in place else "drop"  # as published it leaves out no row
    table = dpc.Table(columns(), DATA.schema, ledger or dpc.Ledger.in_memory(LOSS), missing=filled)
    acted.clear()
    try:
        with dpc.simulated_noise(5):
            return dpc.ci_test(table, "x", "y", given=["z1"], loss=loss, method=way(call.pop("method"), **call))
    finally:
        assert act in acted


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("act", TELLING)
def test_nothing_that_a_guest_says_is_heard(place: str, act: str, heard: Heard) -> None:
    before = state()
    found = ask(place, act)
    assert found.statistic is not None
    assert str(SECRET) not in heard()
    assert state() == before


def test_the_guests_are_loud_and_the_ears_hear_them(heard: Heard) -> None:
    for act in ("says", "logs", "warns", "starts threads", "drops what fails"):
        heard()
        perform(act)
        assert str(SECRET) in heard()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("act", FAILING)
def test_no_failure_of_a_guest_ends_the_call_or_tells_of_itself(
    place: str, act: str, heard: Heard
) -> None:
    before = state()
    found = ask(place, act)
    assert found.decision in ("dependent", "not detected")
    assert str(SECRET) not in heard()
    assert state() == before


@pytest.mark.parametrize("place", ["regressor of gcm", "mean of crt", "sampler of crt"])
def test_guests_are_unheard_without_privacy_too(place: str, heard: Heard) -> None:
    before = state()
    for act in ("says", "warns", "draws"):  # 999 times each
        assert ask(place, act, dpc.Ledger.without_privacy(), dpc.NoPrivacy()).pvalue is not None
    assert str(SECRET) not in heard()
    assert state() == before


def test_a_guest_that_fails_on_made_up_rows_in_whatever_way_is_refused_unspent() -> None:
    for kind, act in FAILING.items():

        def fail(Z: Any, *_: Any, act: Callable[[str], None] = act) -> Any:
            act("")

        class Failing(LinearRegression):
            fit = lambda self, Z, y: fail(Z)  # noqa: E731

        for call in (
            dpc.methods.Crt(model_x=dpc.ModelX(mean=fail, sd=1.0)), dpc.methods.Crt(model_x=dpc.ModelX(sample=fail)),
            dpc.methods.Gcm(regression=Failing()),
        ):
            ledger = dpc.Ledger.in_memory(LOSS)
            with pytest.raises(ParameterError, match=f"fails on simulated rows with {kind}"):
                dpc.ci_test(dpc.Table(columns(), DATA.schema, ledger), "x", "y", given=["z1"], loss=LOSS, method=call)
            assert not ledger.entries()


# ----------------------------------------------------------------------------------------------- coins


def rolling(Z: Any) -> Any:
    """Draws from the process's own streams as often as a row says, and returns what it drew."""
    return np.array([sum(np.random.normal() + random.random() for _ in range(1 + int(row > 0))) for row in Z[:, 0]])


def test_what_a_model_draws_at_one_row_moves_no_other_rows_law() -> None:
    Z = np.linspace(-1, 1, 9)[:, None]
    moved = Z.copy()
    moved[2] = 1.0
    for model in (dpc.ModelX(mean=rolling, sd=1.0), dpc.ModelX(mean=lambda Z: 0 * Z[:, 0], sd=rolling)):
        one, other = model.at(Z, row_by_row=True), model.at(moved, row_by_row=True)
        for before, after in ((one.centre, other.centre), (one.spread, other.spread)):
            assert (np.delete(before, 2) == np.delete(after, 2)).all()
        assert (one.centre != other.centre).any() or (one.spread != other.spread).any()


@pytest.mark.proves("block-sum")
@pytest.mark.parametrize("part", ["mean", "sd", "sample"])
def test_a_replaced_row_moves_one_block_though_a_model_draws_from_streams_of_the_process(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[float]] = []
    honest = blocks.block_scores

    def keep(*arguments: Any) -> list[float]:
        seen.append(honest(*arguments))
        return seen[-1]

    monkeypatch.setattr(blocks, "block_scores", keep)
    models = {
        "mean": lambda: dpc.ModelX(mean=rolling, sd=1.0),
        "sd": lambda: dpc.ModelX(mean=lambda Z: 0 * Z[:, 0], sd=rolling),
        "sample": lambda: dpc.ModelX(sample=lambda Z, coins: rolling(Z)),
    }
    monkeypatch.setattr(model_x, "_check_rowwise", lambda *_, **__: None)  # that would refuse what draws
    for row in range(4):
        for value in (-8.0, 8.0):
            data = columns()
            data["z1"][row] = value
            table = dpc.Table(data, DATA.schema, dpc.Ledger.in_memory(LOSS))
            np.random.seed(0)
            random.seed(0)
            with dpc.simulated_noise(5):
                dpc.ci_test(table, "x", "y", given=["z1"], loss=LOSS,
                            method=dpc.methods.Crt(model_x=models[part](), resamples=199, blocks=4))  # fmt: skip
    for before, after in zip(seen[::2], seen[1::2], strict=True):
        assert sum(one != other for one, other in zip(before, after, strict=True)) <= 1
    assert any(before != after for before, after in zip(seen[::2], seen[1::2], strict=True))


def test_streams_of_another_kind_come_back_as_they_were() -> None:
    kept = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(np.random.PCG64(3))
        np.random.normal()  # leaves half of a pair
        before = np.random.get_state(legacy=False)
        assert ask("regressor of gcm", "draws").statistic is not None
        assert str(np.random.get_state(legacy=False)) == str(before)
    finally:
        np.random.set_bit_generator(kept)


# --------------------------------------------------------------------------------------------- signals


def test_a_real_interrupt_ends_a_call_in_a_guest_and_the_spend_stands(tmp_path: Path) -> None:
    program = f"""
import os, sys, time
import numpy as np
from sklearn.linear_model import LinearRegression
import dpcausal as dpc

class Slow(LinearRegression):
    def fit(self, Z, y):
        if np.abs(y).max() > 2.2:  # not on made-up rows
            try:
                raise ValueError("the value is {SECRET}")
            except ValueError:
                try:
                    os.write(1, b"fitting\\n")
                    time.sleep(600)
                except BaseException:
                    raise LookupError("the value is {SECRET}")
        return super().fit(Z, y)

data = dpc.simulate.smooth_design(600, effect=0.3, seed=2)
ledger = dpc.Ledger.create({str(tmp_path / "study.ledger")!r}, budget=dpc.PureDP(1))
table = dpc.Table(data.columns, data.schema, ledger)
dpc.ci_test(table, "x", "y", given=["z1"], loss=dpc.PureDP(0.25),
            method=dpc.methods.Gcm(regression=Slow()))
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None and child.stdout.readline() == "fitting\n"
    child.send_signal(signal.SIGINT)
    out, told = child.communicate(timeout=300)
    assert child.returncode == -signal.SIGINT and out == ""
    assert told.rstrip().endswith("KeyboardInterrupt")
    assert str(SECRET) not in told and "LookupError" not in told and "During handling" not in told
    with dpc.Ledger.open(tmp_path / "study.ledger") as ledger:
        assert [entry.task for entry in ledger.entries()] == ["ci_test"] and ledger.remaining.epsilon == 0.75


# ----------------------------------------------------------------------------------------------- threads


def test_calls_with_guests_in_several_threads_are_unheard_and_agree(heard: Heard) -> None:
    before = state()
    alone = [ask(place, "says").statistic for place in ("mean of crt", "regressor of gcm")]
    found: list[float] = []

    def work(place: str, act: str) -> None:
        options = external_code(act)[place]
        call = way(options.pop("method"), **options)
        table = dpc.Table(columns(), DATA.schema, dpc.Ledger.in_memory(LOSS))
        with dpc.simulated_noise(5):  # the thread's own
            found.append(dpc.ci_test(table, "x", "y", given=["z1"], loss=LOSS, method=call).statistic)

    together(*(
        lambda place=place, act=act: work(place, act)
        for place in ("mean of crt", "regressor of gcm") for act in ("says", "warns", "draws", "starts threads")
    ))  # fmt: skip
    assert set(found) == set(alone)
    assert str(SECRET) not in heard()
    assert state() == before


def test_functions_of_a_model_are_asked_by_workers_too() -> None:
    def ask_with(workers: int) -> float:
        table = dpc.Table(columns(), DATA.schema, dpc.Ledger.in_memory(LOSS))
        model = dpc.ModelX(mean=lambda Z: np.sin(2 * Z[:, 0]), sd=lambda Z: 1 + 0 * Z[:, 0])
        with dpc.simulated_noise(5):
            return float(
                dpc.ci_test(table, "x", "y", given=["z1"], loss=LOSS,
                            method=dpc.methods.Crt(model_x=model, workers=workers, resamples=19)).statistic
            )  # fmt: skip

    assert ask_with(1) == ask_with(3)


def test_a_progress_function_is_no_guest_it_sees_numbers_only_and_is_heard(capsys: pytest.CaptureFixture[str]) -> None:
    table = dpc.Table(columns(), DATA.schema, dpc.Ledger.in_memory(LOSS))
    dpc.ci_tests(table, [("x", "y", ["z1"]), ("x", "z1", [])], loss=LOSS, method=dpc.methods.Gcm(resamples=19),
                 progress=print)
    assert capsys.readouterr().out == "1 2\n2 2\n"
