"""Level of the independence tests under true nulls, shape by shape: share of rejections at nominal .05.

    python -m benchmarks independence_level [repetitions] [slow repetitions] [--write]

Where the released sum does not hang on ε (`neighbours`, blocks as many) it is computed once a table, and the share of
the noise that makes it significant is added up, not drawn: one table serves every ε, and the noise costs no runs.
``--write`` puts the table into ``docs/independence_level.md``.  A level above .07 by more than two standard errors is
marked; the exit code is 1 if more than three shapes are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.independence_shapes import FRESH, SHAPES, SLOW, design
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
ROWS, SLOW_ROWS, EPSILONS = (300, 2_000, 5_000), (2_000,), (0.1, 0.5, 1.0)
LARGE, TENTH, DRAWN, LEVEL = 5_000, 10, 4, 0.05
MOST, FAILING = 0.07, 3

HEAD = """# Level of the independence tests, shape by shape

Made by `python -m benchmarks independence_level {arguments}--write`: how often `dpcausal.ci_test` with its default
method calls x and y dependent where they are independent given z, at nominal .05, for ε = .1 / .5 / 1. {repetitions}
tables a number (two standard errors at .05: {error:.3f}, and less where the noise is summed up and not drawn), a
quarter of them where it is drawn, that is where x and y have levels, or only levels are given ({drawn_error:.3f}),
{slow} where several numbers are given ({slow_error:.3f}); of n = 5,000 a tenth.
**Bold**: above .07 by more than two standard errors. *Answered*: the share of the calls that were not refused. The
shapes are those of `benchmarks/independence_shapes.py`; the last {fresh} were named after the defaults had been fixed,
the last five of them a round later, and are left as they were found.

"""


@lru_cache
def _critical(pvalue: Callable[..., float], *law: float) -> int:
    """Return the least whole number that is significant."""
    low, high = 0, 2**40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pvalue(middle, *law) <= LEVEL else (middle, high)
    return high


def _share(total: int, least: int, scale: float) -> float:
    """Return the share of the noise that takes a sum to at least that size."""
    return float(geometric_tail(np.array([least - total, least + total], dtype=np.float64), scale).sum())


def rejected(shape: str, n: int, repetitions: int) -> Iterator[list[float]]:
    """Yield for each table how likely it is rejected at each ε; where the noise is drawn, of a quarter of them."""
    drawn = False
    for seed in range(repetitions):
        data: Any = design(shape)(n, seed)
        table = dpc.Table(data.columns, data.schema, dpc.Ledger.in_memory(dpc.PureDP(2)),
                          person=getattr(data, "person", None))  # fmt: skip
        question = Hypothesis.of(table, "x", "y", data.given, LEVEL)
        rows, found, sums = question.read(), [], dict[Any, int]()
        for epsilon in EPSILONS:
            test: Any = choice(question, PureDP(epsilon))[0].settle(question, PureDP(epsilon))
            if isinstance(test, Neighbours) and not test.tied(question):
                if None not in sums:
                    sums[None] = test.sums(rows, question, generator_from_seed(seed)).signed
                scale = laplace_scale(signed_sensitivity(test.neighbours or 1, question.unit).bound, PureDP(epsilon))
                least = _critical(normal_laplace_pvalue, test.deviation(question), scale)
                found.append(_share(sums[None], least, scale))
            elif isinstance(test, BlockTest):
                blocks = test.blocks or 1
                if blocks not in sums:
                    scores = block_scores(test, rows, question, generator_from_seed(seed))  # type: ignore[arg-type]
                    sums[blocks] = sum(term(score, reach_of(blocks)) for score in scores)
                least = _critical(block_pvalue, blocks, epsilon, test.two_sided(question))
                found.append(_share(sums[blocks], least, 2 * reach_of(blocks) / epsilon))
            else:
                with dpc.simulated_noise(seed):
                    t = dpc.ci_test(table, "x", "y", given=data.given, loss=PureDP(epsilon), method=test)
                found.append(float(t.decision == "dependent"))
                drawn = True
        yield found
        if drawn and seed + 1 >= repetitions / DRAWN:
            return


def levels(shape: str, n: int, repetitions: int) -> tuple[bool, str, bool]:
    """Return whether a level is more than it may be, the levels in words, and whether the calls were answered."""
    try:
        found = np.array(list(rejected(shape, n, repetitions)))
    except ParameterError:
        return False, "refused", False
    means, errors = found.mean(axis=0), found.std(axis=0) / len(found) ** 0.5
    above = means - 2 * errors > MOST
    words = [f"{mean:.3f}".lstrip("0") for mean in means]
    told = [f"**{word}**" if bad else word for word, bad in zip(words, above, strict=True)]
    return bool(above.any()), " / ".join(told), True


def main(arguments: list[str]) -> int:
    """Print the table; return 1 if more than three shapes fail."""
    numbers = [int(one) for one in arguments if one != "--write"]
    repetitions, slow = (*numbers, *(2_000, 200)[len(numbers) :])[:2]
    lines = [f"| shape | {' | '.join(f'n = {n:,}' for n in ROWS)} | answered |", "|---" * (2 + len(ROWS)) + "|"]
    failing = []
    print("\n".join(lines), flush=True)
    for shape in (*SHAPES, *FRESH):
        asked, runs = (SLOW_ROWS, slow) if shape in SLOW else (ROWS, repetitions)
        found = {n: levels(shape, n, max(1, runs // (TENTH if n >= LARGE else 1))) for n in asked}
        failing += [shape] * any(bad for bad, _, _ in found.values())
        answered = sum(one for _, _, one in found.values()) / len(found)
        lines.append(f"| {shape} | {' | '.join(found[n][1] if n in found else '–' for n in ROWS)} | {answered:.2g} |")
        print(lines[-1], flush=True)
    last = f"\nShapes that fail: {', '.join(failing) or 'none'}.\n"
    print(last)
    if "--write" in arguments:
        counts = {"": repetitions, "drawn_": repetitions // DRAWN, "slow_": slow}
        errors = {f"{name}error": 2 * (0.05 * 0.95 / count) ** 0.5 for name, count in counts.items()}
        head = HEAD.format(
            arguments=f"{repetitions} {slow} ", repetitions=repetitions, slow=slow, fresh=len(FRESH), **errors
        )
        PAGE.write_text(head + "\n".join(lines) + "\n" + last, encoding="utf-8")
    return int(len(failing) > FAILING)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
