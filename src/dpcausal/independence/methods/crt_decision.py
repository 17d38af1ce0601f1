"""Randomisation tests of all rows at once: noisy statistics of x and of copies of it.

T_j = Σ_i c_i^{(j)} r_i, c the residuals of x (j = 0) or of a copy of x from its public model, in units of half x's
public range and clipped to [−1, 1], r the residuals of y given z, or y itself.  One row moves each T_j by at most Δ.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.errors import ParameterError
from dpcausal.independence.methods.crt import CELLS, bounds_of, checked_model
from dpcausal.independence.methods.model_x import ModelX
from dpcausal.independence.question import SIGNED, IndependenceQuestion, IndependenceTest, Released, Sample
from dpcausal.mechanisms.additive import laplace, laplace_scale
from dpcausal.mechanisms.selection import margin_sensitivity, rank_margin
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Sensitivity
from dpcausal.regression.residual_products import (
    CHUNK_ROWS,
    LARGEST_PENALTY,
    LEAST_PENALTY,
    MOST_FEATURES,
    Chunks,
    fit_weights,
    fitted_residuals,
    resample_sum_sensitivity,
)

PAIRS = 100
"""Cosine and sine pairs in all, shared by the given numbers; at least ``LEAST_PAIRS`` each."""

LEAST_PAIRS = 20

WIDTH = 0.1
"""Default width: public, in units of half a column's range."""

LEAST_ROWS = 10

_BELOW_ONE = 1 - 1e-12
"""So that a computed vector's norm is at most 1."""


def size_of(schema: Schema, given: tuple[str, ...]) -> int:
    levels = [len(column) for name in given if isinstance(column := schema[name], Levels)]
    numbers = len(given) - len(levels)
    return 2 * _pair_count(numbers) * numbers + sum(levels)


