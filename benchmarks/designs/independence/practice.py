"""Three to six numbers as they come in practice, named by somebody who had read nothing of how tests are chosen."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpcausal.data.schema import Bounded, Levels, Schema
from dpcausal.simulate import SimulatedRows

Reals = Any


def sig(t: Reals) -> Reals:
    return 1 / (1 + np.exp(-t))


NULLS, LINKS = dict[str, Any](), dict[str, Any]()
SETS = [(NULLS, LINKS, "2026-11-24")]


def named(designs: dict[str, Any], title: str, *declared: Any) -> Any:
    """Adds x, y and z that a function draws, each column's levels or bounds declared; a link is the function's own."""

    def of(drawn: Callable[[Any, int], tuple[Reals, Reals, Reals]]) -> Any:
        def draw(n: int, rng: Any, link: float) -> SimulatedRows:
            x, y, z = drawn(rng, n)
            names = ["x", "y", *(f"z{place}" for place in range(len(declared) - 2))]
            kinds = [one if isinstance(one, Levels) else Bounded(*one) for one in declared]
            columns = {name: one.astype(np.int64) if isinstance(kind, Levels) else one
                       for name, kind, one in zip(names, kinds, (x, y, *z.reshape(n, -1).T), strict=True)}  # fmt: skip
            return SimulatedRows(columns, Schema(dict(zip(names, kinds, strict=True))), names[2:], 0)

        designs[title] = draw
        return drawn

    return of


@named(NULLS, "trips and noise by day, hour, weekday", (0, 400), (30, 90), (1, 365), (0, 23), (0, 1))
def _day_and_hour(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Hired bicycles and street noise at a river bridge, given day of the year, hour, and whether people work."""
    hour = rng.choice(24, n, p=np.repeat([0.02, 0.05, 0.06, 0.03], [6, 6, 8, 4]) / 1.02)
    z = np.column_stack([rng.integers(1, 366, n), hour, rng.random(n) < 0.68]).astype(float)
    day, hour, works = z.T
    season = 0.35 + 0.65 * (0.5 - 0.5 * np.cos(2 * np.pi * (day - 15) / 365))
    rush = np.exp(-(((hour - 8) / 1.2) ** 2)) + np.exp(-(((hour - 17.3) / 1.5) ** 2))
    stroll = np.exp(-(((hour - 14.5) / 4) ** 2))
    sunset = 18.3 + 2.7 * np.cos(2 * np.pi * (day - 172) / 365)
    light = (hour > 25 - sunset) & (hour < sunset)
    mean = 4 + season * (works * 75 * rush + (1 - works) * 50 * stroll + 12 * light)
    x = np.clip(rng.poisson(mean * rng.gamma(2.5, 1 / 2.5, n)), 0, 400).astype(float)
    loud = 50 + works * 8 * rush + (1 - works) * 4 * stroll * season + 2.5 * light * season - 4 * (hour < 5)
    y = np.clip(np.round(loud + 2.6 * rng.standard_t(6, n), 1), 30, 90)
    return x, y, z


