"""Real data: does sex matter for income once work is known (Adult), and the paper's concrete.

    python -m benchmarks independence_data [repetitions]

Reads ``person/adult.csv.gz`` and ``concrete/concrete.csv`` from the folder of real data, ``../shared/data`` beside the
repository or ``$DPCAUSAL_DATA``.
"""

from __future__ import annotations

import csv
import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.pairs import DATA, DataAbsentError

ADULT = dpc.Schema(
    {
        "sex": dpc.Levels(["Female", "Male"]),
        "Income": dpc.Levels(["<=50K", ">50K"]),
        "age": dpc.Bounded(17, 90),
        "educ-num": dpc.Bounded(1, 16),
        "hrs-wk": dpc.Bounded(0, 100),
        "mar-stat": dpc.Levels(
            ["Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent", "Never-married",
             "Separated", "Widowed"]
        ),
        "occup": dpc.Levels(
            ["Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing", "Handlers-cleaners",
             "Machine-op-inspct", "Other-service", "Priv-house-serv", "Prof-specialty", "Protective-serv", "Sales",
             "Tech-support", "Transport-moving"], other="unknown"
        ),
    }
)  # fmt: skip
WORK = ["age", "educ-num", "hrs-wk", "occup"]

CONCRETE = {
    "cement": (0, 600), "slag": (0, 400), "fly_ash": (0, 250), "water": (100, 300), "superplasticizer": (0, 40),
    "coarse_agg": (700, 1200), "fine_agg": (500, 1000), "age_day": (0, 400), "strength_mpa": (0, 100),
}  # fmt: skip
"""Public ranges of such mixtures, kg/m³, days and MPa."""


def read(path: Path, schema: dpc.Schema) -> dict[str, Any]:
    """Return the columns of a schema from a CSV file."""
    if not path.exists():
        raise DataAbsentError(f"{path} is absent: set DPCAUSAL_DATA to the folder of real data")
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    rows = list(csv.DictReader(text.splitlines()))
    return {
        name: np.array([row[name] for row in rows], dtype=np.float64 if isinstance(column, dpc.Bounded) else object)
        for name, column in schema.items()
    }


def adult(repetitions: int) -> None:
    frame = read(DATA / "person" / "adult.csv.gz", ADULT)
    print(f"Adult, {len(frame['age']):,d} people: is income linked to sex, given {', '.join(WORK)}?\n")
    questions: list[tuple[str, str, list[str]]] = [
        ("sex", "Income", WORK), ("sex", "Income", [*WORK, "mar-stat"]), ("hrs-wk", "mar-stat", ["age", "sex"]),
    ]  # fmt: skip
    for x, y, given in questions:
        for epsilon in (0.1, 0.5, 1.0):
            found = []
            for seed in range(repetitions):
                table = dpc.Table(frame, ADULT, dpc.Ledger.in_memory(dpc.PureDP(epsilon)), missing="impute")
                with dpc.simulated_noise(seed):
                    found.append(dpc.ci_test(table, x, y, given=given, loss=dpc.PureDP(epsilon)))
            pvalues = np.array([one.pvalue for one in found])
            print(
                f"{x}, {y} | {', '.join(given):<44} epsilon = {epsilon:<4g} dependent {np.mean(pvalues <= 0.05):.2f} "
                f"of {repetitions}, median p = {np.median(pvalues):.2g}, {found[0].settings['blocks']} blocks",
                flush=True,
            )


def concrete(repetitions: int) -> None:
    schema = dpc.Schema({name: dpc.Bounded(*ends) for name, ends in CONCRETE.items()})
    frame = read(DATA / "concrete" / "concrete.csv", schema)
    print(f"\nConcrete, {len(frame['cement']):,d} mixtures: strength, each column, given the others; share rejected\n")
    columns = [name for name in CONCRETE if name != "strength_mpa"]
    print(f"{'column':<18}{'gcm, exact':>12}" + "".join(f"{label:>22}" for label in (
        "gcm, eps 1", "gcm, eps 4", "PrivGCM, eps 4", "PrivGCM, eps 10",
    )))  # fmt: skip
    printed = dpc.papers.PrivGcm()
    ways: list[tuple[Any, float]] = [("gcm", 1), ("gcm", 4), (printed, 4), (printed, 10)]
    for x in columns:
        given = [name for name in columns if name != x]
        table = dpc.Table(frame, schema, dpc.Ledger.without_privacy(), missing="impute")
        exact = dpc.ci_test(table, x, "strength_mpa", given=given, loss=dpc.NoPrivacy())
        line = f"{x:<18}{'p = ' + format(exact.pvalue, '.2g'):>12}"
        for method, epsilon in ways:
            loss, rejected = dpc.PureDP(epsilon), 0
            for seed in range(repetitions):
                table = dpc.Table(frame, schema, dpc.Ledger.in_memory(loss), missing="impute")
                with dpc.simulated_noise(seed):
                    answer = dpc.ci_test(table, x, "strength_mpa", given=given, loss=loss, method=method)
                rejected += answer.decision == "dependent"
            line += f"{rejected / repetitions:>22.2f}"
        print(line, flush=True)


def main(arguments: list[str]) -> int:
    """Return 0; 2 if the data are absent."""
    repetitions = int(arguments[0]) if arguments else 20
    try:
        adult(repetitions)
        concrete(repetitions)
    except DataAbsentError as error:
        print(error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
