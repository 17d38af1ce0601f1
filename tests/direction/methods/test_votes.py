"""Privacy for every row: whatever row is replaced, one vote may change, and nothing else that could be seen."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpcausal as dpc
from dpcausal.direction.methods import votes as by_blocks
from dpcausal.direction.methods.verdict import decisions_of_blocks
from dpcausal.direction.methods.votes import MajorityVote, default_blocks, vote
from dpcausal.direction.question import Released
from dpcausal.direction.scores import NAMES
from dpcausal.mechanisms.additive import geometric
from dpcausal.mechanisms.blocks import assign_blocks, vote_count
from dpcausal.mechanisms.gate import recording_gate
from tests.direction.neighbours import (
    HIGH,
    LOW,
    Rows,
    ask,
    block_positions,
    faults,
    quick,  # noqa: F401  (a fixture)
    replaced,
)


def easy(n: int, seed: int = 4) -> Rows:
    """Return rows in which x causes y, clearly."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    return np.column_stack([x, np.clip(1 + np.tanh(4 * x) + 0.15 * rng.standard_normal(n), -1, 3)])


def counted(votes: Any, run: Any) -> Released:
    return Released(float(geometric(vote_count(votes, "votes"), run.budget, run.loss)), "votes", None)


def _skips_empty_blocks(self: Any, run: Any) -> Released:
    x, y = run.data[:2]
    parts = assign_blocks(len(x), self.blocks, run.rng)
    votes = [vote(x[part], y[part], "hsic", 1) for part in parts if np.ptp(x[part]) > 0 and np.ptp(y[part]) > 0]
    return counted([True] * (round(self.blocks * sum(votes) / len(votes)) if votes else 0), run)


def _lets_data_choose_the_number_of_blocks(self: Any, run: Any) -> Released:
    x, y = run.data[:2]
    parts = assign_blocks(len(x), 9 if np.max(x) > 0.95 else 3, run.rng)
    return counted([vote(x[part], y[part], "hsic", 1) for part in parts], run)


def _shares_a_scale_between_blocks(self: Any, run: Any) -> Released:
    x, y = run.data[:2]
    signed = y if np.mean(x) > 0 else -y
    return counted([bool(np.mean(signed[part]) > 0) for part in assign_blocks(len(x), self.blocks, run.rng)], run)


def _one_block_speaks() -> tuple[Rows, list[Rows]]:
    """Return rows of which all blocks but one are constant, and neighbours at which a second one is not."""
    rows = np.tile((LOW + HIGH) / 2, (72, 1))
    parts = block_positions(72, 9)
    blocks = (easy(8, seed) for seed in range(20))
    rows[parts[0]] = next(block for block in blocks if vote(block[:, 0], block[:, 1], "hsic", 1))
    return rows, [replaced(rows, int(part[0]), np.array([x, y])) for part in parts[1:] for x, y in ((-1, -1), (1, 2))]


def _all_within_but_one() -> tuple[Rows, list[Rows]]:
    rows = easy(270)
    rows[:, 0] = np.minimum(rows[:, 0], 0.9)
    return rows, [replaced(rows, 0, np.array([1.0, 1.0]))]


def _mean_near_zero() -> tuple[Rows, list[Rows]]:
    rows = np.column_stack([np.tile([-0.5, 0.5], 27), np.full(54, 1.0)])
    rows[0, 0] = -0.4
    return rows, [replaced(rows, 0, np.array([-1.0, 1.0]))]


