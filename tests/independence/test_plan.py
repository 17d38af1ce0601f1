"""What is refused before anything is spent, what a result and its caveats say, and many tests under one budget."""

import gc
import json
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

import dpcausal as dpc
from dpcausal.core.multiplicity import adjusted_pvalues
from dpcausal.core.run import plan_call
from dpcausal.errors import BudgetExceededError, LossError, ParameterError, SchemaError, UnprovenError
from dpcausal.independence.question import SIGNED, IndependenceQuestion
from dpcausal.independence.result import pvalue_text
from dpcausal.papers.independence.priv_tot import count_pvalue
from tests.factories import refused_unpaid
from tests.factories import table as made_table
from tests.independence.neighbours import SCHEMA, ask, frame, plan_of, way

ROWS = np.random.default_rng(7).uniform([-1, -1, -2, 0], [1, 3, 2, 2], (130, 4))
methods, papers = dpc.methods, dpc.papers


def table(budget: Any = None, rows: int = 130) -> dpc.Table:
    return made_table(frame(ROWS[:rows]), SCHEMA, budget or dpc.PureDP(1), missing="impute")


REFUSED: dict[type[Exception], list[dict[str, Any]]] = {
    ParameterError: [
        {"method": "best"}, {"given": ["x"]}, {"given": [3]}, {"alpha": 0}, {"alpha": True}, {"penalty": 1.0},
        {"method": "crt", "blocks": 3}, {"method": methods.Gcm}, {"method": papers.PrivGcm(penalty=1e-9)},
        {"method": papers.PrivGcm(width=0)}, {"method": papers.PrivGcm(constants="new")}, {"method": "hsic"},
        {"method": "crt"}, {"method": way("crt-decision", resamples=5)}, {"method": methods.Gcm(regression="cubic")},
        {"method": methods.Gcm(workers=0)}, {"method": methods.Gcm(resamples=3)},
        {"method": way("PrivCRT", constants=np.array([1, 2]))}, {"method": methods.Kendall(strata=0)},
        {"method": papers.PrivSpearman(strata=200)}, {"method": "hsic", "given": [], "loss": dpc.NoPrivacy()},
        {"method": methods.Neighbours(neighbours=14)}, {"method": "neighbours", "x": "a", "given": ["z", "x"]},
        {"method": "neighbours", "given": ["g"]}, {"method": "neighbours", "x": "b"},
        {"method": "strata-covariance"}, {"method": "strata-covariance", "x": "b", "given": ["g"]},
        {"method": "counts", "given": ["g"]}, {"method": methods.Gcm(blocks=1)}, {"method": methods.Gcm(blocks=3)},
        {"method": methods.Gcm(blocks=True)}, {"method": methods.Gcm(blocks=2.0)},  # type: ignore[arg-type]
        {"method": "gcm", "rows": 119},
    ],
    SchemaError: [{"given": ["q"]}],
    LossError: [{"loss": dpc.ZCDP(0.5)}, {"loss": dpc.PureDP(21)}, {"loss": dpc.PureDP(1e-8)}],
    UnprovenError: [{"method": papers.PrivKendall()}],
    BudgetExceededError: [{"loss": dpc.PureDP(2)}],
}  # fmt: skip


@pytest.mark.parametrize(("error", "arguments"), [(error, one) for error, all in REFUSED.items() for one in all])
def test_public_arguments_are_refused_before_anything_is_spent(error: Any, arguments: dict[str, Any]) -> None:
    options = {"x": "x", "y": "y", "given": ["z"], "loss": dpc.PureDP(1), **arguments}
    refused_unpaid(table(rows=options.pop("rows", 130)), error, dpc.ci_test, **options)


@pytest.mark.parametrize("arguments", [
    {"hypotheses": []}, {"hypotheses": [("x", "y")]}, {"correction": "none at all"}, {"shares": [1, 2]},
    {"method": "crt-decision"}, {"blcoks": 3},
    {"hypotheses": [("x", "y", ["z", "g"]), ("y", "x", ["g", "z"])]},
], ids=str)  # fmt: skip
def test_many_tests_are_refused_before_anything_is_spent(arguments: dict[str, Any]) -> None:
    options = {"hypotheses": [("x", "y", ["z"])], "loss": dpc.PureDP(1), **arguments}
    refused_unpaid(table(), ParameterError, dpc.ci_tests, **options)


def test_the_ledger_says_what_was_asked_and_only_epsilon_is_spent() -> None:
    whole = dpc.ApproxDP(1, 1e-6)
    t = table(whole)
    r = dpc.ci_test(t, "x", "y", given=["z", "g"], loss=whole, method=methods.Gcm(blocks=2))
    (entry,) = t.ledger.entries()
    detail = json.loads(entry.detail)
    assert entry.task == "ci_test" and detail["columns"] == ["x", "y", "z", "g"] and detail["blocks"] == 2
    assert r.guarantee.loss == dpc.PureDP(1)


def test_rank_tests_count_their_strata_from_public_cuts() -> None:
    plan = plan_of(ROWS, "kendall", strata=4)
    question, kendall = replace(plan.question, given=("z", "g")), plan.method
    codes = np.clip(np.rint(ROWS[:, 3]), 0, 2)
    assert (kendall.strata_of(question.read(), question) == np.floor(ROWS[:, 2] + 2) * 3 + codes).all()
    assert kendall.strata_in(question) == 12


