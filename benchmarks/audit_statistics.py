"""Levels, power and coverage by simulation: the tests that are too slow for each push, by tasks.

    python -m benchmarks audit_statistics --jobs 2     two minutes; the tests are marked ``replication``
"""

import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.run import Report, benchmark

ROOT = Path(__file__).resolve().parents[1]


def task_of(case: ElementTree.Element) -> str:
    """The folder of a test."""
    return case.attrib["classname"].split(".")[1]


@benchmark("audit", code="dpcausal", seeds="those of each test, fixed", jobs=2)
def main(report: Report) -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        words = ["-m", "replication", "-n", str(report.given.jobs), "--junitxml", str(results), "tests"]
        done = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, check=False)
        cases = sorted(ElementTree.parse(results).iter("testcase"), key=task_of)
    for task, same in groupby(cases, task_of):
        own = list(same)
        failed = sum(part.tag in ("failure", "error") for case in own for part in case)
        seconds = sum(float(case.attrib["time"]) for case in own)
        report.add(task, {"tests": len(own), "failed": failed, "seconds": round(seconds)}, method="")
    report.target("every test passes", bool(cases) and done.returncode == 0)
