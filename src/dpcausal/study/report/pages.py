"""The content of a report, as plain blocks: two pages to sign, and an appendix."""

import json
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from dpcausal.claims import claims
from dpcausal.data.columns import missing_texts
from dpcausal.data.schema import Bounded, Schema
from dpcausal.effects.cells.standardise import LEAST_COUNT, LEAST_RATIO
from dpcausal.effects.question import BEFORE
from dpcausal.effects.result import LIMITS, STRATA, Balance, Effect
from dpcausal.independence.result import Independence
from dpcausal.privacy.loss import ZCDP, ApproxDP, PureDP, parse_loss
from dpcausal.result import explain_terms, number_text, percent_text, short_amount, short_loss, signed_text
from dpcausal.study.phrases import STATEMENTS
from dpcausal.study.report.assumptions import MISSING, stated_assumptions
from dpcausal.study.report.figures import Figures, draw_budget
from dpcausal.study.report.findings import FILL, first_page, no_answer
from dpcausal.study.report.html import Block
from dpcausal.study.report.inputs import ReportInputs
from dpcausal.study.status import ANSWERED, EARLIER
from dpcausal.study.wording import answers_of, coverage_text, estimate_of, public_text, unit_text

METHODS = {
    "stratified": "differences of means within strata, weighted by their sizes",
    "aipw": "augmented inverse probability weighting with linear models",
    "boosted-aipw": "augmented inverse probability weighting with boosted models",
    "partially-linear": "partially linear regression", "trial": "difference of adjusted means",
    "sample-aggregate": "mean of the estimates of blocks", "kendall": "Kendall's rank correlation within strata",
    "gcm": "generalised covariance measure", "paths": "group-time effects of Callaway & Sant'Anna (2021)",
}  # fmt: skip
"""Methods in words, for a methods section."""
ESTIMANDS = {
    "ate": "the average treatment effect: the mean outcome if everyone were treated, minus the mean if no one were",
    "att": "the average effect on the treated",
    "slope": "the difference in mean outcome, treated versus untreated, in a linear model",
    "ate-winsorized": "the average treatment effect on winsorised outcomes",
    "overlap": "the average effect in the overlap population",
}

BY_PERSON = (
    ("an effect", "the mean of their rows", {"effect", "discontinuity"}),
    ("a difference in differences", "their outcomes in all periods", {"did"}),
    ("a test", "one row, chosen by a hash", {"ci_test", "ci_tests", "direction", "direction_all"}),
)
"""How a person with several rows counts, by tasks."""


def document(inputs: ReportInputs) -> list[Block]:
    figures = Figures()
    return [*first_page(inputs, figures), Block("page"), *_second_page(inputs, figures),
            Block("appendix", "Appendix: technical details", inside=tuple(_appendix(inputs, figures)))]  # fmt: skip


def _second_page(inputs: ReportInputs, figures: Figures) -> list[Block]:
    plan = inputs.plan
    head = ("#", "Analysis", "Method", "n in the data", "Privacy loss", "SE", "SE of noise", "Date")
    rows: list[tuple[str, ...]] = [head]
    entries = {str(json.loads(entry.detail).get("asked", "")): entry for entry in inputs.entries}
    for number, one in enumerate(plan.questions, start=1):
        if one.answer is None:
            continue
        answer, entry = answers_of(one.answer)[0], entries.get(one.key)
        errors = (getattr(answer, name, None) for name in ("standard_error", "noise_error"))
        rows.append((str(number), one.about, one.method, f"{getattr(answer, 'n', plan.n):,}",
                     "" if one.cost is None else short_loss(one.cost),
                     *("–" if error is None else number_text(error) for error in errors),
                     "" if entry is None else f"{datetime.fromisoformat(entry.at):%d %b %Y}"))  # fmt: skip
    blocks = [
        Block("heading", "How the results were obtained"),
        Block("text", "Random noise was added to counts and sums before their release. SE is the standard error; "
                      f"SE² adds the squared standard errors of sampling and of noise.{_noise_share(inputs)}"),
        Block("table", "Analyses", rows=tuple(rows)), Block("small", _estimand_text(inputs)),
    ]  # fmt: skip
    if inputs.schema is not None:
        blocks += [Block("heading", "Variables (allowed values are public)"),
                   Block("table", "Variables", rows=_variable_rows(inputs, inputs.schema))]  # fmt: skip
    blocks += [Block("heading", "Privacy statement"), _privacy_statement(inputs, figures),
               Block("heading", "Text for a methods section"), Block("quote", _methods_paragraph(inputs)),
               Block("heading", "Responsibility and approval"), Block("text", _reasons_text(inputs)),
               Block("table", "Approval", rows=_approval_rows(inputs))]  # fmt: skip
    verify = f"dpcausal ledger verify {inputs.file.ledger} --fingerprint {plan.head}"
    return [*blocks, Block("small", f"Verify: {verify}")]


