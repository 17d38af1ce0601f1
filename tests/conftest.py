"""What holds for every test: the same answer at each run, the repository's root importable, a report of the audits.

A test draws the same at each run, in any order, by any number of workers and under any seed of Python's hashes.
Hypothesis searches from a seed that follows from the test's source, the public coins and the bits of the ball's noise
from one that follows from the test's name.  OpenDP's own samplers cannot be seeded: what is asserted of their draws
states its false alarm.  ``make fuzz`` searches from fresh seeds instead.
"""

import atexit
import gc
import os
import random
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# No test writes into the user's state directory.
os.environ["DPCAUSAL_WITNESS"] = tempfile.mkdtemp(prefix="witnesses-")
atexit.register(shutil.rmtree, os.environ["DPCAUSAL_WITNESS"], ignore_errors=True)

# Workers rewrite the asserts of every test, and tests start Python some hundred times: its byte code is stored.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Where a process that a test starts crashes, its standard error says at which line.
os.environ["PYTHONFAULTHANDLER"] = "1"

# Before numpy is loaded: the last bits of a product, and the time of a run, are those of one thread on any machine.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from dpcausal.privacy import noise

# A shell's background jobs ignore Ctrl-C, and so would the tests of interrupts and every process that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.voices import heard as heard

# A busy machine decides nothing: no deadlines, and slow draws are no error.
COMMON: dict[str, Any] = {
    "database": None, "deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow],
}  # fmt: skip
settings.register_profile("push", derandomize=True, **COMMON)
settings.register_profile("fuzz", derandomize=False, **COMMON)
settings.load_profile("push")

# Constants of the modules that happen to be loaded would join what is drawn: other tests would decide.
setattr(providers, "_get_local_constants", lambda: providers._local_constants)  # noqa: B010


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Search for cycles less often, and not in what collecting makes: the search took a quarter of the suite."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", metavar="SEED", help="run the tests in an order of this seed")


def pytest_configure(config: pytest.Config) -> None:
    # Registered, and not hooks of this file, so that doctests of the sources are reached too.
    config.pluginmanager.register(Chance(config.getoption("--hypothesis-seed") or "", config.getoption("--shuffle")))


class Chance:
    """What is random in a run: a seed beside each test's name, and the order."""

    def __init__(self, seed: str, order: str | None) -> None:
        self.seed, self.order = seed, order

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.order is not None:
            random.Random(self.order).shuffle(items)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        known = random.Random(f"{self.seed} {item.nodeid}")
        random.seed(known.getrandbits(32))
        np.random.seed(known.getrandbits(32))
        before = noise.secrets
        if item.get_closest_marker("fresh_bits") is None:
            noise.secrets = SimpleNamespace(randbits=known.getrandbits)  # type: ignore[assignment]
        try:
            return (yield)
        finally:
            noise.secrets = before


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
