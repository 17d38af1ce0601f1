"""Tables 1 and 2 and Figure 1 of Kusner et al. (2016), published and corrected side by side, each with a picture.

    python -m benchmarks paper1_tables [--splits S] [--sim K] [--out FOLDER]

* **Table 1**: how far one record moves a score, from the sensitivities that the library states, at n = m = 1000.
* **Table 2**: P(the released direction is the true one) for four scores at a total ε of ∞, .1, 1 and 2, on real pairs
  with S random halves each, and on K pairs of the simulated set SIM with one.  The paper drew 10 of the 25 largest
  pairs of the Cause-Effect Pairs Challenge; its ten ids cannot be obtained, so 10 are drawn from the 25 largest
  univariate Tübingen pairs.  Its own figures are not comparable pair by pair.
* **Figure 1**: the same chance against ε, on the pairs that the score mostly gets right without noise: the paper, too,
  picked pairs on which a score performs well, to show what the noise alone does.

Both sides see the same halves, regressions, residuals and kernel widths; the ranges are those of the sample.  ε is
the total that the release costs, on both sides; the paper's own table gives ε to each of two scores, and 9ε to the four
interquartile ranges.  The published IQR is not private as printed.  No noise is drawn: the chances have closed forms.
With ``--out`` the pictures are written to a folder.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.efficiency import (
    SCORES,
    Chance,
    flip_chance,
    halves,
    hsic_published,
    iqr_published,
    kendall_flips,
    margin,
    our_chance,
    published_chance,
    spearman_signed,
)
from benchmarks.pairs import DataAbsentError, Pair, simulated, tuebingen
from dpcausal.direction.scores.anm import Residuals
from dpcausal.papers.direction import anm_training_privacy, stable, training
from dpcausal.papers.direction.anm_test_privacy import HSIC, RANKS
from dpcausal.papers.direction.holdout import score_sensitivity
from dpcausal.papers.direction.scores import reaches
from dpcausal.papers.statistics import rank
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
    chance: Callable[[Residuals], Chance]


def _signed_rho(rest: Residuals) -> float:
    return margin((rank.spearman(*rest.forward()), rank.spearman(*rest.backward())))


def _of(score: str) -> Callable[[Residuals], float]:
    return lambda rest: margin(SCORES[score](rest))


def _one_draw(score: str) -> Callable[[Residuals], Chance]:
    return lambda rest: our_chance(_of(score)(rest), score_sensitivity(score, rest.m))


def _kendall_published(rest: Residuals) -> Chance:
    return published_chance(_of("kendall")(rest), rank.kendall_sensitivity(rest.m, RANKS))


SIDES: dict[str, tuple[SideFit, SideFit]] = {
    "Spearman": (SideFit(_signed_rho, spearman_signed), SideFit(_of("spearman"), _one_draw("spearman"))),
    "Kendall": (SideFit(_of("kendall"), _kendall_published), SideFit(_of("kendall"), kendall_flips)),
    "HSIC": (SideFit(_of("hsic"), hsic_published), SideFit(_of("hsic"), _one_draw("hsic"))),
    "IQR": (
        SideFit(_of("iqr"), iqr_published),
        SideFit(_of("iqr"), lambda rest: flip_chance(iqr_signed_distance(*reaches(rest)))),
    ),
}
"""As published and corrected, by score.  Published Spearman is signed; corrected HSIC is its root."""

NAMES = ("published", "corrected")
GRID = (*EPSILONS, *CURVE)


def right(pair: Pair, seeds: Iterable[int]) -> dict[str, Any]:
    """Return by score the chances to name the cause, shape (splits, 2 sides, ε of the grid)."""
    found: dict[str, list[Any]] = {score: [] for score in SIDES}
    for seed in seeds:
        rest = halves(pair, seed)
        for score, sides in SIDES.items():
            row = []
            for side in sides:
                is_right, chance = side.margin(rest) > 0, side.chance(rest)
                kept = [1.0 if epsilon == float("inf") else chance(float(epsilon)) for epsilon in GRID]
                row.append([each if is_right else 1 - each for each in kept])
            found[score].append(row)
    return {score: np.asarray(rows) for score, rows in found.items()}


# ------------------------------------------------------------------------------------------------- Table 1


def sensitivities() -> list[tuple[str, str, str, str, str]]:
    """Return the lines of Table 1: score, then test and training half, published and corrected."""
    m = n = ROWS

    def number(bound: Any, units: float = 1.0) -> str:
        value = float(bound) * units
        return f"{value:.0f}" if value >= 100 else f"{value:.2g}"

    paper_units = (m / (m - 1)) ** 2  # the paper divides HSIC by (m − 1)², the library by m²
    shift = float(training.iqr_sensitivity(n, PENALTY).bound)
    return [
        (
            "Spearman", number(rank.spearman_sensitivity(m, RANKS).bound),
            number(rank.spearman_sensitivity(m).bound), "stable if gaps are wide", "none",
        ),
        (
            "Kendall", number(rank.kendall_sensitivity(m, RANKS).bound),
            number(rank.kendall_sensitivity(m).bound), "stable if gaps are wide", "none",
        ),
        (
            "HSIC", number(hsic.hsic_sensitivity(m, HSIC).bound, paper_units),
            f"{number(hsic.root_hsic_sensitivity(m).bound)} (root)",
            number(anm_training_privacy.published_hsic_sensitivity(n, m, PENALTY).bound),
            f"{number(stable.training_sensitivity(n, m, PENALTY).bound / 2)} (root)",
        ),
        ("IQR", "local only", "local only; 1 in flips", "local only", f"{number(shift)} (global)"),
        ("variance", "none", "none", "none", "none"),
    ]  # fmt: skip


HEADS = ("score", "test, published", "test, corrected", "training, published", "training, corrected")


def table_1() -> list[tuple[str, ...]]:
    lines = sensitivities()
    print(f"Table 1: what one record moves, m = n = {ROWS}; training halves by kernel ridge with λ = {PENALTY}\n")
    print(f"{HEADS[0]:<10}" + "".join(f"{head:>25}" for head in HEADS[1:]))
    for line in lines:
        print(f"{line[0]:<10}" + "".join(f"{cell:>25}" for cell in line[1:]))
    return [HEADS, *lines]


# ------------------------------------------------------------------------------------- Table 2 and Figure 1


def drawn_pairs() -> list[Pair]:
    """Return 10 of the 25 largest univariate pairs, drawn by a fixed seed."""
    chosen = generator_from_seed(2016).choice(LARGEST, size=DRAWN, replace=False)
    return [pair for place, pair in enumerate(tuebingen(LARGEST)) if place in set(chosen.tolist())]


def table_2(columns: dict[str, dict[str, Any]]) -> None:
    """Print the mean chance over the splits, and its standard deviation over them in hundredths."""
    print("\nTable 2: P(correct), mean and (standard deviation over the splits, in hundredths)\n")
    for place, epsilon in enumerate(EPSILONS):
        print(f"ε = {epsilon:g}".replace("inf", "∞"))
        print(f"{'':<22}" + "".join(f"{name.removeprefix('pair'):>10}" for name in columns))
        for score in SIDES:
            for side, name in enumerate(NAMES):
                cells = [
                    f"{found[score][:, side, place].mean():.2f} ({100 * found[score][:, side, place].std():>2.0f})"
                    for found in columns.values()
                ]
                print(f"{score:<10}{name:<12}" + "".join(f"{cell:>10}" for cell in cells))
        print()


def curves(columns: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return by score the mean curves of both sides over the pairs that the score mostly gets right, and how many."""
    found = {}
    for score in SIDES:
        chosen = [each[score] for each in columns.values() if (each[score][:, :, 0].mean(axis=0) >= MOSTLY).all()]
        if chosen:
            found[score] = np.mean([each.mean(axis=0) for each in chosen], axis=0)[:, len(EPSILONS) :], len(chosen)
    return found


