"""Audit of studies under fire: a study that is killed with -9 at random moments pays for no stored answer twice.

    python -m benchmarks audit_study --kills 20

After each kill every spend of the ledger must be shown as answered or as spent without an answer, no question may have
been paid twice, and the rest must go on..
"""

import os
import tempfile
from pathlib import Path

from benchmarks.run import Report, benchmark
from tests.study.kills import run_under_fire
from tests.study.made import write

QUESTION = '[[question]]\nname = "{name}"\ntask = "ci_test"\nx = "a"\ny = "b"\ngiven = ["u"]\nepsilon = {epsilon}\n'


@benchmark("audit", code="dpcausal.study", kills=20, seed=0)
def main(report: Report) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        questions = "".join(QUESTION.format(name=f"q{k}", epsilon=1 + k / 8) for k in range(8))
        budget = "99, accept_large_epsilon = true"
        study = write(Path(folder), questions, n=2000, title="A study under fire", epsilon=budget)
        outcome = run_under_fire(study, kills=report.given.kills, seed=report.given.seed)
    counts = {"whole runs between them": outcome.restarts, "spends without an answer, last ledger": outcome.lost}
    report.add("a study of 8 questions", counts, method="", runs=outcome.kills)
    report.target("; ".join(sorted(set(outcome.problems))) or "no rule is broken", not outcome.problems)
