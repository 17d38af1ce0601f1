import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcausal.errors import ParameterError
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.regression.kernel_ridge import CHUNK_ROWS, PLACES_PER_WIDTH, FourierFeatures, draw_features


@given(
    values=st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=20),
    pairs=st.integers(1, 40),
    width=st.floats(1e-3, 1e3),
)
def test_every_feature_vector_has_norm_one(values, pairs, width):
    rows = draw_features(pairs, width, generator_from_seed(0))(np.array(values))
    assert rows.shape == (len(values), 2 * pairs)
    np.testing.assert_allclose((rows**2).sum(axis=1), 1, rtol=1e-12)


def test_inner_products_approximate_the_gaussian_kernel_in_the_columns_own_unit():
    # A mean of 4000 cosines in [-1, 1]: by Hoeffding each of 45 pairs is off by .12 with probability at most
    # 2 exp(-4000 * .12**2 / 2), in all less than 3e-11.
    width, values = 3.0, np.linspace(-10, 10, 10)
    rows = draw_features(4000, width, generator_from_seed(1))(values)
    kernel = np.exp(-(np.subtract.outer(values, values) ** 2) / (2 * width**2))
    assert np.abs(rows @ rows.T - kernel).max() < 0.12


def test_the_approximated_kernel_can_be_negative_so_it_is_no_kernel_in_the_unit_interval():
    rows = FourierFeatures(np.array([1.0]), 1.0)(np.array([0.0, math.pi]))
    assert rows[0] @ rows[1] == pytest.approx(-1)


def test_the_same_seed_draws_the_same_features():
    first, second = (draw_features(7, 0.5, generator_from_seed(9)).frequencies for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_value_is_read_within_half_a_step_of_the_grid():
    values = np.random.default_rng(2).normal(size=5000)
    features = FourierFeatures(np.ones(1), width=0.25)
    places, index = features.places(values)
    assert np.abs(places[index] * 0.25 - values).max() <= 0.25 / PLACES_PER_WIDTH / 2 * (1 + 1e-9)
    np.testing.assert_array_equal(places, np.unique(places))


def test_the_grid_moves_the_kernel_by_no_more_than_stated():
    # Two arguments each move by 1/1024 of a width; the kernel's slope is at most exp(-1/2) per width.
    gaps = np.linspace(0, 5, 100_001)
    moved = np.abs(np.exp(-(gaps**2) / 2) - np.exp(-((gaps + 1 / PLACES_PER_WIDTH) ** 2) / 2)).max()
    assert moved <= 0.0012
    assert moved >= 0.00118  # and the statement is not slack


def test_chunks_cover_all_places_once_in_order():
    places = np.arange(2 * CHUNK_ROWS + 5, dtype=np.float64)
    features = FourierFeatures(np.array([0.3]), 1.0)
    parts = list(features.chunks(places))
    assert [rows.shape[0] for _, rows in parts] == [CHUNK_ROWS, CHUNK_ROWS, 5]
    np.testing.assert_array_equal(np.vstack([rows for _, rows in parts]), features(places))


def test_only_one_chunk_of_features_is_in_memory():
    features = draw_features(100, 1.0, generator_from_seed(0))
    places = np.arange(20 * CHUNK_ROWS, dtype=np.float64)
    tracemalloc.start()
    for _ in features.chunks(places):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A chunk's features are 13 MB, its angles half of that; twice while one chunk follows another.
    assert peak < 45e6


@pytest.mark.parametrize(("pairs", "width"), [(0, 1.0), (3, 0.0), (3, -1.0), (3, math.nan), (3, math.inf)])
def test_features_that_mean_nothing_are_refused(pairs, width):
    with pytest.raises(ParameterError):
        draw_features(pairs, width, generator_from_seed(0))


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
