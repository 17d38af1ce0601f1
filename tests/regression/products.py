"""Ridge residuals of rows (φ, x, y) by the normal equations, for searches over all of them, and worst known rows."""

from typing import Any

import numpy as np

Rows = Any

COLUMNS = 5
"""Three coordinates of φ, then x and y, all in [−1, 1]."""


def split(rows: Rows) -> tuple[Rows, Rows, Rows]:
    """Return φ, shortened to norm 1 at most, x and y."""
    features = rows[:, :3]
    lengths = np.sqrt((features**2).sum(axis=1, keepdims=True))
    return features / np.maximum(1, lengths), rows[:, 3], rows[:, 4]


def weights(rows: Rows, penalty: float) -> Rows:
    """Return w and v, shape (3, 2)."""
    features, x, y = split(rows)
    system = features.T @ features + len(rows) * penalty / 2 * np.eye(3)
    return np.linalg.solve(system, features.T @ np.column_stack([x, y]))


def residuals(rows: Rows, penalty: float) -> tuple[Rows, Rows]:
    features, x, y = split(rows)
    fitted = features @ weights(rows, penalty)
    return x - fitted[:, 0], y - fitted[:, 1]


def products(rows: Rows, penalty: float) -> Rows:
    r, s = residuals(rows, penalty)
    return r * s


def resample_sum(rows: Rows, penalty: float) -> float:
    """T with x in the part of the public residuals."""
    return float(rows[:, 3] @ residuals(rows, penalty)[1])


FOUR_CORNERS = np.array([
    [-0.141, -0.761, -0.634, -1, 1],
    [-0.818, 0.232, 0.526, -1, 1],
    [-0.185, 0.136, 0.973, 1, 1],
    [-0.492, 0.854, 0.168, -1, -1],
])  # fmt: skip
"""Four groups of equal size; a row (−.273, .639, −.719; 1, 1) or (−.872, −.479, −.096; 1, −1) more."""

ADDED = np.array([[-0.273, 0.639, -0.719, 1, 1], [-0.872, -0.479, -0.096, 1, -1]])


def four_corners(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    return np.vstack([ADDED[:1], FOUR_CORNERS[np.arange(m - 1) % 4]])


def two_groups(rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """A half at one place of φ, the rest at another that is nearly orthogonal to it."""
    rows = np.zeros((m, COLUMNS))
    half = np.arange(m) < m // 2
    rows[:, 0], rows[:, 1] = np.where(half, np.cos(4.3), np.cos(-0.38)), np.where(half, np.sin(4.3), np.sin(-0.38))
    rows[:, 3], rows[:, 4] = np.where(half, 1, -1), 1
    return rows


STARTS = {"four corners": four_corners, "two groups": two_groups}
DOMAIN: dict[str, Any] = {"columns": COLUMNS, "low": -1.0, "high": 1.0}
