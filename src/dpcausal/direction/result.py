"""The result of a direction: who is the cause, how clearly, at what cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dpcausal.privacy.loss import Loss, NoPrivacy
from dpcausal.privacy.neighbours import Unit
from dpcausal.report import Guarantee, Result

DECIDED = 0.9
"""Below this probability the summary says that nothing was decided, unless the caller gave a threshold."""


@dataclass(frozen=True)
class Direction(Result):
    """Which of two columns is the cause, as released.

    Attributes
    ----------
    cause, effect : str or None
        The released direction; both ``None`` where it is ``undecided``.
    margin : float or None
        Released; above 0 if the first named column is the cause.  Its unit is ``margin_unit``.
    margin_unit : str
        ``"score"`` (difference of the two scores), ``"records"`` (how many records would have to change for the
        other direction to win) or ``"votes"`` (first minus second, over the blocks).
    probability_correct : float or None
        Probability, by the law of the noise and a flat prior on the margins that are possible, that the margin
        without noise has the same sign.  It speaks of the noise alone, not of whether the model holds.
    scores : tuple of two floats, or None
        The released scores of (first causes second, second causes first), the smaller wins; ``None`` unless both
        were released.
    score, protect, method, calibration : str
        As asked for, ``"auto"`` resolved.
    columns : tuple of str
        The two columns in the order they were named.
    n : int
        Rows, public.
    blocks : int or None
        Number of blocks.
    seed : int
        Seed of the public randomness (splits, blocks, features).
    min_probability : float or None
        The least ``probability_correct`` at which a direction is named, as asked for.
    spent : Loss
        What this answer was paid; ``guarantee.loss`` is more where one call gave several.
    guarantee : Guarantee
        What the call cost and whom it protects.
    """

    cause: str | None
    effect: str | None
    margin: float | None
    margin_unit: Literal["score", "records", "votes"]
    probability_correct: float | None
    scores: tuple[float, float] | None
    score: str
    protect: str
    method: str
    calibration: str
    columns: tuple[str, str]
    n: int
    blocks: int | None
    seed: int
    min_probability: float | None
    spent: Loss
    guarantee: Guarantee

    @property
    def undecided(self) -> bool:
        """Whether no direction is named: too unsure for ``min_probability``, or the mechanism declined to answer."""
        return self.cause is None

    def headline(self) -> list[str]:
        lines = []
        if self.guarantee.unit is Unit.TEST_ROW and not isinstance(self.guarantee.loss, NoPrivacy):
            lines.append("PROTECTS THE TEST HALF ONLY: the rows of the training half are not protected.")
        if self.margin is None:
            lines.append(f"{self.columns[0]} and {self.columns[1]}: no direction was released.")
        elif self.undecided:
            lines.append(f"{self.columns[0]} and {self.columns[1]}: undecided (below {self.min_probability}).")
        else:
            right = self.probability_correct
            unsure = self.min_probability is None and right is not None and right < DECIDED
            doubt = f"   (not decided: below {DECIDED})" if unsure else ""
            lines.append(f"{self.cause} -> {self.effect}{doubt}")
        if self.margin is not None:
            right = self.probability_correct
            # "1.000" would claim certainty.
            sure = "" if right is None else "above .999" if right > 0.999 else f"{right:.3f}"
            probability = "" if right is None else f"; the noise leaves its sign right with probability {sure}"
            lines.append(f"Margin {self.margin:+.4g} {self.margin_unit}{probability}.")
        if self.scores is not None:
            first, second = self.columns
            forward, backward = self.scores
            each = f"{first} -> {second} {forward:.4g}, {second} -> {first} {backward:.4g}"
            lines.append(f"Scores, the smaller wins: {each}.")
        where = f"{self.blocks} block{'' if self.blocks == 1 else 's'}, " if self.blocks else ""
        lines.append(f"Score {self.score}, {where}{self.n} rows, method {self.method}, {self.calibration} constants.")
        return lines

    def plot(self, ax: Any = None) -> Any:
        """Draw the released margin and where the margin without noise may lie."""
        from dpcausal.plots import draw_direction

        return draw_direction(
            ax,
            columns=self.columns,
            margin=self.margin,
            unit=self.margin_unit,
            probability=self.probability_correct,
            undecided=self.undecided,
            stamp=self.stamp(),
        )
