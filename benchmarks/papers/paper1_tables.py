"""Tables 1 and 2 and Figure 1 of Kusner et al. (2016), published and corrected side by side.

* **Table 1**: how far one record moves a score, from the sensitivities that the library states, at n = m = 1000.
* **Table 2**: P(the released direction is the true one) for four scores at a total ε of ∞, 0.1, 1 and 2, on real pairs
  with S random halves each, and on K pairs of the simulated set SIM with one.  The paper drew 10 of the 25 largest
  pairs of the Cause-Effect Pairs Challenge; its ten ids cannot be obtained, so 10 are drawn from the 25 largest
  univariate Tübingen pairs.  Its own figures are not comparable pair by pair.
* **Figure 1**: the same chance against ε, on the pairs that the score mostly gets right without noise: the paper, too,
  picked pairs on which a score performs well, to show what the noise alone does.

Both sides see the same halves, regressions, residuals and kernel widths; the ranges are those of the sample.  ε is
the total that the release costs, on both sides; the paper's own table gives ε to each of two scores, and 9ε to the four
interquartile ranges.  The published IQR is not private as printed.  No noise is drawn: the chances have closed forms.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from benchmarks.data.pairs import Pair, simulated, tuebingen
from benchmarks.papers import efficiency
from benchmarks.run import Report, benchmark
from dpcausal.direction.scores.anm import Residuals
from dpcausal.papers.direction import training
from dpcausal.papers.direction.anm_test_privacy import HSIC, RANKS
from dpcausal.papers.direction.holdout import reaches
from dpcausal.papers.statistics import rank
from dpcausal.papers.statistics.hsic import hsic_sensitivity
from dpcausal.papers.statistics.iqr import iqr_signed_distance
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.statistics import hsic

ROWS, PENALTY = 1000, 0.1
EPSILONS = (float("inf"), 0.1, 1.0, 2.0)
CURVE = np.logspace(-2, 2, 33)
LARGEST, DRAWN = 25, 10
MOSTLY = 0.9


@dataclass(frozen=True)
class SideFit:
    """One way to release a score's direction: how far the first direction wins without noise, and the chance."""

    margin: Callable[[Residuals], float]
    chance: Callable[[Residuals], efficiency.Chance]


def _sides(score: str, published: Any, corrected: Any, signed: Any = None) -> tuple[SideFit, SideFit]:
    def margin(rest: Residuals) -> float:
        return efficiency.margin(efficiency.SCORES[score](rest))

    return SideFit(signed or margin, published), SideFit(margin, corrected)


SIDES: dict[str, tuple[SideFit, SideFit]] = {
    "Spearman": _sides("spearman", efficiency.spearman_signed, efficiency.by_one_draw("spearman"),
                       efficiency.signed_margin_of_rho),
    "Kendall": _sides("kendall", efficiency.by_two_draws("kendall", lambda m: rank.kendall_sensitivity(m, RANKS)),
                      efficiency.kendall_flips),
    "HSIC": _sides("hsic", efficiency.hsic_published, efficiency.by_one_draw("hsic")),
    "IQR": _sides("iqr", efficiency.iqr_published,
                  lambda rest: efficiency.flip_chance(iqr_signed_distance(*reaches(rest)))),
}  # fmt: skip
"""As published and corrected, by score.  Published Spearman is signed; corrected HSIC is its root."""

NAMES = ("published", "corrected")
GRID = (*EPSILONS, *CURVE)


def right(pair: Pair, seeds: Iterable[int]) -> dict[str, Any]:
    """Return by score the chances to name the cause, shape (splits, 2 sides, ε of the grid)."""
    found: dict[str, list[Any]] = {score: [] for score in SIDES}
    for seed in seeds:
        rest = efficiency.halves(pair, seed)
        for score, sides in SIDES.items():
            row = []
            for side in sides:
                is_right, chance = side.margin(rest) > 0, side.chance(rest)
                kept = [1.0 if epsilon == float("inf") else chance(float(epsilon)) for epsilon in GRID]
                row.append([each if is_right else 1 - each for each in kept])
            found[score].append(row)
    return {score: np.asarray(rows) for score, rows in found.items()}


