"""The report: one file that loads nothing, whose tags close, and that tells what was released and no more."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import dpcausal as dpc
from dpcausal.claims import claims
from dpcausal.study.report.content import document
from dpcausal.study.report.figures import budget_label, drawn
from dpcausal.study.report.html import html, levels_in_order, markdown
from dpcausal.study.report.registry import record, yaml
from dpcausal.study.report.wording import sources
from tests.study.made import asked, main, write

N = 3000

@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> dpc.Study:
    folder = tmp_path_factory.mktemp("study")
    path = write(folder, asked(), n=N, title='A <study> & its "report"')
    found = dpc.Study.open(path)
    assert found.run(new_ledger=True).done
    return found


class Tags(HTMLParser):
    """Check that tags close in order, and collect what is loaded and named."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.loaded: list[str] = []
        self.headings: list[int] = []
        self.images: list[dict[str, Any]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.ids += [str(told["id"])] if "id" in told else []
        self.loaded += [str(told[name]) for name in ("src", "href", "srcset", "action") if name in told]
        self.headings += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
        self.images += [told] if tag == "svg" else []
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, tag


def test_the_page_is_whole_loads_nothing_and_can_be_read_aloud(study: dpc.Study) -> None:
    path = study.report()
    page, seen = path.read_text(encoding="utf-8"), Tags()
    seen.feed(page)
    assert page.startswith("<!DOCTYPE html>") and seen.open == []
    assert seen.loaded == [] and "http" not in page and "<script" not in page and "@import" not in page
    assert len(set(seen.ids)) == len(seen.ids)
    assert seen.headings[0] == 1 and seen.headings.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(seen.headings, seen.headings[1:], strict=False))
    assert len(seen.images) == 4 and all(one["role"] == "img" and one["aria-label"] for one in seen.images)
    assert '<html lang="en">' in page and 'name="viewport"' in page and "prefers-color-scheme:dark" in page
    assert "@media print" in page and page.count("<th ") == page.count('<th scope="col">')
    assert "A &lt;study&gt; &amp; its" in page and "<study>" not in page


def test_every_answer_its_cost_its_assumptions_and_the_ledger_are_told(study: dpc.Study) -> None:
    facts = study._report_inputs()
    text = markdown(document(facts))
    for one in facts.standings:
        assert f"### {one.question.name}" in text
    for expected in ("Is a linked to b?", "Which is the cause, u or v?", "How much does a change b?", facts.head,
                     "ε = 1", "sampling", "causal only if every common cause",
                     "lacks a column of a question is left out", "(1) Is a linked to b? By ci_test, method ",
                     "The support of each edge", "for a person to fill", "6 of 9 ε spent, 3 left"):  # fmt: skip
        assert expected in text, expected
    assert levels_in_order(document(facts)) and "* Software: Python" in text


def test_the_report_is_made_without_the_data(study: dpc.Study) -> None:
    told = study.path.read_text()
    try:
        study.path.write_text(told.replace("ledger =", f"n = {N}\nledger =", 1))
        moved = study.path.parent / "d.csv"
        kept = moved.read_text()
        moved.unlink()
        assert "Is a linked to b?" in dpc.Study.open(study.path).report("other.html").read_text()
        moved.write_text(kept)
    finally:
        study.path.write_text(told)


TIER = {
    "basic": {"name", "data_curators", "intended_use", "data_product_type", "data_product_region", "description",
              "publication_date"},
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {"privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details"},
    "deployment_model": {"model_name", "actors", "release_type", "release_type_details", "data_source_type",
                         "access_type", "access_type_details"},
    "accounting": {"post_processing", "composition"},
    "implementation": {"preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"},
    "administrative": {"registry_authors"},
}  # fmt: skip
"""The fields of the registry's third tier, as its public schema names them."""

CHOICES = {
    "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
    "data_product_type": {"Summary statistics", "Machine learning model", "Dataset", "Synthetic data",
                          "Interactive API", "SQL queries"},
    "model_name": {"Local", "Central", "Shuffle", "Federated", "Varies"},
    "release_type": {"One release", "Many releases"}, "data_source_type": {"Static", "Dynamic"},
    "access_type": {"Interactive", "Non-interactive"},
}  # fmt: skip


