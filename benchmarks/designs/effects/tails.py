"""Effects of outcomes with long tails; an answer may be about winsorised outcomes."""

from functools import cache
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import Outcomes as Drawn
from benchmarks.designs import Study, of_outcomes, prefix, register
from benchmarks.designs import flips as coin
from benchmarks.designs.effects.shapes import X, beside, both_arms, normal, tail
from dpcausal.effects.nuisance.scores import LEAST_PROBABILITY, lines_of

SECOND = {
    "t3 in two pieces, treated": (
        tail(lambda rng, n: np.where((t := 0.3 * rng.standard_t(3, n)) > 0, 2 * t, 0.5 * t), normal), -10, 10),
    "response times, inverse Gaussian, treated": (tail(lambda rng, n: rng.wald(0.5, 0.25, n), normal), -10, 10),
    "one in a hundred untreated ten times too large": (
        tail(lambda rng, n: 1 + normal(rng, n),
             lambda rng, n: (1 + normal(rng, n)) * np.where(rng.random(n) < 0.01, 10, 1)), -10, 20),
    "floods, Frechet 2.5, untreated": (
        tail(normal, lambda rng, n: 0.25 * rng.exponential(size=n) ** (-1 / 2.5), 0.65), -10, 10),
    "few responders where x is large": (
        both_arms(lambda rng, x, w: (normal(rng, len(x)), normal(rng, len(x)) + 3 * (x > 1.5))), -10, 10),
    "chi-squares whose sign goes with w": (both_arms(lambda rng, x, w: (
        normal(rng, len(x)), 0.5 * (rng.normal(size=len(x)) ** 2 - 1) * np.sign(w + 1))), -10, 10),
    "stays, geometric, 30 % treated": (beside(lambda rng, x, w: (
        rng.geometric(rate := 1 / (1 + np.exp(1.2 + 0.4 * w))) + 0.2 * x, rng.geometric(rate**1.3) + 0.2 * x),
        lambda x, w: 0.3 + 0.05 * x, treated_first=True), -1, 60),
    "incomes of Singh and Maddala": (beside(lambda rng, x, w: (
        y := np.exp(0.2 * x) * (rng.random(len(x)) ** (-1 / 1.5) - 1) ** (1 / 2.1), 1.3 * y),
        lambda x, w: 0.5 + 0.08 * x - 0.05 * w), 0, 40),
    "claims of one in twenty-five, Pareto 2.5": (beside(lambda rng, x, w: (
        y := (rng.random(len(x)) < 0.04) * 0.8 * (1 + rng.pareto(2.5, len(x))) + 0.1 * x,
        np.where(y > 0.5, 1.5 * y, y)), lambda x, w: 0.5 + 0.1 * w), -1, 25),
    "visits, zeros and negative binomial": (beside(lambda rng, x, w: [
        (rng.random(len(x)) < 0.6) * rng.negative_binomial(0.8, p, len(x)) + 0.3 * w for p in (0.3, 0.22)],
        lambda x, w: 0.4 + 0.06 * x), -2, 40),
}  # fmt: skip


def accidents(rng: Any, n: int) -> Drawn:
    x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
    rate = rng.lognormal(0.1 * x - 0.3, 0.9)
    return {"x": x, "w": w}, coin(rng, 0.5 - 0.08 * x), rng.poisson(rate), rng.poisson(1.3 * rate)


THIRD = {
    "survival, log-logistic 2.5, treated": (
        tail(lambda rng, n: 0.4 * (1 / rng.random(n) - 1) ** (1 / 2.5), normal), -10, 10),
    "Gumbel whose spread goes with w, untreated": (
        both_arms(lambda rng, x, w: (rng.gumbel(0, 0.25 * np.exp(0.3 * w)), normal(rng, len(x)))), -10, 10),
    "one of eight treated has a bonus": (
        tail(lambda rng, n: normal(rng, n) + (rng.random(n) < 1 / 8) * rng.exponential(1.5, n), normal), -10, 10),
    "losses, log-normal to the left, two fifths treated": (
        tail(normal, lambda rng, n: 0.6 - 0.4 * rng.lognormal(0, 0.9, n), 0.4), -10, 10),
    "Laplace beside half a normal": (
        tail(lambda rng, n: 0.8 * np.abs(rng.normal(size=n)), lambda rng, n: rng.laplace(0, 0.4, n)), -10, 10),
    "ratios of gammas, a quarter larger": (beside(lambda rng, x, w: (
        (y := rng.gamma(2, 1, len(x)) / rng.gamma(3, 1, len(x))) + 0.3 * w, 1.25 * y + 0.3 * w),
        lambda x, w: 0.5 + 0.1 * x), -3, 40),
    "accidents, Poisson of log-normal rates": (accidents, 0, 60),
    "exponential whose spread goes with a square": (both_arms(lambda rng, x, w: (
        normal(rng, len(x)), (rng.exponential(size=len(x)) - 1) * (0.2 + 0.2 * x**2))), -10, 10),
    "a hump of each arm, on either side": (
        tail(lambda rng, n: normal(rng, n) + 2 * (rng.random(n) < 0.08),
             lambda rng, n: normal(rng, n) - 2.5 * (rng.random(n) < 0.03)), -10, 10),
    "wages with a floor, a third treated": (beside(lambda rng, x, w: (
        np.maximum(y := rng.lognormal(0.15 * x, 0.8, len(x)) - 0.5, 0), np.maximum(1.15 * y + 0.1, 0)),
        lambda x, w: 0.33 + 0.06 * w), 0, 40),
}  # fmt: skip


