"""Effects of outcomes with long tails; an answer may be about winsorised outcomes."""

from functools import cache
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import Outcomes as Drawn
from benchmarks.designs import Study, of_outcomes, prefix, register
from benchmarks.designs import flips as coin
from benchmarks.designs.effects.shapes import X, both_arms, normal, tail
from dpcausal.effects.estimators.scores import LEAST_PROBABILITY, lines_of

TEN = dpc.Bounded(-10, 10)


def stays(rng: Any, n: int) -> Drawn:
    x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
    rate = 1 / (1 + np.exp(1.2 + 0.4 * w))
    a = coin(rng, 0.3 + 0.05 * x)
    return {"x": x, "w": w}, a, rng.geometric(rate) + 0.2 * x, rng.geometric(rate**1.3) + 0.2 * x


def incomes(rng: Any, n: int) -> Drawn:
    x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
    y = np.exp(0.2 * x) * (rng.random(n) ** (-1 / 1.5) - 1) ** (1 / 2.1)
    return {"x": x, "w": w}, coin(rng, 0.5 + 0.08 * x - 0.05 * w), y, 1.3 * y


def claims(rng: Any, n: int) -> Drawn:
    x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
    y = (rng.random(n) < 0.04) * 0.8 * (1 + rng.pareto(2.5, n)) + 0.1 * x
    return {"x": x, "w": w}, coin(rng, 0.5 + 0.1 * w), y, np.where(y > 0.5, 1.5 * y, y)


def visits(rng: Any, n: int) -> Drawn:
    x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
    y = (rng.random(n) < 0.6) * rng.negative_binomial(0.8, 0.3, n)
    more = (rng.random(n) < 0.6) * rng.negative_binomial(0.8, 0.22, n)
    return {"x": x, "w": w}, coin(rng, 0.4 + 0.06 * x), y + 0.3 * w, more + 0.3 * w


def signed_squares(rng: Any, x: Any, w: Any) -> tuple[Any, Any]:
    return normal(rng, len(x)), 0.5 * (rng.normal(size=len(x)) ** 2 - 1) * np.sign(w + 1)


def typed_wrong(rng: Any, n: int) -> Any:
    return (1 + normal(rng, n)) * np.where(rng.random(n) < 0.01, 10, 1)


def two_pieces(rng: Any, n: int) -> Any:
    t = 0.3 * rng.standard_t(3, n)
    return np.where(t > 0, 2 * t, 0.5 * t)


SECOND = {
    "t3 in two pieces, treated": (tail(two_pieces, normal), TEN, X),
    "response times, inverse Gaussian, treated": (tail(lambda rng, n: rng.wald(0.5, 0.25, n), normal), TEN, X),
    "one in a hundred untreated ten times too large": (tail(lambda rng, n: 1 + normal(rng, n), typed_wrong),
                                                            dpc.Bounded(-10, 20), X),
    "floods, Frechet 2.5, untreated": (
        tail(normal, lambda rng, n: 0.25 * rng.exponential(size=n) ** (-1 / 2.5), 0.65), TEN, X
    ),
    "few responders where x is large": (
        both_arms(lambda rng, x, w: (normal(rng, len(x)), normal(rng, len(x)) + 3 * (x > 1.5))), TEN, X
    ),
    "chi-squares whose sign goes with w": (both_arms(signed_squares), TEN, X),
    "stays, geometric, 30 % treated": (stays, dpc.Bounded(-1, 60), X),
    "incomes of Singh and Maddala": (incomes, dpc.Bounded(0, 40), X),
    "claims of one in twenty-five, Pareto 2.5": (claims, dpc.Bounded(-1, 25), X),
    "visits, zeros and negative binomial": (visits, dpc.Bounded(-2, 40), X),
}  # fmt: skip


def gumbel_by_number(rng: Any, x: Any, w: Any) -> tuple[Any, Any]:
    return rng.gumbel(0, 0.25 * np.exp(0.3 * w)), normal(rng, len(x))


def spread_by_square(rng: Any, x: Any, w: Any) -> tuple[Any, Any]:
    return normal(rng, len(x)), (rng.exponential(size=len(x)) - 1) * (0.2 + 0.2 * x**2)


def ratios(rng: Any, n: int) -> Drawn:
    x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
    y = rng.gamma(2, 1, n) / rng.gamma(3, 1, n)
    return {"x": x, "w": w}, coin(rng, 0.5 + 0.1 * x), y + 0.3 * w, 1.25 * y + 0.3 * w


def accidents(rng: Any, n: int) -> Drawn:
    x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
    rate = rng.lognormal(0.1 * x - 0.3, 0.9)
    return {"x": x, "w": w}, coin(rng, 0.5 - 0.08 * x), rng.poisson(rate), rng.poisson(1.3 * rate)


def wages_with_floor(rng: Any, n: int) -> Drawn:
    x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
    y = rng.lognormal(0.15 * x, 0.8, n) - 0.5
    return {"x": x, "w": w}, coin(rng, 0.33 + 0.06 * w), np.maximum(y, 0), np.maximum(1.15 * y + 0.1, 0)


