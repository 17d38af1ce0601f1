"""Files of text, Parquet and Arrow."""

import csv
import gzip
import io
import traceback
import zipfile
from decimal import Decimal
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from dpcausal.data.files.formats import DataFile, likely_format
from dpcausal.data.files.opening import file_source
from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.data.sources.origin import Origin
from dpcausal.data.table import Table
from dpcausal.errors import ParameterError, SchemaError
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import PureDP
from tests.refusals import rule_of

X = Schema({"x": Bounded(-10, 10)})


def written(path: Path, text: str | bytes) -> Path:
    path = path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("1.5", 1.5), (" 1.5\t", 1.5), ("+1.5", 1.5), ("-.5", -0.5), ("3.", 3.0), ("1e-1", 0.1), ("2E+0", 2.0),
        ("inf", 10.0), ("-Infinity", -10.0), ("+INF", 10.0), ("1e400", 10.0), ("-1e999999999", -10.0),
        ("1" * 400, 10.0), ("1e-400", 0.0), ("-0", 0.0), ("0." + "0" * 400 + "1", 0.0),
        ("0.1000000000000000055511151231257827021181583404541015625000001", 0.1),
        ("nan", 0.0), ("NaN", 0.0), ("", 0.0), ("NA", 0.0), ("abc", 0.0), ("1,5", 0.0), ("1_0", 0.0), ("0x10", 0.0),
        ("1 2", 0.0), (".", 0.0), ("1e", 0.0), ("e5", 0.0), ("--1", 0.0), ("1\n", 0.0), ("١", 0.0), ("\u00a01", 0.0),
        ("true", 0.0),
    ],
)  # fmt: skip
def test_a_field_is_read_as_a_number_by_one_total_rule(
    tmp_path: Path, ledger: Ledger, field: str, value: float
) -> None:
    path = written(tmp_path, f'x,y\n"{field}",1\n7,2\n')
    assert Table(path, X, ledger).columns(["x"])["x"].tolist() == [value, 7.0]


@pytest.mark.parametrize(
    ("levels", "field", "code"),
    [
        ([0, 1], "1", 1), ([0, 1], " +1 ", 1), ([0, 1], "1.0", 1), ([0, 1], "01", 1), ([0, 1], "1.", 1),
        ([0, 1], "1.5", 2), ([0, 1], "1e0", 2), ([0, 1], "true", 1), ([0, 1], "", 2), ([0, 1], "9" * 5000, 2),
        ([0, 1], "١", 2), ([-1, 1], "-1", 0),
        ([False, True], "true", 1), ([False, True], "True", 1), ([False, True], " TRUE", 1),
        ([False, True], "false", 0), ([False, True], "1", 1), ([False, True], "0", 0),
        ([False, True], "2", 2), ([False, True], "yes", 2), ([False, True], "", 2),
        (["a", "b"], "b", 1), (["a", "b"], " b", 2), (["a", "b"], "B", 2), (["a", ""], "", 1), (["a", "1"], "1", 1),
        (["a", "x\ny"], "x\ny", 1), (["a", "x,y"], "x,y", 1), (["a", "ü"], "ü", 1), (["a", "ü"], "u\u0308", 2),
    ],
)  # fmt: skip
def test_a_field_is_matched_to_a_level_by_one_total_rule(
    tmp_path: Path, ledger: Ledger, levels: list, field: str, code: int
) -> None:
    path = written(tmp_path, f'y,k\n1,"{field}"\n')
    assert Table(path, Schema({"k": Levels(levels, other="other")}), ledger).columns(["k"])["k"].tolist() == [code]


def test_bytes_that_are_no_text_are_an_unseen_level_and_no_number(tmp_path: Path, ledger: Ledger) -> None:
    path = written(tmp_path, b"x,k\n\xff,\xff\n3,b\n")
    schema = Schema({"x": Bounded(-1, 5), "k": Levels(["a", "b"])})
    columns = Table(path, schema, ledger).columns(["x", "k"])
    assert columns["x"].tolist() == [2.0, 3.0]
    assert columns["k"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("\ufeffx,y\n1,2\n3,4", [1, 3]),
        ("x,y\r\n1,2\r\n3,4\r\n", [1, 3]),
        ("x,y\n1,2\n\n3,4\n\n\n", [1, 3]),
        ('"x","y\nz"\n1,2\n3,4\n', [1, 3]),
        ("x\n1\n\n3\n", [1, 0, 3]),
        ("x\n1", [1]),
    ],
)
def test_the_layout_of_a_csv_file_is_read_as_stated(
    tmp_path: Path, ledger: Ledger, text: str, values: list[float]
) -> None:
    table = Table(written(tmp_path, text), X, ledger)
    assert table.n == len(values)
    assert table.columns(["x"])["x"].tolist() == values


