"""Sums of residual products: bounds that no neighbours pass, and rows that come near them."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcausal.papers.independence.priv_crt import published_resample_bound
from dpcausal.papers.independence.priv_gcm import published_products_bound
from dpcausal.privacy.sensitivity import Norm
from dpcausal.regression import residual_products as page
from tests.conformance import STARTS as SHAPES
from tests.conformance import check_claim, search
from tests.regression.products import DOMAIN, STARTS, products, resample_sum, weights

Rows = Any
PENALTIES = (0.002, 0.02, 0.1, 0.5, 2.0, 10.0, 50.0)
ALL = {**SHAPES, **STARTS}


def weights_bound(m: int, penalty: float) -> float:
    """Return (2 + B)/a, the most that w moves."""
    return (2 + page.norm_bound(penalty)) / (m * penalty / 2)


STATISTICS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "resample-product-sum": (resample_sum, page.resample_sum_bound, {}),
    "residual-products": (products, lambda m, penalty: page.products_sensitivity(m, penalty).bound, {"norm": Norm.L1}),
    "regression-weights": (lambda rows, penalty: weights(rows, penalty)[:, 0], weights_bound, {"norm": Norm.L2}),
}


@pytest.mark.proves("resample-product-sum")
@pytest.mark.proves("residual-products")
@pytest.mark.proves("regression-weights")
@pytest.mark.parametrize("claim", STATISTICS)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_no_neighbours_move_all_products_past_their_bound_and_the_published_one_is_larger(claim, penalty):
    statistic, bound, norm = STATISTICS[claim]
    found = search(lambda rows: statistic(rows, penalty), lambda m: bound(m, penalty), sizes=(3, 12, 60),
                   evaluations=600, starts=ALL, **DOMAIN, **norm)  # fmt: skip
    assert found.ratio <= 1 + 1e-9
    assert published_products_bound(penalty) > float(page.products_sensitivity(60, penalty).bound)
    assert published_resample_bound(penalty) > page.resample_sum_bound(60, penalty)


@pytest.mark.proves("resample-product-sum")
def test_without_a_regression_the_bound_is_two_and_is_reached():
    check_claim(
        lambda rows: float(rows[:, 0] @ rows[:, 1]), lambda m: page.resample_sum_sensitivity(m, None), sizes=(3, 9),
        low=-1.0, high=1.0,
    )  # fmt: skip


@pytest.mark.proves("regression-weights")
def test_the_bound_of_the_weights_is_reached_to_its_slack_and_a_smaller_one_is_caught():
    found = [
        search(lambda rows: weights(rows, 10.0)[:, 0], lambda m: weights_bound(m, 10.0), sizes=(60,), norm=Norm.L2,
               evaluations=2_800, seed=seed, **DOMAIN, starts=ALL) for seed in (0, 1, 2)
    ]  # fmt: skip
    assert all(0.85 < one.ratio <= 1 for one in found)


def test_the_largest_norm_is_a_maximum_over_the_spectrum():
    shares = np.linspace(1e-6, 1, 400_001)
    for penalty in PENALTIES:
        largest = (np.sqrt(shares) / (shares + penalty / 2)).max()
        assert largest <= page.norm_bound(penalty) <= largest * (1 + 1e-6)


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

        left = page.fitted_residuals(chunks, rows[:, 1:], page.fit_weights(chunks, rows[:, 1:], penalty))
        exact = rational_products(rows, penalty)
        found = left[:, 0] * left[:, 1]
        error = max(abs(float(Fraction(float(a)) - b)) for a, b in zip(found, exact, strict=True))
        assert error <= page._product_error(n, penalty)
        assert page.rounding_error(n, penalty) < 1e-4


def test_many_features_solve_the_normal_equations():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(700, 40))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    U = rng.uniform(-1, 1, (700, 2))

    def chunks() -> Any:
        yield slice(0, 300), features[:300]
        yield slice(300, 700), features[300:]

    found = page.fit_weights(chunks, U, 0.05)
    assert features.T @ (U - features @ found) == pytest.approx(700 * 0.05 / 2 * found, abs=1e-9)
    assert page.fitted_residuals(chunks, U, found) == pytest.approx(U - features @ found, abs=1e-12)
