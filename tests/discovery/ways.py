"""Every way to find a graph, as the lists of methods and papers have them, and a loss that each can spend."""

from collections.abc import Iterable
from typing import Any

import dpcausal as dpc
from dpcausal.data.schema import Column
from dpcausal.discovery.methods import METHODS, READERS
from dpcausal.errors import LossError
from dpcausal.papers import BY_TASK, EmPc, PrivPc, ReconciledTests, SubsampledGaussian, SvtPc
from tests.factories import table

NUMBERS: dict[str, Any] = {kind.name: kind() for kind in READERS.values()}
"""What releases numbers; the others release decisions only."""

PROVED: dict[str, Any] = {name: kind(constants="corrected") for name, kind in BY_TASK["discovery"].items()}
SYSTEMS = PrivPc, SvtPc, EmPc, SubsampledGaussian, ReconciledTests
PUBLISHED: dict[str, Any] = {kind.__name__: kind() for kind in SYSTEMS}
WAYS: dict[str, Any] = NUMBERS | PROVED
ALL: dict[str, Any] = {name: kind() for name, kind in METHODS.items()} | PROVED

LOSSES = (dpc.PureDP(1), dpc.ZCDP(0.5), dpc.ApproxDP(2, 1e-6))


TWO, THREE = dpc.Levels([0, 1]), dpc.Levels([0, 1, 2])


def binary(names: Iterable[str]) -> dpc.Schema:
    """Return a schema of two levels each."""
    return dpc.Schema(dict.fromkeys(names, TWO))


def graph_of(
    frame: dict[str, Any], declared: Column | dpc.Schema, loss: Any, seed: int = 1, missing: str = "drop", **more: Any
) -> Any:
    """Return the graph of columns, declared alike or by a schema, under simulated noise; the ledger has the loss."""
    schema = declared if isinstance(declared, dpc.Schema) else dict.fromkeys(frame, declared)
    with dpc.simulated_noise(seed):
        return dpc.discover(table(frame, schema, loss, missing=missing), loss=loss, **more)


def loss_of(way: Any, losses: tuple[Any, ...] = LOSSES) -> Any:
    """Return the first of some losses that a method can spend."""
    for loss in losses:
        try:
            way.charge(loss, None)
        except LossError:
            continue
        return loss
    raise LookupError(way.name)
