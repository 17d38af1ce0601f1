"""Level of the tests in a graph search: share of true independences rejected at nominal 0.01, by columns given.

Pairs given none, one and two of three sets that separate them.  Whitened pairs test the additive part given two
columns, so that what depends on both together is rejected there, also without noise.  ``plain``: the ordinary
chi-squared test that takes noisy counts at their word.
"""

from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.stats import chi2

import dpcausal as dpc
from benchmarks.designs.graphs import DESIGNS
from benchmarks.discovery import asked
from benchmarks.run import Report, benchmark
from dpcausal.discovery.pvalues import pvalue_of
from dpcausal.releases.counts import NoisyTable

NOMINAL = 0.01
LEAST, MORE = 500, 10
"""Where there are fewer independences there are more runs, up to ten times as many: of parities only those are tested
that the search asks for, of near copies few are.  No design's share is judged by a handful of tests."""
RELEASES = {
    "table": ("earthquake", "cancer", "survey", "asia"), "parities": ("asia",), "whitened": ("generated 12",),
    "triples": ("generated 12",),
    "moments": tuple(name for name, one in DESIGNS.items() if one.family == "errors"),
}  # fmt: skip


def plain(counts: Any) -> float | None:
    """The p-value of the ordinary test on noisy counts; ``None`` where it has no counts."""
    statistic, freedom = 0.0, 0
    for stratum in np.moveaxis(np.maximum(counts, 0), -1, 0):
        total = stratum.sum()
        if total < 1:
            continue
        expected = np.outer(stratum.sum(axis=1), stratum.sum(axis=0)) / total
        known = expected > 0
        statistic += float(((stratum - expected)[known] ** 2 / expected[known]).sum())
        freedom += (stratum.shape[0] - 1) * (stratum.shape[1] - 1)
    return float(chi2.sf(statistic, freedom)) if freedom else None


@benchmark("discovery", code="dpcausal.discovery.pvalues", methods=list(RELEASES), rows=[20_000],
           epsilons=[0.05, 0.1, 0.5, 1.0], runs=12)  # fmt: skip
def main(report: Report) -> None:
    given = report.given
    for method in given.methods:
        for design, n, epsilon in product(RELEASES[method], given.rows, given.epsilons):
            found: dict[str, list[bool]] = {}
            tests = run = 0
            while run < given.runs or (tests < LEAST and run < MORE * given.runs):
                case = DESIGNS[design].make(n, run)
                release: Any = asked(case, dpc.ApproxDP(epsilon, 1e-6), run, method=method)[0].release
                names, rng = release.names, np.random.default_rng(run)
                for (x, y), order in product(combinations(range(len(names)), 2), range(3)):
                    others = [z for z in range(len(names)) if z not in (x, y)]
                    sets = list(combinations(others, order))
                    for some in (sets[k] for k in rng.permutation(len(sets))[:3]):
                        if not case.truth.d_separated(names[x], names[y], [names[z] for z in some]):
                            continue
                        pvalues = {f"given {order}": pvalue_of(release, x, y, some)}
                        if isinstance(release, NoisyTable):
                            pvalues["plain"] = plain(release.strata(x, y, some))
                        tests += pvalues[f"given {order}"] is not None
                        for which, one in pvalues.items():
                            found.setdefault(which, []).extend([] if one is None else [one < NOMINAL])
                run += 1
            shares = {which: (float(np.mean(ones)), float(np.std(ones)) / len(ones) ** 0.5)
                      for which, ones in sorted(found.items()) if ones}  # fmt: skip
            every = [one for which, ones in found.items() if which != "plain" for one in ones]
            report.add(design, shares, n=n, epsilon=epsilon, delta=1e-6, method=method, runs=run,
                       note=f"{len(every)} independences")  # fmt: skip
            most = 0.02 if method == "moments" else 0.03
            report.target(f"{design}, {method}, ε = {epsilon:g}: {np.mean(every):.4f}, at most {most}",
                          not every or np.mean(every) <= most)  # fmt: skip
