"""Inverse-sensitivity scores of log IQR: counts against brute force, sensitivity 1, and the accuracy promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from dpcausal.dependence.iqr import IqrReach, interquartile_range
from dpcausal.dependence.log_iqr import (
    enough_steps,
    inverse_sensitivity,
    inverse_sensitivity_steps,
    log_iqr_grid,
    score_steps,
)
from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm
from tests.conformance import check_claim, neighbouring_rows, search
from tests.dependence.iqr_brute_force import iqr_by_definition, reachable

GRID = np.linspace(-6, 1, 40)


def errors_of(x, epsilon, lower, upper):
    """The law of the exponential mechanism's error: exact weights, and grid minus truth."""
    grid = log_iqr_grid(lower, upper, len(x))
    steps = inverse_sensitivity_steps(x, grid, lower, upper, enough_steps(epsilon, len(grid)))
    weights = np.exp(-epsilon * steps / 2)
    return weights / weights.sum(), grid - math.log(interquartile_range(x))


@pytest.mark.proves("log-iqr-inverse-sensitivity")
def test_the_steps_are_the_brute_force_counts():
    rng = np.random.default_rng(2)
    compared = 0
    for _ in range(40):
        m, upper = int(rng.integers(2, 7)), int(rng.integers(2, 8))
        x = rng.integers(0, upper + 1, m)
        grid = np.log(np.sort(rng.choice(np.arange(1, 60), 5, replace=False)) / 6)
        edges = [0, *np.exp((grid[1:] + grid[:-1]) / 2), math.inf]
        steps = inverse_sensitivity_steps(x, grid, 0, upper)
        for j, within in zip(range(3), reachable(x.tolist(), np.linspace(0, upper, 12 * upper + 1)), strict=False):
            if len(within) > 60_000:
                break
            ranges = np.array([iqr_by_definition(data) for data in within])
            for k in range(5):
                # The values are a fine grid: hits prove reach, and the extremes are among them.
                if np.any((edges[k] <= ranges) & (ranges < edges[k + 1])):
                    assert steps[k] <= j
                if ranges.max() < edges[k] or ranges.min() >= edges[k + 1]:
                    assert steps[k] > j
                compared += 1
            if len(within) * m * 12 * upper > 40_000:
                break
    assert compared > 200


@pytest.mark.proves("log-iqr-inverse-sensitivity")
@pytest.mark.parametrize("cap", [3, 8192])
def test_one_record_moves_every_score_by_at_most_one(cap):
    check_claim(
        lambda rows: inverse_sensitivity_steps(rows[:, 0], GRID, 0, 1, cap),
        lambda _: inverse_sensitivity(),
        sizes=(4, 7, 16, 33),
        columns=1,
    )


@pytest.mark.proves("log-iqr-inverse-sensitivity")
@given(neighbouring_rows(columns=1, most=30))
@settings(max_examples=200, deadline=None)
def test_no_neighbour_pair_moves_a_score_by_two_as_floats(pair):
    one, other = (inverse_sensitivity_steps(rows[:, 0], GRID, -1, 1) for rows in pair)
    assert np.abs(one - other).max() <= 1
    assert one.dtype == np.int64


def test_scores_with_a_gap_in_the_count_are_caught():
    # Between neighbours a score of 2 and one of 3 meet; the mutant makes them 2 and 4.
    def wrong(rows):
        steps = inverse_sensitivity_steps(rows[:, 0], GRID, 0, 1)
        return np.where(steps > 2, steps + 1, steps)

    assert search(wrong, 1, sizes=(16, 33), columns=1, norm=Norm.LINF, evaluations=1_500).ratio == 2


@given(neighbouring_rows(columns=1, most=20))
@settings(max_examples=100, deadline=None)
def test_exactly_one_cell_holds_the_range_and_scores_rise_away_from_it(pair):
    x = pair[0][:, 0]
    steps = inverse_sensitivity_steps(x, GRID, -1, 1)
    zero = np.flatnonzero(steps == 0)
    assert len(zero) == 1
    edges = np.exp((GRID[:-1] + GRID[1:]) / 2)
    assert zero[0] == np.searchsorted(edges, interquartile_range(x), side="right")
    assert np.all(np.diff(steps[: zero[0] + 1]) <= 0)
    assert np.all(np.diff(steps[zero[0] :]) >= 0)


