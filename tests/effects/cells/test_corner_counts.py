"""Masses at the corners of cells: their sums are those of the numbers, and a row that is left out has none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcausal.effects.cells.corner_counts import GRID, corner_counts, corners, functionals

UNIT = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 5e-324, 1 - 2.0**-53]))


@given(st.lists(UNIT, min_size=1, max_size=30), st.sampled_from([0, 1, 2]))
def test_the_masses_of_a_record_are_whole_numbers_of_at_least_0_that_sum_to_the_grid(
    values: list[float], degree: int
) -> None:
    masses = corners(np.array(values), degree)
    assert masses.dtype == np.int64 and (masses >= 0).all() and (masses.sum(axis=1) == GRID).all()


def test_a_value_that_is_no_number_or_outside_weighs_no_more_than_another() -> None:
    for degree in (0, 1, 2):
        masses = corners(np.array([np.nan, np.inf, -np.inf, 1e300, -3.0]), degree)
        assert (masses >= 0).all() and (masses.sum(axis=1) == GRID).all()


@pytest.mark.proves("corner-counts")
def test_counts_sums_and_squares_are_read_off_the_corners() -> None:
    rng = np.random.default_rng(3)
    cells, unit = rng.integers(0, 5, 3_000), rng.random(3_000)
    kept = rng.random(3_000) < 0.7
    found = corner_counts(cells, 6, kept, [corners(unit, 2)]) / GRID @ functionals(2).T
    for cell in range(6):
        inside = unit[kept & (cells == cell)]
        assert found[cell] == pytest.approx([len(inside), inside.sum(), (inside**2).sum()], abs=2e-6 * 3_000)
