"""Fine cells of a column: equal ones near its centre, wider ones in its tails."""

import numpy as np
import pytest

from dpcausal.effects.nuisance.features import Axis

NUMBER = 256


@pytest.mark.parametrize("axis", [Axis(), Axis.within(0.1, 0.4), Axis.within(-0.9, 0.01), Axis.within(1.0, 0.2)])
def test_the_value_in_the_middle_of_a_cell_is_in_that_cell(axis: Axis) -> None:
    values = axis.values((np.arange(NUMBER) + 0.5) / NUMBER)
    assert np.array_equal(axis.cells(values, NUMBER), np.arange(NUMBER))
    assert (np.diff(values) > 0).all() and -1 < values[0] < values[-1] < 1


def test_a_tail_many_spreads_long_is_in_many_cells() -> None:
    column = np.exp(0.7 * np.random.default_rng(1).normal(size=100_000)) / 100 - 1
    counts = np.bincount(Axis.within(-0.99, 0.007).cells(column, NUMBER), minlength=NUMBER)
    beyond = column > -0.99 + 5 * 0.007
    assert beyond.sum() > 1_000 and counts[-1] < beyond.sum() / 100
    assert np.count_nonzero(counts[Axis.within(-0.99, 0.007).cells(column[beyond], NUMBER)]) > 10
