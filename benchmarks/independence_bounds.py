"""Neighbour search against the bounds of residual products, for seven penalties and sizes from 3 to 300.

    python -m benchmarks independence_bounds [evaluations]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from dpcausal.audit import falsify
from dpcausal.privacy.sensitivity import Norm
from dpcausal.regression.residual_products import products_sensitivity, resample_sum_bound
from tests.conformance import STARTS as SHAPES
from tests.regression.products import DOMAIN, STARTS, products, resample_sum, weights
from tests.regression.test_residual_products import weights_bound

PENALTIES = (0.002, 0.02, 0.1, 0.5, 2.0, 10.0, 50.0)
SIZES = (3, 10, 30, 100, 300)

CLAIMS: dict[str, tuple[Callable[[Any, float], Any], Callable[[int, float], float], Norm, float]] = {
    "T": (resample_sum, resample_sum_bound, Norm.ABSOLUTE, 0.9),
    "l1(R)": (products, lambda m, penalty: float(products_sensitivity(m, penalty).bound), Norm.L1, 0.0),
    "|w - w'|": (lambda rows, penalty: weights(rows, penalty)[:, 0], weights_bound, Norm.L2, 0.0),
}


def main(arguments: list[str]) -> int:
    """Print the largest share of each bound; return 1 if one is passed, or T is not reached for lambda >= .5."""
    evaluations = int(arguments[0]) if arguments else 8_000
    print(f"{evaluations} neighbour pairs a cell, sizes {SIZES}; the largest share of the bound\n")
    print(f"{'lambda':<12}" + "".join(f"{penalty:>10g}" for penalty in PENALTIES))
    failed = False
    for name, (statistic, bound, norm, least) in CLAIMS.items():
        line = f"{name:<12}"
        for penalty in PENALTIES:
            found = falsify(
                lambda rows, statistic=statistic, penalty=penalty: statistic(rows, penalty),
                lambda m, bound=bound, penalty=penalty: bound(m, penalty), sizes=SIZES, norm=norm,
                evaluations=evaluations, starts={**SHAPES, **STARTS}, **DOMAIN,
            )  # fmt: skip
            failed |= found.violated or (penalty >= 0.5 and found.ratio < least)
            line += f"{found.ratio:>10.3f}"
        print(line, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
