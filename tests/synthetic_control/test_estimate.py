"""``synthetic_control`` from panel to result: cost, refusals, faults, and answers near the truth."""

import dataclasses
import json
import pickle
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, InfeasibleError, LossError, ParameterError, UnprovenError
from dpcausal.methods import Matched
from dpcausal.papers import OutputPerturbation
from dpcausal.privacy.sensitivity import Relation, Unit
from dpcausal.synthetic_control.methods import METHODS
from tests.refusals import rule_of
from tests.synthetic_control.neighbours import LINE, PERIODS, START, WAYS, answer_to, ask, panel_of, plan_of

ONE = dpc.PureDP(1)


def simulated(made: Any, loss: Any) -> dpc.Panel:
    return panel_of(made.donors, made.target, loss, made.start, made.bounds)


def answer_of(n: int, loss: Any, seed: int = 0, effect: float = 0.0, **arguments: Any) -> dpc.SyntheticControl:
    made = dpc.simulate.factor_panel(n, effect=effect, seed=seed)
    return answer_to(simulated(made, loss), loss, seed, **arguments)


@pytest.mark.parametrize("name", WAYS)
def test_a_call_costs_what_it_says_and_protects_donors(name: str) -> None:
    arguments = WAYS[name]
    made = dpc.simulate.factor_panel(300, seed=2)
    panel = simulated(made, arguments["loss"])
    answer = dpc.synthetic_control(panel, force=True, **arguments)
    assert answer.guarantee.loss == arguments["loss"]
    assert (answer.guarantee.unit, answer.guarantee.relation) == (Unit.DONOR, Relation.REPLACE_ONE)
    assert answer.guarantee.private and "not protected" in answer.details() and "nearer bound" in answer.details()
    assert len(panel.ledger.entries()) == 1
    with pytest.raises(BudgetExceededError):
        dpc.synthetic_control(panel, force=True, **arguments)


def test_auto_chooses_by_sizes_and_budget_only() -> None:
    chosen = [
        answer_of(n, loss, force=True).method
        for n, loss in ((100, dpc.ApproxDP(1, 1e-6)), (1000, dpc.ApproxDP(0.5, 1e-6)), (1000, dpc.ApproxDP(2, 1e-6)),
                        (1000, dpc.PureDP(10)), (1000, dpc.ZCDP(0.1)), (50, dpc.NoPrivacy()))
    ]  # fmt: skip
    assert chosen == ["matched", "factor", "factor", "matched", "factor", "simplex"]


def test_a_panel_that_is_too_small_for_the_loss_is_refused_by_its_noise() -> None:
    small = {"inference": False}
    assert rule_of(lambda: answer_of(20, dpc.ApproxDP(0.05, 1e-6), **small), InfeasibleError) == "noise"
    assert rule_of(lambda: answer_of(30, dpc.ZCDP(0.0001), **small), InfeasibleError) == "noise"
    assert rule_of(lambda: answer_of(25, dpc.PureDP(0.05), method="matched", **small), InfeasibleError) == "noise"


def test_the_answer_is_near_the_truth_where_the_own_forecast_is_not() -> None:
    """Mean over 25 panels of n = 1000 at ε = 2: within .15, where the target's own past errs by more than .2."""
    ours, own = [], []
    for seed in range(25):
        made = dpc.simulate.factor_panel(1000, seed=seed)
        answer = answer_of(1000, dpc.ApproxDP(2, 1e-6), seed)
        truth = made.untreated[made.start :]
        ours.append(np.sqrt(np.mean((answer.counterfactual - truth) ** 2)))
        own.append(np.sqrt(np.mean((answer.donor_free_forecast - truth) ** 2)))
    assert np.mean(ours) < 0.15 < 0.2 < np.mean(own)


@pytest.mark.parametrize("method", ["matched", "factor"])
@pytest.mark.parametrize("share", [2.0**-14, 1e-4, 1e-6])
def test_bounds_only_cut_so_an_answer_far_inside_them_is_the_same_but_for_its_unit(method: str, share: float) -> None:
    made, loss, found = dpc.simulate.factor_panel(800, effect=0.3, seed=2), dpc.ZCDP(0.1), []
    for unit in (1.0, share):
        found.append(answer_to(panel_of(made.donors * unit, made.target * unit, loss), loss, 3, method=method))
    near, far = found
    assert near.interval is not None and far.interval is not None and near.pvalue is not None
    told = [[*one.counterfactual, one.att, *one.interval] for one in (near, far)]  # type: ignore[misc]
    np.testing.assert_allclose(np.array(told[1]) / share, told[0], atol=1e-3)
    assert far.pvalue == pytest.approx(near.pvalue, abs=0.005)


