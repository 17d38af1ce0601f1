"""Search from fresh seeds for as long as asked:  python -m tests.fuzz SECONDS WORKERS  (``make fuzz``).

Each round takes a new seed and runs, from it, every Hypothesis test and the searches of ``explore.py``.  A failure is
printed with the command that repeats it: what a test draws follows from the seed and its own name.
"""

import secrets
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BROKEN = (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED)


class Watch:
    """Counts what ran and what failed, and ends the run when the time is up."""

    def __init__(self, end: float) -> None:
        self.end, self.ran, self.failed = end, 0, list[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.ran += report.when == "call"
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)
        if time.time() > self.end:
            pytest.exit("the time is up", pytest.ExitCode.INTERRUPTED)


def searched(seed: int, end: float, workers: str) -> tuple[int, list[str]]:
    """Run one round; return how many searches ran and the commands that repeat those that failed."""
    pages = [str(path) for path in sorted(HERE.rglob("test_*.py")) if "@given(" in path.read_text(encoding="utf-8")]
    start = ["--hypothesis-profile=fuzz", f"--hypothesis-seed={seed}"]
    spread = ["-m", "hypothesis or explores", f"--shuffle={seed}", "-n", workers, "--dist", "worksteal"]
    watch = Watch(end)
    if pytest.main([*start, *spread, str(HERE / "explore.py"), *pages], plugins=[watch]) in BROKEN:
        raise SystemExit("the search could not be run")
    return watch.ran, [f"pytest '{name}' {' '.join(start)}" for name in watch.failed]


def main(seconds: float, workers: str) -> int:
    """Search until the time is up, and return 1 if anything failed."""
    end, total, repeats = time.time() + seconds, 0, list[str]()
    while time.time() < end:
        # Each round in a process of its own: pytest rewrites what it imports once.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            ran, failed = process.submit(searched, secrets.randbits(31), end, workers).result()
        total, repeats = total + ran, repeats + failed
    print(f"\n{total:,d} searches, {len(repeats)} failed", *repeats, sep="\n")
    return int(bool(repeats))


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2]))
