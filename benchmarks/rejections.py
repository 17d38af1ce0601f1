"""How often a test rejects on tables of a design: its power, or its level where the effect is 0."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import ledger_of
from dpcausal.core import validate
from dpcausal.independence.methods import METHODS
from dpcausal.independence.methods.hsic import Hsic
from dpcausal.independence.question import IndependenceTest
from dpcausal.privacy.noise import generator_from_seed


def smooth_model(complexity: float) -> dpc.ModelX:
    """Return the distribution of x given z of ``simulate.smooth_design``, before clipping."""
    return dpc.ModelX(mean=lambda Z: np.exp(-(Z[:, 0] ** 2) / 2) * np.sin(complexity * Z[:, 0]), sd=1.0)


def rejection_rate(
    n: int, *, loss: Any, method: Any = "auto", effect: float = 0.2, complexity: float = 2.0, dimensions: int = 1,
    bound: float = 3.0, design: Callable[[int, int], Any] | None = None, alpha: float = 0.05, repetitions: int = 100,
    seed: int, **consent: bool,
) -> float:  # fmt: skip
    """Return the share of simulated tables of n rows on which a test rejects.

    ``effect`` and what follows are those of ``simulate.smooth_design``; ``design``, a function of (n, seed), replaces
    it.
    """
    test = validate.choose_method(method, IndependenceTest, METHODS)
    if design is None and getattr(test, "model_x", ...) is None:
        test = replace(test, model_x=smooth_model(complexity))
    smooth = {"effect": effect, "complexity": complexity, "dimensions": dimensions, "bound": bound}
    drawn = design or (lambda n, seed: dpc.simulate.smooth_design(n, seed=seed, **smooth))
    rejected = 0
    for for_data, for_noise in generator_from_seed(seed).integers(2**62, size=(repetitions, 2)).tolist():
        data = drawn(n, for_data)
        missing: Any = "drop" if test.supports_missing else "impute"
        table = dpc.Table(
            data.columns, data.schema, ledger_of(loss), person=getattr(data, "person", None), missing=missing
        )
        given = [] if isinstance(test, Hsic) and design is None else list(data.given)
        with dpc.simulated_noise(for_noise):
            result = dpc.ci_test(table, "x", "y", given=given, loss=loss, method=test, alpha=alpha, **consent)
        rejected += result.decision == "dependent"
    return rejected / repetitions
