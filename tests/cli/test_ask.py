"""A release that a command saved is asked again on the command line, for nothing."""

import json
from pathlib import Path

import numpy as np
import pytest

import dpcausal as dpc
from tests import factories
from tests.commands import command
from tests.refusals import rule_of_command


def run(*words: object) -> tuple[int, str]:
    found = command(*words)
    return found.exit_code, found.output


def refusal(*words: str) -> tuple[int, str]:
    found = command("ask", *words)
    return found.exit_code, rule_of_command(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where there are releases of levels, a to b and c, and of sums: z to x, and x and u to y."""
    place = tmp_path_factory.mktemp("asked")
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 3000)
    b = np.where(rng.random(3000) < 0.85, a, 1 - a)
    lines = "\n".join(f"{x},{y},{z}" for x, y, z in zip(a, b, a[::-1], strict=True))
    (place / "d.csv").write_text(f"a,b,c\n{lines}")
    (place / "s.toml").write_text("".join(f"[{name}]\nlevels = [0, 1]\n" for name in "abc"))
    dpc.Ledger.create(place / "l", budget=dpc.ApproxDP(5, 1e-6)).close()
    code, text = run("discover", place / "d.csv", "--schema", place / "s.toml", "--ledger", place / "l", "--epsilon",
                     "1", "--redraws", "1", "--save-release", place / "r.json")  # fmt: skip
    assert code == 0, text
    (place / "k.toml").write_text('tiers = [["a"], ["b", "c"]]\nforbidden = [["b", "c"]]\n')
    z, u, e = np.random.default_rng(3).normal(size=(3, 20_000))
    x = z + u + e
    loss, rows = dpc.ApproxDP(4, 1e-6), {"y": 0.5 * x + u, "x": x, "z": z}
    table = factories.table(rows, dict.fromkeys("yxz", dpc.Bounded(-12, 12)), loss)
    (place / "m.json").write_text(dpc.moments(table, ["y", "x", "z"], loss=loss).to_json())
    return place


@pytest.fixture(autouse=True)
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def test_a_graph_is_asked_again_on_other_terms_and_costs_nothing() -> None:
    before = Path("l").read_bytes()
    code, text = run("ask", "r.json", "discover", "--alpha", "0.001", "--knowledge", "k.toml", "--json")
    assert code == 0 and ["a", "b"] in json.loads(text)["graph"]["directed"]
    for words, told in (("discover", ""), ("ci-test --x a --y b --given c", "a and b are associated given c")):
        code, text = run("ask", "r.json", *words.split())
        assert code == 0 and text and told in text
    assert Path("l").read_bytes() == before


OF_SUMS = {  # of Cov(x) = 3, Cov(x, y) = 2.5 and Var(y) = 2.75: place among the coefficients, and value
    "regression --outcome y --regressors x --errors homoscedastic": (0, 5 / 6),
    "correlation --x x --y y": (0, 2.5 / (3 * 2.75) ** 0.5),
    "iv --outcome y --treatment x --instruments z": (0, 0.5),
    "mediation --outcome y --treatment z --mediator x": (2, 0.5),
}


@pytest.mark.parametrize("words", OF_SUMS)
def test_what_follows_from_sums_is_asked_of_their_release(words: str) -> None:
    code, text = run("ask", "m.json", *words.split(), "--json")
    place, value = OF_SUMS[words]
    assert code == 0 and abs(json.loads(text)["coefficients"][place]["estimate"] - value) < 0.05


@pytest.mark.parametrize("how", [("--adjust", "c"), ("--trial",)])
def test_an_effect_is_asked_given_confounders_or_of_a_trial_by_its_own_word(how: tuple[str, ...]) -> None:
    code, text = run("ask", "r.json", "effect", "--treatment", "a", "--outcome", "b", *how, "--json")
    assert code == 0 and abs(json.loads(text)["estimate"] - 0.7) < 0.1


WRONG = (
    (("r.json", "regression"), "choice"), (("r.json", "effect", "--trial"), "missing-argument"),
    (("r.json", "effect", "--treatment", "a", "--outcome", "b"), "adjust-or-trial"),
    (("r.json", "effect", "--treatment", "a", "--outcome", "b", "--adjust", "c", "--trial"), "adjust-or-trial"),
    (("r.json", "discover", "--trial"), "misplaced-option"),
    (("r.json", "ci-test", "--y", "a"), "missing-argument"),
    (("r.json", "discover", "--treatment", "a"), "misplaced-option"), (("none.json", "discover"), "no-file"),
    (("r.json", "effect"), "adjust-or-trial"), (("none.json", "effect"), "no-file"),  # before what a question lacks
    (("s.toml", "discover"), ""), (("r.json", "discover", "--knowledge", "s.toml"), "knowledge"),
)  # fmt: skip


@pytest.mark.parametrize(("words", "rule"), WRONG)
def test_what_cannot_be_asked_is_refused_with_the_rule(words: tuple[str, ...], rule: str) -> None:
    assert refusal(*words) == (2, rule)
