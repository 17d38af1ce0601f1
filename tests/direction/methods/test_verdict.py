"""The verdict: one row moves each count by one, p-values are those of the distribution, and counts imply verdicts."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.interpolate import CubicSpline

import dpcausal as dpc
from dpcausal.core.multiplicity import adjusted_pvalues
from dpcausal.direction import block_decisions as bits
from dpcausal.direction.block_counts import Counts, cube_tail
from dpcausal.direction.methods.verdict import LEVEL, arrow_pvalue, claims_of, decisions_of_blocks, default_blocks
from dpcausal.direction.question import Pair
from dpcausal.direction.scores import lsnm
from dpcausal.direction.scores.lsnm import Spline
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.methods import Verdict
from dpcausal.privacy.noise import add_cube, generator_from_seed, simulated_noise
from tests.direction.neighbours import SCHEMA, Rows, ask
from tests.direction.test_block_counts import chances


def cubic(n: int, seed: int = 0) -> Rows:
    """Return rows of which x is the cause, on the bounds of the tests' schema."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    return np.column_stack([x, np.clip(1 + x**3 + 0.6 * x**2 + 0.2 * rng.standard_normal(n), -1, 3)])


def dropping(rows: Rows) -> dpc.Table:
    """Return a table that leaves out rows with a missing value."""
    return dpc.Table({"x": rows[:, 0].copy(), "y": rows[:, 1].copy()}, SCHEMA, dpc.Ledger.in_memory(dpc.PureDP(1)))


def cube_noise(counts: Any, epsilon: float) -> tuple[int, int, int, int]:
    noisy = add_cube(np.asarray(counts), 1 / epsilon * (1 + 1e-12), sensitivity=1, epsilon=epsilon)
    a, d, f, g = noisy.tolist()
    return a, d, f, g


def favoured_first(pairs: Iterable[tuple[Any, Any]]) -> int:
    """Return how many blocks favour their first column as the cause."""
    return sum(decisions_of_blocks(x, y, seed)[1] for seed, (x, y) in enumerate(pairs))


@pytest.mark.parametrize(("x", "chances"), [
    (np.ones(60), (0, 0.5, 0, 0)),  # constant: not associated, fits both ways and favours at random
    (np.zeros(5), (0.4, 0.5, 0.4, 0.4)),  # too few rows
])  # fmt: skip
def test_a_block_that_says_nothing_has_random_bits_of_the_stated_chances(x: Any, chances: Any) -> None:
    counts = np.sum([decisions_of_blocks(x, np.arange(float(len(x))), seed) for seed in range(2_000)], axis=0)
    for count, chance in zip(counts, chances, strict=True):
        assert abs(count - 2_000 * chance) <= 6 * math.sqrt(2_000 * chance * (1 - chance))  # a false alarm of 2e-9


def test_exchanging_the_columns_exchanges_what_a_block_says() -> None:
    for seed in range(8):
        x, y = cubic(133, seed).T
        a, d, f, g = decisions_of_blocks(x, y, 1)
        is_clear = lsnm.joint_normality_pvalue(x, y) < bits.LEVEL  # else a random bit takes its place, either way round
        assert decisions_of_blocks(y, x, 1) == (a, d != is_clear, g, f)


def test_the_tests_inside_a_block_have_about_their_level_and_see_dependence() -> None:
    rng = np.random.default_rng(2)
    kernels = [bits.kernel(rng.standard_normal(100)) for _ in range(400)]
    pairs = zip(kernels[::2], kernels[1::2], strict=True)
    level = np.mean([bits.dependence_pvalue(one, other) < 0.1 for one, other in pairs])
    assert level < 0.1 + 6 * math.sqrt(0.09 / 200)
    x = rng.uniform(-1, 1, 100)
    assert bits.dependence_pvalue(bits.kernel(x), bits.kernel(x**2 + 0.1 * rng.standard_normal(100))) < 1e-3


