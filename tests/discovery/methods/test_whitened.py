"""Quartiles at which numbers are cut beside levels: against the laws that they were drawn from, and row by row."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpcausal as dpc
from dpcausal.discovery.methods.learned_cuts import QUARTILES, Law
from dpcausal.discovery.methods.whitened import row_length, squared_length
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.privacy.loss import affordable_zcdp
from tests.discovery.ways import graph_of

N = 40_000
LOSS = dpc.ApproxDP(1, 1e-6)


def released(frame: dict[str, Any], schema: dpc.Schema, method: str = "whitened") -> Any:
    return graph_of(frame, schema, LOSS, method=method)


@pytest.mark.parametrize(
    ("law", "upper"),
    [(stats.lognorm(1), 60.0), (stats.lognorm(1), 3_000.0), (stats.expon(), 15.0), (stats.norm(70, 2), 1_000.0)],
)
def test_columns_are_cut_near_the_quartiles_of_their_law_in_wide_bounds_too(law: Any, upper: float) -> None:
    rng = np.random.default_rng(2)
    schema = dpc.Schema({"x": dpc.Bounded(0, upper), "y": dpc.Bounded(0, upper), "z": dpc.Levels([0, 1])})
    frame = {"x": law.rvs(N, random_state=rng), "y": law.rvs(N, random_state=rng), "z": rng.integers(0, 2, N)}
    cuts = released(frame, schema).release.cuts
    assert set(cuts) == {"x", "y"}
    # Noise has a deviation of some 70 of 40,000 rows; the last cells are a four-thousandth of the bounds.
    last = upper / 4096
    for own in cuts.values():
        for cut, share in zip(own, QUARTILES, strict=True):
            assert law.cdf(cut - last) - 0.02 < share < law.cdf(cut + last) + 0.02


def test_a_skewed_cause_is_seen_without_cuts_and_its_parts_are_told() -> None:
    rng = np.random.default_rng(3)
    x = np.exp(rng.normal(size=N))
    y = (rng.random(N) < 0.2 + 0.3 * (x > 1)).astype(int)
    schema = dpc.Schema({"x": dpc.Bounded(0, 500), "y": dpc.Levels([0, 1])})
    found = released({"x": x, "y": y}, schema)
    assert found.graph.skeleton == {frozenset("xy")}
    assert any("noisy quartiles: 'x';" in words for words in found.guarantee.caveats)
    assert "Cut at noisy quartiles: x at 0." in found.release.summary()
    again = dpc.Release.from_json(found.release.to_json())
    assert again.cuts == found.release.cuts and again.to_dict() == found.release.to_dict()
    fixed = released({"x": x, "y": y}, schema, method="parities")
    assert not fixed.graph.skeleton
    assert any("one width: 'x';" in words for words in fixed.guarantee.caveats)


def test_declared_cuts_stay_and_quartiles_cost_their_share_only_where_they_are_learnt() -> None:
    rng = np.random.default_rng(4)
    frame = {"x": rng.random(500), "y": rng.integers(0, 2, 500)}
    for cuts, rounds in ((None, 4), ([0.3], 0)):
        schema = dpc.Schema({"x": dpc.Bounded(0, 1, cuts), "y": dpc.Levels([0, 1])})
        for method, more in (("whitened", 2), ("triples", 2)):  # two columns have no triple
            with recording_gate("low") as recording:
                found = released(frame, schema, method=method)
            labels = [passage.event.label for passage in recording.passages]
            assert labels.count("quartiles") == rounds and len(labels) == rounds + more
            spent = sum(passage.event.loss.exact_rho for passage in recording.passages)
            whole = affordable_zcdp(LOSS).exact_rho
            assert spent == whole if method == "whitened" else 0.6 * whole < spent < whole
            assert set(found.release.cuts) == ({"x"} if rounds else set())


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0, float("nan")])
def test_columns_that_are_constant_or_missing_are_cut_too(value: float) -> None:
    schema = dpc.Schema({"x": dpc.Bounded(0, 1), "far": dpc.Bounded(1e16, 1e16 + 4), "y": dpc.Levels([0, 1])})
    frame = {"x": np.full(50, value), "far": np.full(50, 1e16), "y": np.arange(50) % 2}
    found = released(frame, schema)
    assert not found.graph.skeleton
    assert dpc.Release.from_json(found.release.to_json()).to_dict() == found.release.to_dict()
    released(frame, schema, method="triples")


def test_points_of_all_rounds_are_weighed_by_their_noise() -> None:
    """A first round with much noise and a second with little: the quartiles are the second's."""
    law = Law(dpc.Bounded(0, 1))
    law.add_histogram(np.array([0.25, 0.5, 0.75]), np.array([1.0, 1.0, 1.0, 997.0]), 400.0, 10.0)
    law.add_histogram(np.array([0.25, 0.5, 0.75]), np.array([250.0, 250.0, 250.0, 250.0]), 1.0, 10.0)
    np.testing.assert_allclose(law.quartiles(), QUARTILES, atol=0.01)


def test_rows_are_shortened_later_where_that_alone_would_link_columns() -> None:
    loss, uneven, even = affordable_zcdp(dpc.ApproxDP(1, 1e-6)), [np.array([0.3, 0.7])] * 6, [np.full(6, 1 / 6)] * 6
    usual, longest = squared_length(7, loss), 1 + 6 * 0.7 / 0.3
    assert row_length(even, 20_000, loss) == squared_length(31, loss)
    assert row_length(uneven, 50, loss) == row_length(uneven[:1], 20_000, loss) * 7 / 2 == usual
    assert longest / np.sqrt(2) < row_length(uneven, 20_000, loss) < longest * np.sqrt(2)
    # Brute force at the usual length: the weighted correlation of two independent columns.
    high = np.random.default_rng(1).random((2_000_000, 6)) < 0.3
    weights = np.minimum(1.0, usual / (1 + np.where(high, 0.7 / 0.3, 0.3 / 0.7).sum(axis=1)))
    correlation = np.cov(high[:, :2].T, aweights=weights)[0, 1] / 0.21
    assert correlation > 1.4 / np.sqrt(20_000)


def test_levels_that_do_not_occur_leave_the_level_of_pairs_as_it_is() -> None:
    """300 pairs at nominal .01: more than 18 have probability below 1e-8."""
    pvalues = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        columns = {name: rng.choice([1, 4], 20_000, p=[0.3, 0.7]) for name in "abcdef"}
        schema = dpc.Schema(dict.fromkeys(columns, dpc.Levels(range(6))))
        release = graph_of(columns, schema, dpc.ApproxDP(1, 1e-6), seed=seed, method="whitened").release
        pvalues += [release.residual(x, y, ()).pvalue for x, y in combinations(range(6), 2)]
    assert np.mean(np.array(pvalues) < 0.01) <= 0.06
