"""FoldSplit: black-box models in disjoint folds, for a record the average of what the other folds' say, one noisy mean.

Lebeda, Even, Bellet & Josse (2025), *Model Agnostic Differentially Private Causal Inference*, arXiv 2505.19589.
Our reading of its abstract and of reviews: no constant, proof or table of the paper could be read.  Ridge outcomes,
logistic propensities, where values are clipped and where noise is added are this library's, as is the bound
(``fold_split.md``).  Means are averaged, probabilities of either arm harmonically, each arm's apart.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpcausal.core import validate as public
from dpcausal.core.method import Run
from dpcausal.effects.cells.corner_counts import levels_of
from dpcausal.effects.nuisance.design import OUTCOME, TREATMENT, Design
from dpcausal.effects.question import EffectMethod, EffectQuestion
from dpcausal.effects.result import Effect
from dpcausal.errors import FenceError, LossError, ParameterError
from dpcausal.mechanisms.additive import geometric, geometric_variance, laplace_scale
from dpcausal.mechanisms.blocks import assign_blocks, blocks_moved
from dpcausal.privacy.loss import Loss, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.regression.external import one_thread
from dpcausal.regression.kernel_ridge import ridge_solution

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Model = Callable[[Reals], tuple[Reals, Reals, Reals]]
"""From what is adjusted for to the mean outcome if treated, if not, and the probability of treatment."""

GRID = 2**20
"""Predictions, weights and scores are whole multiples of 1/GRID: sums over folds and records are exact."""
RIDGE, PENALTY, STEPS = 0.1, 1.0, 8
LEAST_FOLD, ROWS_A_COLUMN, MOST_FOLDS = 25, 4, 1_000
ESTIMATORS = ("g-formula", "ipw", "aipw")

READING = "our reading of an abstract, arXiv 2505.19589: models, clipping and where noise is added are this library's"
NO_INTERVAL = (
    "averaged models of small folds are off by what no released number shows, and how scores spread is not paid for: "
    "noise_error is that of the noise alone"
)


def lines(x: Reals, a: Mask, y: Reals) -> Model:
    """Return a fold's models: a ridge line for either arm, a logistic one for treatment; of no rows 0, 0 and ½."""
    f = np.column_stack([x, np.ones(len(x))])
    with one_thread():
        arms = [ridge_solution(f[arm].T @ f[arm], f[arm].T @ y[arm], RIDGE) for arm in (a, ~a)]
        b = np.zeros(f.shape[1])
        for _ in range(STEPS):
            e = _logistic(f @ b)
            b += ridge_solution((f * (e * (1 - e))[:, None]).T @ f, f.T @ (a - e) - PENALTY * b, PENALTY)

    def predict(all_x: Reals) -> tuple[Reals, Reals, Reals]:
        one, zero, chance = (_along(all_x, slopes) for slopes in (*arms, b))
        return one, zero, _logistic(chance)

    return predict


def _logistic(t: Reals) -> Reals:
    return np.asarray(1 / (1 + np.exp(-np.clip(t, -30.0, 30.0))))


def _along(x: Reals, slopes: Reals) -> Reals:
    total = np.full(len(x), slopes[-1])
    for column, slope in zip(x.T, slopes, strict=False):
        total += slope * column
    return total


def averages(
    x: Reals, a: Mask, y: Reals, complete: Mask, folds: Sequence[Integers], least: float,
    learner: Callable[[Reals, Mask, Reals], Model] = lines,
) -> Reals:  # fmt: skip
    """Return, for each record, the means over the other folds of m(1), m(0), 1/e and 1/(1 − e), shape (4, n).

    Exact but for one division: what a fold says is cut to whole multiples of 1/``GRID`` before it is added.
    """
    totals, columns = np.zeros((4, len(x)), dtype=np.int64), np.ascontiguousarray(x.T).T
    ends = math.ceil(GRID / (1 - least)), math.floor(GRID / least)
    for part in folds:
        own = part[complete[part]]
        one, zero, chance = learner(x[own], a[own], y[own])(columns)
        e = np.clip(np.nan_to_num(chance, nan=0.5), least, 1 - least)
        predictions = [np.rint(GRID * np.clip(np.nan_to_num(m, nan=0.0), -1.0, 1.0)) for m in (one, zero)]
        predictions += [np.clip(np.rint(GRID / p), *ends) for p in (e, 1 - e)]
        stacked = np.stack(predictions).astype(np.int64)
        stacked[:, part] = 0
        totals += stacked
    return totals / (GRID * (len(folds) - 1))


def scores(estimator: str, means: Reals, a: Mask, y: Reals) -> Reals:
    one, zero, treats, controls = means
    return np.asarray({
        "g-formula": one - zero, "ipw": np.where(a, y * treats, -y * controls),
        "aipw": one - zero + np.where(a, (y - one) * treats, -(y - zero) * controls),
    }[estimator])  # fmt: skip


def reach(estimator: str, least: float) -> float:
    return {"g-formula": 2.0, "ipw": 1 / least, "aipw": 2 / least}[estimator]


def fold_split(estimator: str, means: Reals, a: Mask, y: Reals, complete: Mask, least: float) -> Integers:
    """Return the sum of the complete records' scores and their number times the reach, in units of 1/``GRID``.

    ``means`` are the ``averages`` of the records, shape (4, n); y lies in [−1, 1], probabilities in [least, 1 − least].
    *Guarantee*: ``fold_split_sensitivity``.
    """
    farthest = math.floor(GRID * reach(estimator, least))
    terms = np.clip(np.rint(GRID * scores(estimator, means, a, y)), -farthest, farthest) * complete
    return np.array([terms.astype(np.int64).sum(), int(complete.sum()) * farthest], dtype=np.int64)


