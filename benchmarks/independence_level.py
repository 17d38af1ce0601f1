"""Level of the independence tests under true nulls, shape by shape: share of rejections at nominal .05.

    python -m benchmarks independence_level [repetitions] [slow repetitions] [--ends] [--write]

Where the released sum does not hang on ε (`neighbours`, blocks as many) it is computed once a table, and the share of
the noise that makes it significant is added up, not drawn: one table serves every ε, and the noise costs no runs.
Blocks are independent of each other, so the law of their sum is that of as many terms drawn from all tables' blocks:
computed, with the jackknife over tables.  ``--ends``: n = 200, and 100,000 and a million by
few tables and without blocks.  ``--write`` puts the table between its two marks in the page, and leaves the rest.  A
level above .07 by more than two standard errors is marked; the exit code is 1 if more than three shapes are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.independence_shapes import FRESH, SHAPES, SLOW, Draw, design
from dpcausal.dependence.neighbour_pairs import signed_sensitivity
from dpcausal.errors import ParameterError
from dpcausal.independence.automatic import choice
from dpcausal.independence.blocks import BlockTest, block_scores
from dpcausal.independence.law import block_pvalue, geometric_tail, normal_laplace_pvalue, reach_of, term
from dpcausal.independence.neighbours import Neighbours
from dpcausal.independence.question import Hypothesis
from dpcausal.mechanisms.additive import laplace_scale
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.noise import generator_from_seed

PAGE = Path(__file__).resolve().parent.parent / "docs" / "independence_level.md"
EPSILONS = (0.1, 0.5, 1.0)
LARGE, FIFTH, DRAWN, LEVEL = 5_000, 5, 4, 0.05
MOST, FAILING = 0.07, 3
FEW = {100_000: 40, 1_000_000: 10}
TABLES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "shapes": ((300, 1_000, 2_000, 5_000), (2_000,)), "ends": ((200, *FEW), (250,)),
}  # fmt: skip
"""Numbers of rows of a table of the page, and of those where several numbers are given (two blocks have 250 rows)."""

HEAD = """Made by `python -m benchmarks independence_level {arguments}--write`: how often `dpcausal.ci_test` with its
default method calls x and y dependent where they are independent given z, at nominal .05, for ε = .1 / .5 / 1.
{repetitions} tables a number (two standard errors at .05: {error:.3f}, and less where the noise is summed up and not
drawn), a quarter of them where it is drawn, that is where x and y have levels, or only levels are given
({drawn_error:.3f}); {slow} where several numbers are given, whose blocks' terms make the law of the sum (two standard
errors in brackets); of n = 5,000 a fifth, of n = 100,000 and 1,000,000 {few}.
**Bold**: above .07 by more than two standard errors. *Answered*: the share of the calls that were not refused. The
shapes are those of `benchmarks/independence_shapes.py`; the last {fresh} were named after defaults had been fixed, and
are left as they were found.

"""


@lru_cache
def critical(pvalue: Callable[..., float], *law: float) -> int:
    """Return the least whole number that is significant."""
    low, high = 0, 2**40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pvalue(middle, *law) <= LEVEL else (middle, high)
    return high


def share(total: int, least: int, scale: float) -> float:
    """Return the share of the noise that takes a sum to at least that size."""
    return float(geometric_tail(np.array([least - total, least + total], dtype=np.float64), scale).sum())


def drawn_table(shape: str | Draw, n: int, seed: int) -> Any:
    """Return a table of a shape, or of a function that draws one."""
    return design(shape)(n, seed) if isinstance(shape, str) else shape(n, np.random.default_rng(seed), 0.0)


def rejected(shape: str | Draw, n: int, repetitions: int) -> Iterator[list[float | list[int]]]:
    """Yield for each table how likely it is rejected at each ε, or of a test in blocks the terms of its blocks.

    Of a quarter of the tables where the noise is drawn.
    """
    drawn = False
    for seed in range(repetitions):
        data = drawn_table(shape, n, seed)
        table = dpc.Table(data.columns, data.schema, dpc.Ledger.in_memory(dpc.PureDP(2)),
                          person=getattr(data, "person", None))  # fmt: skip
        question = Hypothesis.of(table, "x", "y", data.given, LEVEL)
        rows, sums = question.read(), dict[Any, Any]()
        found: list[float | list[int]] = []
        for epsilon in EPSILONS:
            test: Any = settled(question, epsilon)
            if isinstance(test, Neighbours) and not test.tied(question):
                if None not in sums:
                    sums[None] = test.sums(rows, question, generator_from_seed(seed)).signed
                scale = laplace_scale(signed_sensitivity(test.neighbours or 1, question.unit).bound, PureDP(epsilon))
                least = critical(normal_laplace_pvalue, test.deviation(question), scale)
                found.append(share(sums[None], least, scale))
            elif isinstance(test, BlockTest):
                blocks = test.blocks or 1
                if blocks not in sums:
                    scores = block_scores(test, rows, question, generator_from_seed(seed))  # type: ignore[arg-type]
                    sums[blocks] = [term(score, reach_of(blocks)) for score in scores]
                found.append(sums[blocks])
            else:
                with dpc.simulated_noise(seed):
                    t = dpc.ci_test(table, "x", "y", given=data.given, loss=PureDP(epsilon), method=test)
                found.append(float(t.decision == "dependent"))
                drawn = True
        yield found
        if drawn and seed + 1 >= repetitions / DRAWN:
            return


def settled(question: Hypothesis, epsilon: float) -> Any:
    """Return the default's choice, settled."""
    return choice(question, PureDP(epsilon))[0].settle(question, PureDP(epsilon))


