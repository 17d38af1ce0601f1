"""Moments in a learnt shape: the bound, equality with least squares, honest intervals, wrong statements, the graph."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

import dpcausal as dpc
from dpcausal.effects.cells.effect import robustness_value
from dpcausal.effects.moments.adaptive import WHOLE, scale_histograms, shrinkage, tail_radius
from dpcausal.errors import InfeasibleError, LossError, ParameterError, SchemaError
from dpcausal.privacy.noise import generator_from_seed
from tests import factories
from tests.effects.tables import covered, effect_of, table_of
from tests.refusals import rule_of

SCHEMA = dpc.Schema({
    "y": dpc.Bounded(-20, 20), "x": dpc.Bounded(-5, 5), "w": dpc.Bounded(90, 110), "a": dpc.Levels(["no", "yes"]),
    "site": dpc.Levels([0, 1, 2]),
})  # fmt: skip
SCHEMA_OF_THREE = {"y": dpc.Bounded(-20, 20), "x": dpc.Bounded(-5, 5), "w": dpc.Bounded(-5, 5)}
NAMES = ("y", "x", "w", "a")
LOSS, EXACT = dpc.ApproxDP(1, 1e-6), dpc.NoPrivacy()


def made(n: int = 10_000, seed: int = 1, error: Any = None) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x, a = rng.normal(size=n), rng.random(n) < 0.5
    w = 100 + 2 * (0.5 * x + rng.normal(size=n))
    e = rng.normal(size=n) if error is None else error(rng, x)
    y = np.clip(1 + 2 * x - 0.5 * (w - 100) + 0.4 * a + e, -20, 20)
    return {"y": y, "x": np.clip(x, -5, 5), "w": np.clip(w, 90, 110), "a": np.where(a, "yes", "no"),
            "site": rng.integers(0, 3, n)}  # fmt: skip


def table(columns: Any, loss: Any = LOSS) -> dpc.Table:
    return factories.table(columns, SCHEMA, loss)


def released(columns: Any, loss: Any = LOSS, names: Any = NAMES, seed: int = 4, schema: Any = SCHEMA, **of: Any) -> Any:
    with dpc.simulated_noise(seed):
        return dpc.moments(factories.table(columns, schema, loss), names, loss=loss, **of)


@pytest.mark.proves("scale-histograms")
def test_bins_of_the_histograms_are_powers_of_the_root_of_2() -> None:
    unit = np.array([[1.0], [-0.71], [0.7], [0.3], [0.0], [-0.49]])
    counts = scale_histograms(unit, WHOLE * np.array([1] * 5 + [0]))[0] // WHOLE
    assert counts.nonzero()[0].tolist() == [0, 1, 3, 47] and counts[0] == 2 and counts.sum() == 5
    edges = 2.0 ** (-np.arange(47, 0, -1) / 2)
    ends = np.concatenate([edges, -edges, np.nextafter(edges, 0), np.nextafter(edges, 1), [0.0, -0.0, -1.0, 5e-324]])
    expected = np.bincount(47 - np.searchsorted(edges, np.abs(ends), side="right"), minlength=48)
    assert np.array_equal(scale_histograms(ends[:, None], np.ones(len(ends), dtype=np.int64))[0], expected)


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
    fit = released(columns, EXACT).ols("y", ["x", "w", "a"], errors="homoscedastic")
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
    private = table(made())
    with dpc.simulated_noise(4):
        before = dpc.moments(private, NAMES, loss=LOSS)
    head = private.ledger.head
    after: Any = dpc.Release.from_json(before.to_json())
    assert after.to_dict() == before.to_dict()
    for release in (before, after):
        fit = release.ols("y", ["x", "w", "a"], errors="homoscedastic")
        for name, truth in (("x", 2.0), ("w", -0.5), ("a", 0.4)):
            assert fit[name].interval is not None
            assert abs(fit[name].estimate - truth) < 4.5 * fit[name].standard_error
            assert fit[name].noise_error < fit[name].standard_error
        assert release.ols("w", ["x"], errors="homoscedastic")["x"].estimate == pytest.approx(1, abs=0.2)
    assert private.ledger.head == head and before.summary() == after.summary()
    assert fit.summary() and fit.to_json() and len(fit.to_frame()) == 4 and len(fit.plot().get_yticklabels()) == 3


def test_there_is_no_interval_without_a_declared_spread_nor_where_the_noise_is_too_near() -> None:
    fit = released(made()).ols("y", ["x", "w", "a"])
    assert fit["x"].interval is None and "errors='homoscedastic'" in fit.interval_reason
    weak = released(made(2_000), dpc.ApproxDP(0.5, 1e-6))
    fit = weak.ols("y", ["x", "w", "a"], errors="homoscedastic")
    assert weak.signal_to_noise < 5 and fit["x"].interval is None and "noise" in fit.interval_reason


def test_no_error_is_told_where_the_moments_drown_or_the_rounds_have_lost_the_rows() -> None:
    # Of 4,000 releases of 1,000 rows some slopes were off by 2 and said errors of .001; of those lost, by ten errors.
    good = released(made(), seed=1)
    for bad in (replace(good, deviation=5 * good.deviation * good.signal_to_noise), replace(good, shortened=6_000.0)):
        fit = bad.ols("y", ["x", "w", "a"], errors="normal")
        assert math.isinf(fit["x"].standard_error) and fit["x"].interval is None and fit.interval_reason
        assert bad.mediation("a", "w", "y", errors="homoscedastic")["direct"].noise_error == math.inf
        assert bad.effect(treatment="a", outcome="y", adjust=["x"], errors="homoscedastic").standard_error is None
    assert good.ols("y", ["x", "w", "a"], errors="homoscedastic")["x"].standard_error < 0.1


def test_skewed_rows_whose_slopes_shortening_moves_get_no_interval() -> None:
    # Spread and skew go with x: the slope of shortened rows is off by many errors, and the moments must tell.
    skewed = made(error=lambda rng, x: (rng.exponential(size=len(x)) - 1) * np.exp(0.5 * x))
    fit = released(skewed, seed=5).ols("y", ["x", "w", "a"], errors="homoscedastic")
    assert fit["x"].interval is None and "one side" in fit.interval_reason and not fit.assumed


def test_where_normal_rows_look_skewed_by_chance_intervals_are_wider_and_nearly_all_are_shown() -> None:
    shown, wider = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x, e = rng.normal(size=(2, 10_000)).clip(-4, 4)
        schema = {"y": dpc.Bounded(-20, 20), "x": dpc.Bounded(-5, 5)}
        release = released({"y": 0.5 * x + e, "x": x}, names=("y", "x"), seed=seed, schema=dpc.Schema(schema))
        slope = release.ols("y", ["x"], errors="homoscedastic")["x"]
        if slope.interval is not None:
            shown += 1
            reach = (slope.interval[1] - slope.estimate) / slope.standard_error
            # The least widening, of sampling errors: 2 / √n √(χ² quantile · variance by chance and noise).
            variance = release.shortened + release.noise.count**2
            least = 2 * math.sqrt(stats.chi2.isf(0.2, 1) * variance / release.count)
            least *= math.sqrt(1 - (slope.noise_error / slope.standard_error) ** 2)
            assert reach == pytest.approx(1.96, abs=1e-3) or 1.96 + least < reach < 1.96 + 1.51
            wider += reach > 1.97
    assert shown >= 36 and 3 <= wider <= 16, (shown, wider)


def test_skewed_regressors_with_even_errors_keep_their_intervals_and_the_answer_says_what_they_rest_on() -> None:
    # 20 runs: fewer than 16 of those shown cover with probability 3e-3 at .95 if all are.
    rng, slopes = np.random.default_rng(8), []
    schema = {"y": dpc.Bounded(-10, 10), "x": dpc.Bounded(-10, 10), "w": dpc.Bounded(-5, 5)}
    for seed in range(20):
        x, w = np.exp(0.4 * rng.normal(size=10_000)), rng.normal(size=10_000)
        rows = {"y": 0.5 * x + 0.3 * w + 0.5 * rng.normal(size=10_000), "x": x, "w": w}
        fit = released(rows, LOSS, list(rows), seed, schema).ols("y", ["x", "w"], errors="homoscedastic")
        slopes.append(fit["x"])
        assert fit["x"].interval is None or (fit.assumed and fit.assumed in str(fit))
    held = covered(slopes, 0.5)
    assert len(held) >= 10 and np.mean(held) >= 0.8


def test_where_noise_would_hide_a_skew_there_are_intervals_for_normal_rows_alone() -> None:
    rng, loss = np.random.default_rng(5), dpc.ApproxDP(1, 1e-5)
    x, w, e = rng.normal(size=(3, 1_000))
    rows = {"y": 1 + 2 * x - w + e, "x": x, "w": w}
    release = released(rows, loss, list(rows), 2, SCHEMA_OF_THREE)
    fit = release.ols("y", ["x", "w"], errors="homoscedastic")
    assert fit["x"].interval is None and "errors='normal'" in fit.interval_reason
    assert release.ols("y", ["x", "w"], errors="normal")["x"].interval is not None


def test_bounds_ten_times_as_wide_cost_little() -> None:
    columns = made()
    wide = {"y": dpc.Bounded(-120, 120), "x": dpc.Bounded(-40, 40), "w": dpc.Bounded(20, 180)}
    narrow = {"y": dpc.Bounded(-12, 12), "x": dpc.Bounded(-4, 4), "w": dpc.Bounded(92, 108)}
    columns = {name: columns[name] for name in narrow}
    errors = [released(columns, LOSS, NAMES[:3], 6, schema).ols("y", ["x", "w"])["x"].standard_error
              for schema in (wide, narrow)]  # fmt: skip
    assert errors[0] < 1.25 * errors[1]


def test_what_cannot_work_is_refused_before_the_spend() -> None:
    columns = made(2_000)
    for refused, names, loss in (
        (InfeasibleError, ["y", "x", "w", "a"], dpc.ApproxDP(0.1, 1e-6)), (LossError, ["y", "x"], dpc.PureDP(1)),
        (SchemaError, ["site"], LOSS), (ParameterError, ["y"], LOSS), (ParameterError, "y", LOSS),
    ):  # fmt: skip
        factories.refused_unpaid(table(columns, loss), refused, dpc.moments, names, loss=loss)
    release = released(columns, EXACT)
    wrong: Any
    for wrong in (("y", ["y"]), ("y", []), ("y", ["nowhere"]), ("nowhere", ["x"])):
        with pytest.raises(ParameterError):
            release.ols(*wrong)
    for wrong in ({"outcome": "a"}, {"adjust": ["a"]}, {"adjust": ["z"]}, {"treatment": "none"}):
        with pytest.raises(ParameterError):
            release.effect(**{"treatment": "a", "outcome": "y", "adjust": ["x"]} | wrong)
    for wrong in ({"instruments": []}, {"instruments": ["y"]}, {"instruments": ["x"], "given": ["x"]}):
        with pytest.raises(ParameterError):
            release.iv("y", "a", **wrong)
    for wrong in ("y", ("y", []), ("y", ["y"]), ("y", ["nowhere"]), ("nowhere", ["x"]), ("y", "x")):
        factories.refused_unpaid(table(columns), ParameterError, dpc.moments, NAMES, robust_for=wrong, loss=LOSS)


def test_a_thousand_rows_have_intervals_at_epsilon_1_and_robustness_values_go_with_them() -> None:
    # 40 runs: fewer than 34 of those shown cover with probability 1e-3 at .95 if all are.
    rng, loss, slopes = np.random.default_rng(5), dpc.ApproxDP(1, 1e-5), []
    for seed in range(40):
        x, w, e = rng.normal(size=(3, 1_000))
        rows = {"y": 1 + 2 * x - w + e, "x": x, "w": w}
        slope = released(rows, loss, list(rows), seed, SCHEMA_OF_THREE).ols("y", ["x", "w"], errors="normal")["x"]
        slopes.append(slope)
        assert slope.interval is None or 0 < (slope.robustness_value_limit or 0) < (slope.robustness_value or 0)
    held = covered(slopes, 2)
    assert len(held) >= 24 and np.mean(held) >= 0.85


def test_an_effect_of_moments_is_the_slope_of_ols_with_its_interval_and_its_reasons() -> None:
    exact, columns = released(made(), EXACT), made()
    found = exact.effect(treatment="a", outcome="y", adjust=["x", "w"], errors="homoscedastic")
    design = np.column_stack([columns["a"] == "yes", columns["x"], columns["w"]]).astype(float)
    fit = sm.OLS(columns["y"], sm.add_constant(design)).fit()
    assert found.estimate == pytest.approx(fit.params[1], abs=1e-8)
    assert found.standard_error == pytest.approx(fit.bse[1], rel=1e-6)
    moments = released(made())
    for stated in ({"errors": "homoscedastic"}, {}):
        found = moments.effect(treatment="a", outcome="y", adjust=["x", "w"], **stated)
        slope = moments.ols("y", ["a", "x", "w"], **stated)
        assert (found.estimate, found.interval) == (slope["a"].estimate, slope["a"].interval)
        assert found.interval_reason == slope.interval_reason and found.estimand == "slope"
        assert found.robustness_value == slope["a"].robustness_value


OF_EXTREMES = {"y": dpc.Bounded(-40, 40), "a": dpc.Levels([0, 1]), "x": dpc.Bounded(-40, 40)}


def extreme(kind: str, seed: int, n: int = 10_000) -> dict[str, Any]:
    """Return rows of which errors that are homoscedastic or normal would be stated wrongly, unless they are normal."""
    rng = generator_from_seed(seed)
    x, e = np.clip(rng.normal(size=n), -4, 4), rng.normal(size=n)
    a = (rng.random(n) < (0.1 if kind == "skewed arm" else 0.3)).astype(int)
    if kind == "skewed arm":
        e = np.where(a == 1, 3 * (rng.exponential(size=n) - 1), e)
    if kind == "skewed regressor":  # and the outcome goes with its logarithm
        x = np.where(rng.random(n) < 0.015, 39.0, np.clip(np.exp(0.75 * rng.normal(size=n)), 0, 8))
    return {"y": np.clip(a + (-2 * np.log1p(x) if kind == "skewed regressor" else x) + e, -40, 40), "a": a, "x": x}


def fit(kind: str, seed: int, epsilon: float, **stated: Any) -> Any:
    moments = released(extreme(kind, seed), dpc.ApproxDP(epsilon, 1e-6), ["y", "a", "x"], seed, OF_EXTREMES)
    return moments.ols("y", ["a", "x"], **stated)


@pytest.mark.parametrize("stated", [{"errors": "homoscedastic"}, {"errors": "normal"}])
@pytest.mark.parametrize(("kind", "epsilon"), [("skewed arm", 1.0), ("skewed arm", 4.0), ("skewed regressor", 4.0)])
def test_extreme_rows_refute_a_statement_about_errors(kind: str, epsilon: float, stated: dict[str, Any]) -> None:
    found = [fit(kind, seed, epsilon, **stated) for seed in range(4)]
    assert all(one[name].interval is None and one.interval_reason for one in found for name in "ax")
    assert all(one[name].standard_error == np.inf for one in found for name in "ax")


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_of_normal_rows_the_statement_gives_intervals_that_hold(epsilon: float) -> None:
    held = covered((fit("normal", seed, epsilon, errors="homoscedastic")["a"] for seed in range(8)), 1)
    assert len(held) >= 5 and sum(held) >= len(held) - 2


def test_one_slope_of_a_rare_skewed_arm_has_no_interval_by_a_wrong_statement() -> None:
    loss = dpc.ApproxDP(2, 1e-6)
    for errors in ("homoscedastic", "normal"):
        private = table_of(extreme("skewed arm", 1), OF_EXTREMES, loss)
        found = effect_of(private, loss, dpc.methods.PartiallyLinear(errors=errors))
        assert found.interval is None and found.standard_error is None and found.interval_reason


def of_a_chain(seed: int, n: int, loss: dpc.ApproxDP) -> tuple[dpc.Release, dpc.Cpdag, dpc.Ledger]:
    """Return moments of six columns of a chain with a fork, one of them a hundred times as wide as another."""
    rng = np.random.default_rng(seed)
    a, e = rng.normal(size=(2, n))
    b = 0.8 * a + rng.normal(size=n)
    c = b + rng.normal(size=n)
    d = 0.7 * b - e + rng.normal(size=n)
    frame = {"a": a, "b": 10 * b, "c": 0.1 * c, "d": d, "e": e, "f": rng.normal(size=n)}
    truth = dpc.Cpdag.from_dag(list(frame), [("a", "b"), ("b", "c"), ("b", "d"), ("e", "d")])
    with dpc.simulated_noise(seed):
        private = factories.table(frame, dict.fromkeys(frame, dpc.Bounded(-100, 100)), loss)
        return dpc.moments(private, list(frame), loss=loss), truth, private.ledger


def test_a_release_of_moments_is_asked_for_its_graph_for_nothing() -> None:
    loss = dpc.ApproxDP(1, 1e-6)
    found = []
    for seed in range(5):
        moments, truth, ledger = of_a_chain(seed, 10_000, loss)
        asked = moments.discover()
        assert asked.method == "moments" and asked.guarantee == moments.guarantee and len(ledger.entries()) == 1
        found.append(asked.graph.f1(truth))
        assert dpc.Release.from_json(moments.to_json()).discover().graph == asked.graph
    assert np.mean(found) > 0.9


def test_the_variance_stated_for_a_graph_is_at_least_that_of_repeated_noise() -> None:
    """2,000 draws of the noise alone: the ratio of a sample variance to its law has a deviation of .03."""
    moments, _, _ = of_a_chain(1, 20_000, dpc.ApproxDP(1, 1e-6))
    stated = moments.as_graph_release()
    generator = generator_from_seed(3)
    drawn = np.array([moments.with_extra_noise(generator).as_graph_release().covariance for _ in range(2_000)])  # type: ignore[attr-defined]
    seen = drawn.var(axis=0)[np.triu_indices(6, 1)]
    assert 0.5 < seen.max() / stated.variance < 1.2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "asked",
    [lambda m: m.ols("y", ["y", "x"]), lambda m: m.ols("y", []), lambda m: m.ols("y", ["age"]),
     lambda m: m.iv("y", "x", instruments=["x"]), lambda m: m.partial("x", "w", given=["x"]),
     lambda m: m.mediation("x", "x", "y"), lambda m: m.mediation("x", ["w", "a"], "y")],
)  # fmt: skip
def test_columns_that_a_regression_cannot_have_are_refused_for_their_names(asked: Any) -> None:
    m = dpc.moments(table(made(300), EXACT), NAMES, loss=EXACT)
    assert rule_of(lambda: asked(m), ParameterError) == "names"


def test_moments_of_levels_alone_lack_an_outcome() -> None:
    assert rule_of(lambda: dpc.moments(table(made(300), EXACT), ["site"], loss=EXACT), SchemaError) == "outcome"
