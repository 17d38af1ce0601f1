"""Independence tests: their claims with mutants, and each method with its neighbours and a worst pair."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np

import dpcausal as dpc
from dpcausal.independence.methods import block_test as blocks
from dpcausal.independence.methods import hsic
from dpcausal.independence.methods.crt_decision import GlobalCrt
from dpcausal.mechanisms.blocks import assign_blocks, block_sum
from dpcausal.mechanisms.selection import margin_sensitivity
from dpcausal.papers.independence import priv_gcm
from dpcausal.papers.independence.priv_crt import rank_scores
from dpcausal.papers.independence.priv_kendall import published_spearman, published_spearman_sensitivity
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.privacy.sensitivity import Norm
from dpcausal.regression.residual_products import products_sensitivity, resample_sum_sensitivity
from dpcausal.statistics.hsic import permuted_root_hsic_sensitivity, root_hsic_sensitivity
from dpcausal.statistics.neighbour_pairs import signed_sensitivity, untied_sensitivity
from dpcausal.statistics.strata import covariance_sensitivity, spread_sensitivity, variance_sensitivity
from tests.independence import neighbours as tables
from tests.independence.neighbours import BLOCKS, HIGH, KINDS, LOW, METHODS, SCHEMA, plan_of, rows_for, way
from tests.mechanisms.test_blocks import sum_of
from tests.mechanisms.test_noisy_rank import EACH, OWN, margin, scores
from tests.papers.independence.test_priv_kendall import THREE_STRATA, in_strata
from tests.registry.discovery import OPPOSED, opposed
from tests.registry.rows import (
    Neighbours,
    Rows,
    Search,
    SensitivityRow,
    TaskRow,
    TextRow,
    allotted,
    by_falsifier,
    replaced,
)
from tests.regression.products import COLUMNS, DOMAIN, FOUR_CORNERS, STARTS, products, resample_sum, two_groups
from tests.regression.test_residual_products import SHAPES
from tests.statistics.test_hsic import halves_in_step, permuted
from tests.statistics.test_neighbour_pairs import BOX as PAIRS
from tests.statistics.test_neighbour_pairs import SIZES as PAIRED
from tests.statistics.test_neighbour_pairs import sums, tied_start, worst, worst_start
from tests.statistics.test_strata import STRATA, UNITS, corners, covariance, spread, variance, whole

REACH = 4
UNIFORM = generator_from_seed(9).uniform(-1, 1, 200)


def blocks_of(rows: Rows) -> list[Rows]:
    return [rows[part, 0] for part in assign_blocks(len(rows), 3, generator_from_seed(5))]


def clipped_terms(rows: Rows) -> int:
    return int(block_sum([round(9 * part.sum()) for part in blocks_of(rows)], REACH, "terms")._answer)


def unclipped_terms(rows: Rows) -> int:
    return sum(round(9 * float(part.sum())) for part in blocks_of(rows))


def scaled_by_all(rows: Rows) -> int:
    deviation = float(rows.std()) or 1.0
    return sum(round(float(np.clip(part.sum() / deviation, -REACH, REACH))) for part in blocks_of(rows))


def without_failed(rows: Rows) -> float:
    """The sum of the blocks that have a slope at all, scaled up to three blocks."""
    terms = [np.clip(9 * part.sum(), -REACH, REACH) for part in blocks_of(rows) if np.ptp(part) > 0.5]
    return 3 * float(np.sum(terms)) / len(terms) if terms else 0.0


def one_stream(rows: Rows) -> int:
    """Each block draws as many numbers as it has values above 0, and the next goes on from there."""
    stream, total = generator_from_seed(2), 0
    for part in blocks_of(rows):
        stream.random(int(np.sum(part > 0)))
        total += int(stream.integers(-REACH, REACH + 1))
    return total


def chosen_penalty(rows: Rows) -> Rows:
    return products(rows, 10.0 if rows[:, 3].mean() >= 1 else 20.0)


def own_scale(rows: Rows) -> Rows:
    scaled = rows.copy()
    scaled[:, 3:] /= np.maximum(np.abs(rows[:, 3:]).max(axis=0), 1e-3)
    return products(scaled, 0.5)


def coins_by_rank(rows: Rows) -> float:
    """Copies of x whose random numbers follow the order of x: a replaced row gives the others new ones."""
    return float(UNIFORM[np.argsort(np.argsort(rows[:, 3]))] @ rows[:, 4])


def unhalved_scores(rows: Rows) -> Rows:
    totals = rows.sum(axis=0)
    return -np.abs(np.sort(totals)[::-1] - totals[0]) / 2.0


def undivided(rows: Rows) -> float:
    """Σ_s Σ(x − x̄)² Σ(y − ȳ)²."""
    values, strata = whole(rows)
    parts = [values[strata == code] / UNITS for code in np.unique(strata)]
    return sum(float(np.prod(len(part) * part.var(axis=0))) for part in parts)


def in_line(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """All in one order, 300 kept: one less, and each has fewer neighbours."""
    rows = np.tile(np.linspace(0, 1, m)[:, None], (1, 5))
    rows[:, 3], rows[:, 4] = 0, np.arange(m) < 300
    return rows


def ones(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    return np.ones((m, COLUMNS))


def small(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    rows = np.tile(FOUR_CORNERS, (m // 4 + 1, 1))[:m]
    rows[:, 3:] *= 0.3
    return rows


def products_bound(penalty: float) -> Callable[[int], float]:
    return lambda m: float(products_sensitivity(m, penalty).bound)


def rank_claim(m: int) -> Any:
    return rank_scores(np.zeros(5), 2.0, "scores", EACH).sensitivity


BOX: dict[str, Any] = {"columns": COLUMNS, "low": -1.0, "high": 1.0, "starts": STARTS, "sizes": (80,)}
LINE: dict[str, Any] = {"columns": 1, "low": -1.0, "high": 1.0, "sizes": (12, 18)}
HALVES: dict[str, Any] = {"sizes": (40,), "starts": {"halves": halves_in_step}}
CORNERS: dict[str, Any] = {**STRATA, "starts": {"corners": corners}}
FIVE: dict[str, Any] = {"columns": 5, "low": -1.0, "high": 1.0}

SENSITIVITIES = (
    SensitivityRow("residual-products", lambda rows: products(rows, 10.0), lambda m: products_sensitivity(m, 10.0),
                   (60,), 0.75, (
        by_falsifier("residual products of a small penalty by the bound of a large one",
                     lambda rows: products(rows, 0.002), products_bound(10.0), **BOX, norm=Norm.L1),
        by_falsifier("a penalty chosen on the rows", chosen_penalty, products_bound(10.0),
                     **{**BOX, "starts": {"ones": ones}}, norm=Norm.L1),
        by_falsifier("columns scaled by their own largest value", own_scale, products_bound(0.5),
                     **{**BOX, "starts": {"small": small}}, norm=Norm.L1),
    ), {**DOMAIN, "starts": {**SHAPES, **STARTS}}),
    SensitivityRow("resample-product-sum", lambda rows: resample_sum(rows, 0.5),
                   lambda m: resample_sum_sensitivity(m, 0.5), (120,), 0.9, (
        by_falsifier("copies of x whose coins depend on other rows", coins_by_rank, 2, **BOX),
    ), {**DOMAIN, "starts": {"two groups": two_groups}}),
    SensitivityRow("published-conditional-spearman", lambda rows: published_spearman(*in_strata(rows)),
                   lambda m: published_spearman_sensitivity(m, 3), (5, 11), 0.95, (
        by_falsifier("rho as published by the bound of one stratum", lambda rows: published_spearman(*in_strata(rows)),
                     lambda m: 6 / (m - 3) ** 0.5, columns=3, sizes=(31,), starts=OPPOSED),
    ), THREE_STRATA),
    SensitivityRow("permuted-root-hsic", permuted, permuted_root_hsic_sensitivity, (40,), 0.75, (
        by_falsifier("permuted HSIC by the bound of unpermuted columns", permuted,
                     lambda m: float(root_hsic_sensitivity(m).bound), **HALVES, evaluations=1_500),
    ), {"starts": {"halves": halves_in_step}}),
    SensitivityRow("noisy-rank", margin, lambda m: margin_sensitivity(OWN, EACH), (3, 8), 0.99, (
        by_falsifier("a margin over copies by one bound for two", margin, 2, **FIVE),
    ), FIVE),
    SensitivityRow("rank-scores", scores, rank_claim, (3, 8), 0.99, (
        by_falsifier("scores of ranks without the two", unhalved_scores, 1, **FIVE),
    ), FIVE),
    SensitivityRow("neighbour-pairs", lambda rows: sums(rows, (len(rows) - 3) // 29).signed,
                   lambda m: signed_sensitivity((m - 3) // 29), PAIRED, 0.3, (
        by_falsifier("sign products by the bound of partners that stay", lambda rows: sums(rows).signed, 2 * 2 * 2 - 1,
                     sizes=(61,), **{**PAIRS, "starts": {"worst": worst_start}}),
        by_falsifier("neighbours by the number of rows kept",  # as many neighbours as the kept rows allow
                     lambda rows: sums(rows, int(np.sum(rows[:, 4] > 0.25)) // 60).signed, 6 * 5, sizes=(310,),
                     **{**PAIRS, "starts": {"line": in_line}}),
    ), {**PAIRS, "starts": {"worst": worst_start}}),
    SensitivityRow("untied-pairs", lambda rows: sums(rows, (len(rows) - 3) // 29).untied,
                   lambda m: untied_sensitivity((m - 3) // 29), PAIRED, 0.3, ("neighbours by the number of rows kept",),
                   {**PAIRS, "starts": {"worst": tied_start}}),
    SensitivityRow("stratum-covariance", covariance, lambda m: covariance_sensitivity(3), (9, 41), 0.9, (
        by_falsifier("covariance inside strata by the bound of one stratum", covariance,
                     lambda m: covariance_sensitivity(1).bound, **CORNERS),
    ), CORNERS),
    SensitivityRow("stratum-variance", variance, lambda m: variance_sensitivity(), (4, 9), 0.6, (
        by_falsifier("variance inside strata without its divisor", undivided, 3 / 8, **STRATA),
    ), CORNERS),
    SensitivityRow("stratum-spread", spread, lambda m: spread_sensitivity(), (9, 41), 0.85,
                   ("variance inside strata without its divisor",), CORNERS),
    SensitivityRow("block-sum", lambda rows: int(sum_of(rows)._answer), lambda m: sum_of(np.zeros((m, 1))).sensitivity,
                   (6, 13), 1, (
        by_falsifier("block terms that are not clipped", unclipped_terms, 2 * REACH, **LINE),
        by_falsifier("blocks scaled by the spread of all rows", scaled_by_all, 2, **LINE),
        by_falsifier("a failed block is left out", without_failed, 2 * REACH, **LINE),
        by_falsifier("one stream of coins for all blocks", one_stream, 2 * REACH, **LINE),
    ), {"columns": 1, "low": -1.0, "high": 1.0}),
)  # fmt: skip
"""The slack of those that are not tight stands on the proof pages."""

TEXTS = (
    TextRow("neighbour-variance", "lemma", "the null variance of the sum of sign products: no sensitivity"),
    TextRow("regression-weights", "lemma", "how far the weights move: a step of the proofs, released by no call"),
    TextRow("residual-rounding", "lemma", "an error bound inside the sensitivities of residual products"),
)
MUTANTS = ()
CONTROLS = (
    by_falsifier("all residual products", lambda rows: products(rows, 0.5), products_bound(0.5), **BOX, norm=Norm.L1),
    by_falsifier("a sum with public residuals", lambda rows: resample_sum(rows, 0.5),
                 lambda m: float(resample_sum_sensitivity(m, 0.5).bound), **BOX),
    by_falsifier("sign products of neighbours", lambda rows: sums(rows).signed, 6 * 2, sizes=(61,),
                 **{**PAIRS, "starts": {"worst": worst_start}}),
    by_falsifier("the spread inside strata", spread, lambda m: spread_sensitivity().bound, **STRATA),
    by_falsifier("clipped block terms", clipped_terms, 2 * REACH, **LINE),
)  # fmt: skip

# The calls.

ROWS = 24


def on_neighbours(ask: Callable[[Rows], Any], size: int) -> Neighbours:
    """Return the grey box of a call: any row is replaced."""

    def pair(seed: int) -> tuple[Rows, Rows]:
        rng = np.random.default_rng(seed)
        shapes = list(tables.some_rows(rng, size))
        rows = shapes[(5 * seed + 1) % len(shapes)]
        place = int(rng.integers(len(rows)))
        return rows, replaced(rows, place, tables.new_row(rng, rows))

    return Neighbours(pair, Search(ask, size, LOW, HIGH))


def of_method(method: str, **options: Any) -> Neighbours:
    given = tables.named(method, ["z"])[2]
    return on_neighbours(lambda rows: tables.ask(rows, method, given=given, **options), rows_for(method))


def of_hypotheses(loss: Any) -> Neighbours:
    """Return the grey box for two hypotheses under one loss."""

    def ask(rows: Rows) -> Any:
        ledger = dpc.Ledger.in_memory(loss, accept_large_epsilon=True)
        table = dpc.Table(tables.frame(rows), SCHEMA, ledger, missing="impute")
        return dpc.ci_tests(table, [("x", "y", ["z"]), ("x", "z", [])], loss=loss, method=way("gcm"))

    return on_neighbours(ask, 130)


@contextmanager
def _by_first_value() -> Iterator[None]:
    """Let a block's score be far above or below 0 by x of its first row, and fits of all rows run once."""

    def score(self: Any, rows: Any, question: Any, rng: Any) -> float:
        return 9.0 * float(np.sign(rows.x[0, 0]))

    patches: list[tuple[Any, str, Any]] = [(kind, "score", score) for kind in KINDS.values() if "score" in vars(kind)]
    patches += [(owner, name, _once(getattr(owner, name))) for owner, name in (
        (priv_gcm, "products"), (GlobalCrt, "statistics"), (hsic, "root_hsic"))]  # fmt: skip
    with ExitStack() as stack:
        for patch in (*patches, (blocks, "block_pvalue", lambda *arguments: 1.0)):
            stack.enter_context(mock.patch.object(*patch))
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
        ordered = opposed(ROWS + 1)
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


