"""Objective perturbation: the corrected one keeps its claim, the printed one does not."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import dpcausal as dpc
from dpcausal.audit import audit_samples
from dpcausal.errors import FenceError, LossError, ParameterError
from dpcausal.papers.mechanisms import objective_perturbation as op
from dpcausal.papers.synthetic_control import dpsc
from dpcausal.privacy.sensitivity import Norm, Query, Unit
from tests.conformance import LEAST_EVALUATIONS, search
from tests.registry.rows import allotted, queried


def query(X: Any) -> Query:
    return queried(X, Norm.L2, 2 * math.sqrt(X.shape[1]), "panel-rows", Unit.DONOR)


granted = partial(allotted, unit=Unit.DONOR)


def gradient(X: Any, y: Any, f: Any) -> Any:
    return -2 * X @ (y - X.T @ f)


@pytest.mark.proves("objective-perturbation")
@pytest.mark.parametrize("donors, periods", [(1, 2), (2, 1), (4, 2), (12, 1)])
def test_no_donor_moves_the_gradient_inside_the_ball_past_the_bound(donors: int, periods: int) -> None:
    """The worst y is ±1 and the worst f a vertex or the centre; the search is over the donors' rows."""
    y, G = np.ones(periods), op.gradient_bound(donors, periods)
    points = [np.zeros(donors), np.eye(donors)[0], -np.eye(donors)[0], np.full(donors, 1 / donors)]
    worst, looked = 0.0, 0
    for block, f in enumerate(points):
        found = search(lambda rows, f=f: gradient(rows, y, f), G, sizes=(donors,), columns=periods, low=-1.0,
                       norm=Norm.L2, evaluations=2_100, seed=block)  # fmt: skip
        worst, looked = max(worst, found.ratio), looked + found.evaluations
    assert looked >= LEAST_EVALUATIONS
    assert (0.5 if donors == 1 else 0.55) <= worst <= 1 + 1e-12  # x_i from 1 to −1 at a vertex or at 0: see below


@pytest.mark.proves("objective-perturbation")
def test_the_bound_of_the_gradient_is_attained_in_the_limit_and_its_095_fold_is_passed() -> None:
    """Rows of all ones, f at −1 on another donor: u has size 2 and the i-th entry moves by 8T0."""
    X, y, f = np.ones((2, 3)), np.ones(3), np.array([0.0, -1.0])
    other = X.copy()
    other[0] = -1
    moved = float(np.linalg.norm(gradient(X, y, f) - gradient(other, y, f)))
    assert moved == pytest.approx(op.gradient_bound(2, 3), rel=1e-12)
    assert moved > 0.95 * op.gradient_bound(2, 3)


@pytest.mark.proves("objective-perturbation")
def test_the_volume_bound_is_attained_by_a_face_and_never_passed() -> None:
    rng = np.random.default_rng(1)
    T0, M = 1, 0.8
    t = math.sqrt(2 * T0 / M)
    q = math.sqrt(1 + t * t)
    ratio = (1 + (q + t) ** 2) / (1 + (q - t) ** 2)
    assert math.log(ratio) == pytest.approx(op.log_volume_bound(T0, M), rel=1e-12)
    worst = 0.0
    for _ in range(8_000):
        n, T0 = int(rng.integers(1, 9)), int(rng.integers(1, 4))
        M, d = float(np.exp(rng.uniform(-2, 3))), int(rng.integers(1, n + 1))
        U = np.linalg.qr(rng.normal(size=(n, d)))[0]
        X = np.sign(rng.uniform(-1, 1, (n, T0)))
        other = X.copy()
        other[0] = -X[0] if rng.random() < 0.5 else rng.uniform(-1, 1, T0)
        logs = [np.linalg.slogdet(M * np.eye(d) + 2 * U.T @ A @ A.T @ U)[1] for A in (X, other)]
        worst = max(worst, abs(logs[0] - logs[1]) / op.log_volume_bound(T0, M))
    assert 0.5 < worst <= 1


@pytest.mark.parametrize("term", [0, 0.0, -1, -5.0, -100.0, math.nan, math.inf, True, "3"])
def test_without_a_quadratic_term_above_zero_nothing_is_calibrated_spent_or_solved(term: Any) -> None:
    loss, y = dpc.ApproxDP(1, 1e-6), np.ones(5)
    allotment, unproven = granted(loss, 1), granted(loss, 1, unproven=True)
    with pytest.raises(ParameterError):
        op.objective_perturbation(query(np.zeros((10, 5))), allotment, loss, target=y, quadratic=term)
    with pytest.raises(ParameterError):
        dpsc.published_objective_perturbation(query(np.zeros((10, 5))), unproven, loss, target=y, penalty=term)
    assert not allotment.events and not unproven.events


