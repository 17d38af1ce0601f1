"""Every task and method, by each kind of loss on two designs, answers with fixed seeds what is on record, bit for bit.

``battery.json`` holds calls as a user writes them, with methods as objects so that another default changes none, and
what they released: its first values and a hash of all of them and of the noise that was drawn.  Rows and panels have
rounded values, the same on every machine.  All is from the tree before methods were objects (39b34ab), but what stands
under ``changed`` with its reason; what was recorded on another machine has no hash.  A change that is meant:

    python -m tests.test_battery "why the answers that differ are right"
"""

import hashlib
import json
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock
from zlib import crc32

import numpy as np
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_info, threadpool_limits

import dpcausal as dpc
from dpcausal import methods as m
from dpcausal import papers as p

LOSSES = {
    "PureDP": dpc.PureDP, "ApproxDP": lambda epsilon: dpc.ApproxDP(epsilon, 1e-6),
    "ZCDP": lambda epsilon: dpc.ZCDP(epsilon / 4), "NoPrivacy": lambda epsilon: dpc.NoPrivacy(),
}  # fmt: skip
NORMAL, CHANCE = dpc.ModelX(mean=lambda z: z[:, 0], sd=1.5), dpc.ModelX(mean=lambda z: (1 + z[:, 0]) / 4)
DRAWN = dpc.ModelX(sample=lambda z, coins: coins.integers(0, 2, len(z)).astype(float))
KNOWN = dpc.Knowledge(tiers=[["z1", "z2"], ["x", "y"]], forbidden=[("z2", "y")], required=[("x", "y")])


@lru_cache
def columns(design: str, n: int) -> tuple[dict[str, Any], dpc.Schema]:
    """Return z1 -> x -> y, z1 -> y, and z2: "numbers", numbers with "ties", or "levels" beside the number z2."""
    z1, z2, a, b = np.random.default_rng(1).standard_normal((4, n))
    x = z1 + z1 * z1 / 2 + a
    found: dict[str, Any] = {"x": x, "y": x + x * x * x / 20 - z1 + b / 2, "z1": z1, "z2": z2}
    for name, values in found.items():
        found[name] = np.clip(np.rint(2 * values) / 2 if design == "ties" else np.round(values, 3), -4, 4)
    schema: dict[str, Any] = dict.fromkeys(found, dpc.Bounded(-4, 4))
    if design == "levels":
        for name, cuts in {"x": [0.5], "y": [0.5], "z1": [-0.5, 0.5]}.items():
            found[name], schema[name] = np.digitize(found[name], cuts), dpc.Levels(range(len(cuts) + 1))
    return found, dpc.Schema(schema)


def panel(design: str, ledger: dpc.Ledger, target: Any = 0, start: Any = 6) -> dpc.Panel:
    """Return 250 units in 9 periods, each with a line in time, and a "step" or a "wave"."""
    unit, time = np.repeat(np.arange(250), 9), np.tile(np.arange(9), 250)
    shape = {"step": np.arange(9) > 5, "wave": np.array([0, 1, 0, -1, 0, 1, 0, -1, 1])}[design][time]
    coins = np.random.default_rng(2)
    slope, size = coins.standard_normal((2, 250))[:, unit] / 4
    outcome = np.round(slope * time / 8 + size * shape + coins.standard_normal(unit.size) / 20, 3)
    frame = {"unit": unit, "time": time, "outcome": outcome}
    bounds = dpc.Bounded(-1, 1)
    return dpc.Panel(frame, unit="unit", time="time", outcome="outcome", target=target, start=start, bounds=bounds,
                     ledger=ledger)  # fmt: skip


def again(found: dpc.Discovery) -> list[Any]:
    """Return a release and what it answers when it is asked again."""
    asked, known = found.release.discover, dpc.Knowledge(required=[("x", "y")])
    searched = asked(search="pc", max_order=1, knowledge=known)
    return [found.release, asked(alpha=0.2), searched, *found.with_support(5).edges()]


def words(design: str, kind: str, call: str) -> dict[str, Any]:
    """Return what a call on record may name; its ledger protects whom the call does."""
    budget = LOSSES[kind](8)
    half = re.search(r"p\.(Anm)?(Holdout|Test|Training)", call)
    unit = {"unit": "unit"} if "panel(" in call else {}
    unit = {"protect": "training" if half[2] == "Training" else "test"} if half else unit
    ledger = dpc.Ledger.without_privacy() if kind == "NoPrivacy" else dpc.Ledger.in_memory(budget, **unit)
    return {
        "dpc": dpc, "m": m, "p": p, "loss": LOSSES[kind], "again": again, "known": KNOWN, "drawn": DRAWN,
        "rows": lambda n=180: dpc.Table(*columns(design, n), ledger, missing="impute"),
        "panel": lambda **options: panel(design, ledger, **options),
        "law": CHANCE if design == "levels" else NORMAL,
        "tree": DecisionTreeRegressor(splitter="random", max_depth=3),
    }  # fmt: skip


