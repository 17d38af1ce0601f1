"""Effects in blocks: least squares without noise, right where lines are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

import dpcausal as dpc
from dpcausal.effects.estimators.block_effects import (
    TERMS,
    UNIT,
    Kinds,
    aggregate_of,
    candidate_windows,
    modifiers,
    reach_of,
    series,
    share_inside,
    slope,
)
from dpcausal.errors import InfeasibleError, LossError, ParameterError
from dpcausal.methods import SampleAggregate
from dpcausal.regression.smoother import Given

SCHEMA = dpc.Schema({
    "a": dpc.Levels([0, 1]), "y": dpc.Bounded(-5, 5), "x": dpc.Bounded(-2, 2), "w": dpc.Bounded(-2, 2),
    "site": dpc.Levels(["n", "s", "e"]), "ill": dpc.Levels([0, 1]),
})  # fmt: skip
EFFECT = 0.5


def rows_of(n: int, seed: int = 1) -> dict[str, Any]:
    """Return rows whose treatment and outcome go with x², x·w and the site."""
    rng = np.random.default_rng(seed)
    x, w, site = rng.uniform(-2, 2, n), rng.uniform(-2, 2, n), rng.integers(0, 3, n)
    a = (rng.random(n) < 1 / (1 + np.exp(-0.8 * (x**2 - 4 / 3) - 0.4 * x * w - 0.3 * site))).astype(int)
    y = np.clip(EFFECT * a + 0.5 * x**2 + 0.3 * x * w + 0.4 * site - 1 + 0.5 * rng.normal(size=n), -5, 5)
    ill = (rng.random(n) < 0.2 + 0.2 * a + 0.1 * site).astype(int)
    return {"a": a, "y": y, "x": x, "w": w, "site": np.array(["n", "s", "e"])[site], "ill": ill}


def paid(loss: Any, person: Any = None, ids: str = "private", **_: Any) -> dpc.Ledger:
    return dpc.Ledger.in_memory(loss, person=person, ids=ids)


def table_of(columns: dict[str, Any], loss: Any, **more: Any) -> dpc.Table:
    ledger = dpc.Ledger.without_privacy() if isinstance(loss, dpc.NoPrivacy) else paid(loss, **more)
    return dpc.Table(columns, SCHEMA, ledger, **more)


def ask(columns: dict[str, Any], loss: Any, method: Any = None, table: Any = None, **asked: Any) -> dpc.Effect:
    asked = {"treatment": "a", "outcome": "y", "adjust": ["x", "w", "site"]} | asked
    return dpc.effect(table or table_of(columns, loss), **asked, loss=loss, method=method or SampleAggregate())


# ------------------------------------------------------------------------------------------- without noise


@pytest.mark.parametrize("terms", TERMS)
def test_without_noise_it_is_a_slope_of_least_squares_with_its_robust_error(terms: str) -> None:
    columns = rows_of(2_000)
    found = ask(columns, dpc.NoPrivacy(), SampleAggregate(terms=terms, overlap=True))
    given = given_of(columns)
    Z = np.column_stack([np.ones(2_000), series(given, terms)])
    treatment, outcome = sm.OLS(columns["a"], Z).fit(), sm.OLS(columns["y"], Z).fit()
    weights = treatment.resid / (1 - treatment.get_influence().hat_matrix_diag)
    slope = weights @ outcome.resid / (weights @ treatment.resid)
    assert found.estimate == pytest.approx(slope, rel=1e-8) and found.estimand == "overlap"
    fit = sm.OLS(columns["y"], np.column_stack([Z, columns["a"]])).fit(cov_type="HC1")
    assert found.standard_error == pytest.approx(fit.bse[-1], rel=0.01)  # rows of little leverage: 2,000 of them
    along = columns["a"][:, None] * modifiers(given, terms)
    fit = sm.OLS(columns["y"], np.column_stack([Z, along, columns["a"]])).fit(cov_type="HC1")
    everybody = ask(columns, dpc.NoPrivacy(), SampleAggregate(terms=terms))
    assert everybody.estimate == pytest.approx(fit.params[-1], rel=1e-8) and everybody.estimand == "ate"
    assert everybody.standard_error == pytest.approx(fit.bse[-1], rel=1e-6)


def given_of(columns: dict[str, Any]) -> Given:
    codes = np.array([{"n": 0, "s": 1, "e": 2}[one] for one in columns["site"]])
    return Given(np.column_stack([columns["x"], columns["w"]]), codes[:, None], (3,))


def test_kinds_count_the_columns_that_a_series_has() -> None:
    rng = np.random.default_rng(2)
    for numbers, levels in ((3, (2, 4)), (0, (3,)), (2, ()), (0, (2, 3, 2))):
        codes = rng.integers(np.array(levels, dtype=np.int64), size=(50, len(levels)))
        given = Given(rng.normal(size=(50, numbers)), codes, levels)
        for terms in TERMS:
            assert series(given, terms).shape[1] == Kinds(numbers, levels).columns(terms)
            assert modifiers(given, terms).shape[1] == Kinds(numbers, levels).modifiers(terms)


# ------------------------------------------------------------------------------------------- with noise


def test_it_is_right_where_lines_are_wrong_and_intervals_hold() -> None:
    held, off, wrong = [], [], []
    for seed in range(30):
        columns = rows_of(8_000, seed)
        with dpc.simulated_noise(seed):
            found = ask(columns, dpc.PureDP(4))
        assert found.estimate is not None and found.interval is not None and found.settings["terms"] == "products"
        off.append(found.estimate - EFFECT)
        held.append(found.interval[0] <= EFFECT <= found.interval[1])
        lines = dpc.effect(table_of(columns, dpc.NoPrivacy()), treatment="a", outcome="y", adjust=["x", "w", "site"],
                           loss=dpc.NoPrivacy(), method=dpc.methods.Aipw(lines_only=True))  # fmt: skip
        wrong.append(lines.estimate - EFFECT)  # type: ignore[operator]
    # False alarms: 1e-3 for the mean, 1e-4 for the coverage.
    assert abs(np.mean(off)) < 3.3 * np.std(off) / 30**0.5 and np.std(off) < 0.03
    assert np.mean(held) >= 0.8 and np.mean(wrong) > 0.2
    assert found.noise_error is not None and found.standard_error is not None
    assert 0 < found.noise_error < found.standard_error


def test_outcomes_of_two_levels_one_of_three_arms_and_a_treatment_cut_in_two() -> None:
    columns = rows_of(6_000)
    with dpc.simulated_noise(1):
        found = ask(columns, dpc.PureDP(8), outcome="ill")
        assert found.estimate == pytest.approx(0.2, abs=0.08) and found.interval is not None
        arms = ask(columns, dpc.PureDP(8), treatment="site", adjust=["x"], treated="e", control="n")
        assert arms.estimate == pytest.approx(0.8, abs=0.35)
    schema = dpc.Schema({"x": dpc.Bounded(-2, 2, cuts=[0.0]), "y": dpc.Bounded(-5, 5), "w": dpc.Bounded(-2, 2)})
    table = dpc.Table({name: columns[name] for name in schema}, schema, dpc.Ledger.in_memory(dpc.PureDP(8)))
    cut = dpc.effect(table, treatment="x", outcome="y", adjust=["w"], loss=dpc.PureDP(8), method=SampleAggregate())
    assert cut.treated == "0 or more" and cut.estimate is not None


def test_rows_that_lack_a_column_constant_columns_and_trials_are_answered() -> None:
    columns = rows_of(8_000)
    columns["x"][::3] = np.nan
    columns["w"] = np.ones(8_000)
    with dpc.simulated_noise(2):
        found = ask(columns, dpc.PureDP(4))
        bare = ask(columns, dpc.PureDP(4), adjust=[])
    assert found.interval is not None and abs(found.estimate - EFFECT) < 0.3  # type: ignore[operator]
    assert bare.estimate is not None and bare.interval is not None


def test_fewer_blocks_where_epsilon_is_larger_and_rules_are_public() -> None:
    found = [
        ask(rows_of(n), dpc.PureDP(epsilon)).settings["blocks"] for n, epsilon in ((60_000, 4), (6_000, 4), (6_000, 8))
    ]
    # Noise is as one over the number of blocks and epsilon: there are more of them where rows are more.
    assert found[0] > found[1] == 220 / 4 > found[2] == 28
    assert ask(rows_of(2_000), dpc.PureDP(8), SampleAggregate(blocks=40)).settings == {
        "terms": "products", "overlap": False, "blocks": 40,
    }  # fmt: skip


def test_private_ids_cost_half_and_a_row_each_of_public_ids_costs_what_rows_do() -> None:
    columns = rows_of(6_000) | {"id": np.arange(6_000)}
    found = {}
    for ids in ("public", "private"):
        table = table_of(columns, dpc.PureDP(4), person="id", ids=ids)
        with dpc.simulated_noise(3):
            found[ids] = ask(columns, dpc.PureDP(4), SampleAggregate(blocks=110, terms="lines"), table)
    rows = ask(columns, dpc.PureDP(4), SampleAggregate(blocks=110, terms="lines"))
    noise = {name: one.noise_error for name, one in found.items()}
    assert noise["private"] == pytest.approx(2 * noise["public"], rel=0.5)  # type: ignore[operator]
    assert rows.guarantee.proofs == found["private"].guarantee.proofs == (
        "block-window", "noisy-max", "block-sum", "geometric")  # fmt: skip


# ------------------------------------------------------------------------------------------- what was not found


def test_a_window_without_answers_is_told_by_the_sums_and_no_estimate_is_given() -> None:
    reach = reach_of(200)
    kept = share_inside((0.2 - 0.01) * reach**2, reach)
    assert aggregate_of(0.1, 0.2, 0.01, 0.02, 200, 0, 1000).estimate == pytest.approx(0.1 * reach * 1000 / UNIT / kept)
    assert aggregate_of(1.0, 1.0, 0.01, 0.02, 200, 0, 1000).estimate is None  # all lie beyond
    assert aggregate_of(0.0, 0.99, 0.01, 0.02, 200, 0, 1000).estimate is None  # half on either side
    centres, halves = candidate_windows(100.0)
    assert centres.min() < -UNIT < UNIT < centres.max() and len(halves) < 50_000
    assert halves.max() == UNIT and halves.min() < UNIT / 1_000


@pytest.mark.parametrize("spread", [0.7, 1.0, 1.3])
def test_the_mean_of_cut_answers_follows_a_centre_that_is_off(spread: float) -> None:
    drawn = spread * np.random.default_rng(2).normal(size=400_000)
    for off in (0.0, 0.3):
        cut = np.clip(drawn + off, -2.0, 2.0)
        kept = share_inside(float(cut.var()), 2.0)
        assert kept == pytest.approx(np.mean(np.abs(drawn) < 2.0), abs=0.01)
        assert cut.mean() / kept == pytest.approx(off, abs=0.02)
    assert share_inside(0.0, 2.0) == 1.0 and share_inside(9.0, 2.0) == 0.8


def test_where_no_block_has_something_to_say_there_is_no_answer() -> None:
    columns = rows_of(4_000) | {"a": np.zeros(4_000, dtype=int)}
    with dpc.simulated_noise(4):
        found = ask(columns, dpc.PureDP(4), SampleAggregate(terms="lines"))
    assert found.estimate is None and found.interval is None and "no window" in found.interval_reason


def test_what_has_no_proof_or_no_blocks_is_refused_unspent() -> None:
    columns, ledger = rows_of(4_000), dpc.Ledger.in_memory(dpc.PureDP(8))
    table = dpc.Table(columns, SCHEMA, ledger)
    for wrong in ({"terms": "cubes"}, {"blocks": 3}, {"blocks": 5_000}):
        with pytest.raises(ParameterError):
            ask(columns, dpc.PureDP(8), SampleAggregate(**wrong), table)
    for more in ({"estimand": "att"}, {"groups": "site", "adjust": ["x"]}):
        with pytest.raises(ParameterError, match="no estimand"):
            ask(columns, dpc.PureDP(8), SampleAggregate(), table, **more)
    with pytest.raises(ParameterError, match="weights"):
        weighed = table_of(columns | {"q": np.ones(4_000)}, dpc.PureDP(8), weight=("q", 2.0))
        ask(columns, dpc.PureDP(8), SampleAggregate(), weighed)
    assert not ledger.entries()


def test_too_few_rows_are_refused_before_the_spend_with_what_would_do() -> None:
    for n, loss in ((300, dpc.PureDP(4)), (6_000, dpc.PureDP(0.2))):
        table = table_of(rows_of(n), loss)
        with pytest.raises(InfeasibleError, match=r"rows would be enough, or.* times the epsilon"):
            ask({}, loss, SampleAggregate(), table)
        assert not table.ledger.entries()


def test_a_loss_too_little_for_noise_is_refused_unspent_and_a_little_one_is_told() -> None:
    columns = rows_of(2_000)
    for least in (1e-9, 1e-7, 1e-5, 1e-3):
        table = table_of(columns, dpc.PureDP(1))
        try:
            found = ask(columns, dpc.PureDP(least), SampleAggregate(blocks=20), table)
        except LossError:
            assert least < 1e-3 and not table.ledger.entries()
        else:
            assert any("missed by the window" in one for one in found.guarantee.caveats)


def test_what_blocks_say_is_what_public_numbers_say_of_it() -> None:
    found = ask(rows_of(6_000), dpc.PureDP(8), SampleAggregate(terms="curves"))
    told_of_it = " ".join(found.guarantee.caveats)
    assert f"{found.settings['blocks']} blocks of about" in told_of_it and "squares and cubes" in told_of_it
    assert "interval does not count" in told_of_it and found.adjusted_for == ("x", "w", "site")


def test_a_block_with_one_arm_few_rows_or_nothing_left_of_treatment_has_nothing_to_say() -> None:
    rng = np.random.default_rng(1)
    given = Given(rng.normal(size=(40, 2)), np.empty((40, 0), dtype=np.int64))
    a, y = (rng.random(40) < 0.5).astype(float), rng.random(40)
    assert slope(a, y, given, "lines", True) is not None
    assert slope(np.zeros(40), y, given, "lines", True) is None
    assert slope((given.numbers[:, 0] > 9).astype(float), y, given, "lines", False) is None
    few = given.at(np.arange(6))
    assert slope(a[:6], y[:6], few, "products", True) is None and slope(a[:2], y[:2], few, "lines", True) is None
    exact = Given(np.column_stack([a, y]), np.empty((40, 0), dtype=np.int64))
    assert slope(a, y, exact, "lines", True) is None
