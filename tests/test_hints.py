"""Hints are written for whoever reads them: arguments of Python, options of the command, keys of a study file."""

import ast
import copy
import inspect
import json
import pickle
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.codec import decode, encode
from dpcausal.errors import Advice, Setting, hints_in
from dpcausal.study.tasks import TASKS
from tests import factories
from tests.commands import command
from tests.study.made import question, write

SOURCE = Path(dpc.__file__).parent
PYTHON = re.compile(r"\b[a-z_]+=(?=[\w'\"\[.,;) ]|$)|\w\(\)|\b(dpc|methods)\.\w|\bTrue\b|\b(Table|Bounded|Levels)\(")
"""An argument, a call or a class, as Python has them."""
TEXT = Advice("use ", Setting("method", "aipw", {"light_tails": True}, "dpc.methods.Aipw"), " or ", Setting("person"))
SCHEMA = "".join(f"[{name}]\nlevels = [0, 1]\n" for name in "ab") + "".join(
    f"[{name}]\nlower = -4\nupper = 4\n" for name in "uv"
)
COMMANDS = (
    "ci-test d.csv u v --given a --method kendall", "discover d.csv", "direction d.csv a u --method auto",
    "effect d.csv --treatment a --outcome b --trial", "effect d.csv --treatment a --outcome c --trial",
    "effect d.csv --treatment a --outcome v --adjust u --method aipw --delta 1e-6",
    "effect d.csv --treatment a --outcome v --adjust u --method partially-linear --delta 1e-6",
    "discontinuity d.csv --running u --outcome v --cutoff 0", "ci-test d.csv a b --missing impute --method counts",
    "ci-test d.csv a b --ids public", "ci-test d.csv a b --where a>=1", "ci-test d.csv a b --where u==1",
    "ci-test d.csv u v --method gcm --regression curves", "ci-test d.csv a b --method crt",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "", n=3000)
    rows = Path("d.csv").read_text().split("\n")
    Path("d.csv").write_text("\n".join([f"{rows[0]},c", *(f"{row},{k % 3}" for k, row in enumerate(rows[1:]))]))
    Path("schema.toml").write_text(f"{SCHEMA}[c]\nlevels = [0, 1, 2]\n")
    dpc.Ledger.create("l", budget=dpc.ApproxDP(18, 1e-4)).close()


def test_a_text_with_settings_stays_one_in_the_ledger_in_a_copy_and_in_a_pickle() -> None:
    stored = json.loads(json.dumps(encode((TEXT,))))
    with hints_in("command"):
        assert encode((TEXT,)) == encode(decode(stored)) == stored  # what is stored has no language
        for one in (TEXT, decode(stored)[0], copy.deepcopy(TEXT), pickle.loads(pickle.dumps(TEXT)), Advice(TEXT)):
            assert one == TEXT and f"{one}" == "use --method aipw --light-tails or --person"
    assert str(TEXT) == TEXT == "use method=dpc.methods.Aipw(light_tails=True) or person="
    with hints_in("toml"):
        assert str(TEXT) == 'use method = { name = "aipw", light_tails = true } or person'


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("asked", COMMANDS)
def test_the_command_shows_no_argument_of_python(asked: str) -> None:
    words = (*asked.split(), "--schema", "schema.toml", "--ledger", "l", "--epsilon", "4", "--details")
    done = command(*words, "--name", "t")
    shown = [line for line in done.output.splitlines() if not line.startswith("Method ")]  # its settings, by name
    assert done.exit_code in (0, 2) and not PYTHON.search("\n".join(shown)), done.output
    if done.exit_code == 0:
        again = command(*words, "--name", "t").output  # from the ledger, whose texts have settings too
        assert set(shown) - set(again.splitlines()) <= {line for line in shown if "Privacy" in line or "head" in line}


