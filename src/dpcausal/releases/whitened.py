"""Noisy second moments of the whitened levels of columns, rows shortened: what tests of pairs given others need."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dpcausal.dependence.whitened import features, row_entries
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.form import Form
from dpcausal.releases.release import Release

Reals = npt.NDArray[np.float64]
Columns = tuple[int, ...]

LEAST_SHARE = 0.02
"""Least share of the rows that the noisy sum of squared weights is taken for."""

EIGENVALUES = 0.25, 4.0
"""Within which a column's noisy covariance is taken before its root is inverted."""

LEAST_EIGENVALUE = 0.1
"""Least eigenvalue that is taken of the noisy covariance of what is given."""


LEAST_LEFT = 0.05
"""Least eigenvalue that is taken of what is left of a column given others."""


class Residual(NamedTuple):
    """What is left of the link of two columns given others: a χ² statistic, and φ² less what noise adds to it."""

    statistic: float
    freedom: int
    strength: float


def _floored(covariance: Reals) -> tuple[Reals, Reals]:
    """Return a covariance without eigenvalues near 0, and its inverse root."""
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, LEAST_LEFT)
    return (vectors * values) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T


@dataclass(frozen=True, eq=False)
class NoisyWhitened(Release):
    """A noisy matrix Σ v vᵀ of rows v = w·(F_1(r_1), …, F_d(r_d), 1), each with a weight w that shortens it.

    ``places``: of each column, which kept level a declared one counts as; ``shares``: of its kept levels, by which F_i
    is made; ``deviation``: of the noise of an entry off the diagonal, on the diagonal √2 times that.
    """

    kind: ClassVar[str] = "whitened"

    places: tuple[tuple[int, ...], ...]
    shares: tuple[tuple[float, ...], ...]
    matrix: Reals
    deviation: float

    @property
    def exact(self) -> bool:
        """Whether there is no noise."""
        return self.deviation == 0

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Where each column's block ends."""
        return tuple(np.cumsum([len(shares) - 1 for shares in self.shares]).tolist())

    def block(self, column: int) -> slice:
        """Return the entries of a column."""
        return slice(self.ends[column] - len(self.shares[column]) + 1, self.ends[column])

    @cached_property
    def count(self) -> float:
        """The noisy Σ w²."""
        return max(float(self.matrix[-1, -1]), LEAST_SHARE * self.n)

    @cached_property
    def _means(self) -> Reals:
        return np.asarray(self.matrix[:-1, -1] / self.count)

    @cached_property
    def _second(self) -> Reals:
        return np.asarray(self.matrix[:-1, :-1] / self.count)

    @cached_property
    def _roots(self) -> list[Reals]:
        """The inverse root of each column's covariance."""
        found = []
        for column in range(len(self.names)):
            own = self.block(column)
            values, vectors = np.linalg.eigh(self._second[own, own] - np.outer(self._means[own], self._means[own]))
            found.append((vectors / np.sqrt(np.clip(values, *EIGENVALUES))) @ vectors.T)
        return found

    @cached_property
    def _root(self) -> Reals:
        root = np.zeros_like(self._second)
        for column, own in enumerate(self._roots):
            root[self.block(column), self.block(column)] = own
        return root

    @cached_property
    def covariance(self) -> Reals:
        """The noisy covariance, each column whitened once more."""
        centred = self._second - np.outer(self._means, self._means)
        found = self._root @ centred @ self._root.T
        return np.asarray((found + found.T) / 2)

    @cached_property
    def _noise(self) -> Reals:
        """N = W Wᵀ, block by block."""
        return np.asarray(self._root @ self._root.T)

    def residual(self, x: int, y: int, given: Columns) -> Residual | None:
        """Return what is left of the link of two columns given others; ``None`` if one of the two has one kept level.

        H = C_xy − C_xS C_SS⁻¹ C_Sy,  cov(H_ab, H_cd) = s²(A_ac B_bd + G_ad G_cb) + E[cov(x|S)_ac cov(y|S)_bd]/Σw²

        where β = C_·S C_SS⁻¹, A = N_x + β_x N_S β_xᵀ, B alike, G = β_x N_S β_yᵀ, to first order in the noise; N = W Wᵀ
        of the second whitening; G stands because the noise of C_SS is symmetric.  Given one column the mean covariance
        is by its levels, given more as if it were the same everywhere.  Σw² rows are no more than the weighted rows
        are worth.
        """
        one, other = self.block(x), self.block(y)
        p, q = one.stop - one.start, other.stop - other.start
        if not p or not q:
            return None
        C, N = self.covariance, self._noise
        s = self.deviation / self.count
        H, A, B, G = C[one, other], N[one, one], N[other, other], np.zeros((p, q))
        left = [C[one, one], C[other, other]]
        inside = [place for z in given for place in range(self.ends[z] - len(self.shares[z]) + 1, self.ends[z])]
        if inside:
            values, vectors = np.linalg.eigh(C[np.ix_(inside, inside)])
            inverse = (vectors / np.maximum(values, LEAST_EIGENVALUE)) @ vectors.T
            bx, by = C[one, inside] @ inverse, C[other, inside] @ inverse
            NS = N[np.ix_(inside, inside)]
            H = H - bx @ C[inside, other]
            A, B, G = A + bx @ NS @ bx.T, B + by @ NS @ by.T, bx @ NS @ by.T
            left = [left[0] - bx @ C[inside, one], left[1] - by @ C[inside, other]]
        (Rx, Lx), (Ry, Ly) = (_floored(part) for part in left)
        if len(given) == 1 and inside:
            weights, of_x = self._within(x, given[0])
            of_y = self._within(y, given[0])[1]
            sampling = np.einsum("z,zac,zbd->abcd", weights, of_x, of_y)
        else:
            sampling = np.einsum("ac,bd->abcd", Rx, Ry)
        spread = sampling / self.count + s * s * (np.einsum("ac,bd->abcd", A, B) + np.einsum("ad,cb->abcd", G, G))
        L = np.kron(Lx, Ly)  # from here on in units of what is left of the columns
        spread = L @ spread.reshape(p * q, p * q) @ L.T
        h = (Lx @ H @ Ly.T).ravel()
        statistic = float(h @ np.linalg.solve(spread + 1e-12 * np.eye(p * q), h))
        return Residual(statistic, p * q, float(h @ h - np.trace(spread)))

    def _within(self, x: int, z: int) -> tuple[Reals, Reals]:
        """Return the weights of the levels of z and the covariance of x in each, from shares that are none below 0."""
        joint = self.pair(x, z)
        weights = joint.sum(axis=0)
        laws = joint / weights
        F = (features(np.array(self.shares[x])) - self._means[self.block(x)]) @ self._roots[x].T
        means = laws.T @ F
        return weights, np.einsum("rz,ra,rb->zab", laws, F, F) - means[:, :, None] * means[:, None, :]

    def pair(self, x: int, z: int) -> Reals:
        """Return the noisy joint law of the kept levels of two columns: no share below a tenth of a row."""
        px, pz = np.array(self.shares[x]), np.array(self.shares[z])
        Fx, Fz = features(px), features(pz)
        mx, mz = self._means[self.block(x)], self._means[self.block(z)]
        core = 1 + (Fx @ mx)[:, None] + (Fz @ mz)[None, :] + Fx @ self._second[self.block(x), self.block(z)] @ Fz.T
        joint = np.maximum(px[:, None] * pz[None, :] * core, 0.1 / self.n)
        return np.asarray(joint / joint.sum())

    def redrawn(self, generator: PublicGenerator) -> Self:
        noise = np.triu(generator.normal(0, self.deviation, self.matrix.shape))
        noise[np.diag_indices_from(noise)] *= math.sqrt(2)
        fresh = noise + np.triu(noise, 1).T
        return replace(self, matrix=self.matrix + fresh, deviation=self.deviation * math.sqrt(2))

    def numbers(self) -> dict[str, Any]:
        return {
            "columns": [
                {"places": list(place), "shares": list(share)}
                for place, share in zip(self.places, self.shares, strict=True)
            ],
            "matrix": self.matrix.tolist(), "deviation": self.deviation,
        }  # fmt: skip

    @classmethod
    def of_form(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        places, shares = [], []
        for part in form.parts("columns"):
            share = part.array("shares")
            if share.ndim != 1 or not (share > 0).all() or abs(float(share.sum()) - 1) > 1e-9:
                raise part.refuse("shares")
            place = part.array("places", integral=True)
            if place.ndim != 1 or set(place.tolist()) != set(range(len(share))):
                raise part.refuse("places")
            places.append(tuple(place.tolist()))
            shares.append(tuple(share.tolist()))
        if len(shares) != len(names):
            raise form.refuse("columns")
        matrix = form.array("matrix")
        if matrix.shape != (row_entries([np.array(one) for one in shares]),) * 2 or (matrix != matrix.T).any():
            raise form.refuse("matrix")
        return cls(names, n, tuple(places), tuple(shares), matrix, form.size("deviation"))