def test_the_registry_record_has_the_fields_of_the_third_tier_and_no_others(study: dpc.Study) -> None:
    made = record(study._report_inputs())
    assert set(made) == {"url_slug", "status", "tier", "deployment"} and (made["tier"], made["status"]) == (3, "Draft")
    assert {room: set(fields) for room, fields in made["deployment"].items()} == TIER
    for fields in made["deployment"].values():
        for name, value in fields.items():
            assert name not in CHOICES or value in CHOICES[name], name
            assert value not in ("", [], None), name
    assert re.fullmatch("[a-z0-9-]+", made["url_slug"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", made["deployment"]["basic"]["publication_date"])
    lines = yaml(made).splitlines()
    assert all(re.fullmatch(r' *(- )?([a-z_]+:)?( ?(".*"|[\d.]+))?', line) for line in lines)
    assert "      delta: 0.000001" in lines


def test_a_picture_of_released_numbers_stays_on_its_fixed_scale() -> None:
    for share in (-1.0, 0.0, 0.5, 7.0):
        svg, _ = budget_label(1.0, share, "ε")
        assert all(0 <= float(x) <= 360 for x in re.findall(r'width="([\d.-]+)"', svg))
    assert drawn(object()) is None


def test_pictures_of_counts_and_paths_are_drawn_of_what_was_released(study: dpc.Study) -> None:
    way = next(one for one in study._report_inputs().answers if isinstance(one, dpc.Direction))
    picture = drawn(replace(way, counts=(36, 10, 62, 250), settings={"blocks": 100}))
    assert picture is not None and "linked 36" in picture[1]
    wide = [float(x) for x in re.findall(r'class="one" x="12" y="\d+" width="([\d.]+)"', picture[0])]
    assert wide == [121.0, 208.3, 336]  # of 336 for 100 blocks; noise beyond them is cut at the scale's end
    made = dpc.simulate.factor_panel(1000, effect=0.3, seed=1)
    panel = dpc.Panel.from_arrays(made.donors, made.target, start=made.start, bounds=made.bounds,
                                  ledger=dpc.Ledger.in_memory(dpc.PureDP(1), unit="unit"))  # fmt: skip
    answer = dpc.synthetic_control(panel, loss=dpc.PureDP(1))
    path = drawn(answer)
    assert path is not None and path[0].count("<polyline") == 3
    drawn_points = re.findall(r'class="observed" points="([^"]+)"', path[0])[0].split()
    assert len(drawn_points) == len(made.target)  # no year dropped


def test_html_of_hostile_text_is_text() -> None:
    from dpcausal.study.report.content import Block

    page = html([Block("title", "<script>x</script>"), Block("text", '"><img src=x>'), Block("answer", "<b>")])
    assert "<script" not in page and "<img" not in page and "<b>" not in page


def test_spends_sources_and_persons_are_told_as_people_write_them(tmp_path: Path) -> None:
    """Seen to fail: ``PureDP(0.5)`` in the table, a source that began with a semicolon, persons counted as rows."""
    for line in sources(tuple(claims())):
        assert line.partition(": ")[2][:1] not in ";.,", line
    rows = "\n".join(f"p{k},{k % 2},{(k // 2) % 2}" for k in range(400))
    (tmp_path / "d.csv").write_text(f"id,a,b\n{rows}\n")
    (tmp_path / "s.toml").write_text(
        'title = "t"\ndata = "d.csv"\nperson = "id"\nledger = "l"\nbudget = { epsilon = 2.0 }\n'
        "[columns.a]\nlevels = [0, 1]\n[columns.b]\nlevels = [0, 1]\n"
        '[[question]]\nname = "q"\ntask = "ci_test"\nx = "a"\ny = "b"\ngiven = []\nepsilon = 0.5\n'
    )
    study = dpc.Study.open(tmp_path / "s.toml")
    study.run(new_ledger=True)
    told = study.report("r.html").with_suffix(".md").read_text()
    assert "| ε = 0.5 |" in told and "PureDP" not in told and "400 persons." in told and "400 rows" not in told


def test_the_studies_that_a_browser_looks_at_run_to_the_end(tmp_path: Path) -> None:
    """What ``make browser`` opens, without the browser; it once was broken for want of this test."""
    main(tmp_path)
    for page, answers in (("table", 6), ("panel", 1)):
        text = (tmp_path / f"{page}.html").read_text()
        assert text.count('class="answer"') >= answers and "<svg" in text, page
    told = (tmp_path / "table.md").read_text()
    assert "It cannot be asked: " in told and "6 answered" in told
