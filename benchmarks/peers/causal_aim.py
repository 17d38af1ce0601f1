"""Effects by the protocol of CAUSAL-AIM: the default beside CAUSAL-AIM and dpate.

The protocol is that of Asiaee & Aryan, Workload-Preserving Differentially Private Synthetic Data for Causal Inference
(UAI 2026), in github.com/AsiaeeLab/causal-aim at cdfa667: IHDP, Twins, ACIC 2016 and LaLonde; δ = 1/n²; the effect in
the sample is the truth.  IHDP has another outcome in each of ten runs, the other data vary by the noise alone.

Peers run if they can be imported: a checkout of that repository by the name ``causal_aim``, and dpate 0.0.1, whose
noise has no seed.  Neither keeps the loss that it states.  CAUSAL-AIM reads its bins and the outcome's spread off the
data without noise.  Dpate draws one number for all slopes of its treatment model and none for the intercept; one record
of 400 moves a slope by 160 times the bound that it states, and its mean over blocks can move by 1.2 times its bound.

Data: ``person/`` has IHDP and LaLonde.  ``twins_ganite.csv.gz`` is GANITE's Twin_data.csv.gz, ``acic_2016_dgp7.csv.gz``
z, y, y.0 and y.1 of aciccomp2016's ``dgp_2016(input_2016, parameters = 7, random.seed = 1)`` beside input_2016.
"""

import warnings
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

import dpcausal as dpc
from benchmarks.data import DataAbsentError, found
from benchmarks.designs import Reading
from benchmarks.run import Report, benchmark, mean, median, rms, share, summarised
from dpcausal.errors import InfeasibleError, ParameterError

Column = dpc.Bounded | dpc.Levels
YES, REPLICATES, LARGE = dpc.Levels([0, 1]), 10, 1_000
"""From ``LARGE`` rows on there is a quarter of the runs."""
OURS = {"RMSE": rms("error"), "coverage": mean("covers"), "shown": share("covers"), "half-width": median("width")}
PEERS = {
    "CAUSAL-AIM RMSE": rms("aim error"), "CAUSAL-AIM coverage": mean("aim covers"),
    "CAUSAL-AIM half-width": median("aim width"), "dpate aggregation RMSE": rms("blocks error"),
    "dpate NIPW RMSE": rms("weights error"), "RMSE of 0": rms("truth"),
}  # fmt: skip


class Data(NamedTuple):
    """Covariates, arm, outcome and the effect in the sample."""

    x: Any
    arm: Any
    y: Any
    truth: float


def ihdp(run: int) -> Data:
    frame = _read("ihdp_npci_1_10.csv.gz")
    frame = frame[frame["replicate"] == run % REPLICATES + 1].reset_index(drop=True)
    x = frame[[f"x{place}" for place in range(1, 26)]]
    return Data(x, frame["treatment"], frame["y_factual"], float((frame["mu1"] - frame["mu0"]).mean()))


def twins(run: int) -> Data:
    """Deaths in the first year; the heavier twin is the treated one, and seen by the protocol's draw."""
    frame = _read("twins_ganite.csv.gz").rename(columns=lambda name: name.strip("'’"))
    x, (low, high) = frame.iloc[:, :30], (frame[f"outcome(t={arm})"].to_numpy() < 9999 for arm in (0, 1))
    rng = np.random.RandomState(0)
    logit = x.to_numpy(dtype=float) @ rng.uniform(-0.01, 0.01, size=30) + rng.normal(0.0, 0.01, size=len(x))
    p = 1 / (1 + np.exp(-logit))
    arm = rng.binomial(1, np.minimum(p / (2 * p.mean()), 1.0))
    return Data(x, arm, np.where(arm, high, low), float(high.mean() - low.mean()))


def acic(run: int) -> Data:
    frame = _read("acic_2016_dgp7.csv.gz")
    x = frame[[f"x_{place}" for place in range(1, 59)]]
    return Data(x, frame["z"], frame["y"], float((frame["y.1"] - frame["y.0"]).mean()))


