"""Confounding that bends: treatment and outcome go with the same function of what is adjusted for."""

import math
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import Study, prefix, register
from benchmarks.designs.effects.cases import COLUMNS, OUTCOMES, UNSEEN

FLAG = dpc.Levels([0, 1])


def of_practice(name: str) -> Study:
    """A design of ``cases``: columns, probability of treatment, outcome if not treated, effect."""
    low, high = OUTCOMES[name].lower, OUTCOMES[name].upper

    def rows(rng: Any, n: int) -> dict[str, Any]:
        adjust, chance, y, effect = UNSEEN[name](rng, n)
        a = (rng.random(n) < chance).astype(int)
        return {"a": a, "y": np.clip(y + effect * a, low, high), **adjust}

    def truth() -> float:
        _, _, y, effect = UNSEEN[name](np.random.default_rng(7), 1_000_000)
        return float((np.clip(y + effect, low, high) - np.clip(y, low, high)).mean())

    names = UNSEEN[name](np.random.default_rng(0), 2)[0]
    schema = {"a": FLAG, "y": OUTCOMES[name]} | {one: COLUMNS[one] for one in names}
    return Study(rows, schema, truth, dpc.methods.Aipw(light_tails=True))


DESIGNS = register({name: of_practice(name) for name in UNSEEN}, "bends, unseen", "2026-11-24", seeds=prefix(53),
                   delta=1e-6, fails=True)  # fmt: skip

CURVES = {
    "line": lambda x, z: x, "square": lambda x, z: x**2 - 1, "cube": lambda x, z: (x**3 - 2 * x) / 1.2,
    "product": lambda x, z: x * z, "step": lambda x, z: np.where(x > 0.37, 1.2, -0.8),
    "hinge": lambda x, z: 2.2 * np.maximum(x - 0.5, 0) - 0.5,
    "sin 3x": lambda x, z: 1.4 * np.sin(3 * x), "sin 6x": lambda x, z: 1.4 * np.sin(6 * x),
    "abs": lambda x, z: (np.abs(x) - 0.85) * 2, "both > 0": lambda x, z: ((x > 0) & (z > 0)) * 2.3 - 0.57,
    "xor": lambda x, z: np.where(x != z, 1.0, -1.0), "cube of a normal": lambda x, z: z**3,
    "none": lambda x, z: 0 * x,
}  # fmt: skip
ALSO = {
    "sine in the outcome": "sin 3x", "sine in the treatment": "sin 3x", "effect varies as sine": "sin 3x",
    "effect varies as step": "step", "lognormal errors": "line", "growing spread": "line",
}  # fmt: skip
BOOSTED = (*CURVES, *ALSO)
KINDS_OF_NUMBERS: list[tuple[Any, float, float]] = [
    (lambda rng, n: rng.uniform(-1.75, 1.75, n), -1.75, 1.75), (lambda rng, n: rng.normal(size=n), -4, 4),
    (lambda rng, n: rng.exponential(size=n) - 1, -1, 7),
]  # fmt: skip
NUMBERS = {"one number": 1, "three numbers": 3, "six numbers": 6}


def curved(name: str, rng: Any, n: int, numbers: int = 3) -> tuple[dict[str, Any], dict[str, Any]]:
    """Confounders uniform, normal and exponential in turn; errors have a spread of 1 and the mean effect is 0.5.

    The first two bend, the last one goes along a line; one number does all.
    """
    columns: dict[str, Any] = {}
    declared: dict[str, Any] = {}
    for place in range(numbers):
        draw, low, high = KINDS_OF_NUMBERS[place % 3]
        columns[f"x{place}"], declared[f"x{place}"] = np.clip(draw(rng, n), low, high), dpc.Bounded(low, high)
    if name == "xor" and numbers > 1:
        columns |= {"x0": rng.integers(0, 2, n), "x1": rng.integers(0, 2, n)}
        declared |= {"x0": FLAG, "x1": FLAG}
    x, z = columns["x0"], columns["x1" if numbers > 1 else "x0"]
    w = columns[f"x{numbers - 1}"] if numbers > 1 else 0 * x
    bent = CURVES[ALSO.get(name, name)](x, z)
    of_treatment, of_outcome = (x if name == f"sine in the {one}" else bent for one in ("outcome", "treatment"))
    a = (rng.random(n) < np.clip(1 / (1 + np.exp(-0.8 * of_treatment - 0.3 * w)), 0.08, 0.92)).astype(int)
    effect = {"effect varies as sine": 0.5 + 0.5 * bent,
              "effect varies as step": 0.5 + 0.8 * ((x > 0.37) - 1.38 / 3.5)}.get(name, 0.5)  # fmt: skip
    errors = rng.normal(size=n)
    if name == "lognormal errors":
        errors = (np.exp(errors) - math.exp(0.5)) / 2.16
    if name == "growing spread":
        errors = errors * (0.4 + 0.6 * np.abs(x))
    end = 60.0 if name == "cube of a normal" else 12.0
    declared |= {"a": FLAG, "y": dpc.Bounded(-end, end)}
    y = effect * a + 0.8 * of_outcome + 0.3 * w + errors
    return columns | {"a": a, "y": np.clip(y, -end, end)}, declared


def boosted(name: str, numbers: int) -> Study:
    schema = curved(name, np.random.default_rng(0), 2, numbers)[1]
    return Study(lambda rng, n: curved(name, rng, n, numbers)[0], schema, 0.5, "boosted-aipw")


for place, name in enumerate(BOOSTED):
    for text, numbers in NUMBERS.items():
        DESIGNS |= register({f"{name}, {text}": boosted(name, numbers)}, f"curves, {text}", delta=1e-6, fails=True,
                            seeds=lambda n, run, place=place: [97, n, run, place])  # fmt: skip


def five(kind: str, rng: Any, n: int) -> tuple[Any, Any, Any]:
    """Five numbers uniform on [-1, 1], treatment, outcome."""
    x = rng.uniform(-1, 1, (n, 5))
    error = 0.44 * rng.normal(size=n)
    if kind == "square":
        logit, line = 2 * (x[:, 0] ** 2 - 1 / 3), x[:, 0] ** 2
    elif kind == "product":
        logit, line = 1.5 * x[:, 0] * x[:, 1] + x[:, 2] ** 2 - 1 / 3, x[:, 0] * x[:, 1] + 0.7 * x[:, 2] ** 2
    else:
        line = 0.6 * np.where(x[:, 0] > 0.3, 1.0, -0.5) * np.where(x[:, 1] > -0.4, 1.0, -1.0)
        logit = line / 0.6
    e = 1 / (1 + np.exp(-logit))
    a = (rng.random(n) < e).astype(int)
    return x, a, np.clip(0.4 * a + line + error, -2.5, 2.5)


def uniform(kind: str) -> Study:
    """Five uniform numbers."""

    def rows(rng: Any, n: int) -> dict[str, Any]:
        x, a, y = five(kind, rng, n)
        return {"a": a, "y": y} | {f"x{place}": column for place, column in enumerate(x.T)}

    schema = {"a": FLAG, "y": dpc.Bounded(-2.5, 2.5)} | {f"x{place}": dpc.Bounded(-1, 1) for place in range(5)}
    return Study(rows, schema, 0.4, dpc.methods.SampleAggregate())


KINDS = ("square", "product", "step")
DESIGNS |= register({f"{kind}, five numbers": uniform(kind) for kind in KINDS}, "blocks", seeds=prefix(17), fails=True)
