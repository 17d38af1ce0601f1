"""Residuals inside a block, by the library's kernel ridge or by any scikit-learn regressor."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.data.schema import Bounded
from dpcausal.errors import ParameterError
from dpcausal.independence.question import IndependenceQuestion
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed
from dpcausal.regression.external import external_code, is_estimator, quiet_copy, try_external_code, with_seed
from dpcausal.regression.marginal_likelihood import MOST_ROWS, likely_residuals
from dpcausal.regression.smoother import Given, Smoothed, smooth, standardised

SHAPES = ("likely", "additive")

MOST_TRIAL_ROWS = 20_000
"""Simulated rows, no more than a block has, on which a regressor is tried before anything is spent."""

FOLDS = 5
"""A regressor predicts each fifth of a block from the others: one that memorises rows has no residuals."""


def checked_regression(regression: Any, question: IndependenceQuestion, blocks: int | None) -> Any:
    if regression is None:
        return SHAPES[0]
    if isinstance(regression, str) and regression in SHAPES:
        return regression
    if not is_estimator(regression):
        raise ParameterError(
            f"regression must be one of {', '.join(SHAPES)}", argument="regression", rule="regression",
            hint="in Python it may also be a scikit-learn regressor",
        )
    return try_external_code(
        lambda: _quiet_copy(regression, question, blocks), "the regressor",
        "; it must predict numbers, also where y has levels, from standardised numbers and indicators of levels",
    )  # fmt: skip


def _quiet_copy(regression: Any, question: IndependenceQuestion, blocks: int | None) -> Any:
    copy = quiet_copy(regression)
    if question.given:
        _cross_fitted(*_simulated_block(question, blocks), copy, generator_from_seed(0))
    return copy


def _simulated_block(question: IndependenceQuestion, blocks: int | None) -> tuple[Given, Reals]:
    generator = generator_from_seed(0)
    n = min(question.n // (blocks or 1), MOST_TRIAL_ROWS)
    declared = [question.schema[name] for name in question.given]
    levels = [len(column) for column in declared if not isinstance(column, Bounded)]
    numbers = generator.random((n, len(declared) - len(levels)))
    codes = generator.integers(np.array(levels, dtype=np.int64), size=(n, len(levels)))
    return Given(numbers, codes, tuple(levels)), generator.random((n, 1))


def residuals(given: Given, sides: Sequence[Reals], regression: Any, generator: PublicGenerator) -> Smoothed:
    responses = np.hstack(sides)
    if given.empty:
        return Smoothed(standardised(responses), 1.0)
    if regression == "likely" and given.rows <= MOST_ROWS:
        return likely_residuals(given, sides)
    if isinstance(regression, str):
        return smooth(given, responses, generator)
    return _cross_fitted(given, responses, regression, generator)


def _cross_fitted(given: Given, responses: Reals, regressor: Any, generator: PublicGenerator) -> Smoothed:
    R = external_code(lambda: _cross_residuals(given, responses, regressor, generator), int(generator.integers(2**63)))
    R = np.where(np.isfinite(R), R, 0.0)
    R -= R.mean(axis=0)
    return Smoothed(R, 1.0)


def _cross_residuals(given: Given, responses: Reals, regressor: Any, generator: PublicGenerator) -> Reals:
    n = given.rows
    # A column for each level that was declared, so that all blocks have the same.
    Z, U = np.hstack([standardised(given.numbers), *given.indicators()]), standardised(responses)
    fold = generator.permutation(n) % FOLDS
    R = np.zeros_like(U)
    for column in range(U.shape[1]):
        for part in range(FOLDS):
            model = with_seed(regressor, generator).fit(Z[fold != part], U[fold != part, column])
            R[fold == part, column] = U[fold == part, column] - np.ravel(model.predict(Z[fold == part]))
    return R
