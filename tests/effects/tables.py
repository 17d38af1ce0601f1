"""Tables of simulated columns, and effects of them under simulated noise."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.data.schema import Column
from dpcausal.effects.question import EffectMethod, EffectQuestion
from dpcausal.errors import DpCausalError

EXACT = dpc.NoPrivacy()


def table_of(columns: Mapping[str, Any], schema: Mapping[str, Column], loss: Any, **options: Any) -> dpc.Table:
    """Return a table of those columns of a schema that there are; its ledger has the loss."""
    owner = {name: options.get(name) for name in ("person", "ids") if options.get(name)}
    private = not isinstance(loss, dpc.NoPrivacy)
    ledger = dpc.Ledger.in_memory(loss, accept_large_epsilon=True, **owner) if private else dpc.Ledger.without_privacy()
    declared = dpc.Schema({name: column for name, column in schema.items() if name in columns})
    return dpc.Table(columns, declared, ledger, **options)


def effect_of(table: dpc.Table, loss: Any, method: Any, seed: int = 1, **question: Any) -> Any:
    """Return the effect of column a on column y, or of what the question names, with the noise of a seed."""
    asked = {"treatment": "a", "outcome": "y", "adjust": ["x"], "loss": loss, "method": method} | question
    with dpc.simulated_noise(seed):
        return dpc.effect(table, accept_large_epsilon=True, **asked)


def paths_of(y: Any, **constant: Any) -> dict[str, Any]:
    """Return the rows of persons, one a period: outcomes, shape (persons, periods), and what stays the same."""
    n, periods = y.shape
    rows = {"id": np.repeat(np.arange(n), periods), "t": np.tile(np.arange(1, periods + 1), n), "y": y.ravel()}
    return rows | {name: np.repeat(values, periods) for name, values in constant.items()}


def covered(results: Iterable[Any], truth: float) -> list[bool]:
    """Return of each result that has an interval whether that holds the truth."""
    return [low <= truth <= high for low, high in (one.interval for one in results if one.interval is not None)]


def adjusted_by(method: EffectMethod, table: dpc.Table, loss: Any, lists: Iterable[list[str]]) -> list[str]:
    """Return the first of some lists of confounders that a method answers for, by its own plan; else none."""
    for adjust in lists:
        question = EffectQuestion.of(table, "a", "y", adjust, None, "ate", None, None, 0.95)
        with suppress(DpCausalError):
            method.plan(question, method.charge(loss, question)[0])
            return adjust
    return []
