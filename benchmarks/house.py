"""How the house stands, before and after methods became objects: lines, plumbing, options, dispatches, frames, circles.

    python -m benchmarks house                  this tree beside the tree before (39b34ab)
    python -m benchmarks house ../other/tree    the source of another one; no frames

Everything is counted in the source.  What stands under "before" was measured by this file on 39b34ab.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import networkx as nx

import dpcausal as dpc

ROOT = Path(__file__).resolve().parents[1]
TASKS = ("independence", "direction", "discovery", "synthetic_control")
PLUMBING = (
    "ask", "budget", "columns", "decide", "directions", "discover", "estimate", "exact", "foresight", "guests", "many",
    "method", "methods", "picture", "pictures", "plan", "progress", "question", "release", "result", "results", "route",
    "scores", "search", "systems",
)  # fmt: skip
"""Files of a task's room that check, pay, carry and show; the others hold what is computed and released."""

METHOD = ("method", "chosen")
"""Variables and fields that hold a method's name."""

OPTIONS = ("blocks", "resamples", "penalty", "strata")

SINCE: dict[str, str] = {
    "persons of many rows, missing values, subgroups": "data.persons data.rows data.where privacy.hashing cli.records",
    "rows that no error, warning or print of a guest tells of": "privacy.unheard",
    "tests by neighbours, strata and noisy tables, and a choice among them": (
        "independence.neighbours independence.strata independence.counts independence.automatic "
        "dependence.neighbour_pairs dependence.stratum_moments dependence.wald regression.likely_kernel "
        "regression.kernel_terms"
    ),
    "a verdict that may name no cause": (
        "direction.verdict direction.bits direction.copula direction.counts direction.lsnm direction.spline"
    ),
    "synthetic control: effects of several units": "synthetic_control.average",
    "discovery: scales that are paid for, whitened pairs": (
        "discovery.scales discovery.strongest discovery.whitened dependence.whitened releases.whitened "
        "discovery.full_tests discovery.triples dependence.triples releases.triples"
    ),
    "how large an effect is": "effects cli.effects cli.did",
    "engines and streams": "data.engines data.reading data.arrays data.fields data.packages",
    "studies, planning, kept answers, saved releases on the command": (
        "study cli.study planning cli.plan asking.kept asking.form cli.ask"
    ),
    "graphs to and from other packages": "interop",
}
"""Rooms and files of what the library did not do before, by whole files; what grew inside a file counts as before."""

BEFORE: dict[str, str] = {
    "__init__": "1, 41", "audit": "4, 837", "cli": "11, 728", "data": "14, 2379", "demo": "1, 49",
    "dependence": "17, 2356", "direction": "20, 3087", "discovery": "25, 3601", "errors": "1, 96",
    "independence": "24, 3101", "mechanisms": "13, 1345", "plots": "1, 101", "privacy": "17, 3057", "proofs": "1, 66",
    "regression": "8, 1403", "report": "1, 190", "simulate": "1, 247", "simulate_panels": "1, 162",
    "synthetic_control": "13, 1930", "all files, lines": "174, 24776", "median, largest file": "129, 379",
    "share of code, of docstrings": "57 %, 27 %",
    "plumbing of the four tasks": "4504", "of these, lines of code": "2855",
    "places of blocks outside its methods' files": "10",
    "places of resamples outside its methods' files": "10", "places of penalty outside its methods' files": "7",
    "places of strata outside its methods' files": "10", "dispatches on a method's name": "90",
    "isinstance(..., NoPrivacy)": "71", "losses shared by hand": "30", "type: ignore": "56",
    'files outside papers that say "published"': "34", "groups of files that import each other": "1",
    "frames to the noise, direction": "8", "frames to the noise, ci_test": "9", "frames to the noise, table": "7",
    "frames to the noise, parities": "9", "frames to the noise, moments": "9",
    "frames to the noise, synthetic_control": "11",
}  # fmt: skip


