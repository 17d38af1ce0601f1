"""Rows of discovery: its statistics, its mechanisms, and each way of the call."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.audit import GreyBoxAudit, compare
from dpcausal.core.method import PlannedCall
from dpcausal.data.counts import margins_of
from dpcausal.discovery.methods import METHODS
from dpcausal.discovery.methods.contingency_table import ContingencyTable
from dpcausal.discovery.methods.moments import noisy_moments
from dpcausal.discovery.methods.parities import Releaser
from dpcausal.discovery.methods.triples import Triples, noisy_triples
from dpcausal.discovery.methods.whitened import noisy_whitened
from dpcausal.discovery.question import DiscoveryQuestion
from dpcausal.papers import ASKED
from dpcausal.papers.mechanisms.replication import replicate
from dpcausal.papers.mechanisms.sparse_vector import first_above
from dpcausal.papers.statistics.rank import conditional_kendall_steps, conditional_kendall_steps_sensitivity
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ApproxDP, PureDP, affordable_zcdp
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity
from dpcausal.statistics.contrasts import contrast_of, contrasts_sensitivity
from dpcausal.statistics.level_moments import (
    third_moments,
    third_moments_sensitivity,
    weight_sums,
    whitened_moments,
    whitened_moments_sensitivity,
)
from dpcausal.statistics.moments import clip_rows, grid_bits, second_moments, second_moments_sensitivity
from dpcausal.statistics.rank import conditional_kendall, conditional_kendall_sensitivity
from dpcausal.statistics.strata import contingency, contingency_sensitivity, histograms, histograms_sensitivity
from tests.discovery.ways import ALL, loss_of
from tests.registry.rows import MechanismRow, Neighbours, Search, SensitivityRow, TaskRow

Rows = Any
SIZES = (2, 3, 2)
SETS = [chosen for size in (1, 2) for chosen in itertools.combinations(range(3), size)]
RADIUS = 1.5
HALVES = [np.array([0.5, 0.5]), np.array([0.2, 0.5, 0.3]), np.array([0.9, 0.1])]


def opposed(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
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


def pair_contrasts(rows: Rows) -> Any:
    columns = codes(rows)
    return np.concatenate(
        [contrast_of(contingency([columns[i] for i in s], [SIZES[i] for i in s])) for s in SETS]
    )


def moments(rows: Rows) -> Any:
    return second_moments(clip_rows(rows, RADIUS, grid_bits(len(rows), RADIUS)))


def whitened(rows: Rows) -> Any:
    return whitened_moments(codes(rows), [(0, 1), (0, 1, 2), (0, 1)], HALVES, 2.0, len(rows))


EVEN = [np.array([0.5, 0.5])] * 3


def thirds(rows: Rows, length: float = 0.4) -> Any:
    triples = [(0, 1, 2)]
    sums = weight_sums(codes(rows), [(0, 1)] * 3, EVEN, 2.0, triples, length, len(rows))
    return third_moments(sums, EVEN, triples, len(rows))


def corner(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    rows = np.zeros((m, len(low)))
    rows[:, 0] = high[0]
    return rows


IN_STRATA = {"columns": 3, "high": [1.0, 1.0, 2.0], "starts": {"opposed": opposed}}
CODED = {"columns": 3, "high": [1.0, 2.0, 1.0]}

SENSITIVITIES = (
    SensitivityRow("conditional-kendall", lambda rows: conditional_kendall(*strata(rows)),
                   conditional_kendall_sensitivity, (5, 11), 0.99,
                   ("conditional tau as published, small strata skipped", "T by the bound of one stratum"), IN_STRATA),
    SensitivityRow("conditional-kendall-steps", lambda rows: conditional_kendall_steps(*strata(rows)),
                   lambda m: conditional_kendall_steps_sensitivity(), (11,), 0.75,
                   ("T by the bound of one stratum",), IN_STRATA),
    SensitivityRow("contingency-table", lambda rows: contingency(codes(rows), SIZES).ravel(),
                   lambda m: contingency_sensitivity(), (4, 9), 1,
                   ("a table of counts with sensitivity 1",), CODED),
    SensitivityRow("column-histograms",
                   lambda rows: histograms(list(np.minimum((rows.T * 4).astype(np.int64), 3)), 4).ravel(),
                   lambda m: histograms_sensitivity(3), (4, 9), 0.99,
                   ("several histograms by the bound of one",), {"columns": 3}),
    SensitivityRow("contrasts", pair_contrasts, lambda m: contrasts_sensitivity(SIZES, SETS, m), (4, 9), 0.99,
                   ("contrasts of pairs by the bound of the single columns",), CODED),
    SensitivityRow("second-moments", moments,
                   lambda m: second_moments_sensitivity(RADIUS, grid_bits(m, RADIUS), 3), (4, 9), 0.99,
                   ("second moments without shortening", "second moments by the bound of an added row"),
                   {"columns": 3, "low": -3.0, "high": 3.0, "starts": {"corner": corner}}),
    SensitivityRow("whitened-moments", whitened, lambda m: whitened_moments_sensitivity(5, 2.0, m), (4, 9), 0.99,
                   ("whitened rows without shortening", "levels merged by exact counts"), CODED),
    SensitivityRow("third-moments", thirds, lambda m: third_moments_sensitivity(EVEN, [(0, 1, 2)], 0.4, m), (4, 9),
                   0.97, ("third moments without shortening", "third moments by the bound of an added row",
                          "third moments with a bound 5 % too small", "third moments of features by exact counts"),
                   {"columns": 3, "levels": [0, 1]}),
)  # fmt: skip
"""The integer steps are tight as n grows; the bound is for every n."""


def sparse_vector(answer: Any, epsilon: float, size: int, share: float) -> list[int | None]:
    loss = PureDP(epsilon / share)
    whole = PureDP(loss.exact_epsilon * size)
    allotment = Ledger.in_memory(PureDP(whole.exact_epsilon + 1), accept_large_epsilon=True).charge(whole, task="audit")
    claim = Sensitivity(1, Norm.LINF, Relation.REPLACE_ONE, "conditional-kendall-steps")
    query = Query(np.asarray(answer, dtype=np.int64), claim, "audited")
    return [first_above(query, allotment, loss, threshold=0) for _ in range(size)]


def _replication(answer: Any, epsilon: float, size: int, share: float) -> Any:
    loss = PureDP(epsilon)
    claim = Sensitivity(1, Norm.LINF, Relation.REPLACE_ONE, "published-unproven")
    outputs = []
    for _ in range(size):
        allotment = Ledger.in_memory(loss, accept_large_epsilon=True).charge(loss, task="audit", unproven=True)
        outputs.append(replicate(Query(np.asarray(answer), claim, "audited"), allotment, lambda exact: int(exact[0])))
    return outputs


MECHANISMS = (
    # The loss ε is attained as the list grows, at ever rarer outcomes: see its exact row.
    MechanismRow("sparse-vector", "sparse_vector:first_above", "sparse-vector", ((-1, -1, -1, 0), (0, 0, 0, -1)),
                 sparse_vector, ("sparse vector that tells every answer", "sparse vector without noise on the bar"),
                 draws=6_000),
    MechanismRow("replication", "replication:replicate", None, ([0], [1]), _replication,
                 ("the raw answer, called published",)),
)  # fmt: skip

NAMES = ("a", "b", "c")
LOSSES = PureDP(1), ApproxDP(1, 1e-6)
DISCRETE = dpc.Schema({"a": dpc.Levels([0, 1]), "b": dpc.Levels([0, 1, 2]), "c": dpc.Levels([0, 1])})
BOUNDED = dpc.Schema({name: dpc.Bounded(-1, 1) for name in NAMES})
MIXED = dpc.Schema({"a": dpc.Bounded(0, 1), "b": dpc.Levels([0, 1, 2]), "c": dpc.Bounded(0, 1)})
"""Two numbers beside levels, whose cuts are learnt."""


def columns(rows: Rows, discrete: bool) -> dict[str, Any]:
    values = np.rint(rows).astype(np.int64) if discrete else rows
    return {name: values[:, place].copy() for place, name in enumerate(NAMES)}


def way_of(name: str, **options: Any) -> Any:
    """Return a method by its name, with a proof."""
    return replace(ALL[name], **options)


def asked_on_neighbours(name: str, **options: Any) -> Neighbours:
    """Return the grey box of a method: one row of a made-up table is replaced by a corner of the domain.

    With ``missing="drop"`` a row of no level, −1, is left out, and a row may take its place.
    """
    discrete, missing = name != "moments", options.pop("missing", "impute")
    schema = options.pop("schema", DISCRETE if discrete else BOUNDED)
    bottom = np.full(3, -1.0 if missing == "drop" else 0.0)
    way = way_of(name, **options)
    loss = loss_of(way, LOSSES)

    def ask(rows: Rows) -> Any:
        table = dpc.Table(
            columns(rows, discrete), schema, Ledger.in_memory(loss, accept_large_epsilon=True), missing=missing
        )
        found = dpc.discover(table, method=way, loss=loss)
        released = {} if found.release is None else found.release.numbers()
        return found.graph.to_dict(), released

    def audit(seed: int, answers: Any) -> GreyBoxAudit:
        rng = np.random.default_rng(seed)
        high = np.array([1.0, 2.0, 1.0])
        shapes = [
            lambda: rng.integers(0, high.astype(int) + 1, (30, 3)).astype(float),
            lambda: np.tile(bottom, (30, 1)),
            lambda: np.repeat(rng.integers(0, 2, (30, 1)), 3, axis=1).astype(float),
            lambda: np.tile(high, (30, 1)),
        ]
        rows = shapes[seed % 4]() if discrete else rng.uniform(-1, 1, (30, 3)) * (seed % 4 > 0)
        neighbour = rows.copy()
        neighbour[int(rng.integers(30))] = [high, bottom][seed % 2] if discrete else rng.choice([-1.0, 1.0], 3)
        return compare(lambda: ask(rows), lambda: ask(neighbour), answers=answers)

    low, high = (bottom, np.array([1.0, 2.0, 1.0])) if discrete else (-np.ones(3), np.ones(3))
    return Neighbours(audit, Search(ask, 30, low, high))


def of_table(side: int, epsilon: float, size: int) -> list[Any]:
    """Return the lesser of two lead counts, each moved by the replaced row: both are large only if both draws are."""
    a = np.zeros(20, dtype=np.int64)
    a[10:] = 1
    a[0] = side
    loss = PureDP(epsilon)
    whole = PureDP(loss.exact_epsilon * size)
    schema = dpc.Schema({"a": dpc.Levels([0, 1]), "b": dpc.Levels([0, 1])})
    table = dpc.Table({"a": a, "b": a}, schema, Ledger.in_memory(whole, accept_large_epsilon=True), missing="impute")
    allotment = table.ledger.charge(whole, task="audit")
    question, way = DiscoveryQuestion.of(table, None, None, None), ContingencyTable(search="pc", max_order=0)
    outputs = []
    for _ in range(size):
        counts = PlannedCall(question, way, loss).released(table, None, allotment)().release.counts
        outputs.append(int(min(counts[0, 0] - 10, 10 - counts[1, 1])))
    return outputs


def of_contrasts(side: int, epsilon: float, size: int, counted: bool = False) -> list[float]:
    """Return sums of contrasts: the first row goes from one level to the other, or, counted, is left out."""
    loss = ApproxDP(epsilon, 1e-6)
    outputs = []
    for _ in range(size):
        allotment = Ledger.in_memory(loss, accept_large_epsilon=True).charge(loss, task="audit")
        a = np.array([side - counted, *[0] * 9, *[1] * 10])
        joint = contingency([a[a >= 0]] * 2, (2, 2))
        losses = [affordable_zcdp(loss)]
        releaser = Releaser(("a", "b"), len(a), (2, 2), partial(margins_of, joint), allotment, losses, counted)
        releaser.begin(0, [("a", "b", ())])
        outputs.append(float(sum(value.sum() for value in releaser.noisy.values.values())))
    return outputs


CODES = dpc.Schema(dict.fromkeys("ab", dpc.Levels([0, 1])))
CUT = dpc.Schema({"a": dpc.Bounded(0, 1), "b": dpc.Levels([0, 1])})


def of_whitened(
    side: int, epsilon: float, size: int, triples: bool = False, schema: dpc.Schema = CODES
) -> list[float]:
    loss = ApproxDP(epsilon, 1e-6)
    a = np.array([side, *[0] * 9, *[1] * 10])
    outputs = []
    for _ in range(size):
        table = dpc.Table({"a": a, "b": a}, schema, Ledger.in_memory(loss, accept_large_epsilon=True), missing="impute")
        allotment = table.ledger.charge(loss, task="audit")
        question, rho = DiscoveryQuestion.of(table, None, None, None), affordable_zcdp(loss)
        terms = Triples(max_order=2).terms(None, dpc.Knowledge())
        released = noisy_triples(table, question, allotment, rho, terms) if triples else noisy_whitened(
            table, question, allotment, rho)  # fmt: skip
        outputs.append(float(released.matrix.sum()))
    return outputs


def of_moments(side: int, epsilon: float, size: int) -> list[float]:
    loss = ApproxDP(epsilon, 1e-6)
    outputs = []
    x = np.array([1.0 if side else -1.0, *[-1.0] * 9, *[1.0] * 10])
    for _ in range(min(size, 200)):  # each fits a law to eight histograms
        ledger = Ledger.in_memory(loss, accept_large_epsilon=True)
        table = dpc.Table(
            {"a": x, "b": x}, dpc.Schema({"a": dpc.Bounded(-1, 1), "b": dpc.Bounded(-1, 1)}), ledger, missing="impute"
        )
        released = noisy_moments(table, ("a", "b"), ledger.charge(loss, task="audit"), affordable_zcdp(loss))
        outputs.append(float(released.covariance[0, 1]))
    return outputs


def of_decision(name: str, **options: Any) -> Callable[[int, float, int], list[Any]]:
    """Return whether two columns are joined: the last record is in step with all others, or against them."""
    way = way_of(name, **options | {"max_order": 0})

    def draw(side: int, epsilon: float, size: int) -> list[Any]:
        order = np.arange(1, 21)
        a, b = np.append(order, 21), np.append(order, 21 if side else 0)
        loss = loss_of(way, (PureDP(epsilon), ApproxDP(epsilon, 1e-6)))
        schema = dpc.Schema(dict.fromkeys("ab", dpc.Levels(range(22))))
        outputs = []
        for _ in range(size):
            table = dpc.Table(
                {"a": a, "b": b}, schema, Ledger.in_memory(loss, accept_large_epsilon=True), missing="impute"
            )
            outputs.append(str(dpc.discover(table, loss=loss, method=way).graph))
        return outputs

    return draw


STEPS = "conditional-kendall-steps"
RANKS = ("T by the bound of one stratum", "conditional tau as published, small strata skipped")
KENDALL = {"test": "kendall", "max_order": 0}


def row(name: str, claims: tuple[str, ...], *mutants: str, draw: Any = None, attained: float = 0.0,
        delta: float = 0.0, **options: Any) -> TaskRow:  # fmt: skip
    """Return the row of a method; where no draw is given its decision is drawn."""
    return TaskRow(f"discover {name}", "discover", claims, asked_on_neighbours(name, **options),
                   draw or of_decision(name, **options), attained, mutants, delta)  # fmt: skip


TASKS = (
    row("table", ("contingency-table", "geometric"), "a table of counts with sensitivity 1",
        "only the cells that occur", draw=of_table, attained=0.4),
    row("parities", ("contrasts", "gaussian"), "contrasts of pairs by the bound of the single columns",
        "tests chosen by exact counts", draw=of_contrasts),
    row("whitened", ("column-histograms", "whitened-moments", "gaussian"), "whitened rows without shortening",
        "levels merged by exact counts", "several histograms by the bound of one", draw=of_whitened),
    replace(row("whitened", ("column-histograms", "whitened-moments", "gaussian"), "quartiles of the rows themselves",
                "several histograms by the bound of one", draw=partial(of_whitened, schema=CUT), schema=MIXED),
            name="discover whitened beside numbers"),
    row("triples", ("column-histograms", "whitened-moments", "third-moments", "gaussian"),
        "third moments without shortening", "third moments by the bound of an added row",
        "third moments with a bound 5 % too small", "whitened rows without shortening",
        "third moments of features by exact counts", draw=partial(of_whitened, triples=True)),
    replace(row("parities", ("contrasts", "gaussian"), "contrasts of pairs by the bound of the single columns",
                draw=partial(of_contrasts, counted=True), missing="drop"), name="discover parities counted"),
    row("moments", ("column-histograms", "second-moments", "gaussian"), "second moments without shortening",
        "several histograms by the bound of one", draw=of_moments),
    row("ci-test", ("conditional-kendall", "laplace", "stratum-spread", "geometric"), "0.8 of the Laplace noise",
        "T by the bound of one stratum", **KENDALL),
    row("papers.PrivPc", (STEPS, "sparse-vector", "geometric"), "sparse vector without noise on the bar", *RANKS),
    row("papers.SvtPc", (STEPS, "sparse-vector"), "sparse vector that tells every answer", *RANKS),
)  # fmt: skip

WAYS = {f"discover {name}" for name in (*METHODS, *ASKED["discovery"], "parities counted", "whitened beside numbers")}