def far_where_rare(rng: Any, x: Any, w: Any) -> tuple[Any, Any]:
    far = 8 * (x > 1) * (rng.random(len(x)) < 0.06)
    y = 0.5 * x + 0.3 * w + normal(rng, len(x))
    return y, y + 0.4 + far


def balanced(rng: Any, n: int) -> Any:
    place = rng.random(n)
    return normal(rng, n) + np.where(place < 0.012, 4, np.where(place < 0.015, -16, 0))


FOURTH = {
    "one in 250 untreated have the code of a missing answer": (
        tail(normal, lambda rng, n: np.where(rng.random(n) < 0.004, 99, normal(rng, n))), -10, 40),
    "one in 200 treated fifty times as large": (
        tail(lambda rng, n: (1 + normal(rng, n)) * np.where(rng.random(n) < 0.005, 50, 1), normal), -100, 100),
    "far where treatment is rare": (beside(far_where_rare, lambda x, w: np.clip(0.5 - 0.15 * x, 0.12, 0.9)), -20, 20),
    "t2 whose spread goes with x, treated": (both_arms(lambda rng, x, w: (
        normal(rng, len(x)), 0.3 * rng.standard_t(2, len(x)) * np.exp(0.3 * x))), -50, 50),
    "many near above and few far below, treated": (tail(balanced, normal), -20, 20),
}  # fmt: skip


def tailed(draw: Any, low: float, high: float) -> Study:
    """A study whose answer is compared with what it says it is about, and with the effect within the bounds."""
    plain = of_outcomes(draw, dpc.Bounded(low, high), X)

    @cache
    def population() -> tuple[dict[str, Any], list[Any]]:
        """Many records with both outcomes."""
        adjust, _, *outcomes = draw(np.random.default_rng(1), 500_000)
        columns = {name: np.clip(adjust[name] * 1.0, one.lower, one.upper) for name, one in X.items()}
        return columns, [np.clip(one * 1.0, low, high) for one in outcomes]

    def less(found: dpc.Effect) -> float:
        """How much the effect that an answer says it is about differs from that on outcomes within their bounds."""
        if found.cut is None:
            return 0.0
        release: Any = found.release
        (columns, outcomes), lines, lost = population(), lines_of(release, release.names), []
        columns = columns | {one.name: one(columns) for one in release.products}
        for arm, outcome in enumerate(outcomes):
            line, chance = lines.outcome[-1] + lines.outcome[0] * arm, lines.treatment[-1]
            for slope, tilt, name in zip(lines.outcome[1:], lines.treatment, release.names[2:], strict=False):
                line, chance = line + slope * columns[name], chance + tilt * columns[name]
            chance = np.clip(chance, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
            reach = found.cut * (chance if arm else 1 - chance)
            lost.append(float(np.mean(outcome - line - np.clip(outcome - line, -reach, reach))))
        return lost[0] - lost[1]

    def aims(found: Any) -> dict[str, float]:
        truth = plain.effect()
        return {"": truth + less(found), "(within bounds)": truth}

    return Study(plain.rows, plain.schema, plain.truth, options=plain.options, aims=aims)


DESIGNS = {}
for family, makes, day in (("tails 2", SECOND, "2026-11-23"), ("tails 3", THIRD, "2026-11-23"),
                           ("tails 4", FOURTH, "2026-11-24")):  # fmt: skip
    DESIGNS |= register({name: tailed(*one) for name, one in makes.items()}, family, day, seeds=prefix(29), delta=1e-6)
