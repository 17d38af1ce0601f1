"""The forms of a study's questions by task, and what differs between questions of the same form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcausal.study.file import QuestionPart

QUESTIONS = {
    "ci_test": "Are {x} and {y} associated{given}",
    "direction": "Which is the cause, {x} or {y}",
    "discover": "Which of {columns} cause which",
    "effect effect": "What is the effect of {treatment} on {outcome}{groups}{adjust}",
    "effect difference": "What is the difference in {outcome} by {treatment}{groups}{adjust}",
    "synthetic_control": "What would have happened without the treatment",
    "synthetic_controls": "What would have happened without the treatments",
    "did": "How did {outcome} change after treatment began",
    "discontinuity": "By how much does {outcome} jump at {running} = {cutoff}",
}
SHORT = {
    "effect": "effect of {treatment} on {outcome}", "ci_test": "association, {x} – {y}",
    "direction": "direction, {x} – {y}", "discover": "causal graph", "did": "difference in differences",
}  # fmt: skip
"""What a question is, by its task, as a sentence and in a few words."""
STATEMENTS = {
    "ci_test": "We tested whether {x} and {y} are associated{given}",
    "direction": "We asked which of {x} and {y} is the cause",
    "discover": "We estimated a causal graph of {columns}",
    "effect effect": "We estimated the effect of {treatment} on {outcome}{groups}{adjust}{cluster}",
    "effect difference": "We estimated the difference in {outcome} by {treatment}{groups}{adjust}{cluster}",
    "synthetic_control": "We estimated the outcome without the treatment by synthetic control",
    "synthetic_controls": "We estimated the outcomes without the treatments by synthetic control",
    "did": "We estimated the change of {outcome} after treatment began",
    "discontinuity": "We estimated the jump of {outcome} at {running} = {cutoff}",
}
"""The same for a methods section."""
OPTIONAL = {
    "given": ", given {}", "adjust": ", adjusted for {}", "groups": ", overall and by {}", "cluster": ", errors by {}",
}  # fmt: skip


AFFIRMATIVE = {"yes", "y", "true", "1", "treated", "treatment", "exposed", "active"}
NEGATIVE = {"no", "n", "false", "0", "none", "control", "untreated", "unexposed", "placebo"}


def is_affirmative(treated: str, control: str) -> bool:
    """Return whether one level says that something is so, and the other that it is not.

    Examples
    --------
    >>> is_affirmative("yes", "no"), is_affirmative("no", "yes")
    (True, False)
    """
    return treated.casefold() in AFFIRMATIVE and control.casefold() in NEGATIVE


def order_of(levels: tuple[str, ...]) -> int:
    """Return 1 where what grows is plain, as of numbers and of no and yes, −1 of yes and no, 0 of other two levels.

    >>> order_of(("no", "yes")), order_of(("yes", "no")), order_of(("f", "m")), order_of(())
    (1, -1, 0, 1)
    """
    if len(levels) != 2 or is_affirmative(*levels[::-1]):
        return 1
    return -1 if is_affirmative(*levels) else 0


def difference_text(question: QuestionPart, similar: Iterable[QuestionPart]) -> str:
    """Return what a question states that others do not; its name where that is nothing, or what another states."""
    each = [_stated(one) for one in similar]
    own, *others = [_differing(one, each) for one in (_stated(question), *each)]
    return own if own and others.count(own) == 1 else question.name


def _stated(question: QuestionPart) -> dict[str, str]:
    price = {name: getattr(question, name) for name in ("epsilon", "delta", "rho")}
    stated = {**question.arguments, "method": question.method, **price}
    return {name: _value_text(value) for name, value in stated.items() if value is not None}


def _differing(stated: dict[str, str], each: list[dict[str, str]]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in stated.items()
                     if any(other.get(name) != value for other in each))  # fmt: skip


def _value_text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value_text(one)}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
