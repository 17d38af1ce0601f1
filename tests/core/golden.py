"""Calls whose answers an earlier version kept in the ledgers of this folder: each must be answered from there for good.

Methods stand with their options, so that a changed default is no reason for a line to change.  ``python -m
tests.core.golden`` adds what is new in ``CALLS`` and touches no line that is there.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dpcausal as dpc
from dpcausal.privacy.noise import generator_from_seed

HERE = Path(__file__).parent
BUDGET = dpc.ApproxDP(20, 1e-4)
N, PERSONS = 2500, 900
SCHEMA = dpc.Schema({
    "a": dpc.Levels([0, 1]), "b": dpc.Levels(["no", "yes"], other="no"), "u": dpc.Bounded(-4, 4),
    "v": dpc.Bounded(-4, 4, cuts=[-1, 1]),
})  # fmt: skip
PERIODS = dpc.Schema({"t": dpc.Levels([1, 2, 3]), "g": dpc.Levels(["2", "never"]), "y": dpc.Bounded(0, 1)})
PURE, GAUSSIAN = dpc.PureDP(0.5), dpc.ApproxDP(2, 1e-6)
methods = dpc.methods


def table(ledger: dpc.Ledger, seed: int | None = None, **more: Any) -> dpc.Table:
    """Return rows of a seed; without one rows that are all alike, of which no answer can come."""
    coins = generator_from_seed(seed or 0)
    columns = {"a": coins.integers(0, 2, N), "b": np.array(["no", "yes"])[coins.integers(0, 2, N)],
               "u": coins.normal(size=N), "v": coins.normal(size=N),
               "unused": np.full(N, "a")}  # fmt: skip
    if seed is None:
        columns = {name: np.repeat(values[:1], N) for name, values in columns.items()}
    return dpc.Table(columns, SCHEMA, ledger, name="golden", **more)


def persons(ledger: dpc.Ledger, seed: int | None = None) -> dpc.Table:
    """Return three periods of persons."""
    frame = {"id": np.repeat(np.arange(PERSONS), 3), "t": np.tile([1, 2, 3], PERSONS),
             "g": np.repeat(np.array(["2", "never"])[np.arange(PERSONS) % 2], 3),
             "y": generator_from_seed(seed or 0).random(3 * PERSONS)}  # fmt: skip
    return dpc.Table(frame, PERIODS, ledger, name="golden persons", person="id")


def panel(ledger: dpc.Ledger, seed: int | None = None) -> dpc.Panel:
    """Return a hundred donors and one target."""
    values = np.zeros((101, 12)) if seed is None else generator_from_seed(seed).uniform(-1, 1, (101, 12))
    values[0] = np.sin(np.arange(12.0))
    series = {"unit": np.repeat(np.arange(101), 12), "year": np.tile(np.arange(12), 101), "y": values.ravel()}
    return dpc.Panel(series, unit="unit", time="year", outcome="y", target=0, start=9, bounds=dpc.Bounded(-1, 1),
                     ledger=ledger, name="golden")  # fmt: skip


CALLS: dict[str, Callable[..., Any]] = {
    "ci_test": lambda to, s=None, **w: dpc.ci_test(
        table(to, s).where("v", at_least=-3, share=0.9).where("b", among=["yes", "no"]), "a", "u", given=["v", "b"],
        alpha=0.1, loss=PURE,
        method=methods.Gcm(blocks=8, regression="additive", resamples=19, workers=1), **w),
    "ci_tests": lambda to, s=None, **w: dpc.ci_tests(
        table(to, s), [("a", "b", []), ("a", "u", [])], loss=PURE, method=methods.Gcm(blocks=8, resamples=19),
        correction="none", **w),
    "direction": lambda to, s=None, **w: dpc.direction(
        table(to, s), "u", "v", loss=PURE, score="lsnm", alpha=0.1, method=methods.MajorityVote(blocks=41), **w),
    "direction_all": lambda to, s=None, **w: dpc.direction_all(
        table(to, s), pairs=[("v", "u")], scores=["lsnm"], loss=PURE, alpha=0.1,
        method=methods.MajorityVote(blocks=41), **w),
    "discover": lambda to, s=None, **w: dpc.discover(
        table(to, s), columns=["a", "b", "u"], loss=GAUSSIAN, alpha=0.01, method=methods.Parities(max_order=1),
        knowledge=dpc.Knowledge(forbidden=[("b", "a"), ("a", "b")], tiers=[["b", "a"], ["u"]]), **w),
    "effect": lambda to, s=None, **w: dpc.effect(
        table(to, s), treatment="a", outcome="u", adjust=["v", "b"], groups="b", treated=1, control=0, loss=PURE,
        method=methods.Stratified(), **w),
    "cells": lambda to, s=None, **w: dpc.cells(table(to, s), by=["b", "a"], values=["u"], loss=PURE, **w),
    "moments": lambda to, s=None, **w: dpc.moments(
        table(to, s), ["v", "u"], robust_for=("u", ["v"]), loss=GAUSSIAN, **w),
    "did": lambda to, s=None, **w: dpc.did(
        persons(to, s), time="t", outcome="y", cohort="g", loss=dpc.ApproxDP(4, 1e-6), **w),
    "discontinuity": lambda to, s=None, **w: dpc.discontinuity(
        table(to, s), running="u", outcome="v", cutoff=0, treatment="a", bins=6, curvature=2, loss=dpc.PureDP(4), **w),
    "synthetic_control": lambda to, s=None, **w: dpc.synthetic_control(
        panel(to, s), loss=dpc.PureDP(1), coverage=0.8, method=methods.Matched(kernel_width=1.0, cut=0.5), **w),
}  # fmt: skip


def ledger_of(call: str) -> Path:
    """Return the ledger that keeps a call's answer: a ledger protects one unit."""
    return HERE / f"golden_{'persons' if call == 'did' else 'units' if call == 'synthetic_control' else 'rows'}.ledger"


def unit_of(call: str) -> dict[str, str]:
    """Return whom that ledger protects, in the words of ``Ledger.create``."""
    return {"did": {"person": "id"}, "synthetic_control": {"unit": "unit"}}.get(call, {})


def main() -> None:
    """Add the answers that are not kept yet."""
    for name, call in CALLS.items():
        with dpc.Ledger.open_or_create(ledger_of(name), budget=BUDGET, **unit_of(name)) as ledger:
            print(name, call(ledger, 5).guarantee.cached or "paid for")


if __name__ == "__main__":
    main()
