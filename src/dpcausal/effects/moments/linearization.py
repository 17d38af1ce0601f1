"""How a function of noisy moments varies with the rows and with the noise, to the first order, by its gradient.

S = Σ (x − x̄)(x − x̄)′ of some columns is T (S_all + E) T′ for known T.  A function f of S with gradient Γ,
df = tr(Γ dS), has the noise variance Σ_ij (2 − δ_ij) Var(E_ij) (T′ΓT)_ij² and, for rows whose residuals are independent
of what they are residuals from and spread alike everywhere, the sampling variance 2 tr(ΓSΓS) / m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.effects.moments.released import ReleasedMoments

Reals = npt.NDArray[np.float64]

MARGIN = 1.25
"""What the noise's covariance is multiplied by, for that of the shape: calibrated by measured coverage, not proved."""


@dataclass(frozen=True)
class Centred:
    """Sums of squares and products of some columns about their noisy means, in the columns' units."""

    S: Reals
    count: float
    lift: Reals
    weights: Reals
    """(2 − δ) times the variance of each entry of the release."""
    selection: Reals
    """Which columns of the release these are, shape (columns, d)."""

    @classmethod
    def of(cls, release: ReleasedMoments, names: Sequence[str]) -> Centred:
        """Return those of a release; however noisy, they are those of some rows, none of whose columns is a line of
        others."""
        places = [release.names.index(name) for name in names]
        units = (release.halves[:, None] * release.spread)[places]
        lift = np.column_stack([units, -units @ release.sums[:-1, -1] / release.count])
        products = lift @ release.sums @ lift.T
        sizes = np.sqrt(np.maximum(np.diag(products), 1e-12 * release.halves[places] ** 2 * release.count))
        eigenvalues, vectors = np.linalg.eigh(products / np.outer(sizes, sizes))
        least = 1e-10 * max(float(eigenvalues[-1]), 1.0)
        S = (vectors * np.maximum(eigenvalues, least)) @ vectors.T * np.outer(sizes, sizes)
        variances = release.noise.variances(len(release.names))
        return cls(S, release.count, lift, variances * (2 - np.eye(len(variances))), np.eye(len(release.names))[places])

    def slopes(self, outcome: int, regressors: Sequence[int]) -> tuple[Reals, Reals]:
        """Return the slopes of a column on others, and c = (outcome less the line) as a row of columns."""
        on = list(regressors)
        if not on:
            return np.zeros(0), np.eye(len(self.S))[outcome]
        slopes: Reals = np.linalg.solve(self.S[np.ix_(on, on)], self.S[on, outcome]).astype(np.float64)
        contrast: Reals = np.eye(len(self.S))[outcome]
        contrast[on] -= slopes
        return slopes, contrast

    def residuals(self, *lines: tuple[int, Sequence[int]]) -> Reals:
        """Return c of each line, outcome and regressors, as rows of the release's columns."""
        return np.stack([self.slopes(one, on)[1] for one, on in lines]) @ self.selection

    def gradients(self, outcome: int, regressors: Sequence[int]) -> list[Reals]:
        """Return the gradient of each slope: d slope_j = (row j of the inverse of S over the regressors)′ dS c."""
        on = list(regressors)
        rows = np.zeros((len(on), len(self.S)))
        rows[:, on] = np.linalg.inv(self.S[np.ix_(on, on)])
        return [symmetric(row, self.slopes(outcome, on)[1]) for row in rows]

    def noise(self, gradients: Sequence[Reals]) -> Reals:
        """Return the covariance that the noise has in functions of these gradients."""
        lifted = [self.lift.T @ one @ self.lift for one in gradients]
        return MARGIN * np.array([[float((self.weights * a * b).sum()) for b in lifted] for a in lifted])

    def covariance(self, gradients: Sequence[Reals], used: int) -> Reals:
        """Return the covariance of functions of these gradients, noise and sampling; ``used``: degrees of freedom."""
        scaled = [one @ self.S for one in gradients]
        sampling = [[2 * float((a * b.T).sum()) for b in scaled] for a in scaled]
        return self.noise(gradients) + np.array(sampling) / max(self.count - used, 1.0)


def symmetric(row: Reals, other: Reals) -> Reals:
    """Return the symmetric matrix Γ with tr(Γ D) = row′ D other for every symmetric D."""
    return (np.outer(row, other) + np.outer(other, row)) / 2


def inverse(covariance: npt.NDArray[np.floating[Any]]) -> Reals:
    """Return C⁻¹, no direction thinner than 1e-12 of the widest: noise may have left one no width at all."""
    sizes = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    eigenvalues, vectors = np.linalg.eigh(covariance / np.outer(sizes, sizes))
    widths = np.maximum(eigenvalues, 1e-12 * max(float(eigenvalues[-1]), 1.0))
    return np.asarray((vectors / widths) @ vectors.T / np.outer(sizes, sizes), dtype=np.float64)
