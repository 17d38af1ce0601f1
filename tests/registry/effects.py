"""Effects: the claims about their sums, each with its mutants, and each way of their calls."""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

import dpcausal as dpc
from dpcausal.data.records import Rows as Records
from dpcausal.effects import clusters
from dpcausal.effects.cells.corner_counts import GRID, corner_counts, corner_counts_sensitivity, corners
from dpcausal.effects.did.cohort_sums import cohort_sums, cohort_sums_sensitivity
from dpcausal.effects.estimators import METHODS
from dpcausal.effects.estimators import trial_design as trial
from dpcausal.effects.estimators.block_effects import PROOFS, Slope
from dpcausal.effects.estimators.sample_aggregate import SampleAggregate
from dpcausal.effects.moments import adaptive
from dpcausal.effects.moments.adaptive import WHOLE, ellipse_bits
from dpcausal.effects.nuisance import residual_sums as fits
from dpcausal.effects.question import EffectQuestion
from dpcausal.papers import BY_TASK
from dpcausal.papers.effects import fold_split as folded
from dpcausal.papers.effects.fold_split import averages, fold_split, fold_split_sensitivity
from dpcausal.privacy.sensitivity import Norm
from dpcausal.statistics.moments import grid_bits
from tests.effects.tables import adjusted_by
from tests.registry.rows import Neighbours, Rows, Search, SensitivityRow, TaskRow, by_falsifier, replaced

LOW, HIGH = np.zeros(4), np.array([1.0, 2.0, 1.0, 1.0])
"""A cell of two columns, a number, and whether the row is kept."""

IN_CELLS: dict[str, Any] = {"columns": 4, "high": HIGH.tolist()}
IN_BINS: dict[str, Any] = {"columns": 4, "low": [0.0, -1.0, -1.0, 0.0], "high": [2.0, 1.0, 1.0, 1.0]}
OF_GROUPS: dict[str, Any] = {"columns": 3, "low": [0.0, -1.0, 0.0], "high": [2.0, 1.0, 1.0]}
OF_PAIRS: dict[str, Any] = {"columns": 5, "low": [-1.0, -1.0, -1.0, -1.0, 0.0], "high": [1.0] * 5}
OF_SQUARES: dict[str, Any] = {"columns": 3, "low": [-1.0, -1.0, 0.0], "high": [2.0, 2.0, 1.0]}
OF_COLUMNS: dict[str, Any] = {"columns": 3, "low": 0.0, "high": [2.0, 2.0, 1.0]}
OF_SCALES: dict[str, Any] = {"columns": 3, "low": -1.0, "high": 1.0}
L1, L2 = {"norm": Norm.L1, "sizes": (5, 9)}, {"norm": Norm.L2, "sizes": (5, 9)}


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
    return trial.assigned_sum(rows[:, 2], WEIGHTS[codes[:, 0], codes[:, 1]], np.where(rows[:, 3] >= 0.5, GRID, 0))


CENTRES, CHANCES = np.array([[0.1, 0.4, 0.2], [0.6, 0.3, 0.2]]), np.array([[0.7, 0.5, 0.8], [0.3, 0.5, 0.2]])
GAPS = CENTRES[1] - CENTRES[0]
REACH = max(*(GAPS + (1 - CENTRES[1]) / CHANCES[1]), *(GAPS + CENTRES[0] / CHANCES[0]))
BELOW = min(*(GAPS - CENTRES[1] / CHANCES[1]), *(GAPS - (1 - CENTRES[0]) / CHANCES[0]))


def scores_of(rows: Rows) -> Any:
    """Return the sum of a number's centred scores; a row below a half in the last column is left out."""
    a, z = np.rint(rows[:, :2]).astype(np.int64).T
    scores = GAPS[z] + (2 * a - 1) * (np.clip(rows[:, 2], 0, 1) - CENTRES[a, z]) / CHANCES[a, z]
    return trial.centred_score(scores / (REACH - BELOW), -BELOW / (REACH - BELOW), np.where(rows[:, 3] >= 0.5, GRID, 0))


RADIUS = 1.5


def moments_of(rows: Rows) -> Any:
    """Return the moments of two numbers; a row below −2 in the last column is left out."""
    return adaptive.ellipse_moments(rows[:, :2].copy(), rows[:, 2] >= -2, RADIUS, ellipse_bits(len(rows), RADIUS))


