"""The first page of a report: the answer, the findings, what they rely on, privacy in brief."""

from __future__ import annotations

from typing import Any

from dpcausal.data.columns import exact_number
from dpcausal.data.schema import Bounded
from dpcausal.effects.result import Effect
from dpcausal.privacy.loss import ZCDP, Loss, zcdp_epsilon
from dpcausal.result import number_text
from dpcausal.study.report.figures import Figures
from dpcausal.study.report.inputs import Block, ReportInputs
from dpcausal.study.report.texts import ASSUMPTIONS, LIMITS, MISSING
from dpcausal.study.status import CANNOT, SPENT, QuestionStatus
from dpcausal.study.wording import (
    CLEAR,
    Estimate,
    Wording,
    arms_text,
    disagreements,
    estimate_of,
    unit_text,
)

MOST_RESTS, MOST_LIMITS = 5, 4


def first_page(inputs: ReportInputs, figures: Figures) -> list[Block]:
    file = inputs.file
    about = [file.disclosure.population, f"{inputs.n:,} {inputs.plan.records}"]
    blocks = [Block("title", file.title), Block("small", " · ".join(part for part in about if part)),
              Block("answer", *_answer_box(inputs))]  # fmt: skip
    rows: list[tuple[str, ...]] = [("Question", "Result", "95 % CI", "Strength of evidence")]
    for question, answer in inputs.results:
        rows += [tuple(row) for row in inputs.wording.findings(question, answer)]
    for one in inputs.standings:
        if one.answer is None:
            rows.append((inputs.wording.question(one.question), no_answer(one), "–", "–"))
    blocks += [Block("heading", "Findings"), Block("table", "Findings", rows=tuple(rows))]
    notes = dict.fromkeys(f"{one.question.name}: {one.state}: {one.reason}." for one in inputs.standings
                          if one.reason and one.answer is not None)  # fmt: skip
    blocks += [Block("small", note) for note in notes]
    blocks += _figures(inputs, figures)
    limits = Block("section", "What it does not show", lines=_limits(inputs))
    blocks.append(Block("section", "What this relies on", lines=_rests_on(inputs), beside=(limits,)))
    return [*blocks, Block("heading", "Privacy in brief"), Block("text", _privacy_in_brief(inputs))]


def no_answer(one: QuestionStatus) -> str:
    text = {SPENT: "paid for, but no result was saved", CANNOT: "cannot be answered"}.get(one.state, "not answered")
    return f"{text}: {one.reason}" if one.reason else text


def _answer_box(inputs: ReportInputs) -> tuple[str, tuple[str, ...]]:
    estimates = ((answer, estimate) for _, answer in inputs.results if (estimate := estimate_of(answer)) is not None)
    first = next(estimates, None)
    if first is None:
        return _without_effect(inputs)
    wording, (answer, estimate) = inputs.wording, first
    sentence = wording.effect_sentence(answer, estimate)
    if estimate.strength == CLEAR:
        arms = arms_text(answer, " to ")
        change = f", from {arms}" if arms else ""
        yes = file_asks(inputs.file.title) and wording.is_causal(answer)
        head = f"{'Yes. ' if yes else ''}{sentence.rstrip('.')}{change}."
    else:
        head = f"No conclusion. {_compatible(wording, answer, estimate)}"
    more = [_design_sentence(inputs, answer), _group_sentence(inputs, answer), *disagreements(inputs.results, wording)]
    return head, tuple(part for part in more if part)


def file_asks(title: str) -> bool:
    return title.rstrip().endswith("?")


def _without_effect(inputs: ReportInputs) -> tuple[str, tuple[str, ...]]:
    lines = [line for question, answer in inputs.results for line in inputs.wording.conclusions(question, answer)[:1]]
    if not lines:
        return "No question was answered yet.", ()
    return lines[0], (*lines[1:3], *disagreements(inputs.results, inputs.wording))


def _compatible(wording: Wording, answer: Any, estimate: Estimate) -> str:
    if estimate.interval is None:
        return f"There is no confidence interval: {estimate.reason}."
    low, high = estimate.interval
    down = f"a decrease of {wording.amount(answer, abs(low))}" if low < 0 else f"{wording.amount(answer, low)}"
    up = f"an increase of {wording.amount(answer, high)}"
    return f"The data and this privacy level are compatible with {down} and {up} in {wording.measured(answer)}."


def _design_sentence(inputs: ReportInputs, answer: Any) -> str:
    design, wording = inputs.file.design, inputs.wording
    if design is None:
        return "No design was declared, so the difference is an association and not necessarily an effect."
    if design.type == "observational":
        return "The comparison is observational: it is an effect only if all confounders are adjusted for."
    within = f" within {wording.listed(design.within)}" if design.within else ""
    return f"The treatment was assigned at random{within}, so the difference can be read as an effect."


