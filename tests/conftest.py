"""Make the repository's root importable, for ``from tests.conformance import ...``; print what the audits did."""

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.voices import heard as heard

AUDITS = {
    "test_ledger_processes.py": "ledger under kills, races and forks",
    "test_registry.py": "registry: falsifier, grey box and black box for each claim and mechanism",
    "test_mutants.py": "mutants and right controls",
    "test_fuzz.py": "fuzz",
    "test_neighbours.py": "equal behaviour on neighbours",
    "test_leaks.py": "hunt for planted values",
    "test_faults.py": "fault table",
}
"""The audits in the suite; a printed line ``= N things`` is summed over a file, other lines are shown as they are."""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print sizes, figures and time of the audits that ran."""
    passed = [report for report in terminalreporter.getreports("passed") if report.when == "call"]
    shown = {file: [report for report in passed if f"/{file}::" in f"/{report.nodeid}"] for file in AUDITS}
    if any(shown.values()):
        terminalreporter.section("audits")
    for file, reports in shown.items():
        if not reports:
            continue
        seconds = sum(report.duration for report in reports)
        terminalreporter.write_line(f"{AUDITS[file]}: {len(reports)} tests, {seconds:.0f} s")
        sums: Counter[str] = Counter()
        for line in (line for report in reports for line in report.capstdout.splitlines() if line.strip()):
            found = re.fullmatch(r"= (\d+) (.+)", line)
            if found:
                sums[found[2]] += int(found[1])
            else:
                terminalreporter.write_line(f"    {line}")
        for things, number in sums.items():
            terminalreporter.write_line(f"    {number:,d} {things}")
