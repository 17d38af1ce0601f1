"""Where numbers without declared cuts are cut: at noisy quartiles, by histograms that close in on them."""

import math
from fractions import Fraction
from typing import TypeVar

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.data.counts import JointCounts
from dpcausal.data.schema import Bounded
from dpcausal.discovery.question import DiscoveryQuestion
from dpcausal.mechanisms.additive import noise_variance, norm_of, whole_numbers
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Query
from dpcausal.statistics.strata import histograms_sensitivity

Cuts = dict[str, Reals]
Paid = TypeVar("Paid", PureDP | ZCDP | NoPrivacy, ZCDP | NoPrivacy)

CUTS_SHARE = Fraction(1, 10)
"""What the quartiles take of ρ, if there are any to learn; each round has as much as another."""

ROUNDS, PARTS = 4, 8
"""Rounds, and the parts of an interval in each."""

QUARTILES = np.array([0.25, 0.5, 0.75])

LEAST_SHARE = 0.02
"""Least share of the rows that the noisy number of kept ones is taken for."""

LEAST_GAP = 2.0**-14
"""Least distance of two cuts, and of a cut from a bound, as a part of the range."""


def uncut_columns(question: DiscoveryQuestion) -> dict[str, Bounded]:
    return {name: one for name, one in question.bounded.items() if one.cuts is None}


def part_of_round(loss: Paid) -> Paid:
    return loss.part(CUTS_SHARE / ROUNDS)


def loss_after_cuts(question: DiscoveryQuestion, loss: Paid) -> Paid:
    return loss.part(1 - CUTS_SHARE) if uncut_columns(question) else loss


def deviation_of_round(columns: int, loss: PureDP | ZCDP | NoPrivacy) -> float:
    """Return that of a count's noise; ``FenceError`` if it could not be drawn."""
    return math.sqrt(noise_variance(histograms_sensitivity(columns, norm_of(loss)), part_of_round(loss)))


def learned_cuts(
    joint: JointCounts, question: DiscoveryQuestion, allotment: CallBudget, loss: PureDP | ZCDP | NoPrivacy
) -> Cuts:
    columns = uncut_columns(question)
    if not columns:
        return {}
    laws = {name: Law(column) for name, column in columns.items()}
    places, step = [(question.names.index(name),) for name in laws], part_of_round(loss)
    deviation = deviation_of_round(len(laws), loss)
    bound = histograms_sensitivity(len(laws), norm_of(step))
    for width in float(PARTS) ** -np.arange(ROUNDS):
        cuts = {name: law.next_cuts(width) for name, law in laws.items()}
        exact = joint.recut(cuts)(places)
        noisy = whole_numbers(Query(np.concatenate(exact), bound, "quartiles"), allotment, step)
        parts = np.split(np.asarray(noisy, dtype=np.float64), np.cumsum([len(one) for one in exact])[:-1])
        for (name, law), counts in zip(laws.items(), parts, strict=True):
            law.add_histogram(cuts[name], counts, deviation, LEAST_SHARE * question.n)
    return {name: law.inside(law.quartiles()) for name, law in laws.items()}


class Law:
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
        distinct = np.unique(points)
        return distinct[(distinct > self.column.lower) & (distinct < self.column.upper)]

    def add_histogram(self, cuts: Reals, counts: Reals, deviation: float, least: float) -> None:
        """Take in a histogram: a sum of k counts of m, as a share of all m, has the variance of a bridge."""
        total = max(float(counts.sum()), least)
        below = np.arange(1, len(counts))
        variance = below * (len(counts) - below) / len(counts) * (deviation / total) ** 2
        self._points.append(np.array([cuts, counts.cumsum()[:-1] / total, 1 / (variance + 1 / total**2)]))

    def quartiles(self) -> Reals:
        from scipy.optimize import isotonic_regression

        cuts, shares, weights = np.hstack(self._points)
        places, same = np.unique(cuts, return_inverse=True)
        weight = np.bincount(same, weights)
        share = isotonic_regression(np.bincount(same, weights * shares) / weight, weights=weight).x
        lower, whole = self.column.lower, self.column.width
        knots = np.concatenate([[lower], places, [self.column.upper]])
        rising = np.concatenate([[0.0], np.clip(share, 0.0, 1.0), [1.0]]) + 1e-9 * np.arange(len(knots))
        fractions = (np.interp(QUARTILES, rising, knots) - lower) / whole
        gaps = LEAST_GAP * np.arange(1, 4)
        fractions = np.clip(np.maximum.accumulate(fractions - gaps) + gaps, gaps, 1 - gaps[::-1])
        return np.asarray(lower + whole * fractions)
