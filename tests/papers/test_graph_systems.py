"""The systems of Priv-PC: proved rounds and totals, published scores against scipy, formulas against closed forms."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau, norm

import dpcausal as dpc
from dpcausal.discovery.search.pc import Terms, find_skeleton
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.papers import PrivPc, SvtPc
from dpcausal.papers.discovery import sieve_and_examine as formulas
from dpcausal.papers.discovery.pc_system import RankScores, claimed_sensitivity, published_score, published_tau
from dpcausal.papers.discovery.priv_pc import Sieve, default_rounds
from dpcausal.papers.discovery.reconciled_tests import pvalues, smooth_median
from dpcausal.statistics.strata import contingency


def frame(rows: int = 2_000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, rows)
    b = np.where(rng.random(rows) < 0.9, a, 1 - a)
    return {"a": a, "b": b, "c": rng.integers(0, 2, rows), "d": rng.integers(0, 2, rows)}


SCHEMA = dpc.Schema({name: dpc.Levels([0, 1]) for name in "abcd"})


PROVED = PrivPc(constants="corrected"), SvtPc(constants="corrected")


def spent(method: Any, answers: str) -> tuple[list[tuple[str, float]], dpc.Discovery]:
    """Return what came to the gate, and its cost, when every answer is low or high."""
    loss = dpc.PureDP(3)
    with recording_gate(answers) as recording:  # type: ignore[arg-type]
        ledger = dpc.Ledger.in_memory(loss, accept_large_epsilon=True)
        found = dpc.discover(dpc.Table(frame(), SCHEMA, ledger, missing="impute"), loss=loss, method=method)
    return [(p.event.mechanism, p.event.loss.epsilon) for p in recording.passages], found  # type: ignore[union-attr]


@pytest.mark.parametrize("method", PROVED, ids=lambda method: method.name)
@pytest.mark.parametrize("answers", ["low", "high"])
def test_a_proved_system_never_spends_more_than_was_allotted(method: Any, answers: str) -> None:
    passages, found = spent(method, answers)
    assert 0 < sum(cost for _, cost in passages) <= 3 + 1e-9
    assert found.guarantee.loss == dpc.PureDP(3)


@pytest.mark.parametrize("kind", [PrivPc, SvtPc])
def test_a_run_that_fires_no_test_reports_the_whole_allotment(kind: Any) -> None:
    """Four copies of one column: nothing is near independence at this ε, so one round finds nothing."""
    same = frame()["a"]
    loss = dpc.PureDP(18)
    ledger = dpc.Ledger.in_memory(loss, accept_large_epsilon=True)
    table = dpc.Table(dict.fromkeys("abcd", same), SCHEMA, ledger, missing="impute")
    found = dpc.discover(table, loss=loss, method=kind(constants="corrected", max_order=0))
    assert len(found.graph.skeleton) == 6
    assert found.guarantee.loss == loss and ledger.remaining.epsilon == 0


def test_the_rounds_are_fixed_by_the_columns() -> None:
    assert [default_rounds(d) for d in (2, 5, 8)] == [1, 12, 36]


def test_the_published_score_is_that_of_scipys_tau_in_each_stratum() -> None:
    rng = np.random.default_rng(3)
    x, y, s = (rng.integers(0, 2, 500) for _ in range(3))
    counts = np.zeros((2, 2, 2), dtype=np.int64)
    np.add.at(counts, (x, y, s), 1)
    top = weight = 0.0
    for stratum in (0, 1):
        a, b = x[s == stratum], y[s == stratum]
        m = len(a)
        pairs = m * (m - 1) / 2
        untied = [math.sqrt(pairs - sum(k * (k - 1) / 2 for k in np.bincount(v))) for v in (a, b)]
        tau = kendalltau(a, b).statistic * untied[0] * untied[1] / pairs  # tau-b to tau-a
        w = 9 * m * (m - 1) / (2 * (2 * m + 5))
        top, weight = top + w * tau, weight + w
    assert published_tau(counts) == pytest.approx(top / math.sqrt(weight), rel=1e-9)
    assert published_score(counts) == pytest.approx(norm.sf(abs(top / math.sqrt(weight))), rel=1e-9)
    assert claimed_sensitivity(100_000) == pytest.approx(norm.cdf(6 / math.sqrt(100_000)) - 0.5)


def test_the_subsample_is_the_best_of_a_grid() -> None:
    for epsilon in (0.05, 0.5, 2.0, 5.0, 20.0):
        m = formulas.optimal_subsample(100_000, epsilon)

        def noise(rows: float, epsilon: float = epsilon) -> float:
            ratio = 100_000 / rows
            return math.sqrt(ratio) / formulas.subsampled_epsilon(ratio, epsilon / 2)

        grid = np.linspace(5_000, 100_000, 2_000)
        assert noise(m) <= min(noise(rows) for rows in grid) * (1 + 1e-6)


def sieve_frequency(score: float, tweak: float, scale: float, examine: float | None, draws: int = 200_000) -> float:
    """Return how often one query passes the sieve, and the examination if there is one, at T = 0."""
    rng = np.random.default_rng(4)
    bar = -tweak + rng.laplace(0, scale, draws)
    passed = score + rng.laplace(0, 2 * scale, draws) >= bar
    if examine is not None:
        passed &= score + rng.laplace(0, examine, draws) >= 0
    return float(passed.mean())


def test_the_error_bounds_hold_and_the_published_second_one_does_not() -> None:
    bound, sieve_epsilon, examine_epsilon, tweak = 1.0, 1.0, 1.0, 1.0
    scale, examine = 2 * bound / sieve_epsilon, 2 * bound / examine_epsilon
    for alpha in (1.0, 3.0, 6.0):
        missed = 1 - sieve_frequency(alpha, tweak, scale, None)
        assert missed <= formulas.type_one_error(alpha, tweak, bound, sieve_epsilon)
        passed = sieve_frequency(-alpha, tweak, scale, examine)
        arguments = alpha, tweak, bound, sieve_epsilon, examine_epsilon
        assert passed <= formulas.type_two_error(*arguments)
        assert passed > formulas.type_two_error(*arguments, published=True)


def test_the_moments_accountant_is_below_advanced_composition() -> None:
    by_moments = formulas.moments_accountant(1.0, 20.0, 50, 1e-5)
    rho = 50 / (2 * 20.0**2)
    by_zcdp = rho + 2 * math.sqrt(rho * math.log(1e5))
    assert 0.7 * by_zcdp < by_moments <= by_zcdp


@pytest.mark.parametrize("kind", ["g", "chi2"])
def test_the_pvalue_of_a_block_is_the_same_bits_whatever_the_other_blocks_are(kind: Any) -> None:
    rng = np.random.default_rng(6)
    for sizes, axes in (((2, 3, 2), [0, 1, 2]), ((2, 3, 2, 4), [3, 0]), ((3, 2, 2, 3), [2, 0, 3, 1]), ((2, 2), [1, 0])):
        for blocks in (1, 3, 8, 33):
            counts = rng.integers(0, 6, (blocks, *sizes))
            found = pvalues(counts, axes, kind)
            assert found.tobytes() == b"".join(pvalues(counts[k : k + 1], axes, kind).tobytes() for k in range(blocks))
            other = counts * rng.choice([0, 1, 10**6], (blocks, *[1] * len(sizes)))
            other[blocks // 2] = counts[blocks // 2]
            assert pvalues(other, axes, kind)[blocks // 2] == found[blocks // 2]


def test_the_sieve_passes_over_all_tests_up_to_the_one_it_found_and_ends_with_its_rounds() -> None:
    """Each round is told a place by hand; what is asked before that place stays, and after the last round all stays."""
    names = tuple("abcd")
    scores = RankScores(names, contingency([np.arange(20) % 2 for _ in names], [2] * 4))
    places, lengths = iter([2, 0, 1]), []

    def answers(event: Any, value: np.ndarray) -> np.ndarray:
        lengths.append(value.size)
        found = np.full(value.shape, -(10**9))
        found[next(places) :] = 0
        return found

    terms = Terms("pc", 0.1, 0, dpc.Knowledge())
    with recording_gate(answers):
        allotment = dpc.Ledger.in_memory(dpc.PureDP(9)).charge(dpc.PureDP(9), task="test")
        sieve = Sieve(scores, terms, allotment, dpc.PureDP(1), 3, 1, examines=False)
        found = find_skeleton(names, sieve.ask, Terms("pc", 0.05, 0, terms.knowledge), sieve.begin)
    # ab ac ad bc bd cd: the third; then of the last three the first; of the last two the second: no round is left.
    assert lengths == [6, 3, 2] and set(found.separating) == {frozenset("ad"), frozenset("bc"), frozenset("cd")}


def test_the_printed_bound_of_the_median_is_that_of_definition_10_and_moves_by_more_than_its_noise_pays_for() -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        M, beta = 2 * int(rng.integers(0, 7)) + 1, float(rng.uniform(0.05, 2))
        values = np.sort(rng.random(M))
        padded, m = [0.0] * (M + 2) + values.tolist() + [1.0] * (M + 2), (M - 1) // 2 + M + 2
        each = [max(padded[m + t] - padded[m + t - k - 1] for t in range(k + 2)) for k in range(M + 1)]
        middle, bound = smooth_median(rng.permutation(values), beta)
        assert middle == np.median(values)
        assert bound == pytest.approx(max(math.exp(-k * beta) * a for k, a in enumerate(each)), rel=1e-9)
    # Nissim, Raskhodnikova & Smith (2007), Lemma 2.6: noise of scale S/(ε/2) pays for log S to move by ε/(2 log(2/δ)).
    tight, looser = np.full(21, 0.5), np.append(np.full(20, 0.5), 1.0)
    printed = [smooth_median(values, 1.0)[1] for values in (tight, looser)]
    assert math.log(printed[1] / printed[0]) > 0.99 > 15 / (2 * math.log(2e6))
