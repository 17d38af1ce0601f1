"""Synthetic controls: the rows of their claims, of objective perturbation, and of the calls that spend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.core.method import Run
from dpcausal.mechanisms.additive import gaussian, l2_ball
from dpcausal.papers.mechanisms.objective_perturbation import objective_perturbation
from dpcausal.papers.statistics.ridge_weights import ridge_weight_sensitivity, ridge_weights
from dpcausal.papers.synthetic_control import perturbation
from dpcausal.papers.synthetic_control.dpsc import published_objective_perturbation
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.synthetic_control import placebo
from dpcausal.synthetic_control.donor_rows import FINE, FULL, Grid, at_length, squared_lengths, within_radius
from dpcausal.synthetic_control.methods import factor, matched
from dpcausal.synthetic_control.methods.matched import matched_sensitivity, matched_sums
from dpcausal.synthetic_control.placebo import Placebos
from dpcausal.synthetic_control.question import Treated
from tests.registry.rows import MechanismRow, Neighbours, Search, SensitivityRow, TaskRow
from tests.synthetic_control.neighbours import LINE, PERIODS, START, WAYS, ask, audited, panel

Rows = Any

ONES = np.ones(2)
RADIUS = 3000
WEIGHTS = np.array([-0.7, 0.1, 0.4, 0.2])
GRID = Grid(2.0**-12, 3, 2**24)
PAST = np.array([[0.1, -0.2, 0.3]])
BY = matched.Matching(GRID, 2, GRID.rows(PAST)[0], np.empty(0), 0.2 * FINE, 0.25 * FINE)


def whole(rows: Rows) -> Any:
    return np.rint(rows * FINE).astype(np.int64)


def placebos(rows: Rows) -> Placebos:
    """Placebos of rows of a residual, a scale and a weight."""
    return Placebos(rows[:, 0], np.abs(rows[:, 1]), np.rint(FULL * (rows[:, 2] + 1) / 2).astype(np.int64))


def swinging(rows: Rows) -> Placebos:
    """Placebos of rows of a residual, a scale, a weight and a swing."""
    return replace(placebos(rows), swings=rows[:, 3])


def far_and_calm(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    return np.tile([1.0, 0.5, 1.0, -1.0], (m, 1))


def two_ways(rows: Rows) -> list[Placebos]:
    """Placebos of two ways to predict, their residuals the first two columns; at the scale 0 each counts in full."""
    scales, weights = np.maximum(rows[:, 2], 0), np.rint(FULL * np.clip(2 * rows[:, 3] + 1, 0, 1)).astype(np.int64)
    return [Placebos(rows[:, way], scales, weights) for way in (0, 1)]


def missed_twice(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    rows = np.zeros((m, 4))
    rows[0] = 1, 1, -1, 1
    return rows


def sums(rows: Rows) -> Any:
    """The matched sums of donors whose past is the target's but for its first value, and whose future is free."""
    past = np.tile(PAST, (len(rows), 1))
    past[:, 0] += rows[:, 0]
    future = np.clip(past[:, -1:] + rows[:, 1:], -1, 1)
    cells = GRID.rows(np.clip(np.hstack([past, future]), -1, 1))
    return matched_sums(*matched.weights_and_changes(cells, np.empty((len(cells), 0)), BY)[:2], BY)


