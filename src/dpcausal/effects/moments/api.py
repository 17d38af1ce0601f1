"""``moments``: noisy first and second moments of columns of numbers, whose regressions are then free.

For one declared regression also how its outcome spreads about its line: the middle of the sandwich, and a step to the
slopes of rows that were not shortened.  Its slopes β, G and s² come from the released moments.  Moments of rows
ψ = (G/m)^(−½) x e / s are released by claim ``ellipse-moments``: all that ψ needs was released before.  Rows ψ are
shortened at a large public length, so that β + G⁻¹ Σ x e is what least squares of the unshortened rows would be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpcausal.arrays import Integers, Reals
from dpcausal.core import validate as public
from dpcausal.core.method import Method, Run, SumsOverRows, TableQuestion
from dpcausal.core.run import Task, public_task
from dpcausal.data.records import Rows
from dpcausal.data.schema import Bounded, Levels
from dpcausal.data.subgroups.predicate import check_varies
from dpcausal.data.table import Table
from dpcausal.effects.clusters import SPREADS, ClusterVariance, group_sums, release_variances, shared
from dpcausal.effects.moments import adaptive
from dpcausal.effects.moments.adaptive import HISTOGRAM, LAST, SHAPING, Noise, Shape, StreamedRows, noise_of
from dpcausal.effects.moments.factors import Layout, level_names
from dpcausal.effects.moments.regression import forecast
from dpcausal.effects.moments.release import JointMoments
from dpcausal.effects.moments.released import MARGIN, ReleasedMoments, line
from dpcausal.effects.moments.sandwich import Sandwich, Step
from dpcausal.errors import FenceError, InfeasibleError, LossError, ParameterError, SchemaError, Setting
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, NoPrivacy, affordable_zcdp

MOST_COLUMNS = 40
LEAST_ROWS = 20
MOST_WIDTH = 10.0
"""Refused where the intervals would be so many times as wide as without privacy."""

SANDWICH_SHARE = Fraction(3, 10)
"""Its share of ρ, where ``robust_for`` is given."""
FOR_STEP, FOR_SQUARES = 0.64, 0.1
"""The squared length is 0.64 μ² n, where the noise of a step is twice the sampling error of even spread, at most 0.1 μ
n, where that of Σ ψψ′ is a fifth of it; at least four a column."""
FAR = 25.0
"""A step leaves an interval where the length is so extreme, in spreads: nearer, what was shortened of skewed tails is
neither small nor seen."""
TAIL = 0.5
"""What a shortened ψ may have lost, in lengths: of the tails that were tried it is less."""

Paid = ApproxDP | ZCDP | NoPrivacy


@dataclass(frozen=True)
class JointSums(TableQuestion[JointMoments]):
    task: ClassVar[str] = "moments"

    names: tuple[str, ...]
    robust_for: tuple[str, tuple[str, ...]] | None = None
    """The regression whose spread about its line is released, too: outcome and regressors."""

    @classmethod
    def of(cls, table: Table, columns: Any, robust_for: Any, cluster: Any = None) -> JointSums:
        public.check_table(table, persons=True, weights=True)
        if cluster is not None:
            table = table.clustered_by(cluster)
            if robust_for is None:
                raise ParameterError(
                    "errors by clusters are those of one regression: name it by robust_for", argument="cluster",
                    rule="robust_for",
                )  # fmt: skip
        names = public.names("columns", columns)
        for name in names:
            declared = public.column(table, name, "a regression")
            if isinstance(declared, Levels) and len(declared) < 2:
                raise SchemaError(f"column {name!r}: moments need at least two levels")
            check_varies(table.inside, name, declared)
        question = cls(table, names)
        if not question.numbers or set(level_names(question.factors)) & set(names):
            text = "moments need an outcome, a column with bounds or two levels, and no name of a level"
            hint = "declare a scale such as 1 to 5 as ", Setting(kind="Bounded", options={"lower": 1, "upper": 5})
            raise SchemaError(text, argument="columns", rule="outcome", hint=hint)
        if not 2 <= question.layout.columns <= MOST_COLUMNS:
            raise ParameterError(
                f"moments need 2 to {MOST_COLUMNS} different columns, each level of more than two counted: got "
                f"{question.layout.columns}"
            )
        if table.n < LEAST_ROWS:
            raise ParameterError(f"moments need at least {LEAST_ROWS} rows, the table has {table.n}")
        if robust_for is not None:
            if not isinstance(robust_for, tuple) or len(robust_for) != 2:
                raise ParameterError("robust_for must be an outcome and a list of regressors")
            (outcome,) = public.names("robust_for", [robust_for[0]], known=question.numbers)
            on = public.names("robust_for", robust_for[1], known=names)
            if not set(on) & set(question.numbers) or outcome in on:
                raise ParameterError("robust_for must be an outcome and at least one other number or yes and no")
            robust_for = outcome, on
        return cls(table, names, robust_for)

    @property
    def outcomes(self) -> tuple[str, ...]:
        return self.names

    @property
    def levels(self) -> tuple[tuple[str, str, str], ...]:
        """Each column of two levels with its reference, which counts 0, and the level that counts 1."""
        named = ((name, self.column(name)) for name in self.numbers)
        return tuple((name, str(one.labels[0]), str(one.labels[1])) for name, one in named if isinstance(one, Levels))

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns of numbers, or of two levels."""
        kinds = {name: self.column(name) for name in self.names}
        return tuple(name for name, one in kinds.items() if isinstance(one, Bounded) or len(one) == 2)

    @property
    def factors(self) -> tuple[tuple[str, ...], ...]:
        """Columns of other numbers of levels, each with its levels, the reference first."""
        kinds = ((name, self.column(name)) for name in self.names)
        return tuple((name, *map(str, one.labels)) for name, one in kinds if isinstance(one, Levels) and len(one) != 2)

    @property
    def layout(self) -> Layout:
        return Layout(len(self.numbers), tuple(len(one) - 1 for one in self.factors))

    def parts(self, loss: ZCDP) -> tuple[ZCDP, ZCDP | None]:
        loss, _ = shared(loss, self.table.spec.cluster is not None)
        return (loss, None) if self.robust_for is None else (loss.part(1 - SANDWICH_SHARE), loss.part(SANDWICH_SHARE))

    def ranges(self) -> tuple[Any, Any]:
        columns = [self.table.schema.column(name) for name in self.numbers]
        bounds = [(one.midpoint, one.width / 2) if isinstance(one, Bounded) else (0.5, 0.5) for one in columns]
        bounds += [(0.5, 0.5)] * sum(self.layout.sizes)
        middles, halves = np.array(bounds).T
        return middles, halves

    def detail(self) -> dict[str, Any]:
        robust_for = None if self.robust_for is None else [self.robust_for[0], *self.robust_for[1]]
        return {"columns": list(self.names), "robust_for": robust_for, **self.table.declared}


