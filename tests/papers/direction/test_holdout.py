"""Test-set privacy: each test row by itself, bounds that are reached, and faults that are seen."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from dpcausal.direction.scores.anm import fit_halves
from dpcausal.papers.direction import holdout
from dpcausal.papers.direction.holdout import difference_sensitivity, score_sensitivity
from dpcausal.privacy.sensitivity import Norm, Unit
from tests.direction.neighbours import (
    CORRECTED,
    HIGH,
    LOW,
    Rows,
    faults,
    halves,
    quick,  # noqa: F401  (a fixture)
    replaced,
)


@pytest.mark.parametrize("n", [16, 2400])
def test_a_replaced_test_row_leaves_every_other_residual_and_every_width_the_same_to_the_last_bit(n: int) -> None:
    rng = np.random.default_rng(n)
    train, test = halves(n)
    x = rng.uniform(-1, 1, n)
    y = np.tanh(3 * x) + 0.2 * rng.standard_normal(n)
    rows = np.clip(np.column_stack([x, y]), LOW, HIGH)

    def fitted(rows: Rows) -> holdout.Residuals:
        generator = np.random.default_rng(1)
        return fit_halves(rows[:, 0], rows[:, 1], train, test, (-1, 1), (-1, 3), generator)

    first = fitted(rows)
    for place, new in ((0, LOW), (len(test) // 2, HIGH), (len(test) - 1, np.array([1.0, -1.0])), (3, rows[test[4]])):
        second = fitted(replaced(rows, test[place], new))
        for name in ("x", "y", "left_y", "left_x"):
            same = getattr(first, name) == getattr(second, name)
            assert same[np.arange(len(test)) != place].all(), name
        for field in dataclasses.fields(first):
            if field.name.startswith(("range", "width")):
                assert getattr(first, field.name) == getattr(second, field.name)


@pytest.mark.usefixtures("quick")
def test_a_replaced_training_row_moves_more_as_the_first_line_says() -> None:
    # At 40 rows and few training rows, one of them turns the regression and with it every residual.
    n, share = 60, 0.07
    train, test = halves(n, share)
    rows = np.empty((n, 2))
    rows[train] = np.linspace(-1, 1, len(train))[:, None]
    x = np.linspace(-0.9, 0.9, len(test))
    rows[test] = np.column_stack([x, x])
    corners = [np.array([x, y]) for x in (-1.0, 1.0) for y in (-1.0, 3.0)]
    pairs = [replaced(rows, int(place), corner) for place in train for corner in corners]
    assert any(faults(rows, pair, **CORRECTED["spearman scores"], training_share=share) for pair in pairs)


@pytest.mark.parametrize("score", ["hsic", "spearman", "kendall"])
def test_scores_carry_the_proved_bound_for_a_row_of_the_test_half(score: str) -> None:
    claimed = score_sensitivity(score, 1000)
    by_hand = {"hsic": np.sqrt(6) * 999 / 1000**2, "spearman": 6 / 1001, "kendall": 4 / 1000}[score]
    assert claimed.unit is Unit.TEST_ROW
    assert by_hand <= float(claimed.bound) <= by_hand * 1.0001
    both = difference_sensitivity(claimed)
    assert both.bound == 2 * Fraction(claimed.bound) + Fraction(1, 2**52)
    assert both.norm is Norm.L1 and both.unit is Unit.TEST_ROW
