"""Differences in differences: the bound, equality with a plain Callaway–Sant'Anna, who is left out, what is refused."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.effects.did.cohort_sums import cohort_sums, cohort_sums_sensitivity
from dpcausal.errors import InfeasibleError, LossError, ParameterError, SchemaError
from dpcausal.statistics.moments import grid_bits
from tests import factories
from tests.effects.tables import covered, paths_of
from tests.refusals import rule_of
from tests.registry.effects import RADIUS

SCHEMA = dpc.Schema({
    "t": dpc.Levels(range(1, 7)), "g": dpc.Levels(["1", "3", "5", "never"]), "y": dpc.Bounded(-12, 12),
})  # fmt: skip
LOSS, EXACT = dpc.ApproxDP(1, 1e-6), dpc.NoPrivacy()


def made(n: int, seed: int = 1, trend: float = 0.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    g, t = np.array([3, 5, 99])[rng.integers(0, 3, n)], np.arange(1, 7)
    e = rng.normal(size=(n, 6)).cumsum(axis=1) * 0.5
    effect = np.where(t >= g[:, None], 1 + 0.3 * (t - g[:, None]), 0.0)
    y = 2 * rng.normal(size=n)[:, None] + 0.3 * t + e + effect + trend * t * (g < 99)[:, None]
    return np.clip(y, -12, 12), g


def frame(y: Any, g: Any) -> dict[str, Any]:
    return paths_of(y, g=np.array(["never" if start == 99 else str(start) for start in g], dtype=object))


ROLES = {"time": "t", "outcome": "y", "cohort": "g"}


def table(columns: Any, loss: Any = LOSS, schema: dpc.Schema = SCHEMA, person: str | None = "id", **how: Any) -> Any:
    return factories.table(columns, schema, loss, person=person, **how)


def asked(columns: Any, loss: Any = LOSS, seed: int = 1, **options: Any) -> Any:
    with dpc.simulated_noise(seed):
        return dpc.did(table(columns, loss), **ROLES | options, loss=loss)


def plain(y: Any, g: Any, not_yet: bool) -> dict[tuple[int, int], tuple[float, Any]]:
    """Return ATT(g, t) and each person's influence, from the rows."""
    found = {}
    for start in (3, 5):
        for t in range(1, 7):
            others = g == 99
            if not_yet:
                others |= (g > max(t, start - 1)) & (g != start)
            change, own = y[:, t - 1] - y[:, start - 2], g == start
            att = change[own].mean() - change[others].mean()
            influence = own / own.mean() * (change - change[own].mean())
            influence -= others / others.mean() * (change - change[others].mean())
            found[start, t] = float(att), influence
    return found


def pooled(single: Any, g: Any, pairs: list[tuple[int, int]]) -> tuple[float, Any]:
    """Return the mean of some effects by the sizes of their cohorts, and each person's influence."""
    shares = {start: (g == start).mean() for start in (3, 5)}
    total = sum(shares[start] for start, _ in pairs)
    mean = sum(shares[start] * single[start, t][0] for start, t in pairs) / total
    return mean, sum(
        shares[start] * single[start, t][1] + ((g == start) - shares[start]) * (single[start, t][0] - mean)
        for start, t in pairs
    ) / total  # fmt: skip


@pytest.mark.proves("cohort-sums")
def test_parts_of_persons_keep_the_bound_and_whole_ones_are_the_sums_without_weights() -> None:
    rng, bits = np.random.default_rng(4), grid_bits(5, RADIUS)
    bound, reached = float(cohort_sums_sensitivity(2, 2, RADIUS, bits).bound), 0.0
    for _ in range(800):
        rows = rng.choice([-3.0, -RADIUS, 0.1, RADIUS, 3.0], size=(6, 2))
        cohorts, weights = rng.integers(0, 2, 6), rng.choice([0.0, 1 / 3, 1.0], size=6)
        one, other = (
            cohort_sums(cohorts[who], 2, rows[who], np.ones(5, bool), RADIUS, bits, weights[who])
            for who in ([0, 1, 2, 3, 4], [5, 1, 2, 3, 4])
        )
        reached = max(reached, float(np.linalg.norm(one - other)) / bound)
        whole = cohort_sums(cohorts, 2, rows, weights > 0, RADIUS, bits)
        assert (whole == cohort_sums(cohorts, 2, rows, weights > 0, RADIUS, bits, np.ones(6))).all()
    assert 0.97 < reached <= 1


