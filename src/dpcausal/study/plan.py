"""How the questions of a study stand, and what a run would do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpcausal.result import TextResult
from dpcausal.study.status import ANSWERED, BEYOND, CANNOT, EARLIER, TO_ASK, QuestionStatus


@dataclass(frozen=True)
class StudyPlan(TextResult):
    """How all questions of a study stand, and what is left of its budget.

    Attributes
    ----------
    title : str
    n : int
        Records, public.
    standings : tuple of Standing
        One a question, in order.
    remaining : str
        Of the budget, before what is still to ask.
    missing_ledger : str
        The ledger's name where there is none; empty where there is one.
    """

    title: str
    n: int
    standings: tuple[QuestionStatus, ...]
    remaining: str
    missing_ledger: str = ""

    @property
    def done(self) -> bool:
        """Whether every question is answered."""
        return all(one.state == ANSWERED for one in self.standings)

    def summary(self) -> str:
        """Return the plan in lines."""
        many = "1 question" if len(self.standings) == 1 else f"{len(self.standings)} questions"
        lines = [f"{self.title}: {many}, {self.n} records; left of the budget: {self.remaining}."]
        if self.missing_ledger:
            absent = f"  There is no ledger {self.missing_ledger!r}: a run with new_ledger=True makes it."
            lines.append(f"{absent} If it was moved, put it back.")
        lines += [] if self.standings else ["  Nothing is asked yet: add a [[question]] to the file."]
        for one in self.standings:
            lines.append(f"  {one.line()}")
            lines += [f"      expect: {one.forecast}"] if one.forecast else []
            lines += [f"      ! {caveat}" for caveat in one.caveats if one.state == TO_ASK]
        return "\n".join([*lines, *self._closing()])

    def _closing(self) -> list[str]:
        """Return what a run would do next."""
        asked = len({one.asked or one.question.name for one in self.standings if one.state == TO_ASK})
        earlier = ", ".join(one.question.name for one in self.standings if one.state == EARLIER)
        told = (
            f"From other data: {earlier}. refresh=NAME pays for an answer of these, as another name of the study does."
        )
        named = {state: ", ".join(one.question.name for one in self.standings if one.state == state)
                 for state in (CANNOT, BEYOND)}  # fmt: skip
        if any(named.values()):
            lines = [f"{state.capitalize()}: {names}." for state, names in named.items() if names]
            return [*lines, "A run asks nothing; partial=True asks the others."]
        lines = [told] if earlier else []
        return [*lines, f"A run asks {asked} and pays for {'it' if asked == 1 else 'them'}."] if asked else lines

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON's types."""
        return {"title": self.title, "n": self.n, "remaining": self.remaining, "missing_ledger": self.missing_ledger,
                "questions": [one.to_dict() for one in self.standings]}  # fmt: skip
