"""The demonstration: a whole study with known answers, on real health data that comes with statsmodels.

The RAND Health Insurance Experiment assigned families to insurance plans at random, so the share of the bill that
they paid themselves can have caused their number of doctor visits, and not the other way round.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from dpcausal.direction.result import Direction
from dpcausal.effects.result import Effect
from dpcausal.errors import MissingDependencyError, ParameterError
from dpcausal.study.plan import StudyPlan
from dpcausal.study.study import Progress, Study

STUDY = """title = "Did free care send people to the doctor?"
data = "rand.csv"
person = "zper"                           # a person has up to five years
ledger = "rand.ledger"
budget = { epsilon = 2.0, delta = 1e-6 }

# Public bounds, from what the columns mean and not from their values.
[columns.coinsurance]
lower = 0                                 # log(1 + per cent of the bill), 0 to 100 per cent
upper = 4.61512051684126
[columns.visits]
lower = 0                                 # to doctors in a year; more than one a week counts as 52
upper = 52
cuts = [1, 3, 6]
[columns.free]
levels = ["no", "yes"]                    # care was free, or the family paid a share
[columns.site]
levels = [1, 2, 3, 4, 5, 6]
[columns.female]
levels = [0, 1]
[columns.age]
lower = 0
upper = 65                                # nobody was older when it began, at most 62
cuts = [18, 40]

[[question]]
name = "which way"
task = "direction"
x = "coinsurance"
y = "visits"
epsilon = 0.75

[[question]]
name = "linked"
task = "ci_test"
x = "free"
y = "visits"
given = ["age"]
epsilon = 0.25

[[question]]
name = "graph"
task = "discover"
columns = ["free", "age", "female", "visits"]
epsilon = 0.25
# Plans were randomised, so nothing is a cause of having one; visits came after.
knowledge = { tiers = [["age", "female"], ["free"], ["visits"]], forbidden = [["age", "free"], ["female", "free"]] }

[[question]]
name = "how much"
task = "effect"
treatment = "free"
outcome = "visits"
adjust = ["site"]                         # lots were drawn within sites
epsilon = 0.75

[disclosure]
description = "The RAND Health Insurance Experiment, 1974 to 1982, asked as if its participants had to be protected."
curators = "Nobody: a demonstration of dpcausal on public data"
population = "Participants of the experiment at six sites, under 62 when it began."
intended_use = "To show what a study and its report look like."
region = "United States"
looked_at_before = "Everything: these data have been public for decades."
"""


def person_years() -> Any:
    """Return the experiment's 20,190 person-years of 5,912 persons as a pandas frame, with ``coinsurance``, ``visits``.

    From the raw file that statsmodels carries: its own loader drops the persons, ``zper``.  Other columns are as there.
    """
    try:
        import pandas
        from statsmodels.datasets import randhie
    except ImportError:
        raise MissingDependencyError("statsmodels", "demo") from None
    raw = pandas.read_csv(Path(randhie.__file__).parent / "src" / "randhie.csv")
    made = raw.assign(coinsurance=np.log1p(raw["coins"].to_numpy())).rename(columns={"mdvis": "visits", "xage": "age"})
    return made.assign(free=np.where(made["coins"] == 0, "yes", "no"))


def write(folder: str | os.PathLike[str]) -> Path:
    """Write data and study file into a folder, and return the study's path; a study that is there stays."""
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise ParameterError(f"{str(folder)!r} is a file: name a folder")
    place.mkdir(parents=True, exist_ok=True)
    columns = ["zper", "year", "site", "coinsurance", "free", "visits", "age", "female"]
    person_years()[columns].to_csv(place / "rand.csv", index=False)
    path = place / "study.toml"
    if not path.exists():
        path.write_text(STUDY, encoding="utf-8")
    return path


def run(folder: str | os.PathLike[str], progress: Progress | None = None) -> tuple[StudyPlan, Path]:
    """Write, run and report the study; a second run costs nothing.

    Returns
    -------
    StudyPlan, Path
        How its questions stand, and the report.
    """
    study = Study.open(write(folder))
    found = study.run(progress=progress, new_ledger=True)
    return found, study.report()


def compared(found: StudyPlan) -> list[str]:
    """Return the answers beside what the experiment's design says."""
    lines = []
    for one in found.standings:
        if isinstance(one.answer, Direction):
            leans = "no lean" if one.answer.favoured is None else f"leans to {one.answer.favoured}"
            lines.append(f"which way: {one.answer.answer()} ({leans}). The plans were randomised, so coinsurance.")
        if isinstance(one.answer, Effect) and one.answer.estimate is not None and one.answer.interval is not None:
            low, high = one.answer.interval
            exact = exact_difference()
            inside = "inside" if low <= exact <= high else "outside"
            lines.append(
                f"how much: {one.answer.estimate:+.2f} visits a year ({low:+.2f} to {high:+.2f}). All rows of this "
                f"public file, by site, without privacy: {exact:+.2f}, {inside}."
            )
    return lines


def exact_difference() -> float:
    """Return the mean difference in visits between free care and the rest, within sites, from the public file."""
    frame = person_years()
    frame["visits"] = frame["visits"].clip(0, 52)
    frame["share"] = 1 / frame.groupby("zper")["visits"].transform("size")  # persons weigh alike
    total = frame["share"].sum()
    difference = 0.0
    for _, site in frame.groupby("site"):
        means = {arm: np.average(rows["visits"], weights=rows["share"]) for arm, rows in site.groupby("free")}
        difference += site["share"].sum() / total * float(means["yes"] - means["no"])
    return difference
