"""What the direction costs: the paper's mechanisms beside ours at the same total ε on the same residuals.

How much total ε until the released direction is the non-private one in 90 % of the cases, for the test half of the
largest real pairs?  Both sides get the same halves, regressions, residuals and kernel widths: the widths and the tuning
from the training half, the ranges from the whole sample, public as in the paper.  The chance that noise leaves a
direction as it is has a closed form (``papers/direction/calculators.py``), so no noise is drawn.
"""


import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.data.pairs import Pair, tuebingen
from benchmarks.run import Report, benchmark
from dpcausal.direction.scores.anm import Residuals, fit_halves, split_rows
from dpcausal.papers.direction.anm_test_privacy import HSIC, NO_SHIFT, RANKS
from dpcausal.papers.direction.calculators import flip_draw, four_draws, one_draw, two_draws
from dpcausal.papers.direction.holdout import SCORES, difference_sensitivity, reaches, score_sensitivity
from dpcausal.papers.statistics import rank
from dpcausal.papers.statistics.hsic import hsic_sensitivity
from dpcausal.papers.statistics.iqr import iqr_signed_distance, proposed_distances
from dpcausal.papers.statistics.rank import signed_margin
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.privacy.sensitivity import Sensitivity

LARGE_PAIRS = 18
WANTED = 0.9
DELTA = 1e-6
GRID = np.logspace(-4, 6, 501)
"""The total ε at which each chance is computed; between two of them it is interpolated."""

Chance = Callable[[float], float]
"""P(the released direction is the non-private one) at a total ε, for given residuals."""


def halves(pair: Pair, seed: int) -> Residuals:
    """Return the test half's residuals for one public split."""
    generator = generator_from_seed(seed)
    train, test = split_rows(len(pair.cause), 0.5, generator)
    return fit_halves(pair.cause, pair.effect, train, test, pair.range_cause, pair.range_effect, generator)


def margin(scores: tuple[float, float]) -> float:
    """Return how far the first direction wins, in the score; below 0 if the second does."""
    return scores[1] - scores[0]


def published_chance(gap: float, each: Sensitivity, units: float = 1.0) -> Chance:
    """Return the chance where each score gets a Laplace draw of scale Δ/(ε/2)."""
    bound = float(each.bound) * units
    return lambda epsilon: two_draws(abs(gap), 2 * bound / epsilon)


def our_chance(gap: float, each: Sensitivity) -> Chance:
    """Return the chance where the difference of the scores gets one Laplace draw of scale 2Δ/ε."""
    bound = float(difference_sensitivity(each).bound)
    return lambda epsilon: one_draw(abs(gap), bound / epsilon)


def flip_chance(distance: int) -> Chance:
    """Return the chance where the signed flip distance z gets a geometric draw."""
    flips = distance + 1 if distance >= 0 else -distance
    return lambda epsilon: flip_draw(flips, epsilon)


def hsic_margin(rest: Residuals) -> float:
    """Return the difference of the scores HSIC_V, the squares of ours."""
    forward, backward = SCORES["hsic"](rest)
    return margin((forward**2, backward**2))


def hsic_published(rest: Residuals) -> Chance:
    """HSIC and its sensitivity (12m − 11)/(m − 1)², both in the paper's units."""
    units = (rest.m / (rest.m - 1)) ** 2
    return published_chance(hsic_margin(rest) * units, hsic_sensitivity(rest.m, HSIC), units)


def signed_margin_of_rho(rest: Residuals) -> float:
    return margin((rank.spearman(*rest.forward()), rank.spearman(*rest.backward())))


def spearman_signed(rest: Residuals) -> Chance:
    """Signed rho, as printed: agreement is with its own, signed, non-private direction."""
    return published_chance(signed_margin_of_rho(rest), rank.spearman_sensitivity(rest.m, RANKS))


def kendall_flips(rest: Residuals) -> Chance:
    pair = rank.kendall_numerator(*rest.forward()), rank.kendall_numerator(*rest.backward())
    bound = int(rank.kendall_numerator_sensitivity(rest.m).bound)
    return flip_chance(signed_margin(abs(pair[0]), abs(pair[1]), bound))


