"""Level of the noise-aware test over true independences, nominal .01, the plain chi-squared test beside it.

Second table: the same for noisy contrasts on asia, δ = 1e-6, whose cells have correlated noise, by the number of
columns given.  Third, alone with ``--orders``: for whitened pairs and triples of generated networks, and for moments of
linear columns, normal and skewed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

import dpcausal as dpc
from benchmarks.discovery_wide import Case, asked, generated
from benchmarks.networks import SMALL, read
from benchmarks.pairs import DataAbsentError
from benchmarks.targets import report
from dpcausal.discovery.methods.moments import noisy_moments
from dpcausal.discovery.methods.parities import Parities, Releaser, joint_of
from dpcausal.discovery.pvalues import pvalue_of
from dpcausal.discovery.search.pc import Terms
from dpcausal.discovery.search.release_search import asker
from dpcausal.privacy.loss import affordable_zcdp
from dpcausal.releases.counts import NoisyTable, geometric_variance
from dpcausal.releases.moments import NoisyMoments
from dpcausal.statistics.strata import contingency
from dpcausal.statistics.wald import wald_test

ROWS, SEEDS, NOMINAL = 100_000, 10, 0.01
EPSILONS = (0.05, 0.2, 1.0, 10.0)


def plain(counts: np.ndarray) -> float | None:  # type: ignore[type-arg]
    """Return the p-value of the ordinary test on noisy counts taken at their word; ``None`` where it has no counts."""
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


def by_contrasts(targets: dict[str, bool]) -> None:
    """Print the share of true independences of asia that the tests of contrasts reject."""
    network = read("asia")
    truth, names = network.truth, tuple(network.levels)
    pairs = list(combinations(range(len(names)), 2))
    print(f"\n{'epsilon':>8}  {'given 0':>14}  {'given 1':>14}  {'given 2':>14}")
    for epsilon in (0.1, 1.0, 5.0):
        loss = dpc.ApproxDP(epsilon, 1e-6)
        rejected: list[list[bool]] = [[], [], []]
        for seed in range(SEEDS):
            with dpc.simulated_noise(seed):
                ledger = dpc.Ledger.in_memory(loss)
                joint = joint_of(dpc.Table(network.sample(ROWS, seed), network.schema, ledger), names)
                sizes = tuple(len(levels) for levels in network.levels.values())
                losses = [affordable_zcdp(loss).part(share) for share in Parities(max_order=2).shares]
                releaser = Releaser(names, ROWS, sizes, joint, ledger.charge(loss, task="level"), losses, counted=False)
                for order in range(3):
                    tests = [
                        (names[x], names[y], tuple(names[z] for z in given))
                        for x, y in pairs
                        for given in combinations([z for z in range(len(names)) if z not in (x, y)], order)
                    ]
                    releaser.begin(order, tests)
                    ask = asker(releaser.noisy, Terms("pc", NOMINAL, 2, dpc.Knowledge()))
                    answers = [ask(*test) for test in tests if truth.d_separated(*test)]
                    rejected[order] += [answer.separated is False for answer in answers]
        shares = [f"{np.mean(answers):.4f} of {len(answers)}" for answers in rejected]
        level = float(np.mean([answer for answers in rejected for answer in answers]))
        print(f"{epsilon:>8g}  {'  '.join(f'{share:>14}' for share in shares)}")
        targets[f"contrasts, epsilon {epsilon:g}: rejects {level:.4f}, at most .03"] = level <= 0.03


LAWS: dict[str, Callable[[np.random.Generator, int], npt.NDArray[np.float64]]] = {
    "normal": lambda rng, rows: rng.normal(size=rows),
    "exponential": lambda rng, rows: rng.exponential(size=rows) - 1,
    "log-normal": lambda rng, rows: (rng.lognormal(0, 0.7, rows) - math.exp(0.245)) / 0.98,
    "t, 3 degrees": lambda rng, rows: rng.standard_t(3, rows) / math.sqrt(3),
}
"""Of what is left of a column given its causes, of mean 0 and about variance 1."""


def of_numbers(law: str, rows: int, seed: int) -> Case:
    """Draw ten columns, each a linear function of its causes, ± ½ to 1½, and what is left; about fourteen arrows."""
    rng = np.random.default_rng([41, seed])
    names, values, arcs = [f"v{place}" for place in range(10)], np.zeros((rows, 10)), []
    for node in range(10):
        values[:, node] = LAWS[law](rng, rows)
        for parent in range(node):
            if rng.random() < 14 / 45:
                arcs.append((names[parent], names[node]))
                values[:, node] += rng.choice([-1, 1]) * rng.uniform(0.5, 1.5) * values[:, parent]
    frame = {name: values[:, place] for place, name in enumerate(names)}
    return Case(frame, dpc.Schema(dict.fromkeys(frame, dpc.Bounded(-20.0, 20.0))), dpc.Cpdag.from_dag(names, arcs))


SPREADS = {"correlations .95": 0.5, "correlations .985": 0.25}


def of_near_copies(spread: float, rows: int, seed: int) -> Case:
    """Draw two causes of a column and two effects of it that go closely together."""
    rng = np.random.default_rng([43, seed])
    a, b = rng.normal(size=(2, rows))
    c = a + b + spread * rng.normal(size=rows)
    d, e = c + spread * rng.normal(size=(2, rows))
    frame = dict(zip("abcde", (a, b, c, d, e), strict=True))
    truth = dpc.Cpdag.from_dag("abcde", [("a", "c"), ("b", "c"), ("c", "d"), ("c", "e")])
    return Case(frame, dpc.Schema(dict.fromkeys(frame, dpc.Bounded(-8.0, 8.0))), truth)


def moments(case: Case, loss: dpc.ApproxDP | dpc.NoPrivacy, seed: int) -> NoisyMoments:
    """Return noisy moments, without a graph of them."""
    ledger = dpc.Ledger.in_memory(loss) if isinstance(loss, dpc.ApproxDP) else dpc.Ledger.without_privacy()
    spent = affordable_zcdp(loss) if isinstance(loss, dpc.ApproxDP) else loss
    with dpc.simulated_noise(seed):
        table = dpc.Table(case.frame, case.schema, ledger)
        return noisy_moments(table, tuple(case.frame), ledger.charge(spent, task="level"), spent)


RELEASES = ("whitened", "triples", "moments")


def by_orders(
    targets: dict[str, bool], releases: Sequence[str] = RELEASES, networks: int = 12, of_moments: int = 20,
    rows: int = 20_000,
) -> None:  # fmt: skip
    """Print what share of true independences of generated networks the tests of whitened pairs and of moments reject.

    Pairs given none, one and two of up to three columns that separate them; whitened pairs test the additive part given
    two columns, so that what depends on both together is rejected there: noise-free too.
    """
    print(f"\n{'release':<22}{'epsilon':>8}  {'given 0':>16}  {'given 1':>16}  {'given 2':>16}")
    for kind, law in [(one, law) for one in releases for law in ((*LAWS, *SPREADS) if one == "moments" else [""])]:
        for epsilon in (0.05, 0.1, 0.5, 1.0, None):
            rejected: list[list[bool]] = [[], [], []]
            for seed in range(3 * of_moments if law in SPREADS else of_moments if law else networks):
                if law in SPREADS:
                    case = of_near_copies(SPREADS[law], rows, seed)
                else:
                    case = of_numbers(law, rows, seed) if law else Case.of(generated(12, 900 + seed), seed, rows)
                loss = dpc.ApproxDP(epsilon, 1e-6) if epsilon else dpc.NoPrivacy()
                release: Any = moments(case, loss, seed) if law else asked(case, loss, seed, method=kind)[0].release
                names, rng = release.names, np.random.default_rng(seed)
                for (x, y), order in product(combinations(range(len(names)), 2), range(3)):
                    others = [z for z in range(len(names)) if z not in (x, y)]
                    sets = list(combinations(others, order))
                    for given in (sets[k] for k in rng.permutation(len(sets))[:3]):
                        if case.truth.d_separated(names[x], names[y], [names[z] for z in given]):
                            found = pvalue_of(release, x, y, given)
                            rejected[order] += [] if found is None else [found < NOMINAL]
            shares = [f"{np.mean(answers):.4f} of {len(answers)}" if answers else "-" for answers in rejected]
            told = f"{kind} {law}"
            print(f"{told:<22}{epsilon or 'none':>8}  {'  '.join(f'{share:>16}' for share in shares)}", flush=True)
            # Of one cell hundreds of tests: their error is .006 about a level of .01.
            every, most = [one for answers in rejected for one in answers], 0.02 if law else 0.03
            if epsilon and every:
                words = f"{told}, epsilon {epsilon:g}: rejects {np.mean(every):.4f} of {len(every)}, at most {most}"
                targets[words] = bool(np.mean(every) <= most)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", nargs="*", choices=RELEASES, help="the third table alone, of these releases")
    options = parser.parse_args()
    targets: dict[str, bool] = {}
    if options.orders is not None:
        by_orders(targets, options.orders or RELEASES)
        return report(targets)
    generator = np.random.default_rng(1)
    print(f"{'epsilon':>8}  {'tests':>7}  {'untested':>9}  {'noise-aware':>12}  {'plain':>7}")
    for epsilon in EPSILONS:
        ours: list[bool] = []
        theirs: list[bool] = []
        untested = 0
        for name in SMALL:
            network = read(name)
            truth, names = network.truth, tuple(network.levels)
            sizes = [len(levels) for levels in network.levels.values()]
            independent = [
                (x, y, given)
                for x, y in combinations(range(len(names)), 2)
                for order in range(3)
                for given in combinations([z for z in range(len(names)) if z not in (x, y)], order)
                if truth.d_separated(names[x], names[y], [names[z] for z in given])
            ]
            for seed in range(SEEDS):
                frame = network.sample(ROWS, seed)
                counts = contingency([frame[column] for column in names], sizes)
                success = -np.expm1(-epsilon / 2)
                noise = generator.geometric(success, counts.shape) - generator.geometric(success, counts.shape)
                table = NoisyTable(names, ROWS, counts + noise, geometric_variance(2 / epsilon), "geometric")
                for x, y, given in independent:
                    strata = table.strata(x, y, given)
                    found = wald_test(strata, table.margin_variance(tuple(sorted((x, y, *given)))))
                    if found is None:
                        untested += 1
                        continue
                    ours.append(chi2.sf(*found) < NOMINAL)
                    other = plain(strata)
                    if other is not None:
                        theirs.append(other < NOMINAL)
        level, plain_level = float(np.mean(ours)), float(np.mean(theirs))
        print(f"{epsilon:>8g}  {len(ours):>7}  {untested:>9}  {level:>12.4f}  {plain_level:>7.3f}")
        targets[f"epsilon {epsilon:g}: the noise-aware test rejects {level:.4f}, at most .03"] = level <= 0.03
    by_contrasts(targets)
    by_orders(targets)
    return report(targets)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DataAbsentError as absent:
        print(f"skipped: {absent}")
