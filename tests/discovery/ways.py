"""Every way to find a graph, as the lists of methods and papers have them, and a loss that each can spend."""

from collections.abc import Iterable
from typing import Any

import dpcausal as dpc
from dpcausal.discovery.methods import METHODS, READERS
from dpcausal.errors import LossError
from dpcausal.papers import BY_TASK, EmPc, PrivPc, ReconciledTests, SubsampledGaussian, SvtPc

NUMBERS: dict[str, Any] = {kind.name: kind() for kind in READERS.values()}
"""What releases numbers; the others release decisions only."""

PROVED: dict[str, Any] = {name: kind(constants="corrected") for name, kind in BY_TASK["discovery"].items()}
SYSTEMS = PrivPc, SvtPc, EmPc, SubsampledGaussian, ReconciledTests
PUBLISHED: dict[str, Any] = {kind.__name__: kind() for kind in SYSTEMS}
WAYS: dict[str, Any] = NUMBERS | PROVED
ALL: dict[str, Any] = {name: kind() for name, kind in METHODS.items()} | PROVED

LOSSES = (dpc.PureDP(1), dpc.ZCDP(0.5), dpc.ApproxDP(2, 1e-6))


def binary(names: Iterable[str]) -> dpc.Schema:
    """Return a schema of two levels each."""
    return dpc.Schema(dict.fromkeys(names, dpc.Levels([0, 1])))


def loss_of(way: Any, losses: tuple[Any, ...] = LOSSES) -> Any:
    """Return the first of some losses that a method can spend."""
    for loss in losses:
        try:
            way.charge(loss, None)
        except LossError:
            continue
        return loss
    raise LookupError(way.name)
