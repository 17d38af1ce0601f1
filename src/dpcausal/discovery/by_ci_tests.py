"""PC by any test of ``ci_test``, under one budget split by order: for small graphs, non-linear and mixed columns.

Each order has a fixed share of ε, the tests that it may need share it equally, and those that turn out to be needless
give nothing back: the whole cost is fixed before the data is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpcausal.asking import public
from dpcausal.asking.ask import ask_all, settle
from dpcausal.asking.method import Settled
from dpcausal.data.table import Table
from dpcausal.discovery.contrasts import shares_of
from dpcausal.discovery.knowledge import Knowledge
from dpcausal.discovery.pc import Skeleton, Test, Verdict, find_skeleton
from dpcausal.errors import DpCausalError
from dpcausal.independence.methods import METHODS
from dpcausal.independence.question import Hypothesis, IndependenceTest
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import NoPrivacy, PureDP


def planned(
    table: Table, test: str, asked: Test, loss: PureDP | NoPrivacy, alpha: float
) -> Settled[Hypothesis]:
    """Check one test by its public arguments and return its plan."""
    x, y, given = asked
    return settle(Hypothesis.of(table, x, y, given, alpha), public.chosen(test, IndependenceTest, METHODS), loss)


@dataclass
class CiPruner:
    """The pruner: one private test for each question.

    Attributes
    ----------
    test : str
        The method of ``ci_test``.
    spent : PureDP or NoPrivacy
        What all tests together cost.
    """

    table: Table
    test: str
    alpha: float
    max_order: int
    spent: PureDP | NoPrivacy
    allotment: Allotment
    _each: PureDP | NoPrivacy | None = None

    def begin(self, order: int, tests: list[Test], neighbours: dict[str, tuple[str, ...]]) -> None:
        """Share the order's part of ε among its tests."""
        if isinstance(self.spent, PureDP):
            part, whole = shares_of(self.max_order)[order]
            self._each = PureDP(self.spent.exact_epsilon * part / whole).part(Fraction(1, len(tests)))
        else:
            self._each = self.spent

    def ask(self, x: str, y: str, given: tuple[str, ...]) -> Verdict:
        """Run a test; one that public rules refuse, as for too few rows at its ε, is not made and its edge stays."""
        try:
            plan = planned(self.table, self.test, (x, y, given), self._each or self.spent, self.alpha)
        except DpCausalError:
            return Verdict(None)
        (found,) = ask_all([plan], self.allotment)
        return Verdict(found.decision != "dependent", found.pvalue)


def find(
    table: Table, names: tuple[str, ...], test: str, alpha: float, max_order: int, knowledge: Knowledge,
    spent: PureDP | NoPrivacy, allotment: Allotment,
) -> Skeleton:  # fmt: skip
    """Return the skeleton that the tests leave."""
    pruner = CiPruner(table, test, alpha, max_order, spent, allotment)
    return find_skeleton(names, pruner.ask, knowledge=knowledge, max_order=max_order, begin=pruner.begin)
