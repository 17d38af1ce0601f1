"""The level of a test in blocks, as the benchmark computes it from the terms of its blocks."""

from statistics import NormalDist

import numpy as np
import pytest

from benchmarks.independence_level import block_level, critical, jackknifed
from dpcausal.independence.null_distributions import block_pvalue, block_term


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_the_level_of_a_sum_of_blocks_is_that_of_drawn_sums(shift: float) -> None:
    terms = [block_term(NormalDist(shift).inv_cdf((place + 0.5) / 4_000)) for place in range(4_000)]
    rng, ratio = np.random.default_rng(1), np.exp(-2.0 / 150)
    sums = rng.choice(terms, (20_000, 16)).sum(axis=1) + rng.geometric(1 - ratio, 20_000)
    drawn = np.abs(sums - rng.geometric(1 - ratio, 20_000)) >= critical(block_pvalue, 16, 2.0, True)
    # Five standard errors of the draws: a false alarm of 1e-6.
    assert abs(block_level(terms, 16, 2.0, True) - drawn.mean()) < 5 * drawn.std() / 20_000**0.5
    assert shift > 0 or abs(block_level(terms, 16, 2.0, True) - 0.05) < 1e-3


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    tables = [[1], [2], [4], [9]]
    level, error = jackknifed(lambda terms: float(np.mean(terms)), tables)
    assert level == pytest.approx(4.0) and error == pytest.approx(np.std([1, 2, 4, 9], ddof=1) / 2)
