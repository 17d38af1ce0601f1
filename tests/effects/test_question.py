"""What an effect counts, and of whom: the level of an outcome, 0 and 1 as levels, and subgroups that compare nobody."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.effects.question import AT_BOUND
from dpcausal.errors import ParameterError, SchemaError
from dpcausal.result import IMPUTED
from tests import factories

ROWS = 6_000
EXACT = dpc.NoPrivacy()


def rows(seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    site, x = rng.integers(0, 3, ROWS), rng.uniform(-1, 1, ROWS)
    arm = (rng.random(ROWS) < 0.3 + 0.2 * site).astype(int)
    dead = rng.random(ROWS) < 0.4 - 0.15 * arm + 0.1 * site
    return {"arm": arm, "site": site, "x": x, "state": np.where(dead, "dead", "alive"), "cost": 5.0 + arm + site + x}


def table(loss: Any, seed: int = 1, **columns: Any) -> dpc.Table:
    declared = {"arm": dpc.Levels([0, 1]), "site": dpc.Levels([0, 1, 2]), "x": dpc.Bounded(-1, 1),
                "state": dpc.Levels(["alive", "dead"]), "cost": dpc.Bounded(0, 10)} | columns  # fmt: skip
    return factories.table(rows(seed), declared, loss)


def asked(loss: Any, held: Any = None, seed: int = 1, **words: Any) -> Any:
    words = {"treatment": "arm", "outcome": "state", "adjust": ["site"], "loss": loss} | words
    with dpc.simulated_noise(seed):
        return dpc.effect(table(loss) if held is None else held, **words)


@pytest.mark.parametrize(("method", "loss", "adjust"), [
    ("stratified", EXACT, ["site"]), ("stratified", dpc.PureDP(1), ["site"]), ("aipw", dpc.ApproxDP(2, 1e-6), ["x"]),
    ("partially-linear", dpc.ApproxDP(2, 1e-6), ["x"]), ("boosted-aipw", dpc.ApproxDP(2, 1e-6), ["x"]),
    (dpc.methods.SampleAggregate(), dpc.PureDP(4), ["x"]),
    (dpc.methods.RandomizedTrial(probabilities=[0.5, 0.5]), dpc.PureDP(0.2), []),
])  # fmt: skip
def test_the_level_that_is_counted_is_declared_named_and_may_be_either(method: Any, loss: Any, adjust: Any) -> None:
    last = asked(loss, method=method, adjust=adjust)
    first = asked(loss, method=method, adjust=adjust, event="alive")
    declared = asked(loss, table(loss, state=dpc.Levels(["dead", "alive"])), method=method, adjust=adjust)
    assert (last.event, first.event, declared.event) == ("dead", "alive", "alive")
    assert last.to_dict()["event"] == "dead" and last.measured == "state = dead" in last.headline()[0]
    assert first.estimate == declared.estimate and first.interval == declared.interval
    if loss == EXACT:
        assert first.estimate == pytest.approx(-last.estimate, abs=1e-9)
        assert first.mean_treated == pytest.approx(1 - last.mean_treated, abs=1e-9)
    assert last.plot().get_xlabel().endswith("state = dead")


def test_a_release_is_asked_for_either_level_free_and_saved_with_both() -> None:
    held = table(EXACT)
    released = dpc.cells(held, by=["arm", "site"], values=["state", "cost"], loss=EXACT)
    saved: Any = dpc.Release.from_json(released.to_json())
    words = {"treatment": "arm", "outcome": "state", "adjust": ["site"]}
    for event in ("alive", "dead"):
        found, whole = saved.effect(**words, event=event), asked(EXACT, held, event=event)
        assert found.event == event and found.estimate == pytest.approx(whole.estimate, abs=1e-12)
    assert saved.effect(**words | {"outcome": "cost"}).event is None
    for wrong in ({"event": "gone"}, {"outcome": "cost", "event": "dead"}):
        with pytest.raises(ParameterError):
            saved.effect(**words | wrong)
        with pytest.raises(ParameterError):
            asked(EXACT, held, **wrong)


def test_regressions_of_moments_name_the_reference_level_of_each_column_of_two() -> None:
    held = table(dpc.ApproxDP(4, 1e-6))
    with dpc.simulated_noise(1):
        released = dpc.moments(held, ["state", "arm", "x"], loss=dpc.ApproxDP(4, 1e-6))
    saved: Any = dpc.Release.from_json(released.to_json())
    levels = (("state", "alive", "dead"), ("arm", "0", "1"))
    for one in (saved.ols("state", ["arm", "x"]), saved.mediation("arm", "x", "state"), saved.partial("arm", "state")):
        assert one.levels == levels and "dead" in "".join(one.headline())
    found = saved.effect(treatment="arm", outcome="state", adjust=["x"])
    assert (found.treated, found.control, found.event) == ("1", "0", "dead")


@pytest.mark.parametrize("words", [{}, {"treated": 1.0, "control": 0.0}, {"treated": "0"}, {"treated": True}])
def test_a_treatment_declared_bounded_from_0_to_1_is_that_of_the_levels_0_and_1(words: dict[str, Any]) -> None:
    found = asked(EXACT, table(EXACT, arm=dpc.Bounded(0, 1)), outcome="cost", **words)
    own = asked(EXACT, outcome="cost", **words)
    assert found.estimate == own.estimate and (found.treated, found.control) == (own.treated, own.control)
    parts = {"treated": "0.75 or more", "control": "below 0.25"}
    assert asked(EXACT, table(EXACT, arm=dpc.Bounded(0, 1)), outcome="cost", **parts).treated == parts["treated"]


def test_a_subgroup_of_a_recoded_column_keeps_the_records_that_it_names() -> None:
    held = table(EXACT, arm=dpc.Bounded(0, 1))
    for event in ("alive", "dead"):
        both = asked(EXACT, held.where("state", among=["alive", "dead"]), event=event)
        assert both.estimate == pytest.approx(asked(EXACT, event=event).estimate, abs=1e-12)
    assert asked(EXACT, held.where("arm", at_least=0.0, at_most=1.0)).estimate == asked(EXACT).estimate


@pytest.mark.parametrize(("column", "among", "words"), [
    ("arm", {"among": [1]}, {}),
    ("site", {"among": [1, 2]}, {"treatment": "site", "treated": 1, "control": 0, "adjust": []}),
    ("state", {"among": ["dead"]}, {}), ("cost", {"at_least": 10.0}, {"outcome": "cost"}),
    ("x", {"at_least": 0.6}, {"treatment": "x", "outcome": "cost", "treated": "0.5 or more", "control": "-0.5 to 0"}),
    ("site", {"among": [0]}, {"method": dpc.methods.RandomizedTrial(sizes=[ROWS // 2, ROWS // 2]), "adjust": []}),
])  # fmt: skip
def test_a_subgroup_that_leaves_nothing_to_compare_is_refused_unpaid(column: str, among: Any, words: Any) -> None:
    part = table(dpc.PureDP(1)).where(column, **among)
    factories.refused_unpaid(part, ParameterError, lambda held: asked(dpc.PureDP(1), held, **words))


def test_other_tasks_refuse_a_column_that_the_subgroup_or_the_schema_fixes_unpaid() -> None:
    held = table(dpc.ApproxDP(9, 1e-6), site=dpc.Levels([1]))
    one = held.where("arm", among=[1]).where("x", at_least=0.25, at_most=0.25)
    loss = dpc.ApproxDP(1, 1e-6)
    for call in (
        lambda: dpc.ci_test(one, "arm", "cost", loss=loss),
        lambda: dpc.ci_test(one, "cost", "x", loss=loss),
        lambda: dpc.ci_test(held, "site", "x", loss=loss),
        lambda: dpc.direction(one, "x", "cost", loss=loss),
        lambda: dpc.moments(one, ["arm", "cost"], loss=loss),
        *(lambda way=way: dpc.discover(held, loss=loss, columns=["arm", "site", "state"], method=way)
          for way in ("table", "parities", "whitened", "moments")),
        lambda: dpc.discover(one, loss=loss, columns=["arm", "site", "cost"]),
        lambda: dpc.discontinuity(one, running="cost", outcome="x", cutoff=5, loss=dpc.PureDP(1)),
        lambda: dpc.discontinuity(one, running="cost", outcome="state", cutoff=5, treatment="arm", loss=dpc.PureDP(1)),
    ):
        with pytest.raises((ParameterError, SchemaError)):
            call()
    assert held.ledger.entries() == []


RELEASES: dict[str, Any] = {
    "effect": lambda held: asked(EXACT, held, outcome="cost"),
    "cells": lambda held: dpc.cells(held, by=["arm"], values=["cost"], loss=EXACT),
    "moments": lambda held: dpc.moments(held, ["cost", "x"], loss=EXACT),
    "discontinuity": lambda held: dpc.discontinuity(held, running="x", outcome="cost", cutoff=0, loss=EXACT),
    "ci_test": lambda held: dpc.ci_test(held, "x", "cost", given=[], loss=EXACT),
    "direction": lambda held: dpc.direction(held, "x", "cost", loss=EXACT),
    "discover": lambda held: dpc.discover(held, columns=["x", "cost", "arm"], loss=EXACT),
}  # fmt: skip


@pytest.mark.parametrize(("task", "change"), [
    *((task, "weighted") for task in ("effect", "cells", "moments", "discontinuity")),
    *((task, "imputed") for task in ("effect", "cells", "moments", "ci_test", "direction", "discover")),
    *((task, "chosen") for task in ("effect", "discontinuity", "ci_test", "direction", "discover")),
])  # fmt: skip
def test_every_task_says_that_rows_are_weighted_imputed_or_chosen_by_what_it_is_about(task: str, change: str) -> None:
    options: dict[str, Any] = {"weighted": {"weight": ("w", 2.5)}, "imputed": {"missing": "impute"}}
    held, plain = (
        dpc.Table(rows() | {"w": np.ones(ROWS)}, table(EXACT).schema, dpc.Ledger.without_privacy(), **one)
        for one in (options.get(change, {}), {})
    )
    if change == "chosen":
        held, plain = plain.where("cost", at_least=5.5), plain.where("site", among=[0, 1])
    found = RELEASES[task](held)
    (more,) = set(found.guarantee.caveats) - set(RELEASES[task](plain).guarantee.caveats)
    assert {"weighted": "2.5", "imputed": "'impute'", "chosen": "'cost'"}[change] in more
    assert (task, change) != ("effect", "chosen") or more in found.warnings()


@pytest.mark.parametrize("task", ["effect", "moments", "discontinuity"])
def test_an_estimate_says_within_which_bounds_its_outcome_counts_and_who_is_left_out(task: str) -> None:
    caveats = RELEASES[task](table(EXACT)).guarantee.caveats
    assert sum("'cost'" in one and "0 to 10" in one for one in caveats) == 1
    assert sum("missing" in one for one in caveats) == 1


def lacking(seed: int, n: int = ROWS) -> tuple[dict[str, Any], float]:
    """Return rows whose outcomes are missing by the site alone, and everybody's mean effect."""
    rng = np.random.default_rng(seed)
    arm, site = rng.integers(0, 2, n), rng.integers(0, 3, n)
    gain = np.array([1.0, 2.0, 4.0])[site]
    y = np.clip(5 + arm * gain + rng.normal(size=n), 0, 15)
    gone = rng.random(n) < np.array([0.05, 0.3, 0.85])[site]
    return {"arm": arm, "site": site, "y": np.where(gone, np.nan, y)}, 7 / 3