def test_weighted_persons_count_by_the_mean_of_their_weights_and_the_interval_is_never_narrower() -> None:
    y, g = made(600)
    rng = np.random.default_rng(3)
    weight = rng.uniform(0, 4, 600)
    columns = frame(y, g) | {"w": np.repeat(weight, 6) * np.tile([0.5, 1.5], 1800)}

    def weighted(**options: Any) -> Any:
        return dpc.did(table(columns, EXACT, weight=("w", 8.0), **options), **ROLES, loss=EXACT)

    found = weighted()
    for one in found.by_cohort:
        own, change = g == int(one.cohort), y[:, int(one.time) - 1] - y[:, int(one.cohort) - 2]
        means = [np.average(change[who], weights=weight[who]) for who in (own, g == 99)]
        assert one.estimate == pytest.approx(means[0] - means[1], abs=1e-8)
        errors = [(weight[who] ** 2 @ (change[who] - mean) ** 2) / weight[who].sum() ** 2
                  for who, mean in zip((own, g == 99), means, strict=True)]  # fmt: skip
        assert one.standard_error >= np.sqrt(sum(errors))
    assert weighted(max_rows_per_person=6).att.estimate == pytest.approx(found.att.estimate, abs=1e-8)
    assert weighted(max_rows_per_person=9).att.estimate == pytest.approx(found.att.estimate, abs=1e-8)


@pytest.mark.parametrize("control", ["never", "not-yet"])
def test_without_noise_effects_and_errors_are_those_of_callaway_and_santanna(control: str) -> None:
    y, g = made(900)
    found = asked(frame(y, g), EXACT, control=control)
    single = plain(y, g, control == "not-yet")
    assert len(found.by_cohort) == 10
    for one in found.by_cohort:
        att, influence = single[int(one.cohort), int(one.time)]
        assert one.estimate == pytest.approx(att, abs=1e-8)
        assert one.standard_error == pytest.approx(influence.std() / np.sqrt(900), abs=1e-8)
    for name, pairs in (("all", [pair for pair in single if pair[1] >= pair[0]]), ("+1", [(3, 4), (5, 6)])):
        mean, influence = pooled(single, g, pairs)
        one = next(one for one in (found.att, *found.event_study) if one.name == name)
        assert one.estimate == pytest.approx(mean, abs=1e-8)
        assert one.standard_error == pytest.approx(float(np.std(influence)) / 30, abs=1e-8)
        assert one.noise_error == 0


def test_persons_with_a_gap_or_two_cohorts_are_left_out_and_rows_of_one_period_count_by_their_mean() -> None:
    y, g = made(600)
    columns = frame(y, g)
    columns["y"][3] = np.nan  # person 0 lacks a period
    columns["g"][7] = "5" if columns["g"][6] == "3" else "3"  # person 1 has two cohorts
    twice = {name: np.concatenate([values, values[12:18]]) for name, values in columns.items()}
    twice["y"][12:18] += 1
    twice["y"][-6:] -= 1  # person 2 twice a period, about the same mean
    reference = asked(frame(y[2:], g[2:]), EXACT)
    found = asked(twice, EXACT)
    assert found.att.estimate == pytest.approx(reference.att.estimate, abs=1e-10) and found.n == 600
    assert found.to_dict()["share_counted"] == found.share_counted == pytest.approx(598 / 600)


def test_of_persons_with_weights_no_share_is_told_as_sums_of_weights_show_none() -> None:
    columns = frame(*made(600)) | {"w": np.ones(3600)}
    found = dpc.did(table(columns, EXACT, weight=("w", 3)), **ROLES, loss=EXACT)
    assert found.share_counted is None and found.release.weighed and "600 persons" in found.headline()[0]
    reference = asked(columns, EXACT)
    assert found.att.estimate == pytest.approx(reference.att.estimate, abs=1e-9) and reference.share_counted == 1


