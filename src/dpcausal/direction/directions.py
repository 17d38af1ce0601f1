"""The result of many directions at one cost: each answer, the choice among scores, a table and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpcausal.direction.result import Direction, unprotected
from dpcausal.errors import ParameterError
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.report import Guarantee, Result, plain


@dataclass(frozen=True)
class Directions(Result):
    """Directions of several pairs, or by several scores, released under one loss.

    Attributes
    ----------
    directions : tuple of Direction
        Pair by pair, score by score within a pair.  The ``guarantee`` of each is that of the whole call; ``spent`` is
        its own part.
    pairs : tuple of pairs of str
        In the order that was asked for.
    scores : tuple of str
        In the order that was asked for.
    n : int
        Rows, public.
    seed : int
        Seed of the public randomness that all answers share: the same splits, blocks and features.
    guarantee : Guarantee
        What all answers together cost.
    """

    directions: tuple[Direction, ...]
    pairs: tuple[tuple[str, str], ...]
    scores: tuple[str, ...]
    n: int
    seed: int
    guarantee: Guarantee

    def best(self, first: str, second: str) -> Direction:
        """Return the answer about a pair whose score the noise leaves surest: a choice among released values, free.

        The highest ``probability_correct`` wins, the score named earlier among equals.  Without privacy there are no
        probabilities, and the first score's answer is returned.  The noise is all that this compares: a score that
        is surely wrong about the world is chosen as readily as one that is surely right.

        Parameters
        ----------
        first, second : str
            A pair that was asked about, in either order.
        """
        named = {first, second} if isinstance(first, str) and isinstance(second, str) else set()
        found = [one for one in self.directions if set(one.columns) == named]
        if not found:
            raise ParameterError("first and second must be a pair that was asked about")
        return max(found, key=lambda one: one.probability_correct or 0.0)

    def headline(self) -> list[str]:
        lines = unprotected(self.guarantee)
        named = sum(not one.undecided for one in self.directions)
        counts = f"{_count(len(self.pairs), 'pair')}, {_count(len(self.scores), 'score')}"
        lines.append(f"{counts}, {self.n} rows; a direction is named in {named} of {len(self.directions)} answers.")
        for one in self.directions:
            right = one.probability_correct
            sure = "" if right is None else "; right above .999" if right > 0.999 else f"; right {right:.3f}"
            margin = "" if one.margin is None else f"{one.margin:+.4g} {one.margin_unit}{sure}"
            paid = "" if isinstance(one.spent, NoPrivacy) else f"; paid {one.spent}"
            lines.append(f"  {one.arrow().rstrip('.')}   {one.score}: {margin}{paid}")
        if not isinstance(self.guarantee.loss, NoPrivacy):
            lines.append("'right': the noise leaves the margin's sign right with that probability, one by one.")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON's types."""
        parts: dict[str, Any] = {"directions": [one.to_dict() for one in self.directions]}
        return parts | {name: plain(getattr(self, name)) for name in ("pairs", "scores", "n", "seed", "guarantee")}

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each pair and score, in the order of ``directions``.

        The columns are those of ``Direction.to_frame``, with ``undecided``, and ``epsilon``: the part that the
        answer alone was paid, where ``loss`` is what the whole call cost.
        """
        frames = []
        for one in self.directions:
            frame = one.to_frame()
            frame["undecided"] = one.undecided
            frame["epsilon"] = one.spent.epsilon if isinstance(one.spent, PureDP) else None
            frames.append(frame)
        import pandas  # there, or the first frame would have said so

        return pandas.concat(frames, ignore_index=True)

    def plot(self, ax: Any = None) -> Any:
        """Draw for each answer how sure the noise leaves it of either direction."""
        from dpcausal.plots import draw_directions

        several = len(self.scores) > 1
        return draw_directions(
            ax,
            rows=[
                (f"{one.columns[0]}, {one.columns[1]}" + (f": {one.score}" if several else ""), one.towards_first(),
                 one.undecided)
                for one in self.directions
            ],
            stamp=self.stamp(),
        )  # fmt: skip


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
