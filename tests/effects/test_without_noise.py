"""Answers without privacy: nothing is refused, withheld or left out for a noise that is not there."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.privacy.noise import generator_from_seed
from tests.effects.tables import EXACT, effect_of, table_of


def exact(columns: dict[str, Any], schema: dict[str, Any], **words: Any) -> Any:
    return effect_of(table_of(columns, schema, EXACT), EXACT, **{"adjust": ["z"], "method": "auto"} | words)


def test_strata_of_two_in_each_arm_give_the_stratified_mean_and_its_unbiased_error() -> None:
    rng, strata = generator_from_seed(3), 40
    z, a = np.repeat(np.arange(strata), 4), np.tile([0, 0, 1, 1], strata)
    y = np.clip(2 + a + 0.05 * z + rng.normal(size=len(z)), -5, 10)
    schema = {"a": dpc.Levels([0, 1]), "z": dpc.Levels(range(strata)), "y": dpc.Bounded(-5, 10)}
    found = exact({"a": a, "z": z, "y": y}, schema)
    cells = y.reshape(strata, 2, 2)
    within = cells.var(axis=2, ddof=1).sum(axis=1) / 2  # of each stratum's difference
    gaps = cells[:, 1].mean(axis=1) - cells[:, 0].mean(axis=1)
    assert found.share_supported == 1 and found.estimate == pytest.approx(gaps.mean())
    # The weights are random, too: by the law of total variance.
    assert found.standard_error == pytest.approx(np.sqrt(within.mean() / strata + gaps.var() / len(z)), rel=1e-9)


def test_more_cells_than_noise_would_bear_are_not_refused() -> None:
    rng, n = generator_from_seed(3), 1_500
    a, ward = rng.integers(0, 2, n), np.where(rng.random(n) < 0.6, 0, rng.integers(0, 200, n))
    y = np.clip(2 + a + rng.normal(size=n), -5, 10)
    schema = {"a": dpc.Levels([0, 1]), "ward": dpc.Levels(range(200)), "y": dpc.Bounded(-5, 10)}
    found = exact({"a": a, "ward": ward, "y": y}, schema, adjust=["ward"])
    assert found.interval is not None and found.interval[0] < 1 < found.interval[1]


def test_a_trial_of_strata_of_three_by_sizes_and_by_probabilities_is_the_stratified_mean() -> None:
    rng, strata = generator_from_seed(4), 30
    z, a = np.repeat(np.arange(strata), 6), np.tile([0, 0, 0, 1, 1, 1], strata)
    y = np.clip(rng.normal(size=len(z)) + a, -8, 8)
    schema = {"a": dpc.Levels([0, 1]), "z": dpc.Levels(range(strata)), "y": dpc.Bounded(-8, 8)}
    by_hand = y.reshape(strata, 2, 3).mean(axis=2)
    for design in ({"sizes": [[3] * strata] * 2}, {"probabilities": [0.5, 0.5]}):
        found = exact({"a": a, "z": z, "y": y}, schema, method=dpc.methods.RandomizedTrial(**design))
        assert found.estimate == pytest.approx((by_hand[:, 1] - by_hand[:, 0]).mean())


def test_a_score_of_a_rare_arm_has_an_interval() -> None:
    rng, n = generator_from_seed(5), 6_000
    x = np.clip(rng.normal(size=n), -4, 4)
    a = (rng.random(n) < 0.09).astype(int)
    y = np.clip(a + x + rng.normal(size=n), -10, 10)
    schema = {"a": dpc.Levels([0, 1]), "x": dpc.Bounded(-4, 4), "y": dpc.Bounded(-10, 10)}
    found = exact({"a": a, "x": x, "y": y}, schema, adjust=["x"], method="aipw")
    assert found.interval is not None and found.interval[0] < 1 < found.interval[1]


def test_a_stratum_of_one_record_in_each_arm_is_in_the_mean() -> None:
    rng = np.random.default_rng(5)
    z, a = np.append(rng.integers(0, 2, 400), [2, 2]), np.append(rng.integers(0, 2, 400), [0, 1])
    y = np.append(rng.normal(size=400) + a[:400] * (1 + z[:400]), [-50, 50])
    schema = {"z": dpc.Levels([0, 1, 2]), "a": dpc.Levels([0, 1]), "y": dpc.Bounded(-99, 99)}
    found = exact({"z": z, "a": a, "y": y}, schema)
    by_hand = sum((z == k).mean() * (y[(z == k) & (a == 1)].mean() - y[(z == k) & (a == 0)].mean()) for k in range(3))
    assert found.estimate == pytest.approx(by_hand, abs=1e-6) and found.share_supported == 1


def test_pairs_of_one_record_in_each_arm_have_the_mean_of_their_differences_and_an_error() -> None:
    rng = np.random.default_rng(6)
    z, a = np.repeat(np.arange(60), 2), np.tile([0, 1], 60)
    y = rng.normal(size=120) + a
    schema = {"z": dpc.Levels(range(60)), "a": dpc.Levels([0, 1]), "y": dpc.Bounded(-9, 9)}
    found = exact({"z": z, "a": a, "y": y}, schema)
    assert found.estimate == pytest.approx(y[1::2].mean() - y[::2].mean(), abs=1e-6)
    assert found.standard_error == pytest.approx(np.sqrt(2 / 60), rel=0.2)
