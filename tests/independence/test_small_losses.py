"""A loss that is too small for a method is refused before it is spent."""

from __future__ import annotations

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.errors import ParameterError
from tests.independence.neighbours import SCHEMA, frame


def test_a_loss_too_small_for_a_smooth_bound_is_refused_before_the_spend() -> None:
    ledger = dpc.Ledger.in_memory(dpc.ApproxDP(1, 1e-6))
    table = dpc.Table(frame(np.zeros((200, 4))), SCHEMA, ledger, missing="impute")
    with pytest.raises(ParameterError, match="too small"):
        dpc.ci_test(table, "x", "y", given=["z"], loss=dpc.ApproxDP(1e-3, 1e-9), method="gcm-smooth")
    with dpc.simulated_noise(1):  # nothing was spent: the whole budget still pays for a test
        dpc.ci_test(table, "x", "y", given=["z"], loss=dpc.ApproxDP(1, 1e-6), method="gcm-smooth")
