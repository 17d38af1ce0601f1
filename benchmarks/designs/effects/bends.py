"""Confounding that bends: treatment and outcome go with the same function of what is adjusted for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import Study, prefix, register
from benchmarks.designs.effects.cases import COLUMNS, OUTCOMES, UNSEEN

FLAG = dpc.Levels([0, 1])


def numbers(rng: Any, n: int) -> tuple[Any, Any]:
    x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
    return x, w


def of(bend: Any, effect: Any = None) -> Any:
    """Return a shape whose treatment and outcome go with one function of two numbers."""

    def draw(rng: Any, n: int) -> tuple[dict[str, Any], Any, Any, Any]:
        x, w = numbers(rng, n)
        bent = bend(x, w)
        moved = np.full(n, 0.4) if effect is None else effect(x, w)
        return {"x": x, "w": w}, 0.5 + 0.2 * np.clip(bent, -2, 2), 0.7 * bent + 0.3 * w, moved

    return draw


def age(rng: Any, n: int) -> tuple[dict[str, Any], Any, Any, Any]:
    years, w = np.clip(18 + np.round(rng.gamma(6, 6, n)), 18, 110), numbers(rng, n)[1]
    u = (years - 50) / 18
    return {"age": years, "w": w}, 0.3 + 0.12 * np.minimum(u**2, 4), 0.7 * u**2 + 0.3 * u, np.full(n, 0.4)


def by_sex(rng: Any, n: int) -> tuple[dict[str, Any], Any, Any, Any]:
    (x, _), sex = numbers(rng, n), rng.integers(0, 2, n)
    bent = x * (2 * sex - 1)
    return {"x": x, "sex": sex}, 0.5 + 0.2 * np.clip(bent, -2, 2), 0.7 * bent, np.full(n, 0.4)


BENDS = {
    "line": of(lambda x, w: x),
    "square": of(lambda x, w: (x**2 - 1) / 1.4),
    "product": of(lambda x, w: x * w),
    "age, a U": age,
    "a slope by sex": by_sex,
    "absolute value": of(lambda x, w: (np.abs(x) - 0.8) / 0.6),
    "step": of(lambda x, w: np.where(x > 1, 1.5, -0.5)),
    "cube": of(lambda x, w: np.clip(x**3 / 3 - x, -2, 2)),
    "wave": of(lambda x, w: np.sin(3 * x)),
    "both above 0": of(lambda x, w: 2.0 * ((x > 0) & (w > 0)) - 0.5),
    "square, effect too": of(lambda x, w: (x**2 - 1) / 1.4, lambda x, w: 0.4 + 0.3 * (x**2 - 1)),
    "product, effect too": of(lambda x, w: x * w, lambda x, w: 0.4 + 0.3 * x * w),
}
SCHEMA = {
    "x": dpc.Bounded(-4, 4), "w": dpc.Bounded(-4, 4), "age": dpc.Bounded(18, 110), "sex": dpc.Levels([0, 1]),
}  # fmt: skip


def bent(name: str) -> Study:
    def rows(rng: Any, n: int) -> dict[str, Any]:
        adjust, chance, mean, effect = BENDS[name](rng, n)
        a = (rng.random(n) < np.clip(chance, 0.08, 0.92)).astype(int)
        y = mean + effect * a + rng.normal(size=n)
        return {"a": a, "y": np.clip(y, -15, 15), **adjust}

    names = BENDS[name](np.random.default_rng(0), 2)[0]
    schema = {"a": FLAG, "y": dpc.Bounded(-15, 15)} | {one: SCHEMA[one] for one in names}
    return Study(rows, schema, 0.4, dpc.methods.Aipw(light_tails=True))


def told_by_others(name: str) -> Study:
    """A design of ``effects_cases``: columns, probability of treatment, outcome if not treated, effect."""
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


DESIGNS = register({name: bent(name) for name in BENDS}, "bends", seeds=prefix(53), delta=1e-6, fails=True)
DESIGNS |= register({name: told_by_others(name) for name in UNSEEN}, "bends, unseen", "2026-11-24", seeds=prefix(53),
                    delta=1e-6, fails=True)  # fmt: skip

CURVES = {
    "line": lambda x, z: x,
    "square": lambda x, z: x**2 - 1,
    "cube": lambda x, z: (x**3 - 2 * x) / 1.2,
    "product": lambda x, z: x * z,
    "step": lambda x, z: np.where(x > 0.37, 1.2, -0.8),
    "hinge": lambda x, z: 2.2 * np.maximum(x - 0.5, 0) - 0.5,
    "sin 3x": lambda x, z: 1.4 * np.sin(3 * x),
    "sin 6x": lambda x, z: 1.4 * np.sin(6 * x),
    "abs": lambda x, z: (np.abs(x) - 0.85) * 2,
    "both > 0": lambda x, z: ((x > 0) & (z > 0)) * 2.3 - 0.57,
    "xor": lambda x, z: np.where(x != z, 1.0, -1.0),
    "cube of a normal": lambda x, z: z**3,
    "none": lambda x, z: 0 * x,
}
ALSO = {
    "sine in the outcome": "sin 3x", "sine in the treatment": "sin 3x", "effect varies as sine": "sin 3x",
    "effect varies as step": "step", "lognormal errors": "line", "growing spread": "line",
}  # fmt: skip
BOOSTED = (*CURVES, *ALSO)


def curved(name: str, rng: Any, n: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Three confounders: uniform, normal, exponential; errors have a spread of 1 and the mean effect is 0.5."""
    x, z = rng.uniform(-1.75, 1.75, n), np.clip(rng.normal(size=n), -4, 4)
    w = np.clip(rng.exponential(size=n), 0, 8) - 1
    declared: dict[str, Any] = {"x": dpc.Bounded(-1.75, 1.75), "z": dpc.Bounded(-4, 4), "w": dpc.Bounded(-1, 7)}
    if name == "xor":
        x, z = rng.integers(0, 2, (2, n))
        declared |= {"x": dpc.Levels([0, 1]), "z": dpc.Levels([0, 1])}
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
    y, end = effect * a + 0.8 * of_outcome + 0.3 * w + errors, 60.0 if name == "cube of a normal" else 12.0
    declared |= {"a": dpc.Levels([0, 1]), "y": dpc.Bounded(-end, end)}
    return {"x": x, "z": z, "w": w, "a": a, "y": np.clip(y, -end, end)}, declared


