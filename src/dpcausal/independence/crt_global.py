"""Randomisation tests of all rows at once: noisy statistics of x and of copies of it.

T_j = Σ_i c_i^{(j)} r_i, c the residuals of x (j = 0) or of a copy of x from its public model, in units of half x's
public range and clipped to [−1, 1], r the residuals of y given z, or y itself.  One row moves each T_j by at most Δ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.asking import public
from dpcausal.errors import ParameterError
from dpcausal.independence.columns import Reals, Sample, values_of
from dpcausal.independence.crt import bounds_of, checked_model
from dpcausal.independence.features import features, settled_ridge, unit_column
from dpcausal.independence.model_x import ModelX
from dpcausal.independence.question import SIGNED, Hypothesis, PureTest, Released
from dpcausal.mechanisms.additive import laplace, laplace_scale
from dpcausal.mechanisms.noisy_rank import margin_sensitivity, rank_margin
from dpcausal.privacy.allotment import Allotment
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Sensitivity
from dpcausal.regression.residual_products import (
    CHUNK_ROWS,
    fit_weights,
    fitted_residuals,
    resample_sum_sensitivity,
)

RESAMPLES, MOST_RESAMPLES = 499, 9_999
PENALTY = 10.0
"""Default λ: the level does not depend on it, and a heavy one keeps Δ small."""

CELLS = 4_000_000
"""Numbers of copies in memory at a time."""


def largest_rank(alpha: float, resamples: int) -> int:
    """Return k = ⌊α (m + 1)⌋: among the k largest of m + 1 with probability at most α.

    >>> largest_rank(0.05, 19), largest_rank(0.05, 499)
    (1, 25)
    """
    return math.floor(alpha * (resamples + 1) + 1e-9)


def settled_copies(resamples: int | None, default: int, alpha: float) -> int:
    """Check the number of copies, or choose it: enough for the level."""
    count = public.whole("resamples", default if resamples is None else resamples, 1, MOST_RESAMPLES)
    if not 1 <= largest_rank(alpha, count) <= count:
        raise ParameterError(f"at alpha = {alpha:g} resamples must be at least 1/alpha - 1")
    return count


@dataclass(frozen=True, kw_only=True)
class GlobalCrt(PureTest):
    """A test by statistics of all rows and of copies of x.

    Parameters
    ----------
    model_x : ModelX or mapping
        The law of x given z, row by row: with mean and sd, or a table; a mapping as in ``Crt``.
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

    def settle(self, question: Hypothesis, spent: PureDP | NoPrivacy) -> Self:
        model = checked_model(self.name, self.model_x, question, fitted=False)
        if isinstance(self.model_x, ModelX) and self.model_x.kind == "sampler":
            raise ParameterError(
                f"method {self.name!r} needs a model of single rows: a ModelX with mean and sd, or a table; a "
                "sampler's coins could carry one row's value to another's copy"
            )
        penalty, width = settled_ridge(self.name, question, self.penalty, self.width, PENALTY)
        resamples = settled_copies(self.resamples, self.default_resamples, question.alpha)
        return replace(self, model_x=model, penalty=penalty, width=width, resamples=resamples)

    def caveats(self, question: Hypothesis, spent: PureDP | NoPrivacy) -> tuple[str, ...]:
        return (SIGNED,)

    def sensitivity(self, question: Hypothesis) -> Sensitivity:
        """Return how far one row moves each statistic."""
        return resample_sum_sensitivity(question.n, self.penalty if question.given else None)

    def statistics(self, rows: Sample, question: Hypothesis, coins: PublicGenerator) -> Reals:
        """Return T_0, …, T_m, shape (m + 1,).

        The coins of the copies are drawn without a look at the rows and the model is asked row by row, so a replaced
        row changes its own copies only.
        """
        if not isinstance(self.model_x, ModelX):
            raise ParameterError("statistics need a model of x")
        bounds = bounds_of(question.schema, question.x[0])
        half = (bounds[1] - bounds[0]) / 2
        law = self.model_x.at(rows.raw, row_by_row=True)
        left = unit_column(rows.y[:, 0], question.schema, question.y[0])[:, None]
        left[~rows.kept] = 0.0
        if question.given:
            chunks = features(rows, question, self.width, coins)
            left = fitted_residuals(chunks, left, fit_weights(chunks, left, self.penalty or 0))
        found = np.zeros(1 + (self.resamples or 0))
        found[0] = _summed(np.clip((values_of(rows.x) - law.centre) / half, -1, 1)[None, :], left[:, 0])[0]
        at_once = max(1, CELLS // rows.n)
        for start in range(1, found.size, at_once):
            size = min(at_once, found.size - start)
            copies = law.copies(size, bounds, coins)
            found[start : start + size] = _summed(np.clip((copies - law.centre) / half, -1, 1), left[:, 0])
        return found


@dataclass(frozen=True, kw_only=True)
class CrtDecision(GlobalCrt):
    """A noisy statistic among noisy copies: a decision."""

    name: ClassVar[str] = "crt-decision"
    about: ClassVar[str] = "a noisy statistic among noisy copies"
    leaves_out: ClassVar[bool] = True
    releases_pvalue: ClassVar[bool] = False

    def claims(self, question: Hypothesis, spent: PureDP) -> tuple[str, ...]:
        return "resample-product-sum", "residual-rounding", "noisy-rank", "laplace"

    def release(
        self, private: Sample, question: Hypothesis, spent: PureDP, coins: PublicGenerator, allotment: Allotment
    ) -> Released:
        each = self.sensitivity(question)
        claim = margin_sensitivity(each, each, spent.epsilon)
        found = np.abs(self.statistics(private, question, coins))
        rank = largest_rank(question.alpha, self.resamples or 0)
        scale = laplace_scale(claim.bound, spent)
        margin = laplace(rank_margin(found, rank, scale, claim, coins, "margin over the copies"), allotment, spent)
        return Released(margin, None, margin > 0)


def _summed(left: Reals, right: Reals) -> Reals:
    total = np.zeros(len(left))
    for start in range(0, len(right), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        total += left[:, part] @ right[part]
    return total
