"""The content of a report, as plain blocks: two pages to sign, and an appendix."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from dpcausal.data.columns import exact_number
from dpcausal.data.schema import Bounded, Schema
from dpcausal.effects.result import Effect
from dpcausal.privacy.ledger import Entry
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, PureDP, parse_loss, short_amount, short_loss, zcdp_epsilon
from dpcausal.result import Guarantee, explain_terms, number_text
from dpcausal.study.file import QuestionPart, StudyFile
from dpcausal.study.plan import StudyPlan
from dpcausal.study.report.figures import Figures, draw_budget
from dpcausal.study.report.texts import ASSUMPTIONS, LIMITS, MISSING
from dpcausal.study.status import ANSWERED, CANNOT, EARLIER, SPENT, QuestionStatus
from dpcausal.study.wording import (
    CLEAR,
    Estimate,
    Wording,
    arms_text,
    disagreements,
    estimate_of,
    public_text,
    sources,
    unit_text,
)

FILL = "[to be filled in: {}]"
MOST_RESTS, MOST_LIMITS = 5, 4

Kind = Literal["title", "heading", "subheading", "text", "small", "list", "table", "picture", "answer", "page", "quote"]


@dataclass(frozen=True)
class Block:
    """A piece of a document: a text, a list, rows of a table (the first its heads), or a picture with its caption.

    ``beside`` is a second block, set to its right where there is room.
    """

    kind: Kind
    text: str = ""
    lines: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    beside: tuple[Block, ...] = ()


@dataclass(frozen=True)
class ReportInputs:
    """What a report is made of: the study's file and schema, the state of its questions, and its ledger."""

    path: Path
    file: StudyFile
    schema: Schema | None
    wording: Wording
    plan: StudyPlan
    entries: tuple[Entry, ...]

    @property
    def n(self) -> int:
        return self.plan.n

    @property
    def standings(self) -> tuple[QuestionStatus, ...]:
        return self.plan.standings

    @property
    def head(self) -> str:
        return self.plan.head

    @property
    def results(self) -> list[tuple[QuestionPart, Any]]:
        """All results with their questions, those of a tuple one by one."""
        found: list[tuple[QuestionPart, Any]] = []
        for one in self.standings:
            each = one.answer if isinstance(one.answer, tuple) else [] if one.answer is None else [one.answer]
            found += [(one.question, answer) for answer in each]
        return found

    def answer(self, name: str) -> Any:
        """Return the result of the question of a name."""
        return next(one.answer for one in self.standings if one.question.name == name)

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
        return ZCDP(totals.rho / 10**9) if totals.zcdp_open and isinstance(budget, ZCDP) else budget

    @property
    def spent_text(self) -> str:
        if self.spent is None:
            return "nothing"
        return f"{self.spent} (δ = 0)" if isinstance(self.spent, PureDP) else str(self.spent)


def document(inputs: ReportInputs) -> list[Block]:
    """Return the whole report."""
    figures = Figures()
    return [*_first_page(inputs, figures), Block("page"), *_second_page(inputs, figures), Block("page"),
            *_appendix(inputs, figures)]  # fmt: skip


def _first_page(inputs: ReportInputs, figures: Figures) -> list[Block]:
    file = inputs.file
    about = [file.disclosure.population, f"{inputs.n:,} {inputs.plan.records}"]
    blocks = [Block("title", file.title), Block("small", " · ".join(part for part in about if part)),
              Block("answer", *_answer_box(inputs))]  # fmt: skip
    rows: list[tuple[str, ...]] = [("Question", "Result", "95 % CI", "Strength of evidence")]
    for question, answer in inputs.results:
        rows += [tuple(row) for row in inputs.wording.findings(question, answer)]
    for one in inputs.standings:
        if one.answer is None:
            rows.append((inputs.wording.question(one.question), _no_answer(one), "–", "–"))
    blocks += [Block("heading", "Findings"), Block("table", "Findings", rows=tuple(rows))]
    notes = dict.fromkeys(f"{one.question.name}: {one.state}: {one.reason}." for one in inputs.standings
                          if one.reason and one.answer is not None)  # fmt: skip
    blocks += [Block("small", note) for note in notes]
    blocks += _figures(inputs, figures)
    blocks.append(Block("heading", "What this rests on", beside=(Block("heading", "What it does not show"),)))
    blocks.append(Block("list", lines=_rests_on(inputs), beside=(Block("list", lines=_limits(inputs)),)))
    return [*blocks, Block("heading", "Privacy in brief"), Block("text", _privacy_in_brief(inputs))]


