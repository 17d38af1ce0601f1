"""Standardised means: without noise they are the g-formula, with a delta-method covariance checked by the bootstrap."""

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

import dpcausal as dpc
from dpcausal.effects.cells.corner_counts import functionals
from dpcausal.effects.cells.standardise import (
    Risk,
    Sums,
    difference,
    means,
    odds_ratio,
    parents_of,
    ratio,
    risks,
    tail_quantile,
)
from tests.effects.tables import covered, effect_of, table_of


def made(seed: int, n: int = 4_000) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 4, n)
    a = (rng.random(n) < 0.2 + 0.15 * z).astype(int)
    y = rng.random(n) * (0.3 + 0.1 * z) + 0.2 * a
    return a, z, y


def sums_of(a: Any, z: Any, y: Any, noise: Any = None) -> Sums:
    tables = [np.bincount(4 * a + z, weight, 8).reshape(2, 4) for weight in (np.ones_like(y), y, y**2)]
    return Sums(*tables, noise=np.zeros((2, 2)) if noise is None else noise)


@pytest.mark.parametrize("treated_only", [False, True])
def test_the_covariance_is_that_of_the_bootstrap(treated_only: bool) -> None:
    # 2,000 resamples: a variance is off by 3.2 % (one deviation); 16 % is five.
    a, z, y = made(2)
    rng = np.random.default_rng(5)
    found = means(sums_of(a, z, y), treated_only)
    drawn = []
    for _ in range(2_000):
        rows = rng.integers(0, len(a), len(a))
        drawn.append(means(sums_of(a[rows], z[rows], y[rows]), treated_only).values)
    expected = np.cov(np.array(drawn).T)
    assert np.diag(found.covariance) == pytest.approx(np.diag(expected), rel=0.16)
    gap = np.array([-1, 1])
    assert gap @ found.covariance @ gap == pytest.approx(gap @ expected @ gap, rel=0.16)


def test_the_noise_is_that_of_fresh_draws() -> None:
    a, z, y = made(3)
    noise = np.array([[9.0, 4.0], [4.0, 5.0]])
    exact = sums_of(a, z, y, noise)
    rng = np.random.default_rng(6)
    drawn = [
        means(Sums(exact.N + fresh[..., 0], exact.T + fresh[..., 1], exact.Q, noise), False).values
        for fresh in rng.multivariate_normal([0, 0], noise, size=(4_000, *exact.N.shape))
    ]
    expected = np.cov(np.array(drawn).T)
    # 4,000 draws: 2.2 % a variance; and the ratio's curvature.
    assert means(exact, False).noise == pytest.approx(expected, rel=0.15, abs=0.05 * expected[0, 0])


def test_no_interval_has_width_0_where_squares_are_lost_in_noise() -> None:
    sums = Sums(np.full((2, 1), 50.0), np.full((2, 1), 25.0), np.full((2, 1), 0.0), np.eye(2))
    found = means(sums, False)
    assert (np.linalg.eigvalsh(found.covariance) > 0).all()


def test_the_partial_r2_is_that_of_the_regression_with_strata() -> None:
    a, z, y = made(4)
    levels = (z[:, None] == np.arange(4)).astype(float)
    without = sm.OLS(y, levels).fit().ssr
    with_common = sm.OLS(y, np.column_stack([levels, a])).fit().ssr
    # Residuals within cells are those of separate slopes, hence a little smaller.
    assert means(sums_of(a, z, y), False).partial_r2 == pytest.approx(1 - with_common / without, abs=0.01)


def test_a_small_arm_that_happens_to_lack_large_values_counts_as_skewed() -> None:
    """Sixty zeros tell of no value above 0, though one record in a hundred may have it."""
    N, T, Q = (np.array([[540.0], [60.0]]), np.array([[5.0], [0.0]]), np.array([[4.0], [0.0]]))
    assert means(Sums(N, T, Q, np.zeros((2, 2))), False).skew > 0.35
    assert means(Sums(20 * N, 270 + 20 * T, 90 + 20 * Q, np.zeros((2, 2))), False).skew < 0.35


@pytest.mark.parametrize("records", [10, 60, 400])
def test_an_interval_for_any_skew_holds_of_the_most_skewed_law_there_is(records: int) -> None:
    """Each record is 0 or, with a small chance, at the far end: coverage is a sum over the binomial law."""
    seen = np.arange(records + 1)
    shares = seen / records
    halves = np.array([tail_quantile(p * (1 - p) / records, 1 / records, 1.959964) for p in shares])
    normal = 1.959964 * np.sqrt(shares * (1 - shares) / records)
    chances = np.arange(0.05, 12, 0.05) / records
    for low, half in ((0.95, halves), (0.0, normal)):
        held = [stats.binom.pmf(seen, records, p)[np.abs(shares - p) <= half].sum() for p in chances]
        assert min(held) >= low
    assert min(held) < 0.3  # of a normal one
    assert tail_quantile(1.0, 0.0, 1.959964) == pytest.approx(np.sqrt(2 * np.log(40)), rel=1e-6)


