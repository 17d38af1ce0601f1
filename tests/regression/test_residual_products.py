"""Sums of residual products: bounds that no neighbours pass, and rows that come near them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcausal.errors import ParameterError
from dpcausal.papers.priv_crt import published_resample_bound
from dpcausal.papers.priv_gcm import published_products_bound
from dpcausal.privacy.sensitivity import Norm
from dpcausal.regression import residual_products as page
from dpcausal.regression.residual_products import (
    added,
    clipped_squares_sensitivity,
    fit_weights,
    fitted_residuals,
    local_bound,
    norms,
    product_sum_bound,
    product_sum_sensitivity,
    products_sensitivity,
    resample_sum_bound,
    resample_sum_sensitivity,
    rounding,
    smooth_bound,
    smooth_sensitivity,
)
from tests.conformance import STARTS as SHAPES
from tests.conformance import check_claim, search
from tests.regression.products import (
    ADDED,
    DOMAIN,
    FOUR_CORNERS,
    STARTS,
    product_sum,
    products,
    resample_sum,
    split,
    weights,
)

Rows = Any
PENALTIES = (0.002, 0.02, 0.1, 0.5, 2.0, 10.0, 50.0)
ALL = {**SHAPES, **STARTS}


def weights_bound(m: int, penalty: float) -> float:
    """Return (2 + B)/a, the most that w moves."""
    return (2 + norms(penalty).whole) / (m * penalty / 2)


def worst(statistic: Any, bound: Any, sizes: tuple[int, ...], evaluations: int = 600, **domain: Any) -> float:
    found = search(statistic, bound, sizes=sizes, evaluations=evaluations, **{**DOMAIN, "starts": ALL, **domain})
    return found.ratio


@pytest.mark.proves("residual-product-sum")
@pytest.mark.parametrize("penalty", PENALTIES)
def test_no_neighbours_move_the_sum_of_products_past_its_bound(penalty):
    ratio = worst(lambda rows: product_sum(rows, penalty), lambda m: product_sum_bound(m, penalty), (3, 12, 60))
    assert ratio <= 1 + 1e-9
    assert penalty < 0.5 or ratio > 0.3


@pytest.mark.proves("residual-product-sum")
@pytest.mark.parametrize(("penalty", "reached"), [(0.5, 0.93), (1.0, 0.93)])
def test_four_groups_of_rows_come_near_the_bound_of_the_sum(penalty, reached):
    common = FOUR_CORNERS[np.arange(400) % 4]
    sums = [product_sum(np.vstack([common, row]), penalty) for row in ADDED]
    assert reached < abs(sums[0] - sums[1]) / product_sum_bound(401, penalty) <= 1


@pytest.mark.proves("residual-product-sum")
def test_the_search_catches_a_bound_of_the_sum_that_is_too_small():
    check_claim(
        lambda rows: product_sum(rows, 0.5), lambda m: product_sum_sensitivity(m, 0.5), sizes=(160,), reached=0.9,
        mutant=0.87, starts={"four corners": STARTS["four corners"]}, **DOMAIN,
    )  # fmt: skip


@pytest.mark.proves("resample-product-sum")
@pytest.mark.parametrize("penalty", PENALTIES)
def test_no_neighbours_move_the_sum_with_public_residuals_past_its_bound(penalty):
    ratio = worst(lambda rows: resample_sum(rows, penalty), lambda m: resample_sum_bound(m, penalty), (3, 12, 60))
    assert ratio <= 1 + 1e-9


@pytest.mark.proves("resample-product-sum")
@pytest.mark.parametrize("penalty", [0.5])
def test_the_bound_with_public_residuals_is_nearly_reached_and_a_smaller_one_is_caught(penalty):
    check_claim(
        lambda rows: resample_sum(rows, penalty), lambda m: resample_sum_sensitivity(m, penalty), sizes=(120,),
        reached=0.9, mutant=0.85, starts={"groups": STARTS["two groups"]}, **DOMAIN,
    )  # fmt: skip


@pytest.mark.proves("resample-product-sum")
def test_without_a_regression_the_bound_is_two_and_is_reached():
    check_claim(
        lambda rows: float(rows[:, 0] @ rows[:, 1]), lambda m: resample_sum_sensitivity(m, None), sizes=(3, 9),
        low=-1.0, high=1.0,
    )  # fmt: skip


@pytest.mark.proves("residual-products")
@pytest.mark.parametrize("penalty", PENALTIES)
def test_no_neighbours_move_all_products_past_their_bound_and_the_published_one_is_larger(penalty):
    claim = products_sensitivity(60, penalty)
    ratio = worst(lambda rows: products(rows, penalty), lambda m: float(products_sensitivity(m, penalty).bound),
                  (3, 12, 60), norm=Norm.L1)  # fmt: skip
    assert ratio <= 1 + 1e-9
    assert claim.norm is Norm.L1 and published_products_bound(penalty) > float(claim.bound)
    assert published_resample_bound(penalty) > resample_sum_bound(60, penalty)


@pytest.mark.proves("residual-products")
def test_the_bound_of_all_products_is_reached_to_its_slack_and_a_smaller_one_is_caught():
    # Slack: the other rows' moves are bounded apart from the changed row's.
    check_claim(
        lambda rows: products(rows, 10.0), lambda m: products_sensitivity(m, 10.0), sizes=(60,), reached=0.75,
        mutant=0.7, starts=ALL, **DOMAIN,
    )  # fmt: skip


@pytest.mark.proves("regression-weights")
@pytest.mark.parametrize("penalty", PENALTIES)
def test_no_neighbours_move_the_weights_past_their_bound(penalty):
    ratio = worst(lambda rows: weights(rows, penalty)[:, 0], lambda m: weights_bound(m, penalty), (3, 12, 60),
                  norm=Norm.L2)  # fmt: skip
    assert ratio <= 1 + 1e-9


@pytest.mark.proves("regression-weights")
def test_the_bound_of_the_weights_is_reached_to_its_slack_and_a_smaller_one_is_caught():
    found = [
        search(lambda rows: weights(rows, 10.0)[:, 0], lambda m: weights_bound(m, 10.0), sizes=(60,), norm=Norm.L2,
               evaluations=2_800, seed=seed, **DOMAIN, starts=ALL) for seed in (0, 1, 2)
    ]  # fmt: skip
    assert all(0.85 < one.ratio <= 1 for one in found)


@pytest.mark.proves("clipped-product-squares")
@pytest.mark.parametrize(("penalty", "threshold"), [(0.1, 1.0), (2.0, 1.0), (2.0, 0.5), (50.0, 0.2)])
def test_no_neighbours_move_the_clipped_squares_past_their_bound(penalty, threshold):
    def statistic(rows: Rows) -> float:
        return float(np.minimum(products(rows, penalty) ** 2, threshold**2).sum())

    bound = clipped_squares_sensitivity
    ratio = worst(statistic, lambda m: float(bound(m, penalty, threshold).bound), (3, 12, 60), evaluations=2_000)
    assert ratio <= 1 + 1e-9


@pytest.mark.proves("clipped-product-squares")
def test_the_bound_of_the_clipped_squares_is_the_printed_six_and_a_smaller_one_is_caught():
    assert float(clipped_squares_sensitivity(1000, 2.0, 1.0).bound) == pytest.approx(6, rel=1e-6)
    check_claim(
        lambda rows: float(np.minimum(products(rows, 50.0) ** 2, 1).sum()),
        lambda m: clipped_squares_sensitivity(m, 50.0, 1.0), sizes=(12, 60), reached=0.8, mutant=0.75, starts=ALL,
        **DOMAIN,
    )  # fmt: skip


def test_the_three_norms_are_maxima_over_the_spectrum():
    shares = np.linspace(1e-6, 1, 400_001)
    for penalty in PENALTIES:
        mu, found = penalty / 2, norms(penalty)
        root, total = np.sqrt(shares), shares + mu
        for value, curve in (
            (found.whole, root / total), (found.shrunk, mu * root / total**2),
            (found.sum, root * (shares + 2 * mu) / total**2),
        ):  # fmt: skip
            assert curve.max() <= value <= curve.max() * (1 + 1e-6)


def rational_products(rows: Rows, penalty: float) -> list[Fraction]:
    """Return the exact products of one feature's ridge residuals."""
    phi, x, y = ([Fraction(float(v)) for v in column] for column in rows.T)
    system = sum(f * f for f in phi) + len(phi) * Fraction(penalty) / 2
    w, v = (sum(f * u for f, u in zip(phi, column, strict=True)) / system for column in (x, y))
    return [(a - w * f) * (b - v * f) for f, a, b in zip(phi, x, y, strict=True)]


