"""Regressors of other libraries inside blocks: what they print, keep, start or fail at."""

from __future__ import annotations

import logging
import math
import os
import random
import sys
import warnings
from typing import Any, ClassVar

import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor, StackingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

import dpcausal as dpc
from dpcausal.core.run import plan_call, run_many
from dpcausal.errors import ParameterError
from dpcausal.independence.methods import block_test as blocks
from dpcausal.independence.question import IndependenceQuestion
from dpcausal.methods import Crt, Gcm
from tests.independence.neighbours import plan_of

N = 600


def table(effect: float = 1.5, rows: int = N) -> dpc.Table:
    data = dpc.simulate.smooth_design(rows, effect=effect, seed=2)
    return dpc.Table(data.columns, data.schema, dpc.Ledger.in_memory(dpc.PureDP(1)))


def ask(regression: Any, on: dpc.Table | None = None, **options: Any) -> Any:
    method = Gcm(regression=regression, **options)
    with dpc.simulated_noise(5):
        return dpc.ci_test(on or table(), "x", "y", given=["z1"], loss=dpc.PureDP(1), method=method)


def settled(regression: Any) -> Any:
    """Return the regressor as the blocks will have it."""
    method: Any = plan_of(np.zeros((130, 4)), "gcm", regression=regression).method
    return method.regression


@pytest.mark.parametrize(
    "regressor",
    [
        RandomForestRegressor(n_estimators=5, verbose=1),
        make_pipeline(StandardScaler(), KNeighborsRegressor(20)),
        GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2),
        StackingRegressor([("ridge", Ridge())], final_estimator=Ridge()),
        make_pipeline(KBinsDiscretizer(5, dtype=np.float64), Ridge()),
    ],
    ids=lambda regressor: type(regressor).__name__,
)
def test_any_regressor_of_scikit_learn_serves_inside_a_block(regressor, capfd):
    t = ask(regressor, table(rows=1_800), blocks=20)
    assert t.decision == "dependent" and t.settings["regression"] == type(regressor).__name__
    assert capfd.readouterr() == ("", "")


def test_a_regressor_prints_nothing_starts_nothing_and_keeps_no_files():
    asked = make_pipeline(StandardScaler(), RandomForestRegressor(verbose=2, n_jobs=2), memory="kept", verbose=True)
    used = settled(asked).get_params()
    assert used["memory"] is None and used["verbose"] is used["randomforestregressor__verbose"] is False
    assert used["randomforestregressor__n_jobs"] == 1


def test_what_stands_in_lists_and_grids_is_made_quiet_too():
    inner = make_pipeline(StandardScaler(), Ridge(), memory="kept")
    asked = GridSearchCV(Pipeline([("m", Ridge())]), {"m": [inner]}, cv=2, n_jobs=2)
    used = settled(asked)
    assert used.n_jobs == 1 and used.param_grid["m"][0].memory is None
    assert inner.memory == "kept" and asked.n_jobs == 2