def test_effect_att_and_interval_agree_with_each_other() -> None:
    answer = answer_of(1000, dpc.ApproxDP(2, 1e-6), effect=0.3)
    np.testing.assert_allclose(answer.effect, answer.observed - answer.counterfactual)
    assert answer.att == pytest.approx(answer.effect.mean())
    assert answer.interval is not None and answer.pvalue is not None
    assert answer.interval[0] < answer.att < answer.interval[1] and 0 <= answer.pvalue <= 1
    assert not answer.interval_reason and not answer.pvalue_reason
    assert answer.loadings is not None and answer.loadings.shape[1] == 13
    assert "Feasible" in plan_of(simulated(dpc.simulate.factor_panel(1000, seed=0), ONE), loss=ONE).verdict


def test_an_answer_says_how_far_it_rests_on_donors_and_how_both_fit_the_past() -> None:
    shared = answer_of(1000, dpc.ApproxDP(2, 1e-6))
    assert shared.mixing == 1 and shared.fit is not None and shared.own_fit is not None
    assert 0.03 < shared.fit < shared.own_fit and "Pre-treatment fit (RMSE)" in shared.details()
    assert "control units make 50%" in dataclasses.replace(shared, mixing=0.5).details()
    # Donors that nothing moves together, all but a shock after the start that half of them have: no control helps.
    rng = np.random.default_rng(1)
    rows = 0.01 * rng.normal(size=(1001, 13))
    rows[1::2, 10:] += 3
    loss = dpc.ApproxDP(2, 1e-6)
    lone = answer_to(panel_of(rows[1:], rows[0], loss, bounds=dpc.Bounded(-9, 9)), loss, 2, method="factor")
    assert lone.mixing < 1 and np.abs(lone.counterfactual).max() < 1
    assert lone.effect == pytest.approx(lone.observed - lone.counterfactual)


def test_without_inference_the_whole_budget_goes_to_the_path() -> None:
    answer = answer_of(1000, ONE, inference=False)
    assert answer.interval is None and answer.pvalue is None and answer.constants["shares of the path"] == 1
    assert answer.path_noise is not None and answer.path_noise < answer_of(1000, ONE).path_noise  # type: ignore[operator]
    assert "none was asked for" in answer.interval_reason


@pytest.mark.parametrize("method", METHODS)
def test_without_privacy_every_method_answers(method: str) -> None:
    answer = answer_of(60, dpc.NoPrivacy(), method=method)
    assert not answer.guarantee.private and np.isfinite(answer.counterfactual).all()


ROWS, OWN = np.split(np.random.default_rng(1).uniform(-1, 1, (13, 6)), [12])
ODD: dict[str, tuple[Any, Any, int]] = {
    "one donor": (ROWS[:1], OWN[0], 4), "one period before": (ROWS, OWN[0], 1), "one period after": (ROWS, OWN[0], 5),
    "constant": (np.full((12, 6), 0.3), np.zeros(6), 4), "all missing": (np.full((12, 6), np.nan), OWN[0], 4),
    "at the bounds": (1e9 * np.sign(ROWS), -np.ones(6), 4), "target too": (np.vstack([OWN, ROWS]), OWN[0], 4),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in WAYS if name != "DPSC_out"])
@pytest.mark.parametrize("shape", ODD)
def test_odd_panels_have_an_answer(name: str, shape: str) -> None:
    (donors, target, start), arguments = ODD[shape], WAYS[name]
    panel = panel_of(donors, target, arguments["loss"], start)
    if start == 1 and arguments["method"] in ("matched", "factor"):
        with pytest.raises(ParameterError, match=r"1 period\(s\) before its start in 1: method .* at least 3"):
            dpc.synthetic_control(panel, force=True, **arguments)
        assert not panel.ledger.entries()
        return
    answer = dpc.synthetic_control(panel, force=True, **arguments)
    assert np.isfinite(answer.counterfactual).all() and (np.abs(answer.counterfactual) <= 1).all()
    assert json.loads(answer.to_json())["n"] == len(donors)


def test_several_targets_share_one_budget_whenever_they_were_treated() -> None:
    rng = np.random.default_rng(3)
    donors = np.tile(LINE, (300, 1)) + 0.05 * rng.standard_normal((300, PERIODS))
    for loss, method in ((dpc.PureDP(2), "matched"), (dpc.ApproxDP(2, 1e-6), "factor")):
        early, late = ask(donors, loss=loss, method=method, several=True)
        assert (early.target, late.target) == ("early", "late")
        assert (len(early.effect), len(late.effect)) == (PERIODS - START, PERIODS - START - 1)
        assert early.guarantee.loss == late.guarantee.loss == loss
        assert early.guarantee.ledger_head == late.guarantee.ledger_head
    with pytest.raises(ParameterError, match="name one"):
        dpc.synthetic_control(panel_of(donors, {"a": LINE, "b": LINE}, ONE, START), loss=ONE)


