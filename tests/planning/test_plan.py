"""Plans: what is predicted agrees with closed forms; n and ε that are sought give back what they were sought for."""

import inspect
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpcausal as dpc
from dpcausal.direction.block_counts import Counts, cube_tail
from dpcausal.direction.methods.verdict import Verdict, verdict_chances
from dpcausal.direction.question import Pair
from dpcausal.errors import InfeasibleError, LossError, ParameterError
from dpcausal.methods import RandomizedTrial
from dpcausal.planning import graphs
from dpcausal.planning.effects import EffectPlan
from dpcausal.planning.panels import DidPlan
from dpcausal.planning.task_plan import simulate_runs
from dpcausal.planning.tests import TestPlan as CiTestPlan
from dpcausal.privacy.noise import generator_from_seed, is_simulated, simulated_noise
from dpcausal.study.status import Forecaster
from tests import factories
from tests.commands import command
from tests.refusals import rule_of
from tests.study.made import write

GAUSSIAN = dpc.ApproxDP(1, 1e-6)
PURE, MANY = dpc.PureDP(1), 3_000
SIZES: Any = [[60, 90], [80, 40], [100, 130]]


@pytest.mark.parametrize(("task", "loss", "words"), [
    ("ci_test", PURE, {"correlation": 0.07}), ("effect", GAUSSIAN, {}),
    ("moments", GAUSSIAN, {"columns": 3, "errors": "normal"}),
    ("effect", PURE, {"method": RandomizedTrial(sizes=SIZES), "cells": 2, "treated": 2, "control": 0}),
    ("effect", PURE, {"method": RandomizedTrial(probabilities=[0.6, 0.4]), "spread": 0.1}),
])  # fmt: skip
def test_n_and_epsilon_that_are_sought_give_back_what_they_were_sought_for(task: str, loss: Any, words: Any) -> None:
    there = dpc.plan(task, n=MANY, loss=loss, **words)
    n = dpc.plan(task, loss=loss, accuracy=there.accuracy, **words)
    epsilon = dpc.plan(task, n=MANY, accuracy=there.accuracy, delta=getattr(loss, "delta", 0.0), **words)
    assert (there.solved, n.solved, epsilon.solved) == ("accuracy", "n", "loss")
    assert abs(n.n / MANY - 1) < 0.05 and abs(epsilon.loss.epsilon - 1) < 0.12
    assert type(epsilon.loss) is type(loss) and "treated:" not in there.summary()


def half_widths(
    draw: Callable[[np.random.Generator], Any], schema: Any, loss: Any, seeds: Iterable[int], of: Any = np.median,
    weight: Any = None, **asked: Any,
) -> list[float]:  # fmt: skip
    """Return half of the width of each run's interval, or of those of its groups; where there is none, infinity."""
    halves = []
    for seed in seeds:
        table = factories.table(draw(np.random.default_rng(seed)), schema, loss, weight=weight)
        with dpc.simulated_noise(seed):
            found = dpc.effect(table, loss=loss, **asked)
        ends = [one.interval for one in found.by_group] if asked.get("groups") else [found.interval]
        halves.append(of([math.inf if end is None else (end[1] - end[0]) / 2 for end in ends]))
    return halves


def weighted(rng: np.random.Generator, n: int = 20_000) -> dict[str, Any]:
    """Return rows of a survey whose weights are 1 or 3, 1.6 on average."""
    heavy, a, z = rng.random(n) < 0.3, rng.random(n) < 0.5, rng.normal(size=n).clip(-4, 4)
    y = (a + z / 2 + rng.normal(size=n)).clip(-7.5, 7.5)
    return {"w": np.where(heavy, 3.0, 1.0), "a": a.astype(int), "z": z, "y": y}


