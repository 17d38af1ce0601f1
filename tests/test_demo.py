"""The demonstration: real data, public bounds that hold it, a budget of 2."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from dpcausal import demo
from dpcausal.errors import BudgetExceededError, LossError, MissingDependencyError
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.neighbours import Unit
from dpcausal.privacy.noise import simulated_noise


def test_the_demonstration_protects_everyone_and_pays_from_a_budget_of_2() -> None:
    with simulated_noise(4):
        r, ledger = demo.run(0.5)
    assert r.columns == ("coinsurance", "visits") and r.guarantee.unit is Unit.PERSON and r.n == 5912
    assert ledger.entries()[0].unit == "person"
    assert r.guarantee.loss == PureDP(0.5) and ledger.remaining.epsilon == 1.5
    assert r.lean in r.columns and r.p_coins is not None and 0 < r.p_coins <= 1


def test_its_bounds_follow_from_what_the_columns_mean() -> None:
    assert demo.SCHEMA["coinsurance"].to_dict() == {"lower": 0.0, "upper": math.log(101)}
    assert demo.SCHEMA["visits"].to_dict() == {"lower": 0.0, "upper": 52.0}


def test_the_columns_are_those_of_statsmodels() -> None:
    from statsmodels.datasets import randhie

    data, frame = randhie.load_pandas().data, demo.person_years()
    assert np.allclose(frame["coinsurance"], data["lncoins"], atol=1e-5)
    assert (frame["visits"] == data["mdvis"]).all() and frame["zper"].nunique() == 5912
    # log(1 + per cent of the bill): free care, 25, 50 and 95 or 100 per cent in the experiment's plans.
    assert data["lncoins"].between(0, math.log(101)).all()
    assert math.isclose(data["lncoins"].max(), math.log(101), abs_tol=1e-5) and data["lncoins"].min() == 0
    assert data["mdvis"].min() == 0


@pytest.mark.parametrize("epsilon", [0, -1, float("nan")])
def test_an_amount_that_is_none_is_refused(epsilon: float) -> None:
    with pytest.raises(LossError):
        demo.run(epsilon)


def test_more_than_the_budget_is_refused() -> None:
    with pytest.raises(BudgetExceededError):
        demo.run(2.5)


def test_without_statsmodels_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.datasets", None)
    with pytest.raises(MissingDependencyError, match=r"dpcausal\[demo\]"):
        demo.run(1)
