"""Sample cost of privacy: rows for power .8 at ε over the rows that a test without privacy needs.

    python -m benchmarks sample_cost [repetitions]

x = sin z + e, y = cos z + e′ + .1 e given one number.  Without privacy: Fisher's z of the noises themselves,
(1.96 + .8416)²/atanh(ρ)² + 3 rows.  Rows are found by a probit regression of rejections on √n over a ladder of n, so
that each ladder uses all its runs.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from scipy.special import ndtri

from benchmarks.independence_shapes import one
from dpcausal.independence.power import power
from dpcausal.privacy.loss import PureDP

LINK = 0.1
TARGETS = {1.0: 1.4, 0.25: 2.5, 0.1: 5.5}
LADDERS = {1.0: (700, 1_000, 1_400), 0.25: (1_300, 2_000, 3_000), 0.1: (2_800, 4_200, 6_000)}


def without_privacy(link: float) -> float:
    """Return the rows for power .8 of Fisher's z at .05."""
    correlation = link / math.sqrt(1 + link**2)
    return float((ndtri(0.975) + ndtri(0.8)) ** 2 / math.atanh(correlation) ** 2 + 3)


def rows_for_power(epsilon: float, repetitions: int) -> float:
    """Return the rows at which the default has power .8."""
    shape = one(np.sin, np.cos)
    found = [
        power(n, loss=PureDP(epsilon), design=lambda n, seed: shape(n, np.random.default_rng(seed), LINK),
              repetitions=repetitions, seed=11).rate
        for n in LADDERS[epsilon]
    ]  # fmt: skip
    slope, start = np.polyfit(np.sqrt(LADDERS[epsilon]), ndtri(np.clip(found, 0.01, 0.99)), 1)
    print(f"  power at {LADDERS[epsilon]}: {', '.join(f'{rate:.3f}' for rate in found)}")
    return float(((ndtri(0.8) - start) / slope) ** 2)


def main(arguments: list[str]) -> int:
    """Return 0 if every target was met."""
    repetitions = int(arguments[0]) if arguments else 1_000
    base = without_privacy(LINK)
    print(f"One number given, effect {LINK:g}, {repetitions} tables a power; without privacy {base:.0f} rows")
    missed = False
    for epsilon, most in TARGETS.items():
        rows = rows_for_power(epsilon, repetitions)
        # The power's error at .8, carried over to rows: d power/d n there is about φ(.84) (2.8/2)/n.
        error = 2 * math.sqrt(0.16 / (len(LADDERS[epsilon]) * repetitions)) / (0.28 * 1.4) * rows / base
        missed |= rows / base - error > most
        cost = f"cost {rows / base:.2f} ± {error:.2f}"
        print(f"epsilon {epsilon:<5} {rows:7.0f} rows, {cost} (target {most})", flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
