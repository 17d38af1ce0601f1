"""Effects: bias, error, coverage, width and share of answers, by design, rows, ε and method.

    python -m benchmarks effects --families strata lines --rows 1000,10000 --epsilons 0.5,1
    python -m benchmarks effects --designs "trial;skewed" --methods default stratified

``x`` is over the same call without privacy on the same rows, of the first 60 runs.  Coverage of a nominal 0.95 is LOW
below 0.93 less three Monte-Carlo errors; the exit code is 1 then, but for designs of which that is expected.  Readings
in brackets are of another truth than the answer states.
"""

from importlib import import_module
from typing import Any

import dpcausal as dpc
from benchmarks import designs as registry
from benchmarks.run import Report, benchmark, grid, mean, median, ratio, rms, share

PLAIN = 60
"""Runs that are asked without privacy, too."""
DESIGNS: dict[str, registry.Design] = {}
ROOMS = ("strata", "rare", "shapes", "tails", "fresh", "regressions", "slopes", "bends", "clusters", "did", "cutoffs")
for room in ROOMS:
    for name, one in import_module(f"benchmarks.designs.effects.{room}").DESIGNS.items():
        DESIGNS[name if name not in DESIGNS else f"{name} ({one.family})"] = one

M = dpc.methods
METHODS: dict[str, Any] = {
    "aipw, light tails": M.Aipw(light_tails=True),
    "aipw, lines only": M.Aipw(light_tails=True, lines_only=True),
    "partially-linear, homoscedastic": M.PartiallyLinear(errors="homoscedastic"),
    "partially-linear, symmetric": M.PartiallyLinear(errors="symmetric"),
    "blocks, overlap": M.SampleAggregate(overlap=True),
}
"""Methods with options; ``default`` is that of the design, any other word a short name."""

SUMMARY = {
    "bias": mean("error"), "RMSE": rms("error"), "x RMSE": ratio(rms("same error"), rms("plain error")),
    "coverage": mean("covers"), "half-width": median("width"),
    "x width": ratio(median("same width"), median("plain width")), "shown": share("covers"), "answered": share("error"),
}  # fmt: skip


def measure(design: registry.Design, n: int, epsilon: float, run: int, method: str) -> dict[str, dict[str, float]]:
    """The columns of one run, by reading."""
    seed, way = run + design.more.get("first", 0), METHODS.get(method, method)
    with dpc.simulated_noise(seed + design.more.get("noise", 0)):
        found = design.make.ask(design.rng(n, run), n, registry.loss_of(epsilon, design.delta), way)
    plain = design.make.ask(design.rng(n, run), n, dpc.NoPrivacy(), way) if run < PLAIN else {}
    rows = {}
    for name, one in found.items():
        rows[name] = columns = {f"+{word}": float(value) for word, value in (one.more or {}).items()} | one.columns
        other = plain[name].columns if name in plain else {}
        for word in {"error", "width"} & set(columns) & set(other):
            columns |= {f"same {word}": columns[word], f"plain {word}": other[word]}
    return rows


@benchmark("effects", designs=[], families=[], methods=["default"], rows=[1_000, 10_000], epsilons=[1.0], runs=400)
def main(report: Report) -> None:
    grid(report, DESIGNS, measure, SUMMARY)
