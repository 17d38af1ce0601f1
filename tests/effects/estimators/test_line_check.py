"""The default effect tests both of its lines with fresh noise: no interval where both miss a curve, one elsewhere.

False alarms: seeds are fixed, and of draws where a line fits less than one in twenty has no interval for the check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.effects.estimators.aipw import BENT

LOSS, EFFECT = dpc.ApproxDP(2, 1e-6), 0.4
CURVES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "step": lambda x, w, g: 2.0 * (x > 0.5) - 0.6,
    "wave": lambda x, w, g: np.sin(4 * x),
    "both above 0": lambda x, w, g: 2.0 * ((x > 0) & (w > 0)) - 0.5,
    "two bands": lambda x, w, g: 1.5 * ((np.abs(x) > 0.4) & (np.abs(x) < 1.1)) - 0.6,
    "a threshold in one group": lambda x, w, g: 2.4 * ((w > 0.9) & (g == 1)) - 0.3,
}


def drawn(of_treatment: str, of_outcome: str, n: int = 20_000, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng([7, seed, n])
    x, w = np.clip(rng.normal(size=(2, n)), -3, 3)
    g = rng.integers(0, 2, n)
    t, o = (CURVES[one](x, w, g) if one in CURVES else 0.6 * x for one in (of_treatment, of_outcome))
    a = (rng.random(n) < 1 / (1 + np.exp(-t))).astype(int)
    return {"a": a, "x": x, "w": w, "g": g, "y": np.clip(EFFECT * a + o + rng.normal(size=n), -12, 12)}


def asked(columns: dict[str, Any], loss: Any = LOSS, seed: int = 1, **more: Any) -> dpc.Effect:
    schema = dpc.Schema({"a": dpc.Levels([0, 1]), "x": dpc.Bounded(-3, 3), "w": dpc.Bounded(-3, 3),
                         "g": dpc.Levels([0, 1]), "y": dpc.Bounded(-12, 12)})  # fmt: skip
    exact = isinstance(loss, dpc.NoPrivacy)
    table = dpc.Table(columns, schema, dpc.Ledger.without_privacy() if exact else dpc.Ledger.in_memory(loss))
    with dpc.simulated_noise(seed):
        return dpc.effect(table, treatment="a", outcome="y", loss=loss, **({"adjust": ["x", "w", "g"]} | more))


@pytest.mark.parametrize("curve", CURVES)
def test_where_both_models_miss_a_curve_there_is_no_interval_and_the_reason_names_a_method(curve: str) -> None:
    found = asked(drawn(curve, curve))
    assert found.method == "aipw" and found.estimate is not None and found.estimate > EFFECT + 0.1
    assert found.interval is None and found.interval_reason == BENT
    check = found.fit_check
    assert check is not None and check.correction > 2 * check.error
    assert max(check.treatment_pvalue, check.outcome_pvalue) < 0.05


@pytest.mark.parametrize(("treatment", "outcome"), [("line", "line"), ("wave", "line"), ("line", "wave")])
def test_where_one_line_fits_the_interval_is_shown_and_holds(treatment: str, outcome: str) -> None:
    found = asked(drawn(treatment, outcome))
    assert found.interval is not None and found.interval[0] < EFFECT < found.interval[1]
    assert found.fit_check is not None and abs(found.fit_check.correction) < 4 * found.fit_check.error


def test_the_check_is_of_groups_too_and_without_privacy() -> None:
    found = asked(drawn("step", "step"), adjust=["x", "w"], groups="g")
    assert [one.interval for one in found.by_group] == [None, None] and found.by_group[0].reason == BENT
    exact = asked(drawn("step", "step"), dpc.NoPrivacy())
    assert exact.interval is None and exact.fit_check is not None and exact.fit_check.treatment_pvalue < 1e-6
    straight = asked(drawn("line", "line"), dpc.NoPrivacy())
    assert straight.interval is not None


def test_where_moments_need_the_loss_nothing_is_checked_and_a_caveat_says_so() -> None:
    few, many = (asked(drawn("line", "line", n), dpc.ApproxDP(1, 1e-6)) for n in (4_000, 20_000))
    assert few.fit_check is None and any("check" in one for one in few.guarantee.caveats)
    assert many.fit_check is not None and not any("no check" in one for one in many.guarantee.caveats)
    assert set(few.guarantee.proofs) < set(many.guarantee.proofs)
