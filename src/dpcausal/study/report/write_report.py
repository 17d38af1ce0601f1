"""The report of a study: HTML, Markdown and the registry's record, from the ledger alone."""

import re
from hashlib import sha256
from pathlib import Path

from dpcausal.errors import LedgerError, ParameterError, hints_in
from dpcausal.study.report.deployments import registry_record, yaml
from dpcausal.study.report.html import html, markdown
from dpcausal.study.report.inputs import ReportInputs
from dpcausal.study.report.pages import document
from dpcausal.study.writing import replace_files

OTHER = "choose another name with --out"
MARK = re.compile(r"dpcausal study ([0-9a-f]{32}), (\d{1,9}) spends")


def mark_of(inputs: ReportInputs) -> str:
    """Return the line by which a report is known again: its study's file and ledger, and how many spends it lists."""
    first = inputs.entries[0].previous if inputs.entries else inputs.plan.head
    whose = sha256(f"{inputs.path.name}\n{first}".encode()).hexdigest()[:32]
    return f"dpcausal study {whose}, {len(inputs.entries)} spends"


def write_report(inputs: ReportInputs, path: Path) -> Path:
    """Write the HTML with the Markdown and the registry's record beside it, and return the HTML's path. A file that is
    there is replaced by a newer report of the same study and ledger, and by nothing else."""
    if path.suffix != ".html" or not path.parent.is_dir():
        text = "the report is a file NAME.html in a folder that exists"
        raise ParameterError(text, argument="path", rule="report-file")
    with hints_in("toml"):
        blocks, mark = document(inputs), mark_of(inputs)
    texts = {
        path: html(blocks, mark, f"{inputs.file.title} · fingerprint {inputs.plan.head[:16]}"),
        path.with_suffix(".md"): f"<!-- {mark} -->\n\n{markdown(blocks)}",
        path.with_suffix(".registry.yaml"): f"# {mark}\n{yaml(registry_record(inputs))}",
    }
    for place in texts:
        _check_replaced(place, mark)
    replace_files(texts)
    return path


def _check_replaced(path: Path, mark: str) -> None:
    """Refuse to replace what is no report, another study's, or one that lists more spends than the ledger."""
    try:
        there = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
    except OSError:
        there = ""
    if there is None and not (path.exists() or path.is_symlink()):
        return
    old, new = MARK.search(there or ""), MARK.fullmatch(mark)
    if old is None or new is None:
        text = f"{str(path)!r} exists and is no report of this library"
        raise ParameterError(text, argument="out", rule="not-a-report", hint=OTHER)
    if old[1] != new[1]:
        text = f"{str(path)!r} is the report of another study or ledger"
        raise ParameterError(text, argument="out", rule="another-study", hint=OTHER)
    if int(old[2]) > int(new[2]):
        raise LedgerError(
            f"{str(path)!r} shows {old[2]} spends, the ledger {new[2]}: an older ledger was restored",
            argument="ledger", rule="older-ledger",
        )  # fmt: skip