def iqr_published(rest: Residuals) -> Chance:
    """Propose-test-release as printed, ε/9 and δ/3 each, δ = 1e-6 in all; no answer counts as half right.

    The paper counts 9ε for the four runs; all four answer with probability Π (1 − P(R₁ low) P(R₂ low)).
    """
    gap = abs(margin(SCORES["iqr"](rest)))
    distances = np.array([proposed_distances(reach, NO_SHIFT) for pair in reaches(rest) for reach in pair], dtype=float)
    threshold = 1 - math.log(DELTA / 3)

    def chance(epsilon: float) -> float:
        t = (threshold - distances) * epsilon / 9
        low = np.where(t < 0, np.exp(-np.abs(t)) / 2, 1 - np.exp(-np.abs(t)) / 2)
        answers = float(np.prod(1 - low.prod(axis=1)))
        return answers * four_draws(gap, 9 / epsilon) + (1 - answers) / 2

    return chance


@dataclass(frozen=True)
class Contest:
    """A published release, ours, and how many times less ε ours is to need."""

    name: str
    published: Callable[[Residuals], Chance]
    ours: Callable[[Residuals], Chance]
    least_gain: float | None = None


def by_one_draw(score: str) -> Callable[[Residuals], Chance]:
    return lambda rest: our_chance(margin(SCORES[score](rest)), score_sensitivity(score, rest.m))


def by_two_draws(score: str, sensitivity: Callable[[int], Sensitivity]) -> Callable[[Residuals], Chance]:
    return lambda rest: published_chance(margin(SCORES[score](rest)), sensitivity(rest.m))


CONTESTS = (
    Contest("HSIC, ours its root", hsic_published, by_one_draw("hsic"), 40),
    Contest("HSIC, ours too", hsic_published, lambda rest: our_chance(hsic_margin(rest), hsic_sensitivity(rest.m))),
    Contest("Spearman |rho|", by_two_draws("spearman", lambda m: rank.spearman_sensitivity(m, RANKS)),
            by_one_draw("spearman"), 5),
    Contest("Spearman, paper signed", spearman_signed, by_one_draw("spearman")),
    Contest("Kendall |tau|", by_two_draws("kendall", rank.kendall_sensitivity), kendall_flips),
    Contest("IQR", iqr_published, lambda rest: flip_chance(iqr_signed_distance(*reaches(rest))), 1000),
)  # fmt: skip


def needed(curve: np.ndarray) -> float:
    """Return the ε at which a curve over the grid first reaches what is wanted; infinite if it never does."""
    reached = np.flatnonzero(curve >= WANTED)
    if not len(reached):
        return math.inf
    at = int(reached[0])
    if at == 0:
        return float(GRID[0])
    share = (WANTED - curve[at - 1]) / (curve[at] - curve[at - 1])
    return float(GRID[at - 1] * (GRID[at] / GRID[at - 1]) ** share)


@benchmark("direction", seeds="halves by seed; no noise is drawn", splits=10)
def main(report: Report) -> None:
    """``--splits``: random halves of each pair."""
    curves, splits = np.zeros((len(CONTESTS), 2, LARGE_PAIRS, len(GRID))), report.given.splits
    for place, pair in enumerate(tuebingen(LARGE_PAIRS)):
        for split in range(splits):
            rest = halves(pair, seed=1000 * place + split)
            for row, contest in enumerate(CONTESTS):
                for side, release in enumerate((contest.published(rest), contest.ours(rest))):
                    curves[row, side, place] += [release(float(epsilon)) / splits for epsilon in GRID]
    draws = np.random.default_rng(0).integers(LARGE_PAIRS, size=(1000, LARGE_PAIRS))
    for contest, (paper, ours) in zip(CONTESTS, curves, strict=True):
        total = needed(paper.mean(axis=0)), needed(ours.mean(axis=0))
        ratio = total[0] / total[1]
        resampled = [needed(paper[draw].mean(axis=0)) / needed(ours[draw].mean(axis=0)) for draw in draws]
        each = np.array([[needed(a), needed(b)] for a, b in zip(paper, ours, strict=True)])
        finite = each[np.isfinite(each).all(axis=1)]
        report.add("18 largest Tübingen pairs", {
            "ε of the paper": total[0], "ε of ours": total[1], "ratio": (ratio, float(np.std(resampled))),
            "median ε of the paper": np.median(each[:, 0]), "median ε of ours": np.median(each[:, 1]),
            "ratio by pair": math.exp(float(np.log(finite[:, 0] / finite[:, 1]).mean())), "pairs": len(finite),
        }, method=contest.name, runs=splits, delta=DELTA)  # fmt: skip
        if contest.least_gain is not None:
            words = f"{contest.name}: {ratio:,.0f} times less ε than published, at least {contest.least_gain:,}"
            report.target(words, ratio >= contest.least_gain)