def figure_1(found: dict[str, Any]) -> None:
    print(f"Figure 1: P(correct) against ε, on the pairs that both sides get right in {MOSTLY:.0%} of the splits\n")
    shown = range(0, len(CURVE), 4)
    print(f"{'':<22}{'pairs':>7}" + "".join(f"{CURVE[place]:>8.3g}" for place in shown))
    for score, (both, count) in found.items():
        for name, curve in zip(NAMES, both, strict=True):
            print(f"{score:<10}{name:<12}{count:>7}" + "".join(f"{curve[place]:>8.3f}" for place in shown))
    for score in SIDES.keys() - found.keys():
        print(f"{score:<22}{0:>7}")


# ------------------------------------------------------------------------------------------------- pictures


def draw(folder: Path, lines: list[tuple[str, ...]], columns: dict[str, dict[str, Any]], found: Any) -> None:
    """Write the two tables and the figure as pictures."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def figure(width: float, height: float) -> Any:
        made = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(made)
        return made

    folder.mkdir(parents=True, exist_ok=True)
    first = figure(9, 1.9)
    ax = first.subplots()
    ax.axis("off")
    shown = ax.table([list(line) for line in lines[1:]], colLabels=list(lines[0]), loc="center", cellLoc="center")
    shown.auto_set_font_size(False)
    shown.set_fontsize(9)
    shown.scale(1, 1.4)
    first.savefig(folder / "paper1_table1.png", dpi=90)

    second = figure(9, 7)
    for place, (ax, epsilon) in enumerate(zip(second.subplots(2, 2).flat, EPSILONS, strict=True)):
        cells = np.array([
            [each[score][:, side, place].mean() for each in columns.values()] for score in SIDES for side in range(2)
        ])  # fmt: skip
        image = ax.imshow(cells, vmin=0, vmax=1, cmap="RdYlGn", aspect="auto")
        ax.set_title(f"ε = {epsilon:g}".replace("inf", "∞"))
        ax.set_xticks(range(len(columns)), [name.removeprefix("pair") for name in columns], rotation=90, fontsize=7)
        ax.set_yticks(range(len(cells)), [f"{score}, {name}" for score in SIDES for name in NAMES], fontsize=7)
    second.colorbar(image, ax=second.axes, shrink=0.6, label="P(correct)")
    second.savefig(folder / "paper1_table2.png", dpi=80)

    third = figure(9, 2.6)
    for ax, (score, (both, count)) in zip(third.subplots(1, len(found), sharey=True), found.items(), strict=True):
        for name, curve, style in zip(NAMES, both, ("--", "-"), strict=True):
            ax.plot(CURVE, curve, style, label=name, color="tab:red" if name == "published" else "tab:blue")
        ax.set_xscale("log")
        ax.set_title(f"{score}, {count} pair{'' if count == 1 else 's'}", fontsize=9)
        ax.set_xlabel("total ε")
        ax.axhline(0.5, color="0.7", linewidth=0.8)
    third.axes[0].set_ylabel("P(correct)")
    third.axes[0].legend(fontsize=7)
    third.savefig(folder / "paper1_figure1.png", dpi=90)
    print(f"\nPictures: {', '.join(sorted(path.name for path in folder.glob('paper1_*.png')))}")


def main() -> int:
    """Print the tables; nothing is a target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=10, help="random halves of each real pair")
    parser.add_argument("--sim", type=int, default=100, help="pairs of SIM, at most 100")
    parser.add_argument("--out", type=Path, help="folder for the pictures")
    arguments = parser.parse_args()
    start = time.perf_counter()
    lines = table_1()
    try:
        columns = {
            pair.name: right(pair, range(1000 * place, 1000 * place + arguments.splits))
            for place, pair in enumerate(drawn_pairs())
        }
        made = [right(pair, [place]) for place, pair in enumerate(list(simulated())[: arguments.sim])]
    except DataAbsentError as absent:
        print(f"SKIPPED: {absent}")
        return 0
    real = dict(columns)
    if made:
        columns["SIM"] = {score: np.concatenate([each[score] for each in made]) for score in SIDES}
    table_2(columns)
    print(f"The columns are Tübingen pairs by number, and SIM: {len(made)} simulated pairs together, over which its "
          "standard deviation is.\n")  # fmt: skip
    found = curves(real)
    figure_1(found)
    if arguments.out:
        draw(arguments.out, lines, columns, found)
    print(f"\n{time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
