"""The distribution of x given z, stated by the caller: conditional randomisation tests draw copies of x from it.

Three kinds: a normal distribution (``mean`` and ``sd``), probabilities of levels (``table``, or ``mean`` alone for two
levels), or any sampler (``sample``).  The first two have one public normal or uniform number a row and copy, and the
forms of all rows ask their functions row by row, so a replaced row changes its own copies only; a sampler may use its
generator as it likes and serves in blocks.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.core.validate import is_number
from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.errors import ParameterError, nearest
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed, restart_streams
from dpcausal.privacy.sandbox import isolated_or_default
from dpcausal.regression.external import external_code, try_external_code

RowFunction = Callable[[Reals], Any]

WHO = "the model of x"

PROBES = 24
"""Simulated rows on which a model is tried before anything is spent."""


@dataclass(frozen=True, eq=False)
class ModelX:
    """The distribution of x given z: public knowledge, never learnt from the table.

    Functions take z as an array of shape (n, columns of ``given``), numbers in their own unit and levels as codes, and
    return n values, each from its own row.  They must not remember rows between calls.

    Parameters
    ----------
    mean : function of z, optional
        Mean of x, in its own unit; for a column of two levels, without ``sd``, the probability of the second.
    sd : function of z, or number, optional
        Standard deviation: x is normal, clipped to its bounds.
    table : array, shape (levels of z, levels of x), optional
        Probabilities: one given column, with levels; rows sum to 1.
    sample : function of (z, generator), optional
        Draws x, shape (n,); in blocks only.  All its random numbers must come from the generator.

    Examples
    --------
    >>> ModelX(mean=lambda z: z[:, 0] / 2, sd=1.0).kind
    'normal'
    >>> ModelX(table=[[0.9, 0.1], [0.4, 0.6]]).kind
    'levels'
    """

    mean: RowFunction | None = None
    sd: RowFunction | float | None = None
    table: Any = None
    sample: Callable[[Reals, PublicGenerator], Any] | None = None

    def __post_init__(self) -> None:
        given = [self.mean is not None, self.table is not None, self.sample is not None]
        if sum(given) != 1 or (self.sd is not None and self.mean is None):
            raise ParameterError("a model of x has mean (with sd unless x has two levels), table, or sample")
        for name in ("mean", "sample"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise ParameterError(f"{name} must be a function")
        if self.sd is not None and not callable(self.sd):
            if not (is_number(self.sd) and 0 < self.sd <= sys.float_info.max):
                raise ParameterError("sd must be a function or a positive number")
            object.__setattr__(self, "sd", float(self.sd))
        if self.table is not None:
            try:
                known = np.asarray(self.table)
            except ValueError:
                known = np.empty(0)
            if known.size == 0 or known.dtype.kind not in "fiu" or known.ndim != 2 or not np.isfinite(known).all():
                raise ParameterError("table must hold probabilities, one row a level of z")
            if (known < 0).any() or np.abs(known.sum(axis=1) - 1).max() > 1e-9:
                raise ParameterError("each row of table must sum to 1")
            object.__setattr__(self, "table", known.astype(np.float64))

    @property
    def kind(self) -> str:
        """``"normal"``, ``"levels"`` or ``"sampler"``."""
        if self.sample is not None:
            return "sampler"
        return "normal" if self.sd is not None else "levels"

    def check(self, schema: Schema, x: str, given: tuple[str, ...]) -> None:
        """Try the model on simulated rows of the public schema: shape, finite values, each row by itself."""
        declared = schema[x]
        if self.kind == "normal" and not isinstance(declared, Bounded):
            raise ParameterError("a normal model of x needs a column declared Bounded")
        if self.kind == "levels":
            if not isinstance(declared, Levels):
                raise ParameterError("a model of levels needs a column x declared Levels")
            if self.table is None and len(declared) != 2:
                raise ParameterError("mean without sd is for a column of two levels")
        if self.table is not None:
            z = schema[given[0]] if len(given) == 1 else None
            if not (isinstance(z, Levels) and self.table.shape == (len(z), len(declared))):  # type: ignore[arg-type]
                raise ParameterError("table needs one given column with levels, its shape (levels of z, levels of x)")
        Z = probes(schema, given)
        for function in filter(callable, (self.mean, self.sd)):
            _check_rowwise(function, Z, probability=self.kind == "levels")
        if self.sample is not None:
            sample = self.sample
            drawn = try_external_code(
                lambda: np.asarray(sample(Z.copy(), generator_from_seed(0)), dtype=np.float64), WHO
            )
            if drawn.shape != (len(Z),):
                raise ParameterError("sample must return one value a row")

    def at(self, Z: Reals, row_by_row: bool = False) -> RowDistributions:
        """Return the distribution of x at each row of z, shape (n, columns of ``given``); what is not finite is 0.

        ``row_by_row`` calls ``mean`` and ``sd`` for each row alone, so that no row can bear on another's distribution.
        """
        evaluate = single_rows if row_by_row else rowwise
        centre = spread = np.zeros(len(Z))
        if self.table is not None:
            centre = np.asarray(self.table @ np.arange(self.table.shape[1]))[Z[:, 0].astype(np.int64)]
        elif self.mean is not None:
            centre = evaluate(self.mean, Z)
            centre = np.clip(centre, 0.0, 1.0) if self.kind == "levels" else centre
        if self.sd is not None:
            spread = np.abs(evaluate(self.sd, Z)) if callable(self.sd) else np.full(len(Z), float(self.sd))
        return RowDistributions(self, Z, centre, spread)


@dataclass(frozen=True, eq=False, repr=False)
class RowDistributions:
    """The distribution of x at n rows, private as they are: means (codes of levels) and standard deviations."""

    model: ModelX
    Z: Reals
    centre: Reals
    spread: Reals

    def copies(self, count: int, bounds: tuple[float, float], generator: PublicGenerator) -> Reals:
        """Return copies of x, shape (count, n), within its bounds: one random number a row and copy."""
        n = len(self.Z)
        sample = self.model.sample
        if sample is not None:
            drawn = external_code(
                lambda: np.array([sample(self.Z.copy(), generator) for _ in range(count)], dtype=np.float64),
                int(generator.integers(2**63)),
            ).reshape(count, n)
        elif self.model.kind == "normal":
            drawn = self.centre + self.spread * generator.standard_normal((count, n))
        else:
            drawn = self._codes(generator.random((count, n)))
        return np.clip(np.where(np.isfinite(drawn), drawn, sum(bounds) / 2), *bounds)

    def _codes(self, draws: Reals) -> Reals:
        if self.model.table is None:
            return (draws > 1 - self.centre).astype(np.float64)
        edges, code = np.cumsum(self.model.table, axis=1)[:, :-1], self.Z[:, 0].astype(np.int64)
        drawn = np.zeros(draws.shape)
        for edge in edges.T:
            drawn += draws > edge[code]
        return drawn


def probes(schema: Schema, given: tuple[str, ...]) -> Reals:
    generator = generator_from_seed(1)
    columns = []
    for name in given:
        declared = schema[name]
        if isinstance(declared, Bounded):
            drawn = declared.lower + declared.width * generator.random(PROBES)
            drawn[:2] = declared.lower, declared.upper
        else:
            drawn = generator.integers(len(declared), size=PROBES).astype(np.float64)
        columns.append(drawn)
    return np.stack(columns, axis=1) if columns else np.empty((PROBES, 0))


def rowwise(function: RowFunction, Z: Reals) -> Reals:
    """Return a function of rows, total: where it fails on all rows together it is called row by row."""
    values = external_code(
        lambda: isolated_or_default(lambda: np.array(function(Z.copy()), dtype=np.float64), np.empty(0)), 0
    )
    if values.shape == (len(Z),):
        return np.where(np.isfinite(values), values, 0.0)
    return single_rows(function, Z)  # a failure at one row must not change another row's value


def single_rows(function: RowFunction, Z: Reals) -> Reals:
    """Return a function of rows, called for each row alone, with the same random numbers; total."""

    def single(row: Reals) -> float:
        restart_streams(0)  # where one row's draws end, the next one's must not begin
        value = isolated_or_default(lambda: float(np.ravel(np.asarray(function(row.copy()), dtype=np.float64))[0]), 0.0)
        return value if math.isfinite(value) else 0.0

    return external_code(lambda: np.array([single(Z[place : place + 1]) for place in range(len(Z))]), 0)


def _check_rowwise(function: RowFunction, Z: Reals, probability: bool) -> None:
    def answers() -> tuple[Reals, Reals]:
        rows = [np.ravel(np.asarray(function(row[None, :].copy()), dtype=np.float64))[0] for row in Z]
        return np.array(function(Z.copy()), dtype=np.float64), np.array(rows)

    whole, single = try_external_code(answers, WHO)
    if whole.shape != (len(Z),) or not np.isfinite(whole).all():
        raise ParameterError("the functions of a model of x must return one finite number a row")
    if probability and not ((whole >= 0) & (whole <= 1)).all():
        raise ParameterError("mean without sd is a probability: it must be between 0 and 1 wherever z can be")
    if not np.allclose(whole, single, rtol=1e-9, atol=1e-12):
        raise ParameterError("the functions of a model of x must take each row by itself")


STATED = ("table", "mean", "sd")
INTERCEPT = "intercept"


@dataclass(frozen=True)
class Linear:
    """b₀ + Σ_j b_j z_j, numbers in their own unit and levels as codes; term by term, so that a row is by itself."""

    intercept: float
    slopes: tuple[tuple[int, float], ...]

    def __call__(self, Z: Reals) -> Reals:
        values = np.full(len(Z), self.intercept)
        for place, slope in self.slopes:
            values = values + slope * Z[:, place]
        return values


@dataclass(frozen=True, eq=False)
class StatedModel(ModelX):
    mapping: Any = None


def stated_model(model: Any, given: tuple[str, ...]) -> Any:
    """Return the model that a mapping states; anything else unchanged. ``{"table": [[...], ...]}``; or ``{"mean": m,
    "sd": s}`` with m a number, or a slope for each given column, by its name, and an ``intercept``; for x of two levels
    m is the probability of the second, and there is no sd."""
    if not isinstance(model, Mapping):
        return model
    unknown = next((name for name in model if name not in STATED), None)
    if unknown is not None or not model:
        raise ParameterError(f"model_x takes {', '.join(STATED)}{nearest(unknown, STATED)}")
    arguments = {**model, "mean": _linear_model(model["mean"], given)} if "mean" in model else dict(model)
    return StatedModel(**arguments, mapping=dict(model))


def _linear_model(mean: Any, given: tuple[str, ...]) -> Linear:
    slopes = mean if isinstance(mean, Mapping) else {INTERCEPT: mean}
    if INTERCEPT in given:
        raise ParameterError(f"a given column is named {INTERCEPT!r}: state the distribution by a function, in Python")
    for name, slope in slopes.items():
        if name not in (*given, INTERCEPT):
            raise ParameterError(f"model_x: {name!r} is not given{nearest(name, (*given, INTERCEPT))}")
        if not is_number(slope) or not np.isfinite(slope):
            raise ParameterError(f"model_x: {name} must be a finite number")
    by_place = sorted((given.index(name), float(slope)) for name, slope in slopes.items() if name != INTERCEPT)
    return Linear(float(slopes.get(INTERCEPT, 0.0)), tuple(by_place))
