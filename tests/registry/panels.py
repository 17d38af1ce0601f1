"""Synthetic controls: their claims with mutants, objective perturbation, and the calls that spend."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.core.method import Run
from dpcausal.mechanisms.additive import gaussian, l2_ball
from dpcausal.papers.mechanisms.objective_perturbation import gradient_bound, objective_perturbation
from dpcausal.papers.statistics.ridge_weights import ridge_weight_bound, ridge_weight_sensitivity, ridge_weights
from dpcausal.papers.synthetic_control import dpsc
from dpcausal.papers.synthetic_control.dpsc import published_objective_perturbation
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.synthetic_control import placebo
from dpcausal.synthetic_control.donor_rows import FINE, FULL, Grid, at_length, squared_lengths, within_radius
from dpcausal.synthetic_control.methods import factor, matched
from dpcausal.synthetic_control.methods.matched import Matching, matched_sensitivity, matched_sums
from dpcausal.synthetic_control.placebo import Placebos
from dpcausal.synthetic_control.question import Treated
from tests.registry.rows import MechanismRow, Neighbours, Rows, Search, SensitivityRow, TaskRow, allotted, by_falsifier
from tests.synthetic_control.neighbours import LINE, PERIODS, START, WAYS, ask, neighbours_of, panel

ONES = np.ones(2)
RADIUS = 3000
WEIGHTS = np.array([-0.7, 0.1, 0.4, 0.2])
GRID = Grid(2.0**-12, 3, 2**24)
PAST = np.array([[0.1, -0.2, 0.3]])
BY = Matching(GRID, 2, GRID.rows(PAST)[0], 0.2 * FINE, 0.25 * FINE)


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


def first_at(*values: float) -> Callable[..., Rows]:
    """Return a start whose records are 0 but the first."""
    return lambda rng, m, low, high: np.vstack([values, np.zeros((m - 1, len(values)))])


missed_twice = first_at(1, 1, -1, 1)


def sums(rows: Rows, by: Matching = BY) -> Any:
    cells = GRID.rows(np.clip(rows, -1, 1))
    return matched_sums(*matched.weights_and_changes(cells, by)[:2], by)


def sums_of_followers(rows: Rows) -> Any:
    """The matched sums of donors whose past is the target's but for its first value, and whose future is free."""
    past = np.tile(PAST, (len(rows), 1))
    past[:, 0] += rows[:, 0]
    return sums(np.hstack([past, np.clip(past[:, -1:] + rows[:, 1:], -1, 1)]))


ONE_LATER = replace(BY, after=1)


def own_width(rows: Rows) -> Any:
    return sums(rows, replace(ONE_LATER, kernel_width=FINE * max(float(np.std(rows[:, :3])), 0.02)))


