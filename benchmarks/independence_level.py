"""Level and power of the default independence test by design: share of rejections at nominal 0.05.

    python -m benchmarks independence_level --rows 300 2000
    python -m benchmarks independence_level --families "unseen 4" "unseen 4, linked" --runs 500

Of ``neighbours`` and of blocks the sum is computed once a table, and the share of the noise that makes it significant
is added up, not drawn: one table serves every ε.  Blocks are independent of each other, so the distribution of their
sum is that of as many terms drawn from all tables' blocks: computed, with the jackknife over tables.  A level above
0.07 by more than two standard errors is HIGH; the exit code is 1 if more than three designs are.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs.independence.shapes import BLOCKS, DESIGNS
from benchmarks.run import Report, benchmark, selected
from dpcausal.errors import ParameterError
from dpcausal.independence.methods import choice
from dpcausal.independence.methods.block_test import BlockTest, block_scores
from dpcausal.independence.methods.neighbours import Neighbours
from dpcausal.independence.null_distributions import (
    block_pvalue,
    block_term,
    geometric_tail,
    normal_laplace_pvalue,
    reach_of,
)
from dpcausal.independence.question import IndependenceQuestion
from dpcausal.mechanisms.additive import laplace_scale
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.statistics.neighbour_pairs import signed_sensitivity

LEVEL, MOST, FAILING = 0.05, 0.07, 3


@lru_cache
def critical(pvalue: Callable[..., float], *null: float) -> int:
    """Return the least whole number that is significant."""
    low, high = 0, 2**40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pvalue(middle, *null) <= LEVEL else (middle, high)
    return high


def share(total: int, least: int, scale: float) -> float:
    """Return the share of the noise that takes a sum to at least that size."""
    return float(geometric_tail(np.array([least - total, least + total], dtype=np.float64), scale).sum())


def question_of(data: Any, ledger: dpc.Ledger) -> IndependenceQuestion:
    table = dpc.Table(data.columns, data.schema, ledger, person=getattr(data, "person", None))
    return IndependenceQuestion.of(table, "x", "y", data.given, LEVEL)


def rejected(draw: Any, n: int, runs: int, epsilons: list[float], link: float) -> Iterator[list[float | list[int]]]:
    """For each table how likely it is rejected at each ε, or of a test in blocks the terms of its blocks."""
    ledger, tests, least = dpc.Ledger.in_memory(dpc.PureDP(2)), dict[float, Any](), dict[float, tuple[int, float]]()
    for seed in range(runs):
        data = draw(n, np.random.default_rng(seed), link)
        question = question_of(data, ledger)
        rows, sums = question.read(), dict[Any, Any]()
        found: list[float | list[int]] = []
        for epsilon in epsilons:
            if epsilon not in tests:  # of public facts alone, which all tables share
                tests[epsilon] = test = planned(question, epsilon)
                if isinstance(test, Neighbours):
                    bound = signed_sensitivity(test.neighbours or 1, question.unit).bound
                    scale = laplace_scale(bound, PureDP(epsilon))
                    least[epsilon] = critical(normal_laplace_pvalue, test.deviation(question), scale), scale
            test = tests[epsilon]
            if isinstance(test, Neighbours) and not question.tied:
                if test not in sums:
                    sums[test] = test.sums(rows, question, generator_from_seed(seed)).signed
                found.append(share(sums[test], *least[epsilon]))
            elif isinstance(test, BlockTest):
                blocks = test.blocks or 1
                if blocks not in sums:
                    scores = block_scores(test, rows, question, generator_from_seed(seed))
                    sums[blocks] = [block_term(score, reach_of(blocks)) for score in scores]
                found.append(sums[blocks])
            else:
                person = getattr(data, "person", None)
                paid = dpc.Ledger.in_memory(dpc.PureDP(epsilon), person=person)
                own = dpc.Table(data.columns, data.schema, paid, person=person)
                with dpc.simulated_noise(seed):
                    t = dpc.ci_test(own, "x", "y", given=data.given, loss=PureDP(epsilon), method=test)
                found.append(float(t.decision == "dependent"))
        yield found


def planned(question: IndependenceQuestion, epsilon: float) -> Any:
    """The default's choice, with its public rules worked out."""
    return choice(question, PureDP(epsilon))[0].plan(question, PureDP(epsilon))