@dataclass(frozen=True)
class File:
    """A module: its dotted name below the package, and its text."""

    name: str
    text: str

    @property
    def room(self) -> str:
        return self.name.partition(".")[0] or "__init__"

    @property
    def since(self) -> str:
        """What it brought that was not there before; empty for what stood."""
        of = (reason for reason, names in SINCE.items() for name in names.split() if self.under(name))
        return next(of, "")

    def under(self, name: str) -> bool:
        return self.name == name or self.name.startswith(name + ".")

    @property
    def is_plumbing(self) -> bool:
        return self.room in TASKS and self.name.rpartition(".")[2] in PLUMBING

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(ast.parse(self.text)))

    def of(self, *kinds: type) -> list[Any]:
        return [node for node in self.nodes if isinstance(node, kinds)]

    @cached_property
    def documented(self) -> set[int]:
        """Numbers of the lines of docstrings, those below a constant too."""
        texts = [node.value for node in self.of(ast.Expr) if isinstance(getattr(node.value, "value", None), str)]
        return {line for text in texts for line in range(text.lineno, (text.end_lineno or text.lineno) + 1)}

    @property
    def code(self) -> int:
        """Lines that are neither blank, nor a comment, nor of a docstring."""
        plain = [line.strip() for number, line in enumerate(self.lines, start=1) if number not in self.documented]
        return sum(bool(line) and not line.startswith("#") for line in plain)


def read(source: Path) -> list[File]:
    """Return all modules of the package."""
    files = []
    for path in sorted(source.rglob("*.py")):
        parts = [part for part in path.relative_to(source).with_suffix("").parts if part != "__init__"]
        files.append(File(".".join(parts), path.read_text(encoding="utf-8")))
    return files


def places(file: File, option: str) -> int:
    """Count where an option is declared or handed on: parameter, field, keyword, entry of a table of names."""
    named = [node.arg for node in file.of(ast.arg, ast.keyword)]
    fields = [getattr(node.target, "id", "") for node in file.of(ast.AnnAssign)]
    return [*named, *fields, *(node.value for node in file.of(ast.Constant))].count(option)


def dispatches(file: File) -> int:
    """Count where a method's name is compared with others than "auto", or looked up in a table."""

    def is_name(node: Any) -> bool:
        return getattr(node, "id", getattr(node, "attr", "")) in METHOD

    def is_given(node: Any) -> bool:
        if isinstance(node, ast.Name):
            return node.id.isupper() and node.id not in ("METHODS", "ROUTES")  # those only check a name
        words = [getattr(one, "value", None) for one in ast.walk(node)]
        return any(isinstance(word, str) and word != "auto" for word in words)

    compared = [node for node in file.of(ast.Compare) if is_name(node.left) and any(map(is_given, node.comparators))]
    looked_up = [node for node in file.of(ast.Subscript) if is_name(node.slice)]
    gets = [node for node in file.of(ast.Call) if getattr(node.func, "attr", "") == "get"]
    return len(compared) + len(looked_up) + sum(any(map(is_name, node.args)) for node in gets)


def given(file: File, place: int, *names: str) -> list[str]:
    """Return the text of an argument in the calls of some names."""
    calls = [node for node in file.of(ast.Call) if getattr(node.func, "id", "") in names]
    return [ast.unparse(node.args[place]) for node in calls if len(node.args) > place]


def imports(file: File, known: set[str]) -> Iterator[str]:
    """Yield the modules that a file imports, inside its functions too, but what is imported for types alone."""
    typing = [node for node in file.of(ast.If) if ast.unparse(node.test) == "TYPE_CHECKING"]
    for_types = {id(part) for node in typing for part in ast.walk(node)}
    for node in file.of(ast.Import, ast.ImportFrom):
        module = getattr(node, "module", None)
        for alias in node.names if id(node) not in for_types else ():
            inner = (f"{module}.{alias.name}" if module else alias.name).removeprefix("dpcausal.")
            found = inner if inner in known else inner.rpartition(".")[0]
            if found in known - {""}:
                yield found


def circles(files: list[File]) -> list[str]:
    """Return the groups of modules that import each other."""
    known = {file.name for file in files}
    # A release is asked again by methods above it, imported when they are called: the import table's one exception.
    edges = ((file.name, other) for file in files for other in imports(file, known) if file.room != "releases")
    groups = nx.strongly_connected_components(nx.DiGraph(edges))
    return sorted(" ".join(sorted(group)) for group in groups if len(group) > 1)


