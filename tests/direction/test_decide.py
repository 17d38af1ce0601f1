"""``direction`` from end to end: frames, budgets, what is stamped, and how often the answer is right."""

import numpy as np
import pytest
from scipy import stats

import dpcausal as dpc
from dpcausal.mechanisms.gate import recording_gate
from tests.direction.neighbours import Rows, ask, halves, quick, table  # noqa: F401


def easy(n: int, seed: int = 5) -> Rows:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    return np.column_stack([x, np.clip(1 + np.tanh(4 * x) + 0.15 * rng.standard_normal(n), -1, 3)])


def test_what_plays_no_part_without_privacy_is_said_to() -> None:
    rows = np.zeros((40, 2))
    assert "had no effect" in ask(rows, loss=dpc.NoPrivacy(), method="majority-vote").details().splitlines()[0]
    assert not any("no effect" in caveat for caveat in ask(rows, loss=dpc.NoPrivacy()).guarantee.caveats)
    asked = table(rows, dpc.Ledger.without_privacy())
    many = dpc.direction_all(asked, loss=dpc.NoPrivacy(), method="majority-vote", scores="hsic")
    for one in (many, *many.directions):
        assert "method='majority-vote' had no effect" in one.guarantee.caveats[-1]


def test_the_sign_of_the_margin_is_the_direction_and_a_margin_of_zero_goes_to_the_first() -> None:
    for answer, cause in ((0.25, "x"), (0.0, "x"), (-0.25, "y")):
        with recording_gate(lambda event, value, answer=answer: np.asarray(answer)):
            r = ask(easy(40), protect="test")
        assert (r.margin, r.cause) == (answer, cause)
    for answer, margin, cause in ((0, 0.5, "x"), (-1, -0.5, "y")):
        with recording_gate(lambda event, value, answer=answer: np.asarray(answer)):
            r = ask(easy(40), protect="test", score="kendall")
        assert (r.margin, r.cause, r.margin_unit) == (margin, cause, "records")


def test_a_tie_of_the_exact_scores_goes_to_the_first() -> None:
    rows = easy(40)
    train, _ = halves(40)
    rows[train] = 0.0  # constant regressions: both rank scores are |rho| of the test half's two columns
    with dpc.simulated_noise(0):
        r = ask(rows, score="kendall", protect="test", loss=dpc.NoPrivacy())
    assert r.margin == 0 and r.cause == "x"


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("mode", ["everyone", "test"])
def test_the_cause_of_an_easy_pair_is_favoured_far_more_often_than_by_chance(mode: str) -> None:
    # 40 answers at ε = 2, seeds fixed; chance would be right 37 times or more with a chance of 1e-8.
    assert stats.binom(40, 0.5).sf(36) < 1e-8
    right = 0
    for seed in range(20):
        rows = easy(400, seed)
        for columns in (rows, np.column_stack([(rows[:, 1] - 1) / 2, 1 + 2 * rows[:, 0]])):
            with dpc.simulated_noise(seed):
                r = ask(columns, protect=mode, loss=dpc.PureDP(2))
            right += r.favoured == ("x" if columns is rows else "y")
    assert right >= 37
