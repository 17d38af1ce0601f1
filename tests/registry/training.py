"""Protected regressions and what is made of their residuals: claims with mutants, a mechanism, and ways of the call.

The bound on the regression holds for every map into unit vectors, so the rows fit on a map of three dimensions that
has the worst known records among its places: the record goes from (sin θ, cos θ, 0) to (−sin θ, cos θ, 0), the others
lie at (±a, 0, √(1 − a²)) with responses ±1.
"""

import math
from typing import Any

import numpy as np

from dpcausal.direction.scores.anm import typical_distance
from dpcausal.mechanisms.additive import laplace
from dpcausal.papers.direction import training
from dpcausal.papers.direction.holdout import released_margin
from dpcausal.papers.direction.training import training_sensitivity
from dpcausal.papers.mechanisms.propose_test_release import stable_threshold, stable_value
from dpcausal.papers.statistics.hsic import GAUSSIAN
from dpcausal.papers.statistics.iqr import interquartile_range
from dpcausal.papers.statistics.rank import kendall
from dpcausal.papers.statistics.stability import FeatureTable, fit_stable, prediction_sensitivity
from dpcausal.privacy.loss import ApproxDP, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.statistics.hsic import hsic, root_hsic
from tests.registry.direction import half_on_neighbours, two_clusters
from tests.registry.rows import MechanismRow, Rows, SensitivityRow, TaskRow, TextRow, allotted, by_falsifier, queried


def three_dimensions(angle: float, lean: float) -> FeatureTable:
    """Return a map with five places: the record's two, the place between them, and the others' two."""
    s, c, rest = math.sin(angle), math.cos(angle), math.sqrt(1 - lean**2)
    vectors = np.array([[s, c, 0], [lean, 0, rest], [0, 1, 0], [-lean, 0, rest], [-s, c, 0]])
    return FeatureTable(np.linspace(-1, 1, 5), vectors)


