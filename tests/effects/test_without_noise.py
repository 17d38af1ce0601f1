"""Answers without privacy: nothing is refused, withheld or left out for a noise that is not there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.privacy.noise import generator_from_seed

EXACT = dpc.NoPrivacy()


def table(columns: dict[str, Any], schema: dict[str, Any], **how: Any) -> dpc.Table:
    return dpc.Table(columns, dpc.Schema(schema), dpc.Ledger.without_privacy(), **how)


def test_a_cohort_of_two_persons_counts_as_callaway_and_santanna_count_it() -> None:
    coins, n, T = generator_from_seed(10), 300, 4
    start = np.full(n, 9)
    start[:60], start[60:62] = 1, 2
    who, year = np.divmod(np.arange(n * T), T)
    y = coins.normal(size=n)[who] + 0.2 * year + (year >= start[who]) * np.where(start[who] == 2, 5.0, 1.0)
    schema = {"year": dpc.Levels(range(T)), "start": dpc.Levels([1, 2, 9]), "y": dpc.Bounded(-15, 15)}
    frame = {"who": who, "year": year, "start": start[who], "y": y}
    found = dpc.did(table(frame, schema, person="who"), time="year", outcome="y", cohort="start", loss=EXACT)
    level = y.reshape(n, T)
    moved = {(c, g, t): (level[start == c, t] - level[start == c, g - 1]).mean()
             for c in (1, 2, 9) for g in (1, 2) for t in range(g, T)}  # fmt: skip
    change = {(g, t): moved[g, g, t] - moved[9, g, t] for g in (1, 2) for t in range(g, T)}
    exact = (60 * sum(change[1, t] for t in (1, 2, 3)) + 2 * sum(change[2, t] for t in (2, 3))) / (60 * 3 + 2 * 2)
    assert found.att is not None and found.notes == ()
    assert found.att.estimate == pytest.approx(exact, abs=1e-9)


def test_strata_of_two_in_each_arm_give_the_stratified_mean_and_its_unbiased_error() -> None:
    coins, strata = generator_from_seed(3), 40
    z, a = np.repeat(np.arange(strata), 4), np.tile([0, 0, 1, 1], strata)
    y = np.clip(2 + a + 0.05 * z + coins.normal(size=len(z)), -5, 10)
    schema = {"a": dpc.Levels([0, 1]), "z": dpc.Levels(range(strata)), "y": dpc.Bounded(-5, 10)}
    found = dpc.effect(table({"a": a, "z": z, "y": y}, schema), treatment="a", outcome="y", adjust=["z"], loss=EXACT)
    cells = y.reshape(strata, 2, 2)
    within = cells.var(axis=2, ddof=1).sum(axis=1) / 2  # of each stratum's difference
    gaps = cells[:, 1].mean(axis=1) - cells[:, 0].mean(axis=1)
    assert found.share_supported == 1 and found.estimate == pytest.approx(gaps.mean())
    # The weights are random, too: by the law of total variance.
    assert found.standard_error == pytest.approx(np.sqrt(within.mean() / strata + gaps.var() / len(z)), rel=1e-9)


def test_more_cells_than_noise_would_bear_are_not_refused() -> None:
    coins, n = generator_from_seed(3), 1_500
    a, ward = coins.integers(0, 2, n), np.where(coins.random(n) < 0.6, 0, coins.integers(0, 200, n))
    y = np.clip(2 + a + coins.normal(size=n), -5, 10)
    schema = {"a": dpc.Levels([0, 1]), "ward": dpc.Levels(range(200)), "y": dpc.Bounded(-5, 10)}
    found = dpc.effect(table({"a": a, "ward": ward, "y": y}, schema), treatment="a", outcome="y", adjust=["ward"],
                       loss=EXACT)  # fmt: skip
    assert found.interval is not None and found.interval[0] < 1 < found.interval[1]


def test_a_trial_of_strata_of_three_by_sizes_and_by_probabilities_is_the_stratified_mean() -> None:
    coins, strata = generator_from_seed(4), 30
    z, a = np.repeat(np.arange(strata), 6), np.tile([0, 0, 0, 1, 1, 1], strata)
    y = np.clip(coins.normal(size=len(z)) + a, -8, 8)
    schema = {"a": dpc.Levels([0, 1]), "z": dpc.Levels(range(strata)), "y": dpc.Bounded(-8, 8)}
    asked = {"treatment": "a", "outcome": "y", "adjust": ["z"], "loss": EXACT}
    rows, by_hand = table({"a": a, "z": z, "y": y}, schema), y.reshape(strata, 2, 3).mean(axis=2)
    sizes = [[3] * strata] * 2
    assert dpc.effect(rows, method=dpc.methods.RandomizedTrial(sizes=sizes), **asked).estimate == pytest.approx(
        (by_hand[:, 1] - by_hand[:, 0]).mean()
    )
    by_probabilities = dpc.effect(rows, method=dpc.methods.RandomizedTrial(probabilities=[0.5, 0.5]), **asked)
    assert by_probabilities.estimate == pytest.approx((by_hand[:, 1] - by_hand[:, 0]).mean())


def test_a_score_of_a_rare_arm_has_an_interval() -> None:
    coins, n = generator_from_seed(5), 6_000
    x = np.clip(coins.normal(size=n), -4, 4)
    a = (coins.random(n) < 0.09).astype(int)
    y = np.clip(a + x + coins.normal(size=n), -10, 10)
    schema = {"a": dpc.Levels([0, 1]), "x": dpc.Bounded(-4, 4), "y": dpc.Bounded(-10, 10)}
    rows = table({"a": a, "x": x, "y": y}, schema)
    found = dpc.effect(rows, treatment="a", outcome="y", adjust=["x"], loss=EXACT, method="aipw")
    assert found.interval is not None and found.interval[0] < 1 < found.interval[1]


def test_a_stratum_of_one_record_in_each_arm_is_in_the_mean() -> None:
    rng = np.random.default_rng(5)
    z, a = np.append(rng.integers(0, 2, 400), [2, 2]), np.append(rng.integers(0, 2, 400), [0, 1])
    y = np.append(rng.normal(size=400) + a[:400] * (1 + z[:400]), [-50, 50])
    columns = {"z": z, "a": a, "y": y}
    schema = dpc.Schema({"z": dpc.Levels([0, 1, 2]), "a": dpc.Levels([0, 1]), "y": dpc.Bounded(-99, 99)})
    table = dpc.Table(columns, schema, dpc.Ledger.without_privacy())
    found = dpc.effect(table, treatment="a", outcome="y", adjust=["z"], loss=dpc.NoPrivacy())
    by_hand = sum((z == k).mean() * (y[(z == k) & (a == 1)].mean() - y[(z == k) & (a == 0)].mean()) for k in range(3))
    assert found.estimate == pytest.approx(by_hand, abs=1e-6) and found.share_supported == 1


def test_pairs_of_one_record_in_each_arm_have_the_mean_of_their_differences_and_an_error() -> None:
    rng = np.random.default_rng(6)
    z, a = np.repeat(np.arange(60), 2), np.tile([0, 1], 60)
    y = rng.normal(size=120) + a
    schema = dpc.Schema({"z": dpc.Levels(range(60)), "a": dpc.Levels([0, 1]), "y": dpc.Bounded(-9, 9)})
    table = dpc.Table({"z": z, "a": a, "y": y}, schema, dpc.Ledger.without_privacy())
    found = dpc.effect(table, treatment="a", outcome="y", adjust=["z"], loss=dpc.NoPrivacy())
    assert found.estimate == pytest.approx(y[1::2].mean() - y[::2].mean(), abs=1e-6)
    assert found.standard_error == pytest.approx(np.sqrt(2 / 60), rel=0.2)
