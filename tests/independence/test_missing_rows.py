"""Rows with a missing value contribute nothing, inside their own block, stratum or pair, and bounds still hold."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

import dpcausal as dpc
from dpcausal.data.records import Rows
from dpcausal.independence.methods import block_test as blocks
from dpcausal.independence.methods.block_test import LEAST_COMPLETE, block_scores
from dpcausal.independence.methods.hsic import first_returns
from dpcausal.independence.question import IndependenceQuestion
from dpcausal.privacy.noise import generator_from_seed
from tests.independence.neighbours import answer_of
from tests.test_contract import EXAMPLES
from tests.test_contract import frame as people
from tests.test_contract import table_of as people_of

N = 480
SCHEMA = dpc.Schema(
    {"x": dpc.Bounded(-4, 4), "y": dpc.Bounded(-4, 4), "z": dpc.Bounded(-4, 4), "u": dpc.Bounded(0, 1),
     "g": dpc.Levels([0, 1, 2])}
)  # fmt: skip
LAW = dpc.ModelX(mean=lambda z: 0.5 * z[:, 0], sd=1.0)


Frame = dict[str, np.ndarray]


def frame(seed: int, share: float = 0.3) -> Frame:
    """Return rows of which a share has x missing, and as many y."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(N)
    columns = {"x": 0.5 * z + rng.standard_normal(N), "y": 0.7 * z + rng.standard_normal(N), "z": z}
    columns["x"][rng.random(N) < share] = np.nan
    columns["y"][rng.random(N) < share] = np.nan
    return {**columns, "u": rng.random(N), "g": rng.integers(0, 3, N)}


def table_of(columns: Frame) -> dpc.Table:
    return dpc.Table(columns, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(10)))


def rows_of_test(columns: Frame) -> tuple[Any, IndependenceQuestion]:
    question = IndependenceQuestion.of(table_of(columns), "x", "y", ["z"], 0.05)
    return question.read(), question


def test_blocks_of_too_few_complete_rows_have_random_normal_scores() -> None:
    columns = frame(4, share=0.0)
    columns["x"][LEAST_COMPLETE - 1 :] = np.nan
    method = dpc.methods.Gcm(blocks=4).plan(rows_of_test(columns)[1], dpc.PureDP(1.0))
    empty = {**columns, "x": np.full(N, np.nan)}
    scores, nothing = (
        [block_scores(method, *rows_of_test(each), generator_from_seed(seed)) for seed in range(250)]
        for each in (columns, empty)
    )
    assert scores == nothing
    assert kstest(np.ravel(scores), "norm").pvalue > 1e-4  # false alarm 1e-4


def test_first_returns_permute_the_complete_rows_uniformly() -> None:
    complete, rng = np.array([True, False, True, False, False, True, True]), np.random.default_rng(8)
    orders = Counter(tuple(first_returns(rng.permutation(7), complete)) for _ in range(4000))
    assert len(orders) == 24 and {tuple(sorted(order)) for order in orders} == {(0, 2, 5, 6)}
    assert chisquare(list(orders.values())).pvalue > 1e-4  # false alarm 1e-4


def permuted_anew(order: np.ndarray, complete: np.ndarray) -> np.ndarray:
    """Permute the complete rows among themselves: the mutant of ``first_returns``."""
    places = np.flatnonzero(complete)
    return places[np.argsort(np.argsort(order[: places.size]))]


@pytest.mark.parametrize(("partners", "holds"), [(first_returns, True), (permuted_anew, False)])
def test_a_row_that_is_left_out_changes_one_partner_of_a_permutation(partners: Any, holds: bool) -> None:
    rng, changed = np.random.default_rng(10), []
    for _ in range(200):
        order, complete = rng.permutation(30), rng.random(30) < 0.6
        less = complete.copy()
        less[np.flatnonzero(complete)[0]] = False
        whole = dict(zip(np.flatnonzero(complete), partners(order, complete), strict=True))
        part = dict(zip(np.flatnonzero(less), partners(order, less), strict=True))
        changed.append(sum(whole[row] != partner for row, partner in part.items()))
    assert (max(changed) <= 1) == holds


@pytest.mark.parametrize("way", [way for way in EXAMPLES if way.startswith("ci_test ")])
def test_no_row_may_be_complete(way: str) -> None:
    columns = people(5)
    answer = EXAMPLES[way](people_of(columns | {name: np.full(len(columns[name]), np.nan) for name in "xa"}))
    assert np.isfinite(answer.statistic)


@pytest.mark.parametrize(
    "method", [dpc.papers.PrivGcm(), dpc.papers.PrivCrt(model_x=LAW)], ids=lambda one: one.name
)
def test_a_method_that_cannot_leave_rows_out_is_refused_before_the_spend(method: Any) -> None:
    table = table_of(frame(6))
    with pytest.raises(dpc.errors.ParameterError, match="cannot leave out rows"):
        dpc.ci_test(table, "x", "y", given=["z"], method=method, loss=dpc.ApproxDP(1, 1e-6), accept_unproven=True)
    assert not table.ledger.entries()


def _changed(method: Any, alter: Callable[[Any], Any]) -> list[int]:
    """Return in how many blocks a left-out row shows, for ten rows, all altered before they are assigned."""

    def scores(columns: Frame) -> np.ndarray:
        rows, question = rows_of_test(columns)
        return np.array(block_scores(method, alter(rows), question, generator_from_seed(5)))

    before = frame(3)
    places, whole = np.flatnonzero(~np.isnan(before["x"]))[60:70], scores(before)
    without = ({**before, "x": np.where(np.arange(N) == place, np.nan, before["x"])} for place in places)
    return [int((scores(after) != whole).sum()) for after in without]


def test_a_left_out_row_changes_its_own_block_alone_and_rows_left_out_before_the_assignment_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    method = dpc.methods.Gcm(blocks=6, resamples=19).plan(rows_of_test(frame(3))[1], dpc.PureDP(1.0))
    assert max(_changed(method, lambda rows: rows)) == 1
    assert max(_changed(method, lambda rows: rows.complete())) > 1
    complete: list[int] = []

    def counted(rows: Any) -> Any:  # the blocks' seeds then follow the number of complete rows
        complete[:] = [int(rows.is_complete.sum())]
        return rows

    monkeypatch.setattr(blocks, "generator_from_seed", lambda seed: generator_from_seed(seed // 2 + complete[0]))
    assert max(_changed(method, counted)) > 1


def test_what_is_imputed_although_rows_are_to_be_left_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    of = Rows.of
    monkeypatch.setattr(Rows, "of", lambda collected, inside, _missing: of(collected, inside, "impute"))
    before = frame(1)
    after = {**before, "y": np.where(np.isnan(before["x"]), 3.0, before["y"])}
    options: Any = {"given": ["z"], "loss": dpc.PureDP(1), "seed": 7, "method": dpc.methods.Gcm(blocks=4)}
    assert answer_of(before, SCHEMA, **options).statistic != answer_of(after, SCHEMA, **options).statistic
