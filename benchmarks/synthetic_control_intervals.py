"""Synthetic controls of fresh units: coverage, by volatility too, width, error beside the simplex, level and power."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.pairs import DataAbsentError
from benchmarks.panels import counties
from dpcausal.privacy.loss import affordable_zcdp
from dpcausal.synthetic_control.donor_rows import FULL, Grid, to_scale
from dpcausal.synthetic_control.forecast import donor_free
from dpcausal.synthetic_control.method import FIRST_COUNT, INTERVAL, MIXING, MIXTURES, PLACEBO_TEST
from dpcausal.synthetic_control.methods.factor import forecaster, release
from dpcausal.synthetic_control.methods.simplex import simplex_weights
from dpcausal.synthetic_control.placebo import (
    Law,
    Missed,
    missed_by_own,
    release_best,
    release_pvalue,
    release_reach,
    release_slope,
)

DELTA, BEFORE, AFTER = 1e-6, 10, 3
T = BEFORE + AFTER
TESTED = 40
"""Targets of a panel whose p-values are drawn, where it has many."""

Panel = Callable[[int, np.random.Generator], np.ndarray]


def walks(n: int, rng: Any, persistence: float, step: float, factors: int = 2) -> Any:
    """Return autoregressions, shape (factors, T)."""
    found, steps = np.zeros((factors, T)), step * rng.standard_normal((factors, T))
    for t in range(T):
        found[:, t] = (persistence * found[:, t - 1] if t else 0) + steps[:, t]
    return found


def factor(n: int, rng: Any, noise: Any = 0.06, drift: float = 0.0) -> Any:
    common = walks(n, rng, 0.8, 0.12)
    common[0, BEFORE:] += 0.2 * rng.choice([-1, 1])
    rows = rng.uniform(-0.35, 0.35, (n, 1)) + rng.normal(1, 0.35, (n, 2)) @ common
    return rows + drift * np.arange(T) + noise * rng.standard_normal((n, T))


def volatility(n: int, rng: Any) -> Any:
    """As ``factor``, each unit with a noise of its own."""
    return factor(n, rng, 0.06 * np.exp(0.5 * rng.standard_normal((n, 1))))


def trend(n: int, rng: Any) -> Any:
    """The linear design: each unit its own slope."""
    slopes = np.clip(rng.normal(4, 1, (n, 1)), 3, 5)
    noise = np.clip(rng.normal(0, np.sqrt(0.1), (n, T)), -1, 1)
    return (slopes * np.arange(1, T + 1) + noise - (2 + 5 * T + 1) / 2) / ((5 * T - 1) / 2)


def autoregression(n: int, rng: Any) -> Any:
    """Units with nothing in common but their law; steps differ in size."""
    size = 0.08 * np.exp(0.4 * rng.standard_normal((n, 1)))
    rows = np.zeros((n, T))
    rows[:, :1] = size * rng.standard_normal((n, 1)) / np.sqrt(1 - 0.81)
    for t in range(1, T):
        rows[:, t : t + 1] = 0.9 * rows[:, t - 1 : t] + size * rng.standard_normal((n, 1))
    return rows + rng.uniform(-0.3, 0.3, (n, 1))


def seasons(n: int, rng: Any) -> Any:
    """A season of four periods with loadings of its own, heavy tails."""
    season = np.sin(np.pi * np.arange(T) / 2)
    return (rng.uniform(-0.3, 0.3, (n, 1)) + rng.normal(1, 0.5, (n, 1)) * 0.2 * season
            + rng.normal(1, 0.3, (n, 1)) * walks(n, rng, 1.0, 0.08, 1) + 0.04 * rng.standard_t(4, (n, T)))  # fmt: skip


def clubs(n: int, rng: Any) -> Any:
    """Three groups, each with a factor of its own."""
    club = rng.integers(0, 3, n)
    return walks(n, rng, 0.9, 0.1, 3)[club] + rng.uniform(-0.3, 0.3, (n, 1)) + 0.05 * rng.standard_normal((n, T))


def breaks(n: int, rng: Any) -> Any:
    """Levels that break in one unit in three, at a time of its own, beside a common factor."""
    when = rng.integers(1, T, n)
    jump = np.where(rng.random(n) < 0.33, rng.normal(0, 0.3, n), 0.0)
    common = rng.normal(1, 0.3, (n, 1)) * walks(n, rng, 0.8, 0.12, 1)
    return common + np.where(np.arange(T) >= when[:, None], jump[:, None], 0) + 0.05 * rng.standard_normal((n, T))


def adoption(n: int, rng: Any) -> Any:
    """S-curves, each with an onset and a pace of its own."""
    onset, pace = rng.normal(8, 3, (n, 1)), rng.uniform(0.2, 0.8, (n, 1))
    return 1 / (1 + np.exp(-pace * (np.arange(T) - onset))) - 0.5 + 0.02 * rng.standard_normal((n, T))


def counts(n: int, rng: Any) -> Any:
    """Poisson counts of units of all sizes, with a common factor in the rate, in hundreds."""
    rate = rng.lognormal(3, 0.6, (n, 1)) * np.exp(walks(n, rng, 0.9, 0.1, 1))
    return np.minimum(rng.poisson(rate) / 100, 4.0)


def crash(n: int, rng: Any) -> Any:
    """Calm before the start, four times the common and own noise after it."""
    size = np.where(np.arange(T) < BEFORE, 1, 4)
    common = np.cumsum(0.05 * size * rng.standard_normal((1, T)), axis=1)
    return rng.normal(1, 0.4, (n, 1)) * common + 0.03 * size * rng.standard_normal((n, T))


def strays(n: int, rng: Any) -> Any:
    """One unit in twenty is ten times as noisy as the others."""
    return factor(n, rng, 0.05 * np.where(rng.random((n, 1)) < 0.05, 10, 1))


def ceiling(n: int, rng: Any) -> Any:
    """Drift towards an upper bound that one value in five has reached by the end."""
    return np.minimum(factor(n, rng, 0.06, 0.04), 0.6)


def ties(n: int, rng: Any) -> Any:
    """As ``factor``, told to the next tenth."""
    return np.round(factor(n, rng), 1)


def delays(n: int, rng: Any) -> Any:
    """One common walk that reaches each unit up to three periods late."""
    steps = 0.1 * rng.standard_normal(T + 3)
    common, late = np.cumsum(steps), rng.integers(0, 4, (n, 1))
    own = rng.uniform(-0.3, 0.3, (n, 1)) + 0.04 * rng.standard_normal((n, T))
    return common[3 + np.arange(T) - late] - common[0] + own


def spikes(n: int, rng: Any) -> Any:
    """As ``factor``, with one cell in fifty half a unit off."""
    return factor(n, rng) + 0.5 * np.where(rng.random((n, T)) < 0.02, rng.choice([-1, 1], (n, T)), 0)


def tails(n: int, rng: Any) -> Any:
    """As ``factor``, its noise Student's with two degrees of freedom."""
    return factor(n, rng, 0.0) + 0.04 * rng.standard_t(2, (n, T))


