"""The effect in one block of rows: residuals of treatment and outcome, swept by a series of what is adjusted for.

    θ = Σ r_i y_i / Σ r_i²

where r is the treatment less its projection on 1, the columns of the series and, for everybody's effect, the products
of treatment and centred columns; so θ is the slope of the treatment in a least squares line of the outcome on them all.
For the effect weighed by e(1 − e) rows count by 1/(1 − h_i), h_i their leverage in the series: what a series of many
columns takes of a row's treatment would else be missing in its weight.
The series is not penalised: a penalty leaves a part of what causes both in the residuals of both.  Predictions of other
learners, each fifth of the block from the others, are taken off treatment and outcome first.

Nothing here is private: it belongs inside a block whose answer is bounded and paid for.  It is total but for learners.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed
from dpcausal.regression.external import external_code, is_estimator, quiet_copy, tried, with_seed
from dpcausal.regression.smoother import Given, standardised

Reals = npt.NDArray[np.float64]

TERMS = ("lines", "curves", "products")
"""Each has the columns of those before it: numbers and levels; their squares and cubes; products of two."""

LEAST_MOVED = 0.5
"""Records' worth of treatment that what is adjusted for must leave; below, a block has nothing to say."""
MOST_LEVERAGE = 0.8
"""Of a row in the series, that its weight allows for."""
LEAST_LEFT = 5
"""Rows that a block must have beyond its columns."""


@dataclass(frozen=True)
class Kinds:
    """What is adjusted for: so many numbers, and columns of so many levels each."""

    numbers: int
    levels: tuple[int, ...]

    def columns(self, terms: str) -> int:
        """Return the number of columns of a series."""
        indicators = [size - 1 for size in self.levels]
        found = self.numbers + sum(indicators)
        if terms != TERMS[0]:
            found += 2 * self.numbers
        if terms == TERMS[2]:
            among = sum(one * other for one, other in combinations(indicators, 2))
            found += self.numbers * (self.numbers - 1) // 2 + self.numbers * sum(indicators) + among
        return found

    def modifiers(self, terms: str) -> int:
        """Return the number of columns that the effect may change along."""
        return self.columns(TERMS[0]) + (self.numbers if terms != TERMS[0] else 0)


def series(given: Given, terms: str) -> Reals:
    """Return the columns of a series, shape (n, ``Kinds.columns``), without the constant."""
    Z, levels = standardised(given.numbers), _indicators(given)
    found = [Z, *levels]
    if terms != TERMS[0]:
        found += [Z**2, Z**3]
    if terms == TERMS[2]:
        groups = [Z[:, [place]] for place in range(Z.shape[1])] + levels
        found += [(one[:, :, None] * other[:, None, :]).reshape(len(one), -1) for one, other in combinations(groups, 2)]
    return np.hstack(found)


def modifiers(given: Given, terms: str) -> Reals:
    """Return the columns that the effect may change along, each of mean 0."""
    Z = standardised(given.numbers)
    found = np.hstack([Z, *_indicators(given), *([Z**2] if terms != TERMS[0] else [])])
    centred: Reals = found - found.mean(axis=0)
    return centred


def _indicators(given: Given) -> list[Reals]:
    return [
        (codes[:, None] == np.arange(1, size)).astype(np.float64)
        for codes, size in zip(given.levels.T, given.sizes, strict=True)
    ]


@dataclass(frozen=True)
class Slope:
    """The effect in a block, and its standard error, whatever the spread of the outcome is where."""

    effect: float
    error: float


def slope(
    treated: Reals, outcome: Reals, given: Given, terms: str, overlap: bool,
    predicted: tuple[Reals | None, Reals | None] = (None, None),
) -> Slope | None:  # fmt: skip
    """Return the effect in a block, or nothing where it has nothing to say.

    Parameters
    ----------
    treated, outcome : float arrays, shape (n,)
        0 and 1; in widths of the outcome's range.
    given : Given
        What is adjusted for.
    terms : str
        Of ``TERMS``.
    overlap : bool
        Whether everybody counts by how evenly those alike are treated, instead of each as one.
    predicted : pair of arrays, or None
        Of treatment and outcome, each from other rows.
    """
    n = len(treated)
    if n <= LEAST_LEFT:
        return None
    of_treatment, of_outcome = predicted
    A = treated - of_treatment if of_treatment is not None else treated
    y = outcome - of_outcome if of_outcome is not None else outcome
    basis = _basis([np.ones((n, 1)), series(given, terms)])
    A, y = (one - basis @ (basis.T @ one) for one in (A, y))
    moved = treated if of_treatment is None and of_outcome is None else A
    weighed = A / (1 - np.minimum((basis**2).sum(axis=1), MOST_LEVERAGE)) if overlap else A
    if not overlap and not given.empty:
        basis = _basis([np.ones((n, 1)), series(given, terms), moved[:, None] * modifiers(given, terms)])
        A, y = (one - basis @ (basis.T @ one) for one in (A, y))
        weighed = A
    left, squares = n - basis.shape[1] - 1, float(weighed @ A)
    if left < LEAST_LEFT or not squares >= LEAST_MOVED:
        return None
    effect = float(weighed @ y) / squares
    spread = float(((weighed * (y - effect * A)) ** 2).sum()) * n / left
    return Slope(effect, math.sqrt(spread) / squares) if math.isfinite(effect) else None