def _pair_count(numbers: int) -> int:
    return max(LEAST_PAIRS, PAIRS // max(numbers, 1))


def chunks_of(rows: Sample, schema: Schema, given: tuple[str, ...], width: float, generator: PublicGenerator) -> Chunks:
    """Return a function that yields slices of the rows and φ there, which is 0 for an incomplete row."""
    numbers = [place for place, name in enumerate(given) if isinstance(schema[name], Bounded)]
    pairs = _pair_count(len(numbers))
    drawn = {place: generator.standard_normal(pairs) / width for place in numbers}
    scale = _BELOW_ONE / math.sqrt(max(1, len(given)))

    def chunks() -> Iterator[tuple[slice, Reals]]:
        for start in range(0, rows.n, CHUNK_ROWS):
            part = slice(start, min(start + CHUNK_ROWS, rows.n))
            raw, terms = rows.raw[part], []
            for place, name in enumerate(given):
                declared = schema[name]
                if isinstance(declared, Bounded):
                    angles = np.multiply.outer((raw[:, place] - declared.midpoint) / (declared.width / 2), drawn[place])
                    terms += [np.cos(angles) * (scale / math.sqrt(pairs)), np.sin(angles) * (scale / math.sqrt(pairs))]
                else:
                    terms.append((raw[:, place : place + 1] == np.arange(len(declared))) * scale)
            features = np.hstack(terms) if terms else np.zeros((len(raw), 1))
            features[~rows.is_complete[part]] = 0.0
            yield part, features

    return chunks


def unit_column(values: Reals, schema: Schema, name: str) -> Reals:
    """Return a column scaled from its public range to [−1, 1]; of two levels, −1 and 1."""
    declared = schema[name]
    if isinstance(declared, Bounded):
        middle, half = declared.midpoint, declared.width / 2
    else:
        half = max(1, len(declared) - 1) / 2
        middle = (len(declared) - 1) / 2
    return np.clip((values - middle) / half, -1.0, 1.0)


def features(rows: Sample, question: IndependenceQuestion, width: float | None, rng: PublicGenerator) -> Chunks:
    return chunks_of(rows, question.schema, question.given, width or WIDTH, rng)


def planned_ridge(
    method: str, question: IndependenceQuestion, penalty: float | None, width: float | None, default: float
) -> tuple[float, float]:
    question.check_single(method, LEAST_ROWS)
    if size_of(question.schema, question.given) > MOST_FEATURES:
        raise ParameterError(
            f"method {method!r} takes at most {MOST_FEATURES} features: {2 * LEAST_PAIRS} for a number of many, one "
            "for each level"
        )
    chosen = default if penalty is None else penalty
    if not (public.is_number(chosen) and LEAST_PENALTY <= chosen <= LARGEST_PENALTY):
        raise ParameterError(f"penalty must be between {LEAST_PENALTY:g} and {LARGEST_PENALTY:g} for method {method!r}")
    in_halves = ", in units of half a column's range"
    return float(chosen), public.number("width", WIDTH if width is None else width, 0.005, 1000, in_halves)


RESAMPLES, MOST_RESAMPLES = 499, 9_999
PENALTY = 10.0
"""Default λ: the level does not depend on it, and a heavy one keeps Δ small."""


def largest_rank(alpha: float, resamples: int) -> int:
    """Return k = ⌊α (m + 1)⌋: among the k largest of m + 1 with probability at most α."""
    return math.floor(alpha * (resamples + 1) + 1e-9)


def planned_copies(resamples: int | None, default: int, alpha: float) -> int:
    count = public.whole("resamples", default if resamples is None else resamples, 1, MOST_RESAMPLES)
    if not 1 <= largest_rank(alpha, count) <= count:
        raise ParameterError(f"at alpha = {alpha:g} resamples must be at least 1/alpha - 1")
    return count


@dataclass(frozen=True, kw_only=True)
class GlobalCrt(IndependenceTest):
    """A test by statistics of all rows and of copies of x.

    Parameters
    ----------
    model_x : ModelX or mapping
        The distribution of x given z, row by row: with mean and sd, or a table; a mapping as in ``Crt``.
    resamples : int, optional
        Copies.
    penalty, width : float, optional
        λ of y's ridge, by default 10, and its kernel's width in units of half the public range of a column.
    """

    default_resamples: ClassVar[int] = RESAMPLES

    model_x: ModelX | Mapping[str, Any] | None = None
    resamples: int | None = None
    penalty: float | None = None
    width: float | None = None

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Self:
        model = checked_model(self.name, self.model_x, question, fitted=False)
        if isinstance(self.model_x, ModelX) and self.model_x.kind == "sampler":
            raise ParameterError(
                f"method {self.name!r} needs a model of single rows: a ModelX with mean and sd, or a table; a "
                "sampler's random numbers could carry one row's value to another's copy"
            )
        penalty, width = planned_ridge(self.name, question, self.penalty, self.width, PENALTY)
        resamples = planned_copies(self.resamples, self.default_resamples, question.alpha)
        return replace(self, model_x=model, penalty=penalty, width=width, resamples=resamples)

    def caveats(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        return (SIGNED,)

    def sensitivity(self, question: IndependenceQuestion) -> Sensitivity:
        return resample_sum_sensitivity(question.n, self.penalty if question.given else None)

    def statistics(self, rows: Sample, question: IndependenceQuestion, rng: PublicGenerator) -> Reals:
        """Return T_0, …, T_m: copies draw without a look at the rows, so a replaced row changes its own copies only."""
        model = cast(ModelX, self.model_x)
        bounds = bounds_of(question.schema, question.x[0])
        half = (bounds[1] - bounds[0]) / 2
        distribution = model.at(rows.raw, row_by_row=True)
        left = unit_column(rows.y[:, 0], question.schema, question.y[0])[:, None]
        left[~rows.is_complete] = 0.0
        if question.given:
            chunks = features(rows, question, self.width, rng)
            left = fitted_residuals(chunks, left, fit_weights(chunks, left, self.penalty or 0))
        statistics = np.zeros(1 + (self.resamples or 0))
        own = np.clip((rows.pair[0] - distribution.centre) / half, -1, 1)
        statistics[0] = _chunked_product(own[None, :], left[:, 0])[0]
        at_once = max(1, CELLS // rows.n)
        for start in range(1, statistics.size, at_once):
            size = min(at_once, statistics.size - start)
            copies = np.clip((distribution.copies(size, bounds, rng) - distribution.centre) / half, -1, 1)
            statistics[start : start + size] = _chunked_product(copies, left[:, 0])
        return statistics


@dataclass(frozen=True, kw_only=True)
class CrtDecision(GlobalCrt):
    """A noisy statistic among noisy copies: a decision."""

    name: ClassVar[str] = "crt-decision"
    about: ClassVar[str] = "a noisy statistic among noisy copies"
    proofs: ClassVar[tuple[str, ...]] = ("resample-product-sum", "residual-rounding", "noisy-rank", "laplace")
    supports_missing: ClassVar[bool] = True
    releases_pvalue: ClassVar[bool] = False

    def release(self, run: Run[IndependenceQuestion]) -> Released:
        statistics = np.abs(self.statistics(run.data, run.question, run.rng))
        return released_decision(run, statistics, (self.sensitivity(run.question),) * 2, "margin over the copies")


def released_decision(
    run: Run[IndependenceQuestion], statistics: Reals, moved: tuple[Sensitivity, Sensitivity], label: str
) -> Released:
    """Release whether the first statistic is among the largest; ``moved``: how far a row moves it and each other."""
    claim = margin_sensitivity(*moved, run.loss.epsilon)
    rank, scale = largest_rank(run.question.alpha, len(statistics) - 1), laplace_scale(claim.bound, run.loss)
    margin = laplace(rank_margin(statistics, rank, scale, claim, run.rng, label), run.budget, run.loss)
    return Released(margin, None, margin > 0)


def _chunked_product(left: Reals, right: Reals) -> Reals:
    total = np.zeros(len(left))
    for start in range(0, len(right), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        total += left[:, part] @ right[part]
    return total
