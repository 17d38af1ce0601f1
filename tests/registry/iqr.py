"""The interquartile range released as values: claims, mechanism, ways of ``direction`` and mutants; as published, too.

The mutants' black boxes are weaker than a loss at a half-line: what is flagged are events in the tails, of which a δ is
taken first.  Each has at least a fifth more loss than is claimed, in an event of probability 0.04 or more.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.direction.scores.anm import split_rows
from dpcausal.papers import AnmTestPrivacyIqr
from dpcausal.papers.direction import anm_test_privacy as published
from dpcausal.papers.mechanisms.propose_test_release import propose_test_release
from dpcausal.papers.statistics import iqr as intervals
from dpcausal.papers.statistics.iqr import IqrReach
from dpcausal.privacy.loss import ApproxDP, Loss
from dpcausal.privacy.noise import PublicGenerator, generator_from_seed
from dpcausal.privacy.sensitivity import Norm, Unit
from tests.registry.direction import TIE_AND_BESIDE, half_on_neighbours
from tests.registry.rows import (
    MechanismRow,
    Rows,
    SensitivityRow,
    TaskRow,
    allotted,
    by_black_box,
    by_falsifier,
    queried,
)

BATCH = 20
"""Outputs from one allotment: the δ of all would not sum to a loss."""
TESTED_DELTA, CALL_DELTA, DELTA = 1e-6, 0.04, 0.04
COLUMN: dict[str, Any] = {"columns": 1, "high": 20.0}
Answers = tuple[float, float, float]


def reach_of(rows: Rows) -> IqrReach:
    return IqrReach(rows[:, 0], 0, 20)


def long_cells(rows: Rows) -> Any:
    reach = reach_of(rows)
    if reach.iqr == 0:
        return np.array([0.0, -700.0])
    cell = 2 * math.floor(math.log(reach.iqr) / 2)
    left = [reach.highest(j) >= math.exp(cell + 2) or reach.lowest(j) < math.exp(cell) for j in range(reach.most + 1)]
    return np.array([left.index(True), math.log(reach.iqr)])


def in_one_long_cell(_rng: Any, m: int, low: Rows, high: Rows) -> Rows:
    """Return records at 0, 1.1 and 6: one of them takes the IQR from 1.1 to 6, within [1, e²)."""
    upper = -(-3 * m // 4)
    rows = np.zeros((m, 1))
    rows[m // 2 : upper], rows[upper:] = 1.1, 6.0
    return rows


SECOND = "published second interval of the IQR"
SENSITIVITIES = (
    SensitivityRow("iqr-interval-distance", lambda rows: intervals.proposed_distances(reach_of(rows)),
                   lambda m: intervals.interval_sensitivity(), (4, 16, 33), 1, (
        by_falsifier(SECOND, lambda rows: intervals.proposed_distances(reach_of(rows), published.NO_SHIFT)[1], 1,
                     sizes=(16, 33), **COLUMN),
    ), COLUMN),
    SensitivityRow("log-iqr-proposal", lambda rows: intervals.proposal(reach_of(rows)),
                   lambda m: intervals.proposal_sensitivity(), (4, 16, 33), 0.99, (
        SECOND,
        by_falsifier("log IQR proposed on cells of length 2", long_cells, 1 + 2.0**-40, sizes=(16, 33),
                     norm=Norm.TESTED, starts={"in one long cell": in_one_long_cell}, evaluations=400, **COLUMN),
    ), COLUMN),
)  # fmt: skip
TEXTS = ()


def at_the_threshold(epsilon: float) -> tuple[Answers, Answers]:
    """Return a worst pair of propose-test-release: both distances grow from the threshold, 1 + (2/ε) log(1/δ)."""
    threshold = 1 + 2 / epsilon * math.log(1 / TESTED_DELTA)
    return (threshold, threshold, 0.0), (threshold + 1, threshold + 1, 0.0)


def in_batches(run: Callable[[Any], Any], loss: Loss, size: int, unit: Unit = Unit.ROW) -> list[Any]:
    """Return ``size`` outputs of a function of an allotment."""
    outputs: list[Any] = []
    while len(outputs) < size:
        budget = allotted(loss, BATCH, unit)
        outputs += [run(budget) for _ in range(min(BATCH, size - len(outputs)))]
    return outputs


def tested(answer: tuple[float, ...], epsilon: float, size: int, share: float) -> list[float | None]:
    loss = ApproxDP(round(epsilon / share, 9), TESTED_DELTA)
    query = queried(answer, Norm.TESTED)
    return in_batches(lambda budget: propose_test_release(query, budget, loss), loss, size)


RELEASE = "propose-test-release"
MECHANISMS = (
    MechanismRow(RELEASE, "propose_test_release:propose_test_release", RELEASE, at_the_threshold(1.0), tested,
                 (f"{RELEASE} with the printed threshold", f"{RELEASE} that pays half of its δ",
                  f"{RELEASE} that tells which test was passed", f"{RELEASE} with exact distances"),
                 delta=lambda epsilon: TESTED_DELTA, draws=12_000),
)  # fmt: skip


def on_a_tie(side: int, epsilon: float, size: int) -> list[Any]:
    """Return released margins on two tables beside a tie: everything after the regressions."""
    loss, rest = ApproxDP(epsilon, CALL_DELTA), TIE_AND_BESIDE[side]
    return in_batches(lambda budget: published.corrected(rest, budget, loss).margin, loss, size, Unit.TEST_ROW)


METHODS: dict[str, Any] = {RELEASE: AnmTestPrivacyIqr(constants="corrected")}
TASKS = tuple(
    TaskRow(f"direction {name}", "direction", method.proofs,
            half_on_neighbours("test", score="iqr", method=method, loss=ApproxDP(1, CALL_DELTA)), on_a_tie,
            delta=CALL_DELTA)
    for name, method in METHODS.items()
)  # fmt: skip
"""The printed propose-test-release has no claims, hence no row."""

# The interquartile algorithm through the whole public call, on a pair of neighbours at a jump of ⌊log IQR⌋.
# The split is public and everything is promised for each split, so the pair is made for one, whose seed is fixed.

ROWS, TRAINING_ROWS, SEED = 360, 8, 0
SHARE = TRAINING_ROWS / ROWS
SCHEMA = dpc.Schema(dict.fromkeys("xy", dpc.Bounded(-10, 10)))
LOSS = dpc.ApproxDP(1, 3e-6)


def same_split() -> tuple[PublicGenerator, int]:
    """Return what stands in for ``public_generator`` in the call."""
    return generator_from_seed(SEED), SEED


def neighbours() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two tables that differ in one row of the test half.

    The training rows are constant, so both regressions are, and the residuals of x on y are x itself.  In the test
    half half of the x are 0, the upper quartile is 1 by one record, and all below it are 1 − 1e-9: that record
    takes the IQR of x, and of its residuals, from 1 to 1 − 1e-9, and ⌊log IQR⌋ from 0 to −1.  A quarter of the
    records, 88, must change to move any of the four by more; the second distance printed for x falls from 88 to 0.
    """
    _, test = split_rows(ROWS, SHARE, generator_from_seed(SEED))
    upper = -(-3 * len(test) // 4) - 1
    places = np.arange(len(test))
    x, y = np.zeros(ROWS), np.full(ROWS, 1.5)
    x[test] = np.where(places < len(test) // 2, 0.0, np.where(places < upper, 1 - 1e-9, 1.0))
    y[test] = 3.0 * (places % 2)
    moved = x.copy()
    moved[test[upper]] = 1 - 1e-9
    return {"x": x, "y": y}, {"x": moved, "y": y}


def call(columns: dict[str, Any], method: Any) -> Callable[[], float | None]:
    """Return the public call on a table, from an in-memory ledger of its own; it answers with the margin."""

    def margin() -> float | None:
        ledger = dpc.Ledger.in_memory(LOSS, protect="test", accept_large_epsilon=True)
        return dpc.direction(
            dpc.Table(columns, SCHEMA, ledger, missing="impute"), "x", "y", score="iqr", loss=LOSS,
            accept_unproven=True, method=method(training_share=SHARE),
        ).margin  # fmt: skip

    return margin


def run_twice(
    one: Answers, other: Answers, threshold: float, exact: bool = False, tell: bool = False
) -> Callable[[int], tuple[Any, Any]]:
    """Return outputs of propose-test-release with noise of scale 2, which is right at ε = 1."""

    def side(rng: np.random.Generator, answers: Answers, size: int) -> list[float | None]:
        first, second, value = answers
        noise = rng.laplace(0, 2.0, (2, size)) * (not exact)
        passed = first + noise[0] > threshold, second + noise[1] > threshold
        noisy = value + rng.laplace(0, 2.0, size) + np.where(passed[0], 1e3 * tell, 0.0)
        return [float(v) if ok else None for v, ok in zip(noisy, passed[0] | passed[1], strict=True)]

    def outputs(size: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(8)
        return side(rng, one, size), side(rng, other, size)

    return outputs


FAR = 1e6
AT_ONE = (1.0, 1.0, -FAR), (1.0, 1.0, FAR)
"""One record from leaving both cells, and two values far apart: an answer tells which."""


def threshold(delta: float, scale: float = 2.0) -> float:
    return 1 + scale * math.log(1 / delta)


T = threshold(1e-6)
CROSSING = (T, T, 0.0), (T + 1, T - 1, 1.0)
"""To fail the first test, to pass the second, and a low value: each less likely by e^½ on the other side."""

MUTANTS = (
    by_black_box(f"{RELEASE} with the printed threshold", run_twice(*AT_ONE, threshold(0.01, 1.0)), delta=0.01),
    by_black_box(f"{RELEASE} that pays half of its δ", run_twice(*AT_ONE, threshold(DELTA)), delta=DELTA / 2),
    by_black_box(f"{RELEASE} that tells which test was passed", run_twice(*CROSSING, T, tell=True), delta=1e-6),
    by_black_box(f"{RELEASE} with exact distances", run_twice((T, T, 0.0), (T + 1, T + 1, 1.0), T, exact=True),
                 delta=1e-6),
)  # fmt: skip
CONTROLS = (
    by_black_box(f"{RELEASE} one record from leaving both cells", run_twice(*AT_ONE, threshold(DELTA)), delta=DELTA),
    by_black_box(f"{RELEASE} that does not tell which test was passed", run_twice(*CROSSING, T), delta=1e-6),
)  # fmt: skip
