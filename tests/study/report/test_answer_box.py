"""The first page: a line for each result, each design's own assumption, and what is missing beside the finding."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.effects.did.result import GroupTimeEffects
from dpcausal.effects.estimators import METHODS
from dpcausal.study.report.answer_box import MOST_RESULTS, is_affirmed
from dpcausal.study.report.assumptions import (
    CONFOUNDING,
    IDENTIFIED,
    SIZE,
    assumption_lines,
    identification,
    limit_lines,
    stated_assumptions,
)
from dpcausal.study.report.figures import Figures
from dpcausal.study.report.pages import BY_PERSON, document
from dpcausal.study.wording import estimate_of
from tests.study.made import question, write

EFFECT = '[[question]]\nname="{}"\ntask="effect"\ntreatment="a"\noutcome="{}"\nadjust=[]\nepsilon=1\n'
TEST = '[[question]]\nname="{}"\ntask="ci_test"\nx="{}"\ny="{}"\ngiven=[]\nepsilon=1\n'


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two effects and two tests, all of which find something but the second effect."""
    questions = EFFECT.format("one", "u") + EFFECT.format("two", "b") + TEST.format("pair", "a", "b")
    path = write(tmp_path_factory.mktemp("box"), questions + TEST.format("other", "u", "v"), n=3000)
    path.write_text(path.read_text() + '[design]\ntype="observational"\n')
    study = dpc.Study.open(path)
    assert study.run(new_ledger=True).done
    return study._report_inputs()


def blocks_of(inputs: Any, kind: str) -> list[Any]:
    return [block for block in document(inputs) if block.kind == kind]


def with_questions(inputs: Any, *questions: Any) -> Any:
    return replace(inputs, plan=replace(inputs.plan, questions=questions))


def test_the_box_has_a_line_for_each_result_conclusions_first(inputs: Any) -> None:
    (box,) = blocks_of(inputs, "answer")
    lines = [box.text, *box.lines]
    numbers = [line[9] for line in lines[:4]]
    estimates = [estimate_of(answer) for _, answer in inputs.results]
    open_ones = [str(k) for k, one in enumerate(estimates, start=1) if one is not None and not one.excludes_zero]
    assert sorted(numbers) == ["1", "2", "3", "4"] and open_ones == ["1"] and numbers == ["2", "3", "4", "1"]
    (findings,) = [block.rows for block in blocks_of(inputs, "table") if block.text == "Findings"]
    assert [row[0][:2] for row in findings[1:]] == ["1.", "2.", "3.", "4."]
    first, *others = inputs.plan.questions
    partly = with_questions(inputs, *others, replace(first, answer=None))
    (box,) = blocks_of(partly, "answer")
    assert any("question 4" in line for line in box.lines)
    (alone,) = blocks_of(with_questions(inputs, others[0]), "answer")
    assert "Question" not in "".join((alone.text, *alone.lines))
    (many,) = blocks_of(with_questions(inputs, *others * 4), "answer")
    assert sum(line.startswith("Question ") for line in (many.text, *many.lines)) == MOST_RESULTS


@pytest.mark.parametrize(
    ("title", "signs"),
    [("Does free care increase visits?", (True, False)), ("Does the jab prevent flu?", (False, True)),
     ("Does free care change visits?", (True, True)), ("Free care and visits?", (False, False)),
     ("Does free care increase visits", (False, False)), ("Do fewer visits mean more illness?", (False, False))],
)  # fmt: skip
def test_a_title_is_affirmed_by_an_effect_of_the_sign_that_it_asks_for(title: str, signs: tuple[bool, bool]) -> None:
    assert (is_affirmed(title, 1.0), is_affirmed(title, -1.0)) == signs


def test_a_size_is_missing_only_where_none_of_the_pair_is_shown(inputs: Any) -> None:
    _, effect, pair, other = inputs.plan.questions
    shown = [SIZE in limit_lines(with_questions(inputs, *one)) for one in ((pair,), (pair, other), (effect, pair))]
    assert shown == [True, True, False]
    named = [line for line in limit_lines(inputs) if line.startswith(SIZE.split(" is")[0])]
    assert len(named) == 1 and "u and v" in named[0]


STATABLE = [(kind.name, *one) for kind in METHODS.values() for one in getattr(kind, "assumptions", ())]


@pytest.mark.parametrize(("method", "option", "value"), [*STATABLE, ("aipw", "lines_only", True)])
def test_what_the_analyst_states_is_on_the_first_page_and_in_the_methods_text(
    inputs: Any, method: str, option: str, value: Any
) -> None:
    effect = inputs.plan.questions[1]
    stated = replace(effect, method=method, settings={option: value})
    (clause,) = stated_assumptions(stated)
    assert stated_assumptions(replace(stated, settings={option: None})) == []
    assert any(clause in line for line in assumption_lines(with_questions(inputs, stated)))
    assert any(clause in block.text for block in blocks_of(with_questions(inputs, stated), "quote"))


