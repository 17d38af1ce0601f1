"""Several treated units: who is a donor, whom a ledger names, their average effect, and placebos in time."""

import pickle
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import LedgerError, ParameterError
from tests.synthetic_control.neighbours import answer_to, panel_of, plan_of

UNITS, T = 60, 12
LOSS = dpc.ApproxDP(4, 1e-6)


def frame(rows: Any = None) -> dict[str, Any]:
    made = np.random.default_rng(1).uniform(-1, 1, (UNITS, T)) if rows is None else rows
    return {"unit": np.repeat(np.arange(len(made)), T), "time": np.tile(np.arange(1990, 1990 + T), len(made)),
            "y": made.ravel()}  # fmt: skip


def panel(ledger: dpc.Ledger, target: Any, start: Any = 1999, **arguments: Any) -> dpc.Panel:
    return dpc.Panel(arguments.pop("frame", frame()), unit="unit", time="time", outcome="y", target=target, start=start,
                     bounds=dpc.Bounded(-1, 1), ledger=ledger, **arguments)  # fmt: skip


def ledger(epsilon: float = 20) -> dpc.Ledger:
    return dpc.Ledger.in_memory(dpc.ApproxDP(epsilon, 1e-3), unit="unit")


def test_a_treated_unit_that_is_no_target_is_no_donor_either() -> None:
    """The same as the frame without it, to the last bit of what comes to the gate: not a cell of it is read."""
    rows = np.random.default_rng(1).uniform(-1, 1, (UNITS, T))
    rows[[7, 20]] = 1.0  # treated: they jump
    listed = panel(ledger(), 3, treated=[3, 7, 20, 99], frame=frame(rows))
    without = {name: column[~np.isin(frame()["unit"], [7, 20])] for name, column in frame(rows).items()}
    plain = panel(ledger(), 3, frame=without)
    assert listed.n == plain.n == UNITS - 3 and listed.treated == (3, 7, 20, 99) and plain.treated == (3,)
    np.testing.assert_array_equal(listed.donors(), plain.donors())
    first, second = (answer_to(one, LOSS, force=True) for one in (listed, plain))
    np.testing.assert_array_equal(first.counterfactual, second.counterfactual)


def test_panels_with_different_targets_of_one_list_share_a_ledger_and_no_other_does() -> None:
    book, treated = ledger(), [3, 7]
    for target in (3, 7):
        dpc.synthetic_control(panel(book, target, treated=treated), loss=LOSS, force=True)
    for target, others in ((3, ()), (5, ()), (3, [3, 7, 8])):
        with pytest.raises(LedgerError, match=r"targets of panels.*3.*7") as refused:
            dpc.synthetic_control(panel(book, target, treated=others), loss=LOSS, force=True)
        assert refused.value.rule == "declared-once"
    assert len(book.entries()) == 2


def test_a_rule_of_names_is_shared_by_panels_of_other_units_and_none_of_its_units_is_ever_a_donor() -> None:
    """Two regions of one ledger: which rows come to the gate is counted out by hand; another rule is refused."""
    book, rule = ledger(), "unit >= 10 and unit <= 19"
    whole = frame()
    for low, target in ((0, 12), (15, 17)):
        part = {name: column[(whole["unit"] >= low) & (whole["unit"] < low + 30)] for name, column in whole.items()}
        region = panel(book, target, treated=rule, frame=part)
        kept = sorted({*range(low, low + 30)} - {*range(10, 20)}, key=str)
        np.testing.assert_array_equal(region.donors(), part["y"].reshape(30, T)[np.array(kept) - low])
        dpc.synthetic_control(region, loss=LOSS, force=True)
    for target, others in ((12, "unit >= 10"), (12, list(range(10, 20))), (12, ()), (25, "unit in [12, 25]")):
        with pytest.raises(LedgerError, match="targets of panels"):
            dpc.synthetic_control(panel(book, target, treated=others), loss=LOSS, force=True)
    assert len(book.entries()) == 2 and book.verify().ok


def test_a_replaced_donor_is_a_donor_still_whatever_its_records_say() -> None:
    """A rule looks at names alone, so n, the periods and who is a donor are the same on neighbours."""
    rows = np.random.default_rng(1).uniform(-1, 1, (UNITS, T))
    first = panel(ledger(), 3, treated="unit <= 9", frame=frame(rows))
    for other in (0.0, np.nan, 1e300, -np.inf):
        changed = rows.copy()
        changed[40] = other
        second = panel(ledger(), 3, treated="unit <= 9", frame=frame(changed))
        assert (second.n, second.times, second.treated) == (first.n, first.times, first.treated)
        moved = (second.donors() != first.donors()).any(axis=1)
        assert np.flatnonzero(moved).tolist() == [30]  # units 0 to 9 are treated, the others by their names as texts


