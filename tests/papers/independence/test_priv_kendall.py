"""Rank coefficients within strata as published: rho keeps a bound of its own, tau none."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from dpcausal.errors import ParameterError
from dpcausal.papers.independence.priv_kendall import (
    claimed_kendall_sensitivity,
    kendall_weight,
    published_kendall,
    published_spearman,
    published_spearman_sensitivity,
)
from tests.conformance import STARTS
from tests.registry.discovery import OPPOSED, opposed

Rows = Any
THREE_STRATA = {"columns": 3, "high": [1.0, 1.0, 2.0], "starts": {**STARTS, **OPPOSED}}


def in_strata(rows: Rows) -> Any:
    return rows[:, 0], rows[:, 1], np.rint(rows[:, 2])


@pytest.mark.proves("published-conditional-spearman")
@pytest.mark.parametrize("m", [9, 41, 401])
def test_the_bound_for_two_strata_is_attained(m: int) -> None:
    rows = opposed(m)
    other = rows.copy()
    other[-1] = 1, 1, 2
    moved = abs(published_spearman(*in_strata(rows)) - published_spearman(*in_strata(other)))
    assert math.isclose(moved, (10 - 48 / (m + 3)) / math.sqrt(m - 2), rel_tol=1e-9)
    assert 0.99999 < moved / float(published_spearman_sensitivity(m, 2).bound) <= 1


def test_the_published_constant_is_larger_than_the_proved_one_which_takes_fewer_strata_than_records() -> None:
    for n, strata in ((2, 1), (10, 9), (1_000, 16), (10**8, 10**6)):
        proved, published = (float(published_spearman_sensitivity(n, strata, whose).bound) for whose in (False, True))
        assert published > 3 * proved * math.sqrt(strata)
    with pytest.raises(ParameterError, match="more records than strata"):
        published_spearman_sensitivity(16, 16)


def test_the_claimed_bound_of_tau_is_passed_at_every_size() -> None:
    for n in (20, 1_000):
        x, y, alone = np.zeros(n), np.zeros(n), np.arange(n)
        alone[-1] = n - 2  # one stratum of two records, the others of one
        x[-1], y[-1] = 1, 1
        moved = published_kendall(x, y, alone) - published_kendall(x, -y, alone)
        assert moved == pytest.approx(2) and moved > 1.9 * float(claimed_kendall_sensitivity(n, n - 1).bound)


def test_coefficients_are_weighted_sums_of_scipys() -> None:
    rng = np.random.default_rng(3)
    x, y, s = rng.normal(size=90), rng.normal(size=90), rng.integers(0, 4, 90)
    sizes = np.bincount(s)
    tau = [kendalltau(x[s == k], y[s == k]).statistic for k in range(4)]
    rho = [spearmanr(x[s == k], y[s == k]).statistic for k in range(4)]
    w = 1 / (2 * (2 * sizes + 5) / (9 * sizes * (sizes - 1)))  # the variance of tau without ties
    assert kendall_weight(sizes) == pytest.approx(w)
    assert published_kendall(x, y, s) == pytest.approx(w @ tau / math.sqrt(w.sum()))
    assert published_spearman(x, y, s) == pytest.approx((sizes - 1) @ rho / math.sqrt(90 - 4))


def test_strata_of_single_records_and_constant_columns_give_zero() -> None:
    line = np.arange(6.0)
    for statistic in (published_kendall, published_spearman):
        assert statistic(line, line, line) == 0
        assert statistic(np.zeros(6), line, np.zeros(6)) == 0
