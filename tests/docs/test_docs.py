"""The pages do what they say: their blocks run in order, their links resolve, the tests that they name exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import dpcausal
from benchmarks import validation
from tests.docs.pages import DOCS, LANGUAGES, ROOT, blocks, method_notes, prose, run_page, run_python, run_shell

PAGES = [*DOCS, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`")


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_every_block_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_the_blocks_of_the_readme_run_on_a_table_like_the_one_they_speak_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Python and its commands each begin anew, in a folder that holds the table and the schema it shows."""
    import numpy as np

    rng = np.random.default_rng(1)
    dose, smokes = rng.uniform(0, 50, 2000), rng.random(2000) < 0.5
    pressure = 150 - 25 * np.tanh(dose / 15) + 8 * smokes + rng.normal(0, 5, 2000)
    frame = {"dose": dose.round(3), "pressure": pressure.round(3), "smokes": np.where(smokes, "yes", "no")}
    found = list(blocks(ROOT / "README.md"))
    for language in ("python", "bash"):
        folder = tmp_path / language
        folder.mkdir()
        monkeypatch.chdir(folder)
        np.savetxt("study.csv", np.column_stack(list(frame.values())), "%s", ",", header=",".join(frame), comments="")
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


def test_every_page_stands_in_a_list_of_the_site() -> None:
    listed = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "site").glob("*.md")).splitlines()
    for page in DOCS:
        assert page.relative_to(ROOT).with_suffix("").as_posix() in listed, page.name


def test_one_version_everywhere() -> None:
    version = dpcausal.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = changes.partition(f"\n## {version}")[2].partition("\n## ")[0]
    assert "\n### Privacy\n" in released


def test_every_method_has_its_lines_on_when_to_use_it() -> None:
    methods = {name: one for name, one in vars(dpcausal.methods).items() if isinstance(one, type)}
    notes = method_notes()
    assert notes.keys() == methods.keys()
    for name, lines in notes.items():
        text = "\n".join(lines)
        for part in ("* **Use it when**", "* **Do not use it when**", "* **It supposes**"):
            assert text.count(part) == 1, f"{name}: {part}"
        assert f"### `{name}` ({methods[name].name})" in (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("check", validation.CHECKS, ids=lambda check: f"{check.package}, {check.what}")
def test_what_the_page_says_of_a_package_still_agrees(check: validation.Check) -> None:
    line = validation.rows_of(validation.PAGE.read_text(encoding="utf-8"))[check.what]
    assert float(line.split("|")[4]) >= check.digits and check.package in line
    if check.package in {"scipy", "scikit-learn", "statsmodels", "pandas", "dp-accounting"}:
        assert check.measured() >= check.digits
