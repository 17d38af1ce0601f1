"""The house rules that a machine can see."""

import ast
import os
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "dpcausal"
MODULES = sorted(SOURCE.rglob("*.py"))

FLOOR = {"errors", "codec", "privacy", "mechanisms", "data", "statistics", "regression", "result", "plotting",
         "simulate"}  # fmt: skip
TASK = FLOOR | {"core", "releases"}
TASKS = {"direction", "independence", "discovery", "synthetic_control", "effects"}

# Each room may import itself, the rooms below it, and nothing else.
BELOW: dict[str, set[str]] = {
    "errors": set(),
    "privacy": {"errors"},
    "claims": {"errors"},
    "plotting": {"errors"},
    "codec": {"errors", "privacy"},
    "result": {"errors", "codec", "privacy", "plotting"},
    "mechanisms": {"errors", "privacy"},
    "data": {"errors", "privacy"},
    "statistics": {"errors", "privacy"},
    "regression": {"errors", "privacy"},
    "simulate": {"errors", "privacy", "data", "simulate_panels"},
    "simulate_panels": {"errors", "privacy", "data"},
    "core": {"errors", "codec", "privacy", "data", "result"},
    "releases": {"errors", "codec", "privacy", "statistics", "result"},
    "direction": TASK,
    "independence": TASK,
    "synthetic_control": TASK - {"statistics", "simulate"},
    "discovery": TASK | {"independence"},
    "effects": TASK - {"simulate"},
    "methods": TASKS,
    "papers": TASK | TASKS,
    "planning": TASK | TASKS,
    "study": TASK | TASKS | {"claims", "planning"},
    "interop": {"errors", "privacy", "data", "independence", "discovery"},
    "audit": {"errors", "privacy", "mechanisms"},
    "demo": {"errors", "direction", "effects", "study"},
}

LATE: set[tuple[str, str]] = set()
"""A release is asked again by its own methods: what they call stands above it, and is imported when they are called."""

TOP = {"__init__", "api", "cli"}

LAZY = {
    "scipy", "sklearn", "opendp", "numba", "pandas", "polars", "duckdb", "pyarrow", "matplotlib", "rich", "statsmodels",
    "networkx", "dp_accounting", "causallearn", "pgmpy", "dowhy",
}  # fmt: skip


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_run_one_way(path: Path) -> None:
    here = room(path)
    if here in TOP:
        return
    late = {above for file, above in LATE if file == path.relative_to(SOURCE).as_posix()}
    for name in imported(ast.parse(path.read_text())):
        parts = name.split(".")
        if parts[0] == "dpcausal":
            assert len(parts) > 1, f"{path.name} imports the whole package"
            assert parts[1] in BELOW[here] | {here} | late, f"{here} may not import {parts[1]}"


def test_what_is_imported_late_is_imported_inside_a_function_or_for_types() -> None:
    for file, above in LATE:
        tree = ast.parse((SOURCE / file).read_text())
        at_once = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        assert not [name for node in at_once for name in imported(node) if name.startswith(f"dpcausal.{above}")]


def test_no_files_import_each_other_not_even_inside_a_function() -> None:
    known = {".".join(("dpcausal", *path.relative_to(SOURCE).with_suffix("").parts)): path for path in MODULES}
    graph = {}
    for name, path in known.items():
        tree = ast.parse(path.read_text())
        tree.body = [node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node))]
        late = path.relative_to(SOURCE).as_posix() in {file for file, _ in LATE}
        graph[name] = set() if late else imported(tree) & known.keys() - {name}
    TopologicalSorter(graph).prepare()  # raises CycleError


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_has_at_most_400_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_random_generators_are_named_in_the_noise_module_only(path: Path) -> None:
    text = path.read_text()
    if path.relative_to(SOURCE).as_posix() == "privacy/noise.py":
        return
    for forbidden in ("np.random", "numpy.random", "import random", "from random", ".rvs(", "import secrets"):
        assert forbidden not in text


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_hidden_answers_are_read_in_mechanisms_only(path: Path) -> None:
    allowed = room(path) == "mechanisms" or path.name == "sensitivity.py"
    nodes = ast.walk(ast.parse(path.read_text()))
    assert allowed or not [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "_answer"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_library_code_has_no_assert_since_python_o_drops_it(path: Path) -> None:
    assert not [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Assert)]


def test_no_room_is_called_utils() -> None:
    assert not [path for path in MODULES if "util" in path.name]


def test_importing_the_library_loads_no_heavy_package() -> None:
    program = "import sys, dpcausal; dpcausal.Table; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not LAZY & set(loaded)


def test_tests_mirror_the_tree() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    here = Path(__file__).parent
    assert rooms <= {name for name in os.listdir(here) if (here / name).is_dir()}