def test_a_result_pickles_prints_and_holds_no_donor() -> None:
    made = dpc.simulate.factor_panel(300, seed=6)
    answer = answer_of(300, dpc.ApproxDP(4, 1e-6), seed=6)
    again = pickle.loads(pickle.dumps(answer))
    assert again.summary() == answer.summary() and again.to_json() == answer.to_json()
    frame = answer.to_frame()
    assert len(frame) == 13 and frame["treated"].sum() == 3 and frame["effect"].isna().sum() == 10
    assert frame["counterfactual"].tolist()[10:] == answer.counterfactual.tolist()
    assert frame["observed"].tolist() == [*answer.past, *answer.observed]
    with pytest.raises(dataclasses.FrozenInstanceError):
        answer.att = 0.0  # type: ignore[misc]
    with pytest.raises(ValueError):
        answer.effect[0] = 1
    raw = pickle.dumps(answer)
    assert not [value for value in made.donors.ravel()[:500] if np.float64(value).tobytes() in raw]


@pytest.mark.parametrize("what", ["path", "gap"])
def test_pictures_show_released_values_and_the_stamp(what: str) -> None:
    answer = answer_of(1000, dpc.ApproxDP(2, 1e-6), seed=8)
    ax = answer.plot(what=what)
    assert "mean effect" in ax.get_title() and "NOT PRIVATE" in ax.get_title()
    released = {*answer.counterfactual.tolist(), *answer.effect.tolist(), *answer.donor_free_forecast.tolist(),
                *answer.observed.tolist(), *answer.past.tolist(), answer.att, 0.0, 1.0}  # fmt: skip
    for line in ax.get_lines():
        assert set(np.asarray(line.get_ydata(), dtype=float).tolist()) <= released
    small = dpc.simulate.factor_panel(10, after=1, seed=1)
    assert dpc.synthetic_control(simulated(small, ONE), loss=ONE, force=True).plot(ax, what=what) is ax
    with pytest.raises(ParameterError):
        answer.plot(what=f"{what}s")


FEW, MANY, LONG = (50, 13, 10), (1_000_001, 2, 1), (1, 1_000_004, 3)
"""Donors, periods and the place of the start."""
PERTURBED, OBJECTIVE = OutputPerturbation(), dpc.papers.ObjectivePerturbation()
REFUSALS: list[tuple[Any, dict[str, Any], Any, Any]] = [
    (FEW, {"method": "nearest"}, ONE, ParameterError), (FEW, {"method": "factor"}, ONE, LossError),
    (FEW, {"method": OBJECTIVE}, ONE, LossError), (FEW, {"method": OBJECTIVE}, dpc.ZCDP(1), LossError),
    (FEW, {"method": "simplex"}, ONE, LossError), (FEW, {"coverage": 0.49}, ONE, ParameterError),
    (FEW, {"method": Matched(cut=-1)}, ONE, ParameterError),
    (FEW, {"method": Matched(kernel_width=float("nan"))}, ONE, ParameterError),
    (FEW, {"method": OutputPerturbation(penalty=True)}, ONE, ParameterError),
    (FEW, {"method": OutputPerturbation(projection="cube")}, ONE, ParameterError),
    (FEW, {"force": 1}, ONE, ParameterError), (FEW, {"target": "nobody"}, ONE, ParameterError),
    (FEW, {}, dpc.PureDP(30), LossError), (FEW, {}, dpc.PureDP(1e-9), LossError),
    (FEW, {"method": dpc.papers.DpscObj()}, ONE, UnprovenError), (FEW, {}, dpc.NoPrivacy(), LossError),
    ((10, 13, 10), {"force": False}, ONE, InfeasibleError),
    *((FEW, {"method": PERTURBED}, loss, LossError) for loss in (dpc.PureDP(3e-9), dpc.ApproxDP(1e-9, 1e-6))),
    (FEW, {"method": OBJECTIVE}, dpc.ApproxDP(3e-9, 1e-6), LossError),
    (MANY, {"method": PERTURBED}, ONE, ParameterError),
    *((LONG, {"method": method}, ONE, (LossError, ParameterError)) for method in ("matched", PERTURBED)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "arguments", "loss", "error"), REFUSALS)
def test_what_public_numbers_and_arguments_forbid_is_refused_before_the_spend(
    shape: Any, arguments: dict[str, Any], loss: Any, error: Any
) -> None:
    n, periods, start = shape
    small = dpc.simulate.factor_panel(n, seed=1) if periods == 13 else None
    rows = np.zeros((n + 1, periods)) if small is None else np.vstack([small.target, small.donors])
    panel = panel_of(rows[1:], rows[0], dpc.PureDP(20), start)
    with pytest.raises(error):
        dpc.synthetic_control(panel, loss=loss, **({"force": True} | arguments))
    assert not panel.ledger.entries()


def test_few_donors_or_little_loss_have_no_interval_and_a_reason() -> None:
    for n, loss in ((10, ONE), (100, dpc.ApproxDP(0.5, 1e-6))):
        answer = answer_of(n, loss, force=True)
        assert answer.interval is None and f"{n} donors" in answer.interval_reason
    assert "no confidence interval:" in answer.details() and "no placebo test:" in answer.details()
