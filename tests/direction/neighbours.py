"""Simulated tables for directions, their neighbours, and what a call brings to the gate on both."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dpcausal as dpc
from dpcausal import papers
from dpcausal.audit import compare
from dpcausal.direction.methods import METHODS
from dpcausal.direction.scores.anm import split_rows
from dpcausal.mechanisms.blocks import assign_blocks
from dpcausal.methods import MajorityVote
from dpcausal.privacy.noise import public_generator
from tests.conformance import STARTS
from tests.conformance import new_row as any_row
from tests.factories import make_quick
from tests.registry.rows import replaced as replaced

Rows = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]

LOW, HIGH = np.array([-1.0, -1.0]), np.array([1.0, 3.0])
new_row = partial(any_row, low=LOW, high=HIGH)
SCHEMA = dpc.Schema({"x": dpc.Bounded(-1, 1), "y": dpc.Bounded(-1, 3)})

CORRECTED: dict[str, dict[str, Any]] = {
    f"{score}{' scores' if both else ''}": {"score": score, "release_scores": both, "protect": "test"}
    for score in ("hsic", "spearman", "kendall", "iqr")
    for both in (False, True)
    if not (both and score == "iqr")  # of which no scores are released
}
PUBLISHED: dict[str, dict[str, Any]] = {
    f"published {score}": {"score": score, "published": True, "protect": "test"}
    for score in papers.AnmTestPrivacy.scores
}
"""Ways to release from a test half whose proofs hold."""

ANSWERS: dict[str, Any] = {
    "low": "low",
    "high": "high",
    # Not drawn from the values: a mechanism that is told something else on two neighbours may differ.
    "some": lambda event, value: np.full(np.shape(value), 3) if event.mechanism != "noisy-max" else np.asarray(5),
}


HALVES: dict[str, Any] = {"test": papers.Holdout, "training": papers.TrainingPrivacy}
"""The method of each protected half, as a ledger names it."""

OPTIONS = ("blocks", "rows_per_block", "share", "training_share", "penalty", "width", "release_scores")


def spelled(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call whose method's options, ``protect`` and ``published`` are among them as words."""
    words = dict(arguments)
    own = {name: words.pop(name) for name in OPTIONS if name in words}
    protect, score, method = words.pop("protect", "everyone"), words.get("score"), words.get("method", "auto")
    if words.pop("published", False):
        halves = {"test": papers.AnmTestPrivacy, "training": papers.AnmTrainingRanks}
        special = {("test", "iqr"): papers.AnmTestPrivacyIqr, ("training", "hsic"): papers.AnmTrainingPrivacy}
        return words | {"method": special.get((protect, score or "hsic"), halves.get(protect))(**own)}  # type: ignore[misc]
    if not isinstance(method, str) or not (own or protect in HALVES):
        return words
    kind = METHODS.get(method, {**HALVES, "everyone": MajorityVote}.get(protect))
    return words | {"method": kind(**own)}  # type: ignore[misc]


def table(rows: Rows, ledger: dpc.Ledger, schema: dpc.Schema = SCHEMA) -> dpc.Table:
    return dpc.Table({"x": rows[:, 0].copy(), "y": rows[:, 1].copy()}, schema, ledger, missing="impute")


def ask(rows: Rows, *, schema: dpc.Schema = SCHEMA, **arguments: Any) -> dpc.Direction:
    """Ask for a direction at ε = 1 from a ledger of that budget in memory."""
    loss, protect = arguments.pop("loss", dpc.PureDP(1)), arguments.get("protect", "everyone")
    arguments = {"score": None if arguments.get("method") == "verdict" else "hsic"} | spelled(arguments)
    exact = isinstance(loss, dpc.NoPrivacy)
    ledger = dpc.Ledger.without_privacy() if exact else dpc.Ledger.in_memory(loss, protect=protect)
    return dpc.direction(table(rows, ledger, schema), "x", "y", loss=loss, **arguments)


def faults(rows: Rows, neighbour: Rows, answers: Any = "low", **arguments: Any) -> tuple[str, ...]:
    """Return what differs, or moves too far, before the gate: the test body of every mechanism and every mutant."""
    audit = compare(lambda: ask(rows, **arguments), lambda: ask(neighbour, **arguments), answers=answers)
    assert audit.passages > 0, "nothing came to the gate"
    return audit.faults


def first_generator() -> Any:
    """Return public random numbers as they are under a recording gate or ``simulated_noise(0)``."""
    with dpc.simulated_noise(0):
        return public_generator()[0]


def halves(n: int, training_share: float = 0.5) -> tuple[Positions, Positions]:
    return split_rows(n, training_share, first_generator())


def block_positions(n: int, blocks: int) -> list[Positions]:
    return assign_blocks(n, blocks, first_generator())


def some_rows(rng: np.random.Generator, n: int) -> Iterator[Rows]:
    """Yield tables of structured shapes, each half of one: what is learnt on one half may be odd for the other."""
    names = list(STARTS)
    for position, name in enumerate(names):
        rows = STARTS[name](rng, n, LOW, HIGH)
        other = STARTS[names[int(rng.integers(len(names)))]](rng, n, LOW, HIGH)
        train, _ = halves(n)
        if position % 2:
            rows[train] = other[train]
        yield rows


quick = pytest.fixture(make_quick)
