"""Files of text, Parquet and Arrow; files of any kind that cannot be read."""

import gzip
import traceback
import zipfile
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from dpcausal import Bounded, Ledger, Levels, Schema, Table
from dpcausal.data.files.formats import DataFile, likely_format
from dpcausal.data.files.opening import file_source
from dpcausal.data.sources.origin import Origin
from dpcausal.errors import MissingDependencyError, ParameterError, SchemaError
from tests.data.conftest import cells_of
from tests.factories import table
from tests.refusals import rule_of

X, TEN = Schema({"x": Bounded(-10, 10)}), Bounded(-10, 10)


def written(path: Path, data: str | bytes) -> Path:
    """Write a file, packed if its name ends in .gz."""
    raw = data if isinstance(data, bytes) else data.encode()
    path.write_bytes(gzip.compress(raw, 1) if path.suffix == ".gz" else raw)
    return path


def numbers_of(source: Any, name: str = "x") -> list[float | None]:
    return [None if number != number else number for number in source.collect([name]).numbers(name).tolist()]


NUMBERS: dict[float | None, list[str]] = {
    1.5: ["1.5", " 1.5\t", "+1.5"], -0.5: ["-.5"], 3.0: ["3."], 2.0: ["2E+0"],
    0.1: ["1e-1", "0.1000000000000000055511151231257827021181583404541015625000001"],
    10.0: ["inf", "+INF", "1e400", "1" * 400], -10.0: ["-Infinity", "-1e999999999"],
    0.0: ["1e-400", "-0", "0." + "0" * 400 + "1"],
    None: ["nan", "NaN", "", "NA", "abc", "1,5", "1_0", "0x10", "1 2", ".", "1e", "e5", "--1", "1\n", "١", "\u00a01",
           "true"],
}  # fmt: skip
MATCHED: list[tuple[list[Any], dict[int, list[str]]]] = [
    ([0, 1], {1: ["1", " +1 ", "1.0", "01", "1.", "true"], 2: ["1.5", "1e0", "", "9" * 5000, "١"]}),
    ([-1, 1], {0: ["-1"]}),
    ([False, True], {0: ["false", "0"], 1: ["true", "True", " TRUE", "1"], 2: ["2", "yes", ""]}),
    (["a", "b"], {1: ["b"], 2: [" b", "B"]}), (["a", ""], {1: [""]}), (["a", "1"], {1: ["1"]}),
    (["a", "x\ny"], {1: ["x\ny"]}), (["a", "x,y"], {1: ["x,y"]}), (["a", "ü"], {1: ["ü"], 2: ["u\u0308"]}),
]  # fmt: skip
FIELDS = [(TEN, value, field) for value, fields in NUMBERS.items() for field in fields]
FIELDS += [(Levels(levels, other="other"), code, field) for levels, codes in MATCHED for code, fields in codes.items()
           for field in fields]  # fmt: skip


@pytest.mark.parametrize(("column", "value", "field"), FIELDS, ids=lambda one: repr(one)[:30])
def test_a_field_is_read_as_a_number_or_a_level_by_one_total_rule(
    column: Any, value: float | None, field: str, tmp_path: Path
) -> None:
    assert cells_of(written(tmp_path / "d.csv", f'y,x\n1,"{field}"\n'), column) == [value]


@pytest.mark.parametrize(
    ("text", "column", "values"),
    [
        ("\ufeffx,y\n1,2\n3,4", TEN, [1, 3]), ("x,y\r\n1,2\r\n3,4\r\n", TEN, [1, 3]), ("x\n1", TEN, [1]),
        ("x,y\n1,2\n\n3,4\n\n\n", TEN, [1, 3]), ('"x","y\nz"\n1,2\n3,4\n', TEN, [1, 3]),
        ("x\n1\n\n3\n", TEN, [1, None, 3]),
        (b"x,y\n\xff,1\n3,2\n", TEN, [None, 3]), (b"x,y\n\xff,1\nb,2\n", Levels(["a", "b"]), [None, 1]),
    ],
)  # fmt: skip
def test_the_layout_of_a_csv_file_is_read_as_stated(
    text: str | bytes, column: Any, values: list[Any], tmp_path: Path
) -> None:
    assert cells_of(written(tmp_path / "d.csv", text), column) == values


