"""Fold-splitting: its bound is reached by models that memorise, and what it estimates is what its parts say."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import dpcausal as dpc
from dpcausal.errors import ParameterError
from dpcausal.mechanisms.blocks import assign_blocks
from dpcausal.papers.effects.fold_split import (
    ESTIMATORS,
    averages,
    fold_split,
    fold_split_sensitivity,
    lines,
    reach,
    scores,
)
from dpcausal.privacy.noise import generator_from_seed
from tests import factories
from tests.registry.effects import LEAST, as_told, one_fold_apart

Rows = Any


def drawn(n: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    a = rng.random(n) < 1 / (1 + np.exp(-x[:, 0]))
    return x, a, np.clip(0.2 * a + 0.3 * x[:, 0] + 0.1 * rng.normal(size=n), -1, 1)


def table(n: int, loss: Any, **more: Any) -> dpc.Table:
    x, a, y = drawn(n, 5)
    schema = dict.fromkeys("ag", dpc.Levels([0, 1])) | dict.fromkeys("yu", dpc.Bounded(-1, 1))
    columns = {"a": a.astype(int), "y": y, "u": x[:, 0], "g": np.arange(n) % 2} | more.pop("columns", {})
    return factories.table(columns, schema, loss, **more)


def ask(rows: dpc.Table, loss: Any, **options: Any) -> Any:
    return dpc.effect(rows, treatment="a", outcome="y", adjust=["u"], loss=loss, method=dpc.papers.FoldSplit(**options))


def in_folds(estimator: str, rows: Rows, where: Any, K: int) -> Any:
    """Return the statistic; a fold's models say what its first record tells."""
    x, a, y, kept = rows[:, [0, 3, 4, 5]], rows[:, 1] >= 0.5, rows[:, 2], rows[:, 6] >= 0.5
    folds = [np.flatnonzero(where == place) for place in range(K)]
    return fold_split(estimator, averages(x, a, y, kept, folds, LEAST, as_told), a, y, kept, LEAST)


def worst(estimator: str, m: int) -> tuple[Rows, Rows]:
    """Return rows, and what the first of them becomes, so that all scores move one way as far as they can."""
    rows, last = one_fold_apart(None, m, None, None), np.array([0.0, 1, 1, -1, -1, 0, 1])
    if estimator == "g-formula":  # the two means move against each other
        rows[:, 4], last[4] = -rows[:, 4], 1
    return rows, last


@pytest.mark.proves("fold-split")
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("K", [2, 3, 7])
def test_a_person_of_a_private_id_moves_two_folds_and_no_more_than_the_bound_for_them(estimator: str, K: int) -> None:
    (rows, last), where = worst(estimator, 40 * K), np.arange(40 * K) % K
    # Who leaves was the first of fold 0, and enters fold 1 as its first: there, too, another record told before.
    rows[1, 3:6] = rows[0, 3:6]
    other, moved = rows.copy(), where.copy()
    other[0], moved[0] = last, 1
    other[K, 3:6] = rows[K, 3:6] = last[3:6]
    change = np.abs(in_folds(estimator, other, moved, K) - in_folds(estimator, rows, where, K)).sum()
    bound = float(fold_split_sensitivity(estimator, len(rows), K, LEAST, dpc.Unit.PERSON).bound)
    of_one = float(fold_split_sensitivity(estimator, len(rows), K, LEAST).bound)
    assert of_one * (0.99 if K == 2 else 1) < change <= bound


def test_averages_are_those_of_ridge_and_logistic_regression_by_another_library() -> None:
    x, a, y = drawn(400, 1)
    parts = assign_blocks(400, 4, generator_from_seed(2))
    found = averages(x, a, y, np.ones(400, dtype=bool), parts, 0.05)
    expected, own = np.zeros((4, 400)), np.repeat(np.arange(4), 100)
    own[np.concatenate(parts)] = np.repeat(np.arange(4), 100)
    f = np.column_stack([x, np.ones(400)])
    for place, part in enumerate(parts):
        one, zero = (
            Ridge(alpha=0.1, fit_intercept=False).fit(f[part][a[part] == arm], y[part][a[part] == arm]).predict(f)
            for arm in (True, False)
        )
        chance = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10).fit(f[part], a[part]).predict_proba(f)[:, 1]
        expected += np.stack([one, zero, 1 / chance, 1 / (1 - chance)]) * (own != place) / 3
    assert np.abs(found - expected).max() < 1e-4


