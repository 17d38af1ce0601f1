"""The pages do what they say: their blocks run in order, their links resolve, the tests that they name exist.

In ``docs/*.md`` a ``python`` block is executed, a ``bash`` block runs line by line, a block whose first line names a
file (```` ```toml schema.toml ````) is written to it, and a ``text`` block is only shown.  Each page starts in an empty
folder of its own.  In a ``bash`` block a line ``dpcausal ...`` goes through the command with the exit code that its
comment states (``# exit code 3``), 0 by default; ``pip`` and ``make`` lines are compared with the project's extras and
targets.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dpcausal

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*DOCS, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
LANGUAGES = {"python", "bash", "toml", "text"}
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`")


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


def run_python(block: Block, page: Path, names: dict[str, Any]) -> None:
    # Blank lines before it give a traceback the page's own line numbers.
    source = "\n" * (block.line - 1) + block.text
    exec(compile(source, str(page), "exec"), names)


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

    return CliRunner().invoke(app, arguments, catch_exceptions=False).exit_code


def is_known_setup(words: list[str]) -> bool:
    """Return whether a line installs an extra that exists or makes a target that exists."""
    if words[:2] == ["pip", "install"]:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        asked = re.search(r"\[(.*)\]", words[-1])
        return set(asked[1].split(",") if asked else ()) <= set(extras)
    return words[0] == "make" and all(f"\n{target}:" in (ROOT / "Makefile").read_text() for target in words[1:])


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_every_block_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{page.name}, line {block.line}"
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            run_python(block, page, names)
        elif block.language == "bash":
            run_shell(block)


def test_the_blocks_of_the_readme_run_on_a_table_like_the_one_they_speak_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Python and its commands each begin anew, in a folder that holds the table and the schema it shows."""
    import numpy as np

    rng = np.random.default_rng(1)
    dose = rng.uniform(0, 50, 2000)
    frame = {"dose": dose, "pressure": 150 - 25 * np.tanh(dose / 15) + rng.normal(0, 5, 2000)}
    found = list(blocks(ROOT / "README.md"))
    for language in ("python", "bash"):
        folder = tmp_path / language
        folder.mkdir()
        monkeypatch.chdir(folder)
        np.savetxt("study.csv", np.column_stack(list(frame.values())), "%.3f", ",", header=",".join(frame), comments="")
        names: dict[str, Any] = {"__name__": "__main__", "frame": frame}
        for block in found:
            assert block.language in LANGUAGES, block.line
            if block.language == "toml":
                Path("schema.toml").write_text(block.text, encoding="utf-8")
        for block in [one for one in found if one.language == language]:
            if language == "python":
                run_python(block, ROOT / "README.md", names)
            else:
                run_shell(block)


def test_a_block_that_fails_is_not_passed_over(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nassert 1 == 2\n```\n```bash\ndpcausal explain nothing\n```\n```bash\nrm x\n```\n")
    wrong, refused, unknown = blocks(page)
    with pytest.raises(AssertionError):
        run_python(wrong, page, {})
    with pytest.raises(AssertionError):
        run_shell(refused)
    with pytest.raises(AssertionError):
        run_shell(unknown)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, made as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_resolve(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_the_tests_that_a_page_names_exist(page: Path) -> None:
    for path, name in NAMED_TEST.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / path).is_file(), path
        assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), name


def test_every_erratum_is_shown_and_tied_to_a_test() -> None:
    pages = [page.read_text(encoding="utf-8") for page in DOCS if page.name.startswith("errata_")]
    entries = [entry for page in pages for entry in re.split(r"^### ", page, flags=re.MULTILINE)[1:]]
    assert len(pages) == 4 and all("\n### " in page for page in pages)
    for entry in entries:
        title = entry.splitlines()[0]
        for part in ("**Place.**", "**Printed.**", "**Wrong because.**", "**Instead.**", "**Test.**"):
            assert part in entry, f"{title}: {part}"
        assert "```python" in entry, title
        assert NAMED_TEST.search(entry) or "**Test.** This block." in entry, title


def test_claims_that_a_page_names_can_be_explained() -> None:
    for page in DOCS:
        for name in re.findall(r"claims? `([a-z0-9-]+)`", page.read_text(encoding="utf-8")):
            assert dpcausal.explain(name)


def test_one_version_everywhere() -> None:
    version = dpcausal.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = changes.partition(f"\n## {version}")[2].partition("\n## ")[0]
    assert "\n### Privacy\n" in released
