"""The synthetic control without privacy: weights on the simplex."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpcausal.arrays import Reals
from dpcausal.core.method import Run
from dpcausal.privacy.loss import Loss
from dpcausal.synthetic_control.method import SyntheticMethod
from dpcausal.synthetic_control.question import Path, Plan, Treated, past_of

ROUNDS = 200


def simplex_weights(X: Reals, y: Reals) -> Reals:
    """Return argmin ‖y − X'w‖² over w ≥ 0, Σw = 1, exactly but for rounding; X is (n, T0), y (T0,).

    An active-set method on the non-negative least squares whose last row, of a large weight, asks Σw = 1; then the
    equality-constrained solution on the support.  *Source*: Abadie & Gardeazabal (2003); Lawson & Hanson (1974).
    """
    n = len(X)
    if n == 1:
        return np.ones(1)
    middle = X.mean(axis=0)
    A, b = (X - middle).T, y - middle  # with Σw = 1 a common shift changes nothing, and conditions better
    scale = max(float(np.abs(A).max(initial=0.0)), float(np.abs(b).max(initial=0.0)), 1e-300)
    A, b = A / scale, b / scale
    w = np.zeros(n)
    w[int(np.argmin(((A - b[:, None]) ** 2).sum(axis=0)))] = 1.0
    support = w > 0
    for _ in range(20 * ROUNDS):
        gradient = A.T @ (A @ w - b)
        level = float(gradient @ w)
        entering = int(np.argmin(np.where(support, np.inf, gradient)))
        if support.all() or gradient[entering] >= level - 1e-13:
            break
        support[entering] = True
        for _ in range(n):
            step = _equality_solution(A[:, support], b)
            if (step > 0).all():
                w[:] = 0
                w[support] = step
                break
            old = w[support]
            falling = step <= 0
            share = np.min(np.where(falling, old / np.maximum(old - step, 1e-300), np.inf))
            moved = old + min(share, 1.0) * (step - old)
            moved[falling & (moved <= 1e-15)] = 0
            w[support] = moved
            if not (w[support] <= 0).any():
                w[np.flatnonzero(support)[int(np.argmin(moved))]] = 0
            support = w > 0
    w = np.maximum(w, 0)
    return np.asarray(w / w.sum())


def _equality_solution(A: Reals, b: Reals) -> Reals:
    k = A.shape[1]
    system = np.zeros((k + 1, k + 1))
    system[:k, :k] = A.T @ A + 1e-14 * np.eye(k)
    system[k, :k] = system[:k, k] = 1
    solved: Reals = np.linalg.lstsq(system, np.concatenate([A.T @ b, [1.0]]), rcond=1e-15)[0]
    return np.asarray(solved[:k])


@dataclass(frozen=True, kw_only=True)
class Simplex(SyntheticMethod):
    """Weights on the simplex, as Abadie & Gardeazabal (2003) have them; without privacy only."""

    name: ClassVar[str] = "simplex"
    about: ClassVar[str] = "weights on the simplex, without privacy"
    losses: ClassVar[tuple[type[Loss], ...]] = ()

    def path(self, scaled: Reals, plan: Plan, run: Run[Treated]) -> Path:
        X, Y = scaled[:, : plan.start], scaled[:, plan.start :]
        return Path(Y.T @ simplex_weights(X, past_of(run.question.panel, plan.target)), 0.0)
