"""Second and third moments of whitened levels: bounds over all pairs of rows, merged levels, exact sums."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dpcausal.statistics import level_moments as whitened
from dpcausal.statistics.level_moments import features, merged_levels, row_entries, third_moments, weight_sums
from dpcausal.statistics.moments import scaled

SHARES = [np.array([0.5, 0.5]), np.array([0.2, 0.5, 0.3]), np.array([0.9, 0.1])]
PLACES = [(0, 1), (0, 1, 2), (0, 1)]
SQUARED = 2.0  # .4 D
ALL = [(0, 1, 2)]


def moments(codes: Any, places: Any, shares: Any, squared: float, n: int) -> Any:
    return scaled(whitened.whitened_sums(list(codes), places, shares, squared, n), row_entries(shares))


def seconds(rows: Any) -> Any:
    return moments(np.rint(rows).astype(np.int64).T, PLACES, SHARES, SQUARED, len(rows))


def released(*schemas: tuple[int, ...]) -> Iterator[tuple[int, Any, Any, list[Any]]]:
    """Yield a trial's number, merged levels with shares that are far from any rows', and every row of a schema."""
    rng = np.random.default_rng(1)
    for sizes in schemas:
        for trial in range(6):
            noisy = [rng.normal(20, 40, size) for size in sizes]
            places, shares = zip(*(merged_levels(part, 4.0 * (trial % 2)) for part in noisy), strict=True)
            yield trial, places, shares, [np.array([row]) for row in itertools.product(*map(range, sizes))]


def worst_change(sums: list[Any]) -> float:
    """Return the most that one row in place of another, or of one that is left out, moves the sums."""
    return max(float(np.linalg.norm(a - b)) for a in [*sums, 0 * sums[0]] for b in sums)


@pytest.mark.proves("whitened-moments")
def test_the_bound_holds_for_all_pairs_of_rows_of_small_schemas_whatever_shares_were_released() -> None:
    for _, places, shares, rows in released((2,), (2, 2), (3, 2, 4), (2, 2, 2, 2)):
        squared = 0.4 * row_entries(shares)
        bound = float(whitened.whitened_moments_sensitivity(row_entries(shares), squared, 10).bound)
        assert worst_change([moments(row.T, places, shares, squared, 10) for row in rows]) <= bound


@pytest.mark.proves("third-moments")
def test_the_bound_of_triples_holds_for_all_pairs_of_rows_whatever_was_released_before() -> None:
    rng = np.random.default_rng(1)
    for trial, places, shares, rows in released((2, 2, 2), (3, 2, 4), (2, 2, 2, 3)):
        every = list(itertools.combinations(range(len(shares)), 3))
        triples, length = every[: 1 + trial % len(every)], float(np.exp(rng.uniform(-3, 3)))
        weights = (weight_sums(list(row.T), places, shares, 0.7 * row_entries(shares), triples, length, 10)
                   for row in rows)  # fmt: skip
        bound = float(whitened.third_moments_sensitivity(shares, triples, length, 10).bound)
        assert worst_change([third_moments(sums, shares, triples, 10) for sums in weights]) <= bound


def test_features_are_orthonormal_under_the_shares_and_of_mean_0() -> None:
    rng = np.random.default_rng(2)
    for k in (1, 2, 3, 7):
        p = rng.dirichlet(np.ones(k))
        F = features(p)
        assert F.shape == (k, k - 1)
        np.testing.assert_allclose(F.T @ (p[:, None] * F), np.eye(k - 1), atol=1e-9)
        np.testing.assert_allclose(p @ F, 0, atol=1e-9)


def test_levels_that_are_lost_in_the_noise_count_as_the_rarest_that_is_not() -> None:
    places, shares = merged_levels(np.array([500.0, -20.0, 60.0, 12.0, 300.0]), 10.0)
    assert places == (0, 1, 1, 1, 2)
    np.testing.assert_allclose(shares, np.array([500, 72, 300]) / 872)
    assert merged_levels(np.array([-5.0, -9.0, -1.0]), 10.0) == ((0, 0, 0), np.array([1.0]))
    merged, exact = merged_levels(np.array([3.0, 0.0, 1.0]), 0.0)
    assert merged == (0, 1, 1) and exact.tolist() == [0.75, 0.25]


def test_sums_in_groups_are_those_of_all_rows_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(3).integers(0, [2, 3, 2], (500, 3))
    whole = seconds(rows)
    monkeypatch.setattr(whitened, "CHUNK", 7)
    assert (seconds(rows) == whole).all()
    assert (seconds(rows[::-1]) == whole).all()
    assert not moments(rows[:0].T, PLACES, SHARES, SQUARED, 500).any()


def test_a_row_counts_as_its_shortened_features() -> None:
    row = np.array([1, 2, 1])
    u = np.concatenate([*(features(p)[code] for p, code in zip(SHARES, row, strict=True)), [1.0]])
    v = u * min(1.0, np.sqrt(SQUARED) / np.linalg.norm(u))
    bits = whitened.grid(SQUARED, 1).bits
    sums = seconds(row[None, :]) * 4.0**-bits
    np.testing.assert_allclose(sums[:5], v**2, atol=2.0 ** (2 - bits))
    np.testing.assert_allclose(sums[5:], np.sqrt(2) * np.outer(v, v)[np.triu_indices(5, 1)], atol=2.0 ** (2 - bits))


def thirds(rows: Any, length: float, shares: Any = SHARES, places: Any = PLACES, squared: float = 2.0) -> Any:
    return third_moments(
        weight_sums(list(np.rint(rows).astype(np.int64).T), places, shares, squared, ALL, length, len(rows)),
        shares, ALL, len(rows),
    )  # fmt: skip


def test_sums_add_over_groups_of_rows_bit_for_bit() -> None:
    rows = np.random.default_rng(3).integers(0, [2, 3, 2], (500, 3))
    whole, first, last = (
        weight_sums(list(part.T), PLACES, SHARES, 2.0, ALL, 1.5, 500) for part in (rows, rows[:77], rows[77:])
    )
    assert (first + last == whole).all() and not weight_sums(list(rows[:0].T), PLACES, SHARES, 2.0, ALL, 1.5, 500).any()


def test_a_row_counts_as_its_weighted_products() -> None:
    row = np.array([1, 2, 1])
    parts = [features(p)[code] for p, code in zip(SHARES, row, strict=True)]
    product = np.einsum("a,b,c->abc", *parts).ravel()
    phi = np.append(product, whitened.constant(whitened.third_entries(SHARES, ALL)))
    w2 = 2.0 / (1 + sum(float(part @ part) for part in parts))
    for length in (0.5, 50.0):
        g = min(w2, length / float(np.linalg.norm(phi)))
        np.testing.assert_allclose(thirds(row[None, :], length), g * phi, rtol=1e-5)
