"""Where numbers that stand beside levels are cut: noisy histograms that close in on the quartiles of each.

Each round has eight bins where the former had one, around each quartile by what all rounds told: four of them tell
quartiles in bounds a thousand times too wide.  The law is taken as none in particular: skewed columns are as easy.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpcausal.data.schema import Bounded
from dpcausal.data.tabulate import JointCounts
from dpcausal.dependence.contingency import histograms_sensitivity
from dpcausal.discovery.question import Graph, deviation_of
from dpcausal.mechanisms.additive import gaussian
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ZCDP, NoPrivacy
from dpcausal.privacy.sensitivity import Query

Reals = npt.NDArray[np.float64]
Cuts = dict[str, Reals]

CUTS_SHARE = Fraction(1, 10)
"""What the quartiles take of ρ, if there are any to learn; each round has as much as another."""

ROUNDS, PARTS = 4, 8
"""Rounds, and the parts of an interval in each."""

QUARTILES = np.array([0.25, 0.5, 0.75])

LEAST_SHARE = 0.02
"""Least share of the rows that the noisy number of kept ones is taken for."""

APART = 2.0**-14
"""Least distance of two cuts, and of a cut from a bound, as a part of the range."""


def uncut(question: Graph) -> dict[str, Bounded]:
    """Return the bounded columns whose cuts are not declared."""
    declared = {name: question.table.schema.column(name) for name in question.names}
    return {name: one for name, one in declared.items() if isinstance(one, Bounded) and one.cuts is None}


def part_of_round(loss: ZCDP | NoPrivacy) -> ZCDP | NoPrivacy:
    """Return what a round takes of a loss."""
    return loss.part(CUTS_SHARE / ROUNDS)


def beside_cuts(question: Graph, loss: ZCDP | NoPrivacy) -> ZCDP | NoPrivacy:
    """Return what the quartiles leave of a loss."""
    return loss.part(1 - CUTS_SHARE) if uncut(question) else loss


def foresee_cuts(question: Graph, loss: ZCDP | NoPrivacy) -> None:
    """Rehearse the noise of a round: ``FenceError`` if it could not be drawn."""
    if columns := uncut(question):
        deviation_of(float(histograms_sensitivity(len(columns)).bound), part_of_round(loss))


def learned_cuts(joint: JointCounts, question: Graph, allotment: Allotment, loss: ZCDP | NoPrivacy) -> Cuts:
    """Release where columns without declared cuts are cut: at noisy quartiles; ``joint`` counts private records."""
    columns = uncut(question)
    if not columns:
        return {}
    laws = {name: Law(column) for name, column in columns.items()}
    places, step = [(question.names.index(name),) for name in laws], part_of_round(loss)
    bound = histograms_sensitivity(len(laws))
    deviation = deviation_of(float(bound.bound), step)
    for width in float(PARTS) ** -np.arange(ROUNDS):
        cuts = {name: law.next_cuts(width) for name, law in laws.items()}
        exact = joint.recut(cuts)(places)
        noisy = gaussian(Query(np.concatenate(exact), bound, "quartiles"), allotment, step)
        parts = np.split(np.asarray(noisy, dtype=np.float64), np.cumsum([len(one) for one in exact])[:-1])
        for (name, law), counts in zip(laws.items(), parts, strict=True):
            law.tell(cuts[name], counts, deviation, LEAST_SHARE * question.n)
    return {name: law.inside(law.quartiles()) for name, law in laws.items()}


class Law:
    """What noisy histograms told of how a column's values are spread, as points of its distribution function."""

    def __init__(self, column: Bounded) -> None:
        self.column = column
        self._points: list[Reals] = []  # cut, share of the rows below it, weight

    def next_cuts(self, width: float) -> Reals:
        """Return the cuts of the next round, around each quartile a part of the range so wide."""
        lower, whole = self.column.lower, self.column.width
        places = (self.quartiles() - lower) / whole if self._points else np.zeros(1)
        sides = np.floor(np.clip(places, 0.0, 1 - width) / width) * width
        return self.inside(lower + whole * (sides[:, None] + width * np.arange(PARTS + 1) / PARTS).ravel())

    def inside(self, points: Reals) -> Reals:
        """Return those points that are different and within the bounds."""
        found = np.unique(points)
        return found[(found > self.column.lower) & (found < self.column.upper)]

    def tell(self, cuts: Reals, counts: Reals, deviation: float, least: float) -> None:
        """Take in a histogram: a sum of k counts of m, as a share of all m, has the variance of a bridge."""
        total = max(float(counts.sum()), least)
        below = np.arange(1, len(counts))
        variance = below * (len(counts) - below) / len(counts) * (deviation / total) ** 2
        self._points.append(np.array([cuts, counts.cumsum()[:-1] / total, 1 / (variance + 1 / total**2)]))

    def quartiles(self) -> Reals:
        """Return the quartiles of the monotone function nearest to all points."""
        from scipy.optimize import isotonic_regression

        cuts, shares, weights = np.hstack(self._points)
        places, same = np.unique(cuts, return_inverse=True)
        weight = np.bincount(same, weights)
        share = isotonic_regression(np.bincount(same, weights * shares) / weight, weights=weight).x
        lower, whole = self.column.lower, self.column.width
        knots = np.concatenate([[lower], places, [self.column.upper]])
        rising = np.concatenate([[0.0], np.clip(share, 0.0, 1.0), [1.0]]) + 1e-9 * np.arange(len(knots))
        found = (np.interp(QUARTILES, rising, knots) - lower) / whole
        apart = APART * np.arange(1, 4)
        found = np.clip(np.maximum.accumulate(found - apart) + apart, apart, 1 - apart[::-1])
        return np.asarray(lower + whole * found)
