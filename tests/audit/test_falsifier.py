"""The falsifier catches wrong bounds and lets right ones stand, and what it finds can be checked by hand."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcausal.audit import falsify
from dpcausal.audit.falsifier import STARTS, distance
from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity
from tests.conformance import LEAST_EVALUATIONS, check_claim


def mean(rows):
    return float(rows.mean())


def columns(rows):
    return rows.sum(axis=0)


def of_mean(factor):
    return lambda m: factor / m


def stated(bound, norm=Norm.ABSOLUTE):
    return lambda m: Sensitivity(bound / m, norm, Relation.REPLACE_ONE, "a-mean")


def test_the_mean_keeps_its_bound_and_half_of_it_falls() -> None:
    right = falsify(mean, of_mean(1), sizes=[2, 7], columns=1)
    wrong = falsify(mean, of_mean(0.5), sizes=[2, 7], columns=1)
    assert not right.violated and right.ratio > 0.999 and right.summary().startswith("Not violated")
    assert wrong.violated and wrong.ratio > 1.99 and wrong.summary().startswith("VIOLATED")


def test_the_worst_pair_is_a_neighbour_pair_with_that_ratio_and_cannot_be_altered() -> None:
    found = falsify(lambda rows: rows.max(), 0.5, sizes=[4], columns=1)
    assert (found.rows != found.neighbour).any(axis=1).sum() == 1
    assert abs(found.rows.max() - found.neighbour.max()) / 0.5 == found.ratio
    for rows in (found.rows, found.neighbour):
        with pytest.raises(ValueError, match="read-only"):
            rows[0, 0] = 7


def own_scale(rows):
    """A normaliser that depends on the data."""
    width = np.ptp(rows[:, 0])
    return float(((rows[:, 0] - rows[:, 0].min()) / width).mean()) if width else 0.0


def one_exact_tie(rows):
    return mean(rows) + float(np.sum(rows[:, 0] == rows[0, 1]) > 2)


def tie_corrected(rows):
    """The divisor is the midranks' own variances: one record turns it from 1 to −1 at every m."""
    ranks = [(np.sign(c[:, None] - c[None, :])).sum(axis=1) for c in rows.T]
    spread = np.sqrt(float((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float(ranks[0] @ ranks[1]) / spread if spread else 0.0


@pytest.mark.parametrize(
    ("statistic", "bound", "domain", "least"),
    [(own_scale, of_mean(1), {"sizes": (25,), "columns": 1, "evaluations": 1_500}, 5),
     (one_exact_tie, of_mean(2), {"sizes": (12,), "evaluations": 3_000}, 1),
     (tie_corrected, 1, {"sizes": (30,), "evaluations": 3_000}, 1.999)],
)  # fmt: skip
def test_a_statistic_that_looks_at_its_own_data_is_caught(statistic, bound, domain, least) -> None:
    assert falsify(statistic, bound, **domain).ratio > least


@pytest.mark.parametrize(("norm", "bound"), [(Norm.L1, 3), (Norm.L2, 3**0.5), (Norm.LINF, 1)])
def test_vectors_are_searched_in_the_norm_of_their_claim(norm, bound) -> None:
    check_claim(lambda rows: rows.mean(axis=0), stated(float(bound), norm), sizes=(4,), columns=3)
    assert falsify(columns, 0.95 * bound, sizes=[3], columns=3, norm=norm).violated


def test_each_column_keeps_its_own_range_whatever_the_start_and_levels_confine_every_value() -> None:
    far = {"far": lambda rng, m, low, high: np.full((m, len(low)), 9.0)}
    for starts in (STARTS, far):
        found = falsify(lambda rows: rows.mean(axis=0), of_mean(6), sizes=(5,), columns=2, low=(0, -1), high=(2, 3),
                        norm=Norm.L1, starts=starts)  # fmt: skip
        assert found.ratio <= 1 + 1e-9
        assert np.all(found.rows >= [0, -1]) and np.all(found.neighbour <= [2, 3])
    found = falsify(mean, 1, sizes=(6,), columns=2, levels=(0, 0.25, 1), evaluations=300)
    assert set(np.unique(found.rows)) | set(np.unique(found.neighbour)) <= {0, 0.25, 1}


def test_an_answer_that_no_noise_covers_is_a_violation() -> None:
    broken = {
        "nan": lambda rows: rows[0, 0] / rows[0, 0] if rows[0, 0] else float("nan"),
        "infinite": lambda rows: 1.0 if rows[0, 0] else float("inf"),
        "another shape": lambda rows: np.zeros(1 if rows[0, 0] < 0.5 else 3),
        "another number of groups": lambda rows: np.unique(np.round(rows)),
    }
    for name, statistic in broken.items():
        found = falsify(statistic, 9.0, sizes=[3], norm=Norm.LINF, evaluations=200)
        assert found.violated and found.ratio == math.inf and "inf" in found.summary(), name


@pytest.mark.parametrize("kind", [int, np.int64, np.uint64, lambda value: np.array([value]), Fraction])
def test_large_integers_are_compared_exactly(kind) -> None:
    # As floats 2**60 and 2**60 + 1 are the same, and the change would be 0.
    found = falsify(lambda rows: kind(2**60 + int(rows[0, 0] >= 0.5)), 0.5, sizes=[3], evaluations=200)
    assert found.ratio == 2 and distance(2**80 + 1, 2**80, Norm.ABSOLUTE) == 1


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
    with pytest.raises(ParameterError):
        falsify(lambda rows: answer, 1, sizes=[3])


@pytest.mark.parametrize(("m", "columns"), [(1, 20), (3, 1), (5, 2), (30, 2)])
def test_every_pair_that_is_counted_is_a_different_pair_of_neighbours(m: int, columns: int) -> None:
    looked_at: list[bytes] = []

    def statistic(rows: np.ndarray) -> float:
        looked_at.append(rows.tobytes())
        return 0.0

    one_climb = {"random": STARTS["random"]}
    found = falsify(statistic, 1, sizes=[m], columns=columns, starts=one_climb, evaluations=400)
    assert found.evaluations == 400
    assert len(set(looked_at)) > 400  # each pair brings at least one data set that was not seen before


def test_a_statistic_that_sorts_in_place_does_not_change_the_pair() -> None:
    def smallest(rows: np.ndarray) -> float:
        rows.sort(axis=0)
        return float(rows[0, 0])

    found = falsify(smallest, 1.0, sizes=[3], columns=1, evaluations=300)
    assert abs(smallest(found.rows.copy()) - smallest(found.neighbour.copy())) == found.ratio
    assert (found.rows != found.neighbour).any(axis=1).sum() == 1


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize(("m", "columns"), [(1, 1), (2, 4), (7, 3)])
def test_every_start_has_its_shape_and_range(name, m, columns) -> None:
    rows = STARTS[name](np.random.default_rng(0), m, np.full(columns, -2.0), np.full(columns, 3.0))
    assert rows.shape == (m, columns) and rows.min() >= -2 and rows.max() <= 3


def test_a_claim_that_is_true_and_tight_passes_and_others_are_refused() -> None:
    box = {"sizes": (2, 9), "columns": 1}
    assert sum(one.evaluations for one in check_claim(mean, stated(1), **box)) >= LEAST_EVALUATIONS
    check_claim(mean, stated(1.2), **box, reached=0.8, mutant=0.75)  # its slack is stated
    for bound, options in ((0.95, {}), (1.2, {}), (1, {"evaluations": 500})):
        with pytest.raises(AssertionError):
            check_claim(mean, stated(bound), **box, **options)
    with pytest.raises(ValueError, match="cannot be caught"):
        check_claim(mean, stated(1.2), **box, reached=0.8)
