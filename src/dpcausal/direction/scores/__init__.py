"""The scores of a direction by name."""

import numpy as np

from dpcausal.direction.scores import anm, lsnm
from dpcausal.direction.scores.anm import Column
from dpcausal.privacy.noise import generator_from_seed

NAMES = ("lsnm", "hsic")


def of_block(score: str, x: Column, y: Column, seed: int) -> tuple[float, float]:
    """Return the scores of ("x causes y", "y causes x") from the rows of a block and a public seed alone."""
    if score == "lsnm":
        return lsnm.scores(x, y, generator_from_seed(seed))
    return anm.hsic_scores(anm.fit_all(x, y, generator_from_seed(seed)))


def rehearse(score: str) -> None:
    """Run a score once on fixed rows, so that a missing package or compiler fails before anything is spent."""
    x = np.linspace(-1, 1, 12)
    of_block(score if score in NAMES else "hsic", x, x**3 - x / 3, 0)
