"""Records of benchmarks: JSON files that say what was measured, by which code, and whether that code has changed.

One file a benchmark, ``results/<task>/<name>.json``; one row a cell of its grid.
"""

import ast
import hashlib
import json
import math
import platform
import shlex
import subprocess
from collections.abc import Iterable
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
SOURCE = HERE.parent / "src"


def _file_of(module: str) -> Path | None:
    path = SOURCE / module.replace(".", "/")
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)


@cache
def _code_of(module: str) -> tuple[str, frozenset[str]]:
    """The module's syntax without docstrings, and the modules of the library that it names in imports."""
    path = _file_of(module)
    if path is None:
        return "", frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            del node.body[0]
    known = (name for name in imported if name.startswith("dpcausal") and _file_of(name))
    return ast.dump(tree), frozenset(known)


def modules_of(roots: Iterable[str]) -> list[str]:
    """The roots and every module of the library that they import, directly or not."""
    found, waiting = set[str](), [root for root in roots if _file_of(root)]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += _code_of(module)[1]
    return sorted(found)


def code_hash(roots: Iterable[str]) -> str:
    """The hash of the code of these modules and of what they import; docstrings and comments do not count.

    It is empty if there is no such module.
    """
    text = "\n".join(f"{module} {_code_of(module)[0]}" for module in modules_of(roots))
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""


def stale(record: dict[str, Any]) -> bool:
    """Whether the code of any recorded method has changed since, or is not known."""
    return any(not code["hash"] or code["hash"] != code_hash(code["modules"]) for code in record["code"].values())


def cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    return next((line.split(": ", 1)[1] for line in lines if line.startswith("model name")), platform.processor())


def commit() -> str:
    """The commit of the working tree, with a plus where files of the library differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "--", str(SOURCE)) else "")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def write(
    task: str, name: str, command: list[str], rows: list[dict[str, Any]], roots: dict[str, list[str]], seeds: str
) -> Path:
    """Write the record of a run; ``roots``: by method, the modules whose code is hashed with what they import."""
    path = RESULTS / task / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {
        "benchmark": name, "task": task, "command": f"python -m benchmarks {shlex.join(command)}",
        "version": version("dpcausal"), "commit": commit(), "date": date.today().isoformat(), "cpu": cpu(),
        "seed_rule": seeds,
        "code": {method: {"hash": code_hash(some), "modules": some} for method, some in sorted(roots.items())},
    }  # fmt: skip
    lines = ",\n".join(f"  {json.dumps(_plain(row), ensure_ascii=False)}" for row in rows)
    text = json.dumps(head, indent=1, ensure_ascii=False)[:-2] + f',\n "rows": [\n{lines}\n ]\n}}\n'
    path.write_text(text, encoding="utf-8")
    return path


def read(task: str, name: str) -> dict[str, Any]:
    return dict(json.loads((RESULTS / task / f"{name}.json").read_text(encoding="utf-8")))
