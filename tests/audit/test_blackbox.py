"""The black-box audit: right mechanisms are not flagged, wrong ones are, and its bound is near the truth."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpcausal.audit import audit_samples
from dpcausal.audit.blackbox import _lower, _upper
from dpcausal.errors import ParameterError


def laplace(shift: float, scale: float, seed: int, size: int = 33_000):
    return np.random.default_rng(seed).laplace(shift, scale, size)


def geometric(shift: int, epsilon: float, seed: int):
    one, other = np.random.default_rng(seed).geometric(-math.expm1(-epsilon), (2, 22_000))
    return shift + one - other


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_laplace_noise_at_its_claim_is_not_flagged_and_the_bound_comes_near(epsilon: float) -> None:
    audit = audit_samples(laplace(0, 1 / epsilon, 1), laplace(1, 1 / epsilon, 2), claimed=epsilon)
    assert not audit.violated and audit.draws == 30_000
    assert audit.lower_bound > 0.85 * epsilon


def test_geometric_noise_at_its_claim_is_not_flagged() -> None:
    audit = audit_samples(geometric(0, 1.0, 3), geometric(1, 1.0, 4), claimed=1.0)
    assert not audit.violated and audit.lower_bound > 0.85


@pytest.mark.parametrize("factor", [0.5, 0.75])
def test_too_little_laplace_noise_is_flagged(factor: float) -> None:
    assert audit_samples(laplace(0, factor, 5), laplace(1, factor, 6), claimed=1.0).violated


def test_an_answer_that_is_withheld_on_one_side_only_is_flagged() -> None:
    audit = audit_samples([None] * 3_000, [1.0] * 3_000, claimed=4.0)
    assert audit.violated and audit.lower_bound > 4


def test_a_delta_forgives_an_event_of_that_probability() -> None:
    rare = [(np.random.default_rng(seed).random(22_000) < 0.02) * 1.0 for seed in (7, 8)]
    assert audit_samples(rare[0], np.zeros(22_000), claimed=1.0).violated
    assert not audit_samples(rare[1], np.zeros(22_000), claimed=1.0, delta=0.05).violated


def test_the_limits_are_those_of_clopper_and_pearson() -> None:
    for count in (0, 1, 40, 99, 100):
        exact = stats.binomtest(count, 100).proportion_ci(0.98, method="exact")
        assert _lower(count, 100, 0.01) == pytest.approx(exact.low, abs=1e-9)
        assert _upper(count, 100, 0.01) == pytest.approx(exact.high, abs=1e-9)


def test_equal_laws_are_flagged_no_more_often_than_stated() -> None:
    # 300 audits at a false alarm of .01 each: 18 or more flags have probability 2.5e-9.
    flags = 0
    for seed in range(300):
        one, other = laplace(0, 1, 1_000 + seed, 1_300), laplace(0, 1, 9_000 + seed, 1_300)
        flags += audit_samples(one, other, claimed=1e-3, false_alarm=0.01).violated
    assert flags < 18


@pytest.mark.parametrize("odd", [None, "no answer", True, float("nan")])
def test_an_output_that_is_no_number_is_an_event_and_can_be_printed(odd) -> None:
    rng = np.random.default_rng(12)
    mixed = [odd if rng.random() < 0.5 else float(rng.random()) for _ in range(4_000)]
    audit = audit_samples(mixed, rng.random(4_000), claimed=2.0)
    assert audit.violated and audit.lower_bound > 4
    assert str(odd) in audit.event and str(odd) in audit.summary()


def test_two_answers_of_yes_and_no_are_told_apart() -> None:
    rng = np.random.default_rng(13)
    one, other = rng.random(5_000) < 0.9, rng.random(5_000) < 0.1
    assert audit_samples(one.tolist(), other.tolist(), claimed=1.0).lower_bound > 1.9
    assert audit_samples(one, other, claimed=1.0).lower_bound > 1.9


@pytest.mark.parametrize(("size", "pilot"), [(150, 51), (150, 0), (50, None), (2_000, True)])
def test_too_few_outputs_are_refused(size, pilot) -> None:
    with pytest.raises(ParameterError, match="outputs"):
        audit_samples(np.zeros(size), np.zeros(size), claimed=1.0, pilot=pilot)
    with pytest.raises(ParameterError, match="as many outputs"):
        audit_samples(np.zeros(2_000), np.zeros(2_001), claimed=1.0)


def test_equal_texts_of_two_libraries_are_one_output() -> None:
    texts = ["yes", "no"] * 1_500
    assert audit_samples(texts, np.array(texts), claimed=1.0).lower_bound == 0
    truths = [True, False, None] * 1_000
    assert audit_samples(truths, np.array(truths, dtype=object), claimed=1.0).lower_bound == 0
    numbers = np.random.default_rng(14).random(3_000)
    assert audit_samples([np.array(number) for number in numbers], numbers.tolist(), claimed=1.0).lower_bound == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [(0.0, -0.0), (2**60, 2**60 + 1), (Fraction(1, 3), 1 / 3), (np.int64(2**60), np.int64(2**60 + 1)),
     (np.float32(0), np.float32(-0.0))],
)  # fmt: skip
def test_numbers_that_a_float_makes_one_are_told_apart(one, other) -> None:
    for first, second in (([one] * 2_000, [other] * 2_000), (np.array([one] * 2_000), np.array([other] * 2_000))):
        for a, b in ((first, second), (second, first)):
            assert audit_samples(a, b, claimed=1.0).violated
        assert audit_samples(first, list(first), claimed=1.0).lower_bound == 0


def test_columns_that_go_together_are_not_counted_as_so_many_draws() -> None:
    rng = np.random.default_rng(15)
    rare = [np.repeat((rng.random(3_000) < 0.01)[:, None], 50, axis=1) * 1.0 for _ in range(2)]
    with pytest.raises(ParameterError, match="one-dimensional"):  # the true loss is 0; 50 copies of a draw gave .008
        audit_samples(*rare, claimed=0.001)


@pytest.mark.parametrize("output", [(1.0,), [1.0], np.zeros(1), object(), 1j, b"yes"])
def test_an_output_that_cannot_be_compared_is_refused_instead_of_passed(output) -> None:
    with pytest.raises(ParameterError, match=type(output).__name__):
        audit_samples([output] * 1_200, [output] * 1_200, claimed=1.0)


@pytest.mark.parametrize("outputs", [iter([0.0] * 2_000), "a" * 2_000, np.ma.zeros(2_000), 7])
def test_outputs_that_are_no_list_are_refused(outputs) -> None:
    with pytest.raises(ParameterError, match="outputs"):
        audit_samples(outputs, np.zeros(2_000), claimed=1.0)


@pytest.mark.parametrize("wrong", [{"claimed": "1"}, {"claimed": True}, {"claimed": 1, "delta": None}, {"claimed": 0.0},
                                   {"claimed": 1.0, "delta": 1.0}])  # fmt: skip
def test_amounts_that_claim_nothing_are_refused(wrong) -> None:
    with pytest.raises(ParameterError, match="numbers"):
        audit_samples(np.zeros(2_000), np.zeros(2_000), **wrong)


def test_infinite_and_enormous_outputs_are_outputs_like_others() -> None:
    one = [10**400 if draw else -math.inf for draw in np.random.default_rng(16).random(4_000) < 0.5]
    assert audit_samples(one, [-math.inf] * 4_000, claimed=2.0).violated
    assert not audit_samples(one, one[::-1], claimed=0.1).violated


def test_an_exact_answer_let_out_now_and_then_inside_the_noise_is_flagged() -> None:
    # Inside the bulk no half-line shows it: the answer is an atom of a law that is continuous otherwise.
    def leaky(answer: float, seed: int):
        rng = np.random.default_rng(seed)
        return answer + rng.laplace(size=6_000) * (rng.random(6_000) >= 0.05)

    audit = audit_samples(leaky(0.0, 17), leaky(1.0, 18), claimed=1.0)
    assert audit.violated and audit.lower_bound > 2 and audit.event.startswith("output = ")


def test_a_slow_mechanism_may_choose_its_events_on_a_few_runs() -> None:
    audit = audit_samples([0] * 205, [1] * 205, claimed=1.0, pilot=5)
    assert audit.violated and audit.draws == 200