def test_the_first_lines_name_whom_the_answer_is_about_its_periods_in_order_and_who_is_never_treated() -> None:
    columns = frame(*made(600))
    whole = asked(columns, EXACT).headline()
    assert whole[0].endswith("600 persons") and "1, 2, 3, 4, 5, 6" in whole[1] and "never" in whole[1]
    columns["y"][: 6 * 300 : 6] = np.nan  # half of the persons lack the first period
    found = asked(columns, EXACT)
    assert "50 % of 600 persons" in found.headline()[0] and found.never == ("never",)
    chosen = dpc.did(table(columns, EXACT).where("g", among=["3", "never"]), **ROLES, loss=EXACT).headline()[0]
    assert found.guarantee.subgroup == "" and "g in" in chosen and "%" not in chosen


def test_noisy_effects_lie_within_their_errors_bands_are_wider_and_asking_again_is_free() -> None:
    y, g = made(6_000)
    private = table(frame(y, g))
    with dpc.simulated_noise(2):
        found = dpc.did(private, **ROLES, loss=LOSS)
    head = private.ledger.head
    for one in found.event_study:
        truth = 0.0 if one.event < 0 else 1 + 0.3 * one.event
        assert abs(one.estimate - truth) < 4.5 * one.standard_error and 0 < one.noise_error < one.standard_error
        assert one.band[0] < one.interval[0] < one.interval[1] < one.band[1]
    assert found.pretrend > 0.001 and len(found.warnings()) == len(found.notes)
    again: Any = dpc.Release.from_json(found.release.to_json())
    assert again.to_dict() == found.release.to_dict() and again.did().to_dict() == found.to_dict()
    assert again.did(control="not-yet", coverage=0.9).control == "not-yet" and private.ledger.head == head
    drawn = sorted(float(line.get_xdata()[0]) for line in found.plot().lines if line.get_marker() == "o")
    assert drawn == sorted([-1.0, *(float(one.event) for one in found.event_study)])


def test_a_trend_before_treatment_is_found() -> None:
    found = asked(frame(*made(6_000, trend=0.15)), seed=2)
    assert found.pretrend < 0.001 and len(found.warnings()) == len(found.notes) + 1
    low, high = found.trend.interval
    assert low < 0.15 < high and 0 < found.trend.noise_error < found.trend.standard_error < 0.03


def test_without_noise_the_trend_is_that_of_generalised_least_squares_and_the_test_shares_its_level() -> None:
    """Statsmodels' GLS of the effects before treatment on how far before it they are, weighed by the influences."""
    from scipy.stats import chi2
    from statsmodels.regression.linear_model import GLS

    y, g = made(900, trend=0.02)
    found, single = asked(frame(y, g), EXACT), plain(y, g, False)
    pairs = [(start, t) for start in (3, 5) for t in range(1, start - 1)]
    influence = np.stack([single[pair][1] for pair in pairs])
    fit = GLS([single[pair][0] for pair in pairs], [t - start + 1 for start, t in pairs],
              influence @ influence.T / 900**2).fit(cov_type="fixed scale")  # fmt: skip
    assert found.trend.estimate == pytest.approx(fit.params[0], abs=1e-8)
    assert found.trend.standard_error == pytest.approx(fit.bse[0], abs=1e-8)
    line = chi2.sf((fit.params[0] / fit.bse[0]) ** 2, 1)
    means, influences = zip(*(pooled(single, g, of) for of in ([(3, 1), (5, 3)], [(5, 2)], [(5, 1)])), strict=True)
    parts = np.stack(influences)
    whole = chi2.sf(means @ np.linalg.solve(parts @ parts.T / 900**2, means), 3)
    assert found.pretrend == pytest.approx(min(line / 0.8, whole / 0.2, 1), abs=1e-8)


def test_who_has_no_cohort_is_never_treated_where_that_is_declared_and_otherwise_nothing_is_paid() -> None:
    columns = frame(*made(6_000))
    columns["g"][columns["g"] == "never"] = None
    for levels, control in ((dpc.Levels(["3", "5"]), "never"), (dpc.Levels(["3", "1"]), "not-yet")):
        private = table(columns, schema=dpc.Schema({**SCHEMA, "g": levels}))
        assert rule_of(lambda: dpc.did(private, **ROLES, loss=LOSS, control=control)) == "never-treated"  # noqa: B023
        assert private.ledger.entries() == []
    with dpc.simulated_noise(1):
        private = table(columns, schema=dpc.Schema({**SCHEMA, "g": dpc.Levels(["3", "5"], other="never")}))
        found = dpc.did(private, **ROLES, loss=LOSS)
    assert {one.cohort for one in found.by_cohort} == {"3", "5"} and found.att.interval is not None
    assert asked(columns).att is None


