"""Of several arms the effect of one against another is that in everybody, whichever arm they are in."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from tests.effects.tables import EXACT, covered, effect_of, table_of

SCHEMA = {"a": dpc.Levels([0, 1, 2]), "x": dpc.Levels([0, 1]), "y": dpc.Bounded(0, 14)}
PURE = dpc.PureDP(1)
CHANCES = np.array([[0.4, 0.4, 0.2], [0.15, 0.15, 0.7]])
ASKED: dict[str, Any] = {"treated": 1, "control": 0}


def columns_of(seed: int, n: int = 8_000) -> dict[str, Any]:
    """Return a trial whose third arm is drawn more often where the effect is 3 than where it is 1: 2 on average."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, n)
    a = (rng.random(n)[:, None] > CHANCES[x].cumsum(axis=1)).sum(axis=1)
    return {"a": a, "x": x, "y": np.clip(5 + x + (1 + 2 * x) * (a == 1) + (a == 2) + rng.normal(size=n), 0, 14)}


@pytest.mark.parametrize("where", ["complete", "observed"])
def test_without_noise_it_is_the_g_formula_over_all_arms_with_its_closed_error(where: str) -> None:
    columns = columns_of(1)
    a, x, y = columns["a"], columns["x"], columns["y"]
    missing = np.random.default_rng(2).random(len(a)) < 0.3 * (where == "observed")
    method = dpc.methods.Stratified(population=where)
    table = table_of(columns | {"y": np.where(missing, np.nan, y)}, SCHEMA, EXACT)
    found = effect_of(table, EXACT, method, **ASKED)
    estimate, inner, gaps = 0.0, 0.0, np.zeros(len(a))
    for level in (0, 1):
        treated, control = (y[(a == arm) & (x == level) & ~missing] for arm in (1, 0))
        share = np.mean(x == level)
        gaps[x == level] = treated.mean() - control.mean()
        estimate += share * (treated.mean() - control.mean())
        inner += share**2 * (treated.var() / len(treated) + control.var() / len(control))
    assert found.estimate == pytest.approx(estimate, abs=1e-8)
    assert found.mean_treated - found.mean_control == pytest.approx(estimate, abs=1e-8)
    assert found.standard_error == pytest.approx(np.sqrt(inner + gaps.var() / len(a)), rel=0.01)


@pytest.mark.parametrize("method", ["stratified", "clusters", "probabilities", "sizes"])
def test_each_method_holds_the_effect_in_everybody(method: str) -> None:
    found = []
    for seed in range(30):
        columns = columns_of(seed)
        a, x = columns["a"], columns["x"]
        sizes = [[int(((a == arm) & (x == level)).sum()) for level in (0, 1)] for arm in range(3)]
        of: dict[str, Any] = {
            "probabilities": dpc.methods.RandomizedTrial(probabilities=CHANCES.T.tolist()),
            "sizes": dpc.methods.RandomizedTrial(sizes=sizes),
        }
        clusters = {"cluster": "c"} if method == "clusters" else {}
        table = table_of(columns | {"c": np.arange(len(a)) % 400}, SCHEMA, PURE)
        found.append(effect_of(table, PURE, of.get(method, "stratified"), seed, **ASKED, **clusters))
    hits = covered(found, 2)
    assert len(hits) >= 27 and sum(not hit for hit in hits) <= 5
    gaps = [one.mean_treated - one.mean_control - one.estimate for one in found]
    assert abs(np.mean(gaps)) < 0.03
    assert np.mean([one.standard_error for one in found]) < 0.09


def test_clusters_of_all_arms_have_the_error_of_the_influence_function() -> None:
    columns = columns_of(3, 6_000)
    cluster = np.random.default_rng(4).integers(0, 200, 6_000)
    a, x, y = columns["a"], columns["x"], columns["y"]
    found = effect_of(table_of(columns | {"c": cluster}, SCHEMA, EXACT), EXACT, "stratified", **ASKED, cluster="c")
    scores = np.zeros(len(a))
    for level in (0, 1):
        here = x == level
        means = [y[here & (a == arm)].mean() for arm in (0, 1)]
        scores[here] = means[1] - means[0] - found.estimate
        for arm, sign in ((0, -1), (1, 1)):
            own = here & (a == arm)
            scores[own] += sign * here.sum() / own.sum() * (y[own] - means[arm])
    sums = np.bincount(cluster, scores) / len(a)
    assert found.standard_error == pytest.approx(np.sqrt(sums @ sums), rel=0.05)
