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


def rare(seed: int):
    return (np.random.default_rng(seed).random(22_000) < 0.02) * 1.0


def leaky(answer: float, seed: int):
    """An exact answer let out now and then: an atom of a law that is continuous otherwise, which no half-line shows."""
    rng = np.random.default_rng(seed)
    return answer + rng.laplace(size=6_000) * (rng.random(6_000) >= 0.05)


def infinite(seed: int):
    return [10**400 if draw else -math.inf for draw in np.random.default_rng(seed).random(4_000) < 0.5]


ANSWERS = [np.random.default_rng(13).random((2, 5_000))[k] < share for k, share in enumerate((0.9, 0.1))]
AUDITS = {
    "Laplace noise at its claim": (laplace(0, 1, 1), laplace(1, 1, 2), {"claimed": 1.0}, False, 0.85),
    "Laplace noise at a claim of two": (laplace(0, 0.5, 1), laplace(1, 0.5, 2), {"claimed": 2.0}, False, 1.7),
    "geometric noise at its claim": (geometric(0, 1.0, 3), geometric(1, 1.0, 4), {"claimed": 1.0}, False, 0.85),
    "half of the noise": (laplace(0, 0.5, 5), laplace(1, 0.5, 6), {"claimed": 1.0}, True, 1.0),
    "three quarters of the noise": (laplace(0, 0.75, 5), laplace(1, 0.75, 6), {"claimed": 1.0}, True, 1.0),
    "an answer withheld on one side": ([None] * 3_000, [1.0] * 3_000, {"claimed": 4.0}, True, 4.0),
    "a rare event": (rare(7), np.zeros(22_000), {"claimed": 1.0}, True, 1.0),
    "a rare event that a delta forgives": (rare(8), np.zeros(22_000), {"claimed": 1.0, "delta": 0.05}, False, 0.0),
    "answers of yes and no": (ANSWERS[0].tolist(), ANSWERS[1].tolist(), {"claimed": 1.0}, True, 1.9),
    "answers of yes and no as arrays": (*ANSWERS, {"claimed": 1.0}, True, 1.9),
    "infinite and enormous outputs": (infinite(16), [-math.inf] * 4_000, {"claimed": 2.0}, True, 2.0),
    "the same, enormous as often": (infinite(16), infinite(16)[::-1], {"claimed": 0.1}, False, 0.0),
    "an exact answer now and then": (leaky(0.0, 17), leaky(1.0, 18), {"claimed": 1.0}, True, 2.0),
    "few runs of a slow mechanism": ([0] * 205, [1] * 205, {"claimed": 1.0, "pilot": 5}, True, 1.0),
}
"""Outputs of each side, options, whether the claim is refuted, and what the lower bound exceeds, or at least is."""


@pytest.mark.parametrize("name", AUDITS)
def test_right_mechanisms_stand_wrong_ones_are_flagged_and_the_bound_comes_near(name: str) -> None:
    first, second, options, violated, least = AUDITS[name]
    audit = audit_samples(first, second, **options)
    assert audit.violated is violated and (audit.lower_bound > least or least == 0)
    assert audit.draws == len(first) - options.get("pilot", max(1_000, len(first) // 11))
    assert name != "an exact answer now and then" or audit.event.startswith("output = ")


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