def _group_sentence(inputs: ReportInputs, answer: Any) -> str:
    groups = [one for one in getattr(answer, "by_group", ()) if one.interval is not None]
    if len(groups) < 2:
        return ""
    wording = inputs.wording
    names = ", ".join(wording.group(one.group) for one in groups)
    low, high = max(one.interval[0] for one in groups), min(one.interval[1] for one in groups)
    if low > high:
        return f"The effect differs between the groups ({names})."
    same = all(one.interval[0] > 0 for one in groups) or all(one.interval[1] < 0 for one in groups)
    kind = "It is clear in each group" if same else "It is not clear in every group"
    return f"{kind} ({names}); the study is too small to show whether it differs between them."


def _figures(inputs: ReportInputs, figures: Figures) -> list[Block]:
    blocks, number = list[Block](), 0
    for question, answer in inputs.results:
        if estimate_of(answer) is None:
            continue
        number += 1
        text = " ".join(inputs.wording.conclusions(question, answer))
        names = {one.group: inputs.wording.group(one.group) for one in getattr(answer, "by_group", ())}
        options = {"names": names, "label": inputs.wording.axis(answer)} if isinstance(answer, Effect) else {}
        noise = getattr(answer, "noise_error", None)
        part = f" The thin line is the privacy noise alone (±{number_text(1.96 * noise)})." if noise else ""
        caption = (f"Figure {number}. {inputs.wording.question(question)} The intervals include sampling error and the "
                   f"noise added for privacy.{part}")  # fmt: skip
        blocks.append(Block("picture", caption, lines=(figures.of(answer, text, **options),)))
    return blocks


def _rests_on(inputs: ReportInputs) -> tuple[str, ...]:
    file, wording, lines = inputs.file, inputs.wording, list[str]()
    design = file.design
    randomised = design is not None and design.type == "randomised"
    if design is not None and randomised:
        within = f" within {wording.listed(design.within)}" if design.within else ""
        lines.append(f"Random assignment{within}.")
    tasks = {question.task for question, _ in inputs.results}
    for task in tasks:
        lines += [text for text in ASSUMPTIONS.get(task, ()) if not (randomised and "confound" in text)]
    unit = design.unit_of_assignment if design else None
    lines.append(f"Independent {inputs.plan.records}." + (
        f" Treatment was assigned by {unit}; if its members are alike, the intervals are too narrow." if unit else
        " If they are clustered (clinics, households), the intervals are too narrow."))  # fmt: skip
    outcomes = dict.fromkeys(str(question.arguments.get("outcome")) for question, _ in inputs.results)
    for name in outcomes:
        column = None if inputs.schema is None else inputs.schema.get(name)
        if isinstance(column, Bounded):
            lower, upper = exact_number(column.lower), exact_number(column.upper)
            lines.append(f"{wording.label(name)[:1].upper()}{wording.label(name)[1:]} counts from {lower} to {upper}: "
                         "values beyond count as the bound.")  # fmt: skip
    if not file.panel and file.missing in MISSING:
        lines.append(MISSING[file.missing])
    for _, answer in inputs.results:
        if isinstance(answer, Effect) and answer.e_value is not None and not randomised:
            lines.append(f"A confounder with risk ratios of {number_text(answer.e_value)} with both treatment and "
                         f"outcome could explain the estimate ({number_text(answer.e_value_limit or 1)} for the "
                         "interval).")  # fmt: skip
    return tuple(dict.fromkeys(lines))[:MOST_RESTS]


def _limits(inputs: ReportInputs) -> tuple[str, ...]:
    lines = list[str]()
    for _, answer in inputs.results:
        groups = [one for one in getattr(answer, "by_group", ()) if one.interval is not None]
        if len(groups) >= 2:
            half = max((one.interval[1] - one.interval[0]) / 2 for one in groups)
            amount = inputs.wording.amount(answer, 2**0.5 * half)
            lines.append(f"Whether the groups differ: a difference below about {amount} would go unnoticed.")
    for question, _ in inputs.results:
        lines += LIMITS.get(question.task, ())
    lines.append("Anything about people, places or times outside these data.")
    return tuple(dict.fromkeys(lines))[:MOST_LIMITS]


def _privacy_in_brief(inputs: ReportInputs) -> str:
    units = "; ".join(dict.fromkeys(unit_text(one.unit) for one in inputs.guarantees)) or f"one {inputs.person}"
    plan = inputs.plan
    text = (f"Protected: {units}. Total budget {plan.budget}; {plan.spent} was used, {plan.rest} is left. ")
    return text + (odds(inputs.spent) or "Nothing was spent yet.")


def odds(spent: Loss | None) -> str:
    """Return what a loss means for someone who suspects a fact at even odds."""
    if spent is None or spent.exact:
        return ""
    delta = 1e-6 if isinstance(spent, ZCDP) else getattr(spent, "delta", 0.0)
    epsilon = zcdp_epsilon(spent.rho, delta) if isinstance(spent, ZCDP) else spent.epsilon
    chance = 1 / (1 + 2.718281828459045**-epsilon)
    but = f" (except with probability {delta:.0e})" if delta else ""
    return ("Meaning: someone who suspects a fact about a participant at even odds can, from everything published "
            f"here, be right with probability at most {100 * min(chance, 0.999):.0f} %{but}; without it: "
            "50 %.")  # fmt: skip


