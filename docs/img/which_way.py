"""Draw the picture of the page on directions: ``python docs/img/which_way.py``.

Residuals of the regression in either direction, of data simulated from a fixed seed.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dpcausal as dpc
from dpcausal.direction.scores.anm import fit_all
from dpcausal.privacy.noise import generator_from_seed

ROWS, SEED = 400, 5


def main() -> None:
    pair = dpc.simulate.anm_pair(ROWS, mechanism="cubic", cause="uniform", noise_scale=0.3, seed=SEED)
    rest = fit_all(pair.columns["x"], pair.columns["y"], generator_from_seed(SEED))
    figure, rows = plt.subplots(2, 2, figsize=(8, 4.4), layout="constrained")
    directions = (
        ("cause", "effect", rest.x, rest.y, rest.left_y, "tab:blue", "independent of the cause"),
        ("effect", "cause", rest.y, rest.x, rest.left_x, "tab:orange", "dependent on the effect"),
    )
    for (fit, left), (regressor, response, x, y, residuals, colour, outcome) in zip(rows, directions, strict=True):
        order = np.argsort(x)
        fit.plot(x, y, ".", color="0.6", markersize=3)
        fit.plot(x[order], (y - residuals)[order], color=colour, linewidth=1.5)
        fit.set(xlabel=regressor, ylabel=response, xticks=[], yticks=[])
        left.plot(x, residuals, ".", color=colour, markersize=3)
        left.axhline(0, color="0.6", linewidth=0.8)
        left.set(xlabel=regressor, ylabel=f"residual of the {response}", xticks=[], yticks=[])
        left.set_title(f"{response} on {regressor}: residuals are {outcome}", fontsize=9)
    figure.savefig(Path(__file__).with_name("which_way.png"), dpi=90, metadata={"Software": None})


if __name__ == "__main__":
    main()
