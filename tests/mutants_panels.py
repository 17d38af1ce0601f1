"""Mutants of synthetic controls, killed by the falsifier; controls are the library's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpcausal.papers.mechanisms.objective_perturbation import gradient_bound
from dpcausal.papers.statistics.ridge_weights import ridge_weight_bound, ridge_weights
from dpcausal.papers.synthetic_control import perturbation
from dpcausal.privacy.sensitivity import Norm
from dpcausal.synthetic_control import placebo
from dpcausal.synthetic_control.donor_rows import FINE, FULL, Grid, at_length, within_radius
from dpcausal.synthetic_control.methods import factor, matched
from dpcausal.synthetic_control.methods.matched import Matching, matched_sensitivity, matched_sums
from dpcausal.synthetic_control.placebo import Placebos
from tests.mutants import Case, by_falsifier

Rows = Any

ONES = np.ones(2)
RADIUS = 3000
WEIGHTS = np.array([-0.7, 0.1, 0.4, 0.2])
GRID = Grid(2.0**-12, 3, 2**24)
BY = Matching(GRID, 1, GRID.rows(np.array([[0.1, -0.2, 0.3]]))[0], np.empty(0), 0.2 * FINE, 0.25 * FINE)


def whole(rows: Rows) -> Any:
    return np.rint(rows * FINE).astype(np.int64)


def sums(rows: Rows, by: Matching) -> Any:
    cells = GRID.rows(np.clip(rows, -1, 1))
    return matched_sums(*matched.weights_and_changes(cells, np.empty((len(cells), 0)), by)[:2], by)


def own_width(rows: Rows) -> Any:
    return sums(rows, replace(BY, kernel_width=FINE * max(float(np.std(rows[:, :3])), 0.02)))


def followers(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    rows = np.tile([0.1, -0.2, 0.3, 0.8], (m, 1))
    rows += 0.02 * rng.standard_normal(rows.shape)
    return np.clip(rows, -1, 1)


def matched_mean(rows: Rows) -> Any:
    weights = np.exp(-(rows[:, 0] ** 2) * 20)
    return np.clip(rows[:, 1], -0.25, 0.25) @ weights / max(float(weights.sum()), 1e-9)


def far_but_one(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    rows = np.ones((m, 2))
    rows[0] = 0, -1
    return rows


def own_radius(rows: Rows) -> Any:
    radius = max(1, int(np.quantile(np.linalg.norm(whole(rows), axis=1), 0.5)))
    return within_radius(whole(rows), radius).sum(axis=0) / radius


def clipped_then_centred(rows: Rows) -> Any:
    clipped = within_radius(whole(rows), RADIUS)
    return (clipped - clipped[:, :1]).sum(axis=0)


def less_own_means(rows: Rows) -> Any:
    later = rows[:, 1:] - rows[:, :1]
    return later.T @ WEIGHTS[: len(rows)]


def refitted(rows: Rows) -> int:
    others = (rows[:, 0].sum() - rows[:, 0]) / (len(rows) - 1)
    full = np.full(len(rows), FULL)
    return placebo.count_beyond(Placebos(rows[:, 0] - others, np.ones(len(rows)), full), 0.4, 1.0)


def table(rows: Rows) -> Any:
    full = np.full(len(rows), FULL)
    return placebo.ratio_table(Placebos(rows[:, 0], np.abs(rows[:, 1]), full, rows[:, 3]))


def near(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    return np.column_stack([np.append(np.full(m - 1, 0.2), 0.9), np.ones(m)])


def unbounded_scores(rows: Rows) -> float:
    return float((FULL * (rows[:, 0] / 0.4) ** 2).sum())


def gradient(rows: Rows, f: Any) -> Any:
    return -2 * rows @ (ONES - rows.T @ f)


SIGNED: dict[str, Any] = {"low": -1.0, "norm": Norm.L2, "evaluations": 1_000}

MUTANTS: list[Case] = [
    by_falsifier("ridge weights by the bound of a removal", lambda rows: ridge_weights(rows, ONES, 3.0),
                 lambda m: ridge_weight_bound(ONES, 3.0) / 2, columns=2, **SIGNED),
    by_falsifier("all later cells by the bound of one", lambda rows: rows.ravel(), 2.0, columns=3, **SIGNED),
    by_falsifier("weighted donors by the mean weight", lambda rows: rows.T @ WEIGHTS[: len(rows)],
                 lambda m: 2 * np.sqrt(2) * float(np.abs(WEIGHTS[:m]).mean()), columns=2, sizes=(2, 4), **SIGNED),
    by_falsifier("weighted donors less their own means", less_own_means,
                 lambda m: perturbation.weighted_sensitivity(WEIGHTS[:m], 1).bound, columns=2, sizes=(2, 4), **SIGNED),
    by_falsifier("a kernel width from the donors", own_width, matched_sensitivity(BY).bound, columns=4, sizes=(40,),
                 starts={"followers": followers}, **SIGNED),
    by_falsifier("matched means by the bound of equal weights", matched_mean, lambda m: 0.5 / m, columns=2,
                 starts={"far but one": far_but_one}, **SIGNED),
    by_falsifier("a radius that the rows choose", own_radius, 2.0, columns=2, sizes=(7,), **SIGNED),
    by_falsifier("rows clipped before their mean is taken off", clipped_then_centred,
                 factor.sum_sensitivity(RADIUS).bound, columns=3, **SIGNED),
    by_falsifier("products by the bound of one row's own",
                 lambda rows: factor.products(at_length(whole(rows), factor.LENGTH)), 5.0 * factor.LENGTH**2, columns=2,
                 **SIGNED),
    by_falsifier("mixing scores without a bound", unbounded_scores, float(FULL), columns=1, low=-1.0),
    by_falsifier("placebo residuals of a fit per donor", refitted, FULL, columns=2, sizes=(4,), low=-1.0,
                 starts={"near": near}),
    by_falsifier("a table by the bound of one cell", table, 0.95 * placebo.table_sensitivity().bound, columns=4,
                 **SIGNED),
    by_falsifier("objective perturbation over all of space", lambda rows: gradient(rows, np.full(len(rows), 5.0)),
                 lambda m: gradient_bound(m, 2), columns=2, sizes=(3,), **SIGNED),
]  # fmt: skip

CONTROLS: list[Case] = [
    by_falsifier("ridge weights by their bound", lambda rows: ridge_weights(rows, ONES, 3.0),
                 lambda m: ridge_weight_bound(ONES, 3.0), columns=2, **SIGNED),
    by_falsifier("matched sums of a public width", lambda rows: sums(rows, BY), matched_sensitivity(BY).bound,
                 columns=4, sizes=(40,), starts={"followers": followers}, **SIGNED),
    by_falsifier("gradients inside the l1 ball", lambda rows: gradient(rows, np.eye(len(rows))[0]),
                 lambda m: gradient_bound(m, 2), columns=2, sizes=(3,), **SIGNED),
]  # fmt: skip
