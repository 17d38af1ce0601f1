"""The report of a study: HTML, Markdown and the registry's record, from the ledger alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpcausal.errors import ParameterError
from dpcausal.privacy.ledger import Ledger
from dpcausal.study.document import Facts, document
from dpcausal.study.html import html, markdown
from dpcausal.study.registry import record, yaml

if TYPE_CHECKING:
    from dpcausal.study.study import Study


def facts_of(study: Study) -> Facts:
    """Return what a study's report is made of; its ledger is looked at only."""
    plan = study.plan(accuracy=False)
    if not study.ledger_path.exists():
        left = Ledger.in_memory(study.budget).remaining
        return Facts(study, plan.n, plan.standings, (), "", study.budget, left)
    with Ledger.open(study.ledger_path, read_only=True) as ledger:
        return Facts(
            study, plan.n, plan.standings, tuple(ledger.entries()), ledger.head, ledger.budget, ledger.remaining
        )


def write_report(study: Study, path: Path) -> Path:
    """Write the HTML with the Markdown and the registry's record beside it, and return the HTML's path."""
    if path.suffix != ".html" or not path.parent.is_dir():
        raise ParameterError("the report is a file NAME.html in a folder that exists")
    facts = facts_of(study)
    blocks = document(facts)
    path.write_text(html(blocks), encoding="utf-8")
    path.with_suffix(".md").write_text(markdown(blocks), encoding="utf-8")
    path.with_suffix(".registry.yaml").write_text(yaml(record(facts)), encoding="utf-8")
    return path
