"""The scores of residuals that only the published systems have."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcausal.papers.direction.scores import SCORES, reaches
from tests.direction.neighbours import Rows
from tests.direction.scores.test_anm import fitted, pair


@pytest.mark.parametrize("score", SCORES)
def test_columns_that_change_places_change_the_scores(score: str) -> None:
    x, y = pair(300)
    assert SCORES[score](fitted(y, x)) == SCORES[score](fitted(x, y))[::-1]


def test_log_spreads_are_those_of_numpy() -> None:
    rest = fitted(*pair(402))
    forward, backward = SCORES["variance"](rest)
    assert forward == pytest.approx(math.log(np.var(rest.x)) + math.log(np.var(rest.left_y)))
    assert backward == pytest.approx(math.log(np.var(rest.y)) + math.log(np.var(rest.left_x)))

    def spread(values: Rows) -> float:
        low, high = np.percentile(values, [25, 75], method="inverted_cdf")
        return math.log(high - low)

    assert SCORES["iqr"](rest) == pytest.approx(
        (spread(rest.x) + spread(rest.left_y), spread(rest.y) + spread(rest.left_x))
    )
    (of_x, of_left_y), (of_y, of_left_x) = reaches(rest)
    for reach, values in ((of_x, rest.x), (of_left_y, rest.left_y), (of_y, rest.y), (of_left_x, rest.left_x)):
        assert math.log(reach.iqr) == pytest.approx(spread(values))
