"""What a report says, as plain blocks: the HTML and the Markdown are two ways to set the same document."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from dpcausal.data.columns import exact_number
from dpcausal.data.schema import Bounded, Schema
from dpcausal.privacy.ledger import Entry
from dpcausal.privacy.loss import ZCDP, Loss, PureDP, parse_loss
from dpcausal.result import Guarantee, explain_terms
from dpcausal.study.file import StudyFile
from dpcausal.study.report.figures import budget_label, drawn
from dpcausal.study.report.wording import (
    assumptions,
    loss_in_words,
    public_in_words,
    question_in_words,
    sources,
    uncertainty,
    unit_in_words,
)
from dpcausal.study.status import ANSWERED, CANNOT, EARLIER, SPENT, QuestionStatus

FILL = "[for a person to fill: {}]"

Kind = Literal["title", "heading", "subheading", "text", "list", "table", "picture", "answer"]


@dataclass(frozen=True)
class Block:
    """A piece of a document: a text, a list, rows of a table (the first its heads), or a picture with its words."""

    kind: Kind
    text: str = ""
    lines: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class ReportInputs:
    """What a report is made of: the study's file and schema, how its questions stand, and what its ledger says."""

    path: Path
    told: StudyFile
    schema: Schema | None
    n: int
    standings: tuple[QuestionStatus, ...]
    entries: tuple[Entry, ...]
    head: str
    budget: Loss
    left: Any

    @property
    def answers(self) -> list[Any]:
        """All answers, those of a tuple one by one."""
        found: list[Any] = []
        for one in self.standings:
            found += one.answer if isinstance(one.answer, tuple) else [] if one.answer is None else [one.answer]
        return found

    @property
    def guarantees(self) -> list[Guarantee]:
        return [answer.guarantee for answer in self.answers]

    @property
    def proofs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(proof for one in self.guarantees for proof in one.proofs))


def document(facts: ReportInputs) -> list[Block]:
    """Return the whole report."""
    told, said = facts.told, facts.told.disclosure
    blocks = [Block("title", told.title)]
    if said.description:
        blocks.append(Block("text", said.description))
    asked = len(facts.standings)
    done = sum(one.state == ANSWERED for one in facts.standings)
    written = f"Written {datetime.now(UTC):%Y-%m-%d} by dpcausal {version('dpcausal')}."
    many = "1 question" if asked == 1 else f"{asked} questions"
    whole = f"{many}, {done} answered, of {facts.n} records. Budget: {loss_in_words(facts.budget)}. {written}"
    blocks.append(Block("text", whole))
    blocks += _population(facts)
    blocks.append(Block("heading", "Answers"))
    for one in facts.standings:
        blocks += _answer(one)
    words = explain_terms("\n".join(line for block in blocks for line in (block.text, *block.lines)))
    if words:
        blocks += [Block("subheading", "Words"), Block("list", lines=tuple(words))]
    return [*blocks, *_spending(facts), *_methods(facts), *_software(facts)]


LEFT_OUT = {
    "drop": "A record that lacks a column of a question is left out of that question; how many do is not told.",
    "level": "A missing level counts as a level; a record that lacks a number is left out of questions about it.",
    "impute": "What a record lacks counts as the middle of the bounds, or the first level.",
}


def _population(facts: ReportInputs) -> list[Block]:
    told = facts.told
    public = public_in_words(words for one in facts.guarantees for words in one.public)
    units = dict.fromkeys(unit_in_words(one.unit, one.relation.value) for one in facts.guarantees)
    ids = "" if told.person is None else f"A person is named by the column {told.person}; who is in the data is " \
        f"{'public' if told.ids == 'public' else 'private'}."  # fmt: skip
    blocks = [
        Block("heading", "Population, and who is protected"),
        Block("text", told.disclosure.population or FILL.format("who the records are about, and how they were drawn")),
        Block("list", lines=tuple(part for part in (
            *units, ids, f"Public: {public}." if public else "",
            "" if told.panel else LEFT_OUT.get(told.missing, ""),
            "Not defended: who may run code in the curator's process, timing, and an older ledger put back.",
        ) if part)),
    ]  # fmt: skip
    if facts.schema is not None:
        blocks.append(Block("table", "Columns, as declared in public", rows=_columns(facts.schema)))
    return blocks


def _columns(schema: Schema) -> tuple[tuple[str, ...], ...]:
    rows = [("column", "may hold")]
    for name, column in schema.items():
        if isinstance(column, Bounded):
            rows.append((name, f"{exact_number(column.lower)} to {exact_number(column.upper)}"))
        else:
            rows.append((name, ", ".join(str(label) for label in column.labels)))
    return tuple(rows)