def boosted(name: str) -> Study:
    schema = curved(name, np.random.default_rng(0), 2)[1]
    return Study(lambda rng, n: curved(name, rng, n)[0], schema, 0.5, "boosted-aipw")


for place, name in enumerate(BOOSTED):
    DESIGNS |= register({f"{name}, three numbers": boosted(name)}, "curves", delta=1e-6,
                        fails=True, seeds=lambda n, run, place=place: [97, n, run, place])  # fmt: skip


def published(kind: str, x: Any, rng: Any, n: int) -> tuple[Any, Any, Any]:
    """The two designs on which fold-splitting was published: linear outcome and logistic treatment, or neither."""
    if kind == "linear":
        logit, line = 0.6 * x[:, 0] - 0.4 * x[:, 1], x @ [0.5, 0.3, -0.2, 0.1, 0.0]
    else:
        logit = 0.8 * np.sin(2 * x[:, 0]) - 0.5 * x[:, 1] * x[:, 2]
        line = 0.6 * np.sin(2.5 * x[:, 0]) + 0.3 * np.abs(x[:, 1]) + 0.2 * x[:, 2] * x[:, 3]
    a = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    return x, a, np.clip(0.4 * a + line + 0.44 * rng.normal(size=n), -2.5, 2.5)


def five(kind: str, rng: Any, n: int) -> tuple[Any, Any, Any]:
    """Five numbers uniform on [-1, 1], treatment, outcome."""
    x = rng.uniform(-1, 1, (n, 5))
    if kind in ("linear", "nonlinear"):
        return published(kind, x, rng, n)
    effect, error = np.full(n, 0.4), 0.44 * rng.normal(size=n)
    if kind == "square":
        logit, line = 2 * (x[:, 0] ** 2 - 1 / 3), x[:, 0] ** 2
    elif kind == "product":
        logit, line = 1.5 * x[:, 0] * x[:, 1] + x[:, 2] ** 2 - 1 / 3, x[:, 0] * x[:, 1] + 0.7 * x[:, 2] ** 2
    elif kind == "step":
        line = 0.6 * np.where(x[:, 0] > 0.3, 1.0, -0.5) * np.where(x[:, 1] > -0.4, 1.0, -1.0)
        logit = line / 0.6
    elif kind == "wave":
        logit, line = np.sin(6 * x[:, 0]), 0.6 * np.sin(6 * x[:, 0])
    elif kind == "varied":
        logit, line = 0.8 * x[:, 0] + 1.5 * (x[:, 1] ** 2 - 1 / 3), 0.5 * x[:, 0] + 0.3 * x[:, 1] ** 2
        effect = 0.4 + 0.4 * x[:, 0] + 0.6 * (x[:, 1] ** 2 - 1 / 3)
    elif kind == "jumpy":
        logit, line, effect = 1.5 * x[:, 0], 0.5 * x[:, 0], np.where(x[:, 0] > 0, 0.8, 0.0)
    elif kind == "skewed":
        logit, line = 0.6 * x[:, 0], 0.3 * x[:, 0]
        error = 0.3 * (np.exp(rng.normal(size=n)) - math.exp(0.5))
    elif kind == "rare":
        logit, line = 0.8 * x[:, 0] - 3, 0.5 * x[:, 0] + 0.3 * x[:, 1]
    else:
        raise ValueError(kind)
    e = 1 / (1 + np.exp(-logit))
    a = (rng.random(n) < e).astype(int)
    return x, a, np.clip(effect * a + line + error, -2.5, 2.5)