@dataclass(frozen=True, kw_only=True)
class MomentQuery(SumsOverRows, Method[JointSums]):
    name: ClassVar[str] = "moments"
    about: ClassVar[str] = "noisy moments in a learnt shape"
    losses: ClassVar[tuple[type[Loss], ...]] = (ApproxDP, ZCDP)
    proofs: ClassVar[tuple[str, ...]] = ("scale-histograms", "ellipse-moments", "gaussian")

    def proofs_of(self, question: JointSums, loss: Paid) -> tuple[str, ...]:
        return (*self.proofs, "group-layers") if question.table.spec.cluster else self.proofs

    def plan(self, question: JointSums, loss: Paid) -> MomentQuery:
        if not isinstance(loss, NoPrivacy):
            regressors = 0 if question.robust_for is None else len(question.robust_for[1])
            parts = question.parts(affordable_zcdp(loss))
            check_rounds(question.layout, question.table.n, loss, *parts, regressors + 1)
        return self

    def caveats(self, question: JointSums, loss: Paid) -> tuple[str, ...]:
        if loss.exact:
            return ()
        rho, own = question.parts(affordable_zcdp(loss))
        layout, n = question.layout, question.table.n
        wide = times_as_wide(layout, n, rho)
        width = f"public numbers predict intervals {wide:.2g} times as wide as without privacy"
        caveats = [width] if wide > 1.5 else []
        if layout.sizes and (wide := levels_as_wide(layout, n, rho)) > 1.5:
            caveats.append(f"of levels {wide:.2g} times, where {max(layout.sizes)} have as many rows each")
        if own is not None and (enough := rows_for_step(own)) > question.table.n:
            caveats.append(
                "the regression whose spread is released has intervals only for errors stated as symmetric, or of one "
                f"distribution: from about {enough:,} rows on it has them whatever the skew"
            )
        return tuple(caveats)

    def release(self, run: Run[JointSums]) -> JointMoments:
        question, ranges, factors = run.question, run.question.ranges(), run.question.factors
        names, units = (*question.numbers, *level_names(factors)), _Units(question.numbers, factors, *ranges)
        rho, own = (None, run.loss) if run.loss.exact else question.parts(affordable_zcdp(run.loss))
        moments, rows = JointMoments.of_table(
            question.table, question.names, names, ranges, units, rho, run.budget, factors
        )
        moments = replace(moments, levels=question.levels)
        if question.robust_for is None or own is None:
            return moments
        for_layers = None if run.loss.exact else shared(affordable_zcdp(run.loss), True)[1]
        by = question.table.spec.cluster, for_layers
        return replace(moments, sandwich=release_sandwich(moments, question.robust_for, rows, run.budget, own, by))


