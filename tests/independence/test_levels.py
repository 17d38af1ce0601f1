"""True nulls in which values are tied, or strata small: what is released has the law that the p-value takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpcausal as dpc
from dpcausal.core.run import plan_call
from dpcausal.independence.methods import METHODS
from dpcausal.independence.methods import block_test as blocks
from dpcausal.independence.null_laws import permutation_score, term
from dpcausal.independence.question import IndependenceQuestion
from dpcausal.privacy.noise import generator_from_seed

NUMBERS = dpc.Schema({"x": dpc.Bounded(0, 1), "y": dpc.Bounded(-3, 3), "z": dpc.Bounded(-2, 2)})


def terms_of(monkeypatch: pytest.MonkeyPatch, table: dpc.Table, **asked: Any) -> Any:
    """Return the terms of all blocks of a call."""
    seen: list[int] = []
    honest = blocks.block_sum

    def keep(terms: list[int], *rest: Any) -> Any:
        seen.extend(terms)
        return honest(terms, *rest)

    monkeypatch.setattr(blocks, "block_sum", keep)
    with dpc.simulated_noise(3):
        dpc.ci_test(table, "x", "y", **asked)
    return np.array(seen) / 100


def law_of_terms() -> tuple[float, float]:
    """Return mean and variance of a standard normal score clipped at 0.75."""
    z = np.linspace(-8, 8, 160_001)
    density = stats.norm.pdf(z) * (z[1] - z[0])
    return 0.0, float(np.clip(z, -0.75, 0.75) ** 2 @ density)


@pytest.mark.parametrize(
    ("method", "mean", "sd", "value"), [("crt", 2.0, 0.1, 1.0)]
)
def test_a_column_that_all_copies_equal_gives_fair_coins(monkeypatch, method, mean, sd, value):
    rng, n = np.random.default_rng(5), 24_000
    z = rng.uniform(-2, 2, n)
    frame = {"x": np.full(n, value), "y": np.clip(rng.standard_normal(n) + z, -3, 3), "z": z}
    table = dpc.Table(frame, NUMBERS, dpc.Ledger.in_memory(dpc.PureDP(1)))
    model = dpc.ModelX(mean=lambda Z: np.full(len(Z), mean), sd=sd)
    terms = terms_of(
        monkeypatch, table, given=["z"], loss=dpc.PureDP(0.1),
        method=METHODS[method](blocks=400, model_x=model, resamples=19),  # type: ignore[call-arg]
    )  # fmt: skip
    _, variance = law_of_terms()
    assert abs(terms.mean()) < 6 * (variance / 400) ** 0.5
    assert abs(terms.var() - variance) < 6 * ((terms**2).std() / 20)


def test_a_mean_that_runs_away_costs_no_power(monkeypatch):
    rng, n = np.random.default_rng(8), 4_800
    z = np.where(np.arange(n) % 2, rng.uniform(-1, 1, n), rng.uniform(-1, 30, n))
    x = np.clip(np.exp(z) + rng.standard_normal(n), 0, 10)
    y = 2 * (x - np.clip(np.exp(z), 0, 10)) + rng.standard_normal(n)
    schema = dpc.Schema({"x": dpc.Bounded(0, 10), "y": dpc.Bounded(-30, 30), "z": dpc.Bounded(-1, 30)})
    table = dpc.Table({"x": x, "y": y, "z": z}, schema, dpc.Ledger.in_memory(dpc.PureDP(1)))
    method = dpc.methods.Crt(blocks=16, model_x=dpc.ModelX(mean=lambda Z: np.exp(Z[:, 0]), sd=1.0))
    terms = terms_of(monkeypatch, table, given=["z"], loss=dpc.PureDP(1), method=method)
    assert terms.mean() > 0.6  # of 0.75


def test_a_rank_does_not_hang_on_the_order_in_which_terms_are_added():
    # x and y of few values: the products of any order are sums of the same numbers.
    rng = np.random.default_rng(6)
    left, right = (rng.random((2, 60, 1)) < 0.05) - 0.05
    scores = [term(permutation_score(left, right, 99, 1.0, generator_from_seed(seed))) for seed in range(1_000)]
    orders = [np.random.default_rng(seed).permutation(60) for seed in range(1_000)]
    moved = [
        term(permutation_score(left[order], right[order], 99, 1.0, generator_from_seed(seed)))
        for seed, order in enumerate(orders)
    ]
    # The same data, so the same law: two-sample Kolmogorov, a false alarm below 1e-8.
    assert stats.ks_2samp(scores, moved).pvalue > 1e-8


@pytest.mark.parametrize(("method", "size"), [("kendall", 3)])
def test_the_deviation_of_a_rank_test_is_never_understated_in_strata_of_one_size(method, size):
    rng, way = np.random.default_rng(7), METHODS[method]()
    n = 30 * size
    strata = np.repeat(np.arange(30), size)
    values = [way.statistic(rng.standard_normal(n), rng.standard_normal(n), strata) for _ in range(600)]
    found, stated = float(np.std(values)), way.deviation(n, 30)
    # A standard deviation of 600 is within 18 % but for 1e-8.
    assert 0.82 < found / stated < 1.18


@pytest.mark.parametrize(("given", "method"), [(["g"], "kendall"), (["z"], "neighbours")])
def test_tests_that_add_up_signs_say_that_links_of_both_signs_cancel(given: list[str], method: str) -> None:
    """y goes up with x in one half and down in the other: the whole shows little, each half much, and that is said."""
    rng = np.random.default_rng(3)
    n = 3_000
    half, x, z = rng.integers(0, 2, n), rng.normal(size=n), rng.uniform(size=n)
    y = np.where(half == 1, x, -x) + 0.5 * rng.normal(size=n)
    numbers = {"x": x, "y": y, "z": z}
    schema = dpc.Schema({"g": dpc.Levels([0, 1]), **dict.fromkeys(numbers, dpc.Bounded(-4, 4))})
    loss = dpc.PureDP(2)
    with dpc.simulated_noise(4):
        table = dpc.Table({"g": half, **numbers}, schema, dpc.Ledger.in_memory(dpc.PureDP(9)))
        whole = dpc.ci_test(table, "x", "y", given=given, loss=loss)
        part = dpc.ci_test(table.where("g", among=[1]), "x", "y", given=given[1:], loss=loss)
    assert whole.method == method and part.pvalue < 1e-6 < whole.pvalue
    assert "positive in some rows and negative in others cancels here" in whole.details()


LAW = {"mean": 0.5, "sd": 1.0}


@pytest.mark.parametrize(
    ("method", "says"),
    [(dpc.methods.Gcm(), True), (dpc.methods.Crt(model_x=LAW), True),
     (dpc.methods.CrtDecision(model_x=LAW), True), (dpc.methods.WeightedGcm(), False)],
)  # fmt: skip
def test_every_test_that_links_of_both_signs_deceive_says_so_in_its_plan(method: Any, says: bool) -> None:
    """Covariances of residuals cancel as sums of signs do; weights that change their sign with z do not."""
    rows, bounds = np.linspace(0, 1, 300), dpc.Bounded(-4, 4)
    table = dpc.Table(dict.fromkeys("xyz", rows), dpc.Schema(dict.fromkeys("xyz", bounds)),
                      dpc.Ledger.in_memory(dpc.PureDP(1)))  # fmt: skip
    told = plan_call(IndependenceQuestion.of(table, "x", "y", ["z"], 0.05), method, dpc.PureDP(1)).caveats
    assert any("positive in some rows and negative in others cancels here" in one for one in told) == says
