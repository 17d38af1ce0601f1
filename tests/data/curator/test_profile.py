"""The curator's check of a schema: exact shares, stamped everywhere, and no ledger in sight."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import dpcausal as dpc
from dpcausal.cli import app
from dpcausal.data.curator import profile as module
from dpcausal.data.curator.profile import STAMP
from dpcausal.errors import HiddenAnswerError, ParameterError, SchemaError

SCHEMA = dpc.Schema(
    {
        "age": dpc.Bounded(0, 100),
        "smoker": dpc.Levels(["no", "yes"], other="unknown"),
        "grade": dpc.Levels([1, 2, 3]),
        "member": dpc.Levels([False, True], other="not told"),
    }
)
AGES = [-5.0, 0.0, 50.0, 100.0, 101.0, 1e9, None, 20.0, 30.0, 40.0]
SMOKERS = ["no", "yes", "Yes", None, "unknown", "no", "no", "", "yes", "yes"]
GRADES = [1, 2, 3, 4, None, 1, 1, 1, 1, 1]
MEMBERS = [True, False, None, True, True, True, True, True, True, True]


def records() -> pa.Table:
    return pa.table({"age": AGES, "smoker": SMOKERS, "grade": GRADES, "member": MEMBERS, "name": ["Ada"] * 10})


def test_the_shares_are_those_of_the_records_in_every_kind_of_frame(as_frame: Callable) -> None:
    found = SCHEMA.check(as_frame(records()))
    age, smoker, grade, member = found.columns
    assert found.rows == 10
    assert (age.below, age.above, age.substituted, age.changed) == (0.1, 0.2, 0.1, pytest.approx(0.4))
    assert (smoker.below, smoker.above, smoker.substituted) == (0, 0, 0.3)  # "Yes", null and "" are not declared
    assert grade.substituted == 0.2
    assert member.substituted == 0.1


def test_the_shares_are_what_cleaning_then_changes() -> None:
    rng = np.random.default_rng(4)
    ages = np.where(rng.random(500) < 0.1, np.nan, rng.normal(50, 60, 500))
    schema = dpc.Schema({"age": dpc.Bounded(0, 100)})
    table = dpc.Table({"age": ages}, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    changed = (table.columns(["age"])["age"] != ages).mean()
    assert schema.check({"age": ages}).columns[0].changed == pytest.approx(changed)


def test_infinite_values_are_clipped_and_no_number_is_substituted(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("age\ninf\n-inf\nforty\n\n7\n", encoding="utf-8")
    found = dpc.Schema({"age": dpc.Bounded(0, 100)}).check(path).columns[0]
    assert (found.above, found.below, found.substituted) == (0.2, 0.2, 0.4)


def test_every_way_to_see_it_bears_the_stamp() -> None:
    found = SCHEMA.check(records())
    assert found.summary().startswith(STAMP)
    assert found.to_dict()["notice"].startswith(STAMP) and found.to_dict()["private"] is False
    assert STAMP in repr(found) and "0." not in repr(found)
    assert "NOT PRIVATE" in str(inspect.getdoc(dpc.Schema.check))
    with pytest.raises(HiddenAnswerError):
        pickle.dumps(found)
    with pytest.raises(HiddenAnswerError):
        copy.deepcopy(found)


def test_no_ledger_is_known_to_it() -> None:
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    assert "privacy" not in source.replace("NOT PRIVATE", "") and ".charge(" not in source


def test_other_columns_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    real = module.opened

    def watched(frame: object) -> object:
        source, origin = real(frame)
        collect = source.collect
        source.collect = lambda names: asked.extend(names) or collect(names)  # type: ignore[method-assign,func-returns-value]
        return source, origin

    monkeypatch.setattr(module, "opened", watched)
    SCHEMA.check(records())
    assert asked == list(SCHEMA.names)


@pytest.mark.parametrize(
    ("frame", "error", "words"),
    [
        ({"age": np.array(["forty-two"])}, SchemaError, "column 'age'.*numeric"),
        ({"other": np.zeros(2)}, SchemaError, "column 'age'.*not in the frame"),
        ({"age": np.zeros(0)}, SchemaError, "at least one row"),
        ("absent.csv", ParameterError, "there is no file"),
        (7, ParameterError, "a frame must be"),
        (pd.DataFrame({"age": ["7.77"]}), SchemaError, "column 'age'.*numeric"),
    ],
)
def test_a_frame_that_does_not_fit_is_refused_in_the_words_of_a_table(frame, error, words) -> None:
    with pytest.raises(error, match=words) as caught:
        dpc.Schema({"age": dpc.Bounded(0, 100)}).check(frame)
    assert "forty" not in str(caught.value) and "7.77" not in str(caught.value)


def test_the_command_prints_the_same_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("age,name\n-1,Ada\n50,Ada\n", encoding="utf-8")
    Path("schema.toml").write_text("[age]\nlower = 0\nupper = 100\n", encoding="utf-8")
    shown = CliRunner().invoke(app, ["check", "table.csv", "--schema", "schema.toml"])
    assert shown.exit_code == 1 and shown.stdout.startswith(STAMP) and "50.00 %" in shown.stdout
    as_json = CliRunner().invoke(app, ["check", "table.csv", "--schema", "schema.toml", "--json"])
    assert json.loads(as_json.stdout) == dpc.Schema.from_toml("schema.toml").check("table.csv").to_dict()
    refused = CliRunner().invoke(app, ["check", "absent.csv", "--schema", "schema.toml"])
    assert refused.exit_code == 2 and "absent.csv" in refused.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["schema.toml", "table.csv"]


def noted(frame: dict[str, np.ndarray], **columns: dpc.Bounded | dpc.Levels) -> tuple[str, ...]:
    return dpc.Schema(columns).check(frame).notes


def test_the_check_says_what_to_look_at() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 10, 400)
    fine = {"x": x, "g": rng.choice(["a", "b"], 400), "id": np.arange(400)}
    assert noted(fine, x=dpc.Bounded(0, 10), g=dpc.Levels(["a", "b"])) == ()
    odd = {
        "a tenth lacks it": (np.where(np.arange(400) % 10, x, np.nan), dpc.Bounded(0, 10), "10.00 % of the rows"),
        "another unit": (x * 1000, dpc.Bounded(0, 10), "outside the bounds"),
        "constant": (np.full(400, 3.0), dpc.Bounded(0, 10), "constant"),
        "wide": (x, dpc.Bounded(0, 1e6), "1,000 times as wide"),
        "sorted": (np.sort(x), dpc.Bounded(0, 10), "sorted by it"),
        "spelled": (fine["g"], dpc.Levels(["A", "b"]), "levels that never occur: 'A'"),
        "one level": (np.array(["a"] * 400), dpc.Levels(["a"]), "constant"),
    }  # fmt: skip
    for name, (values, column, words) in odd.items():
        found = noted({"x": values}, x=column)
        assert any(words in note for note in found), name
    visits = {"x": x, "patient_id": np.repeat(np.arange(100), 4), "valid": np.repeat(np.arange(100), 4)}
    (note,) = noted(visits, x=dpc.Bounded(0, 10))
    assert note.startswith("patient_id: ") and "person=" in note
    assert "person=" in dpc.Schema({"x": dpc.Bounded(0, 10)}).check(visits).summary()
