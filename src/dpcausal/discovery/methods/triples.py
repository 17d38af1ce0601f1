"""``"triples"``: whitened pairs, then third moments of the triples that full tests given two columns need.

Pairs determine these tests; the rest of ρ pays for their third moments, with the weights that rows have in the pairs,
and the search is free.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpcausal.core.method import Run
from dpcausal.data.counts import JointCounts
from dpcausal.data.table import Table
from dpcausal.discovery.copies import copies_of, terms_without_copies
from dpcausal.discovery.methods.learned_cuts import loss_after_cuts
from dpcausal.discovery.methods.whitened import Design, Whitened, noisy_whitened, row_length, squared_length
from dpcausal.discovery.question import DiscoveryQuestion, SearchOutcome
from dpcausal.discovery.search.pc import Terms
from dpcausal.discovery.search.strongest_first import candidates, needed_triples
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, ApproxDP, NoPrivacy, affordable_zcdp
from dpcausal.privacy.sensitivity import Query
from dpcausal.releases.third_moments import NoisyTriples
from dpcausal.statistics.level_moments import (
    MOST_THIRDS,
    third_entries,
    third_moments,
    third_moments_sensitivity,
    weight_sums,
)

BEFORE_TRIPLES = Design(Fraction(1, 20), Fraction(3, 5), 0.7)
"""Of margins and pairs: levels, lengths and shares were chosen on alarm, insurance, child and generated networks."""

THIRDS_LENGTH = 4.0
"""The squared length of a row's weighted products, in their number times the square of what shortens pairs."""

EXACT_LENGTH = 1e6
"""The same without noise."""


def length_of(entries: int, loss: ZCDP | NoPrivacy) -> float:
    if isinstance(loss, ZCDP):
        return BEFORE_TRIPLES.length_share * math.sqrt(THIRDS_LENGTH * entries)
    return math.sqrt(EXACT_LENGTH * entries)


@dataclass(frozen=True, kw_only=True)
class Triples(Whitened):
    """Noisy whitened pairs, then noisy third moments for full tests given two columns: for many columns, little noise.

    Parameters
    ----------
    max_order : int, optional
        Largest conditioning set, 0 to 8; by default 2.
    """

    name: ClassVar[str] = "triples"
    about: ClassVar[str] = "noisy whitened pairs, then chosen triples"
    proofs: ClassVar[tuple[str, ...]] = ("column-histograms", "whitened-moments", "third-moments", "gaussian")
    design: ClassVar[Design] = BEFORE_TRIPLES

    def feasibility_note(self, question: DiscoveryQuestion, loss: ApproxDP | ZCDP | NoPrivacy) -> str:
        last = third_part(loss_after_cuts(question, affordable_zcdp(loss)))
        for entries, times in ((1, 2), (MOST_THIRDS, 200)):  # rounding is in no bound more than that
            gaussian_scale(times * length_of(entries, last), last)
        return super().feasibility_note(question, loss)

    def release(self, run: Run[DiscoveryQuestion]) -> SearchOutcome:
        question = run.question
        terms = self.terms(question.alpha, question.knowledge)
        return self.searched(noisy_triples(run.data, question, run.budget, affordable_zcdp(run.loss), terms), question)


def third_part(loss: ZCDP | NoPrivacy) -> ZCDP | NoPrivacy:
    return loss.part(1 - BEFORE_TRIPLES.margins - BEFORE_TRIPLES.moments)


def noisy_triples(
    private: Table, question: DiscoveryQuestion, allotment: CallBudget, loss: ZCDP | NoPrivacy, terms: Terms
) -> NoisyTriples:
    pairs, n = noisy_whitened(private, question, allotment, loss, BEFORE_TRIPLES), question.n
    # From here on triples, features, weights and length are functions of the noisy margins and pairs.
    last, shares = third_part(loss_after_cuts(question, loss)), [np.array(p) for p in pairs.shares]
    ordered, terms = pairs.by_name(), terms_without_copies(terms, copies_of(pairs, terms), pairs.names)
    named = needed_triples(ordered, candidates(ordered, terms), terms, [np.array(p) for p in ordered.shares])
    place = {name: number for number, name in enumerate(pairs.names)}
    triples = []
    for triple in named:
        a, b, c = sorted(place[ordered.names[k]] for k in triple)
        triples.append((a, b, c))
    triples.sort()
    thirds, deviation = np.zeros(1), 0.0
    if triples:
        second = BEFORE_TRIPLES.parts(loss_after_cuts(question, loss))[1]
        usual = squared_length(len(pairs.matrix), second, BEFORE_TRIPLES)
        squared = row_length(shares, n, second, BEFORE_TRIPLES)
        length = length_of(third_entries(shares, triples), last) * squared / usual
        joint = JointCounts(private, question.names).recut({name: np.array(own) for name, own in pairs.cuts.items()})
        sums = joint.over(lambda codes: weight_sums(codes, pairs.places, shares, squared, triples, length, n))
        sensitivity = third_moments_sensitivity(shares, triples, length, n)
        deviation = gaussian_scale(float(sensitivity.bound), last)
        thirds = gaussian(Query(third_moments(sums, shares, triples, n), sensitivity, "third moments"), allotment, last)
    return NoisyTriples(
        pairs.names, n, pairs.places, pairs.shares, pairs.matrix, pairs.deviation, tuple(triples), thirds, deviation,
        cuts=pairs.cuts, cut=pairs.cut,
    )  # fmt: skip
