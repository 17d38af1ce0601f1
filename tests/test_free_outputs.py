"""A search over neighbours through everything that costs nothing: plans, prints, errors, checks of panels, commands.

What is free must be one text for two data sets that differ in one record, however hostile the record.  Two planted
leaks show that the search can fail.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import DpCausalError
from dpcausal.privacy.noise import generator_from_seed
from tests.commands import command
from tests.synthetic_control.neighbours import plan_of

PERIODS, DONORS, ROWS = 8, 24, 120
HOSTILE_SERIES = (
    np.full(PERIODS, np.nan), np.full(PERIODS, np.inf), np.full(PERIODS, -1e300), np.full(PERIODS, 0.5),
    np.r_[np.nan, np.linspace(0, 1, PERIODS - 1)], np.r_[np.zeros(PERIODS - 1), 9e9],
)  # fmt: skip
HOSTILE_ROWS = (
    ("", "", "", ""), ("1", "0", "1e400", "p"), ("nan", "inf", "-inf", "p0"),
    ("\x1b[31m", "'\x00'", "\u202e", "=cmd()"),
    ("0" * 5000, "0,5", "2020-01-01", "p" * 9000), ('"', '""', ";", "\t"), ("\udcfc", "\udcff", "\udc80", "\udcfc"),
)  # fmt: skip


def said(call: Callable[[], Any]) -> str:
    """Return what a call shows: its result as printed and as JSON, or its error with the class."""
    try:
        found = call()
    except DpCausalError as error:
        return f"{type(error).__name__}: {error}"
    more = found.to_json() if hasattr(found, "to_json") else ""
    return f"{found!r} {found} {more}"


def without_names(text: str) -> str:
    """Return a text without hashes of a ledger that was made anew, and without the minute."""
    return re.sub(r"[0-9a-f]{32,64}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d", "", text)


def of_panels(series: np.ndarray[Any, Any]) -> list[str]:
    """Return all that panels of a frame show for nothing, of a ledger that protects its units; unit 0 is the target."""
    ledger = dpc.Ledger.in_memory(dpc.ApproxDP(4, 1e-6), unit="id")
    units, periods = np.repeat(np.arange(len(series)), PERIODS), np.tile(np.arange(PERIODS), len(series))
    frame = {"id": units, "t": periods, "y": series.ravel()}
    there = ~np.isnan(series.ravel()) | (periods == 0)  # a replaced donor keeps its name
    lacking = {name: column[there] for name, column in frame.items()}
    rest: dict[str, Any] = {"unit": "id", "time": "t", "outcome": "y", "ledger": ledger}
    wide, narrow = dpc.Bounded(0, 1), dpc.Bounded(0.4, 0.6)

    def made(target: Any, **more: Any) -> dpc.Panel:
        return dpc.Panel(frame, **{**rest, "target": target, "start": 5, "bounds": wide} | more)

    def plans(panel: dpc.Panel) -> Iterator[str]:
        for method in ("auto", "matched", "factor", "output-perturbation", "objective-perturbation"):
            for loss in (dpc.PureDP(1), dpc.ZCDP(0.1), dpc.ApproxDP(1, 1e-7)):
                yield said(lambda m=method, x=loss: plan_of(panel, loss=x, method=m))
        yield said(lambda: plan_of(panel, loss=dpc.PureDP(1), start=4))
        yield said(lambda: dpc.synthetic_control(panel, loss=dpc.PureDP(1e-6)))
        yield said(lambda: dpc.synthetic_control(panel, loss=dpc.PureDP(5), inference=False))
        yield said(lambda: panel.before_treatment(7))

    told = []
    first = made(0)
    told += [repr(first), str(first.identity), *plans(first)]
    for target in range(1, len(series)):
        for more in ({}, {"bounds": narrow}, {"start": 1}, {"start": 99}, {"treated": [target, 0]}, {"times": [0, 1]}):
            told.append(said(lambda t=target, m=more: made(t, **m)))
        told.append(said(lambda t=target: dpc.Panel(lacking, **rest, target=t, start=5, bounds=wide)))
        told.append(said(lambda t=target: dpc.Panel.from_arrays(
            np.delete(series, t, axis=0), series[t], start=5, bounds=wide, ledger=ledger, unit="id")))
    arrays = dpc.Ledger.in_memory(dpc.PureDP(4), unit="unit")
    for target in range(len(series)):  # the first declares: any other series may be a donor's
        for bounds, start in ((wide, 5), (narrow, 5), (wide, 1)):
            told.append(said(lambda t=target, b=bounds, s=start: plan_of(dpc.Panel.from_arrays(
                np.delete(series, t, axis=0), series[t], start=s, bounds=b, ledger=arrays), loss=dpc.PureDP(1))))
    told.append(said(lambda: made([0, 1])))
    told.append(repr(ledger) + str(ledger.entries()))
    rows = dpc.Ledger.in_memory(dpc.ApproxDP(4, 1e-6))
    return [*told, said(lambda: made(3, ledger=rows)), said(lambda: made(0, ledger=rows))]


QUESTIONS = """[[question]]
name = "one"
task = "ci_test"
x = "a"
y = "b"
given = ["u"]
epsilon = 0.5
where = "u >= 1"
[[question]]
name = "two"
task = "effect"
treatment = "a"
outcome = "u"
adjust = ["b"]
epsilon = 0.25
[[question]]
name = "beyond"
task = "discover"
epsilon = 50
accept_large_epsilon = true
[[question]]
name = "cannot"
task = "direction"
x = "a"
y = "nobody"
epsilon = 0.1
"""
HEAD = """title = "t"
data = "d.csv"
ledger = "s.ledger"
budget = { epsilon = 1.0, delta = 1e-6 }
PERSON
columns = { a = { levels = [0, 1] }, b = { levels = ["no", "yes"] }, u = { lower = 0, upper = 5, cuts = [1, 2] } }
"""


SCHEMA = '[a]\nlevels = [0, 1]\n[b]\nlevels = ["no", "yes"]\n[u]\nlower = 0\nupper = 5\n'
COMMANDS = (
    "plan s.toml --no-accuracy", "plan s.toml --no-accuracy --json", "run s.toml", "run s.toml --new-ledger",
    "report s.toml", "init d.csv --out s.toml", "init d.csv --out no/s.toml",
)  # fmt: skip


def of_files(rows: list[tuple[str, ...]], folder: Path) -> list[str]:
    """Return all that the commands and a study of a CSV file show before anything is spent."""
    lines = ["a,b,u,id", *(",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)]
    (folder / "d.csv").write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")
    (folder / "schema.toml").write_text(SCHEMA)
    for path in folder.glob("*.ledger"):
        path.unlink()
    told = []
    for person in ("", 'person = "id"\nids = "public"'):
        (folder / "s.toml").write_text(HEAD.replace("PERSON", person) + QUESTIONS)
        told += [command(*words.split()).output for words in COMMANDS]
        told += [said(lambda: dpc.Study.open("s.toml")), said(lambda: dpc.Study.open("s.toml").plan(accuracy=False))]
    ledger = dpc.Ledger.create(folder / "l.ledger", budget=dpc.PureDP(1))
    schema = dpc.Schema.from_toml("schema.toml")
    table = dpc.Table("d.csv", schema, ledger, name="d")
    told += [repr(table), str(table.declared), repr(table.where("u", at_least=2))]
    for more in ({"person": "nobody"}, {"missing": "level"}, {"max_rows": 5}, {"weight": ("u", 0.0)}):
        told.append(said(lambda m=more: dpc.Table("d.csv", schema, ledger, **m)))
    for call in (
        lambda: dpc.ci_test(table, "a", "b", given=[], loss=dpc.PureDP(2)),
        lambda: dpc.ci_test(table, "a", "nobody", given=[], loss=dpc.PureDP(1)),
        lambda: dpc.effect(table, treatment="u", outcome="a", adjust=[], loss=dpc.PureDP(1)),
        lambda: dpc.effect(table, treatment="a", outcome="u", adjust=[], loss=dpc.ZCDP(0.1)),
        lambda: dpc.discover(table, method="nothing", loss=dpc.PureDP(1)),
        lambda: dpc.cells(table, by=["a"], values=["b"], loss=dpc.PureDP(9)),
        lambda: dpc.did(table, time="a", outcome="u", cohort="b", loss=dpc.PureDP(1)),
        lambda: dpc.discontinuity(table, running="u", cutoff=99, outcome="a", loss=dpc.PureDP(1)),
    ):  # fmt: skip
        told.append(said(call))
    for words in (["ledger", "show", "l.ledger"], ["ledger", "verify", "l.ledger"],
                  ["ci-test", "d.csv", "a", "b", "--schema", "schema.toml", "--ledger", "l.ledger", "--epsilon", "7"],
                  ["ci-test", "d.csv", "a", "b", "--schema", "schema.toml", "--ledger", "l.ledger", "--where", "u >= 9",
                   "--epsilon", "0.1"]):  # fmt: skip
        told.append(command(*words).output)
    assert not ledger.entries()
    return [without_names(text) for text in told]


def first_difference(ones: list[str], others: list[str]) -> str:
    assert len(ones) == len(others) > 20
    return next((f"{one}\n{other}" for one, other in zip(ones, others, strict=True) if one != other), "")


def search_of_panels(pairs: int) -> str:
    coins = generator_from_seed(7)
    series = np.clip(coins.random((DONORS + 1, PERIODS)), 0.01, 0.99)
    base = of_panels(series)
    hostile = [*HOSTILE_SERIES, *coins.random((pairs, PERIODS)) * 3 - 1]
    for number, row in enumerate(hostile):
        other = series.copy()
        other[1 + number % DONORS] = row
        if found := first_difference(base, of_panels(other)):
            return found
    return ""


def search_of_files(pairs: int, folder: Path) -> str:
    coins = generator_from_seed(8)
    rows = [(str(coins.integers(2)), ("no", "yes")[coins.integers(2)], f"{coins.random() * 5:.3f}", f"p{k}")
            for k in range(ROWS)]  # fmt: skip
    base = of_files(rows, folder)
    for number in range(len(HOSTILE_ROWS) + pairs):
        place, other = int(coins.integers(ROWS)), list(rows)
        row = HOSTILE_ROWS[number] if number < len(HOSTILE_ROWS) else rows[int(coins.integers(ROWS))]
        other[place] = (*row[:3], rows[place][3])  # with public ids a person stays
        if found := first_difference(base, of_files(other, folder)):
            return found
    return ""


def test_nothing_free_of_a_panel_tells_a_donor() -> None:
    assert search_of_panels(pairs=3) == ""


def test_nothing_free_of_a_table_or_study_tells_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert search_of_files(pairs=2, folder=tmp_path) == ""


def test_the_search_finds_planted_leaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A panel that looks before its ledger has declared the target, as it did; a print that counts what is missing."""
    with monkeypatch.context() as patched:
        patched.setattr(dpc.Ledger, "declare", lambda *_, **__: None)
        assert search_of_panels(pairs=0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dpc.Table, "__repr__", lambda self: f"Table({self.rows(['u']).included.sum()} rows with u)")
    assert search_of_files(pairs=0, folder=tmp_path)


