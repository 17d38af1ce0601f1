"""Frames of results become the tables of a paper by pandas alone."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from tests import factories

EXACT = dpc.NoPrivacy()


def results() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    who, year = np.divmod(np.arange(4_000), 4)
    start = np.array([2, 9])[rng.integers(0, 2, 1_000)][who]
    columns = {"who": who, "year": year, "start": start, "treated_now": (year >= start).astype(int),
               "y": np.clip((year >= start) + rng.normal(size=4_000), -5, 5)}  # fmt: skip
    schema = {"year": dpc.Levels(range(4)), "start": dpc.Levels([2, 9]), "treated_now": dpc.Levels([0, 1]),
              "y": dpc.Bounded(-5, 5)}  # fmt: skip
    table = factories.table(columns, schema, person="who")
    moments = dpc.moments(table, ["y", "treated_now", "year"], loss=EXACT)
    return {
        "ols": moments.ols("y", ["treated_now", "year"], errors="homoscedastic"),
        "effect": dpc.effect(table, treatment="treated_now", outcome="y", adjust=["year"], loss=EXACT),
        "did": dpc.did(table, time="year", outcome="y", cohort="start", never=[9], loss=EXACT),
    }


@pytest.mark.parametrize("name", ["ols", "effect", "did"])
def test_a_result_is_a_latex_and_a_markdown_table(name: str) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("tabulate")
    whole = results()[name].to_frame()
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
