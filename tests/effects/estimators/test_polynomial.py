"""Squares and products beside the lines: where causes bend the effect holds, and what tells nothing is left out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.data.records import Rows
from dpcausal.effects.estimators.design import REACH, Design, QuadraticTerms
from dpcausal.effects.moments.adaptive import Shape
from dpcausal.effects.moments.release import JointMoments
from dpcausal.errors import ParameterError
from dpcausal.methods import Aipw

LOSS = dpc.ApproxDP(1, 1e-6)
SCHEMA = dpc.Schema({
    "a": dpc.Levels([0, 1]), "y": dpc.Bounded(-15, 15), "x": dpc.Bounded(-4, 4), "w": dpc.Bounded(-4, 4),
})  # fmt: skip


def bent(kind: str, n: int, seed: int) -> dict[str, Any]:
    """Return treatment and outcome that both go with a square, or with a product; the effect is .4."""
    rng = np.random.default_rng([seed, n])
    x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
    if kind == "yes or no":
        w = (w > 0.3).astype(float)
    chance, mean = {
        "square": (0.25 + 0.15 * np.minimum(x**2, 4), 0.8 * x**2),
        "product": (0.5 + 0.15 * np.clip(x * w, -2.5, 2.5), 0.8 * x * w),
        "yes or no": (0.35 + 0.3 * w, 0.8 * w + 0.5 * x),
    }[kind]
    a = (rng.random(n) < chance).astype(int)
    return {"a": a, "x": x, "w": w, "y": np.clip(0.4 * a + mean + rng.normal(size=n), -15, 15)}


def ask(columns: Any, loss: Any = LOSS, **words: bool) -> dpc.Effect:
    exact = isinstance(loss, dpc.NoPrivacy)
    ledger = dpc.Ledger.without_privacy() if exact else dpc.Ledger.in_memory(loss)
    with dpc.simulated_noise(3):
        return dpc.effect(
            dpc.Table(columns, SCHEMA, ledger), treatment="a", outcome="y", adjust=["x", "w"], loss=loss,
            method=Aipw(light_tails=True, **words),
        )  # fmt: skip


def test_where_treatment_and_outcome_go_with_a_square_or_a_product_the_interval_holds_and_lines_alone_miss() -> None:
    for kind in ("square", "product"):
        held, missed, off = [], [], []
        for seed in range(20):
            columns = bent(kind, 10_000, seed)
            found, lines = ask(columns), ask(columns, lines_only=True)
            assert found.interval is not None and found.estimate is not None and lines.estimate is not None
            held.append(found.interval[0] <= 0.4 <= found.interval[1])
            off.append(found.estimate - 0.4)
            missed.append(lines.estimate - 0.4)
        # 20 of .95: 15 or more with probability 1 - 3e-4; nothing is drawn afresh.
        assert sum(held) >= 15 and abs(np.mean(off)) < 0.02 and np.mean(missed) > 0.3


def test_the_answer_says_what_must_be_right() -> None:
    found, lines = (ask(bent("square", 10_000, 1), lines_only=only) for only in (False, True))
    assert any("and its squares and products" in one for one in found.guarantee.caveats)
    assert not any("square" in one for one in lines.guarantee.caveats)
    assert {one.name for one in found.balance} == {"x", "w", "x squared", "w squared", "x times w"}
    few = ask(bent("square", 4_000, 1))
    assert not any("square" in one for one in few.guarantee.caveats)


def test_a_yes_or_no_that_is_declared_as_a_number_loses_its_square_and_keeps_its_answer() -> None:
    columns = bent("yes or no", 10_000, 2)
    for loss in (LOSS, dpc.NoPrivacy()):
        found = ask(columns, loss)
        assert found.release is not None and "w squared" not in found.release.names
        assert found.interval is not None and found.interval[0] <= 0.4 <= found.interval[1]


def test_which_products_there_are() -> None:
    design = Design(
        ("y", "a", "x", "w", "site = s", "site = w"), ("y", "a", "x", "w", "site", "site"),
        (None, 1, None, None, 1, 2), np.zeros(6), np.ones(6), dpc.Levels([0, 1]),
    )  # fmt: skip
    assert design.numbers == [2, 3]
    assert design.pairs == [(2, 3), (2, 4), (2, 5), (3, 4), (3, 5)]


def test_a_product_is_a_function_of_its_own_record_and_of_what_was_released() -> None:
    design = Design(("y", "a", "x"), ("y", "a", "x"), (None, 1, None), np.zeros(3), np.ones(3), dpc.Levels([0, 1]))
    shape = Shape(np.array([0.0, 0.1, 0.2]), np.diag([1.0, 1.0, 0.25]))
    more, unit = QuadraticTerms.about(shape, [(2, 2)], design), np.random.default_rng(1).uniform(-1, 1, (500, 3))
    found = more(unit)
    assert np.allclose(found[:, 3], np.minimum(((unit[:, 2] - 0.2) / 0.25) ** 2 / REACH**2, 1), atol=1e-15)
    other = unit.copy()
    other[7] = 1.0
    assert np.array_equal(np.delete(more(other), 7, axis=0), np.delete(found, 7, axis=0))
    assert np.abs(found).max() <= 1 and more.names == ("x squared",)


def test_a_release_tells_what_its_products_are_and_keeps_it() -> None:
    columns = bent("square", 10_000, 4)
    found = ask(columns)
    release: Any = dpc.Release.from_json(found.release.to_json())  # type: ignore[union-attr]
    assert release.products == found.release.products and "x squared: ((x - " in str(release)  # type: ignore[union-attr]
    whole, exact = {name: columns[name] * 1.0 for name in ("x", "w")}, ask(columns, dpc.NoPrivacy()).release
    for one in exact.products:  # type: ignore[union-attr]
        place = exact.names.index(one.name)  # type: ignore[union-attr]
        assert exact.mean(place) == pytest.approx(one(whole).mean(), abs=1e-12)  # type: ignore[union-attr]
    for name, change in (("of", ["x"]), ("reaches", [0.0, 1.0]), ("middles", [1.0])):
        text = json.loads(found.release.to_json())  # type: ignore[union-attr]
        _part(text, "products")[0][name] = change
        with pytest.raises(ParameterError):
            dpc.Release.from_json(json.dumps(text))


def _part(text: Any, name: str) -> Any:
    """Return the entry of that name, wherever it stands."""
    if isinstance(text, dict):
        inside = (_part(one, name) for one in text.values())
        return text[name] if name in text else next((one for one in inside if one), None)
    return None


def test_moments_of_some_of_the_columns_are_those_of_a_release_of_these_alone() -> None:
    rng = np.random.default_rng(5)
    unit = np.clip(0.2 * rng.normal(size=(2_000, 4)) @ rng.normal(size=(4, 4)), -1, 1)
    rows = Rows({}, np.ones(2_000, dtype=np.bool_), {})
    names, ranges = ("y", "a", "b", "c"), (np.zeros(4), np.array([2.0, 1.0, 3.0, 1.0]))
    whole = JointMoments.without_noise(names, 2_000, ranges, unit, rows)
    alone = JointMoments.without_noise(names[:3], 2_000, (ranges[0][:3], ranges[1][:3]), unit[:, :3], rows)
    some = whole.among(names[:3])
    for outcome, on in (("y", ["a", "b"]), ("a", ["b"])):
        first, second = (of.ols(outcome, on).coefficients for of in (some, alone))
        assert [one.estimate for one in first] == pytest.approx([one.estimate for one in second], abs=1e-10)
    assert some.mean(2) == pytest.approx(alone.mean(2), abs=1e-10)


def test_noise_seen_in_some_of_the_columns_has_the_law_of_a_release_of_these_alone() -> None:
    rng, sigma, size = np.random.default_rng(6), 3.0, 4_000
    Q = np.linalg.qr(rng.normal(size=(5, 3)))[0]
    drawn = rng.normal(0, sigma / np.sqrt(2), (size, 5, 5))
    noise = (drawn + drawn.transpose(0, 2, 1)) / np.sqrt(2)
    noise[:, range(5), range(5)] = rng.normal(0, sigma, (size, 5))
    seen = Q.T @ noise @ Q
    spread = seen.var(axis=0) / (sigma**2 / 2 * (1 + np.eye(3)))
    assert np.abs(spread - 1).max() < 5 * np.sqrt(2 / size)  # nine entries, 5 deviations
