"""What holds rows inside a task shows none of them."""

from typing import Any

import numpy as np
import pytest

from dpcausal.direction.scores.anm import Residuals
from dpcausal.independence.question import Sample
from dpcausal.papers.direction.training import Halves
from dpcausal.regression.smoother import Given, Smoothed

COLUMN = np.array([0.123456789])
TABLE = COLUMN[:, None]
GIVEN = Given(TABLE, np.empty((1, 0), dtype=np.int64))


@pytest.mark.parametrize(
    "holder",
    [
        Residuals(*[COLUMN] * 4, *[(0.0, 1.0)] * 4, *[0.123456789] * 4), Halves(*[COLUMN] * 4),
        Sample(TABLE, TABLE, GIVEN, TABLE, TABLE[:, 0] > 0), GIVEN, Smoothed(TABLE, 1.0),
    ],
    ids=lambda holder: type(holder).__name__,
)  # fmt: skip
def test_a_holder_of_rows_shows_no_value(holder: Any) -> None:
    assert "0.1234" not in repr(holder) + str(holder)
