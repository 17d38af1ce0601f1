"""The fuzz of the test suite at any size: random calls, from which only this library's errors may come out.

    python -m benchmarks audit_fuzz --cases 100000

So many random cases over all properties; seeds are fresh at each run.
"""

import time

from benchmarks.run import Report, benchmark
from tests.test_fuzz import PROPERTIES, run


@benchmark("audit", cases=100_000)
def main(report: Report) -> None:
    shares = sum(chosen.share for chosen in PROPERTIES.values())
    for kind, chosen in PROPERTIES.items():
        start, ran, fault = time.perf_counter(), 0, ""
        try:
            ran = run(kind, -(-report.given.cases * chosen.share // shares), fixed=False)
        except (AssertionError, ExceptionGroup) as error:
            parts = error.exceptions if isinstance(error, ExceptionGroup) else [error]
            fault = "\n".join(note for part in parts for note in [str(part), *getattr(part, "__notes__", [])])
        report.add(kind, {"seconds": time.perf_counter() - start}, method="", runs=ran, note=fault)
        report.target(f"{kind}: {ran:,} cases, only errors of this library", not fault)
