"""Effects, slopes, instruments and differences in differences as they come in practice, named after a freeze."""

import math
from functools import cache, partial
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs import Design, Reading, prefix, register, table
from benchmarks.designs import flips as coin
from benchmarks.designs.effects.regressions import Asked

FLAG = dpc.Levels([0, 1])
Answer = tuple[float | None, Any]
"""An estimate and its interval."""


def effect(loss: Any, **columns: tuple[Any, Any]) -> Answer:
    """Of columns a, y and others, each with its levels or bounds."""
    values, schema = ({name: one[place] for name, one in columns.items()} for place in (0, 1))
    found = dpc.effect(table(values, schema, loss), treatment="a", outcome="y", adjust=list(columns)[2:], loss=loss,
                       accept_large_epsilon=True)  # fmt: skip
    return found.estimate, found.interval


def slope(columns: dict[str, Any], reach: dict[str, float], loss: Any, **iv: Any) -> Answer:
    schema = {name: dpc.Bounded(-reach[name], reach[name]) for name in columns}
    moments = dpc.moments(table(columns, schema, loss), list(columns), loss=loss)
    if not iv:
        found: Any = moments.ols("y", [name for name in columns if name != "y"], errors="homoscedastic")
        return found["x"].estimate, found["x"].interval
    found = moments.iv("y", "a", errors="homoscedastic", **iv)
    sets = found.anderson_rubin
    return found["a"].estimate, sets[0] if sets and len(sets) == 1 else None


def paths(y: Any, g: Any, never: int, bounds: dpc.Bounded, loss: Any) -> Answer:
    n, T = y.shape
    frame = {"id": np.repeat(np.arange(n), T), "t": np.tile(np.arange(T), n), "g": np.repeat(g, T), "y": y.ravel()}
    schema = {"t": dpc.Levels(range(T)), "g": dpc.Levels(sorted(set(g.tolist()) | {never})), "y": bounds}
    found = dpc.did(table(frame, schema, loss, person="id"), time="t", outcome="y", cohort="g", loss=loss)
    return (None, None) if found.att is None else (found.att.estimate, found.att.interval)


def tips(rng: Any, n: int, loss: Any) -> Answer:
    """Shares of a bill, two fifths of them 0; treatment by shift and size of the party."""
    shift, size = rng.integers(0, 3, n), rng.integers(0, 2, n)
    a = coin(rng, 0.25 + 0.15 * shift + 0.15 * size)
    given = rng.random(n) > 0.4 - 0.1 * a
    y = given * rng.beta(2 + shift, 12 - 3 * size)
    return effect(loss, a=(a, FLAG), y=(y, dpc.Bounded(0, 1)), shift=(shift, dpc.Levels(range(3))), size=(size, FLAG))


def sleep(rng: Any, n: int, loss: Any) -> Answer:
    """Hours with two humps; treatment by a logistic curve of age."""
    age, sex = rng.uniform(18, 80, n), rng.integers(0, 2, n)
    a = coin(rng, 1 / (1 + np.exp(-(age - 50) / 25)))
    y = np.where(rng.random(n) < 0.3, 5, 8) - 0.02 * (age - 50) + 0.3 * sex + 0.7 * rng.normal(size=n) + 0.25 * a
    return effect(loss, a=(a, FLAG), y=(np.clip(y, 0, 14), dpc.Bounded(0, 14)), age=(age, dpc.Bounded(18, 80)),
                  sex=(sex, FLAG))  # fmt: skip


def rainfall(rng: Any, n: int, loss: Any) -> Answer:
    """Gamma rain of shape 0.8, more of it higher up; altitude itself skewed; treatment adds a fifth."""
    height, heat = np.minimum(rng.gamma(2, 1, n), 8), rng.normal(size=n)
    a = coin(rng, np.clip(0.35 + 0.06 * height, 0.05, 0.85))
    y0 = rng.gamma(0.8, 1 + 0.4 * height)
    y = np.minimum(np.where(a == 1, 1.2 * y0, y0), 60)
    return effect(loss, a=(a, FLAG), y=(y, dpc.Bounded(0, 60)), height=(height, dpc.Bounded(0, 8)),
                  heat=(heat, dpc.Bounded(-4, 4)))  # fmt: skip


