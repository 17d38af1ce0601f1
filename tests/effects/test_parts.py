"""Persons of several rows, and survey weights, in cells, moments and effects: a person's parts sum to one."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.audit.falsifier import falsify
from dpcausal.effects.moments import adaptive
from dpcausal.effects.moments.adaptive import ellipse_moments
from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm
from tests import factories
from tests.effects.tables import covered, effect_of
from tests.refusals import rule_of

SCHEMA = dpc.Schema({"a": dpc.Levels([0, 1]), "y": dpc.Bounded(0, 10), "x": dpc.Bounded(-5, 5)})
EXACT, PURE = dpc.NoPrivacy(), dpc.PureDP(1)


def table(columns: dict[str, Any], loss: Any = None, **how: Any) -> dpc.Table:
    return factories.table(columns, SCHEMA, loss, **how)


def split(persons: Any) -> tuple[Any, Any, Any]:
    """Return two rows a person, their parts and owners: the last column is the first row's part; its sign leaves out
    the second."""
    m, wide = len(persons), (persons.shape[1] - 1) // 2
    part = np.abs(persons[:, -1])
    rows = np.stack([persons[:, :wide], persons[:, wide:-1]], axis=1).reshape(2 * m, wide)
    parts = np.stack([part, np.where(persons[:, -1] < 0, 0.0, 1 - part)], axis=1).ravel()
    return rows, parts, np.repeat(np.arange(m), 2)


def apart(_rng: Any, m: int, low: Any, high: Any) -> Any:
    """Persons of one row, all shortened, one at the angle that moves the most."""
    rows = np.zeros((m, 5))
    rows[:, [0, 2]] = 1.0
    rows[0, :4] = np.tile([-0.3056, 0.9522], 2)
    rows[:, 4] = 1.0
    return rows


def test_rows_of_a_person_that_each_weigh_as_much_as_a_person_are_caught() -> None:
    def wrong(persons: Any) -> Any:
        rows, _, owners = split(persons)
        return ellipse_moments(2 * rows, np.ones(len(rows), bool), 1.5, 14, np.ones(len(rows)), owners)

    found = falsify(
        wrong, lambda m: adaptive.ellipse_moments_sensitivity(1.5, 14, 2).bound, sizes=[4], columns=5, low=-1.0,
        norm=Norm.L2, evaluations=300, starts={"apart": apart},
    )  # fmt: skip
    assert found.violated


def visits(seed: int = 1, persons: int = 400) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(persons), rng.integers(1, 6, persons))
    n = len(ids)
    return {"id": ids, "a": rng.integers(0, 2, n), "y": rng.uniform(0, 10, n), "x": rng.uniform(-5, 5, n)}


def test_without_noise_sums_are_those_of_weights_one_over_a_persons_kept_rows() -> None:
    columns = visits()
    columns["y"][::7] = np.nan
    kept = ~np.isnan(columns["y"])
    weights = kept / np.maximum(np.bincount(columns["id"], kept)[columns["id"]], 1)
    found = dpc.cells(table(columns, person="id"), by=["a"], values=["y"], loss=EXACT)
    N, T, Q = found.sums(found.values[0], (0,))[0]
    for arm in (0, 1):
        inside = weights * (columns["a"] == arm)
        unit = np.nan_to_num(columns["y"]) / 10
        assert [N[arm], T[arm], Q[arm]] == pytest.approx([inside.sum(), inside @ unit, inside @ unit**2], abs=1e-4)
    assert N.sum() == pytest.approx(len(np.unique(columns["id"][kept])), abs=1e-3)
    fit = dpc.moments(table(columns, person="id"), ["y", "x"], loss=EXACT).ols("y", ["x"])
    slope = np.polyfit(columns["x"][kept], columns["y"][kept], 1, w=np.sqrt(weights[kept]))[0]
    assert fit["x"].estimate == pytest.approx(slope, abs=1e-8)


def test_at_most_some_rows_of_a_person_count_as_equal_parts_of_the_person() -> None:
    columns = visits()
    found = dpc.cells(table(columns, person="id", max_rows_per_person=3), by=["a"], loss=EXACT)
    assert found.counts.sum() == pytest.approx(len(np.unique(columns["id"])), abs=1e-3)
    whole, many = (dpc.cells(table(columns, person="id", max_rows_per_person=most), by=["a"], values=["y"], loss=EXACT)
                   for most in (None, int(np.bincount(columns["id"]).max())))  # fmt: skip
    assert many.counts == pytest.approx(whole.counts, abs=1e-12)
    one = dpc.cells(table(columns, person="id", max_rows_per_person=1), by=["a"], values=["y"], loss=EXACT)
    rows_of = table(columns, person="id").rows(["a", "y"])
    assert one.counts.sum(axis=1).tolist() == np.bincount(rows_of.values["a"]).tolist()


def test_an_effect_is_the_mean_over_persons_whatever_the_most_rows() -> None:
    """The effect is 0 in persons of one row and 2 in those of five, as many of each."""
    rng = np.random.default_rng(8)
    several = rng.random(20_000) < 0.5
    person = np.repeat(np.arange(20_000), np.where(several, 5, 1))
    a = rng.integers(0, 2, len(person))
    y = np.clip(2 * a * several[person] + rng.normal(size=len(person)) + 4, 0, 10)
    columns = {"id": person, "a": a, "y": y, "x": np.zeros(len(person)), "w": np.ones(len(person))}
    for most in (None, 1, 2, 5, 20):
        found = effect_of(table(columns, PURE, person="id", max_rows_per_person=most), PURE, "stratified", 3, adjust=[])
        assert found.estimate == pytest.approx(1.0, abs=0.15) and not found.missing_text


def test_records_count_as_missing_only_where_noise_does_not_explain_it() -> None:
    shares = []
    for seed in range(30):
        rng = np.random.default_rng([7, seed])
        columns = {"a": rng.permutation(np.repeat([0, 1], [120, 40])), "y": np.clip(rng.normal(4, 1, 160), 0, 10)}
        for missing in (0, 60):
            columns["y"][:missing] = np.nan
            schema = {"a": dpc.Levels([0, 1]), "y": dpc.Bounded(0, 10)}
            private = factories.table(columns, schema, dpc.PureDP(2))
            found = effect_of(private, dpc.PureDP(2), "stratified", seed, adjust=[])
            shares.append((missing, bool(found.missing_text)))
    assert sum(said for missing, said in shares if not missing) <= 1
    assert sum(said for missing, said in shares if missing) >= 25


def test_weights_are_cut_at_their_maximum_and_negative_or_missing_ones_leave_out() -> None:
    columns = visits(persons=300)
    n = len(columns["id"])
    raw = np.random.default_rng(2).choice([-1.0, np.nan, np.inf, 0.5, 4.0, 100.0], n)
    weights = np.where(np.isnan(raw) | (raw < 0), 0.0, np.minimum(raw, 8.0)) / 8
    found = dpc.cells(table({**columns, "w": raw}, weight=("w", 8.0)), by=["a"], values=["y"], loss=EXACT)
    N, T, _ = found.sums(found.values[0], (0,))[0]
    for arm in (0, 1):
        inside = weights * (columns["a"] == arm)
        assert [N[arm], T[arm]] == pytest.approx([inside.sum(), inside @ columns["y"] / 10], abs=1e-4)
    moments = dpc.moments(table({**columns, "w": raw}, weight=("w", 8.0)), ["y", "x"], loss=EXACT)
    assert moments.mean(0) == pytest.approx(weights @ columns["y"] / weights.sum(), abs=1e-8)


def test_a_weighted_effect_is_about_the_population_that_the_weights_stand_for() -> None:
    """The effect is 4 in a group that was sampled a tenth as often, 0 in the other; half the people are of each."""
    rng = np.random.default_rng(3)
    n = 40_000
    rare, a = rng.random(n) < 1 / 11, rng.integers(0, 2, n)
    y = np.clip(3 + 4 * rare * a + rng.normal(size=n), 0, 10)
    columns = {"a": a, "y": y, "x": rng.uniform(-5, 5, n), "w": np.where(rare, 10.0, 1.0)}
    for method, adjust, loss in (("stratified", [], dpc.PureDP(1)), ("aipw", ["x"], dpc.ApproxDP(2, 1e-6))):
        held = []
        for seed in range(10):
            asked = table(columns, loss, weight=("w", 10.0))
            found = effect_of(asked, loss, method, seed, adjust=adjust)
            low, high = found.interval
            held.append(low < 2 < high)
            assert high - low < 0.5
        assert sum(held) >= 9, method
        assert effect_of(table(columns, loss), loss, method, 5, adjust=adjust).estimate < 0.6
    entry = asked.ledger.entries()[0]
    assert '"weight":["w",10.0]' in str(entry.detail).replace(" ", "") and "the largest weight" in found.details()


def test_the_intervals_of_persons_with_many_rows_hold_the_truth() -> None:
    """60 draws at coverage .9: fewer than 36 hits have a probability below 1e-8."""
    answers, loss = [], dpc.PureDP(2)
    for run in range(60):
        rng = np.random.default_rng([4, run])
        own, arm = rng.normal(size=1_000), rng.integers(0, 2, 1_000)
        rows = rng.integers(1, 9, 1_000)
        ids = np.repeat(np.arange(1_000), rows)
        y = np.clip(5 + 0.5 * arm[ids] + own[ids] + 0.5 * rng.normal(size=len(ids)), 0, 10)
        columns = {"id": ids, "a": arm[ids], "y": y, "x": np.zeros(len(ids))}
        asked = table(columns, loss, person="id")
        answers.append(effect_of(asked, loss, "auto", run, adjust=[], coverage=0.9))
    held = covered(answers, 0.5)
    assert len(held) == 60 and sum(held) >= 36


def test_what_cannot_weigh_rows_refuses_before_it_spends() -> None:
    columns = {**visits(), "w": np.ones(len(visits()["id"]))}
    asked = table(columns, dpc.PureDP(1), weight=("w", 8.0))
    for call in (
        lambda: dpc.ci_test(asked, "x", "y", given=[], loss=dpc.PureDP(1)),
        lambda: dpc.direction(asked, "x", "y", loss=dpc.PureDP(1)),
        lambda: dpc.discover(asked, loss=dpc.PureDP(1)),
    ):
        assert rule_of(call, ParameterError) == "weights"
    assert not asked.ledger.entries()
