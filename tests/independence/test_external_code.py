"""Code that a caller gives to a test, regressors and models of x: it runs in the sandbox wherever it is called.

What the sandbox does with each kind of output and failure is tested in ``tests/privacy/test_sandbox.py``; here each
place is met by code that does all of it for one record alone, and behaves on simulated rows.
"""

import contextlib
import gc
import logging
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

import dpcausal as dpc
from dpcausal.core.run import plan_call, run_many
from dpcausal.errors import ParameterError
from dpcausal.independence.methods import block_test as blocks
from dpcausal.independence.methods import model_x
from dpcausal.independence.question import IndependenceQuestion
from dpcausal.methods import Crt, Gcm
from tests.independence.neighbours import answer_of, plan_of, way
from tests.voices import Heard, state, together

N = 240
SECRET = 0.7319024658
"""The z of one record: where hostile code meets it, it misbehaves."""

DATA = dpc.simulate.smooth_design(N, effect=0.3, seed=2)
LOSS = dpc.PureDP(1)


def columns(row: int = 7, value: float = SECRET) -> dict[str, Any]:
    changed = {name: column.copy() for name, column in DATA.columns.items()}
    changed["z1"][row] = value
    return changed


def ask(method: Any, frame: Any = None, ledger: dpc.Ledger | None = None, loss: Any = LOSS) -> Any:
    missing = "drop" if method.supports_missing else "impute"
    table = dpc.Table(frame or columns(), DATA.schema, ledger or dpc.Ledger.in_memory(LOSS), missing=missing)
    with dpc.simulated_noise(5):
        return dpc.ci_test(table, "x", "y", given=["z1"], loss=loss, method=method)


class Panic(BaseException):
    """As libraries in other languages raise."""


class FailsWhenDropped:
    def __init__(self, text: str) -> None:
        self.text = text

    def __del__(self) -> None:
        raise ValueError(self.text)


def tell(text: str) -> None:
    print(text)
    print(text, file=sys.__stderr__)
    logging.disable(logging.NOTSET)
    logging.getLogger("external").critical(text)
    warnings.simplefilter("always")
    warnings.warn(text, UserWarning, stacklevel=1)
    FailsWhenDropped(text)
    gc.collect(0)


def tell_and_change(text: str) -> None:
    def work() -> None:
        tell(text)
        raise ValueError(text)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    joblib.Parallel(n_jobs=2, backend="threading", verbose=50)(joblib.delayed(tell)(text) for _ in range(2))
    np.random.set_bit_generator(np.random.PCG64(1))
    np.random.normal()
    random.seed(1)
    warnings.simplefilter("ignore")
    np.seterr(all="raise")
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def raises(kind: type[BaseException]) -> Callable[[str], None]:
    def act(text: str) -> None:
        try:
            raise ValueError(text)
        except ValueError:
            raise kind(text)

    return act


def interrupt(text: str) -> None:
    """Press Ctrl-C, wait until it is noticed, and hide it behind another error."""
    with contextlib.suppress(BaseException):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    raise LookupError(text)


KINDS = ValueError, MemoryError, KeyboardInterrupt, GeneratorExit, SystemExit, StopIteration, Panic, Warning
ACTS = {"tells": tell, "tells and changes": tell_and_change, "interrupt": interrupt}
ACTS |= {kind.__name__: raises(kind) for kind in KINDS}
acted: list[str] = []


def perform(act: str) -> None:
    acted.append(act)
    ACTS[act](f"the value is {SECRET}")


class Regressor(LinearRegression):
    """Acts where a standardised value is that of an outlier: simulated rows have none."""

    def __init__(self, act: str = "tells", fit_intercept: bool = True) -> None:
        super().__init__(fit_intercept=fit_intercept)
        self.act = act

    def fit(self, Z: Any, y: Any) -> Any:
        if np.abs(y).max() > 2.2:
            perform(self.act)
        return super().fit(Z, y)


