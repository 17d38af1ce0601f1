"""Rows in clusters that are treated as a whole, with an intra-class correlation of 0.1: by clusters and by rows."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import Reading, register, table

WITHIN, EFFECT = 0.1, 0.5


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
        e = math.sqrt(WITHIN) * rng.normal(size=self.clusters)[village] + math.sqrt(1 - WITHIN) * rng.normal(size=n)
        columns = {"a": a, "y": EFFECT * a + 0.5 * x.sum(axis=0) + e, "village": village}
        names = [f"x{place}" for place in range(self.numbers)]
        schema = {"a": dpc.Levels([0, 1]), "y": dpc.Bounded(-12, 12)} | dict.fromkeys(names, dpc.Bounded(-5, 5))
        return {
            f"by {'rows' if cluster is None else 'clusters'}": self._asked(columns | dict(zip(names, x, strict=True)),
                                                                         schema, cluster, loss, method)
            for cluster in ("village", None)
        }  # fmt: skip

    def _asked(self, columns: Any, schema: Any, cluster: str | None, loss: Any, method: Any) -> Reading:
        adjust = [name for name in schema if name not in ("a", "y")]
        found = dpc.effect(table(columns, schema, loss), treatment="a", outcome="y", adjust=adjust, cluster=cluster,
                           loss=loss, method="auto" if method == "default" else method)  # fmt: skip
        return Reading(found.estimate, found.interval, EFFECT, {"clusters": found.clusters or math.nan})


DESIGNS = register({
    "trial, 40 clusters": Clusters(40), "trial, 400 clusters": Clusters(400),
    "trial, 40 unequal clusters": Clusters(40, unequal=True),
}, "clusters", fails=True) | register({
    "three numbers, 40 clusters": Clusters(40, 3), "three numbers, 400 clusters": Clusters(400, 3),
    "one number of clusters, 40 clusters": Clusters(40, 1, related=0.2),
    "one number of clusters, 400 clusters": Clusters(400, 1, related=0.2),
}, "clusters", delta=1e-6, fails=True)  # fmt: skip