NO_HEADER = r"column '[xq]' of the schema is not in the frame"
UNREADABLE: list[tuple[str, str | bytes, str]] = [
    *(("d.csv", text, "cannot be read|names differ|at least one row|has 0 columns") for text in (
        "", "\n", "x,y\n1,2\ncanary\n", "x,y\n1,2,canary\n", "x\n", "x,y\n", "x", "x,x\n2,3\n",
        "x,y\n" + "1,2\n" * 9 + "3\n")),
    *(("d.csv", f"{record}\n2,3\n", NO_HEADER) for record in (
        "canary,1", "x,canary", "x;canary", "q\tcanary|x", "X ,canary", '" x ",canary')),
    ("d.parquet", b"PAR1canary", "cannot be read as Parquet"), ("d.zip", b"canary", "cannot be read as a zip"),
    ("d.feather", b"canary", "cannot be read as an Arrow file"),
    *((f"d.{ending}", b"canary" * 100, rf"d.{ending}' cannot be read as one of \.dta")
      for ending in ("dta", "xpt", "sas7bdat", "sav")),
    *((f"d.{ending}", b"canary" * 100, "cannot be read as a workbook.*or CSV") for ending in ("xlsx", "ods")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "words"), UNREADABLE)
def test_what_is_no_table_or_lacks_a_header_is_refused_and_no_field_is_quoted(
    name: str, data: str | bytes, words: str, tmp_path: Path
) -> None:
    """A record may hold a declared name: then the names found were listed."""
    columns = {**X, "q": Levels(["x", "y"])} if words == NO_HEADER else X
    with pytest.raises(SchemaError, match=words) as caught:
        table(written(tmp_path / name, data), columns)
    assert "canary" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_path_that_is_no_table_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for path, words in (
        (tmp_path / "none.csv", "there is no file"), (tmp_path / "folder.csv", "there is no file"),
        (tmp_path / "none.dta", "there is no file"), ("table.doc", "ends otherwise"), ("table", "ends otherwise"),
        ("table.csv.tar.gz", "ends otherwise"), ("sc://host:15002?table=visits", "Spark Connect"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=words):
            table(path, X)
    for number in (0, 2):
        with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
            for place in range(number):
                archive.writestr(f"{place}.csv", "x\n1\n")
        assert rule_of(partial(table, tmp_path / "d.zip", X)) == "zip"


@pytest.mark.parametrize(("package", "name", "extra"), [
    ("pyreadstat", "d.dta", "packages"), ("python_calamine", "d.xlsx", "excel"), ("pyarrow", "d.csv", "files"),
])  # fmt: skip
def test_a_reader_that_is_not_there_is_named_with_its_extra(
    package: str, name: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / name, "x\n1\n")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else 1)
    with pytest.raises(MissingDependencyError, match=rf"{package.replace('_', '-')} is needed.*'dpcausal\[{extra}\]'"):
        table(path, X)


def test_a_long_csv_file_is_read_across_its_blocks_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcausal.data.files.fields._BLOCKS", (1 << 12,))
    values = np.random.default_rng(3).normal(size=20_000)
    text = "x,t\n" + "".join(f'{value!r},"a\n{row % 2}"\n' for row, value in enumerate(values.tolist()))
    columns = table(written(tmp_path / "d.csv", text), {**X, "t": Levels(["a\n0", "a\n1"])}).columns(["x", "t"])
    assert columns["x"].tobytes() == values.tobytes() and columns["t"].tolist() == [0, 1] * 10_000


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_that_went_away_is_refused(ending: str, tmp_path: Path) -> None:
    path, write = tmp_path / f"d.{ending}", pa.csv.write_csv if ending == "csv" else pa.parquet.write_table
    write(pa.table({"x": [1.0]}), path)
    whole = table(str(path), X)
    path.unlink()
    with pytest.raises(SchemaError, match="cannot be read"):
        whole.columns(["x"])


def test_a_parquet_file_is_asked_for_the_wanted_columns_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, asked, read = tmp_path / "d.parquet", list[Any](), pyarrow.parquet.ParquetFile.read
    pyarrow.parquet.write_table(pa.table({"x": [1.0], "y": [2.0], "canary": ["c"]}), path)
    monkeypatch.setattr(pyarrow.parquet.ParquetFile, "read",
                        lambda self, columns=None: asked.append(columns) or read(self, columns))  # fmt: skip
    whole = table(path, {"x": Bounded(0, 5), "y": Bounded(0, 5)})
    assert asked == []
    whole.columns(["y"])
    assert asked == [["y"]]


