"""``"ci-test"``: PC by any test of ``ci_test``, under one budget split by order: for small graphs, mixed columns.

Each order has a fixed share of ε, the tests that it may need share it equally, and those that turn out to be needless
give nothing back: the whole cost is fixed before the data is read.
"""

import math
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from dpcausal.core import validate as public
from dpcausal.core.method import PlannedCall, Run
from dpcausal.core.progress import progress
from dpcausal.core.run import plan_call, run_many
from dpcausal.discovery.question import DiscoveryQuestion, GraphSearch, SearchOutcome
from dpcausal.discovery.search.pc import Test, Verdict, find_skeleton
from dpcausal.discovery.search.release_search import by_tests
from dpcausal.errors import DpCausalError, LossError
from dpcausal.independence.methods import METHODS, Auto
from dpcausal.independence.question import IndependenceQuestion, IndependenceTest
from dpcausal.privacy.loss import Loss, NoPrivacy, PureDP


@dataclass(frozen=True, kw_only=True)
class CiTest(GraphSearch):
    """PC by a test of independence, one ε split by order: for a few non-linear or mixed columns.

    Parameters
    ----------
    test : str or method
        How ``ci_test`` tests: a short name, or an object of ``dpcausal.methods`` with its options; by default
        ``"auto"``, test by test.  It is paid for in ``PureDP``.
    max_order : int, optional
        Largest conditioning set, 0 to 8; by default 1.
    """

    name: ClassVar[str] = "ci-test"
    about: ClassVar[str] = "tests of independence, one by one"
    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP,)
    supports_missing: ClassVar[bool] = True
    allows_private_ids: ClassVar[bool] = True
    uses_public_randomness: ClassVar[bool] = False
    usual_alpha: ClassVar[float] = 0.05
    cuts: ClassVar[bool] = False

    test: str | IndependenceTest = "auto"

    @property
    def chosen(self) -> IndependenceTest:
        method: IndependenceTest = public.choose_method(self.test, IndependenceTest, METHODS)
        return method

    @property
    def unproven(self) -> str:
        return self.chosen.unproven

    def usual_order(self, columns: int) -> int:
        return 1

    def filled(self, columns: int) -> Self:
        return replace(super().filled(columns), test=self.chosen)

    def plan(self, question: DiscoveryQuestion, loss: PureDP | NoPrivacy) -> Self:
        ready = super().plan(question, loss)
        if not isinstance(ready.simulate_once(question, loss).spent, type(loss)):
            text = f"test {ready.chosen.name!r} adds Gaussian noise"
            raise LossError(text, argument="loss", rule="gaussian", value=loss, hint="add a delta, as 1e-6")
        return ready

    def simulate_once(self, question: DiscoveryQuestion, loss: PureDP | NoPrivacy) -> PlannedCall[IndependenceQuestion]:
        """Return the plan of the first test, with its share: what cannot run is refused before the spend."""
        pairs = math.comb(len(question.names), 2)
        first = question.names[0], question.names[1], ()
        return self.planned(question, first, loss.part(self.shares[0] / pairs))

    def planned(
        self, question: DiscoveryQuestion, test: Test, loss: PureDP | NoPrivacy
    ) -> PlannedCall[IndependenceQuestion]:
        """Check one test by its public arguments; consent, where the test needs it, was given for the whole call."""
        level = self.terms(question.alpha, question.knowledge).alpha
        hypothesis = IndependenceQuestion.of(question.table, *test, level)
        return plan_call(hypothesis, self.chosen, loss, accept_unproven=True)

    def feasibility_note(self, question: DiscoveryQuestion, loss: PureDP | NoPrivacy) -> str:
        if isinstance(loss, NoPrivacy):
            return ""
        columns = len(question.names)
        budgets = []
        for order, share in enumerate(self.shares):
            tests = math.comb(columns, 2) * math.comb(columns - 2, order)
            if tests:
                least = float(loss.part(share / tests).exact_epsilon)
                budgets.append(f"up to {tests} tests given {order} with epsilon {least:.2g} or more each")
        return f"one epsilon for all: {', '.join(budgets)}; that many tests find only what clearly exceeds its noise"

    def proofs_of(self, question: DiscoveryQuestion, loss: PureDP) -> tuple[str, ...]:
        return Auto.CLAIMS if isinstance(self.chosen, Auto) else self.simulate_once(question, loss).proofs

    def release(self, run: Run[DiscoveryQuestion]) -> SearchOutcome:
        question, spent, allotment = run.question, run.loss, run.budget
        terms = self.terms(question.alpha, question.knowledge)
        each, step, progress_stack = spent, None, ExitStack()

        def begin(order: int, tests: list[Test], neighbours: dict[str, tuple[str, ...]]) -> None:
            nonlocal each, step
            each = spent.part(self.shares[order] / len(tests))
            progress_stack.close()
            step = progress_stack.enter_context(progress(len(tests), f"tests given {order}"))

        def ask(x: str, y: str, given: tuple[str, ...]) -> Verdict:
            if step is not None:
                step(f"tests given {len(given)}")
            try:
                plan = self.planned(question, (x, y, given), each)
            except DpCausalError:  # refused by public rules, as for too few rows at its ε: not made, its edge stays
                return Verdict(None)
            (result,) = run_many([plan], allotment)
            return Verdict(result.decision != "dependent", result.pvalue)

        with progress_stack:
            skeleton = find_skeleton(question.names, ask, terms, begin)
        return SearchOutcome(by_tests(question.names, skeleton, terms), terms, by_place=True)
