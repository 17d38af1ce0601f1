"""What answers are read off: noisy moments of columns, the spread about one declared line, and least-squares lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.codec import storable
from dpcausal.data.records import Rows
from dpcausal.data.table import Table
from dpcausal.effects.clusters import ClusterVariance
from dpcausal.effects.moments.adaptive import Moments, Noise, Shape, StreamedRows, adaptive_moments, undetectable_tail
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.moments import NoisyMoments
from dpcausal.releases.release import Release
from dpcausal.releases.saved import Form

Two = tuple[float, float]

MARGIN = 1.25
"""What the noise's covariance is multiplied by, for that of the shape: calibrated by measured coverage, not proved."""


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

    def by_clusters(self, regressors: tuple[str, ...]) -> list[ClusterVariance]:
        """Return the variances in the order of the regressors, the intercept last; empty: by rows."""
        order = [*(self.regressors.index(name) for name in regressors), len(regressors)]
        return [self.clusters[place] for place in order] if self.clusters else []

    def over(self, regressors: tuple[str, ...]) -> tuple[Reals, Step | None]:
        """Return sums and step in the order of the regressors."""
        order = [*(self.regressors.index(name) for name in regressors), len(regressors)]
        both, step = np.ix_(order, order), self.step
        return self.sums[both], step and Step(step.by[order], step.noise[both], step.unsure[order])

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...]) -> Sandwich:
        outcome, regressors = form.text("outcome", names), form.texts("regressors", different=True)
        size = len(regressors) + 1

        def array(part: Form, name: str, shape: tuple[int, ...]) -> Reals:
            values: Reals = part.array(name)
            if values.shape != shape or not set(regressors) <= set(names) - {outcome}:
                raise part.refuse(name)
            return values

        step = None
        if form.has("step"):
            part = form.part("step")
            step = Step(array(part, "by", (size,)), array(part, "noise", (size, size)), array(part, "unsure", (size,)))
        clusters = ClusterVariance.saved(form, (0, size))
        cluster = form.text("cluster") if form.has("cluster") else ""
        sums, deviation = array(form, "sums", (size, size)), form.size("deviation")
        return cls(outcome, regressors, sums, deviation, step, cluster, clusters)


@storable("Product")
@dataclass(frozen=True)
class Product:
    """((x − m) / r) · ((w − l) / s), cut to [−1, 1], of two columns of the same record, or of one with itself. ``of``
    names the columns (of one with more than two levels ``"site = south"``, 1 or 0); ``middles`` are m and l,
    ``reaches`` r and s, in the columns' units, read off what was released before."""

    name: str
    of: tuple[str, str]
    middles: Two
    reaches: Two

    def __call__(self, columns: Mapping[str, Reals]) -> Reals:
        one, other = (
            (columns[name] - middle) / reach
            for name, middle, reach in zip(self.of, self.middles, self.reaches, strict=True)
        )
        return np.clip(one * other, -1.0, 1.0)

    def __str__(self) -> str:
        one, other = (
            f"({name} - {middle:.4g}) / {reach:.4g}"
            for name, middle, reach in zip(self.of, self.middles, self.reaches, strict=True)
        )
        return f"{self.name}: ({one})²" if self.of[0] == self.of[1] else f"{self.name}: ({one}) · ({other})"

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...]) -> Self:
        of, middles, reaches = form.texts("of"), form.array("middles"), form.array("reaches")
        if len(of) != 2 or not set(of) <= set(names) or middles.shape != (2,) or reaches.shape != (2,):
            raise form.refuse("of")
        if (reaches <= 0).any():
            raise form.refuse("reaches")
        pairs = ((float(one), float(other)) for one, other in (middles, reaches))
        return cls(form.text("name", names), (of[0], of[1]), *pairs)