def _answer(one: QuestionStatus) -> list[Block]:
    blocks = [Block("subheading", one.question.name), Block("text", question_in_words(one.question))]
    if one.answer is None:
        told = {SPENT: "Spent, and no answer was kept", CANNOT: "It cannot be asked"}.get(one.state, "Not answered")
        return [*blocks, Block("answer", f"{told}: {one.reason or one.state}.")]
    if one.reason:
        blocks.append(Block("text", f"{one.state[0].upper()}{one.state[1:]}: {one.reason}."))
    for answer in one.answer if isinstance(one.answer, tuple) else (one.answer,):
        lines = answer.headline() if hasattr(answer, "headline") else released(answer)
        blocks.append(Block("answer", lines[0], lines=tuple(lines[1:])))
        picture = drawn(answer)
        if picture is not None:
            blocks.append(Block("picture", picture[1], lines=(picture[0],)))
        guarantee = answer.guarantee
        cost = f"Cost {loss_in_words(guarantee.loss)}, method {one.method}."
        caveats = (f"{caveat[0].upper()}{caveat[1:]}." for caveat in guarantee.caveats)
        points = [uncertainty(answer), cost, *assumptions(one.question.task), *caveats]
        blocks.append(Block("list", lines=tuple(point for point in points if point)))
    return blocks


def released(answer: Any) -> list[str]:
    """Return what numbers without a headline of their own are, in words."""
    return [f"Released: noisy numbers of {', '.join(answer.names)}.", "They are asked again for nothing."]


def _spending(facts: ReportInputs) -> list[Block]:
    total, spent, unit = amounts(facts)
    label = budget_label(total, spent, unit)
    rows = [("spend", "when (UTC)", "task", "cost", "answer")]
    named = {one.asked: ", ".join(other.question.name for other in facts.standings if other.asked == one.asked)
             for one in facts.standings if one.asked}  # fmt: skip
    for entry in facts.entries:
        asked = str(json.loads(entry.detail).get("asked", ""))
        question = named.get(asked, "outside this study")
        state = next((one.state for one in facts.standings if one.asked and one.asked == asked), "")
        kept = "kept" if state in (ANSWERED, EARLIER) else "no answer" if state == SPENT else ""
        rows.append((f"{entry.number}: {question}", entry.at[:16].replace("T", " "), entry.task,
                     loss_in_words(parse_loss(entry.loss)), kept))  # fmt: skip
    return [
        Block("heading", "What was spent"), Block("picture", label[1], lines=(label[0],)),
        Block("text", f"A next question may cost: {facts.left}."),
        Block("table", "Every spend of the ledger", rows=tuple(rows)),
        Block("text", f"Ledger head: {facts.head}"),
    ]  # fmt: skip


def amounts(facts: ReportInputs) -> tuple[float, float, str]:
    """Return the budget, what was spent of it, and its unit; the spends of an (ε, δ) budget by its better account."""
    budget, left = facts.budget, facts.left
    if isinstance(budget, ZCDP):
        return budget.rho, budget.rho - left.rho, "ρ"
    total = budget.epsilon if isinstance(budget, PureDP) else getattr(budget, "epsilon", 0.0)
    return total, total - left.epsilon, "ε"


def _methods(facts: ReportInputs) -> list[Block]:
    told = facts.told
    answered = [one for one in facts.standings if one.state == ANSWERED]
    asked = "; ".join(
        f"({number}) {question_in_words(one.question).rstrip('?')}? By {one.question.task}, method {one.method}, at "
        f"{loss_in_words(one.cost)}" for number, one in enumerate(answered, 1)
    )  # fmt: skip
    unit = "person" if told.person else "donor" if told.panel else "row"
    left_out = "" if told.panel else f" {LEFT_OUT.get(told.missing, '')}"
    text = (
        f"All answers were computed under differential privacy with dpcausal {version('dpcausal')}, from one budget of "
        f"{loss_in_words(facts.budget)} for one {unit} under replace-one neighbours, kept in a hash-chained ledger "
        f"(head {facts.head[:16]}…). Of {facts.n} {unit}s was asked: {asked or 'nothing yet'}. Bounds and levels "
        f"were declared as public.{left_out} Noise was drawn exactly from the operating system's randomness (OpenDP). "
        "Standard errors, intervals and p-values count the noise."
    )
    blocks = [Block("heading", "For the methods section"), Block("text", text)]
    found = sources(facts.proofs)
    if found:
        blocks += [Block("subheading", "Sources of the methods and proofs"), Block("list", lines=tuple(found))]
    return blocks


def _software(facts: ReportInputs) -> list[Block]:
    said = facts.told.disclosure
    versions = [f"Python {platform.python_version()}"]
    for package in ("dpcausal", "opendp", "numpy", "scipy", "scikit-learn"):
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    proofs = ", ".join(facts.proofs) or "none yet"
    return [
        Block("heading", "Software, proofs and what a person must add"),
        Block("list", lines=tuple(_lines((
            f"Software: {', '.join(versions)}.",
            f"Proofs: {proofs}; 'dpcausal explain NAME' prints one.",
            f"What was looked at before: {_said(said.looked_at_before, 'any look at these data before')}.",
            f"Who may ask, and who sees the answers: {_said(said.actors, 'actors and trust')}.",
            f"Why this budget: {_said(said.justification, 'justification')}.",
            "To check the ledger: dpcausal ledger verify " + told_path(facts) + f" --fingerprint {facts.head}",
        )))),
    ]  # fmt: skip


def _said(words: str | None, what: str) -> str:
    return words.rstrip(". ") if words else FILL.format(what)


def told_path(facts: ReportInputs) -> str:
    """Return the ledger's path as the study names it."""
    return facts.told.ledger


def _lines(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if line]
