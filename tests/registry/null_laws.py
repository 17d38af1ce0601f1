"""Each test's law under independence: its p-values on made-up nulls, skewed, tied and of many columns, against uniform.

A p-value p counts as z² = Φ⁻¹(p/2)², of mean 1 under the law that the method states; above 1 it rejects too often.
Blocks are compared twice: their scores with the standard normal law, and their terms with the law that the p-value
takes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

import dpcausal as dpc
from dpcausal.core.run import plan_call
from dpcausal.data.schema import Column
from dpcausal.independence.methods import ALL, counts
from dpcausal.independence.methods import block_test as blocks
from dpcausal.independence.null_distributions import block_distribution
from dpcausal.independence.question import IndependenceQuestion, IndependenceTest, Sample, rows_of
from dpcausal.privacy.noise import generator_from_seed

Reals = npt.NDArray[np.float64]
Columns = dict[str, npt.NDArray[Any]]

FALSE_ALARM = 5.7
"""Standard errors: a false alarm of 1e-8."""

TOO_NARROW = 0.75
"""The variance of the mutants' laws over the stated one."""

PER_BLOCK = 60


@dataclass(frozen=True)
class Null:
    """x and y that are independent given z: columns that begin with x and y are asked about, the others given."""

    draw: Callable[[np.random.Generator, int], Columns]
    schema: dict[str, Column]

    @property
    def names(self) -> tuple[list[str], list[str], list[str]]:
        """x, y and the given columns."""
        x, y = ([name for name in self.schema if name.startswith(side)] for side in "xy")
        return x, y, [name for name in self.schema if name not in (*x, *y)]


@dataclass(frozen=True)
class LawRow:
    """A method on a null of ``NULLS``, with its options.

    ``rows`` are those of a table, where the method has no blocks; ``size`` is the number of tables, or of blocks of
    one; ``epsilon`` is large where the law of the statistic is to be seen, small for that of the noise; ``kept`` is the
    share of rows that have all columns; where the law is a ``bound``, wide for rare levels, no mutant is caught.
    """

    null: str
    options: dict[str, Any] = field(default_factory=dict)
    rows: int = 150
    size: int = 1_600
    epsilon: float = 400.0
    kept: float = 1.0
    bound: bool = False


def _numbers(scale: float = 20.0) -> dpc.Bounded:
    return dpc.Bounded(-scale, scale)


def _levels(size: int) -> dpc.Levels:
    return dpc.Levels(range(size))


def _skewed(rng: np.random.Generator, n: int) -> Columns:
    z = rng.uniform(-1, 1, n)
    return {"x": z + rng.lognormal(0, 1, n), "y": -z + rng.exponential(size=n), "z": z}


def _rare(rng: np.random.Generator, n: int) -> Columns:
    z = rng.uniform(-1, 1, n)
    x, y = (rng.random((2, n)) < 0.15 + 0.05 * z).astype(np.int64)
    return {"x": x, "y": y, "z": z}


def _whole(rng: np.random.Generator, n: int) -> Columns:
    """A rare treatment, and a number of few values, in three strata."""
    s = rng.integers(0, 3, n)
    return {"x": (rng.random(n) < 0.1 + 0.1 * s).astype(np.int64), "y": s + rng.poisson(0.7, n) + 0.0, "s": s}


def _strata(strata: int, low: float) -> Callable[[np.random.Generator, int], Columns]:
    def draw(rng: np.random.Generator, n: int) -> Columns:
        s = rng.integers(0, strata, n)
        x, y = (rng.random((2, n)) < low + 0.5 * s / strata).astype(np.int64)
        return {"x": x, "y": y, "s": s}

    return draw


def _several(rng: np.random.Generator, n: int) -> Columns:
    """Three skewed columns x, one of them rare levels, and y of three levels."""
    first, second = rng.exponential(size=(2, n))
    return {"x1": first, "x2": second + first / 2, "x3": (rng.random(n) < 0.1).astype(np.int64),
            "y": rng.choice(3, n, p=[0.7, 0.2, 0.1])}  # fmt: skip


def _known(rng: np.random.Generator, n: int) -> Columns:
    z = rng.uniform(-1, 1, n)
    return {"x": (rng.random(n) < 0.15 + 0.1 * z).astype(np.int64), "y": z + rng.lognormal(0, 1, n), "z": z}


def _known_number(rng: np.random.Generator, n: int) -> Columns:
    return {"x": rng.normal(size=n), "y": rng.poisson(0.5, n) + 0.0}


def _nominal(rng: np.random.Generator, n: int) -> Columns:
    """Five levels each, some rare."""
    x, y = (rng.choice(5, n, p=[top, 0.8 - top, 0.1, 0.07, 0.03]) for top in (0.6, 0.5))
    return {"x": x, "y": y}


PAIR, TWO = {"x": _numbers(), "y": _numbers()}, {"x": _levels(2), "y": _levels(2)}
NULLS = {
    "skewed": Null(_skewed, {**PAIR, "z": _numbers(1)}),
    "skewed, nothing given": Null(lambda rng, n: {"x": rng.exponential(size=n), "y": rng.lognormal(0, 1, n)}, PAIR),
    "rare levels": Null(_rare, {**TWO, "z": _numbers(1)}),
    "rare levels, nothing given": Null(
        lambda rng, n: dict(zip("xy", (rng.random((2, n)) < 0.06).astype(np.int64), strict=True)), TWO
    ),
    "rare treatment, few values": Null(_whole, {"x": _levels(2), "y": _numbers(), "s": _levels(3)}),
    "levels in strata": Null(_strata(3, 0.2), {**TWO, "s": _levels(3)}),
    "rare levels in many strata": Null(_strata(30, 0.05), {**TWO, "s": _levels(30)}),
    "rare nominal levels": Null(_nominal, {"x": _levels(5), "y": _levels(5)}),
    "many columns": Null(
        _several, {"x1": _numbers(), "x2": _numbers(), "x3": _levels(2), "y": _levels(3)}
    ),
    "known chances": Null(_known, {"x": _levels(2), "y": _numbers(), "z": _numbers(1)}),
    "known law": Null(_known_number, PAIR),
}  # fmt: skip

