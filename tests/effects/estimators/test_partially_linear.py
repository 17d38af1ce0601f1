"""One slope from noisy moments: least squares without noise, its error honest with it, and when ``auto`` takes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

import dpcausal as dpc
from benchmarks.designs.effects import slopes
from dpcausal.effects.estimators import PartiallyLinear, partially_linear
from dpcausal.errors import InfeasibleError, LossError, ParameterError


def drawn(n: int, columns: int = 3, seed: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(size=(n, columns)), -4, 4)
    a = (rng.random(n) < 1 / (1 + np.exp(1 - 0.5 * x[:, 0]))).astype(int)
    y = 0.5 * a + 0.4 * x[:, 0] + rng.normal(size=n) * np.exp(0.2 * x[:, 1])
    return {"y": np.clip(y, -10, 10), "a": a, **{f"x{place}": column for place, column in enumerate(x.T)}}


def table(columns: dict[str, Any], loss: Any, **more: Any) -> dpc.Table:
    schema = {name: dpc.Bounded(-4, 4) for name in columns if name.startswith("x")}
    schema |= {"y": dpc.Bounded(-10, 10), "a": dpc.Levels([0, 1])}
    schema |= {"g": dpc.Levels(["r", "s", "t"])} if "g" in columns else {}
    ledger = dpc.Ledger.without_privacy() if loss.exact else dpc.Ledger.in_memory(loss)
    return dpc.Table(columns, dpc.Schema(schema), ledger, **more)


def ask(rows: dpc.Table, loss: Any, method: Any = "partially-linear", **more: Any) -> Any:
    adjust = [name for name in rows.schema if name not in "ya"]
    return dpc.effect(rows, **({"treatment": "a", "outcome": "y", "adjust": adjust} | more), loss=loss, method=method)


NONE = dpc.NoPrivacy()


def test_without_noise_it_is_the_slope_of_least_squares_with_a_robust_error() -> None:
    columns = drawn(3_000) | {"g": np.random.default_rng(1).choice(["r", "s", "t"], 3_000)}
    found = ask(table(columns, NONE), NONE)
    flags = [(columns["g"] == level).astype(float) for level in "st"]
    x = np.column_stack([columns["a"], *(columns[f"x{place}"] for place in range(3)), *flags])
    fit = sm.OLS(columns["y"], sm.add_constant(x)).fit(cov_type="HC1")
    assert found.estimate == pytest.approx(fit.params[1], abs=1e-8)
    assert found.standard_error == pytest.approx(fit.bse[1], rel=1e-3)
    assert found.adjusted_for == ("x0", "x1", "x2", "g")
    assert len(found.balance) == 5
    swapped = ask(table(columns, NONE), NONE, treated=0, control=1)
    assert swapped.estimate == pytest.approx(-found.estimate, abs=1e-10)
    assert (swapped.treated, swapped.control) == ("0", "1")


def test_where_the_effect_differs_it_is_the_mean_weighed_by_the_variance_of_the_treatment_and_says_so() -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, 200_000) * 2.0 - 1
    chance = np.where(x > 0, 0.5, 0.1)  # a line of x, as x has two values
    a = (rng.random(len(x)) < chance).astype(int)
    y = a * np.where(x > 0, 2.0, 0.0) + x + 0.1 * rng.normal(size=len(x))
    found = ask(table({"y": y, "a": a, "x0": x}, NONE), NONE)
    weights = chance * (1 - chance)
    assert found.estimate == pytest.approx(2 * weights[x > 0].sum() / weights.sum(), abs=0.01)
    assert found.estimand == "slope"
    assert "weigh more" in found.details()
    assert "along a line" in found.details()


def test_errors_that_are_told_hold_and_the_whole_loss_is_spent() -> None:
    beyond = []
    for seed in range(60):
        loss, columns = dpc.ApproxDP(2, 1e-6), drawn(4_000, seed=seed)
        rows = table(columns, loss)
        with dpc.simulated_noise(seed):
            found = ask(rows, loss)
        assert rows.ledger.remaining.epsilon == 0
        beyond.append(abs(found.estimate - 0.5) > 1.96 * found.standard_error)
    # At most 20 of 60 but for 1e-8, were they to hold .93.
    assert sum(beyond) <= 20


def test_the_spread_is_released_where_public_numbers_foretell_an_interval_and_nobody_says_it_is_constant() -> None:
    loss = dpc.ApproxDP(4, 1e-6)

    def told(n: int, **said: Any) -> Any:
        with dpc.simulated_noise(3):
            return ask(table(drawn(n), loss), loss, PartiallyLinear(**said))

    found = told(10_000)
    assert (found.release.sandwich, found.interval) == (None, None)
    assert "errors='symmetric'" in found.interval_reason
    found = told(10_000, errors="symmetric")
    assert found.release.sandwich is not None
    assert found.interval is not None
    assert "as far above it as below" in found.details()
    found = told(10_000, errors="homoscedastic")
    assert found.release.sandwich is None
    assert found.interval is not None
    found = told(20_000)  # as many as show a skew
    assert found.release.sandwich is not None
    assert found.interval is not None
    assert "as was said" not in found.details()
    few = dpc.ApproxDP(1, 1e-6)
    with dpc.simulated_noise(3):
        found = ask(table(drawn(3_000), few), few)
    assert found.release.sandwich is None
    assert found.interval is None
    assert "PartiallyLinear(errors='normal')" in found.interval_reason
    assert found.standard_error is not None
    with dpc.simulated_noise(3):
        found = ask(table(drawn(3_000), few), few, PartiallyLinear(errors="normal"))
    assert found.interval is not None
    with dpc.simulated_noise(3):
        found = ask(table(drawn(10_000, 12), few), few)
    assert "errors='homoscedastic' if both are the same" in found.interval_reason


def test_a_skew_in_a_small_arm_that_spreads_wide_gets_no_interval() -> None:
    """Shortening hides it: of intervals that were shown before none held the slope."""
    for seed in (29, 40, 81):  # shown before
        loss = dpc.ApproxDP(1, 1e-6)
        with dpc.simulated_noise(seed):
            design = slopes.DESIGNS["treated spread, skewed"]
            found = design.make.answer(design.rng(10_000, seed), 10_000, loss, "partially-linear")
        assert found.interval is None
        assert "errors='symmetric'" in found.interval_reason or "one side" in found.interval_reason


def test_an_arm_that_was_lost_by_shortening_has_no_answer() -> None:
    """Of 2 % treated, n = 100,000, errors had been told that held in none of five."""
    for rarer in (0, 1):
        loss, rng = dpc.ApproxDP(2, 1e-6), np.random.default_rng(4)
        columns = drawn(20_000)
        columns["a"] = np.where(rng.random(20_000) < 0.01, rarer, 1 - rarer)
        with dpc.simulated_noise(1):
            found = ask(table(columns, loss), loss)
        assert (found.estimate, found.interval, found.standard_error) == (None, None, None)
        assert "so rare" in found.details()


def test_auto_takes_it_where_moments_would_be_refused_and_it_would_not_by_public_numbers_alone() -> None:
    for columns in (drawn(3_000, 12), {name: np.zeros_like(one) for name, one in drawn(3_000, 12).items()}):
        ways = {}
        for epsilon in (1.0, 3.0, 8.0):
            loss = dpc.ApproxDP(epsilon, 1e-6)
            try:
                ways[epsilon] = ask(table(columns, loss), loss, "auto").method
            except InfeasibleError as error:
                ways[epsilon] = str(error).split(" of ")[0].split()[-1]  # "moments of 14 columns"
        assert ways == {1.0: "moments", 3.0: "partially-linear", 8.0: "aipw"}
    loss = dpc.ApproxDP(3, 1e-6)
    grouped = drawn(3_000, 12) | {"g": np.tile(["r", "s", "t"], 1_000)}
    with pytest.raises(InfeasibleError, match="moments of"):
        ask(table(grouped, loss), loss, "auto", groups="g")


def test_a_refusal_names_rows_and_a_loss_that_would_do_and_spends_nothing() -> None:
    loss = dpc.ApproxDP(1, 1e-6)
    rows = table(drawn(1_000, 12), loss)
    with pytest.raises(InfeasibleError, match="rows would be enough") as refused:
        ask(rows, loss)
    assert not rows.ledger.entries()
    words = str(refused.value).split()
    enough, times = int(words[words.index("about") + 1]), float(words[words.index("or") + 1])
    assert ask(table(drawn(enough, 12), loss), loss).method == "partially-linear"
    more = dpc.ApproxDP(round(1.2 * times, 3), 1e-6)  # at a fixed delta, rho grows by less than the square
    assert ask(table(drawn(1_000, 12), more), more).method == "partially-linear"


def test_moments_that_came_out_too_near_their_noise_have_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partially_linear, "LEAST_PREDICTED", -9.0)
    loss = dpc.ApproxDP(1, 1e-6)
    with dpc.simulated_noise(1):
        found = ask(table(drawn(600), loss), loss)
    assert (found.estimate, found.interval, found.standard_error) == (None, None, None)
    assert "no answer" in found.details()


def test_a_table_whose_rows_are_all_left_out_is_said_to_be_void() -> None:
    loss = dpc.ApproxDP(4, 1e-6)
    columns = drawn(3_000) | {"y": np.full(3_000, np.nan)}
    assert "hardly any record counts" in ask(table(columns, loss), loss).summary()


@pytest.mark.parametrize(
    "wrong", [{"estimand": "att"}, {"groups": "g"}, {"method": PartiallyLinear(errors="yes")}]
)  # fmt: skip
def test_what_it_does_not_answer_is_refused(wrong: dict[str, Any]) -> None:
    loss = dpc.ApproxDP(4, 1e-6)
    rows = table(drawn(3_000) | {"g": np.tile(["r", "s", "t"], 1_000)}, loss)
    with pytest.raises(ParameterError):
        ask(rows, loss, **wrong)
    with pytest.raises(LossError):
        ask(rows, dpc.PureDP(1))
    assert not rows.ledger.entries()


def test_a_plan_of_it_and_of_a_published_system_says_what_they_tell() -> None:
    told = dpc.plan("effect", n=30_000, loss=dpc.ApproxDP(4, 1e-6), adjust=4, method="partially-linear")
    assert 0 < told.accuracy < 0.05
    assert "errors='homoscedastic'" in told.summary()
    published = dpc.plan("effect", n=10_000, loss=dpc.PureDP(4), adjust=4, method=dpc.papers.FoldSplit(folds=20))
    assert "no confidence interval is expected" in published.summary()
