"""Every task over every engine, under one noise."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import dpcausal as dpc
from dpcausal.errors import DpCausalError

N, PERIODS = 600, 4
LOSS, PURE, M = dpc.ApproxDP(8, 1e-6), dpc.PureDP(4), dpc.methods
SCHEMA = dpc.Schema({
    **dict.fromkeys("xyz", dpc.Bounded(-2, 2)), "arm": dpc.Levels([0, 1]), "yes": dpc.Levels([False, True]),
    "site": dpc.Levels(["no", "e\u0301", "\u00e9"]), "day": dpc.Levels([2**53 + 1, 2**53]),
})  # fmt: skip
VISITS = dpc.Schema({"t": dpc.Levels([1, 2, 3, 4]), "g": dpc.Levels([3, 99]), "y": dpc.Bounded(-4, 6)})
TEXTS = ["no", "No", "no ", "e\u0301", "\u00e9", "\u00c9", None]
HOSTILE = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 0.5, -0.5, 1e308, 2.0]


@cache
def rows() -> pa.Table:
    """Return rows of one person each: nulls, ends of the floats, texts that collations take for each other."""
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(2, N))
    y = x + z + rng.normal(size=N)
    for column in (x, y, z):
        column[rng.choice(N, len(HOSTILE), replace=False)] = HOSTILE
    return pa.table({
        "x": pa.array(x, mask=rng.random(N) < 0.05), "y": y, "z": z, "arm": rng.integers(0, 2, N),
        "site": [TEXTS[place] for place in rng.integers(0, len(TEXTS), N)], "yes": rng.random(N) < 0.5,
        "day": rng.choice([2**53 + 1, 2**53, 2**53 - 1], N), "id": [f"p\u00e9{place}" for place in rng.permutation(N)],
    })  # fmt: skip


@cache
def visits() -> pa.Table:
    """Return one row a person and period."""
    rng, persons = np.random.default_rng(2), np.arange(N)
    g = np.repeat(rng.choice([3, 99], N), PERIODS)
    t = np.tile(np.arange(1, PERIODS + 1), N)
    y = rng.normal(size=N * PERIODS) + (g <= t)
    return pa.table({"id": np.repeat(persons, PERIODS), "t": t, "g": g, "y": y})


@cache
def panel() -> pa.Table:
    """Return twenty units in twelve periods."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=(20, 12)).cumsum(axis=1).ravel() / 4
    units = [f"u{unit}" for unit in range(20)]
    return pa.table({"unit": np.repeat(units, 12), "t": np.tile(np.arange(12), 20), "y": y})


About = Callable[[dpc.Table], Any]


def tested(method: Any, x: str = "x", y: str = "y", given: tuple[str, ...] = ("z",)) -> About:
    return lambda table: dpc.ci_test(table, x, y, given=given, loss=PURE, method=method)


def arrow(method: Any) -> About:
    return lambda table: dpc.direction(table, "x", "y", loss=PURE, method=method)


def graph(method: Any, *columns: str) -> About:
    return lambda table: dpc.discover(table, columns=columns, loss=LOSS, method=method)


def effect(method: Any, *adjust: str) -> About:
    return lambda table: dpc.effect(table, treatment="arm", outcome="y", adjust=adjust, loss=LOSS, method=method)