def external_code(act: str) -> dict[str, Any]:
    """Return a method for each place where code of the caller's is taken."""

    def seen(Z: Any, values: Any) -> Any:
        if np.isclose(Z, SECRET, rtol=0, atol=1e-12).any():
            perform(act)
        return values

    normal = {
        "mean": dpc.ModelX(mean=lambda Z: seen(Z, np.sin(2 * Z[:, 0])), sd=1.0),
        "sd": dpc.ModelX(mean=lambda Z: 0 * Z[:, 0], sd=lambda Z: seen(Z, np.ones(len(Z)))),
    }
    sampler = dpc.ModelX(sample=lambda Z, generator: seen(Z, generator.normal(size=len(Z))))
    return {
        **{f"{part} of {method}": way(method, model_x=model)
           for part, model in normal.items() for method in ("crt", "crt-decision", "PrivCRT")},
        "sampler of crt": way("crt", model_x=sampler),
        "regressor of crt": way("crt", model_x=normal["mean"], regression=Regressor(act)),
        "regressor of gcm": way("gcm", regression=Regressor(act)),
        "regressor of gcm-weighted": way("gcm-weighted", regression=Regressor(act)),
    }  # fmt: skip


@pytest.mark.parametrize("place", external_code("tells"))
@pytest.mark.parametrize("act", ["tells and changes", "KeyboardInterrupt", "Panic"])
def test_code_of_the_caller_neither_tells_of_a_row_nor_ends_the_call(place: str, act: str, heard: Heard) -> None:
    before = state()
    acted.clear()
    assert ask(external_code(act)[place]).decision in ("dependent", "not detected")
    assert act in acted and str(SECRET) not in heard() and state() == before


def test_the_acts_are_heard_outside_and_each_failure_is_contained_inside(heard: Heard) -> None:
    perform("tells")
    assert str(SECRET) in heard()
    for kind in KINDS:
        assert ask(external_code(kind.__name__)["regressor of gcm"]).statistic is not None
    assert str(SECRET) not in heard()


@pytest.mark.parametrize("place", ["regressor of gcm", "mean of crt", "sampler of crt"])
def test_code_of_the_caller_is_contained_without_privacy_too(place: str, heard: Heard) -> None:
    before = state()
    ask(external_code("tells")[place], ledger=dpc.Ledger.without_privacy(), loss=dpc.NoPrivacy())
    assert str(SECRET) not in heard() and state() == before


@pytest.mark.parametrize("kind", KINDS)
def test_code_that_fails_on_simulated_rows_is_refused_unspent(kind: type[BaseException]) -> None:
    def fail(*_: Any) -> Any:
        raises(kind)("")

    class Failing(LinearRegression):
        fit = fail

    for method in (
        Crt(model_x=dpc.ModelX(mean=fail, sd=1.0)), Crt(model_x=dpc.ModelX(sample=fail)), Gcm(regression=Failing()),
    ):  # fmt: skip
        ledger = dpc.Ledger.in_memory(LOSS)
        with pytest.raises(ParameterError, match=kind.__name__):
            ask(method, ledger=ledger)
        assert not ledger.entries()


def draws(Z: Any) -> Any:
    """Draw from the process's own streams as often as a row says, and return what was drawn."""
    return np.array([sum(np.random.normal() + random.random() for _ in range(1 + int(row > 0))) for row in Z[:, 0]])


class Drawing(LinearRegression):
    def fit(self, Z: Any, y: Any) -> Any:
        for _ in range(1 + int(Z[0, 0] > 0)):
            self.drawn = np.random.normal() + random.random()
        return super().fit(Z, y)

    def predict(self, Z: Any) -> Any:
        return super().predict(Z) + self.drawn * Z[:, 0] ** 2


DRAWN = {"mean": dpc.ModelX(mean=draws, sd=1.0), "sd": dpc.ModelX(mean=lambda Z: 0 * Z[:, 0], sd=draws)}