def test_a_plan_of_a_panel_declares_its_target_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fresh ledger and each unit a target in turn, plans alone would tell every series."""
    monkeypatch.chdir(tmp_path)
    coins = generator_from_seed(9)
    rows = [f"{unit},{time},{coins.random():.4f}" for unit in range(30) for time in range(8)]
    Path("p.csv").write_text("\n".join(["unit,time,y", *rows]))
    text = (
        'title = "t"\ndata = "p.csv"\nledger = "p.ledger"\nbudget = { epsilon = 1.0 }\n[panel]\nunit = "unit"\n'
        'time = "time"\noutcome = "y"\ntarget = "TARGET"\nstart = 5\nbounds = { lower = LOWER, upper = 1 }\n'
        '[[question]]\nname = "q"\ntask = "synthetic_control"\nepsilon = 1.0\n'
    )

    def study(target: str, lower: float = 0.0) -> dpc.Study:
        Path("p.toml").write_text(text.replace("TARGET", target).replace("LOWER", str(lower)))
        return dpc.Study.open("p.toml")

    for call in (lambda: study("3").plan(), lambda: study("3", 0.9).plan(), lambda: study("3").report()):
        with pytest.raises(dpc.errors.LedgerError):
            call()
    assert not Path("p.ledger").exists()
    ledger = dpc.Ledger.create("p.ledger", budget=dpc.PureDP(1), unit="unit")
    assert study("3").plan(accuracy=False).n == 29
    assert ledger.declared["targets of panels"] == ["3"] and len(ledger.declared) == 2 and not ledger.entries()
    before = Path("p.ledger").read_bytes()
    for lower in (0.0, 0.9):
        for call in (lambda x=lower: study("4", x).plan(), lambda x=lower: study("4", x).run()):
            with pytest.raises(dpc.errors.LedgerError):
                call()
    study("3").plan(accuracy=False)
    assert Path("p.ledger").read_bytes() == before and ledger.verify().ok
    Path("p.ledger").unlink()
    with pytest.raises(DpCausalError):
        study("5", 0.9).run(new_ledger=True)
    with pytest.raises(dpc.errors.LedgerError):
        study("6", 0.9).run(new_ledger=True)
