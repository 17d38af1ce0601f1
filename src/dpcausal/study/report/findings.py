"""What a report is made of, and its first page: the answer, the findings, what they rely on, privacy in brief."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcausal.data.schema import Bounded, Schema
from dpcausal.effects.result import Effect, normal_reach
from dpcausal.privacy.ledger import Entry
from dpcausal.privacy.loss import RHO_UNITS, ZCDP, ApproxDP, Loss, PureDP, parse_loss, zcdp_epsilon
from dpcausal.result import Guarantee, ci_text, decimals_of, number_text
from dpcausal.study.report.figures import Figures
from dpcausal.study.report.html import Block
from dpcausal.study.status import CANNOT, SPENT, QuestionStatus, StudyPlan
from dpcausal.study.wording import Estimate, Wording, answers_of, coverage_text, disagreements, estimate_of, unit_text

if TYPE_CHECKING:
    from dpcausal.study.file import QuestionPart, StudyFile

MOST_ASSUMPTIONS, MOST_LIMITS = 5, 4
NO_DIFFERENCE = "No difference between them was established."
FILL = "[to be filled in: {}]"
DELTA = "δ is the probability allowed for a larger loss. "

CONFOUNDING = "No unmeasured confounding: every common cause of treatment and outcome is adjusted for."
ASSUMPTIONS: dict[str, tuple[str, ...]] = {
    "effect": (CONFOUNDING,),
    "direction": ("Additive independent noise, no common cause, no selection and no feedback.",),
    "discover": ("No unmeasured common causes, and no independence by accident (faithfulness).",),
    "did": ("Parallel trends: without treatment all cohorts would have changed alike.", "No anticipation."),
    "discontinuity": ("Nothing else changes at the cutoff, and nobody chooses their side of it.",),
    "synthetic_control": ("The treatment does not affect the control units, and the treated unit would have continued "
                          "like them.",),
}  # fmt: skip
LIMITS: dict[str, tuple[str, ...]] = {
    "effect": ("How the effect comes about.",),
    "ci_test": ("How large the association is.",),
    "direction": ("A proof of the direction: observational data give weak evidence.",),
    "discover": ("Weak associations, or those hidden by the noise. A missing edge is no evidence of independence.",),
    "did": ("Effects on persons without an outcome in every period.",),
    "discontinuity": ("Effects away from the cutoff.",),
    "synthetic_control": ("Effects on other units.",),
}
MISSING = {
    "drop": "Each analysis leaves out records that miss a value it needs; their exact number is confidential. Its "
            "result holds for everyone only if missing values are unrelated to treatment and outcome.",
    "level": "A missing category counts as a category of its own. Records that miss a number are left out.",
    "impute": "A missing value is set to the midpoint of its bounds, or to the first category.",
}


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


def first_page(inputs: ReportInputs, figures: Figures) -> list[Block]:
    file, plan = inputs.file, inputs.plan
    about = [file.disclosure.population, f"{plan.n:,} {plan.records}"]
    blocks = [Block("title", file.title), Block("small", " · ".join(part for part in about if part)),
              Block("answer", *_answer_box(inputs))]  # fmt: skip
    coverages = inputs.coverages
    interval = f"{coverage_text(coverages[0])} CI" if len(coverages) == 1 else "CI"
    rows: list[tuple[str, ...]] = [("Question", "Result", interval, "Evidence")]
    for question, answer in inputs.results:
        rows += [tuple(row) for row in inputs.wording.findings(question, answer, len(coverages) > 1)]
    rows += [(inputs.wording.question(one.question), no_answer(one), "–", "–")
             for one in plan.questions if one.answer is None]  # fmt: skip
    blocks += [Block("heading", "Findings"), Block("table", "Findings", rows=tuple(rows))]
    notes = dict.fromkeys(f"{one.question.name}: {one.state}: {one.reason}." for one in plan.questions
                          if one.reason and one.answer is not None)  # fmt: skip
    blocks += [*(Block("small", note) for note in notes), *_figure_blocks(inputs, figures)]
    limits = Block("section", "What it does not show", lines=_limit_lines(inputs))
    blocks.append(Block("section", "What this relies on", lines=_assumptions(inputs), right=(limits,)))
    return [*blocks, Block("heading", "Privacy in brief"), Block("text", _privacy_in_brief(inputs))]


def no_answer(one: QuestionStatus) -> str:
    text = {SPENT: "paid for, but no result was saved", CANNOT: "cannot be answered"}.get(one.state, "not answered")
    return f"{text}: {one.reason}" if one.reason else text


def _answer_box(inputs: ReportInputs) -> tuple[str, tuple[str, ...]]:
    wording = inputs.wording
    estimates = ((answer, estimate) for _, answer in inputs.results if (estimate := estimate_of(answer)) is not None)
    first = next(estimates, None)
    if first is None:
        lines = [line for question, answer in inputs.results for line in wording.conclusions(question, answer)[:1]]
        if not lines:
            return "No question was answered yet.", ()
        return lines[0], (*lines[1:3], *disagreements(inputs.results, wording))
    answer, estimate = first
    if estimate.excludes_zero:
        arms = wording.arms(answer)
        by_cluster = inputs.file.design is not None and inputs.file.design.unit_of_assignment is not None
        yes = inputs.file.title.rstrip().endswith("?") and wording.is_causal(answer) and not by_cluster
        sentence = wording.effect_sentence(answer, estimate).rstrip(".")
        head, noise = f"{'Yes. ' if yes else ''}{sentence}{f': {arms}' if arms else ''}.", ""
    else:
        head, noise = f"No conclusion. {_compatible_range(wording, answer, estimate)}", wording.noise_sentence(answer)
    more = [wording.outside_sentence(answer), noise, _design_sentence(inputs, answer), _group_sentence(inputs, answer),
            *disagreements(inputs.results, wording)]  # fmt: skip
    return head, tuple(part for part in more if part)


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
    if not inputs.wording.randomises(getattr(answer, "treatment", None)):
        return "The comparison is observational: it is an effect only if all confounders are adjusted for."
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


def _figure_blocks(inputs: ReportInputs, figures: Figures) -> list[Block]:
    blocks, effects = list[Block](), [pair for pair in inputs.results if estimate_of(pair[1]) is not None]
    for number, (question, answer) in enumerate(effects, start=1):
        text = " ".join(inputs.wording.conclusions(question, answer))
        names = {one.group: inputs.wording.group(one.group) for one in getattr(answer, "by_group", ())}
        options = {"names": names, "label": inputs.wording.axis(answer)} if isinstance(answer, Effect) else {}
        noise, decimals = getattr(answer, "noise_error", None), decimals_of(getattr(answer, "interval", None))
        reach = "" if noise is None else number_text(1.96 * noise, decimals)
        line = f" The thin line below the first interval is its privacy noise alone (95 %: ±{reach})." if noise else ""
        about = inputs.wording.question(question)
        caption = f"Figure {number}. {about} Confidence intervals (CI) cover sampling error and privacy noise.{line}"
        blocks.append(Block("picture", caption, lines=(figures.of(answer, text, **options),)))
    return blocks


def _assumptions(inputs: ReportInputs) -> tuple[str, ...]:
    file, wording, lines = inputs.file, inputs.wording, list[str]()
    design = file.design
    if design is not None and inputs.randomised:
        within = f" within {wording.listed(design.within)}" if design.within else ""
        lines.append(f"Random assignment{within}, and no refusal or drop-out that depends on the treatment.")
    for question, answer in inputs.results:
        is_random = wording.randomises(question.arguments.get("treatment"))
        lines += [text for text in ASSUMPTIONS.get(question.task, ()) if not (is_random and text == CONFOUNDING)]
        if isinstance(answer, Effect) and answer.e_value and answer.sensitivity() and not is_random:
            limit = number_text(answer.e_value_limit or 1)
            lines.append(f"No confounder with risk ratios of {number_text(answer.e_value)} with both treatment and "
                         f"outcome: it could explain the estimate ({limit}: the end of the interval).")  # fmt: skip
    unit = design.unit_of_assignment if design else None
    clusters = [answer.cluster for _, answer in inputs.results if getattr(answer, "cluster", "")]
    lines.append(f"Records that differ in {wording.label(clusters[0])} are independent."
                 if clusters else f"The {inputs.plan.records} are treated as independent: " + (
        f"those of one {unit} are not, so intervals may be too narrow and p-values too small." if unit else
        "if they are clustered (clinics, households), intervals are too narrow and p-values too small."))  # fmt: skip
    if file.weight is not None:
        most = f"A weight above {file.weight.largest:g} counts as {file.weight.largest:g}."
        lines.append(f"Rows are weighted by {wording.label(file.weight.column)}, for the population that the weights "
                     f"represent. {most}")  # fmt: skip
    for name in dict.fromkeys(str(question.arguments.get("outcome")) for question, _ in inputs.results):
        column = None if inputs.schema is None else inputs.schema.get(name)
        if isinstance(column, Bounded):
            lower, upper, label = column.written(column.lower), column.written(column.upper), wording.label(name)
            lines.append(f"{label[:1].upper()}{label[1:]} outside {lower} to {upper} count as the nearer bound.")
    if not file.panel and file.missing in MISSING:
        lines.append(MISSING[file.missing])
    return tuple(dict.fromkeys(lines))[:MOST_ASSUMPTIONS]


def _limit_lines(inputs: ReportInputs) -> tuple[str, ...]:
    lines = list[str]()
    for question, _ in inputs.results:
        lines += LIMITS.get(question.task, ())
        if question.task == "ci_test" and not inputs.randomised:
            given = inputs.wording.listed(question.arguments.get("given")) or "nothing"
            lines.append(f"What causes the association: the test adjusts for {given} only.")
    lines.append("Anything about people, places or times outside these data.")
    return tuple(dict.fromkeys(lines))[:MOST_LIMITS]


def _privacy_in_brief(inputs: ReportInputs) -> str:
    units = "; ".join(dict.fromkeys(unit_text(one.unit) for one in inputs.guarantees)) or f"one {inputs.person}"
    plan = inputs.plan
    symbol, *_ = plan.amounts
    text = (f"Protected: {units}. {symbol} limits what all results reveal about one {inputs.person}: smaller is safer. "
            f"{DELTA if isinstance(plan.budget, ApproxDP) else ''}The limit set is {plan.budget}; "
            f"{inputs.spent_text} was used. ")  # fmt: skip
    return text + (odds(inputs.spent) or "Nothing was spent yet.")


def odds(spent: Loss | None) -> str:
    """Return what a loss means for someone who suspects a fact at even odds."""
    if spent is None or spent.exact:
        return ""
    delta = 1e-6 if isinstance(spent, ZCDP) else getattr(spent, "delta", 0.0)
    epsilon = zcdp_epsilon(spent.rho, delta) if isinstance(spent, ZCDP) else spent.epsilon
    chance = min(1 / (1 + math.exp(-epsilon)), 0.999)
    but = f", except with probability {delta:.0e}" if delta else ""
    return ("Worst case: someone who must choose between two equally likely records of a participant is right 50 % of "
            f"the time without the results, at most {math.ceil(1000 * chance) / 10:.1f} % with them{but}.")  # fmt: skip
