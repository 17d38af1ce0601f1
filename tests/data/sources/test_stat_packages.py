"""Files of Stata, SAS and SPSS: read as the same table in CSV is."""

import gzip
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat
import pytest

import dpcausal as dpc
from dpcausal.data.files.opening import file_source
from dpcausal.data.source import Kind
from tests.commands import command
from tests.data.conftest import cells_of

SAMPLE = (  # sample.sas7bdat of pyreadstat's own tests, Apache License 2.0: nothing but SAS writes such a file
    "H4sIAHFyA2sC/+3Vz4uUZRwA8PfdHXUqSRfmYBA0WOAeatl1lk0hcEZ2U2G3hJ1Dgv1YXU1pR0E0XAjaoIMHoR94KTp06A8IvEQUmR7yZmSH"
    "wA7VoYN0MAxNU7d533nn19NuLqaH6vOB533m+53n+z7PO88zM1HUdvriGy+dLPSd+/zdfHTfV0PH1zyyuq+0NiqV4p6huDGkEEW9cVe+FD9a"
    "igqFqNgbN+8zWZksPr1tfGyyMrF9fKx4x0Yr1UrSJ/dct/eh/MvvXKg0+3Si4mfldp9MH0dx1G3jwODw4NBEaXz/gSNHO/LrB0YGSuufGNk4"
    "MjC0YeDJgaAsOrph5MWR4XaczPtK/6u1ZgvHf7PlTKVznREAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAMC/zPktZyoL5U9czl70FKJV9e67G42wv7d73Kksvyao33e90T/X053/+Fqj/6SZiBvdzixfDfJf/97ojwf5Y1l+"
    "a5DfmuXLwXryi+TPXl04f2yR/NZF8vlF8mev/H0+WH70/nuJXzclr+fOfVsvm4tOHryQ7dGlTZ19+Ycfy1NZXSl1uZHf//2p+s6sevbTn76M"
    "uqdP++Lzv5V3ZYm9ic1vnVr4dDTny7eWv7uzbu+VL9LgXJTMM/dz//LT3fNl65z5pTzdPV/j/Vvz81198HxJfo+vKAAAAAAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAHfBrT/mU2G+EPWmre3DKFe/fpBeb1+/st6KXZm308rjd1w/"
    "l1a+tsT6RH9XNBPl69fp9Hr7+vuz1laNltev4+n1TtZfTlf+1BLXH2etbTCNHw+ytxrl88PR2dej9P2GFdED9ZErsmh5ayeX1XNxvepGMOON"
    "7D5HW7O11xHlelrj0k8vF7c+xWa8OojXBHExiPuDuFO2lPlyK/NY9qkP19efGM3inVl8OIvfzOITwS5F0c3snh915IqB0Uq1Mlkd216b3b1v"
    "6lAya6PVZg8cqdX7zWOT1aTVZqenDu+Joh07JiZGR9v99OH9tT3J6irVseq2ibHKMztGq6PVidrszNSumc76g4emu+7XKExqkrbQxjTXnWvt"
    "772xckX3eYhbJ6jjPHTEN4NxuWBcLtjTuHUOu8ctC85zHDxnGGdfm/nbPc/1JY67tsRx/xVX6hY6R1frkv5SFvcF7/cNrk37DcG+hcL7Nn+X"
    "1nX9wrW9kOs+J/P/s/34p85vOVO5G/dp7kpPED8YxKuDuBDE+Xv2pPmOf9BCxzwr09cPL3HmXH2l8V/+JWqtWy9b/KNJ/QkgOSmHAAACAA=="
)


def test_one_missing_value_changes_nothing_that_a_column_is_taken_for(tmp_path: Path) -> None:
    """Why pandas' own readers were not taken: a column of whole numbers is one of floats where a record lacks it."""
    for last, code in ((1, 1), (np.nan, None)):
        pd.DataFrame({"smoker": [0, 1, last]}).to_stata(tmp_path / "d.dta", write_index=False)
        assert cells_of(tmp_path / "d.dta", dpc.Levels([0, 1]), "smoker") == [0, 1, code]
        assert file_source(tmp_path / "d.dta").declared("smoker").kind is Kind.FIELD


def test_a_sas_file_is_read_with_its_dates_as_dates(tmp_path: Path) -> None:
    (tmp_path / "s.sas7bdat").write_bytes(gzip.decompress(b64decode(SAMPLE)))
    source = file_source(tmp_path / "s.sas7bdat")
    assert source.names[:3] == ("mychar", "mynum", "mydate") and source.count() == 5
    columns = source.collect(["mydate", "mynum"])
    assert columns.numbers("mynum").tolist() == [1.1, 1.2, -1000.3, -1.4, 1000.3]
    assert source.declared("mydate").kind is Kind.DATE
    assert [day for part in columns.objects("mydate") for day in part][:: 4] == ["2018-05-06", ""]


