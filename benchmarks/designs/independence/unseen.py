"""Columns as they come in practice, named by somebody who had not seen how defaults are chosen, in three sets.

The third was named after defaults had been changed in view of the earlier ones.
"""

from typing import Any

import numpy as np

from benchmarks.designs.independence.practice import named, sig
from dpcausal.data.schema import Levels

Reals = Any
FIRST_NULLS, FIRST_LINKS, SECOND_NULLS, SECOND_LINKS, THIRD_NULLS = (dict[str, Any]() for _ in range(5))
SETS = [(FIRST_NULLS, FIRST_LINKS, "2026-11-23"), (SECOND_NULLS, SECOND_LINKS, "2026-11-23"),
        (THIRD_NULLS, {}, "2026-11-23")]  # fmt: skip
BLOCKS = ("dust and prices on a map of six cities", "two opinions by region and age band")


@named(FIRST_NULLS, "stay and scans on a two-humped ward", (0, 30), (1, 60), (18, 99))
def _ward_stay(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Length of stay, heaped at whole weeks, and the number of scans ordered, given age on a two-humped ward."""
    z = np.round(np.clip(np.where(rng.random(n) < 0.35, rng.normal(31, 6, n), rng.normal(73, 9, n)), 18, 99), 1)
    mean = 2 + 0.002 * (z - 18) ** 2
    stay = np.ceil(rng.gamma(1.6, mean / 1.6))
    heap = (rng.random(n) < 0.15 + 0.35 * sig((z - 60) / 5)) & (stay >= 5)
    y = np.clip(np.where(heap, 7 * np.round(stay / 7), stay), 1, 60)
    none = rng.random(n) < sig(1.2 - 0.03 * z)
    x = np.clip(np.where(none, 0, rng.poisson(rng.gamma(1.5, (0.5 + 0.03 * z) / 1.5))), 0, 30)
    return x.astype(float), y.astype(float), z


@named(FIRST_NULLS, "log wage and massed hours by experience", (1.6, 3.9), (4, 80), (0, 45))
def _wage_floor(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Log wage, massed at the minimum and a top code, and weekly hours, massed at 40, given years of experience."""
    z = np.clip(np.round(2 * 45 * rng.beta(1.1, 2.2, n)) / 2, 0, 45)
    lw = 2.45 + 0.055 * z - 0.0009 * z**2 + 0.4 * rng.standard_normal(n)
    x = np.clip(np.where((lw < 2.518) & (rng.random(n) < 0.12), lw, np.maximum(lw, 2.518)), 1.6, 3.9)
    part = sig(0.9 - 0.25 * z) + 0.25 * sig((z - 38) / 2)
    u, v = rng.random(n), rng.standard_normal(n)
    full = np.where(rng.random(n) < 0.65, 40, np.round(43 + 5 * np.abs(v)))
    y = np.where(u < part, np.round(4 * (20 + 6 * v) / 4), full)
    return x, np.clip(y, 4, 80).astype(float), z


@named(FIRST_NULLS, "two sensors, one reset five times", (-20, 140), (350, 550), (0, 365))
def _recalibrated_sensors(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Two field sensors given the day: one drifts and is reset at five visits, the other drifts on."""
    z = rng.uniform(0, 365, n)
    visits = np.sort(rng.uniform(30, 350, 5))
    last = np.concatenate([[0.0], visits])[np.searchsorted(visits, z)]
    x = 40 + 12 * np.sin(2 * np.pi * (z - 100) / 365) + 0.12 * (z - last) + 4 * rng.standard_t(5, n)
    heating = np.exp(-(((z - 20) / 40) ** 2)) + np.exp(-(((z - 350) / 40) ** 2))
    y = 410 + 0.06 * z + 25 * heating + (3 + 5 * heating) * rng.standard_normal(n)
    return np.clip(x, -20, 140), np.clip(y, 350, 550), z


@named(FIRST_NULLS, "two genes on twelve plates", (-5, 25), (-5, 25), Levels(range(12)), (4, 13))
def _assay_plates(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Two gene expressions on twelve plates of uneven size, each with its shift, gain and noise, given also a count."""
    size = rng.dirichlet(np.full(12, 2.0))
    size = 0.02 + 0.76 * size
    plate = rng.choice(12, n, p=size / size.sum())
    cells = rng.normal(8, 0.7, n) + 0.3 * (plate % 4)
    a, b, s = rng.normal(0, 1.0, (2, 12)), rng.uniform(0.3, 1.2, (2, 12)), rng.uniform(0.3, 1.0, (2, 12))
    x = a[0, plate] + b[0, plate] * cells + s[0, plate] * rng.standard_normal(n)
    y = a[1, plate] + b[1, plate] * cells + s[1, plate] * (rng.gamma(2.0, 0.7, n) - 1.4)
    return np.clip(x, -5, 25), np.clip(y, -5, 25), np.column_stack([plate.astype(float), np.clip(cells, 4, 13)])


@named(FIRST_NULLS, "cough and lung function by pack-years", (0, 30), (15, 140), (0, 120))
def _never_smokers(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Days with cough and lung function given pack-years, of which more than half of the people have none at all."""
    z = np.where(rng.random(n) < 0.55, 0, np.clip(np.ceil(rng.gamma(1.3, 14, n)), 1, 120)).astype(float)
    p = sig(-2.5 + 0.06 * z)
    none = rng.random(n) < 0.5 - 0.003 * np.minimum(z, 100)
    x = np.where(none, 0, rng.binomial(30, np.clip(p * rng.gamma(4, 0.25, n), 0, 1)))
    y = np.clip(np.round(101 - 0.5 * z + 0.0015 * z**2 - rng.gamma(2.0, 6.0, n) + 12), 15, 140)
    return x.astype(float), y.astype(float), z


@named(FIRST_LINKS, "a link in one of four workers", (0, 12), (70, 200), (18, 67))
def _night_shift_some(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Coffee raises blood pressure in one worker of four only, given age: a mixture of populations."""
    z = np.round(np.clip(rng.normal(44, 11, n), 18, 67))
    x = np.clip(rng.poisson(1.2 + 0.03 * z), 0, 12).astype(float)
    y = np.round(100 + 0.5 * z + 4.5 * (x - 2.5) * (rng.random(n) < 0.25) + 8 * rng.standard_normal(n))
    return x, np.clip(y, 70, 200), z


@named(FIRST_LINKS, "a link beyond 48 hours only", (20, 80), (0, 40), (0, 45))
def _overtime_threshold(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Hours matter for errors only beyond 48 a week, given years in the job: nothing happens in most of the range."""
    z = np.clip(rng.gamma(1.5, 6, n), 0, 45)
    x = np.clip(np.round(42 - 0.1 * z + rng.gamma(2, 4, n) - 5), 20, 80)
    y = np.clip(rng.poisson(np.exp(0.7 - 0.03 * z) + 0.28 * np.maximum(x - 48, 0)), 0, 40).astype(float)
    return x, y, z


@named(SECOND_NULLS, "rate and approval by score, with cutoffs", (2, 20), Levels(range(2)), (300, 850))
def _credit_cutoffs(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Interest rate in eighths and approval given a credit score, both with jumps at lenders' cut-offs."""
    z = np.round(300 + 550 * rng.beta(5, 2.6, n))
    rate = 14 - 0.008 * (z - 300) - 1.5 * (z >= 620) - 0.8 * (z >= 680) - 0.6 * (z >= 740)
    rate = rate + 0.5 * rng.standard_normal(n)
    p = sig(-2.2 + 0.006 * (z - 500) + 1.4 * (z >= 640) + 0.7 * (z >= 700))
    return np.clip(np.round(rate * 8) / 8, 2, 20), (rng.random(n) < p).astype(float), z


_CITY = np.array([[10, 12], [32, 40], [70, 20], [55, 62], [85, 85], [18, 78.0]])


@named(SECOND_NULLS, "dust and prices on a map of six cities", (0, 80), (9, 16), (0, 100), (0, 100))
def _city_map(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Dust and house prices given where a house stands: six dense cities of different size and thin countryside."""
    c = rng.choice(7, n, p=[0.3, 0.2, 0.12, 0.1, 0.08, 0.05, 0.15])
    town = _CITY[np.minimum(c, 5)] + rng.normal(0, 2.0, (n, 2)) * np.array([3.0, 2, 1.5, 1.5, 1, 1, 1])[c][:, None]
    z = np.clip(np.where((c < 6)[:, None], town, rng.uniform(0, 100, (n, 2))), 0, 100)

    def bump(at: Any, w: float) -> Reals:
        return np.exp(-((z - np.array(at)) ** 2).sum(1) / (2 * w**2))

    dust = 14 + 12 * bump((14, 15), 10) + 9 * bump((68, 24), 8) + 6 * bump((35, 36), 14) + 0.05 * z[:, 1]
    price = 11.5 + 1.1 * bump((10, 12), 9) + 0.8 * bump((33, 42), 9) + 0.5 * bump((85, 85), 6) - 0.004 * z[:, 0]
    x = dust + rng.gamma(4, 1.2, n)
    return np.clip(x, 0, 80), np.clip(price + 0.35 * rng.standard_normal(n), 9, 16), z


@named(SECOND_NULLS, "two biomarkers at the ends of their scales", (-1, 6), (0, 12), (5, 125))
def _detection_limit(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Two biomarkers given kidney function: one below its limit in half of the people, one beyond its scale."""
    z = np.round(np.clip(125 - rng.gamma(2.2, 17, n), 5, 125))
    lx = 0.2 + 0.018 * (70 - z) + 0.7 * rng.standard_normal(n)
    x = np.where(lx < 0, 0.0, lx) - np.where(lx < 0, np.log(np.sqrt(2)), 0)
    y = np.minimum(np.round(2 + 220 / (z + 10) + (0.5 + 8 / (z + 10)) * rng.standard_t(4, n), 1), 12.0)
    return np.clip(x, -1, 6), np.clip(y, 0, 12), z


@named(SECOND_NULLS, "two opinions by region and age band", Levels(range(5)), Levels(range(5)), Levels(range(9)),
        Levels(range(6)))  # fmt: skip
def _agree_scales(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Two five-point opinions given region (nine) and age band (six), each with its own pattern over both."""
    w = np.array([22, 18, 15, 12, 10, 9, 7, 4, 3.0])
    region = rng.choice(9, n, p=w / w.sum())
    band = np.clip(rng.binomial(5, 0.25 + 0.05 * region), 0, 5)
    out = []
    for tilt in (0.3, -0.4):
        shift = tilt + 0.3 * rng.standard_normal((9, 1)) + 0.2 * np.arange(6) * np.sign(tilt)
        shift = shift + 0.35 * rng.standard_normal((9, 6))
        wide = rng.uniform(0.8, 1.5, (9, 6))
        t = shift[region, band] + wide[region, band] * rng.logistic(0, 0.6, n)
        out.append(np.digitize(t, [-1.5, -0.5, 0.4, 1.3]).astype(float))
    return out[0], out[1], np.column_stack([region, band]).astype(float)


@named(SECOND_NULLS, "calls and visitors on days with spikes", (0, 80), (0, 150), (1, 730))
def _holiday_calls(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Emergency calls with spikes at New Year and a fair, and visitors, mostly none, given the day of two years."""
    z = rng.integers(1, 731, n).astype(float)
    d = (z - 1) % 365
    feast = 14 * ((d < 1.5) | (d > 363.5))
    calls = 9 + 2 * np.cos(2 * np.pi * d / 365) + feast + 7 * (np.abs(d - 265) < 5) + 2 * (z > 430)
    x = np.clip(rng.poisson(calls * rng.gamma(12, 1 / 12, n)), 0, 80)
    warm = np.clip(np.sin(np.pi * (d - 110) / 170), 0, None) * ((d > 110) & (d < 280))
    y = np.where(rng.random(n) < 0.15 + 0.7 * warm, rng.poisson(rng.gamma(2, 1 + 12 * warm)), 0)
    return x.astype(float), np.clip(y, 0, 150).astype(float), z


@named(SECOND_LINKS, "falls and pills by a hidden frailty", (0, 30), (0, 30), (65, 95))
def _hidden_frailty(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Falls and pills share a hidden frailty beyond age: zero-inflated counts, a weak link."""
    z = np.round(rng.uniform(65, 95, n), 1)
    f = rng.gamma(3, 1 / 3, n)
    x = rng.poisson(f * (1 + 0.12 * (z - 65)))
    y = np.where(rng.random(n) < 0.35, 0, rng.poisson(f * np.exp(-0.6 + 0.04 * (z - 65))))
    return np.clip(x, 0, 30).astype(float), np.clip(y, 0, 30).astype(float), z


@named(SECOND_LINKS, "an exposure of one in twelve", Levels(range(2)), (0, 25), (40, 160))
def _rare_exposure(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """An exposure of one in twelve shifts a skewed laboratory value by half of its spread, given weight."""
    z = np.clip(rng.normal(78, 15, n), 40, 160)
    x = (rng.random(n) < sig(-2.6 + 0.012 * (z - 78))).astype(float)
    y = 5 + 0.03 * z + rng.gamma(2, 0.8, n) + 0.57 * x
    return x, np.clip(np.round(y, 1), 0, 25), z


@named(THIRD_NULLS, "night noise and rent by a rail line", (20, 90), (3, 30), (5, 5000))
def _rail_line(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Night noise and rent by the distance to a rail line, in metres, most people near: both fall fast at first."""
    z = np.clip(np.round(np.exp(rng.normal(5.5, 0.9, n))), 5, 5000)
    x = np.round(75 - 9 * np.log10(z) * 1.6 + rng.normal(0, 3, n) + 4 * (rng.random(n) < 0.1))
    y = (7 + 3 * (1 - np.exp(-z / 250))) * np.exp(0.18 * rng.standard_normal(n))
    return np.clip(x, 20, 90), np.clip(y, 3, 30), z


@named(THIRD_NULLS, "salt and turbidity by 27 tides", (10, 40), (0, 200), (0, 336))
def _tides(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Salt and turbidity at a quay by the hour of two weeks: 27 tides, springs and neaps."""
    z = rng.uniform(0, 336, n)
    tide = np.sin(2 * np.pi * z / 12.42) * (1 + 0.4 * np.cos(2 * np.pi * z / 336))
    x = 28 + 2 * tide + 1.5 * rng.standard_normal(n)
    y = np.exp(2 - 0.4 * tide + 0.6 * rng.standard_normal(n))
    return np.clip(x, 10, 40), np.clip(y, 0, 200), z


@named(THIRD_NULLS, "income and television by age, at 65", (0, 250), (0, 16), (18, 96))
def _retirement(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Income and hours of television by whole ages: most people change both at 65, some before."""
    z = np.floor(rng.uniform(18, 96, n))
    share = np.where(z < 55, 0.02, np.where(z < 65, 0.25, 0.93))
    x = (18 + 1.1 * np.minimum(z - 18, 30)) * (1 - 0.45 * share) * rng.gamma(4, 0.25, n)
    y = np.round(2 * (2 + 2.2 * share + 0.01 * z) * rng.gamma(3, 1 / 3, n)) / 2
    return np.clip(x, 0, 250), np.clip(y, 0, 16), z


@named(THIRD_NULLS, "filtration and urea by creatinine", (1, 180), (0.5, 90), (30, 1500))
def _creatinine(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Filtration and urea by creatinine, a power of a skewed number each with narrow noise: steepest in the tail."""
    z = np.clip(np.round(np.exp(rng.normal(4.4, 0.35, n) + (rng.random(n) < 0.06) * rng.gamma(2, 0.4, n))), 30, 1500)
    x = 90 * (z / 80) ** -1.1 * np.exp(0.15 * rng.standard_normal(n))
    y = 5 * (z / 80) ** 0.8 * np.exp(0.25 * rng.standard_t(5, n))
    return np.clip(x, 1, 180), np.clip(y, 0.5, 90), z


@named(THIRD_NULLS, "pressure and pace by age in five clinics", (70, 240), (0, 3), Levels(range(5)), (18, 100))
def _five_clinics(rng: Any, n: int) -> tuple[Reals, Reals, Reals]:
    """Pressure and walking speed by age in five clinics, each with its own ages, level and slope."""
    clinic = rng.choice(5, n, p=[0.4, 0.25, 0.15, 0.12, 0.08])
    age = np.clip(rng.normal(np.array([45, 60, 70, 35, 55])[clinic], 14), 18, 100)
    x = 105 + 4 * clinic + (0.3 + 0.1 * clinic) * (age - 18) + rng.normal(0, 9 + clinic)
    y = 1.5 - 0.00012 * (age - 18) ** 2 - 0.03 * clinic + 0.15 * rng.standard_t(6, n)
    return np.clip(x, 70, 240), np.clip(y, 0, 3), np.column_stack([clinic.astype(float), age])
