"""The result of a test: the statistic, the decision and the privacy cost."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dpcausal.codec import storable
from dpcausal.independence.null_distributions import LEAST_PVALUE
from dpcausal.plotting import axes, titled
from dpcausal.result import Guarantee, Result, p_text

Decision = Literal["dependent", "not detected"]


@storable("Independence")
@dataclass(frozen=True)
class Independence(Result):
    """Whether x and y are associated given z, as released.

    Attributes
    ----------
    statistic : float
        Released: what the method computes, with its noise; its unit depends on the method.
    pvalue : float or None
        Under independence, noise included: from the exact distribution of ranks and noise for the methods in blocks, by
        a normal approximation for those of all rows; ``None`` where only a decision is private.
    decision : {"dependent", "not detected"}
        ``"dependent"`` if independence is rejected at ``alpha``.  ``"not detected"`` does not say independent.
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
        pair = f"{names_text(self.x)} and {names_text(self.y)}"
        p = "" if self.pvalue is None else f" ({p_text(self.pvalue)})"
        if self.decision == "dependent":
            conclusion = f"{pair} are associated{given}{p}."
        else:
            conclusion = f"No association between {pair}{given} was detected{p}. This is not evidence of independence."
        return [conclusion, f"Test: {self.method}, {self.n:,} {self.guarantee.records}, α = {self.alpha:g}."]

    def technical(self) -> list[str]:
        lines = []
        if self.pvalue is None:
            lines.append("Only the decision was tested: this method has no private p-value.")
        else:
            lines.append(f"{pvalue_text(self.pvalue)}, statistic {self.statistic:+.4g}.")
        blocks, regression, strata = (self.settings.get(name) for name in ("blocks", "regression", "strata"))
        where = f", {blocks} blocks" if blocks else ""
        how = f", regression {regression}" if regression else ""
        how += f", numbers given cut in {strata} parts" if strata else ""
        how += f", {self.settings['neighbours']} neighbours on either side" if "neighbours" in self.settings else ""
        lines.append(f"Method {self.method}{where}{how}, {self.n} {self.guarantee.records}.")
        return lines

    def plot(self, ax: Any = None) -> Any:
        """Draw the released p-value beside the level."""
        ax = draw_pvalues(axes(ax), [self.pvalue], self.alpha, [self.decision == "dependent"], 9)
        ax.set_yticks([])
        if self.pvalue is None:
            text = "a decision only: no p-value was released"
            ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center")
        ax.set_xlabel(f"released p-value; shaded: below the level {self.alpha:g}")
        return titled(ax, f"{self.question()}: {self.decision}", self.stamp())

    def question(self) -> str:
        """Return what was asked in short: ``"x, y | z"``, several columns of x or y in parentheses."""
        given = f" | {', '.join(self.given)}" if self.given else ""
        return f"{names_text(self.x)}, {names_text(self.y)}{given}"


def names_text(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def pvalue_text(pvalue: float, name: str = "p") -> str:
    """Return a p-value as text; one that is too small to compute is reported as below the least."""
    return f"{name} < {LEAST_PVALUE:g}" if pvalue <= LEAST_PVALUE else f"{name} = {pvalue:.3g}"


@storable("IndependenceSet")
@dataclass(frozen=True)
class IndependenceSet(Result):
    """Many tests under one budget.

    Attributes
    ----------
    tests : tuple of Independence
        In the order asked for; their own ``decision`` is not adjusted.
    adjusted : tuple of float
        Adjusted p-values, in that order.
    correction : str
        How they were adjusted.
    alpha : float
        Level of all together.
    n : int
        Number of rows.
    guarantee : Guarantee
        What all of them together cost and whom they protect.
    """

    tests: tuple[Independence, ...]
    adjusted: tuple[float, ...]
    correction: str
    alpha: float
    n: int
    guarantee: Guarantee

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """``"dependent"`` where the adjusted p-value is at most α."""
        return tuple("dependent" if p <= self.alpha else "not detected" for p in self.adjusted)

    def headline(self) -> list[str]:
        method = " and ".join(dict.fromkeys(test.method for test in self.tests))
        lines = [
            f"{len(self.tests)} tests by {method}, {self.n} {self.guarantee.records}, correction {self.correction}, "
            f"level {self.alpha:g}:"
        ]
        for test, p, decision in zip(self.tests, self.adjusted, self.decisions, strict=True):
            own = pvalue_text(test.pvalue if test.pvalue is not None else 1.0)
            lines.append(f"  {test.question()}: {decision}, {pvalue_text(p, 'adjusted p')}, {own}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "decisions": list(self.decisions)}

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "x": ", ".join(test.x), "y": ", ".join(test.y), "given": ", ".join(test.given),
                "statistic": test.statistic, "pvalue": test.pvalue, "adjusted": p, "decision": decision,
                "alpha": self.alpha, "method": test.method, "n": self.n,
            }
            for test, p, decision in zip(self.tests, self.adjusted, self.decisions, strict=True)
        ]  # fmt: skip

    def plot(self, ax: Any = None) -> Any:
        """Draw the adjusted p-values beside the level."""
        if ax is None:
            ax = axes()
            ax.figure.set_size_inches(6, 1.0 + 0.35 * len(self.tests))
        draw_pvalues(ax, self.adjusted, self.alpha, [p <= self.alpha for p in self.adjusted])
        ax.set_yticks(range(len(self.tests)), [test.question() for test in self.tests])
        ax.invert_yaxis()
        ax.set_xlabel(f"released p-values, adjusted; shaded: below the level {self.alpha:g}")
        return titled(ax, self.stamp())


def draw_pvalues(
    ax: Any, pvalues: Sequence[float | None], alpha: float, dependent: Sequence[bool], size: float | None = None
) -> Any:
    """Draw a p-value a line on a logarithmic axis, left of the level if dependent, and return the axes."""
    ax.set_xscale("log")
    ax.axvspan(LEAST_PVALUE, alpha, color="tab:red", alpha=0.07)
    ax.axvline(alpha, color="0.6", linewidth=1)
    for place, (pvalue, is_dependent) in enumerate(zip(pvalues, dependent, strict=True)):
        if pvalue is not None:
            colour = "tab:red" if is_dependent else "0.4"
            ax.plot([max(pvalue, LEAST_PVALUE)], [place], marker="o", color=colour, markersize=size)
    ax.set_xlim(LEAST_PVALUE, 1)
    ax.xaxis.set_major_formatter(lambda p, _: f"{p:g}")
    return ax
