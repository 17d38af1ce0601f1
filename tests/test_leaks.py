"""The leak hunt: values planted in the data must not come out of anything that can be read.

Each record carries digits, and each undeclared level letters, that occur nowhere else.  They are looked for in
results, messages, logs, warnings, pictures, pickles, ledger files and the command's output; the hunt itself is tested
on planted leaks.
"""

import gc
import logging
import os
import pickle
import struct
import traceback
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.core import progress
from dpcausal.errors import DpCausalError, HiddenAnswerError
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity
from dpcausal.result import Result
from tests import voices
from tests.commands import command
from tests.data.conftest import BACKENDS
from tests.direction.neighbours import spelled

ROWS = 16
X = np.array([10 + 5 * k + 0.7319024658 for k in range(ROWS)])
Y = np.array([97 - X[k] + 0.4410927735 * (-1) ** k for k in range(ROWS)]).round(10)
X[3], Y[5] = 9731902465.8, -44109277.35  # out of bounds
Z = [f"ZephyrQuill{k}" for k in range(ROWS)]
TABLE = pa.table({"x": X, "y": Y, "z": Z, "w": Z})
SCHEMA = dpc.Schema({"x": dpc.Bounded(0, 100), "y": dpc.Bounded(0, 100), "z": dpc.Levels(["no", "yes"])})

NUMBERS = [float(value) for value in (*X, *Y)]
LETTERS = ["zephyrquill", "7319024", "4410927", *{repr(value)[:9] for value in NUMBERS}]
BYTES = [struct.pack(order, value) for value in NUMBERS for order in ("<d", ">d")]


def leaks(seen: str | bytes) -> list[str]:
    """Return the planted values that occur in a text or in bytes."""
    raw = seen.encode("utf-8", "surrogatepass") if isinstance(seen, str) else seen
    small = raw.lower()
    found = [token for token in LETTERS if token.encode() in small or token.encode("utf-16-le") in small]
    return found + [value.hex() for value in BYTES if value in raw]


def clean(seen: Iterable[str | bytes]) -> None:
    for one in seen:
        assert not leaks(one), (leaks(one), one[:300])


def drawn(ax: Any) -> Iterator[str]:
    """Yield all that a picture holds: texts, and the coordinates of lines and patches."""
    for artist in ax.figure.findobj():
        for name in ("get_text", "get_label", "get_gid", "get_url"):
            if hasattr(artist, name):
                yield str(getattr(artist, name)())
        for name in ("get_data", "get_offsets", "get_xy", "get_array"):
            if hasattr(artist, name):
                points = np.atleast_1d(np.ma.filled(np.ma.asarray(getattr(artist, name)(), dtype=object), "")).ravel()
                yield " ".join(map(repr, points.tolist()))
        if hasattr(artist, "get_path"):
            yield repr(artist.get_path().vertices.tolist())


