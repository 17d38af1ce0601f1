"""Rows with a missing value, columns without any value, and one quantity in two units."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.direction.block_decisions import of_block
from tests.factories import table


def direction_of(x: Any, y: Any, seed: int, loss: Any, **options: Any) -> dpc.Direction:
    bounds = [dpc.Bounded(float(np.nanmin(v, initial=0)) - 1, float(np.nanmax(v, initial=0)) + 1) for v in (x, y)]
    asked = table({"x": x, "y": y}, {"x": bounds[0], "y": bounds[1]}, loss)
    with dpc.simulated_noise(seed):
        return dpc.direction(asked, "x", "y", loss=loss, **options)


def test_an_empty_block_votes_at_random() -> None:
    empty, method = np.full(360, np.nan), dpc.methods.MajorityVote(blocks=9)
    margins = [direction_of(empty, empty, seed, dpc.PureDP(5), method=method).margin for seed in range(40)]
    assert all(margin is not None for margin in margins) and len(set(margins)) > 3


def test_without_privacy_the_complete_rows_alone_are_asked() -> None:
    rng, found = np.random.default_rng(2), []
    x = rng.uniform(-1, 1, 360)
    columns = np.stack([x, x**3 + 0.3 * rng.uniform(-1, 1, 360)])
    columns[rng.random(columns.shape) < 0.3] = np.nan
    for rows in (columns, columns[:, ~np.isnan(columns).any(axis=0)]):
        asked = table(dict(zip("xy", rows, strict=True)), dict.fromkeys("xy", dpc.Bounded(-2, 2)))
        with dpc.simulated_noise(3):
            found.append(dpc.direction(asked, "x", "y", score="hsic", loss=dpc.NoPrivacy()).scores)
    assert found[0] == found[1] and found[0] is not None


@pytest.mark.parametrize("n, epsilon", [(20_000, 1.0), (6_000, 1.0), (60_000, 0.2)])
def test_columns_without_values_have_no_verdict_more_often_than_its_level(n: int, epsilon: float) -> None:
    # False alarm below 1e-8: each verdict has a chance of at most .1, measured .03 but for no association.
    answers = [direction_of(np.full(n, np.nan), np.zeros(n), seed, dpc.PureDP(epsilon)) for seed in range(30)]
    verdicts = Counter(one.verdict for one in answers)
    assert verdicts["model rejected"] <= 3 and verdicts["cannot distinguish"] <= 3
    assert verdicts["no association detected"] <= 9 and verdicts["inconclusive"] >= 20
    assert all(one.cause is None for one in answers)


@pytest.mark.parametrize("complete", [0, 40])
def test_columns_that_hardly_a_record_has_both_of_have_no_verdict_more_often_than_its_level(complete: int) -> None:
    # Each verdict has a chance of at most .1, and seeds are fixed.
    x, verdicts = np.random.default_rng(4).exponential(size=6_000), Counter[str]()
    for seed in range(30):
        own = np.random.default_rng(seed).exponential(size=6_000)
        first, second = np.arange(6_000) % 2 == 0, np.arange(6_000) % 2 == 1
        first[:complete] = second[:complete] = True
        y = np.where(second, x + own, np.nan)
        verdicts[direction_of(np.where(first, x, np.nan), y, seed, dpc.PureDP(1)).verdict] += 1
    assert verdicts["model rejected"] <= 3 and verdicts["cannot distinguish"] <= 3 and verdicts["inconclusive"] >= 20


X = np.random.default_rng(3).gamma(2, 5, 6_000) + 50
COPIES = {
    "another unit": 2.54 * X, "rounded": np.round(2.54 * X), "turned round": -X, "logarithm": np.log(X),
    "square": X**2, "shifted and rounded finely": np.round(1.8 * X + 32, 2),
}  # fmt: skip


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("model", ["additive", "location-scale"])
def test_one_thing_in_two_units_is_never_a_finding(copy: str, model: str) -> None:
    for pair in ((X, COPIES[copy]), (COPIES[copy], X)):
        found = direction_of(*pair, 2, dpc.PureDP(4), method=dpc.methods.Verdict(model=model))
        assert found.verdict in ("cannot distinguish", "inconclusive") and found.cause is None and found.reason
        assert bool(found.warnings()) == (found.verdict == "inconclusive")  # more rows would not tell them apart


def test_a_block_of_a_copy_is_linked_and_fits_both_ways_and_one_with_noise_is_judged() -> None:
    rng = np.random.default_rng(1)
    x = rng.gamma(2, 1, 200)
    assert {of_block(x, 3 * x, seed)[1] for seed in range(20)} == {True, False}
    assert {(a, f, g) for a, _, f, g in (of_block(x, 3 * x, seed) for seed in range(20))} == {(True, False, False)}
    assert of_block(x, x**2 / 4 + rng.normal(0, 0.3, 200), 1)[3]


def test_the_lines_show_the_count_that_decides_and_an_open_verdict_has_its_reason() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=6_000)
    found = [direction_of(x, x**3 / 3 + rng.normal(size=6_000), seed, dpc.PureDP(0.5)) for seed in range(6)]
    for one in found:
        assert one.counts is not None and one.p_values is not None
        assert any(f" {one.counts[1]} of " in line for line in one.headline())
        assert bool(one.reason) == (one.cause is None)
        if one.verdict == "inconclusive":
            other = "y" if one.favoured == "x" else "x"
            needs = "linked", f"{one.favoured} -> {other} fits", f"{other} -> {one.favoured} misfits", "clear lean"
            missing = [one.p_values[claim] for claim in needs if one.p_values[claim] > one.alpha]
            assert missing and all(f"{p:.2g}" in one.reason for p in missing)
    assert {one.verdict for one in found} >= {"inconclusive"}
