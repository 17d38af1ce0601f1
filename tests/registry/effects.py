"""Rows of effects: their statistics, and each way of their calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import dpcausal as dpc
from dpcausal.audit import GreyBoxAudit, compare
from dpcausal.effects.cells.corner_counts import GRID, corner_counts, corner_counts_sensitivity, corners
from dpcausal.effects.did.cohort_sums import cohort_bits, cohort_sums, cohort_sums_sensitivity
from dpcausal.effects.estimators import METHODS
from dpcausal.effects.estimators.block_mean import PROOFS
from dpcausal.effects.estimators.block_regression import Slope
from dpcausal.effects.estimators.blocks import SampleAggregate
from dpcausal.effects.estimators.residual_sums import (
    capped_squares,
    capped_squares_sensitivity,
    histograms,
    histograms_sensitivity,
    pair_functions,
    pair_functions_sensitivity,
    residual_sums,
    residual_sums_sensitivity,
)
from dpcausal.effects.estimators.trial_design import (
    assigned_sum,
    assigned_sum_sensitivity,
    centred_score,
    centred_score_sensitivity,
)
from dpcausal.effects.moments.ellipsoid import (
    WHOLE,
    ellipse_bits,
    ellipse_moments,
    ellipse_moments_sensitivity,
    scale_histograms,
    scale_histograms_sensitivity,
)
from dpcausal.papers import ASKED
from dpcausal.papers.effects.fold_split import averages, fold_split, fold_split_sensitivity
from tests.registry.rows import Neighbours, Search, SensitivityRow, TaskRow

Rows = Any
LOW, HIGH = np.zeros(4), np.array([1.0, 2.0, 1.0, 1.0])
"""A cell of two columns, a number, and whether the row is kept."""


def sums_by_cell(rows: Rows) -> Any:
    """Return the corner counts of one number by two columns; a row below a half in the last column is left out."""
    codes = np.rint(rows[:, :2]).astype(np.int64)
    return corner_counts(codes[:, 0] * 3 + codes[:, 1], 6, rows[:, 3] >= 0.5, [corners(rows[:, 2], 2)]).ravel()


def of_two_numbers(rows: Rows) -> Any:
    codes = np.rint(rows[:, 0]).astype(np.int64)
    values = [corners(rows[:, 2], 2), corners(rows[:, 3], 2)]
    return corner_counts(codes, 2, np.ones(len(rows), dtype=bool), values).ravel()


WEIGHTS = np.array([[-0.7, -1.0, 0.2], [0.4, 0.9, 1.0]])


def difference_of(rows: Rows) -> Any:
    """Return the sum of a number by arms and strata; a row below a half in the last column is left out."""
    codes = np.rint(rows[:, :2]).astype(np.int64)
    return assigned_sum(rows[:, 2], WEIGHTS[codes[:, 0], codes[:, 1]], np.where(rows[:, 3] >= 0.5, GRID, 0))


CENTRES, CHANCES = np.array([[0.1, 0.4, 0.2], [0.6, 0.3, 0.2]]), np.array([[0.7, 0.5, 0.8], [0.3, 0.5, 0.2]])
GAPS = CENTRES[1] - CENTRES[0]
REACH = max(*(GAPS + (1 - CENTRES[1]) / CHANCES[1]), *(GAPS + CENTRES[0] / CHANCES[0]))
BELOW = min(*(GAPS - CENTRES[1] / CHANCES[1]), *(GAPS - (1 - CENTRES[0]) / CHANCES[0]))


def scores_of(rows: Rows) -> Any:
    """Return the sum of a number's centred scores; a row below a half in the last column is left out."""
    a, z = np.rint(rows[:, :2]).astype(np.int64).T
    scores = GAPS[z] + (2 * a - 1) * (np.clip(rows[:, 2], 0, 1) - CENTRES[a, z]) / CHANCES[a, z]
    return centred_score(scores / (REACH - BELOW), -BELOW / (REACH - BELOW), np.where(rows[:, 3] >= 0.5, GRID, 0))


RADIUS = 1.5


def moments_of(rows: Rows) -> Any:
    """Return the moments of two numbers; a row below −2 in the last column is left out."""
    return ellipse_moments(rows[:, :2].copy(), rows[:, 2] >= -2, RADIUS, ellipse_bits(len(rows), RADIUS))


