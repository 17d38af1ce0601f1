"""What the answers of a call cost: computed again from the noise that each declares, not from what it was charged.

``paid`` prices a move by the whole declared bound: too little noise, and a budget that is spent twice, show there.
``moved`` says how much of the charge a pair of neighbours uses up, which no proof can make larger than 1.  ``hunt``
climbs to such a pair over (rows, place, new row) from structured starts, as ``dpcausal.audit.falsify`` does, but over
all answers of a call at once, each in its own norm.  Nothing is drawn, so a share above 1, or answers that are declared
otherwise on the neighbour, are wrong at once.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcausal.audit.falsifier import STARTS, distance
from dpcausal.mechanisms.gate import FixedAnswers, Passage, recording_gate
from dpcausal.privacy.budget import Event
from dpcausal.privacy.loss import ZCDP, ApproxDP, Loss, PureDP
from dpcausal.privacy.sensitivity import Norm
from tests.registry.rows import Search, TaskRow

ONCE, TWICE = 1.0, 2.0
PURE = {
    "laplace": ONCE, "geometric": ONCE, "cube": ONCE, "l2-ball": ONCE, "stable-value": ONCE,
    "noisy-max": TWICE, "sparse-vector": TWICE, "propose-test-release": TWICE,
}  # fmt: skip
"""Bounds over scale: ε of mechanisms by the claims of their pages."""

NORMAL = ("gaussian", "discrete-gaussian")
ROUNDING = 1e-9


def paid(event: Event, value: Any) -> Loss:
    """Return the loss of one answer whose noise is the declared one, if neighbours differ by the whole bound."""
    ratio, loss = event.sensitivity / event.scale, event.loss
    if event.mechanism in NORMAL:
        return ZCDP(float(ratio**2 / 2))
    if event.mechanism in PURE:
        epsilon = float(PURE[event.mechanism] * ratio)
        return ApproxDP(epsilon, loss.exact_delta) if isinstance(loss, ApproxDP) else PureDP(epsilon)
    if not isinstance(loss, ApproxDP):
        raise ValueError(f"no price is known for {event.mechanism}")
    return ApproxDP(float(_objective(event, *np.shape(value))), loss.exact_delta)


def _objective(event: Event, donors: int, periods: int) -> float:
    """Return the ε at which the page of objective perturbation asks for the declared scale, at its default M."""
    G, s = 4 * periods * max(2.0, math.sqrt(donors + 1.25)), math.sqrt(-2 * math.log(event.loss.delta))  # type: ignore[union-attr]

    def scale(epsilon: float) -> float:
        # The default M leaves half of .99ε for ε0.
        left = 0.99 * epsilon / 2
        return G * (s + math.sqrt(s * s + 2 * left)) / (2 * left)

    low, high = 1e-9, 1e3
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if scale(middle) > event.scale else (low, middle)
    return high


def share(loss: Loss, charged: Loss) -> float:
    """Return one loss as a share of another of its kind, as a multiple of the noise: ρ by its root."""
    if isinstance(loss, ZCDP) and isinstance(charged, ZCDP):
        return math.sqrt(loss.rho / charged.rho)
    if isinstance(loss, (PureDP, ApproxDP)) and isinstance(charged, (PureDP, ApproxDP)):
        return float(loss.exact_epsilon / charged.exact_epsilon)
    raise ValueError("two losses of different kinds are no share of each other")


def total(losses: Sequence[Loss], kind: type[Loss]) -> Loss:
    """Return the sum of losses in one account: ε and δ, or ρ with a pure ε as ε²/2."""
    if kind is ZCDP:
        return ZCDP(sum(one.rho if isinstance(one, ZCDP) else float(one.exact_epsilon) ** 2 / 2 for one in losses))  # type: ignore[union-attr]
    epsilon, delta = (sum(getattr(one, f"exact_{part}", 0) for one in losses) for part in ("epsilon", "delta"))
    return ApproxDP(epsilon, delta)


@dataclass(frozen=True)
class AtGate:
    """What a task's pair brings to the gate: the price of the declared noise over what was charged, where it is largest
    and where it is least, and the share of the whole charge that this pair uses up.
    """

    noise: float
    least_noise: float
    moved: float


def passages(run: Callable[[], object], answers: FixedAnswers = "low") -> list[Passage]:
    with recording_gate(answers) as recording:
        run()
    return recording.passages


def at_gate(row: TaskRow, epsilon: float) -> AtGate:
    """Return the prices and moves of a task's own pair."""
    one, other = (passages(lambda side=side: row.draw(side, epsilon, 1)) for side in (0, 1))
    noise = [share(paid(each.event, each.value), each.event.loss) for each in one]
    return AtGate(max(noise), min(noise), moved(one, other))


