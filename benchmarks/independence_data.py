"""Real data: does sex matter for income given work (Adult), and the paper's concrete.

Reads ``person/adult.csv.gz`` and ``concrete/concrete.csv`` from the folder of real data.
"""

from __future__ import annotations

import csv
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.data import text
from benchmarks.run import Report, mean, median, options, summarised

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
SUMMARY = {"dependent": mean("dependent"), "median p": median("p")}
WORK = ["age", "educ-num", "hrs-wk", "occup"]

CONCRETE = {
    "cement": (0, 600), "slag": (0, 400), "fly_ash": (0, 250), "water": (100, 300), "superplasticizer": (0, 40),
    "coarse_agg": (700, 1200), "fine_agg": (500, 1000), "age_day": (0, 400), "strength_mpa": (0, 100),
}  # fmt: skip
"""Public ranges of such mixtures, kg/m³, days and MPa."""


def read(schema: dpc.Schema, *parts: str) -> dict[str, Any]:
    """The columns of a schema from a CSV file."""
    rows = list(csv.DictReader(text(*parts).splitlines()))
    return {
        name: np.array([row[name] for row in rows], dtype=np.float64 if isinstance(column, dpc.Bounded) else object)
        for name, column in schema.items()
    }


def main(arguments: list[str], name: str = "independence_data", **changed: Any) -> int:
    given = options(__doc__, arguments, **{"runs": 20} | changed)
    report = Report(name, "independence", given, arguments)
    mixtures = dpc.Schema({name: dpc.Bounded(*ends) for name, ends in CONCRETE.items()})
    adult, concrete = read(ADULT, "person", "adult.csv.gz"), read(mixtures, "concrete", "concrete.csv")
    questions: list[Any] = [("Adult", adult, ADULT, *one, [("auto", 0.1), ("auto", 0.5), ("auto", 1.0)]) for one in (
        ("sex", "Income", WORK), ("sex", "Income", [*WORK, "mar-stat"]), ("hrs-wk", "mar-stat", ["age", "sex"])
    )]  # fmt: skip
    columns, printed = [name for name in CONCRETE if name != "strength_mpa"], dpc.papers.PrivGcm()
    questions += [
        ("Concrete", concrete, mixtures, x, "strength_mpa", [name for name in columns if name != x],
         [("gcm", None), ("gcm", 1.0), ("gcm", 4.0), (printed, 4.0), (printed, 10.0)]) for x in columns
    ]  # fmt: skip
    for data, frame, schema, x, y, others, ways in questions:
        for method, epsilon in ways:
            loss: Any = dpc.NoPrivacy() if epsilon is None else dpc.PureDP(epsilon)
            rows, runs = [], given.runs if epsilon else 1
            for seed in range(runs):
                ledger = dpc.Ledger.in_memory(loss) if epsilon else dpc.Ledger.without_privacy()
                table = dpc.Table(frame, schema, ledger, missing="impute")
                with dpc.simulated_noise(seed):
                    found = dpc.ci_test(table, x, y, given=others, loss=loss, method=method, alpha=0.05)
                rows.append({"dependent": float(found.decision == "dependent"), "p": found.pvalue or np.nan})
            report.add(f"{data}: {x}, {y} | {', '.join(others)}", summarised(rows, SUMMARY), n=len(frame[x]), runs=runs,
                       epsilon=epsilon, method=getattr(method, "name", method))  # fmt: skip
    return report.finish()