@dataclass(frozen=True)
class _Units:
    numbers: tuple[str, ...]
    factors: tuple[tuple[str, ...], ...]
    middles: Any
    halves: Any

    def __call__(self, rows: Rows) -> Any:
        columns = [rows.values[name] for name in self.numbers]
        columns += [rows.values[name] == code for name, *levels in self.factors for code in range(len(levels))]
        unit = np.stack([one.astype(np.float64) for one in columns], axis=1)
        return np.clip((unit - self.middles) / self.halves, -1.0, 1.0)


def check_rounds(layout: Layout, n: int, loss: ApproxDP | ZCDP, rho: ZCDP, own: ZCDP | None, terms: int) -> None:
    """Refuse, by public numbers, moments whose noise cannot be drawn, or makes intervals far too wide.
    ``own`` pays for the spread about a line of that many ``terms``, if it is released."""
    try:
        for share in (HISTOGRAM, *SHAPING, LAST):
            layout.noise(n, adaptive.tail_radius(layout.numbers, 0.3), rho.part(share))
        if own is not None:
            sandwich_noise(terms, n, own)
    except FenceError:
        raise LossError(f"{loss} is too little for moments: their noise could not be drawn") from None
    wide = times_as_wide(layout, n, rho)
    if wide > MOST_WIDTH:
        enough = n
        while times_as_wide(layout, enough, rho) > MOST_WIDTH:
            enough = math.ceil(enough * 1.1)
        raise InfeasibleError(
            f"{n} rows at {loss} make intervals {wide:.3g} times as wide as without privacy: about {enough} "
            f"rows would be enough, or {wide / MOST_WIDTH:.2g} times the epsilon, or fewer columns"
        )


def times_as_wide(layout: Layout, n: int, rho: ZCDP) -> float:
    """Return how many times as wide as without privacy intervals of slopes will be: public."""
    radius = layout.last_radius(n, rho)
    return forecast(layout.numbers, n, radius, math.sqrt(2 * layout.as_numbers(rho).part(LAST).rho))


