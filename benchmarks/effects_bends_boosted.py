"""Confounders that bend: error, coverage and width of ``boosted-aipw`` beside those of ``aipw``.

    python -m benchmarks effects_bends_boosted                    20 runs a design, 10,000 rows, ε = 1, δ = 1e-6
    python -m benchmarks effects_bends_boosted --runs 60 --json benchmarks/effects_bends_boosted.json

Three confounders: uniform, normal, exponential.  Treatment and outcome both go with the same function of the first, or
of the first two, and with a line of the third; errors have a spread of 1 and the mean effect is .5.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dpcausal as dpc

EFFECT = 0.5
BENDS: dict[str, Callable[[Any, Any], Any]] = {
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
DESIGNS = (*BENDS, *ALSO)


def draw(name: str, n: int, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of a design, and what is declared of them."""
    rng = np.random.default_rng([97, n, seed, DESIGNS.index(name)])
    x, z = rng.uniform(-1.75, 1.75, n), np.clip(rng.normal(size=n), -4, 4)
    w = np.clip(rng.exponential(size=n), 0, 8) - 1
    declared: dict[str, Any] = {"x": dpc.Bounded(-1.75, 1.75), "z": dpc.Bounded(-4, 4), "w": dpc.Bounded(-1, 7)}
    if name == "xor":
        x, z = rng.integers(0, 2, (2, n))
        declared |= {"x": dpc.Levels([0, 1]), "z": dpc.Levels([0, 1])}
    bent = BENDS[ALSO.get(name, name)](x, z)
    of_treatment, of_outcome = (x if name == f"sine in the {one}" else bent for one in ("outcome", "treatment"))
    a = (rng.random(n) < np.clip(1 / (1 + np.exp(-0.8 * of_treatment - 0.3 * w)), 0.08, 0.92)).astype(int)
    effect = {"effect varies as sine": EFFECT + 0.5 * bent,
              "effect varies as step": EFFECT + 0.8 * ((x > 0.37) - 1.38 / 3.5)}.get(name, EFFECT)  # fmt: skip
    errors = rng.normal(size=n)
    if name == "lognormal errors":
        errors = (np.exp(errors) - math.exp(0.5)) / 2.16
    if name == "growing spread":
        errors = errors * (0.4 + 0.6 * np.abs(x))
    y, end = effect * a + 0.8 * of_outcome + 0.3 * w + errors, 60.0 if name == "cube of a normal" else 12.0
    declared |= {"a": dpc.Levels([0, 1]), "y": dpc.Bounded(-end, end)}
    return {"x": x, "z": z, "w": w, "a": a, "y": np.clip(y, -end, end)}, declared


def cell(name: str, n: int, epsilon: float, runs: int, method: str) -> dict[str, Any]:
    """Return bias, error, coverage of the intervals that are shown, and half-width of one design."""
    errors, held, widths = [], [], []
    loss = dpc.ApproxDP(epsilon, 1e-6)
    for seed in range(runs):
        columns, declared = draw(name, n, seed)
        table = dpc.Table(columns, dpc.Schema(declared), dpc.Ledger.in_memory(loss))
        with dpc.simulated_noise(seed):
            found = dpc.effect(table, treatment="a", outcome="y", adjust=["x", "z", "w"], loss=loss, method=method)
        if found.estimate is not None:
            errors.append(found.estimate - EFFECT)
        if found.interval is not None:
            held.append(found.interval[0] <= EFFECT <= found.interval[1])
            widths.append((found.interval[1] - found.interval[0]) / 2)
    return {
        "design": name, "method": method, "n": n, "epsilon": epsilon, "runs": runs,
        "bias": round(float(np.mean(errors)), 4), "rmse": round(float(np.sqrt(np.mean(np.square(errors)))), 4),
        "shown": len(held) / runs, "coverage": round(float(np.mean(held)), 3) if held else None,
        "half_width": round(float(np.mean(widths)), 4) if held else None,
    }  # fmt: skip


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--rows", type=int, default=10_000)
    options.add_argument("--epsilon", type=float, default=1.0)
    options.add_argument("--designs", default=";".join(DESIGNS))
    options.add_argument("--json", default="")
    asked = options.parse_args(arguments)
    found = []
    for name in asked.designs.split(";"):
        for method in ("boosted-aipw", "aipw"):
            found.append(cell(name, asked.rows, asked.epsilon, asked.runs, method))
            print(json.dumps(found[-1]), flush=True)
    if asked.json:
        Path(asked.json).write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
