"""Effects in real studies: a trial, its treated against a survey, weight after smoking, and one made like a third.

    python -m benchmarks effects_real                      100 draws of the noise each
    python -m benchmarks effects_real --resamples 300      of weight after smoking, also of its rows

Of each: the answer without privacy and its standard error; of the noisy ones the root mean square of the noise, of the
distance to the first answer, the mean half-width, how often the interval holds that answer and how often there is one.
Of rows drawn from the study's with replacement the answer without privacy of all rows is the truth.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.pairs import DATA, DataAbsentError
from dpcausal.errors import InfeasibleError

COVARIATES = ("age", "educ", "black", "hisp", "marr", "nodegree")
FLAG = dpc.Levels([0, 1])


def read(name: str) -> list[dict[str, str]]:
    path = Path(DATA) / "person" / f"{name}.csv.gz"
    if not path.is_file():
        raise DataAbsentError(f"{path} is absent: set DPCAUSAL_DATA to the folder of real data")
    return list(csv.DictReader(io.StringIO(gzip.decompress(path.read_bytes()).decode())))


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
    return columns, dpc.Schema(schema), {"treatment": "treat", "outcome": "re78", "adjust": adjust}


def smoking(adjust: tuple[str, ...]) -> tuple[Any, Any, dict[str, Any]]:
    """Return those of weight gained, kg, where smoking was given up; rows that lack the outcome are left out."""
    rows = read("nhefs")
    bounds = {"age": (25, 74), "wt71": (35, 170), "smokeintensity": (0, 80), "smokeyrs": (0, 65), "wt82_71": (-42, 50)}
    columns: dict[str, Any] = {name: column(rows, name) for name in bounds}
    columns |= {name: column(rows, name, True) for name in ("qsmk", "sex", "race", "exercise", "active", "education")}
    schema: dict[str, Any] = {name: dpc.Bounded(*ends) for name, ends in bounds.items()}
    schema |= dict.fromkeys(("qsmk", "sex", "race"), FLAG)
    schema |= {"exercise": dpc.Levels([0, 1, 2]), "active": dpc.Levels([0, 1, 2]), "education": dpc.Levels(range(1, 6))}
    # The change of an adult's weight over ten years has no long tail on one side.
    question = {"treatment": "qsmk", "outcome": "wt82_71", "adjust": adjust}
    return columns, dpc.Schema(schema), question | {"method": dpc.methods.Aipw(light_tails=True)}


def lost_to_follow_up(n: int = 2_800) -> tuple[Any, Any, dict[str, Any]]:
    """Return a made trial like that of Thornton (2008): who is paid learns a result more often; 40 % of the treatments
    are missing, by district, which also goes with learning it.  The effect is .45."""
    rng = np.random.default_rng(8)
    district = rng.integers(0, 3, n)
    paid = rng.random(n) < 0.78
    learnt = rng.random(n) < 0.25 + 0.05 * district + 0.45 * paid
    told = rng.random(n) >= 0.25 + 0.15 * district
    columns = {"paid": np.where(told, paid.astype(int), None), "district": district, "learnt": learnt.astype(int)}
    schema = dpc.Schema({"paid": FLAG, "learnt": FLAG, "district": dpc.Levels([0, 1, 2])})
    return columns, schema, {"treatment": "paid", "outcome": "learnt", "adjust": ["district"]}


def told(title: str, study: tuple[Any, Any, dict[str, Any]], loss: Any, runs: int, first: float | None = None) -> None:
    columns, schema, question = study

    def ask(loss: Any) -> Any:
        private = not isinstance(loss, dpc.NoPrivacy)
        ledger = dpc.Ledger.in_memory(loss, accept_large_epsilon=True) if private else dpc.Ledger.without_privacy()
        table = dpc.Table(columns, schema, ledger, missing="drop")
        return dpc.effect(table, **question, loss=loss, accept_large_epsilon=True)

    plain = ask(dpc.NoPrivacy())
    aim = plain.estimate if first is None else first
    answer = "no answer" if plain.estimate is None else f"{plain.estimate:.4g}"
    answer += "" if plain.standard_error is None else f" ({plain.standard_error:.3g})"
    print(f"{title}, {loss}: without privacy {answer}", flush=True)
    found = []
    try:
        for seed in range(runs):
            with dpc.simulated_noise(seed):
                found.append(ask(loss))
    except InfeasibleError as error:
        print(f"  refused before the spend: {error}", flush=True)
        return
    shown = [one.interval for one in found if one.interval is not None]
    some = [one.estimate for one in found if one.estimate is not None]
    if some:
        noise, error = (math.sqrt(float(np.mean(np.subtract(some, one) ** 2))) for one in (plain.estimate, aim))
        print(f"  {found[0].method}: noise {noise:.4g}, distance to {aim:.4g} {error:.4g}", end="")
    half = float(np.mean([high - low for low, high in shown])) / 2 if shown else math.nan
    held = float(np.mean([low <= aim <= high for low, high in shown])) if shown else math.nan
    reasons = {re.sub(r" \(.*?\)", "", one.interval_reason) for one in found if one.interval is None}
    rest = f"holds it in {held:.2f}, shown in {len(shown) / runs:.2f}"
    if found[0].method == "aipw":
        rest += f", signal to noise {np.median([one.signal_to_noise for one in found]):.2f}"
        rest += "".join(f" ({caveat})" for caveat in found[0].guarantee.caveats if "foretell" in caveat)
    print(f"  half-width {half:.4g}, {rest}", *sorted(reasons), flush=True)


def resampled(study: tuple[Any, Any, dict[str, Any]], epsilon: float, runs: int) -> None:
    """Print how often intervals of rows that are drawn from the study's hold its answer."""
    columns, schema, question = study
    whole = ~np.isnan(columns[question["outcome"]])
    columns, rng = {name: values[whole] for name, values in columns.items()}, np.random.default_rng(7)
    plain = dpc.Table(columns, schema, dpc.Ledger.without_privacy())
    truth, found = dpc.effect(plain, **question, loss=dpc.NoPrivacy()).estimate, []
    for seed in range(runs):
        drawn = rng.integers(0, plain.n, plain.n)
        rows = {name: values[drawn] for name, values in columns.items()}
        loss = dpc.ApproxDP(epsilon, 1e-6)
        with dpc.simulated_noise(seed):
            table = dpc.Table(rows, schema, dpc.Ledger.in_memory(loss, accept_large_epsilon=True))
            found.append(dpc.effect(table, **question, loss=loss, accept_large_epsilon=True))
    shown = [one.interval for one in found if one.interval is not None]
    held = np.mean([low <= truth <= high for low, high in shown])
    error = math.sqrt(float(np.mean([(one.estimate - truth) ** 2 for one in found if one.estimate is not None])))
    half = np.mean([high - low for low, high in shown]) / 2
    print(f"  rows drawn again {runs} times: error {error:.3g}, half-width {half:.3g}, "
          f"holds it in {held:.3f} of {len(shown)} shown", flush=True)  # fmt: skip


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=100)
    options.add_argument("--resamples", type=int, default=0)
    asked = options.parse_args(arguments)
    runs = asked.runs
    nsw = read("lalonde_nsw_dw")
    first = training(nsw, 60_000, ())
    aim = float(np.mean(first[0]["re78"][first[0]["treat"] == 1]) - np.mean(first[0]["re78"][first[0]["treat"] == 0]))
    for most in (60_000, 30_000):
        for epsilon in (0.5, 1, 4):
            told(f"NSW, earnings up to {most}", training(nsw, most, ()), dpc.PureDP(epsilon), runs, aim)
    treated = int(first[0]["treat"].sum())
    sizes = {"method": dpc.methods.Assigned(sizes=[len(nsw) - treated, treated])}
    for epsilon in (0.5, 1, 4):
        told("NSW, arms of public sizes", (*first[:2], first[2] | sizes), dpc.PureDP(epsilon), runs, aim)
    both = [row for row in nsw if float(row["treat"])] + read("lalonde_cps_controls")
    survey = training(both, 60_000, (*COVARIATES, "re74", "re75"))
    for epsilon in (1, 4, 16):
        told("NSW treated + CPS", survey, dpc.ApproxDP(epsilon, 1e-6), runs, aim)
    few = ("sex", "race", "age", "smokeintensity", "smokeyrs", "wt71")
    for epsilon in (4, 8) if asked.resamples else ():
        print(f"NHEFS, 6 adjusted for, epsilon {epsilon}")
        resampled(smoking(few), epsilon, asked.resamples)
    for epsilon in (1, 2, 4, 8):
        told("NHEFS, 6 adjusted for", smoking(few), dpc.ApproxDP(epsilon, 1e-6), runs)
        told("NHEFS, 9 adjusted for", smoking((*few, "education", "exercise", "active")),
             dpc.ApproxDP(epsilon, 1e-6), runs)  # fmt: skip
    for epsilon in (0.5, 1):
        told("made like Thornton's, 40 % missing", lost_to_follow_up(), dpc.PureDP(epsilon), runs, 0.45)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
