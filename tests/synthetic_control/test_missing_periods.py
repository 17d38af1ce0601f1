"""A target that lacks periods before its start: shown as missing, left out for all, and said."""

from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.study.report.figures import Figures
from tests.synthetic_control.neighbours import answer_to, panel_of

LACKING = [4, 5, 6, 12, 13]


def answer(target: Any, donors: Any, loss: Any, times: Any = None, start: int = 14) -> dpc.SyntheticControl:
    return answer_to(panel_of(donors, target, loss, start, dpc.Bounded(0, 80), times), loss)


@pytest.mark.parametrize("loss", [dpc.PureDP(4), dpc.ApproxDP(4, 1e-6)])
def test_periods_that_a_target_lacks_are_never_shown_as_observed_and_the_answer_is_that_without_them(loss: Any) -> None:
    rng = np.random.default_rng(14)
    shared = 20 + 3 * np.sin(np.arange(20))
    rows = rng.uniform(0.8, 1.2, 801)[:, None] * shared + rng.normal(0, 0.5, (801, 20))
    target = rows[0].copy()
    target[LACKING] = np.nan
    found = answer(target, rows[1:], loss)
    others = rows[1:].copy()
    others[:, LACKING] = rng.uniform(0, 80, (800, 5))  # no donor counts in a period that the target lacks
    again = answer(target, others, loss)
    np.testing.assert_array_equal(found.counterfactual, again.counterfactual)
    assert (found.interval, found.pvalue) == (again.interval, again.pvalue)
    plain = answer(rows[0], rows[1:], loss)
    assert abs(found.att - plain.att) < 1.5
    assert np.flatnonzero(np.isnan(found.past)).tolist() == LACKING and found.past_times == tuple(range(14))
    assert [row["observed"] for row in found.rows() if row["time"] in LACKING] == [None] * 5
    assert len(found.rows()) == 20 and "null" in found.to_json()
    said = [line for line in found.headline() if all(str(t) in line for t in LACKING) and "missing" in line]
    assert len(said) == 1 and not any("missing" in line for line in plain.headline())
    assert "nan" not in Figures().of(found, "text")


def test_a_placebo_in_time_uses_the_observed_periods() -> None:
    rng = np.random.default_rng(3)
    rows = rng.uniform(0.8, 1.2, 2001)[:, None] * (20 + 3 * np.sin(np.arange(20))) + rng.normal(0, 0.1, (2001, 20))
    target = rows[0].copy()
    target[[4, 5]] = np.nan
    loss = dpc.ApproxDP(8, 1e-6)
    found = answer(target, rows[1:], loss)
    assert found.method == "factor" and found.in_time(10).shape == (4,)
    assert np.abs(found.in_time(10)).max() < 1.5
    with pytest.raises(dpc.errors.ParameterError):
        found.in_time(4)
