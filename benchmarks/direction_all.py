"""A hundred pairs of 1,000 rows under one budget: seconds, what is left, and what each pair is paid.

    python -m benchmarks direction_all [--pairs K] [--rows N]

Additive noise models of our own fill the columns.  ``direction_all`` is asked about all pairs in one call, for a pure
budget, a zCDP budget and one with a small δ; beside it, ``direction`` is called once for each pair at its share of the
pure budget.  Real noise; fresh memory ledgers.  ``right`` is the mean chance that the released arrow is the true one: a
second call brings the exact votes to a recording gate, and what noise does to them has a closed form.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import dpcausal as dpc
from benchmarks.igci import chance_of_first
from benchmarks.targets import report
from dpcausal.mechanisms.gate import recording_gate

MOST_SECONDS = 60.0
Budget = dpc.PureDP | dpc.ApproxDP | dpc.ZCDP


@dataclass(frozen=True)
class Wide:
    """A table of K pairs in 2K columns, and the cause of each pair."""

    columns: dict[str, object]
    schema: dpc.Schema
    causes: dict[tuple[str, str], str]

    def table(self, budget: Budget) -> dpc.Table:
        return dpc.Table(self.columns, self.schema, dpc.Ledger.in_memory(budget), missing="impute")


def made(pairs: int, rows: int) -> Wide:
    """Return pairs that the non-private method mostly gets right, every other one named effect first."""
    columns: dict[str, object] = {}
    declared: dict[str, dpc.Bounded] = {}
    causes = {}
    for place in range(pairs):
        pair = dpc.simulate.anm_pair(rows, mechanism="tanh", noise="gaussian", seed=place)
        names = {"x": f"a{place}", "y": f"b{place}"}
        for name in ("x", "y"):
            columns[names[name]] = pair.columns[name]
            declared[names[name]] = pair.schema.column(name)  # type: ignore[assignment]
        first, second = (names["x"], names["y"])[:: 1 if place % 2 == 0 else -1]
        causes[first, second] = names[pair.cause]
    return Wide(columns, dpc.Schema(declared), causes)


def in_one_call(wide: Wide, budget: Budget) -> tuple[float, dpc.DirectionSet, dpc.Table]:
    table = wide.table(budget)
    start = time.perf_counter()
    answers = dpc.direction_all(table, list(wide.causes), loss=budget)
    return time.perf_counter() - start, answers, table


def right(wide: Wide, answers: Sequence[dpc.Direction]) -> float:
    """Return the mean chance that noise leaves the true arrow, of answers whose margins are exact leads."""
    return sum(
        chance_of_first(one) if wide.causes[one.columns] == one.columns[0] else 1 - chance_of_first(one)
        for one in answers
    ) / len(answers)


def one_by_one(wide: Wide, budget: dpc.PureDP) -> tuple[float, list[dpc.Direction], dpc.Table]:
    table, part = wide.table(budget), budget.divided(len(wide.causes))
    start = time.perf_counter()
    answers = [dpc.direction(table, *pair, loss=part) for pair in wide.causes]
    return time.perf_counter() - start, answers, table


def main() -> int:
    """Print the table and return 0 if all targets hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1_000)
    arguments = parser.parse_args()
    wide = made(arguments.pairs, arguments.rows)
    in_one_call(made(1, 200), dpc.PureDP(1))  # compiled code comes from its cache
    print(f"{os.cpu_count()} cores, load before the run {os.getloadavg()[0]:.1f}; {arguments.pairs} pairs of "
          f"{arguments.rows:,} rows\n")  # fmt: skip
    print(f"{'budget':<22}{'call':<16}{'seconds':>9}{'ε a pair':>11}{'right':>8}   left")
    budgets: list[Budget] = [dpc.PureDP(5), dpc.ApproxDP(5, 1e-6), dpc.ZCDP(0.5)]
    targets = {}
    for budget in budgets:
        seconds, answers, table = in_one_call(wide, budget)
        with dpc.simulated_noise(1), recording_gate(lambda event, value: value):
            chance = right(wide, in_one_call(wide, budget)[1].directions)
        each = answers.directions[0].spent.epsilon  # type: ignore[union-attr]
        left = table.ledger.remaining
        print(f"{budget!r:<22}{'direction_all':<16}{seconds:>9.1f}{each:>11.4f}{chance:>8.3f}   {left}", flush=True)
        targets[f"{budget}: {seconds:.1f} s, at most {MOST_SECONDS:.0f}"] = seconds <= MOST_SECONDS
        targets[f"{budget}: exactly spent, in one entry"] = not left.epsilon and len(table.ledger.entries()) == 1
    pure = dpc.PureDP(5)
    seconds, _, table = one_by_one(wide, pure)
    with dpc.simulated_noise(1), recording_gate(lambda event, value: value):
        chance = right(wide, one_by_one(wide, pure)[1])
    calls = f"{arguments.pairs} directions"
    each = pure.epsilon / arguments.pairs
    print(f"{pure!r:<22}{calls:<16}{seconds:>9.1f}{each:>11.4f}{chance:>8.3f}   {table.ledger.remaining}")
    return report(targets)


if __name__ == "__main__":
    sys.exit(main())
