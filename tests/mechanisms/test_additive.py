"""Additive noise: scales that pay for the loss exactly, norms, kinds, and the claims through the ledger.

The exact distributions are compared with outputs in ``tests/privacy/test_noise.py`` and ``tests/audit/test_exact.py``.
"""

from collections.abc import Callable
from contextlib import nullcontext
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as opendp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcausal import ZCDP, ApproxDP, Ledger, NoPrivacy, PureDP, Relation, simulated_noise
from dpcausal.errors import FenceError, LossError
from dpcausal.mechanisms.additive import cube, gaussian, gaussian_scale, geometric, l2_ball, laplace, laplace_scale
from dpcausal.mechanisms.selection import noisy_max
from dpcausal.privacy import noise
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.sensitivity import CONDITIONAL, Norm, Query, Sensitivity
from tests.registry.rows import allotted

Mechanism = Callable[[Query, CallBudget, Any], Any]


def query(answer: Any, norm: Norm, bound: Any = 1) -> Query:
    return Query(answer, Sensitivity(bound, norm, Relation.REPLACE_ONE, "kendall-tau"), "margin")


def released(mechanism: Mechanism, question: Query, loss: Any) -> tuple[Any, Any]:
    allotment = allotted(loss)
    answer = mechanism(question, allotment, loss)
    (event,) = allotment.events
    return answer, event


positive = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6)


@settings(deadline=None)
@given(positive, positive)
def test_a_scale_pays_for_the_exact_loss_and_hardly_more_and_opendps_map_agrees(
    bound: Fraction, amount: Fraction
) -> None:
    pure, concentrated, hardly = PureDP(amount), ZCDP(amount), 1 + Fraction(1, 10**11)
    scale, variance = Fraction(laplace_scale(bound, pure)), Fraction(gaussian_scale(bound, concentrated)) ** 2
    assert bound / amount <= scale <= bound / amount * hardly
    assert bound**2 / (2 * amount) <= variance <= bound**2 / (2 * amount) * hardly
    # The float of a fractional bound is rounded up, the float of a loss to nearest: the scale must outweigh both.
    up = Sensitivity(bound, Norm.L1, Relation.REPLACE_ONE, "kendall-tau").rounded_up
    noise._fence_cost(laplace_scale(bound, pure), up, pure=pure.epsilon)
    noise._fence_cost(gaussian_scale(bound, concentrated), up, rho=concentrated.rho)
    opendp.enable_features("contrib")
    atoms = opendp.vector_domain(opendp.atom_domain(T=float, nan=False))
    made = opendp.m.make_laplace(atoms, opendp.l1_distance(T=float), scale=laplace_scale(bound, pure))
    assert made.map(up) <= pure.epsilon
    made = opendp.m.make_gaussian(atoms, opendp.l2_distance(T=float), scale=gaussian_scale(bound, concentrated))
    assert made.map(up) <= concentrated.rho


EXTREMES: list[tuple[Mechanism, Query, Any]] = [
    (laplace, query(0.0, Norm.L1, 9e299), PureDP(1e-9)),
    (laplace, query(0.0, Norm.L1, 1e10), PureDP(1e-9)),
    (laplace, query(0.0, Norm.L1, 2e-300), PureDP(1e6)),
    (geometric, query(0, Norm.L1, 10**10), PureDP(1e-9)),
    (gaussian, query(0.0, Norm.L2, 9e299), ZCDP(1e-9)),
    (l2_ball, query(np.zeros(2), Norm.L2, 1e12), PureDP(1e-6)),
    (cube, query(np.zeros(4, dtype=int), Norm.LINF, 2 * 10**5), PureDP(1e-9)),
]


@pytest.mark.parametrize(("mechanism", "question", "loss"), EXTREMES)
def test_a_scale_that_cannot_be_drawn_is_refused_before_the_spend(
    mechanism: Mechanism, question: Query, loss: Any
) -> None:
    allotment = allotted(loss)
    with pytest.raises(FenceError, match="scale"):
        mechanism(question, allotment, loss)
    assert allotment.events == ()


DECLARED: list[tuple[Mechanism, Query, Any, str, float]] = [
    (laplace, query(4.0, Norm.L1, Fraction(1, 3)), PureDP(0.25), "laplace", 4 / 3),
    (geometric, query(40, Norm.L1, 3), PureDP(1.5), "geometric", 2.0),
    (geometric, query(3, Norm.L1, Fraction(5, 2)), PureDP(1), "geometric", 3.0),  # the next integer
    (geometric, query(3, Norm.L1, 2.5), PureDP(1), "geometric", 3.0),
    (gaussian, query(0.0, Norm.L2, 0.5), ZCDP(0.125), "gaussian", 1.0),
    (gaussian, query(0, Norm.L2, 1), ZCDP(0.125), "discrete-gaussian", 2.0),
    (l2_ball, query(np.ones(2), Norm.L2, 0.5), PureDP(0.25), "l2-ball", 2.0),
    (cube, query(np.arange(4), Norm.LINF, 1), PureDP(0.5), "cube", 2.0),
    (noisy_max, query(np.array([1, 2]), Norm.LINF, Fraction(3, 2)), PureDP(1), "noisy-max", 4.0),  # the next integer
]
"""Mechanism, query, loss, and the event's name and scale; that outputs follow it: ``tests/audit/test_exact.py``."""


