"""The runner of benchmarks: options, a grid of cells, one table with Monte-Carlo errors, targets, and the record."""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from benchmarks import record
from dpcausal import methods
from dpcausal.errors import InfeasibleError

Columns = dict[str, Any]
Summary = dict[str, Callable[[Columns], float]]
GROUPS = 50
"""Runs are left out in this many groups, at most, to find a Monte-Carlo error."""
FEWER_FROM = 10_000
"""Beyond so many rows a grid has a quarter of its runs."""
SEEDS = "rows from numpy's default_rng, noise from simulated_noise(seed); seed = 0, 1, ... of each cell"


def options(about: str | None, arguments: list[str], **defaults: Any) -> argparse.Namespace:
    """Parse ``--name value`` for each default: a flag, a number, a text, or a list of them."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks NAME", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", metavar="NAME", nargs="?", const="", help="write results/<task>/<name>.json")
    for name, default in defaults.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            parser.add_argument(flag, action="store_true")
        elif isinstance(default, list | tuple):
            parser.add_argument(flag, nargs="*", default=list(default))
        else:
            kind = (lambda text: int(float(text))) if isinstance(default, int) else type(default)
            parser.add_argument(flag, type=kind, default=default)
    given = parser.parse_args(arguments)
    for name, default in defaults.items():
        if isinstance(default, list | tuple) and default and isinstance(default[0], int | float):
            texts = [one for text in getattr(given, name) for one in str(text).split(",")]
            setattr(given, name, [int(float(one)) if isinstance(default[0], int) else float(one) for one in texts])
    return given


def chosen(words: Iterable[str], known: Iterable[str]) -> list[str]:
    """The known names that the words name: whole, separated by semicolons or commas, or by a part of them."""
    names, found = list(known), []
    for word in words:
        whole = word in names or (";" not in word and any(word in name for name in names))
        for part in [word] if whole else word.split(";" if ";" in word else ","):
            exact = [part] if part in names else [name for name in names if part in name]
            if not exact:
                raise SystemExit(f"no design {part!r}; there are: {'; '.join(names)}")
            found += exact
    return list(dict.fromkeys(found))


def selected(designs: Mapping[str, Any], given: argparse.Namespace) -> dict[str, Any]:
    """The designs that the options name; without names, those of the families; of all families if none is named."""
    if given.designs:
        return {name: designs[name] for name in chosen(given.designs, designs)}
    families = {one.family for one in designs.values()}
    if unknown := set(given.families) - families:
        raise SystemExit(f"no family {sorted(unknown)}; there are: {sorted(families)}")
    return {name: one for name, one in designs.items() if not given.families or one.family in given.families}


def mean(name: str) -> Callable[[Columns], float]:
    return lambda columns: _over(np.nanmean, columns[name])


def rms(name: str) -> Callable[[Columns], float]:
    return lambda columns: math.sqrt(_over(np.nanmean, np.square(columns[name])))


def median(name: str) -> Callable[[Columns], float]:
    return lambda columns: _over(np.nanmedian, columns[name])


def ratio(top: Callable[[Columns], float], bottom: Callable[[Columns], float]) -> Callable[[Columns], float]:
    def of(columns: Columns) -> float:
        below = bottom(columns)
        return top(columns) / below if below else math.nan

    return of


def share(name: str) -> Callable[[Columns], float]:
    """The share of runs that have this value."""
    return lambda columns: float(np.mean(~np.isnan(columns[name])))


def _over(function: Any, values: Any) -> float:
    return float(function(values)) if np.isfinite(values).any() else math.nan


class _Columns(dict[str, Any]):
    """Columns of runs; one that no run has is missing everywhere."""

    count = 1

    def __missing__(self, name: str) -> Any:
        return np.full(self.count, math.nan)

    def part(self, kept: Any) -> _Columns:
        part = _Columns({name: values[kept] for name, values in self.items()})
        part.count = int(kept.sum())
        return part


def summarised(rows: list[dict[str, float]], summary: Summary) -> dict[str, tuple[float, float]]:
    """Each metric with its Monte-Carlo error, by the jackknife over runs; a column ``+name`` adds its own mean.

    >>> summarised([{"hit": 1.0}, {"hit": 0.0}], {"rate": mean("hit")})
    {'rate': (0.5, 0.5)}
    """
    names = {name: None for row in rows for name in row}
    columns = _Columns({name: np.array([row.get(name, math.nan) for row in rows], dtype=float) for name in names})
    columns.count = len(rows)
    groups = np.arange(len(rows)) % min(GROUPS, len(rows))
    parts = [columns.part(groups != one) for one in np.unique(groups)]
    result = {}
    for metric, of in {**summary, **{name[1:]: mean(name) for name in names if name[0] == "+"}}.items():
        apart = np.array([of(part) for part in parts]) if len(parts) > 1 else np.array([math.nan])
        count = np.isfinite(apart).sum()
        error = math.sqrt((count - 1) * float(np.nanvar(apart))) if count > 1 else math.nan
        result[metric] = of(columns), error
    return result


def low(covers: Iterable[float], nominal: float = 0.95, least: float = 0.93) -> bool:
    """Whether a coverage lies below what is asked for by more than three Monte-Carlo errors."""
    values = np.array([one for one in covers if not math.isnan(one)])
    slack = 3 * math.sqrt(nominal * (1 - nominal) / max(len(values), 1))
    return bool(len(values)) and float(values.mean()) < least - slack


class Report:
    """The lines of one benchmark: printed as they come, recorded at the end, with targets that decide the exit code."""

    def __init__(
        self, name: str, task: str, given: argparse.Namespace, command: list[str], code: str, seeds: str
    ) -> None:
        self.name, self.task, self.given, self.command, self.seeds = name, task, given, command, seeds
        self.code = [code or f"dpcausal.{task}.api"]
        self.rows: list[dict[str, Any]] = []
        self.roots: dict[str, list[str]] = {}
        self.targets: dict[str, bool] = {}

    def add(
        self, design: str, metrics: Mapping[str, float | tuple[float, float]], *, n: int | None = None,
        epsilon: float | None = None, delta: float = 0.0, method: str = "auto", reading: str = "",
        runs: int | None = None, frozen_at: str = "", note: str = "",
    ) -> None:  # fmt: skip
        """Print and keep a cell; a metric is a value, or a value with its Monte-Carlo error."""
        values = {name: one if isinstance(one, tuple) else (one, math.nan) for name, one in metrics.items()}
        head = [design, *([f"n = {n:,}"] if n is not None else []),
                *([f"ε = {epsilon:g}"] if epsilon is not None else []), *([method] if method else []),
                *([reading] if reading else [])]  # fmt: skip
        cells = [f"{name} {_shown(*one)}" for name, one in values.items() if not math.isnan(one[0])]
        print(f"{', '.join(head)}: {', '.join([*cells, *([note] if note else [])])}", flush=True)
        row = {"design": design, "frozen_at": frozen_at or None, "n": n, "epsilon": epsilon, "delta": delta,
               "method": method, "reading": reading, "runs": runs, "note": note or None}  # fmt: skip
        row["metrics"] = {name: {"value": value, "mc_error": error} for name, (value, error) in values.items()}
        self.rows.append({name: one for name, one in row.items() if one not in (None, "")})
        self.roots.setdefault(method, _modules(method) or self.code)

    def target(self, text: str, met: bool) -> None:
        self.targets[text] = bool(met)

    def finish(self) -> int:
        """Print the targets, write the record if one is wanted, return 0 if all targets are met."""
        for text, met in self.targets.items():
            print(f"{'met   ' if met else 'MISSED'}  {text}")
        if self.given.record is not None:
            name = self.given.record or self.name
            print(record.write(self.task, name, [self.name, *self.command], self.rows, self.roots, self.seeds))
        return 0 if all(self.targets.values()) else 1


def benchmark(task: str, *, code: str = "", seeds: str = SEEDS, **defaults: Any) -> Callable[..., Callable[..., int]]:
    """Makes a module's ``main`` of a function of its report; ``defaults``: its options, which a study may change."""

    def of(measured: Callable[[Report], None]) -> Callable[..., int]:
        def main(arguments: list[str], *, name: str, **changed: Any) -> int:
            given = options(sys.modules[measured.__module__].__doc__, arguments, **defaults | changed)
            report = Report(name, task, given, arguments, code, seeds)
            measured(report)
            return report.finish()

        return main

    return of


