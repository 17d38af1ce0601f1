"""Information-geometric causal inference: the cause is the column that lies nearer to a reference distribution.

If y is an invertible function of x, and the function was not chosen with the distribution of x in mind, then where the
function is flat values of y heap up, and the distribution of y is farther from a reference distribution than that of x.
No regression is fitted and no noise is modelled; noise that is not small, and columns of few values, mislead it.
Everything here is plain computation on given rows; for protected rows it runs inside ``blocks``.

*Source*: Daniušis, Janzing, Mooij, Zscheischler, Steudel, Zhang & Schölkopf (2010), "Inferring deterministic causal
relations"; Janzing et al. (2012).
"""

import math
from collections.abc import Callable

import numpy as np

from dpcausal.direction.scores.anm import Column

LEAST_GAP = 2.0**-1022
"""A column of one value counts as two values this far apart."""


def spacing_entropy(values: Column) -> float:
    """Return the differential entropy of a sample by its spacings, in natural units.

    S = Σ_{k=1}^{m−1} 1/k + 1/(m − 1) Σ_i log(v_{i+1} − v_i),  v₁ < … < v_m the distinct values, two of them at least

    *Source*: Daniušis et al. (2010), equation 12.  There a repeated value keeps its place in m and adds 0 to the sum;
    here it counts once, since what it adds would depend on the unit.
    """
    gaps = np.diff(np.unique(values))
    logs = np.log(np.maximum(gaps, LEAST_GAP)) if len(gaps) else np.array([math.log(LEAST_GAP)])
    m = len(logs) + 1
    return float(np.mean(logs) + np.sum(1 / np.arange(1, m)))


def _to_unit(values: Column) -> Column:
    width = float(np.max(values)) - float(np.min(values))
    return (values - np.min(values)) / (width if width > 0 else 1.0)


def from_uniform(values: Column) -> float:
    """Return the relative entropy of a column to the uniform distribution of its range: −S ≥ 0."""
    return -spacing_entropy(_to_unit(values))


def from_gaussian(values: Column) -> float:
    """Return the relative entropy of a column to the normal distribution of its moments: ½ log(2πe) − S ≥ 0."""
    spread = float(np.std(values))
    scaled = (values - np.mean(values)) / (spread if spread > 0 else 1.0)
    return 0.5 * math.log(2 * math.pi * math.e) - spacing_entropy(scaled)


def mean_log_slope(x: Column, y: Column) -> float:
    """Return the mean logarithm of the slopes of y over x, both scaled to [0, 1].

    C = mean log|Δy / Δx| over neighbouring rows in the order of x, those with Δx = 0 or Δy = 0 left out; 0 if all are

    *Source*: Daniušis et al. (2010), equation 13.  Rows of equal x are put in the order of y, and the mean is over the
    rows that are kept, so that the order of the table does not matter.
    """
    order = np.lexsort((y, x))
    rise, run = np.abs(np.diff(_to_unit(y)[order])), np.diff(_to_unit(x)[order])
    increasing = (rise > 0) & (run > 0)
    return float(np.mean(np.log(rise[increasing]) - np.log(run[increasing]))) if bool(increasing.any()) else 0.0


SCORES: dict[str, Callable[[Column, Column], tuple[float, float]]] = {
    "igci": lambda x, y: (from_uniform(x), from_uniform(y)),
    "igci-gaussian": lambda x, y: (from_gaussian(x), from_gaussian(y)),
    "igci-slope": lambda x, y: (mean_log_slope(x, y), mean_log_slope(y, x)),
}
"""The scores of ("x causes y", "y causes x") from two columns, the smaller wins."""
