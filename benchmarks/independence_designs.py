"""Null and other designs of the independence benchmarks: public assumptions, drawn from seeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.simulate import SimulatedRows

BINARY = Levels([0, 1])
Z = Bounded(-8, 8)


def _rows(columns: dict[str, Any], schema: dict[str, Any], seed: int) -> SimulatedRows:
    given = [name for name in columns if name not in ("x", "y")]
    return SimulatedRows(columns, Schema(schema), given, seed)


def rare_binary(n: int, seed: int) -> SimulatedRows:
    """Draw x and y Bernoulli(.05), independent of z and of each other."""
    rng = np.random.default_rng(seed)
    z = np.clip(2 * rng.standard_normal(n), -8, 8)
    x, y = (rng.random((2, n)) < 0.05).astype(np.int64)
    return _rows({"x": x, "y": y, "z1": z}, {"x": BINARY, "y": BINARY, "z1": Z}, seed)


def rarer_alone(n: int, seed: int) -> SimulatedRows:
    """Draw x and y Bernoulli(.02), nothing given: most values of the statistic are ties."""
    x, y = (np.random.default_rng(seed).random((2, n)) < 0.02).astype(np.int64)
    return _rows({"x": x, "y": y}, {"x": BINARY, "y": BINARY}, seed)


def binary_on_z(n: int, seed: int) -> SimulatedRows:
    """Draw rare binary x and y whose odds depend on z, independent given z."""
    rng = np.random.default_rng(seed)
    z = np.clip(2 * rng.standard_normal(n), -8, 8)
    chance = 1 / (1 + np.exp(3.5 - 0.8 * z))
    x, y = (rng.random((2, n)) < chance).astype(np.int64)
    return _rows({"x": x, "y": y, "z1": z}, {"x": BINARY, "y": BINARY, "z1": Z}, seed)


def lognormal(n: int, seed: int) -> SimulatedRows:
    """Draw x and y with lognormal noise around smooth functions of z."""
    rng = np.random.default_rng(seed)
    z = np.clip(2 * rng.standard_normal(n), -8, 8)
    f = np.exp(-(z**2) / 2) * np.sin(2 * z)
    x, y = f + np.exp(rng.standard_normal(n)), -f + np.exp(rng.standard_normal(n))
    wide = Bounded(-2, 40)
    return _rows({"x": x.clip(-2, 40), "y": y.clip(-2, 40), "z1": z}, {"x": wide, "y": wide, "z1": Z}, seed)


def sign_changing(effect: float) -> Any:
    """Return a design in which y = β x sign(z) + noise: the covariance cancels."""

    def draw(n: int, seed: int) -> SimulatedRows:
        rng = np.random.default_rng(seed)
        z, x = np.clip(2 * rng.standard_normal(n), -8, 8), rng.standard_normal(n)
        y = effect * x * np.sign(z) + rng.standard_normal(n)
        wide = Bounded(-3, 3)
        return _rows({"x": x.clip(-3, 3), "y": y.clip(-3, 3), "z1": z}, {"x": wide, "y": wide, "z1": Z}, seed)

    return draw


def agreeing(strata: int, rare: bool, share: float) -> Any:
    """Return a design of two levels in strata, in which y copies x in a share of the rows, everywhere."""

    def draw(n: int, seed: int) -> SimulatedRows:
        rng = np.random.default_rng(seed)
        s = rng.integers(0, strata, n)
        rate = 0.05 + 0.03 * (s % 3) if rare else 0.3 + 0.4 * s / max(1, strata - 1)
        x, y = (rng.random((2, n)) < rate).astype(np.int64)
        y = np.where(rng.random(n) < share, x, y)
        both = {"x": BINARY, "y": BINARY}
        if strata == 1:
            return _rows({"x": x, "y": y}, both, seed)
        return _rows({"x": x, "y": y, "s": s}, {**both, "s": Levels(range(strata))}, seed)

    return draw
