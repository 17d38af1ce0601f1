"""Sensitivity: how far one unit can move a statistic; Query: the statistic with its answer hidden."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dpcausal.errors import FenceError, HiddenAnswerError, ParameterError
from dpcausal.privacy.neighbours import Relation, Unit

Answer = float | int | npt.NDArray[np.float64] | npt.NDArray[np.int64]


class Norm(Enum):
    """The norm in which a bound holds; for a single number all four agree."""

    ABSOLUTE = "absolute"
    L1 = "l1"
    L2 = "l2"
    LINF = "l-infinity"


@dataclass(frozen=True)
class Sensitivity:
    """A proved bound on the change of a statistic between neighbours.

    Parameters
    ----------
    bound : int, float or Fraction
        Largest change, > 0 and finite; an int for an integer statistic.
    norm : Norm
        The norm of the change.
    relation : Relation
        The neighbours that the proof speaks of.
    proof : str
        The claim's name, a heading of a proof page: ``dpcausal explain <proof>`` prints it.
    unit : Unit
        Whose record changes.
    """

    bound: float | int | Fraction
    norm: Norm
    relation: Relation
    proof: str
    unit: Unit = Unit.ROW

    def __post_init__(self) -> None:
        if isinstance(self.bound, bool) or not isinstance(self.bound, (int, float, Fraction, np.floating, np.integer)):
            raise ParameterError("a sensitivity's bound must be a number")
        if not (math.isfinite(self.bound) and self.bound > 0):
            raise ParameterError("a sensitivity's bound must be positive and finite")
        if not self.proof:
            raise ParameterError("a sensitivity must name its proof")


class Query:
    """A statistic's exact answer, hidden, with its sensitivity.

    Only ``dpcausal.mechanisms`` opens the answer.  It does not show in ``repr``, ``str``, ``vars`` or ``==``,
    and a query refuses to be pickled or copied.

    Parameters
    ----------
    answer : int, float, or array of int64 or float64
        The exact value.  It must be finite; a statistic is total, so a value that is not is a defect of the
        caller and raises ``FenceError`` without showing it.
    sensitivity : Sensitivity
        The proved bound.
    label : str
        A public name for the step, such as ``"margin"``.
    """

    __slots__ = ("_answer", "integral", "label", "sensitivity", "shape")

    def __init__(self, answer: Answer, sensitivity: Sensitivity, label: str) -> None:
        array = np.asarray(answer)
        if array.dtype.kind in "iu" and array.dtype.itemsize <= 8 and array.dtype != np.uint64:
            hidden: npt.NDArray[Any] = array.astype(np.int64)
        elif array.dtype.kind == "f":
            hidden = array.astype(np.float64)
            if not bool(np.isfinite(hidden).all()):
                raise FenceError(f"the answer of '{label}' is not finite: the statistic must be total")
        else:
            raise FenceError(f"the answer of '{label}' must be int64 or float64")
        hidden.setflags(write=False)
        self._answer = hidden
        self.sensitivity = sensitivity
        self.label = label
        self.shape: tuple[int, ...] = hidden.shape
        self.integral = hidden.dtype.kind == "i"

    def __repr__(self) -> str:
        kind = "integer" if self.integral else "real"
        return f"Query({self.label!r}, {kind}, shape={self.shape}, {self.sensitivity}, answer hidden)"

    def _refuse(self, *_: object) -> NoReturn:
        raise HiddenAnswerError(f"the query '{self.label}' holds a private answer and does not leave the process")

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        self._refuse()

    def __copy__(self) -> NoReturn:
        self._refuse()

    def __deepcopy__(self, _memo: object) -> NoReturn:
        self._refuse()
