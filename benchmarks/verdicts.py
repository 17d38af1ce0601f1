"""Verdicts and forced leans: how often each is right, on designs whose truth is known and on the Tübingen pairs.

    python -m benchmarks verdicts [--pairs P] [--noises R] [--fresh] [--real | --designs] [--largest] [--at N EPSILON]

A pair's blocks are those of the public call; what noise makes of their exact counts is drawn R times.  So the counts
cost time and the noise does not.  Half of the pairs are named effect first.  ± is one standard error over the pairs.

* ``right``, ``wrong``: an arrow; where no arrow is right, every arrow is wrong.  ``answered``: all but undecided.
* ``lean``: the forced choice of ``method="majority-vote"`` by ``lsnm``, the whole ε on one count, and by ``hsic``;
  not with ``--no-votes``.
* ``--model location-scale``: the verdict's other model.
* ``--fresh``: six times five designs that were named after all defaults were set.
  ``--largest``: n = 20,000 and 100,000, too.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import dpcausal as dpc
from benchmarks.pairs import DataAbsentError, tuebingen
from benchmarks.verdict_shapes import FRESH, Column, Columns, Rng
from dpcausal.direction.block_counts import Counts, cube_tail, no_noise
from dpcausal.direction.block_decisions import ADDITIVE, MODELS
from dpcausal.direction.methods.verdict import claims_of, verdict_of
from dpcausal.mechanisms.gate import recording_gate
from dpcausal.privacy.noise import add_cube, add_geometric

NAMES = ("x", "y")


def wave(x: Column, rng: Rng) -> Column:
    """A random smooth function, near a Gaussian process of length 1, in units of x."""
    x = (x - x.mean()) / x.std()
    f = np.cos(np.outer(x, rng.normal(size=200)) + rng.uniform(0, 2 * np.pi, 200)) @ rng.normal(size=200)
    return np.asarray((f - f.mean()) / f.std())


def bend(x: Column, rng: Rng) -> Column:
    """A random sigmoid."""
    x = (x - x.mean()) / x.std()
    b, c = rng.uniform(0.5, 2) * rng.choice([-1, 1]), rng.uniform(-2, 2)
    f = b * (x + c) / (1 + np.abs(b * (x + c)))
    return np.asarray((f - f.mean()) / f.std())


def cause(n: int, rng: Rng) -> Column:
    """Normal, uniform, or a mixture of four normals."""
    kind = int(rng.integers(3))
    if kind == 2:
        return np.asarray(rng.normal(0, 2, 4)[rng.integers(0, 4, n)] + rng.normal(size=n))
    return np.asarray(rng.uniform(-1.7, 1.7, n) if kind else rng.normal(size=n))


def noise(n: int, rng: Rng) -> Column:
    e = rng.normal(size=n)
    e = np.sign(e) * np.abs(e) ** rng.uniform(0.7, 1.4)
    return np.asarray(e / e.std())


def additive(shape: Callable[[Column, Rng], Column]) -> Callable[[int, Rng], Columns]:
    def draw(n: int, rng: Rng) -> Columns:
        x = cause(n, rng)
        return x, shape(x, rng) + rng.uniform(0.2, 0.6) * noise(n, rng)

    return draw


def scaled(shape: Callable[[Column, Rng], Column]) -> Callable[[int, Rng], Columns]:
    def draw(n: int, rng: Rng) -> Columns:
        x = cause(n, rng)
        return x, shape(x, rng) + 0.4 * np.exp(0.6 * shape(x, rng)) * rng.normal(size=n)

    return draw


def confounded(shape: Callable[[Column, Rng], Column]) -> Callable[[int, Rng], Columns]:
    def draw(n: int, rng: Rng) -> Columns:
        z = rng.normal(size=n)
        return shape(z, rng) + 0.4 * noise(n, rng), shape(z, rng) + 0.4 * noise(n, rng)

    return draw


def linear(n: int, rng: Rng) -> Columns:
    x = rng.uniform(-1, 1, n)
    return x, x + rng.uniform(0.3, 0.6) * rng.uniform(-1, 1, n)


def gaussian(n: int, rng: Rng) -> Columns:
    x = rng.normal(size=n)
    return x, x + rng.uniform(0.3, 1) * rng.normal(size=n)


def multiplicative(n: int, rng: Rng) -> Columns:
    x = rng.uniform(0.5, 2.5, n)
    return x, x ** rng.uniform(0.5, 2) * np.exp(0.4 * rng.normal(size=n))


def post_nonlinear(n: int, rng: Rng) -> Columns:
    x = cause(n, rng)
    z = bend(x, rng) + 0.4 * noise(n, rng)
    return x, z**3 + z


def common_line(n: int, rng: Rng) -> Columns:
    z = rng.uniform(-1, 1, n)
    return z + 0.4 * rng.uniform(-1, 1, n), z + 0.4 * rng.uniform(-1, 1, n)


def unlinked(n: int, rng: Rng) -> Columns:
    return cause(n, rng), cause(n, rng)


DESIGNS: dict[str, tuple[bool, Callable[[int, Rng], Columns]]] = {
    "additive, waves": (True, additive(wave)),
    "additive, sigmoid": (True, additive(bend)),
    "linear, uniform": (True, linear),
    "location-scale, waves": (True, scaled(wave)),
    "location-scale, sigmoid": (True, scaled(bend)),
    "multiplicative": (True, multiplicative),
    "post-nonlinear": (True, post_nonlinear),
    "independent": (False, unlinked),
    "linear-Gaussian": (False, gaussian),
    "confounded, waves": (False, confounded(wave)),
    "confounded, sigmoid": (False, confounded(bend)),
    "confounded, linear": (False, common_line),
}
"""Whether x causes y, and a draw of n rows."""


def of_columns(columns: Columns, loss: dpc.Loss) -> dpc.Table:
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
    law = Counts(blocks, no_noise if exactly else cube_tail(epsilon), epsilon)
    found: dict[str, float] = {}
    for _ in range(1 if exactly else noises):
        noisy = counts if exactly else add_cube(counts, 1 / epsilon * (1 + 1e-12), sensitivity=1, epsilon=epsilon)
        a, d, f, g = noisy.tolist()
        pvalues, lean = claims_of(law, (a, d, f, g), NAMES), "x" if 2 * d >= blocks else "y"
        said = verdict_of(pvalues, lean, NAMES, alpha)
        found[said] = found.get(said, 0.0) + 1
        found[f"lean {lean}"] = found.get(f"lean {lean}", 0.0) + 1
    total = 1 if exactly else noises
    return {name: share / total for name, share in found.items()}


def leans_right(count: int, blocks: int, epsilon: float, noises: int) -> float:
    """Return how often the noisy count of votes leans to x."""
    if math.isinf(epsilon):
        return float(2 * count > blocks)
    drawn = add_geometric(np.full(noises, count), 1 / epsilon * (1 + 1e-12), sensitivity=1, epsilon=epsilon)
    return float((2 * drawn > blocks).mean())


COLUMNS = (
    "right",
    "wrong",
    "neither",
    "both",
    "unlinked",
    "inconclusive",
    "lean of the four",
    "lean lsnm",
    "lean hsic",
)


def of_pair(
    columns: Columns, place: int, epsilons: tuple[float, float], noises: int, votes: bool, model: str
) -> list[float]:
    """Return the shares of ``COLUMNS`` for a pair of which x is the cause; every other one is named effect first.

    ``epsilons``: that the blocks are made for, and that of the noise.
    """
    turned = place % 2 == 1
    named = columns[::-1] if turned else columns
    counts, blocks, _ = exact_counts(named, epsilons[0], place, method=dpc.methods.Verdict(model=model))
    said = verdicts(counts, blocks, epsilons[1], noises)
    right, wrong = ("y", "x") if turned else ("x", "y")
    other = {"x": "y", "y": "x"}
    shares = [said.get(f"{one} causes {other[one]}", 0.0) for one in (right, wrong)]
    shares += [
        said.get(name, 0.0)
        for name in ("model rejected", "cannot distinguish", "no association detected", "inconclusive", f"lean {right}")
    ]
    for score in ("lsnm", "hsic"):
        if not votes:
            shares.append(math.nan)
            continue
        count, blocks, _ = exact_counts(named, epsilons[0], place, method="majority-vote", score=score)
        first = leans_right(int(count), blocks, epsilons[1], noises)
        shares.append(1 - first if turned else first)
    return shares


def show(name: str, rows: list[list[float]], weights: list[float] | None = None) -> None:
    values, share = np.array(rows), np.array([1.0] * len(rows) if weights is None else weights)
    share = share / share.sum()
    centre = share @ values
    error = np.sqrt(share**2 @ (values - centre) ** 2)
    cells = "".join(f"{a:>9.2f} ±{b:.2f}" for a, b in zip(centre, error, strict=True))
    print(f"{name:<26}{cells}   answered {1 - centre[5]:.2f}", flush=True)


def designs(
    kinds: dict[str, Any], sizes: tuple[tuple[int, float], ...], pairs: int, noises: int, votes: bool, model: str
) -> None:
    for n, epsilon in sizes:
        began = time.process_time()
        print(f"\nn = {n:,}, ε = {epsilon:g}; {pairs} pairs a design, {noises} noises")
        print(" " * 26 + "".join(f"{name:>14.14}" for name in COLUMNS))
        for name, (causal, draw) in kinds.items():
            rng = np.random.default_rng([sum(map(ord, name)), n])
            show(name + ("" if causal else " *"), [
                of_pair(draw(n, rng), place, (epsilon, epsilon), noises, votes, model) for place in range(pairs)
            ])  # fmt: skip
        print(f"{time.process_time() - began:.0f} s of processor.  *: no arrow is right")


def real(noises: int, most: int, votes: bool, deals: int, model: str) -> None:
    """Print the Tübingen pairs of one cause and one effect column with 500 rows or more, 4,000 of them at most.

    The rows of each are dealt into blocks several times, and in both orders of the columns: shares are means of these.
    """
    pairs = [pair for pair in tuebingen(1000) if len(pair.cause) >= 500][:most]
    print(f"\nTübingen: {len(pairs)} pairs of 500 rows or more, at most 4,000 of each")
    for made, epsilon in ((1.0, math.inf), (1.0, 1.0), (0.5, 0.5)):
        rows = []
        for place, pair in enumerate(pairs):
            keep = np.random.default_rng(place).permutation(len(pair.cause))[:4_000]
            named = pair.cause[keep], pair.effect[keep]
            dealt = [
                of_pair(named, place + 1001 * deal, (made, epsilon), noises, votes, model) for deal in range(deals)
            ]
            rows.append(np.mean(dealt, axis=0).tolist())
        print(f"ε = {epsilon:g}".replace("inf", "∞ (blocks of ε = 1)"))
        print(" " * 26 + "".join(f"{name:>14.14}" for name in COLUMNS))
        show("unweighted", rows)
        show("weighted", rows, [pair.weight for pair in pairs])
        right, wrong = np.sum(rows, axis=0)[:2]
        print(f"of all arrows {right / max(right + wrong, 1e-9):.2f} are right, {right + wrong:.1f} of them a deal")


def main() -> int:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--noises", type=int, default=50)
    parser.add_argument("--most", type=int, default=1000, help="real pairs, the largest first")
    parser.add_argument("--deals", type=int, default=6, help="deals of each real pair into blocks")
    parser.add_argument("--at", nargs=2, type=float, metavar=("N", "EPSILON"), help="the designs at this size alone")
    parser.add_argument("--only", default="", help="designs whose name has this word")
    parser.add_argument("--model", choices=MODELS, default=ADDITIVE)
    for flag in ("--fresh", "--real", "--designs", "--largest", "--no-votes"):
        parser.add_argument(flag, action="store_true")
    asked = parser.parse_args()
    votes = not asked.no_votes
    everything = not (asked.real or asked.designs or asked.fresh or asked.largest or asked.at)
    made, fresh = ({name: kinds[name] for name in kinds if asked.only in name} for kinds in (DESIGNS, FRESH))
    with dpc.simulated_noise(1):
        if asked.at:
            designs(made, ((int(asked.at[0]), asked.at[1]),), asked.pairs, asked.noises, votes, asked.model)
        if asked.designs or everything:
            designs(made, ((4_000, 1.0), (1_000, 1.0)), asked.pairs, asked.noises, votes, asked.model)
        if asked.largest or everything:
            designs(made, ((20_000, 0.5), (100_000, 0.1)), asked.pairs, asked.noises, votes, asked.model)
        if asked.fresh or everything:
            designs(fresh, ((4_000, 1.0),), asked.pairs, asked.noises, votes, asked.model)
        if asked.real or everything:
            try:
                real(asked.noises, asked.most, votes, asked.deals, asked.model)
            except DataAbsentError as absent:
                print(absent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
