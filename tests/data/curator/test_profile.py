"""The curator's check of a schema: exact shares, stamped everywhere, and no ledger in sight."""

import copy
import inspect
import json
import pickle
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.data.counts import counts_of
from dpcausal.data.curator import profile as module
from dpcausal.data.curator.profile import STAMP
from dpcausal.data.curator.suspects import FORMS, likely_forms
from dpcausal.data.sources.frame import FrameSource
from dpcausal.errors import HiddenAnswerError, SchemaError
from dpcausal.study.draft import declaration_of
from tests.commands import command
from tests.data.conftest import cells_of, panel_of
from tests.factories import table

SCHEMA = dpc.Schema({
    "age": dpc.Bounded(0, 100), "smoker": dpc.Levels(["no", "yes"], other="unknown"), "grade": dpc.Levels([1, 2, 3]),
    "member": dpc.Levels([False, True], other="not told"),
})  # fmt: skip
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
    changed = (table({"age": ages}, {"age": SCHEMA["age"]}).columns(["age"])["age"] != ages).mean()
    assert dpc.Schema({"age": SCHEMA["age"]}).check({"age": ages}).columns[0].changed == pytest.approx(changed)


def test_infinite_values_are_clipped_and_no_number_is_substituted(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("age\ninf\n-inf\nforty\n\n7\n")
    found = dpc.Schema({"age": dpc.Bounded(0, 100)}).check(tmp_path / "d.csv").columns[0]
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
    asked, collect = list[str](), FrameSource.collect
    monkeypatch.setattr(FrameSource, "collect", lambda self, names: asked.extend(names) or collect(self, names))
    SCHEMA.check(records())
    assert asked == list(SCHEMA.names)


def test_the_command_prints_the_same_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("age,name\n-1,Ada\n50,Ada\n", encoding="utf-8")
    Path("schema.toml").write_text("[age]\nlower = 0\nupper = 100\n", encoding="utf-8")
    shown = command("check", "table.csv", "--schema", "schema.toml")
    assert shown.exit_code == 1 and shown.stdout.startswith(STAMP) and "50.00 %" in shown.stdout
    as_json = command("check", "table.csv", "--schema", "schema.toml", "--json")
    assert json.loads(as_json.stdout) == dpc.Schema.from_toml("schema.toml").check("table.csv").to_dict()
    refused = command("check", "absent.csv", "--schema", "schema.toml")
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


ROWS = 2_000
RNG = np.random.default_rng(3)
GONE = RNG.random(ROWS) < 0.08
YEARS = RNG.integers(18, 90, ROWS).astype(float)


def test_a_declared_code_is_a_null_in_every_kind_of_frame(as_frame: Callable[[pa.Table], Any]) -> None:
    schema = dpc.Schema({"x": dpc.Bounded(0, 50, cuts=[10, 30], missing=[999, "-9", -99.9, "."])})
    frame = as_frame(pa.table({"x": pa.array([999.0, 20.0, -9.0, None, 1000.0, -99.9], pa.float64())}))
    assert cells_of(frame, schema["x"]) == [None, 20, None, None, 50, None]
    assert counts_of(table(frame, schema), ["x"]).tolist() == [0, 1, 1]
    assert schema.check(frame).columns[0].substituted == pytest.approx(4 / 6)


@pytest.mark.parametrize("dtype", ["float32", "int16", "float64"])
def test_a_code_is_found_as_its_type_holds_it(dtype: str) -> None:
    values = np.array([-9.1, 3, 8] if dtype == "float32" else [-9, 3, 8]).astype(dtype)
    assert cells_of({"x": values}, dpc.Bounded(0, 10, missing=[-9.1, -9])) == [None, 3, 8]


def test_a_panel_takes_a_code_for_no_value() -> None:
    frame = {"unit": np.repeat(["a", "b", "c"], 4), "time": np.tile([1, 2, 3, 4], 3)}
    found = []
    for code, bounds in ((99.0, dpc.Bounded(0, 100, missing=[99])), (np.nan, dpc.Bounded(0, 100))):
        y = np.where(np.arange(12) == 5, code, np.arange(12.0))
        found.append(panel_of(frame | {"y": y}, start=3, bounds=bounds).donors())
    assert np.array_equal(*found)


def test_codes_are_written_in_the_text_of_a_declaration() -> None:
    assert declaration_of("0..110; missing 999, .") == {"lower": 0.0, "upper": 110.0, "missing": [999, "."]}
    assert declaration_of("no, yes; missing NA") == {"levels": ["no", "yes"], "missing": ["NA"]}


def test_texts_among_the_numbers_of_a_file_are_remarked_until_they_are_declared(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("x\n" + "\n".join("." if gone else str(age) for gone, age in zip(GONE, YEARS, strict=True)) + "\n")
    for missing, many in ((None, 1), (["."], 0)):
        notes = dpc.Schema({"x": dpc.Bounded(0, 110, missing=missing)}).check(path).notes
        assert sum("missing=[" in note for note in notes) == many


def test_declared_codes_of_a_file_are_no_problem_in_whatever_form_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("x;y;z\n" + "1,5;a;0\n2,5;b;1\n3,0;a;1\n" * 40 + "999,0;9;9\n")
    schema = dpc.Schema({"x": dpc.Bounded(0, 5, missing=[999]), "y": dpc.Levels(["a", "b"], missing=[9]),
                         "z": dpc.Levels([0, 1], missing=[9])})  # fmt: skip
    assert schema.check(dpc.DataFile(str(path), separator=";", decimal=",")).notes == ()


def test_weights_above_their_largest_are_told_by_the_check() -> None:
    frame, schema = {"x": YEARS, "w": np.where(GONE, 20.0, 1.0)}, dpc.Schema({"x": dpc.Bounded(0, 110)})
    assert schema.check(frame).notes == schema.check(frame, weight=("w", 20)).notes == ()
    weight = schema.check(frame, weight=("w", 5)).columns[-1]
    assert weight.above == pytest.approx(GONE.mean()) and len(weight.notes) == 1


def test_levels_declared_for_a_number_are_remarked() -> None:
    declared = (dpc.Levels([18, 19]), dpc.Bounded(0, 110))
    levels, bounds = (dpc.Schema({"x": one}).check({"x": YEARS}).notes for one in declared)
    assert levels and not bounds


COMMA, DATE, ENCODING = FORMS
LIKE = {
    "1,5": COMMA, "-0,25": COMMA, "1.234,50": COMMA, "1 234,5": COMMA, ",5": COMMA, "2024-03-01": DATE,
    "01.03.2024": DATE,
    "2024-03-01T10:00:00": DATE, "3/1/24": DATE, "10:30": DATE, "M\udcfcnchen": ENCODING,
    "no": None, "": None, "1;5": None,
    "M\u00fcnchen": None, "1.2.3.4": None,
}  # fmt: skip


@pytest.mark.parametrize("field", LIKE)
def test_a_field_looks_like_one_form_or_none(field: str) -> None:
    assert [words for words in FORMS if f"some look like {words}" in likely_forms([field] * 3)] == (
        [] if LIKE[field] is None else [LIKE[field]])  # fmt: skip


@pytest.mark.parametrize(("cell", "form"), [('"1,5"', COMMA), ("2024-03-01", DATE), ("3", None), ("", None)])
def test_the_check_of_a_file_says_what_cannot_be_read(cell: str, form: str | None, tmp_path: Path) -> None:
    """Seen to fail: a column of dates, or of decimal commas, was paid for and nobody was told why it said nothing."""
    (tmp_path / "d.csv").write_text("v,y\n" + f"{cell},0\n7,1\n" * 50)
    found = dpc.Schema({"v": dpc.Bounded(0, 10)}).check(tmp_path / "d.csv")
    assert [words for words in FORMS if any(words in note for note in found.notes)] == ([form] if form else [])


def test_the_check_of_a_file_in_another_encoding_names_it(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("town\n" + "M\u00fcnchen\nBonn\n" * 50, encoding="cp1252")
    found = dpc.Schema({"town": dpc.Levels(["M\u00fcnchen", "Bonn"])}).check(tmp_path / "d.csv")
    assert any(ENCODING in note for note in found.notes)


def test_undeclared_categories_are_named_with_their_share_and_ids_with_their_number() -> None:
    schema = dpc.Schema({"sex": dpc.Levels(["m", "f"])})
    sexes = np.array(["m"] * 50 + ["f"] * 30 + ["M"] * 15 + [" "] * 5)
    found = schema.check({"sex": sexes, "patient_id": np.arange(100) // 4})
    assert any("'M' in 15.00 %" in note and "' ' in 5.00 %" in note for note in found.columns[0].notes)
    assert dict(found.persons) == {"patient_id": 25} and any("25 values in 100 rows" in note for note in found.notes)
    assert not schema.check({"sex": sexes, "patient_id": np.arange(100)}).persons


def test_values_that_count_as_other_are_neither_missing_nor_noted_unless_they_look_like_a_level() -> None:
    schema = dpc.Schema({"town": dpc.Levels(["Bonn", "else"], other="else")})
    found = schema.check({"town": np.array(["Bonn", "Ulm"] * 50)})
    assert (found.columns[0].substituted, found.notes) == (0.5, ())
    for text in ("bonn", "-9"):  # a spelling, and a code of a missing answer
        assert any(text in note for note in schema.check({"town": np.array(["Bonn", text] * 50)}).notes)


def test_a_column_of_cases_and_controls_is_no_id() -> None:
    schema = dpc.Schema({"case": dpc.Levels([0, 1])})
    assert not schema.check({"case": np.arange(100) % 2}).persons
    assert schema.check({"case": np.arange(100) % 2, "case_id": np.arange(100) // 2}).persons == {"case_id": 50}


@pytest.mark.parametrize("others", [["a1 "], ["A1"], ["01", "1.0"], ["e\u0301"]], ids=["blank", "case", "0", "NFD"])
def test_ids_of_one_person_in_several_spellings_are_noted(others: list[str]) -> None:
    ids = np.array(["a1", "b2", "1", "\u00e9", *others] * 5)
    frame = {"x": np.arange(len(ids)) % 2, "who": ids, "patient_id": ids}
    schema = dpc.Schema({"x": dpc.Levels([0, 1])})
    assert dict(schema.check(frame, person="who").spellings) == {"who": len(others)}
    assert dict(schema.check(frame).spellings) == {"patient_id": len(others)}
    assert not schema.check(frame | {"who": np.resize(["a1", "b2", "1", "10"], len(ids))}, person="who").spellings


def test_spellings_of_one_level_are_noted_with_the_line_that_makes_them_one() -> None:
    frame = {"sex": np.array(["f", "F", "m", " m"] * 50)}
    notes = " ".join(dpc.Schema({"sex": dpc.Levels(["f", "m"])}).check(frame).notes)
    line = 'spellings = { "F" = "f", " m" = "m" }'
    assert line in notes
    spellings = tomllib.loads(line)["spellings"]
    schema = dpc.Schema({"sex": {"levels": ["f", "m"], "spellings": spellings}})
    assert schema.check(frame).columns[0].substituted == 0 and schema.check(frame).notes == ()
    assert dpc.Schema(schema.to_dict()) == schema and schema["sex"] == dpc.Levels(["f", "m"], spellings=spellings)
    assert 'spellings = { "F" = "f" }' in " ".join(dpc.Schema({"sex": dpc.Levels(["f", "F"])}).check(frame).notes)
    for wrong in ({"f": "m"}, {"F": "x"}, {"F": 1}, ["F"]):
        with pytest.raises(SchemaError):
            dpc.Levels(["f", "m"], spellings=wrong)
