"""The additive noise model without any privacy: splits, fits, residuals, and scores by their names."""

import math

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

import dpcausal as dpc
from dpcausal.direction import scores
from dpcausal.direction.scores import NAMES, of_block, rehearse
from dpcausal.direction.scores.anm import (
    DISTANCE_ROWS,
    WIDTH_SHARE,
    Residuals,
    fit_all,
    fit_halves,
    half_sizes,
    hsic_scores,
    split_rows,
    typical_distance,
)
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.regression.kernel_ridge import alpha_of, fit, tune
from tests.direction.neighbours import Rows, table


def pair(n: int, seed: int = 2, noise: float = 0.2) -> tuple[Rows, Rows]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    return x, np.clip(np.tanh(3 * x) + noise * rng.laplace(size=n), -3, 3)


def fitted(x: Rows, y: Rows, *, reach: float = 3.0) -> Residuals:
    train, test = split_rows(len(x), 0.5, generator_from_seed(1))
    return fit_halves(x, y, train, test, (-reach, reach), (-reach, reach), generator_from_seed(2))


@pytest.mark.parametrize("rows", [8, 9, 100])
@pytest.mark.parametrize("share", [1e-9, 0.1, 0.5, 0.999999])
def test_a_split_is_a_partition_of_known_sizes_of_public_randomness_alone(rows: int, share: float) -> None:
    train, test = split_rows(rows, share, generator_from_seed(3))
    assert sorted([*train, *test]) == list(range(rows)) and min(len(train), len(test)) >= 2
    assert (len(train), len(test)) == half_sizes(rows, share)
    assert (split_rows(rows, share, generator_from_seed(3))[0] == train).all()


def test_every_row_is_as_likely_to_train_as_the_share_says() -> None:
    # 4,000 splits of 20 rows, share .3: six standard errors of .0072 for each row, a false alarm of 4e-8.
    counts = np.zeros(20)
    for seed in range(4000):
        counts[split_rows(20, 0.3, generator_from_seed(seed))[0]] += 1
    assert np.abs(counts / 4000 - 0.3).max() < 6 * math.sqrt(0.3 * 0.7 / 4000)


def test_the_typical_distance_is_the_median_over_pairs() -> None:
    values = np.random.default_rng(0).standard_normal(41)
    apart = [abs(a - b) for place, a in enumerate(values) for b in values[:place]]
    assert typical_distance(values, 9.0) == pytest.approx(np.median(apart))
    many = np.random.default_rng(0).standard_normal(100 * DISTANCE_ROWS)
    assert typical_distance(many, 9.0) == pytest.approx(0.954, rel=0.15)  # √2 · .6745 for a normal sample


def test_the_typical_distance_is_positive_whatever_the_values() -> None:
    assert typical_distance(np.zeros(10), 9.0) == 9.0
    assert typical_distance(np.array([5.0]), 9.0) == 9.0
    tied = np.zeros(100)
    tied[:10] = 1.0
    assert typical_distance(tied, 9.0) == pytest.approx(np.std(tied) / 10)
    with np.errstate(all="ignore"):
        assert typical_distance(np.array([-1.7e308, 1.7e308] * 5), 9.0) == 9.0


def test_residuals_of_the_test_half_agree_with_scikit_learn() -> None:
    x, y = pair(300)
    train, test = split_rows(300, 0.5, generator_from_seed(1))
    rest = fitted(x, y)
    scaled = (x - x[train].mean()) / x[train].std()
    setting = tune(scaled[train], (y[train] - y[train].mean()) / y[train].std())
    model = KernelRidge(
        alpha=alpha_of(setting.penalty, 150), kernel="rbf", gamma=1 / (2 * setting.width**2)
    ).fit(scaled[train, None], y[train] - y[train].mean())
    predicted = y[train].mean() + model.predict(scaled[test, None])
    assert np.allclose(rest.left_y, y[test] - predicted, atol=1e-4)  # interpolated between places of a table
    assert (rest.x == x[test]).all() and (rest.y == y[test]).all()


