"""The neighbour search itself: it finds what is known to be wrong, and what it finds can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity
from tests.conformance import LEAST_EVALUATIONS, STARTS, check_claim, distance, exhaustive, search


def mean(rows):
    return float(rows.mean())


def column_means(rows):
    return rows.mean(axis=0)


def stated(bound, norm=Norm.ABSOLUTE):
    return lambda m: Sensitivity(bound / m, norm, Relation.REPLACE_ONE, "a-mean")


def test_the_worst_pair_of_a_mean_is_found_and_returned():
    found = search(mean, lambda m: 1 / m, sizes=(3, 20), columns=1, evaluations=400)
    assert found.ratio == pytest.approx(1, abs=1e-9)
    assert np.sum(np.any(found.rows != found.neighbour, axis=1)) == 1
    assert abs(mean(found.rows) - mean(found.neighbour)) * len(found.rows) == pytest.approx(found.ratio)
    assert found.evaluations >= 400


def test_a_true_and_tight_claim_passes():
    found = check_claim(mean, stated(1), sizes=(2, 9), columns=1)
    assert sum(one.evaluations for one in found) >= LEAST_EVALUATIONS


def test_a_bound_five_per_cent_too_small_is_refused():
    with pytest.raises(AssertionError, match="of the bound"):
        check_claim(mean, stated(0.95), sizes=(2, 9), columns=1)


def test_a_bound_that_is_too_large_is_refused_unless_its_slack_is_stated():
    with pytest.raises(AssertionError, match="only"):
        check_claim(mean, stated(1.2), sizes=(2, 9), columns=1)
    check_claim(mean, stated(1.2), sizes=(2, 9), columns=1, reached=0.8, mutant=0.75)
    with pytest.raises(ValueError, match="cannot be caught"):
        check_claim(mean, stated(1.2), sizes=(2, 9), columns=1, reached=0.8)


def test_too_few_evaluations_are_refused():
    with pytest.raises(AssertionError, match="too few"):
        check_claim(mean, stated(1), sizes=(2, 9), columns=1, evaluations=500)


@pytest.mark.parametrize(("norm", "bound"), [(Norm.L1, 3), (Norm.L2, np.sqrt(3)), (Norm.LINF, 1)])
def test_vectors_are_searched_in_the_norm_of_their_claim(norm, bound):
    check_claim(column_means, stated(float(bound), norm), sizes=(4,), columns=3)


def test_each_column_keeps_its_own_range():
    found = search(column_means, lambda m: 6 / m, sizes=(5,), columns=2, low=(0, -1), high=(2, 3), norm=Norm.L1)
    assert found.ratio == pytest.approx(1, abs=1e-9)
    assert np.all(found.rows >= [0, -1])
    assert np.all(found.neighbour <= [2, 3])


def test_levels_confine_every_value():
    found = search(mean, 1, sizes=(6,), columns=2, levels=(0, 0.25, 1), evaluations=300)
    assert set(np.unique(found.rows)) | set(np.unique(found.neighbour)) <= {0, 0.25, 1}


def test_a_normaliser_that_depends_on_the_data_is_caught():
    # The tie-corrected rho divides by the midranks' own variances: one record turns it from 1 to −1 at every m.
    def tie_corrected(rows):
        ranks = [(np.sign(c[:, None] - c[None, :])).sum(axis=1) for c in rows.T]
        spread = np.sqrt(float((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
        return float(ranks[0] @ ranks[1]) / spread if spread else 0.0

    assert search(tie_corrected, 1, sizes=(30,), evaluations=3_000).ratio == pytest.approx(2)


def test_a_trap_that_depends_on_one_exact_tie_is_caught():
    def trapped(rows):
        return mean(rows) + float(np.sum(rows[:, 0] == rows[0, 1]) > 2)

    assert search(trapped, lambda m: 2 / m, sizes=(12,), evaluations=3_000).ratio > 1


def test_scaling_by_the_range_of_the_data_is_caught():
    def scaled(rows):
        column = rows[:, 0]
        width = np.ptp(column)
        return float(((column - column.min()) / width).mean()) if width else 0.0

    assert search(scaled, lambda m: 1 / m, sizes=(25,), columns=1, evaluations=1_500).ratio > 5


def test_integers_beyond_64_bits_are_compared_exactly():
    assert distance(2**80 + 1, 2**80, Norm.ABSOLUTE) == 1
    found = search(lambda rows: 2**80 + int(rows[0, 0] > 0.5), 1, sizes=(3,), columns=1, evaluations=300)
    assert found.ratio == 1


def test_every_neighbour_pair_over_few_values_is_visited():
    worst, pairs = exhaustive(lambda rows: rows.sum(), (0, 1, 5), 3, columns=1)
    assert worst == 5
    assert pairs == 6 * 3  # multisets of two others, times pairs of records


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize(("m", "columns"), [(1, 1), (2, 4), (7, 3)])
def test_every_start_has_its_shape_and_range(name, m, columns):
    low, high = np.full(columns, -2.0), np.full(columns, 3.0)
    rows = STARTS[name](np.random.default_rng(0), m, low, high)
    assert rows.shape == (m, columns)
    assert rows.min() >= -2
    assert rows.max() <= 3
