"""A study's questions, results and guarantees as sentences, in the study's own labels and units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcausal.data.schema import Bounded, Schema
from dpcausal.direction.result import Direction
from dpcausal.discovery.result import Discovery
from dpcausal.effects.cells.corner_counts import level_text
from dpcausal.effects.did.result import GroupTimeEffects
from dpcausal.effects.rdd.result import Discontinuity
from dpcausal.effects.result import STRATA, Effect
from dpcausal.independence.result import Independence
from dpcausal.privacy.sensitivity import Unit
from dpcausal.result import ci_text, decimals_of, interval_text, number_text, p_text, percent_text, signed_text
from dpcausal.study.phrases import OPTIONAL, QUESTIONS, SHORT, difference_text, is_affirmative, order_of
from dpcausal.study.tasks import ALSO
from dpcausal.synthetic_control.result import SyntheticControl

if TYPE_CHECKING:
    from dpcausal.study.file import QuestionPart, StudyFile

STABLE, LEAST_SAMPLING = 0.6, 0.3
"""Stability below which an edge is not part of a conclusion; part of an error by sampling that is stated."""
SIGNED = ("kendall", "neighbours", "strata-covariance", "gcm")
"""Tests whose statistic is above 0 where both columns grow together."""


class Finding(NamedTuple):
    """A row of the findings: what was asked, the result, its interval, and the evidence against no effect."""

    question: str
    result: str
    interval: str = "–"
    evidence: str = ""


class Estimate(NamedTuple):
    """An effect of any task: its size, its interval, and the reason where there is none."""

    size: float | None
    interval: tuple[float, float] | None
    coverage: float
    reason: str = ""

    @property
    def excludes_zero(self) -> bool:
        return self.size is not None and self.interval is not None and not self.interval[0] <= 0 <= self.interval[1]

    @property
    def evidence(self) -> str:
        if self.interval is None:
            return "No interval"
        return "Interval excludes 0" if self.excludes_zero else "Interval includes 0: inconclusive"


def estimate_of(answer: Any) -> Estimate | None:
    """Return the effect that an answer is about; ``None`` if it is about none."""
    if isinstance(answer, (Effect, Discontinuity, GroupTimeEffects)):
        return Estimate(answer.estimate, answer.interval, answer.coverage, answer.interval_reason)
    if not isinstance(answer, SyntheticControl):
        return None
    return Estimate(answer.att, answer.interval, answer.coverage, answer.interval_reason)


def coverage_text(coverage: float) -> str:
    return f"{100 * coverage:g} %"


def answers_of(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else () if answer is None else (answer,)


@dataclass(frozen=True)
class Wording:
    """Labels and units of columns, their levels and labels of these, the declared design and the questions of a study.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    design: str = ""
    assigned: str = ""
    within: tuple[str, ...] = ()
    declared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    questions: tuple[QuestionPart, ...] = ()

    @classmethod
    def of(cls, file: StudyFile, schema: Schema | None) -> Wording:
        levels = {name: {str(level): str(text) for level, text in one.items()}
                  for name, one in file.described("level_labels").items()}  # fmt: skip
        declared = {name: tuple(map(str, column.labels)) for name, column in (schema or {}).items()
                    if not isinstance(column, Bounded)}  # fmt: skip
        design = file.design
        how, assigned, within = ("", None, ()) if design is None else (design.type, design.treatment, design.within)
        return cls(file.described("label"), file.described("unit"), levels, how, assigned or "", within, declared,
                   tuple(file.question))  # fmt: skip

    def label(self, name: Any) -> str:
        return self.labels.get(str(name), str(name))

    def listed(self, names: Any) -> str:
        whole = names if isinstance(names, (list, tuple)) else () if names is None else (names,)
        parts = [self.label(name) for name in whole]
        return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))

    def group(self, text: str) -> str:
        """Return the name of a group that a result names as ``column = level``."""
        column, _, level = text.partition(" = ")
        return self.levels.get(column, {}).get(level) or f"{self.label(column)} {level}".strip()

    def level(self, column: str, level: object) -> str:
        """Return the label of a column's level, else the level as it is declared."""
        name = level_text(level, self.declared.get(column, ())) or str(level)
        return self.levels.get(column, {}).get(name, name)

    def share(self, outcome: str, event: object) -> str:
        return f"the share with {self.label(outcome)} = {self.level(outcome, event)}"

    def _outcome(self, arguments: Mapping[str, Any]) -> str:
        """Return an outcome; of two levels the share of the one that is counted, by default the last."""
        outcome, event = str(arguments.get("outcome")), arguments.get("event")
        levels = self.declared.get(outcome, ())
        event = levels[1] if event is None and len(levels) == 2 else event
        return self.label(outcome) if event is None else self.share(outcome, event)

    def _treatment(self, arguments: Mapping[str, Any]) -> str:
        treatment = str(arguments.get("treatment"))
        stated = {arm: self.level(treatment, arguments[arm]) for arm in ("treated", "control")
                  if arguments.get(arm) is not None}  # fmt: skip
        levels = [self.level(treatment, one) for one in self.declared.get(treatment, ())]
        if len(stated) == 1 and len(levels) == 2:
            (arm, one), = stated.items()
            stated["control" if arm == "treated" else "treated"] = levels[levels[0] == one]
        if len(stated) == 2:
            return f"{self.label(treatment)} ({stated['treated']} vs {stated['control']})"
        return self.label(treatment) + "".join(f" ({arm} {one})" for arm, one in stated.items())

    def question(self, question: QuestionPart, forms: Mapping[str, str] = QUESTIONS, end: str = "?") -> str:
        """Return a question as a sentence; in parentheses what differs from others in the same words."""
        text = self._text(question, forms)
        same = [one for one in self.questions if self._text(one, forms) == text]
        differs = f" ({difference_text(question, same)})" if len(same) > 1 else ""
        return f"{text}{differs}{end if self._form(question, forms) else ''}"

    def _form(self, question: QuestionPart, forms: Mapping[str, str]) -> str | None:
        kind = "effect" if self.randomises(question.arguments.get("treatment")) else "difference"
        return forms.get(f"{question.task} {kind}", forms.get(question.task))

    def _text(self, question: QuestionPart, forms: Mapping[str, str]) -> str:
        arguments, task = question.arguments, question.task
        inside = f", among those with {question.where}" if question.where else ""
        form = self._form(question, forms)
        if form is None:
            listed = ", ".join(f"{name} {self.listed(value)}" for name, value in arguments.items())
            return f"{task.replace('_', ' ')}: {listed}{inside}"
        named = {ALSO.get(name, name): value for name, value in arguments.items() if value}
        values = {"columns": "the columns", "cutoff": str(arguments.get("cutoff"))}
        values |= {name: self.listed(value) for name, value in named.items() if isinstance(value, (str, list, tuple))}
        values |= {name: text.format(values[name]) if name in values else "" for name, text in OPTIONAL.items()}
        values |= {"outcome": self._outcome(arguments), "treatment": self._treatment(arguments)}
        return f"{form.format_map(values)}{inside}"

    def short(self, question: QuestionPart) -> str:
        """Return what a question is about, in a few words."""
        arguments = question.arguments
        names = {ALSO.get(name, name): self.listed(value) for name, value in arguments.items()}
        names["treatment"] = self._treatment(arguments)
        if arguments.get("event") is not None:
            names["outcome"] += f" = {self.level(str(arguments['outcome']), arguments['event'])}"
        by = f", by {names['groups']}" if names.get("groups") else ""
        form = SHORT.get(question.task, question.task.replace("_", " "))
        return form.format_map(names) + (by if question.task == "effect" else "")

    def conclusions(self, question: QuestionPart, answer: Any) -> list[str]:
        """Return what a result says, in sentences, the first alone enough."""
        estimate = estimate_of(answer)
        if estimate is not None:
            partly, groups = self.outside_sentence(answer), getattr(answer, "clusters", None)
            by = [f"Inference by {self.label(answer.cluster)} ({groups:.0f} groups)."] if groups else []
            return [self.effect_sentence(answer, estimate), *by, *self._group_lines(answer),
                    *(f"warning: {one}" for one in (partly, getattr(answer, "bounds_note", "")) if one)]  # fmt: skip
        if isinstance(answer, Independence):
            return [self._association(answer)]
        if isinstance(answer, Direction):
            return [f"{answer.answer()}.", *([answer.reason] if answer.reason else [])]
        if isinstance(answer, Discovery):
            return [self.graph_sentence(answer)]
        if hasattr(answer, "headline"):
            return list(answer.headline())
        return [f"Noisy statistics of {', '.join(answer.names)}; they can be re-used at no cost."]

    def outside_sentence(self, answer: Any) -> str:
        """Return whom an effect is not about, and what to do; empty where of either kind at most 5 % are outside it."""
        if not isinstance(answer, Effect):
            return ""
        missing = f"{answer.missing_text[:1].upper()}{answer.missing_text[1:]}. " if answer.missing_text else ""
        if not answer.is_partly_supported:
            return missing.rstrip()
        inside, outside = percent_text(answer.share_supported), percent_text(1 - answer.share_supported)
        if answer.method not in STRATA:
            return (f"{missing}About {outside} of the complete records have an estimated probability of treatment "
                    "outside its limits. They count with the limit: where effects differ, the estimate gives them too "
                    "little weight.")  # fmt: skip
        return (f"{missing}The estimate is for about {inside} of the complete records, in strata where both arms are "
                f"large enough. About {outside} are not in it: fewer columns or coarser cuts in adjust would include "
                "more.")  # fmt: skip

    def noise_sentence(self, answer: Any) -> str:
        """Return how much narrower an interval would be without privacy; empty where noise is the smaller part."""
        error, noise, interval = (getattr(answer, name, None) for name in ("standard_error", "noise_error", "interval"))
        if not error or not noise or interval is None or noise < 0.7 * error:
            return ""
        half, ratio = (interval[1] - interval[0]) / 2, math.sqrt(max(1 - (noise / error) ** 2, 0.0))
        whole, rest = (self.amount(answer, one, (-one, one)) for one in (half, ratio * half))
        by_strata = getattr(answer, "method", "") in STRATA
        how = f"A larger ε {'or fewer strata make' if by_strata else 'makes'} it narrower."
        if ratio < LEAST_SAMPLING:
            return f"Almost all of the interval (±{whole}) is privacy noise. {how}"
        return f"Most of the interval (±{whole}) is privacy noise: without it, about ±{rest}. {how}"

    def amount(self, answer: Any, size: float, interval: tuple[float, float] | None = None) -> str:
        """Return a size with the outcome's unit; of a level's frequency in percentage points."""
        if getattr(answer, "event", None) is not None:
            decimals = decimals_of(interval and (100 * interval[0], 100 * interval[1]))
            return f"{number_text(100 * size, decimals)} percentage points"
        unit = self.units.get(getattr(answer, "outcome", ""), "")
        return f"{number_text(size, decimals_of(interval))} {unit}".rstrip()

    def measured(self, answer: Any) -> str:
        outcome, event = getattr(answer, "outcome", "the outcome"), getattr(answer, "event", None)
        return self.label(outcome) if event is None else self.share(outcome, event)

    def effect_sentence(self, answer: Any, estimate: Estimate) -> str:
        treatment = getattr(answer, "treatment", None)
        cause = self._comparison(answer) if treatment else "the treatment"
        cause, what = f"{cause[:1].upper()}{cause[1:]}", self.measured(answer)
        if estimate.size is None:
            return f"{cause} and {what}: no result ({estimate.reason})."
        is_share = getattr(answer, "event", None) is not None
        if estimate.interval is None:
            amount = self.amount(answer, estimate.size)
            return f"{cause} and {what}: {amount}, no confidence interval: {estimate.reason}."
        scale = 100 if is_share else 1
        interval = ci_text((scale * estimate.interval[0], scale * estimate.interval[1]), estimate.coverage)
        if not estimate.excludes_zero:
            of = "effect of {} on" if self.is_causal(answer) else "association of {} with"
            return f"No {of.format(cause[:1].lower() + cause[1:])} {what} was detected ({interval})."
        more, size = estimate.size > 0, self.amount(answer, abs(estimate.size), estimate.interval)
        if self.is_causal(answer):
            return f"{cause} {'increased' if more else 'decreased'} {what} by {size} ({interval})."
        kind = "higher" if more else "lower"
        if is_share:
            return f"{cause} is associated with a difference in {what}: it is {size} {kind} ({interval})."
        return f"{cause} is associated with {kind} {what}, by {size} ({interval})."

    def _comparison(self, answer: Any) -> str:
        label, levels = self.label(answer.treatment), self.levels.get(answer.treatment, {})
        treated, control = (getattr(answer, arm, None) for arm in ("treated", "control"))
        if treated is None or control is None or is_affirmative(str(treated), str(control)):
            return label
        return f"{label} = {levels.get(str(treated), treated)} (compared with {levels.get(str(control), control)})"

    def arms(self, answer: Any) -> str:
        """Return the mean outcomes of both arms, shares in per cent; empty where there are none."""
        if not isinstance(answer, Effect) or answer.mean_control is None or answer.mean_treated is None:
            return ""
        decimals, label = decimals_of(answer.interval), self.label(answer.treatment)
        means = answer.mean_treated, answer.mean_control
        treated, control = (percent_text(one) if answer.event is not None else number_text(one, decimals)
                            for one in means)  # fmt: skip
        sizes = [round(one or 0.0, decimals or 0) for one in (*means, answer.estimate)]
        differ = answer.event is None and abs(sizes[0] - sizes[1] - sizes[2]) > 0.5 * 10.0 ** -(decimals or 0)
        rounded = " (rounded separately)" if differ and decimals is not None else ""
        if is_affirmative(answer.treated, answer.control):
            other = self.levels.get(answer.treatment, {}).get(answer.control)
            return f"{treated} with {label}, {control} {f'with {other}' if other else 'without it'}{rounded}"
        named = self.levels.get(answer.treatment, {})
        of_treated, of_control = (named.get(one, one) for one in (answer.treated, answer.control))
        return f"{treated} if {label} is {of_treated}, {control} if it is {of_control}{rounded}"

    def is_causal(self, answer: Any) -> bool:
        quasi_experiment = isinstance(answer, (SyntheticControl, Discontinuity, GroupTimeEffects))
        observed = quasi_experiment and self.design == "observational"
        return observed or self.randomises(getattr(answer, "treatment", None))

    def randomises(self, treatment: Any) -> bool:
        return self.design == "randomised" and (not self.assigned or treatment in (None, self.assigned))

    def axis(self, answer: Effect) -> str:
        unit = self.units.get(answer.outcome, "")
        return f"effect of {self.label(answer.treatment)} on {self.measured(answer)}{f', {unit}' if unit else ''}"

    def _group_lines(self, answer: Any) -> list[str]:
        parts = [f"{self.group(one.group)} {signed_text(one.estimate, one.interval)} "
                 f"({interval_text(one.interval) or one.reason})"
                 for one in getattr(answer, "by_group", ()) if one.estimate is not None]  # fmt: skip
        return ["   ".join(parts)] if parts else []

    def _association(self, answer: Independence) -> str:
        given = f", given {self.listed(answer.given)}" if answer.given else ""
        pair = f"{self.listed(answer.x)} and {self.listed(answer.y)}"
        p = f" ({p_text(answer.pvalue)})" if answer.pvalue is not None else ""
        if answer.decision == "dependent":
            return f"{pair[0].upper()}{pair[1:]} are {self._sign_text(answer)}associated{given}{p}."
        return f"No association between {pair}{given} was detected{p}. This is not evidence of independence."

    def _sign_text(self, answer: Independence) -> str:
        if answer.method not in SIGNED or len(answer.x) != 1 or len(answer.y) != 1:
            return ""
        levels = [self.declared.get(one, ()) for one in (*answer.x, *answer.y)]
        if answer.method == "gcm" and max(map(len, levels)) > 2:
            return ""  # the largest of several absolute covariances
        sign = math.prod(map(order_of, levels)) * answer.statistic
        return "negatively " if sign < 0 else "positively " if sign > 0 else ""

    def graph_sentence(self, answer: Discovery) -> str:
        """Return the edges that are stable under fresh noise, the most stable first."""
        rows = [one for one in answer.edges() if one["support"] is None or one["support"] >= STABLE]
        rows.sort(key=lambda one: -(one["support"] or 0))
        edges = ", ".join(f"{self.label(one['from'])} {'→' if one['directed'] else '–'} {self.label(one['to'])}"
                          for one in rows)  # fmt: skip
        return f"Stable edges of the graph: {edges}." if edges else "No edge of the graph is stable under fresh noise."

    def findings(self, question: QuestionPart, answer: Any, with_coverage: bool = False) -> list[Finding]:
        """Return the rows of a result; ``with_coverage`` the percentage of each interval is in its cell."""
        title, estimate = self.question(question), estimate_of(answer)
        if estimate is not None:
            parts = [(title, estimate)]
            for one in getattr(answer, "by_group", ()):
                part = Estimate(one.estimate, one.interval, estimate.coverage, one.reason)
                parts.append((f"  {self.group(one.group)}", part))
            percent = f"{coverage_text(estimate.coverage)}: " if with_coverage else ""
            return [Finding(name, signed_text(one.size, one.interval),
                            f"{percent}{interval_text(one.interval)}" if one.interval else "none", one.evidence)
                    for name, one in parts]  # fmt: skip
        if isinstance(answer, Independence):
            signs = {"p": ": both rise together", "n": ": one falls as the other rises"}
            sign = signs.get(self._sign_text(answer)[:1], "")
            text = f"Yes{sign}" if answer.decision == "dependent" else "Not detected"
            return [Finding(title, text, "–", p_text(answer.pvalue))]
        if isinstance(answer, Direction):
            return [Finding(title, answer.answer(), "–", "Inconclusive" if answer.cause is None else "Weak by design")]
        if isinstance(answer, Discovery):
            return [Finding(title, self.graph_sentence(answer), "–", "Exploratory")]
        return [Finding(title, self.conclusions(question, answer)[0])]


def disagreements(results: Iterable[tuple[QuestionPart, Any]], wording: Wording) -> list[str]:
    """Return a sentence for each pair of columns that one analysis finds associated and a graph does not join."""
    results, sentences = list(results), []
    graphs = [answer for _, answer in results if isinstance(answer, Discovery)]
    for _, answer in results:
        estimate = estimate_of(answer)
        if isinstance(answer, Independence) and answer.decision == "dependent" and len(answer.x) == len(answer.y) == 1:
            pair, other = (answer.x[0], answer.y[0]), "the test"
        elif isinstance(answer, Effect) and estimate is not None and estimate.excludes_zero:
            pair, other = (answer.treatment, answer.outcome), "the effect estimate"
        else:
            continue
        sentences += [
            f"The graph analysis did not detect the association of {wording.listed(pair)}. It has less power; we rely "
            f"on {other}."
            for graph in graphs
            if set(pair) <= set(graph.graph.nodes) and frozenset(pair) not in graph.graph.skeleton
        ]
    return list(dict.fromkeys(sentences))


def unit_text(unit: Unit) -> str:
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