def test_jumps_that_a_cohort_has_in_common_cost_no_noise() -> None:
    rng = np.random.default_rng(5)
    g = np.array([3, 5, 99])[rng.integers(0, 3, 30_000)]
    columns = frame(np.clip(rng.normal(size=(30_000, 6)) + 6 * (np.arange(1, 7) >= g[:, None]), -12, 12), g)
    exact, found = asked(columns, EXACT).att, asked(columns).att
    assert found.noise_error < 0.6 * exact.standard_error
    assert abs(found.estimate - exact.estimate) < 4 * found.noise_error


def test_skewed_paths_whose_means_shortening_moves_get_no_interval() -> None:
    y, g = made(16_000)
    jumps = np.exp(np.random.default_rng(2).normal(size=y.shape)) * (1 + (np.arange(1, 7) >= g[:, None]))
    found = asked(frame(np.clip(y + 2 * jumps - 2, -12, 12), g))
    assert found.att.interval is None and found.pretrend is None and found.release.shortened
    assert found.interval is None and any(note.endswith(found.interval_reason) for note in found.notes)
    assert (found.estimate, found.standard_error) == (found.att.estimate, found.att.standard_error)


@pytest.mark.parametrize("law", ["a yes of 5 %", "a yes that persists", "Laplace"])
def test_paths_that_are_longer_than_normal_ones_are_not_shortened_and_have_intervals_that_hold(law: str) -> None:
    answers = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        own, fresh = rng.normal(size=(10_000, 1)), rng.normal(size=(10_000, 6))
        y = {"a yes of 5 %": rng.random((10_000, 6)) < 0.05, "a yes that persists": 1.5 * own + fresh > 0.5,
             "Laplace": 0.05 * rng.laplace(size=(10_000, 6))}[law]  # fmt: skip
        answers.append(asked(frame(y.astype(float), np.where(rng.random(10_000) < 0.5, 3, 99)), seed=seed).att)
    held = covered(answers, 0)
    assert len(held) >= 4 and sum(held) >= len(held) - 2


def test_cohorts_that_are_too_small_for_the_noise_leave_and_are_named() -> None:
    y, g = made(6_000)
    few = (g != 5) | (np.arange(6_000) < 60)
    found = asked(frame(y[few], g[few]))
    assert {one.cohort for one in found.by_cohort} == {"3"} and any("cohort 5" in note for note in found.notes)


def test_without_noise_a_cohort_of_one_person_counts_with_the_variance_of_the_others() -> None:
    y, g = made(300)
    alone = (g != 5) | (np.cumsum(g == 5) == 1)
    y, g = y[alone], g[alone]
    found, single = asked(frame(y, g), EXACT), plain(y, g, False)
    assert found.att.estimate == pytest.approx(pooled(single, g, [pair for pair in single if pair[1] >= pair[0]])[0])
    assert {one.cohort for one in found.by_cohort} == {"3", "5"}
    for one in found.by_cohort:
        start, t = int(one.cohort), int(one.time)
        assert one.estimate == pytest.approx(single[start, t][0], abs=1e-8)
        change, sizes = y[:, t - 1] - y[:, start - 2], [(g == 3).sum(), (g == 99).sum()]
        if start == 5:
            others = sum(((change[g == who] - change[g == who].mean()) ** 2).sum() for who in (3, 99))
            own = change[g == 99].var(ddof=1) / sizes[1]
            assert one.standard_error == pytest.approx(np.sqrt(others / (sum(sizes) - 2) + own), rel=0.02)
            assert one.interval is not None


def test_without_noise_two_persons_one_treated_have_an_effect_and_no_interval() -> None:
    y = np.array([[0.0, 1, 1, 1, 2, 2], [0.0, 0, 4, 4, 5, 5]])
    found = asked(frame(y, np.array([99, 3])), EXACT)
    assert found.att.estimate == pytest.approx(np.mean([4, 4, 4, 4]))
    assert all(one.interval is None for one in (found.att, *found.event_study, *found.by_cohort))
    assert found.pretrend is None


