"""Tests asked of what was released: what they say without noise, what they cost, and what they refuse."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency, norm

import dpcausal as dpc
from dpcausal.errors import InfeasibleError, ParameterError
from tests.discovery.ways import TWO, graph_of
from tests.factories import table

NUMBERS = dpc.Schema({name: dpc.Bounded(-9, 9) for name in "xyz"})
LEVELS = dpc.Schema({"a": dpc.Levels([0, 1]), "b": dpc.Levels([0, 1, 2]), "c": dpc.Levels([0, 1])})


def numbers(rows: int, link: float) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    z, first, second = rng.standard_normal((3, rows))
    return {"x": 0.5 * z + first, "y": 0.5 * z + second + link * first, "z": z}


def levels(rows: int, link: float) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    a, other = rng.integers(0, 2, rows), rng.integers(0, 3, rows)
    return {"a": a, "b": np.where(rng.random(rows) < link, a, other), "c": rng.integers(0, 2, rows)}


def test_of_exact_moments_it_is_fishers_z_of_the_partial_correlation() -> None:
    columns = numbers(5_000, 0.03)
    table = dpc.Table(columns, NUMBERS, dpc.Ledger.without_privacy())
    found = dpc.moments(table, list("xyz"), loss=dpc.NoPrivacy()).ci_test("x", "y", given=["z"])
    precision = np.linalg.inv(np.corrcoef([columns[name] for name in "xyz"]))
    partial = -precision[0, 1] / math.sqrt(precision[0, 0] * precision[1, 1])
    assert found.pvalue == pytest.approx(2 * norm.sf(abs(math.atanh(partial)) * math.sqrt(5_000 - 1 - 3)), rel=1e-8)
    assert norm.sf(found.statistic) * 2 == pytest.approx(found.pvalue, rel=1e-8)


def test_of_an_exact_table_it_is_pearsons_chi_squared_test_but_for_a_fiftieth() -> None:
    columns = levels(5_000, 0.04)
    found = graph_of(columns, LEVELS, dpc.NoPrivacy()).release.ci_test("a", "b")
    counts = np.histogram2d(columns["a"], columns["b"], [2, 3])[0]
    assert found.pvalue == pytest.approx(chi2_contingency(counts, correction=False)[1], rel=0.02)


def test_it_costs_nothing_and_is_the_same_after_it_was_saved() -> None:
    ledger = dpc.Ledger.in_memory(dpc.ApproxDP(1, 1e-6))
    table = dpc.Table(numbers(20_000, 0.2), NUMBERS, ledger)
    release = dpc.moments(table, list("xyz"), loss=dpc.ApproxDP(1, 1e-6))
    left = ledger.remaining
    found = release.ci_test("x", "y", given=["z"])
    assert ledger.remaining == left and found.decision == "dependent"
    assert dpc.Release.from_json(release.to_json()).ci_test("x", "y", given=["z"]).pvalue == found.pvalue
    assert found.guarantee.loss == dpc.ApproxDP(1, 1e-6) and "linear link alone" in found.details()


def test_what_was_not_released_is_refused() -> None:
    table = dpc.Table(levels(3_000, 0.1), LEVELS, dpc.Ledger.in_memory(dpc.PureDP(3)))
    release = dpc.discover(table, loss=dpc.PureDP(1)).release
    for wrong in (("a", "d", []), ("a", "a", []), ("a", "b", ["b"]), ("a", "b", "c"), ("a", "b", None)):
        with pytest.raises(ParameterError):
            release.ci_test(wrong[0], wrong[1], given=wrong[2])
    with pytest.raises(ParameterError, match="alpha"):
        release.ci_test("a", "b", alpha=1.0)
    cells = dpc.cells(table, by=["a", "c"], loss=dpc.PureDP(1))
    with pytest.raises(ParameterError, match="no test is made from a release of cells"):
        cells.ci_test("a", "c")


def test_a_pair_that_was_not_released_together_is_said_to_be_untested() -> None:
    columns = {f"v{place}": np.arange(2_000) % (place + 2) % 2 for place in range(5)}
    release = graph_of(columns, TWO, dpc.ApproxDP(1, 1e-6), method=dpc.methods.Parities(max_order=1)).release
    with pytest.raises(InfeasibleError, match="v0 and v1 cannot be tested given v2, v3"):
        release.ci_test("v0", "v1", given=["v2", "v3"])


def test_a_column_of_levels_is_given_by_its_name_in_a_release_of_moments() -> None:
    rng = np.random.default_rng(1)
    c = rng.integers(0, 3, 4_000)
    columns = {"x": rng.normal(size=4_000) + c, "y": rng.normal(size=4_000) + c, "c": c}
    schema = {"x": dpc.Bounded(-6, 9), "y": dpc.Bounded(-6, 9), "c": dpc.Levels([0, 1, 2])}
    loss = dpc.ApproxDP(4, 1e-6)
    with dpc.simulated_noise(1):
        released = dpc.moments(table(columns, schema, loss), ["x", "y", "c"], loss=loss)
    found, same = (released.ci_test("x", "y", given=given) for given in (["c"], ["c = 1", "c = 2"]))
    assert (found.pvalue, found.given) == (same.pvalue, ("c",)) and found.pvalue > 1e-3
    assert released.ci_test("x", "y", given=[]).pvalue < 1e-6
