"""Protected regressions: how far one training row moves them, and how far floats are from the exact fit."""

import itertools
import math
import pickle
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from dpcausal.errors import HiddenAnswerError, ParameterError
from dpcausal.papers.statistics import stability
from dpcausal.papers.statistics.stability import FeatureTable, feature_table, fit_stable
from dpcausal.privacy.sensitivity import Norm, Unit
from tests.registry.training import leaning, worst_table

Rows = Any

PENALTIES = (0.01, 0.1, 0.5, 1.0)


def worst_move(n: int, penalty: float) -> float:
    table = worst_table(penalty)
    rows = leaning(None, n, None, None)
    neighbour = rows.copy()
    neighbour[0] = 1.0, 1.0
    one, other = (fit_stable(*data.T, penalty=penalty, table=table).heights for data in (rows, neighbour))
    return float(np.abs(one - other).max())


@pytest.mark.proves("ridge-stability")
@pytest.mark.parametrize("penalty", PENALTIES)
def test_one_row_of_a_thousand_reaches_three_quarters_of_the_bound_and_never_passes_it(penalty: float) -> None:
    bound = float(stability.prediction_sensitivity(1000, penalty).bound)
    assert 0.78 * bound < worst_move(1000, penalty) <= bound


@pytest.mark.proves("ridge-stability")
@pytest.mark.parametrize(("n", "penalty"), list(itertools.product((5, 40, 1000, 10**6), (0.01, 0.3, 1.0, 30.0))))
def test_the_maximum_form_is_the_maximum_by_a_fine_grid_and_never_below_it(n: int, penalty: float) -> None:
    c = n * penalty / 2
    if c < 1:
        with pytest.raises(ParameterError):
            stability.maximum_form(n, penalty)
        return
    S = np.concatenate([[0.0], np.geomspace(1e-9, 1e9, 400_001) * c])
    exact = 2 * ((1 + np.sqrt((n - 1) * S) / (S + c)) / (S + c + 1)).max()
    assert exact <= stability.maximum_form(n, penalty) <= 1.002 * exact
    assert exact <= stability.closed_form(n, penalty)


@pytest.mark.proves("ridge-stability")
def test_one_record_passes_the_maximum_form_outside_its_conditions_and_keeps_the_closed_one() -> None:
    c, n = 0.02, 1
    length = math.sqrt(c)
    move = 2 * length / (length**2 + c)  # of w = y φ/(‖φ‖² + c), y from −1 to 1
    formula = 2 / (c + 1)  # no other records: the first term alone
    assert move > 3.6 * formula
    assert move <= stability.closed_form(n, 2 * c / n)
    assert stability.prediction_bound(n, 2 * c / n) == 2.0  # by the clip


def test_the_sensitivity_is_of_one_training_row_and_in_the_maximum_norm() -> None:
    claim = stability.prediction_sensitivity(500, 1.0)
    assert claim.norm is Norm.LINF and claim.unit is Unit.TRAINING_ROW and claim.proof == "ridge-stability"
    assert claim.bound > stability.prediction_bound(500, 1.0)


def exact_heights(x: Rows, y: Rows, penalty: float, table: FeatureTable) -> list[float]:
    """Return the heights in fractions: Gauss elimination of the system that the floats of φ define."""
    phi = [[Fraction(entry) for entry in row] for row in table.rows[table.index(x)].tolist()]
    size = len(phi[0])
    ridge = len(x) * Fraction(penalty) / 2
    rows = [
        [sum(p[i] * p[j] for p in phi) + (ridge if i == j else 0) for j in range(size)]
        + [sum(p[i] * Fraction(value) for p, value in zip(phi, y.tolist(), strict=True))]
        for i in range(size)
    ]
    for i in range(size):
        for j in range(i + 1, size):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [b - factor * a for a, b in zip(rows[i], rows[j], strict=True)]
    weights = [Fraction(0)] * size
    for i in reversed(range(size)):
        weights[i] = (rows[i][size] - sum(rows[i][j] * weights[j] for j in range(i + 1, size))) / rows[i][i]
    heights = [sum(Fraction(a) * w for a, w in zip(row, weights, strict=True)) for row in table.rows.tolist()]
    return [float(max(Fraction(-1), min(Fraction(1), height))) for height in heights]


@pytest.mark.proves("ridge-rounding")
@pytest.mark.parametrize("penalty", [1e-5, 1e-3, 0.1, 10.0, 1e5])
def test_the_floats_stay_within_the_stated_error_of_an_exact_fit(penalty: float) -> None:
    rng = np.random.default_rng(1)
    whole = feature_table(0.4, 3)
    table = FeatureTable(whole.places[::512], whole.rows[::512])
    y = np.rint(rng.uniform(-1, 1, 40) * 2**24) / 2**24
    for x in (rng.uniform(-1, 1, 40), np.repeat([-1.0, 0.5], 20), np.zeros(40)):
        computed = fit_stable(x, y, penalty=penalty, table=table).heights
        assert np.abs(computed - exact_heights(x, y, penalty, table)).max() <= stability.rounding(penalty)