SUMS: dict[str, About] = {
    "`moments`": lambda table: dpc.moments(table, ["x", "y", "arm"], loss=LOSS),
    "`moments`, `robust_for=`": lambda table: dpc.moments(table, ["x", "y", "arm"], loss=LOSS, robust_for=("y", ["x"])),
    "`cells`": lambda table: dpc.cells(table, by=["arm", "site"], values=["y"], loss=PURE),
    "`discontinuity`": lambda table: dpc.discontinuity(
        table, running="x", outcome="y", cutoff=0.5, bins=5, loss=dpc.PureDP(10)
    ),
    "`effect`, `stratified`": lambda table: dpc.effect(
        table, treatment="arm", outcome="y", adjust=["yes"], groups="day", loss=LOSS, method="stratified"
    ),
    "`effect`, `aipw`": effect("aipw", "x"),
    "`effect`, `boosted-aipw`": effect("boosted-aipw", "x"),
    "`effect`, `partially-linear`": effect("partially-linear", "x", "site"),
    "`effect`, `trial` by probabilities": effect(M.RandomizedTrial(probabilities=[0.5, 0.5])),
    "`effect`, `trial` by sizes": effect(M.RandomizedTrial(sizes=[N - N // 2, N // 2])),
    **{f"`discover`, `{method}`": graph(method, "y", "arm", "site", "day", "yes")
       for method in ("table", "parities", "whitened", "triples")},
    "`discover`, `moments`": graph("moments", "x", "y", "z"),
    "`ci_test`, `strata-covariance`": tested("strata-covariance", "yes", "arm", ("site", "day")),
    "`ci_test`, `counts`": tested("counts", "yes", "arm", ("site",)),
}  # fmt: skip
BLOCKS: dict[str, About] = {
    "`ci_test`, `gcm`": tested(M.Gcm(blocks=5)),
    "`ci_test`, `gcm-weighted`": tested("gcm-weighted"),
    "`ci_test`, `crt`": tested(M.Crt(model_x="fit")),
    "`effect`, `sample-aggregate`": effect(M.SampleAggregate(blocks=20, terms="lines"), "x", "site"),
    "`direction`, `verdict`": arrow(M.Verdict(blocks=5)),
    "`direction`, `majority-vote`": arrow(M.MajorityVote(blocks=5)),
}
WHOLE: dict[str, About] = {
    "`ci_test`, `neighbours`": tested("neighbours"),
    "`ci_test`, `kendall`": tested("kendall", given=("site",)),
}
PERSONS = {f"{task}, `person=`": about for task, about in {**SUMS, **BLOCKS, **WHOLE}.items()}
TASKS = [*SUMS, *BLOCKS, *WHOLE, *PERSONS, "`did`", "`synthetic_control`"]


def plain(found: Any) -> Any:
    """Return all that is released, bare of the ledger's words and of the time."""
    if isinstance(found, dict):
        left = ("ledger", "ledger_head", "ledger_entry", "date", "time", "at", "entry", "made")
        return {key: plain(value) for key, value in found.items() if key not in left}
    if isinstance(found, (list, tuple)):
        return [plain(one) for one in found]
    return found.hex() if isinstance(found, float) else found


def ledger_for(task: str) -> dpc.Ledger:
    """Return a new ledger of the unit that a task protects."""
    whose = {"person": "id"} if task in PERSONS or task == "`did`" else {}
    whose |= {"unit": "unit"} if task == "`synthetic_control`" else {}
    return dpc.Ledger.in_memory(dpc.ApproxDP(100, 1e-4), **whose, accept_large_epsilon=True)


def outcome(task: str, made: Callable[[pa.Table], Any]) -> Any:
    """Return what a task releases of a frame, or the words in which it is refused before the spend."""
    ledger = ledger_for(task)
    reason = ""
    with dpc.simulated_noise(5):
        try:
            return plain(_asked(task, made, ledger).to_dict())
        except DpCausalError as refused:
            reason = str(refused)
    assert not ledger.entries(), reason
    return reason


def released(frame: Any) -> dict[str, Any]:
    """Return all that the tasks which sum release of a frame of these rows."""
    return {task: outcome(task, lambda table: frame) for task in SUMS}


def _asked(task: str, made: Callable[[pa.Table], Any], ledger: dpc.Ledger) -> Any:
    if task == "`synthetic_control`":
        held = dpc.Panel(made(panel()), unit="unit", time="t", outcome="y", target="u0", start=8,
                         bounds=dpc.Bounded(-4, 4), ledger=ledger)  # fmt: skip
        return dpc.synthetic_control(held, loss=PURE, force=True)
    if task == "`did`":
        table = dpc.Table(made(visits()), VISITS, ledger, person="id")
        return dpc.did(table, time="t", outcome="y", cohort="g", loss=LOSS)
    if task in PERSONS:
        shuffled = rows().take(np.random.default_rng(3).permutation(N))
        return PERSONS[task](dpc.Table(made(shuffled), SCHEMA, ledger, person="id"))
    return {**SUMS, **BLOCKS, **WHOLE}[task](dpc.Table(made(rows()), SCHEMA, ledger))
