"""Numbers that are adjusted for without cuts: how finely they are cut, and that what is left does not mislead."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.effects.cells import api as cells
from dpcausal.effects.estimators import stratified
from dpcausal.effects.nuisance import part_check
from dpcausal.effects.nuisance.part_check import PartBias
from dpcausal.errors import InfeasibleError
from tests.effects.tables import EXACT, covered, effect_of, table_of

LOWER, UPPER = 18.0, 98.0


def effect(n: int, loss: Any, cuts: list[float] | None = None, seed: int = 1, **asked: Any) -> Any:
    """Return the effect where age moves the treatment and, by a curve, the outcome; it is 5."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 90, n)
    a = rng.random(n) < 1 / (1 + np.exp((55 - age) / 12))
    columns = {"a": a.astype(int), "age": age, "y": 80 + 0.02 * (age - 40) ** 2 + 5 * a + rng.normal(0, 10, n)}
    schema = {"a": dpc.Levels([0, 1]), "age": dpc.Bounded(LOWER, UPPER, cuts=cuts), "y": dpc.Bounded(0, 250)}
    return effect_of(table_of(columns, schema, loss), loss, "stratified", seed, adjust=["age"], **asked)


def parts(result: Any) -> int:
    released = getattr(result, "release", result)
    return len(released.levels[released.by.index("age")])


def test_with_many_rows_the_interval_holds_though_age_bends_the_outcome() -> None:
    results = [effect(60_000, dpc.PureDP(1), seed=seed) for seed in range(10)]
    # Four parts: off by 1.04, ± 0.35, held in none.
    assert sum(one.interval[0] < 5 < one.interval[1] for one in results) >= 8


def test_more_rows_and_more_loss_cut_finer_and_few_rows_into_four() -> None:
    n = [parts(effect(n, dpc.PureDP(1))) for n in (1_000, 5_000, 20_000, 80_000)]
    assert n[0] == 4 and n == sorted(set(n))
    assert parts(effect(20_000, dpc.PureDP(0.2))) < parts(effect(20_000, dpc.PureDP(2))) <= n[-1]


def test_the_finer_cuts_are_those_that_a_schema_could_declare_and_declared_ones_stay() -> None:
    result = effect(20_000, EXACT)
    p = parts(result)
    cuts = [LOWER + (UPPER - LOWER) * k / p for k in range(1, p)]
    own, coarse, shifted = (effect(20_000, EXACT, cuts=one) for one in (cuts, cuts[1::2], cuts[::2]))
    assert p > 4 and np.array_equal(result.release.counts, own.release.counts)
    # Declared parts are taken as they are: nothing is extrapolated, or added for what varies within.
    beyond = own.estimate - (coarse.estimate + shifted.estimate) / 2
    assert 0 < (result.estimate - own.estimate) / beyond < 1 / 3
    half, own_half = (one.interval[1] - one.estimate for one in (result, own))
    assert half > own_half == pytest.approx(own.estimate - own.interval[0])
    assert parts(effect(20_000, dpc.PureDP(1), cuts=[40.0, 65.0])) == 3
    assert parts(effect(20_000, dpc.PureDP(1), groups="age")) == 4
    caveats = " ".join(result.guarantee.caveats)
    assert "assumes independent rows" in caveats and "nothing that the treatment changes" in caveats


def test_an_effect_whose_learnt_parts_were_not_checked_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stratified.UNCHECKED not in effect(20_000, dpc.PureDP(1)).notes
    # By public numbers there is a check; what the windows cost leaves none.
    monkeypatch.setattr(stratified, "check_share", lambda _, __, loss: Fraction(int(loss.epsilon == 1), 10))
    result = effect(20_000, dpc.PureDP(1))
    assert stratified.UNCHECKED in result.notes and stratified.UNCHECKED not in result.guarantee.caveats


def test_a_bias_within_parts_widens_the_end_that_it_has_moved_away_from_the_truth() -> None:
    assert PartBias(0.2, 0.1).allowances == pytest.approx((0.35, 0.0))
    assert PartBias(-0.2, 0.1).allowances == pytest.approx((0.0, 0.35))
    assert PartBias(0.14, 0.1).allowances == PartBias(-0.14, 0.1).allowances == (0.0, 0.0)