def followers(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    rows = np.zeros((m, 3))
    rows[0, 1:] = 0.6
    return rows


def along(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    rows = np.zeros((m, 2))
    rows[0] = 1
    return rows


def apart(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    rows = np.zeros((m, 2))
    rows[0, 0] = 1
    return rows


SENSITIVITIES = (
    SensitivityRow("ridge-weights", lambda rows: ridge_weights(rows, ONES, 3.0),
                   lambda m: ridge_weight_sensitivity(ONES, 3.0, m), (1, 5), 0.99,
                   ("ridge weights by the bound of a removal",),
                   {"columns": 2, "low": -1.0, "starts": {"along": along}}),
    SensitivityRow("panel-rows", lambda rows: rows.ravel(), lambda m: perturbation.row_sensitivity(3), (1, 5), 0.99,
                   ("all later cells by the bound of one",), {"columns": 3, "low": -1.0}),
    SensitivityRow("weighted-donors", lambda rows: rows.T @ WEIGHTS[: len(rows)],
                   lambda m: perturbation.weighted_sensitivity(WEIGHTS[:m], 2), (1, 4), 0.99,
                   ("weighted donors by the mean weight", "weighted donors less their own means"),
                   {"columns": 2, "low": -1.0}),
    SensitivityRow("matched-sums", sums, lambda m: matched_sensitivity(BY), (1, 6), 0.99,
                   ("a kernel width from the donors", "matched means by the bound of equal weights"),
                   {"columns": 3, "low": -1.0, "starts": {"followers": followers}}),
    SensitivityRow("row-radius", lambda rows: factor.rows_within(squared_lengths(whole(rows)), RADIUS),
                   lambda m: factor.count_sensitivity(), (2, 7), 1, ("a radius that the rows choose",),
                   {"columns": 3, "low": -1.0}),
    SensitivityRow("clipped-sum", lambda rows: within_radius(whole(rows), RADIUS).sum(axis=0),
                   lambda m: factor.sum_sensitivity(RADIUS), (1, 6), 0.99,
                   ("rows clipped before their mean is taken off", "a radius that the rows choose"),
                   {"columns": 2, "low": -1.0}),
    SensitivityRow("direction-products", lambda rows: factor.products(at_length(whole(rows), factor.LENGTH)),
                   lambda m: factor.products_sensitivity(), (1, 6), 0.99,
                   ("products by the bound of one row's own",),
                   {"columns": 2, "low": -1.0, "starts": {"apart": apart}}),
    SensitivityRow("mixing-scores", lambda rows: placebo.losses(two_ways(rows)),
                   lambda m: placebo.losses_sensitivity(2, Norm.L2), (1, 9), 0.99,
                   ("mixing scores without a bound",),
                   {"columns": 4, "low": -1.0, "starts": {"missed twice": missed_twice}}),
    SensitivityRow("ratio-count", lambda rows: placebo.count_beyond(placebos(rows), 0.8, 1.0),
                   lambda m: placebo.count_sensitivity(), (1, 9), 1, ("placebo residuals of a fit per donor",),
                   {"columns": 3, "low": -1.0}),
    SensitivityRow("ratio-table", lambda rows: placebo.ratio_table(swinging(rows)),
                   lambda m: placebo.table_sensitivity(), (1, 9), 0.99, ("a table by the bound of one cell",),
                   {"columns": 4, "low": -1.0, "starts": {"far and calm": far_and_calm}}),
)  # fmt: skip


def _weights(donors: Any) -> Query:
    return Query(np.asarray(donors), Sensitivity(1, Norm.L2, Relation.REPLACE_ONE, "panel-rows"), "weights")


def objective(
    donors: Any, target: Any, epsilon: float, size: int, share: float = 1.0, quadratic: float | None = None
) -> Any:
    """Return weights, one row a release."""
    loss = dpc.ApproxDP(round(epsilon / share, 9), OBJECTIVE_DELTA)
    budget = dpc.ApproxDP(loss.exact_epsilon * size, loss.exact_delta * size)
    allotment, query = (
        dpc.Ledger.in_memory(budget, accept_large_epsilon=True).charge(budget, task="audit"),
        _weights(donors),
    )
    y = np.asarray(target, dtype=np.float64)
    return np.array([
        objective_perturbation(query, allotment, loss, target=y, quadratic=quadratic) for _ in range(size)
    ])  # fmt: skip


OBJECTIVE_DELTA = 1e-6
QUADRATIC = 3e4
"""So large that the minimiser is nearly −b/M: of all, there one donor's loss is nearest to ε."""


def _objective(answer: Any, epsilon: float, size: int, share: float) -> Any:
    x, y = answer
    return objective([[x]], [y], epsilon, size, share, QUADRATIC)[:, 0]


def _published(answer: Any, epsilon: float, size: int, share: float) -> Any:
    loss = dpc.PureDP(epsilon / share)
    budget = dpc.PureDP(loss.exact_epsilon * size)
    allotment = dpc.Ledger.in_memory(budget, accept_large_epsilon=True).charge(budget, task="audit", unproven=True)
    return np.array([
        published_objective_perturbation(_weights([[answer]]), allotment, loss, target=np.zeros(1), penalty=1.0)[0]
        for _ in range(size)
    ])  # fmt: skip


MECHANISMS = (
    # Not tight in one dimension: its exact row has the figure, the proof page why.
    MechanismRow(
        "objective-perturbation", "objective_perturbation:objective_perturbation", "objective-perturbation",
        ((-0.5, 1.0), (0.5, 1.0)), _objective, ("objective perturbation over all of space",),
        delta=lambda epsilon: OBJECTIVE_DELTA, draws=1_000,
    ),
    MechanismRow(
        "objective-perturbation-published", "dpsc:published_objective_perturbation", None,
        (0.0, 1.0), _published, ("objective perturbation over all of space",),
    ),
)  # fmt: skip

def pair(name: str, side: int) -> Any:
    """Return 40 donors of which one turns: after the start, away from its last value, or along the target and after."""
    if name.startswith("matched"):
        rows = np.tile(LINE, (40, 1))
        rows[0, START:] = 1.0 if side else -1.0
        return rows
    rows, turned = np.zeros((40, PERIODS)), np.ones(PERIODS)
    if name == "factor":
        turned[START - 1] = -1.0
    else:
        turned[:START] = np.clip(5 * LINE[:START], -1, 1)
    rows[0] = turned if side else -turned
    return rows


def allotted(loss: Any, times: int) -> Any:
    if isinstance(loss, dpc.ZCDP):
        budget: Any = dpc.ZCDP(loss.exact_rho * times)
    elif isinstance(loss, dpc.ApproxDP):
        budget = dpc.ApproxDP(loss.exact_epsilon * times, loss.exact_delta * times)
    else:
        budget = dpc.PureDP(loss.exact_epsilon * times)
    return dpc.Ledger.in_memory(budget, unit="unit", accept_large_epsilon=True).charge(
        budget, task="audit", unit=Unit.DONOR, unit_column="unit"
    )


def drawn(name: str) -> Callable[[int, float, int], list[float]]:
    """Return one released number of each of many runs of a way: everything after the panel, at ε or ρ = .02ε²."""

    def draw(side: int, epsilon: float, size: int) -> list[float]:
        rows = pair(name, side)
        X, Y, y, grid = rows[:, :START], rows[:, START:], LINE[:START], Grid(2.0**-12, START, 2**24)
        pure = "epsilon" in name or name == "DPSC_out"
        loss: Any = dpc.PureDP(epsilon) if pure else dpc.ZCDP(0.02 * epsilon**2)
        half: Any = dpc.PureDP(epsilon / 2) if pure else dpc.ZCDP(0.01 * epsilon**2)
        if name == "objective-perturbation":
            loss, half = dpc.ApproxDP(epsilon, 1e-6), dpc.PureDP(epsilon / 2)
        allotment = allotted(loss, size)
        if name.startswith("matched"):
            own = grid.rows(y[None])[0]
            by = matched.Matching(grid, PERIODS - START, own, np.empty(0), 0.2 * FINE, 0.5 * FINE)
            parts = matched.weights_and_changes(grid.rows(rows), np.empty((len(rows), 0)), by)[:2]
            add, query = (l2_ball if pure else gaussian), matched.matched_query(*parts, by, loss)
            more: Any = by, np.zeros(PERIODS - START), 0.1 * FINE, loss
            answers = (matched.estimated(add(query, allotment, loss), *more) for _ in range(size))
            return [float(answer.change.sum()) for answer in answers]
        if name == "factor":
            # The answer to the question of the radius is as good as fixed: all donors but one lie still.
            return [float(factor.release(rows, grid, allotment, loss).mean[-1]) for _ in range(size)]
        found = []
        for _ in range(size):
            if name == "DPSC_out":
                found.append(float(as_published(rows, loss, allotment).sum()))
                continue
            if name == "objective-perturbation":
                first = dpc.ApproxDP(epsilon / 2, 1e-6)
                path = perturbation.release_path(
                    perturbation.release_objective(X, y, None, "simplex", allotment, first), Y, allotment, half
                )
            else:
                path = perturbation.release_path(
                    perturbation.release_weights(X, y, 6.0, "simplex", allotment, half), Y, allotment, half
                )
            found.append(float(path.sum()))
        return found

    return draw


def as_published(rows: Any, loss: Any, allotment: Any) -> Any:
    """Return the path of the published system with λ = 6."""
    way = dpc.papers.DpscOut(penalty=6.0)
    ledger = dpc.Ledger.in_memory(loss, unit="unit", accept_large_epsilon=True)
    question = Treated.of(panel(rows, ledger), None, 0.9, True, True)
    run = Run(question, loss, allotment, None, rows)
    return way.path(rows, way.plans(question, loss)[0], run).values


def _first(answers: Any) -> Any:
    return answers[0] if isinstance(answers, tuple) else answers


def compared(**arguments: Any) -> Neighbours:
    ends = np.ones(PERIODS)
    search = Search(lambda rows: ask(rows, **dict(arguments)), 40, -ends, ends)
    return Neighbours(lambda seed, answers: audited(seed, answers, **arguments), search)


MUTANTS = {
    "matched": ("a kernel width from the donors", "placebo residuals of a fit per donor"),
    "factor": ("rows clipped before their mean is taken off", "a radius that the rows choose"),
    "output-perturbation": ("ridge weights by the bound of a removal", "weighted donors by the mean weight"),
    "DPSC_out": ("ridge weights by the bound of a removal", "weighted donors by the mean weight"),
    "objective-perturbation": ("objective perturbation over all of space",),
}

def claims_of(arguments: dict[str, Any]) -> tuple[str, ...]:
    with dpc.simulated_noise(0):
        answer = _first(ask(np.tile(LINE, (300, 1)), **dict(arguments)))
    return tuple(answer.guarantee.proofs)


def task(name: str, function: str, arguments: dict[str, Any]) -> TaskRow:
    return TaskRow(f"{function} {name}", function, claims_of(arguments), compared(**arguments), drawn(name), 0.0,
                   MUTANTS[getattr(arguments["method"], "name", arguments["method"])], delta=1e-6)  # fmt: skip


TASKS = (
    *(task(name, "synthetic_control", arguments) for name, arguments in WAYS.items()),
    *(
        task(name, "synthetic_controls", {**WAYS[name], "several": True})
        for name in ("matched by epsilon", "factor")
    ),
)
PANEL_WAYS = {row.name for row in TASKS}
if len(LINE) != PERIODS:
    raise ValueError("the target has all periods")