def test_a_plan_that_is_given_the_largest_weight_has_the_width_of_a_weighted_table() -> None:
    schema = {"a": dpc.Levels([0, 1]), "z": dpc.Bounded(-4, 4), "y": dpc.Bounded(-7.5, 7.5)}
    asked: Any = {"treatment": "a", "outcome": "y", "adjust": ["z"]}
    halves = half_widths(weighted, schema, GAUSSIAN, range(5), weight=("w", 5.0), **asked)
    stated: Any = {"adjust": 1, "share": 0.5, "spread": 1 / 15, "width": 15.0}
    planned, unweighted = (dpc.plan("effect", n=20_000, loss=GAUSSIAN, largest_weight=weight, **stated)
                           for weight in (5 / 1.6, 1.0))  # fmt: skip
    assert 0.5 < planned.accuracy / np.median(halves) < 2 and unweighted.accuracy < 0.6 * np.median(halves)
    for task, n, words in (("did", 2_500, {"share": 0.5}), ("moments", 20_000, {})):
        without, with_weights = (dpc.plan(task, n=n, loss=GAUSSIAN, largest_weight=weight, **words).accuracy
                                 for weight in (1.0, 3.0))  # fmt: skip
        assert with_weights > 1.3 * without


def test_a_plan_of_two_of_several_arms_has_the_width_of_a_run() -> None:
    schema = dpc.Schema({"a": dpc.Levels(range(8)), "z": dpc.Levels(range(4)), "y": dpc.Bounded(0, 20)})
    asked: Any = {"treatment": "a", "outcome": "y", "adjust": ["z"], "treated": 1, "control": 0}

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        y = np.clip(10 + 3 * rng.normal(size=MANY), 0, 20)
        return {"a": rng.integers(0, 8, MANY), "z": rng.integers(0, 4, MANY), "y": y}

    halves = half_widths(draw, schema, PURE, range(9), **asked)
    planned = dpc.plan("effect", schema=schema, n=MANY, share=1 / 8, loss=PURE, **asked)
    assert planned.accuracy == pytest.approx(np.median(halves), rel=0.25)


@pytest.mark.parametrize(
    ("task", "loss", "words"),
    [("ci_test", dpc.PureDP(0.5), {"correlation": 0.07}), ("effect", dpc.ApproxDP(0.5, 1e-6), {})],
)
def test_more_records_and_more_loss_never_make_it_worse(task: str, loss: Any, words: Any) -> None:
    plan = dpc.plan(task, n=2_000, loss=loss, **words)
    better = 1 if plan.assumed.more_is_better else -1
    for over in ("n", "epsilon"):
        rows = plan.to_frame(over)
        assert list(rows.columns) == ["n", "loss", "accuracy", "low", "high"]
        steps = np.diff(rows["accuracy"].replace(math.inf, 1e9)) * better
        assert (steps > -0.02 * rows["accuracy"].iloc[-1]).all() and (rows["low"] <= rows["high"]).all()


@pytest.mark.parametrize("n", [10_000, 4_000_000])
def test_with_much_loss_the_width_is_that_of_two_means(n: int) -> None:
    plan = dpc.plan("effect", n=n, loss=dpc.PureDP(20), width=4.0, spread=0.1, share=0.25)
    expected = 1.96 * 0.4 * math.sqrt(4 / n + 4 / (3 * n))
    assert abs(plan.accuracy / expected - 1) < 0.05 and plan.low < expected < plan.high


@pytest.mark.parametrize(("given", "lost"), [(0, 0), (1, 0.18)])
def test_with_much_loss_the_chance_is_that_of_a_rank_test(given: int, lost: float) -> None:
    """Without z that of tau, of efficiency (3/π)² at normal columns; neighbours lose some more: 1 + 1/(2k) of n."""
    n, r = 1_500, 0.08
    plan = dpc.plan("ci_test", n=n, loss=dpc.PureDP(20), correlation=r, given=given)
    shift = 2 / math.pi * math.asin(r) * math.sqrt(n) * 1.5
    free = stats.norm.sf(1.96 - shift)
    assert free - lost - 0.03 < plan.accuracy < free + 0.01


