"""All scores of a direction by name: those of residuals, which need regressions, and those of the columns alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from dpcausal.direction.scores import anm, igci, lsnm
from dpcausal.direction.scores.anm import Column, Residuals
from dpcausal.privacy.noise import generator_from_seed

NAMES = ("lsnm", *anm.SCORES, *igci.SCORES)


def of_block(score: str, x: Column, y: Column, seed: int) -> tuple[float, float]:
    """Return the scores of ("x causes y", "y causes x") from the rows of a block and a public seed alone."""
    if score == "lsnm":
        return lsnm.scores(x, y, generator_from_seed(seed))
    if score in igci.SCORES:
        return igci.SCORES[score](x, y)
    return anm.SCORES[score](_fitted(x, y, seed))


_fits: ContextVar[dict[tuple[int, bytes, bytes], Residuals] | None] = ContextVar("fits", default=None)


@contextmanager
def shared_fits() -> Iterator[None]:
    """Fit the same rows with the same seed once inside: several scores of one block share its residuals.

    They are private, and forgotten at the end.
    """
    token = _fits.set({})
    try:
        yield
    finally:
        _fits.reset(token)


def _fitted(x: Column, y: Column, seed: int) -> Residuals:
    kept = _fits.get()
    if kept is None:
        return anm.fit_all(x, y, generator_from_seed(seed))
    # By the rows themselves: another number of blocks deals other rows to the same seed.
    key = seed, x.tobytes(), y.tobytes()
    if key not in kept:
        kept[key] = anm.fit_all(x, y, generator_from_seed(seed))
    return kept[key]


def rehearse(score: str) -> None:
    """Run a score once on fixed rows, so that a missing package or a broken compiler fails before anything is spent.

    Inside a block such a failure would look like one of the fit, and every block would vote by its coin.
    """
    x = np.linspace(-1, 1, 12)
    of_block(score, x, x**3 - x / 3, 0)