def turning(n: int, rng: Any) -> Any:
    """A common walk whose loadings are drawn anew, half of them, when the treatment starts."""
    common = np.cumsum(0.08 * rng.standard_normal((1, T)), axis=1)
    before, after = rng.normal(1, 0.4, (2, n, 1))
    loading = np.where(np.arange(T) < BEFORE, before, (before + after) / 2)
    return loading * common + 0.05 * rng.standard_normal((n, T))


def merging(n: int, rng: Any) -> Any:
    """Units that come from afar and close in on a common walk, each at its own speed."""
    gap, speed = rng.normal(0, 0.5, (n, 1)), rng.uniform(0.05, 0.5, (n, 1))
    return walks(n, rng, 1.0, 0.06, 1) + gap * np.exp(-speed * np.arange(T)) + 0.03 * rng.standard_normal((n, T))


def neighbours(n: int, rng: Any) -> Any:
    """Autoregressions on a ring whose steps nine neighbours share, in an order of no meaning."""
    steps = rng.standard_normal((n, T))
    near = sum(np.roll(steps, shift, axis=0) for shift in range(-4, 5)) / 3
    rows = np.zeros((n, T))
    for t in range(T):
        rows[:, t] = (0.8 * rows[:, t - 1] if t else 0) + 0.06 * near[:, t] + 0.03 * steps[:, t]
    return rng.permutation(rows + rng.uniform(-0.3, 0.3, (n, 1)))


