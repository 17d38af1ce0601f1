"""The interquartile range and its reach straight from the definitions, for small data."""

import math
from collections.abc import Iterator, Sequence


def iqr_by_definition(values: Sequence[float]) -> float:
    ordered, m = sorted(values), len(values)
    return ordered[math.ceil(3 * m / 4) - 1] - ordered[math.ceil(m / 4) - 1]


def reachable(x: Sequence[float], values: Sequence[float]) -> Iterator[set[tuple[float, ...]]]:
    """Yield, for j = 0, 1, …, every sorted data set within j replacements by the given values."""
    within = {tuple(sorted(x))}
    while True:
        yield within
        within = within | {
            tuple(sorted((*data[:i], new, *data[i + 1 :]))) for data in within for i in range(len(x)) for new in values
        }
