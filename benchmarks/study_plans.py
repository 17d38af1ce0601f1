"""Plans of whole studies beside their runs: the time that ``plan`` takes, and whether its ranges hold what runs give.

Five studies as users write them: the demonstration, an observational cohort, a policy, a survey and a region.  A plan
sees the study file only.  Of each question with an interval the half-width is compared, group by group; of a test the
share of runs that reject.
"""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import dpcausal as dpc
from benchmarks.run import Report, benchmark
from dpcausal.datasets import load_rand
from dpcausal.demo import STUDY
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.study.status import plans_of
from dpcausal.study.wording import answers_of

Rng = np.random.Generator
MOST_SECONDS = 5.0


class Case(NamedTuple):
    """A study: its file, and rows for one run of it."""

    text: str
    draw: Callable[[Rng], dict[str, Any]]


def rand(rng: Rng) -> dict[str, Any]:
    """Persons of the experiment, drawn with replacement."""
    frame = load_rand()[["zper", "site", "coinsurance", "free", "visits", "female"]]
    persons = frame.groupby("zper").indices
    chosen = rng.choice(list(persons), len(persons))
    rows = np.concatenate([persons[one] for one in chosen])
    number = np.repeat(np.arange(len(chosen)), [len(persons[one]) for one in chosen])
    columns = {name: frame[name].to_numpy()[rows] for name in frame.columns}
    return columns | {"zper": number}


def cohort(rng: Rng) -> dict[str, Any]:
    n = 8_000
    age, weight = rng.gamma(9, 6, n).clip(18, 100), rng.normal(80, 15, n)
    programme = rng.random(n) < 1 / (1 + np.exp(0.4 - 0.02 * (age - 54)))
    pressure = 100 + 0.4 * age + 0.15 * weight - 4 * programme + rng.gamma(4, 7.5, n)
    named = np.where(programme, "yes", "no")
    return {"programme": named, "pressure": pressure.clip(80, 220), "age": age, "weight": weight.clip(40, 160)}


def policy(rng: Rng) -> dict[str, Any]:
    n = 3_000
    person, year = np.divmod(np.arange(4 * n), 4)
    since, woman = np.where(rng.random(n) < 0.35, 2022, 9999), rng.integers(0, 2, n)
    level = rng.lognormal(3.4, 0.25, n) - 3 * woman
    earnings = level[person] + 0.7 * year + 2.0 * (2020 + year >= since[person]) + rng.normal(0, 6, 4 * n)
    columns = {"id": person, "year": 2020 + year, "since": since[person], "woman": woman[person]}
    return columns | {"earnings": earnings.clip(0, 100)}


def survey(rng: Rng) -> dict[str, Any]:
    n = 6_000
    letter, school = rng.integers(0, 2, n), rng.choice(3, n, p=[0.3, 0.4, 0.3])
    trust = (rng.integers(0, 3, n) + (rng.random(n) < 0.3) * (school - 1)).clip(0, 2)
    vaccinated = (rng.random(n) < 0.22 + 0.06 * letter + 0.05 * trust).astype(np.int64)
    names = np.array(["low", "middle", "high"])
    region = np.array(["north", "south", "west"])[rng.integers(0, 3, n)]
    columns = {"letter": letter, "vaccinated": vaccinated, "region": region}
    return columns | {"school": names[school], "trust": names[trust]}


def region(rng: Rng) -> dict[str, Any]:
    """Regions that follow one wave with loadings that differ."""
    units, periods = 400, 13
    course = 20 * np.sin(np.arange(periods))
    sales = 100 + rng.uniform(-30, 30, (units, 1)) + rng.normal(1, 0.35, (units, 1)) * course
    sales += rng.normal(0, 6, (units, periods))
    sales[0] += 8 * (np.arange(periods) >= 10)
    unit, year = np.divmod(np.arange(units * periods), periods)
    return {"region": unit, "year": 2000 + year, "sales": sales.clip(0, 200).ravel()}