def _no_answer(one: QuestionStatus) -> str:
    text = {SPENT: "paid for, but no result was saved", CANNOT: "cannot be answered"}.get(one.state, "not answered")
    return f"{text}: {one.reason}" if one.reason else text


def _answer_box(inputs: ReportInputs) -> tuple[str, tuple[str, ...]]:
    """Return the answer in one sentence, and up to three more that say what it means."""
    first = next(((question, answer) for question, answer in inputs.results if estimate_of(answer) is not None), None)
    if first is None:
        return _without_effect(inputs)
    wording, (_, answer) = inputs.wording, first
    estimate = estimate_of(answer)
    assert estimate is not None  # noqa: S101
    sentence = wording.effect_sentence(answer, estimate)
    if estimate.strength == CLEAR:
        arms = arms_text(answer, " to ")
        change = f", from {arms}" if arms else ""
        head = f"{'Yes. ' if file_asks(inputs.file.title) else ''}{sentence.rstrip('.')}{change}."
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
    """Return what an interval that holds 0 leaves open."""
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
    return f"{kind} ({names}); the study is too small to tell whether it differs between them."


def _figures(inputs: ReportInputs, figures: Figures) -> list[Block]:
    """Return the figures of the effects; those of tests, directions and graphs are in the appendix."""
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
    if design is not None and design.type == "randomised":
        within = f" within {wording.listed(design.within)}" if design.within else ""
        lines.append(f"Random assignment{within}.")
    tasks = {question.task for question, _ in inputs.results}
    for task in tasks:
        lines += [text for text in ASSUMPTIONS.get(task, ()) if not (lines and task == "effect" and "confound" in text)]
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
        randomised = design is not None and design.type == "randomised"
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
    odds = _odds(inputs.spent)
    return text + (odds or "Nothing was spent yet.")


def _odds(spent: Loss | None) -> str:
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


def _second_page(inputs: ReportInputs, figures: Figures) -> list[Block]:
    rows: list[tuple[str, ...]] = [("#", "Analysis", "Method", "n", "Cost", "SE", "SE of noise", "Paid (UTC)")]
    entries = {str(json.loads(entry.detail).get("asked", "")): entry for entry in inputs.entries}
    for number, one in enumerate((one for one in inputs.standings if one.answer is not None), start=1):
        answer = one.answer[0] if isinstance(one.answer, tuple) else one.answer
        entry = entries.get(one.asked)
        errors = (getattr(answer, name, None) for name in ("standard_error", "noise_error"))
        rows.append((str(number), one.about, one.method, f"{getattr(answer, 'n', inputs.n):,}",
                     "" if one.cost is None else short_loss(one.cost),
                     *("–" if error is None else number_text(error) for error in errors),
                     "" if entry is None else entry.at[:16].replace("T", " ")))  # fmt: skip
    blocks = [
        Block("heading", "How the results were obtained"),
        Block("text", "The analyses were fixed in the study file before the data were queried. Noise was added to "
                      "released counts and sums. Standard errors, intervals and p-values account for that noise."),
        Block("table", "Analyses", rows=tuple(rows)), Block("small", _positivity(inputs)),
    ]  # fmt: skip
    if inputs.schema is not None:
        blocks += [Block("heading", "Variables (allowed values are public)"),
                   Block("table", "Variables", rows=_variables(inputs, inputs.schema))]  # fmt: skip
    blocks += [Block("heading", "Privacy statement"), *_statement(inputs, figures),
               Block("heading", "Text for a methods section"), Block("quote", _methods(inputs)),
               *_approval(inputs)]  # fmt: skip
    verify = f"dpcausal ledger verify {inputs.file.ledger} --fingerprint {inputs.head}"
    return [*blocks, Block("small", f"Verify: {verify} · {', '.join(_versions())}")]