def test_what_is_shown_of_an_arm_that_noise_has_lifted_holds() -> None:
    """Of an arm below what is shown the noise shows a few in a thousand, and those look larger than they are."""
    rng, scale, read = np.random.default_rng(5), 2.0, functionals(2)
    noise = (2 * scale**2 * read @ read.T)[:2, :2]
    size = 0.5 * 6 * float(np.sqrt(noise[0, 0]))
    drawn = rng.laplace(0, scale, (400_000, 3)) @ read.T
    lifted = drawn[size + drawn[:, 0] >= 6 * np.sqrt(noise[0, 0])][:400]
    assert len(lifted) > 50
    held = []
    for e in lifted:
        N, T, Q = (np.array([[control], [float(one)]])
                   for control, one in ((20_000.0, size + e[0]), (0.0, e[1]), (0.0, e[2])))  # fmt: skip
        found = means(Sums(N, T, Q, noise), False)
        error = float(np.sqrt(found.covariance[0, 0] + found.covariance[1, 1] - 2 * found.covariance[0, 1]))
        held.append(abs(found.values[1] - found.values[0]) <= 1.96 * error)
    assert np.mean(held) > 0.93


def drawn_sums(rng: np.random.Generator, sizes: Any, values: Any) -> Sums:
    """Return sums of records that spread by 0.08, with the noise of ε = 1 at the corners."""
    read, scale = functionals(2), 2.0
    N = rng.poisson(sizes).astype(float)
    T = N * values + 0.08 * np.sqrt(N) * rng.normal(size=N.shape)
    Q = N * (values**2 + 0.08**2) + 2 * values * (T - N * values)
    noisy = read @ rng.laplace(0, scale, (N.shape[1], 3, 2)) + np.stack([N, T, Q]).T.swapaxes(1, 2)
    noise = (2 * scale**2 * read @ read.T)[:2, :2]
    return Sums(noisy[:, 0].T, noisy[:, 1].T, noisy[:, 2].T, noise)


@pytest.mark.parametrize(("low", "high", "level"), [(29, 29, 0.05), (39, 39, 0.5), (15, 120, 0.37)])
def test_errors_over_many_small_strata_are_those_of_repeated_draws(low: float, high: float, level: float) -> None:
    rng = np.random.default_rng(7)
    sizes = np.stack([np.full(24, 200.0), np.linspace(low, high, 24)])
    values = np.stack([np.full(24, level), np.full(24, level + 0.05)])
    errors, stated = [], []
    for _ in range(400):
        sums = drawn_sums(rng, sizes, values)
        if sums.supported.mean() < 0.5:
            continue
        found = means(sums.part(sums.supported), False, sums.left_out_by_chance)
        errors.append(found.values[1] - found.values[0] - 0.05)
        stated.append(float(np.array([-1, 1]) @ found.covariance @ np.array([-1, 1])) ** 0.5)
    assert len(errors) > 100
    assert np.mean(np.abs(errors) < 1.96 * np.array(stated)) >= 0.91
    assert 0.85 < np.mean(stated) / np.sqrt(np.mean(np.square(errors))) < 1.25


REACH = 1.959963984540054


def of_counts(control: tuple[int, int], treated: tuple[int, int], noise: Any = None) -> tuple[tuple[Risk, Risk], float]:
    """Return the risks of (events, records) of each arm, and the variance of their difference."""
    T, N = (np.array([[control[place]], [treated[place]]], dtype=float) for place in (0, 1))
    sums = Sums(N, T, T, np.zeros((2, 2)) if noise is None else noise)
    found = means(sums, treated_only=False)
    gap = np.array([-1, 1])
    return risks(sums, found, False, REACH), float(gap @ found.covariance @ gap)


@pytest.mark.parametrize(("control", "treated"), [((1, 80), (4, 60)), ((0, 25), (3, 30)), ((29, 30), (88, 90))])
def test_without_noise_they_are_those_of_wilson_and_newcombe(control: Any, treated: Any) -> None:
    two, variance = of_counts(control, treated)
    for risk, (events, records) in zip(two, (control, treated), strict=True):
        assert (risk.low, risk.high) == pytest.approx(proportion_confint(events, records, method="wilson"), abs=1e-9)
    known = confint_proportions_2indep(*treated, *control, method="newcomb", compare="diff")
    assert difference(*two, variance, REACH) == pytest.approx(known, abs=1e-9)


