"""Discovery: the claims about its statistics, its mechanisms, each way of the call, and what would break them."""

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

import dpcausal as dpc
from dpcausal.core.method import PlannedCall
from dpcausal.discovery.methods import METHODS, contingency_table, parities
from dpcausal.discovery.methods import triples as with_triples
from dpcausal.discovery.methods import whitened as whitened_pairs
from dpcausal.discovery.methods.contingency_table import ContingencyTable
from dpcausal.discovery.methods.learned_cuts import learned_cuts
from dpcausal.discovery.methods.moments import noisy_moments
from dpcausal.discovery.methods.parities import Releaser
from dpcausal.discovery.methods.triples import Triples, noisy_triples
from dpcausal.discovery.methods.whitened import noisy_whitened
from dpcausal.discovery.question import DiscoveryQuestion
from dpcausal.mechanisms.additive import geometric
from dpcausal.papers import BY_TASK
from dpcausal.papers.discovery.pc_system import claimed_sensitivity, published_score
from dpcausal.papers.mechanisms.replication import replicate
from dpcausal.papers.mechanisms.sparse_vector import first_above
from dpcausal.papers.statistics.rank import conditional_kendall_steps, conditional_kendall_steps_sensitivity
from dpcausal.privacy.loss import ApproxDP, PureDP, affordable_zcdp
from dpcausal.privacy.sensitivity import Norm, Query
from dpcausal.statistics import level_moments as levels
from dpcausal.statistics.contrasts import complete_square, contrast_of, contrasts_sensitivity
from dpcausal.statistics.moments import clip_rows, grid_bits, scaled, second_moments, second_moments_sensitivity
from dpcausal.statistics.rank import conditional_kendall, conditional_kendall_sensitivity
from dpcausal.statistics.strata import contingency, contingency_sensitivity, histograms, histograms_sensitivity
from tests.discovery.ways import ALL, loss_of
from tests.registry.rows import (
    Case,
    MechanismRow,
    Neighbours,
    Rows,
    Search,
    SensitivityRow,
    TaskRow,
    allotted,
    by_black_box,
    by_falsifier,
    queried,
    replaced,
)

SIZES = (2, 3, 2)
SETS = [chosen for size in (1, 2) for chosen in itertools.combinations(range(3), size)]
RADIUS = 1.5
HALVES = [np.array([0.5, 0.5]), np.array([0.2, 0.5, 0.3]), np.array([0.9, 0.1])]
EVEN = [np.array([0.5, 0.5])] * 3


def opposed(m: int) -> Rows:
    """The tight construction: one stratum in order but for a record, one reversed that it goes above."""
    half = (m - 1) // 2
    line = (np.arange(half) + 1) / (half + 2)
    rows = np.zeros((m, 3))
    rows[:half] = np.stack([line, line, np.zeros(half)], axis=1)
    rows[half : 2 * half] = np.stack([line, line[::-1], np.full(half, 2.0)], axis=1)
    rows[2 * half :] = 0, 1, 0
    return rows


def strata(rows: Rows) -> Any:
    return rows[:, 0], rows[:, 1], np.rint(rows[:, 2])


def codes(rows: Rows) -> list[Any]:
    return list(np.rint(rows).astype(np.int64).T)


def counts_of(rows: Rows) -> Any:
    return contingency(codes(rows), SIZES).ravel()


def quarters_of(rows: Rows) -> Any:
    return histograms(list(np.minimum((rows.T * 4).astype(np.int64), 3)), 4).ravel()


def pair_contrasts(rows: Rows) -> Any:
    columns = codes(rows)
    return np.concatenate([contrast_of(contingency([columns[i] for i in s], [SIZES[i] for i in s])) for s in SETS])


def moments(rows: Rows) -> Any:
    return second_moments(clip_rows(rows, RADIUS, grid_bits(len(rows), RADIUS)))


def whitened(rows: Rows, squared: float = 2.0) -> Any:
    return scaled(levels.whitened_sums(codes(rows), [(0, 1), (0, 1, 2), (0, 1)], HALVES, squared, len(rows)), 5)


def whitened_bound(m: int) -> Any:
    return levels.whitened_moments_sensitivity(5, 2.0, m).bound


