"""The law of x given z in words, as a file or a command line can say it: a table, or a linear mean with a spread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpcausal.asking.public import is_number
from dpcausal.errors import ParameterError, nearest
from dpcausal.independence.model_x import ModelX

WORDS = ("table", "mean", "sd")
INTERCEPT = "intercept"


@dataclass(frozen=True)
class Linear:
    """b₀ + Σ_j b_j z_j, numbers in their own unit and levels as codes; term by term, so that a row is by itself."""

    intercept: float
    slopes: tuple[tuple[int, float], ...]

    def __call__(self, Z: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        found = np.full(len(Z), self.intercept)
        for place, slope in self.slopes:
            found = found + slope * Z[:, place]
        return found


@dataclass(frozen=True, eq=False)
class StatedLaw(ModelX):
    """A law with the words that it was stated in."""

    words: Any = None


def stated(law: Any, given: tuple[str, ...]) -> Any:
    """Return the model that a mapping of words states; anything else as it is.

    ``{"table": [[...], ...]}``; or ``{"mean": m, "sd": s}`` with m a number, or a slope for each given column, by its
    name, and an ``intercept``; for x of two levels m is the probability of the second, and there is no sd.

    Examples
    --------
    >>> law = stated({"mean": {"intercept": 1, "age": 0.5}, "sd": 2}, ("sex", "age"))
    >>> law.kind, law.mean(np.array([[1.0, 30.0]])).tolist()
    ('normal', [16.0])
    """
    if not isinstance(law, Mapping):
        return law
    unknown = next((name for name in law if name not in WORDS), None)
    if unknown is not None or not law:
        raise ParameterError(f"model_x takes {', '.join(WORDS)}{nearest(unknown, WORDS)}")
    told = {**law, "mean": _linear(law["mean"], given)} if "mean" in law else dict(law)
    return StatedLaw(**told, words=dict(law))


def _linear(mean: Any, given: tuple[str, ...]) -> Linear:
    slopes = mean if isinstance(mean, Mapping) else {INTERCEPT: mean}
    if INTERCEPT in given:
        raise ParameterError(f"a given column is named {INTERCEPT!r}: state the law by a function, in Python")
    for name, slope in slopes.items():
        if name not in (*given, INTERCEPT):
            raise ParameterError(f"model_x: {name!r} is not given{nearest(name, (*given, INTERCEPT))}")
        if not is_number(slope) or not np.isfinite(slope):
            raise ParameterError(f"model_x: {name} must be a finite number")
    by_place = sorted((given.index(name), float(slope)) for name, slope in slopes.items() if name != INTERCEPT)
    return Linear(float(slopes.get(INTERCEPT, 0.0)), tuple(by_place))
