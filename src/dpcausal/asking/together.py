"""Many questions of one table under one loss: one entry in the ledger, one allotment, one guarantee."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpcausal.asking.form import subject_of
from dpcausal.asking.kept import before_spend, keep
from dpcausal.asking.method import Answer, Settled
from dpcausal.asking.ready import Ready
from dpcausal.data.origin import Origin
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.division import Division
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.neighbours import Relation
from dpcausal.report import Guarantee


@dataclass(frozen=True)
class Together:
    """Settled questions, and the one allotment that was paid for them."""

    plans: Sequence[Settled[Any]]
    ledger: Ledger
    origin: Origin
    allotment: Allotment
    asked: str
    """What stands for exactly this call."""

    def guarantee(
        self, answers: Iterable[Any], claims: Sequence[str], note: str = "", but: tuple[str, ...] = ()
    ) -> Guarantee:
        """Return what all cost: the claims of each and those of many; a note, and each one's caveats once, but some."""
        question = self.plans[0].question
        own = dict.fromkeys(claim for plan in self.plans for claim in plan.claims)
        told = dict.fromkeys([*filter(None, [note]), *(words for one in answers for words in one.guarantee.caveats)])
        return Guarantee.of(
            self.allotment, proofs=(*own, *claims) if own else (),
            caveats=tuple(words for words in told if words not in (*self.allotment.caveats, *but)),
            public=question.table.told(question.public),
        )  # fmt: skip

    def kept(self, answer: Answer) -> Answer:
        """Return the answer, written beside its spend if it is to be kept."""
        return keep(self.ledger, self.origin, self.asked, self.allotment, answer)


def paid_together(
    task: str, plans: Sequence[Settled[Any]], division: Division, loss: Loss, detail: Mapping[str, Any], *,
    correction: str, again: bool,
) -> Together | Any:  # fmt: skip
    """Spend once for all plans; the kept answer instead, where exactly this call has one."""
    question, ledger = plans[0].question, plans[0].question.ledger
    asked, kept = before_spend(
        ledger, task, plans, division.spent, again, offered=loss, zcdp=division.zcdp, correction=correction
    )
    if kept is not None:
        return kept
    epsilons = [getattr(plan.spent, "epsilon", None) for plan in plans]
    public = {
        "alpha": question.alpha, "correction": correction, "divided_by": "rho" if division.by_rho else "epsilon",
        "epsilons": epsilons[:1] if len(set(epsilons)) == 1 else epsilons,
    }  # fmt: skip
    ready = Ready(plans)
    allotment = ledger.allot(
        division.spent, task=task, unit=question.unit, unit_column=question.unit_column,
        relation=Relation.REPLACE_ONE, zcdp=division.zcdp,
        detail={**detail, **public, **question.table.declared},
        unproven=any(plan.method.unproven for plan in plans), asked=asked, again=again, before=ready,
    )  # fmt: skip
    return Together(ready.plans, ledger, subject_of(question).origin, allotment, asked)
