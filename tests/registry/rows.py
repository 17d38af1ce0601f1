"""The kinds of rows of the registry.  ``index`` collects the rows of all pages.

A page of a subject holds its claims, each with statistic, domain, witness and mutants in one ``SensitivityRow``, and
its public calls, each with its neighbours and a worst pair in one ``TaskRow``.  A later task adds rows to a page.

Four kinds of audit kill mutants: the **falsifier** on a statistic with its claimed sensitivity; the **grey box** on a
call and two neighbours; the **black box** on seeded outputs of the mechanism; the **ledger** check on the order of
spend and draw.  All but the black box compare exact numbers.  Each black box has the false alarm ``EACH``; there are at
most ``MOST_BLACK_BOXES``, so any right mechanism is flagged with probability at most ``ALARM``, by the union bound.

Power.  A black box counts 60,000 outputs a side.  By the normal approximation its bound on log(p/q) falls short by at
most z(√((1 − p)/p) + √((1 − q)/q))/√60,000, z = 6.6 for EACH over 8 events in two directions.  The weakest mutant has
0.8 of the noise of a claim of 1: true loss 1.25, p = ½, q = ½e^{−1.25} = 0.143, shortfall 0.093 of the 0.25 there is,
and the rest is more than 10 of the standard deviations √(1 + 2.45²)/√60,000 = 0.011.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpcausal.audit import Falsification, GreyBoxAudit, audit_samples, compare, falsify
from dpcausal.privacy.ledger import CallBudget, Ledger
from dpcausal.privacy.sensitivity import Norm, PrivacyUnit, Query, Relation, Sensitivity, Unit

ALARM, MOST_BLACK_BOXES = 1e-6, 64
EACH = ALARM / MOST_BLACK_BOXES
DRAWS = 66_000  # outputs a side, the first eleventh of which choose the events

Rows = Any
Draw = Callable[[Any, float, int, float], Sequence[Any] | npt.NDArray[Any]]
"""(exact answer, claimed ε, number of outputs, share) → independent outputs of the mechanism at a loss of ε/share."""


@dataclass(frozen=True)
class Case:
    """A mutant or a right control: its name, the kind of its audit, and the audit itself, true if it flags."""

    name: str
    kind: Literal["falsifier", "grey box", "black box", "ledger"]
    flagged: Callable[[], bool]


def remembered(statistic: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the statistic with its answers stored: climbs look at a fifth of all rows again."""
    answers: dict[tuple[Any, bytes], Any] = {}

    def answer(rows: Rows) -> Any:
        key = rows.shape, rows.tobytes()
        if key not in answers:
            answers[key] = statistic(rows)
        return answers[key]

    return answer


