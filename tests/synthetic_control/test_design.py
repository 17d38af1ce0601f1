"""The plan: from public numbers only, the same for all donors, and what it says is what a call does."""


import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.papers.mechanisms.objective_perturbation import calibrate
from dpcausal.synthetic_control.donor_rows import donor_free
from tests.synthetic_control.neighbours import answer_to, panel_of, plan_of


def test_the_expected_noise_is_that_of_a_call_with_half_of_the_donors_weight() -> None:
    made, loss = dpc.simulate.factor_panel(400, seed=1), dpc.PureDP(1)
    panel = panel_of(made.donors, made.target, loss)
    plan = plan_of(panel, loss=loss)
    answer = answer_to(panel_of(made.donors, made.target, loss), loss)
    assert plan.path_noise is not None and answer.path_noise is not None and answer.donor_weight is not None
    assert plan.path_noise * 200 == pytest.approx(answer.path_noise * answer.donor_weight, rel=0.05)


def test_the_own_forecast_is_the_rule_that_did_best_on_the_past() -> None:
    t = np.arange(12) / 20
    assert donor_free(t, 3).rule == "trend"
    np.testing.assert_allclose(donor_free(t, 3).path, np.arange(12, 15) / 20)
    still = np.array([0.1, -0.1] * 6)
    assert donor_free(still, 2).rule == "mean"
    steps = np.repeat([0.0, 0.5, -0.2], 6)
    assert donor_free(steps, 1).rule == "last value" and donor_free(steps, 1).path.tolist() == [-0.2]


def test_a_short_or_flat_past_or_one_without_a_miss_has_no_error_that_is_known() -> None:
    for past in (np.array([0.3]), np.array([0.1, 0.2]), np.zeros(10), np.arange(10) / 30):
        free = donor_free(past, 4)
        assert free.error is None and free.last_error > 0 and free.expected == free.last_error
    made, loss = dpc.simulate.factor_panel(400, seed=1), dpc.PureDP(1)
    flat = plan_of(panel_of(made.donors, np.zeros(13), loss), loss=loss)
    assert flat.noise_ratio is None and flat.free.error is None and "is unknown" in flat.verdict


@pytest.mark.parametrize("share", [1.0, 1e-2, 1e-4])
def test_the_error_is_the_own_past_s_however_wide_the_bounds(share: float) -> None:
    made, loss = dpc.simulate.factor_panel(400, seed=1), dpc.PureDP(1)
    panel = panel_of(made.donors * share, made.target * share, loss)
    wide = donor_free(made.target[:10], 3).error
    assert wide is not None
    assert plan_of(panel, loss=loss, method="matched").free.error == pytest.approx(wide * share)


def test_a_plan_promises_an_interval_unless_what_is_released_leaves_it_open() -> None:
    made, loss = dpc.simulate.factor_panel(400, seed=1), dpc.PureDP(2)
    plan = plan_of(panel_of(made.donors, made.target, loss), loss=loss)
    assert plan.interval > 0
    # Donors that are still before the start and jump after it lie infinitely many of their own scales off.
    rows = np.zeros((400, 13))
    rows[:, 10:] = np.where(np.arange(400) % 2, 1.0, -1.0)[:, None]
    panel = panel_of(rows, made.target, loss)
    answer = answer_to(panel, loss)
    assert answer.interval is None and "no width is known" in answer.interval_reason
    assert answer.constants["interval"] == 0.2 and len(panel.ledger.entries()) == 1


def test_the_penalty_that_is_told_is_the_one_that_is_used() -> None:
    made, loss = dpc.simulate.factor_panel(40, seed=1), dpc.ApproxDP(4, 1e-6)
    panel, method = panel_of(made.donors, made.target, loss), dpc.papers.ObjectivePerturbation()
    answer = answer_to(panel, loss, method=method, force=True)
    used = calibrate(40, 10, dpc.ApproxDP(2, 1e-6)).quadratic
    assert answer.constants["penalty"] == used != 10
