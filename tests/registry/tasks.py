"""Every public call that spends: what it brings to the gate on neighbours, and its outputs on a worst pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from dpcausal.core.method import Run
from dpcausal.direction.methods import verdict as by_verdict
from dpcausal.direction.methods import votes as by_blocks
from dpcausal.direction.question import Columns, Pair, Released
from dpcausal.direction.scores.anm import Residuals
from dpcausal.mechanisms.blocks import assign_blocks, equal_blocks
from dpcausal.papers.direction import anm_test_privacy as published
from dpcausal.papers.direction import holdout
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.privacy.sensitivity import Unit
from tests.direction.neighbours import table
from tests.registry import discovery, effects, independence, panels
from tests.registry.asked import asked_on_neighbours
from tests.registry.iqr import IQR_TASKS
from tests.registry.many import MANY
from tests.registry.rows import TaskRow
from tests.registry.training_tasks import TRAINING

ASKED = "x", "y", "hsic", 0.1


def fitted(x: Any, left_y: Any, y: Any, left_x: Any) -> Residuals:
    """Return scored rows as they come from the regressions, with public ranges [0, 1]."""
    unit = (0.0, 1.0)
    columns = (np.asarray(values, dtype=np.float64) for values in (x, y, left_y, left_x))
    return Residuals(*columns, unit, unit, unit, unit, 0.3, 0.3, 0.3, 0.3)


LINE = np.arange(1, 7) / 10
TOP, BOTTOM = np.append(LINE, 0.9), np.append(LINE, 0.0)
ONE_DOWN_ONE_UP = fitted(TOP, TOP, BOTTOM, TOP), fitted(BOTTOM, TOP, TOP, TOP)
"""The last row moves: "x causes y" falls from rank correlation 1 by the whole bound, "y causes x" rises to 1 by it."""

FAR = {"width_x": 1e-3, "width_y": 1e-3, "width_left_y": 1e-3, "width_left_x": 1e-3}


def grouped() -> tuple[Residuals, Residuals]:
    """Return the tight construction of root-hsic for both scores: the first record leaves two others, and joins two."""
    rows = np.full((200, 2), 0.5)
    rows[:3] = 0.0
    rows[3:23], rows[23:43] = (1.0, 0.5), (0.5, 1.0)
    other = rows.copy()
    other[0] = 1.0
    one, two = (fitted(a[:, 0], a[:, 1], b[:, 0], b[:, 1]) for a, b in ((rows, other), (other, rows)))
    return replace(one, **FAR), replace(two, **FAR)


TIE = fitted(LINE, LINE, LINE, LINE)
TIE_AND_BESIDE = TIE, replace(TIE, x=np.array([*LINE[:4], 0.55, LINE[5]]))
"""Equal products of IQRs are a win of the first, z = 0; with one row moved out they are the second's, z = −1."""


def of_rule(release: Callable[..., Released], pair: tuple[Residuals, Residuals]) -> Any:
    """Return the released margins on a pair of scored rows: everything after the regressions."""

    def draw(side: int, epsilon: float, size: int) -> list[Any]:
        loss = PureDP(epsilon)
        whole = PureDP(loss.exact_epsilon * size)
        allotment = Ledger.in_memory(whole, protect="test", accept_large_epsilon=True).charge(
            whole, task="audit", unit=Unit.TEST_ROW
        )
        return [release(pair[side], allotment, loss).margin for _ in range(size)]

    return draw


def published_rule(score: str) -> Callable[..., Released]:
    return lambda rest, allotment, loss: published.release(rest, score, allotment, loss)


def columns_of(x: Any) -> Columns:
    return Columns(x, x, np.ones(len(x), dtype=np.bool_))


def of_bits(side: int, epsilon: float, size: int) -> list[Any]:
    """Return the least of four noisy counts over three blocks; a block casts all bits by its first value."""
    x = np.full(9, 0.2)
    if side:
        x[equal_blocks(9, 3, 3, generator_from_seed(1))[0][0]] = 0.8
    loss = PureDP(epsilon)
    whole = PureDP(loss.exact_epsilon * size)
    allotment = Ledger.in_memory(whole, accept_large_epsilon=True).charge(whole, task="audit")
    with (
        mock.patch.object(by_verdict, "decisions_of_blocks", lambda x, y, seed, model: (bool(x[0] > 0.5),) * 4),
        mock.patch.object(by_verdict, "claims_of", lambda counts, found, names: FREE),  # p-values, which cost time
    ):
        way = by_verdict.Verdict(blocks=3, rows_per_block=3)
        question = Pair.of(
            table(np.zeros((9, 2)), Ledger.in_memory(loss, accept_large_epsilon=True)),
            "x",
            "y",
            "lsnm",
            0.1,
        )
        return [
            min(way.release(Run(question, loss, allotment, generator_from_seed(1), columns_of(x))).counts or (0,))
            for _ in range(size)
        ]


