"""Regressors of other libraries inside blocks: what they print, keep, start or fail at."""

from __future__ import annotations

import os
import warnings
from typing import Any, ClassVar

import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor, StackingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dpcausal as dpc
from dpcausal.errors import ParameterError
from tests.independence.neighbours import plan_of

N = 600


def table(effect: float = 1.5) -> dpc.Table:
    data = dpc.simulate.smooth_design(N, effect=effect, seed=2)
    return dpc.Table(data.columns, data.schema, dpc.Ledger.in_memory(dpc.PureDP(1)))


def ask(regression: Any, on: dpc.Table | None = None, **arguments: Any) -> Any:
    with dpc.simulated_noise(5):
        return dpc.ci_test(
            on or table(), "x", "y", given=["z1"], loss=dpc.PureDP(1), regression=regression, **arguments
        )


@pytest.mark.parametrize(
    "regressor",
    [
        RandomForestRegressor(n_estimators=5, verbose=1),
        make_pipeline(StandardScaler(), KNeighborsRegressor(20)),
        GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2),
        StackingRegressor([("ridge", Ridge())], final_estimator=Ridge()),
    ],
    ids=lambda regressor: type(regressor).__name__,
)
def test_any_regressor_of_scikit_learn_serves_inside_a_block(regressor, capfd):
    t = ask(regressor)
    assert t.decision == "dependent" and t.regression == type(regressor).__name__
    assert capfd.readouterr() == ("", "")


def test_a_regressor_prints_nothing_starts_nothing_and_keeps_no_files():
    asked = make_pipeline(StandardScaler(), RandomForestRegressor(verbose=2, n_jobs=2), memory="kept", verbose=True)
    _, plan = plan_of(np.zeros((130, 4)), "gcm", regression=asked)
    used = plan.regression.get_params()
    assert used["memory"] is None and used["verbose"] is used["randomforestregressor__verbose"] is False
    assert used["randomforestregressor__n_jobs"] == 1


class _Telling(LinearRegression):
    """Warns of a value, and remembers the process it ran in."""

    processes: ClassVar[set[int]] = set()

    def fit(self, Z: Any, y: Any) -> Any:
        self.processes.add(os.getpid())
        warnings.warn(f"largest {Z.max()!r}", UserWarning, stacklevel=1)
        return super().fit(Z, y)


def test_rows_stay_in_the_process_and_nothing_is_said_whatever_joblib_was_told(capfd):
    with joblib.parallel_config(backend="loky", n_jobs=2, verbose=11):
        told = ask(_Telling(), workers=2)
    assert _Telling.processes == {os.getpid()}
    assert capfd.readouterr() == ("", "")
    assert told.statistic == ask(_Telling()).statistic


class _Parallel(LinearRegression):
    """Leaves to joblib where its own jobs run, and remembers where."""

    processes: ClassVar[set[int]] = set()

    def fit(self, Z: Any, y: Any) -> Any:
        self.processes.update(joblib.Parallel()(joblib.delayed(os.getpid)() for _ in range(2)))
        return super().fit(Z, y)


def test_a_regressor_that_leaves_its_jobs_to_joblib_keeps_them_in_the_process():
    with joblib.parallel_config(backend="loky", n_jobs=2):
        ask(_Parallel())
        ask(_Parallel(), workers=2)
    assert _Parallel.processes == {os.getpid()}


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
