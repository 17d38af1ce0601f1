"""The report: one file that loads nothing, whose tags close, and that tells what was released and no more."""

import os
import re
from dataclasses import replace
from functools import lru_cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.meta_analysis import combine_effects

import dpcausal as dpc
from dpcausal.claims import claims
from dpcausal.effects.result import GroupEffect
from dpcausal.study.phrases import QUESTIONS, STATEMENTS
from dpcausal.study.report.answer_box import _group_sentence, homogeneity_pvalue
from dpcausal.study.report.assumptions import assumption_lines
from dpcausal.study.report.deployments import registry_record, yaml
from dpcausal.study.report.figures import Figures
from dpcausal.study.report.findings import odds
from dpcausal.study.report.html import Block, html, markdown
from dpcausal.study.report.pages import _proof_sources, document
from dpcausal.study.wording import Wording, disagreements, estimate_of
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
    """Check that tags close in order, and collect them with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, Any]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, tag


def test_the_page_is_whole_loads_nothing_and_can_be_read_aloud(study: dpc.Study) -> None:
    path = study.report()
    page, tags = path.read_text(encoding="utf-8"), Tags()
    tags.feed(page)
    ids, *loaded = ([told[name] for _, told in tags.seen if name in told]
                    for name in ("id", "src", "href", "srcset", "action"))  # fmt: skip
    headings = [int(tag[1]) for tag, _ in tags.seen if re.fullmatch("h[1-6]", tag)]
    images = [told for tag, told in tags.seen if tag == "svg"]
    assert page.startswith("<!DOCTYPE html>") and tags.open == []
    assert {one[:1] for ones in loaded for one in ones} == {"#"} and "<script" not in page and "@import" not in page
    assert len(set(ids)) == len(ids)
    assert headings[0] == 1 and headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    assert len(images) >= 4 and all(one["role"] == "img" and one["aria-label"] for one in images)
    assert '<html lang="en">' in page and 'name="viewport"' in page
    assert "@media print" in page and page.count("<th ") == page.count('<th scope="col">')
    assert "A &lt;study&gt; &amp; its" in page and "<study>" not in page


def numbers_in(text: str) -> set[str]:
    return set(re.findall(r"\d+\.\d+|\d+", text))


def test_every_question_has_a_finding_an_entry_of_the_ledger_and_an_appendix(study: dpc.Study) -> None:
    inputs = study._report_inputs()
    pages = document(inputs)
    blocks = [*pages, *pages[-1].inside]
    tables = {block.text: block.rows for block in blocks if block.kind == "table"}
    questions = inputs.plan.questions
    assert len(tables["Findings"]) > len(inputs.results) and len(tables["Analyses"]) - 1 == len(questions)
    assert len(tables["Every spend of the ledger"]) - 1 == len(inputs.entries)
    assert [row[0] for row in tables["Variables"][1:]] == list(study.schema or ())
    parts = [block.text for block in blocks if block.kind == "subheading"]
    assert parts[: len(questions)] == [one.question.name for one in questions]
    assert [block.kind for block in pages].count("page") == 1 and pages[-1].kind == "appendix"
    assert inputs.plan.account in markdown(pages) and inputs.plan.head in markdown(pages)
    assert {"6", "9", "3.00"} <= numbers_in(inputs.plan.account)


def test_the_methods_paragraph_states_the_loss_that_was_spent_and_not_the_budget(study: dpc.Study) -> None:
    inputs = study._report_inputs()
    (methods,) = [block.text for block in document(inputs) if block.kind == "quote" and "OpenDP" in block.text]
    assert inputs.spent == dpc.PureDP(6) and str(inputs.spent) in methods and str(inputs.plan.budget) not in methods


@lru_cache
def inputs_under(study: dpc.Study, design: str) -> Any:
    text = study.path.read_text()
    try:
        study.path.write_text(text + (f'[design]\ntype = "{design}"\n' if design else ""))
        return dpc.Study.open(study.path)._report_inputs()
    finally:
        study.path.write_text(text)


def box(inputs: Any) -> tuple[str, ...]:
    """Return the lines of the box at the head of a report."""
    (found,) = [block for block in document(inputs) if block.kind == "answer"]
    return found.text, *found.lines


def test_only_a_declared_design_makes_an_association_an_effect(study: dpc.Study) -> None:
    boxes = {design: box(inputs_under(study, design)) for design in ("", "observational", "randomised")}
    causal = {design: any("increased" in line for line in text) for design, text in boxes.items()}
    assert causal == {"": False, "observational": False, "randomised": True}


def lines_of(study: dpc.Study, design: str, **changed: Any) -> str:
    """Return the report under a declared design, fields of its effect changed."""
    inputs = inputs_under(study, design)
    questions = tuple(replace(one, answer=replace(one.answer, **changed)) if isinstance(one.answer, dpc.Effect) else one
                      for one in inputs.plan.questions)  # fmt: skip
    return markdown(document(replace(inputs, plan=replace(inputs.plan, questions=questions))))


def test_the_first_page_says_whom_the_estimate_leaves_out_and_how_much_is_noise(study: dpc.Study) -> None:
    first = {share: lines_of(study, "", share_supported=share).split("## Findings")[0] for share in (0.64, 0.996)}
    assert "64 %" in first[0.64] and "36 %" in first[0.64] and "in strata where both arms" not in first[0.996]
    wide = lines_of(study, "", interval=(-0.11, 0.12), standard_error=0.05, noise_error=0.04).split("## Findings")[0]
    assert "±12 per" in wide and "±6.9 per" in wide and "11 percentage points to" in wide


def test_confounding_is_assumed_and_measured_unless_the_treatment_was_randomised(study: dpc.Study) -> None:
    for design in ("", "observational", "randomised"):
        page = lines_of(study, design, e_value=2.5, e_value_limit=1.9)
        assert ("No unmeasured confounding" in page) == ("2.50" in page) == (design != "randomised")
        inconclusive = lines_of(study, design, interval=(-0.1, 0.9), e_value=2.5)
        assert "2.50" not in inconclusive


def test_where_a_graph_lacks_an_edge_that_a_test_found_a_sentence_says_on_which_we_rely(study: dpc.Study) -> None:
    inputs = study._report_inputs()
    assert disagreements(inputs.results, inputs.wording) == []
    empty = [(question, replace(answer, graph=dpc.Cpdag(answer.graph.nodes, [], []))
              if isinstance(answer, dpc.Discovery) else answer) for question, answer in inputs.results]  # fmt: skip
    told = disagreements(empty, inputs.wording)
    assert len(told) == 2  # of the test, and of the effect


def test_a_test_of_three_levels_has_no_sign_and_one_of_two_has() -> None:
    rng = np.random.default_rng(1)
    x, z = rng.integers(0, 3, 600), rng.random(600)
    frame = {"three": x, "two": (x > 0).astype(int), "y": np.clip(x / 2, 0, 1), "z": z}
    schema = {"three": dpc.Levels([0, 1, 2]), "two": dpc.Levels([0, 1]), "y": dpc.Bounded(0, 1), "z": dpc.Bounded(0, 1)}
    table = dpc.Table(frame, dpc.Schema(schema), dpc.Ledger.without_privacy())
    wording = Wording(declared={"three": ("0", "1", "2"), "two": ("0", "1")})
    for name, levels in (("three", 3), ("two", 2)):
        found = dpc.ci_test(table, name, "y", given=["z"], loss=dpc.NoPrivacy(), method="gcm")
        turned = replace(found, statistic=-found.statistic)
        one, other = (wording.conclusions(SimpleNamespace(task="ci_test"), answer) for answer in (found, turned))
        assert (one == other) is (levels == 3)
    answer = dpc.ci_test(table, "two", "y", given=["z"], loss=dpc.NoPrivacy(), method="gcm")
    signs = {levels: Wording(declared={"two": levels})._sign_text(answer)
             for levels in (("no", "yes"), ("yes", "no"), ("f", "m"))}  # fmt: skip
    assert len(set(signs.values())) == 3 and not signs["f", "m"]


def test_the_methods_paragraph_names_the_answers_from_earlier_data(tmp_path: Path) -> None:
    before = worded(tmp_path, "")
    os.utime(tmp_path / "d.csv")
    after = dpc.Study.open(tmp_path / "s.toml")._report_inputs()
    texts = [block.text for inputs in (before, after) for block in document(inputs)
             if block.kind == "quote" and "OpenDP" in block.text]  # fmt: skip
    assert all(before.wording.question(before.plan.questions[0].question, STATEMENTS, "") in text for text in texts)
    assert len(set(texts)) == 2


def test_the_sentence_of_an_effect_names_the_levels_compared_unless_they_are_yes_and_no(study: dpc.Study) -> None:
    inputs = study._report_inputs()
    effect = next(one for _, one in inputs.results if isinstance(one, dpc.Effect))
    estimate = estimate_of(effect)
    assert estimate is not None
    usual = inputs.wording.effect_sentence(replace(effect, treated="yes", control="no"), estimate)
    turned = inputs.wording.effect_sentence(replace(effect, treated="no", control="yes"), estimate)
    assert "= no (compared with yes)" in turned and "compared with" not in usual


SAME = '[[question]]\nname="{}"\ntask="effect"\ntreatment="a"\noutcome="b"\nadjust=[]\nepsilon=0.5\n{}'


def worded(folder: Path, *more: str) -> Any:
    """Return the report's inputs of a study whose effects differ in what each adds, run."""
    found = dpc.Study.open(write(folder, "".join(SAME.format(f"q{k}", one) for k, one in enumerate(more)), n=N))
    found.run(new_ledger=True)
    return found._report_inputs()


