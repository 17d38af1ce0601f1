"""Effects in real studies: a trial, its treated against a survey, weight after smoking, and one made like a third.

    python -m benchmarks effects_real                      100 draws of the noise each
    python -m benchmarks effects_real --resamples 300      of weight after smoking, also of its rows

Noise is the root mean square of the distance to the answer without privacy on the same rows, RMSE that to the answer of
the trial; coverage is of the latter.  Of rows drawn with replacement the truth is the answer without privacy of all.
"""

from __future__ import annotations

import csv
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.data import text
from benchmarks.designs import table
from benchmarks.run import Report, mean, options, rms, share, summarised
from dpcausal.errors import InfeasibleError

COVARIATES = ("age", "educ", "black", "hisp", "marr", "nodegree")
FLAG = dpc.Levels([0, 1])


def read(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text("person", f"{name}.csv.gz").splitlines()))


def column(rows: list[dict[str, str]], name: str, whole: bool = False) -> Any:
    values = np.array([float(row[name] or "nan") for row in rows])
    return values.astype(int) if whole else values


def training(rows: list[dict[str, str]], most: float, adjust: tuple[str, ...]) -> tuple[Any, Any, dict[str, Any]]:
    """Return columns, schema and question of earnings after training, clipped to a public most."""
    columns = {name: column(rows, name, True) for name in ("treat", *COVARIATES)}
    columns |= {name: column(rows, name) for name in ("re74", "re75", "re78")}
    schema = dict.fromkeys(("treat", "black", "hisp", "marr", "nodegree"), FLAG)
    schema |= {"age": dpc.Bounded(16, 56), "educ": dpc.Bounded(0, 18)}
    schema |= dict.fromkeys(("re74", "re75", "re78"), dpc.Bounded(0, most))
    return columns, schema, {"treatment": "treat", "outcome": "re78", "adjust": adjust}


def smoking(adjust: tuple[str, ...]) -> tuple[Any, Any, dict[str, Any]]:
    """Return those of weight gained, kg, where smoking was given up; rows without the outcome are left out."""
    rows = read("nhefs")
    bounds = {"age": (25, 74), "wt71": (35, 170), "smokeintensity": (0, 80), "smokeyrs": (0, 65), "wt82_71": (-42, 50)}
    columns: dict[str, Any] = {name: column(rows, name) for name in bounds}
    columns |= {name: column(rows, name, True) for name in ("qsmk", "sex", "race", "exercise", "active", "education")}
    schema: dict[str, Any] = {name: dpc.Bounded(*ends) for name, ends in bounds.items()}
    schema |= dict.fromkeys(("qsmk", "sex", "race"), FLAG)
    schema |= {"exercise": dpc.Levels([0, 1, 2]), "active": dpc.Levels([0, 1, 2]), "education": dpc.Levels(range(1, 6))}
    # The change of an adult's weight over ten years has no long tail on one side.
    question = {"treatment": "qsmk", "outcome": "wt82_71", "adjust": adjust}
    return columns, schema, question | {"method": dpc.methods.Aipw(light_tails=True)}


def lost_to_follow_up(n: int = 2_800) -> tuple[Any, Any, dict[str, Any]]:
    """Return a made trial like that of Thornton (2008): who is paid learns a result more often; 40 % of the treatments
    are missing, by district, which also goes with learning it.  The effect is 0.45."""
    rng = np.random.default_rng(8)
    district = rng.integers(0, 3, n)
    paid = rng.random(n) < 0.78
    learnt = rng.random(n) < 0.25 + 0.05 * district + 0.45 * paid
    known = rng.random(n) >= 0.25 + 0.15 * district
    columns = {"paid": np.where(known, paid.astype(int), None), "district": district, "learnt": learnt.astype(int)}
    schema = {"paid": FLAG, "learnt": FLAG, "district": dpc.Levels([0, 1, 2])}
    return columns, schema, {"treatment": "paid", "outcome": "learnt", "adjust": ["district"]}


def ask(study: tuple[Any, Any, dict[str, Any]], loss: Any, rows: Any = None) -> Any:
    columns, schema, question = study
    drawn = columns if rows is None else {name: values[rows] for name, values in columns.items()}
    return dpc.effect(table(drawn, schema, loss, missing="drop"), **question, loss=loss, accept_large_epsilon=True)