@pytest.mark.proves("residual-rounding")
@pytest.mark.parametrize("penalty", [0.001, 0.1, 100.0])
def test_computed_residuals_are_within_the_stated_rounding_of_exact_ones(penalty):
    rng = np.random.default_rng(2)
    for n in (1, 40, 9_000):
        rows = rng.uniform(-1, 1, (n, 3))
        rows[rng.random((n, 3)) < 0.2] = 1.0

        def chunks(rows: Rows = rows) -> Any:
            for start in range(0, len(rows), page.CHUNK_ROWS):
                yield slice(start, start + page.CHUNK_ROWS), rows[start : start + page.CHUNK_ROWS, :1]

        left = fitted_residuals(chunks, rows[:, 1:], fit_weights(chunks, rows[:, 1:], penalty))
        exact = rational_products(rows, penalty)
        found = left[:, 0] * left[:, 1]
        error = max(abs(float(Fraction(float(a)) - b)) for a, b in zip(found, exact, strict=True))
        assert error <= page._product_error(n, penalty)
        total = abs(float(Fraction(added(found)) - sum(exact)))
        assert total <= page._sum_error(n, page._product_error(n, penalty), (1 + norms(penalty).whole) ** 2)
        assert rounding(n, penalty) < 1e-4


def test_many_features_solve_the_normal_equations():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(700, 40))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    U = rng.uniform(-1, 1, (700, 2))

    def chunks() -> Any:
        yield slice(0, 300), features[:300]
        yield slice(300, 700), features[300:]

    found = fit_weights(chunks, U, 0.05)
    assert features.T @ (U - features @ found.values) == pytest.approx(700 * 0.05 / 2 * found.values, abs=1e-9)
    assert fitted_residuals(chunks, U, found) == pytest.approx(U - features @ found.values, abs=1e-12)


