"""Bounds on a condition: the change of a whole answer is what the proofs of the mechanisms ask for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpcausal.privacy.sensitivity import Norm, conditional_change

ANSWERS: dict[str, tuple[Norm, Any, Any, float]] = {
    "distances that move": (Norm.TESTED, [5, 7, 0.3], [4, 9, 0.3], 2.0),
    "a value beside distances of at most one": (Norm.TESTED, [1, 0, 0.0], [1, 1, 9.0], 1.0),
    "a value beside a distance of two on one side": (Norm.TESTED, [2, 0, 0.0], [1, 1, 9.0], 9.0),
    "a value beside one distance": (Norm.TESTED, [2, 0.0], [1, 0.5], 1.0),
    "an answer that is no number": (Norm.TESTED, [2, 2, math.nan], [2, 2, 0.0], math.inf),
    "answers of two shapes": (Norm.TESTED, [2, 2, 0.0], [2, 0.0], math.inf),
    "another norm": (Norm.L1, [2, 2.0], [2, 0.0], math.inf),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_change_is_what_the_condition_says(name: str) -> None:
    norm, one, other, change = ANSWERS[name]
    assert conditional_change(one, other, norm) == conditional_change(np.array(other), np.array(one), norm) == change
