"""Tables of recorded results: a page names a record, the build prints it.

A block ```` ```{evidence} effect/stratified ```` becomes the table of ``benchmarks/results/effect/stratified.json`` and,
below it, what it was recorded with.  A record whose method's code has changed since says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
MOST = 8
"""Rows of a table inside a page; the page of the record has all."""


def table(record: dict[str, Any], most: int | None = None) -> list[str]:
    """Return a record's table in Markdown, and the line that says where it comes from."""
    rows = record["rows"] if most is None else record["rows"][:most]
    columns = list(record["columns"])
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [f"| {' | '.join(_text(value) for value in row)} |" for row in rows]
    return [*lines, "", _source(record), ""]


def _text(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _source(record: dict[str, Any]) -> str:
    made, changed = record["recorded"], " The code has changed since." if is_stale(record) else ""
    return f"*`{record['command']}`, version {made['version']}, {made['date']}, {made['machine']}.{changed}*"


def is_stale(record: dict[str, Any]) -> bool:
    """Return whether the code that a record was made with has changed since."""
    from benchmarks.records import is_stale

    return bool(is_stale(record))


def rendered(name: str) -> list[str]:
    """Return what stands in a page for a record."""
    record = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    more = [f"[All {len(record['rows'])} rows](/evidence/{name.replace('/', '-')}.md)", ""]
    return ["", *table(record, MOST), *(more if len(record["rows"]) > MOST else [])]


def write_pages(folder: Path) -> None:
    """Write one page for each record, and their list."""
    folder.mkdir()
    listed = ["# Evidence", "", "Recorded results of every benchmark.", "", "```{toctree}", ":maxdepth: 1", ""]
    for path in sorted(RESULTS.rglob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        name = "-".join(path.relative_to(RESULTS).with_suffix("").parts)
        text = [f"# {record['title']}", "", record.get("about", ""), "", *table(record)]
        (folder / f"{name}.md").write_text("\n".join(text) + "\n", encoding="utf-8")
        listed.append(name)
    (folder / "index.md").write_text("\n".join([*listed, "```"]) + "\n", encoding="utf-8")
