"""Panels as they come in practice, named after the defaults were frozen by somebody who had not seen the tuning.

Each gives donors, twenty targets that nothing happens to, the first period that counts as treated, and bounds.
"""

import numpy as np


def _split(units, n, lo, hi, start, ordinary=None):
    """First n units are donors; targets are the first 20 of the rest that are ordinary and inside the bounds."""
    rest = units[n:]
    ok = np.all((rest >= lo) & (rest <= hi), axis=1)
    if ordinary is not None:
        ok &= ordinary[n:]
    targets = rest[ok][:20]
    assert targets.shape[0] == 20
    return units[:n].copy(), targets.copy(), start, (lo, hi)


def _ar(rng, m, t, phi, sd):
    e = np.empty((m, t))
    e[:, 0] = rng.normal(0, sd / np.sqrt(1 - phi**2), m)
    for k in range(1, t):
        e[:, k] = phi * e[:, k - 1] + rng.normal(0, sd, m)
    return e


def shops(rng, n):
    """Monthly takings of shops of very different size: growth in percent, a Christmas peak of its own in each,
    common good and bad months."""
    m, t = n + 80, 30
    k = np.arange(t)
    size = rng.lognormal(3.0, 0.8, m)[:, None]
    g = rng.normal(0.004, 0.006, m)[:, None]
    common = np.cumsum(rng.normal(0, 0.02, t))
    peak = rng.gamma(3, 0.12, m)[:, None] * (k % 12 == 11) - rng.gamma(3, 0.03, m)[:, None] * (k % 12 == 1)
    log = g * k + rng.normal(1, 0.3, m)[:, None] * common + peak + _ar(rng, m, t, 0.5, 0.05)
    return _split(size * np.exp(log), n, 0.0, 400.0, 26)


def admissions(rng, n):
    """Monthly admissions of small hospitals, whole numbers: each has its own season (skiing places, beaches), a
    common wave, overdispersion."""
    m, t = n + 60, 36
    k = np.arange(t)
    level = rng.lognormal(3.3, 0.5, m)[:, None]
    kind = rng.choice(3, m, p=[0.5, 0.3, 0.2])
    amp = np.where(kind == 0, 0.08, 0.4)[:, None] * rng.uniform(0.5, 1.5, (m, 1))
    phase = np.where(kind == 1, 6, 0)[:, None] + rng.normal(0, 1.0, (m, 1))
    common = 0.15 * np.sin(2 * np.pi * k / rng.uniform(20, 30) + rng.uniform(0, 6.3))
    mean = level * np.exp(amp * np.cos(2 * np.pi * (k - phase) / 12) + rng.uniform(0.4, 1.6, (m, 1)) * common)
    return _split(rng.poisson(mean * rng.gamma(60, 1 / 60, (m, t))).astype(float), n, 0.0, 250.0, 30)


def meters(rng, n):
    """Electricity of households by month: three in a hundred meters are stuck at nought, ten times too high or stop
    halfway; targets have sound ones."""
    m, t = n + 80, 24
    k = np.arange(t)
    base = rng.gamma(5, 50, m)[:, None]
    cold = np.cos(2 * np.pi * k / 12) + 0.4 * rng.standard_normal(t)
    use = base * (1 + rng.beta(2, 5, (m, 1)) * cold) * np.exp(0.12 * rng.standard_normal((m, t)))
    use[rng.random((m, t)) < 0.02] *= 0.3  # a month away
    bad = rng.random(m) < 0.03
    how = rng.integers(0, 3, m)
    use[bad & (how == 0)] = 0
    use[bad & (how == 1)] *= 10
    stop = rng.integers(5, t, m)
    halt = (bad & (how == 2))[:, None] & (k[None] >= stop[:, None])
    use = np.where(halt, use[np.arange(m), stop][:, None], use)
    donors, *rest = _split(np.maximum(use, 0), n, 0.0, 1500.0, 20, ~bad)
    return np.minimum(donors, 15_000), *rest


def new_definition(rng, n):
    """Unemployment rates of districts: a national cycle, sluggish local deviations, and a new definition that lifts
    half of them before the start."""
    m, t = n + 60, 28
    cycle = _ar(rng, 1, t, 0.85, 0.5)[0]
    rate = rng.gamma(9, 0.75, m)[:, None] + rng.uniform(0.3, 1.8, (m, 1)) * cycle + _ar(rng, m, t, 0.7, 0.3)
    when = int(rng.integers(10, 18))
    lift = np.where(rng.random(m) < 0.5, rng.normal(1.2, 0.3, m), 0)[:, None] * (np.arange(t) >= when)
    return _split(np.clip(np.round(rate + lift, 1), 0.1, 30), n, 0.0, 30.0, 23)


def house_prices(rng, n):
    """House price indices, 100 in the first year: boom and bust in percent, deeper at the coast, with momentum."""
    m, t = n + 60, 18
    growth = np.repeat([0.03, 0.08, -0.06, 0.02], [6, 5, 4, 3]) + rng.normal(0, 0.012, t)
    coast = rng.random(m) < 0.3
    expo = np.where(coast, rng.normal(1.6, 0.25, m), rng.normal(0.8, 0.2, m))[:, None]
    step = expo * growth + _ar(rng, m, t, 0.6, 0.012)
    step[:, 0] = 0
    return _split(np.round(100 * np.exp(np.cumsum(step, 1)), 1), n, 0.0, 700.0, 14)