def test_the_smoothest_spline_is_the_weighted_line_and_the_roughest_goes_through_its_knots() -> None:
    rng = np.random.default_rng(5)
    v = np.sort(rng.uniform(-1, 1, 12))
    u, w = np.sin(3 * v) + 0.1 * rng.standard_normal(12), rng.uniform(0.5, 2, 12)
    spline = Spline(v)
    Z, values = spline._directions(w)
    smooth = Z[:, values < 1e-8] @ (Z[:, values < 1e-8].T @ (w * u))
    assert smooth == pytest.approx(np.polyval(np.polyfit(v, u, 1, w=np.sqrt(w)), v), abs=1e-8)
    knots = v[np.linspace(0, 11, 5).round().astype(int)]
    natural = CubicSpline(knots, np.sin(3 * knots), bc_type="natural")
    places = np.flatnonzero(np.isin(v, knots))
    assert spline._X @ natural(knots) == pytest.approx(natural(v), abs=1e-10)
    assert spline._X[places] == pytest.approx(np.eye(5), abs=1e-12)


def test_leave_one_out_residuals_are_those_of_fits_without_the_row() -> None:
    rng = np.random.default_rng(6)
    v = rng.uniform(-1, 1, 60)
    u = np.sin(3 * v) + 0.2 * rng.standard_normal(60)
    spline = Spline(v)
    _, left = spline.fit(u)
    Z, values = spline._plain
    penalties = np.geomspace(1e-3 / values[-1], 1e3 / values[2], 24)

    def missed(penalty: float) -> float:
        H = Z @ np.diag(1 / (1 + values * penalty)) @ Z.T
        return float((((u - H @ u) / (1 - np.diagonal(H))) ** 2).sum())

    best = min(penalties, key=missed)
    for row in (0, 17, 59):
        X = spline._X
        keep = np.arange(60) != row
        b = np.linalg.solve(X[keep].T @ X[keep] + best * spline._S, X[keep].T @ u[keep])
        assert left[row] == pytest.approx(u[row] - X[row] @ b, rel=1e-5)


@pytest.mark.proves("lsnm")
def test_the_score_of_a_gaussian_pair_is_that_of_its_law_and_changes_sign_with_the_columns() -> None:
    rng = np.random.default_rng(7)
    differences = []
    for _ in range(60):
        x = rng.standard_normal(200)
        y = x + rng.standard_normal(200)
        first, second = lsnm.scores(x, y, generator_from_seed(1))
        mirrored = lsnm.scores(y, x, generator_from_seed(1))
        assert second - first == pytest.approx(-(mirrored[1] - mirrored[0]), abs=1e-12)
        differences.append(second - first)
    # Linear and Gaussian: both informations are 0.
    assert abs(np.mean(differences)) < 6 * np.std(differences) / math.sqrt(60)


def test_location_scale_noise_favours_the_cause_where_additive_noise_is_misled() -> None:
    rng, right = np.random.default_rng(8), 0
    for _ in range(20):
        x = rng.uniform(-1, 1, 300)
        forward, backward = lsnm.scores(x, x + np.exp(1.5 * x) * 0.4 * rng.standard_normal(300), generator_from_seed(2))
        right += forward < backward
    assert right >= 17  # by chance: 1e-3; the seed is fixed


def test_a_scale_that_explains_little_costs_a_forced_choice_nothing() -> None:
    rng = np.random.default_rng(9)
    x = rng.uniform(-1, 1, 300)
    y = np.tanh(2 * x) + 0.3 * rng.standard_normal(300)
    u, v = lsnm.with_unit_spread(x, y, generator_from_seed(2))
    plain = [lsnm.entropy(a) + lsnm.entropy(Spline(a).fit(b)[1]) for a, b in ((u, v), (v, u))]
    assert lsnm.scores(x, y, generator_from_seed(2)) == tuple(plain)
    steep = x + np.exp(2 * x) * 0.4 * rng.standard_normal(300)
    u, v = lsnm.with_unit_spread(x, steep, generator_from_seed(2))
    assert lsnm.scores(x, steep, generator_from_seed(2))[0] < lsnm.entropy(u) + lsnm.entropy(Spline(u).fit(v)[1]) - 0.08


