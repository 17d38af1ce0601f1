"""Pairs of columns as they come in practice, named after the defaults of the verdict were set: none was tuned on.

Of each: whether x causes y, and a draw of n rows.
"""

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]
Columns = tuple[Column, Column]
Rng = np.random.Generator


def saturating(n: int, rng: Rng) -> Columns:
    dose = rng.gamma(2.0, 1.0, n)
    return dose, dose / (dose + rng.uniform(0.5, 2)) + rng.uniform(0.05, 0.15) * rng.normal(size=n)


def seasonal(n: int, rng: Rng) -> Columns:
    day = rng.uniform(0, 1, n)
    return day, np.sin(2 * np.pi * (day + rng.uniform())) + rng.uniform(0.3, 0.8) * rng.laplace(size=n)


def rounded_age(n: int, rng: Rng) -> Columns:
    age = np.round(rng.uniform(20, 80, n))
    return age, np.round(100 + 0.008 * (age - 20) ** 2 + rng.uniform(4, 8) * rng.normal(size=n))


def selected(n: int, rng: Rng) -> Columns:
    x, y = rng.normal(size=(2, 8 * n))
    taken = np.flatnonzero(x + y + 0.5 * rng.normal(size=8 * n) > rng.uniform(0.5, 1.2))[:n]
    return x[taken], y[taken]


def feedback(n: int, rng: Rng) -> Columns:
    e, u, a, b = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n), rng.uniform(0.4, 0.9), rng.uniform(0.4, 0.9)
    return (e + b * u) / (1 - a * b), (u + a * e) / (1 - a * b)


def battery(n: int, rng: Rng) -> Columns:
    time = rng.uniform(0, 1, n)
    knee = rng.uniform(4, 10)
    return time, 4.2 - 0.8 * time - 0.5 * np.exp(knee * (time - 1)) + rng.uniform(0.02, 0.08) * rng.normal(size=n)


def traffic(n: int, rng: Rng) -> Columns:
    density = rng.beta(2, 3, n)
    return density, 4 * density * (1 - density) + rng.uniform(0.05, 0.2) * rng.normal(size=n)


def practice(n: int, rng: Rng) -> Columns:
    trial = rng.integers(1, 101, n).astype(float)
    return trial, 300 + 200 * np.exp(-trial / rng.uniform(10, 40)) + rng.gamma(4, rng.uniform(5, 15), n)


def instruments(n: int, rng: Rng) -> Columns:
    truth = rng.gamma(3.0, 1.0, n)
    return truth + 0.4 * rng.normal(size=n), np.sqrt(truth) + rng.uniform(0.1, 0.3) * rng.normal(size=n)


def heights(n: int, rng: Rng) -> Columns:
    parent = rng.normal(170, 7, n)
    return np.round(parent), np.round(85 + 0.5 * parent + rng.uniform(4, 6) * rng.normal(size=n))


def bathtub(n: int, rng: Rng) -> Columns:
    age = rng.uniform(0, 10, n)
    return age, 0.1 * (age - rng.uniform(4, 6)) ** 2 + rng.gamma(2, rng.uniform(0.1, 0.3), n)


def discount(n: int, rng: Rng) -> Columns:
    price = rng.lognormal(0, 0.5, n)
    return price, 5 - rng.uniform(1, 2) * np.log(price) + rng.uniform(0.2, 0.5) * rng.normal(size=n)


def altitude(n: int, rng: Rng) -> Columns:
    metres = rng.gamma(2.0, 300.0, n)
    return metres, 15 - 0.0065 * metres + rng.uniform(0.5, 2) * rng.laplace(size=n)


def weather(n: int, rng: Rng) -> Columns:
    heat = rng.normal(size=n)
    return np.exp(0.5 * heat) + 0.3 * rng.normal(size=n), heat**2 + rng.uniform(0.3, 1) * rng.normal(size=n)


def trends(n: int, rng: Rng) -> Columns:
    time = rng.uniform(0, 1, n)
    return time + 0.2 * rng.normal(size=n), np.sin(rng.uniform(2, 5) * time) + 0.2 * rng.normal(size=n)


def opposed(n: int, rng: Rng) -> Columns:
    x = rng.gamma(2.0, 1.0, n)
    return x, np.sqrt(x) * rng.uniform(0.8, 1.5) - rng.gamma(2.0, rng.uniform(0.1, 0.2), n)


def commute(n: int, rng: Rng) -> Columns:
    km = rng.gamma(1.5, 6.0, n)
    return km, 8 + 2 * km**0.8 + rng.gamma(3.0, rng.uniform(1, 3), n)


def shares(n: int, rng: Rng) -> Columns:
    total, part = rng.lognormal(0, 0.4, n), rng.beta(4, 4, n)
    return total * part, total * (1 - part)


def hidden_spread(n: int, rng: Rng) -> Columns:
    spread = np.exp(0.5 * rng.normal(size=n))
    return spread * rng.normal(size=n), spread * np.abs(rng.normal(size=n)) + 0.2 * rng.normal(size=n)