def test_what_a_model_draws_at_one_row_moves_no_other_rows_distribution() -> None:
    Z = np.linspace(-1, 1, 9)[:, None]
    moved = Z.copy()
    moved[2] = 1.0
    for model in DRAWN.values():
        one, other = model.at(Z, row_by_row=True), model.at(moved, row_by_row=True)
        for before, after in ((one.centre, other.centre), (one.spread, other.spread)):
            assert (np.delete(before, 2) == np.delete(after, 2)).all()
        assert (one.centre != other.centre).any() or (one.spread != other.spread).any()


@pytest.mark.proves("block-sum")
@pytest.mark.parametrize("part", ["mean", "sd", "sample", "regression"])
def test_a_replaced_row_moves_one_block_though_code_draws_from_streams_of_the_process(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[float]] = []
    honest = blocks.block_scores

    def keep(*arguments: Any) -> list[float]:
        seen.append(honest(*arguments))
        return seen[-1]

    monkeypatch.setattr(blocks, "block_scores", keep)
    monkeypatch.setattr(model_x, "_check_rowwise", lambda *_, **__: None)  # that would refuse what draws
    models = {**DRAWN, "sample": dpc.ModelX(sample=lambda Z, generator: draws(Z))}
    for row in range(4):
        for value in (-8.0, 8.0):
            np.random.seed(0)
            random.seed(0)
            own = {"regression": Drawing()} if part == "regression" else {"model_x": models[part], "resamples": 199}
            ask((Gcm if part == "regression" else Crt)(blocks=4, **own), columns(row, value))
    pairs = list(zip(seen[::2], seen[1::2], strict=True))
    assert all(sum(one != other for one, other in zip(before, after, strict=True)) <= 1 for before, after in pairs)
    assert any(before != after for before, after in pairs)


def test_a_real_interrupt_ends_a_call_inside_a_regressor_and_the_spend_stands(heard: Heard) -> None:
    ledger = dpc.Ledger.in_memory(dpc.PureDP(2))
    with pytest.raises(KeyboardInterrupt) as ended:
        ask(external_code("interrupt")["regressor of gcm"], ledger=ledger)
    assert ended.value.__context__ is None and str(SECRET) not in heard()
    assert [entry.task for entry in ledger.entries()] == ["ci_test"] and ledger.remaining.epsilon == 1


def test_calls_in_several_threads_are_contained_and_agree(heard: Heard) -> None:
    places = "mean of crt", "regressor of gcm"
    before = state()
    alone = {ask(external_code("tells")[place]).statistic for place in places}
    statistics: list[float] = []
    together(*(
        lambda place=place: statistics.append(ask(external_code("tells")[place]).statistic)
        for place in places for _ in range(3)
    ))  # fmt: skip
    assert set(statistics) == alone and str(SECRET) not in heard() and state() == before


@pytest.mark.parametrize("method", [
    lambda workers: Gcm(workers=workers),
    lambda workers: Crt(model_x=dpc.ModelX(mean=lambda Z: np.sin(2 * Z[:, 0]), sd=1.0), workers=workers, resamples=19),
])  # fmt: skip
def test_workers_are_threads_whatever_joblib_is_set_to_and_do_not_change_the_answer(
    method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes, kind = set(), type(method(1))
    honest = kind.score
    monkeypatch.setattr(kind, "score", lambda *rows: processes.add(os.getpid()) or honest(*rows))
    with joblib.parallel_config(backend="loky", n_jobs=2, verbose=11):
        several = ask(method(2))
    assert processes == {os.getpid()} and several.statistic == ask(method(1)).statistic


class InParallel(LinearRegression):
    processes: ClassVar[set[int]] = set()

    def fit(self, Z: Any, y: Any) -> Any:
        print(f"largest {Z.max()!r}")
        self.processes.update(joblib.Parallel()(joblib.delayed(os.getpid)() for _ in range(2)), [os.getpid()])
        return super().fit(Z, y)


def test_rows_stay_in_the_process_whatever_joblib_is_set_to(capfd: pytest.CaptureFixture[str]) -> None:
    table = dpc.Table(DATA.columns, DATA.schema, dpc.Ledger.in_memory(LOSS))
    question = IndependenceQuestion.of(table, "x", "y", ["z1"], 0.05)
    with joblib.parallel_config(backend="loky", n_jobs=2, verbose=11):
        plan = plan_call(question, Gcm(regression=InParallel()), LOSS)
        capfd.readouterr()  # of the trial on simulated rows
        (answer,) = run_many([plan], table.ledger.charge(plan.spent, task="test"), seed=1)
    assert InParallel.processes == {os.getpid()} and np.isfinite(answer.statistic)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("regressor", [
    RandomForestRegressor(n_estimators=5, verbose=1), make_pipeline(StandardScaler(), KNeighborsRegressor(20)),
    GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2),
    make_pipeline(KBinsDiscretizer(5, dtype=np.float64), Ridge()),
], ids=lambda regressor: type(regressor).__name__)  # fmt: skip
def test_any_regressor_of_scikit_learn_serves_inside_a_block(regressor: Any, capfd: Any) -> None:
    data = dpc.simulate.smooth_design(1_260, effect=1.5, seed=2)
    t = ask(Gcm(regression=regressor, blocks=14), data.columns)
    assert t.decision == "dependent" and t.settings["regression"] == type(regressor).__name__
    assert capfd.readouterr() == ("", "")


