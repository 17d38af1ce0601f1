"""Long tails named by a hostile reader: does each interval hold that is shown though nobody said that tails are short?

    python -m benchmarks effects_tails                       400 runs a cell
    python -m benchmarks effects_tails --shapes "Weibull .6, treated" --rows 10000 --epsilons 1

Every shape is asked by the default method, δ = 1e-6.  Two shares of intervals are printed: of those that hold what the
answer says it is about, the effect on outcomes cut where it tells (that of each run, of 500,000 drawn records), and of
those that hold the effect on outcomes that are clipped to their bounds alone.  ``--cells`` asks the latter of cells, x
and w cut into four parts each, by pure ε: what an interval for all that bounds allow costs.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.effects_shapes import Drawn, Shape, X, coin, normal, tail
from dpcausal.effects.estimators.aipw_scores import LEAST_PROBABILITY, lines_of
from dpcausal.errors import DpCausalError

WIDE = dpc.Bounded(-10, 10)


def drawn(errors: Callable[[Any, Any, Any], tuple[Any, Any]], share: float = 0.5) -> Callable[[Any, int], Drawn]:
    """Errors of both arms that may go with what is adjusted for, about a line; a logistic treatment."""

    def draw(rng: Any, n: int) -> Drawn:
        x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
        a = coin(rng, 2 * share / (1 + np.exp(-0.4 * x + 0.2 * w)))
        control, treated = errors(rng, x, w)
        y0 = 0.5 * x + 0.3 * w
        return {"x": x, "w": w}, a, y0 + control, y0 + 0.4 + treated

    return draw


def scale_by_number(rng: Any, x: Any, w: Any) -> tuple[Any, Any]:
    e = 0.25 * np.exp((0.7 + 0.15 * np.clip(x, -2, 2)) * rng.normal(size=len(x)))
    return normal(rng, len(x)), e


def costs(rng: Any, n: int) -> Drawn:
    age, ill = rng.uniform(20, 80, n), np.clip(rng.normal(size=n), -4, 4)
    a = coin(rng, 0.45 + 0.003 * (age - 50) - 0.06 * ill)
    kind, stay = rng.random(n), rng.gamma(2, 0.5 + 0.004 * age)
    y = np.where(kind < 0.7, stay, np.where(kind < 0.95, rng.lognormal(0.8, 0.7, n), 10 + rng.gamma(2, 4, n)))
    return {"age": age, "ill": ill}, a, y + 0.2 * ill, np.where(kind < 0.97, 0.85 * y, 0.5 * y) + 0.2 * ill


def bills(rng: Any, n: int) -> Drawn:
    x, w = np.clip(rng.normal(size=(2, n)), -4, 4)
    y = rng.lognormal(0.2 * x, 0.9, n)
    return {"x": x, "w": w}, coin(rng, 0.5 + 0.1 * w), 0.6 * y, 1.5 * y


def effect_of_heavy(rng: Any, n: int) -> Drawn:
    x, w = np.clip(rng.standard_t(3, size=(2, n)), -9, 9)
    a = coin(rng, 1 / (1 + np.exp(-0.3 * x)))
    y = 0.3 * x - 0.2 * w + normal(rng, n)
    return {"x": x, "w": w}, a, y, y + 0.4 + 0.15 * np.maximum(w, 0) ** 2


def skew_by_both(rng: Any, x: Any, w: Any) -> tuple[Any, Any]:
    long = rng.exponential(0.8, len(x)) - 0.8
    return np.where(x < -0.5, -long, normal(rng, len(x))), np.where(x > 0.5, long, normal(rng, len(x)))


FIRST = {
    "zero-inflated gamma, treated": Shape(
        tail(lambda rng, n: (rng.random(n) < 0.3) * rng.gamma(0.8, 1.2, n) - 0.288, normal), WIDE, X
    ),
    "Pareto 2.2, treated with w > 0": Shape(
        drawn(lambda rng, x, w: (normal(rng, len(x)), np.where(w > 0, 0.3 * rng.pareto(2.2, len(x)), 0.1))), WIDE, X
    ),
    "log-normal, spread goes with x": Shape(drawn(scale_by_number), WIDE, X),
    "2 % of the treated 8 deviations up": Shape(
        tail(lambda rng, n: normal(rng, n) + 3.2 * (rng.random(n) < 0.02), normal), WIDE, X
    ),
    "Weibull .6, treated": Shape(tail(lambda rng, n: 0.25 * rng.weibull(0.6, n) - 0.376, normal), WIDE, X),
    "costs of three kinds of stays": Shape(
        costs, dpc.Bounded(-2, 60), {"age": dpc.Bounded(20, 80), "ill": dpc.Bounded(-4, 4)}
    ),
    "capped bills": Shape(bills, dpc.Bounded(0, 8), X),
    "exponential, 15 % treated": Shape(tail(lambda rng, n: rng.exponential(0.6, n) - 0.2, normal, 0.15), WIDE, X),
    "effect goes with a heavy square": Shape(
        effect_of_heavy, dpc.Bounded(-15, 20), {"x": dpc.Bounded(-9, 9), "w": dpc.Bounded(-9, 9)}
    ),
    "skew goes with arm and number": Shape(drawn(skew_by_both), WIDE, X),
}


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
    "t3 in two pieces, treated": Shape(tail(two_pieces, normal), WIDE, X),
    "response times, inverse Gaussian, treated": Shape(tail(lambda rng, n: rng.wald(0.5, 0.25, n), normal), WIDE, X),
    "one in a hundred untreated ten times too large": Shape(tail(lambda rng, n: 1 + normal(rng, n), typed_wrong),
                                                            dpc.Bounded(-10, 20), X),
    "floods, Frechet 2.5, untreated": Shape(
        tail(normal, lambda rng, n: 0.25 * rng.exponential(size=n) ** (-1 / 2.5), 0.65), WIDE, X
    ),
    "few responders where x is large": Shape(
        drawn(lambda rng, x, w: (normal(rng, len(x)), normal(rng, len(x)) + 3 * (x > 1.5))), WIDE, X
    ),
    "chi-squares whose sign goes with w": Shape(drawn(signed_squares), WIDE, X),
    "stays, geometric, 30 % treated": Shape(stays, dpc.Bounded(-1, 60), X),
    "incomes of Singh and Maddala": Shape(incomes, dpc.Bounded(0, 40), X),
    "claims of one in twenty-five, Pareto 2.5": Shape(claims, dpc.Bounded(-1, 25), X),
    "visits, zeros and negative binomial": Shape(visits, dpc.Bounded(-2, 40), X),
}  # fmt: skip
"""Named after the rules had been mended on the first set and on others; the third of them mended them again."""


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
    "survival, log-logistic 2.5, treated": Shape(
        tail(lambda rng, n: 0.4 * (1 / rng.random(n) - 1) ** (1 / 2.5), normal), WIDE, X
    ),
    "Gumbel whose spread goes with w, untreated": Shape(drawn(gumbel_by_number), WIDE, X),
    "one of eight treated has a bonus": Shape(
        tail(lambda rng, n: normal(rng, n) + (rng.random(n) < 1 / 8) * rng.exponential(1.5, n), normal), WIDE, X
    ),
    "losses, log-normal to the left, two fifths treated": Shape(
        tail(normal, lambda rng, n: 0.6 - 0.4 * rng.lognormal(0, 0.9, n), 0.4), WIDE, X
    ),
    "Laplace beside half a normal": Shape(
        tail(lambda rng, n: 0.8 * np.abs(rng.normal(size=n)), lambda rng, n: rng.laplace(0, 0.4, n)), WIDE, X
    ),
    "ratios of gammas, a quarter larger": Shape(ratios, dpc.Bounded(-3, 40), X),
    "accidents, Poisson of log-normal rates": Shape(accidents, dpc.Bounded(0, 60), X),
    "exponential whose spread goes with a square": Shape(drawn(spread_by_square), WIDE, X),
    "a hump of each arm, on either side": Shape(
        tail(lambda rng, n: normal(rng, n) + 2 * (rng.random(n) < 0.08),
             lambda rng, n: normal(rng, n) - 2.5 * (rng.random(n) < 0.03)), WIDE, X,
    ),
    "wages with a floor, a third treated": Shape(wages_with_floor, dpc.Bounded(0, 40), X),
}  # fmt: skip
"""Named after the rules were frozen for good."""


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
    "one in 250 untreated have the code of a missing answer": Shape(
        tail(normal, lambda rng, n: np.where(rng.random(n) < 0.004, 99, normal(rng, n))), dpc.Bounded(-10, 40), X
    ),
    "one in 200 treated fifty times as large": Shape(
        tail(lambda rng, n: (1 + normal(rng, n)) * np.where(rng.random(n) < 0.005, 50, 1), normal),
        dpc.Bounded(-100, 100), X,
    ),
    "far where treatment is rare": Shape(far_where_rare, dpc.Bounded(-20, 20), X),
    "t2 whose spread goes with x, treated": Shape(drawn(infinite_spread), dpc.Bounded(-50, 50), X),
    "many near above and few far below, treated": Shape(tail(balanced, normal), dpc.Bounded(-20, 20), X),
}
"""Named after the interval said what it is about, and left as they were found."""
SETS = {"first": FIRST, "second": SECOND, "third": THIRD, "fourth": FOURTH}
SHAPES = {name: shape for shapes in SETS.values() for name, shape in shapes.items()}


class Population:
    """Many records of a shape with both outcomes: what the effect is on outcomes that are cut."""

    def __init__(self, shape: Shape) -> None:
        adjust, _, *outcomes = shape.draw(np.random.default_rng(1), 500_000)
        self.truth = shape.truth()
        self.columns = {name: np.clip(adjust[name] * 1.0, one.lower, one.upper) for name, one in shape.columns.items()}
        self.outcomes = [np.clip(one * 1.0, shape.outcome.lower, shape.outcome.upper) for one in outcomes]

    def target(self, found: dpc.Effect) -> float:
        """Return the effect that an answer says it is about."""
        if found.cut is None:
            return self.truth
        release: Any = found.release
        lines, lost = lines_of(release, release.names), []
        columns = self.columns | {one.name: one(self.columns) for one in release.products}
        adjusted = [columns[name] for name in release.names[2:]]
        for arm, outcome in enumerate(self.outcomes):
            line, chance = lines.outcome[-1] + lines.outcome[0] * arm, lines.treatment[-1]
            for slope, lean, column in zip(lines.outcome[1:], lines.treatment, adjusted, strict=False):
                line, chance = line + slope * column, chance + lean * column
            chance = np.clip(chance, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
            reach = found.cut * (chance if arm else 1 - chance)
            lost.append(float(np.mean(outcome - line - np.clip(outcome - line, -reach, reach))))
        return self.truth - lost[1] + lost[0]


def cell(name: str, n: int, epsilon: float, runs: int) -> str:
    shape, held, cut, widths, errors = SHAPES[name], [], [], [], []
    population = Population(shape)
    truth = population.truth
    for seed in range(runs):
        try:
            with dpc.simulated_noise(seed):
                found = shape.asked(n, epsilon, seed, False)
        except DpCausalError as error:
            return f"refused before the spend: {str(error)[:60]}"
        if found.interval_reason.startswith("with so few rows"):
            return "withheld by public numbers"
        if found.interval is not None:
            target = population.target(found)
            held.append(found.interval[0] <= truth <= found.interval[1])
            cut.append(found.interval[0] <= target <= found.interval[1])
            widths.append(found.interval[1] - found.interval[0])
            errors.append(found.estimate - truth)
    if not held:
        return f"withheld in all of {runs}"
    coverage, error = float(np.mean(cut)), math.sqrt(0.0475 / len(held))
    low = " LOW" if coverage < 0.93 - 3 * error else " low" if coverage < 0.93 else ""
    return (f"{coverage:.3f} ± {error:.3f}{low}, not cut {np.mean(held):.3f}, off by {np.mean(errors):+.4f}, "
            f"± {np.mean(widths) / 2:.4f}, shown in {len(held) / runs:.2f} of {runs}")  # fmt: skip


def by_cells(name: str, n: int, epsilon: float, runs: int) -> str:
    """Return the line of a shape with x and w that is asked by cells."""
    shape, truth, held, widths, plain = SHAPES[name], SHAPES[name].truth(), [], [], []
    parts = dict.fromkeys(X, dpc.Bounded(-4, 4, [-0.7, 0, 0.7]))
    schema = dpc.Schema({"a": dpc.Levels([0, 1]), "y": shape.outcome, **parts})
    for seed in range(runs):
        adjust, a, y0, y1 = shape.draw(np.random.default_rng([29, n, seed]), n)
        for loss in (dpc.PureDP(epsilon), dpc.NoPrivacy()):
            ledger = dpc.Ledger.without_privacy() if loss.exact else dpc.Ledger.in_memory(loss)
            table = dpc.Table({**adjust, "a": a, "y": np.where(a == 1, y1, y0)}, schema, ledger)
            with dpc.simulated_noise(seed):
                found = dpc.effect(table, treatment="a", outcome="y", adjust=list(X), loss=loss, method="stratified")
            if loss.exact:
                plain.append(3.92 * (found.standard_error or math.nan))
            elif found.interval is not None:
                widths.append(found.interval[1] - found.interval[0])
                held.append(found.interval[0] <= truth <= found.interval[1])
    return (f"by cells {np.mean(held):.3f} ± {math.sqrt(0.0475 / max(len(held), 1)):.3f}, ± {np.mean(widths) / 2:.4f}, "
            f"× {np.mean(widths) / np.mean(plain):.2f}, shown in {len(held) / runs:.2f} of {runs}")  # fmt: skip


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=400)
    options.add_argument("--set", choices=SETS)
    options.add_argument("--shapes", default="")
    options.add_argument("--rows", default="9500,10000,12000,15000,30000")
    options.add_argument("--epsilons", default="0.5,1,2")
    options.add_argument("--cells", action="store_true")
    asked = options.parse_args(arguments)
    failed = False
    for name in asked.shapes.split(";") if asked.shapes else SETS.get(asked.set, SHAPES):
        for n in map(int, asked.rows.split(",")):
            for epsilon in map(float, asked.epsilons.split(",")):
                told = (by_cells if asked.cells else cell)(name, n, epsilon, asked.runs)
                failed |= " LOW" in told
                print(f"{name:<48}{n:>8}{epsilon:>5g}  {told}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
