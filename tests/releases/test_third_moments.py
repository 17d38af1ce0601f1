"""Full tests given two columns: exact on enumerated laws where additive ones fail, the noise's law, the saved form."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.releases.third_moments import NoisyTriples
from dpcausal.statistics.level_moments import constant, features, third_entries
from tests.releases.test_level_moments import exact as pairs_of

NAMES = ("x", "z", "w", "y")
TRIPLES = ((0, 1, 2), (1, 2, 3))


def law(seed: int, sizes: tuple[int, int, int, int] = (3, 2, 3, 2)) -> Any:
    """Return a joint law of x, z, w, y: x and y turn on z and w together, and are independent given both."""
    rng = np.random.default_rng(seed)
    both = rng.dirichlet(5 * np.ones(sizes[1] * sizes[2])).reshape(sizes[1:3])
    x, y = (rng.dirichlet(np.ones(k), size=sizes[1:3]) for k in (sizes[0], sizes[3]))
    return np.einsum("zw,zwx,zwy->xzwy", both, x, y)


def exact(joint: Any, n: int, deviations: tuple[float, float] = (0.0, 0.0), noise: Any = None) -> NoisyTriples:
    """Return the release of a law without shortening; ``noise`` draws for both parts."""
    pairs = pairs_of(joint, n)
    shares, matrix = [np.array(p) for p in pairs.shares], pairs.matrix
    tables, thirds = [features(p) for p in shares], np.zeros(third_entries(shares, TRIPLES) + 1)
    for place in np.ndindex(joint.shape):
        parts = [table[code] for table, code in zip(tables, place, strict=True)]
        products = [np.einsum("a,b,c->abc", *(parts[k] for k in triple)).ravel() for triple in TRIPLES]
        thirds += n * joint[place] * np.concatenate([*products, [constant(len(thirds) - 1)]])
    if noise is not None:
        upper = np.triu(noise.normal(0, deviations[0], matrix.shape))
        upper[np.diag_indices(len(upper))] *= np.sqrt(2)
        matrix, thirds = matrix + upper + np.triu(upper, 1).T, thirds + noise.normal(0, deviations[1], thirds.shape)
    return NoisyTriples(NAMES, n, pairs.places, pairs.shares, matrix, deviations[0], TRIPLES, thirds, deviations[1])


def test_a_pair_is_apart_given_two_columns_that_separate_it_where_the_additive_part_is_not() -> None:
    for seed in range(5):
        release = exact(law(seed), 10**6)
        full, additive = release.residual(0, 3, (1, 2)), release.pairs.residual(0, 3, (1, 2))
        assert full is not None and additive is not None and full.freedom == additive.freedom
        assert full.statistic < 1e-6 * additive.statistic and additive.statistic > 100
        assert release.residual(0, 3, (1,)) == release.pairs.residual(0, 3, (1,))
        assert release.residual(0, 1, (2, 3)) == release.pairs.residual(0, 1, (2, 3))  # no triple of 0, 2, 3


def test_what_is_left_is_the_mean_covariance_in_the_strata() -> None:
    """A law in which x and y are linked given z and w, against the covariances of each stratum."""
    rng = np.random.default_rng(1)
    joint = rng.dirichlet(np.ones(36)).reshape(3, 2, 3, 2)
    release, n = exact(joint, 10**6), 10**6
    strata = joint.sum(axis=(0, 3))
    x, y = (features(np.array(release.shares[k])) for k in (0, 3))
    mean = np.einsum("xzwy,xa,yb->ab", joint, x, y)
    own, other = np.einsum("xzwy,xa->zwa", joint, x), np.einsum("xzwy,yb->zwb", joint, y)
    mean -= np.einsum("zwa,zwb,zw->ab", own, other, 1 / strata)
    # H of one column: with nothing merged or shortened, roots are identities, so that H is undone by the two roots.
    h, _, _ = release._link(0, 3, (1, 2))
    left, left_y = release._left(0, (1, 2)), release._left(3, (1, 2))
    np.testing.assert_allclose(np.linalg.inv(left.root) @ h @ np.linalg.inv(left_y.root), mean, atol=1e-9)
    assert n == release.n


def test_under_independence_the_statistic_has_the_law_that_is_stated() -> None:
    """Noise of the triples far above that of the rest; as if there were none, the statistic is tens of times that."""
    joint, rng = law(1, (2, 2, 2, 2)), np.random.default_rng(2)
    clear, found = exact(joint, 10**7, (1_000.0, 30_000.0)), []
    for _ in range(400):
        noise = rng.normal(0, 30_000.0, clear.thirds.shape)
        noise[-1] = 0  # that of the constant is a small part where there are many products
        left = replace(clear, thirds=clear.thirds + noise).residual(0, 3, (1, 2))
        assert left is not None
        found.append(left.statistic)
    assert abs(np.mean(found) - 1) < 0.25  # standard error .07


def test_the_order_of_the_columns_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    release = exact(law(2), 10**5, (300.0, 300.0), rng)
    ordered = release.by_name()
    assert ordered.names == ("w", "x", "y", "z") and ordered.triples == ((0, 1, 3), (0, 2, 3))
    one, other = release.residual(0, 3, (1, 2)), ordered.residual(1, 2, (0, 3))
    assert one is not None and other is not None and one.statistic == pytest.approx(other.statistic, rel=1e-9)


def test_fresh_noise_is_declared() -> None:
    release = exact(law(1), 1000, (7.0, 5.0), np.random.default_rng(4))
    coins = generator_from_seed(1)
    moved = np.stack([release.with_extra_noise(coins, 0.5).thirds - release.thirds for _ in range(300)])
    assert abs(moved.std() / 5 / 0.5**0.5 - 1) < 0.05
    assert release.with_extra_noise(coins, 0.5).thirds_deviation == pytest.approx(5 * 1.5**0.5)


def test_every_number_comes_back_and_without_triples_only_pairs_are_tested() -> None:
    release = exact(law(2), 1000, (3.0, 2.0), np.random.default_rng(5))
    copy: Any = dpc.Release.from_json(release.to_json())
    assert copy.to_dict() == release.to_dict() and copy.residual(0, 3, (1, 2)) == release.residual(0, 3, (1, 2))
    assert copy.residual(0, 3, (1,)) == release.residual(0, 3, (1,))
    cut = replace(release, cuts={"w": (0.5,)})
    assert cut.pairs.cuts == cut.cuts and cut.pairs.to_dict()["cuts"] == cut.to_dict()["cuts"]
    none: Any = dpc.Release.from_json(json.dumps({**release.to_dict(), "triples": [], "thirds": [0.0]}))
    assert none.residual(0, 3, (1, 2)) == release.pairs.residual(0, 3, (1, 2))
