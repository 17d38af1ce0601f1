"""The direction of nobody and of one thing in two units; the count that decided, and the reason."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.direction.block_decisions import of_block

N = 6_000


def direction(x: Any, y: Any, seed: int, loss: Any = None, **options: Any) -> dpc.Direction:
    bounds = [dpc.Bounded(float(np.nanmin(v, initial=0)) - 1, float(np.nanmax(v, initial=0)) + 1) for v in (x, y)]
    loss = dpc.PureDP(4) if loss is None else loss
    schema = dpc.Schema({"x": bounds[0], "y": bounds[1]})
    table = dpc.Table({"x": x, "y": y}, schema, dpc.Ledger.in_memory(loss))
    with dpc.simulated_noise(seed):
        return dpc.direction(table, "x", "y", loss=loss, **options)


@pytest.mark.parametrize("n, epsilon", [(20_000, 1.0), (6_000, 1.0), (60_000, 0.2)])
def test_columns_of_nobody_have_no_verdict_more_often_than_its_level(n: int, epsilon: float) -> None:
    """Chance of a false alarm below 1e-8: each verdict has a chance of at most .1, measured .03 but for unlinked."""
    made = [direction(np.full(n, np.nan), np.zeros(n), seed, dpc.PureDP(epsilon)) for seed in range(30)]
    told = Counter(one.verdict for one in made)
    assert told["model rejected"] <= 3 and told["cannot distinguish"] <= 3 and told["no association detected"] <= 9
    assert told["inconclusive"] >= 20 and all(one.cause is None for one in made)


X = np.random.default_rng(3).gamma(2, 5, N) + 50
COPIES = {
    "another unit": 2.54 * X, "rounded": np.round(2.54 * X), "turned round": -X, "logarithm": np.log(X),
    "square": X**2, "shifted and rounded finely": np.round(1.8 * X + 32, 2),
}  # fmt: skip


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("model", ["additive", "location-scale"])
def test_one_thing_in_two_units_is_never_a_finding(copy: str, model: str) -> None:
    for pair in ((X, COPIES[copy]), (COPIES[copy], X)):
        found = direction(*pair, 2, method=dpc.methods.Verdict(model=model))
        assert found.verdict in ("cannot distinguish", "inconclusive") and found.cause is None and found.reason


def test_a_block_of_a_copy_is_linked_and_fits_both_ways_and_one_with_noise_is_judged() -> None:
    rng = np.random.default_rng(1)
    x = rng.gamma(2, 1, 200)
    leans = {of_block(x, 3 * x, seed)[1] for seed in range(20)}
    assert leans == {True, False}
    assert {(a, f, g) for a, _, f, g in (of_block(x, 3 * x, seed) for seed in range(20))} == {(True, False, False)}
    assert of_block(x, x**2 / 4 + rng.normal(0, 0.3, 200), 1)[3]


def test_the_lines_show_the_count_that_decides_and_an_open_verdict_has_its_reason() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    found = [direction(x, x**3 / 3 + rng.normal(size=N), seed, dpc.PureDP(0.5)) for seed in range(6)]
    for one in found:
        assert one.counts is not None and one.p_values is not None
        assert any(f" {one.counts[1]} of " in line for line in one.headline())
        assert bool(one.reason) == (one.cause is None)
        if one.verdict == "inconclusive":
            other = "y" if one.favoured == "x" else "x"
            needs = "linked", f"{one.favoured} -> {other} fits", f"{other} -> {one.favoured} misfits", "clear lean"
            lacking = [one.p_values[claim] for claim in needs if one.p_values[claim] > one.alpha]
            assert lacking and all(f"{p:.2g}" in one.reason for p in lacking)
    assert {one.verdict for one in found} >= {"inconclusive"}
