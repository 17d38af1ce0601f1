"""Information geometry beside the additive noise model: how often each score is right, without noise and privately.

    python -m benchmarks igci [--quick] [--repeats R]

Two tables, on the univariate Tübingen pairs and on the simulated pairs SIM.

1. Without privacy: the share of pairs that the exact score gets right.  Scores of residuals see one random split into
   halves, averaged over R splits; those of information geometry see all rows.
2. ``protect="everyone"``: the mean chance that the released direction is the true one, in the default blocks.  The
   votes are those of the public call; the chance that noise leaves their winner as it is has a closed form, so no
   noise is drawn.  Averaged over R ways to deal the blocks.

± is two standard errors over the pairs.  Each pair's columns take turns at being named first.  The smallest and the
largest value of a sample count as public bounds.  ``weighted``: pairs of one source share one weight, as the collection
states them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

import dpcausal as dpc
from benchmarks.pairs import DataAbsentError, Pair, simulated, tuebingen
from dpcausal.direction.scores import NAMES, anm
from dpcausal.direction.scores.anm import Residuals
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.papers.direction import holdout
from dpcausal.papers.direction.calculators import flip_draw

EPSILONS = (0.3, 1.0)
ALL = 1000

Reals = npt.NDArray[np.float64]


def table_of(pair: Pair, ledger: dpc.Ledger) -> dpc.Table:
    schema = dpc.Schema({"cause": dpc.Bounded(*pair.range_cause), "effect": dpc.Bounded(*pair.range_effect)})
    return dpc.Table({"cause": pair.cause, "effect": pair.effect}, schema, ledger, missing="impute")


def names(turn: int) -> tuple[str, str]:
    """Return the columns in the order that they are named: a tie goes to the first, so both take turns."""
    return ("cause", "effect") if turn % 2 == 0 else ("effect", "cause")


def once(fit: Callable[..., Residuals]) -> Callable[..., Residuals]:
    """Return the fit with its last answers kept: all scores of a call see the same blocks, or halves."""
    kept: dict[bytes, Residuals] = {}

    def fitted(*arguments: Any) -> Residuals:
        key = b"".join(each.tobytes() for each in arguments if isinstance(each, np.ndarray))
        if key not in kept:
            if len(kept) >= 600:  # more than a call has blocks
                kept.clear()
            kept[key] = fit(*arguments)
        return kept[key]

    return fitted


def exact(pair: Pair, seed: int) -> list[float]:
    """Return for each score whether it is right without privacy, on the split of a seed."""
    table = table_of(pair, dpc.Ledger.without_privacy())
    with dpc.simulated_noise(seed):
        answers = dpc.direction_all(table, [names(seed)], scores=NAMES, loss=dpc.NoPrivacy())
    return [float(answer.cause == "cause") for answer in answers.directions]


def chance_of_first(answer: dpc.Direction) -> float:
    """Return the chance that noise lets the first column win, of an answer whose margin is the exact lead."""
    assert answer.margin is not None and answer.blocks is not None and isinstance(answer.spent, dpc.PureDP)
    epsilon = answer.spent.epsilon
    ahead = (round(answer.margin) + answer.blocks) // 2 - (answer.blocks + 1) // 2
    return flip_draw(ahead + 1, epsilon) if ahead >= 0 else 1 - flip_draw(-ahead, epsilon)


def private(pair: Pair, epsilon: float, seed: int) -> list[float]:
    """Return for each score the chance that its released direction is right at ε, given the votes of the blocks."""
    loss = dpc.PureDP(epsilon * len(NAMES))
    table = table_of(pair, dpc.Ledger.in_memory(loss))
    with dpc.simulated_noise(seed), recording_gate(lambda event, value: value):
        answers = dpc.direction_all(table, [names(seed)], scores=NAMES, loss=loss)
    first = [chance_of_first(answer) for answer in answers.directions]
    return [chance if names(seed)[0] == "cause" else 1 - chance for chance in first]


def mean(values: Reals, weights: Sequence[float]) -> str:
    """Return the weighted mean of the pairs' chances with two standard errors."""
    shares = np.asarray(weights) / np.sum(weights)
    centre = float(shares @ values)
    error = float(np.sqrt(shares**2 @ (values - centre) ** 2))
    return f"{centre:.3f} ± {2 * error:.3f}"


def chances_of(pairs: Sequence[Pair], epsilon: float, repeats: int) -> Reals:
    """Return each pair's chance by each score, averaged over the repeats."""
    ask = exact if epsilon == float("inf") else partial(private, epsilon=epsilon)
    with (
        mock.patch.object(anm, "fit_all", once(anm.fit_all)),
        mock.patch.object(holdout, "fit_halves", once(holdout.fit_halves)),
    ):
        return np.array([
            np.mean([ask(pair, seed=seed) for seed in range(place, place + repeats)], axis=0)
            for place, pair in enumerate(pairs)
        ])  # fmt: skip


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the 30 largest pairs, 30 of SIM")
    parser.add_argument("--repeats", type=int, default=2, help="splits, or ways to deal the blocks")
    arguments = parser.parse_args()
    try:
        real, made = list(tuebingen(30 if arguments.quick else ALL)), list(simulated())
    except DataAbsentError as absent:
        print(absent)
        return 0
    sets = {"Tübingen": real, "SIM": made[:30] if arguments.quick else made}
    print(", ".join(f"{name}: {len(pairs)} pairs" for name, pairs in sets.items()) + f"; repeats {arguments.repeats}\n")
    heads = ("Tübingen", "Tübingen, weighted", "SIM")
    start = time.perf_counter()
    for epsilon in (float("inf"), *EPSILONS):
        chances = {name: chances_of(pairs, epsilon, arguments.repeats) for name, pairs in sets.items()}
        print(f"ε = {epsilon:g}".replace("inf", "∞"))
        print(f"{'':<15}" + "".join(f"{head:>21}" for head in heads))
        for place, score in enumerate(NAMES):
            cells = [
                mean(chances["Tübingen"][:, place], [1.0] * len(real)),
                mean(chances["Tübingen"][:, place], [pair.weight for pair in real]),
                mean(chances["SIM"][:, place], [1.0] * len(sets["SIM"])),
            ]
            print(f"{score:<15}" + "".join(f"{cell:>21}" for cell in cells), flush=True)
        print()
    print(f"{time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
