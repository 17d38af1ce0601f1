"""The mean of what blocks answer, with an interval from how they differ: three noisy releases, pure ε.

A window that holds most of the answers is chosen (claim ``block-window``); the answers, cut at a public multiple of its
half, are summed about its centre, and so are their squares (claim ``block-sum``).  With s the share of normal answers
that lie within, which the squares give, the mean is the centre and Σ u / M s: else an off centre would draw it.  Blocks
are alike by the deal, so

    V = Σ u² / M − (Σ u / M)²,   error² = (V / (M − 1) + noise²) / s²

counts what sampling does to the mean of the cut answers, whatever the blocks compute: what the answers have in common,
a bias, it does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dpcausal.mechanisms.additive import geometric, laplace_scale
from dpcausal.mechanisms.blocks import block_sum, block_window, blocks_moved
from dpcausal.mechanisms.selection import noisy_max
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.sensitivity import Unit
from dpcausal.releases.counts import geometric_variance

Integers = npt.NDArray[np.int64]

UNIT = 1 << 26
"""Steps of an answer in a width of the outcome's range."""
FINE = 1 << 20
"""Steps of a square in the largest."""

WINDOW, SUM, SQUARES = Fraction(25, 100), Fraction(55, 100), Fraction(20, 100)
PROOFS = ("block-window", "noisy-max", "block-sum", "geometric")

NARROWEST = 128
"""The narrowest window's half is the outcome's width over this and over the root of a block's rows."""
LEAST_REACH = 2.0
"""Answers are cut at so many halves from the centre, or at √ln M if that is more."""
LEAST_INSIDE = 0.8
"""Least share of the answers that are taken to lie within, where their mean is reported."""
LEAST_SPREAD = 0.1
"""Least variance of the cut answers, in squared halves."""
ASTRAY, ALL_CUT = 0.75, 0.85
"""No answer where the mean lies so many halves from the centre, or so large a part of the squares is the largest: the
window is not where the answers are."""


class BlockAggregate(NamedTuple):
    """The mean of what blocks answer, in widths of the outcome's range; ``None`` where no window was found."""

    estimate: float | None
    sampling: float
    """Variance of the mean over the blocks."""
    noise: float
    """Deviation of the noise."""


def answer_of(effect: float) -> int:
    """Return a block's answer as a whole number."""
    return round(min(max(effect, -1.0), 1.0) * UNIT)


def reach_of(blocks: int) -> float:
    """Return at how many halves from the centre answers are cut."""
    return max(LEAST_REACH, math.sqrt(math.log(max(blocks, 1))))


@dataclass(frozen=True)
class CandidateWindows:
    """All windows that may be chosen, for blocks of about so many rows: public."""

    centres: Integers
    halves: Integers

    @classmethod
    def of(cls, rows: float) -> CandidateWindows:
        """Return halves that shrink by √2, with centres a half apart over all that an effect can be."""
        least, halves = UNIT / (NARROWEST * math.sqrt(max(rows, 1.0))), list[int]()
        while not halves or halves[-1] / math.sqrt(2) >= max(least, 4):
            halves.append(round(UNIT * 2 ** (-len(halves) / 2)))
        places = [np.arange(-(UNIT // half) - 1, UNIT // half + 2) * half for half in halves]
        wide = [np.full(len(some), half) for some, half in zip(places, halves, strict=True)]
        return cls(np.concatenate(places).astype(np.int64), np.concatenate(wide).astype(np.int64))


def noise_share(blocks: int, epsilon: float) -> float:
    """Return the deviation of the noise of the mean, in halves of the window: public."""
    return math.sqrt(8) * reach_of(blocks) / (blocks * float(SUM) * epsilon)


def block_mean(
    answers: Sequence[int | None], rows: float, unit: Unit, loss: PureDP, allotment: CallBudget
) -> BlockAggregate:
    """Release the mean of the blocks' answers, whole numbers in [−``UNIT``, ``UNIT``], or ``None`` of a silent block.

    A silent block adds nothing to the sum and the largest square: many of them widen the interval.

    *Guarantee*: ``loss`` as pure ε, claims block-window, noisy-max, block-sum, geometric; the three add up.
    """
    windows, blocks = CandidateWindows.of(rows), len(answers)
    query = block_window(answers, windows.centres, windows.halves, "window of blocks' answers", unit)
    chosen = noisy_max(query, allotment, loss.part(WINDOW))
    centre, half = int(windows.centres[chosen]), int(windows.halves[chosen])
    reach = max(1, round(reach_of(blocks) * half))
    away = [None if one is None else min(max(one - centre, -reach), reach) for one in answers]
    total = block_sum([one or 0 for one in away], reach, "sum of blocks' answers", unit)
    squares = [FINE if one is None else one * one * FINE // (reach * reach) for one in away]
    of_squares = block_sum([one - FINE // 2 for one in squares], FINE // 2, "sum of blocks' squares", unit)
    mean = geometric(total, allotment, loss.part(SUM)) / blocks / reach
    square = geometric(of_squares, allotment, loss.part(SQUARES)) / blocks / FINE + 0.5
    noise, unsure = (
        math.sqrt(geometric_variance(laplace_scale(2 * steps * blocks_moved(unit), loss.part(share)))) / blocks / size
        for steps, share, size in ((reach, SUM, reach), (FINE // 2, SQUARES, FINE))
    )
    return aggregate_of(mean, square, noise, unsure, blocks, centre, half)


def share_inside(spread: float, steps: float) -> float:
    """Return the share of normal answers that lie within so many halves, from the variance of the cut ones, in halves.

    By so much less the mean of the cut answers moves than they do.
    """
    low, high = 0.2, 5.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        t = steps / middle
        inside = math.erf(t / math.sqrt(2))
        cut = middle**2 * (inside - t * math.sqrt(2 / math.pi) * math.exp(-t * t / 2)) + steps**2 * (1 - inside)
        low, high = (middle, high) if cut < spread else (low, middle)
    return max(math.erf(steps / low / math.sqrt(2)), LEAST_INSIDE)


def aggregate_of(
    mean: float, square: float, noise: float, unsure: float, blocks: int, centre: int, half: int
) -> BlockAggregate:
    """Return what three released numbers say: means and deviations in reaches, centre and half in steps."""
    steps = reach_of(blocks)
    astray = abs(mean) * steps > ASTRAY + 2 * noise * steps or square > ALL_CUT + unsure
    inside = share_inside((square - mean**2) * steps**2, steps)
    spread = min(max(square - mean**2 + unsure, LEAST_SPREAD / steps**2), 1.0)
    width = steps * half / UNIT / inside
    estimate = None if astray else min(max(centre / UNIT + mean * width, -1.0), 1.0)
    return BlockAggregate(estimate, spread / (blocks - 1) * width**2, noise * width)
