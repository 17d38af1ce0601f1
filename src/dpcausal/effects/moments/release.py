"""Noisy first and second moments of columns of numbers, in a learnt shape: regressions of any of them, free."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, cast, get_args

import numpy as np
import numpy.typing as npt

from dpcausal.codec import storable
from dpcausal.core import validate as public
from dpcausal.data.records import Rows
from dpcausal.effects.cells.effect import checked_names
from dpcausal.effects.moments.adaptive import Moments, Noise, Shape
from dpcausal.effects.moments.instruments import Instrumented, two_stage
from dpcausal.effects.moments.mediation import mediated, partial, sensitivity_table
from dpcausal.effects.moments.product import Product
from dpcausal.effects.moments.regression import Errors, Regression, Terms, regress
from dpcausal.effects.moments.released import Sandwich, line
from dpcausal.effects.moments.slope_effect import effect_of_line
from dpcausal.effects.result import Effect
from dpcausal.errors import ParameterError, with_signature_errors
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.moments import NoisyMoments
from dpcausal.releases.release import Release
from dpcausal.releases.saved import Form

Reals = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@storable("JointMoments")
@dataclass(frozen=True, eq=False)
class JointMoments(Release):
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
    def of_rounds(cls, names: tuple[str, ...], n: int, ranges: tuple[Reals, Reals], rounds: Moments) -> Self:
        """Return the release of what the last round left."""
        return cls(
            names, n, middles=ranges[0], halves=ranges[1], centre=rounds.shape.middle, spread=rounds.shape.spread,
            sums=rounds.sums, radius=rounds.noise.radius, deviation=rounds.noise.deviation, shortened=rounds.shortened,
            towards=rounds.towards,
        )  # fmt: skip

    @classmethod
    def without_noise(
        cls, names: tuple[str, ...], n: int, ranges: tuple[Reals, Reals], unit: Reals, parts: Rows
    ) -> Self:
        """Return the moments of rows of [−1, 1] without noise."""
        d, weights = len(names), (np.ones(parts.n) if parts.weights is None else parts.weights) * parts.kept
        centre = weights @ unit / max(float(weights.sum()), 1e-300)
        rows = np.column_stack([unit - centre, np.ones(len(unit))])
        return cls(
            names, n, middles=ranges[0], halves=ranges[1], centre=centre, spread=np.eye(d),
            sums=(rows * weights[:, None]).T @ rows,
            radius=2 * math.sqrt(d), deviation=0.0, shortened=0.0, towards=np.zeros(d),
        )  # fmt: skip

    def told(self) -> list[str]:
        if not self.deviation:
            return []
        return [f"The least direction stands {self.signal_to_noise:.3g} times above the noise; about "
                f"{max(self.shortened, 0):.0f} records were shortened.",
                *(f"{one}, cut to [-1, 1]." for one in self.products)]  # fmt: skip

    @with_signature_errors
    def ols(
        self, outcome: str, regressors: Sequence[str], *, errors: Errors | None = None, coverage: float = 0.95,
    ) -> Regression:  # fmt: skip
        """Return the linear regression of a column on others: free, however often.

        Parameters
        ----------
        outcome : str
        regressors : list of str
        errors : {"homoscedastic", "normal", "symmetric"}, optional
            What is known of the errors about the line.  Second moments do not show it, so there is an interval only
            where it is stated, or for the regression named as ``robust_for`` at enough rows.

            * ``"homoscedastic"``: they have one distribution everywhere, the same spread and the same skew.
            * ``"normal"``: outcome and regressors are about normal together, so errors are homoscedastic too.  Needed
              where noise would hide a skew.
            * ``"symmetric"``: of the regression named as ``robust_for``, the outcome lies as far above its line as
              below, everywhere; its spread may differ.  Needed where rows are too few to show a skew.
        coverage : float
            From 0.5 to 0.999.
        """
        named, on = self._named(outcome=outcome), self._listed("regressors", regressors, 1, outcome)
        return regress(self, named, on, _terms(errors, coverage))

    @with_signature_errors
    def effect(
        self, *, treatment: str, outcome: str, adjust: Sequence[str], errors: Errors | None = None,
        coverage: float = 0.95,
    ) -> Effect:  # fmt: skip
        """Return the slope of a treatment, others held fixed, as an effect: free, however often.

        Parameters
        ----------
        treatment, outcome : str
        adjust : list of str
            Every common cause of both; empty if treatment was drawn at random.
        errors, coverage
            As for ``ols``, whose slope and interval it has.

        Returns
        -------
        Effect
            ``estimand`` is ``"slope"``: the mean change by one unit of the treatment where outcomes follow a line.
        """
        named, moved = self._named(outcome=outcome), self._named(treatment=treatment)
        if named == moved:
            raise ParameterError("outcome and treatment must be different columns")
        held = self._listed("adjust", adjust, 0, outcome, treatment)
        terms = _terms(errors, coverage)
        return replace(effect_of_line(self, moved, named, held, terms), release=self)

    @with_signature_errors
    def iv(
        self, outcome: str, treatment: str, *, instruments: Sequence[str], given: Sequence[str] = (),
        errors: Literal["homoscedastic"] | None = None, coverage: float = 0.95,
    ) -> Instrumented:  # fmt: skip
        """Return the slope of a treatment by instruments, two-stage least squares and Anderson–Rubin: free.

        Parameters
        ----------
        outcome, treatment : str
        instruments : list of str
            Columns that move the treatment, and the outcome through nothing else: no table can show that.
        given : list of str
            Columns that are held fixed.
        errors, coverage
            As for ``ols``.
        """
        named, moved = self._named(outcome=outcome), self._named(treatment=treatment)
        by = self._listed("instruments", instruments, 1, outcome, treatment)
        held = self._listed("given", given, 0, outcome, treatment, *by)
        return two_stage(self, named, moved, by, held, _terms(errors, coverage, "homoscedastic"))

    @with_signature_errors
    def partial(
        self, x: str, y: str, *, given: Sequence[str] = (), errors: Literal["normal"] | None = None,
        coverage: float = 0.95,
    ) -> Regression:  # fmt: skip
        """Return the partial correlation of two columns, others held fixed: free.

        ``errors="normal"`` states that all of them are about normal; without it there is no interval.
        """
        one, other = self._named(x=x), self._named(y=y)
        held = self._listed("given", given, 0, x, y)
        if one == other:
            raise ParameterError("x and y must be different columns")
        return partial(self, one, other, held, _terms(errors, coverage, "normal"))

    @with_signature_errors
    def mediation(
        self, treatment: str, mediator: str, outcome: str, *, given: Sequence[str] = (),
        errors: Literal["homoscedastic"] | None = None, coverage: float = 0.95,
    ) -> Regression:  # fmt: skip
        """Return the direct effect, that through a mediator, and both together, in linear models: free.

        Right if ``given`` holds every common cause of treatment, mediator and outcome, and none of them is itself
        caused by the treatment.
        """
        names = self._listed("treatment, mediator and outcome", (treatment, mediator, outcome), 3)
        held = self._listed("given", given, 0, *names)
        return mediated(self, names[0], names[1], names[2], held, _terms(errors, coverage, "homoscedastic"))

    @with_signature_errors
    def sensitivity(
        self, outcome: str, treatment: str, *, given: Sequence[str] = (), explains: tuple[float, float] | None = None,
        errors: Literal["homoscedastic", "normal"] | None = None, coverage: float = 0.95,
    ) -> Regression:  # fmt: skip
        """Return what would be left of a slope if a cause were unmeasured: free.

        One line each: no cause; one that explains the shares ``explains`` of what is left of outcome and treatment; one
        as strong as each of ``given``, in the sense of Cinelli & Hazlett (2020).  The first has the robustness value of
        the slope: the share of both that would bring it to 0.  Only the first has an interval, unless ``errors``
        is ``"normal"``, all columns about normal: the others rely on spreads, which shortening moves elsewhere.
        """
        named, moved = self._named(outcome=outcome), self._named(treatment=treatment)
        held = self._listed("given", given, 0, outcome, treatment)
        if named == moved:
            raise ParameterError("outcome and treatment must be different columns")
        if explains is not None:
            if not isinstance(explains, tuple) or len(explains) != 2:
                raise ParameterError("explains must be two shares: of the outcome, of the treatment")
            of_outcome, of_treatment = (public.number("explains", share, 0, 0.99) for share in explains)
            explains = (of_outcome, of_treatment)
        return sensitivity_table(
            self, named, moved, held, explains, _terms(errors, coverage, "homoscedastic", "normal")
        )

    def _named(self, **one: str) -> str:
        ((what, name),) = one.items()
        return checked_names(what, [name], self.names)[0]

    def _listed(self, what: str, names: Sequence[str], least: int, *others: str) -> tuple[str, ...]:
        listed = checked_names(what, names, self.names)
        if len(listed) < least or set(listed) & set(others):
            raise ParameterError(f"{what} must be at least {least} columns, none of them named otherwise")
        return listed

    @property
    def noise(self) -> Noise:
        return Noise(self.radius, 0, self.deviation)

    @property
    def signal_to_noise(self) -> float:
        """The least eigenvalue of Σ zz′ over the norm of its noise, σ √(2d)."""
        least = float(np.linalg.eigvalsh(self.sums[:-1, :-1])[0])
        return least / (self.deviation * math.sqrt(2 * len(self.names))) if self.deviation > 0 else math.inf

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
        """Return the noisy mean of a column."""
        unit = self.centre[place] + float(self.spread[place] @ self.sums[:-1, -1]) / self.count
        return float(self.middles[place] + self.halves[place] * unit)

    def residual(self, outcome: str, regressors: Sequence[str]) -> float:
        """Return the noisy variance of a column about its line on others; about its mean, without any."""
        return line(self, outcome, tuple(regressors)).residual

    def among(self, names: Sequence[str]) -> Self:
        """Return the moments of some of the columns, without ``sandwich``, in the shape of these alone.

        Q has orthonormal columns, and noise of variance σ² on the diagonal and σ²/2 beside it is Q′EQ of the same
        distribution.
        """
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

    def numbers(self) -> dict[str, Any]:
        arrays = {name: getattr(self, name).tolist() for name in ("middles", "halves", "centre", "spread", "sums")}
        return arrays | {
            "radius": self.radius, "deviation": self.deviation, "shortened": self.shortened,
            "towards": self.towards.tolist(), "sandwich": None if self.sandwich is None else self.sandwich.payload(),
            "products": [one.payload() for one in self.products], "levels": [{"of": list(one)} for one in self.levels],
        }  # fmt: skip

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        d = len(names)
        shapes = {"middles": (d,), "halves": (d,), "centre": (d,), "spread": (d, d), "sums": (d + 1, d + 1),
                  "towards": (d,)}  # fmt: skip
        arrays: dict[str, Any] = {name: form.array(name) for name in shapes}
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise form.refuse(name)
        shortened = float(form.array("shortened").reshape(-1)[0])
        radius, deviation = form.size("radius"), form.size("deviation")
        sandwich = Sandwich.from_payload(form.part("sandwich"), names) if form.has("sandwich") else None
        products = (
            tuple(Product.from_payload(one, names) for one in form.parts("products")) if form.has("products") else ()
        )
        levels = tuple(one.words("of") for one in form.parts("levels")) if form.has("levels") else ()
        if any(len(one) != 3 or one[0] not in names for one in levels):
            raise form.refuse("levels")
        return cls(
            names,
            n,
            **arrays,
            radius=radius,
            deviation=deviation,
            shortened=shortened,
            sandwich=sandwich,
            products=products,
            levels=tuple((one[0], one[1], one[2]) for one in levels),
        )


def _terms(errors: object, coverage: Any, *allowed: str) -> Terms:
    if errors is not None:
        public.check_choice("errors", errors, allowed or get_args(Errors))
    share = public.number("coverage", coverage, 0.5, 0.999)
    return Terms(cast("Errors | None", errors), share)