def copied(regression: Any) -> Any:
    """Return the regressor as the blocks will have it."""
    method: Any = plan_of(np.zeros((130, 4)), "gcm", regression=regression).method
    return method.regression


def test_the_copy_of_a_regressor_prints_nothing_starts_nothing_keeps_no_files_and_calls_nobody() -> None:
    pipeline = make_pipeline(StandardScaler(), RandomForestRegressor(verbose=2, n_jobs=2), memory="kept", verbose=True)
    pipeline._skl_callbacks = pipeline.steps[1][1]._skl_callbacks = ["mine"]
    used = copied(pipeline).get_params()
    assert used["memory"] is None and used["verbose"] is used["randomforestregressor__verbose"] is False
    assert used["randomforestregressor__n_jobs"] == 1
    assert not any(hasattr(part, "_skl_callbacks") for part in (copied(pipeline), used["randomforestregressor"]))
    inner = make_pipeline(StandardScaler(), Ridge(), memory="kept")
    search = GridSearchCV(Pipeline([("m", Ridge())]), {"m": [inner]}, cv=2, n_jobs=2)
    assert copied(search).n_jobs == 1 and copied(search).param_grid["m"][0].memory is None
    assert inner.memory == "kept" and search.n_jobs == 2


def test_a_regressor_sees_a_column_for_each_declared_level_in_every_block() -> None:
    widths: set[int] = set()

    class Noting(LinearRegression):
        def fit(self, Z: Any, y: Any) -> Any:
            widths.add(Z.shape[1])
            return super().fit(Z, y)

    rng = np.random.default_rng(1)
    unit = dpc.Bounded(0, 1)
    frame = {name: rng.random(600) for name in ("x", "y", "z2")} | {"z1": np.where(np.arange(600) < 2, 2, 0)}
    schema = dpc.Schema({"x": unit, "y": unit, "z1": dpc.Levels([0, 1, 2]), "z2": unit})
    answer_of(frame, schema, given=["z1", "z2"], loss=LOSS, method=Gcm(regression=Noting()))
    assert widths == {4}


@pytest.mark.parametrize("method", [
    Gcm(regression=RandomForestRegressor(n_estimators=-3)), Gcm(regression=LogisticRegression()),
    Gcm(regression=KNeighborsRegressor(500)), Gcm(regression=RandomForestRegressor), Gcm(regression=Ridge),
    Gcm(regression=Ridge(), workers=2),
    Crt(model_x=dpc.ModelX(sample=lambda Z, generator: Z[:, 0]), workers=2),
])  # fmt: skip
def test_a_regressor_that_cannot_serve_is_refused_before_anything_is_spent(method: Any) -> None:
    ledger = dpc.Ledger.in_memory(LOSS)
    with pytest.raises(ParameterError):
        ask(method, ledger=ledger)
    assert not ledger.entries()
