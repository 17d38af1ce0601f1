"""The grey-box comparison: what reaches the gate on two neighbouring data sets, without any noise.

With the same fixed answers a mechanism must bring the same events to the gate on both, in the same order, and
values no further apart than it declares; what it returns must then be the same too.  No samples are needed, and
every fault of calibration or control flow that the pair can show is shown at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpcausal.audit.falsifier import distance
from dpcausal.mechanisms.gate import FixedAnswers, Passage, recording_gate
from dpcausal.privacy.noise import simulated_noise
from dpcausal.privacy.sensitivity import Norm

ROUNDING = 1e-12
"""Relative float slack above a declared bound."""


@dataclass(frozen=True)
class GreyBoxAudit:
    """The outcome of a grey-box comparison, with its number of ``passages`` through the gate. ``faults`` say what
    differs that must not, or moves by more than is declared; ``ratio`` is the largest change over declared bound."""

    faults: tuple[str, ...]
    ratio: float
    passages: int

    @property
    def violated(self) -> bool:
        """Whether the pair shows a fault."""
        return bool(self.faults)

    def summary(self) -> str:
        if self.violated:
            return f"VIOLATED: {'; '.join(self.faults)}."
        return f"Not violated: {self.passages} passages, at most {self.ratio:.6g} of the declared bound."


def compare(
    run: Callable[[], Any], run_neighbour: Callable[[], Any], *, answers: FixedAnswers = "low", seed: int = 0
) -> GreyBoxAudit:
    """Compare what a call brings to the gate on two neighbouring data sets.

    Parameters
    ----------
    run, run_neighbour : callable
        Make the call on D and on D′, each with its own in-memory ledger.  Numbers, texts, arrays, and lists, tuples,
        mappings and dataclasses of them that both return are compared, to the last bit; other objects, and fields
        that a dataclass leaves out of its own equality, are not.
    answers : "low", "high", or a function of (event, exact value)
        What the gate answers instead of noise.  Use several: a fault can hide behind one branch.
    seed : int
        Seed of the public randomness, the same for both.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcausal.mechanisms.additive import laplace
    >>> from dpcausal.privacy.ledger import Ledger
    >>> from dpcausal.privacy.loss import PureDP
    >>> from dpcausal.privacy.sensitivity import Relation
    >>> from dpcausal.privacy.sensitivity import Query, Sensitivity
    >>> def noisy_sum(values, bound):
    ...     allotment = Ledger.in_memory(PureDP(1)).charge(PureDP(1), task="sum")
    ...     claim = Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "doctest")
    ...     return laplace(Query(float(np.sum(values)), claim, "sum"), allotment, PureDP(1))
    >>> compare(lambda: noisy_sum([0, 0], 1.0), lambda: noisy_sum([0, 1], 1.0)).violated
    False
    >>> compare(lambda: noisy_sum([0, 0], 0.5), lambda: noisy_sum([0, 1], 0.5)).violated
    True
    """
    first, outcome, returned = _recorded(run, answers, seed)
    second, outcome_neighbour, returned_by_neighbour = _recorded(run_neighbour, answers, seed)
    faults: list[str] = []
    ratio = 0.0
    if outcome != outcome_neighbour:
        faults.append(f"one ends with {outcome}, the other with {outcome_neighbour}")
    if not first and not second:
        faults.append(f"nothing came to the gate, so nothing was compared ({outcome})")
    if len(first) != len(second):
        faults.append(f"{len(first)} passages on the one data set, {len(second)} on the other")
    for one, other in zip(first, second, strict=False):
        if one.event != other.event or one.value.shape != other.value.shape or one.bound != other.bound:
            faults.append(f"'{one.event.label}' is declared differently on the two data sets")
            continue
        change = float(distance(one.value, other.value, Norm(one.event.norm)))
        ratio = max(ratio, change / one.bound)
        if change > one.bound * (1 + ROUNDING):
            faults.append(f"'{one.event.label}' moves by {change:.6g}, declared {one.bound:.6g}")
    if not faults and returned != returned_by_neighbour:
        faults.append("with the same answers, what is returned differs: it holds more than the answers")
    return GreyBoxAudit(tuple(faults), ratio, len(first))


def _recorded(run: Callable[[], Any], answers: FixedAnswers, seed: int) -> tuple[list[Passage], str, Any]:
    with simulated_noise(seed), recording_gate(answers) as recording:
        try:
            returned = run()
        except Exception as error:  # an error that only one of two neighbours meets is a release
            return recording.passages, f"{type(error).__name__}: {error}", None
    return recording.passages, "no error", _comparable(returned)


def _comparable(value: Any) -> Any:
    """Return what a value says, NaN and the sign of 0 too, as ``==`` compares it; ``None`` for an unknown object."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return "float", value.hex()
    if isinstance(value, (bool, int, str, Fraction, type(None))):
        return type(value).__name__, value
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, [_comparable(getattr(value, part.name)) for part in fields(value) if part.compare]
    if isinstance(value, np.ndarray):
        return "array", value.shape, [_comparable(entry) for entry in value.ravel().tolist()]
    if isinstance(value, (list, tuple)):
        return "list", [_comparable(entry) for entry in value]
    if isinstance(value, Mapping):
        return "mapping", [(_comparable(key), _comparable(entry)) for key, entry in value.items()]
    return None
