"""The result of many directions at one cost: each answer, the choice among scores, a table and a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, overload

from dpcausal.direction.result import DECIDED, Direction, unprotected
from dpcausal.errors import ParameterError
from dpcausal.privacy.loss import NoPrivacy, PureDP
from dpcausal.report import Guarantee, Result, plain


@dataclass(frozen=True)
class Directions(Result):
    """Directions of several pairs, or by several scores, released under one loss: a sequence of ``Direction``.

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

    def __len__(self) -> int:
        return len(self.directions)

    def __iter__(self) -> Iterator[Direction]:
        return iter(self.directions)

    @overload
    def __getitem__(self, place: int) -> Direction: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Direction, ...]: ...

    def __getitem__(self, place: int | slice) -> Direction | tuple[Direction, ...]:
        return self.directions[place]

    def best(self, first: str, second: str) -> Direction:
        """Return the answer about a pair whose score the noise leaves surest: a choice among released values, free.

        The highest ``probability_correct`` wins, the score named earlier among equals.  Without privacy there are no
        probabilities, and the first score's answer is returned.  The noise is all that this compares: a score that
        is surely wrong about the world is chosen as readily as one that is surely right.  Where the summary says
        that the scores disagree, the pair has no best answer: one of them is wrong, and the noise cannot say which.

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
        counts = f"{_count(len(self.pairs), 'pair')}, {_count(len(self.scores), 'score')}"
        lines.append(f"{counts}, {self.n} rows; {self._decided()}.")
        for one in self.directions:
            right = one.probability_correct
            sure = "" if right is None else "; right above .999" if right > 0.999 else f"; right {right:.3f}"
            margin = "" if one.margin is None else f"{one.margin:+.4g} {one.margin_unit}{sure}"
            blocks = f"; {_count(one.blocks, 'block')}" if one.blocks else ""
            paid = "" if isinstance(one.spent, NoPrivacy) else f"; paid {one.spent}"
            lines.append(f"  {one.arrow().rstrip('.')}   {one.score}: {margin}{blocks}{paid}")
        lines += self._disagreements()
        if not isinstance(self.guarantee.loss, NoPrivacy):
            lines.append("'right': the noise leaves the margin's sign right with that probability, one by one.")
        return lines

    def _decided(self) -> str:
        """Return in words how many answers the noise leaves sure."""
        if isinstance(self.guarantee.loss, NoPrivacy):
            return "exact answers, none undecided"
        if all(one.probability_correct is None for one in self.directions):
            return "no answer says how sure the noise leaves it"
        least = self.directions[0].min_probability
        decided = sum(one.decided for one in self.directions)
        return f"decided: {decided} of {len(self)} at or above {DECIDED if least is None else least}"

    def _disagreements(self) -> list[str]:
        """Return a line for each pair that one score decides one way and another the other way."""
        lines = []
        for pair in self.pairs:
            found = [one for one in self.directions if one.columns == pair and one.decided]
            if len({one.cause for one in found}) > 1:
                told = ", ".join(f"{one.score} says {one.cause} -> {one.effect}" for one in found)
                lines.append(f"Scores disagree: {told}. At least one is wrong, and the noise cannot say which.")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON's types."""
        parts: dict[str, Any] = {"directions": [one.to_dict() for one in self.directions]}
        return parts | {name: plain(getattr(self, name)) for name in ("pairs", "scores", "n", "seed", "guarantee")}

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for each pair and score, in the order of ``directions``.

        The columns are those of ``Direction.to_frame``, ``probability_correct`` beside ``margin``, with
        ``undecided``, and ``epsilon``: the part that the answer alone was paid, where ``loss`` is what the whole
        call cost.
        """
        frames = []
        for one in self.directions:
            frame = one.to_frame()
            frame["undecided"] = one.undecided
            frame["epsilon"] = one.spent.epsilon if isinstance(one.spent, PureDP) else None
            frames.append(frame)
        import pandas  # there, or the first frame would have said so

        whole = pandas.concat(frames, ignore_index=True)
        whole.insert(whole.columns.get_loc("margin") + 1, "probability_correct", whole.pop("probability_correct"))
        return whole

    def plot(self, ax: Any = None) -> Any:
        """Draw for each answer how sure the noise leaves it of either direction; grey where it is not decided."""
        from dpcausal.plots import draw_directions

        several = len(self.scores) > 1
        return draw_directions(
            ax,
            rows=[
                (f"{one.columns[0]}, {one.columns[1]}" + (f": {one.score}" if several else ""), one.towards_first(),
                 not one.decided)
                for one in self.directions
            ],
            stamp=self.stamp(),
        )  # fmt: skip


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
