"""Shapes of data under which x and y are independent given z."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.designs import register
from benchmarks.designs.independence import practice, unseen
from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.simulate import SimulatedRows

Reals = Any
Draw = Callable[[int, Any, float], SimulatedRows]

NUMBER, TWO = Bounded(-12, 12), Levels([0, 1])

WEAK = "a weak curve beside four idle numbers"
"""A twelfth of the variance of x and of y, as in Figure 1 of Kalemaj, Kasiviswanathan & Ramdas (2024), s = 1, d = 5."""


def rows(**columns: tuple[Reals, Any]) -> SimulatedRows:
    """Return columns of which each has its values and its levels or bounds; numbers are clipped to these."""
    values = {name: np.clip(one, kind.lower, kind.upper) if isinstance(kind, Bounded) else one
              for name, (one, kind) in columns.items()}  # fmt: skip
    return SimulatedRows(values, Schema({name: kind for name, (_, kind) in columns.items()}), list(columns)[2:], 0)


def numbers(Z: Reals) -> dict[str, tuple[Reals, Any]]:
    return {f"z{place}": (one, Bounded(-4, 4)) for place, one in enumerate(Z)}


def one(mean_x: Any, mean_y: Any, noise: Any = None, z: Any = None, scale: Any = None) -> Draw:
    """Return a shape with one number z ~ N(0, 4) or another, and x, y = means of z + noise."""

    def draw(n: int, rng: Any, link: float) -> SimulatedRows:
        given = np.clip(2 * rng.standard_normal(n), -8, 8) if z is None else z(rng, n)
        first, second = (rng.standard_normal(n) if noise is None else noise(rng, n) for _ in range(2))
        width, wide = 1.0 if scale is None else scale(given), Bounded(-40, 40)
        x, y = mean_x(given) + width * first, mean_y(given) + width * (second + link * first)
        return rows(x=(x, wide), y=(y, wide), z=(given, Bounded(-8, 8) if z is None else Bounded(-1e4, 1e4)))

    return draw


def several(count: int, mean: Any, sign: float = 1.0) -> Draw:
    """Return a shape with several standard normal numbers."""

    def draw(n: int, rng: Any, link: float) -> SimulatedRows:
        Z, (first, second) = rng.standard_normal((count, n)), rng.standard_normal((2, n))
        return rows(x=(mean(Z) + first, NUMBER), y=(sign * mean(Z) + second + link * first, NUMBER), **numbers(Z))

    return draw


def exclusive_or(kind: str) -> Draw:
    """Return x, y = 2 (a xor b) + noise: a and b levels, numbers, or levels beside a number z."""

    def draw(n: int, rng: Any, link: float) -> SimulatedRows:
        a, b = rng.integers(0, 2, (2, n))
        z, first, second = rng.standard_normal((3, n))
        both = 2.0 * (a != b) + (z if kind == "beside" else 0.0)
        given: dict[str, tuple[Any, Any]] = {"a": (a, TWO), "b": (b, TWO)}
        if kind == "numbers":
            given = {"a": (a + 0.0, Bounded(0, 1)), "b": (b + 0.0, Bounded(0, 1))}
        given |= {"z": (z, Bounded(-4, 4))} if kind == "beside" else {}
        return rows(x=(both + first, NUMBER), y=(both + second + link * first, NUMBER), **given)

    return draw


def levels(strata: int, low: float, step: float) -> Draw:
    """Return x and y of two levels whose odds grow with the stratum; ``link`` is the share of y that copies x."""

    def draw(n: int, rng: Any, link: float) -> SimulatedRows:
        s = rng.integers(0, strata, n)
        x, y = (rng.random((2, n)) < low + step * s).astype(np.int64)
        y = np.where(rng.random(n) < link, x, y)
        return rows(x=(x, TWO), y=(y, TWO), **({"s": (s, Levels(range(strata)))} if strata > 1 else {}))

    return draw


def nominal(n: int, rng: Any, link: float) -> SimulatedRows:
    """x of four levels and y of three, in three strata."""
    s = rng.integers(0, 3, n)
    x, y = (rng.integers(0, 4, n) + s) % 4, (rng.integers(0, 3, n) * rng.integers(0, 2, n) + s) % 3
    y = np.where(rng.random(n) < link, x % 3, y)
    return rows(x=(x, Levels(range(4))), y=(y, Levels(range(3))), s=(s, Levels(range(3))))


def treated(n: int, rng: Any, link: float) -> SimulatedRows:
    """x a rare treatment whose odds grow with the stratum, y a number that does so too."""
    s = rng.integers(0, 5, n)
    x = (rng.random(n) < 0.05 + 0.05 * s).astype(np.int64)
    return rows(x=(x, TWO), y=(s + rng.standard_normal(n) + link * x, NUMBER), s=(s, Levels(range(5))))


def binary_on_z(n: int, rng: Any, link: float) -> SimulatedRows:
    """x and y rare levels whose odds depend on z."""
    z = 2 * rng.standard_normal(n)
    x, y = (rng.random((2, n)) < 1 / (1 + np.exp(3.5 - 0.8 * z))).astype(np.int64)
    y = np.where(rng.random(n) < link, x, y)
    return rows(x=(x, TWO), y=(y, TWO), z=(z, Bounded(-8, 8)))


def _linear(z: Reals) -> Reals:
    return z


def _square(z: Reals) -> Reals:
    return z * z / 2


def _waves(count: int) -> Any:
    return lambda z: np.sin(2 * np.pi * count * z / 16)


def _step(z: Reals) -> Reals:
    return 2.0 * (z > 0)


def _log(z: Reals) -> Reals:
    return 1.5 * np.log(np.abs(z) + 1e-9)


def changed(draw: Draw, how: str) -> Draw:
    """Return the shape with rows missing, twice over (as rows, or as two of a person), or in the order of x."""

    def again(n: int, rng: Any, link: float) -> SimulatedRows:
        found = draw(n // 2 if how in ("twice", "persons") else n, rng, link)
        columns = {name: np.asarray(column) for name, column in found.columns.items()}
        if how == "missing":
            for name in ("x", "y"):
                columns[name] = np.where(rng.random(n) < 0.2, np.nan, columns[name])
        order = np.argsort(columns["x"]) if how == "sorted" else np.repeat(np.arange(len(columns["x"])), 2)
        if how != "missing":
            columns = {name: column[order] for name, column in columns.items()}
        if how == "persons":
            return OfPersons({**columns, "id": order}, found.schema, found.given, 0)
        return SimulatedRows(columns, found.schema, found.given, 0)

    return again


@dataclass(frozen=True)
class OfPersons(SimulatedRows):
    """Rows of persons."""

    person: str = "id"


SHAPES = {
    "linear": one(_linear, _linear), "sine, 1 cycle": one(_waves(1), lambda z: -_waves(1)(z)),
    "sine, 8 cycles": one(_waves(8), _waves(8)), "z²": one(_square, _square),
    "t₂ noise": one(_linear, _linear, lambda rng, n: rng.standard_t(2, n)),
    "z², skewed noise": one(_square, _square, lambda rng, n: rng.exponential(size=n)),
    "spread grows with z": one(_linear, _linear, scale=lambda z: 0.3 + np.abs(z)),
    "lognormal z": one(_log, _log, z=lambda rng, n: np.exp(rng.standard_normal(n))),
    "Cauchy z": one(lambda z: 2 * _log(z), lambda z: 2 * _log(z), z=lambda rng, n: rng.standard_cauchy(n)),
    "step": one(_step, _step), "XOR of levels": exclusive_or("levels"),
    "XOR of levels beside z": exclusive_or("beside"), "rare levels on z": binary_on_z,
    "2 levels, nothing given": levels(1, 0.3, 0.0), "2 levels, 5 strata": levels(5, 0.2, 0.15),
    "2 levels, 20 rare strata": levels(20, 0.02, 0.003), "4 by 3 levels, 3 strata": nominal,
    "rare treatment, 5 strata": treated, "20 % of x and of y missing": changed(one(_square, _square), "missing"),
    "rows sorted by x": changed(one(_square, _square), "sorted"),
    "every row twice": changed(one(_square, _square), "twice"),
    "every person twice, person=": changed(one(_square, _square), "persons"),
    "XOR of numbers": exclusive_or("numbers"), "z₀z₁ in d = 5": several(5, lambda Z: Z[0] * Z[1]),
    "additive in d = 5": several(5, lambda Z: 0.7 * np.sin(2 * Z).sum(axis=0), -1.0),
    "step in d = 3": several(3, lambda Z: _step(Z[0])),
}  # fmt: skip


def _counts(n: int, rng: Any, link: float) -> SimulatedRows:
    z = rng.uniform(0, 3, n)
    x, y = rng.poisson(np.exp(z / 2), (2, n)).astype(float)
    return rows(x=(x, Bounded(0, 40)), y=(y + link * x, Bounded(0, 40)), z=(z, Bounded(0, 3)))


def _ages(n: int, rng: Any, link: float) -> SimulatedRows:
    age = np.floor(rng.triangular(18, 30, 90, n))
    x, y = (np.exp(0.02 * age - 0.0002 * (age - 50) ** 2 + 0.8 * rng.standard_normal(n)) for _ in range(2))
    return rows(x=(x, Bounded(0, 60)), y=(y + link * x, Bounded(0, 60)), z=(age, Bounded(18, 90)))


def _treatment_by_score(n: int, rng: Any, link: float) -> SimulatedRows:
    z, w = rng.standard_normal((2, n))
    x = (rng.random(n) < 1 / (1 + np.exp(-z - w * z))).astype(np.int64)
    y = z + w * z + rng.standard_normal(n) + link * x
    return rows(x=(x, TWO), y=(y, NUMBER), z=(z, Bounded(-4, 4)), w=(w, Bounded(-4, 4)))


SHAPES |= {
    "Poisson counts": _counts,
    "whole ages, lognormal incomes": _ages,
    "sawtooth, two bumps of noise": one(
        lambda z: z % 1.0 * 3, lambda z: z % 1.0 * 3,
        lambda rng, n: np.where(rng.random(n) < 0.3, 3.0, -1.0) + 0.3 * rng.standard_normal(n)),
    "treatment by a product of scores": _treatment_by_score,
    "wave along z₀ + z₁": several(2, lambda Z: np.sin(2 * (Z[0] + Z[1]))),
}


def _gamma(n: int, rng: Any, link: float) -> SimulatedRows:
    z = rng.gamma(2.0, 1.0, n)
    first, second = rng.standard_normal((2, n))
    x, y = np.sqrt(z) * np.exp(first / 2), np.sqrt(z) * np.exp((second + link * first) / 2)
    return rows(x=(x, Bounded(0, 40)), y=(y, Bounded(0, 40)), z=(z, Bounded(0, 30)))


def _seasons(n: int, rng: Any, link: float) -> SimulatedRows:
    day, z = rng.integers(0, 7, n), rng.uniform(-1, 1, n)
    x = (rng.random(n) < 0.2 + 0.3 * (day > 4) + 0.2 * z).astype(np.int64)
    y = rng.poisson(1 + (day > 4) + (1 + z) / 2 + link * x) + 0.0
    return rows(x=(x, TWO), y=(y, Bounded(0, 40)), z=(z, Bounded(-1, 1)), day=(day, Levels(range(7))))


def _doses(n: int, rng: Any, link: float) -> SimulatedRows:
    """Doses of five sizes by weight, and a measurement with a floor: both end in ties."""
    weight = rng.gamma(9.0, 8.0, n)
    dose = np.clip(np.rint(weight / 25 + 0.7 * rng.standard_normal(n)), 1, 5)
    found = np.maximum(0.0, 3 - weight / 40 + rng.standard_normal(n) + link * dose)
    return rows(x=(dose, Bounded(1, 5)), y=(found, Bounded(0, 12)), weight=(weight, Bounded(0, 200)))


def _queue(n: int, rng: Any, link: float) -> SimulatedRows:
    """Waiting times by the hour: noise of exponential distribution whose scale has two peaks a day."""
    hour = rng.uniform(0, 24, n)
    scale = 0.5 + np.exp(-((hour - 9) ** 2) / 2) + 2 * np.exp(-((hour - 17) ** 2) / 4)
    first, second = rng.exponential(size=(2, n))
    y = scale * (second + link * first)
    return rows(x=(scale * first, Bounded(0, 60)), y=(y, Bounded(0, 60)), hour=(hour, Bounded(0, 24)))


def _schools(n: int, rng: Any, link: float) -> SimulatedRows:
    """Two exams in 40 schools of very different sizes, beside an entrance mark that is a whole number."""
    school = np.minimum(rng.geometric(0.08, n) - 1, 39)
    mark = np.clip(np.rint(10 + 3 * rng.standard_normal(n)), 0, 20)
    first, second = (mark + 2 * (school % 5) + 2 * rng.standard_normal(n) for _ in range(2))
    return rows(x=(first, Bounded(-20, 60)), y=(second + link * first, Bounded(-20, 60)), mark=(mark, Bounded(0, 20)),
                school=(school, Levels(range(40))))  # fmt: skip


def _screened(n: int, rng: Any, link: float) -> SimulatedRows:
    """A rare test result and a rare illness in 12 clinics, of which one has most cases of both."""
    clinic = rng.integers(0, 12, n)
    chance = np.where(clinic == 0, 0.6, 0.01)
    x, y = (rng.random((2, n)) < chance).astype(np.int64)
    return rows(x=(x, TWO), y=(np.where(rng.random(n) < link, x, y), TWO), clinic=(clinic, Levels(range(12))))


def _spread(n: int, rng: Any, link: float) -> SimulatedRows:
    """Means along one of three numbers, noise that grows with another."""
    Z, (first, second) = rng.standard_normal((3, n)), rng.standard_normal((2, n))
    width = np.exp(Z[1] / 2)
    x, y = np.sin(2 * Z[0]) + width * first, np.cos(Z[0]) + width * (second + link * first)
    return rows(x=(x, NUMBER), y=(y, NUMBER), **numbers(Z))


def _commuters(n: int, rng: Any, link: float) -> SimulatedRows:
    """Minutes and fare by distance: on foot up to 2 km, then by train with a fare zone every 5 km."""
    km = np.minimum(np.exp(1 + 0.9 * rng.standard_normal(n)), 80)
    walked = np.where(km < 2, 12 * km, 10 + 3 * km)
    first, second = rng.gamma(4.0, 1.5, (2, n))
    y = 2 * np.ceil(km / 5) + second + link * first
    return rows(x=(walked + first, Bounded(0, 400)), y=(y, Bounded(0, 200)), km=(km, Bounded(0, 80)))


def _children(n: int, rng: Any, link: float) -> SimulatedRows:
    """Height and weight by age: two spurts, and spreads that grow."""
    age, (first, second) = rng.uniform(0, 18, n), rng.standard_normal((2, n))
    spurts = 1 / (1 + np.exp(-3 * (age - 1))) + 0.6 / (1 + np.exp(-2 * (age - 13)))
    height = 50 + 60 * spurts + 2 * age + (2 + age / 4) * first
    weight = (4 + 12 * spurts + age) * np.exp((0.05 + age / 150) * (second + link * first))
    return rows(x=(height, Bounded(30, 230)), y=(weight, Bounded(1, 150)), age=(age, Bounded(0, 18)))


def _wards(n: int, rng: Any, link: float) -> SimulatedRows:
    """Falls and calls of three wards by the hour: counts, most of them 0, with a shift change at 22 and 6."""
    hour, ward = rng.integers(0, 24, n) + 0.0, rng.choice(3, n, p=[0.7, 0.2, 0.1])
    night = (hour >= 22) | (hour < 6)
    x = rng.poisson(0.2 + 0.8 * night * (ward + 1) / 2) + 0.0
    y = rng.poisson(0.5 + 1.0 * night + 0.3 * ward + link * x) + 0.0
    return rows(x=(x, Bounded(0, 20)), y=(y, Bounded(0, 30)), hour=(hour, Bounded(0, 23)),
                ward=(ward, Levels(range(3))))  # fmt: skip


def _wages(n: int, rng: Any, link: float) -> SimulatedRows:
    """Wage and rent by schooling, in whole years, and age: a hump in age that schooling steepens, lognormal noise."""
    age, school = rng.uniform(20, 65, n), np.clip(np.rint(12 + 3 * rng.standard_normal(n)), 6, 20)
    mean = 0.06 * school + 0.15 * (school - 6) * (1 - ((age - 50) / 30) ** 2)
    first, second = rng.standard_normal((2, n))
    x, y = np.exp(mean + 0.5 * first), np.exp(mean / 2 + 0.4 * (second + link * first))
    return rows(x=(x, Bounded(0, 300)), y=(y, Bounded(0, 300)), age=(age, Bounded(20, 65)),
                school=(school, Bounded(6, 20)))  # fmt: skip


def _sensors(n: int, rng: Any, link: float) -> SimulatedRows:
    """The larger and the smaller of two of three numbers, and the size of the third; t₃ noise."""
    Z, (first, second) = rng.standard_normal((3, n)), rng.standard_t(3, (2, n))
    x, y = np.maximum(Z[0], Z[1]) + np.abs(Z[2]) + first, np.minimum(Z[0], Z[1]) - np.abs(Z[2]) + second + link * first
    return rows(x=(x, NUMBER), y=(y, NUMBER), **numbers(Z))


LATER = {
    "gamma z, noise that multiplies": _gamma, "weekdays and a temperature": _seasons,
    "logistic curve, t₃ noise": one(*[lambda z: 3 / (1 + np.exp(-4 * z))] * 2, lambda rng, n: rng.standard_t(3, n)),
    "checkerboard of two numbers": several(2, lambda Z: 2.0 * ((Z[0] > 0) != (Z[1] > 0))),
    "two jumps and a slope in d = 4": several(4, lambda Z: _step(Z[0]) + _step(Z[1] - 0.5) + Z[2]),
    "doses of five sizes, a floor": _doses, "waiting times of two peaks": _queue,
    "40 schools and a whole mark": _schools, "rare in 11 of 12 clinics": _screened,
    "spread along one of three numbers": _spread, "minutes and fares by distance": _commuters,
    "height and weight by age": _children, "falls and calls by hour and ward": _wards,
    "wage and rent by age and schooling": _wages, "larger, smaller and size of three": _sensors,
    WEAK: several(5, lambda Z: np.exp(-2 * Z[0] ** 2) * np.sin(2 * Z[0]), -1.0),
}  # fmt: skip
SLOW = (
    "XOR of numbers", "z₀z₁ in d = 5", "additive in d = 5", "step in d = 3", "treatment by a product of scores",
    "wave along z₀ + z₁", "checkerboard of two numbers", "two jumps and a slope in d = 4",
    "40 schools and a whole mark", "spread along one of three numbers", "wage and rent by age and schooling",
    "larger, smaller and size of three", WEAK,
)  # fmt: skip
"""They need blocks."""


DESIGNS = register(SHAPES, "shapes") | register(LATER, "shapes, later", "2026-11-22")
for place, (nulls, links, day) in enumerate(unseen.SETS + practice.SETS, start=1):
    DESIGNS |= register(nulls, f"unseen {place}", day) | register(links, f"unseen {place}, linked", day)
BLOCKS = {*SLOW, *unseen.BLOCKS, *(name for nulls, links, _ in practice.SETS for name in (*nulls, *links))}
"""Designs that are tested in blocks, whose terms make the distribution of the sum: fewer tables suffice."""


def sign_changing(effect: float) -> Any:
    """A design in which y = effect x sign(z) + noise: the covariance cancels."""

    def draw(n: int, seed: int) -> SimulatedRows:
        rng = np.random.default_rng(seed)
        z, x = np.clip(2 * rng.standard_normal(n), -8, 8), rng.standard_normal(n)
        y = effect * x * np.sign(z) + rng.standard_normal(n)
        return rows(x=(x, Bounded(-3, 3)), y=(y, Bounded(-3, 3)), z1=(z, Bounded(-8, 8)))

    return draw


def agreeing(strata: int, rare: bool, share: float) -> Any:
    """A design of two levels in strata, in which y copies x in a share of the rows, everywhere."""

    def draw(n: int, seed: int) -> SimulatedRows:
        rng = np.random.default_rng(seed)
        s = rng.integers(0, strata, n)
        rate = 0.05 + 0.03 * (s % 3) if rare else 0.3 + 0.4 * s / max(1, strata - 1)
        x, y = (rng.random((2, n)) < rate).astype(np.int64)
        y = np.where(rng.random(n) < share, x, y)
        return rows(x=(x, TWO), y=(y, TWO), **({"s": (s, Levels(range(strata)))} if strata > 1 else {}))

    return draw