def shown(result: Result) -> list[str | bytes]:
    """Return all forms in which a result can be read."""
    pickles = [pickle.dumps(result, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    texts = [repr(result), str(result), result.summary(), result.to_json(), str(result.to_dict())]
    return [*texts, *pickles, *drawn(result.plot()), result.to_frame().to_csv(), repr(vars(result))]


class Ears(voices.Ears):
    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(f"{record.getMessage()} {record.args} {record.exc_text} {record.__dict__}")


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    # A compiler that runs while all loggers speak would write millions of lines.
    for score in ("hsic", "kendall"):
        ask(made(TABLE), score="hsic")
        ask(made(TABLE, protect="test"), score=score, protect="test").plot()


@pytest.fixture
def quiet(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Listen to all loggers, warnings and both streams; at the end none has said a planted value."""
    ears = Ears()
    loggers = [logging.root, *(one for one in logging.root.manager.loggerDict.values() if hasattr(one, "handlers"))]
    levels = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        if logger is logging.root or not logger.propagate:
            logger.addHandler(ears)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        logging.getLogger("dpcausal.test").debug("the ears are open")
        yield
    for logger, level in levels:
        logger.setLevel(level)
        logger.removeHandler(ears)
    assert any("the ears are open" in line for line in ears.heard)
    clean(ears.heard)
    assert not [str(one.message) for one in caught]
    clean(capfd.readouterr())


def made(frame: Any, ledger: dpc.Ledger | None = None, protect: str = "everyone", **arguments: Any) -> dpc.Table:
    return dpc.Table(
        frame, SCHEMA, ledger or dpc.Ledger.in_memory(dpc.ApproxDP(20, 0.5), protect=protect), **arguments,
        missing="impute",
    )


def ask(table: dpc.Table, **arguments: Any) -> dpc.Direction:
    with dpc.simulated_noise(3):
        return dpc.direction(table, "x", "y", **({"loss": dpc.PureDP(1)} | spelled(arguments)))


SCORES = ("hsic", "lsnm")
OF_HALVES = ("hsic", "spearman", "kendall", "iqr")
CALLS: list[dict[str, Any]] = [
    *({"score": score} for score in SCORES),
    *({"score": score, "protect": "test"} for score in OF_HALVES),
    *({"score": score, "protect": "test", "release_scores": True} for score in OF_HALVES[:3]),
    *({"score": score, "protect": "test", "published": True} for score in OF_HALVES[:3]),
    {"score": "iqr", "protect": "test", "published": True, "accept_unproven": True,
     "loss": dpc.ApproxDP(1, 0.1)},
    {"score": "iqr", "protect": "test", "method": dpc.papers.AnmTestPrivacyIqr(constants="corrected"),
     "loss": dpc.ApproxDP(1, 0.1)},
    *({"score": score, "protect": "training", "penalty": 0.5} for score in ("hsic", "iqr")),
    {"score": "iqr", "protect": "training", "release_scores": True},
    {"score": "hsic", "protect": "training", "published": True},
    {"score": "kendall", "protect": "training", "published": True, "loss": dpc.ApproxDP(1, 0.1)},
    *({"score": score, "loss": dpc.NoPrivacy()} for score in SCORES),
]  # fmt: skip
"""Every way to ask for a direction."""

MANY: list[dict[str, Any]] = [
    {"scores": ["hsic", "lsnm"]},
    {"scores": ["spearman", "kendall"], "protect": "test", "shares": {"kendall": 3}},
    {"scores": ["hsic"], "alpha": 0.27, "loss": dpc.ZCDP(0.5)},
    {"scores": ["hsic", "lsnm"], "loss": dpc.NoPrivacy()},
]
"""Ways to ask for several directions."""


def run_many(table: dpc.Table, **arguments: Any) -> dpc.DirectionSet:
    with dpc.simulated_noise(3):
        return dpc.direction_all(table, [("x", "y")], **({"loss": dpc.PureDP(1)} | spelled(arguments)))


# ------------------------------------------------------------------------------------------ results


@pytest.mark.parametrize("backend", sorted(BACKENDS))
@pytest.mark.parametrize("protect", ["everyone", "test"])
def test_nothing_planted_comes_out_of_a_result(backend: str, protect: str, tmp_path: Path, quiet: None) -> None:
    table = made(BACKENDS[backend](TABLE, tmp_path), protect=protect)
    result = ask(table, score="hsic", protect=protect)
    clean(shown(result))
    clean([repr(table), str(table), repr(table.ledger), repr(table.schema), repr(table.ledger.entries())])
    cleaned = table.columns(["x", "z"])
    assert np.isin(X[X < 100], cleaned["x"]).all()  # the planted values were there to be found


def named(call: dict[str, Any]) -> str:
    return " ".join(str(value) for value in call.values())


@pytest.mark.parametrize(("call", "terminal"), [*product(CALLS, [False]), *product(MANY, [False, True])], ids=str)
def test_nothing_planted_comes_out_of_any_way_to_ask_and_no_result_leads_to_data(
    call: dict[str, Any], terminal: bool, monkeypatch: pytest.MonkeyPatch, quiet: None
) -> None:
    if terminal:  # what is shown there is heard by ``quiet`` like all else
        monkeypatch.setattr(progress, "is_terminal", lambda: True)
    exact = isinstance(call.get("loss"), dpc.NoPrivacy)
    table = made(TABLE, dpc.Ledger.without_privacy() if exact else None, call.get("protect", "everyone"))
    result = (run_many if "scores" in call else ask)(table, **call)
    clean(shown(result))
    clean([repr(table.ledger.entries()), repr(getattr(result, "arrows", ""))])
    assert not holds_data(result) and not holds_data(vars(result))


def test_nothing_planted_is_in_the_files_of_a_ledger(tmp_path: Path, quiet: None) -> None:
    with dpc.Ledger.create(tmp_path / "study.ledger", budget=dpc.ApproxDP(20, 0.5)) as ledger:
        for call in ({"score": "hsic"}, {"score": "lsnm"}):
            result = dpc.direction(made(TABLE, ledger), "x", "y", loss=dpc.PureDP(1), **call)  # type: ignore[arg-type]
            clean(shown(result))
        clean(shown(dpc.direction_all(made(TABLE, ledger), scores=["hsic", "lsnm"], loss=dpc.PureDP(1))))
        clean(file.read_bytes() for file in tmp_path.iterdir())  # with its log, while it is open
        clean(str(entry.to_dict()) for entry in ledger.entries())
    files = list(tmp_path.iterdir())
    assert files
    clean(file.read_bytes() for file in files)
    assert any(b"hsic" in file.read_bytes() for file in files)


# -------------------------------------------------------------------------------- the object graph


def reached(start: Any) -> list[Any]:
    """Return all objects that an object leads to, through anything but classes, modules and functions."""
    code = type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType
    seen: dict[int, Any] = {}
    left = [start]
    while left:
        one = left.pop()
        if id(one) not in seen and not isinstance(one, code):
            seen[id(one)] = one
            left.extend(gc.get_referents(one))
    return list(seen.values())


def holds_data(start: Any) -> list[str]:
    """Return the types of objects behind ``start`` that hold data, or could."""
    live = types.FrameType, types.TracebackType, dpc.Table, dpc.Ledger, Query, PublicGenerator
    frames = np.ndarray, pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.Table, duckdb.DuckDBPyRelation
    found = []
    for one in reached(start):
        long = isinstance(one, (list, tuple, set, dict, bytes)) and not isinstance(one, str) and len(one) >= ROWS
        planted = isinstance(one, float) and one in NUMBERS
        if isinstance(one, (*live, *frames)) or planted or (long and type(one) is not dict):
            found.append(type(one).__name__)
    return found


@pytest.mark.parametrize("call", [*CALLS[:12], *MANY[:3]], ids=named)
def test_the_arrays_are_gone_when_the_table_is(call: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    gc.freeze()  # what other tests left need not be gone through
    alive: list[weakref.ref[Any]] = []
    rows = dpc.Table.rows

    def watched(table: dpc.Table, names: Iterable[str]) -> Any:
        answer = rows(table, names)
        alive.extend(weakref.ref(array) for array in answer.values.values())
        return answer

    monkeypatch.setattr(dpc.Table, "rows", watched)
    raw = {"x": X.copy(), "y": Y.copy(), "z": np.array(Z)}
    alive.append(weakref.ref(raw["x"]))
    table = made(raw, protect=call.get("protect", "everyone"))
    del raw
    result = (run_many if "scores" in call else ask)(table, **call)
    del table
    gc.collect()
    assert len(alive) == 3
    assert [one() for one in alive] == [None] * 3  # no cache, closure or traceback keeps them
    assert result.n == ROWS


# ------------------------------------------------------------------------------------------- errors


class Talkative(np.ndarray):
    """An array that quotes its values when it is read."""

    def __array_finalize__(self, obj: Any) -> None:
        pass

    def __getitem__(self, place: Any) -> Any:
        raise ValueError(f"cannot read {Z[0]} and {X[0]}")


def ragged(path: Path) -> Path:
    file = path / "ragged.csv"
    file.write_text("x,y,z\n" + "".join(f"{X[k]},{Y[k]},{Z[k]}{',' * (k == 9)}\n" for k in range(ROWS)))
    return file


def broken_parquet(path: Path) -> Path:
    file = BACKENDS["parquet"](TABLE, path)
    raw = file.read_bytes()
    file.write_bytes(raw[: len(raw) // 2] + raw[-400:])
    return file


def read(frame: Any, schema: dpc.Schema = SCHEMA) -> Any:
    table = dpc.Table(frame, schema, dpc.Ledger.in_memory(dpc.PureDP(50), accept_large_epsilon=True), missing="impute")
    return table.columns(schema.names)


def lazy_polars(path: Path) -> Any:
    return pl.from_arrow(TABLE).lazy().with_columns(x=pl.col("w").cast(pl.Float64))  # strict: quotes the values


def lazy_duckdb(path: Path) -> Any:
    return duckdb.connect().from_arrow(TABLE).project("cast(w as double) as x, y, z")


FAILURES: dict[str, Callable[[Path], Any]] = {
    "text that is to be bounded": lambda path: read(TABLE, dpc.Schema({"w": dpc.Bounded(0, 1)})),
    "objects that are to be bounded": lambda path: read(
        {"w": np.array(Z, object)}, dpc.Schema({"w": dpc.Bounded(0, 1)})
    ),
    "numbers that are to be levels": lambda path: read(TABLE, dpc.Schema({"x": dpc.Levels(["a"])})),
    "categories that are to be bounded": lambda path: read(
        pd.DataFrame({"w": pd.Categorical(Z)}), dpc.Schema({"w": dpc.Bounded(0, 1)})
    ),
    "an enum that is to be bounded": lambda path: read(
        pl.DataFrame({"w": pl.Series(Z, dtype=pl.Enum(Z))}), dpc.Schema({"w": dpc.Bounded(0, 1)})
    ),
    "a column that is absent": lambda path: read(TABLE, dpc.Schema({"v": dpc.Bounded(0, 1)})),
    "records of unequal length": lambda path: read(ragged(path)),
    "half a file": lambda path: read(broken_parquet(path)),
    "a cast in polars": lambda path: read(lazy_polars(path)),
    "a cast in DuckDB": lambda path: read(lazy_duckdb(path)),
    "an array that talks": lambda path: read({"x": X, "y": Y, "z": np.array(Z, object).view(Talkative)}),
    "too many rows": lambda path: made(TABLE, max_rows=3),
    "a budget too small": lambda path: ask(made(TABLE), loss=dpc.PureDP(60), accept_large_epsilon=True),
    "the table as the column": lambda path: dpc.direction(made(TABLE), TABLE, "y", loss=dpc.PureDP(1)),  # type: ignore[arg-type]
    "a pandas column as the column": lambda path: dpc.direction(
        made(TABLE), "x", TABLE.to_pandas()["y"], loss=dpc.PureDP(1)  # type: ignore[arg-type]
    ),
    "an array among names": lambda path: made(TABLE).columns([X.tobytes(), X]) or None,  # type: ignore[list-item]
    "records as the path": lambda path: made("x,y,z\n" + "\n".join(f"{X[k]},{Y[k]},{Z[k]}" for k in range(ROWS))),
    "a long record as the path": lambda path: made(",".join(Z * 40) + ".csv"),
    "values as keys": lambda path: made(dict.fromkeys(NUMBERS, Y)),
    "the data as the table": lambda path: dpc.direction({"x": X}, "x", "y", loss=dpc.PureDP(1)),  # type: ignore[arg-type]
    "a list as the frame": lambda path: made([X, Y]),
    "an array as the schema": lambda path: dpc.Table(TABLE, X, dpc.Ledger.in_memory(dpc.PureDP(1)), missing="impute"),  # type: ignore[arg-type]
    "an array as the loss": lambda path: ask(made(TABLE), loss=X),
    "a value as the score": lambda path: ask(made(TABLE), score=Z[0]),
    "a column of levels": lambda path: dpc.direction(made(TABLE), "x", "z", loss=dpc.PureDP(1)),
    "the data as the scores": lambda path: run_many(made(TABLE), scores=X),
    "values as a pair": lambda path: dpc.direction_all(made(TABLE), [(X[0], Y[0])], loss=dpc.PureDP(1)),  # type: ignore[list-item]
    "the data as the pairs": lambda path: dpc.direction_all(made(TABLE), TABLE, loss=dpc.PureDP(1)),  # type: ignore[arg-type]
    "values as shares": lambda path: run_many(made(TABLE), shares={"hsic": Z[0]}),
    "shares of values": lambda path: run_many(made(TABLE), shares={X[0]: 1}),
    "a value as the level": lambda path: run_many(made(TABLE), alpha=X[0]),
    "no consent": lambda path: ask(made(TABLE, protect="test"), score="iqr", protect="test", published=True),
    "a pickled table": lambda path: pickle.dumps(made(TABLE)),
    "a query that is not finite": lambda path: Query(np.append(X, np.nan), claim(), "step"),
    "a pickled query": lambda path: pickle.dumps(Query(X, claim(), "step")),
    "simulated noise and a file": lambda path: ask(
        made(TABLE, dpc.Ledger.create(path / "a.ledger", budget=dpc.PureDP(1)))
    ),
    "bounds from the data": lambda path: dpc.Bounded(X, Y),  # type: ignore[arg-type]
    "levels that are an array of numbers": lambda path: dpc.Levels(X),
}
"""Calls that must fail, with planted values within reach of the message."""


def claim() -> Sensitivity:
    return Sensitivity(1.0, Norm.L1, Relation.REPLACE_ONE, "laplace")


def chain(error: BaseException) -> list[BaseException]:
    """Return an error with all that it came from, suppressed or not."""
    found: list[BaseException] = []
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None and one not in found:
            found.append(one)
            left += [one.__cause__, one.__context__]
    return found


@pytest.mark.parametrize("failure", sorted(FAILURES))
def test_nothing_planted_comes_out_of_an_error(failure: str, tmp_path: Path, quiet: None) -> None:
    with pytest.raises(DpCausalError) as caught:
        FAILURES[failure](tmp_path)
    for error in chain(caught.value):
        clean([str(error), repr(error), repr(error.args), repr(vars(error)), repr(getattr(error, "__notes__", ""))])
    text = "".join(traceback.format_exception(caught.value))
    clean([text, pickle.dumps(caught.value)])


PLANTED = np.full(300, 7319024.25)
TEST: dict[str, Any] = {"x": "a", "y": "b", "given": [], "loss": dpc.PureDP(1)}
EFFECT: dict[str, Any] = {"treatment": "a", "outcome": "y", "adjust": [], "loss": dpc.PureDP(1)}
SLIPS: dict[str, Callable[[dpc.Table, Any], Any]] = {  # a column or frame is given for an argument
    **{name: lambda t, slip, name=name: dpc.ci_test(t, **TEST | {name: slip})  # alfa: a typing error; blocks: an option
       for name in ("alpha", "x", "loss", "method", "alfa", "blocks")},
    "blocks of a method": lambda t, slip: dpc.ci_test(t, **TEST, method=dpc.methods.Gcm(slip)),
    "table": lambda t, slip: dpc.ci_test(slip, **TEST),
    "coverage": lambda t, slip: dpc.effect(t, coverage=slip, **EFFECT),
    "treated": lambda t, slip: dpc.effect(t, treated=slip, control=0, **EFFECT),
    "by": lambda t, slip: dpc.cells(t, by=slip, loss=dpc.PureDP(1)),
    "at_least": lambda t, slip: t.where("y", at_least=slip),
    "missing": lambda t, slip: dpc.Table({}, t.schema, t.ledger, missing=slip),
    "name": lambda t, slip: dpc.Table({}, t.schema, t.ledger, name=slip),
    "budget": lambda t, slip: dpc.Ledger.in_memory(slip),
}  # fmt: skip


@pytest.mark.parametrize("slip", [
    PLANTED, PLANTED.tolist(), tuple(PLANTED.tolist()), pd.Series(PLANTED), pd.DataFrame({"amounts": PLANTED}),
    {"nobody": PLANTED}, PLANTED.tobytes(),
], ids=lambda slip: type(slip).__name__)  # fmt: skip
@pytest.mark.parametrize("argument", SLIPS)
def test_an_error_holds_no_column_that_was_given_for_an_argument(argument: str, slip: Any) -> None:
    """Seen to fail: errors held the value that was wrong, so a pickled one held the column."""
    schema = dpc.Schema({"a": dpc.Levels([0, 1]), "b": dpc.Levels([0, 1]), "y": dpc.Bounded(0, 1)})
    frame = {"a": np.tile([0, 1], 150), "b": np.repeat([0, 1], 150), "y": PLANTED}
    with pytest.raises(DpCausalError) as caught:
        SLIPS[argument](dpc.Table(frame, schema, dpc.Ledger.in_memory(dpc.PureDP(1))), slip)
    shown = [str(caught.value), repr(vars(caught.value)), pickle.dumps(caught.value)]
    numbers = [struct.pack(order, PLANTED[0]) for order in ("<d", ">d")]
    assert not any("7319024" in one if isinstance(one, str) else any(part in one for part in numbers) for one in shown)


def test_the_back_ends_would_have_told() -> None:
    with pytest.raises(pl.exceptions.InvalidOperationError) as polars:
        lazy_polars(Path()).collect()
    with pytest.raises(duckdb.ConversionException) as duck:
        lazy_duckdb(Path()).fetchall()
    assert leaks(str(polars.value))
    assert leaks(str(duck.value))


def test_nothing_with_data_can_be_pickled() -> None:
    table = made(TABLE)
    for one in (table, table.ledger, Query(X, claim(), "step")):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(HiddenAnswerError):
                pickle.dumps({"inside": [one]}, protocol)


# ------------------------------------------------------------------------------------------ command


@pytest.mark.parametrize("backend", ["csv", "parquet"])
@pytest.mark.parametrize("json", [[], ["--json"]], ids=["text", "json"])
def test_nothing_planted_comes_out_of_the_command(backend: str, json: list[str], tmp_path: Path, quiet: None) -> None:
    broken = broken_parquet(tmp_path).rename(tmp_path / "broken.parquet")
    data = str(BACKENDS[backend](TABLE, tmp_path))
    schema, ledger, half = tmp_path / "schema.toml", tmp_path / "study.ledger", tmp_path / "half.ledger"
    schema.write_text('[x]\nlower = 0\nupper = 100\n[y]\nlower = 0\nupper = 100\n[z]\nlevels = ["no", "yes"]\n')
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('[x]\nlevels = [1]\n[w]\nlower = 0\nupper = 100\n[y]\nlower = 0\nupper = 1\n')
    asked = ["--ledger", str(ledger), "--epsilon", "1", "--score", "hsic", *json]
    ask_first = ["direction", data, "x", "y", "--schema", str(schema), *asked]
    ask_half = [str(half) if word == str(ledger) else word for word in ask_first] + ["--method", "papers.Holdout"]
    steps: list[tuple[list[str], int]] = [
        (["ledger", "create", str(ledger), "--epsilon", "1.5"], 0),
        (["ledger", "create", str(half), "--epsilon", "1", "--protect", "test"], 0),
        (ask_first, 0),
        (ask_half, 2),  # which leaves out no row
        ([*ask_half, "--missing", "impute"], 0),
        ([*ask_first, "--method", "papers.Holdout", "--missing", "impute"], 2),  # the ledger protects all rows
        (["direction-all", data, *ask_first[4:6], *asked[:2], "--epsilon", "0.25", "--scores", "lsnm", *json], 0),
        (["direction-all", data, *ask_first[4:6], *asked[:2], "--epsilon", "0.25", "--pair", "x,z", *json], 2),
        (ask_first, 3),
        (["direction", data, "x", "z", *ask_first[4:]], 2),
        (["direction", data, "w", "y", *ask_first[4:]], 2),
        (["direction", data, "x", "y", "--schema", str(wrong), *asked], 2),
        (["direction", str(ragged(tmp_path)), *ask_first[2:]], 2),
        (["ledger", "show", str(ledger), *json], 0),
        (["ledger", "show", str(ledger), "--jsonl"], 0),
        (["ledger", "verify", str(ledger)], 0),
        (["direction", str(broken), *ask_first[2:]], 2),
    ]
    for words, code in steps:
        done = command(*words)
        assert done.exit_code == code, (words, done.output)
        clean([done.stdout, done.stderr, repr(done.exception)])


# ------------------------------------------------------------------------------------ the hunt itself


def test_the_hunt_finds_what_is_planted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = ask(made(TABLE, protect="test"), score="spearman", protect="test")
    assert not holds_data(result)
    for planted in (X, list(X), float(X[2]), made(TABLE), TABLE):
        object.__setattr__(result, "scores", planted)
        assert holds_data(result), type(planted)
    object.__setattr__(result, "scores", (float(X[2]), 0.0))
    assert sum(bool(leaks(form)) for form in shown(result)) >= 10
    ax = ask(made(TABLE), score="hsic").plot()
    ax.plot([0, 1], [X[0], X[1]])
    assert any(leaks(text) for text in drawn(ax))
    for text in (f"value {X[4]} is too large", f"{X[3]:.3f}", Z[2].upper(), struct.pack("<d", Y[1]), f"{Z[1]!r}"):
        assert leaks(text)
    assert not leaks("column 'x' is wrong")
    os.write(1, Z[0].encode())
    assert leaks(capfd.readouterr().out)