def levels_as_wide(layout: Layout, n: int, rho: ZCDP) -> float:
    """Return how many times as wide intervals of levels will be, if as many rows are in each of a factor: public."""
    radius = layout.last_radius(n, rho)
    noise, weight = layout.noise(n, radius, rho.part(LAST)).deviation, layout.weight(radius)
    return math.sqrt(1 + MARGIN * (noise / weight) ** 2 / 2 * max(layout.sizes) / n)


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
    clusters: tuple[str | None, ZCDP | None] = (None, None),
) -> Sandwich:
    """Release moments of ψ of one regression of rows of [−1, 1], ψ summed over the rows of a person. ``clusters`` is a
    column of clusters, between which the variance of slopes is released, too, and what pays for it."""
    outcome, regressors = of
    factors = release.factors_in(regressors)
    regressors = tuple(name for name in regressors if name in release.names)
    named = tuple(release.factors[one][0] for one in factors)
    places = [release.names.index(name) for name in (outcome, *regressors)]
    fitted = line(release, outcome, (*regressors, *named))
    size, before = len(regressors) + (not factors), 1 + len(regressors)
    levels = [place for one in factors for place in release.layout.levels(one)]
    whole, of_terms = fitted.moments[1:, 1:].copy(), np.hstack([np.zeros((size, 1)), np.eye(size)])
    if factors:
        on = release.levels_of(factors)[1] @ fitted.moments[before:, 1:before]
        of_terms = np.hstack([of_terms, -on.T])
        whole = of_terms @ fitted.moments @ of_terms.T
    second_moments = whole / release.count
    eigenvalues, vectors = np.linalg.eigh((second_moments + second_moments.T) / 2)
    # No direction thinner than half the noise, and a spread that is not 0: ψ is a number whatever was released.
    widths = release.halves[[*places, *levels]]
    least = max(release.deviation / release.count / 2, 1e-9) * min(float((widths**2).min()), 1.0)
    roots = np.sqrt(np.maximum(eigenvalues, least))
    spread = math.sqrt(max(fitted.residual, 1e-12 * float(widths[0] ** 2)))
    # e and (G/m)^(−½) (x, 1), each a sum over columns of one row.
    turn = np.vstack([np.concatenate([[1.0], -fitted.slopes]) / spread, vectors / roots @ vectors.T @ of_terms])
    turn = np.hstack([turn, np.zeros((size + 1, 1))]) if factors else turn
    places += levels
    centre, shape, last, n = release.centre[places], turn[:, :-1] * widths, turn[:, -1], release.n

    def psi(unit: Reals) -> Reals:
        rows = adaptive.whitened(unit[:, places], centre, shape) + last
        return np.asarray(rows[:, 1:] * rows[:, :1])

    def scores(unit: Reals, parts: Rows) -> tuple[Reals, Rows]:
        mass = parts.included if parts.weights is None else parts.included * parts.weights
        products: Reals = psi(unit) * mass[:, None]
        if parts.owners is None:
            return products, Rows({}, parts.included, {})
        by_unit = np.stack([np.bincount(parts.owners, column, n).astype(np.float64) for column in products.T], axis=1)
        return by_unit, Rows({}, np.bincount(parts.owners, parts.included, n) > 0, {})

    def between(turned: Reals, squares: Reals) -> tuple[ClusterVariance, ...]:
        """Return the variance of each slope, the intercept of the columns' own origin last."""
        own = turned.copy()
        if not factors:
            own[-1] -= (release.middles + release.halves * release.centre)[places[1:]] @ turned[:-1]
        cuts = SPREADS * np.sqrt(np.maximum(np.diag(own @ squares @ own.T), 1e-200) / release.count)

        def sums(unit: Reals, parts: Rows) -> Integers:
            influences = adaptive.whitened(psi(unit), np.zeros(size), own / cuts[:, None])
            return np.stack([group_sums(one, parts) for one in (np.ones(len(unit)), *influences.T)])

        sizes, *each = summed.over(sums)
        shares = [Fraction(1, size)] * size
        variances = release_variances(sizes, each, shares, release.count, n, clusters[1], allotment)
        return tuple(one.scaled(float(cut)) for one, cut in zip(variances, cuts, strict=True))

    back = spread * (vectors * roots) @ vectors.T
    if loss.exact:
        squares = summed.over(lambda unit, parts: (products := scores(unit, parts)[0]).T @ products)
        variances = between(fitted.inverse[:size, :size] @ back, squares) if clusters[0] else ()
        return Sandwich(outcome, regressors, back @ squares @ back, 0.0, None, clusters[0] or "", variances, named)
    noise = sandwich_noise(size, n, loss)
    seen = StreamedRows(lambda kernel: summed.over(lambda unit, parts: kernel(*scores(unit, parts))), False)
    standard = Shape(np.zeros(size), np.eye(size))
    scatter = adaptive.released(seen, standard, noise, allotment, loss, "spread about the line")
    eigenvalues, vectors = np.linalg.eigh(scatter.sums[:-1, :-1])
    squares = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    # The regressors' moments, what shortening took of normal rows undone.
    whole[: len(regressors), : len(regressors)] /= release.layout.shrinkage(release.radius_of_numbers)
    turned = np.asarray(np.linalg.pinv(whole), dtype=np.float64) @ back
    lost = max(scatter.clipped - noise.count, 0.0) * TAIL * noise.radius if noise.radius >= FAR else 1e100
    step = Step(turned @ scatter.sums[:-1, -1], noise.variances(size)[-1, 0] * turned @ turned.T,
                lost * np.linalg.norm(turned, axis=1))  # fmt: skip
    variances = between(turned, squares) if clusters[0] else ()
    return Sandwich(
        outcome, regressors, back @ squares @ back, noise.deviation, step, clusters[0] or "", variances, named
    )


