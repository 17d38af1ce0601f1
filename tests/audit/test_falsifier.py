"""The falsifier catches wrong bounds and lets right ones stand (its use on our claims is in tests/statistics)."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcausal.audit import falsify
from dpcausal.audit.falsifier import STARTS
from dpcausal.errors import ParameterError
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


def test_an_answer_that_no_noise_covers_is_a_violation() -> None:
    broken = {
        "nan": lambda rows: rows[0, 0] / rows[0, 0] if rows[0, 0] else float("nan"),
        "infinite": lambda rows: 1.0 if rows[0, 0] else float("inf"),
        "another shape": lambda rows: np.zeros(1 if rows[0, 0] < 0.5 else 3),
        "another number of groups": lambda rows: np.unique(np.round(rows)),
    }
    for name, statistic in broken.items():
        found = falsify(statistic, 9.0, sizes=[3], norm=Norm.LINF, evaluations=200)
        assert found.violated and found.ratio == math.inf, name
        assert "inf" in found.summary()


@pytest.mark.parametrize("kind", [int, np.int64, np.uint64, lambda value: np.array([value]), Fraction])
def test_large_integers_are_compared_exactly(kind) -> None:
    # As floats 2**60 and 2**60 + 1 are the same, and the change would be 0.
    found = falsify(lambda rows: kind(2**60 + int(rows[0, 0] >= 0.5)), 0.5, sizes=[3], evaluations=200)
    assert found.ratio == 2


@pytest.mark.parametrize(
    ("bound", "wrong"),
    [
        (-1.0, {}), (0, {}), (float("nan"), {}), (float("inf"), {}), (None, {}), (lambda m: -1 / m, {}),
        (1, {"sizes": []}), (1, {"sizes": [0]}), (1, {"evaluations": 0}), (1, {"columns": 0}), (1, {"starts": {}}),
        (1, {"low": 2.0}), (1, {"high": float("inf")}), (1, {"levels": []}), (1, {"norm": "l1"}),
    ],
)  # fmt: skip
def test_a_search_that_could_not_find_anything_is_refused(bound, wrong) -> None:
    with pytest.raises(ParameterError):  # a negative bound, or no pair at all, passed as "Not violated"
        falsify(lambda rows: rows.sum(), bound, **{"sizes": [3], **wrong})


@pytest.mark.parametrize("answer", [None, "text", 1j, [None]])
def test_a_statistic_without_a_number_is_refused(answer) -> None:
    with pytest.raises(ParameterError, match="number"):
        falsify(lambda rows: answer, 1, sizes=[3])


@pytest.mark.parametrize(("m", "columns"), [(1, 20), (3, 1), (5, 2), (30, 2)])
def test_every_pair_that_is_counted_is_a_different_pair_of_neighbours(m: int, columns: int) -> None:
    asked: list[bytes] = []

    def statistic(rows: np.ndarray) -> float:
        asked.append(rows.tobytes())
        return 0.0

    one_climb = {"random": STARTS["random"]}
    found = falsify(statistic, 1, sizes=[m], columns=columns, starts=one_climb, evaluations=400)
    assert found.evaluations == 400
    assert len(set(asked)) > 400  # each pair brings at least one data set that was not seen before


def test_the_search_stays_in_its_range_whatever_the_start() -> None:
    far = {"far": lambda rng, m, low, high: np.full((m, len(low)), 9.0)}
    assert not falsify(lambda rows: rows.mean(), lambda m: 1 / m, sizes=[4], columns=1, starts=far).violated


def test_a_statistic_that_sorts_in_place_does_not_change_the_pair() -> None:
    def smallest(rows: np.ndarray) -> float:
        rows.sort(axis=0)
        return float(rows[0, 0])

    found = falsify(smallest, 1.0, sizes=[3], columns=1, evaluations=300)
    assert abs(smallest(found.rows.copy()) - smallest(found.neighbour.copy())) == found.ratio
    assert (found.rows != found.neighbour).any(axis=1).sum() == 1


def test_the_pair_that_was_found_cannot_be_altered() -> None:
    found = falsify(lambda rows: rows.mean(), 0.01, sizes=[3], columns=1, evaluations=50)
    with pytest.raises(ValueError, match="read-only"):
        found.rows[0, 0] = 7
    with pytest.raises(ValueError, match="read-only"):
        found.neighbour[0, 0] = 7