def test_blocks_that_each_see_little_are_predicted_as_they_are_found() -> None:
    """200 sums of 8 terms against the formula: within five standard errors, a false alarm below 1e-6."""
    coins, n, loss = generator_from_seed(5), 1_000, dpc.PureDP(3)
    way = dpc.methods.Gcm(resamples=19, blocks=8)
    found, tables = 0, 200
    for seed in range(tables):
        x, e = coins.normal(size=(2, n))
        rows = {"x": x, "y": 0.07 * x + e}
        table = factories.table(rows, dict.fromkeys(rows, dpc.Bounded(-4, 4)), loss, missing="impute")
        with dpc.simulated_noise(seed):
            found += dpc.ci_test(table, "x", "y", given=[], loss=loss, method=way).decision == "dependent"
    told = dpc.plan("ci_test", n=n, loss=loss, correlation=0.07, method=way).accuracy
    assert abs(found / tables - told) < 5 * math.sqrt(told * (1 - told) / tables)


def test_a_direction_whose_blocks_all_agree_is_predicted_as_by_the_law_of_the_noise() -> None:
    """Against the closed chance; 400 draws, within five standard errors."""
    loss, rows = dpc.PureDP(0.4), {name: np.zeros(2_000) for name in "xy"}
    question = Pair.of(factories.table(rows, dict.fromkeys(rows, dpc.Bounded(-1, 1)), loss), "x", "y", None, 0.1)
    way = Verdict(blocks=30).plan(question, loss)
    told = verdict_chances(Counts(30, cube_tail(0.4), 0.4), 0.1)["arrow"]
    with dpc.simulated_noise(3):
        found = way.drawn(question, loss, [(True, True, False, True)], generator_from_seed(1), 400)
    assert 0.2 < told < 0.9 and abs(found["x causes y"] / 400 - told) < 5 * math.sqrt(told * (1 - told) / 400)


@pytest.mark.replication
def test_the_correlation_that_is_predicted_shows_as_an_edge_about_four_times_in_five() -> None:
    loss, n, runs = dpc.PureDP(1), 800, 40
    r, shown = dpc.plan("discover", n=n, loss=loss, columns=3, levels=2).accuracy, 0
    for seed in range(runs):
        coins = generator_from_seed(1_000 + seed)
        rows = coins.integers(0, 2, (3, n))
        rows[1] = np.where(coins.random(n) < r, rows[0], rows[1])
        columns = dict(zip("abc", rows, strict=True))
        table = factories.table(columns, dict.fromkeys(columns, dpc.Levels([0, 1])), loss)
        with dpc.simulated_noise(seed):
            shown += frozenset("ab") in dpc.discover(table, loss=loss).graph.skeleton
    assert 0.58 < shown / runs < 0.96


@pytest.mark.parametrize(
    ("task", "n", "words"), [("did", 250, {"share": 0.5}), ("synthetic_control", 60, {"after": 2})]
)
def test_a_width_goes_with_the_unit_of_the_outcome(task: str, n: int, words: dict[str, Any]) -> None:
    loss = dpc.ApproxDP(2, 1e-6)
    one, ten = (dpc.plan(task, n=n, loss=loss, width=width, **words).accuracy for width in (1.0, 10.0))
    assert 0 < one < 1 and abs(ten / one - 10) < 0.5


def test_the_range_of_did_covers_what_is_not_stated() -> None:
    # Beside plans, panels of their own: half of the persons in three cohorts, and 5 % in one.
    loss = dpc.ApproxDP(2, 1e-6)
    plain, steady = (dpc.plan("did", n=2_000, loss=loss, **words) for words in ({}, {"spread": 0.1}))
    for stated in ({"share": 0.05}, {"share": 0.95}, {"spread": 0.3}, {"share": 0.05, "spread": 0.3}):
        accuracy = dpc.plan("did", n=2_000, loss=loss, **stated).accuracy
        assert plain.low <= accuracy <= plain.high
        assert "spread" in stated or accuracy <= steady.high
    assert plain.usual == steady.usual and plain.accuracy > steady.accuracy and steady.high < plain.high < 1
    for share, starts in ((0.5, [1, 2, 3]), (0.05, [2])):
        halves = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            cohort = np.where(rng.random(2_000) < share, rng.choice(starts, 2_000), 4)
            person, time = np.divmod(np.arange(8_000), 4)
            outcome = np.clip(0.1 * (rng.normal(size=2_000)[person] + rng.normal(size=8_000)), -0.5, 0.5)
            schema = {"time": dpc.Levels(range(4)), "cohort": dpc.Levels([*starts, 4]),
                      "outcome": dpc.Bounded(-0.5, 0.5)}  # fmt: skip
            frame = {"person": person, "time": time, "cohort": cohort[person], "outcome": outcome}
            table = factories.table(frame, schema, loss, person="person")
            with dpc.simulated_noise(seed):
                interval = dpc.did(table, time="time", outcome="outcome", cohort="cohort", loss=loss).att.interval
            halves += [] if interval is None else [(interval[1] - interval[0]) / 2]
        assert len(halves) >= 3 and steady.low <= np.median(halves) <= steady.high


