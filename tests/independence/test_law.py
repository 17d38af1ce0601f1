"""The null laws of released sums: exact, against other ways to compute them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpcausal.independence.null_laws import (
    LEAST_PVALUE,
    REACH,
    STEPS_PER_UNIT,
    WIDE_REACH,
    block_law,
    block_pvalue,
    geometric_tail,
    normal_laplace_pvalue,
    term,
)


def one_term(reach: int) -> np.ndarray:
    """Return the law of one term from scipy's normal."""
    k = np.arange(-reach, reach + 1)
    law = stats.norm.cdf((k + 0.5) / STEPS_PER_UNIT) - stats.norm.cdf((k - 0.5) / STEPS_PER_UNIT)
    law[0] = stats.norm.cdf((-reach + 0.5) / STEPS_PER_UNIT)
    law[-1] = law[0]
    return law


@pytest.mark.parametrize("blocks", [1, 2, 5, 8, 11])
def test_the_law_of_the_sum_is_the_convolution_of_its_terms(blocks):
    reach, variance = (150, 0.7785) if blocks < 8 else (75, 0.35)
    direct = one_term(reach)
    for _ in range(blocks - 1):
        direct = np.convolve(direct, one_term(reach))
    assert block_law(blocks) == pytest.approx(direct, abs=1e-15)
    spread = math.sqrt(float(block_law(blocks) @ np.arange(-reach * blocks, reach * blocks + 1) ** 2.0))
    assert spread / STEPS_PER_UNIT == pytest.approx(math.sqrt(variance * blocks), rel=4e-3)


def test_the_terms_of_normal_scores_have_that_law():
    # 200,000 scores; sums of 301 and 151 squared standardised deviations below 460 and 274: false alarms of 1e-8.
    scores = np.random.default_rng(4).standard_normal(200_000)
    for reach, most in ((WIDE_REACH, 460), (REACH, 274)):
        counts = np.bincount([term(z, reach) + reach for z in scores], minlength=2 * reach + 1)
        expected = one_term(reach) * scores.size
        assert float(((counts - expected) ** 2 / expected).sum()) < most


def test_the_tail_of_the_noise_sums_its_probabilities():
    for scale in (0.3, 4.0):
        k = np.arange(-400, 401)
        law = np.exp(-np.abs(k) / scale)
        law /= law.sum()
        least = np.array([-7.0, 0.0, 1.0, 12.0])
        assert geometric_tail(least, scale) == pytest.approx([law[k >= edge].sum() for edge in least], abs=1e-12)


@pytest.mark.parametrize("two_sided", [True, False])
def test_the_pvalue_sums_over_all_terms_and_noises(two_sided):
    blocks, epsilon = 2, 1.5
    k, noise = np.arange(-2 * WIDE_REACH, 2 * WIDE_REACH + 1), np.arange(-9_000, 9_001)
    law = np.exp(-np.abs(noise) * epsilon / (2 * WIDE_REACH))
    both = np.convolve(np.convolve(one_term(WIDE_REACH), one_term(WIDE_REACH)), law / law.sum())
    total = np.arange(k[0] + noise[0], k[-1] + noise[-1] + 1)
    for released in (-700, -1, 0, 350, 2_000):
        extreme = np.abs(total) >= abs(released) if two_sided else total >= released
        assert block_pvalue(released, blocks, epsilon, two_sided) == pytest.approx(both[extreme].sum(), rel=1e-6)


def test_pvalues_of_true_nulls_are_uniform():
    # 40,000 sums; Kolmogorov's distance above .0161 has a probability below 2e-9 at a new seed.
    rng, size, blocks, epsilon = np.random.default_rng(5), 40_000, 8, 0.5
    sums = np.rint(np.clip(rng.standard_normal((size, blocks)) * 100, -75, 75)).sum(axis=1)
    success = -math.expm1(-epsilon / (2 * REACH))
    sums += rng.geometric(success, size) - rng.geometric(success, size)
    known = {s: block_pvalue(int(s), blocks, epsilon, True) for s in np.unique(np.abs(sums))}
    pvalues = [known[abs(s)] for s in sums]
    assert stats.kstest(pvalues, "uniform").statistic < 0.0161


def test_a_number_that_is_none_says_nothing_and_extremes_are_clipped():
    assert [term(z) for z in (math.nan, math.inf, -math.inf, 0.004, 0.006)] == [0, REACH, -REACH, 0, 1]


@pytest.mark.parametrize(("deviation", "scale"), [(0.01, 1), (1, 1), (1, 0.2), (5, 1), (1, 50)])
def test_the_closed_form_of_normal_and_laplace_is_the_integral(deviation, scale):
    from scipy.integrate import quad

    for s in (0.0, 0.7 * max(deviation, scale), 3 * max(deviation, scale)):
        def beyond(z: float, s: float = s) -> float:
            return stats.norm.pdf(z) * stats.laplace.sf(s - deviation * z, scale=scale)

        found, _ = quad(beyond, -12, 12, points=sorted({min(max(s / deviation, -12), 12), 0.0}), limit=400)
        assert normal_laplace_pvalue(s, deviation, scale) == pytest.approx(min(1, 2 * found), rel=1e-6, abs=1e-10)


def test_no_pvalue_is_zero_or_above_one():
    assert normal_laplace_pvalue(1e300, 1.0, 1.0) == normal_laplace_pvalue(math.inf, 1.0, 1.0) == LEAST_PVALUE
    assert normal_laplace_pvalue(0.0, 1e9, 1e-9) == 1.0
    assert block_pvalue(10**6, 4, 1.0, True) == LEAST_PVALUE
    assert block_pvalue(-(10**6), 4, 1.0, False) == 1.0
