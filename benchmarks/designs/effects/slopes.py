"""One slope of treatment beside numbers that are adjusted for, on shapes that should break it."""

from functools import cache
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import Study, prefix, register

MANY, TREATED, LIKE = 25, -1.55, np.random.default_rng(7)
BINARY = LIKE.uniform(0.1, 0.9, MANY - 6)
SLOPES, CHANCES = 0.25 * LIKE.choice(5, MANY, p=[0.5, 0.2, 0.15, 0.1, 0.05]), 0.25 * LIKE.normal(size=MANY)


def logistic(rng: Any, t: Any) -> Any:
    return (rng.random(len(t)) < 1 / (1 + np.exp(-t))).astype(int)


def normal(rng: Any, n: int, columns: int = 4) -> Any:
    return np.clip(rng.normal(size=(n, columns)), -4, 4)


def line(rng: Any, n: int, intercept: float = 0.0, effect: float = 0.5) -> Any:
    x = normal(rng, n)
    y = x @ [0.5, 0.4, 0.2, 0.0] + rng.normal(size=n)
    return x, logistic(rng, intercept + 0.5 * x[:, 0] - 0.4 * x[:, 1]), y, y + effect


def heterogeneous(rng: Any, n: int) -> Any:
    x, a, y, _ = line(rng, n, -1.0)
    return x, a, y, y + 0.5 + 0.6 * x[:, 0]


def bent(rng: Any, n: int) -> Any:
    x = normal(rng, n)
    y = np.exp(0.5 * x[:, 0]) + np.sin(2 * x[:, 1]) + rng.normal(size=n)
    return x, logistic(rng, x[:, 0] ** 2 / 2 - 1), y, y + 0.5


def skewed(rng: Any, n: int) -> Any:
    x, a, y, _ = line(rng, n)
    y = y + np.exp(rng.normal(size=n)) - 1.6
    return x, a, y, y + 0.5


def fanned(rng: Any, n: int) -> Any:
    x, a, _, _ = line(rng, n, -1.5)
    y = x @ [0.5, 0.4, 0.2, 0.0] + np.exp(0.5 * x[:, 0]) * rng.normal(size=n)
    return x, a, y, y + 0.5


def jumps(rng: Any, n: int) -> Any:
    """Treated outcomes spread four times as wide, and are skewed."""
    x, a, y, _ = line(rng, n, -1.5)
    return x, a, y, y + 0.5 + 2 * (rng.exponential(size=n) - 1)


def many(rng: Any, n: int) -> Any:
    """Six numbers and nineteen flags, a fifth treated, the effect 4: like a study of infants' health, larger."""
    numbers, flags = np.clip(rng.normal(size=(n, 6)), -3, 3), (rng.random((n, MANY - 6)) < BINARY).astype(float)
    z = np.hstack([numbers, flags - BINARY])
    y = z @ SLOPES + rng.normal(size=n)
    return np.hstack([numbers, flags]), logistic(rng, z @ CHANCES + TREATED), y, y + 4


SHAPES = {
    "line": line, "nothing": lambda rng, n: line(rng, n, effect=0.0),
    "5 % treated": lambda rng, n: line(rng, n, -3.2), "2 % treated": lambda rng, n: line(rng, n, -4.2),
    "effect that grows with x": heterogeneous, "neither is a line": bent, "log-normal errors": skewed,
    "spread that grows with x": fanned, "treated spread, skewed": jumps, "25 columns": many,
    "30 % missing": line, "persons of 1 to 4 rows": line,
}  # fmt: skip


@cache
def truths(shape: str) -> tuple[float, float]:
    """Return everybody's mean effect and the slope of least squares."""
    squares, right, effect = 0.0, 0.0, 0.0
    for seed in range(20):
        x, a, y0, y1 = SHAPES[shape](np.random.default_rng([32, seed]), 100_000)
        y0, y1 = np.clip(y0, -12.0, 12.0), np.clip(y1, -12.0, 12.0)
        f = np.column_stack([a, np.ones(len(a)), x])
        squares, right = squares + f.T @ f, right + f.T @ np.where(a == 1, y1, y0)
        effect += float((y1 - y0).mean()) / 20
    return effect, float(np.linalg.solve(squares, right)[0])


def one_slope(shape: str) -> Study:
    def rows(rng: Any, n: int) -> dict[str, Any]:
        x, a, y0, y1 = SHAPES[shape](rng, n)
        y, owner = np.where(a == 1, y1, y0), {}
        columns = {f"x{place}": column for place, column in enumerate(x.T)}
        if "missing" in shape:
            y = np.where(rng.random(n) < 0.3, np.nan, y)
        if "persons" in shape:  # a person's rows share half of the outcome's spread
            count = rng.integers(1, 5, n)
            owner = {"id": np.repeat(np.arange(n), count)}
            columns = {name: column[owner["id"]] for name, column in columns.items()}
            a, y = a[owner["id"]], (y + 0.7 * rng.normal(size=n))[owner["id"]] + 0.7 * rng.normal(size=int(count.sum()))
        return {**columns, "a": a, "y": y, **owner}

    def aims(_answer: Any) -> dict[str, float]:
        effect, slope = truths(shape)
        return {"slope": slope} | ({"(effect)": effect} if abs(effect - slope) > 0.002 else {})

    names = [f"x{place}" for place in range(MANY if "columns" in shape else 4)]
    schema = dict.fromkeys(names, dpc.Bounded(-4, 4)) | {"a": dpc.Levels([0, 1]), "y": dpc.Bounded(-12, 12)}
    options = {"person": "id"} if "persons" in shape else {}
    return Study(rows, schema, lambda: truths(shape)[1], "partially-linear", options=options, aims=aims)


DESIGNS = register({shape: one_slope(shape) for shape in SHAPES}, "slope", seeds=prefix(31), delta=1e-6)
