"""Independence tests: their claims with falsifier rows, and each method with its grey-box and audit rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np

import dpcausal as dpc
from dpcausal.audit import GreyBoxAudit
from dpcausal.independence import api as many
from dpcausal.independence.methods import block_test as blocks
from dpcausal.independence.methods import hsic
from dpcausal.independence.methods.crt_decision import GlobalCrt
from dpcausal.mechanisms.selection import margin_sensitivity
from dpcausal.papers.independence import priv_gcm
from dpcausal.papers.independence.priv_crt import rank_scores
from dpcausal.papers.independence.priv_kendall import published_spearman, published_spearman_sensitivity
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.regression.residual_products import (
    products_sensitivity,
    resample_sum_sensitivity,
)
from dpcausal.statistics.hsic import permuted_root_hsic_sensitivity
from dpcausal.statistics.neighbour_pairs import signed_sensitivity, untied_sensitivity
from dpcausal.statistics.strata import covariance_sensitivity, spread_sensitivity, variance_sensitivity
from tests.independence.neighbours import (
    BLOCKS,
    HIGH,
    KINDS,
    LOW,
    METHODS,
    SCHEMA,
    ask,
    audit,
    frame,
    named,
    new_row,
    plan_of,
    replaced,
    rows_for,
    some_rows,
    way,
)
from tests.mechanisms.test_block_sum import exact, query
from tests.mechanisms.test_noisy_rank import EACH, OWN, margin, scores
from tests.papers.independence.test_priv_kendall import THREE_STRATA, in_strata
from tests.registry.discovery import opposed
from tests.registry.null_laws import MUTANTS
from tests.registry.rows import Neighbours, Search, SensitivityRow, TaskRow, TextRow
from tests.regression.products import DOMAIN, STARTS, products, resample_sum, two_groups
from tests.regression.test_residual_products import SHAPES
from tests.statistics.test_neighbour_pairs import BOX, sums, tied_start, worst, worst_start
from tests.statistics.test_neighbour_pairs import SIZES as PAIRED
from tests.statistics.test_permuted_hsic import halves_in_step, permuted
from tests.statistics.test_strata import STRATA as MOMENTS
from tests.statistics.test_strata import corners, covariance, spread, variance

Rows = Any

ALL = {**DOMAIN, "starts": {**SHAPES, **STARTS}}
GROUPS = {**DOMAIN, "starts": {"two groups": two_groups}}
FIVE = {"columns": 5, "low": -1.0, "high": 1.0}

SENSITIVITIES = (
    SensitivityRow(
        "residual-products", lambda rows: products(rows, 10.0), lambda m: products_sensitivity(m, 10.0), (60,), 0.75,
        ("residual products of a small penalty by the bound of a large one",), ALL,
    ),
    SensitivityRow(
        "resample-product-sum", lambda rows: resample_sum(rows, 0.5), lambda m: resample_sum_sensitivity(m, 0.5),
        (120,), 0.9, ("copies of x whose coins depend on other rows",), GROUPS,
    ),
    SensitivityRow(
        "published-conditional-spearman", lambda rows: published_spearman(*in_strata(rows)),
        lambda m: published_spearman_sensitivity(m, 3), (5, 11), 0.95,
        ("rho as published by the bound of one stratum",), THREE_STRATA,
    ),
    SensitivityRow(
        "permuted-root-hsic", permuted, permuted_root_hsic_sensitivity, (40,), 0.75,
        ("permuted HSIC by the bound of unpermuted columns",), {"starts": {"halves": halves_in_step}},
    ),
    SensitivityRow(
        "noisy-rank", margin, lambda m: margin_sensitivity(OWN, EACH), (3, 8), 0.99,
        ("a margin over copies by one bound for two",), FIVE,
    ),
    SensitivityRow(
        "rank-scores", scores, lambda m: rank_scores(np.zeros(5), 2.0, "scores", EACH).sensitivity, (3, 8), 0.99,
        ("scores of ranks without the two",), FIVE,
    ),
    SensitivityRow(
        "neighbour-pairs", lambda rows: sums(rows, (len(rows) - 3) // 29).signed,
        lambda m: signed_sensitivity((m - 3) // 29), PAIRED, 0.3,
        ("sign products by the bound of partners that stay", "neighbours by the number of rows kept"),
        {**BOX, "starts": {"worst": worst_start}},
    ),
    SensitivityRow(
        "untied-pairs", lambda rows: sums(rows, (len(rows) - 3) // 29).untied,
        lambda m: untied_sensitivity((m - 3) // 29), PAIRED, 0.3,
        ("neighbours by the number of rows kept",), {**BOX, "starts": {"worst": tied_start}},
    ),
    SensitivityRow(
        "stratum-covariance", covariance, lambda m: covariance_sensitivity(3), (9, 41), 0.9,
        ("covariance inside strata by the bound of one stratum",), {**MOMENTS, "starts": {"corners": corners}},
    ),
    SensitivityRow(
        "stratum-variance", variance, lambda m: variance_sensitivity(), (4, 9), 0.6,
        ("variance inside strata without its divisor",), {**MOMENTS, "starts": {"corners": corners}},
    ),
    SensitivityRow(
        "stratum-spread", spread, lambda m: spread_sensitivity(), (9, 41), 0.85,
        ("variance inside strata without its divisor",), {**MOMENTS, "starts": {"corners": corners}},
    ),
    SensitivityRow(
        "block-sum", exact, lambda m: query(np.zeros((m, 1))).sensitivity, (6, 13), 1,
        ("block terms that are not clipped", "blocks scaled by the spread of all rows"),
        {"columns": 1, "low": -1.0, "high": 1.0},
    ),
)  # fmt: skip
"""The slack of those that are not tight stands on the proof pages."""

TEXTS = (
    TextRow("neighbour-variance", "lemma", "the null variance of the sum of sign products: no sensitivity"),
    TextRow("regression-weights", "lemma", "how far the weights move: a step of the proofs, released by no call"),
    TextRow("residual-rounding", "lemma", "an error bound inside the sensitivities of residual products"),
)

ROWS = 24


def asked_on_neighbours(method: str, **arguments: Any) -> Neighbours:
    """Return the grey box for a method: any row is replaced."""

    def of_seed(seed: int, answers: Any) -> GreyBoxAudit:
        rng = np.random.default_rng(seed)
        shapes = list(some_rows(rng, rows_for(method)))
        rows = shapes[(5 * seed + 1) % len(shapes)]
        neighbour = replaced(rows, int(rng.integers(len(rows))), new_row(rng, rows))
        return audit(rows, neighbour, answers, method=method, **arguments)

    given = named(method, ["z"])[2]
    search = Search(lambda rows: ask(rows, method, given=given, **arguments), rows_for(method), LOW, HIGH)
    return Neighbours(of_seed, search)


@contextmanager
def _by_first_value() -> Iterator[None]:
    """Let a block's score be far above or below 0 by x of its first row, and fits of all rows run once."""
    with ExitStack() as stack:
        for kind in (one for one in KINDS.values() if "score" in vars(one)):
            stack.enter_context(
                mock.patch.object(kind, "score", lambda self, rows, question, coins: 9.0 * np.sign(rows.x[0, 0]))
            )
        stack.enter_context(mock.patch.object(priv_gcm, "products", _once(priv_gcm.products)))
        stack.enter_context(mock.patch.object(GlobalCrt, "statistics", _once(GlobalCrt.statistics)))
        stack.enter_context(mock.patch.object(blocks, "block_pvalue", lambda *arguments: 1.0))
        stack.enter_context(mock.patch.object(hsic, "root_hsic", _once(hsic.root_hsic)))
        yield


