"""Matched donors: what one donor can move, and what the release makes of it."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.audit import falsify
from dpcausal.core.method import Run
from dpcausal.mechanisms.additive import gaussian, l2_ball
from dpcausal.privacy.sensitivity import Norm
from dpcausal.synthetic_control.donor_rows import FINE, FULL, Grid, donor_free
from dpcausal.synthetic_control.methods import matched
from dpcausal.synthetic_control.methods.matched import Matching, matched_sensitivity, matched_sums
from dpcausal.synthetic_control.question import Treated
from tests.synthetic_control.neighbours import granted, panel_of


def constants(after: int, past: Any = (0.1, -0.2, 0.3), cut: float = 0.25, step: float = 2.0**-12) -> Matching:
    y = np.asarray(past, dtype=np.float64)
    grid = Grid(step, len(y), 2**24)
    return Matching(grid, after, grid.rows(y[None])[0], 0.2 / step, cut / step)


def weighed(rows: Any, by: Matching) -> Any:
    """Return weights and changes of rows on the scale [−1, 1]."""
    whole = by.grid.rows(np.clip(rows, -1, 1))
    return matched.weights_and_changes(whole, by)[:2]


@pytest.mark.proves("matched-sums")
def test_a_larger_unit_of_the_weights_is_caught() -> None:
    by = constants(2)

    def statistic(rows: Any) -> Any:
        weights = np.rint(FULL * rows[:, 0]).astype(np.int64)
        sums = matched_sums(weights, rows[:, 1:] * FINE, by)
        return np.concatenate([[sums[0] * 1.2], sums[1:]])

    found = falsify(statistic, matched_sensitivity(by).bound, sizes=(2,), columns=3, norm=Norm.L2, evaluations=3_000)
    assert found.violated


def test_a_donor_that_is_the_target_gets_the_full_weight_and_predicts_it() -> None:
    y = np.array([0.0, 0.2, 0.1, 0.3, 0.5, -0.1])
    by = constants(2, y[:4], cut=1.0)
    weights, changes = weighed(y[None], by)
    assert weights[0] == FULL
    np.testing.assert_allclose(changes[0] / FINE, y[4:] - y[3], atol=2 / FINE)


def test_a_donor_of_half_the_swings_is_stretched_towards_the_targets() -> None:
    y = np.array([0.0, 0.4, 0.0, 0.4, 0.0, 0.4])
    by = constants(2, y[:4], cut=1.0)
    weights, changes = weighed(y[None] / 2 + 0.3, by)
    assert 0.8 * FULL < weights[0] < FULL
    assert -0.4 < changes[0, 0] / FINE < -0.2


def test_without_weight_the_answer_is_the_donor_free_forecast() -> None:
    by = constants(2)
    loss = dpc.NoPrivacy()
    allotment = granted(loss)
    alone = np.array([70.0, -3.0])
    query = matched.matched_query(np.array([0]), np.zeros((1, 2)), by, loss)
    released = matched.estimate_from_sums(gaussian(query, allotment, loss), by, alone, 9.0, loss)
    assert released.change == pytest.approx(alone) and released.weight == 0


@pytest.mark.parametrize("loss", [dpc.PureDP(0.7), dpc.ZCDP(0.3)])
def test_the_stated_noise_is_the_noise(loss: dpc.PureDP | dpc.ZCDP) -> None:
    """Standard deviation over 6,000 draws within 7 % of the stated one: more than 6 of its own deviations."""
    by = constants(2)
    weights, changes = np.full(40, FULL), np.zeros((40, 2))
    runs = 3_000
    with dpc.simulated_noise(5):
        allotment = granted(loss, runs)
        alone = np.array([200.0, -300.0])
        add: Any = l2_ball if isinstance(loss, dpc.PureDP) else gaussian
        query = matched.matched_query(weights, changes, by, loss)
        found = [matched.estimate_from_sums(add(query, allotment, loss), by, alone, 400.0, loss) for _ in range(runs)]
    stated = matched.noise_deviation(by, loss) / FULL
    rest = [1 - one.noise / stated * max(one.weight, 0) for one in found]
    raw = np.array([(one.change - alone * r) * stated / one.noise for one, r in zip(found, rest, strict=True)])
    assert np.std(raw) == pytest.approx(stated, rel=0.07)
    assert np.std([one.weight for one in found]) == pytest.approx(found[0].weight_noise, rel=0.1)


def test_the_public_constants_come_from_the_targets_past() -> None:
    past = np.array([0.0, 0.1, -0.1, 0.2, 0.0, 0.1])
    for share in (1.0, 1e-4):
        free = donor_free(past * share, 3)
        by = matched.matching_constants(past * share, 3, free, None, None)
        assert by.kernel_width * by.grid.step == pytest.approx(np.std(past) * share)
        assert by.cut * by.grid.step == pytest.approx(3 * free.last_error) and by.radius == matched.matching_constants(
            past, 3, donor_free(past, 3), None, None).radius  # fmt: skip
    flat = matched.matching_constants(np.zeros(6), 3, donor_free(np.zeros(6), 3), None, None)
    assert flat.kernel_width >= 1 and flat.radius >= 1


def test_a_cut_of_any_size_keeps_sums_exact() -> None:
    by = matched.matching_constants(np.array([0, 1e-11, 0]), 2, donor_free(np.array([0, 1e-11, 0]), 2), None, 2.0)
    assert by.radius <= matched.MOST_CUT * np.sqrt(2)
    weights, changes = weighed(np.sign(np.random.default_rng(1).normal(size=(9, 5))), by)
    assert (np.abs(matched_sums(weights, changes, by)) < 2.0**61 * 9 / 1e8).all()


def test_a_donors_scale_lies_half_of_the_way_to_the_targets() -> None:
    rows, exact = np.random.default_rng(21).normal(0, 0.2, (31, 9)).clip(-1, 1), dpc.NoPrivacy()
    panel = panel_of(rows[1:], rows[0], exact, 6)
    way, question = matched.Matched(), Treated.of(panel, None, 0.9, True, True)
    plan = way.plans(question, exact)[0]
    path = way.path(rows[1:], plan, Run(question, exact, granted(exact), None, rows[1:]))
    by, spread = way.by(panel, plan.target, plan.free), np.std(np.diff(rows[:, :6]), axis=1, ddof=1) / path.step
    _, _, slope = matched.weights_and_changes(by.grid.rows(rows[1:]), by)
    assert path.donors is not None and path.own is not None
    np.testing.assert_allclose(path.donors.scales, slope * np.sqrt(spread[1:] * spread[0]), rtol=1e-3)
    np.testing.assert_allclose(path.own.scales, spread[0], rtol=1e-3)
