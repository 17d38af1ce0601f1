"""Textbook data as other packages ship them, and tables of them with public bounds made for a comparison."""

from typing import Any

import numpy as np

import dpcausal as dpc


def shipped(package: str, name: str) -> Any:
    """Return a data set as a frame."""
    if package == "causaldata":
        import causaldata

        return getattr(causaldata, name).load_pandas().data
    if package == "statsmodels":
        import statsmodels.api as sm

        return getattr(sm.datasets, name).load_pandas().data
    from importlib import import_module

    return import_module(f"linearmodels.datasets.{name}").load()


def table(frame: Any, levels: dict[str, list[Any]] | None = None, person: str | None = None) -> dpc.Table:
    """Return a table without privacy; numbers get the next whole bounds, which cut nothing."""
    schema: dict[str, Any] = {}
    for name in frame.columns:
        if levels and name in levels:
            schema[name] = dpc.Levels(levels[name])
        elif name != person:
            low, high = float(frame[name].min()), float(frame[name].max())
            schema[name] = dpc.Bounded(float(np.floor(low)) - 1, float(np.ceil(high)) + 1)
    return dpc.Table(frame, dpc.Schema(schema), dpc.Ledger.without_privacy(), person=person)


REGRESSIONS: dict[str, tuple[str, str, str, list[str]]] = {
    "lalonde": ("causaldata", "nsw_mixtape", "re78", ["treat", "age", "educ", "re74", "re75"]),
    "card": ("linearmodels", "card", "lwage", ["educ", "exper", "expersq", "black", "south", "smsa"]),
    "mroz": ("linearmodels", "mroz", "hours", ["educ", "exper", "age", "kidslt6", "nwifeinc"]),
    "engel": ("statsmodels", "engel", "foodexp", ["income"]),
    "longley": ("statsmodels", "longley", "TOTEMP", ["GNPDEFL", "GNP", "UNEMP", "ARMED", "POP", "YEAR"]),
    "stackloss": ("statsmodels", "stackloss", "STACKLOSS", ["AIRFLOW", "WATERTEMP", "ACIDCONC"]),
}


def regression(name: str) -> tuple[Any, str, list[str]]:
    """Return a frame, its outcome and its regressors."""
    package, held, outcome, regressors = REGRESSIONS[name]
    return shipped(package, held)[[outcome, *regressors]].dropna().astype(float), outcome, regressors


def instruments(name: str) -> tuple[Any, str, str, list[str], list[str]]:
    """Return a frame, its outcome, treatment, instruments and what else is in the equation."""
    treatment, outcome = "educ", "lwage"
    found, given = {
        "card": (["nearc4"], ["exper", "expersq", "black", "south", "smsa"]),
        "mroz": (["fatheduc", "motheduc"], ["exper", "expersq"]),
    }[name]
    frame = shipped("linearmodels", name)[[outcome, treatment, *found, *given]]
    return frame.dropna().astype(float), outcome, treatment, found, given


def graph(name: str) -> tuple[Any, list[str]]:
    """Return a frame and the columns of which a graph is made."""
    frame, outcome, treatment, found, given = instruments(name)
    return frame, [outcome, treatment, *found, *(one for one in given if one != "expersq")]


def trial(name: str) -> tuple[Any, str, str, list[str]]:
    """Return a frame, its outcome, a treatment of 0 and 1, and strata."""
    package, held, outcome, treatment, strata = {
        "lalonde": ("causaldata", "nsw_mixtape", "re78", "treat", ["black", "nodegree"]),
        "thornton": ("causaldata", "thornton_hiv", "got", "any", []),
        "nhefs": ("causaldata", "nhefs_complete", "wt82_71", "qsmk", ["sex", "race"]),
    }[name]
    frame = shipped(package, held)[[outcome, treatment, *strata]].dropna()
    whole = {one: frame[one].astype(int) for one in (treatment, *strata)}
    return frame.assign(**whole), outcome, treatment, strata


def cutoff(name: str) -> tuple[Any, Any, dpc.Bounded]:
    """Return a running number in whole steps from the cutoff 0, an outcome, and its bounds."""
    if name == "senate":
        from rdrobust import rdrobust_RDsenate

        frame = rdrobust_RDsenate().dropna(subset=["vote", "margin"])
        margin, vote = (frame[one].to_numpy(dtype=float) for one in ("margin", "vote"))
        return np.floor(margin).astype(int), vote, dpc.Bounded(0, 100)
    frame = shipped("causaldata", "close_elections_lmb").dropna(subset=["score", "lagdemvoteshare"])
    running = np.floor(100 * (frame["lagdemvoteshare"].to_numpy(dtype=float) - 0.5)).astype(int)
    return running, frame["score"].to_numpy(dtype=float), dpc.Bounded(-30, 130)


def castle() -> Any:
    """Return state, year, log homicides and the first year of a castle law, 0 for never; no cohort of one state."""
    frame = shipped("causaldata", "castle")
    frame = frame.assign(sid=frame["sid"].astype(int), year=frame["year"].astype(int))
    first = frame[frame["post"] == 1].groupby("sid")["year"].min()
    frame = frame.assign(g=frame["sid"].map(first).fillna(0).astype(int))
    sizes = frame.groupby("g")["sid"].nunique()
    return frame.loc[frame["g"].map(sizes) > 1, ["sid", "year", "l_homicide", "g"]].reset_index(drop=True)


def panel(name: str) -> tuple[dpc.Panel, Any, Any, Any, Any]:
    """Return a panel without privacy; donors before and after the start, and the target before and after."""
    if name == "texas":
        wide = shipped("causaldata", "texas").pivot(index="statefip", columns="year", values="bmprison")
        times, values, start = [int(year) for year in wide], wide.to_numpy(dtype=float), 1993
        place = list(wide.index).index(48)
        made = dpc.Panel.from_arrays(
            np.delete(values, place, axis=0), values[place], times=times, start=start, bounds=dpc.Bounded(0, 70_000),
            ledger=dpc.Ledger.without_privacy(),
        )  # fmt: skip
    else:
        from benchmarks.data import panels

        real = getattr(panels, name)()
        times, values, place, start = list(real.times), real.values, real.units.index(real.target), real.start
        made = real.of(real.target, dpc.NoPrivacy())
    cut, donors = times.index(start), np.delete(values, place, axis=0)
    return made, donors[:, :cut], donors[:, cut:], values[place, :cut], values[place, cut:]
