"""Second and third moments of whitened levels: bounds over all pairs of rows, merged levels, exact sums."""

import itertools
from typing import Any

import numpy as np
import pytest

from dpcausal.statistics import level_moments as whitened
from dpcausal.statistics.level_moments import (
    constant,
    features,
    grid,
    merged_levels,
    row_entries,
    third_entries,
    third_moments,
    third_moments_sensitivity,
    weight_sums,
    whitened_moments,
    whitened_moments_sensitivity,
)

SHARES = [np.array([0.5, 0.5]), np.array([0.2, 0.5, 0.3]), np.array([0.9, 0.1])]
PLACES = [(0, 1), (0, 1, 2), (0, 1)]
SQUARED = 2.0  # .4 D
ALL = [(0, 1, 2)]


def seconds(rows: Any) -> Any:
    return whitened_moments(list(np.rint(rows).astype(np.int64).T), PLACES, SHARES, SQUARED, len(rows))


@pytest.mark.proves("whitened-moments")
def test_the_bound_holds_for_all_pairs_of_rows_of_small_schemas_whatever_shares_were_released() -> None:
    # Also for shares that are far from those of the rows, for merged levels, and a row that is left out.
    rng = np.random.default_rng(1)
    for sizes in ((2,), (2, 2), (3, 2, 4), (2, 2, 2, 2)):
        for trial in range(6):
            noisy = [rng.normal(20, 40, size) for size in sizes]
            places, shares = zip(*(merged_levels(part, 4.0 * (trial % 2)) for part in noisy), strict=True)
            D = row_entries(shares)
            squared = 0.4 * D
            rows = [np.array([row]) for row in itertools.product(*map(range, sizes))]
            sums = [whitened_moments(list(row.T), places, shares, squared, 10) for row in rows]
            bound = float(whitened_moments_sensitivity(D, squared, 10).bound)
            worst = max(float(np.linalg.norm(a - b)) for a in [*sums, 0 * sums[0]] for b in sums)
            assert worst <= bound


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
    assert not whitened_moments(list(rows[:0].T), PLACES, SHARES, SQUARED, 500).any()


def test_a_row_counts_as_its_shortened_features() -> None:
    row = np.array([1, 2, 1])
    u = np.concatenate([*(features(p)[code] for p, code in zip(SHARES, row, strict=True)), [1.0]])
    v = u * min(1.0, np.sqrt(SQUARED) / np.linalg.norm(u))
    bits = grid(SQUARED, 1).bits
    sums = seconds(row[None, :]) * 4.0**-bits
    np.testing.assert_allclose(sums[:5], v**2, atol=2.0 ** (2 - bits))
    np.testing.assert_allclose(sums[5:], np.sqrt(2) * np.outer(v, v)[np.triu_indices(5, 1)], atol=2.0 ** (2 - bits))


def thirds(rows: Any, length: float, shares: Any = SHARES, places: Any = PLACES, squared: float = 2.0) -> Any:
    return third_moments(
        weight_sums(list(np.rint(rows).astype(np.int64).T), places, shares, squared, ALL, length, len(rows)),
        shares, ALL, len(rows),
    )  # fmt: skip


@pytest.mark.proves("third-moments")
def test_the_bound_of_triples_holds_for_all_pairs_of_rows_whatever_was_released_before() -> None:
    rng = np.random.default_rng(1)
    for sizes in ((2, 2, 2), (3, 2, 4), (2, 2, 2, 3)):
        every = list(itertools.combinations(range(len(sizes)), 3))
        for trial in range(6):
            noisy = [rng.normal(20, 40, size) for size in sizes]
            places, shares = zip(*(merged_levels(part, 4.0 * (trial % 2)) for part in noisy), strict=True)
            triples = every[: 1 + trial % len(every)]
            length = float(np.exp(rng.uniform(-3, 3)))
            rows = [np.array([row]) for row in itertools.product(*map(range, sizes))]
            sums = [
                third_moments(
                    weight_sums(list(row.T), places, shares, 0.7 * row_entries(shares), triples, length, 10),
                    shares, triples, 10,
                ) for row in rows
            ]  # fmt: skip
            bound = float(third_moments_sensitivity(shares, triples, length, 10).bound)
            assert max(float(np.linalg.norm(a - b)) for a in [*sums, 0 * sums[0]] for b in sums) <= bound


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
    phi = np.append(product, constant(third_entries(SHARES, ALL)))
    w2 = 2.0 / (1 + sum(float(part @ part) for part in parts))
    for length in (0.5, 50.0):
        g = min(w2, length / float(np.linalg.norm(phi)))
        np.testing.assert_allclose(thirds(row[None, :], length), g * phi, rtol=1e-5)
