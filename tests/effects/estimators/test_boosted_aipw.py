"""A doubly robust score with boosted models: it bends, and reports what it missed.

False alarms: seeds are fixed, and each limit is at least six of the errors that were measured.
"""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.effects.estimators.models import Feature, Models, functions_of_kinds
from tests.effects.tables import effect_of, table_of

LOSS, EFFECT = dpc.ApproxDP(2, 1e-6), 0.5
SCHEMA: dict[str, Any] = {
    "a": dpc.Levels([0, 1]), "y": dpc.Bounded(-60, 60), "x": dpc.Bounded(-1.75, 1.75), "w": dpc.Bounded(-4, 4),
    "g": dpc.Levels([0, 1]),
}  # fmt: skip


def drawn(n: int, shape: str, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng([seed, n])
    x, w = rng.uniform(-1.75, 1.75, n), np.clip(rng.normal(size=n), -4, 4)
    bent = {"wave": 1.4 * np.sin(3 * x), "line": x, "tail": w**3}[shape]
    a = (rng.random(n) < np.clip(1 / (1 + np.exp(-0.8 * bent)), 0.08, 0.92)).astype(np.int64)
    return {"a": a, "y": EFFECT * a + 0.8 * bent + 0.3 * w + rng.normal(size=n), "x": x, "w": w}


def ask(columns: dict[str, Any], loss: Any = LOSS, seed: int = 1, person: Any = None, **more: Any) -> Any:
    table = table_of(columns, SCHEMA, loss, **({"person": person} if person else {}))
    return effect_of(table, loss, more.pop("method", "boosted-aipw"), seed, **({"adjust": ["x", "w"]} | more))


def test_a_wave_in_both_models_is_adjusted_for_and_the_interval_holds_the_effect() -> None:
    results = [ask(drawn(20_000, "wave", seed), seed=seed) for seed in (1, 2, 3)]
    lines = ask(drawn(20_000, "wave"), method=dpc.methods.Aipw(light_tails=True))
    assert abs(lines.estimate - EFFECT) > 0.3
    for one in results:
        assert one.estimate == pytest.approx(EFFECT, abs=0.2) and one.fit_check is not None
        assert one.interval is None or one.interval[0] < EFFECT < one.interval[1]
    assert any(one.interval is not None for one in results)


def test_the_check_estimates_the_bias_that_is_left_and_its_error_is_in_the_interval() -> None:
    result = ask(drawn(20_000, "line", 2), seed=2)
    check = result.fit_check
    assert 0 < check.error < result.standard_error and abs(check.correction) < 6 * check.error
    assert result.to_dict()["fit_check"]["correction"] == check.correction
    half = (result.interval[1] - result.interval[0]) / 2
    assert half == pytest.approx(1.959964 * result.standard_error, rel=1e-5)


def test_a_tail_that_the_outcome_model_misses_has_no_interval() -> None:
    for seed in (1, 2):
        result = ask(drawn(50_000, "tail", seed), seed=seed)
        assert result.interval is None and result.interval_reason and result.fit_check.tail > 4


@pytest.mark.parametrize("bins", [2, 4, 16])
def test_functions_of_pairs_have_one_sign_in_each_quarter(bins: int) -> None:
    cells = np.arange(64)
    one = Feature(2, -1.0, 2.0, cells * bins // 64, bins, np.ones(64))
    models = Models(np.zeros(3), np.zeros(3), 0.0, 1.0, 0.0, 1.0, (one, one))
    places = [cells.repeat(64), np.tile(cells, 64)]
    for function in functions_of_kinds((one, one), [(0, 1)], "stb"):
        assert function.signs is not None
        in_quarters = function.signs[models.codes(places, (0, 1), (4, 4))]
        assert np.array_equal(in_quarters, models.values(places, function))