def wide(step: float, seed: int, heap: bool) -> tuple[Any, Any]:
    """Return a rounded column, cut at both ends if there is to be a heap, and one of its own."""
    x, y = np.random.default_rng([seed, 9]).standard_normal((2, 120))
    rounded = np.round(x / step) * step
    return (np.clip(rounded, -1, 1) if heap else rounded), y


@pytest.mark.parametrize(("step", "heap"), [(0.5, True), (0.2, True), (0.02, True), (0.2, False)])
def test_a_rounded_or_clipped_column_is_neither_cause_nor_effect_for_that(step: float, heap: bool) -> None:
    # Six standard errors of 100 random bits: a false alarm of 2e-9.
    assert 20 < favoured_first(wide(step, seed, heap) for seed in range(100)) < 80
    x, y = wide(step, 1, heap)
    assert all(map(math.isfinite, lsnm.scores(x, y, generator_from_seed(1))))


NORMAL = [np.random.default_rng(seed).standard_normal((4, 133)) for seed in range(60)]


@pytest.mark.parametrize(("pairs", "least", "most"), [
    # The effect of a Gaussian cause, cut at a bound: six standard errors of random bits.
    ([(np.maximum(u + v, -1.5), v) for u, v, _, _ in NORMAL], 8, 52),
    # x = a log y + noise is additive the wrong way round: without the test of ranks 55 of 60 blocks favour y.
    ([(u, np.exp(u + v)) for u, v, _, _ in NORMAL], 8, 52),
    # y = zw is x²/4 less a square that x = z + w knows nothing of: without ``is_cancelled`` 58 of 60 favour x.
    ([(z + w + u / 2, z * w + v / 2) for z, w, u, v in NORMAL], 0, 39),
], ids=["cut effect", "monotone scales", "product of causes"])  # fmt: skip
def test_pairs_without_a_direction_of_their_own_favour_neither_column(pairs: Any, least: int, most: int) -> None:
    assert least <= favoured_first(pairs) <= most


@pytest.mark.parametrize("kind", ["normal", "square", "uniform"])
def test_the_test_of_ranks_has_about_its_level_and_sees_what_is_not_gaussian(kind: str) -> None:
    rejected = 0
    for seed in range(100):
        rng = np.random.default_rng([seed, 4])
        x, e = rng.uniform(-1, 1, (2, 150)) if kind == "uniform" else rng.standard_normal((2, 150))
        y = x + 0.5 * e + (x**2 if kind == "square" else 0)
        rejected += lsnm.joint_normality_pvalue(x, y) < bits.LEVEL
        assert lsnm.joint_normality_pvalue(np.exp(x), np.exp(y)) == lsnm.joint_normality_pvalue(x, y)
    # Two tests of level .1, and their distribution is near: at most .2 and six standard errors of 100.
    assert rejected < 45 if kind == "normal" else rejected > 60


def test_a_spread_that_follows_the_cause_is_no_misfit_of_the_model_that_has_one() -> None:
    counts = np.zeros((2, 4))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 1, 200)
        y = np.sin(4 * x) + np.exp(np.sin(4 * x + 1) - 1) * rng.standard_normal(200)
        counts += [decisions_of_blocks(x, y, seed, model) for model in bits.MODELS]
    additive, scaled = counts
    assert additive[2] >= 15 and scaled[2] <= 5  # x -> y misfits
    assert scaled[1] >= 17 and scaled[3] >= 12  # x is favoured, and y -> x misfits


@pytest.mark.parametrize(("shares", "found"), [((1, -1), True), ((1, -0.8), True), ((1, -0.6), False), ((1, 1), False)])
def test_parts_cancel_if_their_third_cumulants_do_whatever_the_scale(
    shares: tuple[float, float], found: bool
) -> None:
    skewed = stats.expon.ppf((np.arange(400) + 0.5) / 400)
    explained, left = (share * np.random.default_rng(seed).permutation(skewed) for seed, share in enumerate(shares))
    cubes = [stats.skew(part) * np.var(part) ** 1.5 for part in (explained, left)]
    assert found == (cubes[1] < 0 and abs(sum(cubes)) < 0.65 * max(map(abs, cubes)))
    for scale in (1.0, -3.0, 1e-3):
        assert bits.is_cancelled(scale * (explained + left) + 5, scale * left) == found
    assert not bits.is_cancelled(skewed + np.linspace(-9, 9, 400), np.linspace(-9, 9, 400))  # one part is not skewed
    assert not bits.is_cancelled(np.ones(9), np.zeros(9))


