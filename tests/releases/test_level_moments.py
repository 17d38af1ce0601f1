"""What is read off whitened second moments: against enumerated laws, the law of the noise, and the saved form."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from dpcausal.privacy.noise import generator_from_seed
from dpcausal.releases.level_moments import NoisyWhitened
from dpcausal.statistics.level_moments import features, row_entries

NAMES = ("x", "z", "y")


def law(seed: int, sizes: tuple[int, int, int] = (3, 2, 3)) -> Any:
    """Return a joint law of x, z, y with x and y independent given z."""
    rng = np.random.default_rng(seed)
    z = rng.dirichlet(5 * np.ones(sizes[1]))
    x, y = (rng.dirichlet(2 * np.ones(k), size=sizes[1]) for k in (sizes[0], sizes[2]))
    return np.einsum("z,zx,zy->xzy", z, x, y)


def exact(joint: Any, n: int, deviation: float = 0.0, noise: Any = None) -> NoisyWhitened:
    """Return the release of a law without shortening, of three columns or more."""
    columns = range(joint.ndim)
    shares = [joint.sum(axis=tuple(k for k in columns if k != i)) for i in columns]
    tables = [features(p) for p in shares]
    D = row_entries(shares)
    matrix = np.zeros((D, D))
    for place in np.ndindex(joint.shape):
        u = np.concatenate([*(table[code] for table, code in zip(tables, place, strict=True)), [1.0]])
        matrix += n * joint[place] * np.outer(u, u)
    places = tuple(tuple(range(k)) for k in joint.shape)
    return NoisyWhitened(NAMES, n, places, tuple(tuple(p.tolist()) for p in shares),
                         matrix if noise is None else matrix + noise, deviation)  # fmt: skip


def test_a_pair_is_apart_given_the_column_that_separates_it_and_not_without_it() -> None:
    for seed in range(5):
        release = exact(law(seed), 10**6)
        given, alone = release.residual(0, 2, (1,)), release.residual(0, 2, ())
        assert given is not None and alone is not None
        assert given.statistic < 1e-8 and alone.statistic > 100 and given.freedom == alone.freedom == 4


def test_the_marginal_statistic_is_pearsons_of_the_joint_law() -> None:
    joint = law(3)
    pair = joint.sum(axis=1)
    expected = np.outer(pair.sum(axis=1), pair.sum(axis=0))
    found = exact(joint, 1000).residual(0, 2, ())
    assert found is not None
    assert found.statistic == pytest.approx(1000 * ((pair - expected) ** 2 / expected).sum(), rel=1e-6)
    np.testing.assert_allclose(exact(joint, 1000).pair(0, 1), joint.sum(axis=2), atol=1e-9)


@pytest.mark.parametrize("given", [(), (1,)])
def test_under_independence_the_statistic_has_the_law_that_is_stated(given: tuple[int, ...]) -> None:
    """Noise far above sampling error; a law without it, or with that of single entries alone, is far off."""
    joint = law(1, (3, 2, 2)) if given else np.einsum("x,z,y->xzy", [0.2, 0.5, 0.3], [0.5, 0.5], [0.6, 0.4])
    n, deviation = 10**7, 20_000.0
    D = 5
    rng = np.random.default_rng(4)
    found = []
    for _ in range(600):
        upper = np.triu(rng.normal(0, deviation, (D, D)))
        upper[np.diag_indices(D)] *= np.sqrt(2)
        result = exact(joint, n, deviation, upper + np.triu(upper, 1).T).residual(0, 2, given)
        assert result is not None
        found.append(result)
    statistics, strengths, added = (np.array([getattr(one, name) for one in found])
                                    for name in ("statistic", "strength", "added"))  # fmt: skip
    assert kstest(statistics, chi2(2).cdf).pvalue > 1e-8
    assert abs(statistics.mean() - 2) < 0.4  # standard error .08
    # φ² is the strength and what is added to it: of two numbers alike it deviates by its mean, standard errors .04.
    assert abs(strengths.mean() / added.mean()) < 0.2 and abs(strengths.std() / added.mean() - 1) < 0.3


def test_fresh_noise_has_the_stated_deviation_and_is_declared() -> None:
    release, coins = exact(law(1), 1000, 7.0), generator_from_seed(1)
    again = [release.with_extra_noise(coins) for _ in range(400)]
    moved = np.stack([one.matrix - release.matrix for one in again])
    assert all((one.matrix == one.matrix.T).all() and one.deviation == pytest.approx(7 * 2**0.5) for one in again)
    assert np.abs(moved.std(axis=0)[0, 1:] / 7 - 1).max() < 0.2
    assert np.abs(moved.std(axis=0).diagonal() / 7 / 2**0.5 - 1).max() < 0.2


def test_a_column_of_one_kept_level_is_not_tested() -> None:
    joint = np.einsum("xz,y->xzy", [[0.4, 0.1], [0.1, 0.4]], [1.0])
    release = exact(joint, 1000)
    assert release.residual(0, 2, ()) is None and release.residual(0, 1, ()) is not None
    alone, given = release.residual(0, 1, ()), release.residual(0, 1, (2,))
    assert alone is not None and given is not None and given.statistic == pytest.approx(alone.statistic)


def test_where_all_is_noise_every_test_answers_and_tells_little() -> None:
    """Their covariances are singular to rounding in a third of these."""
    for seed in range(12):
        noise = np.triu(np.random.default_rng(seed).normal(0, 1e6, (6, 6)))
        release = exact(law(1), 1000, 1e6, noise + np.triu(noise, 1).T)
        for x, y, z in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
            found = release.residual(x, y, (z,))
            assert found is not None and 0 <= found.statistic < chi2.isf(1e-9, found.freedom)


@pytest.mark.parametrize("given", [(1,), (1, 3), (1, 2)])
def test_two_levels_are_tested_by_the_same_numbers_as_more(given: tuple[int, ...]) -> None:
    """Columns of two levels have a path of their own: against the matrices of the formula, written out."""
    rng = np.random.default_rng(6)
    sizes = (2, 3, 2, 2, 2)
    shares = [rng.dirichlet(9 * np.ones(k)) for k in sizes]
    D = row_entries(shares)
    rows = rng.normal(size=(50, D))
    rows[:, -1] = 1.0
    release = NoisyWhitened(
        ("a", "b", "c", "d", "e"), 50, tuple(tuple(range(k)) for k in sizes), tuple(tuple(p.tolist()) for p in shares),
        rows.T @ rows, 2.0,
    )  # fmt: skip
    found, C, N = release.residual(0, 4, given), release.covariance, release._noise
    inside = [place for z in given for place in range(*release.block(z).indices(D))]
    x, y = release.block(0).start, release.block(4).start
    inverse = np.linalg.inv(C[np.ix_(inside, inside)])
    slopes = {end: inverse @ C[inside, end] for end in (x, y)}
    noise = {end: N[end, end] + slopes[end] @ N[np.ix_(inside, inside)] @ slopes[end] for end in (x, y)}
    cross = slopes[x] @ N[np.ix_(inside, inside)] @ slopes[y]
    left = {end: C[end, end] - C[inside, end] @ slopes[end] for end in (x, y)}
    sampling = left[x] * left[y]
    if len(given) == 1:
        weights, of_x = release._within(0, given[0])
        sampling = (weights * of_x[:, 0, 0] * release._within(4, given[0])[1][:, 0, 0]).sum()
    spread = sampling / release.count + (2.0 / release.count) ** 2 * (noise[x] * noise[y] + cross**2)
    h = C[x, y] - C[inside, x] @ slopes[y]
    assert min(left.values()) > 0.05 and np.linalg.eigvalsh(C[np.ix_(inside, inside)])[0] > 0.1  # nothing is floored
    assert found is not None and found.freedom == 1
    assert found.statistic == pytest.approx(h**2 / spread, rel=1e-9)
    assert found.strength == pytest.approx((h**2 - spread) / (left[x] * left[y]), rel=1e-9)


@pytest.mark.parametrize("size", [-1e6, 1e6, 1e12])
def test_numbers_that_no_rows_have_are_tested_too(size: float) -> None:
    """Whatever is released is searched: noise may be anything."""
    shares = [np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.5, 0.2, 0.3]), np.array([0.25] * 4)]
    D = row_entries(shares)
    places = tuple(tuple(range(len(p))) for p in shares)
    release = NoisyWhitened(NAMES, 30, places, tuple(tuple(p.tolist()) for p in shares), np.full((D, D), size), 22.0)
    for x, z, y in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        for given in ((), (z,)):
            found = release.residual(x, y, given)
            assert found is not None and np.isfinite(found.statistic)
