"""A study's questions, assumptions and guarantees in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from dpcausal.claims import claims
from dpcausal.data.columns import exact_number
from dpcausal.direction.result import Direction
from dpcausal.discovery.result import Discovery
from dpcausal.effects.result import Effect
from dpcausal.independence.result import Independence
from dpcausal.privacy.loss import ZCDP, ApproxDP, PureDP
from dpcausal.privacy.sensitivity import Unit
from dpcausal.study.file import QuestionPart
from dpcausal.synthetic_control.result import SyntheticControl

ASSUMES = {
    "ci_test": (
        "The test rejects too often if its method does not capture how x and y depend on what is given.",
        "Not shown is not the same as independent: a weak link may hide under sampling and noise.",
    ),
    "direction": (
        "An arrow supposes that one of the two is a smooth function of the other plus independent noise.",
        "A common cause, selection or feedback can make either arrow fit; an arrow from data as they come is weak "
        "evidence.",
    ),
    "discover": (
        "The graph supposes that no common cause is left out and that independences in the data are not accidents.",
        "Undirected edges are those whose direction these data cannot tell.",
    ),
    "effect": (
        "The effect is causal only if every common cause of treatment and outcome is among what is adjusted for, and "
        "nothing that the treatment changes is.",
        "Each kind of person must have a chance of being treated and of not being treated.",
    ),
    "did": (
        "Without treatment, those treated later or never must have changed as the treated would have.",
        "Nobody may act on the treatment before it begins.",
    ),
    "discontinuity": (
        "Nothing else that moves the outcome may change at the cutoff, and nobody may choose a side of it.",
        "The jump speaks of those at the cutoff alone.",
    ),
    "synthetic_control": (
        "The donors must not be touched by the treatment, and must go on like the target would have.",
        "The target's own series is public and is not protected.",
    ),
}
"""What an answer supposes, by task; ``ci_tests`` as ``ci_test`` and so on."""


def question_in_words(question: QuestionPart) -> str:
    """Return a question as a sentence."""
    told = {name: _listed(value) for name, value in question.arguments.items()}
    inside = f", among those with {question.where}" if question.where else ""
    if question.task == "ci_test":
        given = f" once {told['given']} is known" if told.get("given") else ""
        return f"Is {told['x']} linked to {told['y']}{given}{inside}?"
    if question.task == "direction":
        first, second = (told.get(name) or told.get(other) for name, other in (("first", "x"), ("second", "y")))
        return f"Which is the cause, {first} or {second}{inside}?"
    if question.task == "discover":
        return f"Which of {told.get('columns') or 'the columns'} cause which{inside}?"
    if question.task == "effect":
        adjusted = f", {told['adjust']} being adjusted for" if told.get("adjust") else ""
        groups = f", and in each {told['groups']}" if told.get("groups") else ""
        return f"How much does {told['treatment']} change {told['outcome']}{adjusted}{groups}{inside}?"
    if question.task.startswith("synthetic_control"):
        return "What would have happened without the treatment?"
    if question.task == "did":
        over = f"by {told['cohort']} over {told['time']}"
        return f"How did {told['outcome']} change after treatment began, {over}{inside}?"
    if question.task == "discontinuity":
        through = f", where it moves {told['treatment']}" if told.get("treatment") else ""
        return f"By how much does {told['outcome']} jump at {told['running']} = {told['cutoff']}{through}{inside}?"
    if question.task == "cells":
        what = f", and how large is {told['values']} in each" if told.get("values") else ""
        return f"How many are there by {told.get('by') or 'nothing'}{what}{inside}?"
    if question.task == "moments":
        return f"How do {told['columns']} vary together{inside}?"
    if question.task == "ci_tests":
        pairs = question.arguments.get("hypotheses")
        listed = "; ".join(_pair(one) for one in pairs) if isinstance(pairs, list) else "each pair of columns"
        return f"Which are linked{inside}: {listed}?"
    if question.task == "direction_all":
        pairs = question.arguments.get("pairs")
        listed = "; ".join(_pair(one) for one in pairs) if isinstance(pairs, list) else "each pair of columns"
        return f"Which of two is the cause{inside}: {listed}?"
    listed = ", ".join(f"{name} {value}" for name, value in told.items())
    return f"{question.task.replace('_', ' ')}: {listed}{inside}"


def _pair(told: Any) -> str:
    x, y, *given = [_listed(part) for part in told] if isinstance(told, (list, tuple)) else ["?", "?"]
    return f"{x} and {y}" + (f" once {given[0]} is known" if given and given[0] else "")


def loss_in_words(loss: Any) -> str:
    """Return an amount as people write it.

    Examples
    --------
    >>> from dpcausal import ZCDP, ApproxDP
    >>> loss_in_words(ApproxDP(2.0, 1e-6)), loss_in_words(ZCDP(0.5))
    ('ε = 2, δ = 1e-06', 'ρ = 0.5 (zCDP)')
    """
    if isinstance(loss, ZCDP):
        return f"ρ = {exact_number(loss.rho)} (zCDP)"
    if isinstance(loss, (PureDP, ApproxDP)):
        delta = f", δ = {exact_number(loss.delta)}" if isinstance(loss, ApproxDP) else ""
        return f"ε = {exact_number(loss.epsilon)}{delta}"
    return str(loss)


def public_in_words(told: Iterable[str]) -> str:
    """Return what is public, each thing once.

    Examples
    --------
    >>> public_in_words(["all arguments", "column names and bounds", "column names, levels, bounds and cuts"])
    'column names, bounds, levels, cuts, all arguments'
    """
    columns, others = dict[str, None](), dict[str, None]()
    for words in told:
        if words.startswith("column names"):
            columns |= dict.fromkeys(re.split(r", | and ", words))
        else:
            others[words] = None
    return ", ".join([*columns, *others])


def assumptions(task: str) -> tuple[str, ...]:
    """Return what an answer of a task supposes."""
    return next((lines for name, lines in ASSUMES.items() if task.startswith(name)), ())


def uncertainty(answer: Any) -> str:
    """Return how much of an answer's uncertainty is sampling and how much is the noise, in words."""
    if isinstance(answer, Effect) and answer.standard_error is not None and answer.noise_error is not None:
        sampling = max(answer.standard_error**2 - answer.noise_error**2, 0.0) ** 0.5
        return f"Standard error {answer.standard_error:.3g}: sampling {sampling:.3g}, noise {answer.noise_error:.3g}."
    if isinstance(answer, Independence):
        return "The p-value counts the sampling and the noise." if answer.pvalue is not None else (
            "Only a decision was released: how near it was is not known.")  # fmt: skip
    if isinstance(answer, Direction):
        return "The counts are noisy; the verdict's level counts sampling of blocks and noise."
    if isinstance(answer, Discovery):
        if answer.support is None:
            return "The tests and scores know the noise; its share in each edge was not drawn again."
        shares = "; ".join(f"{' – '.join(sorted(edge))} {share:.0%}" for edge, share in answer.support.edges.items())
        return f"The support of each edge: {shares or 'none'}."
    if isinstance(answer, SyntheticControl):
        noise = "" if answer.path_noise is None else f"; noise in each period {answer.path_noise:.3g}"
        reach = f"no interval: {answer.interval_reason}" if answer.interval is None else (
            f"interval of the mean effect {answer.interval[0]:.3g} to {answer.interval[1]:.3g}")  # fmt: skip
        return f"{reach[0].upper()}{reach[1:]}{noise}."
    return ""


