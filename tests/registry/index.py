"""All rows of the registry, from its pages; a new page is named here."""

from tests.registry import (
    accounting,
    direction,
    discovery,
    effects,
    independence,
    iqr,
    many,
    mechanisms,
    panels,
    training,
)
from tests.registry.rows import Case, MechanismRow, SensitivityRow, TaskRow, TextRow

PAGES = (direction, iqr, discovery, effects, independence, panels, training)
SENSITIVITIES: tuple[SensitivityRow, ...] = tuple(row for page in PAGES for row in page.SENSITIVITIES)
MECHANISMS: tuple[MechanismRow, ...] = tuple(
    row for page in (mechanisms, iqr, discovery, panels, training) for row in page.MECHANISMS
)
TASKS: tuple[TaskRow, ...] = tuple(
    row for page in (direction, iqr, many, training, discovery, effects, independence, panels) for row in page.TASKS
)
TEXTS: tuple[TextRow, ...] = (
    *training.TEXTS,
    *independence.TEXTS,
    *many.TEXTS,
    TextRow("iqr-reach", "lemma", "what j replacements can reach: iqr-flip-distance follows from it"),
    TextRow("hsic-laplacian-rounding", "lemma", "an error bound inside the sensitivities of root-hsic and hsic"),
    TextRow("hsic-gaussian-rounding", "lemma", "an error bound inside the sensitivities of root-hsic and hsic"),
    TextRow("cost-accounts", "composition", "what a loss costs in each account"),
    TextRow("fully-adaptive-sums", "composition", "the filter of ε and δ"),
    TextRow("fully-adaptive-zcdp", "composition", "the filter of ρ"),
    TextRow("union-of-filters", "composition", "either of two filters may serve"),
    TextRow("single-spend", "composition", "one spend of the whole budget"),
    TextRow("renewal", "composition", "the filter of a larger budget admits what the smaller admitted"),
    TextRow("one-unit", "composition", "why the spends of one ledger bound the loss of one unit"),
    TextRow("public-targets", "composition", "why no protected unit becomes a public target of its ledger"),
    TextRow("allotment", "composition", "a call within its allotment is one mechanism"),
)


def cases() -> tuple[dict[str, Case], dict[str, Case]]:
    """Return all mutants and all controls by name."""
    pages = (*PAGES, many, mechanisms, accounting)
    of_rows = [one for row in SENSITIVITIES for one in row.mutants if isinstance(one, Case)]
    mutants = [*of_rows, *(case for page in pages for case in page.MUTANTS)]
    controls = [case for page in pages for case in page.CONTROLS]
    controls += [mechanisms.of_library(row) for row in MECHANISMS if row.claim is not None]
    for group in (mutants, controls):
        if len({case.name for case in group}) != len(group):
            raise ValueError("two cases of one name")
    return {case.name: case for case in mutants}, {case.name: case for case in controls}


def mutants_of(row: MechanismRow | SensitivityRow | TaskRow) -> tuple[str, ...]:
    """Return the names of the mutants that break a claim, a mechanism, or any claim of a call."""
    if not isinstance(row, TaskRow):
        return tuple(one.name if isinstance(one, Case) else one for one in row.mutants)
    parts = [one for one in (*SENSITIVITIES, *MECHANISMS) if one.claim in row.claims]
    return tuple(dict.fromkeys(name for one in parts for name in mutants_of(one)))