def moved(one: Sequence[Passage], other: Sequence[Passage]) -> float:
    """Return the share of the charge that two neighbours' exact answers use up together."""
    charges = [each.event.loss for each in one]
    ratios = [float(distance(a.value, b.value, Norm(a.event.norm))) / a.bound for a, b in zip(one, other, strict=True)]
    if any(isinstance(loss, ZCDP) for loss in charges):
        squares = [loss.rho if isinstance(loss, ZCDP) else float(loss.exact_epsilon) ** 2 / 2 for loss in charges]  # type: ignore[union-attr]
        return math.sqrt(sum(r * r * weight for r, weight in zip(ratios, squares, strict=True)) / sum(squares))
    weights = [float(loss.exact_epsilon) for loss in charges]  # type: ignore[union-attr]
    return sum(r * weight for r, weight in zip(ratios, weights, strict=True)) / sum(weights)


@dataclass(frozen=True)
class Hunt:
    """The largest share of the charge that neighbours use up, ∞ if they are told apart, and how many were looked at."""

    share: float
    pairs: int

    @property
    def violated(self) -> bool:
        return self.share > 1 + ROUNDING


class _Climb:
    """One climb; it remembers the answers of its rows, so that a move of the neighbour alone costs one call."""

    def __init__(self, search: Search, rng: np.random.Generator, rows: Any, answers: Any) -> None:
        self.search, self.rng, self.answers = search, rng, answers
        places = np.arange(search.rows) if search.places is None else search.places
        self.places = places
        self.rows, self.place, self.new = rows, int(rng.choice(places)), self._corner()
        self.at_rows = self._asked(rows)
        self.share = -1.0

    def _asked(self, rows: Any) -> list[Passage]:
        return passages(lambda: self.search.ask(rows), self.answers)

    def _corner(self) -> Any:
        return np.where(self.rng.random(len(self.search.low)) < 0.5, self.search.low, self.search.high)

    def _row(self, row: Any) -> Any:
        """Return a corner, or the row with one entry at an end, at another row's entry, or anywhere."""
        if self.rng.random() < 0.3:
            return self._corner()
        new, column = row.copy(), int(self.rng.integers(len(row)))
        low, high = self.search.low[column], self.search.high[column]
        near = self.rows[int(self.rng.integers(len(self.rows))), column]
        new[column] = (low, high, near, self.rng.uniform(low, high))[int(self.rng.integers(4))]
        return new

    def step(self) -> None:
        rows, place, new, kind = self.rows, self.place, self.new, int(self.rng.integers(5))
        if kind == 0:
            new = self._row(new)
        elif kind == 1:
            place = int(self.rng.choice(self.places))
        else:
            at = place if kind == 2 else int(self.rng.integers(len(rows)))
            rows = rows.copy()
            rows[at] = self._row(rows[at]) if kind < 4 else rows[int(self.rng.integers(len(rows)))]
        neighbour = rows.copy()
        neighbour[place] = new
        at_rows = self.at_rows if rows is self.rows else self._asked(rows)
        share = _share(at_rows, self._asked(neighbour))
        if share >= self.share:
            self.rows, self.place, self.new, self.at_rows, self.share = rows, place, new, at_rows, share


def _share(one: list[Passage], other: list[Passage]) -> float:
    if [each.event for each in one] != [each.event for each in other]:
        return math.inf
    return moved(one, other)


def hunt(search: Search, *, pairs: int, seed: int = 0) -> Hunt:
    """Return the worst of a number of neighbours: a third to choose among starts, the rest to climb from the best."""
    rng = np.random.default_rng(seed)
    best, looked = None, 0
    while looked < pairs // 3:
        for number, start in enumerate(STARTS.values()):
            rows = np.clip(start(rng, search.rows, search.low, search.high), search.low, search.high)
            climb = _Climb(search, rng, rows, ("low", "high")[number % 2])
            climb.step()
            looked += 1
            best = climb if best is None or climb.share > best.share else best
    if best is None:
        raise ValueError("a hunt needs pairs")
    for _ in range(pairs - looked):
        best.step()
    return Hunt(best.share, pairs)