def machine() -> list[str]:
    """Return what the last bits of a float depend on; elsewhere only the first values are compared."""
    blas = {str(library.get("architecture")) for library in threadpool_info() if library["user_api"] == "blas"}
    return [*map(version, ("numpy", "scipy", "scikit-learn")), platform.libc_ver()[1], *sorted(blas)]


RECORD = Path(__file__).with_name("battery.json")
RELEASED = {
    "cause", "margin", "scores", "penalty", "width", "statistic", "pvalue", "decision", "adjusted", "decisions", "from",
    "to", "directed", "reported", "counterfactual", "att", "interval", "donor_weight", "path_noise", "counts",
    "middles", "widths", "covariance", "values", "deviation",
}  # fmt: skip
REPEATED = {"settings", "guarantee", "graph", "knowledge", "constants"}


def told(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what was released, by name."""
    value = value.to_dict() if hasattr(value, "to_dict") else value
    for part in value if isinstance(value, (list, tuple)) else ():
        yield from told(part)
    for name in sorted(value.keys() - REPEATED) if isinstance(value, dict) else ():
        yield from [(name, value[name])] if name in RELEASED else told(value[name])


def answer(name: str, call: str, design: str, kind: str) -> str:
    """Return the first released values of a call and a hash of all, or the class of its refusal."""
    charge, seen = dpc.Ledger.charge, []
    noted = lambda *asked, **options: seen.append(charge(*asked, **options)) or seen[-1]  # noqa: E731
    with dpc.simulated_noise(crc32(f"{name}/{design}".encode())), mock.patch.object(dpc.Ledger, "charge", noted):
        try:
            released = [part for part in told(eval(call, words(design, kind, call))) if part[1] not in (None, "", [])]
        except dpc.errors.DpCausalError as refusal:
            return type(refusal).__name__
    events = [event for allotment in seen for event in allotment.events]
    drawn = Counter(f"{e.mechanism} of {e.sensitivity:.12g} at {e.scale:.12g}: {e.loss!r}" for e in events)
    whole = sorted(json.dumps(part) for part in [*released, *drawn.items()])
    first = json.dumps([value for _, value in released][:3])
    short = json.loads(first, parse_float=lambda digits: float(f"{round(float(digits), 9):.6g}"))
    return f"{json.dumps(short)[1:-1]:.40} #{hashlib.sha256(json.dumps(whole).encode()).hexdigest()[:12]}"


@threadpool_limits.wrap(limits=1, user_api="blas")
def differences(record: dict[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """Return name, design, losses, answer on record and today's, of those that differ."""
    own, found = record["machine"] == machine(), []
    for name, (call, designs) in record["calls"].items():
        for design, answers in designs.items():
            for kinds, was in answers.items():
                today = {answer(name, call, design, kind) for kind in kinds.split()}
                end = "\n" if own and not was.endswith("#") else "#"
                found += [(name, design, kinds, was, now) for now in today if was.split(end)[0] != now.split(end)[0]]
    return found


def test_answers_are_those_on_record() -> None:
    assert not ["  ".join(change) for change in differences(json.loads(RECORD.read_text(encoding="utf-8")))]


def record(reason: str) -> None:
    """Put on record what differs, and why."""
    on_record = json.loads(RECORD.read_text(encoding="utf-8"))
    changes, own = differences(on_record), on_record["machine"] == machine()
    if not changes:
        sys.exit("nothing differs")
    for name, design, kinds, _, now in changes:  # another machine rounds otherwise: its first values alone
        on_record["calls"][name][1][design][kinds] = now if own or "#" not in now else now.split("#")[0] + "#"
    named = {*on_record["changed"].get(reason, []), *(name for name, *_ in changes)}
    on_record["changed"][reason] = sorted(named)
    write(RECORD, on_record)


def write(path: Path, on_record: dict[str, Any]) -> None:
    """Write a record, a line for each call."""
    calls = ",\n".join(f"{json.dumps(name)}: {json.dumps(call)}" for name, call in on_record["calls"].items())
    head = ",\n".join(f"{json.dumps(key)}: {json.dumps(on_record[key])}" for key in ("machine", "changed"))
    path.write_text(f'{{\n{head},\n"calls": {{\n{calls}\n}}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    record(sys.argv[1])