def block_level(terms: list[int], blocks: int, epsilon: float, two_sided: bool) -> float:
    """Return how often the sum of so many independent terms of the law of these, with its noise, is significant.

    >>> from statistics import NormalDist
    >>> terms = [term(NormalDist().inv_cdf((i + 0.5) / 2000)) for i in range(2000)]
    >>> round(block_level(terms, 16, 1.0, True), 3)
    0.05
    """
    reach = reach_of(blocks)
    size = 2 * reach * blocks + 1
    one = np.bincount(np.array(terms) + reach, minlength=2 * reach + 1) / len(terms)
    law = np.fft.irfft(np.fft.rfft(one, 2 * size) ** blocks, 2 * size)[:size]
    least = critical(block_pvalue, blocks, epsilon, two_sided)
    sums = np.arange(size) - reach * blocks
    tails = geometric_tail((least - sums).astype(np.float64), 2 * reach / epsilon)
    if two_sided:
        tails = tails + geometric_tail((least + sums).astype(np.float64), 2 * reach / epsilon)
    return float(law @ tails)


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


def rates(shape: str | Draw, n: int, repetitions: int) -> tuple[list[tuple[float, float]], bool]:
    """Return how often tables are rejected at each ε, with its standard error, and whether by blocks."""
    found = list(rejected(shape, n, repetitions))
    data: Any = drawn_table(shape, n, 0)
    ledger = dpc.Ledger.in_memory(dpc.PureDP(2))
    table = dpc.Table(data.columns, data.schema, ledger, person=getattr(data, "person", None))
    question, pairs, blocks = Hypothesis.of(table, "x", "y", data.given, LEVEL), [], False
    for epsilon, ones in zip(EPSILONS, zip(*found, strict=True), strict=True):
        if isinstance(ones[0], float):
            pairs.append((float(np.mean(ones)), float(np.std(ones)) / len(ones) ** 0.5))
            continue
        test, blocks = settled(question, epsilon), True

        def level(terms: list[int], test: Any = test, epsilon: float = epsilon) -> float:
            return block_level(terms, test.blocks, epsilon, test.two_sided(question))

        pairs.append(jackknifed(level, list(ones)))
    return pairs, blocks


def levels(shape: str, n: int, repetitions: int) -> tuple[bool, str, bool]:
    """Return whether a level is more than it may be, the levels in words, and whether the calls were answered."""
    try:
        pairs, blocks = rates(shape, n, repetitions)
    except ParameterError:
        return False, "refused", False
    means, errors = np.array(pairs).T
    told = f" ({2 * errors[-1]:.3f})".replace("(0.", "(.") if blocks else ""
    above = means - 2 * errors > MOST
    words = [f"{mean:.3f}".lstrip("0") for mean in means]
    marked = [f"**{word}**" if bad else word for word, bad in zip(words, above, strict=True)]
    return bool(above.any()), " / ".join(marked) + told, True


def written(page: str, name: str, text: str) -> str:
    """Return the page with a text between its marks of that name, everything else as it was."""
    begin, end = f"<!-- made: {name} -->\n", f"<!-- end: {name} -->\n"
    before, rest = page.split(begin)
    return before + begin + text + end + rest.split(end)[1]


def main(arguments: list[str]) -> int:
    """Print the table; return 1 if more than three shapes fail."""
    numbers = [int(one) for one in arguments if not one.startswith("--")]
    repetitions, slow = (*numbers, *(2_000, 100)[len(numbers) :])[:2]
    name = "ends" if "--ends" in arguments else "shapes"
    usual, several = TABLES[name]
    columns = sorted({*usual, *several})
    lines = [f"| shape | {' | '.join(f'n = {n:,}' for n in columns)} | answered |", "|---" * (2 + len(columns)) + "|"]
    failing = []
    print("\n".join(lines), flush=True)
    for shape in (*SHAPES, *FRESH):
        asked, runs = (several, slow) if shape in SLOW else (usual, repetitions)
        found = {n: levels(shape, n, FEW.get(n, max(1, runs // (FIFTH if n >= LARGE else 1)))) for n in asked}
        failing += [shape] * any(bad for bad, _, _ in found.values())
        answered = sum(one for _, _, one in found.values()) / len(found)
        cells = " | ".join(found[n][1] if n in found else "–" for n in columns)
        lines.append(f"| {shape} | {cells} | {answered:.2g} |")
        print(lines[-1], flush=True)
    last = f"\nShapes that fail: {', '.join(failing) or 'none'}.\n"
    print(last)
    if "--write" in arguments:
        counts = {"": repetitions, "drawn_": repetitions // DRAWN}
        errors = {f"{kind}error": 2 * (0.05 * 0.95 / count) ** 0.5 for kind, count in counts.items()}
        head = HEAD.format(
            arguments=f"{repetitions} {slow} {'--ends ' if name == 'ends' else ''}", repetitions=repetitions, slow=slow,
            few=" and ".join(map(str, FEW.values())), fresh=len(FRESH), **errors,
        )  # fmt: skip
        page = written(PAGE.read_text(encoding="utf-8"), name, head + "\n".join(lines) + "\n" + last)
        PAGE.write_text(page, encoding="utf-8")
    return int(len(failing) > FAILING)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