def school_marks(rng, n):
    """Mean marks of schools: small classes make noisy years, even years have a harder paper, good schools sit at the
    ceiling."""
    m, t = n + 60, 14
    pupils = np.clip(rng.lognormal(3.6, 0.6, m), 8, 300)
    true = rng.normal(72, 9, m)[:, None] + np.cumsum(rng.normal(0, 0.7, (m, t)), 1)
    paper = rng.normal(0, 1.5, t) - 4 * (np.arange(t) % 2 == 0)
    mark = true + rng.uniform(0.5, 1.5, (m, 1)) * paper + rng.normal(0, 1, (m, t)) * 14 / np.sqrt(pupils)[:, None]
    return _split(np.round(np.clip(mark, 0, 92 + 0.2 * np.maximum(mark - 92, 0)), 1), n, 0.0, 100.0, 11)


def harvests(rng, n):
    """Harvests of farms in five regions: technical progress, droughts that hit a region in some years, good and poor
    years in turn in orchards."""
    m, t = n + 60, 22
    k = np.arange(t)
    region = rng.integers(0, 5, m)
    drought = np.where(rng.random((5, t)) < 0.13, rng.uniform(0.15, 0.5, (5, t)), 0)
    turn = np.where(rng.random(m) < 0.25, rng.uniform(0.1, 0.3, m) * rng.choice([-1, 1], m), 0)[:, None]
    y = rng.normal(6, 1.0, m)[:, None] * (1 + 0.012 * k) * (1 + turn * np.where(k % 2, 1, -1))
    y = y * (1 - rng.uniform(0.6, 1.2, (m, 1)) * drought[region])
    y = y * (1 - 0.12 * rng.beta(1.2, 5, (m, t))) + 0.25 * rng.standard_normal((m, t))
    return _split(np.maximum(np.round(y, 2), 0), n, 0.0, 18.0, 17)


def inflation(rng, n):
    """Nominal pay bills of firms under high and changing inflation: all grow by a third a year or more, sizes differ
    a hundredfold, raises come late."""
    m, t = n + 100, 18
    infl = np.clip(_ar(rng, 1, t, 0.7, 0.05)[0] + 0.13, 0.02, 0.4)
    lag = rng.uniform(0, 1, (m, 1))
    late = np.concatenate([[infl[0]], infl[:-1]])
    step = (1 - lag) * infl + lag * late + rng.normal(0.0, 0.02, (m, 1)) + rng.normal(0, 0.04, (m, t))
    return _split(rng.lognormal(1.0, 0.9, m)[:, None] * np.exp(np.cumsum(step, 1)), n, 0.0, 600.0, 15)


def small_areas(rng, n):
    """Poverty rates from a survey: smooth truth, sampling noise of 15 to 4,000 persons an area, so that some areas
    are nought in a year."""
    m, t = n + 60, 16
    k = np.arange(t)
    persons = np.exp(rng.uniform(np.log(15), np.log(4000), m))
    common = 0.25 * np.sin(2 * np.pi * k / 11 + rng.uniform(0, 6.3)) + 0.02 * k
    logit = rng.normal(-1.9, 0.5, m)[:, None] + rng.normal(1, 0.4, (m, 1)) * common + _ar(rng, m, t, 0.9, 0.05)
    size = np.round(persons).astype(int)[:, None]
    rate = rng.binomial(np.broadcast_to(size, (m, t)), 1 / (1 + np.exp(-logit))) / size
    return _split(100 * rate, n, 0.0, 100.0, 13)


def bike_counters(rng, n):
    """Daily bicycle counts over six weeks: commuter and leisure sites with opposite weeks, weather that hits leisure
    harder, gaps of some days in donors."""
    m, t = n + 80, 42
    k = np.arange(t)
    leisure = rng.beta(0.7, 0.7, m)[:, None]
    weekend = (k % 7 >= 5) * 1.0
    rain = np.minimum(rng.exponential(0.35, t), 1.5) * (rng.random(t) < 0.45)
    log = rng.normal(6, 0.5, m)[:, None] + (1.1 * leisure - 0.8 * (1 - leisure)) * weekend
    log = log - (0.3 + 0.9 * leisure) * rain + 0.006 * k
    y = rng.poisson(np.exp(log + 0.09 * rng.standard_normal((m, t)))).astype(float)
    donors, *rest = _split(y, n, 0.0, 6000.0, 35)
    where, long = rng.integers(0, t, n), rng.integers(1, 8, n)
    gap = (rng.random(n) < 0.12)[:, None] & (k >= where[:, None]) & (k < (where + long)[:, None])
    donors[gap] = np.nan
    return donors, *rest


SHAPES = (shops, admissions, meters, new_definition, house_prices, school_marks, harvests, inflation, small_areas,
          bike_counters)  # fmt: skip
