"""Confounding as it comes in practice, named by somebody who had not seen how the methods adjust for bends."""

from typing import Any

import numpy as np

import dpcausal as dpc


def chance(logit: Any) -> Any:
    return np.clip(1.0 / (1.0 + np.exp(-logit)), 0.05, 0.95)


def season(rng: Any, n: int) -> tuple[dict[str, Any], Any, Any, Any]:
    """Flu jab and sick days: a yearly cycle with a sharp winter peak, stronger in the old; the outcome is a count."""
    day = rng.uniform(0.0, 365.0, n)
    age = np.clip(rng.normal(52.0, 17.0, n), 18.0, 90.0)
    area = rng.choice(["city", "town", "village"], n, p=[0.5, 0.35, 0.15])
    winter = np.exp(3.0 * (np.cos(2.0 * np.pi * (day - 15.0) / 365.0) - 1.0))
    autumn = np.exp(3.0 * (np.cos(2.0 * np.pi * (day - 300.0) / 365.0) - 1.0))
    old = 1.0 / (1.0 + np.exp(-(age - 65.0) / 4.0))
    logit = -1.3 + 2.6 * winter + 0.9 * autumn + 0.8 * old + 0.3 * (area == "city")
    rate = np.exp(0.5 + 1.1 * winter + 0.4 * old + 0.3 * winter * old + 0.15 * (area == "city"))
    untreated = rng.poisson(rate).astype(float)
    effect = -rng.binomial(untreated.astype(int), 0.25).astype(float)
    return {"day_of_year": day, "age": age, "area": area}, chance(logit), untreated, effect


def eligibility(rng: Any, n: int) -> tuple[dict[str, Any], Any, Any, Any]:
    """Means-tested school grant: the income limit moves with the household's size; other benefits share it."""
    size = np.clip(1.0 + rng.poisson(2.2, n), 1.0, 8.0)
    income = np.clip(np.exp(rng.normal(3.3 + 0.06 * size, 0.6, n)), 0.0, 150.0)
    tenure = rng.choice(["owner", "private rent", "social rent"], n, p=[0.55, 0.27, 0.18])
    eligible = income < 12.0 + 5.0 * size
    near = eligible & (income > 6.0 + 5.0 * size)
    p = np.where(eligible, 0.78, 0.10) - 0.18 * near + 0.07 * (tenure == "social rent")
    p = np.clip(p, 0.05, 0.95)
    mean = 52.0 + 4.5 * np.log1p(income / 10.0) + 9.0 * eligible - 3.0 * (tenure == "social rent") - 0.6 * size
    untreated = mean + rng.normal(0.0, 9.0, n)
    effect = 3.0 + 0.0 * income
    return {"household_income": income, "household_size": size, "tenure": tenure}, p, untreated, effect


def bmi_j_curve(rng: Any, n: int) -> tuple[dict[str, Any], Any, Any, Any]:
    """Nurse visits and hospital days: a J-curve in body-mass index, lowest at a point that moves with age; skewed."""
    age = np.clip(rng.normal(58.0, 14.0, n), 18.0, 90.0)
    bmi = np.clip(18.0 + rng.gamma(4.0, 2.2, n) - 0.03 * np.maximum(age - 65.0, 0.0) ** 1.5, 14.0, 55.0)
    smoker = rng.choice(["never", "former", "current"], n, p=[0.5, 0.3, 0.2])
    lowest = 23.5 + 0.05 * (age - 50.0)
    gap = bmi - lowest
    harm = np.where(gap < 0.0, 0.11 * gap**2, 0.012 * gap**2)
    harm = np.minimum(harm, 3.0)
    logit = -1.5 + 1.5 * harm + 0.25 * (smoker == "current") + 0.012 * (age - 58.0)
    mean = np.exp(0.9 + 0.42 * harm + 0.012 * (age - 58.0) + 0.25 * (smoker == "current"))
    untreated = mean * rng.gamma(2.0, 0.5, n)
    effect = -0.8 - 0.5 * harm
    return {"bmi": bmi, "age": age, "smoker": smoker}, chance(logit), untreated, effect


def menopause(rng: Any, n: int) -> tuple[dict[str, Any], Any, Any, Any]:
    """Osteoporosis drug and bone density: women's density falls fast at about 52, men's slowly from 75; age x sex."""
    age = rng.uniform(30.0, 90.0, n)
    sex = rng.choice(["female", "male"], n, p=[0.55, 0.45])
    woman = sex == "female"
    drop = np.where(woman, 1.0 / (1.0 + np.exp(-(age - 52.0) / 2.5)), 1.0 / (1.0 + np.exp(-(age - 76.0) / 3.0)))
    # the very old and frail are treated less again, and keep losing
    frail = np.maximum(age - 80.0, 0.0) / 10.0
    logit = -2.2 + 3.3 * drop - 1.6 * frail
    untreated = 1.0 - 1.6 * drop - 0.5 * frail + 0.2 * ~woman + rng.normal(0.0, 0.8, n)
    effect = np.where(woman, 0.45, 0.2) * (0.5 + drop)
    return {"age": age, "sex": sex}, chance(logit), untreated, effect


