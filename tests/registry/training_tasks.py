"""Rows of ``direction`` with protected regressions: the half that trains."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcausal.audit import GreyBoxAudit, compare
from dpcausal.mechanisms.additive import laplace
from dpcausal.papers.direction import anm_training_privacy as published
from dpcausal.papers.direction import stable, training
from dpcausal.papers.direction.stable import Setting
from dpcausal.papers.mechanisms.stable_value import stable_value
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ApproxDP, PureDP
from dpcausal.privacy.sensitivity import Norm, PrivacyUnit, Query, Sensitivity, Unit
from tests.direction.neighbours import HIGH, LOW, ask, halves, new_row, replaced, some_rows
from tests.registry.rows import Neighbours, Search, TaskRow

ROWS = 24
SHAPES = 8


def asked_on_neighbours(**arguments: Any) -> Neighbours:
    """Return the grey box for a direction: a row of the training half is replaced."""
    call = {"protect": "training", **arguments}
    places = halves(ROWS)[0]

    def audit(seed: int, answers: Any) -> GreyBoxAudit:
        rng = np.random.default_rng(seed)
        rows = list(some_rows(rng, ROWS))[seed % SHAPES]
        neighbour = replaced(rows, int(rng.choice(places)), new_row(rng, rows))
        return compare(lambda: ask(rows, **call), lambda: ask(neighbour, **call), answers=answers)

    return Neighbours(audit, Search(lambda rows: ask(rows, **call), ROWS, LOW, HIGH, places))


def of_margins(bound: Sensitivity) -> Any:
    """Return released margins that are a bound apart on the two sides: everything after the scores."""

    def draw(side: int, epsilon: float, size: int) -> list[Any]:
        margin = side * float(bound.bound) * (1 - 1e-12)
        loss = PureDP(epsilon)
        whole = PureDP(loss.exact_epsilon * size)
        allotment = Ledger.in_memory(whole, **PrivacyUnit(bound.unit).words, accept_large_epsilon=True).charge(
            whole, task="audit", unit=bound.unit
        )
        return [
            stable.release_margin(margin, bound, Setting(1.0, 0.5), allotment, loss).margin / float(bound.bound)  # type: ignore[operator]
            for _ in range(size)
        ]

    return draw


def of_scores(both: Sensitivity) -> Any:
    """Return the difference of two released scores that share a bound in l1, all of it in the first."""

    def draw(side: int, epsilon: float, size: int) -> list[Any]:
        loss = PureDP(epsilon)
        whole = PureDP(loss.exact_epsilon * size)
        allotment = Ledger.in_memory(whole, **PrivacyUnit(both.unit).words, accept_large_epsilon=True).charge(
            whole, task="audit", unit=both.unit
        )
        query = Query(np.array([side * float(both.bound) * (1 - 1e-12), 0.0]), both, "scores")
        return [float(laplace(query, allotment, loss)[0]) / float(both.bound) for _ in range(size)]

    return draw


def of_ranks(side: int, epsilon: float, size: int) -> list[Any]:
    """Return whether rank scores are released at a distance of one step and of two."""
    loss = ApproxDP(epsilon, 1e-6)
    whole = ApproxDP(loss.exact_epsilon * size, loss.exact_delta * size)
    allotment = Ledger.in_memory(whole, protect="training", accept_large_epsilon=True).charge(
        whole, task="audit", unit=Unit.TRAINING_ROW
    )
    claim = Sensitivity(1, Norm.TESTED, published.published_hsic_sensitivity(9, 9, 1.0).relation, "training-ranks",
                        Unit.TRAINING_ROW)  # fmt: skip
    query = Query(np.array([1.0 + side, 0.5, 0.5]), claim, "rank scores")
    return [stable_value(query, allotment, loss) is None for _ in range(size)]


TRAINING_MARGIN = stable.training_sensitivity(1000, 1000, 1.0)
IQR_MARGIN = training.iqr_sensitivity(1000, 1.0)

OWN = ("a regression centred by its training mean", "a residual bandwidth from the training rows")
RANKS = ApproxDP(1, 1e-6)

TRAINING = (
    TaskRow("direction training hsic", "direction", training.CLAIMS["hsic"], asked_on_neighbours(),
            of_margins(TRAINING_MARGIN), 0.6, ("a third of the training bound", *OWN)),
    TaskRow("direction training hsic scores", "direction", training.CLAIMS["hsic"],
            asked_on_neighbours(release_scores=True), of_scores(TRAINING_MARGIN), 0.6, OWN),
    TaskRow("direction training iqr", "direction", training.CLAIMS["iqr"],
            asked_on_neighbours(score="iqr"), of_margins(IQR_MARGIN), 0.6,
            ("log ranges by the bound of ranges",)),
    TaskRow("direction training iqr scores", "direction", training.CLAIMS["iqr"],
            asked_on_neighbours(score="iqr", release_scores=True),
            of_scores(training.iqr_sensitivity(1000, 1.0, ranges=2)), 0.6, ("log ranges by the bound of ranges",)),
    TaskRow("direction training published hsic", "direction", ("hsic-training-published", "laplace"),
            asked_on_neighbours(published=True),
            of_scores(published.published_hsic_sensitivity(1000, 1000, 1.0)), 0.6, OWN),
    *(
        TaskRow(f"direction training published {score}", "direction", ("training-ranks", "stable-value"),
                asked_on_neighbours(published=True, score=score, loss=RANKS), of_ranks, 0.0,
                ("stable ranks by gaps between ranks",))
        for score in ("spearman", "kendall")
    ),
)  # fmt: skip
"""The audit's pairs are margins a whole bound apart: how near data come to it is the falsifier's question."""

TRAINING_WAYS = {row.name for row in TRAINING}