@public_task
def moments(
    table: Table, columns: Iterable[str], *, loss: Loss, robust_for: tuple[str, Iterable[str]] | None = None,
    cluster: str | None = None, accept_large_epsilon: bool = False, refresh: bool = False,
) -> Task[JointMoments]:  # fmt: skip
    """Release first and second moments of columns of numbers, to be asked for regressions again and again.

    Parameters
    ----------
    table : Table
        At least 20 rows; the table's ledger pays, once.
    columns : list of str
        2 to 40 bounded columns, or columns of two levels (0 and 1): outcome, treatment, what is adjusted for.  Products
        of columns are columns of their own.
    loss : Loss
        The most that the call may cost; ``ApproxDP`` or ``ZCDP``.
    robust_for : (str, list of str), optional
        One regression, outcome and regressors, whose spread about its line is released, too, for three tenths of the
        loss: ``ols`` of it then has intervals that are right where the spread goes with the regressors, of many rows
        whatever the skew, of fewer where errors are said to be symmetric.
    cluster : str, optional
        A column that names each row's cluster, as of ``effect``: errors of the regression named as ``robust_for`` are
        then by clusters, for an eighth of the loss.
    accept_large_epsilon, refresh : bool
        As of ``effect``.

    Returns
    -------
    JointMoments
        ``ols``, ``iv``, ``partial``, ``mediation`` and ``sensitivity`` of it are free; ``to_json()`` saves it.

    Notes
    -----
    *Guarantee*: the loss, under replace-one for every row, or person; claims scale-histograms, ellipse-moments and
    group-layers.  Rounds learn where the rows lie and in what shape, so that wide bounds cost little; rows are
    shortened to a public length there.
    *Source*: the rounds follow the idea of CoinPress (Biswas, Dong, Kamath & Ullman 2020).

    Examples
    --------
    >>> import dpcausal as dpc
    >>> from dpcausal.privacy.noise import generator_from_seed
    >>> x, e = generator_from_seed(1).normal(size=(2, 20_000))
    >>> schema = dpc.Schema({"y": dpc.Bounded(-50, 50), "x": dpc.Bounded(-10, 10)})
    >>> table = dpc.Table({"y": 3 * x + e, "x": x}, schema, dpc.Ledger.in_memory(dpc.ApproxDP(1, 1e-6)))
    >>> fit = dpc.moments(table, ["y", "x"], loss=dpc.ApproxDP(1, 1e-6)).ols("y", ["x"], errors="homoscedastic")
    >>> abs(fit["x"].estimate - 3) < 0.1
    True
    """
    return JointSums.of(table, columns, robust_for, cluster), MomentQuery()