FREE = dict.fromkeys(by_verdict.claims_of(by_verdict.Counts(3, by_verdict.no_noise), (0, 0, 0, 0), ("x", "y")), 1.0)


def of_blocks(side: int, epsilon: float, size: int) -> list[Any]:
    """Return noisy leads over three blocks; a block votes by its first value, so the pair moves one vote."""
    x = np.full(9, 0.2)
    if side:
        x[:] = 0.2
        x[assign_blocks(9, 3, generator_from_seed(1))[0][0]] = 0.8
    loss = PureDP(epsilon)
    whole = PureDP(loss.exact_epsilon * size)
    allotment = Ledger.in_memory(whole, accept_large_epsilon=True).charge(whole, task="audit")
    with mock.patch.object(by_blocks, "vote", lambda x, y, score, seed: bool(x[0] > 0.5)):
        way, question = (
            by_blocks.MajorityVote(blocks=3),
            Pair.of(table(np.zeros((9, 2)), Ledger.in_memory(loss, accept_large_epsilon=True)), *ASKED),
        )
        return [
            way.release(Run(question, loss, allotment, generator_from_seed(1), columns_of(x))).margin
            for _ in range(size)
        ]


HOLDOUT_MUTANTS = {
    "hsic": ("a bandwidth from the test rows", "two scores by the bound of one"),
    "spearman": ("residuals of a regression on the test rows", "tie-corrected rho"),
    "kendall": ("the signed margin in floats", "tie-corrected tau"),
    "iqr": ("the IQR's flip distance with its tie rule swapped",),
}
WORST = {"hsic": grouped(), "spearman": ONE_DOWN_ONE_UP, "kendall": ONE_DOWN_ONE_UP, "iqr": TIE_AND_BESIDE}
ATTAINED = {"hsic": 0.0, "spearman": 0.6, "kendall": 0.6, "iqr": 0.6}

TASKS = (
    TaskRow("direction verdict", "direction", by_verdict.PROOFS,
            asked_on_neighbours("everyone", 156, method="verdict", blocks=3, rows_per_block=50), of_bits, 0.2,
            ("a row in two blocks", "bits of the rows that lack nothing, dealt afresh",
             "four draws, each at the full ε")),
    TaskRow("direction majority-vote", "direction", by_blocks.PROOFS,
            asked_on_neighbours("everyone", score="igci", blocks=1), of_blocks, 0.6,
            ("blocks made by value", "votes against a median of all blocks", "constant blocks are skipped")),
    *(
        TaskRow(f"direction holdout {score}", "direction", rule.proofs, asked_on_neighbours("test", score=score),
                of_rule(rule.direction, WORST[score]), ATTAINED[score], HOLDOUT_MUTANTS[score])
        for score, rule in holdout.RULES.items()
    ),
    *(
        TaskRow(f"direction holdout {score} scores", "direction", rule.score_proofs,
                asked_on_neighbours("test", score=score, release_scores=True), of_rule(rule.scores, WORST[score]), 0.0,
                (*HOLDOUT_MUTANTS[score], "two scores, each at the full ε", "one seed for both draws"))
        for score, rule in holdout.RULES.items() if rule.scores
    ),
    *(
        TaskRow(f"direction published {score}", "direction", claims,
                asked_on_neighbours("test", score=score, published=True),
                of_rule(published_rule(score), WORST[score]), 0.0, HOLDOUT_MUTANTS[score])
        for score, claims in published.CLAIMS.items()
    ),
    *IQR_TASKS,
    *MANY,
    *TRAINING,
    *discovery.TASKS,
    *effects.TASKS,
    *independence.TASKS,
    *panels.TASKS,
)  # fmt: skip
"""The published IQR has no claims, hence no row here: see the mechanism ``propose-test-release-published``."""