def _positivity(inputs: ReportInputs) -> str:
    parts = list[str]()
    for _, answer in inputs.results:
        if isinstance(answer, Effect):
            parts.append(f"Positivity: {answer.share_supported:.0%} of the {inputs.plan.records} are in strata with "
                         "enough in both groups.")  # fmt: skip
            largest = sorted(answer.balance, key=lambda one: -abs(one.difference))[:3]
            if largest:
                listed = ", ".join(f"{inputs.wording.group(one.name)} {one.difference:+.2f}" for one in largest)
                parts.append(f"Largest baseline differences, in standard deviations: {listed}.")
    return " ".join(dict.fromkeys(parts))


def _variables(inputs: ReportInputs, schema: Schema) -> tuple[tuple[str, ...], ...]:
    """Return the columns of the questions: their meaning, allowed values, and where the bounds come from."""
    meanings = inputs.file.described("meaning")
    origins = inputs.file.described("source")
    rows = [("Column", "Meaning", "Allowed values", "Source of the bounds")]
    for name, column in schema.items():
        unit = inputs.wording.units.get(name, "")
        if isinstance(column, Bounded):
            values = f"{exact_number(column.lower)} to {exact_number(column.upper)} {unit}".rstrip()
        else:
            labels = inputs.wording.levels.get(name, {})
            named = (f"{one} = {labels[str(one)]}" if str(one) in labels else str(one) for one in column.labels)
            values = ", ".join(named)
        meaning = meanings.get(name) or inputs.wording.labels.get(name, "")
        rows.append((name, meaning, values, origins.get(name, FILL.format("source"))))
    return tuple(rows)


def _statement(inputs: ReportInputs, figures: Figures) -> list[Block]:
    plan, shares = inputs.plan, list[tuple[str, float]]()
    for entry in inputs.entries:
        loss = parse_loss(entry.loss)
        amount = getattr(loss, "rho" if isinstance(plan.budget, ZCDP) else "epsilon", 0.0)
        names = (one.question.name for one in inputs.standings if one.asked and one.asked in entry.detail)
        shares.append((f"{next(names, entry.task)} {short_amount(amount)}", amount))
    symbol, total, _ = plan.amounts
    caption = f"Budget {symbol} = {plan.total}, of which {plan.spent} was used and {plan.rest} is left."
    bar = figures.drawn(lambda ax: draw_budget(ax, shares, total, symbol), caption, (3.4, 1.1))
    public = public_text(text for one in inputs.guarantees for text in one.public) or "the number of records"
    units = "; ".join(dict.fromkeys(f"{unit_text(one.unit)} ({one.relation.value})" for one in inputs.guarantees))
    lines = (f"Protected: {units or inputs.person}.", f"Public: {public}.",
             "Not covered: other publications from these data; access to the analysis computer; timing; a restored "
             "older ledger.")  # fmt: skip
    return [Block("picture", caption, lines=(bar,), beside=(Block("list", lines=lines),))]


def _methods(inputs: ReportInputs) -> str:
    answered = [one for one in inputs.standings if one.state == ANSWERED]
    questions = "; ".join(f"({number}) {one.about} ({one.method})" for number, one in enumerate(answered, 1))
    missing = "" if inputs.file.panel else f" {MISSING.get(inputs.file.missing, '')}"
    variant = {PureDP: "ε-differential privacy", ApproxDP: "(ε, δ)-differential privacy"}.get(
        type(inputs.spent), "zero-concentrated differential privacy")  # fmt: skip
    opendp = next((one.removeprefix("opendp ") for one in _versions() if one.startswith("opendp")), "")
    return (
        f"We analysed {inputs.n:,} {inputs.plan.records}: {questions or 'nothing yet'}. All results together satisfy "
        f"{variant} with {inputs.spent_text} for each {inputs.person}'s complete record under replace-one neighbours "
        f"(dpcausal {version('dpcausal')}; OpenDP {opendp} samplers).{missing} Values beyond the declared bounds "
        "count as the bound. Standard errors, intervals and p-values account for the privacy noise. The study file is "
        "the pre-specified protocol."
    )


