"""Effects by strata and by lines, and of known randomisation."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import Study, of_outcomes, prefix, register

FLAG = dpc.Levels([0, 1])


def stratified(draw: Any, outcome: Any, adjust: bool = True, lost: bool = False, strata: int = 4) -> Study:
    """``draw``: (generator, n) → treatment, stratum, both outcomes; ``lost``: 40 % of the treatments are missing."""

    def drawn(rng: Any, n: int) -> Any:
        a, z, y0, y1 = draw(rng, n)
        return {"z": z} if adjust else {}, a, y0, y1

    study = of_outcomes(drawn, outcome, {"z": dpc.Levels(range(strata))} if adjust else {})

    def rows(rng: Any, n: int) -> dict[str, Any]:
        columns = study.rows(rng, n)
        return columns | {"a": np.where(rng.random(n) < 0.25 + 0.1 * columns["z"], None, columns["a"])}

    return replace(study, rows=rows) if lost else study


def four(outcomes: Any, shift: float = 0.15, base: float = 0.2) -> Any:
    """Four strata whose chance of treatment grows; ``outcomes``: (generator, stratum, n) → both outcomes."""

    def draw(rng: Any, n: int) -> Any:
        z = rng.integers(0, 4, n)
        a = (rng.random(n) < base + shift * z).astype(int)
        return a, z, *outcomes(rng, z, n)

    return draw


def binary(low: float, high: float) -> Any:
    return four(lambda rng, z, n: (np.array([[low], [high]]) > rng.random(n)).astype(int), 0.0, 0.5)


def mostly_zero(rng: Any, z: Any, n: int) -> Any:
    spend, u = 5 * rng.gamma(0.5, size=n), rng.random(n)
    return spend * (u < 0.05), spend * (u < 0.07)


def tiny_strata(rng: Any, n: int) -> Any:
    z = np.minimum(rng.geometric(0.35, n) - 1, 11)
    a = (rng.random(n) < 0.3 + 0.03 * z).astype(int)
    y0 = 0.3 * z + rng.standard_t(3, n)
    return a, z, y0, y0 + 0.5 - 0.1 * z


def confounded(rng: Any, n: int) -> Any:
    z = rng.integers(0, 4, n)
    a = (rng.random(n) < np.array([0.03, 0.2, 0.7, 0.95])[z]).astype(int)
    y0 = 2.0 * z + rng.normal(size=n)
    return a, z, y0, y0 - 0.4


normal = four(lambda rng, z, n: (y := 0.5 * z + rng.normal(size=n), y + 0.4))
lognormal = four(lambda rng, z, n: ((e := np.exp(rng.normal(size=n))) + 0.3 * z, 1.3 * e + 0.3 * z))
DESIGNS = register({
    "trial": stratified(binary(0.20, 0.26), FLAG, False),
    "rare outcome": stratified(binary(0.01, 0.015), FLAG, False),
    "normal": stratified(normal, dpc.Bounded(-4, 6)),
    "heteroskedastic": stratified(four(lambda rng, z, n: (
        0.5 * z + 0.3 * (e := rng.normal(size=n)), 0.4 + 0.5 * z + (0.5 + z) * e)), dpc.Bounded(-12, 14)),
    "skewed": stratified(lognormal, dpc.Bounded(0, 50)),
    "poisson": stratified(four(lambda rng, z, n: (y := rng.poisson(1 + 0.5 * z), y + rng.poisson(0.3, n))),
                          dpc.Bounded(0, 20)),
    "rare treatment": stratified(four(lambda rng, z, n: (y := rng.exponential(size=n), y * 1.3), 0.0, 0.05),
                                 dpc.Bounded(0, 20)),
    "40 % missing": stratified(normal, dpc.Bounded(-4, 6), lost=True),
}, "strata", seeds=prefix(7))  # fmt: skip
DESIGNS |= register({
    "log-normal 1.5": stratified(four(lambda rng, z, n: (e := np.exp(1.5 * rng.normal(size=n)), 1.2 * e + 0.3 * z)),
                                 dpc.Bounded(0, 200)),
    "1 % treated": stratified(four(lambda rng, z, n: (e := np.exp(rng.normal(size=n)), 1.5 * e), 0.0, 0.01),
                              dpc.Bounded(0, 30), False),
    "mostly zero": stratified(four(mostly_zero, 0.0, 0.1), dpc.Bounded(0, 40), False),
    "tiny strata, t3": stratified(tiny_strata, dpc.Bounded(-15, 20), strata=12),
    "confounded": stratified(confounded, dpc.Bounded(-5, 12)),
    "skewed, missing": stratified(lognormal, dpc.Bounded(0, 50), lost=True),
}, "strata, later", "2026-11-22", seeds=prefix(7))  # fmt: skip

NUMBERS = {f"x{place}": dpc.Bounded(-5, 5) for place in range(4)}


def adjusted(errors: Any, light: bool = False, rare_arm: bool = False) -> Study:
    """The effect 0.4, four numbers adjusted for; ``errors``: (generator, treatment, numbers) → added to the line."""

    def rows(rng: Any, n: int) -> dict[str, Any]:
        x = np.clip(rng.normal(size=(n, 4)), -5, 5)
        share = 0.06 + 0.02 * x[:, 0] if rare_arm else 0.5 + 0.12 * x[:, 0] - 0.08 * x[:, 1]
        a = (rng.random(n) < np.clip(share, 0.01, 0.99)).astype(int)
        y = np.clip(0.4 * a + x @ np.array((0.8, 0.5, -0.3, 0.2)) + errors(rng, a, x), -15, 15)
        return {"a": a, "y": y, **{name: x[:, place] for place, name in enumerate(NUMBERS)}}

    schema = {"a": FLAG, "y": dpc.Bounded(-15, 15), **NUMBERS}
    return Study(rows, schema, 0.4, dpc.methods.Aipw(light_tails=light))


DESIGNS |= register({
    "line": adjusted(lambda rng, a, x: rng.normal(size=len(a)), light=True),
    "line, spread": adjusted(lambda rng, a, x: rng.normal(size=len(a)) * (0.5 + a) * np.exp(0.3 * x[:, 0])),
    "line, exponential": adjusted(lambda rng, a, x: rng.exponential(size=len(a)) - 1),
    "line, log-normal": adjusted(lambda rng, a, x: np.exp(rng.normal(size=len(a))) - math.exp(0.5)),
    "line, rare arm": adjusted(lambda rng, a, x: rng.normal(size=len(a)), light=True, rare_arm=True),
    "line, own effects": adjusted(lambda rng, a, x: rng.normal(size=len(a)) + 0.3 * a * x[:, 0], light=True),
    "line, t3": adjusted(lambda rng, a, x: rng.standard_t(3, len(a))),
    "line, mostly zero": adjusted(
        lambda rng, a, x: 10 * rng.exponential(size=len(a)) * (rng.random(len(a)) < 0.05) - 0.5),
}, "lines", seeds=prefix(3), delta=1e-6)  # fmt: skip

# Trials with known probabilities

SITES = np.array([0.0, 0.03, 0.06, 0.15])
COINS = np.array([0.5, 1.0, 1.0, 1.5])
"""Of four sites: what each adds to the outcome, and by how much its coin differs."""


def unit(shape: str, rng: Any, n: int) -> Any:
    """Return outcomes of controls, in a range of 1."""
    if shape == "skewed":
        return np.clip(rng.lognormal(-3, 1, n), 0, 1)
    if shape == "mostly zero":
        return np.clip((rng.random(n) < 0.1) * rng.exponential(0.15, n), 0, 1)
    if shape in ("binary", "rare"):
        return (rng.random(n) < (0.4 if shape == "binary" else 0.05)).astype(float)
    return np.clip(0.4 + 0.15 * rng.standard_normal(n), 0, 1)


LIFTS = {"normal": 0.03, "skewed": 0.02, "mostly zero": 0.01, "binary": 0.1, "rare": 0.1, "four sites": 0.03}


def both(shape: str, rng: Any, n: int) -> Any:
    """Return the two outcomes of each and the site."""
    site = rng.integers(0, 4, n)
    y = unit(shape, rng, n)
    if shape in ("binary", "rare"):
        return np.maximum(y, rng.random(n) < LIFTS[shape]), y, site
    shift = SITES[site] * (shape == "four sites")
    return np.clip(y + shift + LIFTS[shape], 0, 1), np.clip(y + shift, 0, 1), site


def randomised(shape: str, share: float) -> Study:
    """A trial with such an assignment probability, which its method is given."""
    sites, levels = shape == "four sites", shape in ("binary", "rare")
    chances = share * COINS if sites else np.full(4, share)
    probabilities = [(1 - chances).tolist(), chances.tolist()] if sites else [1 - share, share]

    def rows(rng: Any, n: int) -> dict[str, Any]:
        treated, control, site = both(shape, rng, n)
        a = (rng.random(n) < chances[site]).astype(int)
        y = np.where(a, treated, control)
        return {"a": a, "y": y.astype(int) if levels else y} | ({"s": site} if sites else {})

    def truth() -> float:
        return float(np.mean([np.subtract(*both(shape, np.random.default_rng(seed), 500_000)[:2]).mean()
                              for seed in (1, 2, 3, 4)]))  # fmt: skip

    schema = {"a": FLAG, "y": FLAG if levels else dpc.Bounded(0, 1)} | ({"s": dpc.Levels(range(4))} if sites else {})
    return Study(rows, schema, truth, dpc.methods.RandomizedTrial(probabilities=probabilities))


DESIGNS |= register({f"randomised {share:g}, {shape}": randomised(shape, share)
                     for share in (0.05, 0.2, 0.5) for shape in LIFTS},
                    "randomised", seeds=lambda n, run: 100_000 + run, more={"first": 100_000})  # fmt: skip