@pytest.mark.parametrize("treated", [[7], [3, 3], [3, None], "3", 3])
def test_a_list_of_treated_units_without_the_target_or_with_twins_is_refused(treated: Any) -> None:
    with pytest.raises(ParameterError, match="treated must"):
        panel(ledger(), 3, treated=treated)


@pytest.mark.parametrize("method", ["factor", "matched"])
def test_a_placebo_in_time_is_the_answer_of_the_panel_that_ends_before_the_treatment(method: str) -> None:
    rows = np.random.default_rng(2).uniform(-0.9, 0.9, (UNITS, T))
    rows[:, 9:] = np.sign(rows[:, 9:])  # nothing of this may show
    early = {name: column[np.tile(np.arange(T), UNITS) < 9] for name, column in frame(rows).items()}
    answers = []
    for part, words in ((rows, {"start": 1996}), (None, {})):
        whole = panel(ledger(), 3, start=1999 if words else 1996, frame=early if part is None else frame(part))
        answers.append(answer_to(whole, LOSS, 3, method=method, force=True, **words))
    first, second = answers
    assert first.times == second.times == (1996, 1997, 1998)
    np.testing.assert_array_equal(first.counterfactual, second.counterfactual)
    assert (first.interval, first.pvalue) == (second.interval, second.pvalue)
    assert "a placebo in time" in first.details() and "a placebo in time" not in second.details()


def test_a_placebo_in_time_begins_before_the_treatment_of_all_and_costs_nothing_to_plan() -> None:
    both = panel(ledger(), [3, 7], start={3: 1999, 7: 1997})
    for start in (1997, 1999, 2050):
        with pytest.raises(ParameterError):
            dpc.synthetic_controls(both, loss=LOSS, start=start)
    plan = plan_of(panel(both.ledger, 3, treated=[3, 7], start=1997), loss=LOSS, start=1996)
    assert (plan.start, plan.after) == (6, 1)
    assert not both.ledger.entries()


def test_a_factor_model_tells_an_earlier_start_free_and_as_the_normal_law_does() -> None:
    """Without noise beside a regression on donors' changes by numpy; with a jump before the start it shows."""
    rng = np.random.default_rng(4)
    rows = rng.normal(1, 0.4, (3_001, 1)) * np.cumsum(0.05 * rng.standard_normal((1, T)), axis=1)
    rows = np.clip(rows + 0.02 * rng.standard_normal(rows.shape), -1, 1)
    target = rows[0].copy()
    target[7:] += 0.2
    whole = panel_of(rows[1:], target, dpc.NoPrivacy(), 9)
    answer = pickle.loads(pickle.dumps(dpc.synthetic_control(whole, loss=dpc.NoPrivacy(), method="factor")))
    changes = rows[1:, :9] - rows[1:, 5:6]
    fitted = np.linalg.lstsq(np.column_stack([np.ones(3_000), changes[:, :5]]), changes[:, 6:9], rcond=None)[0]
    own = target[:9] - target[5]
    np.testing.assert_allclose(answer.in_time(6), own[6:] - np.append(1, own[:5]) @ fitted, atol=0.01)
    assert abs(answer.in_time(6)[0]) < 0.08 and (answer.in_time(6)[1:] > 0.1).all()
    for start in (2, 9, 11, "x"):
        with pytest.raises(ParameterError):
            answer.in_time(start)
    with pytest.raises(ParameterError, match="start="):
        dpc.synthetic_control(whole, loss=dpc.NoPrivacy(), method="matched", force=True).in_time(6)


def test_the_average_effect_is_that_of_the_answers_and_as_wide_as_they_are_on_average() -> None:
    made = dpc.simulate.factor_panel(2_000, effect=0.3, seed=1)
    targets = {"early": made.target, "late": made.donors[0]}
    loss = dpc.ApproxDP(2, 1e-6)
    answers = answer_to(panel_of(made.donors[1:], targets, loss, {"early": 10, "late": 11}), loss, 4, several=True)
    found = dpc.average_effect(answers)
    assert found.att == pytest.approx((answers[0].att + answers[1].att) / 2)
    assert found.interval == pytest.approx(np.mean([answer.interval for answer in answers], axis=0))
    assert found.guarantee.loss == dpc.ApproxDP(2, 1e-6) and "the series of late" in found.details()
    for wrong in ((), answers[0], [answers[0], answers[0]], [answers[0], 3]):
        with pytest.raises(ParameterError):
            dpc.average_effect(wrong)