def _approval(inputs: ReportInputs) -> list[Block]:
    file, said = inputs.file.approvers, inputs.file.disclosure
    rows = (
        ("Role", "Name, institution", "Date", "Signature"),
        ("Data controller", file.controller or FILL.format("name"), "", ""),
        ("Analyst (wrote the study file)", file.analyst or FILL.format("name"), "", ""),
        ("Privacy officer (approves ε)", file.privacy_officer or FILL.format("name"), "", ""),
        ("Reason for ε", said.justification or FILL.format("reason"), "", ""),
        ("Earlier access to these data", said.looked_at_before or FILL.format("any earlier look at the data"), "", ""),
    )
    return [Block("heading", "Responsibility and approval"), Block("table", "Approval", rows=rows)]


def _versions() -> list[str]:
    versions = [f"Python {platform.python_version()}"]
    for package in ("dpcausal", "opendp", "numpy", "scipy"):
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return versions


def _appendix(inputs: ReportInputs, figures: Figures) -> list[Block]:
    """Return each question with its settings, assumptions and figure; the ledger; references; terms."""
    blocks = [Block("heading", "Appendix: technical details"),
              Block("small", f"Written {datetime.now(UTC):%d %b %Y} by dpcausal {version('dpcausal')}.")]  # fmt: skip
    for one in inputs.standings:
        blocks += [Block("subheading", one.question.name), Block("text", inputs.wording.question(one.question))]
        if one.answer is None:
            blocks.append(Block("text", f"{_no_answer(one)}."))
        for answer in one.answer if isinstance(one.answer, tuple) else () if one.answer is None else (one.answer,):
            lines = answer.headline() if hasattr(answer, "headline") else one.conclusions
            settings = ", ".join(f"{name} = {value}" for name, value in one.settings.items() if value is not None)
            method = f"Method {one.method}{f': {settings}' if settings else ''}"
            points = [method, *one.caveats, *answer.guarantee.caveats]
            blocks.append(Block("quote", "\n".join(lines)))
            if estimate_of(answer) is None and (figure := figures.of(answer, lines[0] if lines else "")):
                blocks.append(Block("picture", one.about, lines=(figure,)))
            blocks.append(Block("list", lines=tuple(dict.fromkeys(f"{part[:1].upper()}{part[1:].rstrip('.')}."
                                                                  for part in points))))  # fmt: skip
    rows = [("Spend", "Paid (UTC)", "Task", "Cost", "Result")]
    for entry in inputs.entries:
        asked = str(json.loads(entry.detail).get("asked", ""))
        paid = [one for one in inputs.standings if one.asked and one.asked == asked]
        state = "saved" if any(one.state in (ANSWERED, EARLIER) for one in paid) else "not saved" if paid else ""
        rows.append((f"{entry.number}: {', '.join(one.question.name for one in paid) or 'outside this study'}",
                     entry.at[:16].replace("T", " "), entry.task, str(parse_loss(entry.loss)), state))  # fmt: skip
    blocks += [Block("subheading", "Ledger"), Block("table", "Every spend of the ledger", rows=tuple(rows)),
               Block("text", f"Left: {inputs.plan.left}. Fingerprint: {inputs.head}")]  # fmt: skip
    references = sources(inputs.proofs)
    if references:
        blocks += [Block("subheading", "Proofs and their sources"), Block("list", lines=(
            f"Proofs: {', '.join(inputs.proofs)}; 'dpcausal explain NAME' prints one.", *references))]  # fmt: skip
    terms = explain_terms("\n".join(line for block in blocks for line in (block.text, *block.lines)))
    return [*blocks, Block("subheading", "Terms"), Block("list", lines=tuple(terms))] if terms else blocks
