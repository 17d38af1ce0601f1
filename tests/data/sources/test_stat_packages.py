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
from dpcausal.errors import MissingDependencyError, ParameterError, SchemaError

FRAME = pd.DataFrame({
    "id": ["p1", "p2", "é", "", "p5"], "age": [31.0, np.nan, 0.1, -1e-300, 2.0**60], "smoker": [0, 1, 1, 0, 1],
})  # fmt: skip
WRITERS: dict[str, Any] = {
    "d.dta": lambda path, frame: frame.to_stata(path, write_index=False, version=118),
    "e.DTA": lambda path, frame: pyreadstat.write_dta(frame, path),
    "d.xpt": lambda path, frame: pyreadstat.write_xport(frame, path),
    "d.sav": lambda path, frame: pyreadstat.write_sav(frame, path),
}  # fmt: skip

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


@pytest.mark.parametrize("name", list(WRITERS))
def test_a_file_reads_as_its_csv_does(name: str, tmp_path: Path) -> None:
    frame = FRAME if name != "d.xpt" else FRAME.assign(age=[31.0, np.nan, 0.5, -1.0, 2.0**50])
    WRITERS[name](tmp_path / name, frame)
    frame.to_csv(tmp_path / "d.csv", index=False)
    found, known = file_source(tmp_path / name), file_source(tmp_path / "d.csv")
    assert found.names == known.names == ("id", "age", "smoker") and found.count() == known.count() == 5
    for ours, theirs in [(found.collect(["smoker", "age", "id"]), known.collect(["smoker", "age", "id"])),
                         (next(iter(found.stream(["age", "id", "smoker"]))), known.collect(["age", "id", "smoker"]))]:
        assert np.array_equal(ours.numbers("age"), theirs.numbers("age"), equal_nan=True)
        for column in ("id", "smoker"):
            assert [list(part) for part in ours.objects(column)] == [list(part) for part in theirs.objects(column)]


def test_one_missing_value_changes_nothing_that_a_column_is_taken_for(tmp_path: Path) -> None:
    """Why pandas' own readers were not taken: a column of whole numbers is one of floats where a record lacks it."""
    for name, smoker in (("whole.dta", [0, 1, 1]), ("lacks.dta", [0, 1, np.nan])):
        pd.DataFrame({"smoker": smoker}).to_stata(tmp_path / name, write_index=False)
        ledger = dpc.Ledger.in_memory(dpc.PureDP(1))
        table = dpc.Table(tmp_path / name, dpc.Schema({"smoker": dpc.Levels([0, 1])}), ledger)
        rows = table.rows(["smoker"])
        assert table.n == 3 and rows.values["smoker"][:2].tolist() == [0, 1]
        assert file_source(tmp_path / name).declared("smoker").kind is Kind.FIELD
        assert rows.included.tolist() == [True, True, name == "whole.dta"]


def test_a_sas_file_is_read_with_its_dates_as_numbers(tmp_path: Path) -> None:
    (tmp_path / "s.sas7bdat").write_bytes(gzip.decompress(b64decode(SAMPLE)))
    source = file_source(tmp_path / "s.sas7bdat")
    assert source.names[:3] == ("mychar", "mynum", "mydate") and source.count() == 5
    columns = source.collect(["mydate", "mynum"])
    assert columns.numbers("mynum").tolist() == [1.1, 1.2, -1000.3, -1.4, 1000.3]
    days = (np.datetime64("2018-05-06") - np.datetime64("1960-01-01")).astype(int)
    assert columns.numbers("mydate")[0] == days and np.isnan(columns.numbers("mydate")[4])


def test_a_batch_at_a_time_is_each_row_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pd.DataFrame({"x": np.arange(10)}).to_stata(tmp_path / "d.dta", write_index=False)
    monkeypatch.setattr("dpcausal.data.files.packages.BATCH", 4)
    for most in (10, 4, 3):
        monkeypatch.setattr("dpcausal.data.files.packages.BATCH", most)
        batches = [part.numbers("x").tolist() for part in file_source(tmp_path / "d.dta").stream(["x"])]
        assert sum(batches, []) == list(range(10))  # noqa: RUF017 - ten numbers


def test_what_cannot_be_read_names_the_file_and_no_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema, ledger = dpc.Schema({"x": dpc.Bounded(0, 1)}), dpc.Ledger.in_memory(dpc.PureDP(1))
    for name in ("d.dta", "d.xpt", "d.sas7bdat", "d.sav"):
        (tmp_path / name).write_bytes(b"secret" * 100)
        with pytest.raises(SchemaError, match=rf"{name}' cannot be read as one of \.dta") as told:
            dpc.Table(tmp_path / name, schema, ledger)
        assert "secret" not in str(told.value) and told.value.__cause__ is None
    with pytest.raises(ParameterError, match="there is no file"):
        dpc.Table(tmp_path / "gone.dta", schema, ledger)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pyreadstat" else 1)
    with pytest.raises(MissingDependencyError, match=r"pyreadstat is needed.*'dpcausal\[packages\]'"):
        dpc.Table(tmp_path / "d.dta", schema, ledger)
