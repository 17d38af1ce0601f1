"""The conditional randomisation test in blocks: exact under a known distribution of x given z, and pure ε.

In each block the signed statistic Σ_i x_i r_i, r the residuals of y given z, is ranked among those of copies of x that
are exchangeable with it under the null.  The rank is exactly uniform whatever the regression does, so the null
distribution of the released sum is exact.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.data.schema import Bounded, Schema
from dpcausal.errors import ParameterError, Setting
from dpcausal.independence.methods.block_test import LEAST_BLOCK, BlockTest
from dpcausal.independence.methods.model_x import ModelX, stated_model
from dpcausal.independence.null_distributions import score_of_rank
from dpcausal.independence.question import IndependenceQuestion, Released, Sample, width_of
from dpcausal.independence.residuals import residuals
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.regression.external import uses_external_code

FITTED = "the model of x was fitted inside each block: the level is approximate, not exact"

EXACT_RESAMPLES = 999
ROUNDING = 1e-4
"""Differences of numbers are no finer than 1e-14 of the numbers: a tie is found at 1e-10 of the size given here."""

CELLS = 4_000_000
"""Numbers of copies in memory at a time."""


def bounds_of(schema: Schema, x: str) -> tuple[float, float]:
    declared = schema[x]
    if isinstance(declared, Bounded):
        return declared.lower, declared.upper
    return 0.0, float(max(1, len(declared) - 1))


def _rank_score(
    x: Reals, draw: Callable[[int], Reals], count: int, centre: Reals, r: Reals, generator: PublicGenerator
) -> float:
    """Return the score of Σ (x_i − c_i) r_i among those of copies; c, which keeps rounding small, moves all alike."""
    centre = centre + np.mean(x - centre)
    left = x - centre
    sums, squares = [float(left @ r)], [float(left @ left), ROUNDING**2 * float(x @ x)]
    at_once = max(1, CELLS // x.size)
    for start in range(0, count, at_once):
        copies = draw(min(at_once, count - start)) - centre
        sums += (copies @ r).tolist()
        squares += (copies**2).sum(axis=1).tolist()
    largest = math.sqrt(max(squares) * float(r @ r))
    return score_of_rank(sums[0], np.array(sums[1:]), largest, generator)


def checked_model(method: str, model: Any, question: IndependenceQuestion, fitted: bool) -> Any:
    model = stated_model(model, question.given)
    if len(question.x) != 1 or width_of(question.schema, question.y) != 1:
        raise ParameterError(f"method {method!r} takes one column x and one column y of numbers or of two levels")
    if isinstance(model, str):
        if model != "fit":
            text = "model_x must state the distribution of x, or be 'fit'"
            raise ParameterError(text, argument="model_x", rule="model-x")
        if not fitted:
            raise ParameterError(
                f"method {method!r} needs a public model of x: one fitted on the same rows is neither private nor "
                "exact; method 'crt' can fit one inside each block"
            )
        if not isinstance(question.schema[question.x[0]], Bounded):
            raise ParameterError("a model of x that is fitted needs a column x with bounds")
        return model
    if not isinstance(model, ModelX):
        text = f"method {method!r} needs the distribution of x given z: a table, or mean and sd"
        raise ParameterError(text, argument="model_x", rule="missing-model", hint=("name it with ", Setting("model_x")))
    model.check(question.schema, question.x[0], question.given)
    return model


@dataclass(frozen=True, kw_only=True)
class Crt(BlockTest):
    """Ranks among copies of x that its distribution given z draws, in blocks.

    Parameters
    ----------
    model_x : ModelX, mapping or "fit"
        The distribution of x given z, as ``{"table": [[0.9, 0.1], [0.4, 0.6]]}`` or ``{"mean": {"intercept": 1, "age":
        0.5}, "sd": 2}``.  ``"fit"`` learns a normal distribution inside each block; the level is then approximate.
    blocks, regression, resamples, workers
        As in ``Gcm``.
    """

    name: ClassVar[str] = "crt"
    about: ClassVar[str] = "ranks among copies of x, in blocks"

    model_x: ModelX | Mapping[str, Any] | Literal["fit"] | None = None

    @property
    def external_code(self) -> bool:
        return uses_external_code(self.regression, self.model_x)

    @property
    def least_rows(self) -> int:
        """Fewer where the distribution of x is known: the level is exact, whatever the regression of y has learnt."""
        return super().least_rows if self.model_x == "fit" else LEAST_BLOCK

    def score(self, rows: Sample, question: IndependenceQuestion, rng: PublicGenerator) -> float:
        return self.ranked(rows, question, self.resamples or 0, rng)

    def ranked(self, rows: Sample, question: IndependenceQuestion, count: int, rng: PublicGenerator) -> float:
        x = rows.pair[0]
        if not isinstance(self.model_x, ModelX):
            both = residuals(rows.given, (x[:, None], rows.y), self.regression, rng).residuals
            r_x, r_y = both[:, 0], both[:, 1]
            spread = r_x.std()
            zeros = np.zeros(rows.n)
            return _rank_score(r_x, lambda size: spread * rng.standard_normal((size, rows.n)), count, zeros, r_y, rng)
        r_y = residuals(rows.given, (rows.y,), self.regression, rng).residuals[:, 0]
        model, bounds = self.model_x.at(rows.raw), bounds_of(question.schema, question.x[0])
        return _rank_score(
            x, lambda size: model.copies(size, bounds, rng), count, np.clip(model.centre, *bounds), r_y, rng
        )

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Self:
        model = checked_model(self.name, self.model_x, question, fitted=True)
        return replace(super().plan(question, loss), model_x=model)

    def caveats(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        fitted = (FITTED,) if self.model_x == "fit" else ()
        return (*fitted, *super().caveats(question, loss))

    def exact(self, rows: Sample, question: IndependenceQuestion, rng: PublicGenerator) -> Released:
        from scipy.special import ndtr

        score = self.ranked(rows, question, EXACT_RESAMPLES, rng)
        return Released(score, float(2 * ndtr(-abs(score))))
