"""An effect end to end: without noise it is the g-formula, what is refused is refused before the spend, asking again
is free, and a release comes back as it was."""

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

import dpcausal as dpc
from dpcausal.effects.cells.effect import e_value, e_value_limit, robustness_value
from dpcausal.errors import BudgetExceededError, InfeasibleError, ParameterError
from tests import factories
from tests.effects.tables import EXACT, effect_of, table_of
from tests.refusals import rule_of

SCHEMA = {
    "a": dpc.Levels(["control", "drug"]), "z": dpc.Levels([0, 1, 2]), "w": dpc.Bounded(0, 10, cuts=[4]),
    "y": dpc.Bounded(-5, 8), "ill": dpc.Levels([0, 1]), "site": dpc.Levels(["n", "s", "w"]),
}  # fmt: skip


def made(n: int = 6_000, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    z, w = rng.integers(0, 3, n), rng.uniform(0, 10, n)
    drug = rng.random(n) < 0.2 + 0.15 * z + 0.02 * w
    y = np.clip(1 + 0.5 * drug + 0.6 * z + rng.normal(size=n), -5, 8)
    ill = (rng.random(n) < 0.2 + 0.1 * drug + 0.1 * z).astype(int)
    site = np.array(["n", "s", "w"])[rng.integers(0, 3, n)]
    return {"a": np.where(drug, "drug", "control"), "z": z, "w": w, "y": y, "ill": ill, "site": site}


ROLES: Any = {"treatment": "a", "outcome": "y", "adjust": ["z"]}


def ask(columns: Any = None, loss: Any = EXACT, seed: int = 1, schema: Any = SCHEMA, **words: Any) -> Any:
    table = table_of(made() if columns is None else columns, schema, loss)
    return effect_of(table, loss, "auto", seed, **ROLES | words)


@pytest.mark.parametrize("outcome", ["y", "ill"])
@pytest.mark.parametrize("estimand", ["ate", "att"])
def test_without_noise_it_is_the_g_formula_to_8_digits(outcome: str, estimand: str) -> None:
    columns = made()
    found = ask(columns, outcome=outcome, adjust=["z", "w"], estimand=estimand)
    drug = (columns["a"] == "drug").astype(float)
    cells = (columns["z"] * 2 + (columns["w"] >= 4))[:, None] == np.arange(6)
    fit = sm.OLS(columns[outcome], np.hstack([cells, cells * drug[:, None]]).astype(float)).fit()
    whom = drug == 1 if estimand == "att" else np.ones(len(drug), dtype=bool)
    means = [float(fit.predict(np.hstack([cells, cells * arm]).astype(float))[whom].mean()) for arm in (0, 1)]
    assert found.estimate == pytest.approx(means[1] - means[0], abs=1e-8)
    assert (found.mean_control, found.mean_treated) == pytest.approx(means, abs=1e-8)
    assert found.noise_error == 0 and found.interval is not None


def test_without_noise_a_trial_is_the_difference_of_means_with_its_usual_error_and_ratios() -> None:
    columns = made()
    found = ask(columns, outcome="ill", adjust=[])
    drug, ill = columns["a"] == "drug", columns["ill"]
    p1, p0 = ill[drug].mean(), ill[~drug].mean()
    error = np.sqrt(p1 * (1 - p1) / drug.sum() + p0 * (1 - p0) / (~drug).sum())
    assert found.standard_error == pytest.approx(error, rel=1e-6)
    two_by_two = sm.stats.Table2x2([[(drug & (ill == 1)).sum(), (drug & (ill == 0)).sum()],
                                    [(~drug & (ill == 1)).sum(), (~drug & (ill == 0)).sum()]])  # fmt: skip
    assert found.risk_ratio is not None and found.odds_ratio is not None
    assert found.risk_ratio.estimate == pytest.approx(two_by_two.riskratio, abs=1e-8)
    assert found.risk_ratio.interval == pytest.approx(two_by_two.riskratio_confint(), rel=1e-5)
    assert found.odds_ratio.interval == pytest.approx(two_by_two.oddsratio_confint(), rel=1e-5)
    assert found.e_value == pytest.approx(e_value(p1 / p0)) and found.e_value_limit is not None
    (row,) = found.to_frame().to_dict("records")
    for name in ("risk_ratio", "odds_ratio"):
        ratio = getattr(found, name)
        assert (row[name], row[f"{name}_low"], row[f"{name}_high"]) == (ratio.estimate, *ratio.interval)


def test_groups_are_the_effects_within_them_and_their_mean_is_the_whole() -> None:
    columns = made()
    found = ask(columns, groups="site")
    assert [one.group for one in found.by_group] == ["site = n", "site = s", "site = w"]
    for one, level in zip(found.by_group, "nsw", strict=True):
        inside = {name: values[columns["site"] == level] for name, values in columns.items()}
        alone = ask(inside)
        assert one.estimate == pytest.approx(alone.estimate, abs=1e-8)
        assert one.interval == pytest.approx(alone.interval, abs=1e-7)
    for adjust in ([], ["site"]):
        assert ask(columns, groups="site", adjust=adjust).adjusted_text.startswith("site")


def test_balance_is_that_of_the_arms_before_the_adjustment() -> None:
    columns = made()
    found = ask(columns)
    drug = columns["a"] == "drug"
    for one, level in zip(found.balance, (1, 2), strict=True):
        shares = [(columns["z"][arm] == level).mean() for arm in (drug, ~drug)]
        assert one.name == f"z = {level}" and (one.treated, one.control) == pytest.approx(tuple(shares), abs=1e-12)
        pooled = np.sqrt(np.mean([p * (1 - p) for p in shares]))
        sampled = np.sqrt(sum(p * (1 - p) / arm.sum() for p, arm in zip(shares, (drug, ~drug), strict=True)))
        assert one.standard_error == pytest.approx(sampled / pooled)
        assert one.deviation == 0 and one.difference == pytest.approx((shares[0] - shares[1]) / pooled)


def test_the_second_level_is_treated_unless_told_otherwise_and_more_levels_must_be_named() -> None:
    there = ask(adjust=[])
    back = ask(adjust=[], treated="control")
    assert (there.treated, back.treated) == ("drug", "control") and back.estimate == -(there.estimate or 0)
    assert rule_of(lambda: ask(treatment="site")) == "two-levels"
    found = ask(treatment="site", adjust=[], treated="w", control="n")
    assert found.treated == "w" and abs(found.estimate or 9) < 0.2


def test_asking_again_is_free_and_so_is_a_saved_release() -> None:
    asked = table_of(made(), SCHEMA, dpc.PureDP(1))
    released = dpc.cells(asked, by=["a", "z", "site"], values=["y", "ill"], loss=dpc.PureDP(1))
    head = asked.ledger.head
    again: Any = dpc.Release.from_json(released.to_json())
    for release in (released, again):
        one = release.effect(treatment="a", outcome="ill", adjust=["z"], groups="site")
        assert one.interval[0] < one.estimate < one.interval[1] and len(one.by_group) == 3
        assert one.guarantee == released.guarantee
        other = release.effect(treatment="site", outcome="y", adjust=[], treated="w", control="n")
        assert other.estimate == pytest.approx(0, abs=0.3)
    assert asked.ledger.head == head
    assert again.to_dict() == released.to_dict()
    with pytest.raises(BudgetExceededError):
        dpc.effect(asked, treatment="a", outcome="y", adjust=[], loss=dpc.PureDP(0.5))


def test_rows_that_lack_a_column_are_left_out_and_the_others_give_the_answer() -> None:
    columns = made()
    lost = np.random.default_rng(2).random(6_000) < 0.4
    columns["a"] = np.where(lost, None, columns["a"])
    columns["y"][::7] = np.nan
    found = ask(columns)
    whole = ~lost & ~np.isnan(columns["y"])
    kept = {name: values[whole] for name, values in columns.items()}
    alone = ask(kept)
    assert found.estimate == pytest.approx(alone.estimate, abs=1e-12)
    assert found.interval == pytest.approx(alone.interval, abs=1e-12) and found.n == 6_000


def test_too_few_rows_for_the_loss_are_refused_before_the_spend_with_what_would_do() -> None:
    words, small = ROLES | {"adjust": ["z", "site"]}, table_of(made(400), SCHEMA, dpc.PureDP(1))
    text = factories.refused_unpaid(small, InfeasibleError, dpc.effect, **words, loss=dpc.PureDP(0.1))
    enough = float(text.split("epsilon ")[1].split(" or")[0])
    assert ask(made(400), dpc.PureDP(enough * 1.01), **words)


def test_strata_without_both_arms_leave_the_answer_and_it_says_so() -> None:
    columns = made()
    columns["a"] = np.where(columns["z"] == 2, "drug", columns["a"])
    found = ask(columns, dpc.PureDP(1))
    assert found.share_supported == pytest.approx(2 / 3, abs=0.03)
    assert found.is_partly_supported and found.notes and f"{100 * found.share_supported:.0f} %" in found.headline()[0]
    columns["a"] = np.where(columns["z"] == 1, "drug", columns["a"])
    none = ask(columns, dpc.PureDP(1))
    assert none.estimate is None and none.interval is None and "strata" in none.interval_reason
    assert none.to_json()


@pytest.mark.parametrize("wrong", [
    {"treatment": "w", "adjust": ["w"]}, {"outcome": "site"}, {"outcome": "a"}, {"adjust": "z"},
    {"adjust": ["z", "z"]}, {"estimand": "late"}, {"coverage": 1.0}, {"treated": "placebo"}, {"groups": "a"},
    {"treated": "drug", "control": "drug"}, {"blocks": 3},
])  # fmt: skip
def test_wrong_arguments_are_refused_before_the_spend(wrong: dict[str, Any]) -> None:
    words = ROLES | {"loss": dpc.PureDP(1)} | wrong
    factories.refused_unpaid(table_of(made(), SCHEMA, dpc.PureDP(1)), ParameterError, dpc.effect, **words)


def test_the_robustness_value_and_the_e_value_are_those_of_their_papers() -> None:
    # Cinelli & Hazlett (2020), Darfur: t = 4.18 with 783 degrees of freedom, RV = 13.9 %.
    t2 = (0.097 / 0.023) ** 2
    assert robustness_value(t2 / (t2 + 783)) == pytest.approx(0.139, abs=2e-3)
    # VanderWeele & Ding (2017): RR 3.9 (1.8 to 8.7) has E-values 7.26 and 3.0.
    assert e_value(3.9) == pytest.approx(7.26, abs=0.01) and e_value_limit((1.8, 8.7)) == pytest.approx(3.0, abs=0.01)
    assert e_value_limit((0.9, 2.0)) == 1 and e_value_limit((0.5, 0.8)) == e_value(1 / 0.8)


def test_few_records_in_wide_bounds_have_an_interval_for_any_skew_and_it_says_so() -> None:
    rng = np.random.default_rng(5)
    z = rng.integers(0, 4, 1_000)
    a = (rng.random(1_000) < 0.2 + 0.15 * z).astype(int)
    columns = {"a": a, "z": z, "y": np.clip(0.5 * z + 0.4 * a + rng.normal(size=1_000), -4, 6)}
    schema = {"a": dpc.Levels([0, 1]), "z": dpc.Levels([0, 1, 2, 3]), "y": dpc.Bounded(-4, 6)}
    found = ask(columns, dpc.PureDP(8), schema=schema, groups="z")
    low, high = found.interval
    assert low < 0.4 < high
    assert 1.5 < (high - low) / (2 * 1.96 * found.standard_error) < 2.5
    assert "any skew within the outcome's bounds" in found.details()
    assert all(group.interval is not None for group in found.by_group)
    assert any(all(one.group in note for one in found.by_group) for note in found.notes)


def test_a_noisy_risk_keeps_its_interval_however_wide() -> None:
    rng = np.random.default_rng(2)
    columns = {"a": rng.integers(0, 2, 60), "y": rng.integers(0, 2, 60)}
    found = ask(columns, dpc.PureDP(1.5), 3, dict.fromkeys("ay", dpc.Levels([0, 1])), adjust=[])
    low, high = found.interval
    assert high - low > 0.5