def rents(rng: Any, n: int, loss: Any) -> Answer:
    """A log-normal regressor, normal errors."""
    x, w = np.exp(0.4 * rng.normal(size=n)), rng.normal(size=n)
    return slope({"y": 0.5 * x + 0.3 * w + 0.5 * rng.normal(size=n), "x": x, "w": w}, {"y": 10, "x": 10, "w": 5}, loss)


def doses(rng: Any, n: int, loss: Any) -> Answer:
    """A yes or no of 10 %, an even regressor, t4 errors."""
    x, w = rng.uniform(-2, 2, n), coin(rng, np.full(n, 0.1))
    y = 0.5 * x + 0.3 * w + rng.standard_t(4, n)
    return slope({"y": y, "x": x, "w": w}, {"y": 20, "x": 2, "w": 1}, loss)


def harvest(rng: Any, n: int, loss: Any) -> Answer:
    """Two regressors that correlate by 0.9, Laplace errors."""
    x, e = rng.normal(size=(2, n))
    w = 0.9 * x + math.sqrt(0.19) * e
    return slope({"y": 0.5 * x - w + rng.laplace(size=n), "x": x, "w": w}, {"y": 30, "x": 5, "w": 5}, loss)


def distance(rng: Any, n: int, loss: Any) -> Answer:
    """An exponential instrument, a treatment with a common cause."""
    z, u, e, f = rng.exponential(size=n), *rng.normal(size=(3, n))
    a = -0.5 * z + u + e
    return slope({"y": 0.5 * a + u + f, "a": a, "z": z}, {"y": 20, "a": 15, "z": 12}, loss, instruments=["z"])


def lottery(rng: Any, n: int, loss: Any) -> Answer:
    """A lot as instrument, those who want it come, and exponential errors."""
    z, u = rng.integers(0, 2, n), rng.normal(size=n)
    a = coin(rng, 0.15 + 0.5 * z + 0.1 * (u > 0))
    return slope({"y": 0.5 * a + 0.5 * u + rng.exponential(size=n) - 1, "a": a, "z": z}, {"y": 15, "a": 1, "z": 1},
                 loss, instruments=["z"])  # fmt: skip


def minimum_wage(rng: Any, n: int, loss: Any) -> Answer:
    """Persons of t3 levels, errors that keep 0.8 of the last one's, cohorts of a tenth, a fifth and the rest."""
    g, T = rng.choice([2, 4, 9], n, p=[0.1, 0.2, 0.7]), 6
    e = rng.normal(size=(n, T))
    for t in range(1, T):
        e[:, t] = 0.8 * e[:, t - 1] + 0.6 * e[:, t]
    return paths(np.clip(2 * rng.standard_t(3, (n, 1)) + e + 0.5 * (g[:, None] <= np.arange(T)), -15, 15), g, 9,
                 dpc.Bounded(-15, 15), loss)  # fmt: skip


def absences(rng: Any, n: int, loss: Any) -> Answer:
    """Days a quarter, Poisson about each person's own rate, half a day less from treatment on."""
    g, T = rng.choice([2, 3, 9], n), 5
    rate = 1 + rng.gamma(1.5, 1, (n, 1)) - 0.5 * (g[:, None] <= np.arange(T))
    return paths(np.minimum(rng.poisson(rate), 20).astype(float), g, 9, dpc.Bounded(0, 20), loss)


def pay(rng: Any, n: int, loss: Any) -> Answer:
    """Whole years at school, errors of a gamma of shape 4, alike everywhere."""
    x, w = rng.integers(-4, 5, n), rng.normal(size=n)
    y = 0.5 * x + 0.3 * w + rng.gamma(4, 0.5, n) - 2
    return slope({"y": y, "x": x, "w": w}, {"y": 15, "x": 4, "w": 5}, loss)