def sensitivities() -> list[tuple[str, str, str, str, str]]:
    """Return the lines of Table 1: score, then test and training half, published and corrected."""
    m = n = ROWS

    def number(bound: Any, units: float = 1.0) -> str:
        value = float(bound) * units
        return f"{value:.0f}" if value >= 100 else f"{value:.2g}"

    paper_units = (m / (m - 1)) ** 2  # the paper divides HSIC by (m − 1)², the library by m²
    shift = float(training.iqr_sensitivity(n, PENALTY).bound)
    ranks = {"Spearman": rank.spearman_sensitivity, "Kendall": rank.kendall_sensitivity}
    return [
        *((name, number(of(m, RANKS).bound), number(of(m).bound), "stable if gaps are wide", "none")
          for name, of in ranks.items()),
        ("HSIC", number(hsic_sensitivity(m, HSIC).bound, paper_units),
         f"{number(hsic.root_hsic_sensitivity(m).bound)} (root)",
         number(training.published_hsic_sensitivity(n, m, PENALTY).bound),
         f"{number(training.training_sensitivity(n, m, PENALTY).bound / 2)} (root)"),
        ("IQR", "local only", "local only; 1 in flips", "local only", f"{number(shift)} (global)"),
        ("variance", "none", "none", "none", "none"),
    ]  # fmt: skip


def drawn_pairs() -> list[Pair]:
    """Return 10 of the 25 largest univariate pairs, drawn by a fixed seed."""
    chosen = generator_from_seed(2016).choice(LARGEST, size=DRAWN, replace=False)
    return [pair for place, pair in enumerate(tuebingen(LARGEST)) if place in set(chosen.tolist())]


def curves(columns: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return by score the mean curves of both sides over the pairs that the score mostly gets right, and how many."""
    found = {}
    for score in SIDES:
        chosen = [each[score] for each in columns.values() if (each[score][:, :, 0].mean(axis=0) >= MOSTLY).all()]
        if chosen:
            found[score] = np.mean([each.mean(axis=0) for each in chosen], axis=0)[:, len(EPSILONS) :], len(chosen)
    return found


@benchmark("direction", seeds="halves by seed; no noise is drawn", splits=10, sim=100)
def main(report: Report) -> None:
    """``--splits``: random halves of each real pair; ``--sim``: pairs of SIM, at most 100."""
    for score, *cells in sensitivities():
        for half, published, corrected in (("test half", *cells[:2]), ("training half", *cells[2:])):
            report.add(f"Table 1, {score}", {}, n=ROWS, method="", reading=half,
                       note=f"one record moves it by: published {published}, corrected {corrected}")  # fmt: skip
    splits = report.given.splits
    columns = {pair.name: right(pair, range(1000 * place, 1000 * place + splits))
               for place, pair in enumerate(drawn_pairs())}  # fmt: skip
    made = [right(pair, [place]) for place, pair in enumerate(list(simulated())[: report.given.sim])]
    found = curves(columns)
    if made:
        columns["SIM"] = {score: np.concatenate([each[score] for each in made]) for score in SIDES}
    for column, scores in columns.items():
        for score, (side, way), (place, epsilon) in product(SIDES, enumerate(NAMES), enumerate(EPSILONS)):
            chances = scores[score][:, side, place]
            metrics = {"P(correct)": (chances.mean(), chances.std() / len(chances) ** 0.5), "sd": chances.std()}
            report.add(f"Table 2, {column}", metrics, epsilon=epsilon, method=way, reading=score, runs=len(chances))
    for score, (both, count) in found.items():
        for way, curve in zip(NAMES, both, strict=True):
            for place in range(0, len(CURVE), 4):
                report.add("Figure 1", {"P(correct)": curve[place]}, epsilon=float(CURVE[place]), method=way,
                           reading=score, note=f"{count} pairs")  # fmt: skip
