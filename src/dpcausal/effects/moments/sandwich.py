"""How an outcome spreads about its line, and where to: the middle of the sandwich, and a step to unshortened slopes.

One declared regression; its slopes β, G and s² come from the moments that were released.  Rows ψ = (G/m)^(−½) x e / s
have their moments released by claim ``ellipse-moments``: all that ψ needs was released before, and ψ is shortened at a
public length of its own, extreme, so that β + G⁻¹ Σ x e is what least squares of the unshortened rows would be.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dpcausal.data.records import Rows
from dpcausal.effects.moments.adaptive import Noise, Shape, StreamedRows, noise_of, released, shrinkage
from dpcausal.effects.moments.ellipsoid import whitened
from dpcausal.effects.moments.released import ReleasedMoments, Sandwich, Step, line
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, NoPrivacy

Reals = npt.NDArray[np.float64]

SANDWICH_SHARE = Fraction(3, 10)
"""Its share of ρ, where it is asked for."""
FOR_STEP, FOR_SQUARES = 0.64, 0.1
"""The squared length is 0.64 μ² n, where the noise of a step is twice the sampling error of even spread, at most 0.1 μ
n, where that of Σ ψψ′ is a fifth of it; at least four a column."""
FAR = 25.0
"""A step leaves an interval where the length is so extreme, in spreads: nearer, what was shortened of skewed tails is
neither small nor seen."""
TAIL = 0.5
"""What a shortened ψ may have lost, in lengths: of the tails that were tried it is less."""


def sandwich_noise(columns: int, n: int, loss: ZCDP) -> Noise:
    """Return the length that ψ is shortened to and the noise: public."""
    mu = math.sqrt(2 * loss.rho)
    return noise_of(columns, n, math.sqrt(max(4.0 * columns, min(FOR_STEP * mu, FOR_SQUARES) * mu * n)), loss)


def rows_for_step(loss: ZCDP) -> int:
    """Return from how many rows on a step leaves an interval, whatever the skew: public."""
    mu = math.sqrt(2 * loss.rho)
    return math.ceil(FAR**2 / (min(FOR_STEP * mu, FOR_SQUARES) * mu))


def release_sandwich(
    release: ReleasedMoments,
    of: tuple[str, tuple[str, ...]],
    summed: StreamedRows,
    allotment: CallBudget,
    loss: ZCDP | NoPrivacy,
) -> Sandwich:
    """Release moments of ψ of one regression of rows of [−1, 1], ψ summed over the rows of a person: by clusters."""
    outcome, regressors = of
    places = [release.names.index(name) for name in (outcome, *regressors)]
    fitted = line(release, outcome, regressors)
    size = len(fitted.slopes)
    second_moments = fitted.moments[1:, 1:] / release.count
    eigenvalues, vectors = np.linalg.eigh((second_moments + second_moments.T) / 2)
    # No direction thinner than half the noise, and a spread that is not 0: ψ is a number whatever was released.
    widths = release.halves[places]
    least = max(release.deviation / release.count / 2, 1e-9) * min(float((widths**2).min()), 1.0)
    roots = np.sqrt(np.maximum(eigenvalues, least))
    spread = math.sqrt(max(fitted.residual, 1e-12 * float(widths[0] ** 2)))
    # e and (G/m)^(−½) (x, 1), each a sum over columns of one row.
    turn = np.vstack([np.concatenate([[1.0], -fitted.slopes]) / spread,
                      np.hstack([np.zeros((size, 1)), vectors / roots @ vectors.T])])  # fmt: skip
    centre, shape, last, n = release.centre[places], turn[:, :-1] * widths, turn[:, -1], release.n

    def scores(unit: Reals, parts: Rows) -> tuple[Reals, Rows]:
        rows = whitened(unit[:, places], centre, shape) + last
        mass = parts.kept if parts.weights is None else parts.kept * parts.weights
        products: Reals = rows[:, 1:] * rows[:, :1] * mass[:, None]
        if parts.owners is None:
            return products, Rows({}, parts.kept, {})
        by_unit = np.stack([np.bincount(parts.owners, column, n).astype(np.float64) for column in products.T], axis=1)
        return by_unit, Rows({}, np.bincount(parts.owners, parts.kept, n) > 0, {})

    back = spread * (vectors * roots) @ vectors.T
    if loss.exact:
        whole = summed.over(lambda unit, parts: (products := scores(unit, parts)[0]).T @ products)
        return Sandwich(outcome, regressors, back @ whole @ back, 0.0)
    noise = sandwich_noise(size, n, loss)
    seen = StreamedRows(lambda kernel: summed.over(lambda unit, parts: kernel(*scores(unit, parts))), False)
    scatter = released(seen, Shape(np.zeros(size), np.eye(size)), noise, allotment, loss, "spread about the line")
    eigenvalues, vectors = np.linalg.eigh(scatter.sums[:-1, :-1])
    squares = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    # The regressors' moments, what shortening took of normal rows undone.
    whole = fitted.moments[1:, 1:].copy()
    whole[:-1, :-1] /= shrinkage(len(release.names), release.radius)
    turned = np.asarray(np.linalg.pinv(whole), dtype=np.float64) @ back
    lost = max(scatter.shortened - noise.count, 0.0) * TAIL * noise.radius if noise.radius >= FAR else 1e100
    step = Step(turned @ scatter.sums[:-1, -1], noise.variances(size)[-1, 0] * turned @ turned.T,
                lost * np.linalg.norm(turned, axis=1))  # fmt: skip
    return Sandwich(outcome, regressors, back @ squares @ back, noise.deviation, step)