def test_residuals_of_treatment_are_in_units_of_the_largest_that_released_probabilities_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    largest, sums = [], part_check.residual_sums

    def recorded(part: Any, size: int, residuals: Any, mass: Any) -> Any:
        largest.append(float(np.abs(residuals[:, 0]).max()))
        return sums(part, size, residuals, mass)

    monkeypatch.setattr(part_check, "residual_sums", recorded)
    place, second = np.arange(8000), np.arange(8000) >= 4000
    a = (place % 10 < np.where(second, 7, 4)).astype(int)  # its largest residuals are 0.6 and 0.7
    columns = {"a": a, "s": second.astype(int), "x": place % 97 / 97, "y": place % 89 / 89}
    flag, unit = dpc.Levels([0, 1]), dpc.Bounded(0, 1)
    table = table_of(columns, {"a": flag, "s": flag, "x": unit, "y": unit}, EXACT)
    effect_of(table, EXACT, "stratified", adjust=["s", "x"])
    assert largest and max(largest) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("wide", "shift", "ends"), [(3, 0, (-3.0, 3.0)), (12, 0, (-3.0, 3.0)), (24, -9, (-12.0, -6.0))]
)
def test_an_outer_quarter_that_one_count_shows_empty_by_chance_is_kept_and_empty_ones_are_left(
    wide: float, shift: float, ends: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A quarter at either end has 7 % of the records, the noise of a count 1.8 %: one count in six is below the limit.
    found, learnt = [], stratified.learnt_window

    def recorded(*asked: Any) -> Any:
        found.append(learnt(*asked))
        return found[-1]

    monkeypatch.setattr(stratified, "learnt_window", recorded)
    rng = np.random.default_rng(8)
    x = np.clip(rng.normal(size=10_000), -3, 3)
    columns = {"a": rng.integers(0, 2, 10_000), "x": x + shift, "y": np.clip(x + rng.normal(size=10_000), -5, 5)}
    schema = {"a": dpc.Levels([0, 1]), "x": dpc.Bounded(-wide, wide), "y": dpc.Bounded(-5, 5)}
    for seed in range(30):
        effect_of(table_of(columns, schema, dpc.PureDP(1)), dpc.PureDP(1), "stratified", seed)
    assert sum(window == ends for window, _ in found) >= 23  # 18 to 22 where no end moves back
    assert max(histograms for _, histograms in found) <= stratified.ROUNDS


@pytest.mark.parametrize("lower", [2.0**51, 2.0**52])
def test_bounds_too_near_each_other_for_text_keep_their_parts(lower: float) -> None:
    schema = {"a": dpc.Levels([0, 1]), "age": dpc.Bounded(lower, lower + 4), "y": dpc.Bounded(0, 1)}
    rows = {"a": np.arange(20_000) % 2, "age": lower + np.arange(20_000) % 5, "y": np.full(20_000, 0.5)}
    result = effect_of(table_of(rows, schema, dpc.PureDP(1)), dpc.PureDP(1), "auto", adjust=["age"])
    assert parts(result) == 4 and math.isfinite(result.estimate)


@pytest.mark.parametrize("step", [False, True])
def test_what_varies_within_parts_widens_the_interval_by_how_far_wider_parts_move_the_answer(step: bool) -> None:
    # Four parts leave a bias of many errors: intervals of parts that were declared miss, of the same parts uncut hold.
    rng = np.random.default_rng(3)
    age = rng.uniform(0, 100, 40_000)
    up = 1.0 * (age > 55) if step else age / 100
    a, u = (rng.random(40_000) < 0.1 + 0.8 * up).astype(int), rng.random(40_000)
    columns = {"a": a, "age": age, "y": 20 + 20 * up + 5 * u, "sick": (u < 0.2 + 0.6 * up).astype(int)}
    effects = {}
    for cuts in (None, [25.0, 50.0, 75.0]):
        schema = {"a": dpc.Levels([0, 1]), "age": dpc.Bounded(0, 100, cuts=cuts), "y": dpc.Bounded(0, 50),
                  "sick": dpc.Levels([0, 1])}  # fmt: skip
        table = table_of(columns, schema, EXACT)
        saved: Any = dpc.Release.from_json(
            dpc.cells(table, by=["a", "age"], values=["y", "sick"], loss=EXACT).to_json()
        )
        assert parts(saved) == 4
        for outcome in ("y", "sick"):
            one = effects[outcome, cuts is None] = saved.effect(treatment="a", outcome=outcome, adjust=["age"])
            assert parts(one) == 4 and (one.interval[0] <= 0 <= one.interval[1]) == (cuts is None)
            assert any("within parts of numbers" in note for note in one.notes) == (cuts is None)
            for ratio in (one.risk_ratio, one.odds_ratio) if outcome == "sick" else ():
                assert (ratio.interval[0] <= 1 <= ratio.interval[1]) == (cuts is None)
    coarse = []
    for cuts in ([50.0], [25.0, 75.0]):
        part = np.digitize(age, cuts)
        means = [np.bincount(part[a == arm], columns["y"][a == arm]) / np.bincount(part[a == arm]) for arm in (0, 1)]
        coarse.append(float((means[1] - means[0]) @ np.bincount(part)) / 40_000)
    uncut, cut = effects["y", True], effects["y", False]
    assert uncut.estimate == pytest.approx(cut.estimate + (cut.estimate - np.mean(coarse)) / 3, rel=1e-2)
    wider = (uncut.interval[1] - uncut.interval[0] - cut.interval[1] + cut.interval[0]) / 2
    assert wider == pytest.approx(0.75 * max(abs(one - cut.estimate) for one in coarse), rel=1e-2)


def test_more_cells_than_are_released_are_refused_before_the_spend(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (cells, stratified):
        monkeypatch.setattr(room, "MOST_CELLS", 200)
    place, loss = np.arange(40_000), dpc.PureDP(8)
    schema = {"a": dpc.Levels([0, 1]), "s": dpc.Levels(range(200)), "x": dpc.Bounded(0, 1), "y": dpc.Bounded(0, 1)}
    rows = {"a": place % 2, "s": place // 2 % 200, "x": place % 97 / 97, "y": place % 89 / 89}
    table = table_of(rows, schema, loss)
    with pytest.raises(InfeasibleError):
        effect_of(table, loss, "stratified", adjust=["s"])
    assert not table.ledger.entries()
    assert 150 < effect_of(table, loss, "stratified").release.counts.size <= 200


BENDS = {"line": lambda x: x, "step": lambda x: 2.0 * (x > 0.5) - 0.6, "wave": lambda x: np.sin(4 * x),
         "none": lambda x: 0 * x}  # fmt: skip


@pytest.mark.parametrize("shape", BENDS)
def test_intervals_hold_where_confounding_bends_within_parts_of_numbers_and_a_check_costs_little(shape: str) -> None:
    ends, loss = [], dpc.PureDP(1)
    schema = {"a": dpc.Levels([0, 1]), "x": dpc.Bounded(-3, 3), "w": dpc.Bounded(-3, 3), "y": dpc.Bounded(-12, 12)}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x, w = np.clip(rng.normal(size=(2, 20_000)), -3, 3)
        bend = BENDS[shape](x)
        a = (rng.random(20_000) < 1 / (1 + np.exp(-bend))).astype(int)
        y = np.clip(0.4 * a + bend + rng.normal(size=20_000), -12, 12)
        table = table_of({"a": a, "x": x, "w": w, "y": y}, schema, loss)
        found = effect_of(table, loss, "stratified", seed=seed, adjust=["x", "w"])
        assert found.interval is not None
        held = found.interval[0] <= 0.4 <= found.interval[1]
        ends.append((found.estimate - found.interval[0], found.interval[1] - found.estimate, held))
    below, above, holding = np.array(ends).T
    assert holding.sum() >= 10
    # The estimate of a wave is too high by 0.4: the truth lies below, where the interval is wider.
    assert shape != "wave" or (below > 1.25 * above).all()
    assert shape != "none" or (below < 0.2).all()


def of_values(values: Any, a: Any, y: Any, column: Any, loss: Any = EXACT, **asked: Any) -> Any:
    schema = {"a": dpc.Levels([0, 1]), "x": column, "y": dpc.Bounded(-8, 8)}
    return effect_of(table_of({"a": a, "x": values, "y": y}, schema, loss), loss, "stratified", adjust=["x"], **asked)


def drawn_with(x: Any, rng: Any, scale: float) -> tuple[Any, Any]:
    a = (rng.random(len(x)) < 1 / (1 + np.exp(-2 * (x - x.mean()) / scale))).astype(int)
    return a, np.clip(a + 3 * (x - x.mean()) / scale + rng.normal(size=len(x)), -8, 8)


@pytest.mark.parametrize(("low", "high"), [(0, 3), (1, 7), (-4, 3), (0, 9)])
def test_each_of_few_whole_values_has_its_own_part_as_if_they_were_levels(low: int, high: int) -> None:
    rng = np.random.default_rng(7)
    x = rng.integers(low, high + 1, 20_000)
    a, y = drawn_with(x, rng, (high - low) / 2)
    number, levels = (of_values(x, a, y, one) for one in (dpc.Bounded(low, high), dpc.Levels(range(low, high + 1))))
    assert len(number.release.levels[1]) == high - low + 1
    assert number.estimate == pytest.approx(levels.estimate, abs=1e-12)
    assert number.interval == pytest.approx(levels.interval, abs=1e-12)


def test_a_continuous_number_with_whole_bounds_has_parts_of_one_width() -> None:
    rng = np.random.default_rng(8)
    x = rng.uniform(0, 7, 20_000)
    for values in (x, np.where(rng.random(20_000) < 0.4, np.round(x), x), np.round(2 * x) / 2):
        a, y = drawn_with(values, rng, 3.5)
        for loss in (EXACT, dpc.PureDP(1)):
            inner = of_values(values, a, y, dpc.Bounded(0, 7), loss).release.levels[1][1:-1]
            ends = np.array([[float(end) for end in one.split(" to ")] for one in inner])
            assert np.allclose(np.diff(ends), 7 / (len(inner) + 2), rtol=1e-4)


def test_whole_values_beyond_the_ends_of_most_records_stay_checked() -> None:
    rng = np.random.default_rng(9)
    x = np.minimum(rng.poisson(2, 50_000), 24)
    a, y = drawn_with(x, rng, 2)
    found = of_values(x, a, y, dpc.Bounded(0, 24), dpc.PureDP(1))
    labels = found.release.levels[1]
    assert labels[1] == "0.5 to 1.5" and len(labels) < 25
    assert found.interval[0] < 1 < found.interval[1]


def test_a_number_of_few_whole_values_beside_a_continuous_one_leaves_that_checked() -> None:
    held = 0
    for seed in range(10):
        rng = np.random.default_rng([11, seed])
        x, w = rng.integers(0, 6, 40_000), rng.uniform(-1, 1, 40_000)
        a, y = drawn_with(x + w, rng, 2)
        schema = {"a": dpc.Levels([0, 1]), "x": dpc.Bounded(0, 5), "w": dpc.Bounded(-1, 1), "y": dpc.Bounded(-8, 8)}
        table = table_of({"a": a, "x": x, "w": w, "y": y}, schema, dpc.PureDP(1))
        found = effect_of(table, dpc.PureDP(1), "stratified", seed, adjust=["x", "w"])
        assert len(found.release.levels[1]) == 6 and len(found.release.levels[2]) > 4
        assert found.release.cut == ("w",)
        held += found.interval[0] < 1 < found.interval[1]
    assert held >= 8


def test_a_number_all_between_two_whole_ones_is_cut_where_it_lies() -> None:
    """Seen to fail: it was cut between the whole values there, of which there are none, and the paid call ended."""
    rng = np.random.default_rng(12)
    x = rng.uniform(0.3, 0.35, 20_000)
    a, y = drawn_with(x, rng, 0.025)
    found = of_values(x, a, y, dpc.Bounded(0, 1), dpc.PureDP(1))
    assert len(found.release.levels[1]) >= 4 and found.interval[0] < 1 < found.interval[1]


def of_two_strata(seed: int, shares: Any, treated: Any, n: int = 20_000) -> dict[str, Any]:
    """Return rows of two strata whose effects are 1 and 5."""
    rng = np.random.default_rng(seed)
    z = (rng.random(n) < shares[1]).astype(int)
    a = (rng.random(n) < np.array(treated)[z]).astype(int)
    return {"z": z, "a": a, "y": 6 + z + np.array([1.0, 5.0])[z] * a + 1.5 * rng.normal(size=n)}


STRATA = {"z": dpc.Levels([0, 1]), "a": dpc.Levels([0, 1]), "y": dpc.Bounded(0, 20)}


def test_what_an_effect_among_the_treated_leaves_out_is_counted_among_the_treated() -> None:
    for seed in range(5):
        columns = of_two_strata(seed, (0.97, 0.03), (0.02, 0.97))
        found = effect_of(table_of(columns, STRATA, dpc.PureDP(1)), dpc.PureDP(1), "stratified", seed, adjust=["z"],
                          estimand="att")  # fmt: skip
        in_first = float(((columns["z"] == 0) & (columns["a"] == 1)).sum() / columns["a"].sum())
        assert found.share_supported == pytest.approx(in_first, abs=0.06) and found.interval is None


def test_a_small_stratum_that_is_left_out_is_named_and_is_not_among_all() -> None:
    loss = dpc.PureDP(0.5)
    for seed in range(5):
        columns = of_two_strata(seed, (0.96, 0.04), (0.5, 0.998), 50_000)
        found = effect_of(table_of(columns, STRATA, loss), loss, "stratified", seed, adjust=["z"])
        assert 0.95 < found.share_supported < 0.97 and found.is_partly_supported
        assert any("not in the estimate" in note for note in found.notes)


@pytest.mark.parametrize("law", ["poisson", "geometric"])
def test_whole_numbers_above_the_usual_ones_are_not_taken_for_the_last_of_them(law: str) -> None:
    held = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        count = rng.poisson(0.8, 20_000) if law == "poisson" else rng.geometric(0.4, 20_000) - 1
        a = (rng.random(20_000) < 1 / (1 + np.exp(-(count - 1) * 0.8))).astype(int)
        y = np.clip(a + count + rng.normal(size=20_000), -5, 25)
        table = table_of({"z": count, "a": a, "y": y}, {"z": dpc.Bounded(0, 20), "a": dpc.Levels([0, 1]),
                         "y": dpc.Bounded(-5, 25)}, dpc.PureDP(1))  # fmt: skip
        held.append(effect_of(table, dpc.PureDP(1), "stratified", seed, adjust=["z"]))
    hits = covered(held, 1.0)
    assert len(hits) >= 20 and np.mean(hits) >= 0.85
