"""The results of many tests: each as released, and the decisions after adjusting for their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpcausal.codec import storable
from dpcausal.independence.result import Decision, Independence, said
from dpcausal.report import Guarantee, Result


@storable("Independences")
@dataclass(frozen=True)
class Independences(Result):
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
        return tuple("dependent" if p <= self.alpha else "not shown" for p in self.adjusted)

    def headline(self) -> list[str]:
        method = " and ".join(dict.fromkeys(test.method for test in self.tests))
        lines = [
            f"{len(self.tests)} tests by {method}, {self.n} {self.guarantee.records}, correction {self.correction}, "
            f"level {self.alpha:g}:"
        ]
        for test, p, decision in zip(self.tests, self.adjusted, self.decisions, strict=True):
            own = said(test.pvalue if test.pvalue is not None else 1.0)
            lines.append(f"  {test.question()}: {decision}, {said(p, 'adjusted p')}, {own}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON's types, each test by its own, and the decisions."""
        return {
            "tests": [test.to_dict() for test in self.tests],
            "adjusted": list(self.adjusted),
            "decisions": list(self.decisions),
            "correction": self.correction,
            "alpha": self.alpha,
            "n": self.n,
            "guarantee": self.guarantee.to_dict(),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the tests."""
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
        from dpcausal.independence.picture import draw_many

        names = [test.question() for test in self.tests]
        return draw_many(ax, names=names, pvalues=self.adjusted, alpha=self.alpha, stamp=self.stamp())
