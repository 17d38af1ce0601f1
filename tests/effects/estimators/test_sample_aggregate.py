"""Effects in blocks: least squares without noise, right where lines are wrong."""

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

import dpcausal as dpc
from dpcausal.effects.estimators import block_effects as blocks
from dpcausal.errors import LossError
from dpcausal.methods import SampleAggregate
from dpcausal.regression.smoother import Given
from tests.effects.tables import EXACT, effect_of, table_of

SCHEMA: dict[str, Any] = {
    "a": dpc.Levels([0, 1]), "y": dpc.Bounded(-5, 5), "x": dpc.Bounded(-2, 2), "w": dpc.Bounded(-2, 2),
    "site": dpc.Levels(["n", "s", "e"]), "ill": dpc.Levels([0, 1]),
}  # fmt: skip
EFFECT = 0.5


def drawn(n: int, seed: int = 1) -> dict[str, Any]:
    """Return rows whose treatment and outcome are associated with x², x·w and the site."""
    rng = np.random.default_rng(seed)
    x, w, site = rng.uniform(-2, 2, n), rng.uniform(-2, 2, n), rng.integers(0, 3, n)
    a = (rng.random(n) < 1 / (1 + np.exp(-0.8 * (x**2 - 4 / 3) - 0.4 * x * w - 0.3 * site))).astype(int)
    y = np.clip(EFFECT * a + 0.5 * x**2 + 0.3 * x * w + 0.4 * site - 1 + 0.5 * rng.normal(size=n), -5, 5)
    ill = (rng.random(n) < 0.2 + 0.2 * a + 0.1 * site).astype(int)
    return {"a": a, "y": y, "x": x, "w": w, "site": np.array(["n", "s", "e"])[site], "ill": ill}


def ask(
    columns: Any, loss: Any, seed: int = 1, schema: Any = SCHEMA, ids: Any = None, more: Any = None, **options: Any
):
    table = table_of(columns, schema, loss, **({"person": "id", "ids": ids} if ids else {}))
    return effect_of(table, loss, SampleAggregate(**options), seed, **({"adjust": ["x", "w", "site"]} | (more or {})))


@pytest.mark.parametrize("terms", blocks.TERMS)
def test_without_noise_it_is_a_slope_of_least_squares_with_its_robust_error(terms: str) -> None:
    columns = drawn(2_000)
    a, y, codes = columns["a"], columns["y"], np.array([{"n": 0, "s": 1, "e": 2}[one] for one in columns["site"]])
    given = Given(np.column_stack([columns["x"], columns["w"]]), codes[:, None], (3,))
    Z = np.column_stack([np.ones(2_000), blocks.series(given, terms)])
    treatment, outcome = sm.OLS(a, Z).fit(), sm.OLS(y, Z).fit()
    weights = treatment.resid / (1 - treatment.get_influence().hat_matrix_diag)
    overlap = ask(columns, EXACT, terms=terms, overlap=True)
    assert overlap.estimate == pytest.approx(weights @ outcome.resid / (weights @ treatment.resid), rel=1e-8)
    fit = sm.OLS(y, np.column_stack([Z, a])).fit(cov_type="HC1")
    assert overlap.standard_error == pytest.approx(fit.bse[-1], rel=0.01)  # rows of little leverage: 2,000 of them
    fit = sm.OLS(y, np.column_stack([Z, a[:, None] * blocks.modifiers(given, terms), a])).fit(cov_type="HC1")
    everybody = ask(columns, EXACT, terms=terms)
    assert everybody.estimate == pytest.approx(fit.params[-1], rel=1e-8)
    assert everybody.standard_error == pytest.approx(fit.bse[-1], rel=1e-6)
    assert (overlap.estimand, everybody.estimand) == ("overlap", "ate")


