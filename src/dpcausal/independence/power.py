"""``power``: how often a test would reject, by simulation from public assumptions only; nothing is spent or read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcausal.core import validate as public
from dpcausal.data.table import Table
from dpcausal.errors import ParameterError, with_signature_errors
from dpcausal.independence.api import ci_test
from dpcausal.independence.methods import METHODS
from dpcausal.independence.methods.hsic import Hsic
from dpcausal.independence.methods.model_x import ModelX
from dpcausal.independence.question import IndependenceTest
from dpcausal.privacy.checks import check_epsilon_consent
from dpcausal.privacy.ledger import Ledger
from dpcausal.privacy.loss import Loss
from dpcausal.privacy.noise import generator_from_seed, public_generator, simulated_noise
from dpcausal.simulate import SimulatedRows, smooth_design

MOST_REPETITIONS = 1_000_000
NORMAL_95 = 1.959964


@dataclass(frozen=True)
class Power:
    """How often a test rejected in simulations.

    Attributes
    ----------
    rate : float
        Share of rejections: the power, or the level where the effect is 0.
    interval : (float, float)
        95 % Wilson interval of the probability.
    repetitions, n : int
        Number of simulated tables, and of their rows.
    method, loss, alpha
        As asked for.
    effect : float or None
        Of the library's design.
    seed : int
        The same arguments and seed give the same rate.
    """

    rate: float
    interval: tuple[float, float]
    repetitions: int
    n: int
    method: str
    loss: Loss
    alpha: float
    effect: float | None
    seed: int

    def summary(self) -> str:
        """Return the rate in a sentence."""
        low, high = self.interval
        of = "" if self.effect is None else f" at effect {self.effect:g}"
        return (
            f"{self.method} with {self.loss} on {self.n} rows rejects {self.rate:.3f} ({low:.3f} to {high:.3f}){of}, "
            f"alpha {self.alpha:g}, {self.repetitions} simulated tables."
        )


@with_signature_errors
def power(
    n: int,
    *,
    loss: Loss,
    method: str | IndependenceTest = "auto",
    effect: float = 0.2,
    complexity: float = 2.0,
    dimensions: int = 1,
    bound: float = 3.0,
    design: Callable[[int, int], SimulatedRows] | None = None,
    alpha: float = 0.05,
    repetitions: int = 100,
    seed: int | None = None,
    accept_unproven: bool = False,
    accept_large_epsilon: bool = False,
    **misplaced: Any,
) -> Power:
    """Return how often a test with n rows and this loss would reject, on tables drawn from public assumptions.

    Parameters
    ----------
    n : int
        Number of rows.
    loss : Loss
        What the test would cost; nothing is spent here.
    method, alpha, accept_unproven, accept_large_epsilon
        As in ``ci_test``.  For the crt methods and cpt the law of x is, unless it is given, that of the library's
        design.
    effect, complexity, dimensions, bound
        Of ``simulate.smooth_design``: x = f(z) + e, y = −f(z) + e′ + βe, both noises standard normal, so an effect β is
        a partial correlation of β/√(1 + β²); 0 gives the level.
    design : function of (n, seed), optional
        Your own assumptions: returns an object with ``columns``, ``schema`` and ``given``, and columns x and y; and
        with ``person``, the name of the column of ids, where n rows are those of fewer persons.
    repetitions : int
        Number of tables.
    seed : int, optional
        By default a fresh public seed, which the result carries.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> dpc.power(600, loss=dpc.PureDP(2), effect=1.0, repetitions=5, seed=1).rate
    1.0
    """
    public.whole("repetitions", repetitions, 1, MOST_REPETITIONS)
    public.whole("n", n, 1, 100_000_000)
    if seed is None:
        _, seed = public_generator()
    elif isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ParameterError("the seed must be a whole number of at least 0")
    if design is not None and not callable(design):
        raise ParameterError("design must be a function of (n, seed)")
    public.reject_misplaced_options(misplaced, method, METHODS, power)
    way = public.chosen(method, IndependenceTest, METHODS)
    check_epsilon_consent(loss, accept_large_epsilon)
    if design is None and getattr(way, "model_x", ...) is None:
        way = replace(way, model_x=smooth_model(complexity))
    rejected = 0
    seeds = generator_from_seed(seed).integers(2**62, size=(repetitions, 2)).tolist()
    for for_data, for_noise in seeds:
        data = design(n, for_data) if design is not None else smooth_design(
            n, effect=effect, complexity=complexity, dimensions=dimensions, bound=bound, seed=for_data
        )
        if not all(hasattr(data, name) for name in ("columns", "schema", "given")):
            raise ParameterError("design must return what dpcausal.simulate does: columns, schema and given")
        ledger = Ledger.without_privacy() if loss.exact else Ledger.in_memory(loss, accept_large_epsilon=True)
        missing = "drop" if way.supports_missing else "impute"  # as a table would have to be that it is asked of
        table = Table(data.columns, data.schema, ledger, person=getattr(data, "person", None), missing=missing)
        given = [] if isinstance(way, Hsic) and design is None else list(data.given)
        with simulated_noise(for_noise):
            test = ci_test(
                table, "x", "y", given=given, loss=loss, method=way, alpha=alpha, accept_unproven=accept_unproven,
                accept_large_epsilon=accept_large_epsilon,
            )  # fmt: skip
        rejected += test.decision == "dependent"
    return Power(
        rate=rejected / repetitions,
        interval=wilson(rejected, repetitions),
        repetitions=repetitions,
        n=n,
        method=way.name,
        loss=loss,
        alpha=alpha,
        effect=effect if design is None else None,
        seed=seed,
    )


def smooth_model(complexity: float) -> ModelX:
    """Return the law of x given z₁ of ``simulate.smooth_design``, before clipping.

    >>> smooth_model(2.0).at(np.array([[0.0], [0.5]])).centre.round(3)
    array([0.   , 0.743])
    """
    return ModelX(mean=lambda Z: np.exp(-(Z[:, 0] ** 2) / 2) * np.sin(complexity * Z[:, 0]), sd=1.0)


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a probability.

    >>> tuple(round(end, 3) for end in wilson(5, 100))
    (0.022, 0.112)
    """
    share, square = successes / trials, NORMAL_95**2
    middle = (share + square / (2 * trials)) / (1 + square / trials)
    half = NORMAL_95 * math.sqrt(share * (1 - share) / trials + square / (4 * trials**2)) / (1 + square / trials)
    return max(0.0, middle - half), min(1.0, middle + half)
