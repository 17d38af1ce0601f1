"""What a donor adds to a release depends on its own row alone, bit for bit, wherever its name puts it."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpcausal as dpc
from dpcausal.audit import compare
from dpcausal.mechanisms.gate import recording_gate
from tests.synthetic_control.neighbours import WAYS

BOUNDS = dpc.Bounded(-1, 1)


def answers(seed: int) -> Any:
    """Return fixed answers under which the factor model has dense slopes of ordinary size."""

    def answer(event: Any, value: Any) -> Any:
        if event.label in ("mean", "directions", "matched donors"):
            size = 1e11 if event.label == "directions" else 1e3 * value.size
            fixed = np.rint(size * np.random.default_rng(seed).normal(size=value.shape))
            return fixed.astype(value.dtype)
        return np.full_like(value, 10**6)

    return answer


def ask(names: list[str], rows: Any, target: Any, start: int, **arguments: Any) -> Any:
    """Ask of a long frame, whose donors are put in the order of their names."""
    periods = rows.shape[1]
    columns = {
        "unit": np.repeat(["target", *names], periods), "time": np.tile(np.arange(periods), len(names) + 1),
        "y": np.concatenate([target, rows.ravel()]),
    }  # fmt: skip
    panel = dpc.Panel(
        pd.DataFrame(columns), unit="unit", time="time", outcome="y", target="target", start=start, bounds=BOUNDS,
        ledger=dpc.Ledger.in_memory(arguments["loss"], unit="unit"),
    )  # fmt: skip
    return dpc.synthetic_control(panel, force=True, **arguments)


def twins(seed: int, others: float) -> tuple[Any, Any, int]:
    """Return donors of whom all but some are the target's twins, so that their residuals tie with its own."""
    rng = np.random.default_rng(seed)
    n, before, after = int(rng.integers(100, 400)), int(rng.integers(6, 38)), int(rng.integers(1, 4))
    target = np.rint(4096 * rng.uniform(-0.5, 0.5, before + after)) / 4096
    rows = np.tile(target, (n, 1))
    far = rng.random(n) < others
    rows[far] = rng.uniform(-1, 1, (int(far.sum()), before + after))
    return rows, target, before


@pytest.mark.proves("mixing-scores")
@pytest.mark.proves("ratio-count")
@pytest.mark.parametrize("name", ["factor", "matched by epsilon", "matched by rho"])
def test_a_donor_replaced_by_one_whose_name_sorts_elsewhere_moves_no_sum_past_its_bound(name: str) -> None:
    """In a matrix product the last bits of a row's result depend on its place: a count moved by twice its bound."""
    for seed in range(20):
        rows, target, start = twins(seed, others=0.05)
        rng = np.random.default_rng(1000 + seed)
        last, first = rng.uniform(-1, 1, (2, 1, rows.shape[1]))
        names = [f"d{k:04}" for k in range(len(rows))]
        audit = compare(
            partial(ask, [*names, "zz"], np.vstack([rows, last]), target, start, **WAYS[name]),
            partial(ask, ["a", *names], np.vstack([first, rows]), target, start, **WAYS[name]),
            answers=answers(seed),
        )
        assert not audit.violated, (seed, audit.faults)


@pytest.mark.parametrize("name", ["factor", "matched by epsilon", "matched by rho"])
def test_the_order_of_the_donors_changes_no_number_that_comes_to_the_gate(name: str) -> None:
    for seed in range(10):
        rows, target, start = twins(seed, others=0.5)
        names = [f"d{k:04}" for k in range(len(rows))]
        found = []
        for order in (np.arange(len(rows)), np.random.default_rng(seed).permutation(len(rows))):
            with recording_gate(answers(seed)) as recording:
                ask(names, rows[order], target, start, **WAYS[name])
            found.append(recording.passages)
        assert len(found[0]) == len(found[1]) > 1
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one.value, other.value, err_msg=f"{seed}: {one.event.label}")
