"""What a method works with: the question, what is charged for it, the rows, and the call's budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from dpcausal.privacy.budget import CallBudget

QuestionType = TypeVar("QuestionType")


@dataclass(frozen=True, slots=True)
class Run(Generic[QuestionType]):
    """One run of a method, after the charge: the one object through which it sees private rows.

    ``loss`` is what was charged, ``NoPrivacy`` for the exact answer; ``rng`` draws public randomness, ``None`` for a
    method that uses none; ``data`` is *private*.  A run does not leave its process, as its budget does not.
    """

    question: QuestionType
    loss: Any
    budget: CallBudget
    rng: Any
    data: Any = field(repr=False)
