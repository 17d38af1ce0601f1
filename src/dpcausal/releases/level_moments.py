"""Noisy second moments of the whitened levels of columns, rows shortened: what tests of pairs given others need."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dpcausal.arrays import Reals
from dpcausal.codec import storable
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.release import Release, memoized
from dpcausal.releases.saved import Form, cut_in, cut_written, cuts_in, cuts_text, cuts_written
from dpcausal.statistics.level_moments import features, row_entries
from dpcausal.statistics.wald import WITHIN, upper_tail, upper_tails

Places = npt.NDArray[np.intp]
Columns = tuple[int, ...]

LEAST_SHARE = 0.02
"""Least share of the rows that the noisy sum of squared weights is taken for."""

EIGENVALUES = 0.25, 4.0
"""Within which a column's noisy covariance is taken before its root is inverted."""

LEAST_EIGENVALUE = 0.1
"""Least eigenvalue that is taken of the noisy covariance of what is given."""

LEAST_LEFT = 0.05
"""Least eigenvalue that is taken of what is left of a column given others."""

AT_ONCE = 1 << 22
"""Numbers in the covariances of the pairs that are tested at once."""

ONE = np.ones((1, 1))


class Residual(NamedTuple):
    """What is left of the link of two columns given others: χ², its p-value, and φ² less what is added to it."""

    statistic: float
    freedom: int
    strength: float
    pvalue: float
    added: float  # on the mean, by noise and by sampling


class _Left(NamedTuple):
    """What is left of a column given others: slopes, slopes times the noise among these, and their places. In units of
    what is left: the inverse root of its covariance, its noise, and the covariance itself."""

    slopes: Reals
    among: Reals
    inside: Places
    root: Reals
    noise: Reals
    spread: Reals


