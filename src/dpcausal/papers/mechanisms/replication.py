"""A published system as it stands, run on the exact answer: for comparison, with no guarantee."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from dpcausal.errors import FenceError
from dpcausal.mechanisms.gate import Array, event_of, release
from dpcausal.privacy.ledger import CallBudget
from dpcausal.privacy.sensitivity import Query

T = TypeVar("T")


def replicate(query: Query, allotment: CallBudget, run: Callable[[Array], T]) -> T:
    """Hand the exact answer to a published system that makes its own noise, from public randomness.

    The allotment was granted as unproven, in memory, or without privacy; its whole loss is booked.  *Guarantee*: none.
    """
    if allotment.private or allotment.durable:
        raise FenceError("a published system without a proof runs on unproven allotments in memory only")
    event = event_of("replication", query, allotment.loss, 0.0)
    released: T | Array = release(query, allotment, event, run)
    # A recording gate answers in the query's shape: the system then runs on that answer.
    return run(released) if isinstance(released, np.ndarray) else released
