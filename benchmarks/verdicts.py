"""Verdicts on the direction, and the forced choice of votes: how often each is right, where the truth is known.

    python -m benchmarks verdicts --rows 20000 --epsilons 0.5 --votes

A pair's blocks are those of the public call; what noise makes of their exact counts is drawn ``--noises`` times, so the
counts cost time and the noise does not.  Half of the pairs are named effect first.  Where neither direction is right,
each is wrong.  ``favoured``: the forced choice of ``majority-vote``, the whole ε on one count.
"""

import math
from itertools import product
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.designs.pairs import DESIGNS
from benchmarks.designs.pairs_practice import Columns
from benchmarks.run import Report, benchmark, mean, selected, summarised
from dpcausal.direction.block_counts import Counts, cube_tail, no_noise
from dpcausal.direction.block_decisions import ADDITIVE
from dpcausal.direction.methods.verdict import claims_of, verdict_of
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.privacy.noise import add_cube, add_geometric

NAMES = ("x", "y")


def of_columns(columns: Columns, loss: Any) -> dpc.Table:
    named = dict(zip(NAMES, columns, strict=True))
    bounds = {name: dpc.Bounded(float(np.nanmin(v)), float(np.nanmax(v))) for name, v in named.items()}
    return dpc.Table(named, dpc.Schema(bounds), dpc.Ledger.in_memory(loss))


def exact_counts(columns: Columns, epsilon: float, seed: int, **how: Any) -> tuple[Any, int, int]:
    """Return the exact counts of the public call at ε, its blocks, and the votes' exact count, if it is one count."""
    loss = dpc.PureDP(epsilon)
    with dpc.simulated_noise(seed), recording_gate(lambda event, value: value) as recording:
        answer = dpc.direction(of_columns(columns, loss), "x", "y", loss=loss, **how)
    (passage,) = recording.passages
    return passage.value, answer.blocks or 1, answer.rows_per_block or 0


def verdicts(counts: Any, blocks: int, epsilon: float, noises: int, alpha: float = 0.1) -> dict[str, float]:
    """Return how often each verdict comes out of counts, over draws of the noise; without noise at ε = ∞."""
    exactly = math.isinf(epsilon)
    null = Counts(blocks, no_noise if exactly else cube_tail(epsilon), epsilon)
    found: dict[str, float] = {}
    for _ in range(1 if exactly else noises):
        noisy = counts if exactly else add_cube(counts, 1 / epsilon * (1 + 1e-12), sensitivity=1, epsilon=epsilon)
        a, d, f, g = noisy.tolist()
        pvalues, favoured = claims_of(null, (a, d, f, g), NAMES), "x" if 2 * d >= blocks else "y"
        for word in (verdict_of(pvalues, favoured, NAMES, alpha), f"favoured {favoured}"):
            found[word] = found.get(word, 0.0) + 1
    total = 1 if exactly else noises
    return {name: share / total for name, share in found.items()}


def favours_x(count: int, blocks: int, epsilon: float, noises: int) -> float:
    """Return how often the noisy count of votes favours x."""
    if math.isinf(epsilon):
        return float(2 * count > blocks)
    drawn = add_geometric(np.full(noises, count), 1 / epsilon * (1 + 1e-12), sensitivity=1, epsilon=epsilon)
    return float((2 * drawn > blocks).mean())


SUMMARY = {name: mean(name) for name in ("right", "wrong", "neither", "both", "unlinked", "inconclusive", "answered",
                                         "favoured by the four", "favoured, lsnm",
                                         "favoured, hsic")}  # fmt: skip


def of_pair(columns: Columns, place: int, epsilons: tuple[float, float], given: Any) -> dict[str, float]:
    """Return the shares of ``SUMMARY`` for a pair of which x is the cause; every other one is named effect first.

    ``epsilons``: that the blocks are made for, and that of the noise.
    """
    turned = place % 2 == 1
    named = columns[::-1] if turned else columns
    counts, blocks, _ = exact_counts(named, epsilons[0], place, method=dpc.methods.Verdict(model=given.model))
    verdict_shares = verdicts(counts, blocks, epsilons[1], given.noises)
    right, wrong = ("y", "x") if turned else ("x", "y")
    other = {"x": "y", "y": "x"}
    words = {"right": f"{right} causes {other[right]}", "wrong": f"{wrong} causes {other[wrong]}",
             "neither": "model rejected", "both": "cannot distinguish", "unlinked": "no association detected",
             "inconclusive": "inconclusive", "favoured by the four": f"favoured {right}"}  # fmt: skip
    shares = {name: verdict_shares.get(word, 0.0) for name, word in words.items()}
    shares["answered"] = 1 - shares["inconclusive"]
    for score in ("lsnm", "hsic") if given.votes else ():
        count, blocks, _ = exact_counts(named, epsilons[0], place, method="majority-vote", score=score)
        first = favours_x(int(count), blocks, epsilons[1], given.noises)
        shares[f"favoured, {score}"] = 1 - first if turned else first
    return shares


@benchmark(
    "direction", designs=[], families=["usual"], rows=[4_000, 1_000], epsilons=[1.0], pairs=20, noises=50, votes=False,
    seeds="rows from numpy's default_rng([sum of the design's letters, n]), one pair after the other; noise by seed 1",
    model=ADDITIVE,
)  # fmt: skip
def main(report: Report) -> None:
    given = report.given
    with dpc.simulated_noise(1):
        for n, epsilon in product(given.rows, given.epsilons):
            for design, one in selected(DESIGNS, given).items():
                causal, draw = one.make
                rng = np.random.default_rng([sum(map(ord, design)), n])
                rows = [of_pair(draw(n, rng), place, (epsilon, epsilon), given) for place in range(given.pairs)]
                note = "" if causal else "every direction is wrong"
                report.add(design, summarised(rows, SUMMARY), n=n, epsilon=epsilon, method="verdict", runs=given.pairs,
                           frozen_at=one.frozen_at, note=note)  # fmt: skip