def test_identifying_assumptions_are_never_left_out_for_general_ones(inputs: Any) -> None:
    effect = inputs.plan.questions[1]
    answers = [effect, *(replace(effect, method=one) for one in ("aipw", "partially-linear", "boosted-aipw"))]
    lines = assumption_lines(with_questions(inputs, *answers))
    assert len(lines) == 5 and sum(CONFOUNDING in line for line in lines) == 1


def test_each_design_has_its_own_assumption_and_its_figure() -> None:
    made = dpc.simulate.factor_panel(1000, effect=0.3, seed=1)
    panel = dpc.Panel.from_arrays(made.donors, made.target, start=made.start, bounds=made.bounds,
                                  ledger=dpc.Ledger.in_memory(dpc.PureDP(1), unit="unit"))  # fmt: skip
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, 4000)
    took = (rng.random(4000) < 0.2 + 0.6 * (x > 0)).astype(int)
    schema = dpc.Schema({"x": dpc.Bounded(-1, 1), "y": dpc.Bounded(-4, 6), "a": dpc.Levels([0, 1])})
    rows = {"x": x, "y": np.clip(2.0 * took + rng.normal(size=4000), -4, 6), "a": took}
    table, cut = dpc.Table(rows, schema, dpc.Ledger.in_memory(dpc.PureDP(8))), {"running": "x", "cutoff": 0.0}
    sharp = dpc.discontinuity(table, outcome="y", **cut, loss=dpc.PureDP(4))
    ratio = dpc.discontinuity(table, outcome="y", treatment="a", **cut, loss=dpc.PureDP(4))
    control = dpc.synthetic_control(panel, loss=dpc.PureDP(1))
    for answer in (sharp, control):
        assert estimate_of(answer) is not None and Figures().of(answer, "text").count("<path") > 3
    clauses = [identification(one) for one in (sharp, ratio, control)]
    assert len({*clauses, *IDENTIFIED.values()} - {""}) == 5 and clauses[1].startswith(clauses[0])


PANEL = """title = "Paths"
data = "d.csv"
person = "id"
ledger = "s.ledger"
budget = { epsilon = 8.0, delta = 1e-6 }
design = { type = "observational" }
columns = { t = { levels = [1, 2, 3, 4] }, g = { levels = [0, 3, 4] }, y = { lower = -8, upper = 8 } }
"""
PANEL += question("path", "did", time="t", outcome="y", cohort="g", never=[0], epsilon=8.0, delta=5e-7)


def test_differences_in_differences_state_their_assumption_and_whom_they_leave_out(tmp_path: Path) -> None:
    rng, n = np.random.default_rng(1), 3000
    g = np.where(np.arange(n) < 20, 4, np.where(rng.random(n) < 0.5, 3, 0))
    t = np.arange(1, 5)
    y = np.clip(rng.normal(size=n)[:, None] + 0.5 * rng.normal(size=(n, 4)) + (t >= np.where(g, g, 9)[:, None]), -8, 8)
    rows = [f"{k},{t[j]},{g[k]},{y[k, j]:.4f}" for k in range(n) for j in range(4)]
    (tmp_path / "d.csv").write_text("id,t,g,y\n" + "\n".join(rows) + "\n")
    (tmp_path / "s.toml").write_text(PANEL)
    study = dpc.Study.open(tmp_path / "s.toml")
    assert study.run(new_ledger=True).done
    inputs = study._report_inputs()
    ((_, answer),) = inputs.results
    assert (answer.estimate, answer.interval) == (answer.att.estimate, answer.att.interval) != (None, None)
    (box,) = blocks_of(inputs, "answer")
    text = "\n".join((box.text, *box.lines))
    assert IDENTIFIED[GroupTimeEffects] in text and CONFOUNDING not in text
    small = [block.text for block in blocks_of(inputs, "small")]
    assert answer.notes and all(any(note[1:] in one for one in small) for note in answer.notes)
    assert any(BY_PERSON[1][1] in one for one in small) and not any(BY_PERSON[0][1] in one for one in small)
    (rows_of,) = [block.rows for block in blocks_of(inputs, "table") if block.text == "Analyses"]
    assert rows_of[1][5] != "–" and rows_of[1][6] != "–"
    reason = "too few of something"
    withheld = replace(answer, att=replace(answer.att, interval=None), interval_reason=reason)
    assert answer.interval_reason == ""
    status = replace(inputs.plan.questions[0], answer=withheld)
    (box,) = blocks_of(with_questions(inputs, status), "answer")
    assert reason in box.text
