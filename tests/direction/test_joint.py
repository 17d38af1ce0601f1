"""Joint privacy: a row lies in one half, so the noise is for the larger of the two bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.dependence.hsic import MOST_RECORDS
from dpcausal.direction import joint, stable
from dpcausal.direction.joint import Joint, joint_sensitivity, of_test_row
from dpcausal.direction.question import Pair
from dpcausal.direction.stable import training_sensitivity
from dpcausal.errors import ParameterError
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.privacy.neighbours import Unit
from tests.direction.neighbours import HIGH, LOW, at_gate, halves, replaced

ROWS = 60


def ask(columns: Any, schema: dpc.Schema, epsilon: float = 1.0, **arguments: Any) -> dpc.Direction:
    loss = dpc.PureDP(epsilon)
    table = dpc.Table(columns, schema, dpc.Ledger.in_memory(loss), missing="impute")
    return dpc.direction(table, "x", "y", loss=loss, method=Joint(**arguments))


@pytest.mark.proves("joint-difference")
@pytest.mark.parametrize("part", ["train", "test"])
def test_a_row_of_either_half_moves_the_margin_by_its_own_bound_at_most(part: str) -> None:
    rng = np.random.default_rng(3)
    train, test = halves(ROWS, joint.SHARE)
    n, m, penalty = len(train), len(test), 20.0
    own = {"train": training_sensitivity(n, m, penalty).bound, "test": of_test_row(m, penalty)}
    places = {"train": train, "test": test}[part]
    worst = 0.0
    for _ in range(25):
        rows = rng.uniform(LOW, HIGH, (ROWS, 2))
        rows[:, 1] = np.where(rng.random(ROWS) < 0.5, rows[:, 0], rows[:, 1])
        neighbour = replaced(rows, int(rng.choice(places)), np.array([LOW[0], HIGH[1]]))
        one, other = (at_gate(data, method="joint", penalty=penalty) for data in (rows, neighbour))
        worst = max(worst, abs(float(one) - float(other)))
    assert 0 < worst <= float(own[part])


@pytest.mark.proves("joint-difference")
def test_the_larger_bound_is_the_noise_whichever_half_it_is_of() -> None:
    for penalty, larger in ((0.1, "training"), (1e3, "test")):
        train, test = training_sensitivity(800, 200, penalty).bound, of_test_row(200, penalty)
        assert (train > test) is (larger == "training")
        claim = joint_sensitivity(800, 200, penalty)
        assert claim.bound == max(train, test) and claim.unit is Unit.ROW
    # The test half's part: twice √6 (m − 1)/m², and rounding that is small beside it.
    assert float(of_test_row(200, 1.0)) == pytest.approx(2 * math.sqrt(6) * 199 / 200**2, rel=1e-3)


def test_nothing_but_the_regressions_depends_on_the_training_half() -> None:
    """With predictions put to 0, no training row moves the margin: no width, range or scale is taken from them."""
    train, _ = halves(ROWS, joint.SHARE)
    rng = np.random.default_rng(6)
    rows = rng.uniform(LOW, HIGH, (ROWS, 2))
    other = rows.copy()
    other[train] = rng.uniform(LOW, HIGH, (len(train), 2))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stable.Halves, "residuals", lambda self, setting: (self.y, self.x))
        assert at_gate(rows, method="joint") == at_gate(other, method="joint")
    assert at_gate(rows, method="joint") != at_gate(other, method="joint")


def test_everyone_is_protected_and_no_caveat_leaves_anyone_out() -> None:
    pair = dpc.simulate.anm_pair(300, seed=1)
    result = ask(pair.columns, pair.schema)
    assert result.guarantee.unit is Unit.ROW and result.guarantee.private and not result.guarantee.caveats
    assert result.method == "joint" and result.blocks is None and result.scores is None
    assert result.guarantee.proofs == joint.PROOFS


def test_auto_takes_votes() -> None:
    pair = dpc.simulate.anm_pair(300, seed=1)
    table = dpc.Table(pair.columns, pair.schema, dpc.Ledger.in_memory(dpc.PureDP(1)), missing="impute")
    with pytest.raises(ParameterError, match=r"method=dpc.methods.Joint\(penalty=1.0\)"):
        dpc.direction(table, "x", "y", loss=dpc.PureDP(1), penalty=1.0)
    with pytest.raises(ParameterError, match=r"method=dpc.methods.Holdout\(release_scores=True\)"):
        dpc.direction(table, "x", "y", loss=dpc.PureDP(1), method="joint", release_scores=True)
    with pytest.raises(ParameterError, match="score='iqr'"):
        dpc.direction(table, "x", "y", loss=dpc.PureDP(1), method="joint", score="iqr")
    assert not table.ledger.entries()
    assert dpc.direction(table, "x", "y", loss=dpc.PureDP(1)).method == "votes"


def test_of_many_rows_no_more_are_scored_than_gaussian_kernels_take() -> None:
    pair = dpc.simulate.anm_pair(10, seed=1)
    for rows in (1000, 250_003, 10**6):
        columns = {name: np.zeros(rows) for name in ("x", "y")}
        table = dpc.Table(columns, pair.schema, dpc.Ledger.in_memory(dpc.PureDP(1)), missing="impute")
        question = Pair.of(table, "x", "y", "hsic", "everyone", None)
        _, m = Joint().settle(question, dpc.PureDP(1)).sizes(question)
        assert m <= MOST_RECORDS["gaussian"] and m == min(round(0.2 * rows), MOST_RECORDS["gaussian"] - 1)


def test_a_clear_pair_is_told_at_many_rows() -> None:
    pair = dpc.simulate.anm_pair(20_000, mechanism="quadratic", noise="uniform", seed=3)
    with dpc.simulated_noise(2):
        result = ask(pair.columns, pair.schema, epsilon=4.0, penalty=0.1)
    assert result.cause == "x"


def test_the_choice_is_paid_for_by_the_same_loss() -> None:
    pair = dpc.simulate.anm_pair(300, seed=1)
    with recording_gate() as recording:
        ask(pair.columns, pair.schema, width=(0.2, 0.8))
    assert [passage.event.mechanism for passage in recording.passages] == ["noisy-max", "laplace"]
    assert sum(passage.event.loss.epsilon for passage in recording.passages) == pytest.approx(1)  # type: ignore[union-attr]