def test_a_batch_at_a_time_is_each_row_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pd.DataFrame({"x": np.arange(10)}).to_stata(tmp_path / "d.dta", write_index=False)
    for most in (10, 4, 3):
        monkeypatch.setattr("dpcausal.data.files.packages.BATCH", most)
        batches = [part.numbers("x") for part in file_source(tmp_path / "d.dta").stream(["x"])]
        assert max(map(len, batches)) <= most and np.concatenate(batches).tolist() == [*range(10)]


CODES = pd.DataFrame({
    "sex": [1.0, 2, 9, np.nan, 1, 3], "pain": [0.0, 10, 5, 99, 3, 7], "town": ["a", "b", "zz", "", "a", "c"],
    "age": [30.0, 99, 999, 40, 50, 60],
})  # fmt: skip
LABELS = {"sex": {1: "male", 2: "female", 9: "refused"}, "pain": {0: "none", 10: "worst", 99: "not asked"},
          "town": {"a": "Aachen", "b": "Bonn"}, "age": {999: "unknown"}}  # fmt: skip


def labelled(name: str, path: Path) -> Path:
    if name.endswith("dta"):
        frame = CODES.assign(sex=[1, 2, "a", None, 1, 3]).drop(columns=["pain"])
        labels = {"sex": {1: "male", 2: "female", "a": "refused"}, "age": LABELS["age"]}
        pyreadstat.write_dta(frame, path / name, variable_value_labels=labels, missing_user_values={"sex": ["a"]},
                             column_labels={"sex": "Sex of the person"})  # fmt: skip
    else:
        pyreadstat.write_sav(CODES, path / name, variable_value_labels=LABELS, variable_measure={"pain": "scale"},
                             column_labels={"sex": "Sex of the person"}, missing_ranges={
            "sex": [9], "pain": [{"lo": 90, "hi": 99}], "town": ["zz"], "age": [{"lo": 900, "hi": 999}],
        })  # fmt: skip
    return path / name


@pytest.mark.parametrize("name", ["d.dta", "d.sav"])
@pytest.mark.parametrize("levels", [["male", "female"], [1, 2], ["1", "2"]])
def test_a_level_is_a_code_or_its_label_and_user_missing_is_missing(name: str, levels: list, tmp_path: Path) -> None:
    path = labelled(name, tmp_path)
    assert cells_of(path, dpc.Levels(levels), "sex") == [0, 1, None, None, 0, None]
    assert cells_of(path, dpc.Bounded(0, 110), "age") == [30, 99, 110 if name == "d.dta" else None, 40, 50, 60]


@pytest.mark.parametrize("name", ["d.dta", "d.sav"])
def test_init_takes_levels_and_ranges_from_labels_and_reads_no_record(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    labelled(name, tmp_path)
    reader, calls = pyreadstat.read_dta if name == "d.dta" else pyreadstat.read_sav, list[Any]()
    monkeypatch.setattr(pyreadstat, reader.__name__,
                        lambda path, **options: calls.append(options) or reader(path, **options))  # fmt: skip
    asked = len(CODES.columns) - (1 if name == "d.dta" else 3) - (name == "d.dta")
    typed = "T\n\n" + "\n" * asked + "1\n1e-6\n4\n\n"
    done = command("init", name, "--schema-from", "labels", typed=typed)
    assert done.exit_code == 0 and "documentation" in done.output, done.output
    assert calls and all(options.get("metadataonly") for options in calls)
    columns = dpc.Study.open("study.toml").file.columns
    assert columns["sex"]["levels"] == ["male", "female"] and columns["sex"]["label"] == "Sex of the person"
    assert columns.keys() == ({"sex"} if name == "d.dta" else {"sex", "pain", "town"})
    assert name == "d.dta" or (columns["pain"]["lower"], columns["pain"]["upper"]) == (0, 10)
    assert dpc.Study.open("study.toml").check().columns[0].substituted == 0.5
    Path("d.csv").write_text("a,b\n0,1\n")
    for words in (["d.csv", "--schema-from", "labels"], [name, "--schema-from", "data"]):
        refused = command("init", *words, "--out", "new.toml", typed=typed)
        assert refused.exit_code == 2 and not Path("new.toml").exists()
