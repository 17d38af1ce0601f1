"""Regressions as they come in practice, named by somebody who had not seen the rules of the intervals.

Of each: a draw, bounds, and whether errors are symmetric.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def wages_by_union(rng: Any, n: int) -> dict[str, Any]:
    """Hourly wage on union, heaped schooling and experience; the errors are skewed among the non-union only."""
    school = rng.choice([8.0, 10.0, 11.0, 12.0, 14.0, 16.0, 18.0], n, p=[0.03, 0.05, 0.05, 0.43, 0.14, 0.21, 0.09])
    exper = np.clip(rng.gamma(2.2, 8.0, n), 0.0, 50.0)
    union = (rng.random(n) < 1.0 / (1.0 + np.exp(1.9 + 0.12 * (school - 13.0) - 0.03 * (exper - 17.0)))).astype(float)
    tail = np.exp(0.8 * rng.standard_normal(n)) - np.exp(0.32)
    error = np.where(union == 1.0, rng.normal(0.0, 5.0, n), (5.0 + 0.8 * (school - 8.0)) * tail)
    wage = 4.0 + 1.4 * school + 0.2 * exper + 3.0 * union + error
    return {"y": wage, "union": union, "school": school, "exper": exper}


def food_by_income(rng: Any, n: int) -> dict[str, Any]:
    """Weekly food spending on top-coded lognormal income and household size; Laplace errors widen with income."""
    size = 1.0 + np.minimum(rng.poisson(1.5, n), 7).astype(float)
    income = np.clip(np.exp(3.5 + 0.1 * np.minimum(size, 4.0) + 0.7 * rng.standard_normal(n)), 3.0, 250.0)
    error = (5.0 + 0.12 * income) * np.clip(rng.laplace(0.0, 1.0, n), -6.0, 6.0)
    return {"y": 45.0 + 0.5 * income + 22.0 * size + error, "income": income, "size": size}


def birthweight_by_drug(rng: Any, n: int) -> dict[str, Any]:
    """Birth weight in grams on a rare, confounded exposure; t errors with a wider spread among the exposed."""
    age = np.clip(rng.normal(29.0, 5.5, n), 15.0, 48.0)
    bmi = np.clip(19.0 + rng.gamma(2.0, 3.0, n) + 0.08 * (age - 29.0), 16.0, 55.0)
    drug = (rng.random(n) < 1.0 / (1.0 + np.exp(4.3 - 0.1 * (age - 29.0) - 0.12 * (bmi - 25.0)))).astype(float)
    error = (330.0 + 180.0 * drug) * np.clip(rng.standard_t(5, n), -5.0, 5.0)
    return {"y": 2880.0 + 4.0 * age + 16.0 * bmi - 140.0 * drug + error, "drug": drug, "age": age, "bmi": bmi}


def stay_cost(rng: Any, n: int) -> dict[str, Any]:
    """Hospital cost in thousands on a two-humped age, emergency entry and comorbidities; gamma errors, mild bend."""
    age = np.clip(np.where(rng.random(n) < 0.35, rng.normal(29.0, 6.0, n), rng.normal(73.0, 9.0, n)), 18.0, 100.0)
    ill = np.minimum(rng.poisson(rng.gamma(1.2, 1.0, n) * age / 50.0), 12).astype(float)
    emergency = (rng.random(n) < 0.2 + 0.004 * (age - 18.0) + 0.02 * ill).astype(float)
    mean = 3.0 + 0.03 * age + 0.0004 * (age - 55.0) ** 2 + 1.3 * ill + 2.0 * emergency
    return {"y": mean * rng.gamma(1.3, 1.0 / 1.3, n), "age": age, "emergency": emergency, "ill": ill}


def hours_worked(rng: Any, n: int) -> dict[str, Any]:
    """Weekly hours, cut at zero and 80 and heaped at 40, on age, children and the partner's heavy-tailed income."""
    age = rng.uniform(20.0, 65.0, n)
    kids = np.minimum(rng.poisson(1.6 * np.exp(-(((age - 38.0) / 14.0) ** 2))), 6).astype(float)
    partner = np.where(rng.random(n) < 0.3, 0.0, np.minimum(12.0 * (1.0 + rng.pareto(1.9, n)), 300.0))
    wish = 36.0 - 0.018 * (age - 42.0) ** 2 - 4.0 * kids - 0.12 * partner + rng.normal(0.0, 14.0 + 2.0 * kids, n)
    hours = np.where((np.abs(wish - 40.0) < 6.0) & (rng.random(n) < 0.8), 40.0, np.round(wish))
    return {"y": np.clip(hours, 0.0, 80.0), "age": age, "kids": kids, "partner": partner}


def pressure_by_girth(rng: Any, n: int) -> dict[str, Any]:
    """Systolic pressure on two-humped age, closely tied body mass and waist, and few treated; spread grows with age."""
    age = np.where(rng.random(n) < 0.55, 18.0 + 14.0 * rng.beta(2.0, 3.0, n), 60.0 + 28.0 * rng.beta(2.0, 3.0, n))
    bmi = np.clip(18.0 + rng.gamma(3.0, 2.4, n) + 0.03 * (age - 18.0), 15.0, 55.0)
    waist = np.clip(24.0 + 2.5 * bmi + 0.06 * age + rng.normal(0.0, 4.5, n), 50.0, 180.0)
    pill = (rng.random(n) < 0.005 + 0.13 * (age > 60.0) * (bmi > 24.0)).astype(float)
    error = (6.0 + 0.17 * (age - 18.0) + 0.3 * (bmi - 15.0)) * np.clip(rng.standard_normal(n), -4.5, 4.5)
    pressure = 75.0 + 0.45 * age + 0.5 * bmi + 0.12 * waist - 8.0 * pill + error
    return {"y": pressure, "age": age, "bmi": bmi, "waist": waist, "pill": pill}


CASES = {
    "wages by union": (
        wages_by_union,
        {"y": (0.0, 120.0), "union": (0.0, 1.0), "school": (0.0, 20.0), "exper": (0.0, 60.0)},
        False,
    ),
    "food by income": (food_by_income, {"y": (-50.0, 600.0), "income": (0.0, 300.0), "size": (1.0, 10.0)}, True),
    "birth weight by drug": (
        birthweight_by_drug,
        {"y": (0.0, 7000.0), "drug": (0.0, 1.0), "age": (12.0, 55.0), "bmi": (12.0, 60.0)},
        True,
    ),
    "cost of a stay": (
        stay_cost,
        {"y": (0.0, 80.0), "age": (15.0, 110.0), "emergency": (0.0, 1.0), "ill": (0.0, 15.0)},
        False,
    ),
    "hours worked": (
        hours_worked,
        {"y": (0.0, 80.0), "age": (18.0, 70.0), "kids": (0.0, 8.0), "partner": (0.0, 300.0)},
        False,
    ),
    "pressure by girth": (
        pressure_by_girth,
        {"y": (0.0, 300.0), "age": (15.0, 95.0), "bmi": (12.0, 60.0), "waist": (40.0, 200.0), "pill": (0.0, 1.0)},
        True,
    ),
}
