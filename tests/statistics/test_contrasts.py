"""Contrasts: the bound equals brute force, the tables come back, and rounding is covered."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from dpcausal.statistics.contrasts import (
    complete_square,
    contrast_basis,
    contrast_of,
    contrast_square,
    contrasts_sensitivity,
)


def feature(record: tuple[int, ...], sizes: tuple[int, ...], members: tuple[int, ...]) -> Any:
    value = np.ones(1)
    for i in members:
        value = np.kron(value, contrast_basis(sizes[i])[record[i]])
    return value


def sets(columns: int, order: int) -> list[tuple[int, ...]]:
    return [chosen for size in range(1, order + 1) for chosen in itertools.combinations(range(columns), size)]


@pytest.mark.proves("contrasts")
@pytest.mark.parametrize(("sizes", "order"), [
    *itertools.product([(2, 2, 2, 2), (2, 3, 2), (3, 4, 2), (3, 3, 5)], [1, 2, 3]),
    *((sizes, None) for sizes in [(2,), (3,), (2, 2), (3, 4), (2, 3, 5), (3, 3, 3)]),
])  # fmt: skip
def test_the_bound_of_one_set_or_of_all_of_an_order_equals_brute_force(sizes: Any, order: int | None) -> None:
    chosen = sets(len(sizes), order) if order else [tuple(range(len(sizes)))]
    records = list(itertools.product(*(range(k) for k in sizes)))
    features = [np.concatenate([feature(r, sizes, s) for s in chosen]) for r in records]
    worst = max(float(((a - b) ** 2).sum()) for a, b in itertools.combinations(features, 2))
    assert math.isclose(complete_square(sizes, order) if order else contrast_square(sizes), worst, rel_tol=1e-12)


@pytest.mark.parametrize(("sizes", "batch"), [
    ((2,), [(0,)]), ((2, 3), [(0,), (1,), (0, 1)]), ((2, 2), [(0, 1)]), ((3, 4), [(0,), (1,)]),
])  # fmt: skip
def test_the_bound_with_the_count_is_that_of_all_changes_of_a_row_or_of_leaving_it_out(sizes: Any, batch: Any) -> None:
    records = itertools.product(*(range(k) for k in sizes))
    features = [np.concatenate([np.ones(1), *(feature(r, sizes, s) for s in batch)]) for r in records]
    worst = max(math.dist(a, b) for a, b in itertools.combinations([*features, 0 * features[0]], 2))
    bound = float(contrasts_sensitivity(sizes, batch, 10, counted=True).bound)
    assert worst <= bound and (len(batch) != 1 or worst > 0.8 * bound)


def test_columns_of_many_kinds_have_the_bound_of_their_sets() -> None:
    sizes, batch = [2 + k for k in range(20) for _ in range(2)], [(0, 1), (2, 3)]
    assert complete_square(sizes, 2) == math.inf
    expected = sum(contrast_square([sizes[i] for i in s]) for s in batch)
    assert float(contrasts_sensitivity(sizes, batch, 100).bound) == pytest.approx(math.sqrt(expected), rel=1e-6)


def test_basis_columns_are_orthonormal_and_sum_to_zero() -> None:
    for k in range(1, 7):
        basis = contrast_basis(k)
        assert basis.shape == (k, k - 1)
        assert np.allclose(basis.T @ basis, np.eye(k - 1)) and np.allclose(basis.sum(axis=0), 0)


def test_a_column_of_one_level_has_no_contrast() -> None:
    assert complete_square([1, 2, 2], 2) == complete_square([2, 2], 2)
    assert contrast_square([1, 3]) == 0
    assert contrast_of(np.zeros((1, 3), dtype=np.int64)).size == 0


def test_rounding_is_within_what_is_added() -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 10**6, (4, 4, 4, 4))
    bases = [contrast_basis(4).astype(np.longdouble)] * 4
    exact = np.einsum("abcd,ai,bj,ck,dl->ijkl", counts.astype(np.longdouble), *bases).ravel()
    error = np.abs(contrast_of(counts).astype(np.longdouble) - exact).max()
    assert error <= 0.5 * counts.sum() * 2.0**-42
