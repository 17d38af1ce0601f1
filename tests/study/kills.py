"""A study that is killed with -9 while it runs, over and over: for a test and for the audit."""

import json
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import dpcausal as dpc
from dpcausal.study.status import ANSWERED, SPENT
from tests.privacy.kill_loops import finish, kill, start


@dataclass
class Outcome:
    """What was seen: kills while it ran, spends that a kill left without an answer, and what broke a rule."""

    kills: int = 0
    lost: int = 0
    restarts: int = 0
    problems: list[str] = field(default_factory=list)


def run_under_fire(study: Path, *, kills: int, seed: int) -> Outcome:
    """Run a study in children that are killed at random moments until so many died; then once more, to its end.

    Each time all is answered or lost, the ledger is put aside and the study begins anew.
    """
    rng, outcome, whole = np.random.default_rng(seed), Outcome(), 0.0
    for _ in range(2):  # the first run loads packages; a kill is to fall into a run, not behind it
        begun = time.monotonic()
        run(study)
        whole = time.monotonic() - begun
        new_ledger(study)
    while outcome.kills < kills:
        child = start(lambda: run(study))
        time.sleep(rng.uniform(0, whole))
        done, _ = os.waitpid(child, os.WNOHANG)
        if done == 0:
            kill(child)
            outcome.kills += 1
        look(study, outcome)
        if done:
            new_ledger(study)
            outcome.restarts += 1
    if finish(start(lambda: run(study))) != 0:
        outcome.problems.append("the study did not go on after its kills")
    last = look(study, outcome)
    if set(last) - {ANSWERED, SPENT}:
        outcome.problems.append("a question was neither answered nor shown as spent")
    outcome.lost += last.count(SPENT)
    return outcome


def run(study: Path) -> None:
    dpc.Study.open(study).run(new_ledger=True)


def new_ledger(study: Path) -> None:
    with dpc.Ledger.open(path := dpc.Study.open(study).ledger_path, read_only=True) as ledger:
        witness = ledger.verify().witness
    for one in (path, witness):
        if one is not None:
            one.unlink(missing_ok=True)


def look(study: Path, outcome: Outcome) -> list[str]:
    """Check the ledger and what the study says of it."""
    opened = dpc.Study.open(study)
    if not opened.ledger_path.exists():
        return []
    with dpc.Ledger.open(opened.ledger_path, read_only=True) as ledger:
        paid = Counter(json.loads(entry.detail)["asked"] for entry in ledger.entries())
        kept = {
            json.loads(entry.detail)["asked"] for entry in ledger.entries() if ledger.answer(entry.number) is not None
        }
        if not ledger.verify():
            outcome.problems.append("the ledger is damaged")
    if any(times > 1 for times in paid.values()):
        outcome.problems.append("a question was paid twice")
    states = {one.key: one.state for one in opened.plan(accuracy=False).questions}
    for asked in paid:
        if states.get(asked) != (ANSWERED if asked in kept else SPENT):
            outcome.problems.append(f"a spend is shown as {states.get(asked)}")
    return list(states.values())