def frames(call: Callable[..., Any], *arguments: Any, **options: Any) -> int:
    """Return the most frames from a public function to one of ``privacy/noise.py`` that draws, both counted."""
    depths = [0]

    def watch(frame: Any, event: str, _: Any) -> None:
        here = frame.f_code
        if event == "call" and here.co_filename.endswith("noise.py") and here.co_name.startswith(("add_", "noisy_")):
            depth = 1
            while frame is not None and frame.f_code is not call.__code__:
                frame, depth = frame.f_back, depth + 1
            depths.append(depth)

    with dpc.simulated_noise(1):
        call(*arguments, **options)  # heavy imports first
        sys.setprofile(watch)
        call(*arguments, **options)
        sys.setprofile(None)
    return max(depths)


def depths() -> Iterator[tuple[str, int]]:
    """Yield the frames of each task's calls."""
    loss, gaussian = dpc.PureDP(2), dpc.ApproxDP(2, 1e-6)
    rows, made = dpc.simulate.smooth_design(500, seed=1), dpc.simulate.factor_panel(1000, seed=1)
    table = dpc.Table(rows.columns, rows.schema, dpc.Ledger.in_memory(dpc.ApproxDP(20, 1e-3)))
    ledger = dpc.Ledger.in_memory(dpc.PureDP(20), unit="unit")
    panel = dpc.Panel.from_arrays(made.donors, made.target, start=made.start, bounds=made.bounds, ledger=ledger)
    yield "direction", frames(dpc.direction, table, "x", "y", loss=loss)
    yield "ci_test", frames(dpc.ci_test, table, "x", "y", given=["z1"], loss=loss)
    yield "table", frames(dpc.discover, table, loss=loss, method="table")
    yield "parities", frames(dpc.discover, table, loss=gaussian, method="parities")
    yield "moments", frames(dpc.discover, table, loss=gaussian, method="moments")
    yield "synthetic_control", frames(dpc.synthetic_control, panel, loss=loss)


def facts(files: list[File]) -> Iterator[tuple[str, object]]:
    """Yield what the table says, room by room and then of the whole."""
    for room in sorted({file.room for file in files}):
        of = [file for file in files if file.room == room]
        yield room, f"{len(of)}, {sum(len(file.lines) for file in of)}"
    sizes, documented = [len(file.lines) for file in files], sum(len(file.documented) for file in files)
    yield "all files, lines", f"{len(files)}, {sum(sizes)}"
    yield "of these, what stood before", sum(len(file.lines) for file in files if not file.since)
    for reason in SINCE:
        yield f"+ {reason}"[:69], sum(len(file.lines) for file in files if file.since == reason)
    yield "median, largest file", f"{median(sizes):g}, {max(sizes)}"
    code = sum(file.code for file in files)
    yield "share of code, of docstrings", f"{code / sum(sizes):.0%}, {documented / sum(sizes):.0%}".replace("%", " %")
    plumbing = [file for file in files if file.is_plumbing]
    yield "plumbing of the four tasks", sum(len(file.lines) for file in plumbing)
    yield "of these, lines of code", sum(file.code for file in plumbing)
    tests = [file for file in files if file.room == "independence" or file.name == "cli.independence"]
    outside = [file for file in tests if file.is_plumbing or file.room == "cli"]
    for option in OPTIONS:
        yield f"places of {option} outside its methods' files", sum(places(file, option) for file in outside)
    yield "dispatches on a method's name", sum(dispatches(file) for file in files if file.room in TASKS)
    yield "isinstance(..., NoPrivacy)", sum("NoPrivacy" in kind for x in files for kind in given(x, 1, "isinstance"))
    amounts = [amount for file in files for amount in given(file, 0, "PureDP", "ApproxDP", "ZCDP")]
    yield "losses shared by hand", sum("exact_" in amount and " " in amount for amount in amounts)
    yield "type: ignore", sum(file.text.count("type: ignore") for file in files)
    yield 'files outside papers that say "published"', sum("published" in x.text for x in files if x.room != "papers")
    yield "groups of files that import each other", len(circles(files))


def main(arguments: list[str]) -> int:
    """Print the table."""
    files = read((Path(arguments[0]) if arguments else ROOT) / "src" / "dpcausal")
    measured = () if arguments else ((f"frames to the noise, {name}", depth) for name, depth in depths())
    print(f"{'files and lines of a room; then the whole':<70}{'before':>14}{'now':>14}")
    for name, value in (*facts(files), *measured):
        print(f"{name:<70}{BEFORE.get(name, ''):>14}{value!s:>14}")
    for group in circles(files):
        print(f"import each other: {group}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
