"""Short names of the methods, the method of each kind of release, and the rule of ``auto``."""

import math
from collections.abc import Callable

from dpcausal.core import validate as public
from dpcausal.discovery.methods.ci_test import CiTest
from dpcausal.discovery.methods.contingency_table import ContingencyTable
from dpcausal.discovery.methods.moments import Moments
from dpcausal.discovery.methods.parities import Parities
from dpcausal.discovery.methods.triples import Triples
from dpcausal.discovery.methods.whitened import Whitened, declared
from dpcausal.discovery.question import DiscoveryQuestion, GraphSearch
from dpcausal.errors import LossError
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, PureDP, affordable_zcdp
from dpcausal.releases.contrasts import NoisyContrasts
from dpcausal.releases.counts import NoisyTable
from dpcausal.releases.level_moments import NoisyWhitened
from dpcausal.releases.moments import NoisyMoments
from dpcausal.releases.release import Release
from dpcausal.releases.third_moments import NoisyTriples
from dpcausal.statistics.level_moments import MOST_ENTRIES

__all__ = ["CiTest", "ContingencyTable", "Moments", "Parities", "Triples", "Whitened"]

METHODS: dict[str, type[GraphSearch]] = {
    kind.name: kind for kind in (ContingencyTable, Parities, Whitened, Triples, Moments, CiTest)
}  # fmt: skip
"""Every method by its short name, beside ``"auto"``."""

READERS: dict[type[Release], type[GraphSearch]] = {
    NoisyTable: ContingencyTable, NoisyContrasts: Parities, NoisyMoments: Moments, NoisyWhitened: Whitened,
    NoisyTriples: Triples,
}  # fmt: skip
"""The method whose terms a release is asked again on."""

MOST_AUTO_CELLS = 1024
"""Cells up to which ``auto`` takes one noisy table."""


def method_of(named: object, question: DiscoveryQuestion, loss: Loss) -> GraphSearch:
    known: dict[str, Callable[[], GraphSearch]] = {"auto": lambda: choose_automatically(question, loss), **METHODS}
    method: GraphSearch = public.choose_method(named, GraphSearch, known)
    return method


LITTLE_NOISE = 250.0
"""From so large an n √(2ρ)/D on, noise is less than what pairs miss of tests given two columns: triples."""

TWO_LEVELS = 500.0
"""From so large an n √(2ρ)/D on, contrasts of columns of two levels find more than triples, and rare causes."""


def _of_many(question: DiscoveryQuestion, loss: Loss) -> GraphSearch:
    entries, spent = declared(question), affordable_zcdp(Whitened().charge(loss, question)[0])
    if not isinstance(spent, ZCDP) or entries > MOST_ENTRIES:
        return Parities()
    clearness = question.n * math.sqrt(2 * spent.rho) / entries
    if clearness >= TWO_LEVELS and max(question.sizes) <= 2:
        return Parities()
    return Whitened() if clearness < LITTLE_NOISE else Triples()


def choose_automatically(question: DiscoveryQuestion, loss: Loss) -> GraphSearch:
    gaussian = loss.exact_delta > 0 if isinstance(loss, ApproxDP) else not isinstance(loss, PureDP)
    if gaussian and len(question.bounded) == len(question.names):
        return Moments()
    if math.prod(question.sizes) <= MOST_AUTO_CELLS:
        return ContingencyTable()
    if gaussian:
        return _of_many(question, loss)
    raise LossError(
        f"{len(question.names)} columns make a table of more than {MOST_AUTO_CELLS} cells, and parities need "
        "Gaussian noise", argument="loss", rule="gaussian", value=loss,
        hint="add a delta, as 1e-6, or name fewer columns",
    )  # fmt: skip
