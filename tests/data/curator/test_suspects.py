"""Common codes of a missing answer are remarked where they are unlike their neighbours, and honest columns are not."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc

ROWS = 5_000
RNG = np.random.default_rng(7)
GONE = RNG.random(ROWS) < 0.08
AGES, PRESSURES = RNG.integers(18, 91, ROWS).astype(float), RNG.normal(125, 15, ROWS).round()
BIRTHS = np.datetime64("1940-01-01") + RNG.integers(0, 20_000, ROWS)
DATES = dpc.Bounded("1899-01-01", "2020-12-31")


def coded(values: Any, *codes: Any) -> Any:
    """Return the values with codes, in turn, where the answer is missing."""
    placed = np.array(values, dtype=object)
    placed[GONE] = [codes[place % len(codes)] for place in range(GONE.sum())]
    return placed if isinstance(codes[0], str) else placed.astype(np.array(values).dtype)


def remarked(values: Any, column: Any) -> int:
    return sum("missing=[" in note for note in dpc.Schema({"x": column}).check({"x": values}).notes)


def answers(*levels: Any) -> Any:
    return np.array(levels, dtype=object)[RNG.integers(0, len(levels), ROWS)]


CODED: dict[str, Any] = {
    "-1 beside 0 and 1": (coded(RNG.integers(0, 2, ROWS), -1), dpc.Levels([0, 1, -1]), 1),
    "-1 beside 0 to 4": (coded(RNG.integers(0, 5, ROWS), -1), dpc.Levels([-1, 0, 1, 2, 3, 4]), 1),
    "unknown": (coded(answers("no", "yes"), "unknown"), dpc.Levels(["no", "yes", "unknown"]), 1),
    "refused and not stated": (
        coded(answers("a", "b"), "Refused", "not stated"), dpc.Levels(["a", "b", "Refused", "not stated"]), 2),
    "n/a": (coded(answers("no", "yes"), "n/a"), dpc.Levels(["no", "yes", "n/a"]), 1),
    "1900-01-01, with one other date": (np.where(GONE, "1900-01-01", "1980-05-05"), DATES, 1),
    "1900-01-01 among births": (np.where(GONE, "1900-01-01", BIRTHS.astype(str)), DATES, 1),
    "1970-01-01 among births": (np.where(GONE, "1970-01-01", BIRTHS.astype(str)), DATES, 1),
    "a blood pressure of 0": (coded(PRESSURES, 0.0), dpc.Bounded(0, 250), 1),
    "an age of 0": (coded(AGES, 0.0), dpc.Bounded(0, 110), 1),
    "77 among ages": (coded(AGES, 77.0), dpc.Bounded(0, 110), 1),
    "77, 88 and 99 after ages to 60": (coded(np.clip(AGES, 18, 60), 77.0, 88.0, 99.0), dpc.Bounded(0, 110), 3),
    "8 and 9 after 1 to 5": (coded(RNG.integers(1, 6, ROWS).astype(float), 8.0, 9.0), dpc.Bounded(0, 10), 2),
}  # fmt: skip


@pytest.mark.parametrize("case", CODED)
def test_a_common_code_is_remarked(case: str) -> None:
    values, column, codes = CODED[case]
    assert remarked(values, column) == codes


HONEST: dict[str, Any] = {
    "a scale from -1 to 1": (answers(-1, 0, 1), dpc.Levels([-1, 0, 1])),
    "as many unknown as known": (answers("no", "yes", "unknown"), dpc.Levels(["no", "yes", "unknown"])),
    "days of birth": (BIRTHS.astype(str), DATES),
    "incomes, a third of them 0": (
        np.where(RNG.random(ROWS) < 0.3, 0.0, RNG.lognormal(9, 1, ROWS).round()), dpc.Bounded(0, 1e6)),
    "cigarettes": (np.where(RNG.random(ROWS) < 0.7, 0, RNG.poisson(12, ROWS)), dpc.Bounded(0, 100)),
    "doses": (RNG.choice([0.0, 50.0, 100.0], ROWS), dpc.Bounded(0, 100)),
    "hours, four in ten of them 40": (
        np.where(RNG.random(ROWS) < 0.4, 40, np.clip(RNG.normal(40, 12, ROWS).round(), 1, 99)), dpc.Bounded(0, 100)),
    "ages in round numbers": ((AGES / 5).round() * 5, dpc.Bounded(0, 110)),
    "counts to 9": (RNG.poisson(3, ROWS).clip(0, 9), dpc.Bounded(0, 9)),
    "temperatures about 0": (RNG.normal(0, 8, ROWS).round(), dpc.Bounded(-50, 50)),
    "pressures": (PRESSURES, dpc.Bounded(0, 250)),
}  # fmt: skip


@pytest.mark.parametrize("case", HONEST)
def test_a_column_without_codes_is_not_remarked(case: str) -> None:
    assert remarked(*HONEST[case]) == 0


def test_a_code_whose_meaning_is_declared_is_not_remarked() -> None:
    values = CODED["77 among ages"][0]
    assert remarked(values, dpc.Bounded(0, 110, missing=[77])) == 0
    values = CODED["unknown"][0]
    assert remarked(values, dpc.Levels(["no", "yes"], missing=["unknown"])) == 0
    assert remarked(values, dpc.Levels(["no", "yes", "unknown"], other="unknown")) == 0