def noisy(
    report: Report, title: str, study: tuple[Any, Any, dict[str, Any]], loss: Any, runs: int, aim: float | None = None,
    resample: bool = False,
) -> None:  # fmt: skip
    """Add a line of draws of the noise, or of rows drawn from the study's with replacement and the noise."""
    if resample:
        whole = ~np.isnan(study[0][study[2]["outcome"]])
        study = {name: values[whole] for name, values in study[0].items()}, *study[1:]
    plain, rng, rows = ask(study, dpc.NoPrivacy()), np.random.default_rng(7), []
    aim = plain.estimate if aim is None else aim
    where = {"epsilon": loss.epsilon, "delta": getattr(loss, "delta", 0.0), "runs": runs}
    try:
        for seed in range(runs):
            n = len(next(iter(study[0].values())))
            drawn = rng.integers(0, n, n) if resample else None
            with dpc.simulated_noise(seed):
                found = ask(study, loss, drawn)
            columns = {} if found.estimate is None else {"noise": found.estimate - plain.estimate,
                                                         "error": found.estimate - aim}  # fmt: skip
            if found.interval is not None:
                low, high = found.interval
                columns |= {"covers": float(low <= aim <= high), "width": (high - low) / 2}
            rows.append(columns)
    except InfeasibleError as error:
        report.add(title, {}, method="auto", note=f"refused before the spend: {error}", **where)
        return
    report.add(title, summarised(rows, SUMMARY), method=found.method, **where)


SUMMARY = {"noise": rms("noise"), "RMSE": rms("error"), "half-width": mean("width"), "coverage": mean("covers"),
           "shown": share("covers")}  # fmt: skip


def main(arguments: list[str], name: str = "effects_real", **changed: Any) -> int:
    given = options(__doc__, arguments, **{"runs": 100, "resamples": 0} | changed)
    report, runs = Report(name, "effects", given, arguments), given.runs
    nsw = read("lalonde_nsw_dw")
    first = training(nsw, 60_000, ())
    aim = float(np.mean(first[0]["re78"][first[0]["treat"] == 1]) - np.mean(first[0]["re78"][first[0]["treat"] == 0]))
    for most in (60_000, 30_000):
        for epsilon in (0.5, 1, 4):
            noisy(report, f"NSW, earnings up to {most}", training(nsw, most, ()), dpc.PureDP(epsilon), runs, aim)
    treated = int(first[0]["treat"].sum())
    sizes = {"method": dpc.methods.RandomizedTrial(sizes=[len(nsw) - treated, treated])}
    for epsilon in (0.5, 1, 4):
        noisy(report, "NSW, arms of public sizes", (*first[:2], first[2] | sizes), dpc.PureDP(epsilon), runs, aim)
    both = [row for row in nsw if float(row["treat"])] + read("lalonde_cps_controls")
    survey = training(both, 60_000, (*COVARIATES, "re74", "re75"))
    for epsilon in (1, 4, 16):
        noisy(report, "NSW treated + CPS", survey, dpc.ApproxDP(epsilon, 1e-6), runs, aim)
    few = ("sex", "race", "age", "smokeintensity", "smokeyrs", "wt71")
    for epsilon in (4, 8) if given.resamples else ():
        noisy(report, "NHEFS, 6 adjusted for, rows resampled", smoking(few), dpc.ApproxDP(epsilon, 1e-6),
              given.resamples, resample=True)  # fmt: skip
    for epsilon in (1, 2, 4, 8):
        noisy(report, "NHEFS, 6 adjusted for", smoking(few), dpc.ApproxDP(epsilon, 1e-6), runs)
        nine = smoking((*few, "education", "exercise", "active"))
        noisy(report, "NHEFS, 9 adjusted for", nine, dpc.ApproxDP(epsilon, 1e-6), runs)
    for epsilon in (0.5, 1):
        noisy(report, "made like Thornton's, 40 % missing", lost_to_follow_up(), dpc.PureDP(epsilon), runs, 0.45)
    return report.finish()

