"""Mutants of statistics and of their claimed sensitivities, killed by the falsifier; controls are the library's own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcausal.direction.scores.anm import typical_distance
from dpcausal.mechanisms.blocks import block_window
from dpcausal.papers.direction.anm_test_privacy_iqr import NO_SHIFT
from dpcausal.papers.mechanisms.iqr_intervals import proposed_distances
from dpcausal.papers.statistics.flip_distance import signed, signed_margin
from dpcausal.papers.statistics.iqr import IqrReach, interquartile_range, iqr_signed_distance
from dpcausal.papers.statistics.rank import kendall, spearman, spearman_sensitivity
from dpcausal.privacy.sensitivity import Norm
from dpcausal.statistics.hsic import root_hsic, root_hsic_sensitivity
from dpcausal.statistics.rank import kendall_numerator
from tests.mechanisms.test_block_window import CENTRES, HALVES
from tests.mechanisms.test_block_window import scores as scores_of_windows
from tests.mutants import Case, by_falsifier
from tests.registry.claims import bits, bits_of_blocks

Rows = Any

BOX = {"range_x": (0.0, 1.0), "range_y": (0.0, 1.0)}
WIDTH = 0.3


def own_bounds(rows: Rows) -> float:
    width = float(np.ptp(rows))
    return float(((rows - rows.min()) / width).mean()) if width else 0.0


def own_bandwidth(rows: Rows) -> float:
    x, y = rows.T
    return root_hsic(x, y, width_x=typical_distance(x, 1.0), width_y=typical_distance(y, 1.0), **BOX)


def own_scaling(rows: Rows) -> float:
    spread = rows.std(axis=0)
    x, y = np.clip((rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1) / 8 + 0.5, 0, 1).T
    return root_hsic(x, y, width_x=0.05, width_y=0.05, **BOX)


def two_clusters(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """Return records at two places such that half of all pairs are apart: one record moves their median distance."""
    rows = np.zeros((m, 2))
    rows[: (m - math.isqrt(m)) // 2] = 1.0
    return rows


def fixed_bandwidth(rows: Rows) -> float:
    return root_hsic(rows[:, 0], rows[:, 1], width_x=WIDTH, width_y=WIDTH, **BOX)


def without_nulls(rows: Rows) -> float:
    kept = rows[rows != 9]  # 9 stands for a null
    return float(kept.mean()) if kept.size else 0.0


def nulls_kept(rows: Rows) -> float:
    return float(np.where(rows == 9, 0.5, rows).mean())


def tie_corrected_rho(rows: Rows) -> float:
    ranks = [np.sign(column[:, None] - column[None, :]).sum(axis=1) for column in rows.T]
    spread = math.sqrt(float((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float(ranks[0] @ ranks[1]) / spread if spread else 0.0


def tie_corrected_tau(rows: Rows) -> float:
    signs = [np.sign(column[:, None] - column[None, :]) for column in rows.T]
    spread = math.sqrt(float((signs[0] ** 2).sum() * (signs[1] ** 2).sum()))
    return float((signs[0] * signs[1]).sum()) / spread if spread else 0.0


def numerators(rows: Rows) -> tuple[int, int]:
    return abs(kendall_numerator(rows[:, 0], rows[:, 1])), abs(kendall_numerator(rows[:, 2], rows[:, 3]))


def flips(rows: Rows) -> int:
    return signed_margin(*numerators(rows), 2 * (len(rows) - 1))


def flips_by_one_bound(rows: Rows) -> int:
    first, second = numerators(rows)
    return (second - first) // (2 * (len(rows) - 1))


def flips_rounded_up(rows: Rows) -> int:
    # The distance ⌈|margin|/(2Δ)⌉ with a sign: from 1 it steps to −1.
    first, second = numerators(rows)
    distance = max(1, math.ceil(abs(second - first) / (4 * (len(rows) - 1))))
    return distance if first <= second else -distance


PAIRS_OF_FLOATS = math.comb(40, 2)


def flips_in_floats(rows: Rows) -> int:
    # m = 40 rows seen through their scores: a row moves each of two integer scores by up to 2(m − 1) = 78.
    first, second = (int(np.rint(column.sum() * 78)) for column in rows.T)
    return math.ceil((second / PAIRS_OF_FLOATS - first / PAIRS_OF_FLOATS) / (2 * 4 / 40))


def one_step_ahead(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """Return records whose second score is 2Δ = 156 above the first: the flip distance is exactly 1."""
    rows = np.repeat(rng.integers(0, 79, (m, 1)) / 78, 2, axis=1)
    rows[:2] = 0.0, 1.0
    return rows


BY_ONE_STEP = {str(k): one_step_ahead for k in range(60)}


def flips_in_integers(rows: Rows) -> int:
    first, second = (int(np.rint(column.sum() * 78)) for column in rows.T)
    return signed_margin(first, second, 78)


def iqr_reaches(rows: Rows) -> list[IqrReach]:
    return [IqrReach(column, 0, 1) for column in rows.T]


def iqr_flips(rows: Rows) -> int:
    A, B, C, E = iqr_reaches(rows)
    return iqr_signed_distance((A, B), (C, E))


def iqr_flips_with_ties_swapped(rows: Rows) -> int:
    A, B, C, E = iqr_reaches(rows)
    first_wins = A.iqr * B.iqr <= C.iqr * E.iqr
    (P, Q), (S, T) = ((A, B), (C, E)) if first_wins else ((C, E), (A, B))
    ends = [(P.highest(j) * Q.highest(j), S.lowest(j) * T.lowest(j)) for j in range(1, len(rows) + 1)]
    # Equality is a win of the first, so only the second's defeat takes it: here it is the other way round.
    return signed(first_wins, 1 + [up > down or (up == down and first_wins) for up, down in ends].index(True))


def published_second(rows: Rows) -> int:
    return proposed_distances(IqrReach(rows[:, 0], 0, 20), NO_SHIFT)[1]


def corrected_pair(rows: Rows) -> Any:
    return proposed_distances(IqrReach(rows[:, 0], 0, 20))


def own_residuals(rows: Rows) -> float:
    x, y = rows[:, 0], rows[:, 1]
    spread = float(x.var())
    slope = float(((x - x.mean()) * (y - y.mean())).mean()) / spread if spread else 0.0
    return abs(spearman(x, y - slope * x))


def votes(rows: Rows, threshold: float) -> int:
    return sum(int(part.mean() > threshold) for part in np.array_split(rows[:, 0], 5))


def own_partition(rows: Rows) -> int:
    return sum(int(part[0, 1] > 0.5) for part in np.array_split(rows[np.argsort(rows[:, 0], kind="stable")], 5))


def share_of_voters(rows: Rows) -> float:
    parts = [part for part in np.array_split(rows[:, 0], 5) if np.ptp(part) > 0]
    return sum(int(part.mean() > 0.5) for part in parts) / len(parts) if parts else 0.0


WINDOWED = {"columns": 1, "low": -1.0, "sizes": (6, 13), "norm": Norm.LINF}


def windows_about_the_mean(rows: Rows) -> Any:
    """Return the scores of windows that are laid about the mean of all rows."""
    middle = round(9 * float(rows.mean()))
    answers = [round(9 * float(part.sum())) for part in np.array_split(rows[:, 0], 3)]
    return block_window(answers, CENTRES + middle, HALVES, "windows")._answer


def histogram(rows: Rows) -> Any:
    return np.histogram(rows[:, 0], bins=4, range=(0, 1))[0].astype(np.float64)


def of_mean(m: int) -> float:
    return 1 / m


def bits_in_two(rows: Rows) -> Rows:
    """Blocks of two thirds of the rows each: every row is in two of three."""
    third = np.array_split(np.arange(len(rows)), 3)
    return bits_of_blocks(rows, [np.concatenate([third[i], third[(i + 1) % 3]]) for i in range(3)])


def bits_dealt_afresh(rows: Rows) -> Rows:
    """Rows that are left out are filtered before the blocks are dealt: one that leaves moves all behind it."""
    kept = rows[rows[:, 0] <= 0.95]
    return bits_of_blocks(kept, np.array_split(np.arange(len(kept)), 3))


MUTANTS: list[Case] = [
    by_falsifier("the sensitivity of the mean for the sum", lambda rows: rows.sum(), of_mean, columns=1),
    by_falsifier("bounds from the data", own_bounds, of_mean, columns=1),
    by_falsifier("clipped after the sum", lambda rows: np.clip(rows.sum(), 0, len(rows)), 1, columns=1, low=-9, high=9),
    by_falsifier("rows with nulls are dropped", without_nulls, of_mean, columns=1, levels=(0, 0.5, 1, 9), high=9),
    by_falsifier("a bandwidth from the test rows", own_bandwidth, lambda m: root_hsic_sensitivity(m).bound,
                 sizes=(64,), evaluations=200, starts={"clusters": two_clusters}),
    by_falsifier("columns scaled by the test rows", own_scaling, lambda m: root_hsic_sensitivity(m).bound,
                 sizes=(40,), evaluations=1_600),
    by_falsifier("residuals of a regression on the test rows", own_residuals, lambda m: spearman_sensitivity(m).bound),
    by_falsifier("tie-corrected rho", tie_corrected_rho, lambda m: spearman_sensitivity(m).bound),
    by_falsifier("tie-corrected tau", tie_corrected_tau, lambda m: 4 / m),
    by_falsifier("rho with a bound 5 % too small", lambda rows: spearman(*rows.T), lambda m: 0.95 * 6 / (m + 1)),
    by_falsifier("tau by the bound of its absolute half", lambda rows: kendall(*rows.T), lambda m: 2 / m),
    by_falsifier("the signed margin by one bound for two", flips_by_one_bound, 1, columns=4, sizes=(9, 14)),
    by_falsifier("the signed margin rounded up, without a step at 0", flips_rounded_up, 1, columns=4, sizes=(9, 14)),
    by_falsifier("the signed margin in floats", flips_in_floats, 1, sizes=(5, 7), evaluations=2_400,
                 levels=np.arange(79) / 78, starts=BY_ONE_STEP),
    by_falsifier("the IQR's flip distance with its tie rule swapped", iqr_flips_with_ties_swapped, 1, columns=4,
                 sizes=(4, 5), levels=(0, 1)),
    by_falsifier("published second interval of the IQR", published_second, 1, sizes=(16, 33), columns=1, high=20.0),
    by_falsifier("the IQR by the bound of a mean", lambda rows: interquartile_range(rows[:, 0]), of_mean, columns=1),
    by_falsifier("an l2 bound for l1 noise", lambda rows: rows.mean(axis=0), lambda m: 2 / m, columns=4, norm=Norm.L1),
    by_falsifier("an l-infinity bound for l2 noise", lambda rows: rows.mean(axis=0), of_mean, columns=4,
                 norm=Norm.L2),
    by_falsifier("two scores by the bound of one", lambda rows: np.array([kendall(*rows.T[:2]), kendall(*rows.T[2:])]),
                 lambda m: 4 / m, columns=4, norm=Norm.L1),
    by_falsifier("a histogram by the bound of one cell", histogram, 1, columns=1, norm=Norm.L1),
    by_falsifier("votes against a median of all blocks", lambda rows: votes(rows, float(np.median(rows[:, 0]))), 1,
                 columns=1, sizes=(10, 15)),
    by_falsifier("blocks made by value", own_partition, 1, sizes=(10, 15)),
    by_falsifier("a row in two blocks", bits_in_two, 1, sizes=(12, 18), norm=Norm.LINF),
    by_falsifier("bits of the rows that lack nothing, dealt afresh", bits_dealt_afresh, 1, sizes=(9, 14),
                 norm=Norm.LINF),
    by_falsifier("windows by the bound of a count", scores_of_windows, 1, **WINDOWED),
    by_falsifier("windows about the mean of all rows", windows_about_the_mean, 2, **WINDOWED),
    by_falsifier("constant blocks are skipped", share_of_voters, 1 / 5, columns=1, sizes=(10, 15)),
]  # fmt: skip

CONTROLS: list[Case] = [
    by_falsifier("bits of blocks that are dealt first", bits, 1, sizes=(9, 14), norm=Norm.LINF),
    by_falsifier("a clipped mean", lambda rows: np.clip(rows, 0, 1).mean(), of_mean, columns=1, low=-9, high=9),
    by_falsifier("a mean with nulls replaced", nulls_kept, of_mean, columns=1, levels=(0, 0.5, 1, 9), high=9),
    by_falsifier("root HSIC with a public bandwidth", fixed_bandwidth, lambda m: root_hsic_sensitivity(m).bound),
    by_falsifier("rho without tie correction", lambda rows: spearman(*rows.T), lambda m: spearman_sensitivity(m).bound),
    by_falsifier("the signed margin", flips, 1, columns=4, sizes=(9, 14)),
    by_falsifier("the signed margin in integers", flips_in_integers, 1, sizes=(5, 7), evaluations=2_400,
                 levels=np.arange(79) / 78, starts=BY_ONE_STEP),
    by_falsifier("the IQR's flip distance", iqr_flips, 1, columns=4, sizes=(4, 5), levels=(0, 1)),
    by_falsifier("corrected intervals of the IQR", corrected_pair, 1, sizes=(16, 33), columns=1, high=20.0,
                 norm=Norm.LINF),
    by_falsifier("a histogram by the bound of two cells", histogram, 2, columns=1, norm=Norm.L1),
    by_falsifier("votes against a public threshold", lambda rows: votes(rows, 0.5), 1, columns=1, sizes=(10, 15)),
]  # fmt: skip
