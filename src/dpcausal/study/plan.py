"""The state of all questions of a study: what was answered, what a run would spend, what to expect of it."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from dpcausal.privacy.loss import ZCDP, Loss
from dpcausal.result import TextResult, short_amount, short_loss
from dpcausal.study.status import ANSWERED, BEYOND, CANNOT, EARLIER, TO_ASK, QuestionStatus

WIDTH = 88


@dataclass(frozen=True)
class StudyPlan(TextResult):
    """The state of all questions of a study, and what is left of its budget.

    Attributes
    ----------
    title : str
    n : int
        Records, public.
    standings : tuple of QuestionStatus
        One per question, in order.
    budget : Loss
    left : Remaining
        Of the budget, before the questions that are still to be answered.
    records : str
        What the records are: people, rows or units.
    missing_ledger : str
        Name of the ledger if it does not exist; empty if it does.
    head : str
        Fingerprint of the ledger; empty where there is none.
    """

    title: str
    n: int
    standings: tuple[QuestionStatus, ...]
    budget: Loss
    left: Any
    records: str = "rows"
    missing_ledger: str = ""
    head: str = ""

    @property
    def done(self) -> bool:
        """Whether every question is answered."""
        return all(one.state == ANSWERED for one in self.standings)

    @property
    def remaining(self) -> str:
        """What is left of the budget, as text."""
        return str(self.left)

    @property
    def amounts(self) -> tuple[str, float, float]:
        """The symbol of what is counted, the budget, and what is left of it."""
        if isinstance(self.budget, ZCDP):
            return "ρ", self.budget.rho, self.left.rho or 0.0
        return "ε", getattr(self.budget, "epsilon", 0.0), self.left.epsilon or 0.0

    @property
    def total(self) -> str:
        """The budget, as ``2.00``."""
        return short_amount(self.amounts[1])

    @property
    def rest(self) -> str:
        """What is left of it, as ``0.25``."""
        return short_amount(self.amounts[2])

    @property
    def spent(self) -> str:
        """What was spent of it, as ``ε = 1.75``."""
        symbol, total, left = self.amounts
        return f"{symbol} = {short_amount(round(total - left, 12))}"

    def summary(self, *, verbose: bool = False, path: str = "study.toml") -> str:
        """Return the plan as text; ``verbose`` adds δ, ρ and all that each method assumes."""
        left = self.remaining if verbose else self.rest
        lines = [self.title, f"{self.n:,} {self.records}. Budget {short_loss(self.budget)}: {left} left. Nothing is "
                             "spent by this command."]  # fmt: skip
        if self.missing_ledger:
            lines.append(f"The ledger {self.missing_ledger} does not exist yet.")
        if not self.standings:
            return "\n".join([*lines, "", "No question yet: add a [[question]] to the file."])
        lines += ["", *self._table(verbose), "", *self._closing(), *self._warnings(verbose)]
        if not verbose and any(one.caveats for one in self.standings):
            lines.append(f"Assumptions of each method: dpcausal plan {path} --verbose")
        new = " --new-ledger" if self.missing_ledger else ""
        return "\n".join([*lines, f"Next: dpcausal {'report' if self.done else 'run'} {path}{new}"])

    def _table(self, verbose: bool) -> list[str]:
        name = max(8, *(len(one.question.name) for one in self.standings))
        kind = max(4, *(len(one.about) for one in self.standings))
        kind = min(kind, 36)
        lines = [f"{'question':{name}}  {'type':{kind}}  {'cost':>8}  expected result, if assumptions hold"]
        room = max(28, WIDTH - name - kind - 14)
        for one in self.standings:
            cost = "" if one.cost is None else str(one.cost) if verbose else short_loss(one.cost)
            expected = [part for text in one.expected for part in wrap(text, room)] or [""]
            about = wrap(one.about, kind) or [""]
            for place in range(max(len(expected), len(about))):
                detail = about[place] if place < len(about) else "", expected[place] if place < len(expected) else ""
                first = (one.question.name, cost) if place == 0 else ("", "")
                lines.append(f"{first[0]:{name}}  {detail[0]:{kind}}  {first[1]:>8}  {detail[1]}".rstrip())
        return lines

    def _closing(self) -> list[str]:
        questions = len({one.asked or one.question.name for one in self.standings if one.state == TO_ASK})
        named = {state: ", ".join(one.question.name for one in self.standings if one.state == state)
                 for state in (CANNOT, BEYOND, EARLIER)}  # fmt: skip
        lines = [f"{state[0].upper()}{state[1:]}: {names}." for state, names in named.items() if names]
        if named[CANNOT] or named[BEYOND]:
            return [*lines, "A run stops here; with --partial it answers the other questions."]
        if named[EARLIER]:
            lines.append("--refresh NAME answers a question from the data as they are now, at a new cost.")
        if questions:
            costs = {one.asked or one.question.name: one.cost for one in self.standings if one.state == TO_ASK}
            amounts = [getattr(cost, "epsilon", None) for cost in costs.values()]
            whole = sum(amount or 0.0 for amount in amounts)
            total = "" if None in amounts else f" for ε = {short_amount(round(whole, 12))} in all"
            lines.append(f"A run answers {questions} question{'s' * (questions != 1)}{total}, within the budget.")
        elif self.done:
            lines.append("All questions are answered. Repeating them is free.")
        return lines

    def _warnings(self, verbose: bool) -> list[str]:
        return [f"warning: {one.question.name}: {caveat}"
                for one in self.standings if one.state == TO_ASK and verbose
                for caveat in one.caveats]  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON's types."""
        return {"title": self.title, "n": self.n, "remaining": self.remaining, "missing_ledger": self.missing_ledger,
                "questions": [one.to_dict() for one in self.standings]}  # fmt: skip