def outdoors(n: int, rng: Rng) -> Columns:
    degrees = rng.normal(8, 8, n)
    heating = np.log1p(np.exp((18 - degrees) / 3)) + rng.uniform(0.3, 0.8) * rng.normal(size=n)
    return heating, 20 + 0.1 * degrees + 0.002 * degrees**2 + rng.uniform(0.3, 0.8) * rng.normal(size=n)


def ferment(n: int, rng: Rng) -> Columns:
    hours = rng.uniform(0, 10, n)
    return hours, 12 * np.exp(-hours / rng.uniform(2, 6)) + rng.uniform(0.3, 1) * rng.normal(size=n)


def spring(n: int, rng: Rng) -> Columns:
    load = rng.lognormal(0, 0.6, n)
    return load, 5 + 2 * load**0.7 + rng.uniform(0.2, 0.6) * rng.laplace(size=n)


def raters(n: int, rng: Rng) -> Columns:
    skill = rng.gamma(4.0, 1.0, n)
    one, other = rng.uniform(0.5, 1, (2, 1)) * rng.normal(size=(2, n))
    return skill + one, 3 * np.log(skill) + other


def volatility(n: int, rng: Rng) -> Columns:
    spread = np.exp(0.6 * rng.normal(size=n))
    return spread * rng.normal(size=n), np.log(spread) + rng.uniform(0.2, 0.5) * rng.normal(size=n)


def siblings(n: int, rng: Rng) -> Columns:
    family = rng.lognormal(0, 0.5, n)
    one, other = rng.lognormal(0, rng.uniform(0.2, 0.5), (2, n))
    return family * one, family * other


def dose(n: int, rng: Rng) -> Columns:
    hours, marks = rng.gamma(2.0, 5.5, n), np.array([1, 2, 4, 8, 12, 24.0])
    nearest = marks[np.abs(hours[:, None] - marks).argmin(1)]
    answer = np.clip(np.where(rng.random(n) < 0.5, nearest, np.round(hours * 2) / 2), 0.5, 48)
    return answer, np.clip(np.round(90 * np.exp(-answer / 9) + 6 * rng.standard_normal(n), 1), 2, 140)


def gauge(n: int, rng: Rng) -> Columns:
    rain = np.clip(np.where(rng.random(n) < 0.3, rng.exponential(0.4, n), rng.gamma(1.6, 8.0, n)), 0, 120)
    level = 60 + 95 * (1 - np.exp(-rain / 22)) + rng.gamma(2.0, 9.0, n)
    return np.round(rain, 1), np.clip(np.round(level), 0, 400)


def bars(n: int, rng: Rng) -> Columns:
    size = np.exp(rng.normal(1.6, 0.8, n))
    one = rng.poisson(size * rng.gamma(6, 1 / 6, n))
    other = rng.poisson(0.5 + 0.9 * size**0.8 * rng.gamma(6, 1 / 6, n))
    return np.clip(one, 0, 150).astype(float), np.clip(other, 0, 100).astype(float)


def rounded_answers(n: int, rng: Rng) -> Columns:
    weight, way = rng.normal(78, 15, n), rng.lognormal(3.1, 0.6, n)
    answer = np.where(rng.random(n) < 0.7, 5 * np.round(weight / 5), np.round(weight))
    quarters, fives = 15 * np.maximum(np.round(way / 15), 1), 5 * np.round(way / 5)
    minutes = np.where(way < 10, np.round(way), np.where(rng.random(n) < 0.6, quarters, fives))
    return np.clip(answer, 35, 180), np.clip(minutes, 0, 180)


def tenure(n: int, rng: Rng) -> Columns:
    years = np.clip(np.floor(2 * rng.gamma(1.1, 8.0, n)) / 2, 0, 45)
    wage = 13 + 17 * (1 - np.exp(-years / 7)) + 4.5 * rng.standard_t(6, n)
    return years, np.clip(np.round(wage, 2), 12.41, 42)


FRESH = {
    "saturating dose": (True, saturating), "seasonal": (True, seasonal), "rounded age": (True, rounded_age),
    "selected on both": (False, selected), "feedback": (False, feedback),
    "battery": (True, battery), "traffic": (True, traffic), "practice": (True, practice),
    "two instruments": (False, instruments), "parent and child": (False, heights),
    "bathtub": (True, bathtub), "discount": (True, discount), "altitude": (True, altitude),
    "weather": (False, weather), "trends": (False, trends),
    "opposed skew": (True, opposed), "commute": (True, commute), "shares of one total": (False, shares),
    "hidden spread": (False, hidden_spread), "outdoors": (False, outdoors),
    "ferment": (True, ferment), "spring": (True, spring), "raters": (False, raters),
    "volatility": (False, volatility), "siblings": (False, siblings),
    "hours since dose": (True, dose), "gauge and rain": (True, gauge), "bars and churches": (False, bars),
    "two rounded answers": (False, rounded_answers), "tenure and wage": (True, tenure),
}  # fmt: skip
