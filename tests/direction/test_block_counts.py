"""The law of noisy counts: tails and chances are sums of it, p-values those of scipy and of simulated counts."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpcausal as dpc
from dpcausal.direction import block_decisions as bits
from dpcausal.direction.block_counts import (
    DRAWN_WIDTH,
    Counts,
    cube_chance,
    cube_tail,
    geometric_tail,
    least_holding,
    no_noise,
)
from dpcausal.direction.methods.verdict import (
    Verdict,
    claims_of,
    default_blocks,
    enough_rows,
    verdict_chances,
    verdict_of,
)
from dpcausal.direction.question import Pair
from dpcausal.privacy.noise import add_cube, simulated_noise

NAMES = ("x", "y")


def chances(noisy: list[tuple[int, int, int, int]], counts: Counts, alpha: float = 0.1) -> dict[str, float]:
    """Return how often each verdict follows from the noisy counts."""
    verdicts = [
        verdict_of(claims_of(counts, one, NAMES), "x" if 2 * one[1] >= counts.blocks else "y", NAMES, alpha)
        for one in noisy
    ]
    return {name: verdicts.count(name) / len(verdicts) for name in set(verdicts)}


@pytest.mark.proves("cube")
@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0, 20.0])
def test_the_tail_of_an_entry_is_the_sum_of_its_law(epsilon: float) -> None:
    q, r = math.exp(-epsilon), np.arange(1, 4_000)
    whole = 1 + (((2 * r + 1.0) ** 4 - (2 * r - 1.0) ** 4) * q**r).sum()
    law = [((2 * j + 1.0) ** 3 * q**j + ((24.0 * r[r > j] ** 2 + 2) * q ** r[r > j]).sum()) / whole for j in range(600)]
    for t in (1, 2, 3, 9, 50):
        assert cube_tail(epsilon)(t) == pytest.approx(sum(law[t:]), rel=1e-9)
    assert law[0] + 2 * sum(law[1:]) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("slacks", [(3, 0, 2, 5), (-2, 4, math.inf, 1), (math.inf, -9, math.inf, math.inf)])
def test_the_chance_that_no_entry_of_the_noise_goes_too_far_is_the_sum_over_the_cube(slacks: Any) -> None:
    r, epsilon = 8, 3.0  # beyond, e^−24 and less
    z = np.stack(np.meshgrid(*[np.arange(-r, r + 1)] * 4), axis=-1).reshape(-1, 4)
    law = np.exp(-epsilon * np.abs(z).max(axis=1))
    inside = law[(z >= -np.array(slacks)).all(axis=1)].sum() / law.sum()
    assert cube_chance(slacks, epsilon) == pytest.approx(inside, abs=1e-8)


@pytest.mark.parametrize(("blocks", "epsilon"), [(20, 1.0), (40, 0.5)])
def test_the_chances_of_verdicts_are_those_of_simulated_noise(blocks: int, epsilon: float) -> None:
    counts = Counts(blocks, cube_tail(epsilon), epsilon)
    whole = {
        "arrow": (blocks, blocks, 0, blocks), "neither": (blocks,) * 4, "both": (blocks, blocks, 0, 0),
        "unlinked": (0, blocks, 0, 0),
    }  # fmt: skip
    expected, scale = verdict_chances(counts, 0.1), 1 / epsilon * (1 + 1e-12)
    verdicts = {"arrow": "x causes y", "neither": "model rejected", "unlinked": "no association detected"}
    with simulated_noise(4):
        for name, verdict in verdicts.items():
            noisy: Any = [
                tuple(add_cube(np.array(whole[name]), scale, sensitivity=1, epsilon=epsilon).tolist())
                for _ in range(300)
            ]
            p = expected[name]
            # Noise may make an arrow of two misfits, or an association of none, now and then.
            assert abs(chances(noisy, counts).get(verdict, 0) - p) < 6 * math.sqrt(p * (1 - p) / 300) + 0.02
    assert expected["both"] < expected["unlinked"] < 1


def test_without_noise_what_can_come_out_is_certain_and_a_threshold_is_found_from_anywhere() -> None:
    assert verdict_chances(Counts(30, no_noise), 0.1) == dict.fromkeys(("arrow", "neither", "both", "unlinked"), 1.0)
    assert verdict_chances(Counts(3, no_noise), 0.1)["arrow"] == 0
    assert [least_holding(lambda count, at=at: count >= at, start) for at in (-900, 0, 7) for start in (-30, 7)] == [
        -900, -900, 0, 0, 7, 7
    ]  # fmt: skip


def test_a_correlation_that_is_said_to_show_does_so_in_about_two_blocks_of_five() -> None:
    rng, shown, b = np.random.default_rng(3), 0, 64
    for _ in range(300):
        x, e = rng.standard_normal((2, b))
        r = DRAWN_WIDTH / math.sqrt(b)
        shown += bits.dependence_pvalue(bits.kernel(x), bits.kernel(r * x + math.sqrt(1 - r * r) * e)) < bits.LEVEL
    assert 0.25 < shown / 300 < 0.55  # around .4, six standard errors of which are .17


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4])
def test_the_tail_at_small_epsilon_is_that_of_the_limit(epsilon: float) -> None:
    for t in (0.5, 2.0, 8.0):
        limit = math.exp(-t) * (t**3 + 6 * t**2 + 18 * t + 24) / 48
        assert cube_tail(epsilon)(round(t / epsilon)) == pytest.approx(limit, rel=1e-3)


@pytest.mark.proves("verdict-level")
@pytest.mark.parametrize("chance", [0.2, 0.4, 0.5])
def test_p_values_of_counts_are_those_of_simulated_ones(chance: float) -> None:
    counts, rng = Counts(20, cube_tail(1.0)), np.random.default_rng(3)
    with simulated_noise(5):
        noisy = [add_cube(rng.binomial(20, chance, 4), 1.0, sensitivity=1, epsilon=1.0) for _ in range(4_000)]
    drawn = np.array(noisy)[:, 0]
    for place in (2, 5, 8, 14):
        p = counts.at_least(place, chance)
        assert abs((drawn >= place).mean() - p) < 6 * math.sqrt(p * (1 - p) / 4_000)
        p = counts.at_most(place, chance)
        assert abs((drawn <= place).mean() - p) < 6 * math.sqrt(p * (1 - p) / 4_000)


@pytest.mark.proves("verdict-level")
def test_without_noise_p_values_are_scipys_binomial_tails_and_all_grow_as_they_should() -> None:
    for count in range(-1, 13):
        assert Counts(12, no_noise).at_least(count, 0.2) == pytest.approx(stats.binom(12, 0.2).sf(count - 1), abs=1e-12)
        assert Counts(12, no_noise).at_most(count, 0.4) == pytest.approx(stats.binom(12, 0.4).cdf(count), abs=1e-12)
    for tail in (cube_tail(0.3), geometric_tail(0.3)):
        up = [Counts(12, tail).at_least(count, 0.2) for count in range(-60, 80)]
        assert all(one >= other for one, other in itertools.pairwise(up)) and up[0] > 0.99 and up[-1] < 1e-4


@pytest.mark.parametrize("epsilon", [0.004, 0.3, 1.0])
def test_too_few_rows_for_an_arrow_are_named_with_how_many_are_enough(epsilon: float) -> None:
    table = dpc.Table(
        {name: np.zeros(400) for name in "xy"}, dpc.Schema(dict.fromkeys("xy", dpc.Bounded(-1, 1))),
        dpc.Ledger.in_memory(dpc.PureDP(epsilon)),
    )  # fmt: skip
    question, loss = Pair.of(table, "x", "y", None, 0.1), dpc.PureDP(epsilon)
    (caveat, *_) = Verdict().plan(question, loss).caveats(question, loss)
    rows = enough_rows(400, epsilon, 0.1)
    assert (rows is None) == (epsilon < 0.01) and (rows is None or f" {rows} rows" in caveat)
    if rows is not None:
        counts = Counts(default_blocks(rows, epsilon), cube_tail(epsilon), epsilon)
        assert verdict_chances(counts, 0.1)["arrow"] >= 0.8