MUTANTS = {
    "an empty block skipped": (_skips_empty_blocks, _one_block_speaks, 9),
    "the number of blocks from the data": (_lets_data_choose_the_number_of_blocks, _all_within_but_one, 9),
    "a scale shared between blocks": (_shares_a_scale_between_blocks, _mean_near_zero, 5),
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", MUTANTS)
def test_a_release_that_looks_across_blocks_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant, made, blocks = MUTANTS[name]
    rows, neighbours = made()
    assert not any(faults(rows, neighbour, score="hsic", blocks=blocks) for neighbour in neighbours)
    monkeypatch.setattr(MajorityVote, "release", mutant)
    differing = [fault for neighbour in neighbours for fault in faults(rows, neighbour, score="hsic", blocks=blocks)]
    assert differing and all("declared 1" in fault for fault in differing)


@pytest.mark.parametrize("failure", [ValueError("17"), FloatingPointError(), MemoryError(), np.linalg.LinAlgError()])
def test_a_fit_that_fails_votes_at_random_and_prints_nothing(
    failure: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise failure

    monkeypatch.setattr(by_blocks, "of_block", fails)
    x = np.linspace(0, 1, 20)
    assert [vote(x, x, "hsic", seed) for seed in range(4)] == [True, False, True, False]
    assert capsys.readouterr() == ("", "")


LINE = np.arange(60.0)
ODD_ROWS = {
    "nothing": np.zeros((0, 2)), "too few": np.zeros((19, 2)), "constant": np.tile((LOW + HIGH) / 2, (60, 1)),
    "one constant": np.column_stack([LINE, np.ones(60)]), "one line": np.column_stack([LINE, LINE]),
    "one value apart": replaced(np.zeros((60, 2)), 3, HIGH), "two places": np.where(LINE[:, None] % 2, LOW, HIGH),
    "nearly constant": 5e-324 * np.arange(120).reshape(60, 2), "huge": 1e100 * easy(60),
    "beyond squares": 1e300 * easy(60), "not a number": np.full((60, 2), np.nan), "infinite": np.full((60, 2), np.inf),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_ROWS)
def test_no_block_fails_or_warns_whatever_it_holds(name: str) -> None:
    x, y = np.asarray(ODD_ROWS[name], dtype=float).T
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        votes = [{vote(x, y, score, 3) for _ in range(2)} for score in NAMES]
        decisions = [decisions_of_blocks(x, y, seed) for seed in range(4)]
    assert all(one in ({True}, {False}) for one in votes)
    assert all(len(bits) == 4 and all(isinstance(bit, bool) for bit in bits) for bits in decisions)


@pytest.mark.parametrize("rows", [8, 39, 40, 100, 999, 1000, 4000, 10**5, 10**7, 10**9])
@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 0.3, 1.0, 20.0, 1e6])
def test_the_default_number_of_blocks_is_odd_and_leaves_each_block_its_rows(rows: int, epsilon: float) -> None:
    for score in ("lsnm", "hsic"):
        blocks = default_blocks(rows, epsilon, score)
        assert blocks % 2 == 1 and (blocks == 1 or rows // blocks >= 8)
        assert blocks <= default_blocks(2 * rows, epsilon, score)


def test_hsic_has_more_and_smaller_blocks_where_rows_are_many() -> None:
    sizes = ((1_000, 1.0), (4_000, 1.0), (4_000, 0.3), (100_000, 1.0), (100_000, 0.1))
    assert [default_blocks(n, epsilon, "hsic") for n, epsilon in sizes] == [13, 53, 53, 79, 501]
    assert [default_blocks(n, epsilon, "lsnm") for n, epsilon in sizes] == [9, 17, 31, 23, 239]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("answer", [-1000, -1, 0, 1, 2, 3, 4, 1000])
def test_lead_lean_and_p_follow_from_the_noisy_count(answer: int) -> None:
    with recording_gate(lambda event, value: np.asarray(answer)):
        r = ask(easy(30), blocks=3, loss=dpc.PureDP(0.5))
    assert r.margin == 2 * answer - 3 and r.margin_unit == "votes"
    assert r.favoured == ("x" if answer >= 2 else "y")
    # By enumeration: four counts of three coins, geometric noise at ε = .5, both sides.
    far = max(answer, 3 - answer)
    tail = sum(comb * float(stats.dlaplace.sf(far - votes - 1, 0.5)) for votes, comb in enumerate((1, 3, 3, 1))) / 8
    assert r.p_sign == r.p_arrow == pytest.approx(min(1.0, 2 * tail), abs=1e-12)
    assert (r.cause is not None) == (r.p_sign <= 0.1)


def test_a_constant_column_votes_at_random() -> None:
    flat, other = np.full(30, 0.5), np.linspace(-1, 1, 30)
    for score in ("hsic", "lsnm"):
        assert [vote(flat, other, score, seed) for seed in range(4)] == [True, False, True, False]
        assert [vote(other, flat, score, seed) for seed in range(4)] == [True, False, True, False]
