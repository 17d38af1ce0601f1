"""Draw the picture of the page on directions: residuals of the regression in either direction.

    python -m benchmarks draw_which_way [FILE]

FILE is ``docs/img/which_way.png`` by default.  The data are simulated from a fixed seed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import dpcausal as dpc
from dpcausal.direction.scores.anm import fit_all
from dpcausal.privacy.noise import generator_from_seed

TARGET = Path(__file__).resolve().parents[1] / "docs" / "img" / "which_way.png"
ROWS, SEED = 400, 5


def main(target: Path) -> int:
    """Write the picture and return 0."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    pair = dpc.simulate.anm_pair(ROWS, mechanism="cubic", cause="uniform", noise_scale=0.3, seed=SEED)
    rest = fit_all(pair.columns["x"], pair.columns["y"], generator_from_seed(SEED))
    figure = Figure(figsize=(8, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    lines = (
        ("cause", "effect", rest.x, rest.y, rest.left_y, "tab:blue"),
        ("effect", "cause", rest.y, rest.x, rest.left_x, "tab:orange"),
    )
    titles = (
        "effect on cause: residuals are independent of the cause",
        "cause on effect: residuals depend on the effect",
    )
    for axes, line, title in zip(figure.subplots(2, 2), lines, titles, strict=True):
        regressor, response, at, of, left, colour = line
        order = np.argsort(at)
        axes[0].plot(at, of, ".", color="0.6", markersize=3)
        axes[0].plot(at[order], (of - left)[order], color=colour, linewidth=1.5)
        axes[0].set_xlabel(regressor)
        axes[0].set_ylabel(response)
        axes[1].plot(at, left, ".", color=colour, markersize=3)
        axes[1].axhline(0, color="0.6", linewidth=0.8)
        axes[1].set_xlabel(regressor)
        axes[1].set_ylabel(f"residual of the {response}")
        axes[1].set_title(title, fontsize=9)
        for ax in axes:
            ax.set_xticks([])
            ax.set_yticks([])
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=90, metadata={"Software": None})
    print(f"{target.name}: {target.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET))