def kidney(rng: Any, n: int) -> tuple[dict[str, Any], Any, Any, Any]:
    """Kidney drug and blood pressure: a kink at filtration 60, a potassium window, a dose ceiling; correlated."""
    shared = rng.normal(0.0, 1.0, n)
    egfr = np.clip(72.0 + 24.0 * (0.9 * shared + 0.44 * rng.normal(0.0, 1.0, n)), 8.0, 140.0)
    creatinine = np.clip(80.0 * (72.0 / np.maximum(egfr, 12.0)) ** 0.9 * np.exp(rng.normal(0.0, 0.08, n)), 30.0, 500.0)
    potassium = np.clip(4.4 - 0.25 * shared + rng.normal(0.0, 0.4, n), 2.8, 6.5)
    dose = np.clip(rng.gamma(3.0, 12.0, n), 0.0, 160.0)
    loss = np.maximum(60.0 - egfr, 0.0) / 20.0
    window = np.exp(-0.5 * ((potassium - 4.3) / 0.35) ** 2)
    capped = np.minimum(dose, 40.0) / 40.0
    logit = -1.6 + 1.3 * np.minimum(loss, 2.0) + 1.5 * window - 1.1 * (1.0 - capped)
    mean = 126.0 + 11.0 * np.minimum(loss, 2.0) - 11.0 * window + 9.0 * capped
    untreated = mean + 11.0 * rng.standard_t(8, n)
    effect = -3.0 - 4.0 * np.minimum(loss, 2.0)
    columns = {"egfr": egfr, "creatinine": creatinine, "potassium": potassium, "diuretic_dose": dose}
    return columns, chance(logit), untreated, effect


def irrigation(rng: Any, n: int) -> tuple[dict[str, Any], Any, Any, Any]:
    """Irrigation and yield: rain helps on flat sand, drowns flat clay, runs off steep land; soil x rain x slope."""
    soil = rng.choice(["clay", "loam", "sand"], n, p=[0.35, 0.35, 0.3])
    rain = np.clip(rng.gamma(6.0, 110.0, n), 100.0, 1600.0)
    slope = np.clip(rng.exponential(6.0, n), 0.0, 30.0)
    manager_years = rng.uniform(0.0, 40.0, n)
    held = np.select([soil == "clay", soil == "loam"], [1.4, 1.0], 0.65)
    water = held * rain * np.exp(-slope / 12.0)
    dry = np.maximum(450.0 - water, 0.0) / 300.0
    wet = np.maximum(water - 750.0, 0.0) / 300.0
    skill = manager_years / (manager_years + 5.0)
    logit = -1.8 + 2.2 * dry - 1.0 * np.minimum(wet, 2.0) + 1.2 * skill
    untreated = 6.5 - 2.2 * dry - 1.0 * np.minimum(wet, 2.0) + 1.5 * skill + rng.normal(0.0, 1.1, n)
    effect = 0.3 + 1.2 * dry
    columns = {"soil": soil, "rain_mm": rain, "slope_percent": slope, "manager_years": manager_years}
    return columns, chance(logit), untreated, effect


def earnings_dip(rng: Any, n: int) -> tuple[dict[str, Any], Any, Any, Any]:
    """Training and earnings: Ashenfelter's dip, the fall between two years; heavy tails, zeros, logs."""
    before = np.exp(rng.normal(3.1, 0.75, n)) * np.where(rng.random(n) < 0.03, 1.0 + rng.pareto(2.5, n), 1.0)
    lost = rng.random(n) < 0.22
    last = before * np.exp(rng.normal(0.02, 0.15, n)) * np.where(lost, rng.beta(1.5, 2.0, n), 1.0)
    last = np.where(rng.random(n) < 0.06, 0.0, last)
    before = np.clip(before, 0.0, 200.0)
    last = np.clip(last, 0.0, 200.0)
    schooling = np.clip(np.round(rng.normal(12.0, 2.5, n)), 6.0, 20.0)
    dip = np.clip(1.0 - (last + 0.5) / (before + 0.5), 0.0, 1.0)
    level = np.log1p(before / 3.0)
    degree = schooling >= 12.0
    p = np.clip(1.0 / (1.0 + np.exp(-(0.2 + 3.2 * dip - 0.75 * level + 0.3 * degree))), 0.05, 0.95)
    mean = 4.0 + 9.0 * level * (1.0 - 0.45 * dip) + 3.0 * degree
    untreated = np.maximum(mean * rng.gamma(6.0, 1.0 / 6.0, n), 0.0)
    effect = 1.0 + 3.0 * dip
    columns = {"earnings_two_years_ago": before, "earnings_last_year": last, "schooling_years": schooling}
    return columns, p, untreated, effect