def shortened_apart(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """Rows that are all shortened, one at the angle that moves the most."""
    rows = np.zeros((m, len(low)))
    rows[:, 0] = 2.9
    rows[0, :2] = 2.9 * np.array([-0.3056, 0.9522])
    return rows


APART: dict[str, Any] = {"low": -3.0, "high": 3.0, "starts": {"apart": shortened_apart}}


def scales_of(rows: Rows) -> Any:
    return adaptive.scale_histograms(rows[:, :2].copy(), WHOLE * (rows[:, 2] >= -0.5)).ravel()


def paths_of(rows: Rows) -> Any:
    """Return the sums of two numbers by two cohorts, by the sign of the third; below −2 in the last, it is left out."""
    bits = grid_bits(len(rows), RADIUS)
    cohorts = (rows[:, 2] >= 0).astype(np.int64)
    return cohort_sums(cohorts, 2, rows[:, :2].copy(), rows[:, 3] >= -2, RADIUS, bits)


def masses_of(rows: Rows) -> Any:
    """Return the mass of each row; a row below a half in the last column is left out."""
    return np.where(rows[:, -1] >= 0.5, GRID, 0)


def histograms_of(rows: Rows) -> Any:
    return fits.histograms(np.rint(rows[:, :2]).astype(np.int64), (3, 3), masses_of(rows))


def residuals_of(rows: Rows) -> Any:
    """Return the sums of two residuals by three bins."""
    return fits.residual_sums(np.rint(rows[:, 0]).astype(np.int64), 3, rows[:, 1:3].copy(), masses_of(rows)).ravel()


def pairs_of(rows: Rows) -> Any:
    """Return the sums of two residuals times two functions."""
    return fits.pair_functions(rows[:, :2].copy(), rows[:, 2:4].copy(), masses_of(rows)).ravel()


def squares_of(rows: Rows) -> Any:
    return fits.capped_squares(rows[:, :2].copy(), masses_of(rows))


ENDS = np.array([0, GRID // 2, GRID, 2 * GRID, 4 * GRID, 8 * GRID, 16 * GRID])


def sums_of_groups(rows: Rows) -> Any:
    """Return the score sums of three groups; a row below a half in the last column is left out."""
    groups, kept = np.rint(rows[:, 0]).astype(np.int64), rows[:, -1] >= 0.5
    return clusters.group_sums(rows[:, 1].copy(), Records({}, kept, {}, groups=groups))


def layers_of(rows: Rows) -> Any:
    return clusters.group_layers(sums_of_groups(rows), ENDS)


def squares_by_groups(rows: Rows) -> Any:
    return np.array([np.square(sums_of_groups(rows) / GRID).sum() * GRID])


LEAST = 0.1


def as_told(x: Rows, _a: Any, _y: Any) -> Any:
    """Return models that say what one record tells, the means with the other sign of records of the other place."""

    def predicted(every: Rows) -> Any:
        values, sign = np.zeros(3) if len(x) == 0 else x[0, 1:], np.where(every[:, 0] < 0.5, 1.0, -1.0)
        return sign * values[0], sign * values[1], np.full(len(every), values[2])

    return predicted


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


TELLING: dict[str, Any] = {
    "columns": 7, "low": [0.0, 0.0, -1.0, -1.0, -1.0, 0.0, 0.0], "high": [1.0] * 7,
    "starts": {"one fold apart": one_fold_apart},
}  # fmt: skip
"""Place, arm and outcome of a record, the two means and the probability that its fold's model says, whether kept."""

SENSITIVITIES = (
    SensitivityRow("fold-split", of_folds("aipw"), lambda m: fold_split_sensitivity("aipw", m, m, LEAST), (4, 9),
                   0.99, (
        by_falsifier("folds by the range of the own score", of_folds("aipw"),
                     2 * folded.GRID * folded.reach("aipw", LEAST), norm=Norm.L1, **TELLING),
        by_falsifier("folds by 0.95 of their bound", of_folds("aipw"),
                     lambda m: 0.95 * fold_split_sensitivity("aipw", m, m, LEAST).bound, norm=Norm.L1, **TELLING),
    ), TELLING),
    SensitivityRow("cohort-sums", paths_of, lambda m: cohort_sums_sensitivity(2, 2, RADIUS, grid_bits(m, RADIUS)),
                   (4, 9), 0.99, (
        by_falsifier("cohorts with what was lost for nothing", paths_of,
                     lambda m: 2 * 2 ** grid_bits(m, RADIUS) * RADIUS, norm=Norm.L2, columns=4, **APART),
    ), {"columns": 4, **APART}),
    SensitivityRow("group-layers", layers_of, lambda m: clusters.group_layers_sensitivity(), (4, 9), 0.99, (
        by_falsifier("layers by 0.95 of their bound", layers_of, 1.9 * GRID, **L2, **OF_GROUPS),
        by_falsifier("squares of group sums by the bound of layers", squares_by_groups, 2 * GRID, **L1, **OF_GROUPS),
    ), OF_GROUPS),
    SensitivityRow("histograms", histograms_of, lambda m: fits.histograms_sensitivity(2), (4, 9), 0.99, (
        by_falsifier("histograms by the bound of one column", histograms_of, 2**0.5 * GRID, **L2, **OF_COLUMNS),
    ), OF_COLUMNS),
    SensitivityRow("residual-sums", residuals_of, lambda m: fits.residual_sums_sensitivity(2), (4, 9), 0.99, (
        by_falsifier("residual sums by the bound of a record added", residuals_of, 2**0.5 * GRID, **L2, **IN_BINS),
        by_falsifier("residual sums by 0.95 of their bound", residuals_of,
                     0.95 * fits.residual_sums_sensitivity(2).bound, **L2, **IN_BINS),
        by_falsifier("residual sums in l1 by the bound of one residual", residuals_of, 2 * GRID, **L1, **IN_BINS),
    ), IN_BINS),
    SensitivityRow("pair-functions", pairs_of, lambda m: fits.pair_functions_sensitivity(2, 2), (4, 9), 0.99, (
        by_falsifier("pair functions by the bound of one model", pairs_of, 2 * 2**0.5 * GRID, **L2, **OF_PAIRS),
    ), OF_PAIRS),
    SensitivityRow("capped-squares", squares_of, lambda m: fits.capped_squares_sensitivity(2), (4, 9), 0.99, (
        by_falsifier("two squares by the bound of one", squares_of, GRID, **L2, **OF_SQUARES),
    ), OF_SQUARES),
    SensitivityRow("scale-histograms", scales_of, lambda m: adaptive.scale_histograms_sensitivity(2), (4, 9), 0.99, (
        by_falsifier("several scales by the bound of one", scales_of, 2**0.5 * WHOLE, norm=Norm.L2, **OF_SCALES),
    ), OF_SCALES),
    SensitivityRow("ellipse-moments", moments_of,
                   lambda m: adaptive.ellipse_moments_sensitivity(RADIUS, ellipse_bits(m, RADIUS), 2), (4, 9), 0.99, (
        by_falsifier("moments with free counts of shortened rows", moments_of,
                     lambda m: 2**0.5 * 1.25 * (2 ** ellipse_bits(m, RADIUS) * RADIUS) ** 2, norm=Norm.L2, columns=3,
                     **APART),
    ), {"columns": 3, **APART}),
    SensitivityRow("assigned-sum", difference_of, lambda m: trial.assigned_sum_sensitivity(), (4, 9), 0.99, (
        by_falsifier("a difference of arms by one end of the range", difference_of, 2 * GRID - GRID // 10, **L1,
                     **IN_CELLS),
    ), IN_CELLS),
    SensitivityRow("centred-score", scores_of, lambda m: trial.centred_score_sensitivity(), (4, 9), 0.99, (
        by_falsifier("a score by the reach of the treated", scores_of, GRID - GRID // 20, **L1, **IN_CELLS),
    ), IN_CELLS),
    SensitivityRow("corner-counts", sums_by_cell, lambda m: corner_counts_sensitivity(1), (4, 9), 0.99, (
        by_falsifier("sums by cells by the bound of a record added", sums_by_cell, GRID, **L1, **IN_CELLS),
        by_falsifier("two numbers by the bound of one", of_two_numbers, 2 * GRID, **L1, **IN_CELLS),
    ), IN_CELLS),
)  # fmt: skip
MUTANTS = ()
CONTROLS = (
    by_falsifier("two numbers by their bound", of_two_numbers, corner_counts_sensitivity(2).bound, **L1, **IN_CELLS),
    by_falsifier("residual sums by their bound in l1", residuals_of,
                 fits.residual_sums_sensitivity(2, Norm.L1).bound, **L1, **IN_BINS),
    by_falsifier("layers by their bound in l1", layers_of, 2 * GRID, **L1, **OF_GROUPS),
)

# The calls.

PURE, CLEAR, APPROXIMATE = dpc.PureDP(1), dpc.PureDP(8), dpc.ApproxDP(20, 1e-6)
SCHEMA = dpc.Schema({
    "a": dpc.Levels([0, 1]), "z": dpc.Levels([0, 1, 2]), "y": dpc.Bounded(-1, 1), "x": dpc.Bounded(-1, 1),
})  # fmt: skip
PERIODS = dpc.Schema({"t": dpc.Levels([0, 1, 2]), "g": dpc.Levels([1, 9]), "y": dpc.Bounded(-1, 1),
                      "x": dpc.Bounded(-1, 1)})  # fmt: skip
LOWEST, HIGHEST = np.array([0.0, 0.0, -1.0, -1.0]), np.array([1.0, 2.0, 1.0, 1.0])
ROWS = 400


def table_of(rows: Rows, loss: Any) -> dpc.Table:
    columns = {"a": np.rint(rows[:, 0]).astype(np.int64), "z": np.rint(rows[:, 1]).astype(np.int64)}
    columns |= {"y": rows[:, 2].copy(), "x": rows[:, 3].copy()}
    return dpc.Table(columns, SCHEMA, dpc.Ledger.in_memory(loss, accept_large_epsilon=True))


def paths_table(rows: Rows, loss: Any) -> dpc.Table:
    """Return a table of persons, each the cohort and two steps of a row, and a last period that is missing above 1."""
    n = len(rows)
    levels = np.column_stack([np.zeros(n), rows[:, 2], np.where(rows[:, 1] > 1.5, np.nan, rows[:, 3])])
    columns = {"id": np.repeat(np.arange(n), 3), "t": np.tile(np.arange(3), n), "y": levels.ravel(),
               "g": np.repeat(np.where(rows[:, 0] >= 0.5, 1, 9), 3), "x": np.repeat(rows[:, 3], 3)}  # fmt: skip
    ledger = dpc.Ledger.in_memory(loss, person="id", accept_large_epsilon=True)
    return dpc.Table(columns, PERIODS, ledger, person="id")


def on_neighbours(ask: Callable[[Rows], Any]) -> Neighbours:
    """Return the grey box of a call: one row is replaced by a corner of the domain."""

    def pair(seed: int) -> tuple[Rows, Rows]:
        rng = np.random.default_rng(seed)
        rows = rng.uniform(LOWEST, HIGHEST, (ROWS, 4)) if seed % 2 else np.tile(LOWEST, (ROWS, 1))
        new = rng.choice([0.0, 1.0], 4) * (HIGHEST - LOWEST) + LOWEST
        return rows, replaced(rows, int(rng.integers(ROWS)), new)

    return Neighbours(pair, Search(ask, ROWS, LOWEST, HIGHEST))


def of_effect(call: Callable[[dpc.Table, Any], Any], loss_of: Callable[[float], Any], length: int) -> Any:
    """Return the difference of two means, moved as far as a row can."""

    def draw(side: int, epsilon: float, size: int) -> list[Any]:
        rows = np.zeros((length, 4))
        rows[::2, 0] = 1
        rows[:, 3] = np.linspace(-1, 1, length)
        rows[0, 2] = 2 * side - 1
        loss = loss_of(epsilon)
        return [call(table_of(rows, loss), loss).estimate or 0.0 for _ in range(min(size, 200))]

    return draw


def effect_row(name: str, claims: tuple[str, ...], loss: Any = PURE, length: int = ROWS, draw: Any = None,
               more: tuple[str, ...] = (), **options: Any) -> TaskRow:  # fmt: skip
    """Return the row of a way of ``effect``; ``more`` columns are adjusted for on neighbours only."""
    question = {"treatment": "a", "outcome": "y", "adjust": [], **options}

    def call(table: dpc.Table, loss: Any) -> Any:
        return dpc.effect(table, loss=loss, **question)

    def ask(rows: Rows) -> dict[str, Any]:
        adjust = [*question["adjust"], *more]
        answer = dpc.effect(table_of(rows, loss), loss=loss, **question | {"adjust": adjust})
        return {key: value for key, value in answer.to_dict().items() if key != "guarantee"}

    of_loss: Any = partial(dpc.ApproxDP, delta=1e-6) if loss is APPROXIMATE else dpc.PureDP
    delta = 1e-6 if loss is APPROXIMATE else 0.0
    return TaskRow(f"effect {name}", "effect", claims, on_neighbours(ask), draw or of_effect(call, of_loss, length),
                   delta=delta)  # fmt: skip


def of_blocks(side: int, epsilon: float, size: int) -> list[Any]:
    """Return the mean over blocks, one of whose answers goes from one end to the other."""
    loss, outputs = dpc.PureDP(epsilon), []
    rows = np.zeros((ROWS, 4))
    rows[:, 2] = [2 * side - 1, *[-1] * (ROWS - 1)]
    with mock.patch.object(SampleAggregate, "answer", lambda self, rows: Slope(2 * float(rows.outcome.max()) - 1, 0.0)):
        for _ in range(min(size, 200)):
            answer = dpc.effect(table_of(rows, loss), treatment="a", outcome="y", adjust=["x", "z"], loss=loss,
                                method=BLOCKS)  # fmt: skip
            outputs.append(answer.estimate or 0.0)
    return outputs


BLOCKS = dpc.methods.SampleAggregate(blocks=20, terms="lines")


def of_cells(side: int, epsilon: float, size: int) -> list[Any]:
    """Return the lesser of two lead counts, each moved by the replaced row."""
    loss, outputs = dpc.PureDP(epsilon), []
    a, schema = np.array([side, *[0] * 9, *[1] * 10]), dpc.Schema({"a": dpc.Levels([0, 1])})
    for _ in range(size):
        table = dpc.Table({"a": a}, schema, dpc.Ledger.in_memory(loss, accept_large_epsilon=True))
        counts = dpc.cells(table, by=["a"], loss=loss).counts
        outputs.append(float(min(counts[0, 0] - 10, 10 - counts[1, 0])))
    return outputs


def joint(rows: Rows, loss: Any = APPROXIMATE, *levels: str) -> Any:
    return dpc.moments(table_of(rows, loss), ["y", "x", *levels], robust_for=("y", ["x", *levels]), loss=loss)


def of_moments(side: int, epsilon: float, size: int) -> list[Any]:
    """Return the first released product of two numbers in step, but for a row."""
    line = np.linspace(-1, 1, 2_000)
    rows = np.column_stack([np.zeros((2_000, 2)), line, line])
    rows[0, 2:] = 2 * side - 1, 1
    return [float(joint(rows, dpc.ApproxDP(epsilon, 1e-6)).sums[0, 1]) for _ in range(min(size, 200))]


def of_levels(side: int, epsilon: float, size: int) -> list[Any]:
    """Return the released number of the last level, to or from which a row goes."""
    rows = np.column_stack([np.zeros((2_000, 2)), *[np.linspace(-1, 1, 2_000)] * 2])
    rows[0, 1] = 2 * side
    return [float(joint(rows, dpc.ApproxDP(epsilon, 1e-6), "z").sums[-2, -2]) for _ in range(min(size, 200))]


def followed(rows: Rows, loss: Any = APPROXIMATE, **given: Any) -> Any:
    return dpc.did(paths_table(rows, loss), time="t", outcome="y", cohort="g", loss=loss, **given).release


def of_paths(side: int, epsilon: float, size: int) -> list[Any]:
    """Return the first cohort's sum of the first step, moved as far as a person can."""
    line = np.linspace(-1, 1, 300)
    rows = np.column_stack([np.arange(300) % 2, np.zeros(300), line, line[::-1]])
    rows[1, 2:] = 2 * side - 1, 1 - 2 * side
    return [float(followed(rows, dpc.ApproxDP(epsilon, 1e-6)).sums[0, 0]) for _ in range(min(size, 200))]


def at_a_cutoff(rows: Rows, loss: Any = CLEAR, treatment: str | None = "a") -> Any:
    return dpc.discontinuity(table_of(rows, loss), running="x", outcome="y", cutoff=0.1, treatment=treatment,
                             loss=loss, bins=5).release  # fmt: skip


def of_bins(side: int, epsilon: float, size: int) -> list[Any]:
    """Return the last corner of one bin less that of another, to which the replaced row moves."""
    rows = np.zeros((20_000, 4))
    rows[:, 3] = np.linspace(-1, 1, len(rows))
    rows[0, 2:] = (1, 1) if side else (-1, -1)
    found = [at_a_cutoff(rows, dpc.PureDP(epsilon), None).counts for _ in range(min(size, 200))]
    return [float(counts[0, -1, -1] - counts[0, 0, 0]) for counts in found]


def by_list(kind: Any) -> TaskRow:
    """Return the row of an estimator that is listed and needs nothing else: its own claims, of what it answers."""
    loss, length = (APPROXIMATE, 6_000) if dpc.PureDP not in kind.losses else (PURE, ROWS)
    table = table_of(np.zeros((ROWS, 4)), loss)
    adjust = adjusted_by(kind(), table, loss, (["z"], ["x"], []))
    question = EffectQuestion.of(table, "a", "y", adjust, None, "ate", None, None, 0.95)
    return effect_row(kind.name, kind().proofs_of(question, loss), loss, length, adjust=adjust, method=kind.name)


def release_row(name: str, claims: tuple[str, ...], ask: Any, draw: Any, delta: float = 1e-6, **more: Any) -> TaskRow:
    """Return the row of a call by the numbers of its release."""
    neighbours = on_neighbours(lambda rows: ask(rows).numbers())
    return TaskRow(name, name.split(",")[0], claims, neighbours, draw, delta=delta, **more)


ELLIPSE = ("scale-histograms", "ellipse-moments")
PATHS = (*ELLIPSE, "cohort-sums", "gaussian")
LISTED = (
    release_row("discontinuity", ("corner-counts", "geometric"), at_a_cutoff, of_bins, 0.0),
    release_row("did", PATHS, followed, of_paths),
    release_row("did, adjusted", PATHS, partial(followed, adjust=["x"]), of_paths),  # by the last outcome
    release_row("moments", (*ELLIPSE, "gaussian"), joint, of_moments),
    release_row("moments, levels", (*ELLIPSE, "gaussian"), lambda rows: joint(rows, APPROXIMATE, "z"), of_levels),
    release_row("cells", ("corner-counts", "geometric"), lambda rows: dpc.cells(
        table_of(rows, PURE), by=["a", "z"], values=["y", "x"], loss=PURE), of_cells, 0.0, attained=0.4),
    effect_row("aipw", (*ELLIPSE, "corner-counts", "gaussian"), APPROXIMATE, 6_000, adjust=["x"], groups="z",
               method="aipw"),
    effect_row("boosted-aipw", (*ELLIPSE, "histograms", "residual-sums", "pair-functions", "capped-squares",
                                "gaussian"), APPROXIMATE, 6_000, adjust=["x"], more=("z",), method="boosted-aipw"),
    effect_row("partially-linear", (*ELLIPSE, "gaussian"), APPROXIMATE, 6_000, adjust=["x", "z"],
               method="partially-linear"),
    effect_row("stratified, clusters", ("corner-counts", "group-layers", "geometric"), adjust=["z"], cluster="z",
               method="stratified"),
    effect_row("boosted-aipw, clusters", (*ELLIPSE, "histograms", "residual-sums", "capped-squares", "group-layers",
                                          "gaussian"), APPROXIMATE, 6_000, adjust=["x"], cluster="z",
               method="boosted-aipw"),
    effect_row("sample-aggregate", PROOFS, draw=of_blocks, adjust=["x", "z"], method=BLOCKS),
    effect_row("trial, sizes", ("assigned-sum", "corner-counts", "geometric"),
               method=dpc.methods.RandomizedTrial(sizes=[ROWS // 2, ROWS // 2])),
    effect_row("trial, probabilities", ("centred-score", "corner-counts", "geometric"), adjust=["z"],
               method=dpc.methods.RandomizedTrial(probabilities=[0.5, 0.5])),
    effect_row("papers.FoldSplit", ("fold-split", "geometric"), adjust=["x"], method=dpc.papers.FoldSplit(folds=8)),
)  # fmt: skip
METHOD_WAYS = {f"effect {name}" for name in (*METHODS, *BY_TASK["effects"])} - {"effect trial"}
TASKS = LISTED + tuple(by_list(kind) for name, kind in METHODS.items()
                       if f"effect {name}" in METHOD_WAYS - {row.name for row in LISTED})  # fmt: skip
WAYS = METHOD_WAYS | {
    "cells", "did", "did, adjusted", "discontinuity", "moments", "moments, levels", "effect trial, sizes",
    "effect trial, probabilities",
    "effect stratified, clusters", "effect boosted-aipw, clusters",
}  # fmt: skip