def _basis(columns: Sequence[Reals]) -> Reals:
    Z = np.hstack(columns)
    size = np.sqrt((Z**2).sum(axis=0))
    U, values, _ = np.linalg.svd(Z[:, size > 0] / size[size > 0], full_matrices=False)
    kept: Reals = U[:, values > 1e-7 * values[0]]
    return kept


FOLDS = 5
"""A learner predicts each fifth of a block from the others: one that can learn rows by heart leaves nothing."""

MOST_TRIAL_ROWS = 2_000
"""Made-up rows, no more than a block has, on which a learner is tried before anything is spent."""

RULE = (
    "; the outcome's must predict numbers, the treatment's 0 and 1 (predict_proba, or numbers), from standardised "
    "numbers and indicators of levels"
)


def _boosting(of_treatment: bool) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if of_treatment else HistGradientBoostingRegressor
    return kind(max_iter=60, max_leaf_nodes=8, min_samples_leaf=10, early_stopping=False)


def _forest(of_treatment: bool) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    return (RandomForestClassifier if of_treatment else RandomForestRegressor)(100, min_samples_leaf=5)


NAMED: dict[str, Callable[[bool], Any]] = {"boosting": _boosting, "forest": _forest}
"""Learners by a word, of treatment or of outcome."""


def learner_of(what: str, value: object, of_treatment: bool) -> Any:
    """Return the learner that was asked for, as an unfitted copy that prints nothing; ``None`` if none was."""
    if value is None:
        return None
    if isinstance(value, str) and value in NAMED:
        return NAMED[value](of_treatment)
    if isinstance(value, str) or not is_estimator(value):
        kind = "classifier" if of_treatment else "regressor"
        raise ParameterError(f"{what} must be one of {', '.join(NAMED)}, or a scikit-learn {kind}")
    return tried(lambda: quiet_copy(value), f"{what}", RULE)


def check(what: str, learner: Any, like: Given, of_treatment: bool) -> None:
    """Refuse a learner that fails on made-up rows like a block's."""
    rng = generator_from_seed(0)
    response = rng.random(like.rows)
    if of_treatment:
        response = np.rint(response)
    tried(lambda: _apart(learner, like, response, of_treatment, rng), what, RULE)


def made_up(numbers: int, levels: tuple[int, ...], rows: int) -> Given:
    """Return made-up rows of the kinds that a block has."""
    rng, n = generator_from_seed(0), max(2 * FOLDS, min(rows, MOST_TRIAL_ROWS))
    codes = rng.integers(np.array(levels, dtype=np.int64), size=(n, len(levels)))
    return Given(rng.random((n, numbers)), codes, levels)


def predicted(learner: Any, given: Given, response: Reals, of_treatment: bool, rng: PublicGenerator) -> Reals | None:
    """Return what a learner predicts of each row from the other fifths, within the response's range.

    It may fail, or be no number.
    """
    seed = int(rng.integers(2**63))
    if learner is None:
        return None
    scale, middle = (1.0, 0.0) if of_treatment else (float(response.std()) or 1.0, float(response.mean()))
    found = external_code(lambda: _apart(learner, given, (response - middle) / scale, of_treatment, rng), seed)
    return np.clip(middle + scale * found, response.min(), response.max())


def _apart(learner: Any, given: Given, response: Reals, of_treatment: bool, rng: PublicGenerator) -> Reals:
    # A column for each level that was declared, so that all blocks have the same.
    indicators = [
        (codes[:, None] == np.arange(size)).astype(np.float64)
        for codes, size in zip(given.levels.T, given.sizes, strict=True)
    ]
    Z = np.hstack([standardised(given.numbers), *indicators])
    fold, found = rng.permutation(given.rows) % FOLDS, np.zeros(given.rows)
    for held in range(FOLDS):
        model, there = with_seed(learner, rng), fold == held
        classes = of_treatment and callable(getattr(model, "predict_proba", None))
        model.fit(Z[~there], response[~there].astype(np.int64) if classes else response[~there])
        said = model.predict_proba(Z[there])[:, list(model.classes_).index(1)] if classes else model.predict(Z[there])
        found[there] = np.ravel(said)
    return found
