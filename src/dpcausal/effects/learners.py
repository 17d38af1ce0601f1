"""Learners of the caller's in a block: what they predict of treatment and outcome, each fifth from the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.errors import ParameterError
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed
from dpcausal.regression.guests import guest, is_estimator, quiet_copy, tried, with_coins
from dpcausal.regression.smoother import Given, standardised

Reals = npt.NDArray[np.float64]

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
    coins = generator_from_seed(0)
    response = coins.random(like.rows)
    if of_treatment:
        response = np.rint(response)
    tried(lambda: _apart(learner, like, response, of_treatment, coins), what, RULE)


def made_up(numbers: int, levels: tuple[int, ...], rows: int) -> Given:
    """Return made-up rows of the kinds that a block has."""
    coins, n = generator_from_seed(0), max(2 * FOLDS, min(rows, MOST_TRIAL_ROWS))
    codes = coins.integers(np.array(levels, dtype=np.int64), size=(n, len(levels)))
    return Given(coins.random((n, numbers)), codes, levels)


def predicted(learner: Any, given: Given, response: Reals, of_treatment: bool, coins: PublicGenerator) -> Reals | None:
    """Return what a learner predicts of each row from the other fifths, within the response's range.

    It may fail, or be no number.
    """
    seed = int(coins.integers(2**63))
    if learner is None:
        return None
    scale, middle = (1.0, 0.0) if of_treatment else (float(response.std()) or 1.0, float(response.mean()))
    found = guest(lambda: _apart(learner, given, (response - middle) / scale, of_treatment, coins), seed)
    return np.clip(middle + scale * found, response.min(), response.max())


def _apart(learner: Any, given: Given, response: Reals, of_treatment: bool, coins: PublicGenerator) -> Reals:
    # A column for each level that was declared, so that all blocks have the same.
    indicators = [
        (codes[:, None] == np.arange(size)).astype(np.float64)
        for codes, size in zip(given.levels.T, given.sizes, strict=True)
    ]
    Z = np.hstack([standardised(given.numbers), *indicators])
    fold, found = coins.permutation(given.rows) % FOLDS, np.zeros(given.rows)
    for held in range(FOLDS):
        model, there = with_coins(learner, coins), fold == held
        classes = of_treatment and callable(getattr(model, "predict_proba", None))
        model.fit(Z[~there], response[~there].astype(np.int64) if classes else response[~there])
        said = model.predict_proba(Z[there])[:, list(model.classes_).index(1)] if classes else model.predict(Z[there])
        found[there] = np.ravel(said)
    return found
