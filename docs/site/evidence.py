"""Tables of recorded results: a page names a record, the build prints it.

A block ```` ```{evidence} effects/stratified ```` becomes the table of ``benchmarks/results/effects/stratified.json``
and, below it, what it was recorded with.  Further words choose rows: those whose cells contain all of them.  A record
whose code has changed since says so.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
MOST = 8
"""Rows of a table inside a page; the page of the record has all."""


def columns_of(record: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return a record's columns and its rows as text, a metric with its Monte-Carlo error."""
    rows = record["rows"]
    fields = list(dict.fromkeys(key for row in rows for key in row if key != "metrics"))
    metrics = list(dict.fromkeys(key for row in rows for key in row.get("metrics", {})))
    lines = []
    for row in rows:
        own = row.get("metrics", {})
        lines.append([*(_text(row.get(key)) for key in fields), *(_metric(own.get(key)) for key in metrics)])
    return [*fields, *metrics], lines


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value).replace("|", "/")
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _metric(one: Any) -> str:
    if not isinstance(one, dict):
        return _text(one)
    error = one.get("mc_error")
    return _text(one["value"]) + (f" ± {error:.2g}" if error else "")


def table(record: dict[str, Any], words: list[str], most: int | None = None) -> list[str]:
    """Return a record's table in Markdown, and the line that says where it comes from."""
    columns, rows = columns_of(record)
    rows = [row for row in rows if all(any(word.lower() in cell.lower() for cell in row) for word in words)]
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows[:most]), "", _source(record), ""]


def _source(record: dict[str, Any]) -> str:
    from benchmarks.record import stale

    changed = " The code has changed since." if stale(record) else ""
    machine = f", {record['cpu']}" if record.get("cpu") else ""
    return f"*`{record['command']}`, version {record['version']}, {record['date']}{machine}.{changed}*"


def rendered(name: str) -> list[str]:
    """Return what stands in a page for a record."""
    path, *words = name.split()
    if not (RESULTS / f"{path}.json").exists():
        return ["", f"*Not recorded for this version: `python -m benchmarks evidence {path}`.*", ""]
    record = json.loads((RESULTS / f"{path}.json").read_text(encoding="utf-8"))
    return ["", *table(record, words, MOST), f"[All results](/evidence/{path.replace('/', '-')}.md)", ""]


def write_pages(folder: Path) -> None:
    """Write one page for each record, and their list."""
    folder.mkdir()
    listed = ["# Evidence", "", "Recorded results of the benchmarks.", "", "```{toctree}", ":maxdepth: 1", ""]
    for path in sorted(RESULTS.rglob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        name = "-".join(path.relative_to(RESULTS).with_suffix("").parts)
        title = record["benchmark"].replace("_", " ").capitalize()
        text = [f"# {title}", "", f"Seeds: {record['seed_rule']}.", "", *table(record, [])]
        (folder / f"{name}.md").write_text("\n".join(text) + "\n", encoding="utf-8")
        listed.append(name)
    (folder / "index.md").write_text("\n".join([*listed, "```"]) + "\n", encoding="utf-8")