def survey(rng: Any, n: int, loss: Any) -> Answer:
    """Answers of one to five and three of yes or no, normal errors."""
    x, (v, w, u) = rng.integers(1, 6, n), (rng.random((3, n)) < np.array([[0.5], [0.3], [0.2]])).astype(int)
    y = 0.5 * x + v - 0.5 * w + 0.2 * u + rng.normal(size=n)
    return slope({"y": y, "x": x, "v": v, "w": w, "u": u}, {"y": 10, "x": 5, "v": 1, "w": 1, "u": 1}, loss)


def loans(rng: Any, n: int, loss: Any) -> Answer:
    """Sums of which the largest fifth is cut at the bound; two numbers that correlate by 0.6 are adjusted for."""
    x, e = rng.normal(size=(2, n))
    w = 0.6 * x + 0.8 * e
    a = coin(rng, 1 / (1 + np.exp(-0.5 * x - 0.3 * w)))
    y = np.clip(3 + 0.8 * x + 0.5 * w + 1.5 * rng.normal(size=n) + 0.5 * a, 0, 5)
    within = dpc.Bounded(-4, 4)
    return effect(loss, a=(a, FLAG), y=(y, dpc.Bounded(0, 5)), x=(np.clip(x, -4, 4), within),
                  w=(np.clip(w, -4, 4), within))  # fmt: skip


def draft(rng: Any, n: int, loss: Any) -> Answer:
    """Two lots as instruments, a skewed number held fixed."""
    (z, v), x, u = rng.integers(0, 2, (2, n)), rng.exponential(size=n), rng.normal(size=n)
    a = 0.6 * z + 0.4 * v + 0.3 * x + u + rng.normal(size=n)
    y = 0.5 * a + 0.4 * x - u + rng.normal(size=n)
    return slope({"y": y, "a": a, "z": z, "v": v, "x": x}, {"y": 20, "a": 20, "z": 1, "v": 1, "x": 15}, loss,
                 instruments=["z", "v"], given=["x"])  # fmt: skip


def shops(rng: Any, n: int, loss: Any) -> Answer:
    """Four quarters, one cohort of two fifths, Laplace errors about a falling trend."""
    g = np.where(rng.random(n) < 0.4, 2, 9)
    y = 3 * rng.normal(size=(n, 1)) - 0.3 * np.arange(4) + rng.laplace(size=(n, 4))
    return paths(np.clip(y + 0.5 * (g[:, None] <= np.arange(4)), -15, 15), g, 9, dpc.Bounded(-15, 15), loss)


MAKES = {make.__name__.replace("_", " "): make for make in (
    tips, sleep, rainfall, rents, doses, harvest, distance, lottery, minimum_wage, absences, pay, survey, loans, draft,
    shops,
)}  # fmt: skip


@cache
def truth_of(name: str) -> float:
    """Return the truth: stated or worked out."""
    if name == "tips":
        # Given 0.6 and 0.7 of the time, of means (2 + s)/(14 + s − 3 z), treatment goes with neither but given s and z.
        return 0.1 * float(np.mean([(2 + s) / (14 + s - 3 * z) for s in range(3) for z in range(2)]))
    if name == "loans":
        x, e, f = np.random.default_rng(0).normal(size=(3, 4_000_000))
        y = 3 + 0.8 * x + 0.5 * (0.6 * x + 0.8 * e) + 1.5 * f
        return float((np.clip(y + 0.5, 0, 5) - np.clip(y, 0, 5)).mean())
    if name == "rainfall":
        rng = np.random.default_rng(0)
        y = rng.gamma(0.8, 1 + 0.4 * np.minimum(rng.gamma(2, 1, 4_000_000), 8))
        return float((np.minimum(1.2 * y, 60) - np.minimum(y, 60)).mean())
    return {"sleep": 0.25, "absences": -0.5}.get(name, 0.5)


def question(name: str, rng: Any, n: int, loss: Any) -> dict[str, Reading]:
    """A question asked as its user would, and its truth."""
    return {"": Reading(*MAKES[name](rng, n, loss), truth_of(name))}


DESIGNS: dict[str, Design] = {}
for names, family in ((list(MAKES)[:10], "fresh"), (list(MAKES)[10:], "fresh, second")):
    asked = {name: Asked(partial(question, name)) for name in names}
    DESIGNS |= register(asked, family, "2026-11-22", seeds=prefix(31), delta=1e-6)