@pytest.mark.parametrize(("numbers", "levels"), [(3, (2, 4)), (0, (3,)), (2, ()), (0, (2, 3, 2))])
def test_kinds_count_the_columns_that_a_series_has(numbers: int, levels: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(np.array(levels, dtype=np.int64), size=(50, len(levels)))
    given, kinds = Given(rng.normal(size=(50, numbers)), codes, levels), blocks.Kinds(numbers, levels)
    for terms in blocks.TERMS:
        assert blocks.series(given, terms).shape[1] == kinds.columns(terms)
        assert blocks.modifiers(given, terms).shape[1] == kinds.modifiers(terms)


def test_it_is_right_where_lines_are_wrong_and_intervals_hold() -> None:
    results = [ask(drawn(8_000, seed), dpc.PureDP(4), seed) for seed in range(20)]
    off, covered = [], []
    for one in results:
        assert one.settings["terms"] == "products" and 0 < one.noise_error < one.standard_error
        off.append(one.estimate - EFFECT)
        covered.append(one.interval[0] <= EFFECT <= one.interval[1])
    # False alarms: 1e-3 for the mean, 1e-3 for the coverage.
    assert abs(np.mean(off)) < 3.3 * np.std(off) / 20**0.5 and np.std(off) < 0.03 and np.mean(covered) >= 0.75
    lines = dpc.methods.Aipw(lines_only=True)
    wrong = effect_of(table_of(drawn(8_000), SCHEMA, EXACT), EXACT, lines, adjust=["x", "w", "site"])
    assert wrong.estimate - EFFECT > 0.15


def test_fewer_blocks_where_epsilon_is_larger_and_rules_are_public() -> None:
    sizes = [ask(drawn(n), dpc.PureDP(e)).settings["blocks"] for n, e in ((60_000, 4), (6_000, 4), (6_000, 8))]
    # Noise is as one over the number of blocks and epsilon: there are more of them where rows are more.
    assert sizes[0] > sizes[1] == 220 / 4 > sizes[2] == 28
    result = ask(drawn(2_000), dpc.PureDP(8), blocks=40)
    assert result.settings == {"terms": "products", "overlap": False, "blocks": 40}
    assert "40 blocks of about" in " ".join(result.guarantee.caveats) and result.adjusted_for == ("x", "w", "site")


def test_private_ids_cost_half_and_a_row_each_of_public_ids_costs_what_rows_do() -> None:
    columns = drawn(6_000) | {"id": np.arange(6_000)}
    public, private, rows = (
        ask(columns, dpc.PureDP(4), 3, ids=ids, blocks=110, terms="lines") for ids in ("public", "private", None)
    )
    assert private.noise_error == pytest.approx(2 * public.noise_error, rel=0.5)
    assert rows.guarantee.proofs == private.guarantee.proofs == blocks.PROOFS


def test_a_window_without_answers_shows_in_the_sums_and_no_estimate_is_given() -> None:
    reach = blocks.reach_of(200)
    inside = blocks.share_inside((0.2 - 0.01) * reach**2, reach)
    right = blocks.aggregate_of(0.1, 0.2, 0.01, 0.02, 200, 0, 1000).estimate
    assert right == pytest.approx(0.1 * reach * 1000 / blocks.UNIT / inside)
    assert blocks.aggregate_of(1.0, 1.0, 0.01, 0.02, 200, 0, 1000).estimate is None  # all lie beyond
    assert blocks.aggregate_of(0.0, 0.99, 0.01, 0.02, 200, 0, 1000).estimate is None  # half on either side
    centres, halves = blocks.candidate_windows(100.0)
    assert centres.min() < -blocks.UNIT < blocks.UNIT < centres.max() and len(halves) < 50_000
    assert halves.max() == blocks.UNIT and halves.min() < blocks.UNIT / 1_000
    none = ask(drawn(4_000) | {"a": np.zeros(4_000, dtype=int)}, dpc.PureDP(4), 4, terms="lines")
    assert none.estimate is None and none.interval is None and "no window" in none.interval_reason


@pytest.mark.parametrize("spread", [0.7, 1.0, 1.3])
def test_the_mean_of_cut_answers_follows_a_centre_that_is_off(spread: float) -> None:
    normal = spread * np.random.default_rng(2).normal(size=400_000)
    for off in (0.0, 0.3):
        cut = np.clip(normal + off, -2.0, 2.0)
        inside = blocks.share_inside(float(cut.var()), 2.0)
        assert inside == pytest.approx(np.mean(np.abs(normal) < 2.0), abs=0.01)
        assert cut.mean() / inside == pytest.approx(off, abs=0.02)
    assert blocks.share_inside(0.0, 2.0) == 1.0 and blocks.share_inside(9.0, 2.0) == 0.8


@pytest.mark.parametrize("epsilon", [1e-9, 1e-7, 1e-5, 1e-3])
def test_a_loss_too_little_for_noise_is_refused_unspent_and_a_small_one_has_a_caveat(epsilon: float) -> None:
    try:
        result = ask(drawn(2_000), dpc.PureDP(epsilon), blocks=20)
    except LossError:
        assert epsilon < 1e-3
    else:
        assert any("missed by the window" in one for one in result.guarantee.caveats)


def test_a_block_with_one_arm_few_rows_or_nothing_left_of_treatment_has_no_answer() -> None:
    rng, none = np.random.default_rng(1), np.empty((40, 0), dtype=np.int64)
    given = Given(rng.normal(size=(40, 2)), none)
    a, y = (rng.random(40) < 0.5).astype(float), rng.random(40)
    determined, few = (given.numbers[:, 0] > 9).astype(float), given.at(np.arange(6))
    assert blocks.slope(a, y, given, "lines", True) is not None
    assert blocks.slope(np.zeros(40), y, given, "lines", True) is None
    assert blocks.slope(determined, y, given, "lines", False) is None
    assert blocks.slope(a[:6], y[:6], few, "products", True) is None
    assert blocks.slope(a[:2], y[:2], few, "lines", True) is None
    assert blocks.slope(a, y, Given(np.column_stack([a, y]), none), "lines", True) is None
