"""Errors that are stated wrongly where rows are extreme: no interval and no error rather than wrong ones."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.privacy.noise import generator_from_seed
from tests import factories
from tests.effects.moments.test_api import released

SCHEMA = {"y": dpc.Bounded(-40, 40), "a": dpc.Levels([0, 1]), "x": dpc.Bounded(-40, 40)}


def rows(kind: str, seed: int, n: int = 10_000) -> dict[str, Any]:
    rng = generator_from_seed(seed)
    x, e = np.clip(rng.normal(size=n), -4, 4), rng.normal(size=n)
    a = (rng.random(n) < (0.1 if kind == "skewed arm" else 0.3)).astype(int)
    if kind == "skewed arm":
        e = np.where(a == 1, 3 * (rng.exponential(size=n) - 1), e)
    if kind == "skewed regressor":  # and the outcome goes with its logarithm
        x = np.where(rng.random(n) < 0.015, 39.0, np.clip(np.exp(0.75 * rng.normal(size=n)), 0, 8))
    return {"y": np.clip(a + (-2 * np.log1p(x) if kind == "skewed regressor" else x) + e, -40, 40), "a": a, "x": x}


def fit(kind: str, seed: int, epsilon: float, **stated: Any) -> Any:
    moments = released(rows(kind, seed), dpc.ApproxDP(epsilon, 1e-6), ["y", "a", "x"], seed, SCHEMA)
    return moments.ols("y", ["a", "x"], **stated)


@pytest.mark.parametrize("stated", [{"errors": "homoscedastic"}, {"errors": "normal"}])
@pytest.mark.parametrize(("kind", "epsilon"), [("skewed arm", 1.0), ("skewed arm", 4.0), ("skewed regressor", 4.0)])
def test_extreme_rows_refute_a_statement_about_errors(kind: str, epsilon: float, stated: dict[str, Any]) -> None:
    found = [fit(kind, seed, epsilon, **stated) for seed in range(4)]
    assert all(one[name].interval is None and one.interval_reason for one in found for name in "ax")
    assert all(one[name].standard_error == np.inf for one in found for name in "ax")


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_of_normal_rows_the_statement_gives_intervals_that_hold(epsilon: float) -> None:
    found = [fit("normal", seed, epsilon, errors="homoscedastic")["a"] for seed in range(8)]
    shown = [one.interval for one in found if one.interval is not None]
    assert len(shown) >= 5 and sum(low <= 1 <= high for low, high in shown) >= len(shown) - 2


def test_one_slope_of_a_rare_skewed_arm_has_no_interval_by_a_wrong_statement() -> None:
    loss = dpc.ApproxDP(2, 1e-6)
    for errors in ("homoscedastic", "normal"):
        with dpc.simulated_noise(1):
            private = factories.table(rows("skewed arm", 1), SCHEMA, loss)
            found = dpc.effect(private, treatment="a", outcome="y", adjust=["x"], loss=loss,
                               method=dpc.methods.PartiallyLinear(errors=errors))  # fmt: skip
        assert found.interval is None and found.standard_error is None and found.interval_reason
