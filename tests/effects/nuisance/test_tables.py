"""Grids of two features: the shares of their cells, also where the features are correlated."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import dpcausal as dpc
from dpcausal.effects.nuisance.features import Axis, Feature
from dpcausal.effects.nuisance.fit_check import Sums
from dpcausal.effects.nuisance.models import Models, Table
from dpcausal.effects.nuisance.tables import effect_by_bins, joint_shares
from dpcausal.effects.nuisance.tables import table_of as table_of_sums
from tests.effects.tables import effect_of, table_of

MARGINS = np.array([10.0, 30.0, 40.0, 20.0]), np.array([25.0, 25.0, 50.0])
UNIT = dpc.Bounded(-4, 4)
SCHEMA: dict[str, Any] = {"z": UNIT, "v": UNIT, "a": dpc.Levels([0, 1]), "y": dpc.Bounded(-15, 15)}


@pytest.mark.parametrize("correlation", [-0.95, -0.65, 0.8])
def test_shares_are_those_of_two_normal_scores(correlation: float) -> None:
    shares = joint_shares(MARGINS, correlation)
    assert shares is not None
    ends = [norm.ppf(np.concatenate([[0], np.cumsum(own) / own.sum()])).clip(-9, 9) for own in MARGINS]
    law = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]])
    below = np.array([[law.cdf([one, other]) for other in ends[1]] for one in ends[0]])
    assert shares.reshape(4, 3) == pytest.approx(np.diff(np.diff(below, axis=0), axis=1), abs=2e-3)
    assert shares.reshape(4, 3).sum(axis=1) == pytest.approx(MARGINS[0] / 100)


def test_nearly_independent_features_have_no_shares() -> None:
    assert joint_shares(MARGINS, 0.5) is None and joint_shares(MARGINS[:1], 0.0) is None


def test_sums_along_cells_of_correlated_features_have_the_variance_of_their_records() -> None:
    rng, n, halves = np.random.default_rng(1), 20_000, (np.ones(2), np.ones(2))
    shares = joint_shares(halves, 0.6)
    assert shares is not None and shares[0] == pytest.approx(0.25 + np.arcsin(0.6) / (2 * np.pi), abs=1e-3)
    energies = []
    for _ in range(600):
        cells = np.repeat(np.arange(4), rng.multinomial(n, shares))
        sums = np.stack([np.bincount(cells, rng.standard_normal(n), 4) for _ in range(2)])
        (of_treatment, of_outcome), _, free = Sums(sums, np.zeros(2), (2, 2), halves, shares=shares).coefficients()
        energies += [one @ one * 4 / n for one in (of_treatment, of_outcome)]
    assert free == 1 and np.mean(energies) == pytest.approx(1, abs=0.2)  # five standard errors


@pytest.mark.parametrize("spread", [0.001, 0.33])
def test_confounders_that_are_nearly_equal_cost_no_precision(spread: float) -> None:
    errors: dict[tuple[str, ...], list[float]] = {("z",): [], ("z", "v"): []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=20_000)
        a = (rng.random(20_000) < 1 / (1 + np.exp(-z))).astype(int)
        v, y = z + spread * rng.normal(size=20_000), 2 * z + a + rng.normal(size=20_000)
        loss = dpc.ApproxDP(4, 1e-6)
        columns = {"z": z.clip(-4, 4), "v": v.clip(-4, 4), "a": a, "y": y.clip(-15, 15)}
        for adjust, own in errors.items():
            table = table_of(columns, SCHEMA, loss)
            found = effect_of(table, loss, "boosted-aipw", seed, adjust=list(adjust))
            assert found.interval is None or found.interval[0] - 0.05 < 1 < found.interval[1] + 0.05
            own.append(found.standard_error)
    assert np.median(errors["z", "v"]) < 2.5 * np.median(errors["z",])


N, BINS = 20_000, 16
EVEN = Feature(2, Axis(), np.arange(64) * BINS // 64, BINS, np.full(64, N / 64))


def even_models(**more: Any) -> Models:
    return Models(np.zeros(2), np.array([0.0, 0.5]), 0.0, 1.0, 0.0, 1.0, (EVEN,), **more)


@pytest.mark.parametrize("height", [0.0, 0.05, 0.3])
def test_the_error_of_a_table_is_that_of_what_it_adds_to_the_probability(height: float) -> None:
    """Both small steps that noise hides and large ones that it moves: within a half and twice."""
    rng, deviation, errors, stated = np.random.default_rng(1), 60.0, [], []
    truth = np.repeat([-height, height], BINS // 2)
    for _ in range(200):
        noisy = truth * N / BINS + deviation * rng.normal(size=BINS)
        table = table_of_sums(np.stack([noisy, noisy]), deviation * np.ones(2), (0.25, 1.0), even_models(), (0,),
                              (BINS,), N, 0.0)  # fmt: skip
        errors.append(np.square(table.treatment - np.repeat(truth, 4)).mean())
        stated.append(table.error)
    assert 0.5 < np.mean(stated) / np.mean(errors) < 2


@pytest.mark.parametrize(("truth", "shown"), [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0), (-0.5, 0.0), (3.0, 1.0)])
def test_beyond_the_end_of_its_line_the_outcome_has_the_slope_of_residuals(truth: float, shown: float) -> None:
    """It is between none and the line's, which is 1."""
    models, beyond = even_models(ends=((2, -0.8, 0.8, 1.0),)), EVEN.beyond(-0.8, 0.8)
    sums, noise = np.bincount(EVEN.cells, N / 64 * truth * beyond.sum(axis=0), BINS), np.full(2, 1_000.0)
    table = table_of_sums(np.stack([0 * sums, sums]), noise, (0.25, 1.0), models, (0,), (BINS,), N, 0.0)
    assert table.outcome == pytest.approx(shown * beyond.sum(axis=0)) and not table.treatment.any()
    second = table_of_sums(np.stack([0 * sums, sums]), noise, (0.25, 1.0), replace(models, tables=(table,)), (0,),
                           (BINS,), N, 0.0)  # fmt: skip
    assert not second.outcome.any()