def declared(periods: list[Any], starts: list[Any], **options: Any) -> Any:
    """Return the exact answer where period k and start k are so called, of the same 600 persons."""
    y, g = made(600)
    names = dict(zip((3, 5, 99), starts, strict=True))
    columns = frame(y, g) | {"g": np.repeat(np.array([names[one] for one in g], dtype=object), 6)}
    columns["t"] = np.array([periods[k - 1] for k in columns["t"]], dtype=object)
    order = options.pop("order", range(6))
    schema = dpc.Schema({"t": dpc.Levels([periods[k] for k in order]), "g": dpc.Levels(starts), "y": SCHEMA["y"]})
    return dpc.did(table(columns, EXACT, schema), **ROLES, loss=EXACT, **options)


MONTHS = [f"2001-{month:02d}" for month in range(8, 13)] + ["2002-01"]
QUARTERS = ["2001Q3", "2001q4", "2002 Q1", "2002-Q2", "2002Q3", "2002Q4"]
DATES = ["2001-03-01", "2001-10-01", "2001-11-15", "2002-01-01", "2002-09-01", "2003-01-01"]


@pytest.mark.parametrize(("periods", "starts"), [
    ([2001, 2002, 2003, 2004, 2005, 2010], [2003, 2005, 9999]), ([9, 10, 11, 99, 100, 101], ["11", "100.0", "never"]),
    (["9", "10", "11", "99", "100", "101"], [11, 100, 9999]), (MONTHS, ["2001M10", "2001-12", "never"]),
    (QUARTERS, ["2002q1", "2002Q3", "never"]), (DATES, ["2001-11-15", "2002-09-01", "9999-12-31"]),
])  # fmt: skip
@pytest.mark.parametrize("order", [[5, 4, 3, 2, 1, 0], [2, 0, 5, 1, 4, 3]])
def test_periods_are_in_order_of_what_they_mean_in_whatever_order_they_are_declared(
    periods: list[Any], starts: list[Any], order: list[int]
) -> None:
    found, reference = declared(periods, starts, order=order), asked(frame(*made(600)), EXACT)
    assert found.att.estimate == pytest.approx(reference.att.estimate, abs=1e-8)
    assert found.release.times == tuple(map(str, periods)) and found.release.starts == (2, 4, -1)


@pytest.mark.parametrize("periods", [
    ["before", "1", "2", "3", "4", "5"], ["2001", "2002", "2003-01-01", "2004", "2005", "2006"],
    ["1", "2", "3", "4", "5", "5.0"], ["1/2/2001", "1/3/2001", "1/4/2001", "1/5/2001", "1/6/2001", "2/1/2001"],
    ["2001Q1", "2001Q2", "2001-07", "2001-08", "2001-09", "2001-10"],
    ["wave 10", "wave 11", "wave 12", "wave 7", "wave 8", "wave 9"], ["Q4", "Q3", "Q2", "Q1", "Q5", "Q6"],
])  # fmt: skip
def test_periods_without_a_common_order_are_refused_unpaid(periods: list[str]) -> None:
    with pytest.raises(SchemaError):
        declared(periods, ["3", "5", "never"])


def test_names_stand_in_the_declared_order_and_a_start_spelled_otherwise_is_refused() -> None:
    waves = ["first", "wave 2", "wave 3", "wave 4", "wave 5", "last"]
    found = declared(waves, ["wave 3", "wave 5", "none"])
    assert found.release.starts == (2, 4, -1)
    for starts in (["Wave 3", "wave 5", "none"], ["wave-3", "wave 5", "none"], ["third", "wave 5", "none"]):
        with pytest.raises(ParameterError):
            declared(waves, starts)
    with pytest.raises(ParameterError):
        declared(waves, ["Wave 3", "wave 5", "none"], never=["none"])
    assert declared(waves, ["wave 3", "wave 5", "none"], never=["none"]).release.starts == (2, 4, -1)


WAVES = [2000, 2002, 2004, 2006, 2008, 2010]


