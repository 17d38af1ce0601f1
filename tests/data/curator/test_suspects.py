"""Common codes of a missing answer are remarked where they are unlike their neighbours, and honest columns are not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc

ROWS = 5_000
RNG = np.random.default_rng(7)
GONE = RNG.random(ROWS) < 0.08
AGES, PRESSURES = RNG.integers(18, 91, ROWS).astype(float), RNG.normal(125, 15, ROWS).round()
SCORES, BIRTHS = RNG.normal(15, 5, ROWS).round(1), np.datetime64("1940-01-01") + RNG.integers(0, 20_000, ROWS)


def coded(values: Any, *codes: Any) -> Any:
    """Return the values with codes, in turn, where the answer is missing."""
    placed = np.array(values, dtype=object)
    placed[GONE] = [codes[place % len(codes)] for place in range(GONE.sum())]
    return placed if isinstance(codes[0], str) else placed.astype(np.array(values).dtype)


def remarked(values: Any, column: Any) -> int:
    return sum("missing=[" in note for note in dpc.Schema({"x": column}).check({"x": values}).notes)


def answers(*levels: Any) -> Any:
    return np.array(levels, dtype=object)[RNG.integers(0, len(levels), ROWS)]


def dates(first: str, others: Any) -> Any:
    return np.where(GONE, first, others)


DATES, AGE = ("1899-01-01", "2020-12-31"), (0, 110)
CODED: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {  # values, bounds or levels, codes among them
    "-1 beside 0 and 1": (coded(RNG.integers(0, 2, ROWS), -1), [0, 1, -1], (-1,)),
    "-1 beside 0 to 4": (coded(RNG.integers(0, 5, ROWS), -1), [-1, 0, 1, 2, 3, 4], (-1,)),
    "9 beside 0 and 1": (answers(0, 1, 9), [0, 1, 9], (9,)), "'9'": (answers("f", "m", "9"), ["f", "m", "9"], ("9",)),
    "88 and 99": (answers(1, 2, 3, 88, 99), [1, 2, 3, 88, 99], (88, 99)),
    "unknown": (coded(answers("no", "yes"), "unknown"), ["no", "yes", "unknown"], ("unknown",)),
    "refused and not stated": (coded(answers("a", "b"), "Refused", "not stated"), ["a", "b", "Refused", "not stated"],
                               ("Refused", "not stated")),
    "n/a": (coded(answers("no", "yes"), "n/a"), ["no", "yes", "n/a"], ("n/a",)),
    "NA": (answers("no", "yes", "NA"), ["no", "yes", "NA"], ("NA",)),
    "a point": (answers("no", "yes", "."), ["no", "yes", "."], (".",)),
    "1900-01-01, with one other date": (dates("1900-01-01", "1980-05-05"), DATES, ("1900-01-01",)),
    "1900-01-01 among births": (dates("1900-01-01", BIRTHS.astype(str)), DATES, ("1900-01-01",)),
    "1970-01-01 among births": (dates("1970-01-01", BIRTHS.astype(str)), DATES, ("1970-01-01",)),
    "a blood pressure of 0": (coded(PRESSURES, 0.0), (0, 250), (0,)), "an age of 0": (coded(AGES, 0.0), AGE, (0,)),
    "77 among ages": (coded(AGES, 77.0), AGE, (77,)),
    "77, 88 and 99 after ages to 60": (coded(np.clip(AGES, 18, 60), 77.0, 88.0, 99.0), AGE, (77, 88, 99)),
    "8 and 9 after 1 to 5": (coded(RNG.integers(1, 6, ROWS).astype(float), 8.0, 9.0), (0, 10), (8, 9)),
    **{f"{code} within or beyond {bounds[1]}": (coded(AGES, code), bounds, (code,)) for code, bounds in (
        (999.0, (0, 1000)), (99.0, AGE), (9999.0, AGE), (-9.0, AGE), (-1.0, (-5, 110)), (0.5, (1, 110)))},
    **{f"{code} among scores to {bounds[1]}": (coded(SCORES, code), bounds, (code,)) for code, bounds in (
        (-9.0, (-30, 50)), (17.0, (-30, 16)), (7.0, (-30, 50)))},
}  # fmt: skip


@pytest.mark.parametrize("case", CODED)
def test_a_common_code_is_remarked_until_it_is_declared(case: str) -> None:
    """Seen to fail: 8 % of 999, -9, 99 within the bounds passed the check without a word."""
    values, column, codes = CODED[case]
    if isinstance(column, tuple):
        found, known = dpc.Bounded(*column), dpc.Bounded(*column, missing=codes)
    else:
        left = [level for level in column if level not in codes]
        found, known = dpc.Levels(column), dpc.Levels(left, missing=codes)
    assert remarked(values, found) == len(codes) and remarked(values, known) == 0


BETWEEN = dpc.Bounded(-50, 150)
HONEST: dict[str, Any] = {
    **{f"levels {levels}": (answers(*levels), dpc.Levels(levels)) for levels in (
        [-1, 0, 1], ["no", "yes", "unknown"], [*range(10)], ["none", "drug"], [7, 8, 9], [False, True], ["a", "b"])},
    "unknown as another level": (CODED["unknown"][0], dpc.Levels(["no", "yes"], other="unknown")),
    "days of birth": (BIRTHS.astype(str), dpc.Bounded(*DATES)),
    "incomes, a third of them 0": (
        np.where(RNG.random(ROWS) < 0.3, 0.0, RNG.lognormal(9, 1, ROWS).round()), dpc.Bounded(0, 1e6)),
    "cigarettes": (np.where(RNG.random(ROWS) < 0.7, 0, RNG.poisson(12, ROWS)), dpc.Bounded(0, 100)),
    "doses": (RNG.choice([0.0, 50.0, 100.0], ROWS), dpc.Bounded(0, 100)),
    "hours, four in ten of them 40": (
        np.where(RNG.random(ROWS) < 0.4, 40, np.clip(RNG.normal(40, 12, ROWS).round(), 1, 99)), dpc.Bounded(0, 100)),
    "ages": (AGES, BETWEEN), "ages in round numbers": ((AGES / 5).round() * 5, dpc.Bounded(*AGE)),
    "scores": (SCORES, BETWEEN), "digits": (RNG.integers(0, 10, ROWS).astype(float), BETWEEN),
    "-1, 0 and 1": (RNG.integers(-1, 2, ROWS).astype(float), BETWEEN), "counts": (RNG.poisson(2, ROWS), BETWEEN),
    "counts to 9": (RNG.poisson(3, ROWS).clip(0, 9), dpc.Bounded(0, 9)),
    "0 to 99": (RNG.integers(0, 100, ROWS), BETWEEN),
    "shares at their ends": (np.clip(RNG.normal(50, 30, ROWS).round(), 0, 100), BETWEEN),
    "1 and 5": (np.repeat([1.0, 5.0], ROWS // 2), BETWEEN),
    "temperatures about 0": (RNG.normal(0, 8, ROWS).round(), dpc.Bounded(-50, 50)),
    "pressures": (PRESSURES, dpc.Bounded(0, 250)),
}  # fmt: skip


@pytest.mark.parametrize("case", HONEST)
def test_a_column_without_codes_is_not_remarked(case: str) -> None:
    assert remarked(*HONEST[case]) == 0


def test_texts_that_are_declared_by_bounds_are_remarked_and_called_no_codes(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("x\n" + "yes\nno\n" * 50)
    notes = dpc.Schema({"x": dpc.Bounded(0, 1)}).check(str(tmp_path / "d.csv")).notes
    assert notes and not any("missing=[" in note for note in notes)
