"""The effect's line: the slopes of scores on columns, which make the mean score right where the effect differs."""

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

import dpcausal as dpc
from dpcausal.effects.estimators import aipw
from dpcausal.effects.nuisance import effect_line
from dpcausal.effects.nuisance.design import FIRST
from dpcausal.effects.nuisance.effect_line import with_effect_line
from tests.effects.tables import EXACT, covered, effect_of, table_of

SCHEMA: dict[str, Any] = {"a": dpc.Levels([0, 1]), "y": dpc.Bounded(-6, 14), "x": dpc.Bounded(-4, 4),
                          "v": dpc.Bounded(-4, 4),
                          "z": dpc.Levels(range(4))}  # fmt: skip


def by_level(seed: int, n: int = 8_000) -> dict[str, Any]:
    """The effect is the level, 1.5 in the mean; so is the probability of treatment, 0.1 to 0.7."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 4, n)
    a = (rng.random(n) < 0.1 + 0.2 * z).astype(int)
    return {"z": z, "a": a, "y": np.clip(z + a * z + rng.normal(size=n), -6, 14)}


def by_number(seed: int, n: int = 10_000) -> dict[str, Any]:
    """The effect is x squared, 1 in the mean."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    a = (rng.random(n) < 1 / (1 + np.exp(-x))).astype(int)
    return {"x": x.clip(-4, 4), "a": a, "y": np.clip(x + a * x**2 + rng.normal(size=n), -6, 14)}


def by_two_that_are_nearly_equal(seed: int, n: int = 10_000) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    a, v = (rng.random(n) < 1 / (1 + np.exp(-x))).astype(int), x + 0.2 * rng.normal(size=n)
    return {"x": x.clip(-4, 4), "v": v.clip(-4, 4), "a": a, "y": np.clip(x + v + a + rng.normal(size=n), -6, 14)}


@pytest.mark.replication
@pytest.mark.parametrize(("draw", "adjust", "loss", "truth", "error"), [
    (by_level, ["z"], dpc.ApproxDP(2, 1e-6), 1.5, 0.063), (by_number, ["x"], dpc.ApproxDP(1, 1e-6), 1.0, 0.12),
    (by_two_that_are_nearly_equal, ["x", "v"], dpc.ApproxDP(1, 1e-6), 1.0, 0.1),
])  # fmt: skip
def test_intervals_hold_and_estimates_are_near_where_the_effect_differs(
    draw: Any, adjust: Any, loss: Any, truth: float, error: float
) -> None:
    results = [effect_of(table_of(draw(seed), SCHEMA, loss), loss, "aipw", seed, adjust=adjust) for seed in range(80)]
    holds = covered(results, truth)
    assert len(holds) >= 50 and np.mean(holds) >= 0.87  # 0.81 and 0.76 with one effect for all
    assert np.sqrt(np.mean([(one.estimate - truth) ** 2 for one in results])) < error


def by_rare_level(seed: int, share: float = 0.05, n: int = 20_000) -> dict[str, Any]:
    """The effect is 0.3, and 1.3 at the level with this share."""
    rng = np.random.default_rng(seed)
    x, v = rng.normal(size=n).clip(-4, 4), (rng.random(n) < share).astype(int)
    a = (rng.random(n) < 1 / (1 + np.exp(-0.6 * x - 0.5 * v))).astype(int)
    return {"x": x, "v": v, "a": a, "y": np.clip((0.3 + v) * a + 0.7 * x + 0.5 * v + rng.normal(size=n), -6, 14)}


@pytest.mark.parametrize("share", [0.05, 0.95])
def test_at_a_rare_level_the_effect_is_not_taken_for_several_times_what_it_is(share: float, monkeypatch: Any) -> None:
    slopes, loss = list[float](), dpc.ApproxDP(10, 1e-6)

    def recorded(fit: Any, *terms: Any) -> Any:
        lines = with_effect_line(fit, *terms)
        assert list(fit.rare) == ["v"] and not any("v" in name for name in fit.terms.names)
        slopes.append(lines.effect[fit.whole.names.index("v") - FIRST])
        return lines

    monkeypatch.setattr(aipw, "with_effect_line", recorded)
    schema = SCHEMA | {"v": dpc.Levels([0, 1])}
    results = [effect_of(table_of(by_rare_level(seed, share), schema, loss), loss, "aipw", seed, adjust=["x", "v"])
               for seed in range(8)]  # fmt: skip
    assert 0.7 < np.mean(slopes) < 1.4  # 2.6, of moments whose rows of the rare level are shortened
    assert abs(np.mean([one.estimate for one in results]) - 0.3 - share) < 0.02


def test_without_noise_the_slopes_are_those_of_least_squares_of_the_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs: list[Any] = []

    def recorded(fit: Any, rows: Any, lines: Any, raw: Any, share: Any) -> Any:
        pairs.append((lines, with_effect_line(fit, rows, lines, raw, share)))
        return pairs[-1][1]

    monkeypatch.setattr(effect_line, "CUT", 40.0)
    monkeypatch.setattr(aipw, "with_effect_line", recorded)
    columns = by_level(1)
    effect_of(table_of(columns, SCHEMA, EXACT), EXACT, "aipw", adjust=["z"])
    ((before, after),) = pairs
    dummies = np.column_stack([columns["z"] == level for level in (1, 2, 3)]).astype(float)
    raw = np.column_stack([columns["y"], columns["a"], dummies])
    scores = before.scores(raw)[0] - before.centre
    slopes = sm.OLS(scores, np.column_stack([dummies, np.ones(len(dummies))])).fit().params
    assert after.effect == pytest.approx(slopes, rel=0.02, abs=0.02)
    # A score's mean, given the columns, is the effect whatever the slopes are, where the probability is right.
    assert after.scores(raw)[0].mean() == pytest.approx(before.scores(raw)[0].mean(), abs=0.03)
    assert after.scores(raw)[0].std() < 0.9 * before.scores(raw)[0].std()
