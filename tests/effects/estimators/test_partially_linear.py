"""One slope from noisy moments: least squares without noise, its error honest with it, and when ``auto`` takes it."""

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

import dpcausal as dpc
from benchmarks.designs.effects import slopes
from dpcausal.effects.estimators import PartiallyLinear, partially_linear
from dpcausal.effects.moments.effect import OF_ARMS, WEIGHTED
from dpcausal.effects.moments.regression import SYMMETRIC
from dpcausal.errors import InfeasibleError
from tests.effects.tables import EXACT, effect_of, table_of

SCHEMA: dict[str, Any] = {f"x{place}": dpc.Bounded(-4, 4) for place in range(12)} | {
    "y": dpc.Bounded(-10, 10), "a": dpc.Levels([0, 1]), "g": dpc.Levels(["r", "s", "t"]),
}  # fmt: skip


def drawn(n: int, columns: int = 3, seed: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(size=(n, columns)), -4, 4)
    a = (rng.random(n) < 1 / (1 + np.exp(1 - 0.5 * x[:, 0]))).astype(int)
    y = 0.5 * a + 0.4 * x[:, 0] + rng.normal(size=n) * np.exp(0.2 * x[:, 1])
    return {"y": np.clip(y, -10, 10), "a": a, **{f"x{place}": column for place, column in enumerate(x.T)}}


def ask(
    columns: Any, loss: Any, method: Any = "partially-linear", seed: int = 3, table: Any = None, **more: Any
) -> Any:
    table = table or table_of(columns, SCHEMA, loss)
    return effect_of(table, loss, method, seed, **({"adjust": [one for one in columns if one not in "ya"]} | more))


def test_without_noise_it_is_the_slope_of_least_squares_with_a_robust_error() -> None:
    columns = drawn(3_000) | {"g": np.random.default_rng(1).choice(["r", "s", "t"], 3_000)}
    result, swapped = ask(columns, EXACT), ask(columns, EXACT, treated=0, control=1)
    flags = [(columns["g"] == level).astype(float) for level in "st"]
    x = np.column_stack([columns["a"], *(columns[f"x{place}"] for place in range(3)), *flags])
    fit = sm.OLS(columns["y"], sm.add_constant(x)).fit(cov_type="HC1")
    assert result.estimate == pytest.approx(fit.params[1], abs=1e-8)
    assert result.standard_error == pytest.approx(fit.bse[1], rel=1e-3)
    assert result.adjusted_for == ("x0", "x1", "x2", "g") and len(result.balance) == 5
    assert swapped.estimate == pytest.approx(-result.estimate, abs=1e-10)
    assert (swapped.treated, swapped.control) == ("0", "1")


def test_where_the_effect_differs_it_is_the_mean_weighed_by_the_variance_of_the_treatment() -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, 200_000) * 2.0 - 1
    chance = np.where(x > 0, 0.5, 0.1)  # a line of x, as x has two values
    a = (rng.random(len(x)) < chance).astype(int)
    y = a * np.where(x > 0, 2.0, 0.0) + x + 0.1 * rng.normal(size=len(x))
    result, weights = ask({"y": y, "a": a, "x0": x}, EXACT), chance * (1 - chance)
    assert result.estimate == pytest.approx(2 * weights[x > 0].sum() / weights.sum(), abs=0.01)
    assert result.estimand == "slope" and "weigh more" in result.details()


def test_reported_errors_hold_and_the_whole_loss_is_spent() -> None:
    beyond, loss = [], dpc.ApproxDP(2, 1e-6)
    for seed in range(60):
        columns = drawn(4_000, seed=seed)
        table = table_of(columns, SCHEMA, loss)
        result = ask(columns, loss, seed=seed, table=table)
        assert table.ledger.remaining.epsilon == 0
        beyond.append(abs(result.estimate - 0.5) > 1.96 * result.standard_error)
    assert sum(beyond) <= 20  # of 60, except with 1e-8, were they to hold 0.93