@dataclass(frozen=True, eq=False)
class ReleasedMoments(Release):
    """Noisy Σ (z, 1)(z, 1)′ of rows x = middles + halves · (centre + spread z).

    Attributes
    ----------
    middles, halves : float arrays, shape (d,)
        Of the columns' public ranges.
    centre, spread : float arrays, shapes (d,) and (d, d)
        Released: where the rows lie and in what shape, in units of ``halves``.
    sums : float array, shape (d + 1, d + 1)
    radius, deviation : float
        Rows z were shortened to the radius; σ of the noise on the diagonal.  0 without privacy.
    shortened : float
        How many were.
    towards : float array, shape (d,)
        The sum of their directions.
    sandwich : Sandwich or None
        The spread about the line of one declared regression.
    products : tuple of Product
        What columns are that were made of two others.
    levels : tuple of (str, str, str)
        Columns of two levels, each with its reference level, which counts 0, and the level that counts 1.
    """

    kind: ClassVar[str] = "joint-moments"

    middles: Reals
    halves: Reals
    centre: Reals
    spread: Reals
    sums: Reals
    radius: float
    deviation: float
    shortened: float
    towards: Reals
    sandwich: Sandwich | None = None
    products: tuple[Product, ...] = ()
    levels: tuple[tuple[str, str, str], ...] = ()

    def counted(self, name: str) -> tuple[str, str] | None:
        """Return the reference level of a column of two levels, and the one that counts 1; ``None`` of a number."""
        return next(((reference, level) for one, reference, level in self.levels if one == name), None)

    @classmethod
    def of_table(
        cls, table: Table, sources: tuple[str, ...], names: tuple[str, ...], ranges: tuple[Reals, Reals],
        units: Callable[[Rows], Reals], rho: ZCDP | None, budget: CallBudget,
    ) -> tuple[Self, StreamedRows]:  # fmt: skip
        """Release moments of the rows that ``units`` makes of columns, exact ones without ρ; return also these rows."""
        d, n = len(names), table.n
        if rho is None:
            book_exact("moments", budget)
            held = table.parts(sources)
            unit = units(held)
            return cls.without_noise(names, n, ranges, unit, held), StreamedRows.held(unit, held)
        rows = StreamedRows.of(table, sources, units)
        rounds = adaptive_moments(rows, d, n, budget, rho, undetectable_tail(d, n, rho))
        return cls.of_rounds(names, n, ranges, rounds), rows

    @classmethod
    def of_rounds(cls, names: tuple[str, ...], n: int, ranges: tuple[Reals, Reals], rounds: Moments) -> Self:
        return cls(
            names, n, middles=ranges[0], halves=ranges[1], centre=rounds.shape.middle, spread=rounds.shape.spread,
            sums=rounds.sums, radius=rounds.noise.radius, deviation=rounds.noise.deviation, shortened=rounds.clipped,
            towards=rounds.towards,
        )  # fmt: skip

    @classmethod
    def without_noise(
        cls, names: tuple[str, ...], n: int, ranges: tuple[Reals, Reals], unit: Reals, parts: Rows
    ) -> Self:
        d, weights = len(names), (np.ones(parts.n) if parts.weights is None else parts.weights) * parts.included
        centre = weights @ unit / max(float(weights.sum()), 1e-300)
        rows = np.column_stack([unit - centre, np.ones(len(unit))])
        return cls(
            names, n, middles=ranges[0], halves=ranges[1], centre=centre, spread=np.eye(d),
            sums=(rows * weights[:, None]).T @ rows,
            radius=2 * math.sqrt(d), deviation=0.0, shortened=0.0, towards=np.zeros(d),
        )  # fmt: skip

    def number_notes(self) -> list[str]:
        if not self.deviation:
            return []
        return [f"The noise is exceeded {self.signal_to_noise:.3g} times in the least direction; about "
                f"{max(self.shortened, 0):.0f} records were shortened.",
                *(f"{one}, cut to [-1, 1]." for one in self.products)]  # fmt: skip

    @property
    def noise(self) -> Noise:
        return Noise(self.radius, 0, self.deviation)

    @property
    def signal_to_noise(self) -> float:
        """The least eigenvalue of Σ zz′ over the norm of its noise, σ √(2d)."""
        least = float(np.linalg.eigvalsh(self.sums[:-1, :-1])[0])
        return least / (self.deviation * math.sqrt(2 * len(self.names))) if self.deviation > 0 else math.inf

    @property
    def records_counted(self) -> float:
        return float(self.sums[-1, -1])

    @property
    def count(self) -> float:
        """The rows that count, noisy, at least a tenth of all or what noise alone could make."""
        return max(float(self.sums[-1, -1]), self.noise.least_count(self.n))

    @property
    def scales(self) -> Shape:
        """Where the columns lie and how far they spread, each by itself."""
        spread = self.spread @ self.sums[:-1, :-1] @ self.spread.T / self.count
        return Shape(self.centre, np.diag(np.sqrt(np.maximum(np.diag(spread), 0.0))))

    def mean(self, place: int) -> float:
        unit = self.centre[place] + float(self.spread[place] @ self.sums[:-1, -1]) / self.count
        return float(self.middles[place] + self.halves[place] * unit)

    def residual(self, outcome: str, regressors: Sequence[str]) -> float:
        """Return the noisy variance of a column about its line on others; about its mean, without any."""
        return line(self, outcome, tuple(regressors)).residual

    def among(self, names: Sequence[str]) -> Self:
        """Return the moments of some of the columns, without ``sandwich``, in the shape of these alone. Q has
        orthonormal columns: Q′EQ has noise of the same distribution, variance σ² on the diagonal and σ²/2 off it."""
        places = [self.names.index(name) for name in names]
        Q, R = np.linalg.qr(self.spread[places].T)
        around = np.zeros((len(Q) + 1, len(places) + 1))
        around[:-1, :-1], around[-1, -1] = Q, 1.0
        return replace(
            self, names=tuple(names), middles=self.middles[places], halves=self.halves[places],
            centre=self.centre[places], spread=R.T, sums=around.T @ self.sums @ around, towards=Q.T @ self.towards,
            sandwich=None, products=tuple(one for one in self.products if one.name in names),
            levels=tuple(one for one in self.levels if one[0] in names),
        )  # fmt: skip

    def noise_of(self, vector: Reals) -> Reals:
        """Return Cov(Ev) for the noise E of the sums: C_ii = Σ_j Var(E_ij) v_j², C_ij = Var(E_ij) v_i v_j."""
        variances = self.noise.variances(len(self.names))
        covariance = variances * np.outer(vector, vector)
        np.fill_diagonal(covariance, variances @ vector**2)
        return covariance

    def with_extra_noise(self, generator: PublicGenerator) -> Self:
        deviations = np.sqrt(self.noise.variances(len(self.names)))
        upper = np.triu(generator.normal(0, 1, deviations.shape) * deviations)
        fresh = upper + np.triu(upper, 1).T
        return replace(self, sums=self.sums + fresh, deviation=math.sqrt(2) * self.deviation)

    def as_graph_release(self) -> NoisyMoments:
        """Return the covariance in units of the learnt shape, the variance that of its noisiest entry."""
        along = self.spread / np.linalg.norm(self.spread, axis=1, keepdims=True)
        means = self.sums[:-1, -1] / self.count
        covariance = along @ (self.sums[:-1, :-1] / self.count - np.outer(means, means)) @ along.T
        # The noise of entry (i, j) of A E A′ is that of E times |a_i|² |a_j|² + (a_i · a_j)².
        most = 1 + float(np.triu((along @ along.T) ** 2, 1).max(initial=0.0))
        return NoisyMoments(
            self.names, self.n, (0.0,) * len(self.names), (1.0,) * len(self.names), (covariance + covariance.T) / 2,
            self.deviation**2 / 2 / self.count**2 * most, min(self.count, self.n), guarantee=self.guarantee,
        )  # fmt: skip

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        d = len(names)
        one, square = (d,), (d, d)
        arrays = form.arrays({"middles": one, "halves": one, "centre": one, "towards": one, "spread": square,
                              "sums": (d + 1, d + 1)})  # fmt: skip
        levels: Any = form.lists("levels") if form.has("levels") else ()
        if any(len(one) != 3 or one[0] not in names for one in levels):
            raise form.refuse("levels")
        return cls(
            names, n, **arrays, radius=form.size("radius"), deviation=form.size("deviation"), levels=levels,
            shortened=float(form.array("shortened").reshape(-1)[0]),
            sandwich=Sandwich.from_payload(form.part("sandwich"), names) if form.has("sandwich") else None,
            products=tuple(Product.from_payload(one, names) for one in form.parts("products")),
        )  # fmt: skip


@dataclass(frozen=True)
class Line:
    """Slopes about the released middle, the constant last; moments of outcome, regressors and constant."""

    slopes: Reals
    moments: Reals
    lift: Reals
    inverse: Reals
    residual: float


def line(release: ReleasedMoments, outcome: str, regressors: tuple[str, ...]) -> Line:
    places = [release.names.index(name) for name in (outcome, *regressors)]
    # About the released middle, in the columns' units: slopes do not depend on it.
    lift = np.zeros((len(places) + 1, len(release.names) + 1))
    lift[:-1, :-1] = (release.halves[:, None] * release.spread)[places]
    lift[-1, -1] = 1.0
    moments = lift @ release.sums @ lift.T
    inverse = np.asarray(np.linalg.pinv(moments[1:, 1:]), dtype=np.float64)
    slopes = inverse @ moments[1:, 0]
    contrast = np.concatenate([[1.0], -slopes])
    residual = max(float(contrast @ moments @ contrast), 0.0) / max(release.count - len(slopes), 1.0)
    return Line(slopes, moments, lift, inverse, residual)
