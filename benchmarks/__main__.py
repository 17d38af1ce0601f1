"""Run benchmarks, each in a process of its own.

    python -m benchmarks                     all of them, one after the other
    python -m benchmarks efficiency          one; what follows the name is passed on to it
    python -m benchmarks --list              what there is
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

NAMES = ("efficiency", "direction_speed", "hsic_speed", "ledger_speed")
HERE = Path(__file__).resolve().parent


def about(name: str) -> str:
    """Return the first line of a benchmark's docstring."""
    text = ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8"))) or ""
    return text.split("\n", 1)[0]


def run(name: str, arguments: list[str]) -> int:
    """Run one benchmark in a fresh process and return its exit code."""
    print(f"== {name}: {about(name)}\n", flush=True)
    code = subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *arguments], cwd=HERE.parent, check=False)
    print(flush=True)
    return code.returncode


def main(arguments: list[str]) -> int:
    """Return 0 if every benchmark that ran met its targets."""
    if arguments and arguments[0] in NAMES:
        return run(arguments[0], arguments[1:])
    if arguments:
        print("\n".join(f"{name:<17}{about(name)}" for name in NAMES))
        return 0 if arguments == ["--list"] else 2
    return max(run(name, []) for name in NAMES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
