"""Values that leave where a noisy distance is large: propose-test-release, as proved and as printed; stable values."""

import itertools
import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.papers.direction.anm_test_privacy import published_log_iqr
from dpcausal.papers.mechanisms.propose_test_release import propose_test_release, stable_threshold, stable_value
from dpcausal.papers.mechanisms.replication import replicate
from dpcausal.privacy.loss import ApproxDP, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm, Query
from tests.registry.laws import geometric_below, laplace_below
from tests.registry.rows import allotted, queried

LOSS = ApproxDP(1, 1e-3)


def query(answer: Any, bound: float = 1, norm: Norm = Norm.TESTED) -> Query:
    return queried(answer, norm, bound, "log-iqr-proposal")


def printed(*answer: float) -> Query:
    return query(np.asarray(answer, dtype=np.float64), norm=Norm.LINF)


granted = partial(allotted, ApproxDP(5_000, 0.5))


def above(gap: float) -> float:
    """P(Lap(1) > gap), true in both tails."""
    return float(laplace_below(np.array(-gap), 1.0))


def proved(distances: Any, epsilon: float, delta: float) -> tuple[float, float]:
    """P(an answer) and P(none): some A + Lap(b) > threshold, straight from the definition."""
    gaps = [(1 + 2 / epsilon * math.log(1 / delta) - each) * epsilon / 2 for each in distances]
    one, other = (above(gap) for gap in gaps)
    return one + other - one * other, math.prod(above(-gap) for gap in gaps)


@pytest.mark.proves("propose-test-release")
@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_an_answer_and_no_answer_keep_their_shares_of_epsilon_at_all_neighbouring_distances(
    epsilon: float, delta: float
) -> None:
    # An answer leaves ε/2 for the value's own noise; "no answer" may use all of ε; both are nearly attained.
    threshold = 1 + 2 / epsilon * math.log(1 / delta)
    places = np.unique(np.round(np.linspace(0, 2.5 * threshold, 25)))
    answer, none = 0.0, 0.0
    for a, b in itertools.product(places, places):
        here = proved((a, b), epsilon, delta)
        for da, db in itertools.product((-1, 0, 1), repeat=2):
            there = proved((max(0.0, a + da), max(0.0, b + db)), epsilon, delta)
            answer = max(answer, math.log(here[0] / there[0]))
            none = max(none, math.log(here[1] / there[1]))
    assert 0.9 * epsilon / 2 < answer <= epsilon / 2 * (1 + 1e-9)
    assert 0.9 * epsilon < none <= epsilon * (1 + 1e-9)


@pytest.mark.proves("propose-test-release")
@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-6, 1e-15])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 20.0])
def test_where_no_cell_is_shared_an_answer_comes_with_probability_at_most_delta(epsilon: float, delta: float) -> None:
    # One record from leaving each cell: the two tests share δ, to within its square.
    assert 0.97 * delta < proved((1, 1), epsilon, delta)[0] <= delta * (1 + 1e-9)
    at_printed = above(-math.log(delta) * epsilon / 2)  # one test; the noise here is Lap(2/ε)
    assert (2 * at_printed > delta) == (epsilon < 2)


def test_without_privacy_the_exact_value_leaves() -> None:
    assert propose_test_release(query([0, 0, 0.3]), allotted(NoPrivacy()), NoPrivacy()) == 0.3


def geometric(epsilon: float, at_least: int) -> float:
    """P(k ≥ t) for P(k) ∝ e^{−ε|k|}."""
    return float(geometric_below(np.array(0.5 - at_least), 1 / epsilon))


@pytest.mark.proves("stable-value")
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-9])
def test_the_exact_laws_keep_epsilon_and_delta_for_every_pair_of_distances(epsilon: float, delta: float) -> None:
    t = stable_threshold(ApproxDP(epsilon, delta))
    leaves = [geometric(epsilon, t - distance) for distance in range(t + 20)]
    stays = [geometric(epsilon, 1 - t + distance) for distance in range(t + 20)]
    for place in range(t + 19):
        # The same value at both, distances a step apart: pure ε, for "not stable" too.
        assert leaves[place + 1] <= math.exp(epsilon) * leaves[place] * (1 + 1e-9)
        assert stays[place] <= math.exp(epsilon) * stays[place + 1] * (1 + 1e-9)
    # Another value at a neighbour: at most one step from it, and the value may leave with δ only.
    assert max(leaves[:2]) <= delta


@pytest.mark.proves("stable-value")
def test_the_threshold_of_the_distance_to_instability_read_as_steps_passes_delta() -> None:
    loss = ApproxDP(2.0, math.exp(-19.9))
    assert geometric(2.0, stable_threshold(loss) - 1 - 1) > 5 * loss.delta


def test_a_replica_runs_on_unproven_allotments_or_without_privacy_and_books_all_of_it() -> None:
    counts, allotment = query(np.array([3, 4]), norm=Norm.LINF), allotted(PureDP(2), unproven=True)
    assert replicate(counts, allotment, lambda exact: exact.sum() + 0.5) == 7.5
    assert [event.loss for event in allotment.events] == [PureDP(2)]
    assert replicate(counts, allotted(NoPrivacy()), lambda exact: exact[1]) == 4
    with recording_gate("high"):
        assert replicate(counts, allotted(PureDP(2), unproven=True), lambda exact: int(exact[1])) == 10**6


PAIR = [1.0, 0.5]
REFUSALS = [
    *((FenceError, propose_test_release, query(wrong), LOSS) for wrong in ([1.0] * 4, [1.0])),
    (FenceError, propose_test_release, query(PAIR, norm=Norm.LINF), LOSS),
    (FenceError, propose_test_release, query(PAIR, bound=0.5), LOSS),
    *((LossError, propose_test_release, query([9.0, 9.0, 0.0]), loss) for loss in (PureDP(1), ApproxDP(1, 0))),
    (LossError, propose_test_release, query([9.0, 9.0, 0.0]), NoPrivacy()),
    *((FenceError, stable_value, query(wrong), LOSS) for wrong in ([1.0], 1.0, [1, 2])),
    (FenceError, stable_value, query(PAIR, bound=2), LOSS),
    (FenceError, stable_value, query(PAIR, norm=Norm.LINF), LOSS),
    *((LossError, stable_value, query(PAIR), loss) for loss in (PureDP(1), ApproxDP(1, 0))),
    (FenceError, replicate, query(PAIR), lambda exact: exact),
]  # fmt: skip


@pytest.mark.parametrize(("error", "mechanism", "wrong", "last"), REFUSALS)
def test_what_a_mechanism_has_no_proof_for_is_refused_and_pays_nothing(
    error: type[Exception], mechanism: Any, wrong: Query, last: Any
) -> None:
    allotment = granted()
    with pytest.raises(error):
        mechanism(wrong, allotment, last)
    assert allotment.private and not allotment.events


@pytest.mark.parametrize(("unproven", "answer"), [(False, (9, 9, 0)), (True, (9, 9))])
def test_the_printed_algorithm_runs_on_unproven_allotments_and_three_numbers_only(unproven: bool, answer: Any) -> None:
    allotment = granted(unproven=unproven)
    with pytest.raises(FenceError):
        published_log_iqr(printed(*answer), allotment, LOSS, epsilon=1, delta=1e-3)
    assert not allotment.events