def whitened_by_exact_counts(rows: Rows) -> Any:
    """Levels and shares of the rows themselves: their features move with a row, and all sums with these."""
    margins = [np.bincount(column, minlength=k).astype(float) for column, k in zip(codes(rows), SIZES, strict=True)]
    places, shares = zip(*(levels.merged_levels(counts, 0.1) for counts in margins), strict=True)
    shares = [np.append(p, np.full(k - len(p), 1e-9)) for p, k in zip(shares, SIZES, strict=True)]
    return scaled(levels.whitened_sums(codes(rows), places, shares, 2.0, len(rows)), levels.row_entries(shares))


def thirds(rows: Rows, length: float = 0.4, shares: Any = EVEN) -> Any:
    triples = [(0, 1, 2)]
    sums = levels.weight_sums(codes(rows), [(0, 1)] * 3, shares, 2.0, triples, length, len(rows))
    return levels.third_moments(sums, shares, triples, len(rows))


def thirds_bound(m: int) -> float:
    return float(levels.third_moments_sensitivity(EVEN, [(0, 1, 2)], 0.4, m).bound)


def thirds_by_exact_counts(rows: Rows) -> Any:
    ones = (rows.sum(axis=0) + 0.5) / (len(rows) + 1)
    return thirds(rows, shares=[np.array([1 - p, p]) for p in ones])