def test_a_parquet_column_with_a_dot_in_its_name_is_not_a_nested_one(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"a.b": [1.0], "a": [{"b": 5.0}]}), tmp_path / "d.parquet")
    assert cells_of(tmp_path / "d.parquet", Bounded(0, 9), "a.b") == [1.0]
    with pytest.raises(SchemaError, match="column 'a': Bounded needs a numeric column"):
        table(tmp_path / "d.parquet", {"a": Bounded(0, 9)})


def test_parquet_text_that_is_not_utf8_is_an_unseen_level(tmp_path: Path) -> None:
    text = pa.array([b"b", b"\xff", None], pa.binary()).view(pa.string())
    pyarrow.parquet.write_table(pa.table({"t": text, "d": text.dictionary_encode()}), tmp_path / "d.parquet")
    for name in ("t", "d"):
        assert cells_of(tmp_path / "d.parquet", Levels(["a", "b"]), name) == [1, None, None]


def test_a_folder_whose_files_keep_the_same_values_in_other_types_is_one_table(tmp_path: Path) -> None:
    """Arrow cannot join them, and said so in its own words after the spend."""
    texts, halves = ["a", "b", None, "a"], [Decimal("0.50"), None, Decimal("-0.25"), Decimal("3.00")]
    kinds = [
        (pa.string(), pa.decimal128(10, 2), True), (pa.large_string(), pa.decimal128(12, 4), False),
        (pa.string(), pa.decimal128(20, 2), True),
    ]  # fmt: skip
    (home := tmp_path / "parts").mkdir()
    for place, (text, number, nullable) in enumerate(kinds):
        schema = pa.schema([("t", text), ("x", number), pa.field("i", pa.int64(), nullable=nullable)])
        rows = pa.table({"t": texts, "x": halves, "i": [3, 1, 2, 0]}, schema=schema)
        pyarrow.parquet.write_table(rows, home / f"{place}.parquet")
    declared = {"t": Levels(["b", "a"]), "x": TEN, "i": Levels([0, 1, 2, 3])}
    for name, column in declared.items():
        assert cells_of(home, column, name) == cells_of(rows, column, name) * 3
    assert table(home, declared, person="t").n == 2
    narrow = rows.set_column(2, "i", pa.array([3, 1, 2, 0], pa.int32()))
    for other in (narrow, rows.select(["x", "t", "i"]), rows.set_column(1, "x", pa.nulls(4))):
        pyarrow.parquet.write_table(other, home / "3.parquet")
        with pytest.raises(SchemaError, match="must have the same columns, of the same types"):
            table(home, declared)


@pytest.mark.parametrize(("packed", "letter"), [(False, "7"), (True, "x")])
def test_one_giant_field_of_any_column_decides_nothing(tmp_path: Path, packed: bool, letter: str) -> None:
    schema = Schema({"a": Levels([0, 1]), "b": Bounded(0, 9), "note": Levels(["no", "yes"])})
    told = set()
    for size in (10, 20_000_000):
        for place in (3,) if packed else (0, 3):
            rows = [[str(k), str(k % 2), "5", "no"] for k in range(500)]
            rows[250][place] = letter * size
            path = tmp_path / ("d.csv.gz" if packed else "d.csv")
            written(path, "id,a,b,note\n" + "\n".join(map(",".join, rows)))
            for person in (None, "id"):
                whole = table(path, schema, person=person)
                told.add((whole.n, *(len(column) for column in whole.columns(schema.names).values())))
    assert told == {(500, 500, 500, 500)}


@pytest.mark.parametrize("person", [None, "id"])
@pytest.mark.parametrize("damaged", ["id", "x", "y"])
@pytest.mark.parametrize("several", [False, True])
def test_a_damaged_page_of_parquet_is_refused_when_the_table_is_made(
    tmp_path: Path, person: str | None, damaged: str, several: bool
) -> None:
    rng, folder = np.random.default_rng(103), tmp_path / "parts"
    folder.mkdir()
    for name in ("a.parquet", "b.parquet"):
        rows = pa.table({"id": np.arange(20_000), "x": rng.random(20_000), "y": rng.random(20_000)})
        pa.parquet.write_table(rows, folder / name, compression="zstd")
    path = folder / "b.parquet"
    start = pa.parquet.ParquetFile(path).metadata.row_group(0).column(rows.column_names.index(damaged))
    raw = bytearray(path.read_bytes())
    raw[start.data_page_offset + 60 : start.data_page_offset + 100] = bytes(40)
    path.write_bytes(raw)
    made = partial(table, folder if several else path, X, person=person)
    if damaged == "x" or damaged == person:
        with pytest.raises(SchemaError):
            made()
    else:  # a column that is not used may be damaged
        assert made().n


