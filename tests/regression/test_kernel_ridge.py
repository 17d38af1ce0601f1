"""Kernel ridge regression: scikit-learn's fit, exact or by random features, total, and of one chunk at a time."""

import copy
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.kernel_ridge import KernelRidge

from dpcausal.errors import HiddenAnswerError
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.regression import kernel_ridge
from dpcausal.regression.kernel_ridge import FourierFeatures, alpha_of, fit, leave_one_out, tune

WIDE = (-1e6, 1e6)


def sample(n, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, n)
    return x, np.sin(2 * x) + noise * rng.normal(size=n)


def fitted(x, y, penalty, width, clip=WIDE, seed=0):
    return fit(x, y, penalty=penalty, width=width, clip=clip, generator=generator_from_seed(seed))


def sklearn_fit(x, y, penalty, width):
    model = KernelRidge(alpha=len(x) * penalty / 2, kernel="rbf", gamma=1 / (2 * width**2))
    model.fit(x[:, None], y)
    return lambda values: model.predict(values[:, None])


@pytest.mark.parametrize("penalty", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("width", [0.3, 2.0])
def test_few_rows_are_fitted_as_scikit_learn_does(penalty, width):
    x, y = sample(200)
    new = np.linspace(-3, 3, 50)
    np.testing.assert_allclose(fitted(x, y, penalty, width)(new), sklearn_fit(x, y, penalty, width)(new), atol=1e-8)


def test_the_fit_minimises_the_stated_objective_on_the_features():
    # The gradient λw + (2/n) Σ (w·φ_i − y_i) φ_i vanishes at the weights, with φ at the grid's places.
    x, y = sample(700)
    predictor = fitted(x, y, 0.05, 0.7, seed=3)
    places, index = predictor.features.places(x)
    rows = predictor.features(places * 0.7)[index]
    gradient = 0.05 * predictor.weights + 2 / 700 * rows.T @ (rows @ predictor.weights - y)
    assert np.abs(gradient).max() < 1e-12


def test_many_rows_are_fitted_by_features_close_to_the_exact_fit():
    x, y = sample(1500)
    new = np.linspace(-1.9, 1.9, 200)
    close = fitted(x, y, 2 / 1500, 0.5, seed=4)
    assert close.features is not None
    exact = sklearn_fit(x, y, 2 / 1500, 0.5)
    assert np.sqrt(np.mean((close(new) - exact(new)) ** 2)) < 0.02
    assert np.sqrt(np.mean((close(new) - np.sin(2 * new)) ** 2)) < 0.05


@pytest.mark.parametrize("n", [100, 1000])
def test_predictions_stay_in_the_public_range_and_follow_from_the_seed(n):
    x, y = sample(n)
    first, second = (fitted(x, y, 1e-4, 0.5, (-0.3, 0.4)) for _ in range(2))
    predictions = first(np.linspace(-5, 5, 999))
    assert (predictions.min(), predictions.max()) == (-0.3, 0.4) and (first.features is None) == (n == 100)
    np.testing.assert_array_equal(predictions, second(np.linspace(-5, 5, 999)))


@pytest.mark.parametrize("n", [60, 800])
def test_left_out_residuals_are_those_of_refits_without_the_row(n):
    x, y = sample(n)
    penalty, width = 0.02, 0.6
    residuals = leave_one_out(x, y, penalty=penalty, width=width, generator=generator_from_seed(5))
    for i in (0, 7, n - 1):
        rest = np.arange(n) != i
        # The refit keeps α, so its λ is that of one row less.
        without = fitted(x[rest], y[rest], penalty * n / (n - 1), width, seed=5)
        assert residuals[i] == pytest.approx(float(y[i] - without(x[i : i + 1])[0]), abs=1e-8)


def test_tuning_finds_the_setting_with_the_least_left_out_error():
    x, y = sample(120, noise=0.5)
    draws = generator_from_seed(0)
    errors = {
        (width, alpha): np.mean(leave_one_out(x, y, penalty=2 * alpha / 120, width=width, generator=draws) ** 2)
        for width in kernel_ridge.WIDTHS
        for alpha in kernel_ridge.ALPHAS
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


extreme = st.sampled_from([0.0, 1.0, -1.0, 1e-320, 1e150, -1e200, 1e300, -1.7e308])


@given(st.lists(st.tuples(extreme, extreme), min_size=1, max_size=12), st.sampled_from([1, 60]))
@settings(deadline=None, max_examples=60)
def test_any_finite_columns_give_finite_answers_without_a_warning(pairs, copies):
    x, y = (np.tile(np.array(column), copies) for column in zip(*pairs, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(fitted(x, y, 1e-9, 0.5, (-1, 1))(x)).all()
        assert np.isfinite(leave_one_out(x, y, penalty=1e-9, width=0.5, generator=generator_from_seed(0))).all()
        setting = tune(x, y)
    assert setting.width in kernel_ridge.WIDTHS


def test_a_fit_that_floating_point_cannot_solve_predicts_zero():
    x = np.array([0.0, 1e308] * 400)
    predict = fitted(x, x, 0.01, 1e-300, (-1, 1))
    np.testing.assert_array_equal(predict(np.array([0.0, 1e308])), [0.0, 0.0])


def test_a_million_rows_are_fitted_in_bounded_memory():
    x, y = sample(1_000_000)
    tracemalloc.start()
    predict = fitted(x, y, 2e-6, 0.5, (-3, 3))
    residuals = leave_one_out(x, y, penalty=2e-6, width=0.5, generator=generator_from_seed(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6  # one row of features each would be 1.6e9
    assert np.sqrt(np.mean((predict(x) - np.sin(2 * x)) ** 2)) < 0.005
    assert residuals.std() == pytest.approx(0.2, rel=0.01)


def test_a_fitted_regression_does_not_leave_the_process():
    x, y = sample(20)
    predictor = fitted(x, y, 0.1, 1.0, (-1, 1))
    for leave in (pickle.dumps, copy.deepcopy):
        with pytest.raises(HiddenAnswerError):
            leave(predictor)
    for number in (*x, *predictor.weights):
        assert f"{abs(number):.4f}" not in repr(predictor)


# ---------------------------------------- random features


@given(
    values=st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=20),
    pairs=st.integers(1, 40),
    width=st.floats(1e-3, 1e3),
)
def test_every_feature_vector_has_norm_one(values, pairs, width):
    rows = FourierFeatures(generator_from_seed(0).standard_normal(pairs), width)(np.array(values))
    assert rows.shape == (len(values), 2 * pairs)
    np.testing.assert_allclose((rows**2).sum(axis=1), 1, rtol=1e-12)


def test_a_value_is_read_within_half_a_step_of_the_grid():
    values = np.random.default_rng(2).normal(size=5000)
    features = FourierFeatures(np.ones(1), width=0.25)
    places, index = features.places(values)
    assert np.abs(places[index] * 0.25 - values).max() <= 0.25 / kernel_ridge.PLACES_PER_WIDTH / 2 * (1 + 1e-9)
    np.testing.assert_array_equal(places, np.unique(places))


def test_the_grid_moves_the_kernel_by_no_more_than_stated():
    # Two arguments each move by 1/1024 of a width; the kernel's slope is at most exp(-1/2) per width.
    gaps = np.linspace(0, 5, 100_001)
    moved = np.abs(np.exp(-(gaps**2) / 2) - np.exp(-((gaps + 1 / kernel_ridge.PLACES_PER_WIDTH) ** 2) / 2)).max()
    assert moved <= 0.0012
    assert moved >= 0.00118  # and the statement is not slack


@pytest.mark.parametrize("of", [np.cos, np.sin, np.exp, np.log, np.sqrt, np.rint, lambda v: v / 3, lambda v: v * v])
def test_an_elementwise_function_gives_a_value_the_same_bits_wherever_it_stands(of):
    """The proofs take φ(z_i) for a function of row i: no remainder of a vector instruction may round otherwise."""
    rng = np.random.default_rng(3)
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, 5e-324, 1e22, -1e6, 800.0])
    with np.errstate(all="ignore"):
        for n in (1, 2, 3, 7, 8, 9, 31, 64, 65, 257):
            values = rng.uniform(0, 40, n)
            found = of(values)
            assert found.tobytes() == b"".join(of(np.full(1, value)).tobytes() for value in values)
            for _ in range(5):
                beside, order = values.copy(), rng.permutation(n)
                changed = rng.random(n) < 0.4
                beside[changed] = rng.choice(odd, int(changed.sum()))
                assert of(beside)[~changed].tobytes() == found[~changed].tobytes()
                assert of(values[order]).tobytes() == found[order].tobytes()
            table = of(np.tile(values, (7, 1)))
            assert all(row.tobytes() == found.tobytes() for row in table)
            assert all(column.tobytes() == found.tobytes() for column in of(np.tile(values[:, None], (1, 5))).T)