def test_heaps_are_values_that_stick_out_of_their_neighbours() -> None:
    values = np.concatenate([np.zeros(30), np.linspace(0.1, 5, 60), np.full(3, 7.0), np.full(9, 9.0)])
    assert set(values[lsnm.heaped(values)]) == {0.0, 9.0}
    assert not lsnm.heaped(np.repeat(np.arange(12.0), [2, 4, 8, 14, 20, 24, 24, 20, 14, 8, 4, 2])).any()
    assert not lsnm.heaped(np.repeat([0.0, 1.0], [100, 3])).any()  # few values, of which none is a heap
    rng = np.random.default_rng(6)
    by_chance = [lsnm.heaped(np.round(rng.uniform(20, 80, 133))).any() for _ in range(200)]
    assert sum(by_chance) < 45  # of whole years about one block in nine, and six standard errors


def test_both_columns_are_as_coarse_as_the_coarser_one() -> None:
    rng = np.random.default_rng(4)
    coarse, fine = np.round(2 * rng.standard_normal(200)) / 2, rng.standard_normal(200)
    x, y = lsnm.with_unit_spread(coarse, fine, generator_from_seed(1))
    assert np.std(x) == pytest.approx(1) and np.std(y) == pytest.approx(1) and len(np.unique(y)) == 200
    # A step of half a deviation, and jitter as wide: the finer column moves by up to a step, and is else itself.
    assert 0.05 < np.abs(y - fine / fine.std()).mean() < 0.5 and np.corrcoef(y, fine)[0, 1] > 0.95
    alone = lsnm.with_unit_spread(fine, fine**3, generator_from_seed(1))[0]
    assert alone == pytest.approx((fine - fine.mean()) / fine.std(), abs=1e-12)


CORNERS = {
    "independent": (0.2, 0.5, 0.0, 1.0), "x misfits": (1.0, 1.0, 0.4, 1.0), "y does not misfit": (1.0, 1.0, 0.0, 0.2),
    "exchangeable, one way": (1.0, 0.5, 0.0, 1.0), "confounded": (1.0, 0.7, 0.4, 0.4),
}  # fmt: skip


@pytest.mark.proves("verdict-level")
@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize(("blocks", "epsilon"), [(30, 1.0), (200, 0.1)])
def test_an_arrow_that_is_not_warranted_comes_at_most_as_often_as_alpha(
    corner: str, blocks: int, epsilon: float
) -> None:
    # 1,500 verdicts; six standard errors above α = .1: a false alarm of 1e-9.
    rng, counts = np.random.default_rng(11), Counts(blocks, cube_tail(epsilon))
    with simulated_noise(12):
        noisy = [cube_noise(rng.binomial(blocks, CORNERS[corner]), epsilon) for _ in range(1_500)]
    verdicts = chances(noisy, counts)
    assert verdicts.get("x causes y", 0) + verdicts.get("y causes x", 0) < 0.1 + 6 * math.sqrt(0.09 / 1_500)


@pytest.mark.proves("verdict-level")
@pytest.mark.parametrize(("blocks", "epsilon"), [(100, 1.0), (500, 0.1)])
def test_the_more_blocks_the_clearer_must_side_and_fit_be_up_to_two_blocks_in_three(
    blocks: int, epsilon: float
) -> None:
    rng, counts = np.random.default_rng(13), Counts(blocks, cube_tail(epsilon), epsilon)
    for corner in ((1, 2 / 3, 0, 1), (1, 1, 1 / 3, 1)):
        with simulated_noise(14):
            noisy = [cube_noise(rng.binomial(blocks, corner), epsilon) for _ in range(120)]
        assert chances(noisy, counts).get("x causes y", 0) < 0.1 + 6 * math.sqrt(0.09 / 120)


