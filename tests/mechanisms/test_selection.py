"""Private selection: the exact law, its privacy on all neighbours, and the noise that draws it.

False alarms of the statistical tests: at most 1e-10 per check, by the Dvoretzky-Kiefer-Wolfowitz bound.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcausal import Ledger, PureDP, Relation, simulated_noise
from dpcausal.errors import FenceError
from dpcausal.mechanisms import selection
from dpcausal.mechanisms.selection import noisy_max
from dpcausal.privacy.budget import CallBudget
from dpcausal.privacy.sensitivity import Norm, Query, Sensitivity
from tests.privacy.test_noise import allowed, distance, index_cdf, permute_and_flip


def query(scores: Any, bound: Any = 1) -> Query:
    return Query(scores, Sensitivity(bound, Norm.LINF, Relation.REPLACE_ONE, "kendall-tau"), "best")


def granted(epsilon: Any = 10**5) -> CallBudget:
    return Ledger.in_memory(PureDP(10**6), accept_large_epsilon=True).charge(PureDP(epsilon), task="test")


@pytest.mark.proves("noisy-max")
@pytest.mark.parametrize(("scores", "bound"), [([4, 0, 2, 4], 2), ([0.5, 0.25, -1.0], Fraction(1, 3))])
def test_the_index_has_the_stated_law(scores: list[Any], bound: Any) -> None:
    allotment, question = granted(), query(np.array(scores), bound)
    drawn = [noisy_max(question, allotment, PureDP(2)) for _ in range(2_000)]
    assert {type(index) for index in drawn} == {int}
    assert distance(drawn, index_cdf(permute_and_flip(scores, 2.0, float(bound))), integers=True) <= allowed(2_000)
    event = allotment.events[0]
    assert event.scale == pytest.approx(float(bound), rel=1e-11)  # the mean 2Δ/ε at ε = 2
    assert event.sensitivity >= bound and event.norm == "l-infinity" and event.loss == PureDP(2)
    with simulated_noise(9):
        inside = granted()
        drawn = [noisy_max(question, inside, PureDP(2)) for _ in range(4_000)]
    assert distance(drawn, index_cdf(permute_and_flip(scores, 2.0, float(bound))), integers=True) <= allowed(4_000)


@pytest.mark.parametrize("factor", [0.5, 0.95])
def test_a_selection_with_too_little_noise_releases_nothing(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    right = selection.laplace_scale
    monkeypatch.setattr(selection, "laplace_scale", lambda *arguments: right(*arguments) * factor)
    for scores in (np.zeros(3), np.zeros(3, dtype=int)):
        with pytest.raises(FenceError, match="too small"):
            noisy_max(query(scores), granted(), PureDP(1))
        with simulated_noise(1), pytest.raises(FenceError, match="too small"):
            noisy_max(query(scores), granted(), PureDP(1))