def block_level(terms: list[int], blocks: int, epsilon: float, two_sided: bool) -> float:
    """How often the sum of this many terms, drawn from these, is significant with its noise.

    >>> from statistics import NormalDist
    >>> terms = [term(NormalDist().inv_cdf((i + 0.5) / 2000)) for i in range(2000)]
    >>> round(block_level(terms, 16, 1.0, True), 3)
    0.05
    """
    reach = reach_of(blocks)
    size = 2 * reach * blocks + 1
    one = np.bincount(np.array(terms) + reach, minlength=2 * reach + 1) / len(terms)
    null = np.fft.irfft(np.fft.rfft(one, 2 * size) ** blocks, 2 * size)[:size]
    least = critical(block_pvalue, blocks, epsilon, two_sided)
    sums = np.arange(size) - reach * blocks
    tails = geometric_tail((least - sums).astype(np.float64), 2 * reach / epsilon)
    if two_sided:
        tails = tails + geometric_tail((least + sums).astype(np.float64), 2 * reach / epsilon)
    return float(null @ tails)


def jackknifed(level: Callable[[list[int]], float], tables: list[list[int]]) -> tuple[float, float]:
    """Return a level of all tables' terms less its bias, and its standard error, by leaving out one table at a time."""
    whole = level([one for table in tables for one in table])
    if len(tables) < 2:
        return whole, 0.0
    apart = np.array([
        level([one for place, table in enumerate(tables) if place != left for one in table])
        for left in range(len(tables))
    ])  # fmt: skip
    count = len(tables)
    error = (count - 1) ** 0.5 * float(apart.std())
    return count * whole - (count - 1) * float(apart.mean()), error


def rates(draw: Any, n: int, runs: int, epsilons: list[float], link: float = 0.0) -> list[tuple[float, float, str]]:
    """How often tables are rejected at each ε, with its standard error, and by which method."""
    found = list(rejected(draw, n, runs, epsilons, link))
    question = question_of(draw(n, np.random.default_rng(0), link), dpc.Ledger.in_memory(dpc.PureDP(2)))
    result = []
    for epsilon, ones in zip(epsilons, zip(*found, strict=True), strict=True):
        test = planned(question, epsilon)
        if isinstance(ones[0], float):
            result.append((float(np.mean(ones)), float(np.std(ones)) / len(ones) ** 0.5, test.name))
            continue

        def level(terms: list[int], test: Any = test, epsilon: float = epsilon) -> float:
            return block_level(terms, test.blocks, epsilon, test.two_sided(question))

        result.append((*jackknifed(level, list(ones)), test.name))
    return result


@benchmark(
    "independence", designs=[], families=["shapes", "shapes, later", "unseen 1"], rows=[300, 1_000, 2_000, 5_000],
    epsilons=[0.1, 0.5, 1.0], runs=2_000, blocks=100, link=0.0,
    seeds="rows from numpy's default_rng(seed), seed = 0, 1, ... of each design and n; noise is summed up",
)  # fmt: skip
def main(report: Report) -> None:
    given, failing = report.given, set[str]()
    for design, one in selected(DESIGNS, given).items():
        runs = min(given.runs, given.blocks) if design in BLOCKS else given.runs
        for n in given.rows:
            where = {"n": n, "frozen_at": one.frozen_at, "runs": runs}
            try:
                levels = rates(one.make, n, runs, given.epsilons, given.link)
            except ParameterError as refusal:
                report.add(design, {}, **where, note=f"refused: {str(refusal)[:60]}")
                continue
            linked = given.link or "linked" in one.family
            for epsilon, (rate, error, method) in zip(given.epsilons, levels, strict=True):
                high = rate - 2 * error > MOST and not linked
                failing |= {design} if high else set()
                report.add(design, {"power" if linked else "level": (rate, error)}, epsilon=epsilon, method=method,
                           note="HIGH" if high else "", **where)  # fmt: skip
    report.target(f"designs that fail: {len(failing)}, at most {FAILING}", len(failing) <= FAILING)