def test_a_plan_of_did_takes_the_size_of_each_cohort() -> None:
    loss, both = dpc.ApproxDP(2, 1e-6), {"spread": 0.02, "periods": 5, "starts": "1,3,4"}

    def interval(**sizes: Any) -> Any:
        with simulated_noise(1):
            return DidPlan(**both, **sizes).simulate_once(600, loss, generator_from_seed(1))[0]

    alike, stated, few = interval(share=0.3), interval(shares="0.1,0.1,0.1"), interval(shares="0.02,0.14,0.14")
    assert alike == stated and alike is not None and few != alike
    for wrong in ({"shares": "0.1,0.1"}, {"shares": "0.1,0.1,0.1", "share": 0.3}, {"shares": "0.5,0.5,0.5"},
                  {"shares": "1.2.3,0.1,0.1"}):  # fmt: skip
        with pytest.raises(ParameterError) as refused:
            dpc.plan("did", n=600, loss=loss, **both, **wrong)
        assert "shares" in str(refused.value)


def test_simulated_tests_that_learn_regressions_are_known_to_take_longer_than_a_study_waits() -> None:
    loss, two = dpc.PureDP(1), {"x": 2, "y": 2, "rate": 0.3}
    short = CiTestPlan(**two), CiTestPlan(**two, cells=4), CiTestPlan(given=1, method="gcm")
    assert max(one.seconds(30_000, loss) for one in short) < Forecaster.seconds
    assert CiTestPlan(**two, given=1, method="gcm").seconds(30_000, loss) > Forecaster.seconds


def test_a_clear_curve_has_an_arrow_and_a_line_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcausal.planning.graphs.BLOCKS", 15)
    loss = dpc.PureDP(1)
    assert dpc.plan("direction", n=6_000, loss=loss, curve="sine", noise=0.3).accuracy > 0.8
    assert dpc.plan("direction", n=6_000, loss=loss, curve="linear").accuracy < 0.05


def test_noise_is_simulated_in_a_rehearsal_and_nowhere_else() -> None:
    def fails(coins: Any) -> None:
        assert is_simulated()
        raise ParameterError("as a call may")

    held: list[Any] = []
    try:
        simulate_runs(2, fails)
    except ParameterError as error:
        held.append(error)  # with its frames, as a notebook holds them
        assert not is_simulated()
    assert held and not is_simulated()


def test_a_plan_takes_a_method_with_a_model_in_a_dictionary() -> None:
    method = dpc.methods.Crt(model_x={"mean": {"intercept": 0}, "sd": 1}, blocks=10, resamples=19)
    plan = dpc.plan("ci_test", n=700, loss=dpc.PureDP(10), correlation=0.9, method=method)
    assert plan.accuracy > 0.9


def test_a_plan_takes_no_table_and_says_what_it_assumed() -> None:
    assert "table" not in inspect.signature(dpc.plan).parameters
    plan = dpc.plan("ci_test", n=2_000, loss=dpc.PureDP(1), given=1)
    assert "given 1" in plan.summary() and "Nothing was read or spent" in plan.summary()
    told = json.loads(plan.to_json())
    assert told["assumed"]["given"] == 1 and told["loss"] == {"kind": "PureDP", "epsilon": 1.0}
    assert plan._repr_html_().startswith("<pre>ci_test of 2000 rows")