def test_the_ends_stand_for_all_beyond_a_constant_column_included():
    grid = np.array([-2.0, -1.0])
    assert inverse_sensitivity_steps(np.full(9, 0.5), grid, 0, 1)[0] == 0
    assert inverse_sensitivity_steps(np.repeat([0.0, 1.0], 5), grid, 0, 1)[1] == 0
    assert inverse_sensitivity_steps(np.full(9, 0.5), np.array([0.0]), 0, 1).tolist() == [0]


@pytest.mark.parametrize(("m", "epsilon", "most"), [(1000, 1.0, 0.013), (4000, 1.0, 0.004), (20_000, 0.3, 0.004)])
def test_the_error_on_normal_data_is_as_promised(m, epsilon, most):
    # The mechanism's mean is exact; only the samples are random, with fixed seeds: no false alarm.
    squares = []
    for seed in range(8):
        weights, errors = errors_of(np.random.default_rng(seed).standard_normal(m), epsilon, -10, 10)
        squares.append(weights @ errors**2)
    assert math.sqrt(np.mean(squares)) <= most


def test_with_heavy_ties_the_answer_stays_at_the_range():
    x = np.round(np.random.default_rng(3).standard_normal(4000) * 2)  # whole numbers: the IQR is 2 or 3
    weights, errors = errors_of(x, 1.0, -10, 10)
    assert math.sqrt(weights @ errors**2) < 0.002


def test_the_cap_costs_at_most_e_to_the_minus_30_of_the_mass():
    for epsilon, points in ((1.0, 10), (0.1, 65_536), (7.5, 1)):
        cap = enough_steps(epsilon, points)
        assert points * math.exp(-epsilon * cap / 2) <= math.exp(-30) * (1 + 1e-9)
        assert points * math.exp(-epsilon * (cap - 1) / 2) > math.exp(-30)
    assert enough_steps(1e-9, 10) == 2**15
    assert enough_steps(1e9, 1) == 1


def test_a_cap_only_cuts_the_scores():
    x = np.random.default_rng(4).uniform(0, 1, 300)
    full = inverse_sensitivity_steps(x, GRID, 0, 1)
    assert full.max() > 100
    assert inverse_sensitivity_steps(x, GRID, 0, 1, cap=20).tolist() == np.minimum(full, 20).tolist()
    assert inverse_sensitivity_steps(x, GRID, 0, 1, cap=1).tolist() == np.minimum(full, 1).tolist()


@pytest.mark.parametrize(("m", "points"), [(4, 257), (4000, 8097), (10**9, 65_536)])
def test_the_grid_is_fixed_by_public_numbers(m, points):
    grid = log_iqr_grid(-2.0, 5.0, m)
    assert len(grid) == points
    assert grid[-1] == math.log(7)
    assert grid[0] == math.log(7) - 16
    assert np.diff(grid) == pytest.approx(16 / (points - 1), rel=1e-6)


def test_the_sensitivity_is_one_in_the_maximum_norm():
    stated = inverse_sensitivity()
    assert (stated.bound, stated.norm, stated.proof) == (1, Norm.LINF, "log-iqr-inverse-sensitivity")


@pytest.mark.parametrize("grid", [[], [1.0, 1.0], [2.0, 1.0], [0.0, math.nan], [0.0, 701.0], [[0.0, 1.0]]])
def test_grids_that_do_not_increase_within_range_are_refused(grid):
    with pytest.raises(ParameterError, match="strictly increasing"):
        inverse_sensitivity_steps(np.zeros(4), np.array(grid), 0, 1)