def bursts(n: int, rng: Any) -> Any:
    """As ``factor``, with calm and wild spells of each unit: the logarithm of its noise is an autoregression."""
    size = np.zeros((n, T))
    for t in range(T):
        size[:, t] = (0.9 * size[:, t - 1] if t else 0) + (0.35 if t else 0.8) * rng.standard_normal(n)
    return factor(n, rng, 0.05 * np.exp(size))


def shares(n: int, rng: Any) -> Any:
    """Shares between 0 and 1 of a common factor in the log odds; many lie near an end."""
    odds = rng.normal(0, 2, (n, 1)) + rng.normal(1, 0.4, (n, 1)) * walks(n, rng, 0.9, 0.4, 1)
    return 1 / (1 + np.exp(-odds - 0.2 * rng.standard_normal((n, T)))) - 0.5


def pauses(n: int, rng: Any) -> Any:
    """As ``factor``, where a unit in a pause, which begins and ends at random, is at one fifth below all."""
    idle = np.zeros((n, T), dtype=bool)
    for t in range(T):
        before = idle[:, t - 1] if t else rng.random(n) < 0.15
        idle[:, t] = np.where(before, rng.random(n) < 0.6, rng.random(n) < 0.07)
    return np.where(idle, -0.7, factor(n, rng))


FAMILIES: dict[str, tuple[Panel, float]] = {
    "factor": (factor, 1.0), "volatility": (volatility, 1.0), "trend": (trend, 1.0),
    "autoregression": (autoregression, 1.0), "far inside": (factor, 20.0),
    "drifting": (lambda n, rng: factor(n, rng, drift=0.05), 1.5),
    "seasons": (seasons, 1.0), "clubs": (clubs, 1.0), "breaks": (breaks, 1.0),
    # Named after the defaults were frozen, and shown as they came out.
    "adoption*": (adoption, 1.0), "counts*": (counts, 4.0), "crash*": (crash, 2.0), "strays*": (strays, 4.0),
    "ceiling*": (ceiling, 0.6),
    # Named after scales were settled anew, and shown as they came out.
    "ties**": (ties, 1.5), "delays**": (delays, 1.5), "spikes**": (spikes, 1.5), "tails**": (tails, 4.0),
    "turning**": (turning, 1.5),
    # Named after factors of the past less its level and 1.5 periods were settled, and shown as they came out.
    "merging***": (merging, 1.5), "neighbours***": (neighbours, 1.5), "bursts***": (bursts, 4.0),
    "shares***": (shares, 0.5), "pauses***": (pauses, 1.5),
}  # fmt: skip
"""Each with half the width of its bounds: 20 times too wide where they lie far."""


def ask(rows: Any, target: Any, half: float, epsilon: float, seed: int, start: int = BEFORE) -> Any:
    loss = dpc.ApproxDP(epsilon, DELTA)
    panel = dpc.Panel.from_arrays(rows, target, start=start, bounds=dpc.Bounded(-half, half),
                                  ledger=dpc.Ledger.in_memory(loss, unit="unit"))  # fmt: skip
    with dpc.simulated_noise(seed):
        return dpc.synthetic_control(panel, loss=loss, force=True)


class Tally:
    """What happened to the targets of one setting, a row each."""

    def __init__(self) -> None:
        self.rows: list[list[float]] = []
        self.method = ""

    def note(self, answer: Any, truth: Any, exact: Any, past: Any) -> None:
        self.method = answer.method
        missed = answer.counterfactual - truth
        low, high = answer.interval or (np.nan, np.nan)
        p = np.nan if answer.pvalue is None else answer.pvalue
        self.rows.append([
            answer.att, np.sqrt(np.mean(missed**2)), np.sqrt(np.mean((exact - truth) ** 2)), np.std(np.diff(past)),
            low <= 0 <= high, high - low, p,
        ])  # fmt: skip

    def line(self) -> str:
        error, rmse, exact, volatile, hit, width, p = np.array(self.rows).T
        had = ~np.isnan(width)
        fifths = np.argsort(np.argsort(volatile[had])) * 5 // max(int(had.sum()), 1)
        size = float(np.sqrt(np.mean(error**2)))
        held = [np.mean(hit[had][fifths == k]) if had.any() else np.nan for k in (4, 0)]
        values = (np.mean(hit[had]), *held, np.mean(width[had]) / size, np.median(width[had]) / size, had.mean(),
                  np.mean(rmse), np.mean(exact), np.mean(rmse) / np.mean(exact), np.mean(p[~np.isnan(p)] <= 0.05),
                  )  # fmt: skip
        return "".join(f"{value:{10 if place in (6, 7) else 8}.{4 if place in (6, 7) else 3}f}"
                       for place, value in enumerate(values))  # fmt: skip