@pytest.mark.proves("ridge-rounding")
def test_the_order_of_the_rows_and_of_the_sums_is_within_the_stated_error() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.uniform(-1, 1, (2, 3000))
    table = feature_table(0.2)
    one = fit_stable(x, y, penalty=1e-4, table=table).heights
    order = rng.permutation(3000)
    # Rows in another order: the same counts and sums, hence the same bits.
    assert np.array_equal(one, fit_stable(x[order], y[order], penalty=1e-4, table=table).heights)
    # Features in another order: other sums in the linear algebra.
    columns = rng.permutation(table.rows.shape[1])
    shuffled = FeatureTable(table.places, np.ascontiguousarray(table.rows[:, columns]))
    other = fit_stable(x, y, penalty=1e-4, table=shuffled).heights
    assert 0 < np.abs(one - other).max() <= 2 * stability.rounding(1e-4)


@pytest.mark.proves("ridge-rounding")
def test_sums_of_responses_are_exact_for_as_many_rows_as_are_taken() -> None:
    assert stability.RESPONSE_STEPS * stability.MOST_ROWS <= 2**53


def test_features_are_unit_vectors_near_the_gaussian_kernel() -> None:
    table = feature_table(0.5)
    assert np.abs(np.linalg.norm(table.rows, axis=1) - 1).max() < 1e-14
    kernel = np.exp(-(((table.places[:, None] - table.places[::64]) / 0.5) ** 2) / 2)
    assert np.abs(table.rows @ table.rows[::64].T - kernel).max() < 0.01


@pytest.mark.parametrize("penalty", [1e-3, 0.1])
def test_a_smooth_fit_is_that_of_scikit_learn(penalty: float) -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, 400)
    y = np.clip(0.6 * np.sin(4 * x) + 0.1 * rng.normal(size=400), -1, 1)
    model = KernelRidge(alpha=400 * penalty / 2, kernel="rbf", gamma=1 / (2 * 0.5**2)).fit(x[:, None], y)
    new = np.linspace(-1, 1, 77)
    ours = fit_stable(x, y, penalty=penalty, table=feature_table(0.5))(new)
    assert np.abs(ours - model.predict(new[:, None])).max() < 0.02


@pytest.mark.parametrize(
    "values",
    [[0.0] * 9, [math.nan] * 9, [math.inf, -math.inf, 1e300] * 3, [5e-324] * 9, [-1.0, 1.0] * 5],
    ids=["constant", "not a number", "infinite", "tiny", "ends"],
)
def test_a_fit_is_total(values: Rows) -> None:
    values = np.asarray(values, dtype=np.float64)
    other = np.linspace(-1, 1, len(values))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x, y in ((values, other), (other, values), (values, values)):
            heights = fit_stable(x, y, penalty=1e-5, table=feature_table(0.5)).heights
            assert np.isfinite(heights).all() and np.abs(heights).max() <= 1


def test_a_prediction_is_a_function_of_its_own_value() -> None:
    rng = np.random.default_rng(4)
    x, y, new = rng.uniform(-1, 1, (3, 9000))
    predict = fit_stable(x, y, penalty=0.01, table=feature_table(0.1))
    whole = predict(new)
    assert all(predict(new[k : k + 1])[0] == whole[k] for k in range(0, 9000, 300))


REFUSALS = [
    *((stability.prediction_bound, 100, penalty) for penalty in (0, -1.0, 9e-6, 2e5, math.nan, math.inf, True, "1")),
    *((feature_table, width) for width in (0.001, 1e3, math.nan)),
    (feature_table, 1.0, 101),
    (stability.prediction_bound, 0, 1.0),
    (lambda x, y: fit_stable(x, y, penalty=1.0, table=feature_table(1.0)), np.zeros(3), np.zeros(4)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "arguments"), [(call, rest) for call, *rest in REFUSALS])
def test_arguments_out_of_range_are_refused(call: Any, arguments: Any) -> None:
    with pytest.raises(ParameterError):
        call(*arguments)


def test_a_fit_does_not_leave_the_process() -> None:
    fitted = fit_stable(np.zeros(3), np.zeros(3), penalty=1.0, table=feature_table(1.0))
    with pytest.raises(HiddenAnswerError):
        pickle.dumps(fitted)
    assert "0." not in repr(fitted)