THIRD = {
    "survival, log-logistic 2.5, treated": (
        tail(lambda rng, n: 0.4 * (1 / rng.random(n) - 1) ** (1 / 2.5), normal), TEN, X
    ),
    "Gumbel whose spread goes with w, untreated": (both_arms(gumbel_by_number), TEN, X),
    "one of eight treated has a bonus": (
        tail(lambda rng, n: normal(rng, n) + (rng.random(n) < 1 / 8) * rng.exponential(1.5, n), normal), TEN, X
    ),
    "losses, log-normal to the left, two fifths treated": (
        tail(normal, lambda rng, n: 0.6 - 0.4 * rng.lognormal(0, 0.9, n), 0.4), TEN, X
    ),
    "Laplace beside half a normal": (
        tail(lambda rng, n: 0.8 * np.abs(rng.normal(size=n)), lambda rng, n: rng.laplace(0, 0.4, n)), TEN, X
    ),
    "ratios of gammas, a quarter larger": (ratios, dpc.Bounded(-3, 40), X),
    "accidents, Poisson of log-normal rates": (accidents, dpc.Bounded(0, 60), X),
    "exponential whose spread goes with a square": (both_arms(spread_by_square), TEN, X),
    "a hump of each arm, on either side": (
        tail(lambda rng, n: normal(rng, n) + 2 * (rng.random(n) < 0.08),
             lambda rng, n: normal(rng, n) - 2.5 * (rng.random(n) < 0.03)), TEN, X,
    ),
    "wages with a floor, a third treated": (wages_with_floor, dpc.Bounded(0, 40), X),
}  # fmt: skip


def far_where_rare(rng: Any, n: int) -> Drawn:
    x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
    far = 8 * (x > 1) * (rng.random(n) < 0.06)
    y = 0.5 * x + 0.3 * w + normal(rng, n)
    return {"x": x, "w": w}, coin(rng, np.clip(0.5 - 0.15 * x, 0.12, 0.9)), y, y + 0.4 + far


def infinite_spread(rng: Any, x: Any, w: Any) -> tuple[Any, Any]:
    return normal(rng, len(x)), 0.3 * rng.standard_t(2, len(x)) * np.exp(0.3 * x)


def balanced(rng: Any, n: int) -> Any:
    place = rng.random(n)
    return normal(rng, n) + np.where(place < 0.012, 4, np.where(place < 0.015, -16, 0))


FOURTH = {
    "one in 250 untreated have the code of a missing answer": (
        tail(normal, lambda rng, n: np.where(rng.random(n) < 0.004, 99, normal(rng, n))),
        dpc.Bounded(-10, 40),
        X,
    ),
    "one in 200 treated fifty times as large": (
        tail(lambda rng, n: (1 + normal(rng, n)) * np.where(rng.random(n) < 0.005, 50, 1), normal),
        dpc.Bounded(-100, 100),
        X,
    ),
    "far where treatment is rare": (far_where_rare, dpc.Bounded(-20, 20), X),
    "t2 whose spread goes with x, treated": (both_arms(infinite_spread), dpc.Bounded(-50, 50), X),
    "many near above and few far below, treated": (tail(balanced, normal), dpc.Bounded(-20, 20), X),
}


class Population:
    """Many records with both outcomes: what the effect is on winsorised outcomes."""

    def __init__(self, draw: Any, outcome: Any, columns: dict[str, Any]) -> None:
        adjust, _, *outcomes = draw(np.random.default_rng(1), 500_000)
        self.columns = {name: np.clip(adjust[name] * 1.0, one.lower, one.upper) for name, one in columns.items()}
        self.outcomes = [np.clip(one * 1.0, outcome.lower, outcome.upper) for one in outcomes]

    def less(self, found: dpc.Effect) -> float:
        """How much the effect that an answer says it is about differs from that on outcomes within their bounds."""
        if found.cut is None:
            return 0.0
        release: Any = found.release
        lines, lost = lines_of(release, release.names), []
        columns = self.columns | {one.name: one(self.columns) for one in release.products}
        adjusted = [columns[name] for name in release.names[2:]]
        for arm, outcome in enumerate(self.outcomes):
            line, chance = lines.outcome[-1] + lines.outcome[0] * arm, lines.treatment[-1]
            for slope, tilt, column in zip(lines.outcome[1:], lines.treatment, adjusted, strict=False):
                line, chance = line + slope * column, chance + tilt * column
            chance = np.clip(chance, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
            reach = found.cut * (chance if arm else 1 - chance)
            lost.append(float(np.mean(outcome - line - np.clip(outcome - line, -reach, reach))))
        return lost[0] - lost[1]


def tailed(draw: Any, outcome: Any, columns: dict[str, Any]) -> Study:
    """A study whose answer is compared with what it says it is about, and with the effect within the bounds."""
    plain = of_outcomes(draw, outcome, columns)
    population = cache(lambda: Population(draw, outcome, columns))

    def aims(found: Any) -> dict[str, float]:
        truth = plain.effect()
        return {"": truth + population().less(found), "(within bounds)": truth}

    return Study(plain.rows, plain.schema, plain.truth, options=plain.options, aims=aims)


DESIGNS = {}
for family, makes, day in (("tails 2", SECOND, "2026-11-23"), ("tails 3", THIRD, "2026-11-23"),
                           ("tails 4", FOURTH, "2026-11-24")):  # fmt: skip
    DESIGNS |= register({name: tailed(*one) for name, one in makes.items()}, family, day, seeds=prefix(29), delta=1e-6)