HEAD = ("held", "volatile", "calm", "width", "median", "given", "rmse", "simplex", "ratio", "p<=.05")


def setting(make: Panel, half: float, n: int, epsilon: float, panels: int, targets: int) -> Tally:
    """Return what happens to fresh units of fresh panels, none of which is among the donors."""
    tally, seed = Tally(), 0
    for place in range(panels):
        rows = np.clip(make(n + targets, np.random.default_rng(1000 * n + place)), -half, half)
        for target in rows[n:]:
            seed += 1
            answer = ask(rows[:n], target, half, epsilon, seed)
            weights = simplex_weights(rows[: min(n, 1000), :BEFORE], target[:BEFORE])
            tally.note(answer, target[BEFORE:], rows[: min(n, 1000), BEFORE:].T @ weights, target[:BEFORE])
    return tally


def intervals(rows: Any, n: int, half: float, epsilon: float, seed: int, start: int) -> tuple[Any, ...]:
    """Return whether each unit after the first n is held, how volatile it is, its width, its error, its p-value.

    The library's own releases of one panel, in their order and with their shares, and its interval of many targets.
    """
    loss, after, full = dpc.ApproxDP(epsilon, DELTA), rows.shape[1] - start, np.full(n, FULL)
    base: Any = affordable_zcdp(loss)
    with dpc.simulated_noise(seed):
        # Each p-value is paid for as that of a target alone.
        whole = dpc.ZCDP(base.exact_rho * (2 + PLACEBO_TEST * len(rows)))
        ledger = dpc.Ledger.in_memory(whole, unit="unit")
        allotment = ledger.charge(whole, task="benchmark", unit=dpc.Unit.DONOR, unit_column="unit")
        scaled = to_scale(rows, dpc.Bounded(-half, half))
        grid = Grid.of([donor_free(scaled[n][:start], after).last_error], start, rows.shape[1])
        path = 1 - MIXING - INTERVAL - PLACEBO_TEST
        fitted, z = forecaster(release(scaled[:n], grid, allotment, base.part(path)), start), grid.rows(scaled)
        control, scales = fitted.measured(z)
        parts = (control, missed_by_own(z, start), scales, fitted.swings(z))
        donors, units = Missed(*(part[:n] for part in parts)), Missed(*(part[n:] for part in parts))
        ways = [donors.mixed(way, full) for way in MIXTURES]
        mixing, law = MIXTURES[release_best(ways, allotment, base.part(MIXING))], Law(max(fitted.freedom, 1))
        counts = base.part(INTERVAL * FIRST_COUNT), base.part(INTERVAL * (1 - FIRST_COUNT))
        told, lean = release_slope(donors.mixed(mixing, full), law, n, allotment, counts[0])
        placebos = donors.with_slope(lean).mixed(mixing, full)
        reach = release_reach(placebos, law, n, 0.9, allotment, counts, told)
        found = units.with_slope(lean).mixed(mixing, full)
        test = base.part(PLACEBO_TEST)
        p = [release_pvalue(placebos, float(e), float(s), n, allotment, test)
             for e, s in zip(found.residuals[:TESTED], found.scales, strict=False)]  # fmt: skip
    half_width = np.inf if reach is None else reach * found.scales
    size = grid.step * half
    return (np.abs(found.residuals) <= half_width, np.std(np.diff(rows[n:, :start], axis=1), axis=1),
            2 * half_width * size, found.residuals * size, np.array(p), lean)  # fmt: skip


