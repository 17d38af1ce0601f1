"""The private questions of the textbook benchmark: each returns its number and its interval, or ``None``."""

from collections.abc import Callable
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.peers import textbook_data as data

Asked = tuple[float, tuple[float, float] | None]


def ledger_of(loss: Any, **protects: str) -> dpc.Ledger:
    is_exact = isinstance(loss, dpc.NoPrivacy)
    return dpc.Ledger.without_privacy() if is_exact else dpc.Ledger.in_memory(loss, **protects)


def shown(one: Any) -> Asked:
    return one.estimate, one.interval


def _inspections() -> Any:
    return data.shipped("causaldata", "restaurant_inspections")


def _years(loss: Any, seed: int) -> Asked:
    """The slope of the year in the score of restaurant inspections, beside the weekend."""
    frame = _inspections()
    columns = {"score": frame["inspection_score"].to_numpy(dtype=float), "year": frame["Year"].to_numpy(dtype=float),
               "weekend": frame["Weekend"].to_numpy(dtype=float)}  # fmt: skip
    schema = dpc.Schema({"score": dpc.Bounded(60, 100), "year": dpc.Bounded(2000, 2019), "weekend": dpc.Bounded(0, 1)})
    table = dpc.Table(columns, schema, ledger_of(loss))
    with dpc.simulated_noise(seed):
        moments = dpc.moments(table, ["score", "year", "weekend"], loss=loss, robust_for=("score", ["year", "weekend"]))
    return shown(moments.ols("score", ["year", "weekend"])["year"])


def _home(loss: Any, seed: int) -> Asked:
    """Home ownership by military service, whites and others apart: the sums of 214,144 mortgages' cells."""
    frame = data.shipped("causaldata", "mortgages")
    columns = {"own": frame["home_ownership"].to_numpy().astype(int), "vet": frame["vet_wwko"].to_numpy().astype(int),
               "nonwhite": frame["nonwhite"].to_numpy().astype(int)}  # fmt: skip
    schema = dpc.Schema(dict.fromkeys(columns, dpc.Levels([0, 1])))
    table = dpc.Table(columns, schema, ledger_of(loss))
    with dpc.simulated_noise(seed):
        return shown(dpc.effect(table, treatment="vet", outcome="own", adjust=["nonwhite"], loss=loss))


def _own(loss: Any, seed: int) -> Asked:
    """The slope of military service in home ownership, beside race."""
    frame = data.shipped("causaldata", "mortgages")
    columns = {"own": frame["home_ownership"].to_numpy(dtype=float), "vet": frame["vet_wwko"].to_numpy(dtype=float),
               "nonwhite": frame["nonwhite"].to_numpy(dtype=float)}  # fmt: skip
    table = dpc.Table(columns, dpc.Schema(dict.fromkeys(columns, dpc.Bounded(0, 1))), ledger_of(loss))
    with dpc.simulated_noise(seed):
        moments = dpc.moments(table, list(columns), loss=loss, robust_for=("own", ["vet", "nonwhite"]))
    return shown(moments.ols("own", ["vet", "nonwhite"])["vet"])


def _results(loss: Any, seed: int) -> Asked:
    """Whether people fetched their HIV result by whether they drew any incentive."""
    frame, *_ = data.trial("thornton")
    columns = {"got": frame["got"].to_numpy().astype(int), "any": frame["any"].to_numpy()}
    table = dpc.Table(columns, dpc.Schema(dict.fromkeys(columns, dpc.Levels([0, 1]))), ledger_of(loss))
    with dpc.simulated_noise(seed):
        return shown(dpc.effect(table, treatment="any", outcome="got", adjust=[], loss=loss))


def _house(loss: Any, seed: int) -> Asked:
    """The jump of a representative's score at half of the votes."""
    x, y, bounds = data.cutoff("house")
    schema = dpc.Schema({"x": dpc.Levels(list(range(-50, 51))), "y": bounds})
    table = dpc.Table({"x": x, "y": y}, schema, ledger_of(loss))
    with dpc.simulated_noise(seed):
        found = dpc.discontinuity(table, running="x", outcome="y", cutoff=0, bandwidth=20.0, curvature=0.05, loss=loss)
    return found.estimate, found.interval


def _service(loss: Any, seed: int) -> Asked:
    """Home ownership by military service, with the quarter of birth about the change of the draft as instrument."""
    frame = data.shipped("causaldata", "mortgages")
    near = frame[np.abs(frame["qob_minus_kw"]) <= 12]
    columns = {"own": near["home_ownership"].to_numpy(dtype=float), "vet": near["vet_wwko"].to_numpy(dtype=float),
               "late": (near["qob_minus_kw"] > 0).to_numpy(dtype=float)}  # fmt: skip
    table = dpc.Table(columns, dpc.Schema(dict.fromkeys(columns, dpc.Bounded(0, 1))), ledger_of(loss))
    with dpc.simulated_noise(seed):
        moments = dpc.moments(table, list(columns), loss=loss)
    return shown(moments.iv("own", "vet", instruments=["late"], errors="homoscedastic").coefficients[0])


def _gonorrhea(loss: Any, seed: int) -> Asked:
    """Differences in differences of gonorrhea by early legal abortion: states, ages, sexes and races as units."""
    frame = data.shipped("causaldata", "abortion").dropna(subset=["ir"])
    unit = frame.groupby(["fip", "age", "race", "sex"]).ngroup().to_numpy()
    rate = np.log1p(frame["ir"].to_numpy(dtype=float))
    columns = {"unit": unit, "year": frame["year"].to_numpy().astype(int), "rate": rate,
               "start": np.where(frame["repeal"] == 1, "1990", "never")}  # fmt: skip
    schema = dpc.Schema({"year": dpc.Levels(list(range(1985, 2001))), "rate": dpc.Bounded(0, 12),
                         "start": dpc.Levels(["1990", "never"])})  # fmt: skip
    table = dpc.Table(columns, schema, ledger_of(loss, person="unit"), person="unit")
    with dpc.simulated_noise(seed):
        found = dpc.did(table, time="year", outcome="rate", cohort="start", loss=loss)
    return (np.nan, None) if found.att is None else shown(found.att)


def _county(loss: Any, seed: int) -> Asked:
    """A placebo: unemployment of a county to which nothing happened, from all others; the truth is 0."""
    from benchmarks.data import panels

    real = panels.counties()
    if isinstance(loss, dpc.NoPrivacy):
        return 0.0, None
    target = real.units[int(np.random.default_rng(seed).integers(len(real.units)))]
    with dpc.simulated_noise(seed):
        found = dpc.synthetic_control(real.of(target, loss), loss=loss)
    return found.att, found.interval


PRIVATE: tuple[tuple[str, str, Callable[[Any, int], Asked]], ...] = (
    ("least squares, a slope", "restaurant inspections, 27,178", _years),
    ("least squares, a slope", "mortgages, 214,144", _own),
    ("effect standardised over strata", "mortgages, 214,144", _home),
    ("effect in a trial", "Thornton, HIV results, 2,834", _results),
    ("two-stage least squares", "mortgages within three years of the draft's change", _service),
    ("jump at a cutoff", "House elections, 13,577", _house),
    ("differences in differences", "gonorrhea and early legal abortion, units of a state", _gonorrhea),
    ("synthetic control, placebo", "unemployment of counties, 3,213", _county),
)
