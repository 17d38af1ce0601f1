"""The files of the library, each parsed once for all rules that a machine can see."""

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "dpcausal"
MODULES = sorted(SOURCE.rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def those(breaks: Callable[[Path], object]) -> list[str]:
    """Return the files that break a rule."""
    return [str(path.relative_to(SOURCE)) for path in MODULES if breaks(path)]