@named(NULLS, "oxygen and plankton across a moving thermocline", (0, 16), (0, 250), (0, 30), (120, 300), (0.5, 10))
def _thermocline(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Oxygen and plankton in a bottle of lake water, given depth, day and transparency: both drop at a moving sheet."""
    depth = rng.gamma(1.6, 5.5, n)
    depth = np.clip(np.where(rng.random(n) < 0.6, np.round(depth), np.round(4 * depth) / 4), 0, 30)
    clear = np.clip(np.round(rng.lognormal(1.1, 0.45, n), 1), 0.5, 10)
    z = np.column_stack([depth, np.round(rng.uniform(120, 300, n)), clear])
    depth, day, clear = z.T
    sheet = 4 + 9 * ((day - 120) / 180) ** 1.5 + 0.9 * clear
    below = depth > sheet
    age = (day - 120) / 180
    x = 9.8 - 0.05 * depth - below * (2.2 + 2.6 * age) + (1.2 + 0.6 * below) * rng.standard_normal(n)
    mean = np.where(below, 9.0, 30 + 14 * np.sin(np.pi * age)) * np.exp(-0.03 * depth) * (1.15 - 0.05 * clear)
    y = rng.poisson(mean * rng.gamma(3, 1 / 3, n))
    return np.clip(x, 0, 16), np.clip(y, 0, 250).astype(float), z


@named(NULLS, "spread and late payment by debt over assets", (0, 15), (0, 150), (0, 300), (0.4, 300), (1, 1500))
def _leverage(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Loan spread and days of late payment of a firm, given debt, assets and staff: both turn on debt over assets."""
    assets = np.clip(np.round(rng.lognormal(1.9, 1.1, n), 1), 0.4, 300)
    debt = assets * rng.beta(1.7, 1.9, n)
    debt = np.where((debt > 2) & (rng.random(n) < 0.5), np.round(2 * debt) / 2, np.round(debt, 2))
    staff = np.clip(np.ceil(3 * assets**0.75 * rng.lognormal(0, 0.6, n)), 1, 1500)
    z = np.column_stack([np.clip(debt, 0, 300), assets, staff])
    debt, assets, staff = z.T
    share = debt / assets
    rich = np.log(assets / staff)
    x = 1.0 + 3.2 * sig((share - 0.6) / 0.07) - 0.35 * rich + rng.gamma(2.0, 0.75, n)
    mean = np.exp(2.3 + 0.9 * sig((share - 0.58) / 0.08) + 0.1 * np.log(staff) - 0.1 * rich)
    y = np.round(rng.gamma(2.5, mean / 2.5))
    return np.clip(x, 0, 15), np.clip(y, 0, 150), z


@named(NULLS, "placed and hours by the best of three exams", Levels(range(2)), (0, 40), (0, 100), (0, 100), (0, 100))
def _best_of_three(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Placed in the honours stream, and weekly hours of study, given three exam scores of which the best decides."""
    shared = rng.standard_normal((n, 1))
    raw = np.array([61.0, 66, 58]) + np.array([15.0, 11, 14]) * (0.75 * shared + 0.66 * rng.standard_normal((n, 3)))
    raw = np.where(rng.random((n, 3)) < 0.3, 5 * np.round(raw / 5), np.round(raw))
    z = np.clip(raw, 0, 100)
    best = z.max(1)
    x = (rng.random(n) < 0.04 + 0.88 * sig((best - 77) / 3.5)).astype(float)
    mean = 5 + 6 * sig((best - 76) / 4) + 0.03 * (z.mean(1) - 60)
    y = np.clip(np.round(rng.gamma(5, mean / 5)), 0, 40)
    return x, y, z


@named(NULLS, "repairs and speeding by mileage in town", (0, 20), (0, 80), (18, 90), (0.1, 150), (35, 400), (0, 1))
def _mileage_in_town(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Repairs and recorded speeding of a motorist, given age, mileage with a tail, engine power, and living in town."""
    age = np.clip(np.round(18 + 65 * rng.beta(1.6, 2.1, n)), 18, 90)
    town = rng.random(n) < 0.45
    miles = np.exp(2.3 - 0.3 * town + 0.45 * rng.standard_t(4, n))
    miles = np.clip(np.where(rng.random(n) < 0.6, 5 * np.ceil(miles / 5), np.round(miles, 1)), 0.1, 150)
    power = np.clip(np.round(rng.lognormal(4.45 + 0.004 * (age - 45), 0.35, n)), 35, 400)
    z = np.column_stack([age, miles, power, town])
    age, miles, power, town = z.T
    wear = miles * (0.03 + 0.07 * town)
    young = np.exp(-(age - 18) / 9)
    x = 1 + 1.6 * np.log1p(wear * 2) + 1.2 * young * power / 90 + rng.gamma(1.5, 0.8, n) - 0.3
    mean = 1.5 + 0.1 * miles * (0.5 + town) + 6 * young * np.minimum(power / 90, 2.5)
    y = rng.poisson(mean * rng.gamma(1.5, 1 / 1.5, n))
    return np.clip(x, 0, 20), np.clip(y, 0, 80).astype(float), z


@named(NULLS, "yield and nitrate by soil, water, nitrogen", (0, 18), (0, 150), Levels(range(4)), (0, 400), (60, 1000),
        (0, 300), (0, 25))  # fmt: skip
def _field_nitrate(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Wheat yield and nitrate below the field, given soil, irrigation (half have none), rain, nitrogen and slope."""
    soil = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    pipe = np.where(rng.random(n) < 0.5, 0, np.clip(10 * np.ceil(rng.gamma(2.5, 5, n)), 10, 400))
    rain = np.clip(np.round(rng.gamma(7, 50, n)), 60, 1000)
    feed = np.clip(20 * np.round((95 + 0.12 * pipe + 45 * rng.standard_normal(n)) / 20), 0, 300)
    slope = np.clip(np.round(rng.exponential(4, n), 1), 0, 25)
    z = np.column_stack([soil, pipe, rain, feed, slope]).astype(float)
    soil, pipe, rain, feed, slope = z.T
    water = 0.8 * pipe + rain * (1 - 0.015 * slope)
    holds = np.array([420.0, 340, 260, 500])[soil.astype(int)]
    grown = 1.5 + 11 * (1 - np.exp(-feed / 90)) * water / (water + 220) * (0.8 + 0.4 * holds / 500)
    x = grown + (0.4 + 0.12 * grown) * rng.standard_normal(n)
    mean = 4 + 0.22 * np.maximum(feed - 40, 0) * sig((water - holds) / 50)
    y = rng.gamma(2.5, mean / 2.5)
    return np.clip(x, 0, 18), np.clip(np.round(y, 1), 0, 150), z


@named(NULLS, "marathon time and injury by six habits", (120, 480), (0, 90), (18, 80), (0, 50), (5, 180), (5, 50),
        (35, 95), (16, 38))  # fmt: skip
def _marathon(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Marathon minutes and days lost to injury, given age, years of running, two distances, pulse and body mass."""
    fit, old = rng.standard_normal(n), rng.standard_normal(n)
    age = np.clip(np.round(41 + 11 * old), 18, 80)
    years = np.clip(np.round(np.exp(1.6 + 0.35 * old + 0.35 * fit + 0.6 * rng.standard_normal(n))), 0, 50)
    week = np.clip(5 * np.round(np.exp(3.75 + 0.4 * fit + 0.15 * rng.standard_normal(n)) / 5), 5, 180)
    longest = np.clip(np.round(12 + 0.3 * week + 3 * rng.standard_normal(n)), 5, 50)
    pulse = np.clip(np.round(58 - 5 * fit + 3.5 * rng.standard_normal(n)), 35, 95)
    mass = np.clip(np.round(23.3 - 1.3 * fit + 0.4 * old + 1.6 * rng.standard_normal(n), 1), 16, 38)
    z = np.column_stack([age, years, week, longest, pulse, mass])
    age, years, week, longest, pulse, mass = z.T
    mean = 305 - 75 * (1 - np.exp(-week / 45)) - 12 * np.log1p(years) / 2 + 0.04 * np.maximum(age - 35, 0) ** 2
    mean = mean + 0.9 * (pulse - 58) + 3 * (mass - 23) - 0.5 * np.minimum(longest, 32)
    x = mean - 22 + rng.gamma(2, 11, n)
    rate = np.exp(1.5 + 0.03 * np.maximum(week - 50, 0) - 0.018 * (week - 45) + 0.018 * (age - 41) + 0.08 * (mass - 23))
    lost = np.where(rng.random(n) < 0.3, 0, rng.poisson(rate * (1 + 0.25 * (years < 3)) * rng.gamma(1.5, 1 / 1.5, n)))
    return np.clip(np.round(x, 1), 120, 480), np.clip(lost, 0, 90).astype(float), z


@named(LINKS, "a dose by clearance lowers platelets", (5, 150), (10, 600), (18, 100), (35, 180), (0.3, 12), (1.2, 5.5))
def _dose_by_clearance(rng: Any, n: int, link: float = 1.0) -> tuple[Reals, Reals, Reals]:
    """A dose in steps of 5 mg lowers platelets a little, given age, weight, creatinine and albumin, which set it."""
    age = np.clip(np.round(np.where(rng.random(n) < 0.3, rng.normal(45, 11, n), rng.normal(71, 9, n))), 18, 100)
    weight = np.clip(np.round(rng.normal(86, 16, n) - 0.2 * age, 0), 35, 180)
    creatinine = np.clip(np.round(rng.lognormal(-0.35 + 0.008 * age, 0.38, n), 2), 0.3, 12)
    albumin = np.clip(np.round(4.3 - 0.008 * age - rng.gamma(1.2, 0.3, n), 1), 1.2, 5.5)
    z = np.column_stack([age, weight, creatinine, albumin])
    age, weight, creatinine, albumin = z.T
    clearance = (140 - age) * weight / (72 * creatinine)
    usual = 25 + 65 * clearance / (clearance + 60) + 6 * (albumin - 3.5)
    x = np.clip(5 * np.round((usual + 11 * rng.standard_normal(n)) / 5), 5, 150)
    platelets = 180 + 110 * clearance / (clearance + 50) + 22 * (albumin - 3.5) - 0.5 * link * (x - 60)
    y = np.clip(np.round(platelets + 20 * (rng.gamma(4, 1, n) - 4)), 10, 600)
    return x, y, z


@named(LINKS, "speed and braking, in rain only", (10, 160), (0, 50), (20, 3000), (0, 0.7), (80, 120), (0, 1), (-50, 62))
def _rain_only(rng: Any, n: int, link: float = 1.0) -> tuple[Reals, Reals, Reals]:
    """Speed raises hard braking on wet roads only, given flow, share of lorries, limit, rain and sun's height."""
    sun = np.round(np.clip(rng.normal(12, 28, n), -50, 62))
    flow = np.clip(np.round(rng.gamma(3.0, 330, n) * (0.55 + 0.6 * (sun > -6)) / 10) * 10, 20, 3000)
    lorries = np.clip(np.round(rng.beta(1.6, 8, n) + 0.1 * (sun < -10), 2), 0, 0.7)
    limit = rng.choice([80.0, 100, 120], n, p=[0.3, 0.45, 0.25])
    z = np.column_stack([flow, lorries, limit, rng.random(n) < 0.3, sun]).astype(float)
    flow, lorries, limit, rain, sun = z.T
    full = 1900 - 1500 * lorries - 200 * rain
    usual = 18 + 0.72 * limit - 14 * lorries - 6 * rain - 0.004 * flow - 24 * (flow > full)
    x = usual + 8.5 * rng.standard_normal(n)
    events = np.exp(0.75 + 0.35 * flow / 1000 + 0.45 * (flow > full) + 0.3 * rain - 0.15 * (sun > 0))
    events = events * np.exp(0.032 * link * rain * np.clip(x - 80, -30, 30))
    y = rng.poisson(events * rng.gamma(4, 1 / 4, n))
    return np.clip(np.round(x), 10, 160), np.clip(y, 0, 50).astype(float), z
