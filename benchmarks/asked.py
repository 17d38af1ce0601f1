"""What turns a function of coins and a number of rows into a shape as the tables of shapes take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpcausal.data.schema import Levels, Schema
from dpcausal.simulate import SimulatedRows

Reals = Any


def asked(drawn: Callable[[Any, int], tuple[Reals, Reals, Reals]], x: Any, y: Any, *z: Any) -> Any:
    """Return a shape as the tables of shapes take it; its link is its own."""

    def draw(n: int, coins: Any, link: float) -> SimulatedRows:
        first, second, given = drawn(coins, n)
        names = [f"z{place}" for place in range(len(z))]
        declared = dict(zip(("x", "y", *names), (x, y, *z), strict=True))
        columns = dict(zip(declared, (first, second, *given.reshape(n, -1).T), strict=True))
        for name, column in declared.items():
            if isinstance(column, Levels):
                columns[name] = columns[name].astype(np.int64)
        return SimulatedRows(columns, Schema(declared), names, 0)

    return draw
