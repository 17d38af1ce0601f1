"""Numbers whose declared bounds are far too wide: intervals hold, or none is shown."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.effects.cells.api import FINE, is_clear, window
from dpcausal.privacy.noise import generator_from_seed
from tests import factories
from tests.effects.tables import covered, effect_of

LOSS = dpc.PureDP(1)


def strata(wide: float, seed: int, n: int = 20_000, shape: str = "normal") -> Any:
    rng = generator_from_seed(seed)
    x = np.clip(rng.normal(size=n), -4, 4) if shape == "normal" else np.minimum(rng.exponential(size=n), 8)
    a = (rng.random(n) < 1 / (1 + np.exp(-x))).astype(int)
    y = np.clip(a + 2 * x + rng.normal(size=n), -20, 25)
    schema = {"a": dpc.Levels([0, 1]), "x": dpc.Bounded(-8 * wide, 8 * wide), "y": dpc.Bounded(-20, 25)}
    return factories.table({"a": a, "x": x, "y": y}, schema, LOSS)


def jump(wide: float, seed: int, n: int = 20_000, bend: bool = True, law: str = "normal") -> Any:
    rng = generator_from_seed(seed)
    r = rng.exponential(size=n) - 0.7 if law == "skewed" else rng.normal(size=n)
    r = np.clip(r + (rng.choice([-1.5, 1.5], n) if law == "two heaps" else 0), -4, 4)
    y = np.clip((2 * np.tanh(2 * r) if bend else r) + (r >= 0) + 0.5 * rng.normal(size=n), -12, 12)
    schema = {"r": dpc.Bounded(-4 * wide, 4 * wide), "y": dpc.Bounded(-12, 12)}
    with dpc.simulated_noise(seed):
        private = factories.table({"r": r, "y": y}, schema, LOSS)
        return dpc.discontinuity(private, running="r", outcome="y", cutoff=0, loss=LOSS)


@pytest.mark.parametrize(("wide", "shape"), [(1, "normal"), (10, "normal"), (20, "skewed")])
def test_strata_lie_where_records_do(wide: float, shape: str) -> None:
    held = covered((effect_of(strata(wide, seed, shape=shape), LOSS, "auto", seed) for seed in range(10)), 1)
    assert len(held) >= 5 and sum(held) >= len(held) - 2


def test_cells_of_four_parts_of_which_one_holds_nearly_all_show_no_interval() -> None:
    found = []
    for shape in ("normal", "skewed"):
        with dpc.simulated_noise(1):
            released = dpc.cells(strata(10, 1, shape=shape), by=["a", "x"], values=["y"], loss=LOSS)
        again: Any = dpc.Release.from_json(released.to_json())
        found.append(again.effect(treatment="a", outcome="y", adjust=["x"]))
    # Of normal rows two parts, each of one sign: what is left is told by merging them.
    assert covered(found, 1) == [True] and found[0].interval is not None
    assert found[1].estimate is not None and found[1].interval_reason


def test_too_few_rows_to_see_where_records_lie_show_no_interval_rather_than_a_wrong_one() -> None:
    found = effect_of(strata(10, 1, n=2_500, shape="skewed"), LOSS, "auto")
    assert found.interval is None and found.interval_reason


@pytest.mark.parametrize(("share", "law"), [(0.02, "normal"), (0.03, "uniform"), (0.02, "skewed")])
def test_a_rare_treatment_has_as_few_parts_as_it_bears(share: float, law: str) -> None:
    rng, n = generator_from_seed(1), 20_000
    drawn = {"normal": rng.normal(50, 12, n), "uniform": rng.uniform(20, 80, n), "skewed": 20 + rng.gamma(2, 10, n)}
    age, a = np.clip(drawn[law], 20, 80), (rng.random(n) < share).astype(int)
    parts = {}
    for name, arm in (("rare", a), ("even", (rng.random(n) < 0.5).astype(int))):
        y = np.clip(5 + arm + 0.03 * (age - 50) + rng.normal(size=n), 0, 10)
        schema = {"a": dpc.Levels([0, 1]), "y": dpc.Bounded(0, 10), "age": dpc.Bounded(20, 80)}
        with dpc.simulated_noise(2):
            private = factories.table({"a": arm, "y": y, "age": age}, schema, LOSS)
            found = dpc.effect(private, treatment="a", outcome="y", adjust=["age"], loss=LOSS)
        parts[name] = len(found.release.levels[1])
        assert found.interval is not None and found.interval[0] <= 1 <= found.interval[1]
    assert parts["rare"] <= 6 < parts["even"]


@pytest.mark.parametrize(("wide", "bend", "law"), [
    (1, False, "normal"), (1, True, "normal"), (10, True, "normal"), (30, False, "normal"), (30, True, "normal"),
    (30, True, "skewed"), (30, True, "two heaps"),
])  # fmt: skip
def test_bins_of_a_running_number_lie_where_records_do(wide: float, bend: bool, law: str) -> None:
    held = covered((jump(wide, seed, bend=bend, law=law) for seed in range(8)), 1)
    assert len(held) >= 4 and sum(held) >= len(held) - 2


def test_a_running_number_that_too_few_rows_show_has_an_interval_by_a_stated_curvature_alone() -> None:
    found = jump(30, 1, 2_000)
    assert found.interval is None and found.interval_reason
    assert found.release.discontinuity(curvature=8.0).interval is not None


def test_a_window_keeps_what_fills_the_bounds_and_leaves_what_is_empty() -> None:
    assert window(np.full(FINE, 100.0), 0.0) == (0, FINE)
    assert window(np.zeros(FINE), 1.0)[1] > window(np.zeros(FINE), 1.0)[0]  # total: nothing anywhere
    middle = np.zeros(FINE)
    middle[30:34] = 1_000
    low, high = window(middle, 0.0)
    assert low <= 30 < 34 <= high and high - low <= 8
    assert window(middle[30:], 0.0, from_first=True)[0] == 0


def test_a_loss_too_small_to_draw_a_part_of_shows_no_window_and_raises_nothing() -> None:
    assert not is_clear(10.0**12, dpc.PureDP(1e-9).part(Fraction(1, 1000)))
    assert is_clear(20_000, dpc.NoPrivacy()) and is_clear(10.0**6, dpc.ZCDP(0.01))
