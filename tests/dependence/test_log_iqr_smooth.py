"""The smooth bound of log IQR: above every local sensitivity, beta-smooth, and as large as it must be."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcausal.dependence.iqr import IqrReach
from dpcausal.dependence.log_iqr_smooth import (
    LogIqrSteps,
    largest_bound,
    smooth_log_iqr,
    smooth_sensitivity,
)
from dpcausal.errors import HiddenAnswerError, ParameterError
from dpcausal.privacy.conditional import conditional_change
from dpcausal.privacy.neighbours import Relation
from dpcausal.privacy.sensitivity import Norm, Sensitivity
from tests.conformance import check_claim, neighbouring_rows, search
from tests.dependence.iqr_brute_force import iqr_by_definition, reachable

BETA = 0.1
FLOOR = math.exp(-16)


def smoothed(rows, beta=BETA):
    """The sum of the first column's log IQR and the second's, if there is one, less the third's."""
    steps = [LogIqrSteps(column, 0, 1) for column in rows.T]
    return smooth_log_iqr(steps, [1, 1, -1][: len(steps)], beta)


def local_sensitivities(values):
    """The exact local sensitivity of log max(IQR, F) at distance 0, 1 and 2, by visiting all data sets.

    New values come from the data's own and the ends, where the extremes lie.
    """
    q = {}

    def log_iqr(data):
        if data not in q:
            q[data] = math.log(max(iqr_by_definition(data), FLOOR))
        return q[data]

    places = sorted({0.0, 1.0, *values})
    found = []
    for within in itertools.islice(reachable(sorted(values), places), 3):
        worst = 0.0
        for data in within:
            for index in range(len(data)):
                for new in places:
                    other = tuple(sorted((*data[:index], *data[index + 1 :], new)))
                    worst = max(worst, abs(log_iqr(other) - log_iqr(tuple(data))))
        found.append(worst)
    return found


@pytest.mark.proves("log-iqr-smooth")
def test_no_bound_is_below_the_exact_local_sensitivity_at_its_distance():
    rng = np.random.default_rng(1)
    ratios = []
    for m in (3, 4, 5, 6) * 8:
        values = np.sort(np.round(0.3 + 0.4 * rng.random(m), int(rng.integers(1, 4))))
        steps = LogIqrSteps(values, 0, 1)
        for k, exact in enumerate(local_sensitivities(values.tolist())):
            assert steps.bound(k) >= exact * (1 - 1e-12)
            if exact > 0:
                ratios.append(steps.bound(k) / exact)
    assert len(ratios) > 90 and min(ratios) < 1 + 1e-9 and max(ratios) < 1.9


@pytest.mark.proves("log-iqr-smooth")
@given(neighbouring_rows(columns=1, low=0.0, high=1.0, most=40))
@settings(max_examples=300, deadline=None)
def test_the_first_bound_covers_the_farthest_neighbours_in_both_directions(pair):
    # The farthest neighbours are known in closed form: hi_1 and lo_1.
    for rows in pair:
        steps, reach = LogIqrSteps(rows[:, 0], 0, 1), IqrReach(rows[:, 0], 0, 1)
        up = math.log(max(reach.highest(1), FLOOR)) - steps.value
        down = steps.value - math.log(max(reach.lowest(1), FLOOR))
        assert max(up, down) <= steps.bound(0)


@pytest.mark.proves("log-iqr-smooth")
@given(neighbouring_rows(columns=1, low=0.0, high=1.0, most=40))
@settings(max_examples=300, deadline=None)
def test_a_neighbours_bound_at_k_is_at_most_the_bound_at_k_plus_one(pair):
    one, other = (LogIqrSteps(rows[:, 0], 0, 1) for rows in pair)
    for k in range(len(pair[0]) + 2):
        assert one.bound(k) <= other.bound(k + 1) * (1 + 1e-14) and other.bound(k) <= one.bound(k + 1) * (1 + 1e-14)
        assert one.bound(k) <= one.bound(k + 1)


@pytest.mark.proves("log-iqr-smooth")
@pytest.mark.parametrize(("columns", "beta"), [(1, 0.1), (3, 0.02)])
def test_one_record_moves_the_log_of_the_bound_by_at_most_beta_and_the_value_by_at_most_the_bound(columns, beta):
    check_claim(
        lambda rows: smoothed(rows, beta), lambda _: smooth_sensitivity(beta), sizes=(5, 12, 33), columns=columns
    )


