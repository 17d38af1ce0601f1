"""The falsifier catches wrong bounds and lets right ones stand (its use on our claims is in tests/dependence)."""

import numpy as np

from dpcausal.audit import falsify
from dpcausal.privacy.sensitivity import Norm


def test_the_mean_keeps_its_bound_and_half_of_it_falls() -> None:
    right = falsify(lambda rows: rows.mean(), lambda m: 1 / m, sizes=[2, 7], columns=1)
    wrong = falsify(lambda rows: rows.mean(), lambda m: 0.5 / m, sizes=[2, 7], columns=1)
    assert not right.violated and right.ratio > 0.999
    assert wrong.violated and wrong.ratio > 1.99


def test_the_pair_that_is_shown_is_a_neighbour_pair_with_that_ratio() -> None:
    found = falsify(lambda rows: rows.max(), 0.5, sizes=[4], columns=1)
    assert (found.rows != found.neighbour).any(axis=1).sum() == 1
    assert abs(found.rows.max() - found.neighbour.max()) / 0.5 == found.ratio


def test_a_data_driven_scale_is_caught() -> None:
    def scaled(rows: np.ndarray) -> float:
        spread = np.ptp(rows[:, 0])
        return float(rows[:, 0].mean() / spread) if spread else 0.0

    assert falsify(scaled, lambda m: 1 / m, sizes=[5, 20], columns=1).violated


def test_the_norm_that_is_claimed_is_the_one_searched_in() -> None:
    def both(rows: np.ndarray) -> np.ndarray:
        return rows.sum(axis=0)

    assert not falsify(both, 2.0, sizes=[3], norm=Norm.L1).violated
    assert falsify(both, 1.9, sizes=[3], norm=Norm.L1).violated
    assert not falsify(both, 2**0.5, sizes=[3], norm=Norm.L2).violated
    assert falsify(both, 1.9**0.5, sizes=[3], norm=Norm.L2).violated


def test_the_summary_says_whether_it_is_violated() -> None:
    assert falsify(lambda rows: rows.mean(), 0.01, sizes=[3], columns=1).summary().startswith("VIOLATED")
    assert falsify(lambda rows: rows.mean(), 9.0, sizes=[3], columns=1).summary().startswith("Not violated")