def of_all(columns: Any, loss: Any, seed: int = 1, **words: Any) -> Any:
    schema = {"arm": dpc.Levels([0, 1]), "site": dpc.Levels([0, 1, 2]), "y": dpc.Bounded(0, 15)}
    words = {"outcome": "y", "method": dpc.methods.Stratified(population="observed")} | words
    return asked(loss, factories.table(columns, schema, loss), seed, **words)


@pytest.mark.parametrize("estimand", ["ate", "att"])
def test_of_all_with_confounders_it_is_the_g_formula_over_their_strata_with_its_error(estimand: str) -> None:
    """Compared with the formula and the influences of every record, in numpy."""
    columns, _ = lacking(1)
    found = of_all(columns, EXACT, estimand=estimand)
    arm, site, y = columns["arm"], columns["site"], columns["y"]
    known, chosen = ~np.isnan(y), (arm == 1) | (estimand == "ate")
    shares = np.bincount(site[chosen], minlength=3) / chosen.sum()
    gaps, influence = np.zeros(3), np.zeros(ROWS)
    for z in range(3):
        for a in (0, 1):
            cell = known & (site == z) & (arm == a)
            gaps[z] += (2 * a - 1) * y[cell].mean()
            influence[cell] += (2 * a - 1) * shares[z] * (y[cell] - y[cell].mean()) / cell.sum()
    estimate = float(shares @ gaps)
    influence[chosen] += (gaps[site[chosen]] - estimate) / chosen.sum()
    assert found.population == "observed" and found.estimate == pytest.approx(estimate, abs=1e-5)
    assert found.standard_error == pytest.approx(float(np.sqrt((influence**2).sum())), rel=1e-4)
    again: Any = dpc.Release.from_json(found.release.to_json())
    assert again.effect(treatment="arm", outcome="y", adjust=["site"], estimand=estimand).estimate == found.estimate


