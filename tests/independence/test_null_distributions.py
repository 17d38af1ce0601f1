"""Null distributions: what is released has the distribution its p-value takes, on skewed, tied, rare and many columns.

The rows are those of the registry.  Means that are off by 5.7 standard errors: false alarms below 1e-8.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

import dpcausal as dpc
from dpcausal.independence import null_distributions as null
from dpcausal.independence.methods import ALL, METHODS
from dpcausal.independence.methods import block_test as blocks
from dpcausal.independence.methods.gcm import Gcm, WeightedGcm
from dpcausal.independence.question import Sample
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.regression.smoother import Given
from tests.independence.neighbours import answer_of
from tests.registry.null_laws import FALSE_ALARM, LAWS, TOO_NARROW, LawRow, excess, found_on

CASES = [(name, row) for name, rows in LAWS.items() for row in rows]
ROW = LawRow("rare levels, nothing given", size=800)


def test_every_test_with_a_pvalue_has_a_row_whose_distribution_is_no_bound() -> None:
    assert {kind.name for kind in ALL if kind.releases_pvalue} == set(LAWS)
    assert all(any(not row.bound for row in rows) for rows in LAWS.values())


@pytest.mark.parametrize(("name", "row"), CASES, ids=[f"{name}, {row.null}" for name, row in CASES])
def test_a_true_null_has_the_distribution_that_the_pvalue_takes(name: str, row: LawRow) -> None:
    method = METHODS[name](**row.options)
    scores, squares, expected = found_on(method, row)
    assert excess(squares, expected) < FALSE_ALARM and excess(scores**2, 1.0) < FALSE_ALARM
    assert np.mean(np.abs(scores) > 1.96) < 0.05 + FALSE_ALARM * (0.05 * 0.95 / scores.size) ** 0.5
    if hasattr(method, "blocks"):  # the distribution of ranks is exact: neither too wide
        assert excess(squares, expected) > -FALSE_ALARM and abs(excess(scores, 0.0)) < FALSE_ALARM
    # A variance that is a quarter too small is caught.
    assert row.bound or excess(squares, TOO_NARROW * expected) > FALSE_ALARM


class Wide(Gcm):
    def score(self, *arguments: Any) -> float:
        return 1.25 * super().score(*arguments)


class OneSigned(Gcm):
    def score(self, *arguments: Any) -> float:
        return abs(super().score(*arguments))


@pytest.mark.parametrize("kind", [Wide, OneSigned])
def test_scores_of_another_distribution_are_caught(kind: type[Gcm]) -> None:
    scores, squares, expected = found_on(kind(), ROW)
    assert excess(scores**2, 1.0) > FALSE_ALARM or abs(excess(scores, 0.0)) > FALSE_ALARM
    assert kind is OneSigned or excess(squares, expected) > 3


def test_a_distribution_of_blocks_that_is_too_narrow_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = null._one_term(null.REACH).copy()
    places = np.abs(np.arange(narrow.size) - narrow.size // 2)
    narrow[places == 0] += 0.125
    narrow[places == null.REACH] -= 0.0625
    monkeypatch.setattr(null, "_one_term", lambda reach: narrow)
    null.block_distribution.cache_clear()
    try:
        _, squares, expected = found_on(Gcm(), LAWS["gcm"][1])
    finally:
        null.block_distribution.cache_clear()
    assert excess(squares, expected) > FALSE_ALARM


def one_term(reach: int) -> Any:
    """Return the distribution of one term from scipy's normal."""
    k = np.arange(-reach, reach + 1)
    chances = stats.norm.cdf((k + 0.5) / null.STEPS_PER_UNIT) - stats.norm.cdf((k - 0.5) / null.STEPS_PER_UNIT)
    chances[[0, -1]] = stats.norm.cdf((-reach + 0.5) / null.STEPS_PER_UNIT)
    return chances


@pytest.mark.parametrize("count", [1, 2, 5, 8, 11])
def test_the_distribution_of_the_sum_is_the_convolution_of_its_terms(count: int) -> None:
    reach, variance = (150, 0.7785) if count < 8 else (75, 0.35)
    direct = one_term(reach)
    for _ in range(count - 1):
        direct = np.convolve(direct, one_term(reach))
    assert null.block_distribution(count) == pytest.approx(direct, abs=1e-15)
    spread = math.sqrt(float(null.block_distribution(count) @ np.arange(-reach * count, reach * count + 1) ** 2.0))
    assert spread / null.STEPS_PER_UNIT == pytest.approx(math.sqrt(variance * count), rel=4e-3)


def test_terms_round_and_clip_standard_normal_scores() -> None:
    # 200,000 scores; sums of 301 and 151 squared standardised deviations below 460 and 274: false alarms of 1e-8.
    scores = np.random.default_rng(4).standard_normal(200_000)
    for reach, most in ((null.WIDE_REACH, 460), (null.REACH, 274)):
        counts = np.bincount([null.block_term(z, reach) + reach for z in scores], minlength=2 * reach + 1)
        expected = one_term(reach) * scores.size
        assert float(((counts - expected) ** 2 / expected).sum()) < most
    assert [null.block_term(z) for z in (math.nan, math.inf, -math.inf, 0.004)] == [0, null.REACH, -null.REACH, 0]


