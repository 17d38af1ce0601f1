"""The options that say whose the records are and which of them are asked."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dpcausal as dpc
from dpcausal.cli import app


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    rows = [f"p{k // 2},{rng.normal():.3f},{rng.normal():.3f},{'fm'[k % 2]},{20 + k % 50}" for k in range(800)]
    (tmp_path / "data.csv").write_text("\n".join(["id,x,y,sex,age", *rows]))
    (tmp_path / "schema.toml").write_text(
        "[x]\nlower = -4\nupper = 4\n[y]\nlower = -4\nupper = 4\n"
        '[sex]\nlevels = ["f", "m"]\n[age]\nlower = 0\nupper = 110\n'
    )
    dpc.Ledger.create("s.ledger", budget=dpc.PureDP(9)).close()
    dpc.Ledger.create("p.ledger", budget=dpc.PureDP(9), person="id", ids="public").close()
    return tmp_path


def asked(
    *options: str, command: tuple[str, ...] = ("ci-test", "data.csv", "x", "y"), ledger: str = "s.ledger"
) -> tuple[int, str]:
    shared = ["--schema", "schema.toml", "--ledger", ledger, "--epsilon", "1", "--json"]
    found = CliRunner().invoke(app, [*command, *shared, *options])
    return found.exit_code, found.output


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize(
    "options",
    [("--where", "age > 30"), ("--where", "__import__('os')"), ("--where", "height >= 1"), ("--where", "age >= 'x'"),
     ("--where", "sex == 'q'"), ("--person", "who"), ("--ids", "public"), ("--missing", "skip"), ("--where", ""),
     ("--max-rows-per-person", "2"), ("--weight", "age"),
     ("--weight", "who=8"), ("--weight", "age=0"), ("--weight", "age=70")],
)  # fmt: skip
def test_a_word_that_does_not_fit_is_refused_and_nothing_is_spent(options: tuple[str, ...]) -> None:
    assert asked(*options)[0] == 2
    assert not dpc.Ledger.open("s.ledger").entries()


@pytest.mark.usefixtures("study")
def test_consent_is_asked_for_in_the_words_of_the_command() -> None:
    found = CliRunner().invoke(
        app, ["ci-test", "data.csv", "x", "y", "--schema", "schema.toml", "--ledger", "s.ledger", "--epsilon", "21"]
    )
    assert found.exit_code == 2 and "--accept-large-epsilon" in found.output and "=True" not in found.output