@pytest.mark.proves("objective-perturbation")
@pytest.mark.parametrize("donors", [1, 4, 9])
def test_the_solver_comes_as_near_as_it_says(donors: int) -> None:
    rng = np.random.default_rng(2)
    loss = dpc.ApproxDP(2, 1e-6)
    constants = op.calibrate(donors, 5, loss)
    for size in (0.0, 1.0, 30.0, 1_000.0):
        X, y, b = rng.uniform(-1, 1, (donors, 5)), rng.uniform(-1, 1, 5), size * rng.normal(size=donors)
        M = constants.quadratic

        def objective(parts: Any, X: Any = X, y: Any = y, b: Any = b, M: float = M) -> float:
            f = parts[:donors] - parts[donors:]
            return float((y - X.T @ f) @ (y - X.T @ f) + M / 2 * f @ f + b @ f)

        exact = optimize.minimize(
            objective, np.full(2 * donors, 0.1 / donors), method="SLSQP", bounds=[(0, None)] * (2 * donors),
            constraints={"type": "ineq", "fun": lambda parts: 1 - parts.sum()}, options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        ours = op.minimiser(X, y, b, M, constants.steps)
        assert np.abs(ours).sum() <= 1 + 1e-9
        least = objective(np.concatenate([np.maximum(ours, 0), np.maximum(-ours, 0)]))
        assert least <= exact.fun + 1e-6 * (1 + abs(exact.fun))
        again = op.minimiser(X, y, b, M, 2 * constants.steps)
        assert np.linalg.norm(ours - again) <= constants.solver_error


def test_the_printed_one_is_shown_in_violation_by_the_public_audit() -> None:
    """n = T0 = 10, λ = T0, claimed ε = 5.4, δ = 0.1: all rows ones, one of them turned; f along the ones."""
    loss, n = dpc.PureDP(5.4), 10
    X, y, ones = np.ones((n, n)), np.zeros(n), np.ones(n) / math.sqrt(n)
    other = X.copy()
    other[0] = -1

    def run(rows: Any, allotment: Any) -> float:
        weights = dpsc.published_objective_perturbation(query(rows), allotment, loss, target=y, penalty=10.0)
        return abs(float(weights @ ones))

    draws = 9_000
    with dpc.simulated_noise(3):
        allotment = granted(loss, 2 * draws, unproven=True)
        sides = [[run(rows, allotment) for _ in range(draws)] for rows in (X, other)]
    audit = audit_samples(*sides, claimed=5.4, delta=0.1, false_alarm=1e-6)
    assert audit.violated, audit.summary()


def test_the_printed_constants_are_those_of_the_paper() -> None:
    extra, beta = dpsc.published_constants(10, 10, 10.0, dpc.PureDP(50))
    c = (1 + math.sqrt(145)) * 10
    left = 50 - math.log(1 + 2 * c / 10 + (c / 10) ** 2)
    assert extra == 0 and beta == pytest.approx(min(40 * math.sqrt(18) / left, (c * math.sqrt(10) + 40) / left))
    extra, beta = dpsc.published_constants(10, 10, 10.0, dpc.ApproxDP(2, 1e-6))
    assert extra == pytest.approx(c / math.expm1(0.5) - 10)
    assert beta == pytest.approx(40 * math.sqrt(18) * math.sqrt(2 * math.log(2e6) + 1) / 1)


def test_what_the_mechanisms_refuse() -> None:
    X, y = np.zeros((2, 3)), np.zeros(3)
    loss = dpc.ApproxDP(1, 1e-6)
    for error, call in (
        (LossError, lambda: op.objective_perturbation(query(X), granted(dpc.PureDP(1)), dpc.PureDP(1), target=y)),
        (LossError, lambda: op.calibrate(2, 3, dpc.ApproxDP(1, 0))),
        (ParameterError, lambda: op.calibrate(2, 3, loss, 1e-3)),
        (FenceError, lambda: op.objective_perturbation(query(X), granted(loss), loss, target=np.zeros(4))),
        (FenceError, lambda: dpsc.published_objective_perturbation(query(X), granted(loss), loss, target=y, penalty=1)),
    ):
        with pytest.raises(error):
            call()


def test_without_privacy_the_query_comes_back() -> None:
    X = np.arange(6.0).reshape(2, 3) / 6
    exact = dpc.NoPrivacy()
    assert (op.objective_perturbation(query(X), granted(exact), exact, target=np.zeros(3)) == X).all()
