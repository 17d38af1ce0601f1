"""Mutants of control flow and accounting, killed by the grey box or the ledger check; controls beside them.

The calls release a sum of values in [0, 1] from a list of records, as a task of the library would.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from dpcausal.audit import compare
from dpcausal.errors import DpCausalError
from dpcausal.mechanisms.additive import geometric, laplace
from dpcausal.privacy.composition import cost_of
from dpcausal.privacy.ledger import CallBudget, Ledger
from dpcausal.privacy.loss import PureDP, to_zcdp
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity
from tests.registry.rows import Case

Values = Any
Call = Callable[[Values], Any]

ONE = PureDP(1)
EMPTY, FULL = [0.0] * 6, [1.0, *[0.0] * 5]  # neighbours: the first record is replaced


def granted(relation: Relation = Relation.REPLACE_ONE) -> CallBudget:
    return Ledger.in_memory(ONE, accept_large_epsilon=True).charge(ONE, task="sum", relation=relation)


def noisy(
    answer: Any, allotment: CallBudget, *, bound: float = 1.0, loss: PureDP = ONE, label: str = "sum",
    relation: Relation = Relation.REPLACE_ONE,
) -> Any:  # fmt: skip
    return laplace(Query(float(answer), Sensitivity(bound, Norm.L1, relation, "laplace"), label), allotment, loss)


def by_grey_box(name: str, call: Call, pair: tuple[Values, Values] = (EMPTY, FULL), silent: bool = False) -> Case:
    """Return a case that compares the call on two neighbours under three fixed answers.

    A call that fails alike on both would pass by saying nothing, so it must bring something to the gate unless
    ``silent``.
    """

    def flagged() -> bool:
        answers: list[Any] = ["low", "high", lambda event, value: np.zeros_like(value)]
        audits = [compare(lambda: call(pair[0]), lambda: call(pair[1]), answers=each) for each in answers]
        assert silent or all(audit.passages for audit in audits), "nothing came to the gate"
        return any(audit.violated for audit in audits)

    return Case(name, "grey box", flagged)


def right(values: Values) -> Any:
    return noisy(np.clip(values, 0, 1).sum(), granted())


def unclipped(values: Values, **claimed: Any) -> Any:
    return noisy(sum(values), granted(), **claimed)


def changing_count(values: Values, answer: float, bound: float = 1.0) -> Any:
    # Under add/remove the number of rows is private, and so is a bound that is made of it.
    relation = Relation.ADD_OR_REMOVE_ONE
    return noisy(answer, granted(relation), bound=bound, relation=relation)


def divided(values: Values) -> Any:
    if np.ptp(values) == 0:
        raise ZeroDivisionError("the column is constant")
    return noisy(sum(values), granted())


def telling_error(values: Values) -> Any:
    raise ValueError(f"the largest value is {max(values)}")


def early_return(values: Values) -> Any:
    return None if not np.any(values) else noisy(sum(values), granted())


def strata(values: Values, skip: bool) -> Any:
    allotment, parts = granted(), [part for part in (values[0::2], values[1::2]) if not skip or np.any(part)]
    return [noisy(sum(part), allotment, loss=PureDP(0.5), label=f"stratum {i}") for i, part in enumerate(parts)]


def until_converged(values: Values) -> Any:
    allotment, step = granted(), 0
    while step < 4 and sum(values) * 0.6**step >= 0.5:
        noisy(min(1.0, sum(values) * 0.6**step), allotment, loss=PureDP(0.25), label=f"step {step}")
        step += 1


def own_share(values: Values) -> Any:
    allotment = granted()
    share = PureDP(0.75 if sum(values) > 0.5 else 0.25)
    return noisy(sum(values), allotment, loss=share)


def by_exact_branch(values: Values) -> Any:
    allotment, answer = granted(), sum(values)
    if answer > 0.5:
        return noisy(answer, allotment)
    claim = Sensitivity(1, Norm.L1, Relation.REPLACE_ONE, "geometric")
    return geometric(Query(round(answer), claim, "sum"), allotment, ONE)


def by_noisy_branch(values: Values) -> Any:
    allotment = granted()
    if noisy(sum(values), allotment, loss=PureDP(0.5), label="look") > 0.5:
        return noisy(sum(values), allotment, loss=PureDP(0.5), label="again")
    return None


# The ledger check: when the draw happens the spend is booked, an error leaves it booked, and two answers cost two.

Draw = Callable[[], float]
Paid = Callable[[Ledger, Draw], Any]


def by_ledger(name: str, paid: Paid) -> Case:
    """Return a case for a mechanism that pays a ledger and calls ``draw`` for its noise."""

    def flagged() -> bool:
        ledger, booked = Ledger.in_memory(PureDP(10)), []

        def draw() -> float:
            booked.append(len(ledger.entries()))
            return 0.0

        def failing() -> float:
            raise OSError("no random bits")

        paid(ledger, draw)
        paid(ledger, draw)
        if booked != [1, 2] or ledger.remaining.epsilon != 8:
            return True
        with suppress(OSError):
            paid(ledger, failing)
        return ledger.remaining.epsilon != 7

    return Case(name, "ledger", flagged)


def pays_first(ledger: Ledger, draw: Draw) -> float:
    ledger.charge(ONE, task="sum")
    return draw()


def draws_first(ledger: Ledger, draw: Draw) -> float:
    answer = draw()
    ledger.charge(ONE, task="sum")
    return answer


def refunds(ledger: Ledger, draw: Draw) -> float:
    store = ledger._store
    before = store.account()
    ledger.charge(ONE, task="sum")
    try:
        return draw()
    except OSError:
        store._place.truncate(before.size)  # type: ignore[union-attr]
        store._account = before
        raise


def pays_if_useful(ledger: Ledger, draw: Draw) -> float | None:
    answer = draw()
    if answer > 0.5:
        ledger.charge(ONE, task="sum")
    return answer if answer > 0.5 else None


def pays_once() -> Paid:
    seen: set[str] = set()

    def paid(ledger: Ledger, draw: Draw) -> float:
        if "sum" not in seen:
            ledger.charge(ONE, task="sum")
            seen.add("sum")
        return draw()

    return paid


def refused(call: Callable[[CallBudget], Any]) -> bool:
    """Return whether an allotment of ε = 1 refuses what a call draws from it."""
    try:
        call(granted())
    except DpCausalError:
        return True
    return False


def twice(loss: PureDP) -> Callable[[CallBudget], Any]:
    return lambda allotment: [noisy(0.0, allotment, loss=loss, label=label) for label in ("first", "second")]


def too_cheap(rho_of: Callable[[float], float]) -> bool:
    """Return whether randomised response, ε-DP exactly, loses more than the ρ that a pure ε is charged.

    Its Rényi divergence at α → 1 is ε·tanh(ε/2), and zCDP asks that it is at most ρ·1.
    """
    return any(epsilon * math.tanh(epsilon / 2) > rho_of(epsilon) for epsilon in (0.01, 0.1, 0.5, 1.0, 2.0))


def overspent(units_of: Callable[[PureDP], float]) -> bool:
    """Return whether ten thousand spends of 1.5e-9 fit a budget of 1.4e-5 by what each is charged, in units of 1e-9."""
    return 10_000 * units_of(PureDP(1.5e-9)) <= 14_000


MUTANTS = (
    by_grey_box("half the bound at the gate", lambda values: unclipped(values, bound=0.5)),
    by_grey_box("not clipped before the gate", unclipped, (EMPTY, [7.0, *EMPTY[1:]])),
    by_grey_box("noise scaled to the largest value at hand",
                lambda values: unclipped(values, bound=max(max(values), 0.1))),
    by_grey_box("a label that counts",
                lambda values: unclipped(values, label=f"sum of {np.count_nonzero(values)} rows")),
    by_grey_box("n leaked through the bound under add/remove",
                lambda values: changing_count(values, float(np.mean(values)), 1 / len(values)), (EMPTY, EMPTY[1:])),
    by_grey_box("an error on a constant column", divided, silent=True),
    by_grey_box("an error that quotes a value", telling_error, silent=True),
    by_grey_box("an early return when nothing is found", early_return, silent=True),
    by_grey_box("empty strata are skipped", lambda values: strata(values, skip=True), silent=True),
    by_grey_box("steps until the data converge", until_converged, silent=True),
    by_grey_box("a share of ε that depends on the data", own_share),
    by_grey_box("a mechanism chosen by the exact answer", by_exact_branch),
    by_ledger("spend after the draw", draws_first),
    by_ledger("refund on error", refunds),
    by_ledger("nothing is paid when nothing is found", pays_if_useful),
    by_ledger("the same question is free the second time", pays_once()),
    Case("two releases, each at the whole allotment", "ledger", lambda: refused(twice(ONE))),
    Case("a pure ε charged as ε²/4", "ledger", lambda: too_cheap(lambda epsilon: epsilon**2 / 4)),
    Case("a pure ε charged as ε²/8", "ledger", lambda: too_cheap(lambda epsilon: epsilon**2 / 8)),
    Case("costs rounded down to units", "ledger", lambda: overspent(lambda loss: math.floor(loss.epsilon * 1e9))),
)  # fmt: skip

CONTROLS = (
    by_grey_box("a clipped sum", right, (EMPTY, [7.0, *EMPTY[1:]])),
    by_grey_box("a sum under add/remove", lambda values: changing_count(values, sum(values)), (FULL, FULL[1:])),
    by_grey_box("strata that are all answered", lambda values: strata(values, skip=False)),
    by_grey_box("a second look that a noisy answer decides", by_noisy_branch),
    by_ledger("spend before the draw", pays_first),
    Case("two releases, each at half the allotment", "ledger", lambda: refused(twice(PureDP(0.5)))),
    Case("a pure ε charged as ε²/2", "ledger", lambda: too_cheap(lambda epsilon: to_zcdp(PureDP(epsilon)).rho)),
    Case("costs rounded up to units", "ledger", lambda: overspent(lambda loss: cost_of(loss).epsilon or 0)),
)