@pytest.mark.parametrize("text", ["", "\n", "x,y\n1,2\ncanary\n", "x,y\n1,2,canary\n", "x\n", "x,y\n", "x",
                                  "x,x\n2,3\n", "x,y\n" + "1,2\n" * 9 + "3\n"])  # fmt: skip
def test_a_file_that_is_no_table_is_refused_when_the_table_is_made(
    tmp_path: Path, ledger: Ledger, text: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        Table(written(tmp_path, text), X, ledger)
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("record", ["canary,1", "x,canary", "x;canary", "q\tcanary|x", "X ,canary", '" x ",canary'])
def test_a_file_without_a_header_has_no_field_of_its_first_record_quoted(
    tmp_path: Path, ledger: Ledger, record: str
) -> None:
    """A record may hold a declared name: then the names found were listed."""
    schema = Schema({"x": Bounded(0, 1), "q": Levels(["x", "y"])})
    with pytest.raises(SchemaError, match=r"column '[xq]' of the schema is not in the frame") as caught:
        Table(written(tmp_path, f"{record}\n2,3\n"), schema, ledger)
    assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_a_long_csv_file_is_read_across_its_blocks_in_order(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpcausal.data.files.fields._BLOCKS", (1 << 12,))
    values = np.random.default_rng(3).normal(size=20_000)
    text = "x,t\n" + "".join(f'{value!r},"a\n{row % 2}"\n' for row, value in enumerate(values.tolist()))
    schema = Schema({"x": Bounded(-10, 10), "t": Levels(["a\n0", "a\n1"])})
    columns = Table(written(tmp_path, text), schema, ledger).columns(["x", "t"])
    assert columns["x"].tobytes() == values.tobytes()
    assert columns["t"].tolist() == [0, 1] * 10_000


def test_a_file_that_went_away_is_refused(tmp_path: Path, ledger: Ledger) -> None:
    for name in ("table.csv", "table.parquet"):
        path = tmp_path / name
        if name.endswith("csv"):
            path.write_text("x\n1\n")
        else:
            pyarrow.parquet.write_table(pa.table({"x": [1.0]}), path)
        table = Table(str(path), X, ledger)
        path.unlink()
        with pytest.raises(SchemaError, match="cannot be read"):
            table.columns(["x"])


def test_a_parquet_file_is_asked_for_the_wanted_columns_only(
    tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.parquet"
    pyarrow.parquet.write_table(pa.table({"x": [1.0], "y": [2.0], "canary": ["c"]}), path)
    asked: list[list[str]] = []
    read = pyarrow.parquet.ParquetFile.read

    def watched(self, columns=None, **options):
        asked.append(columns)
        return read(self, columns=columns, **options)

    monkeypatch.setattr(pyarrow.parquet.ParquetFile, "read", watched)
    table = Table(path, Schema({"x": Bounded(0, 5), "y": Bounded(0, 5)}), ledger)
    assert asked == []
    table.columns(["y"])
    assert asked == [["y"]]


def test_a_parquet_column_with_a_dot_in_its_name_is_not_a_nested_one(tmp_path: Path, ledger: Ledger) -> None:
    path = tmp_path / "table.parquet"
    pyarrow.parquet.write_table(pa.table({"a.b": [1.0], "a": [{"b": 5.0}]}), path)
    assert Table(path, Schema({"a.b": Bounded(0, 9)}), ledger).columns(["a.b"])["a.b"].tolist() == [1.0]
    with pytest.raises(SchemaError, match="column 'a': Bounded needs a numeric column"):
        Table(path, Schema({"a": Bounded(0, 9)}), ledger)


def test_parquet_text_that_is_not_utf8_is_an_unseen_level(tmp_path: Path, ledger: Ledger) -> None:
    path = tmp_path / "table.parquet"
    text = pa.array([b"b", b"\xff", None], pa.binary()).view(pa.string())
    pyarrow.parquet.write_table(pa.table({"t": text, "d": text.dictionary_encode()}), path)
    levels = Levels(["a", "b"], other="c")
    columns = Table(path, Schema({"t": levels, "d": levels}), ledger).columns(["t", "d"])
    assert columns["t"].tolist() == columns["d"].tolist() == [1, 2, 2]


def test_a_damaged_parquet_file_is_refused(tmp_path: Path, ledger: Ledger) -> None:
    path = tmp_path / "table.parquet"
    path.write_bytes(b"PAR1canary")
    with pytest.raises(SchemaError, match="cannot be read as Parquet") as caught:
        Table(path, X, ledger)
    assert caught.value.__context__ is None


def test_a_folder_whose_files_keep_the_same_values_in_other_types_is_one_table(tmp_path: Path, ledger: Ledger) -> None:
    """Arrow cannot join them, and said so in its own words after the spend."""
    texts, halves = ["a", "b", None, "a"], [Decimal("0.50"), None, Decimal("-0.25"), Decimal("3.00")]
    kinds = [
        (pa.string(), pa.decimal128(10, 2), True), (pa.large_string(), pa.decimal128(12, 4), False),
        (pa.string(), pa.decimal128(20, 2), True),
    ]  # fmt: skip
    home = tmp_path / "parts"
    home.mkdir()
    for place, (text, number, nullable) in enumerate(kinds):
        schema = pa.schema([
            ("t", text), ("x", number), pa.field("i", pa.int64(), nullable=nullable)
        ])  # fmt: skip
        rows = pa.table({"t": texts, "x": halves, "i": [3, 1, 2, 0]}, schema=schema)
        pyarrow.parquet.write_table(rows, home / f"{place}.parquet")
    declared = Schema({"t": Levels(["b", "a"]), "x": Bounded(-10, 10), "i": Levels([0, 1, 2, 3])})
    pyarrow.parquet.write_table(rows, tmp_path / "one.parquet")
    whole = Table(tmp_path / "one.parquet", declared, ledger).rows(["t", "x", "i"])
    found = Table(home, declared, ledger).rows(["t", "x", "i"])
    assert found.n == 12 and found.included.tolist() == whole.included.tolist() * 3
    for name, values in found.values.items():
        assert values.tolist() == whole.values[name].tolist() * 3
    assert Table(home, declared, ledger, person="t").n == 2
    narrow = rows.set_column(2, "i", pa.array([3, 1, 2, 0], pa.int32()))
    for other in (narrow, rows.select(["x", "t", "i"]), rows.set_column(1, "x", pa.nulls(4))):
        pyarrow.parquet.write_table(other, home / "3.parquet")
        with pytest.raises(SchemaError, match="must have the same columns, of the same types"):
            Table(home, declared, ledger)


def test_a_path_that_is_no_table_file_is_refused_by_name(tmp_path: Path, ledger: Ledger) -> None:
    (tmp_path / "folder.csv").mkdir()
    for path, rule in (
        (tmp_path / "none.csv", "there is no file"),
        (tmp_path / "folder.csv", "there is no file"),
        ("table.doc", "ends otherwise"),
        ("table.csv.tar.gz", "ends otherwise"),
        ("table", "ends otherwise"),
        ("sc://host:15002?table=visits", "Spark Connect"),
    ):
        with pytest.raises(ParameterError, match=rule):
            Table(path, X, ledger)


@pytest.mark.parametrize("name", ["d.tsv", "d.TSV.gz", "d.csv.gz"])
def test_tabs_and_gzip_read_as_the_plain_file_does(tmp_path: Path, name: str) -> None:
    rows = [["a", "b c"], ["1.5", "x, y"], ["", "é"], ["-2", '"q"']]
    between = "\t" if "tsv" in name.lower() else ","
    made = io.StringIO()
    csv.writer(made, delimiter=between, lineterminator="\n").writerows(rows)
    plain = tmp_path / "plain.csv"
    with plain.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    data = made.getvalue().encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    found, known = file_source(tmp_path / name), file_source(plain)
    assert found.names == known.names == ("a", "b c") and found.count() == known.count() == 3
    ours, theirs = found.collect(["b c", "a"]), known.collect(["b c", "a"])
    assert [list(part) for part in ours.objects("b c")] == [list(part) for part in theirs.objects("b c")]
    assert np.array_equal(ours.numbers("a"), theirs.numbers("a"), equal_nan=True)


@pytest.mark.parametrize(("packed", "letter"), [(False, "7"), (True, "x")])
def test_one_giant_field_of_any_column_decides_nothing(tmp_path: Path, packed: bool, letter: str) -> None:
    schema = Schema({"a": Levels([0, 1]), "b": Bounded(0, 9), "note": Levels(["no", "yes"])})
    told = set()
    for size in (10, 20_000_000):
        for place in (3,) if packed else (0, 3):
            rows = [[str(k), str(k % 2), "5", "no"] for k in range(500)]
            rows[250][place] = letter * size
            text = "id,a,b,note\n" + "\n".join(map(",".join, rows))
            path = tmp_path / ("table.csv.gz" if packed else "table.csv")
            path.write_bytes(gzip.compress(text.encode(), 1) if packed else text.encode())
            ledger = Ledger.in_memory(PureDP(9))
            for person in (None, "id"):
                table = Table(path, schema, ledger, person=person)
                columns = table.columns(schema.names)
                told.add((table.n, *(len(column) for column in columns.values())))
    assert told == {(500, 500, 500, 500)}


@pytest.mark.parametrize("person", [None, "id"])
@pytest.mark.parametrize("damaged", ["id", "x", "y"])
@pytest.mark.parametrize("several", [False, True])
def test_a_damaged_page_of_parquet_is_refused_when_the_table_is_made(
    tmp_path: Path, ledger: Ledger, person: str | None, damaged: str, several: bool
) -> None:
    rng, folder = np.random.default_rng(103), tmp_path / "parts"
    folder.mkdir()
    for name in ("a.parquet", "b.parquet"):
        table = pa.table({"id": np.arange(20_000), "x": rng.random(20_000), "y": rng.random(20_000)})
        pa.parquet.write_table(table, folder / name, compression="zstd")
    path = folder / "b.parquet"
    start = pa.parquet.ParquetFile(path).metadata.row_group(0).column(table.column_names.index(damaged))
    raw = bytearray(path.read_bytes())
    raw[start.data_page_offset + 60 : start.data_page_offset + 100] = bytes(40)
    path.write_bytes(raw)
    source = folder if several else path
    if damaged == "x" or damaged == person:
        with pytest.raises(SchemaError):
            Table(source, X, ledger, person=person)
    else:  # a column that is not used may be damaged
        assert Table(source, X, ledger, person=person).n


@pytest.mark.parametrize("kind", ["csv", "parquet", "folder", "duckdb"])
def test_a_relative_path_is_the_same_file_wherever_the_process_goes(
    tmp_path: Path, ledger: Ledger, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = pa.table({"x": [1.0, 2.0]})
    Path("folder").mkdir()
    pa.csv.write_csv(rows, "t.csv")
    for path in ("t.parquet", "folder/t.parquet"):
        pa.parquet.write_table(rows, path)
    duckdb.connect("t.db").execute("create table t as select 1.0 x union all select 2.0").close()
    paths = {"csv": "t.csv", "parquet": Path("t.parquet"), "folder": "./folder", "duckdb": "duckdb:///t.db?table=t"}
    table = Table(paths[kind], X, ledger)
    monkeypatch.chdir("/")
    assert table.ledger is ledger and sorted(table.columns(["x"])["x"]) == [1.0, 2.0]


@pytest.mark.parametrize(("encoding", "broken"), [("cp1252", b"\x81"), ("ascii", b"\xe9"), ("utf-8", b"\xff")])
@pytest.mark.parametrize("packed", [False, True])
def test_a_field_that_is_no_text_in_the_declared_encoding_refuses_nothing(
    encoding: str, broken: bytes, packed: bool, tmp_path: Path
) -> None:
    path = tmp_path / ("d.csv.gz" if packed else "d.csv")
    whole = b"x;g\n" + b"1;a\n" * 70_000 + b"2;" + broken + b"\n" + b"3;b\n"
    path.write_bytes(gzip.compress(whole) if packed else whole)
    source = file_source(DataFile(str(path), ";", encoding=encoding))
    collected = source.collect(["x", "g"])
    assert source.count() == 70_002 and collected.numbers("x")[-2:].tolist() == [2.0, 3.0]
    assert [text for chunk in collected.objects("g") for text in chunk][-1] == "b"


def test_a_declared_format_is_read_as_declared_and_is_other_data(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    fields = ["1,5", "1.5", "1.234,5", "-0,25", "", "7", "1,2,3"]
    path.write_bytes("\n".join(["Größe;b", *(f"{field};x" for field in fields)]).encode("cp1252"))
    form = DataFile(str(path), ";", ",", encoding="cp1252")
    numbers = file_source(form).collect(["Größe"]).numbers("Größe").tolist()
    assert [None if number != number else number for number in numbers] == [1.5, None, None, -0.25, None, 7.0, None]
    assert likely_format(str(path)) == form
    assert form.options == {"separator": ";", "decimal": ",", "encoding": "cp1252"}
    assert Origin.of(form).mark != Origin.of(str(path)).mark == Origin.of(DataFile(str(path))).mark
    (tabs := tmp_path / "d.tsv").write_text("x\n1\n")
    marks = {Origin.of(DataFile(str(tabs), *one)).mark for one in (("\t", "."), (",", "."), ("\t", ","), (";", ","))}
    assert len(marks) == 4
    wrong = [("separator", "x"), ("decimal", ";"), ("thousands", "."), ("quote", "`"), ("encoding", "none"),
             ("encoding", "hex")]  # fmt: skip
    for name, value in wrong:
        assert rule_of(partial(DataFile, "d.csv", **{name: value})) == "choice"


@pytest.mark.parametrize(
    ("name", "header", "encoding", "form"),
    [
        ("d.csv", "a,b", "utf-8", "comma, decimal point, utf-8"),
        ("d.csv", "a;b", "utf-8", "semicolon, decimal comma, utf-8"),
        ("d.txt", "a|b", "utf-8-sig", "bar, decimal point, utf-8"),
        ("d.tsv", "a\tb", "utf-16", "tab, decimal point, utf-16"),
        ("d.csv", "ä\tb", "cp1252", "tab, decimal point, cp1252"), ("d.tab", "a", "utf-8", "tab, decimal point, utf-8"),
    ],
)  # fmt: skip
def test_a_format_is_suggested_by_name_and_header_alone(
    name: str, header: str, encoding: str, form: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    for record in ("1;2,5", "1,2;3\t4", "1|ü", ""):
        path.write_bytes(f"{header}\r\n{record}\r\n".encode(encoding))
        assert likely_format(str(path)).form == form


NUMBERS = {  # thousands, decimal: fields and what they are
    ("", ","): {"1,5": 1.5, "1.5": None, "1.234,5": None, "-,25": -0.25},
    (",", "."): {"1,234": 1234, "-1,234,567.5": -1234567.5, "1234": 1234, "12,34": None, ",234": None, " 1,000 ": 1000},
    (".", ","): {"1.234": 1234, "1.234,5": 1234.5, "1.5": None, "1.2345": None, "1,234": 1.234, "1.234.5": None},
    (" ", ","): {"1 234,5": 1234.5, "1\u00a0234": 1234, "1\u202f234\u202f567": 1234567, "1 2": None, "12 345": 12345},
    ("'", "."): {"1'234.5": 1234.5, "1\u2019234": 1234, "1'23": None, "'234": None, "1,234": None},
}


@pytest.mark.parametrize(("thousands", "decimal"), NUMBERS)
def test_numbers_with_marks_are_read_as_declared_or_missing(thousands: str, decimal: str, tmp_path: Path) -> None:
    known = NUMBERS[thousands, decimal]
    (path := tmp_path / "d.tsv").write_text("x\ty\n" + "".join(f"{field}\t1\n" for field in known))
    numbers = file_source(DataFile(str(path), decimal=decimal, thousands=thousands)).collect(["x"]).numbers("x")
    assert [None if number != number else number for number in numbers.tolist()] == list(known.values())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("quote", ['"', "'", ""])
@pytest.mark.parametrize("ending", [".csv", ".tab", ".txt.gz", ".zip"])
def test_every_encoding_quote_and_packing_reads_as_declared(
    encoding: str, quote: str, ending: str, tmp_path: Path
) -> None:
    separator, path = ("\t" if ending == ".tab" else ","), tmp_path / f"d{ending}"
    fields = ["Größe", f"{quote}Straße{separator}Haus{quote}" if quote else "Straße", "1"]
    data = f"g{separator}n\n{separator.join(['ä', '0'])}\n{separator.join(fields[1:])}\n".encode(encoding)
    if ending == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inside.txt", data)
            archive.writestr("__MACOSX/inside.txt", b"x")
    else:
        path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    source = file_source(DataFile(str(path), quote=quote, encoding=encoding))
    assert source.names == ("g", "n") and source.count() == 2
    collected = source.collect(["n", "g"])
    assert [text for chunk in collected.objects("g") for text in chunk] == ["ä", fields[1].strip(quote or None)]
    assert collected.numbers("n").tolist() == [0, 1]


def test_an_archive_of_several_files_or_with_a_password_is_refused(tmp_path: Path, ledger: Ledger) -> None:
    for number in (0, 2):
        with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
            for place in range(number):
                archive.writestr(f"{place}.csv", "x\n1\n")
        assert rule_of(partial(Table, tmp_path / "d.zip", X, ledger)) == "zip"
    (tmp_path / "d.zip").write_bytes(b"canary")
    with pytest.raises(SchemaError, match="cannot be read as a zip"):
        Table(tmp_path / "d.zip", X, ledger)


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_json_lines_are_total_whatever_a_record_holds(packed: str, tmp_path: Path, ledger: Ledger) -> None:
    lines = ['{"x": 1.5, "g": "a", "b": true}', '{"g": "b", "x": "2"}', "no object", "[1]", "", '{"x": [1], "g": {}}',
             '{"x": null, "b": false, "new": 1}', '{"x": 9007199254740993, "g": "\\ud800"}', "[" * 100_000]  # fmt: skip
    data = "\n".join(lines).encode() + b'\n{"g": "\xff", "x": 3}'
    (path := tmp_path / f"d.jsonl{packed}").write_bytes(gzip.compress(data) if packed else data)
    source = file_source(path)
    assert source.names == ("x", "g", "b") and source.count() == 9
    numbers = source.collect(["x"]).numbers("x")
    assert [None if number != number else number for number in numbers.tolist()] == [
        1.5, 2, None, None, None, None, 2.0**53, None, 3]  # fmt: skip
    schema = Schema({"g": Levels(["a", "b"], other="c"), "b": Levels([False, True])})
    rows = Table(path, schema, ledger).rows(["g", "b"])
    assert rows.values["g"].tolist() == [0, 1, 2, 2, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("first", ["[1]", "{}", '{"g": "a"}', '{"other": 1}'])
def test_no_json_line_decides_which_columns_there_are(first: str, tmp_path: Path, ledger: Ledger) -> None:
    (path := tmp_path / "d.jsonl").write_text(f'{first}\n{{"g": "b", "x": 2}}\n')
    table = Table(path, Schema({"g": Levels(["a", "b"]), "x": Bounded(0, 10)}), ledger)
    assert table.n == 2 and table.rows(["x"]).values["x"].tolist() == [5, 2]


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_an_arrow_file_reads_as_the_parquet_file_does(compression: str, tmp_path: Path, ledger: Ledger) -> None:
    rows = pa.table({"x": pa.array([1.0, None, 30.0] * 20_000), "g": pa.array(["a", "b", None] * 20_000)})
    pyarrow.parquet.write_table(rows, tmp_path / "d.parquet")
    pyarrow.feather.write_feather(rows, tmp_path / "d.feather", compression=compression)
    schema = Schema({"g": Levels(["a", "b"]), "x": Bounded(0, 10)})
    ours, theirs = (Table(tmp_path / f"d.{ending}", schema, ledger) for ending in ("feather", "parquet"))
    assert ours.n == theirs.n == 60_000 and ours.spec.source.backend == "arrow"
    for name, values in ours.rows(["g", "x"]).values.items():
        assert values.tobytes() == theirs.rows(["g", "x"]).values[name].tobytes()
    parts = [part.numbers("x") for part in ours.spec.source.stream(["x"])]
    assert max(map(len, parts)) <= 1 << 15 and sum(map(len, parts)) == 60_000
    (tmp_path / "d.feather").write_bytes(b"canary")
    with pytest.raises(SchemaError, match="cannot be read as an Arrow file"):
        Table(tmp_path / "d.feather", schema, ledger)
