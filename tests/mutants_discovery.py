"""Mutants of discovery: its statistics, the sparse vector, and a search that looks at what was not released."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import dpcausal as dpc
from dpcausal.audit import compare
from dpcausal.discovery.methods import parities, whitened
from dpcausal.discovery.methods.contingency_table import ContingencyTable
from dpcausal.discovery.methods.whitened import learned_cuts
from dpcausal.mechanisms.additive import geometric
from dpcausal.papers.direction.rank_scores import claimed_sensitivity, published_score
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ApproxDP, PureDP
from dpcausal.privacy.sensitivity import Norm, Query
from dpcausal.statistics.contrasts import complete_square, contrast_of
from dpcausal.statistics.level_moments import (
    merged_levels,
    third_moments,
    third_moments_sensitivity,
    weight_sums,
    whitened_moments,
    whitened_moments_sensitivity,
)
from dpcausal.statistics.moments import clip_rows, grid_bits, second_moments, second_moments_sensitivity
from dpcausal.statistics.rank import conditional_kendall, conditional_kendall_sensitivity
from dpcausal.statistics.strata import contingency, contingency_sensitivity, histograms, histograms_sensitivity
from tests.mutants import Case, by_black_box, by_falsifier

Rows = Any
CODED: dict[str, Any] = {"columns": 3, "high": [1.0, 2.0, 1.0], "sizes": (5, 9)}
SIZES = (2, 3, 2)
SINGLE = [(0,), (1,), (2,)]
SETS = [*SINGLE, *itertools.combinations(range(3), 2)]


def codes(rows: Rows) -> list[Any]:
    return list(np.rint(rows).astype(np.int64).T)


def counts(rows: Rows) -> Any:
    return contingency(codes(rows), SIZES).ravel()


def pair_contrasts(rows: Rows) -> Any:
    columns = codes(rows)
    return np.concatenate([contrast_of(contingency([columns[i] for i in s], [SIZES[i] for i in s])) for s in SETS])


def as_published(rows: Rows) -> float:
    return published_score(contingency(codes(rows), (2, 2, 2)))


def four_columns(rows: Rows) -> Any:
    return histograms(list(np.minimum((rows.T * 4).astype(np.int64), 3)), 4).ravel()


def unshortened(rows: Rows) -> Any:
    return second_moments(np.trunc(np.ldexp(rows, grid_bits(len(rows), 1.5))))


def shortened(rows: Rows) -> Any:
    return second_moments(clip_rows(rows, 1.5, grid_bits(len(rows), 1.5)))


HALVES = [np.array([0.5, 0.5]), np.array([0.2, 0.5, 0.3]), np.array([0.9, 0.1])]
PLACES = [(0, 1), (0, 1, 2), (0, 1)]


def whitened_alone(rows: Rows, squared: float = 2.0) -> Any:
    return whitened_moments(codes(rows), PLACES, HALVES, squared, len(rows))


def whitened_by_exact_counts(rows: Rows) -> Any:
    """Levels and shares of the rows themselves: their features move with a row, and all sums with these."""
    margins = [np.bincount(column, minlength=k).astype(float) for column, k in zip(codes(rows), SIZES, strict=True)]
    places, shares = zip(*(merged_levels(counts, 0.1) for counts in margins), strict=True)
    shares = [np.append(p, np.full(k - len(p), 1e-9)) for p, k in zip(shares, SIZES, strict=True)]
    return whitened_moments(codes(rows), places, shares, 2.0, len(rows))


EVEN = [np.array([0.5, 0.5])] * 3
BINARY: dict[str, Any] = {"columns": 3, "levels": [0, 1], "sizes": (4, 9), "norm": Norm.L2}


def thirds(rows: Rows, length: float = 0.4, shares: Any = EVEN) -> Any:
    sums = weight_sums(codes(rows), [(0, 1)] * 3, shares, 2.0, [(0, 1, 2)], length, len(rows))
    return third_moments(sums, shares, [(0, 1, 2)], len(rows))


def thirds_by_exact_counts(rows: Rows) -> Any:
    ones = (rows.sum(axis=0) + 0.5) / (len(rows) + 1)
    return thirds(rows, shares=[np.array([1 - p, p]) for p in ones])


def thirds_bound(m: int) -> float:
    return float(third_moments_sensitivity(EVEN, [(0, 1, 2)], 0.4, m).bound)


def corner(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    rows = np.zeros((m, len(low)))
    rows[:, 0] = high[0]
    return rows


def opposed(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """The tight construction: one stratum in order but for a record, one reversed that it goes above."""
    half = (m - 1) // 2
    line = (np.arange(half) + 1) / (half + 2)
    rows = np.zeros((m, 3))
    rows[:half] = np.stack([line, line, np.zeros(half)], axis=1)
    rows[half : 2 * half] = np.stack([line, line[::-1], np.ones(half)], axis=1)
    rows[2 * half :] = 0, 1, 0
    return rows


def only_cells_that_occur(self: Any, run: Any) -> Any:
    exact = contingency(list(run.data.columns(run.question.names).values()), SIZES)
    occurring = np.flatnonzero(exact.ravel())
    return geometric(Query(exact.ravel()[occurring], contingency_sensitivity(), "cells"), run.budget, run.loss)


class Peeking(parities.Releaser):
    """Releases only the pairs whose exact counts look dependent."""

    def _missing(self, tests: Any) -> Any:
        joint = self.joint([(0, 1, 2)])[0].reshape(self.sizes)
        return super()._missing(tests if joint[0, 0, 0] > 1 else tests[:1])


SCHEMA = dpc.Schema({"a": dpc.Levels([0, 1]), "b": dpc.Levels([0, 1, 2]), "c": dpc.Levels([0, 1])})
ONE = np.array([[0, 0, 0]] + [[1, 2, 1]] * 8 + [[0, 0, 0]])
OTHER = np.array([[1, 0, 1]] + [[1, 2, 1]] * 8 + [[0, 0, 0]])


MIXED = dpc.Schema({"a": dpc.Bounded(0, 1), "b": dpc.Levels([0, 1, 2]), "c": dpc.Bounded(0, 1)})


def quartiles_of_the_rows(joint: Any, question: Any, allotment: Any, loss: Any) -> Any:
    """Releases the rounds, and cuts elsewhere: where the exact counts say."""
    halves = joint.recut({"a": np.array([0.5]), "c": np.array([0.5])})([(0,), (2,)])
    learned_cuts(joint, question, allotment, loss)
    return {name: np.array([counts[0] / counts.sum()]) for name, counts in zip("ac", halves, strict=True)}


def by_grey_box(name: str, method: str, loss: Any, *patches: Any, schema: dpc.Schema = SCHEMA) -> Case:
    def ask(rows: Rows) -> Callable[[], Any]:
        def run() -> Any:
            columns = {key: rows[:, place].copy() for place, key in enumerate("abc")}
            found = dpc.discover(
                dpc.Table(columns, schema, Ledger.in_memory(loss, accept_large_epsilon=True)), method=method, loss=loss
            )
            return None if found.release is None else found.release.numbers()

        return run

    def flagged() -> bool:
        found = False
        for answers in ("low", "high"):
            with patched(patches):
                audit = compare(ask(ONE), ask(OTHER), answers=answers)  # type: ignore[arg-type]
            found |= audit.violated
        return found

    return Case(name, "grey box", flagged)


def patched(patches: Any) -> Any:
    stack = contextlib.ExitStack()
    for target, attribute, value in patches:
        stack.enter_context(mock.patch.object(target, attribute, value))
    return stack


def first_of(bar: float, answer_noise: float) -> Callable[[int], Any]:
    """Return the sparse vector over a hundred answers of −4 that move to −3, at threshold 0."""

    def outputs(size: int) -> tuple[Any, Any]:
        coins = np.random.default_rng(6)
        sides = []
        for answers in ((-4.0,) * 100, (-3.0,) * 100):
            noisy = np.asarray(answers) + coins.laplace(0, answer_noise, (size, 100))
            level = coins.laplace(0, bar, (size, 1)) if bar else np.zeros((size, 1))
            above = noisy >= level
            sides.append(np.where(above.any(axis=1), above.argmax(axis=1), 100))
        return sides[0], sides[1]

    return outputs


def raw(size: int) -> tuple[Any, Any]:
    return np.zeros(size), np.ones(size)


def two_of_a_stratum(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """All but two records alike; a third record in the small stratum makes it count."""
    rows = np.zeros((m, 3))
    rows[-2:] = 1
    return rows


STRATA: dict[str, Any] = {"columns": 3, "levels": [0, 1], "sizes": (200,), "starts": {"two": two_of_a_stratum}}

MUTANTS: list[Case] = [
    by_falsifier("a table of counts with sensitivity 1", counts, 1, norm=Norm.L1, **CODED),
    by_falsifier("several histograms by the bound of one", four_columns, 2**0.5, norm=Norm.L2, columns=3),
    by_falsifier("contrasts of pairs by the bound of the single columns", pair_contrasts,
                 complete_square(SIZES, 1) ** 0.5, norm=Norm.L2, **CODED),
    by_falsifier("second moments without shortening", unshortened,
                 lambda m: second_moments_sensitivity(1.5, grid_bits(m, 1.5), 3).bound, norm=Norm.L2, columns=3,
                 low=-3.0, high=3.0),
    by_falsifier("second moments by the bound of an added row", shortened,
                 lambda m: (2 ** grid_bits(m, 1.5) * 1.5) ** 2, norm=Norm.L2, columns=3, low=-3.0, high=3.0,
                 starts={"corner": corner}),
    by_falsifier("whitened rows without shortening", lambda rows: whitened_alone(rows, 200.0) * 2.0 ** (
        2 * (grid_bits(len(rows), 2**0.5) - grid_bits(len(rows), 200**0.5))),
                 lambda m: whitened_moments_sensitivity(5, 2.0, m).bound, norm=Norm.L2, **CODED),
    by_falsifier("levels merged by exact counts", whitened_by_exact_counts,
                 lambda m: whitened_moments_sensitivity(5, 2.0, m).bound, norm=Norm.L2, **CODED),
    by_falsifier("third moments without shortening", lambda rows: thirds(rows, 9.0), thirds_bound, **BINARY),
    by_falsifier("third moments by the bound of an added row", thirds, lambda m: thirds_bound(m) / 2, **BINARY),
    by_falsifier("third moments with a bound 5 % too small", thirds, lambda m: 0.95 * thirds_bound(m), **BINARY),
    by_falsifier("third moments of features by exact counts", thirds_by_exact_counts, thirds_bound, **BINARY),
    by_falsifier("conditional tau as published, small strata skipped", as_published, claimed_sensitivity, **STRATA),
    by_falsifier("T by the bound of one stratum",
                 lambda rows: conditional_kendall(rows[:, 0], rows[:, 1], np.rint(rows[:, 2])),
                 lambda m: 4 / m, columns=3, sizes=(31,), starts={"opposed": opposed}),
    by_black_box("sparse vector without noise on the bar", first_of(0, 1.0)),
    by_black_box("the raw answer, called published", raw),
    by_grey_box("only the cells that occur", "table", PureDP(1), (ContingencyTable, "release", only_cells_that_occur)),
    by_grey_box("tests chosen by exact counts", "parities", ApproxDP(1, 1e-6), (parities, "Releaser", Peeking)),
    by_grey_box("quartiles of the rows themselves", "whitened", ApproxDP(1, 1e-6),
                (whitened, "learned_cuts", quartiles_of_the_rows), schema=MIXED),
]  # fmt: skip

CONTROLS: list[Case] = [
    by_falsifier("the table of counts", counts, 2, norm=Norm.L1, **CODED),
    by_falsifier("several histograms by their bound", four_columns, histograms_sensitivity(3).bound, norm=Norm.L2,
                 columns=3),
    by_falsifier("T by its bound", lambda rows: conditional_kendall(rows[:, 0], rows[:, 1], np.rint(rows[:, 2])),
                 lambda m: conditional_kendall_sensitivity(m).bound, columns=3),
    by_falsifier("whitened rows by their bound", whitened_alone,
                 lambda m: whitened_moments_sensitivity(5, 2.0, m).bound, norm=Norm.L2, **CODED),
    by_grey_box("discovery by whitened pairs", "whitened", ApproxDP(1, 1e-6)),
    by_grey_box("discovery by whitened pairs beside numbers", "whitened", ApproxDP(1, 1e-6), schema=MIXED),
    by_falsifier("third moments by their bound", thirds, thirds_bound, **BINARY),
    by_grey_box("discovery by triples", "triples", ApproxDP(1, 1e-6)),
    by_black_box("the sparse vector's law", first_of(2.0, 4.0)),
    by_grey_box("discovery by parities", "parities", ApproxDP(1, 1e-6)),
    by_grey_box("discovery by a table", "table", PureDP(1)),
]  # fmt: skip
