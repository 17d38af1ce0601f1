"""The first page of a report: the answer, the findings, what they rely on, privacy in brief."""

from __future__ import annotations

import math

from dpcausal.effects.did.result import GroupTimeEffects
from dpcausal.effects.result import Effect
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, zcdp_epsilon
from dpcausal.result import decimals_of, number_text
from dpcausal.study.report.answer_box import answer_box
from dpcausal.study.report.assumptions import assumption_lines, limit_lines
from dpcausal.study.report.figures import Figures
from dpcausal.study.report.html import Block
from dpcausal.study.report.inputs import ReportInputs
from dpcausal.study.status import CANNOT, SPENT, QuestionStatus
from dpcausal.study.wording import answers_of, coverage_text, estimate_of, unit_text

FILL = "[to be filled in: {}]"
DELTA = "δ is the probability allowed for a larger loss. "


def first_page(inputs: ReportInputs, figures: Figures) -> list[Block]:
    file, plan = inputs.file, inputs.plan
    about = [file.disclosure.population, f"{plan.n:,} {plan.records}"]
    blocks = [Block("title", file.title), Block("small", " · ".join(part for part in about if part)),
              Block("answer", *answer_box(inputs))]  # fmt: skip
    coverages = inputs.coverages
    interval = f"{coverage_text(coverages[0])} CI" if len(coverages) == 1 else "CI"
    rows: list[tuple[str, ...]] = [("Question", "Result", interval, "Evidence")]
    several = len(plan.questions) > 1
    for number, one in enumerate(plan.questions, start=1):
        own = [tuple(row) for answer in answers_of(one.answer)
               for row in inputs.wording.findings(one.question, answer, len(coverages) > 1)]  # fmt: skip
        own = own or [(inputs.wording.question(one.question), no_answer(one), "–", "–")]
        rows += [(f"{number}. {name}" if several and name[:1] != " " else name, *rest) for name, *rest in own]
    blocks += [Block("heading", "Findings"), Block("table", "Findings", rows=tuple(rows))]
    blocks += [*(Block("small", note) for note in _notes(inputs)), *_figure_blocks(inputs, figures)]
    limits = Block("section", "What it does not show", lines=limit_lines(inputs))
    blocks.append(Block("section", "What this relies on", lines=assumption_lines(inputs), right=(limits,)))
    return [*blocks, Block("heading", "Privacy in brief"), Block("text", _privacy_in_brief(inputs))]


def no_answer(one: QuestionStatus) -> str:
    text = {SPENT: "paid for, but no result was saved", CANNOT: "cannot be answered"}.get(one.state, "not answered")
    return f"{text}: {one.reason}" if one.reason else text


def _notes(inputs: ReportInputs) -> list[str]:
    notes, several = list[str](), len(inputs.plan.questions) > 1
    for number, one in enumerate(inputs.plan.questions, start=1):
        texts = [f"{one.state}: {one.reason}"] if one.reason and one.answer is not None else []
        for answer in answers_of(one.answer):
            warned = answer.warnings() if estimate_of(answer) is not None else []
            texts += warned[: answer.interval is None] if isinstance(answer, Effect) else warned
            texts += [f"{inputs.wording.group(part.group)}: no interval, {part.reason}"
                      for part in getattr(answer, "by_group", ()) if part.interval is None]  # fmt: skip
        prefix = f"Question {number}: " if several else ""
        notes += [f"{prefix}{text if several else text[:1].upper() + text[1:]}".rstrip(".") + "."
                  for text in map(str, texts)]  # fmt: skip
    return list(dict.fromkeys(notes))


def _figure_blocks(inputs: ReportInputs, figures: Figures) -> list[Block]:
    blocks, effects = list[Block](), [pair for pair in inputs.results if estimate_of(pair[1]) is not None]
    for number, (question, answer) in enumerate(effects, start=1):
        text = " ".join(inputs.wording.conclusions(question, answer))
        names = {one.group: inputs.wording.group(one.group) for one in getattr(answer, "by_group", ())}
        options = {"names": names, "label": inputs.wording.axis(answer)} if isinstance(answer, Effect) else {}
        noise = answer.noise_error if isinstance(answer, Effect) else None
        decimals = decimals_of(answer.interval)
        reach = "" if noise is None else number_text(1.96 * noise, decimals)
        line = f" The thin line below the first interval is its privacy noise alone (95 %: ±{reach})." if noise else ""
        if isinstance(answer, GroupTimeEffects) and any(one.band for one in answer.event_study):
            line = " Thin lines cover all periods at once."
        about = inputs.wording.question(question)
        caption = f"Figure {number}. {about} Confidence intervals (CI) cover sampling error and privacy noise.{line}"
        blocks.append(Block("picture", caption, lines=(figures.of(answer, text, **options),)))
    return blocks


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
