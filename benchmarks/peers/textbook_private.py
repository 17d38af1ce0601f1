"""Private questions of textbook data: each returns its number and its interval, or ``None``.  Bounds are public."""

from collections.abc import Callable
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import ledger_of
from benchmarks.peers import textbook_data as data

Asked = tuple[float, tuple[float, float] | None]


def shown(one: Any) -> Asked:
    return one.estimate, one.interval


RANGES = {
    "wt82_71": (-50, 50), "age": (15, 80), "agesq": (0, 6_400), "smokeintensity": (0, 100), "smokeyrs": (0, 70),
    "wt71": (30, 200), "wt71sq": (0, 40_000), "smokeyrssq": (0, 4_900), "smokeintensitysq": (0, 10_000),
    "re74": (0, 160), "re75": (0, 160), "re78": (0, 160), "educ": (0, 20), "score": (-30, 130), "ldurat": (-2, 6),
    "lwage": (3, 9), "exper": (0, 30), "expersq": (0, 900), "lemp": (0, 12), "inspection_score": (60, 100),
    "Year": (2000, 2019), "product": (-25, 80),
}  # fmt: skip
"""All others are 0 or 1."""


def _table(frame: Any, names: list[str], loss: Any, flags: Any) -> dpc.Table:
    columns = {name: frame[name].to_numpy().astype(float if name in RANGES else int) for name in names}
    schema = {name: dpc.Bounded(*RANGES[name]) if name in RANGES else flags for name in names}
    return dpc.Table(columns, dpc.Schema(schema), ledger_of(loss))


def means(frame: Callable[[], Any], outcome: str, treatment: str, *adjust: str, **more: Any) -> Any:
    """The effect, by the default method if no other is named; with groups, their difference."""

    def ask(loss: Any, seed: int) -> Asked:
        names = [outcome, treatment, *adjust, *([more["groups"]] if "groups" in more else [])]
        table = _table(frame(), names, loss, dpc.Levels([0, 1]))
        with dpc.simulated_noise(seed):
            found = dpc.effect(table, treatment=treatment, outcome=outcome, adjust=adjust, loss=loss, **more)
        if "groups" not in more:
            return shown(found)
        (first, one), (second, other) = (shown(group) for group in found.by_group)
        half = None if one is None or other is None else float(np.hypot(one[1] - one[0], other[1] - other[0])) / 2
        return second - first, None if half is None else (second - first - half, second - first + half)

    return ask


def slope(
    frame: Callable[[], Any], outcome: str, treatment: str, *beside: str, by: str = "", robust: bool = False
) -> Any:
    """One slope of least squares, with White's errors if ``robust``, or of two stages."""

    def ask(loss: Any, seed: int) -> Asked:
        names = [outcome, treatment, *([by] if by else []), *beside]
        table = _table(frame(), names, loss, dpc.Bounded(0, 1))
        with dpc.simulated_noise(seed):
            moments = dpc.moments(table, names, loss=loss, robust_for=(outcome, names[1:]) if robust else None)
        if by:
            fit = moments.iv(outcome, treatment, instruments=[by], given=list(beside), errors="homoscedastic")
            return shown(next(one for one in fit.coefficients if one.name == treatment))
        return shown(moments.ols(outcome, names[1:], errors=None if robust else "homoscedastic")[treatment])

    return ask


def _inspections() -> Any:
    return data.shipped("causaldata", "restaurant_inspections")


def _mortgages() -> Any:
    return data.shipped("causaldata", "mortgages")


def _drafted() -> Any:
    """Those born within three years of the draft's change."""
    frame = _mortgages()
    near = frame[np.abs(frame["qob_minus_kw"]) <= 12]
    return near.assign(late=(near["qob_minus_kw"] > 0).astype(int))


def _house(loss: Any, seed: int) -> Asked:
    """The jump of a representative's score at half of the votes."""
    x, y, bounds = data.cutoff("house")
    schema = dpc.Schema({"x": dpc.Levels(list(range(-50, 51))), "y": bounds})
    table = dpc.Table({"x": x, "y": y}, schema, ledger_of(loss))
    with dpc.simulated_noise(seed):
        found = dpc.discontinuity(table, running="x", outcome="y", cutoff=0, bandwidth=20.0, curvature=0.05, loss=loss)
    return found.estimate, found.interval


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
    ("least squares, a slope", "restaurant inspections, 27,178",
     slope(_inspections, "inspection_score", "Year", "Weekend", robust=True)),
    ("least squares, a slope", "mortgages, 214,144",
     slope(_mortgages, "home_ownership", "vet_wwko", "nonwhite", robust=True)),
    ("effect standardised over strata", "mortgages, 214,144",
     means(_mortgages, "home_ownership", "vet_wwko", "nonwhite")),
    ("effect in a trial", "Thornton, HIV results, 2,834", means(lambda: data.trial("thornton")[0], "got", "any")),
    ("two-stage least squares", "mortgages within three years of the draft's change",
     slope(_drafted, "home_ownership", "vet_wwko", by="late")),
    ("jump at a cutoff", "House elections, 13,577", _house),
    ("differences in differences", "gonorrhea and early legal abortion, units of a state", _gonorrhea),
    ("synthetic control, placebo", "unemployment of counties, 3,213", _county),
)  # fmt: skip