def smoothed(rows: Rows, penalty: float, beta: float) -> Rows:
    norm = float(np.sqrt((weights(rows, penalty) ** 2).sum(axis=0)).max())
    return np.array([product_sum(rows, penalty), smooth_bound(norm, len(rows), penalty, beta)])


@pytest.mark.proves("smooth-product-sum")
@pytest.mark.parametrize(("penalty", "beta"), [(0.1, 0.05), (1.0, 0.02), (0.02, 0.3)])
def test_no_neighbours_break_the_smooth_bound(penalty, beta):
    found = search(lambda rows: smoothed(rows, penalty, beta), beta, sizes=(3, 30, 200), norm=Norm.SMOOTH,
                   evaluations=3_000, starts=ALL, **DOMAIN)  # fmt: skip
    assert found.ratio <= 1 + 1e-9


@pytest.mark.proves("smooth-product-sum")
def test_the_smooth_bound_is_reached_and_a_smaller_one_is_caught():
    check_claim(
        lambda rows: smoothed(rows, 0.5, 0.02), lambda m: smooth_sensitivity(0.02), sizes=(100,),
        starts={"constant": SHAPES["constant"]}, **DOMAIN,
    )  # fmt: skip
    # The value: where nothing is learnt, one row's product goes from 1 to −1 and the bound is h(0) = 2.
    rows = np.zeros((200, 5))
    rows[0, 3:] = 1
    other = rows.copy()
    other[0, 4] = -1
    (value, bound), (moved, _) = smoothed(rows, 50.0, 0.02), smoothed(other, 50.0, 0.02)
    assert 0.99 * bound < value - moved <= bound


def test_the_smooth_bound_is_never_below_the_local_bound_nor_above_the_global_one():
    for penalty in (0.02, 0.5):
        for norm in (0.0, 0.3, 2.0):
            found = smooth_bound(norm, 5_000, penalty, 0.05)
            least = min(local_bound(norm, 5_000, penalty), product_sum_bound(5_000, penalty))
            assert least <= found <= product_sum_bound(5_000, penalty) * 1.001


def test_the_published_constants_are_those_printed():
    assert published_products_bound(10.0) == pytest.approx(11.73, abs=0.005)
    assert published_resample_bound(10.0) == pytest.approx(6.95, abs=0.005)
    assert published_products_bound(0.02) == pytest.approx(97_284, abs=1)


def test_rows_of_the_search_have_features_of_norm_one_at_most():
    features, _, _ = split(np.random.default_rng(1).uniform(-1, 1, (50, 5)))
    assert math.isclose(float(np.linalg.norm(features, axis=1).max()), 1)


def test_a_smooth_bound_is_refused_where_its_rounding_is_not_proved():
    with pytest.raises(ParameterError, match="smooth bound needs a penalty"):
        smooth_bound(1.0, 100, 0.005, 0.02)