def fold_split_sensitivity(estimator: str, n: int, folds: int, least: float, unit: Unit = Unit.ROW) -> Sensitivity:
    """Return the l1 sensitivity of ``fold_split``: 2·reach of the own score, and one fold's share of every other.

    With W = 1/least, D = W − 1/(1 − least), h = 1/(K − 1) another score moves by 4h, hD or 2h(W + (1 − h)D); those of
    n − ⌊n/K⌋ records do.  A person of a private id moves two folds.

    >>> [round(fold_split_sensitivity(one, 1_000, 20, 0.05).bound / 2**20) for one in ("g-formula", "ipw", "aipw")]
    [204, 987, 3875]
    """
    moved = blocks_moved(unit)
    h, W = min(1.0, moved / (folds - 1)), 1 / least
    D = W - 1 / (1 - least)
    each = {"g-formula": 4 * h, "ipw": h * D, "aipw": 2 * h * (W + (1 - h) * D)}[estimator]
    others = n - n // folds if moved == 1 else n - 1
    bound = math.ceil(GRID * (2 * reach(estimator, least) + others * each) * (1 + 2.0**-30)) + 2 * n
    return Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "fold-split", unit)


@dataclass(frozen=True, kw_only=True)
class FoldSplit(EffectMethod):
    """The average of black-box models of disjoint folds, and one noisy mean of scores by them; ``PureDP``.

    Parameters
    ----------
    estimator : str
        ``"aipw"``, ``"ipw"`` or ``"g-formula"``.
    folds : int, optional
        By default as many as have 25 rows, and four a column, at most 1,000: noise falls with their number alone.
    least : float
        Probabilities are cut to [least, 1 − least].
    """

    name: ClassVar[str] = "FoldSplit"
    about: ClassVar[str] = "averaged models of disjoint folds"
    losses: ClassVar[tuple[type[Loss], ...]] = (PureDP,)
    proofs: ClassVar[tuple[str, ...]] = ("fold-split", "geometric")

    estimator: str = "aipw"
    folds: int | None = None
    least: float = 0.05

    def plan(self, question: EffectQuestion, loss: PureDP | NoPrivacy) -> Self:
        if question.table.weighed:
            raise ParameterError(f"method {self.name!r} has no proof for survey weights")
        if question.estimand != "ate" or question.groups is not None:
            raise ParameterError(f"method {self.name!r} needs estimand 'ate' and no groups")
        if len(levels_of(question.column(question.treatment))) != 2:
            raise ParameterError(f"method {self.name!r} needs a treatment of two levels")
        public.check_choice("estimator", self.estimator, ESTIMATORS)
        least = public.number("least", self.least, 0.001, 0.45)
        n, folds = question.n, self.folds
        if folds is None:
            rows = max(LEAST_FOLD, ROWS_A_COLUMN * len(Design.of(question).names))
            folds = min(max(n // rows, 2), MOST_FOLDS)
        planned = replace(self, folds=public.whole("folds", folds, 2, n // 2), least=least)
        try:
            planned._noise(question, loss)
        except FenceError:
            raise LossError(f"{loss} is too little here: the noise could not be drawn") from None
        return planned

    def caveats(self, question: EffectQuestion, loss: PureDP | NoPrivacy) -> tuple[str, ...]:
        wide = self._noise(question, loss) / 2
        return READING, f"public numbers predict noise of {wide:.2g} of the outcome's range if no row is left out"

    def _noise(self, question: EffectQuestion, loss: PureDP | NoPrivacy) -> float:
        if not isinstance(loss, PureDP):
            return 0.0
        bound = fold_split_sensitivity(self.estimator, question.n, self.folds or 2, self.least, question.unit).bound
        return math.sqrt(geometric_variance(laplace_scale(bound, loss))) / GRID / question.n

    def release(self, run: Run[EffectQuestion]) -> Effect:
        question = run.question
        design, folds, n = Design.of(question), self.folds or 2, question.n
        rows = run.data.rows(dict.fromkeys(design.sources))
        unit = design.units(rows)
        y, a, x = unit[:, OUTCOME], unit[:, TREATMENT] > 0, unit[:, TREATMENT + 1 :]
        parts = assign_blocks(n, folds, run.rng, rows.keys)
        means = averages(x, a, y, rows.included, parts, self.least)
        bound = fold_split_sensitivity(self.estimator, n, folds, self.least, question.unit)
        total = fold_split(self.estimator, means, a, y, rows.included, self.least)
        noisy, counted = np.asarray(geometric(Query(total, bound, "the mean of scores"), run.budget, run.loss)) / GRID
        far = reach(self.estimator, self.least)
        count = min(max(float(counted) / far, 1.0), float(n)) if question.drops_missing else float(n)
        mean, half = float(np.clip(noisy / count, -2.0, 2.0)), float(design.halves[OUTCOME])
        of_count = mean / far if question.drops_missing else 0.0
        noise = self._noise(question, run.loss) * n / count * math.hypot(1.0, of_count) * half
        return question.effect(
            estimand="ate", estimate=mean * half, interval_reason=NO_INTERVAL, noise_error=noise,
            signal_to_noise=abs(mean * half) / noise if noise else math.inf,
        )  # fmt: skip
