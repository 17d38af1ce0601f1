"""The result of a direction: who is the cause, how clearly, at what cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from dpcausal.privacy.loss import Loss, NoPrivacy
from dpcausal.privacy.neighbours import Unit
from dpcausal.report import Guarantee, Result

DECIDED = 0.9
"""Below this probability the summary says that nothing was decided, unless the caller gave a threshold."""


def unprotected(guarantee: Guarantee) -> list[str]:
    """Return the line that says whom a guarantee leaves out; none if every row is protected, or nobody is."""
    halves = {Unit.TEST_ROW: ("TEST", "training"), Unit.TRAINING_ROW: ("TRAINING", "test")}
    if isinstance(guarantee.loss, NoPrivacy) or guarantee.unit not in halves:
        return []
    protected, other = halves[guarantee.unit]
    return [f"PROTECTS THE {protected} HALF ONLY: the rows of the {other} half are not protected."]


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
    score, protect, method : str
        As asked for, ``"auto"`` resolved.
    settings : dict
        The method's options as used, by name.
    columns : tuple of str
        The two columns in the order they were named.
    n : int
        Rows, public.
    seed : int
        Seed of the public randomness (splits, blocks, features).
    min_probability : float or None
        The least ``probability_correct`` at which a direction is named, as asked for.
    spent : Loss
        What this answer was paid; ``guarantee.loss`` is more where one call gave several.
    guarantee : Guarantee
        What the call cost and whom it protects.
    penalty, width : float or None
        λ and kernel width of regressions that are protected too: as given, by the public rule, or privately chosen.
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
    settings: dict[str, Any] = field(hash=False)
    columns: tuple[str, str]
    n: int
    seed: int | None
    min_probability: float | None
    spent: Loss
    guarantee: Guarantee
    penalty: float | None = None
    width: float | None = None

    @property
    def blocks(self) -> int | None:
        """Number of blocks, where there are any."""
        return self.settings.get("blocks")

    @property
    def undecided(self) -> bool:
        """Whether no direction is named: too unsure for ``min_probability``, or the mechanism declined to answer."""
        return self.cause is None

    @property
    def decided(self) -> bool:
        """Whether the noise leaves the direction sure: at or above ``min_probability``, or .9 where none was given.

        Without privacy it always is; a private release without a probability never is.
        """
        if isinstance(self.spent, NoPrivacy):
            return not self.undecided
        least = DECIDED if self.min_probability is None else self.min_probability
        return not self.undecided and self.probability_correct is not None and self.probability_correct >= least

    def arrow(self) -> str:
        """Return the released direction, or why there is none, in words."""
        first, second = self.columns
        if self.margin is None:
            return f"{first} and {second}: no direction was released."
        if self.undecided:
            return f"{first} and {second}: undecided (below {self.min_probability})."
        right = self.probability_correct
        unsure = self.min_probability is None and right is not None and right < DECIDED
        doubt = f"   (not decided: below {DECIDED})" if unsure else ""
        return f"{self.cause} -> {self.effect}{doubt}"

    def towards_first(self) -> float | None:
        """Return how sure the noise leaves one of the first column as the cause; 0 or 1 without noise.

        ``None`` where no margin was released, or without a probability.
        """
        if self.margin is None or (self.probability_correct is None and not isinstance(self.spent, NoPrivacy)):
            return None
        right = 1.0 if self.probability_correct is None else self.probability_correct
        return right if self.margin >= 0 else 1 - right

    def headline(self) -> list[str]:
        lines = [*unprotected(self.guarantee), self.arrow()]
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
        lines.append(f"Score {self.score}, {where}{self.n} rows, method {self.method}.")
        if self.spent != self.guarantee.loss:
            lines.append(f"One of several answers of a call: it was paid {self.spent} of {self.guarantee.loss}.")
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