def lalonde(run: int) -> Data:
    """The trial's 445; the difference in means is the truth."""
    frame = _read("lalonde_nsw_dw.csv.gz")
    x, arm, y = frame.iloc[:, 2:-1], frame["treat"], frame["re78"]
    return Data(x, arm, y, float(y[arm == 1].mean() - y[arm == 0].mean()))


def _read(name: str) -> Any:
    return pd.read_csv(found("person", name))


def _numbers(names: str, low: float, high: float) -> dict[str, Column]:
    return dict.fromkeys(names.split(), dpc.Bounded(low, high))


class Case(NamedTuple):
    """Data and what is public: outcome, covariates (others as ``rest``), the outcome's scale, three to adjust for."""

    load: Callable[[int], Data]
    outcome: Column
    columns: dict[str, Column]
    rest: Column
    scale: tuple[float, float]
    three: str

    def schema(self, data: Data) -> dict[str, Column]:
        return {name: self.columns.get(name, self.rest) for name in data.x.columns}


CASES = {
    "IHDP": Case(ihdp, dpc.Bounded(-65, 89), _numbers("x1 x2 x3 x4 x5 x6", -6, 6) | {"x14": dpc.Levels([1, 2])}, YES,
                 (12.12, 15.43), "x1 x2 x3"),
    "Twins": Case(twins, YES, _numbers("dtotord cigar drink wtgain gestat dmage dmeduc mpcb nprevist", 0, 100)
                  | {"pldel": dpc.Levels([1, 2, 3, 4, 5]), "resstatb": dpc.Levels([1, 2, 3, 4]),
                     "adequacy": dpc.Levels([1, 2, 3])}, dpc.Levels([1, 2, 8]), (0.0, 1.0),
                  "gestat dmage wtgain"),
    "ACIC 2016, 7": Case(acic, dpc.Bounded(-29, 28), {f"x_{place}": dpc.Levels(list("ABCDEFGHIJKLMNOP"[:many]))
                         for place, many in ((2, 6), (21, 16), (24, 5))}, dpc.Bounded(0, 1_000), (-0.3167, 5.706),
                         "x_1 x_3 x_4"),
    "LaLonde": Case(lalonde, dpc.Bounded(0, 38_421), _numbers("age educ", 0, 60) | _numbers("re74 re75", 0, 40_000),
                    YES, (5300.763698561798, 6624.036389547076), "age educ re75"),
}  # fmt: skip
"""Outcomes have the range of the protocol, five of its standard deviations about its mean; earnings are not negative.
Covariates have round numbers that no value exceeds, and their code books' levels."""
CLIP, IMPUTATIONS, GROUPS, BINS, TIMES = 5.0, 20, 5, 5, 10
"""The protocol's options: of the outcome, and how many imputations, groups, bins and synthetic rows for each row."""


def ours(case: Case, run: int, loss: dpc.ApproxDP, adjust: list[str]) -> dict[str, float]:
    """The columns of the default's answer."""
    data = case.load(run)
    schema = {**case.schema(data), "arm": YES, "y": case.outcome}
    columns = {name: np.asarray(values) for name, values in [*data.x.items(), ("arm", data.arm), ("y", data.y)]}
    coded = {name: values.astype(int) for name, values in columns.items()
             if isinstance(schema[name], dpc.Levels) and values.dtype.kind in "fb"}  # fmt: skip
    table = dpc.Table(columns | coded, dpc.Schema(schema), dpc.Ledger.in_memory(loss))
    with dpc.simulated_noise(run):
        answer = dpc.effect(table, treatment="arm", outcome="y", adjust=adjust, loss=loss)
    return Reading(answer.estimate, answer.interval, data.truth).columns


