"""Tables of counts and histograms."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from dpcausal.privacy.sensitivity import Norm
from dpcausal.statistics.strata import contingency, contingency_sensitivity, histograms_sensitivity
from tests.conformance import check_claim

Rows = Any


def table(rows: Rows) -> Any:
    codes = np.rint(rows).astype(np.int64)
    return contingency(list(codes.T), [2, 3, 2]).ravel()


@pytest.mark.proves("contingency-table")
def test_a_replaced_record_moves_a_table_by_root_two() -> None:
    check_claim(table, lambda m: contingency_sensitivity(Norm.L2), sizes=(3, 9), columns=3, high=[1.0, 2.0, 1.0])


def test_the_table_counts_every_declared_cell() -> None:
    codes = [np.array([0, 1, 1, 0, 1]), np.array([2, 0, 0, 2, 1])]
    counts = contingency(codes, [2, 3])
    for cell in itertools.product(range(2), range(3)):
        assert counts[cell] == sum((a, b) == cell for a, b in zip(*codes, strict=True))


def test_the_roots_are_rounded_up() -> None:
    assert float(contingency_sensitivity(Norm.L2).bound) ** 2 >= 2
    assert float(histograms_sensitivity(7).bound) > math.sqrt(14)