@pytest.mark.parametrize("epsilon", [1.5, 75.0, 1_000.0])
@pytest.mark.parametrize("two_sided", [True, False])
def test_the_pvalue_sums_over_all_terms_and_noises(two_sided: bool, epsilon: float) -> None:
    reach = null.WIDE_REACH
    k, noise = np.arange(-2 * reach, 2 * reach + 1), np.arange(-9_000, 9_001)
    chances = np.exp(-np.abs(noise) * epsilon / (2 * reach))
    both = np.convolve(np.convolve(one_term(reach), one_term(reach)), chances / chances.sum())
    total = np.arange(k[0] + noise[0], k[-1] + noise[-1] + 1)
    for released in (-700, -1, 0, 350, 2_000):
        extreme = np.abs(total) >= abs(released) if two_sided else total >= released
        expected = max(null.LEAST_PVALUE, both[extreme].sum())
        assert null.block_pvalue(released, 2, epsilon, two_sided) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("deviation", "scale"), [(0.01, 1), (1, 1), (1, 0.2), (5, 1), (1, 50)])
def test_the_closed_form_of_normal_and_laplace_is_the_integral(deviation: float, scale: float) -> None:
    for s in (0.0, 0.7 * max(deviation, scale), 3 * max(deviation, scale)):

        def beyond(z: float, s: float = s) -> float:
            return float(stats.norm.pdf(z) * stats.laplace.sf(s - deviation * z, scale=scale))

        tail, _ = quad(beyond, -12, 12, points=sorted({min(max(s / deviation, -12), 12), 0.0}), limit=400)
        pvalue = null.normal_laplace_pvalue(s, deviation, scale)
        assert pvalue == pytest.approx(min(1, 2 * tail), rel=1e-6, abs=1e-10)


def test_a_noisy_bound_covers_a_whole_number_as_often_as_it_says() -> None:
    rng, scale, miss = np.random.default_rng(1), 7.0, 0.01
    success = -np.expm1(-1 / scale)
    noise = rng.geometric(success, 40_000) - rng.geometric(success, 40_000)
    below = np.mean([null.upper_bound(1_000 + one, scale, miss) < 1_000 for one in noise])
    # Five standard errors of a share of .01 of 40,000.
    assert 0.005 < below <= miss + 5 * (miss / 40_000) ** 0.5


def test_the_pvalue_under_a_bounded_deviation_is_the_least_level_that_rejects() -> None:
    def deviation(miss: float) -> float:
        return 10.0 + float(np.log(1 / miss))

    p = null.bounded_pvalue(60.0, 5.0, deviation)
    assert null.normal_laplace_pvalue(60.0, deviation(0.04 * p), 5.0) == pytest.approx(0.96 * p, rel=1e-6)
    assert null.bounded_pvalue(0.0, 5.0, deviation) == 1.0 and null.bounded_pvalue(1e9, 5.0, deviation) <= 1e-11
    pvalues = [null.bounded_pvalue(value, 5.0, deviation) for value in np.linspace(0, 100, 30)]
    assert pvalues == sorted(pvalues, reverse=True)


def test_the_rank_of_a_score_is_uniform_under_exchange() -> None:
    # 6,000 scores of 20 exchangeable numbers, few of them different: Kolmogorov's distance, a false alarm below 1e-8.
    rng, generator = np.random.default_rng(0), generator_from_seed(1)
    scores = []
    for _ in range(6_000):
        values = rng.integers(4, size=20).astype(np.float64)
        scores.append(null.score_of_rank(float(values[0]), values[1:], float(np.abs(values).max()), generator))
    assert stats.kstest(scores, "norm").statistic < 0.041


def test_a_rank_does_not_depend_on_the_order_in_which_terms_are_added() -> None:
    # x and y of few values: the products of any order are sums of the same numbers.
    rng = np.random.default_rng(6)
    left, right = (rng.random((2, 60, 1)) < 0.05) - 0.05
    orders = [np.random.default_rng(seed).permutation(60) for seed in range(1_000)]
    scores, moved = (
        [null.block_term(null.permutation_score(left[order], right[order], 99, 1.0, generator_from_seed(seed)))
         for seed, order in enumerate(some)] for some in ([np.arange(60)] * 1_000, orders)
    )  # fmt: skip
    # The same data, so the same distribution: two-sample Kolmogorov, a false alarm below 1e-8.
    assert stats.ks_2samp(scores, moved).pvalue > 1e-8