@storable("NoisyWhitened")
@dataclass(frozen=True, eq=False)
class NoisyWhitened(Release):
    """A noisy matrix Σ v vᵀ of rows v = w·(F_1(r_1), …, F_d(r_d), 1), each with a weight w that shortens it.
    ``places``: of each column, which kept level a declared one counts as; ``shares``: of its kept levels, by which F_i
    is made; ``deviation``: of the noise of an entry off the diagonal, on the diagonal √2 times that; ``cuts``: where
    numbers were cut, of columns whose cuts were learnt from the data; ``cut``: columns of numbers that were cut."""

    kind: ClassVar[str] = "whitened"
    steepest, doubt = 2.0, 1.0  # power of its searches' shares at little noise; what determined columns take off

    places: tuple[tuple[int, ...], ...]
    shares: tuple[tuple[float, ...], ...]
    matrix: Reals
    deviation: float
    cuts: Mapping[str, tuple[float, ...]] = field(default_factory=dict, kw_only=True)
    cut: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def is_exact(self) -> bool:
        return self.deviation == 0

    @property
    def pairs(self) -> NoisyWhitened:
        return self

    @cached_property
    def ends(self) -> tuple[int, ...]:
        return tuple(np.cumsum([len(shares) - 1 for shares in self.shares]).tolist())

    def block(self, column: int) -> slice:
        return slice(self.ends[column] - len(self.shares[column]) + 1, self.ends[column])

    @cached_property
    def count(self) -> float:
        return max(float(self.matrix[-1, -1]), LEAST_SHARE * self.n)

    @cached_property
    def _means(self) -> Reals:
        return np.asarray(self.matrix[:-1, -1] / self.count)

    @cached_property
    def _second(self) -> Reals:
        return np.asarray(self.matrix[:-1, :-1] / self.count)

    @cached_property
    def _roots(self) -> list[Reals]:
        roots = []
        for column in range(len(self.names)):
            own = self.block(column)
            values, vectors = np.linalg.eigh(self._second[own, own] - np.outer(self._means[own], self._means[own]))
            roots.append((vectors / np.sqrt(np.clip(values, *EIGENVALUES))) @ vectors.T)
        return roots

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
        product = self._root @ centred @ self._root.T
        return np.asarray((product + product.T) / 2)

    @cached_property
    def _noise(self) -> Reals:
        return np.asarray(self._root @ self._root.T)

    def entry_error(self, x: int, y: int) -> float:
        """Return the deviation of the noise of the links of two columns, as large as in any direction."""
        own = [float(np.linalg.norm(self._noise[self.block(k), self.block(k)], 2)) for k in (x, y)]
        entries = len(self.shares[x]) + len(self.shares[y]) - 2
        return self.deviation / self.count * math.sqrt(own[0] * own[1] * entries)

    @cached_property
    def _residuals(self) -> dict[tuple[int, int, Columns], tuple[float, ...]]:
        return {}  # of plain tuples of numbers, over which the collector of garbage does not go

    @memoized
    def _given(self, columns: Columns) -> tuple[Places, Reals, Reals]:
        C = self.covariance
        inside = np.array([place for z in columns for place in range(*self.block(z).indices(len(C)))], dtype=np.intp)
        whole = np.ix_(inside, inside)
        root = with_eigenvalue_floor(C[whole], LEAST_EIGENVALUE)[1]
        return inside, root @ root, self._noise[whole]

    @memoized
    def _left(self, x: int, given: Columns) -> _Left:
        own, C, N = self.block(x), self.covariance, self._noise
        inside, inverse, among = self._given(given)
        if own.stop - own.start == 1:  # of two levels, in a third of the time
            end = own.start
            across = C[end].take(inside)
            slopes = across[None] @ inverse
            left, slope_noise = max(float(C[end, end]) - (slopes @ across).item(), LEAST_LEFT), slopes @ among
            root, within = np.array([[left**-0.5]]), (N[end, end] + slope_noise @ slopes.T) / left
            return _Left(slopes, slope_noise, inside, root, within, ONE)
        slopes = C[own, inside] @ inverse
        spread, root = with_eigenvalue_floor(C[own, own] - slopes @ C[inside, own])
        noise = root @ (N[own, own] + slopes @ among @ slopes.T) @ root
        return _Left(slopes, slopes @ among, inside, root, noise, root @ spread @ root)

    def residual(self, x: int, y: int, given: Columns) -> Residual | None:
        """Return what is left of the link of two columns given others; ``None`` if one of the two has one kept level.

        H = C_xy − C_xS C_SS⁻¹ C_Sy,  cov(H_ab, H_cd) = s²(A_ac B_bd + G_ad G_cb) + E[cov(x|S)_ac cov(y|S)_bd]/Σw²

        where β = C_·S C_SS⁻¹, A = N_x + β_x N_S β_xᵀ, B alike, G = β_x N_S β_yᵀ, to first order in the noise; N = W Wᵀ
        of the second whitening; G stands because the noise of C_SS is symmetric.  Given one column the mean covariance
        is by its levels, given more as if it were the same everywhere.  Σw² rows are no more than the weighted rows
        are worth.
        """
        x, y = (x, y) if x < y else (y, x)
        if not given:
            return self._unconditional.get((x, y))
        given = tuple(sorted(given)) if len(given) > 1 else tuple(given)
        known = self._residuals.get((x, y, given))
        if known is not None:
            return Residual._make(known)
        p, q = len(self.shares[x]) - 1, len(self.shares[y]) - 1
        if not p or not q:
            return None
        h, sampling, noise = self._link(x, y, given)
        left = self._left_by_parts(x, y, given) ** 2
        if p * q == 1:
            squared, added = h.item() ** 2, sampling.item() / self.count + noise.item()
            statistic = squared / (added + left + 1e-12)
        else:
            spread, flat = (sampling / self.count + noise).reshape(p * q, p * q), h.ravel()
            squared, added = float(flat @ flat), float(np.trace(spread))
            statistic = float(flat @ np.linalg.solve(with_ridge(spread + left / flat.size * np.eye(flat.size)), flat))
        result = Residual(statistic, p * q, squared - added - left, upper_tail(statistic, p * q), added)
        self._residuals[x, y, given] = tuple(result)
        return result

    def _left_by_parts(self, x: int, y: int, given: Columns) -> float:
        total = 0.0
        for z in given:
            if self.names[z] in self.cut:
                steps = []
                for one in (self._left(x, given), self._left(y, given)):
                    inside = np.searchsorted(one.inside, np.arange(*self.block(z).indices(len(self.covariance))))
                    means = self._features[z][1] @ self._roots[z].T @ one.slopes[:, inside].T @ one.root
                    along = np.linalg.norm(np.diff(means, axis=0), axis=1)
                    steps.append(np.maximum(np.append(along, 0.0), np.append(0.0, along)))
                total += WITHIN * float(self.shares[z] @ (steps[0] * steps[1]))
        return total

    def _link(self, x: int, y: int, given: Columns) -> tuple[Reals, Reals, Reals]:
        """Return H in units of what is left of the columns, its covariance by sampling times Σw², and by noise."""
        one, other = self._left(x, given), self._left(y, given)
        if one.root.size == other.root.size == 1:
            return self._link_of_two_levels(x, y, given, one, other)
        h = one.root @ (self.covariance[self.block(x), self.block(y)]
                        - one.slopes @ self.covariance[one.inside, self.block(y)]) @ other.root  # fmt: skip
        G = one.root @ one.among @ other.slopes.T @ other.root
        noise = of_factors(one.noise, other.noise) + G[:, None, None, :] * G.T[None, :, :, None]
        if len(given) == 1 and len(one.inside):
            weights, of_x = self._within(x, given[0])
            of_x, of_y = one.root @ of_x @ one.root, other.root @ self._within(y, given[0])[1] @ other.root
            sampling = np.einsum("z,zac,zbd->abcd", weights, of_x, of_y)
        else:
            sampling = of_factors(one.spread, other.spread)
        return h, sampling, (self.deviation / self.count) ** 2 * noise

    def _link_of_two_levels(self, x: int, y: int, given: Columns, one: _Left, other: _Left) -> tuple[Any, Any, Any]:
        """Return the same of two columns of two levels as single numbers, all but slopes: in a quarter of the time."""
        scale, row = one.root.item() * other.root.item(), self.covariance[self.ends[y] - 1]
        h = scale * (row[self.ends[x] - 1] - one.slopes[0] @ row.take(one.inside))
        cross = scale * (one.among[0] @ other.slopes[0])
        if len(given) == 1 and len(one.inside):
            weights, of_x = self._within(x, given[0])
            sampling = scale**2 * (weights @ (of_x * self._within(y, given[0])[1]).ravel())
        else:
            sampling = one.spread[0, 0] * other.spread[0, 0]
        noise = (self.deviation / self.count) ** 2 * (one.noise[0, 0] * other.noise[0, 0] + cross**2)
        return h, sampling, noise

    @cached_property
    def _unconditional(self) -> dict[tuple[int, int], Residual]:
        by_sizes: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for x, y in combinations(range(len(self.names)), 2):
            sizes = len(self.shares[x]) - 1, len(self.shares[y]) - 1
            if min(sizes):
                by_sizes.setdefault(sizes, []).append((x, y))
        residuals: dict[tuple[int, int], Residual] = {}
        noise = self.deviation / self.count
        for (p, q), pairs in by_sizes.items():
            step = max(1, AT_ONCE // (p * q) ** 2)
            for part in (pairs[start : start + step] for start in range(0, len(pairs), step)):
                one, other = ([self._left(end, ()) for end in ends] for ends in zip(*part, strict=True))
                h = np.stack([self.covariance[self.block(x), self.block(y)] for x, y in part])
                h = np.stack([left.root for left in one]) @ h @ np.stack([left.root for left in other])
                cross = np.stack([np.multiply.outer(a.noise, b.noise) for a, b in zip(one, other, strict=True)])
                sampling = np.stack([np.multiply.outer(a.spread, b.spread) for a, b in zip(one, other, strict=True)])
                spread = sampling / self.count + noise * noise * cross
                spread = spread.transpose(0, 1, 3, 2, 4).reshape(-1, p * q, p * q)
                flat, column = h.reshape(-1, 1, p * q), h.reshape(-1, p * q, 1)
                statistics = (flat @ np.linalg.solve(with_ridge(spread), column)).ravel()
                added = np.trace(spread, axis1=1, axis2=2)
                strengths = (flat @ column).ravel() - added
                columns = statistics, strengths, upper_tails(statistics, p * q), added
                residuals |= {
                    pair: Residual(statistic, p * q, *left)
                    for pair, statistic, *left in zip(part, *(one.tolist() for one in columns), strict=True)
                }
        return residuals

    @cached_property
    def _features(self) -> list[tuple[Reals, Reals]]:
        return [(shares, features(shares)) for shares in map(np.array, self.shares)]

    @memoized
    def _within(self, x: int, z: int) -> tuple[Reals, Reals]:
        """Return the weights of the levels of z and the covariance of x in each, from shares that are none below 0."""
        joint = self.pair(x, z)
        weights = joint.sum(axis=0)
        laws = joint / weights
        F = (self._features[x][1] - self._means[self.block(x)]) @ self._roots[x].T
        means = laws.T @ F
        return weights, np.einsum("rz,ra,rb->zab", laws, F, F) - means[:, :, None] * means[:, None, :]

    def pair(self, x: int, z: int) -> Reals:
        """Return the noisy joint distribution of the retained levels of two columns. No share below a tenth of a
        row."""
        (px, Fx), (pz, Fz) = self._features[x], self._features[z]
        mx, mz = self._means[self.block(x)], self._means[self.block(z)]
        core = 1 + (Fx @ mx)[:, None] + (Fz @ mz)[None, :] + Fx @ self._second[self.block(x), self.block(z)] @ Fz.T
        joint = np.maximum(px[:, None] * pz[None, :] * core, 0.1 / self.n)
        return np.asarray(joint / joint.sum())

    def by_name(self) -> Self:
        order = sorted(range(len(self.names)), key=self.names.__getitem__)
        if order == list(range(len(order))):
            return self
        entries = [place for column in order for place in range(*self.block(column).indices(len(self.matrix)))]
        entries.append(len(self.matrix) - 1)
        return replace(
            self, names=tuple(self.names[k] for k in order), places=tuple(self.places[k] for k in order),
            shares=tuple(self.shares[k] for k in order), matrix=self.matrix[np.ix_(entries, entries)],
        )  # fmt: skip

    def with_extra_noise(self, generator: PublicGenerator, part: float = 1.0) -> Self:
        noise = np.triu(generator.normal(0, self.deviation * math.sqrt(part), self.matrix.shape))
        noise[np.diag_indices_from(noise)] *= math.sqrt(2)
        fresh = noise + np.triu(noise, 1).T
        return replace(self, matrix=self.matrix + fresh, deviation=self.deviation * math.sqrt(1 + part))

    def numbers(self) -> dict[str, Any]:
        return {
            "columns": [
                {"places": list(place), "shares": list(share)}
                for place, share in zip(self.places, self.shares, strict=True)
            ],
            "matrix": self.matrix.tolist(), "deviation": self.deviation,
            **cuts_written(self.cuts),
            **cut_written(self.cut),
        }  # fmt: skip

    def number_notes(self) -> list[str]:
        return cuts_text(self.cuts)

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
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
        return cls(names, n, tuple(places), tuple(shares), matrix, form.size("deviation"),
                   cuts=cuts_in(form, names), cut=cut_in(form, names))  # fmt: skip


def of_factors(a: Reals, b: Reals) -> Reals:
    return np.asarray(a[:, None, :, None] * b[None, :, None, :])


def with_eigenvalue_floor(covariance: Reals, least: float = LEAST_LEFT) -> tuple[Reals, Reals]:
    """Return a covariance without eigenvalues near 0, and its inverse root."""
    if covariance.size == 1:  # of two levels, in a fraction of the time
        one = np.maximum(covariance, least)
        return one, 1 / np.sqrt(one)
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, least)
    return (vectors * values) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T


def with_ridge(spread: Reals) -> Reals:
    """Return covariances, shape (…, k, k), that no released value makes singular."""
    ridge = 1e-12 * np.maximum(np.trace(spread, axis1=-2, axis2=-1), 1.0)
    return np.asarray(spread + ridge[..., None, None] * np.eye(spread.shape[-1]))
