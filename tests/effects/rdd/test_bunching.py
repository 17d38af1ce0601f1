"""The test of bunching at a cutoff: its level where densities bend, its power, and its fit by statsmodels."""

from typing import Any

import numpy as np
import pytest

from dpcausal.effects.rdd.bunching import _polynomial, bunching_pvalue
from dpcausal.effects.rdd.lines import SideFit

BINS = (np.arange(31) / 30) ** 2
SHAPES: dict[str, Any] = {
    "normal": lambda rng, n: rng.normal(-1.5, 1, n),
    "lognormal": lambda rng, n: np.exp(rng.normal(0, 1, n)) - 2,
    "Laplace": lambda rng, n: rng.laplace(-1, 1, n),
    "a hump at the cutoff": lambda rng, n: rng.normal(-0.3, 0.5, n),  # lines alone are rejected in 13 of 40
    "two humps": lambda rng, n: rng.normal(0, 1, n) + np.where(rng.random(n) < 0.5, -2, 2),
}


def sides(values: Any, rng: Any, deviation: float = 20.0) -> tuple[SideFit, SideFit]:
    """Return noisy counts on either side of 0, which end where a hundredth of the values lies farther."""

    def side(distances: Any) -> SideFit:
        ends = BINS * np.quantile(distances, 0.99)
        counts = np.histogram(distances, ends)[0] + rng.normal(0, deviation, 30)
        sums = np.stack([counts, 0 * counts, 0 * counts], axis=1)[None]
        return SideFit(ends[:-1], ends[1:], sums, np.diag([deviation**2, 0.0, 0.0]))

    return side(-values[values < 0]), side(values[values >= 0])


@pytest.mark.replication
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [20_000, 500_000])
def test_a_smooth_density_that_bends_does_not_bunch(shape: str, n: int) -> None:
    found = []
    for seed in range(40):
        rng = np.random.default_rng([1, seed])
        found.append(bunching_pvalue(sides(SHAPES[shape](rng, n), rng)))
    assert sum(one < 0.05 for one in found) <= 10 and sum(one < 0.3 for one in found) >= 3


@pytest.mark.parametrize("shape", SHAPES)
def test_those_who_move_across_the_cutoff_are_seen(shape: str) -> None:
    found = []
    for seed in range(10):
        rng = np.random.default_rng([2, seed])
        values = SHAPES[shape](rng, 100_000)
        moved = (values < 0) & (values > -0.25) & (rng.random(100_000) < 0.5)
        found.append(bunching_pvalue(sides(np.where(moved, -values, values), rng)))
    assert sum(one < 0.05 for one in found) >= 9


def test_without_noise_the_fit_is_the_poisson_regression_of_statsmodels() -> None:
    import statsmodels.api as sm

    rng = np.random.default_rng(3)
    side, _ = sides(rng.normal(-1, 1, 30_000), rng, 0.0)
    for degree in (1, 2):
        inside = side.middle < 2.0
        x, span = side.middle[inside] / 2.0, (side.far - side.near)[inside]
        powers = np.vander(x, degree + 1, increasing=True)
        theirs = sm.GLM(side.counts[inside], powers, sm.families.Poisson(), offset=np.log(span), var_weights=1 - x)
        robust = theirs.fit(tol=1e-12)
        ours: Any = _polynomial(side, 2.0, degree)
        assert ours.end == pytest.approx(robust.params[0], abs=1e-6)
        mean = robust.fittedvalues
        inverse = np.linalg.inv((powers.T * (mean * (1 - x))) @ powers)
        sandwich = inverse @ ((powers.T * (mean * (1 - x) ** 2)) @ powers) @ inverse
        assert ours.variance == pytest.approx(sandwich[0, 0], rel=1e-5)
        assert ours.chi_squared == pytest.approx(((side.counts[inside] - mean) ** 2 / mean).sum(), rel=1e-5)


def test_too_few_bins_give_no_pvalue() -> None:
    rng = np.random.default_rng(4)
    left, right = sides(rng.normal(size=10_000), rng)
    few = SideFit(right.near[:4], right.far[:4], right.sums[:, :4], right.noise)
    assert bunching_pvalue((left, few)) is None
