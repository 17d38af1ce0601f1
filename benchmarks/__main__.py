"""Run benchmarks.

    python -m benchmarks                     all that are listed as usual, each in a process of its own
    python -m benchmarks effects_tails       one; what follows the name is passed on to it, --help among it
    python -m benchmarks effects --record    and write results/<task>/<name>.json
    python -m benchmarks evidence            the records of ``evidence.toml``, which pages show; or those that are named
    python -m benchmarks --list              what there is

A name is a module of this folder or of one below it, or a study: an entry of ``studies.toml``, which is a module with
other defaults.
"""

import ast
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.data import DataAbsentError

HERE = Path(__file__).resolve().parent
FOLDERS = (".", "papers", "peers")
STUDIES: dict[str, dict[str, Any]] = tomllib.loads((HERE / "studies.toml").read_text(encoding="utf-8"))
BY_NAME_ALONE = ("audit_", "paper")
"""Long runs of guarantees and replications."""


def modules() -> dict[str, Path]:
    """The modules that have a ``main``, by name."""
    files = (path for folder in FOLDERS for path in sorted((HERE / folder).glob("*.py")) if path.stem[0] != "_")
    return {path.stem: path for path in files if "\ndef main(" in path.read_text(encoding="utf-8")
            and path.stem != "run"}  # fmt: skip


def about(name: str) -> str:
    """The first line of what a study or a module says of itself."""
    if name in STUDIES:
        return str(STUDIES[name]["about"])
    text = ast.get_docstring(ast.parse(modules()[name].read_text(encoding="utf-8"))) or ""
    return text.split("\n", 1)[0]


def run(name: str, arguments: list[str]) -> int:
    """Run one in this process; the exit code is 0 if it met its targets."""
    study = dict(STUDIES.get(name, {}))
    module = study.pop("module", name)
    study.pop("about", None)
    path = modules()[module]
    print(f"== {name}: {about(name)}\n", flush=True)
    place = ".".join(("benchmarks", *path.relative_to(HERE).with_suffix("").parts))
    try:
        return int(import_module(place).main(arguments, name=name, **study))
    except DataAbsentError as absent:
        print(f"skipped: {absent}")
    except ModuleNotFoundError as absent:
        print(f"skipped: {absent.name} is not installed; pip install -e '.[benchmark]' brings what benchmarks need")
    return 0


def recorded(words: list[str]) -> int:
    """Make the records whose names have one of the words; without words, all."""
    known = tomllib.loads((HERE / "evidence.toml").read_text(encoding="utf-8"))
    wanted = [name for name in known if not words or any(word in name for word in words)]
    for name in wanted:
        options = [*shlex.split(known[name]["options"]), "--record", name.split("/")[1]]
        command = [sys.executable, "-m", "benchmarks", known[name]["study"], *options]
        subprocess.run(command, cwd=HERE.parent, check=False)
    return 0 if wanted else 2


def main(arguments: list[str]) -> int:
    names = [*STUDIES, *modules()]
    if arguments[:1] == ["evidence"]:
        return recorded(arguments[1:])
    if arguments and arguments[0] in names:
        return run(arguments[0], arguments[1:])
    if arguments:
        print("\n".join(f"{name:<30}{about(name)}" for name in names))
        return 0 if arguments == ["--list"] else 2
    usual = [name for name in names if not name.startswith(BY_NAME_ALONE)]
    commands = ([sys.executable, "-m", "benchmarks", name] for name in usual)
    return max(subprocess.run(command, cwd=HERE.parent, check=False).returncode for command in commands)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