def test_a_cohort_that_starts_before_the_first_period_is_left_out_and_one_that_is_said_to_be_never_is_never() -> None:
    early = declared(WAVES, [1998, 2008, 9999])
    assert early.release.starts == (0, 4, -1) and {one.cohort for one in early.by_cohort} == {"2008"}
    assert len(early.moved) == 1 and early.moved[0].startswith(early.release.cohorts[0])
    zero, reference = declared(WAVES, [2004, 2008, 0], never=[0.0]), asked(frame(*made(600)), EXACT)
    assert zero.release.starts == (2, 4, -1) and zero.att.estimate == pytest.approx(reference.att.estimate, abs=1e-8)
    for wrong in ({"starts": [2004, 2008, 0]}, {"starts": [2004, 2008, 9999], "never": ["nobody"]}):
        with pytest.raises(ParameterError):
            declared(WAVES, **wrong)


@pytest.mark.parametrize(("periods", "starts"), [
    (WAVES, [2003, 2007, 9999]), (DATES, ["2001-10-02", "2002-01-02", "2003-01-02"]),
    (["2001Q1", "2001Q3", "2002Q1", "2002Q3", "2003Q1", "2003Q3"], ["2001q4", "2002Q4", "2003Q4"]),
    (["2001-02", "2001-06", "2001-10", "2002-02", "2002-06", "2002-10"], ["2001-07", "2002-05", "2002-11"]),
])  # fmt: skip
def test_a_start_between_two_dates_quarters_or_months_counts_from_the_next_and_after_the_last_as_never(
    periods: list[Any], starts: list[Any]
) -> None:
    found, reference = declared(periods, starts), asked(frame(*made(600)), EXACT)
    assert found.release.starts == (2, 4, -1) and found.never == (str(starts[2]),)
    assert found.att.estimate == pytest.approx(reference.att.estimate, abs=1e-8)
    assert all(any(f" {one} " in caveat for caveat in found.guarantee.caveats) for one in starts)
    assert len(found.moved) == 2 and all(str(one) in " ".join(found.moved) for one in starts[:2])
    assert all(one in str(found) for one in found.moved) and [one[0] for one in reference.moved] == ["1"]


def test_a_subgroup_of_periods_and_cohorts_is_asked_of_these_alone_and_one_of_one_period_is_refused() -> None:
    y, g = made(600)
    held, words = table(frame(y, g), EXACT), ROLES | {"loss": EXACT}
    found = dpc.did(held.where("t", among=[1, 2, 3, 4]).where("g", among=["3", "never"]), **words)
    single = plain(y, g, False)
    assert {(one.cohort, one.time) for one in found.by_cohort} == {("3", "1"), ("3", "3"), ("3", "4")}
    assert found.by_cohort[-1].estimate == pytest.approx(single[3, 4][0], abs=1e-8)
    for empty in (held.where("t", among=[3]), held.where("g", among=["1", "never"]), held.where("g", among=["3"])):
        with pytest.raises(ParameterError):
            dpc.did(empty, **words)


def test_what_cannot_work_is_refused_before_the_spend() -> None:
    columns = frame(*made(600))
    for refused, loss, person, words in (
        (InfeasibleError, dpc.ApproxDP(0.1, 1e-6), "id", {}), (LossError, dpc.PureDP(1), "id", {}),
        (ParameterError, LOSS, None, {}), (SchemaError, LOSS, "id", {"time": "y", "outcome": "t"}),
        (ParameterError, LOSS, "id", {"control": "later"}), (ParameterError, LOSS, "id", {"cohort": "t"}),
    ):  # fmt: skip
        factories.refused_unpaid(table(columns, loss, person=person), refused, dpc.did, **ROLES | words, loss=loss)


def test_where_nobody_is_never_treated_the_note_says_what_the_release_can_still_tell() -> None:
    y, g = made(3_000)
    found = asked(frame(y[g < 99], g[g < 99]))
    assert found.att is None and any("control='not-yet'" in note for note in found.notes)
    assert abs(found.release.did(control="not-yet").att.estimate - 1.15) < 0.3


def test_treated_periods_and_cohorts_without_controls_are_named() -> None:
    y, g = made(3_000)
    later = np.sort(np.unique(g[g < 99]))
    found = asked(frame(y[g < 99], g[g < 99]), control="not-yet")
    compared = {(one.cohort, one.time) for one in found.by_cohort}
    missing = {(str(start), str(time)) for start in later for time in range(start, y.shape[1] + 1)} - compared
    named = [note for note in found.notes if all(time in note for _, time in missing)]
    assert missing and len(named) == 1 and f"cohort {later[-1]}" in named[0]
    assert not [note for note in asked(frame(y, g)).notes if note in named]