def followers(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    rows = np.tile([*PAST[0], 0.8], (m, 1))
    rows += 0.02 * rng.standard_normal(rows.shape)
    return np.clip(rows, -1, 1)


def matched_mean(rows: Rows) -> Any:
    weights = np.exp(-(rows[:, 0] ** 2) * 20)
    return np.clip(rows[:, 1], -0.25, 0.25) @ weights / max(float(weights.sum()), 1e-9)


def far_but_one(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    rows = np.ones((m, 2))
    rows[0] = 0, -1
    return rows


def own_radius(rows: Rows) -> Any:
    radius = max(1, int(np.quantile(np.linalg.norm(whole(rows), axis=1), 0.5)))
    return within_radius(whole(rows), radius).sum(axis=0) / radius


def clipped_then_centred(rows: Rows) -> Any:
    clipped = within_radius(whole(rows), RADIUS)
    return (clipped - clipped[:, :1]).sum(axis=0)


def weighted(rows: Rows) -> Any:
    return rows.T @ WEIGHTS[: len(rows)]


def less_own_means(rows: Rows) -> Any:
    return weighted(rows[:, 1:] - rows[:, :1])


def refitted(rows: Rows) -> int:
    others = (rows[:, 0].sum() - rows[:, 0]) / (len(rows) - 1)
    full = np.full(len(rows), FULL)
    return placebo.count_beyond(Placebos(rows[:, 0] - others, np.ones(len(rows)), full), 0.4, 1.0)


def table(rows: Rows) -> Any:
    full = np.full(len(rows), FULL)
    return placebo.ratio_table(Placebos(rows[:, 0], np.abs(rows[:, 1]), full, rows[:, 3]))


def near(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    return np.column_stack([np.append(np.full(m - 1, 0.2), 0.9), np.ones(m)])


def ridge(rows: Rows) -> Any:
    return ridge_weights(rows, ONES, 3.0)


def products(rows: Rows) -> Any:
    return factor.residual_products(at_length(whole(rows), factor.LENGTH))


def gradient(rows: Rows, f: Any) -> Any:
    return -2 * rows @ (ONES - rows.T @ f)


SIGNED: dict[str, Any] = {"low": -1.0, "norm": Norm.L2, "evaluations": 1_000}
FOLLOWERS: dict[str, Any] = {"columns": 4, "sizes": (40,), "starts": {"followers": followers}, **SIGNED}

SENSITIVITIES = (
    SensitivityRow("ridge-weights", ridge, lambda m: ridge_weight_sensitivity(ONES, 3.0, m), (1, 5), 0.99, (
        by_falsifier("ridge weights by the bound of a removal", ridge, lambda m: ridge_weight_bound(ONES, 3.0) / 2,
                     columns=2, **SIGNED),
    ), {"columns": 2, "low": -1.0, "starts": {"along": first_at(1, 1)}}),
    SensitivityRow("panel-rows", lambda rows: rows.ravel(), lambda m: dpsc.row_sensitivity(3), (1, 5), 0.99, (
        by_falsifier("all later cells by the bound of one", lambda rows: rows.ravel(), 2.0, columns=3, **SIGNED),
    ), {"columns": 3, "low": -1.0}),
    SensitivityRow("weighted-donors", weighted, lambda m: dpsc.weighted_sensitivity(WEIGHTS[:m], 2), (1, 4),
                   0.99, (
        by_falsifier("weighted donors by the mean weight", weighted,
                     lambda m: 2 * np.sqrt(2) * float(np.abs(WEIGHTS[:m]).mean()), columns=2, sizes=(2, 4), **SIGNED),
        by_falsifier("weighted donors less their own means", less_own_means,
                     lambda m: dpsc.weighted_sensitivity(WEIGHTS[:m], 1).bound, columns=2, sizes=(2, 4),
                     **SIGNED),
    ), {"columns": 2, "low": -1.0}),
    SensitivityRow("matched-sums", sums_of_followers, lambda m: matched_sensitivity(BY), (1, 6), 0.99, (
        by_falsifier("a kernel width from the donors", own_width, matched_sensitivity(ONE_LATER).bound, **FOLLOWERS),
        by_falsifier("matched means by the bound of equal weights", matched_mean, lambda m: 0.5 / m, columns=2,
                     starts={"far but one": far_but_one}, **SIGNED),
    ), {"columns": 3, "low": -1.0, "starts": {"followers": first_at(0, 0.6, 0.6)}}),
    SensitivityRow("row-radius", lambda rows: factor.rows_within(squared_lengths(whole(rows)), RADIUS),
                   lambda m: factor.count_sensitivity(), (2, 7), 1, (
        by_falsifier("a radius that the rows choose", own_radius, 2.0, columns=2, sizes=(7,), **SIGNED),
    ), {"columns": 3, "low": -1.0}),
    SensitivityRow("clipped-sum", lambda rows: within_radius(whole(rows), RADIUS).sum(axis=0),
                   lambda m: factor.sum_sensitivity(RADIUS), (1, 6), 0.99, (
        by_falsifier("rows clipped before their mean is taken off", clipped_then_centred,
                     factor.sum_sensitivity(RADIUS).bound, columns=3, **SIGNED),
    ), {"columns": 2, "low": -1.0}),
    SensitivityRow("direction-products", products, lambda m: factor.products_sensitivity(), (1, 6), 0.99, (
        by_falsifier("products by the bound of one row's own", products, 5.0 * factor.LENGTH**2, columns=2, **SIGNED),
    ), {"columns": 2, "low": -1.0, "starts": {"apart": first_at(1, 0)}}),
    SensitivityRow("mixing-scores", lambda rows: placebo.prediction_losses(two_ways(rows)),
                   lambda m: placebo.losses_sensitivity(2, Norm.L2), (1, 9), 0.99, (
        by_falsifier("mixing scores without a bound", lambda rows: float((FULL * (rows[:, 0] / 0.4) ** 2).sum()),
                     float(FULL), columns=1, low=-1.0),
    ), {"columns": 4, "low": -1.0, "starts": {"missed twice": missed_twice}}),
    SensitivityRow("ratio-count", lambda rows: placebo.count_beyond(placebos(rows), 0.8, 1.0),
                   lambda m: placebo.count_sensitivity(), (1, 9), 1, (
        by_falsifier("placebo residuals of a fit per donor", refitted, FULL, columns=2, sizes=(4,), low=-1.0,
                     starts={"near": near}),
    ), {"columns": 3, "low": -1.0}),
    SensitivityRow("ratio-table", lambda rows: placebo.ratio_table(swinging(rows)),
                   lambda m: placebo.table_sensitivity(), (1, 9), 0.99, (
        by_falsifier("a table by the bound of one cell", table, 0.95 * placebo.table_sensitivity().bound, columns=4,
                     **SIGNED),
    ), {"columns": 4, "low": -1.0, "starts": {"far and calm": far_and_calm}}),
)  # fmt: skip
MUTANTS = (
    by_falsifier("objective perturbation over all of space", lambda rows: gradient(rows, np.full(len(rows), 5.0)),
                 lambda m: gradient_bound(m, 2), columns=2, sizes=(3,), **SIGNED),
)  # fmt: skip
CONTROLS = (
    by_falsifier("ridge weights by their bound", ridge, lambda m: ridge_weight_bound(ONES, 3.0), columns=2, **SIGNED),
    by_falsifier("matched sums of a public width", lambda rows: sums(rows, ONE_LATER),
                 matched_sensitivity(ONE_LATER).bound, **FOLLOWERS),
    by_falsifier("gradients inside the l1 ball", lambda rows: gradient(rows, np.eye(len(rows))[0]),
                 lambda m: gradient_bound(m, 2), columns=2, sizes=(3,), **SIGNED),
)  # fmt: skip

# Objective perturbation.

OBJECTIVE_DELTA = 1e-6
QUADRATIC = 3e4
"""So large that the minimiser is nearly −b/M: of all, there one donor's loss is nearest to ε."""


def _weights(donors: Any) -> Query:
    return Query(np.asarray(donors), Sensitivity(1, Norm.L2, Relation.REPLACE_ONE, "panel-rows"), "weights")


def objective(
    donors: Any, target: Any, epsilon: float, size: int, share: float = 1.0, quadratic: float | None = None
) -> Any:
    """Return weights, one row a release."""
    loss = dpc.ApproxDP(round(epsilon / share, 9), OBJECTIVE_DELTA)
    query, budget, y = _weights(donors), allotted(loss, size), np.asarray(target, dtype=np.float64)
    runs = [objective_perturbation(query, budget, loss, target=y, quadratic=quadratic) for _ in range(size)]
    return np.array(runs)


def _objective(answer: Any, epsilon: float, size: int, share: float) -> Any:
    x, y = answer
    return objective([[x]], [y], epsilon, size, share, QUADRATIC)[:, 0]


def _published(answer: Any, epsilon: float, size: int, share: float) -> Any:
    loss = dpc.PureDP(epsilon / share)
    budget, query = allotted(loss, size, unproven=True), _weights([[answer]])
    runs = (published_objective_perturbation(query, budget, loss, target=np.zeros(1), penalty=1.0) for _ in range(size))
    return np.array([run[0] for run in runs])


MECHANISMS = (
    # Not tight in one dimension: its exact row has the figure, the proof page why.
    MechanismRow("objective-perturbation", "objective_perturbation:objective_perturbation", "objective-perturbation",
                 ((-0.5, 1.0), (0.5, 1.0)), _objective, ("objective perturbation over all of space",),
                 delta=lambda epsilon: OBJECTIVE_DELTA, draws=1_000),
    MechanismRow("objective-perturbation-published", "dpsc:published_objective_perturbation", None, (0.0, 1.0),
                 _published, ("objective perturbation over all of space",)),
)  # fmt: skip

# The calls.


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


def drawn(name: str) -> Callable[[int, float, int], list[float]]:
    """Return one released number of each of many runs of a way: everything after the panel, at ε or ρ = 0.02ε²."""

    def draw(side: int, epsilon: float, size: int) -> list[float]:
        rows = pair(name, side)
        grid = Grid(2.0**-12, START, 2**24)
        pure = "epsilon" in name or name == "DPSC_out"
        loss: Any = dpc.PureDP(epsilon) if pure else dpc.ZCDP(0.02 * epsilon**2)
        if name == "objective-perturbation":
            loss = dpc.ApproxDP(epsilon, 1e-6)
        budget = allotted(loss, size, Unit.DONOR)

        def run() -> float:
            if name.startswith("matched"):
                target = grid.rows(LINE[None, :START])[0]
                by = Matching(grid, PERIODS - START, target, 0.2 * FINE, 0.5 * FINE)
                parts = matched.weights_and_changes(grid.rows(rows), by)[:2]
                noisy = (l2_ball if pure else gaussian)(matched.matched_query(*parts, by, loss), budget, loss)
                return float(
                    matched.estimate_from_sums(noisy, by, np.zeros(PERIODS - START), 0.1 * FINE, loss).change.sum()
                )
            if name == "factor":
                # The answer to the question of the radius is as good as fixed: all donors but one lie still.
                return float(factor.release_model(rows, grid, budget, loss).mean[-1])
            way = next((one for start, one in WEIGHTED.items() if name.startswith(start)))
            return float(path_of(way, rows, loss, budget).sum())

        return [run() for _ in range(size)]

    return draw


WEIGHTED: dict[str, Any] = {
    "DPSC_out": dpc.papers.DpscOut(penalty=6.0), "output": dpc.papers.OutputPerturbation(penalty=6.0),
    "objective": dpc.papers.ObjectivePerturbation(),
}  # fmt: skip


def path_of(way: Any, rows: Any, loss: Any, budget: Any) -> Any:
    ledger = dpc.Ledger.in_memory(loss, unit="unit", accept_large_epsilon=True)
    question = Treated.of(panel(rows, ledger), None, 0.9, True, True)
    return way.path(rows, way.plans(question, loss)[0], Run(question, loss, budget, None, rows)).values


def claims_of(arguments: dict[str, Any]) -> tuple[str, ...]:
    with dpc.simulated_noise(0):
        answers = ask(np.tile(LINE, (300, 1)), **dict(arguments))
    answer = answers[0] if isinstance(answers, tuple) else answers
    return tuple(answer.guarantee.proofs)


def task(name: str, function: str, arguments: dict[str, Any]) -> TaskRow:
    search = Search(lambda rows: ask(rows, **dict(arguments)), 40, -np.ones(PERIODS), np.ones(PERIODS))
    return TaskRow(f"{function} {name}", function, claims_of(arguments), Neighbours(neighbours_of, search), drawn(name),
                   delta=1e-6)  # fmt: skip


TASKS = (
    *(task(name, "synthetic_control", arguments) for name, arguments in WAYS.items()),
    *(task(name, "synthetic_controls", {**WAYS[name], "several": True}) for name in ("matched by epsilon", "factor")),
)  # fmt: skip
PANEL_WAYS = {row.name for row in TASKS}
if len(LINE) != PERIODS:
    raise ValueError("the target has all periods")
