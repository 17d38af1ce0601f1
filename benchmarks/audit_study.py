"""Audit of studies under fire: a study that is killed with -9 at random moments pays for no kept answer twice.

    python -m benchmarks.audit_study [--kills 20] [--seed 0]

After each kill every spend of the ledger must be shown as answered or as spent without an answer, no question may have
been paid twice, and the rest must go on.  The exit code is 0 if so.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.study.kills import run_under_fire
from tests.study.made import write

QUESTION = '[[question]]\nname = "{name}"\ntask = "ci_test"\nx = "a"\ny = "b"\ngiven = ["u"]\nepsilon = {epsilon}\n'

def main() -> int:
    """Return 0 if nothing was paid twice and nothing was hidden."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        questions = "".join(QUESTION.format(name=f"q{k}", epsilon=1 + k / 8) for k in range(8))
        budget = "99, accept_large_epsilon = true"
        study = write(Path(folder), questions, n=2000, title="A study under fire", epsilon=budget)
        found = run_under_fire(study, kills=asked.kills, seed=asked.seed)
    print(f"{found.kills} kills of a study of 8 questions, {found.restarts} whole runs between them")
    print(f"spends that a kill left without an answer, in the last ledger: {found.lost}, each shown as such")
    print("broken rules: " + ("; ".join(sorted(set(found.problems))) or "none"))
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main())
