"""An effect read off released moments is a slope: that of ``ols``, with its caveats, for nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

import dpcausal as dpc
from dpcausal.errors import ParameterError

NAMES = ("y", "a", "x")
SCHEMA = dpc.Schema({"y": dpc.Bounded(-15, 15), "a": dpc.Levels([0, 1]), "x": dpc.Bounded(-6, 6)})


def released(loss: Any, n: int = 20_000) -> tuple[Any, dict[str, Any], dpc.Ledger]:
    rng = np.random.default_rng(5)
    x = np.clip(rng.normal(size=n), -6, 6)
    a = (rng.random(n) < 0.5 + 0.1 * x).astype(int)
    columns = {"y": np.clip(0.4 * a + x + rng.normal(size=n), -15, 15), "a": a, "x": x}
    exact = isinstance(loss, dpc.NoPrivacy)
    ledger = dpc.Ledger.without_privacy() if exact else dpc.Ledger.in_memory(loss)
    with dpc.simulated_noise(4):
        return dpc.moments(dpc.Table(columns, SCHEMA, ledger), list(NAMES), loss=loss), columns, ledger


def test_without_noise_it_is_the_slope_of_least_squares_to_8_digits() -> None:
    moments, columns, _ = released(dpc.NoPrivacy())
    found = moments.effect(treatment="a", outcome="y", adjust=["x"], errors="homoscedastic")
    fit = sm.OLS(columns["y"], sm.add_constant(np.column_stack([columns["a"], columns["x"]]))).fit()
    assert found.estimate == pytest.approx(fit.params[1], abs=1e-8)
    assert found.standard_error == pytest.approx(fit.bse[1], rel=1e-6)


def test_it_is_the_slope_of_ols_with_its_interval_and_its_reasons_and_costs_nothing() -> None:
    moments, _, ledger = released(dpc.ApproxDP(1, 1e-6))
    spent = len(ledger.entries())
    for said in ({"errors": "homoscedastic"}, {}):
        found = moments.effect(treatment="a", outcome="y", adjust=["x"], **said)
        slope = moments.ols("y", ["a", "x"], **said)
        assert (found.estimate, found.interval) == (slope["a"].estimate, slope["a"].interval)
        assert found.interval_reason == slope.interval_reason and found.estimand == "slope"
        assert found.robustness_value == slope["a"].robustness_value
        assert "along a line" in found.details() and "Robustness value" in found.details()
    assert len(ledger.entries()) == spent and abs((found.estimate or 0) - 0.4) < 5 * (found.standard_error or 0)
    again = dpc.Release.from_json(moments.to_json()).effect(treatment="a", outcome="y", adjust=["x"])  # type: ignore[attr-defined]
    assert again.estimate == found.estimate and dict(again.to_dict())["estimand"] == "slope"


@pytest.mark.parametrize("wrong", [{"outcome": "a"}, {"adjust": ["a"]}, {"adjust": ["z"]}, {"treatment": "none"}])
def test_columns_that_are_none_or_named_twice_are_refused(wrong: dict[str, Any]) -> None:
    moments, _, _ = released(dpc.NoPrivacy(), 1_000)
    with pytest.raises(ParameterError):
        moments.effect(**({"treatment": "a", "outcome": "y", "adjust": ["x"]} | wrong))