def shortened_apart(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """Rows that are all shortened, one at the angle that moves the most."""
    rows = np.zeros((m, len(low)))
    rows[:, 0] = 2.9
    rows[0, :2] = 2.9 * np.array([-0.3056, 0.9522])
    return rows


def scales_of(rows: Rows) -> Any:
    return scale_histograms(rows[:, :2].copy(), WHOLE * (rows[:, 2] >= -0.5)).ravel()


def paths_of(rows: Rows) -> Any:
    """Return the sums of two numbers by two cohorts, by the sign of the third; below −2 in the last, it is left out."""
    bits = cohort_bits(len(rows), RADIUS)
    cohorts = (rows[:, 2] >= 0).astype(np.int64)
    return cohort_sums(cohorts, 2, rows[:, :2].copy(), rows[:, 3] >= -2, RADIUS, bits)


def masses_of(rows: Rows) -> Any:
    """Return the mass of each row; a row below a half in the last column is left out."""
    return np.where(rows[:, -1] >= 0.5, GRID, 0)


def histograms_of(rows: Rows) -> Any:
    """Return the counts of two columns by three bins."""
    return histograms(np.rint(rows[:, :2]).astype(np.int64), 3, masses_of(rows)).ravel()


def residuals_of(rows: Rows) -> Any:
    """Return the sums of two residuals by three bins."""
    return residual_sums(np.rint(rows[:, 0]).astype(np.int64), 3, rows[:, 1:3].copy(), masses_of(rows)).ravel()


def pairs_of(rows: Rows) -> Any:
    """Return the sums of two residuals times two functions."""
    return pair_functions(rows[:, :2].copy(), rows[:, 2:4].copy(), masses_of(rows)).ravel()


def squares_of(rows: Rows) -> Any:
    return capped_squares(rows[:, :2].copy(), masses_of(rows))


IN_BINS = {"columns": 4, "low": [0.0, -1.0, -1.0, 0.0], "high": [2.0, 1.0, 1.0, 1.0]}
OF_PAIRS = {"columns": 5, "low": [-1.0, -1.0, -1.0, -1.0, 0.0], "high": [1.0] * 5}
OF_SQUARES = {"columns": 3, "low": [-1.0, -1.0, 0.0], "high": [2.0, 2.0, 1.0]}
OF_COLUMNS = {"columns": 3, "low": 0.0, "high": [2.0, 2.0, 1.0]}

LEAST = 0.1
TELLING = {"columns": 7, "low": [0.0, 0.0, -1.0, -1.0, -1.0, 0.0, 0.0], "high": [1.0] * 7}
"""Place, arm and outcome of a record, the two means and the probability that its fold's model says, whether kept."""


def as_told(x: Rows, _a: Any, _y: Any) -> Any:
    """Return models that say what one record tells, the means with the other sign of records of the other place."""

    def said(every: Rows) -> Any:
        told, sign = np.zeros(3) if len(x) == 0 else x[0, 1:], np.where(every[:, 0] < 0.5, 1.0, -1.0)
        return sign * told[0], sign * told[1], np.full(len(every), told[2])

    return said


def of_folds(estimator: str) -> Callable[[Rows], Any]:
    """Return the statistic of folds of one record each; a row below a half in the last column is left out."""

    def statistic(rows: Rows) -> Any:
        x, a, y, kept = rows[:, [0, 3, 4, 5]], rows[:, 1] >= 0.5, rows[:, 2], rows[:, 6] >= 0.5
        folds = [np.array([place]) for place in range(len(rows))]
        return fold_split(estimator, averages(x, a, y, kept, folds, LEAST, as_told), a, y, kept, LEAST)

    return statistic


def one_fold_apart(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """Treated records whose scores one fold's models move the most, and whose own score can be the least."""
    rows = np.tile([0.0, 1, 1, -1, -1, 0, 1], (m, 1))
    rows[0] = 1, 1, -1, 1, 1, 1, 1
    return rows


SENSITIVITIES = (
    SensitivityRow("fold-split", of_folds("aipw"), lambda m: fold_split_sensitivity("aipw", m, m, LEAST), (4, 9), 0.99,
                   ("folds by the range of the own score", "folds by 0.95 of their bound"),
                   TELLING | {"starts": {"one fold apart": one_fold_apart}}),
    SensitivityRow("cohort-sums", paths_of, lambda m: cohort_sums_sensitivity(2, 2, RADIUS, cohort_bits(m, RADIUS)),
                   (4, 9), 0.99, ("cohorts with what was lost for nothing",),
                   {"columns": 4, "low": -3.0, "high": 3.0, "starts": {"apart": shortened_apart}}),
    SensitivityRow("histograms", histograms_of, lambda m: histograms_sensitivity(2), (4, 9), 0.99,
                   ("histograms by the bound of one column",), OF_COLUMNS),
    SensitivityRow("residual-sums", residuals_of, lambda m: residual_sums_sensitivity(2), (4, 9), 0.99,
                   ("residual sums by the bound of a record added", "residual sums by 0.95 of their bound"), IN_BINS),
    SensitivityRow("pair-functions", pairs_of, lambda m: pair_functions_sensitivity(2, 2), (4, 9), 0.99,
                   ("pair functions by the bound of one model",), OF_PAIRS),
    SensitivityRow("capped-squares", squares_of, lambda m: capped_squares_sensitivity(2), (4, 9), 0.99,
                   ("two squares by the bound of one",), OF_SQUARES),
    SensitivityRow("scale-histograms", scales_of, lambda m: scale_histograms_sensitivity(2), (4, 9), 0.99,
                   ("several scales by the bound of one",), {"columns": 3, "low": -1.0, "high": 1.0}),
    SensitivityRow("ellipse-moments", moments_of,
                   lambda m: ellipse_moments_sensitivity(RADIUS, ellipse_bits(m, RADIUS), 2), (4, 9), 0.99,
                   ("moments with free counts of shortened rows",),
                   {"columns": 3, "low": -3.0, "high": 3.0, "starts": {"apart": shortened_apart}}),
    SensitivityRow("assigned-sum", difference_of, lambda m: assigned_sum_sensitivity(), (4, 9), 0.99,
                   ("a difference of arms by one end of the range",), {"columns": 4, "high": HIGH.tolist()}),
    SensitivityRow("centred-score", scores_of, lambda m: centred_score_sensitivity(), (4, 9), 0.99,
                   ("a score by the reach of the treated",), {"columns": 4, "high": HIGH.tolist()}),
    SensitivityRow("corner-counts", sums_by_cell, lambda m: corner_counts_sensitivity(1), (4, 9), 0.99,
                   ("sums by cells by the bound of a record added",),
                   {"columns": 4, "high": HIGH.tolist()}),
)  # fmt: skip

SCHEMA = dpc.Schema({
    "a": dpc.Levels([0, 1]), "z": dpc.Levels([0, 1, 2]), "y": dpc.Bounded(-1, 1), "x": dpc.Bounded(-1, 1),
})  # fmt: skip
LOWEST, HIGHEST = np.array([0.0, 0.0, -1.0, -1.0]), np.array([1.0, 2.0, 1.0, 1.0])
ROWS = 400


def table_of(rows: Rows, loss: Any) -> dpc.Table:
    columns = {"a": np.rint(rows[:, 0]).astype(np.int64), "z": np.rint(rows[:, 1]).astype(np.int64)}
    columns |= {"y": rows[:, 2].copy(), "x": rows[:, 3].copy()}
    return dpc.Table(columns, SCHEMA, dpc.Ledger.in_memory(loss, accept_large_epsilon=True))


def asked_on_neighbours(
    call: Callable[[dpc.Table], Any], loss: Any, made: Callable[[Rows, Any], dpc.Table] = table_of
) -> Neighbours:
    """Return the grey box of a call: one row of a made-up table is replaced by a corner of the domain."""

    def ask(rows: Rows) -> Any:
        return call(made(rows, loss))

    def audit(seed: int, answers: Any) -> GreyBoxAudit:
        rng = np.random.default_rng(seed)
        rows = rng.uniform(LOWEST, HIGHEST, (ROWS, 4)) if seed % 2 else np.tile(LOWEST, (ROWS, 1))
        neighbour = rows.copy()
        neighbour[int(rng.integers(ROWS))] = rng.choice([0.0, 1.0], 4) * (HIGHEST - LOWEST) + LOWEST
        return compare(lambda: ask(rows), lambda: ask(neighbour), answers=answers)

    return Neighbours(audit, Search(ask, ROWS, LOWEST, HIGHEST))


def of_cells(side: int, epsilon: float, size: int) -> list[Any]:
    """Return the lesser of two lead counts, each moved by the replaced row."""
    loss, outputs = dpc.PureDP(epsilon), []
    a = np.array([side, *[0] * 9, *[1] * 10])
    schema = dpc.Schema({"a": dpc.Levels([0, 1])})
    for _ in range(size):
        released = dpc.cells(
            dpc.Table({"a": a}, schema, dpc.Ledger.in_memory(loss, accept_large_epsilon=True)), by=["a"], loss=loss
        )
        outputs.append(float(min(released.counts[0, 0] - 10, 10 - released.counts[1, 0])))
    return outputs


def of_effect(
    call: Callable[[dpc.Table, Any], Any], loss_of: Callable[[float], Any], length: int = ROWS
) -> Any:
    """Return the difference of two means, moved as far as a row can."""

    def draw(side: int, epsilon: float, size: int) -> list[Any]:
        rows = np.zeros((length, 4))
        rows[::2, 0] = 1
        rows[:, 3] = np.linspace(-1, 1, length)
        rows[0, 2] = 2 * side - 1
        loss = loss_of(epsilon)
        return [call(table_of(rows, loss), loss).estimate or 0.0 for _ in range(min(size, 200))]

    return draw


def stratified(table: dpc.Table, loss: Any) -> Any:
    return dpc.effect(table, treatment="a", outcome="y", adjust=["z"], loss=loss, method="stratified")


def scored(table: dpc.Table, loss: Any) -> Any:
    return dpc.effect(table, treatment="a", outcome="y", adjust=["x"], groups="z", loss=loss, method="aipw")


def sloped(table: dpc.Table, loss: Any) -> Any:
    return dpc.effect(table, treatment="a", outcome="y", adjust=["x", "z"], loss=loss, method="partially-linear")


def boosted(table: dpc.Table, loss: Any) -> Any:
    return dpc.effect(table, treatment="a", outcome="y", adjust=["x"], loss=loss, method="boosted-aipw")


def boosted_in_pairs(table: dpc.Table) -> Any:
    return dpc.effect(table, treatment="a", outcome="y", adjust=["x", "z"], loss=APPROXIMATE, method="boosted-aipw")


def trial_by_sizes(table: dpc.Table, loss: Any) -> Any:
    return dpc.effect(table, treatment="a", outcome="y", adjust=[], loss=loss,
                      method=dpc.methods.RandomizedTrial(sizes=[ROWS // 2, ROWS // 2]))  # fmt: skip


def trial_by_probabilities(table: dpc.Table, loss: Any) -> Any:
    return dpc.effect(table, treatment="a", outcome="y", adjust=["z"], loss=loss,
                      method=dpc.methods.RandomizedTrial(probabilities=[0.5, 0.5]))  # fmt: skip


def in_folds(table: dpc.Table, loss: Any) -> Any:
    return dpc.effect(table, treatment="a", outcome="y", adjust=["x"], loss=loss, method=dpc.papers.FoldSplit(folds=8))


PURE = dpc.PureDP(1)


def in_blocks(table: dpc.Table, loss: Any) -> Any:
    return dpc.effect(table, treatment="a", outcome="y", adjust=["x", "z"], loss=loss,
                      method=dpc.methods.SampleAggregate(blocks=20, terms="lines"))  # fmt: skip


def of_blocks(side: int, epsilon: float, size: int) -> list[Any]:
    """Return the mean over blocks, one of whose answers goes from one end to the other."""
    loss, outputs = dpc.PureDP(epsilon), []
    with mock.patch.object(
        SampleAggregate, "answer", lambda self, rows: Slope(2 * float(rows.outcome.max()) - 1, 0.0)
    ):
        for _ in range(min(size, 200)):
            rows = np.zeros((ROWS, 4))
            rows[0, 2] = 2 * side - 1
            rows[1:, 2] = -1
            outputs.append(in_blocks(table_of(rows, loss), loss).estimate or 0.0)
    return outputs


def sums(table: dpc.Table) -> Any:
    return dpc.cells(table, by=["a", "z"], values=["y", "x"], loss=PURE).numbers()


APPROXIMATE = dpc.ApproxDP(20, 1e-6)


def joint(table: dpc.Table, loss: Any = APPROXIMATE) -> Any:
    return dpc.moments(table, ["y", "x"], robust_for=("y", ["x"]), loss=loss)


def of_moments(side: int, epsilon: float, size: int) -> list[Any]:
    """Return the first released product of two numbers in step, but for a row."""
    line = np.linspace(-1, 1, 2_000)
    rows = np.column_stack([np.zeros((2_000, 2)), line, line])
    rows[0, 2:] = 2 * side - 1, 1
    loss = dpc.ApproxDP(epsilon, 1e-6)
    return [float(joint(table_of(rows, loss), loss).sums[0, 1]) for _ in range(min(size, 200))]


PERIODS = dpc.Schema({"t": dpc.Levels([0, 1, 2]), "g": dpc.Levels([1, 9]), "y": dpc.Bounded(-1, 1)})


def followed(table: dpc.Table, loss: Any = APPROXIMATE) -> Any:
    return dpc.did(table, time="t", outcome="y", cohort="g", loss=loss)


def paths_table(rows: Rows, loss: Any) -> dpc.Table:
    """Return a table of persons, each the cohort and two steps of a row, and a last period that is missing above 1."""
    n = len(rows)
    levels = np.column_stack([np.zeros(n), rows[:, 2], np.where(rows[:, 1] > 1.5, np.nan, rows[:, 3])])
    columns = {"id": np.repeat(np.arange(n), 3), "t": np.tile(np.arange(3), n), "y": levels.ravel(),
               "g": np.repeat(np.where(rows[:, 0] >= 0.5, 1, 9), 3)}  # fmt: skip
    return dpc.Table(columns, PERIODS, dpc.Ledger.in_memory(loss, person="id", accept_large_epsilon=True), person="id")


def of_paths(side: int, epsilon: float, size: int) -> list[Any]:
    """Return the first cohort's sum of the first step, moved as far as a person can."""
    line = np.linspace(-1, 1, 300)
    rows = np.column_stack([np.arange(300) % 2, np.zeros(300), line, line[::-1]])
    rows[1, 2:] = 2 * side - 1, 1 - 2 * side
    loss = dpc.ApproxDP(epsilon, 1e-6)
    return [float(followed(paths_table(rows, loss), loss).release.sums[0, 0]) for _ in range(min(size, 200))]


CLEAR = dpc.PureDP(8)


def at_a_cutoff(table: dpc.Table, loss: Any = CLEAR) -> Any:
    return dpc.discontinuity(table, running="x", outcome="y", cutoff=0.1, treatment="a", loss=loss, bins=5)


def of_bins(side: int, epsilon: float, size: int) -> list[Any]:
    """Return the last corner of one bin less that of another, to which the replaced row moves."""
    rows = np.zeros((20_000, 4))
    rows[:, 3] = np.linspace(-1, 1, len(rows))
    rows[0, 2:] = (1, 1) if side else (-1, -1)
    loss, outputs = dpc.PureDP(epsilon), []
    for _ in range(min(size, 200)):
        counts = at_a_cutoff(table_of(rows, loss), loss).release.counts
        outputs.append(float(counts[0, -1, -1] - counts[0, 0, 0]))
    return outputs


TASKS = (
    TaskRow("discontinuity", "discontinuity", ("corner-counts", "geometric"),
            asked_on_neighbours(lambda table: at_a_cutoff(table).release.numbers(), CLEAR), of_bins, 0.0,
            ("sums by cells by the bound of a record added",)),
    TaskRow("did", "did", ("scale-histograms", "ellipse-moments", "cohort-sums", "gaussian"),
            asked_on_neighbours(lambda table: followed(table).release.numbers(), APPROXIMATE, paths_table), of_paths,
            0.0, ("cohorts with what was lost for nothing", "moments with free counts of shortened rows"), 1e-6),
    TaskRow("moments", "moments", ("scale-histograms", "ellipse-moments", "gaussian"),
            asked_on_neighbours(lambda table: joint(table).numbers(), APPROXIMATE), of_moments, 0.0,
            ("moments with free counts of shortened rows", "several scales by the bound of one"), 1e-6),
    TaskRow("cells", "cells", ("corner-counts", "geometric"), asked_on_neighbours(sums, PURE), of_cells, 0.4,
            ("sums by cells by the bound of a record added", "two numbers by the bound of one")),
    TaskRow("effect aipw", "effect",
            ("scale-histograms", "ellipse-moments", "corner-counts", "gaussian"),
            asked_on_neighbours(lambda table: plain_of(scored(table, APPROXIMATE)), APPROXIMATE),
            of_effect(scored, lambda epsilon: dpc.ApproxDP(epsilon, 1e-6), 6_000), 0.0,
            ("moments with free counts of shortened rows", "sums by cells by the bound of a record added"), 1e-6),
    TaskRow("effect boosted-aipw", "effect",
            ("scale-histograms", "ellipse-moments", "histograms", "residual-sums", "pair-functions", "capped-squares",
             "gaussian"),
            asked_on_neighbours(lambda table: plain_of(boosted_in_pairs(table)), APPROXIMATE),
            of_effect(boosted, lambda epsilon: dpc.ApproxDP(epsilon, 1e-6), 6_000), 0.0,
            ("residual sums by the bound of a record added", "pair functions by the bound of one model",
             "moments with free counts of shortened rows"), 1e-6),
    TaskRow("effect partially-linear", "effect", ("scale-histograms", "ellipse-moments", "gaussian"),
            asked_on_neighbours(lambda table: plain_of(sloped(table, APPROXIMATE)), APPROXIMATE),
            of_effect(sloped, lambda epsilon: dpc.ApproxDP(epsilon, 1e-6), 6_000), 0.0,
            ("moments with free counts of shortened rows", "several scales by the bound of one"), 1e-6),
    TaskRow("effect stratified", "effect", ("corner-counts", "geometric"),
            asked_on_neighbours(lambda table: plain_of(stratified(table, PURE)), PURE),
            of_effect(stratified, dpc.PureDP), 0.0, ("sums by cells by the bound of a record added",)),
    TaskRow("effect sample-aggregate", "effect", PROOFS,
            asked_on_neighbours(lambda table: plain_of(in_blocks(table, PURE)), PURE), of_blocks, 0.0,
            ("windows by the bound of a count", "windows about the mean of all rows",
             "block terms that are not clipped", "a failed block is left out", "blocks made by value")),
    TaskRow("effect trial, sizes", "effect", ("assigned-sum", "corner-counts", "geometric"),
            asked_on_neighbours(lambda table: plain_of(trial_by_sizes(table, PURE)), PURE),
            of_effect(trial_by_sizes, dpc.PureDP), 0.0,
            ("a difference of arms by one end of the range", "sums by cells by the bound of a record added")),
    TaskRow("effect trial, probabilities", "effect", ("centred-score", "corner-counts", "geometric"),
            asked_on_neighbours(lambda table: plain_of(trial_by_probabilities(table, PURE)), PURE),
            of_effect(trial_by_probabilities, dpc.PureDP), 0.0,
            ("a score by the reach of the treated", "sums by cells by the bound of a record added")),
    TaskRow("effect papers.FoldSplit", "effect", ("fold-split", "geometric"),
            asked_on_neighbours(lambda table: plain_of(in_folds(table, PURE)), PURE),
            of_effect(in_folds, dpc.PureDP), 0.0, ("folds by the range of the own score",)),
)  # fmt: skip


def plain_of(result: Any) -> Any:
    return {name: value for name, value in result.to_dict().items() if name != "guarantee"}


TRIALS = {"effect trial, sizes", "effect trial, probabilities"}
METHOD_WAYS = {f"effect {name}" for name in (*METHODS, *ASKED["effects"])}
WAYS = {"cells", "did", "discontinuity", "moments"} | METHOD_WAYS - {"effect trial"} | TRIALS
