"""The fuzz of the test suite at any size: random calls, from which only this library's errors may come out.

    python -m benchmarks.audit_fuzz [CASES]

CASES is the number of random cases over all properties, 100,000 by default; seeds are fresh at each run.
"""

from __future__ import annotations

import sys
import time

from tests.test_fuzz import PROPERTIES, run


def main(cases: int) -> int:
    """Run so many cases, print a line a property, and return 1 if any failed."""
    shares = sum(chosen.share for chosen in PROPERTIES.values())
    total, failed, start = 0, 0, time.perf_counter()
    print(f"{'property':<12} {'cases':>8} {'seconds':>8}  outcome")
    for name, chosen in PROPERTIES.items():
        begun, ran, outcome = time.perf_counter(), 0, "only our errors"
        try:
            ran = run(name, -(-cases * chosen.share // shares), fixed=False)
        except (AssertionError, ExceptionGroup) as error:
            failed += 1
            parts = error.exceptions if isinstance(error, ExceptionGroup) else [error]
            notes = [note for part in parts for note in [str(part), *getattr(part, "__notes__", [])]]
            outcome = "FAILED\n    " + "\n    ".join("\n".join(notes).splitlines())
        total += ran
        print(f"{name:<12} {ran:>8,d} {time.perf_counter() - begun:>8.1f}  {outcome}", flush=True)
    print(f"{total:,d} cases, {failed} properties failed, {time.perf_counter() - start:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
