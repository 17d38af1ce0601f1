"""The noise-aware test: against scipy without noise, its level under noise, its covariance against simulation."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

import dpcausal as dpc
from dpcausal.discovery.pvalues import pvalue_of
from dpcausal.mechanisms.additive import geometric_variance
from dpcausal.releases.contrasts import NoisyContrasts
from dpcausal.releases.counts import NoisyTable, geometric_success
from dpcausal.statistics.contrasts import contrast_of
from dpcausal.statistics.strata import contingency
from dpcausal.statistics.wald import (
    RIDGE,
    left_by_parts,
    upper_tail,
    usable_strata,
    wald_residuals,
    wald_test,
    wald_tests_correlated,
)


def correlated(counts: Any, factor: Any, variance: float) -> Any:
    return wald_tests_correlated(counts[None], factor[None], np.array([variance]))[0]


BOTH = [wald_test, lambda counts, v: correlated(counts, np.zeros((*counts.shape, 1)), v)]


@pytest.mark.parametrize("test", BOTH)
@pytest.mark.parametrize("shape", [(2, 2, 1), (3, 2, 1), (3, 4, 1)])
def test_without_noise_and_strata_it_is_nearly_pearsons(test: Any, shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(1)
    counts = rng.multinomial(200_000, np.full(math.prod(shape), 1 / math.prod(shape))).reshape(shape).astype(float)
    expected = chi2_contingency(counts[:, :, 0], correction=False)
    found = test(counts, 0.0)
    assert found.freedom == expected.dof
    # RIDGE = 1 beside variances of thousands.
    assert found.statistic == pytest.approx(expected.statistic, rel=3e-3)
    assert RIDGE == 1


@pytest.mark.parametrize("test", BOTH)
def test_strata_add_up(test: Any) -> None:
    rng = np.random.default_rng(2)
    parts = [rng.multinomial(90_000, [0.2, 0.3, 0.1, 0.4]).reshape(2, 2, 1).astype(float) for _ in range(3)]
    whole = test(np.concatenate(parts, axis=2), 0.0)
    each = [test(part, 0.0) for part in parts]
    assert whole.freedom == 3
    assert whole.statistic == pytest.approx(sum(one.statistic for one in each))


def test_both_forms_agree_on_independent_noise() -> None:
    rng = np.random.default_rng(3)
    counts = rng.multinomial(5_000, np.full(18, 1 / 18)).reshape(3, 3, 2).astype(float)
    factor = np.eye(18).reshape(3, 3, 2, 18) * 6.0
    first, second = wald_test(counts, 36.0), correlated(counts, factor, 36.0)
    assert first is not None and second is not None
    assert first.statistic == pytest.approx(second.statistic, rel=1e-10) and first.freedom == second.freedom


def test_all_strata_together_agree_with_mantel_and_haenszel_without_noise() -> None:
    rng = np.random.default_rng(6)
    counts = np.stack([rng.multinomial(m, [0.3, 0.2, 0.15, 0.35]).reshape(2, 2) for m in (9_000, 30_000)], axis=2)
    a, of_x, of_y, m = counts[0, 0], counts[0].sum(axis=0), counts[:, 0].sum(axis=0), counts.sum(axis=(0, 1))
    spread = of_x * (m - of_x) * of_y * (m - of_y) / (m**2 * (m - 1.0))
    found = wald_residuals(counts.astype(float), 0.0)
    assert found is not None
    assert found.pooled()[0] == pytest.approx((a - of_x * of_y / m).sum() ** 2 / spread.sum(), rel=5e-3)
    three = rng.multinomial(40_000, np.full(12, 1 / 12)).reshape(3, 4, 1).astype(float)
    one = wald_residuals(np.repeat(three, 2, axis=2), 25.0)  # two copies of one stratum
    assert one is not None and one.pooled(2) == pytest.approx(one.terms())


def rejections(draw: Any, runs: int) -> float:
    return float(np.mean([chi2.sf(*draw()) < 0.01 for _ in range(runs)]))


def test_the_level_is_kept_under_independence_where_the_plain_test_fails() -> None:
    """1,000 runs at nominal .01: more than .035 has probability below 1e-8 if the level is .012 or less."""
    rng = np.random.default_rng(4)
    epsilon, n = 0.1, 20_000
    success = -math.expm1(-epsilon / 2)
    law = np.outer([0.1, 0.9], [0.3, 0.5, 0.2]).ravel()

    def noisy() -> Any:
        counts = rng.multinomial(n, law).reshape(2, 3, 1)
        return counts + rng.geometric(success, counts.shape) - rng.geometric(success, counts.shape)

    aware = rejections(lambda: wald_test(noisy().astype(float), geometric_variance(2 / epsilon)), 1_000)
    plain = rejections(lambda: wald_test(noisy().astype(float), 0.0), 300)
    assert 0.001 < aware < 0.035
    assert plain > 0.08


def test_contrasts_give_back_their_tables_and_the_covariance_of_their_noise() -> None:
    rng = np.random.default_rng(5)
    sizes = (2, 3, 2)
    codes = [rng.integers(0, k, 500) for k in sizes]
    sets = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    exact = {s: contrast_of(contingency([codes[i] for i in s], [sizes[i] for i in s])) for s in sets}
    deviations = {s: float(len(s)) for s in sets}
    noisy = NoisyContrasts(("a", "b", "c"), 500, sizes, exact, deviations)
    counts, factor = noisy.cells((0, 1, 2))  # type: ignore[misc]
    assert np.allclose(counts, contingency(codes, sizes))
    assert np.allclose(noisy.cells((0, 2))[0], contingency([codes[0], codes[2]], [2, 2]))  # type: ignore[index]
    draws = []
    for _ in range(6_000):
        values = {s: v + rng.normal(0, deviations[s], v.shape) for s, v in exact.items()}
        draws.append(NoisyContrasts(("a", "b", "c"), 500, sizes, values, deviations).cells((0, 1, 2))[0].ravel())  # type: ignore[index]
    expected = factor.reshape(12, -1) @ factor.reshape(12, -1).T
    assert np.abs(np.cov(np.array(draws).T) - expected).max() < 0.12 * expected.max()


def test_tests_of_one_shape_at_once_are_those_one_by_one() -> None:
    rng = np.random.default_rng(6)
    counts = rng.poisson(40, (30, 2, 3, 4)).astype(float)
    counts[:10, :, :, 1] = 1.0  # strata without weight, in some
    counts[3] = 0.0
    factors, variances = rng.normal(0, 2, (30, 2, 3, 4, 5)), rng.uniform(1, 90, 30)
    found = wald_tests_correlated(counts, factors, variances)
    assert found[3] is None and {one.freedom for one in found if one} == {2 * strata for strata in (3, 4)}
    for together, table, factor, variance in zip(found, counts, factors, variances, strict=True):
        kept = usable_strata(table, variance)
        alone = correlated(table[:, :, kept], factor[:, :, kept], 0.0)
        assert (together is None) == (alone is None)
        if together is not None and alone is not None:
            assert together.freedom == alone.freedom and math.isclose(together.statistic, alone.statistic)


def test_sets_that_were_not_released_are_not_tested() -> None:
    noisy = NoisyContrasts(("a", "b"), 100, (2, 2), {(0,): np.zeros(1)}, {(0,): 1.0})
    assert noisy.cells((0, 1)) is None
    assert pvalue_of(noisy, 0, 1, ()) is None


def test_small_strata_carry_no_weight() -> None:
    counts = np.stack([np.full((2, 2), 100.0), np.full((2, 2), 1.0)], axis=2)
    assert usable_strata(counts, 0.0).tolist() == [True, False]
    assert usable_strata(counts, 100_000.0).tolist() == [False, False]
    assert wald_test(counts, 1e9) is None
    assert wald_test(np.zeros((2, 2, 1)), 0.0) is None
    assert wald_test(np.full((1, 2, 1), 1e4), 0.0) is None


@pytest.mark.parametrize("value", [-(10**6), 0, 10**6])
def test_it_is_defined_for_every_noisy_table(value: int) -> None:
    table = NoisyTable(("a", "b", "c"), 40, np.full((2, 3, 2), value), 8.0, "geometric")
    for given in ((), (2,)):
        found = pvalue_of(table, 0, 1, given)
        assert found is None or 0 <= found <= 1


def test_rare_levels_do_not_decide() -> None:
    """One record at a cell that is expected to be empty: the plain statistic is 99, this one 1."""
    counts = np.array([[9_998.0 * 10, 999.0], [99.0, 2.0]])[:, :, None]
    plain = chi2_contingency(counts[:, :, 0], correction=False).statistic
    found = wald_test(counts, 0.0)
    assert found is not None and found.statistic < plain


@pytest.mark.parametrize("test", BOTH)
def test_levels_that_nobody_has_leave_the_statistic_as_it_is(test: Any) -> None:
    rng = np.random.default_rng(7)
    full = rng.multinomial(400, [0.2, 0.3, 0.1, 0.4], 5).T.reshape(2, 2, 5).astype(float)
    padded = np.zeros((4, 3, 5))
    padded[:2, :2] = full
    expected = sum(chi2_contingency(full[:, :, place], correction=False).statistic for place in range(5))
    assert test(full, 0.0).statistic == pytest.approx(expected, rel=0.1)
    assert test(padded, 0.0).statistic == pytest.approx(expected, rel=0.1)
    constant = np.zeros((4, 3, 1))
    constant[:, 0, 0] = 100.0
    assert test(constant, 0.0).statistic == pytest.approx(0.0, abs=1e-9)


def test_the_level_is_kept_where_declared_levels_do_not_occur() -> None:
    """200 runs at nominal .05: more than 30 have probability below 1e-7."""
    rng = np.random.default_rng(8)
    success = -math.expm1(-5 / 2)

    def noisy() -> Any:
        counts = np.zeros((8, 8, 4))
        for place in range(4):
            own = slice(2 * place, 2 * place + 2)
            counts[own, own, place] = rng.multinomial(500, [0.25] * 4).reshape(2, 2)
        counts += rng.geometric(success, counts.shape) - rng.geometric(success, counts.shape)
        found = wald_test(counts, geometric_variance(2 / 5))
        return found.statistic, found.freedom

    assert np.mean([chi2.sf(*noisy()) < 0.05 for _ in range(200)]) <= 0.15


def test_geometric_laws_match() -> None:
    for scale in (0.3, 1.0, 20.0):
        variance = geometric_variance(scale)
        a = math.exp(-1 / scale)
        assert variance == pytest.approx(2 * a / (1 - a) ** 2)
        assert geometric_success(variance) == pytest.approx(1 - a)
    assert upper_tail(-1.0, 3) == 1


def test_the_estimate_of_what_is_left_is_about_what_is_left() -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=400_000)
    x, y = (z + rng.normal(size=z.size) > 0, z + rng.normal(size=z.size) > 0)
    part = np.digitize(z, [-0.6745, 0.0, 0.6745])
    counts = np.zeros((2, 2, 4))
    np.add.at(counts, (x.astype(int), y.astype(int), part), 1)
    totals = counts.sum(axis=(0, 1))
    px, py = counts.sum(axis=1)[1] / totals, counts.sum(axis=0)[1] / totals
    left = totals * (counts[1, 1] / totals - px * py) ** 2 / (px * (1 - px) * py * (1 - py))
    estimate = left_by_parts(counts, [0], np.ones(4, dtype=bool), 0.0)
    assert 0.3 < estimate / left.sum() < 6
    assert left_by_parts(counts, [0], np.ones(4, dtype=bool), 1e4) < estimate
    assert left_by_parts(counts[..., [0, 0, 0, 0]], [0], np.ones(4, dtype=bool), 0.0) == 0


@pytest.mark.parametrize("law", ["normal", "exponential"])
@pytest.mark.parametrize(("method", "loss"), [
    ("table", dpc.PureDP(1)), ("whitened", dpc.ApproxDP(1, 1e-6)), ("parities", dpc.ApproxDP(1, 1e-6)),
    ("table", dpc.NoPrivacy()),
])  # fmt: skip
def test_a_chain_of_cut_numbers_has_no_edge_between_its_ends(law: str, method: str, loss: Any) -> None:
    rng = np.random.default_rng(3)
    draw = rng.normal if law == "normal" else rng.exponential
    x, u, v = draw(size=(3, 50_000))
    z = x + 0.7 * u
    frame = {"x": x, "z": z, "y": z + 0.7 * v}
    low, high = (-6.0, 6.0) if law == "normal" else (0.0, 8.0)
    free = isinstance(loss, dpc.NoPrivacy)
    ledger = dpc.Ledger.without_privacy() if free else dpc.Ledger.in_memory(loss)
    with dpc.simulated_noise(2):
        table = dpc.Table(frame, dpc.Schema(dict.fromkeys(frame, dpc.Bounded(low, high))), ledger)
        found = dpc.discover(table, loss=loss, method=method)
    assert found.graph.skeleton == {frozenset("xz"), frozenset("yz")}
    assert found.release is not None
    again = dpc.Release.from_json(found.release.to_json())
    assert again.discover().graph == found.graph