def _noise_share(inputs: ReportInputs) -> str:
    pairs = ((getattr(answer, "standard_error", None), getattr(answer, "noise_error", None))
             for _, answer in inputs.results)  # fmt: skip
    share = next(((noise / error) ** 2 for error, noise in pairs if error and noise), None)
    return "" if share is None else f" Noise is {percent_text(min(share, 1.0))} of SE² in the first estimate."


def _estimand_text(inputs: ReportInputs) -> str:
    parts, wording = list[str](), inputs.wording
    effects = [(number, answer) for number, one in enumerate(inputs.plan.questions, start=1)
               for answer in answers_of(one.answer) if isinstance(answer, Effect)]  # fmt: skip
    for number, answer in effects:
        analysis = f"Analysis {number}: " if len(effects) > 1 else ""
        strata = wording.listed(answer.adjusted_for)
        where = (f"are in strata{f' of {strata}' if strata else ''} where the noisy count of each arm is at "
                 f"least {LEAST_COUNT} and {LEAST_RATIO:.0f} standard deviations of its noise"
                 if answer.method in STRATA else "have an estimated probability of treatment inside its limits; the "
                 "others count with the limit")  # fmt: skip
        positivity = f" Positivity: {percent_text(answer.share_supported)} of them {where}."
        parts.append(f"{analysis}Estimand, for complete records: {ESTIMANDS[answer.estimand]}."
                     f"{positivity if answer.method in STRATA + LIMITS else ''}")  # fmt: skip
        others = [one for one in answer.balance if one.name.partition(" = ")[0] not in wording.within]
        largest = sorted(others, key=lambda one: -abs(one.difference))[:3]
        if largest:
            listed = ", ".join(f"{wording.group(one.name)} {_difference_text(one)}" for one in largest)
            parts.append("Baseline balance (standardised difference of means or shares, treated minus control, ± SE): "
                         f"{listed}.")  # fmt: skip
    tasks = {one.question.task for one in inputs.plan.questions if one.answer is not None}
    ways = [f"in {what} by {how}" for what, how, of in BY_PERSON if tasks & of] if inputs.file.person else []
    if ways:
        parts.append(f"Each person counts once: {', '.join(ways)}.")
    return " ".join(dict.fromkeys(parts))


def _difference_text(one: Balance) -> str:
    error = "" if one.standard_error is None else f" ± {number_text(one.standard_error, 2)}"
    return f"{signed_text(round(one.difference, 2))}{error}"


def _variable_rows(inputs: ReportInputs, schema: Schema) -> tuple[tuple[str, ...], ...]:
    meanings, origins = inputs.file.described("meaning"), inputs.file.described("source")
    rows = [("Column", "Meaning", "Allowed values", "Source of the values")]
    for name in _columns_of_questions(inputs, schema):
        column = schema[name]
        if isinstance(column, Bounded):
            unit = inputs.wording.units.get(name, "")
            values = f"{_rounded_bound(column, column.lower)} to {_rounded_bound(column, column.upper)} {unit}".rstrip()
        else:
            labels = inputs.wording.levels.get(name, {})
            named = (f"{one} = {labels[str(one)]}" if str(one) in labels else str(one) for one in column.labels)
            values = ", ".join(named)
        if column.missing:
            values += f"; missing: {', '.join(missing_texts(column))}"
        meaning = meanings.get(name) or inputs.wording.labels.get(name, "")
        rows.append((name, meaning, values, origins.get(name, FILL.format("source"))))
    return tuple(rows)


def _columns_of_questions(inputs: ReportInputs, schema: Schema) -> list[str]:
    questions = [one.question for one in inputs.plan.questions]
    named = json.dumps([(one.arguments, one.where) for one in questions], default=str, ensure_ascii=False)
    used = [name for name in schema if name in named]
    whole = any(one.task in ("discover", "direction_all") and len(one.arguments) == 0 for one in questions)
    return list(schema) if whole or not used else used


def _rounded_bound(column: Bounded, bound: float) -> str:
    exact = column.written(bound)
    return exact if column.dates or len(exact.lstrip("-")) <= 8 else f"{bound:.4g} (rounded)"


