"""The column of survey weights and its public range."""

from __future__ import annotations

from dpcausal.data.coding import check_declared, check_name
from dpcausal.data.columns import Bounded
from dpcausal.data.source import Source
from dpcausal.errors import ParameterError, SchemaError


def checked_weight(weight: object, source: Source) -> tuple[str, Bounded]:
    """Return the column of survey weights with its range, from public facts."""
    if not isinstance(weight, (tuple, list)) or len(weight) != 2 or not isinstance(weight[0], str):
        raise ParameterError('weight must be the name of a column and the largest weight, as ("w", 8.0)')
    name, largest = weight
    if name not in source.names:
        raise SchemaError("weight must name a column of the frame")
    check_name(name)
    if isinstance(largest, bool) or not isinstance(largest, (int, float)) or not 1e-9 <= largest <= 1e9:
        raise ParameterError("the largest weight must be a number between 1e-9 and 1e9")
    column = Bounded(0, largest)
    check_declared(name, column, source.declared(name))
    return name, column