def by_falsifier(name: str, statistic: Callable[[Any], Any], bound: Any, **domain: Any) -> Case:
    """Return a case for a statistic whose claimed sensitivity is ``bound``, a number or a function of m."""
    domain = {"sizes": (6, 11), "evaluations": 3_000, **domain}
    # Most mutants fall to a tenth of the search; what it does not see is searched for whole.
    tenth = domain | {"evaluations": domain["evaluations"] // 10}

    def flagged() -> bool:
        kept = remembered(statistic)
        return any(falsify(kept, bound, **of).violated for of in (tenth, domain))

    return Case(name, "falsifier", flagged)


def by_black_box(name: str, outputs: Callable[[int], tuple[Any, Any]], *, delta: float = 0.0) -> Case:
    """Return a case, at a claim of (1, δ), for a function of the number of outputs that returns them on D and D′."""

    def flagged() -> bool:
        return audit_samples(*outputs(DRAWS), claimed=1.0, delta=delta, false_alarm=EACH).violated

    return Case(name, "black box", flagged)


@dataclass(frozen=True)
class MechanismRow:
    """A mechanism: what a query passes through.

    ``function`` is ``"module:function"``; ``claim`` is ``None`` for what is as published and has no proof; ``pair`` are
    answers of neighbours at which the loss is attained, at sensitivity 1; ``delta`` gives the δ at which ε is the exact
    loss there; ``draws`` is the most outputs a side of a black-box audit.
    """

    name: str
    function: str
    claim: str | None
    pair: tuple[Any, Any]
    draw: Draw
    mutants: tuple[str, ...]
    delta: Callable[[float], float] = lambda epsilon: 0.0
    draws: int = 110_000


@dataclass(frozen=True)
class SensitivityRow:
    """A claim about a statistic, for the falsifier.

    ``reached`` is the share of the bound that a search of these sizes is known to reach: above 0.95 it kills the mutant
    of 0.95 of the bound.  ``mutants`` break this claim: cases, or names of other cases.  ``domain`` holds the
    ``columns``, ``low``, ``high``, ``levels`` and ``starts`` of ``falsify``.
    """

    claim: str
    statistic: Callable[[Any], Any]
    sensitivity: Callable[[int], Sensitivity]
    sizes: tuple[int, ...]
    reached: float
    mutants: tuple[Case | str, ...]
    domain: dict[str, Any] = field(default_factory=dict)


def searched(row: SensitivityRow) -> list[Falsification]:
    """Return four searches of a row, from as many seeds: 8,000 neighbour pairs in all."""
    statistic, norm = remembered(row.statistic), row.sensitivity(max(row.sizes)).norm
    return [
        falsify(statistic, lambda m: row.sensitivity(m).bound, sizes=row.sizes, norm=norm, evaluations=2_000,
                seed=seed, **row.domain)
        for seed in range(3, 7)
    ]  # fmt: skip


@dataclass(frozen=True)
class TextRow:
    """A claim that no single statistic or mechanism stands for: it needs a test that is marked with its name."""

    claim: str
    kind: Literal["composition", "lemma"]
    why: str


@dataclass(frozen=True)
class Search:
    """Where the falsifier looks for neighbours through a public call: of so many rows, those at ``places``, or all."""

    ask: Callable[[Any], object]
    rows: int
    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    places: npt.NDArray[Any] | None = None


@dataclass(frozen=True)
class Neighbours:
    """The grey box of a call: on simulated neighbours of a seed, and where to search for worse ones."""

    pair: Callable[[int], tuple[Rows, Rows]]
    search: Search

    def __call__(self, seed: int, answers: Any) -> GreyBoxAudit:
        one, other = self.pair(seed)
        return compare(lambda: self.search.ask(one), lambda: self.search.ask(other), answers=answers)


@dataclass(frozen=True)
class TaskRow:
    """A public call, or one way of it: what it brings to the gate on neighbours, and its outputs on a worst pair.

    ``claims`` are those that its guarantee names.  ``draw`` takes a side, 0 or 1, ε and the number of outputs;
    ``attained`` is the least share of ε that the audit shows of 800 draws at ε = 3, 0 where the pair is not a worst
    one; ``delta`` is the δ that the loss of the outputs has beside ε.
    """

    name: str
    function: str
    claims: tuple[str, ...]
    compare: Neighbours
    draw: Callable[[int, float, int], Sequence[Any] | npt.NDArray[Any]]
    attained: float = 0.0
    delta: float = 0.0


def allotted(loss: Any, times: int = 1, unit: Unit = Unit.ROW, *, unproven: bool = False) -> CallBudget:
    """Return an allotment of ``times`` × loss from a ledger in memory, or of no privacy."""
    whole: Any = loss if loss.exact else type(loss)(*(amount * times for amount in loss.amounts.values()))
    column = "unit" if unit is Unit.DONOR else ""
    protected = PrivacyUnit(unit, column).arguments
    ledger = Ledger.without_privacy() if loss.exact else Ledger.in_memory(
        whole, **protected, accept_large_epsilon=True)  # fmt: skip
    return ledger.charge(whole, task="audit", unit=unit, unit_column=column, unproven=unproven)


def queried(answer: Any, norm: Norm, bound: float = 1, claim: str = "laplace", unit: Unit = Unit.ROW) -> Query:
    return Query(np.asarray(answer), Sensitivity(bound, norm, Relation.REPLACE_ONE, claim, unit), "audited")


def replaced(rows: Rows, place: int, new: Rows) -> Rows:
    neighbour = rows.copy()
    neighbour[place] = new
    return np.asarray(neighbour)
