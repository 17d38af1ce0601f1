"""The gate: the one function through which a private answer leaves.

``release`` checks that the proof covers the neighbours the budget is counted in, records the spend, and only
then hands the answer to the noise.  For tests and audits a recording gate can replace it: it draws no
noise, returns fixed answers, and shows what would have been released.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from dpcausal.errors import FenceError, ParameterError
from dpcausal.privacy import noise
from dpcausal.privacy.budget import Event
from dpcausal.privacy.ledger import CallBudget
from dpcausal.privacy.loss import Loss, NoPrivacy
from dpcausal.privacy.sensitivity import Query

T = TypeVar("T")
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Passage:
    """One answer that came to a recording gate: what was declared, and the exact value."""

    event: Event
    bound: float
    value: Array


FixedAnswers = Literal["low", "high"] | Callable[[Event, Array], Array]


@dataclass
class Recording:
    """What a recording gate saw, in order; ``passages`` hold exact private values: for tests and audits only."""

    answers: FixedAnswers
    passages: list[Passage] = field(default_factory=list, repr=False)

    def _answer(self, event: Event, value: Array) -> Array:
        if callable(self.answers):
            return self.answers(event, value)
        if event.mechanism == "noisy-max":
            return np.asarray(0 if self.answers == "low" else value.size - 1)
        fixed = -(10**6) if self.answers == "low" else 10**6
        return np.full_like(value, fixed)


_recording: ContextVar[Recording | None] = ContextVar("recording_gate", default=None)


@contextmanager
def recording_gate(answers: FixedAnswers = "low") -> Iterator[Recording]:
    """Put a recording gate in place of the noise: it shows exact answers and is NOT private.

    Run a mechanism on two neighbouring data sets with the same fixed answers: the passages must have equal events,
    and values that differ by no more than the declared bound.  Noise counts as simulated inside (with seed 0, unless
    a ``simulated_noise`` is already around it): splits are the same at each run, results are stamped as not
    private, only in-memory ledgers serve it, and an allotment that was granted outside is refused.
    """
    if not (callable(answers) or answers in ("low", "high")):
        raise ParameterError("answers must be 'low', 'high' or a function of (event, value)")
    recording = Recording(answers)
    with nullcontext() if noise.is_simulated() else noise.simulated_noise(0):
        token = _recording.set(recording)
        try:
            yield recording
        finally:
            _recording.reset(token)


def event_of(mechanism: str, query: Query, loss: Loss, scale: float, *, bound: float | None = None) -> Event:
    return Event(
        mechanism=mechanism,
        label=query.label,
        loss=loss,
        sensitivity=query.sensitivity.rounded_up if bound is None else bound,
        norm=query.sensitivity.norm.value,
        scale=scale,
        proof=query.sensitivity.proof,
    )


def release(query: Query, allotment: CallBudget, event: Event, draw: Callable[[Array], T]) -> T:
    """Check, spend, then draw: the only reader of a query's answer. A FenceError if the proof's neighbours or unit are
    not those the allotment protects; if the allotment is used up, or was granted as private while noise is simulated
    here; or if the noise could not be drawn.  It is raised where no frame below holds the answer."""
    sensitivity = query.sensitivity
    if sensitivity.relation is not allotment.relation:
        raise FenceError(
            f"'{query.label}' is proved for {sensitivity.relation.value}, the budget counts {allotment.relation.value}"
        )
    if not sensitivity.covers(allotment.unit):
        raise FenceError(
            f"'{query.label}' is proved for one {sensitivity.unit.value}, the budget protects a {allotment.unit.value}"
        )
    recording = _recording.get()
    if (recording is not None or noise.is_simulated()) and (allotment.private or allotment.durable):
        raise FenceError(f"'{query.label}': nothing is private here, and the allotment was granted as private")
    allotment.spend(event)
    if recording is not None:
        recording.passages.append(Passage(event, sensitivity.rounded_up, query._answer))
        fixed: T = draw_fixed(recording._answer(event, query._answer))
        return fixed
    try:
        return draw(query._answer)
    except FenceError as error:
        reason = str(error)
    except Exception as error:
        reason = f"its noise could not be drawn ({type(error).__name__})"
    raise FenceError(f"'{query.label}': {reason}")


def draw_fixed(answer: Array) -> Any:
    array = np.asarray(answer)
    if array.ndim == 0:
        return int(array) if array.dtype.kind == "i" else float(array)
    return array.copy()


def exact(query: Query, allotment: CallBudget) -> Any:
    if not allotment.exact:
        raise FenceError("an exact answer leaves only a ledger without privacy")
    event = event_of("exact", query, NoPrivacy(), 0.0)
    return release(query, allotment, event, draw_fixed)


def book_exact(label: str, allotment: CallBudget) -> None:
    """Book an exact answer that is made by no query, for want of a sensitivity: without privacy only."""
    if not allotment.exact:
        raise FenceError("an exact answer leaves only a ledger without privacy")
    allotment.spend(Event("exact", label, NoPrivacy(), math.inf, "l1", 0.0, ""))