def many(name: str, n: int, epsilon: float, panels: int, targets: int) -> str:
    """Return held, its deviation over panels, held of the volatile and the calm fifth, width, p ≤ .05 and mean lean."""
    told = []
    for seed in range(panels):
        rng = np.random.default_rng(910_000 + seed)
        if name == "counties":
            real = counties()
            start, half = real.times.index(real.start), real.bounds.width / 2
            rows = real.values[rng.permutation(len(real.values))] - real.bounds.midpoint
            told.append(intervals(rows[: n + targets], min(n, len(rows) - targets), half, epsilon, seed, start))
        else:
            make, half = FAMILIES[name]
            rows = np.clip(make(n + targets, rng), -half, half)
            told.append(intervals(rows, n, half, epsilon, seed, BEFORE))
    held, volatile, width, error, p = (np.concatenate([one[place] for one in told]) for place in range(5))
    fifths = np.argsort(np.argsort(volatile)) * 5 // len(volatile)
    values = (held.mean(), np.std([one[0].mean() for one in told]) / np.sqrt(panels), held[fifths == 4].mean(),
              held[fifths == 0].mean(), width.mean() / np.sqrt(np.mean(error**2)), np.mean(p <= 0.05),
              np.mean([one[5] for one in told]))  # fmt: skip
    return "".join(f"{value:9.3f}" for value in values)


def of_counties(n: int, epsilon: float, targets: int) -> Tally:
    """Return what happens to counties that are left out of the donors, in points of unemployment."""
    real, tally = counties(), Tally()
    middle, half = real.bounds.midpoint, real.bounds.width / 2
    start = real.times.index(real.start)
    for seed in range(targets):
        order = np.random.default_rng(seed).permutation(len(real.values))[: n + 1]
        rows, target = real.values[order[1:]] - middle, real.values[order[0]] - middle
        weights = simplex_weights(rows[:1000, :start], target[:start])
        answer = ask(rows, target, half, epsilon, seed, start)
        tally.note(answer, target[start:], rows[:1000, start:].T @ weights, target[:start])
    return tally


def power(n: int, epsilon: float, runs: int) -> str:
    """Return how often an effect of .15 and .3 is seen, by p and by an interval without 0, on the factor family."""
    told = []
    for effect in (0.15, 0.3):
        seen = np.zeros(2)
        for seed in range(runs):
            rows = factor(n + 1, np.random.default_rng(seed))
            rows[-1, BEFORE:] += effect
            answer = ask(np.clip(rows[:-1], -4, 4), rows[-1], 4.0, epsilon, seed)
            seen += answer.pvalue <= 0.05, answer.interval is not None and not np.prod(answer.interval) <= 0
        told.append(f"effect {effect:g}: p {seen[0] / runs:.2f}, interval {seen[1] / runs:.2f}")
    return "; ".join(told)


def of_many(asked: argparse.Namespace) -> int:
    for pair in asked.settings.split(","):
        n, epsilon = int(pair.split(":")[0]), float(pair.split(":")[1])
        print(f"\nn = {n}, ε = {epsilon:g}: {asked.panels} panels × {asked.targets} fresh units a family")
        words = ("held", "error", "volatile", "calm", "width", "p<=.05", "lean")
        print(f"{'':<16}" + "".join(f"{word:>9}" for word in words))
        for name in (*FAMILIES, "counties"):
            if asked.family in name:
                try:
                    print(f"{name:<16}{many(name, n, epsilon, asked.panels, asked.targets)}", flush=True)
                except DataAbsentError as error:
                    print(f"skipped: {error}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", default="1000:1,1000:0.5,200:1,5000:1", help="pairs of donors and ε")
    parser.add_argument("--panels", type=int, default=40)
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--family", default="", help="part of the names of the families")
    parser.add_argument("--many", action="store_true", help="intervals of the factor model alone, one release a panel")
    asked = parser.parse_args()
    if asked.many:
        return of_many(asked)
    for pair in asked.settings.split(","):
        n, epsilon = int(pair.split(":")[0]), float(pair.split(":")[1])
        print(f"\nn = {n}, ε = {epsilon:g}: {asked.panels} panels × {asked.targets} fresh units a family")
        print(f"{'':<24}" + "".join(f"{word:>{10 if word in ('rmse', 'simplex') else 8}}" for word in HEAD))
        for name, (make, half) in FAMILIES.items():
            if asked.family in name:
                tally = setting(make, half, n, epsilon, asked.panels, asked.targets)
                print(f"{name + ' ' + tally.method:<24}{tally.line()}", flush=True)
        if asked.family in "counties":
            try:
                tally = of_counties(min(n, 3_000), epsilon, asked.panels * asked.targets)
                print(f"{'counties ' + tally.method:<24}{tally.line()}", flush=True)
            except DataAbsentError as error:
                print(f"skipped: {error}")
        if not asked.family:
            print(power(n, epsilon, asked.panels * asked.targets), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
