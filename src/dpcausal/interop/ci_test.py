"""A test of independence that the PC of another package can call; the package sees no row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.table import Table
from dpcausal.errors import MissingDependencyError
from dpcausal.independence.api import ci_test
from dpcausal.independence.question import IndependenceTest
from dpcausal.privacy.loss import Loss


class MeteredCiTest:
    """``ci_test`` for the PC of pgmpy and causal-learn: each different question is paid once, at ``loss``.

    Parameters
    ----------
    table : Table
        Its ledger pays; its schema names the columns.
    loss : Loss
        What one question may cost.  How many a PC asks is not known before: d(d − 1)/2 of d columns without a given
        one, then the more, the more edges are left.  The ledger stops it.
    method, alpha : str or method, float
        As in ``ci_test``; ``alpha`` matters to methods that release a decision without a p-value, which then count
        as 0 or 1.

    Attributes
    ----------
    answers : dict
        The released result of each question, by its pair and what was given.
    p_value_, effect_size_ : float, None
        Of the last question, where pgmpy looks for them.

    Raises
    ------
    BudgetExceededError
        Out of the PC, when the ledger refuses; what was answered stays in ``answers`` and is free in the next run.

    Notes
    -----
    *Guarantee*: that of ``ci_test``, added up by the ledger over questions that the PC chooses by answers before.  The
    PC is given ``placeholder``, zeros in the table's shape: what it computes follows from released answers alone.
    Answers go by their columns: for another table, loss, method or ``alpha`` make another test.

    Examples
    --------
    >>> import dpcausal as dpc
    >>> rows = dpc.simulate.smooth_design(3000, effect=0.5, seed=1)
    >>> table = dpc.Table(rows.columns, rows.schema, dpc.Ledger.in_memory(dpc.PureDP(2)))
    >>> test = MeteredCiTest(table, loss=dpc.PureDP(1))
    >>> with dpc.simulated_noise(2):
    ...     print(test("x", "y", ["z1"], significance_level=0.05), test("y", "x", ["z1"]), len(test.answers))
    False False 1
    """

    def __init__(
        self, table: Table, *, loss: Loss, method: str | IndependenceTest = "auto", alpha: float = 0.05
    ) -> None:
        self.table, self.loss, self.method, self.alpha = table, loss, method, alpha
        self.names: tuple[str, ...] = tuple(table.schema)
        self.answers: dict[tuple[frozenset[str], frozenset[str]], Any] = {}
        self.p_value_, self.effect_size_ = 1.0, None

    @property
    def placeholder(self) -> NDArray[np.float64]:
        """Zeros in the table's public shape: ``pc(test.placeholder, 0.05, test.in_causal_learn())``."""
        return np.broadcast_to(0.0, (self.table.n, len(self.names)))

    def p_value(self, x: str, y: str, given: Iterable[str] = ()) -> float:
        """Ask, or look up what was asked."""
        first, second = sorted((x, y), key=self.names.index)
        among = sorted(set(given), key=self.names.index)
        key = frozenset((x, y)), frozenset(among)
        if key not in self.answers:
            self.answers[key] = ci_test(
                self.table, first, second, given=among, loss=self.loss, method=self.method, alpha=self.alpha
            )
        answer = self.answers[key]
        return float(answer.decision != "dependent") if answer.pvalue is None else float(answer.pvalue)

    def __call__(
        self, X: str, Y: str, Z: Sequence[str] = (), *_: Any, significance_level: float = 0.05, **__: Any
    ) -> bool:
        """Return whether independence stands, as pgmpy asks: ``PC(ci_test=test)``."""
        self.p_value_ = self.p_value(X, Y, Z)
        return self.p_value_ >= significance_level

    def in_causal_learn(self) -> str:
        """Register the test with causal-learn, and return the name for its ``indep_test=``."""
        try:
            from causallearn.utils.cit import CIT_Base, register_ci_test
        except ImportError:
            raise MissingDependencyError("causal-learn", "causal-learn") from None
        paid = self

        class Asking(CIT_Base):  # type: ignore[misc]
            """Columns by their places, as causal-learn asks."""

            def __init__(self, data: Any, **_: Any) -> None:
                self.method = name

            def __call__(self, X: int, Y: int, condition_set: Any = None) -> float:
                x, y, *given = (paid.names[int(place)] for place in (X, Y, *(condition_set or ())))
                return paid.p_value(x, y, given)

        name = f"dpcausal-{id(self)}"
        register_ci_test(name, Asking)
        return name
