"""Mutants of effects: their sums."""

from __future__ import annotations

from dpcausal.effects.cells.corner_counts import GRID, corner_counts_sensitivity
from dpcausal.effects.did.cohort_sums import cohort_bits
from dpcausal.effects.estimators.residual_sums import residual_sums_sensitivity
from dpcausal.effects.moments.ellipsoid import WHOLE, ellipse_bits
from dpcausal.papers.effects.fold_split import GRID as FOLDED
from dpcausal.papers.effects.fold_split import fold_split_sensitivity, reach
from dpcausal.privacy.sensitivity import Norm
from tests.mutants import Case, by_falsifier
from tests.registry.effects import (
    HIGH,
    IN_BINS,
    LEAST,
    OF_COLUMNS,
    OF_PAIRS,
    OF_SQUARES,
    RADIUS,
    TELLING,
    difference_of,
    histograms_of,
    moments_of,
    of_folds,
    of_two_numbers,
    one_fold_apart,
    pairs_of,
    paths_of,
    residuals_of,
    scales_of,
    scores_of,
    shortened_apart,
    squares_of,
    sums_by_cell,
)

DOMAIN = {"columns": 4, "high": HIGH.tolist(), "sizes": (5, 9)}

MUTANTS: list[Case] = [
    by_falsifier("sums by cells by the bound of a record added", sums_by_cell, GRID, norm=Norm.L1, **DOMAIN),
    by_falsifier("a difference of arms by one end of the range", difference_of, 2 * GRID - GRID // 10, norm=Norm.L1,
                 **DOMAIN),
    by_falsifier("a score by the reach of the treated", scores_of, GRID - GRID // 20, norm=Norm.L1, **DOMAIN),
    by_falsifier("several scales by the bound of one", scales_of, 2**0.5 * WHOLE, norm=Norm.L2, columns=3, low=-1.0,
                 high=1.0),
    by_falsifier("moments with free counts of shortened rows", moments_of,
                 lambda m: 2**0.5 * 1.25 * (2 ** ellipse_bits(m, RADIUS) * RADIUS) ** 2, norm=Norm.L2, columns=3,
                 low=-3.0, high=3.0, starts={"apart": shortened_apart}),
    by_falsifier("cohorts with what was lost for nothing", paths_of,
                 lambda m: 2 * 2 ** cohort_bits(m, RADIUS) * RADIUS, norm=Norm.L2, columns=4, low=-3.0, high=3.0,
                 starts={"apart": shortened_apart}),
    by_falsifier("folds by the range of the own score", of_folds("aipw"), 2 * FOLDED * reach("aipw", LEAST),
                 norm=Norm.L1, starts={"one fold apart": one_fold_apart}, **TELLING),
    by_falsifier("folds by 0.95 of their bound", of_folds("aipw"),
                 lambda m: 0.95 * fold_split_sensitivity("aipw", m, m, LEAST).bound, norm=Norm.L1,
                 starts={"one fold apart": one_fold_apart}, **TELLING),
    by_falsifier("histograms by the bound of one column", histograms_of, 2**0.5 * GRID, norm=Norm.L2, sizes=(5, 9),
                 **OF_COLUMNS),
    by_falsifier("residual sums by the bound of a record added", residuals_of, 2**0.5 * GRID, norm=Norm.L2,
                 sizes=(5, 9), **IN_BINS),
    by_falsifier("residual sums by 0.95 of their bound", residuals_of, 0.95 * residual_sums_sensitivity(2).bound,
                 norm=Norm.L2, sizes=(5, 9), **IN_BINS),
    by_falsifier("pair functions by the bound of one model", pairs_of, 2 * 2**0.5 * GRID, norm=Norm.L2, sizes=(5, 9),
                 **OF_PAIRS),
    by_falsifier("two squares by the bound of one", squares_of, GRID, norm=Norm.L2, sizes=(5, 9), **OF_SQUARES),
    by_falsifier("two numbers by the bound of one", of_two_numbers, 2 * GRID, norm=Norm.L1, **DOMAIN),
]

CONTROLS: list[Case] = [
    by_falsifier("two numbers by their bound", of_two_numbers, corner_counts_sensitivity(2).bound, norm=Norm.L1,
                 **DOMAIN),
]  # fmt: skip