def test_a_hint_names_the_option_the_key_or_the_argument() -> None:
    rows = dict.fromkeys("ab", np.tile([0, 1], 400))
    table = factories.table(rows, dict.fromkeys("ab", dpc.Levels([0, 1])), dpc.PureDP(9))
    result = dpc.effect(table, treatment="a", outcome="b", adjust=[], loss=dpc.PureDP(1))
    shown = {}
    for language in ("python", "toml", "command"):
        with hints_in(language):
            shown[language] = result.details()
    assert "cluster=" in shown["python"] and "cluster=" not in shown["toml"] and "--cluster" in shown["command"]


@pytest.mark.usefixtures("folder")
def test_a_study_and_its_report_name_keys_of_the_study_file() -> None:
    asked = question("rows", "effect", treatment="a", outcome="b", adjust=[], epsilon=1)
    asked += question("signs", "ci_test", x="u", y="v", given=["a"], method="kendall", epsilon=1)
    scores: Any = {"treatment": "a", "outcome": "v", "adjust": ["u"], "method": "aipw"}
    asked += question("scores", "effect", **scores, epsilon=4, delta=1e-7)
    path = write(Path(), asked, n=3000)
    planned = command("plan", path, "--verbose", "--no-accuracy").output
    ran = command("run", path, "--new-ledger").output
    assert command("report", path).exit_code == 0
    for text in (planned, ran, Path("report.md").read_text()):
        assert not PYTHON.search(text), PYTHON.search(text)
        assert "--person" not in text and "--cluster" not in text
    assert "light_tails = true" in planned
    assert "cluster" in Path("report.md").read_text()


@pytest.mark.usefixtures("folder")
def test_a_plan_in_python_says_in_keys_of_the_study_file_why_a_question_cannot_be_asked() -> None:
    words: Any = {"treatment": "a", "outcome": "v", "adjust": ["u"], "method": "sample-aggregate", "estimand": "att"}
    path = write(Path(), question("q", "effect", **words, epsilon=1), n=3000)
    (one,) = dpc.Study.open(path).plan(accuracy=False).questions
    assert one.error.rule == "estimand" and "overlap = true" in one.reason and not PYTHON.search(one.reason)


def arguments() -> set[str]:
    """Return all names of options: of the tasks, of their methods, of tables and panels."""
    names = set(inspect.signature(dpc.Table).parameters) | set(inspect.signature(dpc.Panel).parameters)
    for function, kinds in TASKS.values():
        names |= set(inspect.signature(function).parameters)
        names |= {field.name for kind in kinds.values() for field in fields(kind)}
    return names


def texts(path: Path) -> list[str]:
    """Return the strings of a module, docstrings and parts of what is no sentence apart."""
    tree = ast.parse(path.read_text())
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Query"]
    docs |= {id(part) for call in calls for part in ast.walk(call)}
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs)
    return [one.value for one in strings if isinstance(one.value, str) and len(one.value.split()) > 3]


NO_HINTS = {
    "only a factor model covers an earlier start", "; the cost is given as loss=", "a release is asked again free",
    "A ledger: a file, or postgresql", "a part is written as name=0.5", "A new file, or postgresql",
    "CSV or TSV with a header", "a frame must be a pandas, polars", "a code of a missing answer? Then declare it as",
    "write it as postgresql", "<!DOCTYPE html>",
}  # fmt: skip
"""How texts begin that only Python shows, that have addresses, or that a study file takes as they are."""


def test_no_text_of_the_library_writes_an_option_as_python_has_it() -> None:
    option = re.compile(rf"\b({'|'.join(sorted(arguments()))})=(?!=)|\bLevels\(|\bBounded\(\d")
    rooms = [room for room in SOURCE.iterdir() if room.name not in ("papers", "interop", "audit")]
    paths = [path for room in rooms for path in (room.rglob("*.py") if room.is_dir() else [room])]
    found = {text for path in paths if path.suffix == ".py" for text in texts(path) if option.search(text)}
    assert [text for text in found if not text.startswith(tuple(NO_HINTS))] == []