def test_the_words_of_a_question_name_the_levels_and_are_those_of_no_other(tmp_path: Path) -> None:
    more = ("", "event=0\n", "treated=0\ncontrol=1\n", "treated=0\n", "coverage=0.8\n",
            "coverage=0.8\nestimand='att'\n")  # fmt: skip
    inputs = worded(tmp_path, *more)
    for forms in (QUESTIONS, STATEMENTS):
        words = [inputs.wording.question(one.question, forms) for one in inputs.plan.questions]
        assert len(set(words)) == len(more)
        assert ["b = 0" in text for text in words] == [False, True, False, False, False, False]
        assert ["0 vs 1" in text for text in words] == [False, False, True, True, False, False]
        assert ["0.8" in text for text in words] == [False] * 4 + [True] * 2
    short = [one.about for one in inputs.plan.questions]
    assert len({short[0], short[1], short[2]}) == 3 and short[0] == short[4]


def test_of_several_effects_each_line_of_sensitivity_names_its_question(study: dpc.Study) -> None:
    inputs = study._report_inputs()
    one = next(part for part in inputs.plan.questions if isinstance(part.answer, dpc.Effect))
    for ratios, named in (((2.0, 3.0), 2), ((2.0, 2.0), 0)):
        parts = tuple(replace(one, answer=replace(one.answer, e_value=ratio)) for ratio in ratios)
        lines = assumption_lines(replace(inputs, plan=replace(inputs.plan, questions=parts)))
        assert sum(f"Question {number}:" in line for line in lines for number in (1, 2)) == named


