"""A study's questions, results and guarantees as sentences, in the study's own labels and units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcausal.claims import claims
from dpcausal.direction.result import Direction
from dpcausal.discovery.result import Discovery
from dpcausal.effects.did.result import GroupTimeEffects
from dpcausal.effects.rdd.result import Discontinuity
from dpcausal.effects.result import Effect
from dpcausal.independence.result import Independence
from dpcausal.privacy.sensitivity import Unit
from dpcausal.result import ci_text, interval_text, number_text, p_text, signed_text
from dpcausal.synthetic_control.result import SyntheticControl

if TYPE_CHECKING:
    from dpcausal.study.file import QuestionPart, StudyFile

CLEAR, SUGGESTIVE, INCONCLUSIVE = "Clear", "Suggestive", "Inconclusive"
STABLE = 0.6
"""Stability below which an edge is not part of a conclusion."""


class Finding(NamedTuple):
    """A row of the findings: what was asked, the result, its interval, how strong the evidence is."""

    question: str
    result: str
    interval: str = "–"
    strength: str = ""


class Estimate(NamedTuple):
    """An effect of any task: its size, its interval, and the reason where there is none."""

    size: float | None
    interval: tuple[float, float] | None
    coverage: float
    reason: str = ""

    @property
    def strength(self) -> str:
        """How strong the evidence is that the effect is not 0."""
        if self.size is None or self.interval is None:
            return INCONCLUSIVE
        low, high = self.interval
        if low > 0 or high < 0:
            return CLEAR
        return SUGGESTIVE if abs(self.size) > 0.75 * (high - low) / 2 else INCONCLUSIVE


def estimate_of(answer: Any) -> Estimate | None:
    """Return the effect that an answer is about; ``None`` if it is about none."""
    if isinstance(answer, (Effect, Discontinuity)):
        return Estimate(answer.estimate, answer.interval, answer.coverage, answer.interval_reason)
    if isinstance(answer, GroupTimeEffects):
        att = answer.att
        if att is None:
            return Estimate(None, None, answer.coverage, "no result")
        return Estimate(att.estimate, att.interval, answer.coverage, "the released numbers leave it open")
    if isinstance(answer, SyntheticControl):
        return Estimate(answer.att, answer.interval, answer.coverage, answer.interval_reason)
    return None


@dataclass(frozen=True)
class Wording:
    """Labels and units of columns, labels of levels, and the declared design of a study."""

    labels: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    design: str = ""
    within: tuple[str, ...] = ()

    @classmethod
    def of(cls, file: StudyFile) -> Wording:
        """Return how a study names its columns, and what its design lets it say."""
        levels = {name: {str(level): str(text) for level, text in one.items()}
                  for name, one in file.described("level_labels").items()}  # fmt: skip
        design = file.design
        return cls(file.described("label"), file.described("unit"), levels, design.type if design else "",
                   design.within if design else ())  # fmt: skip

    def label(self, name: Any) -> str:
        """Return how a column is called in a sentence."""
        return self.labels.get(str(name), str(name))

    def listed(self, names: Any) -> str:
        parts = [self.label(name) for name in ([names] if isinstance(names, str) else names or ())]
        return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))

    def group(self, text: str) -> str:
        """Return the name of a group that a result names as ``column = level``."""
        column, _, level = text.partition(" = ")
        return self.levels.get(column, {}).get(level) or f"{self.label(column)} {level}".strip()

    def question(self, question: QuestionPart) -> str:
        """Return a question as a sentence."""
        arguments, task = question.arguments, question.task
        inside = f", among those with {question.where}" if question.where else ""
        if task == "ci_test":
            given = f", given {self.listed(arguments['given'])}" if arguments.get("given") else ""
            return f"Are {self.listed(arguments['x'])} and {self.listed(arguments['y'])} associated{given}{inside}?"
        if task == "direction":
            first, second = (arguments.get(a) or arguments.get(b) for a, b in (("first", "x"), ("second", "y")))
            return f"Which is the cause, {self.label(first)} or {self.label(second)}{inside}?"
        if task == "discover":
            return f"Which of {self.listed(arguments.get('columns')) or 'the columns'} cause which{inside}?"
        if task == "effect":
            adjusted = f", adjusted for {self.listed(arguments['adjust'])}" if arguments.get("adjust") else ""
            groups = f", and by {self.label(arguments['groups'])}" if arguments.get("groups") else ""
            what, whose = self.label(arguments["treatment"]), self.label(arguments["outcome"])
            return f"How large is the effect of {what} on {whose}{adjusted}{groups}{inside}?"
        if task.startswith("synthetic_control"):
            return "What would have happened without the treatment?"
        if task == "did":
            return f"How did {self.label(arguments['outcome'])} change after treatment began{inside}?"
        if task == "discontinuity":
            where = f"{self.label(arguments['running'])} = {arguments['cutoff']}"
            return f"By how much does {self.label(arguments['outcome'])} jump at {where}{inside}?"
        listed = ", ".join(f"{name} {_listed(value)}" for name, value in arguments.items())
        return f"{task.replace('_', ' ')}: {listed}{inside}"

    def short(self, question: QuestionPart) -> str:
        """Return what a question is about, in a few words."""
        arguments, task = question.arguments, question.task
        if task == "effect":
            by = f", by {arguments['groups']}" if arguments.get("groups") else ""
            return f"effect of {arguments['treatment']} on {arguments['outcome']}{by}"
        if task in ("ci_test", "direction"):
            x, y = (_listed(arguments.get(a) or arguments.get(b)) for a, b in (("x", "first"), ("y", "second")))
            return f"association, {x} – {y}" if task == "ci_test" else f"direction, {x} – {y}"
        return {"discover": "causal graph", "did": "difference in differences"}.get(task, task.replace("_", " "))

    def conclusions(self, question: QuestionPart, answer: Any) -> list[str]:
        """Return what a result says, in sentences, the first alone enough."""
        estimate = estimate_of(answer)
        if estimate is not None:
            return [self.effect_sentence(answer, estimate), *self._group_lines(answer)]
        if isinstance(answer, Independence):
            return [self._association(answer)]
        if isinstance(answer, Direction):
            return [f"{answer.answer()}.", *([answer.reason] if answer.reason else [])]
        if isinstance(answer, Discovery):
            return [self.graph_sentence(answer)]
        if hasattr(answer, "headline"):
            return list(answer.headline())
        return [f"Noisy statistics of {', '.join(answer.names)}; they can be re-used at no cost."]

    def amount(self, answer: Any, size: float) -> str:
        """Return a size with the outcome's unit; of a level's frequency in percentage points."""
        if getattr(answer, "event", None) is not None:
            return f"{number_text(100 * size)} percentage points"
        unit = self.units.get(getattr(answer, "outcome", ""), "")
        return f"{number_text(size)} {unit}".rstrip()

    def measured(self, answer: Any) -> str:
        """Return what an effect is on."""
        outcome = self.label(getattr(answer, "outcome", "the outcome"))
        event = getattr(answer, "event", None)
        return outcome if event is None else f"the share with {outcome} = {event}"

    def effect_sentence(self, answer: Any, estimate: Estimate) -> str:
        """Return an effect as a sentence: without a declared design it is an association."""
        treatment = getattr(answer, "treatment", None)
        cause = self.label(treatment) if treatment else "the treatment"
        cause, what = f"{cause[:1].upper()}{cause[1:]}", self.measured(answer)
        if estimate.size is None:
            return f"{cause} and {what}: no result ({estimate.reason})."
        size, scale = abs(estimate.size), 100 if getattr(answer, "event", None) is not None else 1
        if estimate.interval is None:
            amount = self.amount(answer, estimate.size)
            return f"{cause} and {what}: {amount}, no confidence interval: {estimate.reason}."
        interval = ci_text((scale * estimate.interval[0], scale * estimate.interval[1]), estimate.coverage)
        if estimate.strength != CLEAR:
            none = "effect" if self.is_causal(answer) else "association"
            about = f"of {cause.lower()} on" if self.is_causal(answer) else f"of {cause.lower()} with"
            return f"No clear {none} {about} {what} ({interval})."
        more = estimate.size > 0
        if self.is_causal(answer):
            return f"{cause} {'increased' if more else 'decreased'} {what} by {self.amount(answer, size)} ({interval})."
        kind = "higher" if more else "lower"
        share = getattr(answer, "event", None) is not None
        what = f"a {kind} {what.removeprefix('the ')}" if share else f"{kind} {what}"
        return f"{cause} is associated with {what}, by {self.amount(answer, size)} ({interval})."

    def is_causal(self, answer: Any) -> bool:
        """Whether the declared design lets an effect be called one."""
        quasi_experiment = isinstance(answer, (SyntheticControl, Discontinuity, GroupTimeEffects))
        return self.design == "randomised" or (quasi_experiment and self.design == "observational")

    def axis(self, answer: Effect) -> str:
        """Return the label of an axis of effects."""
        unit = self.units.get(answer.outcome, "")
        return f"effect of {self.label(answer.treatment)} on {self.measured(answer)}{f', {unit}' if unit else ''}"

    def _group_lines(self, answer: Any) -> list[str]:
        groups = getattr(answer, "by_group", ())
        parts = [f"{self.group(one.group)} {signed_text(one.estimate)} ({interval_text(one.interval) or one.reason})"
                 for one in groups if one.estimate is not None]  # fmt: skip
        return ["   ".join(parts)] if parts else []

    def _association(self, answer: Independence) -> str:
        given = f", given {self.listed(answer.given)}" if answer.given else ""
        pair = f"{self.listed(answer.x)} and {self.listed(answer.y)}"
        p = f" ({p_text(answer.pvalue)})" if answer.pvalue is not None else ""
        if answer.decision == "dependent":
            signed_method = answer.method in SIGNED and len(answer.x) == len(answer.y) == 1
            kind = ("negatively " if answer.statistic < 0 else "positively ") if signed_method else ""
            return f"{pair[0].upper()}{pair[1:]} are {kind}associated{given}{p}."
        return f"No association between {pair}{given} was detected{p}. This is not evidence of independence."

    def graph_sentence(self, answer: Discovery) -> str:
        """Return the edges that are stable under fresh noise, the most stable first."""
        rows = [one for one in answer.edges() if one["support"] is None or one["support"] >= STABLE]
        rows.sort(key=lambda one: -(one["support"] or 0))
        edges = ", ".join(f"{self.label(one['from'])} {'→' if one['directed'] else '–'} {self.label(one['to'])}"
                          for one in rows)  # fmt: skip
        return f"Stable edges of the graph: {edges}." if edges else "No edge of the graph is stable under fresh noise."

    def findings(self, question: QuestionPart, answer: Any) -> list[Finding]:
        """Return the rows of the findings table for one result."""
        title, estimate = self.question(question), estimate_of(answer)
        basis = {"randomised": ". Randomised comparison", "observational": ". Observational comparison"}
        if estimate is not None:
            size = "no result" if estimate.size is None else signed_text(estimate.size)
            arms = arms_text(answer, " → ")
            size += f" ({arms})" if arms and estimate.size is not None else ""
            strength = estimate.strength + basis.get(self.design, ". No design declared")
            rows = [Finding(title, size, interval_text(estimate.interval) or "none", strength)]
            for one in getattr(answer, "by_group", ()):
                part = Estimate(one.estimate, one.interval, estimate.coverage, one.reason)
                size = "no result" if one.estimate is None else signed_text(one.estimate)
                interval = interval_text(one.interval) or "none"
                rows.append(Finding(f"  {self.group(one.group)}", size, interval, part.strength))
            return rows
        if isinstance(answer, Independence):
            is_detected = answer.decision == "dependent"
            p = answer.pvalue
            close = p is not None and p <= 2 * answer.alpha
            strength = CLEAR + ". Size not estimated" if is_detected else SUGGESTIVE if close else INCONCLUSIVE
            answer_text = "Yes" if is_detected else "Not detected"
            return [Finding(title, f"{answer_text} ({p_text(p)})" if p is not None else answer_text, "–", strength)]
        if isinstance(answer, Direction):
            return [Finding(title, answer.answer(), "–", INCONCLUSIVE if answer.cause is None else "Weak by design")]
        if isinstance(answer, Discovery):
            return [Finding(title, self.graph_sentence(answer), "–", "Exploratory")]
        return [Finding(title, self.conclusions(question, answer)[0])]


def arms_text(answer: Any, between: str) -> str:
    """Return the mean outcomes of control and treated; empty where there are none."""
    if not isinstance(answer, Effect) or answer.mean_control is None or answer.mean_treated is None:
        return ""
    return f"{number_text(answer.mean_control)}{between}{number_text(answer.mean_treated)}"


SIGNED = ("kendall", "neighbours", "strata-covariance", "gcm")
"""Tests whose statistic is above 0 where both columns grow together."""


def disagreements(results: Iterable[tuple[QuestionPart, Any]], wording: Wording) -> list[str]:
    """Return a sentence for each pair of columns that one analysis finds associated and a graph does not join."""
    results, sentences = list(results), []
    graphs = [answer for _, answer in results if isinstance(answer, Discovery)]
    for _, answer in results:
        estimate = estimate_of(answer)
        if isinstance(answer, Independence) and answer.decision == "dependent" and len(answer.x) == len(answer.y) == 1:
            pair, other = (answer.x[0], answer.y[0]), "the test"
        elif isinstance(answer, Effect) and estimate is not None and estimate.strength == CLEAR:
            pair, other = (answer.treatment, answer.outcome), "the effect estimate"
        else:
            continue
        for graph in graphs:
            if set(pair) <= set(graph.graph.nodes) and frozenset(pair) not in graph.graph.skeleton:
                sentences.append(
                    f"The graph analysis did not detect the association of {wording.label(pair[0])} and "
                    f"{wording.label(pair[1])}. It has less power; we rely on {other}."
                )
    return list(dict.fromkeys(sentences))


def unit_text(unit: Unit) -> str:
    """Return whom a guarantee protects."""
    return {
        Unit.ROW: "one row", Unit.PERSON: "one person with all of their rows",
        Unit.LISTED_PERSON: "what one person's rows say; that the person is in the data is public",
        Unit.DONOR: "one control unit with its whole series; the treated unit is not protected",
        Unit.TEST_ROW: "one row of the test half only", Unit.TRAINING_ROW: "one row of the training half only",
    }.get(unit, unit.value)  # fmt: skip


def public_text(items: Iterable[str]) -> str:
    """Return what is public, each thing once.

    Examples
    --------
    >>> public_text(["all arguments", "column names and bounds", "column names, levels, bounds and cuts"])
    'column names, bounds, levels, cuts, all arguments'
    """
    columns, others = dict[str, None](), dict[str, None]()
    for text in items:
        if text.startswith("column names"):
            columns |= dict.fromkeys(part for one in text.split(" and ") for part in one.split(", "))
        else:
            others[text] = None
    return ", ".join([*columns, *others])


def sources(proofs: tuple[str, ...]) -> list[str]:
    """Return the references that the proofs' pages name, each once; not those that are this library's own."""
    known, listed = claims(), list[str]()
    for proof in proofs:
        page = known[proof].text if proof in known else ""
        match = re.search(r"\*\*Source\.?\*\*\.?\s*(.+?)(?:\n\n|\Z)", page, re.DOTALL)
        if match is not None:
            text = " ".join(match[1].replace("`", "").split()).removeprefix("This library").lstrip(".;, ")
            if text and not text.startswith(("As ", "Own")):
                listed.append(f"{proof}: {text[0].upper()}{text[1:]}")
    return list(dict.fromkeys(listed))


def _listed(value: Any) -> str:
    return ", ".join(str(part) for part in value) if isinstance(value, (list, tuple)) else str(value)
