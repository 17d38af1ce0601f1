"""The demonstration: a study of real data, whose public bounds hold it and whose answers are known."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal import demo
from dpcausal.errors import MissingDependencyError, ParameterError


def test_the_study_is_planned_within_its_budget_and_protects_persons(tmp_path: Path) -> None:
    study = dpc.Study.open(demo.write(tmp_path))
    plan = study.plan(accuracy=False)
    assert plan.n == 5912 and [one.state for one in plan.questions] == ["to ask"] * 2
    assert sum(one.cost.epsilon for one in plan.questions) == 1.75  # type: ignore[union-attr]
    assert study.file.person == "zper"


def test_its_bounds_hold_the_data_and_its_columns_are_those_of_statsmodels(tmp_path: Path) -> None:
    from statsmodels.datasets import randhie

    schema = dpc.Study.open(demo.write(tmp_path)).schema
    assert schema is not None and math.isclose(schema["coinsurance"].to_dict()["upper"], math.log(101))  # type: ignore[arg-type]
    assert schema["visits"].to_dict() == {"lower": 0.0, "upper": 52.0}
    data, frame = randhie.load_pandas().data, dpc.datasets.load_rand()
    assert np.allclose(frame["coinsurance"], data["lncoins"], atol=1e-5)
    assert (frame["visits"] == data["mdvis"]).all() and frame["zper"].nunique() == 5912
    assert set(frame["site"]) == {1, 2, 3, 4, 5, 6} and frame["age"].between(0, 65).all()
    assert ((frame["free"] == "yes") == (frame["coins"] == 0)).all()


def test_a_study_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = demo.write(tmp_path)
    path.write_text(path.read_text() + "# mine\n")
    assert demo.write(tmp_path).read_text().endswith("# mine\n")
    with pytest.raises(ParameterError, match="is a file"):
        demo.write(path)


def test_the_exact_difference_is_that_of_persons_within_sites() -> None:
    frame = dpc.datasets.load_rand()
    frame["visits"] = frame["visits"].clip(0, 52)
    persons = frame.groupby("zper").agg(visits=("visits", "mean"), free=("free", "first"), site=("site", "first"))
    cells = persons.groupby(["site", "free"])["visits"].mean().unstack()
    weights = persons["site"].value_counts(normalize=True)
    size, half = demo.exact_difference()
    assert math.isclose(size, float(((cells["yes"] - cells["no"]) * weights).sum()), rel_tol=1e-9)
    assert 0.1 < half < 0.3


def test_without_statsmodels_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.datasets", None)
    with pytest.raises(MissingDependencyError, match=r"dpcausal\[demo\]"):
        demo.run(tmp_path)
