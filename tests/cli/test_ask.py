"""A release that a command saved is asked again on the command line, for nothing."""

import json
from pathlib import Path

import numpy as np
import pytest

import dpcausal as dpc
from tests.commands import command
from tests.refusals import rule_of_command


def run(*words: str) -> tuple[int, str]:
    found = command(*words)
    return found.exit_code, found.output


def refusal(*words: str) -> tuple[int, str]:
    found = command("ask", *words)
    return found.exit_code, rule_of_command(found)


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 3000)
    b = np.where(rng.random(3000) < 0.85, a, 1 - a)
    Path("d.csv").write_text("a,b,c\n" + "\n".join(f"{x},{y},{z}" for x, y, z in zip(a, b, a[::-1], strict=True)))
    Path("s.toml").write_text("".join(f"[{name}]\nlevels = [0, 1]\n" for name in "abc"))
    dpc.Ledger.create("l", budget=dpc.ApproxDP(5, 1e-6)).close()
    code, text = run("discover", "d.csv", "--schema", "s.toml", "--ledger", "l", "--epsilon", "1", "--redraws", "1",
                     "--save-release", "r.json")  # fmt: skip
    assert code == 0, text
    return tmp_path


@pytest.mark.usefixtures("saved")
def test_a_graph_is_asked_again_on_other_terms_and_costs_nothing() -> None:
    before = Path("l").read_bytes()
    Path("k.toml").write_text('tiers = [["a"], ["b", "c"]]\nforbidden = [["b", "c"]]\n')
    code, text = run("ask", "r.json", "discover", "--alpha", "0.001", "--knowledge", "k.toml", "--json")
    assert code == 0 and ["a", "b"] in json.loads(text)["graph"]["directed"]
    code, text = run("ask", "r.json", "discover")
    assert code == 0 and text
    assert Path("l").read_bytes() == before


@pytest.mark.usefixtures("saved")
def test_an_effect_a_test_and_a_regression_are_asked_of_what_holds_them() -> None:
    code, text = run("ask", "r.json", "effect", "--treatment", "a", "--outcome", "b", "--adjust", "c", "--json")
    assert code == 0 and abs(json.loads(text)["estimate"] - 0.7) < 0.1
    x, e = np.random.default_rng(2).normal(size=(2, 5000))
    table = dpc.Table({"y": 3 * x + e, "x": x}, dpc.Schema({"y": dpc.Bounded(-20, 20), "x": dpc.Bounded(-5, 5)}),
                      dpc.Ledger.in_memory(dpc.ApproxDP(4, 1e-6)))  # fmt: skip
    Path("m.json").write_text(dpc.moments(table, ["y", "x"], loss=dpc.ApproxDP(4, 1e-6)).to_json())
    code, text = run("ask", "r.json", "ci-test", "--x", "a", "--y", "b", "--given", "c")
    assert code == 0 and "a and b are associated given c" in text
    code, text = run("ask", "m.json", "regression", "--outcome", "y", "--regressors", "x", "--errors", "homoscedastic",
                     "--json")  # fmt: skip
    assert code == 0 and json.loads(text)["coefficients"][0]["interval"][0] < 3
    code, text = run("ask", "m.json", "correlation", "--x", "x", "--y", "y", "--json")
    assert code == 0 and abs(json.loads(text)["coefficients"][0]["estimate"] - 3 / 10**0.5) < 0.05


@pytest.mark.usefixtures("saved")
def test_an_effect_of_a_trial_is_asked_without_confounders_by_its_own_word() -> None:
    words = "ask", "r.json", "effect", "--treatment", "a", "--outcome", "b"
    code, text = run(*words, "--trial", "--json")
    assert code == 0 and abs(json.loads(text)["estimate"] - 0.7) < 0.1


def test_instruments_and_mediators_are_asked_of_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    z, u, e = np.random.default_rng(3).normal(size=(3, 20_000))
    x = z + u + e
    table = dpc.Table({"y": 0.5 * x + u, "x": x, "z": z}, dpc.Schema({name: dpc.Bounded(-12, 12) for name in "yxz"}),
                      dpc.Ledger.in_memory(dpc.ApproxDP(4, 1e-6)))  # fmt: skip
    Path("m.json").write_text(dpc.moments(table, ["y", "x", "z"], loss=dpc.ApproxDP(4, 1e-6)).to_json())
    code, text = run("ask", "m.json", "iv", "--outcome", "y", "--treatment", "x", "--instruments", "z", "--json")
    assert code == 0 and abs(json.loads(text)["coefficients"][0]["estimate"] - 0.5) < 0.05
    code, text = run("ask", "m.json", "mediation", "--outcome", "y", "--treatment", "z", "--mediator", "x", "--json")
    assert code == 0 and abs(json.loads(text)["coefficients"][2]["estimate"] - 0.5) < 0.05


WRONG = (
    (("r.json", "regression"), "choice"), (("r.json", "effect", "--trial"), "missing-argument"),
    (("r.json", "effect", "--treatment", "a", "--outcome", "b"), "adjust-or-trial"),
    (("r.json", "effect", "--treatment", "a", "--outcome", "b", "--adjust", "c", "--trial"), "adjust-or-trial"),
    (("r.json", "discover", "--trial"), "misplaced-option"),
    (("r.json", "ci-test", "--y", "a"), "missing-argument"),
    (("r.json", "discover", "--treatment", "a"), "misplaced-option"), (("none.json", "discover"), "no-file"),
    (("s.toml", "discover"), ""), (("r.json", "discover", "--knowledge", "s.toml"), "knowledge"),
)  # fmt: skip


@pytest.mark.usefixtures("saved")
@pytest.mark.parametrize(("words", "rule"), WRONG)
def test_what_cannot_be_asked_is_refused_with_the_rule(words: tuple[str, ...], rule: str) -> None:
    assert refusal(*words) == (2, rule)


@pytest.mark.usefixtures("saved")
def test_a_release_that_is_not_there_is_told_before_what_a_question_lacks() -> None:
    assert refusal("r.json", "effect")[1] == "adjust-or-trial"
    assert refusal("none.json", "effect")[1] not in ("", "adjust-or-trial")
