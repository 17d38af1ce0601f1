"""Panels: units of families of shapes, simulated designs, real counties; a design draws donors and one target."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import truncnorm

import dpcausal as dpc
from benchmarks.data import panels as real
from benchmarks.designs import register
from benchmarks.designs.panels_practice import SHAPES

BEFORE, AFTER = 10, 3
T = BEFORE + AFTER


class Drawn(NamedTuple):
    donors: Any
    target: Any
    untreated: Any
    start: int
    bounds: dpc.Bounded
    effect: float = 0.0


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
    """Units with nothing in common but their distribution; steps differ in size."""
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
    """As ``factor``, rounded to the next tenth."""
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
    """A common walk whose loadings are drawn again, half of them, when the treatment starts."""
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


FAMILIES = {
    "factor": (factor, 1.0), "volatility": (volatility, 1.0), "trend": (trend, 1.0),
    "autoregression": (autoregression, 1.0), "far inside": (factor, 20.0),
    "drifting": (lambda n, rng: factor(n, rng, drift=0.05), 1.5),
    "seasons": (seasons, 1.0), "clubs": (clubs, 1.0), "breaks": (breaks, 1.0),
    "adoption": (adoption, 1.0), "counts": (counts, 4.0), "crash": (crash, 2.0), "strays": (strays, 4.0),
    "ceiling": (ceiling, 0.6),
    "ties": (ties, 1.5), "delays": (delays, 1.5), "spikes": (spikes, 1.5), "tails": (tails, 4.0),
    "turning": (turning, 1.5),
    "merging": (merging, 1.5), "neighbours": (neighbours, 1.5), "bursts": (bursts, 4.0),
    "shares": (shares, 0.5), "pauses": (pauses, 1.5),
}  # fmt: skip
"""Each with half the width of its bounds: 20 times too wide where they lie far."""


def of_family(name: str) -> Callable[[int, int, int], Drawn]:
    """Fresh units of fresh panels, none of which is among the donors; so many targets a panel."""
    make, half = FAMILIES[name]

    @lru_cache(maxsize=1)
    def rows(n: int, targets: int, place: int) -> Any:
        return np.clip(make(n + targets, np.random.default_rng(1000 * n + place)), -half, half)

    def draw(n: int, run: int, targets: int) -> Drawn:
        every = rows(n, targets, run // targets)
        target = every[n + run % targets]
        return Drawn(every[:n], target, target[BEFORE:], BEFORE, dpc.Bounded(-half, half))

    return draw


def of_practice(make: Any) -> Callable[[int, int, int], Drawn]:
    panel = lru_cache(maxsize=1)(lambda n, place: make(np.random.default_rng(10_000 * n + place), n))

    def draw(n: int, run: int, targets: int) -> Drawn:
        donors, every, start, bounds = panel(n, run // min(targets, 20))
        target = every[run % min(targets, 20)]
        return Drawn(donors, target, target[start:], start, dpc.Bounded(*bounds))

    return draw


def simulated(make: Any, **facts: Any) -> Callable[[int, int, int], Drawn]:
    def draw(n: int, run: int, targets: int) -> Drawn:
        made = make(n, seed=run, **facts)
        effect = float(np.mean((made.target - made.untreated)[made.start :]))
        return Drawn(made.donors, made.target, made.untreated[made.start :], made.start, made.bounds, effect)

    return draw


def linear_panel(donors: int, *, before: int = BEFORE, after: int = AFTER, seed: int | None = None) -> Drawn:
    """The design of Rho, Cummings & Misra (2023), Section 6: x_it = θ_i t + noise, scaled to [−1, 1].

    θ_i is normal around 4 with variance 1, within [3, 5]; the noise normal with variance 0.1, within [−1, 1]; t from 1.
    A straight line through the target's own past predicts it, without any donor.
    """
    rng, periods = np.random.default_rng(seed), before + after
    slopes = truncnorm.rvs(-1, 1, loc=4, size=(donors + 1, 1), random_state=rng)
    end = 1 / math.sqrt(0.1)
    noise = truncnorm.rvs(-end, end, scale=math.sqrt(0.1), size=(donors + 1, periods), random_state=rng)
    low, high = 2.0, 5.0 * periods + 1
    rows = (slopes * np.arange(1, periods + 1) + noise - (low + high) / 2) / ((high - low) / 2)
    return Drawn(rows[1:], rows[0], rows[0], before, dpc.Bounded(-1, 1))


UNLIKE: dict[str, Callable[[Any, Any], Any]] = {
    "like its donors": lambda common, own: common, "half as large": lambda common, own: common / 2,
    "twice as large": lambda common, own: 2 * common, "three times as large": lambda common, own: 3 * common,
    "a third its own": lambda common, own: common + own / 2, "half its own": lambda common, own: (common + own) / 1.4,
    "its own walk": lambda common, own: own, "against": lambda common, own: -common,
}  # fmt: skip
"""What the target follows, of a walk that its donors follow and one of its own."""


def unlike(follows: Callable[[Any, Any], Any]) -> Callable[[int, int, int], Drawn]:
    """Donors follow one random walk with loadings of 0.8 to 1.2 and noise of 0.4; the target may follow another."""

    def draw(n: int, run: int, targets: int) -> Drawn:
        rng = np.random.default_rng([61, n, run])
        common, own = np.cumsum(rng.normal(size=(2, 24)), axis=1)
        donors = 40 + rng.uniform(0.8, 1.2, (n, 1)) * common + rng.normal(0, 0.4, (n, 24))
        target = 40 + follows(common, own) + rng.normal(0, 0.4, 24)
        return Drawn(donors, target, target[16:], 16, dpc.Bounded(-60, 140))

    return draw


def counties(n: int, run: int, targets: int) -> Drawn:
    """Counties that are left out of the donors, in points of unemployment."""
    panel = _counties()
    order = np.random.default_rng(run).permutation(len(panel.values))[: n + 1]
    start, target = panel.times.index(panel.start), panel.values[order[0]]
    return Drawn(panel.values[order[1:]], target, target[start:], start, panel.bounds)


_counties = lru_cache(real.counties)
FACTS: dict[str, Any] = {"delta": 1e-6}
TUNED = ("factor", "volatility", "trend", "autoregression", "far inside", "drifting", "seasons", "clubs", "breaks")
DESIGNS = register({name: of_family(name) for name in TUNED}, "families", **FACTS)
DESIGNS |= register({name: of_family(name) for name in FAMILIES if name not in TUNED}, "families, later", "2026-11-22",
                    **FACTS)  # fmt: skip
DESIGNS |= register({"counties": counties}, "counties", "2026-11-22", more={"noise": 0}, **FACTS)
DESIGNS |= register({make.__name__: of_practice(make) for make in SHAPES}, "practice", "2026-11-23", **FACTS)
DESIGNS |= register({
    "factor, shock": simulated(dpc.simulate.factor_panel), "linear": simulated(linear_panel),
    **{f"factor, effect {effect:g}": simulated(dpc.simulate.factor_panel, effect=effect) for effect in (0.2, 0.5)},
}, "simulated", more={"noise": 0}, **FACTS)  # fmt: skip
DESIGNS |= register({name: unlike(follows) for name, follows in UNLIKE.items()}, "unlike")