def test_a_bias_of_errors_that_both_models_share_is_their_mean_square_over_that_of_residuals() -> None:
    table = Table((0,), (BINS,), np.zeros(64), np.zeros(64), np.ones(2), error=0.01)
    replaced = Table((0,), (2 * BINS,), np.zeros(64), np.zeros(64), np.ones(2), error=0.002)
    models = even_models(tables=(table,)).with_slope(-0.4, 0.1, 0.2)
    assert models.shift_bias(N) == pytest.approx(0.4 * 0.01 / 0.2)
    assert models.shift_bias(N, []) == 0.0
    assert even_models(tables=(table, replaced)).with_slope(-0.4, 0.1, 0.2).shift_bias(N) == pytest.approx(0.004)


def test_mean_scores_by_bins_say_how_effects_differ_and_then_residuals_have_no_mean_in_either_arm() -> None:
    rng, n = np.random.default_rng(2), N
    x = rng.uniform(-1, 1, n)
    a = (rng.random(n) < 0.5).astype(float)
    y = np.where(x > 0, 0.8, -0.2) * a + rng.normal(size=n)
    raw = np.column_stack([y, a, x])
    cells = [EVEN.fine(raw)]
    models = even_models().with_slope(0.3, 0.0, 0.25)
    scores = models.scores(raw, cells)[0]
    sums = np.bincount(EVEN.cells[cells[0]], scores, BINS)
    own = effect_by_bins(sums, 0.0, 2.0, EVEN, n)
    np.testing.assert_allclose(own, np.where(np.arange(64) < 32, -0.5, 0.5), atol=0.15)
    followed = replace(models, effects=((0, own),))
    right = 2.0 * (x > 0) - 1
    left = (one.left_over(raw, cells)[1] for one in (models, followed))
    before, after = (float(right[a == 1] @ one[a == 1]) / a.sum() for one in left)
    assert before == pytest.approx(0.5, abs=0.06) and after == pytest.approx(0.25, abs=0.06)  # half of it is the mean's
    assert followed.scores(raw, cells)[0].mean() == pytest.approx(scores.mean(), abs=0.03)
