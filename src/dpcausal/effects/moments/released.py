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
from dpcausal.effects.moments.adaptive import (
    Moments,
    Noise,
    Shape,
    StreamedRows,
    estimate_location_scale,
    final_moments,
    undetectable_tail,
)
from dpcausal.effects.moments.factors import Layout, factor_moments, level_names, split_inverse
from dpcausal.effects.moments.sandwich import Sandwich
from dpcausal.mechanisms.gate import book_exact
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.moments import NoisyMoments
from dpcausal.releases.release import Release
from dpcausal.releases.saved import Form
from dpcausal.statistics.moments import variance_roots

Two = tuple[float, float]

MARGIN = 1.25
"""What the noise's covariance is multiplied by, for that of the shape: calibrated by measured coverage, not proved."""


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
        of, pairs = form.texts("of"), form.arrays({"middles": (2,), "reaches": (2,)})
        if len(of) != 2 or not set(of) <= set(names):
            raise form.refuse("of")
        if (pairs["reaches"] <= 0).any():
            raise form.refuse("reaches")
        return cls(form.text("name", names), (of[0], of[1]), *(tuple(pair.tolist()) for pair in pairs.values()))


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
    factors : tuple of tuples of str
        Columns of more levels, each with all of them, the reference first: ``names`` ends with ``"site = south"``, 1 or
        0, of every level.
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
    factors: tuple[tuple[str, ...], ...] = ()

    @property
    def layout(self) -> Layout:
        sizes = tuple(len(one) - 1 for one in self.factors)
        return Layout(len(self.names) - sum(sizes), sizes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table: numbers, and factors."""
        return (*self.names[: self.layout.numbers], *(one[0] for one in self.factors))

    @property
    def references(self) -> tuple[str, ...]:
        """The columns of the first level of each factor."""
        return tuple(f"{name} = {first}" for name, first, *_ in self.factors)

    def factors_in(self, names: Sequence[str]) -> tuple[int, ...]:
        return tuple(place for name in names for place, one in enumerate(self.factors) if one[0] == name)

    def counted(self, name: str) -> tuple[str, str] | None:
        """Return the reference level of a column of two levels, and the one that counts 1; ``None`` of a number."""
        return next(((reference, level) for one, reference, level in self.levels if one == name), None)

    @classmethod
    def of_table(
        cls, table: Table, sources: tuple[str, ...], names: tuple[str, ...], ranges: tuple[Reals, Reals],
        units: Callable[[Rows], Reals], rho: ZCDP | None, budget: CallBudget, factors: tuple[tuple[str, ...], ...] = (),
    ) -> tuple[Self, StreamedRows]:  # fmt: skip
        """Release moments of the rows that ``units`` makes of columns, exact ones without ρ; return also these rows."""
        d, n, sizes = len(names), table.n, tuple(len(one) - 1 for one in factors)
        layout = Layout(d - sum(sizes), sizes)
        if rho is None:
            book_exact("moments", budget)
            held = table.parts(sources)
            unit = units(held)
            exact = cls.without_noise(names, n, ranges, unit, held, layout.numbers)
            return replace(exact, factors=factors), StreamedRows.held(unit, held)
        rows = StreamedRows.of(table, sources, units)
        rounds = (
            factor_moments(rows, layout, n, budget, rho) if factors
            else final_moments(rows, estimate_location_scale(rows, d, n, budget, rho), n, budget, rho,
                               undetectable_tail(d, n, rho))
        )  # fmt: skip
        return replace(cls.of_rounds(names, n, ranges, rounds), factors=factors), rows

    @classmethod
    def of_rounds(cls, names: tuple[str, ...], n: int, ranges: tuple[Reals, Reals], rounds: Moments) -> Self:
        return cls(
            names, n, middles=ranges[0], halves=ranges[1], centre=rounds.shape.middle, spread=rounds.shape.spread,
            sums=rounds.sums, radius=rounds.noise.radius, deviation=rounds.noise.deviation, shortened=rounds.clipped,
            towards=rounds.towards,
        )  # fmt: skip

    @classmethod
    def without_noise(
        cls, names: tuple[str, ...], n: int, ranges: tuple[Reals, Reals], unit: Reals, parts: Rows,
        numbers: int | None = None,
    ) -> Self:  # fmt: skip
        d, weights = len(names), (np.ones(parts.n) if parts.weights is None else parts.weights) * parts.included
        centre = weights @ unit / max(float(weights.sum()), 1e-300)
        if numbers is not None:
            centre[numbers:] = -1.0
        rows = np.column_stack([unit - centre, np.ones(len(unit))])
        sums, noise = (rows * weights[:, None]).T @ rows, Noise(2 * math.sqrt(d), 0, 0.0)
        return cls.of_rounds(names, n, ranges, Moments(Shape(centre, np.eye(d)), sums, 0.0, np.zeros(d), noise))

    def number_notes(self) -> list[str]:
        ratio, products = self.signal_to_noise, [f"{one}, cut to [-1, 1]." for one in self.products]
        text = f"Least signal to noise: {ratio:.3g}; about {max(self.shortened, 0):.0f} records were winsorised."
        return [text, *products] if self.deviation else []

    @property
    def noise(self) -> Noise:
        return Noise(self.radius, 0, self.deviation)

    @property
    def signal_to_noise(self) -> float:
        """The least eigenvalue of Σ zz′ over the norm of its noise, σ √(2d); of numbers within levels, of factors."""
        least = float(np.linalg.eigvalsh(self.within().sums[:-1, :-1])[0])
        return least / (self.deviation * math.sqrt(2 * self.layout.numbers)) if self.deviation > 0 else math.inf

    @property
    def variances(self) -> Reals:
        """Those of the noise of the sums; where two levels exclude each other, 0 was released."""
        variances = self.noise.variances(len(self.names))
        variances[:-1, :-1][self.layout.never] = 0.0
        return variances

    @property
    def radius_of_numbers(self) -> float:
        """The length that rows are shortened to, less what factors add to each."""
        starts = (self.layout.levels(factor)[0] for factor in range(len(self.factors)))
        return math.sqrt(max(self.radius**2 - sum((2 / self.spread[place, place]) ** 2 for place in starts), 0.0))

    def levels_of(self, factors: Sequence[int]) -> tuple[Reals, Reals, Reals]:
        """Return columns of levels as rows of columns z, and the inverse of their moments as ``split_inverse`` does."""
        places = [place for factor in factors for place in self.layout.levels(factor)]
        rows = (self.halves[:, None] * self.spread)[places]
        sizes = tuple(self.layout.sizes[factor] for factor in factors)
        return rows, *split_inverse(rows, self.sums, sizes, self.deviation, self.noise_of)

    def about(self, rows: Reals, factors: Sequence[int] = ()) -> Reals:
        """Return rows of columns z about their means, or those within levels of factors; the constant is last."""
        if not factors:
            return np.column_stack([rows, -rows @ self.sums[:-1, -1] / self.count])
        levels, inverse, _ = self.levels_of(factors)
        return np.column_stack([rows - rows @ self.sums[:-1, :-1] @ levels.T @ inverse @ levels, np.zeros(len(rows))])

    def within(self) -> Self:
        """Return the moments of numbers about their means within the levels of all factors."""
        if not self.factors:
            return self
        p = self.layout.numbers
        rows = np.vstack([self.about(np.eye(p, len(self.names)), range(len(self.factors))), np.eye(len(self.sums))[-1]])
        sums = rows @ self.sums @ rows.T
        sums[:-1, -1] = sums[-1, :-1] = 0.0
        return replace(
            self, names=self.names[:p], middles=self.middles[:p], halves=self.halves[:p], centre=self.centre[:p],
            spread=self.spread[:p, :p], towards=self.towards[:p], sums=sums, sandwich=None, factors=(),
        )  # fmt: skip

    @property
    def records_counted(self) -> float:
        return float(self.sums[-1, -1])

    @property
    def count_deviation(self) -> float:
        return math.sqrt(self.noise.variances(1)[-1, -1])

    @property
    def count(self) -> float:
        """The rows that count, noisy, at least a tenth of all or what noise alone could make."""
        return max(float(self.sums[-1, -1]), self.noise.least_count(self.n))

    @property
    def scales(self) -> Shape:
        """Where the columns lie and how far they spread, each by itself."""
        spread = self.spread @ self.sums[:-1, :-1] @ self.spread.T / self.count
        return Shape(self.centre, np.diag(np.sqrt(np.maximum(np.diag(spread), 0.0))))

    @property
    def covariance(self) -> Reals:
        """That of the columns, in their units, as released: noise may leave a variance below 0."""
        mean, units = self.sums[:-1, -1] / self.count, self.halves[:, None] * self.spread
        covariance: Reals = units @ (self.sums[:-1, :-1] / self.count - np.outer(mean, mean)) @ units.T
        return covariance

    @property
    def correlation(self) -> Reals:
        """That of the columns, as released: noise may take an entry beyond 1."""
        deviations = variance_roots(self.covariance)
        correlation: Reals = self.covariance / np.outer(deviations, deviations)
        return correlation

    def mean(self, place: int) -> float:
        unit = self.centre[place] + float(self.spread[place] @ self.sums[:-1, -1]) / self.count
        return float(self.middles[place] + self.halves[place] * unit)

    def residual(self, outcome: str, regressors: Sequence[str]) -> float:
        """Return the noisy variance of a column about its line on others; about its mean, without any."""
        return line(self, outcome, tuple(regressors)).residual

    def among(self, names: Sequence[str]) -> Self:
        """Return the moments of some of the columns, without ``sandwich``, in the shape of these alone; all factors
        stay where one is named. Q has orthonormal columns: Q′EQ has noise of the same distribution, variance σ² on the
        diagonal and σ²/2 off it."""
        kept, p = self.factors if self.factors_in(names) else (), self.layout.numbers
        numbers = [self.names.index(name) for name in names if name in self.names[:p]]
        levels = list(range(p, len(self.names))) if kept else []
        places, w = [*numbers, *levels], len(numbers)
        Q, R = np.linalg.qr(self.spread[numbers, : p if kept else None].T)
        around = np.zeros((len(self.sums), len(places) + 1))
        around[: len(Q), :w], around[[*levels, -1], range(w, len(places) + 1)] = Q, 1.0
        spread = self.spread[np.ix_(places, places)]
        spread[:w, :w] = R.T
        return replace(
            self, names=tuple(self.names[place] for place in places), middles=self.middles[places],
            halves=self.halves[places], centre=self.centre[places], spread=spread,
            sums=around.T @ self.sums @ around, towards=around[:-1, :-1].T @ self.towards,
            sandwich=None, products=tuple(one for one in self.products if one.name in names),
            levels=tuple(one for one in self.levels if one[0] in names), factors=kept,
        )  # fmt: skip

    def noise_of(self, vector: Reals) -> Reals:
        """Return Cov(Ev) for the noise E of the sums: C_ii = Σ_j Var(E_ij) v_j², C_ij = Var(E_ij) v_i v_j."""
        variances = self.variances
        covariance = variances * np.outer(vector, vector)
        np.fill_diagonal(covariance, variances @ vector**2)
        return covariance

    def with_extra_noise(self, generator: PublicGenerator) -> Self:
        deviations = np.sqrt(self.variances)
        upper = np.triu(generator.normal(0, 1, deviations.shape) * deviations)
        fresh = upper + np.triu(upper, 1).T
        return replace(self, sums=self.sums + fresh, deviation=math.sqrt(2) * self.deviation)

    def as_graph_release(self) -> NoisyMoments:
        """Return the covariance in units of the learnt shape, the variance that of its noisiest entry; of levels, of
        all but the reference."""
        names = tuple(name for name in self.names if name not in self.references)
        spread = self.spread[[self.names.index(name) for name in names]]
        along = spread / np.linalg.norm(spread, axis=1, keepdims=True)
        means = self.sums[:-1, -1] / self.count
        covariance = along @ (self.sums[:-1, :-1] / self.count - np.outer(means, means)) @ along.T
        # The noise of entry (i, j) of A E A′ is that of E times |a_i|² |a_j|² + (a_i · a_j)².
        most = 1 + float(np.triu((along @ along.T) ** 2, 1).max(initial=0.0))
        return NoisyMoments(
            names, self.n, (0.0,) * len(names), (1.0,) * len(names), (covariance + covariance.T) / 2,
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
        factors = form.lists("factors") if form.has("factors") else ()
        ends = level_names(factors)
        if any(len(one) < 3 for one in factors) or not len(ends) < d or names[d - len(ends) :] != ends:
            raise form.refuse("factors")
        named = (*names, *(one[0] for one in factors))
        return cls(
            names, n, **arrays, factors=factors, radius=form.size("radius"), deviation=form.size("deviation"),
            levels=levels,
            shortened=float(form.array("shortened").reshape(-1)[0]),
            sandwich=Sandwich.from_payload(form.part("sandwich"), named) if form.has("sandwich") else None,
            products=tuple(Product.from_payload(one, names) for one in form.parts("products")),
        )  # fmt: skip


@dataclass(frozen=True)
class Line:
    """Slopes about the released middle, the constant last; moments of outcome, regressors and constant.  Where factors
    are among the regressors, numbers come first and the columns of all levels are instead of the constant."""

    slopes: Reals
    moments: Reals
    lift: Reals
    inverse: Reals
    residual: float
    free: float
    """Rows that count, less terms."""
    lost: Reals
    """The part of the inverse along which levels determine each other."""

    def noise(self, release: ReleasedMoments) -> Reals:
        """Return the covariance that the noise of the moments has in the slopes."""
        along = self.lift.T @ np.concatenate([[1.0], -self.slopes])
        of_sums = (self.lift @ release.noise_of(along) @ self.lift.T)[1:, 1:]
        noise: Reals = MARGIN * self.inverse @ of_sums @ self.inverse
        return noise


def line(release: ReleasedMoments, outcome: str, regressors: tuple[str, ...]) -> Line:
    factors = release.factors_in(regressors)
    numbers = [name for name in regressors if name in release.names]
    places, w = [release.names.index(name) for name in (outcome, *numbers)], len(numbers)
    # About the released middle, in the columns' units: slopes do not depend on it.
    none = np.zeros((0, 0))
    rows, within, lost = release.levels_of(factors) if factors else (np.zeros((1, len(release.names))), none, none)
    lift = np.zeros((len(places) + len(rows), len(release.names) + 1))
    lift[: w + 1, :-1], lift[w + 1 :, :-1] = (release.halves[:, None] * release.spread)[places], rows
    lift[-1, -1] = float(not factors)
    moments = lift @ release.sums @ lift.T
    inverse = np.asarray(np.linalg.pinv(moments[1:, 1:]), dtype=np.float64)
    if factors:
        on = within @ moments[w + 1 :, 1 : w + 1]
        own = np.linalg.pinv(moments[1 : w + 1, 1 : w + 1] - moments[1 : w + 1, w + 1 :] @ on)
        inverse = np.block([[own, -own @ on.T], [-on @ own, within + on @ own @ on.T]])
    slopes = inverse @ moments[1:, 0]
    contrast = np.concatenate([[1.0], -slopes])
    free = max(release.count - len(slopes) + max(len(factors) - 1, 0), 1.0)
    return Line(slopes, moments, lift, inverse, max(float(contrast @ moments @ contrast), 0.0) / free, free, lost)