def test_where_outcomes_are_missing_by_what_is_adjusted_for_the_interval_of_all_holds_everybodys_effect() -> None:
    held = 0
    for seed in range(40):
        columns, truth = lacking(seed)
        found = of_all(columns, dpc.PureDP(1) if seed % 2 else dpc.ZCDP(0.1), seed)
        held += found.interval[0] <= truth <= found.interval[1]
        complete = of_all(columns, dpc.PureDP(1), seed, method="stratified")
        assert complete.population == "complete" and complete.interval[1] < 2
    assert held >= 27


@pytest.mark.parametrize(("method", "loss", "adjust"), [
    ("stratified", dpc.PureDP(1), ["site"]), ("aipw", dpc.ApproxDP(2, 1e-6), ["site", "x"]),
    ("partially-linear", dpc.ApproxDP(2, 1e-6), ["x"]), ("boosted-aipw", dpc.ApproxDP(2, 1e-6), ["x"]),
])  # fmt: skip
def test_the_share_of_records_that_count_is_in_the_first_line_where_it_is_not_all(
    method: str, loss: Any, adjust: list[str]
) -> None:
    whole = asked(loss, method=method, adjust=adjust, outcome="cost")
    assert whole.share_counted == pytest.approx(1, abs=0.03)
    assert f"{ROWS:,} rows" in whole.headline()[0] and "%" not in whole.headline()[0]
    columns, rng = rows(), np.random.default_rng(2)
    columns["cost"] = np.where(rng.random(ROWS) < 0.4, np.nan, columns["cost"])
    schema, words = table(loss).schema, {"method": method, "adjust": adjust, "outcome": "cost"}
    found = asked(loss, factories.table(columns, schema, loss), **words)
    assert found.share_counted == pytest.approx(0.6, abs=0.05)
    share = f"{100 * found.share_counted:.0f} %"
    assert share in found.headline()[0]
    few, none = (replace(found, share_counted=one, release=None) for one in (0.97, 0.999))
    assert "97 %" in few.headline()[0] and "%" not in none.headline()[0]
    assert len(found.warnings()) == len(whole.warnings()) + 1
    answers = asked(loss, factories.table(columns, schema, loss, missing="impute"), **words), whole
    assert ["imputed" in one.headline()[0] for one in answers] == [True, False]
    assert answers[0].share_counted is None and "%" not in answers[0].headline()[0]
    assert [f"warning: {IMPUTED}" in one.details() for one in answers] == [True, False]


