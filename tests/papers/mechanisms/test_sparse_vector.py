"""The sparse vector: its exact loss on small lists, and what it may be asked; its law is audited with all others."""

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest

from dpcausal.errors import FenceError, LossError
from dpcausal.papers.mechanisms.sparse_vector import first_above
from dpcausal.privacy.budget import Event
from dpcausal.privacy.loss import ZCDP, NoPrivacy, PureDP
from dpcausal.privacy.sensitivity import Norm
from tests.registry import laws
from tests.registry.exact import least_epsilon
from tests.registry.exact_rows import moved
from tests.registry.rows import allotted, queried

DECLARED = Event("sparse-vector", "list", PureDP(1), 1.0, "linf", 2.0, "sparse-vector")


@cache
def law(answers: tuple[int, ...]) -> laws.Reals:
    return laws.sparse_vector(answers, DECLARED, np.empty(0))


@pytest.mark.proves("sparse-vector")
def test_the_exact_loss_is_never_above_epsilon_over_all_small_lists() -> None:
    lists = itertools.product(range(-3, 4), repeat=3)
    losses = [least_epsilon(law(answers), law(other)) for answers in lists for other in moved(answers)]
    assert len(losses) > 8_000
    assert 0.7 < max(losses) <= 1 + 1e-9


def test_without_privacy_it_is_exact() -> None:
    for answers, found in (([1, 2, 3], 1), ([1, 1], None)):
        assert first_above(queried(answers, Norm.LINF), allotted(NoPrivacy()), NoPrivacy(), threshold=2) == found


@pytest.mark.parametrize(("error", "answers", "norm", "loss"), [
    (FenceError, [1.5], Norm.LINF, PureDP(1)), (FenceError, [1], Norm.L1, PureDP(1)),
    (FenceError, 3, Norm.LINF, PureDP(1)), (LossError, [1], Norm.LINF, ZCDP(1)),
])  # fmt: skip
def test_what_does_not_fit_is_refused(error: type[Exception], answers: Any, norm: Norm, loss: Any) -> None:
    with pytest.raises(error):
        first_above(queried(answers, norm), allotted(PureDP(1)), loss, threshold=0)
