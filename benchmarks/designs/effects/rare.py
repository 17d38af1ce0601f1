"""Outcomes of two levels of which one is rare."""

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
