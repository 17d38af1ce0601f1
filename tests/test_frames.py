"""Tidy frames: a row for each group, period, coefficient, edge and test, of the same columns, whoever answered."""

import json
from typing import Any

import pandas as pd
import pytest

import dpcausal as dpc
from tests.core import golden

ALONE = {"loss", "unit", "private", "caveats"}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Kept answers: no time goes into asking."""
    found = {}
    for name, call in golden.CALLS.items():
        path = tmp_path_factory.mktemp("kept") / "l"
        path.write_bytes(golden.ledger_of(name).read_bytes())
        found[name] = call(dpc.Ledger.open(path))
    return found


def frame_of(answer: Any) -> pd.DataFrame:
    frame = answer.to_frame()
    assert set(frame.columns) >= ALONE and frame["unit"].nunique() <= 1 and frame["loss"].nunique() <= 1
    scalars = frame.map(lambda cell: not isinstance(cell, (list, dict, tuple)))
    assert scalars.to_numpy().all()
    json.loads(frame.to_json())
    return frame


def test_an_effect_has_a_row_for_all_and_for_each_group(answers: dict[str, Any]) -> None:
    """Seen to fail: one row, its groups left out, and no end of an interval where there was none."""
    effect = answers["effect"]
    frame = frame_of(effect)
    assert frame["group"].tolist() == ["all", "b = no", "b = yes"]
    assert frame["estimate"].tolist() == [effect.estimate, *(one.estimate for one in effect.by_group)]
    ends = [effect.interval, *(one.interval for one in effect.by_group)]
    assert frame["interval_low"].tolist() == [None if one is None else one[0] for one in ends]
    assert frame["interval_high"].tolist() == [None if one is None else one[1] for one in ends]
    assert set(frame["treatment"]) == {"a"} and set(frame["method"]) == {"stratified"}


def test_differences_in_differences_have_every_cohort_and_period(answers: dict[str, Any]) -> None:
    did = answers["did"]
    frame = frame_of(did)
    assert frame["part"].value_counts().to_dict() == {
        "att": 1, "cohort and period": len(did.by_cohort), "event study": len(did.event_study),
    } | ({"trend": 1} if did.trend else {})  # fmt: skip
    cells = frame[frame["part"] == "cohort and period"]
    assert cells["time"].tolist() == [one.time for one in did.by_cohort]
    assert cells["estimate"].tolist() == [one.estimate for one in did.by_cohort]
    study = frame[frame["part"] == "event study"]
    assert study["band_low"].tolist() == [one.band[0] for one in did.event_study]
    assert study["event"].tolist() == [one.event for one in did.event_study]


def test_a_regression_has_a_row_a_coefficient_and_a_graph_one_an_edge(answers: dict[str, Any]) -> None:
    found = answers["moments"].ols("u", ["v"])
    frame = frame_of(found)
    assert frame["name"].tolist() == ["v", "intercept"]
    assert frame["estimate"].tolist() == [one.estimate for one in found.coefficients]
    graph = answers["discover"].release.discover(alpha=0.9)
    assert frame_of(graph)[["from", "to"]].to_numpy().tolist() == [[one["from"], one["to"]] for one in graph.edges()]
    assert graph.edges()


def test_pairs_and_hypotheses_have_a_row_each(answers: dict[str, Any]) -> None:
    tests, ways = frame_of(answers["ci_tests"]), frame_of(answers["direction_all"])
    assert tests[["x", "y"]].to_numpy().tolist() == [["a", "b"], ["a", "u"]]
    assert ways[["columns_1", "columns_2", "score"]].to_numpy().tolist() == [["v", "u", "lsnm"]]
    assert len(frame_of(answers["synthetic_control"])) == 12


def test_a_graph_without_an_edge_has_the_columns_of_one(answers: dict[str, Any]) -> None:
    frame = answers["discover"].to_frame()
    supports = {"support", "arrow_support", "tested"}
    assert frame.empty and set(frame.columns) == {"from", "to", "directed", "margin", "copy", "weak", *supports,
                                                  *ALONE}  # fmt: skip


@pytest.mark.parametrize("name", ["moments", "effect", "did"])
def test_a_frame_is_a_latex_and_a_markdown_table_by_pandas_alone(answers: dict[str, Any], name: str) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("tabulate")
    whole = (answers[name].ols("u", ["v"]) if name == "moments" else answers[name]).to_frame()
    frame = whole[[one for one in ("name", "estimate", "standard_error") if one in whole]]
    frame = frame[frame["estimate"].notna()]
    assert len(frame) >= 1
    latex = frame.to_latex(index=False, escape=True, float_format="%.9f")
    rows = [line.rstrip("\\ ").split(" & ") for line in latex.splitlines() if " & " in line]
    place = list(frame).index("estimate")
    assert [float(row[place]) for row in rows[1:]] == pytest.approx(frame["estimate"].tolist(), abs=1e-9)
    assert r"standard\_error" in latex and r"\toprule" in latex
    lines = frame.to_markdown(index=False, floatfmt=".9f").splitlines()
    cells = [line.strip("|").split("|")[place] for line in lines[2:]]
    assert [float(one) for one in cells] == pytest.approx(frame["estimate"].tolist(), abs=1e-9)
