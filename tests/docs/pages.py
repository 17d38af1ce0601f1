"""What a page holds: blocks that are run, files that they write, and what is printed on the way.

In ``docs/`` a ``python`` block is executed, a ``bash`` block runs line by line, a block whose first line names a
file (```` ```toml schema.toml ````) is written to it, and a ``text`` block is only shown.  Each page starts in an empty
folder of its own.  In a ``bash`` block a line ``dpcausal ...`` goes through the command with the exit code that its
comment states (``# exit code 3``), 0 by default; ``pip`` and ``make`` lines are compared with the project's extras and
targets.  A block ``python with-peers`` needs another package, and runs under ``make peers``.
"""

import ast
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "site")
LANGUAGES = {"python", "bash", "toml", "text"}
PEERS = "with-peers"
EVIDENCE = "{evidence}"
"""A table of a recorded result, which the build of the site puts there."""

@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file it is to be written to (or ""), the line it starts on, its text."""

    language: str
    file: str
    line: int
    text: str


def blocks(page: Path) -> Iterator[Block]:
    inside: Block | None = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if inside is None and line.startswith("```"):
            language, _, file = line.removeprefix("```").partition(" ")
            inside = Block(language, file, number + 1, "")
        elif inside is not None and line == "```":
            yield inside
            inside = None
        elif inside is not None:
            inside = Block(inside.language, inside.file, inside.line, f"{inside.text}{line}\n")
    assert inside is None, f"{page.name}: a block is not closed"


def prose(page: Path) -> str:
    """Return the page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def run_python(block: Block, page: Path, names: dict[str, Any], show: Callable[[object], None] | None = None) -> None:
    """Execute a block, and hand over the value that it ends with, which a notebook would show."""
    # Blank lines before it give a traceback the page's own line numbers.
    tree = ast.parse("\n" * (block.line - 1) + block.text, str(page))
    last = tree.body.pop() if show and tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(page), "exec"), names)
    if show and isinstance(last, ast.Expr):
        show(eval(compile(ast.Expression(last.value), str(page), "eval"), names))


def run_shell(block: Block) -> None:
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        stated = re.search(r"# exit code (\d+)$", line)
        if words and words[0] == "dpcausal":
            assert exit_code(words[1:]) == int(stated[1] if stated else 0), line
        elif words:
            assert is_known_setup(words), f"line {block.line}: {line}"


def exit_code(arguments: list[str]) -> int:
    from typer.testing import CliRunner

    from dpcausal.cli import app

    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    print(f"$ dpcausal {shlex.join(arguments)}\n{done.output}")
    return done.exit_code


def is_known_setup(words: list[str]) -> bool:
    """Return whether a line installs an extra that exists or makes a target that exists."""
    if words[:2] == ["pip", "install"]:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        asked = re.search(r"\[(.*)\]", words[-1])
        return set(asked[1].split(",") if asked else ()) <= set(extras)
    return words[0] == "make" and all(f"\n{target}:" in (ROOT / "Makefile").read_text() for target in words[1:])


def run_page(
    page: Path, *, peers: bool = False, show: Callable[[object], None] | None = None,
    after: Callable[[Block], None] = lambda block: None,
) -> None:  # fmt: skip
    """Run a page in the present folder, and tell of each block that ran."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == EVIDENCE:
            continue
        assert block.language in LANGUAGES, f"{page.name}, line {block.line}"
        if block.file == PEERS and not peers:
            continue
        if block.file not in {"", PEERS}:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            run_python(block, page, names, show)
        elif block.language == "bash":
            run_shell(block)
        after(block)
