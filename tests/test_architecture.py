"""The house rules that a machine can see."""

import ast
import os
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

from tests.sources import MODULES, SOURCE, those, tree

FLOOR = {"errors", "codec", "privacy", "mechanisms", "data", "statistics", "regression", "result", "plotting",
         "simulate"}  # fmt: skip
TASK = FLOOR | {"core", "releases"}
TASKS = {"direction", "independence", "discovery", "synthetic_control", "effects"}

# Each room may import itself, the rooms below it, and nothing else.
BELOW: dict[str, set[str]] = {
    "errors": set(),
    "arrays": set(),
    "privacy": {"errors"},
    "claims": {"errors"},
    "plotting": {"errors"},
    "codec": {"errors", "privacy"},
    "result": {"errors", "codec", "privacy", "plotting"},
    "mechanisms": {"errors", "privacy"},
    "data": {"errors", "privacy"},
    "statistics": {"errors", "privacy"},
    "regression": {"errors", "privacy"},
    "simulate": {"errors", "privacy", "data", "core"},
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
    "datasets": {"errors"},
    "demo": {"errors", "datasets", "effects", "result", "study"},
}

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


def test_imports_run_one_way() -> None:
    for path in MODULES:
        here = room(path)
        for name in imported(tree(path)) if here not in TOP else ():
            parts = name.split(".")
            if parts[0] == "dpcausal":
                assert len(parts) > 1, f"{path} imports the whole package"
                assert parts[1] in BELOW[here] | {here, "arrays"}, f"{path} may not import {parts[1]}"


def test_no_files_import_each_other_not_for_types_nor_late_nor_by_name() -> None:
    """Where a file imports by name, each of its texts that names a module counts, and each that may with its gaps."""
    names = {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): path
             for path in MODULES}  # fmt: skip
    graph = {}
    for name, path in names.items():
        by_name, found = "import_module" in path.read_text(), set[str]()
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inside = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= inside & names.keys() or {node.module}
            elif isinstance(node, ast.Constant) and by_name:
                found.add(str(node.value))
            elif isinstance(node, ast.JoinedStr) and by_name:
                parts = (re.escape(one.value) if isinstance(one, ast.Constant) else ".+" for one in node.values)
                pattern = "".join(parts)
                found |= {other for other in names if pattern.startswith("dpcausal") and re.fullmatch(pattern, other)}
        graph[name] = found & names.keys() - {name}
    TopologicalSorter(graph).prepare()  # raises CycleError


def test_no_file_looks_a_class_up_among_the_loaded_modules() -> None:
    found = [path for path in MODULES if "sys.modules" in path.read_text()]
    assert found == [SOURCE / "__init__.py"]  # the front door, which brings names when they are asked for


def test_a_file_has_at_most_400_lines() -> None:
    assert those(lambda path: len(path.read_text().splitlines()) > 400) == []


def test_a_folder_has_at_most_14_files() -> None:
    folders = {path.parent for path in MODULES}
    assert [folder.name for folder in folders if len(list(folder.glob("*.py"))) > 14] == []


def test_random_generators_are_named_in_the_noise_module_only() -> None:
    forbidden = ("np.random", "numpy.random", "import random", "from random", ".rvs(", "import secrets")
    assert those(lambda path: any(name in path.read_text() for name in forbidden)) == ["privacy/noise.py"]


def test_hidden_answers_are_read_in_mechanisms_only() -> None:
    def reads(path: Path) -> bool:
        allowed = room(path) == "mechanisms" or path.name == "sensitivity.py"
        return not allowed and any(getattr(node, "attr", "") == "_answer" for node in ast.walk(tree(path)))

    assert those(reads) == []


def test_library_code_has_no_assert_since_python_o_drops_it() -> None:
    assert those(lambda path: any(isinstance(node, ast.Assert) for node in ast.walk(tree(path)))) == []


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