def on_a_pair(method: str, **options: Any) -> Callable[[int, float, int], list[Any]]:
    """Return released statistics on two neighbours."""

    def draw(side: int, epsilon: float, size: int) -> list[Any]:
        plan = plan_of(pair(method, side), method, epsilon, **options)
        arrays, budget = plan.question.read(), allotted(dpc.PureDP(epsilon), size)
        with _by_first_value(), np.errstate(all="ignore"):
            # The same random seed each time: row 0 opens its block.
            return [plan.released(arrays, generator_from_seed(1), budget)().statistic for _ in range(size)]

    return draw


ATTAINED = dict.fromkeys((*BLOCKS, "kendall", "neighbours"), 0.6)
"""The other pairs are no worst ones."""
CLAIMS = {method: plan_of(np.zeros((rows_for(method), 4)), method).proofs for method in METHODS}
SEVERAL = ("block-sum", "geometric", "allotment")

TASKS = (
    *(TaskRow(f"ci_test {method}", "ci_test", claims, of_method(method), on_a_pair(method), ATTAINED.get(method, 0.0))
      for method, claims in CLAIMS.items()),
    TaskRow("ci_test kendall counted", "ci_test", (*CLAIMS["kendall"], "contingency-table", "geometric"),
            of_method("kendall", missing="drop"), on_a_pair("kendall", missing="drop")),
    TaskRow("ci_tests by epsilon", "ci_tests", SEVERAL, of_hypotheses(dpc.PureDP(1)), on_a_pair("gcm"), 0.6),
    TaskRow("ci_tests by rho", "ci_tests", (*SEVERAL, "cost-accounts"), of_hypotheses(dpc.ZCDP(0.5)), on_a_pair("gcm"),
            0.6),
)  # fmt: skip
WAYS = {f"ci_test {method}" for method in METHODS}
WAYS |= {"ci_test kendall counted", "ci_tests by epsilon", "ci_tests by rho"}
"""Kendall's tau as published has no claims, hence no row."""
