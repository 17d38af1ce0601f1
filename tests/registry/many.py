"""Rows of ``direction_all``: each way its cost is divided, on tables of two columns and two scores."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

import dpcausal as dpc
from dpcausal.audit import GreyBoxAudit, compare
from dpcausal.direction.many import planned
from dpcausal.direction.methods import votes as by_blocks
from dpcausal.direction.question import Columns
from dpcausal.papers.direction import holdout
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ZCDP, Loss, PureDP
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.privacy.sensitivity import Unit
from tests.direction.neighbours import HIGH, LOW, SCHEMA, halves, new_row, replaced, some_rows, spelled, table
from tests.registry.rows import Neighbours, Search, TaskRow, TextRow

ROWS = 24
SHAPES = 8


def asked_on_neighbours(loss: Any, protect: str, scores: tuple[str, ...]) -> Neighbours:
    """Return the grey box for one pair and several scores: a row of the protected part is replaced."""
    size = 80 if protect == "everyone" else ROWS
    places = np.arange(size) if protect == "everyone" else halves(size)[1]

    def ask(rows: Any) -> Any:
        asked = table(rows, Ledger.in_memory(loss, protect=protect, accept_large_epsilon=True))
        return dpc.direction_all(asked, scores=scores, loss=loss, **spelled({"protect": protect}))

    def audit(seed: int, answers: Any) -> GreyBoxAudit:
        rng = np.random.default_rng(seed)
        rows = list(some_rows(rng, size))[seed % SHAPES]
        neighbour = replaced(rows, int(rng.choice(places)), new_row(rng, rows))
        return compare(lambda: ask(rows), lambda: ask(neighbour), answers=answers)

    return Neighbours(audit, Search(ask, size, LOW, HIGH, places))


def on_one_block(loss_of: Callable[[float], Loss]) -> Callable[[int, float, int], list[Any]]:
    """Return the lesser of two noisy leads over one block that a row can turn: both answers move, by a vote each.

    A block votes by its first value; both leads are far above the threshold only if both draws are, so the whole ε
    shows.
    """

    def draw(side: int, epsilon: float, size: int) -> list[Any]:
        columns = {name: np.full(9, 0.8 if side else 0.2) for name in ("x", "y")}
        asked = dpc.Table(columns, SCHEMA, Ledger.in_memory(PureDP(1)), missing="impute")
        scores = ("igci", "igci-slope")
        way = by_blocks.MajorityVote(blocks=1)
        plans, _ = planned(asked, None, loss_of(epsilon), scores, None, way, 0.1, False)
        both = Columns(columns["x"], columns["y"], np.ones(9, dtype=np.bool_))
        whole = PureDP(PureDP(epsilon).exact_epsilon * size)
        allotment = Ledger.in_memory(whole, accept_large_epsilon=True).charge(whole, task="audit")
        with mock.patch.object(by_blocks, "vote", lambda x, y, score, seed: bool(x[0] > 0.5)):
            return [
                min(plan.released(both, generator_from_seed(1), allotment)().margin or 0 for plan in plans)
                for _ in range(size)
            ]

    return draw


def on_scored_rows(side: int, epsilon: float, size: int) -> list[Any]:
    """Return whether both of two scores of a test half favour the first, on rows at which both move by their bounds."""
    from tests.registry.tasks import ONE_DOWN_ONE_UP  # that page makes its rows with this one

    part, whole = PureDP(epsilon).part(Fraction(1, 2)), PureDP(PureDP(epsilon).exact_epsilon * size)
    allotment = Ledger.in_memory(whole, protect="test", accept_large_epsilon=True).charge(
        whole, task="audit", unit=Unit.TEST_ROW
    )
    rules = [holdout.RULES[score].direction for score in TEST_SCORES]
    rest = ONE_DOWN_ONE_UP[side]
    return [all((rule(rest, allotment, part).margin or 0) > 0 for rule in rules) for _ in range(size)]


def half_of_both(epsilon: float) -> ZCDP:
    """Return the ρ that pays ε/2 for each of two answers: 2 (ε/2)²/2."""
    return ZCDP(PureDP(epsilon).exact_epsilon ** 2 / 4)


MUTANTS = ("many answers, each at the whole ε", "parts by the root of their number under a pure loss")
TEST_SCORES = ("spearman", "kendall")

MANY = (
    TaskRow("direction_all by epsilon", "direction_all", (*by_blocks.PROOFS, "divided-loss"),
            asked_on_neighbours(PureDP(1), "everyone", ("igci-slope", "igci")), on_one_block(PureDP), 0.5, MUTANTS),
    TaskRow("direction_all by rho", "direction_all", (*by_blocks.PROOFS, "divided-loss"),
            asked_on_neighbours(ZCDP(0.5), "everyone", ("igci", "igci-gaussian")), on_one_block(half_of_both), 0.5,
            MUTANTS),
    TaskRow("direction_all test half", "direction_all",
            (*dict.fromkeys(claim for score in TEST_SCORES for claim in holdout.RULES[score].proofs), "divided-loss",
             "one-half-for-all"),
            asked_on_neighbours(PureDP(1), "test", TEST_SCORES), on_scored_rows, 0.5,
            (*MUTANTS, "the halves dealt anew for each answer")),
)  # fmt: skip

MANY_TEXTS = (
    TextRow("divided-loss", "composition", "how one loss is divided among pure releases"),
    TextRow("one-half-for-all", "lemma", "the protected half is the same in all answers of a call"),
    TextRow("verdict-level", "lemma", "the level of what is made of released counts"),
    TextRow("arrows-of-many", "lemma", "the correction of released p-values"),
    TextRow("lsnm", "lemma", "what the default score estimates, no bound"),
)