def overlap_truth(kind: str) -> tuple[float, float]:
    """Return everybody's effect and the overlap-weighted one, by quadrature of x0 and x1."""
    u, v = np.meshgrid(np.linspace(-1, 1, 2001)[::2], np.linspace(-1, 1, 2001)[1::2])
    if kind == "varied":
        effect, logit = 0.4 + 0.4 * u + 0.6 * (v**2 - 1 / 3), 0.8 * u + 1.5 * (v**2 - 1 / 3)
    elif kind == "jumpy":
        effect, logit = np.where(u > 0, 0.8, np.where(u < 0, 0.0, 0.4)), 1.5 * u
    else:
        return 0.4, 0.4
    e = 1 / (1 + np.exp(-logit))
    return float(effect.mean()), float((effect * e * (1 - e)).sum() / (e * (1 - e)).sum())


def features(kind: str, x: Any) -> Any:
    return x if kind == "linear" else np.hstack([x, x**2, x**3])


def uniform(kind: str, cubes: bool = False) -> Study:
    """Five uniform numbers; ``cubes``: of the nonlinear design squares and cubes are adjusted for, too."""

    def rows(rng: Any, n: int) -> dict[str, Any]:
        x, a, y = five(kind, rng, n)
        x = features(kind, x) if cubes else x
        return {"a": a, "y": y} | {f"x{place}": column for place, column in enumerate(x.T)}

    def aims(found: Any) -> dict[str, float]:
        everybody, overlap = overlap_truth(kind)
        return {"": overlap if found.estimand == "overlap" else everybody}

    count = 15 if cubes and kind == "nonlinear" else 5
    schema = {"a": FLAG, "y": dpc.Bounded(-2.5, 2.5)} | {f"x{place}": dpc.Bounded(-1, 1) for place in range(count)}
    method = dpc.methods.Aipw(light_tails=True) if cubes else dpc.methods.SampleAggregate()
    return Study(rows, schema, lambda: overlap_truth(kind)[0], method, aims=aims)


KINDS = ("square", "product", "varied", "jumpy", "skewed", "rare", "step", "wave")
DESIGNS |= register({f"{kind}, five numbers": uniform(kind) for kind in KINDS}, "blocks", seeds=prefix(17), fails=True)
PUBLISHED = ("linear", "nonlinear")
DESIGNS |= register({f"{kind}, five numbers": uniform(kind) for kind in PUBLISHED}, "blocks", seeds=prefix(13))
DESIGNS |= register({kind: uniform(kind, cubes=True) for kind in PUBLISHED}, "literature", seeds=prefix(13),
                    delta=1e-6)  # fmt: skip