def test_of_weights_and_of_a_subgroup_no_share_of_records_is_stated_and_few_are_no_fault() -> None:
    loss, columns = dpc.PureDP(1), rows() | {"w": np.where(np.arange(ROWS) % 2, 1.0, 30.0)}
    weighted = dpc.Table(columns, table(loss).schema, dpc.Ledger.in_memory(loss), weight=("w", 30.0))
    few = factories.table(columns | {"site": np.where(np.arange(ROWS) % 40, 0, 2)}, table(loss).schema, loss)
    for held in (weighted, few.where("site", among=[2])):
        found = asked(loss, held, outcome="cost", adjust=[])
        assert found.share_counted is None and "all" not in found.headline()[0].split() and not found.notes


def test_an_imputed_level_is_no_event() -> None:
    place = np.arange(3000)
    frame = {"t": place % 2, "y": np.where(place % 5 < 2, np.nan, place % 3 % 2)}
    private = factories.table(frame, dict.fromkeys("ty", dpc.Levels([0, 1])), dpc.PureDP(8), missing="impute")
    words: Any = {"treatment": "t", "outcome": "y", "adjust": [], "loss": dpc.PureDP(8)}
    factories.refused_unpaid(private, ParameterError, dpc.effect, **words, event=0)
    assert asked(held=private, event=1, **words).event == "1"


