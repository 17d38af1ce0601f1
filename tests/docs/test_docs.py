"""The pages do what they say: their blocks run in order, their links resolve, the tests that they name exist."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from runpy import run_path

import pytest

import dpcausal
import dpcausal.study.file
from benchmarks.peers import validation
from dpcausal.privacy.storage.witness import VARIABLE
from dpcausal.study.file import DESCRIPTIONS, Part, Price
from dpcausal.study.status import Forecaster
from tests.docs.language import sentences
from tests.docs.pages import DOCS, EVIDENCE, ROOT, blocks, prose, run_page, run_python, run_shell

PAGES = [*DOCS, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"))]
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+)(?:\[[^\]`]+\])?)?`")


@pytest.mark.parametrize("page", [*DOCS, ROOT / "README.md"], ids=lambda page: page.name)
def test_every_block_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Forecaster, "seconds", 0.5)  # a plan leaves out what takes longer, and says so
    run_page(page)


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
    pages = [page.read_text(encoding="utf-8") for page in DOCS if page.name.startswith("errata-")]
    entries = [entry for page in pages for entry in re.split(r"^### ", page, flags=re.MULTILINE)[1:]]
    assert len(pages) >= 4 and all("\n### " in page for page in pages)
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


def test_every_record_that_a_page_shows_is_made_by_the_benchmarks() -> None:
    known = tomllib.loads((ROOT / "benchmarks" / "evidence.toml").read_text(encoding="utf-8"))
    shown = {block.file.split()[0] for page in DOCS for block in blocks(page) if block.language == EVIDENCE}
    assert shown and shown <= known.keys()


def test_every_page_is_in_a_list_of_the_site() -> None:
    listed = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "site").glob("*.md")).splitlines()
    for page in DOCS:
        index = page.with_name("index.md")
        inside = index.exists() and f"]({page.name})" in index.read_text(encoding="utf-8")
        assert inside or page.relative_to(ROOT).with_suffix("").as_posix() in listed, page


def test_the_container_installs_extras_that_exist_and_keeps_the_witness_apart() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    (extras,) = re.findall(r"/source\[(.+?)\]", text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert f"{VARIABLE}=/witness" in text and "USER analyst" in text


def test_one_version_everywhere() -> None:
    version = dpcausal.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = changes.partition(f"\n## {version}")[2].partition("\n## ")[0]
    assert "\n### Privacy\n" in released


METHOD_PAGES = [page for page in DOCS if page.parent.name == "methods" and page.name != "index.md"]
STUDY_PAGE = ROOT / "docs" / "howto" / "run-a-study.md"


def test_each_key_of_a_study_that_is_accepted_has_its_line_in_the_reference(tmp_path: Path) -> None:
    reference = run_path(str(ROOT / "docs" / "site" / "reference.py"))
    parts = (part.partition("\n") for part in "\n".join(reference["study_keys"]()).split("\n## "))
    keys = {name.strip("`"): set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) for name, _, text in parts}
    models = [one for one in vars(dpcausal.study.file).values() if isinstance(one, type) and issubclass(one, Part)]
    listed = [set(model.model_fields) for model in models if model not in (Part, Price)]
    assert len(listed) >= 9 and all(fields in keys.values() for fields in listed)
    page = STUDY_PAGE.read_text(encoding="utf-8")
    for table in ("disclosure", "approvers"):
        assert keys[f"[{table}]"] == set(re.findall(rf"^\| `\[{table}\]` \| `(\w+)` \|", page, re.MULTILINE))
    ways = ({"lower": 0, "upper": 9, "cuts": [3]}, {"lower": "2019-01-01", "upper": "2020-01-01", "period": "year"},
            {"levels": ["a", "b"], "missing": [9], "other": "c", "spellings": {"A": "a"}})  # fmt: skip
    accepted = {key for way in ways for key in dpcausal.Schema({"x": way}) and way}
    assert keys["[columns.NAME]"] == accepted | set(DESCRIPTIONS)


SECTIONS = ("When to use it", "Assumptions", "Example", "Reading the output", "Privacy", "Accuracy", "Limitations")


def test_every_method_has_a_page_of_the_common_form() -> None:
    texts = {page: page.read_text(encoding="utf-8") for page in METHOD_PAGES}
    for page, text in texts.items():
        places = [text.find(f"\n## {section}\n") for section in SECTIONS]
        if page.stem in {"effect", "ci-test", "discover"}:
            places = [place for place in places if place >= 0]
            assert places, page.name
        assert min(places) >= 0 and places == sorted(places), page.name
    together = "\n".join(texts.values())
    for name, one in vars(dpcausal.methods).items():
        if isinstance(one, type) and not re.search(f"[`\"]{one.name}[`\"]|methods.{name}", together):
            # Without a page it has its line in the reference, which is written from its docstring.
            assert one.about and all(option.name in (one.__doc__ or "") for option in fields(one)), name


@pytest.mark.parametrize("page", [*DOCS, ROOT / "README.md"], ids=lambda page: page.name)
def test_a_page_is_short_and_its_sentences_are(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.split()) <= 1_200
    read = sentences(text)
    assert [" ".join(words) for words in read if len(words) > 25] == []
    assert sum(map(len, read)) <= 18 * max(1, len(read))


@pytest.mark.parametrize("check", validation.CHECKS, ids=lambda check: f"{check.package}, {check.what}")
def test_what_the_page_says_of_a_package_still_agrees(check: validation.Check) -> None:
    line = validation.rows_of(validation.PAGE.read_text(encoding="utf-8"))[check.what]
    assert float(line.split("|")[4]) >= check.digits and check.package in line
    if check.package in {"scipy", "scikit-learn", "statsmodels", "pandas", "dp-accounting"}:
        assert check.measured() >= check.digits


def test_every_key_of_a_study_file_and_every_public_name_has_its_line() -> None:
    schema = dpcausal.study.file.json_schema()
    keys = [(name, key, one) for name, part in {"": schema, **schema["$defs"]}.items()
            for key, one in part.get("properties", {}).items()]  # fmt: skip
    assert [(name, key) for name, key, one in keys if not one.get("description")] == [] and len(keys) > 40
    public = [name for name in dpcausal.__all__ if not (getattr(dpcausal, name).__doc__ or "").strip()]
    assert public == []
