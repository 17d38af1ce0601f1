"""Outcomes of which few records are informative: rare levels, and numbers near the ends of their bounds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import Reading, register, table

FLAG = dpc.Levels([0, 1])
RARE, TREATED, TIMES = np.array([0.02, 0.05, 0.1, 0.2]), np.array([0.05, 0.2, 0.4, 0.6]), 1.8


class Risks:
    """Two levels of outcome, of which one is rare; ``treated``, ``risk`` and ``times`` as one number, or by stratum."""

    def __init__(self, treated: Any, risk: Any, times: float) -> None:
        self.treated, self.risk, self.times = treated, risk, times

    def ask(self, rng: Any, n: int, loss: Any, method: Any = "default") -> dict[str, Reading]:
        by = isinstance(self.risk, np.ndarray)
        s = rng.integers(0, 4, n) if by else 0
        risk, treated = (self.risk[s], self.treated[s]) if by else (self.risk, self.treated)
        a = (rng.random(n) < treated).astype(int)
        y = (rng.random(n) < risk * np.where(a, self.times, 1.0)).astype(int)
        columns = {"a": a, "y": y} | ({"s": s} if by else {})
        schema = {"a": FLAG, "y": FLAG} | ({"s": dpc.Levels(range(4))} if by else {})
        asked: dict[str, Any] = {"adjust": ["s"], "groups": "s"} if by else {"adjust": []}
        asked["method"] = "auto" if method == "default" else method
        found = dpc.effect(table(columns, schema, loss, missing="impute"), treatment="a", outcome="y", loss=loss,
                           accept_large_epsilon=True, **asked)  # fmt: skip
        if not by:
            odds = risk * self.times / (1 - risk * self.times) / (risk / (1 - risk))
            return {"difference": Reading(found.estimate, found.interval, risk * (self.times - 1)),
                    "ratio": Reading(found.risk_ratio.estimate, found.risk_ratio.interval, self.times),
                    "odds": Reading(found.odds_ratio.estimate, found.odds_ratio.interval, odds)}  # fmt: skip
        gaps, supported = self.risk * (self.times - 1), [one.share_supported > 0 for one in found.by_group]
        whole = float(gaps[supported].mean()) if any(supported) else 0.0
        return {"supported": Reading(found.estimate, found.interval, whole)} | {
            f"group {place}": Reading(one.estimate, one.interval, float(gap))
            for place, (one, gap) in enumerate(zip(found.by_group, gaps, strict=True))
        }


DESIGNS = register({
    **{f"risk {risk:g} x {times:g}, {treated:g} treated": Risks(treated, risk, times)
       for treated, risk, times in ((0.1, 0.01, 1.0), (0.1, 0.03, 3.0), (0.5, 0.03, 1.0), (0.1, 0.99, 1.0))},
    "four strata of risk 0.02 to 0.2": Risks(TREATED, RARE, TIMES),
}, "rare")  # fmt: skip


def levelled(*levels: tuple[float, float]) -> Any:
    """Outcomes of few values: shares by value."""
    values, shares = zip(*levels, strict=True)
    return lambda rng, arm: rng.choice(values, size=len(arm), p=shares)


def gammas(scale: float, times: float = 1.0) -> Any:
    return lambda rng, arm: np.minimum(rng.exponential(scale * np.where(arm == 1, times, 1.0)), 1.0)


def far_tail(rng: Any, arm: Any) -> Any:
    return np.minimum(0.001 * np.exp(2 * rng.normal(size=len(arm))), 1.0)


SHOWN = {
    "flat": (0.5, lambda rng, arm: rng.random(len(arm))),
    "bounds 20 times too wide": (0.5, lambda rng, arm: 0.5 + rng.normal(0, 0.01, len(arm)) + 0.005 * arm),
    "one value": (0.5, lambda rng, arm: 0.3 + 0.2 * arm),
    "all at a bound": (0.5, lambda rng, arm: 1.0 * arm),
    "one in a hundred at the far end": (0.5, levelled((0.0, 0.99), (1.0, 0.01))),
    "one in a thousand at the far end": (0.5, levelled((0.1, 0.999), (1.0, 0.001))),
    "a rare arm, one in fifty far": (0.05, levelled((0.0, 0.98), (1.0, 0.02))),
    "exponential": (0.5, gammas(0.05, 2.0)),
    "exponential, rare arm": (0.05, gammas(0.02, 2.0)),
    "log-normal": (0.3, far_tail),
    "log-normal, rare arm": (0.02, far_tail),
    "nearly all treated": (0.97, gammas(0.1)),
}  # fmt: skip


ALIKE = ("log-normal", "log-normal, rare arm", "flat", *(name for name in SHOWN if "far" in name))


@cache
def gap(shape: str) -> float:
    if shape in ALIKE:
        return 0.0
    rng, draw, size = np.random.default_rng(0), SHOWN[shape][1], 4_000_000
    return float(draw(rng, np.ones(size)).mean() - draw(rng, np.zeros(size)).mean())


class Cells:
    def __init__(self, shape: str) -> None:
        self.shape = shape

    def ask(self, rng: Any, n: int, loss: Any, method: Any = "default") -> dict[str, Reading]:
        treated, draw = SHOWN[self.shape]
        arm = (rng.random(n) < treated).astype(int)
        stratum = rng.integers(0, 3, n)
        schema = {"a": FLAG, "s": dpc.Levels(range(3)), "y": dpc.Bounded(0, 1)}
        rows = table({"a": arm, "s": stratum, "y": draw(rng, arm)}, schema, loss, missing="impute")
        release = dpc.cells(rows, by=["a", "s"], values=["y"], loss=loss, accept_large_epsilon=True)
        by = release.effect(treatment="a", outcome="y", groups="s")
        found = {"ate": release.effect(treatment="a", outcome="y"), "adjusted": by, "a group": by.by_group[0],
                 "att": release.effect(treatment="a", outcome="y", adjust=["s"], estimand="att")}  # fmt: skip
        return {name: Reading(one.estimate, one.interval, gap(self.shape)) for name, one in found.items()}


DESIGNS |= register({f"cells: {shape}": Cells(shape) for shape in SHOWN}, "shown")
