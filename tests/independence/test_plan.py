"""What is refused before anything is spent, what a result says, and many tests under one budget."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpcausal as dpc
from dpcausal.errors import BudgetExceededError, LossError, ParameterError, SchemaError, UnprovenError
from dpcausal.independence.api import adjusted
from dpcausal.independence.result import pvalue_text
from dpcausal.papers.independence.priv_tot import count_pvalue
from tests.independence.neighbours import KINDS, METHODS, SCHEMA, ask, frame, plan_of, rows_for, way

ROWS = np.random.default_rng(7).uniform([-1, -1, -2, 0], [1, 3, 2, 2], (130, 4))


def table(epsilon: float = 1.0) -> dpc.Table:
    return dpc.Table(frame(ROWS), SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(epsilon)), missing="impute")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"method": "best"}, ParameterError, "method must be one of auto, neighbours"),
        ({"given": ["x"]}, ParameterError, "different columns"),
        ({"given": ["q"]}, SchemaError, "not in the schema"),
        ({"given": [3]}, ParameterError, "list of names"),
        ({"alpha": 0}, ParameterError, "alpha"),
        ({"alpha": True}, ParameterError, "alpha"),
        ({"loss": dpc.ZCDP(0.5)}, LossError, "PureDP"),
        ({"loss": dpc.PureDP(21)}, LossError, "accept_large_epsilon"),
        ({"loss": dpc.PureDP(1e-8)}, LossError, "at least 1e-6"),
        ({"penalty": 1.0}, ParameterError, r"method=dpc.methods.CrtDecision\(penalty=1.0\)"),
        ({"method": "crt", "blocks": 3}, ParameterError, r"method=dpc.methods.Crt\(blocks=3\)"),
        ({"method": dpc.methods.Gcm}, ParameterError, r"Gcm\(\), not Gcm"),
        ({"method": dpc.papers.PrivGcm(penalty=1e-9)}, ParameterError, "penalty must be between"),
        ({"method": dpc.papers.PrivGcm(width=0)}, ParameterError, "width must be between"),
        ({"method": dpc.papers.PrivGcm(constants="new")}, ParameterError, "constants"),
        ({"method": "hsic"}, ParameterError, "given=\\[\\]"),
        ({"method": "crt"}, ParameterError, "needs model_x"),
        ({"method": way("crt-decision", resamples=5)}, ParameterError, "1/alpha - 1"),
        ({"method": dpc.methods.Gcm(regression="cubic")}, ParameterError, "regression must be"),
        ({"method": dpc.methods.Gcm(workers=0)}, ParameterError, "workers"),
        ({"method": dpc.methods.Gcm(resamples=3)}, ParameterError, "resamples"),
        ({"method": way("PrivCRT", constants=np.array([1, 2]))}, ParameterError, "constants"),
        ({"method": dpc.methods.Kendall(strata=0)}, ParameterError, "strata"),
        ({"method": dpc.papers.PrivKendall()}, UnprovenError, "accept_unproven=True"),
        ({"method": dpc.papers.PrivSpearman(strata=200)}, ParameterError, "more records than strata"),
        ({"method": "hsic", "given": [], "loss": dpc.NoPrivacy()}, ParameterError, "no form without privacy"),
    ],
)  # fmt: skip
def test_public_arguments_are_refused_before_anything_is_spent(arguments, error, message):
    asked: dict[str, Any] = {"given": ["z"], "loss": dpc.PureDP(1), **arguments}
    t = table()
    with pytest.raises(error, match=message):
        dpc.ci_test(t, "x", "y", **asked)
    assert not t.ledger.entries()


def test_a_budget_that_is_too_small_is_refused_and_nothing_is_read():
    t = table(0.5)
    with pytest.raises(BudgetExceededError):
        dpc.ci_test(t, "x", "y", given=["z"], loss=dpc.PureDP(1))
    assert not t.ledger.entries()


@pytest.mark.parametrize("method", METHODS)
def test_a_result_says_what_it_cost_holds_no_rows_and_pickles(method):
    with dpc.simulated_noise(2):
        t = ask(ROWS[: rows_for(method)], method)
    assert t.guarantee.loss == dpc.PureDP(1) and t.method == method and t.guarantee.proofs
    assert (t.pvalue is not None) == KINDS[method].releases_pvalue
    assert t.decision == "dependent" or t.pvalue is None or t.pvalue > t.alpha
    assert pickle.loads(pickle.dumps(t)) == t
    assert json.loads(t.to_json())["decision"] == t.decision
    assert ("not evidence" in t.summary()) == (t.decision != "dependent")
    assert t.plot().get_title().endswith("NOT PRIVATE")
    for value in np.ravel(ROWS)[:40]:
        assert repr(float(value)) not in t.to_json()


def test_every_method_states_claims_that_exist():
    for method in METHODS:
        for claim in plan_of(ROWS[: rows_for(method)], method).proofs:
            assert dpc.explain(claim)


def test_the_ledger_says_what_was_asked():
    t = table()
    dpc.ci_test(t, "x", "y", given=["z", "g"], loss=dpc.PureDP(0.5), method=dpc.methods.Gcm(blocks=2))
    (entry,) = t.ledger.entries()
    detail = json.loads(entry.detail)
    assert entry.task == "ci_test" and detail["columns"] == ["x", "y", "z", "g"] and detail["blocks"] == 2


def test_an_approximate_loss_is_spent_as_epsilon_alone():
    whole = dpc.ApproxDP(1, 1e-6)
    t = dpc.Table(frame(ROWS), SCHEMA, dpc.Ledger.in_memory(whole), missing="impute")
    r = dpc.ci_test(t, "x", "y", given=["z"], loss=whole)
    assert r.guarantee.loss == dpc.PureDP(1) and "needs no delta" in r.guarantee.caveats[0]


def test_rank_tests_count_their_strata_from_public_cuts():
    plan = plan_of(ROWS, "kendall", strata=4)
    question: Any = replace(plan.question, given=("z", "g"))
    kendall: Any = plan.method
    codes = np.clip(np.rint(ROWS[:, 3]), 0, 2)
    assert (kendall.strata_of(question.read(), question) == np.floor(ROWS[:, 2] + 2) * 3 + codes).all()
    assert kendall.strata_in(question) == 12


def test_the_pvalue_of_a_count_sums_binomial_and_noise():
    k, noise = np.arange(11), np.arange(-300, 301)
    law = np.exp(-np.abs(noise) * 0.7)
    both = np.convolve(stats.binom.pmf(k, 10, 0.05), law / law.sum())
    total = np.arange(-300, 311)
    for noisy in (-3, 0, 4, 9):
        assert count_pvalue(noisy, 10, 0.7) == pytest.approx(both[total >= noisy].sum(), rel=1e-9)


def test_a_result_names_the_options_that_were_used():
    with dpc.simulated_noise(1):
        t = ask(ROWS, "Spearman of Priv-PC", strata=3, given=["z"])
        g = ask(ROWS, "gcm", resamples=39)
    assert t.settings == {"strata": 3} and g.settings["resamples"] == 39
    assert "Priv-PC" in t.details() and "cut in 3 parts" in t.details() and t.to_dict()["settings"]["strata"] == 3
    assert any("still varies" in caveat for caveat in t.guarantee.caveats)


def test_the_smallest_pvalue_is_said_to_be_a_floor():
    assert pvalue_text(1e-12) == "p < 1e-12" and pvalue_text(0.05) == "p = 0.05"


def test_noise_that_hides_all_blocks_is_said_from_public_numbers():
    with dpc.simulated_noise(1):
        drowned, fine = ask(ROWS, loss=dpc.PureDP(0.01)), ask(ROWS, loss=dpc.PureDP(20))
    assert any("can well be missed" in caveat for caveat in drowned.guarantee.caveats)
    assert not any("can well be missed" in caveat for caveat in fine.guarantee.caveats)


def test_a_count_of_thousands_of_blocks_has_a_pvalue():
    assert 0 < count_pvalue(200, 5_000, 1.0) < 1


# Many tests.


@pytest.mark.parametrize("correction", ["holm", "benjamini-hochberg"])
def test_adjusted_pvalues_reject_what_the_procedures_reject(correction):
    rng = np.random.default_rng(0)
    for _ in range(200):
        pvalues = rng.uniform(size=7) ** 3
        order = np.argsort(pvalues)
        rejected = np.zeros(7, dtype=bool)
        if correction == "holm":
            for rank, place in enumerate(order):
                if pvalues[place] > 0.05 / (7 - rank):
                    break
                rejected[place] = True
        else:
            below = [rank for rank, place in enumerate(order, start=1) if pvalues[place] <= 0.05 * rank / 7]
            rejected[order[: max(below, default=0)]] = True
        assert ((np.array(adjusted(pvalues.tolist(), correction)) <= 0.05) == rejected).all()


def test_many_tests_are_paid_by_one_entry_and_shares_are_kept():
    t, steps = table(), []
    with dpc.simulated_noise(1):
        found = dpc.ci_tests(
            t, [("x", "y", ["z"]), ("x", "z", [])], loss=dpc.PureDP(1), shares=[3, 1],
            progress=lambda done, all: steps.append((done, all)),
        )  # fmt: skip
    assert len(t.ledger.entries()) == 1 and t.ledger.remaining.epsilon == 0 and steps == [(1, 2), (2, 2)]
    assert json.loads(t.ledger.entries()[0].detail)["epsilons"] == [0.75, 0.25]
    assert found.guarantee.loss == dpc.PureDP(1) and "allotment" in found.guarantee.proofs
    assert [p <= found.alpha for p in found.adjusted] == [one == "dependent" for one in found.decisions]
    assert all("of all together" in test.details() for test in found.tests)
    assert "2 tests by neighbours and kendall, 130 rows" in found.details() and "of all together" not in found.details()
    assert len(found.to_frame()) == 2 and "2 tests" in found.details() and pickle.loads(pickle.dumps(found)) == found
    assert found.plot().get_title() == "NOT PRIVATE"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hypotheses": []}, "hypotheses must be"),
        ({"hypotheses": [("x", "y")]}, r"\(x, y, given\)"),
        ({"correction": "none at all"}, "correction"),
        ({"shares": [1, 2]}, "shares"),
        ({"method": "crt-decision"}, "no p-value to adjust"),
        ({"blcoks": 3}, "no argument 'blcoks'; did you mean 'blocks'"),
        ({"progress": 3}, "progress"),
        ({"hypotheses": [("x", "y", ["z", "g"]), ("y", "x", ["g", "z"])]}, "named twice"),
    ],
)
def test_many_tests_are_refused_before_anything_is_spent(arguments, message):
    t = table()
    asked: dict[str, Any] = {"hypotheses": [("x", "y", ["z"])], "loss": dpc.PureDP(1), **arguments}
    with pytest.raises(ParameterError, match=message):
        dpc.ci_tests(t, asked.pop("hypotheses"), **asked)
    assert not t.ledger.entries()


def test_the_command_answers_and_spends(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from dpcausal.cli import app

    monkeypatch.chdir(tmp_path)
    lines = [",".join(map(repr, row)) for row in ROWS[:, :3].tolist()]
    (tmp_path / "data.csv").write_text("\n".join(["x,y,z", *lines]))
    (tmp_path / "schema.toml").write_text("".join(
        f"[{name}]\nlower = {low}\nupper = {high}\n" for name, low, high in (("x", -1, 1), ("y", -1, 3), ("z", -2, 2))
    ))  # fmt: skip
    shared = ["--schema", "schema.toml", "--ledger", "l.ledger"]
    runner = CliRunner()
    assert runner.invoke(app, ["ledger", "create", "l.ledger", "--epsilon", "1"]).exit_code == 0
    asked = runner.invoke(app, ["ci-test", "data.csv", "x", "y", "--given", "z", "--epsilon", "0.6", "--json", *shared])
    answer = json.loads(asked.output)
    assert asked.exit_code == 0 and answer["given"] == ["z"] and answer["decision"] in ("dependent", "not detected")
    again = runner.invoke(app, ["ci-test", "data.csv", "x", "y", "--given", "z", "--epsilon", "0.6", *shared])
    wrong = runner.invoke(app, ["ci-test", "data.csv", "x", "q", "--epsilon", "0.1", *shared])
    assert (again.exit_code, wrong.exit_code) == (3, 2)
