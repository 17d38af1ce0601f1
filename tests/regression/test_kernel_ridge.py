import copy
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge

from dpcausal.errors import HiddenAnswerError, ParameterError
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.regression import kernel_ridge
from dpcausal.regression.kernel_ridge import (
    ALPHAS,
    EXACT_ROWS,
    WIDTHS,
    alpha_of,
    draw_features,
    fit,
    leave_one_out,
    tune,
)

WIDE = (-1e6, 1e6)


def sample(n, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, n)
    return x, np.sin(2 * x) + noise * rng.normal(size=n)


def sklearn_fit(x, y, penalty, width):
    model = KernelRidge(alpha=len(x) * penalty / 2, kernel="rbf", gamma=1 / (2 * width**2))
    model.fit(x[:, None], y)
    return lambda values: model.predict(values[:, None])


@pytest.mark.parametrize("penalty", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("width", [0.3, 2.0])
def test_few_rows_are_fitted_as_scikit_learn_does(penalty, width):
    x, y = sample(200)
    new = np.linspace(-3, 3, 50)
    predict = fit(x, y, penalty=penalty, width=width, clip=WIDE)
    np.testing.assert_allclose(predict(new), sklearn_fit(x, y, penalty, width)(new), atol=1e-8)


def test_the_fit_minimises_the_stated_objective_on_the_features():
    # The gradient λw + (2/n) Σ (w·φ_i − y_i) φ_i vanishes at the weights, with φ at the grid's places.
    x, y = sample(700)
    features = draw_features(10, 0.7, generator_from_seed(3))
    predictor = fit(x, y, penalty=0.05, width=0.7, clip=WIDE, features=features)
    places, index = features.places(x)
    rows = features(places * 0.7)[index]
    gradient = 0.05 * predictor.weights + 2 / 700 * rows.T @ (rows @ predictor.weights - y)
    assert np.abs(gradient).max() < 1e-12


def test_many_rows_are_fitted_by_features_close_to_the_exact_fit():
    x, y = sample(1500)
    new = np.linspace(-1.9, 1.9, 200)
    close = fit(x, y, penalty=alpha_to_penalty(1.0, 1500), width=0.5, clip=WIDE, generator=generator_from_seed(4))
    assert close.features is not None
    exact = sklearn_fit(x, y, alpha_to_penalty(1.0, 1500), 0.5)
    assert np.sqrt(np.mean((close(new) - exact(new)) ** 2)) < 0.02
    assert np.sqrt(np.mean((close(new) - np.sin(2 * new)) ** 2)) < 0.05


def alpha_to_penalty(alpha, n):
    return 2 * alpha / n


@pytest.mark.parametrize("n", [EXACT_ROWS, EXACT_ROWS + 1])
def test_the_number_of_rows_alone_decides_between_kernel_matrix_and_features(n):
    x, y = sample(n)
    predictor = fit(x, y, penalty=0.01, width=0.5, clip=WIDE, generator=generator_from_seed(0))
    assert (predictor.features is None) == (n <= EXACT_ROWS)


def test_many_rows_without_public_randomness_are_refused():
    x, y = sample(EXACT_ROWS + 1)
    with pytest.raises(ParameterError, match="public generator"):
        fit(x, y, penalty=0.01, width=0.5, clip=WIDE)


def test_the_same_seed_gives_the_same_fit():
    x, y = sample(2000)
    first, second = (
        fit(x, y, penalty=0.01, width=0.5, clip=WIDE, generator=generator_from_seed(6))(x) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("n", [100, 1000])
def test_predictions_stay_in_the_public_range(n):
    x, y = sample(n)
    predict = fit(x, y, penalty=1e-4, width=0.5, clip=(-0.3, 0.4), generator=generator_from_seed(0))
    predictions = predict(np.linspace(-5, 5, 999))
    assert predictions.min() == -0.3
    assert predictions.max() == 0.4


@pytest.mark.parametrize("n", [60, 800])
def test_left_out_residuals_are_those_of_refits_without_the_row(n):
    x, y = sample(n)
    penalty, width = 0.02, 0.6
    residuals = leave_one_out(x, y, penalty=penalty, width=width, generator=generator_from_seed(5))
    features = draw_features(kernel_ridge.FEATURE_PAIRS, width, generator_from_seed(5)) if n > EXACT_ROWS else None
    for i in (0, 7, n - 1):
        rest = np.arange(n) != i
        # The refit keeps α, so its λ is that of one row less.
        without = fit(
            x[rest], y[rest], penalty=penalty * n / (n - 1), width=width, clip=WIDE, features=features
        )
        assert residuals[i] == pytest.approx(float(y[i] - without(x[i : i + 1])[0]), abs=1e-8)


def test_tuning_finds_the_setting_with_the_least_left_out_error():
    x, y = sample(120, noise=0.5)
    errors = {
        (width, alpha): np.mean(leave_one_out(x, y, penalty=2 * alpha / 120, width=width) ** 2)
        for width in WIDTHS
        for alpha in ALPHAS
    }
    width, alpha = min(errors, key=errors.__getitem__)
    setting = tune(x, y)
    assert (setting.width, alpha_of(setting.penalty, 120)) == pytest.approx((width, alpha))


def test_tuning_keeps_alpha_for_all_rows_and_reads_evenly_spaced_ones():
    x, y = sample(5000)
    order = np.argsort(x)
    setting = tune(x[order], y[order])
    spaced = np.linspace(0, 4999, kernel_ridge.TUNING_ROWS).astype(int)
    few = tune(x[order][spaced], y[order][spaced])
    assert setting.width == few.width
    assert alpha_of(setting.penalty, 5000) == pytest.approx(alpha_of(few.penalty, len(spaced)))


def test_a_constant_response_is_predicted_by_shrinking_towards_zero():
    predict = fit(np.zeros(10), np.full(10, 3.0), penalty=0.2, width=1.0, clip=WIDE)
    # One place, ten rows: 10 · 3 / (10 + α) with α = 1.
    assert predict(np.zeros(1))[0] == pytest.approx(30 / 11)


extreme = st.sampled_from([0.0, 1.0, -1.0, 1e-320, 1e150, -1e200, 1e300, -1.7e308])


@given(st.lists(st.tuples(extreme, extreme), min_size=1, max_size=12), st.sampled_from([1, 60]))
@settings(deadline=None, max_examples=60)
def test_any_finite_columns_give_finite_answers_without_a_warning(pairs, copies):
    x, y = (np.tile(np.array(column), copies) for column in zip(*pairs, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predict = fit(x, y, penalty=1e-9, width=0.5, clip=(-1, 1), generator=generator_from_seed(0))
        assert np.isfinite(predict(x)).all()
        assert np.isfinite(leave_one_out(x, y, penalty=1e-9, width=0.5, generator=generator_from_seed(0))).all()
        setting = tune(x, y)
    assert setting.width in WIDTHS


def test_a_fit_that_floating_point_cannot_solve_predicts_zero():
    x = np.array([0.0, 1e308] * 400)
    predict = fit(x, x, penalty=0.01, width=1e-300, clip=(-1, 1), generator=generator_from_seed(0))
    np.testing.assert_array_equal(predict(np.array([0.0, 1e308])), [0.0, 0.0])


def test_a_million_rows_are_fitted_in_bounded_memory():
    x, y = sample(1_000_000)
    tracemalloc.start()
    predict = fit(x, y, penalty=2e-6, width=0.5, clip=(-3, 3), generator=generator_from_seed(0))
    residuals = leave_one_out(x, y, penalty=2e-6, width=0.5, generator=generator_from_seed(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6  # one row of features each would be 1.6e9
    assert np.sqrt(np.mean((predict(x) - np.sin(2 * x)) ** 2)) < 0.005
    assert residuals.std() == pytest.approx(0.2, rel=0.01)


@pytest.mark.parametrize(
    "change",
    [
        {"penalty": 0.0},
        {"penalty": 1e-10},
        {"penalty": float("nan")},
        {"width": 0.0},
        {"width": float("inf")},
        {"clip": (1.0, 1.0)},
        {"clip": (0.0, float("inf"))},
        {"y": np.zeros(3)},
        {"x": np.zeros((4, 1)), "y": np.zeros((4, 1))},
        {"x": np.zeros(0), "y": np.zeros(0)},
    ],
)
def test_arguments_outside_their_range_are_refused(change):
    arguments = {"x": np.zeros(4), "y": np.zeros(4), "penalty": 0.1, "width": 1.0, "clip": (0.0, 1.0), **change}
    with pytest.raises(ParameterError):
        fit(arguments.pop("x"), arguments.pop("y"), **arguments)


def test_a_fitted_regression_does_not_leave_the_process():
    x, y = sample(20)
    predictor = fit(x, y, penalty=0.1, width=1.0, clip=(-1, 1))
    for leave in (pickle.dumps, copy.deepcopy):
        with pytest.raises(HiddenAnswerError):
            leave(predictor)
    for number in (*x, *predictor.weights):
        assert f"{abs(number):.4f}" not in repr(predictor)
