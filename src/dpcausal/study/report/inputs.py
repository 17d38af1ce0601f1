"""What a report is made of: the study's file, the state of its questions and its ledger."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcausal.data.schema import Schema
from dpcausal.privacy.ledger import Entry
from dpcausal.privacy.loss import RHO_UNITS, ZCDP, ApproxDP, Loss, PureDP, parse_loss
from dpcausal.result import Guarantee
from dpcausal.study.status import StudyPlan
from dpcausal.study.wording import Wording, answers_of, estimate_of

if TYPE_CHECKING:
    from dpcausal.study.file import QuestionPart, StudyFile


@dataclass(frozen=True)
class ReportInputs:
    """What a report is made of: the study's file and schema, the state of its questions, and its ledger."""

    path: Path
    file: StudyFile
    schema: Schema | None
    wording: Wording
    plan: StudyPlan
    entries: tuple[Entry, ...]
    renewals: tuple[tuple[str, str, Loss], ...] = ()

    @property
    def lifetime(self) -> str:
        """What was renewed, empty where nothing was."""
        if not self.renewals:
            return ""
        steps = "; ".join(f"to {to} on {at[:10]} ({reason})" for at, reason, to in self.renewals)
        return f"The budget {self.plan.budget} is for the whole life of the ledger; it was raised {steps}."

    @property
    def results(self) -> list[tuple[QuestionPart, Any]]:
        """All results with their questions, those of a tuple one by one."""
        return [(one.question, answer) for one in self.plan.questions for answer in answers_of(one.answer)]

    @property
    def coverages(self) -> list[float]:
        """The coverages of the intervals that are shown, each once."""
        estimates = [one for _, answer in self.results if (one := estimate_of(answer)) is not None]
        return sorted({one.coverage for one in estimates if one.interval} or {one.coverage for one in estimates})

    @property
    def randomised(self) -> bool:
        return self.wording.design == "randomised"

    @property
    def guarantees(self) -> list[Guarantee]:
        return [answer.guarantee for _, answer in self.results]

    @property
    def proofs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(proof for one in self.guarantees for proof in one.proofs))

    @property
    def person(self) -> str:
        """What one protected record is called."""
        return "control unit" if self.file.panel else "person" if self.file.person else "row"

    @property
    def spent(self) -> Loss | None:
        """What all spends together satisfy; ``None`` where nothing was spent."""
        if not self.entries:
            return None
        totals, budget = self.entries[-1].totals, self.plan.budget
        if len(self.entries) == 1:
            return parse_loss(self.entries[0].loss)
        if totals.sums_open:
            epsilon, delta = totals.epsilon / 10**9, totals.delta / 10**18
            return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
        return ZCDP(Fraction(totals.rho, RHO_UNITS)) if totals.zcdp_open and isinstance(budget, ZCDP) else budget

    @property
    def spent_text(self) -> str:
        if self.spent is None:
            return "nothing"
        return f"{self.spent} (δ = 0)" if isinstance(self.spent, PureDP) else str(self.spent)
