"""What every claim of a sensitivity must pass: the neighbour search of ``dpcausal.audit``, as three demands.

``check_claim`` asks that the bound is never passed, that a stated share of it is reached, and that the same bound
times 0.95 is caught, on each of three seeds.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpcausal.audit.falsifier import STARTS as STARTS
from dpcausal.audit.falsifier import Falsification, Statistic
from dpcausal.audit.falsifier import distance as distance
from dpcausal.audit.falsifier import falsify as search
from dpcausal.privacy.sensitivity import Sensitivity

Claim = Callable[[int], Sensitivity]

LEAST_EVALUATIONS = 8_000
"""Neighbour pairs that a claim must survive, over all seeds and sizes."""


def check_claim(
    statistic: Statistic,
    claim: Claim,
    *,
    sizes: Sequence[int],
    reached: float = 0.99,
    mutant: float = 0.95,
    slack: float = 1e-12,
    seeds: Sequence[int] = (0, 1, 2),
    evaluations: int = 2_800,
    **domain: Any,
) -> list[Falsification]:
    """Assert that a claim holds on all pairs found, is tight to a stated share, and that its mutant is caught.

    Parameters
    ----------
    claim : callable
        Maps m to the claimed ``Sensitivity``; its norm is the one searched in.
    reached : float
        The share of the bound that each seed's search must reach.
    mutant : float
        The factor of the wrong bound that each seed's search must pass.  Below ``reached``: a claim that is not
        tight needs a smaller factor, and its slack written down beside the proof.
    slack : float
        Relative float slack above the bound.
    domain
        Passed to ``search``: columns, low, high, levels, starts.
    """
    if not mutant < reached:
        raise ValueError("the mutant cannot be caught below the share that is reached")
    domain = {"sizes": sizes, "norm": claim(max(sizes)).norm, "evaluations": evaluations, **domain}
    found = [search(statistic, lambda m: claim(m).bound, seed=seed, **domain) for seed in seeds]
    assert sum(one.evaluations for one in found) >= LEAST_EVALUATIONS, "too few neighbour pairs were looked at"
    for seed, one in zip(seeds, found, strict=True):
        assert one.ratio <= 1 + slack, f"seed {seed}: a neighbour pair moves it by {one.ratio} of the bound: {one}"
        assert one.ratio >= reached, f"seed {seed}: only {one.ratio} of the bound was reached"
        assert one.ratio > mutant, f"seed {seed}: the bound times {mutant} was not caught"
    return found


def new_row(rng: np.random.Generator, rows: Any, low: Any, high: Any) -> Any:
    """Return a row that is extreme, tied, nearly tied, not a number, infinite or anywhere, each column by itself."""

    def value(column: int) -> float:
        near = float(rows[int(rng.integers(len(rows))), column])
        least, most = float(low[column]), float(high[column])
        beside, anywhere = float(np.nextafter(near, most)), float(rng.uniform(least, most))
        return (least, most, near, beside, anywhere, math.nan, math.inf)[int(rng.integers(7))]

    return np.array([value(column) for column in range(len(low))])