def _privacy_statement(inputs: ReportInputs, figures: Figures) -> Block:
    plan, shares = inputs.plan, list[tuple[str, float]]()
    for entry in inputs.entries:
        amount = getattr(parse_loss(entry.loss), "rho" if isinstance(plan.budget, ZCDP) else "epsilon", 0.0)
        names = (one.question.name for one in plan.questions if one.key and one.key in entry.detail)
        shares.append((f"{next(names, entry.task)} {short_amount(amount)}", amount))
    symbol, total, _ = plan.amounts
    caption = f"Spent: {plan.account}."
    bar = figures.drawn(lambda ax: draw_budget(ax, shares, total, symbol), caption, (3.4, 1.1))
    public = public_text(text for one in inputs.guarantees for text in one.public) or "the number of records"
    public += "" if "the order of the rows" in public else ", the order of the rows"
    units = "; ".join(dict.fromkeys(f"{unit_text(one.unit)} ({one.relation.value})" for one in inputs.guarantees))
    public = public.replace("the seed", "the seed by which rows are drawn (that of the noise is secret)")
    has_cuts = any(getattr(column, "cuts", None) for column in (inputs.schema or {}).values())
    public = public.replace(" cuts,", " cut points of numeric columns," if has_cuts else "")
    public = public.replace("all arguments", "all settings of the analyses")
    lines = (f"Protected: {units or inputs.person}.", f"Treated as public, not protected: {public}.",
             *filter(None, [inputs.lifetime]),
             "Not covered: other publications from these data, access to the analysis computer, how long "
             "computations take, and a ledger replaced by an older copy.")  # fmt: skip
    return Block("picture", caption, lines=(bar,), right=(Block("list", lines=lines),))


def _methods_paragraph(inputs: ReportInputs) -> str:
    answered = [one for one in inputs.plan.questions if one.state in (ANSWERED, EARLIER)]
    wording = inputs.wording
    listed = (f"{wording.question(one.question, STATEMENTS, '')} (method {named_method(one.method)}"
              f"{''.join(f', assuming that {text}' for text in stated_assumptions(one))}, {one.cost}"
              f"{', from an earlier state of the data' if one.state == EARLIER else ''})."
              for one in answered)  # fmt: skip
    questions = " ".join(listed) or "No question was answered yet."
    missing = MISSING.get("" if inputs.file.panel else inputs.file.missing, "").partition("; ")[0].partition(". ")[0]
    missing = f" {missing}." if missing else ""
    variant = {PureDP: "ε-differential privacy", ApproxDP: "(ε, δ)-differential privacy"}.get(
        type(inputs.spent), "zero-concentrated differential privacy")  # fmt: skip
    opendp = next((one.removeprefix("opendp ") for one in _package_versions() if one.startswith("opendp")), "")
    percents = [coverage_text(one) for one in inputs.coverages]
    several = f" ({', '.join(percents)})" if percents[1:] else ""
    intervals = f"{percents[0]} confidence intervals" if len(percents) == 1 else f"confidence intervals{several}"
    return (
        f"The data set holds {inputs.plan.n:,} {inputs.plan.records}. {questions} All "
        f"results together satisfy {variant} with {inputs.spent_text} for each {inputs.person} under "
        f"replace-one neighbours (dpcausal {version('dpcausal')}; OpenDP {opendp} samplers).{missing} Values outside "
        f"the declared bounds count as the nearer bound. Standard errors, {intervals} and p-values "
        f"account for sampling and privacy noise{_as_independent(inputs)}."
    )


def named_method(name: str) -> str:
    """Return a method's name, and in words what it is.

    Examples
    --------
    >>> named_method("gcm"), named_method("table")
    ('gcm: generalised covariance measure', 'table')
    """
    return f"{name}: {METHODS[name]}" if name in METHODS else name


def _as_independent(inputs: ReportInputs) -> str:
    """Return that what was assigned as a whole is taken as independent, where that is so."""
    unit = inputs.file.design.unit_of_assignment if inputs.file.design else None
    if not unit or any(getattr(answer, "cluster", "") for _, answer in inputs.results):
        return ""
    return f"; they treat {inputs.plan.records} as independent, although each {unit} was assigned as a whole"


def _reasons_text(inputs: ReportInputs) -> str:
    disclosure = inputs.file.disclosure
    reason = disclosure.justification or FILL.format("reason")
    earlier = disclosure.looked_at_before or FILL.format("any earlier access")
    return (f"Reason for ε: {reason.rstrip('.')}. Earlier access to these data: {earlier.rstrip('.')}. "
            "By signing, each person confirms having read both pages and is responsible for what their role names "
            "in parentheses.")  # fmt: skip


