"""The kinds of rows of the registry; a later task adds a row to a table beside this page and writes no new code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from dpcausal.audit import GreyBoxAudit
from dpcausal.privacy.sensitivity import Sensitivity

Draw = Callable[[Any, float, int, float], Sequence[Any] | npt.NDArray[Any]]
"""(exact answer, claimed ε, number of outputs, share) → independent outputs of the mechanism at a loss of ε/share."""


@dataclass(frozen=True)
class MechanismRow:
    """A mechanism: what a query passes through.

    Attributes
    ----------
    name : str
        The name of its events, ``Event.mechanism``.
    function : str
        ``"module:function"`` below ``dpcausal.mechanisms`` or ``dpcausal.papers``.
    claim : str or None
        The proof page's heading; ``None``: as published, without a valid proof.
    pair : two exact answers
        Answers of neighbours at which the loss is attained, sensitivity 1.
    draw : Draw
        Outputs for the audit row.
    delta : callable of ε
        δ at which ε is the exact loss at the pair; 0 for a pure claim.
    mutants : tuple of str
        Names in ``tests/mutants.py`` that break this mechanism.
    draws : int
        Most outputs a side of a black-box audit; fewer where each is a call.
    """

    name: str
    function: str
    claim: str | None
    pair: tuple[Any, Any]
    draw: Draw
    mutants: tuple[str, ...]
    delta: Callable[[float], float] = lambda epsilon: 0.0
    draws: int = 110_000


@dataclass(frozen=True)
class SensitivityRow:
    """A claim about a statistic: the falsifier's row.

    Attributes
    ----------
    claim : str
        The heading that the ``Sensitivity`` names as its proof.
    statistic : callable
        Rows (m, columns) to an answer.
    sensitivity : callable of m
        The claimed sensitivity.
    sizes : tuple of int
        Numbers of records.
    reached : float
        Share of the bound that a search of these sizes is known to reach.
    mutants : tuple of str
        Names in ``tests/mutants.py``.
    domain : dict
        ``columns``, ``low``, ``high``, ``levels``, ``starts`` of ``falsify``.
    """

    claim: str
    statistic: Callable[[Any], Any]
    sensitivity: Callable[[int], Sensitivity]
    sizes: tuple[int, ...]
    reached: float
    mutants: tuple[str, ...]
    domain: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TextRow:
    """A claim that no single statistic or mechanism stands for: it needs a test that is marked with its name."""

    claim: str
    kind: str  # "composition" or "lemma"
    why: str


@dataclass(frozen=True)
class Search:
    """Where the falsifier looks for neighbours through a public call.

    Attributes
    ----------
    ask : callable of rows
        The call, with an in-memory ledger of its own.
    rows : int
        Number of records.
    low, high : float arrays
        The range of each column.
    places : int array, optional
        The records that are protected; by default all.
    """

    ask: Callable[[Any], object]
    rows: int
    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    places: npt.NDArray[Any] | None = None


@dataclass(frozen=True)
class Neighbours:
    """The grey box of a call: on made-up neighbours of a seed, and where to search for worse ones."""

    audit: Callable[[int, Any], GreyBoxAudit]
    search: Search

    def __call__(self, seed: int, answers: Any) -> GreyBoxAudit:
        return self.audit(seed, answers)


@dataclass(frozen=True)
class TaskRow:
    """A public call, or one way of it: what it brings to the gate on neighbours, and its outputs on a worst pair.

    Attributes
    ----------
    name : str
        ``"direction holdout hsic"``.
    function : str
        The public function, ``"direction"``.
    claims : tuple of str
        What its guarantee names.
    compare : Neighbours
        The grey box, called with (seed, answers).
    draw : callable of (side 0 or 1, ε, number of outputs)
        Outputs on a pair of neighbours for the audit row.
    attained : float
        The least share of ε that the audit shows at 3,000 draws and ε = 1; 0 where the pair is not a worst one.
    mutants : tuple of str
        Names in ``tests/mutants.py``.
    delta : float
        The δ that the outputs' loss has beside ε.
    """

    name: str
    function: str
    claims: tuple[str, ...]
    compare: Neighbours
    draw: Callable[[int, float, int], Sequence[Any] | npt.NDArray[Any]]
    attained: float
    mutants: tuple[str, ...]
    delta: float = 0.0
