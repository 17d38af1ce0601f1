"""The demonstration: a study of public health data, whose result without privacy is known.

The RAND Health Insurance Experiment assigned families to insurance plans at random within sites.
"""

import os
from importlib import resources
from pathlib import Path

import numpy as np

from dpcausal.datasets import load_rand
from dpcausal.effects.result import Effect
from dpcausal.errors import ParameterError
from dpcausal.result import number_text
from dpcausal.study.status import StudyPlan
from dpcausal.study.study import Progress, Study

STUDY = resources.files("dpcausal") / "demo.toml"
COLUMNS = ["zper", "year", "site", "coinsurance", "free", "visits", "age", "female"]


def write(folder: str | os.PathLike[str]) -> Path:
    """Write data and study file into a folder, and return the study's path; a study that is there stays."""
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise ParameterError(f"{str(folder)!r} is a file: name a folder", argument="folder", rule="folder")
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "rand.csv").exists():
        load_rand()[COLUMNS].to_csv(place / "rand.csv", index=False)
    path = place / "study.toml"
    if not path.exists():
        path.write_bytes(STUDY.read_bytes())
    return path


def run(folder: str | os.PathLike[str], progress: Progress | None = None) -> tuple[StudyPlan, Path]:
    """Write, run and report the study; a second run costs nothing.

    Returns
    -------
    StudyPlan, Path
        The state of its questions, and the report.
    """
    study = Study.open(write(folder))
    return study.run(progress=progress, new_ledger=True), study.report()


def compared(plan: StudyPlan) -> list[str]:
    """Return the effect, and beside it the effect without privacy."""
    lines = list[str]()
    for one in plan.questions:
        if isinstance(one.answer, Effect):
            lines += one.conclusions[:1]
            lines.append(f"Without privacy: {number_text(exact_difference()[0])}, possible here because the data are "
                         "public. About 1 run in 20 misses it.")  # fmt: skip
    return lines


def exact_difference() -> tuple[float, float]:
    """Return the mean difference in visits between free care and the rest within sites, and half its 95 % interval."""
    frame = load_rand()
    frame["visits"] = frame["visits"].clip(0, 52)
    persons = frame.groupby("zper").agg(visits=("visits", "mean"), free=("free", "first"), site=("site", "first"))
    size = variance = 0.0
    for _, site in persons.groupby("site"):
        share = len(site) / len(persons)
        arms = [site.loc[site["free"] == arm, "visits"].to_numpy() for arm in ("yes", "no")]
        size += share * float(arms[0].mean() - arms[1].mean())
        variance += share**2 * sum(float(arm.var(ddof=1)) / len(arm) for arm in arms)
    return size, float(1.96 * np.sqrt(variance))
