"""Claims about protected regressions and what is made of their residuals: the falsifier's rows, and a mechanism's.

The bound on the regression holds for every map into unit vectors, so the rows fit on a map of three dimensions that
has the worst known records among its places: the record goes from (sin θ, cos θ, 0) to (−sin θ, cos θ, 0), the others
lie at (±a, 0, √(1 − a²)) with responses ±1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcausal.papers.direction import anm_training_privacy as published
from dpcausal.papers.direction import stable, training
from dpcausal.papers.direction.stable import training_sensitivity
from dpcausal.papers.mechanisms.stable_value import stable_threshold, stable_value
from dpcausal.papers.statistics.hsic import GAUSSIAN
from dpcausal.papers.statistics.rank import kendall
from dpcausal.papers.statistics.stability import FeatureTable, fit_stable, prediction_sensitivity
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ApproxDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity, Unit
from dpcausal.statistics.hsic import hsic
from tests.registry.rows import MechanismRow, SensitivityRow, TextRow

Rows = Any


def three_dimensions(angle: float, lean: float) -> FeatureTable:
    """Return a map with five places: the record's two, the place between them, and the others' two."""
    s, c, rest = math.sin(angle), math.cos(angle), math.sqrt(1 - lean**2)
    vectors = np.array([[s, c, 0], [lean, 0, rest], [0, 1, 0], [-lean, 0, rest], [-s, c, 0]])
    return FeatureTable(np.linspace(-1, 1, 5), vectors)


def leaning(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """The worst known records for such a map: the first is the one that will be replaced by (1, 1)."""
    rows = np.empty((m, 2))
    rows[0] = -1.0, -1.0
    rows[1:, 0] = np.where(np.arange(m - 1) % 2 == 0, -0.5, 0.5)
    rows[1:, 1] = np.where(np.arange(m - 1) % 2 == 0, 1.0, -1.0)
    return rows


WORST_ANGLE = {0.01: 0.75, 0.1: 0.65, 0.5: 0.5, 1.0: 0.45}


def worst_table(penalty: float) -> FeatureTable:
    return three_dimensions(WORST_ANGLE[penalty], math.sqrt(penalty / 2))


PENALTY = 0.5
TABLE = worst_table(PENALTY)
BOX = {"low": -1.0, "high": 1.0, "starts": {"leaning": leaning}}


def predictions(rows: Rows) -> Rows:
    return fit_stable(rows[:, 0], rows[:, 1], penalty=PENALTY, table=TABLE).heights


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
    forward, backward = stable.root_scores(HELD_X, HELD_Y, *moved(rows, SHIFT))
    return backward - forward


def of_ranges(rows: Rows) -> float:
    return training.iqr_margin(HELD_X, HELD_Y, *moved(rows, SHIFT))


RANK_SHIFT = 8 / N
"""What Theorem 5 allows at λ = 1."""

SPREAD = np.arange(2 * GROUP) * 4.2 * RANK_SHIFT


def of_ranks(rows: Rows) -> Rows:
    left_y, left_x = (SPREAD + RANK_SHIFT * (part - 0.5) for part in np.split(rows[0], 2))
    steps = published.rank_distance(published.rank_gap(left_y, left_x), N, 1.0)
    # Any change of the order is to show: a change of 1e-3 in a score counts as more than a step.
    return np.array([steps, 1e4 * (kendall(HELD_Z, left_y) + 3 * kendall(HELD_Z, left_x))])


def of_published(rows: Rows) -> float:
    m = 2 * GROUP
    left, _ = moved(rows, RANK_SHIFT)
    box = {"range_x": stable.RANGE, "range_y": stable.RESIDUAL_RANGE}
    return (m / (m - 1)) ** 2 * hsic(HELD_X, left, kernel=GAUSSIAN, width_x=0.4, width_y=0.4, **box)


RANGES = {"columns": 4 * GROUP, "starts": {"apart": apart}}
OWN = ("residuals of a regression on the test rows",)

TRAINING_SENSITIVITIES = (
    SensitivityRow("ridge-stability", predictions, lambda m: prediction_sensitivity(m, PENALTY), (21,), 0.85,
                   ("0.8 of the regression's bound", "a regression centred by its training mean"), BOX),
    SensitivityRow("training-difference", of_scores, lambda m: training_sensitivity(N, 2 * GROUP, LARGE), (1,), 0.3,
                   ("a residual bandwidth from the training rows", "a third of the training bound"), RANGES),
    SensitivityRow("training-iqr", of_ranges, lambda m: training.iqr_sensitivity(N, LARGE), (1,), 0.99,
                   ("log ranges by the bound of ranges",), RANGES),
    SensitivityRow("training-ranks", of_ranks,
                   lambda m: Sensitivity(1, Norm.TESTED, Relation.REPLACE_ONE, "training-ranks", Unit.TRAINING_ROW),
                   (1,), 1, ("stable ranks by gaps between ranks",), RANGES),
    SensitivityRow("hsic-training-published", of_published,
                   lambda m: published.published_hsic_sensitivity(N, 2 * GROUP, 1.0), (1,), 1e-3, OWN, RANGES),
)  # fmt: skip
"""``reached``: each slack stands on its page; Theorem 7 is thousands of times too large."""

TRAINING_TEXTS = (TextRow("ridge-rounding", "lemma", "an error bound inside the sensitivity of ridge-stability"),)

STABLE_DELTA = 1e-6


def stable_draws(answer: Any, epsilon: float, size: int, share: float) -> list[float | None]:
    loss = ApproxDP(round(epsilon / share, 9), STABLE_DELTA)
    whole = ApproxDP(loss.exact_epsilon * size, loss.exact_delta * size)
    allotment = Ledger.in_memory(whole, accept_large_epsilon=True).charge(whole, task="audit")
    claim = Sensitivity(1, Norm.TESTED, Relation.REPLACE_ONE, "training-ranks")
    query = Query(np.array(answer, dtype=np.float64), claim, "audited")
    found = (stable_value(query, allotment, loss) for _ in range(size))
    return [None if one is None else float(one[0]) for one in found]


PASSES = float(stable_threshold(ApproxDP(1.0, STABLE_DELTA)))

STABLE_VALUE = MechanismRow(
    "stable-value", "stable_value:stable_value", "stable-value", ((PASSES, 0.5), (PASSES + 1, 0.5)), stable_draws,
    ("geometric noise at twice the ε", "stable ranks by gaps between ranks"), delta=lambda epsilon: STABLE_DELTA,
    draws=6_000,
)  # fmt: skip