OF_FILES = {place.stem: place for place in sorted((Path(__file__).parent / "designs" / "studies").glob("*.toml"))}
CASES = {name: Case(OF_FILES.get(name, STUDY).read_text(encoding="utf-8"), draw) for name, draw in (
    ("demo", rand), ("cohort", cohort), ("policy", policy), ("survey", survey), ("region", region)
)}  # fmt: skip


def written(case: Case, folder: Path, seed: int) -> dpc.Study:
    """Write the study and rows of a run; a panel's ledger, which its plan needs, too."""
    import pandas as pd

    path = folder / "study.toml"
    path.write_text(case.text, encoding="utf-8")
    study = dpc.Study.open(path)
    pd.DataFrame(case.draw(generator_from_seed(seed))).to_csv(folder / study.file.data_file, index=False)
    if study.file.panel is not None:
        dpc.Ledger.create(study.ledger_path, budget=study.budget, **study.unit).close()
    return study


def measured(one: Any) -> Iterator[tuple[str, float]]:
    """Yield what a run gave of a question: half-widths, of everyone and of groups, or whether a test rejected."""
    for answer in answers_of(one.answer):
        if one.question.task == "discover":
            continue
        if one.question.task == "ci_test":
            yield "", float(answer.decision == "dependent")
            continue
        whole = answer.att if one.question.task == "did" else answer
        groups = getattr(answer, "by_group", ()) or ()
        for name, interval in [("everyone: " if groups else "", getattr(whole, "interval", None)),
                               *(("", group.interval) for group in groups)]:  # fmt: skip
            yield name, math.inf if interval is None else (interval[1] - interval[0]) / 2


@benchmark("planning", code="dpcausal.planning.plan", runs=40, studies=[],
           seeds="rows from generator_from_seed(run); noise of the operating system")  # fmt: skip
def main(report: Report) -> None:
    given, held, slow = report.given, list[float](), list[float]()
    for title in given.studies or CASES:
        case = CASES[title]
        found: dict[tuple[str, str], list[float]] = {}
        for run in range(given.runs + 1):
            with TemporaryDirectory() as made:
                study = written(case, Path(made), run)
                if run == 0:  # compiled code is loaded once
                    study.plan()
                    begun = time.process_time()
                    plan = study.plan()
                    seconds = time.process_time() - begun
                    subject = study._public_subject(study._opened() if study.file.panel is not None else None)
                    told = {
                        (one.question.name, part): assumed.expected(subject.n, one.question.loss())
                        for one in plan.questions for part, assumed in plans_of(one.question, study.schema, subject)
                    }  # fmt: skip
                    continue
                for one in study.run(new_ledger=True).questions:
                    for part, value in measured(one):
                        found.setdefault((one.question.name, part), []).append(value)
        slow.append(seconds)
        for key, values in found.items():
            forecast, is_test = told[key], set(values) <= {0.0, 1.0}
            seen = float(np.mean(values) if is_test else np.median(values))
            error = 2 / math.sqrt(given.runs) if is_test else 0.0  # of a share of so many runs
            compared = [seen] if is_test else values
            inside = [forecast.low - error <= value <= forecast.high + error for value in compared]
            metrics = {"planned": forecast.accuracy, "low": forecast.low, "high": forecast.high, "measured": seen,
                       "inside": float(np.mean(inside)), "seconds": seconds}  # fmt: skip
            report.add(f"{title}: {' '.join(filter(None, key)).strip(': ')}", metrics, runs=len(values),
                       note="" if np.mean(inside) >= 0.8 else "OUTSIDE")  # fmt: skip
            if not is_test:
                held.append(float(np.mean(inside)))
    report.target(f"each plan took at most {MOST_SECONDS:g} s of processor: {max(slow):.1f}", max(slow) <= MOST_SECONDS)
    report.target(f"ranges hold at least 80 % of the half-widths: {min(held):.0%} to 100 %", min(held) >= 0.8)