@pytest.mark.parametrize(("n0", "n1", "p0", "p1"), [(60, 40, 0.05, 0.05), (200, 20, 0.02, 0.1), (50, 50, 0.97, 0.9)])
def test_without_noise_ratios_hold_the_truth_by_the_exact_sum_over_all_tables(
    n0: int, n1: int, p0: float, p1: float
) -> None:
    """The chance of .93 and more of a nominal .95, summed over all pairs of counts; and there are always limits."""
    held = {ratio: 0.0, odds_ratio: 0.0}
    truth = {ratio: p1 / p0, odds_ratio: p1 / (1 - p1) / (p0 / (1 - p0))}
    for events in range(n0 + 1):
        chance = stats.binom.pmf(events, n0, p0)
        if chance > 1e-6:
            for more in range(n1 + 1):
                two, _ = of_counts((events, n0), (more, n1))
                for kind in held:
                    low, high = kind(*two, REACH)[1]
                    held[kind] += chance * stats.binom.pmf(more, n1, p1) * (low <= truth[kind] <= high)
    assert all(0.93 < chance < 0.995 for chance in held.values()), held


def test_a_ratio_of_well_known_risks_is_that_of_the_delta_method_and_turns_with_the_arms() -> None:
    two, _ = of_counts((300, 6_000), (450, 5_000))
    estimate, (low, high) = ratio(*two, REACH)
    error = np.sqrt(1 / 300 - 1 / 6_000 + 1 / 450 - 1 / 5_000)
    assert estimate == pytest.approx(1.8) and np.log([low, high]) == pytest.approx(
        np.log(1.8) + np.array([-1, 1]) * REACH * error, abs=0.01
    )
    (_, there), (_, back) = odds_ratio(*two, REACH), odds_ratio(two[1], two[0], REACH)
    assert (1 / there[1], 1 / there[0]) == pytest.approx(back, rel=0.01)


def test_a_control_risk_that_may_be_0_has_a_ratio_without_an_upper_end() -> None:
    two, _ = of_counts((0, 400), (30, 100))
    estimate, (low, high) = ratio(*two, REACH)
    assert estimate is None and low > 10 and high == np.inf


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_few_events_have_intervals_in_every_run_that_hold_the_truth(epsilon: float) -> None:
    """120 trials of 1,000 with about 3 events in the small arm: at least .95 less five deviations, .85, hold.

    Where an interval is shown only if the events are many enough, as few as one in five do.
    """
    answers = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        a = (rng.random(1_000) < 0.1).astype(int)
        y = (rng.random(1_000) < 0.03).astype(int)
        schema, loss = dict.fromkeys("ay", dpc.Levels([0, 1])), dpc.PureDP(epsilon)
        private = table_of({"a": a, "y": y}, schema, loss, missing="impute")
        answers.append(effect_of(private, loss, "auto", seed, adjust=[]))
    for held in (covered(answers, 0), covered((one.risk_ratio for one in answers), 1)):
        assert len(held) == 120 and np.mean(held) > 0.85


def test_limits_with_noise_widen_with_it_and_stay_within_0_and_1() -> None:
    noise = np.array([[2.0, 1.0], [1.0, 1.0]])
    widths = []
    for variance in (0.0, 8.0, 80.0):
        (control, treated), _ = of_counts((2, 300), (3, 120), variance * noise)
        assert 0 <= treated.low <= treated.value <= treated.high <= 1
        widths.append([control.high - control.low, treated.high - treated.low])
    assert (np.diff(widths, axis=0) > 0).all()


def test_the_variance_of_a_linear_statistic_is_that_of_repeated_samples_with_noise() -> None:
    rng = np.random.default_rng(4)
    means, slopes = np.array([[30.0, 50.0], [20.0, 40.0]]), rng.normal(size=(2, 2, 2))
    noise = np.array([[4.0, 1.0], [1.0, 3.0]])
    N = rng.poisson(means, size=(20_000, 2, 2))
    T = rng.binomial(N, 0.3)
    extra = rng.multivariate_normal([0, 0], noise, size=N.shape)
    draws = ((N + extra[..., 0]) * slopes[0] + (T + extra[..., 1]) * slopes[1]).sum(axis=(1, 2))
    sums = Sums(means, 0.3 * means, 0.3 * means, noise)
    assert sums.variance(*slopes) == pytest.approx(draws.var(), rel=0.06)


@pytest.mark.parametrize("first", [0, 1])
def test_coarser_strata_hold_two_neighbours_along_the_merged_axis(first: int) -> None:
    parents = np.unique(parents_of((2, 5), [1], first), return_inverse=True)[1]
    cells = np.arange(20.0).reshape(2, 2, 5)
    sums = Sums(*(cells.reshape(2, -1) + k for k in range(3)), np.eye(2)).merged(parents)
    starts = [0, 2, 4] if first == 0 else [0, 1, 3]
    assert np.array_equal(sums.N, np.add.reduceat(cells, starts, axis=2).reshape(2, -1))
    assert np.array_equal(sums.noise, 2 * np.eye(2))