def corner(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    rows = np.zeros((m, len(low)))
    rows[:, 0] = high[0]
    return rows


def two_of_a_stratum(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """All but two records alike; a third record in the small stratum makes it count."""
    rows = np.zeros((m, 3))
    rows[-2:] = 1
    return rows


OPPOSED: dict[str, Any] = {"opposed": lambda _rng, m, low, high: np.minimum(opposed(m), high)}
IN_STRATA: dict[str, Any] = {"columns": 3, "high": [1.0, 1.0, 2.0], "starts": OPPOSED}
SMALL_STRATA: dict[str, Any] = {
    "columns": 3, "levels": [0, 1], "sizes": (200,), "starts": {"two": two_of_a_stratum},
}  # fmt: skip
CODED: dict[str, Any] = {"columns": 3, "high": [1.0, 2.0, 1.0]}
FEW: dict[str, Any] = {**CODED, "sizes": (5, 9)}
WIDE: dict[str, Any] = {"columns": 3, "low": -3.0, "high": 3.0}
BINARY: dict[str, Any] = {"columns": 3, "levels": [0, 1], "sizes": (4, 9), "norm": Norm.L2}
L2 = {"norm": Norm.L2}
MERGED = "several histograms by the bound of one"

SENSITIVITIES = (
    SensitivityRow("conditional-kendall", lambda rows: conditional_kendall(*strata(rows)),
                   conditional_kendall_sensitivity, (5, 11), 0.99, (
        by_falsifier("conditional tau as published, small strata skipped",
                     lambda rows: published_score(contingency(codes(rows), (2, 2, 2))), claimed_sensitivity,
                     **SMALL_STRATA),
        by_falsifier("T by the bound of one stratum", lambda rows: conditional_kendall(*strata(rows)), lambda m: 4 / m,
                     columns=3, sizes=(31,), starts=OPPOSED),
    ), IN_STRATA),
    SensitivityRow("conditional-kendall-steps", lambda rows: conditional_kendall_steps(*strata(rows)),
                   lambda m: conditional_kendall_steps_sensitivity(), (11,), 0.75, ("T by the bound of one stratum",),
                   IN_STRATA),
    SensitivityRow("contingency-table", counts_of, lambda m: contingency_sensitivity(), (4, 9), 1, (
        by_falsifier("a table of counts with sensitivity 1", counts_of, 1, norm=Norm.L1, **FEW),
    ), CODED),
    SensitivityRow("column-histograms", quarters_of, lambda m: histograms_sensitivity(3), (4, 9), 0.99, (
        by_falsifier(MERGED, quarters_of, 2**0.5, **L2, columns=3),
        by_falsifier("several histograms by 0.95 of their bound in l1", quarters_of,
                     0.95 * histograms_sensitivity(3, Norm.L1).bound, norm=Norm.L1, **FEW),
    ), {"columns": 3}),
    SensitivityRow("contrasts", pair_contrasts, lambda m: contrasts_sensitivity(SIZES, SETS, m), (4, 9), 0.99, (
        by_falsifier("contrasts of pairs by the bound of the single columns", pair_contrasts,
                     complete_square(SIZES, 1) ** 0.5, **L2, **FEW),
    ), CODED),
    SensitivityRow("second-moments", moments, lambda m: second_moments_sensitivity(RADIUS, grid_bits(m, RADIUS), 3),
                   (4, 9), 0.99, (
        by_falsifier("second moments without shortening",
                     lambda rows: second_moments(np.trunc(np.ldexp(rows, grid_bits(len(rows), RADIUS)))),
                     lambda m: second_moments_sensitivity(RADIUS, grid_bits(m, RADIUS), 3).bound, **L2, **WIDE),
        by_falsifier("second moments by the bound of an added row", moments,
                     lambda m: (2 ** grid_bits(m, RADIUS) * RADIUS) ** 2, **L2, **WIDE, starts={"corner": corner}),
    ), {**WIDE, "starts": {"corner": corner}}),
    SensitivityRow("whitened-moments", whitened, lambda m: levels.whitened_moments_sensitivity(5, 2.0, m), (4, 9),
                   0.99, (
        by_falsifier("whitened rows without shortening", lambda rows: whitened(rows, 200.0) * 2.0 ** (
            2 * (grid_bits(len(rows), 2**0.5) - grid_bits(len(rows), 200**0.5))), whitened_bound, **L2, **FEW),
        by_falsifier("levels merged by exact counts", whitened_by_exact_counts, whitened_bound, **L2, **FEW),
    ), CODED),
    SensitivityRow("third-moments", thirds, lambda m: levels.third_moments_sensitivity(EVEN, [(0, 1, 2)], 0.4, m),
                   (4, 9), 0.97, (
        by_falsifier("third moments without shortening", lambda rows: thirds(rows, 9.0), thirds_bound, **BINARY),
        by_falsifier("third moments by the bound of an added row", thirds, lambda m: thirds_bound(m) / 2, **BINARY),
        by_falsifier("third moments with a bound 5 % too small", thirds, lambda m: 0.95 * thirds_bound(m), **BINARY),
        by_falsifier("third moments of features by exact counts", thirds_by_exact_counts, thirds_bound, **BINARY),
    ), {"columns": 3, "levels": [0, 1]}),
)  # fmt: skip
"""The integer steps are tight as n grows; the bound is for every n."""


def sparse_vector(answer: Any, epsilon: float, size: int, share: float) -> list[int | None]:
    loss = PureDP(epsilon / share)
    query, budget = queried(answer, Norm.LINF), allotted(loss, size)
    return [first_above(query, budget, loss, threshold=0) for _ in range(size)]


def _replication(answer: Any, epsilon: float, size: int, share: float) -> Any:
    query, budgets = queried(answer, Norm.LINF), [allotted(PureDP(epsilon), unproven=True) for _ in range(size)]
    return [replicate(query, budget, lambda exact: int(exact[0])) for budget in budgets]


MECHANISMS = (
    # The loss ε is attained as the list grows, at ever rarer outcomes: see its exact row.
    MechanismRow("sparse-vector", "sparse_vector:first_above", "sparse-vector", ((-1, -1, -1, 0), (0, 0, 0, -1)),
                 sparse_vector, ("sparse vector that tells every answer", "sparse vector without noise on the bar"),
                 draws=6_000),
    MechanismRow("replication", "replication:replicate", None, ([0], [1]), _replication,
                 ("the raw answer, called published",)),
)  # fmt: skip

# The calls.

NAMES = ("a", "b", "c")
LOSSES = PureDP(1), ApproxDP(1, 1e-6)
DISCRETE = dpc.Schema({"a": dpc.Levels([0, 1]), "b": dpc.Levels([0, 1, 2]), "c": dpc.Levels([0, 1])})
BOUNDED = dpc.Schema({name: dpc.Bounded(-1, 1) for name in NAMES})
MIXED = dpc.Schema({"a": dpc.Bounded(0, 1), "b": dpc.Levels([0, 1, 2]), "c": dpc.Bounded(0, 1)})
"""Two numbers beside levels, whose cuts are learnt."""
CODES = dpc.Schema(dict.fromkeys("ab", dpc.Levels([0, 1])))
CUT = dpc.Schema({"a": dpc.Bounded(0, 1), "b": dpc.Levels([0, 1])})


def table_of(columns: dict[str, Any], schema: dpc.Schema, loss: Any, missing: str = "impute") -> dpc.Table:
    return dpc.Table(columns, schema, dpc.Ledger.in_memory(loss, accept_large_epsilon=True), missing=missing)


ALL_TRIPLES: Any = with_triples, "needed_triples", lambda *_: [(0, 1, 2)]
"""So few rows show no triple that a test needs; which ones do is read off what was released."""


def on_neighbours(name: str, **options: Any) -> Neighbours:
    """Return the grey box of a method: one row is replaced by a corner of the domain.

    With ``missing="drop"`` a row of no level, −1, is left out, and a row may take its place.
    """
    discrete, missing = name != "moments", options.pop("missing", "impute")
    most = options.pop("most", contingency_table.MOST_OF_ROWS)
    schema = options.pop("schema", DISCRETE if discrete else BOUNDED)
    bottom, top = np.full(3, -1.0 if missing == "drop" else 0.0), np.array([1.0, 2.0, 1.0])
    way = replace(ALL[name], **options)
    loss = loss_of(way, LOSSES)

    def ask(rows: Rows) -> Any:
        values = np.rint(rows).astype(np.int64) if discrete else rows
        columns = {name: values[:, place].copy() for place, name in enumerate(NAMES)}
        with mock.patch.object(contingency_table, "MOST_OF_ROWS", most), mock.patch.object(*ALL_TRIPLES):
            answer = dpc.discover(table_of(columns, schema, loss, missing), method=way, loss=loss)
        return answer.graph.to_dict(), {} if answer.release is None else answer.release.numbers()

    def pair(seed: int) -> tuple[Rows, Rows]:
        rng = np.random.default_rng(seed)
        shapes = [
            lambda: rng.integers(0, top.astype(int) + 1, (30, 3)).astype(float),
            lambda: np.tile(bottom, (30, 1)),
            lambda: np.repeat(rng.integers(0, 2, (30, 1)), 3, axis=1).astype(float),
            lambda: np.tile(top, (30, 1)),
        ]
        rows = shapes[seed % 4]() if discrete else rng.uniform(-1, 1, (30, 3)) * (seed % 4 > 0)
        new = [top, bottom][seed % 2] if discrete else rng.choice([-1.0, 1.0], 3)
        return rows, replaced(rows, int(rng.integers(30)), new)

    low, high = (bottom, top) if discrete else (-np.ones(3), np.ones(3))
    return Neighbours(pair, Search(ask, 30, low, high))


def first_moved(side: int) -> Rows:
    """Return twenty levels, ten of each, but for the first."""
    return np.array([side, *[0] * 9, *[1] * 10])


def of_table(side: int, epsilon: float, size: int, schema: dpc.Schema = CODES) -> list[Any]:
    """Return the lesser of two lead counts, each moved by the replaced row: both are large only if both draws are."""
    a, loss = first_moved(side), PureDP(epsilon)
    table, budget = table_of({"a": a, "b": a}, schema, loss), allotted(loss, size)
    question, way = DiscoveryQuestion.of(table, None, None, None), ContingencyTable(search="pc", max_order=0)
    plan = PlannedCall(question, way, loss)
    found = [plan.released(table, None, budget)().release.counts for _ in range(size)]
    return [int(min(counts[0, 0] - 10, 10 - counts[1, 1])) for counts in found]


def of_contrasts(side: int, epsilon: float, size: int, counted: bool = False) -> list[float]:
    """Return sums of contrasts: the first row goes from one level to the other, or, counted, is left out."""
    loss, outputs = ApproxDP(epsilon, 1e-6), []
    a = first_moved(side - counted)
    table = contingency([a[a >= 0]] * 2, (2, 2))

    def joint(sets: Sequence[tuple[int, ...]]) -> list[Any]:
        return [table.sum(axis=tuple({0, 1} - set(members))).ravel() for members in sets]

    for _ in range(size):
        rho = [affordable_zcdp(loss)]
        releaser = Releaser(("a", "b"), len(a), (2, 2), joint, allotted(loss), rho, counted)
        releaser.begin(0, [("a", "b", ())])
        outputs.append(float(sum(value.sum() for value in releaser.noisy.values.values())))
    return outputs


def of_whitened(side: int, epsilon: float, size: int, triples: bool = False, schema: dpc.Schema = CODES) -> list[float]:
    loss, a, outputs = ApproxDP(epsilon, 1e-6), first_moved(side), []
    terms = Triples(max_order=2).terms(None, dpc.Knowledge())
    for _ in range(size):
        table = table_of({"a": a, "b": a}, schema, loss)
        parts = table, DiscoveryQuestion.of(table, None, None, None), allotted(loss), affordable_zcdp(loss)
        released = noisy_triples(*parts, terms) if triples else noisy_whitened(*parts)
        outputs.append(float(released.matrix.sum()))
    return outputs


def of_moments(side: int, epsilon: float, size: int) -> list[float]:
    loss, outputs = ApproxDP(epsilon, 1e-6), []
    x = 2.0 * first_moved(side) - 1
    schema = dpc.Schema(dict.fromkeys("ab", dpc.Bounded(-1, 1)))
    for _ in range(min(size, 200)):  # each fits a distribution to eight histograms
        table = table_of({"a": x, "b": x}, schema, loss)
        released = noisy_moments(table, ("a", "b"), allotted(loss), affordable_zcdp(loss))
        outputs.append(float(released.covariance[0, 1]))
    return outputs


def of_decision(name: str, **options: Any) -> Callable[[int, float, int], list[Any]]:
    """Return whether two columns are joined: the last record is in step with all others, or against them."""
    way = replace(ALL[name], **options | {"max_order": 0})
    schema = dpc.Schema(dict.fromkeys("ab", dpc.Levels(range(22))))

    def draw(side: int, epsilon: float, size: int) -> list[Any]:
        order = np.arange(1, 21)
        columns = {"a": np.append(order, 21), "b": np.append(order, 21 if side else 0)}
        loss = loss_of(way, (PureDP(epsilon), ApproxDP(epsilon, 1e-6)))
        tables = (table_of(columns, schema, loss) for _ in range(size))
        return [str(dpc.discover(table, loss=loss, method=way).graph) for table in tables]

    return draw


STEPS = "conditional-kendall-steps"
WHITENED = ("column-histograms", "whitened-moments", "gaussian")
KENDALL = {"test": "kendall", "max_order": 0}


def row(name: str, *claims: str, beside: str = "", draw: Any = None, attained: float = 0.0, **options: Any) -> TaskRow:
    """Return the row of a method; where no draw is given its decision is drawn."""
    return TaskRow(f"discover {name}{beside}", "discover", claims, on_neighbours(name, **options),
                   draw or of_decision(name, **options), attained)  # fmt: skip


TASKS = (
    row("table", "contingency-table", "geometric", draw=of_table, attained=0.4),
    row("table", "column-histograms", "contingency-table", "geometric", beside=" beside numbers",
        draw=partial(of_table, schema=CUT), schema=MIXED, most=math.inf),
    row("parities", "contrasts", "gaussian", draw=of_contrasts),
    row("whitened", *WHITENED, draw=of_whitened),
    row("whitened", *WHITENED, beside=" beside numbers", draw=partial(of_whitened, schema=CUT), schema=MIXED),
    row("triples", "column-histograms", "whitened-moments", "third-moments", "gaussian",
        draw=partial(of_whitened, triples=True)),
    row("parities", "contrasts", "gaussian", beside=" counted", draw=partial(of_contrasts, counted=True),
        missing="drop"),
    row("moments", "column-histograms", "second-moments", "gaussian", draw=of_moments),
    row("ci-test", "conditional-kendall", "laplace", "stratum-spread", "geometric", **KENDALL),
    row("papers.PrivPc", STEPS, "sparse-vector", "geometric"),
    row("papers.SvtPc", STEPS, "sparse-vector"),
)  # fmt: skip
WAYS = {f"discover {name}" for name in (*METHODS, *BY_TASK["discovery"], "parities counted", "whitened beside numbers",
                                     "table beside numbers")}

# A search that looks at what was not released, and the sparse vector.


def only_cells_that_occur(self: Any, run: Any) -> Any:
    exact = contingency(list(run.data.columns(run.question.names).values()), SIZES)
    occurring = np.flatnonzero(exact.ravel())
    return geometric(Query(exact.ravel()[occurring], contingency_sensitivity(), "cells"), run.budget, run.loss)


class Peeking(parities.Releaser):
    """Releases only the pairs whose exact counts look dependent."""

    def _missing(self, tests: Any) -> Any:
        joint = self.joint([(0, 1, 2)])[0].reshape(self.sizes)
        return super()._missing(tests if joint[0, 0, 0] > 1 else tests[:1])


def quartiles_of_the_rows(joint: Any, question: Any, allotment: Any, loss: Any) -> Any:
    """Releases the rounds, and cuts elsewhere: where the exact counts say."""
    halves = joint.recut({"a": np.array([0.5]), "c": np.array([0.5])})([(0,), (2,)])
    learned_cuts(joint, question, allotment, loss)
    return {name: np.array([counts[0] / counts.sum()]) for name, counts in zip("ac", halves, strict=True)}


ONE = np.array([[0, 0, 0]] + [[1, 2, 1]] * 8 + [[0, 0, 0]])
OTHER = np.array([[1, 0, 1]] + [[1, 2, 1]] * 8 + [[0, 0, 0]])


def by_grey_box(name: str, method: str, *patches: Any, schema: dpc.Schema = DISCRETE) -> Case:
    loss = loss_of(ALL[method], LOSSES)

    def ask(rows: Rows) -> Any:
        columns = {key: rows[:, place].copy() for place, key in enumerate(NAMES)}
        table = dpc.Table(columns, schema, dpc.Ledger.in_memory(loss, accept_large_epsilon=True))
        answer = dpc.discover(table, method=method, loss=loss)
        return None if answer.release is None else answer.release.numbers()

    def flagged() -> bool:
        with ExitStack() as stack:
            for target, attribute, value in patches:
                stack.enter_context(mock.patch.object(target, attribute, value))
            neighbours = Neighbours(lambda seed: (ONE, OTHER), Search(ask, len(ONE), np.zeros(3), np.ones(3)))
            return any(neighbours(0, answers).violated for answers in ("low", "high"))

    return Case(name, "grey box", flagged)


def first_of(bar: float, answer_noise: float) -> Callable[[int], Any]:
    """Return the sparse vector over a hundred answers of −4 that move to −3, at threshold 0."""

    def outputs(size: int) -> tuple[Any, Any]:
        rng, sides = np.random.default_rng(6), []
        for answers in ((-4.0,) * 100, (-3.0,) * 100):
            noisy = np.asarray(answers) + rng.laplace(0, answer_noise, (size, 100))
            above = noisy >= (rng.laplace(0, bar, (size, 1)) if bar else np.zeros((size, 1)))
            sides.append(np.where(above.any(axis=1), above.argmax(axis=1), 100))
        return sides[0], sides[1]

    return outputs


MUTANTS = (
    by_black_box("sparse vector without noise on the bar", first_of(0, 1.0)),
    by_black_box("the raw answer, called published", lambda size: (np.zeros(size), np.ones(size))),
    by_grey_box("only the cells that occur", "table", (ContingencyTable, "release", only_cells_that_occur)),
    by_grey_box("tests chosen by exact counts", "parities", (parities, "Releaser", Peeking)),
    by_grey_box("third moments and a raw sum", "triples", ALL_TRIPLES,
                (with_triples, "third_moments", lambda *given: levels.third_moments(*given) + given[0].flat[0])),
    by_grey_box("quartiles of the rows themselves", "whitened", (whitened_pairs, "learned_cuts", quartiles_of_the_rows),
                schema=MIXED),
)  # fmt: skip
CONTROLS = (
    by_falsifier("several histograms by their bound in l1", quarters_of, histograms_sensitivity(3, Norm.L1).bound,
                 norm=Norm.L1, **FEW),
    by_falsifier("T by its bound", lambda rows: conditional_kendall(*strata(rows)),
                 lambda m: conditional_kendall_sensitivity(m).bound, columns=3),
    by_black_box("the sparse vector's law", first_of(2.0, 4.0)),
    by_grey_box("discovery by whitened pairs beside numbers", "whitened", schema=MIXED),
    by_grey_box("discovery by triples", "triples", ALL_TRIPLES),
    by_grey_box("discovery by parities", "parities"),
    by_grey_box("discovery by a table", "table"),
)  # fmt: skip
