"""Code that a caller gives to a test, as hostile as it can be: a regressor, a model's mean, spread and sampler.

Each guest does one thing that would tell of a row, or break off the call for one row alone; on made-up rows it behaves.
"""

from __future__ import annotations

import gc
import logging
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.linear_model import LinearRegression

import dpcausal as dpc
from tests.independence.neighbours import way
from tests.voices import Heard, state

N = 600
SECRET = 0.7319024658
"""The z of one record: where a guest meets it, it misbehaves."""

DATA = dpc.simulate.smooth_design(N, effect=0.3, seed=2)


def columns(hot: bool = True) -> dict[str, Any]:
    found = {name: column.copy() for name, column in DATA.columns.items()}
    if hot:
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
    gc.collect()


def raises(kind: type[BaseException]) -> Callable[[str], None]:
    def act(text: str) -> None:
        try:
            raise ValueError(text)
        except ValueError:
            raise kind(text)

    return act


TELLING: dict[str, Callable[[str], None]] = {
    "says": says, "logs": logs, "warns": warns, "starts threads": in_threads, "drops what fails": drops,
}  # fmt: skip
FAILING: dict[str, Callable[[str], None]] = {
    kind.__name__: raises(kind)
    for kind in (ValueError, MemoryError, KeyboardInterrupt, GeneratorExit, SystemExit, StopIteration, Panic, Warning)
}
ACTS = TELLING | FAILING


# -------------------------------------------------------------------------------------------- the guests


def hostile(act: Callable[[str], None], only: float = SECRET) -> Callable[[Any], None]:
    """Return what acts where one record's value is among those it sees."""

    def seen(Z: Any) -> None:
        if np.isclose(Z, only, rtol=0, atol=1e-12).any():
            act(f"the value is {only}")

    return seen


class Regressor(LinearRegression):
    """Acts where a standardised value is that of an outlier: made-up rows have none."""

    def __init__(self, act: str = "says", fit_intercept: bool = True) -> None:
        super().__init__(fit_intercept=fit_intercept)
        self.act = act

    def fit(self, Z: Any, y: Any) -> Any:
        if np.abs(y).max() > 2.2:
            ACTS[self.act](f"the value is {SECRET}")
        return super().fit(Z, y)


def guests(act: str) -> dict[str, dict[str, Any]]:
    """Return a call for each place where code of the caller's is taken."""
    seen = hostile(ACTS[act])

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
        for method in ("crt", "cpt", "crt-decision", "PrivCRT")
    }
    models["sampler of crt"] = {"method": "crt", "model_x": dpc.ModelX(sample=sample)}
    models["regressor of crt"] = {"method": "crt", "model_x": normal["mean"], "regression": Regressor(act)}
    return models | {
        f"regressor of {method}": {"method": method, "regression": Regressor(act)} for method in ("gcm", "gcm-weighted")
    }


PLACES = sorted(guests("says"))


def ask(place: str, act: str, hot: bool = True, **options: Any) -> Any:
    call = guests(act)[place] | options
    table = dpc.Table(columns(hot), DATA.schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    with dpc.simulated_noise(5):
        return dpc.ci_test(table, "x", "y", given=["z1"], loss=dpc.PureDP(1), method=way(call.pop("method"), **call))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("act", sorted(TELLING))
def test_nothing_that_a_guest_says_is_heard(place: str, act: str, heard: Heard) -> None:
    before = state()
    found = ask(place, act)
    assert found.statistic is not None
    assert str(SECRET) not in heard()
    assert state() == before


def test_the_guests_are_loud_and_the_ears_hear_them(heard: Heard) -> None:
    told = f"the value is {SECRET}"
    for act in TELLING.values():
        heard()
        act(told)
        gc.collect()
        assert told in heard()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("act", sorted(FAILING))
def test_no_failure_of_a_guest_ends_the_call_or_tells_of_itself(
    place: str, act: str, heard: Heard
) -> None:
    before = state()
    found = ask(place, act)
    assert found.decision in ("dependent", "not shown")
    assert str(SECRET) not in heard()
    assert state() == before