@pytest.mark.proves("log-iqr-smooth")
@given(
    neighbouring_rows(columns=2, low=0.0, high=1.0, most=40),
    st.sampled_from([1e-11, 1e-3, 0.05, 1.0, 30.0]),
    st.sampled_from([1e-280, 1e-16, 1.0, 1e150]),
)
@settings(max_examples=300, deadline=None)
def test_no_neighbour_pair_breaks_the_smooth_bound_as_floats(pair, beta, scale):
    answers = []
    for rows in pair:
        steps = [LogIqrSteps(column * scale, 0, scale) for column in rows.T]
        answers.append(smooth_log_iqr(steps, [1, -1], beta))
        assert 0 < answers[-1][1] <= largest_bound(steps)
    assert conditional_change(*answers, Norm.SMOOTH) <= beta * (1 + 1e-12) + 4e-15  # of the two logarithms here


def test_the_bound_is_the_maximum_over_all_distances():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = rng.uniform(0, 1, 150) ** rng.integers(1, 6)
        steps = LogIqrSteps(np.round(x, int(rng.integers(1, 5))), 0, 1)
        beta = float(rng.choice([0.003, 0.03, 0.3]))
        plain = max(math.exp(-beta * k) * steps.bound(k) for k in range(151))
        assert smooth_log_iqr([steps], [1], beta)[1] == pytest.approx(plain, rel=1e-9)


def test_the_smooth_bound_is_close_to_the_least_there_is_on_a_normal_sample():
    # Within k records there are data with a gap of G_k beside a quartile and an IQR of at most hi_k.
    x = np.random.default_rng(0).standard_normal(4000)
    steps, beta = LogIqrSteps(x, -10, 10), 0.053
    ours = smooth_log_iqr([steps], [1], beta)[1]
    least = max(math.exp(-beta * k) * math.log1p(steps.widest_gap(k) / steps.reach.highest(k)) for k in range(200))
    assert least < ours < 1.05 * least


def test_a_bound_that_is_not_smooth_is_caught():
    def local(rows):
        steps = LogIqrSteps(rows[:, 0], 0, 1)
        return np.array([steps.value, steps.bound(0)])

    assert search(local, BETA, sizes=(12, 33), columns=1, norm=Norm.SMOOTH, evaluations=1_500).ratio > 5


def test_a_bound_that_is_only_smooth_is_caught():
    # The smallest bound of all that is smooth: constant.  The value passes it.
    def constant(rows):
        return np.array([LogIqrSteps(rows[:, 0], 0, 1).value, 0.5])

    assert search(constant, BETA, sizes=(12, 33), columns=1, norm=Norm.SMOOTH, evaluations=1_500).violated


def test_the_floor_is_public_and_a_constant_column_has_its_value():
    steps = LogIqrSteps(np.full(9, 0.3), -2.0, 5.0)
    assert steps.value == pytest.approx(math.log(7) - 16)
    value, bound = smooth_log_iqr([steps], [1], BETA)
    assert math.isfinite(value) and 0 < bound <= largest_bound([steps]) == pytest.approx(16)


def test_many_records_take_a_moment_only():
    x = np.random.default_rng(0).standard_normal(200_000)
    value, bound = smooth_log_iqr([LogIqrSteps(x, -10, 10)], [1], 0.0005)
    assert math.isfinite(value) and bound < 0.2


def test_what_is_declared_is_beta_with_the_claims_name():
    assert smooth_sensitivity(0.25) == Sensitivity(0.25, Norm.SMOOTH, Relation.REPLACE_ONE, "log-iqr-smooth")


def test_private_values_neither_show_nor_leave():
    steps = LogIqrSteps(np.array([0.123456, 0.2, 0.3, 0.654321]), 0, 1)
    assert "0.12" not in repr(steps)
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(HiddenAnswerError):
            leave(steps)


@pytest.mark.parametrize("beta", [0.0, -1.0, math.inf, math.nan])
def test_a_smoothness_that_is_no_positive_number_is_refused(beta):
    with pytest.raises(ParameterError, match="beta"):
        smooth_log_iqr([LogIqrSteps(np.zeros(4), 0, 1)], [1], beta)


def test_columns_of_different_records_signs_and_narrow_ranges_are_refused():
    four, five = LogIqrSteps(np.zeros(4), 0, 1), LogIqrSteps(np.zeros(5), 0, 1)
    for columns, signs in (([], []), ([four, five], [1, 1]), ([four], [1, 1])):
        with pytest.raises(ParameterError, match="same records"):
            smooth_log_iqr(columns, signs, BETA)
    with pytest.raises(ParameterError, match="sign"):
        smooth_log_iqr([four], [2], BETA)
    with pytest.raises(ParameterError, match="wide"):
        LogIqrSteps(np.zeros(4), 0, 1e-291)
