"""Many answers at one cost: how the loss is divided, and that all answers protect the same half."""

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

import dpcausal as dpc
from dpcausal.core import run as asking
from dpcausal.direction.api import planned_calls
from dpcausal.direction.methods import votes as by_blocks
from dpcausal.direction.scores.anm import split_rows
from dpcausal.errors import DpCausalError
from dpcausal.papers import Holdout
from dpcausal.papers.direction import holdout
from dpcausal.privacy.budget import Event
from dpcausal.privacy.checks import split_loss
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, PureDP
from dpcausal.privacy.noise import generator_from_seed, public_generator
from tests.direction.neighbours import HIGH, SCHEMA, spelled, table
from tests.registry.direction import ONE_DOWN_ONE_UP, columns_of, on_neighbours
from tests.registry.mechanisms import on_both, two_draws_of
from tests.registry.rows import Case, Neighbours, Rows, Search, TaskRow, TextRow, allotted, by_black_box, replaced


def scores_on_neighbours(loss: Any, protect: str, scores: tuple[str, ...]) -> Neighbours:
    """Return the grey box for one pair of columns and several scores: a row of the protected part is replaced."""

    def ask(rows: Rows) -> Any:
        data = table(rows, dpc.Ledger.in_memory(loss, protect=protect, accept_large_epsilon=True))
        return dpc.direction_all(data, scores=scores, loss=loss, **spelled({"protect": protect}))

    return on_neighbours(ask, protect, 80 if protect == "everyone" else 24)


def on_one_block(loss_of: Callable[[float], Loss]) -> Callable[[int, float, int], list[Any]]:
    """Return the lesser of two noisy leads over one block that a row can turn: both answers move, by a vote each.

    A block votes by its first value; both leads are far above the threshold only if both draws are, so the whole ε
    shows.
    """

    def draw(side: int, epsilon: float, size: int) -> list[Any]:
        columns = {name: np.full(9, 0.8 if side else 0.2) for name in ("x", "y")}
        data = dpc.Table(columns, SCHEMA, dpc.Ledger.in_memory(PureDP(1)), missing="impute")
        way = by_blocks.MajorityVote(blocks=1)
        plans, _ = planned_calls(data, None, loss_of(epsilon), ("lsnm", "hsic"), None, way, 0.1, False)
        both, budget = columns_of(columns["x"]), allotted(PureDP(epsilon), size)

        def lead(plan: Any) -> Any:
            return plan.released(both, generator_from_seed(1), budget)().margin or 0

        with mock.patch.object(by_blocks, "vote", lambda x, y, score, seed: bool(x[0] > 0.5)):
            return [min(lead(plan) for plan in plans) for _ in range(size)]

    return draw


def on_scored_rows(side: int, epsilon: float, size: int) -> list[Any]:
    """Return whether both of two scores of a test half favour the first, on rows at which both move by their bounds."""
    part, budget = PureDP(epsilon).part(Fraction(1, 2)), allotted(PureDP(epsilon), size, dpc.Unit.TEST_ROW)

    def favours_first(score: str) -> bool:
        return (holdout.release_direction(score, ONE_DOWN_ONE_UP[side], budget, part).margin or 0) > 0

    return [all(map(favours_first, TEST_SCORES)) for _ in range(size)]


def half_of_both(epsilon: float) -> ZCDP:
    """Return the ρ that pays ε/2 for each of two answers: 2 (ε/2)²/2."""
    return ZCDP(PureDP(epsilon).exact_epsilon ** 2 / 4)