def test_a_regressor_sees_a_column_for_each_declared_level_in_every_block():
    seen: set[int] = set()

    class Noting(LinearRegression):
        def fit(self, Z: Any, y: Any) -> Any:
            seen.add(Z.shape[1])
            return super().fit(Z, y)

    rng = np.random.default_rng(1)
    columns = {"x": rng.random(N), "y": rng.random(N), "z1": np.where(np.arange(N) < 2, 2, 0), "z2": rng.random(N)}
    schema = dpc.Schema(
        {"x": dpc.Bounded(0, 1), "y": dpc.Bounded(0, 1), "z1": dpc.Levels([0, 1, 2]), "z2": dpc.Bounded(0, 1)}
    )
    asked = dpc.Table(columns, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    dpc.ci_test(asked, "x", "y", given=["z1", "z2"], loss=dpc.PureDP(1), method=Gcm(regression=Noting()))
    assert seen == {4}


class _Telling(LinearRegression):
    """Says and warns of a value, and remembers the processes that it and its own parallel part ran in."""

    processes: ClassVar[set[int]] = set()

    def fit(self, Z: Any, y: Any) -> Any:
        print(f"largest {Z.max()!r}")
        logging.getLogger("guest").critical("largest %r", Z.max())
        warnings.warn(f"largest {Z.max()!r}", UserWarning, stacklevel=1)
        self.processes.update(joblib.Parallel()(joblib.delayed(os.getpid)() for _ in range(2)))
        self.processes.add(os.getpid())
        return super().fit(Z, y)


def test_rows_stay_in_the_process_and_nothing_is_said_whatever_joblib_was_told(capfd, caplog):
    asked = table()
    with joblib.parallel_config(backend="loky", n_jobs=2, verbose=11):
        plan = plan_call(
            IndependenceQuestion.of(asked, "x", "y", ["z1"], 0.05), Gcm(regression=_Telling()), dpc.PureDP(1)
        )
        capfd.readouterr()  # of the trial on made-up rows
        caplog.clear()
        (told,) = run_many([plan], asked.ledger.charge(plan.spent, task="test"), seed=1)
    assert _Telling.processes == {os.getpid()} and math.isfinite(told.statistic)
    assert capfd.readouterr() == ("", "") and not caplog.records
    assert logging.root.manager.disable == logging.NOTSET


def test_workers_are_threads_whatever_joblib_was_told(monkeypatch):
    seen, honest = set(), Gcm.score

    def score(*arguments: Any) -> float:
        seen.add(os.getpid())
        return honest(*arguments)

    monkeypatch.setattr(Gcm, "score", score)
    with joblib.parallel_config(backend="loky", n_jobs=2, verbose=11):
        several = ask(None, workers=2)
    assert seen == {os.getpid()} and several.statistic == ask(None).statistic


class _Rolling(LinearRegression):
    """Draws from the process's own streams as often as a value says, and adds what it draws."""

    def fit(self, Z: Any, y: Any) -> Any:
        for _ in range(1 + int(Z[0, 0] > 0)):
            self.coins = np.random.normal() + random.random()
        return super().fit(Z, y)

    def predict(self, Z: Any) -> Any:
        return super().predict(Z) + self.coins * Z[:, 0] ** 2


@pytest.mark.proves("block-sum")
def test_a_replaced_row_moves_one_block_though_a_regressor_draws_from_streams_of_the_process(monkeypatch):
    seen: list[list[int]] = []
    honest = blocks.block_sum

    def keep(terms: list[int], *rest: Any) -> Any:
        seen.append(terms)
        return honest(terms, *rest)

    monkeypatch.setattr(blocks, "block_sum", keep)
    data = dpc.simulate.smooth_design(N, effect=0.3, seed=2)
    for row in range(6):
        for value in (-8.0, 8.0):
            columns = {name: column.copy() for name, column in data.columns.items()}
            columns["z1"][row] = value
            np.random.seed(0)
            random.seed(0)
            ask(_Rolling(), dpc.Table(columns, data.schema, dpc.Ledger.in_memory(dpc.PureDP(1))), blocks=10)
    for before, after in zip(seen[::2], seen[1::2], strict=True):
        assert sum(one != other for one, other in zip(before, after, strict=True)) <= 1
    assert seen[0] != seen[1]


def test_a_regressor_or_sampler_runs_with_one_worker():
    for method in (Gcm(regression=Ridge(), workers=2),
                   Crt(model_x=dpc.ModelX(sample=lambda Z, coins: Z[:, 0]), workers=2)):  # fmt: skip
        with pytest.raises(ParameterError, match="runs with one"):
            dpc.ci_test(table(), "x", "y", given=["z1"], loss=dpc.PureDP(1), method=method)


def test_callbacks_of_a_regressor_see_no_rows():
    asked = make_pipeline(StandardScaler(), Ridge())
    asked._skl_callbacks = asked.steps[1][1]._skl_callbacks = ["mine"]
    used = settled(asked)
    for part in (used, used.steps[1][1]):
        assert not hasattr(part, "_skl_callbacks")


@pytest.mark.parametrize(
    ("regressor", "message"),
    [
        (RandomForestRegressor(n_estimators=-3), "InvalidParameterError"),
        (LogisticRegression(), "ValueError"),
        (KNeighborsRegressor(500), "ValueError"),  # more than a block has
        (RandomForestRegressor, "must be one of"),
        (Ridge, "must be one of"),
    ],
)
def test_a_regressor_that_can_never_fit_is_refused_before_anything_is_spent(regressor, message):
    asked = table()
    with pytest.raises(ParameterError, match=message):
        ask(regressor, asked)
    assert not asked.ledger.entries()


def test_calls_in_several_threads_leave_the_process_as_it_was():
    from concurrent.futures import ThreadPoolExecutor

    kept, state = sys.stdout, np.random.get_state()[1].copy()
    with ThreadPoolExecutor(3) as pool:
        # Simulated noise is the thread's own.
        found = list(pool.map(lambda _: ask(LinearRegression()).statistic, range(6)))
    assert len(set(found)) == 1 and sys.stdout is kept and not kept.closed
    assert (np.random.get_state()[1] == state).all() and logging.root.manager.disable == logging.NOTSET


class _Panic(BaseException):
    """As libraries in other languages raise."""


class _Panicking(LinearRegression):
    def fit(self, Z: Any, y: Any) -> Any:
        if np.abs(y).max() > 2.5:  # not on made-up rows
            raise _Panic(f"row {y.max()!r}")
        return super().fit(Z, y)


def test_no_kind_of_failure_escapes_a_block():
    assert ask(_Panicking()).decision in ("dependent", "not detected")