def test_the_studentised_covariance_of_several_columns_is_that_of_each_pair() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(50, 2)), rng.normal(size=(50, 3))
    products = left[:, :, None] * right[:, None, :]
    assert null.studentised_covariance(left, right) == pytest.approx(
        products.sum(axis=0) / np.sqrt((products**2).sum(axis=0))
    )
    assert null.studentised_covariance(np.zeros((5, 1)), np.ones((5, 1)))[0, 0] == 0
    assert null.permutation_score(left[:, :1], left[:, :1], 99, 1.0, generator_from_seed(2)) > 2


def block_sums(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that fills with the terms of blocks."""
    seen: list[int] = []
    honest = blocks.block_sum
    monkeypatch.setattr(blocks, "block_sum", lambda terms, *rest: seen.extend(terms) or honest(terms, *rest))
    return seen


def test_a_column_that_all_copies_equal_gives_random_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, rng, n = block_sums(monkeypatch), np.random.default_rng(5), 24_000
    z = rng.uniform(-2, 2, n)
    schema = dpc.Schema({"x": dpc.Bounded(0, 1), "y": dpc.Bounded(-3, 3), "z": dpc.Bounded(-2, 2)})
    model = dpc.ModelX(mean=lambda Z: np.full(len(Z), 2.0), sd=0.1)
    method = dpc.methods.Crt(blocks=400, model_x=model, resamples=19)
    frame = {"x": np.ones(n), "y": rng.standard_normal(n) + z, "z": z}
    answer_of(frame, schema, given=["z"], loss=dpc.PureDP(0.1), seed=3, method=method)
    terms, points = np.array(seen) / 100, np.linspace(-8, 8, 160_001)
    variance = float(np.clip(points, -0.75, 0.75) ** 2 @ (stats.norm.pdf(points) * 1e-4))
    assert abs(terms.mean()) < 6 * (variance / 400) ** 0.5
    assert abs(terms.var() - variance) < 6 * ((terms**2).std() / 20)


def test_a_mean_that_grows_without_bound_costs_no_power(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, rng, n = block_sums(monkeypatch), np.random.default_rng(8), 4_800
    z = np.where(np.arange(n) % 2, rng.uniform(-1, 1, n), rng.uniform(-1, 30, n))
    x = np.clip(np.exp(z) + rng.standard_normal(n), 0, 10)
    y = 2 * (x - np.clip(np.exp(z), 0, 10)) + rng.standard_normal(n)
    schema = dpc.Schema({"x": dpc.Bounded(0, 10), "y": dpc.Bounded(-30, 30), "z": dpc.Bounded(-1, 30)})
    method = dpc.methods.Crt(blocks=16, model_x=dpc.ModelX(mean=lambda Z: np.exp(Z[:, 0]), sd=1.0))
    answer_of({"x": x, "y": y, "z": z}, schema, given=["z"], loss=dpc.PureDP(1), seed=3, method=method)
    assert np.mean(seen) > 60  # of 75


def test_the_deviation_of_kendall_is_that_of_strata_of_one_size() -> None:
    rng, kendall = np.random.default_rng(7), dpc.methods.Kendall()
    strata = np.repeat(np.arange(30), 3)
    values = [kendall.statistic(rng.standard_normal(90), rng.standard_normal(90), strata) for _ in range(600)]
    # A standard deviation of 600 is within 18 % but for 1e-8.
    assert 0.82 < float(np.std(values)) / kendall.deviation(90, 30) < 1.18


def test_rows_off_the_most_frequent_value_are_counted_on_the_side_that_has_more() -> None:
    x, y = np.zeros((100, 1)), np.zeros((100, 2))
    x[:7], y[:30, 0], y[:99, 1] = 1, 1, 1
    given = Given(np.zeros((100, 1)), np.empty((100, 0), dtype=np.int64), ())
    assert [Sample(x, other, given, x, np.ones(100, dtype=bool)).varying for other in (x, y)] == [7, 30]


@pytest.mark.parametrize("kind", [Gcm, WeightedGcm])
def test_blocks_in_which_both_sides_are_rare_have_no_score(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Both go with z and have 2 to 3 % ones: with a score gcm rejected .18 of such pairs at level .05.
    scored: list[Any] = []
    monkeypatch.setattr(kind, "score", lambda *rows: scored.append(rows) or 10.0)
    rng, n = np.random.default_rng(4), 3_000
    z = rng.normal(size=n).clip(-3, 3)
    rare = {name: (rng.random(n) < 1 / (1 + np.exp(4 - z))).astype(int) for name in "xy"}
    schema = dpc.Schema({**dict.fromkeys("xyc", dpc.Levels([0, 1])), "z": dpc.Bounded(-3, 3)})
    frame = {**rare, "c": rng.integers(0, 2, n), "z": z}
    # Where nothing is given nothing is learnt: ranks are exact.
    for y, given, has_scores in (("y", ["z"], False), ("c", ["z"], True), ("y", [], True)):
        scored.clear()
        answer_of(frame, schema, "x", y, given=given, loss=dpc.PureDP(2), method=kind())
        assert bool(scored) == has_scores
