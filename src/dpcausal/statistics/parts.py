"""What cutting a number into parts leaves of a link that only the number makes: an upper estimate from counts.

Two columns that depend on a number z, and on nothing else together, are still linked given the part that z lies in, as
both vary with z within it.  In a part the covariance of their levels is about κ d_x d_yᵀ, where d is the difference of
the shares of the levels between a part and the next, and κ the variance of z within a part over the squared distance of
their means: 1/12 of parts of one width, up to ¼ at an end.  Post-processing: nothing here sees data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

WITHIN = 0.1
"""κ: what is left may be two to three times as much before a test at a usual level takes it for a link."""


def left_by_parts(counts: Reals, cut: Sequence[int], usable: npt.NDArray[np.bool_], variance: float) -> float:
    """Return the non-centrality that cut columns leave a test of noisy counts, shape (k_x, k_y, sizes of the given).

    λ = Σ_s n_s w_s κ² (Σ_j φ_x φ_y)²,  φ² = Σ_l d_l² / p̄_l,  w_s = n_s / (n_s + v k_x k_y),  over usable strata s and
    the given columns j that are cut; p̄ is the mean of the two strata's shares, v the noise variance of a cell.
    """
    totals = np.where(usable, np.maximum(counts.sum(axis=(0, 1)), 1.0), 1.0)
    sides = []
    for axis in (1, 0):
        floored = np.maximum(counts.sum(axis=axis), 1.0)
        sides.append(floored / floored.sum(axis=0))
    left = np.zeros(totals.shape)
    for axis in cut:
        left += np.sqrt(largest_step(sides[0], axis, usable) * largest_step(sides[1], axis, usable))
    weight = totals / (totals + variance * counts.shape[0] * counts.shape[1])
    return float((WITHIN**2 * totals * weight * left**2)[usable].sum())


def largest_step(shares: Reals, axis: int, usable: npt.NDArray[np.bool_]) -> Reals:
    """Return φ² of each stratum against the next on either side along an axis of the strata, the larger one."""
    largest = np.zeros(usable.shape)
    moved, known = np.moveaxis(shares, axis + 1, -1), np.moveaxis(usable, axis, -1)
    both, room = known[..., 1:] & known[..., :-1], np.moveaxis(largest, axis, -1)
    one, other = moved[..., :-1], moved[..., 1:]
    step = np.where(both, ((one - other) ** 2 / (one + other)).sum(axis=0) * 2, 0.0)
    room[..., :-1] = step
    room[..., 1:] = np.maximum(room[..., 1:], step)
    return largest
