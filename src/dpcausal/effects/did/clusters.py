"""Intervals by clusters of the mean effect and of the event study: persons' influences on them, summed by clusters."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpcausal.data.records import Rows
from dpcausal.effects.clusters import SPREADS, group_sums, layers_and_sizes, release_layers, release_least_groups
from dpcausal.effects.did.release import Comparisons, NoisyPaths
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
MEAN = Fraction(1, 2)
"""Of the loss for clusters, the share of the mean effect; each event has as much of the rest."""


def with_clusters(
    paths: NoisyPaths, cluster: str, control: str, seen: Reals, cohorts: Integers, rows: Rows, loss: ZCDP | None,
    budget: CallBudget,
) -> NoisyPaths:  # fmt: skip
    """Return paths with the variance between clusters of the mean effect and of each event, released."""
    compared = Comparisons.of(paths, control)
    chosen = slice(compared.parts[1].start, compared.parts[2].stop)
    contrasts, number = compared.contrasts, chosen.stop - chosen.start
    count = max(float(paths.counts[compared.enough].sum()), 1.0)
    own = np.diag(contrasts.covariance - contrasts.noise)[chosen]
    cuts = SPREADS * np.sqrt(np.maximum(own, 1e-200) / count)
    squared = np.zeros(len(seen))
    for column in seen.T:
        squared += column * column
    inside = np.minimum(paths.radius / np.sqrt(np.maximum(squared, 1e-300)), 1.0) if paths.deviation else np.ones(1)
    variances, (loss, sizes) = [], layers_and_sizes(loss)
    least = release_least_groups(group_sums(np.ones(len(seen)), rows), count, sizes, budget)
    for place, cut in enumerate(cuts):
        gradient = contrasts.gradient[:, chosen.start + place][cohorts]
        scores = gradient[:, 0].copy()
        for step, column in enumerate(seen.T, 1):
            scores += gradient[:, step] * (column * inside)
        share = Fraction(1) if number == 1 else MEAN if place == 0 else MEAN / (number - 1)
        part = loss and loss.part(share)
        layers = release_layers(group_sums(scores / cut, rows), paths.n, count / SPREADS**2, least, part, budget)
        variances.append(layers.scaled(float(cut)))
    return replace(paths, cluster=cluster, control=control, clusters=tuple(variances))