def test_a_schema_says_what_the_columns_are() -> None:
    schema = dpc.Schema({"a": dpc.Levels([0, 1]), "b": dpc.Levels(list("xyz")), "z": dpc.Bounded(0, 9, cuts=[3])})
    plan = dpc.plan("ci_test", schema=schema, x="a", y="b", given=[], n=900, loss=dpc.PureDP(1))
    assert (plan.assumed.x, plan.assumed.y, plan.assumed.cells) == (2, 3, 1)
    plan = dpc.plan("effect", schema=schema, treatment="a", outcome="z", adjust=["b"], n=900, loss=dpc.PureDP(1))
    assert (plan.assumed.width, plan.assumed.cells, plan.assumed.outcome) == (9, 3, 0)


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "an unknown task": ({"task": "ci_tests", "n": 9, "loss": dpc.PureDP(1)}, ParameterError, "did you mean 'ci_test'"),
    "persons of a task of persons": ({"task": "did", "n": 500, "loss": GAUSSIAN, "persons": True}, ParameterError,
                                     "assumes no persons"),
    "two open": ({"n": 100}, ParameterError, "two of n, loss"),
    "none open": ({"n": 100, "loss": dpc.PureDP(1), "accuracy": 0.5}, ParameterError, "two of n, loss"),
    "no such assumption": ({"n": 100, "loss": dpc.PureDP(1), "corelation": 1}, ParameterError, "mean 'correlation'"),
    "no loss": ({"n": 100, "loss": dpc.NoPrivacy()}, LossError, "of a loss"),
    "a large loss": ({"n": 1_000, "loss": dpc.PureDP(30)}, LossError, "accept_large_epsilon"),
    "a chance above 1": ({"n": 100, "accuracy": 1.5}, ParameterError, "between 1e-09 and 0.999"),
    "out of reach": ({"n": 150, "accuracy": 0.9, "correlation": 0.01}, InfeasibleError, "even 150 rows"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_planned_is_refused_in_words(case: str) -> None:
    words, error, told = WRONG[case]
    with pytest.raises(error, match=told):
        dpc.plan(**{"task": "ci_test"} | words)


def test_the_command_plans_both_ways_and_draws_without_a_ledger(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    there = command("plan", "ci-test", "--n", "2000", "--epsilon", "1", "--plot", "p.png")
    assert all(part in there.output for part in ("2000 rows", "ε = 1", "0.99"))
    assert Path("p.png").stat().st_size > 1_000
    back = command("plan", "ci-test", "--epsilon", "1", "--power", "0.8", "--json")
    assert 700 < json.loads(back.output)["n"] < 1_500
    width = ["plan", "effect", "--n", "5000", "--target", "0.02", "--delta", "1e-6", "--json"]
    assert json.loads(command(*width).output)["loss"]["kind"] == "ApproxDP"
    stated = ["--share", "0.1", "--missing", "0.2", "--groups", "2", "--spread", "0.1", "--rarest", "0.05", "--json"]
    told = command("plan", "effect", "--n", "5000", "--epsilon", "1", *stated)
    assumed = json.loads(told.output)["assumed"]
    assert [assumed[name] for name in ("share", "missing", "groups", "spread", "rarest")] == [0.1, 0.2, 2, 0.1, 0.05]
    for words in (["ci-test", "--n", "100"], ["ci-test", "--n", "9", "--epsilon", "1", "--width", "3"],
                  ["study.toml", "--n", "100"], ["ci-tset", "--n", "9"]):  # fmt: skip
        assert command("plan", *words).exit_code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.png"]


def test_the_help_of_a_task_shows_the_options_of_that_task_alone() -> None:
    shown = {task: command("plan", task, "--help").output for task in ("effect", "ci-test")}
    assert "--treated" in shown["effect"] and "--correlation" not in shown["effect"]
    assert "--correlation" in shown["ci-test"] and "--treated" not in shown["ci-test"]


AT_SITES: Any = {"treatment": "a", "outcome": "y", "adjust": ["site"]}


def at_sites(sites: int, n: int, share: float = 0.5, missing: float = 0.0, spread: float = 0.15) -> Any:
    """Return the schema and a draw of so many rows, of a share treated at each site, some without an outcome."""

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        site, a = rng.integers(0, sites, n), (rng.random(n) < share).astype(int)
        y = np.clip(5 + 0.5 * a + 0.3 * site + 10 * spread * rng.normal(size=n), 0, 10)
        return {"a": a, "site": site, "y": np.where(rng.random(n) < missing, np.nan, y)}

    return dpc.Schema({"a": dpc.Levels([0, 1]), "site": dpc.Levels(range(sites)), "y": dpc.Bounded(0, 10)}), draw


@pytest.mark.parametrize(
    ("said", "groups"),
    [({"share": 0.03}, None), ({"missing": 0.6}, None), ({"share": 0.1}, "site"), ({"spread": 0.1}, None)],
)
def test_a_plan_of_an_effect_predicts_what_the_run_gives(said: dict[str, float], groups: str | None) -> None:
    schema, draw = at_sites(3, 10_000, **said)
    asked = AT_SITES | {"groups": groups}
    plan = dpc.plan("effect", schema=schema, n=10_000, loss=PURE, **asked, **{"share": 0.5} | said)
    assert 0.7 < np.median(half_widths(draw, schema, PURE, range(7), **asked)) / plan.accuracy < 1.4


@pytest.mark.parametrize(
    ("rows", "groups"),
    [({}, None), ({"share": 0.02}, None), ({"share": 0.01}, None), ({"share": 0.98, "spread": 0.3}, None),
     ({"missing": 0.6}, None), ({}, "site"), ({"share": 0.05}, "site")],
)  # fmt: skip
def test_no_interval_is_twice_as_wide_as_planned_where_the_share_of_treated_is_not_stated(
    rows: dict[str, float], groups: str | None
) -> None:
    schema, draw = at_sites(4, 20_000, **{"spread": 0.2} | rows)
    halves = half_widths(draw, schema, PURE, range(5), np.mean, groups=groups, **AT_SITES)
    plan = dpc.plan("effect", schema=schema, n=20_000, loss=PURE, **AT_SITES)
    assert np.median(halves) < 2 * plan.accuracy and plan.usual is not None
    assert f"±{plan.accuracy:.2g}" in plan.summary() and f"±{plan.usual:.2g}" in plan.summary()


@pytest.mark.replication
@pytest.mark.parametrize(
    ("task", "n", "words"), [("did", 3_000, {}), ("effect", 5_000, {"adjust": 1}), ("effect", 6_000, {"cells": 4})]
)
def test_rows_sought_without_a_share_of_treated_are_enough_where_few_are(task: str, n: int, words: Any) -> None:
    loss = dpc.ApproxDP(1, 1e-6) if task == "did" else dpc.PureDP(1)
    plan = dpc.plan(task, n=n, loss=loss, spread=0.1, **words)
    few = dpc.plan(task, n=n, loss=loss, spread=0.1, share=0.05, **words)
    even = dpc.plan(task, n=n, loss=loss, spread=0.1, share=0.5, **words)
    assert plan.usual == even.accuracy < few.accuracy <= plan.accuracy * 1.2
    if math.isfinite(plan.accuracy):
        sought: Any = {"loss": loss, "accuracy": plan.accuracy, "spread": 0.1}
        again = dpc.plan(task, **sought, **words)
        assert again.accuracy <= plan.accuracy and dpc.plan(task, **sought, share=0.5, **words).n < again.n < 1.1 * n


def test_few_treated_in_some_strata_are_planned_and_make_the_interval_wider() -> None:
    words: dict[str, Any] = {"n": 20_000, "loss": dpc.PureDP(1), "cells": 6, "share": 0.4, "spread": 0.1}
    even, tenth, few = (dpc.plan("effect", **words, rarest=rarest).accuracy for rarest in (0.4, 0.1, 0.02))
    assert even < tenth < few and even == pytest.approx(dpc.plan("effect", **words).accuracy, rel=0.1)
    assert rule_of(lambda: dpc.plan("effect", **words, rarest=0.5)) == "range"


def test_where_the_share_of_treated_is_not_stated_the_range_covers_few() -> None:
    loss = dpc.PureDP(1)
    plan = dpc.plan("effect", n=20_000, loss=loss)
    tenth = dpc.plan("effect", n=20_000, loss=loss, share=0.1, spread=0.15)
    assert float(plan.others.split()[0].removeprefix("±")) == pytest.approx(tenth.accuracy, rel=0.15)
    for share in (0.05, 0.02):
        few = dpc.plan("effect", n=20_000, loss=loss, share=share, spread=0.25)
        assert plan.low < plan.accuracy < few.accuracy < plan.high
    assert dpc.plan("effect", n=20_000, loss=loss, share=0.01, spread=0.2).accuracy < 2 * plan.high
    stated = dpc.plan("effect", n=20_000, loss=loss, share=0.5, spread=0.15)
    assert stated.accuracy == plan.accuracy and stated.high < plan.high


def test_the_range_says_what_it_covers_of_all_that_is_not_stated() -> None:
    stated: tuple[dict[str, float], ...] = ({}, {"share": 0.3}, {"spread": 0.2},
                                            {"rarest": 0.1, "spread": 0.2, "mean": 0.3})  # fmt: skip
    said = [EffectPlan(outcome=0, width=10.0, **one).range_condition for one in stated]
    assert len(set(said)) == 4 and said[3] == "" and not EffectPlan(outcome=2, share=0.3).range_condition
    said = [DidPlan(**one).range_condition for one in stated[:3]]
    assert len(set(said)) == 3 and DidPlan(share=0.3, spread=0.2).range_condition == ""


def test_a_study_says_what_its_plan_supposes(tmp_path: Path) -> None:
    asked = '[[question]]\nname = "q"\ntask = "effect"\ntreatment = "a"\noutcome = "u"\nadjust = []\nepsilon = 1\n'
    forecasts = {}
    for said in ("", "assumed = {share = 0.05, spread = 0.1}", "assumed = {nonsense = 1}"):
        forecasts[said] = dpc.Study.open(write(tmp_path, f"{asked}{said}\n", n=2_000)).plan().summary()
    plan = dpc.plan("effect", n=2_000, loss=dpc.PureDP(1), width=8.0, share=0.05, spread=0.1)
    assert f"±{plan.accuracy:.2g}" in forecasts["assumed = {share = 0.05, spread = 0.1}"]
    assert len(set(forecasts.values())) == 3


def test_a_plan_is_within_a_tenth_of_the_half_widths_of_trials() -> None:
    schema = dpc.Schema({"arm": dpc.Levels(["c", "d", "e"]), "site": dpc.Levels(["n", "s"]), "y": dpc.Bounded(0, 10)})
    asked: Any = {"treatment": "arm", "outcome": "y", "adjust": ["site"], "treated": "e", "control": "d"}
    method = RandomizedTrial(sizes=SIZES)
    told = dpc.plan("effect", schema=schema, **asked, n=MANY, loss=PURE, spread=0.15, method=method)
    sizes = (MANY // 500 * np.array(SIZES)).tolist()
    arm, site = (np.repeat(axis.ravel(), np.ravel(sizes)) for axis in np.indices((3, 2)))

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        y = np.clip(5 + 1.5 * rng.standard_t(6, MANY) / 1.5**0.5, 0, 10)
        return {"arm": np.array(["c", "d", "e"])[arm], "site": np.array(["n", "s"])[site], "y": y}

    wide = half_widths(draw, schema, PURE, range(100, 125), method=RandomizedTrial(sizes=sizes), **asked)
    assert told.accuracy == pytest.approx(np.median(wide), rel=0.1) and max(wide) < math.inf


def test_a_design_that_does_not_fit_is_named() -> None:
    for method in (RandomizedTrial(), RandomizedTrial(sizes=[1, 2, 3]), RandomizedTrial(probabilities=[0.5, 0.2])):
        with pytest.raises(ParameterError) as error:
            dpc.plan("effect", n=MANY, loss=PURE, method=method, cells=2)
        assert error.value.rule in ("shape", "one of two")


def test_the_command_plans_a_trial_as_the_library_does() -> None:
    method = RandomizedTrial(probabilities=[[0.8, 0.7], [0.2, 0.3]])
    told = dpc.plan("effect", n=MANY, loss=PURE, method=method, cells=2)
    words = ["plan", "effect", "--n", str(MANY), "--epsilon", "1", "--cells", "2", "--method", "trial", "--json"]
    found = json.loads(command(*words, "--probabilities", ".8,.7;.2,.3").output)
    assert found["accuracy"] == told.accuracy and "trial(" in found["assumed"]["method"]
    assert command(*words).exit_code == 2
    assert "--method trial" in command(*words[:-3], "--probabilities", ".8,.2").output


@pytest.mark.parametrize("said", [False, True])
def test_a_plan_says_whether_there_is_an_interval_with_the_word_that_tails_are_short_and_without(said: bool) -> None:
    method = dpc.methods.Aipw(light_tails=said)
    few, many = (
        dpc.plan("effect", n=n, loss=dpc.ApproxDP(1, 1e-6), adjust=1, share=0.5, method=method)
        for n in (3_000, 12_000)
    )
    assert math.isinf(few.accuracy) is not said and math.isfinite(many.accuracy)
    other = "without light_tails=True" if said else "with light_tails=True"
    assert f"{other} {'no interval' if said else '±'}" in few.summary() and f"{other} ±" in many.summary()


def test_a_direction_is_planned_from_a_questions_arguments() -> None:
    schema = dpc.Schema({"x": dpc.Bounded(0, 1), "y": dpc.Bounded(0, 1)})
    asked = {"schema": schema, "first": "x", "second": "y", "method": "auto"}
    plans = [dpc.plan("direction", n=1_000, loss=dpc.ApproxDP(4, 1e-6), **one) for one in (asked, {})]
    assert plans[0].accuracy == plans[1].accuracy


def test_plans_of_a_direction_from_other_simulated_rows_have_ranges_that_hold_their_mean(monkeypatch: Any) -> None:
    plans, drawn = [], graphs.anm_pair
    for seed in (1, 2, 3, 5, 8):
        graphs._pool.cache_clear()
        monkeypatch.setattr(graphs, "anm_pair", lambda n, seed=seed, **more: drawn(n, **more | {"seed": seed}))
        plans.append(dpc.plan("direction", n=2_000, loss=dpc.PureDP(1), curve="tanh"))
    graphs._pool.cache_clear()
    mean = sum(one.accuracy for one in plans) / len(plans)
    assert all(one.low <= mean <= one.high and one.high < 0.95 for one in plans)


def test_a_plan_of_a_number_that_is_adjusted_for_counts_what_it_confounds() -> None:
    def draw(rng: np.random.Generator, n: int = 5_000) -> dict[str, Any]:
        z = rng.normal(size=n)
        y = np.clip(0.5 + 0.15 * (0.3 * z + 0.91**0.5 * rng.normal(size=n)), 0, 1)
        return {"z": z, "a": (rng.random(n) < 1 / (1 + np.exp(-z / 2))).astype(int), "y": y}

    schema = {"z": dpc.Bounded(-4, 4), "a": dpc.Levels([0, 1]), "y": dpc.Bounded(0, 1)}
    halves = half_widths(draw, schema, PURE, range(15), treatment="a", outcome="y", adjust=["z"])
    plans = [dpc.plan("effect", n=5_000, loss=PURE, adjust=1, share=0.5, spread=0.15, mean=0.5, confounding=one)
             for one in (0.0, 0.3, 0.5)]  # fmt: skip
    assert plans[0].accuracy < plans[1].accuracy < plans[2].accuracy
    assert 0.75 < np.median(halves) / plans[1].accuracy < 1.3 and max(halves) < math.inf


def test_a_name_that_a_plan_does_not_know_is_told_before_what_is_open() -> None:
    assert rule_of(lambda: dpc.plan("synthetic_control", donors=40, loss=dpc.PureDP(1))) == "assumed"