@pytest.mark.parametrize(("method", "loss", "adjust"), [
    ("stratified", dpc.PureDP(2), ["site"]), ("aipw", dpc.ApproxDP(2, 1e-6), ["site", "x"]),
    ("boosted-aipw", dpc.ApproxDP(2, 1e-6), ["site", "x"]),
])  # fmt: skip
def test_where_missing_is_a_level_it_is_one_of_confounders_and_no_arm_or_outcome(
    method: str, loss: Any, adjust: list[str]
) -> None:
    rng, n = np.random.default_rng(1), 6_000
    site = np.array(["a", "b", None], dtype=object)[rng.choice(3, n, p=[0.4, 0.3, 0.3])]
    missing = np.array([one is None for one in site])
    t = rng.random(n) < np.where(missing, 0.8, 0.3)
    y = rng.random(n) < 0.2 + 0.2 * t + 0.4 * missing
    texts = {name: np.where(rng.random(n) < 0.05, None, one.astype(int).astype(str).astype(object))
             for name, one in (("t", t), ("y", y))}  # fmt: skip
    schema = {"t": dpc.Levels(["0", "1"]), "y": dpc.Levels(["0", "1"]), "site": dpc.Levels(["a", "b"]),
              "x": dpc.Bounded(-4, 4)}  # fmt: skip
    table = factories.table({"site": site, "x": rng.normal(size=n), **texts}, schema, loss, missing="level")
    found = asked(loss, table, method=method, adjust=adjust, treatment="t", outcome="y")
    assert (found.treated, found.control, found.event) == ("1", "0", "1")
    assert found.interval[0] < 0.2 < found.interval[1] and found.interval[1] - found.interval[0] < 0.2
    assert found.share_counted is None or found.share_counted == pytest.approx(0.9, abs=0.05)


def test_where_missing_is_a_level_it_may_be_named_as_an_arm() -> None:
    loss, rng = dpc.PureDP(2), np.random.default_rng(1)
    t = np.array(["0", "1", None], dtype=object)[rng.integers(0, 3, 4_000)]
    schema = {"t": dpc.Levels(["0", "1"]), "y": dpc.Bounded(0, 1)}
    table = factories.table({"t": t, "y": rng.random(4_000)}, schema, loss, missing="level")
    found = asked(loss, table, adjust=[], treatment="t", outcome="y", treated="missing", control="0")
    assert found.treated == "missing" and found.interval is not None


@pytest.mark.parametrize(("bounds", "told"), [((0, 10), False), ((0, 5_000), True), ((-5_000, 0), True)])
def test_means_at_a_bound_are_remarked_as_those_of_another_unit_are(bounds: tuple[float, float], told: bool) -> None:
    found = asked(EXACT, table(EXACT, cost=dpc.Bounded(*bounds)), outcome="cost")
    assert (AT_BOUND.format("cost") in found.notes) is told
