"""A cached result goes to the data that it was made from, as far as public facts tell them."""

import gc
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpcausal as dpc
from dpcausal.core import cache
from dpcausal.data.sources.origin import Origin
from dpcausal.errors import LedgerError, SchemaError
from dpcausal.privacy.noise import generator_from_seed
from tests.data.conftest import BACKENDS

SCHEMA = dpc.Schema({"a": dpc.Levels([0, 1]), "b": dpc.Levels([0, 1])})
LOSS = dpc.PureDP(0.5)
CALLS: dict[str, Any] = {
    "ci_test": lambda t, **w: dpc.ci_test(t, "a", "b", given=[], loss=LOSS, **w),
    "ci_tests": lambda t, **w: dpc.ci_tests(t, [("a", "b", [])], loss=LOSS, **w),
    "cells": lambda t, **w: dpc.cells(t, by=["a"], loss=LOSS, **w),
}


def ledger() -> dpc.Ledger:
    return dpc.Ledger.in_memory(dpc.PureDP(9))


def frame(seed: int = 1, n: int = 1000) -> pd.DataFrame:
    coins = generator_from_seed(seed)
    return pd.DataFrame({"a": coins.integers(0, 2, n), "b": coins.integers(0, 2, n)})


def written(path: Path, seed: int = 1) -> Path:
    frame(seed).to_csv(path, index=False)
    return path


def table(data: Any, to: dpc.Ledger) -> dpc.Table:
    return dpc.Table(data, SCHEMA, to, name="survey")


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_a_file_that_was_written_to_is_not_given_the_answers_of_before(call: Any, tmp_path: Path) -> None:
    """Seen to fail: a new delivery under the old path was answered from the old one's records."""
    to, path = ledger(), written(tmp_path / "d.csv")
    first = call(table(path, to))
    assert call(table(path, to)).guarantee.cached
    before = path.stat()
    written(path, seed=2)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(LedgerError):
        call(table(path, to))
    assert len(to.entries()) == 1  # nothing was paid unasked
    assert not call(table(path, to), refresh=True).guarantee.cached
    assert call(table(path, to)).guarantee.cached.startswith("spend 2")
    assert first.guarantee.cached == ""


def test_one_file_under_all_of_its_names_is_the_same_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    to, path = ledger(), written(tmp_path / "d.csv")
    CALLS["cells"](table(path, to))
    (tmp_path / "link.csv").symlink_to("d.csv")
    (tmp_path / "hard.csv").hardlink_to(path)
    monkeypatch.chdir(tmp_path)
    for name in ("d.csv", "./d.csv", "../" + tmp_path.name + "/d.csv", "link.csv", "hard.csv", tmp_path / "d.csv"):
        assert CALLS["cells"](table(name, to)).guarantee.cached
    (tmp_path / "d.csv").rename("moved.csv")
    assert CALLS["cells"](table("moved.csv", to)).guarantee.cached


