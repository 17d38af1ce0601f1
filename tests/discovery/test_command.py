"""The command ``dpcausal discover``."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import Result

from tests.commands import command

SCHEMA = "".join(f"[{name}]\nlevels = [0, 1]\n\n" for name in "abc")


@pytest.fixture(autouse=True)
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 20_000)
    b = np.where(rng.random(20_000) < 0.9, a, 1 - a)
    pd.DataFrame({"a": a, "b": b, "c": rng.integers(0, 2, 20_000)}).to_csv("data.csv", index=False)
    Path("schema.toml").write_text(SCHEMA)
    command("ledger", "create", "study.ledger", "--epsilon", "2")
    return tmp_path


def ask(*arguments: str) -> Result:
    return command("discover", "data.csv", "--schema", "schema.toml", "--ledger", "study.ledger", *arguments)


def test_a_graph_is_printed_with_its_cost_and_support() -> None:
    answered = ask("--epsilon", "1", "--redraws", "5")
    assert answered.exit_code == 0, answered.stderr
    for part in ("a – b", "stable in", "ε = 1"):
        assert part in answered.stdout


def test_json_formats_and_knowledge() -> None:
    told = json.loads(ask("--epsilon", "0.5", "--json", "--redraws", "1", "--require", "a,b").stdout)
    assert told["graph"]["directed"] == [["a", "b"]] and told["remaining"]["epsilon"] == 1.5
    assert ask("--epsilon", "0.5", "--format", "dagitty", "--columns", "a,b").stdout.startswith("pdag {")
    nothing = ask("--epsilon", "0.5", "--forbid", "a,b", "--forbid", "b,a", "--columns", "a,b", "--redraws", "1")
    assert "0 edges" in nothing.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--epsilon", "3"), 3, "budget"),
        ((), 2, "--epsilon"),
        (("--epsilon", "1", "--method", "ges"), 2, "--method must be one of auto, table, parities"),
        (("--epsilon", "1", "--max-order", "1"), 2, "--max-order goes with --method table or parities or whitened"),
        (("--epsilon", "1", "--method", "parities", "--search", "pc"), 2, "--search goes with --method table"),
        (("--epsilon", "1", "--method", "papers.PrivPc", "--missing", "impute"), 2, "corrected"),
        (("--epsilon", "1", "--forbid", "a"), 2, "CAUSE,EFFECT"),
        (("--epsilon", "1", "--forbid", "a,b,c"), 2, "CAUSE,EFFECT"),
        (("--epsilon", "1", "--forbid", "a,"), 2, "a name is missing in 'a,'"),
        (("--epsilon", "1", "--columns", "a,,b"), 2, "--columns: a name is missing in 'a,,b'"),
        (("--epsilon", "1", "--format", "png"), 2, "--format"),
        (("--epsilon", "1", "--columns", "a,x"), 2, "'x' is not in the schema"),
    ],
)
def test_what_is_wrong_is_told_by_an_exit_code(arguments: tuple[str, ...], code: int, words: str) -> None:
    answered = ask(*arguments)
    assert answered.exit_code == code and words in answered.stderr
    assert json.loads(command("ledger", "show", "study.ledger", "--json").stdout)["entries"] == []
