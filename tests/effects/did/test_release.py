"""A cohort's mean that shortening biases: it is left out, or its errors count the bias."""

from functools import cache
from typing import Any

import numpy as np
import pytest

import dpcausal as dpc
from dpcausal.effects.did.contrasts import taken_of_mean
from dpcausal.statistics.moments import clip_rows
from tests import factories
from tests.effects.tables import paths_of

SCHEMA = dpc.Schema({"t": dpc.Levels(range(1, 6)), "g": dpc.Levels(["2", "3", "99"]), "y": dpc.Bounded(-15, 15)})
LOSS = dpc.ApproxDP(1, 1e-6)


@cache
def found(seed: int, share: float, effect: float) -> Any:
    """Return the effects of cohorts 2 and 3, of 30 % and a share of 20,000 persons; that of cohort 2 is 1."""
    rng = np.random.default_rng([5, seed])
    g, t = rng.choice([2, 3, 99], 20_000, p=[0.3, share, 0.7 - share]), np.arange(1, 6)
    after = t >= g[:, None]
    y = rng.normal(size=(20_000, 1)) + rng.normal(size=(20_000, 5)) + after * np.where(g == 3, effect, 1.0)[:, None]
    columns = paths_of(np.clip(y, -15, 15), g=g.astype(str).astype(object))
    with dpc.simulated_noise(seed):
        table = factories.table(columns, SCHEMA, LOSS, person="id")
        return dpc.did(table, time="t", outcome="y", cohort="g", loss=LOSS)


@pytest.mark.replication
@pytest.mark.parametrize(("share", "effect"), [(0.01, 6.0), (0.02, 4.0), (0.03, 3.0)])
def test_cells_of_a_small_cohort_with_a_large_effect_hold_or_are_left_out(share: float, effect: float) -> None:
    missed = cells = 0
    for seed in range(10):
        for cell in found(seed, share, effect).by_cohort:
            if cell.cohort == "3" and cell.time in ("3", "4", "5") and cell.interval is not None:
                cells += 1
                missed += not cell.interval[0] <= effect <= cell.interval[1]
    assert missed <= 4 and (cells >= 10 or effect > 3)


def test_a_small_cohort_like_the_others_stays_and_one_that_is_left_out_is_named() -> None:
    cohorts = {cell.cohort for seed in range(5) for cell in found(seed, 0.01, 1.0).by_cohort}
    assert cohorts == {"2", "3"}
    without = next(one for one in (found(seed, 0.01, 6.0) for seed in range(10)) if len(one.release.enough) == 2)
    assert any("cohort 3" in note for note in without.notes) and without.att.estimate < 1.5


@pytest.mark.parametrize("length", [0.5, 1.5, 3.0])
def test_what_shortening_took_of_a_mean_is_what_it_takes_of_rows_about_it(length: float) -> None:
    rows = np.random.default_rng(1).normal(size=(400_000, 3)) + np.array([length, 0.0, 0.0])
    mean = clip_rows(rows, 3.0, 30).mean(axis=0) * 2.0**-30
    assert mean * (1 + taken_of_mean(mean, 3.0)) == pytest.approx([length, 0, 0], abs=0.02 * max(length, 1))
