"""How far the spread of an outcome about its line goes with the regressors: the middle of the sandwich, noisy.

One declared regression; its slopes β, G and s² come from the moments that were released.  Rows ψ = (G/m)^(−½) x e / s,
shortened to a public length, have Σ ψψ′ released by claim ``second-moments``: all that ψ needs was released before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpcausal.data.rows import Rows
from dpcausal.dependence.second_moments import (
    clip_rows,
    grid_bits,
    scaled,
    second_moments_sensitivity,
    unpacked,
    upper_of,
)
from dpcausal.effects.ellipsoid import whitened
from dpcausal.effects.regression import line
from dpcausal.effects.rounds import Summed
from dpcausal.mechanisms.additive import gaussian, gaussian_scale
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import ZCDP, NoPrivacy
from dpcausal.privacy.sensitivity import Query

if TYPE_CHECKING:
    from dpcausal.effects.joint_moments import JointMoments

Reals = npt.NDArray[np.float64]

MEAT = Fraction(1, 10)
"""Its share of ρ, where it is asked for."""
GROWTH = 0.1
"""The squared length is .1 μ n: the noise is .14 of what rows that spread alike would give."""


@dataclass(frozen=True, eq=False)
class Meat:
    """Noisy Σ x x′ e² of one regression, x about the released middle, the constant last; σ of it about standard."""

    outcome: str
    regressors: tuple[str, ...]
    sums: Reals
    deviation: float

    def over(self, regressors: tuple[str, ...]) -> Reals:
        """Return the sums in the order of the regressors."""
        order = [*(self.regressors.index(name) for name in regressors), len(regressors)]
        return self.sums[np.ix_(order, order)]


def length_of(columns: int, n: int, loss: ZCDP) -> float:
    """Return the length that ψ is shortened to: public."""
    return math.sqrt(max(4.0 * columns, GROWTH * math.sqrt(2 * loss.rho) * n))


def deviation_of(columns: int, n: int, loss: ZCDP) -> float:
    """Return σ of the noise on the diagonal of Σ ψψ′."""
    length = length_of(columns, n, loss)
    bits = grid_bits(n, length)
    return gaussian_scale(float(second_moments_sensitivity(length, bits, columns).bound), loss) * 4.0**-bits


def meat_of(
    release: JointMoments, of: tuple[str, tuple[str, ...]], summed: Summed, allotment: Allotment, loss: ZCDP | NoPrivacy
) -> Meat:
    """Release Σ ψψ′ of one regression of rows of [−1, 1], ψ summed over the rows of a person: errors by clusters."""
    outcome, regressors = of
    places = [release.names.index(name) for name in (outcome, *regressors)]
    fitted = line(release, outcome, regressors)
    size = len(fitted.slopes)
    bread = fitted.moments[1:, 1:] / release.count
    eigenvalues, vectors = np.linalg.eigh((bread + bread.T) / 2)
    # No direction thinner than half the noise, and a spread that is not 0: ψ is a number whatever was released.
    widths = release.halves[places]
    least = max(release.deviation / release.count / 2, 1e-9) * min(float((widths**2).min()), 1.0)
    roots = np.sqrt(np.maximum(eigenvalues, least))
    spread = math.sqrt(max(fitted.residual, 1e-12 * float(widths[0] ** 2)))
    # e and (G/m)^(−½) (x, 1), each a sum over columns of one row.
    turn = np.vstack([np.concatenate([[1.0], -fitted.slopes]) / spread,
                      np.hstack([np.zeros((size, 1)), vectors / roots @ vectors.T])])  # fmt: skip
    centre, shape, last, n = release.centre[places], turn[:, :-1] * widths, turn[:, -1], release.n

    def scores(unit: Reals, parts: Rows) -> Reals:
        rows = whitened(unit[:, places], centre, shape) + last
        mass = parts.kept if parts.weights is None else parts.kept * parts.weights
        found: Reals = rows[:, 1:] * rows[:, :1] * mass[:, None]
        if parts.owners is None:
            return found
        return np.stack([np.bincount(parts.owners, column, n) for column in found.T], axis=1)

    def squares(unit: Reals, parts: Rows) -> npt.NDArray[np.int64]:
        inside = clip_rows(scores(unit, parts), length, bits)
        return upper_of(inside.T @ inside).astype(np.int64)

    back = spread * (vectors * roots) @ vectors.T
    if loss.exact:
        whole = summed.over(lambda unit, parts: scores(unit, parts).T @ scores(unit, parts))
        return Meat(outcome, regressors, back @ whole @ back, 0.0)
    length = length_of(size, n, loss)
    bits = grid_bits(n, length)
    claim = second_moments_sensitivity(length, bits, size)
    query = Query(scaled(summed.over(squares), size), claim, "spread about the line")
    sums = unpacked(np.asarray(gaussian(query, allotment, loss), dtype=np.float64) * 4.0**-bits, size)
    eigenvalues, vectors = np.linalg.eigh(sums)
    sums = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    return Meat(outcome, regressors, back @ sums @ back, deviation_of(size, n, loss))


def told(meat: Meat | None) -> dict[str, Any] | None:
    """Return it as JSON's types."""
    return None if meat is None else {
        "outcome": meat.outcome, "regressors": list(meat.regressors), "sums": meat.sums.tolist(),
        "deviation": meat.deviation,
    }  # fmt: skip