def test_intervals_are_headed_by_their_coverage_or_each_states_its_own(tmp_path: Path) -> None:
    tables = dict[tuple[str, ...], Any]()
    for more in (("coverage=0.8\n", "coverage=0.8\nevent=0\n"), ("coverage=0.8\n", "coverage=0.9\n")):
        folder = tmp_path / str(len(tables))
        folder.mkdir()
        blocks = document(worded(folder, *more))
        (rows,) = [block.rows for block in blocks if block.kind == "table" and block.text == "Findings"]
        (methods,) = [block.text for block in blocks if block.kind == "quote" and "OpenDP" in block.text]
        tables[more] = [numbers_in(row[2]) & {"80", "90", "95"} for row in rows]
        assert {"80", "90", "95"} & numbers_in(methods) == set().union(*tables[more])
    assert list(tables.values()) == [[{"80"}, set(), set()], [set(), {"80"}, {"90"}]]


def test_odds_are_those_of_the_loss() -> None:
    assert "85.2 %" in odds(dpc.PureDP(1.75)) and odds(None) == "" and "50.1 %" in odds(dpc.PureDP(0.001))


def test_a_figure_has_the_same_bytes_for_the_same_numbers_and_ids_of_its_own(study: dpc.Study) -> None:
    effect = next(one for _, one in study._report_inputs().results if isinstance(one, dpc.Effect))
    first, again = Figures().of(effect, "text"), Figures().of(effect, "text")
    assert first == again and 'aria-label="text"' in first
    figures = Figures()
    ids = [set(re.findall(r' id="([^"]+)"', figures.of(effect, "text"))) for _ in range(2)]
    assert not ids[0] & ids[1] and Figures().of(object(), "text") == ""


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
    made = registry_record(study._report_inputs())
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


