"""Mutants of independence tests: their statistics with wrong bounds, killed by the falsifier; controls beside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcausal.mechanisms.blocks import assign_blocks, block_sum
from dpcausal.papers.independence.priv_kendall import published_spearman
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.privacy.sensitivity import Norm
from dpcausal.regression.residual_products import (
    products_sensitivity,
    resample_sum_sensitivity,
)
from dpcausal.statistics.hsic import permuted_root_hsic_sensitivity, root_hsic_sensitivity
from dpcausal.statistics.strata import covariance_sensitivity, spread_sensitivity
from tests.mechanisms.test_noisy_rank import margin
from tests.mutants import Case, by_falsifier
from tests.papers.independence.test_priv_kendall import in_strata
from tests.regression.products import COLUMNS, FOUR_CORNERS, STARTS, products, resample_sum
from tests.statistics.test_conditional_kendall import opposed
from tests.statistics.test_neighbour_pairs import BOX as PAIRS
from tests.statistics.test_neighbour_pairs import sums, worst_start
from tests.statistics.test_permuted_hsic import halves_in_step, permuted
from tests.statistics.test_strata import STRATA as MOMENTS
from tests.statistics.test_strata import UNITS, corners, covariance, spread, whole

Rows = Any

REACH = 4
BOX: dict[str, Any] = {"columns": COLUMNS, "low": -1.0, "high": 1.0, "starts": STARTS, "sizes": (80,)}
LINE: dict[str, Any] = {"columns": 1, "low": -1.0, "high": 1.0, "sizes": (12, 18)}
COINS = generator_from_seed(9).uniform(-1, 1, 200)


def blocks_of(rows: Rows) -> list[Rows]:
    return [rows[part, 0] for part in assign_blocks(len(rows), 3, generator_from_seed(5))]


def clipped_terms(rows: Rows) -> int:
    return int(block_sum([round(9 * part.sum()) for part in blocks_of(rows)], REACH, "terms")._answer)


def unclipped_terms(rows: Rows) -> int:
    return sum(round(9 * float(part.sum())) for part in blocks_of(rows))


def scaled_by_all(rows: Rows) -> int:
    spread = float(rows.std()) or 1.0
    return sum(round(float(np.clip(part.sum() / spread, -REACH, REACH))) for part in blocks_of(rows))


def without_failed(rows: Rows) -> float:
    """The sum of the blocks that have a slope at all, scaled up to three blocks."""
    terms = [np.clip(9 * part.sum(), -REACH, REACH) for part in blocks_of(rows) if np.ptp(part) > 0.5]
    return 3 * float(np.sum(terms)) / len(terms) if terms else 0.0


def one_stream(rows: Rows) -> int:
    """Each block draws as many coins as it has values above 0, and the next goes on from there."""
    stream, total = generator_from_seed(2), 0
    for part in blocks_of(rows):
        stream.random(int(np.sum(part > 0)))
        total += int(stream.integers(-REACH, REACH + 1))
    return total


def chosen_penalty(rows: Rows) -> Rows:
    return products(rows, 10.0 if rows[:, 3].mean() >= 1 else 20.0)


def own_scale(rows: Rows) -> Rows:
    scaled = rows.copy()
    scaled[:, 3:] /= np.maximum(np.abs(rows[:, 3:]).max(axis=0), 1e-3)
    return products(scaled, 0.5)


def coins_by_rank(rows: Rows) -> float:
    """Copies of x whose coins follow the order of x: a replaced row gives the others new coins."""
    return float(COINS[np.argsort(np.argsort(rows[:, 3]))] @ rows[:, 4])


def unhalved_scores(rows: Rows) -> Rows:
    totals = rows.sum(axis=0)
    return -np.abs(np.sort(totals)[::-1] - totals[0]) / 2.0


def by_rows_kept(rows: Rows) -> int:
    """As many neighbours as the kept rows allow."""
    return sums(rows, int(np.sum(rows[:, 4] > 0.25)) // 60).signed


def undivided(rows: Rows) -> float:
    """Σ_s Σ(x − x̄)² Σ(y − ȳ)²."""
    values, strata = whole(rows)
    parts = [values[strata == code] / UNITS for code in np.unique(strata)]
    return sum(float(np.prod(len(part) * part.var(axis=0))) for part in parts)


def in_line(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """All in one order, 300 kept: one less, and each has fewer neighbours."""
    rows = np.tile(np.linspace(0, 1, m)[:, None], (1, 5))
    rows[:, 3], rows[:, 4] = 0, np.arange(m) < 300
    return rows


def ones(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    return np.ones((m, COLUMNS))


def small(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    rows = np.tile(FOUR_CORNERS, (m // 4 + 1, 1))[:m]
    rows[:, 3:] *= 0.3
    return rows


MUTANTS: list[Case] = [
    by_falsifier("residual products of a small penalty by the bound of a large one",
                 lambda rows: products(rows, 0.002),
                 lambda m: float(products_sensitivity(m, 10.0).bound), **BOX, norm=Norm.L1),
    by_falsifier("copies of x whose coins depend on other rows", coins_by_rank, 2, **BOX),
    by_falsifier("a penalty chosen on the rows", chosen_penalty,
                 lambda m: float(products_sensitivity(m, 10.0).bound), **{**BOX, "starts": {"ones": ones}},
                 norm=Norm.L1),
    by_falsifier("columns scaled by their own largest value", own_scale,
                 lambda m: float(products_sensitivity(m, 0.5).bound), **{**BOX, "starts": {"small": small}},
                 norm=Norm.L1),
    by_falsifier("permuted HSIC by the bound of unpermuted columns", permuted,
                 lambda m: float(root_hsic_sensitivity(m).bound), sizes=(40,), evaluations=1_500,
                 starts={"halves": halves_in_step}),
    by_falsifier("a margin over copies by one bound for two", margin, 2, columns=5, low=-1.0, high=1.0),
    by_falsifier("scores of ranks without the two", unhalved_scores, 1, columns=5, low=-1.0, high=1.0),
    by_falsifier("rho as published by the bound of one stratum", lambda rows: published_spearman(*in_strata(rows)),
                 lambda m: 6 / (m - 3) ** 0.5, columns=3, sizes=(31,), starts={"opposed": opposed}),
    by_falsifier("sign products by the bound of partners that stay", lambda rows: sums(rows).signed, 2 * 2 * 2 - 1,
                 sizes=(61,), **{**PAIRS, "starts": {"worst": worst_start}}),
    by_falsifier("neighbours by the number of rows kept", by_rows_kept, 6 * 5, sizes=(310,),
                 **{**PAIRS, "starts": {"line": in_line}}),
    by_falsifier("covariance inside strata by the bound of one stratum", covariance,
                 lambda m: covariance_sensitivity(1).bound, **{**MOMENTS, "starts": {"corners": corners}}),
    by_falsifier("variance inside strata without its divisor", undivided, 3 / 8, **MOMENTS),
    by_falsifier("block terms that are not clipped", unclipped_terms, 2 * REACH, **LINE),
    by_falsifier("blocks scaled by the spread of all rows", scaled_by_all, 2, **LINE),
    by_falsifier("a failed block is left out", without_failed, 2 * REACH, **LINE),
    by_falsifier("one stream of coins for all blocks", one_stream, 2 * REACH, **LINE),
]  # fmt: skip

CONTROLS: list[Case] = [
    by_falsifier("all residual products", lambda rows: products(rows, 0.5),
                 lambda m: float(products_sensitivity(m, 0.5).bound), **BOX, norm=Norm.L1),
    by_falsifier("a sum with public residuals", lambda rows: resample_sum(rows, 0.5),
                 lambda m: float(resample_sum_sensitivity(m, 0.5).bound), **BOX),
    by_falsifier("permuted HSIC by its own bound", permuted, lambda m: float(permuted_root_hsic_sensitivity(m).bound),
                 sizes=(40,), evaluations=600, starts={"halves": halves_in_step}),
    by_falsifier("sign products of neighbours", lambda rows: sums(rows).signed, 6 * 2, sizes=(61,),
                 **{**PAIRS, "starts": {"worst": worst_start}}),
    by_falsifier("the spread inside strata", spread, lambda m: spread_sensitivity().bound, **MOMENTS),
    by_falsifier("clipped block terms", clipped_terms, 2 * REACH, **LINE),
]  # fmt: skip