def test_bounds_that_are_a_million_times_too_wide_leave_the_residuals_as_they_are() -> None:
    x, y = pair(400)
    tight, loose = fitted(x, y), fitted(x, y, reach=3e6)
    assert np.allclose(tight.left_y, loose.left_y, atol=2e-3)
    assert np.allclose(tight.left_x, loose.left_x, atol=2e-3)


def test_widths_come_from_the_training_half_and_ranges_from_public_bounds() -> None:
    x, y = pair(200)
    train, _ = split_rows(200, 0.5, generator_from_seed(1))
    rest = fitted(x, y)
    assert rest.width_x == WIDTH_SHARE * typical_distance(x[train], 3.0)
    assert rest.width_y == WIDTH_SHARE * typical_distance(y[train], 3.0)
    assert rest.range_x == rest.range_y == (-3, 3)
    assert rest.range_left_x == rest.range_left_y == (-6, 6)
    assert np.abs(rest.left_y).max() <= 6 and np.abs(rest.left_x).max() <= 6


def test_a_regression_that_would_leave_the_public_range_is_clipped_into_it() -> None:
    x = np.linspace(-3, 3, 60)
    y = np.where(x > 0, 3.0, -3.0)
    rest = fitted(x, y)
    assert np.abs(rest.y - rest.left_y).max() <= 3


def test_residuals_depend_less_on_the_cause_than_on_the_effect() -> None:
    for seed in range(3):
        forward, backward = hsic_scores(fitted(*pair(500, seed)))
        assert forward < backward


def test_inside_a_block_the_units_of_the_columns_do_not_matter() -> None:
    x, y = pair(80)
    scores = hsic_scores(fit_all(x, y, generator_from_seed(3)))
    in_other_units = hsic_scores(fit_all(1e6 * x - 5e5, 1e-3 * y + 7, generator_from_seed(3)))
    assert in_other_units == pytest.approx(scores, abs=1e-6)


def test_inside_a_block_each_residual_is_from_the_fit_to_the_other_rows() -> None:
    x, y = pair(40)
    rest = fit_all(x, y, generator_from_seed(3))
    setting = tune(rest.x, rest.y)
    for left_out in (0, 17, 39):
        others = np.arange(40) != left_out
        predictor = fit(
            rest.x[others], rest.y[others], penalty=2 * alpha_of(setting.penalty, 40) / 39, width=setting.width,
            clip=(-100, 100), generator=generator_from_seed(3),
        )  # fmt: skip
        predicted = float(predictor(rest.x[[left_out]])[0])
        assert rest.left_y[left_out] == pytest.approx(rest.y[left_out] - predicted, abs=1e-9)


def test_the_score_of_residuals_in_a_block_is_that_of_its_leave_one_out_residuals() -> None:
    x, y = pair(60)
    assert of_block("hsic", x, y, 5) == hsic_scores(fit_all(x, y, generator_from_seed(5)))


@pytest.mark.parametrize("score", NAMES)
def test_columns_that_change_places_change_the_scores(score: str) -> None:
    x, y = pair(60)
    assert of_block(score, x, y, 5)[::-1] == pytest.approx(of_block(score, y, x, 5), abs=1e-9)


@pytest.mark.parametrize("score", NAMES)
def test_a_missing_package_fails_before_anything_is_spent(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rehearse(score)

    def missing(*_: object, **__: object) -> None:
        raise ImportError("no compiler")

    monkeypatch.setattr(scores, "of_block", missing)
    asked = table(np.column_stack(pair(60)), dpc.Ledger.in_memory(dpc.PureDP(1)))
    with pytest.raises(ImportError):
        dpc.direction(asked, "x", "y", score=score, loss=dpc.PureDP(1))
    assert not asked.ledger.entries()