def test_a_link_that_was_swapped_and_a_copy_are_other_data(tmp_path: Path) -> None:
    """Seen to fail: the swapped file was never looked at."""
    to, link = ledger(), tmp_path / "data.csv"
    for number in (1, 2):
        written(tmp_path / f"{number}.csv", seed=number)
    link.symlink_to("1.csv")
    CALLS["cells"](table(link, to))
    link.unlink()
    link.symlink_to("2.csv")
    shutil.copy2(tmp_path / "1.csv", tmp_path / "copy.csv")
    for other in (link, tmp_path / "copy.csv"):
        with pytest.raises(LedgerError):
            CALLS["cells"](table(other, to))


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_two_frames_of_one_name_are_told_apart_in_a_process(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen to fail: another frame of the same name, schema and number of rows was given the first one's answer."""
    to, own, other = ledger(), frame(), frame(seed=2)
    call(table(own, to))
    assert call(table(own, to).where("a", among=[0, 1])).guarantee.cached == ""  # a subgroup is another question
    for wrong in (other, own.copy(), {name: own[name].to_numpy() for name in own}):
        with pytest.raises(LedgerError):
            call(table(wrong, to))
    assert call(table(own, to)).guarantee.cached
    assert not call(table(other, to), refresh=True).guarantee.cached
    with pytest.raises(LedgerError):
        call(table(own, to))  # the newest answer is of the other
    monkeypatch.setattr(cache, "_frames", {})  # as in another process, which knows them by their name alone
    assert call(table(own, to)).guarantee.cached
    with pytest.raises(LedgerError):
        call(table(other, to))  # the first that it was given for


def test_a_mapping_is_known_by_its_arrays() -> None:
    to, one = ledger(), frame()
    a, b = one["a"].to_numpy(), one["b"].to_numpy()
    CALLS["cells"](table({"a": a, "b": b}, to))
    assert CALLS["cells"](table({"b": b, "a": a, "more": a}, to)).guarantee.cached
    with pytest.raises(LedgerError):
        CALLS["cells"](table({"a": a.copy(), "b": b}, to))


def test_a_frame_and_a_file_are_never_taken_for_each_other(tmp_path: Path) -> None:
    path, one = written(tmp_path / "d.csv"), frame()
    for first, second in ((path, one), (one, path)):
        to = ledger()
        CALLS["cells"](table(first, to))
        with pytest.raises(LedgerError):
            CALLS["cells"](table(second, to))


def test_arrays_that_are_read_as_they_are_asked_for_are_read_once_and_a_failure_quotes_none(tmp_path: Path) -> None:
    """Seen to fail: an error of the mapping's own, which may quote a record."""
    arrays = {name: frame()[name].to_numpy() for name in ("a", "b")}
    np.savez(tmp_path / "d.npz", **arrays)
    with np.load(tmp_path / "d.npz") as archive:
        made = table(archive, ledger())
    assert made.n == 1000 and CALLS["cells"](made).guarantee.loss == LOSS

    class Unreadable(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            raise RuntimeError("record 4711")

    with pytest.raises(SchemaError) as caught:
        table(Unreadable(arrays), ledger())
    assert "4711" not in repr(vars(caught.value)) + str(caught.value) and caught.value.__context__ is None


def test_two_openings_of_one_ledger_share_what_they_know_and_two_ledgers_do_not(tmp_path: Path) -> None:
    with dpc.Ledger.create(tmp_path / "l", budget=dpc.PureDP(2)) as to:
        CALLS["cells"](table(frame(), to))
    (tmp_path / "link").symlink_to("l")
    for name in ("l", "link"):
        with dpc.Ledger.open(tmp_path / name) as to, pytest.raises(LedgerError):
            CALLS["cells"](table(frame(), to))
    assert not CALLS["cells"](table(frame(), ledger())).guarantee.cached


def test_the_ledger_holds_nothing_of_a_file_but_its_number_and_time(tmp_path: Path) -> None:
    """A hash of records, or of how many bytes they take, could be compared with guesses at one of them."""
    path = written(tmp_path / "d.csv")
    one = table(path, ledger()).origin
    before = path.stat()
    path.write_text(path.read_text() + "1,1\n" * 50)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size != before.st_size and dpc.Table(path, SCHEMA, ledger()).origin.mark == one.mark
    to = ledger()
    CALLS["cells"](table(frame(), to))
    kept_one = to.answer(1)
    assert kept_one is not None and kept_one["data"] == ""


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_a_file_that_goes_after_its_rows_were_read_loses_no_answer(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: many tests asked the table for its ledger again, and its file was gone: paid, and no answer."""
    to, path = ledger(), written(tmp_path / "d.csv")
    whole = cache.store

    def gone(*arguments: Any) -> Any:
        path.unlink()
        return whole(*arguments)

    monkeypatch.setattr("dpcausal.core.run.store", gone)
    assert not call(table(path, to)).guarantee.cached
    assert to.answer(1) is not None


def test_a_panel_of_a_changed_file_is_not_given_the_answer_of_before(tmp_path: Path) -> None:
    coins, path, to = generator_from_seed(3), tmp_path / "p.csv", dpc.Ledger.in_memory(dpc.PureDP(9), unit="unit")
    rows = pd.DataFrame({
        "unit": np.repeat(np.arange(101), 12), "year": np.tile(np.arange(12), 101), "y": coins.random(1212),
    })  # fmt: skip

    def ask() -> Any:
        panel = dpc.Panel(path, unit="unit", time="year", outcome="y", target=0, start=9, bounds=dpc.Bounded(0, 1),
                          ledger=to, name="states")  # fmt: skip
        return dpc.synthetic_control(panel, loss=dpc.PureDP(1), force=True)

    rows.to_csv(path, index=False)
    ask()
    assert ask().guarantee.cached
    rows.loc[500, "y"] = 0.5  # one donor's
    rows.to_csv(path, index=False)
    with pytest.raises(LedgerError):
        ask()


@pytest.mark.parametrize("backend", sorted(set(BACKENDS)))
def test_a_frame_of_each_back_end_is_itself_and_no_other(backend: str, tmp_path: Path) -> None:
    one, other = (
        BACKENDS[backend](pa.table({"a": pa.array([0, 1, 0]), "b": pa.array([1, 1, 0])}), tmp_path) for _ in range(2)
    )
    if isinstance(one, (str, Path)):
        assert Origin.of(one).mark == Origin.of(one).mark != ""
        return
    own, again, second = Origin.of(one), Origin.of(one), Origin.of(other)
    assert not again.is_other(own) and second.is_other(own) and own.mark == ""
    del one
    gc.collect()
    assert second.is_other(own) and not (second.is_other(second))


def test_two_tables_of_one_database_are_told_apart(tmp_path: Path) -> None:
    """Seen to fail: the file was the same, so the second table was given the first one's answer."""
    to, path, one, two = ledger(), tmp_path / "d.duckdb", frame(), frame(seed=2)
    with duckdb.connect(str(path)) as connection:
        for name, data in (("one", one), ("two", two)):
            connection.register("given", data)
            connection.sql(f"CREATE TABLE {name} AS SELECT * FROM given")
    first, second = (f"duckdb:///{path}?table={name}" for name in ("one", "two"))
    CALLS["cells"](table(first, to))
    assert CALLS["cells"](table(first, to)).guarantee.cached
    with pytest.raises(LedgerError):
        CALLS["cells"](table(second, to))


def test_rows_that_a_database_has_only_in_its_log_make_it_other_data(tmp_path: Path) -> None:
    """Seen to fail: the log was no part of the file, so the answer of the rows before was given."""
    to, path = ledger(), tmp_path / "d.duckdb"
    url = f"duckdb:///{path}?table=t"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT (i % 2)::INT AS a, (i // 2 % 2)::INT AS b FROM range(900) AS r(i)")
    CALLS["cells"](table(url, to))
    gc.collect()  # while it is open nobody else writes to it
    size = path.stat().st_size, path.stat().st_mtime_ns
    with duckdb.connect(str(path)) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute("UPDATE t SET b = a")
    assert Path(f"{path}.wal").exists() and (path.stat().st_size, path.stat().st_mtime_ns) == size
    with pytest.raises(LedgerError):
        CALLS["cells"](table(url, to))
    assert len(to.entries()) == 1


VIEWS = {  # of a database, and whether all of their rows lie in its file
    "SELECT * FROM t": True, "SELECT a, count(*)::INT AS b FROM t GROUP BY ALL": True, "SELECT 1 AS a, 0 AS b": True,
    "SELECT t.a, u.b FROM t JOIN t AS u ON t.a = u.b": True, "FROM (VALUES (1, 0), (0, 1)) AS v(a, b)": True,
    "WITH w AS MATERIALIZED (FROM t) SELECT x.a, y.b FROM w AS x, w AS y LIMIT 9": True,
    "SELECT range AS a, 0 AS b FROM range(2)": True, "SELECT * FROM t ORDER BY b LIMIT 7": True,
    "FROM 'd.csv'": False, "FROM 'd.parquet'": False, "SELECT * FROM t UNION ALL FROM 'd.csv'": False,
    "SELECT a, (SELECT count(*) FROM 'd.csv')::INT % 2 AS b FROM t": False,
    "SELECT length(content)::INT AS a, 0 AS b FROM read_text('d.csv')": False,
    "SELECT t.a, x.b FROM t JOIN 'd.parquet' AS x ON t.a = x.a": False, "SELECT a, b FROM other": False,
}  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_other_files_is_refused_and_one_of_the_database_is_a_table(
    view: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: the file behind the view was written to, and the answer of its rows before was given."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("d.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT (i % 2)::INT AS a, (i // 2 % 2)::INT AS b FROM range(900) AS r(i)")
        for kind in ("csv", "parquet"):
            connection.execute(f"COPY t TO 'd.{kind}'")
        connection.execute("CREATE VIEW other AS FROM 'd.parquet'")
        connection.execute(f"CREATE VIEW v AS {view}")
    if VIEWS[view]:
        assert table("duckdb:///d.duckdb?table=v", ledger()).n > 0
    else:
        with pytest.raises(SchemaError):
            table("duckdb:///d.duckdb?table=v", ledger())


def test_a_panel_whose_file_changes_while_it_is_read_is_refused_unpaid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen to fail: the donors of the new file were asked with the old one's target, and kept as of the old."""
    path, to = tmp_path / "p.csv", dpc.Ledger.in_memory(dpc.PureDP(9), unit="u")
    lines = [f"{unit},{time},{(unit * 7 + time * 3) % 10}\n" for unit in range(40) for time in range(30)]
    path.write_text("u,t,y\n" + "".join(lines))
    panel = dpc.Panel(path, unit="u", time="t", outcome="y", target=1, start=25, bounds=dpc.Bounded(0, 10), ledger=to)
    own = panel._cells.donor_rows

    def changed() -> Any:
        found, before = own(), path.stat()
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
        return found

    object.__setattr__(panel, "_cells", replace(panel._cells, donor_rows=changed))
    with pytest.raises(SchemaError):
        dpc.synthetic_control(panel, loss=dpc.PureDP(8), force=True)
    assert not to.entries()
