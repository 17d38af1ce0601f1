"""The spread about a line that goes with the regressors: sandwich errors from a release, with statsmodels' beside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

import dpcausal as dpc
from dpcausal.errors import ParameterError
from tests.effects.test_moments import made, table

NAMES = ["y", "x", "w", "a"]
LOSS = dpc.ApproxDP(1, 1e-6)


def fanned(n: int = 10_000) -> dict[str, Any]:
    return made(n, error=lambda rng, x: rng.normal(size=len(x)) * np.exp(0.5 * x))


def test_without_noise_the_errors_are_the_sandwich_of_statsmodels_in_any_order_of_the_regressors() -> None:
    columns = fanned()
    columns["x"][::9] = np.nan
    release = dpc.moments(table(columns, dpc.NoPrivacy()), NAMES, meat=("y", ["w", "a", "x"]), loss=dpc.NoPrivacy())
    fit = release.ols("y", ["x", "w", "a"])
    whole = ~np.isnan(columns["x"])
    design = np.column_stack([columns["x"], columns["w"], columns["a"] == "yes", np.ones(10_000)])[whole]
    reference = sm.OLS(columns["y"][whole], design.astype(float)).fit(cov_type="HC1")
    assert [one.standard_error for one in fit.coefficients] == pytest.approx(reference.bse, abs=1e-8)
    assert fit["x"].interval is not None and release.ols("y", ["x"])["x"].interval is None


def test_noisy_errors_are_near_the_sandwich_and_come_back_from_the_saved_release() -> None:
    columns = fanned(20_000)
    asked = table(columns, LOSS)
    with dpc.simulated_noise(1):
        release = dpc.moments(asked, NAMES, meat=("y", ["x", "w", "a"]), loss=LOSS)
    assert "second-moments" in release.guarantee.proofs and asked.ledger.remaining.epsilon == 0
    plain = table(columns, dpc.NoPrivacy())
    exact = dpc.moments(plain, NAMES, meat=("y", ["x", "w", "a"]), loss=dpc.NoPrivacy())
    again: Any = dpc.Release.from_json(release.to_json())
    assert again.to_dict() == release.to_dict()
    for name in "xwa":
        one, other = again.ols("y", ["x", "w", "a"])[name], exact.ols("y", ["x", "w", "a"])[name]
        sampling = np.sqrt(one.standard_error**2 - one.noise_error**2)
        # The noise of the meat is .14 of it for rows that spread alike; slopes that are shortened add to it.
        assert sampling == pytest.approx(other.standard_error, rel=0.35)


def test_wrong_names_are_refused_before_the_spend() -> None:
    asked = table(fanned(500), LOSS)
    for wrong in ("y", ("y", []), ("y", ["y"]), ("y", ["nowhere"]), ("nowhere", ["x"]), ("y", "x")):
        with pytest.raises(ParameterError):
            dpc.moments(asked, NAMES, meat=wrong, loss=LOSS)  # type: ignore[arg-type]
    assert asked.ledger.entries() == []