def rare_wards(rng: Any, n: int) -> tuple[dict[str, Any], Any, Any, Any]:
    """Early discharge support and readmissions: rare wards unlike the others, hour x weekend, illness that levels."""
    share = [0.41, 0.24, 0.14, 0.10, 0.05, 0.03, 0.012, 0.01, 0.008]
    code = rng.choice(len(WARDS), n, p=share)
    hour = np.where(rng.random(n) < 0.6, rng.normal(13.0, 3.0, n), rng.uniform(0.0, 24.0, n)) % 24.0
    weekend = rng.random(n) < 2.0 / 7.0
    illnesses = np.clip(rng.negative_binomial(1.5, 0.35, n), 0, 15).astype(float)
    stay = np.clip(np.exp(rng.normal(1.0 + 0.06 * illnesses, 0.8, n)), 0.2, 60.0)
    push = np.array([0.0, 0.5, 0.9, -1.2, -0.6, 1.6, 2.2, 2.4, -2.0])[code]
    heavy = np.array([0.0, 0.1, 0.3, -0.9, -0.5, 0.9, 1.1, 1.3, 0.8])[code]
    office = ((hour > 9.0) & (hour < 17.0) & ~weekend).astype(float)
    ill = 1.0 - np.exp(-illnesses / 2.0)
    logit = -1.9 + push + 1.6 * office + 1.5 * ill - 0.7 * (stay < 1.0)
    untreated = rng.poisson(np.exp(0.1 + heavy - 0.55 * office + 0.9 * ill + 0.3 * (stay < 1.0))).astype(float)
    effect = -rng.binomial(untreated.astype(int), np.where(code >= 5, 0.35, 0.15)).astype(float)
    kind = np.where(weekend, "weekend", "weekday")
    columns = {"ward": np.array(WARDS)[code], "discharge_hour": hour, "day_type": kind, "illnesses": illnesses,
               "days_of_stay": stay}  # fmt: skip
    return columns, chance(logit), untreated, effect


UNSEEN = {
    "flu jab through the year": season, "school grant with an income limit": eligibility,
    "nurse visits and the body-mass J-curve": bmi_j_curve, "bone drug by age and sex": menopause,
    "kidney drug with ceilings": kidney, "irrigation by soil, rain and slope": irrigation,
    "training after an earnings dip": earnings_dip, "discharge support and rare wards": rare_wards,
}  # fmt: skip
REACH = ((0, 20), (20, 110), (-5, 40), (-4, 4), (70, 200), (0, 13), (0, 100), (0, 20))
OUTCOMES = {name: dpc.Bounded(*reach) for name, reach in zip(UNSEEN, REACH, strict=True)}
WARDS = ["general", "surgery", "cardiac", "maternity", "paediatric", "renal", "burns", "transplant", "hospice"]
COLUMNS = {
    "day_of_year": dpc.Bounded(0, 365), "age": dpc.Bounded(18, 90), "household_income": dpc.Bounded(0, 150),
    "household_size": dpc.Bounded(1, 8), "bmi": dpc.Bounded(14, 55), "egfr": dpc.Bounded(8, 140),
    "creatinine": dpc.Bounded(30, 500), "potassium": dpc.Bounded(2.8, 6.5), "diuretic_dose": dpc.Bounded(0, 160),
    "rain_mm": dpc.Bounded(100, 1600), "slope_percent": dpc.Bounded(0, 30), "manager_years": dpc.Bounded(0, 40),
    "earnings_two_years_ago": dpc.Bounded(0, 200), "earnings_last_year": dpc.Bounded(0, 200),
    "schooling_years": dpc.Bounded(6, 20), "discharge_hour": dpc.Bounded(0, 24), "illnesses": dpc.Bounded(0, 15),
    "days_of_stay": dpc.Bounded(0.2, 60),
    "area": dpc.Levels(["city", "town", "village"]), "tenure": dpc.Levels(["owner", "private rent", "social rent"]),
    "smoker": dpc.Levels(["never", "former", "current"]), "sex": dpc.Levels(["female", "male"]),
    "soil": dpc.Levels(["clay", "loam", "sand"]),
    "ward": dpc.Levels(WARDS), "day_type": dpc.Levels(["weekday", "weekend"]),
}  # fmt: skip