@pytest.mark.parametrize(("mechanism", "question", "loss", "name", "scale"), DECLARED)
def test_the_declared_scale_is_that_of_the_claim(
    mechanism: Mechanism, question: Query, loss: Any, name: str, scale: float
) -> None:
    noisy, event = released(mechanism, question, loss)
    assert (event.mechanism, event.norm, event.loss) == (name, question.sensitivity.norm.value, loss)
    assert event.proof == "kendall-tau" and event.scale == pytest.approx(scale, rel=1e-11)
    assert np.asarray(noisy).dtype == question._answer.dtype


@pytest.mark.proves("gaussian")
@pytest.mark.parametrize("order", [1.01, 2.0, 30.0])
@pytest.mark.parametrize("bound", [1, 2, 5])
def test_the_discrete_gaussian_is_within_rho_exactly(order: float, bound: int) -> None:
    rho = 0.3
    sigma = gaussian_scale(bound, ZCDP(rho))
    # Weights in logarithms, shifted so that the sum at the order's own centre is exact.
    k = np.arange(-3000, 3001)
    log_p, log_q = -((k - bound) ** 2) / (2 * sigma**2), -(k**2) / (2 * sigma**2)
    log_norm = np.logaddexp.reduce(log_q)
    divergence = (np.logaddexp.reduce(order * log_p + (1 - order) * log_q) - log_norm) / (order - 1)
    assert divergence <= order * rho * (1 + 1e-9)
    assert divergence >= order * rho * 0.9


# Kinds and norms


def whole(*shape: int) -> Any:
    return np.zeros(shape, dtype=int)


# What each takes, and answers of another kind or shape.
FITS: dict[str, tuple[Mechanism, Any, Norm, Any, list[Any]]] = {
    "laplace": (laplace, np.zeros(2), Norm.L1, PureDP(1), [whole(2)]),
    "geometric": (geometric, whole(2), Norm.L1, PureDP(1), [np.zeros(2)]),
    "gaussian": (gaussian, np.zeros(2), Norm.L2, ZCDP(1), []),
    "l2-ball": (l2_ball, np.zeros(2), Norm.L2, PureDP(1), [whole(2), np.zeros((2, 2)), np.zeros(0), 1.0]),
    "cube": (cube, whole(2), Norm.LINF, PureDP(1), [np.zeros(2), whole(9), whole(0), whole(2, 2), 1]),
    "noisy max": (noisy_max, np.zeros(3), Norm.LINF, PureDP(1), [np.zeros((2, 2)), np.zeros(0), 1.0]),
}


@pytest.mark.parametrize("name", FITS)
def test_a_wrong_norm_kind_or_loss_is_refused_before_the_spend(name: str) -> None:
    mechanism, fit, norm, loss, others = FITS[name]
    losses = PureDP(1), ZCDP(1), ApproxDP(1, 1e-6), NoPrivacy(), 1.0, PureDP(1e-300)
    wrong = [(other, norm, loss) for other in others]
    wrong += [(fit, norm, other) for other in losses if type(other) is not type(loss) or other == PureDP(1e-300)]
    wrong += [(fit, other, loss) for other in Norm if other is not norm]
    # A condition is no norm, not even of one number: its bound may be on a logarithm.
    wrong += [(fit[:1], other, loss) for other in CONDITIONAL]
    for answer, stated, offered in wrong:
        allotment = Ledger.in_memory(ApproxDP(10, 0.1)).charge(PureDP(2), task="test")
        with pytest.raises((FenceError, LossError)):
            mechanism(query(answer, stated), allotment, offered)
        assert allotment.events == ()


@pytest.mark.parametrize("norm", [norm for norm in Norm if norm not in CONDITIONAL])
def test_all_norms_agree_on_one_number(norm: Norm) -> None:
    for answer in (1.0, np.array([1.0]), np.array([[1.0]])):
        released(laplace, query(answer, norm), PureDP(1))
        released(gaussian, query(answer, norm), ZCDP(1))
    released(geometric, query(1, norm), PureDP(1))


def test_an_answer_comes_back_in_its_own_shape_and_kind() -> None:
    shapes: list[Any] = [(), (1,), (3,), (2, 2)]
    for shape in shapes:
        real, whole = np.zeros(shape), np.zeros(shape, dtype=int)
        for simulate in (False, True):
            with simulated_noise(1) if simulate else nullcontext():
                answers = [
                    (released(laplace, query(real, Norm.L1), PureDP(1))[0], float, np.float64),
                    (released(gaussian, query(real, Norm.L2), ZCDP(1))[0], float, np.float64),
                    (released(geometric, query(whole, Norm.L1), PureDP(1))[0], int, np.int64),
                    (released(gaussian, query(whole, Norm.L2), ZCDP(1))[0], int, np.int64),
                ]
            for answer, plain, dtype in answers:
                if shape == ():
                    assert type(answer) is plain
                else:
                    assert answer.shape == shape and answer.dtype == dtype