@pytest.mark.parametrize("path", ["t.csv", Path("t.parquet"), "./folder", "duckdb:///t.db?table=t"])
def test_a_relative_path_is_the_same_file_wherever_the_process_goes(
    path: Any, tmp_path: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = pa.table({"x": [1.0, 2.0]})
    Path("folder").mkdir()
    pa.csv.write_csv(rows, "t.csv")
    for place in ("t.parquet", "folder/t.parquet"):
        pa.parquet.write_table(rows, place)
    duckdb.connect("t.db").execute("create table t as select 1.0 x union all select 2.0").close()
    whole = Table(path, X, ledger)
    monkeypatch.chdir("/")
    assert whole.ledger is ledger and sorted(whole.columns(["x"])["x"]) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("encoding", "broken"),
    [("cp1252", b"\x81"), ("ascii", b"\xe9"), ("utf-8", b"\xff"), ("euc-kr", b"\xa4\xd4")],
)
@pytest.mark.parametrize("name", ["d.csv", "d.csv.gz"])
def test_a_field_that_is_no_text_in_the_declared_encoding_refuses_nothing(
    encoding: str, broken: bytes, name: str, tmp_path: Path
) -> None:
    path = written(tmp_path / name, b"x;g\n" + b"1;a\n" * 70_000 + b"2;" + broken + b"\n" + b"3;b\n")
    source = file_source(DataFile(str(path), ";", encoding=encoding))
    assert source.count() == 70_002 and numbers_of(source)[-2:] == [2.0, 3.0]
    assert [text for chunk in source.collect(["g"]).objects("g") for text in chunk][-1] == "b"


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["gbk", "gb18030", "big5", "shift_jis", "johab", "euc_jp", "cp949", "cp1252"])
def test_a_separator_that_ends_characters_of_the_encoding_is_refused(encoding: str, separator: str) -> None:
    pairs = [bytes([one]) + separator.encode() for one in range(0x80, 0x100)]
    texts = [pair.decode(encoding, "ignore") for pair in pairs]
    if not any(text and separator not in text for text in texts):
        assert DataFile("d.csv", separator, encoding=encoding).separator == separator
        return
    with pytest.raises(ParameterError) as refused:
        DataFile("d.csv", separator, encoding=encoding)
    assert refused.value.argument == "separator"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32-le"])
@pytest.mark.parametrize("broken", ["\ud800", "\udc00"])
def test_half_a_pair_of_utf16_near_the_header_refuses_nothing(encoding: str, broken: str, tmp_path: Path) -> None:
    path = written(tmp_path / "d.csv", f"x;g\n1;{broken}\n2;b\n".encode(encoding, "surrogatepass"))
    source = file_source(DataFile(str(path), ";", encoding=encoding))
    assert source.names == ("x", "g") and numbers_of(source) == [1.0, 2.0]


def test_a_declared_format_is_read_as_declared_and_is_other_data(tmp_path: Path) -> None:
    path = written(tmp_path / "d.csv", "Größe;b\n1,5;x\n1.5;x\n1.234,5;x\n-0,25;x\n;x\n1,2,3;x\n".encode("cp1252"))
    form = DataFile(str(path), ";", ",", encoding="cp1252")
    assert numbers_of(file_source(form), "Größe") == [1.5, None, None, -0.25, None, None]
    assert likely_format(str(path)) == form
    assert form.options == {"separator": ";", "decimal": ",", "encoding": "cp1252"}
    assert Origin.of(form).mark != Origin.of(str(path)).mark == Origin.of(DataFile(str(path))).mark
    tabs = str(written(tmp_path / "d.tsv", "x\n1\n"))
    marks = {Origin.of(DataFile(tabs, *one)).mark for one in (("\t", "."), (",", "."), ("\t", ","), (";", ","))}
    assert len(marks) == 4
    encodings = (("encoding", one) for one in ("none", "hex", "iso2022_jp", "hz", "utf-7"))
    for name, value in (("separator", "x"), ("decimal", ";"), ("thousands", "."), ("quote", "`"), *encodings):
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
    for record in ("1;2,5", "1,2;3\t4", "1|ü", ""):
        path = written(tmp_path / name, f"{header}\r\n{record}\r\n".encode(encoding))
        assert likely_format(str(path)).form == form


