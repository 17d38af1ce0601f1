"""Moments in a learnt shape: the bound, the law of the noise, equality with least squares, and honest intervals."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

import dpcausal as dpc
from dpcausal.effects.moments.adaptive import (
    LAST,
    LAST_TAIL,
    LEAST_SEEN,
    Noise,
    detectable_skew,
    last_radius,
    noise_of,
    shrinkage,
    tail_radius,
    undetectable_tail,
)
from dpcausal.effects.moments.ellipsoid import (
    WHOLE,
    ellipse_bits,
    ellipse_moments,
    ellipse_moments_sensitivity,
    scale_histograms,
    scale_histograms_sensitivity,
)
from dpcausal.effects.moments.release import JointMoments
from dpcausal.effects.unmeasured import robustness_value
from dpcausal.errors import InfeasibleError, LossError, ParameterError, SchemaError
from dpcausal.privacy.loss import affordable_zcdp
from dpcausal.privacy.noise import generator_from_seed
from tests.conformance import check_claim
from tests.registry.effects import RADIUS, moments_of, scales_of, shortened_apart

SCHEMA = dpc.Schema({
    "y": dpc.Bounded(-20, 20), "x": dpc.Bounded(-5, 5), "w": dpc.Bounded(90, 110), "a": dpc.Levels(["no", "yes"]),
    "site": dpc.Levels([0, 1, 2]),
})  # fmt: skip
LOSS = dpc.ApproxDP(1, 1e-6)


def made(n: int = 10_000, seed: int = 1, error: Any = None) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x, a = rng.normal(size=n), rng.random(n) < 0.5
    w = 100 + 2 * (0.5 * x + rng.normal(size=n))
    e = rng.normal(size=n) if error is None else error(rng, x)
    y = np.clip(1 + 2 * x - 0.5 * (w - 100) + 0.4 * a + e, -20, 20)
    return {"y": y, "x": np.clip(x, -5, 5), "w": np.clip(w, 90, 110), "a": np.where(a, "yes", "no"),
            "site": rng.integers(0, 3, n)}  # fmt: skip


def table(columns: Any, loss: Any) -> dpc.Table:
    exact = isinstance(loss, dpc.NoPrivacy)
    return dpc.Table(columns, SCHEMA, dpc.Ledger.without_privacy() if exact else dpc.Ledger.in_memory(loss))


def released(columns: Any, loss: Any = LOSS, names: tuple[str, ...] = ("y", "x", "w", "a")) -> JointMoments:
    return dpc.moments(table(columns, loss), names, loss=loss)


@pytest.mark.proves("ellipse-moments")
def test_the_bound_of_the_moments_holds_is_reached_and_5_percent_less_is_caught() -> None:
    check_claim(
        moments_of, lambda m: ellipse_moments_sensitivity(RADIUS, ellipse_bits(m, RADIUS), 2), sizes=(4, 9), columns=3,
        low=-3.0, high=3.0, starts={"apart": shortened_apart},
    )  # fmt: skip


@pytest.mark.proves("ellipse-moments")
def test_two_shortened_rows_at_the_worst_angle_attain_the_bound_and_a_row_left_out_moves_less() -> None:
    bits = ellipse_bits(2, 1.0)
    bound = float(ellipse_moments_sensitivity(1.0, bits, 2).bound)
    cosine = -0.25 - 1 / 18
    one, other = np.array([[5.0, 0.0]]), 5 * np.array([[cosine, np.sqrt(1 - cosine**2)]])
    kept, out = np.array([True]), np.array([False])
    moved = ellipse_moments(one, kept, 1.0, bits) - ellipse_moments(other, kept, 1.0, bits)
    assert 0.9999 <= np.linalg.norm(moved) / bound <= 1
    gone = ellipse_moments(one, kept, 1.0, bits) - ellipse_moments(one, out, 1.0, bits)
    assert np.linalg.norm(gone) < 0.75 * bound


@pytest.mark.proves("scale-histograms")
def test_the_bound_of_the_histograms_holds_and_is_reached_and_bins_are_powers_of_the_root_of_2() -> None:
    check_claim(scales_of, lambda m: scale_histograms_sensitivity(2), sizes=(4, 9), columns=3, low=-1.0, high=1.0)
    unit = np.array([[1.0], [-0.71], [0.7], [0.3], [0.0], [-0.49]])
    counts = scale_histograms(unit, WHOLE * np.array([1] * 5 + [0]))[0] // WHOLE
    assert counts.nonzero()[0].tolist() == [0, 1, 3, 47] and counts[0] == 2 and counts.sum() == 5


def test_the_covariance_of_the_noise_in_a_contrast_is_that_of_fresh_draws() -> None:
    release = released(made())
    vector = np.array([1.0, -2.0, 0.5, 0.3, -1.0])
    coins = generator_from_seed(3)
    drawn = np.array([(release.with_extra_noise(coins).sums - release.sums) @ vector for _ in range(4_000)])
    expected = release.noise_of(vector)
    # 4,000 draws: a variance is off by 2.2 % (one deviation), a covariance by as much of the variances.
    assert np.cov(drawn.T) == pytest.approx(expected, abs=0.12 * float(expected.max()))


def test_shrinkage_is_the_mean_square_of_a_shortened_normal_row() -> None:
    rng = np.random.default_rng(2)
    for d in (2, 5):
        radius = tail_radius(d, 0.3)
        squares = (rng.normal(size=(200_000, d)) ** 2).sum(axis=1)
        assert (squares > radius**2).mean() == pytest.approx(0.3, abs=0.006)
        assert np.minimum(squares, radius**2).mean() / d == pytest.approx(shrinkage(d, radius), abs=0.006)


def test_without_noise_a_regression_is_least_squares_to_8_digits() -> None:
    columns = made()
    columns["x"][::9] = np.nan
    fit = released(columns, dpc.NoPrivacy()).ols("y", ["x", "w", "a"], errors="homoscedastic")
    whole = ~np.isnan(columns["x"])
    design = np.column_stack([columns["x"], columns["w"], columns["a"] == "yes", np.ones(10_000)])[whole]
    reference = sm.OLS(columns["y"][whole], design.astype(float)).fit()
    assert [one.estimate for one in fit.coefficients] == pytest.approx(reference.params, abs=1e-8)
    assert [one.standard_error for one in fit.coefficients] == pytest.approx(reference.bse, abs=1e-8)
    t2 = reference.tvalues[:3] ** 2
    robust = [robustness_value(one / (one + reference.df_resid)) for one in t2]
    assert [one.robustness_value for one in fit.coefficients[:3]] == pytest.approx(robust, abs=1e-8)
    assert fit["x"].interval is not None and fit["x"].noise_error == 0


def test_slopes_come_out_within_their_errors_and_asking_again_is_free_and_so_is_a_saved_release() -> None:
    asked = table(made(), LOSS)
    with dpc.simulated_noise(4):
        before = dpc.moments(asked, ["y", "x", "w", "a"], loss=LOSS)
    head = asked.ledger.head
    after = dpc.Release.from_json(before.to_json())
    assert after.to_dict() == before.to_dict()
    for release in (before, after):
        fit = release.ols("y", ["x", "w", "a"], errors="homoscedastic")  # type: ignore[attr-defined]
        for name, truth in (("x", 2.0), ("w", -0.5), ("a", 0.4)):
            assert fit[name].interval is not None
            assert abs(fit[name].estimate - truth) < 4.5 * fit[name].standard_error
            assert fit[name].noise_error < fit[name].standard_error
        assert release.ols("w", ["x"], errors="homoscedastic")["x"].estimate == pytest.approx(1, abs=0.2)  # type: ignore[attr-defined]
    assert asked.ledger.head == head
    for part in ("noisy joint moments of y, x, w, a; 10000 rows", "times above the noise", "Guarantee: NONE"):
        assert part in before.summary() and part in after.summary()
    assert fit.summary() and fit.to_json() and len(fit.plot().get_yticklabels()) == 3


def test_there_is_no_interval_without_a_declared_spread_nor_where_the_noise_is_too_near() -> None:
    with dpc.simulated_noise(4):
        release = released(made())
    fit = release.ols("y", ["x", "w", "a"])
    assert fit["x"].interval is None and "errors='homoscedastic'" in fit.interval_reason
    with dpc.simulated_noise(4):
        weak = released(made(2_000), dpc.ApproxDP(0.5, 1e-6))
    fit = weak.ols("y", ["x", "w", "a"], errors="homoscedastic")
    assert weak.signal_to_noise < 5 and fit["x"].interval is None and "noise" in fit.interval_reason


def test_no_error_is_told_where_the_moments_drown_or_the_rounds_have_lost_the_rows() -> None:
    # Of 4,000 releases of 1,000 rows some slopes were off by 2 and said errors of .001; of those lost, by ten errors.
    with dpc.simulated_noise(1):
        good = released(made())
    for bad in (replace(good, deviation=5 * good.deviation * good.signal_to_noise), replace(good, shortened=6_000.0)):
        fit = bad.ols("y", ["x", "w", "a"], errors="normal")
        assert math.isinf(fit["x"].standard_error) and fit["x"].interval is None and fit.interval_reason
        assert bad.mediation("a", "w", "y", errors="homoscedastic")["direct"].noise_error == math.inf
        assert bad.effect(treatment="a", outcome="y", adjust=["x"], errors="homoscedastic").standard_error is None
    assert good.ols("y", ["x", "w", "a"], errors="homoscedastic")["x"].standard_error < 0.1


def test_skewed_rows_whose_slopes_shortening_moves_get_no_interval() -> None:
    # Spread and skew go with x: the slope of shortened rows is off by many errors, and the moments must tell.
    skewed = made(error=lambda rng, x: (rng.exponential(size=len(x)) - 1) * np.exp(0.5 * x))
    with dpc.simulated_noise(5):
        release = released(skewed)
    fit = release.ols("y", ["x", "w", "a"], errors="homoscedastic")
    assert fit["x"].interval is None and "one side" in fit.interval_reason and not fit.assumed


def test_skewed_regressors_with_even_errors_keep_their_intervals_and_the_answer_says_what_they_rest_on() -> None:
    # 20 runs: fewer than 16 of those shown cover with probability 3e-3 at .95 if all are.
    rng, covered = np.random.default_rng(8), []
    schema = dpc.Schema({"y": dpc.Bounded(-10, 10), "x": dpc.Bounded(-10, 10), "w": dpc.Bounded(-5, 5)})
    for seed in range(20):
        x, w = np.exp(0.4 * rng.normal(size=10_000)), rng.normal(size=10_000)
        rows = {"y": 0.5 * x + 0.3 * w + 0.5 * rng.normal(size=10_000), "x": x, "w": w}
        with dpc.simulated_noise(seed):
            release = dpc.moments(dpc.Table(rows, schema, dpc.Ledger.in_memory(LOSS)), list(rows), loss=LOSS)
        fit = release.ols("y", ["x", "w"], errors="homoscedastic")
        if fit["x"].interval is not None:
            covered.append(fit["x"].interval[0] <= 0.5 <= fit["x"].interval[1])
            assert "as was said" in fit.assumed and fit.assumed in str(fit)
    assert len(covered) >= 10 and np.mean(covered) >= 0.8


def test_where_noise_would_hide_a_skew_there_are_intervals_for_normal_rows_alone() -> None:
    rng, loss = np.random.default_rng(5), dpc.ApproxDP(1, 1e-5)
    x, w, e = rng.normal(size=(3, 1_000))
    rows = {"y": 1 + 2 * x - w + e, "x": x, "w": w}
    schema = dpc.Schema({"y": dpc.Bounded(-20, 20), "x": dpc.Bounded(-5, 5), "w": dpc.Bounded(-5, 5)})
    with dpc.simulated_noise(2):
        release = dpc.moments(dpc.Table(rows, schema, dpc.Ledger.in_memory(loss)), list(rows), loss=loss)
    fit = release.ols("y", ["x", "w"], errors="homoscedastic")
    assert fit["x"].interval is None and "errors='normal'" in fit.interval_reason
    assert release.ols("y", ["x", "w"], errors="normal")["x"].interval is not None


def test_more_rows_are_shortened_exactly_where_a_skew_would_not_be_seen_and_the_noise_is_less_for_it() -> None:
    for epsilon in (0.3, 1, 3):
        loss = affordable_zcdp(dpc.ApproxDP(epsilon, 1e-6))
        for n in (500, 1_000, 2_500, 5_000, 20_000, 80_000):
            usual = noise_of(3, n, last_radius(3, n, loss), loss.part(LAST))
            tail = undetectable_tail(3, n, loss)
            assert (tail > LAST_TAIL) == (detectable_skew(n, usual) < LEAST_SEEN) and tail < 0.1501
            shorter = noise_of(3, n, last_radius(3, n, loss, tail), loss.part(LAST))
            assert (shorter.deviation < usual.deviation) == (last_radius(3, n, loss, tail) < usual.radius)
    loss = affordable_zcdp(dpc.ApproxDP(1, 1e-5))
    assert last_radius(3, 1_000, loss, undetectable_tail(3, 1_000, loss)) ** 2 < 5.4


def test_bounds_ten_times_as_wide_cost_little() -> None:
    columns = made()
    wide = dpc.Schema({"y": dpc.Bounded(-120, 120), "x": dpc.Bounded(-40, 40), "w": dpc.Bounded(20, 180)})
    narrow = dpc.Schema({"y": dpc.Bounded(-12, 12), "x": dpc.Bounded(-4, 4), "w": dpc.Bounded(92, 108)})
    errors = []
    for schema in (wide, narrow):
        with dpc.simulated_noise(6):
            frame = dpc.Table({name: columns[name] for name in schema}, schema, dpc.Ledger.in_memory(LOSS))
            fit = dpc.moments(frame, ["y", "x", "w"], loss=LOSS).ols("y", ["x", "w"])
        errors.append(fit["x"].standard_error)
    assert errors[0] < 1.25 * errors[1]


def test_what_cannot_work_is_refused_before_the_spend() -> None:
    columns = made(2_000)
    for refused, names, loss in (
        (InfeasibleError, ["y", "x", "w", "a"], dpc.ApproxDP(0.1, 1e-6)), (LossError, ["y", "x"], dpc.PureDP(1)),
        (SchemaError, ["y", "site"], LOSS), (ParameterError, ["y"], LOSS), (ParameterError, "y", LOSS),
    ):  # fmt: skip
        asked = table(columns, loss)
        with pytest.raises(refused) as told:
            dpc.moments(asked, names, loss=loss)
        assert asked.ledger.entries() == []
        if refused is InfeasibleError:
            assert "rows would be enough" in str(told.value)
    release = released(columns, dpc.NoPrivacy())
    for wrong in (("y", ["y"]), ("y", []), ("y", ["nowhere"]), ("nowhere", ["x"])):
        with pytest.raises(ParameterError):
            release.ols(*wrong)  # type: ignore[arg-type]


def test_the_noise_of_every_entry_is_that_of_the_declared_release() -> None:
    noise = Noise(2.0, 0, 3.0)
    variances = noise.variances(2)
    assert variances[0, 0] == 9 and variances[0, 1] == 4.5 and variances[0, 2] == 4.5 and variances[2, 2] == 9
    assert noise.count == 3 * 3 / 4


def test_a_thousand_rows_have_intervals_at_epsilon_1_and_robustness_values_go_with_them() -> None:
    # 40 runs: fewer than 34 of those shown cover with probability 1e-3 at .95 if all are.
    rng, loss, covered = np.random.default_rng(5), dpc.ApproxDP(1, 1e-5), []
    schema = dpc.Schema({"y": dpc.Bounded(-20, 20), "x": dpc.Bounded(-5, 5), "w": dpc.Bounded(-5, 5)})
    for seed in range(40):
        x, w, e = rng.normal(size=(3, 1_000))
        rows = {"y": 1 + 2 * x - w + e, "x": x, "w": w}
        with dpc.simulated_noise(seed):
            release = dpc.moments(dpc.Table(rows, schema, dpc.Ledger.in_memory(loss)), list(rows), loss=loss)
        slope = release.ols("y", ["x", "w"], errors="normal")["x"]
        if slope.interval is not None and slope.robustness_value is not None:
            covered.append(slope.interval[0] <= 2 <= slope.interval[1])
            assert 0 < (slope.robustness_value_limit or 0) < slope.robustness_value
    assert len(covered) >= 24 and np.mean(covered) >= 0.85
