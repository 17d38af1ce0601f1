"""Where most blocks' answers lie: a window of public places and widths, chosen by how many of them it holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.mechanisms.subsample import blocks_moved
from dpcausal.privacy.neighbours import Relation, Unit
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity

Integers = npt.NDArray[np.int64]

INSIDE = 0.68
"""Share of the blocks that a window should hold: it then reaches a standard deviation to either side."""


def block_window(
    answers: Sequence[int | None], centres: Integers, halves: Integers, label: str, unit: Unit = Unit.ROW
) -> Query:
    """Return the score of each window, hidden: −max(|2·below + silent − M|, |2·inside − 2·.68·M|).

    ``below`` counts the answers left of the centre, ``silent`` the blocks without one (``None``), ``inside`` the
    answers at most a half away from the centre; windows are public.  Sensitivity 2 in the maximum norm, twice that for
    persons of private ids: claim ``block-window``.
    """
    if len(centres) == 0 or centres.shape != halves.shape:
        raise ParameterError("windows need as many centres as halves, at least one")
    blocks = len(answers)
    ordered = np.sort(np.array([one for one in answers if one is not None], dtype=np.int64))
    below = 2 * np.searchsorted(ordered, centres, "left") + blocks - len(ordered)
    inside = np.searchsorted(ordered, centres + halves, "right") - np.searchsorted(ordered, centres - halves, "left")
    scores = -np.maximum(np.abs(below - blocks), np.abs(2 * inside - round(2 * INSIDE * blocks)))
    bound = Sensitivity(2 * blocks_moved(unit), Norm.LINF, Relation.REPLACE_ONE, "block-window", unit)
    return Query(scores.astype(np.int64), bound, label)
