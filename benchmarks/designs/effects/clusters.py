"""Rows in clusters that are treated as a whole, with an intra-class correlation of 0.1: by clusters and by rows."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import Reading, register, table

WITHIN, EFFECT = 0.1, 0.5


def outcome(rng: Any, a: Any, x: Any, village: Any, count: int) -> Any:
    e = math.sqrt(WITHIN) * rng.normal(size=count)[village] + math.sqrt(1 - WITHIN) * rng.normal(size=len(a))
    return EFFECT * a + 0.5 * x.sum(axis=0) + e


@dataclass(frozen=True)
class Clusters:
    """Clusters of one size, or of lognormal sizes; ``numbers`` are adjusted for, a part of them the clusters'.

    ``related``: the part is also what the treatment of clusters goes with.
    """

    clusters: int
    numbers: int = 0
    unequal: bool = False
    related: float = 0.0

    def ask(self, rng: Any, n: int, loss: Any, method: Any = "default") -> dict[str, Reading]:
        sizes = np.exp(rng.normal(0, 0.8 * self.unequal, self.clusters))
        village = rng.choice(self.clusters, n, p=sizes / sizes.sum())
        common, own = (rng.normal(size=(self.numbers, one)) for one in (self.clusters, n))
        x = math.sqrt(self.related) * common[:, village] + math.sqrt(1 - self.related) * own
        chance = 1 / (1 + np.exp(-common.sum(axis=0) * (self.related > 0)))
        a = (rng.random(self.clusters) < chance).astype(int)[village]
        columns = {"a": a, "y": outcome(rng, a, x, village, self.clusters), "village": village}
        names = [f"x{place}" for place in range(self.numbers)]
        schema = {"a": dpc.Levels([0, 1]), "y": dpc.Bounded(-12, 12)} | dict.fromkeys(names, dpc.Bounded(-5, 5))
        columns |= dict(zip(names, x, strict=True))

        def asked(cluster: str | None) -> Reading:
            found = dpc.effect(table(columns, schema, loss), treatment="a", outcome="y", adjust=names, cluster=cluster,
                               loss=loss, method="auto" if method == "default" else method)  # fmt: skip
            return Reading(found.estimate, found.interval, EFFECT, {"clusters": found.clusters or math.nan})

        return {"by clusters": asked("village"), "by rows": asked(None)}


@dataclass(frozen=True)
class Line:
    """The slope of a treatment of whole clusters in a regression on it and two numbers."""

    clusters: int

    def ask(self, rng: Any, n: int, loss: Any, method: Any = "default") -> dict[str, Reading]:
        village = rng.permutation(np.arange(n) % self.clusters)
        x, a = rng.normal(size=(2, n)), (rng.random(self.clusters) < 0.5).astype(int)[village]
        columns = {"a": a, "y": outcome(rng, a, x, village, self.clusters), "x": x[0], "z": x[1], "village": village}
        schema = {"a": dpc.Levels([0, 1]), "y": dpc.Bounded(-12, 12)} | dict.fromkeys("xz", dpc.Bounded(-5, 5))
        found = {}
        for cluster in ("village", None):
            released = dpc.moments(table(columns, schema, loss), list(schema), robust_for=("y", ["a", "x", "z"]),
                                   cluster=cluster, loss=loss)  # fmt: skip
            one = released.ols("y", ["a", "x", "z"], errors="symmetric")["a"]
            found[f"by {'rows' if cluster is None else 'clusters'}"] = Reading(one.estimate, one.interval, EFFECT)
        return found


@dataclass(frozen=True)
class Paths:
    """Persons of states that move apart over four periods; half of the states are treated from the third on."""

    states: int

    def ask(self, rng: Any, n: int, loss: Any, method: Any = "default") -> dict[str, Reading]:
        state = rng.permutation(np.arange(n) % self.states)
        start = np.where(rng.random(self.states) < 0.5, 2, 9)[state]
        moved = rng.normal(0, 0.25, (self.states, 4)).cumsum(axis=1)[state]
        y = rng.normal(size=n)[:, None] + moved + rng.normal(size=(n, 4)) + EFFECT * (np.arange(4) >= start[:, None])
        columns = {"id": np.repeat(np.arange(n), 4), "t": np.tile(np.arange(4), n), "g": np.repeat(start, 4),
                   "y": y.ravel(), "state": np.repeat(state, 4)}  # fmt: skip
        schema = {"t": dpc.Levels(range(4)), "g": dpc.Levels([2, 9]), "y": dpc.Bounded(-10, 10)}
        found = {}
        for cluster in ("state", None):
            one = dpc.did(table(columns, schema, loss, person="id"), time="t", outcome="y", cohort="g", loss=loss,
                          cluster=cluster).att  # fmt: skip
            read = (None, None) if one is None else (one.estimate, one.interval)
            found[f"by {'persons' if cluster is None else 'clusters'}"] = Reading(*read, EFFECT)
        return found


KINDS = {"three numbers": lambda k: Clusters(k, 3), "one number of clusters": lambda k: Clusters(k, 1, related=0.2),
         "regression": Line, "did": Paths}  # fmt: skip
DESIGNS = register({
    "trial, 40 clusters": Clusters(40), "trial, 400 clusters": Clusters(400),
    "trial, 40 unequal clusters": Clusters(40, unequal=True),
}, "clusters", fails=True) | register({f"{name}, {k} clusters": of(k) for name, of in KINDS.items() for k in (40, 400)},
                                      "clusters", delta=1e-6, fails=True)  # fmt: skip
