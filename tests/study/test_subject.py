"""A report needs the study file and the ledger: what is public of the data stands in the results."""

from pathlib import Path
from shutil import copy

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import ParameterError
from dpcausal.study.status import ANSWERED
from tests.commands import command
from tests.study import made

PANEL = """title = "T"
data = "p.csv"
ledger = "s.ledger"
budget = { epsilon = 9.0 }
[panel]
unit = "unit"
time = "time"
outcome = "outcome"
target = [0, 1]
start = 8
treated = "unit <= 1"
bounds = { lower = -9, upper = 9 }
""" + made.question("two", "synthetic_controls", epsilon=4.0, force=True)
PANEL += made.question("earlier", "synthetic_control", target=1, start=6, epsilon=4.0, force=True)


def panel(folder: Path) -> Path:
    """Write a panel of two treated units, one of which has no value in the third period."""
    series = np.random.default_rng(1).normal(size=(300, 12)).round(2)
    rows = [f"{unit},{time},{value}" for unit, row in enumerate(series) for time, value in enumerate(row, start=1)]
    rows.remove(f"1,3,{series[1, 2]}")
    (folder / "p.csv").write_text("\n".join(["unit,time,outcome", *rows]))
    (folder / "s.toml").write_text(PANEL)
    return folder / "s.toml"


def of_another_outcome(folder: Path) -> Path:
    """Write a longer panel of the same units, whose study has the same ledger."""
    rows = (folder / "p.csv").read_text().splitlines()[1:]
    rows += [f"{unit},{time},0.5" for unit in range(300) for time in range(13, 17)]
    (folder / "o.csv").write_text("\n".join(["unit,time,other", *rows]))
    (folder / "o.toml").write_text((folder / "s.toml").read_text().replace("p.csv", "o.csv")
                                   .replace('outcome = "outcome"', 'outcome = "other"'))  # fmt: skip
    return folder / "o.toml"


def persons(folder: Path) -> Path:
    path = made.write(folder, made.asked(), n=1500)
    path.write_text(path.read_text().replace("[columns.a]", 'person = "v"\n[columns.a]').replace("[columns.v]", "", 1)
                    .replace("lower = -4\nupper = 4\n[[", "[[", 1).replace('y="v"', 'y="a"'))  # fmt: skip
    return path


def table(folder: Path) -> Path:
    return made.write(folder, made.asked(), n=1500)


@pytest.mark.parametrize("write", [table, persons, panel])
def test_a_report_without_the_data_is_that_beside_the_data(write: object, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    study = dpc.Study.open(write(here))
    ran = study.run(new_ledger=True, partial=True)
    answered = [one.question.name for one in ran.questions if one.state == ANSWERED]
    assert len(answered) >= 2
    planned = study.plan(accuracy=False)  # its public facts are read from the data
    copy(here / "s.toml", there), copy(here / "s.ledger", there)
    reviewed = dpc.Study.open(there / "s.toml")
    told = command("report", str(there / "s.toml"), "--out", str(there / "report.html"))
    assert told.exit_code == 0, told.output
    inputs = reviewed._report_inputs()
    assert inputs.plan.n == planned.n
    assert [one.key for one in inputs.plan.questions] == [one.key for one in planned.questions]
    assert [one.state for one in inputs.plan.questions] == [one.state for one in planned.questions]
    assert study.report().with_suffix(".md").read_text() == (there / "report.md").read_text()


def test_a_report_finds_the_results_of_its_own_panel_in_a_ledger_of_two(tmp_path: Path) -> None:
    panel(tmp_path)
    path = tmp_path / "s.toml"
    path.write_text(path.read_text().replace("epsilon = 4.0", "epsilon = 2.0"))
    for study in (path, of_another_outcome(tmp_path)):
        dpc.Study.open(study).run(new_ledger=True)
    (tmp_path / "p.csv").unlink(), (tmp_path / "o.csv").unlink()
    for study, periods in ((path, 12), (tmp_path / "o.toml", 16)):
        two, earlier = dpc.Study.open(study)._report_inputs().plan.questions
        assert two.state == earlier.state == ANSWERED
        assert {len(one.past_times) + len(one.times) for one in two.answer} == {periods}


@pytest.mark.parametrize("write", [table, panel])
def test_a_report_that_lacks_a_public_fact_names_the_data(write: object, tmp_path: Path) -> None:
    path = write(tmp_path)
    unit = {"unit": "unit"} if write is panel else {}
    budget = dpc.PureDP(9) if write is panel else dpc.ApproxDP(9, 1e-6)
    dpc.Ledger.create(tmp_path / "s.ledger", budget=budget, **unit).close()
    dpc.Study.open(path).report()  # a ledger without a result, but with the data
    (tmp_path / ("p.csv" if write is panel else "d.csv")).unlink()
    with pytest.raises(ParameterError) as refused:
        dpc.Study.open(path).report()
    assert (refused.value.rule, refused.value.argument) == ("no-data", "data")
    if write is table:
        path.write_text("n = 1500\n" + path.read_text())
        assert dpc.Study.open(path).report().is_file()


def test_a_report_shows_a_result_of_data_that_have_more_records_now(tmp_path: Path) -> None:
    path = table(tmp_path)
    ran = dpc.Study.open(path).run(new_ledger=True)
    (tmp_path / "d.csv").write_text((tmp_path / "d.csv").read_text() + "\n0,1,0.5,0.5")
    plan = dpc.Study.open(path)._report_inputs().plan
    assert plan.n == 1500 and [one.key for one in plan.questions] == [one.key for one in ran.questions]
    assert ANSWERED not in {one.state for one in plan.questions}  # the file was written to