def _shown(value: float, error: float) -> str:
    return f"{value:.4g}" if math.isnan(error) else f"{value:.4g} ± {error:.2g}"


def _modules(method: str) -> list[str]:
    """The module of the method's class, by its short name."""
    classes = (one for one in vars(methods).values() if isinstance(one, type))
    return sorted({one.__module__ for one in classes if getattr(one, "name", "") == method.split(",")[0]})


def grid(
    report: Report, designs: Mapping[str, Any], measure: Callable[..., Any], summary: Summary,
    fewer_from: float = FEWER_FROM,
) -> None:  # fmt: skip
    """Measure every cell of design × rows × ε × method that the options name.

    ``measure(design, n, epsilon, seed, method)`` returns the columns of one run, by reading; a refusal ends the cell.
    """
    given, some = report.given, selected(designs, report.given).values()
    for design, n, epsilon, method in itertools.product(some, given.rows, given.epsilons, given.methods):
        many = given.runs if n <= fewer_from else max(given.runs // 4, 1)
        found: dict[str, list[dict[str, float]]] = {}
        where = {"n": n, "epsilon": epsilon, "delta": design.delta, "method": method, "frozen_at": design.frozen_at}
        try:
            for seed in range(many):
                for reading, columns in measure(design, n, epsilon, seed, method).items():
                    found.setdefault(reading, []).append(columns)
        except InfeasibleError as refusal:
            report.add(design.name, {}, **where, runs=0, note=f"refused before the spend: {str(refusal)[:60]}")
            continue
        for reading, lines in found.items():
            note = ""
            if low(line.get("covers", math.nan) for line in lines):
                note, words = "LOW", f"{design.name}, n = {n:,}, ε = {epsilon:g}, {method} {reading}"
                report.target(f"{words}: coverage", design.fails or reading.startswith("("))
            report.add(design.name, summarised(lines, summary), **where, reading=reading, runs=many, note=note)
