"""What each test finds under independence has the law that its p-value takes, on skewed, tied and many columns.

The rows are those of the registry.  Means that are off by 5.7 standard errors: false alarms below 1e-8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpcausal.independence import null_laws as law
from dpcausal.independence.methods import ALL, METHODS
from dpcausal.independence.methods.gcm import Gcm
from tests.registry.null_laws import FALSE_ALARM, LAWS, TOO_NARROW, LawRow, excess, found_on

CASES = [(name, row) for name, rows in LAWS.items() for row in rows]
ROW = LawRow("rare levels, nothing given", size=800)


def test_every_test_with_a_pvalue_has_a_row_whose_law_is_no_bound() -> None:
    assert {kind.name for kind in ALL if kind.releases_pvalue} == set(LAWS)
    assert all(any(not row.bound for row in rows) for rows in LAWS.values())


@pytest.mark.parametrize(("name", "row"), CASES, ids=[f"{name}, {row.null}" for name, row in CASES])
def test_a_true_null_has_the_law_that_the_pvalue_takes(name: str, row: LawRow) -> None:
    """And a law whose variance is a quarter too small is told from it."""
    method = METHODS[name](**row.options)
    scores, squares, expected = found_on(method, row)
    assert excess(squares, expected) < FALSE_ALARM and excess(scores**2, 1.0) < FALSE_ALARM
    assert np.mean(np.abs(scores) > 1.96) < 0.05 + FALSE_ALARM * (0.05 * 0.95 / scores.size) ** 0.5
    if hasattr(method, "blocks"):  # the law of ranks is exact: neither too wide
        assert excess(squares, expected) > -FALSE_ALARM and abs(excess(scores, 0.0)) < FALSE_ALARM
    assert row.bound or excess(squares, TOO_NARROW * expected) > FALSE_ALARM


class Wide(Gcm):
    """Scores of the standard deviation 1.25: "a score must be standard normal" is broken."""

    def score(self, *arguments: Any) -> float:
        return 1.25 * super().score(*arguments)


class Leaning(Gcm):
    """The square's rank, one-sided: all of one sign."""

    def score(self, *arguments: Any) -> float:
        return abs(super().score(*arguments))


@pytest.mark.parametrize("kind", [Wide, Leaning])
def test_scores_of_another_law_are_told(kind: type[Gcm]) -> None:
    scores, squares, expected = found_on(kind(), ROW)
    assert excess(scores**2, 1.0) > FALSE_ALARM or abs(excess(scores, 0.0)) > FALSE_ALARM
    assert kind is Leaning or excess(squares, expected) > 3


def test_a_law_of_blocks_that_is_too_narrow_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = law._one_term(law.REACH).copy()
    places = np.abs(np.arange(narrow.size) - narrow.size // 2)
    narrow[places == 0] += 0.125
    narrow[places == law.REACH] -= 0.0625
    monkeypatch.setattr(law, "_one_term", lambda reach: narrow)
    law.block_law.cache_clear()
    try:
        _, squares, expected = found_on(Gcm(), LAWS["gcm"][1])
    finally:
        law.block_law.cache_clear()
    assert excess(squares, expected) > FALSE_ALARM