def test_the_pvalue_of_a_count_sums_binomial_and_noise() -> None:
    k, noise = np.arange(11), np.arange(-300, 301)
    chances = np.exp(-np.abs(noise) * 0.7)
    both = np.convolve(stats.binom.pmf(k, 10, 0.05), chances / chances.sum())
    total = np.arange(-300, 311)
    for noisy in (-3, 0, 4, 9):
        assert count_pvalue(noisy, 10, 0.7) == pytest.approx(both[total >= noisy].sum(), rel=1e-9)
    assert 0 < count_pvalue(200, 5_000, 1.0) < 1


def test_a_result_names_the_options_that_were_used() -> None:
    with dpc.simulated_noise(1):
        t, g = ask(ROWS, "Spearman of Priv-PC", strata=3, given=["z"]), ask(ROWS, "gcm", resamples=39)
    assert t.settings == t.to_dict()["settings"] == {"strata": 3} and g.settings["resamples"] == 39
    assert "cut in 3 parts" in t.details()
    assert pvalue_text(1e-12) == "p < 1e-12" and pvalue_text(0.05) == "p = 0.05"


def test_noise_that_hides_all_blocks_is_said_from_public_numbers() -> None:
    with dpc.simulated_noise(1):
        hidden, clear = (ask(ROWS, loss=dpc.PureDP(epsilon)).guarantee.caveats for epsilon in (0.01, 20))
    assert [any("can well be missed" in caveat for caveat in caveats) for caveats in (hidden, clear)] == [True, False]


@pytest.mark.parametrize(("given", "method"), [(["g"], "kendall"), (["z"], "neighbours")])
def test_associations_of_both_signs_cancel_in_sums_of_signs_and_that_is_said(given: list[str], method: str) -> None:
    # y goes up with x in one half and down in the other: the whole shows little, each half much.
    rng, n = np.random.default_rng(3), 3_000
    half, x, z = rng.integers(0, 2, n), rng.normal(size=n), rng.uniform(size=n)
    numbers = {"x": x, "y": np.where(half == 1, x, -x) + 0.5 * rng.normal(size=n), "z": z}
    schema = {"g": dpc.Levels([0, 1]), **dict.fromkeys(numbers, dpc.Bounded(-4, 4))}
    t = made_table({"g": half, **numbers}, schema, dpc.PureDP(9))
    with dpc.simulated_noise(4):
        whole = dpc.ci_test(t, "x", "y", given=given, loss=dpc.PureDP(2))
        part = dpc.ci_test(t.where("g", among=[1]), "x", "y", given=given[1:], loss=dpc.PureDP(2))
    assert whole.method == method and part.pvalue < 1e-6 < whole.pvalue and SIGNED in whole.guarantee.caveats


@pytest.mark.parametrize(("method", "cancels"), [
    (methods.Gcm(), True), (methods.Crt(model_x={"mean": 0.5, "sd": 1.0}), True),
    (methods.CrtDecision(model_x={"mean": 0.5, "sd": 1.0}), True), (methods.WeightedGcm(), False),
])  # fmt: skip
def test_covariances_of_residuals_cancel_too_unless_weights_change_their_sign(method: Any, cancels: bool) -> None:
    columns = dict.fromkeys("xyz", np.linspace(0, 1, 300))
    t = made_table(columns, dict.fromkeys(columns, dpc.Bounded(-4, 4)), dpc.PureDP(1))
    caveats = plan_call(IndependenceQuestion.of(t, "x", "y", ["z"], 0.05), method, dpc.PureDP(1)).caveats
    assert any(SIGNED in one for one in caveats) == cancels


@pytest.mark.parametrize(("correction", "method"), [("holm", "holm"), ("benjamini-hochberg", "fdr_bh")])
def test_adjusted_pvalues_are_those_of_statsmodels(
    correction: Any, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "collect", lambda: 0)  # which each call of theirs asks for
    for pvalues in np.random.default_rng(0).uniform(size=(200, 7)) ** 3:
        assert adjusted_pvalues(pvalues.tolist(), correction) == pytest.approx(multipletests(pvalues, method=method)[1])


def test_many_tests_are_paid_by_one_entry_and_shares_are_kept() -> None:
    t = table()
    with dpc.simulated_noise(1):
        answers = dpc.ci_tests(t, [("x", "y", ["z"]), ("x", "z", [])], loss=dpc.PureDP(1), shares=[3, 1])
    assert len(t.ledger.entries()) == 1 and t.ledger.remaining.epsilon == 0
    assert json.loads(t.ledger.entries()[0].detail)["epsilons"] == [0.75, 0.25]
    assert answers.guarantee.loss == dpc.PureDP(1) and "allotment" in answers.guarantee.proofs
    assert [p <= answers.alpha for p in answers.adjusted] == [one == "dependent" for one in answers.decisions]
    assert all("of all together" in test.details() for test in answers.tests)
    assert "of all together" not in answers.details() and "2 tests" in answers.details()
    assert len(answers.to_frame()) == 2 and pickle.loads(pickle.dumps(answers)) == answers
    assert answers.plot().get_title() == "NOT PRIVATE"
