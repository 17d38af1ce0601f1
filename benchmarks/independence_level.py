"""Level of the independence tests under true nulls, shape by shape: share of rejections at nominal .05.

    python -m benchmarks independence_level [repetitions] [slow repetitions] [--rows=300,2000] [--write]
    python -m benchmarks independence_level 0 6 --rows=20000 "--shapes=additive in d = 5;step in d = 3"

Of `neighbours` and of blocks the sum is computed once a table, and the share of the noise that makes it significant is
added up, not drawn: one table serves every ε, and the noise costs no runs.
Blocks are independent of each other, so the law of their sum is that of as many terms drawn from all tables' blocks:
computed, with the jackknife over tables.  ``--rows``: only these numbers of rows.  ``--write`` puts these columns in
the page's tables, and leaves the rest.  A level above .07 by more than two standard errors is marked; the exit code is
1 if more than three shapes are.
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
from dpcausal.errors import ParameterError
from dpcausal.independence.methods import choice
from dpcausal.independence.methods.block_test import BlockTest, block_scores
from dpcausal.independence.methods.neighbours import Neighbours
from dpcausal.independence.null_laws import block_pvalue, geometric_tail, normal_laplace_pvalue, reach_of, term
from dpcausal.independence.question import IndependenceQuestion
from dpcausal.mechanisms.additive import laplace_scale
from dpcausal.privacy.loss import PureDP
from dpcausal.privacy.noise import generator_from_seed
from dpcausal.statistics.neighbour_pairs import signed_sensitivity

PAGE = Path(__file__).resolve().parent.parent / "docs" / "independence_level.md"
EPSILONS = (0.1, 0.5, 1.0)
LEVEL, MOST, FAILING = 0.05, 0.07, 3
TABLES = {"shapes": (300, 1_000, 2_000, 5_000, 20_000), "ends": (200, 250, 100_000, 1_000_000)}
"""Numbers of rows of the page's tables."""

SEVERAL = (250, 2_000, 20_000)
"""Those where several numbers are given: two blocks have 250 rows, and nothing else is asked there."""

HEAD = """Made column by column by `python -m benchmarks independence_level TABLES SLOW --rows=N --write`: how often
`dpcausal.ci_test` with its default method calls x and y dependent where they are independent given z, at nominal .05,
for ε = .1 / .5 / 1. Over a column the number of TABLES, and after it SLOW, where several numbers are given, whose
blocks' terms make the law of the sum (two standard errors in brackets). *Drawn* tables are fewer in columns of older
runs, where x and y have levels or only levels are given: elsewhere the noise is summed up and not drawn. Two standard
errors at .05 are .010 of 2,000 tables, .019 of 500, .044 of 100, .069 of 40 and .14 of 10, and less where the noise is
summed up. **Bold**: above .07 by more than two standard errors. *Answered*: the share of the calls that were not
refused. The shapes are those of `benchmarks/independence_shapes.py`; the last {fresh} were named after defaults had
been fixed, and are left as they were found.

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
    """Yield for each table how likely it is rejected at each ε, or of a test in blocks the terms of its blocks."""
    ledger, tests, least = dpc.Ledger.in_memory(dpc.PureDP(2)), dict[float, Any](), dict[float, tuple[int, float]]()
    for seed in range(repetitions):
        data = drawn_table(shape, n, seed)
        table = dpc.Table(data.columns, data.schema, ledger, person=getattr(data, "person", None))
        question = IndependenceQuestion.of(table, "x", "y", data.given, LEVEL)
        rows, sums = question.read(), dict[Any, Any]()
        found: list[float | list[int]] = []
        for epsilon in EPSILONS:
            if epsilon not in tests:  # of public facts alone, which all tables share
                test: Any = settled(question, epsilon)
                tests[epsilon] = test
                if isinstance(test, Neighbours):
                    bound = signed_sensitivity(test.neighbours or 1, question.unit).bound
                    scale = laplace_scale(bound, PureDP(epsilon))
                    least[epsilon] = critical(normal_laplace_pvalue, test.deviation(question), scale), scale
            test = tests[epsilon]
            if isinstance(test, Neighbours) and not test.tied(question):
                if test not in sums:
                    sums[test] = test.sums(rows, question, generator_from_seed(seed)).signed
                found.append(share(sums[test], *least[epsilon]))
            elif isinstance(test, BlockTest):
                blocks = test.blocks or 1
                if blocks not in sums:
                    scores = block_scores(test, rows, question, generator_from_seed(seed))  # type: ignore[arg-type]
                    sums[blocks] = [term(score, reach_of(blocks)) for score in scores]
                found.append(sums[blocks])
            else:
                person = getattr(data, "person", None)
                paid = dpc.Ledger.in_memory(dpc.PureDP(epsilon), person=person)
                own = dpc.Table(data.columns, data.schema, paid, person=person)
                with dpc.simulated_noise(seed):
                    t = dpc.ci_test(own, "x", "y", given=data.given, loss=PureDP(epsilon), method=test)
                found.append(float(t.decision == "dependent"))
        yield found


def settled(question: IndependenceQuestion, epsilon: float) -> Any:
    """Return the default's choice, settled."""
    return choice(question, PureDP(epsilon))[0].plan(question, PureDP(epsilon))


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
    question, pairs, blocks = IndependenceQuestion.of(table, "x", "y", data.given, LEVEL), [], False
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