def unit_in_words(unit: Unit, relation: str) -> str:
    """Return whom a guarantee protects, in a sentence."""
    whom = {
        Unit.ROW: "one row", Unit.PERSON: "one person with all rows",
        Unit.LISTED_PERSON: "what one person's rows say; that the person is in the data is public",
        Unit.DONOR: "one donor with its whole series", Unit.TEST_ROW: "one row of the test half only",
        Unit.TRAINING_ROW: "one row of the training half only",
    }  # fmt: skip
    return f"Protected: {whom.get(unit, unit.value)}. Two data sets are neighbours under {relation}."


def sources(proofs: tuple[str, ...]) -> list[str]:
    """Return whom the proofs' pages name as their sources, each once; not those that are this library's own."""
    known, found = claims(), list[str]()
    for proof in proofs:
        page = known[proof].text if proof in known else ""
        text = re.search(r"\*\*Source\.?\*\*\.?\s*(.+?)(?:\n\n|\Z)", page, re.DOTALL)
        if text is not None:
            words = re.sub(r"^This library[.;,]?\s*", "", " ".join(text[1].replace("`", "").split()))
            if words and not words.startswith(("As ", "Own")):
                found.append(f"{proof}: {words[0].upper()}{words[1:]}")
    return list(dict.fromkeys(found))


def _listed(value: Any) -> str:
    return ", ".join(str(part) for part in value) if isinstance(value, (list, tuple)) else str(value)