TEST_SCORES = ("spearman", "kendall")
OF_HALVES = tuple(dict.fromkeys(claim for score in TEST_SCORES for claim in holdout.PROOFS[score]))
TASKS = (
    TaskRow("direction_all by epsilon", "direction_all", (*by_blocks.MajorityVote.proofs, "divided-loss"),
            scores_on_neighbours(PureDP(1), "everyone", ("hsic", "lsnm")), on_one_block(PureDP), 0.5),
    TaskRow("direction_all by rho", "direction_all", (*by_blocks.MajorityVote.proofs, "divided-loss"),
            scores_on_neighbours(ZCDP(0.5), "everyone", ("lsnm", "hsic")), on_one_block(half_of_both), 0.5),
    TaskRow("direction_all test half", "direction_all", (*OF_HALVES, "divided-loss", "one-half-for-all"),
            scores_on_neighbours(PureDP(1), "test", TEST_SCORES), on_scored_rows, 0.5),
)  # fmt: skip
SENSITIVITIES = ()
TEXTS = (
    TextRow("divided-loss", "composition", "how one loss is divided among pure releases"),
    TextRow("one-half-for-all", "lemma", "the protected half is the same in all answers of a call"),
    TextRow("verdict-level", "lemma", "the level of what is made of released counts"),
    TextRow("arrows-of-many", "lemma", "the correction of released p-values"),
    TextRow("lsnm", "lemma", "what the default score estimates, no bound"),
)

ANSWERS, ROWS = 100, 80
PURE, SMALL = PureDP(1), ApproxDP(1, 1e-6)


def refuses(loss: Loss, parts: Any, zcdp: Any = None) -> bool:
    """Return whether an allotment of the loss refuses its parts."""
    budget = dpc.Ledger.in_memory(loss, accept_large_epsilon=True).charge(loss, task="parts", zcdp=zcdp)
    try:
        for part in parts:
            budget.spend(Event("geometric", "votes", part, 1.0, "l1", 1.0, "block-votes"))
    except DpCausalError:
        return True
    return False


def by_root(loss: Any) -> bool:
    return refuses(loss, [PureDP(loss.exact_epsilon / 10)] * ANSWERS)  # 10 = √100


def of_division(loss: Any, shares: list[Fraction]) -> bool:
    division = split_loss(loss, shares)
    return refuses(division.spent, division.parts, division.zcdp)


def of_halves(turns: Callable[[], Iterator[int]]) -> bool:
    """Return whether the grey box flags two answers about a test half when one row of the first's is replaced.

    Each answer's seed is the public one plus its turn: 1 for all, or another for each, which splits the rows anew.  The
    row is one that the second answer would then learn from: in its training rows nothing varies, so that the new row,
    alone at x = 1, lifts the prediction there and all residuals of that place with it.
    """
    with dpc.simulated_noise(0):
        _, seed = public_generator()
    (_, first_test), (second_train, second_test) = (
        split_rows(ROWS, 0.5, generator_from_seed(seed + turn)) for turn in (1, 2)
    )
    rows = np.zeros((ROWS, 2))
    rows[second_test[::2], 0] = 1.0
    other = replaced(rows, int(np.intersect1d(first_test, second_train)[0]), HIGH)

    def ask(rows: Rows) -> Any:
        turn = turns()
        with mock.patch.object(asking, "public_generator", lambda seed: public_generator(seed + next(turn))):
            data = table(rows, dpc.Ledger.in_memory(PURE, protect="test", accept_large_epsilon=True))
            return dpc.direction_all(data, scores=("kendall", "spearman"), loss=PURE, method=Holdout())

    return Neighbours(lambda seed: (rows, other), Search(ask, ROWS, rows, rows))(0, "low").violated


MUTANTS = (
    by_black_box("many answers, each at the whole ε", on_both(two_draws_of(1.0))),
    Case("parts by the root of their number under a pure loss", "ledger", lambda: by_root(PURE)),
    Case("parts by the root of their number without a ρ", "ledger", lambda: by_root(SMALL)),
    Case("the halves dealt anew for each answer", "grey box", lambda: of_halves(lambda: itertools.count(1))),
)
CONTROLS = (
    by_black_box("many answers, each at its part of ε", on_both(two_draws_of(2.0))),
    Case("parts of a pure loss", "ledger", lambda: of_division(PURE, [Fraction(1)] * ANSWERS)),
    Case("parts of a small δ, by ρ", "ledger", lambda: of_division(SMALL, [Fraction(k) for k in range(1, ANSWERS)])),
    Case("one half for all answers", "grey box", lambda: of_halves(lambda: itertools.repeat(1))),
)
