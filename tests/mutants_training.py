"""Mutants of protected regressions and of what is made of their residuals, for the falsifier."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcausal.direction.scores.anm import typical_distance
from dpcausal.papers.direction import anm_training_privacy as published
from dpcausal.papers.direction import stable, training
from dpcausal.papers.statistics.hsic import GAUSSIAN
from dpcausal.papers.statistics.iqr import interquartile_range
from dpcausal.papers.statistics.rank import kendall
from dpcausal.papers.statistics.stability import fit_stable, prediction_sensitivity
from dpcausal.privacy.sensitivity import Norm
from dpcausal.statistics.hsic import root_hsic
from tests.mutants import Case, by_falsifier
from tests.mutants_statistics import two_clusters
from tests.registry import training_claims as rows_of
from tests.registry.training_claims import BOX, GROUP, HELD_X, LARGE, PENALTY, RANGES, TABLE, N, Rows

HEAVY = 20.0
"""A ridge so heavy that one row moves predictions by a hundredth."""


def centred(rows: Rows) -> Any:
    x, y = rows.T
    mean = float(y.mean())
    return mean + fit_stable(x, y - mean, penalty=HEAVY, table=TABLE).heights


def uncentred(rows: Rows) -> Any:
    return fit_stable(rows[:, 0], rows[:, 1], penalty=HEAVY, table=TABLE).heights


def own_bandwidth(rows: Rows) -> float:
    """The width of the residuals' kernel is that of the training responses: a row changes the kernel itself."""
    x, y = rows.T
    left = rows_of.LEFT - fit_stable(x, y, penalty=HEAVY, table=TABLE)(HELD_X)
    width = typical_distance(y, 1.0)
    return root_hsic(
        HELD_X, left, kernel=GAUSSIAN, width_x=0.4, width_y=width, range_x=stable.RANGE, range_y=stable.RESIDUAL_RANGE
    )


def log_ranges(rows: Rows) -> float:
    left_y, left_x = rows_of.moved(rows, rows_of.SHIFT)
    return math.log(interquartile_range(left_x)) - math.log(interquartile_range(left_y))


CLOSE = np.arange(2 * GROUP) * 0.8 * rows_of.RANK_SHIFT


def close_order(rows: Rows) -> tuple[Any, float]:
    left = CLOSE + rows_of.RANK_SHIFT * (rows[0, : 2 * GROUP] - 0.5)
    return left, 1e4 * kendall(rows_of.HELD_Z, left)


def by_gaps_of_ranks(rows: Rows) -> Any:
    _, score = close_order(rows)
    return np.array([published.rank_distance(1.0, N, 1.0), score])


def by_gaps_of_values(rows: Rows) -> Any:
    left, score = close_order(rows)
    return np.array([published.rank_distance(published.rank_gap(left), N, 1.0), score])


MUTANTS: list[Case] = [
    by_falsifier("0.8 of the regression's bound", rows_of.predictions,
                 lambda m: 0.8 * prediction_sensitivity(m, PENALTY).bound, sizes=(21,), norm=Norm.LINF, **BOX),
    by_falsifier("a regression centred by its training mean", centred,
                 lambda m: prediction_sensitivity(m, HEAVY).bound, sizes=(21,), norm=Norm.LINF, evaluations=400, **BOX),
    by_falsifier("a residual bandwidth from the training rows", own_bandwidth,
                 lambda m: stable.training_sensitivity(m, 2 * GROUP, HEAVY).bound, sizes=(64,), evaluations=200,
                 low=-1.0, starts={"clusters": two_clusters}),
    by_falsifier("a third of the training bound", rows_of.of_scores,
                 lambda m: stable.training_sensitivity(N, 2 * GROUP, LARGE).bound / 3, sizes=(1,), evaluations=200,
                 **RANGES),
    by_falsifier("log ranges by the bound of ranges", log_ranges, lambda m: training.iqr_sensitivity(N, LARGE).bound,
                 sizes=(1,), evaluations=400, **RANGES),
    by_falsifier("stable ranks by gaps between ranks", by_gaps_of_ranks, 1, sizes=(1,), norm=Norm.TESTED,
                 evaluations=400, columns=2 * GROUP),
]  # fmt: skip

CONTROLS: list[Case] = [
    by_falsifier("a regression without an intercept", uncentred, lambda m: prediction_sensitivity(m, HEAVY).bound,
                 sizes=(21,), norm=Norm.LINF, evaluations=800, **BOX),
    by_falsifier("stable ranks by gaps between values", by_gaps_of_values, 1, sizes=(1,), norm=Norm.TESTED,
                 evaluations=1_500, columns=2 * GROUP),
]  # fmt: skip