def _once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that remembers its answers by the bytes of its first arguments and its penalty."""
    known: dict[Any, Any] = {}

    def remembered(*arguments: Any, **named: Any) -> Any:
        key = tuple(part.tobytes() if isinstance(part, np.ndarray) else part for part in arguments[1:])
        place = str(key) if all(isinstance(part, (bytes, float)) for part in key) else "all"
        if place not in known:
            known[place] = function(*arguments, **named)
        return known[place]

    return remembered


def pair(method: str, side: int) -> Rows:
    """Return rows of one side: one block turns, a record changes its stratum, or a row goes from corner to corner."""
    if method == "kendall":
        ordered = opposed(None, ROWS + 1, np.zeros(3), np.ones(3))
        if side:
            ordered[-1] = 1, 1, 2
        return np.column_stack([ordered[:, :2], 2 * ordered[:, 2] - 2, np.zeros(len(ordered))])
    if method == "neighbours":
        rows = worst(2, 61, moved=bool(side))
        return np.column_stack([2 * rows[:, 0] - 1, 4 * rows[:, 1] - 1, rows[:, 2], np.zeros(len(rows))])
    if method == "strata-covariance":
        rows = corners(None, ROWS, None, None)
        rows[0] = (0, 1, 2) if side else (0, 0, 0)
        return np.column_stack([2 * rows[:, 0] - 1, 4 * rows[:, 1] - 1, rows[:, 2], rows[:, 2]])
    of_blocks = method in BLOCKS
    rows = np.tile([0.5, 1.0, 0.0, 0.0], (120 if of_blocks else ROWS, 1))
    if of_blocks:
        rows[:, 0] = np.linspace(-0.9, -0.1, 120)  # all blocks speak against it, or all but one
    rows[0] = [1.0, 3.0, 0.0, 1.0] if side else [-1.0, 3.0, 0.0, 1.0]
    return rows


def on_a_pair(method: str, **arguments: Any) -> Callable[[int, float, int], list[Any]]:
    """Return released statistics on two neighbours."""

    def draw(side: int, epsilon: float, size: int) -> list[Any]:
        rows = pair(method, side)
        plan = plan_of(rows, method, epsilon, **arguments)
        whole = PureDP(PureDP(epsilon).exact_epsilon * size)
        arrays = plan.question.read()
        allotment = Ledger.in_memory(whole, accept_large_epsilon=True).charge(whole, task="audit")
        with _by_first_value(), np.errstate(all="ignore"):
            # The same public coins each time: row 0 opens its block.
            return [plan.released(arrays, generator_from_seed(1), allotment)().statistic for _ in range(size)]

    return draw


def all_on_neighbours(loss: Any) -> Neighbours:
    """Return the grey box for two hypotheses under one loss."""
    from dpcausal.audit import compare

    def ask(rows: Rows) -> Any:
        table = dpc.Table(frame(rows), SCHEMA, Ledger.in_memory(loss, accept_large_epsilon=True), missing="impute")
        return many.ci_tests(table, [("x", "y", ["z"]), ("x", "z", [])], loss=loss, method=way("gcm"))

    def of_seed(seed: int, answers: Any) -> GreyBoxAudit:
        rng = np.random.default_rng(seed)
        shapes = list(some_rows(rng, 130))
        rows = shapes[(5 * seed + 1) % len(shapes)]
        neighbour = replaced(rows, int(rng.integers(len(rows))), new_row(rng, rows))
        return compare(lambda: ask(rows), lambda: ask(neighbour), answers=answers)

    return Neighbours(of_seed, Search(ask, 130, LOW, HIGH))


ATTAINED = dict.fromkeys((*BLOCKS, "kendall", "neighbours"), 0.6)
"""The other pairs are no worst ones."""

def claims_of_a_call(method: str) -> tuple[str, ...]:
    return plan_of(np.zeros((rows_for(method), 4)), method).proofs


TASKS = (
    *(
        TaskRow(f"ci_test {method}", "ci_test", claims_of, asked_on_neighbours(method), on_a_pair(method),
                ATTAINED.get(method, 0.0), MUTANTS[method])
        for method in METHODS
        for claims_of in [claims_of_a_call(method)]
    ),
    TaskRow("ci_test kendall counted", "ci_test", (*claims_of_a_call("kendall"), "contingency-table", "geometric"),
            asked_on_neighbours("kendall", missing="drop"), on_a_pair("kendall", missing="drop"), 0.0,
            (*MUTANTS["kendall"], "a table of counts with sensitivity 1")),
    TaskRow("ci_tests by epsilon", "ci_tests", ("block-sum", "geometric", "allotment"), all_on_neighbours(PureDP(1)),
            on_a_pair("gcm"), 0.6, MUTANTS["gcm"]),
    TaskRow("ci_tests by rho", "ci_tests", ("block-sum", "geometric", "allotment", "cost-accounts"),
            all_on_neighbours(dpc.ZCDP(0.5)), on_a_pair("gcm"), 0.6, MUTANTS["gcm"]),
)  # fmt: skip

WAYS = {f"ci_test {method}" for method in METHODS} | {
    "ci_test kendall counted", "ci_tests by epsilon", "ci_tests by rho"
}
"""Kendall's tau as published has no claims, hence no row."""