def peers(case: Case, run: int, loss: dpc.ApproxDP) -> dict[str, float]:
    """The columns of the peers that are installed, and the error of an answer of 0."""
    data = case.load(run)
    arm, y, made = np.asarray(data.arm, dtype=int), np.asarray(data.y, dtype=float), {"truth": data.truth}
    if find_spec("causal_aim"):
        made |= _causal_aim(case, data, arm, y, loss, np.random.default_rng(run))
    if find_spec("dpate"):
        from dpate.estimators import dp_ate_by_aggregation, dp_nipw_sequential

        low, high = (0, 1) if isinstance(case.outcome, dpc.Levels) else (case.outcome.lower, case.outcome.upper)
        rows = _in_the_ball(case, data), arm, np.clip(y, low, high) - (low + high) / 2
        for name, estimator in (("blocks error", dp_ate_by_aggregation), ("weights error", dp_nipw_sequential)):
            with suppress(ValueError):  # a block has one arm only
                made[name] = float(estimator(*rows, (high - low) / 2, loss.epsilon)) - data.truth
    return made


def _causal_aim(case: Case, data: Data, arm: Any, y: Any, loss: dpc.ApproxDP, rng: Any) -> dict[str, float]:
    from causal_aim.baselines import run_causal_aim_na_mi
    from causal_aim.workloads import prepare_workload_features

    (middle, scale), of = case.scale, prepare_workload_features(pd.get_dummies(data.x).astype(float), bins=BINS)
    with redirect_stdout(None):
        one = run_causal_aim_na_mi(
            of.phi, of.feature_names, of.groups, of.X_discrete, arm, np.clip((y - middle) / scale, -CLIP, CLIP),
            loss.epsilon, loss.delta, TIMES * len(y), CLIP, IMPUTATIONS, GROUPS, rng,
        )  # fmt: skip
    estimate, low, high = (scale * float(value) for value in (one.tau_hat, one.ci_low, one.ci_high))
    return {f"aim {name}": value for name, value in Reading(estimate, (low, high), data.truth).columns.items()}


def _in_the_ball(case: Case, data: Data) -> Any:
    """The covariates in [−1, 1] by what is public of them, shortened so that no row is longer than 1."""
    units = []
    for name, column in case.schema(data).items():
        values = data.x[name].to_numpy()
        if isinstance(column, dpc.Bounded):
            units.append(np.clip((values - column.midpoint) / (column.width / 2), -1, 1))
        else:
            units += [2.0 * (values == level) - 1 for level in column.values[1:]]
    return np.column_stack(units) / np.sqrt(len(units))


@benchmark("peers", code="dpcausal.effects.api", designs=list(CASES), epsilons=[1.0, 5.0, 0.5, 2.0], runs=20, jobs=1)
def main(report: Report) -> None:
    given = report.given
    warnings.simplefilter("ignore")
    for epsilon, design in product(given.epsilons, given.designs):
        case = CASES[design]
        try:
            first = case.load(0)
        except DataAbsentError as absent:
            print(f"skipped: {absent}")
            continue
        n = len(first.y)
        loss, runs = dpc.ApproxDP(epsilon, 1 / n**2), given.runs if n < LARGE else max(given.runs // 4, 1)
        theirs = Parallel(given.jobs)(delayed(peers)(case, run, loss) for run in range(runs))
        for words, adjust in {"unadjusted": [], "three": case.three.split(), "all": list(first.x)}.items():
            lines, note = [{} for _ in theirs], ""
            try:
                lines = [ours(case, run, loss, adjust) for run in range(runs)]
            except (InfeasibleError, ParameterError) as refusal:
                note = f"refused before the spend: {str(refusal).rsplit(': ', 1)[-1]}"
            made = summarised([one | two for one, two in zip(lines, theirs, strict=True)], OURS | PEERS)
            report.add(design, made, n=n, epsilon=epsilon, delta=loss.delta, runs=runs, note=note,
                       reading=words if not adjust else f"adjusted for {words}")  # fmt: skip
            (least, _), (most, _) = made["RMSE"], made["CAUSAL-AIM RMSE"]
            if not (np.isnan(least) or np.isnan(most)):
                text = f"{design}, ε = {epsilon:g}, {words}: RMSE {least:.3g}, CAUSAL-AIM {most:.3g}"
                report.target(text, least <= most)
