"""The result of a test: what was released, the decision, at what cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from dpcausal.codec import storable
from dpcausal.independence.law import LEAST_PVALUE
from dpcausal.report import Guarantee, Result

Decision = Literal["dependent", "not shown"]


@storable("Independence")
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
    settings : dict
        The method's options as used, by name.
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
    settings: dict[str, Any] = field(hash=False)
    seed: int | None
    guarantee: Guarantee

    def headline(self) -> list[str]:
        given = f" given {', '.join(self.given)}" if self.given else ""
        question = f"{together(self.x)} and {together(self.y)}{given}"
        verdict = "DEPENDENT" if self.decision == "dependent" else "dependence NOT SHOWN"
        lines = [f"{question}: {verdict} at level {self.alpha:g}."]
        if self.pvalue is None:
            lines.append("Only the decision was tested: this method has no private p-value.")
        else:
            lines.append(f"{said(self.pvalue)}, statistic {self.statistic:+.4g}.")
        blocks, regression, strata = (self.settings.get(name) for name in ("blocks", "regression", "strata"))
        where = f", {blocks} blocks" if blocks else ""
        how = f", regression {regression}" if regression else ""
        how += f", numbers given cut in {strata} parts" if strata else ""
        how += f", {self.settings['neighbours']} neighbours on either side" if "neighbours" in self.settings else ""
        lines.append(f"Method {self.method}{where}{how}, {self.n} {self.guarantee.records}.")
        return lines

    def plot(self, ax: Any = None) -> Any:
        """Draw the released p-value beside the level."""
        from dpcausal.independence.picture import draw

        return draw(
            ax, pvalue=self.pvalue, alpha=self.alpha, decision=self.decision, title=self.question(), stamp=self.stamp()
        )

    def question(self) -> str:
        """Return what was asked in short: ``"x, y | z"``, several columns of x or y in parentheses."""
        given = f" | {', '.join(self.given)}" if self.given else ""
        return f"{together(self.x)}, {together(self.y)}{given}"


def together(names: tuple[str, ...]) -> str:
    """Return the names of a side, in parentheses if several.

    >>> together(("a",)), together(("a", "b"))
    ('a', '(a, b)')
    """
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def said(pvalue: float, name: str = "p") -> str:
    """Return a p-value in words; those that are too small to compute are said to be below the least.

    >>> said(0.0123), said(1e-12)
    ('p = 0.0123', 'p < 1e-12')
    """
    return f"{name} < {LEAST_PVALUE:g}" if pvalue <= LEAST_PVALUE else f"{name} = {pvalue:.3g}"