@pytest.mark.parametrize("call", [
    lambda: inverse_sensitivity_steps(np.zeros(4), GRID, 0, 1, cap=0),
    lambda: inverse_sensitivity_steps(np.zeros(1), GRID, 0, 1),
    lambda: inverse_sensitivity_steps(np.zeros(4), GRID, 1, 1),
    lambda: log_iqr_grid(0, 0, 10),
    lambda: log_iqr_grid(0, 1, 1),
    lambda: enough_steps(0.0, 10),
    lambda: enough_steps(math.nan, 10),
    lambda: enough_steps(1.0, 0),
])
def test_public_arguments_out_of_range_are_refused(call):
    with pytest.raises(ParameterError):
        call()


# A sum of two log IQRs.


def steps_of_two(rows):
    return score_steps([IqrReach(column, 0, 1) for column in rows.T], GRID)


@pytest.mark.proves("log-iqr-inverse-sensitivity")
def test_one_record_of_two_columns_moves_every_score_of_their_sum_by_at_most_one():
    check_claim(steps_of_two, lambda _: inverse_sensitivity(), sizes=(4, 9), columns=2)


@pytest.mark.proves("log-iqr-inverse-sensitivity")
def test_the_steps_of_a_sum_are_at_most_the_records_that_bring_it_there():
    # All data sets within one and two records over a few values: one in the cell holds its score down.
    rng = np.random.default_rng(5)
    values = (0.0, 0.3, 1.0)
    grid, compared = np.log(np.array([0.02, 0.1, 0.4, 0.9])), 0
    edges = [0, *np.exp((grid[1:] + grid[:-1]) / 2), math.inf]
    records = [np.array([a, b]) for a in values for b in values]
    for _ in range(12):
        data = rng.choice(values, (5, 2))
        steps = score_steps([IqrReach(column, 0, 1) for column in data.T], grid)
        within = [data]
        for j in (0, 1, 2):
            products = np.array([np.prod([iqr_by_definition(column.tolist()) for column in one.T]) for one in within])
            for k in range(4):
                if np.any((edges[k] <= products) & (products < edges[k + 1])):
                    assert steps[k] <= j
                    compared += 1
            if j < 2:
                within = [np.vstack([x[:i], [new], x[i + 1 :]]) for x in within for i in range(5) for new in records]
    assert compared > 60
    assert (steps_of_two(rng.random((20, 2))) == 0).sum() == 1


def test_the_grid_of_a_sum_reaches_twice_as_deep_at_twice_the_step():
    one, two = log_iqr_grid(0, 2, 400), log_iqr_grid(0, 2, 400, (-1, 4))
    assert len(one) == len(two)
    assert two[-1] == pytest.approx(math.log(2) + math.log(5)) and two[-1] - two[0] == pytest.approx(32)
    with pytest.raises(ParameterError, match="width"):
        log_iqr_grid(0, 2, 400, (1, 1))


def test_a_sum_needs_columns_of_the_same_records_and_a_product_of_widths_that_a_float_holds():
    for reaches in ([], [IqrReach(np.zeros(4), 0, 1), IqrReach(np.zeros(5), 0, 1)]):
        with pytest.raises(ParameterError, match="same records"):
            score_steps(reaches, GRID)
    with pytest.raises(ParameterError, match="product"):
        score_steps([IqrReach(np.zeros(4), 0, 1e200)] * 2, GRID)


def test_one_release_of_a_sum_at_half_of_epsilon_errs_less_than_two_at_a_quarter():
    x, y = np.random.default_rng(0).standard_normal((2, 2000))
    grid = log_iqr_grid(-10, 10, 2000, (-10, 10))
    steps = score_steps([IqrReach(column, -10, 10) for column in (x, y)], grid, enough_steps(0.5, len(grid)))
    weights = np.exp(-0.5 * steps / 2)
    truth = math.log(interquartile_range(x)) + math.log(interquartile_range(y))
    together = weights @ (grid - truth) ** 2 / weights.sum()
    apart = sum(float(w @ e**2) for w, e in (errors_of(column, 0.25, -10, 10) for column in (x, y)))
    assert together < 0.75 * apart