CHANCES = dpc.ModelX(mean=lambda z: 0.15 + 0.1 * z[:, 0])
NORMAL = dpc.ModelX(mean=lambda z: np.zeros(len(z)), sd=1.0)

OF_BLOCKS = LawRow("skewed, nothing given"), LawRow("rare levels, nothing given"), LawRow("many columns")
OF_CHANCES = LawRow("known chances", {"model_x": CHANCES}, size=800)
LAWS: dict[str, tuple[LawRow, ...]] = {
    "neighbours": (LawRow("skewed", size=1_800), LawRow("rare levels", rows=300, size=400, bound=True)),
    "strata-covariance": (
        LawRow("levels in strata", rows=1_000, size=2_400), LawRow("rare levels in many strata", size=500, bound=True),
    ),
    "counts": (
        LawRow("levels in strata", rows=1_000, size=1_300),
        LawRow("rare nominal levels", rows=1_000, size=400, epsilon=0.1, bound=True),
    ),
    "kendall": (
        LawRow("skewed, nothing given", rows=300, size=1_800, kept=0.7),
        LawRow("rare treatment, few values", size=400, bound=True),
    ),
    **{kind.name: OF_BLOCKS for kind in ALL if issubclass(kind, blocks.BlockTest)},
    "gcm-weighted": OF_BLOCKS[2:],
    "crt": (LawRow("known law", {"model_x": NORMAL}, size=800), OF_CHANCES),
}  # fmt: skip
"""By method: what releases a p-value needs a row that is no bound."""


def found_on(method: IndependenceTest, row: LawRow) -> tuple[Reals, Reals, float]:
    """Return scores z, their squares as the law has them, and the mean that it gives the squares."""
    if hasattr(method, "blocks"):
        return _of_blocks(method, row)
    z = _of_tables(method, row)
    return z, z**2, 1.0


def excess(squares: Reals, expected: float) -> float:
    """Return by how many standard errors the mean of squares is above what is expected."""
    return float((squares.mean() - expected) / (squares.std() / len(squares) ** 0.5))


def _planned(method: IndependenceTest, row: LawRow, n: int) -> tuple[Any, Callable[[int], Sample]]:
    """Return the planned call, and a function that draws rows from a seed."""
    null = NULLS[row.null]
    loss, schema, (x, y, given) = dpc.PureDP(row.epsilon), dpc.Schema(null.schema), null.names
    columns = {name: np.zeros(n, dtype=np.int64) for name in null.schema}
    missing = "impute" if row.kept == 1 else "drop"
    ledger = dpc.Ledger.in_memory(dpc.PureDP(10**6), accept_large_epsilon=True)
    table = dpc.Table(columns, schema, ledger, missing=missing)
    question = IndependenceQuestion.of(table, x, y, given, 0.05)

    def rows(seed: int) -> Sample:
        rng = np.random.default_rng(seed)
        found = null.draw(rng, n)
        for name, kind in null.schema.items():
            if isinstance(kind, dpc.Bounded):
                found[name] = np.clip(found[name], kind.lower, kind.upper)
        return rows_of(found, schema, tuple(x), tuple(y), tuple(given), rng.random(n) < row.kept)

    return plan_call(question, method, loss), rows


def _of_tables(method: IndependenceTest, row: LawRow) -> Reals:
    """Return Φ⁻¹(p/2) of many tables."""
    plan, rows = _planned(method, row, row.rows)
    pvalues = []
    with dpc.simulated_noise(5), mock.patch.object(counts, "MOST_COPIES", 250):
        allotment = plan.question.ledger.charge(dpc.PureDP(row.epsilon * row.size), task="nulls")
        for seed in range(row.size):
            pvalues.append(plan.released(rows(seed), generator_from_seed(seed), allotment)().pvalue)
    return np.asarray(ndtri(np.array(pvalues) / 2))


def _of_blocks(method: IndependenceTest, row: LawRow) -> tuple[Reals, Reals, float]:
    """Return the scores and the squares of the terms of many blocks of one table."""
    options: dict[str, Any] = {"blocks": row.size, "resamples": 19, "regression": "additive"}
    plan, rows = _planned(replace(method, **options), row, row.size * PER_BLOCK)
    scored, summed = [], []
    scores, total = blocks.block_scores, blocks.block_sum

    def scoring(*arguments: Any) -> list[float]:
        scored.extend(scores(*arguments))
        return scored

    def summing(terms: list[int], *rest: Any) -> Any:
        summed.extend(terms)
        return total(terms, *rest)

    patches = (mock.patch.object(blocks, "block_scores", scoring), mock.patch.object(blocks, "block_sum", summing))
    with dpc.simulated_noise(5), patches[0], patches[1]:
        allotment = plan.question.ledger.charge(plan.spent, task="nulls")
        plan.released(rows(1), generator_from_seed(1), allotment)()
    law = block_distribution(row.size)
    places = np.arange(law.size) - law.size // 2
    return np.array(scored), np.array(summed) ** 2.0, float(law @ places**2.0) / row.size