def _approval_rows(inputs: ReportInputs) -> tuple[tuple[str, ...], ...]:
    file = inputs.file.approvers
    return (
        ("Role", "Name, institution", "Date", "Signature"),
        ("Data controller (data, record of privacy loss)", file.controller or FILL.format("name"), "", ""),
        ("Analyst (chose the analyses)", file.analyst or FILL.format("name"), "", ""),
        ("Privacy officer (approves ε)", file.privacy_officer or FILL.format("name"), "", ""),
    )


def _package_versions() -> list[str]:
    versions = [f"Python {platform.python_version()}"]
    for package in ("dpcausal", "opendp", "numpy", "scipy"):
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return versions


def _appendix(inputs: ReportInputs, figures: Figures) -> list[Block]:
    plan = inputs.plan
    blocks = [Block("small", f"Written {datetime.now(UTC):%d %b %Y} by dpcausal {version('dpcausal')}, with the names "
                             f"of the data's columns. Made by {', '.join(_package_versions())}.")]  # fmt: skip
    for one in plan.questions:
        blocks += [Block("subheading", one.question.name), Block("text", inputs.wording.question(one.question))]
        if one.answer is None:
            blocks.append(Block("text", f"{no_answer(one)}."))
        for answer in answers_of(one.answer):
            lines = list(answer.headline() if hasattr(answer, "headline") else one.conclusions)
            if isinstance(answer, Independence):
                lines[:1] = inputs.wording.conclusions(one.question, answer)
            is_random = inputs.wording.randomises(one.question.arguments.get("treatment"))
            if isinstance(answer, Effect) and is_random:
                lines = [line for line in lines if line not in answer.sensitivity()]
            settings = ", ".join(f"{name} = {value}" for name, value in one.settings.items() if value is not None)
            method = f"Method {one.method}{f': {settings}' if settings else ''}"
            notes = map(str, (*getattr(answer, "notes", ()), *one.caveats, *answer.guarantee.caveats))
            points = [method, *(text for text in notes if not (is_random and text == BEFORE))]
            blocks.append(Block("output", "\n".join(lines)))
            if estimate_of(answer) is None and (figure := figures.of(answer, lines[0] if lines else "")):
                blocks.append(Block("picture", one.about, lines=(figure,)))
            blocks.append(Block("list", lines=tuple(dict.fromkeys(f"{part[:1].upper()}{part[1:].rstrip('.')}."
                                                                  for part in points))))  # fmt: skip
    rows = [("Spend", "Date (UTC)", "Task", "Privacy loss", "Result")]
    for entry in inputs.entries:
        key = str(json.loads(entry.detail).get("asked", ""))
        paid = [one for one in plan.questions if one.key and one.key == key]
        state = "saved" if any(one.state in (ANSWERED, EARLIER) for one in paid) else "not saved" if paid else ""
        rows.append((f"{entry.number}: {', '.join(one.question.name for one in paid) or 'outside this study'}",
                     entry.at[:16].replace("T", " "), entry.task, str(parse_loss(entry.loss)), state))  # fmt: skip
    blocks += [Block("subheading", "Ledger"), Block("table", "Every spend of the ledger", rows=tuple(rows)),
               Block("text", f"Left: {plan.left}. Fingerprint: {plan.head}")]  # fmt: skip
    references = _proof_sources(inputs.proofs)
    if references:
        blocks += [Block("subheading", "Proofs and their sources"), Block("list", lines=(
            f"Proofs: {', '.join(inputs.proofs)}; 'dpcausal explain NAME' prints one.", *references))]  # fmt: skip
    terms = explain_terms("\n".join(line for block in blocks for line in (block.text, *block.lines)))
    return [*blocks, Block("subheading", "Terms"), Block("list", lines=tuple(terms))] if terms else blocks


def _proof_sources(proofs: tuple[str, ...]) -> list[str]:
    """Return the references that the proofs' pages name, each once; not those that are this library's own."""
    known, listed = claims(), list[str]()
    for proof in proofs:
        page = known[proof].text if proof in known else ""
        match = re.search(r"\*\*Source\.?\*\*\.?\s*(.+?)(?:\n\n|\Z)", page, re.DOTALL)
        if match is not None:
            text = " ".join(match[1].replace("`", "").split()).removeprefix("This library").lstrip(".;, ")
            if text and not text.startswith(("As ", "Own")) and re.search(r"\b(19|20)\d\d\b", text):
                listed.append(f"{proof}: {text[0].upper()}{text[1:]}")
    return list(dict.fromkeys(listed))
