"""The spread about the line of one declared regression, as it was released."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.codec import storable
from dpcausal.effects.clusters import ClusterVariance
from dpcausal.releases.saved import Form


@storable("Step")
@dataclass(frozen=True, eq=False)
class Step:
    """By what slopes are off, the covariance that noise has in it, how far what was shortened could still move it."""

    by: Reals
    noise: Reals
    unsure: Reals


@storable("Sandwich")
@dataclass(frozen=True, eq=False)
class Sandwich:
    """Noisy Σ x x′ e² of one regression, x about the released middle, the constant last; σ of it about standard.
    ``step`` is of its slopes, the constant last."""

    outcome: str
    regressors: tuple[str, ...]
    sums: Reals
    deviation: float
    step: Step | None = None
    cluster: str = ""
    clusters: tuple[ClusterVariance, ...] = ()
    """The variance between clusters of each slope in the columns' units, the intercept last; empty: by rows."""
    factors: tuple[str, ...] = ()
    """Factors among the regressors: ``regressors`` are then the numbers within their levels, without the constant."""

    def of(self, outcome: str, regressors: tuple[str, ...]) -> bool:
        """Return whether it is that of this regression."""
        return self.outcome == outcome and {*self.regressors, *self.factors} == set(regressors)

    def order(self, regressors: tuple[str, ...]) -> list[int]:
        places = [self.regressors.index(name) for name in regressors if name in self.regressors]
        return places if self.factors else [*places, len(places)]

    def by_clusters(self, regressors: tuple[str, ...]) -> list[ClusterVariance]:
        """Return the variances in the order of the regressors, the intercept last; empty: by rows."""
        return [self.clusters[place] for place in self.order(regressors)] if self.clusters else []

    def over(self, regressors: tuple[str, ...]) -> tuple[Reals, Step | None]:
        """Return sums and step in the order of the regressors."""
        order = self.order(regressors)
        both, step = np.ix_(order, order), self.step
        return self.sums[both], step and Step(step.by[order], step.noise[both], step.unsure[order])

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...]) -> Sandwich:
        outcome, regressors = form.text("outcome", names), form.texts("regressors", different=True)
        factors = form.texts("factors") if form.has("factors") else ()
        size = len(regressors) + (not factors)
        if not {*regressors, *factors} <= set(names) - {outcome}:
            raise form.refuse("regressors")
        shapes = {"by": (size,), "noise": (size, size), "unsure": (size,)}
        step = Step(**form.part("step").arrays(shapes)) if form.has("step") else None
        clusters = ClusterVariance.saved(form, (0, size))
        cluster = form.text("cluster") if form.has("cluster") else ""
        sums = form.arrays({"sums": (size, size)})["sums"]
        return cls(outcome, regressors, sums, form.size("deviation"), step, cluster, clusters, factors)