@pytest.mark.parametrize(
    ("released", "verdict"),
    [
        ((30, 29, 1, 25), "x causes y"), ((30, 2, 25, 1), "y causes x"), ((30, 28, 28, 28), "model rejected"),
        ((30, 15, 0, 0), "cannot distinguish"), ((1, 15, 0, 0), "no association detected"),
        ((30, 29, 9, 25), "inconclusive"),
        ((30, 15, 1, 25), "inconclusive"), ((9, 29, 1, 25), "inconclusive"), ((30, 2, 1, 25), "inconclusive"),
    ],
)  # fmt: skip
def test_each_verdict_is_that_of_its_counts(released: tuple[int, int, int, int], verdict: str) -> None:
    counts = Counts(30, cube_tail(1.0))
    assert chances([released], counts) == {verdict: 1.0}
    with recording_gate(lambda event, value: np.array(released)):
        r = ask(cubic(1_500), method="verdict", blocks=30, rows_per_block=50)
    assert r.verdict == verdict and r.counts == released and r.margin == 2 * released[1] - 30
    assert (r.cause, r.effect) == {"x causes y": ("x", "y"), "y causes x": ("y", "x")}.get(verdict, (None, None))
    assert r.inconclusive == (verdict == "inconclusive") and (r.blocks, r.rows_per_block) == (30, 50)
    assert r.p_values is not None and r.p_sign == r.p_values["lean"] == counts.sign_pvalue(released[1])
    p_arrow = arrow_pvalue(r.p_values, str(r.favoured), "y" if r.favoured == "x" else "x")
    assert r.p_arrow == p_arrow and (p_arrow <= r.alpha) == (r.cause is not None)
    assert "30 blocks of 50 rows" in r.details()
    assert verdict != "no association detected" or "0.40" in r.headline()[1]


VOTING: dict[str, Any] = {
    "verdict": dpc.methods.Verdict(blocks=7, rows_per_block=50), "majority-vote": dpc.methods.MajorityVote(blocks=7),
}  # fmt: skip


def test_persons_who_are_known_to_be_in_the_data_move_one_block_and_others_two() -> None:
    rows = np.repeat(cubic(400), 2, axis=0)
    frame = {"x": rows[:, 0], "y": rows[:, 1], "id": np.repeat(np.arange(400), 2)}
    for method in ("verdict", "majority-vote"):
        p_signs = {}
        for ids, blocks in (("public", 1), ("private", 2)):
            ledger = dpc.Ledger.in_memory(dpc.PureDP(2), person="id", ids=ids)
            table = dpc.Table(frame, SCHEMA, ledger, person="id", ids=ids)
            with recording_gate(lambda event, value: value * 0 + 5) as recording:
                r = dpc.direction(table, "x", "y", loss=dpc.PureDP(blocks), method=VOTING[method])
            assert r.n == 400 and r.guarantee.unit is table.unit and recording.passages[0].bound == blocks
            p_signs[ids] = r.p_sign
            assert method == "majority-vote" or ("7 blocks of at most 50 rows" in r.details()) == (ids == "private")
        assert p_signs["private"] == p_signs["public"]  # twice the noise at twice the epsilon


def test_the_default_for_everyone_is_a_verdict_with_its_claims_and_of_few_rows_votes() -> None:
    r = dpc.direction(dropping(cubic(300)), "x", "y", loss=dpc.PureDP(1))
    assert (r.method, r.score) == ("verdict", "lsnm") and r.guarantee.proofs == ("block-bits", "cube", "verdict-level")
    assert r.guarantee.private and r.guarantee.loss == dpc.PureDP(1) and LEVEL in r.guarantee.caveats
    assert any("leaves a clear direction a chance of" in caveat for caveat in r.guarantee.caveats)
    assert ask(cubic(143), score=None).method == "majority-vote" and ask(cubic(144), score=None).method == "verdict"
    assert ask(cubic(300), score="hsic").method == "majority-vote"


