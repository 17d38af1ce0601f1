"""Instruments, partial correlations, mediation and unmeasured causes read off moments, beside models of the rows."""

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from linearmodels.iv import IV2SLS

import dpcausal as dpc
from dpcausal.effects.cells.effect import benchmark
from tests import factories

LOSS, EXACT = dpc.ApproxDP(1, 1e-6), dpc.NoPrivacy()
OVERIDENTIFIED: Any = {"instruments": ["z", "w"], "given": ["x"], "errors": "homoscedastic"}


def made(strength: float, n: int = 10_000, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    z, w, x, u = rng.normal(size=(4, n))
    a = strength * z + 0.6 * strength * w + 0.4 * x + u + rng.normal(size=n)
    return {"y": 1 + 0.7 * a - 0.5 * x + u + rng.normal(size=n), "a": a, "x": x, "z": z, "w": w}


def released(columns: dict[str, Any], loss: Any = LOSS, seed: int = 3) -> Any:
    with dpc.simulated_noise(seed):
        private = factories.table(columns, dict.fromkeys(columns, dpc.Bounded(-15, 15)), loss)
        return dpc.moments(private, list(columns), loss=loss)


def test_without_noise_it_is_two_stage_least_squares_and_the_ends_of_the_set_are_where_the_f_test_says() -> None:
    columns = made(0.5)
    fit = released(columns, EXACT).iv("y", "a", **OVERIDENTIFIED)
    y, a, x, z, w = (columns[name] for name in "yaxzw")
    exogenous = sm.add_constant(np.column_stack([z, w, x]), prepend=False)
    held = np.column_stack([np.ones(len(x)), x])
    reference = IV2SLS(y, held, a, np.column_stack([z, w])).fit(cov_type="unadjusted", debiased=True)
    order = ["endog", "exog.1"]
    assert [one.estimate for one in fit.coefficients] == pytest.approx(reference.params[order].tolist(), abs=1e-8)
    assert [one.standard_error for one in fit.coefficients] == pytest.approx(
        reference.std_errors[order].tolist(), abs=1e-8
    )
    instruments = np.eye(4)[:2]
    assert fit.strength == pytest.approx(sm.OLS(a, exogenous).fit().f_test(instruments).fvalue, rel=1e-8)
    ((low, high),) = fit.anderson_rubin
    for end in (low, high):
        f = sm.OLS(y - end * a, exogenous).fit().f_test(instruments).fvalue
        assert 2 * f == pytest.approx(5.991464547, rel=1e-8)


def test_the_set_is_unbounded_where_the_instruments_do_nothing_and_two_stage_intervals_are_withheld() -> None:
    unbounded = 0
    for seed in range(5):
        fit = released(made(0.0, seed=seed), seed=seed).iv("y", "a", **OVERIDENTIFIED)
        assert fit["a"].interval is None and "below 104.7" in fit.interval_reason and fit.strength < 20
        assert fit.anderson_rubin is not None
        unbounded += any(np.inf in map(abs, pair) for pair in fit.anderson_rubin)
    assert unbounded >= 4


def test_noisy_sets_hold_the_slope_and_are_wider_than_without_noise() -> None:
    columns = made(0.5)
    release = released(columns)
    noisy = release.iv("y", "a", instruments=["z"], given=["x", "w"], errors="homoscedastic")
    plain = released(columns, EXACT).iv("y", "a", instruments=["z"], given=["x", "w"], errors="homoscedastic")
    (pair,), (own,) = noisy.anderson_rubin, plain.anderson_rubin
    assert pair[0] < 0.7 < pair[1] and pair[1] - pair[0] > own[1] - own[0]
    assert noisy["a"].interval is not None and "Anderson–Rubin" in noisy.details()
    hidden = release.iv("y", "a", instruments=["z"])  # nobody said that the spread is constant
    assert hidden.anderson_rubin is None and ": none" not in hidden.details()


def test_moments_that_are_mostly_noise_have_an_answer_without_an_interval() -> None:
    # Of 300 rows the noise is larger than what they are: a first stage had no width in one direction, and no inverse.
    for seed in range(12):
        fit = released(made(0.0, 300, seed), seed=seed).iv("y", "a", **OVERIDENTIFIED)
        assert fit.anderson_rubin is None and fit["a"].interval is None and fit.strength >= 0


def caused(n: int = 4_000, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x, u, e, f, g = rng.normal(size=(5, n))
    a = 0.5 * x + 0.6 * u + e
    m = 0.5 * a + 0.3 * x + f
    return {"y": 0.4 * a + 0.6 * m - 0.5 * x + 0.7 * u + g, "a": a, "m": m, "x": x, "u": u}


def fitted(columns: dict[str, Any], outcome: str, regressors: list[str]) -> Any:
    return sm.OLS(columns[outcome], sm.add_constant(np.column_stack([columns[one] for one in regressors]), False)).fit()


def test_without_noise_a_partial_correlation_is_that_of_residuals_with_fishers_interval() -> None:
    columns = caused()
    found = released(columns, EXACT).partial("y", "a", given=["x", "m"], errors="normal")["y"]
    r = float(np.corrcoef(*(fitted(columns, one, ["x", "m"]).resid for one in ("y", "a")))[0, 1])
    ends = np.tanh(np.arctanh(r) + np.array([-1, 1]) * 1.959963985 / np.sqrt(4_000 - 2 - 3))
    assert found.estimate == pytest.approx(r, abs=1e-9) and found.interval == pytest.approx(tuple(ends), abs=1e-9)


def test_without_noise_direct_and_indirect_effects_are_those_of_two_regressions() -> None:
    columns = caused()
    found = released(columns, EXACT).mediation("a", "m", "y", given=["x", "u"], errors="homoscedastic")
    second, first = fitted(columns, "y", ["a", "m", "x", "u"]), fitted(columns, "m", ["a", "x", "u"])
    total = fitted(columns, "y", ["a", "x", "u"])
    indirect = first.params[0] * second.params[1]
    sobel = np.hypot(first.params[0] * second.bse[1], second.params[1] * first.bse[0])
    assert found["direct"].estimate == pytest.approx(second.params[0], abs=1e-8)
    assert found["direct"].standard_error == pytest.approx(second.bse[0], rel=1e-3)
    assert found["indirect"].estimate == pytest.approx(indirect, abs=1e-8)
    assert found["indirect"].standard_error == pytest.approx(sobel, rel=1e-3)
    assert found["total"].estimate == pytest.approx(total.params[0], abs=1e-8)
    assert found["total"].estimate == pytest.approx(found["direct"].estimate + found["indirect"].estimate, abs=1e-8)
    assert found["indirect"].interval == pytest.approx((indirect - 1.96 * sobel, indirect + 1.96 * sobel), abs=0.005)


def test_an_unmeasured_cause_of_known_shares_moves_the_slope_to_where_it_is_with_the_cause_measured() -> None:
    columns = caused()
    for held in (["x"], ["x", "m"]):
        with_u, without = fitted(columns, "y", ["a", *held, "u"]), fitted(columns, "y", ["a", *held])
        of_outcome = 1 - with_u.ssr / without.ssr
        of_treatment = 1 - fitted(columns, "a", [*held, "u"]).ssr / fitted(columns, "a", held).ssr
        found = released(columns, EXACT).sensitivity(
            "y", "a", given=held, explains=(of_outcome, of_treatment), errors="normal"
        )
        assert found["nothing unmeasured"].estimate == pytest.approx(without.params[0], abs=1e-8)
        assert found["shares as named"].estimate == pytest.approx(with_u.params[0], abs=1e-8)


def test_the_robustness_value_is_the_share_of_both_that_leaves_nothing() -> None:
    release = released(caused(), EXACT)
    value = release.sensitivity("y", "a", given=["x"])["nothing unmeasured"].robustness_value
    found = release.sensitivity("y", "a", given=["x"], explains=(value, value))
    assert found["shares as named"].estimate == pytest.approx(0, abs=1e-8) and "robustness value" in found.details()


def test_the_error_of_a_cause_as_strong_as_a_measured_one_counts_that_its_strength_is_an_estimate() -> None:
    found = [
        released(caused(800, seed), EXACT).sensitivity("m", "a", given=["x"], errors="normal")["as strong as x"]
        for seed in range(300)
    ]
    assert np.std([one.estimate for one in found]) == pytest.approx(found[0].standard_error, rel=0.12)
    plain = released(caused(800, 0), EXACT).sensitivity("m", "a", given=["x"])["nothing unmeasured"].standard_error
    assert found[0].standard_error > 1.3 * plain


def test_what_rests_on_how_far_out_rows_lie_has_an_interval_only_where_they_are_said_to_be_normal() -> None:
    release = released(caused(), EXACT)
    found = release.partial("y", "a", given=["x"])
    assert found["y"].interval is None and "errors='normal'" in found.interval_reason
    found = release.sensitivity("y", "a", given=["x"], explains=(0.1, 0.1), errors="homoscedastic")
    assert [one.interval is not None for one in found.coefficients] == [True, False, False]
    assert "errors='normal'" in found.interval_reason and found.assumed


def test_a_benchmark_is_that_of_the_paper_and_none_where_no_cause_can_be_so_strong() -> None:
    # Darfur, once as strong as "female": Cinelli & Hazlett (2020), Figure 2 and Table 1.
    found = benchmark(0.1091, 0.0091)
    assert found == pytest.approx((0.1246, 0.0092), abs=2e-4)
    assert benchmark(0.5, 0.6) is None and benchmark(0.9, 0.4) is None


def test_noisy_answers_stay_within_their_errors_and_are_not_shown_without_a_declared_spread() -> None:
    columns = caused(20_000)
    release = released(columns, dpc.ApproxDP(2, 1e-6))
    found = release.mediation("a", "m", "y", given=["x", "u"], errors="homoscedastic")
    for name, truth in (("direct", 0.4), ("indirect", 0.3), ("total", 0.7)):
        assert abs(found[name].estimate - truth) < 4.5 * found[name].standard_error
        assert found[name].interval is not None and 0 < found[name].noise_error < found[name].standard_error
    assert release.mediation("a", "m", "y")["direct"].interval is None


def test_where_the_mediator_acts_otherwise_under_treatment_the_indirect_effect_is_a_mean_over_arms() -> None:
    rng = np.random.default_rng(4)
    treated, e, f = rng.random(100_000) < 0.3, *rng.normal(size=(2, 100_000))
    mediator = 0.5 * treated + e
    columns = {"a": 1.0 * treated, "m": mediator, "y": 0.3 * treated + (0.5 + 0.6 * treated) * mediator + f}
    fit = released(columns, EXACT).mediation("a", "m", "y")
    without, under, whole = 0.5 * 0.5, 0.5 * 1.1, 0.3 + 0.5 * 1.1
    assert fit["total"].estimate == pytest.approx(whole, abs=0.03)
    assert fit["indirect"].estimate == pytest.approx(0.7 * without + 0.3 * under, abs=0.02)
    assert fit["direct"].estimate == pytest.approx(whole - 0.7 * without - 0.3 * under, abs=0.03)
