"""Instruments read off moments: two-stage least squares as of linearmodels, Anderson–Rubin sets by statsmodels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from linearmodels.iv import IV2SLS

import dpcausal as dpc
from dpcausal.errors import ParameterError

LOSS = dpc.ApproxDP(1, 1e-6)


def made(strength: float, n: int = 10_000, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    z, w, x, u = rng.normal(size=(4, n))
    a = strength * z + 0.6 * strength * w + 0.4 * x + u + rng.normal(size=n)
    return {"y": 1 + 0.7 * a - 0.5 * x + u + rng.normal(size=n), "a": a, "x": x, "z": z, "w": w}


def released(columns: dict[str, Any], loss: Any = LOSS) -> Any:
    exact = isinstance(loss, dpc.NoPrivacy)
    schema = dpc.Schema(dict.fromkeys(columns, dpc.Bounded(-15, 15)))
    ledger = dpc.Ledger.without_privacy() if exact else dpc.Ledger.in_memory(loss)
    return dpc.moments(dpc.Table(columns, schema, ledger), list(columns), loss=loss)


def test_without_noise_it_is_two_stage_least_squares_and_the_ends_of_the_set_are_where_the_f_test_says() -> None:
    columns = made(0.5)
    fit = released(columns, dpc.NoPrivacy()).iv("y", "a", instruments=["z", "w"], given=["x"], errors="homoscedastic")
    y, a, x, z, w = (columns[name] for name in "yaxzw")
    exogenous = sm.add_constant(np.column_stack([z, w, x]), prepend=False)
    held = np.column_stack([np.ones(len(x)), x])
    reference = IV2SLS(y, held, a, np.column_stack([z, w])).fit(cov_type="unadjusted", debiased=True)
    order = ["endog", "exog.1"]
    assert [one.estimate for one in fit.coefficients] == pytest.approx(reference.params[order].tolist(), abs=1e-8)
    assert [one.standard_error for one in fit.coefficients] == pytest.approx(
        reference.std_errors[order].tolist(), abs=1e-8
    )
    instruments = np.eye(4)[:2]
    assert fit.strength == pytest.approx(sm.OLS(a, exogenous).fit().f_test(instruments).fvalue, rel=1e-8)
    ((low, high),) = fit.anderson_rubin
    for end in (low, high):
        f = sm.OLS(y - end * a, exogenous).fit().f_test(instruments).fvalue
        assert 2 * f == pytest.approx(5.991464547, rel=1e-8)


def test_the_set_is_unbounded_where_the_instruments_do_nothing_and_two_stage_intervals_are_withheld() -> None:
    unbounded = 0
    for seed in range(5):
        with dpc.simulated_noise(seed):
            release = released(made(0.0, seed=seed))
        fit = release.iv("y", "a", instruments=["z", "w"], given=["x"], errors="homoscedastic")
        assert fit["a"].interval is None and "below 104.7" in fit.interval_reason and fit.strength < 20
        assert fit.anderson_rubin is not None
        unbounded += any(np.inf in map(abs, pair) for pair in fit.anderson_rubin)
    assert unbounded >= 4


def test_noisy_sets_hold_the_slope_and_are_wider_than_without_noise() -> None:
    columns = made(0.5)
    with dpc.simulated_noise(3):
        release = released(columns)
    noisy = release.iv("y", "a", instruments=["z"], given=["x", "w"], errors="homoscedastic")
    plain = released(columns, dpc.NoPrivacy()).iv("y", "a", instruments=["z"], given=["x", "w"], errors="homoscedastic")
    (pair,), (own,) = noisy.anderson_rubin, plain.anderson_rubin
    assert pair[0] < 0.7 < pair[1] and pair[1] - pair[0] > own[1] - own[0]
    assert noisy["a"].interval is not None and "Anderson–Rubin" in noisy.details()
    assert release.iv("y", "a", instruments=["z"]).anderson_rubin is None  # nobody said that the spread is constant


def test_wrong_names_are_refused() -> None:
    release = released(made(0.5, 500), dpc.NoPrivacy())
    for wrong in ({"instruments": []}, {"instruments": ["y"]}, {"instruments": ["z"], "given": ["z"]}):
        with pytest.raises(ParameterError):
            release.iv("y", "a", **wrong)


def test_moments_that_are_mostly_noise_have_an_answer_without_an_interval() -> None:
    # Of 300 rows the noise is larger than what they are: a first stage had no width in one direction, and no inverse.
    for seed in range(12):
        with dpc.simulated_noise(seed):
            release = released(made(0.0, 300, seed))
        fit = release.iv("y", "a", instruments=["z", "w"], given=["x"], errors="homoscedastic")
        assert fit.anderson_rubin is None and fit["a"].interval is None and fit.strength >= 0
