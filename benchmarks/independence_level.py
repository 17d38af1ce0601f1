"""Level of the independence tests under true nulls, shape by shape: share of rejections at nominal .05.

    python -m benchmarks independence_level [repetitions] [slow repetitions] [--write]

``--write`` puts the table into ``docs/independence_level.md``.  A level above .07 by more than two standard errors is
marked; the exit code is 1 if more than three shapes are.  At n = 5,000 a third of the repetitions are run.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.independence_shapes import FRESH, SHAPES, SLOW, design
from dpcausal.errors import ParameterError
from dpcausal.independence.power import power
from dpcausal.privacy.loss import PureDP

PAGE = Path(__file__).resolve().parent.parent / "docs" / "independence_level.md"
ROWS, SLOW_ROWS, EPSILONS = (300, 1_000, 5_000), (1_000, 5_000), (0.1, 0.5, 1.0)
MOST, FAILING, THIRD_ABOVE = 0.07, 3, 1_000

HEAD = """# Level of the independence tests, shape by shape

Made by `python -m benchmarks independence_level {arguments}--write`: how often `dpcausal.ci_test` with its default
method calls x and y dependent where they are independent given z, at nominal .05, for ε = .1 / .5 / 1. {repetitions}
tables a number (two standard errors at .05: {error:.3f}), {slow} where several numbers are given ({slow_error:.3f}); at
n = 5,000 a third of them ({third_error:.3f}, {slow_third_error:.3f}).
**Bold**: above .07 by more than two standard errors. *Answered*: the share of the calls that were not refused. The
shapes are those of `benchmarks/independence_shapes.py`; the last five were named after the defaults had been fixed, and
are left as they were found.

"""


def level(shape: str, n: int, epsilon: float, repetitions: int) -> tuple[float, str]:
    """Return the share of rejections, 0 if it is no more than it may be, and in words."""
    try:
        found = power(n, loss=PureDP(epsilon), design=design(shape), repetitions=repetitions, seed=7).rate
    except ParameterError:
        return 0.0, "refused"
    above = found - MOST > 2 * (found * (1 - found) / repetitions) ** 0.5
    text = f"{found:.3f}".lstrip("0")
    return found if above else 0.0, f"**{text}**" if above else text


def main(arguments: list[str]) -> int:
    """Print the table; return 1 if more than three shapes fail."""
    numbers = [int(one) for one in arguments if one != "--write"]
    repetitions, slow = (*numbers, *(1_000, 200)[len(numbers) :])[:2]
    lines = [f"| shape | {' | '.join(f'n = {n:,}' for n in ROWS)} | answered |", "|---" * (2 + len(ROWS)) + "|"]
    failing = []
    print("\n".join(lines), flush=True)
    for shape in (*SHAPES, *FRESH):
        cells, failed, answered = [], False, []
        for n in ROWS:
            if shape in SLOW and n not in SLOW_ROWS:
                cells.append("–")
                continue
            count = (slow if shape in SLOW else repetitions) // (3 if n > THIRD_ABOVE else 1)
            found = [level(shape, n, epsilon, count) for epsilon in EPSILONS]
            failed |= any(rate for rate, _ in found)
            answered += [words != "refused" for _, words in found]
            cells.append(" / ".join(words for _, words in found))
        failing += [shape] * failed
        lines.append(f"| {shape} | {' | '.join(cells)} | {sum(answered) / len(answered):.2g} |")
        print(lines[-1], flush=True)
    last = f"\nShapes that fail: {', '.join(failing) or 'none'}.\n"
    print(last)
    if "--write" in arguments:
        counts = {"": repetitions, "slow_": slow, "third_": repetitions // 3, "slow_third_": slow // 3}
        errors = {f"{name}error": 2 * (0.05 * 0.95 / count) ** 0.5 for name, count in counts.items()}
        head = HEAD.format(arguments=f"{repetitions} {slow} ", repetitions=repetitions, slow=slow, **errors)
        PAGE.write_text(head + "\n".join(lines) + "\n" + last, encoding="utf-8")
    return int(len(failing) > FAILING)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
