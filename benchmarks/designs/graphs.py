"""Graphs: published networks, generated ones, linear numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.data.networks import SMALL, Network, read
from benchmarks.designs import register
from benchmarks.designs.graphs_practice import KINDS


@dataclass(frozen=True, eq=False)
class Case:
    """Rows of a distribution whose graph is known."""

    frame: dict[str, Any]
    schema: dpc.Schema
    truth: dpc.Cpdag

    @classmethod
    def of(cls, network: Network, seed: int, rows: int = 100_000) -> Case:
        return cls(network.sample(rows, seed), network.schema, network.truth)


def generated(columns: int, seed: int, determined: int = 0) -> Network:
    """Draw a network of 2 to 4 levels, about 1.3 parents a column, each conditional distribution from Dirichlet(½).

    The tables of so many last columns are ``determined`` but for 0.005 of the records.
    """
    rng = np.random.default_rng(seed)
    names = [f"v{place:02d}" for place in range(columns)]
    levels = {name: tuple(map(str, range(rng.integers(2, 5)))) for name in names}
    parents: dict[str, tuple[str, ...]] = {}
    for place, name in enumerate(names):
        count = min(place, int(rng.choice([0, 1, 2, 3], p=[0.15, 0.5, 0.25, 0.1])))
        parents[name] = tuple(names[k] for k in sorted(rng.choice(place, count, replace=False))) if count else ()
    tables = {
        name: rng.dirichlet(np.full(len(levels[name]), 0.5), size=[len(levels[above]) for above in parents[name]])
        for name in names
    }
    for name in names[columns - determined :]:
        likeliest = np.eye(len(levels[name]))[tables[name].argmax(axis=-1)]
        tables[name] = 0.995 * likeliest + 0.005 * tables[name]
    return Network(f"generated {columns}", levels, parents, tables)


ERRORS_OF = {
    "normal": lambda rng, rows: rng.normal(size=rows),
    "exponential": lambda rng, rows: rng.exponential(size=rows) - 1,
    "log-normal": lambda rng, rows: (rng.lognormal(0, 0.7, rows) - math.exp(0.245)) / 0.98,
    "t, 3 degrees": lambda rng, rows: rng.standard_t(3, rows) / math.sqrt(3),
}
"""Of what is left of a column given its causes, of mean 0 and about variance 1."""


def linear(
    columns: int, width: float, seeds: Callable[[int], Any], sizes: tuple[float, float], share: float, dist: str,
    rows: int, seed: int,
) -> Case:  # fmt: skip
    """Rows of a sparse linear DAG, a ``share`` of all edges, coefficients ± ``sizes``, and errors."""
    rng = np.random.default_rng(seeds(seed))
    names = [f"v{place:02d}" for place in range(columns)]
    values = np.zeros((rows, columns))
    arcs = []
    for node in range(columns):
        values[:, node] = ERRORS_OF[dist](rng, rows)
        for parent in range(node):
            if rng.random() < share:
                arcs.append((names[parent], names[node]))
                values[:, node] += rng.choice([-1, 1]) * rng.uniform(*sizes) * values[:, parent]
    schema = dpc.Schema(dict.fromkeys(names, dpc.Bounded(-width, width)))
    return Case(dict(zip(names, values.T, strict=True)), schema, dpc.Cpdag.from_dag(names, arcs))


SPREADS = {"correlations 0.95": 0.5, "correlations 0.985": 0.25}


def of_near_copies(spread: float, rows: int, seed: int) -> Case:
    """Draw two causes of a column and two effects of it that go closely together."""
    rng = np.random.default_rng([43, seed])
    a, b = rng.normal(size=(2, rows))
    c = a + b + spread * rng.normal(size=rows)
    d, e = c + spread * rng.normal(size=(2, rows))
    frame = dict(zip("abcde", (a, b, c, d, e), strict=True))
    truth = dpc.Cpdag.from_dag("abcde", [("a", "c"), ("b", "c"), ("c", "d"), ("c", "e")])
    return Case(frame, dpc.Schema(dict.fromkeys(frame, dpc.Bounded(-8.0, 8.0))), truth)


def determined(rows: int, seed: int) -> Case:
    """Draw a network whose tables are deterministic but for 0.005 of the records, and rows of it."""
    rng, frame, arcs = np.random.default_rng(seed), dict[str, Any](), list[tuple[str, str]]()
    for place in range(14):
        earlier = list(frame)
        many = min(len(earlier), int(rng.integers(1, 3))) if place > 2 else 0
        parents = [str(name) for name in rng.choice(earlier, many, replace=False)] if many else []
        table = rng.integers(0, 3, (3, 3))
        codes = [*(frame[name] for name in parents), *[np.zeros(rows, dtype=int)] * 2][:2]
        own = rng.random(rows) < (0.005 if parents else 1.0)
        frame[f"v{place:02d}"] = np.where(own, rng.integers(0, 3, rows), table[codes[0], codes[1]])
        arcs += [(name, f"v{place:02d}") for name in parents]
    schema = dpc.Schema(dict.fromkeys(frame, dpc.Levels([0, 1, 2])))
    return Case(frame, schema, dpc.Cpdag.from_dag(list(frame), arcs))


LEAST = {
    "alarm": (0.72, 0.92), "insurance": (0.68, 0.84), "child": (0.92, 0.99), "generated 36": (0.80, 0.95),
    "earthquake": (0.98, 0.99), "cancer": (0.91, 0.99), "survey": (0.97, 0.99), "asia": (0.885, 0.95),
    "40 two-valued": (0.98, 0.99), "20 linear": (0.93, 0.95),
}  # fmt: skip
"""The skeleton F1 that the default must reach at ε = 0.1 and 1, 100,000 rows."""


def _add(makes: dict[str, Callable[[int, int], Case]], family: str, day: str = "", **facts: Any) -> None:
    for name, make in makes.items():
        least = dict(zip((0.1, 1.0), LEAST[name], strict=True)) if name in LEAST else {}
        DESIGNS.update(register({name: make}, family, day, more={"least": least}, **facts))


def _two_valued(rows: int, seed: int, columns: int = 40) -> Case:
    """Two-valued columns of a sparse DAG, about two directed edges a column, three parents at most."""
    rng = np.random.default_rng(seed)
    names = [f"v{place:02d}" for place in range(columns)]
    values = np.zeros((rows, columns), dtype=np.int64)
    arcs = []
    for node in range(columns):
        above = [k for k in range(node) if rng.random() < 2 / (columns - 1)][:3]
        arcs += [(names[parent], names[node]) for parent in above]
        logit = np.full(rows, rng.uniform(-0.5, 0.5))
        for parent in above:
            logit += rng.choice([-1, 1]) * rng.uniform(0.8, 1.6) * (2 * values[:, parent] - 1)
        values[:, node] = rng.random(rows) < 1 / (1 + np.exp(-logit))
    schema = dpc.Schema(dict.fromkeys(names, dpc.Levels([0, 1])))
    return Case(dict(zip(names, values.T, strict=True)), schema, dpc.Cpdag.from_dag(names, arcs))


def _generated(columns: int, first: int, more: int, rows: int, seed: int) -> Case:
    return Case.of(generated(columns, first + seed), seed + more, rows)


DESIGNS: dict[str, Any] = {}
_add({name: lambda rows, seed, name=name: Case.of(read(name), seed, rows) for name in SMALL}, "small")
_add({name: lambda rows, seed, name=name: Case.of(read(name), seed, rows)
      for name in ("child", "insurance", "alarm", "sachs")}, "published", delta=1e-6)  # fmt: skip
_add({"generated 36": partial(_generated, 36, 100, 0), "generated 12": partial(_generated, 12, 900, 0),
      "40 two-valued": _two_valued}, "generated", delta=1e-6)  # fmt: skip
_add({f"generated {k}": partial(_generated, k, 8_000 + k, k) for k in (100, 300)}, "wide", delta=1e-6)
_add({"20 linear": partial(linear, 20, 10.0, int, (0.3, 0.9), 2 / 19, "normal")} | {
    f"Gaussian in ±{width:g}": partial(linear, 10, width, lambda seed: 500 + seed, (0.5, 1.5), 14 / 45, "normal")
    for width in (20.0, 2_000.0)
}, "linear", delta=1e-6)  # fmt: skip
_add({f"linear, {dist}": partial(linear, 10, 20.0, lambda seed: [41, seed], (0.5, 1.5), 14 / 45, dist)
      for dist in ERRORS_OF}
     | {name: partial(of_near_copies, spread) for name, spread in SPREADS.items()}, "errors", delta=1e-6)  # fmt: skip
_add({"deterministic": determined}, "deterministic", delta=1e-6)
for some, family in ((KINDS[:5], "practice"), (KINDS[5:], "practice, second")):
    _add({kind.__name__: lambda rows, seed, kind=kind: Case.of(kind(np.random.default_rng([7_000, seed])), seed, rows)
          for kind in some}, family, "2026-11-23", delta=1e-6)  # fmt: skip
