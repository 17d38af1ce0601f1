"""The sparse vector: what it finds, what it costs, what it may tell, and its exact loss on small lists."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.papers.mechanisms.sparse_vector import first_above
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import ZCDP, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Query, Relation, Sensitivity


def asked(answers: Any, bound: int = 1, norm: Norm = Norm.LINF) -> Query:
    claim = Sensitivity(bound, norm, Relation.REPLACE_ONE, "conditional-kendall-steps")
    return Query(np.asarray(answers), claim, "list")


def law(answers: tuple[int, ...], epsilon: float, bar: float = 2.0, scales: Any = None) -> np.ndarray:
    """Return the probabilities of index 0, 1, …, none at threshold 0, by sums over the noise of the bar.

    ``bar`` and ``scales`` are the noise scales times ε; by default those of the claim with Δ = 1.
    """
    scales = [4.0] * len(answers) if scales is None else scales
    reach = math.ceil(60 * max(*scales, bar) / epsilon)
    bars = np.arange(-reach, reach + 1)
    a = math.exp(-epsilon / bar)
    left = (1 - a) / (1 + a) * a ** np.abs(bars)
    passed = []
    for answer, scale in zip(answers, scales, strict=True):
        b, gap = math.exp(-epsilon / scale), bars - answer  # P(ν ≥ gap)
        share = np.where(gap > 0, b ** np.maximum(gap, 0) / (1 + b), 1 - b ** (1 - np.minimum(gap, 0)) / (1 + b))
        passed.append(float((left * share).sum()))
        left = left * (1 - share)
    return np.array([*passed, float(left.sum())])


def exact_loss(first: tuple[int, ...], other: tuple[int, ...], *scales: Any) -> float:
    return float(np.abs(np.log(law(first, 1.0, *scales)) - np.log(law(other, 1.0, *scales))).max())


LONG = (-5,) * 401, (-4,) * 400 + (-6,)
"""Many answers below the bar that move up together, and one that moves down."""


@pytest.mark.proves("sparse-vector")
def test_the_exact_loss_is_never_above_epsilon_over_all_small_lists() -> None:
    worst, pairs = 0.0, 0
    for answers in itertools.product(range(-3, 4), repeat=3):
        for moves in itertools.product((-1, 0, 1), repeat=3):
            other = tuple(f + d for f, d in zip(answers, moves, strict=True))
            worst, pairs = max(worst, exact_loss(answers, other)), pairs + 1
    assert pairs > 8_000
    assert 0.7 < worst <= 1 + 1e-9


@pytest.mark.proves("sparse-vector")
def test_a_long_list_attains_epsilon_and_shows_noise_that_is_too_small() -> None:
    assert 0.999 < exact_loss(*LONG) <= 1 + 1e-9
    assert exact_loss(*LONG, 0.95 * 2, [0.95 * 4] * 401) > 1.04


def test_a_round_costs_the_same_whatever_it_finds() -> None:
    for answers in ([10**7] * 3, [-(10**7)] * 3):
        allotment = Ledger.in_memory(PureDP(2)).charge(PureDP(2), task="audit")
        first_above(asked(answers), allotment, PureDP(1), threshold=0)
        assert len(allotment.events) == 1 and allotment.events[0].loss == PureDP(1)


def test_without_privacy_it_is_exact() -> None:
    allotment = Ledger.without_privacy().charge(NoPrivacy(), task="audit")
    assert first_above(asked([1, 2, 3]), allotment, NoPrivacy(), threshold=2) == 1
    assert first_above(asked([1, 1]), allotment, NoPrivacy(), threshold=2) is None


def test_a_recording_gate_answers_for_it() -> None:
    for answers, index in (("low", None), ("high", 0)):
        with recording_gate(answers) as recording:  # type: ignore[arg-type]
            allotment = Ledger.in_memory(PureDP(1)).charge(PureDP(1), task="audit")
            assert first_above(asked([3, 4]), allotment, PureDP(1), threshold=0) == index
        assert recording.passages[0].value.tolist() == [3, 4]


def test_what_does_not_fit_is_refused() -> None:
    allotment = Ledger.in_memory(PureDP(1)).charge(PureDP(1), task="audit")
    with pytest.raises(FenceError):
        first_above(asked([1.5]), allotment, PureDP(1), threshold=0)
    with pytest.raises(FenceError):
        first_above(asked([1], norm=Norm.L1), allotment, PureDP(1), threshold=0)
    with pytest.raises(FenceError):
        first_above(asked(3), allotment, PureDP(1), threshold=0)
    with pytest.raises(LossError):
        first_above(asked([1]), allotment, ZCDP(1), threshold=0)  # type: ignore[arg-type]