@pytest.mark.parametrize(("n", "columns", "epsilon", "errors", "released", "reason"), [
    (10_000, 3, 4, None, False, "errors='symmetric'"), (10_000, 3, 4, "symmetric", True, ""),
    (10_000, 3, 4, "homoscedastic", False, ""), (20_000, 3, 4, None, True, ""),  # as many as show a skew
    (3_000, 3, 1, None, False, "PartiallyLinear(errors='normal')"), (3_000, 3, 1, "normal", False, ""),
    (10_000, 12, 1, None, False, "errors='homoscedastic'"),
])  # fmt: skip
def test_the_spread_is_released_where_public_numbers_predict_an_interval_and_errors_are_not_stated(
    n: int, columns: int, epsilon: float, errors: Any, released: bool, reason: str
) -> None:
    result = ask(drawn(n, columns), dpc.ApproxDP(epsilon, 1e-6), PartiallyLinear(errors=errors))
    assert (result.release.sandwich is not None) is released and result.standard_error is not None
    assert (result.interval is None) is bool(reason) and reason in result.interval_reason
    assert (SYMMETRIC in result.notes) is (errors == "symmetric")
    assert WEIGHTED.format(OF_ARMS) in result.notes


@pytest.mark.parametrize("seed", [29, 40, 81])
def test_a_skew_in_a_small_arm_that_spreads_wide_gets_no_interval(seed: int) -> None:
    # Shortening hides it: of intervals that these seeds showed without the rule none held the slope.
    design = slopes.DESIGNS["treated spread, skewed"]
    with dpc.simulated_noise(seed):
        result = design.make.answer(design.rng(10_000, seed), 10_000, dpc.ApproxDP(1, 1e-6), "partially-linear")
    assert result.interval is None
    assert "errors='symmetric'" in result.interval_reason or "one side" in result.interval_reason


@pytest.mark.parametrize("rarer", [0, 1])
def test_an_arm_that_was_lost_by_shortening_has_no_answer(rarer: int) -> None:
    columns = drawn(20_000)
    columns["a"] = np.where(np.random.default_rng(4).random(20_000) < 0.01, rarer, 1 - rarer)
    result = ask(columns, dpc.ApproxDP(2, 1e-6), seed=1)
    assert (result.estimate, result.interval, result.standard_error) == (None, None, None)
    assert "so rare" in result.details()


def test_auto_takes_it_where_moments_would_be_refused_and_it_would_not_by_public_numbers_alone() -> None:
    for columns in (drawn(3_000, 12), {name: np.zeros_like(one) for name, one in drawn(3_000, 12).items()}):
        methods = {epsilon: ask(columns, dpc.ApproxDP(epsilon, 1e-6), "auto").method for epsilon in (3.0, 8.0)}
        assert methods == {3.0: "partially-linear", 8.0: "boosted-aipw"}
        with pytest.raises(InfeasibleError):
            ask(columns, dpc.ApproxDP(1, 1e-6), "auto")
    grouped = drawn(3_000, 12) | {"g": np.tile(["r", "s", "t"], 1_000)}
    with pytest.raises(InfeasibleError, match="moments of"):
        ask(grouped, dpc.ApproxDP(3, 1e-6), "auto", groups="g")


def test_a_refusal_names_rows_and_a_loss_that_are_enough() -> None:
    loss = dpc.ApproxDP(1, 1e-6)
    with pytest.raises(InfeasibleError) as refused:
        ask(drawn(1_000, 12), loss)
    words = str(refused.value).split()
    enough, times = int(words[words.index("about") + 1]), float(words[words.index("or") + 1])
    assert ask(drawn(enough, 12), loss).method == "partially-linear"
    more = dpc.ApproxDP(round(1.2 * times, 3), 1e-6)  # at a fixed delta, rho grows by less than the square
    assert ask(drawn(1_000, 12), more).method == "partially-linear"


def test_moments_that_came_out_too_near_their_noise_have_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partially_linear, "LEAST_PREDICTED", -9.0)
    result = ask(drawn(600), dpc.ApproxDP(1, 1e-6), seed=1)
    assert (result.estimate, result.interval, result.standard_error) == (None, None, None)


def test_a_table_whose_rows_are_all_left_out_is_reported_as_empty() -> None:
    columns = drawn(3_000) | {"y": np.full(3_000, np.nan)}
    assert "hardly any record counts" in ask(columns, dpc.ApproxDP(4, 1e-6)).summary()


def test_a_plan_of_it_and_of_a_published_system_says_what_they_report() -> None:
    plan = dpc.plan("effect", n=30_000, loss=dpc.ApproxDP(4, 1e-6), adjust=4, share=0.5, method="partially-linear")
    assert 0 < plan.accuracy < 0.05 and "errors='homoscedastic'" in plan.summary()
    published = dpc.plan("effect", n=10_000, loss=dpc.PureDP(4), adjust=4, method=dpc.papers.FoldSplit(folds=20))
    assert "no confidence interval is expected" in published.summary()