def test_a_record_moves_no_other_record_of_its_fold_and_every_other_by_one_fold_to_the_bit() -> None:
    x, a, y = drawn(300, 3)
    kept, parts = np.ones(300, dtype=bool), assign_blocks(300, 6, generator_from_seed(1))
    before = averages(x, a, y, kept, parts, 0.05)
    place = int(parts[2][7])
    for change in ("value", "left out"):
        others, still = y.copy(), kept.copy()
        if change == "value":
            others[place] = -others[place] + 0.5
        else:
            still[place] = False
        after = averages(x, a, others, still, parts, 0.05)
        assert np.array_equal(before[:, parts[2]], after[:, parts[2]])
        rest = np.setdiff1d(np.arange(300), parts[2])
        assert (np.abs(after - before)[:2, rest] <= 2 / 5 + 1e-12).all()
        assert not np.array_equal(before[:, rest], after[:, rest])


def test_a_fold_without_treated_or_without_records_has_models_and_values_of_any_kind_are_cut() -> None:
    x, a, y = drawn(60, 4)
    parts = [np.arange(30), np.arange(30, 60), np.zeros(0, dtype=np.int64)]
    none = np.zeros(60, dtype=bool)
    for arms, kept in ((none, ~none), (~none, ~none), (a, none)):
        found = averages(x, arms, y, kept, parts, 0.05)
        assert np.isfinite(found).all()
        assert np.abs(found[:2]).max() <= 1
        assert 1 / 0.95 <= found[2:].min() <= found[2:].max() <= 20

    def wild(*_: Any) -> Any:
        return lambda every: (np.full(len(every), np.nan), np.full(len(every), np.inf), np.full(len(every), np.nan))

    found = averages(x, a, y, ~none, parts[:2], 0.05, wild)
    assert np.allclose(found[:, 0], [0, 1, 2, 2])
    assert (lines(x[:0], a[:0], y[:0])(x)[2] == 0.5).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_scores_stay_within_their_reach(estimator: str) -> None:
    rng = np.random.default_rng(6)
    means = np.stack([*rng.choice([-1, 1], (2, 500)), *rng.choice([1 / 0.95, 20], (2, 500))])
    found = scores(estimator, means, rng.random(500) < 0.5, rng.choice([-1, 1], 500))
    assert np.abs(found).max() <= reach(estimator, 0.05) * (1 + 1e-12)


@pytest.mark.replication
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_estimate_is_near_the_effect_without_privacy_and_off_by_its_noise_with_it(estimator: str) -> None:
    plain = ask(table(2_000, dpc.NoPrivacy()), dpc.NoPrivacy(), estimator=estimator, folds=20)
    assert abs(plain.estimate - 0.2) < 0.03
    assert plain.noise_error == 0
    errors = []
    for seed in range(60):
        with dpc.simulated_noise(seed):
            found = ask(table(2_000, dpc.PureDP(4), missing="impute"), dpc.PureDP(4), estimator=estimator, folds=20)
        errors.append((found.estimate - plain.estimate) / found.noise_error)
    assert found.interval is None
    assert "noise alone" in found.interval_reason
    # Laplace noise of deviation 1: the mean square of 60 is within .3 and 3.5 but for 1e-8 where nothing is cut.
    assert 0.3 < np.mean(np.square(errors)) < 3.5


def test_rows_that_lack_a_column_are_left_out_and_their_number_is_paid_for_in_the_same_draw() -> None:
    gone = np.random.default_rng(7).random(6_000) < 0.3
    y = np.where(gone, np.nan, drawn(6_000, 5)[2])
    plain = ask(table(6_000, dpc.NoPrivacy(), columns={"y": y}), dpc.NoPrivacy(), folds=20)
    assert abs(plain.estimate - 0.2) < 0.03
    loss = dpc.PureDP(8)
    rows = table(6_000, loss, columns={"y": y})
    found = ask(rows, loss, folds=20)
    assert len(found.guarantee.proofs) == 2
    assert rows.ledger.remaining.epsilon == 0
    assert found.noise_error > 0


@pytest.mark.parametrize(
    ("options", "more"),
    [({"estimator": "both"}, {}), ({"folds": 1}, {}), ({"folds": 301}, {}), ({"least": 0.0}, {}), ({"least": 0.5}, {}),
     ({}, {"estimand": "att"}), ({}, {"groups": "g"})],
)  # fmt: skip
def test_what_it_does_not_answer_is_refused_before_anything_is_spent(options: Any, more: Any) -> None:
    rows = table(600, dpc.PureDP(1))
    with pytest.raises(ParameterError):
        dpc.effect(rows, treatment="a", outcome="y", adjust=[], loss=dpc.PureDP(1),
                   method=dpc.papers.FoldSplit(**options), **more)  # fmt: skip
    assert rows.ledger.remaining.epsilon == 1