def test_html_of_hostile_text_is_text() -> None:
    page = html([Block("title", "<script>x</script>"), Block("text", '"><img src=x>'), Block("answer", "<b>")])
    assert "<script" not in page and "<img" not in page and "<b>" not in page


def test_sources_begin_with_a_word() -> None:
    for line in _proof_sources(tuple(claims())):
        assert line.partition(": ")[2][:1] not in ";.,", line


def test_the_studies_that_a_browser_looks_at_run_to_the_end(tmp_path: Path) -> None:
    """What ``make browser`` opens, without the browser; it once was broken for want of this test."""
    main(tmp_path)
    for page, answers in (("table", 6), ("panel", 1)):
        text = (tmp_path / f"{page}.html").read_text()
        assert text.count('class="output"') >= answers and "<svg" in text, page


def grouped(*ends: tuple[float, float]) -> Any:
    """Return an effect in groups of such intervals, each about its middle."""
    groups = tuple(GroupEffect(f"site = {place}", sum(both) / 2, both, "", 1.0) for place, both in enumerate(ends))
    return SimpleNamespace(by_group=groups, coverage=0.95, event=None, outcome="y")


def test_groups_are_compared_by_cochrans_test() -> None:
    rng = np.random.default_rng(1)
    means, errors = rng.normal(size=12), rng.uniform(0.1, 0.5, 12)
    answer = grouped(*((mean - 1.959964 * error, mean + 1.959964 * error)
                       for mean, error in zip(means, errors, strict=True)))  # fmt: skip
    peer = combine_effects(means, errors**2).test_homogeneity()
    assert homogeneity_pvalue(answer.by_group, 0.95) == pytest.approx(float(peer.pvalue), rel=1e-4)
    draws = [homogeneity_pvalue(grouped(*((one - 1.96, one + 1.96) for one in rng.normal(size=20))).by_group, 0.95)
             for _ in range(400)]  # fmt: skip
    assert np.mean(np.array(draws) < 0.05) < 0.1


@pytest.mark.parametrize(("ends", "first"), [
    (((-7.0, -6.0), (-4.0, -3.0)), "0"), (((3.0, 4.0), (6.0, 7.0)), "1"), (((-7.0, -6.0), (1.0, 2.0)), "0"),
])  # fmt: skip
def test_of_two_groups_the_one_with_the_larger_effect_is_named_first(ends: Any, first: str) -> None:
    text = _group_sentence(SimpleNamespace(wording=Wording()), grouped(*ends))  # type: ignore[arg-type]
    places = {name: text.index(Wording().group(f"site = {name}")) for name in ("0", "1")}
    assert min(places, key=lambda name: places[name]) == first and ("−3" not in text) and ("3" in text or "8" in text)