@pytest.mark.replication
def test_an_easy_pair_gets_its_arrow_in_either_order_and_independent_columns_none() -> None:
    right = wrong = independent = 0
    for seed in range(6):
        rows = cubic(4_000, seed)
        with simulated_noise(seed):
            right += ask(rows, score=None).cause == "x"
            turned = np.column_stack([(rows[:, 1] - 1) / 2, 1 + 2 * rows[:, 0]])
            right += ask(turned, score=None).cause == "y"
            apart = ask(np.column_stack([rows[:, 0], np.random.default_rng(seed).permutation(rows[:, 1])]), score=None)
        wrong += apart.cause is not None
        independent += apart.verdict == "no association detected"
    assert right >= 9 and wrong == 0 and independent >= 3


def test_a_share_of_rows_asks_for_larger_and_fewer_blocks() -> None:
    whole, some = (ask(cubic(4_000), method="verdict", share=share) for share in (1.0, 0.5))
    assert (whole.blocks, whole.rows_per_block) == (30, 133) and (some.blocks, some.rows_per_block) == (30, 133)
    few = ask(cubic(1_000), method="verdict", share=0.5)
    assert (few.blocks, few.rows_per_block) == (10, 100)


def test_rows_of_the_largest_tables_are_left_out_at_random_and_that_is_said() -> None:
    assert [default_blocks(n, 1.0) for n in (144, 10_000, 10**5, 10**7)] == [3, 50, 500, 501]
    # At a small ε the noise asks for more.
    assert [default_blocks(10**6, epsilon) for epsilon in (0.1, 0.02, 0.001)] == [501, 1_500, 2_000]
    question = Pair.of(dropping(np.zeros((10**6, 2))), "x", "y", None, 0.1)
    planned = Verdict().plan(question, dpc.PureDP(1))
    assert (planned.blocks, planned.rows_per_block) == (501, 200)
    assert any("100200 of the rows were used" in caveat for caveat in planned.caveats(question, dpc.PureDP(1)))


def test_the_picture_shows_four_counts_on_a_scale_that_public_numbers_fix() -> None:
    scales = set()
    for released in ((30, 29, 1, 25), (400, -300, 5, 0)):
        with recording_gate(lambda event, value, released=released: np.array(released)):
            ax = ask(cubic(1_500), method="verdict", blocks=30, rows_per_block=50).plot()
        scales.add((ax.get_xlim(), ax.get_ylim()))
        assert [text.get_text() for text in ax.texts] == [str(count) for count in released]
        low, high = ax.get_xlim()
        dots = [float(line.get_xdata()[0]) for line in ax.lines if len(line.get_xdata()) == 1]
        assert len(dots) == 4 and all(low <= dot <= high for dot in dots)
    assert len(scales) == 1


@pytest.mark.proves("arrows-of-many")
def test_wrong_arrows_of_many_pairs_come_at_most_as_often_as_alpha() -> None:
    # Calls of six pairs whose blocks are associated by chance alone and of which one way fits.
    rng, counts, wrong = np.random.default_rng(3), Counts(30, cube_tail(1.0)), 0
    with simulated_noise(8):
        for _ in range(300):
            noisy = [cube_noise(rng.binomial(30, (1.0, 1.0, 0.05, 0.2)), 1.0) for _ in range(6)]
            pvalues = [arrow_pvalue(claims_of(counts, one, ("x", "y")), "x", "y") for one in noisy]
            wrong += min(adjusted_pvalues([*pvalues, *[1.0] * 6], "holm")) <= 0.1
    assert wrong / 300 < 0.1 + 6 * math.sqrt(0.09 / 300)


def test_a_public_guess_of_a_subgroups_share_sets_the_number_of_blocks() -> None:
    whole = dropping(cubic(4_000))
    part = whole.where("x", at_least=0.0, share=0.5)
    for method in ("verdict", "majority-vote"):
        with simulated_noise(1):
            answer = dpc.direction(part, "x", "y", loss=dpc.PureDP(0.5), method=method)
        half = dpc.direction(dropping(cubic(2_000)), "x", "y", loss=dpc.PureDP(0.5), method=method)
        assert answer.settings["blocks"] == half.settings["blocks"]