def columns_of(table: str) -> dict[str, dict[str, str]]:
    """Return the cells of a table of the page: by column, and in it by shape.

    >>> columns_of("| shape | n = 300 (2,000) |\\n|---|---|\\n| step | .050 / .051 / .052 |")
    {'n = 300 (2,000)': {'step': '.050 / .051 / .052'}}
    """
    lines = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {name: {line[0]: line[at] for line in lines[1:]} for at, name in enumerate(lines[0]) if at}


def column(
    n: int, repetitions: int, slow: int, only: list[str]
) -> tuple[str, dict[str, str], list[bool]]:
    """Return the heading of the column of so many rows, its cells by shape, and which calls were answered."""
    cells, answered = {}, []
    for shape in (*SHAPES, *FRESH):
        if shape not in only if only else n not in SEVERAL if shape in SLOW else n == SEVERAL[0]:
            continue
        _, words, one = levels(shape, n, slow if shape in SLOW else repetitions)
        cells[shape], answered = words, [*answered, one]
        print(f"{n:9,} {shape:42} {words}", flush=True)
    counts = [f"{count:,}" for count, some in ((repetitions, n != SEVERAL[0]), (slow, n in SEVERAL)) if some]
    return f"n = {n:,} ({'; '.join(counts)})", cells, answered


def rows_of(heading: str) -> int:
    return int(heading.split(" (")[0].removeprefix("n = ").replace(",", ""))


def page_table(columns: dict[str, dict[str, str]]) -> tuple[str, list[str]]:
    """Return a table with its columns in order of n, what was refused counted, and the shapes that fail."""
    names = sorted((name for name in columns if name.startswith("n = ")), key=rows_of)
    lines = [f"| shape | {' | '.join(names)} | answered |", "|---" * (2 + len(names)) + "|"]
    failing = []
    for shape in (*SHAPES, *FRESH):
        cells = [columns[name].get(shape, "–") for name in names]
        asked = [cell for cell in cells if cell != "–"]
        failing += [shape] * any("**" in cell for cell in asked)
        answered = sum(cell != "refused" for cell in asked) / max(1, len(asked))
        lines.append(f"| {shape} | {' | '.join(cells)} | {answered:.2g} |")
    return "\n".join(lines) + "\n", failing


def main(arguments: list[str]) -> int:
    """Print the levels; return 1 if more than three shapes fail."""
    numbers = [int(one) for one in arguments if not one.startswith("--")]
    repetitions, slow = (*numbers, *(2_000, 100)[len(numbers) :])[:2]
    only = next((one.removeprefix("--shapes=").split(";") for one in arguments if one.startswith("--shapes=")), [])
    picked = [one.removeprefix("--rows=") for one in arguments if one.startswith("--rows=")]
    asked = [int(n) for one in picked for n in one.split(",")] or list(TABLES["shapes"])
    failing: list[str] = []
    for n in asked:
        heading, cells, answered = column(n, repetitions, slow, only)
        print(f"{heading}: {sum(answered) / len(answered):.2g} of the shapes answered")
        failing += [shape for shape, words in cells.items() if "**" in words]
        if "--write" not in arguments:
            continue
        name = next(name for name, sizes in TABLES.items() if n in sizes)
        page = PAGE.read_text(encoding="utf-8")
        made = page.split(f"<!-- made: {name} -->\n")[1].split(f"<!-- end: {name} -->")[0]
        kept = {old: one for old, one in columns_of(made).items() if old.startswith("n = ") and rows_of(old) != n}
        table, bad = page_table({**kept, heading: cells})
        last = f"\nShapes that fail: {', '.join(bad) or 'none'}.\n"
        PAGE.write_text(written(page, name, HEAD.format(fresh=len(FRESH)) + table + last), encoding="utf-8")
    print(f"\nShapes that fail: {', '.join(dict.fromkeys(failing)) or 'none'}.")
    return int(len(set(failing)) > FAILING)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
