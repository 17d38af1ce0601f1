"""The box at the head of a report: a line for each result, conclusions first, and what limits them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpcausal.direction.result import Direction
from dpcausal.effects.did.result import GroupTimeEffects
from dpcausal.effects.result import normal_reach
from dpcausal.independence.result import Independence
from dpcausal.result import ci_text
from dpcausal.study.report.assumptions import CONFOUNDING, identification
from dpcausal.study.report.inputs import ReportInputs
from dpcausal.study.wording import Estimate, Wording, answers_of, disagreements, estimate_of

NO_DIFFERENCE = "No difference between them was established."
UP, DOWN, EITHER = (re.compile(rf"(?i)\b({stems})") for stems in (
    "increas|rais|improv|rise|more|higher|longer|gain", "decreas|reduc|lower|fewer|less|shorter|prevent|protect",
    "affect|chang|effect|influenc|matter|differ",
))  # fmt: skip
"""What a title asks for, by how its words begin."""
MOST_RESULTS = 6
"""So many results have a line in the box."""


class Summary(NamedTuple):
    """A result in the box: the number of its question, whether it is a conclusion, its sentence, and its limits."""

    number: int
    concludes: bool
    head: str
    limits: tuple[str, ...] = ()


def answer_box(inputs: ReportInputs) -> tuple[str, tuple[str, ...]]:
    """Return the first line of the box and the others."""
    several = len(inputs.results) > 1
    numbered = list(enumerate(inputs.plan.questions, start=1))
    parts = [_summary(inputs, number, one.question, answer, several)
             for number, one in numbered for answer in answers_of(one.answer)]  # fmt: skip
    if not parts:
        return "No question was answered yet.", ()
    parts.sort(key=lambda one: not one.concludes)
    heads = [f"Question {one.number}: {one.head}" if several else one.head for one in parts]
    if len(heads) > MOST_RESULTS:
        heads[MOST_RESULTS:] = [f"{len(heads) - MOST_RESULTS} more results: see Findings."]
    open_questions = [number for number, one in numbered if one.answer is None]
    none = [f"No result: {_numbered(open_questions).lower()}."] if open_questions else []
    return heads[0], (*heads[1:], *none, *_limits(parts), *disagreements(inputs.results, inputs.wording))


def _limits(parts: Sequence[Summary]) -> list[str]:
    numbers: dict[str, list[int]] = {}
    for one in sorted(parts):
        for text in one.limits:
            numbers.setdefault(text, []).append(one.number)
    limited = {one.number for one in parts if one.limits}
    return [text if set(of) == limited else f"{_numbered(of)}: {text}" for text, of in numbers.items()]


def _numbered(numbers: Iterable[int]) -> str:
    listed = [str(one) for one in dict.fromkeys(numbers)]
    return f"Question{'s' * (len(listed) > 1)} {', '.join(listed)}"


def _summary(inputs: ReportInputs, number: int, question: Any, answer: Any, several: bool) -> Summary:
    wording, estimate = inputs.wording, estimate_of(answer)
    if estimate is None:
        concludes = (isinstance(answer, Independence) and answer.decision == "dependent") or (
            isinstance(answer, Direction) and answer.cause is not None)  # fmt: skip
        return Summary(number, concludes, wording.conclusions(question, answer)[0])
    doubts = [str(one) for one in answer.warnings() if one not in answer.notes] if hasattr(answer, "notes") else []
    doubts = [f"{one[:1].upper()}{one[1:]}." for one in doubts if not one.startswith("no ")]
    noise = "" if estimate.excludes_zero else wording.noise_sentence(answer)
    outside, design = wording.outside_sentence(answer), _design_sentence(inputs, answer)
    limits = [*doubts, outside, noise, design, _group_sentence(inputs, answer)]
    target = f"{answer.target}: " if several and hasattr(answer, "target") else ""
    if estimate.excludes_zero:
        arms = wording.arms(answer)
        by_cluster = inputs.file.design is not None and inputs.file.design.unit_of_assignment is not None
        causal = wording.is_causal(answer) and not by_cluster
        yes = causal and not several and is_affirmed(inputs.file.title, estimate.size or 0.0)
        sentence = wording.effect_sentence(answer, estimate).rstrip(".")
        head = f"{'Yes. ' if yes else ''}{target}{sentence}{f': {arms}' if arms else ''}."
    else:
        about = f" on the {wording.short(question)}" if several and not target else ""
        head = f"{target}No conclusion{about}. {_compatible_range(wording, answer, estimate)}"
    return Summary(number, estimate.excludes_zero, head, tuple(filter(None, limits)))


def is_affirmed(title: str, estimate: float) -> bool:
    """Return whether a title asks for a change of the sign of an estimate, or for either."""
    up, down, either = (bool(one.search(title)) for one in (UP, DOWN, EITHER))
    return title.rstrip().endswith("?") and (estimate > 0 if up > down else estimate < 0 if down > up else either)


def _compatible_range(wording: Wording, answer: Any, estimate: Estimate) -> str:
    if estimate.interval is None:
        return f"There is no confidence interval: {estimate.reason}."
    low, high = (wording.amount(answer, abs(end), estimate.interval) for end in estimate.interval)
    return (f"The data and this privacy level are compatible with anything from a decrease of {low} to an increase of "
            f"{high} in {wording.measured(answer)}.")  # fmt: skip


def _design_sentence(inputs: ReportInputs, answer: Any) -> str:
    design = inputs.file.design
    if design is None:
        return "No design was declared, so the difference is an association and not necessarily an effect."
    clause = identification(answer)
    if clause != CONFOUNDING and not isinstance(answer, GroupTimeEffects):
        return f"The estimate is an effect only if {clause}."
    if not inputs.wording.randomises(getattr(answer, "treatment", None)):
        return f"The comparison is observational: it is an effect only if {clause}."
    within = f" within {inputs.wording.listed(design.within)}" if design.within else ""
    treatment = inputs.wording.label(getattr(answer, "treatment", None) or "the treatment")
    treatment = f"{treatment[:1].upper()}{treatment[1:]}"
    text = f"{treatment} was assigned at random{within}, so the difference estimates an effect."
    if getattr(answer, "cluster", ""):
        return f"{text} Standard errors are by {inputs.wording.label(answer.cluster)}."
    if design.unit_of_assignment is None:
        return text
    unit = design.unit_of_assignment
    return f"{text} Each {unit} was assigned as a whole; the intervals ignore this and may be too narrow."


def _group_sentence(inputs: ReportInputs, answer: Any) -> str:
    groups = [one for one in getattr(answer, "by_group", ()) if one.interval is not None]
    if len(groups) < 2:
        return ""
    if len(groups) > 2:
        listed = ", ".join(inputs.wording.group(one.group) for one in groups)
        differ = homogeneity_pvalue(groups, answer.coverage) < 1 - answer.coverage
        return f"The effect is not the same in all groups ({listed})." if differ else NO_DIFFERENCE
    less, more = sorted(groups, key=lambda one: abs(one.estimate))
    half = math.hypot(*((one.interval[1] - one.interval[0]) / 2 for one in groups))
    one_sign = less.estimate * more.estimate >= 0
    difference = abs(more.estimate) - abs(less.estimate) if one_sign else abs(more.estimate - less.estimate)
    size = inputs.wording.amount(answer, difference, more.interval)
    one, other = (inputs.wording.group(one.group) for one in (more, less))
    scale = 100 if getattr(answer, "event", None) is not None else 1
    ends = ci_text((scale * (difference - half), scale * (difference + half)), answer.coverage)
    if one_sign:
        what = "effect" if more.estimate >= 0 else "decrease"
        text = f"The estimated {what} was {size} larger for {one} than for {other} ({ends})."
    else:
        ways = "a decrease", "an increase"
        both = f"{ways[more.estimate > 0]} for {one} and {ways[less.estimate > 0]} for {other}"
        text = f"The estimated effect was {both}, {size} apart ({ends})."
    return text if difference > half else f"{text} {NO_DIFFERENCE}"


def homogeneity_pvalue(groups: Sequence[Any], coverage: float) -> float:
    """Return that of Cochran's Q: whether effects in groups, with intervals of this coverage, are all the same."""
    from scipy.special import chdtrc

    errors = [(one.interval[1] - one.interval[0]) / 2 / normal_reach(coverage) for one in groups]
    weights = np.array([max(error, 1e-300) ** -2.0 for error in errors])
    estimates = np.array([one.estimate for one in groups])
    mean = weights @ estimates / weights.sum()
    return float(chdtrc(len(groups) - 1, weights @ (estimates - mean) ** 2))