MARKED = {  # thousands, decimal: fields and what they are
    ("", ","): {"1,5": 1.5, "1.5": None, "1.234,5": None, "-,25": -0.25},
    (",", "."): {"1,234": 1234, "-1,234,567.5": -1234567.5, "1234": 1234, "12,34": None, ",234": None, " 1,000 ": 1000},
    (".", ","): {"1.234": 1234, "1.234,5": 1234.5, "1.5": None, "1.2345": None, "1,234": 1.234, "1.234.5": None},
    (" ", ","): {"1 234,5": 1234.5, "1\u00a0234": 1234, "1\u202f234\u202f567": 1234567, "1 2": None, "12 345": 12345},
    ("'", "."): {"1'234.5": 1234.5, "1\u2019234": 1234, "1'23": None, "'234": None, "1,234": None},
}


@pytest.mark.parametrize(("thousands", "decimal"), MARKED)
def test_numbers_with_marks_are_read_as_declared_or_missing(thousands: str, decimal: str, tmp_path: Path) -> None:
    known = MARKED[thousands, decimal]
    path = written(tmp_path / "d.tsv", "x\ty\n" + "".join(f"{field}\t1\n" for field in known))
    assert numbers_of(file_source(DataFile(str(path), decimal=decimal, thousands=thousands))) == list(known.values())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("quote", ['"', "'", ""])
@pytest.mark.parametrize("ending", [".csv", ".tab", ".TSV.gz", ".txt.gz", ".zip"])
def test_every_encoding_quote_and_packing_reads_as_declared(
    encoding: str, quote: str, ending: str, tmp_path: Path
) -> None:
    separator, path = ("\t" if ending in (".tab", ".TSV.gz") else ","), tmp_path / f"d{ending}"
    fields = ["Größe", f"{quote}Straße{separator}Haus{quote}" if quote else "Straße", "1"]
    data = f"g{separator}n\n{separator.join(['ä', '0'])}\n{separator.join(fields[1:])}\n".encode(encoding)
    if ending == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inside.txt", data)
            archive.writestr("__MACOSX/inside.txt", b"x")
    else:
        written(path, data)
    source = file_source(DataFile(str(path), quote=quote, encoding=encoding))
    assert source.names == ("g", "n") and source.count() == 2
    collected = source.collect(["n", "g"])
    assert [text for chunk in collected.objects("g") for text in chunk] == ["ä", fields[1].strip(quote or None)]
    assert collected.numbers("n").tolist() == [0, 1]


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_json_lines_are_total_whatever_a_record_holds(packed: str, tmp_path: Path) -> None:
    lines = ['{"x": 1.5, "g": "a", "b": true}', '{"g": "b", "x": "2"}', "no object", "[1]", "", '{"x": [1], "g": {}}',
             '{"x": null, "b": false, "new": 1}', '{"x": 9007199254740993, "g": "\\ud800"}', "[" * 100_000]  # fmt: skip
    path = written(tmp_path / f"d.jsonl{packed}", "\n".join(lines).encode() + b'\n{"g": "\xff", "x": 3}')
    source = file_source(path)
    assert source.names == ("x", "g", "b") and source.count() == 9
    assert numbers_of(source) == [1.5, 2, None, None, None, None, 2.0**53, None, 3]
    assert cells_of(path, Levels(["a", "b"], other="c"), "g") == [0, 1, 2, 2, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("first", ["[1]", "{}", '{"g": "a"}', '{"other": 1}'])
def test_no_json_line_decides_which_columns_there_are(first: str, tmp_path: Path) -> None:
    path = written(tmp_path / "d.jsonl", f'{first}\n{{"g": "b", "x": 2}}\n')
    whole = table(path, {"g": Levels(["a", "b"]), "x": Bounded(0, 10)})
    assert whole.n == 2 and whole.rows(["x"]).values["x"].tolist() == [5, 2]


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_an_arrow_file_is_read_in_batches(compression: str, tmp_path: Path) -> None:
    rows, path = pa.table({"x": pa.array([1.0, None, 30.0] * 20_000)}), tmp_path / "d.feather"
    pyarrow.feather.write_feather(rows, path, compression=compression)
    source = file_source(path)
    parts = [part.numbers("x") for part in source.stream(["x"])]
    assert source.backend == "arrow" and source.count() == 60_000 and max(map(len, parts)) <= 1 << 15
    assert np.concatenate(parts).tobytes() == source.collect(["x"]).numbers("x").tobytes()
    assert np.nan_to_num(np.concatenate(parts)).tolist() == [1, 0, 30] * 20_000
