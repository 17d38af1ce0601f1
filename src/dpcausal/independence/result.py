"""The result of a test: what was released, the decision, at what cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dpcausal.report import Guarantee, Result

Decision = Literal["dependent", "not shown"]


@dataclass(frozen=True)
class Independence(Result):
    """Whether x is linked to y once z is known, as released.

    Attributes
    ----------
    statistic : float
        Released: what the method computes, with its noise; its unit depends on the method.
    pvalue : float or None
        Under independence, noise included: from the exact law of ranks and noise for the methods in blocks, by a normal
        approximation for those of all rows; ``None`` where only a decision is private.
    decision : {"dependent", "not shown"}
        ``"dependent"`` if independence is rejected at ``alpha``.  ``"not shown"`` does not say independent.
    alpha : float
        Level of the test.
    x, y, given : tuple of str
        The columns.
    method : str
        As asked for.
    n : int
        Number of rows.
    blocks : int or None
        Number of blocks, where there are any.
    regression : str or None
        Inside blocks: the kernel's shape, or a regressor's name.
    seed : int
        Public seed of splits, permutations, features.
    guarantee : Guarantee
        What was spent and whom it protects.
    """

    statistic: float
    pvalue: float | None
    decision: Decision
    alpha: float
    x: tuple[str, ...]
    y: tuple[str, ...]
    given: tuple[str, ...]
    method: str
    n: int
    blocks: int | None
    regression: str | None
    seed: int
    guarantee: Guarantee

    def headline(self) -> list[str]:
        given = f" given {', '.join(self.given)}" if self.given else ""
        question = f"{', '.join(self.x)} and {', '.join(self.y)}{given}"
        verdict = "DEPENDENT" if self.decision == "dependent" else "dependence NOT SHOWN"
        lines = [f"{question}: {verdict} at level {self.alpha:g}."]
        if self.pvalue is None:
            lines.append("Only the decision was tested: this method has no private p-value.")
        else:
            lines.append(f"p = {self.pvalue:.3g}, statistic {self.statistic:+.4g}.")
        where = f", {self.blocks} blocks" if self.blocks else ""
        how = f", regression {self.regression}" if self.regression else ""
        lines.append(f"Method {self.method}{where}{how}, {self.n} rows.")
        return lines

    def plot(self, ax: Any = None) -> Any:
        """Draw the released p-value beside the level."""
        from dpcausal.independence.picture import draw

        given = f" | {', '.join(self.given)}" if self.given else ""
        title = f"{', '.join(self.x)}, {', '.join(self.y)}{given}"
        return draw(
            ax, pvalue=self.pvalue, alpha=self.alpha, decision=self.decision, title=title, stamp=self.stamp()
        )
