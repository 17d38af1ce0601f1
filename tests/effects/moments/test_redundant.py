"""Columns that others determine, or that are constant: the treatment's slope is the same without them."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.privacy.noise import generator_from_seed
from tests.effects.tables import covered, effect_of, table_of

LOSS = dpc.ApproxDP(2, 1e-6)


def table(seed: int, other: str, n: int = 10_000, loss: Any = LOSS) -> dpc.Table:
    """The effect of a is 1; the other column is a line of x, constant, or a level of which three of four occur."""
    rng = generator_from_seed(seed)
    x = np.clip(rng.normal(size=n), -4, 4)
    s = rng.choice(4, n, p={"levels": [0, 0.3, 0.3, 0.4], "rare": [0.004, 0.3, 0.3, 0.396]}.get(other, [0.25] * 4))
    a = (rng.random(n) < 1 / (1 + np.exp(-0.5 * x - 0.5 * (s - 1.5)))).astype(int)
    y = np.clip(a + x + s + rng.normal(size=n), -8, 12)
    w = {"line": 3 - 2 * x, "constant": np.full(n, 7.0)}.get(other, rng.normal(size=n))
    schema = {"a": dpc.Levels([0, 1]), "x": dpc.Bounded(-4, 4), "w": dpc.Bounded(-10, 12), "y": dpc.Bounded(-8, 12),
              "s": dpc.Levels(range(4))}  # fmt: skip
    return table_of({"a": a, "x": x, "w": w, "y": y, "s": s}, schema, loss)


@cache
def ask(seed: int, other: str, method: Any = "aipw", loss: Any = LOSS, **how: Any) -> Any:
    return effect_of(table(seed, other, loss=loss, **how), loss, method, seed, adjust=["x", "w", "s"])


@pytest.mark.replication
@pytest.mark.parametrize("other", ["line", "constant", "levels"])
def test_an_effect_does_without_a_redundant_column_and_its_interval_holds(other: str) -> None:
    answers = [ask(seed, other) for seed in range(8)]
    for seed, found in enumerate(answers):
        again = dpc.Release.from_json(found.release.to_json())
        assert found.estimate is not None and set(again.names) <= set(found.release.names)
        assert len(found.notes) > len(ask(seed, "none").notes)
    held = covered(answers, 1)
    assert len(held) >= 6 and sum(held) >= len(held) - 2


@pytest.mark.parametrize("other", ["line", "constant", "levels"])
def test_so_does_one_slope_for_all(other: str) -> None:
    found = ask(1, other, dpc.methods.PartiallyLinear(errors="symmetric"), dpc.ApproxDP(6, 1e-6), n=20_000)
    assert found.estimate is not None and abs(found.estimate - 1) < 0.2


def test_dummies_of_which_few_records_have_none_show_no_interval() -> None:
    found = [ask(seed, "rare", n=40_000) for seed in range(4)]
    assert all(one.interval is None and one.interval_reason for one in found)


def test_an_effect_read_off_released_moments_does_without_it_and_a_regression_names_it() -> None:
    with dpc.simulated_noise(1):
        released = dpc.moments(table(1, "line"), ["y", "a", "x", "w"], loss=LOSS)
    found = released.effect(treatment="a", outcome="y", adjust=["x", "w"], errors="homoscedastic")
    alone = released.among(["y", "a", "x"]).effect(treatment="a", outcome="y", adjust=["x"], errors="homoscedastic")
    other = released.among(["y", "a", "w"]).effect(treatment="a", outcome="y", adjust=["w"], errors="homoscedastic")
    assert found.interval is not None and any(found.interval == pytest.approx(one.interval) for one in (alone, other))
    fit = released.ols("y", ["a", "x", "w"], errors="homoscedastic")
    assert fit["a"].interval is None and ("'x'" in fit.interval_reason or "'w'" in fit.interval_reason)


@pytest.mark.parametrize("other", ["line", "constant", "levels"])
@pytest.mark.parametrize("method", ["aipw", "partially-linear"])
def test_without_noise_the_answer_is_that_without_the_column(other: str, method: str) -> None:
    found = ask(1, other, method, dpc.NoPrivacy())
    assert found.interval is not None and found.interval[0] < 1 < found.interval[1]
