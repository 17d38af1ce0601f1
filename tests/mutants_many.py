"""Mutants of many answers at one cost: how the loss is divided, and that all answers protect the same half."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

import dpcausal as dpc
from dpcausal.audit import compare
from dpcausal.core import run as asking
from dpcausal.direction.scores.anm import split_rows
from dpcausal.errors import DpCausalError
from dpcausal.papers import Holdout
from dpcausal.privacy.budget import Event
from dpcausal.privacy.checks import divided
from dpcausal.privacy.loss import ApproxDP, Loss, PureDP
from dpcausal.privacy.noise import generator_from_seed, public_generator
from tests.direction.neighbours import HIGH, replaced, table
from tests.mutants import Case, by_black_box
from tests.mutants_noise import on_both, two_draws_of

ANSWERS, ROWS = 100, 80
PURE, SMALL = PureDP(1), ApproxDP(1, 1e-6)


def paid(loss: Loss, parts: Any, zcdp: Any = None) -> bool:
    """Return whether an allotment of the loss refuses its parts."""
    allotment = dpc.Ledger.in_memory(loss, accept_large_epsilon=True).charge(loss, task="parts", zcdp=zcdp)
    try:
        for part in parts:
            allotment.spend(Event("geometric", "votes", part, 1.0, "l1", 1.0, "block-votes"))
    except DpCausalError:
        return True
    return False


def by_root(loss: Any) -> list[PureDP]:
    return [PureDP(loss.exact_epsilon / 10)] * ANSWERS  # 10 = √100


def of_division(loss: Any, shares: list[Fraction]) -> bool:
    division = divided(loss, shares)
    return paid(division.spent, division.parts, division.zcdp)


@contextmanager
def dealt_anew() -> Iterator[None]:
    """Give each answer a seed of its own, so that each splits the rows in its own way."""
    turns = itertools.count(1)
    with mock.patch.object(asking, "generator_from_seed", lambda seed: generator_from_seed(seed + next(turns))):
        yield


@contextmanager
def as_it_is() -> Iterator[None]:
    """Give all answers the seed + 1, so that they split the rows as the first of ``dealt_anew`` does."""
    with mock.patch.object(asking, "generator_from_seed", lambda seed: generator_from_seed(seed + 1)):
        yield


def of_halves(around: Callable[[], Any]) -> bool:
    """Return whether the grey box flags two answers about a test half when one row of the first's is replaced.

    The row is one that the second answer would learn from, were the halves dealt anew: in its training rows nothing
    varies, so that the new row, alone at x = 1, lifts the prediction there and all residuals of that place with it.
    """
    with dpc.simulated_noise(0):
        _, seed = public_generator()
    (_, first_test), (second_train, second_test) = (
        split_rows(ROWS, 0.5, generator_from_seed(seed + turn)) for turn in (1, 2)
    )
    rows = np.zeros((ROWS, 2))
    rows[second_test[::2], 0] = 1.0
    other = replaced(rows, int(np.intersect1d(first_test, second_train)[0]), HIGH)

    def ask(rows: Any) -> Any:
        with around():
            asked = table(rows, dpc.Ledger.in_memory(PURE, protect="test", accept_large_epsilon=True))
            return dpc.direction_all(asked, scores=("kendall", "spearman"), loss=PURE, method=Holdout())

    return compare(lambda: ask(rows), lambda: ask(other)).violated


MUTANTS: list[Case] = [
    by_black_box("many answers, each at the whole ε", on_both(two_draws_of(1.0))),
    Case("parts by the root of their number under a pure loss", "ledger", lambda: paid(PURE, by_root(PURE))),
    Case("parts by the root of their number without a ρ", "ledger", lambda: paid(SMALL, by_root(SMALL))),
    Case("the halves dealt anew for each answer", "grey box", lambda: of_halves(dealt_anew)),
]

CONTROLS: list[Case] = [
    by_black_box("many answers, each at its part of ε", on_both(two_draws_of(2.0))),
    Case("parts of a pure loss", "ledger", lambda: of_division(PURE, [Fraction(1)] * ANSWERS)),
    Case("parts of a small δ, by ρ", "ledger", lambda: of_division(SMALL, [Fraction(k) for k in range(1, ANSWERS)])),
    Case("one half for all answers", "grey box", lambda: of_halves(as_it_is)),
]
