"""The Hilbert-Schmidt criterion by permutations, for x and y without z: a decision by noisy statistics.

A replaced row is in one pair of the observed statistic, but in two of a permuted one: its x meets another row's y.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.arrays import Integers, Mask
from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.errors import ParameterError
from dpcausal.independence.methods.crt import bounds_of
from dpcausal.independence.methods.crt_decision import planned_copies, released_decision
from dpcausal.independence.question import IndependenceQuestion, IndependenceTest, Released, Sample
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Sensitivity
from dpcausal.statistics.hsic import LAPLACIAN, permuted_root_hsic_sensitivity, root_hsic, root_hsic_sensitivity

RESAMPLES = 199
WIDTH = 0.4
"""Default width of both Laplacian kernels: public, in units of half a column's range."""

_ROUNDING = Fraction(1, 2**50)
"""Sums of a statistic below 1 and a tie breaker are rounded to floats."""


def sensitivities(n: int) -> tuple[Sensitivity, Sensitivity]:
    own, copies = root_hsic_sensitivity(n), permuted_root_hsic_sensitivity(n)
    return replace(own, bound=own.bound + _ROUNDING), replace(copies, bound=copies.bound + _ROUNDING)


def first_returns(order: Integers, complete: Mask) -> Integers:
    """Return where a permutation first meets a complete row again: a dropped row changes one partner and one pair."""
    place = order[complete]
    while not complete[place].all():
        place = np.where(complete[place], place, order[place])
    return place


@dataclass(frozen=True, kw_only=True)
class Hsic(IndependenceTest):
    """Kernel dependence among noisy permutations, for ``given=[]``: a decision.

    Parameters
    ----------
    resamples : int, optional
        Permutations, by default 199.
    width : float, optional
        Of both kernels, in units of half a column's range; by default 0.4.
    """

    name: ClassVar[str] = "hsic"
    about: ClassVar[str] = "kernel dependence among noisy permutations"
    proofs: ClassVar[tuple[str, ...]] = ("root-hsic", "permuted-root-hsic", "noisy-rank", "laplace")
    supports_missing: ClassVar[bool] = True
    releases_pvalue: ClassVar[bool] = False

    resamples: int | None = None
    width: float | None = None

    def plan(self, question: IndependenceQuestion, loss: PureDP | NoPrivacy) -> Self:
        if question.given:
            raise ParameterError(
                "method 'hsic' takes no given columns: permuting x is right only where nothing is conditioned on"
            )
        question.check_single(self.name, 2, any_levels=True)
        if question.n > LAPLACIAN.most_records:
            raise ParameterError(f"method 'hsic' takes 2 to {LAPLACIAN.most_records} rows")
        in_halves = ", in units of half a column's range"
        width = public.number("width", WIDTH if self.width is None else self.width, 1e-3, 1000, in_halves)
        return replace(self, width=width, resamples=planned_copies(self.resamples, RESAMPLES, question.alpha))

    def load(self) -> None:
        root_hsic(np.arange(4.0), np.arange(4.0), width_x=1.0, width_y=1.0, range_x=(0.0, 4.0), range_y=(0.0, 4.0))

    def release(self, run: Run[IndependenceQuestion]) -> Released:
        private: Sample = run.data
        question = run.question
        x, y = private.pair
        range_x, range_y = bounds_of(question.schema, question.x[0]), bounds_of(question.schema, question.y[0])
        width_x, width_y = ((self.width or WIDTH) * (high - low) / 2 for low, high in (range_x, range_y))
        box: dict[str, Any] = {"width_x": width_x, "width_y": width_y, "range_x": range_x, "range_y": range_y}
        orders = [np.arange(private.n), *(run.rng.permutation(private.n) for _ in range(self.resamples or 0))]
        complete = np.flatnonzero(private.is_complete)

        def scaled(order: Integers) -> float:
            if complete.size < 2:
                return 0.0
            partners = y[first_returns(order, private.is_complete)]
            return root_hsic(x[complete], partners, **box) * (complete.size / private.n)

        statistics = np.array([scaled(order) for order in orders])
        return released_decision(run, statistics, sensitivities(question.n), "margin over permutations")