def leaning(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """The worst known records for such a map: the first is the one that will be replaced by (1, 1)."""
    signs = np.where(np.arange(m - 1) % 2 == 0, 1.0, -1.0)
    return np.vstack([[-1.0, -1.0], np.column_stack([-signs / 2, signs])])


WORST_ANGLE = {0.01: 0.75, 0.1: 0.65, 0.5: 0.5, 1.0: 0.45}


def worst_table(penalty: float) -> FeatureTable:
    return three_dimensions(WORST_ANGLE[penalty], math.sqrt(penalty / 2))


PENALTY = 0.5
HEAVY = 20.0
"""A ridge so heavy that one row moves predictions by a hundredth."""
TABLE = worst_table(PENALTY)
BOX: dict[str, Any] = {"low": -1.0, "high": 1.0, "starts": {"leaning": leaning}}


def predictions(rows: Rows, penalty: float = PENALTY) -> Rows:
    return fit_stable(rows[:, 0], rows[:, 1], penalty=penalty, table=TABLE).heights


def centred(rows: Rows) -> Any:
    mean = float(rows[:, 1].mean())
    return mean + predictions(rows - [0, mean], HEAVY)


N, LARGE = 400, 4.0
SHIFT = float(prediction_sensitivity(N, LARGE).bound)
"""How far N records and λ = 4 let a residual move: the row of each search below holds the moves in [0, 1]."""

GROUP = 6
HELD_X = HELD_Y = np.repeat([-0.9, 0.9], GROUP)
HELD_Z = np.arange(2.0 * GROUP)
LEFT = 0.2 * np.repeat([-1.0, 1.0], GROUP)


def apart(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """Residuals of one direction that move together inwards, those of the other outwards."""
    half = np.repeat([0.0, 1.0], GROUP)
    return np.concatenate([half, 1 - half])[None, :]


def moved(rows: Rows, shift: float) -> tuple[Rows, Rows]:
    return LEFT + shift * (rows[0, : 2 * GROUP] - 0.5), LEFT + shift * (rows[0, 2 * GROUP :] - 0.5)


def of_scores(rows: Rows) -> float:
    forward, backward = training.root_scores(HELD_X, HELD_Y, *moved(rows, SHIFT))
    return backward - forward


def own_bandwidth(rows: Rows) -> float:
    """The width of the residuals' kernel is that of the training responses: a row changes the kernel itself."""
    x, y = rows.T
    left, width = LEFT - fit_stable(x, y, penalty=HEAVY, table=TABLE)(HELD_X), typical_distance(y, 1.0)
    box = {"range_x": training.RANGE, "range_y": training.RESIDUAL_RANGE}
    return root_hsic(HELD_X, left, kernel=GAUSSIAN, width_x=0.4, width_y=width, **box)


def of_ranges(rows: Rows) -> float:
    return training.iqr_margin(HELD_X, HELD_Y, *moved(rows, SHIFT))


def log_ranges(rows: Rows) -> float:
    left_y, left_x = moved(rows, SHIFT)
    return math.log(interquartile_range(left_x)) - math.log(interquartile_range(left_y))


RANK_SHIFT = 8 / N
"""What Theorem 5 allows at λ = 1."""

SPREAD = np.arange(2 * GROUP) * 4.2 * RANK_SHIFT
CLOSE = np.arange(2 * GROUP) * 0.8 * RANK_SHIFT


def of_ranks(rows: Rows) -> Rows:
    left_y, left_x = (SPREAD + RANK_SHIFT * (part - 0.5) for part in np.split(rows[0], 2))
    steps = training.rank_distance(training.rank_gap(left_y, left_x), N, 1.0)
    # Any change of the order is to show: a change of 1e-3 in a score counts as more than a step.
    return np.array([steps, 1e4 * (kendall(HELD_Z, left_y) + 3 * kendall(HELD_Z, left_x))])


def by_gaps(rows: Rows, of_values: bool = True) -> Any:
    left = CLOSE + RANK_SHIFT * (rows[0, : 2 * GROUP] - 0.5)
    gap = training.rank_gap(left) if of_values else 1.0
    return np.array([training.rank_distance(gap, N, 1.0), 1e4 * kendall(HELD_Z, left)])


def of_published(rows: Rows) -> float:
    m = 2 * GROUP
    left, _ = moved(rows, RANK_SHIFT)
    box = {"range_x": training.RANGE, "range_y": training.RESIDUAL_RANGE}
    return (m / (m - 1)) ** 2 * hsic(HELD_X, left, kernel=GAUSSIAN, width_x=0.4, width_y=0.4, **box)


RANK_CLAIM = Sensitivity(1, Norm.TESTED, Relation.REPLACE_ONE, "training-ranks", Unit.TRAINING_ROW)
RANGES: dict[str, Any] = {"columns": 4 * GROUP, "starts": {"apart": apart}}
ONE_ROW: dict[str, Any] = {"sizes": (1,), **RANGES}
GAPS: dict[str, Any] = {"sizes": (1,), "norm": Norm.TESTED, "columns": 2 * GROUP}
FIT: dict[str, Any] = {"sizes": (21,), "norm": Norm.LINF, **BOX}


def heavy_bound(m: int) -> Any:
    return prediction_sensitivity(m, HEAVY).bound


SENSITIVITIES = (
    SensitivityRow("ridge-stability", predictions, lambda m: prediction_sensitivity(m, PENALTY), (21,), 0.85, (
        by_falsifier("0.8 of the regression's bound", predictions,
                     lambda m: 0.8 * prediction_sensitivity(m, PENALTY).bound, **FIT),
        by_falsifier("a regression centred by its training mean", centred, heavy_bound, evaluations=400, **FIT),
    ), BOX),
    SensitivityRow("training-difference", of_scores, lambda m: training_sensitivity(N, 2 * GROUP, LARGE), (1,), 0.3, (
        by_falsifier("a residual bandwidth from the training rows", own_bandwidth,
                     lambda m: training_sensitivity(m, 2 * GROUP, HEAVY).bound, sizes=(64,), evaluations=200, low=-1.0,
                     starts={"clusters": two_clusters}),
        by_falsifier("a third of the training bound", of_scores,
                     lambda m: training_sensitivity(N, 2 * GROUP, LARGE).bound / 3, evaluations=200, **ONE_ROW),
    ), RANGES),
    SensitivityRow("training-iqr", of_ranges, lambda m: training.iqr_sensitivity(N, LARGE), (1,), 0.99, (
        by_falsifier("log ranges by the bound of ranges", log_ranges,
                     lambda m: training.iqr_sensitivity(N, LARGE).bound, evaluations=400, **ONE_ROW),
    ), RANGES),
    SensitivityRow("training-ranks", of_ranks, lambda m: RANK_CLAIM, (1,), 1, (
        by_falsifier("stable ranks by gaps between ranks", lambda rows: by_gaps(rows, False), 1, evaluations=400,
                     **GAPS),
    ), RANGES),
    SensitivityRow("hsic-training-published", of_published,
                   lambda m: training.published_hsic_sensitivity(N, 2 * GROUP, 1.0), (1,), 1e-3,
                   ("residuals of a regression on the test rows",), RANGES),
)  # fmt: skip
"""``reached``: each slack stands on its page; Theorem 7 is thousands of times too large."""

TEXTS = (TextRow("ridge-rounding", "lemma", "an error bound inside the sensitivity of ridge-stability"),)
MUTANTS = ()
CONTROLS = (
    by_falsifier("a regression without an intercept", lambda rows: predictions(rows, HEAVY), heavy_bound,
                 evaluations=800, **FIT),
    by_falsifier("stable ranks by gaps between values", by_gaps, 1, evaluations=1_500, **GAPS),
)  # fmt: skip

STABLE_DELTA = 1e-6
PASSES = float(stable_threshold(ApproxDP(1.0, STABLE_DELTA)))


def stable_draws(answer: Any, epsilon: float, size: int, share: float) -> list[float | None]:
    loss = ApproxDP(round(epsilon / share, 9), STABLE_DELTA)
    query, budget = queried(np.array(answer, dtype=np.float64), Norm.TESTED), allotted(loss, size)
    found = (stable_value(query, budget, loss) for _ in range(size))
    return [None if one is None else float(one[0]) for one in found]


MECHANISMS = (
    MechanismRow("stable-value", "propose_test_release:stable_value", "stable-value",
                 ((PASSES, 0.5), (PASSES + 1, 0.5)), stable_draws,
                 ("geometric noise at twice the ε", "stable ranks by gaps between ranks"),
                 delta=lambda epsilon: STABLE_DELTA, draws=6_000),
)  # fmt: skip

# The calls.


def of_margins(bound: Sensitivity) -> Any:
    """Return released margins that are a bound apart on the two sides: everything after the scores."""

    def draw(side: int, epsilon: float, size: int) -> list[Any]:
        margin, loss = side * float(bound.bound) * (1 - 1e-12), PureDP(epsilon)
        budget = allotted(loss, size, bound.unit)
        found = [released_margin(margin, bound, budget, loss).margin for _ in range(size)]
        return [one / float(bound.bound) for one in found]  # type: ignore[operator]

    return draw


def of_both(both: Sensitivity) -> Any:
    """Return the difference of two released scores that share a bound in l1, all of it in the first."""

    def draw(side: int, epsilon: float, size: int) -> list[Any]:
        loss = PureDP(epsilon)
        query = Query(np.array([side * float(both.bound) * (1 - 1e-12), 0.0]), both, "scores")
        budget = allotted(loss, size, both.unit)
        return [float(laplace(query, budget, loss)[0]) / float(both.bound) for _ in range(size)]

    return draw


def of_rank_scores(side: int, epsilon: float, size: int) -> list[Any]:
    """Return whether rank scores are released at a distance of one step and of two."""
    loss = ApproxDP(epsilon, 1e-6)
    query, budget = Query(np.array([1.0 + side, 0.5, 0.5]), RANK_CLAIM, "rank scores"), allotted(
        loss, size, Unit.TRAINING_ROW)  # fmt: skip
    return [stable_value(query, budget, loss) is None for _ in range(size)]


def row(name: str, claims: tuple[str, ...], draw: Any, attained: float = 0.6, **options: Any) -> TaskRow:
    return TaskRow(f"direction training {name}", "direction", claims, half_on_neighbours("training", **options), draw,
                   attained)  # fmt: skip


MARGIN = training.training_sensitivity(1000, 1000, 1.0)
TASKS = (
    row("hsic", training.CLAIMS["hsic"], of_margins(MARGIN)),
    row("hsic scores", training.CLAIMS["hsic"], of_both(MARGIN), release_scores=True),
    row("iqr", training.CLAIMS["iqr"], of_margins(training.iqr_sensitivity(1000, 1.0)), score="iqr"),
    row("iqr scores", training.CLAIMS["iqr"], of_both(training.iqr_sensitivity(1000, 1.0, ranges=2)), score="iqr",
        release_scores=True),
    row("published hsic", ("hsic-training-published", "laplace"),
        of_both(training.published_hsic_sensitivity(1000, 1000, 1.0)), published=True),
    *(row(f"published {score}", ("training-ranks", "stable-value"), of_rank_scores, 0.0, published=True, score=score,
          loss=ApproxDP(1, 1e-6)) for score in ("spearman", "kendall")),
)  # fmt: skip
"""The audit's pairs are margins a whole bound apart: how near data come to it is the falsifier's question."""

WAYS = {row.name for row in TASKS}
